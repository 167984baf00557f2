"""Rules of the topics ``blocks``, ``regular`` and ``nullable``: groups, indices, columns and masks of declared blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from trajconform.model.errors import Refused, Violation
from trajconform.mrec.book import each, rules, seen
from trajconform.mrec.store import child
from trajconform.mrec.view import View, is_int, short


@rules(
    "MREC-BLOCK-01", "MREC-BLOCK-02", "MREC-BLOCK-03", "MREC-BLOCK-04", "MREC-BLOCK-06", "MREC-BLOCK-07 MUST NOT",
    "MREC-BLOCK-19", "MREC-DECL-28", "MREC-REGULAR-01", "MREC-REGULAR-02", "MREC-REGULAR-14", "MREC-RAGGED-01", role="store",
    stage="index",
)  # fmt: skip
@rules("MREC-BLOCK-20", "MREC-BLOCK-21", role="reader", level="SHOULD", stage="index")
@rules(
    "MREC-BLOCK-05", "MREC-BLOCK-09", "MREC-BLOCK-12", "MREC-BLOCK-14",
    "MREC-BLOCK-22", "MREC-BLOCK-25", "MREC-REGULAR-03", "MREC-REGULAR-04", "MREC-REGULAR-05", "MREC-REGULAR-06",
    "MREC-REGULAR-24", "MREC-DECL-10", "MREC-NULL-05", "MREC-NULL-06", "MREC-NULL-07", "MREC-NULL-08", role="reader",
    stage="index",
)  # fmt: skip
def blocks_are_sound(view: View) -> Iterator[Violation]:
    yield from each(view.declaration.blocks, lambda name: view.block(name).faults)


@rules("MREC-REGULAR-11 MUST NOT", "MREC-BLOCK-26", role="store", stage="index")
def markers_and_index(view: View) -> Iterator[Violation]:
    def look(name: str) -> Iterator[Violation]:
        node = child("trajectory", name)
        attributes = view.store.group(node)
        if attributes is None:
            return
        markers = [m for m in ("uniform_rows", "dense_updates") if m in attributes]
        arrays: list[str] = []
        for array in ("step_index", "offset"):
            # What is wrong with a node is for the rule of what needs it.
            with suppress(Refused):
                arrays += [array] if view.has(f"{node}/{array}") else []
        if markers and arrays:
            message = f"{' and '.join(markers)} beside {' and '.join(arrays)}; a commit leaves one or the other"
            yield Violation("MREC-REGULAR-11", node, message, level="MUST NOT")
        elif len(arrays) == 1:
            missing = "offset" if arrays[0] == "step_index" else "step_index"
            yield Violation("MREC-BLOCK-26", node, f"{arrays[0]} stands there without {missing}")

    yield from each(view.declaration.blocks, look)


@rules("MREC-BLOCK-15", "MREC-BLOCK-16", "MREC-REGULAR-25", role="store", stage="index")
def structural_shapes(view: View) -> Iterator[Violation]:
    def look(name: str) -> Iterator[Violation]:
        node = child("trajectory", name)
        attributes = view.store.group(node)
        shape = view.declaration.blocks[name].structural_shape
        if attributes is None or shape is None:
            return
        mirrored = attributes.get("structural_shape")
        if mirrored != list(shape) or not all(map(is_int, mirrored)):
            yield Violation("MREC-BLOCK-15", node, f"structural_shape is {short(mirrored)}, declared {list(shape)}")
        product = math.prod(shape)
        updates = view.block(name).updates
        if updates.ordinals is None:
            size = attributes.get("uniform_rows", product)
            if is_int(size) and size != product:
                message = f"uniform_rows is {size}, the structural shape {list(shape)} has {product} rows"
                yield Violation("MREC-REGULAR-25", node, message)
            return
        counts = updates.counts()[1]
        wrong = np.flatnonzero(counts != np.uint64(product)) if product < 2**64 else np.arange(len(counts))
        if len(wrong):
            at = int(wrong[0])
            message = f"update {at} has {counts[at]} rows, the structural shape {list(shape)} asks for {product}"
            yield Violation("MREC-BLOCK-16", node, message, index=at)

    yield from each(view.declaration.blocks, look)


@rules("MREC-NULL-01", "MREC-NULL-09 MUST NOT", role="store", stage="index")
def masks_where_they_belong(view: View) -> Iterator[Violation]:
    def look(name: str) -> Iterator[Violation]:
        node = child("trajectory", name)
        if view.store.group(node) is None:
            return
        present = set(view.store.children(f"{node}/_validity"))
        for column, entry in view.declaration.blocks[name].columns.items():
            path = child(f"{node}/_validity", column)
            if entry.nullable and column not in present:
                yield Violation("MREC-NULL-01", path, f"the column {column} is nullable and has no mask")
            elif not entry.nullable and column in present and view.pinned:
                message = f"the column {column} is not nullable and has a mask"
                yield Violation("MREC-NULL-09", path, message, level="MUST NOT")

    yield from each(view.declaration.blocks, look)


@rules("MREC-NULL-02", "MREC-BLOCK-23", "MREC-CODEC-12 MUST NOT", role="reader", stage="data")
def rows_decode(view: View) -> Iterator[Violation]:
    """Every committed row of every column and mask can be decoded: only what is stored is looked at."""

    def look(name: str) -> Iterator[Violation]:
        block = view.block(name)
        if block.faults:
            return
        largest = block.updates.largest()
        for array in (*block.columns.values(), *block.masks.values()):
            array.demand(largest * math.prod(array.trailing))
            begin, end = view.rows_looked_at(block.updates)
            for first, stop in array.windows(end, begin):
                yield from seen(array.rows(first, stop))

    yield from each(view.declaration.blocks, look)
