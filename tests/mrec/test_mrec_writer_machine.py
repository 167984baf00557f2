"""The bundled writer against the plain model of `plain_writer`, driven by a state machine.

Declarations, frames, refused frames, flushes, closing, reopening, packing and writers that are simply dropped come in
any order; after every commit the store has to read back as the model says, be clean and have the layout that follows
from the frames. A normal run of the tests takes a few runs of the machine. The long one::

    TRAJCONFORM_WRITER_RUNS=2000 pytest tests/mrec/test_mrec_writer_machine.py
"""

from __future__ import annotations

import itertools
import math
import os
import shutil
import struct
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.mrec.plain_writer import (
    ENDPOINTS,
    FORMATS,
    RANGES,
    YES,
    ZEROS,
    Given,
    GivenBlock,
    GivenCell,
    GivenColumn,
    PlainWriter,
    Shown,
    Stored,
    family,
    real,
    zero,
)
from trajconform.harness.layout import layout_differences
from trajconform.model.arrays import NUMPY_DTYPES
from trajconform.model.errors import Refused
from trajconform.model.trajectory import Block, Cell, Column, Frame, MetaValue
from trajconform.mrec import zarr_write
from trajconform.mrec.checker import check_mrec
from trajconform.mrec.pack import pack_mrec
from trajconform.mrec.reader import open_mrec
from trajconform.mrec.writer import MrecWriter, WriterOptions

RUNS = int(os.environ.get("TRAJCONFORM_WRITER_RUNS", "10"))
FRAMES = 16
REALS = tuple(
    struct.pack("<Q", bits)
    for bits in (
        0, 1 << 63, 0x7FF8000000000000, 0x7FF8000000000123, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FF0000000000000, 1,
    )
) + tuple(struct.pack("<d", x) for x in (1.0, -1.5, 0.1, 0.30000000000000004, 0.29999999999999993, 1e300, 2.0**60, 4.5))  # fmt: skip
TEXTS = ("", "H", "é\0", "\0", "水" * 40, "NaN")
DOCUMENTS = (None, True, 0, -0.0, 2**64, "x", "NaN", [], {"a": [1.5, {"b": None}]}, {"é": "\0"}, 1e-320)
SCALARS = ("bool", "i32", "i64", "u32", "u64", "f64", "string", "json")
VECTORS = ("bool3", "i32x3", "i64x3", "u32x3", "u64x3", "f64x3", "f64x6", "f64x9")
ELEMENTS = (*FORMATS, "string")
SEEDS = st.integers(0, 2**32 - 1)
"""What a frame or a declaration is made from: to draw every value would leave a run no room for frames."""


def token(rng: Random, dtype: str) -> Any:
    """A value of a dtype, an awkward one above all."""
    if dtype == "string":
        return rng.choice(TEXTS)
    if dtype == "bool":
        return rng.choice([b"\0", b"\1"])
    if dtype == "f64":
        return rng.choice(REALS)
    if dtype == "c128":
        return rng.choice(REALS) + rng.choice(REALS)
    size = struct.calcsize(FORMATS[dtype])
    return rng.choice([bytes(size), b"\1" + bytes(size - 1), b"\xff" * size, bytes(size - 1) + b"\x80"])


def scalar(rng: Random, tag: str) -> Any:
    """A value of the family of a tag, as `Given.meta` has them."""
    if tag in RANGES:
        low, high = RANGES[tag]
        return rng.choice([low, 0, 1, high, min(high, 2**53)])
    return rng.random() < 0.5 if tag == "bool" else rng.choice(DOCUMENTS) if tag == "json" else token(rng, tag)


def value_of(rng: Random, tag: str) -> Any:
    """A value of a tag."""
    if tag in SCALARS:
        return scalar(rng, tag)
    return tuple(scalar(rng, family(tag)) for _ in range(int(tag[-1])))


def typed(tag: str, value: Any) -> Any:
    """A value in typed JSON form, or nothing where it has none: a NaN with a payload."""
    if isinstance(value, tuple):
        return [typed(family(tag), one) for one in value]
    if tag == "f64":
        number = real(value)
        return "NaN" if math.isnan(number) else number if math.isfinite(number) else f"{'-' * (number < 0)}Infinity"
    return str(value) if tag in RANGES and abs(value) > 2**53 else value


def some(rng: Random, names: str, least: int = 0) -> list[str]:
    """Up to three of the letters."""
    return rng.sample(names, rng.randint(least, 3))


def a_declaration(rng: Random) -> dict[str, Any]:
    """A declaration: atoms, perhaps a block that is aligned with them, one that refers to them, a grid, marks."""
    blocks: dict[str, Any] = {}

    def columns(names: str, least: int) -> dict[str, Any]:
        out = {}
        for name in some(rng, names, least):
            dtype = rng.choice(("f64", "f64", "f64", *ELEMENTS))
            trailing = rng.choice([[], [], [], [2], [3, 2], [0]])
            out[name] = {"dtype": dtype, "trailing": trailing}
            if rng.random() < 0.3:
                out[name]["nullable"] = True
            if dtype == "f64" and rng.random() < 0.3:
                out[name]["precision"] = rng.choice([0.3, 0.001, 2.0, 1e-5])
        return out

    if rng.random() < 0.9:
        blocks["atoms"] = {"columns": columns("pqrs", 0)}
        if rng.random() < 0.5:
            blocks["atoms"]["columns"]["id"] = {"dtype": "u64", "trailing": []}
        if rng.random() < 0.4:
            blocks["kinds"] = {"columns": columns("klm", 0), "aligned_with": "atoms"}
        if rng.random() < 0.5:
            name = rng.choice([*ENDPOINTS, "near", "of_system"])
            trailing = rng.choice([[], [2]]) if name in ("near", "of_system") else []
            entry: dict[str, Any] = {"dtype": "u64", "trailing": trailing}
            if rng.random() < 0.5:
                entry["nullable"] = True
            blocks["bonds"] = {"columns": {name: entry}}
            if name == "near":
                blocks["bonds"]["targets"] = {"near": rng.choice(["atoms", "bonds"])}
    if rng.random() < 0.5:
        blocks["grid"] = {"columns": columns("abc", 1), "structural_shape": rng.choice([[1], [2], [2, 2]])}
    if rng.random() < 0.4:
        blocks["marks"] = {"columns": {}}
    meta: dict[str, Any] = {}
    for key in some(rng, "uvw"):
        tag = rng.choice(SCALARS + VECTORS)
        meta[key] = {"dtype": tag}
        if rng.random() < 0.5:
            meta[key]["fill"] = typed(tag, value_of(rng, tag))
    return {"blocks": blocks, "meta": meta}


# -- between the model's values and the writer's --------------------------------------------------------------------


def array_of(column: GivenColumn) -> np.ndarray[Any, Any]:
    """A column as a producer's array."""
    shape = (len(column.rows), *column.trailing)
    flat = [token for row in column.rows for token in row]
    if column.dtype == "string":
        out = np.empty(len(flat), dtype=object)
        out[:] = flat
        return out.reshape(shape)
    return np.frombuffer(b"".join(flat), dtype=NUMPY_DTYPES[column.dtype]).reshape(shape)


def frame_of(given: Given) -> Frame:
    """A frame as a producer hands it over."""
    blocks = {}
    for name, block in given.blocks.items():
        columns = {}
        for c, column in block.columns.items():
            mask = None if column.mask is None else np.array(column.mask, dtype=bool)
            columns[c] = Column(array_of(column), mask)
        blocks[name] = Block(block.count, columns)
    meta = {}
    for key, (tag, value) in given.meta.items():
        if tag == "json":
            meta[key] = MetaValue(tag, value)
            continue
        items = value if isinstance(value, tuple) else (value,)
        dtype = family(tag)
        if dtype == "f64":
            array = np.frombuffer(b"".join(items), dtype="<f8")
        elif dtype == "string":
            array = np.empty(len(items), dtype=object)
            array[:] = items
        else:
            array = np.array(items, dtype=NUMPY_DTYPES[dtype])
        meta[key] = MetaValue(tag, array if isinstance(value, tuple) else array.reshape(()))
    cell = None
    if given.cell is not None:
        numbers = np.frombuffer(b"".join(given.cell.vectors + given.cell.origin), dtype="<f8")
        flags = np.array(given.cell.boundary, dtype=bool)
        cell = Cell(numbers[:9].reshape(3, 3), numbers[9:], flags, given.cell.defined)
    time = None if given.time is None else np.frombuffer(given.time, dtype="<f8")[0]
    return Frame(given.step, blocks, time, cell, meta)


def rows_of(array: np.ndarray[Any, Any]) -> tuple[tuple[Any, ...], ...]:
    """An array as rows of tokens."""
    width = math.prod(array.shape[1:])
    if array.dtype == object:
        flat = array.ravel().tolist()
    else:
        raw, size = array.tobytes(), array.dtype.itemsize
        flat = [raw[i : i + size] for i in range(0, len(raw), size)]
    return tuple(tuple(flat[i * width : (i + 1) * width]) for i in range(len(array)))


def shown(frame: Frame, declaration: dict[str, Any]) -> Shown:
    """A frame as it was read."""
    blocks = {}
    for name, block in frame.blocks.items():
        rows, masks = {}, {}
        for c, column in block.columns.items():
            entry = declaration["blocks"][name]["columns"][c]
            assert column.values.dtype == NUMPY_DTYPES[entry["dtype"]]
            assert column.values.shape == (block.rows, *entry["trailing"])
            rows[c] = rows_of(column.values)
            if entry.get("nullable"):
                masks[c] = (True,) * block.rows if column.mask is None else tuple(column.mask.tolist())
            else:
                assert column.mask is None
        blocks[name] = Stored(block.rows, rows, masks)
    meta = {}
    for key, value in frame.meta.items():
        plain = value.value
        if value.dtype != "json":
            if family(value.dtype) == "f64":
                items: list[Any] = [row[0] for row in rows_of(plain.reshape(-1, 1))]
            else:
                items = plain.reshape(-1).tolist()
            plain = tuple(items) if plain.shape else items[0]
        meta[key] = (value.dtype, plain)
    cell = None
    if frame.cell is not None:
        vectors, origin = rows_of(frame.cell.vectors.reshape(1, 9))[0], rows_of(frame.cell.origin.reshape(1, 3))[0]
        cell = GivenCell(vectors, origin, tuple(frame.cell.boundary.tolist()), frame.cell.defined)
    time = None if frame.time is None else frame.time.tobytes()
    return Shown(frame.step, time, blocks, meta, cell)


# -- the machine ---------------------------------------------------------------------------------------------------


class WriterMachine(RuleBasedStateMachine):
    """One record, from its declaration on."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="writer-machine-"))
        self.path = self.folder / "run.mrec"
        self.usual = (zarr_write.INNER_CHUNK_BYTES, zarr_write.SHARD_BYTES)
        self.writer: Any = None
        self.sure = 0
        """Frames that a flush or close has promised."""

    def teardown(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.compare(self.path, self.model)
        zarr_write.INNER_CHUNK_BYTES, zarr_write.SHARD_BYTES = self.usual
        shutil.rmtree(self.folder)

    def options(self, rng: Random) -> WriterOptions:
        """Any way to write."""
        return WriterOptions(
            float_compressor=rng.choice([None, "gzip:1", "zstd:3"]),
            flush_bytes=rng.choice([1, 200, 2**25, 2**25]),
            sync=rng.random() < 0.1,
        )

    @initialize(seed=SEEDS, small=st.booleans(), timed=st.booleans())
    def create(self, seed: int, small: bool, timed: bool) -> None:
        rng = Random(seed)
        declaration = a_declaration(rng)
        if small:  # so that a few rows fill chunks and shards
            zarr_write.INNER_CHUNK_BYTES, zarr_write.SHARD_BYTES = 64, 256
        system: dict[str, tuple[int, Any]] = {}
        bonds = declaration["blocks"].get("bonds", {"columns": {}})
        if rng.random() < 0.25 or "of_system" in bonds["columns"]:
            rows = rng.randint(1, 3)
            ids = tuple((struct.pack("<Q", i + 7),) for i in range(rows)) if rng.random() < 0.5 else None
            system[rng.choice(["atoms", "other"])] = (rows, ids)
        if "of_system" in bonds["columns"]:
            bonds["targets"] = {"of_system": f"/system/{next(iter(system))}"}
        self.pace = rng.choice(["halves", "formula", "added up"])
        self.timed, self.system, self.declaration = timed, system, declaration
        self.model = PlainWriter(declaration, system)
        blocks = {}
        for name, (rows, ids) in system.items():
            columns = {"mass": Column(np.ones(rows))}
            if ids is not None:
                columns["id"] = Column(array_of(GivenColumn("u64", (), ids)))
            blocks[name] = Block(rows, columns)
        self.writer = MrecWriter.create(self.path, declaration, system=blocks, options=self.options(rng))

    # -- what a frame may be -----------------------------------------------------------------------------------------

    def block(self, rng: Random, name: str) -> GivenBlock | None:
        """A block to present, mostly one that fits what is there."""
        entry, last = self.declaration["blocks"][name], self.model.current.get(name)
        how = rng.choice(["omit", "new", "again", "change", "new", "again"])
        if how == "omit" or (last is None and how != "new"):
            return None
        if last is not None and how != "new":
            columns = {}
            for c, declared in entry["columns"].items():
                rows, mask = last.rows[c], last.masks.get(c)
                if mask is not None and all(mask) and rng.random() < 0.5:
                    mask = None
                columns[c] = GivenColumn(declared["dtype"], tuple(declared["trailing"]), rows, mask)
            block = GivenBlock(last.count, columns)
            return block if how == "again" else self.changed(rng, block)
        count = rng.choice([0, 1, 2, 2, 2, 3, 9])
        target = entry.get("aligned_with")
        if name in self.system:
            count = self.system[name][0]
        elif "structural_shape" in entry:
            count = math.prod(entry["structural_shape"])
        elif target in self.presented:
            count = self.presented[target].count
        elif target in self.model.current:
            count = self.model.current[target].count
        return GivenBlock(count, {c: self.column(rng, name, c, count) for c in entry["columns"]})

    def column(self, rng: Random, block: str, name: str, count: int) -> GivenColumn:
        declared = self.declaration["blocks"][block]["columns"][name]
        dtype, trailing = declared["dtype"], tuple(declared["trailing"])
        width = math.prod(trailing)
        if name == "id" and self.system.get(block, (0, None))[1] is not None:
            return GivenColumn(dtype, trailing, self.system[block][1])
        refers = name in (*ENDPOINTS, "near", "of_system")

        def one() -> Any:
            return struct.pack("<Q", rng.choice([0, 0, 0, 1, 2])) if refers else token(rng, dtype)

        rows = tuple(tuple(one() for _ in range(width)) for _ in range(count))
        mask = None
        if declared.get("nullable") and rng.random() < 0.5:
            mask = tuple(rng.random() < 0.5 for _ in range(count))
        return without_nulls(GivenColumn(dtype, trailing, rows, mask))

    def changed(self, rng: Random, block: GivenBlock) -> GivenBlock:
        """One bit, the order of rows, or a mask: the least that makes a change."""
        names = [c for c, column in block.columns.items() if column.rows]
        if not names:
            return block
        name = rng.choice(names)
        column = block.columns[name]
        how = rng.choice(["value", "value", "reverse", "mask"])
        if how == "reverse":
            mask = None if column.mask is None else column.mask[::-1]
            column = replace(column, rows=column.rows[::-1], mask=mask)
        elif how == "mask" and column.mask is not None:
            at = rng.randrange(block.count)
            column = replace(column, mask=(*column.mask[:at], not column.mask[at], *column.mask[at + 1 :]))
        elif column.rows[0] and name not in (*ENDPOINTS, "near", "of_system", "id"):
            at = rng.randrange(block.count)
            row = (token(rng, column.dtype), *column.rows[at][1:])
            column = replace(column, rows=(*column.rows[:at], row, *column.rows[at + 1 :]))
        return replace(block, columns=block.columns | {name: without_nulls(column)})

    def cell(self, rng: Random) -> GivenCell | None:
        how = rng.choice(["none", "none", "again", "new"])
        if how == "again" and self.model.cell is not None:
            return self.model.cell
        if how != "new":
            return None
        size = rng.choice(REALS)
        diagonal = tuple(size if i % 4 == 0 else struct.pack("<d", 0.0) for i in range(9))
        origin = rng.choice([ZEROS, ZEROS, (struct.pack("<d", -0.0), *ZEROS[1:]), (REALS[8],) * 3])
        boundary = rng.choice([YES, YES, (True, False, True)])
        defined = self.model.cell.defined if self.model.cell is not None else rng.random() < 0.8
        return GivenCell(diagonal, origin, boundary, defined)

    def step_and_time(self, rng: Random) -> tuple[int, bytes | None]:
        given = self.model.given
        pace = rng.choice([10, 10, 10, 10, 3])
        step = given[-1].step + pace if given else rng.choice([0, 0, -5, -(2**63)])
        if not self.timed:
            return step, None
        i, usual = len(given), self.pace
        if rng.random() < 0.08:
            usual = rng.choice(["halves", "nan", "minus zero"])
        time = {"halves": i * 0.5, "formula": 0.1 + i * 0.1, "nan": math.nan, "minus zero": -0.0, "added up": 0.1}[
            usual
        ]
        if usual == "added up" and given:
            assert given[-1].time is not None
            time = real(given[-1].time) + 0.1
        return step, struct.pack("<d", time)

    def value(self, rng: Random, tag: str) -> tuple[str, Any]:
        other = rng.randrange(4)
        if other == 0 and family(tag) in (*RANGES, "f64"):  # an integer of another width, which may fit or not
            suffix = tag.removeprefix(family(tag))
            kinds = [kind + suffix for kind in RANGES if suffix in ("", "x3")]
            if kinds:
                tag = rng.choice(kinds)
        return tag, value_of(rng, tag)

    @precondition(lambda self: self.writer is not None and len(self.model.given) < FRAMES)
    @rule(seed=SEEDS)
    def append(self, seed: int) -> None:
        self.append_one(Random(seed))

    @precondition(lambda self: self.writer is not None and len(self.model.given) < FRAMES)
    @rule(seed=SEEDS, count=st.integers(2, 6))
    def append_some(self, seed: int, count: int) -> None:
        rng = Random(seed)
        for _ in range(count):
            self.append_one(rng)

    def append_one(self, rng: Random) -> None:
        step, time = self.step_and_time(rng)
        self.presented: dict[str, GivenBlock] = {}
        for name in self.declaration["blocks"]:
            block = self.block(rng, name)
            if block is not None:
                self.presented[name] = block
        meta = {}
        for key, entry in self.declaration["meta"].items():
            if "fill" not in entry or rng.random() < 0.5:
                meta[key] = self.value(rng, entry["dtype"])
        self.offer(Given(step, time, self.presented, meta, self.cell(rng)))

    def offer(self, given: Given) -> None:
        """Append a frame, or see it refused."""
        before = len(self.writer), self.writer.committed
        fault = self.model.fault(given)
        if fault:
            with pytest.raises(Refused) as refused:
                self.writer.append(frame_of(given))
            assert refused.value.violation.message
            assert (len(self.writer), self.writer.committed) == before
            return
        self.writer.append(frame_of(given))
        self.model.take(given)

    @precondition(lambda self: self.writer is not None and self.model.given)
    @rule(seed=SEEDS)
    def refused(self, seed: int) -> None:
        """A frame that breaks one rule, and would otherwise do."""
        last = self.model.given[-1]
        good = replace(last, step=last.step + 10, blocks={}, cell=None)
        number = GivenColumn("f64", (), ((REALS[0],),))
        kinds: list[Given] = [
            replace(good, step=last.step),
            replace(good, step=last.step - 1),
            replace(good, step=2**63),
            replace(good, time=None if good.time is not None else REALS[0]),
            replace(good, meta=good.meta | {"undeclared": ("bool", True)}),
            replace(good, blocks={"undeclared": GivenBlock(1, {"x": number})}),
        ]
        for key, entry in self.declaration["meta"].items():
            tag = entry["dtype"]
            kinds.append(replace(good, meta=good.meta | {key: ("string", "x") if tag != "string" else ("bool", True)}))
            kinds.append(replace(good, meta=good.meta | {key: ("json", {"a": [math.nan]})}))
            if "fill" not in entry:
                kinds.append(replace(good, meta={k: v for k, v in good.meta.items() if k != key}))
        for name, block in self.model.current.items():
            columns = {}
            for c, entry in self.declaration["blocks"][name]["columns"].items():
                mask = block.masks.get(c)
                columns[c] = GivenColumn(entry["dtype"], tuple(entry["trailing"]), block.rows[c], mask)
            for c, column in columns.items():
                others = {k: v for k, v in columns.items() if k != c}
                width = math.prod(column.trailing)
                other = "i8" if column.dtype != "i8" else "u8"
                bad = [
                    replace(column, trailing=(*column.trailing, 1)),
                    replace(column, rows=(*column.rows, (zero(column.dtype),) * width)),
                    replace(column, mask=(True,) * (block.count + 1)),
                    replace(column, dtype=other, rows=tuple((b"\1",) * len(row) for row in column.rows)),
                ]
                if block.count and column.mask is None:
                    bad.append(replace(column, mask=(False,) * block.count))
                kinds += [replace(good, blocks={name: GivenBlock(block.count, others | {c: b})}) for b in bad]
                kinds.append(replace(good, blocks={name: GivenBlock(block.count, others)}))
            more = columns | {"more": replace(number, rows=number.rows * block.count)}
            kinds.append(replace(good, blocks={name: GivenBlock(block.count, more)}))
        if self.model.cell is not None:
            kinds.append(replace(good, cell=replace(self.model.cell, defined=not self.model.cell.defined)))
        given = Random(seed).choice(kinds)
        assert self.model.fault(given), "it breaks no rule"
        self.offer(given)

    # -- what happens to the record ----------------------------------------------------------------------------------

    @precondition(lambda self: self.writer is not None)
    @rule()
    def flush(self) -> None:
        self.writer.flush()
        self.committed_now()
        self.compare(self.path, self.model)

    @precondition(lambda self: self.writer is not None)
    @rule()
    def close(self) -> None:
        self.writer.close()
        self.committed_now()
        with pytest.raises(ValueError, match="closed"):
            self.writer.append(Frame(0))
        self.writer.close()
        self.writer = None
        self.compare(self.path, self.model)

    def committed_now(self) -> None:
        assert self.writer.committed == len(self.writer) == len(self.model.given)
        self.sure = len(self.model.given)

    @precondition(lambda self: self.writer is not None)
    @rule()
    def abandon(self) -> None:
        """The process ends here: no close, no flush."""
        count = self.writer.committed
        self.writer = None
        assert count >= self.sure
        self.model = self.model.cut(count)
        self.compare(self.path, self.model)

    @precondition(lambda self: self.writer is None)
    @rule(seed=SEEDS, how=st.sampled_from(["as it is", "pinned", "another"]))
    def reopen(self, seed: int, how: str) -> None:
        if how == "another":
            other = {**self.declaration, "meta": self.declaration["meta"] | {"one_more": {"dtype": "f64"}}}
            with pytest.raises(Refused) as refused:
                MrecWriter.reopen(self.path, other)
            assert refused.value.violation.clause == "MREC-DECL-25"
            self.compare(self.path, self.model)
        declaration = self.declaration if how == "pinned" else None
        self.writer = MrecWriter.reopen(self.path, declaration, options=self.options(Random(seed)))
        self.sure = len(self.model.given)
        assert len(self.writer) == self.writer.committed == self.sure
        self.compare(self.path, self.model)

    @precondition(lambda self: self.writer is None)
    @rule()
    def pack(self) -> None:
        packed = self.folder / "run.mrec.zip"
        pack_mrec(self.path, packed)
        self.compare(packed, self.model)

    @precondition(lambda self: self.writer is not None)
    @rule()
    def create_over_it(self) -> None:
        with pytest.raises(FileExistsError):
            MrecWriter.create(self.path, self.declaration)

    @invariant()
    def what_is_committed_can_be_read(self) -> None:
        if self.writer is not None:
            with open_mrec(self.path) as opened:
                assert len(opened) == self.writer.committed

    def compare(self, path: Path, model: PlainWriter) -> None:
        """Hold what stands there against the model: frames, checker, layout."""
        with open_mrec(path) as opened:
            found = [shown(frame, self.declaration) for frame in opened]
        for i, (want, got) in enumerate(itertools.zip_longest(model.frames, found)):
            assert want == got, f"frame {i}"
        assert check_mrec(path) == []
        if path.is_dir():
            assert [str(d) for d in layout_differences(path, model.layout())] == []


def without_nulls(column: GivenColumn) -> GivenColumn:
    """The column with one and the same value under every false flag: what stands there means nothing."""
    if column.mask is None:
        return column
    null = (zero(column.dtype),) * math.prod(column.trailing)
    return replace(column, rows=tuple(r if m else null for r, m in zip(column.rows, column.mask, strict=True)))


TestWriterMachine = WriterMachine.TestCase
TestWriterMachine.settings = settings(
    max_examples=RUNS, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
