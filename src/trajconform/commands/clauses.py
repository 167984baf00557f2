"""``trajconform clauses``: list the specification's clauses."""

from __future__ import annotations

import json
import shutil
import textwrap
from dataclasses import asdict

import click

from trajconform.spec.catalogue import FORMATS, LEVELS, ROLES, Clause, load_catalogue

EPILOG = """
\b
Examples:
  trajconform clauses --format otj
  trajconform clauses --topic regular --role reader --level MUST
  trajconform clauses --output json
"""


@click.command("clauses", epilog=EPILOG)
@click.option("--format", "formats", multiple=True, type=click.Choice(FORMATS), help="Only this format (repeatable).")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic (repeatable).")
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="Only clauses that bind this role.")
@click.option("--level", "levels", multiple=True, type=click.Choice(LEVELS), help="Only this level.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    formats: tuple[str, ...], topics: tuple[str, ...], roles: tuple[str, ...], levels: tuple[str, ...], output: str
) -> int:
    """List clauses, filtered by format, topic, role and level."""
    catalogue = load_catalogue()
    known = {chapter.topic for chapter in catalogue.chapters}
    for topic in topics:
        if topic not in known:
            raise click.UsageError(f"there is no topic '{topic}'; topics are: {', '.join(sorted(known))}")
    found = catalogue.select(formats=formats, topics=topics, roles=roles, levels=levels)
    if output == "json":
        click.echo(json.dumps([{**asdict(c), "profile": c.profile, "digest": c.digest} for c in found], indent=1))
        return 0
    _print(found)
    return 0


def _print(clauses: list[Clause]) -> None:
    width = max(60, min(shutil.get_terminal_size((100, 24)).columns, 120))
    topic = ""
    for clause in clauses:
        heading = f"{clause.format} / {clause.topic}"
        if heading != topic:
            click.echo(("\n" if topic else "") + click.style(heading, bold=True))
            topic = heading
        head = f"  {clause.id:<18} {clause.role:<6} {clause.level:<10} "
        text = textwrap.wrap(f"{clause.statement} [{clause.mark}]", max(30, width - len(head)))
        for i, line in enumerate(text):
            click.echo((head if i == 0 else " " * len(head)) + line)
    click.echo(f"\n{len(clauses)} clauses", err=True)
