"""The checker: every rule on files, all that it finds."""

from __future__ import annotations

from pathlib import Path

from trajconform.model.errors import Violation
from trajconform.otj.format import Location
from trajconform.otj.rules import BOOK
from trajconform.otj.view import FileView


def check_otj(path: Location) -> list[Violation]:
    """All violations of a file, in file order: by the clauses on stores. Empty for a conforming file, which a file
    that stops inside its last frame is too. Frames after a damaged one are still looked at. OSError where it cannot be
    read."""
    found: list[Violation] = []
    with Path(path).open("rb", buffering=0) as stream:
        view = FileView(stream)
        for stage in ("structure", "index"):
            for rule in BOOK.select(roles=("store",), stage=stage):
                found.extend(rule(view))
        first = 0
        while first < view.frames:
            batch = view.batch(first, view.frames)
            in_batch = [violation for rule in BOOK.select(roles=("store",), stage="data") for violation in rule(batch)]
            found.extend(sorted(in_batch, key=lambda violation: violation.offset or 0))
            first += len(batch)
    return found
