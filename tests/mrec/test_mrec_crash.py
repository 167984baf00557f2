"""Crashes of the bundled writer: every prefix of its file operations, with unsynced work kept, dropped or torn.

The file system is modelled after what POSIX promises and no more: what is written to a file is durable once the file
is synced, and a new, renamed or removed name is durable once its folder is synced.

- *kept*: everything the system was given is there: what a killed process leaves.
- *dropped*: only what was made durable is there: names as their folders were last synced, content as last synced.
- *torn*: all names are there, but content that was not synced is cut in half: names that overtake content.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from trajconform.model.arrays import Array, strings
from trajconform.model.errors import Refused
from trajconform.model.reply import compare, mrec_reply
from trajconform.model.trajectory import Block, Cell, Column, Frame, MetaValue
from trajconform.mrec.reader import open_mrec
from trajconform.mrec.writer import MrecWriter, WriterOptions
from trajconform.mrec.zarr_write import RealFiles

MODES = ("kept", "dropped", "torn")


@dataclass
class Inode:
    """A file's content, and the part of it that is durable."""

    content: bytes
    durable: bytes = b""


@dataclass
class Disk:
    """Names and contents, as the system sees them and as they are durable. Paths are relative to the record's parent."""

    names: dict[str, Inode] = field(default_factory=dict)
    durable_names: dict[str, dict[str, Inode]] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: {"."})
    durable_folders: set[str] = field(default_factory=lambda: {"."})

    def apply(self, operation: tuple[str, ...] | tuple[str, str, bytes]) -> None:
        kind, path = str(operation[0]), str(operation[1])
        if kind == "write":
            content = operation[2]
            assert isinstance(content, bytes)
            self.names[path] = Inode(content)
        elif kind == "rename":
            self.names[str(operation[2])] = self.names.pop(path)
        elif kind == "remove":
            del self.names[path]
        elif kind == "folder":
            self.folders.add(path)
        elif path in self.folders:
            self.durable_names[path] = {n: i for n, i in self.names.items() if _parent(n) == path}
            self.durable_folders |= {f for f in self.folders if _parent(f) == path}
        else:
            self.names[path].durable = self.names[path].content

    def left(self, mode: str) -> dict[str, bytes]:
        """The files after a crash."""
        if mode == "kept":
            return {name: inode.content for name, inode in self.names.items()}
        if mode == "torn":
            return {
                n: i.content if i.durable == i.content else i.content[: len(i.content) // 2]
                for n, i in self.names.items()
            }
        out: dict[str, bytes] = {}
        for folder, names in self.durable_names.items():
            if self._reachable(folder):
                out |= {name: inode.durable for name, inode in names.items()}
        return out

    def _reachable(self, folder: str) -> bool:
        while folder != ".":
            if folder not in self.durable_folders:
                return False
            folder = _parent(folder)
        return True


def _parent(path: str) -> str:
    return PurePosixPath(path).parent.as_posix()


class Recorder(RealFiles):
    """Does what is asked, and writes down each operation."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.log: list[tuple[str, ...] | tuple[str, str, bytes]] = []

    def _name(self, path: Path) -> str:
        return path.relative_to(self.base).as_posix()

    def write(self, path: Path, pieces: Sequence[bytes | memoryview | tuple[Path, int, int]]) -> None:
        super().write(path, pieces)
        self.log.append(("write", self._name(path), path.read_bytes()))

    def sync(self, path: Path) -> None:
        super().sync(path)
        self.log.append(("sync", self._name(path)))

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self.log.append(("rename", self._name(source), self._name(target)))

    def remove(self, path: Path) -> None:
        super().remove(path)
        self.log.append(("remove", self._name(path)))

    def make_folder(self, path: Path) -> None:
        missing: list[str] = []
        folder = path
        while not folder.exists():
            missing.append(self._name(folder))
            folder = folder.parent
        super().make_folder(path)
        self.log += [("folder", name) for name in reversed(missing)]


def f64(*values: float) -> Array:
    return np.array(values, dtype="<f8")


def regular(i: int) -> Frame:
    blocks = {"atoms": Block(2, {"x": Column(f64(i, i + 0.5)), "name": Column(strings(["a", f"n{i}"]))})}
    cell = Cell(np.eye(3) * 9, np.zeros(3), np.ones(3, dtype=bool))
    return Frame(10 * i, blocks, np.float64(0.5 * i), cell, {"pe": MetaValue("f64", np.array(-1.0 * i))})


def ragged(i: int) -> Frame:
    rows = i % 4
    mask = np.arange(rows) % 2 == 0
    blocks = {"atoms": Block(rows, {"x": Column(np.arange(rows) + i / 8, mask)})}
    if i >= 2:
        blocks["bonds"] = Block(1, {"k": Column(np.array([i // 3], dtype="<i8"))})
    return Frame(i, blocks)


def migrating(i: int) -> Frame:
    """Progressions break at frames 4 and 5, markers at 6, the cell changes at 7."""
    step = i if i < 4 else i * i
    time = np.float64(i if i < 5 else i + 0.125)
    bonds = Block(2, {"k": Column(np.array([1, 2 if i < 6 else i], dtype="<i8"))})
    atoms = Block(2, {"x": Column(f64(i, -i))})
    cell = Cell(np.eye(3) * (5 if i < 7 else 5 + i), np.zeros(3), np.ones(3, dtype=bool))
    return Frame(step, {"atoms": atoms, "bonds": bonds}, time, cell)


F64 = {"dtype": "f64", "trailing": []}
K = {"columns": {"k": {"dtype": "i64", "trailing": []}}}
NAMED = {"columns": {"x": F64, "name": {"dtype": "string", "trailing": []}}}
RUNS = {
    "regular": (regular, {"blocks": {"atoms": NAMED}, "meta": {"pe": {"dtype": "f64"}}}),
    "ragged": (ragged, {"blocks": {"atoms": {"columns": {"x": {**F64, "nullable": True}}}, "bonds": K}, "meta": {}}),
    "migrating": (migrating, {"blocks": {"atoms": {"columns": {"x": F64}}, "bonds": K}, "meta": {}}),
}
FRAMES = 10


def carried(make: object, count: int) -> list[Frame]:
    """The frames as a reader hands them back: blocks and cell carried forward."""
    assert callable(make)
    blocks: dict[str, Block] = {}
    cell: Cell | None = None
    out: list[Frame] = []
    for i in range(count):
        frame = make(i)
        blocks = blocks | dict(frame.blocks)
        cell = frame.cell or cell
        out.append(Frame(frame.step, blocks, frame.time, cell, frame.meta))
    return out


@pytest.mark.parametrize("name", RUNS)
def test_every_prefix_of_a_run_leaves_the_committed_frames(name: str, tmp_path: Path) -> None:
    make, declaration = RUNS[name]
    expected = carried(make, FRAMES + 1)
    files = Recorder(tmp_path)
    writer = MrecWriter.create(tmp_path / "run.mrec", declaration, files=files)
    created = len(files.log)
    promised: list[tuple[int, int]] = [(created, 0)]
    for i in range(FRAMES):
        writer.append(make(i))
        if i in (0, 1, 3, 5, 6, 8):
            writer.flush()
            promised.append((len(files.log), i + 1))
    writer.close()
    promised.append((len(files.log), FRAMES))
    log = files.log
    assert len(promised) == 8 and len(log) > 100

    disk = Disk()
    seen = judged = 0
    states: dict[tuple[str, frozenset[tuple[str, bytes]]], int] = {}
    for cut in range(len(log) + 1):
        if cut:
            disk.apply(log[cut - 1])
        least = max((count for at, count in promised if at <= cut), default=-1)
        if least < 0:
            continue
        for mode in MODES:
            left = disk.left(mode)
            judged += 1
            key = (mode, frozenset(left.items()))
            if states.get(key, -1) >= least:
                continue
            states[key] = least
            found = judge(
                left, tmp_path / "crash", expected, least, f"{mode} after {cut} of {len(log)}: {log[cut - 1][:2]}"
            )
            if mode == "kept":
                assert found >= seen, "a killed process never loses a frame that was there"
                seen = found
            resume(tmp_path / "crash" / "run.mrec", make, expected, found, f"{mode} after {cut}")
    assert seen == FRAMES and judged > 300
    print(f"{name}: {len(log)} operations, {judged} crashes, {len(states)} different stores")


def judge(left: dict[str, bytes], folder: Path, expected: list[Frame], least: int, where: str) -> int:
    """Open what a crash left; the number of frames, each of which must be exact."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in left.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    try:
        with open_mrec(folder / "run.mrec") as file:
            count = len(file)
            assert count >= least, f"{where}: {count} frames, {least} were flushed"
            got = mrec_reply(count, file)
    except Refused as refusal:
        raise AssertionError(f"{where}: refused: {refusal}") from refusal
    differences = compare(mrec_reply(count, expected[:count]), got)
    assert differences == [], f"{where}: {differences[0]}"
    return count


def resume(path: Path, make: object, expected: list[Frame], count: int, where: str) -> None:
    """Reopen, append what is missing, and read all of it."""
    assert callable(make)
    # What the appended frames survive is not the question here: without syncing they cost a tenth.
    with MrecWriter.reopen(path, options=WriterOptions(sync=False)) as writer:
        assert len(writer) == count, where
        for i in range(count, len(expected)):
            writer.append(make(i))
    with open_mrec(path) as file:
        differences = compare(mrec_reply(len(expected), expected), mrec_reply(len(file), file))
    assert differences == [], f"{where}, then appended: {differences[0]}"
