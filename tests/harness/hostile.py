"""A driver that does harm beside answering: ``hostile.py HOW``. Every request is answered, most of them rightly."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

HOW = sys.argv[1]
NOTES = Path(sys.argv[2])


def harm(request: dict[str, Any]) -> None:
    path = Path(request["path"])
    if HOW == "removes-everything":
        shutil.rmtree(path.parent.parent, ignore_errors=True)
    elif HOW == "occupies-places":  # files where the folders of later cases belong
        for number in range(12):
            place = path.parent.parent / str(number)
            if not place.exists():
                place.write_text("taken")
    elif HOW == "replaces-scratch":
        scratch = path.parent.parent
        scratch.rename(NOTES / f"moved-{request['id']}-{os.getpid()}")
        scratch.symlink_to(NOTES)
    elif HOW == "fills":
        (path.parent / "heap").write_bytes(b"x" * (64 << 20))
        (path.parent.parent / "heap").write_bytes(b"x" * (64 << 20))
    elif HOW == "deep" and request["id"] == 2:
        here = os.open(path.parent, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("d", dir_fd=here)
            here, before = os.open("d", os.O_RDONLY, dir_fd=here), here
            os.close(before)
        os.close(here)
    elif HOW == "links":
        (path.parent / "loop").symlink_to(path.parent)
        (path.parent / "self").symlink_to("self")
        (path.parent / "root").symlink_to("/")
    elif HOW == "children":
        child = subprocess.Popen(["sleep", "600"])
        with (NOTES / "pids").open("a") as file:
            file.write(f"{child.pid}\n")
    elif HOW == "sessions":  # children that have left the group and the session
        child = subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL)
        with (NOTES / "pids").open("a") as file:
            file.write(f"{child.pid}\n")
    elif HOW == "daemons":  # and whose parent is gone, so that nothing leads from the driver to them
        line = f"setsid sleep 600 >/dev/null 2>&1 & echo $! >> {NOTES}/pids"
        subprocess.run(["sh", "-c", line], check=True, stdin=subprocess.DEVNULL)
    elif HOW == "endless-line":
        out = os.fdopen(os.dup(1), "wb", buffering=0)
        piece = b"x" * (1 << 20)
        for _ in range(2048):
            out.write(piece)
        out.write(b"\n")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    op = request["op"]
    if op == "hello":
        name = "ho\x1b[2J\x1b]0;owned\x07stile" if HOW == "escapes" else "hostile"
        return {"ok": {"name": name, "version": "1\x1b[31m" if HOW == "escapes" else "1", "language": "Python",
                       "formats": {"otj": ["read", "write"]}}}  # fmt: skip
    if op == "read":
        if HOW == "escapes":
            print("\x1b[2J\x1b[31mlog\x1b[0m \u202e", file=sys.stderr, flush=True)
            return {"refused": {"reason": "\x1b]0;owned\x07\x1b[2J <script>"}}
        harm(request)
        return {"refused": {"reason": "always"}}
    return {"ok": {}}


def main() -> None:
    if HOW == "deaf":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], **answer(request)}), flush=True)
    while HOW == "deaf":
        signal.pause()


main()
