"""Writers that are right until something happens to them: each is caught, on the clause that it breaks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trajconform.harness import trace

SCRIPT = Path(__file__).with_name("wrong_writers.py")
WATCHED, HELD, KILLED = "watched", "held-still", "killed"


@pytest.mark.parametrize(
    ("name", "how", "clauses"),
    [
        ("commit-first", WATCHED, {"MREC-PROTO-03", "MREC-COMMIT-13"}),
        ("never-syncs", WATCHED, {"MREC-PROTO-04", "MREC-PROTO-06", "MREC-PROTO-07"}),
        ("torn-metadata", WATCHED, {"MREC-PROTO-02", "MREC-COMMIT-14"}),
        ("torn-metadata", HELD, {"MREC-PROTO-02", "MREC-COMMIT-14"}),
        ("acknowledges", KILLED, {"MREC-COMMIT-17", "MREC-PROTO-05"}),
        ("loses", KILLED, {"MREC-REOPEN-03", "MREC-COMMIT-17", "MREC-PROTO-05"}),
        ("duplicates", KILLED, {"MREC-REOPEN-04"}),
    ],
)
def test_a_wrong_writer_is_caught(name: str, how: str, clauses: set[str], tmp_path: Path) -> None:
    if how == WATCHED and trace.missing():
        pytest.skip(trace.missing())
    case, result = run_case(name, how, tmp_path)
    assert case["verdict"] == "FAIL", case
    judged = case["judges"]
    assert isinstance(judged, list)
    if how == WATCHED:
        assert clauses <= set(judged), judged
    else:
        # Which of its breaches a crash brings to light first is chance; a clause that it keeps is never named.
        assert set(judged) <= clauses, case["message"]
        assert judged
    assert result == 1


@pytest.mark.parametrize("how", [WATCHED, HELD])
def test_the_right_writer_is_not(how: str, tmp_path: Path) -> None:
    if how == WATCHED and trace.missing():
        pytest.skip(trace.missing())
    case, result = run_case("none", how, tmp_path)
    assert (case["verdict"], result) == ("PASS", 0), case


def run_case(name: str, how: str, folder: Path) -> tuple[dict[str, object], int]:
    """The verdict on one case, as the report has it, and the exit status."""
    (folder / "driver.toml").write_text(
        f'name = "wrong"\nversion = "1"\nlanguage = "Python"\ndescription = "a wrong writer"\nfeatures = ["range", '
        f'"reopen", "system", "json:text", "check:mrec", "check:otj", "single", "double"]\n'
        f'[run]\ncommand = ["{{python}}", "{SCRIPT}", "{name}"]\n'
        f'[claims]\nmrec = ["read", "write"]\notj = ["read", "write"]\n'
    )
    report = folder / "report.json"
    arguments = ["run", "--driver", str(folder), "--case", f"mrec/commit-protocol/crash-migrating@{how}"]
    command = [sys.executable, "-c", "from trajconform.cli import main; main()", *arguments]
    more = ["--kills", "4", "--seed", "1", "--json", str(report)]
    done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=120)
    assert report.is_file(), done.stdout + done.stderr
    document = json.loads(report.read_text())
    (case,) = document.get("results") or document["cases"]
    return case, done.returncode
