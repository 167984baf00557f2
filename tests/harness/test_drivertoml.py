"""Drivers are found by name and folder, `driver.toml` is held to its schema, a stale set-up is noticed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trajconform.harness import drivertoml
from trajconform.harness.drivertoml import DriverSpec, find_python, list_drivers, load_driver, resolve_driver
from trajconform.harness.inprocess import InProcess
from trajconform.harness.process import MIB
from trajconform.harness.setup import setup_driver
from trajconform.model.errors import TrajconformError

MINIMAL = """
name = "tiny"
language = "C"
[run]
command = ["{build}/tiny", "{driver}"]
[claims]
otj = ["read"]
"""


def folder_with(path: Path, text: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "driver.toml").write_text(text)
    return path


def test_a_minimal_file_gets_the_defaults(tmp_path: Path) -> None:
    spec = load_driver(folder_with(tmp_path / "tiny", MINIMAL))
    assert (spec.name, spec.language, spec.claims, spec.features) == ("tiny", "C", {"otj": ("read",)}, ())
    assert spec.limits.request_seconds == 20
    assert [spec.expand(part) for part in spec.command] == [f"{spec.folder}/.build/tiny", str(spec.folder)]
    assert spec.setup_problem() is None
    assert spec.known_failures is None


def test_limits_and_known_failures_are_read(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "tiny", MINIMAL + "[limits]\nrequest_seconds = 1.5\nreply_mib = 2\n")
    (folder / "known-failures.yaml").write_text("[]")
    spec = load_driver(folder)
    assert (spec.limits.request_seconds, spec.limits.reply_bytes) == (1.5, 2 * MIB)
    assert spec.known_failures == folder / "known-failures.yaml"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "Invalid value"),
        (MINIMAL.replace('language = "C"', ""), "'language' is a required property"),
        (MINIMAL.replace('"read"', '"reads"'), r"claims\.otj\[0\]: 'reads' is not one of"),
        (MINIMAL + "[limits]\nrequest_seconds = 0\n", r"limits\.request_seconds"),
        (MINIMAL + "[extra]\n", "'extra' was unexpected"),
        (MINIMAL + '[setup]\nrequires_python = "new"\n', "'new' is no version specifier"),
    ],
)
def test_faults_of_the_file_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(TrajconformError, match=words) as caught:
        load_driver(folder_with(tmp_path / "tiny", text))
    assert "driver.toml" in str(caught.value)


def test_an_unknown_placeholder_is_named(tmp_path: Path) -> None:
    spec = load_driver(folder_with(tmp_path / "tiny", MINIMAL))
    with pytest.raises(TrajconformError, match=r"unknown placeholder \{home\}"):
        spec.expand("{home}/x")
    assert spec.expand('{"json": {}} {0}') == '{"json": {}} {0}'


def test_drivers_are_resolved_by_folder_file_name_and_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_with(tmp_path / "tiny", MINIMAL)
    by_folder, by_file = resolve_driver(str(folder)), resolve_driver(str(folder / "driver.toml"))
    assert isinstance(by_folder, DriverSpec)
    assert by_folder == by_file
    external = resolve_driver("reference")
    assert isinstance(external, DriverSpec)
    assert external.reference == "reference"
    assert resolve_driver(None) is drivertoml.REFERENCE
    (tmp_path / "mine.py").write_text("class Mine:\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    mine = resolve_driver("mine:Mine")
    assert isinstance(mine, InProcess)
    assert type(mine.factory()).__name__ == "Mine"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no-such-driver", "there is no driver 'no-such-driver'.*reference"),
        ("no_such_module:Thing", "cannot load the driver"),
        ("json:Thing", "has no attribute 'Thing'"),
    ],
)
def test_a_driver_that_is_not_there(text: str, words: str) -> None:
    with pytest.raises(TrajconformError, match=words):
        resolve_driver(text)


def test_a_folder_without_the_file(tmp_path: Path) -> None:
    with pytest.raises(TrajconformError, match=r"has no driver\.toml"):
        resolve_driver(str(tmp_path))


def test_the_bundled_drivers_load() -> None:
    specs = list_drivers()
    assert "reference" in [spec.name for spec in specs]
    assert all(spec.description for spec in specs)


def test_set_up_runs_commands_and_notices_change(tmp_path: Path) -> None:
    text = (
        MINIMAL
        + """
[setup]
needs = ["sh"]
commands = [["sh", "-c", "echo one; cp tiny.c {build}/tiny"], ["sh", "-c", "echo two >&2"]]
"""
    )
    folder = folder_with(tmp_path / "tiny", text)
    (folder / "tiny.c").write_text("int main;")
    spec = load_driver(folder)
    assert f"not set up; run: trajconform driver setup {folder}" in (spec.setup_problem() or "")
    lines: list[str] = []
    log = setup_driver(spec, lines.append)
    assert "".join(lines).count("tiny: [") == 2
    assert "ready" in lines[-1]
    assert [line for line in log.read_text().splitlines() if not line.startswith("$")] == ["one", "two"]
    assert (spec.build / "tiny").read_text() == "int main;"
    assert spec.setup_problem() is None
    (folder / "README.md").write_text("words alone change nothing")
    assert spec.setup_problem() is None
    (folder / "tiny.c").write_text("int main(void);")
    assert "has changed since it was set up" in (spec.setup_problem() or "")
    setup_driver(spec, lines.append, fresh=True)
    assert spec.setup_problem() is None


def test_a_failing_command_shows_its_output_and_leaves_the_driver_not_set_up(tmp_path: Path) -> None:
    text = MINIMAL + '[setup]\ncommands = [["sh", "-c", "echo missing header foo.h >&2; exit 3"]]\n'
    spec = load_driver(folder_with(tmp_path / "tiny", text))
    with pytest.raises(TrajconformError) as caught:
        setup_driver(spec, lambda line: None)
    assert "setting up tiny failed with status 3" in str(caught.value)
    assert "  | missing header foo.h" in str(caught.value)
    assert str(spec.build / "setup.log") in str(caught.value)
    assert spec.setup_problem()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    text = MINIMAL + '[setup]\nneeds = ["sh", "no-such-tool"]\ncommands = [["true"]]\n'
    with pytest.raises(TrajconformError, match="needs no-such-tool, which is not on PATH"):
        setup_driver(load_driver(folder_with(tmp_path / "tiny", text)), lambda line: None)
    text = MINIMAL + '[setup]\ncommands = [["./no-such-script"]]\n'
    with pytest.raises(TrajconformError, match=r"cannot run \./no-such-script: No such file"):
        setup_driver(load_driver(folder_with(tmp_path / "tiny", text)), lambda line: None)


def test_the_running_interpreter_is_preferred() -> None:
    assert find_python(">=3.8", "tiny") == sys.executable


def test_another_interpreter_is_found_among_those_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, output in (
        ("python3.12", "echo not active >&2; exit 127"),
        ("python3.13", "echo 3.99.1"),
        ("python3", "echo 3.98.4"),
    ):
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\n{output}\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    find_python.cache_clear()
    assert find_python(">=3.98", "tiny") == str(tmp_path / "python3")
    assert find_python("==3.99.*", "tiny") == str(tmp_path / "python3.13")
    with pytest.raises(
        TrajconformError, match=r"needs a Python interpreter >=4 and there is none; found: .*3\.98\.4, 3\.99\.1"
    ):
        find_python(">=4", "tiny")
    find_python.cache_clear()


def test_a_driver_in_a_read_only_folder_builds_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = load_driver(folder_with(tmp_path / "tiny", MINIMAL))
    monkeypatch.setattr(drivertoml.os, "access", lambda path, mode: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert spec.build.parent == tmp_path / "cache" / "trajconform" / "drivers"
    assert spec.build.name.startswith("tiny-")
