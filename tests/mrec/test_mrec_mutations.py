"""A short run of the seeded mutations, and what their judge says about a reader that is not of one mind with itself."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import mutate_mrec
from trajconform.model.errors import Refused, Violation

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "vectors" / "mrec" / "stores" / "growth.mrec"
CLAUSES = mutate_mrec.reader_clauses()


def test_a_short_run_finds_nothing() -> None:
    script = ROOT / "tests" / "mutate_mrec.py"
    command = [sys.executable, str(script), "--count", "300", "--jobs", "1", "--seed", "2024"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "300 mutations with seed 2024" in ended.stdout
    assert " 0 failures" in ended.stdout


def test_a_number_always_makes_the_same_mutation(tmp_path: Path) -> None:
    goldens = mutate_mrec.golden_trees()
    for number in range(40):
        name, first = mutate_mrec.make(goldens, 11, number)
        again, second = mutate_mrec.make(goldens, 11, number)
        assert (name, first.log, first.tree.files) == (again, second.log, second.tree.files)
    logs = [mutate_mrec.make(goldens, 11, number)[1].log for number in range(200)]
    kinds = {line.split(":")[0].split(" ")[0] for log in logs for line in log}
    assert {"metadata", "values", "shard", "bytes", "tree", "text", "claims", "packed", "declaration"} <= kinds


@pytest.fixture
def store(tmp_path: Path) -> Path:
    signal.signal(signal.SIGALRM, mutate_mrec._alarm)
    return Path(shutil.copytree(GOLDEN, tmp_path / "growth.mrec"))


def test_a_healthy_store_is_accepted(store: Path) -> None:
    assert mutate_mrec.judge(store, CLAUSES) == ("accepted", "")


def test_a_crash_a_hang_and_a_difference_are_told_apart(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(path: Path) -> Any:
        raise ZeroDivisionError(path)

    def hang(path: Path) -> Any:
        time.sleep(60)

    def refuse(path: Path) -> Any:
        raise Refused(Violation("MREC-COMMIT-04", "trajectory", "no"))

    monkeypatch.setattr(mutate_mrec, "SECONDS", 1)
    for stand_in, word, said in (
        (crash, "crash", "ZeroDivisionError"),
        (hang, "hang", "TimeoutError"),
        (refuse, "differ", "the reader says MREC-COMMIT-04, the checker accepted"),
    ):
        monkeypatch.setattr(mutate_mrec, "open_mrec", stand_in)
        verdict, detail = mutate_mrec.judge(store, CLAUSES)
        assert verdict == word
        assert said in detail


def test_a_checker_that_reports_what_the_reader_takes_differs(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = Violation("MREC-BLOCK-05", "trajectory/atoms/step_index", "no")
    monkeypatch.setattr(mutate_mrec, "check_mrec", lambda path: [finding])
    assert mutate_mrec.judge(store, CLAUSES)[0] == "differ"
    monkeypatch.setattr(mutate_mrec, "check_mrec", lambda path: [Violation("MREC-STEP-01", "trajectory/step", "no")])
    assert mutate_mrec.judge(store, CLAUSES) == ("accepted", "")
