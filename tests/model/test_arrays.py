"""Exact arrays keep every bit on the wire and in comparison."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from trajconform.model import arrays as exact

NUMERIC = [name for name in exact.NUMPY_DTYPES if name != "string"]


@given(st.data(), st.sampled_from(NUMERIC))
def test_wire_form_keeps_bits(data: st.DataObject, name: str) -> None:
    dtype = exact.NUMPY_DTYPES[name]
    shape = data.draw(array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    size = int(np.prod(shape)) * dtype.itemsize
    raw = data.draw(st.binary(min_size=size, max_size=size))
    if name == "bool":
        raw = bytes(b & 1 for b in raw)
    array = np.frombuffer(raw, dtype=dtype).reshape(shape)
    back = exact.decode_array(exact.encode_array(array))
    assert exact.raw_bytes(back) == raw
    assert back.shape == array.shape and back.dtype == array.dtype
    assert exact.same_bits(array, back)


@given(arrays(object, array_shapes(max_dims=2, min_side=0, max_side=3), elements=st.text()))
def test_wire_form_keeps_strings(array: exact.Array) -> None:
    back = exact.decode_array(exact.encode_array(array))
    assert back.tolist() == array.tolist() and back.shape == array.shape


def test_same_bits_is_not_equality() -> None:
    f64 = exact.array_from_plain
    assert not exact.same_bits(f64("f64", [0.0]), f64("f64", [-0.0]))
    assert exact.same_bits(f64("f64", [float("nan")]), f64("f64", ["0x7ff8000000000000"]))
    assert not exact.same_bits(f64("f64", [float("nan")]), f64("f64", ["0x7ff8000000000001"]))
    assert not exact.same_bits(f64("i64", [1]), f64("u64", [1]))
    assert not exact.same_bits(f64("f64", [[1.0]]), f64("f64", [1.0]))


@pytest.mark.parametrize(
    ("name", "bits"), [("f64", "0x7ff0000000000001"), ("f32", "0x7f800001"), ("f32", "0xffc00123")]
)
def test_bits_of_a_signalling_nan_survive(name: str, bits: str) -> None:
    assert "0x" + exact.raw_bytes(exact.array_from_plain(name, [bits]))[::-1].hex() == bits


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("i8", 128),
        ("u8", -1),
        ("u64", 2**64),
        ("i64", 1.0),
        ("bool", 1),
        ("f64", True),
        ("f64", "0x7ff8"),
        ("f64", 2**53 + 1),
        ("string", 1),
        ("c64", 1.0),
        ("u8", True),
        ("f16", 1.0),
    ],
)
def test_plain_values_that_do_not_fit_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError):
        exact.array_from_plain(name, [value])


@pytest.mark.parametrize(
    "wire",
    [
        None,
        [],
        {"dtype": "f64", "shape": [2**60], "data": ""},
        {"dtype": "f64", "shape": [-1], "data": ""},
        {"dtype": "f64", "shape": [True], "data": "AAAAAAAAAAA="},
        {"dtype": "f64", "shape": [1.0], "data": "AAAAAAAAAAA="},
        {"dtype": "f64", "shape": [1], "data": "AAAA"},
        {"dtype": "f64", "shape": [1], "data": "not base64!"},
        {"dtype": "bool", "shape": [1], "data": "Ag=="},
        {"dtype": "string", "shape": [1], "data": [1]},
        {"dtype": "string", "shape": [2], "data": ["a"]},
        {"dtype": "f16", "shape": [], "data": ""},
    ],
)
def test_wire_nonsense_is_a_value_error(wire: object) -> None:
    with pytest.raises(ValueError):
        exact.decode_array(wire)


@given(st.integers(-(2**70), 2**70))
def test_integers_are_numbers_up_to_2_53_and_strings_beyond(value: int) -> None:
    wire = exact.encode_int(value)
    assert isinstance(wire, str) == (abs(value) > 2**53)
    assert exact.decode_int(wire) == value


@pytest.mark.parametrize("value", [True, 1.0, "", "-", "1.0", "１", " 1", None, "0x1"])
def test_what_is_no_integer(value: object) -> None:
    with pytest.raises(ValueError):
        exact.decode_int(value)
