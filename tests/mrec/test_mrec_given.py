"""What a producer may get wrong: each is refused at its own call, in words, and the writer goes on as if nothing was."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trajconform.model.errors import Refused
from trajconform.model.trajectory import Block, Cell, Column, Frame, MetaValue
from trajconform.mrec.checker import check_mrec
from trajconform.mrec.reader import open_mrec
from trajconform.mrec.writer import MrecWriter, WriterOptions, derive_declaration

F64 = {"dtype": "f64", "trailing": []}
DECLARATION: dict[str, Any] = {
    "blocks": {
        "a": {
            "columns": {
                "x": F64,
                "v": {"dtype": "f64", "trailing": [3]},
                "s": {"dtype": "string", "trailing": []},
                "k": {"dtype": "i32", "trailing": []},
                "q": {**F64, "nullable": True},
                "e": {"dtype": "u8", "trailing": [0, 2]},
            }
        }
    },
    "meta": {
        "pe": {"dtype": "f64", "fill": 0.0},
        "n": {"dtype": "u64", "fill": 0},
        "t": {"dtype": "string", "fill": ""},
        "d": {"dtype": "json", "fill": None},
        "w": {"dtype": "f64x3", "fill": [0.0, 0.0, 0.0]},
    },
}
EYE, ZERO, ON = np.eye(3), np.zeros(3), np.ones(3, dtype=bool)


def text(*values: object) -> Any:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def frame(step: Any = 1, rows: Any = 2, time: Any = 0.5, cell: Any = None, meta: Any = None, **columns: Any) -> Frame:
    """A sound frame of two rows, but for what is given."""
    sound: dict[str, Any] = {
        "x": Column(np.array([1.0, 2.0])),
        "v": Column(np.arange(6.0).reshape(2, 3)),
        "s": Column(text("a", "b")),
        "k": Column(np.array([1, 2], dtype="i4")),
        "q": Column(np.array([1.0, 2.0])),
        "e": Column(np.zeros((2, 0, 2), dtype="u1")),
    }
    given = {c: v if isinstance(v, Column) or c == "wrong" else Column(v) for c, v in columns.items()}
    return Frame(step, {"a": Block(rows, sound | given)}, time, cell, meta or {})


def json_of(value: Any) -> Frame:
    return frame(meta={"d": MetaValue("json", value)})


def deep() -> list[Any]:
    out: list[Any] = []
    for _ in range(100_000):
        out = [out]
    return out


def circular() -> list[Any]:
    out: list[Any] = []
    out.append(out)
    return out


ONE = np.ones(2)
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "binary32": (lambda: frame(x=np.ones(2, "f4")), "declared f64, given f32"),
    "binary16": (lambda: frame(x=np.ones(2, "f2")), "dtype float16 is none of"),
    "long double": (lambda: frame(x=np.ones(2, np.longdouble)), "is none of"),
    "integers for reals": (lambda: frame(x=np.ones(2, "i8")), "declared f64, given i64"),
    "wider integers": (lambda: frame(k=np.ones(2, "i8")), "declared i32, given i64"),
    "dates": (lambda: frame(x=np.array(["2000", "2001"], "M8[Y]")), "datetime64"),
    "records": (lambda: frame(x=np.zeros(2, [("a", "f8")])), "is none of"),
    "objects for reals": (lambda: frame(x=text(1.0, 2.0)), "declared f64, given string"),
    "a list": (lambda: frame(x=[1.0, 2.0]), "values of the column x of a is a numpy array, not list"),
    "a generator": (lambda: frame(x=(v for v in (1.0, 2.0))), "not generator"),
    "a number": (lambda: frame(x=1.0), "not float"),
    "nothing": (lambda: frame(x=None), "not None"),
    "no axis": (lambda: frame(x=np.array(1.0)), "without an axis of rows"),
    "text without an axis": (lambda: frame(s=np.array("a", dtype=object)), "without an axis of rows"),
    "masked": (lambda: frame(x=np.ma.array([1.0, 2.0], mask=[True, False])), "a masked array; give its data"),
    "masked without a mask": (lambda: frame(q=np.ma.array([1.0, 2.0])), "a masked array; give its data"),
    "text of fixed width": (lambda: frame(s=np.array(["a", "b"])), "text is an object array of str"),
    "bytes of fixed width": (lambda: frame(s=np.array([b"a", b"b"])), "text is an object array of str"),
    "half a surrogate pair": (lambda: frame(s=text("a", "\ud800")), "not text that UTF-8 can spell"),
    "bytes": (lambda: frame(s=text("a", b"b")), "not text that UTF-8 can spell"),
    "nothing for text": (lambda: frame(s=text("a", None)), "not text that UTF-8 can spell"),
    "nan for text": (lambda: frame(s=text("a", math.nan)), "not text that UTF-8 can spell"),
    "other empty rows": (lambda: frame(e=np.zeros((2, 2, 0), "u1")), "a row has the shape [0, 2]"),
    "fewer axes of nothing": (lambda: frame(e=np.zeros((2, 0), "u1")), "a row has the shape [0, 2]"),
    "short mask": (lambda: frame(q=Column(ONE, np.array([True]))), "a mask is bool[2], given bool[1]"),
    "long mask": (lambda: frame(q=Column(ONE, np.ones(3, bool))), "a mask is bool[2], given bool[3]"),
    "mask of two axes": (lambda: frame(q=Column(ONE, np.ones((2, 1), bool))), "a mask is bool[2]"),
    "mask without axes": (lambda: frame(q=Column(ONE, np.array(True))), "a mask is bool[2]"),
    "mask of numbers": (lambda: frame(q=Column(ONE, np.ones(2, "u1"))), "a mask is bool[2], given uint8[2]"),
    "mask that is a list": (lambda: frame(q=Column(ONE, [True, False])), "mask of the column q of a is a numpy array"),  # type: ignore[arg-type]
    "mask where none may be": (lambda: frame(x=Column(ONE, np.array([True, False]))), "not nullable"),
    "no column": (lambda: frame(wrong=ONE), "the column wrong of a is"),
    "other rows": (lambda: frame(rows=3), "2 rows in a block of 3"),
    "rows below zero": (lambda: frame(rows=-1), "in a block of -1"),
    "rows that are no integer": (lambda: frame(rows=2.0), "rows of the block a is an integer, not float"),
    "no block": (lambda: Frame(1, {"a": None}, np.float64(1)), "the block a is a Block, not None"),  # type: ignore[dict-item]
    "no blocks": (lambda: Frame(1, None, np.float64(1)), "blocks of a frame is a mapping, not None"),  # type: ignore[arg-type]
    "no frame": (lambda: {"step": 1}, "a frame is a Frame, not dict"),
    "real step": (lambda: frame(1.0), "a step is an integer, not float"),
    "text step": (lambda: frame("1"), "a step is an integer, not str"),
    "boolean step": (lambda: frame(True), "a step is an integer, not bool"),
    "huge step": (lambda: frame(10**30), "outside the 64-bit signed integers"),
    "text time": (lambda: frame(time="1"), "a time is a real number, not str"),
    "boolean time": (lambda: frame(time=True), "a time is a real number, not bool"),
    "date time": (lambda: frame(time=np.datetime64("2000")), "a time is a real number"),
    "time beyond binary64": (lambda: frame(time=2**53 + 1), "binary64 does not hold the time 9007199254740993"),
    "huge time": (lambda: frame(time=10**400), "binary64 does not hold"),
    "finer time": (lambda: frame(time=np.longdouble("0.1")), "binary64 does not hold"),
    "cell of lists": (lambda: frame(cell=Cell([[1]], ZERO, ON)), "vectors of a cell is a numpy array, not list"),  # type: ignore[arg-type]
    "cell of integers": (lambda: frame(cell=Cell(EYE.astype(int), ZERO, ON)), "vectors of a cell is f64[3, 3]"),
    "cell of other shape": (lambda: frame(cell=Cell(np.eye(2), ZERO, ON)), "given float64[2, 2]"),
    "flags of numbers": (lambda: frame(cell=Cell(EYE, ZERO, np.ones(3, "u1"))), "boundary of a cell is bool[3]"),
    "perhaps defined": (lambda: frame(cell=Cell(EYE, ZERO, ON, None)), "defined of a cell is True or False"),  # type: ignore[arg-type]
    "no cell": (lambda: frame(cell=EYE), "a cell is a Cell, not ndarray"),
    "no metadata value": (lambda: frame(meta={"pe": 1.0}), "the metadata value pe is a MetaValue, not float"),
    "metadata of Python": (
        lambda: frame(meta={"n": MetaValue("u64", 2**70)}),
        "holds a numpy array or scalar, not int",
    ),
    "metadata of another tag": (lambda: frame(meta={"pe": MetaValue("f32", np.array(1.0))}), "none of the tags"),
    "metadata of bytes": (lambda: frame(meta={"t": MetaValue("string", text(b"x").reshape(()))}), "is a text"),
    "metadata of nothing": (lambda: frame(meta={"t": MetaValue("string", text(None).reshape(()))}), "is a text"),
    "metadata of binary32": (lambda: frame(meta={"pe": MetaValue("f64", np.float32(1))}), "float32 is no f64"),
    "metadata with an axis": (lambda: frame(meta={"pe": MetaValue("f64", np.ones(1))}), "f64 has the shape []"),
    "vector of objects": (lambda: frame(meta={"w": MetaValue("f64x3", text(1.0, 2.0, 3.0))}), "is no f64x3"),
    "document with a set": (lambda: json_of({"a": {1}}), "not a JSON document"),
    "document with bytes": (lambda: json_of(b"x"), "not a JSON document"),
    "document with an array": (lambda: json_of(ONE), "not a JSON document"),
    "document with a number as key": (lambda: json_of({1: 2}), "does not read back"),
    "document with an infinity": (lambda: json_of([math.inf]), "not JSON compliant"),
    "document too deep": (lambda: json_of(deep()), "recursion"),
    "document in a circle": (lambda: json_of(circular()), "Circular"),
    "document with a huge integer": (lambda: json_of(10**400), "an integer of 401 digits"),
    "document with half a pair": (lambda: json_of({"\ud800": 1}), "UTF-8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_in_words_and_the_writer_goes_on(tmp_path: Path, name: str) -> None:
    make, words = WRONG[name]
    path = tmp_path / "a.mrec"
    with MrecWriter.create(path, DECLARATION, options=WriterOptions(sync=False)) as writer:
        writer.append(frame(0))
        with pytest.raises((Refused, TypeError, ValueError)) as refused:
            writer.append(make())
        assert words in str(refused.value)
        assert len(writer) == 1
        writer.append(frame(2))
    with open_mrec(path) as opened:
        assert opened.steps() == [0, 2]
    assert check_mrec(path) == []


SOUND: dict[str, Callable[[], Frame]] = {
    "big-endian": lambda: frame(x=np.array([1.0, 2.0], ">f8"), v=np.arange(6.0).reshape(2, 3).astype(">f8")),
    "by columns": lambda: frame(v=np.asfortranarray(np.arange(6.0).reshape(2, 3))),
    "every second": lambda: frame(x=np.array([1.0, 0.0, 2.0, 0.0])[::2]),
    "backwards": lambda: frame(x=np.array([2.0, 1.0])[::-1]),
    "broadcast": lambda: frame(k=np.broadcast_to(np.int32(1), (2,)) + np.array([0, 1], "i4")),
    "read-only": lambda: frame(x=np.frombuffer(np.array([1.0, 2.0]).tobytes())),
    "numpy's integers": lambda: frame(np.int32(1), rows=np.int64(2)),
    "a time of binary32": lambda: frame(time=np.float32(0.5)),
    "a time that is an integer": lambda: frame(time=1),
    "numpy's flag": lambda: frame(cell=Cell(EYE, ZERO, ON, np.True_)),  # type: ignore[arg-type]
    "cell by columns": lambda: frame(cell=Cell(np.asfortranarray(EYE.astype(">f8")), ZERO, ON)),
    "numpy's scalars": lambda: frame(meta={"pe": MetaValue("f64", np.float64(1)), "n": MetaValue("u64", np.int8(1))}),
}


@pytest.mark.parametrize("name", SOUND)
def test_any_layout_of_the_right_values_is_taken(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.mrec"
    with MrecWriter.create(path, DECLARATION, options=WriterOptions(sync=False)) as writer:
        writer.append(SOUND[name]())
    with open_mrec(path) as opened:
        columns = opened.frame(0).blocks["a"].columns
    assert columns["x"].values.tolist() == [1.0, 2.0]
    assert columns["v"].values.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert columns["k"].values.tolist() == [1, 2]
    assert check_mrec(path) == []


def system(rows: Any = 2, **columns: Any) -> dict[str, Any]:
    return {"system": {"s": Block(rows, {c: v if isinstance(v, Column) else Column(v) for c, v in columns.items()})}}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (system(3, m=ONE), "an array of the shape [2] in a block of 3 rows"),
        (system(-1), "a block of -1 rows"),
        (system(True, m=np.ones(1)), "rows of the block s is an integer, not bool"),
        (system(m=np.ones(2, "f4")), "f32 is no dtype of a record's column"),
        (system(m=np.ones(2, "f2")), "dtype float16"),
        (system(m=[1.0, 2.0]), "a numpy array, not list"),
        (system(1, m=np.array(1.0)), "an array of the shape []"),
        (system(m=np.ma.array([1.0, 2.0], mask=[True, False])), "a masked array"),
        (system(m=Column(ONE, np.array([True]))), "a mask is bool[2], given bool[1]"),
        (system(m=Column(ONE, np.ones(2, "u1"))), "a mask is bool[2], given uint8[2]"),
        (system(m=text("a", None)), "not text that UTF-8 can spell"),
        (system(m=text("a", "\ud800")), "not text that UTF-8 can spell"),
        ({"meta": {"t": math.nan}}, "not finite JSON"),
        ({"meta": {"t": {1}}}, "not finite JSON"),
        ({"meta": {"t": "\ud800"}}, "not finite JSON"),
        ({"meta": {1: 2}}, "a key of the document is no text"),
        ({"meta": {"molrec_version": 2}}, "this writer writes version 1"),
        ({"meta": {"molrec_version": True}}, "this writer writes version 1"),
    ],
)
def test_nothing_is_written_of_a_record_that_is_wrong(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    path = tmp_path / "a.mrec"
    with pytest.raises((Refused, TypeError)) as refused:
        MrecWriter.create(path, DECLARATION, **given)
    assert words in str(refused.value)
    assert not path.exists()


@pytest.mark.parametrize("name", [1, "", "a/b", "..", "zarr.json", "a\0", "\ud800"])
def test_a_name_that_can_be_none_is_refused_whatever_it_is(tmp_path: Path, name: Any) -> None:
    with pytest.raises(Refused, match="cannot be the name of a node"):
        MrecWriter.create(tmp_path / "a.mrec", {"blocks": {name: {"columns": {}}}, "meta": {}})
    assert not (tmp_path / "a.mrec").exists()


@pytest.mark.parametrize(
    "compressor", ["lz4:1", "gzip", "gzip:", "gzip:10", "zstd:23", "zstd:-1", "gzip:1.0", "zstd:²", ""]
)
def test_a_compressor_that_is_none_is_refused(compressor: str) -> None:
    with pytest.raises(ValueError, match="float_compressor is None, 'gzip:0' to"):
        WriterOptions(float_compressor=compressor)


def test_a_declaration_is_not_derived_from_arrays_that_no_column_takes() -> None:
    kinds = [np.array(["a"]), np.ones(1, "f4"), np.ones(1, "f2")]
    if hasattr(np.dtypes, "StringDType"):
        kinds.append(np.array(["a"], dtype=np.dtypes.StringDType()))
    for values in kinds:
        with pytest.raises(Refused) as refused:
            derive_declaration([Frame(0, {"a": Block(1, {"p": Column(values)})})])
        assert refused.value.violation.clause == "MREC-DECL-29"


def test_counts_of_numpy_are_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    given = system(np.int64(2), m=ONE)
    with MrecWriter.create(path, DECLARATION, **given) as writer:
        writer.append(frame(rows=np.uint8(2)))
    assert check_mrec(path) == []
