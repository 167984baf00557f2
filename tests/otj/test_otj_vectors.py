"""Golden files and cases of otj: the numbers that people declared are the numbers that the clauses ask for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from plain_otj import NotOtj, fnv, sound_frames, sums, time_of

from trajconform.model.arrays import array_from_plain
from trajconform.model.errors import TrajconformError
from trajconform.vectors.cases import Case, input_files, load_cases
from trajconform.vectors.otj_golden import apply_otj_defects, build_otj, reply_otj

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "vectors" / "otj" / "files"
NAMES = sorted(path.stem for path in FILES.glob("*.yaml"))


def declaration(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FILES / f"{name}.yaml").read_text("utf-8"))
    return document


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return load_cases(ROOT, formats=["otj"])


def test_the_dump_in_the_specification_is_the_file(repository: Path) -> None:
    text = (repository / "spec/otj/conventions.md").read_text("utf-8")
    lines = re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+?) *(?:$|  .*$)", text, re.MULTILINE)
    assert len(lines) == 26
    data = b""
    for offset, digits in lines:
        assert int(offset, 16) == len(data)
        data += bytes.fromhex(digits)
    assert data == (FILES / "worked-example.otj").read_bytes()


def test_the_dump_names_the_values_that_are_declared(repository: Path) -> None:
    text = (repository / "spec/otj/conventions.md").read_text("utf-8")
    declared = declaration("worked-example")
    told = re.findall(r"^[0-9a-f]{4}  [0-9a-f ]{23}  (x|y|z|masses|step|time|timestep) +(.*)$", text, re.MULTILINE)
    numbers = [(name, [float(n) for n in re.findall(r"-?[\d.]+", value.split("=")[0])]) for name, value in told]
    expected = [("timestep", [declared["timestep"]]), ("masses", declared["masses"])]
    for frame in declared["frames"]:
        expected += [(name, np.atleast_1d(frame[name]).tolist()) for name in ("step", "time", "x", "y", "z")]
    assert repr(numbers) == repr([(name, [float(v) for v in values]) for name, values in expected])


@pytest.mark.parametrize("name", NAMES)
def test_golden_bytes_and_reply_are_those_declared(name: str) -> None:
    import json

    declared = declaration(name)
    assert (FILES / f"{name}.otj").read_bytes() == build_otj(declared)
    assert json.loads((FILES / f"{name}.reply.json").read_text("utf-8")) == reply_otj(declared)


@pytest.mark.parametrize("name", NAMES)
def test_declared_times_are_the_product(name: str) -> None:
    declared = declaration(name)
    single = declared["precision"] == "single"
    kind = "f32" if single else "f64"
    timestep = float(array_from_plain(kind, declared["timestep"]))
    for frame in declared["frames"]:
        time = array_from_plain(kind, frame["time"])
        if np.isnan(timestep) or (np.isinf(timestep) and frame["step"] == 0):
            assert np.isnan(time)
        elif np.isinf(timestep):
            assert time == timestep
        else:
            right = array_from_plain(kind, time_of(frame["step"], timestep, single))
            assert time.tobytes() == right.tobytes()


def test_there_are_enough_cases_and_each_clause_has_one(cases: list[Case]) -> None:
    from trajconform.spec.catalogue import load_catalogue

    assert len({case.path for case in cases}) >= 100
    bound = {clause for case in cases for clause in case.clauses}
    required = {c.id for c in load_catalogue(ROOT).clauses.values() if c.format == "otj" and c.required}
    assert required <= bound


def test_reader_expectations_are_what_the_specification_says(cases: list[Case]) -> None:
    """Every reader case against thirty plain lines: refused where they refuse, and just the frames that they find."""
    judged = 0
    for case in cases:
        if case.role != "reader" or case.expect == "informative":
            continue
        judged += 1
        data = input_files(case)[""]
        if case.expect == "refused":
            with pytest.raises(NotOtj):
                sums(data)
            continue
        sound = sound_frames(data)
        original = sound_frames((FILES / f"{case.input['golden']}.otj").read_bytes())
        before = next(n for n in range(len(sound) + 1) if n not in sound)
        expect = {"first_frames": len(original)} if case.expect == "accepted" else case.expect
        assert before == expect["first_frames"], case.id
        assert [n for n in sound if n > before] == expect.get("may_follow", []), case.id
        assert all(original[n] == frame for n, frame in sound.items()), case.id
    assert judged > 2000


def test_a_family_cuts_a_three_frame_file_of_each_kind_at_every_byte(cases: list[Case]) -> None:
    for name in ("double-positions", "double-velocities", "single-positions", "single-velocities"):
        length = (FILES / f"{name}.otj").stat().st_size
        sizes = [len(input_files(c)[""]) for c in cases if c.id.startswith(f"otj/tail/cut-{name}@")]
        assert sizes == list(range(length))


def test_wrong_checksums_in_cases_are_what_their_names_say(cases: list[Case]) -> None:
    """The variants of FNV that implementers get wrong are spelled out as bytes; here they are computed again."""

    def fnv1(data: bytes) -> int:
        state = 0xCBF29CE484222325
        for byte in data:
            state = state * 0x100000001B3 % 2**64 ^ byte
        return state

    def basis_zero(data: bytes) -> int:
        state = 0
        for byte in data:
            state = (state ^ byte) * 0x100000001B3 % 2**64
        return state

    def narrow(data: bytes) -> int:
        state = 0x811C9DC5
        for byte in data:
            state = (state ^ byte) * 0x01000193 % 2**32
        return state

    data = (FILES / "double-positions.otj").read_bytes()
    by_id = {case.id: input_files(case)[""] for case in cases if case.topic == "checksum" and case.role == "reader"}
    for part, start, end in (("header", 0, 48), ("frame", 200, 264)):
        covered = data[start:end]
        for name, value in (("fnv-1", fnv1), ("basis-zero", basis_zero), ("fnv-1a-32-bit", narrow)):
            stored = by_id[f"otj/checksum/{part}@{name}"][end : end + 8]
            assert int.from_bytes(stored, "little") == value(covered)
        assert by_id[f"otj/checksum/{part}@byte-swapped"][end : end + 8] == fnv(covered).to_bytes(8, "big")
    chained = by_id["otj/checksum/frame@chained-over-the-file"][264:272]
    assert int.from_bytes(chained, "little") == fnv(data[:264])


@pytest.mark.parametrize(
    ("defect", "fault"),
    [
        ({"cut": {"size": 272}}, "cannot be cut to 272"),
        ({"cut": {"size": -1}}, "cannot be cut to -1"),
        ({"flip_bit": {"offset": 272, "bit": 0}}, "no bit 0 of byte 272"),
        ({"flip_bit": {"offset": 0, "bit": 8}}, "no bit 8"),
        ({"set_bytes": {"offset": 270, "hex": "00 00 00"}}, "not in a file of 272 bytes"),
        ({"set_bytes": {"offset": 0, "hex": "4f"}}, "changes nothing"),
        ({"set_u64": {"offset": 16, "value": 2**64}}, "set_u64"),
        ({"melt": {}}, "unknown otj defect 'melt'"),
        ({"cut": {"length": 3}}, "unexpected keyword"),
        ({"cut": {"size": 3}, "append": {"hex": "00"}}, "one operation"),
    ],
)
def test_defects_that_make_no_sense(defect: dict[str, Any], fault: str) -> None:
    with pytest.raises(TrajconformError, match=re.escape(fault)):
        apply_otj_defects((FILES / "double-positions.otj").read_bytes(), [defect])


def test_each_defect_does_what_it_says() -> None:
    data = (FILES / "double-positions.otj").read_bytes()

    def after(*defects: dict[str, Any]) -> bytes:
        return apply_otj_defects(data, defects)

    assert after({"cut": {"size": 100}}) == data[:100]
    assert after({"set_u32": {"offset": 8, "value": 7}})[8:12] == b"\7\0\0\0"
    assert after({"append": {"hex": "01 02", "times": 2}}) == data + b"\1\2\1\2"
    assert after({"insert": {"offset": 56, "hex": "ff"}}) == data[:56] + b"\xff" + data[56:]
    assert after({"remove": {"offset": 56, "size": 72}}) == data[:56] + data[128:]
    fixed = after(
        {"set_bytes": {"offset": 24, "hex": "01"}}, {"set_u32": {"offset": 24, "value": 9}}, {"fix_header_checksum": {}}
    )
    assert fnv(fixed[:48]) == int.from_bytes(fixed[48:56], "little")
    fixed = after({"flip_bit": {"offset": 150, "bit": 1}}, {"fix_frame_checksum": {"frame": 1}})
    assert len(sound_frames(fixed)) == 3


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"particles": 3}, "2 masses for 3 particles"),
        ({"precision": "half"}, "double or single"),
        ({"velocities": True}, "it needs step, time, x, y, z, vx, vy, vz"),
        ({"masses": [1.0, True]}, "True is not a number"),
        ({"masses": [1.0, "0x00"]}, "16 hexadecimal digits"),
        ({"extra": 1}, "has the fields"),
    ],
)
def test_declarations_that_do_not_add_up(change: dict[str, Any], fault: str) -> None:
    with pytest.raises(TrajconformError, match=re.escape(fault)):
        build_otj({**declaration("double-positions"), **change})


def test_the_reader_in_the_specification_reads(repository: Path, cases: list[Case], tmp_path: Path) -> None:
    """The page of Python in the last chapter does what the cases ask of a reader."""
    text = (repository / "spec/otj/tail.md").read_text("utf-8")
    [program] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(compile(program, "tail.md", "exec"), namespace)
    assert len(program.splitlines()) < 50
    path = tmp_path / "file.otj"
    judged = 0
    for case in cases[::2]:
        if case.role != "reader" or case.expect == "informative":
            continue
        judged += 1
        path.write_bytes(input_files(case)[""])
        if case.expect == "refused":
            with pytest.raises(ValueError, match=r"file|specified|header"):
                namespace["read_otj"](path)
            continue
        timestep, masses, frames = namespace["read_otj"](path)
        declared = declaration(case.input["golden"])
        kind = "f32" if declared["precision"] == "single" else "f64"
        count = [declared["particles"]]
        expect = {"first_frames": len(declared["frames"])} if case.expect == "accepted" else case.expect
        assert timestep.tobytes() == array_from_plain(kind, declared["timestep"]).tobytes()
        assert masses.tobytes() == array_from_plain(kind, declared["masses"], count).tobytes()
        assert len(frames) == expect["first_frames"], case.id
        for (step, time, components), frame in zip(frames, declared["frames"], strict=False):
            assert step == frame["step"]
            assert time.tobytes() == array_from_plain(kind, frame["time"]).tobytes()
            for name, values in components.items():
                assert values.tobytes() == array_from_plain(kind, frame[name], count).tobytes()
    assert judged > 1000
