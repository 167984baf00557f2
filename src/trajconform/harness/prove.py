"""Prove the cases: the bundled implementation passes, and every mutant of it is caught, on the clause that it breaks.

A mutant lives in a process of its own, forked when all modules are loaded and all inputs are made, so that nothing of
it reaches the next one. A case that does not end, and a process that does not, are caught by time.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from statistics import median
from typing import Any

from trajconform.harness import judge as judging
from trajconform.harness.inprocess import InProcess, InProcessDriver
from trajconform.harness.judge import Bench, Outcome, judge
from trajconform.harness.mutants import Mutant
from trajconform.harness.protocol import DriverFault
from trajconform.harness.reference import ReferenceDriver
from trajconform.harness.runner import _memory, judged_clauses
from trajconform.harness.verdicts import Verdict
from trajconform.model.errors import TrajconformError
from trajconform.spec.catalogue import Catalogue
from trajconform.vectors.cases import Case

SCOPES = ("clause", "topic", "role")
"""Cases that face a mutant: those bound to its clauses; also those of their topics; all of its format and role."""
CASE_SECONDS = 5.0
MUTANT_SECONDS = 120.0
_MOST_STALLS = 3
_MOST_BYTES = 6 << 30
_PREPARED = ("input_files", "expected_reply", "write_input", "script_calls")
"""What the judge calls to get at a case; prepared once, so that no mutant has a part in it."""
_BROKEN = ("NameError", "SyntaxError", "UnboundLocalError", "TrajconformError")
"""Exceptions that say that a mutant is badly made, and prove nothing."""


@dataclass(frozen=True)
class Failure:
    """A case that failed: its id, its verdict, the clauses that it is laid on, and why."""

    case: str
    verdict: str
    clauses: tuple[str, ...]
    message: str


@dataclass
class Proof:
    """What became of one mutant. ``ran`` counts the cases by clause; ``fault`` says why it proves nothing."""

    mutant: Mutant
    failures: list[Failure] = field(default_factory=list)
    ran: dict[str, int] = field(default_factory=dict)
    cases: int = 0
    seconds: float = 0.0
    fault: str = ""

    @property
    def failing(self) -> dict[str, int]:
        """Clause -> its cases that failed; the clause with the largest share of its cases first: it is the likely cause."""
        counts: dict[str, int] = {}
        for failure in self.failures:
            for clause in failure.clauses:
                counts[clause] = counts.get(clause, 0) + 1
        share = {clause: count / max(self.ran.get(clause, count), 1) for clause, count in counts.items()}
        return dict(sorted(counts.items(), key=lambda item: (-share[item[0]], -item[1], item[0])))

    def killers(self, clause: str) -> list[str]:
        """The cases that catch the mutant on a clause."""
        return [failure.case for failure in self.failures if clause in failure.clauses]

    @property
    def status(self) -> str:
        """``killed`` (on each of its own clauses), ``elsewhere`` (caught, but not on all of them), ``survives``, or
        ``unusable``."""
        if self.fault:
            return "unusable"
        if all(self.killers(clause) for clause in self.mutant.clauses):
            return "killed"
        return "elsewhere" if self.failures else "survives"

    @property
    def others(self) -> list[str]:
        """Clauses that fail though the mutant is not known to break them."""
        return [c for c in self.failing if c not in self.mutant.clauses and c not in self.mutant.also]

    @property
    def precision(self) -> float:
        """The share of the failing clauses that the mutant really breaks; 0 where none fails."""
        failing = self.failing
        return 1 - len(self.others) / len(failing) if failing else 0.0

    def document(self) -> dict[str, Any]:
        """As JSON."""
        m = self.mutant
        return {
            "mutant": m.id, "format": m.format, "role": m.role, "clauses": list(m.clauses), "also": list(m.also),
            "mistake": m.mistake, "status": self.status, "fault": self.fault, "cases": self.cases,
            "seconds": round(self.seconds, 3), "precision": round(self.precision, 4), "failing": self.failing,
            "others": self.others,
            "killers": {clause: self.killers(clause) for clause in m.clauses},
        }  # fmt: skip


@dataclass(frozen=True)
class Matrix:
    """The kill matrix: a proof a mutant, and the clauses that have to have a mutant and have none."""

    proofs: tuple[Proof, ...]
    lacking: tuple[str, ...]
    scope: str
    seconds: float
    cases: int

    @property
    def precision(self) -> float:
        """Median precision of blame over the mutants that were caught."""
        found = [proof.precision for proof in self.proofs if proof.failures]
        return median(found) if found else 0.0

    @property
    def leading(self) -> int:
        """How many mutants are led by a clause that they break, among the clauses that fail."""
        return sum(next(iter(p.failing), "") in (*p.mutant.clauses, *p.mutant.also) for p in self.proofs)

    def count(self, status: str) -> int:
        """Number of mutants with a status."""
        return sum(proof.status == status for proof in self.proofs)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "proof": 1, "scope": self.scope, "seconds": round(self.seconds, 1), "cases": self.cases,
            "counts": {s: self.count(s) for s in ("killed", "elsewhere", "survives", "unusable")},
            "precision": round(self.precision, 4), "leading": self.leading, "lacking": list(self.lacking),
            "mutants": [proof.document() for proof in self.proofs],
        }  # fmt: skip


class _Late(BaseException):
    """A case ran out of time."""


class Prover:
    """Cases made ready for many mutants. A context manager: the inputs lie in a folder that goes with it."""

    def __init__(self, cases: Sequence[Case], catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.cases = [case for case in cases if case.role != "crash"]
        self._folder = Path(tempfile.mkdtemp(prefix="trajconform-prove-", dir=_memory()))
        self._replies: dict[tuple[str, str], Any] = {}
        self._plain = tuple(vars(judging)[name] for name in _PREPARED)
        self._inputs: dict[str, tuple[Mapping[str, bytes], Path]] = {}
        self._scripts: dict[str, Any] = {}

    def __enter__(self) -> Prover:
        input_files, expected_reply, write_input, script_calls = self._plain

        # Whatever a case needs is made once, before any mutant, by code that no mutant touches.
        def expected(case: Case, expect: Any = None) -> Any:
            key = case.id, repr(expect)
            if key not in self._replies:
                self._replies[key] = expected_reply(case, expect)
            found = self._replies[key]
            return None if found is None else dict(found)

        def calls(case: Case) -> Any:
            if case.id not in self._scripts:
                self._scripts[case.id] = script_calls(case)
            return self._scripts[case.id]

        def shared(case: Case, files: Mapping[str, bytes], folder: Path) -> Path:
            known = self._inputs.get(case.id)
            return write_input(case, files, folder) if known is None or case.role == "writer" else known[1]

        for case in self.cases:
            if case.input:
                folder = self._folder / str(len(self._inputs))
                folder.mkdir()
                files = input_files(case)
                self._inputs[case.id] = files, write_input(case, files, folder)
        vars(judging).update(
            input_files=lambda case: self._inputs[case.id][0],
            expected_reply=expected,
            write_input=shared,
            script_calls=calls,
        )
        return self

    def __exit__(self, *_: object) -> None:
        vars(judging).update(zip(_PREPARED, self._plain, strict=True))
        shutil.rmtree(self._folder, ignore_errors=True)

    def unmutated(self) -> list[Failure]:
        """The cases that the bundled implementation itself fails; none, where a proof means anything."""
        return [failure for case in self.cases if (failure := self._one(case, self._driver())) is not None]

    def facing(self, mutant: Mutant, scope: str) -> list[Case]:
        """The cases that a mutant faces, those first that can matter most."""
        topics = {self.catalogue.clauses[clause].topic for clause in mutant.clauses}
        ranked: list[tuple[int, Case]] = []
        for case in self.cases:
            if (case.format, case.role) != (mutant.format, mutant.role):
                continue
            rank = 0 if set(mutant.clauses) & set(case.clauses) else 1 if case.topic in topics else 2
            if rank <= SCOPES.index(scope):
                ranked.append((rank, case))
        return [case for _, case in sorted(ranked, key=lambda pair: pair[0])]

    def prove(
        self,
        mutants: Sequence[Mutant],
        *,
        scope: str = "topic",
        jobs: int = 1,
        progress: Callable[[Proof, int], None] | None = None,
    ) -> list[Proof]:
        """Run every mutant against its cases, ``jobs`` at a time; proofs in the order of the mutants."""
        context = multiprocessing.get_context("fork")
        proofs: dict[str, Proof] = {}
        at_work: dict[Any, tuple[Any, Proof, float, list[Case]]] = {}
        left = list(mutants)
        try:
            while left or at_work:
                while left and len(at_work) < jobs:
                    mutant = left.pop(0)
                    cases = self.facing(mutant, scope)
                    ours, theirs = context.Pipe(duplex=False)
                    process = context.Process(target=self._work, args=(mutant, cases, theirs), daemon=True)
                    process.start()
                    theirs.close()
                    at_work[ours] = process, Proof(mutant), time.monotonic(), cases
                for ready in [*wait(list(at_work), timeout=0.5)]:
                    assert isinstance(ready, Connection)
                    process, proof, begun, cases = at_work[ready]
                    if not self._hear(ready, proof, cases):
                        continue
                    process.join()
                    del at_work[ready]
                    self._done(proof, begun, proofs, progress)
                for ours, (process, proof, begun, cases) in list(at_work.items()):
                    if time.monotonic() - begun > MUTANT_SECONDS:
                        process.kill()
                        process.join()
                        case = cases[min(proof.cases, len(cases) - 1)]
                        self._note(proof, case, Outcome(Verdict.ERROR, f"no end after {MUTANT_SECONDS:g} s"))
                        del at_work[ours]
                        self._done(proof, begun, proofs, progress)
        finally:
            for process, *_ in at_work.values():
                process.kill()
        return [proofs[mutant.id] for mutant in mutants]

    def _done(
        self, proof: Proof, begun: float, proofs: dict[str, Proof], progress: Callable[[Proof, int], None] | None
    ) -> None:
        proof.seconds = time.monotonic() - begun
        proofs[proof.mutant.id] = proof
        if progress is not None:
            progress(proof, len(proofs))

    def _hear(self, source: Connection, proof: Proof, cases: list[Case]) -> bool:
        """Take in what a worker says; True when it has ended."""
        try:
            kind, body = source.recv()
        except EOFError:
            stalled = sum(failure.message.startswith("no end after") for failure in proof.failures) >= _MOST_STALLS
            if proof.cases < len(cases) and not proof.fault and not stalled:  # it died: the case at hand killed it
                self._note(proof, cases[proof.cases], Outcome(Verdict.ERROR, "the process died"))
            return True
        if kind == "fault":
            proof.fault = body
        else:
            for clause in judged_clauses(cases[proof.cases], self.catalogue, Verdict.PASS):
                proof.ran[clause] = proof.ran.get(clause, 0) + 1
            proof.cases += 1
            if body is not None:
                proof.failures.append(body)
        return False

    def _note(self, proof: Proof, case: Case, outcome: Outcome) -> None:
        proof.failures.append(self._failure(case, outcome))

    def _failure(self, case: Case, outcome: Outcome) -> Failure:
        blamed = outcome.blames or judged_clauses(case, self.catalogue, outcome.verdict)
        return Failure(case.id, str(outcome.verdict), blamed, outcome.message[:300])

    def _work(self, mutant: Mutant, cases: list[Case], out: Connection) -> None:
        """A mutant's own process."""
        import resource

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
        try:
            if mutant.spoils:
                vars(judging)["write_input"] = self._plain[2]
            mutant.apply()
        except BaseException as error:
            out.send(("fault", f"it cannot be made: {type(error).__name__}: {error}"))
            out.close()
            os._exit(0)
        driver, stalls = self._driver(), 0
        for case in cases:
            failure = self._one(case, driver)
            if failure is not None and any(f"raised {name}" in failure.message for name in _BROKEN):
                out.send(("fault", f"{failure.case}: {failure.message}"))
                break
            out.send(("case", failure))
            stalls += failure is not None and failure.message.startswith("no end after")
            if stalls == _MOST_STALLS:
                break  # it hangs: every further case would cost as long and say no more
        out.close()
        os._exit(0)

    def _driver(self) -> InProcessDriver:
        return InProcessDriver(InProcess("reference", ReferenceDriver))

    def _one(self, case: Case, driver: InProcessDriver) -> Failure | None:
        def late(*_: object) -> None:
            raise _Late

        folder = Path(tempfile.mkdtemp(dir=self._folder))
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, CASE_SECONDS)
        try:
            driver.begin()
            bench = Bench(driver, folder, frozenset(driver.said["features"]))
            outcome = judge(case, bench)
        except DriverFault as fault:
            outcome = Outcome(Verdict.ERROR, f"the driver {fault}")
            driver.restart()
        except _Late:
            outcome = Outcome(Verdict.ERROR, f"no end after {CASE_SECONDS:g} s")
            driver.restart()
        except Exception as error:  # what a broken writer leaves may break those who look at it
            outcome = Outcome(Verdict.ERROR, f"the kit itself failed: {type(error).__name__}: {error}")
            driver.restart()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            shutil.rmtree(folder, ignore_errors=True)
        return None if outcome.verdict in (Verdict.PASS, Verdict.SKIP, Verdict.INFO) else self._failure(case, outcome)


def prove_all(
    mutants: Sequence[Mutant],
    cases: Sequence[Case],
    catalogue: Catalogue,
    *,
    scope: str = "topic",
    jobs: int = 1,
    required: Iterable[str] = (),
    progress: Callable[[Proof, int], None] | None = None,
) -> Matrix:
    """The kill matrix of some mutants. ``required`` are clauses that have to have one.

    `TrajconformError` where the unmutated implementation fails a case, so that nothing would be proved, and where a
    mutant names a clause that does not exist or is not of its role.
    """
    begun = time.monotonic()
    check_mutants(mutants, catalogue)
    named = {clause for mutant in mutants for clause in mutant.clauses}
    wanted = {(mutant.format, mutant.role) for mutant in mutants}
    used = [case for case in cases if (case.format, case.role) in wanted]
    with Prover(used, catalogue) as prover:
        failing = prover.unmutated()
        if failing:
            first = failing[0]
            raise TrajconformError(
                f"the unmutated implementation fails {len(failing)} cases, so that nothing would be proved; "
                f"{first.case}: {first.message}"
            )
        proofs = prover.prove(mutants, scope=scope, jobs=jobs, progress=progress)
        count = len(prover.cases)
    lacking = tuple(clause for clause in required if clause not in named)
    return Matrix(tuple(proofs), lacking, scope, time.monotonic() - begun, count)


def check_mutants(mutants: Iterable[Mutant], catalogue: Catalogue) -> None:
    """Hold the clauses that mutants name to the catalogue: they exist, and are of the mutant's format and role."""
    for mutant in mutants:
        for clause in (*mutant.clauses, *mutant.also):
            if clause not in catalogue.clauses:
                raise TrajconformError(f"the mutant {mutant.id} names {clause}, which no chapter defines")
        for clause in mutant.clauses:
            known = catalogue.clauses[clause]
            allowed = ("writer", "store") if mutant.role == "writer" else (mutant.role,)
            if known.format != mutant.format or known.role not in allowed:
                raise TrajconformError(f"the mutant {mutant.id} is a {mutant.role}, {clause} binds a {known.role}")
