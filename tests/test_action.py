"""action.yml: its steps run here as GitHub's runner runs them, but for the one that installs the kit."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml

from trajconform import kit

FILE = kit.root() / "action.yml"
pytestmark = pytest.mark.skipif(
    not FILE.exists() or shutil.which("bash") is None, reason="needs a checkout of the kit (for action.yml) and bash"
)


def filled(text: str, values: dict[str, str]) -> str:
    """Text with its expressions replaced; one that the runner could not fill in is a KeyError."""
    return re.sub(r"\$\{\{ *([\w.]+) *\}\}", lambda found: values[found[1]], text)


def act(folder: Path, **given: str) -> tuple[int, str, Path]:
    """Status and output of the action's steps in a folder, and the folder of reports that it says it wrote."""
    action = yaml.safe_load(FILE.read_text("utf-8"))
    assert action["runs"]["using"] == "composite"
    declared: dict[str, Any] = action["inputs"]
    assert set(given) <= set(declared)
    values = {f"inputs.{name}": given.get(name, one.get("default", "")) for name, one in declared.items()}
    values["steps.install.outputs.python"] = sys.executable  # the step that is left out: it asks a package index
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash", "a composite action has to say so for every step"
        assert "${{" not in step["run"], "what stands in an input must not become part of a script"
        if step["id"] == "install":
            assert "python=" in step["run"] and "GITHUB_OUTPUT" in step["run"]
            continue
        outputs, script = folder / f"{step['id']}.outputs", folder / f"{step['id']}.sh"
        outputs.touch()
        script.write_text(step["run"], "utf-8")
        set_by_runner = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "GITHUB_ACTION_PATH": str(kit.root()),
            "GITHUB_WORKSPACE": str(folder),
            "RUNNER_TEMP": str(folder / "temporary"),
        }
        own = {name: filled(str(text), values) for name, text in step.get("env", {}).items()}
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=folder,
            env={**os.environ, **set_by_runner, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        for line in outputs.read_text("utf-8").splitlines():
            name, _, value = line.partition("=")
            values[f"steps.{step['id']}.outputs.{name}"] = value
        if ended.returncode:
            break
    return ended.returncode, ended.stdout, folder / filled(action["outputs"]["report"]["value"], values)


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """The naive reader of mrec, of which nothing is recorded, in a folder whose name has a blank."""
    naive = kit.root() / "harness" / "drivers" / "naive"
    folder = tmp_path / "a driver"
    shutil.copytree(naive, folder, ignore=shutil.ignore_patterns("known-failures.yaml", "__pycache__"))
    return folder


def spoil(driver: Path) -> None:
    """Make a row that falls on a frame count only behind it."""
    text = (driver / "driver.py").read_text("utf-8")
    assert text.count("if ordinal <= i:") == 2
    (driver / "driver.py").write_text(text.replace("if ordinal <= i:", "if ordinal < i:"), "utf-8")


def reports(folder: Path) -> tuple[dict[str, Any], ElementTree.Element]:
    assert "<html" in (folder / "report.html").read_text("utf-8")
    return json.loads((folder / "report.json").read_text("utf-8")), ElementTree.parse(folder / "junit.xml").getroot()


def test_a_driver_that_conforms_passes(tmp_path: Path, driver: Path) -> None:
    status, out, folder = act(tmp_path, driver="a driver", format="mrec", role="reader", topic="states regular")
    assert status == 0, out
    report, junit = reports(folder)
    assert folder == tmp_path / "trajconform-report"
    assert {case["case"].split("/")[1] for case in report["cases"]} == {"states", "regular"}
    assert {case["role"] for case in report["cases"]} == {"reader"}
    assert len(list(junit.iter("testcase"))) == len(report["cases"]) > 10
    assert not list(junit.iter("failure")) and "::error" not in out
    assert "conforms to every clause that was tested" in (tmp_path / "summary.md").read_text("utf-8")


def test_one_that_does_not_fails_and_leaves_the_reports(tmp_path: Path, driver: Path) -> None:
    spoil(driver)
    status, out, folder = act(tmp_path, driver="a driver", topic="states", report="out/of it")
    assert status == 1, out
    report, junit = reports(folder)
    assert folder == tmp_path / "out" / "of it"
    assert len(list(junit.iter("failure"))) == report["counts"]["FAIL"] > 0
    assert "::error title=FAIL mrec/states/" in out and "MREC-STATE-" in out
    assert "does not conform" in (tmp_path / "summary.md").read_text("utf-8")


def test_known_failures_pass_until_they_change(tmp_path: Path, driver: Path) -> None:
    known = tmp_path / "known.yaml"
    spoil(driver)
    act(tmp_path, driver="a driver", topic="states", report="first")
    failed = [case for case in reports(tmp_path / "first")[0]["cases"] if case["verdict"] == "FAIL"]
    entries = [{"case": one["case"], "clause": one["judges"][0], "reason": "a row counts too late"} for one in failed]
    known.write_text(yaml.safe_dump(entries), "utf-8")
    status, out, _ = act(tmp_path, driver="a driver", topic="states", expect="known.yaml")
    assert status == 0, out
    known.write_text(yaml.safe_dump(entries[1:]), "utf-8")
    status, out, _ = act(tmp_path, driver="a driver", topic="states", expect="known.yaml")
    assert status == 1 and f"{entries[0]['case']}" in out


def test_an_input_is_no_script(tmp_path: Path) -> None:
    status, out, _ = act(tmp_path, driver="$(touch made); touch made")
    assert status == 2 and "there is no driver" in out
    assert not (tmp_path / "made").exists()
