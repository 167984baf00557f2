"""Fixtures that more than one room of the tests uses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of real trajectory files, too large or not ours to commit; the test skips where there is none."""
    named = os.environ.get("TRAJCONFORM_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no folder of real trajectory files: set TRAJCONFORM_DATA to one")
    return folder
