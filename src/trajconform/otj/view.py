"""An otj file as rules look at it: fields read on demand, never more bytes than the file has."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO

import numpy as np

from trajconform.model.arrays import Array
from trajconform.otj.checksum import fnv1a64, fnv1a64_rows
from trajconform.otj.format import FIXED, MAGIC, SINGLE, VELOCITIES, VERSION, Layout

_BATCH = 1 << 20
"""Bytes of frames that are looked at together, unless one frame is longer."""


class FileView:
    """The parts of one open file. Its length is taken once: what is appended meanwhile is not seen."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.length = stream.seek(0, os.SEEK_END)
        self.fixed = self.read(0, min(self.length, FIXED))
        """Magic, version, flags and particle count, or what the file has of them."""

    def read(self, offset: int, size: int) -> bytes:
        """Exactly ``size`` bytes. OSError when the file has become shorter since it was opened."""
        self._stream.seek(offset)
        data = self._stream.read(size)
        while len(data) < size:  # a raw stream may give less than it was asked for
            more = self._stream.read(size - len(data))
            if not more:
                raise OSError(f"the file became shorter while it was read: {size} bytes at {offset} are not all there")
            data += more
        return data

    @cached_property
    def foreign(self) -> bool:
        """Whether the first bytes are not the magic, nor the beginning of it in a file shorter than that."""
        return self.fixed[:8] != MAGIC[: len(self.fixed)]

    @cached_property
    def version(self) -> int | None:
        """The format version; None where the file is foreign or ends before it."""
        return None if self.foreign or len(self.fixed) < 12 else int.from_bytes(self.fixed[8:12], "little")

    @cached_property
    def known(self) -> bool:
        """Whether the layout of version 1 applies, as far as the file reaches."""
        return not self.foreign and self.version in (None, VERSION)

    @cached_property
    def flags(self) -> int | None:
        """The flags; None where the layout does not apply or the file ends before them."""
        return int.from_bytes(self.fixed[12:16], "little") if self.known and len(self.fixed) >= 16 else None

    @cached_property
    def layout(self) -> Layout | None:
        """The layout that the header announces, whether or not the file can hold it; None where there is none."""
        if self.flags is None or len(self.fixed) < FIXED:
            return None
        particles = int.from_bytes(self.fixed[16:24], "little")
        return Layout(particles, bool(self.flags & SINGLE), bool(self.flags & VELOCITIES))

    @cached_property
    def header(self) -> HeaderBytes | None:
        """The header, where the file holds all of it."""
        if self.layout is None or self.layout.header > self.length:
            return None
        return HeaderBytes(self.layout, self.read(0, self.layout.header))

    @cached_property
    def frames(self) -> int:
        """Number of complete frames, by arithmetic."""
        return self.header.layout.count(self.length) if self.header else 0

    def batch(self, first: int, stop: int) -> FrameBatch:
        """Some complete frames from ``first`` on, before ``stop``: about a mebibyte of them, and at least one."""
        if self.header is None or not 0 <= first < stop <= self.frames:
            raise IndexError(f"frames {first} to {stop} of {self.frames}")
        layout = self.header.layout
        count = min(stop - first, max(1, _BATCH // layout.frame))
        data = self.read(layout.offset(first), count * layout.frame)
        rows = np.frombuffer(data, dtype=np.uint8).reshape(count, layout.frame)
        return FrameBatch(self.header, first, rows)


@dataclass(frozen=True)
class HeaderBytes:
    """A header that is there in full."""

    layout: Layout
    data: bytes

    @property
    def timestep(self) -> Array:
        """The timestep, shape []."""
        return np.frombuffer(self.data, self.layout.dtype, 1, FIXED).reshape(())

    @property
    def masses(self) -> Array:
        """The masses, shape [N]."""
        return np.frombuffer(self.data, self.layout.dtype, self.layout.particles, FIXED + self.layout.scalar)

    @property
    def stored_checksum(self) -> int:
        """The checksum as the header has it."""
        return int.from_bytes(self.data[-8:], "little")

    @cached_property
    def computed_checksum(self) -> int:
        """The checksum of the bytes that it covers."""
        return fnv1a64(memoryview(self.data)[:-8])


@dataclass(frozen=True)
class FrameBatch:
    """Complete frames that follow each other: ``rows`` u8[k, F], the first of them number ``first``."""

    header: HeaderBytes
    first: int
    rows: Any

    def __len__(self) -> int:
        return len(self.rows)

    def offset(self, row: int) -> int:
        """Where a frame of the batch starts in the file."""
        return self.header.layout.offset(self.first + row)

    @cached_property
    def stored_checksums(self) -> Array:
        """The checksums as the frames have them, u64[k]."""
        return self._column(self.header.layout.frame - 8, np.dtype("<u8"))

    @cached_property
    def computed_checksums(self) -> Array:
        """The checksums of the bytes that they cover, u64[k]."""
        return fnv1a64_rows(self.rows[:, :-8])

    @cached_property
    def sound(self) -> Array:
        """Which frames have the right checksum, bool[k]."""
        return np.asarray(self.stored_checksums == self.computed_checksums)

    @cached_property
    def steps(self) -> Array:
        """Step numbers, u64[k]."""
        return self._column(0, np.dtype("<u8"))

    @cached_property
    def times(self) -> Array:
        """Times, f64[k] or f32[k]."""
        return self._column(8, self.header.layout.dtype)

    def components(self, row: int) -> dict[str, Array]:
        """Components of a frame by name, each [N]."""
        layout = self.header.layout
        return {
            name: self.rows[row, layout.component(i)].view(layout.dtype) for i, name in enumerate(layout.components)
        }

    def _column(self, offset: int, dtype: np.dtype[Any]) -> Array:
        return np.ascontiguousarray(self.rows[:, offset : offset + dtype.itemsize]).view(dtype).reshape(-1)
