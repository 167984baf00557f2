"""A check of some frames looks at the rows that these frames resolve to, and at no others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trajconform.cli import main
from trajconform.model.trajectory import Block, Column, Frame, MetaValue
from trajconform.model.work import Work
from trajconform.mrec.checker import check_mrec
from trajconform.mrec.writer import MrecWriter

FRAMES, ATOMS = 40, 2048
"""Frames of 16 KiB a column: an inner chunk each."""


@pytest.fixture(params=["regular", "ragged"])
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Sound but for one byte: the last of the rows of frame 30 on in the column x."""
    path = tmp_path / "run.mrec"
    column = {"dtype": "f64", "trailing": []}
    declaration = {
        "version": 1,
        "blocks": {"atoms": {"columns": {"x": column, "y": column}}},
        "meta": {"energy": {"dtype": "f64"}},
    }
    with MrecWriter.create(path, declaration) as writer:
        for i in range(FRAMES):
            # The last update comes at frame 30 and is carried forward to the end.
            if i <= 30 and (request.param == "regular" or i != 5):
                rows = np.full(ATOMS, float(i))
                blocks = {"atoms": Block(ATOMS, {"x": Column(rows), "y": Column(rows)})}
            else:
                blocks = {}
            writer.append(Frame(i * i, blocks, meta={"energy": MetaValue("f64", np.array(float(i)))}))
    shard = path / "trajectory/atoms/x/c/0"
    data = bytearray(shard.read_bytes())
    data[-20] ^= 1
    shard.write_bytes(data)
    return path


def clauses(path: Path, frames: tuple[int, int] | None) -> set[str]:
    return {violation.clause for violation in check_mrec(path, Work(frames=frames))}


def test_damage_is_found_at_the_frames_that_resolve_to_it(damaged: Path) -> None:
    assert clauses(damaged, None)
    for frames in ((30, 31), (0, 31), (30, FRAMES), (39, 40), (35, 1000)):
        assert clauses(damaged, frames) == clauses(damaged, None), frames


def test_damage_elsewhere_is_not(damaged: Path) -> None:
    for frames in ((0, 30), (29, 30), (0, 1), (0, 0), (50, 60)):
        assert clauses(damaged, frames) == set(), frames


def test_the_option_of_the_command(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for frames, status in (("0:30", 0), ("30:", 1), (":31", 1)):
        with pytest.raises(SystemExit) as stop:
            main(["check", str(damaged), "--frames", frames])
        assert (stop.value.code or 0) == status, capsys.readouterr()


def test_steps_that_go_back_are_found_where_they_are_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "steps.mrec"
    with MrecWriter.create(path, {"version": 1, "blocks": {}, "meta": {}}) as writer:
        for i in range(10):
            writer._last_step = None  # let it write what it would refuse
            writer.append(Frame(i if i != 6 else 2, {}))
    assert clauses(path, None) == {"MREC-STEP-01"}
    assert clauses(path, (4, 8)) == {"MREC-STEP-01"}
    assert clauses(path, (0, 6)) == set()
    assert clauses(path, (7, 10)) == set()
