"""No room left while a record is written: the error says so, what was committed stays, and a reopened writer goes on."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from trajconform.model.trajectory import Block, Column, Frame
from trajconform.mrec.checker import check_mrec
from trajconform.mrec.reader import open_mrec
from trajconform.mrec.writer import MrecWriter

ROWS = 500
AFTERWARDS = "ValueError a commit failed; reopen the store to go on from its last committed frame"
WRITE = """
import resource, signal, sys
import numpy as np
from trajconform.model.trajectory import Block, Column, Frame
from trajconform.mrec.writer import MrecWriter
path, limit = sys.argv[1], int(sys.argv[2])
noise = np.random.default_rng(0)
blocks = {"atoms": {"columns": {"x": {"dtype": "f64", "trailing": []}}}}
writer = MrecWriter.create(path, {"blocks": blocks, "meta": {}})
if limit:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
flushed = 0
try:
    for step in range(4000):
        writer.append(Frame(step, {"atoms": Block(500, {"x": Column(noise.random(500))})}))
        writer.flush()
        flushed += 1
except OSError as error:
    print(flushed, error.errno, error.strerror, "|", error.filename or "")
try:
    writer.append(Frame(5000, {}))
    writer.close()
    print("closed")
except Exception as error:
    print(type(error).__name__, error)
"""


def write_until_full(path: Path, limit: int) -> tuple[int, list[str]]:
    """Frames that a flush promised before the error, and what was printed. ``limit``: bytes of one file, 0 for none."""
    done = subprocess.run(
        [sys.executable, "-c", WRITE, str(path), str(limit)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return int(lines[0].split()[0]), lines


def judge_left(path: Path, flushed: int, count: int) -> None:
    """The committed frames are there, exact; the record is clean, without a file that a failed write left."""
    noise = np.random.default_rng(0)
    values = [noise.random(ROWS) for _ in range(count)]
    with open_mrec(path) as file:
        assert len(file) == count >= flushed > 0
        for i in range(count):
            assert file.frame(i).blocks["atoms"].columns["x"].values.tobytes() == values[i].tobytes()
    assert check_mrec(path) == []
    assert [p for p in path.rglob("*") if p.is_file() and p.suffix == ".partial"] == []


def go_on(path: Path) -> None:
    """There is room again: reopened, a frame is appended."""
    with MrecWriter.reopen(path) as writer:
        count = committed(path)
        writer.append(Frame(10_000, {"atoms": Block(ROWS, {"x": Column(np.arange(ROWS, dtype="<f8"))})}))
    with open_mrec(path) as file:
        assert len(file) == count + 1
        assert (file.frame(count).blocks["atoms"].columns["x"].values == np.arange(ROWS)).all()
    assert check_mrec(path) == []


def committed(path: Path) -> int:
    with open_mrec(path) as file:
        return len(file)


@pytest.mark.parametrize("limit", [80_000, 131_072, 300_001])
def test_a_file_that_may_not_grow(limit: int, tmp_path: Path) -> None:
    path = tmp_path / "full.mrec"
    flushed, lines = write_until_full(path, limit)
    assert "File too large" in lines[0] and str(path) in lines[0], "the error names the file"
    assert lines[1:] == [AFTERWARDS]
    judge_left(path, flushed, committed(path))
    go_on(path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory with room for a megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, text=True
        )
    except OSError as error:
        pytest.skip(f"mount cannot be run: {error}")
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_that_is_full(small_disk: Path) -> None:
    path = small_disk / "full.mrec"
    flushed, lines = write_until_full(path, 0)
    assert "No space left on device" in lines[0] and str(path) in lines[0], "the error names the file"
    assert lines[1:] == [AFTERWARDS]
    judge_left(path, flushed, committed(path))
