"""What stands under a false flag means nothing, and no reader is held to it."""

from __future__ import annotations

from typing import Any

import pytest

from trajconform.model.arrays import array_from_plain, encode_array
from trajconform.model.reply import compare


def reply(dtype: str, data: list[Any], mask: list[bool] | None, name: str = "q") -> dict[str, Any]:
    block: dict[str, Any] = {"rows": len(data), "columns": {name: encode_array(array_from_plain(dtype, data))}}
    if mask is not None:
        block["validity"] = {name: encode_array(array_from_plain("bool", mask))}
    return {"format": "mrec", "nstep": 1, "frames": [{"step": 0, "meta": {}, "blocks": {"b": block}}]}


@pytest.mark.parametrize(
    ("dtype", "one", "other"),
    [
        ("f64", [1.0, 2.0, 3.0], [1.0, "0x7ff8000000000001", 3.0]),
        ("u64", [1, 2, 3], [1, 2**64 - 1, 3]),
        ("string", ["a", "b", "c"], ["a", "", "c"]),
        ("f64", [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[1.0, 2.0], [0.0, 0.0], [5.0, 6.0]]),
    ],
)
def test_only_values_under_true_flags_are_compared(dtype: str, one: list[Any], other: list[Any]) -> None:
    mask = [True, False, True]
    assert compare(reply(dtype, one, mask), reply(dtype, other, mask)) == []
    assert compare(reply(dtype, one, None), reply(dtype, other, None))
    third = [*one[:2], other[1]]
    [difference] = compare(reply(dtype, one, mask), reply(dtype, third, mask))
    assert difference.path.startswith("frames[0].blocks.b.columns.q[2]")


def test_masks_dtypes_and_shapes_are_compared_all_the_same() -> None:
    expected = reply("f64", [1.0, 2.0], [True, False])
    assert compare(expected, reply("f64", [1.0, 2.0], [False, False]))
    assert compare(expected, reply("f64", [1.0, 2.0], None))
    assert compare(expected, reply("i64", [1, 2], [True, False]))
    assert compare(expected, reply("f64", [1.0], [True]))
    assert compare(expected, reply("f64", [1.0, 2.0], [True, False], name="r"))
    damaged = reply("f64", [1.0, 2.0], [True, False])
    damaged["frames"][0]["blocks"]["b"]["columns"] = ["q"]
    assert compare(expected, damaged)
