"""The reply form: what a driver answers to `read`, and how a reply is held against the expected one.

The form is the same for every implementation and is what stands beside each golden as ``NAME.reply.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trajconform.model.arrays import (
    Array,
    decode_array,
    decode_int,
    describe_value,
    dtype_name,
    encode_array,
    encode_int,
    first_difference,
    raw_bytes,
    same_bits,
)
from trajconform.model.trajectory import Block, Cell, Frame, MetaValue, OtjFrame, OtjHeader

OPTIONAL_PARTS = ("tail", "error", "declaration", "shape")
"""Parts of a reply that are compared only where a case names them; conforming readers may differ there."""

_MAX_DIFFERENCES = 50


@dataclass(frozen=True)
class Difference:
    """One place where a reply is not the expected one; ``expected`` and ``actual`` are texts for a person.

    ``expected_bits`` and ``actual_bits`` are hexadecimal digits of equal length where both sides are bits of one width,
    else empty: a number with its most significant byte first (both parts of a complex one), a piece of a file in order.
    """

    path: str
    expected: str
    actual: str
    note: str = ""
    expected_bits: str = ""
    actual_bits: str = ""

    def __str__(self) -> str:
        tail = f" ({self.note})" if self.note else ""
        return f"{self.path}: expected {self.expected}, got {self.actual}{tail}"


def mrec_reply(nstep: int, frames: Iterable[Frame], declaration: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Reply of an mrec reader: total number of committed frames and the frames asked for."""
    reply: dict[str, Any] = {"format": "mrec", "nstep": nstep, "frames": [encode_frame(f) for f in frames]}
    if declaration is not None:
        reply["declaration"] = dict(declaration)
    return reply


def encode_frame(frame: Frame) -> dict[str, Any]:
    """A frame in the reply form."""
    out: dict[str, Any] = {"step": encode_int(frame.step)}
    if frame.time is not None:
        out["time"] = encode_array(np.asarray(frame.time, dtype="<f8"))
    out["meta"] = {key: encode_meta(value) for key, value in frame.meta.items()}
    if frame.cell is not None:
        out["cell"] = encode_cell(frame.cell)
    out["blocks"] = {name: encode_block(block) for name, block in frame.blocks.items()}
    return out


def encode_meta(value: MetaValue) -> dict[str, Any]:
    """A metadata value: its tag, and an array or (tag ``json``) the document itself."""
    return {
        "dtype": value.dtype,
        "value": value.value if value.dtype == "json" else encode_array(value.value),
    }


def encode_cell(cell: Cell) -> dict[str, Any]:
    """A cell in the reply form."""
    return {
        "defined": cell.defined,
        "vectors": encode_array(cell.vectors),
        "origin": encode_array(cell.origin),
        "boundary": encode_array(cell.boundary),
    }


def encode_block(block: Block) -> dict[str, Any]:
    """A block in the reply form; a mask without a false flag is no mask and is left out."""
    out: dict[str, Any] = {
        "rows": block.rows,
        "columns": {name: encode_array(column.values) for name, column in block.columns.items()},
    }
    masks = {
        name: encode_array(column.mask)
        for name, column in block.columns.items()
        if column.mask is not None and not column.mask.all()
    }
    if masks:
        out["validity"] = masks
    if block.shape is not None:
        out["shape"] = list(block.shape)
    return out


def otj_reply(header: OtjHeader, frames: Iterable[OtjFrame]) -> dict[str, Any]:
    """Reply of an otj reader, without the optional ``tail`` and ``error``."""
    return {
        "format": "otj",
        "particles": encode_int(header.particles),
        "precision": header.precision,
        "velocities": header.velocities,
        "timestep": encode_array(header.timestep),
        "masses": encode_array(header.masses),
        "frames": [encode_otj_frame(frame) for frame in frames],
    }


def encode_otj_frame(frame: OtjFrame) -> dict[str, Any]:
    """An otj frame in the reply form."""
    out: dict[str, Any] = {"step": encode_int(frame.step), "time": encode_array(frame.time)}
    for name in ("x", "y", "z", "vx", "vy", "vz"):
        component = getattr(frame, name)
        if component is not None:
            out[name] = encode_array(component)
    return out


def decode_frame(wire: Mapping[str, Any]) -> Frame:
    """A frame from the reply form (as in an `append` request). ValueError says what is wrong."""
    return Frame(
        step=decode_int(wire.get("step", 0)),
        time=np.float64(decode_array(wire["time"])[()]) if wire.get("time") is not None else None,
        blocks={name: decode_block(block) for name, block in (wire.get("blocks") or {}).items()},
        cell=decode_cell(wire["cell"]) if wire.get("cell") is not None else None,
        meta={key: decode_meta(value) for key, value in (wire.get("meta") or {}).items()},
    )


def decode_meta(wire: Mapping[str, Any]) -> MetaValue:
    """A metadata value from the reply form. A document that is given as text may hold NaN and infinities."""
    tag = str(wire["dtype"])
    if "text" in wire:
        return MetaValue(tag, json.loads(wire["text"]))
    return MetaValue(tag, wire["value"] if tag == "json" else decode_array(wire["value"]))


def decode_cell(wire: Mapping[str, Any]) -> Cell:
    """A cell from the reply form; origin and boundary may be left out and take their defaults."""
    defined = bool(wire.get("defined", True))
    origin = decode_array(wire["origin"]) if "origin" in wire else np.zeros(3)
    boundary = decode_array(wire["boundary"]) if "boundary" in wire else np.full(3, defined)
    return Cell(decode_array(wire["vectors"]), origin, boundary, defined)


def decode_block(wire: Mapping[str, Any]) -> Block:
    """A block from the reply form."""
    from trajconform.model.trajectory import Column

    masks = {name: decode_array(mask) for name, mask in (wire.get("validity") or {}).items()}
    columns = {n: Column(decode_array(values), masks.get(n)) for n, values in wire["columns"].items()}
    unknown = set(masks) - set(columns)
    if unknown:
        raise ValueError(f"a mask names no column: {', '.join(sorted(unknown))}")
    shape = wire.get("shape")
    return Block(decode_int(wire["rows"]), columns, tuple(shape) if shape is not None else None)


def compare(
    expected: Mapping[str, Any],
    actual: Mapping[str, Any],
    parts: Iterable[str] = (),
    free: Iterable[str] = (),
) -> list[Difference]:
    """Differences between two replies, bit for bit; empty when they say the same.

    ``parts`` names the optional parts to hold to the expected ones; ``free`` the paths (as differences spell them)
    that are left to the implementation. At most 50 differences are listed.
    """
    skipped = set(OPTIONAL_PARTS) - set(parts)
    freed = set(free)
    found: list[Difference] = []
    for difference in _walk("", expected, actual, skipped):
        if difference.path in freed:
            continue
        found.append(difference)
        if len(found) >= _MAX_DIFFERENCES:
            break
    return found


def _walk(path: str, expected: Any, actual: Any, skipped: set[str]) -> Iterator[Difference]:
    if path == "declaration" or path.endswith(".json"):
        if not same_document(expected, actual):
            yield Difference(path, _show(expected), _show(actual), "JSON documents differ")
        return
    if _is_array(expected):
        yield from _array_differences(path, expected, actual)
        return
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping):
            yield Difference(path, _show(expected), _show(actual))
            return
        if expected.get("dtype") == "json" and "value" in expected:
            if actual.get("dtype") != "json" or not same_document(expected["value"], actual.get("value")):
                yield Difference(path, _show(expected), _show(actual), "JSON documents differ")
            return
        if "columns" in expected and "validity" in expected:
            actual = _with_nulls_of(expected, actual)
        for key, value in expected.items():
            if key in skipped and (not path or key == "shape"):
                continue
            below = f"{path}.{key}" if path else str(key)
            if key not in actual:
                yield Difference(below, _show(value), "nothing")
            else:
                yield from _walk(below, value, actual[key], skipped)
        for key, value in actual.items():
            if key not in expected and not (key in skipped and (not path or key == "shape")):
                yield Difference(f"{path}.{key}" if path else str(key), "nothing", _show(value))
        return
    if isinstance(expected, list):
        if not isinstance(actual, list):
            yield Difference(path, _show(expected), _show(actual))
            return
        if len(expected) != len(actual):
            yield Difference(f"{path}.length", str(len(expected)), str(len(actual)))
        for i, (left, right) in enumerate(zip(expected, actual, strict=False)):
            yield from _walk(f"{path}[{i}]", left, right, skipped)
        return
    if path.endswith((".step", ".rows")) or path in ("nstep", "particles"):
        left, right = _integer(expected), _integer(actual)
        if left != right:
            bits = [_integer_bits(number) for number in (left, right)]
            yield Difference(path, _show(expected), _show(actual), "", *(bits if all(bits) else ()))
        return
    if type(expected) is not type(actual) or expected != actual:
        yield Difference(path, _show(expected), _show(actual))


def _with_nulls_of(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> Mapping[str, Any]:
    """A block whose values under false flags are the expected ones: a value that is not there means nothing."""
    columns = actual.get("columns")
    if not isinstance(columns, Mapping):
        return actual
    replaced = dict(columns)
    for name, mask in expected["validity"].items():
        try:
            left, right = decode_array(expected["columns"][name]), decode_array(columns.get(name)).copy()
        except ValueError:
            continue
        if dtype_name(left) == dtype_name(right) and left.shape == right.shape:
            null = ~decode_array(mask)
            right[null] = left[null]
            replaced[name] = encode_array(right)
    return {**actual, "columns": replaced}


def _array_differences(path: str, expected: Any, actual: Any) -> Iterator[Difference]:
    left = decode_array(expected)
    try:
        right = decode_array(actual)
    except ValueError as error:
        yield Difference(path, _show_array(left), _show(actual), str(error))
        return
    if same_bits(left, right):
        return
    if dtype_name(left) != dtype_name(right):
        yield Difference(f"{path}.dtype", dtype_name(left), dtype_name(right), f"values {_show_array(right)}")
    elif left.shape != right.shape:
        yield Difference(f"{path}.shape", str(list(left.shape)), str(list(right.shape)), f"values {_show_array(right)}")
    else:
        at = first_difference(left, right)
        if at is not None:
            name = dtype_name(left)
            index = tuple(int(i) for i in np.unravel_index(at, left.shape)) if left.shape else ()
            where = path + "".join(f"[{i}]" for i in index)
            count = _count_differences(left, right)
            note = f"{count} of {left.size} values differ" if left.size > 1 else ""
            shown = describe_value(left.ravel()[at], name), describe_value(right.ravel()[at], name)
            bits = _value_bits(left, at, name), _value_bits(right, at, name)
            yield Difference(where, *shown, note, *bits)


def _value_bits(array: Array, at: int, name: str) -> str:
    """The bits of one element, most significant byte first; a string has none to show."""
    if array.dtype == object:
        return ""
    item = raw_bytes(array.ravel()[at : at + 1])
    parts = (item[: len(item) // 2], item[len(item) // 2 :]) if name in ("c64", "c128") else (item,)
    return "".join(part[::-1].hex() for part in parts)


def _integer_bits(number: int | None) -> str:
    """A 64-bit integer, signed or not, as hexadecimal digits; nothing where it is none."""
    if number is None or not -(2**63) <= number < 2**64:
        return ""
    return f"{number % 2**64:016x}"


def _count_differences(left: Array, right: Array) -> int:
    if left.dtype == object:
        return sum(x != y for x, y in zip(left.ravel().tolist(), right.ravel().tolist(), strict=True))
    kind = f"V{left.dtype.itemsize}"
    return int(np.count_nonzero(left.ravel().view(kind) != np.ascontiguousarray(right).ravel().view(kind)))


def same_document(a: Any, b: Any) -> bool:
    """Whether two parsed JSON documents are the same: 1 and 1.0 are one number, -0.0 and 0.0 are not, order of keys
    does not matter, a bool is no number."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None or isinstance(a, str):
        return type(a) is type(b) and bool(a == b)
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        if isinstance(a, float) and isinstance(b, float):
            return np.float64(a).tobytes() == np.float64(b).tobytes()
        return a == b
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same_document(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same_document(x, y) for x, y in zip(a, b, strict=True))
    return False


def _is_array(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() == {"dtype", "shape", "data"}


def _integer(value: Any) -> int | None:
    try:
        return decode_int(value)
    except ValueError:
        return None


def _show_array(array: Array, limit: int = 6) -> str:
    name = dtype_name(array)
    flat = array.ravel()
    items = ", ".join(describe_value(v, name) for v in flat[:limit])
    more = f", ... {flat.size - limit} more" if flat.size > limit else ""
    return f"{name}{list(array.shape)} [{items}{more}]"


def _show(value: Any, limit: int = 160) -> str:
    if _is_array(value):
        try:
            return _show_array(decode_array(value))
        except ValueError:
            pass
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
