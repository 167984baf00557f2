"""JUnit XML of a run, as build servers read it; written with junitparser.

It keeps to what the two schemas in use have in common, that of Apache Ant's tasks and that of Jenkins: a suite a
topic, properties first, at most one outcome a case, the suite's output last, no attributes on the root.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from junitparser import Attr, Error, Failure, IntAttr, JUnitXml, Skipped, SystemErr, SystemOut, TestCase, TestSuite

from trajconform.harness.verdicts import CaseResult, Deviation, RunResult, Verdict
from trajconform.report.console import repeat_command, shown
from trajconform.spec.catalogue import Catalogue

_LOG = 4000
"""Characters of a driver's log that go with a failure; the end of it says most."""


class _Suite(TestSuite):
    package = Attr()
    id = IntAttr()


def write_junit(path: Path, run: RunResult, catalogue: Catalogue, driver_argument: str | None = None) -> None:
    """Write the file. ``driver_argument`` is what ``--driver`` was given, for the command that repeats a case.

    A known failure is a skipped test that says so; a change against the known failures is a failure, as is a stale
    entry; an interrupted run has an error that says how many cases are missing. An informative case passes.
    """
    document = JUnitXml()
    changes: dict[str, list[Deviation]] = {}
    for deviation in run.deviations or ():
        changes.setdefault(deviation.case, []).append(deviation)
    by_topic: dict[str, list[CaseResult]] = {}
    for result in run.results:
        by_topic.setdefault(f"{result.format}/{result.topic}", []).append(result)
    for topic, results in by_topic.items():
        cases = [_case(r, changes.pop(r.case, []), run, catalogue, driver_argument) for r in results]
        informative = [r for r in results if r.verdict is Verdict.INFO]
        told = "\n".join(f"INFO {r.case}: {shown(r.message)}" for r in informative)
        document.append(_suite(topic, len(document), run, cases, told))
    others = [_other(case, "; ".join(f"{d.kind}: {d.message}" for d in found)) for case, found in changes.items()]
    if run.interrupted:
        left = run.planned - len(run.results)
        others.append(_other("interrupted", f"the run was interrupted; {left} cases were not judged", Error))
    if others:
        document.append(_suite("run", len(document), run, others, ""))
    path.parent.mkdir(parents=True, exist_ok=True)
    document.write(str(path))


def _suite(name: str, number: int, run: RunResult, cases: Iterable[TestCase], told: str) -> TestSuite:
    suite = _Suite(name)
    suite.id, suite.package = number, "trajconform"
    suite.timestamp = run.started.partition("+")[0]
    suite.hostname = "localhost"  # a report that is passed on need not name a machine
    for key, value in (
        ("driver", f"{run.driver.name} {run.driver.version}"),
        ("language", run.driver.language),
        ("trajconform", run.kit_version),
    ):
        suite.add_property(key, shown(value, 200))
    suite.add_testcases(list(cases))
    suite.append(SystemOut(told))  # type: ignore[no-untyped-call]
    suite.append(SystemErr(""))  # type: ignore[no-untyped-call]
    suite.time = round(suite.time, 3)  # the schema of Jenkins knows milliseconds, no more
    return suite


def _case(
    result: CaseResult, changes: list[Deviation], run: RunResult, catalogue: Catalogue, driver_argument: str | None
) -> TestCase:
    case = TestCase(result.case, f"{result.format}.{result.topic}", round(result.seconds, 3))
    kind = ", ".join(result.blamed)
    if changes:
        case.result = _of(Failure, "; ".join(f"{d.kind}: {d.message}" for d in changes), kind)
    elif result.verdict is Verdict.SKIP:
        case.result = _of(Skipped, result.message, "not claimed or not supported")
    elif result.case in run.recorded:
        case.result = _of(Skipped, f"known failure: {result.verdict}: {result.message}", kind)
    elif result.verdict is Verdict.FAIL:
        case.result = _of(Failure, result.message, kind)
    elif result.verdict is Verdict.ERROR:
        case.result = _of(Error, result.message, kind)
    for outcome in case.result:
        if not isinstance(outcome, Skipped):
            outcome.text = _text(result, catalogue, driver_argument)
    return case


def _other(name: str, message: str, outcome: type = Failure) -> TestCase:
    case = TestCase(name, "run", 0.0)
    case.result = _of(outcome, message, "run")
    return case


def _of(outcome: type, message: str, kind: str) -> Failure | Error | Skipped:
    return outcome(" ".join(shown(message, 500).split()), kind)  # type: ignore[no-any-return]


def _text(result: CaseResult, catalogue: Catalogue, driver_argument: str | None) -> str:
    lines = [f"{result.verdict} {result.title}"]
    for name in result.clauses:
        clause = catalogue.clauses.get(name)
        lines.append(f"{name} ({clause.role}, {clause.level}) {clause.statement}" if clause else name)
    lines += [shown(result.message), *(shown(str(difference), 500) for difference in result.differences[:20])]
    if result.stderr:
        lines += ["log:", shown(result.stderr[-_LOG:], _LOG)]
    return "\n".join([*lines, f"repeat: {repeat_command(result.case, driver_argument)}"])
