"""The checker: every rule of the store and reader roles over a record, all violations collected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trajconform.model.errors import Refused, Violation
from trajconform.model.work import Progress, Work
from trajconform.mrec.book import run_stage
from trajconform.mrec.store import Store
from trajconform.mrec.view import View


def check_mrec(path: Path | str, work: Work | None = None, progress: Progress | None = None) -> list[Violation]:
    """All violations in a record, in the order of the specification's topics. OSError where there is nothing to look
    at."""
    return list(findings(path, work, progress))


def findings(path: Path | str, work: Work | None = None, progress: Progress | None = None) -> Iterator[Violation]:
    """`check_mrec`, one violation after the other as they are found.

    A ``quick`` check looks at metadata and index arrays alone, one of some ``frames`` at them and at the rows that these
    frames resolve to. Rows are read a window of a few MiB at a time, whatever ``memory`` allows; ``jobs`` and
    ``progress`` are not used.
    """
    work = work or Work()
    try:
        store = Store(path)
    except Refused as refusal:
        yield refusal.violation
        return
    try:
        view = View(store, work.frames)
        found: set[tuple[str, str, str]] = set()
        for stage in ("structure", "index") if work.quick else ("structure", "index", "data"):
            for violation in run_stage(view, stage):
                key = (violation.clause, violation.path, violation.message)
                if key not in found:
                    found.add(key)
                    yield violation
    finally:
        store.close()
