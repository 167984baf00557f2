"""`driver check`: drivers that are wrong in one way each, and what they are told."""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from trajconform import kit
from trajconform.cli import main_group
from trajconform.harness import diagnosis
from trajconform.harness.diagnosis import Rule
from trajconform.harness.drivertoml import REFERENCE, list_drivers, load_driver
from trajconform.harness.examine import QUESTIONS, Step, examine
from trajconform.harness.inprocess import InProcess
from trajconform.harness.scaffold import LANGUAGES
from trajconform.harness.serve import MEMBERS
from trajconform.model.errors import TrajconformError
from trajconform.report.conversation import Advised, render_step
from trajconform.vectors.cases import load_cases

HERE = Path(__file__).parent
PAGE = (kit.root() / "harness" / "PROTOCOL.md").read_text("utf-8")

TOML = """
name = "wrong"
language = "Python"
{features}
[run]
command = ["{{python}}", "{program}", "{how}"]
[claims]
otj = {claims}
[limits]
start_seconds = {start}
request_seconds = {seconds}
reply_mib = 1
log_mib = 1
memory_mib = 256
"""


def talk_in(
    tmp_path: Path,
    how: str,
    *,
    seconds: float = 10.0,
    start: float = 20.0,
    features: str = "",
    claims: str = '["read"]',
) -> Path:
    """The folder of a driver that is wrong in one way."""
    folder = tmp_path / "wrong"
    folder.mkdir()
    shutil.copy(kit.root() / "harness" / "templates" / "python" / "otj" / "reader.py", folder)
    shutil.copy(HERE / "wrong.py", folder / "wrong.py")
    given = f"features = {features}" if features else ""
    (folder / "driver.toml").write_text(
        TOML.format(features=given, program="wrong.py", how=how, claims=claims, seconds=seconds, start=start)
    )
    return folder


def talk(
    tmp_path: Path,
    how: str,
    *,
    seconds: float = 10.0,
    start: float = 20.0,
    features: str = "",
    claims: str = '["read"]',
) -> list[Step]:
    """The conversation with such a driver."""
    folder = talk_in(tmp_path, how, seconds=seconds, start=start, features=features, claims=claims)
    steps: list[Step] = []
    examine(load_driver(folder), None, steps.append)
    return steps


def rules() -> list[Rule]:
    found = [value for value in vars(diagnosis).values() if isinstance(value, Rule)]
    return [*found, *diagnosis._REPLIES.values()]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.quote[:40])
def test_what_is_quoted_stands_on_the_page_under_its_heading(rule: Rule) -> None:
    sections = re.split(r"^#+ (.*)$", PAGE, flags=re.MULTILINE)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert rule.quote in " ".join(texts[rule.section].split())


def test_the_features_are_those_of_the_page() -> None:
    table = re.search(r"\| feature \| meaning \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE)
    assert table is not None
    named = re.findall(r"`([a-z:]+)`", "\n".join(line.split("|")[1] for line in table[1].splitlines()))
    assert tuple(named) == diagnosis.FEATURES


def test_served_objects_get_the_members_of_the_schema() -> None:
    requests = json.loads((kit.root() / "schema" / "kit" / "request.schema.json").read_text("utf-8"))["$defs"]
    members = {op: set(requests[op]["properties"]) - {"id", "op"} for op in MEMBERS}
    assert {op: set(names) for op, names in MEMBERS.items()} == members
    others = set(requests) - set(MEMBERS) - {"id", "format", "path", "declaration", "hello"}
    assert all(set(requests[op]["properties"]) == {"id", "op"} for op in others)


def test_the_questions_are_cases() -> None:
    known = {case.id for case in load_cases(kit.root(), globs=[name.partition("@")[0] for name, _ in QUESTIONS])}
    assert [name for name, _ in QUESTIONS if name not in known] == []


def test_nothing_is_said_of_a_driver_that_is_right(tmp_path: Path) -> None:
    steps = talk(tmp_path, "fine")
    assert [step.words for step in steps if step.remarks] == []
    assert len(steps) > 9
    assert [step.request["op"] for step in steps[-3:]] == ["rewind", "bye", "end of input"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("format_name", ["otj", "mrec"])
def test_new_drivers_are_right(tmp_path: Path, language: str, format_name: str) -> None:
    tools = {"node": "node", "c": "gcc", "rust": "cargo"}
    if language in tools and shutil.which(tools[language]) is None:
        pytest.skip(f"{tools[language]} is not on PATH")
    folder = str(tmp_path / "mine")
    runner = CliRunner()
    assert not runner.invoke(
        main_group, ["driver", "new", "--language", language, "--format", format_name, folder]
    ).exception
    said = runner.invoke(main_group, ["driver", "check", folder], standalone_mode=False)
    assert said.return_value == 0, said.output
    assert "next: trajconform run --driver" in said.output
    notes = [line for line in said.output.splitlines() if line.startswith("!")]
    # The first reader of mrec says of blocks that it does not read them yet.
    assert len(notes) == (0 if format_name == "otj" else 3), said.output


def test_the_bundled_implementation_is_right_in_every_role() -> None:
    steps: list[Step] = []
    said = examine(REFERENCE, None, steps.append)
    assert said["name"] == "reference"
    assert [(step.words, step.remarks) for step in steps if step.remarks] == []
    assert {step.request["op"] for step in steps} >= {"read", "check", "create", "append", "flush", "close", "reopen"}


# how -> words of what is wrong, words of what to do, the section of the page
WRONG = {
    "not-json": ("not one JSON object", "JSON library", "The driver protocol"),
    "banner": ("text that is no JSON", "standard error", "The driver protocol"),
    "chatter": ("text that is no JSON", "standard error", "The driver protocol"),
    "chatter-after": ("text follows the reply", "standard error", "The driver protocol"),
    "twice": ("a second reply follows", "once", "A conversation"),
    "empty-line": ("an empty line came", "one line feed", "The driver protocol"),
    "empty-line-after": ("an empty line follows", "one line feed", "The driver protocol"),
    "pretty": ("spread over several lines", "without line breaks", "The driver protocol"),
    "repr": ("not one JSON object", "prints its own object", "The driver protocol"),
    "repr-bool": ("not one JSON object", "true, false and null", "The driver protocol"),
    "nan": ("NaN is no JSON value", "travels as its bits", "The driver protocol"),
    "bom": ("byte order mark", "UTF-8 without", "The driver protocol"),
    "utf16": ("UTF-16", "UTF-8", "The driver protocol"),
    "not-utf8": ("not UTF-8", "base64, never as raw bytes", "The driver protocol"),
    "two-on-a-line": ("two things stand on the line", "line feed after each", "The driver protocol"),
    "a-list": ("an object, not a list", "A reply is an object", "The driver protocol"),
    "member-twice": ("stands twice", "once", "The driver protocol"),
    "text-id": ('has the id "2"', "without quotes", "A conversation"),
    "no-id": ("has no id", '"id": 2', "A conversation"),
    "own-ids": ("has the id 101", "copy the id", "A conversation"),
    "id-of-before": ("has the id 1", "earlier request", "A conversation"),
    "two-kinds": ('has "ok", "error" beside its id', "Decide for one", "Four kinds of reply"),
    "no-kind": ('has "format", "particles"', 'inside "ok"', "Four kinds of reply"),
    "more-than-a-kind": ('"seconds" beside its id', 'Leave "seconds" out', "Four kinds of reply"),
    "empty": ("has nothing beside its id", '"ok": {}', "Four kinds of reply"),
    "rejected": ('has "rejected" beside its id', 'the word is "refused"', "Four kinds of reply"),
    "refused-text": ("refused: ", "Send an object there", "Four kinds of reply"),
    "refused-without-reason": ("refused lacks 'reason'", '"reason"', "Four kinds of reply"),
    "error-for-refused": ("a reader refuses this file", "send refused", "Four kinds of reply"),
    "ok-for-refused": ("accepted what a reader refuses", "OTJ-HEADER-02", "Four kinds of reply"),
    "hello-without-version": ("ok lacks 'version'", "Add version", "`hello`"),
    "version-number": ("ok.version: 2.1 is not of type 'string'", "Send a string there", "`hello`"),
    "hello-error": ("hello was answered with error", "Answer hello with ok", "`hello`"),
    "claims-more": ("claims to read mrec, and driver.toml does not", "[claims]", "`driver.toml`"),
    "claims-range": ("claims the feature range", "features in driver.toml", "`driver.toml`"),
    "big-endian": ("expected", "big-endian", "Exact values"),
    "wrong-dtype": ("expected f64, got f32", "The file holds f64", "Exact values"),
    "numpy-dtype": ("'float64' is not one of", "'f64'", "Exact values"),
    "list-data": (".data: [1.0] is not of type 'string'", "base64", "Exact values"),
    "line-breaks": ("line breaks", "one piece", "Exact values"),
    "unsigned-zero": ("-0.0", "sign of a zero", "Exact values"),
    "short-data": ("takes 8 bytes, data holds 7", "product of the shape", "Exact values"),
    "scalar-shape": ("timestep.shape", "shape []", "Exact values"),
    "no-shape": ("lacks 'shape'", "a scalar has the shape []", "Exact values"),
    "number-for-array": ("ok.timestep: 0.5 is not of type 'object'", "a scalar has the shape []", "Exact values"),
    "rounded-steps": (".step: expected", "through a double", "Exact values"),
    "missing-member": ("ok lacks 'masses'", "Add masses", "The reply for `otj`"),
    "unknown-member": ("'mass' was unexpected", "'masses' is what it is called", "The reply for `otj`"),
    "null-member": ("ok.tail: None is not of type 'object'", "null stands nowhere", "The reply for `otj`"),
    "frames-missing": ("frames.length", "trajconform inspect", "The driver protocol"),
    "edits-input": ("reading changed the input", "reading only", "`read`"),
    "ascii-paths": ("cannot open", "its log", "Four kinds of reply"),
    "strict-members": ("unknown member", "its log", "Four kinds of reply"),
    "crash": ("killed by SIGABRT", "standard error", "Four kinds of reply"),
    "one-shot": ("exited with status 0", "Go on reading requests", "A conversation"),
    "no-line-feed-and-out": ("without the line feed", "line feed", "The driver protocol"),
    "half-a-line": ("a part of a line", "line feed", "The driver protocol"),
    "close-output": ("closed its output", "Keep standard output open", "The driver protocol"),
    "flood": ("flooded its output", "reply_mib", "`driver.toml`"),
    "flood-log": ("flooded its log", "log_mib", "`driver.toml`"),
    "memory": ("too much memory", "memory_mib", "`driver.toml`"),
    "dies-at-once": ("exited with status 1", "[setup]", "Four kinds of reply"),
}  # fmt: skip


def graves(steps: list[Step]) -> list[tuple[str, str, str]]:
    return [(r.wrong, r.do, r.rule.section) for step in steps for r in step.remarks if r.grave]


def holds(found: list[tuple[str, str, str]], wanted: tuple[str, str, str]) -> bool:
    wrong, do, section = wanted
    return any(wrong in w and do in d and section == s for w, d, s in found)


@pytest.mark.parametrize("how", WRONG)
def test_what_is_wrong_is_explained(tmp_path: Path, how: str) -> None:
    steps = talk(tmp_path, how)
    assert holds(graves(steps), WRONG[how]), graves(steps)


# Drivers that keep silent: each costs its limit, so the limit is short.
SILENT = {
    "never-reads": ("nobody reads it", "line by line", "A conversation"),
    "hangs-at-start": ("though the request was read", "start_seconds", "`driver.toml`"),
    "hang": ("though the request was read", "request_seconds", "`driver.toml`"),
    "no-flush": ("once the input was closed, it did", "Flush standard output", "The driver protocol"),
    "whole-input": ("once the input was closed, it did", "line by line", "The driver protocol"),
    "no-line-feed": ("no line feed after it", "line feed", "The driver protocol"),
}  # fmt: skip


@pytest.mark.parametrize("how", SILENT)
def test_a_silent_driver_is_explained(tmp_path: Path, how: str) -> None:
    steps = talk(tmp_path, how, seconds=1.0, start=2.5)
    assert holds(graves(steps), SILENT[how]), graves(steps)
    assert sum(" came within " in wrong for wrong, _, _ in graves(steps)) <= 2


NOTES = {
    "claims-less": ("driver.toml claims to read otj, and hello does not", "`driver.toml`"),
    "unknown-feature": ("names the feature 'ranges'", "`hello`"),
    "unknown-format": ("the format 'orrery'", "`hello`"),
    "read-unsupported": ("answered with unsupported (reading)", "Four kinds of reply"),
    "unsupported-for-refused": ("answered with unsupported (not an otj file", "Four kinds of reply"),
    "unknown-op-error": ("an unknown op was answered with error", "A conversation"),
    "never-leaves": ("still runs 3 s after", "`bye`"),
    "outlives-input": ("still runs 3 s after", "`bye`"),
    "status": ("exited with status 4", "`bye`"),
}


@pytest.mark.parametrize("how", NOTES)
def test_what_is_odd_is_a_note(tmp_path: Path, how: str) -> None:
    steps = talk(tmp_path, how)
    notes = [(r.wrong, r.rule.section) for step in steps for r in step.remarks if not r.grave]
    assert any(NOTES[how][0] in wrong and section == NOTES[how][1] for wrong, section in notes), notes


@pytest.mark.parametrize("how", ["slow", "slow-start"])
def test_a_slow_driver_gets_a_note(tmp_path: Path, how: str) -> None:
    steps = talk(tmp_path, how, seconds=1.5, start=4.0 if how == "slow-start" else 20.0)
    slow = [step for step in steps for r in step.remarks if not r.grave and " s that are allowed" in r.wrong]
    assert slow
    assert {step.request["op"] for step in slow} == {"hello" if how == "slow-start" else "read"}


def test_a_lock_beside_the_input_is_no_fault(tmp_path: Path) -> None:
    assert graves(talk(tmp_path, "index-beside")) == []


def test_a_wrong_writer_and_a_wrong_checker(tmp_path: Path) -> None:
    steps = talk(tmp_path, "claims-write", claims='["read", "write"]')
    assert holds(
        graves(steps),
        ("the writer left nothing", "--keep evidence", "Writing: `create`, `append`, `flush`, `close`, `reopen`"),
    )
    (tmp_path / "2").mkdir()
    steps = talk(tmp_path / "2", "claims-check", features='["check:otj"]')
    assert holds(graves(steps), ("ok.violations[0] lacks 'message'", "Add message", "`check`"))


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "driver.toml").write_text(
        'name = "none"\nlanguage = "C"\n[run]\ncommand = ["./none"]\n[claims]\notj = ["read"]\n'
    )
    said = CliRunner().invoke(main_group, ["driver", "check", str(tmp_path)], standalone_mode=False)
    assert said.return_value == 1
    text = " ".join(said.output.split())
    assert "the program './none' is not there" in text
    assert "Correct [run] command in driver.toml" in text


def test_an_object_without_a_name_cannot_be_started() -> None:
    with pytest.raises(TrajconformError, match="name it as module:attribute"):
        examine(InProcess("nameless", object), None, lambda step: None)


def test_no_child_of_a_driver_survives(tmp_path: Path) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("no /proc: children that left their session are not found")
    assert graves(talk(tmp_path, "child-behind")) == []
    pids = [int(line) for line in (tmp_path / "wrong" / "pids").read_text().split()]
    assert len(pids) > 5
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any(alive(pid) for pid in pids):
        time.sleep(0.02)
    assert not any(alive(pid) for pid in pids)


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize("name", ["naive", "node-otj"])
def test_nothing_is_wrong_with_the_bundled_drivers(name: str) -> None:
    spec = next(spec for spec in list_drivers() if spec.name == name)
    if name == "node-otj" and shutil.which("node") is None:
        pytest.skip("node is not on PATH")
    steps: list[Step] = []
    examine(spec, None, steps.append)
    assert [(step.words, step.remarks) for step in steps if step.remarks] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nobody_behind(tmp_path: Path, number: signal.Signals) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("no /proc to look for the driver")
    talk_in(tmp_path, "hang")
    command = [
        sys.executable,
        "-c",
        "from trajconform.cli import main; main()",
        "driver",
        "check",
        str(tmp_path / "wrong"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
    assert process.stdout is not None
    drivers: list[int] = []
    deadline = time.monotonic() + 20
    while not drivers and time.monotonic() < deadline:
        time.sleep(0.3)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        drivers = [int(child) for child in children]
    process.send_signal(number)
    said, _ = process.communicate(timeout=20)
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert drivers
    assert not any(alive(pid) for pid in drivers)


def test_what_a_person_sees(tmp_path: Path) -> None:
    steps = talk(tmp_path, "crash")
    out = io.StringIO()
    advised: Advised = {}
    for step in steps:
        render_step(Console(file=out, width=100, highlight=False), step, advised)
    text = out.getvalue()
    assert " ".join(text.split()).count("run the command of driver.toml by hand") == 1
    assert "the same as for message 2" in text
    assert "\x1b" not in text
    for words in ("✓  1 hello", "✗  2 read otj", '"op": "read"', "came      nothing", "SIGABRT", "protocol", "to do",
                  "reader.rs:7", "\\x1b[31m"):  # fmt: skip
        assert words in text, text
    said = CliRunner().invoke(main_group, ["driver", "check", str(tmp_path / "wrong")], standalone_mode=False)
    assert said.return_value == 1
    assert re.search(
        r"\d+ messages, \d+ wrong, \d+ with a note; all messages: trajconform driver protocol", said.output
    )
