"""Files that another program wrote: two bodies on a Kepler orbit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from plain_otj import sound_frames

from trajconform.otj.checker import check_otj
from trajconform.otj.inspect import inspect_otj
from trajconform.otj.reader import open_otj


@pytest.fixture(params=["double", "single"])
def kepler(real_data: Path, request: pytest.FixtureRequest) -> Path:
    path = real_data / f"kepler-{request.param}.otj"
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the real trajectory files")
    return path


def test_it_conforms_and_says_what_it_is(kepler: Path) -> None:
    assert check_otj(kepler) == []
    facts = inspect_otj(kepler)
    assert (facts["particles"], facts["frames"], facts["velocities"], facts["tail"]) == (2, 11, False, "clean")
    assert facts["precision"] == kepler.stem.removeprefix("kepler-")
    assert (facts["first"]["step"], facts["last"]["step"]) == (0, 200)


def test_physics(kepler: Path) -> None:
    """Two equal masses about their common centre: positions mirror each other, and stay in the plane."""
    with open_otj(kepler) as file:
        frames = list(file)
    assert [frame.step for frame in frames] == list(range(0, 220, 20))
    for frame in frames:
        assert np.array_equal(frame.x[0], -frame.x[1])
        assert np.array_equal(frame.y[0], -frame.y[1])
        assert not frame.z.any()
        assert float(frame.time) == pytest.approx(frame.step * float(file.header.timestep), rel=1e-6)


def test_cut_anywhere(kepler: Path, tmp_path: Path) -> None:
    data = kepler.read_bytes()
    path = tmp_path / "cut.otj"
    header = len(data) - sum(map(len, sound_frames(data).values()))
    for length in range(header, len(data)):
        path.write_bytes(data[:length])
        with open_otj(path) as file:
            assert len(list(file)) == len(sound_frames(data[:length])) == len(file)
