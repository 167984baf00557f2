"""``trajconform run``: judge an implementation."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trajconform.spec.catalogue import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trajconform.harness.verdicts import CaseResult, RunResult
    from trajconform.spec.catalogue import Catalogue

CASE_ROLES = ("reader", "writer", "store", "crash")

EPILOG = """
\b
Examples:
  trajconform run                                      the bundled implementation, every case
  trajconform run --driver harness/drivers/c-otj       an external program
  trajconform run --driver molrs --topic regular       one topic
  trajconform run --clause MREC-COMMIT-03 --keep out   one clause, failures kept in out/
  trajconform run --case 'otj/tail/*' --json report.json
  trajconform run --driver molrs --role crash          kill a writer at random moments, look at what is left
  trajconform run --role crash --kills 100 --seed 7    more often, at other moments; the same seed repeats them
  trajconform run --driver molrs --html report.html    a page to look at
  trajconform run --driver my-driver -j 4 --junit junit.xml --github --badge badge.svg     in CI

\b
Exit status: 0 conforms (or fails just as recorded), 1 does not, 2 no judgement was possible,
130 interrupted: what was judged until then is reported.
"""


@click.command("run", epilog=EPILOG)
@click.option(
    "--driver",
    metavar="DRIVER",
    help="A folder with a driver.toml, the name of a driver of the kit, or module:attribute of a Python object. "
    "Without it the bundled implementation is judged.",
)
@click.option("--format", "formats", multiple=True, type=click.Choice(FORMATS), help="Only this format (repeatable).")
@click.option("--role", "roles", multiple=True, type=click.Choice(CASE_ROLES), help="Only cases of this role.")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic (repeatable).")
@click.option("--clause", "clauses", multiple=True, metavar="ID", help="Only cases that bind this clause.")
@click.option("--case", "globs", multiple=True, metavar="GLOB", help="Only cases whose id fits the pattern.")
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Driver processes.")
@click.option("--timeout", type=click.FloatRange(0.1), metavar="SECONDS", help="Limit for one request.")
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep input, requests, replies and the expected reply of each failing case in DIR.",
)
@click.option(
    "--kills",
    type=click.IntRange(1, 100_000),
    default=2,
    show_default=True,
    help="Kills in each crash case; a writer that is held still is looked at four times as often.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the moments of crash cases.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as JSON.")
@click.option(
    "--html", "html_path", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as one HTML page."
)
@click.option(
    "--junit", "junit_path", type=click.Path(dir_okay=False, path_type=Path), help="Write JUnit XML for build servers."
)
@click.option(
    "--badge",
    "badge_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a badge: FILE.svg, or FILE.json for a shields endpoint.",
)
@click.option(
    "--github",
    is_flag=True,
    help="Print annotations for GitHub Actions, and append to the job's summary. Never on by itself, so that a run "
    "prints the same everywhere.",
)
@click.option("--expect", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Known failures (YAML).")
@click.option("--no-expect", is_flag=True, help="Judge without the known failures that lie beside a driver.")
@click.option("--show-known", is_flag=True, help="Show known failures in full as well.")
@click.option("--per-clause", is_flag=True, help="Print a line for every clause.")
@click.option("--failures", type=click.IntRange(0), default=20, show_default=True, help="Most failures shown in full.")
@click.option("--plain", is_flag=True, help="One tab-separated line a case, nothing else.")
@click.option("-q", "--quiet", is_flag=True, help="Only the exit status.")
def command(
    driver: str | None,
    formats: tuple[str, ...],
    roles: tuple[str, ...],
    topics: tuple[str, ...],
    clauses: tuple[str, ...],
    globs: tuple[str, ...],
    jobs: int,
    timeout: float | None,
    keep: Path | None,
    kills: int,
    seed: int,
    json_path: Path | None,
    html_path: Path | None,
    junit_path: Path | None,
    badge_path: Path | None,
    github: bool,
    expect: Path | None,
    no_expect: bool,
    show_known: bool,
    per_clause: bool,
    failures: int,
    plain: bool,
    quiet: bool,
) -> int:
    """Judge an implementation by the cases, clause by clause."""
    import signal

    # An end from outside is an interruption like Ctrl-C: drivers and scratch folders go, what was found is reported.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from trajconform import kit
    from trajconform.cli import EXIT_INTERRUPTED
    from trajconform.harness.baseline import hold_against, load_expectations
    from trajconform.harness.crash import CrashPlan
    from trajconform.harness.drivertoml import DriverSpec, resolve_driver
    from trajconform.harness.runner import run_cases
    from trajconform.spec.catalogue import load_catalogue
    from trajconform.vectors.cases import load_cases
    from trajconform.vectors.selection import check_names, no_case

    if badge_path is not None and badge_path.suffix not in (".svg", ".json"):
        raise click.UsageError(f"--badge {badge_path}: a badge is written as .svg or .json")
    catalogue = load_catalogue()
    check_names(catalogue, clauses, topics)
    subject = resolve_driver(driver)
    cases = load_cases(
        kit.root(),
        formats=formats,
        roles=roles,
        clauses=clauses,
        topics=topics,
        globs=globs,
        known=set(catalogue.clauses),
    )
    baseline = expect
    if baseline is None and not no_expect and isinstance(subject, DriverSpec):
        baseline = subject.known_failures
    expected = None if baseline is None else load_expectations(baseline)  # a faulty list should not cost a run
    if not cases:
        gone = [entry.case for entry in expected or () if entry.case in globs]
        if globs and not gone:
            raise no_case(kit.root(), globs, ("the options that were given",))
        listed = f"; {baseline} still lists {', '.join(gone)}" if gone else ""
        raise click.UsageError(f"no case fits{listed}; 'trajconform coverage' lists clauses and their cases")
    selection: dict[str, Any] = {
        "formats": list(formats),
        "roles": list(roles),
        "topics": list(topics),
        "clauses": list(clauses),
        "globs": list(globs),
    }
    show_progress = sys.stderr.isatty() and not quiet
    with _progress(show_progress, len(cases)) as tick:
        run = run_cases(
            subject,
            cases,
            jobs=jobs,
            keep=keep,
            request_seconds=timeout,
            progress=tick,
            selection=selection,
            catalogue=catalogue,
            plan=CrashPlan(kills, seed),
        )
    if expected is not None:
        every = {case.id for case in cases}
        run = hold_against(run, expected, lambda: every | {case.id for case in load_cases(kit.root())})
    if json_path is not None or html_path is not None:
        from trajconform.report.document import dump, report_document

        document = report_document(run, catalogue, driver)
        if json_path is not None:
            json_path.parent.mkdir(parents=True, exist_ok=True)
            json_path.write_text(dump(document), "utf-8")
        if html_path is not None:
            from trajconform.report.html import render_html

            html_path.parent.mkdir(parents=True, exist_ok=True)
            html_path.write_text(render_html([document], catalogue), "utf-8")
    if junit_path is not None:
        from trajconform.report.junit import write_junit

        write_junit(junit_path, run, catalogue, driver)
    if badge_path is not None:
        from trajconform.report.badge import write_badge

        write_badge(badge_path, run)
    if github:
        from trajconform.report import github as actions

        with actions.no_commands():
            _show(run, catalogue, driver, per_clause, failures, show_known, plain, quiet)
        for line in actions.annotation_lines(run, driver):
            click.echo(line)
        actions.write_summary(actions.summary(run, catalogue, driver))
    else:
        _show(run, catalogue, driver, per_clause, failures, show_known, plain, quiet)
    return EXIT_INTERRUPTED if run.interrupted else run.exit_status


def _show(
    run: RunResult,
    catalogue: Catalogue,
    driver: str | None,
    per_clause: bool,
    failures: int,
    show_known: bool,
    plain: bool,
    quiet: bool,
) -> None:
    """Print a run as it was asked for."""
    from trajconform.report.console import output_width, plain_lines, render_run

    if plain:
        for line in plain_lines(run.results):
            click.echo(line)
    elif not quiet:
        from rich.console import Console

        console = Console(highlight=False, soft_wrap=False, width=output_width())
        render_run(
            console, run, catalogue, driver, per_clause=per_clause, most_failures=failures, show_expected=show_known
        )


class _progress:
    """A progress bar with time left, on a terminal only; the bar never mixes with the report on standard output."""

    def __init__(self, shown: bool, total: int) -> None:
        self.shown, self.total = shown, total

    def __enter__(self) -> Callable[[CaseResult, int, int], None] | None:
        if not self.shown:
            return None
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            transient=True,
        )
        self.bar.start()
        self.task = self.bar.add_task("", total=self.total)
        return self._tick

    def _tick(self, result: CaseResult, done: int, total: int) -> None:
        self.bar.update(self.task, completed=done, total=total, description=result.case)

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self.bar.stop()


def with_selection(run: RunResult, selection: dict[str, Any]) -> RunResult:
    """A run that says what was asked for."""
    return replace(run, selection=selection)
