"""Defects of mrec stores: one declared change turns a golden store into a malformed one.

A defect works on the files of a store in memory and on the declaration of its nodes, so that an array can be emitted
anew with its own layout. A defect that changes nothing, or names what is not there, is an error of the case.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trajconform.model.errors import TrajconformError
from trajconform.vectors.mrec_emit import Files, emit_array, emit_group, json_bytes


class Tree:
    """A store in hand: its files, and the declarations of its arrays as far as they are known."""

    def __init__(self, files: Files, nodes: Mapping[str, Mapping[str, Any]]) -> None:
        self.files = dict(files)
        self.nodes = {path: copy.deepcopy(dict(spec or {})) for path, spec in nodes.items()}

    def document(self, node: str) -> dict[str, Any]:
        """The ``zarr.json`` of a node."""
        name = _zarr_json(node)
        if name not in self.files:
            raise TrajconformError(f"there is no node {node!r}")
        document = json.loads(self.files[name])
        if not isinstance(document, dict):
            raise TrajconformError(f"{name} is no object")
        return document

    def put_document(self, node: str, document: Any) -> None:
        """Replace the ``zarr.json`` of a node."""
        self.files[_zarr_json(node)] = json_bytes(document)

    def emit(self, node: str) -> None:
        """Emit an array anew from its declaration; groups on the way are made where they are missing."""
        self.remove(node)
        parts = node.split("/")
        for depth in range(len(parts)):
            group = "/".join(parts[:depth])
            if _zarr_json(group) not in self.files:
                self.files |= emit_group(group, None)
        self.files |= emit_array(node, self.nodes[node])

    def remove(self, node: str) -> None:
        """Remove a node and all below it."""
        for name in [n for n in self.files if n.startswith(f"{node}/")]:
            del self.files[name]

    def array(self, node: str) -> dict[str, Any]:
        """The declaration of an array node."""
        spec = self.nodes.get(node)
        if spec is None or "dtype" not in spec:
            raise TrajconformError(f"there is no declared array {node!r}; arrays: {', '.join(self.nodes)}")
        return spec


def apply_mrec_defects(
    files: Files, nodes: Mapping[str, Mapping[str, Any]], defects: Iterable[Mapping[str, Any]]
) -> Files:
    """The files of a store after each defect in turn, ``{op: {argument: value}}``."""
    return dict(sorted(defective_tree(files, nodes, defects).files.items()))


def defective_tree(files: Files, nodes: Mapping[str, Mapping[str, Any]], defects: Iterable[Mapping[str, Any]]) -> Tree:
    """A store after each defect in turn, its declarations kept in step as far as a defect goes through them."""
    tree = Tree(files, nodes)
    for defect in defects:
        if len(defect) != 1:
            raise TrajconformError(f"a defect is one operation with its arguments, not {dict(defect)}")
        [(name, arguments)] = defect.items()
        operation = _DEFECTS.get(name)
        if operation is None:
            raise TrajconformError(f"unknown mrec defect {name!r}; there are {', '.join(_DEFECTS)}")
        before = dict(tree.files)
        try:
            operation(tree, **(arguments or {}))
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise TrajconformError(f"mrec defect {name} {arguments}: {type(error).__name__}: {error}") from None
        if tree.files == before:
            raise TrajconformError(f"mrec defect {name} {arguments} changes nothing")
    return tree


def _zarr_json(node: str) -> str:
    return f"{node}/zarr.json" if node else "zarr.json"


def _set_attribute(tree: Tree, node: str, name: str, value: Any) -> None:
    document = tree.document(node)
    document.setdefault("attributes", {})[name] = value
    tree.put_document(node, document)
    spec = tree.nodes.setdefault(node, {})
    spec["attributes"] = {**(spec.get("attributes") or {}), name: value}


def _drop_attribute(tree: Tree, node: str, name: str) -> None:
    document = tree.document(node)
    del document["attributes"][name]
    tree.put_document(node, document)
    spec = tree.nodes.setdefault(node, {})
    spec["attributes"] = {k: v for k, v in (spec.get("attributes") or {}).items() if k != name}


def _set_in_attribute(tree: Tree, node: str, pointer: str, value: Any) -> None:
    _set_metadata(tree, node, "/attributes" + pointer, value)


def _drop_in_attribute(tree: Tree, node: str, pointer: str) -> None:
    _drop_metadata(tree, node, "/attributes" + pointer)


def _set_metadata(tree: Tree, node: str, pointer: str, value: Any) -> None:
    document = tree.document(node)
    holder, key = _walk(document, pointer)
    if isinstance(holder, list) and key == "-":
        holder.append(value)
    elif isinstance(holder, list):
        holder[int(key)] = value
    else:
        holder[key] = value
    tree.put_document(node, document)
    _sync_attributes(tree, node, document)


def _drop_metadata(tree: Tree, node: str, pointer: str) -> None:
    document = tree.document(node)
    holder, key = _walk(document, pointer)
    if isinstance(holder, list):
        del holder[int(key)]
    else:
        del holder[key]
    tree.put_document(node, document)
    _sync_attributes(tree, node, document)


def _sync_attributes(tree: Tree, node: str, document: Mapping[str, Any]) -> None:
    if isinstance(document.get("attributes"), dict):
        tree.nodes.setdefault(node, {})["attributes"] = document["attributes"]


def _walk(document: Any, pointer: str) -> tuple[Any, str]:
    """The holder and the last key of a JSON pointer."""
    parts = [p.replace("~1", "/").replace("~0", "~") for p in pointer.split("/")[1:]]
    if not parts:
        raise ValueError("the pointer names the whole document")
    holder = document
    for part in parts[:-1]:
        holder = holder[int(part)] if isinstance(holder, list) else holder[part]
    return holder, parts[-1]


def _set_array(
    tree: Tree,
    node: str,
    data: Any,
    dtype: str | None = None,
    shape: Any = None,
    attributes: Any = None,
    layout: Any = None,
) -> None:
    spec = tree.array(node)
    spec.pop("shape", None)
    spec["data"] = data
    for name, value in (("dtype", dtype), ("shape", shape), ("attributes", attributes), ("layout", layout)):
        if value is not None:
            spec[name] = value
    tree.emit(node)


def _relayout(tree: Tree, node: str, **layout: Any) -> None:
    tree.array(node)["layout"] = layout
    tree.emit(node)


def _extend(tree: Tree, node: str, data: list[Any]) -> None:
    spec = tree.array(node)
    spec["data"] = [*spec["data"], *data]
    if spec.get("shape"):
        spec["shape"] = [spec["shape"][0] + len(data), *spec["shape"][1:]]
    tree.emit(node)


def _truncate(tree: Tree, node: str, rows: int) -> None:
    spec = tree.array(node)
    if rows >= len(spec["data"]):
        raise ValueError(f"{node} has {len(spec['data'])} rows")
    first = spec["data"][0] if spec["data"] else None
    spec["data"] = spec["data"][:rows]
    if not rows:
        trailing: list[int] = []
        while isinstance(first, list):
            trailing.append(len(first))
            first = first[0]
        if spec["dtype"] in ("c64", "c128"):
            trailing.pop()
        spec["shape"] = [0, *trailing]
    tree.emit(node)


def _resize(tree: Tree, node: str, rows: int) -> None:
    document = tree.document(node)
    document["shape"][0] = rows
    tree.put_document(node, document)


def _drop_node(tree: Tree, node: str) -> None:
    tree.remove(node)
    for name in [n for n in tree.nodes if n == node or n.startswith(f"{node}/")]:
        del tree.nodes[name]


def _add_group(tree: Tree, node: str, attributes: Any = None) -> None:
    if _zarr_json(node) in tree.files:
        raise ValueError(f"{node} is there already")
    tree.nodes[node] = {"attributes": attributes} if attributes is not None else {}
    tree.files |= emit_group(node, attributes)


def _add_array(
    tree: Tree, node: str, dtype: str, data: Any, shape: Any = None, attributes: Any = None, layout: Any = None
) -> None:
    if _zarr_json(node) in tree.files:
        raise ValueError(f"{node} is there already")
    given = {"dtype": dtype, "data": data, "shape": shape, "attributes": attributes, "layout": layout}
    tree.nodes[node] = {name: value for name, value in given.items() if value is not None}
    tree.emit(node)


def _rename_node(tree: Tree, node: str, to: str) -> None:
    moved = {n: data for n, data in tree.files.items() if n.startswith(f"{node}/")}
    if not moved:
        raise ValueError(f"there is no node {node!r}")
    for name, data in moved.items():
        del tree.files[name]
        tree.files[to + name[len(node) :]] = data
    for name in [n for n in tree.nodes if n == node or n.startswith(f"{node}/")]:
        tree.nodes[to + name[len(node) :]] = tree.nodes.pop(name)


def _write_file(tree: Tree, path: str, text: str | None = None, base64_: str | None = None, **rest: str) -> None:
    encoded = base64_ if base64_ is not None else rest.pop("base64", None)
    if rest or (text is None) == (encoded is None):
        raise ValueError("write_file takes path and either text or base64")
    tree.files[path] = text.encode() if text is not None else base64.b64decode(str(encoded), validate=True)


def _replace_text(tree: Tree, path: str, old: str, new: str) -> None:
    content = tree.files[path]
    if content.count(old.encode()) != 1:
        raise ValueError(f"{old!r} stands {content.count(old.encode())} times in {path}")
    tree.files[path] = content.replace(old.encode(), new.encode())


def _cut_file(tree: Tree, path: str, size: int) -> None:
    if not 0 <= size < len(tree.files[path]):
        raise ValueError(f"{path} has {len(tree.files[path])} bytes")
    tree.files[path] = tree.files[path][:size]


def _flip_bits(tree: Tree, path: str, offset: int, mask: int = 1) -> None:
    data = bytearray(tree.files[path])
    data[offset] ^= mask
    tree.files[path] = bytes(data)


def _set_bytes(tree: Tree, path: str, offset: int, **rest: str) -> None:
    new = bytes.fromhex(rest.pop("hex"))
    if rest:
        raise ValueError("set_bytes takes path, offset and hex")
    data = tree.files[path]
    if offset + len(new) > len(data):
        raise ValueError(f"{path} has {len(data)} bytes")
    tree.files[path] = data[:offset] + new + data[offset + len(new) :]


def _delete_file(tree: Tree, path: str) -> None:
    del tree.files[path]


_DEFECTS: dict[str, Callable[..., None]] = {
    "set_attribute": _set_attribute,
    "drop_attribute": _drop_attribute,
    "set_in_attribute": _set_in_attribute,
    "drop_in_attribute": _drop_in_attribute,
    "set_metadata": _set_metadata,
    "drop_metadata": _drop_metadata,
    "set_array": _set_array,
    "relayout": _relayout,
    "extend": _extend,
    "truncate": _truncate,
    "resize": _resize,
    "drop_node": _drop_node,
    "add_group": _add_group,
    "add_array": _add_array,
    "rename_node": _rename_node,
    "write_file": _write_file,
    "replace_text": _replace_text,
    "cut_file": _cut_file,
    "flip_bits": _flip_bits,
    "set_bytes": _set_bytes,
    "delete_file": _delete_file,
}
