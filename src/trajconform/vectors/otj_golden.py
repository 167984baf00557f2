"""Golden otj files: bytes and expected replies from plain declarations, and the single defects derived from them.

Nothing here is shared with `trajconform.otj`: the bytes come from `struct` and a loop over FNV-1a, so that the bundled
implementation is judged by them like any other. Times are declared, not computed, for the same reason.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trajconform.model.arrays import array_from_plain, encode_array, encode_int
from trajconform.model.errors import TrajconformError

_FIELDS = {"title", "particles", "precision", "velocities", "timestep", "masses", "frames"}
_POSITIONS = ("x", "y", "z")
_VELOCITIES = ("vx", "vy", "vz")


def build_otj(declaration: Mapping[str, Any]) -> bytes:
    """Bytes of the file that a declaration describes.

    The declaration holds ``title``, ``particles``, ``precision`` (double, single), ``velocities``, ``timestep``,
    ``masses`` and ``frames``, each frame ``step``, ``time``, ``x``, ``y``, ``z`` and, with velocities, ``vx``, ``vy``,
    ``vz``. Numbers are plain, or their bits as ``"0x..."``. `TrajconformError` where it does not add up.
    """
    names = _checked(declaration)
    single = declaration["precision"] == "single"
    flags = (1 if single else 0) + (2 if declaration["velocities"] else 0)
    header = b"ORRERYTJ" + struct.pack("<IIQ", 1, flags, declaration["particles"])
    header += _scalars([declaration["timestep"]], single) + _scalars(declaration["masses"], single)
    out = [header, _checksum(header)]
    for frame in declaration["frames"]:
        body = struct.pack("<Q", frame["step"]) + _scalars([frame["time"]], single)
        body += b"".join(_scalars(frame[name], single) for name in names)
        out += [body, _checksum(body)]
    return b"".join(out)


def reply_otj(declaration: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader hands back for the file of a declaration, in the reply form, with a clean tail."""
    names = _checked(declaration)
    dtype = "f32" if declaration["precision"] == "single" else "f64"

    def array(data: Any, shape: list[int]) -> dict[str, Any]:
        return encode_array(array_from_plain(dtype, data, shape))

    count = [declaration["particles"]]
    return {
        "format": "otj",
        "particles": encode_int(declaration["particles"]),
        "precision": declaration["precision"],
        "velocities": declaration["velocities"],
        "timestep": array(declaration["timestep"], []),
        "masses": array(declaration["masses"], count),
        "frames": [
            {"step": encode_int(frame["step"]), "time": array(frame["time"], [])}
            | {name: array(frame[name], count) for name in names}
            for frame in declaration["frames"]
        ],
        "tail": {"state": "clean", "bytes": 0},
    }


def apply_otj_defects(data: bytes, defects: Iterable[Mapping[str, Any]]) -> bytes:
    """The bytes after each defect in turn: ``{op: {argument: value}}``, one op each.

    ``cut {size}``, ``set_bytes {offset, hex}``, ``flip_bit {offset, bit}``, ``set_u32 {offset, value}``, ``set_u64
    {offset, value}``, ``append {hex, times?}``, ``insert {offset, hex}``, ``remove {offset, size}``,
    ``fix_header_checksum {at?}`` (the checksum of the bytes before it; ``at`` where the announced length is a lie) and
    ``fix_frame_checksum {frame}``. `TrajconformError` for anything that would change no byte, or lies outside the file.
    """
    for defect in defects:
        if len(defect) != 1:
            raise TrajconformError(f"a defect is one operation with its arguments, not {dict(defect)}")
        [(name, arguments)] = defect.items()
        operation = _DEFECTS.get(name)
        if operation is None:
            raise TrajconformError(f"unknown otj defect {name!r}; there are {', '.join(_DEFECTS)}")
        try:
            changed = operation(data, **(arguments or {}))
        except (TypeError, ValueError, OverflowError, struct.error) as error:
            raise TrajconformError(f"otj defect {name} {arguments}: {error}") from None
        if changed == data and name not in ("fix_header_checksum", "fix_frame_checksum"):
            raise TrajconformError(f"otj defect {name} {arguments} changes nothing")
        data = changed
    return data


def _checked(declaration: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the components; `TrajconformError` where counts and names do not add up."""
    missing = _FIELDS - declaration.keys()
    if missing or declaration.keys() - _FIELDS:
        raise TrajconformError(f"an otj golden has the fields {sorted(_FIELDS)}, this one {sorted(declaration)}")
    if declaration["precision"] not in ("double", "single"):
        raise TrajconformError(f"precision is double or single, not {declaration['precision']!r}")
    count = declaration["particles"]
    names = _POSITIONS + (_VELOCITIES if declaration["velocities"] else ())
    if len(declaration["masses"]) != count:
        raise TrajconformError(f"{len(declaration['masses'])} masses for {count} particles")
    for i, frame in enumerate(declaration["frames"]):
        if set(frame) != {"step", "time", *names}:
            raise TrajconformError(f"frame {i} has {sorted(frame)}, it needs step, time, {', '.join(names)}")
        for name in names:
            if len(frame[name]) != count:
                raise TrajconformError(f"frame {i}: {len(frame[name])} values of {name} for {count} particles")
    return names


def _scalars(values: Iterable[Any], single: bool) -> bytes:
    return b"".join(_scalar(value, single) for value in values)


def _scalar(value: Any, single: bool) -> bytes:
    size = 4 if single else 8
    if isinstance(value, str):
        if not value.startswith("0x") or len(value) != 2 + 2 * size:
            raise TrajconformError(f"{value!r} is not the {2 * size} hexadecimal digits of a scalar")
        return bytes.fromhex(value[2:])[::-1]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TrajconformError(f"{value!r} is not a number")
    return struct.pack("<f" if single else "<d", value)


def _checksum(data: bytes) -> bytes:
    state = 14695981039346656037
    for byte in data:
        state ^= byte
        state = state * 1099511628211 % 18446744073709551616
    return struct.pack("<Q", state)


def _put(data: bytes, offset: int, new: bytes) -> bytes:
    if not 0 <= offset <= len(data) - len(new):
        raise ValueError(f"bytes {offset} to {offset + len(new)} are not in a file of {len(data)} bytes")
    return data[:offset] + new + data[offset + len(new) :]


def _cut(data: bytes, size: int) -> bytes:
    if not 0 <= size < len(data):
        raise ValueError(f"a file of {len(data)} bytes cannot be cut to {size}")
    return data[:size]


def _set_bytes(data: bytes, offset: int, hex: str) -> bytes:  # noqa: A002  (the argument's name in case files)
    return _put(data, offset, bytes.fromhex(hex))


def _flip_bit(data: bytes, offset: int, bit: int) -> bytes:
    if not (0 <= offset < len(data) and 0 <= bit < 8):
        raise ValueError(f"no bit {bit} of byte {offset} in a file of {len(data)} bytes")
    return _put(data, offset, bytes([data[offset] ^ 1 << bit]))


def _set_u32(data: bytes, offset: int, value: int) -> bytes:
    return _put(data, offset, struct.pack("<I", value))


def _set_u64(data: bytes, offset: int, value: int) -> bytes:
    return _put(data, offset, struct.pack("<Q", value))


def _append(data: bytes, hex: str, times: int = 1) -> bytes:  # noqa: A002
    return data + bytes.fromhex(hex) * times


def _insert(data: bytes, offset: int, hex: str) -> bytes:  # noqa: A002
    if not 0 <= offset <= len(data):
        raise ValueError(f"no byte {offset} in a file of {len(data)} bytes")
    return data[:offset] + bytes.fromhex(hex) + data[offset:]


def _remove(data: bytes, offset: int, size: int) -> bytes:
    if not 0 <= offset <= offset + size <= len(data):
        raise ValueError(f"no {size} bytes at {offset} in a file of {len(data)} bytes")
    return data[:offset] + data[offset + size :]


def _fix_header_checksum(data: bytes, at: int | None = None) -> bytes:
    if at is None:
        flags, particles = struct.unpack_from("<IQ", data, 12)
        at = 24 + (4 if flags & 1 else 8) * (1 + particles)
    return _put(data, at, _checksum(data[:at]))


def _fix_frame_checksum(data: bytes, frame: int) -> bytes:
    flags, particles = struct.unpack_from("<IQ", data, 12)
    scalar = 4 if flags & 1 else 8
    header = 32 + scalar * (1 + particles)
    size = 16 + scalar * (1 + particles * (6 if flags & 2 else 3))
    start = header + frame * size
    return _put(data, start + size - 8, _checksum(data[start : start + size - 8]))


_DEFECTS: dict[str, Callable[..., bytes]] = {
    "cut": _cut,
    "set_bytes": _set_bytes,
    "flip_bit": _flip_bit,
    "set_u32": _set_u32,
    "set_u64": _set_u64,
    "append": _append,
    "insert": _insert,
    "remove": _remove,
    "fix_header_checksum": _fix_header_checksum,
    "fix_frame_checksum": _fix_frame_checksum,
}
