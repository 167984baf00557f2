"""A Python object as a driver, in this process.

The object has the methods that it supports, named like the requests of the protocol::

    hello() -> dict                                   optional
    read(format, path, frames=None) -> reply
    check(format, path) -> list of violations         [{"clause", "path", "message"}]
    create(format, path, declaration=None, derive_from=None, system=None, options=None)
    append(step, frame, time=None)
    flush()   close()   reopen(format, path, declaration=None)

Arguments and results have the form in which they travel to a driver program. To refuse, it raises `Refused` (from
`trajconform.model.errors`) or `Refusal`; what it does not support it lacks, or raises `NotImplementedError`; any
other exception is an error of the implementation, never a refusal. `trajconform.harness.serve` makes the same object
a driver program. There is no time limit in process: a call that never returns is never ended.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trajconform.harness.protocol import PROTOCOL, Answer, DriverFault, check_reply
from trajconform.model.errors import Refused, TrajconformError

OPERATIONS = ("read", "check", "create", "append", "flush", "close", "reopen")
_WITH_RESULT = ("read", "check")


class Refusal(Exception):
    """The implementation refuses; the text says why in its own words."""


@dataclass(frozen=True)
class InProcess:
    """Where in-process drivers come from: a name for people, something that makes a fresh object, and its module."""

    name: str
    factory: Callable[[], object]
    module: str = ""
    attribute: str = ""
    """``module:attribute`` under which another process finds the same; empty where none can."""


class InProcessDriver:
    """Drives a Python object; the counterpart of `ProcessDriver`."""

    def __init__(self, source: InProcess) -> None:
        self._source = source
        self._object: object | None = None
        self._log = ""
        self.said: dict[str, Any] = {}
        self.notes: list[str] = []

    def hello(self) -> dict[str, Any]:
        """Make the object and return what it says of itself, or what its methods show."""
        try:
            self._object = self._source.factory()
            body = hello_of(self._object, self._source.name)
        except TrajconformError:
            raise
        except Exception as error:  # whatever an implementation throws is a finding, not our failure
            self._object = None
            self._log = traceback.format_exc(limit=-12)[-8000:]
            raise DriverFault("start", f"could not be made: {type(error).__name__}: {error}") from error
        self.said = check_reply({"ok": body}, {"op": "hello", "protocol": PROTOCOL}).body
        return self.said

    def begin(self) -> None:
        """Get ready for a case."""
        self._log = ""
        if self._object is None:
            self.hello()

    def call(self, op: str, params: Mapping[str, Any]) -> Answer:
        """One request. `DriverFault` for an exception that is no refusal, and for a result that is no reply."""
        assert self._object is not None, "begin() comes first"
        message, trace = answer_call(self._object, op, params)
        self._log += trace
        if "error" in message:
            raise DriverFault("crash", f"raised {message['error']['message']} in {op!r}", reply=message)
        return check_reply(message, {"op": op, **params})

    def log(self) -> str:
        """Tracebacks of the case at hand."""
        return self._log

    def restart(self) -> None:
        """Forget the object; the next case gets a fresh one."""
        self._object = None

    def close(self) -> None:
        """Let the object go."""
        self._object = None

    def kill(self) -> None:
        """Nothing to kill: a thread cannot be ended from outside."""


def hello_of(target: object, name: str = "") -> dict[str, Any]:
    """What an object says of itself in `hello`; without that method, what its methods show it can do."""
    method = getattr(target, "hello", None)
    if method is not None:
        body: dict[str, Any] = method()
        return body
    if not any(hasattr(target, op) for op in OPERATIONS):
        raise TrajconformError(
            f"{name or type(target).__name__} has none of a driver's methods ({', '.join(OPERATIONS)})"
        )
    roles = [role for role, op in (("read", "read"), ("write", "create")) if hasattr(target, op)]
    features = ["check:mrec", "check:otj"] if hasattr(target, "check") else []
    return {
        "name": name or type(target).__name__,
        "version": str(getattr(target, "__version__", "")),
        "language": "Python",
        "formats": {"mrec": roles, "otj": roles},
        "features": ["range", "reopen", "system", *features],
    }


def answer_call(target: object, op: str, params: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Call an object's method for a request: the reply (without ``id``) and the traceback of an error, if any."""
    method = getattr(target, op, None) if op in OPERATIONS else None
    if method is None:
        return {"unsupported": {"what": op}}, ""
    try:
        result = method(**params)
    except Refused as refused:
        return {"refused": {"reason": str(refused.violation)}}, ""
    except Refusal as refusal:
        return {"refused": {"reason": str(refusal)}}, ""
    except NotImplementedError as missing:
        return {"unsupported": {"what": str(missing) or op}}, ""
    except Exception as error:  # the boundary: whatever an implementation throws is a finding, not our failure
        text = f"{type(error).__name__}: {error}"
        return {"error": {"message": text[:500]}}, traceback.format_exc(limit=-12)[-8000:]
    if op == "check":
        return {"ok": {"violations": result}}, ""
    return {"ok": result if op in _WITH_RESULT else {}}, ""
