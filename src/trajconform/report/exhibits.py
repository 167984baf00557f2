"""What a page shows of a case beside its verdict: the input as a tree or as bytes, what is expected, states over time.

Everything is plain JSON of bounded size. Texts, tree nodes and lines of a reply that many cases share are kept once, in
a `Pool`, and referred to by number: a family of two hundred cases differs in little more than one of them.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from trajconform.model.arrays import Array, decode_array, describe_value, dtype_name
from trajconform.model.errors import TrajconformError
from trajconform.vectors.cases import (
    Case,
    expected_reply,
    golden_bytes,
    golden_declaration,
    golden_reply,
    golden_tree,
    input_files,
)

MOST_LINES = 300
"""Lines of a reply that are shown."""
MOST_ELEMENTS = 48
MOST_TEXT = 2000
MOST_BYTES = 4096
MOST_CALLS = 40
MOST_RUNS = 1000
_MOST_VALUES = 160
_MOST_NODES = 300
_FILE_DEFECTS = ("write_file", "replace_text", "cut_file", "flip_bits", "set_bytes", "delete_file")
_SHORT_NAMES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "complex64": "c64", "complex128": "c128",
}  # fmt: skip

Line = tuple[str, str, tuple[str, ...]]
"""A line of a reply: path, type, and the elements as texts."""


@dataclass
class Pool:
    """Things that are shown more than once, by number."""

    items: list[Any] = field(default_factory=list)
    _known: dict[Any, int] = field(default_factory=dict, repr=False)

    def put(self, item: Any) -> int:
        """The number of an item (plain JSON)."""
        key = json.dumps(item) if isinstance(item, list) else item
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.items)
            self.items.append(item)
        return number


@dataclass
class Pools:
    """``texts`` are strings, ``nodes`` rows of a tree, ``lines`` lines of a reply, ``states`` a block over time,
    ``files`` the bytes of golden otj files."""

    texts: Pool = field(default_factory=Pool)
    nodes: Pool = field(default_factory=Pool)
    lines: Pool = field(default_factory=Pool)
    states: Pool = field(default_factory=Pool)
    files: Pool = field(default_factory=Pool)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {name: pool.items for name, pool in vars(self).items()}


def exhibit(case: Case, pools: Pools) -> dict[str, Any]:
    """What is shown of a case, ``{}`` where it cannot be made. Keys are left out where there is nothing to show.

    ``about`` what the input is made from, ``defects``, ``tree`` or ``bytes``, ``script``, ``expect``, ``reply``,
    ``states`` and ``of`` (what the states are those of), ``written`` (the bytes that a writer has to leave).
    """
    try:
        return {key: value for key, value in _parts(case, pools) if value not in (None, [])}
    except TrajconformError as error:
        return {"about": pools.texts.put(clip(f"cannot be shown: {error}"))}


def _parts(case: Case, pools: Pools) -> Iterator[tuple[str, Any]]:
    text = pools.texts.put
    given = case.input
    if given.get("golden"):
        title = golden_declaration(case.root, case.format, given["golden"]).get("title", "")
        yield "about", text(f"golden {given['golden']}: {title}")
    elif given:
        yield "about", text("a store of its own")
    defects = list(given.get("defects") or ())
    yield "defects", [text(clip(_defect_text(defect))) for defect in defects]
    if given.get("packed"):
        how = given["packed"]
        yield "packed", text("packed" if how is True else clip(f"packed with {_json(how)}"))
    if case.read_frames is not None:
        yield "range", list(case.read_frames)
    if given and case.format == "mrec":
        yield "tree", _tree(case, pools)
    elif given:
        golden = golden_bytes(case.root, "otj", given["golden"])
        yield "bytes", _patched(golden, input_files(case)[""], pools)
    if case.script:
        yield "script", [text(clip(_call_text(call), 700)) for call in case.script[:MOST_CALLS]]
        if len(case.script) > MOST_CALLS:
            yield "script_more", len(case.script) - MOST_CALLS
    expect: Mapping[str, Any] = case.expect if isinstance(case.expect, Mapping) else {}
    yield "expect", text(clip(_expect_text(case)))
    reply = expected_reply(case) if case.role == "reader" or "frames" in expect else None
    if reply is not None:
        whole = case.expect == "accepted" and case.read_frames is None
        lines = (
            _golden_lines(case.root, case.format, given["golden"], _Reply(reply)) if whole else tuple(lines_of(reply))
        )
        yield "reply", [pools.lines.put(line) for line in lines[:MOST_LINES]]
        if len(lines) > MOST_LINES:
            yield "reply_more", len(lines) - MOST_LINES
    if case.format == "mrec":
        yield from _states(case, reply, pools)
    if "bytes" in expect:
        wanted = golden_bytes(case.root, "otj", expect["bytes"])
        yield "written", _patched(wanted, wanted, pools)
        if "free" in expect:
            yield "free", [list(pair) for pair in expect["free"]]


# -- texts ---------------------------------------------------------------------------------------------------------


def clip(text: str, most: int = MOST_TEXT) -> str:
    """A text of bounded length, which says how much is left out."""
    return text if len(text) <= most else f"{text[:most]} ... {len(text) - most:,} more characters"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _defect_text(defect: Mapping[str, Any]) -> str:
    [(name, arguments)] = defect.items()
    told = [f"{key} {value if isinstance(value, str) else _json(value)}" for key, value in (arguments or {}).items()]
    return f"{name.replace('_', ' ')}: {', '.join(told)}" if told else name.replace("_", " ")


def _call_text(call: Mapping[str, Any]) -> str:
    [op] = [name for name in call if name != "refused"]
    body = call[op]
    told = f" {_json(body)}" if body else ""
    return f"{op}{told}" + ("   has to be refused" if call.get("refused") else "")


def _expect_text(case: Case) -> str:
    expect = case.expect
    if expect == "refused":
        return "the reader refuses it"
    if expect == "informative":
        return "either: conforming implementations may differ here"
    if expect == "accepted":
        return "the reply below, bit for bit"
    if expect == "clean":
        return "no violation is reported"
    if not isinstance(expect, Mapping):
        return _json(expect)
    parts = []
    if "violations" in expect:
        parts.append(f"reported violations: {', '.join(map(str, expect['violations'])) or 'none'}")
    if "bytes" in expect:
        first = f", its first {expect['first_frames']} frames" if "first_frames" in expect else ""
        parts.append(f"just the bytes of golden {expect['bytes']}{first}")
    elif "first_frames" in expect:
        parts.append(f"the first {expect['first_frames']} frames")
    if "frames" in expect:
        parts.append("the frames below, bit for bit" if case.role == "reader" else "reads back as the frames below")
    if "may_follow" in expect:
        parts.append(f"frames {', '.join(map(str, expect['may_follow']))} may follow")
    parts += [f"layout: {_json(assertion)}" for assertion in expect.get("layout") or ()]
    if case.role in ("writer", "crash") and "violations" not in expect:
        parts.append("every call is answered as the script says" if not parts else "the checker finds nothing")
    return "; ".join(parts) or _json(expect)


# -- replies -------------------------------------------------------------------------------------------------------


def lines_of(reply: Any, path: str = "") -> Iterator[Line]:
    """A reply line by line, with paths as differences spell them."""
    if isinstance(reply, Mapping) and reply.keys() == {"dtype", "shape", "data"}:
        data, shape = reply["data"], reply["shape"]
        plain = isinstance(data, str) and isinstance(shape, list)
        yield path, *_array_texts(str(reply["dtype"]), _json(shape), data if plain else _json(data), plain)
    elif path == "declaration" or (isinstance(reply, Mapping) and reply.get("dtype") == "json" and "value" in reply):
        value = reply if path == "declaration" else reply["value"]
        yield path, "json", (clip(_json(value)),)
    elif isinstance(reply, Mapping) and reply:
        for key, value in reply.items():
            yield from lines_of(value, f"{path}.{key}" if path else str(key))
    elif isinstance(reply, list) and path in ("frames", "violations"):
        yield f"{path}.length", "", (str(len(reply)),)
        for number, value in enumerate(reply):
            yield from lines_of(value, f"{path}[{number}]")
    else:
        yield path, "", (clip(reply if isinstance(reply, str) else _json(reply), 400),)


@dataclass(frozen=True)
class _Reply:
    """A reply that does not count for what it is cached under."""

    reply: Any = field(compare=False)


@functools.lru_cache(maxsize=128)
def _golden_lines(root: Path, format_name: str, golden: str, reply: _Reply) -> tuple[Line, ...]:
    return tuple(lines_of(reply.reply))


@functools.lru_cache(maxsize=4096)
def _array_texts(dtype: str, shape: str, data: str, plain: bool) -> tuple[str, tuple[str, ...]]:
    """Type and elements of an array in the reply form, which cases share by the hundred."""
    try:
        wire = {"dtype": dtype, "shape": json.loads(shape), "data": data if plain else json.loads(data)}
        array = decode_array(wire)
    except (ValueError, TypeError, KeyError) as error:
        return "malformed", (clip(str(error), 200),)
    return f"{dtype_name(array)}{list(array.shape) if array.shape else ''}", elements(array)


def elements(array: Array, most: int = MOST_ELEMENTS) -> tuple[str, ...]:
    """The first elements of an array as texts, and how many more there are."""
    name = dtype_name(array)
    flat = array.ravel()
    shown = [_element(value, name) for value in flat[:most]]
    return (*shown, f"... {flat.size - most:,} more") if flat.size > most else tuple(shown)


def _element(value: Any, name: str) -> str:
    if name == "string":
        return clip(_json(value), 200)
    if name in ("f64", "f32", "c64", "c128"):
        text = describe_value(value, name)
        # The bits of an ordinary number follow from its shortest decimal; those of a NaN do not.
        return text if "nan" in text else " ".join(part for part in text.split(" ") if not part.startswith("(0x"))
    if name == "bool":
        return "true" if value else "false"
    return str(value)


def aligned(expected: Iterable[Line], actual: Iterable[Line]) -> Iterator[list[Any]]:
    """Two replies beside each other: path, type and elements of both sides.

    A side that lacks the line has None for its type. Elements are cut into pieces; every second one differs.
    """
    left, right = ({path: (kind, values) for path, kind, values in lines} for lines in (expected, actual))
    for path in [*left, *(path for path in right if path not in left)]:
        kinds: list[str | None] = []
        sides: list[tuple[str, ...]] = []
        for side in (left, right):
            kind, values = side.get(path, (None, ()))
            kinds.append(kind)
            sides.append(values)
        pieces = [_pieces(values, other) for values, other in (sides, sides[::-1])]
        yield [path, kinds[0], pieces[0], kinds[1], pieces[1]]


def _pieces(values: Sequence[str], other: Sequence[str]) -> list[str]:
    """Texts that are the same and that differ from the other side, in turn, the first one the same."""
    pieces = [""]
    for number, value in enumerate(values):
        differs = number >= len(other) or other[number] != value
        if differs == (len(pieces) % 2 == 1):
            pieces.append("")
        pieces[-1] += value + (", " if number + 1 < len(values) else "")
    return pieces


# -- states --------------------------------------------------------------------------------------------------------


def _states(case: Case, reply: Mapping[str, Any] | None, pools: Pools) -> Iterator[tuple[str, Any]]:
    golden = case.input.get("golden")
    of = "expected"
    if reply is None and golden:
        reply = golden_reply(case.root, "mrec", golden)
        of = f"golden {golden}" + (", before the change" if case.input.get("defects") else "")
    if reply is None:
        return
    nodes = golden_declaration(case.root, "mrec", golden)["nodes"] if golden else case.input.get("nodes") or {}
    first = case.read_frames[0] if case.read_frames is not None else 0
    found = [pools.states.put(state) for state in states_of(reply, first, nodes)]
    if found:
        yield "states", found
        yield "of", pools.texts.put(of)


def states_of(reply: Mapping[str, Any], first: int = 0, nodes: Mapping[str, Any] | None = None) -> list[Any]:
    """The state of every block over the frames of a reply: name, first ordinal, runs ``[length, rows or None]`` (None:
    absent, 0: empty), and the ordinals at which the declared nodes have an update, where they say so."""
    frames = reply.get("frames")
    if not isinstance(frames, list):
        return []
    blocks = [frame.get("blocks") if isinstance(frame, Mapping) else None for frame in frames]
    names = dict.fromkeys(name for block in blocks if isinstance(block, Mapping) for name in block)
    out: list[Any] = []
    for name in list(names)[:40]:
        runs: list[list[Any]] = []
        for block in blocks:
            entry = block.get(name) if isinstance(block, Mapping) else None
            rows = _rows(entry.get("rows")) if isinstance(entry, Mapping) else None
            if runs and runs[-1][1] == rows:
                runs[-1][0] += 1
            elif len(runs) < MOST_RUNS:
                runs.append([1, rows])
            else:
                break
        out.append([clip(name, 60), first, runs, _updates(name, nodes or {}, first, len(frames))])
    return out


def _rows(value: Any) -> int | str:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return "?"
    return int(value) if isinstance(value, int) or (value.isdecimal() and len(value) < 16) else clip(value, 20)


def _updates(name: str, nodes: Mapping[str, Any], first: int, frames: int) -> list[int] | None:
    """Ordinals of a block's updates by the declaration of a golden; None where it does not tell."""
    index = (nodes.get(f"trajectory/{name}/step_index") or {}).get("data")
    attributes = (nodes.get(f"trajectory/{name}") or {}).get("attributes") or {}
    if isinstance(index, list) and all(isinstance(i, int) for i in index):
        found = index
    elif attributes.get("dense_updates") is True:
        found = list(range(first + frames))
    elif "uniform_rows" in attributes:
        found = [0]
    else:
        return None
    return [i for i in found if first <= i < first + frames][:MOST_RUNS]


# -- inputs --------------------------------------------------------------------------------------------------------


def _patched(golden: bytes, data: bytes, pools: Pools) -> dict[str, Any]:
    """Bytes as a golden and what differs from it: ``[offset, hexadecimal digits]``, and the length."""
    out: dict[str, Any] = {"golden": pools.files.put(golden[:MOST_BYTES].hex()), "size": len(data)}
    out["was"] = len(golden)
    shown = data[:MOST_BYTES]
    size = min(len(shown), len(golden))
    same = np.zeros(len(shown), dtype=bool)
    same[:size] = np.frombuffer(golden, "u1", size) == np.frombuffer(shown, "u1", size)
    edges = np.flatnonzero(np.diff(np.concatenate([[True], same, [True]]).astype(np.int8))).tolist()
    patches = [[start, shown[start:stop].hex()] for start, stop in zip(edges[::2], edges[1::2], strict=True)]
    if patches:
        out["patches"] = patches
    return out


def _tree(case: Case, pools: Pools) -> list[int]:
    """The nodes of a store, each row ``[path, kind, parts, mark]``; mark is 0 as in the golden, 1 changed, 2 added, 3
    removed."""
    from trajconform.vectors.defects import defective_tree
    from trajconform.vectors.mrec_golden import emit_store

    golden = case.input.get("golden")
    nodes = golden_declaration(case.root, "mrec", golden)["nodes"] if golden else case.input.get("nodes") or {}
    defects = case.input.get("defects") or ()
    before = golden_tree(case.root, golden) if golden else emit_store(nodes)
    after = defective_tree(before, nodes, defects)
    touched = {str(path) for d in defects for name, a in d.items() if name in _FILE_DEFECTS for path in (a["path"],)}
    old, new = _by_node(before), _by_node(after.files)
    rows: list[Any] = []
    for path in sorted({*old, *new}, key=lambda path: path.split("/")):
        if path not in new:
            rows.append([path, "removed", [], 3])
            continue
        mark = 2 if path not in old else int(old[path] != new[path])
        kind, parts = _node_row(path, new[path], after.nodes.get(path) or {})
        for name in sorted(touched):
            if name in before or name in after.files:
                holder = _holder(name, new)
                if holder == path:
                    parts.append(
                        [f"file {name[len(path) :].lstrip('/')}", _sizes(before.get(name), after.files.get(name))]
                    )
                    mark = mark or 1
        rows.append([path, kind, parts, mark])
    return [pools.nodes.put(row) for row in rows[:_MOST_NODES]]


def _by_node(files: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """Files by the node that they belong to, names relative to it."""
    places = {name.removesuffix("zarr.json").rstrip("/") for name in files if f"/{name}".endswith("/zarr.json")}
    out: dict[str, dict[str, bytes]] = {place: {} for place in places}
    for name, data in files.items():
        holder = _holder(name, places)
        out.setdefault(holder, {})[name[len(holder) :].lstrip("/")] = data
    return out


def _holder(name: str, places: Iterable[str]) -> str:
    """The innermost node whose folder holds a file."""
    known = places if isinstance(places, (set, dict)) else set(places)
    parts = name.split("/")[:-1]
    for depth in range(len(parts), -1, -1):
        if "/".join(parts[:depth]) in known:
            return "/".join(parts[:depth])
    return ""


def _sizes(before: bytes | None, after: bytes | None) -> str:
    if after is None:
        return "deleted"
    if before is None:
        return f"added, {len(after)} bytes"
    return f"{len(after)} bytes, changed" if len(after) == len(before) else f"{len(after)} bytes, was {len(before)}"


def _node_row(path: str, files: Mapping[str, bytes], declared: Mapping[str, Any]) -> tuple[str, list[list[str]]]:
    raw = files.get("zarr.json")
    if raw is None:
        return "no zarr.json", [[name, f"{len(data)} bytes"] for name, data in list(files.items())[:8]]
    try:
        document = json.loads(raw)
    except ValueError:
        return "not JSON", [["zarr.json", clip(raw.decode("utf-8", "replace"), 300)]]
    if not isinstance(document, dict):
        return "no object", [["zarr.json", clip(_json(document), 300)]]
    attributes = document.get("attributes")
    parts: list[list[str]] = []
    if isinstance(attributes, dict):
        parts += [[name, clip(_json(value), 1200)] for name, value in attributes.items()]
    elif "attributes" in document:
        parts.append(["attributes", clip(_json(attributes), 300)])
    if document.get("node_type") != "array":
        return str(document.get("node_type", "no node type")), parts
    dtype = document.get("data_type")
    name = _SHORT_NAMES.get(dtype, dtype) if isinstance(dtype, str) else _json(dtype)
    kind = clip(f"{name}{_json(document.get('shape')).replace(' ', '')}", 120)
    if "data" in declared:
        parts.insert(0, ["=", _values(declared["data"])])
    parts.append(["stored", clip(_storage(document), 300)])
    return kind, parts


def _values(data: Any) -> str:
    text = json.dumps(_finite(data), ensure_ascii=False)
    return text if len(text) <= _MOST_VALUES else f"{text[:_MOST_VALUES]} ..."


def _finite(data: Any) -> Any:
    if isinstance(data, list):
        return [_finite(item) for item in data[:200]]
    return str(data) if isinstance(data, float) and not math.isfinite(data) else data


def _storage(document: Mapping[str, Any]) -> str:
    try:
        grid = document["chunk_grid"]["configuration"]["chunk_shape"]
        return f"chunks {_json(grid).replace(' ', '')}, {_codecs(document['codecs'])}"
    except (KeyError, TypeError, AttributeError):
        return f"chunk_grid {_json(document.get('chunk_grid'))}, codecs {_json(document.get('codecs'))}"


def _codecs(codecs: Any) -> str:
    told = []
    for codec in codecs:
        configuration = codec.get("configuration") or {}
        inner = f" of {_json(configuration['chunk_shape']).replace(' ', '')}" if "chunk_shape" in configuration else ""
        below = f" ({_codecs(configuration['codecs'])})" if "codecs" in configuration else ""
        told.append(f"{codec['name']}{inner}{below}")
    return " + ".join(told)
