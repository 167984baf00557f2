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
from itertools import pairwise
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
class Plain:
    """How an array is stored plainly: rows of an inner chunk and of a shard, bytes of a row, and whether a CRC-32C
    follows each chunk."""

    rows: int
    shard_rows: int
    row_bytes: int
    crc: bool


def plain_layout(node: Any) -> Plain | None:
    """The layout of an `ArrayNode`, None where it is another one."""
    chain, dtype = node.chain, node.dtype
    shard = chain.shard
    if shard is None or chain.orders or chain.after or dtype == "string" or not node.shape:
        return None
    inner = shard.inner
    if inner.orders or inner.serial != "bytes" or inner.after not in ((), (("crc32c", 0),)):
        return None
    size = NUMPY_DTYPES[dtype].itemsize
    row_bytes = size * math.prod(node.trailing)
    whole_rows = node.chunk[1:] == shard.chunk[1:] == node.trailing
    if not whole_rows or not row_bytes or (inner.big and size > 1):
        return None
    return Plain(shard.chunk[0], node.chunk[0], row_bytes, bool(inner.after))


def read_plain(node: Any, plain: Plain, first: int, stop: int) -> Array | None:
    """Rows ``first`` up to ``stop``, None where the general way is the better one. `Refused` as there."""
    shards = range(first // plain.shard_rows, -(-stop // plain.shard_rows))
    if len(shards) > _FEW_SHARDS or stop - first < plain.rows:
        return None
    out = np.empty((stop - first, plain.row_bytes), dtype="u1")
    for number in shards:
        low = max(first, number * plain.shard_rows)
        high = min(stop, (number + 1) * plain.shard_rows)
        _read_shard(node, plain, number, low, high, out[low - first : high - first])
    values: Array = out.view(NUMPY_DTYPES[node.dtype]).reshape(stop - first, *node.trailing)
    values.flags.writeable = False
    return values


def _read_shard(node: Any, plain: Plain, number: int, first: int, stop: int, out: Array) -> None:
    """Some rows of one shard, as bytes ``[stop - first, row_bytes]``."""
    found = node.shard_entries(number)
    if found is None:
        out[...] = np.frombuffer(node.fill_row.tobytes(), dtype="u1")
        return
    name, entries = found
    begin = number * plain.shard_rows
    slot, end = -(-(first - begin) // plain.rows), (stop - begin) // plain.rows
    if slot >= end:
        out[...] = _octets(node.decoded(first, stop), plain)
        return
    low, high = begin + slot * plain.rows, begin + end * plain.rows
    if first < low:
        out[: low - first] = _octets(node.decoded(first, low), plain)
    if high < stop:
        out[high - first :] = _octets(node.decoded(high, stop), plain)
    chunks = out[low - first : high - first].reshape(end - slot, plain.rows * plain.row_bytes)
    offsets, lengths = entries[slot:end, 0], entries[slot:end, 1]
    stored = chunks.shape[1] + 4 * plain.crc
    if np.count_nonzero(lengths == np.uint64(stored)) * 2 < len(lengths):
        out[...] = _octets(node.decoded(first, stop), plain)  # sparse: the general way looks at what is there
        return
    for a, b in _runs(offsets, lengths, stored):
        if lengths[a] != stored or not _read_run(node, name, int(offsets[a]), plain.crc, chunks[a:b]):
            # Not there, not of that size, or damaged: the general way knows, chunk by chunk.
            for i in range(a, b):
                row = low + i * plain.rows
                chunks[i] = _octets(node.decoded(row, row + plain.rows), plain).reshape(-1)


def _octets(values: Array, plain: Plain) -> Array:
    return np.frombuffer(values.tobytes(), dtype="u1").reshape(-1, plain.row_bytes)


def _runs(offsets: Array, lengths: Array, stored: int) -> Iterator[tuple[int, int]]:
    """Ranges of entries that one read can take: each behind the one before, and as long as it should be."""
    fits = lengths == np.uint64(stored)
    joined = fits[1:] & fits[:-1] & (offsets[1:] - offsets[:-1] == np.uint64(stored))
    edges = [0, *(np.flatnonzero(~joined) + 1).tolist(), len(offsets)]
    for a, b in pairwise(edges):
        for at in range(a, b, _RUN):
            yield at, min(at + _RUN, b)


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
