"""Writers of mrec that put the wrong updates down: steps, times, blocks, masks, precision."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from trajconform.harness import mutants
from trajconform.harness.mutants import edit, mutant, swap

changed = partial(mutants.changed, role="writer")
_W = "mrec.writer:MrecWriter."
_NUMBER, _TAKE, _MIGRATE, _COLUMN = _W + "_take_number", _W + "_take_block", _W + "_migrate", _W + "_check_column"
_LAND, _STEP, _TIME = _W + "_land", "mrec.writer:_step_fits", "mrec.writer:_time_fits"

# -- steps ---------------------------------------------------------------------------------------------------------

changed("steps-always-an-array", "MREC-STEP-13", "stores the array of steps whatever they are",
        _STEP, "if index == 0:", "if index >= 1:\n        return False\n    if index == 0:")  # fmt: skip


@mutant("MREC-STEP-13", role="writer", mistake="stores the array of steps beside the progression")
def steps_twice() -> None:
    edit(_NUMBER, "if not self._steps.holds:\n", "if True:\n")


changed("stride-late", "MREC-STEP-14", "records the stride from the third frame on",
        "mrec.writer:_Progression.attribute", "if count == 1", "if count <= 2", also=("MREC-STEP-39",))  # fmt: skip
changed("stride-of-one-frame", "MREC-STEP-14", "records a stride of one for a single frame",
        "mrec.writer:_Progression.attribute", 'return {"start": self.start} if count == 1',
        'return {"start": self.start, "stride": 1} if count == 1', also=("MREC-STEP-39",))  # fmt: skip
changed("time-stride-late", "MREC-STEP-39", "records the stride of times from the third frame on",
        "mrec.writer:_Progression.attribute", "if count == 1", "if count <= 2", also=("MREC-STEP-14",))  # fmt: skip
changed("time-stride-of-one-frame", "MREC-STEP-39", "records a stride for a single time",
        "mrec.writer:_Progression.attribute", 'return {"start": self.start} if count == 1',
        'return {"start": self.start, "stride": self.stride or 1.0} if count == 1', also=("MREC-STEP-14",))  # fmt: skip
changed("progression-of-nothing", "MREC-STEP-15", "records a progression of zero frames",
        "mrec.writer:_Progression.attribute", "if not self.holds or count == 0:",
        'if count == 0:\n        return {"start": 0, "stride": 1}\n    if not self.holds:')  # fmt: skip
changed("step-attribute-kept", "MREC-STEP-16", "keeps the progression of steps beside the array",
        "mrec.writer:_Progression.attribute", "if not self.holds or count == 0:", "if count == 0:",
        also=("MREC-STEP-31", "MREC-STEP-32", "MREC-STEP-30"))  # fmt: skip
changed("step-history-lost", "MREC-STEP-16", "starts the array of steps at the frame that breaks the progression",
        _NUMBER, 'np.array(history, dtype="<i8")', 'np.array(history[:0], dtype="<i8")')  # fmt: skip
changed("step-history-one-short", "MREC-STEP-16", "fills the array of steps in with one frame less",
        _NUMBER, 'np.array(history, dtype="<i8")', 'np.array(history[1:], dtype="<i8")')  # fmt: skip
changed("step-history-of-the-ordinals", "MREC-STEP-20", "fills the array of steps in from zero",
        _NUMBER, "history = [self._steps.start + j", "history = [j", also=("MREC-STEP-16",))  # fmt: skip
changed("step-progression-one-too-long", "MREC-STEP-16", "takes any step for the second of a progression and keeps it one frame too long",
        _STEP, "bool(progression.start + index * progression.stride == step)",
        "bool(progression.start + index * progression.stride == step or index == 2)")  # fmt: skip


@mutant("MREC-STEP-20", role="writer", mistake="computes progressions of steps in 64 bits that wrap")
def step_stride_overflows() -> None:
    edit(_STEP, "progression.stride = step - progression.start",
         "progression.stride = (step - progression.start + 2**63) % 2**64 - 2**63")  # fmt: skip
    edit(_NUMBER, "not _step_fits(self._steps, i, frame.step)", "not _wrapped(self._steps, i, frame.step)")
    import trajconform.mrec.writer as writer

    def wrapped(progression: Any, index: int, step: int) -> bool:
        return bool(
            writer._step_fits(progression, index, step)
            or (progression.start + index * progression.stride - step) % 2**64 == 0
        )

    vars(writer)["_wrapped"] = wrapped


changed("step-by-way-of-float", "MREC-STEP-20", "writes steps of the array by way of binary64",
        _NUMBER, "self._step_array.append_number(frame.step)",
        "self._step_array.append_number(min(int(float(frame.step)), 2**63 - 1))")  # fmt: skip
changed("step-start-by-way-of-float", "MREC-STEP-20", "keeps the start of steps in binary64",
        _STEP, "progression.start = step", "progression.start = int(float(step))")  # fmt: skip
changed("step-of-32-bits", "MREC-STEP-20", "keeps steps of the array in 32 bits",
        _NUMBER, "self._step_array.append_number(frame.step)",
        "self._step_array.append_number((frame.step + 2**31) % 2**32 - 2**31)")  # fmt: skip

# -- times ---------------------------------------------------------------------------------------------------------

changed("time-within-an-ulp", "MREC-STEP-30", "keeps times as a progression while they are close to it",
        _TIME, "return _same_number(_time_at(progression.start, progression.stride, index), time)",
        "return math.isclose(_time_at(progression.start, progression.stride, index), time)")  # fmt: skip
changed("time-accumulated", "MREC-STEP-30", "adds the stride up instead of multiplying",
        "mrec.writer:_time_at", "return start + float(index) * stride",
        "for _ in range(index):\n        start += stride\n    return start")  # fmt: skip
changed("time-zero-signs", "MREC-STEP-30", "takes -0.0 for 0.0 in a progression of times",
        "mrec.writer:_same_number", "return a == b and", "return a == b or")  # fmt: skip
changed("times-always-an-array", "MREC-STEP-30", "stores the array of times whatever they are",
        _TIME, "if not math.isfinite(time):", "if index:")  # fmt: skip
changed("time-history-lost", "MREC-STEP-31", "starts the array of times at the frame that breaks the progression",
        _NUMBER, 'np.array(past, dtype="<f8")', 'np.array(past[:0], dtype="<f8")')  # fmt: skip
changed("time-history-one-short", "MREC-STEP-31", "fills the array of times in with one frame less",
        _NUMBER, 'np.array(past, dtype="<f8")', 'np.array(past[1:], dtype="<f8")')  # fmt: skip
changed("time-history-loses-signs", "MREC-STEP-31", "fills the array of times in without the sign of zero",
        _NUMBER, 'np.array(past, dtype="<f8")', 'np.array(past, dtype="<f8") + 0.0')  # fmt: skip
changed("time-attribute-kept", "MREC-STEP-31", "keeps the progression of times beside the array",
        "mrec.writer:_Progression.attribute", "if not self.holds or count == 0:", "if count == 0 or isinstance(self.start, int) and not self.holds:",
        also=("MREC-STEP-32", "MREC-STEP-30"))  # fmt: skip
changed("infinite-time-in-a-progression", "MREC-STEP-32", "takes a time that is not finite for the next of a progression",
        _TIME, "if not math.isfinite(time):\n        return False", "if not math.isfinite(time):\n        return index > 0")  # fmt: skip
changed("nan-time-in-a-progression", "MREC-STEP-32", "takes a NaN for the next time of a progression",
        _TIME, "if not math.isfinite(time):\n        return False", "if not math.isfinite(time):\n        return index > 0 and math.isnan(time)")  # fmt: skip

# -- what is a change ----------------------------------------------------------------------------------------------


def _compared(name: str, clauses: tuple[str, ...], mistake: str, same: Any, also: tuple[str, ...] = ()) -> None:
    """Values of a block are compared in another way than bit for bit."""

    def apply() -> None:
        @swap("mrec.writer:same_bits")
        def same_bits(original: Any, a: Any, b: Any) -> Any:
            if a.dtype != b.dtype or a.shape != b.shape or a.dtype.kind == "O":
                return original(a, b)
            return same(a, b)

    mutant(*clauses, role="writer", mistake=mistake, name=name, also=also)(apply)


def _multiset(a: Any, b: Any) -> bool:
    def rows(values: Any) -> list[bytes]:
        return sorted(row.tobytes() for row in values)

    return rows(a) == rows(b) if a.ndim else bool(a.tobytes() == b.tobytes())


_compared("compared-by-value", ("MREC-COST-02",), "takes a repeated NaN for a change",
          lambda a, b: bool(np.array_equal(a, b)), ("MREC-COST-03", "MREC-STATE-10", "MREC-COST-01", "MREC-STATE-09"))  # fmt: skip
_compared("zeros-alike", ("MREC-COST-03",), "takes -0.0 for 0.0",
          lambda a, b: a.tobytes() == b.tobytes() or bool(np.array_equal(a, b)), ("MREC-STATE-10",))  # fmt: skip
_compared("nans-alike", ("MREC-COST-04",), "takes any NaN for any other",
          lambda a, b: a.tobytes() == b.tobytes() or (a.dtype.kind in "fc" and bool(np.array_equal(a, b, equal_nan=True))),
          ("MREC-COST-03", "MREC-STATE-10"))  # fmt: skip
_compared("order-ignored", ("MREC-COST-05",), "takes the same rows in another order for the same", _multiset, ("MREC-STATE-10",))  # fmt: skip
_compared("nearly-alike", ("MREC-STATE-10",), "takes values that are close for the same",
          lambda a, b: a.tobytes() == b.tobytes() or (a.dtype.kind == "f" and bool(np.allclose(a, b, rtol=1e-12, atol=0.0))))  # fmt: skip
_compared("never-alike", ("MREC-COST-01", "MREC-COST-06", "MREC-COST-07", "MREC-STATE-09"), "writes an update at every frame", lambda a, b: False,
          ("MREC-COST-02", "MREC-NULL-16", "MREC-PREC-06"))  # fmt: skip
changed("only-the-first-column", "MREC-STATE-10", "compares the first column of a block only",
        "mrec.writer:same_update", "for name, left in a.columns.items():", "for name, left in list(a.columns.items())[:1]:")  # fmt: skip
changed("masks-not-compared", "MREC-NULL-14", "does not compare masks",
        "mrec.writer:same_update", "if left.mask is not None and", "if False and")  # fmt: skip


@mutant("MREC-NULL-16", role="writer", mistake="takes a mask that is all true for a change after no mask")
def no_mask_is_another() -> None:
    @swap(_TAKE)
    def take(original: Any, self: Any, state: Any, block: Any) -> None:
        before = state.last
        if before is not None and getattr(self, "_bare", {}).get(state.name) != self._presented[state.name]:
            state.last = None
        original(self, state, block)
        if state.last is None:
            state.last = before
        self._bare = getattr(self, "_bare", {}) | {state.name: self._presented[state.name]}

    @swap(_W + "_check_block")
    def check(original: Any, self: Any, name: str, block: Any) -> Any:
        made = original(self, name, block)
        bare = sorted(c for c, column in block.columns.items() if column.mask is None)
        self._presented = getattr(self, "_presented", {}) | {name: bare}
        return made


changed("flags-of-no-mask-false", "MREC-NULL-11", "lands flags that are all false where no mask is given",
        _COLUMN, "np.ones(block.rows, dtype=bool)", "np.zeros(block.rows, dtype=bool)", also=("MREC-NULL-16",))  # fmt: skip
changed("mask-not-stored", "MREC-NULL-13", "stores flags that are all true whatever the mask",
        _COLUMN, "if mask is None else mask.copy()", "", also=("MREC-NULL-14",))  # fmt: skip
changed("mask-inverted", "MREC-NULL-13", "stores the flags of what is missing",
        _COLUMN, "else mask.copy()", "else ~mask", also=("MREC-NULL-14", "MREC-NULL-16"))  # fmt: skip
changed("mask-for-every-column", "MREC-NULL-15", "makes an array of flags for every column",
        _W + "_new_block", "if e.nullable", "if True")  # fmt: skip

# -- precision -----------------------------------------------------------------------------------------------------


def _rounding(name: str, mistake: str, made: Any) -> None:
    def apply() -> None:
        @swap("mrec.writer:round_to_precision")
        def rounded(original: Any, values: Any, precision: float) -> Any:
            return made(original, values, precision)

    mutant("MREC-PREC-05", role="writer", mistake=mistake, name=name, also=("MREC-PREC-06",))(apply)


_rounding("not-rounded", "does not round to the precision", lambda original, values, precision: values.copy())
_rounding("rounded-to-the-precision", "rounds to multiples of the precision itself",
          lambda original, values, precision: np.rint(values / precision) * precision)  # fmt: skip
_rounding("rounded-down", "rounds towards zero", lambda original, values, precision: original(np.trunc(values / (2.0 ** np.floor(np.log2(precision)))) * (2.0 ** np.floor(np.log2(precision))), precision))  # fmt: skip
_rounding(
    "rounded-to-half-the-quantum",
    "rounds to half the quantum",
    lambda original, values, precision: original(values, precision / 2),
)
_rounding(
    "rounded-to-twice-the-quantum",
    "rounds to twice the quantum",
    lambda original, values, precision: original(values, precision * 2),
)
_rounding(
    "rounded-without-the-sign-of-zero",
    "loses the sign of a zero",
    lambda original, values, precision: original(values, precision) + 0.0,
)
_rounding("rounded-half-up", "rounds ties up",
          lambda original, values, precision: original(values, precision) if not np.isfinite(values).all()
          else np.floor(values / 2.0 ** np.floor(np.log2(precision)) + 0.5) * 2.0 ** np.floor(np.log2(precision)))  # fmt: skip


@mutant("MREC-PREC-06", role="writer", mistake="compares a block with its previous update before the rounding")
def compared_before_rounding() -> None:
    @swap(_W + "_check_block")
    def check(original: Any, self: Any, name: str, block: Any) -> Any:
        made = original(self, name, block)
        self._given = getattr(self, "_given", {}) | {name: block}
        return made

    @swap(_TAKE)
    def take(original: Any, self: Any, state: Any, block: Any) -> None:
        given, before = self._given[state.name], getattr(self, "_before", {}).get(state.name)
        last = state.last
        if before is not None and any(
            before.columns[c].values.tobytes() != given.columns[c].values.tobytes() for c in given.columns
        ):
            state.last = None
        original(self, state, block)
        state.last = state.last or last
        self._before = getattr(self, "_before", {}) | {state.name: given}


# -- blocks --------------------------------------------------------------------------------------------------------

changed("index-of-step-numbers", "MREC-BLOCK-27", "puts step numbers into step_index",
        _TAKE, "state.step_index.append_number(ordinal)", "state.step_index.append_number(abs(self._last_step))")  # fmt: skip
changed("structural-shape-not-mirrored", "MREC-BLOCK-17", "does not mirror the structural shape",
        _W + "_block_attributes", "state.declared.structural_shape is not None", "False")  # fmt: skip
changed("values-without-sign-of-zero", "MREC-BLOCK-24", "adds zero to values",
        _COLUMN, "return Column(np.array(values, dtype=NUMPY_DTYPES[entry.dtype]), mask)",
        "return Column(np.array(values + 0 if values.dtype.kind in 'fc' else values, dtype=NUMPY_DTYPES[entry.dtype]), mask)")  # fmt: skip
changed("rows-reversed", "MREC-BLOCK-24", "stores the rows of a block in reverse",
        _COLUMN, "return Column(np.array(values, dtype=NUMPY_DTYPES[entry.dtype]), mask)",
        "return Column(np.array(values[::-1], dtype=NUMPY_DTYPES[entry.dtype]), mask)")  # fmt: skip
changed("bare-block-regular", "MREC-REGULAR-15", "writes markers for a block without columns",
        _TAKE, "and bool(state.columns)", "")  # fmt: skip
changed("always-indexed", "MREC-REGULAR-16", "writes index arrays from the first update on",
        _TAKE, "regular = fits and", "regular = False and")  # fmt: skip
changed("markers-beside-the-index", "MREC-REGULAR-19", "keeps the markers beside the index arrays",
        _W + "_block_attributes", "not state.indexed", "True")  # fmt: skip
changed("another-count-still-regular", "MREC-REGULAR-17", "stays regular when the row count changes",
        _TAKE, "state.uniform in (None, block.rows)", "block.rows > 0")  # fmt: skip
changed("skipped-frame-still-regular", "MREC-REGULAR-18", "stays regular when a frame is left out",
        _TAKE, "ordinal == state.updates and", "")  # fmt: skip
changed("late-start-still-regular", "MREC-REGULAR-18", "is regular from whatever frame its first update comes at",
        _TAKE, "ordinal == state.updates and", "(ordinal == state.updates or not state.updates) and")  # fmt: skip
changed("offsets-without-zero", "MREC-REGULAR-17", "leaves out the zero at the head of the offsets",
        _MIGRATE, "np.arange(state.updates + 1,", "np.arange(1, state.updates + 1,", also=("MREC-REGULAR-18",))  # fmt: skip
changed("backfill-one-short", "MREC-REGULAR-17", "fills the index in with one update less",
        _MIGRATE, 'np.arange(state.updates, dtype', 'np.arange(max(0, state.updates - 1), dtype', also=("MREC-REGULAR-18",))  # fmt: skip
changed("backfill-one-off", "MREC-REGULAR-18", "fills the index in from frame one",
        _MIGRATE, 'np.arange(state.updates, dtype', 'np.arange(1, state.updates + 1, dtype', also=("MREC-REGULAR-17",))  # fmt: skip
changed("history-not-filled-in", "MREC-REGULAR-18", "starts the index at the update that ends the regularity",
        _MIGRATE, 'np.arange(state.updates, dtype', 'np.arange(0, dtype', also=("MREC-REGULAR-17",))  # fmt: skip
changed("regular-again", "MREC-REGULAR-19", "goes back to markers when updates fit again",
        _TAKE, "regular = fits and not state.indexed", "state.indexed = state.indexed and not fits\n    regular = fits")  # fmt: skip
changed("markers-of-no-update", "MREC-REGULAR-26", "gives markers to a block without an update",
        _W + "_block_attributes", "state.uniform is not None", "True")  # fmt: skip


@mutant("MREC-REGULAR-26", role="writer", mistake="gives an index to a block without an update")
def index_of_no_update() -> None:
    @swap(_W + "_land_block")
    def land(original: Any, self: Any, state: Any, sync: bool) -> None:
        if not state.updates and not state.indexed:
            self._migrate(state)
        original(self, state, sync)


def _frames(clauses: tuple[str, ...], name: str, mistake: str, made: Any, also: tuple[str, ...] = ()) -> None:
    """The writer sees another frame than it is given."""

    def apply() -> None:
        @swap(_W + "append")
        def append(original: Any, self: Any, frame: Any) -> None:
            from dataclasses import replace

            original(self, replace(frame, blocks=made(self, dict(frame.blocks))))

    mutant(*clauses, role="writer", mistake=mistake, name=name, also=also)(apply)


def _with_empty(self: Any, blocks: dict[str, Any]) -> dict[str, Any]:
    from trajconform.model.arrays import NUMPY_DTYPES, strings
    from trajconform.model.trajectory import Block, Column

    for name, entry in self.declaration.blocks.items():
        if name in blocks:
            continue
        columns = {}
        for c, e in entry.columns.items():
            none = strings([]) if e.dtype == "string" else np.zeros(0, NUMPY_DTYPES[e.dtype])
            columns[c] = Column(none.reshape((0, *e.trailing)), None)
        blocks[name] = Block(0, columns, entry.structural_shape)
    return blocks


def _with_last(self: Any, blocks: dict[str, Any]) -> dict[str, Any]:
    for name, state in self._blocks.items():
        if name not in blocks and state.last is not None:
            state.last, blocks[name] = None, state.last
    return blocks


def _without_empty(self: Any, blocks: dict[str, Any]) -> dict[str, Any]:
    return {name: block for name, block in blocks.items() if block.rows}


def _without_first_empty(self: Any, blocks: dict[str, Any]) -> dict[str, Any]:
    return {n: b for n, b in blocks.items() if b.rows or n not in self._blocks or self._blocks[n].updates}


_frames(("MREC-STATE-06",), "omission-is-empty", "takes an omitted block for an empty one", _with_empty,
        ("MREC-STATE-05", "MREC-RAGGED-04", "MREC-DECL-20"))  # fmt: skip
_frames(("MREC-STATE-05",), "omission-restated", "writes the previous update of an omitted block again", _with_last,
        ("MREC-STATE-06", "MREC-RAGGED-04", "MREC-DECL-20"))  # fmt: skip
_frames(
    ("MREC-STATE-07",),
    "empty-is-omission",
    "takes an empty block for an omitted one",
    _without_empty,
    ("MREC-STATE-12", "MREC-STATE-13"),
)
_frames(("MREC-STATE-13",), "first-empty-is-omission", "writes no first update of zero rows", _without_first_empty,
        ("MREC-STATE-12", "MREC-STATE-07"))  # fmt: skip
changed("empty-repeated", "MREC-STATE-07", "writes an update of zero rows after one of zero rows",
        _TAKE, "if state.last is not None and", "if state.last is not None and block.rows and", also=("MREC-STATE-09",))  # fmt: skip
changed("empty-still-regular", "MREC-STATE-12", "stays regular when a block becomes empty",
        _TAKE, "block.rows > 0 and ordinal == state.updates and state.uniform in (None, block.rows)",
        "ordinal == state.updates and state.uniform in (None, block.rows) or not block.rows")  # fmt: skip
changed("empty-first-regular", "MREC-STATE-12", "is regular with a first update of zero rows",
        _TAKE, "block.rows > 0 and ordinal", "ordinal")  # fmt: skip


@mutant("MREC-RAGGED-04", "MREC-DECL-20", role="writer", mistake="refuses a frame that omits a declared block")
def omission_refused() -> None:
    edit(_W + "_check_together", "for name, entry in self.declaration.blocks.items():",
         "for name, entry in self.declaration.blocks.items():\n"
         "        if name not in blocks:\n"
         "            raise refuse('MREC-DECL-17', name, 'missing', index=self._nstep)")  # fmt: skip
