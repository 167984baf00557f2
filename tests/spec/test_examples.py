"""The worked examples of the chapters and the golden stores that they name say the same, number by number."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from trajconform import kit
from trajconform.vectors.build import golden_names
from trajconform.vectors.cases import golden_declaration


def chapter(topic: str) -> str:
    return (kit.root() / "spec" / "mrec" / f"{topic}.md").read_text("utf-8")


def drawing(topic: str, label: str) -> str:
    """The one fenced block of a chapter that has a text in it."""
    blocks = re.findall(r"^```text\n(.*?)^```", chapter(topic), re.MULTILINE | re.DOTALL)
    found = [block for block in blocks if label in block]
    assert len(found) == 1, (topic, label, len(found))
    return str(found[0])


def brackets(text: str, label: str) -> list[int]:
    """The integers in the brackets that follow a label."""
    found = re.search(re.escape(label) + r"\s*=?\s*\[([^\]]*)\]", text)
    assert found is not None, label
    return [int(n) for n in re.findall(r"-?\d+", found[1])]


def cells(text: str, label: str) -> list[str]:
    """What follows a label on its line, cut at wide gaps."""
    line = next(line for line in text.splitlines() if line.startswith(label))
    return re.split(r"\s{2,}", line[len(label) :].strip())


def nodes(golden: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = golden_declaration(kit.root(), "mrec", golden)["nodes"]
    return found


def frames(golden: str) -> list[Mapping[str, Any]]:
    return list(golden_declaration(kit.root(), "mrec", golden)["frames"])


def data(golden: str, node: str) -> list[Any]:
    return list(nodes(golden)[f"trajectory/{node}"]["data"])


def test_every_example_is_named_in_a_chapter() -> None:
    text = "".join(path.read_text("utf-8") for path in (kit.root() / "spec" / "mrec").glob("*.md"))
    named = set(re.findall(r"golden(?:s)? ?`([a-z-]+)`|`(example-[a-z-]+)`", text))
    flat = {name for pair in named for name in pair if name}
    examples = {name for name in golden_names(kit.root(), "mrec") if name.startswith("example-")}
    assert examples <= flat
    assert flat <= set(golden_names(kit.root(), "mrec")), flat


def test_growth_frame_by_frame() -> None:
    rows = re.findall(
        r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\S+) \|$", chapter("raggedness"), re.MULTILINE
    )
    offset, stated = data("growth", "atoms/offset"), frames("growth")
    assert len(rows) == len(stated) == 19
    for i, (frame, step, first, stop, count, energy) in enumerate(rows):
        assert (int(frame), int(step)) == (i, stated[i]["step"])
        assert (int(first), int(stop)) == (offset[i], offset[i + 1]) and int(count) == offset[i + 1] - offset[i]
        assert stated[i]["blocks"]["atoms"] == f"{first}:{stop}"
        assert float(energy.replace("−", "-")) == stated[i]["meta"]["pe"] == data("growth", "meta/pe")[i]
    assert data("growth", "atoms/step_index") == list(range(19))
    assert f"total_rows is {offset[-1]}" in chapter("raggedness")


def test_a_topology_that_changes_at_frame_5() -> None:
    text = drawing("regular", "from 5 on")
    assert brackets(text, "step_index") == data("topology-changed", "bonds/step_index")
    assert brackets(text, "offset") == data("topology-changed", "bonds/offset")
    atomi = re.findall(r"atomi \[([^\]]*)\]", text)
    atomj = re.findall(r"atomj \[([^\]]*)\]", text)
    for shown, node in ((atomi, "bonds/atomi"), (atomj, "bonds/atomj")):
        before, after = ([int(n) for n in re.findall(r"\d+", part)] for part in shown)
        assert after == data("topology-changed", node) and before == after[:2]
    assert cells(text, "rows") == [frame["blocks"]["bonds"] for frame in frames("topology-changed")]


def test_states() -> None:
    text = drawing("states", "step_index [ 1, 3, 5 ]")
    assert brackets(text, "step_index") == data("states", "b/step_index")
    assert brackets(text, "offset") == data("states", "b/offset")
    stated = frames("states")
    for state, frame in zip(cells(text, "state"), stated, strict=True):
        block = (frame.get("blocks") or {}).get("b")
        assert state == ("absent" if block is None else "empty" if len(set(block.split(":"))) == 1 else "present")
    assert cells(text, "rows") == [frame["blocks"]["b"] for frame in stated if "blocks" in frame]


def test_resolution() -> None:
    text = drawing("resolution", "largest entry")
    assert brackets(text, "step_index") == data("example-resolution", "b/step_index")
    assert brackets(text, "offset") == data("example-resolution", "b/offset")
    assert cells(text, "rows")[:8] == [frame["blocks"]["b"] for frame in frames("example-resolution")]
    text = drawing("resolution", "columns of 6 rows")
    assert len(data("example-resolution", "r/v")) == 6
    assert cells(text, "rows") == [frame["blocks"]["r"] for frame in frames("example-resolution")][:5]


def test_a_cell_that_is_fixed_and_migrates() -> None:
    text = drawing("cell", "after frames 0 1 2")
    attributes = nodes("example-cell-fixed")["trajectory/box"]["attributes"]
    cube = [int(n) for n in re.findall(r"\d+", text.split("vectors = ")[1].split("\n")[0])]
    assert [n for row in attributes["vectors"] for n in row] == cube and set(attributes) == {"vectors"}
    last = text.split("after frames 0 to 5")[1]
    assert brackets(last, "step_index") == data("example-cell-migrated", "box/step_index")
    edges = [vectors[0][0] for vectors in data("example-cell-migrated", "box/vectors")]
    assert brackets(last, "vectors") == edges
    assert brackets(last, "origin") == [int(n) for row in data("example-cell-migrated", "box/origin") for n in row]
    assert "attributes" not in nodes("example-cell-migrated")["trajectory/box"]
    for update, frame in zip(cells(text, "update"), frames("example-cell-migrated"), strict=True):
        assert frame["cell"]["vectors"][0][0] == edges[int(update)]


def test_masks_cut_by_offset() -> None:
    text = drawing("nullable", "_validity/charge     [ T")
    assert brackets(text, "step_index") == data("example-nullable", "ions/step_index")
    assert brackets(text, "offset") == data("example-nullable", "ions/offset")
    flags = re.search(r"_validity/charge\s+\[([^\]]*)\]", text)
    assert flags and [c == "T" for c in re.findall("[TF]", flags[1])] == data(
        "example-nullable", "ions/_validity/charge"
    )
    shown = re.search(r"^charge\s+\[([^\]]*)\]", text, re.MULTILINE)
    values = re.findall(r"-?\d\.\d|\?", shown[1]) if shown else []
    for value, stored, valid in zip(
        values, data("example-nullable", "ions/charge"), data("example-nullable", "ions/_validity/charge"), strict=True
    ):
        assert (value == "?") is not valid
        assert not valid or float(value) == stored


def test_aligned_growth() -> None:
    text = drawing("aligned", "coords/step_index")
    for block in ("coords", "types"):
        line = next(line for line in text.splitlines() if line.startswith(f"{block}/step_index"))
        assert brackets(line, "step_index") == data("example-aligned", f"{block}/step_index")
        assert brackets(line, "offset") == data("example-aligned", f"{block}/offset")
    reads = next(line for line in text.splitlines() if line.startswith("types     reads"))
    kinds = data("example-aligned", "types/kind")
    shown = re.split(r"\s{2,}", reads.removeprefix("types     reads").strip())
    for words, frame in zip(shown, frames("example-aligned"), strict=False):
        first, stop = map(int, frame["blocks"]["types"].split(":"))
        assert words.split() == kinds[first:stop]


def test_references() -> None:
    text = drawing("references", "bonds    reads")
    counts = [int(n) for n in re.findall(r"(\d+) rows", text)]
    offset = data("example-references", "atoms/offset")
    assert counts == [b - a for a, b in pairwise(offset)]
    reads = next(line for line in text.splitlines() if line.startswith("bonds    reads"))
    pairs = [(int(a), int(b)) for a, b in re.findall(r"\((\d),(\d)\)", reads)]
    stored = list(
        zip(data("example-references", "bonds/atomi"), data("example-references", "bonds/atomj"), strict=True)
    )
    assert pairs[:4] == stored[:4] and pairs[6:] == stored[4:]
    assert max(pairs[4] + pairs[5]) >= counts[2], "the frame that is not sound has to be so"


def test_what_a_reopening_writer_finds() -> None:
    text = drawing("reopen", "kept")
    for name, node in (("step_index", "b/step_index"), ("offset", "b/offset")):
        line = next(line for line in text.splitlines() if line.startswith(name))
        found, kept = ([int(n) for n in re.findall(r"\d+", part)] for part in re.findall(r"\[([^\]]*)\]", line)[:2])
        assert found == data("example-reopen", node) and kept == found[: len(kept)]
    assert (
        f"{len(data('example-reopen', 'b/x'))} rows" in text
        and f"{len(data('example-reopen', 'meta/pe'))} rows" in text
    )
    assert f"nstep = {len(frames('example-reopen'))}" in text


def test_a_fill() -> None:
    text = drawing("step-meta", "meta/pe    [ -1.5")
    shown = re.search(r"meta/pe\s+\[([^\]]*)\]", text)
    assert shown is not None
    for word, value in zip(shown[1].split(), data("example-fill", "meta/pe"), strict=True):
        assert math.isnan(value) if word == "NaN" else float(word) == value


ROUNDING = re.compile(r"^\| (\S+) \| (2\^-?\d+|\d) \| (−?[\d.]+) \| (−?[\d.]+) \| (.+) \|$", re.MULTILINE)


@pytest.mark.parametrize("row", ROUNDING.findall(chapter("precision")))
def test_rounding_table(row: tuple[str, ...]) -> None:
    """Exact arithmetic on the binary64 values of the table."""
    p, q, x, quotient, stored = (cell.replace("−", "-") for cell in row)
    quantum = Fraction(2) ** int(q[2:]) if "^" in q else Fraction(int(q))
    assert quantum <= Fraction(float(p)) < 2 * quantum
    value = Fraction(float(x))
    assert abs(value / quantum - Fraction(quotient)) < Fraction(1, 1000)
    result = float(stored.split("=")[-1].split(",")[0])
    whole = round(value / quantum)  # ties to even
    assert Fraction(result) == whole * quantum
    assert math.copysign(1, result) == math.copysign(1, float(x))


def test_the_rounding_table_is_read() -> None:
    assert len(re.findall(r"^\| (0\.001|1|3) \|", chapter("precision"), re.MULTILINE)) >= 8


def test_times_of_start_and_stride_one_tenth() -> None:
    """The figures of the step-and-time chapter: formula, sum and fused product, in exact arithmetic."""
    text = " ".join(chapter("step-and-time").split())
    tenth, added = 0.1, [0.1]
    for _ in range(7):
        added.append(added[-1] + tenth)
    formula = [float(Fraction(tenth) + Fraction(float(Fraction(i) * Fraction(tenth)))) for i in range(8)]
    fused = [float(Fraction(tenth) + Fraction(i) * Fraction(tenth)) for i in range(8)]
    assert formula[:6] == added[:6]
    assert f"For i = 6 the formula gives {formula[6]!r} and the sum is {added[6]!r}" in text
    assert f"for i = 7 it is {formula[7]!r} against {added[7]!r}" in text
    assert f"{fused[5]!r} for i = 5, where the formula gives {formula[5]!r}" in text
