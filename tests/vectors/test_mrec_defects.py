"""Each defect does the one thing that its name says, and one that does nothing is an error of the case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from trajconform.model.errors import TrajconformError
from trajconform.vectors.defects import apply_mrec_defects
from trajconform.vectors.mrec_golden import emit_store

NODES: dict[str, Any] = {
    "meta": {"attributes": {"molrec_version": 1}},
    "trajectory": {"attributes": {"nstep": 2, "step_progression": {"start": 0, "stride": 1}}},
    "trajectory/a": {"attributes": {"uniform_rows": 1}},
    "trajectory/a/x": {"dtype": "f64", "data": [0.5, 1.5, 2.5], "attributes": {"k": 1}},
    "trajectory/a/v": {"dtype": "c64", "data": [[[1.0, 2.0], [3.0, 4.0]]]},
    "trajectory/ab/y": {"dtype": "string", "data": ["p", "q"]},
}
FILES = emit_store(NODES)


def apply(*defects: dict[str, Any]) -> dict[str, bytes]:
    return apply_mrec_defects(FILES, NODES, defects)


def document(files: dict[str, bytes], node: str) -> Any:
    return json.loads(files[f"{node}/zarr.json"])


def changed(files: dict[str, bytes]) -> set[str]:
    return {name for name in files.keys() | FILES.keys() if files.get(name) != FILES.get(name)}


def values(files: dict[str, bytes], node: str, folder: Path) -> Any:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return zarr.open_array(store=str(folder / node), mode="r")[...]


def test_the_input_is_left_as_it_is() -> None:
    before = dict(FILES)
    apply({"drop_node": {"node": "trajectory"}}, {"set_attribute": {"node": "meta", "name": "a", "value": 1}})
    assert before == FILES
    assert NODES["trajectory/a/x"]["data"] == [0.5, 1.5, 2.5]


def test_attributes() -> None:
    files = apply({"set_attribute": {"node": "trajectory", "name": "nstep", "value": 4.0}})
    assert changed(files) == {"trajectory/zarr.json"}
    assert document(files, "trajectory")["attributes"] == {**NODES["trajectory"]["attributes"], "nstep": 4.0}
    assert isinstance(document(files, "trajectory")["attributes"]["nstep"], float)
    files = apply({"drop_attribute": {"node": "trajectory", "name": "nstep"}})
    assert list(document(files, "trajectory")["attributes"]) == ["step_progression"]
    files = apply({"set_in_attribute": {"node": "trajectory", "pointer": "/step_progression/stride", "value": "1"}})
    assert document(files, "trajectory")["attributes"]["step_progression"] == {"start": 0, "stride": "1"}
    files = apply({"drop_in_attribute": {"node": "trajectory", "pointer": "/step_progression/stride"}})
    assert document(files, "trajectory")["attributes"]["step_progression"] == {"start": 0}
    files = apply({"set_attribute": {"node": "", "name": "note", "value": "ü"}})
    assert document({"/zarr.json": files["zarr.json"]}, "")["attributes"] == {"note": "ü"}


def test_metadata() -> None:
    files = apply({"set_metadata": {"node": "trajectory/a/x", "pointer": "/codecs/0/name", "value": "nonsense"}})
    assert changed(files) == {"trajectory/a/x/zarr.json"}
    assert document(files, "trajectory/a/x")["codecs"][0]["name"] == "nonsense"
    files = apply({"set_metadata": {"node": "trajectory/a/x", "pointer": "/codecs/-", "value": {"name": "more"}}})
    assert [c["name"] for c in document(files, "trajectory/a/x")["codecs"]] == ["sharding_indexed", "more"]
    files = apply({"drop_metadata": {"node": "trajectory/a/x", "pointer": "/shape"}})
    assert "shape" not in document(files, "trajectory/a/x")
    files = apply({"drop_metadata": {"node": "trajectory/a/x", "pointer": "/codecs/0"}})
    assert document(files, "trajectory/a/x")["codecs"] == []
    escaped = {"set_metadata": {"node": "meta", "pointer": "/attributes/a~1b~0c", "value": 1}}
    assert document(apply(escaped), "meta")["attributes"] == {"molrec_version": 1, "a/b~c": 1}


def test_arrays(tmp_path: Path) -> None:
    files = apply({"set_array": {"node": "trajectory/a/x", "dtype": "i64", "data": [1, 2]}})
    assert changed(files) == {"trajectory/a/x/zarr.json", "trajectory/a/x/c/0"}
    found = values(files, "trajectory/a/x", tmp_path / "0")
    assert (found.tolist(), found.dtype) == ([1, 2], np.dtype("i8"))
    assert document(files, "trajectory/a/x")["attributes"] == {"k": 1}
    files = apply({"extend": {"node": "trajectory/a/x", "data": [9.0]}})
    assert values(files, "trajectory/a/x", tmp_path / "1").tolist() == [0.5, 1.5, 2.5, 9.0]
    files = apply({"truncate": {"node": "trajectory/a/x", "rows": 1}})
    assert values(files, "trajectory/a/x", tmp_path / "2").tolist() == [0.5]
    files = apply({"truncate": {"node": "trajectory/a/v", "rows": 0}})
    assert document(files, "trajectory/a/v")["shape"] == [0, 2]
    files = apply({"resize": {"node": "trajectory/a/x", "rows": 5}})
    assert changed(files) == {"trajectory/a/x/zarr.json"}
    assert document(files, "trajectory/a/x")["shape"] == [5]
    files = apply({"relayout": {"node": "trajectory/a/x", "chunk": 2, "shard": None, "codecs": ["bytes:big"]}})
    assert document(files, "trajectory/a/x")["codecs"] == [{"name": "bytes", "configuration": {"endian": "big"}}]
    assert values(files, "trajectory/a/x", tmp_path / "3").tolist() == [0.5, 1.5, 2.5]


def test_defects_build_on_each_other(tmp_path: Path) -> None:
    files = apply(
        {"set_attribute": {"node": "trajectory/a/x", "name": "m", "value": 2}},
        {"extend": {"node": "trajectory/a/x", "data": [9.0]}},
        {"rename_node": {"node": "trajectory/a/x", "to": "trajectory/a/z"}},
        {"truncate": {"node": "trajectory/a/z", "rows": 2}},
    )
    assert "trajectory/a/x/zarr.json" not in files
    assert document(files, "trajectory/a/z")["attributes"] == {"k": 1, "m": 2}
    assert values(files, "trajectory/a/z", tmp_path).tolist() == [0.5, 1.5]


def test_nodes() -> None:
    files = apply({"drop_node": {"node": "trajectory/a"}})
    assert not [name for name in files if name.startswith("trajectory/a/")]
    assert "trajectory/ab/zarr.json" in files
    files = apply({"add_group": {"node": "trajectory/c", "attributes": {"uniform_rows": 2}}})
    assert changed(files) == {"trajectory/c/zarr.json"}
    files = apply({"add_array": {"node": "system/atoms/x", "dtype": "u8", "data": [1]}})
    assert changed(files) == {
        f"system/{n}" for n in ("zarr.json", "atoms/zarr.json", "atoms/x/zarr.json", "atoms/x/c/0")
    }
    files = apply({"rename_node": {"node": "trajectory/a", "to": "trajectory/d"}})
    assert {n for n in files if n.startswith("trajectory/d/")} == {
        n.replace("/a/", "/d/") for n in FILES if n.startswith("trajectory/a/")
    }


def test_files() -> None:
    chunk = "trajectory/a/x/c/0"
    size = len(FILES[chunk])
    assert apply({"cut_file": {"path": chunk, "size": 3}})[chunk] == FILES[chunk][:3]
    flipped = apply({"flip_bits": {"path": chunk, "offset": size - 1, "mask": 0x81}})[chunk]
    assert [a ^ b for a, b in zip(flipped, FILES[chunk], strict=True)] == [0] * (size - 1) + [0x81]
    assert (
        apply({"set_bytes": {"path": chunk, "offset": 0, "hex": "ff ff"}})[chunk][:3] == b"\xff\xff" + FILES[chunk][2:3]
    )
    assert chunk not in apply({"delete_file": {"path": chunk}})
    assert apply({"write_file": {"path": "notes.txt", "text": "ü"}})["notes.txt"] == "ü".encode()
    assert apply({"write_file": {"path": chunk, "base64": "AAE="}})[chunk] == b"\0\1"
    replaced = apply(
        {"replace_text": {"path": "meta/zarr.json", "old": '"molrec_version": 1', "new": '"molrec_version": 1e0'}}
    )
    assert b'"molrec_version": 1e0' in replaced["meta/zarr.json"]


@pytest.mark.parametrize(
    ("defect", "complaint"),
    [
        ({"set_attribute": {"node": "trajectory", "name": "nstep", "value": 2}}, "changes nothing"),
        ({"drop_attribute": {"node": "trajectory", "name": "steps"}}, "KeyError: 'steps'"),
        ({"drop_attribute": {"node": "ghost", "name": "nstep"}}, "there is no node 'ghost'"),
        ({"set_array": {"node": "trajectory/a", "data": []}}, "there is no declared array 'trajectory/a'"),
        ({"set_array": {"node": "trajectory/a/x", "data": [0.5, 1.5, 2.5]}}, "changes nothing"),
        ({"set_array": {"node": "trajectory/a/x", "values": []}}, "TypeError"),
        ({"truncate": {"node": "trajectory/a/x", "rows": 3}}, "trajectory/a/x has 3 rows"),
        ({"drop_node": {"node": "trajectory/ghost"}}, "changes nothing"),
        ({"rename_node": {"node": "ghost", "to": "x"}}, "there is no node 'ghost'"),
        ({"add_group": {"node": "trajectory/a"}}, "is there already"),
        ({"add_array": {"node": "trajectory/a/x", "dtype": "u8", "data": [1]}}, "is there already"),
        ({"cut_file": {"path": "meta/zarr.json", "size": 10**6}}, "meta/zarr.json has"),
        ({"cut_file": {"path": "ghost", "size": 0}}, "KeyError: 'ghost'"),
        ({"flip_bits": {"path": "meta/zarr.json", "offset": 10**6}}, "IndexError"),
        ({"set_bytes": {"path": "meta/zarr.json", "offset": 10**6, "hex": "00"}}, "meta/zarr.json has"),
        ({"set_bytes": {"path": "meta/zarr.json", "offset": 0, "hex": "0g"}}, "ValueError"),
        ({"write_file": {"path": "a", "text": "x", "base64": "AA=="}}, "either text or base64"),
        ({"replace_text": {"path": "meta/zarr.json", "old": "\n", "new": ""}}, "stands"),
        ({"set_metadata": {"node": "meta", "pointer": "", "value": 1}}, "names the whole document"),
        ({"set_metadata": {"node": "meta", "pointer": "/a/b", "value": 1}}, "KeyError: 'a'"),
        ({"delete_file": {"path": "ghost"}}, "KeyError"),
        ({"remove": {}}, "unknown mrec defect 'remove'"),
        ({"drop_node": {"node": "meta"}, "add_group": {"node": "x"}}, "a defect is one operation"),
    ],
)
def test_a_defect_that_cannot_be_applied_is_an_error(defect: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TrajconformError, match=complaint):
        apply(defect)
