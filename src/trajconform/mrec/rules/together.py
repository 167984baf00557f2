"""Rules of the topics ``aligned``, ``system-side``, ``references`` and ``precision`` that only rows can show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trajconform.model.arrays import Array, same_bits
from trajconform.model.errors import Violation
from trajconform.mrec.book import each, rules
from trajconform.mrec.view import BlockView, View

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


@rules("MREC-ALIGN-07", "MREC-ALIGN-08", role="reader", stage="data")
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


@rules("MREC-SYSTEM-01", "MREC-SYSTEM-02", "MREC-SYSTEM-03", role="store", stage="data")
def system_side(view: View) -> Iterator[Violation]:
    def look(name: str) -> Iterator[Violation]:
        count = view.section_count("system", name) if view.store.group("system") is not None else None
        block = view.block(name)
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
        if "id" not in block.columns or not view.has(f"system/{name}/id"):
            return
        ids = view.array(f"system/{name}/id")
        if ids.dtype != "u64" or ids.shape != (count,):
            return
        wanted = ids.rows(0, count)
        for update in range(min(block.updates.count, 1 << 20)):
            first, stop = block.updates.rows(update)
            if not same_bits(block.columns["id"].rows(first, stop), wanted):
                message = f"the ids of update {update} are not those of system/{name}"
                yield Violation("MREC-SYSTEM-02", f"{node}/id", message, index=update)
                return

    yield from each(view.declaration.blocks, look)


@rules("MREC-REF-14", role="store", stage="data")
@rules("MREC-REF-04", "MREC-REF-05", "MREC-REF-06", "MREC-REF-07", "MREC-REF-12", role="reader", stage="data")
def references(view: View) -> Iterator[Violation]:
    def look(name: str) -> Iterator[Violation]:
        block = view.block(name)
        if block.faults or not block.updates.count or not view.nstep:
            return
        declared = block.declared.references() if view.pinned else {}
        if not view.pinned:
            declared = {c: t for c, t in block.declared.references().items() if t == "atoms"}
        for column, target in declared.items():
            if block.declared.columns[column].dtype == "u64":
                yield from _column_references(view, block, column, target)

    yield from each(view.declaration.blocks, look)


def _column_references(view: View, block: BlockView, column: str, target: str) -> Iterator[Violation]:
    node = f"trajectory/{block.name}/{column}"
    counts: Array | None = None
    at: Array = np.zeros(1, dtype="<u8")
    if target.startswith("/"):
        section, _, name = target[1:].partition("/")
        if view.store.group(section) is None:
            return
        fixed = view.section_count(section, name)
        counts = np.array([_ABSENT if fixed is None else fixed])
    elif column not in block.declared.targets and target not in view.declaration.blocks:
        rows = (u for u in range(block.updates.count) if block.updates.rows(u)[0] < block.updates.rows(u)[1])
        lead = next(rows, None)
        if lead is not None:
            message = f"{column} refers to atoms by convention, and no block atoms is declared"
            yield Violation("MREC-REF-12", node, message, index=block.updates.ordinal(lead))
        return
    elif target in view.declaration.blocks:
        other = view.block(target)
        if other.faults:
            return
        at, raw = other.updates.counts()
        counts = np.minimum(raw, np.uint64(2**62)).astype("<i8")
    if counts is None:
        at, counts = np.zeros(0, dtype="<u8"), np.zeros(0, dtype="<i8")
    updates = block.updates
    for first, stop, highest in _update_maxima(block, column):
        # The frames that these updates reach, and the smallest count that their target has there.
        for update in range(first, stop):
            begin, end = updates.rows(update)
            if begin == end:
                continue
            low = updates.ordinal(update)
            high = updates.ordinal(update + 1) if update + 1 < updates.count else view.nstep
            lead = int(np.searchsorted(at, np.uint64(low), side="right")) - 1
            last = int(np.searchsorted(at, np.uint64(high - 1), side="right")) - 1
            if lead < 0 or (len(counts) and bool((counts[lead : last + 1] == _ABSENT).any())):
                message = f"rows at frame {low} refer to {target}, which is absent there"
                yield Violation("MREC-REF-04", node, message, index=low)
                return
            least = int(counts[lead : last + 1].min())
            value = highest[update - first]
            if value is not None and value >= least:
                frame = int(max(low, at[lead + int(np.argmin(counts[lead : last + 1]))])) if len(at) else low
                message = f"at frame {frame} it refers to row {value} of {target}, which has {least}"
                yield Violation("MREC-REF-05", node, message, index=frame)
                return


def _update_maxima(block: BlockView, column: str) -> Iterator[tuple[int, int, list[int | None]]]:
    """The largest valid value of a column in each update, by windows of updates: (first, stop, maxima)."""
    updates, array, mask = block.updates, block.columns[column], block.masks.get(column)
    first = 0
    stored = array.stored_spans()
    while first < updates.count:
        stop = first + 1
        while (
            stop < updates.count and updates.rows(stop)[1] - updates.rows(first)[0] <= _WINDOW and stop - first < 4096
        ):
            stop += 1
        begin, end = updates.rows(first)[0], updates.rows(stop - 1)[1]
        touched = any(a < end and b > begin for a, b in stored)
        if touched or mask is not None:
            values = array.rows(begin, end)
            flags = mask.rows(begin, end) if mask is not None else None
            maxima: list[int | None] = []
            for update in range(first, stop):
                a, b = updates.rows(update)
                part = values[a - begin : b - begin]
                if flags is not None:
                    part = part[flags[a - begin : b - begin]]
                maxima.append(int(part.max()) if part.size else None)
            yield first, stop, maxima
        else:
            yield first, stop, [int(array.fill)] * (stop - first)
            if first > 1 << 16:
                return  # nothing is stored from here on but the fill value, which the updates before have shown
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
            for first, stop in array.stored_spans():
                for a in range(first, min(stop, block.updates.total), _WINDOW):
                    b = min(a + _WINDOW, stop, block.updates.total)
                    values = array.rows(a, b)
                    wrong = (values.view("<u8") != round_to_precision(values, entry.precision).view("<u8")).reshape(
                        b - a, -1
                    )
                    off = wrong.any(axis=1)
                    if mask is not None:
                        off &= mask.rows(a, b)
                    if off.any():
                        at = a + int(np.flatnonzero(off)[0])
                        message = f"row {at} is not on the grid of the declared precision {entry.precision!r}"
                        yield Violation("MREC-PREC-04", array.path, message, index=at, level="SHOULD")
                        break

    yield from each(view.declaration.blocks, look)
