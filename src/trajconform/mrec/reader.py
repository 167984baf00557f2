"""The bundled mrec reader: strict, lazy, exact.

Opening reads metadata and the small index arrays; rows are read when frames are asked for, whole chunks at a time, over
windows of many frames. A reader refuses at the first violation of a reader clause: what metadata and indices show
(alignment too) when the store is opened, what only rows show when those rows are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from trajconform.model.arrays import Array
from trajconform.model.errors import Refused
from trajconform.model.trajectory import Block, Cell, Column, Frame, MetaValue
from trajconform.mrec.book import run_stage
from trajconform.mrec.declaration import TAGS, encode_declaration
from trajconform.mrec.node import ArrayNode
from trajconform.mrec.rules.cell import periodic_although_undefined
from trajconform.mrec.rules.step_meta import parse_document
from trajconform.mrec.rules.together import out_of_range, references
from trajconform.mrec.store import Store
from trajconform.mrec.view import BlockView, View

WINDOW_BYTES = 8 * 1024 * 1024
_WINDOW_FRAMES = 4096


def open_mrec(path: Path | str) -> MrecFile:
    """Open the trajectory of a record, a folder or a packed one. `Refused` names the clause that it breaks."""
    return MrecFile(Store(path))


class MrecFile:
    """A trajectory open for reading. ``len`` is the number of committed frames; a context manager."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._view = View(store)
        try:
            self._refuse("structure")
            self._refuse("index")
            self._blocks = {name: self._view.block(name) for name in self._view.declaration.blocks}
            self._meta = {key: self._view.meta(key) for key in self._view.declaration.meta}
            self._row_weights = {
                name: sum(math.prod(a.trailing) * (64 if a.dtype == "string" else 8) for a in block.columns.values())
                for name, block in self._blocks.items()
            }
        except BaseException:
            store.close()
            raise

    def _refuse(self, stage: str) -> None:
        for violation in run_stage(self._view, stage, ("reader",)):
            raise Refused(violation)

    def __enter__(self) -> MrecFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the record."""
        self._store.close()

    def __len__(self) -> int:
        return self._view.nstep

    @property
    def view(self) -> View:
        """The parts of the store."""
        return self._view

    @property
    def declaration(self) -> dict[str, Any]:
        """The ``sequence_schema``: as pinned (members that are not known kept), else as derived from the groups."""
        if self._view.pinned:
            pinned: dict[str, Any] = self._view.attributes["sequence_schema"]
            return pinned
        return encode_declaration(self._view.declaration)

    def step(self, ordinal: int) -> int:
        """Step number of a frame."""
        return self._view.steps(self._index(ordinal), ordinal + 1)[0]

    def time(self, ordinal: int) -> np.float64 | None:
        """Time of a frame, None where the run has no times."""
        times = self._view.times(self._index(ordinal), ordinal + 1)
        return None if times is None else np.float64(times[0])

    def steps(self) -> list[int]:
        """All step numbers."""
        return self._view.steps(0, len(self))

    def times(self) -> Array | None:
        """All times, f64[len], None where the run has none."""
        return self._view.times(0, len(self))

    def _index(self, ordinal: int) -> int:
        if not 0 <= ordinal < len(self):
            raise IndexError(f"frame {ordinal} of {len(self)}")
        return ordinal

    def block_state(self, name: str, ordinal: int) -> str:
        """``absent``, ``empty`` or ``present``: the state of a declared block at a frame."""
        updates = self._blocks[name].updates
        update = updates.find(self._index(ordinal))
        if update < 0:
            return "absent"
        first, stop = updates.rows(update)
        return "present" if stop > first else "empty"

    def frame(self, ordinal: int) -> Frame:
        """One frame, every block resolved."""
        self._index(ordinal)
        return next(self.frames(ordinal, ordinal + 1))

    def __iter__(self) -> Iterator[Frame]:
        return self.frames(0, len(self))

    def frames(self, first: int, stop: int) -> Iterator[Frame]:
        """Frames ``first`` up to ``stop``, read in windows of many frames."""
        stop = min(stop, len(self))
        if first < 0 or first > len(self):
            raise IndexError(f"frame {first} of {len(self)}")
        at = first
        while at < stop:
            end = min(stop, at + self._window(at, stop))
            yield from self._read_window(at, end)
            at = end

    def _window(self, first: int, stop: int) -> int:
        """Frames whose rows together stay within the size of a window; at least one."""
        if stop - first == 1:
            return 1
        size = min(stop - first, _WINDOW_FRAMES)
        while size > 1 and self._weight(first, first + size) > WINDOW_BYTES:
            size //= 2
        return size

    def _weight(self, first: int, stop: int) -> int:
        """About how many bytes the rows of a range of frames take."""
        weight = 0
        for name, block in self._blocks.items():
            low, high = max(block.updates.find(first), 0), block.updates.find(stop - 1)
            if high >= 0:
                weight += (block.updates.rows(high)[1] - block.updates.rows(low)[0]) * self._row_weights[name]
        return weight

    def _read_window(self, first: int, stop: int) -> Iterator[Frame]:
        steps, times = self._view.steps(first, stop), self._view.times(first, stop)
        meta = {key: self._meta_values(key, array, first, stop) for key, array in self._meta.items() if array}
        windows = {name: _BlockWindow(self._view, block, first, stop) for name, block in self._blocks.items()}
        cells = self._cells(first, stop)
        for i in range(first, stop):
            blocks = {name: found for name, window in windows.items() if (found := window.at(i)) is not None}
            yield Frame(
                step=steps[i - first],
                time=None if times is None else np.float64(times[i - first]),
                blocks=blocks,
                cell=next(cells),
                meta={key: MetaValue(self._view.declaration.meta[key].dtype, v[i - first]) for key, v in meta.items()},
            )

    def _meta_values(self, key: str, array: ArrayNode, first: int, stop: int) -> list[Any]:
        rows = array.rows(first, stop)
        if self._view.declaration.meta[key].dtype == "json":
            return [parse_document(array.path, first + i, text) for i, text in enumerate(rows.tolist())]
        if TAGS[self._view.declaration.meta[key].dtype].trailing:
            return list(rows)
        return [rows[i : i + 1].reshape(()) for i in range(len(rows))]

    def _cells(self, first: int, stop: int) -> Iterator[Cell | None]:
        """The cell of each frame of a range; a cell that stays is one object."""
        view = self._view.cell
        found = np.full(stop - first, -1)
        if view is not None:
            found = np.searchsorted(view.ordinals, np.array(range(first, stop), dtype="<u8"), side="right") - 1
        low, high = max(int(found[0]), 0), int(found[-1]) + 1
        cells: list[Cell] = []
        if view is not None and high:
            vectors, origins, boundaries = self._view.cell_rows(low, high)
            for violation in periodic_although_undefined(view, low, boundaries):
                raise Refused(violation)
            for matrix, origin, boundary in zip(vectors, origins, boundaries, strict=True):
                cells.append(Cell(matrix if view.defined else np.eye(3), origin, boundary, view.defined))
        for update in found.tolist():
            yield None if update < 0 else cells[update - low]

    def column(self, block: str, column: str, first: int, stop: int) -> list[Array | None]:
        """The values of one column at each frame of a range, None where the block is absent."""
        stop = min(stop, len(self))
        window = _BlockWindow(self._view, self._blocks[block], first, stop, only=column)
        return window.of(column, first, stop)


class _BlockWindow:
    """The rows of a block for a range of frames, read in one go; blocks handed out are views."""

    def __init__(self, view: View, block: BlockView, first: int, stop: int, only: str | None = None) -> None:
        self.block = block
        self._made: tuple[int, Block] | None = None
        updates = block.updates
        low, high = max(updates.find(first), 0), updates.find(stop - 1) if first < stop else -1
        self.empty = high < 0
        if self.empty:
            return
        begin, end = updates.rows(low)[0], updates.rows(high)[1]
        self.begin = begin
        names = block.declared.columns if only is None else (only,)
        self.values = {name: block.columns[name].rows(begin, end) for name in names}
        self.masks = {name: mask.rows(begin, end) for name, mask in block.masks.items() if name in self.values}
        for name in references(block):
            if name in self.values:
                rows, flags = self.values[name], self.masks.get(name)
                for violation in out_of_range(view, block, name, (low, high + 1), rows, flags, (first, stop)):
                    raise Refused(violation)

    def of(self, column: str, first: int, stop: int) -> list[Array | None]:
        """The values of a column at each frame of a range, None where the block is absent."""
        if self.empty:
            return [None] * (stop - first)
        values, updates = self.values[column], self.block.updates
        if updates.starts is None:
            # A frame past the last update carries it on.
            found = list(values.reshape(len(values) // updates.size, updates.size, *values.shape[1:]))
            return [*found[: stop - first], *found[-1:] * (stop - first - len(found))]
        low = max(updates.find(first), 0)
        starts = (updates.starts[low : updates.find(stop - 1) + 2] - np.uint64(self.begin)).tolist()
        pieces = [None, *(values[a:b] for a, b in pairwise(starts))]
        ordinals = np.array(range(first, stop), dtype="<u8")
        assert updates.ordinals is not None
        which = np.searchsorted(updates.ordinals, ordinals, side="right") - low
        return [pieces[i] for i in which.tolist()]

    def at(self, ordinal: int) -> Block | None:
        """The block as frame ``ordinal`` carries it, None where it is absent."""
        if self.empty:
            return None
        update = self.block.updates.find(ordinal)
        if update < 0:
            return None
        if self._made is not None and self._made[0] == update:
            return self._made[1]
        first, stop = self.block.updates.rows(update)
        rows = slice(first - self.begin, stop - self.begin)
        columns: dict[str, Column] = {}
        for name, values in self.values.items():
            mask = self.masks[name][rows] if name in self.masks else None
            columns[name] = Column(values[rows], None if mask is None or mask.all() else mask)
        made = Block(stop - first, columns, self.block.declared.structural_shape)
        self._made = (update, made)
        return made
