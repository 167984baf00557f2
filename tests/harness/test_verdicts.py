"""Verdicts of cases become the status of clauses and the exit status of a run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from trajconform.harness.verdicts import (
    CaseResult,
    ClauseStatus,
    Deviation,
    DriverIdentity,
    RunResult,
    Verdict,
    clause_results,
)

PASS, FAIL, ERROR, SKIP, INFO = Verdict


def result(verdict: Verdict, case: str = "otj/x/a", clauses: Sequence[str] = ("OTJ-X-01",)) -> CaseResult:
    return CaseResult(case, "A case", "otj", "x", "reader", tuple(clauses), verdict)


def run(*verdicts: Verdict, **kwargs: Any) -> RunResult:
    driver = DriverIdentity("d", "1", "C", "", "in process", {"otj": ("read",)})
    results = tuple(result(verdict) for verdict in verdicts)
    return RunResult(driver, results, len(results), "2026-01-01T00:00:00+00:00", 1.0, 1, "0", **kwargs)


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ([PASS], ClauseStatus.PASS),
        ([PASS, INFO], ClauseStatus.PASS),
        ([PASS, SKIP], ClauseStatus.PARTIAL),
        ([INFO], ClauseStatus.UNTESTED),
        ([SKIP], ClauseStatus.UNTESTED),
        ([], ClauseStatus.UNTESTED),
        ([PASS, ERROR], ClauseStatus.ERROR),
        ([SKIP, ERROR], ClauseStatus.ERROR),
        ([PASS, ERROR, FAIL], ClauseStatus.FAIL),
        ([SKIP, FAIL], ClauseStatus.FAIL),
    ],
)
def test_status_of_a_clause(verdicts: list[Verdict], status: ClauseStatus) -> None:
    judged = clause_results([result(verdict) for verdict in verdicts], ["OTJ-X-01"])
    assert judged["OTJ-X-01"].status is status


def test_no_order_of_cases_changes_a_status() -> None:
    for verdicts in itertools.product(Verdict, repeat=3):
        found = {clause_results([result(v) for v in p])["OTJ-X-01"].status for p in itertools.permutations(verdicts)}
        assert len(found) == 1
        assert (found == {ClauseStatus.FAIL}) == (FAIL in verdicts)
        assert (found == {ClauseStatus.PARTIAL}) == ({PASS, SKIP} <= set(verdicts) <= {PASS, SKIP, INFO})
        assert (found == {ClauseStatus.PASS}) == (PASS in verdicts and set(verdicts) <= {PASS, INFO})


def test_a_case_counts_for_each_of_its_clauses() -> None:
    judged = clause_results([result(PASS, "a", ["C-1", "C-2"]), result(FAIL, "b", ["C-2"])], ["C-3"])
    assert {name: clause.status.value for name, clause in judged.items()} == {
        "C-1": "pass",
        "C-2": "fail",
        "C-3": "untested",
    }
    assert judged["C-2"].cases == ("a", "b")
    assert judged["C-2"].counts == {PASS: 1, FAIL: 1, ERROR: 0, SKIP: 0, INFO: 0}


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ([PASS, SKIP, INFO], 0),
        ([INFO], 0),
        ([PASS, FAIL], 1),
        ([ERROR, FAIL], 1),
        ([PASS, ERROR], 2),
        ([SKIP], 2),
        ([], 2),
    ],
)
def test_exit_status(verdicts: list[Verdict], status: int) -> None:
    assert run(*verdicts).exit_status == status


def test_exit_status_of_an_interrupted_run() -> None:
    assert run(PASS, interrupted=True).exit_status == 2
    assert run(PASS, FAIL, interrupted=True).exit_status == 1


def test_exit_status_with_known_failures() -> None:
    assert run(PASS, FAIL, ERROR, deviations=()).exit_status == 0
    assert run(PASS, deviations=(Deviation("a", "unexpected pass", "FAIL", "PASS", ""),)).exit_status == 1
    assert replace(run(PASS, deviations=()), interrupted=True).exit_status == 2
