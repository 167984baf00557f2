"""FNV-1a in its three forms."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_otj import fnv

from trajconform.otj import checksum
from trajconform.otj.checksum import fnv1a64, fnv1a64_plain, fnv1a64_rows


def test_the_test_values_of_the_specification(repository: Path) -> None:
    text = (repository / "spec/otj/checksum.md").read_text("utf-8")
    rows = re.findall(r"^\| (.*?) \| `([0-9a-f]{16})` \| `([0-9a-f ]{23})` \|$", text, re.MULTILINE)
    assert len(rows) == 6
    for described, value, stored in rows:
        spelled = re.search(r"`([0-9a-f]{2}(?: [0-9a-f]{2})*)`(?! to)", described)
        data = bytes(range(256)) if "ascending" in described else bytes.fromhex(spelled[1]) if spelled else b""
        assert ("none" in described) == (data == b"")
        assert fnv1a64(data) == fnv1a64_plain(data) == fnv(data) == int(value, 16)
        assert bytes.fromhex(stored) == int(value, 16).to_bytes(8, "little")


def test_published_values() -> None:
    # From the test suite of the function's authors.
    assert fnv1a64(b"") == 0xCBF29CE484222325
    assert fnv1a64(b"a") == 0xAF63DC4C8601EC8C
    assert fnv1a64(b"foobar") == 0x85944171F73967E8


@given(st.binary(max_size=300), st.integers(1, 9000), st.integers(0, 2**32))
def test_one_long_chain(piece: bytes, length: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = piece + rng.integers(0, 256, length, dtype=np.uint8).tobytes()
    assert fnv1a64(data) == fnv(data)


@pytest.mark.parametrize("extra", [-1, 0, 1, 63, 64, 65])
def test_block_edges(extra: int) -> None:
    data = bytes(i * i % 251 for i in range(checksum._BLOCK + extra))
    assert fnv1a64(data) == fnv(data)


@pytest.mark.parametrize("value", [0x00, 0xFF, 0x80, 0x01])
def test_bytes_that_are_all_alike(value: int) -> None:
    data = bytes([value]) * 10_000
    assert fnv1a64(data) == fnv(data)


@given(st.integers(0, 40), st.integers(0, 90), st.integers(0, 2**32))
def test_many_chains(count: int, length: int, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 256, (count, length), dtype=np.uint8)
    assert fnv1a64_rows(rows).tolist() == [fnv(row.tobytes()) for row in rows]


@pytest.mark.parametrize("count", [1, 15, 16, 127, 128])
@pytest.mark.parametrize("length", [100, checksum._LONG_FROM - 1, checksum._LONG_FROM])
def test_every_way_of_many_chains(count: int, length: int) -> None:
    rows = np.random.default_rng(count).integers(0, 256, (count, length), dtype=np.uint8)
    got = fnv1a64_rows(rows).tolist()
    assert len(got) == count
    for i in {0, count // 2, count - 1}:
        assert got[i] == fnv(rows[i].tobytes())


def test_rows_of_a_wider_array() -> None:
    wide = np.arange(64 * 80, dtype=np.uint32).astype(np.uint8).reshape(64, 80)
    for count in (3, 64):
        assert fnv1a64_rows(wide[:count, :-8]).tolist() == [fnv(row[:-8].tobytes()) for row in wide[:count]]


def test_rows_of_something_else() -> None:
    with pytest.raises(ValueError, match=r"u8\[k, length\]"):
        fnv1a64_rows(np.zeros(4, dtype=np.uint8))
