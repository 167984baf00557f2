"""Rules of the topic ``cell``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trajconform.model.arrays import Array
from trajconform.model.errors import Violation
from trajconform.mrec.book import rules
from trajconform.mrec.view import WINDOW_ROWS, CellView, View


@rules("MREC-CELL-01", "MREC-CELL-02", "MREC-CELL-10", "MREC-CELL-12", role="store", stage="index")
@rules("MREC-CELL-11", "MREC-CELL-18", "MREC-CELL-19", role="reader", level="SHOULD", stage="index")
@rules("MREC-CELL-03", role="reader", stage="index")
def cell_is_sound(view: View) -> Iterator[Violation]:
    if view.cell is not None:
        yield from view.cell.faults


@rules("MREC-CELL-14", role="store", stage="data")
@rules("MREC-CELL-16", role="reader", level="SHOULD", stage="data")
def undefined_cell(view: View) -> Iterator[Violation]:
    cell = view.cell
    if cell is None or cell.faults:
        return
    for first in range(0, len(cell.ordinals), WINDOW_ROWS):
        vectors, _, boundaries = view.cell_rows(first, min(first + WINDOW_ROWS, len(cell.ordinals)))
        if cell.defined:
            continue
        periodic = [*periodic_although_undefined(cell, first, boundaries)]
        if periodic:
            yield from periodic
            yield from (replace(v, clause="MREC-CELL-14", level="MUST") for v in periodic)
            return
        wrong = np.flatnonzero((vectors.view("<u8") != np.eye(3).view("<u8")).any(axis=(1, 2)))
        if len(wrong):
            at = int(wrong[0])
            message = f"the cell is undefined and vectors are {vectors[at].tolist()}; they are written as the identity"
            yield Violation("MREC-CELL-14", "trajectory/box", message, index=first + at)
            return


def periodic_although_undefined(cell: CellView, first: int, boundaries: Array) -> Iterator[Violation]:
    """A true flag in the boundaries of updates from ``first`` on of an undefined cell: the first there is."""
    wrong = np.flatnonzero(boundaries.any(axis=1))
    if not cell.defined and len(wrong):
        at = int(wrong[0])
        message = f"the cell is undefined and boundary is {boundaries[at].tolist()}; it must be all false"
        yield Violation("MREC-CELL-16", "trajectory/box", message, index=first + at, level="SHOULD")
