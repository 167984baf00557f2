"""Rules of the topic ``commit-marker``."""

from __future__ import annotations

from collections.abc import Iterator

from trajconform.model.errors import Violation
from trajconform.mrec.book import each, rules, seen
from trajconform.mrec.view import View


@rules("MREC-COMMIT-01", "MREC-COMMIT-02", "MREC-COMMIT-11 MUST NOT", role="store")
@rules("MREC-COMMIT-04", "MREC-COMMIT-12", role="reader")
def marker_is_sound(view: View) -> Iterator[Violation]:
    yield from seen(view.nstep)


@rules("MREC-COMMIT-07 MUST NOT", role="store", stage="index")
@rules("MREC-COMMIT-08", role="reader", stage="index")
def arrays_are_long_enough(view: View) -> Iterator[Violation]:
    yield from each(["step"], lambda _: seen(view.step_array))
    yield from each(["time"], lambda _: seen(view.time_array))
    yield from each(view.declaration.meta, lambda key: seen(view.meta(key)))
