"""A driver that is wrong in one way: ``wrong.py HOW``. Right otherwise, with the templates' reader for otj."""

from __future__ import annotations

import base64
import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from reader import Refused, read

HOW = sys.argv[1]
OUT = os.fdopen(os.dup(1), "wb")


def raw(text: str | bytes) -> None:
    OUT.write(text.encode() if isinstance(text, str) else text)
    OUT.flush()


def arrays(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, dict) and node.keys() == {"dtype", "shape", "data"}:
        return [node]
    return [
        a
        for child in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
        for a in arrays(child)
    ]


def change_arrays(reply: dict[str, Any], how: Any) -> dict[str, Any]:
    for array in arrays(reply):
        how(array)
    return reply


def swapped(array: dict[str, Any]) -> None:
    size = {"f64": 8, "f32": 4}[array["dtype"]]
    data = base64.b64decode(array["data"])
    array["data"] = base64.b64encode(b"".join(data[i : i + size][::-1] for i in range(0, len(data), size))).decode()


def through_single(array: dict[str, Any]) -> None:
    if array["dtype"] == "f64":
        count = len(base64.b64decode(array["data"])) // 8
        values = [
            struct.unpack("<f", struct.pack("<f", v))[0]
            for v in struct.unpack(f"<{count}d", base64.b64decode(array["data"]))
        ]
        array["data"] = base64.b64encode(struct.pack(f"<{count}d", *values)).decode()


def as_single(array: dict[str, Any]) -> None:
    if array["dtype"] == "f64":
        count = len(base64.b64decode(array["data"])) // 8
        values = struct.unpack(f"<{count}d", base64.b64decode(array["data"]))
        array.update(dtype="f32", data=base64.b64encode(struct.pack(f"<{count}f", *values)).decode())


def numbers(array: dict[str, Any]) -> None:
    array["data"] = [1.0]


def line_breaks(array: dict[str, Any]) -> None:
    array["data"] = base64.encodebytes(base64.b64decode(array["data"])).decode()


def unsigned_zero(array: dict[str, Any]) -> None:
    if array["dtype"] == "f64":
        data = base64.b64decode(array["data"])
        zero = struct.pack("<d", 0.0)
        parts = [data[i : i + 8] for i in range(0, len(data), 8)]
        array["data"] = base64.b64encode(b"".join(zero if p == struct.pack("<d", -0.0) else p for p in parts)).decode()


def short(array: dict[str, Any]) -> None:
    array["data"] = base64.b64encode(base64.b64decode(array["data"])[:-1]).decode()


def rounded_steps(reply: dict[str, Any]) -> dict[str, Any]:
    for frame in reply["frames"]:
        step = int(float(int(frame["step"])))
        frame["step"] = step if step <= 2**53 else str(step)
    return reply


CHANGES: dict[str, Any] = {
    "big-endian": lambda reply: change_arrays(reply, swapped),
    "through-single": lambda reply: change_arrays(reply, through_single),
    "wrong-dtype": lambda reply: change_arrays(reply, as_single),
    "numpy-dtype": lambda reply: change_arrays(reply, lambda a: a.update(dtype="float64")),
    "list-data": lambda reply: change_arrays(reply, numbers),
    "line-breaks": lambda reply: change_arrays(reply, line_breaks),
    "unsigned-zero": lambda reply: change_arrays(reply, unsigned_zero),
    "short-data": lambda reply: change_arrays(reply, short),
    "scalar-shape": lambda reply: {**reply, "timestep": {**reply["timestep"], "shape": [1]}},
    "no-shape": lambda reply: change_arrays(reply, lambda a: a.pop("shape")),
    "number-for-array": lambda reply: {**reply, "timestep": 0.5},
    "rounded-steps": rounded_steps,
    "missing-member": lambda reply: {k: v for k, v in reply.items() if k != "masses"},
    "unknown-member": lambda reply: {**reply, "mass": 1},
    "null-member": lambda reply: {**reply, "tail": None},
    "frames-missing": lambda reply: {**reply, "frames": reply["frames"][:-1]},
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    op = request["op"]
    if op == "hello":
        body: dict[str, Any] = {
            "name": "wrong",
            "version": "1",
            "language": "Python",
            "formats": {"otj": ["read"]},
            "features": [],
        }
        if HOW == "claims-more":
            body["formats"]["mrec"] = ["read"]
        elif HOW == "claims-less":
            body["formats"] = {"otj": []}
        elif HOW == "unknown-feature":
            body["features"] = ["ranges"]
        elif HOW == "unknown-format":
            body["formats"]["orrery"] = ["read"]
        elif HOW == "hello-without-version":
            del body["version"]
        elif HOW == "version-number":
            body["version"] = 2.1
        elif HOW == "hello-error":
            return {"error": {"message": "protocol 1 is not spoken here"}}
        elif HOW == "claims-range":
            body["features"] = ["range"]
        elif HOW == "claims-check":
            body["features"] = ["check:otj"]
        elif HOW == "claims-write":
            body["formats"]["otj"] = ["read", "write"]
        return {"ok": body}
    if op == "bye":
        return {"ok": {}}
    if op in ("create", "append", "flush", "close") and HOW == "claims-write":
        return {"ok": {}}
    if op == "check" and HOW == "claims-check":
        return {"ok": {"violations": [{"clause": "OTJ-HEADER-01", "where": 3}]}}
    if op != "read":
        return {"error": {"message": f"no op {op}"}} if HOW == "unknown-op-error" else {"unsupported": {"what": op}}
    if HOW == "strict-members" and set(request) - {"id", "op", "format", "path", "frames"}:
        return {"error": {"message": "unknown member"}}
    if HOW == "ascii-paths" and not request["path"].isascii():
        return {"error": {"message": f"cannot open {request['path']!r}"}}
    if HOW == "read-unsupported":
        return {"unsupported": {"what": "reading"}}
    if HOW == "edits-input":
        with Path(request["path"]).open("ab") as file:
            file.write(b"\0")
    if HOW == "index-beside":
        Path(request["path"] + ".lock").write_text("")
    try:
        reply = read(request["path"])
    except Refused as refusal:
        if HOW == "error-for-refused":
            return {"error": {"message": str(refusal)}}
        if HOW == "unsupported-for-refused":
            return {"unsupported": {"what": str(refusal)}}
        if HOW == "rejected":
            return {"rejected": {"reason": str(refusal)}}
        if HOW == "refused-text":
            return {"refused": str(refusal)}
        if HOW == "refused-without-reason":
            return {"refused": {"message": str(refusal)}}
        if HOW == "ok-for-refused":
            return {"ok": {"format": "otj", "particles": 0, "precision": "double", "velocities": False, "frames": [],
                           "timestep": {"dtype": "f64", "shape": [], "data": "AAAAAAAAAAA="},
                           "masses": {"dtype": "f64", "shape": [0], "data": ""}}}  # fmt: skip
        return {"refused": {"reason": str(refusal)}}
    return {"ok": CHANGES[HOW](reply) if HOW in CHANGES else reply}


def send(request: dict[str, Any], reply: dict[str, Any]) -> None:
    message = {"id": request["id"], **reply}
    text = json.dumps(message)
    if HOW == "banner" and request["op"] == "hello":
        raw("ottoj 2.1 ready\n")
    if request["op"] != "read" and HOW not in ("no-flush", "no-line-feed", "own-ids"):
        return raw(text + "\n")
    if HOW == "not-json":
        raw(text.replace('"ok"', "ok") + "\n")
    elif HOW == "chatter":
        raw(f"reading {request['path']}\n{text}\n")
    elif HOW == "chatter-after":
        raw(f"{text}\ndone\n")
    elif HOW == "twice":
        raw(f"{text}\n{text}\n")
    elif HOW == "empty-line":
        raw(f"\n{text}\n")
    elif HOW == "empty-line-after":
        raw(f"{text}\n\n")
    elif HOW == "pretty":
        raw(json.dumps(message, indent=2) + "\n")
    elif HOW == "repr":
        raw(f"{message}\n")
    elif HOW == "repr-bool":
        raw(text.replace(": false", ": False") + "\n")
    elif HOW == "nan":
        raw(text.replace('"particles": ', '"drift": NaN, "particles": ') + "\n")
    elif HOW == "bom":
        raw(b"\xef\xbb\xbf" + text.encode() + b"\n")
    elif HOW == "utf16":
        raw(text.encode("utf-16-le") + b"\n")
    elif HOW == "not-utf8":
        raw(text.encode()[:-1] + b', "note": "\xff"}\n')
    elif HOW == "two-on-a-line":
        raw(text + text + "\n")
    elif HOW == "a-list":
        raw(f"[{text}]\n")
    elif HOW == "member-twice":
        raw(text[:-1] + f', "id": {request["id"]}}}\n')
    elif HOW == "text-id":
        raw(json.dumps({**message, "id": str(request["id"])}) + "\n")
    elif HOW == "no-id":
        raw(json.dumps(reply) + "\n")
    elif HOW == "own-ids":
        raw(json.dumps({**message, "id": request["id"] + 100}) + "\n")
    elif HOW == "id-of-before":
        raw(json.dumps({**message, "id": request["id"] - 1}) + "\n")
    elif HOW == "two-kinds":
        raw(json.dumps({**message, "error": {"message": ""}}) + "\n")
    elif HOW == "no-kind":
        raw(json.dumps({"id": request["id"], **reply.get("ok", reply)}) + "\n")
    elif HOW == "more-than-a-kind":
        raw(json.dumps({**message, "seconds": 0.1}) + "\n")
    elif HOW == "empty":
        raw(json.dumps({"id": request["id"]}) + "\n")
    elif HOW == "no-line-feed":
        raw(text)
    elif HOW == "no-line-feed-and-out":
        raw(text)
        os._exit(0)
    elif HOW == "half-a-line":
        raw(text[:20])
        os._exit(3)
    elif HOW == "no-flush":
        OUT.write(text.encode() + b"\n")
    elif HOW == "one-shot":
        raw(text + "\n")
        os._exit(0)
    elif HOW == "flood":
        while True:
            OUT.write(b"x" * 65536)
    elif HOW == "flood-log":
        while True:
            sys.stderr.write("y" * 65535 + "\n")
    elif HOW == "memory":
        hoard = []
        while True:
            hoard.append(bytearray(os.urandom(1 << 20)) * 8)
    elif HOW == "hang":
        time.sleep(600)
    elif HOW == "slow":
        time.sleep(0.8)
        raw(text + "\n")
    elif HOW == "crash":
        print("thread 'main' panicked at \x1b[31mreader.rs:7\x1b[0m", file=sys.stderr, flush=True)
        os.abort()
    elif HOW == "close-output":
        OUT.close()
        os.close(1)
        time.sleep(600)
    else:
        raw(text + "\n")
    return None


def main() -> None:
    if HOW == "never-reads":
        time.sleep(600)
    if HOW == "dies-at-once":
        sys.exit("ModuleNotFoundError: No module named 'ottoj'")
    if HOW == "slow-start":
        time.sleep(2.2)
    if HOW == "hangs-at-start":
        sys.stdin.readline()
        time.sleep(600)
    if HOW == "whole-input":
        lines: Any = sys.stdin.read().splitlines()
    else:
        lines = sys.stdin
    for line in lines:
        request = json.loads(line)
        send(request, answer(request))
        if request["op"] == "bye":
            if HOW == "never-leaves":
                time.sleep(600)
            sys.exit(4 if HOW == "status" else 0)
        if HOW == "child-behind" and request["op"] == "read":
            child = subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL)
            with Path("pids").open("a") as file:
                file.write(f"{child.pid}\n")
    if HOW == "outlives-input":
        time.sleep(600)


main()
