"""Pipes and devices that a driver leaves cost a case, not the run: nothing is opened that may never answer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from trajconform import kit
from trajconform.harness.inprocess import InProcess
from trajconform.harness.runner import run_cases
from trajconform.harness.verdicts import Verdict
from trajconform.report.console import shown
from trajconform.vectors.cases import load_cases


class Leaves:
    """A writer that leaves something else than a file where the file should be, or a reader that adds a pipe."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.path = Path()

    def hello(self) -> dict[str, Any]:
        return {
            "name": "leaves",
            "version": "1",
            "language": "Python",
            "formats": {"otj": ["read", "write"]},
            "features": [],
        }

    def create(self, format: str, path: str, **_: Any) -> None:  # noqa: A002
        self.path = Path(path)
        if self.kind == "pipe":
            os.mkfifo(self.path)
        elif self.kind == "device":
            self.path.symlink_to("/dev/zero")
        else:
            self.path.touch()
            os.truncate(self.path, 2**42)

    def append(self, frame: Any, step: Any = None, time: Any = None) -> None:
        return None

    def flush(self) -> None:
        return None

    def close(self) -> None:
        return None

    def read(self, format: str, path: str, frames: Any = None) -> dict[str, Any]:  # noqa: A002
        Path(path).unlink()
        os.mkfifo(path)
        return {}


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse"])
def test_a_writer_that_leaves_no_file(kind: str) -> None:
    cases = load_cases(kit.root(), globs=["otj/header/write-mass-count*"])[:2]
    assert cases
    run = run_cases(InProcess("leaves", lambda: Leaves(kind)), cases)
    assert [r.verdict for r in run.results] == [Verdict.FAIL] * len(cases)


def test_a_reader_that_turns_its_input_into_a_pipe() -> None:
    cases = load_cases(kit.root(), globs=["otj/frame/unordered-steps*", "otj/counting/*"])[:2]
    assert cases
    run = run_cases(InProcess("leaves", lambda: Leaves("pipe")), cases)
    assert all(r.verdict in (Verdict.FAIL, Verdict.ERROR) for r in run.results)


def test_text_of_a_driver_cannot_speak_to_the_terminal() -> None:
    assert shown("a\x1b[2Jb\x07\nc\td") == "a\\x1b[2Jb\\x07\nc\td"
    assert shown("x" * 5000).endswith("3000 more characters")
