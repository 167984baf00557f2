"""``trajconform driver``: write, set up, examine and list drivers."""

from __future__ import annotations

from pathlib import Path

import click


@click.group("driver")
def command() -> None:
    """Write, set up, examine and list the programs that the kit can judge."""


@command.command("setup")
@click.argument("driver")
@click.option("--fresh", is_flag=True, help="Build from nothing, whatever is there.")
def setup_command(driver: str, fresh: bool) -> int:
    """Build DRIVER (a name from 'driver list' or a folder with a driver.toml) so that it can be run."""
    from trajconform.harness.drivertoml import DriverSpec, resolve_driver
    from trajconform.harness.setup import setup_driver

    spec = resolve_driver(driver)
    if not isinstance(spec, DriverSpec):
        click.echo(f"{driver} runs in process: nothing to set up")
        return 0
    setup_driver(spec, progress=lambda line: click.echo(line, err=True), fresh=fresh)
    click.echo(f"{spec.name} is ready: trajconform run --driver {driver}")
    return 0


@command.command(
    "new",
    epilog="""
\b
Examples:
  trajconform driver new --language node my-driver
  trajconform run --driver my-driver
""",
)
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@click.option(
    "--language", required=True, type=click.Choice(["python", "c", "node", "rust"]), help="What it is written in."
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["otj", "mrec"]),
    default="otj",
    show_default=True,
    help="The format whose 'read' it answers.",
)
def new_command(folder: Path, language: str, format_name: str) -> int:
    """Write a small working driver into the new folder NAME.

    It answers 'read' of one format and calls everything else unsupported. For otj its reader is whole; for mrec it
    reads step numbers and times and says of the rest that it is unsupported. It needs no packages, and is built at once
    where its language asks for that and the tools are there.
    """
    from trajconform.harness.scaffold import missing_tools, new_driver
    from trajconform.harness.setup import setup_driver

    spec = new_driver(folder, language, format_name)
    click.echo(f"{folder}/ is a driver in {spec.language} that reads {format_name}:")
    for path in sorted(spec.sources()):
        click.echo(f"  {path.relative_to(spec.folder)}")
    missing = missing_tools(spec)
    if missing:
        click.echo(f"not built: {', '.join(missing)} must be on PATH; then: trajconform driver setup {folder}")
    elif spec.setup_commands:
        setup_driver(spec, progress=lambda line: click.echo(line, err=True))
    click.echo(f"next: trajconform run --driver {folder}")
    return 0


@command.command(
    "check",
    epilog="""
\b
Examples:
  trajconform driver check my-driver
  trajconform driver check my-driver --timeout 2
  trajconform driver check mypackage.drivers:Driver

\b
Exit status: 0 nothing is wrong, 1 something is, 2 there was no driver to talk to.
""",
)
@click.argument("driver")
@click.option("--timeout", type=click.FloatRange(0.1), metavar="SECONDS", help="Limit for one answer after hello.")
def check_command(driver: str, timeout: float | None) -> int:
    """Talk to DRIVER and explain, message by message, what is wrong with its replies.

    For each reply that is wrong: what was sent, what came back, what the protocol says, and what to do. A driver in
    which nothing is wrong is ready for 'trajconform run', which judges the implementation behind it.
    """
    import signal

    from rich.console import Console

    from trajconform.harness.drivertoml import DriverSpec, resolve_driver
    from trajconform.harness.examine import Step, examine
    from trajconform.report.console import output_width
    from trajconform.report.conversation import Advised, render_step

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    source = resolve_driver(driver)
    console = Console(highlight=False, width=output_width())
    where = f"  ({source.folder})" if isinstance(source, DriverSpec) else ""
    console.print(f"{source.name}{where}\n", markup=False)
    steps: list[Step] = []
    advised: Advised = {}

    def tell(step: Step) -> None:
        steps.append(step)
        render_step(console, step, advised)

    said = examine(source, timeout, tell)
    wrong = sum(step.grave for step in steps)
    notes = sum(bool(step.remarks) for step in steps) - wrong
    counts = f"{len(steps)} messages, {wrong} wrong, {notes} with a note"
    if wrong or not said:
        console.print(f"\n{counts}; all messages: trajconform driver protocol", markup=False)
        return 1
    console.print(f"\n{counts}; next: trajconform run --driver {driver}", markup=False)
    return 0


@command.command("protocol")
def protocol_command() -> int:
    """Print the page that describes every message between the kit and a driver."""
    from trajconform import kit

    click.echo((kit.root() / "harness" / "PROTOCOL.md").read_text("utf-8"), nl=False)
    return 0


@command.command("list")
def list_command() -> int:
    """List the kit's drivers: what each claims, and whether it is ready or how to set it up."""
    from trajconform import kit
    from trajconform.harness.drivertoml import list_drivers

    specs = list_drivers(kit.root())
    rows = [
        (
            spec.name,
            spec.language,
            "; ".join(f"{name}: {', '.join(roles)}" for name, roles in spec.claims.items()),
            "ready" if spec.setup_problem() is None else f"trajconform driver setup {spec.reference}",
        )
        for spec in specs
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for spec, row in zip(specs, rows, strict=True):
        click.echo("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]))
        click.echo(f"{'':<{widths[0]}}  {spec.description}")
    return 0
