"""``trajconform clauses``: list the specification's clauses."""

from __future__ import annotations

import json
import shutil
import textwrap
from dataclasses import asdict

import click

from trajconform import kit
from trajconform.spec.catalogue import FORMATS, LEVELS, ROLES, Catalogue, Clause, load_catalogue
from trajconform.spec.lock import LOCK, compare_lock, lock_text

EPILOG = """
\b
Examples:
  trajconform clauses --format otj
  trajconform clauses --topic regular --role reader --level MUST
  trajconform clauses --output json
  trajconform clauses --check-lock

\b
The lock, spec/clauses.lock.json, holds a digest of every clause. A changed statement fails --check-lock, which names
the cases to look at again; --write-lock records the new state.
"""


@click.command("clauses", epilog=EPILOG)
@click.option("--format", "formats", multiple=True, type=click.Choice(FORMATS), help="Only this format (repeatable).")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic (repeatable).")
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="Only clauses that bind this role.")
@click.option("--level", "levels", multiple=True, type=click.Choice(LEVELS), help="Only this level.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--check-lock", is_flag=True, help="Exit status 1 where a clause is not as the lock has it.")
@click.option("--write-lock", is_flag=True, help="Record the clauses as they are in the lock.")
def command(
    formats: tuple[str, ...],
    topics: tuple[str, ...],
    roles: tuple[str, ...],
    levels: tuple[str, ...],
    output: str,
    check_lock: bool,
    write_lock: bool,
) -> int:
    """List clauses, filtered by format, topic, role and level."""
    catalogue = load_catalogue()
    if check_lock or write_lock:
        return _lock(catalogue, write=write_lock)
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


def _lock(catalogue: Catalogue, *, write: bool) -> int:
    path = (kit.writable_root("--write-lock") if write else kit.root()) / LOCK
    if write:
        path.write_text(lock_text(catalogue), "utf-8")
        click.echo(f"{len(catalogue.clauses)} clauses locked in {path}", err=True)
        return 0
    changes = compare_lock(catalogue, path)
    if not changes:
        click.echo("every clause is as locked", err=True)
        return 0
    from trajconform.vectors.cases import load_cases

    for clause_id, change in changes.items():
        click.echo(f"{clause_id}: {change}")
        if clause_id in catalogue.clauses:
            for case in load_cases(kit.root(), clauses=(clause_id,)):
                click.echo(f"  look again at {case.id}")
    click.echo(
        f"{len(changes)} clauses differ from {LOCK}; when the cases fit: trajconform clauses --write-lock", err=True
    )
    return 1
