"""``trajconform explain``: a clause, or a case, in full."""

from __future__ import annotations

import shutil
import textwrap

import click

from trajconform.spec.catalogue import Clause, load_catalogue

EPILOG = """
\b
Examples:
  trajconform explain MREC-COMMIT-03
  trajconform explain mrec/commit-marker/nstep-null
"""
_MARKS = {
    "S": "stands in a source document",
    "T": "from a table that a source document lost",
    "C": "companion fact",
    "R": "ruling of this project",
}


@click.command("explain", epilog=EPILOG)
@click.argument("name")
def command(name: str) -> int:
    """Show the clause or the case NAME: its words, where it stands, what it is bound to."""
    catalogue = load_catalogue()
    clauses = catalogue.clauses
    if name.upper() in clauses:
        _explain_clause(clauses[name.upper()])
        return 0
    if "/" in name:
        return _explain_case(name, clauses)
    import difflib

    near = difflib.get_close_matches(name.upper(), list(clauses), n=3)
    hint = f"; near: {', '.join(near)}" if near else ""
    raise click.UsageError(f"there is no clause '{name}'{hint}. 'trajconform clauses' lists them all.")


def _wrap(text: str, indent: str = "  ") -> str:
    width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 110))
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent)


def _explain_clause(clause: Clause) -> None:
    from trajconform import kit
    from trajconform.vectors.cases import load_cases

    click.echo(f"{click.style(clause.id, bold=True)}  {clause.role}, {clause.level}  ({clause.profile})")
    click.echo(_wrap(clause.statement))
    click.echo(f"  stands in {clause.path}:{clause.line}; [{clause.mark}] {_MARKS[clause.mark]}")
    cases = load_cases(kit.root(), formats=(clause.format,), clauses=(clause.id,))
    click.echo(f"\n{len(cases)} case{'' if len(cases) == 1 else 's'} bind it")
    for case in cases:
        click.echo(f"  {case.id}")
        click.echo(_wrap(case.title, "      "))


def _explain_case(name: str, clauses: dict[str, Clause]) -> int:
    from trajconform import kit
    from trajconform.report.coverage import expectation
    from trajconform.vectors.cases import load_cases

    cases = load_cases(kit.root(), globs=(name,))
    if not cases:
        from trajconform.vectors.selection import no_case

        raise no_case(kit.root(), (name,))
    for case in cases:
        click.echo(f"{click.style(case.id, bold=True)}  role {case.role}, {expectation(case)}")
        click.echo(_wrap(case.title))
        click.echo(f"  stands in {case.path}")
        for clause_id in case.clauses:
            clause = clauses[clause_id]
            click.echo(f"  {clause.id} ({clause.role}, {clause.level})")
            click.echo(_wrap(clause.statement, "      "))
    return 0
