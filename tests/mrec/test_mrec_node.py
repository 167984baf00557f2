"""Arrays of a record: every codec, any chunking, missing chunks, and chunks that nobody should trust."""

from __future__ import annotations

import json
import math
import struct
import time
import tracemalloc
import warnings
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from trajconform.model.arrays import NUMPY_DTYPES, RECORD_DTYPES, Array, array_from_plain, same_bits
from trajconform.model.errors import Refused
from trajconform.mrec.node import FREE_BYTES, ArrayNode
from trajconform.mrec.store import Store
from trajconform.vectors.mrec_emit import crc32c, emit_array, emit_group

MISSING = 2**64 - 1
SAMPLES: dict[str, Any] = {
    "f64": [0.0, -0.0, 1.5, "0x7ff8000000000001", "0xfff0000000000000", 5e-324],
    "string": ["", "é", "a\x00b", "x" * 40, "日本"],
    "bool": [True, False],
    "c64": [["0x7fc00001", -0.0], [1.5, 2.5]],
    "c128": [["0x7ff8000000000001", -0.0], [1.5, 2.5]],
}


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in {**emit_group("", None), **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def node(folder: Path, name: str = "a") -> ArrayNode:
    return ArrayNode(Store(folder), name)


def edited(folder: Path, **members: Any) -> ArrayNode:
    """The array ``a`` with members of its metadata replaced."""
    path = folder / "a" / "zarr.json"
    document = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**document, **members}), "utf-8")
    return node(folder)


def values_of(dtype: str, shape: Sequence[int], seed: int = 0) -> Any:
    """Plain nested values of a dtype."""
    chance = np.random.default_rng(seed)

    def one() -> Any:
        if dtype in SAMPLES:
            return SAMPLES[dtype][int(chance.integers(len(SAMPLES[dtype])))]
        info = np.iinfo(NUMPY_DTYPES[dtype])
        return [int(info.min), int(info.max), 0, 1][int(chance.integers(4))]

    def nest(extents: Sequence[int]) -> Any:
        return one() if not extents else [nest(extents[1:]) for _ in range(extents[0])]

    return nest(shape)


def clause(error: pytest.ExceptionInfo[Refused]) -> str:
    return error.value.violation.clause


@st.composite
def layouts(draw: st.DrawFn) -> tuple[str, list[int], dict[str, Any]]:
    """A dtype, a shape and a layout that Zarr allows for them."""
    dtype = draw(st.sampled_from(RECORD_DTYPES))
    shape = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    chunk = [draw(st.integers(1, 4)) for _ in shape]
    first = ["vlen-utf8"] if dtype == "string" else [draw(st.sampled_from(["bytes:big", "bytes"]))]
    middle = draw(st.sampled_from([[], ["gzip"], ["zstd"], ["shuffle", "zstd"], ["shuffle", "gzip"], ["zstd", "gzip"]]))
    last = draw(st.sampled_from([[], ["crc32c"]]))
    before = draw(st.sampled_from([[], ["transpose"]]))
    layout: dict[str, Any] = {"chunk": chunk, "codecs": [*before, *first, *middle, *last]}
    how = draw(st.sampled_from(["plain", "shard", "nested"]))
    if how == "plain":
        layout["shard"] = None
        layout["key_encoding"] = draw(st.sampled_from(["default", "v2"]))
        layout["separator"] = draw(st.sampled_from(["/", "."]))
    else:
        layout["shard"] = [c * draw(st.integers(1, 3)) for c in chunk]
        layout["index_location"] = draw(st.sampled_from(["start", "end"]))
        layout["index_codecs"] = draw(st.sampled_from([["bytes"], ["bytes:big", "crc32c"], ["bytes", "crc32c"]]))
    if how == "nested":
        layout["nested"] = [draw(st.sampled_from([d for d in range(1, c + 1) if c % d == 0])) for c in chunk]
    return dtype, shape, layout


@settings(max_examples=80, deadline=None)
@given(spec=layouts(), seed=st.integers(0, 2**16), data=st.data())
def test_every_window_of_every_layout_is_exact(
    tmp_path_factory: pytest.TempPathFactory,
    spec: tuple[str, list[int], dict[str, Any]],
    seed: int,
    data: st.DataObject,
) -> None:
    dtype, shape, layout = spec
    plain = values_of(dtype, shape, seed)
    folder = put(tmp_path_factory.mktemp("a"), emit_array("a", {"dtype": dtype, "data": plain, "layout": layout}))
    wanted = array_from_plain(dtype, plain)
    array = node(folder)
    assert (array.dtype, array.shape) == (dtype, tuple(shape))
    for _ in range(3):
        first = data.draw(st.integers(0, shape[0]))
        stop = data.draw(st.integers(first, shape[0]))
        assert same_bits(array.rows(first, stop), wanted[first:stop])
    assert same_bits(array.rows(0, shape[0]), wanted)
    assert array.stored_spans(shape[0]) == [(0, shape[0])]


ZARR_CODECS: list[Any] = [
    {"compressors": None},
    {"compressors": [zarr.codecs.GzipCodec(level=5)]},
    {"compressors": [zarr.codecs.ZstdCodec(level=3, checksum=True)]},
    {"compressors": [zarr.codecs.Crc32cCodec()]},
    {"compressors": [zarr.codecs.ZstdCodec()], "filters": [zarr.codecs.TransposeCodec(order=(1, 0))]},
    {"compressors": [zarr.codecs.GzipCodec()], "shards": (4, 6)},
    {"compressors": None, "chunk_key_encoding": {"name": "v2", "separator": "."}},
]


@pytest.mark.parametrize("options", ZARR_CODECS)
@pytest.mark.parametrize("dtype", ["float64", "int8", "uint64", "bool", "complex64", "complex128"])
def test_what_zarr_python_writes_reads_back(tmp_path: Path, dtype: str, options: dict[str, Any]) -> None:
    wanted = np.random.default_rng(1).integers(0, 2, (9, 6)).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array: Any = zarr.create_array(store=str(tmp_path / "a"), shape=(9, 6), chunks=(2, 3), dtype=dtype, **options)
        array[...] = wanted
    assert same_bits(node(tmp_path).rows(0, 9), wanted)


def test_strings_of_zarr_python_read_back(tmp_path: Path) -> None:
    wanted = ["", "é", "a\x00b", "日本", "x" * 300]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array: Any = zarr.create_array(store=str(tmp_path / "a"), shape=(5,), chunks=(2,), dtype=str)
        array[...] = np.array(wanted, dtype=object)
    assert node(tmp_path).rows(0, 5).tolist() == wanted


@pytest.mark.parametrize(
    ("dtype", "metadata", "bits"),
    [
        ("f64", -0.0, "0000000000000080"),
        ("f64", "NaN", "000000000000f87f"),
        ("f64", "-Infinity", "000000000000f0ff"),
        ("f64", "0x7ff80000deadbeef", "efbeadde0000f87f"),
        ("f64", 3, "0000000000000840"),
        ("c64", ["0x7fc00001", -0.0], "0100c07f00000080"),
        ("c128", [1.5, "Infinity"], "000000000000f83f000000000000f07f"),
        ("u64", 2**64 - 1, "ffffffffffffffff"),
        ("i8", -128, "80"),
        ("bool", True, "01"),
    ],
)
@pytest.mark.parametrize("shard", [None, 4])
def test_what_is_not_stored_is_the_fill_value_bit_for_bit(
    tmp_path: Path, dtype: str, metadata: Any, bits: str, shard: int | None
) -> None:
    zero: Any = [0.0, 0.0] if dtype in ("c64", "c128") else False if dtype == "bool" else 0
    layout = {"chunk": 2, "shard": shard, "omit_chunks": [0, 1, 2]}
    put(tmp_path, emit_array("a", {"dtype": dtype, "data": [zero] * 6, "layout": layout}))
    rows = edited(tmp_path, fill_value=metadata).rows(0, 6)
    assert rows.tobytes() == bytes.fromhex(bits) * 6


def test_one_chunk_of_three_is_stored(tmp_path: Path) -> None:
    layout = {"chunk": 2, "shard": 6, "omit_chunks": [0, 2], "fill": 7.5}
    put(tmp_path, emit_array("a", {"dtype": "f64", "data": [7.5, 7.5, 1.0, -0.0, 7.5, 7.5], "layout": layout}))
    array = node(tmp_path)
    assert array.rows(0, 6).tobytes() == struct.pack("<6d", 7.5, 7.5, 1.0, -0.0, 7.5, 7.5)
    assert array.rows(3, 5).tobytes() == struct.pack("<2d", -0.0, 7.5)
    assert array.stored_spans(6) == [(2, 4)]
    assert array.stored_spans(3) == [(2, 3)]
    assert array.stored_spans(2) == []


@pytest.mark.parametrize("kind", ["gzip", "zstd", "zstd of unknown size", "two gzip members", "two zstd frames"])
def test_streams_are_decoded(tmp_path: Path, kind: str) -> None:
    raw = struct.pack("<4d", 1.0, 2.0, 3.0, -0.0)
    codec = "gzip" if "gzip" in kind else "zstd"
    f64(tmp_path, ["bytes", codec], shard=None)
    packer = zstandard.ZstdCompressor()
    unsized = packer.compressobj()
    packed = {
        "gzip": zlib.compress(raw, wbits=31),
        "zstd": packer.compress(raw),
        "zstd of unknown size": unsized.compress(raw) + unsized.flush(),
        "two gzip members": zlib.compress(raw[:8], wbits=31) + zlib.compress(raw[8:], wbits=31),
        "two zstd frames": packer.compress(raw[:8]) + packer.compress(raw[8:]),
    }[kind]
    (tmp_path / "a/c/0").write_bytes(packed)
    assert node(tmp_path).rows(0, 4).tobytes() == raw


# -- chunks that nobody should trust -------------------------------------------------------------------------------


def f64(folder: Path, codecs: list[str], rows: int = 4, **layout: Any) -> Path:
    """An array ``a`` of f64, 0.0, 1.0, 2.0 ..., stored in one file ``a/c/0``."""
    data = [float(i) for i in range(rows)]
    return put(folder, emit_array("a", {"dtype": "f64", "data": data, "layout": {"codecs": codecs, **layout}}))


def one_file(folder: Path, dtype: str, data: list[Any], codecs: list[str]) -> Path:
    """An array ``a`` in one file ``a/c/0``."""
    return put(folder, emit_array("a", {"dtype": dtype, "data": data, "layout": {"shard": None, "codecs": codecs}}))


def chunk(folder: Path) -> Path:
    return folder / "a" / "c" / "0"


@pytest.mark.parametrize(
    ("codec", "damage"),
    [(c, d) for c in ("gzip", "zstd", "crc32c") for d in ("cut", "longer", "empty", "flip")]
    + [(c, d) for c in ("none", "shuffle") for d in ("cut", "longer", "empty")],
)
def test_a_damaged_chunk_is_refused(tmp_path: Path, codec: str, damage: str) -> None:
    f64(tmp_path, ["bytes", *([] if codec == "none" else [codec])], shard=None)
    data = chunk(tmp_path).read_bytes()
    flipped = bytearray(data)
    flipped[len(data) // 2 if codec != "zstd" else 1] ^= 0xFF
    chunk(tmp_path).write_bytes(
        {"cut": data[:-5], "longer": data + b"\0", "empty": b"", "flip": bytes(flipped)}[damage]
    )
    with pytest.raises(Refused) as error:
        node(tmp_path).rows(0, 1)
    assert clause(error) == "MREC-CODEC-12"
    assert error.value.violation.path == "a/c/0"


@pytest.mark.parametrize(
    ("count", "body"),
    [
        (3, b""),
        (2, b"\x01\0\0\0x\xff\xff\xff\xff"),
        (2, b"\x01\0\0\0x\x01\0\0\0\xff"),
        (2, b"\x01\0\0\0x\x01\0\0\0yz"),
        (2**32 - 1, b"\x01\0\0\0x\x01\0\0\0y"),
        (2, b"\x05\0\0\0x"),
    ],
    ids=["another count", "a length past the end", "not UTF-8", "bytes behind the last", "a huge count", "cut off"],
)
def test_damaged_strings_are_refused(tmp_path: Path, count: int, body: bytes) -> None:
    one_file(tmp_path, "string", ["x", "y"], ["vlen-utf8"])
    chunk(tmp_path).write_bytes(struct.pack("<I", count) + body)
    with pytest.raises(Refused) as error:
        node(tmp_path).rows(0, 2)
    assert clause(error) == "MREC-CODEC-12"


def test_a_bool_is_zero_or_one(tmp_path: Path) -> None:
    one_file(tmp_path, "bool", [True, False], ["bytes"])
    chunk(tmp_path).write_bytes(b"\x01\x02")
    with pytest.raises(Refused, match="other than 0 and 1"):
        node(tmp_path).rows(0, 2)


def sharded(folder: Path, entries: Sequence[int], location: str = "start", fit: bool = True) -> ArrayNode:
    """Four chunks of two f64 in one shard, its index replaced."""
    f64(folder, ["bytes"], rows=8, chunk=2, shard=8, index_location=location)
    data = chunk(folder).read_bytes()
    index = struct.pack("<8Q", *entries)
    index += struct.pack("<I", crc32c(index) if fit else 0)
    chunk(folder).write_bytes(index + data[68:] if location == "start" else data[:-68] + index)
    return node(folder)


GOOD = [68, 16, 84, 16, 100, 16, 116, 16]


@pytest.mark.parametrize("location", ["start", "end"])
def test_a_shard_is_read_by_its_index(tmp_path: Path, location: str) -> None:
    shift = 0 if location == "start" else 68
    order = [n - shift if i % 2 == 0 else n for i, n in enumerate([84, 16, 68, 16, MISSING, MISSING, 116, 16])]
    order[4] = MISSING
    assert sharded(tmp_path, order, location).rows(0, 8).tolist() == [2.0, 3.0, 0.0, 1.0, 0.0, 0.0, 6.0, 7.0]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([68, 16, 76, 16, 100, 16, 116, 16], "overlap"),
        ([68, 16, 68, 16, 100, 16, 116, 16], "overlap"),
        ([68, 16, 84, 16, 100, 16, 2**40, 16], "past the end"),
        ([68, 16, 84, 16, 100, 16, 2**64 - 8, 16], "past the end"),
        ([68, 16, 84, 16, 100, 16, 116, 2**63], "past the end"),
        ([68, 16, 84, 16, 100, 16, 116, MISSING], "past the end"),
        ([0, 16, 84, 16, 100, 16, 116, 16], "into itself"),
        ([68, 15, 84, 16, 100, 16, 116, 16], "stored in 15 bytes"),
        ([68, 0, 84, 16, 100, 16, 116, 16], "stored in 0 bytes"),
    ],
)
def test_a_shard_index_that_lies_is_refused(tmp_path: Path, entries: list[int], message: str) -> None:
    with pytest.raises(Refused, match=message) as error:
        sharded(tmp_path, entries).rows(0, 8)
    assert clause(error) == "MREC-CODEC-12"


def test_a_shard_index_with_another_checksum_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="crc32c"):
        sharded(tmp_path, GOOD, fit=False).rows(0, 1)


def test_a_shard_too_short_for_its_index_is_refused(tmp_path: Path) -> None:
    sharded(tmp_path, GOOD)
    chunk(tmp_path).write_bytes(b"\0" * 67)
    with pytest.raises(Refused, match="its index takes 68"):
        node(tmp_path).rows(0, 1)


def test_an_intact_chunk_is_read_beside_a_damaged_one(tmp_path: Path) -> None:
    f64(tmp_path, ["bytes", "crc32c"], rows=8, chunk=2, shard=8)
    data = bytearray(chunk(tmp_path).read_bytes())
    data[-1] ^= 1
    chunk(tmp_path).write_bytes(bytes(data))
    array = node(tmp_path)
    assert array.rows(0, 6).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    with pytest.raises(Refused) as error:
        array.rows(5, 7)
    assert clause(error) == "MREC-CODEC-12"


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path) -> None:
    f64(tmp_path, ["bytes"], rows=4096, chunk=8, shard=4096)
    array = node(tmp_path)
    assert array.rows(0, 8)[1] == 1.0
    with chunk(tmp_path).open("r+b") as file:
        file.truncate(16 * 512 + 4 + 64)
    with pytest.raises(Refused) as error:
        array.rows(4088, 4096)
    assert clause(error) == "MREC-CODEC-12"
    assert "the file has" in str(error.value)


# -- what metadata claims ------------------------------------------------------------------------------------------


def bomb(folder: Path, codec: str, size: int) -> None:
    """A chunk file that unpacks to ``size`` zeros."""
    if codec == "gzip":
        stream = zlib.compressobj(9, zlib.DEFLATED, 31)
        pieces = [stream.compress(bytes(1 << 20)) for _ in range(size >> 20)]
        chunk(folder).write_bytes(b"".join(pieces) + stream.flush())
    else:
        packer = zstandard.ZstdCompressor(level=1).compressobj()
        pieces = [packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]
        chunk(folder).write_bytes(b"".join(pieces) + packer.flush())


def peak(call: Any) -> float:
    """Peak of memory that Python allocated during a call, in MiB."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("claim", [4, 2**34, 2**60])
def test_a_bomb_never_unpacks(tmp_path: Path, codec: str, claim: int) -> None:
    f64(tmp_path, ["bytes", codec], shard=None)
    bomb(tmp_path, codec, 2**30)
    array = edited(tmp_path, shape=[claim], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [claim]}})

    def read() -> None:
        with pytest.raises(Refused) as error:
            array.rows(0, 4)
        assert clause(error) == "MREC-CODEC-12"

    assert peak(read) < 100


def test_a_bomb_of_strings_never_unpacks(tmp_path: Path) -> None:
    one_file(tmp_path, "string", ["x"], ["vlen-utf8", "zstd"])
    bomb(tmp_path, "zstd", 2**30)

    def read() -> None:
        with pytest.raises(Refused, match="unpacks to more"):
            node(tmp_path).rows(0, 1)

    assert peak(read) < 200


def test_thousands_of_gzip_members_are_no_work(tmp_path: Path) -> None:
    f64(tmp_path, ["bytes", "gzip"], shard=None)
    chunk(tmp_path).write_bytes(zlib.compress(b"", wbits=31) * 100_000)
    began = time.monotonic()
    with pytest.raises(Refused, match="members"):
        node(tmp_path).rows(0, 1)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("chunk_rows", [1, 4, 2**40, 2**60])
def test_a_huge_shape_costs_nothing_until_rows_are_asked_for(tmp_path: Path, chunk_rows: int) -> None:
    f64(tmp_path, ["bytes"], chunk=1, shard=None)
    for number in range(1, 4):
        (tmp_path / f"a/c/{number}").unlink()
    grid = {"name": "regular", "configuration": {"chunk_shape": [chunk_rows]}}
    (tmp_path / "a/c/0").unlink()
    array = edited(tmp_path, shape=[2**60], chunk_grid=grid, fill_value=2.5)
    assert array.shape == (2**60,)
    assert array.rows(2**59, 2**59 + 3).tolist() == [2.5, 2.5, 2.5]
    assert array.stored_spans(2**60) == []

    def read() -> None:
        assert array.rows(10, 1_000_010).sum() == 2_500_000.0
        with pytest.raises(Refused, match="are asked for at once") as error:
            array.rows(0, 2**60)
        assert clause(error) == "MREC-CODEC-12"

    began = time.monotonic()
    assert peak(read) < 32
    assert time.monotonic() - began < 5


def test_rows_between_two_stored_chunks_of_a_huge_array(tmp_path: Path) -> None:
    f64(tmp_path, ["bytes"], rows=1, chunk=1, shard=None)
    (tmp_path / "a/c/1000000").write_bytes(struct.pack("<d", 9.0))
    array = edited(tmp_path, shape=[2**50], fill_value=1.0)
    rows = array.rows(0, 1_000_002)
    assert (rows[0], rows[1], rows[999_999], rows[1_000_000], rows[1_000_001]) == (0.0, 1.0, 1.0, 9.0, 1.0)
    assert array.stored_spans(2**50) == [(0, 1), (1_000_000, 1_000_001)]


def test_rows_larger_than_memory_can_be(tmp_path: Path) -> None:
    put(tmp_path, emit_array("a", {"dtype": "f64", "data": [], "shape": [0, 1]}))
    grid = {"name": "regular", "configuration": {"chunk_shape": [1, 1]}}
    array = edited(tmp_path, shape=[0, 2**62], chunk_grid=grid)
    with pytest.raises(Refused) as error:
        array.rows(0, 0)
    assert clause(error) == "MREC-CODEC-12"


def test_a_large_array_that_is_stored_is_read(tmp_path: Path) -> None:
    rows = FREE_BYTES // 8 + 8
    f64(tmp_path, ["bytes"], rows=1, shard=None)
    chunk(tmp_path).write_bytes(np.arange(rows, dtype="<f8").tobytes())
    grid = {"name": "regular", "configuration": {"chunk_shape": [rows]}}
    found = edited(tmp_path, shape=[rows], chunk_grid=grid).rows(0, rows)
    assert (found[0], found[-1]) == (0.0, float(rows - 1))


@pytest.mark.parametrize("first, stop", [(0, 5), (-1, 2), (3, 2), (5, 5)])
def test_rows_that_are_not_there_are_refused(tmp_path: Path, first: int, stop: int) -> None:
    f64(tmp_path, ["bytes"])
    with pytest.raises(Refused) as error:
        node(tmp_path).rows(first, stop)
    assert clause(error) == "MREC-COMMIT-08"


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"shape": [-1]}, "MREC-RECORD-11"),
        ({"shape": [4.0]}, "MREC-RECORD-11"),
        ({"shape": [True]}, "MREC-RECORD-11"),
        ({"shape": None}, "MREC-RECORD-11"),
        ({"shape": [2**64]}, "MREC-RECORD-11"),
        ({"shape": [1] * 40}, "MREC-RECORD-11"),
        ({"data_type": "float32"}, "MREC-CODEC-13"),
        ({"data_type": "float16"}, "MREC-CODEC-13"),
        ({"data_type": 7}, "MREC-CODEC-13"),
        ({"fill_value": None}, "MREC-RECORD-11"),
        ({"fill_value": "nan"}, "MREC-RECORD-11"),
        ({"fill_value": "0x7ff8"}, "MREC-RECORD-11"),
        ({"fill_value": "0xzzzzzzzzzzzzzzzz"}, "MREC-RECORD-11"),
        ({"fill_value": True}, "MREC-RECORD-11"),
        ({"fill_value": 10**400}, "MREC-RECORD-11"),
        ({"chunk_grid": {"name": "rectangular"}}, "MREC-RECORD-11"),
        ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0]}}}, "MREC-RECORD-11"),
        ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1]}}}, "MREC-RECORD-11"),
        ({"chunk_key_encoding": {"name": "other"}}, "MREC-RECORD-11"),
        ({"chunk_key_encoding": {"name": "default", "configuration": {"separator": "-"}}}, "MREC-RECORD-11"),
        ({"codecs": []}, "MREC-RECORD-11"),
        ({"codecs": "bytes"}, "MREC-RECORD-11"),
        ({"codecs": [{"name": "blosc"}]}, "MREC-CODEC-16"),
        ({"codecs": ["crc32c"]}, "MREC-RECORD-11"),
        ({"codecs": [{"name": "bytes", "configuration": {"endian": "middle"}}]}, "MREC-RECORD-11"),
        ({"codecs": [{"name": "bytes"}]}, "MREC-RECORD-11"),
        ({"codecs": ["vlen-utf8"]}, "MREC-RECORD-11"),
        ({"codecs": [{"name": "transpose", "configuration": {"order": [1]}}]}, "MREC-RECORD-11"),
        ({"codecs": [{"name": "transpose", "configuration": {"order": [[0]]}}]}, "MREC-RECORD-11"),
        ({"something": {}}, "MREC-RECORD-11"),
        ({"storage_transformers": [{"name": "x"}]}, "MREC-RECORD-11"),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else None,
)
def test_metadata_that_is_none_is_refused(tmp_path: Path, members: dict[str, Any], named: str) -> None:
    f64(tmp_path, ["bytes"])
    with pytest.raises(Refused) as error:
        edited(tmp_path, **members).rows(0, 1)
    assert clause(error) == named
    assert error.value.violation.path.startswith("a")


@pytest.mark.parametrize(
    "configuration",
    [
        {"chunk_shape": [3]}, {"chunk_shape": [0]}, {"chunk_shape": [2, 2]}, {"chunk_shape": None},
        {"index_location": "middle"}, {"index_codecs": []}, {"index_codecs": [{"name": "bytes"}]},
        {"index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip"}]},
        {"codecs": []}, {"codecs": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_sharding_codec_that_is_none_is_refused(tmp_path: Path, configuration: dict[str, Any]) -> None:
    f64(tmp_path, ["bytes"], chunk=2, shard=4)
    codecs = json.loads((tmp_path / "a/zarr.json").read_text("utf-8"))["codecs"]
    codecs[0]["configuration"] |= configuration
    with pytest.raises(Refused) as error:
        edited(tmp_path, codecs=codecs).rows(0, 1)
    assert clause(error) in ("MREC-RECORD-11", "MREC-CODEC-16")


def test_shards_in_shards_in_shards_end_somewhere(tmp_path: Path) -> None:
    f64(tmp_path, ["bytes"], chunk=4, shard=4)
    codecs = json.loads((tmp_path / "a/zarr.json").read_text("utf-8"))["codecs"]
    for _ in range(60):
        inner = codecs[0]["configuration"]
        codecs = [{"name": "sharding_indexed", "configuration": {**inner, "codecs": codecs}}]
    with pytest.raises(Refused, match="nested"):
        edited(tmp_path, codecs=codecs).rows(0, 1)


def test_an_extension_that_need_not_be_understood_is_passed_over(tmp_path: Path) -> None:
    f64(tmp_path, ["bytes"])
    array = edited(tmp_path, extra={"must_understand": False}, dimension_names=["row"], consolidated_metadata=None)
    assert array.rows(3, 4).tolist() == [3.0]


def test_the_cache_does_not_grow_with_what_is_read(tmp_path: Path) -> None:
    rows = 1 << 16
    names = [f"n{i}" for i in range(12)]
    for name in names:
        put(tmp_path, emit_array(name, {"dtype": "f64", "data": [0.0], "layout": {"shard": None, "codecs": ["bytes"]}}))
        (tmp_path / name / "c/0").write_bytes(bytes(8 * rows))
        path = tmp_path / name / "zarr.json"
        document = json.loads(path.read_text("utf-8"))
        document["shape"] = [rows]
        document["chunk_grid"]["configuration"]["chunk_shape"] = [rows]
        path.write_text(json.dumps(document), "utf-8")
    store = Store(tmp_path)
    store.cache._limit = 2 * 2**20
    arrays = [ArrayNode(store, name) for name in names]

    def read() -> None:
        for _ in range(3):
            for array in arrays:
                assert math.isclose(float(array.rows(0, rows).sum()), 0.0)

    assert peak(read) < 6


def test_rows_are_not_to_be_written_to(tmp_path: Path) -> None:
    f64(tmp_path, ["bytes"])
    rows: Array = node(tmp_path).rows(0, 4)
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 1.0
