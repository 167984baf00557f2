"""Rows of plainly stored arrays, read straight to where they are wanted.

Most columns are shards of inner chunks of whole rows, stored as little-endian bytes and perhaps a CRC-32C, one behind
the other. Chunks that a window covers whole need no buffer of their own: one call of the system scatters a run of them
into the result and their checksums beside it. Chunks of which a part is wanted, and all that is odd, is left to
`trajconform.mrec.node`, which also says what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np

from trajconform.model.arrays import NUMPY_DTYPES, Array
from trajconform.mrec.store import read_into

_RUN = 500
"""Chunks read by one call: two buffers each, of which the system takes 1,024."""
_FEW_SHARDS = 64
"""More are for the general way, which lists what is there."""


@dataclass(frozen=True)
class WholeRows:
    """Shards whose inner chunks are whole rows: how many rows an inner chunk and a shard have, and the bytes of a row.

    ``plain``: the inner chunks are nothing but little-endian values, and with ``crc`` a CRC-32C behind them.
    """

    rows: int
    shard_rows: int
    row_bytes: int
    plain: bool
    crc: bool


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
    plain = bool(row_bytes) and not inner.orders and not (inner.big and wide)
    plain = plain and inner.after in ((), (("crc32c", 0),))
    return WholeRows(shard.chunk[0], node.chunk[0], row_bytes, plain, bool(inner.after))


def read_within(node: Any, layout: WholeRows, first: int, stop: int) -> Array | None:
    """Rows that lie in one inner chunk, which is decoded whole and kept; None where the chunk is missing."""
    number, row = divmod(first, layout.shard_rows)
    slot, begin = divmod(row, layout.rows)
    chunk: Array | None = node.inner_chunk(number, slot)
    return None if chunk is None else chunk[begin : begin + stop - first]


def read_plain(node: Any, layout: WholeRows, first: int, stop: int) -> Array | None:
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
    if np.count_nonzero(wanted[:, 1] == np.uint64(stored)) * 2 < len(wanted):
        out[low - first : high - first] = _octets(node.decoded(low, high), layout)
        return
    for a, b, offset in _runs(wanted, stored):
        if offset is None or not _read_run(node, name, offset, layout.crc, chunks[a:b]):
            # Not there, not of that size, or damaged: the general way knows, chunk by chunk.
            for i in range(a, b):
                row = low + i * layout.rows
                chunks[i] = _octets(node.decoded(row, row + layout.rows), layout).reshape(-1)


def _part(node: Any, layout: WholeRows, number: int, slot: int, first: int, stop: int, out: Array) -> None:
    """Rows of one inner chunk, which is decoded whole and kept, for its other rows are likely to be asked for next."""
    chunk = node.inner_chunk(number, slot)
    begin = number * layout.shard_rows + slot * layout.rows
    rows = node.fill_row[None] if chunk is None else chunk[first - begin : stop - begin]
    out[...] = _octets(rows, layout)


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
