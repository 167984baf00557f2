"""Exact arrays: the thirteen record dtypes and binary32, their wire form and their bits.

Numbers that must be exact never travel as decimal text: an array is its dtype, its shape and the base64 of its
little-endian bytes in C order. Strings travel as a flat JSON list. In memory a numeric array is a little-endian
numpy array and a string array is an object array of `str`.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

NUMPY_DTYPES: dict[str, np.dtype[Any]] = {
    "f64": np.dtype("<f8"),
    "f32": np.dtype("<f4"),
    "i8": np.dtype("i1"),
    "i16": np.dtype("<i2"),
    "i32": np.dtype("<i4"),
    "i64": np.dtype("<i8"),
    "u8": np.dtype("u1"),
    "u16": np.dtype("<u2"),
    "u32": np.dtype("<u4"),
    "u64": np.dtype("<u8"),
    "bool": np.dtype("?"),
    "string": np.dtype("O"),
    "c64": np.dtype("<c8"),
    "c128": np.dtype("<c16"),
}
"""dtype name of the formats -> numpy dtype. ``f32`` exists for single-precision otj files only."""

RECORD_DTYPES = ("f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "string", "c64", "c128")
"""The closed set of dtypes a block column may have."""

_NAMES = {dtype: name for name, dtype in NUMPY_DTYPES.items()}
_EXACT_JSON_INTEGER = 2**53
_FLOAT_PART = {"f32": "f32", "f64": "f64", "c64": "f32", "c128": "f64"}
_MAX_WIRE_RANK = 32
_GLANCE = 4096
"""Of arrays of more bytes the first row is compared before all of it: where they differ, that mostly shows it."""


def dtype_name(array: Array) -> str:
    """Name of an array's dtype (``f64`` ...). ValueError for a dtype that the formats do not have."""
    name = _NAMES.get(array.dtype)
    if name is None and array.dtype.kind in "fciu":
        name = _NAMES.get(array.dtype.newbyteorder("<"))
    if name is None:
        hint = "; text is an object array of str" if array.dtype.kind in "UST" else ""
        raise ValueError(f"dtype {array.dtype} is none of {', '.join(NUMPY_DTYPES)}{hint}")
    return name


def encode_int(value: int) -> int | str:
    """An integer as JSON: a number up to 2**53 in magnitude, beyond it its decimal string."""
    return value if abs(value) <= _EXACT_JSON_INTEGER else str(value)


def decode_int(value: object) -> int:
    """Read what `encode_int` writes; an exact JSON integer beyond 2**53 is taken too. ValueError otherwise."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and len(value) <= 40:
        digits = value[1:] if value.startswith("-") else value
        if digits.isascii() and digits.isdigit():
            return int(value)
    raise ValueError(f"{_short(value)} is not an integer or the decimal string of one")


def encode_array(array: Array) -> dict[str, Any]:
    """Wire form of an array of any shape: ``{"dtype", "shape", "data"}``."""
    name = dtype_name(array)
    shape = [int(n) for n in array.shape]
    if name == "string":
        return {"dtype": name, "shape": shape, "data": [str(s) for s in array.ravel().tolist()]}
    data = np.ascontiguousarray(array, dtype=NUMPY_DTYPES[name]).tobytes()
    return {"dtype": name, "shape": shape, "data": base64.b64encode(data).decode("ascii")}


def decode_array(wire: object) -> Array:
    """Read a wire form. ValueError says what is wrong; memory follows the data given, never the claimed shape."""
    if not isinstance(wire, dict):
        raise ValueError(f"an array is an object with dtype, shape and data, not {_short(wire)}")
    name, shape, data = wire.get("dtype"), wire.get("shape"), wire.get("data")
    if not isinstance(name, str) or name not in NUMPY_DTYPES:
        raise ValueError(f"unknown array dtype {_short(name)}")
    if not isinstance(shape, list) or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in shape):
        raise ValueError(f"an array's shape is a list of integers >= 0, not {_short(shape)}")
    if len(shape) > _MAX_WIRE_RANK:
        raise ValueError(f"an array of {len(shape)} axes is not supported")
    size = math.prod(shape)
    if name == "string":
        if not isinstance(data, list) or any(not isinstance(s, str) for s in data):
            raise ValueError("the data of a string array is a list of strings")
        if len(data) != size:
            raise ValueError(f"shape {shape} asks for {size} strings, data holds {len(data)}")
        return strings(data).reshape(shape)
    if not isinstance(data, str):
        raise ValueError(f"the data of a {name} array is a base64 string, not {_short(data)}")
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"the data of a {name} array is not base64: {error}") from None
    dtype = NUMPY_DTYPES[name]
    if len(raw) != size * dtype.itemsize:
        raise ValueError(f"shape {shape} of {name} takes {size * dtype.itemsize} bytes, data holds {len(raw)}")
    if name == "bool" and raw.translate(None, b"\x00\x01"):
        raise ValueError("a bool array holds bytes other than 0 and 1")
    return np.frombuffer(raw, dtype=dtype).reshape(shape)


def strings(values: Iterable[str]) -> Array:
    """A one-axis object array of `str`."""
    listed = list(values)
    out = np.empty(len(listed), dtype=object)
    out[:] = listed
    return out


def float_from_bits(text: str, name: str) -> Any:
    """``"0x7ff8000000000001"`` -> the f64 (or f32) with just these bits. ValueError for anything else."""
    digits = NUMPY_DTYPES[name].itemsize * 2
    body = text[2:] if text[:2] in ("0x", "0X") else ""
    if len(body) != digits or any(c not in "0123456789abcdefABCDEF" for c in body):
        raise ValueError(f"{text!r} is not 0x and {digits} hexadecimal digits, the bits of a {name}")
    return np.frombuffer(bytes.fromhex(body)[::-1], dtype=NUMPY_DTYPES[name])[0]


def array_from_plain(name: str, data: Any, shape: Sequence[int] | None = None) -> Array:
    """Exact array from plain values as vectors spell them.

    ``data`` is a scalar or nested lists: floats as numbers (NaN is the quiet NaN without payload) or as ``"0x..."``
    bits, complex as ``[re, im]``, integers as integers of any size or decimal strings, bools, strings. ``shape`` is
    needed only where nesting cannot tell (zero rows with trailing axes). ValueError where a value does not fit.
    """
    if name not in NUMPY_DTYPES:
        raise ValueError(f"unknown dtype {name!r}")
    flat: list[Any] = []
    found = _flatten(data, flat, name in ("c64", "c128"))
    if shape is None:
        shape = found
    elif math.prod(shape) != len(flat):
        raise ValueError(f"shape {list(shape)} does not hold {len(flat)} values")
    if name == "string":
        for value in flat:
            if not isinstance(value, str):
                raise ValueError(f"{_short(value)} is not a string")
        return strings(flat).reshape(shape)
    dtype = NUMPY_DTYPES[name]
    if name in _FLOAT_PART:
        part = _FLOAT_PART[name]
        numbers = [n for pair in flat for n in pair] if name in ("c64", "c128") else flat
        out = np.empty(len(numbers), dtype=NUMPY_DTYPES[part])
        for i, value in enumerate(numbers):
            out[i] = _float(value, part)
        return out.view(dtype).reshape(shape)
    if name == "bool":
        for value in flat:
            if not isinstance(value, bool):
                raise ValueError(f"{_short(value)} is not a bool")
        return np.array(flat, dtype=dtype).reshape(shape)
    info = np.iinfo(dtype)
    integers = [decode_int(value) for value in flat]
    for integer in integers:
        if not int(info.min) <= integer <= int(info.max):
            raise ValueError(f"{integer} is out of the range of {name}")
    return np.array(integers, dtype=dtype).reshape(shape)


def same_bits(a: Array, b: Array) -> bool:
    """Whether dtype, shape and every bit agree: -0.0 is not 0.0 and a NaN equals only a NaN of the same bits."""
    if a.shape != b.shape:
        return False
    if a.dtype != b.dtype and a.dtype.newbyteorder("<") != b.dtype.newbyteorder("<"):
        return False
    if a.dtype == object:
        return bool(a.ravel().tolist() == b.ravel().tolist())
    if a.nbytes <= _GLANCE and a.dtype == b.dtype:
        return a.tobytes() == b.tobytes()
    if a.nbytes > _GLANCE and len(a) > 1 and raw_bytes(a[:1]) != raw_bytes(b[:1]):
        return False
    return raw_bytes(a) == raw_bytes(b)


def raw_bytes(array: Array) -> bytes:
    """Little-endian C-order bytes of a numeric array."""
    dtype = NUMPY_DTYPES[dtype_name(array)]
    return array.tobytes() if array.dtype == dtype else array.astype(dtype).tobytes()


def describe_value(value: Any, name: str) -> str:
    """A value and its bits, for a person: ``-0.0 (0x8000000000000000)``. Integers and strings have no bits to show."""
    if name == "string":
        return _short(value)
    if name in _FLOAT_PART:
        item = np.asarray(value, dtype=NUMPY_DTYPES[name])
        parts = item.reshape(1).view(NUMPY_DTYPES[_FLOAT_PART[name]])
        shown = [f"{part!r} (0x{part.tobytes()[::-1].hex()})" for part in (p for p in parts)]
        plain = [s.replace("np.float64(", "").replace("np.float32(", "").replace(") (0x", " (0x") for s in shown]
        return plain[0] if len(plain) == 1 else "[" + ", ".join(plain) + "]"
    return str(np.asarray(value).item())


def first_difference(a: Array, b: Array) -> int | None:
    """Flat index of the first element whose bits differ between two arrays of one dtype and shape; None if none."""
    if a.dtype == object:
        pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
        return next((i for i, (x, y) in enumerate(pairs) if x != y), None)
    size = a.dtype.itemsize
    left = np.frombuffer(raw_bytes(a), dtype=f"V{size}")
    right = np.frombuffer(raw_bytes(b), dtype=f"V{size}")
    where = np.flatnonzero(left != right)
    return int(where[0]) if len(where) else None


def _flatten(data: Any, out: list[Any], complex_pairs: bool) -> tuple[int, ...]:
    """Append the leaves of nested lists to ``out``; return the shape. ValueError for ragged nesting."""
    if complex_pairs and isinstance(data, list) and len(data) == 2 and not any(isinstance(x, list) for x in data):
        out.append(tuple(data))
        return ()
    if not isinstance(data, (list, tuple)):
        if complex_pairs:
            raise ValueError(f"a complex value is [re, im], not {_short(data)}")
        out.append(data)
        return ()
    shapes = [_flatten(item, out, complex_pairs) for item in data]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("lists of unequal length where an array is asked for")
    return (len(data), *(shapes[0] if shapes else ()))


def _float(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return float_from_bits(value, name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{_short(value)} is not a number")
    if isinstance(value, int) and int(float(value)) != value:
        raise ValueError(f"the integer {value} is no {name}")
    if value != value:
        # What bits a NaN gets on its way through a parser differs by machine; a plain NaN is the quiet one.
        return float_from_bits({"f32": "0x7fc00000", "f64": "0x7ff8000000000000"}[name], name)
    with np.errstate(over="ignore"):
        return NUMPY_DTYPES[name].type(value)


def _short(value: object, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
