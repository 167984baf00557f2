"""The checker: clean goldens, every fault by its clause and place, none hidden by another, one mind with the reader."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trajconform.model.errors import Refused, Violation
from trajconform.model.work import Work
from trajconform.mrec.book import REFUSED_ANYWAY, load_rules
from trajconform.mrec.checker import check_mrec
from trajconform.mrec.reader import open_mrec
from trajconform.spec.catalogue import load_catalogue
from trajconform.vectors.cases import load_cases, materialise
from trajconform.vectors.defects import apply_mrec_defects
from trajconform.vectors.mrec_golden import emit_store

ROOT = Path(__file__).resolve().parents[2]
STORES = ROOT / "vectors" / "mrec" / "stores"
NAMES = sorted(p.stem for p in STORES.glob("*.mrec"))
CASES = [c for c in load_cases(ROOT) if c.format == "mrec" and c.role in ("reader", "store")]
READER = frozenset(r.clause for r in load_rules().select(roles=("reader",))) | REFUSED_ANYWAY


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def reads(path: Path) -> str:
    """``accepted``, or the clause by which reading every frame is refused."""
    try:
        with open_mrec(path) as file:
            for _ in file:
                pass
    except Refused as refusal:
        return refusal.violation.clause
    return "accepted"


# -- the rules -----------------------------------------------------------------------------------------------------


def test_a_rule_has_the_role_and_level_of_its_clause() -> None:
    clauses = load_catalogue().clauses
    for rule in load_rules().select(roles=("store", "reader")):
        clause = clauses[rule.clause]
        assert (rule.clause, rule.role, rule.level) == (clause.id, clause.role, clause.level)


def test_every_clause_on_stores_and_every_refusal_of_readers_has_a_rule() -> None:
    known = {r.clause for r in load_rules().select(roles=("store", "reader"))}
    missing = [
        clause.id
        for clause in load_catalogue().clauses.values()
        if clause.format == "mrec"
        and clause.level != "MAY"
        and (clause.role == "store" or (clause.role == "reader" and clause.statement.startswith("A reader refuses")))
        and clause.id not in known
    ]
    assert missing == []


# -- goldens and cases ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_breaks_nothing(name: str) -> None:
    assert check_mrec(STORES / f"{name}.mrec") == []
    assert check_mrec(STORES / f"{name}.mrec", Work(quick=True)) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_reader_and_checker_are_of_one_mind(tmp_path: Path, case: Any) -> None:
    path = materialise(case, tmp_path)
    verdict = reads(path)
    violations = check_mrec(path)
    assert (verdict == "accepted") == (not READER & {v.clause for v in violations})
    if verdict != "accepted":
        assert verdict in {v.clause for v in violations}
    levels = load_catalogue().clauses
    assert all(v.level == levels[v.clause].level and len(v.message) > 15 for v in violations)
    assert len({(v.clause, v.path, v.index, v.message) for v in violations}) == len(violations)


# -- ten faults at once --------------------------------------------------------------------------------------------

F64 = {"dtype": "f64", "trailing": []}
U64 = {"dtype": "u64", "trailing": []}
HEALTHY: dict[str, Any] = {
    "meta": {"attributes": {"molrec_version": 1}},
    "system/atoms": {"attributes": {"count": 2}},
    "system/atoms/id": {"dtype": "u64", "data": [7, 8]},
    "trajectory": {
        "attributes": {
            "sequence_schema": {
                "blocks": {
                    "atoms": {"columns": {"id": U64, "x": F64}},
                    "bonds": {"columns": {"atomi": U64, "atomj": U64}},
                    "grid": {"columns": {"v": F64}, "structural_shape": [1, 2]},
                    "marks": {"columns": {"q": {**F64, "nullable": True}}},
                    "rows": {"columns": {"v": {**F64, "precision": 0.5}}},
                },
                "meta": {"j": {"dtype": "json"}, "pe": {"dtype": "f64"}},
            },
            "nstep": 3,
            "time_progression": {"start": 0.0, "stride": 0.5},
        }
    },
    "trajectory/step": {"dtype": "i64", "data": [1, 2, 4]},
    "trajectory/atoms": {"attributes": {"uniform_rows": 2, "dense_updates": True}},
    "trajectory/atoms/id": {"dtype": "u64", "data": [7, 8, 7, 8, 7, 8]},
    "trajectory/atoms/x": {"dtype": "f64", "data": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]},
    "trajectory/bonds/step_index": {"dtype": "u64", "data": [0, 2]},
    "trajectory/bonds/offset": {"dtype": "u64", "data": [0, 1, 2]},
    "trajectory/bonds/atomi": {"dtype": "u64", "data": [0, 0]},
    "trajectory/bonds/atomj": {"dtype": "u64", "data": [1, 1]},
    "trajectory/grid": {"attributes": {"structural_shape": [1, 2], "uniform_rows": 2, "dense_updates": True}},
    "trajectory/grid/v": {"dtype": "f64", "data": [0.0, 1.0]},
    "trajectory/marks/step_index": {"dtype": "u64", "data": [0, 1]},
    "trajectory/marks/offset": {"dtype": "u64", "data": [0, 1, 2]},
    "trajectory/marks/q": {"dtype": "f64", "data": [0.0, 1.0]},
    "trajectory/marks/_validity/q": {"dtype": "bool", "data": [True, False]},
    "trajectory/rows": {"attributes": {"uniform_rows": 1, "dense_updates": True}},
    "trajectory/rows/v": {"dtype": "f64", "data": [0.5, 1.0, -1.5]},
    "trajectory/box": {},
    "trajectory/box/step_index": {"dtype": "u64", "data": [0, 1]},
    "trajectory/box/vectors": {"dtype": "f64", "data": [[[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]] * 2},
    "trajectory/meta/j": {"dtype": "string", "data": ["1", "{}", "[null]"], "attributes": {"meta_dtype": "json"}},
    "trajectory/meta/pe": {"dtype": "f64", "data": [1.0, 2.0, 3.0], "attributes": {"meta_dtype": "f64"}},
}
TEN: list[tuple[dict[str, Any], str, str, int | None]] = [
    ({"set_attribute": {"node": "meta", "name": "molrec_version", "value": 1.0}}, "MREC-RECORD-03", "meta", None),
    ({"set_array": {"node": "trajectory/step", "data": [1, 2, 2]}}, "MREC-STEP-01", "trajectory/step", 2),
    ({"set_in_attribute": {"node": "trajectory", "pointer": "/time_progression/start", "value": "0"}},
     "MREC-STEP-23", "trajectory time_progression", None),
    ({"set_array": {"node": "trajectory/atoms/id", "data": [7, 8, 7, 9, 7, 8]}},
     "MREC-SYSTEM-02", "trajectory/atoms/id", 1),
    ({"set_array": {"node": "trajectory/bonds/atomj", "data": [1, 5]}}, "MREC-REF-05", "trajectory/bonds/atomj", 2),
    ({"drop_attribute": {"node": "trajectory/grid", "name": "dense_updates"}}, "MREC-REGULAR-03", "trajectory/grid", None),
    ({"set_array": {"node": "trajectory/marks/offset", "data": [0, 2, 1]}}, "MREC-BLOCK-09", "trajectory/marks/offset", 2),
    ({"set_array": {"node": "trajectory/rows/v", "data": [0.5, 0.7, -1.5]}}, "MREC-PREC-04", "trajectory/rows/v", 1),
    ({"set_array": {"node": "trajectory/box/step_index", "data": [1, 1]}}, "MREC-CELL-03", "trajectory/box/step_index", 1),
    ({"set_array": {"node": "trajectory/meta/j", "data": ["1", "{", "[null]"]}}, "MREC-META-12", "trajectory/meta/j", 1),
]  # fmt: skip


def found(violations: list[Violation]) -> list[tuple[str, str, int | None]]:
    return sorted(((v.clause, v.path, v.index) for v in violations), key=str)


def test_the_healthy_store_is_healthy(tmp_path: Path) -> None:
    path = write(tmp_path, emit_store(HEALTHY))
    assert check_mrec(path) == []
    assert reads(path) == "accepted"


@pytest.mark.parametrize("number", range(len(TEN)))
def test_one_fault_is_reported_alone(tmp_path: Path, number: int) -> None:
    defect, clause, place, index = TEN[number]
    path = write(tmp_path, apply_mrec_defects(emit_store(HEALTHY), HEALTHY, [defect]))
    assert found(check_mrec(path)) == [(clause, place, index)]


def test_ten_faults_at_once_are_ten_reports(tmp_path: Path) -> None:
    path = write(tmp_path, apply_mrec_defects(emit_store(HEALTHY), HEALTHY, [defect for defect, *_ in TEN]))
    assert found(check_mrec(path)) == sorted(((c, p, i) for _, c, p, i in TEN), key=str)


def test_a_block_that_cannot_be_looked_at_hides_no_other(tmp_path: Path) -> None:
    path = write(tmp_path, apply_mrec_defects(emit_store(HEALTHY), HEALTHY, [d for d, *_ in TEN]))
    for name in ("atoms", "bonds"):
        (path / f"trajectory/{name}/zarr.json").write_bytes(b"{")
    clauses = {v.clause for v in check_mrec(path)}
    gone = {"MREC-SYSTEM-02", "MREC-REF-05"}
    assert clauses == {c for _, c, _, _ in TEN} - gone | {"MREC-RECORD-11"}
    assert sorted(v.path for v in check_mrec(path) if v.clause == "MREC-RECORD-11") == [
        "trajectory/atoms/zarr.json",
        "trajectory/bonds/zarr.json",
    ]


def test_quick_looks_at_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path, apply_mrec_defects(emit_store(HEALTHY), HEALTHY, [d for d, *_ in TEN]))
    by_rows = {"MREC-STEP-01", "MREC-SYSTEM-02", "MREC-REF-05", "MREC-PREC-04", "MREC-META-12"}
    assert {v.clause for v in check_mrec(path, Work(quick=True))} == {c for _, c, _, _ in TEN} - by_rows
    for chunk in path.glob("trajectory/atoms/x/c/*"):
        chunk.unlink()
    assert {v.clause for v in check_mrec(path, Work(quick=True))} == {c for _, c, _, _ in TEN} - by_rows


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "1.0"),
        (1, "step 2 follows 2"),
        (2, '"0"'),
        (3, "id 9"),
        (4, "row 5 of atoms"),
        (6, "1 follows 2"),
        (7, "0.5"),
    ],
)
def test_a_message_names_what_stands_there(tmp_path: Path, number: int, said: str) -> None:
    path = write(tmp_path, apply_mrec_defects(emit_store(HEALTHY), HEALTHY, [TEN[number][0]]))
    (violation,) = check_mrec(path)
    assert said in violation.message.replace("'", '"')


# -- what nobody needs, and what is not there ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("defects", "clauses"),
    [
        ([{"set_attribute": {"node": "trajectory", "name": "step_progression", "value": {"start": 1, "stride": 1}}}], []),
        ([{"set_attribute": {"node": "trajectory", "name": "step_progression", "value": {"start": 1, "stride": 1}}},
          {"truncate": {"node": "trajectory/step", "rows": 2}}], ["MREC-LAYOUT-02"]),
        ([{"add_array": {"node": "trajectory/meta/extra", "dtype": "f64", "data": [1.0, 2.0, 3.0]}}], ["MREC-META-02"]),
        ([{"add_array": {"node": "trajectory/meta/extra", "dtype": "f64", "data": [1.0],
                         "attributes": {"meta_dtype": "f64"}}}], ["MREC-LAYOUT-02"]),
        ([{"add_array": {"node": "trajectory/other/x", "dtype": "f64", "data": [1.0]}}], []),
        ([{"add_array": {"node": "other/x", "dtype": "f32", "data": [1.0]}}], []),
        ([{"set_attribute": {"node": "trajectory/rows/v", "name": "precision", "value": 0.5}}], ["MREC-PREC-09"]),
        ([{"set_metadata": {"node": "system/atoms/id", "pointer": "/codecs", "value": [{"name": "numcodecs.quantize"}]}}],
         ["MREC-CODEC-11", "MREC-RECORD-05"]),
        ([{"cut_file": {"path": "system/atoms/id/c/0", "size": 3}}], ["MREC-RECORD-05"]),
        ([{"write_file": {"path": "system/atoms/id/zarr.json", "text": "{"}}], ["MREC-RECORD-05"]),
        ([{"write_file": {"path": "system/zarr.json", "text": "{"}}], ["MREC-RECORD-05"]),
    ],
)  # fmt: skip
def test_what_no_reader_needs_is_for_the_checker_alone(tmp_path: Path, defects: list[Any], clauses: list[str]) -> None:
    path = write(tmp_path, apply_mrec_defects(emit_store(HEALTHY), HEALTHY, defects))
    assert sorted({v.clause for v in check_mrec(path)}) == clauses
    assert reads(path) == "accepted"


@pytest.mark.parametrize("claim", [2**20, 2**40, 2**62])
def test_claimed_rows_cost_the_checker_nothing(tmp_path: Path, claim: int) -> None:
    """Every array of the run, and the run itself, claims to be huge; next to nothing is stored."""
    store = Path(shutil.copytree(STORES / "regular-run.mrec", tmp_path / "a.mrec"))
    for path in store.rglob("zarr.json"):
        document = json.loads(path.read_text("utf-8"))
        if document["node_type"] == "array":
            document["shape"][0] = claim
        if "nstep" in document.get("attributes", {}):
            document["attributes"]["nstep"] = claim
            document["attributes"]["step_progression"] = {"start": 0, "stride": 1}
        path.write_text(json.dumps(document), "utf-8")
    began = time.monotonic()
    assert check_mrec(store) == []
    with open_mrec(store) as file:
        assert file.frame(claim // 2).step == claim // 2
        last = file.frame(len(file) - 1)
    assert last.blocks["atoms"].rows > 0
    assert time.monotonic() - began < 5
