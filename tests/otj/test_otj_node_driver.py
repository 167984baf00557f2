"""The Node driver: manners, every golden, damaged files, and memory that does not follow the length of a file."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_otj import NotOtj, sound_frames

from trajconform.model.arrays import encode_array
from trajconform.model.reply import compare
from trajconform.otj.checker import check_otj
from trajconform.otj.format import Layout
from trajconform.otj.reader import open_otj
from trajconform.vectors.otj_golden import apply_otj_defects

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "vectors" / "otj" / "files"
PROGRAM = ROOT / "harness" / "drivers" / "node-otj" / "driver.mjs"

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH")


class Talk:
    """A conversation with the program."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            ["node", str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._id = 0

    def __call__(self, op: str, **params: Any) -> dict[str, Any]:
        self._id += 1
        text = json.dumps({"id": self._id, "op": op, **params}, ensure_ascii=False)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()
        reply: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert reply.pop("id") == self._id
        return reply

    def end(self) -> tuple[int, str]:
        _, log = self.process.communicate(timeout=60)
        return self.process.returncode, log.decode()


@pytest.fixture(scope="module")
def talk() -> Iterator[Talk]:
    conversation = Talk()
    yield conversation
    assert conversation.end()[0] == 0


def declared(**change: Any) -> dict[str, Any]:
    arrays = {"timestep": encode_array(np.array(0.5)), "masses": encode_array(np.array([1.0, 2.0]))}
    return {"particles": 2, "precision": "double", "velocities": False, **arrays, **change}


def test_manners() -> None:
    talk = Talk()
    assert talk("hello", protocol=1)["ok"]["formats"] == {"otj": ["read", "write"]}
    assert "error" in talk("hello", protocol=2)
    assert "unsupported" in talk("read", format="mrec", path="x")
    assert "unsupported" in talk("reopen", format="otj", path="x")
    assert "unsupported" in talk("constructor")
    assert "error" in talk("read", format="otj", path=str(FILES / "none.otj"))
    assert "error" in talk("check", format="otj", path=str(FILES / "none.otj"))
    assert "error" in talk("read", format="otj")
    assert "error" in talk("append", step=0, frame={})
    assert "error" in talk("close")
    assert "refused" in talk("read", format="otj", path=str(FILES))
    assert talk("bye") == {"ok": {}}
    assert talk.end()[0] == 0


@pytest.mark.parametrize("line", [b"", b"{", b'{"op":"hello"}', b'{"id":1.5,"op":"hello"}', b"null", b"[" * 100_000])
def test_a_line_that_is_no_request_ends_it(line: bytes) -> None:
    run = subprocess.run(["node", str(PROGRAM)], input=line + b"\n", capture_output=True, timeout=60)
    assert (run.returncode, run.stdout) == (1, b"")
    assert run.stderr.startswith(b"node-otj: ")


def test_reads_every_golden(talk: Talk) -> None:
    names = sorted(path.stem for path in FILES.glob("*.otj"))
    assert len(names) > 20
    for name in names:
        expected = json.loads((FILES / f"{name}.reply.json").read_text("utf-8"))
        reply = talk("read", format="otj", path=str(FILES / f"{name}.otj"))
        assert compare(expected, reply["ok"], ["tail"]) == [], name


@pytest.mark.parametrize(
    ("frames", "steps"),
    [([0, 1], [0]), ([24, 99], [96]), ([3, 5], [12, 16]), ([7, 7], []), ([2**53, 2**53], []), ([9, 2], [])],
)
def test_ranges(talk: Talk, frames: list[int], steps: list[int]) -> None:
    reply = talk("read", format="otj", path=str(FILES / "many-frames.otj"), frames=frames)["ok"]
    assert [frame["step"] for frame in reply["frames"]] == steps
    assert "tail" not in reply


@pytest.mark.parametrize(
    "change",
    [
        {"particles": -1},
        {"particles": "18446744073709551616"},
        {"particles": 2**53},
        {"particles": 2.5},
        {"particles": None},
        {"precision": "half"},
        {"velocities": "yes"},
        {"timestep": encode_array(np.array([0.5]))},
        {"timestep": encode_array(np.array(0.5, dtype="<f4"))},
        {"masses": {"dtype": "f64", "shape": [2], "data": "AAAA"}},
        {"masses": {"dtype": "f64", "shape": [2], "data": "!!!!AAAAAAAA8D8AAAAAAAAAQA=="}},
        {"masses": {"dtype": "f64", "shape": "2", "data": ""}},
        {"masses": None},
    ],
)
def test_declarations_that_are_refused(talk: Talk, tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "out.otj"
    assert "refused" in talk("create", format="otj", path=str(path), declaration=declared(**change))
    assert not path.exists()


def test_an_existing_file_is_left_alone(talk: Talk, tmp_path: Path) -> None:
    path = tmp_path / "out.otj"
    path.write_bytes(b"precious")
    assert "error" in talk("create", format="otj", path=str(path), declaration=declared())
    assert path.read_bytes() == b"precious"


def test_a_refused_frame_leaves_the_writer_as_it_was(talk: Talk, tmp_path: Path) -> None:
    path = tmp_path / "out.otj"
    frame = {name: encode_array(np.array([1.0, -0.0])) for name in ("x", "y", "z")}
    assert talk("create", format="otj", path=str(path), declaration=declared()) == {"ok": {}}
    assert talk("append", step=0, frame=frame) == {"ok": {}}
    for wrong in (
        {**frame, "z": encode_array(np.zeros(3))},
        {"x": frame["x"], "y": frame["y"]},
        {**frame, "vx": frame["x"]},
    ):
        assert "refused" in talk("append", step=1, frame=wrong)
    assert "refused" in talk("append", step=str(2**64), frame=frame)
    assert "refused" in talk("append", step=-1, frame=frame)
    assert "error" in talk("append", step=0.5, frame=frame)
    assert talk("append", step=str(2**64 - 1), frame=frame) == {"ok": {}}
    assert talk("close") == {"ok": {}}
    with open_otj(path) as file:
        assert [frame["step"] for frame in file.reply()["frames"]] == [0, str(2**64 - 1)]
    assert check_otj(path) == []


def test_damaged_files(talk: Talk, tmp_path: Path) -> None:
    """Random changes to goldens: the driver answers what thirty plain lines find."""
    rng = random.Random(21)
    path = tmp_path / "file.otj"
    refused = cut_short = 0
    for _ in range(400):
        name = rng.choice(["double-positions", "single-velocities", "no-particles-single", "wide", "many-frames"])
        data = bytearray((FILES / f"{name}.otj").read_bytes())
        for _ in range(rng.randint(1, 3)):
            change = rng.randrange(4)
            if change == 0 and data:
                data[rng.randrange(min(len(data), 80))] ^= 1 << rng.randrange(8)
            elif change == 1:
                del data[rng.randrange(len(data) + 1) :]
            elif change == 2 and len(data) >= 24:
                struct.pack_into("<Q", data, 16, rng.choice([0, 1, 2**64 - 1, 2**61 + 2, 2**32, rng.getrandbits(64)]))
            elif data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        reply = talk("read", format="otj", path=str(path))
        try:
            sound = sound_frames(bytes(data))
        except NotOtj:
            assert "refused" in reply
            refused += 1
            continue
        before = next(n for n in range(len(sound) + 1) if n not in sound)
        steps = [int(frame["step"]) for frame in reply["ok"]["frames"]]
        assert steps == [int.from_bytes(sound[n][:8], "little") for n in range(before)]
        cut_short += reply["ok"]["tail"]["state"] != "clean"
    assert refused > 50 and cut_short > 50


def test_checks_what_the_bundled_checker_checks(talk: Talk, tmp_path: Path) -> None:
    """Clause, frame and byte of every breach, in two programs that share nothing."""
    rng = random.Random(34)
    path = tmp_path / "file.otj"
    names = ["double-positions", "single-velocities", "two-roundings-single", "many-frames", "timestep-infinite"]
    seen = set()
    for _ in range(300):
        data = bytearray((FILES / f"{rng.choice(names)}.otj").read_bytes())
        for _ in range(rng.randint(0, 3)):
            data[rng.choice([rng.randrange(56), rng.randrange(len(data))])] ^= 1 << rng.randrange(8)
        layout = Layout(int.from_bytes(data[16:24], "little"), bool(data[12] & 1), bool(data[12] & 2))
        if rng.random() < 0.2 and layout.count(len(data)) > 0:  # a time that is one or a few values off
            data[layout.offset(0) + 8] ^= rng.randrange(1, 8)
        if layout.header <= len(data) and rng.random() < 0.5:  # a right checksum over the changed frames
            frames = range(layout.count(len(data)))
            data = bytearray(apply_otj_defects(bytes(data), [{"fix_frame_checksum": {"frame": n}} for n in frames]))
        path.write_bytes(data)
        found = talk("check", format="otj", path=str(path))["ok"]["violations"]
        expected = [(v.clause, v.path, v.index, v.offset) for v in check_otj(path)]
        assert [(v["clause"], v["path"], v.get("index"), v["offset"]) for v in found] == expected
        seen.update(v["clause"] for v in found)
    assert seen >= {"OTJ-HEADER-01", "OTJ-HEADER-03", "OTJ-HEADER-10", "OTJ-FLAGS-03", "OTJ-SUM-02", "OTJ-SUM-03"}
    assert seen >= {"OTJ-FRAME-07", "OTJ-FRAME-08"}


def test_a_line_ends_with_a_line_feed_alone(talk: Talk, tmp_path: Path) -> None:
    """JSON may hold U+2028 as it is, which some line readers take for the end of a line."""
    path = tmp_path / 'a\u2028b é "quoted" \U0001f30d\\.otj'
    path.write_bytes((FILES / "alike.otj").read_bytes())
    assert len(talk("read", format="otj", path=str(path))["ok"]["frames"]) == 3


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_follows_a_frame_and_not_the_file(tmp_path: Path) -> None:
    """A file of 120 frames of 1 MiB is read with a reply of 190 MiB, in far less than either."""
    values = np.random.default_rng(3).normal(size=40_000)
    frame = {name: encode_array(values) for name in ("x", "y", "z")}
    path = tmp_path / "big.otj"
    talk = Talk()
    declaration = declared(particles=40_000, masses=encode_array(values))
    assert talk("create", format="otj", path=str(path), declaration=declaration) == {"ok": {}}
    for step in range(120):
        assert talk("append", step=step, frame=frame) == {"ok": {}}
    assert talk("close") == {"ok": {}}
    talk("bye")
    talk.end()
    assert path.stat().st_size > 115_000_000
    talk = Talk()
    reply = talk("read", format="otj", path=str(path))["ok"]
    assert len(reply["frames"]) == 120
    assert all(reply["frames"][119][name] == frame[name] for name in "xyz")
    peak = int(Path(f"/proc/{talk.process.pid}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    assert talk.end()[0] == 0
    assert peak < 150, f"{peak:.0f} MiB"
