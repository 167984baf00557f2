"""Runs made up for tests of reports: cases, verdicts, and a driver that says whatever a test wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajconform.harness.verdicts import CaseResult, DriverIdentity, RunResult, Verdict

CLAUSES = {"states": "MREC-STATE-04", "flags": "OTJ-FLAGS-02", "tail": "OTJ-TAIL-02"}
HOSTILE = "</td><script>alert(1)</script> | `x` @everyone #1 [a](javascript:b) ]]> \x1b[31m\x00 <img src=x onerror=a> \ud800 ::error::x"


def a_run(
    verdicts: Mapping[str, str], *, name: str = "mine", version: str = "1", says: str = "", **more: Any
) -> RunResult:
    """A run with these verdicts by case; ``says`` is the message of each that is not a pass."""
    results = []
    for case, verdict in verdicts.items():
        family, topic = case.split("/")[:2]
        words = "" if verdict == "PASS" else says
        results.append(
            CaseResult(
                case,
                f"The claim of {case}",
                family,
                topic,
                "reader",
                (CLAUSES[topic],),
                Verdict(verdict),
                words,
                stderr=words,
            )
        )
    driver = DriverIdentity(name, version, "C", "", "in process", {"mrec": ("read",), "otj": ("read",)})
    more.setdefault("planned", len(results))
    return RunResult(
        driver, tuple(results), started="2026-01-02T03:04:05+00:00", seconds=1.0, jobs=1, kit_version="0", **more
    )
