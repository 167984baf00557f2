"""What a producer hands over, looked at for what it is: the types, a time, the static side, the record's document.

Arrays are looked at where they are used; here is what a clause has no word for, and what would otherwise fail far from
the call that is wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from trajconform.model.arrays import RECORD_DTYPES, Array, dtype_name
from trajconform.model.errors import refuse
from trajconform.model.trajectory import Block, Cell, Column, Frame, MetaValue

MASKED = "a masked array; give its data as values and the flags of what is valid as the mask"


def exact_time(time: object) -> np.float64:
    """A time as the binary64 that it is. TypeError for what is no number, ValueError where binary64 does not hold it."""
    if isinstance(time, np.ndarray) and time.ndim == 0:
        time = time[()]
    if isinstance(time, (bool, np.bool_)) or not isinstance(time, (int, float, np.integer, np.floating)):
        raise TypeError(f"a time is a real number, not {_kind(time)}")
    if isinstance(time, (int, np.integer)):
        time = int(time)  # numpy would compare it as the real that it becomes
    try:
        number = float(time)
        same = bool(number == time) or math.isnan(number)
    except OverflowError:
        same = False
    if not same:
        raise ValueError(f"binary64 does not hold the time {time}")
    return np.float64(time)


def wrong_type(frame: object) -> str:
    """The first thing of a frame that is of the wrong type, and what it should be; empty where there is none."""
    if not isinstance(frame, Frame):
        return f"a frame is a Frame, not {_kind(frame)}"
    for name, mapping in (("blocks", frame.blocks), ("meta", frame.meta)):
        if not isinstance(mapping, Mapping):
            return f"{name} of a frame is a mapping, not {_kind(mapping)}"
    if isinstance(frame.step, (bool, np.bool_)) or not hasattr(type(frame.step), "__index__"):
        return f"a step is an integer, not {_kind(frame.step)}"
    for name, block in frame.blocks.items():
        if why := _wrong_block(name, block):
            return why
    for key, value in frame.meta.items():
        if not isinstance(value, MetaValue):
            return f"the metadata value {key} is a MetaValue, not {_kind(value)}"
        if value.dtype != "json" and not isinstance(value.value, (np.ndarray, np.generic)):
            return f"the metadata value {key} holds a numpy array or scalar, not {_kind(value.value)}"
    if frame.cell is None:
        return ""
    if not isinstance(frame.cell, Cell):
        return f"a cell is a Cell, not {_kind(frame.cell)}"
    for name in ("vectors", "origin", "boundary"):
        if not isinstance(getattr(frame.cell, name), np.ndarray):
            return f"{name} of a cell is a numpy array, not {_kind(getattr(frame.cell, name))}"
    if not isinstance(frame.cell.defined, (bool, np.bool_)):
        return f"defined of a cell is True or False, not {_kind(frame.cell.defined)}"
    return ""


def _wrong_block(name: object, block: object) -> str:
    if not isinstance(block, Block):
        return f"the block {name} is a Block, not {_kind(block)}"
    if isinstance(block.rows, (bool, np.bool_)) or not hasattr(type(block.rows), "__index__"):
        return f"rows of the block {name} is an integer, not {_kind(block.rows)}"
    if not isinstance(block.columns, Mapping):
        return f"columns of the block {name} is a mapping, not {_kind(block.columns)}"
    for c, column in block.columns.items():
        if not isinstance(column, Column):
            return f"the column {c} of {name} is a Column, not {_kind(column)}"
        for what, array in (("values", column.values), ("mask", column.mask)):
            if isinstance(array, np.ma.MaskedArray):
                return f"{what} of the column {c} of {name} is {MASKED}"
            if not isinstance(array, np.ndarray) and not (what == "mask" and array is None):
                return f"{what} of the column {c} of {name} is a numpy array, not {_kind(array)}"
    return ""


def check_section(section: str, blocks: Mapping[str, Block]) -> None:
    """Blocks of a frame-shaped section before anything of them is written (MREC-RECORD-05).

    TypeError where something is of the wrong type, `Refused` where an array is none of a record or does not have a row,
    or a flag, for each row of its block.
    """
    for name, block in blocks.items():
        if why := _wrong_block(name, block):
            raise TypeError(why)
        node = f"{section}/{name}"
        if block.rows < 0:
            raise refuse("MREC-RECORD-05", node, f"a block of {block.rows} rows")
        for c, column in block.columns.items():
            place = f"{node}/{c}"
            try:
                dtype = dtype_name(column.values)
            except ValueError as error:
                raise refuse("MREC-DECL-02", place, str(error)) from None
            if dtype not in RECORD_DTYPES:
                raise refuse("MREC-DECL-02", place, f"{dtype} is no dtype of a record's column")
            if column.values.shape[:1] != (block.rows,):
                shape = list(column.values.shape)
                raise refuse("MREC-RECORD-05", place, f"an array of the shape {shape} in a block of {block.rows} rows")
            if dtype == "string" and not all(map(is_text, column.values.ravel().tolist())):
                raise refuse("MREC-DECL-02", place, "a value is not text that UTF-8 can spell")
            mask = column.mask
            if mask is not None and (mask.dtype != np.bool_ or mask.shape != (block.rows,)):
                message = f"a mask is bool[{block.rows}], given {mask.dtype}{list(mask.shape)}"
                raise refuse("MREC-RECORD-05", f"{node}/_validity/{c}", message)


def check_document(document: Mapping[str, Any], version: int) -> None:
    """The record's own document before it is written: strict JSON, and no other version than the writer's."""
    given = document.get("molrec_version", version)
    if type(given) is not int or given != version:
        message = f"molrec_version is {given!r}; this writer writes version {version}"
        raise refuse("MREC-RECORD-02", "meta", message)
    if not all(isinstance(key, str) for key in document):
        raise refuse("MREC-RECORD-02", "meta", "a key of the document is no text")
    try:
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise refuse("MREC-RECORD-02", "meta", f"the document is not finite JSON: {error}") from None


def is_text(value: object) -> bool:
    """Whether a value is text that UTF-8 can spell."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_masked(values: Array) -> bool:
    """Whether an array has a mask of its own, which would be lost."""
    return type(values) is not np.ndarray and isinstance(values, np.ma.MaskedArray)


def _kind(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__}"
