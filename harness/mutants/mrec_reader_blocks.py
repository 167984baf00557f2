"""Readers of mrec with one mistake each: blocks, regular blocks, states, resolution, masks, declarations, references."""

from __future__ import annotations

from functools import partial
from typing import Any

from trajconform.harness import mutants
from trajconform.harness.mutants import edit, forget, mutant, swap, without

changed = partial(mutants.changed, role="reader")
_PREFIX, _INDEXED, _REGULAR = "mrec.view:View.prefix", "mrec.view:View._indexed", "mrec.view:View._regular"
_MARKERS, _FIND, _ROWS = "mrec.view:View._markers", "mrec.view:Updates.find", "mrec.view:Updates.rows"
_AT, _WINDOW = "mrec.reader:_BlockWindow.at", "mrec.reader:_BlockWindow.__init__"

# -- blocks --------------------------------------------------------------------------------------------------------

changed("ordinals-may-repeat", "MREC-BLOCK-05", "takes ordinals that repeat",
        _PREFIX, "joined[1:] <= joined[:-1]", "joined[1:] < joined[:-1]", also=("MREC-CELL-03",))  # fmt: skip
changed("ordinals-not-compared", "MREC-BLOCK-05", "does not look at the order of ordinals",
        _PREFIX, "if len(wrong):", "if False:", also=("MREC-CELL-03",))  # fmt: skip
changed("last-row-lost", "MREC-BLOCK-08", "loses the last row of an update with several",
        _ROWS, "int(self.starts[update + 1])", "max(int(self.starts[update + 1]) - 1, min(int(self.starts[update]) + 1, int(self.starts[update + 1])))",
        also=("MREC-RESOLVE-03", "MREC-BLOCK-23"))  # fmt: skip
changed("offsets-wrap", "MREC-BLOCK-09", "lets the difference of offsets wrap around",
        _INDEXED, "if len(wrong):", "if False:")  # fmt: skip
changed("first-offset-pair-alone", "MREC-BLOCK-09", "looks at the first two offsets alone",
        _INDEXED, "starts[1:] < starts[:-1]", "starts[1:2] < starts[:1]")  # fmt: skip
changed("tail-updates-resolved", "MREC-BLOCK-10", "takes entries at nstep for committed",
        _PREFIX, "part >= limit", "part > limit", also=("MREC-CELL-36", "MREC-COMMIT-06"))  # fmt: skip
changed("tail-updates-checked", "MREC-BLOCK-10", "checks the entries of the tail too",
        _PREFIX, "part = part[: beyond[0]] if ends else part", "part = part", also=("MREC-CELL-36", "MREC-COMMIT-06"))  # fmt: skip
changed("offset-counts-updates", "MREC-BLOCK-11", "refuses an offset that is longer than its updates",
        _INDEXED, "array.shape[0] < count + 1", "array.shape[0] != count + 1", also=("MREC-COMMIT-05", "MREC-BLOCK-10"))  # fmt: skip
changed("offset-too-short", "MREC-BLOCK-12", "takes the end of the column for a missing last offset",
        _INDEXED, "if array.shape[0] < count + 1:", "if array.shape[0] < count + 1:\n        return Updates(array.shape[0] - 1, ordinals[: array.shape[0] - 1], array.rows(0, array.shape[0]))\n    if False:")  # fmt: skip
changed("offset-always-needed", "MREC-BLOCK-13", "asks for an offset without any update",
        _INDEXED, "if not count:", "if not count and self.array(f'{node}/offset').shape[0]:")  # fmt: skip


@mutant("MREC-BLOCK-14", role="reader", mistake="hands back the rows that a short column has")
def short_column_cut() -> None:
    forget("MREC-BLOCK-14", "reader")

    @swap("mrec.node:ArrayNode.rows")
    def rows(original: Any, self: Any, first: int, stop: int) -> Any:
        there = self.shape[0] if self.shape else 0
        return original(self, min(first, there), min(stop, there))


without("MREC-BLOCK-22", role="reader", mistake="leaves a declared column out where its array is missing")
changed("columns-lose-bits", "MREC-BLOCK-23", "normalises -0.0 in columns",
        _WINDOW, "block.columns[name].rows(begin, end) for name in names", "(v + 0.0 if (v := block.columns[name].rows(begin, end)).dtype == 'f8' else v) for name in names")  # fmt: skip
changed("rows-reversed", "MREC-BLOCK-23", "hands rows back in another order",
        _AT, "Column(values[rows],", "Column(values[rows][::-1],", also=("MREC-SYSTEM-04",))  # fmt: skip
without("MREC-BLOCK-25", role="reader", mistake="takes a block without offset for absent")

# -- regular blocks ------------------------------------------------------------------------------------------------

without("MREC-REGULAR-03", role="reader", mistake="takes a block with one marker for absent")
changed("one-marker-is-enough", "MREC-REGULAR-03", "takes one marker for both",
        _MARKERS, "if len(markers) == 1:", "if False:")  # fmt: skip
changed("size-as-float", "MREC-REGULAR-04", "takes 4.0 for a number of rows",
        _MARKERS, "not is_int(size)", "not isinstance(size, (int, float)) or isinstance(size, bool)")  # fmt: skip
changed("size-as-bool", "MREC-REGULAR-04", "takes true for one row",
        _MARKERS, "not is_int(size)", "not isinstance(size, int)")  # fmt: skip
changed("size-of-zero", "MREC-REGULAR-04", "takes a block of zero rows an update for absent",
        _MARKERS, "size <= 0", "size < 0")  # fmt: skip
changed("dense-not-looked-at", "MREC-REGULAR-05", "does not look at the value of dense_updates",
        _MARKERS, 'if attributes.get("dense_updates", True) is not True:', "if False:")  # fmt: skip
changed("dense-truthy", "MREC-REGULAR-05", "takes whatever is truthy for true",
        _MARKERS, 'if attributes.get("dense_updates", True) is not True:', 'if not attributes.get("dense_updates", True):')  # fmt: skip
without("MREC-REGULAR-06", role="reader", mistake="takes a block without columns for absent, whatever markers it has")
changed("length-of-the-longest", "MREC-REGULAR-07", "counts updates by the longest column",
        _REGULAR, "min(array.shape[0] for", "max(array.shape[0] for", also=("MREC-REGULAR-10",))  # fmt: skip
changed("regular-one-row-late", "MREC-REGULAR-08", "takes the rows of the next update",
        _AT, "rows = slice(first - self.begin, stop - self.begin)", "rows = slice(first - self.begin, stop - self.begin)\n    if self.block.updates.starts is None and self.block.updates.size > 1:\n        columns = {n: Column(__import__('numpy').roll(v, 1, axis=0)[rows], None) for n, v in self.values.items()}\n        return Block(stop - first, columns, self.block.declared.structural_shape)",
        also=("MREC-BLOCK-23",))  # fmt: skip
changed("remainder-refused", "MREC-REGULAR-09", "refuses rows that fill no update",
        _REGULAR, "return Updates(min(", "if any(a.shape[0] % size for a in columns.values()):\n        raise refuse('MREC-REGULAR-09', node, 'remainder')\n    return Updates(min(")  # fmt: skip
changed("remainder-kept", "MREC-REGULAR-09", "takes a remainder for one more update",
        _REGULAR, "min(shortest // size, self.nstep)", "min(-(-shortest // size), self.nstep)",
        also=("MREC-REGULAR-07",))  # fmt: skip
changed("lengths-have-to-agree", "MREC-REGULAR-10", "refuses columns that differ in length",
        _REGULAR, "return Updates(min(", "if len({a.shape[0] // size for a in columns.values()}) > 1:\n        raise refuse('MREC-REGULAR-10', node, 'lengths')\n    return Updates(min(",
        also=("MREC-REGULAR-07",))  # fmt: skip
changed("markers-before-index", "MREC-REGULAR-12", "prefers the markers to the index arrays",
        "mrec.view:View._view_block", "if indexed:", "if indexed and not size:")  # fmt: skip
changed("one-index-array-refused", "MREC-REGULAR-13", "refuses markers beside one index array",
        "mrec.view:View._view_block", "elif size:", "elif size and not self.has(f'{node}/step_index') and not self.has(f'{node}/offset'):")  # fmt: skip
changed("neither-refused", "MREC-REGULAR-21", "refuses a block without markers and index",
        "mrec.view:View._view_block", 'elif not markers and self.has(f"{node}/step_index"):', 'elif not self.has(f"{node}/step_index"):\n            raise refuse("MREC-REGULAR-21", node, "no index")\n        elif not markers:')  # fmt: skip
changed("rows-without-index-used", "MREC-REGULAR-22", "takes rows without an index for one update",
        "mrec.view:View._view_block", 'elif not markers and self.has(f"{node}/step_index"):', 'elif not self.has(f"{node}/step_index") and columns and self.nstep and min(a.shape[0] for a in columns.values()):\n            updates = Updates(1, size=min(a.shape[0] for a in columns.values()))\n        elif not markers and self.has(f"{node}/step_index"):')  # fmt: skip
without("MREC-REGULAR-24", role="reader", mistake="takes a regular block that lacks a column for absent")

# -- states and resolution -----------------------------------------------------------------------------------------

changed("empty-is-absent", "MREC-STATE-03", "takes an empty block for an absent one",
        _AT, "columns: dict[str, Column] = {}", "columns = {}\n    if stop == first:\n        return None",
        also=("MREC-STATE-01", "MREC-STATE-08", "MREC-RESOLVE-04", "MREC-DECL-26"))  # fmt: skip


@mutant("MREC-STATE-02", "MREC-RESOLVE-02", "MREC-RESOLVE-06", role="reader", mistake="hands an absent block back as an empty one",
        also=("MREC-STATE-01", "MREC-STATE-11", "MREC-RESOLVE-06", "MREC-REGULAR-21", "MREC-REGULAR-22", "MREC-DECL-07"))  # fmt: skip
def absent_is_empty() -> None:
    @swap("mrec.reader:_BlockWindow.at")
    def at(original: Any, self: Any, ordinal: int) -> Any:
        import numpy as np

        from trajconform.model.arrays import NUMPY_DTYPES
        from trajconform.model.trajectory import Block, Column

        declared = self.block.declared
        none = {n: Column(np.zeros((0, *c.trailing), NUMPY_DTYPES[c.dtype]), None) for n, c in declared.columns.items()}
        return original(self, ordinal) or Block(0, none, declared.structural_shape)


changed("empty-by-any-update", "MREC-STATE-01", "passes over updates without rows",
        _FIND, 'return int(np.searchsorted(self.ordinals, np.uint64(ordinal), side="right")) - 1', 'at = int(np.searchsorted(self.ordinals, np.uint64(ordinal), side="right")) - 1\n    while at > 0 and self.starts[at] == self.starts[at + 1]:\n        at -= 1\n    return at',
        also=("MREC-STATE-03", "MREC-RESOLVE-04", "MREC-RESOLVE-01"))  # fmt: skip
changed("nothing-carried-forward", "MREC-STATE-04", "hands a block back at its updates alone",
        _AT, "if update < 0:", "if update < 0 or self.block.updates.ordinal(update) != ordinal:",
        also=("MREC-STATE-08", "MREC-RESOLVE-01", "MREC-RESOLVE-05"))  # fmt: skip


@mutant("MREC-STATE-08", role="reader", mistake="leaves a block out where the frame gives none",
        also=("MREC-STATE-04", "MREC-STATE-01", "MREC-RESOLVE-01", "MREC-RESOLVE-05"))  # fmt: skip
def left_out_when_not_given() -> None:
    edit(
        "mrec.reader:_BlockWindow.at",
        "if update < 0:",
        "if update < 0 or self.block.updates.ordinal(update) != ordinal:",
    )


@mutant("MREC-STATE-11", "MREC-RESOLVE-02", role="reader", mistake="hands the first update back before it came",
        also=("MREC-STATE-02", "MREC-STATE-01"))  # fmt: skip
def first_update_from_the_start() -> None:
    @swap("mrec.view:Updates.find")
    def find(original: Any, self: Any, ordinal: int) -> int:
        return max(original(self, ordinal), 0) if self.count else -1


changed("update-from-the-next-frame-on", "MREC-RESOLVE-01", "lets an update hold from the next frame on",
        _FIND, 'side="right"', 'side="left"', also=("MREC-STATE-01", "MREC-STATE-04"))  # fmt: skip
changed("rows-start-one-late", "MREC-RESOLVE-03", "takes the rows of an update to start one late",
        _ROWS, "return int(self.starts[update])", "return min(int(self.starts[update]) + 1, int(self.starts[update + 1]))",
        also=("MREC-BLOCK-08", "MREC-BLOCK-23"))  # fmt: skip
changed("empty-range-refused", "MREC-RESOLVE-04", "refuses a range of zero rows",
        _AT, "columns: dict[str, Column] = {}", "columns = {}\n    if stop == first:\n        raise Refused(__import__('trajconform.model.errors').model.errors.Violation('MREC-RESOLVE-04', '', 'empty'))",
        also=("MREC-STATE-03",))  # fmt: skip
changed("regular-not-carried", "MREC-RESOLVE-05", "hands a regular block back at its updates alone",
        _FIND, "return min(ordinal, self.count - 1)", "return ordinal if ordinal < self.count else -1",
        also=("MREC-STATE-04", "MREC-STATE-08"))  # fmt: skip
changed("cell-from-the-next-frame-on", "MREC-RESOLVE-07", "lets a cell hold from the next frame on",
        "mrec.reader:MrecFile._cells", 'side="right"', 'side="left"', also=("MREC-CELL-17", "MREC-CELL-07", "MREC-CELL-08"))  # fmt: skip
changed("carry-forward-restarts", "MREC-RESOLVE-09", "starts carry-forward anew where a range starts",
        _WINDOW, "low, high = max(updates.find(first), 0)", "low, high = max(updates.find(first), 0) if first == 0 or updates.ordinals is None else updates.find(first - 1) + 1")  # fmt: skip

# -- the cell ------------------------------------------------------------------------------------------------------

_CELL, _CELLS, _CELL_ROWS = "mrec.view:View.cell", "mrec.reader:MrecFile._cells", "mrec.view:View.cell_rows"
without("MREC-CELL-03", role="reader", mistake="does not look at the order of the cell's updates")
changed("default-cell", "MREC-CELL-04", "hands a unit cell back where there is none",
        _CELLS, "yield None if update < 0 else", "yield Cell(np.eye(3), np.zeros(3), np.ones(3, bool), True) if update < 0 else")  # fmt: skip
changed("origin-invented", "MREC-CELL-05", "takes a missing origin for the middle of the cell",
        _CELL_ROWS, "np.zeros((stop - first, 3))", "np.full((stop - first, 3), 0.5)", also=("MREC-CELL-38",))  # fmt: skip
changed("open-by-default", "MREC-CELL-06", "takes a defined cell without flags for open",
        _CELL_ROWS, "np.full((stop - first, 3), view.defined)", "np.full((stop - first, 3), False)")  # fmt: skip
changed("cell-at-every-frame", "MREC-CELL-07", "finds no cell without an index",
        "mrec.view:View._cell_arrays", 'elif self.nstep:', "elif False:", also=("MREC-CELL-31",))  # fmt: skip
changed("attribute-cell-ignored", "MREC-CELL-08", "ignores the cell in the attributes",
        _CELL, 'if "vectors" not in attributes:', "if True:")  # fmt: skip
changed("attributes-before-arrays", "MREC-CELL-09", "prefers the cell in the attributes to the arrays",
        _CELL, 'if self.has("trajectory/box/vectors"):', 'if self.has("trajectory/box/vectors") and "vectors" not in attributes:')  # fmt: skip
changed("undefined-with-its-vectors", "MREC-CELL-13", "hands back the stored vectors of an undefined cell",
        _CELLS, "matrix if view.defined else np.eye(3)", "matrix")  # fmt: skip
changed("undefined-is-periodic", "MREC-CELL-15", "takes an undefined cell without flags for periodic",
        _CELL_ROWS, "np.full((stop - first, 3), view.defined)", "np.full((stop - first, 3), True)")  # fmt: skip
changed("cell-not-carried", "MREC-CELL-17", "hands the cell back at its updates alone",
        _CELLS, "for update in found.tolist():", "for i, update in enumerate(found.tolist()):\n        if update >= 0 and int(view.ordinals[update]) != first + i:\n            yield None\n            continue",
        also=("MREC-RESOLVE-07", "MREC-CELL-07", "MREC-CELL-08"))  # fmt: skip
changed("rows-without-index-are-updates", "MREC-CELL-31", "takes the rows of vectors for one update a frame",
        "mrec.view:View._cell_arrays", "ordinals = np.zeros(1, dtype=\"<u8\")", "ordinals = np.arange(min(self.array(f'{node}/vectors').shape[0], self.nstep), dtype='<u8')",
        also=("MREC-CELL-07",))  # fmt: skip
changed("vectors-transposed", "MREC-CELL-32", "takes lattice vectors for rows",
        _CELLS, "Cell(matrix if", "Cell(matrix.T.copy() if")  # fmt: skip
changed("box-without-vectors-refused", "MREC-CELL-35", "refuses a box without vectors",
        _CELL, 'if "vectors" not in attributes:', 'if "vectors" not in attributes and attributes.setdefault("vectors") is not None:')  # fmt: skip
changed("cell-tail-used", "MREC-CELL-36", "takes every row of the cell's index for committed",
        "mrec.view:View._cell_arrays", 'self.prefix(f"{node}/step_index", "MREC-CELL-03", "MREC-CELL-02")', 'self.array(f"{node}/step_index").rows(0, self.array(f"{node}/step_index").shape[0])',
        also=("MREC-CELL-03", "MREC-COMMIT-06"))  # fmt: skip
changed("undefined-without-origin", "MREC-CELL-38", "drops the origin of an undefined cell",
        _CELLS, ", origin, boundary, view.defined)", ", origin if view.defined else np.zeros(3), boundary, view.defined)")  # fmt: skip
changed("undefined-by-default", "MREC-CELL-40", "takes a cell without cell_defined for undefined",
        _CELL, 'attributes.get("cell_defined", True)', 'attributes.get("cell_defined", False)',
        also=("MREC-CELL-06",))  # fmt: skip

# -- masks ---------------------------------------------------------------------------------------------------------

_MASKS = "mrec.view:View._masks"
changed("mask-one-row-late", "MREC-NULL-02", "shifts the mask by one row",
        _AT, "mask = self.masks[name][rows]", "mask = __import__('numpy').roll(self.masks[name], 1)[rows]")  # fmt: skip
changed("missing-mask-is-null", "MREC-NULL-03", "takes all values for null where the mask is missing",
        _AT, "if name in self.masks else None", "if name in self.masks else values[rows].reshape(stop - first, -1).any(axis=1) & False if self.block.declared.columns[name].nullable else None")  # fmt: skip


@mutant("MREC-NULL-04", role="reader", mistake="hands a mask without a false flag back as a mask")
def whole_mask_handed_back() -> None:
    edit("mrec.reader:_BlockWindow.at", "None if mask is None or mask.all() else mask", "mask")

    @swap("model.reply:encode_block")
    def encode_block(original: Any, block: Any) -> Any:
        from trajconform.model.arrays import encode_array

        out = original(block)
        masks = {n: encode_array(c.mask) for n, c in block.columns.items() if c.mask is not None}
        return {**out, "validity": masks} if masks else out


without("MREC-NULL-05", role="reader", mistake="ignores a mask that is not bool")
without("MREC-NULL-06", role="reader", mistake="ignores a mask with trailing axes")
without("MREC-NULL-07", role="reader", mistake="ignores a mask that is too short")
without("MREC-NULL-08", role="reader", mistake="ignores a mask that names no column")
changed("any-mask-counts", "MREC-NULL-10", "applies the mask of a column that is not nullable",
        _MASKS, "if not entry.nullable:", "if False:")  # fmt: skip
changed("mask-length-has-to-fit", "MREC-NULL-19", "refuses flags beyond the committed rows",
        _MASKS, "array.shape[0] < rows", "array.shape[0] != rows")  # fmt: skip
changed("precision-applied", "MREC-PREC-03", "rounds stored values to the declared precision",
        _AT, "Column(values[rows],", "Column(values[rows] if not (p := self.block.declared.columns[name].precision) else __import__('numpy').round(values[rows] / p) * p,")  # fmt: skip
changed("row-count-of-the-first-update", "MREC-RAGGED-05", "gives every update the row count of the first",
        _ROWS, "int(self.starts[update + 1])", "min(int(self.starts[update]) + int(self.starts[1]), int(self.starts[-1]))",
        also=("MREC-BLOCK-08", "MREC-RESOLVE-03", "MREC-STATE-01", "MREC-STATE-03"))  # fmt: skip
changed("last-column-left-out", "MREC-RAGGED-06", "leaves the last column out",
        _WINDOW, "names = block.declared.columns if only is None else (only,)", "names = [*block.declared.columns][:-1]",
        also=("MREC-DECL-06", "MREC-BLOCK-23", "MREC-STATE-03"))  # fmt: skip
changed("rows-sorted-by-id", "MREC-SYSTEM-04", "sorts rows by their id",
        _AT, "rows = slice(first - self.begin, stop - self.begin)", "rows = slice(first - self.begin, stop - self.begin)\n    if 'id' in self.values:\n        rows = first - self.begin + self.values['id'][rows].argsort()",
        also=("MREC-BLOCK-23",))  # fmt: skip

# -- declarations, alignment, names, references --------------------------------------------------------------------

for _clause, _mistake in (
    ("MREC-ALIGN-02", "does not look whether a target is declared"),
    ("MREC-ALIGN-03", "takes a block that is aligned with itself"),
    ("MREC-ALIGN-04", "takes chains of alignment"),
    ("MREC-ALIGN-05", "takes a structural shape of an aligned block"),
    ("MREC-ALIGN-06", "takes column names that stand in block and target"),
    ("MREC-ALIGN-07", "does not compare the row counts of block and target"),
    ("MREC-ALIGN-08", "does not look whether the target is there"),
    ("MREC-ALIGN-10", "takes an aligned block that is named like a system block"),
    ("MREC-DECL-03", "passes over columns of a dtype that it does not know"),
    ("MREC-DECL-10", "does not compare stored columns with the declaration"),
    ("MREC-NAME-06", "takes endpoints and identifiers of any dtype"),
    ("MREC-REF-04", "does not look whether a target is there"),
    ("MREC-REF-07", "does not look into the section of a target"),
    ("MREC-REF-12", "does not look whether atoms is declared"),
):
    without(_clause, role="reader", mistake=_mistake)

changed("alignment-both-ways", "MREC-ALIGN-09", "refuses a target without its aligned block",
        "mrec.rules.together:aligned_rows", "orphan = np.flatnonzero((mine != _ABSENT) & (theirs == _ABSENT))", "orphan = np.flatnonzero((mine != _ABSENT) != (theirs != _ABSENT))")  # fmt: skip
changed("target-named-like-system", "MREC-ALIGN-11", "refuses a target that is named like a system block",
        "mrec.view:View._declared", "if block.aligned_with is not None and self.store", "if (block.aligned_with is not None or any(b.aligned_with == name for b in declaration.blocks.values())) and self.store")  # fmt: skip
changed("aligned-merged", "MREC-ALIGN-12", "leaves an aligned block out, as part of its target",
        _AT, "if self.empty:", "if self.empty or self.block.declared.aligned_with is not None:")  # fmt: skip
changed("alignment-at-own-updates", "MREC-ALIGN-07", "compares row counts at the updates of the block alone",
        "mrec.rules.together:aligned_rows", "np.unique(np.concatenate([here.updates.counts()[0], there.updates.counts()[0]]))", "here.updates.counts()[0]")  # fmt: skip


@mutant("MREC-DECL-06", "MREC-DECL-08", role="reader", mistake="hands back every group that looks like a block",
        also=("MREC-DECL-09",))  # fmt: skip
def undeclared_blocks() -> None:
    @swap("mrec.view:View._declared")
    def declared(original: Any, self: Any) -> Any:
        from dataclasses import replace

        found, faults = original(self)
        return replace(found, blocks={**self._derived()[0].blocks, **found.blocks}), faults


changed("missing-group-refused", "MREC-DECL-07", "refuses a declared block without a group",
        "mrec.view:View._view_block", "return BlockView(name, declared, Updates(0), {}, {}, ())", "raise refuse('MREC-DECL-07', node, 'no group')")  # fmt: skip


@mutant("MREC-DECL-09", role="reader", mistake="hands back every array of a declared block")
def undeclared_columns() -> None:
    @swap("mrec.view:View._declared")
    def declared(original: Any, self: Any) -> Any:
        from dataclasses import replace

        found, faults = original(self)
        there = self._derived()[0].blocks
        blocks = {
            n: replace(b, columns={**there[n].columns, **b.columns}) if n in there else b
            for n, b in found.blocks.items()
        }
        return replace(found, blocks=blocks), faults


changed("nothing-derived", "MREC-DECL-11", "finds no blocks where nothing is declared",
        "mrec.view:View._derived", "derived = Declaration(blocks, meta)", "derived = Declaration({}, meta)")  # fmt: skip
changed("derived-although-declared", "MREC-DECL-11", "takes masks for no sign of a nullable column",
        "mrec.view:View._derived", "column in masked)", "False)")  # fmt: skip
changed("nullable-if-there", "MREC-DECL-13", "takes the mere presence of nullable for true",
        "mrec.declaration:_parse_column", "nullable is True, _parse_precision", "'nullable' in entry, _parse_precision")  # fmt: skip
changed("empty-columns-are-f64", "MREC-DECL-26", "hands empty columns back as f64",
        _AT, "Column(values[rows],", "Column(values[rows] if stop > first else values[rows].astype('f8'),",
        also=("MREC-STATE-03",))  # fmt: skip
changed("unknown-members-refused", "MREC-DECL-30", "refuses members of a declaration that it does not know",
        "mrec.declaration:_parse_block", "if name in RESERVED_BLOCKS:", "if set(entry) - {'columns', 'structural_shape', 'targets', 'aligned_with'}:\n        found.append(_bad('MREC-DECL-03', at, 'unknown'))\n    if name in RESERVED_BLOCKS:")  # fmt: skip
changed("box-derived-as-a-block", "MREC-DECL-31", "takes box for a block where nothing is declared",
        "mrec.view:View._derived", "if name not in RESERVED_BLOCKS else None", "if name not in RESERVED_BLOCKS or name == 'box' else None")  # fmt: skip
changed("index-derived-as-columns", "MREC-DECL-31", "takes index arrays for columns where nothing is declared",
        "mrec.view:View._derived", "column in RESERVED_COLUMNS or", "column == '_validity' or")  # fmt: skip


@mutant("MREC-REF-05", role="reader", mistake="does not compare values with the rows of their target", also=("MREC-REF-06", "MREC-REF-07"))  # fmt: skip
def references_not_compared() -> None:
    edit("mrec.rules.together:out_of_range", "for at in wrong.tolist():", "for at in ():")


changed("reference-equal-to-the-count", "MREC-REF-05", "takes a value that equals the row count",
        "mrec.rules.together:out_of_range", "reached >= np.maximum", "reached > np.maximum", also=("MREC-REF-06", "MREC-REF-07"))  # fmt: skip
changed("endpoints-by-targets-alone", "MREC-REF-06", "knows nothing of the convention for endpoints",
        "mrec.declaration:BlockDeclaration._references", '{c: "atoms" for c in ENDPOINTS if c in self.columns} | dict(self.targets)', "dict(self.targets)",
        also=("MREC-REF-12",))  # fmt: skip
changed("null-rows-compared", "MREC-REF-08", "compares null rows too",
        "mrec.rules.together:out_of_range", "if flags is not None:", "if False:")  # fmt: skip
changed("missing-section-refused", "MREC-REF-13", "refuses a target in a section that is absent",
        "mrec.rules.together:_target_counts", "return None\n        fixed", "return np.zeros(1, dtype='<u8'), np.array([_ABSENT])\n        fixed")  # fmt: skip
changed("absent-blocks-need-targets", "MREC-REF-15", "asks for the target of a block without rows",
        "mrec.rules.together:targets_are_there", "block.updates.first_with_rows()", "0 if block.updates.count else None")  # fmt: skip
changed("names-without-case", "MREC-NAME-09", "compares names without regard to case",
        "mrec.declaration:_parse_column", "canonical = CANONICAL_DTYPES.get(name)", "canonical = CANONICAL_DTYPES.get(name.lower())\n    name = name.lower()")  # fmt: skip
changed("names-reserved-by-prefix", "MREC-NAME-09", "reserves every name that starts with step",
        "mrec.view:View._view_block", "if attributes is None:", "if attributes is None or name.startswith('step'):",)  # fmt: skip
