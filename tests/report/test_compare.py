"""Reports side by side: what regressed, what was fixed, and what a hostile report cannot do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.report.runs import HOSTILE, a_run
from trajconform.cli import main
from trajconform.harness.protocol import find_fault
from trajconform.report.compare import compare, comparison_document, groups, load_reports
from trajconform.report.comparison import html, markdown
from trajconform.report.document import dump, report_document
from trajconform.spec.catalogue import load_catalogue


@pytest.fixture
def written(tmp_path: Path) -> Any:
    catalogue = load_catalogue()

    def write(file: str, verdicts: Mapping[str, str], **more: Any) -> Path:
        path = tmp_path / file
        path.write_text(dump(report_document(a_run(verdicts, **more), catalogue)), "utf-8")
        return path

    return write


OLD = {
    "mrec/states/a": "PASS",
    "mrec/states/b": "FAIL",
    "mrec/states/c": "PASS",
    "otj/flags/x@1": "PASS",
    "otj/flags/x@2": "PASS",
    "otj/flags/y": "INFO",
    "otj/tail/z": "SKIP",
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["compare", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return int(ended.value.code or 0), out, err


@pytest.mark.parametrize(
    ("case", "after", "kind", "status"),
    [
        ("mrec/states/a", "FAIL", "regressed", 1),
        ("mrec/states/a", "ERROR", "regressed", 1),
        ("otj/flags/y", "FAIL", "regressed", 1),
        ("mrec/states/b", "ERROR", "regressed", 1),
        ("mrec/states/a", "SKIP", "lost", 1),
        ("mrec/states/b", "SKIP", "lost", 1),
        ("mrec/states/b", "PASS", "fixed", 0),
        ("otj/tail/z", "PASS", "gained", 0),
        ("otj/tail/z", "FAIL", "gained", 0),
        ("otj/flags/y", "PASS", "changed", 0),
    ],
)
def test_what_became_of_a_case(written: Any, case: str, after: str, kind: str, status: int) -> None:
    found = compare(load_reports([written("old.json", OLD), written("new.json", OLD | {case: after}, version="2")]))
    assert [(row.case, row.verdicts, row.kinds) for row in found.rows] == [(case, (OLD[case], after), (kind,))]
    assert found.exit_status == status
    assert found.alike == len(OLD) - 1


def test_the_same_twice_differs_in_nothing(written: Any) -> None:
    found = compare(load_reports([written("old.json", OLD), written("new.json", OLD)]))
    assert (found.rows, found.clauses, found.exit_status) == ((), (), 0)
    assert [report.label for report in found.reports] == ["mine 1 (old.json)", "mine 1 (new.json)"]
    assert found.verdict == "no difference; 7 cases alike"


def test_every_report_is_held_to_the_first(written: Any) -> None:
    paths = [
        written("1.json", OLD),
        written("2.json", OLD | {"mrec/states/a": "FAIL"}, version="2"),
        written("3.json", OLD | {"mrec/states/b": "PASS"}, version="3"),
    ]
    found = compare(load_reports(paths))
    assert [(row.case, row.kinds) for row in found.rows] == [
        ("mrec/states/a", ("regressed", "")),
        ("mrec/states/b", ("", "fixed")),
    ]
    assert dict(found.counts(1)) == {"regressed": 1} and dict(found.counts(2)) == {"fixed": 1}
    # b fails in the first two and a in the second, so that the clause passes in the third only
    assert [(row.clause, row.statuses) for row in found.clauses] == [("MREC-STATE-04", ("fail", "fail", "pass"))]


def test_two_implementations_need_not_claim_the_same(written: Any) -> None:
    other = {name: "SKIP" if name.startswith("otj") else verdict for name, verdict in OLD.items()}
    paths = [written("old.json", OLD), written("new.json", other | {"mrec/states/a": "FAIL"}, name="theirs")]
    found = compare(load_reports(paths))
    assert {row.case: row.kind for row in found.rows} == {
        "mrec/states/a": "regressed",
        "otj/flags/x@1": "apart",
        "otj/flags/x@2": "apart",
        "otj/flags/y": "apart",
    }
    assert found.verdict.startswith("1 fail where the base passes, 3 judged in one only")
    less = compare(load_reports([paths[0], written("less.json", other, name="theirs")]))
    assert less.exit_status == 0


def test_a_selection_leaves_the_other_cases_open(written: Any) -> None:
    few = {name: verdict for name, verdict in OLD.items() if name.startswith("mrec")}
    selection = {"formats": ["mrec"], "globs": []}
    found = compare(load_reports([written("old.json", OLD), written("new.json", few, selection=selection)]))
    assert (found.rows, found.exit_status) == ((), 0)
    assert "a run of --format mrec only" in found.notes[0]
    whole = compare(load_reports([written("old.json", OLD), written("new.json", few)]))
    assert {row.kind for row in whole.rows} == {"changed"}, "a whole run that lacks a case has lost it"


def test_an_interrupted_run_leaves_the_question_open(written: Any) -> None:
    few = dict(list(OLD.items())[:3])
    old = written("old.json", OLD)
    found = compare(load_reports([old, written("new.json", few, interrupted=True, planned=7)]))
    assert found.exit_status == 2 and "interrupted after 3 of 7 cases" in found.notes[0]
    worse = written("worse.json", few | {"mrec/states/a": "FAIL"}, interrupted=True, planned=7)
    assert compare(load_reports([old, worse])).exit_status == 1


def test_another_state_of_the_specification_is_said(written: Any) -> None:
    path = written("new.json", OLD)
    document = json.loads(path.read_text("utf-8"))
    document["kit"]["specification"] = "sha256:" + "0" * 64
    document["clauses"]["MREC-STATE-04"]["statement"] = "Something else."
    path.write_text(json.dumps(document), "utf-8")
    found = compare(load_reports([written("old.json", OLD), path]))
    assert found.notes == (
        "mine 1 (new.json) was judged by another state of the specification than mine 1 (old.json) (MREC-STATE-04)",
    )


def test_other_golden_files_are_said(written: Any) -> None:
    path = written("new.json", OLD)
    document = json.loads(path.read_text("utf-8"))
    document["kit"]["vectors"] = "sha256:" + "0" * 64
    path.write_text(json.dumps(document), "utf-8")
    found = compare(load_reports([written("old.json", OLD), path]))
    assert found.notes == ("mine 1 (new.json) was judged by other cases or golden files than mine 1 (old.json)",)


def test_members_of_a_family_that_went_the_same_way_are_one_line(written: Any) -> None:
    new = OLD | {"otj/flags/x@1": "FAIL", "otj/flags/x@2": "FAIL", "mrec/states/a": "FAIL"}
    found = compare(load_reports([written("old.json", OLD), written("new.json", new)]))
    assert [(group.name, len(group.rows)) for group in groups(found.rows)] == [
        ("mrec/states/a", 1),
        ("otj/flags/x@*", 2),
    ]


def test_json_fits_its_schema(written: Any, capsys: pytest.CaptureFixture[str]) -> None:
    new = OLD | {"mrec/states/a": "FAIL", "mrec/states/b": "PASS"}
    del new["otj/flags/y"]
    old, later = written("old.json", OLD), written("new.json", new, says="what it says")
    status, out, _ = run(capsys, str(old), str(later), "--output", "json")
    document = json.loads(out)
    assert status == document["exit_status"] == 1
    assert find_fault("comparison", document) == ""
    by_case = {entry["case"]: entry for entry in document["cases"]}
    assert by_case["mrec/states/a"]["verdicts"] == ["PASS", "FAIL"]
    assert by_case["mrec/states/a"]["message"] == "what it says"
    assert by_case["otj/flags/y"]["verdicts"] == ["INFO", None]
    assert document["reports"][1]["changes"] == {"regressed": 1, "fixed": 1, "changed": 1}
    assert document == comparison_document(compare(load_reports([old, later])))


def test_text_and_markdown_name_what_a_reviewer_needs(written: Any, capsys: pytest.CaptureFixture[str]) -> None:
    new = OLD | {"mrec/states/a": "FAIL", "mrec/states/b": "PASS"}
    paths = [str(written("old.json", OLD)), str(written("new.json", new, version="2", says="hands back 4 rows"))]
    status, out, _ = run(capsys, *paths)
    flat = " ".join(out.split())
    assert status == 1
    assert "regressed: 1 cases PASS → FAIL mrec/states/a MREC-STATE-04 hands back 4 rows" in flat
    assert "fixed: 1 cases FAIL → PASS mrec/states/b" in flat
    assert "1 regressed, 1 fixed; 5 cases alike" in flat
    status, out, _ = run(capsys, *paths, "--output", "md")
    assert status == 1
    assert out.startswith("### ❌ Conformance: 1 regressed, 1 fixed; 5 cases alike\n")
    assert "| `mrec/states/a` | PASS | FAIL | MREC-STATE-04 | hands back 4 rows |" in out
    assert out.count("<details") == out.count("</details>") >= 2
    assert run(capsys, *paths, "--quiet") == (1, "", "")


def test_what_a_driver_says_stays_text(written: Any) -> None:
    new = written(
        "new.json",
        OLD | {"mrec/states/a": "FAIL"},
        name="mine",
        version=HOSTILE.replace(chr(0xD800), ""),
        says=HOSTILE.replace(chr(0xD800), ""),
    )
    found = compare(load_reports([written("old.json", OLD), new]))
    page = html(found)
    assert "<script" not in page and "<img" not in page and "\x1b" not in page
    assert "&lt;script&gt;alert(1)" in page
    text = markdown(found)
    assert "<script" not in text and "<img" not in text and "@everyone" not in text and "\x1b" not in text
    row = next(line for line in text.splitlines() if line.startswith("| `mrec/states/a`"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 6, "a bar of a message must not start a cell"


def test_the_page_lets_nothing_in(written: Any) -> None:
    import base64
    import hashlib

    page = html(compare(load_reports([written("old.json", OLD), written("new.json", OLD)])))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy and style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy[1] == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "http" not in page.replace("http-equiv", "") and "style=" not in page


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is no JSON"),
        ("[]", "is no report; 'trajconform run --json FILE' writes reports"),
        ('{"report": 2}', "is a report of version 2; this kit reads version 1"),
        ('{"report": 1}', "is not the report it should be"),
    ],
)
def test_unusable_input_is_named(
    written: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    (tmp_path / "bad.json").write_text(text)
    status, _, err = run(capsys, str(written("old.json", OLD)), str(tmp_path / "bad.json"))
    assert status == 2 and says in err and "bad.json" in err


def test_one_report_or_none_is_too_few(written: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, str(written("old.json", OLD)))
    assert status == 2 and "two reports or more are needed" in err
    status, _, err = run(capsys, str(written("old.json", OLD)), str(tmp_path / "none.json"))
    assert status == 2 and "none.json: No such file" in err
