"""Layout of an otj file: constants, and the arithmetic from which every offset follows.

All sums are on Python integers, which do not wrap: a particle count of 2**64 - 1 gives a header length of 2**67, not a
small number (OTJ-HEADER-13).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from trajconform.model.arrays import Array

MAGIC = b"ORRERYTJ"
VERSION = 1
SINGLE = 1 << 0
VELOCITIES = 1 << 1
RESERVED = 0xFFFFFFFF & ~(SINGLE | VELOCITIES)

FIXED = 24
"""Bytes of the header before the timestep: magic, version, flags, particle count."""

MAX_STEP = 2**64 - 1
PRECISIONS = {"double": 8, "single": 4}
POSITIONS = ("x", "y", "z")
ALL_COMPONENTS = ("x", "y", "z", "vx", "vy", "vz")

Location = str | os.PathLike[str]


@dataclass(frozen=True)
class Layout:
    """Where everything is, given N and the two flags. Lengths and offsets are in bytes, exact at any size."""

    particles: int
    single: bool
    velocities: bool

    @property
    def scalar(self) -> int:
        """R, the size of a scalar."""
        return 4 if self.single else 8

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a scalar."""
        return np.dtype("<f4") if self.single else np.dtype("<f8")

    @property
    def precision(self) -> str:
        """``single`` or ``double``."""
        return "single" if self.single else "double"

    @property
    def flags(self) -> int:
        """The flags field."""
        return SINGLE * self.single | VELOCITIES * self.velocities

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the components of a frame, in file order."""
        return ALL_COMPONENTS if self.velocities else POSITIONS

    @property
    def header(self) -> int:
        """H, the length of the header."""
        return FIXED + self.scalar + self.particles * self.scalar + 8

    @property
    def frame(self) -> int:
        """F, the length of a frame."""
        return 8 + self.scalar + len(self.components) * self.particles * self.scalar + 8

    def count(self, length: int) -> int:
        """K, the number of complete frames in a file of ``length`` bytes (OTJ-COUNT-03)."""
        return max(length - self.header, 0) // self.frame

    def offset(self, frame: int) -> int:
        """Where a frame starts (OTJ-COUNT-04)."""
        return self.header + frame * self.frame

    def cut(self, length: int) -> int:
        """Bytes of a last frame that stops in the middle."""
        return max(length - self.header, 0) % self.frame

    def component(self, index: int) -> slice:
        """Bytes of a component within its frame."""
        size = self.particles * self.scalar
        start = 8 + self.scalar + index * size
        return slice(start, start + size)


def frame_times(steps: Array, timestep: Array) -> Array:
    """Times of frames: ``steps`` u64[k] and ``timestep`` f64[] or f32[] give f64[k] or f32[k] (OTJ-FRAME-08).

    Each step is converted to the precision of the timestep, rounded once from the integer itself (never by way of the
    wider format), and the product is rounded once.
    """
    with np.errstate(all="ignore"):
        return np.asarray(steps.astype(timestep.dtype) * timestep, dtype=timestep.dtype)
