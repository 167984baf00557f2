"""``trajconform verify``: what a certificate says, and whether it can be believed."""

from __future__ import annotations

from pathlib import Path

import click

EPILOG = """
\b
Examples:
  trajconform verify c-otj.cert.json
  trajconform verify c-otj.cert.json --key key.pub.pem --driver c-otj

\b
Exit status: 0 it holds, and no clause is broken; 1 it holds, and says FAILED; 2 it does not hold.
"""


@click.command("verify", epilog=EPILOG)
@click.argument("cert", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="CERT.json")
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PUB.pem",
    help="The public key whose owner you trust. A certificate that is not signed with it does not hold.",
)
@click.option("--driver", metavar="DRIVER", help="Compare the files of this driver with those that were certified.")
@click.option("-q", "--quiet", is_flag=True, help="Only the exit status, and what is wrong.")
def command(cert: Path, key: Path | None, driver: str | None, quiet: bool) -> int:
    """Verify a certificate: its signature, that this very kit is the one that it names, that what it says of clauses
    follows from what it says of cases, and, with --driver, that the driver at hand is the one that was judged.

    Without --key nothing shows who wrote it: a forger who keeps it consistent is not noticed.
    """
    from trajconform import kit
    from trajconform.harness.artefacts import artefacts
    from trajconform.harness.drivertoml import resolve_driver
    from trajconform.model.errors import TrajconformError
    from trajconform.report import certificate, signature
    from trajconform.spec.catalogue import load_catalogue

    read = certificate.read_certificate(cert)
    by = ""
    if key is not None:
        if read.envelope is None:
            raise TrajconformError(
                f"{cert} is not signed, so {key} says nothing about it: anybody could have written it"
            )
        by = f"good, by the key {signature.verified_by(read.envelope, key)}"
    said, catalogue, root = read.statement, load_catalogue(), kit.root()
    certificate.check_lock(catalogue, root)
    problems = certificate.faults(said, root, catalogue)
    if driver is not None:
        problems += certificate.artefact_faults(said, artefacts(resolve_driver(driver)))
    if problems:
        shown = "\n  ".join(problems[:10])
        more = f"\n  ... and {len(problems) - 10} more" if len(problems) > 10 else ""
        raise TrajconformError(f"{cert} does not hold:\n  {shown}{more}")
    if key is None:
        what = "NONE" if read.envelope is None else "NOT CHECKED (--key PUB.pem does)"
        by = f"{what}: anybody could have written this certificate; its figures fit together, no more"
        if quiet:
            click.echo(f"signature {by}", err=True)
    if not quiet:
        click.echo(f"{'signature':<12}{by}")
        for line in certificate.summary(said):
            click.echo(line)
        click.echo(f"{'files':<12}{f'those of {driver} at hand' if driver else 'not compared: --driver DRIVER does'}")
    return 1 if said["predicate"]["result"] == "FAILED" else 0
