"""The bundled mrec reader: goldens, any order and range, laziness, and a naive second resolution on zarr-python."""

from __future__ import annotations

import json
import math
import random
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from trajconform.model.arrays import Array, encode_array, encode_int, strings
from trajconform.model.errors import Refused
from trajconform.model.reply import compare, encode_frame, mrec_reply
from trajconform.mrec.reader import MrecFile, open_mrec
from trajconform.vectors.mrec_golden import emit_store

ROOT = Path(__file__).resolve().parents[2]
STORES = ROOT / "vectors" / "mrec" / "stores"
NAMES = sorted(p.stem for p in STORES.glob("*.mrec"))


def expected(name: str) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads((STORES / f"{name}.reply.json").read_text("utf-8"))
    return reply


def emit(folder: Path, nodes: dict[str, Any]) -> Path:
    for name, data in emit_store(nodes).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_reads_as_it_was_declared(name: str) -> None:
    with open_mrec(STORES / f"{name}.mrec") as file:
        reply = mrec_reply(len(file), file, file.declaration)
    assert compare(expected(name), reply, ["declaration", "shape"]) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_frame_reads_the_same_in_any_order_and_range(name: str) -> None:
    wanted = expected(name)["frames"]
    chance = random.Random(name)
    with open_mrec(STORES / f"{name}.mrec") as file:
        for i in chance.sample(range(len(file)), min(len(file), 30)):
            assert compare(wanted[i], encode_frame(file.frame(i)), ["shape"]) == []
        for _ in range(5):
            first = chance.randint(0, len(file))
            stop = chance.randint(first, len(file) + 2)
            got = [encode_frame(f) for f in file.frames(first, stop)]
            assert compare({"f": wanted[first:stop]}, {"f": got}, ["shape"]) == []


# -- a second resolution, which shares no line with the reader ------------------------------------------------------


class Naive:
    """Reads every array whole with zarr-python and walks through the updates, frame by frame."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.attributes = self.of("trajectory")
        self.nstep = self.attributes.get(
            "nstep", len(self.rows("trajectory/step")) if self.there("trajectory/step") else 0
        )

    def of(self, node: str) -> dict[str, Any]:
        attributes: dict[str, Any] = json.loads((self.store / node / "zarr.json").read_text("utf-8")).get(
            "attributes", {}
        )
        return attributes

    def there(self, node: str) -> bool:
        return (self.store / node / "zarr.json").is_file()

    def rows(self, node: str) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.asarray(zarr.open_array(store=str(self.store / node), mode="r")[...])
        if found.dtype.kind in "OTU":
            return strings(str(s) for s in found.ravel().tolist()).reshape(found.shape)
        return found.astype(found.dtype.newbyteorder("<"))

    def frames(self, schema: dict[str, Any]) -> list[dict[str, Any]]:
        out = [{"step": self.step(i), "meta": self.meta(schema, i), "blocks": {}} for i in range(self.nstep)]
        for i, frame in enumerate(out):
            time = self.time(i)
            frame |= {} if time is None else {"time": encode_array(np.array(time))}
            cell = self.cell(i)
            frame |= {} if cell is None else {"cell": cell}
        for name, block in schema["blocks"].items():
            for i, rows in enumerate(self.row_ranges(name, block)):
                if rows is not None:
                    out[i]["blocks"][name] = self.block(name, block, *rows)
        return out

    def step(self, i: int) -> Any:
        if "step_progression" in self.attributes:
            entry = self.attributes["step_progression"]
            return encode_int(entry["start"] + i * entry.get("stride", 0))
        return encode_int(int(self.rows("trajectory/step")[i]))

    def time(self, i: int) -> float | None:
        if "time_progression" in self.attributes:
            entry = self.attributes["time_progression"]
            return (
                float(entry["start"]) if self.nstep == 1 else float(entry["start"]) + float(i) * float(entry["stride"])
            )
        return self.rows("trajectory/time")[i] if self.there("trajectory/time") else None

    def meta(self, schema: dict[str, Any], i: int) -> dict[str, Any]:
        out = {}
        for key, entry in schema["meta"].items():
            value = self.rows(f"trajectory/meta/{key}")[i : i + 1]
            tag = entry["dtype"]
            plain = json.loads(value[0]) if tag == "json" else encode_array(value.reshape(value.shape[1:]))
            out[key] = {"dtype": tag, "value": plain}
        return out

    def cell(self, i: int) -> dict[str, Any] | None:
        if not self.there("trajectory/box"):
            return None
        attributes = self.of("trajectory/box")
        defined = attributes.get("cell_defined", True)
        parts: dict[str, Any] = {"origin": np.zeros(3), "boundary": np.full(3, defined)}
        if self.there("trajectory/box/vectors"):
            ordinals = [0]
            if self.there("trajectory/box/step_index"):
                ordinals = [o for o in self.rows("trajectory/box/step_index").tolist() if o < self.nstep]
            update = max((j for j, o in enumerate(ordinals) if o <= i), default=None)
            if update is None:
                return None
            for part in ("vectors", "origin", "boundary"):
                if self.there(f"trajectory/box/{part}"):
                    parts[part] = self.rows(f"trajectory/box/{part}")[update]
        elif "vectors" in attributes:
            for part in ("vectors", "origin", "boundary"):
                if part in attributes:
                    parts[part] = np.array(attributes[part], dtype="?" if part == "boundary" else "<f8")
        else:
            return None
        if not defined:
            parts["vectors"] = np.eye(3)
        return {"defined": defined, **{part: encode_array(np.asarray(value)) for part, value in parts.items()}}

    def row_ranges(self, name: str, block: dict[str, Any]) -> list[tuple[int, int] | None]:
        node = f"trajectory/{name}"
        updates: list[tuple[int, int, int]] = []
        if self.there(node):
            attributes = self.of(node)
            if self.there(f"{node}/step_index") and self.there(f"{node}/offset"):
                offset = self.rows(f"{node}/offset").tolist()
                for j, ordinal in enumerate(self.rows(f"{node}/step_index").tolist()):
                    if ordinal >= self.nstep:
                        break
                    updates.append((ordinal, offset[j], offset[j + 1]))
            elif "uniform_rows" in attributes:
                size = attributes["uniform_rows"]
                shortest = min(len(self.rows(f"{node}/{c}")) for c in block["columns"])
                updates = [(j, j * size, (j + 1) * size) for j in range(min(shortest // size, self.nstep))]
        out: list[tuple[int, int] | None] = []
        for i in range(self.nstep):
            reached = [(first, stop) for ordinal, first, stop in updates if ordinal <= i]
            out.append(reached[-1] if reached else None)
        return out

    def block(self, name: str, block: dict[str, Any], first: int, stop: int) -> dict[str, Any]:
        node = f"trajectory/{name}"
        out: dict[str, Any] = {"rows": stop - first, "columns": {}}
        for column, entry in block["columns"].items():
            out["columns"][column] = encode_array(self.rows(f"{node}/{column}")[first:stop])
            if entry.get("nullable") and self.there(f"{node}/_validity/{column}"):
                mask = self.rows(f"{node}/_validity/{column}")[first:stop]
                if not mask.all():
                    out.setdefault("validity", {})[column] = encode_array(mask)
        return out


@pytest.mark.parametrize("name", NAMES)
def test_a_naive_resolution_on_zarr_python_agrees(name: str) -> None:
    naive = Naive(STORES / f"{name}.mrec")
    frames = naive.frames(expected(name)["declaration"])
    with open_mrec(STORES / f"{name}.mrec") as file:
        reply = {"nstep": len(file), "frames": [encode_frame(f) for f in file]}
    assert compare({"nstep": naive.nstep, "frames": frames}, reply) == []


# -- the API -------------------------------------------------------------------------------------------------------


def open_golden(name: str) -> MrecFile:
    return open_mrec(STORES / f"{name}.mrec")


def test_steps_and_times_of_a_run() -> None:
    with open_golden("growth") as file:
        assert len(file) == 19
        assert file.steps() == [10 * i for i in range(19)]
        assert (file.step(7), file.time(7), file.times()) == (70, None, None)


def test_states_of_a_block() -> None:
    with open_golden("states") as file:
        for name in file.declaration["blocks"]:
            for i, frame in enumerate(file):
                block = frame.blocks.get(name)
                state = "absent" if block is None else "present" if block.rows else "empty"
                assert file.block_state(name, i) == state


@pytest.mark.parametrize("name", ["growth", "states", "topology-changed", "dtypes"])
def test_one_column_over_a_range_is_that_of_the_frames(name: str) -> None:
    with open_golden(name) as file:
        frames = list(file)
        for block, entry in file.declaration["blocks"].items():
            for column in entry["columns"]:
                got = file.column(block, column, 1, len(file))
                for frame, values in zip(frames[1:], got, strict=True):
                    there = frame.blocks.get(block)
                    assert (values is None) == (there is None)
                    if there is not None and values is not None:
                        assert values.tolist() == there.columns[column].values.tolist() or values.dtype.kind in "fc"
                        assert encode_array(values) == encode_array(there.columns[column].values)


def test_a_range_of_no_frames() -> None:
    with open_golden("growth") as file:
        assert list(file.frames(5, 5)) == []
        assert list(file.frames(19, 40)) == []
        assert file.column("atoms", "x", 4, 4) == []


@pytest.mark.parametrize("ordinal", [-1, 19, 2**70])
def test_a_frame_that_is_not_there(ordinal: int) -> None:
    with open_golden("growth") as file:
        for call in (file.frame, file.step, file.time, lambda i: file.block_state("atoms", i)):
            with pytest.raises(IndexError):
                call(ordinal)


def test_a_carried_block_is_one_object_within_a_window() -> None:
    with open_golden("topology-once") as file:
        frames = list(file)
    assert all(f.blocks["bonds"] is frames[0].blocks["bonds"] for f in frames)


# -- what is read, and when ----------------------------------------------------------------------------------------

RUN: dict[str, Any] = {
    "trajectory": {
        "attributes": {
            "sequence_schema": {
                "blocks": {"atoms": {"columns": {"x": {"dtype": "f64", "trailing": []}, "y": {"dtype": "f64", "trailing": []}}},
                           "bonds": {"columns": {"atomi": {"dtype": "u64", "trailing": []}}}},
                "meta": {"j": {"dtype": "json"}},
            },
            "nstep": 4,
            "step_progression": {"start": 0, "stride": 1},
        }
    },
    "trajectory/atoms": {"attributes": {"uniform_rows": 2, "dense_updates": True}},
    "trajectory/atoms/x": {"dtype": "f64", "data": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], "layout": {"chunk": 2, "shard": 8}},
    "trajectory/atoms/y": {"dtype": "f64", "data": [0.0] * 8, "layout": {"chunk": 2, "shard": 8}},
    "trajectory/bonds/step_index": {"dtype": "u64", "data": [0, 2]},
    "trajectory/bonds/offset": {"dtype": "u64", "data": [0, 1, 2]},
    "trajectory/bonds/atomi": {"dtype": "u64", "data": [1, 0]},
    "trajectory/meta/j": {"dtype": "string", "data": ["1", "2", "{}", "[]"], "attributes": {"meta_dtype": "json"}},
}  # fmt: skip


def run(folder: Path, **nodes: Any) -> Path:
    """The run above with some nodes' data replaced: ``bonds__atomi=[...]``."""
    changed = {k: dict(v) for k, v in RUN.items()}
    for name, data in nodes.items():
        changed[f"trajectory/{name.replace('__', '/')}"]["data"] = data
    return emit(folder, changed)


def refused_at(path: Path) -> tuple[list[int], str]:
    """Frames that are refused when each is asked for alone, and by which clause."""
    found: list[int] = []
    clauses = set()
    with open_mrec(path) as file:
        for i in range(len(file)):
            try:
                file.frame(i)
            except Refused as refusal:
                found.append(i)
                clauses.add(refusal.violation.clause)
    return found, " ".join(sorted(clauses))


def test_rows_are_refused_where_they_are_read_and_not_before(tmp_path: Path) -> None:
    path = run(tmp_path)
    chunk = path / "trajectory/atoms/x/c/0"
    data = bytearray(chunk.read_bytes())
    data[-5] ^= 1
    chunk.write_bytes(bytes(data))
    assert refused_at(path) == ([3], "MREC-CODEC-12")
    with open_mrec(path) as file:
        assert [f.step for f in file.frames(0, 3)] == [0, 1, 2]
        assert [len(y) for y in file.column("atoms", "y", 0, 4) if y is not None] == [2, 2, 2, 2]
        with pytest.raises(Refused):
            file.column("atoms", "x", 2, 4)
        with pytest.raises(Refused):
            list(file.frames(2, 4))


def test_a_document_is_refused_at_its_frame(tmp_path: Path) -> None:
    path = run(tmp_path, meta__j=["1", "2", "{", "[1e999]"])
    assert refused_at(path) == ([2, 3], "MREC-META-12")


def test_a_reference_is_refused_at_the_frames_that_carry_it(tmp_path: Path) -> None:
    assert refused_at(run(tmp_path / "first", bonds__atomi=[2, 0])) == ([0, 1], "MREC-REF-05")
    assert refused_at(run(tmp_path / "second", bonds__atomi=[0, 2**64 - 1])) == ([2, 3], "MREC-REF-05")
    with open_mrec(tmp_path / "second") as file, pytest.raises(Refused) as error:
        list(file)
    assert (error.value.violation.path, error.value.violation.index) == ("trajectory/bonds/atomi", 2)
    assert "row 18446744073709551615" in error.value.violation.message


def test_a_reference_that_a_shrinking_target_leaves_dangling(tmp_path: Path) -> None:
    """The bonds of frame 0 carry forward; at frame 2 there is one atom less."""
    nodes = {k: dict(v) for k, v in RUN.items()}
    nodes["trajectory/atoms"] = {}
    nodes["trajectory/atoms/step_index"] = {"dtype": "u64", "data": [0, 2]}
    nodes["trajectory/atoms/offset"] = {"dtype": "u64", "data": [0, 2, 3]}
    nodes["trajectory/bonds/step_index"] = {"dtype": "u64", "data": [0]}
    nodes["trajectory/bonds/offset"] = {"dtype": "u64", "data": [0, 1]}
    assert refused_at(emit(tmp_path, nodes)) == ([2, 3], "MREC-REF-05")


def test_one_frame_of_a_long_run_reads_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames, atoms = 2000, 50
    nodes = {k: dict(v) for k, v in RUN.items() if "bonds" not in k and "meta" not in k}
    schema = {"blocks": {"atoms": RUN["trajectory"]["attributes"]["sequence_schema"]["blocks"]["atoms"]}, "meta": {}}
    nodes["trajectory"] = {
        "attributes": {**RUN["trajectory"]["attributes"], "sequence_schema": schema, "nstep": frames}
    }
    nodes["trajectory/atoms"] = {"attributes": {"uniform_rows": atoms, "dense_updates": True}}
    layout = {"chunk": 10 * atoms, "shard": frames * atoms}
    for column in ("x", "y"):
        nodes[f"trajectory/atoms/{column}"] = {
            "dtype": "f64",
            "data": [float(i) for i in range(frames * atoms)],
            "layout": layout,
        }
    path = emit(tmp_path, nodes)
    taken: list[int] = []
    from trajconform.mrec.store import FolderFiles

    real = FolderFiles.read

    def counted(self: FolderFiles, name: str, start: int, length: int) -> bytes:
        taken.append(length if "/c/" in name else 0)
        return real(self, name, start, length)

    monkeypatch.setattr(FolderFiles, "read", counted)
    with open_mrec(path) as file:
        assert sum(taken) == 0
        assert file.frame(1234).blocks["atoms"].columns["x"].values[0] == 1234.0 * atoms
    assert sum(taken) < 2 * (10 * atoms * 8 + 16 * frames + 100)


# -- long and strange runs -----------------------------------------------------------------------------------------


def bare(folder: Path, **attributes: Any) -> Path:
    schema: dict[str, Any] = {"blocks": {}, "meta": {}}
    return emit(folder, {"trajectory": {"attributes": {"sequence_schema": schema, **attributes}}})


def test_a_run_of_more_frames_than_memory(tmp_path: Path) -> None:
    nstep = 2**62
    steps, times = {"start": -(2**62), "stride": 1}, {"start": 0, "stride": 0.5}
    path = bare(tmp_path, nstep=nstep, step_progression=steps, time_progression=times)
    with open_mrec(path) as file:
        assert len(file) == nstep
        assert file.frame(nstep - 1).step == -1
        assert file.time(2**60 + 1) == 2.0**59
        assert [f.step for f in file.frames(2**62 - 2, 2**63)] == [-2, -1]


def test_more_frames_than_can_be_counted_are_refused(tmp_path: Path) -> None:
    path = bare(tmp_path, nstep=2**64, step_progression={"start": 0, "stride": 0})
    with pytest.raises(Refused) as error:
        open_mrec(path)
    assert error.value.violation.clause == "MREC-COMMIT-04"


@settings(max_examples=200, deadline=None)
@given(
    start=st.floats(allow_nan=False, allow_infinity=False),
    stride=st.floats(allow_nan=False, allow_infinity=False),
    i=st.integers(0, 2**40),
)
def test_times_are_one_product_and_one_sum(
    tmp_path_factory: pytest.TempPathFactory, start: float, stride: float, i: int
) -> None:
    """Python's own binary64 is the reference: it multiplies and adds in two roundings."""
    path = bare(
        tmp_path_factory.mktemp("t"), nstep=2**41, step_progression={"start": 0, "stride": 1},
        time_progression={"start": start, "stride": stride},
    )  # fmt: skip
    product = float(i) * stride
    wanted = start + product
    with open_mrec(path) as file:
        got = file.time(i)
    assert got is not None
    assert math.isnan(wanted) == math.isnan(float(got))
    assert math.isnan(wanted) or (float(got) == wanted and math.copysign(1, float(got)) == math.copysign(1, wanted))


def test_minus_zero_starts_a_run_of_one_frame_in_both_spellings(tmp_path: Path) -> None:
    for number, spelled in enumerate(("-0.0", "-0")):
        path = bare(tmp_path / str(number), nstep=1, step_progression={"start": 0}, time_progression={"start": "@"})
        file = path / "trajectory/zarr.json"
        file.write_text(file.read_text("utf-8").replace('"@"', spelled), "utf-8")
        with open_mrec(path) as opened:
            time = opened.time(0)
        assert time is not None
        assert math.copysign(1.0, time) == -1.0


def test_a_file_is_closed_when_opening_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "a.mrec"
    shutil.copytree(STORES / "growth.mrec", store)
    path = store / "trajectory/zarr.json"
    path.write_text(path.read_text("utf-8").replace('"nstep": 19', '"nstep": -1'), "utf-8")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(Refused):
            open_mrec(store)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
