"""What a run says on a terminal: a line a topic, then each failure with the clause and a command to repeat it."""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trajconform.harness.verdicts import CaseResult, ClauseResult, ClauseStatus, RunResult, Verdict, clause_results
from trajconform.report.document import clauses_in_scope
from trajconform.spec.catalogue import Catalogue, Clause

if TYPE_CHECKING:
    from rich.console import RenderableType

STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.ERROR: "bold magenta",
    Verdict.SKIP: "yellow",
    Verdict.INFO: "cyan",
}
_ORDER = (Verdict.PASS, Verdict.FAIL, Verdict.ERROR, Verdict.SKIP, Verdict.INFO)
_MOST_DIFFERENCES = 6


def render_run(
    console: Console,
    run: RunResult,
    catalogue: Catalogue,
    driver_argument: str | None,
    *,
    per_clause: bool = False,
    most_failures: int = 20,
    show_expected: bool = False,
) -> None:
    """Print a whole report. ``driver_argument`` is what ``--driver`` was given, for the command that repeats a case."""
    clauses = catalogue.clauses
    judged = clause_results(run.results, clauses_in_scope(run, catalogue))
    console.print(_heading(run))
    console.print()
    console.print(_topics(run, catalogue, judged))
    if per_clause:
        console.print()
        console.print(_clause_table(judged, clauses))
    bad = [r for r in run.results if r.verdict in (Verdict.FAIL, Verdict.ERROR)]
    expected = run.recorded
    news = [r for r in bad if show_expected or r.case not in expected]
    for result in news[:most_failures]:
        console.print()
        console.print(_failure(result, clauses, driver_argument, (run.kills, run.seed)))
    if len(news) > most_failures:
        console.print(f"\n[dim]... {len(news) - most_failures} more failures; --failures {len(news)} shows all[/dim]")
    if expected and not show_expected:
        console.print(f"\n[dim]{len(expected)} known failures are as recorded; --show-known lists them too[/dim]")
    for deviation in run.deviations or ():
        console.print()
        head = Text.assemble((deviation.kind, "bold red"), "  ", (deviation.case, "bold"))
        console.print(head)
        console.print(Padding(Text(shown(deviation.message)), (0, 0, 0, 2)))
    console.print()
    console.print(_summary(run, judged))


def _heading(run: RunResult) -> Text:
    driver = run.driver
    claims = "; ".join(f"{name}: {', '.join(roles)}" for name, roles in driver.formats.items())
    name = shown(f"{driver.name} {driver.version}", 80)
    text = Text.assemble((name, "bold"), f"  {shown(driver.language, 40)}  ({driver.source})")
    text.append(f"\nclaims {claims}", "dim")
    if driver.features:
        text.append(f"; features {', '.join(driver.features)}", "dim")
    return text


def _topics(run: RunResult, catalogue: Catalogue, judged: Mapping[str, ClauseResult]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("topic", no_wrap=True)
    table.add_column("clauses", justify="right", no_wrap=True)
    for verdict in _ORDER:
        table.add_column(verdict.value.lower(), justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    by_topic: dict[tuple[str, str], list[CaseResult]] = {}
    for result in run.results:
        by_topic.setdefault((result.format, result.topic), []).append(result)
    chapters = [(c.format, c.topic, [clause.id for clause in c.clauses]) for c in catalogue.chapters]
    known = {(f, t) for f, t, _ in chapters}
    chapters += [(f, t, []) for f, t in by_topic if (f, t) not in known]
    unclaimed: dict[str, int] = {}
    for format_name, topic, ids in chapters:
        results = by_topic.get((format_name, topic), [])
        if results and not run.driver.formats.get(format_name) and all(r.verdict is Verdict.SKIP for r in results):
            unclaimed[format_name] = unclaimed.get(format_name, 0) + len(results)
            continue
        states = [judged[i].status for i in ids if i in judged]
        if not results and ClauseStatus.UNTESTED not in states:
            continue  # judged by cases of other topics, where they are shown
        counts = {verdict: sum(r.verdict is verdict for r in results) for verdict in _ORDER}
        passed, untested = states.count(ClauseStatus.PASS), states.count(ClauseStatus.UNTESTED)
        partial = states.count(ClauseStatus.PARTIAL)
        cells = [_count(counts[v], STYLES[v] if v is not Verdict.PASS else "") for v in _ORDER]
        remarks = [f"{n} {word}" for n, word in ((partial, "partial"), (untested, "untested")) if n]
        remark = Text("clauses: " + ", ".join(remarks) if remarks else "", "dim")
        if counts[Verdict.FAIL] or counts[Verdict.ERROR]:
            mark = Text("✗ ", "bold red")
        else:
            mark = Text("✓ ", "green") if counts[Verdict.PASS] else Text("· ", "dim")
        table.add_row(mark + Text(f"{format_name}/{topic}"), f"{passed}/{len(states)}", *cells, remark)
    for format_name, number in unclaimed.items():
        counted = [_count(number if v is Verdict.SKIP else 0, STYLES[v]) for v in _ORDER]
        table.add_row(Text(f"· {format_name}", "dim"), "", *counted, Text("not claimed by the driver", "dim"))
    return table


def _count(number: int, style: str) -> Text:
    return Text(str(number), style) if number else Text("·", "dim")


def _clause_table(judged: Mapping[str, ClauseResult], clauses: Mapping[str, Clause]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("clause", "role", "level", "verdict", "cases"):
        table.add_column(name, no_wrap=True)
    styles = {"pass": "green", "partial": "yellow", "fail": "bold red", "error": "bold magenta", "untested": "yellow"}
    for clause_id, result in judged.items():
        clause = clauses.get(clause_id)
        counts = ", ".join(f"{n} {verdict.value.lower()}" for verdict, n in result.counts.items() if n)
        status = Text(result.status.value, styles[result.status.value])
        table.add_row(
            clause_id, clause.role if clause else "", clause.level if clause else "", status, counts or "none"
        )
    return table


def case_text(
    result: CaseResult, catalogue: Catalogue, driver_argument: str | None, crashes: tuple[int, int], width: int = 110
) -> str:
    """What a run shows of one failing case, as plain text. ``crashes``: kills and seed of crash cases."""
    console = Console(file=io.StringIO(), width=width, highlight=False, no_color=True, force_terminal=False)
    with console.capture() as captured:
        console.print(_failure(result, catalogue.clauses, driver_argument, crashes))
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())


def _failure(
    result: CaseResult, clauses: Mapping[str, Clause], driver_argument: str | None, crashes: tuple[int, int]
) -> RenderableType:
    from rich.console import Group

    head = Text.assemble((result.verdict.value, STYLES[result.verdict]), "  ", (result.case, "bold"))
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True, style="dim", min_width=8)
    rows.add_column(overflow="fold")
    rows.add_row("case", Text(result.title))
    # A crash case names all that a crash can bring to light; what else it looks for would bury what it found.
    others = () if result.role == "crash" else (name for name in result.clauses if name not in result.blamed)
    for clause_id in (*result.blamed, *others):
        clause = clauses.get(clause_id)
        if clause:
            rows.add_row(
                "clause" if clause_id in result.blamed else "see also",
                Text(f"{clause.id} ({clause.role}, {clause.level}) {clause.statement}"),
            )
    rows.add_row("what", Text(shown(result.message)))
    for difference in result.differences[:_MOST_DIFFERENCES]:
        note = f"  ({difference.note})" if difference.note else ""
        rows.add_row("at", Text(shown(difference.path + note)))
        rows.add_row("  expected", Text(shown(difference.expected)))
        rows.add_row("  got", Text(shown(difference.actual)))
    if len(result.differences) > _MOST_DIFFERENCES:
        rows.add_row("", Text(f"... {len(result.differences) - _MOST_DIFFERENCES} more differences", "dim"))
    if result.stderr.strip() and result.verdict is Verdict.ERROR:
        rows.add_row("log", Text(shown(result.stderr.strip()[-600:])))
    if result.kept:
        rows.add_row("kept in", Text(result.kept))
    more = ["--kills", str(crashes[0]), "--seed", str(crashes[1])] if result.role == "crash" else []
    rows.add_row("repeat", Text(repeat_command(result.case, driver_argument, more)))
    return Group(head, Padding(rows, (0, 0, 0, 2)))


def shown(text: str, most: int = 2000) -> str:
    """Text of a driver or a store, fit for a terminal: no control characters but line ends and tabs, and not endless."""
    if len(text) > most:
        text = f"{text[:most]} ... {len(text) - most} more characters"
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def output_width() -> int | None:
    """Columns of standard output: those of the terminal (None), or of ``COLUMNS``, else 110."""
    return None if sys.stdout.isatty() else int(os.environ.get("COLUMNS", "110"))


def repeat_command(case: str, driver_argument: str | None, more: Sequence[str] = ()) -> str:
    """The command line that runs one case again and keeps its evidence."""
    driver = ["--driver", driver_argument] if driver_argument else []
    return shlex.join(["trajconform", "run", *driver, "--case", case, *more, "--keep", "evidence"])


def _summary(run: RunResult, judged: Mapping[str, ClauseResult]) -> Text:
    counts = run.counts
    parts = Text()
    for verdict in _ORDER:
        if counts.get(verdict):
            parts.append(f"{counts[verdict]} {verdict.value.lower()}", STYLES[verdict])
            parts.append("  ")
    states = [r.status for r in judged.values()]
    clause_text = ", ".join(
        f"{states.count(s)} {'untested' if s is ClauseStatus.UNTESTED else s.value}"
        for s in ClauseStatus
        if states.count(s)
    )
    if run.interrupted:
        parts.append(f"interrupted after {len(run.results)} of {run.planned} cases  ", "bold yellow")
    parts.append(f"in {run.seconds:.1f} s\nclauses: {clause_text or 'none judged'}\n")
    words = {
        0: ("conforms to every clause that was tested", "bold green"),
        1: ("does not conform", "bold red"),
        2: ("no judgement: the kit could not run every case", "bold magenta"),
    }
    if run.deviations is not None:
        words[0] = ("as recorded: every failure is a known one", "bold green")
        words[1] = ("differs from what is recorded", "bold red")
        if not any(r.verdict in (Verdict.FAIL, Verdict.ERROR) for r in run.results):
            words[0] = ("conforms to every clause that was tested", "bold green")
    text, style = words[run.exit_status]
    parts.append(text, style)
    return parts


def progress_line(result: CaseResult, done: int, total: int) -> str:
    """One plain line of progress, for a log."""
    return f"[{done}/{total}] {result.verdict.value} {escape(result.case)}"


def plain_lines(results: Iterable[CaseResult]) -> Iterable[str]:
    """A stable line a case: verdict, case, message; for grep and diff."""
    for result in results:
        yield "\t".join((result.verdict.value, result.case, shown(" ".join(result.message.split()))))
