"""Annotations and job summaries: escaped, within the host's limits, and deaf to what a driver says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.report.runs import HOSTILE, a_run
from trajconform.cli import main
from trajconform.harness.verdicts import Deviation
from trajconform.report.github import annotation_lines, summary
from trajconform.spec.catalogue import load_catalogue


def test_a_failure_is_one_annotation_with_clause_and_command() -> None:
    run = a_run({"mrec/states/a": "FAIL", "otj/flags/x": "PASS"}, says="50% wrong:\nmore, and worse")
    assert annotation_lines(run, "my-driver") == [
        "::error title=FAIL mrec/states/a MREC-STATE-04::50%25 wrong:%0Amore, and worse"
        "%0Arepeat: trajconform run --driver my-driver --case mrec/states/a --keep evidence"
    ]


def test_a_title_hides_colon_and_comma() -> None:
    run = a_run({}, deviations=(Deviation("otj/tail/z", "stale entry", "FAIL", "no such case", "x"),))
    assert annotation_lines(run, None) == ["::error title=stale entry%3A otj/tail/z::x"]


def test_members_of_a_family_are_one_annotation_and_ten_are_the_most() -> None:
    family = {f"otj/flags/x@{i}": "FAIL" for i in range(30)}
    assert [line.partition("::repeat")[0].split("::")[1] for line in annotation_lines(a_run(family), None)] == [
        "error title=FAIL otj/flags/x@* (30 cases) OTJ-FLAGS-02"
    ]
    lines = annotation_lines(a_run({f"otj/flags/x{i}": "FAIL" for i in range(30)}), None)
    assert len(lines) == 10 and lines[-1].startswith("::error title=21 more::")


def test_known_failures_make_no_annotation_but_changes_do() -> None:
    verdicts = {"mrec/states/a": "FAIL", "otj/flags/x": "PASS"}
    assert annotation_lines(a_run(verdicts, deviations=()), None) == []
    change = Deviation("otj/flags/x", "unexpected pass", "FAIL", "PASS", "remove the entry")
    assert annotation_lines(a_run(verdicts, deviations=(change,)), None) == [
        "::error title=unexpected pass%3A otj/flags/x::remove the entry"
    ]


def test_what_a_driver_says_is_one_line_and_no_command() -> None:
    lines = annotation_lines(a_run({"mrec/states/a": "FAIL"}, says=f"a\r\n::add-mask::b\n{HOSTILE}"), None)
    assert len(lines) == 1 and "\n" not in lines[0] and "\r" not in lines[0] and "\x1b" not in lines[0]
    assert "%0A::add-mask::b" in lines[0]


def test_summary_says_what_failed_and_stays_text() -> None:
    run = a_run({"mrec/states/a": "FAIL", "otj/flags/x": "PASS"}, name=HOSTILE, says=HOSTILE)
    text = summary(run, load_catalogue(), "my-driver")
    assert text.startswith("### ❌ ") and ": does not conform\n" in text
    assert "Cases: 1 pass, 1 fail, in 1.0 s." in text
    assert "<script" not in text and "<img" not in text and "@everyone" not in text and "\x1b" not in text
    row = next(line for line in text.splitlines() if line.startswith("| `mrec/states/a` | FAIL"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    assert "trajconform run --driver my-driver --case mrec/states/a --keep evidence" in text


def test_summary_of_known_failures_lists_the_changes_only() -> None:
    verdicts = {"mrec/states/a": "FAIL", "mrec/states/b": "FAIL", "otj/flags/x": "PASS"}
    text = summary(a_run(verdicts, deviations=()), load_catalogue(), None)
    assert text.startswith("### ✅ mine 1: as recorded: 2 known failures\n") and "Failures" not in text
    change = Deviation("mrec/states/b", "other verdict", "ERROR", "FAIL", "expected to be ERROR")
    text = summary(a_run(verdicts, deviations=(change,)), load_catalogue(), None)
    assert "| `mrec/states/b` | other verdict | expected to be ERROR |" in text and "`mrec/states/a`" not in text


@pytest.mark.parametrize("inside", [True, False])
def test_run_prints_annotations_only_when_asked(
    inside: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "summary.md"
    place.write_text("# before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    if inside:
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place))
    else:
        monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    arguments = ["run", "--driver", "naive", "--case", "mrec/codecs/damaged-chunk@shard-empty", "--no-expect"]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 1
    assert "::" not in capsys.readouterr().out and place.read_text() == "# before\n"
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--github"])
    assert ended.value.code == 1
    lines = capsys.readouterr().out.splitlines()
    token = lines[0].removeprefix("::stop-commands::")
    assert len(token) >= 16 and lines.count(f"::{token}::") == 1
    assert all(line.startswith("::error ") for line in lines[lines.index(f"::{token}::") + 1 :])
    assert lines[-1].startswith("::error title=FAIL mrec/codecs/damaged-chunk@shard-empty MREC-CODEC-12::")
    if inside:
        assert place.read_text("utf-8").startswith("# before\n### ❌ naive 1: does not conform")
