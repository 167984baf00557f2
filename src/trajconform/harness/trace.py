"""What a writer asks of the system, in order: its calls recorded by ``strace``, and the order held to the clauses.

What survives a power cut cannot be seen from what a killed process leaves; whether everything was synced in time can.
The model is what POSIX promises and no more: content is durable once the file is synced, a name once its folder is.
Writes through shared memory maps do not show in system calls and are not judged.
"""

from __future__ import annotations

import functools
import itertools
import json
import posixpath
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_WRITES = (
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "ftruncate",
    "fallocate",
    "sendfile",
    "copy_file_range",
)
_OPENS = ("open", "openat", "openat2", "creat")
_MOVES = ("rename", "renameat", "renameat2", "link", "linkat")
_REMOVALS = ("unlink", "unlinkat", "rmdir")
_FOLDERS = ("mkdir", "mkdirat")
_SYNCS = ("fsync", "fdatasync", "sync", "syncfs")
_CALLS = (*_OPENS, *_WRITES, "truncate", *_MOVES, *_REMOVALS, *_FOLDERS, *_SYNCS)

_CHANGES = ("create", "truncate", "write", "move", "link")

MARKER = "trajectory/zarr.json"
"""The file whose replacement is the commit, relative to the record."""


@dataclass(frozen=True)
class Period:
    """The time in which a driver had one call open, as time stamps of the system's clock."""

    op: str
    sent: float
    answered: float
    elided: frozenset[str] = frozenset()
    """What `elided` found in the record before the call."""


def elided(record: Path) -> frozenset[str]:
    """Groups below ``trajectory`` that spare their arrays: a block with both markers, ``box`` with the attribute cell."""
    found = set()
    for path in sorted((record / "trajectory").glob("*/zarr.json")):
        document = json.loads(path.read_text("utf-8"))
        attributes = document.get("attributes") or {} if isinstance(document, dict) else {}
        name = path.parent.name
        if "vectors" in attributes if name == "box" else {"uniform_rows", "dense_updates"} <= set(attributes):
            found.add(name)
    return frozenset(found)


@dataclass(frozen=True)
class Finding:
    """One breach: the clauses that it breaks, and what was done."""

    clauses: tuple[str, ...]
    place: str
    expected: str
    actual: str


@dataclass(frozen=True)
class _Act:
    """One thing done to the files of a record. ``start`` and ``end`` are lines of the log: calls of two threads may
    overlap."""

    kind: str
    """``create`` (a new name), ``truncate`` or ``write`` (content), ``move``, ``remove``, ``folder``, ``sync``,
    ``sync all``."""
    path: str
    target: str
    start: int
    end: int
    at: float
    durable: bool = False
    """Content is synced as it is written."""


# -- recording -----------------------------------------------------------------------------------------------------


@functools.cache
def missing() -> str:
    """Why nothing can be recorded here, or nothing when it can."""
    program = shutil.which("strace")
    if program is None:
        return "strace, which records what a writer asks of the system, is not there"
    try:
        tried = subprocess.run([*command(Path("/dev/null")), "true"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return f"strace does not run here: {error}"
    if tried.returncode:
        return f"strace cannot record here: {(tried.stderr.strip().splitlines() or ['no reason given'])[-1]}"
    return ""


def command(log: Path) -> list[str]:
    """What to put before a program so that its file operations are written to ``log``."""
    calls = ",".join(f"?{name}" for name in _CALLS)
    return [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-y",
        "-ttt",
        "-s",
        "0",
        "-qq",
        "-e",
        f"trace={calls}",
        "-o",
        str(log),
        "--",
    ]


_LINE = re.compile(r"^(\d+) +(\d+\.\d+) (.*)$")
_CALL = re.compile(r"^(\w+)\((.*)\)\s+= (\S+)(.*)$", re.DOTALL)
_RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)")


def acts(log: str, folder: str) -> list[_Act]:
    """What a log of strace says was done to files below ``folder`` (absolute, without links)."""
    found: list[_Act] = []
    waiting: dict[str, tuple[int, float, str]] = {}
    durable: set[str] = set()
    for number, line in enumerate(log.splitlines()):
        matched = _LINE.match(line)
        if not matched:
            continue
        thread, at, text = matched[1], float(matched[2]), matched[3]
        start = number
        if text.endswith("<unfinished ...>"):
            waiting[thread] = (number, at, text.removesuffix("<unfinished ...>").rstrip())
            continue
        resumed = _RESUMED.match(text)
        if resumed:
            if thread not in waiting:
                continue
            start, at, head = waiting.pop(thread)
            text = head + resumed[2]
        called = _CALL.match(text)
        if called and not called[3].startswith("-") and called[3] != "?":
            for kind, path, target in _meant(called[1], _arguments(called[2]), called[3] + called[4], durable):
                if kind == "sync all" or any(p.startswith(folder + "/") or p == folder for p in (path, target)):
                    found.append(_Act(kind, path, target, start, number, at, path in durable))
    return found


def _meant(name: str, given: list[str], result: str, durable: set[str]) -> Iterator[tuple[str, str, str]]:
    if name in _OPENS:
        path = _described(result) or (_at(given[0], given[1]) if name.startswith("openat") else _text(given[0]))
        flags = "O_WRONLY|O_CREAT|O_TRUNC" if name == "creat" else " ".join(given)
        if "O_SYNC" in flags or "O_DSYNC" in flags:
            durable.add(path)
        if "O_CREAT" in flags:
            yield "create", path, ""
        if "O_TRUNC" in flags:
            yield "truncate", path, ""
    elif name in _WRITES:
        place = given[2] if name == "copy_file_range" else given[0]
        path = _described(place)
        if path.startswith("/"):
            yield "write", path, ""
    elif name == "truncate":
        yield "write", _text(given[0]), ""
    elif name in _MOVES:
        if name in ("rename", "link"):
            source, target = _text(given[0]), _text(given[1])
        else:
            source, target = _at(given[0], given[1]), _at(given[2], given[3])
        yield ("link" if name.startswith("link") else "move"), source, target
    elif name in _REMOVALS:
        yield "remove", (_at(given[0], given[1]) if name == "unlinkat" else _text(given[0])), ""
    elif name in _FOLDERS:
        yield "folder", (_at(given[0], given[1]) if name == "mkdirat" else _text(given[0])), ""
    elif name in ("fsync", "fdatasync"):
        yield "sync", _described(given[0]), ""
    else:
        yield "sync all", "", ""


def _arguments(text: str) -> list[str]:
    """Arguments of a call as strace prints them, split at the commas that part them."""
    out: list[str] = []
    start = depth = 0
    quoted = False
    skip = False
    for i, c in enumerate(text):
        if skip:
            skip = False
        elif quoted:
            skip, quoted = c == "\\", c != '"'
        elif c == '"':
            quoted = True
        elif c in "<[{(":
            depth += 1
        elif c in ">]})":
            depth -= 1
        elif c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    return [*out, text[start:].strip()]


def _described(descriptor: str) -> str:
    """The path that strace prints with a file descriptor."""
    opened, closed = descriptor.find("<"), descriptor.rfind(">")
    return _unescaped(descriptor[opened + 1 : closed]) if 0 <= opened < closed else ""


def _text(quoted: str) -> str:
    return posixpath.normpath(_unescaped(quoted.strip('"')))


def _at(folder: str, quoted: str) -> str:
    return posixpath.normpath(posixpath.join(_described(folder), _unescaped(quoted.strip('"'))))


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text

    def one(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] == "x":
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8))
        return {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f"}.get(code, code)

    return _ESCAPE.sub(one, text).encode("latin-1", "replace").decode("utf-8", "replace")


# -- judging -------------------------------------------------------------------------------------------------------


@dataclass
class _File:
    """Content, counted in versions."""

    version: int = 0
    synced: int = 0


@dataclass
class _Folder:
    """Names, each with the version of the folder in which it came."""

    version: int = 0
    synced: int = 0
    names: dict[str, int] = field(default_factory=dict)


class _Disk:
    """What is durable, by what was done so far."""

    def __init__(self, top: str) -> None:
        self.files: dict[str, _File] = {}
        self.folders: dict[str, _Folder] = {top: _Folder()}

    def _name(self, path: str) -> None:
        folder = self.folders.setdefault(posixpath.dirname(path), _Folder())
        folder.version += 1
        folder.names[posixpath.basename(path)] = folder.version

    def _unname(self, path: str) -> None:
        folder = self.folders.get(posixpath.dirname(path))
        if folder is not None:
            folder.names.pop(posixpath.basename(path), None)

    def apply(self, act: _Act) -> None:
        """What has been done, but for a sync."""
        path = act.path
        if act.kind in ("create", "truncate", "write"):
            if path not in self.files:
                self.files[path] = _File()
                self._name(path)
            if act.kind != "create":
                file = self.files[path]
                file.version += 1
                file.synced = file.version if act.durable else file.synced
        elif act.kind == "folder":
            self.folders.setdefault(path, _Folder())
            self._name(path)
        elif act.kind == "remove":
            self.files.pop(path, None)
            self._unname(path)
        elif act.kind == "link":
            self.files[act.target] = self.files.setdefault(path, _File(1))
            self._name(act.target)
        elif path in self.folders:
            for table in (self.files, self.folders):
                for name in [n for n in table if n == path or n.startswith(path + "/")]:
                    table[act.target + name[len(path) :]] = table.pop(name)  # type: ignore[assignment]
            self._unname(path)
            self._name(act.target)
        elif act.kind == "move":
            self.files[act.target] = self.files.pop(path, _File(1))
            self._unname(path)
            self._name(act.target)

    def versions(self, act: _Act) -> list[tuple[_File | _Folder, int]]:
        """What a sync that begins now will make durable."""
        if act.kind == "sync all":
            everything: Iterable[_File | _Folder] = itertools.chain(self.files.values(), self.folders.values())
            return [(one, one.version) for one in everything]
        one = self.files.get(act.path) or self.folders.get(act.path)
        return [(one, one.version)] if one else []

    def unsynced(self, but: str = "") -> list[str]:
        """What a power cut may lose now: content of files, and names in folders."""
        lost = [name for name, file in self.files.items() if file.version > file.synced and name != but]
        for path, folder in self.folders.items():
            young = [n for n, version in folder.names.items() if version > folder.synced]
            lost += [f"{path}/ (the name {n} in it)" for n in young if f"{path}/{n}" != but]
        return lost


def judge_order(log: str, record: Path, periods: Sequence[Period]) -> tuple[list[Finding], int]:
    """Breaches in the order of what was done to a record during each call, and the number of things done."""
    top = record.resolve().parent
    done = acts(log, str(top))
    disk = _Disk(str(top))
    findings: list[Finding] = []
    committed: frozenset[str] = frozenset()
    for period in periods:
        mine = [act for act in done if period.sent <= act.at <= period.answered]
        call = _Call(disk, period.op, str(top / record.name), mine, period.elided, committed)
        findings += call.judge()
        if call.commits:
            committed = frozenset(name for name, file in disk.files.items() if file.version)
    findings += _sections(str(top / record.name), done)
    return findings, len(done)


def _sections(record: str, done: Sequence[_Act]) -> Iterator[Finding]:
    """A section of the record that was there before the group ``meta``."""
    first = f"{record}/meta/zarr.json"
    for act in done:
        path = act.target or act.path
        if path == first and act.kind != "remove":
            return
        if act.kind in _CHANGES and posixpath.basename(path) == "zarr.json" and path.count("/") > record.count("/") + 1:
            node = posixpath.dirname(path).removeprefix(f"{record}/")
            yield Finding(("MREC-RECORD-12",), node, "written after the group meta", "written before it")
            return


class _Call:
    """What was done during one call of a writer."""

    def __init__(
        self,
        disk: _Disk,
        op: str,
        record: str,
        done: list[_Act],
        elided: frozenset[str],
        committed: frozenset[str] = frozenset(),
    ) -> None:
        self.disk, self.op, self.record, self.done, self.elided = disk, op, record, done, elided
        self.committed = committed
        """Files with content when the last commit ended."""
        self.marker = f"{record}/{MARKER}"
        self.commits = [a for a in done if op != "create" and op != "reopen" and self._replaces(a, self.marker)]
        self.before = set(disk.files)
        """Files that were there when the call began."""

    def _replaces(self, act: _Act, path: str) -> bool:
        return (act.kind in ("move", "link") and act.target == path) or (act.kind == "truncate" and act.path == path)

    def _shown(self, path: str) -> str:
        return path.removeprefix(self.record + "/")

    def judge(self) -> list[Finding]:
        """The breaches, in the order in which they happened."""
        found = [*self._in_place(), *self._emptied(), *self._after_the_commit()]
        found += [*self._chunks_late(), *self._migrations()]
        events = sorted([(a.start, 0, a) for a in self.done] + [(a.end, 1, a) for a in self.done], key=lambda e: e[:2])
        begun: dict[int, list[tuple[_File | _Folder, int]]] = {}
        for _, phase, act in events:
            if act.kind.startswith("sync"):
                if phase == 0:
                    begun[id(act)] = self.disk.versions(act)
                else:
                    for one, version in begun[id(act)]:
                        one.synced = max(one.synced, version)
            elif phase == 0 and act in self.commits:
                found += self._unsynced_at_commit(act)
            elif phase == 1:
                self.disk.apply(act)
        if self.op in ("flush", "close"):
            lost = self.disk.unsynced()
            if lost:
                clauses: tuple[str, ...] = ("MREC-PROTO-06",)
                if any(self.marker == name or name.startswith(f"{self.record}/trajectory/ (") for name in lost):
                    clauses = ("MREC-PROTO-04", "MREC-PROTO-06")
                found.append(self._finding(clauses, lost, f"when {self.op} was answered"))
        return found

    def _finding(self, clauses: tuple[str, ...], lost: Sequence[str], when: str) -> Finding:
        names = ", ".join(map(self._shown, lost[:4])) + (f" and {len(lost) - 4} more" if len(lost) > 4 else "")
        return Finding(clauses, self.op, f"everything synced {when}", f"not synced: {names}")

    def _unsynced_at_commit(self, act: _Act) -> list[Finding]:
        lost = [name for name in self.disk.unsynced(but=act.path) if name.startswith(f"{self.record}/")]
        # Where the name of the record itself is lost, nstep goes with it and claims nothing: that is the flush's to see to.
        if not lost:
            return []
        clauses = ("MREC-PROTO-04", "MREC-PROTO-07") if self.op in ("flush", "close") else ("MREC-PROTO-07",)
        return [self._finding(clauses, lost, f"before {MARKER} is replaced")]

    def _in_place(self) -> Iterator[Finding]:
        """A ``zarr.json`` that was there and was written to, emptied or removed instead of replaced."""
        told: set[str] = set()
        fresh: set[str] = set()
        for act in self.done:
            if act.kind in ("move", "link"):
                fresh.add(act.target)
            path = act.path
            harmful = act.kind in ("truncate", "write", "remove") and path.endswith("/zarr.json")
            if harmful and path in self.before and path not in fresh and path not in told:
                told.add(path)
                clauses = ("MREC-COMMIT-14", "MREC-PROTO-02") if path == self.marker else ("MREC-PROTO-02",)
                how = {"truncate": "emptied and written anew", "write": "written in place", "remove": "removed first"}
                yield Finding(clauses, self._shown(path), "the new one written beside it, renamed over", how[act.kind])

    def _emptied(self) -> Iterator[Finding]:
        """A chunk of a commit that is emptied or removed and then written anew: a crash in between takes frames that
        were committed. (A chunk that goes for good belongs to an array that goes, and is none of this.)"""
        gone: dict[str, str] = {}
        fresh: set[str] = set()
        for act in self.done:
            path = act.target or act.path
            if path in self.committed and path not in fresh and act.kind in ("truncate", "remove"):
                gone.setdefault(path, "emptied" if act.kind == "truncate" else "removed")
            chunk = path.startswith(f"{self.record}/trajectory/") and not path.endswith("/zarr.json")
            if chunk and path in gone and act.kind in _CHANGES:
                expected = "added to, or the new one written beside it and renamed over"
                clauses = ("MREC-COMMIT-16", "MREC-PROTO-05")
                yield Finding(clauses, self._shown(path), expected, f"{gone[path]}, then written anew")
                return
            if act.kind in ("move", "link"):
                fresh.add(path)

    def _after_the_commit(self) -> Iterator[Finding]:
        """Content that is replaced after the commit, which is the last thing that a commit does."""
        if not self.commits:
            return
        commit = self.commits[0]
        if len(self.commits) > 1:
            count = f"{len(self.commits)} of them"
            yield Finding(("MREC-PROTO-03",), self.op, f"one replacement of {MARKER}", count)
            return
        for act in self.done:
            path = act.target or act.path
            late = act.end > commit.start and act is not commit and path != self.marker
            if late and path.startswith(f"{self.record}/") and act.kind in _CHANGES:
                clauses = ("MREC-PROTO-03", *(("MREC-COMMIT-13",) if self._array(path) else ()))
                yield Finding(
                    clauses, self._shown(path), f"in place before {MARKER} is replaced", f"{act.kind} after it"
                )
                return

    def _chunks_late(self) -> Iterator[Finding]:
        """Chunks written after the ``zarr.json`` of their array."""
        replaced: dict[str, _Act] = {}
        to_be = {act.path for act in self.done if act.target.endswith("/zarr.json")}
        for act in self.done:
            path = act.target or act.path
            if path.endswith("/zarr.json"):
                replaced[posixpath.dirname(path)] = act
            elif act.kind in _CHANGES and path not in to_be:
                array = self._array(path)
                if array in replaced and act.end > replaced[array].start:
                    what = f"{act.kind} after {self._shown(array)}/zarr.json"
                    yield Finding(("MREC-PROTO-01",), self._shown(path), "written before the array's zarr.json", what)
                    return

    def _migrations(self) -> Iterator[Finding]:
        """Attributes that give way to arrays: the index of a block lands before its columns, ``vectors`` last of the
        cell. An array has landed when its ``zarr.json`` is in place."""
        for name in sorted(self.elided):
            group = f"{self.record}/trajectory/{name}"
            landed: dict[str, _Act] = {}
            for act in self.done:
                path = act.target or act.path
                node = posixpath.dirname(path)
                if act.kind in _CHANGES and path.endswith("/zarr.json") and posixpath.dirname(node) == group:
                    landed[posixpath.basename(node)] = act
            if name == "box":
                last, clause = landed.pop("vectors", None), "MREC-CELL-30"
                late = [array for array, act in landed.items() if last is not None and act.end > last.start]
                expected = "placed before box/vectors"
            else:
                index = [landed.pop(array, None) for array in ("step_index", "offset")]
                starts = [act.end for act in index if act is not None]
                landed.pop("_validity", None)
                late = [array for array, act in landed.items() if starts and act.start < max(starts)]
                clause, expected = "MREC-REGULAR-20", "placed after step_index and offset"
            for array in late:
                actual = "placed after it" if name == "box" else "placed before one of them"
                yield Finding((clause,), f"trajectory/{name}/{array}", expected, actual)

    def _array(self, path: str) -> str:
        """The folder of the array that a file belongs to, by what stands on disk in the end; empty where none."""
        folder = posixpath.dirname(path)
        while folder.startswith(f"{self.record}/"):
            try:
                document = json.loads(Path(folder, "zarr.json").read_text("utf-8"))
            except (OSError, ValueError):
                document = None
            if isinstance(document, dict):
                return folder if document.get("node_type") == "array" else ""
            folder = posixpath.dirname(folder)
        return ""
