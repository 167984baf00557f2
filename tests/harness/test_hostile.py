"""Drivers that do harm: the run goes on, cleans up, and says what happened."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from trajconform import kit
from trajconform.cli import main_group
from trajconform.harness.drivertoml import DriverSpec, load_driver
from trajconform.harness.runner import run_cases
from trajconform.harness.setup import setup_driver
from trajconform.harness.verdicts import RunResult, Verdict
from trajconform.vectors.cases import load_cases

HERE = Path(__file__).parent
TOML = """
name = "hostile"
language = "Python"
[run]
command = ["{{python}}", "{here}/hostile.py", "{how}", "{notes}"]
[claims]
otj = ["read", "write"]
"""


def spec(tmp_path: Path, how: str) -> DriverSpec:
    folder = tmp_path / "driver"
    folder.mkdir()
    notes = tmp_path / "notes"
    notes.mkdir()
    (folder / "driver.toml").write_text(TOML.format(here=HERE, how=how, notes=notes))
    return load_driver(folder)


def judged(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch, jobs: int = 1, keep: Path | None = None
) -> RunResult:
    """Four cases in which a reader has to refuse, judged in a temporary folder of our own that has to be empty after."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    cases = load_cases(kit.root(), globs=["otj/header/magic@*"])[:4]
    run = run_cases(spec(tmp_path, how), cases, jobs=jobs, keep=keep)
    assert len(run.results) == 4
    assert not run.interrupted
    return run


def gone(pid: int) -> bool:
    """Whether a process has ended (or is only waiting to be reaped by somebody)."""
    try:
        return b") Z" in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True


def all_gone(tmp_path: Path) -> bool:
    pids = [int(line) for line in (tmp_path / "notes" / "pids").read_text().split()]
    assert pids
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and not all(gone(pid) for pid in pids):
        time.sleep(0.02)
    return all(gone(pid) for pid in pids)


def test_a_driver_that_answers_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = judged(tmp_path, "fine", monkeypatch)
    assert [r.verdict for r in run.results] == [Verdict.PASS] * 4
    assert run.notes == ()


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("how", ["children", "sessions", "daemons"])
def test_no_child_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, jobs: int) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("no /proc: children that left their session are not found")
    run = judged(tmp_path, how, monkeypatch, jobs)
    assert [r.verdict for r in run.results] == [Verdict.PASS] * 4
    assert all_gone(tmp_path)
    if how == "daemons":
        assert any("4 processes of the driver outlived it and had to be killed" in note for note in run.notes), (
            run.notes
        )


def test_a_driver_that_is_deaf_to_signals_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = time.monotonic()
    run = judged(tmp_path, "deaf", monkeypatch)
    assert [r.verdict for r in run.results] == [Verdict.PASS] * 4
    assert time.monotonic() - begun < 8


@pytest.mark.parametrize("how", ["removes-everything", "replaces-scratch", "occupies-places", "fills", "links", "deep"])
def test_what_is_done_to_the_folders_of_a_run_costs_no_other_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    run = judged(tmp_path, how, monkeypatch, keep=tmp_path / "kept")
    verdicts = [r.verdict for r in run.results]
    if how in ("removes-everything", "replaces-scratch"):
        # The input is gone, which a reader must not do: each case on its own.
        assert verdicts == [Verdict.FAIL] * 4
        assert all("was removed" in r.message for r in run.results)
    else:
        assert verdicts == [Verdict.PASS] * 4, [r.message for r in run.results]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_line_of_two_gigabytes_costs_one_case_and_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = judged(tmp_path, "endless-line", monkeypatch)
    assert [r.verdict for r in run.results] == [Verdict.ERROR] * 4
    assert all("flooded its output" in r.message for r in run.results)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def test_escapes_do_not_reach_the_terminal(tmp_path: Path) -> None:
    driver = spec(tmp_path, "escapes")
    for arguments in (
        ["run", "--case", "otj/header/fields@*"],
        ["run", "--case", "otj/header/fields@*", "--plain"],
        ["driver", "check"],
    ):
        told = ["--driver", str(driver.folder)] if arguments[0] == "run" else [str(driver.folder)]
        said = CliRunner().invoke(main_group, [*arguments, *told], standalone_mode=False)
        assert said.return_value == 1, said.output
        assert not [c for c in said.output if not c.isprintable() and c not in "\n\t"], arguments
        assert "owned" in said.output


def test_no_room_left_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Path:
        raise OSError(28, os.strerror(28), "/somewhere/input.otj")

    monkeypatch.setattr("trajconform.harness.judge.write_input", full)
    run = judged(tmp_path, "fine", monkeypatch)
    assert [r.verdict for r in run.results] == [Verdict.ERROR] * 4
    assert run.results[0].message == "the case could not be judged: No space left on device (/somewhere/input.otj)"


def test_links_and_pipes_in_the_folder_of_a_driver(tmp_path: Path) -> None:
    folder = tmp_path / "driver"
    folder.mkdir()
    (folder / "loop").symlink_to(".")
    (folder / "self").symlink_to("self")
    (folder / "nowhere").symlink_to("not-there")
    os.mkfifo(folder / "pipe")
    (folder / "driver.toml").write_text(
        'name = "d"\nlanguage = "C"\n[setup]\ncommands = [["true"]]\n[run]\ncommand = ["{build}/d"]\n[claims]\notj = ["read"]\n'
    )
    driver = load_driver(folder)
    assert [path.name for path in driver.sources()] == ["driver.toml"]
    setup_driver(driver, lambda line: None)
    assert driver.setup_problem() is None
