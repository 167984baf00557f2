"""What a person sees on the command line: help, exit statuses, errors that say what, where and what to do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from trajconform import kit
from trajconform.cli import main

STORES = kit.root() / "vectors" / "mrec" / "stores"
FILES = kit.root() / "vectors" / "otj" / "files"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return int(ended.value.code or 0), out, err


@pytest.mark.parametrize(
    "command",
    [
        "run",
        "certify",
        "verify",
        "compare",
        "check",
        "inspect",
        "clauses",
        "explain",
        "coverage",
        "driver",
        "vectors",
        "spec",
    ],
)
def test_every_command_is_listed_and_has_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    status, out, _ = run(capsys, "--help")
    assert status == 0 and f"\n  {command} " in out
    status, out, _ = run(capsys, command, "--help")
    assert status == 0 and "Usage:" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rnu"], "Did you mean 'run'?"),
        (["explain", "MREC-COMIT-03"], "near: MREC-COMMIT-03"),
        (["explain", "mrec/commit-marker/none"], "there is no case"),
        (["run", "--clause", "OTJ-SUM-99"], "there is no clause 'OTJ-SUM-99'"),
        (["run", "--topic", "commits"], "there is no topic 'commits'"),
        (["explain", "mrec/states/all-tree"], "there is no case 'mrec/states/all-tree'; near: mrec/states/all-three"),
        (["run", "--case", "mrec/states/all-tree"], "near: mrec/states/all-three"),
        (["run", "--case", "nothing/*"], "no case fits"),
        (["run", "--driver", "no-such-driver"], "there is no driver 'no-such-driver'"),
        (["clauses", "--topic", "nothing"], "topics are:"),
        (["inspect", "no-such-file.otj"], "does not exist"),
    ],
)
def test_mistakes_end_with_status_2_and_a_hint(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    status, _, err = run(capsys, *arguments)
    assert status == 2
    assert says in " ".join(err.split())


def test_run_of_a_topic_says_what_it_judged(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    report = tmp_path / "deep" / "report.json"
    status, out, _ = run(capsys, "run", "--topic", "states", "--role", "reader", "--json", str(report))
    assert status == 0
    assert "mrec/states" in out and "conforms to every clause that was tested" in out
    document = json.loads(report.read_text("utf-8"))
    assert document["counts"]["PASS"] == len([c for c in document["cases"] if c["verdict"] == "PASS"]) > 10
    assert document["clauses"]["MREC-STATE-04"]["status"] == "pass"
    schemas = {
        document["$id"]: document
        for path in (kit.root() / "schema" / "kit").glob("*.json")
        if (document := json.loads(path.read_text("utf-8")))
    }
    from referencing import Registry, Resource

    registry = Registry().with_resources([(name, Resource.from_contents(s)) for name, s in schemas.items()])
    validator = jsonschema.Draft202012Validator(schemas["urn:trajconform:kit:report"], registry=registry)
    faults = [error.message for error in validator.iter_errors(json.loads(report.read_text("utf-8")))]
    assert faults == []


def test_a_failing_driver_is_shown_with_clause_bits_and_the_command_to_repeat(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    naive = kit.root() / "harness" / "drivers" / "naive"
    shutil.copytree(naive, tmp_path / "wrong", ignore=shutil.ignore_patterns("known-failures.yaml", "__pycache__"))
    driver = tmp_path / "wrong" / "driver.py"
    text = driver.read_text("utf-8")
    assert text.count("if ordinal <= i:") == 2
    driver.write_text(text.replace("if ordinal <= i:", "if ordinal < i:"), "utf-8")
    status, out, _ = run(
        capsys, "run", "--driver", str(tmp_path / "wrong"), "--case", "mrec/states/all-three", "--failures", "1"
    )
    assert status == 1
    flat = " ".join(out.split())
    assert "FAIL mrec/states/all-three" in flat
    assert "MREC-STATE-01 (reader, MUST)" in flat
    assert "expected" in flat and "got nothing" in flat
    assert "--case mrec/states/all-three --keep evidence" in flat
    assert "does not conform" in flat


def test_plain_output_is_one_line_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "run", "--case", "otj/flags/*", "--plain")
    lines = out.splitlines()
    assert status == 0 and len(lines) > 10
    assert all(line.split("\t")[0] == "PASS" and line.split("\t")[1].startswith("otj/flags/") for line in lines)


def test_explain_shows_words_place_and_cases(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "explain", "mrec-regular-07")
    flat = " ".join(out.split())
    assert status == 0
    assert "min(floor(L / N), nstep)" in flat
    assert "stands in spec/mrec/regular.md:" in flat
    assert "mrec/regular/markers@every-frame" in flat


def test_check_names_clause_place_and_value(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "run.mrec"
    shutil.copytree(STORES / "topology-changed.mrec", broken)
    document = json.loads((broken / "trajectory" / "zarr.json").read_text("utf-8"))
    document["attributes"]["nstep"] = 8.0
    (broken / "trajectory" / "zarr.json").write_text(json.dumps(document), "utf-8")
    status, out, _ = run(capsys, "check", str(broken), str(FILES / "worked-example.otj"))
    assert status == 1
    assert "MREC-COMMIT-04" in out and "nstep is 8.0" in out and "worked-example.otj: conforms" in out
    status, out, _ = run(capsys, "check", str(broken), "--output", "json")
    found = json.loads(out)["files"][0]
    assert status == 1 and found["conforms"] is False
    assert [v["clause"] for v in found["violations"]] == ["MREC-COMMIT-04"]
    status, out, _ = run(capsys, "check", str(broken), "--output", "sarif")
    sarif = json.loads(out)["runs"][0]
    assert status == 1 and [r["ruleId"] for r in sarif["results"]] == ["MREC-COMMIT-04"]
    assert sarif["tool"]["driver"]["rules"][0]["id"] == "MREC-COMMIT-04"


def test_check_of_what_is_not_there_or_no_trajectory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, _, err = run(capsys, "check", str(tmp_path / "none.mrec"))
    assert status == 2 and "no such file or folder" in err
    (tmp_path / "empty.mrec").mkdir()
    status, out, _ = run(capsys, "check", str(tmp_path / "empty.mrec"))
    assert status == 1 and "MREC-LAYOUT-08" in out


def test_inspect_of_both_formats(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "inspect", str(STORES / "states.mrec"))
    assert status == 0
    assert "frames 3 to 4      empty" in out and "frame 0            absent" in out
    status, out, _ = run(capsys, "inspect", str(FILES / "worked-example.otj"))
    assert status == 0 and "velocities" in out and "tail        clean" in out
    status, out, _ = run(capsys, "inspect", str(STORES / "growth.mrec"), "--output", "json")
    facts = json.loads(out)
    assert facts["frames"] == 19 and facts["blocks"][0]["runs"][0] == {
        "first": 0,
        "last": 1,
        "state": "present",
        "rows": 2,
    }


def test_inspect_says_why_a_reader_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "cut.otj"
    file.write_bytes((FILES / "worked-example.otj").read_bytes()[:20])
    status, _, err = run(capsys, "inspect", str(file))
    assert status == 1 and "refused" in err and "OTJ-HEADER-12" in err


def test_real_files(capsys: pytest.CaptureFixture[str], real_data: Path) -> None:
    for name, precision in (("kepler-double.otj", "double"), ("kepler-single.otj", "single")):
        status, out, _ = run(capsys, "inspect", str(real_data / name))
        assert status == 0
        facts = dict(line.split(None, 1) for line in out.splitlines())
        assert (facts["particles"], facts["frames"], facts["precision"]) == ("2", "11", precision)
        assert run(capsys, "check", str(real_data / name))[0] == 0


def test_coverage_lists_what_no_case_can_fail(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "coverage", "--format", "otj", "--output", "json")
    entries = {entry["clause"]: entry for entry in json.loads(out)}
    assert status == 0 and entries["OTJ-SUM-04"]["refusing"] and entries["OTJ-FRAME-11"]["accepting"]
    status, out, _ = run(capsys, "coverage", "--format", "otj", "--output", "md")
    assert status == 0 and "| OTJ-SUM-04 | reader | MUST |" in out


@pytest.mark.parametrize(
    "arguments", [["--format", "otj"], ["--format", "mrec", "--role", "reader", "--role", "store"]]
)
def test_no_must_clause_is_untested(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    status, _, err = run(capsys, "coverage", *arguments, "--require", "must")
    assert status == 0, err


def test_check_goes_on_behind_a_file_that_is_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.otj")
    assert run(capsys, "inspect", str(tmp_path / "pipe.otj"))[0] == 2
    assert run(capsys, "check", str(tmp_path / "pipe.otj"))[0] == 2
    (tmp_path / "words.txt").write_text("neither one nor the other")
    status, out, err = run(
        capsys, "check", str(tmp_path / "pipe"), str(tmp_path / "words.txt"), str(STORES / "growth.mrec")
    )
    assert status == 2
    assert "pipe: not looked at" in err and "words.txt: not looked at" in err and "growth.mrec: conforms" in out


def test_a_stale_entry_is_named_by_every_run_that_takes_it_in(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    known = tmp_path / "known.yaml"
    known.write_text(
        "- {case: otj/flags/renamed, clause: OTJ-FLAGS-02, reason: was wrong once}\n"
        "- {case: 'otj/tail/*', clause: OTJ-TAIL-02, reason: elsewhere}\n"
    )
    status, out, _ = run(capsys, "run", "--topic", "flags", "--expect", str(known))
    assert status == 1
    assert "stale entry otj/flags/renamed no case 'otj/flags/renamed' exists any more" in " ".join(out.split())
    assert "otj/tail" not in out
    status, _, err = run(capsys, "run", "--case", "otj/flags/renamed", "--expect", str(known))
    assert status == 2 and "still lists otj/flags/renamed" in " ".join(err.split())


EVERY_KIND_OF_OUTPUT = [
    ["--help"],
    ["--version"],
    ["run", "--help"],
    ["run", "--topic", "flags"],
    ["run", "--topic", "flags", "--plain"],
    ["clauses"],
    ["explain", "OTJ-SUM-04"],
    ["inspect", str(FILES / "worked-example.otj")],
    ["check", str(FILES / "worked-example.otj"), "--output", "json"],
    ["driver", "list"],
]
"""Help, click's own lines, rich's tables, documents."""


def start(*arguments: str, **streams: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "trajconform", *arguments], text=True, **streams)


@pytest.mark.parametrize("arguments", EVERY_KIND_OF_OUTPUT, ids=" ".join)
def test_a_reader_that_went_away_ends_a_command_quietly(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start(*arguments, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (process.communicate()[1], process.returncode) == ("", 141)


@pytest.mark.parametrize("arguments", EVERY_KIND_OF_OUTPUT, ids=" ".join)
def test_output_that_cannot_be_written_is_said_in_one_line(arguments: list[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("w") as full:
        process = start(*arguments, stdout=full, stderr=subprocess.PIPE)
        said = process.communicate()[1]
    assert said == "trajconform: the output could not be written: No space left on device\n"
    assert process.returncode == 74


def test_a_fault_of_standard_error_ends_as_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start("explain", "OTJ-NONE-01", stdout=subprocess.PIPE, stderr=writing)
    os.close(writing)
    assert (process.communicate()[0], process.returncode) == ("", 141)


def halting(folder: Path) -> Path:
    """The naive driver, which stops at a fifth request to read and hears no signal that it may ignore."""
    shutil.copytree(kit.root() / "harness" / "drivers" / "naive", folder, ignore=shutil.ignore_patterns("known*"))
    driver = folder / "driver.py"
    text = driver.read_text("utf-8")
    start_of_it = "    for line in sys.stdin:\n        request = json.loads(line)\n"
    assert text.count(start_of_it) == 1
    counting = (
        "    import pathlib, signal, time\n    signal.signal(signal.SIGINT, signal.SIG_IGN)\n    reads = 0\n"
        + start_of_it
        + "        reads += request['op'] == 'read'\n        if reads == 5:\n"
        "            pathlib.Path(__file__).with_name('halted').touch()\n            time.sleep(600)\n"
    )
    driver.write_text(text.replace(start_of_it, counting), "utf-8")
    return folder


class Stuck:
    """A driver in process whose first read never returns: nothing can end it, so an interrupted run waits for it."""

    def read(self, **_: object) -> None:
        Path(os.environ["HALTED"]).touch()
        time.sleep(600)


def interrupted(halted: Path, driver: str, *options: str) -> subprocess.Popen[str]:
    """A run whose driver says nothing more, and which has just been sent SIGINT."""
    lines = [
        "import signal; from trajconform.cli import main",
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in a shell's background ignore it",
        "main()",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", "\n".join(lines), "run", "--driver", driver, "--topic", "states", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HALTED": str(halted), "PYTHONPATH": str(Path(__file__).parent)},
    )
    deadline = time.monotonic() + 60
    while not halted.exists():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    return process


def test_ctrl_c_reports_what_was_judged_and_ends_with_130(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    driver = halting(tmp_path / "driver")
    process = interrupted(driver / "halted", str(driver), "--json", str(report))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in err
    document = json.loads(report.read_text("utf-8"))
    assert document["interrupted"] and len(document["cases"]) == 4 < document["planned"]
    assert f"interrupted after 4 of {document['planned']} cases" in " ".join(out.split())


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    process = interrupted(tmp_path / "halted", "test_cli:Stuck")
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out == "", "an interrupted run that waited its 5 s for a driver which cannot be ended would report"
    assert process.returncode == 130 and "Traceback" not in err and "interrupted" in err
