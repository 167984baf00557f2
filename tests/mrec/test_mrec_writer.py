"""The bundled mrec writer: what it lands reads back, is clean, survives a stop anywhere, and is gone on with."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trajconform.model.errors import Refused
from trajconform.model.reply import compare, decode_frame, encode_frame, mrec_reply
from trajconform.model.trajectory import Block, Cell, Column, Frame, MetaValue
from trajconform.mrec.checker import check_mrec
from trajconform.mrec.pack import pack_mrec
from trajconform.mrec.reader import open_mrec
from trajconform.mrec.writer import MrecWriter, WriterOptions, derive_declaration
from trajconform.mrec.zarr_write import RealFiles
from trajconform.vectors.mrec_golden import frame_reply

FAST = WriterOptions(sync=False)
F64 = {"dtype": "f64", "trailing": []}
U64 = {"dtype": "u64", "trailing": []}


def plain(frame: Mapping[str, Any], declaration: Mapping[str, Any]) -> Frame:
    """A frame from the plain notation of the cases."""
    return decode_frame(frame_reply(frame, declaration, {}))


def written(path: Path) -> list[dict[str, Any]]:
    """The frames of a record that is clean, in the reply form."""
    assert [str(violation) for violation in check_mrec(path)] == []
    return read(path)


def read(path: Path) -> list[dict[str, Any]]:
    with open_mrec(path) as opened:
        return [encode_frame(frame) for frame in opened]


def differences(expected: Sequence[Mapping[str, Any]], actual: Sequence[Mapping[str, Any]]) -> list[str]:
    found = compare({"format": "mrec", "nstep": len(expected), "frames": list(expected)}, _reply(actual), ())
    return [str(difference) for difference in found]


def _reply(frames: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"format": "mrec", "nstep": len(frames), "frames": list(frames)}


def attributes(path: Path, node: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / node / "zarr.json").read_text())["attributes"]
    return found


# -- a plain model -------------------------------------------------------------------------------------------------

DECLARATION = {
    "blocks": {
        "atoms": {
            "columns": {
                "x": F64,
                "p": {**F64, "precision": 0.3},
                "charge": {**F64, "nullable": True},
                "label": {"dtype": "string", "trailing": []},
                "pair": {"dtype": "i16", "trailing": [2]},
                "nothing": {"dtype": "u8", "trailing": [0]},
            }
        },
        "bonds": {"columns": {"atomi": U64}},
        "grid": {"columns": {"v": {"dtype": "c64", "trailing": []}}, "structural_shape": [2, 1]},
        "marks": {"columns": {}},
        "kinds": {"columns": {"kind": {"dtype": "u8", "trailing": []}}, "aligned_with": "atoms"},
    },
    "meta": {"pe": {"dtype": "f64"}, "n": {"dtype": "i64", "fill": "9223372036854775807"}, "doc": {"dtype": "json"}},
}
NAN = float(np.array(0x7FF8000000000123, dtype="u8").view("f8"))
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 1.1, 0.125, -0.375, math.nan, NAN, math.inf, 2.0**60])


def on_grid(x: float) -> float:
    """stored(x) for a precision of 0.3, whose quantum is 1/4, in exact arithmetic."""
    if not math.isfinite(x) or abs(x) >= 2.0**50:
        return x
    return math.copysign(float(round(Fraction(x) * 4) / Fraction(4)), x)


class Model:
    """Frames as lists, by the plainest reading of the rules; says which frames a writer refuses."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.current: dict[str, Block] = {}
        self.updates: dict[str, list[tuple[int, int]]] = {name: [] for name in DECLARATION["blocks"]}
        self.cell: Cell | None = None

    def accepts(self, frame: Frame) -> bool:
        now = {**self.current, **frame.blocks}
        steps = [f.step for f in self.frames]
        if steps and frame.step <= steps[-1]:
            return False
        if self.frames and (self.frames[0].time is None) != (frame.time is None):
            return False
        atoms = now["atoms"].rows if "atoms" in now else None
        if "kinds" in now and now["kinds"].rows != atoms:
            return False
        ends = now["bonds"].columns["atomi"].values.tolist() if "bonds" in now else []
        if ends and (atoms is None or max(ends) >= atoms):
            return False
        if "grid" in frame.blocks and frame.blocks["grid"].rows != 2:
            return False
        return self.cell is None or frame.cell is None or self.cell.defined == frame.cell.defined

    def take(self, frame: Frame) -> None:
        for name, block in frame.blocks.items():
            columns = {c: Column(column.values, column.mask) for c, column in block.columns.items()}
            if name == "atoms":
                rounded = np.array([on_grid(x) for x in columns["p"].values.tolist()], dtype="f8")
                columns["p"] = Column(np.where(np.isfinite(columns["p"].values), rounded, columns["p"].values))
            shape = (2, 1) if name == "grid" else None
            stored = Block(block.rows, columns, shape)
            if name not in self.current or _wire(self.current[name]) != _wire(stored):
                self.updates[name].append((len(self.frames), block.rows))
                self.current[name] = stored
        self.cell = frame.cell or self.cell
        meta = {"n": MetaValue("i64", np.array(2**63 - 1)), **frame.meta}
        self.frames.append(Frame(frame.step, dict(self.current), frame.time, self.cell, meta))

    def wire(self) -> list[dict[str, Any]]:
        return [encode_frame(frame) for frame in self.frames]


def _wire(block: Block) -> dict[str, Any]:
    return encode_frame(Frame(0, {"b": block}))["blocks"]["b"]


@st.composite
def frames_strategy(draw: Any, step: int, timed: bool) -> Frame:
    blocks: dict[str, Block] = {}
    rows = draw(st.integers(0, 3))
    if draw(st.booleans()):
        floats = {c: np.array(draw(st.lists(NUMBERS, min_size=rows, max_size=rows)), dtype="f8") for c in ("x", "p")}
        mask = draw(st.none() | st.lists(st.booleans(), min_size=rows, max_size=rows))
        labels = np.empty(rows, dtype=object)
        labels[:] = draw(st.lists(st.sampled_from(["", "H", "é\0"]), min_size=rows, max_size=rows))
        blocks["atoms"] = Block(
            rows,
            {
                **{c: Column(values) for c, values in floats.items()},
                "charge": Column(np.ones(rows), None if mask is None else np.array(mask, dtype="?")),
                "label": Column(labels),
                "pair": Column(np.full((rows, 2), draw(st.integers(-3, 3)), dtype="i2")),
                "nothing": Column(np.zeros((rows, 0), dtype="u1")),
            },
        )
    if draw(st.booleans()):
        kinds = draw(st.sampled_from([rows, rows, rows, 1]))
        blocks["kinds"] = Block(kinds, {"kind": Column(np.full(kinds, draw(st.integers(0, 1)), dtype="u1"))})
    if draw(st.integers(0, 3)) == 0:
        ends = draw(st.lists(st.integers(0, 2), max_size=2))
        blocks["bonds"] = Block(len(ends), {"atomi": Column(np.array(ends, dtype="u8"))})
    if draw(st.booleans()):
        size = draw(st.sampled_from([2, 2, 2, 1]))
        blocks["grid"] = Block(size, {"v": Column(np.full(size, draw(st.sampled_from([1j, 2.0])), dtype="c8"))})
    if draw(st.booleans()):
        blocks["marks"] = Block(draw(st.integers(0, 2)), {})
    cell = None
    if draw(st.booleans()):
        defined = draw(st.sampled_from([True, True, True, False]))
        vectors = np.diag(draw(st.sampled_from([[1.0] * 3, [2.0] * 3, [math.inf] * 3]))) if defined else np.eye(3)
        origin = np.array([draw(st.sampled_from([0.0, 0.0, -0.0, 1.0])), 0.0, 0.0])
        boundary = np.array([defined and draw(st.booleans()), defined, defined], dtype="?")
        cell = Cell(vectors, origin, boundary, defined)
    meta = {
        "pe": MetaValue("f64", np.array(draw(NUMBERS))),
        "doc": MetaValue("json", draw(st.sampled_from([None, {"a": [1.5]}]))),
    }
    if draw(st.booleans()):
        meta["n"] = MetaValue("i64", np.array(draw(st.sampled_from([-(2**63), 5]))))
    time = np.float64(draw(st.sampled_from([step * 0.5, step * 0.1, -0.0]))) if timed else None
    return Frame(step, blocks, time, cell, meta)


@st.composite
def scripts(draw: Any) -> list[Any]:
    out: list[Any] = []
    step, timed = draw(st.integers(-5, 5)), draw(st.booleans())
    for _ in range(draw(st.integers(0, 9))):
        out.append(draw(frames_strategy(step, timed if draw(st.integers(0, 9)) else not timed)))
        step += draw(st.sampled_from([10, 10, 10, 10, 3, 0]))
        out += draw(st.sampled_from([[], [], ["flush"], ["reopen"]]))
    return out


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scripts())
def test_agrees_with_a_plain_model(tmp_path_factory: pytest.TempPathFactory, script: list[Any]) -> None:
    path = tmp_path_factory.mktemp("model") / "a.mrec"
    model, writer = Model(), MrecWriter.create(path, DECLARATION, options=FAST)
    for call in script:
        if call == "flush":
            writer.flush()
        elif call == "reopen":
            writer.close()
            writer = MrecWriter.reopen(path, DECLARATION, options=FAST)
        elif model.accepts(call):
            writer.append(call)
            model.take(call)
        else:
            with pytest.raises(Refused):
                writer.append(call)
    writer.close()
    assert differences(model.wire(), written(path)) == []
    with open_mrec(path) as opened:
        for name, updates in model.updates.items():
            found = opened.view.block(name).updates
            assert [found.ordinal(j) for j in range(found.count)] == [ordinal for ordinal, _ in updates]
            rows = {n for _, n in updates}
            regular = bool(updates) and name != "marks" and len(rows) == 1 and 0 not in rows
            regular = regular and [ordinal for ordinal, _ in updates] == list(range(len(updates)))
            assert ("uniform_rows" in attributes(path, f"trajectory/{name}")) == regular
            assert (path / "trajectory" / name / "offset" / "zarr.json").exists() == (bool(updates) and not regular)
    shutil.rmtree(path)


# -- stopping anywhere ---------------------------------------------------------------------------------------------

CRASH = {
    "blocks": {
        "atoms": {"columns": {"x": F64, "charge": {**F64, "nullable": True}}},
        "bonds": {"columns": {"atomi": U64}},
        "late": {"columns": {"v": F64}},
        "marks": {"columns": {}},
    },
    "meta": {"pe": {"dtype": "f64"}, "note": {"dtype": "string", "fill": ""}},
}
CUBE = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
STEPS = [0, 10, 20, 25, 26]
TIMES = [0.0, 0.5, 1.0, 1.25, math.nan]


def crash_frames() -> list[Frame]:
    """Five frames in which everything changes over: steps, times, cell, rows, masks, a block that comes late."""
    out = []
    for i in range(5):
        x = [float(i), 1.0, *([2.0] if i > 2 else [])]
        atoms: dict[str, Any] = {"x": x, "charge": [0.5] * len(x)}
        if i == 1:
            atoms["validity"] = {"charge": [True, False]}
        blocks: dict[str, Any] = {"atoms": atoms, "bonds": {"atomi": [0, 1] if i < 2 else [1, 0]}}
        if i >= 3:
            blocks["late"] = {"v": [] if i == 4 else [1.0]}
        if i in (0, 3):
            blocks["marks"] = {"rows": i}
        cell = {"vectors": CUBE, "origin": [0.0, 0.0, 1.0 if i == 4 else 0.0]}
        if i >= 2:
            cell["vectors"] = [[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]]
        frame = {"step": STEPS[i], "time": TIMES[i], "meta": {"pe": -float(i)}, "cell": cell, "blocks": blocks}
        if i % 2:
            frame["meta"] = {"pe": -float(i), "note": "odd"}
        out.append(plain(frame, CRASH))
    return out


class Stop(BaseException):
    """The process ends here."""


class Cut(RealFiles):
    """File operations that end after some number of them; a write that is cut leaves half a file."""

    def __init__(self, allowed: int) -> None:
        self.left = allowed
        self.renamed: list[str] = []

    def _spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Stop

    def write(self, path: Path, pieces: Sequence[Any]) -> None:
        self.left -= 1
        super().write(path, pieces)
        if self.left < 0:
            data = path.read_bytes()
            path.write_bytes(data[: len(data) // 2])
            raise Stop

    def rename(self, source: Path, target: Path) -> None:
        self._spend()
        super().rename(source, target)
        self.renamed.append(target.as_posix())

    def remove(self, path: Path) -> None:
        self._spend()
        super().remove(path)


def cuts(work: Callable[[Cut], None]) -> Iterator[tuple[int, Cut]]:
    """Run some work again and again, cut one operation later each time; the last run goes through."""
    for allowed in range(2000):
        files = Cut(allowed)
        try:
            work(files)
        except Stop:
            yield allowed, files
        else:
            return
    raise AssertionError("the work does not end")


@pytest.mark.parametrize("first", range(1, 5))
def test_stopped_at_any_write_of_a_commit(tmp_path: Path, first: int) -> None:
    frames = crash_frames()
    whole = resolved(tmp_path / "whole.mrec", frames)
    base = tmp_path / "base.mrec"
    with MrecWriter.create(base, CRASH, options=FAST) as writer:
        for frame in frames[:first]:
            writer.append(frame)
    work = tmp_path / "work.mrec"

    def go_on(files: Cut) -> None:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(base, work)
        writer = MrecWriter.reopen(work, options=FAST, files=files)
        for frame in frames[first:]:
            writer.append(frame)
        writer.flush()

    stops = 0
    for at, _ in cuts(go_on):
        stops += 1
        assert differences(whole[:first], read(work)) == []
        if at % 4 != first % 4:  # going on behind one stop in four, another one for each start
            continue
        with MrecWriter.reopen(work, CRASH, options=FAST) as writer:
            assert writer.committed == first
            for frame in frames[first:]:
                writer.append(frame)
        assert differences(whole, written(work)) == []
    assert stops > 20
    assert differences(whole, written(work)) == []


def test_stopped_at_any_write_of_the_first_commit(tmp_path: Path) -> None:
    frames = crash_frames()
    whole = resolved(tmp_path / "whole.mrec", frames)
    work, base = tmp_path / "work.mrec", tmp_path / "base.mrec"
    MrecWriter.create(base, CRASH, options=FAST).close()

    def begin(files: Cut) -> None:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(base, work)
        writer = MrecWriter.reopen(work, options=FAST, files=files)
        writer.append(frames[0])
        writer.flush()

    for at, _ in cuts(begin):
        assert read(work) == []
        if at % 2:
            continue
        with MrecWriter.reopen(work, options=FAST) as writer:
            for frame in frames:
                writer.append(frame)
        assert differences(whole, written(work)) == []


@pytest.mark.parametrize("tail", [2, 5])
def test_stopped_at_any_write_of_reopening(tmp_path: Path, tail: int) -> None:
    """A store with rows and index past nstep, reopened, the reopening cut, and reopened again."""
    frames = crash_frames()
    whole = resolved(tmp_path / "whole.mrec", frames)
    base, work = tmp_path / "base.mrec", tmp_path / "work.mrec"
    with MrecWriter.create(base, CRASH, options=FAST) as writer:
        for frame in frames[:tail]:
            writer.append(frame)
            writer.flush()
            if writer.committed == 2:
                marker = (base / "trajectory/zarr.json").read_bytes()
                if tail == 2:
                    break
        if tail == 2:  # markers beside a complete index: the commit that migrates, stopped before the group
            groups = {name: (base / f"trajectory/{name}/zarr.json").read_bytes() for name in ("bonds", "box")}
            writer.append(frames[2])
            writer.flush()
            for name, data in groups.items():
                (base / f"trajectory/{name}/zarr.json").write_bytes(data)
    (base / "trajectory/zarr.json").write_bytes(marker)
    assert differences(whole[:2], read(base)) == []

    def reopen(files: Cut) -> None:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(base, work)
        MrecWriter.reopen(work, options=FAST, files=files).close()

    for _, _ in cuts(reopen):
        assert differences(whole[:2], read(work)) == []
    assert differences(whole[:2], written(work)) == []
    with MrecWriter.reopen(work, options=FAST) as writer:
        for frame in frames[2:]:
            writer.append(frame)
    assert differences(whole, written(work)) == []


def resolved(path: Path, frames: Sequence[Frame]) -> list[dict[str, Any]]:
    """The frames as they resolve: every block carried forward, fills in, by plain dictionaries."""
    blocks: dict[str, Any] = {}
    cell, out = None, []
    for frame in frames:
        wire = encode_frame(frame)
        blocks.update(wire["blocks"])
        cell = wire.get("cell", cell)
        note = encode_frame(Frame(0, meta={"note": MetaValue("string", _text(""))}))["meta"]
        out.append({**wire, "blocks": dict(blocks), "cell": cell, "meta": {**note, **wire["meta"]}})
    return out


def _text(value: str) -> Any:
    out = np.empty((), dtype=object)
    out[()] = value
    return out


# -- reopening -----------------------------------------------------------------------------------------------------


def test_reopening_shrinks_arrays_to_their_logical_shapes(tmp_path: Path) -> None:
    path, frames = tmp_path / "a.mrec", crash_frames()
    with MrecWriter.create(path, CRASH, options=FAST) as writer:
        for frame in frames[:3]:
            writer.append(frame)
        writer.flush()
        marker = (path / "trajectory/zarr.json").read_bytes()
        for frame in frames[3:]:
            writer.append(frame)
    (path / "trajectory/zarr.json").write_bytes(marker)
    MrecWriter.reopen(path, options=FAST).close()
    shapes = {
        file.parent.relative_to(path / "trajectory").as_posix(): document["shape"]
        for file in path.rglob("zarr.json")
        if (document := json.loads(file.read_text()))["node_type"] == "array"
    }
    assert shapes == {
        "atoms/x": [6], "atoms/charge": [6], "atoms/_validity/charge": [6], "atoms/step_index": [3], "atoms/offset": [4],
        "bonds/atomi": [4], "bonds/step_index": [2], "bonds/offset": [3],
        "marks/step_index": [1], "marks/offset": [2],
        "late/v": [0],
        "meta/pe": [3], "meta/note": [3],
        "box/step_index": [2], "box/vectors": [2, 3, 3], "box/origin": [2, 3],
    }  # fmt: skip


def test_unknown_content_survives(tmp_path: Path) -> None:
    path, frames = tmp_path / "a.mrec", crash_frames()
    with MrecWriter.create(path, CRASH, options=FAST) as writer:
        for frame in frames[:2]:
            writer.append(frame)
    notes = path / "notes/deep"
    notes.mkdir(parents=True)
    (path / "notes/zarr.json").write_text("not even JSON")
    (notes / "blob").write_bytes(b"\0\1")
    for node in ("trajectory", "trajectory/atoms", "trajectory/box", "trajectory/atoms/x", "meta", ""):
        document = json.loads((path / node / "zarr.json").read_text())
        document["attributes"]["of_somebody"] = {"else": [1, None]}
        (path / node / "zarr.json").write_text(json.dumps(document))
    shutil.copytree(path / "trajectory/atoms", path / "trajectory/scratch")
    shutil.copytree(path / "trajectory/atoms/x", path / "trajectory/atoms/scratch")
    kept = {
        p.relative_to(path): p.read_bytes()
        for folder in ("trajectory/scratch", "trajectory/atoms/scratch", "notes")
        for p in (path / folder).rglob("*")
        if p.is_file()
    }
    with MrecWriter.reopen(path, options=FAST) as writer:
        for frame in frames[2:]:
            writer.append(frame)
    assert {name: (path / name).read_bytes() for name in kept} == kept
    for node in ("trajectory", "trajectory/atoms", "trajectory/box", "trajectory/atoms/x", "meta", ""):
        assert attributes(path, node)["of_somebody"] == {"else": [1, None]}
    assert differences(resolved(path, frames), read(path)) == []


def test_another_declaration_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    MrecWriter.create(path, CRASH, options=FAST).close()
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file()}
    other = {**CRASH, "meta": {**CRASH["meta"], "note": {"dtype": "string", "fill": "-"}}}
    with pytest.raises(Refused, match="MREC-DECL-25"):
        MrecWriter.reopen(path, other)
    assert {p: p.read_bytes() for p in path.rglob("*") if p.is_file()} == before
    MrecWriter.reopen(path, CRASH).close()


GOLDENS = sorted(p.stem for p in (Path(__file__).resolve().parents[2] / "vectors/mrec/stores").glob("*.mrec"))


@pytest.mark.parametrize("name", GOLDENS)
def test_goes_on_with_every_golden(repository: Path, tmp_path: Path, name: str) -> None:
    """Stores of another writer: what they hold stays, and one more frame with nothing but its number comes behind."""
    source = repository / "vectors/mrec/stores"
    reply = json.loads((source / f"{name}.reply.json").read_text())
    path = tmp_path / "a.mrec"
    shutil.copytree(source / f"{name}.mrec", path)
    last = decode_frame(reply["frames"][-1]) if reply["frames"] else Frame(-1)
    with MrecWriter.reopen(path, options=FAST) as writer:
        again = Frame(last.step + 1, {}, last.time, None, last.meta)
        taken = last.step + 1 < 2**63 and (reply["frames"] or not reply["declaration"]["meta"])
        if taken:
            writer.append(again)
    expected = list(reply["frames"])
    if taken:
        expected.append({**encode_frame(last), **encode_frame(again), "blocks": encode_frame(last)["blocks"]})
    assert differences(expected, written(path)) == []


# -- the rest ------------------------------------------------------------------------------------------------------


def test_a_refused_frame_leaves_writer_and_store_as_they_were(tmp_path: Path) -> None:
    path, frames = tmp_path / "a.mrec", crash_frames()
    with MrecWriter.create(path, CRASH, options=FAST) as writer:
        writer.append(frames[0])
        writer.flush()
        before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file()}
        broken = Frame(
            30, {**frames[3].blocks, "nobody": frames[0].blocks["atoms"]}, frames[1].time, None, frames[3].meta
        )
        with pytest.raises(Refused, match="MREC-DECL-17"):
            writer.append(broken)
        writer.flush()
        assert {p: p.read_bytes() for p in path.rglob("*") if p.is_file()} == before
        for frame in frames[1:]:
            writer.append(frame)
    assert differences(resolved(path, frames), written(path)) == []


def test_what_the_producer_changes_later_does_not_matter(tmp_path: Path) -> None:
    path, x = tmp_path / "a.mrec", np.array([1.0, 2.0])
    with MrecWriter.create(path, {"blocks": {"a": {"columns": {"x": F64}}}, "meta": {}}, options=FAST) as writer:
        for step in range(3):
            x[:] = step
            writer.append(Frame(step, {"a": Block(2, {"x": Column(x)})}))
        x[:] = 99.0
    with open_mrec(path) as opened:
        assert [frame.blocks["a"].columns["x"].values.tolist() for frame in opened] == [[0, 0], [1, 1], [2, 2]]


def test_arrays_of_another_byte_order_and_layout_are_taken_by_value(tmp_path: Path) -> None:
    declaration = {"blocks": {"a": {"columns": {"v": {"dtype": "f64", "trailing": [2]}}}}, "meta": {}}
    path, values = tmp_path / "a.mrec", np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with MrecWriter.create(path, declaration, options=FAST) as writer:
        writer.append(Frame(0, {"a": Block(3, {"v": Column(values.T.astype(">f8"))})}))
        writer.append(Frame(1, {"a": Block(3, {"v": Column(values.T.copy())})}))
    with open_mrec(path) as opened:
        assert opened.frame(1).blocks["a"].columns["v"].values.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
        assert opened.view.block("a").updates.count == 1


def test_many_rows_over_many_chunks_and_flushes(tmp_path: Path) -> None:
    """Partial chunks and partial shards are gone on with, also after reopening, without harm to what is there."""
    path = tmp_path / "a.mrec"
    declaration = {"blocks": {"a": {"columns": {"x": F64, "s": {"dtype": "string", "trailing": []}}}}, "meta": {}}
    random = np.random.default_rng(7)
    sizes, expected = [700, 1, 3000, 0, 2048, 5000, 12], []
    writer = MrecWriter.create(path, declaration, options=FAST)
    for step, size in enumerate(sizes):
        x = random.standard_normal(size)
        labels = np.array([f"{n:x}" * (n % 5) for n in range(size)], dtype=object)
        expected.append((x.tobytes(), labels.tolist()))
        writer.append(Frame(step, {"a": Block(size, {"x": Column(x), "s": Column(labels)})}))
        writer.flush()
        if step % 2:
            writer = MrecWriter.reopen(path, options=FAST)
    writer.close()
    assert check_mrec(path) == []
    with open_mrec(path) as opened:
        found = [
            (f.blocks["a"].columns["x"].values.tobytes(), f.blocks["a"].columns["s"].values.tolist()) for f in opened
        ]
    assert found == expected


def test_zarr_python_reads_the_same(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    path, frames = tmp_path / "a.mrec", crash_frames()
    with MrecWriter.create(path, CRASH, options=FAST) as writer:
        for frame in frames:
            writer.append(frame)
    root = zarr.open_group(str(path), mode="r")["trajectory"]
    assert root["atoms/x"][:].tolist() == [0.0, 1.0, 1.0, 1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 4.0, 1.0, 2.0]
    assert root["atoms/offset"][:].tolist() == [0, 2, 4, 6, 9, 12]
    assert root["atoms/_validity/charge"][:].tolist() == [True] * 3 + [False] + [True] * 8
    assert root["meta/note"][:].tolist() == ["", "odd", "", "odd", ""]
    assert root["step"][:].tolist() == STEPS
    assert root["box/origin"][:].tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_automatic_flush_commits(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    options = WriterOptions(sync=False, flush_bytes=1000)
    writer = MrecWriter.create(path, {"blocks": {"a": {"columns": {"x": F64}}}, "meta": {}}, options=options)
    for step in range(10):
        writer.append(Frame(step, {"a": Block(25, {"x": Column(np.full(25, float(step)))})}))
    assert writer.committed == attributes(path, "trajectory")["nstep"] == 10
    assert len(read(path)) == 10


class Full(RealFiles):
    """A disk that is full at one write."""

    def __init__(self, at: int) -> None:
        self.left = at

    def write(self, path: Path, pieces: Sequence[Any]) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(28, "No space left on device")
        super().write(path, pieces)


def test_a_commit_that_fails_ends_the_writer_and_leaves_the_store(tmp_path: Path) -> None:
    frames = crash_frames()
    whole = resolved(tmp_path, frames)
    base = tmp_path / "base.mrec"
    with MrecWriter.create(base, CRASH, options=FAST) as writer:
        writer.append(frames[0])
    for at in range(1, 12):
        path = tmp_path / f"{at}.mrec"
        shutil.copytree(base, path)
        writer = MrecWriter.reopen(path, options=FAST, files=Full(at))
        writer.append(frames[1])
        with pytest.raises(OSError, match="No space"):
            writer.flush()
        with pytest.raises(ValueError, match="reopen"):
            writer.append(frames[2])
        writer.close()
        assert differences(whole[:1], read(path)) == []
        with MrecWriter.reopen(path, options=FAST) as again:
            for frame in frames[1:]:
                again.append(frame)
        assert differences(whole, written(path)) == []


def test_flush_syncs_data_before_the_marker_and_the_marker_after(tmp_path: Path) -> None:
    events: list[tuple[str, str]] = []

    class Log(RealFiles):
        def sync(self, path: Path) -> None:
            events.append(("sync", path.relative_to(tmp_path).as_posix()))

        def rename(self, source: Path, target: Path) -> None:
            events.append(("rename", target.relative_to(tmp_path).as_posix()))
            super().rename(source, target)

        def write(self, path: Path, pieces: Sequence[Any]) -> None:
            events.append(("write", path.relative_to(tmp_path).as_posix()))
            super().write(path, pieces)

        def make_folder(self, path: Path) -> None:
            made = [folder for folder in (path, *path.parents) if not folder.exists()]
            events.extend(("make", folder.relative_to(tmp_path).as_posix()) for folder in made)
            super().make_folder(path)

    writer = MrecWriter.create(tmp_path / "a.mrec", CRASH, files=Log())
    for frame in crash_frames():
        writer.append(frame)
    created = len(events)
    writer.flush()
    marker = len(events) - 1 - events[::-1].index(("rename", "a.mrec/trajectory/zarr.json"))
    assert [place for kind, place in events[marker:] if kind == "rename"] == ["a.mrec/trajectory/zarr.json"]
    assert ("rename", "a.mrec/trajectory/zarr.json") not in events[created:marker]
    assert ("sync", "a.mrec/trajectory") in events[marker:]
    for at, (kind, place) in enumerate(events):
        if kind == "write":
            renamed = events.index(("rename", place.replace("/.", "/").removesuffix(".partial")), at)
            assert ("sync", place) in events[at:renamed]
        elif kind in ("rename", "make") and at < marker:
            # The folder that holds the new entry.
            assert ("sync", Path(place).parent.as_posix()) in events[at:marker], place
    for name in ("atoms/x", "meta/pe", "step", "box/vectors"):
        chunk = next(
            i for i, e in enumerate(events) if e[0] == "rename" and e[1].startswith(f"a.mrec/trajectory/{name}/c/")
        )
        assert ("rename", f"a.mrec/trajectory/{name}/zarr.json") in events[chunk:marker]


def test_create_leaves_a_folder_that_is_in_use_alone(tmp_path: Path) -> None:
    (tmp_path / "a.mrec").mkdir()
    (tmp_path / "a.mrec/mine").write_text("x")
    with pytest.raises(FileExistsError):
        MrecWriter.create(tmp_path / "a.mrec", CRASH)


@pytest.mark.parametrize("name", ["../out", "", ".", "..", "a/b", "a\0b", "\ud800", "zarr.json"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "deep/a.mrec"
    for declaration in (
        {"blocks": {name: {"columns": {}}}, "meta": {}},
        {"blocks": {"a": {"columns": {name: F64}}}, "meta": {}},
        {"blocks": {}, "meta": {name: {"dtype": "f64"}}},
    ):
        with pytest.raises(Refused):
            MrecWriter.create(path, declaration)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["\ud800", 5, b"x", None])
def test_text_that_utf8_cannot_spell_is_refused(tmp_path: Path, text: object) -> None:
    declaration = {
        "blocks": {"a": {"columns": {"s": {"dtype": "string", "trailing": []}}}},
        "meta": {"t": {"dtype": "string", "fill": ""}},
    }
    values = np.empty(1, dtype=object)
    values[0] = text
    with MrecWriter.create(tmp_path / "a.mrec", declaration, options=FAST) as writer:
        with pytest.raises(Refused, match="MREC-DECL-21"):
            writer.append(Frame(0, {"a": Block(1, {"s": Column(values)})}))
        if isinstance(text, str):
            with pytest.raises(Refused, match="MREC-META"):
                writer.append(Frame(0, meta={"t": MetaValue("string", _text(text))}))


@pytest.mark.parametrize(
    "document", [math.nan, [math.inf], {"a": -math.inf}, {1: 2}, {1: 2, "1": 3}, "\ud800", {1, 2}, b"x"]
)
def test_a_json_value_that_is_no_finite_json_is_refused(tmp_path: Path, document: Any) -> None:
    with MrecWriter.create(
        tmp_path / "a.mrec", {"blocks": {}, "meta": {"d": {"dtype": "json"}}}, options=FAST
    ) as writer:
        with pytest.raises(Refused, match="MREC-META-27"):
            writer.append(Frame(0, meta={"d": MetaValue("json", document)}))
        writer.append(Frame(0, meta={"d": MetaValue("json", {"a": [1, -0.0, 2**70, "é"]})}))
    assert written(tmp_path / "a.mrec")[0]["meta"]["d"]["value"] == {"a": [1, -0.0, 2**70, "é"]}


def test_derive_declaration_is_the_union() -> None:
    first = Frame(
        0,
        {"a": Block(1, {"x": Column(np.ones(1)), "m": Column(np.ones((1, 2)))})},
        meta={"pe": MetaValue("f64", np.array(1.0))},
    )
    second = Frame(
        1,
        {
            "a": Block(0, {"x": Column(np.ones(0), np.ones(0, dtype="?"))}),
            "later": Block(0, {"n": Column(np.zeros((0, 4), dtype="u1"))}),
            "bare": Block(3, {}),
        },
        meta={"d": MetaValue("json", None)},
    )
    assert derive_declaration([first, second]) == {
        "blocks": {
            "a": {
                "columns": {
                    "x": {"dtype": "f64", "trailing": [], "nullable": True},
                    "m": {"dtype": "f64", "trailing": [2]},
                }
            },
            "later": {"columns": {"n": {"dtype": "u8", "trailing": [4]}}},
            "bare": {"columns": {}},
        },
        "meta": {"pe": {"dtype": "f64"}, "d": {"dtype": "json"}},
    }


@pytest.mark.parametrize("other", [np.ones(1, dtype="i8"), np.ones((1, 1)), np.zeros((0, 3))])
def test_derive_declaration_refuses_frames_that_disagree(other: Any) -> None:
    frames = [Frame(i, {"a": Block(len(v), {"x": Column(v)})}) for i, v in enumerate([np.ones(1), other])]
    with pytest.raises(Refused, match="MREC-DECL-23"):
        derive_declaration(frames)


def test_derive_declaration_refuses_tags_that_disagree() -> None:
    frames = [Frame(i, meta={"k": MetaValue(tag, np.array(1))}) for i, tag in enumerate(["i64", "i32"])]
    with pytest.raises(Refused, match="MREC-DECL-23"):
        derive_declaration(frames)


def test_packed_record_reads_the_same(tmp_path: Path) -> None:
    path, frames = tmp_path / "a.mrec", crash_frames()
    with MrecWriter.create(path, CRASH, options=FAST) as writer:
        for frame in frames:
            writer.append(frame)
    (path / "meta/.zarr.json.partial").write_text("left over")
    packed = tmp_path / "a.mrec.zip"
    pack_mrec(path, packed)
    first = packed.read_bytes()
    pack_mrec(path, packed)
    assert packed.read_bytes() == first
    assert differences(resolved(path, frames), written(packed)) == []
    with zipfile.ZipFile(packed) as opened:
        entries = {entry.filename: entry for entry in opened.infolist()}
        files = {p.relative_to(path).as_posix(): p for p in path.rglob("*") if p.is_file()}
        assert set(entries) == set(files) - {"meta/.zarr.json.partial"}
        assert {entry.compress_type for entry in entries.values()} == {zipfile.ZIP_STORED}
        for name in entries:
            assert opened.read(name) == files[name].read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.mrec", "a.mrec.zip"]


def test_a_record_with_a_link_is_not_packed(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    MrecWriter.create(path, CRASH, options=FAST).close()
    (path / "link").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="link"):
        pack_mrec(path, tmp_path / "a.mrec.zip")
    assert not (tmp_path / "a.mrec.zip").exists()
    with pytest.raises(NotADirectoryError):
        MrecWriter.reopen(tmp_path / "a.mrec.zip")


def test_the_reply_of_a_written_store(tmp_path: Path) -> None:
    """The whole reply, declaration included, of one frame that is stated by hand."""
    path = tmp_path / "a.mrec"
    declaration = {"blocks": {"a": {"columns": {"x": F64}}}, "meta": {"k": {"dtype": "u64"}}}
    frame = plain({"step": -3, "time": -0.0, "meta": {"k": 2**64 - 1}, "blocks": {"a": {"x": [1.0]}}}, declaration)
    with MrecWriter.create(path, declaration, options=FAST) as writer:
        writer.append(frame)
    with open_mrec(path) as opened:
        reply = mrec_reply(len(opened), list(opened), opened.declaration)
    assert reply["declaration"] == declaration
    assert reply["frames"] == [encode_frame(frame)]
    assert attributes(path, "trajectory")["step_progression"] == {"start": -3}
