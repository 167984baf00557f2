"""A conversation with a driver on a terminal: a line a message, and below it what is wrong with the reply."""

from __future__ import annotations

import json

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trajconform.harness.examine import Step
from trajconform.report.console import shown

_LONGEST = 300
_LOG_LINES = 10


Advised = dict[tuple[str, str], int]
"""Advice that has been given, by its rule and its words: the number of the message where."""


def render_step(console: Console, step: Step, advised: Advised) -> None:
    """Print one message and what there is to say about it; advice that was given before is only pointed at."""
    mark, style = ("✗", "bold red") if step.grave else ("!", "yellow") if step.remarks else ("✓", "green")
    line = Text.assemble((mark, style), f" {step.number:>2} {step.words}: {step.request['op']}")
    line.append(f"  {step.seconds * 1000:.0f} ms", "dim")
    if step.said:
        line.append(f"  {shown(step.said, _LONGEST)}")
    console.print(line, soft_wrap=True)
    if not step.remarks:
        return
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(overflow="fold")
    if step.request.get("id"):
        rows.add_row("sent", Text(_short(json.dumps(step.request, ensure_ascii=False))))
        came = step.came[: 4 * _LONGEST].decode("utf-8", "replace")
        rows.add_row("came", Text(_short(came)) if step.came else Text("nothing", "dim"))
    for remark in step.remarks:
        rows.add_row("wrong" if remark.grave else "note", Text(shown(remark.wrong, 3 * _LONGEST), "red" * remark.grave))
        earlier = advised.setdefault((remark.rule.quote, remark.do), step.number)
        if earlier != step.number:
            rows.add_row("to do", Text(f"the same as for message {earlier}", "dim"))
        elif remark == [r for r in step.remarks if (r.rule, r.do) == (remark.rule, remark.do)][-1]:
            rows.add_row("protocol", Text(f"{remark.rule.section.replace('`', '')}: “{remark.rule.quote}”"))
            rows.add_row("to do", Text(shown(remark.do)))
    log = step.log.strip().splitlines()[-_LOG_LINES:]
    if log:
        rows.add_row("log", Text("\n".join(shown(line, _LONGEST) for line in log)))
    console.print(Padding(rows, (0, 0, 1, 5)))


def _short(text: str) -> str:
    return shown(text.replace("\n", "\\n"), _LONGEST)
