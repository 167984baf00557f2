"""A driver that misbehaves on demand. Its input files *are* replies: to read one is to send it.

rogue.py MODE [N]     misbehave at the Nth request after hello (default 1), and only in the first process that gets
                      there when a third argument names a file to remember it by
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

MODE = sys.argv[1]
NTH = int(sys.argv[2]) if len(sys.argv) > 2 else 1
MEMORY = Path(sys.argv[3]) if len(sys.argv) > 3 else None


def send(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def raw(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def forever() -> None:
    while True:
        time.sleep(60)


def misbehave(request: dict[str, object]) -> None:
    name = request["id"]
    start = f'{{"id": {name}, '
    print(f"about to {MODE}", file=sys.stderr, flush=True)
    if MODE == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif MODE == "exit":
        os._exit(3)
    elif MODE == "exit-zero":
        os._exit(0)
    elif MODE == "hang":
        forever()
    elif MODE == "stubborn":  # deaf to everything but SIGKILL, and with a child
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(["sleep", "600"])
        forever()
    elif MODE == "flood":
        while True:
            sys.stdout.write("x" * 65536)
    elif MODE == "flood-log":
        while True:
            sys.stderr.write("y" * 65535 + "\n")
    elif MODE == "bad-json":
        sys.stdout.write('{"id": oops}\n')
    elif MODE == "not-utf8":
        sys.stdout.buffer.write(b'{"id": 1, "refused": {"reason": "\xff"}}\n')
    elif MODE == "two-objects":
        sys.stdout.write(json.dumps({"id": name, "refused": {"reason": "a"}}) * 2 + "\n")
    elif MODE == "nan":
        raw(start + '"ok": {"nstep": NaN}}\n')
    elif MODE == "wrong-id":
        send({"id": 4711, "refused": {"reason": "for somebody else"}})
    elif MODE == "no-id":
        send({"refused": {"reason": "to whom it may concern"}})
    elif MODE == "not-schema":
        send({"id": name, "ok": {"format": "otj", "particles": "two"}})
    elif MODE == "two-outcomes":
        send({"id": name, "ok": {}, "refused": {"reason": "cannot decide"}})
    elif MODE == "refused-without-reason":
        send({"id": name, "refused": {}})
    elif MODE == "huge-int":
        raw(start + '"ok": {"format": "otj", "particles": ' + "9" * 100_000 + "}}\n")
    elif MODE == "deep":
        raw(start + '"ok": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    elif MODE == "deep-enough-to-parse":
        raw(start + '"ok": ' + "[" * 300 + "]" * 300 + "}\n")
    elif MODE == "duplicate-member":
        raw(start + '"refused": {"reason": "a"}, "refused": {"reason": "b"}}\n')
    elif MODE == "half-a-character":
        raw(start + '"refused": {"reason": "\\ud800"}}\n')
    elif MODE == "orphan":  # dies while a child holds both pipes open
        subprocess.Popen(["sleep", "600"])
        os._exit(4)
    elif MODE == "half-a-line":
        raw(start + '"refus')
        os._exit(5)
    elif MODE == "close-output":
        sys.stdout.flush()
        os.close(1)
        forever()
    elif MODE == "memory":
        hoard = []
        while True:
            hoard.append(bytearray(os.urandom(1 << 20)) * 8)
    elif MODE == "error-reply":
        send({"id": name, "error": {"message": "panicked at reader.rs:7"}})
    elif MODE == "edit-input":
        path = Path(str(request["path"]))
        reply = json.loads(path.read_text())
        path.write_text(path.read_text() + " ")
        send({"id": name, "ok": reply})
    elif MODE == "new-file":
        path = Path(str(request["path"]))
        Path(str(path) + ".idx").write_text("index")
        send({"id": name, "ok": json.loads(path.read_text())})
    elif MODE == "delete-input":
        path = Path(str(request["path"]))
        reply = json.loads(path.read_text())
        path.unlink()
        send({"id": name, "ok": reply})
    elif MODE == "chatter":
        print("reading", request["path"])
        answer(request)
    elif MODE == "surplus":
        answer(request)
        send({"id": name, "ok": {}})
    elif MODE == "die-after-answer":
        answer(request)
        os._exit(6)
    elif MODE == "slow":
        time.sleep(0.3)
        answer(request)
    else:
        raise SystemExit(f"no mode {MODE}")
    sys.stdout.flush()


def answer(request: dict[str, object]) -> None:
    name, op = request["id"], request["op"]
    if op == "hello":
        formats = {"otj": ["read", "write"]}
        send({"id": name, "ok": {"name": "rogue", "version": "1", "language": "Python", "formats": formats}})
    elif op == "read":
        text = Path(str(request["path"])).read_text()
        if text == "refuse":
            send({"id": name, "refused": {"reason": "told to"}})
        elif text == "unsupported":
            send({"id": name, "unsupported": {"what": "anything"}})
        else:
            send({"id": name, "ok": json.loads(text)})
    else:
        send({"id": name, "ok": {}})


def first() -> bool:
    """Whether no process has misbehaved yet; with no memory every process does."""
    try:
        if MEMORY:
            MEMORY.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def main() -> None:
    count = 0
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "hello":
            if MODE == "dead-at-hello" and first():
                print("cannot find libfoo.so", file=sys.stderr, flush=True)
                sys.exit(1)
            if MODE == "hello-refused":
                send({"id": request["id"], "error": {"message": "protocol 1 is not spoken here"}})
                continue
        elif request["op"] != "bye":
            count += 1
            if count == NTH and MODE not in ("fine", "dead-at-hello") and first():
                misbehave(request)
                continue
        answer(request)
        if request["op"] == "bye":
            return


main()
