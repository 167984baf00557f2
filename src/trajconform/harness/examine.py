"""A conversation with a driver that explains each reply: ``trajconform driver check``.

The questions are a few cases that any implementation gets right, asked in the way of a run, and the things that a run
relies on without asking: that unknown members are ignored, that paths may hold blanks and any letter, that the program
leaves when it is told to, or when its input ends. Unlike a run it goes on after a fault to find the next one.
"""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trajconform import kit
from trajconform.harness import diagnosis
from trajconform.harness.crash import Launcher
from trajconform.harness.diagnosis import Remark
from trajconform.harness.drivertoml import DriverSpec
from trajconform.harness.inprocess import InProcess
from trajconform.harness.judge import Bench, Outcome, judge, skip_reason
from trajconform.harness.process import RUN_VARIABLE, DriverProcess, end_survivors
from trajconform.harness.protocol import (
    OUTCOMES,
    PROTOCOL,
    Answer,
    DriverFault,
    DriverUnavailable,
    body_schema,
    decode_message,
)
from trajconform.harness.verdicts import Verdict
from trajconform.model.errors import TrajconformError
from trajconform.spec.catalogue import FORMATS
from trajconform.vectors.cases import Case, load_cases

_GRACE = 3.0  # a busy machine takes its time to end a program
_MOMENT = 0.03
_MOST_HANGS = 2
_MOST_DIFFERENCES = 3

QUESTIONS: tuple[tuple[str, str], ...] = (
    ("otj/counting/frames@one-particle", "read otj: a sound file in double precision"),
    ("otj/counting/frames@wide", "read otj: a sound file in single precision"),
    ("otj/conventions/large-steps", "read otj: step numbers beyond 2^53"),
    ("otj/conventions/zeros@zeros-double", "read otj: zeros of both signs"),
    ("otj/conventions/quiet-nans@quiet-nans-double", "read otj: NaNs whose bits matter"),
    ("otj/counting/range-many-frames@7-to-12", "read otj: frames 7 to 11 of 25"),
    ("otj/header/magic@a-png", "read otj: a file that is none, which a reader refuses"),
    ("otj/frame/times-store@two-roundings-single", "check otj: a file without a fault"),
    ("otj/header/magic-store", "check otj: a file with a fault"),
    ("otj/flags/write-velocities@double-velocities", "write otj: a file in double precision"),
    ("otj/flags/write-velocities@single-velocities", "write otj: a file in single precision"),
    ("otj/frame/write-component-missing@x", "write otj: a frame that a writer refuses, and then others"),
    ("mrec/states/all-three", "read mrec: blocks present, empty and absent"),
    ("mrec/states/range@carried-empty", "read mrec: frame 4 alone"),
    ("mrec/record/version@0", "read mrec: a record of version 0, which a reader refuses"),
    ("mrec/record/whole-store", "check mrec: a record without a fault"),
    ("mrec/record/store-faults@count-other", "check mrec: a record with a fault"),
    ("mrec/states/w-zero-rows@after-rows", "write mrec: a block that becomes empty"),
    (
        "mrec/step-and-time/w-step-not-greater@after-a-flush",
        "write mrec: a step that a writer refuses, and then others",
    ),
    ("mrec/reopen/w-goes-on@regular", "write mrec: going on with what was closed"),
)
"""Cases by id, and what each is to somebody who has not read any. What a driver does not claim is not asked."""

ODD_FOLDER = "a folder with blänks ✓"


@dataclass(frozen=True)
class Step:
    """One message and what came of it. ``said`` is the answer in short; ``log`` is what the driver wrote meanwhile."""

    number: int
    words: str
    request: Mapping[str, Any]
    came: bytes
    seconds: float
    said: str
    remarks: tuple[Remark, ...] = ()
    log: str = ""

    @property
    def grave(self) -> bool:
        """Whether something is wrong with it."""
        return any(remark.grave for remark in self.remarks)


@dataclass
class _Seen:
    """A message while it is still looked at."""

    words: str
    request: Mapping[str, Any]
    came: bytes = b""
    seconds: float = 0.0
    said: str = ""
    remarks: list[Remark] = field(default_factory=list)
    log: str = ""


class Conversation:
    """Asks a driver and looks at each answer; what a case needs of a driver is `call`."""

    def __init__(
        self, source: DriverSpec | InProcess, seconds: float | None, tell: Callable[[Step], None], name: str
    ) -> None:
        self._source = source
        self._launcher = Launcher(source, seconds)
        self._launcher.set_variable(RUN_VARIABLE, name)
        self._limits = self._launcher.limits
        self._tell = tell
        self._process: DriverProcess | None = None
        self._pending: list[_Seen] = []
        self._number = 0
        self._mark = 0
        self._hangs = 0
        self.words = ""
        self.extra: dict[str, Any] = {}
        """Members that are added to each request of a question."""
        self.said: dict[str, Any] = {}

    @property
    def over(self) -> bool:
        """Whether there is no use in going on: it hangs again and again."""
        return self._hangs >= _MOST_HANGS

    def greet(self, *, silent: bool = False) -> bool:
        """Start a process and say hello. False where it does not answer as it has to."""
        self.end()
        self.words = "hello"
        try:
            self._process = self._launcher.start()
        except DriverUnavailable as fault:
            seen = _Seen("start the program", {"op": "start"})
            do = "Correct [run] command in driver.toml, and make the program executable."
            seen.remarks.append(Remark(f"the driver {fault}", diagnosis.COMMAND, do))
            self._pending.append(seen)
            self._told()
            return False
        self._mark = 0
        try:
            answer = self._asked("hello", {"protocol": PROTOCOL}, self._limits.start_seconds)
        except DriverFault:
            self._told()
            return False
        seen = self._pending[-1]
        if answer.kind != "ok":
            do = "Answer hello with ok, as the page shows; error is for a protocol version that is not known."
            seen.remarks.append(Remark(f"hello was answered with {answer.kind}", diagnosis.HELLO, do))
        else:
            self.said = answer.body
            seen.said = _introduction(answer.body)
            if isinstance(self._source, DriverSpec):
                claims, features = self._source.claims, self._source.features
                seen.remarks += diagnosis.about_claims(answer.body, claims, features, FORMATS)
        if silent and not seen.remarks:
            self._pending.clear()
        else:
            self._told()
        return answer.kind == "ok"

    def call(self, op: str, params: Mapping[str, Any]) -> Answer:
        """One request within a question. `DriverFault` where the answer is none; the process is then gone."""
        if self._process is None:
            raise DriverFault("crash", f"has no process to answer {op!r}")
        return self._asked(op, {**params, **self.extra}, self._launcher.request_seconds)

    def question(self, case: Case, words: str, folder: Path) -> None:
        """Ask what a case asks and say what is wrong with the answers."""
        if self._process is None and not self.greet(silent=True):
            return
        self.words = words
        folder.mkdir(parents=True)
        bench = Bench(self, folder, frozenset(self.said.get("features", ())))
        try:
            outcome = judge(case, bench)
        except DriverFault as fault:
            if fault.kind == "error" and self._pending:
                self._pending[-1].remarks.append(_about_error(case, str(fault)))
        except TrajconformError as error:
            self._pending[-1].remarks.append(Remark(str(error), diagnosis.TRANSLATES, "Look at the reply."))
        else:
            self._judged(case, outcome)
        self._told()

    def alone(self, op: str, params: Mapping[str, Any], words: str, seconds: float) -> Answer | None:
        """One request that belongs to no case; nothing where no answer came. It stays open for remarks."""
        if self._process is None and not self.greet(silent=True):
            return None
        self.words = words
        try:
            return self._asked(op, params, seconds)
        except DriverFault:
            return None

    def remark(self, remark: Remark) -> None:
        """Add to what was said of the last message."""
        self._pending[-1].remarks.append(remark)

    def leave(self, words: str, rule: diagnosis.Rule) -> None:
        """Close the input and see whether the program ends."""
        if self._process is None:
            return
        started = time.monotonic()
        if not self._pending:
            self._pending.append(_Seen(words, {"op": "end of input"}))
        seen = self._pending[-1]
        ending = self._process.end_input(_GRACE)
        seen.seconds = max(seen.seconds, time.monotonic() - started)
        if not ending:
            do = "Let the loop over the input end where the input does; a run kills what is still there."
            seen.remarks.append(
                Remark(f"the program still runs {_GRACE:g} s after it was to leave", rule, do, grave=False)
            )
        elif ending != "exited with status 0":
            do = "A run does not look at how a driver ends; a clean end makes a crash stand out."
            seen.remarks.append(Remark(f"the program {ending} when it was to leave", rule, do, grave=False))
        seen.said = f"{seen.said}; {ending or 'still runs'}".removeprefix("; ")
        self.end()
        self._told()

    def end(self) -> None:
        """Kill what there is of a process."""
        if self._process is not None:
            self._process.kill()
            self._launcher.gone(self._process)
            self._process = None

    def _asked(self, op: str, params: Mapping[str, Any], seconds: float) -> Answer:
        process = self._process
        assert process is not None
        started = time.monotonic()
        seen = _Seen(self.words, {"op": op})
        self._pending.append(seen)
        self._mark = process.log_mark()
        try:
            seen.came = process.ask_line(op, params, seconds)
        except DriverFault as fault:
            self._broke(fault, process, seen, seconds)
            raise
        finally:
            seen.seconds = time.monotonic() - started
            seen.request = process.request
        seen.seconds = time.monotonic() - started
        if seen.seconds > seconds / 2:
            limit = "start_seconds" if op == "hello" else "request_seconds"
            wrong = f"the reply took {seen.seconds:.1f} s of the {seconds:g} s that are allowed"
            do = f"Raise {limit} under [limits] in driver.toml: a busy machine may take longer."
            seen.remarks.append(Remark(wrong, diagnosis.LIMITS, do, grave=False))
        return self._look(seen, process)

    def _look(self, seen: _Seen, process: DriverProcess) -> Answer:
        """Hold a line to the protocol. `DriverFault` where it is no answer."""
        time.sleep(_MOMENT)
        following = process.received()
        request = process.request
        kind, answer = "bad reply", None
        try:
            message = decode_message(seen.came)
        except ValueError:
            seen.remarks.append(diagnosis.about_line(seen.came, following, request))
            kind = "bad json"
        else:
            got = message.pop("id", None)
            if type(got) is not int or got != request["id"]:
                seen.remarks.append(diagnosis.about_id(got, request, request["id"] - 1))
                kind = "wrong id"
            if len(message) != 1 or next(iter(message)) not in OUTCOMES:
                seen.remarks.append(diagnosis.about_kind(message, request))
            else:
                ((outcome, body),) = message.items()
                faults = diagnosis.about_body(outcome, body_schema(outcome, request), body, request)
                seen.remarks += faults or [*diagnosis.about_arrays(body)][:_MOST_DIFFERENCES]
                if not faults:
                    answer = Answer(outcome, body)
                    seen.said = outcome if outcome == "ok" else f"{outcome}: {answer.reason}"
            if following:
                seen.remarks.append(diagnosis.about_surplus(following, request))
        if answer is None or any(remark.grave for remark in seen.remarks):
            ending = process.ended()
            self._lost(process, seen)
            raise DriverFault(kind, f"gave no answer to {request['op']!r}{': it ' + ending if ending else ''}")
        if request["op"] != "bye" and (ending := process.ended()):
            fault = DriverFault("crash", f"{ending} after its answer to {request['op']!r}")
            seen.remarks.append(diagnosis.about_fault(fault, request, partial=b"", unread=0, late=b"", seconds=0.0))
            self._lost(process, seen)
            raise fault
        return answer

    def _broke(self, fault: DriverFault, process: DriverProcess, seen: _Seen, seconds: float) -> None:
        """Find out what a driver was at that gave no line."""
        partial, unread, late = process.received(), process.unread(), b""
        if fault.kind == "hang":
            self._hangs += 1
            if not partial.strip() and not unread:
                process.end_input(_GRACE)
                late = process.received()
        seen.came = partial or late
        remark = diagnosis.about_fault(
            fault, process.request, partial=partial, unread=unread, late=late, seconds=seconds
        )
        seen.remarks.append(remark)
        self._lost(process, seen)

    def _lost(self, process: DriverProcess, seen: _Seen) -> None:
        process.kill()
        seen.log = process.log(self._mark)
        self._launcher.gone(process)
        self._process = None

    def _judged(self, case: Case, outcome: Outcome) -> None:
        """What the verdict on a case says about the reply that decided it."""
        seen = self._pending[min(outcome.call or 0, len(self._pending) - 1)] if outcome.call is not None else None
        seen = seen or self._pending[-1]
        if outcome.verdict is Verdict.SKIP:
            do = "A claim that is answered so is worth nothing: leave it out of hello and driver.toml, or answer."
            wrong = f"what hello claims is answered with unsupported ({outcome.message.rpartition(': ')[2]})"
            seen.remarks.append(Remark(wrong, diagnosis.UNSUPPORTED, do, grave=False))
        if outcome.verdict is not Verdict.FAIL:
            return
        refusal = isinstance(outcome.expected, Mapping) and outcome.expected.get("refused")
        if refusal:
            do = (
                "Does the implementation say no and the driver hide it? Send its no as refused. Else the implementation "
                f"errs: 'trajconform explain {case.clauses[0]}'."
            )
            seen.remarks.append(Remark(outcome.message, diagnosis.REFUSED, do))
        elif outcome.message.startswith("reading changed"):
            do = "Open the file for reading only, and write no index or lock beside it."
            seen.remarks.append(Remark(outcome.message, diagnosis.UNTOUCHED, do))
        elif case.role == "reader" and outcome.differences:
            wanted = outcome.expected
            for difference in outcome.differences[:_MOST_DIFFERENCES]:
                seen.remarks.append(diagnosis.about_difference(difference, wanted, _body_of(seen.came)))
            if case.read_frames and len(outcome.differences) >= 1 and ".length" in outcome.differences[0].path:
                do = "Cut by frames: [first, end), or leave the feature range out."
                seen.remarks[-1] = Remark(seen.remarks[-1].wrong, diagnosis.RANGE, do)
        else:
            rule = diagnosis.CALLS if case.role == "writer" else diagnosis.TRANSLATES
            do = f"'trajconform run --case {case.id} --keep evidence' with this driver keeps what it was asked and what it left."
            seen.remarks.append(Remark(outcome.message, rule, do))

    def _told(self) -> None:
        """Pass on what has been looked at."""
        pending, self._pending = self._pending, []
        for seen in pending:
            self._number += 1
            self._tell(
                Step(
                    self._number, seen.words, seen.request, seen.came, seen.seconds, seen.said, tuple(seen.remarks),
                    seen.log if seen.remarks else "",
                )
            )  # fmt: skip


def examine(source: DriverSpec | InProcess, seconds: float | None, tell: Callable[[Step], None]) -> dict[str, Any]:
    """Hold a conversation with a driver; ``tell`` gets every message with what is to be said of it.

    ``seconds`` is the limit for one answer, where the driver's own is not meant. Returns what the driver said in hello,
    or nothing where it never did. `TrajconformError` where there is nothing to talk to.
    """
    if isinstance(source, DriverSpec):
        problem = source.setup_problem()
        if problem:
            raise TrajconformError(problem)
    elif not source.attribute:
        raise TrajconformError(f"{source.name} cannot be started as a program; name it as module:attribute")
    name = secrets.token_hex(12)
    talk = Conversation(source, seconds, tell, name)
    try:
        if not talk.greet():
            return {}
        said = talk.said
        with tempfile.TemporaryDirectory(prefix="trajconform-", ignore_cleanup_errors=True) as scratch:
            _ask_all(talk, Path(scratch))
        return said
    finally:
        talk.end()
        end_survivors(name)


def _ask_all(talk: Conversation, scratch: Path) -> None:
    features = frozenset(talk.said.get("features", ()))
    wanted = {name.partition("@")[0] for name, _ in QUESTIONS}
    cases = {case.id: case for case in load_cases(kit.root(), globs=sorted(wanted))}
    claimed = [(cases[n], words) for n, words in QUESTIONS if not skip_reason(cases[n], talk.said["formats"], features)]
    for number, (case, words) in enumerate(claimed):
        talk.question(case, words, scratch / str(number))
        if talk.over:
            return
    first = next((case for case, _ in claimed if case.role == "reader"), None)
    if first is not None:
        talk.question(
            first, f"read {first.format}: under a path with blanks and letters beyond ASCII", scratch / ODD_FOLDER
        )
        talk.extra = {"hint": {"from": "a later version of the protocol"}}
        talk.question(first, f"read {first.format}: with a member that the driver cannot know", scratch / "extra")
        talk.extra = {}
    if talk.over:
        return
    answer = talk.alone("rewind", {}, "a request that the protocol does not have", talk._launcher.request_seconds)
    if answer is not None and answer.kind != "unsupported":
        do = "Answer unsupported for an op that is not known: later versions of the protocol may have more of them."
        talk.remark(Remark(f"an unknown op was answered with {answer.kind}", diagnosis.UNKNOWN_OP, do, grave=False))
    talk._told()
    if talk.over:
        return
    if talk.alone("bye", {}, "bye", _GRACE) is not None:
        talk.leave("bye", diagnosis.BYE)
    talk._told()
    if talk.greet(silent=True):
        talk.leave("the input ends without bye", diagnosis.END_OF_INPUT)


def _about_error(case: Case, text: str) -> Remark:
    if case.expect == "refused":
        do = (
            "Where the implementation says no in the way that it documents, send refused; error is for a bug or a panic "
            "and counts as a crash."
        )
        return Remark(f"the driver {text}; a reader refuses this file", diagnosis.REFUSED, do)
    return Remark(f"the driver {text}", diagnosis.ERROR, "Its words and its log say what went wrong.")


def _introduction(said: Mapping[str, Any]) -> str:
    claims = "; ".join(f"{name}: {', '.join(roles)}" for name, roles in said["formats"].items())
    return f"{said['name']} {said['version']}, {said['language']}; {claims}"


def _body_of(line: bytes) -> Any:
    return json.loads(line).get("ok")
