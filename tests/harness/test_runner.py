"""Runs: what goes wrong with a driver costs the case at hand, and nothing is lost, hidden or left behind."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trajconform.harness.drivertoml import DriverSpec, load_driver, resolve_driver
from trajconform.harness.inprocess import InProcess, Refusal
from trajconform.harness.runner import judged_clauses, run_cases
from trajconform.harness.verdicts import CaseResult, RunResult, Verdict
from trajconform.model.errors import TrajconformError
from trajconform.spec.catalogue import load_catalogue
from trajconform.vectors.cases import Case

ROGUE = Path(__file__).with_name("rogue.py")
REPLY = Path(__file__).with_name("reply.json").read_text()
TOML = """
name = "rogue"
language = "Python"
description = "misbehaves"
[run]
command = ["{python}", %s]
[claims]
otj = ["read", "write"]
[limits]
start_seconds = 20
request_seconds = 2
reply_mib = 1
log_mib = 1
memory_mib = 200
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A kit whose golden files are replies, which is what the rogue driver reads."""
    files = tmp_path / "kit" / "vectors" / "otj" / "files"
    files.mkdir(parents=True)
    (files / "good.otj").write_text(REPLY)
    (files / "good.reply.json").write_text(REPLY)
    (files / "refuse.otj").write_text("refuse")
    (files / "refuse.reply.json").write_text(REPLY)
    (files / "unsupported.otj").write_text("unsupported")
    return tmp_path / "kit"


def case(root: Path, name: str, expect: Any = "accepted", golden: str = "good", **more: Any) -> Case:
    fields: dict[str, Any] = {"role": "reader", "input": {"golden": golden}, "expect": expect} | more
    return Case(
        f"otj/x/{name}", f"vectors/otj/x/{name}.yaml", name, ("OTJ-X-01",), format="otj", topic="x", root=root, **fields
    )


def rogue(tmp_path: Path, *arguments: str) -> DriverSpec:
    folder = tmp_path / "rogue"
    folder.mkdir(exist_ok=True)
    words = ", ".join(json.dumps(word) for word in (str(ROGUE), *arguments))
    (folder / "driver.toml").write_text(TOML % words)
    return load_driver(folder)


def verdicts(run: RunResult) -> list[str]:
    return [str(result.verdict) for result in run.results]


def test_verdicts_of_a_driver_that_behaves(tmp_path: Path, root: Path) -> None:
    cases = [
        case(root, "accepted"),
        case(root, "refused", "refused", "refuse"),
        case(root, "accepted-though-wrong", "refused"),
        case(root, "refused-though-right", "accepted", "refuse"),
        case(root, "cut", {"first_frames": 1}),
        case(root, "either-refused", "informative", "refuse"),
        case(root, "either-accepted", "informative"),
        case(root, "unsupported", "accepted", "unsupported"),
        case(root, "needs", needs=("telepathy",)),
        case(root, "range", read_frames=(0, 1)),
        case(root, "store", "clean", role="store"),
    ]
    run = run_cases(rogue(tmp_path, "fine"), cases)
    assert verdicts(run) == ["PASS", "PASS", "FAIL", "FAIL", "FAIL", "INFO", "INFO", "SKIP", "SKIP", "SKIP", "SKIP"]
    by_name = {result.title: result for result in run.results}
    assert by_name["accepted-though-wrong"].message == "accepted what a reader refuses and handed back 2 frames"
    assert by_name["accepted-though-wrong"].expected == {"refused": True}
    assert by_name["refused-though-right"].message == "refused what a reader accepts: told to"
    assert by_name["cut"].message == "frames.length: expected 1, got 2"
    assert [d.path for d in by_name["cut"].differences] == ["frames.length"]
    assert by_name["either-refused"].note == "refused: told to"
    assert by_name["either-accepted"].note == "accepted: 2 frames"
    assert by_name["unsupported"].message == "the driver does not support it: anything"
    assert by_name["needs"].message == "the driver does not have the feature telepathy"
    assert by_name["range"].message == "the driver does not have the feature range"
    assert by_name["store"].message == "the driver does not have the feature check:otj"
    assert run.exit_status == 1
    assert (run.driver.name, run.driver.version, run.driver.formats) == ("rogue", "1", {"otj": ("read", "write")})


def test_a_format_that_is_not_claimed_is_skipped(tmp_path: Path, root: Path) -> None:
    other = Case("mrec/x/a", "", "t", ("MREC-X-01",), "reader", "mrec", "x", root, "accepted", {"golden": "good"})
    run = run_cases(rogue(tmp_path, "fine"), [other])
    assert verdicts(run) == ["SKIP"]
    assert run.results[0].message == "the driver does not claim to read mrec"
    assert run.exit_status == 2


MISDEEDS = {
    "segfault": "the driver was killed by SIGSEGV",
    "exit": "the driver exited with status 3",
    "hang": "the driver did not answer 'read' within 2 s",
    "stubborn": "the driver did not answer 'read' within 2 s",
    "flood": "the driver flooded its output",
    "flood-log": "the driver flooded its log",
    "memory": "the driver took too much memory",
    "bad-json": "is not JSON",
    "huge-int": "is not JSON",
    "deep": "nested more than 100 levels deep",
    "wrong-id": "the driver answered with the id 4711",
    "not-schema": "the reply to 'read' is malformed",
    "orphan": "the driver exited with status 4",
    "error-reply": "the driver reported an error of its own in 'read': panicked at reader.rs:7",
    "dead-at-hello": "the driver exited with status 1 while it answered 'hello'",
}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("mode", MISDEEDS)
def test_a_misdeed_costs_one_case(tmp_path: Path, root: Path, mode: str, jobs: int) -> None:
    """It happens at the second request of the first process that gets there, in a case that asks for a refusal."""
    cases = [case(root, f"c{i}", "refused", "refuse") for i in range(6)]
    run = run_cases(rogue(tmp_path, mode, "2", str(tmp_path / "done")), cases, jobs=jobs)
    found = verdicts(run)
    assert sorted(found) == ["ERROR"] + ["PASS"] * 5
    culprit = run.results[found.index("ERROR")]
    assert MISDEEDS[mode] in culprit.message
    log = "cannot find libfoo.so" if mode == "dead-at-hello" else "yyyy" if mode == "flood-log" else f"about to {mode}"
    assert log in culprit.stderr
    if jobs == 1:
        assert found.index("ERROR") == (0 if mode == "dead-at-hello" else 1)
    assert run.exit_status == 2


@pytest.mark.parametrize(("mode", "what"), [("edit-input", "was modified"), ("delete-input", "was removed")])
def test_a_reader_that_touches_its_input_fails(tmp_path: Path, root: Path, mode: str, what: str) -> None:
    run = run_cases(rogue(tmp_path, mode, "2", str(tmp_path / "done")), [case(root, f"c{i}") for i in range(3)])
    assert verdicts(run) == ["PASS", "FAIL", "PASS"]
    assert run.results[1].message == f"reading changed the input: input.otj {what}"
    assert (root / "vectors" / "otj" / "files" / "good.otj").read_text() == REPLY


def test_a_note_tells_of_deaths_between_cases(tmp_path: Path, root: Path) -> None:
    def pause(result: CaseResult, done: int, total: int) -> None:
        pass

    class Slow(list[Case]):
        """Cases with a pause between them, so that a death after an answer is over before the next case."""

        def __iter__(self) -> Any:
            for one in list.__iter__(self):
                time.sleep(0.3)
                yield one

    run = run_cases(rogue(tmp_path, "die-after-answer"), Slow(case(root, f"c{i}") for i in range(3)), progress=pause)
    assert verdicts(run) == ["PASS"] * 3
    assert run.notes == ("the process exited with status 6 by itself after an answer; a new one was started (2 times)",)


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_driver_that_never_starts_is_one_message_and_no_run(tmp_path: Path, root: Path, jobs: int) -> None:
    with pytest.raises(TrajconformError) as caught:
        run_cases(rogue(tmp_path, "dead-at-hello"), [case(root, f"c{i}") for i in range(50)], jobs=jobs)
    for words in ("the driver rogue exited with status 1", "its log ends:\n  cannot find libfoo.so", "driver check"):
        assert words in str(caught.value)


def test_an_object_that_is_no_driver_is_one_message(root: Path) -> None:
    with pytest.raises(TrajconformError, match=r"os:path has none of a driver's methods \(read, "):
        run_cases(resolve_driver("os:path"), [case(root, "c")])


CLAUSES = """# Words

- **OTJ-WORD-01** (store, MUST) A store does so. [S]
- **OTJ-WORD-02** (reader, MUST) A reader refuses what does not. [S]
- **OTJ-WORD-03** (reader, MAY) A reader says why. [S]
- **OTJ-WORD-04** (writer, MUST) A writer does so. [S]
"""


@pytest.mark.parametrize(
    ("role", "clauses", "judged"),
    [
        ("reader", (1, 2, 3), (2,)),
        ("reader", (3,), (3,)),
        ("reader", (1,), (1,)),
        ("store", (1, 2), (1,)),
        ("store", (2,), (2,)),
        ("writer", (1, 2, 4), (1, 4)),
        ("crash", (4, 3), (4,)),
    ],
)
def test_a_verdict_counts_for_clauses_that_bind_what_was_asked(
    tmp_path: Path, root: Path, role: str, clauses: tuple[int, ...], judged: tuple[int, ...]
) -> None:
    (tmp_path / "spec" / "otj").mkdir(parents=True)
    (tmp_path / "spec" / "otj" / "word.md").write_text(CLAUSES)
    (tmp_path / "spec" / "otj" / "order.txt").write_text("word\n")
    catalogue = load_catalogue(tmp_path)
    bound = replace(case(root, "c"), role=role, clauses=tuple(f"OTJ-WORD-{n:02}" for n in clauses))
    names = tuple(f"OTJ-WORD-{n:02}" for n in judged)
    assert judged_clauses(bound, catalogue, Verdict.FAIL) == names
    assert judged_clauses(bound, catalogue, Verdict.ERROR) == names


def test_a_pass_counts_for_what_is_permitted_too(tmp_path: Path, root: Path) -> None:
    (tmp_path / "spec" / "otj").mkdir(parents=True)
    (tmp_path / "spec" / "otj" / "word.md").write_text(CLAUSES)
    bound = replace(case(root, "c"), clauses=("OTJ-WORD-01", "OTJ-WORD-02", "OTJ-WORD-03"))
    judged = judged_clauses(bound, load_catalogue(tmp_path), Verdict.PASS)
    assert judged == ("OTJ-WORD-02", "OTJ-WORD-03")


def test_a_driver_that_cannot_be_started_is_no_run_at_all(tmp_path: Path, root: Path) -> None:
    spec = rogue(tmp_path, "fine")
    text = (spec.folder / "driver.toml").read_text()
    (spec.folder / "driver.toml").write_text(text.replace('"{python}"', '"{build}/missing"'))
    with pytest.raises(TrajconformError, match=r"cannot start the driver rogue: .*missing is not there"):
        run_cases(load_driver(spec.folder), [case(root, "c")])
    (spec.folder / "driver.toml").write_text(text + '[setup]\ncommands = [["true"]]\n')
    with pytest.raises(TrajconformError, match="is not set up; run: trajconform driver setup"):
        run_cases(load_driver(spec.folder), [case(root, "c")])


def test_hello_may_not_claim_more_than_the_file(tmp_path: Path, root: Path) -> None:
    spec = rogue(tmp_path, "fine")
    text = (spec.folder / "driver.toml").read_text()
    (spec.folder / "driver.toml").write_text(text.replace('["read", "write"]', '["read"]'))
    with pytest.raises(TrajconformError, match=r"claims in hello what its driver\.toml does not: to write otj"):
        run_cases(load_driver(spec.folder), [case(root, "c")])


def test_results_come_in_the_order_of_the_cases(tmp_path: Path, root: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    cases = [case(root, f"c{i:02}") for i in range(20)]
    run = run_cases(rogue(tmp_path, "slow", "1"), cases, jobs=3, progress=lambda r, n, of: seen.append((r.case, n, of)))
    assert [result.case for result in run.results] == [c.id for c in cases]
    assert sorted(name for name, _, _ in seen) == sorted(c.id for c in cases)
    assert [(n, of) for _, n, of in seen] == [(i + 1, 20) for i in range(20)]
    assert run.jobs == 3


def test_keep_leaves_all_there_is_about_a_failure(tmp_path: Path, root: Path) -> None:
    keep = tmp_path / "kept"
    cases = [case(root, "fine"), case(root, "wrong@member", {"first_frames": 1}), case(root, "crash")]
    run = run_cases(rogue(tmp_path, "exit", "3"), cases, keep=keep)
    assert verdicts(run) == ["PASS", "FAIL", "ERROR"]
    assert sorted(p.name for p in (keep / "otj" / "x").iterdir()) == ["crash", "wrong@member"]
    folder = keep / "otj" / "x" / "wrong@member"
    assert run.results[1].kept == str(folder)
    assert sorted(p.name for p in folder.iterdir()) == [
        "01-read.reply.json",
        "01-read.request.json",
        "expected.json",
        "files",
        "verdict.txt",
    ]
    assert (folder / "files" / "input.otj").read_text() == REPLY
    assert json.loads((folder / "01-read.reply.json").read_text()) == {"ok": json.loads(REPLY)}
    assert len(json.loads((folder / "expected.json").read_text())["frames"]) == 1
    assert "FAIL: frames.length: expected 1, got 2" in (folder / "verdict.txt").read_text()
    assert "about to exit" in (keep / "otj" / "x" / "crash" / "stderr.txt").read_text()
    again = run_cases(rogue(tmp_path, "exit", "3"), cases, keep=keep)
    assert again.results[1].kept == str(folder)


def test_evidence_is_kept_where_somebody_has_to_look(tmp_path: Path, root: Path) -> None:
    cases = [case(root, "fine"), case(root, "wrong", "refused")]
    few = run_cases(rogue(tmp_path, "fine"), cases)
    assert [len(result.exchanges) for result in few.results] == [0, 1]
    assert few.results[1].request is not None
    assert few.results[1].request["op"] == "read"
    assert few.results[1].reply == {"ok": json.loads(REPLY)}
    every = run_cases(rogue(tmp_path, "fine"), cases, evidence="all")
    assert [len(result.exchanges) for result in every.results] == [1, 1]


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_gives_what_was_found_so_far(tmp_path: Path, root: Path, jobs: int) -> None:
    def interrupt() -> None:
        time.sleep(4)
        os.kill(os.getpid(), signal.SIGINT)

    # A shell that starts tests in the background has them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    cases = [case(root, f"c{i}") for i in range(8)]
    thread = threading.Thread(target=interrupt)
    thread.start()
    begun = time.monotonic()
    spec = rogue(tmp_path, "hang", "3")
    text = (spec.folder / "driver.toml").read_text()
    (spec.folder / "driver.toml").write_text(text.replace("request_seconds = 2", "request_seconds = 60"))
    try:
        run = run_cases(load_driver(spec.folder), cases, jobs=jobs)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert run.interrupted
    assert run.planned == 8
    assert verdicts(run) == ["PASS"] * (2 * jobs)
    assert time.monotonic() - begun < 30
    assert run.exit_status == 2


def test_a_request_limit_can_be_given(tmp_path: Path, root: Path) -> None:
    run = run_cases(rogue(tmp_path, "hang"), [case(root, "c")], request_seconds=0.2)
    assert run.results[0].message == "the driver did not answer 'read' within 0.2 s"


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    run = run_cases(rogue(tmp_path, "exit", "2"), [case(root, f"c{i}") for i in range(3)], jobs=2)
    assert "ERROR" in verdicts(run)
    assert list(scratch.iterdir()) == []


def test_a_case_that_cannot_be_used_costs_no_other(root: Path) -> None:
    bad = case(root, "bad", {"nonsense": 1})
    missing = case(root, "missing", golden="no-such-golden")
    run = run_cases(InProcess("d", Canned), [bad, missing, case(root, "fine")])
    assert verdicts(run) == ["ERROR", "ERROR", "PASS"]
    assert run.results[0].message.startswith("the case cannot be used: vectors/otj/x/bad.yaml")
    assert "no-such-golden.otj is not there" in run.results[1].message


def test_a_failure_of_the_kit_itself_is_shown_as_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("of our own")

    monkeypatch.setattr("trajconform.harness.judge.write_input", broken)
    run = run_cases(InProcess("d", Canned), [case(root, "fine")])
    assert verdicts(run) == ["ERROR"]
    assert run.results[0].message == "the kit itself failed: ZeroDivisionError: of our own"
    assert "Traceback" in run.results[0].stderr


class Canned:
    """In process: hands back what stands in the file, or misbehaves."""

    def read(self, format: str, path: str, frames: Any = None) -> Any:  # noqa: A002
        text = Path(path).read_text()
        if text == "refuse":
            raise Refusal("told to")
        return json.loads(text)


class Breaking(Canned):
    """Raises at every read of a good file."""

    def read(self, format: str, path: str, frames: Any = None) -> Any:  # noqa: A002
        return super().read(format, path)["no such member"]


def test_an_exception_in_process_is_an_error_and_the_run_goes_on(root: Path) -> None:
    run = run_cases(InProcess("d", Breaking), [case(root, "a"), case(root, "b", "refused", "refuse")], jobs=4)
    assert verdicts(run) == ["ERROR", "PASS"]
    assert run.results[0].message == "the driver raised KeyError: 'no such member' in 'read'"
    assert "no such member" in run.results[0].stderr
    assert (run.jobs, run.driver.source) == (1, "in process")


def test_the_interpreter_of_the_run_is_this_one(tmp_path: Path) -> None:
    assert rogue(tmp_path, "fine").expand("{python}") == sys.executable
