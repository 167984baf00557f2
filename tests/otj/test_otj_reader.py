"""The strict reader, on whole, cut, damaged and hostile files."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_otj import NotOtj, sound_frames, sums

from trajconform.model.errors import Refused
from trajconform.model.trajectory import OtjFrame
from trajconform.otj import view
from trajconform.otj.reader import Tail, open_otj
from trajconform.vectors.otj_golden import apply_otj_defects, build_otj

FILES = Path(__file__).resolve().parents[2] / "vectors" / "otj" / "files"


def golden(name: str) -> bytes:
    return (FILES / f"{name}.otj").read_bytes()


Save = Callable[[bytes], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def write(data: bytes) -> Path:
        path = tmp_path / "file.otj"
        path.write_bytes(data)
        return path

    return write


def frame_bytes(frame: OtjFrame) -> bytes:
    """What a frame's fields look like in a file, its checksum left out."""
    parts = [frame.x, frame.y, frame.z, frame.vx, frame.vy, frame.vz]
    return frame.step.to_bytes(8, "little") + b"".join(p.tobytes() for p in [frame.time, *parts] if p is not None)


def all_frames(data: bytes, path: Path) -> list[bytes]:
    path.write_bytes(data)
    with open_otj(path) as file:
        return [frame_bytes(frame) for frame in file]


@pytest.mark.parametrize("name", sorted(path.stem for path in FILES.glob("*.otj")))
def test_streaming_and_seeking_agree_with_the_bytes(name: str) -> None:
    data = golden(name)
    sound = [frame[:-8] for frame in sound_frames(data).values()]
    with open_otj(FILES / f"{name}.otj") as file:
        assert [frame_bytes(frame) for frame in file] == sound
        assert [frame_bytes(file.frame(i)) for i in reversed(range(len(file)))] == sound[::-1]
        assert [frame_bytes(frame) for frame in file.frames(1, 10**30)] == sound[1:]
        assert file.tail() == Tail("clean", len(sound), 0)


def test_frames_stay_good_after_the_file_is_closed() -> None:
    with open_otj(FILES / "double-positions.otj") as file:
        frame = file.frame(1)
        masses = file.header.masses
    assert frame.step == 10
    assert frame.x.tolist() == [1.00390625, 1.06640625]
    assert masses.tolist() == [1.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        frame.x[0] = 2.0


@pytest.mark.parametrize("number", [-1, 3, 2**70])
def test_no_such_frame(number: int) -> None:
    with open_otj(FILES / "double-positions.otj") as file, pytest.raises(IndexError, match="of 3"):
        file.frame(number)


def test_batches_of_a_large_file(save: Save) -> None:
    """More frames than fit into one batch, a frame larger than a batch, and damage in a later batch."""
    particles = view._BATCH // 96
    frames = 12
    rng = np.random.default_rng(5)
    values = rng.normal(size=(frames, 3, particles))
    header = b"ORRERYTJ" + struct.pack("<IIQd", 1, 0, particles, 0.5) + np.ones(particles).tobytes()
    from trajconform.otj.checksum import fnv1a64

    data = header + fnv1a64(header).to_bytes(8, "little")
    for n in range(frames):
        body = struct.pack("<Qd", n, n * 0.5) + values[n].tobytes()
        data += body + fnv1a64(body).to_bytes(8, "little")
    path = save(data)
    with open_otj(path) as file:
        assert len(file) == frames > view._BATCH // file.layout.frame > 1
        assert np.array_equal([[f.x, f.y, f.z] for f in file], values)
    broken = bytearray(data)
    broken[-20] ^= 1
    path.write_bytes(broken[:-1])
    with open_otj(path) as file:
        assert file.tail() == Tail("cut", frames - 1, file.layout.frame - 1)
    broken[len(data) - file.layout.frame - 20] ^= 1
    path.write_bytes(broken)
    with open_otj(path) as file:
        assert len(list(file)) == frames - 2
        tail = file.tail()
        assert (tail.state, tail.frames, tail.bytes) == ("damaged", frames - 2, 2 * file.layout.frame)


def test_damage_is_told_from_a_cut(save: Save) -> None:
    data = apply_otj_defects(golden("double-positions"), [{"flip_bit": {"offset": 56 + 72 + 20, "bit": 4}}])
    with open_otj(save(data + b"\0\0\0")) as file:
        tail = file.tail()
        assert (tail.state, tail.frames, tail.bytes) == ("damaged", 1, 2 * 72 + 3)
        assert tail.violation is not None
        assert (tail.violation.clause, tail.violation.index, tail.violation.offset) == (
            "OTJ-SUM-05",
            1,
            56 + 2 * 72 - 8,
        )
        with pytest.raises(Refused, match="OTJ-SUM-05"):
            file.frame(1)
        assert file.frame(2).step == 20
        assert [frame.step for frame in file] == [0]
        assert [frame.step for frame in file.frames(2, 3)] == [20]


def test_reply_carries_the_tail(save: Save) -> None:
    with open_otj(save(golden("double-positions")[:200])) as file:
        reply = file.reply()
        assert reply["tail"] == {"state": "clean", "bytes": 0}
        assert [frame["step"] for frame in reply["frames"]] == [0, 10]
    with open_otj(save(golden("double-positions")[:199])) as file:
        assert file.reply()["tail"] == {"state": "cut", "bytes": 71}


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_change_is_refused_or_leaves_true_frames(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Flips, cuts, insertions: whatever happens to a file, the reader does what thirty plain lines do."""
    original = golden(
        data.draw(st.sampled_from(["double-positions", "single-velocities", "no-particles-double", "wide"]))
    )
    changed = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(len(changed) - 1, 0)))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert", "append", "u64"]))
        if kind == "flip" and changed:
            changed[at] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "cut":
            del changed[at:]
        elif kind == "insert":
            changed[at:at] = data.draw(st.binary(max_size=80))
        elif kind == "append":
            changed += data.draw(st.binary(max_size=200))
        elif len(changed) >= 24:
            changed[16:24] = struct.pack("<Q", data.draw(st.integers(0, 2**64 - 1)))
    path = tmp_path_factory.mktemp("any") / "file.otj"
    try:
        sound = sound_frames(bytes(changed))
    except NotOtj:
        with pytest.raises(Refused) as caught:
            all_frames(bytes(changed), path)
        assert caught.value.violation.message
        return
    expected = []
    while len(expected) in sound:
        expected.append(sound[len(expected)][:-8])
    assert all_frames(bytes(changed), path) == expected


@given(st.binary(max_size=120))
@settings(max_examples=100, deadline=None)
def test_noise_is_refused(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.mktemp("noise") / "noise.otj"
    for data in (noise, b"ORRERYTJ" + noise, b"ORRERYTJ\1\0\0\0" + noise):
        with pytest.raises(NotOtj):
            sums(data)
        with pytest.raises(Refused):
            all_frames(data, path)


@pytest.mark.parametrize("particles", [2**64 - 1, 2**63, 2**62 + 3, 2**61 + 2, 2**60, 2**40, 2**32, 10**9, 5 * 10**7])
@pytest.mark.parametrize("flags", [0, 1, 2, 3])
def test_a_hostile_count_costs_nothing(save: Save, particles: int, flags: int) -> None:
    data = bytearray(golden("double-positions"))
    struct.pack_into("<IQ", data, 12, flags, particles)
    path = save(bytes(data))
    tracemalloc.start()
    try:
        with pytest.raises(Refused) as caught:
            open_otj(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.violation.clause in ("OTJ-HEADER-12", "OTJ-HEADER-13")
    assert peak < 2**20


def test_a_sparse_file_can_hold_what_its_count_says(tmp_path: Path) -> None:
    """The header fits, so it is read; that no frame does is no reason to ask for the memory of one."""
    path = tmp_path / "sparse.otj"
    particles = 2**20
    with path.open("wb") as stream:
        stream.write(b"ORRERYTJ" + struct.pack("<IIQ", 1, 2, particles))
        stream.truncate(40 + 8 * particles + 100)
    with pytest.raises(Refused, match="OTJ-SUM-04"):
        open_otj(path)


def test_a_file_that_shrinks_while_it_is_read(save: Save) -> None:
    path = save(golden("many-frames"))
    with open_otj(path) as file:
        with path.open("r+b") as stream:
            stream.truncate(300)
        with pytest.raises(OSError, match="became shorter"):
            list(file)


def test_a_file_that_grows_while_it_is_read(save: Save) -> None:
    data = golden("double-positions")
    path = save(data[:200])
    with open_otj(path) as file:
        path.write_bytes(data)
        assert [frame.step for frame in file] == [0, 10]


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        open_otj(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_otj(tmp_path / "none.otj")


def test_refusal_says_where_and_what() -> None:
    data: dict[str, Any] = {"title": "", "particles": 1, "precision": "double", "velocities": False}
    data |= {"timestep": 1.0, "masses": [1.0], "frames": []}
    wrong = apply_otj_defects(build_otj(data), [{"set_u32": {"offset": 12, "value": 12}}])
    path = FILES.parent / "unused"
    assert not path.exists()
    import io

    from trajconform.otj.reader import OtjFile

    stream = io.BytesIO(wrong)
    with pytest.raises(Refused) as caught:
        OtjFile(view.FileView(stream), stream)
    assert str(caught.value) == (
        "OTJ-FLAGS-04 header at byte 12: flags 0x0000000c set the reserved bit 2, 3; only bits 0 and 1 have a meaning"
    )
