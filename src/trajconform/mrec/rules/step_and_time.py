"""Rules of the topic ``step-and-time``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trajconform.model.errors import Violation
from trajconform.mrec.book import each, rules, seen
from trajconform.mrec.node import ArrayNode
from trajconform.mrec.view import WINDOW_ROWS, View


@rules("MREC-STEP-03", "MREC-STEP-11", role="store")
@rules("MREC-STEP-05", "MREC-STEP-06", "MREC-STEP-07", "MREC-STEP-10", role="reader")
@rules("MREC-STEP-12", role="reader", level="SHOULD")
def steps_are_sound(view: View) -> Iterator[Violation]:
    yield from each(["progression"], lambda _: seen(view.step_progression))
    yield from each(["array"], lambda _: seen(view.step_array))


@rules("MREC-STEP-21", "MREC-STEP-28", "MREC-STEP-35", role="store")
@rules("MREC-STEP-23", "MREC-STEP-24", role="reader")
@rules("MREC-STEP-29", role="reader", level="SHOULD")
def times_are_sound(view: View) -> Iterator[Violation]:
    yield from each(["progression"], lambda _: seen(view.time_progression))
    yield from each(["array"], lambda _: seen(view.time_array))


@rules("MREC-STEP-17", "MREC-STEP-18 MUST NOT", role="store")
def progressions_say_what_they_must(view: View) -> Iterator[Violation]:
    if "nstep" not in view.attributes:
        return
    progression = view.step_progression
    if progression is not None and view.nstep >= 2 and progression[1] <= 0:
        message = f"the stride is {progression[1]} over {view.nstep} frames; steps strictly increase"
        yield Violation("MREC-STEP-17", "trajectory step_progression", message)
    for name in ("step_progression", "time_progression"):
        value = view.attributes.get(name)
        if isinstance(value, dict) and view.nstep == 0:
            yield Violation(
                "MREC-STEP-18",
                f"trajectory {name}",
                "a trajectory of zero frames carries no progression",
                level="MUST NOT",
            )
        elif isinstance(value, dict) and view.nstep == 1 and "stride" in value:
            yield Violation(
                "MREC-STEP-18", f"trajectory {name}", "a progression of one frame has no stride", level="MUST NOT"
            )


@rules("MREC-STEP-08", "MREC-STEP-25", "MREC-CODEC-12 MUST NOT", role="reader", stage="data")
def numbers_decode(view: View) -> Iterator[Violation]:
    def look(array: ArrayNode | None) -> Iterator[Violation]:
        if array is not None:
            begin, end = view.looked_at
            for first, stop in array.windows(end, begin):
                yield from seen(array.rows(first, stop))

    yield from each(["step"], lambda _: look(view.step_array))
    yield from each(["time"], lambda _: look(view.time_array))


@rules("MREC-STEP-01", role="store", stage="data")
def steps_increase(view: View) -> Iterator[Violation]:
    array = view.step_array
    if array is None:
        return
    last: int | None = None
    begin, end = view.looked_at
    for first in range(begin, end, WINDOW_ROWS):
        part = array.rows(first, min(first + WINDOW_ROWS, end))
        joined = part if last is None else np.concatenate([np.array([last], dtype="<i8"), part])
        wrong = np.flatnonzero(joined[1:] <= joined[:-1])
        if len(wrong):
            at = int(wrong[0])
            index = first + at + (1 if last is None else 0)
            message = f"step {joined[at + 1]} follows {joined[at]}; steps strictly increase"
            yield Violation("MREC-STEP-01", array.path, message, index=index)
            return
        last = int(part[-1])
