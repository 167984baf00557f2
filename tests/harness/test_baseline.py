"""Known failures: any change is a deviation, either way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trajconform.harness.baseline import hold_against, load_expectations
from trajconform.harness.verdicts import CaseResult, DriverIdentity, RunResult, Verdict
from trajconform.model.errors import TrajconformError

LIST = """
- {case: mrec/x/fails, clause: MREC-X-01, reason: it does}
- {case: mrec/x/crashes, clause: MREC-X-01, verdict: ERROR, reason: it does}
- {case: "mrec/y/*", clause: MREC-Y-01, reason: all of them, does: nothing, link: "https://example.org/1"}
"""
AS_LISTED = {
    "mrec/x/fails": "FAIL",
    "mrec/x/crashes": "ERROR",
    "mrec/x/passes": "PASS",
    "mrec/y/a": "FAIL",
    "mrec/y/b@c": "FAIL",
    "mrec/z/info": "INFO",
}


def held(
    tmp_path: Path, verdicts: dict[str, str], text: str = LIST, there: list[str] | None = None, **kwargs: Any
) -> RunResult:
    path = tmp_path / "known-failures.yaml"
    path.write_text(text)
    results = tuple(
        CaseResult(
            name,
            "t",
            "mrec",
            "x",
            "crash" if "/crash" in name else "reader",
            (f"MREC-{name.split('/')[1].upper()}-01",),
            Verdict(verdict),
            "m",
        )
        for name, verdict in verdicts.items()
    )
    driver = DriverIdentity("d", "1", "C", "", "in process", {})
    run = RunResult(driver, results, len(results), "", 1.0, 1, "0", **kwargs)
    return hold_against(run, load_expectations(path), None if there is None else lambda: there)


def test_a_run_just_as_listed_has_no_deviation(tmp_path: Path) -> None:
    run = held(tmp_path, AS_LISTED)
    assert run.deviations == ()
    assert run.exit_status == 0


@pytest.mark.parametrize(
    ("case", "verdict", "kind"),
    [
        ("mrec/x/passes", "FAIL", "unexpected failure"),
        ("mrec/x/passes", "ERROR", "unexpected failure"),
        ("mrec/x/fails", "PASS", "unexpected pass"),
        ("mrec/x/fails", "INFO", "unexpected pass"),
        ("mrec/x/fails", "ERROR", "other verdict"),
        ("mrec/x/crashes", "FAIL", "other verdict"),
        ("mrec/x/fails", "SKIP", "not judged"),
        ("mrec/y/b@c", "PASS", "unexpected pass"),
    ],
)
def test_every_change_is_one_deviation(tmp_path: Path, case: str, verdict: str, kind: str) -> None:
    run = held(tmp_path, AS_LISTED | {case: verdict})
    assert run.deviations is not None
    assert [(d.case, d.kind, d.actual) for d in run.deviations] == [(case, kind, verdict)]
    assert run.exit_status == 1


def test_an_entry_without_a_case_is_stale_in_a_whole_run_only(tmp_path: Path) -> None:
    some = {name: verdict for name, verdict in AS_LISTED.items() if name != "mrec/x/fails"}
    run = held(tmp_path, some)
    assert [(d.case, d.kind) for d in run.deviations or ()] == [("mrec/x/fails", "stale entry")]
    assert held(tmp_path, some, selection={"topics": ["x"], "globs": []}).deviations == ()
    assert held(tmp_path, some, interrupted=True).deviations == ()
    assert held(tmp_path, some, selection={"topics": [], "globs": []}).exit_status == 1


@pytest.mark.parametrize(
    ("selection", "named"),
    [
        ({"topics": ["x"]}, True),
        ({"topics": ["y"]}, False),
        ({"formats": ["mrec"]}, True),
        ({"formats": ["otj"]}, False),
        ({"clauses": ["MREC-X-01"]}, True),
        ({"clauses": ["MREC-Y-01"]}, False),
        ({"globs": ["mrec/x/fails"]}, True),
        ({"globs": ["mrec/*"]}, True),
        ({"globs": ["mrec/x/other"]}, False),
        ({"roles": ["reader"]}, True),
        ({"formats": ["mrec"], "topics": ["y"]}, False),
    ],
)
def test_a_selection_that_takes_in_a_stale_entry_names_it(
    tmp_path: Path, selection: dict[str, list[str]], named: bool
) -> None:
    some = {name: verdict for name, verdict in AS_LISTED.items() if name != "mrec/x/fails"}
    run = held(tmp_path, some, there=list(some), selection=selection)
    assert [(d.case, d.kind) for d in run.deviations or ()] == [("mrec/x/fails", "stale entry")] * named
    assert run.exit_status == int(named)


def test_a_case_that_a_selection_left_out_makes_no_entry_stale(tmp_path: Path) -> None:
    some = {name: verdict for name, verdict in AS_LISTED.items() if name != "mrec/x/fails"}
    run = held(tmp_path, some, there=list(AS_LISTED), selection={"roles": ["writer"]})
    assert run.deviations == ()


def test_a_pattern_is_taken_in_by_the_name_of_one_of_its_cases(tmp_path: Path) -> None:
    pattern = "[{case: 'mrec/x/family@*', clause: MREC-X-01, reason: r}]"
    for glob, named in (("mrec/x/family", True), ("mrec/x/family@two", True), ("mrec/x/famine", False)):
        run = held(tmp_path, {"mrec/x/passes": "PASS"}, pattern, ["mrec/x/passes"], selection={"globs": [glob]})
        assert [d.kind for d in run.deviations or ()] == ["stale entry"] * named, glob


def test_a_link_stands_beside_the_change(tmp_path: Path) -> None:
    run = held(tmp_path, AS_LISTED | {"mrec/y/a": "PASS"})
    assert [d.message for d in run.deviations or ()] == [
        "expected to be FAIL, is PASS; remove the entry (see https://example.org/1)"
    ]


def test_an_entry_with_a_clause_that_the_case_does_not_bind_is_stale(tmp_path: Path) -> None:
    run = held(tmp_path, {"mrec/x/fails": "FAIL"}, "[{case: mrec/x/fails, clause: MREC-Y-01, reason: moved}]")
    assert [(d.case, d.kind) for d in run.deviations or ()] == [("mrec/x/fails", "stale entry")]


def test_without_a_list_every_failure_is_unexpected(tmp_path: Path) -> None:
    run = held(tmp_path, {"mrec/x/fails": "FAIL", "mrec/x/passes": "PASS"}, "")
    assert [d.kind for d in run.deviations or ()] == ["unexpected failure"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[{case: a, clause: C-1}]", "'reason' is a required property"),
        ("[{case: a, clause: C-1, reason: r, verdict: PASS}]", r"\[0\]\.verdict: 'PASS' is not one of"),
        ("{a: 1}", "is not of type 'array'"),
        ("[", "known-failures.yaml"),
        ("[{case: a, clause: C-1, reason: r, since: 3}]", "'since' was unexpected"),
        ("[{case: a, clause: C-1, reason: r, link: 'javascript:x'}]", r"\[0\]\.link: 'javascript:x' does not match"),
    ],
)
def test_faults_of_the_list_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(TrajconformError, match=words):
        held(tmp_path, {}, text)


@pytest.mark.parametrize(
    ("case", "verdict", "kinds"),
    [
        ("mrec/x/crash@killed", "FAIL", []),
        ("mrec/x/crash@killed", "PASS", []),
        ("mrec/x/crash@killed", "ERROR", ["other verdict"]),
        ("mrec/x/crash@killed", "SKIP", ["not judged"]),
        ("mrec/x/read", "FAIL", ["stale entry"]),
        ("mrec/x/read", "PASS", ["stale entry"]),
    ],
)
def test_only_a_crash_case_may_fail_sometimes(tmp_path: Path, case: str, verdict: str, kinds: list[str]) -> None:
    text = f"[{{case: '{case}', clause: MREC-X-01, reason: 'moments are random', sometimes: true}}]"
    run = held(tmp_path, {case: verdict}, text)
    assert [d.kind for d in run.deviations or ()] == kinds
