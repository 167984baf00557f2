"""What a schema can say of a declaration, the rules say too, and the other way round."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from trajconform.model.arrays import RECORD_DTYPES
from trajconform.mrec.declaration import CANONICAL_DTYPES, RESERVED_BLOCKS, RESERVED_COLUMNS, TAGS, parse_declaration
from trajconform.mrec.schema import make_validator

SCHEMA = make_validator("sequence-schema")

# What a schema cannot say is kept out of the generated documents: whole floats for integers, decimal strings around
# 2^53 or beyond 64 bits, numbers beyond binary64, alignments and targets that look at other blocks.
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, -1, 0, 1.5, "x", "", [], {}, [1], [-1], [1.5], {"a": 1}]
)
DTYPE = st.sampled_from([*RECORD_DTYPES, *RECORD_DTYPES, "f32", "f16", "json", "f64x3", "F64", None, 5])
TAG = st.sampled_from([*TAGS, *TAGS, "f32", "u8", "c64", "f64x4", None])
TRAILING = st.one_of(st.lists(st.integers(0, 9), max_size=3), st.sampled_from([[-1], [1.5], ["1"], 3, None, "[]"]))
PRECISION = st.one_of(st.floats(2.0**-1000, 2.0**1000), st.sampled_from([0, -1.0, 1e302, "1", None, True, 2.0**-1000]))
NAME = st.sampled_from(["v", "w", "u", *RESERVED_COLUMNS, *CANONICAL_DTYPES, "X", "ids"])
SCALAR_FILL = st.one_of(
    st.sampled_from(
        [None, True, False, 0, -1, 1.5, "", "x", "NaN", "Infinity", "-Infinity", "nan", 2**31, -(2**31) - 1]
    ),
    st.sampled_from(
        [2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, "9007199254740993", "18446744073709551615", "5", "-0"]
    ),
    st.integers(-5, 5),
)
FILL = st.one_of(SCALAR_FILL, st.lists(SCALAR_FILL, max_size=10), st.lists(st.integers(0, 9), min_size=3, max_size=3))


@st.composite
def columns(draw: st.DrawFn) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name in draw(st.lists(NAME, max_size=4, unique=True)):
        dtype = CANONICAL_DTYPES.get(name) if draw(st.booleans()) else None
        entry: dict[str, Any] = {
            "dtype": dtype or draw(DTYPE),
            "trailing": [] if draw(st.booleans()) else draw(TRAILING),
        }
        if draw(st.integers(0, 3)) == 0:
            entry["nullable"] = draw(st.sampled_from([True, True, False, None, 1, "true"]))
        if draw(st.integers(0, 3)) == 0:
            entry["precision"] = draw(PRECISION)
        for member in ("dtype", "trailing"):
            if draw(st.integers(0, 15)) == 0:
                del entry[member]
        if draw(st.integers(0, 7)) == 0:
            entry["unit"] = "nm"
        out[name] = draw(ODD) if draw(st.integers(0, 15)) == 0 else entry
    return out


@st.composite
def documents(draw: st.DrawFn) -> Any:
    if draw(st.integers(0, 30)) == 0:
        return draw(ODD)
    blocks: dict[str, Any] = {}
    names = st.sampled_from(["a", "b", "offset", *RESERVED_BLOCKS])
    for name in draw(st.lists(names, max_size=3, unique=True)):
        block: dict[str, Any] = {"columns": draw(columns())}
        if draw(st.integers(0, 3)) == 0:
            block["structural_shape"] = draw(st.one_of(st.lists(st.integers(-1, 9), max_size=3), ODD))
        if draw(st.integers(0, 3)) == 0 and isinstance(block["columns"], dict):
            target = st.sampled_from(
                ["a", "/system/a", "/trajectory/a", "/trajectoryx/a", "", "/a", "/a/b/c", "a/b", 5, None]
            )
            block["columns"]["ref"] = {"dtype": "u64", "trailing": []}
            block["targets"] = draw(
                st.one_of(st.fixed_dictionaries({"ref": target}), st.just({}), st.sampled_from([[], "a", 5]))
            )
        if draw(st.integers(0, 15)) == 0:
            block = draw(st.sampled_from([{}, {"columns": []}, {"columns": None}, "block", None, 5]))
        blocks[name] = block
    if draw(st.integers(0, 3)) == 0:
        blocks["zz_target"] = {"columns": {"only_here": {"dtype": "f64", "trailing": []}}}
        follower: dict[str, Any] = {"columns": {"k": {"dtype": "i8", "trailing": []}}, "aligned_with": "zz_target"}
        if draw(st.booleans()):
            follower["structural_shape"] = [2]
        blocks["zz_follower"] = follower
    meta: dict[str, Any] = {}
    for key in draw(st.lists(st.sampled_from(["k", "pe", "temp", "peak"]), max_size=3, unique=True)):
        entry = {"dtype": draw(TAG)}
        if draw(st.booleans()):
            entry["fill"] = draw(FILL)
        if draw(st.integers(0, 15)) == 0:
            entry = draw(st.sampled_from([{}, {"fill": 0}, "f64", None, []]))
        meta[key] = entry
    document: dict[str, Any] = {"blocks": blocks, "meta": meta}
    for name in ("blocks", "meta"):
        if draw(st.integers(0, 15)) == 0:
            document[name] = draw(st.sampled_from([[], None, "x", 5]))
        elif draw(st.integers(0, 30)) == 0:
            del document[name]
    return document


@settings(max_examples=1500, deadline=None)
@given(documents())
def test_schema_and_rules_agree(document: Any) -> None:
    by_schema = SCHEMA.is_valid(document)
    event("sound" if by_schema else "broken")
    violations = parse_declaration(document)[1]
    assert by_schema is (violations == []), (violations, [e.message for e in SCHEMA.iter_errors(document)])
