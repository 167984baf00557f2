"""``trajconform prove``: are the cases any good? Every deliberate mistake has to be caught."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trajconform.spec.catalogue import FORMATS

if TYPE_CHECKING:
    from trajconform.harness.prove import Matrix, Proof

EPILOG = """
\b
Examples:
  trajconform prove -j 2                            every mutant against the cases of its clauses' topics
  trajconform prove --scope role --json proof.json  against all cases of its format and role
  trajconform prove --mutant 'otj_reader/*'         some mutants
  trajconform prove --clause MREC-COMMIT-03         the mutants of a clause
  trajconform prove --require must -j 2             and: every MUST of a reader and writer has a mutant, caught on it

\b
Exit status: 0 all are caught on the clauses they break, 1 one is not (or, with --require, a clause has none),
2 nothing could be proved.
"""


@click.command("prove", epilog=EPILOG)
@click.option("--mutant", "globs", multiple=True, metavar="GLOB", help="Only mutants whose FILE/NAME fits.")
@click.option("--clause", "clauses", multiple=True, metavar="ID", help="Only mutants that break this clause.")
@click.option("--format", "formats", multiple=True, type=click.Choice(FORMATS), help="Only this format (repeatable).")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(["reader", "writer", "store"]),
    help="Only mutants of this role.",
)
@click.option(
    "--scope",
    type=click.Choice(["clause", "topic", "role"]),
    default="topic",
    show_default=True,
    help="Cases that face a mutant: of its clauses, of their topics too, or all of its format and role.",
)
@click.option("--require", type=click.Choice(["must"]), help="Exit status 1 where a MUST or MUST NOT has no mutant.")
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Mutants at a time.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write the matrix as JSON.")
@click.option("--output", type=click.Choice(["text", "md"]), default="text", show_default=True)
def command(
    globs: tuple[str, ...],
    clauses: tuple[str, ...],
    formats: tuple[str, ...],
    roles: tuple[str, ...],
    scope: str,
    require: str | None,
    jobs: int,
    json_path: Path | None,
    output: str,
) -> int:
    """Show that each mistake is caught, on the clause that it breaks: the kill matrix."""
    import fnmatch

    from trajconform import kit
    from trajconform.harness.mutants import load_mutants
    from trajconform.harness.prove import prove_all
    from trajconform.spec.catalogue import load_catalogue
    from trajconform.vectors.cases import load_cases

    catalogue = load_catalogue()
    for clause in clauses:
        if clause not in catalogue.clauses:
            raise click.UsageError(f"there is no clause '{clause}'")
    mutants = [
        m
        for m in load_mutants()
        if (not globs or any(fnmatch.fnmatchcase(m.id, g) for g in globs))
        and (not clauses or set(clauses) & set(m.clauses))
        and (not formats or m.format in formats)
        and (not roles or m.role in roles)
    ]
    if not mutants:
        raise click.UsageError("no mutant fits; harness/mutants holds them")
    required = [
        c.id
        for c in catalogue.clauses.values()
        if require and c.required
        if (not formats or c.format in formats) and (not roles or c.role in roles)
        if not clauses or c.id in clauses
    ]
    cases = load_cases(kit.root(), formats=formats, known=set(catalogue.clauses))
    shown = sys.stderr.isatty()

    def tell(proof: Proof, done: int) -> None:
        if shown:
            click.echo(f"\r{done}/{len(mutants)} {proof.mutant.id[:60]:<60}", nl=False, err=True)

    matrix = prove_all(mutants, cases, catalogue, scope=scope, jobs=jobs, required=required, progress=tell)
    if shown:
        click.echo("\r" + " " * 75 + "\r", nl=False, err=True)
    if json_path is not None:
        json_path.parent.mkdir(parents=True, exist_ok=True)
        json_path.write_text(json.dumps(matrix.document(), indent=1) + "\n", "utf-8")
    (_markdown if output == "md" else _text)(matrix)
    return 0 if matrix.count("killed") == len(matrix.proofs) and not matrix.lacking else 1


def _text(matrix: Matrix) -> None:
    colours = {"killed": "green", "elsewhere": "yellow", "survives": "red", "unusable": "red"}
    for proof in matrix.proofs:
        m = proof.mutant
        status = click.style(f"{proof.status:<10}", fg=colours[proof.status])
        killers = proof.killers(m.clauses[0])
        by = f"{killers[0]}{f' +{len(killers) - 1}' if len(killers) > 1 else ''}" if killers else "-"
        others = proof.others
        beside = f"  also fail: {', '.join(others[:4])}{f' +{len(others) - 4}' if len(others) > 4 else ''}"
        click.echo(f"{status}{m.id:<46} {', '.join(m.clauses):<18} {by}{beside if others else ''}")
        if proof.status != "killed":
            failing = f"; fails {', '.join(list(proof.failing)[:6])}" if proof.failing else ""
            click.echo(f"          {proof.fault or m.mistake}{failing}")
    counts = ", ".join(f"{matrix.count(s)} {s}" for s in colours if matrix.count(s))
    click.echo(
        f"{len(matrix.proofs)} mutants against {matrix.cases} cases (scope {matrix.scope}): {counts}; median precision of "
        f"blame {matrix.precision:.2f}, led by a clause that is broken: {matrix.leading}; {matrix.seconds:.0f} s"
    )
    if matrix.lacking:
        click.echo(f"{len(matrix.lacking)} clauses without a mutant: {', '.join(matrix.lacking)}")


def _markdown(matrix: Matrix) -> None:
    click.echo("| mutant | clauses | status | killed by | also fail | precision | mistake |")
    click.echo("|---|---|---|---|---|--:|---|")
    for proof in matrix.proofs:
        m = proof.mutant
        killers = [case for clause in m.clauses for case in proof.killers(clause)]
        by = f"{killers[0]} (of {len(set(killers))})" if killers else ""
        click.echo(
            f"| {m.id} | {', '.join(m.clauses)} | {proof.status} | {by} | {', '.join(proof.others)} "
            f"| {proof.precision:.2f} | {m.mistake} |"
        )
    click.echo(f"\n{len(matrix.proofs)} mutants, {matrix.count('killed')} killed on the clauses they break.")
