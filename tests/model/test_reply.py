"""Replies are compared bit for bit and differences name the place, the values and their bits."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from trajconform.model.arrays import array_from_plain, encode_array, strings
from trajconform.model.reply import compare, same_document


def reply() -> dict[str, Any]:
    x = encode_array(array_from_plain("f64", [1.0, -0.0, "0x7ff8000000000001"]))
    block = {"rows": 3, "columns": {"x": x, "s": encode_array(array_from_plain("string", ["a", "", "é"]))}}
    meta = {"j": {"dtype": "json", "value": {"a": [1, 2.5, None]}}}
    return {"format": "mrec", "nstep": 1, "frames": [{"step": 0, "meta": meta, "blocks": {"atoms": block}}]}


def test_equal_replies_have_no_difference() -> None:
    assert compare(reply(), copy.deepcopy(reply())) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda r: r.update(nstep=2), "nstep"),
        (lambda r: r["frames"].append(r["frames"][0]), "frames.length"),
        (lambda r: r["frames"][0].update(step=1), "frames[0].step"),
        (lambda r: r["frames"][0]["blocks"].pop("atoms"), "frames[0].blocks.atoms"),
        (lambda r: r["frames"][0]["blocks"].update(extra={}), "frames[0].blocks.extra"),
        (
            lambda r: r["frames"][0]["blocks"]["atoms"]["columns"].update(
                x=encode_array(array_from_plain("f64", [1.0, 0.0, "0x7ff8000000000001"]))
            ),
            "frames[0].blocks.atoms.columns.x[1]",
        ),
        (
            lambda r: r["frames"][0]["blocks"]["atoms"]["columns"].update(
                x=encode_array(array_from_plain("f64", [1.0, -0.0, "0x7ff8000000000002"]))
            ),
            "frames[0].blocks.atoms.columns.x[2]",
        ),
        (
            lambda r: r["frames"][0]["blocks"]["atoms"]["columns"].update(
                x=encode_array(array_from_plain("i64", [1, 2, 3]))
            ),
            "frames[0].blocks.atoms.columns.x.dtype",
        ),
        (
            lambda r: r["frames"][0]["blocks"]["atoms"]["columns"].update(
                s=encode_array(array_from_plain("string", ["a", "", "e"]))
            ),
            "frames[0].blocks.atoms.columns.s[2]",
        ),
        (lambda r: r["frames"][0]["meta"]["j"].update(value={"a": [1, 2.5, False]}), "frames[0].meta.j"),
        (lambda r: r["frames"][0]["blocks"]["atoms"]["columns"].update(x=None), "frames[0].blocks.atoms.columns.x"),
    ],
)
def test_every_kind_of_difference_is_found_where_it_is(change: Any, path: str) -> None:
    actual = copy.deepcopy(reply())
    change(actual)
    assert [d.path for d in compare(reply(), actual)] == [path]


def test_optional_parts_count_only_when_named() -> None:
    actual = reply() | {"tail": {"state": "cut", "bytes": 3}}
    assert compare(reply(), actual) == []
    assert [d.path for d in compare(reply(), actual, ["tail"])] == ["tail"]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1.0, True),
        (0.0, -0.0, False),
        (True, 1, False),
        (2**53 + 1, float(2**53), False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        (None, False, False),
        ("1", 1, False),
    ],
)
def test_documents_are_compared_as_documents(a: Any, b: Any, same: bool) -> None:
    assert same_document(a, b) is same


def test_a_difference_carries_the_bits_of_both_sides_most_significant_first() -> None:
    def reply(**values: Any) -> dict[str, Any]:
        return {name: encode_array(array) for name, array in values.items()}

    left = reply(a=np.array([1.0, -0.0]), b=np.array([1], dtype="<u2"), c=np.array([1 + 2j]), d=strings(["x"]))
    right = reply(a=np.array([1.0, 0.0]), b=np.array([258], dtype="<u2"), c=np.array([1 - 2j]), d=strings(["y"]))
    found = {d.path: (d.expected_bits, d.actual_bits) for d in compare(left, right)}
    assert found == {
        "a[1]": ("8000000000000000", "0000000000000000"),
        "b[0]": ("0001", "0102"),
        "c[0]": ("3ff00000000000004000000000000000", "3ff0000000000000c000000000000000"),
        "d[0]": ("", ""),
    }


def test_a_step_that_differs_carries_its_sixty_four_bits() -> None:
    [difference] = compare({"frames": [{"step": -1}]}, {"frames": [{"step": "9223372036854775808"}]})
    assert (difference.expected_bits, difference.actual_bits) == ("f" * 16, "8" + "0" * 15)
    [difference] = compare({"frames": [{"step": 1}]}, {"frames": [{"step": None}]})
    assert (difference.expected_bits, difference.actual_bits) == ("", "")
