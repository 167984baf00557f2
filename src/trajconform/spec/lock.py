"""The lock of the specification: a digest per clause, so that a changed statement cannot slip through a review."""

from __future__ import annotations

import json
from pathlib import Path

from trajconform.model.errors import TrajconformError
from trajconform.spec.catalogue import Catalogue

LOCK = "spec/clauses.lock.json"


def lock_text(catalogue: Catalogue) -> str:
    """The lock for the clauses as they are: identifier -> SHA-256 of all that binds."""
    return json.dumps({name: clause.digest for name, clause in catalogue.clauses.items()}, indent=1) + "\n"


def compare_lock(catalogue: Catalogue, path: Path) -> dict[str, str]:
    """Clause identifier -> how it differs from the lock; empty when nothing does."""
    try:
        locked = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        locked = {}
    except ValueError as error:
        raise TrajconformError(f"{path}: the lock is not JSON: {error}") from None
    if not isinstance(locked, dict):
        raise TrajconformError(f"{path}: the lock is a map of clause to digest")
    changes: dict[str, str] = {}
    for name, clause in catalogue.clauses.items():
        if name not in locked:
            changes[name] = "not in the lock"
        elif locked[name] != clause.digest:
            changes[name] = "statement, role, level or mark changed"
    changes.update(
        {
            name: "in the lock, in no chapter: identifiers are never reused"
            for name in locked
            if name not in catalogue.clauses
        }
    )
    return changes
