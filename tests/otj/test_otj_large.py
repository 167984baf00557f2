"""Large files: machine code for checksums, frames too long to hold, threads; all with the findings of the plain way."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_otj import fnv

from trajconform.model.trajectory import OtjHeader
from trajconform.model.work import Work, in_order
from trajconform.otj import checksum, kernel, view
from trajconform.otj.checker import check_otj, stream_findings
from trajconform.otj.checksum import fnv1a64, fnv1a64_rows
from trajconform.otj.reader import open_otj
from trajconform.otj.writer import OtjWriter

needs_llvmlite = pytest.mark.skipif(kernel.load() is None, reason=f"no machine code: {kernel.description()}")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksum, "_COMPILE_FROM", 0)


@needs_llvmlite
@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(0, 2 * kernel.CHAINS + 3),
    length=st.integers(1, 70),
    gap=st.integers(0, 9),
    seed=st.integers(0, 2**32),
)
def test_machine_code_computes_what_the_definition_says(count: int, length: int, gap: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    wide = rng.integers(0, 256, (count, length + gap), dtype=np.uint8)
    wide[rng.integers(0, 2, wide.shape, dtype=bool)] = 0xFF
    rows = wide[:, :length]
    states = rng.integers(0, 2**64, count, dtype=np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checksum, "_COMPILE_FROM", 0)
        assert fnv1a64_rows(rows).tolist() == [fnv(row.tobytes()) for row in rows]
        continued = [checksum.fnv1a64_plain(row.tobytes(), int(s)) for row, s in zip(rows, states, strict=True)]
        assert fnv1a64_rows(rows, states).tolist() == continued


@needs_llvmlite
@pytest.mark.parametrize("extra", [-1, 0, 1, 7, 8, 9])
def test_one_chain_in_machine_code(compiled: None, extra: int) -> None:
    data = np.random.default_rng(extra + 9).integers(0, 256, 5000 + extra, dtype=np.uint8).tobytes()
    assert fnv1a64(data) == fnv(data)
    assert fnv1a64(data[4500:], fnv(data[:4500])) == fnv(data)


@needs_llvmlite
def test_rows_that_are_laid_out_otherwise(compiled: None) -> None:
    rows = np.random.default_rng(1).integers(0, 256, (40, 64), dtype=np.uint8)
    for odd in (rows.T, rows[:, ::2], rows[::-1], rows[:, ::-1]):
        assert fnv1a64_rows(odd).tolist() == [fnv(row.tobytes()) for row in odd]


def test_the_slower_way_is_said_and_taken() -> None:
    code = (
        "from trajconform.otj import kernel, checksum; checksum._COMPILE_FROM = 0; "
        "print(kernel.description()); print(f'{checksum.fnv1a64(bytes(5000)):x}')"
    )
    env = {**os.environ, "TRAJCONFORM_KERNEL": "numpy"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ["numpy (TRAJCONFORM_KERNEL asks for it)", f"{fnv(bytes(5000)):x}"]


def _run(path: Path, particles: int, frames: int, *, single: bool = False) -> bytes:
    precision, dtype = ("single", np.float32) if single else ("double", np.float64)
    values = np.arange(particles, dtype=dtype)
    with OtjWriter(path, OtjHeader(particles, precision, False, np.array(0.5, dtype), values)) as writer:
        for step in range(frames):
            writer.append(step, {"x": values + step, "y": -values, "z": values * 2})
    return path.read_bytes()


def _break(data: bytes, places: list[int]) -> bytes:
    broken = bytearray(data)
    for place in places:
        broken[place] ^= 0x10
    return bytes(broken)


@pytest.mark.parametrize("single", [False, True])
def test_findings_do_not_depend_on_threads_spans_or_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, single: bool
) -> None:
    path = tmp_path / "run.otj"
    data = _run(path, 5, 75, single=single)
    with open_otj(path) as file:
        layout = file.layout
    places = [layout.offset(n) + at for n, at in ((0, 3), (15, 20), (16, layout.frame - 3), (40, 9), (74, 30))]
    path.write_bytes(_break(data, places) + b"a tail")
    plain = check_otj(path)
    assert [v.index for v in plain] == [0, 15, 16, 40, 74]
    assert {v.clause for v in plain} == {"OTJ-SUM-03"}
    for batch, span in ((1, 1 << 16), (1 << 22, 64), (1 << 20, 1), (4000, 1 << 16)):
        monkeypatch.setattr(view, "_BATCH", batch)
        monkeypatch.setattr(view, "_SPAN", span)
        for jobs in (1, 3):
            assert check_otj(path, Work(jobs=jobs)) == plain
            assert [v.index for v in check_otj(path, Work(jobs=jobs, frames=(15, 41)))] == [15, 16, 40]
        with open_otj(path) as file:
            assert [frame.step for frame in file.frames(1, 15)] == list(range(1, 15))
            assert [f.x.tolist() for f in file.frames(3, 5)] == [[3.0, 4, 5, 6, 7], [4.0, 5, 6, 7, 8]]
        assert not list(stream_findings(io.BytesIO(data)))
        assert list(stream_findings(io.BytesIO(path.read_bytes()), Work(jobs=2))) == plain


def test_quick_looks_at_the_header_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.otj"
    data = _run(path, 2, 3)
    path.write_bytes(_break(data, [len(data) - 1, 34]))
    assert [v.clause for v in check_otj(path, Work(quick=True))] == ["OTJ-SUM-02"]
    assert [v.clause for v in check_otj(path)] == ["OTJ-SUM-02", "OTJ-SUM-03"]


def test_progress_ends_at_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "_BATCH", 1 << 18)
    path = tmp_path / "run.otj"
    _run(path, 100, 1000)
    for jobs in (1, 2):
        told: list[tuple[int, int]] = []
        check_otj(path, Work(jobs=jobs), lambda done, total: told.append((done, total)))  # noqa: B023
        assert told == sorted(told)
        assert told[-1] == (1000 * 2424, 1000 * 2424)
        assert len(told) > 1


def test_a_file_that_becomes_shorter_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "run.otj"
    data = _run(path, 1000, 200)
    with path.open("r+b", buffering=0) as stream:
        found = stream_findings(stream)
        view_made = iter(found)
        stream.truncate(len(data) // 2)
        # The length is taken when the first finding is asked for: shorten it after that.
        assert list(view_made) == []
        stream.seek(0)
        stream.write(data)
        file = view.FileView(stream)
        stream.truncate(len(data) // 2)
        with pytest.raises(OSError, match="became shorter while it was read"):
            file.batch(150, 160)


@pytest.mark.parametrize("particles", [1 << 12, 1 << 22])
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_sparse_files_cost_little_memory(tmp_path: Path, particles: int) -> None:
    """Nothing is held because a header announces it, even where the file is as long as it says."""
    path = tmp_path / "sparse.otj"
    data = bytearray(_run(tmp_path / "small.otj", 0, 0))
    data[16:24] = particles.to_bytes(8, "little")
    header = 24 + 8 + 8 * particles + 8
    frame = 8 + 8 + 24 * particles + 8
    with path.open("wb") as stream:
        stream.write(data)
        stream.truncate(header + max(2, (64 << 20) // frame) * frame)
    code = (
        "import re, sys; from trajconform.otj.checker import check_otj; "
        "n = sum(1 for _ in check_otj(sys.argv[1])); "
        "print(n, re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )
    out = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True).stdout
    count, peak = map(int, out.split())
    assert count > 0
    assert peak < 150 << 10  # KiB


def test_in_order_keeps_order_and_stops_early() -> None:
    done: list[int] = []

    def slow(number: int) -> int:
        done.append(number)
        return number * number

    assert list(in_order(slow, range(50), 4)) == [n * n for n in range(50)]
    done.clear()
    results = in_order(slow, range(10_000), 3)
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    results.close()  # type: ignore[attr-defined]
    assert len(done) < 20


def test_an_error_in_a_thread_comes_out(tmp_path: Path) -> None:
    def fails(number: int) -> int:
        raise OSError(f"number {number}")

    with pytest.raises(OSError, match="number 0"):
        list(in_order(fails, range(9), 3))
