"""64-bit FNV-1a, the checksum of headers and frames (OTJ-SUM-01).

The function is a chain, ``h = (h ^ byte) * P mod 2**64`` for each byte, which leaves a vector machine nothing to do if
taken as written. Two ways around that stand here beside the plain loop:

*Many chains.* Frames of one file have one length, so their chains advance side by side, a column of bytes at a time.

*One long chain.* Only the low byte of ``h`` meets the data, and the low byte of a product depends on low bytes alone.
Let ``l`` be the low byte before a step; then ``h ^ b = h + ((l ^ b) - l)`` and the chain is a polynomial in P:
``h_n = h_0 * P**n + sum(d_i * P**(n - i))`` with ``d_i = (l_i ^ b_i) - l_i``, a dot product. The low bytes follow one
bit plane after the other, because bit k of the next low byte is bit k of ``l ^ b`` flipped by something that the bits
below k decide: a running exclusive or, taken 64 places at a time.

From a few mebibytes on, `trajconform.otj.kernel` does both in machine code where it can.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from trajconform.otj import kernel

OFFSET_BASIS = 0xCBF29CE484222325
PRIME = 0x100000001B3

_MASK = 2**64 - 1
_BLOCK = 1 << 16
_PLAIN_BELOW = 4096
"""Below this many bytes the plain loop is faster than setting up the vectors."""
_SIDE_BY_SIDE_FROM = 16
"""From this many chains on, a column at a time is faster than the plain loop on one after the other."""
_LONG_FROM = 1 << 14
_LONG_SIDE_BY_SIDE_FROM = 128
"""The same where the chains are long enough for their vectors."""
_COMPILE_FROM = 4 << 20
"""Bytes that a process hashes before `kernel` is loaded: numpy takes about as long for them as compiling does."""
_asked = 0

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
Octets = bytes | bytearray | memoryview | U8


def fnv1a64(data: Octets, state: int = OFFSET_BASIS) -> int:
    """FNV-1a of bytes, from the beginning or from the ``state`` after what came before them."""
    size = len(data)
    if size < _PLAIN_BELOW:
        return fnv1a64_plain(data, state)
    octets = np.frombuffer(data, dtype=np.uint8)
    compiled = _compiled(size)
    if compiled is not None:
        return compiled.chain(octets.ctypes.data, size, state)
    for start in range(0, size, _BLOCK):
        state = _advance(state, octets[start : start + _BLOCK])
    return state


def fnv1a64_rows(rows: U8, states: U64 | None = None) -> U64:
    """FNV-1a of each row of ``rows`` u8[k, length], as u64[k], from the beginning or from ``states`` u64[k].

    The rows themselves are contiguous; from one to the next any number of bytes may be skipped.
    """
    if rows.ndim != 2 or rows.dtype != np.uint8:
        raise ValueError(f"rows of bytes are u8[k, length], not {rows.dtype}{list(rows.shape)}")
    count, length = rows.shape
    state = np.full(count, OFFSET_BASIS, dtype=np.uint64) if states is None else states.astype(np.uint64)
    if count == 0 or length == 0:
        return state
    compiled = _compiled(rows.size)
    if compiled is not None and rows.strides[1] == 1 and rows.strides[0] >= length:
        groups = count // kernel.CHAINS
        compiled.rows(rows.ctypes.data, rows.strides[0], groups, length, state.ctypes.data)
        for k in range(groups * kernel.CHAINS, count):
            state[k] = compiled.chain(rows.ctypes.data + k * rows.strides[0], length, int(state[k]))
        return state
    enough = _SIDE_BY_SIDE_FROM if length < _LONG_FROM else _LONG_SIDE_BY_SIDE_FROM
    if count < enough:
        chains = zip(rows, state.tolist(), strict=True)
        return np.array([fnv1a64(np.ascontiguousarray(row), one) for row, one in chains], dtype=np.uint64)
    prime = np.uint64(PRIME)
    width = max(1, _BLOCK // count)
    for start in range(0, length, width):
        for column in rows[:, start : start + width].T.astype(np.uint64):
            state ^= column
            state *= prime
    return state


def _compiled(size: int) -> kernel.Kernel | None:
    """The compiled functions, once so much has been asked for that compiling them pays."""
    global _asked
    _asked += size
    return kernel.load() if _asked >= _COMPILE_FROM else None


def fnv1a64_plain(data: Octets, state: int = OFFSET_BASIS) -> int:
    """The definition itself."""
    for octet in bytes(data):
        state = (state ^ octet) * PRIME & _MASK
    return state


def _advance(state: int, octets: U8) -> int:
    """The state after up to `_BLOCK` further bytes."""
    mixed = _low_bytes(state & 0xFF, octets)
    low = mixed.copy()
    mixed ^= octets
    change = mixed.astype(np.uint64)
    change -= low
    powers = _powers()[-len(octets) :]
    return (state * int(powers[0]) + int(np.dot(change, powers))) & _MASK


def _low_bytes(first: int, octets: U8) -> U8:
    """The low byte of the state before each step, given the one before the first."""
    size = len(octets)
    low = np.zeros(size, dtype=np.uint8)
    flips = np.empty(size, dtype=np.uint8)
    packed = np.zeros((size + 63) // 64 * 8, dtype=np.uint8)
    words = packed.view("<u8")
    carry = np.empty(len(words) + 1, dtype=np.uint64)
    for k in range(8):
        # Bit k of the next low byte is bit k of ((low ^ byte) * P); of that, all but bit k of low itself is known.
        np.bitwise_xor(low, octets, out=flips)
        flips &= np.uint8((1 << k) - 1)
        flips *= np.uint8(PRIME & 0xFF)
        flips ^= octets
        flips &= np.uint8(1 << k)
        packed[: (size + 7) // 8] = np.packbits(flips, bitorder="little")
        for shift in (1, 2, 4, 8, 16, 32):
            words ^= words << np.uint64(shift)
        carry[0] = first >> k & 1
        carry[1:] = words >> np.uint64(63)
        before = np.bitwise_xor.accumulate(carry)[:-1]
        words <<= np.uint64(1)
        words ^= np.uint64(0) - before
        plane = np.unpackbits(packed, count=size, bitorder="little")
        plane *= np.uint8(1 << k)
        low |= plane
    return low


@cache
def _powers() -> U64:
    """P**_BLOCK ... P**2, P**1 modulo 2**64."""
    return np.multiply.accumulate(np.full(_BLOCK, PRIME, dtype=np.uint64))[::-1].copy()
