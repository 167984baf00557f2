"""Known failures: what an implementation is expected to fail, so that a change either way is seen."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trajconform.harness.protocol import find_fault
from trajconform.harness.verdicts import CaseResult, Deviation, RunResult, Verdict
from trajconform.model.errors import TrajconformError

_BAD = (Verdict.FAIL, Verdict.ERROR)


@dataclass(frozen=True)
class Expectation:
    """One entry: a case (or a pattern with ``*`` and ``?``), the clause that is broken, and why."""

    case: str
    clause: str
    verdict: Verdict
    reason: str
    does: str = ""
    link: str = ""
    sometimes: bool = False
    """The case is about moments that no seed repeats exactly (role crash), and not every run meets a bad one."""

    def covers(self, case: str) -> bool:
        """Whether the entry is about the case of this id."""
        return case == self.case or fnmatch.fnmatchcase(case, self.case)


def load_expectations(path: Path) -> tuple[Expectation, ...]:
    """Read a list of known failures. `TrajconformError` says what is wrong with it and where."""
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TrajconformError(f"{path}: {error}") from None
    document = [] if document is None else document
    fault = find_fault("known-failures", document)
    if fault:
        raise TrajconformError(f"{path}{fault}")
    return tuple(
        Expectation(
            entry["case"],
            entry["clause"],
            Verdict(entry.get("verdict", "FAIL")),
            entry["reason"].strip(),
            entry.get("does", "").strip(),
            entry.get("link", ""),
            entry.get("sometimes", False),
        )
        for entry in document
    )


def hold_against(
    run: RunResult, expectations: Sequence[Expectation], every_case: Callable[[], Iterable[str]] | None = None
) -> RunResult:
    """The run with its deviations from the known failures.

    Every FAIL or ERROR needs an entry with that verdict whose clause is one of the case's, and every entry needs at
    least one case. An entry about several cases (a pattern) holds for each of them. An entry that no case fits is
    stale. In a run of selected cases that can be said only of entries that the selection takes in, and only with
    ``every_case``, which gives the ids of all cases there are; other entries are merely out of view.
    """
    deviations = [*changes(run.results, expectations)]
    if not run.interrupted:
        cases = [result.case for result in run.results]
        deviations += stale_entries(expectations, cases, run.selection, every_case)
    return dataclasses.replace(run, deviations=tuple(deviations))


def stale_entries(
    expectations: Sequence[Expectation],
    cases: Sequence[str],
    selection: Mapping[str, Any],
    every_case: Callable[[], Iterable[str]] | None = None,
) -> list[Deviation]:
    """The entries that no case fits, as far as that can be said of the ``cases`` of a selection; see `hold_against`."""
    unmet = [entry for entry in expectations if not any(entry.covers(case) for case in cases)]
    if unmet and any(selection.values()):
        unmet = [entry for entry in unmet if _selected(entry, selection)] if every_case else []
        there = list(every_case()) if unmet and every_case else []
        unmet = [entry for entry in unmet if not any(entry.covers(case) for case in there)]
    return [
        Deviation(
            entry.case,
            "stale entry",
            entry.verdict,
            "no such case",
            f"no case {entry.case!r} exists any more; remove the entry{_see(entry)}",
        )
        for entry in unmet
    ]


def _selected(entry: Expectation, selection: Mapping[str, Any]) -> bool:
    """Whether a selection would take in the case of an entry, had it one. A role is not written in an entry."""
    format_name, _, rest = entry.case.partition("/")
    topic = rest.partition("/")[0]
    globs = selection.get("globs") or ()
    family = entry.case.partition("@")[0]
    return (
        (not selection.get("formats") or any(fnmatch.fnmatchcase(name, format_name) for name in selection["formats"]))
        and (not selection.get("topics") or any(fnmatch.fnmatchcase(name, topic) for name in selection["topics"]))
        and (not selection.get("clauses") or entry.clause in selection["clauses"])
        and (
            not globs
            or any(
                fnmatch.fnmatchcase(name, pattern)
                for glob in globs
                for name, pattern in ((entry.case, glob), (family, glob), (glob, entry.case))
            )
        )
    )


def _see(entry: Expectation) -> str:
    return f" (see {entry.link})" if entry.link else ""


def changes(results: Iterable[CaseResult], expectations: Sequence[Expectation]) -> Iterable[Deviation]:
    """What of each result is not as the known failures say."""
    for result in results:
        entries = [entry for entry in expectations if entry.covers(result.case)]
        if not entries:
            if result.verdict in _BAD:
                text = f"{result.verdict}, and no known failure says so: {result.message}"
                yield Deviation(result.case, "unexpected failure", Verdict.PASS, result.verdict, text)
            continue
        wanted = " or ".join(dict.fromkeys(entry.verdict for entry in entries))
        links = "".join(dict.fromkeys(map(_see, entries)))
        strange = [entry.clause for entry in entries if entry.clause not in result.clauses]
        if strange:
            text = f"the entry names {', '.join(strange)}, the case binds {', '.join(result.clauses)}"
            yield Deviation(result.case, "stale entry", wanted, result.verdict, text + links)
        elif result.role != "crash" and any(entry.sometimes for entry in entries):
            text = "the entry says that it fails sometimes; only a crash case may, for its moments are random"
            yield Deviation(result.case, "stale entry", wanted, result.verdict, text + links)
        elif result.verdict is Verdict.PASS and all(entry.sometimes for entry in entries):
            continue
        elif result.verdict not in [entry.verdict for entry in entries]:
            if result.verdict in _BAD:
                kind, text = "other verdict", f"expected to be {wanted}, is {result.verdict}: {result.message}"
            elif result.verdict is Verdict.SKIP:
                kind, text = "not judged", f"expected to be {wanted}, was skipped: {result.message}"
            else:
                kind, text = "unexpected pass", f"expected to be {wanted}, is {result.verdict}; remove the entry"
            yield Deviation(result.case, kind, wanted, result.verdict, text + links)
