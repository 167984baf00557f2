"""Rows of plainly stored arrays, read straight to where they are wanted.

Most columns are shards of inner chunks of whole rows, stored as little-endian bytes and perhaps a CRC-32C, one behind
the other. Chunks that a window covers whole need no buffer of their own: one call of the system scatters a run of them
into the result and their checksums beside it. Chunks of which a part is wanted, and all that is odd, is left to
`trajconform.mrec.node`, which also says what is wrong.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np
import zstandard
from numcodecs.shuffle import Shuffle

from trajconform.model.arrays import NUMPY_DTYPES, Array
from trajconform.mrec.store import read_into

_RUN = 500
"""Chunks read by one call: two buffers each, of which the system takes 1,024."""
_READ_BYTES = 4 * 1024 * 1024
"""Packed chunks that lie close are read so many bytes at once."""
_GAP_BYTES = 4096
_MISSING = 2**64 - 1
_FEW_SHARDS = 64
"""More are for the general way, which lists what is there."""


@dataclass(frozen=True)
class WholeRows:
    """Shards whose inner chunks are whole rows: how many rows an inner chunk and a shard have, and the bytes of a row.

    ``plain``: the inner chunks are nothing but little-endian values, and with ``crc`` a CRC-32C behind them.
    ``packed``: that with the size of a shuffle before it (0 for none) and a compressor, 0 and "" where it is plain.
    """

    rows: int
    shard_rows: int
    row_bytes: int
    plain: bool
    crc: bool
    packed: tuple[int, str] | None = None


def whole_rows(node: Any) -> WholeRows | None:
    """The layout of an `ArrayNode`, None where it is another one."""
    chain, dtype = node.chain, node.dtype
    shard = chain.shard
    if shard is None or chain.orders or chain.after or not node.shape or shard.inner.shard is not None:
        return None
    if not node.chunk[1:] == shard.chunk[1:] == node.trailing:
        return None
    inner, row_bytes, wide = shard.inner, 0, False
    if dtype != "string":
        size = NUMPY_DTYPES[dtype].itemsize
        row_bytes, wide = size * math.prod(node.trailing), size > 1
    straight = bool(row_bytes) and not inner.orders and not (inner.big and wide)
    after, crc, shuffle, compressor = list(inner.after), False, 0, ""
    if after and after[-1][0] == "crc32c":
        crc = bool(after.pop())
    if after and after[-1][0] in ("gzip", "zstd"):
        compressor = after.pop()[0]
    if after and compressor and after[-1][0] == "numcodecs.shuffle" and row_bytes * shard.chunk[0] % after[-1][1] == 0:
        shuffle = after.pop()[1]
    packed = (shuffle, compressor) if straight and compressor and not after else None
    plain = straight and not compressor and not after
    return WholeRows(shard.chunk[0], node.chunk[0], row_bytes, plain, crc, packed)


def read_within(node: Any, layout: WholeRows, first: int, stop: int) -> Array | None:
    """Rows that lie in one inner chunk, which is decoded whole and kept; None where the chunk is missing."""
    number, row = divmod(first, layout.shard_rows)
    slot, begin = divmod(row, layout.rows)
    chunk: Array | None = node.inner_chunk(number, slot)
    return None if chunk is None else chunk[begin : begin + stop - first]


def read_through(node: Any, layout: WholeRows, first: int, stop: int) -> Array | None:
    """Rows ``first`` up to ``stop``, None where the general way is the better one. `Refused` as there."""
    shards = range(first // layout.shard_rows, -(-stop // layout.shard_rows))
    if len(shards) > _FEW_SHARDS:
        return None
    out = np.empty((stop - first, layout.row_bytes), dtype="u1")
    for number in shards:
        low = max(first, number * layout.shard_rows)
        high = min(stop, (number + 1) * layout.shard_rows)
        _read_shard(node, layout, number, low, high, out[low - first : high - first])
    values: Array = out.view(NUMPY_DTYPES[node.dtype]).reshape(stop - first, *node.trailing)
    values.flags.writeable = False
    return values


def _read_shard(node: Any, layout: WholeRows, number: int, first: int, stop: int, out: Array) -> None:
    """Some rows of one shard, as bytes ``[stop - first, row_bytes]``."""
    found = node.shard_entries(number)
    if found is None:
        out[...] = np.frombuffer(node.fill_row.tobytes(), dtype="u1")
        return
    name, entries = found
    begin = number * layout.shard_rows
    slot, end = -(-(first - begin) // layout.rows), (stop - begin) // layout.rows
    low, high = begin + slot * layout.rows, begin + end * layout.rows
    if low > first:
        _part(node, layout, number, slot - 1, first, min(low, stop), out[: low - first])
    if stop > max(high, low):
        _part(node, layout, number, end, high, stop, out[high - first :])
    if slot >= end:
        return
    chunks = out[low - first : high - first].reshape(end - slot, layout.rows * layout.row_bytes)
    wanted, stored = entries[slot:end], chunks.shape[1] + 4 * layout.crc
    if not layout.plain:
        unpack, strict = _unpacker(layout, chunks.shape[1]), node.dtype == "bool"
        there = np.flatnonzero((wanted != np.uint64(_MISSING)).any(axis=1))
        if len(there) < len(wanted):
            chunks[...] = np.tile(_octets(node.fill_row[None], layout)[0], layout.rows)
        for i, data in zip(there.tolist(), _stored(node, name, wanted[there]), strict=True):
            row = begin + (slot + i) * layout.rows
            if unpack is None or not unpack(data, chunks[i]) or (strict and bool((chunks[i] > 1).any())):
                _part(node, layout, number, slot + i, row, row + layout.rows, chunks[i], False)
        return
    if np.count_nonzero(wanted[:, 1] == np.uint64(stored)) * 2 < len(wanted):
        out[low - first : high - first] = _octets(node.decoded(low, high), layout)
        return
    for a, b, offset in _runs(wanted, stored):
        if offset is None or not _read_run(node, name, offset, layout.crc, chunks[a:b]):
            # Not there, not of that size, or damaged: the general way knows, chunk by chunk.
            for i in range(a, b):
                row = low + i * layout.rows
                chunks[i] = _octets(node.decoded(row, row + layout.rows), layout).reshape(-1)


def _part(
    node: Any, layout: WholeRows, number: int, slot: int, first: int, stop: int, out: Array, keep: bool = True
) -> None:
    """Rows of one inner chunk, kept decoded where its other rows are likely to be asked for next."""
    chunk = node.inner_chunk(number, slot, keep)
    begin = number * layout.shard_rows + slot * layout.rows
    rows = node.fill_row[None] if chunk is None else chunk[first - begin : stop - begin]
    out.reshape(-1, layout.row_bytes)[...] = _octets(rows, layout)


def _stored(node: Any, name: str, entries: Array) -> Iterator[bytes]:
    """What is stored of each entry, read many at once where they lie close."""
    data, base = b"", 0
    listed = entries.tolist()
    for i, (offset, length) in enumerate(listed):
        if not base <= offset <= offset + length <= base + len(data):
            stop = offset + length
            for later, more in listed[i + 1 : i + _RUN]:
                if not stop <= later <= stop + _GAP_BYTES or later + more - offset > _READ_BYTES:
                    break
                stop = later + more
            data, base = node.store.files.read(name, offset, stop - offset), offset
        yield data[offset - base : offset - base + length]


def _unpacker(layout: WholeRows, size: int) -> Callable[[bytes, Array], bool] | None:
    """A function that unpacks what is stored of a chunk into so many bytes, False where it does not come out as such."""
    if layout.packed is None or size > _READ_BYTES:
        return None
    unshuffle = Shuffle(layout.packed[0]).decode if layout.packed[0] else None
    gzip = layout.packed[1] == "gzip"
    stream = zstandard.ZstdDecompressor(max_window_size=1 << 27)

    def unpack(data: bytes, out: Array) -> bool:
        if layout.crc:
            if len(data) < 4 or google_crc32c.value(data[:-4]) != int.from_bytes(data[-4:], "little"):
                return False
            data = data[:-4]
        try:
            if gzip:
                inflate = zlib.decompressobj(31)
                plain = inflate.decompress(data, size + 1)
                if not inflate.eof or inflate.unused_data:
                    return False
            elif zstandard.get_frame_parameters(data).content_size == size:
                plain = stream.decompress(data, allow_extra_data=False)
            else:
                return False
        except (zlib.error, zstandard.ZstdError):
            return False
        if len(plain) != size:
            return False
        values = np.frombuffer(plain, dtype="u1")
        if unshuffle:
            unshuffle(values, out)
        else:
            out[...] = values
        return True

    return unpack


def _octets(values: Array, layout: WholeRows) -> Array:
    return np.ascontiguousarray(values).view("u1").reshape(-1, layout.row_bytes)


def _runs(entries: Array, stored: int) -> Iterator[tuple[int, int, int | None]]:
    """Ranges of entries that one read can take, each behind the one before, and where they begin; with None, one entry
    that is not as long as it should be."""
    begin, next_offset = 0, -1
    start: int | None = None
    for i, (offset, length) in enumerate(entries.tolist()):
        if i and (length != stored or offset != next_offset or i - begin == _RUN):
            yield begin, i, start
            begin = i
        if begin == i:
            start = offset if length == stored else None
        next_offset = offset + stored if length == stored else -1
    yield begin, len(entries), start


def _read_run(node: Any, name: str, offset: int, crc: bool, chunks: Array) -> bool:
    """Read chunks ``[n, bytes]`` that lie one behind the other. Whether all are there and sound."""
    places = [chunks.reshape(-1)] if not crc else []
    checks = np.empty(len(chunks), dtype="<u4")
    for chunk, check in zip(chunks, checks.view("u1").reshape(-1, 4), strict=True) if crc else ():
        places += [chunk, check]
    if read_into(node.store.files, name, offset, places) != sum(p.nbytes for p in places):
        return False
    if node.dtype == "bool" and bool((chunks > 1).any()):
        return False
    return not crc or [google_crc32c.value(chunk) for chunk in chunks] == checks.tolist()
