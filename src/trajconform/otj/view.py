"""An otj file as rules look at it: fields read on demand, never more bytes than the file has."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO

import numpy as np

from trajconform.model.arrays import Array
from trajconform.model.remote import RemoteFile
from trajconform.otj.checksum import OFFSET_BASIS, U64, fnv1a64, fnv1a64_rows
from trajconform.otj.format import FIXED, MAGIC, SINGLE, VELOCITIES, VERSION, Layout
from trajconform.otj.kernel import CHAINS

_BATCH = 1 << 22
"""Bytes of frames that are looked at together, unless so few would not keep the chains of the checksum busy."""
_SPAN = 1 << 16
"""From this length on frames are not read whole to be checked, but a span of several at a time."""


class FileView:
    """The parts of one open file. Its length is taken once: what is appended meanwhile is not seen.

    ``stream`` is raw or buffered, seekable, and read by several threads at a time.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._remote = stream if isinstance(stream, RemoteFile) else None
        self._span = RemoteFile.span if self._remote else _SPAN
        try:
            self._descriptor = stream.fileno()
        except (OSError, AttributeError):  # also of a file behind a URL
            self._descriptor = -1
        self.length = stream.seek(0, os.SEEK_END)
        self.fixed = self.read(0, min(self.length, FIXED))
        """Magic, version, flags and particle count, or what the file has of them."""

    def read(self, offset: int, size: int) -> bytes:
        """Exactly ``size`` bytes. OSError when the file has become shorter since it was opened."""
        buffer = bytearray(size)
        self.read_into(offset, memoryview(buffer))
        return bytes(buffer)

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the bytes from ``offset`` on. OSError when the file has become shorter."""
        size, done = len(buffer), 0
        while done < size:  # a raw stream may give less than it was asked for
            if self._remote is not None:
                piece = self._remote.pread(offset + done, size - done)
                more = len(piece)
                buffer[done : done + more] = piece
            elif self._descriptor >= 0:
                more = os.preadv(self._descriptor, [buffer[done:]], offset + done)
            else:
                with self._lock:
                    self._stream.seek(offset + done)
                    piece = self._stream.read(size - done)
                more = len(piece)
                buffer[done : done + more] = piece
            if not more:
                raise OSError(f"the file became shorter while it was read: {size} bytes at {offset} are not all there")
            done += more

    def _read_rows(self, places: list[int], rows: Any) -> None:
        """Fill each row of u8[k, n] with the bytes from a place on: a file behind a URL is asked for all at a time."""
        if self._remote is None:
            for place, row in zip(places, rows, strict=True):
                self.read_into(place, memoryview(row))
            return
        pieces = self._remote.pread_many([(place, rows.shape[1]) for place in places])
        for row, piece in zip(rows, pieces, strict=True):
            row[:] = np.frombuffer(piece, dtype=np.uint8)

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
        return HeaderBytes(self, self.layout)

    @cached_property
    def frames(self) -> int:
        """Number of complete frames, by arithmetic."""
        return self.header.layout.count(self.length) if self.header else 0

    def batch_size(self) -> int:
        """How many frames make a batch, by their length: a few mebibytes, and enough to keep the chains busy."""
        assert self.header is not None
        length = self.header.layout.frame
        return CHAINS if length > _SPAN else max(CHAINS, _BATCH // length // CHAINS * CHAINS)

    def batch(self, first: int, stop: int, buffer: bytearray | None = None) -> FrameBatch:
        """Some complete frames from ``first`` on, before ``stop``: `batch_size` of them, or what there is.

        ``buffer`` takes the bytes, and grows where need be, instead of memory of the batch's own; the batch is good
        until it is used again.
        """
        if self.header is None or not 0 <= first < stop <= self.frames:
            raise IndexError(f"frames {first} to {stop} of {self.frames}")
        layout = self.header.layout
        count = min(stop - first, self.batch_size())
        if layout.frame > _SPAN:
            return self._long_frames(first, count)
        size = count * layout.frame
        if buffer is None:
            buffer = bytearray(size)
        elif len(buffer) < size:
            buffer += bytes(size - len(buffer))
        self.read_into(layout.offset(first), memoryview(buffer)[:size])
        rows = np.frombuffer(buffer, dtype=np.uint8, count=size).reshape(count, layout.frame)
        rows.flags.writeable = False
        return FrameBatch(self, self.header, first, rows[:, : 8 + layout.scalar], rows[:, -8:], rows)

    def _long_frames(self, first: int, count: int) -> FrameBatch:
        """Frames of which only both ends are kept; the rest is read when it is needed."""
        assert self.header is not None
        layout = self.header.layout
        heads = np.empty((count, 8 + layout.scalar), dtype=np.uint8)
        tails = np.empty((count, 8), dtype=np.uint8)
        places = [layout.offset(first + row) for row in range(count)]
        self._read_rows(places, heads)
        self._read_rows([place + layout.frame - 8 for place in places], tails)
        return FrameBatch(self, self.header, first, heads, tails, None)

    def checksum(self, offset: int, size: int) -> int:
        """FNV-1a of a part of the file, however long, in bounded memory."""
        buffer, state = memoryview(bytearray(min(size, _BATCH))), OFFSET_BASIS
        for start in range(0, size, _BATCH):
            piece = buffer[: min(_BATCH, size - start)]
            self.read_into(offset + start, piece)
            state = fnv1a64(piece, state)
        return state

    def checksums(self, first: int, count: int) -> U64:
        """FNV-1a of what the checksums of long frames cover, a span of all of them at a time."""
        assert self.header is not None
        layout = self.header.layout
        spans = np.empty((count, self._span), dtype=np.uint8)
        states = np.full(count, OFFSET_BASIS, dtype=np.uint64)
        for start in range(0, layout.frame - 8, self._span):
            size = min(self._span, layout.frame - 8 - start)
            self._read_rows([layout.offset(first + row) + start for row in range(count)], spans[:, :size])
            states = fnv1a64_rows(spans[:, :size], states)
        return states


@dataclass(frozen=True)
class HeaderBytes:
    """A header that the file holds in full. Its parts are read when asked for."""

    view: FileView
    layout: Layout

    @cached_property
    def timestep(self) -> Array:
        """The timestep, shape []."""
        return np.frombuffer(self.view.read(FIXED, self.layout.scalar), self.layout.dtype).reshape(())

    @cached_property
    def masses(self) -> Array:
        """The masses, shape [N]."""
        data = self.view.read(FIXED + self.layout.scalar, self.layout.particles * self.layout.scalar)
        return np.frombuffer(data, self.layout.dtype)

    @cached_property
    def stored_checksum(self) -> int:
        """The checksum as the header has it."""
        return int.from_bytes(self.view.read(self.layout.header - 8, 8), "little")

    @cached_property
    def computed_checksum(self) -> int:
        """The checksum of the bytes that it covers."""
        return self.view.checksum(0, self.layout.header - 8)


@dataclass(frozen=True)
class FrameBatch:
    """Complete frames that follow each other, the first of them number ``first``.

    ``heads`` u8[k, 8 + R] are their steps and times, ``tails`` u8[k, 8] their checksums, ``rows`` u8[k, F] all their
    bytes; None where frames are too long to be held.
    """

    view: FileView
    header: HeaderBytes
    first: int
    heads: Any
    tails: Any
    rows: Any | None

    def __len__(self) -> int:
        return len(self.heads)

    def offset(self, row: int) -> int:
        """Where a frame of the batch starts in the file."""
        return self.header.layout.offset(self.first + row)

    @cached_property
    def stored_checksums(self) -> Array:
        """The checksums as the frames have them, u64[k]."""
        return _column(self.tails, np.dtype("<u8"))

    @cached_property
    def computed_checksums(self) -> Array:
        """The checksums of the bytes that they cover, u64[k]."""
        if self.rows is None:
            return self.view.checksums(self.first, len(self))
        return fnv1a64_rows(self.rows[:, :-8])

    @cached_property
    def sound(self) -> Array:
        """Which frames have the right checksum, bool[k]."""
        return np.asarray(self.stored_checksums == self.computed_checksums)

    @cached_property
    def steps(self) -> Array:
        """Step numbers, u64[k]."""
        return _column(self.heads[:, :8], np.dtype("<u8"))

    @cached_property
    def times(self) -> Array:
        """Times, f64[k] or f32[k]."""
        return _column(self.heads[:, 8:], self.header.layout.dtype)

    def components(self, row: int) -> dict[str, Array]:
        """Components of a frame by name, each [N]."""
        layout = self.header.layout
        rows = self.rows
        if rows is None:  # one frame at a time is held, however many the batch has
            rows, row = np.frombuffer(self.view.read(self.offset(row), layout.frame), dtype=np.uint8)[None], 0
        data = rows[row]
        return {name: data[layout.component(i)].view(layout.dtype) for i, name in enumerate(layout.components)}


def _column(octets: Any, dtype: np.dtype[Any]) -> Array:
    return np.ascontiguousarray(octets).view(dtype).reshape(-1)
