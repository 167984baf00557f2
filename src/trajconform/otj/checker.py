"""The checker: every rule on files, all that it finds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import BinaryIO

from trajconform.model.errors import Violation
from trajconform.model.remote import open_place
from trajconform.model.work import Progress, Work, in_order
from trajconform.otj.format import Location
from trajconform.otj.rules import BOOK
from trajconform.otj.view import FileView


def check_otj(path: Location, work: Work | None = None, progress: Progress | None = None) -> list[Violation]:
    """All violations of a file, in file order: by the clauses on stores. Empty for a conforming file, which a file
    that stops inside its last frame is too. Frames after a damaged one are still looked at. OSError where it cannot be
    read."""
    return list(findings(path, work, progress))


def findings(path: Location, work: Work | None = None, progress: Progress | None = None) -> Iterator[Violation]:
    """`check_otj`, one violation after the other as they are found, the file read meanwhile."""
    with open_place(path) as stream:
        yield from stream_findings(stream, work, progress)


def stream_findings(
    stream: BinaryIO, work: Work | None = None, progress: Progress | None = None
) -> Iterator[Violation]:
    """`findings` of an open, seekable stream, which stays open."""
    work = work or Work()
    view = FileView(stream)
    for stage in ("structure", "index"):
        for rule in BOOK.select(roles=("store",), stage=stage):
            yield from rule(view)
    if work.quick or view.header is None:
        return
    first, stop = work.within(view.frames)
    rules = BOOK.select(roles=("store",), stage="data")
    mine = threading.local()

    def look(start: int) -> list[Violation]:
        mine.buffer = getattr(mine, "buffer", None) or bytearray()
        batch = view.batch(start, min(stop, start + size), mine.buffer)
        return sorted((v for rule in rules for v in rule(batch)), key=lambda v: v.offset or 0)

    size = view.batch_size()
    length = view.header.layout.frame
    for done, found in enumerate(in_order(look, range(first, stop, size), work.jobs), 1):
        yield from found
        if progress is not None:
            progress(min(done * size, stop - first) * length, (stop - first) * length)
