"""The worked examples of the chapters and the golden stores that they name say the same, number by number."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
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
    """The one fenced block or table of a chapter that has a text in it."""
    text = chapter(topic)
    blocks = re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    tables = re.findall(
        r"(?:^\|.*\n)+", re.sub(r"^```text\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    found = [block for block in blocks + tables if label in block]
    assert len(found) == 1, (topic, label, len(found))
    return str(found[0])


def plain(text: str) -> list[str]:
    """The lines of a drawing without branches of a tree and without what only lines up columns."""
    lines = (re.sub(r"\s+", " ", re.sub("[├└│─]", " ", line)).strip() for line in text.splitlines())
    return [re.sub(r" \]", "]", re.sub(r"\[ ", "[", line)) for line in lines if line]


def words(*values: object) -> str:
    return " ".join(map(str, values))


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


def updates(entries: list[int], nstep: int) -> list[int]:
    """The update of every frame, by the definition: the last one whose entry is at most the frame."""
    return [max((j for j, entry in enumerate(entries) if entry <= i), default=-1) for i in range(nstep)]


def block_rows(golden: str, block: str) -> list[str]:
    return [frame["blocks"][block] for frame in frames(golden) if "blocks" in frame]


def cuts(offset: list[int], values: list[Any]) -> list[list[Any]]:
    return [values[first:stop] for first, stop in pairwise(offset)]


# Each of these writes a drawing anew, every number in it from the golden store, to be compared with the one in the
# chapter. Where a figure is the drawing's own, it is read from the drawing once and everything else follows from it.


def growth_tree(text: str) -> list[str]:
    root, block = nodes("growth")["trajectory"]["attributes"], "trajectory/atoms"
    columns = root["sequence_schema"]["blocks"]["atoms"]["columns"]
    pe, entries, offset = data("growth", "meta/pe"), data("growth", "atoms/step_index"), data("growth", "atoms/offset")
    dtypes = {name: column["dtype"] for name, column in columns.items()}
    assert dtypes["x"] == dtypes["y"] == dtypes["z"] and set(dtypes) == {"element", "mol_id", "x", "y", "z"}
    assert entries == list(range(entries[-1] + 1)) and "attributes" not in nodes("growth").get(block, {})
    progression = json.dumps(root["step_progression"])
    meta_dtype = nodes("growth")["trajectory/meta/pe"]["attributes"]["meta_dtype"]
    return [
        "growth.mrec",
        f"meta attributes: molrec_version = {nodes('growth')['meta']['attributes']['molrec_version']}",
        f"trajectory attributes: sequence_schema, nstep = {root['nstep']}, step_progression = {progression}",
        f'meta/pe {root["sequence_schema"]["meta"]["pe"]["dtype"]}[{len(pe)}], attribute meta_dtype = "{meta_dtype}"',
        "atoms",
        f"step_index u64[{len(entries)}] {', '.join(map(str, entries[:3]))}, ... {entries[-1]}",
        f"offset u64[{len(offset)}] {', '.join(map(str, offset[:4]))}, ...",
        f"element {dtypes['element']}[total_rows]",
        f"mol_id {dtypes['mol_id']}[total_rows]",
        f"x, y, z {dtypes['x']}[total_rows]",
        f"box attributes: vectors = {nodes('growth')['trajectory/box']['attributes']['vectors']}",
    ]


def topology(text: str) -> list[str]:
    golden = "topology-changed"
    atomi, atomj = data(golden, "bonds/atomi"), data(golden, "bonds/atomj")
    entries, offset = data(golden, "bonds/step_index"), data(golden, "bonds/offset")
    n, nstep = offset[1] - offset[0], len(frames(golden))
    a, b, c, d = (f"{i}-{j}" for i, j in zip(atomi, atomj, strict=True))
    first, last = entries
    return [
        f"bonds {a} and {b}, written at frame {first}; at frame {last} they are {c} and {d}; nstep = {nstep}",
        "attributes arrays",
        f"before uniform_rows = {n}, dense_updates = true atomi [{words(*atomi[:n])}] atomj [{words(*atomj[:n])}]",
        f"from {last} on none of the two atomi [{words(*atomi[:n])} | {words(*atomi[n:])}]"
        f" atomj [{words(*atomj[:n])} | {words(*atomj[n:])}]",
        f"step_index {entries} offset {offset}",
        words("frame", *range(nstep)),
        words("update", *updates(entries, nstep)),
        words("rows", *block_rows(golden, "bonds")),
    ]


def states(text: str) -> list[str]:
    stated, entries, offset = frames("states"), data("states", "b/step_index"), data("states", "b/offset")
    written = dict(zip(entries, pairwise(offset), strict=True))
    ranges = [(frame.get("blocks") or {}).get("b") for frame in stated]
    names = ["absent" if r is None else "empty" if len(set(r.split(":"))) == 1 else "present" for r in ranges]
    counts = [f"{written[i][1] - written[i][0]} rows" if i in written else "-" for i in range(len(stated))]
    return [
        words("frame", *range(len(stated))),
        words("writes", *counts),
        words("state", *names),
        words("rows", *(r for r in ranges if r is not None)),
        f"step_index {entries} offset {offset} the golden `states`",
    ]


def resolution(text: str) -> list[str]:
    golden = "example-resolution"
    entries, offset, nstep = data(golden, "b/step_index"), data(golden, "b/offset"), len(frames(golden))
    found, rows = updates(entries, nstep), block_rows(golden, "b")
    assert rows == [f"{offset[j]}:{offset[j + 1]}" for j in found] and offset[-1] == offset[-2]
    return [
        f"step_index = {entries} offset = {offset}",
        words("i", *range(nstep)),
        words("largest entry <= i", *(entries[j] for j in found)),
        words("update j", *found),
        words("rows", *rows, rows[-1], "is empty, not absent"),
    ]


def resolution_with_markers(text: str) -> list[str]:
    shown = re.search(r"nstep = (\d+)", text)
    assert shown is not None
    nstep, total = int(shown[1]), len(data("example-resolution", "r/v"))
    n = nodes("example-resolution")["trajectory/r"]["attributes"]["uniform_rows"]
    count = min(total // n, nstep)
    return [
        f"uniform_rows = {n}, dense_updates = true, columns of {total} rows, nstep = {nstep}:"
        f" n_updates = min(floor({total} / {n}), {nstep}) = {count}",
        words("i", *range(nstep)),
        words("update j", *(min(i, count - 1) for i in range(nstep))),
        words("rows", *block_rows("example-resolution", "r")[:nstep]),
    ]


def columns_of_the_cell(text: str) -> list[str]:
    """No store: the matrix is the drawing's own, and a, b and c have to be its columns."""
    numbers = re.findall(r"\d+\.\d", text)
    matrix = [numbers[:3], numbers[3:6], numbers[6:]]
    a, b, c = (f"({', '.join(f'{float(row[k]):g}' for row in matrix)})" for k in range(3))
    x, y, z = (f"[{', '.join(row)}]" for row in matrix)
    return [
        "a b c",
        f"vectors[j] = [{x}, row 0: the x components of a, b, c",
        f"{y},",
        f"{z}] a = {a} b = {b} c = {c}",
    ]


def cell(text: str) -> list[str]:
    fixed, golden = nodes("example-cell-fixed")["trajectory/box"]["attributes"], "example-cell-migrated"
    assert set(fixed) == {"vectors"} and "attributes" not in nodes(golden)["trajectory/box"]
    entries, origin, vectors = (data(golden, f"box/{name}") for name in ("step_index", "origin", "vectors"))
    stated, edges = frames(golden), [int(matrix[0][0]) for matrix in vectors]
    found = updates(entries, len(stated))
    for matrix, edge in zip(vectors, edges, strict=True):
        assert matrix == [[edge * (i == k) for k in range(3)] for i in range(3)]
    for j, frame in zip(found, stated, strict=True):
        assert frame["cell"]["vectors"] == vectors[j] and frame["cell"].get("origin", [0, 0, 0]) == origin[j]
    cubes = [f"cube {edge}" for edge in edges]
    return [
        f"after frames {words(*range(len(frames('example-cell-fixed'))))} box attributes: vectors = "
        + str(fixed["vectors"]).replace(" ", ""),
        "no array",
        f"after frames 0 to {entries[1]} box step_index {entries[:2]}",
        f"vectors [{', '.join(cubes[:2])}]",
        "no attribute vectors, origin or boundary; no arrays origin and boundary: all at the default",
        f"after frames 0 to {entries[2]} box step_index {entries}",
        f"vectors [{', '.join(cubes)}]",
        f"origin [{', '.join(words(*map(int, row)) for row in origin)}] a row for every update, the past filled in",
        words("frame", *range(len(stated))),
        words("update", *found),
    ]


def cell_between_two_writes(text: str) -> list[str]:
    entries = data("example-cell-migrated", "box/step_index")[:2]
    before, new = entries
    return [
        f"written so far a reader, with nstep = {new}, uses",
        f"box/step_index {entries} the attributes",
        f"box/step_index, box/vectors [{len(entries)} updates] the arrays: entry {new} is not committed,"
        f" so one update at frame {before}",
        "all of it, attributes removed the arrays, likewise",
        f"nstep = {new + 1} the arrays, two updates",
    ]


def nullable(text: str) -> list[str]:
    golden, column = "example-nullable", "ions/charge"
    entries, offset = data(golden, "ions/step_index"), data(golden, "ions/offset")
    masks = cuts(offset, data(golden, "ions/_validity/charge"))
    found = updates(entries, len(frames(golden)))
    assert block_rows(golden, "ions") == [f"{offset[j]}:{offset[j + 1]}" for j in found]

    def shown(null: str) -> list[str]:
        parts = zip(cuts(offset, data(golden, column)), masks, strict=True)
        return [words(*(v if ok else null for v, ok in zip(values, mask, strict=True))) for values, mask in parts]

    flags = [words(*("T" if ok else "F" for ok in mask)) for mask in masks]
    read = [shown("null")[j] if entries[j] == i else f"as frame {entries[j]}" for i, j in enumerate(found)]
    return [
        f"step_index [{words(*entries)}]",
        f"offset [{words(*offset)}]",
        f"charge [{' | '.join(shown('?'))}] ? = anything: the value under F means nothing",
        f"_validity/charge [{' | '.join(flags)}]",
        words(*(f"update {j}" for j in range(len(entries)))),
        words("frame", *range(len(found))),
        words("charge", *read),
        words("mask handed back", *("none" if all(masks[j]) else flags[j] for j in found)),
    ]


def aligned(text: str) -> list[str]:
    golden, nstep = "example-aligned", len(frames("example-aligned"))
    entries, offset = data(golden, "coords/step_index"), data(golden, "coords/offset")
    assert entries == list(range(nstep))
    few, few_offset = data(golden, "types/step_index"), data(golden, "types/offset")
    kinds = [words(*part) for part in cuts(few_offset, data(golden, "types/kind"))]
    found = updates(few, nstep)
    assert block_rows(golden, "types") == [f"{few_offset[j]}:{few_offset[j + 1]}" for j in found]
    return [
        f'a water that gains a proton at frame {few[1]}: {{"coords": {{...}}, "types": {{..., "aligned_with": "coords"}}}}',
        words("frame", *range(nstep)),
        words("coords writes", *(f"{b - a} rows" for a, b in pairwise(offset)), "moves every frame"),
        words(
            "types writes",
            *(kinds[j] if few[j] == i else "-" for i, j in enumerate(found)),
            "restated when the count changes",
        ),
        words("types reads", *(kinds[j] for j in found)),
        f"coords/step_index {entries} offset {offset}",
        f"types/step_index {few} offset {few_offset}",
    ]


def references(text: str) -> list[str]:
    """The store restates the bonds at frame 2; the drawing is the run that does so one frame late."""
    golden = "example-references"
    counts = [b - a for a, b in pairwise(data(golden, "atoms/offset"))]
    pairs = list(zip(data(golden, "bonds/atomi"), data(golden, "bonds/atomj"), strict=True))
    first, second, third = cuts(data(golden, "bonds/offset"), pairs)
    assert data(golden, "bonds/step_index") == [0, 1, 2] and len(counts) == 4
    read = [first, second, second, third]
    shown = [words(*(f"({a},{b})" for a, b in bonds)) for bonds in read]
    sound = [max(map(max, bonds)) < count for bonds, count in zip(read, counts, strict=True)]
    return [
        words("frame", *range(len(counts))),
        words("atoms writes", *(f"{count} rows" for count in counts)),
        words("bonds writes", shown[0], shown[1], "-", shown[3]),
        words("bonds reads", *shown),
        words(*("sound" if ok else "not sound" for ok in sound)),
    ]


def reopen(text: str) -> list[str]:
    golden, nstep = "example-reopen", len(frames("example-reopen"))
    entries, offset = data(golden, "b/step_index"), data(golden, "b/offset")
    n = sum(entry < nstep for entry in entries)
    return [
        f"nstep = {nodes(golden)['trajectory']['attributes']['nstep']} found kept",
        f"step_index {entries} {entries[:n]} three committed updates",
        f"offset {offset} {offset[: n + 1]} one entry more",
        f"x {len(data(golden, 'b/x'))} rows rows 0:{offset[n]} offset[{n}] = {offset[n]}",
        f"meta/pe {len(data(golden, 'meta/pe'))} rows rows 0:{nstep} nstep",
    ]


def fill(text: str) -> list[str]:
    values = data("example-fill", "meta/pe")
    declared = nodes("example-fill")["trajectory"]["attributes"]["sequence_schema"]["meta"]["pe"]
    return [
        f'"pe": {json.dumps(declared)}',
        words("frame", *range(len(values))),
        words("presents", *("-" if math.isnan(v) else v for v in values)),
        f"meta/pe [{words(*('NaN' if math.isnan(v) else v for v in values))}]",
    ]


def growth_table(text: str) -> list[str]:
    offset = data("growth", "atoms/offset")
    lines = [
        f"| {i} | {frame['step']} | {first} | {stop} | {stop - first} | {frame['meta']['pe']:g} |".replace("-", "−")
        for i, (frame, (first, stop)) in enumerate(zip(frames("growth"), pairwise(offset), strict=True))
    ]
    return ["| frame | step | offset[j] | offset[j+1] | rows | pe |", "|---|---|---|---|---|---|", *lines]


def topology_between_two_writes(text: str) -> list[str]:
    entries, offset = data("topology-changed", "bonds/step_index"), data("topology-changed", "bonds/offset")
    new, before, after = entries[1], offset[1], offset[2]
    return [
        "| written so far | step_index | offset | rows | markers | nstep |"
        f" the bonds of frames 0 to {new - 1} come from |",
        "|---|---|---|---|---|---|---|",
        f"| nothing | | | {before} | yes | {new} | the markers: one update |",
        f"| `step_index` | {entries} | | {before} | yes | {new} | the markers: one array of the two does not count |",
        f"| `offset` | {entries} | {offset} | {before} | yes | {new} |"
        f" the arrays: the entry {new} is not below nstep, so one update |",
        f"| the columns | {entries} | {offset} | {after} | yes | {new} |"
        f" the arrays: one update, and rows {before}:{after} are tail |",
        f"| `zarr.json` of the block | {entries} | {offset} | {after} | no | {new} | the arrays: one update |",
        f"| `zarr.json` of `trajectory` | {entries} | {offset} | {after} | no | {new + 1} |"
        f" the arrays: update 0; frame {new} has update 1 |",
    ]


def blocks(text: str) -> list[str]:
    """The same block as in the chapter on resolution."""
    entries, offset = data("example-resolution", "b/step_index"), data("example-resolution", "b/offset")
    last = len(entries) - 1
    assert offset[last] == offset[last + 1]
    parts = [words(*part) for part in cuts(offset, list("abcdefghi"))]
    return [
        words("ordinal of the update", *entries),
        f"step_index [{words(*entries)}] u64[n_updates]",
        f"offset [{words(*offset)}] u64[n_updates + {len(offset) - len(entries)}]",
        words(*("|" for _ in offset)),
        f"x [{' | '.join(parts).rstrip()}] f64[total_rows]",
        words(*(f"update {j}" for j in range(last)), f"update {last}: zero rows"),
    ]


def blocks_with_a_tail(text: str) -> list[str]:
    """The same block, with the nstep of the store that is reopened."""
    entries, offset = data("example-resolution", "b/step_index"), data("example-resolution", "b/offset")
    nstep = len(frames("example-reopen"))
    n = sum(entry < nstep for entry in entries)
    kept, tail = ", ".join(map(str, entries[:n])), ", ".join(map(str, entries[n:]))
    cut, rest = ", ".join(map(str, offset[: n + 1])), ", ".join(map(str, offset[n + 1 :]))
    return [
        f"nstep = {nstep} step_index [{kept} | {tail}] three committed updates",
        f"offset [{cut} | {rest}] four logical entries",
        f"x [{words(*'abcdefghi'[: offset[n]])} | ...] nine logical rows",
    ]


def undefined_cell(text: str) -> list[str]:
    box = nodes("cell-undefined")["trajectory/box"]["attributes"]
    vectors, boundary = str(box["vectors"]).replace(" ", ""), json.dumps(box["boundary"])
    return [
        f"box attributes: cell_defined = {json.dumps(box['cell_defined'])}, vectors = {vectors}, boundary = {boundary}"
    ]


def changes(text: str) -> list[str]:
    """No store: the eight values are the drawing's own, and the updates follow from which of them differ."""
    shown = re.search(r"^x(.*?)\s{8,}NaN' =", text, re.MULTILINE)
    assert shown is not None
    values = shown[1].split()
    changed = [i for i, value in enumerate(values) if i == 0 or value != values[i - 1]]
    return [
        words("frame", *range(len(values))),
        words("x", *values, "NaN' = a NaN with another payload"),
        words("update", *("yes" if i in changed else "no" for i in range(len(values)))),
        f"step_index {changed}",
        f"offset {list(range(len(changed) + 1))}",
        f"x [{words(*(values[i] for i in changed))}]",
    ]


def presented(text: str) -> list[str]:
    """No store: exact arithmetic on the values presented, with the quantum of the precision that the text states."""
    stated = re.search(r"With p = ([\d.]+), after a stored ([\d.]+):", chapter("precision"))
    assert stated is not None
    exponent = math.frexp(float(stated[1]))[1] - 1
    before = Fraction(stated[2]) / Fraction(2) ** exponent
    values = [Fraction(float(value)) for value in re.findall(r"^(\d\.\d{4}) ", text, re.MULTILINE)]
    wholes = [round(value / Fraction(2) ** exponent) for value in values]
    same = ["no" if whole == before else "yes" for whole in wholes]
    a, b, c = (f"{float(value)} {whole} x 2^{exponent}" for value, whole in zip(values, wholes, strict=True))
    return [
        "presented stored(x) update?",
        f"{a} {same[0]}: the very value",
        f"{b} {same[1]}: nearer to {before} than to {before + 1}",
        f"{c} {same[2]}",
        "NaN NaN yes, once; the same NaN again: no",
    ]


def step_forms(text: str) -> list[str]:
    """The first line is a golden; in the others the steps are the drawing's own, and the form follows from them."""
    run = [frame["step"] for frame in frames("regular-run")]
    root = nodes("regular-run")["trajectory"]["attributes"]
    uneven = [int(n) for n in plain(text)[1].partition(" step = ")[0].removeprefix("steps ").split(", ")]
    assert len({b - a for a, b in pairwise(run)}) == 1 < len({b - a for a, b in pairwise(uneven)})
    single = re.search(r"with step (\d+)", text)
    assert single is not None
    return [
        f"steps {', '.join(map(str, run))} step_progression {json.dumps(root['step_progression'])}",
        f"steps {', '.join(map(str, uneven))} step = {uneven} the whole history, and no attribute",
        f'one frame with step {single[1]} step_progression {{"start": {single[1]}}}',
        "no frame neither",
    ]


#: What the check is called: the chapter, a text that only this drawing has, and what writes it anew.
DRAWINGS: dict[str, tuple[str, str, Callable[[str], list[str]]]] = {
    "growth": ("raggedness", "growth.mrec", growth_tree),
    "topology": ("regular", "from 5 on", topology),
    "states": ("states", "writes", states),
    "resolution": ("resolution", "largest entry", resolution),
    "resolution with markers": ("resolution", "columns of", resolution_with_markers),
    "columns of the cell": ("cell", "vectors[j]", columns_of_the_cell),
    "cell": ("cell", "no array\n", cell),
    "cell between two writes": ("cell", "written so far", cell_between_two_writes),
    "nullable": ("nullable", "_validity/charge", nullable),
    "aligned": ("aligned", "coords/step_index", aligned),
    "references": ("references", "bonds    reads", references),
    "reopen": ("reopen", "kept", reopen),
    "fill": ("step-meta", "presents", fill),
    "growth, frame by frame": ("raggedness", "offset[j+1]", growth_table),
    "topology between two writes": ("regular", "written so far", topology_between_two_writes),
    "blocks": ("blocks", "ordinal of the update", blocks),
    "blocks with a tail": ("blocks", "logical entries", blocks_with_a_tail),
    "undefined cell": ("cell", "cell_defined =", undefined_cell),
    "changes": ("cost", "another payload", changes),
    "presented": ("precision", "presented", presented),
    "forms of the step numbers": ("step-and-time", "no frame", step_forms),
}

#: By drawing, numbers (counted from 0 in reading order) that no check reads yet, and why.
UNREAD: dict[str, dict[int, str]] = {}

#: Drawings that nothing holds to a store: the chapter, how the drawing begins, and why.
NOT_HELD = {
    ("codecs", "trajectory/atoms/x/c/0"): "the parts of a shard file; no store of goldens has this column",
    ("commit-marker", "committed"): "no golden has this array step",
    ("commit-protocol", "1 chunk bytes"): "an order of writes, not a store",
    ("declaration", "declared"): "names of groups, no numbers",
    ("layout", "trajectory"): "shapes in letters",
    ("names", '{"blocks"'): "declarations, two of them refused",
    ("precision", "quantum"): "a formula",
    ("record", "water.mrec/"): "a record with sections that no golden has",
    ("record", "water.mrec.zip"): "paths in an archive",
    ("regular", "atoms"): "rows in letters; no golden has this half update",
    ("step-and-time", "step[i] ="): "formulas",
    ("step-meta", '{"temp"'): "a declaration that no golden has",
    ("system-side", "system/atoms"): "no golden has these coordinates",
}

NUMBER = re.compile(r"\d+(?:\.\d+)?")


def test_every_drawing_is_held_to_a_store_or_says_why_not() -> None:
    held = {drawing(topic, label) for topic, label, _ in DRAWINGS.values()}
    left = []
    for path in sorted((kit.root() / "spec" / "mrec").glob("*.md")):
        for text in re.findall(r"^```text\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL):
            if text not in held:
                left.append((path.stem, plain(text)[0]))
    assert len(left) == len(NOT_HELD)
    for (topic, begins), (stem, line) in zip(NOT_HELD, left, strict=True):
        assert topic == stem and line.startswith(begins)


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawing_and_store_say_the_same(name: str) -> None:
    topic, label, write = DRAWINGS[name]
    text = drawing(topic, label)
    assert plain(text) == write(text)


@pytest.mark.parametrize("name", DRAWINGS)
def test_no_number_of_a_drawing_changes_unnoticed(name: str) -> None:
    """Each number in turn is one more than it was: the drawing must then differ from the store."""
    topic, label, write = DRAWINGS[name]
    text = drawing(topic, label)
    unnoticed = []
    for k, number in enumerate(NUMBER.finditer(text)):
        more = str(Decimal(number[0]) + 1)
        changed = text[: number.start()] + more + text[number.end() :]
        if plain(changed) == write(changed):
            unnoticed.append(k)
    assert unnoticed == sorted(UNREAD.get(name, {}))


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
