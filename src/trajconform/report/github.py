"""What GitHub Actions shows of a run: annotations, and the summary of a job."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from trajconform.harness.verdicts import CaseResult, ClauseStatus, RunResult, Verdict, clause_results
from trajconform.report.console import repeat_command, shown
from trajconform.report.document import clauses_in_scope
from trajconform.report.markdown import code, table, words
from trajconform.spec.catalogue import Catalogue

_MOST_ANNOTATIONS = 10
"""GitHub shows ten errors a step and drops the others."""
_MOST_ROWS = 100
_ORDER = (Verdict.PASS, Verdict.FAIL, Verdict.ERROR, Verdict.SKIP, Verdict.INFO)


@contextmanager
def no_commands() -> Iterator[None]:
    """Keeps the runner from obeying what stands in between: a driver's words may look like a workflow command."""
    token = secrets.token_hex(16)
    click.echo(f"::stop-commands::{token}")
    try:
        yield
    finally:
        click.echo(f"::{token}::")


def annotation_lines(run: RunResult, driver_argument: str | None) -> list[str]:
    """Workflow commands: an error a failure or change, those of one family in one, and one for all that are too many.

    Known failures that are as recorded make none.
    """
    found: list[tuple[str, str]] = []
    if run.deviations is not None:
        found += [(f"{d.kind}: {d.case}", d.message) for d in run.deviations]
    else:
        families: dict[tuple[str, Verdict], list[CaseResult]] = {}
        for result in run.results:
            if result.verdict in (Verdict.FAIL, Verdict.ERROR):
                families.setdefault((result.case.partition("@")[0], result.verdict), []).append(result)
        for (family, verdict), results in families.items():
            first = results[0]
            name = first.case if len(results) == 1 else f"{family}@* ({len(results)} cases)"
            text = f"{first.message}\nrepeat: {repeat_command(first.case, driver_argument)}"
            found.append((f"{verdict} {name} {', '.join(first.blamed)}", text))
    if run.interrupted:
        found.append(("interrupted", f"{len(run.results)} of {run.planned} cases were judged"))
    if len(found) > _MOST_ANNOTATIONS:
        left = len(found) - _MOST_ANNOTATIONS + 1
        found = [*found[: _MOST_ANNOTATIONS - 1], (f"{left} more", "the job summary and the log list them")]
    return [f"::error title={_property(title)}::{_data(text)}" for title, text in found]


def _data(text: str) -> str:
    return shown(text, 1000).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(" ".join(text.split())).replace(":", "%3A").replace(",", "%2C")


def write_summary(text: str) -> bool:
    """Append Markdown to the job's summary; False where there is none (outside GitHub Actions)."""
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return False
    with Path(place).open("a", encoding="utf-8") as file:
        file.write(text)
    return True


def summary(run: RunResult, catalogue: Catalogue, driver_argument: str | None) -> str:
    """A run in Markdown: the sentence, the numbers, a row a topic, and what failed."""
    driver, counts = run.driver, run.counts
    states = [r.status for r in clause_results(run.results, clauses_in_scope(run, catalogue)).values()]
    mark = {0: "✅", 1: "❌", 2: "⚠️"}[run.exit_status]
    told = {
        0: "conforms to every clause that was tested",
        1: "does not conform",
        2: "no judgement: the kit could not run every case",
    }
    if run.deviations is not None:
        told[1] = "differs from what is recorded"
        if run.recorded:
            told[0] = f"as recorded: {len(run.recorded)} known failures"
    lines = [f"### {mark} {words(driver.name, 80)} {words(driver.version, 40)}: {told[run.exit_status]}", ""]
    told_cases = ", ".join(f"{counts[v]} {v.value.lower()}" for v in _ORDER if counts[v])
    told_clauses = ", ".join(f"{states.count(s)} {s.value}" for s in ClauseStatus if states.count(s))
    lines.append(f"Cases: {told_cases or 'none'}, in {run.seconds:.1f} s. Clauses: {told_clauses or 'none judged'}.")
    if run.interrupted:
        lines += ["", f"Interrupted after {len(run.results)} of {run.planned} cases."]
    if run.deviations:
        lines += ["", "#### Changes against the known failures", ""]
        lines += table(
            ["case", "change", ""], [[code(d.case), d.kind, words(d.message, 200)] for d in run.deviations[:_MOST_ROWS]]
        )
        lines += _left(len(run.deviations))
    changed = {d.case for d in run.deviations or ()}
    bad = [
        r
        for r in run.results
        if r.verdict in (Verdict.FAIL, Verdict.ERROR) and r.case not in run.recorded and r.case not in changed
    ]
    if bad:
        lines += ["", "#### Failures", ""]
        lines += table(
            ["case", "verdict", "clauses", "what"],
            [[code(r.case), r.verdict.value, ", ".join(r.blamed), words(r.message, 200)] for r in bad[:_MOST_ROWS]],
        )
        lines += _left(len(bad))
        lines += ["", f"Repeat one: {code(repeat_command(bad[0].case, driver_argument))}"]
    topics: dict[str, list[CaseResult]] = {}
    for result in run.results:
        topics.setdefault(f"{result.format}/{result.topic}", []).append(result)
    lines += ["", "<details><summary>topics</summary>", ""]
    lines += table(
        ["topic", *(v.value.lower() for v in _ORDER)],
        [[code(t), *(str(sum(r.verdict is v for r in found)) for v in _ORDER)] for t, found in topics.items()],
        range(1, 6),
    )
    return "\n".join([*lines, "", "</details>", "", ""])


def _left(number: int) -> list[str]:
    return ["", f"... and {number - _MOST_ROWS} more"] if number > _MOST_ROWS else []
