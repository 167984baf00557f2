"""``trajconform driver``: set up and list drivers."""

from __future__ import annotations

import click


@click.group("driver")
def command() -> None:
    """Set up and list the programs that the kit can judge."""


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


@command.command("list")
def list_command() -> int:
    """List the kit's drivers: what each claims and whether it is set up."""
    from trajconform import kit
    from trajconform.harness.drivertoml import list_drivers

    for spec in list_drivers(kit.root()):
        claims = "; ".join(f"{name}: {', '.join(roles)}" for name, roles in spec.claims.items())
        problem = spec.setup_problem()
        click.echo(f"{spec.name:<12}{spec.language:<10}{claims:<38}{problem or 'ready'}")
        click.echo(f"{'':<12}{spec.description}")
    return 0
