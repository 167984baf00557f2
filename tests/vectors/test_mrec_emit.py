"""The emitter of golden mrec stores against zarr-python, which it shares no code with."""

from __future__ import annotations

import itertools
import math
import struct
import warnings
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
import yaml
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from trajconform.model.arrays import NUMPY_DTYPES, RECORD_DTYPES, Array, array_from_plain, same_bits, strings
from trajconform.model.errors import TrajconformError
from trajconform.vectors.build import golden_names
from trajconform.vectors.cases import golden_declaration, load_cases
from trajconform.vectors.mrec_emit import array_values, crc32c, emit_array, emit_group, json_bytes
from trajconform.vectors.mrec_golden import emit_store, is_array

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings("ignore::Warning")


def write(files: Mapping[str, bytes], folder: Path) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def read(path: Path) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Any = zarr.open_array(store=str(path), mode="r")[...]
    array = np.asarray(found)
    if array.dtype.kind in "OTU":
        return strings(str(s) for s in array.ravel().tolist()).reshape(array.shape)
    return array.astype(array.dtype.newbyteorder("<"))


def arrays(nodes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((node, spec) for node, spec in nodes.items() if is_array(spec))


@pytest.mark.parametrize("name", golden_names(ROOT, "mrec"))
def test_zarr_reads_every_array_of_a_golden_as_declared(name: str) -> None:
    nodes = golden_declaration(ROOT, "mrec", name)["nodes"]
    store = ROOT / "vectors" / "mrec" / "stores" / f"{name}.mrec"
    for node, spec in nodes.items():
        if is_array(spec):
            assert same_bits(read(store / node), array_values(node, spec)), node
            assert dict(zarr.open_array(store=str(store / node), mode="r").attrs) == (spec.get("attributes") or {})
        else:
            group = zarr.open_group(store=str(store / node), mode="r")
            assert dict(group.attrs) == ((spec or {}).get("attributes") or {}), node
    found = {str(path.parent.relative_to(store)) for path in store.rglob("zarr.json")}
    implied = {"/".join(n.split("/")[:i]) or "." for n in nodes for i in range(n.count("/") + 1)}
    assert found == implied | set(nodes)


def test_zarr_reads_every_array_that_a_case_declares(tmp_path: Path) -> None:
    declared = {
        (case.path, node): spec
        for case in load_cases(ROOT, formats=["mrec"])
        for node, spec in arrays(case.input.get("nodes") or {})
    }
    assert len(declared) > 100
    for number, ((path, node), spec) in enumerate(declared.items()):
        folder = write(emit_array("a", spec), tmp_path / str(number))
        assert same_bits(read(folder / "a"), array_values(node, spec)), (path, node)


FLOATS = [0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, 5e-324, "0x7ff8000000000001", "0xfff0000000000002"]
SINGLES = [0.0, -0.0, 1.5, math.inf, "0x7fc00001", "0xff800002"]


def plain_values(dtype: str) -> st.SearchStrategy[Any]:
    if dtype == "bool":
        return st.booleans()
    if dtype == "string":
        return st.text(max_size=6)
    if dtype in ("f64", "f32"):
        return st.sampled_from(FLOATS if dtype == "f64" else SINGLES)
    if dtype in ("c64", "c128"):
        part = st.sampled_from(FLOATS if dtype == "c128" else SINGLES)
        return st.lists(part, min_size=2, max_size=2)
    info = np.iinfo(NUMPY_DTYPES[dtype])
    return st.integers(int(info.min), int(info.max))


def nested(flat: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat.pop(0)
    return [nested(flat, shape[1:]) for _ in range(shape[0])]


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """An array of any record dtype and a layout that a writer may choose."""
    dtype = draw(st.sampled_from(RECORD_DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 7), min_size=1, max_size=1))) + tuple(
        draw(st.lists(st.integers(1, 3), max_size=2))
    )
    count = math.prod(shape)
    flat = draw(st.lists(plain_values(dtype), min_size=count, max_size=count))
    inner = tuple(draw(st.integers(1, n + 2)) for n in shape)
    codecs: list[Any] = [draw(st.sampled_from(["bytes", "bytes:big"])) if dtype != "string" else "vlen-utf8"]
    if dtype in ("bool", "i8", "u8"):
        codecs = ["bytes:none"]
    if len(shape) > 1 and draw(st.booleans()):
        codecs.insert(0, {"name": "transpose", "configuration": {"order": draw(st.permutations(range(len(shape))))}})
    if dtype != "string" and draw(st.booleans()):
        codecs.append("shuffle")
    codecs += draw(st.sampled_from([[], ["gzip"], ["zstd"], ["gzip", "zstd"]]))
    codecs += draw(st.sampled_from([[], ["crc32c"]]))
    layout: dict[str, Any] = {"codecs": codecs, "chunk": list(inner)}
    kind = draw(st.sampled_from(["plain", "one", "shards", "nested"]))
    if kind == "plain":
        layout["shard"] = None
    elif kind != "one":
        layout["shard"] = [n * draw(st.integers(1, 3)) for n in inner]
    if kind == "nested":
        layout["nested"] = list(inner)
        layout["chunk"] = [n * 2 for n in inner]
        layout["shard"] = [n * 4 for n in inner]
    layout["index_location"] = draw(st.sampled_from(["start", "end"]))
    layout["index_codecs"] = draw(st.sampled_from([["bytes", "crc32c"], ["bytes:big"], ["bytes"]]))
    layout["key_encoding"] = draw(st.sampled_from(["default", "v2"]))
    layout["separator"] = draw(st.sampled_from(["/", "."]))
    return {"dtype": dtype, "data": nested(list(flat), shape), "shape": list(shape), "layout": layout}


@settings(max_examples=150, deadline=None)
@given(spec=specs())
def test_zarr_reads_what_any_layout_emits(tmp_path_factory: pytest.TempPathFactory, spec: dict[str, Any]) -> None:
    files = emit_array("a", spec)
    assert files == emit_array("a", spec)
    folder = write(files, tmp_path_factory.mktemp("emit"))
    assert same_bits(read(folder / "a"), array_values("a", spec))


@pytest.mark.parametrize("dtype", [*RECORD_DTYPES, "f32"])
def test_chunks_left_out_read_as_the_fill(tmp_path: Path, dtype: str) -> None:
    fills: dict[str, Any] = {
        "f64": "0x7ff8000000000007", "f32": "0x7fc00007", "bool": True, "string": "none", "c64": ["0x7fc00001", -0.0],
        "c128": [-0.0, "0xfff8000000000001"],
    }  # fmt: skip
    fill = fills.get(dtype, 7)
    other: Any = {"bool": False, "string": "x", "c64": [1.0, 2.0], "c128": [1.0, 2.0], "f32": 1.0, "f64": 1.0}
    spec = {
        "dtype": dtype,
        "data": [fill, fill, other.get(dtype, 1), fill],
        "layout": {"chunk": 2, "fill": fill, "omit_chunks": [0]},
    }
    folder = write(emit_array("a", spec), tmp_path)
    assert same_bits(read(folder / "a"), array_values("a", spec))
    [chunk] = [data for name, data in emit_array("a", spec).items() if not name.endswith("zarr.json")]
    assert struct.unpack("<2Q", chunk[:16]) == (2**64 - 1, 2**64 - 1)


def test_only_chunks_of_the_fill_value_can_be_left_out() -> None:
    spec = {"dtype": "f64", "data": [-0.0, 0.0], "layout": {"chunk": 2, "omit_chunks": [0]}}
    with pytest.raises(TrajconformError, match="a: chunk 0 is to be left out"):
        emit_array("a", spec)
    spec["data"] = [0.0, 0.0]
    assert struct.unpack("<2Q", emit_array("a", spec)["a/c/0"][:16]) == (2**64 - 1, 2**64 - 1)
    spec["layout"] = {"chunk": 1, "shard": 1, "omit_shards": [1]}
    assert sorted(emit_array("a", spec)) == ["a/c/0", "a/zarr.json"]


def test_the_checksum_is_crc32c() -> None:
    assert crc32c(b"") == 0
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    for size in range(0, 300, 7):
        data = bytes(i * 37 % 256 for i in range(size))
        assert crc32c(data) == google_crc32c.value(data)


def test_a_shard_is_laid_out_as_its_metadata_says() -> None:
    spec: dict[str, Any] = {"dtype": "u16", "data": [1, 2, 3, 4, 5], "layout": {"chunk": 2, "codecs": ["bytes"]}}
    shard = emit_array("a", spec)["a/c/0"]
    assert struct.unpack("<6Q", shard[:48]) == (52, 4, 56, 4, 60, 4)
    assert struct.unpack("<I", shard[48:52])[0] == google_crc32c.value(shard[:48])
    assert shard[52:] == struct.pack("<6H", 1, 2, 3, 4, 5, 0)
    spec["layout"]["index_location"] = "end"
    shard = emit_array("a", spec)["a/c/0"]
    assert shard[:12] == struct.pack("<6H", 1, 2, 3, 4, 5, 0)
    assert struct.unpack("<6Q", shard[12:60]) == (0, 4, 4, 4, 8, 4)
    assert struct.unpack("<I", shard[60:])[0] == google_crc32c.value(shard[12:60])


def test_the_default_layout_is_one_shard_index_first_checksums_last() -> None:
    import json

    document = json.loads(emit_array("a", {"dtype": "f64", "data": [[1.0, 2.0]] * 3})["a/zarr.json"])
    assert document["chunk_grid"]["configuration"]["chunk_shape"] == [3, 2]
    [sharding] = document["codecs"]
    assert sharding["name"] == "sharding_indexed"
    assert sharding["configuration"]["index_location"] == "start"
    assert [c["name"] for c in sharding["configuration"]["codecs"]] == ["bytes", "crc32c"]
    assert [c["name"] for c in sharding["configuration"]["index_codecs"]] == ["bytes", "crc32c"]
    assert document["codecs"] and document["fill_value"] == 0.0


def test_bytes_are_the_same_at_every_run_and_carry_no_time() -> None:
    spec = {
        "dtype": "i32",
        "data": list(range(64)),
        "layout": {"chunk": 64, "shard": None, "codecs": ["bytes", "gzip"]},
    }
    first, second = emit_array("a", spec)["a/c/0"], emit_array("a", spec)["a/c/0"]
    assert first == second
    assert first[4:8] == bytes(4)
    assert zlib.decompress(first, 31) == struct.pack("<64i", *range(64))


def test_metadata_is_json_that_ends_a_line() -> None:
    assert json_bytes({"a": ["å", 2**63]}) == '{\n "a": [\n  "å",\n  9223372036854775808\n ]\n}\n'.encode()
    with pytest.raises(ValueError):
        json_bytes({"a": math.nan})
    assert emit_group("", None) == {"zarr.json": b'{\n "zarr_format": 3,\n "node_type": "group"\n}\n'}
    assert b'"attributes"' in emit_group("g", {})["g/zarr.json"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"dtype": "f64"}, "a: 'data'"),
        ({"dtype": "f64", "data": [1.0], "chunks": 2}, r"a: unknown keys \['chunks'\]"),
        ({"dtype": "f64", "data": [1.0], "layout": {"chunks": 2}}, r"a: unknown layout keys \['chunks'\]"),
        ({"dtype": "f64", "data": ["1.0"]}, "a: '1.0' is not 0x"),
        ({"dtype": "u8", "data": [256]}, "a: 256 is out of the range of u8"),
        ({"dtype": "f64", "data": [1.0], "layout": {"codecs": ["lz4"]}}, "unknown codec 'lz4'"),
        ({"dtype": "f64", "data": [1.0], "layout": {"codecs": ["gzip"]}}, "gzip needs bytes before it"),
        ({"dtype": "f64", "data": [1.0], "layout": {"codecs": ["transpose"]}}, "no codec makes bytes"),
        ({"dtype": "f64", "data": [1.0], "layout": {"codecs": ["bytes", {"name": "lz4"}]}}, "has no codec lz4"),
    ],
)
def test_a_declaration_that_makes_no_array_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(TrajconformError, match=message):
        emit_array("a", spec)


def test_groups_on_the_way_are_made_once() -> None:
    files = emit_store({"a/b/c": {"dtype": "u8", "data": [1]}, "a": {"attributes": {"k": 1}}})
    assert sorted(files) == ["a/b/c/c/0", "a/b/c/zarr.json", "a/b/zarr.json", "a/zarr.json", "zarr.json"]
    assert b'"k": 1' in files["a/zarr.json"]
    with pytest.raises(TrajconformError, match="g: unknown keys"):
        emit_store({"g": {"attribute": {}}})


def test_key_encodings_spell_where_chunks_lie() -> None:
    names = {}
    for encoding, separator in itertools.product(("default", "v2"), ("/", ".")):
        spec = {
            "dtype": "u8",
            "data": [[1, 2], [3, 4]],
            "layout": {"chunk": [1, 2], "shard": None, "key_encoding": encoding, "separator": separator},
        }
        names[encoding, separator] = sorted(n for n in emit_array("a", spec) if n != "a/zarr.json")
    assert names == {
        ("default", "/"): ["a/c/0/0", "a/c/1/0"],
        ("default", "."): ["a/c.0.0", "a/c.1.0"],
        ("v2", "/"): ["a/0/0", "a/1/0"],
        ("v2", "."): ["a/0.0", "a/1.0"],
    }


def test_plain_values_keep_their_bits() -> None:
    spec = {"dtype": "f64", "data": ["0x7ff0000000000001", -0.0], "layout": {"shard": None, "codecs": ["bytes:big"]}}
    assert emit_array("a", spec)["a/c/0"].hex() == "7ff0000000000001" + "8000000000000000"
    assert same_bits(array_values("a", spec), array_from_plain("f64", spec["data"]))


def test_a_plain_nan_is_the_quiet_one_on_every_machine() -> None:
    for text in (".nan", ".NaN"):
        plain = yaml.load(text, Loader=yaml.CSafeLoader)
        assert array_from_plain("f64", plain).tobytes().hex() == "000000000000f87f"
        assert array_from_plain("f32", plain).tobytes().hex() == "0000c07f"
    assert array_from_plain("c128", [[-math.nan, 0.0]]).tobytes().hex() == "000000000000f87f" + 16 * "0"
