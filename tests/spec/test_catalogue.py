"""The catalogue reads chapters exactly and names every fault with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from trajconform.model.errors import TrajconformError
from trajconform.spec.catalogue import LEVELS, MARKS, ROLES, load_catalogue

GOOD = """# Commit marker

Prose that explains, with `MREC-COMMIT-02` named.

- **MREC-COMMIT-01** (store, MUST) `nstep` is the number of
  frames (all of them) on disk. [S]
- **MREC-COMMIT-02** (reader, MUST NOT) A reader must not [guess]. [R]

```text
- **MREC-COMMIT-02** (nobody, EVER) inside a fence this is a drawing
```
"""


def chapter(tmp_path: Path, text: str, name: str = "mrec/commit-marker.md") -> Path:
    file = tmp_path / "spec" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return tmp_path


def test_reads_items_over_several_lines_and_skips_fences(tmp_path: Path) -> None:
    clauses = load_catalogue(chapter(tmp_path, GOOD)).clauses
    assert list(clauses) == ["MREC-COMMIT-01", "MREC-COMMIT-02"]
    first = clauses["MREC-COMMIT-01"]
    assert first.statement == "`nstep` is the number of frames (all of them) on disk."
    assert (first.role, first.level, first.mark, first.line, first.profile) == ("store", "MUST", "S", 5, "core")
    assert clauses["MREC-COMMIT-02"].statement == "A reader must not [guess]."


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("- **MREC-COMMIT-03** (reader MUST) no comma [S]", "malformed item"),
        ("- **MREC-COMMIT-03** (reader, MUST) no mark", "does not end with one mark"),
        ("- **MREC-COMMIT-03** (reader, MUST) wrong mark [X]", "does not end with one mark"),
        ("- **MREC-COMMIT-03** (user, MUST) role [S]", "binds 'user'"),
        ("- **MREC-COMMIT-03** (reader, WILL) level [S]", "has level 'WILL'"),
        ("- **MREC-COMMIT-04** (reader, MUST) gap [S]", "numbers follow on"),
        ("- **MREC-COMMIT-02** (reader, MUST) twice [S]", "already stands in"),
        ("- **OTJ-COMMIT-03** (reader, MUST) other format [S]", "stands in a chapter of mrec"),
        ("- **MREC-COMMIT** (reader, MUST) no number [S]", "malformed item"),
        ("* **MREC-COMMIT-03** (reader, MUST) star [S]", "malformed item"),
        ("See MREC-COMMIT-77.", "refers to MREC-COMMIT-77"),
    ],
)
def test_faults_carry_file_and_line(tmp_path: Path, line: str, fault: str) -> None:
    with pytest.raises(TrajconformError) as caught:
        load_catalogue(chapter(tmp_path, f"{GOOD}\n{line}\n"))
    assert f"spec/mrec/commit-marker.md:{len(GOOD.splitlines()) + 2}: " in str(caught.value)
    assert fault in str(caught.value)


def test_a_prefix_belongs_to_one_chapter(tmp_path: Path) -> None:
    chapter(tmp_path, GOOD)
    chapter(tmp_path, "# Other\n\n- **MREC-COMMIT-01** (store, MUST) x [S]\n", "mrec/zother.md")
    with pytest.raises(TrajconformError, match="the prefix MREC-COMMIT belongs to"):
        load_catalogue(tmp_path)


def test_digest_follows_what_binds_and_ignores_line_breaks(tmp_path: Path) -> None:
    digest = load_catalogue(chapter(tmp_path, GOOD)).clauses["MREC-COMMIT-01"].digest
    rewrapped = GOOD.replace("number of\n  frames", "number\n  of frames").replace("Prose", "Words")
    assert load_catalogue(chapter(tmp_path, rewrapped)).clauses["MREC-COMMIT-01"].digest == digest
    for changed in (
        GOOD.replace("(store,", "(reader,"),
        GOOD.replace("number of", "count of"),
        GOOD.replace("disk. [S]", "disk. [R]"),
    ):
        assert load_catalogue(chapter(tmp_path, changed)).clauses["MREC-COMMIT-01"].digest != digest


def test_the_specification_itself_is_sound() -> None:
    clauses = load_catalogue().clauses
    assert {c.format for c in clauses.values()} == {"mrec", "otj"}
    for clause in clauses.values():
        assert clause.role in ROLES and clause.level in LEVELS and clause.mark in MARKS
        assert clause.statement[-1] in ".:)`", clause
