"""The time of a frame, which is a product. A frame with a wrong checksum is not judged: nothing in it is certain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trajconform.model.arrays import describe_value
from trajconform.otj.book import Finding, rule
from trajconform.otj.format import frame_times
from trajconform.otj.view import FrameBatch

_ROUNDING = 2
"""How many representable values apart two ways of rounding the product can be."""


@rule(("OTJ-FRAME-07", "store", "MUST"), stage="data")
def product(batch: FrameBatch) -> Iterator[Finding]:
    """A time that is no way of writing step times timestep."""
    for row, apart in _wrong_times(batch):
        if apart is None or apart > _ROUNDING:
            yield _finding(batch, row, "step {step} times the timestep is {right}")


@rule(("OTJ-FRAME-08", "store", "MUST"), stage="data")
def rounding(batch: FrameBatch) -> Iterator[Finding]:
    """A time that is the product, but rounded otherwise than in the file's precision, operand and result."""
    for row, apart in _wrong_times(batch):
        if apart is not None and apart <= _ROUNDING:
            yield _finding(batch, row, "step {step} as a scalar, times the timestep, rounds to {right}")


def _wrong_times(batch: FrameBatch) -> Iterator[tuple[int, int | None]]:
    """Rows with a wrong time and how many values it is off; None where a NaN is involved."""
    right = frame_times(batch.steps, batch.header.timestep)
    integer = np.dtype(f"<i{right.dtype.itemsize}")
    differs = (batch.times.view(integer) != right.view(integer)) & ~(np.isnan(batch.times) & np.isnan(right))
    for row in np.flatnonzero(differs & batch.sound).tolist():
        if np.isnan(batch.times[row]) or np.isnan(right[row]):
            yield row, None
        else:
            yield row, abs(_ordinal(batch.times[row : row + 1]) - _ordinal(right[row : row + 1]))


def _ordinal(value: np.ndarray[tuple[int], np.dtype[np.floating]]) -> int:
    """Place of a number among all of its width, so that neighbours differ by one (and the zeros too)."""
    size = value.dtype.itemsize
    bits = int.from_bytes(value.tobytes(), "little")
    sign = 1 << (8 * size - 1)
    return -1 - (bits ^ sign) if bits & sign else bits


def _finding(batch: FrameBatch, row: int, reason: str) -> Finding:
    name = "f32" if batch.header.layout.single else "f64"
    right = frame_times(batch.steps[row : row + 1], batch.header.timestep)[0]
    told = reason.format(step=int(batch.steps[row]), right=describe_value(right, name))
    message = f"the time is {describe_value(batch.times[row], name)}; {told}"
    return Finding(message, batch.offset(row) + 8, batch.first + row)
