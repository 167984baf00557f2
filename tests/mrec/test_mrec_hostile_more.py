"""Hostile records that cost time or memory by what they claim: loops of links, sparse files, strings without an end."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trajconform import kit

SECONDS = 20.0
"""Far above what any of these takes, far below what one that is read as it claims would take."""
MEBIBYTES = 512


def record(folder: Path) -> Path:
    """A record with one column ``x`` of 2^30 rows in one file, and that file."""
    schema = {"blocks": {"b": {"columns": {"v": {"dtype": "f64", "trailing": []}}}}, "meta": {}}
    groups = {
        "": {},
        "trajectory": {"sequence_schema": schema, "nstep": 2**30, "step_progression": {"start": 0, "stride": 1}},
        "trajectory/b": {"uniform_rows": 1, "dense_updates": True},
    }
    for node, attributes in groups.items():
        (folder / node).mkdir(parents=True, exist_ok=True)
        document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
        (folder / node / "zarr.json").write_text(json.dumps(document))
    return folder


def array(folder: Path, rows: int, codecs: list[object]) -> Path:
    node = folder / "trajectory" / "b" / "v"
    (node / "c").mkdir(parents=True)
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [rows],
        "data_type": "float64",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [rows]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0,
        "codecs": codecs,
    }
    (node / "zarr.json").write_text(json.dumps(document))
    return node / "c" / "0"


def check(path: Path) -> tuple[int, str]:
    """`trajconform check` in a process of its own, under limits of time and memory."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MEBIBYTES << 20, MEBIBYTES << 20))

    command = [sys.executable, "-c", "from trajconform.cli import main; main()", "check", str(path)]
    begun = time.monotonic()
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "TRAJCONFORM_HOME": str(kit.root())}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=limit, env=env, check=False)
    assert time.monotonic() - begun < SECONDS
    assert "Traceback" not in done.stderr and "MemoryError" not in done.stderr, done.stderr[-500:]
    return done.returncode, done.stdout


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def test_a_sparse_index_of_a_billion_entries(tmp_path: Path) -> None:
    path = record(tmp_path / "r.mrec")
    sharding = {"chunk_shape": [1], "codecs": [LITTLE], "index_codecs": [LITTLE], "index_location": "end"}
    os.truncate(_touched(array(path, 2**30, [{"name": "sharding_indexed", "configuration": sharding}])), 2**34)
    status, out = check(path)
    assert status == 1 and "MREC-CODEC-12" in out


def test_a_sparse_chunk_of_eight_gibibytes(tmp_path: Path) -> None:
    path = record(tmp_path / "r.mrec")
    os.truncate(_touched(array(path, 2**30, [LITTLE])), 2**33)
    status, out = check(path)
    assert status == 1 and "MREC-CODEC-12" in out


@pytest.mark.parametrize("target", [".", "..", "../.."])
def test_links_that_lead_round_in_a_circle(tmp_path: Path, target: str) -> None:
    path = record(tmp_path / "r.mrec")
    _touched(array(path, 1, [LITTLE])).write_bytes(bytes(8))
    for name in ("one", "two", "three"):
        (path / "trajectory" / "b" / name).symlink_to(target)
    status, out = check(path)
    assert status in (0, 1) and out


@pytest.mark.parametrize("text", ['["' + '\\"' * 1_000_000, "[[" * 400 + '"' + '\\"' * 1_000_000, '{"a' * 300_000])
def test_strings_and_brackets_without_an_end(tmp_path: Path, text: str) -> None:
    path = record(tmp_path / "r.mrec")
    (path / "trajectory" / "zarr.json").write_text(text)
    status, out = check(path)
    assert status == 1 and "MREC-RECORD-11" in out


def _touched(path: Path) -> Path:
    path.touch()
    return path
