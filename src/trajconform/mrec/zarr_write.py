"""Growing Zarr V3 arrays on disk, written so that no interruption harms rows that were committed before.

An array is sharded. Rows are appended to memory and *landed* by whole inner chunks: every shard that changes is
written beside its old version and renamed over it, then the array's ``zarr.json`` is replaced in the same way. A shard
in place is therefore always whole: an index that is overwritten in place may be torn by a power cut, and with it every
row of the shard that was safe before. Rewriting costs at most one shard an array and flush, and most of that is copied
by the kernel.

zarr-python is not used: it rewrites and decodes a whole shard for a partial one, gives no control over the order of
file operations, and that order is what the commit protocol is about.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import google_crc32c
import numpy as np
import zstandard
from numcodecs.shuffle import Shuffle

from trajconform.model.arrays import NUMPY_DTYPES, Array, strings

ZARR_NAMES = {
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "bool": "bool",
    "string": "string",
    "c64": "complex64",
    "c128": "complex128",
}
INNER_CHUNK_BYTES = 16 * 1024
SHARD_BYTES = 64 * 1024 * 1024
_STRING_BYTES = 16
"""What a string is taken to weigh when chunk extents are chosen; its real length is not known then."""
EMPTY = 2**64 - 1
"""Offset and size of a chunk that a shard does not hold."""
_COPY = 8 * 1024 * 1024


class Files(Protocol):
    """The file operations a writer uses; tests record or cut them off."""

    def write(self, path: Path, pieces: Sequence[bytes | memoryview | tuple[Path, int, int]]) -> None:
        """Write a new file from pieces; a tuple is a range (file, start, stop) copied from another file."""

    def sync(self, path: Path) -> None:
        """Make a file's data or a folder's entries durable."""

    def rename(self, source: Path, target: Path) -> None:
        """Atomically replace ``target`` by ``source``."""

    def remove(self, path: Path) -> None:
        """Remove a file."""

    def make_folder(self, path: Path) -> None:
        """Make a folder and those above it."""


class RealFiles:
    """`Files` on the file system."""

    def write(self, path: Path, pieces: Sequence[bytes | memoryview | tuple[Path, int, int]]) -> None:
        with path.open("wb") as out:
            for piece in pieces:
                if isinstance(piece, tuple):
                    source, start, stop = piece
                    with source.open("rb") as old:
                        old.seek(start)
                        left = stop - start
                        while left:
                            block = old.read(min(left, _COPY))
                            if not block:
                                raise OSError(f"{source} is shorter than it was")
                            out.write(block)
                            left -= len(block)
                else:
                    out.write(piece)

    def sync(self, path: Path) -> None:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def rename(self, source: Path, target: Path) -> None:
        source.replace(target)

    def remove(self, path: Path) -> None:
        path.unlink()

    def make_folder(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)


def replace_file(
    files: Files, path: Path, pieces: Sequence[bytes | memoryview | tuple[Path, int, int]], sync: bool
) -> None:
    """Write beside, make durable, rename over: a reader sees the old file or the new one, never a part."""
    beside = path.with_name(f".{path.name}.partial")
    try:
        files.write(beside, pieces)
        if sync:
            files.sync(beside)
        files.rename(beside, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            files.remove(beside)
        if error.filename is None and error.errno is not None:  # no room left: a write does not say where
            error.filename = str(path)
        raise


def write_group(files: Files, folder: Path, attributes: Mapping[str, Any], sync: bool) -> None:
    """Make or replace a group's ``zarr.json``."""
    files.make_folder(folder)
    document: dict[str, Any] = {"zarr_format": 3, "node_type": "group", "attributes": dict(attributes)}
    replace_file(files, folder / "zarr.json", [_json_bytes(document)], sync)
    if sync:
        files.sync(folder)
        files.sync(folder.parent)


def _json_bytes(document: Any) -> bytes:
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


@dataclass(frozen=True)
class Pipeline:
    """Codecs of an inner chunk: serialisation, optional shuffle and compressor, crc32c last."""

    compressor: str | None = None
    """None, ``gzip:LEVEL`` or ``zstd:LEVEL``."""
    shuffle: bool = False

    def metadata(self, dtype: str) -> list[dict[str, Any]]:
        """The ``codecs`` list of the inner chunks."""
        first: dict[str, Any] = {"name": "bytes", "configuration": {"endian": "little"}}
        if dtype == "string":
            first = {"name": "vlen-utf8"}
        elif NUMPY_DTYPES[dtype].itemsize == 1:
            first = {"name": "bytes"}
        codecs = [first]
        if self.shuffle:
            size = NUMPY_DTYPES[dtype].itemsize
            codecs.append({"name": "numcodecs.shuffle", "configuration": {"elementsize": size}})
        if self.compressor:
            name, level = self.compressor.split(":")
            configuration: dict[str, Any] = {"level": int(level)}
            if name == "zstd":
                configuration["checksum"] = False
            codecs.append({"name": name, "configuration": configuration})
        return [*codecs, {"name": "crc32c"}]


def chunk_encoder(codecs: Sequence[Mapping[str, Any]], dtype: str) -> Callable[[Array], bytes]:
    """What makes the bytes of an inner chunk, through codecs as the metadata lists them.

    Made once for the chunks of a shard: looking options up and making a compressor costs as much as a small chunk.
    """
    first, *rest = (_encoding(codec["name"], codec.get("configuration", {}), dtype) for codec in codecs)

    def encode(chunk: Array) -> bytes:
        data: bytes = first(chunk)
        for step in rest:
            data = step(data)
        return data

    return encode


def _encoding(name: str, options: Mapping[str, Any], dtype: str) -> Callable[[Any], bytes]:
    if name == "vlen-utf8":
        return _encode_strings
    if name == "bytes":
        return lambda chunk: np.ascontiguousarray(chunk, dtype=NUMPY_DTYPES[dtype]).tobytes()
    if name == "numcodecs.shuffle":
        shuffle = Shuffle(options.get("elementsize", 4))
        return lambda data: bytes(shuffle.encode(data))
    if name == "gzip":
        return lambda data: _gzip(data, options["level"])
    if name == "zstd":
        # One context for all chunks of a shard: making one costs as much as packing a small chunk.
        return zstandard.ZstdCompressor(options["level"], write_checksum=options.get("checksum", False)).compress
    return lambda data: data + struct.pack("<I", google_crc32c.value(data))


def _encode_strings(chunk: Array) -> bytes:
    texts = [s.encode() for s in chunk.ravel().tolist()]
    return struct.pack("<I", len(texts)) + b"".join(struct.pack("<I", len(t)) + t for t in texts)


def _gzip(data: bytes, level: int) -> bytes:
    # No time stamp: the same rows give the same bytes.
    deflate = zlib.compressobj(level, zlib.DEFLATED, 31)
    return deflate.compress(data) + deflate.flush()


@dataclass
class GrowingArray:
    """One array that rows are appended to. Nothing reaches the disk before `land`."""

    files: Files
    folder: Path
    dtype: str
    trailing: tuple[int, ...]
    pipeline: Pipeline
    attributes: Mapping[str, Any] = field(default_factory=dict)
    inner_rows: int = 0
    """Rows of an inner chunk; chosen at the first landing with rows, from ``frame_rows``."""
    shard_chunks: int = 0
    frame_rows: int = 1
    """Rows that one update typically has: an inner chunk is aligned to whole updates where these are equal."""
    landed: int = 0
    pending: list[Array] = field(default_factory=list)
    waiting: int = 0
    """Rows in ``pending`` and ``numbers``, kept beside them: to add up at every frame would cost more than the frame."""
    numbers: list[int | float] = field(default_factory=list)
    """Rows of one number each that came after ``pending``: an array a number would cost more than the frame."""
    tail: Array | None = None
    """Rows of the last, partial inner chunk, which a later landing writes again."""
    index: Array | None = None
    """Index entries ``[chunk, (offset, size)]`` of the last, partial shard."""
    separator: str = "/"
    """What stands between the parts of a chunk's name."""
    document: Mapping[str, Any] | None = None
    """Metadata of an array that was there before; it is kept as it is but for the shape."""
    shown: int | None = None
    """Rows that the metadata on disk claims; None where there is none."""

    @property
    def rows(self) -> int:
        """Rows landed and pending."""
        return self.landed + self.waiting

    @property
    def pending_bytes(self) -> int:
        """Weight of what waits in memory."""
        return self.waiting * self.row_bytes

    @cached_property
    def row_bytes(self) -> int:
        """What one row weighs in memory."""
        return math.prod(self.trailing) * self._item_bytes

    @cached_property
    def _item_bytes(self) -> int:
        return _STRING_BYTES if self.dtype == "string" else NUMPY_DTYPES[self.dtype].itemsize

    def append(self, values: Array) -> None:
        """Take rows ``[n, *trailing]``; the caller has checked dtype and shape and hands over the array."""
        if len(values):
            self.gather()
            self.pending.append(values)
            self.waiting += len(values)

    def append_number(self, value: int | float) -> None:
        """Take one row of an array without trailing axes."""
        self.numbers.append(value)
        self.waiting += 1

    def gather(self) -> None:
        """Make one array of the numbers that wait."""
        if self.numbers:
            self.pending.append(np.array(self.numbers, dtype=NUMPY_DTYPES[self.dtype]))
            self.numbers = []

    @property
    def exists(self) -> bool:
        """Whether the array is on disk."""
        return self.shown is not None

    @property
    def codecs(self) -> list[dict[str, Any]]:
        """The codecs of an inner chunk."""
        if self.document is None:
            return self.pipeline.metadata(self.dtype)
        inner: list[dict[str, Any]] = self.document["codecs"][0]["configuration"]["codecs"]
        return inner

    def land(self, sync: bool) -> bool:
        """Write what is pending: shards first, then ``zarr.json``. Returns whether anything was written."""
        self.gather()
        if not self.pending and self.shown == self.landed:
            return False
        self.land_rows(sync)
        new = not self.exists
        self._write_metadata(sync)
        if sync:
            self.files.sync(self.folder)
            if new:
                self.files.sync(self.folder.parent)
        return True

    def _extents(self) -> tuple[int, int]:
        """Rows of an inner chunk, chunks of a shard."""
        row = max(1, math.prod(self.trailing) * self._item_bytes)
        wanted = max(1, INNER_CHUNK_BYTES // row)
        step = max(1, self.frame_rows)
        inner = max(1, -(-wanted // step)) * step
        return inner, max(1, SHARD_BYTES // (inner * row))

    def land_rows(self, sync: bool) -> None:
        """Write the shards of what is pending. Nobody counts the rows before the metadata does."""
        self.gather()
        self.files.make_folder(self.folder)
        if not self.pending:
            return
        if not self.inner_rows:
            self.inner_rows, self.shard_chunks = self._extents()
        if 0 in self.trailing:
            # Rows without a value have no chunk.
            self.landed = self.rows
            self.pending, self.waiting = [], 0
            return
        parts = ([self.tail] if self.tail is not None else []) + self.pending
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
        tail_rows = 0 if self.tail is None else len(self.tail)
        first_chunk = (self.landed - tail_rows) // self.inner_rows
        chunks = [rows[i : i + self.inner_rows] for i in range(0, len(rows), self.inner_rows)]
        at = 0
        index = self.index
        while at < len(chunks):
            shard, slot = divmod(first_chunk + at, self.shard_chunks)
            here = chunks[at : at + self.shard_chunks - slot]
            index = self._write_shard(shard, slot, here, index if slot else None, sync)
            at += len(here)
        self.landed += self.waiting
        self.pending, self.waiting = [], 0
        partial = self.landed % self.inner_rows
        self.tail = rows[len(rows) - partial :].copy() if partial else None
        last_shard_full = not partial and (self.landed // self.inner_rows) % self.shard_chunks == 0
        self.index = None if last_shard_full else index

    def _write_shard(self, shard: int, slot: int, chunks: list[Array], index: Array | None, sync: bool) -> Array:
        """Write a shard anew: chunks before ``slot`` are copied from the version in place, the rest is encoded."""
        path = self.folder / self.separator.join(["c", str(shard), *("0" for _ in self.trailing)])
        entries = np.full((self.shard_chunks, 2), EMPTY, dtype="<u8")
        index_bytes = entries.nbytes + 4
        kept_end = index_bytes
        if slot:
            assert index is not None
            entries[:slot] = index[:slot]
            there = entries[:slot][entries[:slot, 0] != EMPTY]
            kept_end = int(there.sum(axis=1).max(initial=kept_end))
        encode = chunk_encoder(self.codecs, self.dtype)
        encoded = [encode(self._whole(chunk)) for chunk in chunks]
        offset = kept_end
        for i, data in enumerate(encoded):
            entries[slot + i] = (offset, len(data))
            offset += len(data)
        raw = entries.tobytes()
        pieces: list[bytes | memoryview | tuple[Path, int, int]] = [raw + struct.pack("<I", google_crc32c.value(raw))]
        if kept_end > index_bytes:
            pieces.append((path, index_bytes, kept_end))
        self.files.make_folder(path.parent)
        replace_file(self.files, path, [*pieces, *encoded], sync)
        if sync:
            folder = path.parent
            while folder != self.folder:
                self.files.sync(folder)
                folder = folder.parent
        return entries

    def _whole(self, chunk: Array) -> Array:
        """A chunk of full extent: what is past the last row holds the fill value."""
        missing = self.inner_rows - len(chunk)
        if not missing:
            return chunk
        if self.dtype == "string":
            filler = strings([""] * (missing * math.prod(self.trailing))).reshape((missing, *self.trailing))
        else:
            filler = np.zeros((missing, *self.trailing), dtype=NUMPY_DTYPES[self.dtype])
        return np.concatenate([chunk, filler])

    def _write_metadata(self, sync: bool) -> None:
        document = dict(self.document or self._metadata(), shape=[self.landed, *self.trailing])
        replace_file(self.files, self.folder / "zarr.json", [_json_bytes(document)], sync)
        self.shown = self.landed

    def _metadata(self) -> dict[str, Any]:
        # Without a row yet: extents for the time being, chosen anew when the first update shows its size.
        inner, per_shard = (self.inner_rows, self.shard_chunks) if self.inner_rows else self._extents()
        extent = [max(1, n) for n in self.trailing]
        fill: Any = {"string": "", "bool": False, "f64": 0.0, "c64": [0.0, 0.0], "c128": [0.0, 0.0]}.get(self.dtype, 0)
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [self.landed, *self.trailing],
            "data_type": ZARR_NAMES[self.dtype],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [inner * per_shard, *extent]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": self.separator}},
            "fill_value": fill,
            "codecs": [
                {
                    "name": "sharding_indexed",
                    "configuration": {
                        "chunk_shape": [inner, *extent],
                        "codecs": self.codecs,
                        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                        "index_location": "start",
                    },
                }
            ],
            "attributes": dict(self.attributes),
        }
