"""What `inspect` says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trajconform.otj.inspect import inspect_otj

FILES = Path(__file__).resolve().parents[2] / "vectors" / "otj" / "files"


def test_a_whole_file() -> None:
    assert inspect_otj(FILES / "single-velocities.otj") == {
        "particles": 3,
        "precision": "single",
        "timestep": 0.1,
        "velocities": True,
        "frames": 3,
        "first": {"step": 0, "time": 0.0},
        "last": {"step": 20, "time": 2.0},
        "tail": "clean",
    }


def test_no_frames() -> None:
    facts = inspect_otj(FILES / "no-frames-double.otj")
    assert (facts["frames"], facts["first"], facts["last"], facts["tail"]) == (0, None, None, "clean")


@pytest.mark.parametrize(
    ("change", "frames", "tail"),
    [
        (lambda d: d[:199], 1, "cut: 71 of the 72 bytes of frame 1"),
        (lambda d: d[:150] + b"\xff" + d[151:], 1, "damaged: frame 1 has a wrong checksum, 144 bytes from there on"),
    ],
)
def test_tails(tmp_path: Path, change: object, frames: int, tail: str) -> None:
    path = tmp_path / "file.otj"
    path.write_bytes(change((FILES / "double-positions.otj").read_bytes()))  # type: ignore[operator]
    facts = inspect_otj(path)
    assert (facts["frames"], facts["tail"], facts["last"]) == (frames, tail, {"step": 0, "time": 0.0})


@pytest.mark.parametrize(
    ("name", "timestep"),
    [
        ("timestep-nan", "NaN"),
        ("timestep-infinite", "Infinity"),
        ("timestep-negative-single", -0.1),
        ("time-overflow", 1.5e308),
    ],
)
def test_scalars_are_json(name: str, timestep: object) -> None:
    facts = inspect_otj(FILES / f"{name}.otj")
    assert facts["timestep"] == timestep
    json.dumps(facts, allow_nan=False)
