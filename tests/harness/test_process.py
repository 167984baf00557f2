"""A driver program may do anything; each thing ends as one clear fault, and the next case gets a fresh process."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trajconform.harness.process import MIB, Limits, ProcessDriver
from trajconform.harness.protocol import DriverFault, DriverUnavailable

ROGUE = Path(__file__).with_name("rogue.py")
REPLY = Path(__file__).with_name("reply.json")
LIMITS = Limits(start_seconds=20, request_seconds=2, reply_bytes=MIB, log_bytes=MIB, memory_bytes=200 * MIB)


@pytest.fixture
def started() -> Iterator[list[ProcessDriver]]:
    drivers: list[ProcessDriver] = []
    yield drivers
    for driver in drivers:
        driver.close()


def start(started: list[ProcessDriver], *arguments: str, limits: Limits = LIMITS) -> ProcessDriver:
    driver = ProcessDriver([sys.executable, str(ROGUE), *arguments], ROGUE.parent, limits=limits)
    started.append(driver)
    return driver


def read(driver: ProcessDriver, path: Path = REPLY) -> str:
    driver.begin()
    return driver.call("read", {"format": "otj", "path": str(path)}).kind


@pytest.mark.parametrize(
    ("mode", "kind", "words"),
    [
        ("segfault", "crash", "was killed by SIGSEGV (signal 11) while it answered 'read'"),
        ("exit", "crash", "exited with status 3 while it answered 'read'"),
        ("exit-zero", "crash", "exited with status 0 while it answered 'read'"),
        ("hang", "hang", "did not answer 'read' within 2 s"),
        ("stubborn", "hang", "did not answer 'read' within 2 s"),
        ("flood", "flood", "more than 1 MiB without the end of a line"),
        ("flood-log", "flood", "more than 1 MiB to standard error"),
        ("bad-json", "bad json", "Expecting value at column 8: '{\"id\": oops}'"),
        ("not-utf8", "bad json", "is not UTF-8"),
        ("two-objects", "bad json", "Extra data"),
        ("nan", "bad json", "NaN is no JSON value"),
        ("wrong-id", "wrong id", "answered with the id 4711 where request 2 (read) was open"),
        ("no-id", "wrong id", "answered without an id where request 2 (read) was open"),
        ("not-schema", "bad reply", "is malformed: ok"),
        ("two-outcomes", "bad reply", "this one has ok, refused"),
        ("refused-without-reason", "bad reply", "'reason' is a required property"),
        ("huge-int", "bad json", "4300 digits"),
        ("deep", "bad json", "nested more than 100 levels deep"),
        ("deep-enough-to-parse", "bad json", "nested more than 100 levels deep"),
        ("duplicate-member", "bad json", "the member refused stands twice"),
        ("half-a-character", "bad json", "half of a surrogate pair"),
        ("orphan", "crash", "exited with status 4 while it answered 'read'"),
        (
            "half-a-line",
            "crash",
            "exited with status 5 while it answered 'read' after 16 bytes of a line without an end",
        ),
        ("close-output", "crash", "closed its output without answering 'read', though it still runs"),
        ("memory", "memory", "took too much memory while it answered 'read'"),
        ("chatter", "bad json", "is not JSON"),
    ],
)
def test_each_misdeed_is_a_fault_that_says_what_happened(
    started: list[ProcessDriver], tmp_path: Path, mode: str, kind: str, words: str
) -> None:
    driver = start(started, mode, "1", str(tmp_path / "done"))
    driver.hello()
    begun = time.monotonic()
    with pytest.raises(DriverFault) as caught:
        read(driver)
    assert caught.value.kind == kind
    assert words in str(caught.value)
    assert time.monotonic() - begun < 10
    if mode not in ("flood-log",):
        assert f"about to {mode}" in driver.log()
    assert read(driver) == "ok", "the next case gets a fresh process"
    assert driver.log() == ""


def test_a_hanging_driver_leaves_nobody_behind(started: list[ProcessDriver]) -> None:
    driver = start(started, "stubborn")
    driver.begin()
    process = driver._process
    assert process is not None
    group = process._process.pid
    with pytest.raises(DriverFault, match="did not answer"):
        driver.call("read", {"format": "otj", "path": str(REPLY)})
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:  # killed children vanish once init has reaped them
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        if all(state == "Z" for state in group_states(group)):
            return
        time.sleep(0.02)
    pytest.fail("the process group is still there")


def group_states(group: int) -> list[str]:
    states = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            states.append(fields[0])
    return states


def test_death_at_hello_is_a_fault_with_the_log(started: list[ProcessDriver], tmp_path: Path) -> None:
    driver = start(started, "dead-at-hello", "1", str(tmp_path / "done"))
    with pytest.raises(DriverFault, match="exited with status 1 while it answered 'hello'"):
        driver.hello()
    assert "cannot find libfoo.so" in driver.log()
    assert read(driver) == "ok"


def test_three_failed_starts_in_a_row_are_enough(started: list[ProcessDriver]) -> None:
    driver = start(started, "dead-at-hello")
    for _ in range(3):
        with pytest.raises(DriverFault, match="exited with status 1"):
            driver.begin()
    with pytest.raises(DriverUnavailable, match="3 starts in a row failed"):
        driver.begin()


def test_hello_answered_with_an_error_is_no_start(started: list[ProcessDriver]) -> None:
    with pytest.raises(DriverFault, match="answered hello with error: protocol 1 is not spoken here"):
        start(started, "hello-refused").hello()


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(DriverUnavailable, match="the program 'no-such-program' is not there"):
        ProcessDriver(["no-such-program"], ROGUE.parent).hello()
    with pytest.raises(DriverUnavailable, match="the folder /nowhere is not there"):
        ProcessDriver([sys.executable], Path("/nowhere")).hello()


def test_a_program_that_may_not_be_run() -> None:
    with pytest.raises(DriverUnavailable, match=r"rogue\.py.*Permission denied"):
        ProcessDriver([str(ROGUE)], ROGUE.parent).hello()


def test_an_error_reply_keeps_the_process(started: list[ProcessDriver]) -> None:
    driver = start(started, "error-reply")
    driver.begin()
    process = driver._process
    answer = driver.call("read", {"format": "otj", "path": str(REPLY)})
    assert (answer.kind, answer.reason) == ("error", "panicked at reader.rs:7")
    assert read(driver) == "ok"
    assert driver._process is process


def test_what_is_written_unasked_is_not_taken_for_the_next_answer(started: list[ProcessDriver]) -> None:
    driver = start(started, "surplus")
    assert read(driver) == "ok"
    time.sleep(0.2)
    with pytest.raises(DriverFault) as caught:
        driver.begin()
    assert caught.value.kind == "surplus"
    assert read(driver) == "ok"


def test_a_death_between_two_cases_is_blamed_on_neither(started: list[ProcessDriver]) -> None:
    driver = start(started, "die-after-answer")
    assert read(driver) == "ok"
    time.sleep(0.2)
    driver.begin()
    assert driver.call("flush", {}).kind == "ok"
    assert driver.notes == ["the process exited with status 6 by itself after an answer; a new one was started"]


def test_a_slow_driver_is_fine(started: list[ProcessDriver]) -> None:
    assert read(start(started, "slow")) == "ok"


def test_a_large_reply_passes_whole(started: list[ProcessDriver], tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    big = '{"dtype":"f64","shape":[90000],"data":"' + "A" * 960_000 + '"}'
    path.write_text(re.sub(r'"masses": \{[^}]*\}', f'"masses": {big}', REPLY.read_text()))
    driver = start(started, "fine")
    driver.begin()
    answer = driver.call("read", {"format": "otj", "path": str(path)})
    assert len(answer.body["masses"]["data"]) == 960_000


def test_a_large_request_does_not_block(started: list[ProcessDriver]) -> None:
    driver = start(started, "fine")
    driver.begin()
    frame = {"x": {"dtype": "f64", "shape": [300000], "data": "A" * 3_200_000}}
    assert driver.call("append", {"step": 0, "frame": frame}).kind == "ok"


def test_the_process_is_killed_from_another_thread(started: list[ProcessDriver]) -> None:
    import threading

    driver = start(started, "hang", limits=Limits(request_seconds=30))
    driver.begin()
    threading.Timer(0.3, driver.kill).start()
    with pytest.raises(DriverFault, match=f"killed by SIGKILL \\(signal {int(signal.SIGKILL)}\\)"):
        driver.call("read", {"format": "otj", "path": str(REPLY)})
