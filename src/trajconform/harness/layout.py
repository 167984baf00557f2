"""Assertions about the layout of a written mrec store: what stands there, what does not, what an array holds.

An assertion names a node relative to the record root and one thing about it::

    {node: trajectory/step, absent: true}                      no such node
    {node: trajectory, attribute: nstep, equals: 3}            an attribute, compared as JSON
    {node: trajectory/atoms, attribute: uniform_rows, absent: true}
    {node: trajectory/atoms/step_index, values: [0, 5]}        the rows of an array, exactly, in its dtype
    {node: trajectory/atoms/x, rows: 8}                        its length, without a tail
    {node: trajectory/atoms/x, dtype: f64}
    {node: trajectory, files_at_most: 40}                      files at and below the node

An array may be stored longer than its asserted values, as long as what follows is a tail: for a ``step_index`` entries
that are not below ``nstep``, for anything else whatever no update owns.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trajconform.model.arrays import Array, array_from_plain, encode_array
from trajconform.model.errors import Refused, TrajconformError
from trajconform.model.reply import Difference, compare, same_document

_DTYPES = {
    "float64": "f64",
    "float32": "f32",
    **{f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "bool",
    "string": "string",
    "complex64": "c64",
    "complex128": "c128",
}


def layout_differences(store: Path, assertions: Sequence[Mapping[str, Any]]) -> Iterator[Difference]:
    """The assertions that do not hold. `TrajconformError` for one that says nothing."""
    for assertion in assertions:
        node = str(assertion["node"]).strip("/")
        metadata = _metadata(store, node)
        attribute = assertion.get("attribute")
        place = node if attribute is None else f"{node} attribute {attribute}"
        if assertion.get("absent"):
            there = metadata is not None if attribute is None else attribute in _attributes(metadata)
            if there:
                found = "a node" if attribute is None else json.dumps(_attributes(metadata)[attribute])
                yield Difference(place, "absent", found)
        elif metadata is None:
            yield Difference(node, "a node", "no such node")
        elif attribute is not None:
            yield from _attribute(place, attribute, assertion["equals"], metadata)
        elif "values" in assertion:
            yield from _values(store, node, assertion["values"], metadata)
        elif "rows" in assertion:
            shape = metadata.get("shape")
            if not isinstance(shape, list) or shape[:1] != [assertion["rows"]]:
                yield Difference(
                    f"{node} rows", str(assertion["rows"]), "no array" if shape is None else f"shape {shape}"
                )
        elif "dtype" in assertion:
            found = _dtype(metadata)
            if found != assertion["dtype"]:
                yield Difference(f"{node} dtype", str(assertion["dtype"]), found)
        elif "files_at_most" in assertion:
            most, count = int(assertion["files_at_most"]), sum(path.is_file() for path in (store / node).rglob("*"))
            if count > most:
                yield Difference(node, f"at most {most} files", f"{count} files")
        else:
            raise TrajconformError(f"the layout assertion about {node!r} says nothing: {dict(assertion)}")


def _metadata(store: Path, node: str) -> dict[str, Any] | None:
    try:
        document = json.loads((store / node / "zarr.json").read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return document if isinstance(document, dict) else {}


def _attributes(metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    attributes = (metadata or {}).get("attributes") or {}
    return attributes if isinstance(attributes, Mapping) else {}


def _attribute(place: str, name: str, expected: Any, metadata: Mapping[str, Any]) -> Iterator[Difference]:
    attributes = _attributes(metadata)
    if name not in attributes:
        yield Difference(place, json.dumps(expected), "absent")
    elif not same_document(expected, attributes[name]):
        yield Difference(place, json.dumps(expected), json.dumps(attributes[name]))


def _dtype(metadata: Mapping[str, Any]) -> str:
    name = metadata.get("data_type")
    return _DTYPES.get(name, name) if isinstance(name, str) else "no array" if name is None else json.dumps(name)


def _values(store: Path, node: str, plain: Any, metadata: Mapping[str, Any]) -> Iterator[Difference]:
    name = _dtype(metadata)
    if name not in _DTYPES.values():
        yield Difference(node, "an array", name)
        return
    try:
        expected = array_from_plain(name, plain)
    except ValueError as error:
        yield Difference(f"{node} dtype", f"one that holds {json.dumps(plain)}", name, str(error))
        return
    try:
        stored = _stored(store, node)
    except Refused as refused:
        yield Difference(node, "a readable array", str(refused.violation))
        return
    rows = len(expected)
    if stored.ndim == expected.ndim and len(stored) > rows and _is_tail(store, node, stored[rows:]):
        stored = stored[:rows]
    yield from compare({node: encode_array(expected)}, {node: encode_array(stored)})


def _stored(store: Path, node: str) -> Array:
    files = importlib.import_module("trajconform.mrec.store").Store(store)
    try:
        array = importlib.import_module("trajconform.mrec.node").ArrayNode(files, node)
        values: Array = array.rows(0, array.shape[0])
    finally:
        files.close()
    return values


def _is_tail(store: Path, node: str, beyond: Array) -> bool:
    """Whether rows that follow the asserted ones are no part of the trajectory."""
    if not node.endswith("/step_index"):
        return True
    nstep = _attributes(_metadata(store, "trajectory")).get("nstep")
    return isinstance(nstep, int) and bool(np.all(beyond >= nstep))
