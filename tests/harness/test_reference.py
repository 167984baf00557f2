"""The bundled implementation as a driver, in process and as a program; reports and case files fit their schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trajconform import kit
from trajconform.harness.drivertoml import REFERENCE, resolve_driver
from trajconform.harness.protocol import find_fault
from trajconform.harness.reference import ReferenceDriver
from trajconform.harness.runner import run_cases
from trajconform.model.arrays import array_from_plain, encode_array
from trajconform.report.document import report_document
from trajconform.spec.catalogue import load_catalogue
from trajconform.vectors.cases import case_files, load_cases, load_yaml

ROOT = kit.root()


def comparable(run: Any) -> list[tuple[Any, ...]]:
    return [(r.case, r.verdict, r.message, [str(d) for d in r.differences]) for r in run.results]


def test_both_ways_of_driving_say_the_same() -> None:
    cases = [
        *load_cases(ROOT, formats=["otj"], topics=["frame", "flags", "counting"]),
        *load_cases(ROOT, formats=["mrec"], topics=["commit-marker", "states"]),
    ]
    inside = run_cases(REFERENCE, cases)
    outside = run_cases(resolve_driver("reference"), cases, jobs=2)
    assert comparable(inside) == comparable(outside)
    assert inside.driver.source == "in process"
    assert outside.driver.source == str(ROOT / "harness" / "drivers" / "reference")
    assert inside.driver.formats == outside.driver.formats
    assert inside.driver.features == outside.driver.features
    assert inside.exit_status == 0, [(r.case, r.message) for r in inside.results if r.verdict in ("FAIL", "ERROR")]


def test_reports_fit_their_schema(tmp_path: Path) -> None:
    class Broken(ReferenceDriver):
        def read(self, format: str, path: str, frames: Any = None) -> Any:  # noqa: A002
            if "cut" in path:
                raise RuntimeError("cannot")
            reply = super().read(format, path, frames)
            reply["frames"] = reply["frames"][:1]
            return reply

    from trajconform.harness.inprocess import InProcess

    cases = load_cases(ROOT, formats=["otj"], topics=["frame", "counting"])
    run = run_cases(InProcess("broken", Broken), cases, keep=tmp_path, selection={"formats": ["otj"], "topics": []})
    assert run.exit_status == 1
    document = report_document(run, load_catalogue())
    assert find_fault("report", document) == ""
    assert find_fault("report", {**document, "exit_status": 3}) != ""
    assert find_fault("report", {**document, "cases": [{**document["cases"][0], "verdict": "GOOD"}]}) != ""


@pytest.mark.parametrize("path", list(case_files(ROOT)), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_case_file_fits_the_schema_of_cases(path: Path) -> None:
    assert find_fault("case", load_yaml(path, path.name)) == ""


def test_the_writer_is_asked_in_order() -> None:
    driver = ReferenceDriver()
    frame = {name: encode_array(array_from_plain("f64", [1.0])) for name in "xyz"}
    for call in (lambda: driver.append(0, frame), driver.flush, driver.close):
        with pytest.raises(RuntimeError, match="no writer is open"):
            call()
    with pytest.raises(NotImplementedError, match="format otj"):
        driver.reopen("otj", "/nowhere")
