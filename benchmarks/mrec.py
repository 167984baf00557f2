"""Reading and writing of mrec beside molrs (Rust), zarr-python and zarrs, on the same stores."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from benchmarks.pairs import Pair, compare
from trajconform.model.trajectory import Block, Column, Frame
from trajconform.mrec.checker import check_mrec
from trajconform.mrec.reader import open_mrec
from trajconform.mrec.writer import MrecWriter as BundledWriter

try:
    import molrs
    from molrs.io.mrec import MrecReader, MrecWriter, SequenceSchema
except ImportError:
    molrs = None
try:
    import zarrs
except ImportError:
    zarrs = None

_NAMES = ("x", "y", "z")


class Shape:
    """What a run looks like: atoms a frame, frames, whether the row count changes, and a precision."""

    def __init__(self, atoms: int, frames: int, ragged: bool = False, precision: float | None = None) -> None:
        self.atoms, self.frames, self.ragged, self.precision = atoms, frames, ragged, precision

    @property
    def name(self) -> str:
        """As a row of the table says it."""
        form = "ragged" if self.ragged else "regular"
        return f"{self.atoms} atoms, {form}" + (f", precision {self.precision}" if self.precision else "")

    @property
    def declaration(self) -> dict[str, Any]:
        """The declaration that both writers get."""
        column: dict[str, Any] = {"dtype": "f64", "trailing": []}
        if self.precision:
            column["precision"] = self.precision
        return {"version": 1, "blocks": {"atoms": {"columns": {n: dict(column) for n in _NAMES}}}, "meta": {}}

    def rows(self) -> Iterator[list[Any]]:
        """x, y and z of each frame."""
        generator = np.random.default_rng(20261204)
        base = generator.normal(size=(3, self.atoms + 8)) * 30
        for i in range(self.frames):
            count = self.atoms + (i % 7 if self.ragged else 0)
            yield [np.ascontiguousarray(base[k, :count] + 0.01 * i) for k in range(3)]


def write_ours(shape: Shape, path: Path) -> None:
    """The run by the bundled writer, flushed once, at the end."""
    shutil.rmtree(path, ignore_errors=True)
    with BundledWriter.create(path, shape.declaration) as writer:
        for i, rows in enumerate(shape.rows()):
            columns = {n: Column(v) for n, v in zip(_NAMES, rows, strict=True)}
            writer.append(Frame(i, {"atoms": Block(len(rows[0]), columns)}))


def write_molrs(shape: Shape, path: Path) -> None:
    """The same by molrs."""
    shutil.rmtree(path, ignore_errors=True)
    schema = SequenceSchema.from_frames([])
    for name in _NAMES:
        schema.declare_column("atoms", name, "f64", [])
        if shape.precision:
            schema.declare_precision("atoms", name, shape.precision)
    writer = MrecWriter(path, schema)
    for i, rows in enumerate(shape.rows()):
        block = molrs.Block()
        for name, values in zip(_NAMES, rows, strict=True):
            block.insert(name, values)
        frame = molrs.Frame()
        frame["atoms"] = block
        writer.append(frame, step=i)
    writer.close()


def read_ours(path: Path, ordinals: list[int] | None = None) -> int:
    """Every frame, or some, and of each the three columns in hand."""
    rows = 0
    with open_mrec(path) as run:
        for frame in run if ordinals is None else map(run.frame, ordinals):
            columns = frame.blocks["atoms"].columns
            rows += sum(len(columns[n].values) for n in _NAMES)
    return rows


def read_molrs(path: Path, ordinals: list[int] | None = None) -> int:
    """The same by molrs."""
    rows = 0
    reader = MrecReader(path)
    for i in range(len(reader)) if ordinals is None else ordinals:
        block = reader[i]["atoms"]
        rows += sum(len(np.asarray(block[n])) for n in _NAMES)
    return rows


def read_zarr(path: Path) -> int:
    """Whole arrays by zarr-python, with the codec pipeline that is set."""
    group = zarr.open_group(path / "trajectory" / "atoms", mode="r")
    return sum(len(group[n][:]) for n in _NAMES)


def _open_ours(path: Path) -> None:
    for _ in range(20):
        open_mrec(path).close()


def _open_molrs(path: Path) -> None:
    for _ in range(20):
        MrecReader(path)


def _column(path: Path) -> None:
    with open_mrec(path) as run:
        run.column("atoms", "x", 0, len(run))


def _zarrs_column(path: Path) -> None:
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        np.asarray(zarr.open_array(path / "trajectory/atoms/x", mode="r")[:])


def _zarrs_all(path: Path) -> None:
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        read_zarr(path)


def _checked(path: Path) -> None:
    found = list(check_mrec(path))
    if found:
        raise AssertionError(f"the benchmark's own store breaks {found[0].clause}")


def shapes(quick: bool) -> list[Shape]:
    """The runs that are timed."""
    small, large = (2000, 60) if quick else (20_000, 300)
    return [
        Shape(100, small), Shape(10_000, large), Shape(100, small, ragged=True), Shape(10_000, large, ragged=True),
        Shape(100, small, precision=0.001), Shape(10_000, large, precision=0.001),
    ]  # fmt: skip


def pairs(folder: Path, quick: bool = False) -> Iterator[Pair]:
    """All pairs of all shapes; what a peer that is not installed would show is left out."""
    for shape in shapes(quick):
        ours, peers = folder / "ours.mrec", folder / "molrs.mrec"
        write_ours(shape, ours)
        if molrs is not None:
            yield compare(
                f"write, {shape.name}",
                partial(write_ours, shape, ours),
                "molrs",
                partial(write_molrs, shape, peers),
                0.7,
            )
            for written, path in (("molrs", peers), ("the kit", ours)):
                where = f"{shape.name}, written by {written}"
                yield compare(
                    f"sequential read, {where}", partial(read_ours, path), "molrs", partial(read_molrs, path), 1.0
                )
                some = random.Random(7).sample(range(shape.frames), min(200, shape.frames))
                yield compare(
                    f"random frames, {where}",
                    partial(read_ours, path, some),
                    "molrs",
                    partial(read_molrs, path, some),
                    0.5,
                )
                yield compare(f"open, {where}", partial(_open_ours, path), "molrs", partial(_open_molrs, path), 0.2)
        yield compare(
            f"sequential read, {shape.name}",
            partial(read_ours, ours),
            "zarr-python, whole arrays",
            partial(read_zarr, ours),
        )
        if zarrs is not None:
            yield compare(
                f"one column, {shape.name}",
                partial(_column, ours),
                "zarrs, raw decode",
                partial(_zarrs_column, ours),
                0.8,
            )
            yield compare(
                f"check, {shape.name}", partial(_checked, ours), "zarrs, raw decode", partial(_zarrs_all, ours), 0.6
            )
        for path in (ours, peers):
            with suppress(FileNotFoundError):
                shutil.rmtree(path)
