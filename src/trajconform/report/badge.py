"""A badge of a run: an SVG to commit or publish, or the JSON that a shields server draws one from."""

from __future__ import annotations

import json
from pathlib import Path

from trajconform.harness.verdicts import ClauseStatus, RunResult, Verdict, clause_results

SUFFIXES = (".svg", ".json")
LABEL = "trajconform"
_COLOURS = {"brightgreen": "#2d7d32", "yellow": "#8a6100", "red": "#b3261e", "lightgrey": "#5c6269", "blue": "#1a5fa8"}
"""Shields' names -> what the SVG uses: dark enough for white letters (contrast of 4.5 and more)."""

_NARROW, _WIDE = frozenset("fijlrt.,:;|!'()[] -"), frozenset("mwMW@%")


def badge(run: RunResult) -> tuple[str, str]:
    """Message and colour. A run of selected cases never says "conforms"; nor does one with known failures."""
    if run.exit_status == 2:
        return "no judgement", "lightgrey"
    failed = [r for r in run.results if r.verdict in (Verdict.FAIL, Verdict.ERROR)]
    if run.exit_status == 1:
        if run.deviations is not None:
            number = len(run.deviations)
            return f"{number} change{'s' * (number != 1)} to known failures", "red"
        statuses = [c.status for c in clause_results(run.results).values()]
        broken = statuses.count(ClauseStatus.FAIL) + statuses.count(ClauseStatus.ERROR)
        return f"breaks {broken} clause{'s' * (broken != 1)}", "red"
    if failed:
        return f"{len(failed)} known failure{'s' * (len(failed) != 1)}", "yellow"
    if any(run.selection.values()):
        return f"{run.counts[Verdict.PASS]} selected cases pass", "blue"
    judged = {r.format for r in run.results if r.verdict is Verdict.PASS}
    claims = [f"{name} {' + '.join(roles)}" for name, roles in run.driver.formats.items() if name in judged]
    return f"conforms: {', '.join(claims)}", "brightgreen"


def write_badge(path: Path, run: RunResult) -> None:
    """Write the badge in the form that the suffix names (one of `SUFFIXES`)."""
    message, colour = badge(run)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        endpoint = {"schemaVersion": 1, "label": LABEL, "message": message, "color": colour}
        path.write_text(json.dumps(endpoint) + "\n", "utf-8")
        return
    path.write_text(_svg(message, _COLOURS[colour]), "utf-8")


def _svg(message: str, colour: str) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trajconform.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template("badge.svg").render(
        label=LABEL, message=message, colour=colour, left=_width(LABEL), right=_width(message)
    )


def _width(text: str) -> int:
    """Pixels that a text of 11 px takes, near enough: the badge makes the text fit by ``textLength``."""
    return round(sum(4 if c in _NARROW else 10 if c in _WIDE else 7 for c in text)) + 12
