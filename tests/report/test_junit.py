"""JUnit XML: valid by the schema, and it says of every case what the run said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.report.runs import HOSTILE, a_run
from trajconform.cli import main
from trajconform.harness.verdicts import Deviation, RunResult
from trajconform.report.junit import write_junit
from trajconform.spec.catalogue import load_catalogue

SCHEMA = etree.XMLSchema(etree.parse(str(Path(__file__).with_name("junit.xsd"))))
RUN = {
    "mrec/states/a": "PASS",
    "mrec/states/b": "FAIL",
    "mrec/states/c": "ERROR",
    "otj/flags/x@1": "SKIP",
    "otj/tail/z": "INFO",
}


def written(tmp_path: Path, run: RunResult) -> Any:
    path = tmp_path / "deep" / "junit.xml"
    write_junit(path, run, load_catalogue(), "path/to driver")
    document = etree.parse(str(path))
    SCHEMA.assertValid(document)
    return document.getroot()


def outcomes(root: Any) -> dict[str, str]:
    return {case.get("name"): case[0].tag if len(case) else "passed" for case in root.iter("testcase")}


def test_each_verdict_has_its_outcome(tmp_path: Path) -> None:
    root = written(tmp_path, a_run(RUN, says="what it says"))
    assert outcomes(root) == {
        "mrec/states/a": "passed",
        "mrec/states/b": "failure",
        "mrec/states/c": "error",
        "otj/flags/x@1": "skipped",
        "otj/tail/z": "passed",
    }
    suites = {s.get("name"): tuple(int(s.get(k)) for k in ("tests", "failures", "errors", "skipped")) for s in root}
    assert suites == {"mrec/states": (3, 1, 1, 0), "otj/flags": (1, 0, 0, 1), "otj/tail": (1, 0, 0, 0)}
    assert [s.get("id") for s in root] == ["0", "1", "2"]
    failure = root.find(".//failure")
    assert (failure.get("message"), failure.get("type")) == ("what it says", "MREC-STATE-04")
    assert "MREC-STATE-04 (reader, MUST)" in failure.text
    assert "repeat: trajconform run --driver 'path/to driver' --case mrec/states/b --keep evidence" in failure.text
    assert root.findtext("testsuite[@name='otj/tail']/system-out") == "INFO otj/tail/z: what it says"


def test_known_failures_are_skipped_and_changes_fail(tmp_path: Path) -> None:
    deviations = (
        Deviation("mrec/states/a", "unexpected pass", "FAIL", "PASS", "remove the entry"),
        Deviation("mrec/states/gone", "stale entry", "FAIL", "no such case", "no case exists any more"),
    )
    root = written(tmp_path, a_run(RUN, says="as ever", deviations=deviations))
    assert outcomes(root) == {
        "mrec/states/a": "failure",
        "mrec/states/b": "skipped",
        "mrec/states/c": "skipped",
        "otj/flags/x@1": "skipped",
        "otj/tail/z": "passed",
        "mrec/states/gone": "failure",
    }
    by_name = {case.get("name"): case for case in root.iter("testcase")}
    assert by_name["mrec/states/b"][0].get("message") == "known failure: FAIL: as ever"
    assert by_name["mrec/states/a"][0].get("message") == "unexpected pass: remove the entry"


def test_an_interrupted_run_is_an_error(tmp_path: Path) -> None:
    root = written(tmp_path, a_run({"mrec/states/a": "PASS"}, interrupted=True, planned=9))
    assert outcomes(root) == {"mrec/states/a": "passed", "interrupted": "error"}
    assert "8 cases were not judged" in root.find(".//error").get("message")


def test_words_that_xml_cannot_say_are_spelled_out(tmp_path: Path) -> None:
    root = written(tmp_path, a_run(RUN, name=HOSTILE, says=HOSTILE))
    message = root.find(".//failure").get("message")
    assert "<script>alert(1)</script>" in message and "\\x1b[31m\\x00" in message and "\\xd800" in message
    assert not list(root.iter("script"))


def test_the_schema_refuses_what_it_should(tmp_path: Path) -> None:
    path = tmp_path / "j.xml"
    write_junit(path, a_run(RUN), load_catalogue())
    text = path.read_text("utf-8")
    for right, wrong in (
        ("<testsuites>", '<testsuites name="x">'),
        ('tests="3"', 'tests="three"'),
        ("<system-err></system-err>", ""),
        ('timestamp="2026-01-02T03:04:05"', 'timestamp="2026-01-02T03:04:05+00:00"'),
        ("<failure ", "<failed "),
    ):
        assert right in text
        changed = text.replace(right, wrong).replace("</failure>", "</failed>" if "failed" in wrong else "</failure>")
        assert not SCHEMA.validate(etree.fromstring(changed.encode())), wrong


def test_run_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "junit.xml"
    with pytest.raises(SystemExit) as ended:
        main(["run", "--topic", "flags", "--junit", str(path), "--quiet"])
    assert ended.value.code == 0 and capsys.readouterr() == ("", "")
    document = etree.parse(str(path))
    SCHEMA.assertValid(document)
    assert set(outcomes(document.getroot()).values()) == {"passed"}
    assert int(document.getroot()[0].get("tests")) > 10
