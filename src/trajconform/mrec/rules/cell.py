"""Rules of the topic ``cell``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trajconform.model.arrays import same_bits
from trajconform.model.errors import Violation
from trajconform.mrec.book import rules
from trajconform.mrec.view import View


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
    for update in range(len(cell.ordinals)):
        vectors, _, boundary = view.cell_update(update)
        if cell.defined:
            continue
        if bool(boundary.any()):
            message = f"the cell is undefined and boundary is {boundary.tolist()}; it must be all false"
            yield Violation("MREC-CELL-16", "trajectory/box", message, index=update, level="SHOULD")
            yield Violation("MREC-CELL-14", "trajectory/box", message, index=update)
            return
        if not same_bits(vectors, np.eye(3)):
            message = f"the cell is undefined and vectors are {vectors.tolist()}; they are written as the identity"
            yield Violation("MREC-CELL-14", "trajectory/box", message, index=update)
            return
