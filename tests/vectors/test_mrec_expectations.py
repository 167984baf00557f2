"""The hand-stated frames of mrec vectors against arithmetic and resolution that share nothing with the kit's own."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trajconform.model.arrays import decode_array, decode_int
from trajconform.vectors.build import golden_names
from trajconform.vectors.cases import golden_declaration, golden_reply, load_cases
from trajconform.vectors.mrec_golden import TAGS, reply_of

ROOT = Path(__file__).resolve().parents[2]
NAMES = golden_names(ROOT, "mrec")


def rounded(value: Fraction) -> float:
    """To binary64, to nearest, ties to even, by integers alone. The sign of a zero is the caller's business."""
    if value == 0:
        return 0.0
    sign, value = (-1.0, -value) if value < 0 else (1.0, value)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    quantum = Fraction(2) ** max(exponent - 52, -1074)
    whole, rest = divmod(value, quantum)
    if rest * 2 > quantum or (rest * 2 == quantum and whole % 2):
        whole += 1
    return sign * float(whole * quantum)


def time_at(start: float, stride: float, i: int) -> float:
    """start + f64(i) * stride with a rounding after each operation; IEEE 754's rules for zeros written out."""
    product = rounded(Fraction(rounded(Fraction(i))) * Fraction(stride))
    if product == 0:
        product = -0.0 if (np.signbit(stride) and i >= 0) else 0.0
    total = rounded(Fraction(start) + Fraction(product))
    if total == 0:
        both_negative = bool(np.signbit(start)) and bool(np.signbit(product)) and start == 0 == product
        return -0.0 if both_negative else 0.0
    return total


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def test_the_rounding_of_this_file_is_that_of_binary64() -> None:
    generator = np.random.default_rng(5)
    for _ in range(2000):
        a, b = (float(x) for x in generator.standard_normal(2) * 10.0 ** generator.integers(-12, 12, 2))
        assert bits(rounded(Fraction(a) + Fraction(b))) == bits(a + b)
        assert bits(rounded(Fraction(a) * Fraction(b))) == bits(a * b)
    assert rounded(Fraction(5e-324) / 2) == 0.0
    assert rounded(Fraction(5e-324) * Fraction(3, 4)) == 5e-324


@cache
def progressions() -> list[tuple[str, Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Attributes of ``trajectory`` and stated frames, of each golden and of each case that declares its own nodes."""
    return list(_progressions())


def _progressions() -> Iterator[tuple[str, Mapping[str, Any], list[Mapping[str, Any]]]]:
    for name in NAMES:
        attributes = (golden_declaration(ROOT, "mrec", name)["nodes"].get("trajectory") or {}).get("attributes") or {}
        yield name, attributes, golden_reply(ROOT, "mrec", name)["frames"]
    for case in load_cases(ROOT, formats=["mrec"], roles=["reader"]):
        if case.input.get("nodes") and isinstance(case.expect, dict) and not case.input.get("defects"):
            attributes = (case.input["nodes"].get("trajectory") or {}).get("attributes") or {}
            frames = case.expect.get("frames", [])
            yield case.id, attributes, reply_of(frames, case.input["nodes"])["frames"]


def test_stated_times_are_the_formula_in_exact_arithmetic() -> None:
    seen: list[str] = []
    for name, attributes, frames in progressions():
        progression = attributes.get("time_progression")
        if not progression or attributes.get("nstep", 0) < 2:
            continue
        start, stride = float(progression["start"]), float(progression["stride"])
        if not np.isfinite([decode_array(frame["time"]) for frame in frames]).all():
            continue  # an overflow is beyond exact arithmetic
        seen.append(name)
        for i, frame in enumerate(frames):
            assert decode_array(frame["time"]).tobytes() == bits(time_at(start, stride, i)), (name, i)
    assert {"times-two-roundings", "times-small-stride", "times-third", "times-falling", "times-stand-still"} <= set(
        seen
    )


def test_stated_steps_are_the_formula_in_exact_arithmetic() -> None:
    count = 0
    for name, attributes, frames in progressions():
        progression = attributes.get("step_progression")
        if progression:
            count += len(frames)
            steps = [decode_int(frame["step"]) for frame in frames]
            stride = progression.get("stride", 0)
            assert steps == [progression["start"] + i * stride for i in range(len(frames))], name
    assert count > 60


@pytest.mark.parametrize("wrong", ["fused", "accumulated", "single", "reversed"])
def test_some_golden_tells_a_wrong_expansion_from_the_right_one(wrong: str) -> None:
    def expand(start: float, stride: float, i: int) -> float:
        if wrong == "fused":
            return rounded(Fraction(start) + i * Fraction(stride))
        if wrong == "accumulated":
            total = start
            for _ in range(i):
                total += stride
            return total
        if wrong == "single":
            return float(np.float32(start) + np.float32(i) * np.float32(stride))
        return stride * (start / stride + i) if stride else start

    told = set()
    for name, attributes, frames in progressions():
        progression = attributes.get("time_progression")
        if progression and attributes.get("nstep", 0) >= 2 and "magnitudes" not in name:
            start, stride = float(progression["start"]), float(progression["stride"])
            if any(
                decode_array(frame["time"]).tobytes() != bits(expand(start, stride, i))
                for i, frame in enumerate(frames)
            ):
                told.add(name)
    assert len(told) >= 2


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_reply_says_what_the_declaration_says(name: str) -> None:
    declaration = golden_declaration(ROOT, "mrec", name)
    path = ROOT / "vectors" / "mrec" / "stores" / f"{name}.reply.json"
    reply = json.loads(path.read_text("utf-8"))
    assert reply == reply_of(declaration["frames"], declaration["nodes"], declaration.get("nstep"))
    assert reply["nstep"] == len(reply["frames"])
    attributes = (declaration["nodes"].get("trajectory") or {}).get("attributes") or {}
    assert attributes.get("nstep", reply["nstep"]) == reply["nstep"]
    schema = reply["declaration"]
    for frame in reply["frames"]:
        assert set(frame["blocks"]) <= set(schema["blocks"])
        assert set(frame["meta"]) == set(schema["meta"])
        for block, body in frame["blocks"].items():
            columns = schema["blocks"][block]["columns"]
            assert set(body["columns"]) == set(columns)
            for column, wire in body["columns"].items():
                values = decode_array(wire)
                assert wire["dtype"] == columns[column]["dtype"]
                assert list(values.shape) == [body["rows"], *columns[column]["trailing"]]
            for column, wire in body.get("validity", {}).items():
                mask = decode_array(wire)
                assert columns[column]["nullable"] is True
                assert mask.shape == (body["rows"],)
                assert not mask.all()
        for key, value in frame["meta"].items():
            assert value["dtype"] == schema["meta"][key]["dtype"]
            if value["dtype"] != "json":
                assert (value["value"]["dtype"], tuple(value["value"]["shape"])) == TAGS[value["dtype"]]


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize("name", NAMES)
def test_a_naive_resolution_over_zarr_gives_the_stated_frames(name: str) -> None:
    """Every update is spread over the frames it reaches, one after the other; nothing is searched."""
    import zarr

    store = ROOT / "vectors" / "mrec" / "stores" / f"{name}.mrec"
    reply = golden_reply(ROOT, "mrec", name)

    def array(node: str) -> Any:
        path = store / "trajectory" / node
        if not (path / "zarr.json").is_file() or json.loads((path / "zarr.json").read_text())["node_type"] != "array":
            return None
        return np.asarray(zarr.open_array(store=str(path), mode="r")[...])

    def attributes(node: str) -> Any:
        path = store / "trajectory" / node / "zarr.json"
        return json.loads(path.read_text("utf-8")).get("attributes", {}) if path.is_file() else {}

    nstep = reply["nstep"]
    for block, declared in reply["declaration"]["blocks"].items():
        columns = {column: array(f"{block}/{column}") for column in declared["columns"]}
        masks = {c: array(f"{block}/_validity/{c}") for c, e in declared["columns"].items() if e.get("nullable")}
        index, offset = array(f"{block}/step_index"), array(f"{block}/offset")
        states: list[tuple[int, int] | None] = [None] * nstep
        if index is not None:
            for j, ordinal in enumerate(index.tolist()):
                if ordinal >= nstep:
                    break
                for i in range(ordinal, nstep):
                    states[i] = (int(offset[j]), int(offset[j + 1]))
        elif "uniform_rows" in attributes(block):
            size = attributes(block)["uniform_rows"]
            updates = min(*(len(values) for values in columns.values()), 10**9) // size
            for j in range(min(updates, nstep)):
                for i in range(j, nstep):
                    states[i] = (j * size, (j + 1) * size)
        for i, state in enumerate(states):
            found = reply["frames"][i]["blocks"].get(block)
            assert (found is None) == (state is None), (block, i)
            if found is None or state is None:
                continue
            assert found["rows"] == state[1] - state[0]
            for column, values in columns.items():
                part, wanted = values[state[0] : state[1]], decode_array(found["columns"][column])
                if wanted.dtype == object:
                    assert part.ravel().tolist() == wanted.ravel().tolist(), (block, column, i)
                else:
                    assert part.astype(wanted.dtype).tobytes() == wanted.tobytes(), (block, column, i)
            for column, mask in masks.items():
                part = mask[state[0] : state[1]]
                stated = found.get("validity", {}).get(column)
                assert (stated is None) == bool(part.all()), (block, column, i)
                if stated is not None:
                    assert part.tolist() == decode_array(stated).tolist()
    for key, declared in reply["declaration"]["meta"].items():
        values = array(f"meta/{key}")
        for i in range(nstep):
            stated = reply["frames"][i]["meta"][key]["value"]
            if declared["dtype"] == "json":
                assert json.loads(str(values[i])) == stated
            elif declared["dtype"] == "string":
                assert str(values[i]) == decode_array(stated)[()]
            else:
                wanted = decode_array(stated)
                assert np.ascontiguousarray(values[i]).astype(wanted.dtype).tobytes() == wanted.tobytes()
