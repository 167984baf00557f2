"""What `trajconform inspect` says about an otj file."""

from __future__ import annotations

from typing import Any

import numpy as np

from trajconform.model.arrays import Array
from trajconform.otj.format import Location
from trajconform.otj.reader import OtjFile, open_otj


def inspect_otj(path: Location) -> dict[str, Any]:
    """Particles, precision, timestep, velocities, number of sound frames, step and time of the first and the last of
    them, and the state of the tail. Scalars are the shortest decimals that read back as the same bits; NaN and the
    infinities are strings. `Refused` where a reader refuses the file."""
    with open_otj(path) as file:
        tail = file.tail()
        return {
            "particles": file.header.particles,
            "precision": file.header.precision,
            "timestep": _number(file.header.timestep),
            "velocities": file.header.velocities,
            "frames": tail.frames,
            "first": _moment(file, 0) if tail.frames else None,
            "last": _moment(file, tail.frames - 1) if tail.frames else None,
            "tail": _TAILS[tail.state].format(frame=tail.frames, bytes=tail.bytes, whole=file.layout.frame),
        }


_TAILS = {
    "clean": "clean",
    "cut": "cut: {bytes} of the {whole} bytes of frame {frame}",
    "damaged": "damaged: frame {frame} has a wrong checksum, {bytes} bytes from there on",
}


def _moment(file: OtjFile, number: int) -> dict[str, Any]:
    frame = file.frame(number)
    return {"step": frame.step, "time": _number(frame.time)}


def _number(value: Array) -> float | str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float(str(value[()]))
