"""``trajconform vectors``: build, verify and export what every implementation faces."""

from __future__ import annotations

import click


@click.group("vectors")
def command() -> None:
    """Build and verify the golden files and the manifest."""


@command.command("build")
def build_command() -> int:
    """Rebuild golden files, expected replies and manifest from the declarations; what is unchanged stays as it is."""
    from trajconform import kit
    from trajconform.vectors.build import build

    changed = build(kit.root())
    for path in changed:
        click.echo(f"written  {path}")
    click.echo(f"{len(changed)} files changed", err=True)
    return 0


@command.command("verify")
def verify_command() -> int:
    """Show that the committed bytes are those that the declarations make. Exit status 1 where they are not."""
    from trajconform import kit
    from trajconform.vectors.build import verify

    problems = verify(kit.root())
    for problem in problems:
        click.echo(problem)
    click.echo("the vectors are as declared" if not problems else f"{len(problems)} problems", err=True)
    return 1 if problems else 0
