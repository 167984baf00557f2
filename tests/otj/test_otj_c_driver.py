"""The C driver, instrumented: the conversation, every golden, and input that means harm."""

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
import yaml
from plain_otj import NotOtj, sound_frames

from trajconform.model.arrays import encode_array
from trajconform.model.reply import compare
from trajconform.otj.checker import check_otj
from trajconform.otj.format import Layout
from trajconform.vectors.otj_golden import apply_otj_defects

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "vectors" / "otj" / "files"
SOURCE = ROOT / "harness" / "drivers" / "c-otj"

pytestmark = pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("make")), reason="no C compiler: gcc and make are needed"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver built to stop at the first access out of bounds, leak or undefined operation."""
    build = tmp_path_factory.mktemp("c-otj")
    probe = build / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    flags = ["-fsanitize=address,undefined"]
    if subprocess.run(["gcc", *flags, "-o", str(build / "probe"), str(probe)], capture_output=True).returncode:
        pytest.skip("gcc has no address and undefined-behaviour sanitizers here")
    subprocess.run(["make", "-s", "-C", str(SOURCE), f"BUILD={build}", "SANITIZE=address,undefined"], check=True)
    return build / "c-otj"


class Talk:
    """A conversation with the program."""

    def __init__(self, program: Path, *arguments: str) -> None:
        self._process = subprocess.Popen([str(program), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._id = 0

    def __call__(self, **request: Any) -> dict[str, Any]:
        self._id += 1
        return self.raw(json.dumps({"id": self._id, **request}).encode(), self._id)

    def raw(self, line: bytes, number: int) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()
        reply: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert reply.pop("id") == number
        return reply

    def end(self) -> int:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(30)


@pytest.fixture
def talk(program: Path) -> Iterator[Talk]:
    conversation = Talk(program)
    yield conversation
    assert conversation.end() == 0, "the sanitizers or the program itself complained"


def test_manners(talk: Talk) -> None:
    assert talk(op="hello", protocol=1)["ok"]["formats"] == {"otj": ["read", "write"]}
    assert "error" in talk(op="hello", protocol=2)
    assert "unsupported" in talk(op="read", format="mrec", path="x")
    assert "error" in talk(op="check", format="otj", path=str(FILES / "none.otj"))
    assert "unsupported" in talk(op="reopen", format="otj", path="x")
    assert "error" in talk(op="read", format="otj", path=str(FILES / "none.otj"))
    assert "error" in talk(op="read", format="otj")
    assert "error" in talk(op="read", format="otj", path="a\0b")
    assert "error" in talk(op="append", step=0, frame={})
    assert "error" in talk(op="close")
    assert "refused" in talk(op="read", format="otj", path=str(FILES))
    assert talk(op="bye") == {"ok": {}}


@pytest.mark.parametrize("name", sorted(path.stem for path in FILES.glob("*.otj")))
def test_reads_the_golden(talk: Talk, name: str) -> None:
    expected = json.loads((FILES / f"{name}.reply.json").read_text("utf-8"))
    reply = talk(op="read", format="otj", path=str(FILES / f"{name}.otj"))
    assert compare(expected, reply["ok"], ["tail"]) == []


def test_ranges(talk: Talk) -> None:
    path = str(FILES / "many-frames.otj")
    for first, stop, steps in (
        (0, 1, [0]),
        (24, 99, [96]),
        (3, 5, [12, 16]),
        (7, 7, []),
        (2**53, 2**53, []),
        (9, 2, []),
    ):
        reply = talk(op="read", format="otj", path=path, frames=[first, stop])
        assert [frame["step"] for frame in reply["ok"]["frames"]] == steps
    assert "error" in talk(op="read", format="otj", path=path, frames=[-1, 2])
    assert "error" in talk(op="read", format="otj", path=path, frames=[1])


def test_a_big_reply(talk: Talk, tmp_path: Path) -> None:
    declared = {"particles": 20_000, "precision": "single", "velocities": True}
    values = {c: np.random.default_rng(3).normal(size=20_000).astype("<f4") for c in ("x", "y", "z", "vx", "vy", "vz")}
    arrays = {"timestep": encode_array(np.array(0.5, dtype="<f4")), "masses": encode_array(values["x"])}
    path = str(tmp_path / "big.otj")
    assert talk(op="create", format="otj", path=path, declaration={**declared, **arrays}) == {"ok": {}}
    for step in range(10):
        assert talk(op="append", step=step, frame={c: encode_array(v) for c, v in values.items()}) == {"ok": {}}
    assert talk(op="close") == {"ok": {}}
    reply = talk(op="read", format="otj", path=path)["ok"]
    assert len(reply["frames"]) == 10
    assert reply["frames"][9]["vz"] == encode_array(values["vz"])


def declared(**change: Any) -> dict[str, Any]:
    body = yaml.safe_load((FILES / "double-positions.yaml").read_text("utf-8"))
    out: dict[str, Any] = {
        "particles": 2,
        "precision": "double",
        "velocities": False,
        "timestep": encode_array(np.array(body["timestep"])),
        "masses": encode_array(np.array(body["masses"])),
    }
    return {**out, **change}


@pytest.mark.parametrize(
    "change",
    [
        {"particles": -1},
        {"particles": "18446744073709551616"},
        {"particles": 2**53},
        {"particles": "2305843009213693954"},
        {"particles": 2.5},
        {"particles": None},
        {"precision": "half"},
        {"velocities": "yes"},
        {"timestep": encode_array(np.array([0.5]))},
        {"timestep": encode_array(np.array(0.5, dtype="<f4"))},
        {"masses": encode_array(np.array([1.0, 2.0, 3.0]))},
        {"masses": {"dtype": "f64", "shape": [2], "data": "AAAA"}},
        {"masses": {"dtype": "f64", "shape": [2], "data": "A==="}},
        {"masses": {"dtype": "f64", "shape": [2], "data": "!!!!"}},
        {"masses": {"dtype": "f64", "shape": [2], "data": "AAAAAAAAAAAAAAAAAAAAAB=="}},
        {"masses": {"dtype": "f64", "shape": ["18446744073709551615"], "data": ""}},
        {"masses": [1.0, 2.0]},
    ],
)
def test_declarations_that_are_refused(talk: Talk, tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "out.otj"
    assert "refused" in talk(op="create", format="otj", path=str(path), declaration=declared(**change))
    assert not path.exists()


def test_an_existing_file_is_left_alone(talk: Talk, tmp_path: Path) -> None:
    path = tmp_path / "out.otj"
    path.write_bytes(b"precious")
    assert "error" in talk(op="create", format="otj", path=str(path), declaration=declared())
    assert path.read_bytes() == b"precious"


def test_hostile_and_broken_files(talk: Talk, tmp_path: Path) -> None:
    """Random changes to goldens: the driver answers what thirty plain lines find, and the sanitizers stay silent."""
    rng = random.Random(20)
    path = tmp_path / "file.otj"
    names = ["double-positions", "single-velocities", "no-particles-single", "wide", "many-frames"]
    for _ in range(600):
        data = bytearray((FILES / f"{rng.choice(names)}.otj").read_bytes())
        for _ in range(rng.randint(1, 3)):
            change = rng.randrange(5)
            if change == 0 and data:
                data[rng.randrange(min(len(data), 80))] ^= 1 << rng.randrange(8)
            elif change == 1:
                del data[rng.randrange(len(data) + 1) :]
            elif change == 2 and len(data) >= 24:
                struct.pack_into(
                    "<Q", data, 16, rng.choice([0, 1, 2**64 - 1, 2**61 + 2, 2**62, 2**32, rng.getrandbits(64)])
                )
            elif change == 3:
                data += rng.randbytes(rng.randrange(200))
            elif data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        reply = talk(op="read", format="otj", path=str(path))
        try:
            sound = sound_frames(bytes(data))
        except NotOtj:
            assert "refused" in reply
            continue
        before = next(n for n in range(len(sound) + 1) if n not in sound)
        assert [int(frame["step"]) for frame in reply["ok"]["frames"]] == [
            int.from_bytes(sound[n][:8], "little") for n in range(before)
        ]


def test_checks_what_the_bundled_checker_checks(talk: Talk, tmp_path: Path) -> None:
    """Clause, frame and byte of every breach, in two programs that share nothing."""
    rng = random.Random(33)
    path = tmp_path / "file.otj"
    names = ["double-positions", "single-velocities", "two-roundings-single", "many-frames", "timestep-infinite"]
    seen = set()
    for _ in range(400):
        data = bytearray((FILES / f"{rng.choice(names)}.otj").read_bytes())
        for _ in range(rng.randint(0, 3)):
            data[rng.choice([rng.randrange(56), rng.randrange(len(data))])] ^= 1 << rng.randrange(8)
        layout = Layout(int.from_bytes(data[16:24], "little"), bool(data[12] & 1), bool(data[12] & 2))
        if rng.random() < 0.2 and layout.count(len(data)) > 0:  # a time that is one or a few values off
            data[layout.offset(0) + 8] ^= rng.randrange(1, 8)
        if layout.header <= len(data) and rng.random() < 0.5:  # a right checksum over the changed frames
            frames = range(layout.count(len(data)))
            data = bytearray(apply_otj_defects(bytes(data), [{"fix_frame_checksum": {"frame": n}} for n in frames]))
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        path.write_bytes(data)
        found = talk(op="check", format="otj", path=str(path))["ok"]["violations"]
        expected = [(v.clause, v.path, v.index, v.offset) for v in check_otj(path)]
        assert [(v["clause"], v["path"], v.get("index"), v["offset"]) for v in found] == expected
        seen.update(v["clause"] for v in found)
    assert seen >= {"OTJ-HEADER-01", "OTJ-HEADER-03", "OTJ-HEADER-10", "OTJ-FLAGS-03", "OTJ-SUM-02", "OTJ-SUM-03"}
    assert seen >= {"OTJ-FRAME-07", "OTJ-FRAME-08"}


@pytest.mark.parametrize("precision", ["single", "double"])
def test_one_precision_alone(program: Path, precision: str) -> None:
    talk = Talk(program, "--precision", precision)
    assert precision in talk(op="hello", protocol=1)["ok"]["features"]
    for name in ("single-velocities", "double-velocities"):
        reply = talk(op="read", format="otj", path=str(FILES / f"{name}.otj"))
        assert ("ok" if name.startswith(precision) else "refused") in reply
    assert ("unsupported" in talk(op="create", format="otj", path="/none/x", declaration=declared())) == (
        precision == "single"
    )
    assert talk.end() == 0


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"id":1',
        b'{"id":1}x',
        b'{"id":1,"id":2}',
        b'{"op":"hello"}',
        b'{"id":0,"op":"hello"}',
        b'{"id":1.5,"op":"hello"}',
        b'{"id":01,"op":"hello"}',
        b'{"id":1,"op":"\xff"}',
        b'{"id":1,"op":"\xed\xa0\x80"}',
        b'{"id":1,"op":"\\ud800"}',
        b'{"id":1,"op":"\\x"}',
        b'{"id":1,"op":"\\u12"}',
        b'{"id":1,"op":"a\x01"}',
        b'{"id":1,"op":"a\x00"}',
        b'{"id":1,"op":"tail\\',
        b"[" * 100_000,
        b'{"id":1,"a":' * 5_000,
        b"-",
        b"1e",
        b"[1,]",
        b'{"a":1,}',
        b"NaN",
        b"tru",
    ],
)
def test_lines_that_are_no_requests_end_it(program: Path, line: bytes) -> None:
    """There is no id to answer to, so the driver says so on its log and ends with status 1; it does not crash."""
    run = subprocess.run([str(program)], input=line + b"\n", capture_output=True, timeout=60)
    assert run.returncode == 1, run.stderr.decode(errors="replace")[-2000:]
    assert run.stdout == b""
    assert run.stderr.startswith(b"c-otj: not a request")


def test_noise_for_requests(program: Path) -> None:
    rng = random.Random(7)
    good = json.dumps({"id": 1, "op": "create", "format": "otj", "path": "/nonexistent/x", "declaration": declared()})
    for _ in range(60):
        line = bytearray(good.encode())
        for _ in range(rng.randint(1, 6)):
            line[rng.randrange(len(line))] = rng.randrange(256)
        run = subprocess.run([str(program)], input=bytes(line) + b"\n", capture_output=True, timeout=60)
        assert run.returncode in (0, 1), run.stderr.decode(errors="replace")[-2000:]


def test_escapes_in_a_path(talk: Talk, tmp_path: Path) -> None:
    path = tmp_path / 'é "quoted" \U0001f30d\\.otj'
    path.write_bytes((FILES / "alike.otj").read_bytes())
    for text in (json.dumps(str(path)), json.dumps(str(path), ensure_ascii=False)):
        reply = talk.raw(f'{{"id":9,"op":"read","format":"otj","path":{text}}}'.encode(), 9)
        assert len(reply["ok"]["frames"]) == 3
