"""Judge one case: drive the implementation, hold what it did against what the case expects.

The input is a copy of the case's own, the driver is anything with ``call(op, params)``, and the outcome is a verdict
with everything somebody needs to understand it. `DriverFault` passes through: the runner makes an ERROR of it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from trajconform.harness import formats
from trajconform.harness.crash import CrashPlan, Launcher, judge_crash
from trajconform.harness.protocol import Answer, DriverFault
from trajconform.harness.verdicts import Exchange, Verdict
from trajconform.model.errors import Refused, TrajconformError
from trajconform.model.reply import Difference, compare
from trajconform.vectors.cases import Case, expected_reply, golden_bytes, input_files, script_calls, write_input

_PRECISIONS = frozenset(("single", "double"))
_MOST_BYTES = 256 * 1024 * 1024
"""The most that is read of one file which a driver has left."""
_SHOWN_VIOLATIONS = 20


class Driver(Protocol):
    """What a case needs of a driver; `ProcessDriver` and `InProcessDriver` have it."""

    def call(self, op: str, params: Mapping[str, Any]) -> Answer:
        """One request. Raises `DriverFault` where no answer comes."""


@dataclass(frozen=True)
class Outcome:
    """Verdict on a case and why; `call` is the index of the exchange that decided it."""

    verdict: Verdict
    message: str = ""
    differences: tuple[Difference, ...] = ()
    expected: Any = None
    call: int | None = None
    note: str = ""
    blames: tuple[str, ...] = ()
    """The clauses of the case that are broken, where it can tell; empty: all that the case judges."""


@dataclass
class Bench:
    """A case at work: its driver, its folder, what was said so far, and what the driver can do.

    ``launcher`` and ``plan`` are for crash cases: processes of their own, and how often they are killed.
    """

    driver: Driver
    folder: Path
    features: frozenset[str]
    exchanges: list[Exchange] = field(default_factory=list)
    launcher: Launcher | None = None
    plan: CrashPlan = field(default_factory=CrashPlan)

    def ask(self, op: str, params: Mapping[str, Any]) -> Answer:
        """Send a request and write both sides down."""
        request = {"op": op, **params}
        try:
            answer = self.driver.call(op, params)
        except DriverFault as fault:
            self.exchanges.append(Exchange(request, fault.reply))
            raise
        self.exchanges.append(Exchange(request, answer.wire))
        if answer.kind == "error":
            raise DriverFault("error", f"reported an error of its own in {op!r}: {answer.reason}", reply=answer.wire)
        return answer


def skip_reason(case: Case, claims: Mapping[str, Sequence[str]], features: frozenset[str]) -> str:
    """Why a driver is not asked, or nothing when it is."""
    if case.role == "store":
        needed = {f"check:{case.format}"}
    else:
        claim = "read" if case.role == "reader" else "write"
        if claim not in claims.get(case.format, ()):
            return f"the driver does not claim to {claim} {case.format}"
        needed = set()
    needed.update(case.needs)
    if case.read_frames is not None:
        needed.add("range")
    for call in case.script:
        if "reopen" in call:
            needed.add("reopen")
        if "system" in (call.get("create") or {}):
            needed.add("system")
    lacking = sorted(name for name in needed if not has_feature(name, features))
    return f"the driver does not have the feature {', '.join(lacking)}" if lacking else ""


def has_feature(name: str, features: frozenset[str]) -> bool:
    """Whether a driver has a feature. One that names neither precision of otj has both."""
    return name in features or (name in _PRECISIONS and not features & _PRECISIONS)


def judge(case: Case, bench: Bench) -> Outcome:
    """Run one case. `DriverFault` where the driver gave no answer."""
    if case.role == "writer":
        return _judge_writer(case, bench)
    if case.role == "crash":
        return judge_crash(case, bench)
    files = input_files(case)
    before = snapshot_of(files)
    path = write_input(case, files, bench.folder)
    outcome = _judge_store(case, bench, path) if case.role == "store" else _judge_reader(case, bench, path)
    changes = [*describe_changes(before, snapshot(path))]
    if changes:
        differences = tuple(Difference(name or path.name, "untouched", what) for name, what in changes)
        names = ", ".join(f"{name or path.name} {what}" for name, what in changes[:3])
        return Outcome(Verdict.FAIL, f"reading changed the input: {names}", differences, outcome.expected, 0)
    return outcome


def _judge_reader(case: Case, bench: Bench, path: Path) -> Outcome:
    expect: Any = case.expect
    for feature, instead in case.lacking.items():
        if not has_feature(feature, bench.features):
            expect = instead
    params: dict[str, Any] = {"format": case.format, "path": str(path)}
    if case.read_frames is not None:
        params["frames"] = list(case.read_frames)
    answer = bench.ask("read", params)
    if answer.kind == "unsupported":
        return _unsupported(answer)
    if expect == "informative":
        note = f"refused: {answer.reason}" if answer.kind == "refused" else f"accepted: {_summary(answer.body)}"
        return Outcome(Verdict.INFO, note=note)
    if expect == "refused":
        if answer.kind == "refused":
            return Outcome(Verdict.PASS, note=answer.reason)
        said = f"accepted what a reader refuses and handed back {_summary(answer.body)}"
        return Outcome(Verdict.FAIL, said, expected={"refused": True}, call=0)
    expected = _expected(case, expect)
    if answer.kind == "refused":
        return Outcome(Verdict.FAIL, f"refused what a reader accepts: {answer.reason}", expected=expected, call=0)
    if isinstance(expect, Mapping) and "may_follow" in expect:
        expected = _with_followers(case, expect, expected, answer.body)
    differences = tuple(compare(expected, answer.body, case.compare, case.free))
    if not differences:
        return Outcome(Verdict.PASS)
    return Outcome(Verdict.FAIL, _count(differences), differences, expected, 0)


def _expected(case: Case, expect: Any) -> dict[str, Any]:
    reply = expected_reply(case, expect)
    if reply is None:
        raise TrajconformError(f"{case.path}: {case.id}: the expectation {expect!r} is none for a {case.role}")
    return reply


def _with_followers(
    case: Case, expect: Mapping[str, Any], expected: dict[str, Any], actual: Mapping[str, Any]
) -> dict[str, Any]:
    """The expected reply, with those of the optional frames that the reader handed back in order."""
    whole = _expected(case, "accepted")["frames"]
    optional = [whole[i] for i in expect["may_follow"]]
    frames = list(expected["frames"])
    for frame in actual["frames"][len(frames) :]:
        while optional and compare(optional[0], frame):
            optional.pop(0)
        if not optional:
            break
        frames.append(optional.pop(0))
    return {**expected, "frames": frames}


def _judge_store(case: Case, bench: Bench, path: Path) -> Outcome:
    answer = bench.ask("check", {"format": case.format, "path": str(path)})
    if answer.kind == "unsupported":
        return _unsupported(answer)
    wanted = set() if case.expect == "clean" else set(case.expect["violations"])
    expected = {"violations": sorted(wanted)}
    if answer.kind == "refused":
        text = f"refused to check instead of reporting violations: {answer.reason}"
        return Outcome(Verdict.FAIL, text, expected=expected, call=0)
    violations = answer.body["violations"]
    named = {violation["clause"] for violation in violations if "clause" in violation}
    nameless = sum("clause" not in violation for violation in violations)
    differences = [Difference(clause, "reported", "not reported") for clause in sorted(wanted - named)]
    if nameless and wanted:
        differences = []  # a validator that does not name clauses has said no, which is all that can be asked of it
    differences += [
        Difference(str(v.get("path", ".")), "no violation", f"{v.get('clause', 'a violation')}: {v['message']}")
        for v in violations
        if v.get("clause") not in wanted and ("clause" in v or not wanted)
    ]
    if not differences:
        return Outcome(Verdict.PASS)
    missing = f"does not report {', '.join(sorted(wanted - named))}" if wanted - named and not nameless else ""
    extra = f"reports {', '.join(sorted(named - wanted)) or 'a violation'} too" if len(named - wanted) else ""
    text = "; ".join(part for part in (missing, extra) if part) or "reports a violation where there is none"
    return Outcome(Verdict.FAIL, text, tuple(differences), expected, 0)


def _judge_writer(case: Case, bench: Bench) -> Outcome:
    folder = bench.folder / "written"
    folder.mkdir()
    path = folder / f"out.{case.format}"
    opened = False
    created = bool(case.input)
    if case.input:
        write_input(case, input_files(case), folder).rename(path)
    last = ""
    markers = [_marker(path)]
    try:
        for number, call in enumerate(script_calls(case)):
            if call.op == "uncommit":
                if not _uncommit(path, markers):
                    return Outcome(Verdict.FAIL, "there is no earlier commit marker to go back to", call=number)
                continue
            params = dict(call.params)
            if call.op in ("create", "reopen"):
                params = {"format": case.format, "path": str(path), **params}
            answer = bench.ask(call.op, params)
            if answer.kind == "unsupported":
                return _unsupported(answer)
            name = f"call {number + 1} ({call.op})"
            if call.refused and answer.kind == "ok":
                opened = opened or call.op in ("create", "reopen")
                text = f"{name} was accepted, though a writer refuses it"
                return Outcome(Verdict.FAIL, text, expected={"refused": True}, call=number)
            if not call.refused and answer.kind == "refused":
                text = f"{name} was refused: {answer.reason}"
                return Outcome(Verdict.FAIL, text, expected={"ok": {}}, call=number)
            if answer.kind == "ok":
                opened = call.op != "close" and (opened or call.op in ("create", "reopen"))
                created = created or call.op == "create"
                last = call.op
                if last in ("flush", "close") and markers[-1] != (marker := _marker(path)):
                    markers.append(marker)
        if not created:
            return Outcome(Verdict.PASS)
        return _judge_written(case, path, committed=last in ("flush", "close"))
    finally:
        if opened:
            _close_quietly(bench.driver)


def _marker(path: Path) -> bytes | None:
    """The file whose replacement is the commit of an mrec store, as it stands there."""
    try:
        return (path / "trajectory" / "zarr.json").read_bytes()
    except OSError:
        return None


def _uncommit(path: Path, markers: list[bytes | None]) -> bool:
    """Take back the last commit as far as its last write goes: all that it landed before stays where it is."""
    if len(markers) < 2 or (before := markers[-2]) is None:
        return False
    markers.pop()
    (path / "trajectory" / "zarr.json").write_bytes(before)
    return True


def _judge_written(case: Case, path: Path, *, committed: bool) -> Outcome:
    """Hold what a writer left on disk against the case: bytes, checker, frames read back, layout."""
    expect: Mapping[str, Any] = case.expect if isinstance(case.expect, Mapping) else {}
    if not path.exists():
        return Outcome(Verdict.FAIL, f"the writer left nothing at {path.name}", expected=dict(expect))
    if path.is_symlink() or not (path.is_file() or path.is_dir()):
        message = f"the writer left a link, pipe or device at {path.name}, neither a file nor a folder"
        return Outcome(Verdict.FAIL, message, expected=dict(expect))
    kind = formats.get(case.format)
    found: list[Difference] = []
    parts: list[str] = []
    steps: list[tuple[str, Callable[[], Iterator[Difference]]]] = []
    if "bytes" in expect:
        steps.append(("its bytes", lambda: _byte_differences(case, expect, path)))
    if committed:
        steps.append(("the checker", lambda: _violations(kind, path, set(expect.get("violations", ())))))
    expected: Any = dict(expect)
    if "frames" in expect:
        expected = _expected(case, expect)
        steps.append(("reading it back", lambda: _read_back(kind, case, path, expected)))
    if expect.get("layout"):
        steps.append(("its layout", lambda: kind.layout(path, expect["layout"])))
    for name, step in steps:
        differences = [*step()]
        if differences:
            parts.append(f"{name}: {_count(differences)}")
            found += differences
    if not found:
        return Outcome(Verdict.PASS)
    return Outcome(Verdict.FAIL, "what was written is not as it should be; " + "; ".join(parts), tuple(found), expected)


def _byte_differences(case: Case, expect: Mapping[str, Any], path: Path) -> Iterator[Difference]:
    wanted = golden_bytes(case.root, case.format, expect["bytes"])
    if "first_frames" in expect:
        wanted = formats.get(case.format).first_frames(wanted, expect["first_frames"])
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
        yield Difference("file", f"a file of {len(wanted)} bytes", f"no plain file, or one of {found.st_size} bytes")
        return
    actual = path.read_bytes()
    free = [range(*pair) for pair in expect.get("free", ())]
    if len(wanted) != len(actual):
        yield Difference("size", f"{len(wanted)} bytes", f"{len(actual)} bytes")
    wrong = [
        at for at, (x, y) in enumerate(zip(wanted, actual, strict=False)) if x != y and not any(at in r for r in free)
    ]
    if wrong:
        start = wrong[0] & ~7
        left, right = wanted[start : start + 16], actual[start : start + 16]
        size = min(len(left), len(right))
        yield Difference(
            f"byte {wrong[0]}",
            f"{left.hex(' ')} from byte {start}",
            right.hex(" "),
            f"{len(wrong)} of {len(wanted)} bytes differ",
            left[:size].hex(),
            right[:size].hex(),
        )


def _violations(kind: formats.Format, path: Path, wanted: set[str]) -> Iterator[Difference]:
    violations = kind.check(path)
    for violation in violations[:_SHOWN_VIOLATIONS]:
        if violation.clause not in wanted:
            yield Difference(violation.place, "no violation", f"{violation.clause}: {violation.message}")
    for clause in sorted(wanted - {violation.clause for violation in violations}):
        yield Difference(clause, "reported by the checker", "not reported")


def _read_back(kind: formats.Format, case: Case, path: Path, expected: Mapping[str, Any]) -> Iterator[Difference]:
    try:
        actual = kind.read(path, None)
    except Refused as refused:
        yield Difference(refused.violation.place, "a readable store", f"refused: {refused}")
        return
    yield from compare(expected, actual, case.compare, case.free)


def _close_quietly(driver: Driver) -> None:
    """End a writer that a case leaves open. What comes of it is no part of the case."""
    try:
        driver.call("close", {})
    except DriverFault:
        return


def _unsupported(answer: Answer) -> Outcome:
    return Outcome(Verdict.SKIP, f"the driver does not support it: {answer.reason}")


def _summary(reply: Mapping[str, Any]) -> str:
    frames = len(reply["frames"])
    return f"{frames} frame{'' if frames == 1 else 's'}"


def _count(differences: Sequence[Difference]) -> str:
    first = differences[0]
    more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
    return f"{first}{more}"


def snapshot_of(files: Mapping[str, bytes]) -> dict[str, str]:
    """What `snapshot` finds once these files have been written."""
    found = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    for name in files:
        parts = name.split("/")[:-1]
        found.update(("/".join(parts[:depth]), "folder") for depth in range(1, len(parts) + 1))
    return found


def snapshot(path: Path) -> dict[str, str]:
    """What a file or a folder holds: relative name (``""`` for a file) -> kind and digest of every entry."""
    found: dict[str, str] = {}
    if path.is_dir() and not path.is_symlink():
        _scan(str(path), "", found)
    elif os.path.lexists(path):
        found[""] = _entry(str(path), path.is_symlink(), False)
    return found


def _scan(folder: str, prefix: str, found: dict[str, str]) -> None:
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        found[prefix.rstrip("/")] = f"unreadable: {error.strerror}"
        return
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        found[prefix + entry.name] = _entry(entry.path, entry.is_symlink(), is_folder)
        if is_folder:
            _scan(entry.path, f"{prefix}{entry.name}/", found)


def _entry(path: str, is_link: bool, is_folder: bool) -> str:
    try:
        if is_link:
            return f"link {os.readlink(path)}"  # noqa: PTH115 - hot path
        if is_folder:
            return "folder"
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            return "no file: a pipe, socket or device"  # to open one may wait for ever
        if found.st_size > _MOST_BYTES:
            return f"{found.st_size} bytes, more than is looked at"
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"


def describe_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names that were removed, added or modified between two snapshots."""
    for name in sorted(before.keys() | after.keys()):
        if name not in after or (after[name].startswith("unreadable") and before[name] != after[name]):
            yield name, "was removed" if name not in after else "can no longer be read"
        elif name not in before:
            yield name, "was added"
        elif before[name] != after[name]:
            yield name, "was modified"
