"""Several JSON reports side by side: what differs, what regressed, what was fixed. Plain data; `render` is elsewhere.

The first report is the base. Every other one is held to it, case by case and clause by clause, so two versions of one
implementation and two implementations of one format are compared alike.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trajconform.harness.protocol import find_fault
from trajconform.model.errors import TrajconformError

COMPARISON_VERSION = 1
GONE = "-"
"""Stands for the verdict of a case, or the status of a clause, that a report does not have."""

KINDS = ("regressed", "lost", "fixed", "gained", "changed", "apart")
"""What can become of a case between the base and another report, worst first."""

_OF_VERSIONS = {
    "regressed": "regressed",
    "lost": "no longer judged",
    "fixed": "fixed",
    "gained": "newly judged",
    "changed": "changed otherwise",
}
_OF_IMPLEMENTATIONS = {
    "regressed": "fail where the base passes",
    "fixed": "pass where the base fails",
    "changed": "differ otherwise",
    "apart": "judged in one only",
}

_GOOD, _BAD = ("PASS", "INFO"), ("FAIL", "ERROR")
_VERDICTS = ("PASS", "FAIL", "ERROR", "SKIP", "INFO")


@dataclass(frozen=True)
class Report:
    """A report as it was read. ``label`` tells it from the others."""

    label: str
    path: str
    document: Mapping[str, Any]

    @property
    def cases(self) -> dict[str, Mapping[str, Any]]:
        """The cases by id."""
        return {case["case"]: case for case in self.document["cases"]}

    @property
    def selection(self) -> str:
        """What was selected, as on a command line; empty: everything."""
        options = {"formats": "format", "roles": "role", "topics": "topic", "clauses": "clause", "globs": "case"}
        given = self.document["selection"]
        return " ".join(f"--{option} {value}" for key, option in options.items() for value in given.get(key) or ())

    @property
    def partial(self) -> str:
        """Why cases may be missing from it; empty where it is a whole run."""
        if self.document["interrupted"]:
            return f"interrupted after {len(self.document['cases'])} of {self.document['planned']} cases"
        return f"of {self.selection} only" if self.selection else ""


@dataclass(frozen=True)
class Row:
    """A case on which the reports differ.

    ``verdicts`` has one entry a report (`GONE` where it lacks the case), ``kinds`` one entry for every report but the
    base: a key of `KINDS`, or empty where nothing changed. ``message`` is what the last report that fails it says.
    """

    case: str
    title: str
    clauses: tuple[str, ...]
    verdicts: tuple[str, ...]
    kinds: tuple[str, ...]
    message: str

    @property
    def kind(self) -> str:
        """The worst that became of it."""
        return next(kind for kind in KINDS if kind in self.kinds)


@dataclass(frozen=True)
class Group:
    """Rows of one family (``path@name``) that went the same way, shown as one."""

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class ClauseRow:
    """A clause whose status differs: one entry a report, `GONE` where it lacks the clause."""

    clause: str
    statement: str
    statuses: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """All that differs between the reports. ``notes`` say what has to be kept in mind when it is read."""

    reports: tuple[Report, ...]
    rows: tuple[Row, ...]
    clauses: tuple[ClauseRow, ...]
    alike: int
    """Cases with the same verdict in every report."""
    notes: tuple[str, ...]

    def of_kind(self, kind: str) -> list[Row]:
        """The rows whose worst change is this one."""
        return [row for row in self.rows if row.kind == kind]

    def counts(self, report: int) -> Counter[str]:
        """Number of cases by what became of them, from the base to report number ``report``."""
        return Counter(row.kinds[report - 1] for row in self.rows if row.kinds[report - 1])

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of change there are between such reports, in words fit for versions or for implementations."""
        one = len({report.document["driver"]["name"] for report in self.reports}) == 1
        every = {**_OF_IMPLEMENTATIONS, **_OF_VERSIONS, "apart": _OF_IMPLEMENTATIONS["apart"]}
        there = {row.kind for row in self.rows}
        wanted = (
            _OF_VERSIONS if one else {**_OF_IMPLEMENTATIONS, **{k: every[k] for k in there - {*_OF_IMPLEMENTATIONS}}}
        )
        return {kind: wanted[kind] for kind in KINDS if kind in wanted}

    @property
    def exit_status(self) -> int:
        """1 where a case regressed or is no longer judged, 2 where an interrupted run leaves that open, else 0."""
        if self.of_kind("regressed") or self.of_kind("lost"):
            return 1
        return 2 if any(report.document["interrupted"] for report in self.reports) else 0

    @property
    def verdict(self) -> str:
        """The whole in a sentence."""
        parts = [f"{len(rows)} {words}" for kind, words in self.kinds.items() if (rows := self.of_kind(kind))]
        return (", ".join(parts) or "no difference") + f"; {self.alike} cases alike"


def load_report(path: Path) -> Mapping[str, Any]:
    """Read a report of ``run --json``. `TrajconformError` says what is wrong with the file."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise TrajconformError(f"{path}: {error.strerror or error}") from None
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise TrajconformError(f"{path} is no JSON: {error}; 'trajconform run --json FILE' writes reports") from None
    if not isinstance(document, dict) or "report" not in document:
        raise TrajconformError(f"{path} is no report; 'trajconform run --json FILE' writes reports")
    if document["report"] != 1:
        raise TrajconformError(f"{path} is a report of version {document['report']!r}; this kit reads version 1")
    fault = find_fault("report", document)
    if fault:
        raise TrajconformError(f"{path} is not the report it should be: {fault}")
    return document


def load_reports(paths: Sequence[Path]) -> list[Report]:
    """Read reports and label them by driver and version, and by file where that is not enough."""
    documents = [load_report(path) for path in paths]
    names = [f"{d['driver']['name']} {d['driver']['version']}".strip() for d in documents]
    files = [path.name for path in paths]
    if len(set(files)) < len(files):
        files = [str(path) for path in paths]
    labels = [f"{name} ({file})" if names.count(name) > 1 else name for name, file in zip(names, files, strict=True)]
    return [Report(label, str(path), d) for label, path, d in zip(labels, paths, documents, strict=True)]


def compare(reports: Sequence[Report]) -> Comparison:
    """Hold every report to the first one."""
    tables = [report.cases for report in reports]
    every = sorted({case for table in tables for case in table})
    rows = []
    for case in every:
        entries = [table.get(case) for table in tables]
        verdicts = tuple(entry["verdict"] if entry else GONE for entry in entries)
        kinds = tuple(
            _kind((reports[0], verdicts[0]), (report, verdict))
            for report, verdict in zip(reports[1:], verdicts[1:], strict=True)
        )
        if not any(kinds):
            continue
        found = [entry for entry in entries if entry]
        bad = [entry["message"] for entry in found if entry["verdict"] in _BAD]
        last = found[-1]
        rows.append(
            Row(case, last["title"], tuple(last.get("judges") or last["clauses"]), verdicts, kinds, (bad or [""])[-1])
        )
    differing = {row.case for row in rows}
    alike = sum(case not in differing and all(case in table for table in tables) for case in every)
    return Comparison(tuple(reports), tuple(rows), tuple(_clause_rows(reports)), alike, tuple(_notes(reports)))


def _kind(base: tuple[Report, str], other: tuple[Report, str]) -> str:
    """What became of a case: a key of `KINDS`, or nothing. A case that was not asked for has not changed.

    A version that skips what an earlier one did has lost it; two implementations simply do not claim the same.
    """
    before, after = base[1], other[1]
    if before == after or any(verdict == GONE and report.partial for report, verdict in (base, other)):
        return ""
    if after in _BAD and before in _GOOD:
        return "regressed"
    if (before, after) == ("FAIL", "ERROR"):
        return "regressed"  # what could at least be judged now crashes or hangs
    if before in _BAD and after in _GOOD:
        return "fixed"
    judged = [verdict not in ("SKIP", GONE) for verdict in (before, after)]
    if judged[0] != judged[1]:
        if base[0].document["driver"]["name"] != other[0].document["driver"]["name"]:
            return "apart"
        if judged[1]:
            return "gained"
        return "lost" if after == "SKIP" else "changed"
    return "changed"


def _clause_rows(reports: Sequence[Report]) -> Iterable[ClauseRow]:
    tables = [report.document["clauses"] for report in reports]
    several = len({report.document["driver"]["name"] for report in reports}) > 1
    for clause in sorted({name for table in tables for name in table}):
        entries = [table.get(clause) for table in tables]
        statuses = tuple(entry["status"] if entry else GONE for entry in entries)
        there = {
            status
            for status, report in zip(statuses, reports, strict=True)
            if status not in (GONE, "untested") or not (report.partial or several)
        }
        if len(there) > 1:
            yield ClauseRow(clause, next(entry["statement"] for entry in reversed(entries) if entry), statuses)


def _notes(reports: Sequence[Report]) -> Iterable[str]:
    base = reports[0].document
    cases_of = base["kit"].get("vectors")
    for report in reports:
        if report.partial:
            yield f"{report.label} is a run {report.partial}; cases that it lacks count neither way"
    for report in reports[1:]:
        if report.document["kit"]["specification"] != base["kit"]["specification"]:
            changed = [
                name
                for name, clause in report.document["clauses"].items()
                if name in base["clauses"] and clause["statement"] != base["clauses"][name]["statement"]
            ]
            which = f" ({', '.join(changed[:5])}{' ...' if len(changed) > 5 else ''})" if changed else ""
            yield f"{report.label} was judged by another state of the specification than {reports[0].label}{which}"
        elif report.document["kit"].get("vectors") != cases_of:
            yield f"{report.label} was judged by other cases or golden files than {reports[0].label}"


def groups(rows: Iterable[Row]) -> list[Group]:
    """Rows with those of one family put together where they went the same way and fail alike."""
    found: dict[tuple[str, tuple[str, ...]], list[Row]] = {}
    for row in rows:
        family, at, _ = row.case.partition("@")
        found.setdefault((f"{family}@*" if at else family, row.verdicts), []).append(row)
    return [
        Group(name if len(members) > 1 else members[0].case, tuple(members)) for (name, _), members in found.items()
    ]


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """As JSON; its schema is ``schema/kit/comparison.schema.json``."""
    return {
        "comparison": COMPARISON_VERSION,
        "exit_status": comparison.exit_status,
        "reports": [
            {
                "label": report.label,
                "file": report.path,
                "driver": {key: report.document["driver"][key] for key in ("name", "version", "language")},
                "kit": dict(report.document["kit"]),
                "started": report.document["started"],
                "partial": report.partial or None,
                "counts": dict(report.document["counts"]),
                "changes": {} if number == 0 else dict(comparison.counts(number)),
            }
            for number, report in enumerate(comparison.reports)
        ],
        "alike": comparison.alike,
        "notes": list(comparison.notes),
        "cases": [
            {
                "case": row.case,
                "title": row.title,
                "clauses": list(row.clauses),
                "verdicts": [None if v == GONE else v for v in row.verdicts],
                "changes": [kind or None for kind in row.kinds],
                "message": row.message,
            }
            for row in comparison.rows
        ],
        "clauses": [
            {
                "clause": row.clause,
                "statement": row.statement,
                "statuses": [None if s == GONE else s for s in row.statuses],
            }
            for row in comparison.clauses
        ],
    }
