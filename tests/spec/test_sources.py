"""spec/sources.md leaves nothing out: every clause stands under the source that its mark names, every row says something."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from trajconform import kit
from trajconform.spec.catalogue import Clause, load_catalogue

PARTS = {
    "S": ("The ragged trajectory chapter", "The Orrery trajectory document"),
    "T": ("Lost tables",),
    "C": ("Companion facts",),
    "R": ("Rulings",),
}
REFERENCE = re.compile(r"\b((?:MREC|OTJ)-[A-Z]+-\d{2,})\b(?: \(([A-Z])\))?")
TEXT = (kit.root() / "spec" / "sources.md").read_text("utf-8")


def faults(text: str, clauses: Mapping[str, Clause]) -> list[str]:
    """What is wrong with the page, each fault in words."""
    found: list[str] = []
    parts = {part.split("\n", 1)[0]: part for part in re.split(r"^# ", text, flags=re.M)[1:]}
    named: dict[str, set[str]] = {title: {m[1] for m in REFERENCE.finditer(part)} for title, part in parts.items()}
    for clause in clauses.values():
        if not any(clause.id in named.get(title, set()) for title in PARTS[clause.mark]):
            found.append(f"{clause.id} [{clause.mark}] does not stand under its source")
    for title, part in parts.items():
        for match in REFERENCE.finditer(part):
            clause_or_none = clauses.get(match[1])
            if clause_or_none is None:
                found.append(f"{title}: {match[1]} is no clause")
            elif match[2] is not None and match[2] != clause_or_none.mark:
                found.append(f"{title}: {match[1]} is marked {clause_or_none.mark}, not {match[2]}")
            elif match[2] is None and title in sum(PARTS.values(), ()) and title not in PARTS[clause_or_none.mark]:
                found.append(f"{title}: {match[1]} comes from elsewhere and does not say so")
        for line in part.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if line.startswith("| ") and not (all(cells[1:]) and cells[-1]):
                found.append(f"{title}: an empty cell in {line!r}")
            binds = line.startswith("| ") and title in sum(PARTS.values(), ()) and cells[-1] != "clauses"
            if binds and not REFERENCE.search(line) and not re.search(r"\bexplanation\b|all clauses", cells[-1]):
                found.append(f"{title}: neither a clause nor a reason in {line!r}")
    return found


def test_every_clause_stands_under_its_source_and_every_row_says_something() -> None:
    assert faults(TEXT, load_catalogue().clauses) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("MREC-CELL-33", "MREC-CELL-20", "MREC-CELL-33 [S] does not stand under its source"),
        ("MREC-CELL-33", "MREC-CELL-99", "MREC-CELL-99 is no clause"),
        ("MREC-REGULAR-04 (S)", "MREC-REGULAR-04 (T)", "MREC-REGULAR-04 is marked S, not T"),
        ("MREC-REGULAR-04 (S)", "MREC-REGULAR-04", "MREC-REGULAR-04 comes from elsewhere"),
        ("| MREC-NULL-02 |", "| yes |", "neither a clause nor a reason"),
        ("| MREC-NULL-02 |", "| |", "an empty cell"),
    ],
)
def test_a_page_with_a_fault_is_found_out(old: str, new: str, fault: str) -> None:
    assert old in TEXT
    assert any(fault in line for line in faults(TEXT.replace(old, new), load_catalogue().clauses))
