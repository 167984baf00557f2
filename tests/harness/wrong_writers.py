"""The bundled writer with one thing wrong that only a crash, or a look at its file operations, brings to light.

``python wrong_writers.py NAME`` is a driver program.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trajconform.harness.reference import ReferenceDriver
from trajconform.harness.serve import serve
from trajconform.mrec.zarr_write import RealFiles

MARKER = "trajectory/zarr.json"
WRITE, RENAME = RealFiles.write, RealFiles.rename


def commit_first() -> None:
    """The marker is replaced first, what it counts comes after it."""
    late: list[tuple[Path, Path]] = []

    def rename(self: RealFiles, source: Path, target: Path) -> None:
        if not target.exists() and target.name == "zarr.json":
            RENAME(self, source, target)  # while the record is made
        elif target.as_posix().endswith(MARKER):
            RENAME(self, source, target)
            while late:
                RENAME(self, *late.pop(0))
        else:
            late.append((source, target))

    RealFiles.rename = rename  # type: ignore[method-assign]


def never_syncs() -> None:
    """Nothing is ever synced."""
    RealFiles.sync = lambda self, path: None  # type: ignore[method-assign]


def torn_metadata() -> None:
    """Metadata is written over what was there, half of it at a time."""

    def rename(self: RealFiles, source: Path, target: Path) -> None:
        if target.name != "zarr.json" or not target.exists():
            RENAME(self, source, target)
            return
        content = source.read_bytes()
        source.unlink()
        with target.open("wb", buffering=0) as out:
            out.write(content[: len(content) // 2])
            time.sleep(0.005)
            out.write(content[len(content) // 2 :])

    RealFiles.rename = rename  # type: ignore[method-assign]


class Acknowledges(ReferenceDriver):
    """A flush is acknowledged and not done."""

    def flush(self) -> None:
        return


class Loses(ReferenceDriver):
    """Reopening forgets the last committed frame."""

    def reopen(self, format: str, path: str, declaration: Mapping[str, Any] | None = None) -> None:  # noqa: A002
        marker = Path(path) / MARKER
        document = json.loads(marker.read_text())
        document["attributes"]["nstep"] = max(0, document["attributes"]["nstep"] - 1)
        marker.write_text(json.dumps(document))
        super().reopen(format, path, declaration)


class Duplicates(ReferenceDriver):
    """The first frame that is appended after reopening is there twice."""

    twice = False

    def reopen(self, format: str, path: str, declaration: Mapping[str, Any] | None = None) -> None:  # noqa: A002
        super().reopen(format, path, declaration)
        self.twice = True

    def append(self, step: int | str, frame: Mapping[str, Any], time: Mapping[str, Any] | None = None) -> None:
        super().append(step, frame, time)
        if self.twice:
            self.twice = False
            super().append(int(step) + 1, frame, time)


WRONG = {"commit-first": commit_first, "never-syncs": never_syncs, "torn-metadata": torn_metadata}
DRIVERS = {"acknowledges": Acknowledges, "loses": Loses, "duplicates": Duplicates}


def main(arguments: Sequence[str]) -> None:
    """Serve the writer of a name."""
    (name,) = arguments
    if name in WRONG:
        WRONG[name]()
    serve(DRIVERS.get(name, ReferenceDriver)())


if __name__ == "__main__":
    main(sys.argv[1:])
