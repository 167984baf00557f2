"""Writers of otj with one mistake each."""

from __future__ import annotations

from functools import partial
from typing import Any

from trajconform.harness import mutants
from trajconform.harness.mutants import edit, mutant, swap

changed = partial(mutants.changed, role="writer")
_INIT, _APPEND, _PUT = "otj.writer:OtjWriter.__init__", "otj.writer:OtjWriter.append", "otj.writer:OtjWriter._put"
_COMPONENT = "otj.writer:OtjWriter._component"

changed("version-big-endian", "OTJ-CONV-03", "writes the version with its most significant byte first",
        _INIT, 'VERSION.to_bytes(4, "little")', 'VERSION.to_bytes(4, "big")')  # fmt: skip
changed("step-big-endian", "OTJ-CONV-03", "writes step numbers with their most significant byte first",
        _APPEND, 'step.to_bytes(8, "little")', 'step.to_bytes(8, "big")', also=("OTJ-FRAME-14",))  # fmt: skip
changed("values-lose-bits", "OTJ-CONV-06", "normalises -0.0 by adding zero",
        _COMPONENT, "return raw_bytes(values)", "return raw_bytes(values + 0)")  # fmt: skip
changed("masses-widened-and-back", "OTJ-CONV-06", "normalises masses by adding zero",
        _INIT, "raw_bytes(header.masses)", "raw_bytes(header.masses + 0)")  # fmt: skip
changed("header-late", "OTJ-HEADER-15", "writes the header with the first frame",
        _INIT, "self._put(head)", "self._head = head")  # fmt: skip
changed("any-number-of-masses", "OTJ-HEADER-16", "writes as many masses as it is given",
        "otj.writer:_declared", "if header.masses.shape != (header.particles,):", "if False:")  # fmt: skip
changed("precision-bit-never-set", "OTJ-FLAGS-09", "never sets the bit of single precision",
        _INIT, "self._layout.flags.to_bytes", "(self._layout.flags & 2).to_bytes")  # fmt: skip
changed("precision-bit-always-set", "OTJ-FLAGS-09", "always sets the bit of single precision",
        _INIT, "self._layout.flags.to_bytes", "(self._layout.flags | 1).to_bytes")  # fmt: skip
changed("velocity-bit-never-set", "OTJ-FLAGS-10", "never sets the bit of velocities",
        _INIT, "self._layout.flags.to_bytes", "(self._layout.flags & 1).to_bytes")  # fmt: skip
changed("velocity-bit-always-set", "OTJ-FLAGS-10", "always sets the bit of velocities",
        _INIT, "self._layout.flags.to_bytes", "(self._layout.flags | 2).to_bytes")  # fmt: skip
changed("a-bit-of-its-own", "OTJ-FLAGS-11", "marks its files with a bit of its own",
        _INIT, "self._layout.flags.to_bytes", "(self._layout.flags | 1 << 31).to_bytes")  # fmt: skip
changed("step-by-way-of-float", "OTJ-FRAME-14", "writes step numbers by way of binary64",
        _APPEND, 'parts = [step.to_bytes(8, "little")', 'parts = [min(int(float(step)), MAX_STEP).to_bytes(8, "little")')  # fmt: skip
changed("step-of-32-bits", "OTJ-FRAME-14", "keeps the lower half of step numbers",
        _APPEND, 'parts = [step.to_bytes(8, "little")', 'parts = [(step % 2**32).to_bytes(8, "little")')  # fmt: skip
changed("steps-wrap", "OTJ-FRAME-15", "lets step numbers wrap around",
        _APPEND, "if not 0 <= step <= MAX_STEP:", "step %= 2**64\n    if False:")  # fmt: skip
changed("negative-step-is-zero", "OTJ-FRAME-15", "takes a negative step number for zero",
        _APPEND, "if not 0 <= step <= MAX_STEP:", "step = max(step, 0)\n    if not 0 <= step <= MAX_STEP:")  # fmt: skip
changed("time-in-double-precision", "OTJ-FRAME-16", "computes the time of a single-precision file in binary64",
        _APPEND, 'frame_times(np.array([step], dtype="<u8"), self._timestep)', '(np.array([step], dtype="<u8").astype("<f8") * self._timestep.astype("<f8")).astype(self._layout.dtype)')  # fmt: skip
changed("time-of-the-ordinal", "OTJ-FRAME-16", "computes the time from the number of the frame",
        _APPEND, "np.array([step]", "np.array([self._frames]")  # fmt: skip
changed("velocities-first", "OTJ-FRAME-17", "writes velocities before positions",
        _APPEND, "for name in ALL_COMPONENTS:", 'for name in ("vx", "vy", "vz", "x", "y", "z"):')  # fmt: skip
changed("x-and-y-swapped", "OTJ-FRAME-17", "writes y before x",
        _APPEND, "for name in ALL_COMPONENTS:", 'for name in ("y", "x", *ALL_COMPONENTS[2:]):')  # fmt: skip
changed("missing-component-is-zero", "OTJ-FRAME-18", "writes zeros for a component that is missing",
        _COMPONENT, "if values is None:", "values = np.zeros(self._layout.particles, self._layout.dtype) if values is None else values\n    if False:")  # fmt: skip
changed("any-length", "OTJ-FRAME-18", "writes components of any length",
        _COMPONENT, "if values.shape != (self._layout.particles,):", "if False:")  # fmt: skip


@mutant("OTJ-SUM-06", role="writer", mistake="writes a header's checksum of zero")
def header_without_checksum() -> None:
    @swap("otj.writer:OtjWriter._put")
    def put(original: Any, self: Any, covered: bytes) -> None:
        if self._stream.tell():
            original(self, covered)
        else:
            self._stream.write(covered + bytes(8))


@mutant("OTJ-SUM-07", role="writer", mistake="lets the checksum of a frame go on from that of the one before")
def checksums_chained() -> None:
    @swap("otj.writer:OtjWriter._put")
    def put(original: Any, self: Any, covered: bytes) -> None:
        from trajconform.otj.checksum import OFFSET_BASIS, fnv1a64

        state = fnv1a64(covered, getattr(self, "_state", OFFSET_BASIS))
        if self._stream.tell():
            self._state = state
        self._stream.write(covered + state.to_bytes(8, "little"))


changed("frame-checksum-without-its-step", "OTJ-SUM-07", "leaves the step number out of a frame's checksum",
        _PUT, "fnv1a64(covered)", "fnv1a64(covered[8:] if self._stream.tell() else covered)")  # fmt: skip


@mutant("OTJ-COUNT-02", role="writer", mistake="ends a file with a trailer", also=("OTJ-COUNT-01",))
def trailer() -> None:
    edit("otj.writer:OtjWriter.close", "self.flush()", 'self._stream.write(b"END.")\n        self.flush()')


changed("padded-frames", "OTJ-COUNT-02", "pads frames to a multiple of 64 bytes",
        _PUT, 'fnv1a64(covered).to_bytes(8, "little")', 'fnv1a64(covered).to_bytes(8, "little") + bytes(-len(covered) % 64 if self._stream.tell() else 0)',
        also=("OTJ-FRAME-01", "OTJ-FRAME-06"))  # fmt: skip
changed("buffered-to-the-end", "OTJ-TAIL-08", "holds all frames back until the file is closed",
        _APPEND, 'self._put(b"".join(parts))', 'self._held = [*getattr(self, "_held", ()), b"".join(parts)]')  # fmt: skip
