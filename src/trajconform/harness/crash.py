"""Crash cases: a writer is killed, held still, or watched, and what it leaves on disk is held to the commit protocol.

The script of a case is made call by call by a driver process that belongs to the case alone. Moments are spread by a
seed over the time that the calls took in a rehearsal. What is known at a kill: the frames that had been sent, and those
that an acknowledged flush had promised.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trajconform.harness import formats, trace
from trajconform.harness.drivertoml import DriverSpec
from trajconform.harness.inprocess import InProcess
from trajconform.harness.process import DriverProcess, Limits
from trajconform.harness.protocol import PROTOCOL, Answer, DriverFault
from trajconform.harness.verdicts import Exchange, Verdict
from trajconform.model.errors import Refused, TrajconformError
from trajconform.model.reply import Difference, compare
from trajconform.vectors.cases import Call, Case, presented_frames, script_calls

if TYPE_CHECKING:
    from trajconform.harness.judge import Bench, Outcome

_LOOKS = 4
"""Looks at a writer that is held still, for each kill that is asked for: they cost far less."""
_BEFORE_THE_COMMIT = frozenset(("MREC-REGULAR-11", "MREC-BLOCK-26"))
"""Forms that a commit never leaves and that a block passes through on its way from markers to an index, or to its first
update: readers have rules for them (MREC-REGULAR-12, MREC-REGULAR-13, MREC-BLOCK-25)."""
_FRAME = re.compile(r"frames\[(\d+)\]")
_AGAIN = 0.5
"""How often a writer that goes on after a kill is killed again."""


@dataclass(frozen=True)
class CrashPlan:
    """How often a writer is killed in each case, and the seed of the moments."""

    kills: int = 2
    seed: int = 0


class Launcher:
    """Starts driver processes for crash cases, and ends them all when a run is abandoned."""

    def __init__(self, source: DriverSpec | InProcess, request_seconds: float | None) -> None:
        self._env: dict[str, str] = {}
        self.limits = source.limits if isinstance(source, DriverSpec) else Limits()
        self.request_seconds = request_seconds or self.limits.request_seconds
        if isinstance(source, DriverSpec):
            self._command = [source.expand(part) for part in source.command]
            self._folder = source.folder
            self._env = {name: source.expand(value) for name, value in source.env.items()}
        else:
            self._command = [sys.executable, "-m", "trajconform.harness.serve", source.attribute]
            self._folder = Path.cwd()
            # What this process can import the other one has to find as well.
            self._env = {"PYTHONPATH": ":".join(path or "." for path in sys.path)}
            if not source.attribute:
                self._command = []
        self._alive: set[DriverProcess] = set()
        self._over = False

    def set_variable(self, name: str, value: str) -> None:
        """Put a variable into the environment of every process from now on."""
        self._env[name] = value

    def missing(self) -> str:
        """Why there is no process to kill, or nothing where there is one."""
        return "" if self._command else "an object of this process cannot be killed; name it as module:attribute"

    def start(self, prefix: Sequence[str] = ()) -> DriverProcess:
        """A driver process that has not said hello yet."""
        if self._over:
            raise DriverFault("crash", "was not started: the run is over")
        process = DriverProcess([*prefix, *self._command], self._folder, self._env, self.limits)
        self._alive.add(process)
        return process

    def gone(self, process: DriverProcess) -> None:
        """Take note that a process has been ended."""
        self._alive.discard(process)

    def kill(self) -> None:
        """End every process and start no other; callable from another thread."""
        self._over = True
        for process in tuple(self._alive):
            process.signal_group()


class _Unsupported(Exception):
    """The driver has no way to make a call."""


class _Broken(Exception):
    """A clause is broken."""

    def __init__(self, clauses: Sequence[str], text: str, differences: Sequence[Difference] = ()) -> None:
        super().__init__(text)
        self.clauses, self.differences = tuple(clauses), tuple(differences)


class _Writer:
    """One driver process that writes one file."""

    def __init__(self, run: _Run, path: Path, prefix: Sequence[str] = ()) -> None:
        self._run, self.path = run, path
        self.process = run.launcher.start(prefix)
        self.sent = self.taken = self.promised = 0
        """Frames whose append was sent, was acknowledged, and was promised by an acknowledged flush."""
        run.writers.append(self)
        limits = run.launcher.limits
        answer = self.process.ask("hello", {"protocol": PROTOCOL}, limits.start_seconds)
        if answer.kind != "ok":
            raise DriverFault("start", f"answered hello with {answer.kind}: {answer.reason}")

    def call(self, call: Call, *, after: Sequence[float] = (), look: Any = None, kill: float | None = None) -> bool:
        """Make a call. With ``kill`` the process is killed that many seconds after the request was written; with
        ``after`` it is held still at those times for a ``look``. False where it was killed unanswered."""
        params = dict(call.params)
        if call.op in ("create", "reopen"):
            params = {"format": self._run.case.format, "path": str(self.path), **params}
        self.sent += call.op == "append"
        exchanges, limit = self._run.bench.exchanges, self._run.launcher.request_seconds
        answer: Answer | None
        try:
            self.process.send(call.op, params, limit)
            begun = time.perf_counter()
            for at in after:
                time.sleep(max(0.0, at - (time.perf_counter() - begun)))
                held = time.perf_counter()
                with self.process.frozen():
                    look()
                begun += time.perf_counter() - held
            if kill is None:
                answer = self.process.receive(limit)
            else:
                time.sleep(max(0.0, kill - (time.perf_counter() - begun)))
                answer = self.process.killed_answer()
        except DriverFault as fault:
            exchanges.append(Exchange({"op": call.op, **params}, fault.reply))
            raise
        exchanges.append(Exchange({"op": call.op, **params}, answer.wire if answer else None))
        self._acknowledge(call.op, answer)
        return answer is not None

    def _acknowledge(self, op: str, answer: Answer | None) -> None:
        if answer is None:
            return
        if answer.kind == "unsupported":
            raise _Unsupported(answer.reason)
        if answer.kind == "error":
            raise DriverFault("error", f"reported an error of its own in {op!r}: {answer.reason}", reply=answer.wire)
        if answer.kind == "refused":
            clauses = ("MREC-REOPEN-04",) if op == "reopen" or self._run.resumed else ()
            raise _Broken(clauses, f"{op} was refused: {answer.reason}")
        self.taken += op == "append"
        if op in ("flush", "close"):
            self.promised = self.taken

    def go_on(self, count: int) -> None:
        """Start to count from what was found committed."""
        self.sent = self.taken = self.promised = count

    def end(self) -> None:
        """Let the process go."""
        self.process.stop()
        self._run.launcher.gone(self.process)


@dataclass
class _Run:
    """One crash case at work."""

    case: Case
    bench: Bench
    launcher: Launcher
    plan: CrashPlan
    calls: list[Call]
    frames: list[dict[str, Any]]
    writers: list[_Writer] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)
    """Seconds that each call took in the rehearsal."""
    born: bool = False
    """Whether a reader can open what stands there once `create` has been answered."""
    finished: bytes = b""
    """For a format of one file: the file that the rehearsal wrote."""
    resumed: bool = False
    where: str = ""

    def start(self, path: Path, prefix: Sequence[str] = ()) -> _Writer:
        """A fresh driver process for a file at ``path``."""
        path.parent.mkdir(parents=True, exist_ok=True)
        return _Writer(self, path, prefix)

    def place(self, name: str) -> Path:
        """Where a file of this run goes."""
        return self.bench.folder / name / f"out.{self.case.format}"


def judge_crash(case: Case, bench: Bench) -> Outcome:
    """Run a crash case. `DriverFault` where the driver fails by itself."""
    from trajconform.harness.judge import Outcome

    launcher = bench.launcher
    if launcher is None:
        raise TrajconformError("a crash case needs a launcher of driver processes")
    why = launcher.missing() or (trace.missing() if case.crash == "trace" else "")
    if why:
        return Outcome(Verdict.SKIP, why)
    run = _Run(case, bench, launcher, bench.plan, script_calls(case), presented_frames(case))
    try:
        note = {"kill": _kills, "freeze": _looks, "trace": _trace}[case.crash](run)
        return Outcome(Verdict.PASS, note=note)
    except _Unsupported as missing:
        return Outcome(Verdict.SKIP, f"the driver does not support it: {missing}")
    except _Broken as broken:
        text = f"{run.where}: {broken}" if run.where else str(broken)
        blames = tuple(clause for clause in broken.clauses if clause in case.clauses)
        return Outcome(Verdict.FAIL, text, broken.differences, blames=blames, call=max(0, len(bench.exchanges) - 1))
    finally:
        for writer in run.writers:
            writer.end()


# -- what befalls the writer ---------------------------------------------------------------------------------------


def _rehearse(run: _Run) -> _Writer:
    """Run the script once undisturbed: how long each call takes, and that there is nothing to find without a crash."""
    run.where = "before anything happened to it"
    path = run.place("rehearsal")
    writer = run.start(path)
    for number, call in enumerate(run.calls):
        begun = time.perf_counter()
        writer.call(call)
        run.durations.append(time.perf_counter() - begun)
        if number == 0:
            run.born = _opens(run, path)
    _judge_whole(run, path, ())
    if path.is_file():
        run.finished = path.read_bytes()
    shutil.rmtree(path.parent)
    return writer


def _kills(run: _Run) -> str:
    rng = random.Random(f"{run.plan.seed}/{run.case.id}")
    writer: _Writer | None = _rehearse(run)
    done, lost, kept = 0, 0, 0
    while done < run.plan.kills:
        path = run.place(f"kill-{done + 1}")
        if writer is None:
            writer = run.start(path)
        else:  # the process of the rehearsal, whose second file this is
            writer.path = path
            path.parent.mkdir()
            writer.go_on(0)
        run.resumed = False
        moment = _moment(rng, run.durations, range(1, len(run.calls)))
        killed = done + 1
        again = killed < run.plan.kills and rng.random() < _AGAIN and "reopen" in run.bench.features
        second = rng.random()
        run.bench.exchanges.clear()
        _play(run, writer, run.calls, moment, f"kill {killed} of {run.plan.kills}")
        count = _judge_left(run, path, writer)
        lost, kept = lost + writer.sent - count, kept + count
        done = killed
        writer = None
        if "reopen" in run.bench.features and (count or _opens(run, path)):
            done += _go_on(run, path, count, second if again else None, done + 1)
        shutil.rmtree(path.parent)
    return f"{done} kills with seed {run.plan.seed}: {kept} frames kept of {kept + lost} that had been sent"


def _go_on(run: _Run, path: Path, count: int, second: float | None, number: int) -> int:
    """Reopen what a kill left and append what is missing; with ``second``, a share of the time that takes, be killed
    once more on the way. The number of further kills."""
    run.resumed = True
    reopen = Call("reopen", {}, False)
    kills = 0
    if second is not None:
        calls, durations = _rest(run, count)
        writer = run.start(path)
        writer.go_on(count)
        moment = _moment_at(second, [run.durations[0], *durations], range(len(calls) + 1))
        _keep(path)
        _play(
            run, writer, [reopen, *calls], moment, f"kill {number} of {run.plan.kills}, while it went on after a kill"
        )
        before, count = count, _judge_left(run, path, writer)
        if count < before:
            raise _Broken(("MREC-REOPEN-03",), f"{count} frames are left of {before} that were committed before")
        kills = 1
    calls, _ = _rest(run, count)
    writer = run.start(path)
    writer.go_on(count)
    _keep(path)
    run.where += "; reopened"
    writer.call(reopen)
    _judge_reopened(run, path, count)
    for call in calls:
        writer.call(call)
    run.where += " and written to the end"
    _judge_whole(run, path, (count, "MREC-REOPEN-03", "MREC-REOPEN-06", "MREC-REOPEN-02"))
    writer.end()
    return kills


def _looks(run: _Run) -> str:
    rng = random.Random(f"{run.plan.seed}/{run.case.id}")
    writer = _rehearse(run)
    path = run.place("frozen")
    path.parent.mkdir()
    writer.path = path
    writer.go_on(0)
    wanted = max(1, run.plan.kills * _LOOKS)
    moments = sorted(_moment(rng, run.durations, range(1, len(run.calls))) for _ in range(wanted))
    seen = 0
    least = 0
    number = 0
    call = run.calls[0]

    def look() -> None:
        nonlocal seen, least
        seen += 1
        run.where = f"look {seen} of {wanted}, {_told(number, call, moments[seen - 1][1])}"
        copy = run.place("seen")
        shutil.rmtree(copy.parent, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            if path.is_dir():
                shutil.copytree(path, copy, symlinks=True)
            else:
                copy.parent.mkdir()
                shutil.copy(path, copy)
        count = _judge_left(run, copy, writer)
        if count < least:
            raise _Broken(("MREC-COMMIT-16",), f"{count} frames, {least} were there at an earlier look")
        least = count

    run.bench.exchanges.clear()
    for number, call in enumerate(run.calls):
        writer.call(call, after=[at for index, at in moments if index == number], look=look)
    return f"{seen} looks with seed {run.plan.seed}"


def _trace(run: _Run) -> str:
    log = run.bench.folder / "strace.log"
    path = run.place("written")
    writer = run.start(path, trace.command(log))
    periods: list[trace.Period] = []
    for call in run.calls:
        spared = trace.elided(path)
        sent = time.time()
        writer.call(call)
        periods.append(trace.Period(call.op, sent, time.time(), spared))
    writer.end()
    run.where = "as the system saw it"
    every, number = trace.judge_order(log.read_text("utf-8", "replace"), path, periods)
    # What breaks clauses of other cases only is theirs to tell.
    found = [one for one in every if set(one.clauses) & set(run.case.clauses)]
    if found:
        clauses = tuple(dict.fromkeys(clause for one in found for clause in one.clauses))
        differences = [Difference(one.place, one.expected, one.actual, ", ".join(one.clauses)) for one in found]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise _Broken(clauses, f"{differences[0]}{more}", differences)
    if not number:
        raise TrajconformError("strace recorded nothing of what the driver wrote")
    _judge_whole(run, path, ())
    return f"{number} file operations in {len(run.calls)} calls"


def _play(run: _Run, writer: _Writer, calls: Sequence[Call], moment: tuple[int, float], name: str) -> None:
    """Make calls up to a moment, and kill the process there."""
    last, seconds = moment
    for number, call in enumerate(calls[: last + 1]):
        run.where = f"{name}, {_told(number, call, seconds)}"
        writer.call(call, kill=seconds if number == last else None)
    run.launcher.gone(writer.process)


def _rest(run: _Run, count: int) -> tuple[list[Call], list[float]]:
    """The calls that are left when some frames are there, and how long they take."""
    appends = [i for i, call in enumerate(run.calls) if call.op == "append"]
    first = appends[count] if count < len(appends) else appends[-1] + 1
    return run.calls[first:], run.durations[first:]


def _moment(rng: random.Random, durations: Sequence[float], of: range) -> tuple[int, float]:
    return _moment_at(rng.random(), durations, of)


def _moment_at(share: float, durations: Sequence[float], of: range) -> tuple[int, float]:
    """The call, and the seconds after it was sent, at some share of the time that all of these calls take."""
    left = share * sum(durations[i] for i in of)
    for i in of:
        if left < durations[i]:
            return i, left
        left -= durations[i]
    return of[-1], durations[of[-1]]


def _told(number: int, call: Call, seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms after call {number + 1} ({call.op}) was sent"


def _keep(path: Path) -> None:
    """A copy of what a kill left, for the evidence."""
    kept = path.parent / f"left-by-the-kill.{path.suffix.removeprefix('.')}"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(path, kept, symlinks=True)


# -- what is left --------------------------------------------------------------------------------------------------


def _opens(run: _Run, path: Path) -> bool:
    try:
        formats.get(run.case.format).read(path, (0, 0))
    except Refused:
        return False
    return True


def _judge_left(run: _Run, path: Path, writer: _Writer) -> int:
    """Hold what a crash left against what was promised and sent; the number of frames in it."""
    if run.case.format == "otj":
        return _judge_prefix(run, path, writer)
    if not run.born and not writer.promised and not _opens(run, path):
        return 0  # nothing was there to lose
    _judge_json(path)
    marker = _marker(path)
    try:
        reply = formats.get("mrec").read(path, None)
    except Refused as refused:
        what = f"{marker} frames are claimed, {writer.promised} were flushed" if marker is not None else "no nstep"
        difference = Difference(refused.violation.place, "a store that opens", str(refused.violation), what)
        raise _Broken(_damage(marker, writer), f"a reader refuses what is left: {refused}", [difference]) from None
    count: int = reply["nstep"]
    if count < writer.promised:
        text = f"{count} frames are left, {writer.promised} had been appended before a flush that was acknowledged"
        raise _Broken(("MREC-COMMIT-17", "MREC-PROTO-05"), text, [_frames(writer.promised, count, "at least ")])
    if count > writer.sent:
        text = f"nstep is {count}, only {writer.sent} frames had been sent"
        raise _Broken(("MREC-PROTO-07",), text, [_frames(writer.sent, count, "at most ")])
    differences = _differ(run, reply, count)
    if differences:
        first = _first_frame(differences)
        clauses = ("MREC-COMMIT-16",) if first < writer.promised else _damage(count, writer)
        text = f"frame {first} of {count} is not what was sent: {differences[0]}"
        raise _Broken(clauses, text, differences)
    _judge_clean(path, ("MREC-COMMIT-16",), _BEFORE_THE_COMMIT)
    return count


def _damage(marker: int | None, writer: _Writer) -> tuple[str, ...]:
    """The clauses that frames break which are not there: of a commit that was not made, or of one that was."""
    if marker is not None and marker > writer.promised:
        return ("MREC-PROTO-07", "MREC-COMMIT-13")
    return ("MREC-COMMIT-16", "MREC-PROTO-05")


def _judge_json(path: Path) -> None:
    """No ``zarr.json`` is ever a part of one."""
    for file in sorted(path.rglob("zarr.json")):
        try:
            json.loads(file.read_bytes())
        except ValueError as error:
            name = file.relative_to(path).as_posix()
            clauses = ("MREC-COMMIT-14", "MREC-PROTO-02") if name == trace.MARKER else ("MREC-PROTO-02",)
            difference = Difference(name, "a whole JSON document", f"{file.stat().st_size} bytes: {error}")
            raise _Broken(clauses, f"{name} is a part of a document: {error}", [difference]) from None


def _marker(path: Path) -> int | None:
    try:
        found = json.loads((path / trace.MARKER).read_bytes())["attributes"]["nstep"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return found if type(found) is int else None


def _judge_reopened(run: _Run, path: Path, count: int) -> None:
    """What a reopening alone does to the committed frames: nothing."""
    clauses = ("MREC-REOPEN-03",)
    try:
        reply = formats.get("mrec").read(path, None)
    except Refused as refused:
        raise _Broken(clauses, f"a reader refuses it now: {refused}") from None
    if reply["nstep"] != count:
        text = f"nstep is {reply['nstep']} now, {count} frames were committed"
        raise _Broken(clauses, text, [_frames(count, reply["nstep"])])
    differences = _differ(run, reply, count)
    if differences:
        raise _Broken(clauses, f"committed frames are others now: {differences[0]}", differences)


def _judge_whole(run: _Run, path: Path, after: tuple[Any, ...]) -> None:
    """What a close leaves: every frame. ``after`` says how many frames were there before a reopening, the clause that
    is broken where one of these is wrong, and those that are where a later one is."""
    total = len(run.frames)
    before, kept, *tail = after or (0, "")
    later = tuple(tail)
    if run.case.format == "otj":
        reply = formats.get("otj").read(path, None)
        differences = compare({"frames": run.frames}, {"frames": reply["frames"]})
    else:
        try:
            reply = formats.get("mrec").read(path, None)
        except Refused as refused:
            raise _Broken(later, f"a reader refuses what was closed: {refused}") from None
        if reply["nstep"] != total:
            text = f"nstep is {reply['nstep']} after {total} frames and a close"
            clauses = ("MREC-COMMIT-17", *(("MREC-REOPEN-04",) if after else ()))
            raise _Broken(clauses, text, [_frames(total, reply["nstep"])])
        differences = _differ(run, reply, total)
    if differences:
        first = _first_frame(differences)
        text = f"frame {first} is not what was sent: {differences[0]}"
        raise _Broken((kept,) if kept and first < before else later, text, differences)
    if run.case.format == "mrec":
        _judge_clean(path, later)


def _judge_clean(path: Path, clauses: Sequence[str], allowed: frozenset[str] = frozenset()) -> None:
    violations = [found for found in formats.get("mrec").check(path) if found.clause not in allowed]
    if violations:
        shown = [Difference(v.place, "no violation", f"{v.clause}: {v.message}") for v in violations[:20]]
        raise _Broken(clauses, f"the checker finds {violations[0]}", shown)


def _judge_prefix(run: _Run, path: Path, writer: _Writer) -> int:
    """A file is at any moment the beginning of the finished one."""
    left = path.read_bytes() if path.is_file() else b""
    wrong = next((i for i, (a, b) in enumerate(zip(left, run.finished, strict=False)) if a != b), len(run.finished))
    if len(left) > wrong:
        there = left[wrong : wrong + 8].hex(" ")
        difference = Difference(f"byte {wrong}", run.finished[wrong : wrong + 8].hex(" ") or "the end", there)
        raise _Broken(
            ("OTJ-TAIL-08",), f"what is left is no beginning of the finished file: {difference}", [difference]
        )
    try:
        count = len(formats.get("otj").read(path, None)["frames"])
    except Refused:
        count = 0
    if count < writer.promised:
        text = (
            f"{count} whole frames are left, {writer.promised} had been appended before a flush that was acknowledged"
        )
        raise _Broken(("OTJ-TAIL-08",), text, [_frames(writer.promised, count, "at least ")])
    return count


def _differ(run: _Run, reply: Mapping[str, Any], count: int) -> list[Difference]:
    return compare({"format": "mrec", "nstep": count, "frames": run.frames[:count]}, reply)


def _first_frame(differences: Sequence[Difference]) -> int:
    numbers = [int(found[1]) for d in differences if (found := _FRAME.search(d.path))]
    return min(numbers, default=0)


def _frames(expected: int, actual: int, word: str = "") -> Difference:
    return Difference("nstep", f"{word}{expected}", str(actual))
