"""A writer's rules over plain Python values: tuples of bytes in memory, no numpy, no files, the plainest reading.

A value of a column or of an f64 key is a *token*: its little-endian bytes, or the text itself. A row is a tuple of
tokens; a column is a tuple of rows. So equality is equality of bits, and a model shares nothing with what it judges.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

FORMATS = {
    "f64": "<d", "i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q", "u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q",
    "bool": "<?", "c64": "<ff", "c128": "<dd",
}  # fmt: skip
RANGES = {"i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1), "u32": (0, 2**32 - 1), "u64": (0, 2**64 - 1)}
ENDPOINTS = ("atomi", "atomj", "atomk", "atoml")
Token = Any
Row = tuple[Token, ...]
IDENTITY = tuple(struct.pack("<d", float(i % 4 == 0)) for i in range(9))
ZEROS, YES, NO = (struct.pack("<d", 0.0),) * 3, (True,) * 3, (False,) * 3


def zero(dtype: str) -> Token:
    """The token of nothing."""
    return "" if dtype == "string" else bytes(struct.calcsize(FORMATS[dtype]))


def real(token: bytes) -> float:
    """The number of an f64 token."""
    return float(struct.unpack("<d", token)[0])


@dataclass(frozen=True)
class GivenColumn:
    """A column as a producer presents it."""

    dtype: str
    trailing: tuple[int, ...]
    rows: tuple[Row, ...]
    mask: tuple[bool, ...] | None = None


@dataclass(frozen=True)
class GivenBlock:
    """A block as a producer presents it; ``count`` is what it says of itself."""

    count: int
    columns: dict[str, GivenColumn]


@dataclass(frozen=True)
class GivenCell:
    """A cell: nine tokens by rows, three of the origin, three flags."""

    vectors: Row
    origin: Row = ZEROS
    boundary: tuple[bool, ...] = YES
    defined: bool = True


@dataclass(frozen=True)
class Given:
    """A frame as a producer presents it. ``meta``: key -> tag and value: a scalar or a tuple, f64 as tokens."""

    step: int
    time: bytes | None = None
    blocks: dict[str, GivenBlock] = field(default_factory=dict)
    meta: dict[str, tuple[str, Any]] = field(default_factory=dict)
    cell: GivenCell | None = None


@dataclass(frozen=True)
class Stored:
    """A block as it stands at a frame: column -> rows, and masks of the nullable columns."""

    count: int
    rows: dict[str, tuple[Row, ...]]
    masks: dict[str, tuple[bool, ...]]


@dataclass(frozen=True)
class Shown:
    """A frame as a reader has to hand it back."""

    step: int
    time: bytes | None
    blocks: dict[str, Stored]
    meta: dict[str, tuple[str, Any]]
    cell: GivenCell | None


def on_grid(token: bytes, precision: float) -> bytes:
    """stored(x) in exact arithmetic (MREC-PREC-05)."""
    x, quantum = real(token), Fraction(2) ** (math.frexp(precision)[1] - 1)
    if not math.isfinite(x) or abs(Fraction(x)) >= 2**52 * quantum:
        return token
    return struct.pack("<d", math.copysign(float(round(Fraction(x) / quantum) * quantum), x))


def family(tag: str) -> str:
    """What kind of value a tag holds, and of what range."""
    return tag.partition("x")[0] if tag not in ("bool3", "string", "json") else tag.removesuffix("3")


def held(tag: str, given: tuple[str, Any]) -> Any:
    """A value as the declared tag holds it; `ValueError` where that would change it."""
    kind, value = given
    if (tag == "json") != (kind == "json"):
        raise ValueError
    if tag == "json":
        if not finite(value):
            raise ValueError
        return value
    if isinstance(value, tuple) != (tag not in ("bool", "string", *RANGES, "f64")):
        raise ValueError
    if isinstance(value, tuple):
        if len(value) != int(tag[-1]):
            raise ValueError
        return tuple(_held_one(family(tag), family(kind), item) for item in value)
    return _held_one(family(tag), family(kind), value)


def _held_one(tag: str, kind: str, value: Any) -> Any:
    if tag in RANGES and kind in RANGES and RANGES[tag][0] <= value <= RANGES[tag][1]:
        return value
    if tag == "f64" and kind in RANGES and Fraction(float(value)) == value:
        return struct.pack("<d", float(value))
    if tag == kind and tag not in RANGES:
        return value
    raise ValueError


def finite(document: Any) -> bool:
    """Whether a document is finite JSON."""
    if isinstance(document, dict):
        return all(isinstance(key, str) and finite(value) for key, value in document.items())
    if isinstance(document, list):
        return all(map(finite, document))
    return not isinstance(document, float) or math.isfinite(document)


def filled(tag: str, fill: Any) -> Any:
    """A fill in typed JSON form as the value that it spells."""
    if tag == "json":
        return fill
    if isinstance(fill, list):
        return tuple(filled(family(tag), one) for one in fill)
    if tag == "f64":
        return struct.pack("<d", float(fill.replace("Infinity", "inf") if isinstance(fill, str) else fill))
    return int(fill) if tag in RANGES else fill


class PlainWriter:
    """What a writer has to make of frames: `fault` says why one is refused, `take` what it leaves."""

    def __init__(self, declaration: dict[str, Any], system: dict[str, tuple[int, tuple[Row, ...] | None]]) -> None:
        self.declaration, self.system = declaration, system
        self.given: list[Given] = []
        self.frames: list[Shown] = []
        self.current: dict[str, Stored] = {}
        self.updates: dict[str, list[tuple[int, int]]] = {name: [] for name in declaration["blocks"]}
        self.cell: GivenCell | None = None
        self.cells: list[tuple[int, GivenCell]] = []

    def cut(self, count: int) -> PlainWriter:
        """What is left when only the first frames were committed."""
        out = PlainWriter(self.declaration, self.system)
        for given in self.given[:count]:
            out.take(given)
        return out

    def fault(self, given: Given) -> str:
        """The clause by which a frame is refused; empty where it is taken. The first of several in no set order."""
        if not -(2**63) <= given.step < 2**63:
            return "MREC-STEP-37"
        if self.given and given.step <= self.given[-1].step:
            return "MREC-STEP-02"
        if self.given and (given.time is None) != (self.given[0].time is None):
            return "MREC-STEP-33" if given.time is not None else "MREC-STEP-34"
        for key, entry in self.declaration["meta"].items():
            if key not in given.meta:
                if "fill" not in entry:
                    return "MREC-META-18"
                continue
            try:
                held(entry["dtype"], given.meta[key])
            except ValueError:
                return "MREC-META-39"
        if given.meta.keys() - self.declaration["meta"].keys():
            return "MREC-DECL-19"
        for name, block in given.blocks.items():
            if why := self._block_fault(name, block):
                return why
        if given.cell is not None and self.cell is not None and given.cell.defined != self.cell.defined:
            return "MREC-CELL-26"
        return self._together(given)

    def _block_fault(self, name: str, block: GivenBlock) -> str:
        declared = self.declaration["blocks"].get(name)
        if declared is None:
            return "MREC-DECL-17"
        columns = declared["columns"]
        if block.columns.keys() != columns.keys():
            return "MREC-RAGGED-02" if columns.keys() - block.columns.keys() else "MREC-DECL-18"
        for c, column in block.columns.items():
            if column.dtype != columns[c]["dtype"]:
                return "MREC-DECL-21"
            if list(column.trailing) != columns[c]["trailing"]:
                return "MREC-DECL-27"
            if len(column.rows) != block.count:
                return "MREC-RAGGED-03"
            if column.mask is not None and len(column.mask) != block.count:
                return "MREC-NULL-18"
            if column.mask is not None and not all(column.mask) and not columns[c].get("nullable"):
                return "MREC-NULL-12"
        if "structural_shape" in declared and block.count != math.prod(declared["structural_shape"]):
            return "MREC-BLOCK-18"
        if name in self.system:
            rows, ids = self.system[name]
            if block.count != rows:
                return "MREC-SYSTEM-06"
            if ids is not None and "id" in block.columns and block.columns["id"].rows != ids:
                return "MREC-SYSTEM-07"
        return ""

    def _together(self, given: Given) -> str:
        now = self.current | {name: self._stored(name, block) for name, block in given.blocks.items()}
        for name, entry in self.declaration["blocks"].items():
            if name not in now:
                continue
            target = entry.get("aligned_with")
            if target is not None and (target not in now or now[target].count != now[name].count):
                return "MREC-ALIGN-14"
            targets = {c: "atoms" for c in entry["columns"] if c in ENDPOINTS} | entry.get("targets", {})
            for column, target in targets.items():
                if not now[name].count:
                    continue
                section = target.removeprefix("/system/")
                if section == target and target not in now:
                    return "MREC-REF-09"
                limit = now[target].count if section == target else self.system[section][0]
                mask = now[name].masks.get(column, (True,) * now[name].count)
                valid = [row for row, flag in zip(now[name].rows[column], mask, strict=True) if flag]
                if any(int.from_bytes(token, "little") >= limit for row in valid for token in row):
                    return "MREC-REF-09"
        return ""

    def _stored(self, name: str, block: GivenBlock) -> Stored:
        columns = self.declaration["blocks"][name]["columns"]
        rows, masks = {}, {}
        for c, column in block.columns.items():
            rows[c] = column.rows
            if "precision" in columns[c]:
                p = columns[c]["precision"]
                rows[c] = tuple(tuple(on_grid(token, p) for token in row) for row in column.rows)
            if columns[c].get("nullable"):
                masks[c] = (True,) * block.count if column.mask is None else column.mask
        return Stored(block.count, rows, masks)

    def take(self, given: Given) -> None:
        """Append a frame that has no fault."""
        for name, block in given.blocks.items():
            stored = self._stored(name, block)
            if self.current.get(name) != stored:
                self.updates[name].append((len(self.frames), stored.count))
                self.current[name] = stored
        if given.cell is not None:
            cell = given.cell
            if not cell.defined:
                cell = replace(cell, vectors=IDENTITY, boundary=NO)
            if cell != self.cell:
                self.cells.append((len(self.frames), cell))
                self.cell = cell
        meta = {}
        for key, entry in self.declaration["meta"].items():
            tag = entry["dtype"]
            meta[key] = (tag, held(tag, given.meta[key]) if key in given.meta else filled(tag, entry["fill"]))
        self.frames.append(Shown(given.step, given.time, dict(self.current), meta, self.cell))
        self.given.append(given)

    # -- what has to stand on disk -----------------------------------------------------------------------------------

    def layout(self) -> list[dict[str, Any]]:
        """Assertions about the store once all frames are committed."""
        n = len(self.frames)
        out: list[dict[str, Any]] = [{"node": "trajectory", "attribute": "nstep", "equals": n}]
        out += self._number("step", [f.step for f in self.frames], _steps_progress)
        times = [f.time for f in self.frames if f.time is not None]
        out += self._number("time", [real(t) for t in times], _times_progress, [f"0x{t[::-1].hex()}" for t in times])
        for key in self.declaration["meta"]:
            out.append({"node": f"trajectory/meta/{key}", "rows": n})
        for name, updates in self.updates.items():
            out += self._block_layout(name, updates)
        return out + self._cell_layout()

    def _number(self, name: str, values: list[Any], progress: Any, spelled: list[Any] | None = None) -> Any:
        attribute = {"node": "trajectory", "attribute": f"{name}_progression"}
        spelled = values if spelled is None else spelled
        if not values:
            return [attribute | {"absent": True}, {"node": f"trajectory/{name}", "absent": True}]
        found = progress(values)
        if found is None:
            return [attribute | {"absent": True}, {"node": f"trajectory/{name}", "values": spelled}]
        return [attribute | {"equals": found}, {"node": f"trajectory/{name}", "absent": True}]

    def _block_layout(self, name: str, updates: list[tuple[int, int]]) -> list[dict[str, Any]]:
        node, counts = f"trajectory/{name}", [count for _, count in updates]
        columns = self.declaration["blocks"][name]["columns"]
        ordinals = [ordinal for ordinal, _ in updates]
        regular = bool(columns and updates) and counts[0] > 0 and len(set(counts)) == 1
        regular = regular and ordinals == list(range(len(updates)))
        out: list[dict[str, Any]] = []
        for marker, value in (("uniform_rows", counts[0] if counts else 0), ("dense_updates", True)):
            about = {"node": node, "attribute": marker}
            out.append(about | ({"equals": value} if regular else {"absent": True}))
        if updates and not regular:
            out.append({"node": f"{node}/step_index", "values": ordinals})
            out.append({"node": f"{node}/offset", "values": [sum(counts[:i]) for i in range(len(counts) + 1)]})
        else:
            out += [{"node": f"{node}/{name}", "absent": True} for name in ("step_index", "offset")]
        for c, entry in columns.items():
            out.append({"node": f"{node}/{c}", "rows": sum(counts)})
            mask = {"node": f"{node}/_validity/{c}"}
            out.append(mask | ({"rows": sum(counts)} if entry.get("nullable") else {"absent": True}))
        return out

    def _cell_layout(self) -> list[dict[str, Any]]:
        box, arrays = "trajectory/box", ("step_index", "vectors", "origin", "boundary")
        if not self.cells:
            return [{"node": f"{box}/{name}", "absent": True} for name in arrays]
        ordinal, first = self.cells[0]
        finite = all(math.isfinite(real(token)) for token in (*first.vectors, *first.origin))
        out: list[dict[str, Any]] = []
        if first.defined:
            out.append({"node": box, "attribute": "cell_defined", "absent": True})
        else:
            out.append({"node": box, "attribute": "cell_defined", "equals": False})
        if len(self.cells) == 1 and ordinal == 0 and finite:
            numbers = [real(token) for token in first.vectors]
            out.append({"node": box, "attribute": "vectors", "equals": [numbers[i : i + 3] for i in (0, 3, 6)]})
            out += [{"node": f"{box}/{name}", "absent": True} for name in arrays]
            for name, value, default in (("origin", first.origin, ZEROS), ("boundary", first.boundary, YES)):
                about = {"node": box, "attribute": name}
                plain = [v if isinstance(v, bool) else real(v) for v in value]
                out.append(about | ({"absent": True} if value == default else {"equals": plain}))
            return out
        out += [{"node": box, "attribute": name, "absent": True} for name in arrays[1:]]
        out.append({"node": f"{box}/step_index", "values": [i for i, _ in self.cells]})
        for name, default in (("origin", ZEROS), ("boundary", YES)):
            if any(getattr(cell, name) != default for _, cell in self.cells):
                out.append({"node": f"{box}/{name}", "rows": len(self.cells)})
        return out


def _steps_progress(steps: list[int]) -> dict[str, int] | None:
    if len(steps) == 1:
        return {"start": steps[0]}
    stride = steps[1] - steps[0]
    fits = all(step == steps[0] + i * stride for i, step in enumerate(steps))
    return {"start": steps[0], "stride": stride} if fits else None


def _times_progress(times: list[float]) -> dict[str, float] | None:
    if not all(map(math.isfinite, times)):
        return None
    if len(times) == 1:
        return {"start": times[0]}
    stride = times[1] - times[0]
    if not math.isfinite(stride):
        return None
    formula = [times[0] + float(i) * stride for i in range(len(times))]
    fits = [struct.pack("<d", x) for x in formula] == [struct.pack("<d", x) for x in times]
    return {"start": times[0], "stride": stride} if fits else None
