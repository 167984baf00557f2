"""A comparison for people: on a terminal, as Markdown for a pull request, as one HTML page."""

from __future__ import annotations

import base64
import hashlib
import textwrap
from importlib import resources

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trajconform.report.compare import Comparison, Group, groups
from trajconform.report.console import STYLES, shown
from trajconform.report.markdown import code, table, words

_STYLES = {verdict.value: style for verdict, style in STYLES.items()}
_KIND_STYLES = {"regressed": "bold red", "lost": "bold red", "fixed": "bold green", "gained": "cyan"}
_ORDER = ("PASS", "FAIL", "ERROR", "SKIP", "INFO")
_ENOUGH = {"console": 15, "markdown": 40}
"""Groups of a kind that are listed; a comment on a pull request may have 65536 characters."""
_MARKS = {"regressed": "❌", "lost": "❌", "fixed": "✅", "gained": "🆕", "changed": "✏️", "apart": "↔️"}


def render_comparison(console: Console, comparison: Comparison, *, everything: bool = False) -> None:
    """Print a comparison on a terminal; ``everything``: no list is cut short."""
    reports = comparison.reports
    head = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    head.add_column("", no_wrap=True)
    head.add_column("report", overflow="fold")
    for name in _ORDER:
        head.add_column(name.lower(), justify="right", no_wrap=True)
    head.add_column("against A", overflow="fold")
    for number, report in enumerate(reports):
        counts = report.document["counts"]
        changes = comparison.counts(number) if number else {}
        cells = [Text(str(counts[v]) if counts[v] else "·", "" if counts[v] else "dim") for v in _ORDER]
        told = Text(", ").join(
            Text(f"{changes[kind]} {title}", _KIND_STYLES.get(kind, ""))
            for kind, title in comparison.kinds.items()
            if changes.get(kind)
        )
        head.add_row(_letter(number), Text(shown(report.label, 120)), *cells, told if number else "")
    console.print(head)
    for note in comparison.notes:
        console.print(Text(f"note: {shown(note)}", "yellow"))
    for kind, title in comparison.kinds.items():
        found = groups(comparison.of_kind(kind))
        if not found:
            continue
        console.print()
        console.print(Text(f"{title}: {len(comparison.of_kind(kind))} cases", _KIND_STYLES.get(kind, "bold")))
        most = len(found) if everything else 0 if kind == "apart" else _ENOUGH["console"]
        for group in found[:most]:
            console.print(_group_line(group))
            message = group.rows[-1].message
            if kind in ("regressed", "lost", "gained") and message:
                console.print(Padding(Text(shown(" ".join(message.split()), 300), "dim"), (0, 0, 0, 6)))
        if len(found) > most:
            more = f"{len(found) - most} more" if most else "not listed"
            console.print(f"[dim]  ... {more}; --all lists them[/dim]")
    if comparison.clauses:
        console.print()
        console.print(_clause_table(comparison, console.width, everything=everything))
    console.print()
    bad = comparison.exit_status == 1
    console.print(Text(comparison.verdict, "bold red" if bad else "bold green"))


def _letter(number: int) -> str:
    """A short name for a report: A is the base."""
    return chr(ord("A") + number) if number < 26 else str(number + 1)


def _group_line(group: Group) -> Text:
    row = group.rows[0]
    line = Text("  ")
    for number, verdict in enumerate(row.verdicts):
        line.append(" → " if number else "", "dim")
        line.append(f"{verdict:<5}" if number < len(row.verdicts) - 1 else verdict, _STYLES.get(verdict, "dim"))
    line.append("  ")
    line.append(shown(group.name), "bold")
    if len(group.rows) > 1:
        line.append(f" ({len(group.rows)} cases)")
    line.append(f"  {', '.join(row.clauses[:3])}", "dim")
    return line


def _clause_table(comparison: Comparison, width: int, *, everything: bool) -> Table:
    most = len(comparison.clauses) if everything else _ENOUGH["console"]
    left = len(comparison.clauses) - most
    caption = f"... {left} more; --all lists them" if left > 0 else None
    made = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", caption=caption, caption_justify="left"
    )
    made.add_column("clause", no_wrap=True)
    for number in range(len(comparison.reports)):
        made.add_column(_letter(number), no_wrap=True)
    made.add_column("", no_wrap=True)
    room = max(20, width - 22 - 10 * len(comparison.reports))
    colours = {"pass": "green", "fail": "bold red", "error": "bold magenta", "partial": "yellow"}
    for row in comparison.clauses[:most]:
        states = [Text(status, colours.get(status, "dim")) for status in row.statuses]
        made.add_row(row.clause, *states, Text(textwrap.shorten(shown(row.statement), room, placeholder=" ..."), "dim"))
    return made


def markdown(comparison: Comparison) -> str:
    """A comment for a pull request: the sentence, the numbers, and the lists folded in."""
    bad = comparison.exit_status == 1
    lines = [f"### {'❌' if bad else '✅'} Conformance: {words(comparison.verdict)}", ""]
    rows = []
    for number, report in enumerate(comparison.reports):
        counts = report.document["counts"]
        changes = comparison.counts(number) if number else {}
        told = (
            ", ".join(f"{changes[k]} {title}" for k, title in comparison.kinds.items() if changes.get(k))
            if number
            else "base"
        )
        rows.append([words(report.label), *(str(counts[v]) for v in _ORDER), told or "as before"])
    lines += table(["report", *(v.lower() for v in _ORDER), "against the base"], rows, range(1, 6))
    lines += [line for note in comparison.notes for line in ("", f"> {words(note)}")]
    heads = [words(report.label, 40) for report in comparison.reports]
    for kind, title in comparison.kinds.items():
        found = groups(comparison.of_kind(kind))
        if not found:
            continue
        opened = " open" if kind in ("regressed", "lost") else ""
        lines += [
            "",
            f"<details{opened}><summary>{_MARKS[kind]} {title}: {len(comparison.of_kind(kind))} cases</summary>",
            "",
        ]
        most = _ENOUGH["markdown"]
        lines += table(
            ["case", *heads, "clauses", "what"],
            [
                [
                    code(group.name) + (f" ({len(group.rows)} cases)" if len(group.rows) > 1 else ""),
                    *group.rows[0].verdicts,
                    ", ".join(group.rows[0].clauses[:3]),
                    words(group.rows[-1].message, 160),
                ]
                for group in found[:most]
            ],
        )
        if len(found) > most:
            lines += ["", f"... and {len(found) - most} more"]
        lines += ["", "</details>"]
    if comparison.clauses:
        lines += ["", f"<details><summary>clauses that differ: {len(comparison.clauses)}</summary>", ""]
        most = _ENOUGH["markdown"]
        lines += table(
            ["clause", *heads, "says"],
            [[row.clause, *row.statuses, words(row.statement, 160)] for row in comparison.clauses[:most]],
        )
        if len(comparison.clauses) > most:
            lines += ["", f"... and {len(comparison.clauses) - most} more"]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def html(comparison: Comparison) -> str:
    """One self-contained page without a script. Its policy lets nothing in but its own style, named by digest."""
    import jinja2

    folder = resources.files("trajconform.report") / "templates"
    style = (folder / "compare.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trajconform.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("compare.html").render(
        style=style,
        digest=digest,
        comparison=comparison,
        kinds=comparison.kinds,
        order=_ORDER,
        groups=groups,
        letter=_letter,
        shown=shown,
    )
