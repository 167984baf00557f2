"""Writers of mrec that do not refuse what they have to refuse."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from trajconform.harness import mutants
from trajconform.harness.mutants import edit, mutant, swap

changed = partial(mutants.changed, role="writer")
_W = "mrec.writer:MrecWriter."
_BLOCK, _COLUMN, _NUMBER, _META = _W + "_check_block", _W + "_check_column", _W + "_check_number", _W + "_check_meta"

# -- steps and times -----------------------------------------------------------------------------------------------

changed("steps-in-any-order", "MREC-STEP-02", "takes steps in any order",
        _NUMBER, "self._last_step is not None and", "False and")  # fmt: skip
changed("equal-steps", "MREC-STEP-02", "takes a step that equals the one before",
        _NUMBER, "frame.step <= self._last_step:", "frame.step < self._last_step:")  # fmt: skip
changed("steps-wrap", "MREC-STEP-37", "lets steps wrap around in 64 bits",
        _W + "append", "self._check_number(frame)",
        "frame = replace(frame, step=(frame.step + 2**63) % 2**64 - 2**63)\n        self._check_number(frame)")  # fmt: skip
changed("step-beyond-i64", "MREC-STEP-37", "refuses steps below the 64-bit signed integers only",
        _NUMBER, "_I64[0] <= frame.step <= _I64[1]", "_I64[0] <= frame.step")  # fmt: skip
changed("late-time-dropped", "MREC-STEP-33", "drops a time that comes after frames without one",
        _NUMBER, "self._timed != (frame.time is not None):", "self._timed and frame.time is None:")  # fmt: skip
changed("missing-time-taken", "MREC-STEP-34", "takes a frame without a time among frames with times",
        _NUMBER, "self._timed != (frame.time is not None):", "not self._timed and frame.time is not None:")  # fmt: skip

# -- blocks and columns --------------------------------------------------------------------------------------------

changed("undeclared-block-dropped", "MREC-DECL-17", "drops a block that is not declared",
        _W + "append", "for name, block in frame.blocks.items()}",
        "for name, block in frame.blocks.items() if name in self.declaration.blocks}")  # fmt: skip
changed("undeclared-key-dropped", "MREC-DECL-19", "drops a metadata key that is not declared",
        _META, "if key not in self.declaration.meta:", "if False:")  # fmt: skip


@mutant("MREC-DECL-18", role="writer", mistake="stores the declared columns of a block and drops the others")
def extra_columns_dropped() -> None:
    edit(_BLOCK, "if block.columns.keys() != declared.columns.keys():",
         "if not block.columns.keys() >= declared.columns.keys():")  # fmt: skip


@mutant("MREC-RAGGED-02", role="writer", mistake="fills a column that a frame leaves out with zeros")
def missing_column_is_zero() -> None:
    @swap(_BLOCK)
    def check(original: Any, self: Any, name: str, block: Any) -> Any:
        from trajconform.model.arrays import NUMPY_DTYPES, strings
        from trajconform.model.trajectory import Block, Column

        declared = self.declaration.blocks.get(name)
        columns = dict(block.columns)
        for c, entry in declared.columns.items() if declared is not None else ():
            shape = (block.rows, *entry.trailing)
            if c not in columns and entry.dtype == "string":
                columns[c] = Column(strings([""] * int(np.prod(shape))).reshape(shape), None)
            elif c not in columns:
                columns[c] = Column(np.zeros(shape, NUMPY_DTYPES[entry.dtype]), None)
        return original(self, name, Block(block.rows, columns, block.shape))


changed("any-dtype-cast", "MREC-DECL-21", "casts a column to the declared dtype",
        _COLUMN, "if stored != entry.dtype:", 'if (stored == "string") != (entry.dtype == "string"):')  # fmt: skip
changed("text-cast-to-number", "MREC-DECL-21", "refuses a dtype only where the cast fails",
        _COLUMN, "if stored != entry.dtype:",
        'if stored == "string" != entry.dtype:\n'
        "        values = np.full(values.shape, 0, NUMPY_DTYPES[entry.dtype])\n    if False:")  # fmt: skip


@mutant("MREC-DECL-27", role="writer", mistake="brings the rows of a column to the declared shape by itself")
def rows_reshaped() -> None:
    edit(_COLUMN, "if tuple(values.shape[1:]) != entry.trailing:",
         "if values.shape[1:] != entry.trailing and entry.dtype != 'string':\n"
         "        values = np.resize(values, (len(values), *entry.trailing))\n    if False:")  # fmt: skip


@mutant("MREC-RAGGED-03", role="writer", mistake="repeats or cuts the rows of a column to the block's count")
def rows_resized() -> None:
    edit(_COLUMN, "if len(values) != block.rows:",
         "if len(values) != block.rows:\n"
         "        values = np.resize(values, (block.rows, *values.shape[1:]))\n    if False:")  # fmt: skip


changed("structural-shape-ignored", "MREC-BLOCK-18", "takes any row count whatever the structural shape",
        _BLOCK, "if declared.structural_shape is not None and", "if False and")  # fmt: skip
changed("structural-shape-empty", "MREC-BLOCK-18", "takes an update of zero rows whatever the structural shape",
        _BLOCK, "if declared.structural_shape is not None and", "if declared.structural_shape is not None and block.rows and")  # fmt: skip
changed("structural-shape-fewer", "MREC-BLOCK-18", "takes fewer rows than the structural shape asks for",
        _BLOCK, "block.rows != math.prod", "block.rows > math.prod")  # fmt: skip
changed("structural-shape-more", "MREC-BLOCK-18", "takes more rows than the structural shape asks for",
        _BLOCK, "block.rows != math.prod", "block.rows < math.prod")  # fmt: skip
changed("mask-dropped", "MREC-NULL-12", "drops the mask of a column that is not nullable",
        _COLUMN, "if not mask.all():", "if False:")  # fmt: skip
changed("mask-of-any-length", "MREC-NULL-18", "repeats or cuts a mask to the rows of the block",
        _COLUMN, "if mask.dtype != np.bool_ or mask.shape != (block.rows,):",
        "mask = np.resize(mask, (block.rows,))\n        if False:")  # fmt: skip

# -- metadata ------------------------------------------------------------------------------------------------------


@mutant("MREC-META-18", role="writer", mistake="stores zero for a key that a frame omits and that has no fill")
def omitted_key_is_zero() -> None:
    @swap(_META)
    def check(original: Any, self: Any, frame: Any) -> Any:
        from dataclasses import replace

        from trajconform.model.arrays import NUMPY_DTYPES, strings
        from trajconform.model.trajectory import MetaValue
        from trajconform.mrec.declaration import NO_FILL, TAGS

        meta = dict(frame.meta)
        for key, entry in self.declaration.meta.items():
            if key in meta or entry.fill is not NO_FILL:
                continue
            tag = TAGS[entry.dtype]
            if entry.dtype == "json":
                meta[key] = MetaValue("json", None)
            elif tag.stored == "string":
                meta[key] = MetaValue(entry.dtype, strings([""]).reshape(()))
            else:
                meta[key] = MetaValue(entry.dtype, np.zeros(tag.trailing, NUMPY_DTYPES[tag.stored]))
        return original(self, replace(frame, meta=meta))


def _taken(clause: str, mistake: str) -> None:
    """A metadata value that is refused by a clause is stored as zero."""

    def apply() -> None:
        @swap("mrec.writer:coerce_meta")
        def coerce(original: Any, tag: str, given: Any) -> Any:
            from trajconform.model.arrays import NUMPY_DTYPES, strings
            from trajconform.mrec.declaration import TAGS
            from trajconform.mrec.writer import _meta_clause

            try:
                return original(tag, given)
            except ValueError:
                if _meta_clause(tag, given) != clause:
                    raise
            swap("mrec.writer:_check_text")(lambda *_: None)
            form = TAGS[tag]
            if form.stored == "string":
                return strings(["null" if tag == "json" else ""]).reshape(())
            return np.zeros(form.trailing, NUMPY_DTYPES[form.stored])

    mutant(clause, role="writer", mistake=mistake, name=f"taken-{clause.lower()}")(apply)


_taken("MREC-META-23", "takes a real for an integer tag")
_taken("MREC-META-24", "takes an integer outside the range of its tag")
_taken("MREC-META-25", "takes a boolean for a number")
_taken("MREC-META-26", "takes a vector of another width")
_taken("MREC-META-27", "takes a document that is not finite JSON")
_taken("MREC-META-37", "takes a number for a boolean")
_taken("MREC-META-38", "takes an integer that binary64 does not hold for an f64 key")
_taken("MREC-META-39", "takes a value of another kind than its tag's")


@mutant("MREC-META-38", role="writer", mistake="rounds an integer for an f64 key to the nearest real")
def integer_rounded() -> None:
    @swap("mrec.writer:coerce_meta")
    def coerce(original: Any, tag: str, given: Any) -> Any:
        from trajconform.mrec.declaration import TAGS

        if tag.startswith("f64") and given.dtype != "json" and given.value.shape == TAGS[tag].trailing:
            return given.value.astype("<f8") if given.value.dtype.kind in "iu" else original(tag, given)
        return original(tag, given)


@mutant("MREC-META-24", role="writer", mistake="lets an integer wrap around in its tag")
def integers_wrap() -> None:
    @swap("mrec.writer:coerce_meta")
    def coerce(original: Any, tag: str, given: Any) -> Any:
        from trajconform.model.arrays import NUMPY_DTYPES
        from trajconform.mrec.declaration import TAGS

        form = TAGS[tag]
        integers = form.stored in ("i32", "i64", "u32", "u64") and given.dtype != "json"
        if integers and given.value.dtype.kind in "iu" and given.value.shape == form.trailing:
            return given.value.astype(NUMPY_DTYPES[form.stored])
        return original(tag, given)


@mutant("MREC-META-23", role="writer", mistake="takes a real without a fraction for an integer tag")
def whole_real_is_integer() -> None:
    @swap("mrec.writer:coerce_meta")
    def coerce(original: Any, tag: str, given: Any) -> Any:
        from trajconform.model.arrays import NUMPY_DTYPES
        from trajconform.mrec.declaration import TAGS

        form = TAGS[tag]
        if form.stored in ("i32", "i64", "u32", "u64") and given.dtype != "json":
            values = given.value
            if values.dtype.kind == "f" and values.shape == form.trailing and (values == np.floor(values)).all():
                return values.astype(NUMPY_DTYPES[form.stored])
        return original(tag, given)


# -- declarations --------------------------------------------------------------------------------------------------


def _declared(clause: str, mistake: str) -> None:
    """A declaration that a writer refuses by a clause is taken, without the part that makes no sense."""

    def apply() -> None:
        @swap("mrec.writer:parse_declaration")
        def parse(original: Any, document: Any) -> Any:
            from trajconform.mrec.writer import _declaration_clause

            parsed, found = original(document)
            return parsed, [v for v in found if v.level == "SHOULD" or _declaration_clause(v) != clause]

    mutant(clause, role="writer", mistake=mistake, name=f"declared-{clause.lower()}")(apply)


def _unseen(clause: str, stored: str, mistake: str) -> None:
    """One of the rules that a clause gathers is not held."""

    def apply() -> None:
        @swap("mrec.writer:parse_declaration")
        def parse(original: Any, document: Any) -> Any:
            parsed, found = original(document)
            return parsed, [v for v in found if v.clause != stored]

    mutant(clause, role="writer", mistake=mistake, name=f"unseen-{stored.lower()}")(apply)


_declared("MREC-NAME-01", "takes a block of a reserved name")
_declared("MREC-NAME-02", "takes a column of a reserved name")
_declared("MREC-META-29", "takes a tag that is none")
_declared("MREC-META-30", "takes a fill that is no value of its tag")
_declared("MREC-META-36", "takes a column of json")
_declared("MREC-PREC-07", "takes any precision")
_declared("MREC-REF-10", "takes any targets")
_declared("MREC-ALIGN-16", "takes any alignment")
_declared("MREC-DECL-29", "takes any dtype of a column")
_unseen("MREC-PREC-07", "MREC-PREC-01", "takes a precision outside the bounds")
_unseen("MREC-PREC-07", "MREC-PREC-02", "takes a precision on a column that is not f64")
_unseen("MREC-ALIGN-16", "MREC-ALIGN-02", "takes an alignment with a block that is not declared")
_unseen("MREC-ALIGN-16", "MREC-ALIGN-03", "takes a block that is aligned with itself")
_unseen("MREC-ALIGN-16", "MREC-ALIGN-04", "takes a chain of alignments")
_unseen("MREC-ALIGN-16", "MREC-ALIGN-05", "takes a structural shape on an aligned block")
_unseen("MREC-ALIGN-16", "MREC-ALIGN-06", "takes a column that target and aligned block both have")

# -- blocks together, the cell, reopening --------------------------------------------------------------------------

changed("aligned-count-ignored", "MREC-ALIGN-14", "takes aligned blocks of any row count",
        _W + "_check_aligned", "if against.rows != here.rows:", "if False:")  # fmt: skip
changed("aligned-carried-ignored", "MREC-ALIGN-14", "looks at aligned blocks only where a frame presents them",
        _W + "_check_aligned", "if against.rows != here.rows:", "if against.rows != here.rows and name in blocks:")  # fmt: skip
changed("aligned-empty-taken", "MREC-ALIGN-14", "takes an aligned block of zero rows",
        _W + "_check_aligned", "if against.rows != here.rows:", "if against.rows != here.rows and here.rows:")  # fmt: skip
changed("aligned-without-target", "MREC-ALIGN-15", "takes an aligned block whose target is absent",
        _W + "_check_aligned", "if against is None:", "if against is None:\n        return\n    if False:")  # fmt: skip
changed("aligned-in-the-system", "MREC-ALIGN-18", "takes an aligned block with the name of a system block",
        _W + "create", "if entry.aligned_with is not None and name in system:", "if False:")  # fmt: skip
changed("system-count-ignored", "MREC-SYSTEM-06", "takes any row count beside a system block",
        _W + "_check_system", "if here.rows != system.rows:", "if here.rows != system.rows:\n        return\n    if False:")  # fmt: skip
changed("system-count-fewer", "MREC-SYSTEM-06", "takes fewer rows than the system block has",
        _W + "_check_system", "if here.rows != system.rows:", "if here.rows < system.rows:\n        return\n    if here.rows > system.rows:")  # fmt: skip
changed("system-ids-ignored", "MREC-SYSTEM-07", "does not compare ids with the system block",
        _W + "_check_system", 'if "id" in here.columns and', "if False and")  # fmt: skip
changed("system-ids-sorted", "MREC-SYSTEM-07", "compares ids with the system block in sorted order",
        _W + "_check_system", "same_bits(mine.values, theirs.values)",
        "same_bits(np.sort(mine.values), np.sort(theirs.values))")  # fmt: skip
changed("references-unseen", "MREC-REF-09", "does not look at references",
        _W + "_check_together", "if references and", "if False and")  # fmt: skip
changed("references-one-behind", "MREC-REF-09", "takes a reference one behind the last row",
        _W + "_check_references", "int(valid.max()) >= count:", "int(valid.max()) > count:")  # fmt: skip
changed("references-to-nothing", "MREC-REF-09", "takes references to a block that is absent",
        _W + "_check_references", "if against is None:", "if against is None:\n                continue\n            if False:")  # fmt: skip
changed("references-when-presented", "MREC-REF-09", "looks at references only where their own block is presented",
        _W + "_check_together", "(name in blocks or any(t in blocks for t in references.values()))", "name in blocks")  # fmt: skip
changed("cell-changes-kind", "MREC-CELL-26", "takes a defined cell after an undefined one, and the other way round",
        "mrec.writer:_CellState.check", "self.defined is not None and", "False and")  # fmt: skip
changed("cell-becomes-undefined", "MREC-CELL-26", "takes an undefined cell after a defined one",
        "mrec.writer:_CellState.check", "self.defined != cell.defined:", "not self.defined and cell.defined:")  # fmt: skip
changed("cell-becomes-defined", "MREC-CELL-26", "takes a defined cell after an undefined one",
        "mrec.writer:_CellState.check", "self.defined != cell.defined:", "self.defined and not cell.defined:")  # fmt: skip
changed("reopened-under-any-declaration", "MREC-DECL-25", "reopens under any declaration",
        "mrec.resume:resume", "if declaration is not None:", "if False:")  # fmt: skip
changed("derived-dtype-of-the-first", "MREC-DECL-23", "derives dtype and shape of a column from the first frame",
        "mrec.writer:derive_declaration", "if (known.dtype, known.trailing) != (given.dtype, given.trailing):", "if False:")  # fmt: skip
changed("derived-trailing-of-the-first", "MREC-DECL-23", "derives the shape of a row from the first frame",
        "mrec.writer:derive_declaration", "if (known.dtype, known.trailing) != (given.dtype, given.trailing):", "if known.dtype != given.dtype:")  # fmt: skip
changed("derived-dtype-unseen", "MREC-DECL-23", "derives the dtype from the first frame",
        "mrec.writer:derive_declaration", "if (known.dtype, known.trailing) != (given.dtype, given.trailing):", "if known.trailing != given.trailing:")  # fmt: skip
