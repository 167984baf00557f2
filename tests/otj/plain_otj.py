"""The format read as the specification says it, in thirty lines of struct: what expectations of cases are held to."""

from __future__ import annotations

import struct
from fractions import Fraction


class NotOtj(Exception):
    """The file has to be refused."""


def fnv(data: bytes) -> int:
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return state


def sums(data: bytes) -> tuple[int, int, int]:
    """H, F and R of a file. `NotOtj` where a reader has to refuse it."""
    if len(data) < 24 or data[:8] != b"ORRERYTJ":
        raise NotOtj
    version, flags, particles = struct.unpack_from("<IIQ", data, 8)
    if version != 1 or flags > 3:
        raise NotOtj
    scalar = 4 if flags & 1 else 8
    header = 32 + scalar + scalar * particles
    if header > len(data) or fnv(data[: header - 8]) != int.from_bytes(data[header - 8 : header], "little"):
        raise NotOtj
    return header, 16 + scalar + (6 if flags & 2 else 3) * particles * scalar, scalar


def sound_frames(data: bytes) -> dict[int, bytes]:
    """The complete frames with a right checksum, by number."""
    header, size, _ = sums(data)
    count = (len(data) - header) // size
    frames = {n: data[header + n * size : header + (n + 1) * size] for n in range(count)}
    return {n: f for n, f in frames.items() if fnv(f[:-8]) == int.from_bytes(f[-8:], "little")}


def nearest(value: Fraction, digits: int, smallest: int, largest: int) -> float:
    """A rational rounded to a binary format of ``digits`` bits, ties to even, subnormals and overflow included."""
    if value < 0:
        return -nearest(-value, digits, smallest, largest)
    if value == 0:
        return 0.0
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > value
    unit = Fraction(2) ** (max(exponent, smallest) - digits + 1)
    rounded = round(value / unit) * unit  # round() of a Fraction goes to even
    return float("inf") if rounded >= Fraction(2) ** (largest + 1) else float(rounded)


def time_of(step: int, timestep: float, single: bool) -> float:
    """Step times timestep in exact arithmetic, rounded as OTJ-FRAME-08 says. Finite timesteps only."""
    form = (24, -126, 127) if single else (53, -1022, 1023)
    count = nearest(Fraction(step), *form)
    product = nearest(Fraction(count) * Fraction(timestep), *form)
    return -abs(product) if struct.pack("<d", timestep)[7] & 0x80 else product
