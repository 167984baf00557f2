"""Run cases against a driver: several driver processes at a time, each case on its own copy of its input."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import shutil
import stat
import subprocess
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trajconform import __version__
from trajconform.harness.crash import CrashPlan, Launcher
from trajconform.harness.drivertoml import DriverSpec
from trajconform.harness.inprocess import InProcess, InProcessDriver
from trajconform.harness.judge import Bench, Outcome, judge, skip_reason
from trajconform.harness.process import RUN_VARIABLE, ProcessDriver, end_survivors
from trajconform.harness.protocol import DriverFault, DriverUnavailable
from trajconform.harness.verdicts import CaseResult, DriverIdentity, RunResult, Verdict
from trajconform.model.errors import TrajconformError
from trajconform.spec.catalogue import Catalogue
from trajconform.vectors.cases import Case

Progress = Callable[[CaseResult, int, int], None]

_MARKER = "verdict.txt"
_SHARED_MEMORY = "/dev/shm"
_ROOM = 1 << 29
_QUIET = (Verdict.PASS, Verdict.SKIP)


@dataclass(frozen=True)
class _Settings:
    keep: Path | None
    evidence_of_all: bool
    catalogue: Catalogue | None
    scratch: Path
    plan: CrashPlan


def run_cases(
    driver: DriverSpec | InProcess,
    cases: Sequence[Case],
    *,
    jobs: int = 1,
    keep: Path | None = None,
    request_seconds: float | None = None,
    progress: Progress | None = None,
    selection: Mapping[str, Any] | None = None,
    evidence: str = "failures",
    catalogue: Catalogue | None = None,
    plan: CrashPlan | None = None,
) -> RunResult:
    """Judge a driver by cases.

    ``jobs`` driver processes work at a time (one, in process). ``keep`` is a folder that gets, for each FAIL and
    ERROR, the files, requests, replies, the expected reply and the log. ``evidence="all"`` keeps exchanges of cases
    that passed, too. ``progress`` is called in this thread after each case. With a ``catalogue`` a verdict counts only
    for the clauses of a case that bind what was asked (`judged_clauses`). ``plan`` says how often crash cases kill, and
    when. Ctrl-C ends the run with what was found so far. `TrajconformError` where there is no driver to judge: not set
    up, not there, never answering `hello`, or claiming in it what its ``driver.toml`` does not.
    """
    check_startable(driver)
    if not isinstance(driver, DriverSpec):
        jobs = 1
    plan = plan or CrashPlan()
    started, begun = datetime.now(UTC), time.monotonic()
    with _scratch() as scratch:
        settings = _Settings(keep, evidence == "all", catalogue, scratch, plan)
        pool = _Pool(driver, cases, max(1, min(jobs, len(cases))), request_seconds, settings)
        interrupted = pool.run(progress)
    return RunResult(
        driver=pool.identity(),
        results=tuple(pool.results[i] for i in sorted(pool.results)),
        planned=len(cases),
        started=started.isoformat(timespec="seconds"),
        seconds=time.monotonic() - begun,
        jobs=pool.jobs,
        kit_version=__version__,
        interrupted=interrupted,
        selection=dict(selection or {}),
        notes=tuple(pool.notes()),
        kills=plan.kills,
        seed=plan.seed,
    )


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for the cases of a run, removed afterwards whatever a driver has made of it."""
    folder = Path(tempfile.mkdtemp(prefix="trajconform-", dir=_memory()))
    try:
        yield folder
    finally:
        _remove(folder)


class OneByOne:
    """Judges cases when it is asked, one at a time, with one driver that stays; for the loops of others.

    `close` ends the driver. What `run_cases` says of ``keep``, ``catalogue``, ``plan`` and its errors holds here too.
    """

    def __init__(
        self,
        driver: DriverSpec | InProcess,
        *,
        catalogue: Catalogue | None = None,
        keep: Path | None = None,
        request_seconds: float | None = None,
        plan: CrashPlan | None = None,
    ) -> None:
        check_startable(driver)
        self.plan = plan or CrashPlan()
        self._folder = Path(tempfile.mkdtemp(prefix="trajconform-", dir=_memory()))
        settings = _Settings(keep, False, catalogue, self._folder, self.plan)
        self._pool = _Pool(driver, (), 1, request_seconds, settings)
        self._met = False

    def judge(self, case: Case) -> CaseResult:
        """What becomes of a case. `TrajconformError` where there is no driver to judge."""
        if not self._met:
            self._pool.meet()
            self._met = True
        return self._pool.one(case)

    def close(self) -> None:
        """End the driver and remove what it worked on."""
        self._pool.close()
        _remove(self._folder)


def _memory() -> str | None:
    """A folder in memory with room to spare, for the many small files of a run; None for the usual one.

    Every case writes and removes its own store, which on a slow disk costs several times what the driver takes.
    A ``TMPDIR`` in the environment is obeyed.
    """
    try:
        room = os.statvfs(_SHARED_MEMORY)
    except OSError:
        return None
    spacious = room.f_bavail * room.f_frsize >= _ROOM and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK)
    return _SHARED_MEMORY if spacious and not os.environ.get("TMPDIR") else None


class _Pool:
    """Threads that share a list of cases, one driver each. Results and fatal errors come back through a queue."""

    def __init__(
        self,
        source: DriverSpec | InProcess,
        cases: Sequence[Case],
        jobs: int,
        request_seconds: float | None,
        settings: _Settings,
    ) -> None:
        self.source, self.cases, self.jobs, self.settings = source, cases, jobs, settings
        self.results: dict[int, CaseResult] = {}
        self._name = secrets.token_hex(12)
        mark = {RUN_VARIABLE: self._name}
        self._drivers = [_make_driver(source, request_seconds, mark) for _ in range(jobs)]
        self._launcher = Launcher(source, request_seconds)
        self._launcher.set_variable(RUN_VARIABLE, self._name)
        self._survivors = 0
        self._hello: dict[str, Any] | None = None
        self._start_fault = ""
        self._asked = 0
        self._next = iter(enumerate(cases))
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._queue: queue.SimpleQueue[tuple[int, CaseResult] | BaseException | None] = queue.SimpleQueue()

    def run(self, progress: Progress | None) -> bool:
        """Run all cases and leave no process behind; True when interrupted."""
        try:
            return self._run(progress)
        finally:
            self._survivors = end_survivors(self._name)

    def _run(self, progress: Progress | None) -> bool:
        threads = [threading.Thread(target=self._work, args=(d,), daemon=True) for d in self._drivers]
        for thread in threads:
            thread.start()
        try:
            working = len(threads)
            while working:
                item = self._queue.get()
                if item is None:
                    working -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    self.results[item[0]] = item[1]
                    if progress is not None:
                        progress(item[1], len(self.results), len(self.cases))
        except KeyboardInterrupt:
            self._abandon(threads)
            return True
        except BaseException:
            self._abandon(threads)
            raise
        return False

    def _abandon(self, threads: Iterable[threading.Thread]) -> None:
        self._stop.set()
        for driver in self._drivers:
            driver.kill()
        self._launcher.kill()
        deadline = time.monotonic() + 5
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        while not self._queue.empty():
            item = self._queue.get()
            if isinstance(item, tuple):
                self.results[item[0]] = item[1]

    def meet(self) -> None:
        """Start the first driver and hear who it is. `TrajconformError` where it does not say."""
        driver = self._drivers[0]
        try:
            driver.begin()
        except DriverFault as fault:
            raise TrajconformError(_no_start(self.source.name, f"{fault}{_end_of(driver.log())}")) from fault
        self._meet(driver.said)

    def one(self, case: Case) -> CaseResult:
        """Judge one case here and now, with the first driver."""
        self._asked += 1
        return self._one(self._drivers[0], self._asked, case)

    def close(self) -> None:
        """End the drivers, and what they left behind."""
        self._launcher.kill()
        for driver in self._drivers:
            driver.close()
        end_survivors(self._name)

    def identity(self) -> DriverIdentity:
        """Who was judged, as `hello` says, or as far as is known when it never did."""
        source, hello = self.source, self._hello or {}
        spec = source if isinstance(source, DriverSpec) else None
        claims = hello.get("formats", spec.claims if spec else {})
        return DriverIdentity(
            name=hello.get("name", source.name),
            version=hello.get("version", spec.version if spec else ""),
            language=hello.get("language", spec.language if spec else "Python"),
            description=spec.description if spec else "",
            source=str(spec.folder) if spec else "in process",
            formats={name: tuple(roles) for name, roles in claims.items()},
            features=tuple(hello.get("features", spec.features if spec else ())),
        )

    def notes(self) -> list[str]:
        """Notes of all drivers, each once with how often it was made."""
        every = [note for driver in self._drivers for note in driver.notes]
        notes = [
            f"{note} ({every.count(note)} times)" if every.count(note) > 1 else note for note in dict.fromkeys(every)
        ]
        if self._survivors:
            several = "es" if self._survivors > 1 else ""
            notes.append(f"{self._survivors} process{several} of the driver outlived it and had to be killed")
        return notes

    def _work(self, driver: ProcessDriver | InProcessDriver) -> None:
        try:
            while not self._stop.is_set():
                with self._lock:
                    number, case = next(self._next, (-1, None))
                if case is None:
                    break
                result = self._one(driver, number, case)
                if self._stop.is_set():
                    break  # what the driver did while it was being killed says nothing about it
                self._queue.put((number, result))
        except BaseException as error:
            self._queue.put(error)
        finally:
            driver.close()
            self._queue.put(None)

    def _one(self, driver: ProcessDriver | InProcessDriver, number: int, case: Case) -> CaseResult:
        begun = time.monotonic()
        bench: Bench | None = None
        stderr = ""
        folder = self.settings.scratch / str(number)
        try:
            driver.begin()
            hello = driver.said
            self._meet(hello)
            features = frozenset(hello.get("features", ()))
            reason = skip_reason(case, hello["formats"], features)
            if reason:
                outcome = Outcome(Verdict.SKIP, reason)
            else:
                _make_room(folder)
                bench = Bench(driver, folder, features, launcher=self._launcher, plan=self.settings.plan)
                outcome = judge(case, bench)
        except DriverFault as fault:
            if self._hello is None:
                # A start may fail once; a driver that never said who it is leaves nothing to report case by case.
                if isinstance(fault, DriverUnavailable) or isinstance(driver, InProcessDriver):
                    text = self._start_fault or f"{fault}{_end_of(driver.log())}"
                    raise TrajconformError(_no_start(self.source.name, text)) from fault
                self._start_fault = f"{fault}{_end_of(driver.log())}"
            calls = len(bench.exchanges) if bench else 0
            outcome = Outcome(Verdict.ERROR, f"the driver {fault}", call=calls - 1 if calls else None)
        except TrajconformError as error:
            if bench is None:
                raise
            outcome = Outcome(Verdict.ERROR, f"the case cannot be used: {error}")
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            text = f"the case could not be judged: {error.strerror or error}{where}"
            outcome = Outcome(Verdict.ERROR, text)
            stderr = traceback.format_exc()
        except Exception as error:  # a failure of the kit's own costs one case, and is shown as what it is
            outcome = Outcome(Verdict.ERROR, f"the kit itself failed: {type(error).__name__}: {error}")
            stderr = traceback.format_exc()
        log = "" if outcome.verdict in _QUIET and not self.settings.evidence_of_all else driver.log()
        result = self._result(case, outcome, bench, stderr + log, time.monotonic() - begun)
        if self.settings.keep is not None and result.verdict in (Verdict.FAIL, Verdict.ERROR):
            try:
                result = replace(result, kept=str(_keep(self.settings.keep, result, folder)))
            except (
                OSError,
                shutil.Error,
                RecursionError,
            ) as error:  # evidence that cannot be copied must not cost the verdict
                driver.notes.append(f"what {case.id} left could not all be kept: {str(error)[:200]}")
        _remove(folder)
        return result

    def _meet(self, hello: dict[str, Any]) -> None:
        """Take note of who the driver is, the first time; hold what it claims to its ``driver.toml``."""
        with self._lock:
            if self._hello is hello or self._hello == hello:
                return
            if isinstance(self.source, DriverSpec):
                _check_claims(self.source, hello)
            self._hello = self._hello or hello

    def _result(self, case: Case, outcome: Outcome, bench: Bench | None, stderr: str, seconds: float) -> CaseResult:
        shown = outcome.verdict not in _QUIET or self.settings.evidence_of_all
        catalogue = self.settings.catalogue
        judges = outcome.blames or (judged_clauses(case, catalogue, outcome.verdict) if catalogue else ())
        return CaseResult(
            case=case.id,
            title=case.title,
            format=case.format,
            topic=case.topic,
            role=case.role,
            clauses=tuple(case.clauses),
            verdict=outcome.verdict,
            message=outcome.message,
            differences=outcome.differences,
            exchanges=tuple(bench.exchanges) if bench and shown else (),
            expected=outcome.expected if shown else None,
            call=outcome.call,
            seconds=seconds,
            stderr=stderr,
            note=outcome.note,
            judges=judges,
        )


def greet(source: DriverSpec | InProcess) -> dict[str, Any]:
    """What a driver says in `hello`. `TrajconformError` where it cannot be started, says nothing usable, or claims more
    than its ``driver.toml``."""
    check_startable(source)
    driver = _make_driver(source, None)
    try:
        hello = driver.hello()
    except DriverFault as fault:
        raise TrajconformError(_no_start(source.name, f"{fault}{_end_of(driver.log())}")) from fault
    finally:
        driver.close()
    if isinstance(source, DriverSpec):
        _check_claims(source, hello)
    return hello


def judged_clauses(case: Case, catalogue: Catalogue, verdict: Verdict) -> tuple[str, ...]:
    """The clauses of a case that its verdict counts for.

    A reader is judged by readers' clauses, a store (and so a checker) by those of stores, a writer by both its own and
    those of the store it writes. What else a case names says where a fault stands in the specification. MAY permits,
    so a failure is never laid on it beside a clause that demands. Where nothing is left, every clause counts.
    """
    known = [catalogue.clauses[name] for name in case.clauses if name in catalogue.clauses]
    roles = {"reader": ("reader",), "store": ("store",)}.get(case.role, ("writer", "store"))
    own = [clause for clause in known if clause.role in roles] or known
    failed = verdict in (Verdict.FAIL, Verdict.ERROR)
    demanding = [clause for clause in own if not failed or clause.level != "MAY"] or own
    return tuple(clause.id for clause in demanding)


def _end_of(log: str) -> str:
    lines = log.strip().splitlines()[-8:]
    return "; its log ends:" + "".join(f"\n  {line[-300:]}" for line in lines) + "\n" if lines else ""


def _no_start(name: str, fault: str) -> str:
    return (
        f"the driver {name} {fault.rstrip()}{chr(10) if chr(10) in fault else '; '}no case was judged "
        "('trajconform driver check' shows message by message what a driver says)"
    )


def _make_driver(
    source: DriverSpec | InProcess, request_seconds: float | None, variables: Mapping[str, str] | None = None
) -> ProcessDriver | InProcessDriver:
    if isinstance(source, InProcess):
        return InProcessDriver(source)
    limits = source.limits
    if request_seconds is not None:
        limits = replace(limits, request_seconds=request_seconds)
    command = [source.expand(part) for part in source.command]
    env = {**(variables or {}), **{name: source.expand(value) for name, value in source.env.items()}}
    return ProcessDriver(command, source.folder, env, limits)


def check_startable(spec: DriverSpec | InProcess) -> None:
    """`TrajconformError` where a driver is not set up, or its program is not there."""
    if not isinstance(spec, DriverSpec):
        return
    problem = spec.setup_problem()
    if problem:
        raise TrajconformError(problem)
    program = spec.expand(spec.command[0])
    found = shutil.which(program) if "/" not in program else shutil.which(spec.folder / program)
    if found is None:
        raise TrajconformError(
            f"cannot start the driver {spec.name}: {program} is not there or may not be run "
            f"([run] command in {spec.folder / 'driver.toml'})"
        )


def _check_claims(spec: DriverSpec, hello: Mapping[str, Any]) -> None:
    said = {f"to {role} {name}" for name, roles in hello["formats"].items() for role in roles}
    said |= {f"the feature {feature}" for feature in hello.get("features", ())}
    written = {f"to {role} {name}" for name, roles in spec.claims.items() for role in roles}
    written |= {f"the feature {feature}" for feature in spec.features}
    more = sorted(said - written)
    if more:
        raise TrajconformError(
            f"the driver {spec.name} claims in hello what its driver.toml does not: {', '.join(more)}; "
            f"correct one of the two ({spec.folder / 'driver.toml'})"
        )


def _make_room(folder: Path) -> None:
    """Make a case's folder, whatever a driver has done to its place."""
    for place in (folder.parent, folder):
        if place.is_symlink() or (os.path.lexists(place) and not place.is_dir()):
            place.unlink()
    if folder.exists():
        _remove(folder)
    folder.mkdir(parents=True)


def _remove(folder: Path) -> None:
    """Remove a folder as far as that is possible, also one that is nested deeper than Python can follow."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        subprocess.run(
            ["rm", "-rf", "--", str(folder)], check=False, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


def _keep(keep: Path, result: CaseResult, folder: Path) -> Path:
    """Leave all there is about a case in ``keep/<case>``; what an earlier run left there is replaced."""
    target = keep / result.case
    if (target / _MARKER).is_file():
        shutil.rmtree(target)
    target.mkdir(parents=True, exist_ok=True)
    if folder.exists():
        shutil.copytree(folder, target / "files", symlinks=True, dirs_exist_ok=True, ignore=_special)
    lines = [f"{result.case}: {result.title}", f"clauses: {', '.join(result.clauses)}"]
    lines += [f"{result.verdict}: {result.message}", *(f"  {difference}" for difference in result.differences)]
    (target / _MARKER).write_text("\n".join(lines) + "\n", "utf-8")
    for number, exchange in enumerate(result.exchanges, 1):
        stem = f"{number:02}-{exchange.request['op']}"
        _write_json(target / f"{stem}.request.json", exchange.request)
        if exchange.reply is not None:
            _write_json(target / f"{stem}.reply.json", exchange.reply)
    if result.expected is not None:
        _write_json(target / "expected.json", result.expected)
    if result.stderr:
        (target / "stderr.txt").write_text(result.stderr, "utf-8")
    return target


def _special(folder: str, names: list[str]) -> list[str]:
    """Pipes, sockets and devices that a driver left: to copy one may wait for ever."""
    kinds = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    return [name for name in names if not any(kind((Path(folder) / name).lstat().st_mode) for kind in kinds)]


def _write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
