"""The pytest plugin: an item a case, each verdict as pytest says it, one driver process a worker, and none of it where
nobody asks."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from trajconform import kit
from trajconform.harness.drivertoml import resolve_driver
from trajconform.harness.runner import run_cases
from trajconform.harness.verdicts import Verdict
from trajconform.vectors.cases import load_cases

pytest_plugins = ["pytester"]

KNOWN = "mrec/codecs/damaged-chunk@shard-empty"
"""What the naive driver is known to fail."""
DRIVER = """\
import os
from pathlib import Path
from trajconform.harness.reference import ReferenceDriver
from trajconform.harness.serve import serve

class Reader:
    read = ReferenceDriver.read

    def hello(self):
        return {"name": "counted", "version": "1", "language": "Python", "formats": {"otj": ["read"]}, "features": []}

with Path(__file__).with_name("starts").open("a") as file:
    file.write(f"{os.getpid()}\\n")
serve(Reader())
"""
TOML = """\
name = "counted"
language = "Python"
[run]
command = ["{python}", "{driver}/driver.py"]
[claims]
otj = ["read"]
mrec = ["read"]
"""


@pytest.fixture
def counted(pytester: pytest.Pytester) -> Path:
    """A driver program that writes down each of its processes."""
    folder = pytester.mkdir("counted")
    (folder / "driver.py").write_text(DRIVER)
    (folder / "driver.toml").write_text(TOML)
    return folder


def naive(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest("trajconform", "--trajconform-driver", "naive", *arguments)


def expectations(pytester: pytest.Pytester, *entries: tuple[str, str, str]) -> str:
    lines = [f"- {{case: '{case}', clause: {clause}, reason: {reason}}}" for case, clause, reason in entries]
    pytester.path.joinpath("known.yaml").write_text("\n".join(lines) + "\n")
    return "--trajconform-expect=known.yaml"


def test_without_the_option_nothing_of_the_kit_is_loaded(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_mine():
            found = {name for name in sys.modules if name.partition(".")[0] == "trajconform"}
            assert found == {"trajconform", "trajconform.pytest_plugin"}
        """
    )
    result = pytester.runpytest_subprocess("-q")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*trajconform: driver*")


def test_each_case_is_an_item_with_its_id(pytester: pytest.Pytester) -> None:
    wanted = [case.id for case in load_cases(kit.root(), formats=["mrec"], topics=["codecs"], roles=["reader"])]
    result = naive(
        pytester,
        *("--trajconform-format=mrec", "--trajconform-topic=codecs", "--trajconform-role=reader"),
        *("--collect-only", "-q"),
    )
    assert [line.removeprefix("trajconform::") for line in result.outlines if "::" in line] == wanted
    assert any(line.startswith(f"{len(wanted)} tests collected") for line in result.outlines)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_verdicts_are_those_of_a_run(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    run = run_cases(resolve_driver("naive"), load_cases(kit.root(), topics=["codecs", "layout"]))
    counts = run.counts
    assert min(counts[v] for v in (Verdict.PASS, Verdict.FAIL, Verdict.SKIP, Verdict.INFO)) > 0
    result = naive(pytester, "--trajconform-topic=codecs", "--trajconform-topic=layout", "-rsx", *workers)
    known = {r.case for r in run.results if r.verdict is Verdict.FAIL}
    assert KNOWN in known
    result.assert_outcomes(
        passed=counts[Verdict.PASS] + counts[Verdict.INFO], skipped=counts[Verdict.SKIP], xfailed=len(known)
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"XFAIL trajconform::{KNOWN} - MREC-CODEC-12*zarr-python*"])
    result.stdout.fnmatch_lines(["SKIPPED *the driver does not *"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_failure_shows_the_report_of_the_case(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = naive(pytester, "--trajconform-topic=codecs", "--trajconform-no-expect", *workers)
    assert result.ret == 1
    text = result.stdout.str()
    assert result.parseoutcomes()["failed"] == 1
    lines = [
        f"*_ {KNOWN} _*",
        f"FAIL  {KNOWN}",
        "  clause    MREC-CODEC-12 (reader, MUST NOT) *",
        "  what      accepted*",
    ]
    result.stdout.fnmatch_lines(lines)
    result.stdout.fnmatch_lines([f"  repeat    trajconform run --driver naive --case {KNOWN} *"])
    result.stdout.fnmatch_lines([f"FAILED trajconform::{KNOWN} - *"])
    assert "Traceback" not in text and "pytest_plugin.py" not in text and "CaseFailed" not in text


def test_junit_of_pytest_says_it_too(pytester: pytest.Pytester) -> None:
    from xml.etree import ElementTree

    naive(pytester, f"--trajconform-case={KNOWN}", "--trajconform-no-expect", "--junitxml=out.xml")
    [case] = ElementTree.parse(pytester.path / "out.xml").getroot().iter("testcase")
    assert case.get("name") == KNOWN
    failure = case.find("failure")
    assert failure is not None and "MREC-CODEC-12" in (failure.text or "")
    assert (failure.get("message") or "").startswith("FAIL: accepted what a reader refuses")
    properties = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert properties == {"trajconform_verdict": "FAIL", "clauses": "MREC-CODEC-12"}


@pytest.mark.parametrize(
    ("entry", "outcome", "says"),
    [
        ((KNOWN, "MREC-CODEC-12", "is so"), {"xfailed": 1}, f"XFAIL trajconform::{KNOWN} - MREC-CODEC-12: is so"),
        (
            ("mrec/codecs/damaged-chunk@zstd-garbage", "MREC-CODEC-12", "was so"),
            {"failed": 1},
            "unexpected pass: expected to be FAIL, is PASS; remove the entry (known.yaml)",
        ),
        ((KNOWN, "MREC-CODEC-01", "is so"), {"failed": 1}, "stale entry: the entry names MREC-CODEC-01, *"),
    ],
)
def test_known_failures_are_strict(
    pytester: pytest.Pytester, entry: tuple[str, str, str], outcome: dict[str, int], says: str
) -> None:
    result = naive(pytester, f"--trajconform-case={entry[0]}", expectations(pytester, entry), "-rx")
    result.assert_outcomes(**outcome)
    result.stdout.fnmatch_lines([says])


def test_a_known_failure_that_is_skipped_or_gone_fails(pytester: pytest.Pytester) -> None:
    skipped = load_cases(kit.root(), topics=["layout"], roles=["writer"])[0]
    known = expectations(
        pytester, (skipped.id, skipped.clauses[0], "cannot"), ("mrec/layout/gone", "MREC-LAYOUT-01", "was there")
    )
    result = naive(pytester, "--trajconform-topic=layout", "--trajconform-role=writer", known)
    assert result.parseoutcomes()["failed"] == 2
    result.stdout.fnmatch_lines(["not judged: expected to be FAIL, was skipped*"])
    result.stdout.fnmatch_lines(["stale entry: no case 'mrec/layout/gone' exists any more*"])


def test_runxfail_shows_known_failures(pytester: pytest.Pytester) -> None:
    result = naive(pytester, f"--trajconform-case={KNOWN}", "--runxfail")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"FAIL  {KNOWN}"])


@pytest.mark.parametrize("workers", [0, 2])
def test_each_worker_has_one_driver_process(pytester: pytest.Pytester, counted: Path, workers: int) -> None:
    arguments = ["--trajconform-driver", str(counted), "--trajconform-topic", "flags"]
    result = pytester.runpytest("trajconform", *arguments, *(["-n", str(workers)] if workers else []))
    outcomes = result.parseoutcomes()
    cases = load_cases(kit.root(), topics=["flags"])
    assert outcomes.keys() <= {"passed", "skipped"} and outcomes["passed"] > len(cases) / 2
    assert sum(outcomes.values()) == len(cases)
    started = (counted / "starts").read_text().split()
    assert len(started) == len(set(started)) == max(1, workers)
    deadline = time.monotonic() + 5
    while any(_alive(int(pid)) for pid in started) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(_alive(int(pid)) for pid in started)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_cases_stand_beside_the_tests_of_a_project(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="def test_own(): pass")
    result = pytester.runpytest("--trajconform-driver=naive", f"--trajconform-case={KNOWN}", "-v")
    result.assert_outcomes(passed=1, xfailed=1)
    result.stdout.fnmatch_lines(["test_own.py::test_own PASSED*", f"trajconform::{KNOWN} XFAIL*"])
    chosen = pytester.runpytest(
        "--trajconform-driver=naive", "--trajconform-topic=codecs", "-k", "test_own or (damaged and shard-empty)"
    )
    chosen.assert_outcomes(passed=1, xfailed=1, deselected=len(load_cases(kit.root(), topics=["codecs"])) - 1)


def test_one_case_by_its_id_and_a_folder_of_the_same_name(pytester: pytest.Pytester) -> None:
    one = pytester.runpytest(f"trajconform::{KNOWN}", "--trajconform-driver=naive")
    one.assert_outcomes(xfailed=1)
    family = pytester.runpytest(f"trajconform::{KNOWN.partition('@')[0]}", "--trajconform-driver=naive")
    assert family.parseoutcomes()["xfailed"] == 1 and family.parseoutcomes()["passed"] > 3
    pytester.mkdir("trajconform").joinpath("test_there.py").write_text("def test_there(): pass")
    both = pytester.runpytest("trajconform", "--trajconform-driver=naive", f"--trajconform-case={KNOWN}")
    both.assert_outcomes(passed=1, xfailed=1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--trajconform-driver=naiv"], "there is no driver 'naiv'"),
        (["--trajconform-driver=naive", "--trajconform-topic=codec"], "there is no topic 'codec'; near: codecs"),
        (["--trajconform-driver=naive", "--trajconform-clause=MREC-CODEC-99"], "there is no clause 'MREC-CODEC-99'"),
        (["--trajconform-driver=naive", "--trajconform-format=mrek"], "--trajconform-format is one of mrec, otj"),
        (["--trajconform-driver=naive", "--trajconform-role=reeder"], "--trajconform-role is one of reader"),
        (["--trajconform-driver=naive", "--trajconform-case=mrec/codecs/damaged-chnk"], "near: mrec/codecs/damaged-ch"),
        (["--trajconform-driver=naive", "--trajconform-expect=none.yaml"], "none.yaml"),
        (["trajconform::mrec/codecs/damaged-chnk", "--trajconform-driver=naive"], "near: mrec/codecs/damaged-chunk"),
        (["trajconform::mrec/codecs/no", "--trajconform-driver=naive", "-n", "2"], "there is no case 'mrec/codecs/no'"),
    ],
)
def test_mistakes_are_errors_of_use(pytester: pytest.Pytester, arguments: list[str], says: str) -> None:
    result = pytester.runpytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert says in result.stderr.str() + result.stdout.str()
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_driver_that_does_not_start_ends_the_session(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    folder = pytester.mkdir("bad")
    (folder / "driver.py").write_text("import sys\nprint('oops', file=sys.stderr)\nsys.exit(3)\n")
    (folder / "driver.toml").write_text(TOML)
    result = pytester.runpytest("trajconform", f"--trajconform-driver={folder}", *workers)
    assert result.ret != 0 and result.parseoutcomes()["failed"] <= 2
    text = result.stdout.str()
    assert "exited with status 3 while it answered 'hello'" in text and "oops" in text
    assert "Traceback" not in text


def test_an_object_in_this_process_and_what_may_differ(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "mine_as_a_driver", raising=False)
    pytester.makepyfile(
        mine_as_a_driver="""
        from trajconform.harness.reference import ReferenceDriver

        class Driver(ReferenceDriver):
            pass
        """
    )
    pytester.syspathinsert()
    cases = load_cases(kit.root(), topics=["layout"], roles=["reader"])
    informative = [case.id for case in cases if case.expect == "informative"]
    assert informative
    result = pytester.runpytest(f"trajconform::{informative[0]}", "--trajconform-driver=mine_as_a_driver:Driver", "-rP")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["either outcome conforms: *"])
