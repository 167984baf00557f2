"""``trajconform check``: whether files conform, and if not which clause each breaks and where."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trajconform.model.work import Progress

EPILOG = """
\b
Examples:
  trajconform check run.mrec
  trajconform check frames.otj run.mrec.zip --output json
  trajconform check run.mrec --output sarif > findings.sarif
  trajconform check large.otj -j 4 --frames 1000:
  trajconform check s3://bucket/run.mrec https://example.org/frames.otj

\b
Exit status: 0 every file conforms, 1 some file breaks a MUST, 2 some file could not be looked at.
"""

_MOST = 20
"""Findings of one clause that are listed for a person; the rest is counted."""
_UNITS = {"": 1, "k": 1000, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}


def _range(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d*):(\d*)", text)
    if not found or not (found[1] or found[2]):
        raise click.BadParameter(f"{text!r} is no range of frames; write 10:20, 10: or :20")
    return int(found[1] or 0), int(found[2]) if found[2] else 2**64


def _size(_context: click.Context, _option: click.Parameter, text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]i?|)b?", text.strip().lower())
    if not found:
        raise click.BadParameter(f"{text!r} is no size; write 256MiB, 1GiB or a number of bytes")
    size = int(float(found[1]) * _UNITS[found[2]])
    if size < 16 << 20:
        raise click.BadParameter("with less than 16MiB a check cannot work")
    return size


@click.command("check", epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, type=str)
@click.option(
    "--as", "format_name", type=click.Choice(["mrec", "otj"]), help="Take the files for this, whatever their names."
)
@click.option(
    "--output",
    "--format",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="Form of the output.",
)
@click.option("--quick", is_flag=True, help="Structure and metadata only: no rows are read.")
@click.option("--frames", metavar="A:B", callback=_range, help="Rows of these frames only, from A up to, without, B.")
@click.option(
    "--memory",
    metavar="SIZE",
    default="256MiB",
    show_default=True,
    callback=_size,
    help="The most that is held of a file at a time (64MiB, 1GiB ...).",
)
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Threads.")
@click.option("-q", "--quiet", is_flag=True, help="Only the exit status.")
def command(
    files: tuple[str, ...],
    format_name: str | None,
    output: str,
    quick: bool,
    frames: tuple[int, int] | None,
    memory: int,
    jobs: int,
    quiet: bool,
) -> int:
    """Check FILES by every clause for stores and readers; all breaches are listed, each with clause and place."""
    from trajconform.model.location import shown
    from trajconform.model.work import Work
    from trajconform.report.findings import FileFindings, check_file, sarif_document

    work = Work(quick, frames, memory, jobs)
    found: list[FileFindings] = []
    for file in files:
        with _bar(shown(file), sys.stderr.isatty() and not quiet) as progress:
            found.append(check_file(file, format_name, work, progress))
        if output == "text" and not quiet:
            _print(found[-1])
        if found[-1].interrupted:
            click.echo(f"interrupted; {len(files) - len(found)} files were not looked at", err=True)
            break
    if output == "json" and not quiet:
        click.echo(json.dumps({"files": [one.document() for one in found]}, indent=1, ensure_ascii=False))
    elif output == "sarif" and not quiet:
        click.echo(json.dumps(sarif_document(found), indent=1, ensure_ascii=False))
    if any(one.problem or one.interrupted for one in found):
        return 2
    return 1 if any(one.broken for one in found) else 0


def _print(one: Any) -> None:
    from trajconform.report.console import shown

    if one.problem:
        click.echo(f"{one.file}: {click.style('not looked at', bold=True)}: {one.problem}", err=True)
        return
    so_far = " as far as it was looked at" if one.interrupted else ""
    if not one.violations:
        click.echo(f"{one.file}: {click.style('conforms', fg='green')}{so_far}")
        return
    word = click.style("does not conform", fg="red", bold=True) if one.broken else click.style("conforms", fg="green")
    plural = "s" if len(one.violations) != 1 else ""
    click.echo(f"{one.file}: {word}{so_far if not one.broken else ''}, {len(one.violations)} finding{plural}")
    counts = Counter(violation.clause for violation in one.violations)
    listed: Counter[str] = Counter()
    for violation in one.violations:
        listed[violation.clause] += 1
        if listed[violation.clause] <= _MOST:
            click.echo(f"  {click.style(violation.clause, bold=True)} ({violation.level})  {shown(violation.place)}")
            click.echo(f"      {shown(violation.message)}")
    for clause, number in counts.items():
        if number > _MOST:
            click.echo(f"  {click.style(clause, bold=True)}  {number - _MOST} more; --output json lists them all")
    sys.stdout.flush()


@contextlib.contextmanager
def _bar(name: str, wanted: bool) -> Iterator[Progress | None]:
    """A bar with rate and time left, on a terminal only."""
    if not wanted:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), DownloadColumn(True), TransferSpeedColumn(), TimeRemainingColumn())
    with Bar(TextColumn("{task.description}"), *columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name[-40:], total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
