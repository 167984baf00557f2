"""Writers of mrec with mistakes in the cell, the metadata, the declaration, the commit and on reopening."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from trajconform.harness import mutants
from trajconform.harness.mutants import edit, mutant, swap

changed = partial(mutants.changed, role="writer")
_W, _C = "mrec.writer:MrecWriter.", "mrec.writer:_CellState."
_LAND = _W + "_land"

# -- the cell ------------------------------------------------------------------------------------------------------

changed("cell-always-arrays", "MREC-CELL-20", "stores a fixed cell in arrays",
        _C + "take", "self.count == 0 and ordinal == 0 and finite", "False")  # fmt: skip
changed("attribute-cell-kept", "MREC-CELL-21", "keeps the attribute cell beside the arrays",
        _C + "attributes", "self.fixed is not None and not self.migrated", "self.fixed is not None")  # fmt: skip
changed("attribute-cell-lost", "MREC-CELL-21", "drops the attribute cell when it changes",
        _C + "take", "if self.fixed is not None:", "if False:")  # fmt: skip
changed("attribute-cell-one-late", "MREC-CELL-21", "stores the attribute cell as an update of frame 1",
        _C + "take", "self._push(0, self.fixed)", "self._push(1, self.fixed)")  # fmt: skip
changed("cell-at-every-frame", "MREC-CELL-22", "adds an update of the cell at every frame",
        _C + "check", "if self.last is not None and _same_cell(self.last, cell):", "if False:", also=("MREC-CELL-20",))  # fmt: skip
changed("cell-change-of-origin-unseen", "MREC-CELL-39", "does not compare origins",
        "mrec.writer:_same_cell", "and same_bits(a.origin, b.origin)", "")  # fmt: skip
changed("cell-change-of-boundary-unseen", "MREC-CELL-39", "does not compare boundaries",
        "mrec.writer:_same_cell", "and bool(np.array_equal(a.boundary, b.boundary))", "")  # fmt: skip
changed("cell-change-of-vectors-unseen", "MREC-CELL-39", "does not compare vectors",
        "mrec.writer:_same_cell", "and same_bits(a.vectors, b.vectors)", "")  # fmt: skip
changed("cell-compared-by-value", "MREC-CELL-39", "compares cells by value",
        "mrec.writer:_same_cell", "and same_bits(a.vectors, b.vectors)\n        and same_bits(a.origin, b.origin)",
        "and np.array_equal(a.vectors, b.vectors, equal_nan=True)\n        and np.array_equal(a.origin, b.origin, equal_nan=True)")  # fmt: skip
changed("cell-nan-is-a-change", "MREC-CELL-22", "takes a repeated NaN in a cell for a change",
        "mrec.writer:_same_cell", "and same_bits(a.vectors, b.vectors)", "and np.array_equal(a.vectors, b.vectors)")  # fmt: skip
changed("defined-recorded", "MREC-CELL-24", "records that a cell is defined",
        _C + "attributes", "if self.defined is False:\n        out[\"cell_defined\"] = False",
        "if self.defined is not None:\n        out[\"cell_defined\"] = bool(self.defined)")  # fmt: skip
changed("undefined-not-recorded", "MREC-CELL-41", "does not record that a cell is undefined",
        _C + "attributes", "if self.defined is False:", "if False:")  # fmt: skip
changed("undefined-with-its-vectors", "MREC-CELL-25", "writes the vectors that come with an undefined cell",
        _C + "check", "Cell(np.eye(3), cell.origin,", "Cell(cell.vectors, cell.origin,")  # fmt: skip
changed("undefined-with-zero-vectors", "MREC-CELL-25", "writes zeros for the vectors of an undefined cell",
        _C + "check", "Cell(np.eye(3), cell.origin,", "Cell(np.zeros((3, 3)), cell.origin,")  # fmt: skip
changed("undefined-periodic", "MREC-CELL-25", "writes an undefined cell with a boundary that is all true",
        _C + "check", "np.zeros(3, dtype=bool), False)", "np.ones(3, dtype=bool), False)")  # fmt: skip
changed("undefined-boundary-left-out", "MREC-CELL-25", "leaves the boundary of an undefined cell out as a default",
        _C + "_optional", "boundary_default = np.ones(3, dtype=bool)",
        "boundary_default = np.ones(3, dtype=bool) if cell.defined else np.zeros(3, dtype=bool)")  # fmt: skip
changed("infinite-cell-in-attributes", "MREC-CELL-27", "stores a cell that is not finite as attributes",
        _C + "take", "and finite:", "and (cell.__class__ is not None):")  # fmt: skip
changed("infinite-origin-in-attributes", "MREC-CELL-27", "looks at the vectors only for numbers that are not finite",
        _C + "take", "and np.isfinite(cell.origin).all()", "")  # fmt: skip
changed("late-cell-in-attributes", "MREC-CELL-28", "stores a cell that first comes later as attributes",
        _C + "take", "self.count == 0 and ordinal == 0 and finite", "self.count == 0 and finite")  # fmt: skip
changed("origin-left-out", "MREC-CELL-33", "leaves the origin of an attribute cell out",
        _C + "attributes", "if not same_bits(value, default):", "if not same_bits(value, default) and name != 'origin':",
        also=("MREC-CELL-34",))  # fmt: skip
changed("boundary-left-out", "MREC-CELL-33", "leaves the boundary of an attribute cell out",
        _C + "attributes", "if not same_bits(value, default):", "if not same_bits(value, default) and name != 'boundary':",
        also=("MREC-CELL-25",))  # fmt: skip
changed("negative-zero-origin-left-out", "MREC-CELL-34", "takes an origin of -0.0 for the default",
        _C + "attributes", "if not same_bits(value, default):", "if not np.array_equal(value, default):")  # fmt: skip
changed("negative-zero-origin-left-out-of-arrays", "MREC-CELL-34", "takes an origin of -0.0 for the default in arrays",
        _C + "_push", "not same_bits(value, default)", "not np.array_equal(value, default)")  # fmt: skip
changed("vectors-lose-the-sign-of-zero", "MREC-CELL-34", "loses the sign of a zero of the vectors",
        _C + "check", "return Cell(cell.vectors.copy(),", "return Cell(cell.vectors + 0.0,", also=("MREC-CELL-39", "MREC-CELL-22"))  # fmt: skip
changed("origin-from-the-first-off-default", "MREC-CELL-37", "starts the array of origins at the first off the default",
        _C + "_push", "if missing:", "if False:")  # fmt: skip
changed("origin-filled-in-one-short", "MREC-CELL-37", "fills in one default too few",
        _C + "_push", "if missing:", "missing -= 1\n            if missing > 0:")  # fmt: skip
changed("origin-filled-in-with-the-new", "MREC-CELL-37", "fills earlier updates in with the new value",
        _C + "_push", "np.repeat(default[None], missing, axis=0)", "np.repeat(value[None], missing, axis=0)")  # fmt: skip
changed("origin-only-off-default", "MREC-CELL-37", "adds a row only where an update is off the default",
        _C + "_push", "if array.rows or not same_bits(value, default):", "if not same_bits(value, default):")  # fmt: skip
changed("default-origin-in-attributes", "MREC-CELL-42", "writes an origin of zero as an attribute",
        _C + "attributes", "if not same_bits(value, default):", "if not same_bits(value, default) or name == 'origin':")  # fmt: skip
changed("default-boundary-in-attributes", "MREC-CELL-42", "writes a boundary that is all true as an attribute",
        _C + "attributes", "if not same_bits(value, default):", "if not same_bits(value, default) or name == 'boundary':")  # fmt: skip


@mutant("MREC-CELL-23", role="writer", mistake="takes a frame without a cell for one with the unit cell")
def no_cell_is_the_unit_cell() -> None:
    @swap(_C + "check")
    def check(original: Any, self: Any, cell: Any) -> Any:
        from trajconform.model.trajectory import Cell

        if cell is None and self.last is not None and self.defined:
            cell = Cell(np.eye(3), np.zeros(3), np.ones(3, dtype=bool), True)
        return original(self, cell)


@mutant("MREC-CELL-23", role="writer", mistake="restates the cell at a frame that gives none")
def cell_restated() -> None:
    @swap(_C + "check")
    def check(original: Any, self: Any, cell: Any) -> Any:
        return original(self, cell) if cell is not None else self.last


# -- metadata and the declaration ----------------------------------------------------------------------------------


def _coerced(name: str, clause: str, mistake: str, made: Any) -> None:
    def apply() -> None:
        @swap("mrec.writer:coerce_meta")
        def coerce(original: Any, tag: str, given: Any) -> Any:
            return made(original, tag, given)

    mutant(clause, role="writer", mistake=mistake, name=name)(apply)


def _fail(message: str) -> Any:
    raise ValueError(message)


_coerced("integer-for-f64-refused", "MREC-META-22", "refuses an integer for an f64 key",
         lambda original, tag, given: _fail("no") if tag.startswith("f64") and given.dtype != "json" and given.value.dtype.kind in "iu" else original(tag, given))  # fmt: skip
_coerced("values-by-way-of-float", "MREC-META-21", "writes integers by way of binary64",
         lambda original, tag, given: np.asarray(original(tag, given).astype("<f8").clip(-(2.0**63), 2.0**63 - 1024).astype("<i8"), dtype="<i8")
         if tag.startswith("i64") else original(tag, given))  # fmt: skip
_coerced("reals-of-32-bits", "MREC-META-21", "writes reals by way of binary32",
         lambda original, tag, given: original(tag, given).astype("<f4").astype("<f8") if tag.startswith("f64") else original(tag, given))  # fmt: skip
_coerced("own-width-only", "MREC-META-40", "takes an integer of the tag's own width only",
         lambda original, tag, given: _fail("no") if tag[0] in "iu" and given.dtype != tag else original(tag, given))  # fmt: skip


@mutant("MREC-META-19", role="writer", mistake="stores zero instead of the fill")
def fill_is_zero() -> None:
    @swap("mrec.writer:fill_value")
    def fill(original: Any, entry: Any) -> Any:
        values = original(entry)
        return np.zeros_like(values) if values.dtype.kind != "O" else values


@mutant("MREC-META-19", role="writer", mistake="stores the value of the frame before instead of the fill")
def fill_is_the_last_value() -> None:
    @swap(_W + "_check_meta")
    def check(original: Any, self: Any, frame: Any) -> Any:
        made = original(self, frame)
        before = getattr(self, "_values", {})
        self._values = {k: v if k in frame.meta else before.get(k, v) for k, v in made.items()}
        return dict(self._values)


@mutant("MREC-META-28", role="writer", mistake="does not put meta_dtype on metadata arrays")
def no_meta_dtype() -> None:
    @swap(_W + "_array")
    def array(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        return original(self, *args, **kwargs | {"attributes": {}})


changed("meta-dtype-of-the-array", "MREC-META-28", "puts the dtype of the array where the tag belongs",
        _W + "__init__", '"meta_dtype": entry.dtype', '"meta_dtype": TAGS[entry.dtype].stored')  # fmt: skip


def _pinned(name: str, clause: str, mistake: str, made: Any, also: tuple[str, ...] = ()) -> None:
    """The declaration is pinned in another form."""

    def apply() -> None:
        @swap("mrec.writer:encode_declaration")
        def encode(original: Any, declaration: Any) -> Any:
            document = original(declaration)
            made(document)
            return document

    mutant(clause, role="writer", mistake=mistake, name=name, also=also)(apply)


def _each(document: Any, act: Any, what: str) -> None:
    for block in document["blocks"].values():
        for entry in [block] if what == "block" else list(block["columns"].values()):
            act(entry)


_pinned("fills-not-recorded", "MREC-META-20", "does not record fills",
        lambda d: [e.pop("fill", None) for e in d["meta"].values()], ("MREC-META-31", "MREC-DECL-15"))  # fmt: skip
_pinned("fills-as-text", "MREC-META-31", "writes integers of fills as they are, however large",
        lambda d: [e.update(fill=int(e["fill"])) for e in d["meta"].values()
                   if isinstance(e.get("fill"), str) and e["fill"].lstrip("-").isdigit() and e["dtype"] != "string"])  # fmt: skip
_pinned("nan-fill-is-null", "MREC-META-31", "writes null for a fill that is NaN",
        lambda d: [e.update(fill=None) for e in d["meta"].values() if e.get("fill") == "NaN" and e["dtype"] == "f64"])  # fmt: skip
_pinned("nullable-false-written", "MREC-DECL-24", "writes nullable: false",
        lambda d: _each(d, lambda e: e.setdefault("nullable", False), "column"), ("MREC-DECL-15",))  # fmt: skip
_pinned("empty-targets-written", "MREC-DECL-24", "writes targets where none are declared",
        lambda d: _each(d, lambda e: e.setdefault("targets", {}), "block"), ("MREC-DECL-15",))  # fmt: skip
_pinned("targets-not-recorded", "MREC-REF-11", "does not record targets",
        lambda d: _each(d, lambda e: e.pop("targets", None), "block"), ("MREC-DECL-15", "MREC-DECL-24"))  # fmt: skip
changed("not-pinned", "MREC-DECL-15", "does not pin the declaration",
        _W + "create", "cls(folder, parsed, options, files, encode_declaration(parsed))", "cls(folder, parsed, options, files, None)",
        also=("MREC-META-20", "MREC-REF-11", "MREC-DECL-24"))  # fmt: skip
changed("pinned-with-the-first-frames", "MREC-DECL-16", "narrows the declaration to the blocks that it has seen",
        _LAND, '{"sequence_schema": self._schema}',
        '{"sequence_schema": {**self._schema, "blocks": {n: b for n, b in self._schema["blocks"].items() if self._blocks[n].updates}}}')  # fmt: skip
changed("derived-from-the-first-frame", "MREC-DECL-22", "derives a declaration from the first frame",
        "mrec.writer:derive_declaration", "in enumerate(frames):", "in enumerate(list(frames)[:1]):")  # fmt: skip
changed("derived-without-empty-blocks", "MREC-DECL-22", "leaves empty blocks out of a derived declaration",
        "mrec.writer:derive_declaration", "for name, block in frame.blocks.items():",
        "for name, block in ((n, b) for n, b in frame.blocks.items() if b.rows):")  # fmt: skip
changed("derived-without-keys", "MREC-DECL-22", "leaves metadata out of a derived declaration",
        "mrec.writer:derive_declaration", "for key, value in frame.meta.items():", "for key, value in ():")  # fmt: skip
changed("new-count-in-order", "MREC-ALIGN-24", "compares an aligned block with its target as it was",
        _W + "_check_aligned", "against = self._resolved(target, blocks)", "against = self._resolved(target, {}) or self._resolved(target, blocks)",
        also=("MREC-ALIGN-14",))  # fmt: skip
changed("aligned-has-to-be-restated", "MREC-ALIGN-17", "refuses an aligned block that is carried forward",
        _W + "_check_aligned", "if against.rows != here.rows:", "if against.rows != here.rows or name not in blocks:",
        also=("MREC-ALIGN-24",))  # fmt: skip

# -- layout, codecs, the record ------------------------------------------------------------------------------------


@mutant("MREC-RECORD-02", role="writer", mistake="does not stamp the version")
def version_not_stamped() -> None:
    edit(_W + "_lay_out", '{"molrec_version": RECORD_VERSION} | meta', "meta")


changed("version-stamped-as-text", "MREC-RECORD-02", "stamps the version as text",
        _W + "_lay_out", '{"molrec_version": RECORD_VERSION} | meta', '{"molrec_version": "1"} | meta')  # fmt: skip


@mutant("MREC-LAYOUT-04", role="writer", mistake="stores arrays without shards", also=("MREC-LAYOUT-06",))
def not_sharded() -> None:
    edit("mrec.zarr_write:GrowingArray._extents", "max(1, SHARD_BYTES // (inner * row))", "1")
    edit("mrec.zarr_write:GrowingArray._write_shard", "[*pieces, *encoded]", "encoded")

    @swap("mrec.zarr_write:GrowingArray._metadata")
    def metadata(original: Any, self: Any) -> Any:
        return original(self) | {"codecs": self.codecs}


changed("small-shards", "MREC-LAYOUT-06", "makes a shard of every chunk",
        "mrec.zarr_write:GrowingArray._extents", "return inner, max(1, SHARD_BYTES // (inner * row))", "return 1, 1")  # fmt: skip

# -- the commit ----------------------------------------------------------------------------------------------------

changed("commit-one-behind", "MREC-COMMIT-17", "commits one frame less than it has",
        _LAND, '"nstep": self._nstep}', '"nstep": max(0, self._nstep - 1)}')  # fmt: skip
changed("close-does-not-commit", "MREC-COMMIT-17", "does not commit on closing",
        _W + "close", "self._commit(durable=True)", "pass")  # fmt: skip
changed("flush-does-not-commit", "MREC-COMMIT-17", "does not commit on a flush",
        _W + "flush", "self._commit(durable=True)", "pass")  # fmt: skip

# -- reopening -----------------------------------------------------------------------------------------------------

_R = "mrec.resume:_Taker."


@mutant(
    "MREC-REOPEN-02", role="writer", mistake="shrinks no array on reopening", also=("MREC-REOPEN-04", "MREC-REOPEN-06")
)
def tail_kept() -> None:
    edit(_R + "tidy", "if array.shown != array.landed:", "if False:")
    edit("mrec.zarr_write:GrowingArray.land", "self.shown == self.landed", "self.exists")


changed("last-step-forgotten", "MREC-REOPEN-04", "takes any step after reopening",
        _R + "_take_numbers", "writer._last_step = view.steps(n - 1, n)[0]", "pass")  # fmt: skip
changed("last-update-forgotten", "MREC-REOPEN-04", "restates blocks after reopening",
        _R + "_take_block", "state.last = Block(", "_ = Block(")  # fmt: skip
changed("last-cell-forgotten", "MREC-REOPEN-04", "restates the cell after reopening",
        _R + "_take_cell", "state.last = Cell(", "_ = Cell(")  # fmt: skip
changed("times-forgotten", "MREC-REOPEN-04", "forgets whether there are times after reopening",
        _R + "_take_numbers", "writer._timed = times is not None", "pass")  # fmt: skip
changed("unknown-attributes-dropped", "MREC-REOPEN-05", "drops attributes of the trajectory that it does not know",
        _R + "take", "if key not in _OWN}", "if False}")  # fmt: skip
changed("unknown-block-attributes-dropped", "MREC-REOPEN-05", "drops attributes of a block that it does not know",
        _R + "_take_block", "if key not in _OWN_OF_BLOCK}", "if False}")  # fmt: skip
changed("unknown-cell-attributes-dropped", "MREC-REOPEN-05", "drops attributes of the cell that it does not know",
        _R + "_take_cell", "if key not in _OWN_OF_BOX}", "if False}")  # fmt: skip
changed("unknown-array-attributes-dropped", "MREC-REOPEN-05", "drops attributes of an array that it does not know",
        _R + "_adopt", "fresh.document, fresh.separator = document,",
        "document = {**document, 'attributes': {}}\n    fresh.document, fresh.separator = document,")  # fmt: skip
changed("tail-of-a-chunk-counted", "MREC-REOPEN-06", "goes on behind the rows of a tail",
        _R + "_adopt", "fresh.landed, fresh.shown = rows, node.shape[0]", "rows = node.shape[0]\n    fresh.landed, fresh.shown = rows, node.shape[0]",
        also=("MREC-REOPEN-02", "MREC-REOPEN-04", "MREC-REOPEN-03"))  # fmt: skip
changed("chunk-begun-anew", "MREC-REOPEN-03", "forgets the rows of a chunk that is not full",
        _R + "_adopt", "if partial:", "if partial:\n        fresh.tail = node.rows(rows - partial, rows) * 0 if fresh.dtype != 'string' and fresh.dtype != 'bool' else node.rows(rows - partial, rows)\n    if False:",
        also=("MREC-REOPEN-04", "MREC-REOPEN-06"))  # fmt: skip
changed("tail-of-the-index-counted", "MREC-REOPEN-01", "takes every entry of an index for committed",
        _R + "_take_block", "self._adopt(view.array(index[0]), updates.count,", "self._adopt(view.array(index[0]), view.array(index[0]).shape[0],",
        also=("MREC-REOPEN-02", "MREC-REOPEN-04", "MREC-REOPEN-06"))  # fmt: skip


@mutant("MREC-CODEC-15", role="writer", mistake="keeps 32 bits of a real in its chunks", also=("MREC-BLOCK-24",))
def reals_lose_bits() -> None:
    edit("mrec.zarr_write:GrowingArray._whole", "missing = ",
         "if self.dtype == 'f64':\n        chunk = chunk.astype('<f4').astype('<f8')\n    missing = ")  # fmt: skip
