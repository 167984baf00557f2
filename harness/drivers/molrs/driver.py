"""Drives molrs 0.19 (Rust, through its Python binding) by the kit's protocol.

It translates and never repairs: dtypes, masks, cells and values go out as molrs hands them over. What molrs raises as
ValueError, TypeError or OverflowError is its way of refusing (the binding documents ValueError; the other two come from
the same argument checks). A Rust panic arrives as a BaseException and is answered as an error, which is never a refusal.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from pathlib import Path
from typing import Any

import molrs
import numpy as np
from molrs.core import Box, Cell, MetaValue
from molrs.io.mrec import MrecReader, MrecWriter, SequenceSchema

REFUSALS = (ValueError, TypeError, OverflowError)
EXACT = 2**53
NAMES = {
    "float64": "f64", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "bool": "bool", "complex64": "c64", "complex128": "c128", "float32": "f32",
}  # fmt: skip
DTYPES = {name: np.dtype(numpy_name) for numpy_name, name in NAMES.items()}
META_DTYPES = {"bool": "bool", "i32": "i32", "i64": "i64", "u32": "u32", "u64": "u64", "f64": "f64"}


class Unsupported(Exception):
    """The binding has no way to say this."""


def encode(array: Any) -> dict[str, Any]:
    array = np.asarray(array)
    if array.dtype.kind in "UOT":
        return {"dtype": "string", "shape": list(array.shape), "data": [str(s) for s in array.ravel().tolist()]}
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    data = base64.b64encode(little.tobytes()).decode()
    return {"dtype": NAMES.get(array.dtype.name, array.dtype.name), "shape": list(array.shape), "data": data}


def decode(wire: dict[str, Any]) -> Any:
    shape = wire["shape"]
    if wire["dtype"] == "string":
        out = np.empty(len(wire["data"]), dtype=object)
        out[:] = wire["data"]
        return out.reshape(shape)
    raw = base64.b64decode(wire["data"])
    return np.frombuffer(raw, dtype=DTYPES[wire["dtype"]].newbyteorder("<")).reshape(shape).copy()


def integer(value: int) -> int | str:
    return value if abs(value) <= EXACT else str(value)


# -- reading -------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A frozen json value of the binding as plain JSON."""
    if isinstance(value, (dict, list, tuple)) or hasattr(value, "keys"):
        if hasattr(value, "keys"):
            return {str(key): plain(value[key]) for key in value}
        return [plain(item) for item in value]
    return value


def encode_meta(tag: str, value: Any) -> dict[str, Any]:
    if tag == "json":
        return {"dtype": "json", "value": plain(value)}
    if tag == "string":
        return {"dtype": tag, "value": {"dtype": "string", "shape": [], "data": [value]}}
    scalar = tag.rstrip("0123456789").removesuffix("x") if tag not in META_DTYPES else tag
    dtype = DTYPES[META_DTYPES.get(scalar, "bool" if tag == "bool3" else scalar)]
    return {"dtype": tag, "value": encode(np.array(value, dtype=dtype))}


def encode_block(block: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"rows": block.n_rows, "columns": {}}
    validity = {}
    for name in block.keys():  # noqa: SIM118 - not a mapping
        out["columns"][name] = encode(block[name])
        mask = block.validity(name)
        if mask is not None:
            validity[name] = encode(np.asarray(mask, dtype=bool))
    if validity:
        out["validity"] = validity
    if block.structural_shape is not None:
        out["shape"] = list(block.structural_shape)
    return out


def encode_frame(frame: Any, step: int, time: float | None) -> dict[str, Any]:
    out: dict[str, Any] = {"step": integer(step)}
    if time is not None:
        out["time"] = encode(np.array(time, dtype="<f8"))
    out["meta"] = {key: encode_meta(frame.meta.dtype(key), frame.meta[key]) for key in frame.meta}
    if frame.box is not None:
        box = frame.box
        out["cell"] = {
            "defined": bool(box.is_cell_defined),
            "vectors": encode(box.matrix),
            "origin": encode(box.origin),
            "boundary": encode(np.asarray(box.pbc, dtype=bool)),
        }
    out["blocks"] = {name: encode_block(frame[name]) for name in frame.keys()}  # noqa: SIM118 - not a mapping
    return out


def read(request: dict[str, Any]) -> dict[str, Any]:
    reader = MrecReader(Path(request["path"]))
    count = len(reader)
    first, stop = request.get("frames") or (0, count)
    steps, times = reader.step, reader.time
    chosen = range(first, min(stop, count))
    # A list of times that is shorter than the frames is handed on as it is: frames past it have no time.
    timed = [] if times is None else times
    frames = [encode_frame(reader[i], int(steps[i]), timed[i] if i < len(timed) else None) for i in chosen]
    return {"format": "mrec", "nstep": count, "frames": frames}


# -- writing -------------------------------------------------------------------------------------------------------


def fill_argument(tag: str, fill: Any) -> Any:
    """A fill in typed JSON form as the binding takes it."""

    def one(item: Any) -> Any:
        if isinstance(item, bool) and tag.startswith("f64"):
            return MetaValue("bool", item)  # as a plain argument True would be the number 1.0
        if isinstance(item, str) and tag.startswith("f64"):
            return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(item, item)
        if isinstance(item, str) and tag[0] in "iu" and item.lstrip("-").isdigit():
            return int(item)
        return item

    if tag == "json":
        return MetaValue("json", fill)
    return [one(item) for item in fill] if isinstance(fill, list) else one(fill)


def schema_of(declaration: dict[str, Any]) -> Any:
    schema = SequenceSchema.from_frames([])
    for name, block in (declaration.get("blocks") or {}).items():
        if not block.get("columns"):
            schema.declare_block(name)
        for column, entry in block["columns"].items():
            if entry.get("nullable"):
                raise Unsupported("declaring a column nullable: SequenceSchema has no call for it")
            schema.declare_column(name, column, entry["dtype"], list(entry["trailing"]))
            if isinstance(entry.get("precision"), bool):
                raise Unsupported("a boolean for a precision: to the binding's number True is 1.0")
            if "precision" in entry:
                schema.declare_precision(name, column, entry["precision"])
    for name, block in (declaration.get("blocks") or {}).items():
        if "structural_shape" in block:
            schema.declare_structural_shape(name, list(block["structural_shape"]))
        for column, target in (block.get("targets") or {}).items():
            schema.declare_target(name, column, target)
        if "aligned_with" in block:
            schema.declare_aligned(name, block["aligned_with"])
    for key, entry in (declaration.get("meta") or {}).items():
        if "fill" in entry:
            if entry["fill"] is None and entry["dtype"] != "json":
                raise Unsupported("fill null for a tag other than json: None means no fill to the binding")
            schema.declare_meta(key, entry["dtype"], fill_argument(entry["dtype"], entry["fill"]))
        else:
            schema.declare_meta(key, entry["dtype"])
    return schema


def frame_of(wire: dict[str, Any]) -> Any:
    frame = molrs.Frame()
    for name, block in (wire.get("blocks") or {}).items():
        made = molrs.Block()
        if not block["columns"] and block.get("rows"):
            raise Unsupported("rows of a block without columns: a Block counts the rows of its columns")
        masks = block.get("validity") or {}
        for column, values in block["columns"].items():
            array = decode(values)
            if array.dtype == object and array.ndim > 1:
                raise Unsupported("strings with trailing axes: Block.insert takes one axis of them")
            if array.dtype == object:
                array = array.astype("U") if array.size else np.empty(array.shape, dtype="U1")
            made.insert(column, array, None if column not in masks else decode(masks[column]))
        frame[name] = made
    cell = wire.get("cell")
    if cell is not None:
        defined = cell.get("defined", True)
        origin = decode(cell["origin"]) if "origin" in cell else np.zeros(3)
        boundary = decode(cell["boundary"]) if "boundary" in cell else np.full(3, defined)
        geometry = Cell.matrix(decode(cell["vectors"])) if defined else Cell.undefined()
        try:
            frame.box = Box(geometry, origin, tuple(bool(b) for b in boundary))
        except ValueError as error:
            if "singular" not in str(error):
                raise
            raise Unsupported(
                "a cell that cannot be inverted: a Box is never made of it, so no writer sees it"
            ) from None
    for key, value in (wire.get("meta") or {}).items():
        tag = value["dtype"]
        if tag == "json":
            document = json.loads(value["text"]) if "text" in value else value["value"]
            frame.meta[key] = MetaValue("json", document)
            continue
        array = decode(value["value"])
        item = array.tolist() if array.shape else array[()].item() if array.dtype != object else str(array[()])
        frame.meta[key] = MetaValue(tag, item)
    return frame


class Writing:
    """The one writer that is open at a time."""

    def __init__(self) -> None:
        self.writer: Any = None

    def create(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("system"):
            raise Unsupported("writing a system section beside a trajectory")
        if "declaration" in request:
            schema = schema_of(request["declaration"])
        else:
            schema = SequenceSchema.from_frames([frame_of(frame) for frame in request["derive_from"]])
        self.writer = MrecWriter(request["path"], schema)
        return {}

    def append(self, request: dict[str, Any]) -> dict[str, Any]:
        frame = frame_of(request["frame"])
        step = int(request["step"]) if "step" in request else None
        time = float(decode(request["time"])[()]) if request.get("time") is not None else None
        self.writer.append(frame, step=step, time=time)
        return {}

    def flush(self, request: dict[str, Any]) -> dict[str, Any]:
        self.writer.flush()
        return {}

    def close(self, request: dict[str, Any]) -> dict[str, Any]:
        self.writer.close()
        self.writer = None
        return {}

    def reopen(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("declaration") is not None:
            raise Unsupported("reopening under a declaration: MrecWriter.open takes the pinned one")
        self.writer = MrecWriter.open(request["path"])
        return {}


def hello() -> dict[str, Any]:
    return {
        "name": "molrs",
        "version": molrs.__version__,
        "language": "Rust",
        "formats": {"mrec": ["read", "write"]},
        "features": ["range", "reopen", "json:text"],
    }


def answer(request: dict[str, Any], writing: Writing) -> dict[str, Any]:
    op = request.get("op")
    calls = {"create": writing.create, "append": writing.append, "flush": writing.flush, "close": writing.close}
    calls |= {"reopen": writing.reopen, "read": read}
    if op == "hello":
        return {"ok": hello()}
    if op == "bye":
        return {"ok": {}}
    if op not in calls or request.get("format", "mrec") != "mrec":
        return {"unsupported": {"what": f"{op} of {request.get('format')}"}}
    try:
        return {"ok": calls[op](request)}
    except Unsupported as missing:
        return {"unsupported": {"what": str(missing)}}
    except REFUSALS as refusal:
        return {"refused": {"reason": f"{type(refusal).__name__}: {refusal}"}}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failure:  # a Rust panic is a BaseException; no refusal, and no reason to lose the process
        return {"error": {"message": f"{type(failure).__name__}: {failure}"}}


def main() -> None:
    writing = Writing()
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request.get("id"), **answer(request, writing)}, allow_nan=False), flush=True)
        if request.get("op") == "bye":
            break


if __name__ == "__main__":
    main()
