"""``trajconform inspect``: what a trajectory file holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

EPILOG = """
\b
Examples:
  trajconform inspect cluster.otj
  trajconform inspect growth.mrec
  trajconform inspect growth.mrec --output json
"""


@click.command("inspect", epilog=EPILOG)
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--as", "format_name", type=click.Choice(["mrec", "otj"]), help="Take the file for this, whatever its name."
)
@click.option(
    "--output",
    "--format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the output.",
)
def command(file: Path, format_name: str | None, output: str) -> int:
    """Show what FILE holds: an .otj file, an .mrec folder or an .mrec.zip. Exit status 1 where a reader refuses it."""
    from trajconform.model.errors import Refused

    if not file.is_file() and not file.is_dir():
        raise click.UsageError(f"{file} is neither a file nor a folder")
    kind = format_name or guess_format(file)
    try:
        facts = _inspect(kind, file)
    except Refused as refusal:
        click.echo(f"{file}: refused\n  {refusal.violation}", err=True)
        return 1
    if output == "json":
        click.echo(json.dumps(facts, indent=1, allow_nan=False))
    else:
        click.echo("\n".join(_otj_lines(facts) if kind == "otj" else _mrec_lines(facts)))
    return 0


def guess_format(file: Path) -> str:
    """The format of a file by its name, or by what it is: folder and zip are records, the magic makes an otj file."""
    if file.is_dir() or file.name.endswith((".mrec", ".mrec.zip", ".zip")):
        return "mrec"
    if file.suffix == ".otj":
        return "otj"
    if not file.is_file():
        raise click.UsageError(f"{file} is neither a file nor a folder")
    with file.open("rb") as stream:
        head = stream.read(8)
    if head == b"ORRERYTJ":
        return "otj"
    if head.startswith(b"PK"):
        return "mrec"
    raise click.UsageError(
        f"{file} is neither an .otj file nor a record (.mrec, .mrec.zip) by name or content; say --as mrec or --as otj"
    )


def _inspect(kind: str, file: Path) -> dict[str, Any]:
    if kind == "otj":
        from trajconform.otj.inspect import inspect_otj

        return inspect_otj(file)
    from trajconform.mrec.inspect import inspect_mrec

    return inspect_mrec(file)


def _otj_lines(facts: dict[str, Any]) -> list[str]:
    words = {True: "yes", False: "no"}
    names = ("particles", "precision", "timestep", "velocities", "frames")
    lines = [
        f"{name:<12}{words.get(facts[name], facts[name]) if name == 'velocities' else facts[name]}" for name in names
    ]
    for which in ("first", "last"):
        if facts.get(which):
            lines.append(f"{which:<12}step {facts[which]['step']}, time {facts[which]['time']}")
    lines.append(f"{'tail':<12}{facts['tail']}")
    return lines


def _mrec_lines(facts: dict[str, Any]) -> list[str]:
    lines = [f"{'frames':<12}{facts['frames']}"]
    for name in ("steps", "times"):
        lines.append(f"{name:<12}{facts[name]}")
    lines.append("blocks" if facts["blocks"] else f"{'blocks':<12}none declared")
    for block in facts["blocks"]:
        lines.append(f"  {block['name']:<14}{block['columns']} ({block['kind']})")
        lines += [f"    {state}" for state in block["states"]]
    lines.append(f"{'cell':<12}{facts['cell']}")
    lines.append("meta" if facts["meta"] else f"{'meta':<12}none declared")
    lines += [f"  {entry}" for entry in facts["meta"]]
    return lines
