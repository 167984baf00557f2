"""Rules of the topic ``step-meta``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trajconform.model.errors import Violation, refuse
from trajconform.mrec.book import each, rules, seen
from trajconform.mrec.store import is_finite, parse_json
from trajconform.mrec.view import View


@rules("MREC-META-01", "MREC-META-02", "MREC-META-32", "MREC-META-33", role="store", stage="index")
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
        begin, end = view.looked_at
        for first, stop in array.windows(end, begin):
            rows = array.rows(first, stop)
            if view.declaration.meta[key].dtype == "json":
                for i, text in enumerate(rows.tolist()):
                    parse_document(array.path, first + i, text)
        spans = array.stored_spans(view.nstep)
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
    """One json value as a document. `Refused` where the text is none, or holds a number that is not finite."""
    document = parse_json(text.encode(), node, "MREC-META-12", index)
    if not is_finite(document):
        raise refuse("MREC-META-12", node, "a number in the document is beyond binary64", index=index)
    return document
