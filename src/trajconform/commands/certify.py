"""``trajconform certify``: run every case of what a driver claims and write what was found as a certificate."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trajconform.spec.catalogue import FORMATS

EPILOG = """
\b
Examples:
  trajconform certify --driver c-otj -o c-otj.cert.json
  trajconform certify --driver my-driver --format mrec --role reader -o reader.cert.json --key key.pem
  trajconform verify c-otj.cert.json --driver c-otj

\b
A key, and the public half that 'verify' takes:
  openssl genpkey -algorithm ed25519 -out key.pem
  openssl pkey -in key.pem -pubout -out key.pub.pem
The password of an encrypted key stands in the environment variable TRAJCONFORM_KEY_PASSWORD.

\b
Exit status: 0 written, no clause is broken; 1 written, and it says FAILED; 2 there is no certificate.
"""


@click.command("certify", epilog=EPILOG)
@click.option(
    "--driver",
    metavar="DRIVER",
    help="A folder with a driver.toml, the name of a driver of the kit, or module:attribute of a Python object. "
    "Without it the bundled implementation is certified.",
)
@click.option("--format", "formats", multiple=True, type=click.Choice(FORMATS), help="Only claims of this format.")
@click.option(
    "--role", "roles", multiple=True, type=click.Choice(("reader", "writer", "store")), help="Only claims of this role."
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="CERT.json",
    help="Where the certificate goes.",
)
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="KEY.pem",
    help="Sign with this Ed25519 or ECDSA private key. Without it anybody could have written the certificate.",
)
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Driver processes.")
@click.option("--expect", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Known failures (YAML).")
@click.option("--no-expect", is_flag=True, help="Judge without the known failures that lie beside a driver.")
@click.option("-q", "--quiet", is_flag=True, help="Only the exit status.")
def command(
    driver: str | None,
    formats: tuple[str, ...],
    roles: tuple[str, ...],
    output: Path,
    key: Path | None,
    jobs: int,
    expect: Path | None,
    no_expect: bool,
    quiet: bool,
) -> int:
    """Certify what a driver does: a run of every case, as an in-toto statement that others can verify.

    A claim is a format and a role (reader, writer, store: checking files). Every case of each claim is run; a run with
    a crash, a hang or an interruption gives no certificate. Failures are certified as failures. The certificate names
    the driver's files by digest ('artefacts' under [run] in driver.toml says which) and the kit that judged.
    """
    from trajconform import kit
    from trajconform.commands.run import _progress
    from trajconform.harness.artefacts import artefacts
    from trajconform.harness.baseline import hold_against, load_expectations
    from trajconform.harness.drivertoml import DriverSpec, resolve_driver
    from trajconform.harness.runner import greet, run_cases
    from trajconform.model.errors import TrajconformError
    from trajconform.report import certificate, signature
    from trajconform.spec.catalogue import load_catalogue

    if key is not None:
        signature.sign(b"{}", key)  # a key that is of no use should not cost a run
    root, subject, catalogue = kit.root(), resolve_driver(driver), load_catalogue()
    certificate.check_lock(catalogue, root)
    said = greet(subject)
    claims = certificate.claims_of(said["formats"], said.get("features", ()), formats, roles)
    cases = certificate.cases_of(root, claims, catalogue)
    files, judged_by = artefacts(subject), certificate.configuration(root)
    if not quiet:
        words = ", ".join(f"{claim.format} {claim.role}" for claim in claims)
        click.echo(f"{said['name']}: {words}; {len(cases):,} cases, {len(files)} files", err=True)
    selection = {
        "formats": list(dict.fromkeys(claim.format for claim in claims)),
        "roles": list(dict.fromkeys(role for claim in claims for role in certificate.case_roles(claim))),
    }
    with _progress(sys.stderr.isatty() and not quiet, len(cases)) as tick:
        run = run_cases(subject, cases, jobs=jobs, progress=tick, selection=selection, catalogue=catalogue)
    baseline = expect
    if baseline is None and not no_expect and isinstance(subject, DriverSpec):
        baseline = subject.known_failures
    if baseline is not None:
        run = hold_against(run, load_expectations(baseline))
    if artefacts(subject) != files or certificate.configuration(root) != judged_by:
        raise TrajconformError("no certificate: files of the driver or of the kit changed during the run")
    if certificate.claims_of(run.driver.formats, run.driver.features, formats, roles) != claims:
        raise TrajconformError("no certificate: the driver claims one thing at one start and another at the next")
    statement = certificate.statement(run, claims, catalogue, files, judged_by, cases)
    faults = certificate.faults(statement, root, catalogue)
    if faults:
        raise TrajconformError(f"no certificate: the run does not hang together: {faults[0]}")
    text = certificate.dump(statement)
    if key is not None:
        text = certificate.dump(signature.sign(text.encode(), key))
    certificate.write_certificate(text, output)
    if not quiet:
        for line in certificate.summary(statement):
            click.echo(line)
        click.echo(
            f"written     {output}, {'signed' if key else 'not signed: anybody could have written it (see --key)'}"
        )
        click.echo(f"verify      trajconform verify {output}{' --key PUBLIC.pem' if key else ''}")
    return 1 if statement["predicate"]["result"] == "FAILED" else 0
