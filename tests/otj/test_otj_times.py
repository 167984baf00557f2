"""Times against exact rational arithmetic."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from plain_otj import time_of

from trajconform.otj.format import frame_times

STEPS = st.one_of(
    st.integers(0, 2**64 - 1), st.integers(0, 200), st.integers(2**24 - 9, 2**26), st.integers(2**53, 2**54)
)


@given(STEPS, st.floats(allow_nan=False, allow_infinity=False))
@example(2**53 + 1, 0.1)
@example(2**64 - 1, 5e-324)
@example(3, 1e308)
@example(0, -0.0)
def test_double(step: int, timestep: float) -> None:
    got = frame_times(np.array([step], dtype="<u8"), np.array(timestep, dtype="<f8"))
    assert got.dtype == np.dtype("<f8")
    assert got.tobytes() == struct.pack("<d", time_of(step, timestep, single=False))


@given(STEPS, st.floats(allow_nan=False, allow_infinity=False, width=32))
@example(2**24 + 1, 1.0)
@example(2**63 + 2**39 + 1, 1.0)
@example(16777217, float(np.float32(0.1)))
@example(0, -1.5)
@example(2, 2.0e38)
def test_single(step: int, timestep: float) -> None:
    got = frame_times(np.array([step], dtype="<u8"), np.array(timestep, dtype="<f4"))
    assert got.dtype == np.dtype("<f4")
    right = time_of(step, float(np.float32(timestep)), single=True)
    with np.errstate(over="ignore"):
        assert got.tobytes() == np.float32(right).tobytes()
        assert np.isinf(got[0]) or float(got[0]) == right  # the oracle rounded already, the cast above changed nothing


def test_infinite_and_nan_timesteps() -> None:
    steps = np.array([0, 1, 9], dtype="<u8")
    endless = frame_times(steps, np.array(np.inf))
    assert np.isnan(endless[0])
    assert endless[1:].tolist() == [np.inf, np.inf]
    assert np.isnan(frame_times(steps, np.array(np.nan, dtype="<f4"))).all()


def test_the_table_of_the_specification(repository: Path) -> None:
    text = (repository / "spec/otj/frame.md").read_text("utf-8")
    rows = re.findall(r"^\| (double|single) \| (\d+) \| ([\d.]+) \| (\d+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert len(rows) == 6
    for precision, step, timestep, count, time in rows:
        dtype = "<f4" if precision == "single" else "<f8"
        assert int(np.array([int(step)], dtype="<u8").astype(dtype)[0]) == int(count)
        got = frame_times(np.array([int(step)], dtype="<u8"), np.array(float(timestep), dtype=dtype))
        assert float(got[0]) == float(time) == time_of(int(step), float(timestep), precision == "single")


@pytest.mark.parametrize("golden", ["straight-to-single", "two-roundings-single", "time-rounding-double"])
def test_goldens_meant_to_tell_roundings_apart_do(repository: Path, golden: str) -> None:
    """Each of these files has a frame whose time another way of rounding would get wrong."""
    import yaml

    declaration = yaml.safe_load((repository / f"vectors/otj/files/{golden}.yaml").read_text("utf-8"))
    if declaration["precision"] == "single":
        timestep = np.float32(declaration["timestep"])
        others = [
            [np.float32(np.float64(f["step"])) * timestep for f in declaration["frames"]],
            [np.float32(np.float64(f["step"]) * np.float64(timestep)) for f in declaration["frames"]],
        ]
    else:
        others = [[np.float64(round(f["step"] * declaration["timestep"], 1)) for f in declaration["frames"]]]
    times = [f["time"] for f in declaration["frames"]]
    assert any([float(t) for t in other] != times for other in others)
