"""``trajconform spec html``: the specification as a static site."""

from __future__ import annotations

from pathlib import Path

import click

EPILOG = """
\b
Example:
  trajconform spec html site && python3 -m http.server --directory site
"""


@click.group("spec")
def command() -> None:
    """Render the specification."""


@command.command("html", epilog=EPILOG)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def html(folder: Path) -> int:
    """Write the specification as a static site into FOLDER; files of an earlier site are replaced."""
    from trajconform import kit
    from trajconform.spec.catalogue import load_catalogue
    from trajconform.spec.site import render_site
    from trajconform.vectors.cases import cases_by_clause

    root = kit.root()
    catalogue = load_catalogue(root)
    written = render_site(root, catalogue, cases_by_clause(root), folder)
    click.echo(f"{len(written)} files, {len(catalogue.clauses)} clauses; open {folder / 'index.html'}")
    return 0
