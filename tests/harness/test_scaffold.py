"""`driver new`: what it writes runs at once and is judged, in every language whose tools are here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from trajconform import kit
from trajconform.cli import main_group
from trajconform.harness.drivertoml import load_driver
from trajconform.harness.runner import greet, run_cases
from trajconform.harness.scaffold import FORMATS, LANGUAGES, new_driver
from trajconform.harness.verdicts import Verdict
from trajconform.model.errors import TrajconformError
from trajconform.vectors.cases import load_cases

TOOLS = {"python": (), "node": ("node",), "c": ("gcc", "make"), "rust": ("cargo",)}
FILES = {
    "python": {"driver.py", "reader.py"},
    "node": {"driver.mjs", "reader.mjs"},
    "c": {"main.c", "reader.c", "reader.h", "json.c", "json.h", "buffer.c", "buffer.h", "Makefile"},
    "rust": {"Cargo.toml", "src/main.rs", "src/json.rs", "src/reader.rs"},
}


def needs(language: str) -> None:
    missing = [tool for tool in TOOLS[language] if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{language} drivers need {', '.join(missing)}, not on PATH here")


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_driver_runs_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str, format_name: str
) -> None:
    needs(language)
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(main_group, ["driver", "new", "--language", language, "--format", format_name, "mine"])
    assert said.exit_code == 0, said.output
    assert "next: trajconform run --driver mine" in said.output
    spec = load_driver(tmp_path / "mine")
    assert spec.name == "mine"
    assert spec.setup_problem() is None
    written = {str(path.relative_to(spec.folder)) for path in spec.sources()} - {"Cargo.lock"}
    assert written == FILES[language] | {"driver.toml"}
    assert greet(spec)["formats"] == {format_name: ["read"]}
    texts = {path: path.read_text("utf-8") for path in [*spec.sources(), spec.folder / "README.md"]}
    assert not [path for path, text in texts.items() if "@NAME@" in text or "@FORMAT@" in text]

    topics = {"otj": ("header", "flags", "conventions"), "mrec": ("step-and-time", "commit-marker", "record")}[
        format_name
    ]
    cases = [
        case
        for case in load_cases(kit.root())
        if case.format == format_name and case.role == "reader" and case.topic in topics and case.read_frames is None
    ]
    run = run_cases(spec, cases, jobs=2)
    verdicts = [result.verdict for result in run.results]
    assert verdicts.count(Verdict.FAIL) == verdicts.count(Verdict.ERROR) == 0
    if format_name == "otj":
        assert verdicts.count(Verdict.SKIP) == 0
    assert verdicts.count(Verdict.PASS) > {"otj": 500, "mrec": 70}[format_name]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    new_driver(tmp_path / "mine", "python", "otj")  # an empty folder is fine
    before = {path: path.read_bytes() for path in (tmp_path / "mine").iterdir()}
    said = CliRunner().invoke(main_group, ["driver", "new", "--language", "node", str(tmp_path / "mine")])
    assert isinstance(said.exception, TrajconformError)
    assert "is there already and is left as it is" in str(said.exception)
    assert {path: path.read_bytes() for path in (tmp_path / "mine").iterdir()} == before
    (tmp_path / "file").write_text("")
    with pytest.raises(TrajconformError, match="is there already"):
        new_driver(tmp_path / "file", "python", "otj")


@pytest.mark.parametrize("name", ["Mine", "my driver", "-mine", "mïne", ".mine"])
def test_a_name_that_no_driver_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(TrajconformError, match="cannot be the name of a driver"):
        new_driver(tmp_path / name, "python", "otj")
    assert not (tmp_path / name).exists()


def test_a_language_that_there_is_no_driver_in(tmp_path: Path) -> None:
    said = CliRunner().invoke(main_group, ["driver", "new", "--language", "cobol", str(tmp_path / "mine")])
    assert said.exit_code == 2
    assert all(language in said.output for language in ("cobol", *LANGUAGES))
    assert not (tmp_path / "mine").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrajconformError, match=r"cannot write the driver: .*file"):
        new_driver(tmp_path / "file" / "mine", "python", "otj")


def test_a_missing_tool_is_named_and_the_files_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = CliRunner().invoke(main_group, ["driver", "new", "--language", "rust", str(tmp_path / "mine")])
    assert said.exit_code == 0
    assert "not built: cargo must be on PATH; then: trajconform driver setup" in said.output
    assert (tmp_path / "mine" / "src" / "reader.rs").is_file()


def test_what_a_driver_builds_is_not_for_its_repository(tmp_path: Path) -> None:
    needs("c")
    said = CliRunner().invoke(main_group, ["driver", "new", "--language", "c", str(tmp_path / "mine")])
    assert said.exit_code == 0
    assert (tmp_path / "mine" / ".build" / ".gitignore").read_text() == "*\n"


def test_the_page_of_the_protocol_is_printed() -> None:
    said = CliRunner().invoke(main_group, ["driver", "protocol"])
    assert said.output == (kit.root() / "harness" / "PROTOCOL.md").read_text("utf-8")
