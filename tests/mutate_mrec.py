"""Seeded, structure-aware mutations of valid mrec stores against the bundled reader and checker.

    python tests/mutate_mrec.py --count 100000 --jobs 2 --seed 1

A mutation takes a golden store and changes one to three things about it: a member of a node's metadata, values of an
array (emitted anew, checksums and all), entries of a shard index, raw bytes of a file, or the tree of files itself. It
is then read whole and checked. What must never happen:

- an exception other than a refusal, or a process that ends,
- more than 5 seconds, or more than 512 MiB,
- a different answer from reader and checker about whether the store is refused.

Exit status 0 when none of that happened, 1 otherwise; every failure is printed with the number that repeats it
(``--only NUMBER``). The same seed and number give the same mutation everywhere.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import multiprocessing
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trajconform import kit
from trajconform.model.errors import Refused, TrajconformError
from trajconform.mrec.book import REFUSED_ANYWAY, load_rules
from trajconform.mrec.checker import check_mrec
from trajconform.mrec.reader import open_mrec
from trajconform.vectors.cases import golden_declaration, pack
from trajconform.vectors.defects import Tree
from trajconform.vectors.mrec_emit import crc32c

SECONDS = 5
MEBIBYTES = 512
FRAMES = 64
"""Of a longer trajectory so many frames are read from its start, from its end and around every update."""

INTEGERS = [
    -(2**63) - 1,
    -(2**63),
    -1,
    0,
    1,
    2,
    3,
    7,
    255,
    256,
    2**31,
    2**32,
    2**53,
    2**53 + 1,
    2**60,
    2**62,
    2**63 - 1,
]
INTEGERS += [2**63, 2**64 - 2, 2**64 - 1, 2**64, 2**100]
SCALARS: list[Any] = [
    None,
    True,
    False,
    "",
    "x",
    "NaN",
    "0x7ff8000000000001",
    0.0,
    -0.0,
    1.5,
    4.0,
    1e308,
    5e-324,
    [],
    {},
]
WORDS = [
    "float64", "float32", "float16", "int8", "int16", "int32", "int64", "uint8", "uint64", "bool", "string", "complex64",
    "complex128", "f64", "f32", "i8", "i64", "u64", "c64", "json", "f64x3", "f64x9", "u64x3", "bool3", "bytes", "gzip",
    "zstd", "crc32c", "vlen-utf8", "sharding_indexed", "transpose", "numcodecs.shuffle", "blosc", "start", "end",
    "little", "big", "default", "v2", "/", ".", "group", "array", "atoms", "bonds", "/system/atoms", "/trajectory/atoms",
    "../../etc", "a/b", "a\x00b", "\ud800", "offset", "step_index", "_validity", "box", "meta", "x", "id", "atomi",
]  # fmt: skip
NAMES = [
    "nstep", "step_progression", "time_progression", "sequence_schema", "uniform_rows", "dense_updates", "meta_dtype",
    "structural_shape", "cell_defined", "vectors", "origin", "boundary", "targets", "aligned_with", "precision",
    "nullable", "fill", "molrec_version", "count", "start", "stride", "must_understand", "consolidated_metadata",
]  # fmt: skip


@dataclass
class Mutant:
    """A store on its way: the tree of its files, what was done to it, and links and folders to make beside them."""

    tree: Tree
    log: list[str]
    links: dict[str, str]
    folders: list[str]
    packed: Any = False
    packed_bytes: Callable[[bytes], bytes] | None = None


def hostile(random: random.Random) -> Any:
    """A value for a place in metadata."""
    kind = random.randrange(6)
    if kind == 0:
        return random.choice(INTEGERS)
    if kind == 1:
        return random.choice(WORDS)
    if kind == 2:
        return [random.choice(INTEGERS) for _ in range(random.randrange(4))]
    if kind == 3:
        return {random.choice(NAMES + WORDS): random.choice(INTEGERS + SCALARS)}
    return random.choice(SCALARS)


def places(value: Any, holder: Any = None, key: Any = None) -> Iterator[tuple[Any, Any]]:
    """Every place in a document, as its holder and key."""
    if holder is not None:
        yield holder, key
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], value, name)
    elif isinstance(value, list):
        for at in range(len(value)):
            yield from places(value[at], value, at)


def nodes(mutant: Mutant) -> list[str]:
    return sorted(name[: -len("zarr.json")].rstrip("/") for name in mutant.tree.files if name.endswith("zarr.json"))


def document(mutant: Mutant, node: str) -> dict[str, Any] | None:
    try:
        found = json.loads(mutant.tree.files[f"{node}/zarr.json" if node else "zarr.json"])
    except (ValueError, KeyError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def put(mutant: Mutant, node: str, found: dict[str, Any]) -> None:
    mutant.tree.files[f"{node}/zarr.json" if node else "zarr.json"] = json.dumps(found).encode()


def chunks(mutant: Mutant) -> list[str]:
    return sorted(name for name in mutant.tree.files if not name.endswith("zarr.json"))


def mutate_metadata(mutant: Mutant, random: random.Random) -> None:
    every = nodes(mutant)
    below = [n for n in every if n.startswith("trajectory")]
    node = random.choice((below if random.random() < 0.8 else every) or every or [""])
    found = document(mutant, node)
    if not found:
        return
    holder, key = random.choice(list(places(found)))
    old = holder[key]
    kind = random.randrange(7)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(old, (int, float)) and not isinstance(old, bool):
        holder[key] = random.choice([old + 1, old - 1, -old, float(old), str(old), old * 2, old + 0.5])
    elif kind == 2 and isinstance(old, str):
        holder[key] = random.choice(WORDS)
    elif kind == 3 and isinstance(old, list):
        holder[key] = random.choice([old[:-1], [*old, *old[:1]], old[::-1], [*old, random.choice(INTEGERS)]])
    elif kind == 4 and isinstance(holder, dict):
        holder[random.choice(NAMES + WORDS)] = copy.deepcopy(random.choice([old, hostile(random)]))
    elif kind == 5 and isinstance(holder, dict) and isinstance(key, str):
        holder[random.choice(NAMES + WORDS)] = holder.pop(key)
    else:
        holder[key] = hostile(random)
    mutant.log.append(f"metadata of {node!r}: {key!r} kind {kind}")
    put(mutant, node, found)


def mutate_text(mutant: Mutant, random: random.Random) -> None:
    node = random.choice(nodes(mutant) or [""])
    name = f"{node}/zarr.json" if node else "zarr.json"
    if name not in mutant.tree.files:
        return
    text = mutant.tree.files[name]
    kind = random.randrange(7)
    at = random.randrange(len(text) + 1)
    if kind == 0:
        text = text.replace(b'"zarr_format"', b'"zarr_format": 3, "zarr_format"', 1)
    elif kind == 1:
        depth = random.choice([100, 300, 5000, 100000])
        deep = b"[" * depth + b"]" * depth if random.random() < 0.7 else b"[" * depth
        text = text.replace(b'"node_type"', b'"deep": ' + deep + b', "node_type"', 1)
    elif kind == 2:
        token = random.choice([b"NaN", b"Infinity", b"1e999", b"-0", b"9" * 5000, b'"\\ud800"', b"\xff", b"tru"])
        text = text.replace(b"3", token, 1)
    elif kind == 3:
        text = text[:at]
    elif kind == 4:
        text = text[:at] + bytes([random.randrange(256)]) + text[at:]
    elif kind == 5:
        text = b"\xef\xbb\xbf" + text if random.random() < 0.5 else text + text
    else:
        text = b""
    mutant.log.append(f"text of {name}: kind {kind}")
    mutant.tree.files[name] = text


def mutate_values(mutant: Mutant, random: random.Random) -> None:
    """Values of an array, emitted anew, so that checksums and metadata are those of a healthy array."""
    arrays = [n for n, s in mutant.tree.nodes.items() if "dtype" in s and f"{n}/zarr.json" in mutant.tree.files]
    if not arrays:
        return
    index = [n for n in arrays if n.endswith(("step_index", "offset"))]
    node = random.choice(index if index and random.random() < 0.5 else arrays)
    spec = copy.deepcopy(mutant.tree.nodes[node])
    data = spec["data"]
    kind = random.randrange(6)
    if not isinstance(data, list) or not data:
        return
    at = random.randrange(len(data))
    if kind == 0:
        spec["data"] = data[: random.randrange(len(data))] or data[:1]
    elif kind == 1:
        spec["data"] = [*data, *data[-random.randrange(1, 4) :]]
    elif kind == 2:
        other = random.randrange(len(data))
        data[at], data[other] = data[other], data[at]
    elif kind == 3:
        data[at] = data[random.randrange(len(data))]
    else:
        data[at] = _other(spec["dtype"], data[at], random)
    spec.pop("shape", None)
    layout = dict(spec.get("layout") or {})
    if random.random() < 0.3:
        layout = {"chunk": random.choice([1, 2, 5]), "index_location": random.choice(["start", "end"])}
        layout["codecs"] = ["vlen-utf8" if spec["dtype"] == "string" else random.choice(["bytes", "bytes:big"])]
        layout["codecs"] += random.choice([[], ["gzip"], ["zstd"], ["crc32c"], ["zstd", "crc32c"], ["shuffle", "gzip"]])
        if random.random() < 0.3:
            layout["shard"] = None
    spec["layout"] = layout
    old = dict(mutant.tree.nodes)
    before = dict(mutant.tree.files)
    try:
        mutant.tree.nodes[node] = spec
        mutant.tree.emit(node)
        mutant.log.append(f"values of {node}: kind {kind}")
    except (TrajconformError, ValueError, OverflowError, TypeError):
        mutant.tree.nodes, mutant.tree.files = old, before


def _other(dtype: str, old: Any, random: random.Random) -> Any:
    if isinstance(old, list):
        return [_other(dtype, item, random) for item in old]
    if dtype == "bool":
        return not old
    if dtype == "string":
        return random.choice(
            ["", "x", "\x00", "é" * 3, "[1e999]", '{"a":1,"a":2}', "NaN", "[" * 2000, '"\\ud800"', "null"]
        )
    if dtype in ("f64", "c64", "c128"):
        return random.choice([0.0, -0.0, math.inf, math.nan, 1e308, 5e-324, -1.5])
    bits = int(dtype[1:])
    low, high = (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return random.choice([v for v in INTEGERS if low <= v <= high] + [min(high, int(old) + 1), max(low, int(old) - 1)])


def mutate_shard(mutant: Mutant, random: random.Random) -> None:
    """Entries of a shard index at the start of the file, the checksum made to fit."""
    files = [n for n in chunks(mutant) if "/c/" in n]
    if not files:
        return
    name = random.choice(files)
    data = bytearray(mutant.tree.files[name])
    found = document(mutant, name.split("/c/")[0])
    try:
        codec = found["codecs"][0]["configuration"] if found else {}
        outer = found["chunk_grid"]["configuration"]["chunk_shape"] if found else []
        count = int(math.prod(n // c for n, c in zip(outer, codec["chunk_shape"], strict=True)))
    except (KeyError, TypeError, ValueError, ZeroDivisionError, IndexError, OverflowError):
        return
    size = 16 * count
    if not 0 < size <= len(data) - 4:
        return
    base = 0 if codec.get("index_location") == "start" else len(data) - size - 4
    at = base + 8 * random.randrange(2 * count)
    (old,) = struct.unpack_from("<Q", data, at)
    near = [old + 1, old - 1, old + 8, 0, 1, len(data), len(data) - 1, 2**63, 2**64 - 1, 2**64 - 2]
    struct.pack_into("<Q", data, at, random.choice(near) % 2**64)
    if random.random() < 0.9:
        struct.pack_into("<I", data, base + size, crc32c(bytes(data[base : base + size])))
    mutant.tree.files[name] = bytes(data)
    mutant.log.append(f"shard index of {name} at {at}")


def mutate_bytes(mutant: Mutant, random: random.Random) -> None:
    files = chunks(mutant)
    if not files:
        return
    name = random.choice(files)
    data = bytearray(mutant.tree.files[name])
    kind = random.randrange(5)
    if kind == 0 and data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif kind == 1:
        del data[random.randrange(len(data) + 1) :]
    elif kind == 2:
        data += bytes(random.randrange(1, 64))
    elif kind == 3 and data:
        at = random.randrange(len(data))
        data[at : at + random.randrange(32)] = bytes(random.randrange(256) for _ in range(random.randrange(32)))
    else:
        data = bytearray()
    mutant.tree.files[name] = bytes(data)
    mutant.log.append(f"bytes of {name}: kind {kind}")


def mutate_tree(mutant: Mutant, random: random.Random) -> None:
    tree = mutant.tree
    kind = random.randrange(8)
    names = sorted(tree.files)
    if not names:
        return
    name, other = random.choice(names), random.choice(names)
    node = random.choice([n for n in nodes(mutant) if n] or [""])
    if kind == 0:
        del tree.files[name]
    elif kind == 1 and node:
        tree.remove(node)
        tree.nodes = {n: s for n, s in tree.nodes.items() if n != node and not n.startswith(f"{node}/")}
    elif kind == 2:
        tree.files[name], tree.files[other] = tree.files[other], tree.files[name]
    elif kind == 3:
        tree.files[name] = tree.files[other]
    elif kind == 4:
        del tree.files[name]
        mutant.folders.append(name)
    elif kind == 5:
        target = random.choice(
            ["/etc/passwd", "../../../outside", "/dev/zero", name, f"../{Path(other).name}", "nowhere"]
        )
        del tree.files[name]
        mutant.links[name] = target
    elif kind == 6 and node:
        parent = node.rpartition("/")[0]
        new = f"{parent}/{random.choice(['extra', 'box', 'meta', 'step', 'atoms', '_validity', 'zz'])}".strip("/")
        for path in [p for p in names if p.startswith(f"{node}/")]:
            tree.files[new + path[len(node) :]] = tree.files[path]
    elif kind == 7:
        bomb(mutant, random)
    mutant.log.append(f"tree: kind {kind} {name} {other} {node}")


def bomb(mutant: Mutant, random: random.Random) -> None:
    """An array whose chunk unpacks to far more than is stored, with metadata that says so or does not."""
    arrays = [n for n in nodes(mutant) if (document(mutant, n) or {}).get("node_type") == "array"]
    if not arrays:
        return
    node = random.choice(arrays)
    found = document(mutant, node)
    rank = len(found["shape"]) if found and isinstance(found.get("shape"), list) else 0
    if found is None or rank < 1:
        return
    rows = random.choice([2**10, 2**20, 2**26, 2**30, 2**40, 2**60])
    extents = [rows, *[1] * (rank - 1)]
    name = random.choice(["gzip", "zstd"])
    found["codecs"] = [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": name, "configuration": {"level": 1}},
    ]
    found["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": extents}}
    if random.random() < 0.7:
        found["shape"] = [rows, *found["shape"][1:]]
    data = bytes(2**25)
    if name == "gzip":
        deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
        packed = deflate.compress(data) + deflate.flush()
    else:
        from numcodecs.zstd import Zstd

        packed = bytes(Zstd(1).encode(data))
    for path in [p for p in mutant.tree.files if p.startswith(f"{node}/c")]:
        del mutant.tree.files[path]
    mutant.tree.files[f"{node}/" + "/".join(["c", *["0"] * rank])] = packed
    put(mutant, node, found)


def mutate_claims(mutant: Mutant, random: random.Random) -> None:
    """Shapes and counts that only metadata claims: huge arrays with few chunks, huge nstep, huge uniform_rows."""
    arrays = [
        n
        for n in nodes(mutant)
        if n.startswith("trajectory/") and (document(mutant, n) or {}).get("node_type") == "array"
    ]
    huge = random.choice([2**20, 2**31, 2**40, 2**53, 2**60, 2**63 - 1])
    for node in arrays if random.random() < 0.5 else arrays[: 1 + random.randrange(len(arrays) or 1)]:
        found = document(mutant, node)
        if found and isinstance(found.get("shape"), list) and found["shape"]:
            found["shape"][0] = huge
            put(mutant, node, found)
    if random.random() < 0.5:
        found = document(mutant, "trajectory")
        if found and isinstance(found.get("attributes"), dict) and "nstep" in found["attributes"]:
            found["attributes"]["nstep"] = random.choice([huge, 2**20, 2**40])
            put(mutant, "trajectory", found)
    if random.random() < 0.5:
        for node in nodes(mutant):
            found = document(mutant, node)
            if found and isinstance(found.get("attributes"), dict) and "uniform_rows" in found["attributes"]:
                found["attributes"]["uniform_rows"] = random.choice([1, 2, huge, huge // 2])
                put(mutant, node, found)
    mutant.log.append(f"claims of {huge}")


def mutate_declaration(mutant: Mutant, random: random.Random) -> None:
    """A member of the declaration that is well formed by itself, or nearly: alignment, targets, masks, precision, fills."""
    found = document(mutant, "trajectory")
    try:
        schema = found["attributes"]["sequence_schema"] if found else {}
        blocks, meta = schema["blocks"], schema["meta"]
        name = random.choice(sorted(blocks))
        block = blocks[name]
        column = random.choice(sorted(block["columns"]))
        entry = block["columns"][column]
        kind = random.randrange(9)
        if kind == 0:
            block["aligned_with"] = random.choice([*sorted(blocks), name, "ghosts"])
        elif kind == 1:
            targets = [
                *sorted(blocks),
                "/system/atoms",
                "/system/sites",
                "/frame/x",
                "/trajectory/atoms",
                "ghosts",
                "/",
                "",
            ]
            block["targets"] = {column: random.choice(targets)}
        elif kind == 2:
            entry["nullable"] = random.choice([True, True, False, "yes"])
        elif kind == 3:
            entry["precision"] = random.choice([0.5, 1, 2.0**-1000, 2.0**-1001, 0, -1, 1e308, "x"])
        elif kind == 4:
            block["structural_shape"] = random.choice([[1], [2], [3], [2, 3], [0], [], [2.0], [2**40, 2**40]])
        elif kind == 5:
            entry["trailing"] = random.choice([[], [1], [3], [0], [2**40], [-1], [2**62, 4]])
        elif kind == 6:
            entry["dtype"] = random.choice(WORDS)
        elif kind == 7:
            blocks[random.choice(["atoms", "extra", "step", "box", "a/b", "..", "", "\x00"])] = copy.deepcopy(block)
        elif meta:
            meta[random.choice(sorted(meta))]["fill"] = hostile(random)
    except (KeyError, TypeError, IndexError, AttributeError):
        return
    mutant.log.append(f"declaration of {name}/{column}: kind {kind}")
    if found:
        put(mutant, "trajectory", found)


def mutate_packed(mutant: Mutant, random: random.Random) -> None:
    """The store packed, well or badly, and bytes of the zip file changed."""
    kind = random.randrange(6)
    mutant.packed = [True, {"deflate": True}, {"folders": True}, {"prefix": random.choice(["/", "../", "a/", "./"])},
                     {"extra": {random.choice(["../x", "/x", "trajectory/zarr.json", "x\\y"]): "{}"}}, True][kind]  # fmt: skip
    if kind == 5:
        offsets = [random.random() for _ in range(random.randrange(1, 4))]
        bits = [1 << random.randrange(8) for _ in offsets]
        late = random.random() < 0.5

        def change(data: bytes) -> bytes:
            out = bytearray(data)
            for offset, bit in zip(offsets, bits, strict=True):
                span = min(len(out), 4096) if late else len(out)
                out[len(out) - span + int(offset * span)] ^= bit
            return bytes(out)

        mutant.packed_bytes = change
    mutant.log.append(f"packed: kind {kind}")


OPERATIONS: list[tuple[Callable[[Mutant, random.Random], None], int]] = [
    (mutate_metadata, 30), (mutate_values, 25), (mutate_shard, 8), (mutate_bytes, 10), (mutate_tree, 10),
    (mutate_text, 6), (mutate_claims, 6), (mutate_packed, 5), (mutate_declaration, 12),
]  # fmt: skip


def golden_trees() -> dict[str, Tree]:
    """Every golden store, as it is committed."""
    root = kit.root()
    found: dict[str, Tree] = {}
    for path in sorted((root / "vectors/mrec/stores").glob("*.yaml")):
        folder = path.with_suffix(".mrec")
        files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
        found[path.stem] = Tree(files, golden_declaration(root, "mrec", path.stem)["nodes"])
    return found


def make(goldens: dict[str, Tree], seed: int, number: int) -> tuple[str, Mutant]:
    """The mutation of a number."""
    chance = random.Random(f"{seed}:{number}")
    name = chance.choice(sorted(goldens))
    golden = goldens[name]
    mutant = Mutant(Tree(golden.files, golden.nodes), [], {}, [])
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        operations, weights = zip(*OPERATIONS, strict=True)
        chance.choices(operations, weights)[0](mutant, chance)
    return name, mutant


def write(mutant: Mutant, folder: Path) -> Path:
    """Put a mutation on disk."""
    if mutant.packed:
        target = folder / "store.mrec.zip"
        data = pack(mutant.tree.files, mutant.packed)
        target.write_bytes(mutant.packed_bytes(data) if mutant.packed_bytes else data)
        return target
    target = folder / "store.mrec"
    target.mkdir()
    for name in mutant.folders:
        (target / name).mkdir(parents=True, exist_ok=True)
    for name, data in mutant.tree.files.items():
        path = target / name
        if (
            any((target / "/".join(name.split("/")[:n])).is_file() for n in range(1, name.count("/") + 1))
            or path.is_dir()
        ):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for name, to in mutant.links.items():
        path = target / name
        if not path.exists() and not path.is_symlink():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(to)
    return target


def read_all(path: Path) -> str:
    """What the reader says: ``accepted``, or the clause by which it refuses. Every value is touched."""
    try:
        with open_mrec(path) as file:
            count = len(file)
            ranges = [(0, count)]
            if count > 4 * FRAMES:
                middles = {i for name in file.view.declaration.blocks for i in update_ordinals(file, name)}
                ranges = [(0, FRAMES), (count - FRAMES, count), *((i, i + 1) for i in sorted(middles) if i < count)]
            for first, stop in ranges:
                for _ in file.frames(first, stop):
                    pass
        return "accepted"
    except Refused as refusal:
        return refusal.violation.clause


def update_ordinals(file: Any, name: str) -> list[int]:
    """Ordinals around the updates of a block."""
    updates = file.view.block(name).updates
    count = min(updates.count, FRAMES)
    near = {updates.ordinal(j) for j in range(count)} | {updates.ordinal(updates.count - 1 - j) for j in range(count)}
    return [i for n in near for i in (n - 1, n, n + 1) if i >= 0]


def check(path: Path, reader_clauses: frozenset[str]) -> str:
    """What the checker says: ``accepted``, or the first clause of a reader that the store runs into."""
    return next((v.clause for v in check_mrec(path) if v.clause in reader_clauses), "accepted")


def judge(path: Path, reader_clauses: frozenset[str]) -> tuple[str, str]:
    """Verdict in one word and, where it is a failure, what happened."""
    signal.alarm(SECONDS)
    try:
        read, checked = read_all(path), check(path, reader_clauses)
    except TimeoutError:
        return "hang", traceback.format_exc(limit=-6)
    except Exception:
        return "crash", traceback.format_exc(limit=-6)
    finally:
        signal.alarm(0)
    if (read == "accepted") != (checked == "accepted"):
        return "differ", f"the reader says {read}, the checker {checked}"
    return read, ""


def reader_clauses() -> frozenset[str]:
    """Clauses by which the bundled reader refuses."""
    return frozenset(rule.clause for rule in load_rules().select(roles=("reader",))) | REFUSED_ANYWAY


def _alarm(*_: object) -> None:
    raise TimeoutError


def run(seed: int, numbers: range, keep: Path | None = None) -> tuple[Counter[str], list[str], int]:
    """Mutations one after the other: verdicts, failures, and the peak of memory in MiB."""
    signal.signal(signal.SIGALRM, _alarm)
    warnings.filterwarnings("ignore", "Duplicate name", UserWarning)
    goldens, clauses = golden_trees(), reader_clauses()
    verdicts: Counter[str] = Counter()
    failures: list[str] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    peak = before
    base = "/dev/shm" if Path("/dev/shm").is_dir() else None
    for number in numbers:
        name, mutant = make(goldens, seed, number)
        folder = Path(tempfile.mkdtemp(prefix="mutant", dir=base))
        try:
            path = write(mutant, folder)
            verdict, detail = judge(path, clauses)
            verdicts[verdict] += 1
            now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            if now > peak:
                peak = now
                if now > MEBIBYTES and not detail:
                    verdict, detail = "memory", f"{now} MiB"
            if detail:
                failures.append(
                    f"{verdict} at --seed {seed} --only {number}: {name}; {'; '.join(mutant.log)}\n{detail}"
                )
                if keep is not None:
                    shutil.copytree(folder, keep / f"{seed}-{number}", symlinks=True, dirs_exist_ok=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return verdicts, failures, peak


def _share(arguments: tuple[int, int, int, int, Path | None]) -> tuple[Counter[str], list[str], int]:
    seed, first, count, step, keep = arguments
    return run(seed, range(first, count, step), keep)


def main() -> int:
    parser = argparse.ArgumentParser(description="Seeded mutations of mrec stores against reader and checker.")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, help="Repeat the mutation of one number.")
    parser.add_argument("--keep", type=Path, help="Keep the stores of failures here.")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    shares = [(options.seed, i, options.count, options.jobs, options.keep) for i in range(options.jobs)]
    if options.only is not None:
        shares = [(options.seed, options.only, options.only + 1, 1, options.keep)]
    if len(shares) == 1:
        results = [_share(shares[0])]
    else:
        with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
            results = pool.map(_share, shares, chunksize=1)
    verdicts: Counter[str] = Counter()
    failures: list[str] = []
    for counts, failed, _ in results:
        verdicts += counts
        failures += failed
    for failure in failures:
        print(failure, end="\n\n")
    bad = sum(verdicts[word] for word in ("crash", "hang", "differ"))
    total, accepted = sum(verdicts.values()), verdicts["accepted"]
    clauses = len(set(verdicts) - {"crash", "hang", "differ", "accepted"})
    print(
        f"{total} mutations with seed {options.seed} in {time.monotonic() - began:.0f} s: {accepted} accepted,", end=" "
    )
    print(f"{total - accepted - bad} refused by {clauses} clauses, {len(failures)} failures;", end=" ")
    print(f"peak memory {max(peak for *_, peak in results)} MiB a process")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
