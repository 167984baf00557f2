"""The lock names every clause that is not as it was when the cases were last looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trajconform.model.errors import TrajconformError
from trajconform.spec.catalogue import Catalogue, load_catalogue
from trajconform.spec.lock import compare_lock, lock_text


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    folder = tmp_path / "spec" / "mrec"
    folder.mkdir(parents=True)
    (folder / "t.md").write_text(
        "# T\n\n- **MREC-T-01** (store, MUST) one. [S]\n- **MREC-T-02** (reader, MUST) two. [S]\n"
    )
    return load_catalogue(tmp_path)


def test_the_lock_of_the_clauses_as_they_are_has_no_changes(catalogue: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "lock.json").write_text(lock_text(catalogue))
    assert compare_lock(catalogue, tmp_path / "lock.json") == {}


def test_changed_new_and_vanished_clauses_are_named(catalogue: Catalogue, tmp_path: Path) -> None:
    locked = json.loads(lock_text(catalogue))
    locked["MREC-T-01"] = "0" * 64
    del locked["MREC-T-02"]
    locked["MREC-T-03"] = "0" * 64
    (tmp_path / "lock.json").write_text(json.dumps(locked))
    assert set(compare_lock(catalogue, tmp_path / "lock.json")) == {"MREC-T-01", "MREC-T-02", "MREC-T-03"}


@pytest.mark.parametrize("text", ["{", "[]", "7"])
def test_a_lock_that_is_none_is_an_error(catalogue: Catalogue, tmp_path: Path, text: str) -> None:
    (tmp_path / "lock.json").write_text(text)
    with pytest.raises(TrajconformError):
        compare_lock(catalogue, tmp_path / "lock.json")


def test_without_a_lock_every_clause_is_new(catalogue: Catalogue, tmp_path: Path) -> None:
    assert set(compare_lock(catalogue, tmp_path / "none.json")) == {"MREC-T-01", "MREC-T-02"}
