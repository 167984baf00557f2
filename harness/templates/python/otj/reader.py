"""Reads otj with nothing but the standard library. Put the implementation that you want to test in its place."""

import base64
import struct
from pathlib import Path


class Refused(Exception):
    """The input is not what the format allows."""


class Unsupported(Exception):
    """There is no way to do this, whatever the input."""


def checksum(data):
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return struct.pack("<Q", state)


def integer(value):
    return value if abs(value) <= 2**53 else str(value)


def read(path):
    """The reply to a read request for otj."""
    data = Path(path).read_bytes()
    if len(data) < 24 or data[:8] != b"ORRERYTJ":
        raise Refused("not an otj file, or one that ends in its first fields")
    version, flags, particles = struct.unpack_from("<IIQ", data, 8)
    if version != 1:
        raise Refused(f"version {version} is not known")
    if flags & ~3:
        raise Refused(f"flags 0x{flags:08x} set a reserved bit")
    single, velocities = bool(flags & 1), bool(flags & 2)
    scalar = 4 if single else 8
    names = ["x", "y", "z", "vx", "vy", "vz"][: 6 if velocities else 3]
    header = 32 + scalar + particles * scalar
    frame = 16 + scalar + len(names) * particles * scalar
    if header > len(data):
        raise Refused(f"the header of {particles} particles does not fit into {len(data)} bytes")
    if checksum(data[: header - 8]) != data[header - 8 : header]:
        raise Refused("the checksum of the header is wrong")

    def array(start, count=None):
        """The bytes as they stand in the file: a NaN keeps its payload only if nobody computes with it."""
        values = data[start : start + scalar * (1 if count is None else count)]
        shape = [] if count is None else [count]
        return {"dtype": "f32" if single else "f64", "shape": shape, "data": base64.b64encode(values).decode()}

    frames = []
    for start in range(header, len(data) - frame + 1, frame):
        if checksum(data[start : start + frame - 8]) != data[start + frame - 8 : start + frame]:
            break  # the frames before a damaged one are handed back
        (step,) = struct.unpack_from("<Q", data, start)
        first = start + 8 + scalar
        components = {name: array(first + i * particles * scalar, particles) for i, name in enumerate(names)}
        frames.append({"step": integer(step), "time": array(start + 8), **components})
    return {
        "format": "otj",
        "particles": particles,
        "precision": "single" if single else "double",
        "velocities": velocities,
        "timestep": array(24),
        "masses": array(24 + scalar, particles),
        "frames": frames,
    }
