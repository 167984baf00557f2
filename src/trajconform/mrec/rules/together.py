"""Rules of the topics ``aligned``, ``system-side``, ``references`` and ``precision`` that only rows can show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trajconform.model.arrays import Array
from trajconform.model.errors import Refused, Violation
from trajconform.mrec.book import each, rules
from trajconform.mrec.node import ArrayNode
from trajconform.mrec.view import BlockView, View, short

_ABSENT = -1
_WINDOW = 1 << 18


def _counts_at(block: BlockView, ordinals: Array) -> Array:
    """Row counts of a block at some frames, i64; -1 where it is absent."""
    at, counts = block.updates.counts()
    found = np.searchsorted(at, ordinals, side="right") - 1
    if not len(at):
        return np.full(len(ordinals), _ABSENT)
    signed = np.minimum(counts, np.uint64(2**62)).astype("<i8")
    return np.where(found < 0, _ABSENT, signed[np.maximum(found, 0)])


@rules("MREC-ALIGN-22", role="store", stage="index")
@rules("MREC-ALIGN-07", "MREC-ALIGN-08", role="reader", stage="index")
def aligned_rows(view: View) -> Iterator[Violation]:
    def look(name: str) -> Iterator[Violation]:
        target = view.declaration.blocks[name].aligned_with
        if target is None or target not in view.declaration.blocks or target == name or not view.nstep:
            return
        here, there = view.block(name), view.block(target)
        if here.faults or there.faults:
            return
        ordinals = np.unique(np.concatenate([here.updates.counts()[0], there.updates.counts()[0]]))
        mine, theirs = _counts_at(here, ordinals), _counts_at(there, ordinals)
        node = f"trajectory/{name}"
        orphan = np.flatnonzero((mine != _ABSENT) & (theirs == _ABSENT))
        if len(orphan):
            frame = int(ordinals[orphan[0]])
            yield Violation(
                "MREC-ALIGN-08", node, f"at frame {frame} it is there and its target {target} is absent", index=frame
            )
            return
        wrong = np.flatnonzero((mine != _ABSENT) & (mine != theirs))
        if len(wrong):
            frame, at = int(ordinals[wrong[0]]), wrong[0]
            message = f"at frame {frame} it has {mine[at]} rows and its target {target} has {theirs[at]}"
            yield Violation("MREC-ALIGN-07", node, message, index=frame)

    yield from each(view.declaration.blocks, look)


@rules("MREC-SYSTEM-01", "MREC-SYSTEM-02", "MREC-SYSTEM-03 MUST NOT", role="store", stage="data")
def system_side(view: View) -> Iterator[Violation]:
    def look(name: str) -> Iterator[Violation]:
        block = view.block(name)
        try:
            count = view.section_count("system", name)
        except Refused:
            return  # the rule of sections says what is wrong there
        if count is None or block.faults or not block.updates.count:
            return
        ordinals, counts = block.updates.counts()
        node = f"trajectory/{name}"
        if len(np.unique(counts)) > 1:
            message = f"its row count varies, and system/{name} defines {count} rows; a ragged block takes another name"
            yield Violation("MREC-SYSTEM-03", node, message, level="MUST NOT")
            return
        if int(counts[0]) != count:
            message = f"update 0 has {counts[0]} rows, system/{name} has {count}"
            yield Violation("MREC-SYSTEM-01", node, message, index=int(ordinals[0]))
            return
        if "id" in block.columns and count:
            yield from _ids(view, block, f"system/{name}/id", count)

    yield from each(view.declaration.blocks, look)


def _ids(view: View, block: BlockView, node: str, count: int) -> Iterator[Violation]:
    try:
        ids = view.array(node) if view.has(node) else None
        if ids is None or ids.dtype != "u64" or ids.shape != (count,):
            return
        wanted = ids.rows(0, count)
    except Refused as refusal:
        yield replace(refusal.violation, clause="MREC-RECORD-05")
        return
    array = block.columns["id"]
    for first, stop in _windows(view, block, array, None):
        found = array.rows(block.updates.rows(first)[0], block.updates.rows(stop - 1)[1]).reshape(stop - first, count)
        wrong = np.flatnonzero((found != wanted).any(axis=1))
        if len(wrong):
            update = first + int(wrong[0])
            row = int(np.flatnonzero(found[wrong[0]] != wanted)[0])
            message = f"row {row} of update {update} has the id {found[wrong[0], row]}, {node} has {wanted[row]} there"
            yield Violation("MREC-SYSTEM-02", array.path, message, index=update)
            return


@rules("MREC-REF-14", role="store", stage="index")
@rules("MREC-REF-04", "MREC-REF-06", "MREC-REF-07", "MREC-REF-12", role="reader", stage="index")
def targets_are_there(view: View) -> Iterator[Violation]:
    def look(name: str) -> Iterator[Violation]:
        block = view.block(name)
        update = None if block.faults or not view.nstep else block.updates.first_with_rows()
        if update is None:
            return
        ordinal = block.updates.ordinal(update)
        for column, target in references(block).items():
            node = f"trajectory/{name}/{column}"
            if column not in block.declared.targets and target not in view.declaration.blocks:
                message = f"{column} refers to atoms by convention, and no block atoms is declared"
                yield Violation("MREC-REF-12", node, message, index=ordinal)
                continue
            counts = _target_counts(view, target)
            if counts is not None and _least(*counts, *np.array([[ordinal], [ordinal + 1]], dtype="<u8"))[0] == _ABSENT:
                clause = "MREC-REF-07" if target.startswith("/") else "MREC-REF-04"
                message = f"rows at frame {ordinal} refer to {target}, which is absent there"
                yield Violation(clause, node, message, index=ordinal)

    yield from each(view.declaration.blocks, look)


@rules("MREC-REF-14", role="store", stage="data")
@rules("MREC-REF-05", "MREC-REF-06", "MREC-REF-07", role="reader", stage="data")
def values_in_range(view: View) -> Iterator[Violation]:
    def look(name: str) -> Iterator[Violation]:
        block = view.block(name)
        if block.faults or not view.nstep:
            return
        for column in references(block):
            array, mask = block.columns.get(column), block.masks.get(column)
            if array is None:
                continue
            for first, stop in _windows(view, block, array, mask):
                begin, end = block.updates.rows(first)[0], block.updates.rows(stop - 1)[1]
                flags = None if mask is None else mask.rows(begin, end)
                found = [
                    *out_of_range(view, block, column, (first, stop), array.rows(begin, end), flags, view.looked_at)
                ]
                if found:
                    yield found[0]
                    break

    yield from each(view.declaration.blocks, look)


def references(block: BlockView) -> dict[str, str]:
    """Columns of a block that hold row numbers, with what they refer to."""
    declared = block.declared
    return {c: t for c, t in declared.references().items() if declared.columns[c].dtype == "u64"}


def out_of_range(
    view: View,
    block: BlockView,
    column: str,
    updates: tuple[int, int],
    values: Array,
    flags: Array | None,
    frames: tuple[int, int],
) -> Iterator[Violation]:
    """Valid values that are not below the row count of their target, at some of the frames: the first of each update.

    ``values`` and ``flags`` are the rows of a range of updates, as `Updates.rows` cuts them.
    """
    target = references(block)[column]
    counts = None
    if column in block.declared.targets or target in view.declaration.blocks:
        counts = _target_counts(view, target)
    if counts is None or not len(values):
        return
    first, stop = updates
    ordinals, starts = block.updates.cut(first, stop, view.nstep)
    sizes = np.diff(starts)
    there = np.flatnonzero(sizes)
    low = np.maximum(ordinals[:-1], np.uint64(min(frames[0], 2**64 - 1)))[there]
    high = np.minimum(ordinals[1:], np.uint64(min(frames[1], 2**64 - 1)))[there]
    flat = values.reshape(len(values), -1)
    if not flat.shape[1]:
        return
    highest = flat.max(axis=1)
    begins = (starts[:-1] - starts[0])[there].astype("<i8")
    if flags is not None:
        # A null row refers to nothing: count it as row 0 of a target that has one.
        highest = np.where(flags, highest, np.uint64(0))
        valid = np.maximum.reduceat(flags, begins)
    else:
        valid = np.ones(len(there), dtype=bool)
    reached = np.maximum.reduceat(highest, begins)
    least = _least(*counts, low, high)
    wrong = np.flatnonzero(valid & (low < high) & (least != _ABSENT) & (reached >= np.maximum(least, 0).astype("<u8")))
    for at in wrong.tolist():
        frame = int(low[at])
        message = f"from frame {frame} on it refers to row {reached[at]} of {target}, which has {least[at]} rows"
        yield Violation("MREC-REF-05", f"trajectory/{block.name}/{column}", message, index=frame)


def _target_counts(view: View, target: str) -> tuple[Array, Array] | None:
    """Frames at which the row count of a target changes, and the counts, i64, -1 for absent; None: not to be checked."""
    if target.startswith("/"):
        section, _, name = target[1:].partition("/")
        if view.store.group(section) is None:
            return None
        fixed = view.section_count(section, name)
        return np.zeros(1, dtype="<u8"), np.array([_ABSENT if fixed is None else min(fixed, 2**62)])
    if target not in view.declaration.blocks:
        return np.zeros(0, dtype="<u8"), np.zeros(0, dtype="<i8")
    other = view.block(target)
    if other.faults:
        return None
    at, raw = other.updates.counts()
    return at, np.minimum(raw, np.uint64(2**62)).astype("<i8")


def _least(at: Array, counts: Array, low: Array, high: Array) -> Array:
    """The smallest count over each range of frames ``low`` up to ``high``, -1 where it begins with an absent target."""
    if not len(at):
        return np.full(len(low), _ABSENT)
    lead = np.searchsorted(at, low, side="right") - 1
    last = np.maximum(np.searchsorted(at, high, side="left") - 1, lead)
    least = np.where(lead < 0, _ABSENT, counts[np.maximum(lead, 0)])
    for n in np.flatnonzero((lead >= 0) & (last > lead)).tolist():
        least[n] = counts[lead[n] : last[n] + 1].min()
    return least


def _windows(view: View, block: BlockView, array: ArrayNode, mask: ArrayNode | None) -> Iterator[tuple[int, int]]:
    """Ranges of updates whose rows are read together. Of updates of which nothing is stored only the first is named:
    all the others have the same values and, but for what their target does, the same fault."""
    total = block.updates.total
    spans = sorted([*array.stored_spans(total), *(mask.stored_spans(total) if mask is not None else ())])
    updates, at = block.updates, 0
    first, end = view.updates_looked_at(updates)
    while first < end:
        begin = updates.rows(first)[0]
        while at < len(spans) and spans[at][1] <= begin:
            at += 1
        stop = min(updates.within(first, begin + _WINDOW), end)
        if at < len(spans) and spans[at][0] < updates.rows(stop - 1)[1]:
            yield first, stop
        else:
            yield first, first + 1
            stop = max(stop, updates.within(first, spans[at][0]) if at < len(spans) else end)
        first = stop


@rules("MREC-PREC-04", role="store", level="SHOULD", stage="data")
def values_on_the_grid(view: View) -> Iterator[Violation]:
    from trajconform.mrec.writer import round_to_precision

    def look(name: str) -> Iterator[Violation]:
        block = view.block(name)
        if block.faults:
            return
        for column, entry in block.declared.columns.items():
            if entry.precision is None or column not in block.columns:
                continue
            array, mask = block.columns[column], block.masks.get(column)
            begin, end = view.rows_looked_at(block.updates)
            for first, stop in (*array.windows(end, begin), *_gap(array, begin, end)):
                values = array.rows(first, stop)
                wrong = values.view("<u8") != round_to_precision(values, entry.precision).view("<u8")
                off = wrong.reshape(stop - first, -1).any(axis=1)
                if mask is not None:
                    off &= mask.rows(first, stop)
                if off.any():
                    at = first + int(np.flatnonzero(off)[0])
                    message = f"row {at} is not on the grid of the declared precision {entry.precision!r}"
                    yield Violation("MREC-PREC-04", array.path, message, index=at, level="SHOULD")
                    break

    yield from each(view.declaration.blocks, look)


@rules("MREC-PREC-09", role="store")
def precision_in_one_place(view: View) -> Iterator[Violation]:
    def look(name: str) -> Iterator[Violation]:
        for column in view.block(name).columns.values():
            if "precision" in column.attributes:
                value = short(column.attributes["precision"])
                message = f"the attribute precision is {value} here; the declaration is where a precision stands"
                yield Violation("MREC-PREC-09", column.path, message)

    yield from each(view.declaration.blocks, look)


def _gap(array: ArrayNode, at: int, rows: int) -> Iterator[tuple[int, int]]:
    """The first row from ``at`` on of which nothing is stored, where there is one: it holds the fill value, like all
    such rows."""
    for first, stop in array.stored_spans(rows):
        if first > at:
            break
        at = max(at, stop)
    if at < rows:
        yield at, at + 1
