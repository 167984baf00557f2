"""A Python object as a driver program: JSON Lines on standard input and output (see `harness/PROTOCOL.md`).

``python -m trajconform.harness.serve module:attribute`` serves what `resolve_driver` finds under that name.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from trajconform.harness.inprocess import answer_call, hello_of
from trajconform.harness.protocol import decode_message, encode_message

MEMBERS = {
    "read": ("format", "path", "frames"),
    "check": ("format", "path"),
    "create": ("format", "path", "declaration", "derive_from", "system", "options"),
    "append": ("step", "time", "frame"),
    "reopen": ("format", "path", "declaration"),
}
"""What a request may have beside ``id`` and ``op``. A member that is not known is ignored, as the protocol asks."""


def serve(target: object, name: str = "") -> None:
    """Answer requests with the methods of ``target`` (see `trajconform.harness.inprocess`) until `bye` or the end of
    the input. Anything that the object prints goes to standard error, so that it cannot spoil a reply."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin.buffer:
        request = decode_message(line)
        message = _answer(target, request, name)
        replies.write(encode_message({"id": request.pop("id"), **message}))
        if request["op"] == "bye":
            return


def _answer(target: object, request: dict[str, Any], name: str) -> dict[str, Any]:
    op = request["op"]
    if op == "hello":
        return {"ok": hello_of(target, name)}
    if op == "bye":
        return {"ok": {}}
    members = MEMBERS.get(op, ())
    message, trace = answer_call(target, op, {key: value for key, value in request.items() if key in members})
    if trace:
        print(trace, file=sys.stderr, flush=True)
    return message


if __name__ == "__main__":
    from trajconform.harness.drivertoml import resolve_driver
    from trajconform.harness.inprocess import InProcess

    found = resolve_driver(sys.argv[1])
    assert isinstance(found, InProcess)
    serve(found.factory(), found.name)
