"""The checker: every rule of the store and reader roles over a record, all violations collected."""

from __future__ import annotations

from pathlib import Path

from trajconform.model.errors import Refused, Violation
from trajconform.mrec.book import run_stage
from trajconform.mrec.store import Store
from trajconform.mrec.view import View


def check_mrec(path: Path | str, quick: bool = False) -> list[Violation]:
    """All violations in a record, in the order of the specification's topics.

    ``quick`` looks at metadata and index arrays alone. OSError where there is nothing to look at.
    """
    try:
        store = Store(path)
    except Refused as refusal:
        return [refusal.violation]
    try:
        view = View(store)
        found: dict[tuple[str, str, str], Violation] = {}
        for stage in ("structure", "index") if quick else ("structure", "index", "data"):
            for violation in run_stage(view, stage):
                found.setdefault((violation.clause, violation.path, violation.message), violation)
        return list(found.values())
    finally:
        store.close()
