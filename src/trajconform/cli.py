"""Command line: a group whose commands live one per module in `trajconform.commands` and load when asked for."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

import click

from trajconform import __version__

_COMMANDS = {
    "run": "judge an implementation, clause by clause",
    "report": "show saved reports, of one or several implementations, as an HTML page",
    "certify": "run every case and write the result as a certificate, signed or not",
    "verify": "say what a certificate claims and whether it holds",
    "compare": "put reports side by side: what differs, regressed, was fixed",
    "check": "say whether files conform, which clause each breaks and where",
    "inspect": "show what a trajectory file holds",
    "clauses": "list the clauses of the specification",
    "explain": "show a clause or a case: words, place, what it is bound to",
    "coverage": "show which clauses are tested, by what",
    "prove": "show that deliberate mistakes are caught, on the clause they break",
    "driver": "set up, list and examine drivers",
    "vectors": "build, verify and export the vectors",
    "spec": "render the specification",
}
"""Command -> one line of help. The module is ``trajconform.commands.<command>`` and its command is ``command``."""

EXIT_CONFORMS, EXIT_FAILS, EXIT_NO_JUDGEMENT = 0, 1, 2


class LazyGroup(click.Group):
    """Loads a command's module only when it is run or its own help is asked for; the list of commands costs nothing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(f"trajconform.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, _COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"there is no command '{name}'.{hint} 'trajconform --help' lists them.", ctx)
        return super().resolve_command(ctx, args)


EPILOG = """
\b
Examples:
  trajconform run                              judge the bundled implementation
  trajconform run --driver harness/drivers/c-otj
  trajconform check run.mrec frames.otj
  trajconform explain MREC-COMMIT-03

\b
Exit status: 0 conforms, 1 does not, 2 no judgement was possible.
"""


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.option("-V", "--version", is_flag=True, help="Show the version and exit.")
@click.option("--verbose", is_flag=True, help="With --version: where the kit is and how it works on this machine.")
@click.pass_context
def main_group(context: click.Context, version: bool, verbose: bool) -> None:
    """Conformance kit for the trajectory formats mrec and otj."""
    if version:
        click.echo(f"trajconform, version {__version__}")
        if verbose:
            for name, value in _about():
                click.echo(f"{name:<14}{value}")
        context.exit()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(0 if not sys.argv[1:] else EXIT_NO_JUDGEMENT)


def _about() -> list[tuple[str, str]]:
    """What somebody needs to know who wonders why this machine differs from another."""
    import platform
    from importlib import metadata

    from trajconform import kit
    from trajconform.otj import kernel

    names = ("numpy", "numcodecs", "zarr", "jsonschema", "hypothesis")
    return [
        ("python", f"{platform.python_version()} ({platform.machine()}, {platform.system()})"),
        ("kit", str(kit.root())),
        ("checksums", kernel.description()),
        ("libraries", ", ".join(f"{name} {metadata.version(name)}" for name in names)),
    ]


def main(argv: list[str] | None = None) -> Any:
    """Entry point: every error a person can cause ends as one clear message and exit status 2, never a traceback."""
    from trajconform.model.errors import TrajconformError

    try:
        status = main_group.main(args=argv, prog_name="trajconform", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(128 + signal.SIGINT)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_NO_JUDGEMENT)
    except TrajconformError as error:
        click.echo(f"trajconform: {error}", err=True)
        sys.exit(EXIT_NO_JUDGEMENT)
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing to say, and nothing more to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_CONFORMS)
    sys.exit(status if isinstance(status, int) else EXIT_CONFORMS)
