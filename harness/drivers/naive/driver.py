"""A second opinion on mrec: the plainest reader that follows the specification, on top of zarr-python.

It shares no code with the bundled implementation. It opens every array whole, resolves every frame by a linear walk
and checks what the clauses of the reader role ask, with no thought of speed. Where it and the bundled reader disagree,
one of them has misread a clause.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

import numpy as np
import zarr

COLUMN_DTYPES = {
    "f64": "float64", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "bool": "bool", "string": "string", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
NAMES = {zarr_name: name for name, zarr_name in COLUMN_DTYPES.items()}
TAGS = {
    "bool": ("bool", []), "i32": ("i32", []), "i64": ("i64", []), "u32": ("u32", []), "u64": ("u64", []),
    "f64": ("f64", []), "string": ("string", []), "json": ("string", []), "bool3": ("bool", [3]),
    "i32x3": ("i32", [3]), "i64x3": ("i64", [3]), "u32x3": ("u32", [3]), "u64x3": ("u64", [3]),
    "f64x3": ("f64", [3]), "f64x6": ("f64", [6]), "f64x9": ("f64", [9]),
}  # fmt: skip
FIXED_U64 = {
    "id",
    "atomic_number",
    "type_id",
    "mol_id",
    "res_id",
    "atomi",
    "atomj",
    "atomk",
    "atoml",
    "bond_type",
    "bond_number",
}
ENDPOINTS = ("atomi", "atomj", "atomk", "atoml")
RESERVED_BLOCKS, RESERVED_COLUMNS = {"step", "time", "meta", "box"}, {"offset", "step_index", "_validity"}
NEWEST_RECORD = 1


class Refuse(Exception):
    """The store breaks a clause that readers hold it to."""


def need(condition: bool, message: str) -> None:
    if not condition:
        raise Refuse(message)


def is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_real(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class Record:
    """The folder of a record; a packed one is unpacked first."""

    def __init__(self, path: str) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        self.root = Path(path)
        if self.root.is_file():
            self.root = Path(self.scratch.name)
            try:
                with zipfile.ZipFile(path) as packed:
                    for entry in packed.infolist():
                        name = PurePosixPath(entry.filename)
                        need(
                            not name.is_absolute() and ".." not in name.parts,
                            f"entry {entry.filename} leaves the record",
                        )
                        packed.extract(entry, self.root)
            except (zipfile.BadZipFile, OSError, NotImplementedError) as error:
                raise Refuse(f"not a packed record: {error}") from None

    def document(self, node: str) -> dict | None:
        file = self.root / node / "zarr.json"
        if not file.is_file():
            return None
        try:
            document = json.loads(file.read_text("utf-8"))
        except ValueError as error:
            raise Refuse(f"{node}/zarr.json: {error}") from None
        need(isinstance(document, dict) and document.get("zarr_format") == 3, f"{node} is no Zarr V3 node")
        return document

    def attributes(self, node: str) -> dict | None:
        document = self.document(node)
        if document is None or document.get("node_type") != "group":
            return None
        return document.get("attributes") or {}

    def children(self, node: str) -> list[str]:
        folder = self.root / node
        return (
            sorted(child.name for child in folder.iterdir() if (child / "zarr.json").is_file())
            if folder.is_dir()
            else []
        )

    def is_array(self, node: str) -> bool:
        document = self.document(node)
        return document is not None and document.get("node_type") == "array"

    def array(self, node: str) -> tuple[str, np.ndarray]:
        """dtype name and every row of an array."""
        document = self.document(node)
        stored = document.get("data_type") if document else None
        name = NAMES.get(stored) if isinstance(stored, str) else None
        need(name is not None, f"{node}: dtype {stored} is not one of the record's")
        try:
            values = zarr.open_array(store=str(self.root / node), mode="r")[...]
        except Exception as error:
            raise Refuse(f"{node} does not decode: {error}") from None
        if name == "string":
            listed = np.empty(values.shape, dtype=object)
            listed.ravel()[:] = [str(s) for s in values.ravel().tolist()]
            return name, listed
        return name, np.ascontiguousarray(values)

    def shape(self, node: str) -> list[int]:
        document = self.document(node)
        shape = document.get("shape") if document else None
        need(isinstance(shape, list) and all(is_int(n) and n >= 0 for n in shape), f"{node}: no shape")
        return shape


def typed_json(tag: str, value: object) -> None:
    """Refuse a fill that is not a value of its tag in the typed JSON form."""
    stored, trailing = TAGS[tag]
    if tag == "json":
        json.dumps(value, allow_nan=False)
        return
    values = [value]
    if trailing:
        need(isinstance(value, list) and len(value) == trailing[0], f"a {tag} fill is a list of {trailing[0]}")
        values = value
    for item in values:
        if stored in ("bool", "string"):
            need(isinstance(item, bool if stored == "bool" else str), f"{item!r} is no {tag}")
        elif stored == "f64":
            need(is_real(item) or item in ("NaN", "Infinity", "-Infinity"), f"{item!r} is no {tag}")
        else:
            bits = int(stored[1:])
            low, high = (0, 2**bits - 1) if stored[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            number = item
            if isinstance(item, str):
                body = item.removeprefix("-")
                need(body.isascii() and body.isdigit(), f"{item!r} is no integer")
                number = int(item)
            need(is_int(number) and low <= number <= high, f"{item!r} is no {tag}")


class Trajectory:
    """A whole trajectory in memory: ``frames`` in the reply form."""

    def __init__(self, path: str) -> None:
        self.record = record = Record(path)
        meta = record.attributes("meta")
        if meta and "molrec_version" in meta:
            version = meta["molrec_version"]
            need(is_int(version) and 1 <= version <= NEWEST_RECORD, f"molrec_version is {version!r}")
        attributes = record.attributes("trajectory")
        need(attributes is not None, "there is no trajectory group")
        self.attributes = attributes
        self.nstep = self.count_frames()
        self.steps = self.numbers()
        self.times = self.read_times()
        self.declare()
        self.meta = {key: self.read_meta(key, entry["dtype"]) for key, entry in self.declaration["meta"].items()}
        self.cells = self.read_cells()
        self.system = record.children("system") if record.attributes("system") is not None else []
        self.blocks = {name: self.read_block(name, entry) for name, entry in self.declaration["blocks"].items()}
        self.frames = [self.frame(i) for i in range(self.nstep)]
        for i in range(self.nstep):
            self.check_frame(i)

    def count_frames(self) -> int:
        progressions = [n for n in ("step_progression", "time_progression") if n in self.attributes]
        if "nstep" in self.attributes:
            nstep = self.attributes["nstep"]
            need(is_int(nstep) and nstep >= 0, f"nstep is {nstep!r}")
            return nstep
        need(not progressions, f"{progressions} without nstep")
        return self.record.shape("trajectory/step")[0] if self.record.is_array("trajectory/step") else 0

    def numbers(self) -> list[int]:
        if "step_progression" in self.attributes:
            start, stride = self.progression("step_progression", is_int)
            steps = [start + i * stride for i in range(self.nstep)]
            need(all(-(2**63) <= s < 2**63 for s in steps), "a step leaves the 64-bit integers")
            return steps
        if self.nstep == 0:
            return []
        need(self.record.is_array("trajectory/step"), "nothing numbers the frames")
        return self.rows("trajectory/step", "i64", [], self.nstep).tolist()

    def progression(self, name: str, fits) -> tuple:
        entry = self.attributes[name]
        need(isinstance(entry, dict) and fits(entry.get("start")), f"{name} is {entry!r}")
        need("stride" in entry or self.nstep <= 1, f"{name} has no stride")
        need(fits(entry.get("stride", 0)), f"{name} is {entry!r}")
        return entry["start"], entry.get("stride", 0)

    def read_times(self) -> np.ndarray | None:
        if "time_progression" in self.attributes:
            start, stride = self.progression("time_progression", is_real)
            out = np.empty(self.nstep, dtype="<f8")
            for i in range(self.nstep):
                out[i] = float(start) if self.nstep == 1 else float(start) + float(i) * float(stride)
            return out
        if self.record.is_array("trajectory/time"):
            return self.rows("trajectory/time", "f64", [], self.nstep)
        return None

    def rows(self, node: str, dtype: str, trailing: list[int], count: int) -> np.ndarray:
        """The first ``count`` rows of an array that must be of this dtype and these trailing axes."""
        need(self.record.is_array(node), f"{node} is missing")
        name, values = self.record.array(node)
        need(name == dtype, f"{node} is {name}, declared {dtype}")
        need(list(values.shape[1:]) == trailing and values.ndim >= 1, f"{node} has shape {values.shape}")
        need(values.shape[0] >= count, f"{node} holds {values.shape[0]} rows, {count} are committed")
        return values[:count]

    def declare(self) -> None:
        if "sequence_schema" in self.attributes:
            self.declaration = self.attributes["sequence_schema"]
            need(isinstance(self.declaration, dict), "sequence_schema is no object")
            self.declaration = {"blocks": self.declaration.get("blocks", {}), "meta": self.declaration.get("meta", {})}
            self.check_declaration()
            return
        blocks: dict = {}
        for child in self.record.children("trajectory"):
            if child in RESERVED_BLOCKS or self.record.is_array(f"trajectory/{child}"):
                continue
            columns = {}
            masked = self.record.children(f"trajectory/{child}/_validity")
            for column in self.record.children(f"trajectory/{child}"):
                node = f"trajectory/{child}/{column}"
                if column in RESERVED_COLUMNS or not self.record.is_array(node):
                    continue
                stored = self.record.document(node)["data_type"]
                need(isinstance(stored, str) and stored in NAMES, f"{node}: dtype {stored}")
                columns[column] = {"dtype": NAMES[stored], "trailing": self.record.shape(node)[1:]}
                if column in masked:
                    columns[column]["nullable"] = True
            shape = (self.record.attributes(f"trajectory/{child}") or {}).get("structural_shape")
            blocks[child] = {"columns": columns} | ({"structural_shape": shape} if shape is not None else {})
        meta = {}
        for key in self.record.children("trajectory/meta"):
            tag = self.record.document(f"trajectory/meta/{key}").get("attributes", {}).get("meta_dtype")
            need(isinstance(tag, str) and tag in TAGS, f"meta/{key}: meta_dtype {tag!r}")
            meta[key] = {"dtype": tag}
        self.declaration = {"blocks": blocks, "meta": meta}
        for name, block in blocks.items():
            self.check_columns(name, block)

    def check_declaration(self) -> None:
        blocks, meta = self.declaration["blocks"], self.declaration["meta"]
        need(isinstance(blocks, dict) and isinstance(meta, dict), "blocks and meta are maps")
        for name, block in blocks.items():
            need(isinstance(block, dict) and isinstance(block.get("columns"), dict), f"block {name} is malformed")
            need(name not in RESERVED_BLOCKS, f"block name {name} is reserved")
            self.check_columns(name, block)
            target = block.get("aligned_with")
            if target is not None:
                need(target in blocks and target != name, f"{name} is aligned with {target!r}")
                need("aligned_with" not in blocks[target], f"{name} is aligned with the aligned block {target}")
                need("structural_shape" not in block, f"aligned block {name} declares a structural shape")
                shared = set(block["columns"]) & set(blocks[target]["columns"])
                need(not shared, f"{name} and {target} share {shared}")
                need(self.record.attributes(f"system/{name}") is None, f"aligned block {name} is a system block")
        for key, entry in meta.items():
            need(isinstance(entry, dict) and entry.get("dtype") in TAGS, f"meta key {key}: {entry!r}")
            if "fill" in entry:
                typed_json(entry["dtype"], entry["fill"])

    def check_columns(self, name: str, block: dict) -> None:
        for column, entry in block["columns"].items():
            need(isinstance(entry, dict) and entry.get("dtype") in COLUMN_DTYPES, f"{name}.{column}: {entry!r}")
            trailing = entry.get("trailing")
            need(
                isinstance(trailing, list) and all(is_int(n) and n >= 0 for n in trailing),
                f"{name}.{column}: {entry!r}",
            )
            need(column not in RESERVED_COLUMNS, f"column name {column} is reserved")
            need(column not in FIXED_U64 or entry["dtype"] == "u64", f"{name}.{column} is u64 by name")
            if "precision" in entry:
                need(entry["dtype"] == "f64" and is_real(entry["precision"]), f"{name}.{column}: precision")
                need(2.0**-1000 <= entry["precision"] <= 2.0**1000, f"{name}.{column}: precision")
        for column, target in (block.get("targets") or {}).items():
            known = block["columns"].get(column)
            need(known is not None and known["dtype"] == "u64", f"{name}.{column} has a target and is no u64 column")
            need(
                isinstance(target, str) and not target.startswith("/trajectory/"), f"{name}.{column} targets {target!r}"
            )

    def read_meta(self, key: str, tag: str) -> list:
        if self.nstep == 0 and not self.record.is_array(f"trajectory/meta/{key}"):
            return []
        node = f"trajectory/meta/{key}"
        need(self.record.is_array(node), f"{node} is missing")
        stored = (self.record.document(node).get("attributes") or {}).get("meta_dtype")
        need(stored == tag, f"{node}: meta_dtype is {stored!r}, declared {tag}")
        dtype, trailing = TAGS[tag]
        values = self.rows(node, dtype, trailing, self.nstep)
        if tag != "json":
            return [{"dtype": tag, "value": encode(dtype, values[i])} for i in range(self.nstep)]
        documents = []
        for text in values.tolist():
            try:
                documents.append(json.loads(text, parse_constant=lambda token: 1 / 0))
            except (ValueError, ZeroDivisionError):
                raise Refuse(f"{node} holds text that is no JSON document") from None
        return [{"dtype": "json", "value": document} for document in documents]

    def read_cells(self) -> list[tuple[int, dict]]:
        attributes = self.record.attributes("trajectory/box")
        if attributes is None:
            return []
        defined = attributes.get("cell_defined", True)
        need(isinstance(defined, bool), f"cell_defined is {defined!r}")
        node = "trajectory/box"
        if not self.record.is_array(f"{node}/vectors"):
            if "vectors" not in attributes or self.nstep == 0:
                return []
            vectors = self.numbers_of(attributes["vectors"], (3, 3))
            origin = self.numbers_of(attributes.get("origin", [0.0] * 3), (3,))
            boundary = attributes.get("boundary", [defined] * 3)
            need(
                isinstance(boundary, list) and len(boundary) == 3 and all(isinstance(b, bool) for b in boundary),
                "boundary",
            )
            return [(0, self.cell(defined, vectors, origin, np.array(boundary)))]
        if self.record.is_array(f"{node}/step_index"):
            ordinals = self.committed(f"{node}/step_index")
        else:
            ordinals = [0] if self.record.shape(f"{node}/vectors")[0] > 0 and self.nstep > 0 else []
        count = len(ordinals)
        vectors = self.rows(f"{node}/vectors", "f64", [3, 3], count)
        origin = np.zeros((count, 3))
        if self.record.is_array(f"{node}/origin"):
            origin = self.rows(f"{node}/origin", "f64", [3], count)
        boundary = np.full((count, 3), defined)
        if self.record.is_array(f"{node}/boundary"):
            boundary = self.rows(f"{node}/boundary", "bool", [3], count)
        return [(o, self.cell(defined, vectors[j], origin[j], boundary[j])) for j, o in enumerate(ordinals)]

    def numbers_of(self, value: object, shape: tuple[int, ...]) -> np.ndarray:
        leaves = (
            value
            if len(shape) == 1
            else [x for row in value for x in row]
            if isinstance(value, list) and all(isinstance(r, list) for r in value)
            else None
        )
        need(isinstance(leaves, list) and all(is_real(x) for x in leaves), f"{value!r} is no {shape} of finite numbers")
        need(len(leaves) == math.prod(shape) and len(value) == shape[0], f"{value!r} is no {shape} of finite numbers")
        need(
            len(shape) == 1 or all(len(row) == shape[1] for row in value), f"{value!r} is no {shape} of finite numbers"
        )
        return np.array([float(x) for x in leaves], dtype="<f8").reshape(shape)

    def cell(self, defined: bool, vectors: np.ndarray, origin: np.ndarray, boundary: np.ndarray) -> dict:
        return {
            "defined": defined,
            "vectors": encode("f64", vectors if defined else np.eye(3)),
            "origin": encode("f64", origin),
            "boundary": encode("bool", boundary),
        }

    def committed(self, node: str) -> list[int]:
        """The entries of a step_index that are below nstep: the prefix, which must be strictly ascending."""
        need(self.record.shape(node)[1:] == [], f"{node} has {self.record.shape(node)} as shape")
        name, values = self.record.array(node)
        need(name == "u64" and values.ndim == 1, f"{node} is {name}")
        out: list[int] = []
        for entry in values.tolist():
            if entry >= self.nstep:
                break
            need(not out or entry > out[-1], f"{node}: {entry} follows {out[-1] if out else None}")
            out.append(entry)
        return out

    def read_block(self, name: str, entry: dict) -> list[tuple[int, int, int]]:
        """Updates of a block: (ordinal, first row, end row)."""
        node = f"trajectory/{name}"
        attributes = self.record.attributes(node)
        self.values: dict = getattr(self, "values", {})
        self.masks: dict = getattr(self, "masks", {})
        if attributes is None:
            return []
        markers = [m for m in ("uniform_rows", "dense_updates") if m in attributes]
        indexed = self.record.is_array(f"{node}/step_index")
        if markers and not (indexed and self.record.is_array(f"{node}/offset")):
            indexed = False
        columns = dict(entry["columns"].items())
        if markers:
            need(len(markers) == 2, f"{node} has {markers} alone")
            need(is_int(attributes["uniform_rows"]) and attributes["uniform_rows"] > 0, f"{node}: uniform_rows")
            need(attributes["dense_updates"] is True, f"{node}: dense_updates")
            need(bool(columns), f"{node} has markers and no columns")
        if indexed:
            ordinals = self.committed(f"{node}/step_index")
            updates = self.cut(node, ordinals) if ordinals else []
        elif markers:
            size = attributes["uniform_rows"]
            missing = [column for column in columns if not self.record.is_array(f"{node}/{column}")]
            need(not missing or not self.nstep, f"{node} lacks {', '.join(missing)}")
            shortest = 0 if missing else min(self.record.shape(f"{node}/{column}")[0] for column in columns)
            updates = [(j, j * size, (j + 1) * size) for j in range(min(shortest // size, self.nstep))]
        else:
            need(
                not self.record.is_array(f"{node}/offset") or self.record.shape(f"{node}/offset")[0] <= 1,
                f"{node}: offset without step_index",
            )
            updates = []
        total = updates[-1][2] if updates else 0
        shape = entry.get("structural_shape")
        if shape is not None:
            need(isinstance(shape, list) and all(is_int(n) and n > 0 for n in shape), f"{name}: structural_shape")
        for column, declared in columns.items():
            if total == 0 and not self.record.is_array(f"{node}/{column}") and not updates:
                continue
            self.values[name, column] = self.rows(f"{node}/{column}", declared["dtype"], declared["trailing"], total)
        if self.record.attributes(f"{node}/_validity") is not None:
            for column in self.record.children(f"{node}/_validity"):
                mask = f"{node}/_validity/{column}"
                need(column in columns or self.record.is_array(f"{node}/{column}"), f"{mask} names no column")
                if not columns.get(column, {}).get("nullable"):
                    continue
                need(self.record.is_array(mask), f"{mask} is no array")
                self.masks[name, column] = self.rows(mask, "bool", [], total)
        return updates

    def cut(self, node: str, ordinals: list[int]) -> list[tuple[int, int, int]]:
        offset = self.rows(f"{node}/offset", "u64", [], len(ordinals) + 1).tolist()
        need(offset[0] == 0, f"{node}/offset starts at {offset[0]}")
        need(all(a <= b for a, b in itertools.pairwise(offset)), f"{node}/offset decreases")
        return [(o, offset[j], offset[j + 1]) for j, o in enumerate(ordinals)]

    def resolve(self, name: str, i: int) -> tuple[int, int] | None:
        """Rows of a block at ordinal i: the last update at or before it; None when the block is absent."""
        rows = None
        for ordinal, first, stop in self.blocks[name]:
            if ordinal <= i:
                rows = (first, stop)
        return rows

    def frame(self, i: int) -> dict:
        out: dict = {"step": self.steps[i] if abs(self.steps[i]) <= 2**53 else str(self.steps[i])}
        if self.times is not None:
            out["time"] = encode("f64", self.times[i])
        out["meta"] = {key: values[i] for key, values in self.meta.items()}
        for ordinal, cell in self.cells:
            if ordinal <= i:
                out["cell"] = cell
        out["blocks"] = {}
        for name, entry in self.declaration["blocks"].items():
            rows = self.resolve(name, i)
            if rows is None:
                continue
            first, stop = rows
            block: dict = {"rows": stop - first, "columns": {}}
            for column, declared in entry["columns"].items():
                block["columns"][column] = encode(declared["dtype"], self.values[name, column][first:stop])
            masks = {c: m[first:stop] for (b, c), m in self.masks.items() if b == name and not m[first:stop].all()}
            if masks:
                block["validity"] = {c: encode("bool", m) for c, m in masks.items()}
            out["blocks"][name] = block
        return out

    def check_frame(self, i: int) -> None:
        """What the resolved blocks of a frame owe each other: alignment, references, the system side."""
        for name, entry in self.declaration["blocks"].items():
            rows = self.resolve(name, i)
            target = entry.get("aligned_with")
            if target is not None and rows is not None:
                against = self.resolve(target, i)
                need(against is not None, f"frame {i}: {name} is there, its target {target} is absent")
                need(rows[1] - rows[0] == against[1] - against[0], f"frame {i}: {name} and {target} differ in rows")
            if rows is None or rows[0] == rows[1]:
                continue
            targets = dict(entry.get("targets") or {})
            if (
                "sequence_schema" in self.attributes and "atoms" in self.declaration["blocks"]
            ) or "sequence_schema" in self.attributes:
                for column in ENDPOINTS:
                    if column in entry["columns"] and column not in targets:
                        targets[column] = "atoms"
            for column, where in targets.items():
                self.check_references(i, name, column, where, rows)

    def check_references(self, i: int, name: str, column: str, where: str, rows: tuple[int, int]) -> None:
        if where.startswith("/"):
            if self.record.attributes(where[1:].split("/")[0]) is None:
                return
            attributes = self.record.attributes(where[1:])
            need(attributes is not None, f"{name}.{column} refers to {where}, which its section lacks")
            count = attributes.get("count")
        else:
            against = self.resolve(where, i) if where in self.blocks else None
            need(against is not None, f"frame {i}: {name}.{column} refers to {where}, which is absent")
            count = against[1] - against[0]
        values = self.values[name, column][rows[0] : rows[1]]
        mask = self.masks.get((name, column))
        if mask is not None:
            values = values[mask[rows[0] : rows[1]]]
        need(
            is_int(count) and all(int(v) < count for v in values.ravel()),
            f"frame {i}: {name}.{column} points past {where}",
        )


def encode(dtype: str, values) -> dict:
    # A str made an array of its own would lose the nulls at its end.
    array = np.asarray(values, dtype=object) if dtype == "string" else np.asarray(values)
    if dtype == "string":
        return {"dtype": dtype, "shape": list(array.shape), "data": [str(s) for s in array.ravel().tolist()]}
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {"dtype": dtype, "shape": list(array.shape), "data": base64.b64encode(little.tobytes()).decode()}


def answer(request: dict) -> dict:
    op = request.get("op")
    if op == "hello":
        return {
            "ok": {
                "name": "naive", "version": "1", "language": "Python (zarr-python)",
                "formats": {"mrec": ["read"]}, "features": ["range"],
            }
        }  # fmt: skip
    if op == "bye":
        return {"ok": {}}
    if op != "read" or request.get("format") != "mrec":
        return {"unsupported": {"what": f"{op} of {request.get('format')}"}}
    try:
        trajectory = Trajectory(request["path"])
    except Refuse as refusal:
        return {"refused": {"reason": str(refusal)}}
    first, stop = request.get("frames") or (0, trajectory.nstep)
    declaration = trajectory.declaration
    return {
        "ok": {
            "format": "mrec",
            "nstep": trajectory.nstep,
            "frames": trajectory.frames[first:stop],
            "declaration": declaration,
        }
    }


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request.get("id"), **answer(request)}, allow_nan=False), flush=True)
        if request.get("op") == "bye":
            break


if __name__ == "__main__":
    main()
