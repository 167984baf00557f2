"""Going on with a record that another process left: what is committed is kept, what is not is dropped.

Everything is read before anything is written, and at every moment in between a reader finds the committed frames as they
were. An array that was written in another form than the bundled writer's (another chunking, no shards, codecs of another
order) is written anew beside its old chunks, under the other of the two spellings of chunk names, and changes over when
its ``zarr.json`` is replaced.
"""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from trajconform.model.arrays import NUMPY_DTYPES, Array
from trajconform.model.errors import Refused, refuse
from trajconform.model.reply import same_document
from trajconform.model.trajectory import Block, Cell, Column
from trajconform.mrec.declaration import encode_declaration, parse_declaration
from trajconform.mrec.node import ArrayNode
from trajconform.mrec.reader import open_mrec
from trajconform.mrec.view import BlockView, View, is_int
from trajconform.mrec.writer import MrecWriter, WriterOptions, _BlockState, _Progression
from trajconform.mrec.zarr_write import EMPTY, Files, GrowingArray, write_group

_WINDOW_BYTES = 32 * 1024 * 1024
_OWN = frozenset({"sequence_schema", "nstep", "step_progression", "time_progression"})
_OWN_OF_BLOCK = frozenset({"structural_shape", "uniform_rows", "dense_updates"})
_OWN_OF_BOX = frozenset({"cell_defined", "vectors", "origin", "boundary"})


def resume(path: Path, declaration: Mapping[str, Any] | None, options: WriterOptions, files: Files) -> MrecWriter:
    """A writer that goes on behind the last committed frame of a record."""
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is no folder; a packed record is unpacked before it is appended to")
    with open_mrec(path) as opened:
        view = opened.view
        if declaration is not None:
            _check_same(declaration, opened.declaration)
        schema = view.attributes["sequence_schema"] if view.pinned else None
        writer = MrecWriter(path, view.declaration, options, files, schema)
        taker = _Taker(view, writer, files, options.sync)
        taker.take()
        taker.tidy()
    return writer


def _check_same(given: Mapping[str, Any], pinned: Mapping[str, Any]) -> None:
    asked, violations = parse_declaration(given)
    for violation in violations:
        if violation.level != "SHOULD" and violation.clause != "MREC-DECL-12":
            raise Refused(violation)
    if not same_document(encode_declaration(asked), encode_declaration(parse_declaration(pinned)[0])):
        place, message = "trajectory sequence_schema", "the trajectory was created under another declaration"
        raise refuse("MREC-DECL-25", place, message)


class _Taker:
    """Fills a fresh writer from what a view finds, then brings the store to the writer's form."""

    def __init__(self, view: View, writer: MrecWriter, files: Files, sync: bool) -> None:
        self.view, self.writer, self.files, self.sync = view, writer, files, sync
        self.nstep = view.nstep
        self._moved: list[tuple[GrowingArray, ArrayNode]] = []
        """Arrays to be written anew, each with what it was."""
        self._kept: list[GrowingArray] = []
        self._dropped: list[str] = []
        """Arrays that belong to nothing that is committed."""

    # -- reading -------------------------------------------------------------------------------------------------

    def take(self) -> None:
        """Read all that the writer has to know."""
        view, writer = self.view, self.writer
        writer._nstep = writer._committed = self.nstep
        writer._attributes_on_disk = dict(view.attributes)
        writer._extra = {key: value for key, value in view.attributes.items() if key not in _OWN}
        self._take_sections()
        self._take_numbers()
        for key, array in writer._meta.items():
            if (node := view.meta(key)) is not None:
                writer._meta[key] = self._adopt(node, self.nstep, array)
        for name in view.declaration.blocks:
            self._take_block(view.block(name), writer._blocks[name])
        self._take_cell()

    def _take_sections(self) -> None:
        store, writer = self.view.store, self.writer
        for section in store.children(""):
            if section in ("meta", "trajectory") or self._group(section) is None:
                continue
            counts: dict[str, Any] = {
                name: (self._group(f"{section}/{name}") or {}).get("count") for name in store.children(section)
            }
            writer._sections[section] = {name: n for name, n in counts.items() if is_int(n)}
        for name, rows in writer._sections.get("system", {}).items():
            columns = {}
            if store.is_array(f"system/{name}/id"):
                node = self.view.array(f"system/{name}/id")
                columns["id"] = Column(node.rows(0, node.shape[0]))
            writer._system[name] = Block(rows, columns)

    def _group(self, node: str) -> dict[str, Any] | None:
        """The attributes of a group that is perhaps none: content that is not known is nobody's to refuse."""
        try:
            return self.view.store.group(node)
        except Refused:
            return None

    def _take_numbers(self) -> None:
        view, writer, n = self.view, self.writer, self.nstep
        if not n:
            self._dropped += [name for name in ("trajectory/step", "trajectory/time") if view.has(name)]
            return
        writer._last_step = view.steps(n - 1, n)[0]
        times = view.times(0, 1)
        writer._timed = times is not None
        progressions = (view.step_progression, view.time_progression)
        for name, progression, array in zip(
            ("step", "time"), progressions, (writer._step_array, writer._time_array), strict=True
        ):
            taken = _Progression(holds=progression is not None or (name == "time" and times is None))
            if progression is not None:
                taken.start, taken.stride = progression
                if view.has(f"trajectory/{name}"):
                    self._dropped.append(f"trajectory/{name}")
            elif not taken.holds:
                array = self._adopt(view.array(f"trajectory/{name}"), n, array)
            if name == "step":
                writer._steps, writer._step_array = taken, array
            else:
                writer._times, writer._time_array = taken, array

    def _take_block(self, found: BlockView, state: _BlockState) -> None:
        view, node, updates = self.view, f"trajectory/{found.name}", found.updates
        attributes = view.store.group(node)
        state.updates, state.rows = updates.count, updates.total
        if attributes is not None:
            state.extra = {key: value for key, value in attributes.items() if key not in _OWN_OF_BLOCK}
        for c, array in found.columns.items():
            state.columns[c] = self._adopt(array, updates.total, state.columns[c])
        for c in state.masks:
            if c in found.masks:
                state.masks[c] = self._adopt(found.masks[c], updates.total, state.masks[c])
            elif updates.total:
                state.masks[c].append(np.ones(updates.total, dtype=bool))
        index = [name for name in (f"{node}/step_index", f"{node}/offset") if view.has(name)]
        if updates.count and updates.ordinals is not None:
            state.indexed = True
            state.step_index = self._adopt(view.array(index[0]), updates.count, state.step_index)
            state.offset = self._adopt(view.array(index[1]), updates.count + 1, state.offset)
        else:
            state.uniform = updates.size if updates.count else None
            self._dropped += index
        if updates.count:
            first, stop = updates.rows(updates.count - 1)
            columns = {}
            for c in state.columns:
                mask = np.ones(stop - first, dtype=bool) if c in state.masks else None
                mask = found.masks[c].rows(first, stop) if c in found.masks else mask
                columns[c] = Column(found.columns[c].rows(first, stop), mask)
            state.last = Block(stop - first, columns, state.declared.structural_shape)

    def _take_cell(self) -> None:
        view, state, found = self.view, self.writer._cell, self.view.cell
        arrays = [name for name in state.arrays if view.has(f"trajectory/box/{name}")]
        if found is None:
            return
        attributes = view.store.group("trajectory/box") or {}
        state.shown = dict(attributes)
        state.extra = {key: value for key, value in attributes.items() if key not in _OWN_OF_BOX}
        state.count = count = len(found.ordinals)
        if not count or found.attributes is not None:
            # vectors first: without an index they would be an update at frame 0.
            self._dropped += [f"trajectory/box/{name}" for name in sorted(arrays, key="vectors".__ne__)]
        if not count:
            return
        state.defined = found.defined
        vectors, origins, boundaries = (rows[-1] for rows in view.cell_rows(count - 1, count))
        if not found.defined:
            vectors, boundaries = np.eye(3), np.zeros(3, dtype=bool)
        state.last = Cell(vectors, origins, boundaries, found.defined)
        if found.attributes is not None:
            state.fixed = state.last
            return
        state.migrated = True
        for name in arrays:
            state.arrays[name] = self._adopt(view.array(f"trajectory/box/{name}"), count, state.arrays[name])
        if "step_index" not in arrays:
            state.arrays["step_index"].append(np.zeros(1, dtype="<u8"))
        if "boundary" not in arrays and not found.defined:
            state.arrays["boundary"].append(np.zeros((count, 3), dtype=bool))

    def _adopt(self, node: ArrayNode, rows: int, fresh: GrowingArray) -> GrowingArray:
        """An array that goes on behind its first ``rows`` rows."""
        document = self.view.store.document(node.path) or {}
        fresh.attributes = dict(node.attributes)
        extents = _own_extents(document, node)
        if extents is None:
            fresh.separator = "." if _separator(document) == "/" else "/"
            self._moved.append((fresh, node))
            fresh.landed = rows  # until it is written anew
            return fresh
        fresh.document, fresh.separator = document, _separator(document)
        fresh.inner_rows, fresh.shard_chunks = extents
        fresh.landed, fresh.shown = rows, node.shape[0]
        partial = rows % fresh.inner_rows
        if partial:
            fresh.tail = node.rows(rows - partial, rows)
        if rows % (fresh.inner_rows * fresh.shard_chunks) and 0 not in fresh.trailing:
            fresh.index = self._index(node, fresh, rows // (fresh.inner_rows * fresh.shard_chunks))
        self._kept.append(fresh)
        return fresh

    def _index(self, node: ArrayNode, array: GrowingArray, shard: int) -> Array:
        """The index of a shard as it is stored."""
        name = f"{node.path}/" + array.separator.join(["c", str(shard), *("0" for _ in array.trailing)])
        files, size = self.view.store.files, 16 * array.shard_chunks
        if files.size(name) is None:
            return np.full((array.shard_chunks, 2), EMPTY, dtype="<u8")
        raw = files.read(name, 0, size + 4)
        if len(raw) != size + 4 or struct.unpack("<I", raw[size:])[0] != google_crc32c.value(raw[:size]):
            raise refuse("MREC-CODEC-12", name, "the index of the shard does not fit its checksum")
        return np.frombuffer(raw[:size], dtype="<u8").reshape(-1, 2)

    # -- writing -------------------------------------------------------------------------------------------------

    def tidy(self) -> None:
        """Shrink every array to its logical shape; remove markers beside an index and arrays that do not count."""
        writer, files, sync = self.writer, self.files, self.sync
        if "nstep" not in self.view.attributes:
            # Without the attribute the array step says how many frames there are, and it grows before the commit.
            writer._attributes_on_disk |= {"nstep": self.nstep}
            write_group(files, writer._root, writer._attributes_on_disk, sync)
        for name, state in writer._blocks.items():
            # Markers first: an index that is going must not leave rows to be counted by them.
            attributes = self.view.store.group(f"trajectory/{name}")
            state.group_written = self.view.store.group(f"trajectory/{name}/_validity") is not None
            if attributes != writer._block_attributes(state) or (state.masks and not state.group_written):
                writer._write_block_group(state, sync)
            state.shown_markers, state.group_written = state.uniform if not state.indexed else None, True
        cell = writer._cell
        if cell.shown is not None:
            wanted = cell.attributes() or {}
            if wanted != cell.shown:
                write_group(files, writer._root / "box", wanted, sync)
            cell.shown = wanted
        for path in self._dropped:
            self._remove(path)
        for array, node in self._moved:
            self._move(array, node)
        for array in self._kept:
            if array.shown != array.landed:
                array.land(sync)
                self._remove_shards(array)
        if writer._meta and self.view.store.group("trajectory/meta") is None:
            write_group(files, writer._root / "meta", {}, sync)
        blocks = writer._blocks.values()
        for array in (*writer._meta.values(), *(a for s in blocks for a in (*s.columns.values(), *s.masks.values()))):
            if not array.exists:
                array.land(sync)
        for folder, path in ((writer.path, ""), (writer._root, "trajectory")):
            document = self.view.store.document(path)
            if document is not None and "consolidated_metadata" in document:
                # A copy of metadata that is about to change.
                write_group(files, folder, document.get("attributes", {}), sync)

    def _move(self, array: GrowingArray, node: ArrayNode) -> None:
        """Write an array anew in the writer's own form, under chunk names that the old ones do not have."""
        rows, array.landed = array.landed, 0
        size = max(
            1, math.prod(array.trailing) * (64 if array.dtype == "string" else NUMPY_DTYPES[array.dtype].itemsize)
        )
        window = max(1, _WINDOW_BYTES // size)
        array.frame_rows = min(rows, node.chunk[0]) or 1
        array.gather()
        waiting, array.pending, array.waiting = array.pending, [], 0
        for first in range(0, rows, window):
            array.append(node.rows(first, min(first + window, rows)))
            array.land_rows(self.sync)
        array.land(self.sync)
        for values in waiting:
            array.append(values)
        old = {"default": "c", "v2": ""}[_encoding(self.view.store.document(node.path) or {})]
        for file in sorted(p for p in array.folder.rglob("*") if p.is_file()):
            parts = file.relative_to(array.folder).as_posix()
            other = "." if array.separator == "/" else "/"
            numbers = parts.removeprefix(f"c{other}") if old else parts
            if (not old or numbers != parts) and all(n.isdigit() for n in numbers.replace(".", "/").split("/")):
                self.files.remove(file)
        _remove_empty_folders(array.folder)

    def _remove_shards(self, array: GrowingArray) -> None:
        """Remove the shards that lie wholly behind the last row."""
        count = -(-array.landed // (array.inner_rows * array.shard_chunks))
        pattern = array.separator.join(["c", "*", *("0" for _ in array.trailing)])
        for file in sorted(array.folder.glob(pattern)):
            number = file.relative_to(array.folder).as_posix().split(array.separator)[1]
            if number.isdigit() and int(number) >= count:
                self.files.remove(file)
        _remove_empty_folders(array.folder)

    def _remove(self, node: str) -> None:
        """Remove an array: its metadata, with which it goes, then its chunks."""
        folder = self.writer.path / node
        self.files.remove(folder / "zarr.json")
        for file in sorted(p for p in folder.rglob("*") if p.is_file()):
            self.files.remove(file)
        _remove_empty_folders(folder)
        with contextlib.suppress(OSError):
            folder.rmdir()
        if self.sync:
            self.files.sync(folder.parent)


def _remove_empty_folders(folder: Path) -> None:
    for inner in sorted((p for p in folder.rglob("*") if p.is_dir()), reverse=True):
        with contextlib.suppress(OSError):
            inner.rmdir()


def _encoding(document: Mapping[str, Any]) -> str:
    value = document["chunk_key_encoding"]
    name: str = value if isinstance(value, str) else value["name"]
    return name


def _separator(document: Mapping[str, Any]) -> str:
    value = document["chunk_key_encoding"]
    usual = "/" if _encoding(document) == "default" else "."
    found: str = usual if isinstance(value, str) else value.get("configuration", {}).get("separator", usual)
    return found


def _own_extents(document: Mapping[str, Any], node: ArrayNode) -> tuple[int, int] | None:
    """Rows of an inner chunk and chunks of a shard, where an array has the form that the writer appends to."""
    shard = node.chain.shard
    if shard is None or node.chain.orders or node.chain.after or _encoding(document) != "default":
        return None
    extent = tuple(max(1, n) for n in node.trailing)
    whole_rows = node.chunk[1:] == extent and shard.chunk[1:] == extent
    own_index = shard.at_start and shard.index_crc and not shard.index_big
    inner = shard.inner
    if not whole_rows or not own_index or inner.orders or inner.big or inner.shard is not None:
        return None
    for codec in document["codecs"][0]["configuration"]["codecs"]:
        if not isinstance(codec, dict):
            return None
        level = codec.get("configuration", {}).get("level")
        if codec["name"] == "gzip" and not (type(level) is int and 0 <= level <= 9):
            return None
        if codec["name"] == "zstd" and not (type(level) is int and -(2**17) <= level <= 22):
            return None
    return shard.chunk[0], node.chunk[0] // shard.chunk[0]
