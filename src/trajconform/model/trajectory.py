"""The logical things of both formats. Arrays are exact (see `trajconform.model.arrays`) and read-only by convention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trajconform.model.arrays import Array


@dataclass(frozen=True)
class Column:
    """One column of a block: values ``[rows, *trailing]``; ``mask`` bool ``[rows]`` (True = valid) or None."""

    values: Array
    mask: Array | None = None


@dataclass(frozen=True)
class Block:
    """A block as a frame carries it: present (rows > 0) or empty (rows == 0, its declared columns without rows)."""

    rows: int
    columns: Mapping[str, Column]
    shape: tuple[int, ...] | None = None
    """The structural shape, where the block declares one."""


@dataclass(frozen=True)
class Cell:
    """A cell: ``vectors`` f64[3,3] with lattice vectors as columns, ``origin`` f64[3], ``boundary`` bool[3]."""

    vectors: Array
    origin: Array
    boundary: Array
    defined: bool = True


@dataclass(frozen=True)
class MetaValue:
    """A per-step metadata value: its tag, and an exact array (shape ``[]``, ``[3]`` ...) or a JSON document."""

    dtype: str
    value: Any


@dataclass(frozen=True)
class Frame:
    """One frame of an mrec trajectory, every block resolved by carry-forward; an absent block has no entry."""

    step: int
    blocks: Mapping[str, Block] = field(default_factory=dict)
    time: np.float64 | None = None
    cell: Cell | None = None
    meta: Mapping[str, MetaValue] = field(default_factory=dict)


@dataclass(frozen=True)
class OtjHeader:
    """Header of an otj file. ``timestep`` has shape [], ``masses`` [particles]; both f64 or f32 by ``precision``."""

    particles: int
    precision: str
    velocities: bool
    timestep: Array
    masses: Array


@dataclass(frozen=True)
class OtjFrame:
    """One otj frame: components of shape [particles] in the file's precision; velocities None when not stored."""

    step: int
    time: Array
    x: Array
    y: Array
    z: Array
    vx: Array | None = None
    vy: Array | None = None
    vz: Array | None = None
