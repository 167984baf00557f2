"""``trajconform check``: whether files conform, and if not which clause each breaks and where."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

EPILOG = """
\b
Examples:
  trajconform check run.mrec
  trajconform check frames.otj run.mrec.zip --output json
  trajconform check run.mrec --output sarif > findings.sarif

\b
Exit status: 0 every file conforms, 1 some file breaks a MUST, 2 some file could not be looked at.
"""


@click.command("check", epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
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
def command(files: tuple[Path, ...], format_name: str | None, output: str, quick: bool) -> int:
    """Check FILES by every clause for stores and readers; all breaches are listed, each with clause and place."""
    from trajconform.report.findings import FileFindings, check_file, sarif_document

    found: list[FileFindings] = [check_file(file, format_name, quick=quick) for file in files]
    if output == "json":
        click.echo(json.dumps({"files": [one.document() for one in found]}, indent=1, ensure_ascii=False))
    elif output == "sarif":
        click.echo(json.dumps(sarif_document(found), indent=1, ensure_ascii=False))
    else:
        for one in found:
            _print(one)
    if any(one.problem for one in found):
        return 2
    return 1 if any(one.broken for one in found) else 0


def _print(one: Any) -> None:
    if one.problem:
        click.echo(f"{one.file}: {click.style('not looked at', bold=True)}: {one.problem}", err=True)
        return
    if not one.violations:
        click.echo(f"{one.file}: {click.style('conforms', fg='green')}")
        return
    word = click.style("does not conform", fg="red", bold=True) if one.broken else click.style("conforms", fg="green")
    click.echo(f"{one.file}: {word}, {len(one.violations)} finding{'s' if len(one.violations) != 1 else ''}")
    for violation in one.violations:
        click.echo(f"  {click.style(violation.clause, bold=True)} ({violation.level})  {violation.place}")
        click.echo(f"      {violation.message}")
    sys.stdout.flush()
