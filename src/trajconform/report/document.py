"""The JSON report: everything a run found, for other programs; its schema is ``schema/kit/report.schema.json``."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from trajconform import kit
from trajconform.harness.verdicts import CaseResult, RunResult, Verdict, clause_results
from trajconform.model.reply import Difference
from trajconform.spec.catalogue import Catalogue
from trajconform.vectors.build import MANIFEST

REPORT_VERSION = 1


def report_document(run: RunResult, catalogue: Catalogue, driver_argument: str | None = None) -> dict[str, Any]:
    """A run as one JSON document. Evidence (request, reply, expected) goes with failures and errors only.

    ``driver_argument`` is what ``--driver`` was given, for the command that repeats a case; None: the bundled
    implementation.
    """
    clauses = catalogue.clauses
    judged = clause_results(run.results, clauses_in_scope(run, catalogue))
    driver = run.driver
    return {
        "report": REPORT_VERSION,
        "kit": {
            "version": run.kit_version,
            "specification": specification_digest(catalogue),
            "vectors": vectors_digest(),
        },
        "driver": {
            "name": driver.name,
            "version": driver.version,
            "language": driver.language,
            "description": driver.description,
            "source": driver.source,
            "argument": driver_argument,
            "formats": {name: list(roles) for name, roles in driver.formats.items()},
            "features": list(driver.features),
        },
        "started": run.started,
        "seconds": round(run.seconds, 3),
        "jobs": run.jobs,
        "selection": run.selection,
        "crashes": {"kills": run.kills, "seed": run.seed},
        "planned": run.planned,
        "interrupted": run.interrupted,
        "exit_status": run.exit_status,
        "counts": {verdict.value: run.counts.get(verdict, 0) for verdict in Verdict},
        "clauses": {
            name: {
                "status": result.status.value,
                "role": clauses[name].role if name in clauses else "",
                "level": clauses[name].level if name in clauses else "",
                "topic": clauses[name].topic if name in clauses else "",
                "format": clauses[name].format if name in clauses else "",
                "profile": clauses[name].profile if name in clauses else "",
                "statement": clauses[name].statement if name in clauses else "",
                "counts": {verdict.value: n for verdict, n in result.counts.items() if n},
                "cases": list(result.cases),
            }
            for name, result in judged.items()
        },
        "cases": [_case(result) for result in run.results],
        "deviations": None
        if run.deviations is None
        else [
            {"case": d.case, "kind": d.kind, "expected": d.expected, "actual": d.actual, "message": d.message}
            for d in run.deviations
        ],
    }


def clauses_in_scope(run: RunResult, catalogue: Catalogue) -> list[str]:
    """Clauses that the run could have judged, so that those without a case show as untested.

    Those of the formats and roles that the driver claims, within what was selected; none where cases or clauses were
    picked by name.
    """
    chosen = run.selection
    if chosen.get("globs") or chosen.get("clauses"):
        return []
    formats, features = run.driver.formats, run.driver.features
    asked = {"crash": "writer"}
    wanted = {asked.get(role, role) for role in chosen.get("roles") or ()}
    found = catalogue.select(formats=chosen.get("formats") or formats, topics=chosen.get("topics") or ())
    return [
        clause.id
        for clause in found
        if (not wanted or clause.role in wanted)
        and (
            (clause.role == "reader" and "read" in formats.get(clause.format, ()))
            or (clause.role == "writer" and "write" in formats.get(clause.format, ()))
            or (clause.role == "store" and f"check:{clause.format}" in features)
        )
    ]


def specification_digest(catalogue: Catalogue) -> str:
    """One digest over all clauses, so that a report names the specification it was judged by."""
    joined = "\n".join(f"{clause.id} {clause.digest}" for clause in catalogue.clauses.values())
    return "sha256:" + hashlib.sha256(joined.encode()).hexdigest()


def vectors_digest() -> str:
    """Digest of the manifest of the vectors, which names every case and golden file by its own digest."""
    return "sha256:" + hashlib.sha256((kit.root() / MANIFEST).read_bytes()).hexdigest()


def dump(document: dict[str, Any]) -> str:
    """Strict JSON text, indented, newline at the end."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _case(result: CaseResult) -> dict[str, Any]:
    out: dict[str, Any] = {
        "case": result.case,
        "title": result.title,
        "format": result.format,
        "topic": result.topic,
        "role": result.role,
        "clauses": list(result.clauses),
        "judges": list(result.blamed),
        "verdict": result.verdict.value,
        "message": result.message,
        "seconds": round(result.seconds, 4),
    }
    if result.note:
        out["note"] = result.note
    if result.verdict in (Verdict.FAIL, Verdict.ERROR):
        out["differences"] = [_difference(d) for d in result.differences]
        out["call"] = result.call
        out["exchanges"] = [{"request": e.request, "reply": e.reply} for e in result.exchanges]
        out["expected"] = result.expected
        out["stderr"] = result.stderr
        out["kept"] = result.kept
    return out


def _difference(difference: Difference) -> dict[str, str]:
    out = {
        "path": difference.path,
        "expected": difference.expected,
        "actual": difference.actual,
        "note": difference.note,
    }
    if difference.expected_bits:
        out |= {"expected_bits": difference.expected_bits, "actual_bits": difference.actual_bits}
    return out
