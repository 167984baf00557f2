"""The arithmetic of lengths and offsets."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajconform.otj.format import Layout

LAYOUTS = st.builds(Layout, st.integers(0, 2**64 - 1), st.booleans(), st.booleans())


def test_the_four_kinds_are_those_of_the_specification(repository: Path) -> None:
    table = re.findall(
        r"^\| (\d) \| (\d) \| (\d) \| (\d+) \+ (\d+)N \| (\d+) \+ (\d+)N \|$",
        (repository / "spec/otj/flags.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(table) == 4
    for row in table:
        flags, scalar, components, h0, h1, f0, f1 = map(int, row)
        for particles in (0, 1, 5, 2**61, 2**64 - 1):
            layout = Layout(particles, bool(flags & 1), bool(flags & 2))
            assert (layout.flags, layout.scalar, len(layout.components)) == (flags, scalar, components)
            assert layout.header == h0 + h1 * particles
            assert layout.frame == f0 + f1 * particles


@given(LAYOUTS)
def test_parts_add_up(layout: Layout) -> None:
    assert layout.header == 24 + layout.scalar + layout.particles * layout.scalar + 8
    spans = [layout.component(i) for i in range(len(layout.components))]
    assert spans[0].start == 8 + layout.scalar
    assert all(a.stop == b.start for a, b in pairwise(spans))
    assert spans[-1].stop + 8 == layout.frame
    assert all(span.stop - span.start == layout.particles * layout.scalar for span in spans)


@given(LAYOUTS, st.integers(0, 50), st.integers(0, 2**70))
def test_counting_floors_and_offsets_ascend(layout: Layout, frames: int, extra: int) -> None:
    cut = extra % layout.frame
    length = layout.header + frames * layout.frame + cut
    assert layout.count(length) == frames
    assert layout.cut(length) == cut
    assert layout.offset(frames) == length - cut


@pytest.mark.parametrize("length", [0, 23, 55])
def test_no_frames_in_less_than_a_header(length: int) -> None:
    assert Layout(2, False, False).count(length) == 0
    assert Layout(2, False, False).cut(length) == 0


def test_examples_of_the_chapter_on_counting(repository: Path) -> None:
    chapter = " ".join((repository / "spec/otj/counting.md").read_text("utf-8").split())
    first, second = Layout(2, False, False), Layout(5, True, True)
    assert (
        f"H = 32 + 8 + 16 = {first.header}, F = 16 + 8 + 48 = {first.frame}, K = 792 / 72 = {first.count(848)}"
        in chapter
    )
    assert f"H = 32 + 4 + 20 = {second.header}, F = 16 + 4 + 120 = {second.frame}" in chapter
    assert f"K = floor(944 / 140) = {second.count(1000)}, and {second.cut(1000)} bytes belong" in chapter
