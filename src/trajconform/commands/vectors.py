"""``trajconform vectors``: build, verify and export what every implementation faces."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trajconform.spec.catalogue import FORMATS

EXPORT_EPILOG = """
\b
Examples:
  trajconform vectors export vectors-out
  trajconform vectors export otj-readers --format otj --role reader
  trajconform vectors export one --case 'mrec/commit-marker/*'
  (cd vectors-out && sha256sum --quiet -c SHA256SUMS)

harness/examples/c-unit-test shows a plain unit test in C that walks an export.
"""


@click.group("vectors")
def command() -> None:
    """Build, verify and export the golden files and the cases."""


@command.command("build")
def build_command() -> int:
    """Rebuild golden files, expected replies and manifest from the declarations; what is unchanged stays as it is."""
    from trajconform import kit
    from trajconform.vectors.build import build

    changed = build(kit.writable_root("vectors build"))
    for path in changed:
        click.echo(f"written  {path}")
    click.echo(f"{len(changed)} files changed", err=True)
    return 0


@command.command("verify")
@click.argument(
    "folder", required=False, metavar="[DIR]", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
def verify_command(folder: Path | None) -> int:
    """Show that the committed bytes are those that the declarations make; with DIR, that an export is whole.

    Exit status 1 where something differs.
    """
    from trajconform import kit
    from trajconform.vectors.build import verify

    if folder is not None:
        from trajconform.harness.export import verify_export

        files, problems = verify_export(folder)
        good = f"{files:,} files are as exported"
    else:
        problems, good = verify(kit.root()), "the vectors are as declared"
    for problem in problems:
        click.echo(problem)
    click.echo(good if not problems else f"{len(problems)} problems", err=True)
    return 1 if problems else 0


@command.command("export", epilog=EXPORT_EPILOG)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--format", "formats", multiple=True, type=click.Choice(FORMATS), help="Only this format (repeatable).")
@click.option(
    "--role", "roles", multiple=True, type=click.Choice(("reader", "writer", "store", "crash")), help="Only this role."
)
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic (repeatable).")
@click.option("--case", "globs", multiple=True, metavar="GLOB", help="Only cases whose id fits the pattern.")
@click.option("--force", is_flag=True, help="Replace an earlier export in DIR.")
def export_command(
    folder: Path,
    formats: tuple[str, ...],
    roles: tuple[str, ...],
    topics: tuple[str, ...],
    globs: tuple[str, ...],
    force: bool,
) -> int:
    """Write the cases as plain files into DIR: inputs, scripts, expected replies, an index and checksums.

    For tests in any language that know nothing of this kit; the README.md in DIR says what the files mean. An export
    is written beside DIR and then takes its place, so DIR is never half an export.
    """
    from trajconform import kit
    from trajconform.harness.export import export
    from trajconform.vectors.cases import load_cases

    cases = load_cases(kit.root(), formats=formats, roles=roles, topics=topics, globs=globs)
    if not cases:
        raise click.UsageError("no case fits; 'trajconform coverage' lists clauses and their cases")
    if sys.stderr.isatty():
        with click.progressbar(length=len(cases), label="exporting", file=sys.stderr) as bar:
            files = export(kit.root(), cases, folder, force=force, progress=lambda done, total: bar.update(1))
    else:
        files = export(kit.root(), cases, folder, force=force)
    click.echo(f"{len(cases):,} cases, {files:,} files in {folder}", err=True)
    return 0
