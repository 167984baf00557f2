"""The writer: exact bytes, refusals that leave no trace, and runs that are killed."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from trajconform.model.arrays import array_from_plain
from trajconform.model.errors import Refused
from trajconform.model.trajectory import OtjHeader
from trajconform.otj.checker import check_otj
from trajconform.otj.reader import open_otj
from trajconform.otj.writer import OtjWriter
from trajconform.vectors.otj_golden import build_otj

FILES = Path(__file__).resolve().parents[2] / "vectors" / "otj" / "files"
WRONG_NAN = {"timestep-nan", "timestep-nan-single", "timestep-infinite", "times-other-nan"}
"""Files with a time that is a NaN: OTJ-FRAME-09 leaves open which one, so a writer may put down another."""


def header_of(declaration: dict[str, Any]) -> OtjHeader:
    name = "f32" if declaration["precision"] == "single" else "f64"
    return OtjHeader(
        declaration["particles"],
        declaration["precision"],
        declaration["velocities"],
        array_from_plain(name, declaration["timestep"], []),
        array_from_plain(name, declaration["masses"], [declaration["particles"]]),
    )


def write(path: Path, declaration: dict[str, Any]) -> bytes:
    name = "f32" if declaration["precision"] == "single" else "f64"
    count = [declaration["particles"]]
    with OtjWriter(path, header_of(declaration)) as writer:
        for frame in declaration["frames"]:
            parts = {c: array_from_plain(name, v, count) for c, v in frame.items() if c not in ("step", "time")}
            writer.append(frame["step"], parts)
    return path.read_bytes()


@pytest.mark.parametrize("name", sorted(path.stem for path in FILES.glob("*.yaml")))
def test_goldens_byte_for_byte(tmp_path: Path, name: str) -> None:
    declaration = yaml.safe_load((FILES / f"{name}.yaml").read_text("utf-8"))
    got = write(tmp_path / "out.otj", declaration)
    golden = (FILES / f"{name}.otj").read_bytes()
    assert golden == build_otj(declaration)
    assert len(got) == len(golden)
    if name not in WRONG_NAN:
        assert got == golden
    assert check_otj(tmp_path / "out.otj") == []


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_what_is_written_comes_back(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Any bits of any scalar, any step, any order."""
    particles = data.draw(st.integers(0, 5))
    single, velocities = data.draw(st.booleans()), data.draw(st.booleans())
    size = 4 if single else 8
    dtype = np.dtype("<f4") if single else np.dtype("<f8")

    def scalars(count: int) -> Any:
        return np.frombuffer(data.draw(st.binary(min_size=size * count, max_size=size * count)), dtype)

    header = OtjHeader(
        particles, "single" if single else "double", velocities, scalars(1).reshape(()), scalars(particles)
    )
    names = ("x", "y", "z", "vx", "vy", "vz") if velocities else ("x", "y", "z")
    steps = data.draw(st.lists(st.integers(0, 2**64 - 1), max_size=4))
    frames = [{name: scalars(particles) for name in names} for _ in steps]
    path = tmp_path_factory.mktemp("round") / "trip.otj"
    with OtjWriter(path, header) as writer:
        for step, parts in zip(steps, frames, strict=True):
            writer.append(step, parts)
    assert check_otj(path) == []
    with open_otj(path) as file:
        assert file.header.masses.tobytes() == header.masses.tobytes()
        assert file.header.timestep.tobytes() == header.timestep.tobytes()
        got = list(file)
        assert [frame.step for frame in got] == steps
        for frame, parts in zip(got, frames, strict=True):
            assert [getattr(frame, name).tobytes() for name in names] == [parts[name].tobytes() for name in names]
            assert (frame.vx is None) == (not velocities)


ONE = OtjHeader(2, "double", True, np.array(0.5), np.array([1.0, 2.0]))
PARTS = {name: np.array([1.0, -2.0]) for name in ("x", "y", "z", "vx", "vy", "vz")}


@pytest.mark.parametrize(
    ("step", "change", "clause"),
    [
        (-1, {}, "OTJ-FRAME-15"),
        (2**64, {}, "OTJ-FRAME-15"),
        (1, {"vy": None}, "OTJ-FRAME-18"),
        (1, {"x": np.zeros(3)}, "OTJ-FRAME-18"),
        (1, {"x": np.zeros((2, 1))}, "OTJ-FRAME-18"),
        (1, {"z": np.zeros(2, dtype="<f4")}, "OTJ-CONV-07"),
        (1, {"z": np.zeros(2, dtype="<i8")}, "OTJ-CONV-07"),
    ],
)
def test_a_refused_frame_leaves_no_trace(tmp_path: Path, step: int, change: dict[str, Any], clause: str) -> None:
    path = tmp_path / "out.otj"
    with OtjWriter(path, ONE) as writer:
        writer.append(0, PARTS)
        before = path.read_bytes()
        with pytest.raises(Refused) as caught:
            writer.append(step, {**PARTS, **change})
        assert (caught.value.violation.clause, caught.value.violation.index) == (clause, 1)
        assert path.read_bytes() == before
        writer.append(1, PARTS)
    with open_otj(path) as file:
        assert [frame.step for frame in file] == [0, 1]


def test_velocities_that_the_header_does_not_announce(tmp_path: Path) -> None:
    header = OtjHeader(2, "double", False, np.array(0.5), np.array([1.0, 2.0]))
    with OtjWriter(tmp_path / "out.otj", header) as writer, pytest.raises(Refused, match="OTJ-FRAME-05"):
        writer.append(0, PARTS)


@pytest.mark.parametrize(
    ("header", "clause"),
    [
        (OtjHeader(3, "double", False, np.array(0.5), np.array([1.0])), "OTJ-HEADER-16"),
        (OtjHeader(2**64 - 1, "double", False, np.array(0.5), np.array([1.0])), "OTJ-HEADER-16"),
        (OtjHeader(1, "double", False, np.array([0.5]), np.array([1.0])), "OTJ-HEADER-08"),
        (OtjHeader(1, "single", False, np.array(0.5), np.array([1.0], dtype="<f4")), "OTJ-CONV-07"),
        (OtjHeader(1, "half", False, np.array(0.5), np.array([1.0])), "OTJ-FLAGS-01"),
    ],
)
def test_a_refused_declaration_makes_no_file(tmp_path: Path, header: OtjHeader, clause: str) -> None:
    with pytest.raises(Refused, match=clause):
        OtjWriter(tmp_path / "out.otj", header)
    assert list(tmp_path.iterdir()) == []


def test_arrays_of_the_other_byte_order_are_stored_right(tmp_path: Path) -> None:
    bits = np.array([0x7F800001, 0x80000000], dtype=">u4").view(">f4")
    header = OtjHeader(2, "single", False, np.array(0.5, dtype=">f4"), bits)
    with OtjWriter(tmp_path / "out.otj", header) as writer:
        writer.append(1, dict.fromkeys("xyz", bits))
    with open_otj(tmp_path / "out.otj") as file:
        assert file.header.masses.tobytes() == bytes.fromhex("0100807f00000080")
        assert file.frame(0).z.tobytes() == bytes.fromhex("0100807f00000080")
        assert float(file.frame(0).time) == 0.5


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "out.otj"
    path.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        OtjWriter(path, ONE)
    assert path.read_bytes() == b"precious"


def test_every_moment_leaves_a_prefix_of_the_finished_file(tmp_path: Path) -> None:
    path = tmp_path / "out.otj"
    moments = []
    with OtjWriter(path, ONE) as writer:
        moments.append(path.read_bytes())
        for step in range(4):
            writer.append(step, PARTS)
            moments.append(path.read_bytes())
            writer.flush()
            moments.append(path.read_bytes())
    finished = path.read_bytes()
    assert [len(m) for m in moments] == sorted(len(m) for m in moments)
    assert all(finished.startswith(m) for m in moments)
    assert moments[-1] == finished
    writer.close()
    writer.flush()
    assert path.read_bytes() == finished


KILLED = """
import sys
import numpy as np
from trajconform.model.trajectory import OtjHeader
from trajconform.otj.writer import OtjWriter
n = 2000
writer = OtjWriter(sys.argv[1], OtjHeader(n, "double", True, np.array(0.5), np.arange(n, dtype="<f8")))
for step in range(10**9):
    writer.append(step, {c: np.full(n, step, dtype="<f8") for c in ("x", "y", "z", "vx", "vy", "vz")})
    print(step, flush=True)
"""


def test_a_killed_run_keeps_every_frame_it_was_told_of(tmp_path: Path) -> None:
    path = tmp_path / "killed.otj"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = 0
        deadline = time.monotonic() + 60
        while told < 5 and time.monotonic() < deadline:
            told = int(process.stdout.readline()) + 1
        process.send_signal(signal.SIGKILL)
        told += sum(1 for _ in process.stdout)
    with open_otj(path) as file:
        frames = list(file)
        assert file.tail().state in ("clean", "cut")
    assert len(frames) in (told, told + 1) and told >= 5
    assert all(frame.step == i and (frame.vz == i).all() for i, frame in enumerate(frames))
    assert check_otj(path) == []


FULL = """
import resource, signal, sys
import numpy as np
from trajconform.model.trajectory import OtjHeader
from trajconform.otj.writer import OtjWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
parts = {c: np.arange(3.0) for c in "xyz"}
with OtjWriter(sys.argv[1], OtjHeader(3, "double", False, np.array(0.5), np.ones(3))) as writer:
    try:
        for step in range(1000):
            writer.append(step, parts)
    except OSError as error:
        print(step, type(error).__name__)
    try:
        writer.append(5, parts)
    except ValueError as error:
        print(error)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="this system cannot limit the size of files")
def test_a_full_disk_ends_the_file_inside_a_frame(tmp_path: Path) -> None:
    path = tmp_path / "full.otj"
    run = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "9 OSError",
        "an earlier write failed, the file ends inside a frame: start a new file",
    ]
    assert path.stat().st_size == 1000
    with open_otj(path) as file:
        assert [frame.step for frame in file] == list(range(9))
        assert file.tail().state == "cut"
    assert check_otj(path) == []
