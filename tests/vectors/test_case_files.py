"""The loader of cases: faults with file and line, families, expectations, only what is selected is parsed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trajconform.model.arrays import decode_array
from trajconform.model.errors import TrajconformError
from trajconform.vectors import cases as module
from trajconform.vectors.build import build
from trajconform.vectors.cases import (
    Case,
    cases_by_clause,
    expected_reply,
    golden_path,
    input_files,
    load_cases,
    materialise,
    pack,
    script_calls,
)

ROOT = Path(__file__).resolve().parents[2]

GOLDEN = """\
title: Two frames of one atom
nodes:
  trajectory:
    attributes:
      sequence_schema: {blocks: {a: {columns: {x: {dtype: f64, trailing: []}}}}, meta: {}}
      nstep: 2
      step_progression: {start: 0, stride: 1}
  trajectory/a: {attributes: {uniform_rows: 1, dense_updates: true}}
  trajectory/a/x: {dtype: f64, data: [0.5, -0.0]}
frames:
  - {step: 0, blocks: {a: "0:1"}}
  - {step: 1, blocks: {a: "1:2"}}
"""

CASE = """\
title: A case
clauses: [MREC-STEP-04]
role: reader
input: {golden: two}
expect: accepted
"""


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A kit with one golden store and no case."""
    stores = tmp_path / "vectors" / "mrec" / "stores"
    stores.mkdir(parents=True)
    (stores / "two.yaml").write_text(GOLDEN)
    build(tmp_path)
    return tmp_path


def put(kit: Path, text: str, name: str = "mrec/step-and-time/one") -> Path:
    path = kit / "vectors" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def load(kit: Path, text: str, **selection: Any) -> list[Case]:
    put(kit, text)
    return load_cases(kit, **selection)


FILE = "vectors/mrec/step-and-time/one.yaml"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- 1\n", f"{FILE}:1: a case is a mapping"),
        (CASE + "expects: refused\n", f"{FILE}:6: unknown key 'expects'"),
        (CASE + "title: Again\n", f"{FILE}:6: the key 'title' stands twice"),
        (CASE + "read: {frames: [0, 1}\n", f"{FILE}:6: did not find expected"),
        ("\tx: 1\n", f"{FILE}:1: found character that cannot start any token"),
        (CASE.replace("title: A case\n", ""), f"{FILE}:1: a case has a title"),
        (CASE.replace("[MREC-STEP-04]", "MREC-STEP-04"), f"{FILE}:2: a case names the clauses"),
        (CASE.replace("role: reader", "role: parser"), f"{FILE}:3: role is one of"),
        (CASE.replace("golden: two", "golden: three"), f"{FILE}:4: there is no golden 'three' of mrec"),
        (CASE.replace("golden: two", "gold: two"), f"{FILE}:4: input has"),
        (CASE.replace("input: {golden: two}\n", ""), f"{FILE}:1: a case of a reader or store has an input"),
        (CASE.replace("expect: accepted\n", ""), f"{FILE}:1: a case says what it expects"),
        (CASE.replace("role: reader", "role: writer"), f"{FILE}:1: a case of role writer has a script"),
        (
            CASE.replace("role: reader", "role: writer") + "script:\n  - {close: }\n  - {open: {}}\n",
            f"{FILE}:6: a call is one of create",
        ),
        (CASE + "each:\n  - {name: a}\n  - {name: b}\n  - {name: a}\n", f"{FILE}:9: the member 'a' stands twice"),
        (CASE + "each:\n  - {name: a b}\n", f"{FILE}:7: a member of a family has a name"),
        (CASE + "each:\n  - {name: a}\n  -\n    name: b\n    rolle: x\n", f"{FILE}:10: unknown key 'rolle'"),
        (CASE + "each:\n  - {name: a, input: {golden: four}}\n", f"{FILE}:7: there is no golden 'four'"),
        (CASE + "each: 5\n", f"{FILE}:6: each is a list of members"),
        (CASE + "each: [5]\n", f"{FILE}:6: a member of a family is a mapping"),
        (CASE + "each: {cut: {from: 0, to: 2}}\n", f"{FILE}:6: a generator has from and to"),
        (
            CASE + "each:\n  cut: {from: 0, to: 3}\n  table:\n    - {from: 0, to: 1}\n    - {from: 2, to: 3}\n",
            f"{FILE}:8: no row covers 1",
        ),
        (
            CASE + "each:\n  cut: {from: 0, to: 3}\n  table:\n    - {from: 0, to: 2}\n    - {from: 1, to: 3}\n",
            f"{FILE}:10: 1 stands in two rows",
        ),
        (
            CASE + "each:\n  cut: {from: 0, to: 3}\n  table:\n    - {from: 0, to: 4}\n",
            f"{FILE}:9: 3 is outside 0 to 3",
        ),
    ],
)
def test_a_fault_of_a_case_file_names_file_and_line(kit: Path, text: str, complaint: str) -> None:
    with pytest.raises(TrajconformError) as error:
        load(kit, text)
    assert str(error.value).startswith(complaint)


WRITER = CASE.replace("role: reader", "role: writer").replace("input: {golden: two}\n", "script: [{close: }]\n")


@pytest.mark.parametrize(
    ("text", "line", "complaint", "near"),
    [
        (
            CASE.replace("accepted", "refuzed"),
            5,
            "a case of role reader expects accepted, refused, informative",
            "refused",
        ),
        (CASE.replace("accepted", "[refused]"), 5, "a case of role reader expects", "refused"),
        (CASE.replace("accepted", "clean"), 5, "a case of role reader expects", ""),
        (
            CASE.replace("accepted", "{first_frame: 1}"),
            5,
            "what a case of role reader expects is one of",
            "first_frames",
        ),
        (CASE.replace("accepted", "{frames: [], may_follow: [1]}"), 5, "may_follow goes with first_frames", ""),
        (CASE.replace("reader", "store"), 5, "a case of role store expects clean, or a mapping with violations", ""),
        (CASE.replace("reader", "store").replace("accepted", "claen"), 5, "a case of role store expects", "clean"),
        (CASE.replace("reader", "store").replace("accepted", "{violation: []}"), 5, "what a case of", "violations"),
        (WRITER, 5, "a case of role writer expects a mapping with frames", ""),
        (WRITER.replace("accepted", "{layuot: []}"), 5, "what a case of role writer expects is one of", "layout"),
        (WRITER.replace("accepted", "{bytes: tow}"), 5, "there is no golden 'tow' of mrec", "two"),
        (
            WRITER.replace("accepted", "\n  layout:\n    - {node: a, absend: true}"),
            7,
            "what an assertion says",
            "absent",
        ),
        (WRITER.replace("accepted", "\n  layout:\n    - {absent: true}"), 7, "an assertion names a node and one", ""),
        (WRITER.replace("[{close: }]", "[{clsoe: }]"), 4, "a call is one of create", "close"),
        (CASE + "lacking: {rnage: refused}\n", 6, "a feature is one of range", "range"),
        (CASE + "lacking:\n  range: refuse\n", 7, "a case of role reader expects", "refused"),
        (CASE + "needs: [doubel]\n", 6, "a feature is one of range", "double"),
        (CASE + "compare: [shpae]\n", 6, "a part of a reply that readers may leave out is one of", "shape"),
        (CASE + "read: {frames: [0]}\n", 6, "read has frames", ""),
        (CASE + "read: {frame: [0, 1]}\n", 6, "read has frames", ""),
        (CASE + "expcet: refused\n", 6, "unknown key 'expcet'", "expect"),
        (CASE.replace("golden: two", "golden: tow"), 4, "there is no golden 'tow'", "two"),
        (CASE.replace("golden: two", "nodes: {a: {}}"), 5, "without a golden there is no reply to expect", ""),
        (CASE + "each:\n  - {name: a}\n  - {name: b, expect: informativ}\n", 8, "a case of role reader", "informative"),
        (CASE.replace("accepted", "acepted") + "each:\n  - {name: a}\n", 5, "a case of role reader", "accepted"),
        (
            CASE
            + "each:\n  cut: {from: 0, to: 2}\n  table:\n    - {from: 0, to: 1}\n    - {from: 1, to: 2, expect: refusd}\n",
            10,
            "a case of role reader",
            "refused",
        ),
    ],
)
def test_a_word_that_is_none_is_found_when_a_case_is_loaded(
    kit: Path, text: str, line: int, complaint: str, near: str
) -> None:
    with pytest.raises(TrajconformError) as error:
        load(kit, text)
    assert str(error.value).startswith(f"{FILE}:{line}: {complaint}")
    meant = str(error.value).partition("; did you mean ")[2]
    assert meant.partition("?")[0] == near


def test_words_of_cases_are_those_of_replies_schema_and_protocol() -> None:
    import json

    from trajconform.model.reply import OPTIONAL_PARTS

    assert module._OPTIONAL_PARTS == OPTIONAL_PARTS
    schema = json.loads((ROOT / "schema" / "kit" / "case.schema.json").read_text("utf-8"))
    forms, names = (part for part in schema["$defs"]["expectation"]["oneOf"])
    assert {word for words in module._CASE_FORMS.values() for word in words} == set(forms["enum"])
    assert {name for keys in module._EXPECT_KEYS.values() for name in keys} == set(names["properties"])
    assert set(module._LAYOUT_KEYS) == set(schema["$defs"]["layout"]["properties"])
    protocol = (ROOT / "harness" / "PROTOCOL.md").read_text("utf-8")
    rows = protocol.partition("| feature | meaning |")[2].partition("\n\n")[0]
    features = {name for row in rows.splitlines() for name in row.partition(" | ")[0].split("`")[1::2]}
    assert features == set(module.FEATURES)


@pytest.mark.parametrize("missing", ["two.reply.json", "two.mrec"])
def test_a_golden_that_was_not_built_is_named(kit: Path, missing: str) -> None:
    import shutil

    from trajconform.harness.drivertoml import REFERENCE
    from trajconform.harness.runner import run_cases

    path = kit / "vectors" / "mrec" / "stores" / missing
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    module._golden_reply.cache_clear()
    module.golden_tree.cache_clear()
    [result] = run_cases(REFERENCE, load(kit, CASE)).results
    assert (result.verdict, result.stderr) == ("ERROR", "")
    assert f"vectors/mrec/stores/{missing} is not there: the golden has not been built" in result.message
    assert "trajconform vectors build" in result.message


def test_a_clause_that_does_not_exist_is_an_error_where_clauses_are_known(kit: Path) -> None:
    assert len(load(kit, CASE)) == 1
    assert len(load(kit, CASE, known={"MREC-STEP-04"})) == 1
    with pytest.raises(TrajconformError, match=f"{FILE}:2: there is no clause MREC-STEP-04"):
        load(kit, CASE, known={"MREC-STEP-05"})
    text = CASE + "each:\n  - {name: a}\n  - name: b\n    clauses:\n      - MREC-STEP-99\n"
    with pytest.raises(TrajconformError, match=f"{FILE}:9: there is no clause MREC-STEP-99"):
        load(kit, text, known={"MREC-STEP-04"})
    store = CASE.replace("reader", "store").replace("accepted", "{violations: [MREC-STEP-50]}")
    with pytest.raises(TrajconformError, match=f"{FILE}:5: there is no clause MREC-STEP-50; did you mean MREC-STEP-04"):
        load(kit, store, known={"MREC-STEP-04"})


def test_members_replace_keys_and_append_defects(kit: Path) -> None:
    text = """\
title: A family
clauses: [MREC-STEP-04]
role: reader
input:
  golden: two
  defects: [{set_attribute: {node: trajectory, name: a, value: 1}}]
expect: refused
each:
  - {name: plain}
  - name: more
    title: Its own title
    clauses: [MREC-STEP-05]
    expect: accepted
    input: {defects: [{set_attribute: {node: trajectory, name: b, value: 2}}]}
    defects: [{set_attribute: {node: trajectory, name: c, value: 3}}]
"""
    plain, more = load(kit, text)
    assert (plain.id, more.id) == ("mrec/step-and-time/one@plain", "mrec/step-and-time/one@more")
    assert plain.title == "A family: plain"
    assert more.title == "Its own title"
    assert (plain.clauses, more.clauses) == (("MREC-STEP-04",), ("MREC-STEP-05",))
    assert (plain.expect, more.expect) == ("refused", "accepted")
    assert [d["set_attribute"]["name"] for d in more.input["defects"]] == ["a", "b", "c"]
    assert plain.input["golden"] == more.input["golden"] == "two"
    assert (plain.format, plain.topic, plain.role) == ("mrec", "step-and-time", "reader")


def test_generated_members(tmp_path: Path) -> None:
    text = """\
title: Cut
clauses: [OTJ-TAIL-01]
role: reader
input: {golden: double-positions}
each:
  cut: {from: 7, to: 10}
  table:
    - {from: 7, to: 9, expect: refused, clauses: [OTJ-HEADER-11]}
    - {from: 9, to: 10, expect: {first_frames: 0}, defects: [{append: {hex: "00"}}]}
  then: [{fix_header_checksum: {}}]
"""
    (tmp_path / "vectors" / "otj").mkdir(parents=True)
    (tmp_path / "vectors" / "otj" / "files").symlink_to(ROOT / "vectors" / "otj" / "files")
    put(tmp_path, text, "otj/tail/cut")
    first, _, last = load_cases(tmp_path)
    assert (first.id, first.title) == ("otj/tail/cut@cut-0007", "Cut, cut to 7 bytes")
    assert (first.expect, first.clauses) == ("refused", ("OTJ-HEADER-11",))
    assert first.input["defects"] == [{"cut": {"size": 7}}, {"fix_header_checksum": {}}]
    assert last.expect == {"first_frames": 0}
    assert last.input["defects"] == [{"cut": {"size": 9}}, {"fix_header_checksum": {}}, {"append": {"hex": "00"}}]
    flips = text.replace("cut: {from: 7, to: 10}", "flip: {from: 7, to: 10, bits: all}")
    put(tmp_path, flips, "otj/tail/cut")
    found = load_cases(tmp_path)
    assert len(found) == 24
    assert found[0].id == "otj/tail/cut@flip-0007-0"
    assert found[-1].title == "Cut, bit 7 of byte 9 flipped"


def test_selection(kit: Path) -> None:
    put(kit, CASE, "mrec/blocks/one")
    put(kit, CASE.replace("role: reader", "role: store").replace("accepted", "clean"), "mrec/blocks/two")
    family = CASE.replace("MREC-STEP-04", "MREC-STEP-05") + "each:\n  - {name: a}\n  - {name: b}\n"
    put(kit, family, "mrec/states/three")

    def ids(**selection: Any) -> list[str]:
        return [case.id.removeprefix("mrec/") for case in load_cases(kit, **selection)]

    assert ids() == ["blocks/one", "blocks/two", "states/three@a", "states/three@b"]
    assert ids(topics=["blocks"]) == ["blocks/one", "blocks/two"]
    assert ids(roles=["store"]) == ["blocks/two"]
    assert ids(clauses=["MREC-STEP-05"]) == ["states/three@a", "states/three@b"]
    assert ids(formats=["otj"]) == []
    assert ids(globs=["*/one"]) == ["blocks/one"]
    assert ids(globs=["mrec/states/three"]) == ["states/three@a", "states/three@b"]
    assert ids(globs=["mrec/states/three@b"]) == ["states/three@b"]
    assert ids(globs=["mrec/b*"], roles=["reader"]) == ["blocks/one"]
    assert cases_by_clause(kit)["MREC-STEP-05"][0] == ("mrec/states/three@a", "A case: a")


def test_only_what_a_selection_can_reach_is_parsed(kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(kit, CASE, "mrec/blocks/one")
    put(kit, "not: [a case\n", "mrec/blocks/two")
    put(kit, CASE.replace("MREC-STEP-04", "MREC-STEP-05"), "mrec/states/three")
    parsed: list[str] = []
    real = module.load_yaml

    def watched(path: Path, shown: str) -> Any:
        parsed.append(path.stem)
        return real(path, shown)

    monkeypatch.setattr(module, "load_yaml", watched)
    assert len(load_cases(kit, topics=["states"])) == 1
    assert len(load_cases(kit, globs=["mrec/blocks/one"])) == 1
    assert len(load_cases(kit, clauses=["MREC-STEP-05"])) == 1
    assert parsed == ["three", "one", "three"]
    with pytest.raises(TrajconformError, match=r"vectors/mrec/blocks/two.yaml:2:"):
        load_cases(kit)


def test_expectations(kit: Path) -> None:
    def reply(expect: str, more: str = "") -> Any:
        [case] = load(kit, CASE.replace("accepted", expect) + more)
        return expected_reply(case)

    whole = reply("accepted")
    assert [frame["step"] for frame in whole["frames"]] == [0, 1]
    assert whole["nstep"] == 2
    assert decode_array(whole["frames"][1]["blocks"]["a"]["columns"]["x"]).tobytes() == b"\0" * 7 + b"\x80"
    one = reply("{first_frames: 1}")
    assert one["nstep"] == 1
    assert one["frames"] == whole["frames"][:1]
    ranged = reply("accepted", "read: {frames: [1, 2]}\n")
    assert (ranged["nstep"], ranged["frames"]) == (2, whole["frames"][1:])
    stated = reply('{frames: [{step: 0, blocks: {a: {x: [0.5]}}}, {step: 1, blocks: {a: "1:2"}}]}')
    assert stated == whole
    assert reply("refused") is None
    assert reply("informative") is None
    assert reply('{frames: [{step: 0, blocks: {a: "0:1"}}], nstep: 7}')["nstep"] == 7
    for fault, complaint in (
        ('{frames: [{step: 0, blocks: {a: "0:3"}}]}', "has 2 rows, the frame names 0:3"),
        ("{frames: [{step: 0, blocks: {a: {y: [1.0]}}}]}", "the column y is not declared"),
        ("{frames: [{steps: 0}]}", "a frame has step, time, meta, cell and blocks"),
        ("{frames: [{meta: {pe: 1.0}}]}", "the metadata key pe is not declared"),
        ("{frames: [{cell: {matrix: 1}}]}", "a cell has vectors, origin"),
    ):
        with pytest.raises(TrajconformError, match=complaint) as error:
            reply(fault)
        assert str(error.value).startswith(f"{FILE}: mrec/step-and-time/one: ")


def test_materialised_inputs(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("case")
    [case] = load(kit, CASE)
    path = materialise(case, folder)
    golden = kit / "vectors" / "mrec" / "stores" / "two.mrec"
    files = {p.relative_to(golden).as_posix(): p.read_bytes() for p in sorted(golden.rglob("*")) if p.is_file()}
    assert {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()} == files
    [case] = load(kit, CASE.replace("{golden: two}", "{golden: two, packed: true}"))
    assert materialise(case, folder).read_bytes() == pack(files)
    defect = "{golden: two, defects: [{set_attribute: {node: trajectory, name: nstep, value: 2}}]}"
    [case] = load(kit, CASE.replace("{golden: two}", defect))
    with pytest.raises(TrajconformError, match=r"one: mrec defect set_attribute .* changes nothing"):
        input_files(case)


def test_packed_records(tmp_path: Path) -> None:
    import io
    import zipfile

    files = {"zarr.json": b"{}", "a/zarr.json": b"{}", "a/c/0": bytes(100)}
    assert pack(files) == pack(files)
    plain = zipfile.ZipFile(io.BytesIO(pack(files)))
    assert plain.namelist() == list(files)
    assert {i.compress_type for i in plain.infolist()} == {zipfile.ZIP_STORED}
    assert {i.date_time for i in plain.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert zipfile.ZipFile(io.BytesIO(pack(files, {"folders": True}))).namelist() == ["a/", "a/c/", *files]
    odd = {"deflate": ["a/c/0"], "prefix": "x/", "rename": {"zarr.json": "z"}, "extra": {"../e": "t"}}
    entries = zipfile.ZipFile(io.BytesIO(pack(files, odd)))
    assert entries.namelist() == ["x/z", "x/a/zarr.json", "x/a/c/0", "../e"]
    assert entries.getinfo("x/a/c/0").compress_type == zipfile.ZIP_DEFLATED
    assert entries.getinfo("x/a/zarr.json").compress_type == zipfile.ZIP_STORED
    assert entries.read("../e") == b"t"
    windows = zipfile.ZipFile(io.BytesIO(pack(files, {"separator": "\\"})))
    assert windows.infolist()[1].orig_filename == "a\\zarr.json"
    with pytest.raises(TrajconformError, match="packed has no option 'compress'"):
        pack(files, {"compress": True})


def test_scripts_in_wire_form(kit: Path) -> None:
    text = """\
title: A script
clauses: [MREC-STEP-02]
role: writer
script:
  - create:
      declaration: {blocks: {a: {columns: {x: {dtype: f64, trailing: []}}}}, meta: {k: {dtype: u64}, j: {dtype: json}}}
      system: {a: {x: {dtype: f64, data: [1.0]}}}
  - append: {step: 9007199254740993, time: -0.0, frame: {blocks: {a: {x: [0.5]}}, meta: {k: 18446744073709551615, j: [null]}}}
  - {append: {step: 3, frame: {blocks: {a: {x: []}}, meta: {k: {tag: f64, value: 1.5}, j: {}}}}, refused: true}
  - {close: }
expect: {layout: [{node: trajectory/step, absent: true}]}
"""
    [case] = load(kit, text)
    create, first, second, close = script_calls(case)
    assert [call.op for call in (create, first, second, close)] == ["create", "append", "append", "close"]
    assert [call.refused for call in (create, first, second, close)] == [False, False, True, False]
    assert create.params["declaration"]["meta"]["k"] == {"dtype": "u64"}
    assert create.params["system"]["a"]["rows"] == 1
    assert first.params["step"] == "9007199254740993"
    assert decode_array(first.params["time"]).tobytes() == b"\0" * 7 + b"\x80"
    frame = first.params["frame"]
    assert decode_array(frame["meta"]["k"]["value"]) == 2**64 - 1
    assert frame["meta"]["j"] == {"dtype": "json", "value": [None]}
    assert second.params["frame"]["blocks"]["a"]["rows"] == 0
    assert decode_array(second.params["frame"]["blocks"]["a"]["columns"]["x"]).shape == (0,)
    assert second.params["frame"]["meta"]["k"]["dtype"] == "f64"
    assert close.params == {}
    [case] = load(kit, text.replace("[0.5]", '["half"]'))
    with pytest.raises(TrajconformError, match=f"{FILE}: mrec/step-and-time/one: call append: .*half"):
        script_calls(case)


def test_where_goldens_lie() -> None:
    assert golden_path("otj", "worked-example").read_bytes()[:8] == b"ORRERYTJ"
    assert (golden_path("mrec", "growth") / "trajectory" / "zarr.json").is_file()


def test_every_committed_case_loads_against_the_clauses_that_exist() -> None:
    from trajconform.spec.catalogue import load_catalogue

    known = set(load_catalogue(ROOT).clauses)
    cases = load_cases(ROOT, known=known)
    ids = [case.id for case in cases]
    assert len(ids) == len(set(ids))
    for case in cases:
        if case.role in ("reader", "store"):
            assert input_files(case)
            expected_reply(case)
        else:
            assert script_calls(case)
            assert "frames" not in case.expect or expected_reply(case)
