"""Rules of the topic ``step-meta``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trajconform.model.errors import Violation
from trajconform.mrec.book import each, rules, seen
from trajconform.mrec.store import parse_json
from trajconform.mrec.view import WINDOW_ROWS, View


@rules("MREC-META-01", "MREC-META-02", role="store", stage="index")
@rules("MREC-META-03", "MREC-META-04", "MREC-META-06", "MREC-META-07", "MREC-META-09", role="reader", stage="index")
def arrays_fit_their_tags(view: View) -> Iterator[Violation]:
    yield from each(view.declaration.meta, lambda key: seen(view.meta(key)))


@rules("MREC-META-11", role="store", stage="data")
@rules("MREC-META-12", role="reader", stage="data")
def values_decode(view: View) -> Iterator[Violation]:
    def look(key: str) -> Iterator[Violation]:
        array = view.meta(key)
        if array is None:
            return
        for first, stop in array.stored_spans():
            for at in range(first, min(stop, view.nstep), WINDOW_ROWS):
                rows = array.rows(at, min(at + WINDOW_ROWS, stop, view.nstep))
                if view.declaration.meta[key].dtype == "json":
                    for i, text in enumerate(rows.tolist()):
                        parse_document(array.path, at + i, text)
        spans = array.stored_spans()
        covered = sum(b - a for a, b in spans)
        if view.declaration.meta[key].dtype == "json" and covered < view.nstep:
            missing = next((a for a in _gaps(spans) if a < view.nstep), 0)
            parse_document(array.path, missing, str(array.fill))
        yield from seen(array)

    yield from each(view.declaration.meta, look)


def _gaps(spans: list[tuple[int, int]]) -> Iterator[int]:
    at = 0
    for first, stop in spans:
        if first > at:
            yield at
        at = stop
    yield at


def parse_document(node: str, index: int, text: str) -> Any:
    """One json value as a document. `Refused` where the text is none."""
    return parse_json(text.encode("utf-8", "surrogatepass"), f"{node}[{index}]", "MREC-META-12")
