"""What an mrec trajectory holds, in its own terms, for a person and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trajconform.model.arrays import encode_int
from trajconform.mrec.reader import MrecFile, open_mrec
from trajconform.mrec.view import BlockView

MOST_STATES = 12
"""Runs of one state that are listed for a block before the rest is summed up."""


def inspect_mrec(path: Path | str) -> dict[str, Any]:
    """Frames, steps, times, blocks with their states over time, cell and metadata. `Refused` as the reader refuses.

    Rows are not read: the answer comes from metadata and index arrays alone.
    """
    with open_mrec(path) as file:
        return {
            "format": "mrec",
            "frames": len(file),
            "steps": _steps(file),
            "times": _times(file),
            "blocks": [_block(file, name) for name in file.view.declaration.blocks],
            "cell": _cell(file),
            "meta": [_meta(file, key) for key in file.view.declaration.meta],
            "declaration": "pinned" if file.view.pinned else "derived from the groups",
        }


def _steps(file: MrecFile) -> str:
    if not len(file):
        return "none"
    first, last = file.step(0), file.step(len(file) - 1)
    progression = file.view.step_progression
    form = (
        "array" if progression is None else f"progression, stride {progression[1]}" if len(file) > 1 else "progression"
    )
    return f"{first} to {last} ({form})"


def _times(file: MrecFile) -> str:
    if not len(file):
        return "none"
    first = file.time(0)
    if first is None:
        return "none"
    progression = file.view.time_progression
    form = (
        "array" if progression is None else f"progression, stride {progression[1]}" if len(file) > 1 else "progression"
    )
    return f"{first} to {file.time(len(file) - 1)} ({form})"


def _block(file: MrecFile, name: str) -> dict[str, Any]:
    declared = file.view.declaration.blocks[name]
    columns = []
    for column, entry in declared.columns.items():
        text = f"{column} {entry.dtype}" + (str(list(entry.trailing)) if entry.trailing else "")
        text += "?" if entry.nullable else ""
        text += f" ±{entry.precision!r}" if entry.precision is not None else ""
        columns.append(text)
    view = file.view.block(name)
    runs = state_runs(view, len(file))
    shown = [_run_text(run) for run in runs[:MOST_STATES]]
    if len(runs) > MOST_STATES:
        shown.append(f"... {len(runs) - MOST_STATES} more changes up to frame {len(file) - 1}")
    kind = "no updates"
    if view.updates.count:
        updates = f"{view.updates.count} update{'s' if view.updates.count != 1 else ''}"
        kind = f"regular, {updates}" if view.updates.ordinals is None else f"indexed, {updates}"
    return {
        "name": name,
        "columns": ", ".join(columns) or "no columns",
        "kind": kind,
        "aligned_with": declared.aligned_with,
        "structural_shape": list(declared.structural_shape) if declared.structural_shape else None,
        "states": shown,
        "runs": [
            {"first": a, "last": b, "state": s, "rows": None if r is None else encode_int(r)} for a, b, s, r in runs
        ],
    }


def state_runs(block: BlockView, frames: int) -> list[tuple[int, int, str, int | None]]:
    """Runs of frames in which a block keeps state and row count: (first, last, state, rows or None)."""
    if not frames:
        return []
    ordinals, counts = block.updates.counts()
    out: list[tuple[int, int, str, int | None]] = []
    if not len(ordinals):
        return [(0, frames - 1, "absent", None)]
    if int(ordinals[0]) > 0:
        out.append((0, int(ordinals[0]) - 1, "absent", None))
    change = np.flatnonzero(np.concatenate([[True], counts[1:] != counts[:-1]]))
    for i, at in enumerate(change.tolist()):
        last = int(ordinals[change[i + 1]]) - 1 if i + 1 < len(change) else frames - 1
        rows = int(counts[at])
        out.append((int(ordinals[at]), last, "present" if rows else "empty", rows))
    return out


def _run_text(run: tuple[int, int, str, int | None]) -> str:
    first, last, state, rows = run
    where = f"frame {first}" if first == last else f"frames {first} to {last}"
    return f"{where:<18} {state}" + (f", {rows} row{'s' if rows != 1 else ''}" if rows else "")


def _cell(file: MrecFile) -> str:
    view = file.view.cell
    if view is None or not len(view.ordinals):
        return "none"
    kind = "defined" if view.defined else "undefined"
    count = len(view.ordinals)
    if view.attributes is not None:
        return f"{kind}, fixed, as attributes"
    return f"{kind}, {count} update{'s' if count != 1 else ''} in arrays, first at frame {int(view.ordinals[0])}"


def _meta(file: MrecFile, key: str) -> str:
    declared = file.view.declaration.meta[key]
    return f"{key} {declared.dtype}"
