"""``trajconform inspect``: what a trajectory file holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from trajconform.model.location import Place, file_name, is_url, shown, split_zip

EPILOG = """
\b
Examples:
  trajconform inspect cluster.otj
  trajconform inspect growth.mrec
  trajconform inspect growth.mrec --output json
  trajconform inspect s3://bucket/runs/growth.mrec
"""


@click.command("inspect", epilog=EPILOG)
@click.argument("file", type=str)
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
def command(file: str, format_name: str | None, output: str) -> int:
    """Show what FILE holds: an .otj file, an .mrec folder or an .mrec.zip, on this machine or behind a URL.

    Exit status 1 where a reader refuses it.
    """
    from trajconform.model.errors import Refused, TrajconformError
    from trajconform.model.location import localized

    place = localized(file)
    if not is_url(place):
        place = Path(place)
        if not place.exists():
            raise click.UsageError(f"{place} does not exist")
        if not place.is_file() and not place.is_dir():
            raise click.UsageError(f"{place} is neither a file nor a folder")
    try:
        kind = format_name or guess_format(place)
        facts = _inspect(kind, place)
    except Refused as refusal:
        click.echo(f"{shown(place)}: refused\n  {refusal.violation}", err=True)
        return 1
    except OSError as error:
        raise TrajconformError(problem_of(error, place)) from None
    if output == "json":
        click.echo(json.dumps(facts, indent=1, allow_nan=False))
    else:
        click.echo("\n".join(_otj_lines(facts) if kind == "otj" else _mrec_lines(facts)))
    return 0


def problem_of(error: OSError, place: Place) -> str:
    """Why a file cannot be looked at, for people; what a URL leads to names itself."""
    from trajconform.model.remote import RemoteError

    if isinstance(error, RemoteError):
        return str(error)
    return f"{shown(place)}: cannot be read: {error.strerror or error}"


def guess_format(place: Place) -> str:
    """The format of a file by its name, or by what it is: folder and zip are records, the magic makes an otj file."""
    from trajconform.model.remote import Remote, open_place

    file, name = shown(place), file_name(place)
    remote = is_url(place)
    if name.endswith((".mrec", ".mrec.zip", ".zip")) or (not remote and Path(place).is_dir()):
        return "mrec"
    if name.endswith(".otj"):
        return "otj"
    if not remote and not Path(place).is_file():
        raise click.UsageError(f"{file} is neither a file nor a folder")
    if remote and not split_zip(str(place)).zipped and Remote(str(place)).is_folder():
        return "mrec"
    with open_place(place) as stream:
        head = stream.read(8)
    if head == b"ORRERYTJ":
        return "otj"
    if head.startswith(b"PK"):
        return "mrec"
    raise click.UsageError(
        f"{file} is neither an .otj file nor a record (.mrec, .mrec.zip) by name or content; say --as mrec or --as otj"
    )


def _inspect(kind: str, file: Place) -> dict[str, Any]:
    if kind == "otj":
        from trajconform.otj.inspect import inspect_otj

        return inspect_otj(file)
    from trajconform.mrec.inspect import inspect_mrec

    return inspect_mrec(file if isinstance(file, str) else Path(file))


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
