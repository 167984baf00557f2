"""A driver as a program: JSON Lines over pipes, with limits on time, output and memory.

The program is whatever somebody wrote, so it is taken to crash, hang, flood, answer nonsense and leave children
behind. Every such thing ends as a `DriverFault` whose message says what happened; the process group is killed and
the next case gets a fresh process. One thread a driver and no others: a request is written, the answer read
and the log drained in one loop, so that no full pipe can block either side.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from trajconform.harness.protocol import (
    PROTOCOL,
    Answer,
    DriverFault,
    DriverUnavailable,
    decode_reply,
    encode_message,
)

MIB = 1 << 20
_SLICE = 0.02  # seconds between two looks at memory and at whether the process still lives
_CHUNK = 1 << 18
_TAIL = 1 << 16
_SHOWN_LOG = 8192
_STARTS = 3
_STILL = 5.0


@dataclass(frozen=True)
class Limits:
    """What a driver may take: seconds per answer, bytes per answer, per process log, and of resident memory."""

    start_seconds: float = 30.0
    request_seconds: float = 20.0
    reply_bytes: int = 16 * MIB
    log_bytes: int = 64 * MIB
    memory_bytes: int = 2048 * MIB


class DriverProcess:
    """One running driver program in a process group of its own."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str], limits: Limits) -> None:
        """Start the program. `DriverUnavailable` where there is nothing to start."""
        try:
            self._process = subprocess.Popen(
                list(command),
                cwd=folder,
                env={**os.environ, **env},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            missing = f"the folder {folder}" if not folder.is_dir() else f"the program {command[0]!r}"
            raise DriverUnavailable(f"cannot start the driver: {missing} is not there") from error
        except OSError as error:
            raise DriverUnavailable(f"cannot start the driver: {command[0]!r}: {error.strerror or error}") from error
        self._limits = limits
        self._in, self._out, self._err = (
            _descriptor(pipe) for pipe in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        self._received = bytearray()
        self._log = bytearray()
        self._logged = 0
        self._open = {self._out, self._err}
        self._requests = 0
        self._request: dict[str, Any] = {"op": "", "id": 0}

    def ask(self, op: str, params: Mapping[str, Any], seconds: float) -> Answer:
        """Send one request and wait for its answer. `DriverFault` where none comes that could be one."""
        return decode_reply(self.ask_line(op, params, seconds), self._request)

    def ask_line(self, op: str, params: Mapping[str, Any], seconds: float) -> bytes:
        """Send one request and wait for a line, whatever stands in it. `DriverFault` where none comes."""
        return self._exchange(self._message(op, params), op, seconds)

    def send(self, op: str, params: Mapping[str, Any], seconds: float) -> None:
        """Send one request and do not wait for its answer: `receive` or `killed_answer` comes next."""
        self._exchange(self._message(op, params), op, seconds, only_send=True)

    def receive(self, seconds: float) -> Answer:
        """The answer to the request that was sent. `DriverFault` where none comes that could be one."""
        return decode_reply(self._exchange(b"", self._request["op"], seconds), self._request)

    def killed_answer(self) -> Answer | None:
        """Kill the process now; the answer to the request that was sent, where one had come whole until then."""
        self.kill()
        end = self._received.find(b"\n")
        return decode_reply(bytes(self._received[:end]), self._request) if end >= 0 else None

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Hold the process group still; `DriverFault` where it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGSTOP)
        try:
            deadline = time.monotonic() + _STILL
            while not _stands_still(self._process.pid):
                if self._status() is not None:
                    raise self._death(self._request["op"])
                if time.monotonic() > deadline:
                    raise DriverFault("hang", f"could not be held still within {_STILL:g} s")
                time.sleep(0.0005)
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGCONT)

    def _message(self, op: str, params: Mapping[str, Any]) -> bytes:
        self._requests += 1
        self._request = {"id": self._requests, "op": op, **params}
        return encode_message(self._request)

    @property
    def request(self) -> dict[str, Any]:
        """The last request, as it was sent."""
        return self._request

    def unread(self) -> int:
        """Bytes of requests that the program has not taken from its input; 0 where the system does not tell."""
        try:
            answer = fcntl.ioctl(self._in, termios.FIONREAD, b"\0" * 4)
        except OSError:
            return 0
        return int.from_bytes(answer, sys.byteorder)

    def received(self) -> bytes:
        """What lies on the output and has been taken for no answer."""
        self._drain()
        return bytes(self._received)

    def end_input(self, seconds: float) -> str:
        """Close the program's input and wait for its end: how it ended, or nothing where it still runs."""
        if self._in >= 0:
            os.close(self._in)
            self._in = -1
        deadline = time.monotonic() + seconds
        while not (ending := self.ended()) and time.monotonic() < deadline:
            self._drain()
            time.sleep(0.005)
        self._drain()
        return ending

    def ended(self) -> str:
        """How the process ended by itself (``exited with status 1``), or nothing while it runs."""
        status = self._status()
        return "" if status is None else _ending(status)

    def unasked(self) -> bytes:
        """What lies on the output though no request is open."""
        self._drain()
        return bytes(self._received[:200])

    def log_mark(self) -> int:
        """Position in the log, for `log`."""
        self._drain()
        return self._logged

    def log(self, since: int = 0) -> str:
        """Tail of what the process wrote to standard error after a mark."""
        self._drain()
        size = min(self._logged - since, len(self._log), _SHOWN_LOG)
        text = self._log[len(self._log) - size :].decode("utf-8", "replace")
        return text if size == self._logged - since else "[...] " + text

    def stop(self, seconds: float = 1.0) -> None:
        """Say bye, give the program a moment to leave, then kill what is left of it."""
        if self._status() is None:
            with contextlib.suppress(DriverFault):
                self.ask("bye", {}, seconds)
            with contextlib.suppress(OSError):
                os.close(self._in)
                self._in = -1
            self._wait(seconds)
        self.kill()

    def signal_group(self) -> None:
        """Kill the process group and nothing else: what another thread may do."""
        # The leader is reaped only in `kill`; until then its number, and so the group's, belongs to nobody else.
        if self._process.returncode is None:
            # Children that have made a group of their own are found while their parents still live.
            below = _descendants(self._process.pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            for pid in below:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill the process group and give the pipes back. Safe to call again."""
        self.signal_group()
        self._process.wait()
        if self._out >= 0:
            self._drain()
        for descriptor in (self._in, self._out, self._err):
            if descriptor >= 0:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._in = self._out = self._err = -1
        self._open = set()

    def _exchange(self, data: bytes, op: str, seconds: float, *, only_send: bool = False) -> bytes:
        deadline = time.monotonic() + seconds
        checked = time.monotonic()
        scanned = 0
        pending = memoryview(data)
        poller = select.poll()
        for descriptor in self._open:
            poller.register(descriptor, select.POLLIN)
        pending = self._write(pending, op)
        if pending:
            poller.register(self._in, select.POLLOUT)
        while True:
            if only_send and not pending:
                return b""
            end = self._received.find(b"\n", scanned)
            if end > self._limits.reply_bytes or (end < 0 and len(self._received) > self._limits.reply_bytes):
                size = f"more than {self._limits.reply_bytes / MIB:g} MiB without the end of a line"
                raise DriverFault("flood", f"flooded its output while it answered {op!r}: {size}")
            if end >= 0 and not pending:
                line = bytes(self._received[:end])
                del self._received[: end + 1]
                return line
            scanned = len(self._received)
            now = time.monotonic()
            if now - checked >= _SLICE:
                checked = now
                self._check_memory(op)
            if now >= deadline:
                raise DriverFault("hang", f"did not answer {op!r} within {seconds:g} s")
            events = poller.poll(max(1.0, min(deadline - now, _SLICE) * 1000))
            alive = self._status() is None
            for descriptor, event in events:
                if descriptor == self._in:
                    pending = self._write(pending, op)
                    if not pending or event & (select.POLLERR | select.POLLHUP):
                        poller.unregister(self._in)
                elif not self._read(descriptor):
                    poller.unregister(descriptor)
            if self._logged > self._limits.log_bytes:
                size = f"more than {self._limits.log_bytes / MIB:g} MiB to standard error"
                raise DriverFault("flood", f"flooded its log while it answered {op!r}: {size}")
            if not alive:
                self._drain()
            if (not alive or self._out not in self._open) and b"\n" not in self._received[scanned:]:
                raise self._death(op)

    def _write(self, pending: memoryview, op: str) -> memoryview:
        """Write what the pipe takes now; what is left. A broken pipe is left for the reading side to explain."""
        try:
            while pending:
                pending = pending[os.write(self._in, pending) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            # It may have answered and left, or closed its input on purpose: what it wrote decides.
            return pending[:0]
        return pending

    def _read(self, descriptor: int) -> bool:
        """Take what a pipe holds now, one chunk; False at its end."""
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return True
        if not chunk:
            self._open.discard(descriptor)
            return False
        if descriptor == self._out:
            self._received += chunk
        else:
            self._logged += len(chunk)
            self._log += chunk
            del self._log[:-_TAIL]
        return True

    def _drain(self) -> None:
        """Take what lies in both pipes without waiting, within the limits."""
        for descriptor in tuple(self._open):
            poller = select.poll()
            poller.register(descriptor, select.POLLIN)
            while (
                poller.poll(0)
                and len(self._received) <= self._limits.reply_bytes
                and self._logged <= self._limits.log_bytes
                and self._read(descriptor)
            ):
                pass

    def _death(self, op: str) -> DriverFault:
        status = self._wait(1.0)
        if status is None:
            return DriverFault("crash", f"closed its output without answering {op!r}, though it still runs")
        self._drain()
        said = f" after {len(self._received)} bytes of a line without an end" if self._received else ""
        return DriverFault("crash", f"{_ending(status)} while it answered {op!r}{said}")

    def _status(self) -> int | None:
        """Exit status, negative for a signal, or None while the process runs. Does not reap it where that can be."""
        if self._process.returncode is not None or not hasattr(os, "waitid"):
            return self._process.poll()
        found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _wait(self, seconds: float) -> int | None:
        deadline = time.monotonic() + seconds
        while (status := self._status()) is None and time.monotonic() < deadline:
            time.sleep(0.002)
        return status

    def _check_memory(self, op: str) -> None:
        used = _resident(self._process.pid)
        if used > self._limits.memory_bytes:
            size = f"{used / MIB:.0f} MiB resident, {self._limits.memory_bytes / MIB:g} MiB allowed"
            raise DriverFault("memory", f"took too much memory while it answered {op!r}: {size}")


class ProcessDriver:
    """A driver program that is started when needed and again after a fault."""

    def __init__(
        self, command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None, limits: Limits | None = None
    ) -> None:
        self._start = (tuple(command), folder, dict(env or {}))
        self._limits = limits or Limits()
        self._process: DriverProcess | None = None
        self._mark = 0
        self._failed_starts = 0
        self._lost_log = ""
        self.said: dict[str, Any] = {}
        """What the program said of itself when it last started."""
        self.notes: list[str] = []
        """What is worth knowing beyond single cases."""

    def hello(self) -> dict[str, Any]:
        """Start the program if need be and return what it says of itself. `DriverFault` where it does not."""
        self._discard()
        self._lost_log = ""
        if self._failed_starts >= _STARTS:
            raise DriverUnavailable(f"not started again: {_STARTS} starts in a row failed")
        self._failed_starts += 1
        process = self._process = DriverProcess(*self._start, self._limits)
        answer = self._guarded(process, "hello", {"protocol": PROTOCOL}, self._limits.start_seconds)
        if answer.kind != "ok":
            self._discard()
            raise DriverFault("start", f"answered hello with {answer.kind}: {answer.reason}", reply=answer.wire)
        self._failed_starts = 0
        self.said = answer.body
        return answer.body

    def begin(self) -> None:
        """Get ready for a case: a live process with nothing on its output. `DriverFault` where there is none."""
        self._lost_log = ""
        if self._process is not None:
            ending = self._process.ended()
            if ending:
                self.notes.append(f"the process {ending} by itself after an answer; a new one was started")
                self._discard()
        if self._process is None:
            self.hello()
        assert self._process is not None
        unasked = self._process.unasked()
        if unasked:
            self._discard()
            text = unasked.decode("utf-8", "replace")
            raise DriverFault("surplus", f"wrote to its output though nothing was asked: {text[:120]!r}")
        self._mark = self._process.log_mark()

    def call(self, op: str, params: Mapping[str, Any]) -> Answer:
        """One request within a case. After a `DriverFault` the process is gone."""
        if self._process is None:
            raise DriverFault("crash", f"has no process to answer {op!r}")
        return self._guarded(self._process, op, params, self._limits.request_seconds)

    def log(self) -> str:
        """Tail of the driver's log since the case began."""
        return self._process.log(self._mark) if self._process else self._lost_log

    def restart(self) -> None:
        """Let the process go, so that the next case gets a fresh one."""
        self._discard()

    def close(self) -> None:
        """End the program politely, then for certain."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        """End the program at once; callable from another thread."""
        process = self._process
        if process is not None:
            process.signal_group()

    def _guarded(self, process: DriverProcess, op: str, params: Mapping[str, Any], seconds: float) -> Answer:
        try:
            return process.ask(op, params, seconds)
        except DriverFault:
            self._discard()
            raise

    def _discard(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._lost_log = self._process.log(self._mark)
            self._process = None
            self._mark = 0


def _descriptor(pipe: IO[bytes] | None) -> int:
    """A pipe end of our own, non-blocking; the buffered object around it is let go."""
    assert pipe is not None
    descriptor = os.dup(pipe.fileno())
    pipe.close()
    os.set_blocking(descriptor, False)
    return descriptor


def _ending(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name} (signal {-status})"
    except ValueError:
        return f"was killed by signal {-status}"


def _stands_still(leader: int) -> bool:
    """Whether a process that was told to stop has, with all its threads."""
    found = os.waitid(os.P_PID, leader, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
    return found is not None and found.si_code == os.CLD_STOPPED


def _resident(pid: int) -> int:
    """Resident bytes of a process and its descendants; 0 where the system does not tell."""
    total = 0
    for current in (pid, *_descendants(pid)):
        try:
            with open(f"/proc/{current}/statm", "rb") as file:  # noqa: PTH123 - hot path
                total += int(file.read().split()[1]) * _PAGE
        except (OSError, IndexError):
            continue
    return total


def _descendants(pid: int) -> list[int]:
    """The processes that a process and its children have started and that have not been orphaned."""
    found, queue = [], [pid]
    while queue:
        current = queue.pop()
        try:
            with open(f"/proc/{current}/task/{current}/children", "rb") as file:  # noqa: PTH123 - hot path
                below = [int(child) for child in file.read().split()]
        except OSError:
            continue
        found += below
        queue += below
    return found


RUN_VARIABLE = "TRAJCONFORM_RUN"
"""Environment variable that the drivers of a run hand down to whatever they start; its value names the run."""


def end_survivors(run: str) -> int:
    """Kill every process that carries the name of a run in its environment; how many there were.

    That finds orphans which have left the group and the session of their driver. 0 where the system does not tell.
    """
    mark = f"{RUN_VARIABLE}={run}".encode()
    ended = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark not in (entry / "environ").read_bytes().split(b"\0") or int(entry.name) == os.getpid():
                continue
            if (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z":
                continue
            os.kill(int(entry.name), signal.SIGKILL)
        except (OSError, IndexError):
            continue
        ended += 1
    return ended


_PAGE = os.sysconf("SC_PAGE_SIZE")
