"""Every store that the bundled writer leaves in a writer case: clean, and the same to readers that are not ours.

One process a reader reads all of them. Where a reader is not set up the test says so and is skipped.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from trajconform import kit
from trajconform.harness.drivertoml import DriverSpec, resolve_driver
from trajconform.harness.inprocess import InProcess, InProcessDriver
from trajconform.harness.judge import Bench, judge
from trajconform.harness.process import ProcessDriver
from trajconform.harness.protocol import DriverFault
from trajconform.harness.reference import ReferenceDriver
from trajconform.harness.verdicts import Verdict
from trajconform.model.reply import compare
from trajconform.mrec.checker import check_mrec
from trajconform.vectors.cases import Case, load_cases

Store = tuple[Case, Path, dict[str, Any]]
MOLRS_CANNOT: Mapping[str, str] = {
    "mrec/cell/w-bits@nan-*": "it inverts the matrix of a cell and refuses one that is singular",
    "mrec/cell/w-not-finite@infinite": "it inverts the matrix of a cell and refuses one that is singular",
    "mrec/cell/w-not-finite@nan-with-payload": "it inverts the matrix of a cell and refuses one that is singular",
    "mrec/cell/w-not-finite@later": "it inverts the matrix of a cell and refuses one that is singular",
    "mrec/cell/w-not-finite@finite-again": "it inverts the matrix of a cell and refuses one that is singular",
    "mrec/step-and-time/w-steps-exact@from-end-to-end": "it forms ordinal times stride in 64 bits",
}
"""Cases whose store molrs is known to read otherwise, and why."""


@pytest.fixture(scope="module")
def written() -> Iterator[list[Store]]:
    """The stores: case, path, and what the bundled reader, which the cases hold to what is expected, makes of it."""
    root = kit.root()
    ours = InProcessDriver(InProcess("reference", ReferenceDriver))
    features = frozenset(ours.hello()["features"])
    out = []
    memory = Path("/dev/shm")  # a writer syncs what it writes, which takes ten times as long on a disk
    scratch = Path(tempfile.mkdtemp(prefix="written-", dir=memory if os.access(memory, os.W_OK) else None))
    for number, case in enumerate(load_cases(root, formats=["mrec"], roles=["writer"])):
        folder = scratch / str(number)
        folder.mkdir()
        ours.begin()
        outcome = judge(case, Bench(ours, folder, features))
        assert outcome.verdict is Verdict.PASS, f"{case.id}: {outcome.message}"
        path = folder / "written" / "out.mrec"
        if path.is_dir():
            reply = ours.call("read", {"format": "mrec", "path": str(path)})
            assert reply.kind == "ok", f"{number} {case.id}: {reply.reason}"
            out.append((case, path, reply.body))
    yield out
    shutil.rmtree(scratch)


def test_every_store_is_clean(written: list[Store]) -> None:
    assert len(written) > 600
    found = {case.id: [str(v) for v in check_mrec(path)] for case, path, _ in written if path.is_dir()}
    assert {name: violations for name, violations in found.items() if violations} == {}


def program(name: str) -> ProcessDriver:
    """A driver of the kit as one process."""
    spec = resolve_driver(name)
    assert isinstance(spec, DriverSpec)
    if problem := spec.setup_problem():
        pytest.skip(problem)
    command = [spec.expand(part) for part in spec.command]
    return ProcessDriver(command, spec.folder, {k: spec.expand(v) for k, v in spec.env.items()}, spec.limits)


def read_elsewhere(driver: ProcessDriver, stores: list[Store]) -> Iterator[tuple[str, str]]:
    """What another reader makes of a store that is not what ours makes of it."""
    for case, path, ours in stores:
        driver.begin()
        try:
            answer = driver.call("read", {"format": "mrec", "path": str(path)})
        except DriverFault as fault:
            yield case.id, str(fault)
            continue
        if answer.kind != "ok":
            yield case.id, f"{answer.kind}: {answer.reason}"
            continue
        if differences := list(compare(ours, answer.body, (), case.free)):
            yield case.id, str(differences[0])


@pytest.mark.parametrize("name", ["naive", "molrs"])
def test_every_store_reads_the_same_elsewhere(name: str, written: list[Store]) -> None:
    driver = program(name)
    try:
        found = dict(read_elsewhere(driver, written))
    finally:
        driver.close()
    known = MOLRS_CANNOT if name == "molrs" else {}
    unknown = {c: what for c, what in found.items() if not any(fnmatch.fnmatchcase(c, glob) for glob in known)}
    assert unknown == {}
    gone = [glob for glob in known if not any(fnmatch.fnmatchcase(c, glob) for c in found)]
    assert gone == [], "what is known of molrs no longer holds"
