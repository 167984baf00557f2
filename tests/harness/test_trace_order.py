"""The order in which arrays land, told from a log of system calls: one breach at a time, and the sound order beside it."""

import json
from pathlib import Path

import pytest

from trajconform.harness.trace import Period, elided, judge_order

MARKED = {"uniform_rows": 2, "dense_updates": True}


def log_of(placed: list[str], folder: Path) -> str:
    """A log in which each ``zarr.json`` is written beside its place and renamed over it."""
    lines = []
    for number, node in enumerate(placed):
        at, new, final = 100 + number, folder / node / "zarr.json.new", folder / node / "zarr.json"
        lines.append(f'1 {at}.1 openat(AT_FDCWD</>, "{new}", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3<{new}>')
        lines.append(f'1 {at}.2 write(3<{new}>, ""..., 9) = 9')
        lines.append(f'1 {at}.3 rename("{new}", "{final}") = 0')
    return "\n".join(lines)


def broken(placed: list[str], folder: Path, spared: frozenset[str] = frozenset()) -> dict[str, list[str]]:
    """Clause -> the places where it is broken, of the clauses about what lands first."""
    findings, _ = judge_order(log_of(placed, folder), folder, [Period("flush", 0.0, 1000.0, spared)])
    out: dict[str, list[str]] = {}
    for finding in findings:
        for clause in finding.clauses:
            if clause in ("MREC-REGULAR-20", "MREC-CELL-30", "MREC-RECORD-12"):
                out.setdefault(clause, []).append(finding.place)
    return out


@pytest.mark.parametrize(
    ("order", "late"),
    [
        (["step_index", "offset", "x", "k"], []),
        (["offset", "step_index", "k", "x"], []),
        (["step_index", "offset", "_validity", "x"], []),
        (["step_index", "x", "offset", "k"], ["x"]),
        (["x", "k", "step_index", "offset"], ["x", "k"]),
        (["x", "step_index", "offset", "k"], ["x"]),
        (["x", "k"], []),
    ],
)
def test_an_index_lands_before_the_columns_of_its_block(tmp_path: Path, order: list[str], late: list[str]) -> None:
    record = tmp_path / "out.mrec"
    placed = ["meta", *(f"trajectory/a/{name}" for name in order), "trajectory/a", "trajectory"]
    found = broken(placed, record, frozenset({"a"}))
    assert found == ({"MREC-REGULAR-20": [f"trajectory/a/{name}" for name in late]} if late else {})
    assert broken(placed, record) == {}, "a block that had no markers on disk may take any order"
    assert broken(placed, record, frozenset({"b", "box"})) == {}


@pytest.mark.parametrize(
    ("order", "late"),
    [
        (["step_index", "origin", "boundary", "vectors"], []),
        (["step_index", "vectors"], []),
        (["vectors", "step_index"], ["step_index"]),
        (["origin", "vectors", "boundary", "step_index"], ["boundary", "step_index"]),
        (["origin"], []),
    ],
)
def test_vectors_land_last_of_the_cell(tmp_path: Path, order: list[str], late: list[str]) -> None:
    record = tmp_path / "out.mrec"
    placed = ["meta", *(f"trajectory/box/{name}" for name in order), "trajectory/box", "trajectory"]
    found = broken(placed, record, frozenset({"box"}))
    assert found == ({"MREC-CELL-30": [f"trajectory/box/{name}" for name in late]} if late else {})
    assert broken(placed, record) == {}


@pytest.mark.parametrize(
    ("placed", "early"),
    [
        (["", "meta", "trajectory"], None),
        (["meta", "", "system", "trajectory"], None),
        (["", "trajectory", "meta"], "trajectory"),
        (["", "system/atoms", "meta", "trajectory"], "system/atoms"),
        (["", "trajectory"], "trajectory"),
    ],
)
def test_meta_is_the_first_section(tmp_path: Path, placed: list[str], early: str | None) -> None:
    assert broken(placed, tmp_path / "out.mrec") == ({"MREC-RECORD-12": [early]} if early else {})


def test_what_a_record_spares_is_read_from_its_groups(tmp_path: Path) -> None:
    assert elided(tmp_path) == frozenset()
    for name, attributes in {
        "a": MARKED,
        "b": {"uniform_rows": 2},
        "c": {},
        "box": {"vectors": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]},
    }.items():
        folder = tmp_path / "trajectory" / name
        folder.mkdir(parents=True)
        (folder / "zarr.json").write_text(json.dumps({"node_type": "group", "attributes": attributes}))
    assert elided(tmp_path) == frozenset({"a", "box"})


IN_PLACE = 'openat(AT_FDCWD</>, "{c}", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3<{c}>'
REMOVED = 'unlink("{c}") = 0'
CREATED = 'openat(AT_FDCWD</>, "{c}", O_RDWR|O_CREAT, 0644) = 3<{c}>'
WRITTEN = 'pwrite64(3<{c}>, ""..., 9, 0) = 9'
BESIDE = 'openat(AT_FDCWD</>, "{c}.new", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3<{c}.new>'
OVER = 'rename("{c}.new", "{c}") = 0'


@pytest.mark.parametrize(
    ("second", "how"),
    [
        ([IN_PLACE, WRITTEN], "emptied, then written anew"),
        ([REMOVED, CREATED, WRITTEN], "removed, then written anew"),
        ([REMOVED, BESIDE, OVER], "removed, then written anew"),
        ([BESIDE, OVER], ""),
        ([CREATED, WRITTEN], ""),
        ([REMOVED], ""),
    ],
)
def test_a_committed_chunk_is_there_at_every_moment(tmp_path: Path, second: list[str], how: str) -> None:
    record = tmp_path / "out.mrec"
    chunk = f"{record}/trajectory/a/x/c/0"
    lines: list[str] = []
    for call, what in enumerate(([CREATED, WRITTEN], second)):
        start = 1 + 100 * call
        lines += [f"1 {start}.{n} {line.format(c=chunk)}" for n, line in enumerate(what)]
        lines += [f"1 {start + int(line[2:5]) - 99}.5 {line.split(' ', 2)[2]}" for line in commit_of(record)]
    log = "\n".join(lines)
    findings, _ = judge_order(log, record, [Period("flush", 0.0, 100.0), Period("flush", 100.5, 200.0)])
    found = [(f.place, f.actual) for f in findings if "MREC-COMMIT-16" in f.clauses]
    assert found == ([("trajectory/a/x/c/0", how)] if how else [])


def commit_of(record: Path) -> list[str]:
    return log_of(["trajectory"], record).splitlines()
