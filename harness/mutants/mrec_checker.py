"""Checkers of mrec that lack one rule each: what a clause on stores forbids passes unseen.

Realistic mistakes of the rules themselves follow below: a rule that is there, and looks at too little.
"""

from __future__ import annotations

from functools import partial

from trajconform.harness import mutants
from trajconform.harness.mutants import forget, mutant, without

changed = partial(mutants.changed, role="store")

for _clause in (
    "MREC-LAYOUT-03", "MREC-LAYOUT-07",     "MREC-STEP-01", "MREC-STEP-11", "MREC-STEP-17",
    "MREC-STEP-18", "MREC-STEP-28",     "MREC-CELL-01", "MREC-CELL-02",
    "MREC-CELL-10", "MREC-CELL-12", "MREC-CELL-14", "MREC-BLOCK-02", "MREC-BLOCK-03",
    "MREC-BLOCK-06", "MREC-BLOCK-15", "MREC-BLOCK-16",     "MREC-BLOCK-26", "MREC-REGULAR-11", "MREC-REGULAR-25",
    "MREC-NULL-01", "MREC-NULL-09", "MREC-PREC-01", "MREC-PREC-02", "MREC-PREC-09",     "MREC-SYSTEM-01", "MREC-SYSTEM-02", "MREC-SYSTEM-03",     "MREC-DECL-01", "MREC-DECL-04",
    "MREC-DECL-12", "MREC-DECL-14", "MREC-REF-01", "MREC-NAME-03", "MREC-NAME-04",
    "MREC-NAME-05", "MREC-NAME-08", "MREC-CODEC-11", "MREC-RECORD-01", "MREC-RECORD-05", "MREC-RECORD-07",
    "MREC-RECORD-08", ):  # fmt: skip
    without(_clause, role="store", mistake=f"never reports {_clause}")

# What a reader refuses too is reported by the clause on readers, the one on stores beside it in the case.
for _clause, _reported in (
    ("MREC-LAYOUT-01", "MREC-LAYOUT-08"),
    ("MREC-LAYOUT-02", "MREC-COMMIT-08"),
    ("MREC-COMMIT-02", "MREC-COMMIT-04"),
    ("MREC-COMMIT-07", "MREC-COMMIT-08"),
    ("MREC-COMMIT-11", "MREC-COMMIT-12"),
    ("MREC-COMMIT-01", "MREC-COMMIT-08"),
    ("MREC-STEP-03", "MREC-STEP-05"),
    ("MREC-STEP-21", "MREC-STEP-23"),
    ("MREC-STEP-35", "MREC-COMMIT-08"),
    ("MREC-META-01", "MREC-META-09"),
    ("MREC-META-02", "MREC-META-03"),
    ("MREC-META-05", "MREC-META-06"),
    ("MREC-META-11", "MREC-META-12"),
    ("MREC-META-13", "MREC-DECL-03"),
    ("MREC-META-14", "MREC-META-15"),
    ("MREC-META-32", "MREC-META-04"),
    ("MREC-META-33", "MREC-META-07"),
    ("MREC-BLOCK-01", "MREC-BLOCK-22"),
    ("MREC-BLOCK-04", "MREC-BLOCK-05"),
    ("MREC-BLOCK-07", "MREC-BLOCK-09"),
    ("MREC-BLOCK-19", "MREC-BLOCK-14"),
    ("MREC-REGULAR-01", "MREC-REGULAR-04"),
    ("MREC-REGULAR-02", "MREC-REGULAR-03"),
    ("MREC-REGULAR-14", "MREC-REGULAR-06"),
    ("MREC-RAGGED-01", "MREC-BLOCK-14"),
    ("MREC-ALIGN-01", "MREC-ALIGN-02"),
    ("MREC-ALIGN-19", "MREC-ALIGN-03"),
    ("MREC-ALIGN-20", "MREC-ALIGN-05"),
    ("MREC-ALIGN-21", "MREC-ALIGN-06"),
    ("MREC-ALIGN-22", "MREC-ALIGN-07"),
    ("MREC-ALIGN-23", "MREC-ALIGN-10"),
    ("MREC-DECL-02", "MREC-DECL-03"),
    ("MREC-DECL-28", "MREC-DECL-10"),
    ("MREC-REF-14", "MREC-REF-05"),
    ("MREC-RECORD-14", "MREC-RECORD-03"),
):
    mutant(
        _clause,
        role="store",
        mistake=f"never reports {_clause}, which shows as {_reported}",
        name=f"without-{_clause.lower()}",
    )(partial(forget, _reported, "store"))

changed("steps-may-repeat", "MREC-STEP-01", "takes steps that repeat for increasing ones",
        "mrec.rules.step_and_time:steps_increase", "joined[1:] <= joined[:-1]", "joined[1:] < joined[:-1]")  # fmt: skip
changed("some-arrays-unsharded", "MREC-LAYOUT-03", "looks at the arrays of frames, not at masks",
        "mrec.rules.layout:_needed", "if declared.nullable", "if False")  # fmt: skip
changed("one-index-array", "MREC-BLOCK-26", "sees a step_index without offset, but not the reverse",
        "mrec.rules.blocks:markers_and_index", "elif len(arrays) == 1:", 'elif arrays == ["step_index"]:')  # fmt: skip
changed("identity-not-compared", "MREC-CELL-14", "looks at the flags of an undefined cell, not at its vectors",
        "mrec.rules.cell:undefined_cell", "if len(wrong):", "if False:")  # fmt: skip
changed("first-update-of-a-shape", "MREC-BLOCK-16", "looks at the first update of a block with a structural shape",
        "mrec.rules.blocks:structural_shapes", "counts != np.uint64(product)", "counts[:1] != np.uint64(product)")  # fmt: skip
changed("shape-by-its-product", "MREC-BLOCK-15", "compares the product of structural shapes",
        "mrec.rules.blocks:structural_shapes", "mirrored != list(shape) or not all(map(is_int, mirrored))", "not isinstance(mirrored, list) or math.prod(mirrored) != math.prod(shape)")  # fmt: skip
changed("system-by-the-first-update", "MREC-SYSTEM-02", "compares the ids of the first update alone",
        "mrec.rules.together:_ids", "if len(wrong):", "if len(wrong) and first + int(wrong[0]) == 0:")  # fmt: skip
changed("version-zero", "MREC-RECORD-14", "takes version 0",
        "mrec.rules.record:version_is_known", "not 1 <= value", "not 0 <= value")  # fmt: skip
changed("lossy-inside-shards", "MREC-CODEC-11", "looks for lossy codecs outside of shards alone",
        "mrec.rules.record:codecs_lose_nothing", "*(configuration.values() if isinstance(configuration, dict) else ())", "")  # fmt: skip
