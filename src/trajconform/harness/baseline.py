"""Known failures: what an implementation is expected to fail, so that a change either way is seen."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from trajconform.harness.protocol import find_fault
from trajconform.harness.verdicts import CaseResult, Deviation, RunResult, Verdict
from trajconform.model.errors import TrajconformError

_BAD = (Verdict.FAIL, Verdict.ERROR)


@dataclass(frozen=True)
class Expectation:
    """One entry: a case (or a pattern with ``*`` and ``?``), the clause that is broken, and why."""

    case: str
    clause: str
    verdict: Verdict
    reason: str
    does: str = ""
    link: str = ""

    def covers(self, result: CaseResult) -> bool:
        """Whether the entry is about this case."""
        return result.case == self.case or fnmatch.fnmatchcase(result.case, self.case)


def load_expectations(path: Path) -> tuple[Expectation, ...]:
    """Read a list of known failures. `TrajconformError` says what is wrong with it and where."""
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TrajconformError(f"{path}: {error}") from None
    document = [] if document is None else document
    fault = find_fault("known-failures", document)
    if fault:
        raise TrajconformError(f"{path}{fault}")
    return tuple(
        Expectation(
            entry["case"],
            entry["clause"],
            Verdict(entry.get("verdict", "FAIL")),
            entry["reason"].strip(),
            entry.get("does", "").strip(),
            entry.get("link", ""),
        )
        for entry in document
    )


def hold_against(run: RunResult, expectations: Sequence[Expectation]) -> RunResult:
    """The run with its deviations from the known failures.

    Every FAIL or ERROR needs an entry with that verdict whose clause is one of the case's, and every entry needs at
    least one case. An entry about several cases (a pattern) holds for each of them. In a run of every case an entry
    without a case is stale; in a selection it is merely out of view.
    """
    deviations = [*_unexpected(run.results, expectations)]
    if not run.interrupted and not any(run.selection.values()):
        for entry in expectations:
            if not any(entry.covers(result) for result in run.results):
                text = f"no case {entry.case!r} exists any more; remove the entry"
                deviations.append(Deviation(entry.case, "stale entry", entry.verdict, "no such case", text))
    return dataclasses.replace(run, deviations=tuple(deviations))


def _unexpected(results: Iterable[CaseResult], expectations: Sequence[Expectation]) -> Iterable[Deviation]:
    for result in results:
        entries = [entry for entry in expectations if entry.covers(result)]
        if not entries:
            if result.verdict in _BAD:
                text = f"{result.verdict}, and no known failure says so: {result.message}"
                yield Deviation(result.case, "unexpected failure", Verdict.PASS, result.verdict, text)
            continue
        wanted = " or ".join(dict.fromkeys(entry.verdict for entry in entries))
        strange = [entry.clause for entry in entries if entry.clause not in result.clauses]
        if strange:
            text = f"the entry names {', '.join(strange)}, the case binds {', '.join(result.clauses)}"
            yield Deviation(result.case, "stale entry", wanted, result.verdict, text)
        elif result.verdict not in [entry.verdict for entry in entries]:
            if result.verdict in _BAD:
                kind, text = "other verdict", f"expected to be {wanted}, is {result.verdict}: {result.message}"
            elif result.verdict is Verdict.SKIP:
                kind, text = "not judged", f"expected to be {wanted}, was skipped: {result.message}"
            else:
                kind, text = "unexpected pass", f"expected to be {wanted}, is {result.verdict}; remove the entry"
            yield Deviation(result.case, kind, wanted, result.verdict, text)
