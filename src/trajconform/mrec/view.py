"""What the rules and the reader look at: a store's parts, each parsed once, with the faults found on the way.

A part that readers must refuse raises `Refused`, or is handed out together with its faults so that one fault hides no
other. Nothing here decides policy: the reader stops at the first fault, the checker collects all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trajconform.model.arrays import NUMPY_DTYPES, Array
from trajconform.model.errors import Refused, Violation, refuse
from trajconform.model.work import Work
from trajconform.mrec.declaration import (
    RESERVED_BLOCKS,
    RESERVED_COLUMNS,
    TAGS,
    BlockDeclaration,
    ColumnDeclaration,
    Declaration,
    MetaDeclaration,
    as_float,
    parse_declaration,
)
from trajconform.mrec.node import ArrayNode
from trajconform.mrec.store import PackedFiles, Store, child

WINDOW_ROWS = 1 << 16
NEWEST_RECORD = 1


@dataclass(frozen=True)
class Updates:
    """The committed updates of a block: by index arrays, or regular with ``size`` rows each."""

    count: int
    ordinals: Array | None = None
    """u64[count], None when regular (update j is at ordinal j)."""
    starts: Array | None = None
    """u64[count + 1], None when regular."""
    size: int = 0

    def find(self, ordinal: int) -> int:
        """The update that a frame resolves to, -1 where the block is absent."""
        if self.ordinals is None:
            return min(ordinal, self.count - 1)
        return int(np.searchsorted(self.ordinals, np.uint64(ordinal), side="right")) - 1

    def rows(self, update: int) -> tuple[int, int]:
        """First row and end row of an update."""
        if self.starts is None:
            return update * self.size, (update + 1) * self.size
        return int(self.starts[update]), int(self.starts[update + 1])

    def ordinal(self, update: int) -> int:
        """The frame at which an update came."""
        return update if self.ordinals is None else int(self.ordinals[update])

    @property
    def total(self) -> int:
        """Committed rows."""
        return self.rows(self.count - 1)[1] if self.count else 0

    def largest(self) -> int:
        """The most rows that an update has."""
        if self.starts is None:
            return self.size if self.count else 0
        return int(np.diff(self.starts).max()) if self.count else 0

    def first_with_rows(self) -> int | None:
        """The first update that has rows, None where none has."""
        if self.starts is None:
            return 0 if self.count else None
        found = np.flatnonzero(self.starts[1 : self.count + 1] > self.starts[: self.count])
        return int(found[0]) if len(found) else None

    def cut(self, first: int, stop: int, end: int) -> tuple[Array, Array]:
        """Of some updates, the frames at which they and the one after them came, and where their rows start and end."""
        if self.ordinals is None or self.starts is None:
            index = np.array(range(first, stop + 1), dtype="<u8")
            ordinals = index.copy()
        else:
            index, ordinals = np.arange(0), self.ordinals[first : stop + 1]
        if stop == self.count:
            ordinals = np.append(ordinals[: stop - first], np.uint64(min(end, 2**64 - 1)))
        starts = index * np.uint64(self.size) if self.starts is None else self.starts[first : stop + 1]
        return ordinals, starts

    def within(self, first: int, row: int) -> int:
        """The end of the updates from ``first`` on whose rows end at or before a row; one at least."""
        if self.starts is None:
            return min(max(row // self.size, first + 1), self.count)
        found = int(np.searchsorted(self.starts, np.uint64(min(row, 2**64 - 1)), side="right")) - 1
        return min(max(found, first + 1), self.count)

    def counts(self) -> tuple[Array, Array]:
        """Ordinals at which the row count may change (u64), and the counts from there on (u64)."""
        if not self.count:
            return np.zeros(0, dtype="<u8"), np.zeros(0, dtype="<u8")
        if self.ordinals is None or self.starts is None:
            return np.zeros(1, dtype="<u8"), np.array([self.size], dtype="<u8")
        return self.ordinals, np.diff(self.starts)


@dataclass(frozen=True)
class BlockView:
    """A declared block in the store."""

    name: str
    declared: BlockDeclaration
    updates: Updates
    columns: dict[str, ArrayNode]
    masks: dict[str, ArrayNode]
    faults: tuple[Violation, ...]


@dataclass(frozen=True)
class CellView:
    """The cell section: ordinals of its updates, and where their numbers are."""

    ordinals: Array
    defined: bool
    attributes: tuple[Array, Array, Array] | None
    """Vectors, origin and boundary of an attribute cell."""
    arrays: dict[str, ArrayNode]
    faults: tuple[Violation, ...]


def is_int(value: Any) -> bool:
    """Whether a JSON value is an integer: 4.0 and true are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def short(value: object, limit: int = 60) -> str:
    """A value for a message."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


class View:
    """A record's trajectory."""

    def __init__(self, store: Store, frames: tuple[int, int] | None = None) -> None:
        """``frames``: the frames whose rows the rules look at, half-open; None for all."""
        self.store = store
        self._frames = frames
        self._arrays: dict[str, ArrayNode] = {}
        self._blocks: dict[str, BlockView] = {}

    # -- what is looked at ---------------------------------------------------------------------------------------

    @property
    def looked_at(self) -> tuple[int, int]:
        """First and stop of the frames whose rows the rules look at."""
        return Work(frames=self._frames).within(self.nstep)

    def updates_looked_at(self, updates: Updates) -> tuple[int, int]:
        """First and stop of the updates that the frames looked at resolve to."""
        first, stop = self.looked_at
        if first >= stop or not updates.count:
            return 0, 0
        return max(updates.find(first), 0), updates.find(stop - 1) + 1

    def rows_looked_at(self, updates: Updates) -> tuple[int, int]:
        """First and end of the rows of these updates."""
        first, stop = self.updates_looked_at(updates)
        return (updates.rows(first)[0], updates.rows(stop - 1)[1]) if first < stop else (0, 0)

    # -- nodes ---------------------------------------------------------------------------------------------------

    def array(self, node: str) -> ArrayNode:
        """An array that is there. `Refused` where its metadata is no good."""
        if node not in self._arrays:
            self._arrays[node] = ArrayNode(self.store, node)
        return self._arrays[node]

    def has(self, node: str) -> bool:
        """Whether there is an array of that name."""
        return self.store.is_array(node)

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the group ``trajectory``."""
        found = self.store.group("trajectory")
        if found is None:
            raise refuse("MREC-LAYOUT-08", "trajectory", "there is no group trajectory in this record")
        return found

    @property
    def packed(self) -> PackedFiles | None:
        """The zip file of a packed record. A record in a folder of a larger zip file is not one."""
        files = self.store.files
        return files if isinstance(files, PackedFiles) and not files.inside else None

    # -- frames --------------------------------------------------------------------------------------------------

    @cached_property
    def nstep(self) -> int:
        """The number of committed frames."""
        if "nstep" in self.attributes:
            value = self.attributes["nstep"]
            if not is_int(value) or value < 0:
                raise refuse("MREC-COMMIT-04", "trajectory nstep", f"nstep is {short(value)}, not a JSON integer >= 0")
            if value >= 2**63:
                raise refuse(
                    "MREC-COMMIT-04", "trajectory nstep", f"nstep is {short(value)}, more than can be counted here"
                )
            return int(value)
        for name in ("step_progression", "time_progression"):
            if name in self.attributes:
                raise refuse("MREC-COMMIT-12", f"trajectory {name}", f"{name} stands there without nstep")
        if not self.has("trajectory/step"):
            return 0
        return int(self.series("step", "i64", "MREC-STEP-11").shape[0])

    def series(self, name: str, dtype: str, clause: str) -> ArrayNode:
        """The array ``step`` or ``time``."""
        array = self.array(f"trajectory/{name}")
        if array.dtype != dtype or len(array.shape) != 1:
            raise refuse(clause, array.path, f"it is {array.dtype}{list(array.shape)}, {name} is {dtype} of one axis")
        return array

    @cached_property
    def step_progression(self) -> tuple[int, int] | None:
        """Start and stride, None where the steps are an array."""
        if "step_progression" not in self.attributes:
            return None
        place, value = "trajectory step_progression", self.attributes["step_progression"]
        if not isinstance(value, dict) or not is_int(value.get("start")):
            raise refuse("MREC-STEP-05", place, f"it is {short(value)}; start must be a JSON integer")
        if "stride" in value and not is_int(value["stride"]):
            raise refuse("MREC-STEP-05", place, f"stride is {short(value['stride'])}, not a JSON integer")
        if "stride" not in value and self.nstep >= 2:
            raise refuse("MREC-STEP-06", place, f"it has no stride, and nstep is {self.nstep}")
        start, stride = int(value["start"]), int(value.get("stride", 0))
        ends = [start, start + (self.nstep - 1) * stride] if self.nstep else []
        for end in ends:
            if not -(2**63) <= end < 2**63:
                raise refuse("MREC-STEP-07", place, f"it gives a committed frame the step {end}, outside i64")
        return start, stride

    @cached_property
    def time_progression(self) -> tuple[np.float64, np.float64] | None:
        """Start and stride, None where the times are an array or there are none."""
        if "time_progression" not in self.attributes:
            return None
        place, value = "trajectory time_progression", self.attributes["time_progression"]
        start = as_float(value.get("start")) if isinstance(value, dict) else None
        if not isinstance(value, dict) or start is None:
            raise refuse("MREC-STEP-23", place, f"it is {short(value)}; start must be a number of binary64")
        stride = as_float(value["stride"]) if "stride" in value else 0.0
        if stride is None:
            raise refuse("MREC-STEP-23", place, f"stride is {short(value['stride'])}, not a number of binary64")
        if "stride" not in value and self.nstep >= 2:
            raise refuse("MREC-STEP-24", place, f"it has no stride, and nstep is {self.nstep}")
        return np.float64(start), np.float64(stride)

    @cached_property
    def step_array(self) -> ArrayNode | None:
        """The array of steps where it is what numbers the frames."""
        if self.step_progression is not None:
            return None
        if not self.has("trajectory/step"):
            if self.nstep:
                raise refuse(
                    "MREC-STEP-10",
                    "trajectory",
                    f"nothing numbers the {self.nstep} frames: no step_progression, no step",
                )
            return None
        return self._long_enough(self.series("step", "i64", "MREC-STEP-11"), self.nstep)

    @cached_property
    def time_array(self) -> ArrayNode | None:
        """The array of times where it is what times the frames."""
        if self.time_progression is not None or not self.has("trajectory/time"):
            return None
        return self._long_enough(self.series("time", "f64", "MREC-STEP-28"), self.nstep)

    def _long_enough(self, array: ArrayNode, rows: int, clause: str = "MREC-COMMIT-08") -> ArrayNode:
        if array.shape[0] < rows:
            raise refuse(clause, array.path, f"it has {array.shape[0]} rows, {rows} are committed")
        return array

    def steps(self, first: int, stop: int) -> list[int]:
        """Step numbers of a range of frames."""
        progression = self.step_progression
        if progression is not None:
            return [progression[0] + i * progression[1] for i in range(first, stop)]
        array = self.step_array
        return [] if array is None else [int(s) for s in array.rows(first, stop).tolist()]

    def times(self, first: int, stop: int) -> Array | None:
        """Times of a range of frames, f64, None where there are none: one rounded product, one rounded sum."""
        progression = self.time_progression
        if progression is None:
            array = self.time_array
            return None if array is None else array.rows(first, stop)
        start, stride = progression
        if self.nstep == 1:
            # A stride of one frame means nothing, and start + 0 * stride would lose the sign of a zero.
            return np.full(stop - first, start)
        index = np.array(range(first, stop), dtype="<f8")
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            product = index * stride
            return np.asarray(start + product)

    # -- declaration ---------------------------------------------------------------------------------------------

    @cached_property
    def _declared(self) -> tuple[Declaration, tuple[Violation, ...]]:
        if "sequence_schema" in self.attributes:
            declaration, faults = parse_declaration(self.attributes["sequence_schema"])
        else:
            declaration, faults = self._derived()
        for name, block in declaration.blocks.items():
            if block.aligned_with is not None and self.store.group(child("system", name)) is not None:
                message = f"the aligned block {name} shares its name with a system block"
                faults.append(Violation("MREC-ALIGN-10", f"trajectory/{name}", message))
        return declaration, tuple(faults)

    @property
    def declaration(self) -> Declaration:
        """The pinned declaration, or the one that the groups give; faults are in `declaration_faults`."""
        return self._declared[0]

    @property
    def declaration_faults(self) -> tuple[Violation, ...]:
        """Violations found in the declaration."""
        return self._declared[1]

    @property
    def pinned(self) -> bool:
        """Whether the store carries a declaration."""
        return "sequence_schema" in self.attributes

    def _derived(self) -> tuple[Declaration, list[Violation]]:
        blocks: dict[str, BlockDeclaration] = {}
        meta: dict[str, MetaDeclaration] = {}
        faults: list[Violation] = []
        for name in self.store.children("trajectory"):
            node = f"trajectory/{name}"
            attributes = self.store.group(node) if name not in RESERVED_BLOCKS else None
            if attributes is None:
                continue
            masked = set(self.store.children(f"{node}/_validity"))
            columns: dict[str, ColumnDeclaration] = {}
            for column in self.store.children(node):
                if column in RESERVED_COLUMNS or not self.has(f"{node}/{column}"):
                    continue
                try:
                    array = self.array(f"{node}/{column}")
                except Refused as refusal:
                    faults.append(refusal.violation)
                    continue
                columns[column] = ColumnDeclaration(array.dtype, array.trailing, column in masked)
            shape = attributes.get("structural_shape")
            kept = tuple(shape) if isinstance(shape, list) and all(is_int(n) and n > 0 for n in shape) else None
            blocks[name] = BlockDeclaration(columns, kept)
        for key in self.store.children("trajectory/meta"):
            node = f"trajectory/meta/{key}"
            if not self.has(node):
                continue
            tag = self.array(node).attributes.get("meta_dtype")
            if isinstance(tag, str) and tag in TAGS:
                meta[key] = MetaDeclaration(tag)
            else:
                clause = "MREC-META-03" if tag is None else "MREC-META-06"
                faults.append(Violation(clause, node, f"meta_dtype is {short(tag)}, not one of the sixteen tags"))
        from trajconform.mrec.declaration import encode_declaration

        derived = Declaration(blocks, meta)
        return derived, faults + [
            v for v in parse_declaration(encode_declaration(derived))[1] if v.clause.startswith("MREC-NAME")
        ]

    # -- blocks --------------------------------------------------------------------------------------------------

    def block(self, name: str) -> BlockView:
        """A declared block: its updates, arrays and faults."""
        if name not in self._blocks:
            self._blocks[name] = self._view_block(name, self.declaration.blocks[name])
        return self._blocks[name]

    def _view_block(self, name: str, declared: BlockDeclaration) -> BlockView:
        node = child("trajectory", name)
        faults: list[Violation] = []
        attributes = self.store.group(node)
        if attributes is None:
            return BlockView(name, declared, Updates(0), {}, {}, ())
        markers: list[str] = [m for m in ("uniform_rows", "dense_updates") if m in attributes]
        size = self._markers(node, attributes, markers, declared, faults) if markers else 0
        indexed = self.has(f"{node}/step_index") and self.has(f"{node}/offset")
        columns = self._columns(node, declared, faults)
        updates = Updates(0)
        try:
            if indexed:
                updates = self._indexed(node)
            elif size:
                updates = self._regular(node, size, declared, columns, faults)
            elif not markers and self.has(f"{node}/step_index"):
                prefix = self.prefix(f"{node}/step_index", "MREC-BLOCK-05", "MREC-BLOCK-02")
                if len(prefix):
                    raise refuse(
                        "MREC-BLOCK-25", node, f"step_index has {len(prefix)} committed updates and there is no offset"
                    )
        except Refused as refusal:
            faults.append(refusal.violation)
        regular = bool(size) and not indexed
        self._complete(node, declared, columns, updates, regular, faults)
        masks = self._masks(node, declared, updates.total, faults)
        return BlockView(name, declared, updates, columns, masks, tuple(faults))

    def _markers(
        self,
        node: str,
        attributes: dict[str, Any],
        markers: list[str],
        declared: BlockDeclaration,
        faults: list[Violation],
    ) -> int:
        """The rows of an update by the markers, 0 where they are malformed."""
        before = len(faults)
        if len(markers) == 1:
            missing = "dense_updates" if markers[0] == "uniform_rows" else "uniform_rows"
            faults.append(Violation("MREC-REGULAR-03", node, f"{markers[0]} stands there without {missing}"))
        size = attributes.get("uniform_rows", 1)
        if not is_int(size) or size <= 0:
            faults.append(Violation("MREC-REGULAR-04", node, f"uniform_rows is {short(size)}, not a JSON integer > 0"))
        if attributes.get("dense_updates", True) is not True:
            value = short(attributes["dense_updates"])
            faults.append(Violation("MREC-REGULAR-05", node, f"dense_updates is {value}, it must be true"))
        if not declared.columns:
            faults.append(Violation("MREC-REGULAR-06", node, "markers on a block without columns; it keeps its index"))
        return int(size) if len(faults) == before else 0

    def _columns(self, node: str, declared: BlockDeclaration, faults: list[Violation]) -> dict[str, ArrayNode]:
        found: dict[str, ArrayNode] = {}
        for column, entry in declared.columns.items():
            path = child(node, column)
            try:
                if not self.has(path):
                    continue
                array = self.array(path)
            except Refused as refusal:
                faults.append(refusal.violation)
                continue
            if not array.shape or array.dtype != entry.dtype or array.trailing != entry.trailing:
                stored = f"{array.dtype}{list(array.shape)}"
                message = f"it is stored as {stored}, declared {entry.dtype} with rows of {list(entry.trailing)}"
                faults.append(Violation("MREC-DECL-10", path, message))
                continue
            found[column] = array
        return found

    def prefix(self, node: str, ascending: str, form: str) -> Array:
        """The committed entries of a step_index: those before the first that is not below nstep."""
        array = self.array(node)
        if array.dtype != "u64" or len(array.shape) != 1:
            raise refuse(form, node, f"it is {array.dtype}{list(array.shape)}, an index is u64 of one axis")
        limit = np.uint64(min(self.nstep, 2**64 - 1))
        parts: list[Array] = []
        last: int | None = None
        for first in range(0, array.shape[0], WINDOW_ROWS):
            part = array.rows(first, min(first + WINDOW_ROWS, array.shape[0]))
            beyond = np.flatnonzero(part >= limit)
            ends = bool(len(beyond))
            part = part[: beyond[0]] if ends else part
            joined = part if last is None else np.concatenate([np.array([last], dtype="<u8"), part])
            wrong = np.flatnonzero(joined[1:] <= joined[:-1])
            if len(wrong):
                at = int(wrong[0])
                where = first + at + (1 if last is None else 0)
                raise refuse(
                    ascending, node, f"{joined[at + 1]} follows {joined[at]}: ordinals strictly ascend", index=where
                )
            parts.append(part)
            last = int(part[-1]) if len(part) else last
            if ends:
                break
        return np.concatenate(parts) if parts else np.zeros(0, dtype="<u8")

    def _indexed(self, node: str) -> Updates:
        ordinals = self.prefix(f"{node}/step_index", "MREC-BLOCK-05", "MREC-BLOCK-02")
        count = len(ordinals)
        if not count:
            return Updates(0)
        path = f"{node}/offset"
        array = self.array(path)
        if array.dtype != "u64" or len(array.shape) != 1:
            raise refuse("MREC-BLOCK-03", path, f"it is {array.dtype}{list(array.shape)}, offset is u64 of one axis")
        if array.shape[0] < count + 1:
            raise refuse("MREC-BLOCK-12", path, f"it has {array.shape[0]} entries, {count} updates take {count + 1}")
        starts = array.rows(0, count + 1)
        if starts[0] != 0:
            raise refuse("MREC-BLOCK-06", path, f"it starts with {starts[0]}, not with 0", index=0)
        wrong = np.flatnonzero(starts[1:] < starts[:-1])
        if len(wrong):
            at = int(wrong[0])
            raise refuse(
                "MREC-BLOCK-09", path, f"{starts[at + 1]} follows {starts[at]}: offsets never decrease", index=at + 1
            )
        return Updates(count, ordinals, starts)

    def _regular(
        self,
        node: str,
        size: int,
        declared: BlockDeclaration,
        columns: dict[str, ArrayNode],
        faults: list[Violation],
    ) -> Updates:
        if not self.nstep:
            return Updates(0, size=size)
        for column in declared.columns:
            if column not in columns and not self.has(child(node, column)):
                message = f"the block is regular and its column {column} has no array"
                faults.append(Violation("MREC-REGULAR-24", f"{node}/{column}", message))
        if len(columns) < len(declared.columns):
            return Updates(0, size=size)
        shortest = min(array.shape[0] for array in columns.values())
        return Updates(min(shortest // size, self.nstep), size=size)

    def _complete(
        self,
        node: str,
        declared: BlockDeclaration,
        columns: dict[str, ArrayNode],
        updates: Updates,
        regular: bool,
        faults: list[Violation],
    ) -> None:
        """Columns of an indexed block that are missing or too short."""
        if not updates.count or regular:
            return
        for column in declared.columns:
            path = child(node, column)
            if column in columns and columns[column].shape[0] < updates.total:
                rows = columns[column].shape[0]
                message = f"it has {rows} rows, the committed updates take {updates.total}"
                faults.append(Violation("MREC-BLOCK-14", path, message))
            elif column not in columns and not self.has(path):
                message = f"the block has {updates.count} updates and its column {column} has no array"
                faults.append(Violation("MREC-BLOCK-22", path, message))

    def _masks(self, node: str, declared: BlockDeclaration, rows: int, faults: list[Violation]) -> dict[str, ArrayNode]:
        found: dict[str, ArrayNode] = {}
        folder = f"{node}/_validity"
        if self.store.group(folder) is None:
            return found
        for column in self.store.children(folder):
            path = f"{folder}/{column}"
            entry = declared.columns.get(column)
            if entry is None and self.has(f"{node}/{column}"):
                continue  # the mask of an array that is not declared: unknown content, like the array
            if entry is None:
                faults.append(Violation("MREC-NULL-08", path, "it names no declared column of the block"))
                continue
            if not entry.nullable:
                continue
            try:
                array = self.array(path)
            except Refused as refusal:
                faults.append(refusal.violation)
                continue
            if array.dtype != "bool":
                faults.append(Violation("MREC-NULL-05", path, f"a mask is bool, this one is {array.dtype}"))
            elif len(array.shape) != 1:
                faults.append(
                    Violation("MREC-NULL-06", path, f"a mask has one flag a row, this one is {list(array.shape)}")
                )
            elif array.shape[0] < rows:
                message = f"it has {array.shape[0]} flags, the column has {rows} committed rows"
                faults.append(Violation("MREC-NULL-07", path, message))
            else:
                found[column] = array
        return found

    # -- metadata ------------------------------------------------------------------------------------------------

    def meta(self, key: str) -> ArrayNode | None:
        """The array of a declared key, None where there is none and no frame needs one."""
        declared, node = self.declaration.meta[key], child("trajectory/meta", key)
        if not self.has(node):
            if self.nstep:
                raise refuse("MREC-META-09", node, f"the declared key {key} has no array, and nstep is {self.nstep}")
            return None
        array = self.array(node)
        if "meta_dtype" not in array.attributes:
            raise refuse("MREC-META-03", node, "the attribute meta_dtype is missing")
        tag = array.attributes["meta_dtype"]
        if not isinstance(tag, str) or tag not in TAGS:
            raise refuse("MREC-META-06", node, f"meta_dtype is {short(tag)}, none of the sixteen tags")
        if tag != declared.dtype:
            raise refuse("MREC-META-07", node, f"meta_dtype is {tag}, declared {declared.dtype}")
        form = TAGS[tag]
        if not array.shape or array.dtype != form.stored or array.trailing != form.trailing:
            message = f"it is stored as {array.dtype}{list(array.shape)}, {tag} is {form.stored} with rows of {list(form.trailing)}"
            raise refuse("MREC-META-04", node, message)
        return self._long_enough(array, self.nstep)

    # -- cell ----------------------------------------------------------------------------------------------------

    @cached_property
    def cell(self) -> CellView | None:
        """The cell section, None where there is none."""
        attributes = self.store.group("trajectory/box")
        if attributes is None:
            return None
        faults: list[Violation] = []
        defined = attributes.get("cell_defined", True)
        if not isinstance(defined, bool):
            message = f"cell_defined is {short(defined)}, not a boolean"
            faults.append(Violation("MREC-CELL-12", "trajectory/box", message))
            defined = True
        none = np.zeros(0, dtype="<u8")
        if self.has("trajectory/box/vectors"):
            ordinals, arrays = self._cell_arrays(faults)
            return CellView(ordinals, defined, None, arrays, tuple(faults))
        if "vectors" not in attributes:
            return CellView(none, defined, None, {}, tuple(faults))
        fixed = self._cell_attributes(attributes, defined, faults)
        ordinals = np.zeros(1, dtype="<u8") if fixed is not None and self.nstep else none
        return CellView(ordinals, defined, fixed, {}, tuple(faults))

    def _cell_arrays(self, faults: list[Violation]) -> tuple[Array, dict[str, ArrayNode]]:
        node = "trajectory/box"
        ordinals = np.zeros(0, dtype="<u8")
        arrays: dict[str, ArrayNode] = {}
        try:
            if self.has(f"{node}/step_index"):
                ordinals = self.prefix(f"{node}/step_index", "MREC-CELL-03", "MREC-CELL-02")
            elif self.nstep:
                ordinals = np.zeros(1, dtype="<u8")
        except Refused as refusal:
            faults.append(refusal.violation)
        for name, dtype, trailing in (("vectors", "f64", (3, 3)), ("origin", "f64", (3,)), ("boundary", "bool", (3,))):
            path = f"{node}/{name}"
            try:
                if not self.has(path):
                    continue
                array = self.array(path)
                if array.dtype != dtype or not array.shape or array.trailing != trailing:
                    stored = f"{array.dtype}{list(array.shape)}"
                    raise refuse(
                        "MREC-CELL-01", path, f"it is {stored}, {name} is {dtype} with rows of {list(trailing)}"
                    )
                arrays[name] = self._long_enough(array, len(ordinals))
            except Refused as refusal:
                faults.append(refusal.violation)
        return ordinals, arrays

    def _cell_attributes(
        self, attributes: dict[str, Any], defined: bool, faults: list[Violation]
    ) -> tuple[Array, Array, Array] | None:
        before = len(faults)
        place = "trajectory/box"
        vectors = _numbers(attributes["vectors"], (3, 3))
        if vectors is None:
            message = f"vectors is {short(attributes['vectors'])}, not 3x3 finite numbers"
            faults.append(Violation("MREC-CELL-10", f"{place} vectors", message))
        origin = _numbers(attributes.get("origin", [0.0, 0.0, 0.0]), (3,))
        if origin is None:
            message = f"origin is {short(attributes['origin'])}, not three finite numbers"
            faults.append(Violation("MREC-CELL-10", f"{place} origin", message))
        flags = attributes.get("boundary", [defined] * 3)
        if not isinstance(flags, list) or len(flags) != 3 or not all(isinstance(f, bool) for f in flags):
            message = f"boundary is {short(flags)}, not three booleans"
            faults.append(Violation("MREC-CELL-10", f"{place} boundary", message))
        if len(faults) > before or vectors is None or origin is None:
            return None
        return vectors, origin, np.array(flags, dtype="?")

    def cell_rows(self, first: int, stop: int) -> tuple[Array, Array, Array]:
        """Vectors [n, 3, 3], origins [n, 3] and boundaries [n, 3] of some updates, defaults filled in; as stored."""
        view = self.cell
        assert view is not None
        if view.attributes is not None:
            vectors, origin, boundary = view.attributes
            return vectors[None], origin[None], boundary[None]
        vectors = np.asarray(view.arrays["vectors"].rows(first, stop))
        origins, boundaries = np.zeros((stop - first, 3)), np.full((stop - first, 3), view.defined)
        if "origin" in view.arrays:
            origins = view.arrays["origin"].rows(first, stop)
        if "boundary" in view.arrays:
            boundaries = view.arrays["boundary"].rows(first, stop)
        return vectors, origins, boundaries

    # -- sections beside the trajectory --------------------------------------------------------------------------

    def section_count(self, section: str, block: str) -> int | None:
        """The row count of a block of a frame-shaped section, None where there is no such block."""
        attributes = self.store.group(child(section, block))
        if attributes is None:
            return None
        count: Any = attributes.get("count")
        return int(count) if is_int(count) and count >= 0 else None

    def all_arrays(self, node: str) -> Iterator[str]:
        """Every array below a node. A node whose metadata is none is passed over: its own rule says so."""
        waiting = [node]
        while waiting:
            parent = waiting.pop()
            for name in self.store.children(parent):
                below = f"{parent}/{name}"
                with suppress(Refused):
                    if self.has(below):
                        yield below
                    elif not self.store.is_link(below):
                        waiting.append(below)  # a link may lead round in a circle


def _numbers(value: Any, shape: tuple[int, ...]) -> Array | None:
    """Nested lists of finite JSON numbers as f64, None where they are not of this shape."""
    if not isinstance(value, list) or len(value) != shape[0]:
        return None
    if len(shape) > 1:
        rows = [_numbers(row, shape[1:]) for row in value]
        return None if any(row is None for row in rows) else np.array(rows, dtype=NUMPY_DTYPES["f64"])
    numbers = [as_float(item) for item in value]
    return None if any(n is None for n in numbers) else np.array(numbers, dtype=NUMPY_DTYPES["f64"])
