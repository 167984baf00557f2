"""The driver @NAME@: one JSON object a line on standard input, one reply to each on standard output."""

import json
import os
import sys
import traceback

from reader import Refused, Unsupported, read

# Replies go to a copy of standard output; whatever else is printed goes to the log and cannot spoil a reply.
REPLIES = os.fdopen(os.dup(1), "wb", buffering=0)
os.dup2(2, 1)


def hello(request):
    if request["protocol"] != 1:
        raise ValueError("this driver speaks protocol 1")
    return {
        "name": "@NAME@",
        "version": "0.1",  # of the implementation under test
        "language": "Python",
        "formats": {"@FORMAT@": ["read"]},
        "features": [],
    }


def read_file(request):
    if request["format"] != "@FORMAT@":
        raise Unsupported("formats other than @FORMAT@")
    return read(request["path"])


OPERATIONS = {"hello": hello, "read": read_file, "bye": lambda request: {}}


def answer(request):
    operation = OPERATIONS.get(request["op"])
    if operation is None:
        return {"unsupported": {"what": request["op"]}}
    try:
        return {"ok": operation(request)}
    except Refused as refusal:
        return {"refused": {"reason": str(refusal)}}
    except Unsupported as missing:
        return {"unsupported": {"what": str(missing)}}
    except Exception as error:  # a fault of ours, which is no refusal
        traceback.print_exc()
        return {"error": {"message": f"{type(error).__name__}: {error}"}}


for line in sys.stdin.buffer:
    request = json.loads(line)
    reply = {"id": request["id"], **answer(request)}
    REPLIES.write(json.dumps(reply, allow_nan=False).encode() + b"\n")
    if request["op"] == "bye":
        break
