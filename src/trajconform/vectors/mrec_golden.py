"""Golden mrec stores: a tree of nodes and what a reader hands back, both stated by hand in one declaration.

The expected reply is built from the declaration's ``frames:`` alone, plain values or plain row ranges of the declared
columns, never by resolving the store: a person checks it against the specification by looking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trajconform.model.arrays import Array, array_from_plain, encode_array, encode_int
from trajconform.model.errors import TrajconformError
from trajconform.vectors.mrec_emit import Files, array_values, emit_array, emit_group

RESERVED_CHILDREN = ("step_index", "offset", "_validity")
TAGS: dict[str, tuple[str, tuple[int, ...]]] = {
    "bool": ("bool", ()), "i32": ("i32", ()), "i64": ("i64", ()), "u32": ("u32", ()), "u64": ("u64", ()),
    "f64": ("f64", ()), "string": ("string", ()), "json": ("string", ()), "bool3": ("bool", (3,)),
    "i32x3": ("i32", (3,)), "i64x3": ("i64", (3,)), "u32x3": ("u32", (3,)), "u64x3": ("u64", (3,)),
    "f64x3": ("f64", (3,)), "f64x6": ("f64", (6,)), "f64x9": ("f64", (9,)),
}  # fmt: skip
"""The sixteen tags of per-step metadata: stored dtype and trailing shape."""

Nodes = Mapping[str, Mapping[str, Any]]


def emit_store(nodes: Nodes) -> Files:
    """Files of a store. Groups on the way to a node, and the root, are made without attributes unless declared."""
    groups: dict[str, Mapping[str, Any] | None] = {"": None}
    for path, spec in nodes.items():
        parts = path.split("/")
        for depth in range(1, len(parts)):
            groups.setdefault("/".join(parts[:depth]), None)
        if not is_array(spec):
            unknown = set(spec or {}) - {"attributes"}
            if unknown:
                raise TrajconformError(
                    f"{path}: unknown keys {sorted(unknown)}; a group has attributes, an array dtype and data"
                )
            groups[path] = (spec or {}).get("attributes")
    files: Files = {}
    for path, attributes in groups.items():
        if not is_array(nodes.get(path)):
            files |= emit_group(path, attributes)
    for path, spec in nodes.items():
        if is_array(spec):
            files |= emit_array(path, spec)
    return dict(sorted(files.items()))


def is_array(spec: Mapping[str, Any] | None) -> bool:
    """Whether a node's declaration is that of an array."""
    return spec is not None and "dtype" in spec


def schema_of(nodes: Nodes) -> Mapping[str, Any]:
    """The declared ``sequence_schema``; a store without one is described by its nodes, as a reader derives it."""
    attributes = (nodes.get("trajectory") or {}).get("attributes") or {}
    if "sequence_schema" in attributes:
        schema: Mapping[str, Any] = attributes["sequence_schema"]
        return schema
    blocks: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    for path, spec in nodes.items():
        parts = path.split("/")
        if parts[0] != "trajectory" or not is_array(spec) or len(parts) < 3:
            continue
        if parts[1] == "meta":
            meta[parts[2]] = {"dtype": spec["attributes"]["meta_dtype"]}
        elif parts[1] != "box" and len(parts) == 3 and parts[2] not in RESERVED_CHILDREN:
            columns = blocks.setdefault(parts[1], {"columns": {}})["columns"]
            columns[parts[2]] = {"dtype": spec["dtype"], "trailing": list(array_values(path, spec).shape[1:])}
            if f"trajectory/{parts[1]}/_validity/{parts[2]}" in nodes:
                columns[parts[2]]["nullable"] = True
    return {"blocks": blocks, "meta": meta}


def reply_of(frames: Sequence[Mapping[str, Any]], nodes: Nodes, nstep: int | None = None) -> dict[str, Any]:
    """The expected reply for the stated frames."""
    schema = schema_of(nodes)
    return {
        "format": "mrec",
        "nstep": len(frames) if nstep is None else nstep,
        "frames": [frame_reply(frame, schema, nodes) for frame in frames],
        "declaration": schema,
    }


def frame_reply(frame: Mapping[str, Any], schema: Mapping[str, Any], nodes: Nodes) -> dict[str, Any]:
    """One stated frame in the reply form. Blocks are row ranges ``"a:b"`` of the declared columns, or plain columns."""
    unknown = set(frame) - {"step", "time", "meta", "cell", "blocks"}
    if unknown:
        raise TrajconformError(f"a frame has step, time, meta, cell and blocks, not {sorted(unknown)}")
    out: dict[str, Any] = {}
    if "step" in frame:
        out["step"] = encode_int(int(frame["step"]))
    if "time" in frame:
        out["time"] = encode_array(array_from_plain("f64", frame["time"]))
    tags = schema.get("meta") or {}
    out["meta"] = {key: meta_reply(key, value, tags) for key, value in (frame.get("meta") or {}).items()}
    if frame.get("cell") is not None:
        out["cell"] = cell_reply(frame["cell"])
    declared = schema.get("blocks") or {}
    out["blocks"] = {
        name: block_reply(name, block, declared.get(name) or {}, nodes)
        for name, block in (frame.get("blocks") or {}).items()
    }
    return out


def meta_reply(key: str, value: Any, tags: Mapping[str, Any]) -> dict[str, Any]:
    """A metadata value: plain, with the declared tag, or ``{tag, value}``, or ``{tag: json, text}``."""
    if isinstance(value, Mapping) and set(value) == {"tag", "text"}:
        return {"dtype": value["tag"], "text": value["text"]}
    if isinstance(value, Mapping) and set(value) == {"tag", "value"}:
        tag, value = value["tag"], value["value"]
    elif key in tags:
        tag = tags[key]["dtype"]
    else:
        raise TrajconformError(f"the metadata key {key} is not declared: write {{tag: ..., value: ...}}")
    if tag == "json":
        return {"dtype": "json", "value": value}
    dtype, trailing = TAGS[tag]
    shape = trailing if not isinstance(value, list) or len(value) == (trailing or (None,))[0] else None
    return {"dtype": tag, "value": encode_array(array_from_plain(dtype, value, shape))}


def cell_reply(cell: Mapping[str, Any]) -> dict[str, Any]:
    """A cell; origin and boundary may be left out and take the defaults of the specification."""
    unknown = set(cell) - {"vectors", "origin", "boundary", "defined"}
    if unknown:
        raise TrajconformError(f"a cell has vectors, origin, boundary and defined, not {sorted(unknown)}")
    defined = cell.get("defined", True)
    identity = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    return {
        "defined": defined,
        "vectors": encode_array(array_from_plain("f64", cell.get("vectors", identity))),
        "origin": encode_array(array_from_plain("f64", cell.get("origin", [0.0, 0.0, 0.0]))),
        "boundary": encode_array(array_from_plain("bool", cell.get("boundary", [defined] * 3))),
    }


def block_reply(name: str, block: Any, declared: Mapping[str, Any], nodes: Nodes) -> dict[str, Any]:
    """A block as a frame carries it."""
    columns = declared.get("columns") or {}
    if isinstance(block, str):
        values, masks = _row_range(name, block, columns, nodes)
    else:
        body = block if isinstance(block, Mapping) else {}
        plain = body.get("columns") if isinstance(body.get("columns"), Mapping) else None
        if plain is None:
            plain = {c: v for c, v in body.items() if c not in ("rows", "validity", "shape")}
        values = {c: _column(c, v, columns) for c, v in plain.items()}
        masks = {c: array_from_plain("bool", v) for c, v in (body.get("validity") or {}).items()}
    given = block.get("rows") if isinstance(block, Mapping) else None
    rows = given if given is not None else len(next(iter(values.values()))) if values else 0
    out: dict[str, Any] = {"rows": rows, "columns": {c: encode_array(v) for c, v in values.items()}}
    kept = {c: encode_array(mask) for c, mask in masks.items() if not mask.all() or isinstance(block, Mapping)}
    if kept:
        out["validity"] = kept
    if declared.get("structural_shape") is not None:
        out["shape"] = list(declared["structural_shape"])
    return out


def _row_range(
    name: str, text: str, columns: Mapping[str, Any], nodes: Nodes
) -> tuple[dict[str, Array], dict[str, Array]]:
    first, _, stop = text.partition(":")
    rows = slice(int(first), int(stop))
    values: dict[str, Array] = {}
    masks: dict[str, Array] = {}
    for column, entry in columns.items():
        node = f"trajectory/{name}/{column}"
        whole = array_values(node, nodes[node]) if node in nodes else _empty(entry)
        if rows.stop > len(whole):
            raise TrajconformError(f"{node} has {len(whole)} rows, the frame names {text}")
        values[column] = whole[rows]
        mask = nodes.get(f"trajectory/{name}/_validity/{column}")
        if entry.get("nullable") and mask is not None:
            masks[column] = array_values(node, mask)[rows]
    return values, masks


def _empty(entry: Mapping[str, Any]) -> Array:
    return array_from_plain(entry["dtype"], [], [0, *entry["trailing"]])


def _column(name: str, value: Any, columns: Mapping[str, Any]) -> Array:
    try:
        if isinstance(value, Mapping) and "ramp" in value:
            return _ramp(value["ramp"])
        if isinstance(value, Mapping):
            return array_from_plain(value["dtype"], value["data"], value.get("shape"))
        if name not in columns:
            raise TrajconformError(f"the column {name} is not declared: write {{dtype: ..., data: [...]}}")
        entry = columns[name]
        shape = [len(value), *entry["trailing"]]
        return array_from_plain(entry["dtype"], value, shape if int(np.prod(shape)) == 0 else None)
    except ValueError as error:
        raise TrajconformError(f"column {name}: {error}") from None


def _ramp(ramp: Mapping[str, Any]) -> Array:
    """A long column of f64, ``rows`` values: the whole numbers ``from``, ``from + 1``, ... times ``by``."""
    rows, first, factor = int(ramp["rows"]), int(ramp["from"]), float(ramp["by"])
    values: Array = np.arange(first, first + rows).astype("<f8") * factor
    return values
