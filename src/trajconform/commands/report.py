"""``trajconform report``: saved reports as a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

EPILOG = """
\b
Examples:
  trajconform run --driver molrs --json molrs.json
  trajconform run --driver naive --json naive.json
  trajconform report molrs.json --html molrs.html
  trajconform report molrs.json naive.json --html both.html
  trajconform prove -j 2 --json proof.json
  trajconform report molrs.json --mutants proof.json --html molrs.html

\b
The page is one file that loads nothing: it can be sent, kept, and opened from a disk.
"""


@click.command("report", epilog=EPILOG)
@click.argument(
    "reports",
    nargs=-1,
    required=True,
    metavar="REPORT.json...",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--html",
    "html_path",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the page goes.",
)
@click.option(
    "--mutants",
    "mutants_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PROVE.json",
    help="Show which mutants the cases find out.",
)
def command(reports: tuple[Path, ...], html_path: Path, mutants_path: Path | None) -> int:
    """Show saved JSON reports, of one or several implementations, as one HTML page."""
    from trajconform.harness.protocol import find_fault
    from trajconform.model.errors import TrajconformError
    from trajconform.report.html import render_html
    from trajconform.spec.catalogue import load_catalogue

    documents = []
    for path in reports:
        document = _load(path)
        fault = find_fault("report", document)
        if fault:
            raise TrajconformError(f"{path}{fault}\nA report is what 'trajconform run --json {path}' writes.")
        documents.append(document)
    mutants = _load(mutants_path) if mutants_path is not None else None
    page = render_html(documents, load_catalogue(), mutants)
    html_path.parent.mkdir(parents=True, exist_ok=True)
    html_path.write_text(page, "utf-8")
    click.echo(f"{html_path}: {len(documents)} report{'s' if len(documents) != 1 else ''}, {len(page):,} bytes")
    return 0


def _load(path: Path) -> Any:
    from trajconform.model.errors import TrajconformError

    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise TrajconformError(f"{path} cannot be read as JSON: {error}") from None
