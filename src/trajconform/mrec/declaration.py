"""The declaration of a trajectory (`sequence_schema`): read strictly, judged clause by clause, written back.

Also what belongs to declared values: the sixteen tags of per-step metadata, typed JSON, and the exact coercions that a
writer makes (topics ``declaration``, ``names``, ``aligned``, ``references``, ``precision`` and ``step-meta``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from trajconform.model.arrays import NUMPY_DTYPES, RECORD_DTYPES, Array, encode_int, strings
from trajconform.model.errors import Violation
from trajconform.model.trajectory import MetaValue

PLACE = "trajectory"
RESERVED_BLOCKS = frozenset({"step", "time", "meta", "box"})
RESERVED_COLUMNS = frozenset({"offset", "step_index", "_validity"})
ENDPOINTS = ("atomi", "atomj", "atomk", "atoml")
REFUSED_DTYPES = frozenset(
    ["id", "atomic_number", "type_id", "mol_id", "res_id", *ENDPOINTS, "bond_type", "bond_number"]
)
"""Columns that readers refuse at any dtype but u64."""
CANONICAL_DTYPES: Mapping[str, str] = {
    **dict.fromkeys(["x", "y", "z", "vx", "vy", "vz", "fx", "fy", "fz", "charge", "mass"], "f64"),
    **dict.fromkeys([*sorted(REFUSED_DTYPES), "atom_map"], "u64"),
    "formal_charge": "i64",
    **dict.fromkeys(["element", "type", "name", "res_name", "bead_type"], "string"),
}
CANONICAL_KEYS = ("pe", "ke", "etotal", "temp", "press", "volume")
MIN_PRECISION, MAX_PRECISION = 2.0**-1000, 2.0**1000


@dataclass(frozen=True)
class Tag:
    """How values of a tag are stored: dtype of the array and shape of one row."""

    stored: str
    trailing: tuple[int, ...]


TAGS: Mapping[str, Tag] = {
    "bool": Tag("bool", ()), "i32": Tag("i32", ()), "i64": Tag("i64", ()), "u32": Tag("u32", ()),
    "u64": Tag("u64", ()), "f64": Tag("f64", ()), "string": Tag("string", ()), "json": Tag("string", ()),
    "bool3": Tag("bool", (3,)), "i32x3": Tag("i32", (3,)), "i64x3": Tag("i64", (3,)), "u32x3": Tag("u32", (3,)),
    "u64x3": Tag("u64", (3,)), "f64x3": Tag("f64", (3,)), "f64x6": Tag("f64", (6,)), "f64x9": Tag("f64", (9,)),
}  # fmt: skip


class _NoFill:
    """The type of `NO_FILL`; ``None`` is a fill, of a json key."""

    def __repr__(self) -> str:
        return "NO_FILL"


NO_FILL: Final = _NoFill()


@dataclass(frozen=True)
class ColumnDeclaration:
    """A declared column: dtype of the record, shape of one row, whether it may be masked, its precision."""

    dtype: str
    trailing: tuple[int, ...]
    nullable: bool = False
    precision: float | None = None


@dataclass(frozen=True)
class BlockDeclaration:
    """A declared block."""

    columns: Mapping[str, ColumnDeclaration]
    structural_shape: tuple[int, ...] | None = None
    targets: Mapping[str, str] = field(default_factory=dict)
    aligned_with: str | None = None

    def references(self) -> dict[str, str]:
        """Column -> target, the endpoints that refer to ``atoms`` by convention included."""
        return self._references

    @cached_property
    def _references(self) -> dict[str, str]:
        return {c: "atoms" for c in ENDPOINTS if c in self.columns} | dict(self.targets)


@dataclass(frozen=True)
class MetaDeclaration:
    """A declared metadata key: its tag and its fill as typed JSON, or `NO_FILL`."""

    dtype: str
    fill: Any = NO_FILL


@dataclass(frozen=True)
class Declaration:
    """A whole declaration."""

    blocks: Mapping[str, BlockDeclaration] = field(default_factory=dict)
    meta: Mapping[str, MetaDeclaration] = field(default_factory=dict)


def parse_declaration(document: Any) -> tuple[Declaration, list[Violation]]:
    """A ``sequence_schema`` document as a declaration, and every violation found in it.

    What cannot be made sense of is left out of the declaration and named among the violations.
    """
    found: list[Violation] = []
    if not isinstance(document, Mapping):
        found.append(_bad("MREC-DECL-01", "", f"sequence_schema is {_short(document)}, it must be an object"))
        return Declaration(), found
    given_blocks, given_meta = document.get("blocks", {}), document.get("meta", {})
    for name, value in (("blocks", given_blocks), ("meta", given_meta)):
        if not isinstance(value, Mapping):
            found.append(_bad("MREC-DECL-01", name, f"{name} is {_short(value)}, it must be a map"))
    blocks: dict[str, BlockDeclaration] = {}
    for name, entry in given_blocks.items() if isinstance(given_blocks, Mapping) else ():
        block = _parse_block(name, entry, found)
        if block is not None:
            blocks[name] = block
    meta: dict[str, MetaDeclaration] = {}
    for key, entry in given_meta.items() if isinstance(given_meta, Mapping) else ():
        declared = _parse_meta(key, entry, found)
        if declared is not None:
            meta[key] = declared
    declaration = Declaration(blocks, meta)
    found += _between_blocks(declaration)
    return declaration, found


def _bad(clause: str, pointer: str, message: str, level: str = "MUST") -> Violation:
    place = f"{PLACE} sequence_schema" + (f"/{pointer}" if pointer else "")
    return Violation(clause, place, message, level=level)


def _parse_block(name: str, entry: Any, found: list[Violation]) -> BlockDeclaration | None:
    at = f"blocks/{name}"
    if not isinstance(entry, Mapping) or not isinstance(entry.get("columns"), Mapping):
        found.append(_bad("MREC-DECL-01", at, f"a block is an object with columns, not {_short(entry)}"))
        return None
    if name in RESERVED_BLOCKS:
        found.append(_bad("MREC-NAME-03", at, f"{name} is reserved for the layout; a block needs another name"))
    columns: dict[str, ColumnDeclaration] = {}
    for column, declared in entry["columns"].items():
        parsed = _parse_column(name, column, declared, found)
        if parsed is not None:
            columns[column] = parsed
    shape = entry.get("structural_shape")
    kept: tuple[int, ...] | None = None
    if "structural_shape" in entry:
        if isinstance(shape, list) and all(_is_int(n) and n > 0 for n in shape):
            kept = tuple(shape)
        else:
            message = f"structural_shape is {_short(shape)}, it must be a list of positive integers"
            found.append(_bad("MREC-DECL-14", f"{at}/structural_shape", message))
    targets = _parse_targets(at, entry, columns, found)
    aligned = entry.get("aligned_with")
    if "aligned_with" in entry and not isinstance(aligned, str):
        found.append(_bad("MREC-ALIGN-02", at, f"aligned_with is {_short(aligned)}, it must name a declared block"))
        aligned = None
    return BlockDeclaration(columns, kept, targets, aligned)


def _parse_column(block: str, name: str, entry: Any, found: list[Violation]) -> ColumnDeclaration | None:
    at = f"blocks/{block}/columns/{name}"
    if not isinstance(entry, Mapping):
        found.append(_bad("MREC-DECL-01", at, f"a column is an object with dtype and trailing, not {_short(entry)}"))
        return None
    dtype, trailing = entry.get("dtype"), entry.get("trailing")
    if name in RESERVED_COLUMNS:
        found.append(_bad("MREC-NAME-04", at, f"{name} is reserved for the layout; a column needs another name"))
    if "dtype" not in entry:
        found.append(_bad("MREC-DECL-01", at, "a column is an object with dtype and trailing; dtype is missing"))
        return None
    if not isinstance(dtype, str) or dtype not in RECORD_DTYPES:
        hint = "; json is a tag of metadata alone" if dtype == "json" else ""
        found.append(_bad("MREC-DECL-03", at, f"dtype {_short(dtype)} is none of {' '.join(RECORD_DTYPES)}{hint}"))
        return None
    if not isinstance(trailing, list) or not all(_is_int(n) and n >= 0 for n in trailing):
        found.append(_bad("MREC-DECL-04", at, f"trailing is {_short(trailing)}, it must be a list of integers >= 0"))
        return None
    canonical = CANONICAL_DTYPES.get(name)
    if canonical is not None and dtype != canonical:
        if name in REFUSED_DTYPES:
            found.append(_bad("MREC-NAME-06", at, f"{name} is declared {dtype}; a column of this name is {canonical}"))
        else:
            message = f"{name} is declared {dtype}; a column of this name is {canonical}"
            found.append(_bad("MREC-NAME-07", at, message, "SHOULD"))
            found.append(_bad("MREC-NAME-05", at, message))
    elif canonical is not None and trailing:
        found.append(_bad("MREC-NAME-05", at, f"{name} has trailing axes {trailing}; it holds one value a row"))
    nullable = entry.get("nullable", False)
    if "nullable" in entry and nullable is not True:
        if nullable is not False:
            found.append(_bad("MREC-DECL-01", at, f"nullable is {_short(nullable)}, it must be true or absent"))
        else:
            found.append(_bad("MREC-DECL-12", at, "nullable is written only when it is true", "MUST NOT"))
    return ColumnDeclaration(dtype, tuple(trailing), nullable is True, _parse_precision(at, entry, dtype, found))


def _parse_precision(at: str, entry: Mapping[str, Any], dtype: str, found: list[Violation]) -> float | None:
    if "precision" not in entry:
        return None
    value = entry["precision"]
    number = as_float(value)
    if number is None or not MIN_PRECISION <= number <= MAX_PRECISION:
        message = f"precision is {_short(value)}, it must be a number from 2^-1000 to 2^1000"
        found.append(_bad("MREC-PREC-01", at, message))
        return None
    if dtype != "f64":
        message = f"a precision on a column of {dtype}; only f64 columns have one"
        found.append(_bad("MREC-PREC-02", at, message))
        return None
    return number


def _parse_targets(
    at: str, entry: Mapping[str, Any], columns: Mapping[str, ColumnDeclaration], found: list[Violation]
) -> dict[str, str]:
    if "targets" not in entry:
        return {}
    given = entry["targets"]
    if not isinstance(given, Mapping):
        found.append(_bad("MREC-REF-01", at, f"targets is {_short(given)}, it must map columns to targets"))
        return {}
    out: dict[str, str] = {}
    for column, target in given.items():
        declared = columns.get(column)
        here = f"{at}/targets/{column}"
        if declared is None or declared.dtype != "u64":
            has = "not declared" if declared is None else declared.dtype
            found.append(_bad("MREC-REF-01", here, f"a target needs a u64 column; {column} is {has}"))
            continue
        parts = target.split("/") if isinstance(target, str) else []
        if isinstance(target, str) and target.startswith("/trajectory/"):
            found.append(_bad("MREC-REF-01", here, f"{target} leads into the trajectory; name the block alone"))
            continue
        well_formed = bool(target) and (len(parts) == 1 or (len(parts) == 3 and not parts[0] and parts[1] and parts[2]))
        if not well_formed:
            found.append(_bad("MREC-REF-01", here, f"{_short(target)} is neither <block> nor /<section>/<block>"))
            continue
        out[column] = target
    return out


def _parse_meta(key: str, entry: Any, found: list[Violation]) -> MetaDeclaration | None:
    at = f"meta/{key}"
    if not isinstance(entry, Mapping):
        found.append(_bad("MREC-DECL-01", at, f"a key is an object with dtype, not {_short(entry)}"))
        return None
    if "dtype" not in entry:
        found.append(_bad("MREC-DECL-01", at, "a key is an object with dtype; dtype is missing"))
        return None
    tag = entry["dtype"]
    if not isinstance(tag, str) or tag not in TAGS:
        found.append(_bad("MREC-META-06", at, f"the tag {_short(tag)} is none of {' '.join(TAGS)}"))
        return None
    if key in CANONICAL_KEYS and tag != "f64":
        found.append(_bad("MREC-NAME-08", at, f"{key} has the tag {tag}; a key of this name is f64"))
    if "fill" not in entry:
        return MetaDeclaration(tag)
    try:
        typed_value(tag, entry["fill"])
    except ValueError as error:
        found.append(_bad("MREC-META-15", f"{at}/fill", f"the fill {_short(entry['fill'])} is no {tag}: {error}"))
        return MetaDeclaration(tag)
    return MetaDeclaration(tag, entry["fill"])


def _between_blocks(declaration: Declaration) -> Iterator[Violation]:
    for name, block in declaration.blocks.items():
        target = block.aligned_with
        if target is None:
            continue
        at = f"blocks/{name}"
        if target == name:
            yield _bad("MREC-ALIGN-03", at, f"{name} is aligned with itself")
        elif target not in declaration.blocks:
            yield _bad("MREC-ALIGN-02", at, f"{name} is aligned with {target}, which is not declared")
        else:
            if declaration.blocks[target].aligned_with is not None:
                yield _bad("MREC-ALIGN-04", at, f"{name} is aligned with {target}, which is itself aligned")
            both = sorted(set(block.columns) & set(declaration.blocks[target].columns))
            if both:
                yield _bad("MREC-ALIGN-06", at, f"{name} and its target {target} both have {', '.join(both)}")
        if block.structural_shape is not None:
            yield _bad("MREC-ALIGN-05", at, f"the aligned block {name} declares a structural shape")


def encode_declaration(declaration: Declaration) -> dict[str, Any]:
    """The ``sequence_schema`` document of a declaration: optional members only where they are declared."""
    blocks: dict[str, Any] = {}
    for name, block in declaration.blocks.items():
        columns: dict[str, Any] = {}
        for column, entry in block.columns.items():
            columns[column] = {"dtype": entry.dtype, "trailing": list(entry.trailing)}
            if entry.nullable:
                columns[column]["nullable"] = True
            if entry.precision is not None:
                columns[column]["precision"] = entry.precision
        blocks[name] = {"columns": columns}
        if block.structural_shape is not None:
            blocks[name]["structural_shape"] = list(block.structural_shape)
        if block.targets:
            blocks[name]["targets"] = dict(block.targets)
        if block.aligned_with is not None:
            blocks[name]["aligned_with"] = block.aligned_with
    meta: dict[str, Any] = {}
    for key, declared in declaration.meta.items():
        meta[key] = {"dtype": declared.dtype}
        if declared.fill is not NO_FILL:
            meta[key]["fill"] = encode_fill(declared.dtype, declared.fill)
    return {"blocks": blocks, "meta": meta}


# -- values of a tag -----------------------------------------------------------------------------------------------


def as_float(value: Any) -> float | None:
    """A JSON number as a finite binary64, None where it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def typed_value(tag: str, value: Any) -> Array:
    """A value in typed JSON form as an exact array of the tag's row shape. ValueError says what does not fit."""
    form = TAGS[tag]
    if tag == "json":
        return strings([json_text(value)]).reshape(())
    if not form.trailing:
        return _row([_typed_scalar(form.stored, value)], form)
    if not isinstance(value, list) or len(value) != form.trailing[0]:
        raise ValueError(f"it takes a list of {form.trailing[0]}")
    return _row([_typed_scalar(form.stored, item) for item in value], form)


def _row(values: list[Any], form: Tag) -> Array:
    if form.stored == "string":
        return strings(values).reshape(form.trailing)
    return np.array(values, dtype=NUMPY_DTYPES[form.stored]).reshape(form.trailing)


def _typed_scalar(stored: str, value: Any) -> Any:
    if stored in ("bool", "string"):
        if not isinstance(value, bool if stored == "bool" else str):
            raise ValueError(f"{_short(value)} is no {stored}")
        return value
    if stored == "f64":
        named = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
        if isinstance(value, str) and value in named:
            return named[value]
        number = as_float(value)
        if number is None:
            raise ValueError(f"{_short(value)} is no number of binary64, nor NaN, Infinity or -Infinity as a string")
        return number
    integer = value
    if isinstance(value, str):
        digits = value.removeprefix("-")
        if not digits.isascii() or not digits.isdigit() or len(digits) > 20:
            raise ValueError(f"{_short(value)} is no decimal integer")
        integer = int(value)
        if abs(integer) <= 2**53:
            raise ValueError(f"{value!r} is spelled as a string; up to 2^53 an integer is a JSON number")
    return _in_range(stored, integer)


def _in_range(stored: str, value: Any) -> int:
    if not _is_int(value):
        raise ValueError(f"{_short(value)} is no integer")
    info = np.iinfo(NUMPY_DTYPES[stored])
    if not int(info.min) <= value <= int(info.max):
        raise ValueError(f"{value} is outside {stored}")
    return int(value)


def encode_fill(tag: str, fill: Any) -> Any:
    """A fill in typed JSON form, integers beyond 2**53 as decimal strings."""
    if tag == "json":
        return fill
    values = typed_value(tag, fill)

    def one(value: Any) -> Any:
        if values.dtype == np.float64:
            number = float(value)
            if math.isnan(number):
                return "NaN"
            return number if math.isfinite(number) else "Infinity" if number > 0 else "-Infinity"
        if values.dtype.kind in "iu":
            return encode_int(int(value))
        return bool(value) if values.dtype == np.bool_ else value

    return [one(v) for v in values.tolist()] if TAGS[tag].trailing else one(values[()])


def fill_value(entry: MetaDeclaration) -> Array:
    """The fill of a key as an exact array of the tag's row shape."""
    return typed_value(entry.dtype, entry.fill)


def json_text(document: Any) -> str:
    """A JSON document as text. ValueError where it is not finite JSON."""
    try:
        return json.dumps(document, allow_nan=False, ensure_ascii=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not a JSON document: {error}") from None


def coerce_meta(tag: str, given: MetaValue) -> Array:
    """A producer's value as its declared tag holds it, exactly. ValueError where that would change it.

    An integer becomes a real where binary64 holds it; everything else must be of the tag's own kind, width and range.
    """
    form = TAGS[tag]
    if tag == "json":
        if given.dtype != "json":
            raise ValueError(f"a value of the tag {given.dtype} is given for a json key")
        return strings([json_text(given.value)]).reshape(())
    if given.dtype == "json":
        raise ValueError(f"a json value is given for a key of the tag {tag}")
    if given.dtype not in TAGS:
        raise ValueError(f"{given.dtype!r} is none of the tags {', '.join(TAGS)}")
    values = given.value
    if tuple(values.shape) != form.trailing:
        raise ValueError(f"{tag} has the shape {list(form.trailing)}, given {list(values.shape)}")
    kinds = {"bool": "b", "string": "O", "f64": "fiu"}.get(form.stored, "iu")
    if values.dtype.kind not in kinds:
        raise ValueError(f"a value of {values.dtype} is no {tag}")
    if form.stored == "string":
        texts = values.ravel().tolist()
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("a value of the tag string is a text")
        return strings(texts).reshape(form.trailing)
    if form.stored == "bool":
        return np.asarray(values, dtype="?")
    if form.stored == "f64":
        if values.dtype.kind == "f":
            if values.dtype.itemsize != 8:
                raise ValueError(f"a value of {values.dtype} is no {tag}")
            return np.asarray(values, dtype="<f8")
        for integer in values.ravel().tolist():
            if int(float(integer)) != integer:
                raise ValueError(f"binary64 does not hold {integer}")
        return np.asarray(values, dtype="<f8")
    return _row([_in_range(form.stored, v) for v in values.ravel().tolist()], form)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: object, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
