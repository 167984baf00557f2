"""The strict reader: streaming, and random access by arithmetic.

It refuses by the clauses on readers (`trajconform.otj.rules`), reads a frame only when it is asked for, and reserves no
memory for anything that the file is not long enough to hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trajconform.model.errors import Refused, Violation
from trajconform.model.remote import open_place
from trajconform.model.reply import otj_reply
from trajconform.model.trajectory import OtjFrame, OtjHeader
from trajconform.otj.format import Layout, Location
from trajconform.otj.rules import BOOK
from trajconform.otj.view import FileView, FrameBatch


@dataclass(frozen=True)
class Tail:
    """How a file ends. ``frames`` sound frames stand before the first trouble, ``bytes`` bytes from there to the end.

    ``state`` is ``clean`` (the file ends with a frame, or with its header), ``cut`` (it stops inside a frame) or
    ``damaged`` (a complete frame has a wrong checksum).
    """

    state: str
    frames: int
    bytes: int
    violation: Violation | None = None


def open_otj(path: Location) -> OtjFile:
    """Open a file and read its header. `Refused` names the clause where a reader has to refuse; OSError otherwise."""
    stream = open_place(path)
    try:
        return OtjFile(FileView(stream), stream)
    except BaseException:
        stream.close()
        raise


class OtjFile:
    """An open file: ``header``, its frames by iteration or by number, and how it ends."""

    def __init__(self, view: FileView, stream: Any) -> None:
        self._view = view
        self._stream = stream
        for stage in ("structure", "index"):
            for rule in BOOK.select(roles=("reader",), stage=stage):
                for violation in rule(view):
                    raise Refused(violation)
        if view.header is None:
            raise AssertionError("a header that no rule refuses is there in full")
        layout = view.header.layout
        self.layout: Layout = layout
        self.header = OtjHeader(
            layout.particles, layout.precision, layout.velocities, view.header.timestep, view.header.masses
        )

    def __enter__(self) -> OtjFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Frames that were handed out stay good."""
        self._stream.close()

    def __len__(self) -> int:
        """Number of complete frames by arithmetic, sound or damaged (OTJ-COUNT-03)."""
        return self._view.frames

    def __iter__(self) -> Iterator[OtjFrame]:
        """Every frame before the first bad one (OTJ-TAIL-02, OTJ-TAIL-05)."""
        return self.frames(0, len(self))

    def frames(self, first: int, stop: int) -> Iterator[OtjFrame]:
        """Frames ``first`` to ``stop`` (half-open, cut to what there is), up to the first damaged one among them."""
        stop = min(stop, len(self))
        while first < stop:
            batch = self._view.batch(first, stop)
            sound = len(batch) if batch.sound.all() else int(np.argmin(batch.sound))
            for row in range(sound):
                yield _frame(batch, row)
            if sound < len(batch):
                return
            first += len(batch)

    def frame(self, number: int) -> OtjFrame:
        """One frame by its number, by a seek (OTJ-COUNT-04). IndexError beyond the complete frames, `Refused`
        (OTJ-SUM-05) for a damaged one."""
        if not 0 <= number < len(self):
            raise IndexError(f"frame {number} of {len(self)}")
        batch = self._view.batch(number, number + 1)
        violation = _first_damage(batch)
        if violation is not None:
            raise Refused(violation)
        return _frame(batch, 0)

    def tail(self) -> Tail:
        """Walk all frames and say how the file ends (OTJ-TAIL-07)."""
        first, last = 0, len(self)
        while first < last:
            batch = self._view.batch(first, last)
            violation = _first_damage(batch)
            if violation is not None and violation.index is not None:
                left = self._view.length - self.layout.offset(violation.index)
                return Tail("damaged", violation.index, left, violation)
            first += len(batch)
        cut = self.layout.cut(self._view.length)
        return Tail("cut" if cut else "clean", last, cut)

    def reply(self, first: int = 0, stop: int | None = None) -> dict[str, Any]:
        """The reply form, with the tail."""
        tail = self.tail()
        reply = otj_reply(self.header, self.frames(first, len(self) if stop is None else stop))
        reply["tail"] = {"state": tail.state, "bytes": tail.bytes}
        return reply


def _first_damage(batch: FrameBatch) -> Violation | None:
    found = (violation for rule in BOOK.select(roles=("reader",), stage="data") for violation in rule(batch))
    return next(found, None)


def _frame(batch: FrameBatch, row: int) -> OtjFrame:
    return OtjFrame(step=int(batch.steps[row]), time=batch.times[row : row + 1].reshape(()), **batch.components(row))
