"""The bundled mrec writer: append-first, sparse, exact, and safe against an interruption at any moment.

Every rule is checked before anything changes, so that a refused call leaves the writer and the store as they were.
What a frame adds waits in memory until it is landed; a flush lands, in this order, index arrays, columns and masks of
each block, the cell, steps, times and metadata, then replaces the metadata of the trajectory group, which carries
``nstep`` and the progressions: the commit.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from trajconform.model.arrays import NUMPY_DTYPES, RECORD_DTYPES, Array, dtype_name, same_bits
from trajconform.model.errors import Refused, Violation, refuse
from trajconform.model.reply import same_document
from trajconform.model.trajectory import Block, Cell, Column, Frame, MetaValue
from trajconform.mrec.declaration import (
    NO_FILL,
    TAGS,
    BlockDeclaration,
    ColumnDeclaration,
    Declaration,
    MetaDeclaration,
    coerce_meta,
    encode_declaration,
    fill_value,
    parse_declaration,
)
from trajconform.mrec.given import check_document, check_section, exact_time, is_masked, is_text, wrong_type
from trajconform.mrec.store import child, parse_json
from trajconform.mrec.zarr_write import Files, GrowingArray, Pipeline, RealFiles, replace_file, write_group

AUTOMATIC_FLUSH_BYTES = 32 * 1024 * 1024
RECORD_VERSION = 1
_I64 = (-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class WriterOptions:
    """Knobs of a writer. ``float_compressor``: None, ``gzip:LEVEL`` or ``zstd:LEVEL`` for columns of floats."""

    float_compressor: str | None = None
    flush_bytes: int = AUTOMATIC_FLUSH_BYTES
    sync: bool = True
    """False: no fsync at all; a power cut may then cost everything."""

    def __post_init__(self) -> None:
        name, _, level = ("gzip:1" if self.float_compressor is None else self.float_compressor).partition(":")
        most = {"gzip": 9, "zstd": 22}.get(name, -1)
        if not (level.isascii() and level.isdigit() and int(level) <= most):
            raise ValueError(
                f"float_compressor is None, 'gzip:0' to 'gzip:9' or 'zstd:0' to 'zstd:22', not {self.float_compressor!r}"
            )


def round_to_precision(values: Array, precision: float) -> Array:
    """f64 values on the grid of a declared precision: the quantum is the largest power of two not above it.

    NaN, infinities and values of at least 2**52 quanta stay as they are (clauses of the topic ``precision``).
    """
    quantum = math.ldexp(1.0, math.frexp(precision)[1] - 1)
    if values.size and np.abs(values).max() < 2.0**52 * quantum:
        # All of them near, the common case (a NaN says no): nothing can overflow or be invalid.
        out = values / quantum
        np.rint(out, out)
        out *= quantum
        return out
    out = values.copy()
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        near = np.isfinite(values) & (np.abs(values) < 2.0**52 * quantum)
        out[near] = np.rint(values[near] / quantum) * quantum
    return out


@dataclass
class _Progression:
    """Steps or times that may still be spelled as start and stride."""

    start: Any = None
    stride: Any = None
    holds: bool = True

    def attribute(self, count: int) -> dict[str, Any] | None:
        """The attribute's value, or None where there is none."""
        if not self.holds or count == 0:
            return None
        return {"start": self.start} if count == 1 else {"start": self.start, "stride": self.stride}


def _step_fits(progression: _Progression, index: int, step: int) -> bool:
    if index == 0:
        progression.start = step
    elif index == 1:
        progression.stride = step - progression.start
    return bool(progression.start + index * progression.stride == step) if index else True


def _time_at(start: float, stride: float, index: int) -> float:
    """``start + f64(index) * stride``: one rounded product, one rounded sum.

    Python's floats are binary64 and its compiler fuses nothing; numpy's scalars would take six times as long.
    """
    return start + float(index) * stride


def _time_fits(progression: _Progression, index: int, time: float) -> bool:
    if not math.isfinite(time):
        return False
    if index == 0:
        progression.start = time
        return True
    if index == 1:
        progression.stride = time - progression.start
        if not math.isfinite(progression.stride):
            return False
        if not _same_number(_time_at(progression.start, progression.stride, 0), progression.start):
            return False
    return _same_number(_time_at(progression.start, progression.stride, index), time)


def _same_number(a: float, b: float) -> bool:
    """Whether two numbers, the second finite, have the same bits."""
    return a == b and (b != 0.0 or math.copysign(1.0, a) == math.copysign(1.0, b))


@dataclass
class _BlockState:
    """What a writer knows of one declared block."""

    name: str
    declared: BlockDeclaration
    columns: dict[str, GrowingArray]
    masks: dict[str, GrowingArray]
    step_index: GrowingArray
    offset: GrowingArray
    updates: int = 0
    rows: int = 0
    """Rows of all updates: the value of the last offset."""
    uniform: int | None = None
    indexed: bool = False
    """Whether the block keeps its index; a regular block keeps markers instead."""
    last: Block | None = None
    """The previous update as it is stored: rounded, masks complete."""
    shown_markers: int | None = None
    """``uniform_rows`` as the group's metadata on disk has it."""
    group_written: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
    """Attributes of the group that this kit does not know, kept on reopening."""


class MrecWriter:
    """Writes one trajectory; make one with `create` or `reopen`. A context manager: leaving it closes."""

    def __init__(
        self,
        path: Path,
        declaration: Declaration,
        options: WriterOptions,
        files: Files,
        schema: Mapping[str, Any] | None,
    ) -> None:
        self.path = path
        self.declaration = declaration
        self.options = options
        self._files = files
        self._schema = schema
        """The pinned document; None for a store of another writer that pins none."""
        self._root = path / "trajectory"
        self._system: dict[str, Block] = {}
        self._sections: dict[str, dict[str, int]] = {}
        self._extra: dict[str, Any] = {}
        self._nstep = 0
        self._committed = 0
        self._last_step: int | None = None
        self._timed: bool | None = None
        self._steps, self._times = _Progression(), _Progression()
        self._step_array = self._array("step", "i64")
        self._time_array = self._array("time", "f64")
        self._meta = {
            key: self._array(
                f"meta/{key}",
                TAGS[entry.dtype].stored,
                TAGS[entry.dtype].trailing,
                attributes={"meta_dtype": entry.dtype},
            )
            for key, entry in declaration.meta.items()
        }
        self._blocks = {name: self._new_block(name, entry) for name, entry in declaration.blocks.items()}
        self._counted: list[GrowingArray] = []
        self._cell = _CellState(self)
        self._closed = self._failed = False
        self._attributes_on_disk: dict[str, Any] = {}

    # -- opening -------------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: Path | str,
        declaration: Mapping[str, Any],
        *,
        system: Mapping[str, Block] | None = None,
        meta: Mapping[str, Any] | None = None,
        options: WriterOptions | None = None,
        files: Files | None = None,
    ) -> MrecWriter:
        """Create a record with an empty trajectory and its declaration pinned.

        ``declaration`` is a ``sequence_schema`` document; ``system`` the blocks of the static side; ``meta`` the
        record's identity document. `Refused` names the clause that a declaration breaks; nothing is written then.
        """
        folder, files, options = Path(path), files or RealFiles(), options or WriterOptions()
        parsed, violations = parse_declaration(declaration)
        for violation in violations:
            if violation.level != "SHOULD" and violation.clause != "MREC-DECL-12":  # nullable: false says nothing
                raise Refused(replace(violation, clause=_declaration_clause(violation)))
        for name in (*parsed.blocks, *parsed.meta, *(c for b in parsed.blocks.values() for c in b.columns)):
            _check_name(name, "trajectory sequence_schema")
        check_section("system", system or {})
        for name, block in (system or {}).items():
            for part in (name, *block.columns):
                _check_name(part, f"system/{name}")
        check_document(meta or {}, RECORD_VERSION)
        if folder.exists() and any(folder.iterdir()):
            raise FileExistsError(f"{folder} is there and not empty; reopen it or choose another name")
        system = dict(system or {})
        for name, entry in parsed.blocks.items():
            if entry.aligned_with is not None and name in system:
                raise refuse(
                    "MREC-ALIGN-18",
                    f"trajectory/{name}",
                    f"the aligned block {name} shares its name with a system block",
                )
        writer = cls(folder, parsed, options, files, encode_declaration(parsed))
        writer._lay_out(system, dict(meta or {}))
        return writer

    @classmethod
    def reopen(
        cls,
        path: Path | str,
        declaration: Mapping[str, Any] | None = None,
        *,
        options: WriterOptions | None = None,
        files: Files | None = None,
    ) -> MrecWriter:
        """Go on with a record: what is not committed is dropped, everything else is kept, known or not.

        ``declaration``, where given, has to be the pinned one. `Refused` names the clause that the store breaks, or
        MREC-DECL-25 for another declaration; nothing is changed then.
        """
        from trajconform.mrec.resume import resume

        return resume(Path(path), declaration, options or WriterOptions(), files or RealFiles())

    def _lay_out(self, system: Mapping[str, Block], meta: dict[str, Any]) -> None:
        sync = self.options.sync
        write_group(self._files, self.path, {}, sync)
        write_group(self._files, self.path / "meta", {"molrec_version": RECORD_VERSION} | meta, sync)
        if system:
            self._write_section("system", system, sync)
            self._system = dict(system)
            self._sections["system"] = {name: block.rows for name, block in system.items()}
        write_group(self._files, self._root, {"sequence_schema": self._schema, "nstep": 0}, sync)
        self._attributes_on_disk = {"sequence_schema": self._schema, "nstep": 0}
        if self._meta:
            write_group(self._files, self._root / "meta", {}, sync)
        for array in self._meta.values():
            array.land(sync)
        for state in self._blocks.values():
            self._write_block_group(state, sync)
            for column in (*state.columns.values(), *state.masks.values()):
                column.land(sync)
        if sync:
            self._files.sync(self._root)

    def _write_section(self, section: str, blocks: Mapping[str, Block], sync: bool) -> None:
        """A frame-shaped section: a group a block with its row count, an array a column, masks beside them."""
        write_group(self._files, self.path / section, {}, sync)
        for name, block in blocks.items():
            folder = self.path / section / name
            write_group(self._files, folder, {"count": operator.index(block.rows)}, sync)
            masks = {c: column.mask for c, column in block.columns.items() if column.mask is not None}
            if masks:
                write_group(self._files, folder / "_validity", {}, sync)
            for c, column in block.columns.items():
                parts = [(folder / c, column.values)]
                if c in masks:
                    parts.append((folder / "_validity" / c, np.asarray(masks[c])))
                for place, values in parts:
                    name_of = dtype_name(values)
                    array = GrowingArray(
                        self._files,
                        place,
                        name_of,
                        values.shape[1:],
                        self._pipeline(name_of, None),
                        frame_rows=len(values),
                    )
                    array.append(values)
                    array.land(sync)

    def _pipeline(self, dtype: str, precision: float | None) -> Pipeline:
        if precision is not None:
            return Pipeline(self.options.float_compressor or "zstd:3", shuffle=True)
        if dtype in ("f64", "c64", "c128"):
            return Pipeline(self.options.float_compressor)
        return Pipeline("gzip:1")

    def _array(
        self,
        node: str,
        dtype: str,
        trailing: tuple[int, ...] = (),
        *,
        precision: float | None = None,
        dense: bool = True,
        attributes: Mapping[str, Any] | None = None,
    ) -> GrowingArray:
        pipeline = Pipeline("gzip:1") if dense else self._pipeline(dtype, precision)
        return GrowingArray(self._files, self._root / node, dtype, trailing, pipeline, attributes or {})

    def _new_block(self, name: str, declared: BlockDeclaration) -> _BlockState:
        columns = {
            c: self._array(f"{name}/{c}", entry.dtype, entry.trailing, precision=entry.precision, dense=False)
            for c, entry in declared.columns.items()
        }
        masks = {
            c: self._array(f"{name}/_validity/{c}", "bool", dense=False)
            for c, e in declared.columns.items()
            if e.nullable
        }
        return _BlockState(
            name,
            declared,
            columns,
            masks,
            self._array(f"{name}/step_index", "u64"),
            self._array(f"{name}/offset", "u64"),
        )

    # -- appending -----------------------------------------------------------------------------------------------

    @property
    def committed(self) -> int:
        """Frames on disk."""
        return self._committed

    def __len__(self) -> int:
        return self._nstep

    def append(self, frame: Frame) -> None:
        """Take one frame. `Refused` names the clause it breaks; writer and store are then as before the call.

        So they are after a TypeError, where something is of the wrong type, and after a ValueError for a time that
        binary64 does not hold.
        """
        self._check_usable()
        try:
            if type(frame.step) is not int or not isinstance(frame.time, (np.float64, type(None))):
                if isinstance(frame.step, bool):
                    raise TypeError
                time = None if frame.time is None else exact_time(frame.time)
                frame = replace(frame, step=operator.index(frame.step), time=time)
            self._check_number(frame)
            meta = self._check_meta(frame)
            blocks = {name: self._check_block(name, block) for name, block in frame.blocks.items()}
            self._check_together(blocks)
            cell = self._cell.check(frame.cell)
        except (AttributeError, TypeError) as error:
            if why := wrong_type(frame):
                raise TypeError(why) from error
            raise
        # Nothing above has changed anything; nothing below can refuse.
        self._take_number(frame)
        for key, values in meta.items():
            self._meta[key].append(values)
        for name, block in blocks.items():
            self._take_block(self._blocks[name], block)
        if cell is not None:
            self._cell.take(cell, self._nstep)
        self._nstep += 1
        if self._pending_bytes() >= self.options.flush_bytes:
            self._commit(durable=False)

    def _check_usable(self) -> None:
        if self._failed:
            raise ValueError("a commit failed; reopen the store to go on from its last committed frame")
        if self._closed:
            raise ValueError("the writer is closed; reopen the store to append")

    def _pending_bytes(self) -> int:
        if not self._counted:
            self._counted = [self._step_array, self._time_array, *self._meta.values()]
            for state in self._blocks.values():
                self._counted += [*state.columns.values(), *state.masks.values(), state.step_index, state.offset]
        total = 0
        for array in self._counted:  # a plain loop: this runs at every frame
            if array.waiting:
                total += array.waiting * array.row_bytes
        return total

    def _check_number(self, frame: Frame) -> None:
        place = "trajectory/step"
        if not _I64[0] <= frame.step <= _I64[1]:
            raise refuse(
                "MREC-STEP-37", place, f"step {frame.step} is outside the 64-bit signed integers", index=self._nstep
            )
        if self._last_step is not None and frame.step <= self._last_step:
            raise refuse(
                "MREC-STEP-02",
                place,
                f"step {frame.step} follows {self._last_step}: steps strictly increase",
                index=self._nstep,
            )
        if self._timed is not None and self._timed != (frame.time is not None):
            word = (
                "has no time, the frames before it have one"
                if self._timed
                else "has a time, the frames before it have none"
            )
            raise refuse(
                "MREC-STEP-34" if self._timed else "MREC-STEP-33",
                "trajectory/time",
                f"the frame {word}: times are all or nothing",
                index=self._nstep,
            )

    def _take_number(self, frame: Frame) -> None:
        i = self._nstep
        if self._steps.holds and not _step_fits(self._steps, i, frame.step):
            self._steps.holds = False
            history = [self._steps.start + j * (self._steps.stride or 0) for j in range(i)]
            if i == 1:
                history = [self._steps.start]
            self._step_array.append(np.array(history, dtype="<i8"))
        if not self._steps.holds:
            self._step_array.append_number(frame.step)
        self._last_step = frame.step
        self._timed = frame.time is not None
        if frame.time is None:
            return
        before = (self._times.start, self._times.stride)
        if self._times.holds and not _time_fits(self._times, i, float(frame.time)):
            self._times.holds = False
            past = [before[0]] if i == 1 else [_time_at(*before, j) for j in range(i)]
            self._time_array.append(np.array(past, dtype="<f8"))
        if not self._times.holds:
            self._time_array.append_number(float(frame.time))

    def _check_meta(self, frame: Frame) -> dict[str, Array]:
        for key in frame.meta:
            if key not in self.declaration.meta:
                raise refuse(
                    "MREC-DECL-19",
                    f"trajectory/meta/{key}",
                    f"the metadata key {key} is not declared",
                    index=self._nstep,
                )
        out: dict[str, Array] = {}
        for key, entry in self.declaration.meta.items():
            place = f"trajectory/meta/{key}"
            given = frame.meta.get(key)
            if given is None:
                if entry.fill is NO_FILL:
                    raise refuse("MREC-META-18", place, f"the frame omits {key}, which has no fill", index=self._nstep)
                value = fill_value(entry)
            else:
                try:
                    value = coerce_meta(entry.dtype, given)
                    _check_text(given, value)
                except ValueError as error:
                    raise refuse(
                        _meta_clause(entry.dtype, given), place, f"{key}: {error}", index=self._nstep
                    ) from None
            out[key] = value.reshape((1, *TAGS[entry.dtype].trailing))
        return out

    def _check_block(self, name: str, block: Block) -> Block:
        """A presented block as it would be stored: rounded, masks complete where nullable."""
        node = f"trajectory/{name}"
        declared = self.declaration.blocks.get(name)
        if declared is None:
            raise refuse("MREC-DECL-17", node, f"the block {name} is not declared", index=self._nstep)
        if block.columns.keys() != declared.columns.keys():
            for c in block.columns:
                if c not in declared.columns:
                    message = f"the column {c} of {name} is not declared"
                    raise refuse("MREC-DECL-18", f"{node}/{c}", message, index=self._nstep)
            missing = ", ".join(c for c in declared.columns if c not in block.columns)
            message = f"the frame presents {name} without its columns {missing}"
            raise refuse("MREC-RAGGED-02", node, message, index=self._nstep)
        columns = {c: self._check_column(node, c, entry, block) for c, entry in declared.columns.items()}
        if declared.structural_shape is not None and block.rows != math.prod(declared.structural_shape):
            shape = list(declared.structural_shape)
            raise refuse(
                "MREC-BLOCK-18",
                node,
                f"{block.rows} rows, the structural shape {shape} asks for {math.prod(shape)}",
                index=self._nstep,
            )
        return Block(operator.index(block.rows), columns, declared.structural_shape)

    def _check_column(self, node: str, name: str, entry: ColumnDeclaration, block: Block) -> Column:
        place, given = f"{node}/{name}", block.columns[name]
        values = given.values
        if is_masked(values):
            raise TypeError
        try:
            stored = dtype_name(values)
        except ValueError as error:
            raise refuse("MREC-DECL-21", place, str(error), index=self._nstep) from None
        if stored != entry.dtype:
            raise refuse("MREC-DECL-21", place, f"declared {entry.dtype}, given {stored}", index=self._nstep)
        if values.ndim == 0:
            raise refuse("MREC-DECL-27", place, "a single value, without an axis of rows", index=self._nstep)
        if tuple(values.shape[1:]) != entry.trailing:
            message = f"a row has the shape {list(entry.trailing)}, given {list(values.shape)} for all rows"
            raise refuse("MREC-DECL-27", place, message, index=self._nstep)
        if stored == "string" and not all(is_text(s) for s in values.ravel().tolist()):
            raise refuse("MREC-DECL-21", place, "a value is not text that UTF-8 can spell", index=self._nstep)
        if len(values) != block.rows:
            raise refuse("MREC-RAGGED-03", place, f"{len(values)} rows in a block of {block.rows}", index=self._nstep)
        mask = given.mask
        if mask is not None:
            if mask.dtype != np.bool_ or mask.shape != (block.rows,):
                raise refuse(
                    "MREC-NULL-18",
                    place,
                    f"a mask is bool[{block.rows}], given {mask.dtype}{list(mask.shape)}",
                    index=self._nstep,
                )
            if not entry.nullable:
                if not mask.all():
                    raise refuse(
                        "MREC-NULL-12",
                        place,
                        f"the column {name} is not nullable and comes with a mask",
                        index=self._nstep,
                    )
                mask = None
        if entry.nullable:
            mask = np.ones(block.rows, dtype=bool) if mask is None else mask.copy()
        if entry.precision is not None:
            return Column(round_to_precision(values, entry.precision).astype(NUMPY_DTYPES["f64"], copy=False), mask)
        return Column(np.array(values, dtype=NUMPY_DTYPES[entry.dtype]), mask)

    # -- what blocks owe each other ------------------------------------------------------------------------------

    def _resolved(self, name: str, blocks: Mapping[str, Block]) -> Block | None:
        """A block at the frame in hand: as presented, else carried forward."""
        if name in blocks:
            return blocks[name]
        state = self._blocks.get(name)
        return state.last if state else None

    def _check_together(self, blocks: Mapping[str, Block]) -> None:
        for name, entry in self.declaration.blocks.items():
            here = self._resolved(name, blocks)
            if here is None:
                continue
            if entry.aligned_with is not None:
                self._check_aligned(name, entry.aligned_with, here, blocks)
            if name in blocks and name in self._system:
                self._check_system(name, here)
            references = entry.references()
            if references and here.rows and (name in blocks or any(t in blocks for t in references.values())):
                self._check_references(name, entry, here, blocks)

    def _check_aligned(self, name: str, target: str, here: Block, blocks: Mapping[str, Block]) -> None:
        node = f"trajectory/{name}"
        against = self._resolved(target, blocks)
        if against is None:
            raise refuse(
                "MREC-ALIGN-15",
                node,
                f"{name} is there while {target}, which it is aligned with, is absent",
                index=self._nstep,
            )
        if against.rows != here.rows:
            carried = "" if name in blocks else " (carried forward; restate it)"
            raise refuse(
                "MREC-ALIGN-14",
                node,
                f"{name} has {here.rows} rows{carried}, {target} has {against.rows}",
                index=self._nstep,
            )

    def _check_system(self, name: str, here: Block) -> None:
        node, system = f"trajectory/{name}", self._system[name]
        if here.rows != system.rows:
            raise refuse(
                "MREC-SYSTEM-06",
                node,
                f"{here.rows} rows, system/{name} has {system.rows}: rows align one to one",
                index=self._nstep,
            )
        if "id" in here.columns and "id" in system.columns:
            mine, theirs = here.columns["id"], system.columns["id"]
            if not same_bits(mine.values, theirs.values):
                raise refuse(
                    "MREC-SYSTEM-07", f"{node}/id", f"ids differ from those of system/{name}", index=self._nstep
                )

    def _check_references(self, name: str, entry: BlockDeclaration, here: Block, blocks: Mapping[str, Block]) -> None:
        for column, target in entry.references().items():
            place = f"trajectory/{name}/{column}"
            if target.startswith("/"):
                section, _, block_name = target[1:].partition("/")
                if section not in self._sections:
                    continue
                count = self._sections[section].get(block_name)
                if count is None:
                    message = f"rows refer to {target}, and the section {section} has no such block"
                    raise refuse("MREC-REF-07", place, message, index=self._nstep)
            else:
                against = self._resolved(target, blocks)
                if against is None:
                    raise refuse(
                        "MREC-REF-09",
                        place,
                        f"rows refer to {target}, which this frame does not have",
                        index=self._nstep,
                    )
                count = against.rows
            values, mask = here.columns[column].values, here.columns[column].mask
            valid = values if mask is None else values[mask]
            if valid.size and int(valid.max()) >= count:
                raise refuse(
                    "MREC-REF-09",
                    place,
                    f"refers to row {int(valid.max())} of {target}, which has {count}",
                    index=self._nstep,
                )

    # -- taking updates ------------------------------------------------------------------------------------------

    def _take_block(self, state: _BlockState, block: Block) -> None:
        if state.last is not None and same_update(state.last, block):
            return
        ordinal = self._nstep
        fits = block.rows > 0 and ordinal == state.updates and state.uniform in (None, block.rows)
        regular = fits and not state.indexed and bool(state.columns)
        if not state.indexed and not regular:
            self._migrate(state)
        for c, column in block.columns.items():
            array = state.columns[c]
            if not state.updates and not array.inner_rows:
                array.frame_rows = max(1, block.rows)
            array.append(column.values)
            if c in state.masks:
                assert column.mask is not None
                state.masks[c].frame_rows = array.frame_rows
                state.masks[c].append(column.mask)
        state.rows += block.rows
        if state.indexed:
            state.step_index.append_number(ordinal)
            state.offset.append_number(state.rows)
        elif state.uniform is None:
            state.uniform = block.rows
        state.updates += 1
        state.last = block

    def _migrate(self, state: _BlockState) -> None:
        """From markers to index arrays, backfilled with the regular history."""
        state.indexed = True
        size = state.uniform or 0
        state.step_index.append(np.arange(state.updates, dtype="<u8"))
        state.offset.append(np.arange(state.updates + 1, dtype="<u8") * np.uint64(size))

    # -- committing ----------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Commit every frame taken so far, durably: when it returns they survive a power cut."""
        self._check_usable()
        self._commit(durable=True)

    def close(self) -> None:
        """Commit durably and let go of the store. A second call, or one after a commit that failed, does nothing."""
        if not self._closed and not self._failed:
            self._commit(durable=True)
        self._closed = True

    def __enter__(self) -> MrecWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _commit(self, *, durable: bool) -> None:
        # What a failed sync left behind is not known, so nothing may be built on it: only reopening finds out.
        self._failed = True
        self._land(durable)
        self._failed = False
        self._committed = self._nstep

    def _land(self, durable: bool) -> None:
        sync = self.options.sync
        for state in self._blocks.values():
            self._land_block(state, sync)
        self._cell.land(sync)
        for array in (self._step_array, self._time_array):
            if array.waiting or array.exists:
                array.land(sync)
        for array in self._meta.values():
            array.land(sync)
        pinned = {} if self._schema is None else {"sequence_schema": self._schema}
        attributes: dict[str, Any] = {**self._extra, **pinned, "nstep": self._nstep}
        for name, progression in (("step_progression", self._steps), ("time_progression", self._times)):
            if name == "time_progression" and not self._timed:
                continue
            value = progression.attribute(self._nstep)
            if value is not None:
                attributes[name] = {k: v if isinstance(v, int) else float(v) for k, v in value.items()}
        if attributes != self._attributes_on_disk or durable:
            document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
            if sync:
                # The arrays' folders were synced as they landed; this makes new sections reachable before the commit.
                self._files.sync(self._root)
            text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
            replace_file(self._files, self._root / "zarr.json", [text.encode()], sync)
            if sync and durable:
                self._files.sync(self._root)
            self._attributes_on_disk = attributes

    def _land_block(self, state: _BlockState, sync: bool) -> None:
        if state.indexed:
            # Index arrays before rows: a reader that finds markers beside a complete index uses the index, and rows
            # that landed without it would be counted by the markers.
            state.step_index.land(sync)
            state.offset.land(sync)
        for array in (*state.columns.values(), *state.masks.values()):
            array.land(sync)
        markers = None if state.indexed else state.uniform
        if markers != state.shown_markers:
            self._write_block_group(state, sync)
        elif sync and (state.indexed or state.updates):
            self._files.sync(self._root / state.name)

    def _block_attributes(self, state: _BlockState) -> dict[str, Any]:
        attributes = dict(state.extra)
        if state.declared.structural_shape is not None:
            attributes["structural_shape"] = list(state.declared.structural_shape)
        if not state.indexed and state.uniform is not None:
            attributes |= {"uniform_rows": state.uniform, "dense_updates": True}
        return attributes

    def _write_block_group(self, state: _BlockState, sync: bool) -> None:
        write_group(self._files, self._root / state.name, self._block_attributes(state), sync)
        if state.masks and not state.group_written:
            write_group(self._files, self._root / state.name / "_validity", {}, sync)
        state.group_written = True
        state.shown_markers = None if state.indexed else state.uniform


class _CellState:
    """The cell section: attributes while it is fixed from ordinal 0, arrays from the first change on."""

    def __init__(self, writer: MrecWriter) -> None:
        self.writer = writer
        self.updates: list[tuple[int, Cell]] = []
        self.fixed: Cell | None = None
        self.migrated = False
        self.defined: bool | None = None
        self.last: Cell | None = None
        self.count = 0
        self.shown: dict[str, Any] | None = None
        self.extra: dict[str, Any] = {}
        self.arrays: dict[str, GrowingArray] = {
            "step_index": writer._array("box/step_index", "u64"),
            "vectors": writer._array("box/vectors", "f64", (3, 3)),
            "origin": writer._array("box/origin", "f64", (3,)),
            "boundary": writer._array("box/boundary", "bool", (3,)),
        }
        self.history: list[tuple[Array, Array]] = []
        """Origins and boundaries of the updates so far, while one of the two is still left out as default."""

    def check(self, cell: Cell | None) -> Cell | None:
        """The cell as it would be stored; None where the frame adds no update."""
        if cell is None:
            return None
        place, index = "trajectory/box", self.writer._nstep
        for name, values, shape, dtype in (
            ("vectors", cell.vectors, (3, 3), "f64"),
            ("origin", cell.origin, (3,), "f64"),
            ("boundary", cell.boundary, (3,), "bool"),
        ):
            if values.shape != shape or dtype_name(values) != dtype:
                message = f"{name} of a cell is {dtype}{list(shape)}, given {values.dtype}{list(values.shape)}"
                raise refuse("MREC-CELL-01", place, message, index=index)
        if self.defined is not None and self.defined != cell.defined:
            raise refuse("MREC-CELL-26", place, "whether the cell is defined may not change within a run", index=index)
        if type(cell.defined) is not bool and not isinstance(cell.defined, np.bool_):
            raise TypeError
        if not cell.defined:
            cell = Cell(np.eye(3), cell.origin, np.zeros(3, dtype=bool), False)
        if self.last is not None and _same_cell(self.last, cell):
            return None
        return Cell(cell.vectors.copy(), cell.origin.copy(), cell.boundary.copy(), cell.defined)

    def take(self, cell: Cell, ordinal: int) -> None:
        """Record an update at a frame ordinal."""
        self.defined = cell.defined
        finite = bool(np.isfinite(cell.vectors).all() and np.isfinite(cell.origin).all())
        if self.count == 0 and ordinal == 0 and finite:
            self.fixed = cell
        else:
            if not self.migrated:
                self.migrated = True
                if self.fixed is not None:
                    self._push(0, self.fixed)
            self._push(ordinal, cell)
        self.count += 1
        self.last = cell

    def _push(self, ordinal: int, cell: Cell) -> None:
        self.arrays["step_index"].append(np.array([ordinal], dtype="<u8"))
        self.arrays["vectors"].append(cell.vectors[None].astype("<f8"))
        for name, value, default in self._optional(cell):
            array = self.arrays[name]
            if array.rows or not same_bits(value, default):
                missing = self.arrays["step_index"].rows - 1 - array.rows
                if missing:
                    array.append(np.repeat(default[None], missing, axis=0))
                array.append(value[None].copy())

    def _optional(self, cell: Cell) -> Iterable[tuple[str, Array, Array]]:
        # The default of the boundary of an undefined cell is all-false, and it is written all the same.
        boundary_default = np.ones(3, dtype=bool)
        return (("origin", cell.origin, np.zeros(3)), ("boundary", cell.boundary, boundary_default))

    def attributes(self) -> dict[str, Any] | None:
        """Attributes of ``box/``; None while there is no such group."""
        if self.count == 0 and not self.extra:
            return None
        out = dict(self.extra)
        if self.defined is False:
            out["cell_defined"] = False
        if self.fixed is not None and not self.migrated:
            out["vectors"] = self.fixed.vectors.tolist()
            for name, value, default in self._optional(self.fixed):
                if not same_bits(value, default):
                    out[name] = value.tolist()
        return out

    def land(self, sync: bool) -> None:
        """Write what changed: ``vectors`` last of the arrays, then the group without the attribute cell."""
        attributes = self.attributes()
        if attributes is None:
            return
        folder, files = self.writer._root / "box", self.writer._files
        if self.shown is None:
            first = dict(attributes)
            write_group(files, folder, first, sync)
            self.shown = first
        if self.migrated:
            for name in ("step_index", "origin", "boundary", "vectors"):
                array = self.arrays[name]
                if array.waiting or array.exists:
                    array.land(sync)
        if attributes != self.shown:
            write_group(files, folder, attributes, sync)
            self.shown = attributes
        if sync:
            files.sync(folder)


def derive_declaration(frames: Iterable[Frame]) -> dict[str, Any]:
    """The ``sequence_schema`` of representative frames: every block, column and key of any of them.

    A column that comes with a mask is nullable. `Refused` (MREC-DECL-23) where two frames disagree.
    """
    blocks: dict[str, dict[str, ColumnDeclaration]] = {}
    shapes: dict[str, tuple[int, ...] | None] = {}
    meta: dict[str, MetaDeclaration] = {}
    for index, frame in enumerate(frames):
        for name, block in frame.blocks.items():
            columns = blocks.setdefault(name, {})
            if shapes.setdefault(name, block.shape) != block.shape:
                message = f"structural shapes {shapes[name]} and {block.shape}"
                raise refuse("MREC-DECL-23", f"trajectory/{name}", message, index=index)
            for c, column in block.columns.items():
                place = f"trajectory/{name}/{c}"
                try:
                    dtype = dtype_name(column.values)
                except ValueError as error:
                    raise refuse("MREC-DECL-29", place, str(error), index=index) from None
                if dtype not in RECORD_DTYPES:
                    raise refuse("MREC-DECL-29", place, f"{dtype} is no dtype of a column", index=index)
                given = ColumnDeclaration(dtype, tuple(column.values.shape[1:]), column.mask is not None)
                known = columns.setdefault(c, given)
                if (known.dtype, known.trailing) != (given.dtype, given.trailing):
                    one, other = (f"{d.dtype} with rows of {list(d.trailing)}" for d in (known, given))
                    raise refuse("MREC-DECL-23", place, f"{other} after {one}", index=index)
                columns[c] = replace(known, nullable=known.nullable or given.nullable)
        for key, value in frame.meta.items():
            if meta.setdefault(key, MetaDeclaration(value.dtype)).dtype != value.dtype:
                message = f"the tag {value.dtype} after {meta[key].dtype}"
                raise refuse("MREC-DECL-23", f"trajectory/meta/{key}", message, index=index)
    return encode_declaration(
        Declaration({name: BlockDeclaration(columns, shapes[name]) for name, columns in blocks.items()}, meta)
    )


def same_update(a: Block, b: Block) -> bool:
    """Whether two presentations of a block are the same bit for bit, masks included (after rounding)."""
    if a.rows != b.rows:
        return False
    for name, left in a.columns.items():
        right = b.columns[name]
        if not same_bits(left.values, right.values):
            return False
        if left.mask is not None and right.mask is not None and not np.array_equal(left.mask, right.mask):
            return False
    return True


def _same_cell(a: Cell, b: Cell) -> bool:
    return (
        a.defined == b.defined
        and same_bits(a.vectors, b.vectors)
        and same_bits(a.origin, b.origin)
        and bool(np.array_equal(a.boundary, b.boundary))
    )


_DECLARATION_CLAUSES = {
    "MREC-NAME-03": "MREC-NAME-01",
    "MREC-NAME-04": "MREC-NAME-02",
    "MREC-META-06": "MREC-META-29",
    "MREC-META-15": "MREC-META-30",
    "MREC-PREC-01": "MREC-PREC-07",
    "MREC-PREC-02": "MREC-PREC-07",
    "MREC-REF-01": "MREC-REF-10",
} | {f"MREC-ALIGN-0{n}": "MREC-ALIGN-16" for n in range(2, 7)}


def _declaration_clause(violation: Violation) -> str:
    """The clause by which a writer refuses what makes a stored declaration invalid."""
    if violation.clause == "MREC-DECL-03":
        return "MREC-META-36" if "'json'" in violation.message else "MREC-DECL-29"
    return _DECLARATION_CLAUSES.get(violation.clause, violation.clause)


def _meta_clause(tag: str, given: MetaValue) -> str:
    """The clause by which a value of a metadata key is refused."""
    if "json" in (tag, given.dtype):
        return "MREC-META-27" if tag == given.dtype else "MREC-META-39"
    values, stored = given.value, TAGS[tag].stored
    if tuple(values.shape) != TAGS[tag].trailing:
        return "MREC-META-26"
    if "string" in (stored, TAGS[given.dtype].stored if given.dtype in TAGS else ""):
        return "MREC-META-39"
    if stored == "bool":
        return "MREC-META-37"
    if values.dtype == np.bool_:
        return "MREC-META-25"
    if stored == "f64":
        return "MREC-META-38"
    return "MREC-META-24" if values.dtype.kind in "iu" else "MREC-META-23"


def _check_text(given: MetaValue, value: Array) -> None:
    """ValueError where a text is none that UTF-8 can spell, or a document does not read back as what it was."""
    if value.dtype != object:
        return
    for text in value.ravel().tolist():
        if not is_text(text):
            raise ValueError("not a text that UTF-8 can spell")
    if given.dtype == "json":
        try:
            again = parse_json(str(value.item()).encode(), "")
        except Refused as refusal:
            raise ValueError(refusal.violation.message) from None
        if not same_document(again, given.value):
            raise ValueError("the document does not read back as it was given")


def _check_name(name: str, place: str) -> None:
    """A declared name becomes the name of a folder."""
    if not is_text(name) or child("", name) != f"/{name}":
        raise refuse("MREC-DECL-01", place, f"{name!r} cannot be the name of a node")
