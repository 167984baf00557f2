"""The benchmarks run, on files too small to say how fast anything is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trajconform import kit


@pytest.mark.skipif(not (kit.root() / "benchmarks").is_dir(), reason="the benchmarks are not part of an installed kit")
def test_the_otj_pairs_and_their_json(tmp_path: Path) -> None:
    out = tmp_path / "ratios.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", "otj", "--quick", "--json", str(out), "--folder", str(tmp_path)],
        cwd=kit.root(), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    pairs = json.loads(out.read_text("utf-8"))["pairs"]
    assert pairs
    for pair in pairs:
        assert pair["ours"] > 0
        assert pair["theirs"] > 0
        assert pair["holds"] == (None if pair["needed"] is None else pair["ratio"] >= pair["needed"])
    assert done.returncode == (1 if any(pair["holds"] is False for pair in pairs) else 0)
    assert [p.name for p in tmp_path.iterdir()] == ["ratios.json"]
