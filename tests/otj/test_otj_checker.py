"""The rules, their clauses, and that the checker collects what the reader stops at."""

from __future__ import annotations

from pathlib import Path

import pytest

from trajconform.model.errors import Refused
from trajconform.otj.checker import check_otj
from trajconform.otj.reader import open_otj
from trajconform.otj.rules import BOOK
from trajconform.spec.catalogue import load_catalogue
from trajconform.vectors.otj_golden import apply_otj_defects

FILES = Path(__file__).resolve().parents[2] / "vectors" / "otj" / "files"


def test_every_rule_names_a_clause_of_its_role_and_level(repository: Path) -> None:
    clauses = load_catalogue(repository).clauses
    rules = BOOK.select()
    assert len(rules) >= 16
    for rule in rules:
        clause = clauses[rule.clause]
        assert (clause.format, clause.role, clause.level) == ("otj", rule.role, rule.level)


def test_each_refusal_has_a_rule_for_the_file_too() -> None:
    """What a reader refuses, the checker reports: by the same function, under the clause on files."""
    assert len(BOOK.select(roles=("reader",))) <= len(BOOK.select(roles=("store",)))


def test_all_is_collected_in_file_order(tmp_path: Path) -> None:
    path = tmp_path / "file.otj"
    path.write_bytes(
        apply_otj_defects(
            (FILES / "double-positions.otj").read_bytes(),
            [
                {"set_u32": {"offset": 12, "value": 1 << 9}},
                {"flip_bit": {"offset": 56 + 30, "bit": 0}},
                {"set_bytes": {"offset": 56 + 72 + 8, "hex": "00 00 00 00 00 00 00 00"}},
                {"fix_frame_checksum": {"frame": 1}},
                {"flip_bit": {"offset": 56 + 144, "bit": 7}},
            ],
        )
    )
    found = [(v.clause, v.index, v.offset) for v in check_otj(path)]
    assert found == [
        ("OTJ-FLAGS-03", None, 12),
        ("OTJ-SUM-02", None, 48),
        ("OTJ-SUM-03", 0, 120),
        ("OTJ-FRAME-07", 1, 136),
        ("OTJ-SUM-03", 2, 264),
    ]
    with pytest.raises(Refused, match="OTJ-FLAGS-04"):
        open_otj(path)


def test_nothing_more_is_said_about_a_foreign_file(tmp_path: Path) -> None:
    path = tmp_path / "file.otj"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(500))
    assert [v.clause for v in check_otj(path)] == ["OTJ-HEADER-01"]


def test_messages_say_what_stands_there_and_what_should(tmp_path: Path) -> None:
    path = tmp_path / "file.otj"
    data = (FILES / "step-rounding-single.otj").read_bytes()
    defects = [{"set_bytes": {"offset": 176, "hex": "01 00 80 4b"}}, {"fix_frame_checksum": {"frame": 4}}]
    path.write_bytes(apply_otj_defects(data, defects))
    [violation] = check_otj(path)
    assert violation.place == "frame[4] at byte 176"
    assert "(0x4b800001); step 16777219 as a scalar, times the timestep, rounds to" in violation.message
    assert violation.message.endswith("(0x4b800002)")
