"""Rows of plainly stored arrays, read by scattering: the same values and the same refusals as chunk by chunk."""

from __future__ import annotations

import json
import os
import struct
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trajconform.model.arrays import Array, array_from_plain, same_bits
from trajconform.model.errors import Refused
from trajconform.mrec import bulk, store
from trajconform.mrec.node import ArrayNode
from trajconform.mrec.store import Store
from trajconform.vectors.mrec_emit import emit_array, emit_group

ROWS, SHARD, CHUNK = 41, 12, 3
PLAIN = [["bytes"], ["bytes", "crc32c"]]
PACKED = [
    ["bytes", *shuffle, compressor, *crc]
    for shuffle in ([], ["shuffle"])
    for compressor in ("gzip", "zstd")
    for crc in ([], ["crc32c"])
]


def put(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in {**emit_group("", {}), **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def spec(dtype: str, trailing: int, codecs: list[str], **layout: Any) -> tuple[dict[str, Any], Array]:
    shape = (ROWS, trailing) if trailing else (ROWS,)
    generator = np.random.default_rng(5)
    values = generator.integers(0, 2 if dtype == "bool" else 100, shape)
    plain = values.astype(bool).tolist() if dtype == "bool" else values.tolist()
    extents = [trailing] if trailing else []
    layout = {"chunk": [CHUNK, *extents], "shard": [SHARD, *extents], "codecs": codecs, **layout}
    return {"dtype": dtype, "data": plain, "layout": layout}, array_from_plain(dtype, plain)


def every_window(array: ArrayNode, wanted: Array) -> None:
    for first in range(ROWS):
        for stop in range(first, ROWS + 1):
            assert same_bits(np.ascontiguousarray(array.rows(first, stop)), np.ascontiguousarray(wanted[first:stop]))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("codecs", PLAIN + PACKED, ids="-".join)
@pytest.mark.parametrize(("dtype", "trailing"), [("f64", 0), ("i32", 3), ("bool", 0), ("u8", 5)])
def test_every_window_is_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, trailing: int, codecs: list[str], packed: bool
) -> None:
    entry, wanted = spec(dtype, trailing, codecs)
    folder = put(tmp_path / "r", emit_array("a", entry))
    if packed:
        with zipfile.ZipFile(tmp_path / "r.zip", "w") as archive:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                archive.write(path, path.relative_to(folder).as_posix())
        folder = tmp_path / "r.zip"
    calls: list[int] = []
    taken = (store, "_scatter") if codecs in PLAIN else (bulk, "_stored")
    real = getattr(*taken)
    monkeypatch.setattr(*taken, lambda *a: calls.append(1) or real(*a))
    every_window(ArrayNode(Store(folder), "a"), wanted)
    assert calls


def test_without_a_call_that_scatters_the_values_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, wanted = spec("f64", 0, ["bytes", "crc32c"])
    folder = put(tmp_path, emit_array("a", entry))
    monkeypatch.delattr(os, "preadv", raising=False)
    every_window(ArrayNode(Store(folder), "a"), wanted)


def test_a_read_that_gives_less_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, wanted = spec("f64", 0, ["bytes", "crc32c"])
    folder = put(tmp_path, emit_array("a", entry))
    if hasattr(os, "preadv"):
        monkeypatch.setattr(os, "preadv", lambda number, places, at, real=os.preadv: real(number, places[:1], at))
    every_window(ArrayNode(Store(folder), "a"), wanted)


@pytest.mark.parametrize("codecs", [PLAIN[1], PACKED[-1]], ids="-".join)
@pytest.mark.parametrize("omitted", [[0], [1, 2], [3], [0, 1, 2, 3]])
def test_chunks_and_shards_that_are_not_there_hold_the_fill_value(
    tmp_path: Path, omitted: list[int], codecs: list[str]
) -> None:
    wanted = np.arange(1.0, ROWS + 1)
    for shard in range(0, ROWS, SHARD):
        for chunk in omitted:
            wanted[shard + chunk * CHUNK : min(shard + (chunk + 1) * CHUNK, shard + SHARD)] = -0.0
    wanted[SHARD : 2 * SHARD] = -0.0
    layout = {
        "chunk": CHUNK, "shard": SHARD, "codecs": codecs, "fill": -0.0, "omit_chunks": omitted,
        "omit_shards": [1],
    }  # fmt: skip
    files = emit_array("a", {"dtype": "f64", "data": wanted.tolist(), "layout": layout})
    every_window(ArrayNode(Store(put(tmp_path, files)), "a"), wanted)


def damage_byte(data: bytearray, at: int) -> None:
    data[at] ^= 1


def cut_entry(data: bytearray, at: int) -> None:
    """Make the entry of the second chunk in an index at the start one byte shorter."""
    offset, length = struct.unpack_from("<QQ", data, 16)
    struct.pack_into("<QQ", data, 16, offset, length - 1)


@pytest.mark.parametrize("codecs", [PLAIN[1], *PACKED], ids="-".join)
@pytest.mark.parametrize("change", [damage_byte, cut_entry])
@pytest.mark.parametrize("where", [80, 85, 90, 100, 110, 140])
def test_damage_is_refused_as_in_the_general_way(tmp_path: Path, change: Any, where: int, codecs: list[str]) -> None:
    entry, _ = spec("f64", 0, codecs, index_location="start", index_codecs=["bytes"])
    folder = put(tmp_path, emit_array("a", entry))
    path = folder / "a" / "c" / "0"
    data = bytearray(path.read_bytes())
    change(data, where)
    path.write_bytes(data)
    found: list[Any] = []
    for plainly in (True, False):
        array = ArrayNode(Store(folder), "a")
        try:
            found.append((array.rows if plainly else array.decoded)(0, ROWS).tobytes())
        except Refused as refusal:
            found.append((refusal.violation.clause, refusal.violation.message))
    assert found[0] == found[1]
    # Without a checksum damage may decode to other values; with one it never does.
    assert found[0][0] == "MREC-CODEC-12" or "crc32c" not in codecs


def test_a_bool_that_is_neither_is_refused(tmp_path: Path) -> None:
    for name, codecs in (("a", ["bytes"]), ("b", ["bytes", "gzip"])):
        entry = {"dtype": "u8", "data": [1, 2] * 8, "layout": {"chunk": 4, "shard": 8, "codecs": codecs}}
        folder = put(tmp_path, emit_array(name, entry))
        path = folder / name / "zarr.json"
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, "data_type": "bool", "fill_value": False}))
        with pytest.raises(Refused, match="other than 0 and 1"):
            ArrayNode(Store(folder), name).rows(0, 16)


def test_threads_share_the_open_files(tmp_path: Path) -> None:
    """More arrays than files are kept open, read at once: none is closed under another's hands."""
    entry, wanted = spec("f64", 0, ["bytes", "crc32c"])
    names = [f"a{i}" for i in range(50)]
    for name in names:
        put(tmp_path, emit_array(name, entry))
    record = Store(tmp_path)
    arrays = [ArrayNode(record, name) for name in names]
    wrong: list[str] = []

    def work(order: Array) -> None:
        for i in order.tolist():
            try:
                if not same_bits(arrays[i].rows(0, ROWS), wanted):
                    wrong.append(names[i])
            except BaseException as error:
                wrong.append(f"{names[i]}: {error}")

    generator = np.random.default_rng(3)
    threads = [threading.Thread(target=work, args=(generator.integers(0, 50, 400),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    numbers = [handle.number for handle in record.files._open.values()]
    assert len(numbers) == store._OPEN_FILES
    record.close()
    for number in numbers:
        with pytest.raises(OSError):
            os.fstat(number)


def test_what_is_stored_otherwise_is_not_plain(tmp_path: Path) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("f64", {"codecs": ["bytes:big"]}), ("f64", {"codecs": ["bytes", "gzip"]}), ("f64", {"shard": None}),
        ("string", {"codecs": ["vlen-utf8"]}), ("f64", {"codecs": ["transpose", "bytes"]}),
    ]  # fmt: skip
    for number, (dtype, layout) in enumerate(cases):
        data = ["a"] * 6 if dtype == "string" else [1.0] * 6
        made = {"chunk": 2, "shard": 4, **layout}
        put(tmp_path, emit_array(f"a{number}", {"dtype": dtype, "data": data, "layout": made}))
        layout_found = bulk.whole_rows(ArrayNode(Store(tmp_path), f"a{number}"))
        assert layout_found is None or not layout_found.plain
