"""``trajconform coverage``: which clauses are tested, by what."""

from __future__ import annotations

import json

import click

from trajconform.spec.catalogue import FORMATS, ROLES

EPILOG = """
\b
Examples:
  trajconform coverage --format mrec --role reader
  trajconform coverage --require must --role store --role reader
  trajconform coverage --output md > coverage.md
"""


@click.command("coverage", epilog=EPILOG)
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice([*FORMATS, "text", "json", "md"]),
    help="Only this trajectory format (repeatable); or, as --output, the form of the output.",
)
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="Only clauses that bind this role.")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic (repeatable).")
@click.option("--require", type=click.Choice(["must", "all"]), help="Exit status 1 where such a clause is untested.")
@click.option("--untested", is_flag=True, help="List untested clauses only.")
@click.option("--output", type=click.Choice(["text", "json", "md"]), default="text", show_default=True)
def command(
    formats: tuple[str, ...],
    roles: tuple[str, ...],
    topics: tuple[str, ...],
    require: str | None,
    untested: bool,
    output: str,
) -> int:
    """Show clause by clause which cases bind it and what is untested."""
    from trajconform import kit
    from trajconform.harness.mutants import load_mutants
    from trajconform.report.coverage import coverage, markdown
    from trajconform.spec.catalogue import load_catalogue
    from trajconform.vectors.cases import load_cases

    output = next((name for name in formats if name not in FORMATS), output)
    formats = tuple(name for name in formats if name in FORMATS)
    catalogue = load_catalogue()
    known = {chapter.topic for chapter in catalogue.chapters}
    for topic in topics:
        if topic not in known:
            raise click.UsageError(f"there is no topic '{topic}'; topics are: {', '.join(sorted(known))}")
    wanted = {clause.id for clause in catalogue.select(formats=formats, roles=roles, topics=topics)}
    cases = load_cases(kit.root(), known=set(catalogue.clauses))
    entries = [entry for entry in coverage(catalogue, cases, load_mutants()) if entry.clause.id in wanted]
    missing = [e for e in entries if not e.tested and (require == "all" or e.clause.required)]
    shown = [e for e in entries if not e.tested] if untested else entries
    if output == "json":
        click.echo(json.dumps([entry.document() for entry in shown], indent=1))
    elif output == "md":
        click.echo(markdown(shown), nl=False)
    else:
        click.echo(
            f"{'clause':<20}{'role':<8}{'level':<12}{'accepting':>9}{'refusing':>10}{'informative':>13}{'mutants':>9}"
        )
        for entry in shown:
            clause = entry.clause
            numbers = f"{len(entry.accepting):>9}{len(entry.refusing):>10}{len(entry.informative):>13}"
            numbers += f"{len(entry.mutants):>9}"
            mark = "" if entry.tested else click.style("  untested", fg="yellow")
            click.echo(f"{clause.id:<20}{clause.role:<8}{clause.level:<12}{numbers}{mark}")
        tested = sum(entry.tested for entry in entries)
        click.echo(f"{len(entries)} clauses, {tested} tested, {len(missing)} untested MUST or MUST NOT", err=True)
    if require and missing:
        click.echo("untested: " + ", ".join(entry.clause.id for entry in missing), err=True)
        return 1
    return 0
