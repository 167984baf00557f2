"""Assertions about a written store hold where they should and fail where they should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trajconform.harness.layout import layout_differences
from trajconform.model.errors import TrajconformError
from trajconform.vectors.mrec_golden import emit_store

NODES: dict[str, Any] = {
    "meta": {"attributes": {"molrec_version": 1}},
    "trajectory": {"attributes": {"nstep": 6, "step_progression": {"start": 0, "stride": 10}}},
    "trajectory/atoms": {"attributes": {"uniform_rows": 2, "dense_updates": True}},
    "trajectory/atoms/x": {"dtype": "f64", "data": [0.0, -0.0, 1.0, 2.0]},
    "trajectory/atoms/name": {"dtype": "string", "data": ["a", "b", "c", "d"]},
    "trajectory/bonds/step_index": {"dtype": "u64", "data": [0, 5, 6]},
    "trajectory/bonds/offset": {"dtype": "u64", "data": [0, 1, 2, 3]},
    "trajectory/bonds/atomi": {"dtype": "u64", "data": [18446744073709551615, 0, 1]},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layout") / "out.mrec"
    for name, data in emit_store(NODES).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@pytest.mark.parametrize(
    ("assertion", "difference"),
    [
        ({"node": "trajectory/step", "absent": True}, None),
        ({"node": "trajectory/atoms", "absent": True}, "trajectory/atoms: expected absent, got a node"),
        ({"node": "trajectory", "attribute": "nstep", "equals": 6}, None),
        ({"node": "trajectory", "attribute": "nstep", "equals": 5}, "trajectory attribute nstep: expected 5, got 6"),
        (
            {"node": "trajectory", "attribute": "nstep", "equals": True},
            "trajectory attribute nstep: expected true, got 6",
        ),
        ({"node": "trajectory", "attribute": "step_progression", "equals": {"stride": 10, "start": 0}}, None),
        ({"node": "trajectory", "attribute": "time", "equals": 1}, "trajectory attribute time: expected 1, got absent"),
        (
            {"node": "trajectory/box", "attribute": "a", "equals": 1},
            "trajectory/box: expected a node, got no such node",
        ),
        ({"node": "trajectory", "attribute": "time_progression", "absent": True}, None),
        ({"node": "trajectory/box", "attribute": "vectors", "absent": True}, None),
        (
            {"node": "trajectory", "attribute": "nstep", "absent": True},
            "trajectory attribute nstep: expected absent, got 6",
        ),
        ({"node": "trajectory/atoms/x", "dtype": "f64"}, None),
        ({"node": "trajectory/atoms/x", "dtype": "i64"}, "trajectory/atoms/x dtype: expected i64, got f64"),
        ({"node": "trajectory/atoms", "dtype": "i64"}, "trajectory/atoms dtype: expected i64, got no array"),
        ({"node": "trajectory/atoms/x", "values": [0.0, -0.0, 1.0, 2.0]}, None),
        (
            {"node": "trajectory/atoms/x", "values": [0.0, 0.0, 1.0, 2.0]},
            "trajectory/atoms/x[1]: expected 0.0 (0x0000000000000000), got -0.0 (0x8000000000000000)",
        ),
        (
            {"node": "trajectory/atoms/x", "values": [0.0, -0.0, 1.0, 2.0, 3.0]},
            "trajectory/atoms/x.shape: expected [5], got [4]",
        ),
        ({"node": "trajectory/atoms/x", "rows": 4}, None),
        ({"node": "trajectory/atoms/x", "rows": 3}, "trajectory/atoms/x rows: expected 3, got shape [4]"),
        ({"node": "trajectory/atoms", "rows": 4}, "trajectory/atoms rows: expected 4, got no array"),
        ({"node": "trajectory/atoms/name", "values": ["a", "b", "c", "d"]}, None),
        (
            {"node": "trajectory/atoms/name", "values": ["a", "b", "c", "e"]},
            "trajectory/atoms/name[3]: expected 'e', got 'd'",
        ),
        ({"node": "trajectory/bonds/atomi", "values": [18446744073709551615, 0, 1]}, None),
        (
            {"node": "trajectory/bonds/atomi", "values": [1.5]},
            "trajectory/bonds/atomi dtype: expected one that holds [1.5]",
        ),
        ({"node": "trajectory/bonds/step_index", "values": [0, 5]}, None),
        (
            {"node": "trajectory/bonds/step_index", "values": [0]},
            "trajectory/bonds/step_index.shape: expected [1], got [3]",
        ),
        ({"node": "trajectory/bonds/offset", "values": [0, 1, 2]}, None),
        ({"node": "trajectory/atoms", "files_at_most": 5}, None),
        ({"node": "trajectory/atoms", "files_at_most": 4}, "trajectory/atoms: expected at most 4 files, got 5 files"),
        ({"node": "trajectory/bonds", "values": [0]}, "trajectory/bonds: expected an array, got no array"),
    ],
)
def test_an_assertion_holds_or_says_what_stands_there(
    store: Path, assertion: dict[str, Any], difference: str | None
) -> None:
    found = [str(each) for each in layout_differences(store, [assertion])]
    assert len(found) == (difference is not None)
    if difference is not None:
        assert found[0].startswith(difference)


def test_an_array_that_cannot_be_decoded_is_a_difference(store: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy.mrec"
    shutil.copytree(store, copy)
    node = copy / "trajectory/atoms/x/zarr.json"
    document = json.loads(node.read_text())
    document["codecs"] = [{"name": "no-such-codec"}]
    node.write_text(json.dumps(document))
    (difference,) = layout_differences(copy, [{"node": "trajectory/atoms/x", "values": [0.0]}])
    assert difference.expected == "a readable array"


def test_an_assertion_that_says_nothing_is_an_error(store: Path) -> None:
    with pytest.raises(TrajconformError, match="says nothing"):
        list(layout_differences(store, [{"node": "trajectory"}]))
