"""``trajconform compare``: reports side by side."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

EPILOG = """
\b
Examples:
  trajconform run --driver my-driver --json new.json
  trajconform compare old.json new.json                     what regressed, what was fixed
  trajconform compare molrs.json naive.json mine.json --all   implementations side by side
  trajconform compare old.json new.json --output md >> "$GITHUB_STEP_SUMMARY"
  trajconform compare old.json new.json --output html > comparison.html

\b
Exit status: 0 no regression against the first report, 1 a case regressed or is no longer judged, 2 no such judgement
was possible.
"""


@click.command("compare", epilog=EPILOG)
@click.argument("reports", nargs=-1, required=True, metavar="BASE.json REPORT.json...", type=click.Path(path_type=Path))
@click.option(
    "--output",
    type=click.Choice(["text", "md", "json", "html"]),
    default="text",
    show_default=True,
    help="Output form.",
)
@click.option("--all", "everything", is_flag=True, help="Text: cut no list short.")
@click.option("-q", "--quiet", is_flag=True, help="Only the exit status.")
def command(reports: tuple[Path, ...], output: str, everything: bool, quiet: bool) -> int:
    """Put JSON reports of 'run' side by side; every one is held to the first.

    A case regressed where it passed (or was informative) in the first report and fails in another, or failed and now
    crashes. A case that was judged and is now skipped is no longer judged, which counts like a regression.
    """
    import json

    from trajconform.report.compare import compare, comparison_document, load_reports

    if len(reports) < 2:
        raise click.UsageError("two reports or more are needed; 'trajconform run --json FILE' writes one")
    comparison = compare(load_reports(reports))
    if quiet:
        return comparison.exit_status
    if output == "json":
        click.echo(json.dumps(comparison_document(comparison), indent=1, ensure_ascii=False))
    elif output == "text":
        from rich.console import Console

        from trajconform.report.comparison import render_comparison

        width = None if sys.stdout.isatty() else int(os.environ.get("COLUMNS", "110"))
        render_comparison(Console(highlight=False, width=width), comparison, everything=everything)
    else:
        from trajconform.report.comparison import html, markdown

        click.echo(html(comparison) if output == "html" else markdown(comparison), nl=False)
    return comparison.exit_status
