"""The writer: header first, then frame after frame, each in one piece, and never back (OTJ-TAIL-08)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from trajconform.model.arrays import Array, raw_bytes
from trajconform.model.errors import refuse
from trajconform.model.trajectory import OtjHeader
from trajconform.otj.checksum import fnv1a64
from trajconform.otj.format import ALL_COMPONENTS, MAGIC, MAX_STEP, PRECISIONS, VERSION, Layout, Location, frame_times


class OtjWriter:
    """Writes one file. A frame goes to the system whole, so that a process killed between two calls loses nothing."""

    def __init__(self, path: Location, header: OtjHeader) -> None:
        """Create ``path``, which must not exist, and write the header.

        ``header.timestep`` has shape [] and ``header.masses`` shape [particles], both f64 or both f32 by its precision;
        `Refused` (OTJ-HEADER-16, OTJ-CONV-07) where they are not. FileExistsError, OSError.
        """
        self._layout = _declared(header)
        self._timestep = np.asarray(header.timestep, dtype=self._layout.dtype)
        head = MAGIC + VERSION.to_bytes(4, "little") + self._layout.flags.to_bytes(4, "little")
        head += self._layout.particles.to_bytes(8, "little") + raw_bytes(self._timestep) + raw_bytes(header.masses)
        self._frames = 0
        self._failed = False
        self._stream = Path(path).open("xb", buffering=0)  # noqa: SIM115  (close() closes it)
        self._put(head)

    def __enter__(self) -> OtjWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, step: int, components: Mapping[str, Array]) -> None:
        """Write a frame: ``components`` x, y, z and, where the file carries velocities, vx, vy, vz, each [particles] in
        the precision of the file. The time is computed (OTJ-FRAME-16).

        `Refused` for a step outside 0 to 2**64 - 1 (OTJ-FRAME-15) and for components that are not those the header
        announces (OTJ-FRAME-18); then nothing is written and the writer goes on. ValueError after close.
        """
        if not 0 <= step <= MAX_STEP:
            raise refuse("OTJ-FRAME-15", "step", f"step number {step} is not in 0 to 2^64 - 1", index=self._frames)
        time = frame_times(np.array([step], dtype="<u8"), self._timestep)
        parts = [step.to_bytes(8, "little"), raw_bytes(time)]
        for name in ALL_COMPONENTS:
            values = components.get(name)
            if name in self._layout.components:
                parts.append(self._component(name, values))
            elif values is not None:
                raise refuse(
                    "OTJ-FRAME-05", name, "the header says that frames carry no velocities", index=self._frames
                )
        self._put(b"".join(parts))
        self._frames += 1

    def flush(self) -> None:
        """Let what was appended reach the disk."""
        if not self._stream.closed:
            os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Flush and close; closing twice does nothing."""
        if not self._stream.closed:
            self.flush()
            self._stream.close()

    def _component(self, name: str, values: Array | None) -> bytes:
        wanted = f"{self._layout.particles} values of {self._layout.dtype}"
        if values is None:
            raise refuse("OTJ-FRAME-18", name, f"missing; a frame of this file has {wanted}", index=self._frames)
        if values.shape != (self._layout.particles,):
            found = f"shape {list(values.shape)}"
            raise refuse("OTJ-FRAME-18", name, f"{found}; a frame of this file has {wanted}", index=self._frames)
        if values.dtype.newbyteorder("<") != self._layout.dtype:
            raise refuse("OTJ-CONV-07", name, f"{values.dtype}; a frame of this file has {wanted}", index=self._frames)
        return raw_bytes(values)

    def _put(self, covered: bytes) -> None:
        """Write bytes and their checksum. After a failed write the file ends inside a frame and stays so."""
        if self._failed:
            raise ValueError("an earlier write failed, the file ends inside a frame: start a new file")
        data = memoryview(covered + fnv1a64(covered).to_bytes(8, "little"))
        try:
            while data:
                data = data[self._stream.write(data) or 0 :]
        except OSError:
            self._failed = True
            raise


def _declared(header: OtjHeader) -> Layout:
    if header.precision not in PRECISIONS:
        raise refuse("OTJ-FLAGS-01", "precision", f"{header.precision!r} is neither double nor single")
    layout = Layout(header.particles, header.precision == "single", header.velocities)
    for name, values in (("timestep", header.timestep), ("masses", header.masses)):
        if values.dtype.newbyteorder("<") != layout.dtype:
            raise refuse("OTJ-CONV-07", name, f"{values.dtype} in a file of {header.precision} precision")
    if header.timestep.shape != ():
        raise refuse("OTJ-HEADER-08", "timestep", f"one scalar, not shape {list(header.timestep.shape)}")
    if header.masses.shape != (header.particles,):
        found = f"shape {list(header.masses.shape)} for {header.particles} particles"
        raise refuse("OTJ-HEADER-16", "masses", found)
    return layout
