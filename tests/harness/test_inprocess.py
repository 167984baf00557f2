"""A Python object is a driver, in process and as a program, with the same answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest

from trajconform.harness.inprocess import InProcess, InProcessDriver, Refusal
from trajconform.harness.process import ProcessDriver
from trajconform.harness.protocol import Answer, DriverFault
from trajconform.harness.serve import serve
from trajconform.model.errors import refuse

__all__ = ["Something", "serve"]  # for the program that `as_program` runs

REPLY = json.loads(Path(__file__).with_name("reply.json").read_text())


class Something:
    """Reads only; its answers depend on the path."""

    def read(self, format: str, path: str, frames: list[int] | None = None) -> Any:  # noqa: A002
        print("printing to standard output disturbs nobody")
        if path == "/refused":
            raise refuse("OTJ-X-01", "x", "no", index=3)
        if path == "/refusal":
            raise Refusal("no, in my own words")
        if path == "/raises":
            return [][1]
        if path == "/nonsense":
            return {"format": "otj"}
        if path == "/later":
            raise NotImplementedError("this kind of file")
        return REPLY if frames is None else {**REPLY, "frames": REPLY["frames"][slice(*frames)]}

    def check(self, format: str, path: str) -> list[dict[str, Any]]:  # noqa: A002
        return [{"clause": "OTJ-X-01", "message": f"{format} at {path}"}]


class Calls(Protocol):
    def begin(self) -> None: ...
    def call(self, op: str, params: Mapping[str, Any]) -> Answer: ...


def in_process() -> InProcessDriver:
    return InProcessDriver(InProcess("something", Something))


def as_program() -> ProcessDriver:
    program = "from test_inprocess import Something, serve; serve(Something(), 'something')"
    return ProcessDriver([sys.executable, "-c", program], Path(__file__).parent)


@pytest.fixture(params=["in process", "as a program"])
def driver(request: pytest.FixtureRequest) -> Any:
    made: Any = in_process() if request.param == "in process" else as_program()
    yield made
    made.close()


def test_hello_is_made_from_the_methods(driver: Any) -> None:
    hello = driver.hello()
    assert hello["name"] == "something"
    assert hello["formats"] == {"mrec": ["read"], "otj": ["read"]}
    assert "check:otj" in hello["features"]


@pytest.mark.parametrize(
    ("op", "params", "answer"),
    [
        ("read", {"path": "/any"}, {"ok": REPLY}),
        ("read", {"path": "/any", "frames": [1, 2]}, {"ok": {**REPLY, "frames": REPLY["frames"][1:2]}}),
        ("read", {"path": "/refused"}, {"refused": {"reason": "OTJ-X-01 x[3]: no"}}),
        ("read", {"path": "/refusal"}, {"refused": {"reason": "no, in my own words"}}),
        ("read", {"path": "/later"}, {"unsupported": {"what": "this kind of file"}}),
        ("check", {"path": "/any"}, {"ok": {"violations": [{"clause": "OTJ-X-01", "message": "otj at /any"}]}}),
        ("create", {"path": "/any", "declaration": {}}, {"unsupported": {"what": "create"}}),
    ],
)
def test_answers_are_the_same_in_process_and_as_a_program(
    driver: Any, op: str, params: dict[str, Any], answer: Any
) -> None:
    driver.begin()
    assert driver.call(op, {"format": "otj", **params}).wire == answer


def test_an_exception_is_no_refusal() -> None:
    driver = in_process()
    driver.begin()
    with pytest.raises(DriverFault, match="raised IndexError: list index out of range in 'read'"):
        driver.call("read", {"format": "otj", "path": "/raises"})
    assert "return [][1]" in driver.log()
    program = as_program()
    program.begin()
    answer = program.call("read", {"format": "otj", "path": "/raises"})
    assert answer.wire == {"error": {"message": "IndexError: list index out of range"}}
    assert "return [][1]" in program.log()
    program.close()


def test_a_reply_that_is_none_is_a_fault(driver: Any) -> None:
    driver.begin()
    with pytest.raises(DriverFault, match="is a required property"):
        driver.call("read", {"format": "otj", "path": "/nonsense"})


def test_an_object_that_cannot_be_made_is_a_fault() -> None:
    def factory() -> object:
        raise OSError("no licence")

    with pytest.raises(DriverFault, match="could not be made: OSError: no licence"):
        InProcessDriver(InProcess("broken", factory)).begin()
