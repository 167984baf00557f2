"""Command line: a group whose commands live one per module in `trajconform.commands` and load when asked for."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import signal
import sys
from typing import Any, TextIO

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
EXIT_OUTPUT_LOST = 74
"""EX_IOERR of sysexits.h: standard output could not be written, a full disk say."""
EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_NO_READER = 128 + 13
"""What a shell says of a program that SIGPIPE (13) ended: the reader of its output went away."""


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
Exit status: 0 conforms, 1 does not, 2 no judgement was possible, 74 the output
could not be written, 130 interrupted, 141 the reader of the output went away.
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


class _OutputLost(BaseException):
    """Standard output or error takes nothing more. No `OSError`: click, rich and what reads files would take it for
    one of theirs, and each ends in its own way."""

    def __init__(self, number: int | None) -> None:
        super().__init__(number)
        self.number = number


class _Watched(io.FileIO):
    """A standard stream whose faults are `_OutputLost`."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise _OutputLost(error.errno) from error


def _watched(stream: TextIO | None, real: TextIO | None) -> TextIO | None:
    """A standard stream of this process, watched; what somebody put in its place is left alone."""
    if stream is None or stream is not real:
        return stream
    try:
        raw = _Watched(stream.fileno(), "w", closefd=False)
    except OSError:
        return stream
    stream.flush()
    lines = raw.isatty() or stream is sys.__stderr__
    return io.TextIOWrapper(io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=lines)


def _end_streams() -> None:
    """Send what is still buffered, and what Python flushes at its end, nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)


def main(argv: list[str] | None = None) -> Any:
    """Entry point: every error a person can cause ends as one clear message and an exit status, never a traceback.

    Output is flushed here, so that a fault of it is still told by the exit status. SIGPIPE stays ignored: pipes to
    drivers break, too, and those are the drivers' faults.
    """
    before = sys.stdout, sys.stderr
    sys.stdout = _watched(sys.stdout, sys.__stdout__)
    sys.stderr = _watched(sys.stderr, sys.__stderr__)
    try:
        try:
            status = _status(argv)
        finally:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
    except _OutputLost as lost:
        status = EXIT_NO_READER
        if lost.number != errno.EPIPE:
            status = EXIT_OUTPUT_LOST
            text = f"trajconform: the output could not be written: {os.strerror(lost.number or errno.EIO)}\n"
            with contextlib.suppress(OSError):
                os.write(2, text.encode())
        _end_streams()
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    finally:
        sys.stdout, sys.stderr = before
    sys.exit(status)


def _status(argv: list[str] | None) -> int:
    """Run the command and say with which status the program ends."""
    from trajconform.model.errors import TrajconformError

    try:
        status = main_group.main(args=argv, prog_name="trajconform", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        return EXIT_NO_JUDGEMENT
    except TrajconformError as error:
        click.echo(f"trajconform: {error}", err=True)
        return EXIT_NO_JUDGEMENT
    return status if isinstance(status, int) else EXIT_CONFORMS
