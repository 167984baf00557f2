"""Readers of otj with one mistake each."""

from __future__ import annotations

from typing import Any

from trajconform.harness.mutants import edit, mutant, swap, without

_VIEW, _READER, _FORMAT = "otj.view", "otj.reader", "otj.format"


@mutant("OTJ-CONV-02", role="reader", mistake="decodes step numbers as signed")
def step_signed() -> None:
    edit("otj.view:FrameBatch.steps", '"<u8"', '"<i8"')


@mutant("OTJ-CONV-02", role="reader", mistake="decodes step numbers by way of binary64", also=("OTJ-FRAME-11",))
def step_by_way_of_float() -> None:
    edit("otj.reader:_frame", "int(batch.steps[row])", "int(float(batch.steps[row]))")


@mutant("OTJ-CONV-05", role="reader", mistake="normalises -0.0 by adding zero")
def negative_zero_lost() -> None:
    @swap("otj.view:FrameBatch.components")
    def components(original: Any, *args: Any) -> Any:
        return {name: values + 0 for name, values in original(*args).items()}


@mutant("OTJ-CONV-05", role="reader", mistake="widens single precision to double", also=("OTJ-FRAME-12",))
def single_widened() -> None:
    @swap("otj.view:FrameBatch.components")
    def components(original: Any, *args: Any) -> Any:
        return {name: values.astype("<f8") for name, values in original(*args).items()}


@mutant("OTJ-CONV-08", role="reader", mistake="cuts a damaged tail off the file while opening it", spoils=True)
def repairs_the_file() -> None:
    @swap("otj.reader:open_otj")
    def open_otj(original: Any, path: Any) -> Any:
        opened = original(path)
        whole = opened.layout.offset(len(opened))
        with open(path, "r+b") as file:  # noqa: PTH123
            file.truncate(whole)
        return opened


without("OTJ-HEADER-02", role="reader", mistake="does not look at the magic")
without("OTJ-HEADER-04", role="reader", mistake="does not look at the version")
without("OTJ-FLAGS-04", role="reader", mistake="ignores reserved flags")
without("OTJ-SUM-04", role="reader", mistake="does not compare the header's checksum")


@mutant("OTJ-HEADER-04", role="reader", mistake="reads every later version as version 1")
def later_versions() -> None:
    edit("otj.rules.header:version", "view.version not in (None, VERSION)", "view.version == 0")
    edit("otj.view:FileView.known", "self.version in (None, VERSION)", "self.version != 0")


@mutant("OTJ-HEADER-07", role="reader", mistake="takes a file without particles for a broken one")
def no_particles_refused() -> None:
    edit(
        "otj.rules.header:complete",
        "if not view.known:",
        "if view.layout is not None and not view.layout.particles:\n        yield Finding('empty', 16)\n    if not view.known:",
    )


@mutant("OTJ-HEADER-11", role="reader", mistake="hands the masses back in reversed order")
def masses_reversed() -> None:
    edit(
        "otj.view:HeaderBytes.masses",
        "np.frombuffer(data, self.layout.dtype)",
        "np.frombuffer(data, self.layout.dtype)[::-1].copy()",
    )


@mutant("OTJ-HEADER-12", role="reader", mistake="takes a file that ends inside its masses for one that is whole")
def header_cut_short() -> None:
    edit("otj.rules.header:complete", "view.length < view.layout.header < 2**64", "False")


@mutant("OTJ-HEADER-13", role="reader", mistake="computes the header's length modulo 2^64", also=("OTJ-HEADER-12",))
def header_length_wraps() -> None:
    edit("otj.format:Layout.header", "self.particles * self.scalar + 8", "self.particles * self.scalar % 2**64 + 8")


@mutant("OTJ-HEADER-14", role="reader", mistake="reserves room for N masses before it looks at the file's length")
def reserves_first() -> None:
    edit(
        "otj.view:FileView.layout",
        'particles = int.from_bytes(self.fixed[16:24], "little")',
        "particles = int.from_bytes(self.fixed[16:24], \"little\")\n    np.ones(min(particles, 2**60), dtype='f8')",
    )


@mutant(
    "OTJ-FLAGS-05",
    role="reader",
    mistake="guesses the size of a scalar from the length of the file",
    also=("OTJ-FLAGS-06",),
)
def scalar_size_guessed() -> None:
    edit("otj.format:Layout.scalar", "4 if self.single else 8", "8")


@mutant("OTJ-FLAGS-06", role="reader", mistake="reads single precision at the stride of double")
def stride_of_the_other() -> None:
    edit("otj.format:Layout.frame", "self.particles * self.scalar + 8", "self.particles * 8 + 8")


@mutant("OTJ-FLAGS-08", role="reader", mistake="never hands velocities back")
def velocities_dropped() -> None:
    edit(
        "otj.view:FrameBatch.components",
        "for i, name in enumerate(layout.components)",
        "for i, name in enumerate(layout.components[:3])",
    )


@mutant("OTJ-FRAME-11", role="reader", mistake="computes the time instead of handing back the stored one")
def time_computed() -> None:
    edit(
        "otj.reader:_frame",
        "batch.times[row : row + 1].reshape(())",
        "(batch.steps[row : row + 1].astype(batch.times.dtype) * batch.header.timestep).reshape(())",
    )


@mutant("OTJ-FRAME-12", role="reader", mistake="takes x, y and z of each particle for neighbours")
def components_interleaved() -> None:
    @swap("otj.view:FrameBatch.components")
    def components(original: Any, *args: Any) -> Any:
        import numpy as np

        found = original(*args)
        flat = np.concatenate([*found.values()])
        return {name: flat[i :: len(found)].copy() for i, name in enumerate(found)}


@mutant("OTJ-FRAME-13", role="reader", mistake="hands frames back sorted by step number")
def frames_sorted() -> None:
    @swap("otj.reader:OtjFile.frames")
    def frames(original: Any, self: Any, first: int, stop: int) -> Any:
        return iter(sorted(original(self, 0, len(self)), key=lambda frame: frame.step)[first:stop])


@mutant("OTJ-SUM-05", role="reader", mistake="does not compare the frames' checksums", also=("OTJ-TAIL-05",))
def frame_checksum_ignored() -> None:
    edit(
        "otj.view:FrameBatch.sound",
        "self.stored_checksums == self.computed_checksums",
        "self.stored_checksums == self.stored_checksums",
    )


@mutant("OTJ-SUM-05", role="reader", mistake="compares the lower half of the checksum")
def half_a_checksum() -> None:
    edit(
        "otj.view:FrameBatch.sound",
        "self.stored_checksums == self.computed_checksums",
        "self.stored_checksums.astype('<u4') == self.computed_checksums.astype('<u4')",
    )


@mutant("OTJ-TAIL-02", role="reader", mistake="rounds the number of frames up", also=("OTJ-COUNT-03", "OTJ-TAIL-03"))
def count_rounded_up() -> None:
    edit(
        "otj.format:Layout.count",
        "max(length - self.header, 0) // self.frame",
        "-(-max(length - self.header, 0) // self.frame)",
    )


@mutant("OTJ-COUNT-03", role="reader", mistake="loses the last frame")
def last_frame_lost() -> None:
    edit("otj.format:Layout.count", "max(length - self.header, 0)", "max(length - self.header - 1, 0)")


@mutant("OTJ-COUNT-04", role="reader", mistake="starts a range one frame late")
def range_off_by_one() -> None:
    edit("otj.reader:OtjFile.reply", "self.frames(first, ", "self.frames(first + (first > 0), ")


@mutant("OTJ-COUNT-05", role="reader", mistake="refuses a file without frames")
def no_frames_refused() -> None:
    edit(
        "otj.rules.header:complete",
        "view.length < view.layout.header < 2**64",
        "view.length <= view.layout.header < 2**64",
    )


@mutant("OTJ-TAIL-02", role="reader", mistake="refuses a file that ends inside a frame")
def cut_file_refused() -> None:
    @swap("otj.reader:open_otj")
    def open_otj(original: Any, path: Any) -> Any:
        from trajconform.model.errors import refuse

        opened = original(path)
        if opened.layout.cut(opened._view.length):
            opened.close()
            raise refuse("OTJ-TAIL-02", "frame", "cut")
        return opened


@mutant("OTJ-TAIL-03", role="reader", mistake="fills a cut frame up with zeros", also=("OTJ-COUNT-03",))
def cut_frame_filled_up() -> None:
    edit(
        "otj.format:Layout.count",
        "max(length - self.header, 0) // self.frame",
        "-(-max(length - self.header, 0) // self.frame)",
    )
    edit(
        "otj.view:FrameBatch.sound",
        "self.stored_checksums == self.computed_checksums",
        "self.stored_checksums == self.stored_checksums",
    )

    @swap("otj.view:FileView.read_into")
    def read_into(original: Any, self: Any, offset: int, buffer: Any) -> None:
        original(self, offset, buffer[: max(0, min(len(buffer), self.length - offset))])


@mutant("OTJ-TAIL-05", role="reader", mistake="drops the whole file where one frame is damaged")
def damage_loses_all() -> None:
    edit(
        "otj.reader:OtjFile.frames",
        "sound = len(batch) if batch.sound.all() else int(np.argmin(batch.sound))",
        "sound = len(batch) if batch.sound.all() else 0",
    )
