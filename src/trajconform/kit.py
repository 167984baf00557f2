"""Where the kit's own files are: specification, schemas, vectors, drivers."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from trajconform.model.errors import TrajconformError

_ROOMS = ("spec", "schema", "vectors", "harness")


@cache
def root() -> Path:
    """Folder that holds ``spec/``, ``schema/``, ``vectors/`` and ``harness/``.

    ``TRAJCONFORM_HOME`` wins, so that a keeper of the format can judge with an edited copy; then a checkout that
    this very module belongs to; then the copy inside the installed package.
    """
    named = os.environ.get("TRAJCONFORM_HOME")
    here = Path(__file__).resolve()
    candidates = [Path(named)] if named else [here.parents[2], here.parent / "_kit"]
    for candidate in candidates:
        if all((candidate / room).is_dir() for room in _ROOMS):
            return candidate.resolve()
    looked = ", ".join(str(c) for c in candidates)
    raise FileNotFoundError(f"the kit's folders {', '.join(_ROOMS)} are not at: {looked}; reinstall trajconform")


def writable_root(what: str) -> Path:
    """`root` for a command that changes the kit's files. `TrajconformError` where that is the installed copy.

    Changes to the copy inside a package would be lost with the next installation, and no checkout would see them.
    """
    found = root()
    if found.name == "_kit":
        raise TrajconformError(
            f"{what} would change the installed copy of the kit, not a checkout; "
            "in a checkout run 'pip install -e .', or name a folder with spec/ and vectors/ in TRAJCONFORM_HOME"
        )
    return found
