"""The judge itself: every way to be wrong is told apart from being right, for checkers, writers and damaged files."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trajconform.harness.inprocess import InProcess, Refusal
from trajconform.harness.judge import describe_changes, snapshot, snapshot_of
from trajconform.harness.reference import ReferenceDriver
from trajconform.harness.runner import run_cases
from trajconform.harness.verdicts import CaseResult
from trajconform.model.arrays import array_from_plain, decode_array, encode_array
from trajconform.model.trajectory import OtjHeader
from trajconform.otj.writer import OtjWriter
from trajconform.vectors.cases import Case

F64 = {"precision": "double", "velocities": False, "timestep": 0.5}
DECLARATION = {"particles": 2, **F64, "masses": [1.0, 2.0]}
FRAMES = [{"x": [0.0, 1.0], "y": [-0.0, 2.0], "z": [0.5, float(i)]} for i in range(3)]
SCRIPT: list[dict[str, Any]] = [
    {"create": {"declaration": DECLARATION}},
    *({"append": {"step": 10 * i, "frame": frame}} for i, frame in enumerate(FRAMES)),
    {"flush": None},
    {"close": None},
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A kit with one golden file of three frames, and its reply."""
    files = tmp_path / "kit" / "vectors" / "otj" / "files"
    files.mkdir(parents=True)
    header = OtjHeader(2, "double", False, array_from_plain("f64", 0.5), array_from_plain("f64", [1.0, 2.0]))
    with OtjWriter(files / "three.otj", header) as writer:
        for i, frame in enumerate(FRAMES):
            writer.append(10 * i, {name: array_from_plain("f64", values) for name, values in frame.items()})
    reply = {
        "format": "otj",
        "particles": 2,
        **F64,
        "timestep": plain(0.5),
        "masses": plain([1.0, 2.0]),
        "frames": [
            {"step": 10 * i, "time": plain(5.0 * i), **{name: plain(values) for name, values in frame.items()}}
            for i, frame in enumerate(FRAMES)
        ],
    }
    (files / "three.reply.json").write_text(json.dumps(reply))
    return tmp_path / "kit"


def plain(values: Any) -> dict[str, Any]:
    return encode_array(array_from_plain("f64", values))


def case(root: Path, role: str, **more: Any) -> Case:
    fields: dict[str, Any] = {"input": {} if role == "writer" else {"golden": "three"}} | more
    return Case("otj/x/a", "vectors/otj/x/a.yaml", "t", ("OTJ-X-01",), role, "otj", "x", root, **fields)


def judged(subject: object, one: Case) -> CaseResult:
    (result,) = run_cases(InProcess("subject", lambda: subject), [one]).results
    return result


def verdict(subject: object, one: Case) -> str:
    result = judged(subject, one)
    assert result.verdict != "ERROR", result.message + result.stderr
    return str(result.verdict)


# -- readers


class Handing:
    """Hands back a canned reply, or refuses; may lack a feature."""

    def __init__(self, reply: Mapping[str, Any] | None, features: list[str] | None = None) -> None:
        self.reply, self.features = reply, features or []

    def hello(self) -> dict[str, Any]:
        formats = {"otj": ["read"]}
        return {"name": "h", "version": "", "language": "Python", "formats": formats, "features": self.features}

    def read(self, format: str, path: str, frames: Any = None) -> Any:  # noqa: A002
        if self.reply is None:
            raise Refusal("no")
        return self.reply


def golden_reply(root: Path) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads((root / "vectors/otj/files/three.reply.json").read_text())
    return reply


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([0], "PASS"),
        ([0, 2], "PASS"),
        ([0, 1, 2], "FAIL"),
        ([0, 1], "FAIL"),
        ([], "FAIL"),
        ([2], "FAIL"),
        ([0, 2, 2], "FAIL"),
        ([0, 0], "FAIL"),
    ],
)
def test_frames_that_may_follow_a_damaged_one(root: Path, frames: list[int], expected: str) -> None:
    reply = golden_reply(root)
    reply["frames"] = [reply["frames"][i] for i in frames]
    one = case(root, "reader", expect={"first_frames": 1, "may_follow": [2]})
    assert verdict(Handing(reply), one) == expected


@pytest.mark.parametrize(
    ("frames", "expected"), [([0, 1, 2], "PASS"), ([0, 2, 1], "FAIL"), ([0, 1], "PASS"), ([0, 2], "PASS")]
)
def test_several_may_follow_in_order(root: Path, frames: list[int], expected: str) -> None:
    reply = golden_reply(root)
    reply["frames"] = [reply["frames"][i] for i in frames]
    assert verdict(Handing(reply), case(root, "reader", expect={"first_frames": 1, "may_follow": [1, 2]})) == expected


@pytest.mark.parametrize(
    ("features", "reply", "expected"),
    [
        (["double"], None, "PASS"),
        (["double"], "golden", "FAIL"),
        (["single"], "golden", "PASS"),
        ([], "golden", "PASS"),
        ([], None, "FAIL"),
    ],
)
def test_a_driver_that_lacks_a_feature_is_held_to_something_else(
    root: Path, features: list[str], reply: str | None, expected: str
) -> None:
    one = case(root, "reader", expect="accepted", lacking={"single": "refused"})
    assert verdict(Handing(golden_reply(root) if reply else None, features), one) == expected


def test_only_the_parts_that_a_case_names_are_compared(root: Path) -> None:
    reply = golden_reply(root) | {"tail": {"state": "damaged", "bytes": 3}}
    assert verdict(Handing(reply), case(root, "reader", expect="accepted")) == "PASS"
    expect = {"first_frames": 3, "tail": {"state": "clean", "bytes": 0}}
    assert verdict(Handing(reply), case(root, "reader", expect=expect)) == "PASS"
    result = judged(Handing(reply), case(root, "reader", expect=expect, compare=("tail",)))
    assert [d.path for d in result.differences] == ["tail.state", "tail.bytes"]


def test_a_path_may_be_left_free(root: Path) -> None:
    reply = golden_reply(root)
    reply["frames"][1]["time"] = plain("0x7ff8000000000001")
    assert verdict(Handing(reply), case(root, "reader", expect="accepted")) == "FAIL"
    assert verdict(Handing(reply), case(root, "reader", expect="accepted", free=("frames[1].time",))) == "PASS"


def test_a_difference_in_one_bit_is_shown_with_its_bits(root: Path) -> None:
    reply = golden_reply(root)
    reply["frames"][2]["y"] = plain([0.0, 2.0])
    result = judged(Handing(reply), case(root, "reader", expect="accepted"))
    assert str(result.differences[0]) == (
        "frames[2].y[0]: expected -0.0 (0x8000000000000000), got 0.0 (0x0000000000000000) (1 of 2 values differ)"
    )


# -- checkers


class Checking:
    """Reports canned violations."""

    def __init__(self, *violations: dict[str, Any]) -> None:
        self.violations = violations

    def check(self, format: str, path: str) -> Any:  # noqa: A002
        return [{"message": "m", **violation} for violation in self.violations]


A, B, NAMELESS = {"clause": "OTJ-X-01", "path": "p"}, {"clause": "OTJ-X-02"}, dict[str, Any]()


@pytest.mark.parametrize(
    ("reported", "expect", "expected", "message"),
    [
        ([], "clean", "PASS", ""),
        ([A], "clean", "FAIL", "reports OTJ-X-01 too"),
        ([NAMELESS], "clean", "FAIL", "reports a violation where there is none"),
        ([A], {"violations": ["OTJ-X-01"]}, "PASS", ""),
        ([A, A], {"violations": ["OTJ-X-01"]}, "PASS", ""),
        ([], {"violations": ["OTJ-X-01"]}, "FAIL", "does not report OTJ-X-01"),
        ([A, B], {"violations": ["OTJ-X-01"]}, "FAIL", "reports OTJ-X-02 too"),
        ([B], {"violations": ["OTJ-X-01"]}, "FAIL", "does not report OTJ-X-01; reports OTJ-X-02 too"),
        ([NAMELESS], {"violations": ["OTJ-X-01"]}, "PASS", ""),
        ([NAMELESS, B], {"violations": ["OTJ-X-01"]}, "FAIL", "reports OTJ-X-02 too"),
        ([A], {"violations": ["OTJ-X-01", "OTJ-X-02"]}, "FAIL", "does not report OTJ-X-02"),
    ],
)
def test_a_checker_is_held_to_just_the_clauses_of_the_case(
    root: Path, reported: list[dict[str, Any]], expect: Any, expected: str, message: str
) -> None:
    result = judged(Checking(*reported), case(root, "store", expect=expect))
    assert (str(result.verdict), result.message) == (expected, message)


# -- writers


class Writing(ReferenceDriver):
    """The bundled writer with one thing changed."""

    def __init__(self, change: str = "") -> None:
        super().__init__()
        self.change, self.calls = change, list[str]()

    def create(self, format: str, path: str, **more: Any) -> None:  # noqa: A002
        self.calls.append("create")
        if self.change == "refuse create":
            raise Refusal("no files today")
        if self.change == "no writing":
            raise NotImplementedError("writing otj")
        self.path = Path(path)
        super().create(format, path, **more)

    def append(self, step: Any, frame: Mapping[str, Any], time: Any = None) -> None:
        self.calls.append("append")
        if self.change == "refuse second" and self.calls.count("append") == 2:
            raise Refusal("that is enough")
        if self.change == "lose a sign":
            frame = copy.deepcopy(dict(frame))
            frame["y"] = encode_array(decode_array(frame["y"]) + 0.0)
        if self.change == "drop third" and self.calls.count("append") == 3:
            return
        super().append(step, frame, time)

    def close(self) -> None:
        self.calls.append("close")
        super().close()
        if self.change == "delete":
            self.path.unlink()
        if self.change == "spoil":
            data = bytearray(self.path.read_bytes())
            data[-3] ^= 1
            self.path.write_bytes(data)


def written(root: Path, **more: Any) -> Case:
    fields: dict[str, Any] = {"script": tuple(SCRIPT), "expect": {"bytes": "three"}} | more
    return case(root, "writer", **fields)


@pytest.mark.parametrize(
    ("change", "expected", "message", "call"),
    [
        ("", "PASS", "", None),
        ("refuse create", "FAIL", "call 1 (create) was refused: no files today", 0),
        ("refuse second", "FAIL", "call 3 (append) was refused: that is enough", 2),
        ("no writing", "SKIP", "the driver does not support it: writing otj", None),
        ("lose a sign", "FAIL", "its bytes: byte 95: expected 00 00 00 00 00 00 00 80", None),
        ("drop third", "FAIL", "its bytes: size: expected 272 bytes, got 200 bytes", None),
        ("delete", "FAIL", "the writer left nothing at out.otj", None),
        ("spoil", "FAIL", "the checker: ", None),
    ],
)
def test_a_writer_is_held_to_its_calls_and_its_bytes(
    root: Path, change: str, expected: str, message: str, call: int | None
) -> None:
    subject = Writing(change)
    result = judged(subject, written(root))
    assert str(result.verdict) == expected, result.message
    assert message in result.message
    assert result.call == call
    if change == "refuse second":
        assert subject.calls == ["create", "append", "append", "close"], "the writer is closed after all"
        assert [exchange.request["op"] for exchange in result.exchanges] == ["create", "append", "append"]
    if change == "lose a sign":
        assert result.differences[0].note == "27 of 272 bytes differ", "three signs and three checksums"


def test_bytes_that_the_case_leaves_free_are_not_compared(root: Path) -> None:
    frame = 8 + 8 + 3 * 16 + 8
    free = [
        pair
        for i in range(3)
        for pair in ([56 + i * frame + 32, 56 + i * frame + 48], [56 + (i + 1) * frame - 8, 56 + (i + 1) * frame])
    ]
    assert verdict(Writing("lose a sign"), written(root, expect={"bytes": "three", "free": free})) == "PASS"
    assert verdict(Writing("drop third"), written(root, expect={"bytes": "three", "free": free})) == "FAIL"


def test_a_prefix_of_a_golden_file_may_be_asked_for_while_the_writer_is_open(root: Path) -> None:
    script = (*SCRIPT[:3], {"flush": None})
    subject = Writing()
    assert verdict(subject, written(root, script=script, expect={"bytes": "three", "first_frames": 2})) == "PASS"
    assert subject.calls == ["create", "append", "append", "close"]
    assert verdict(Writing(), written(root, script=script, expect={"bytes": "three", "first_frames": 1})) == "FAIL"


def test_a_call_that_has_to_be_refused(root: Path) -> None:
    narrow = {"append": {"step": 5, "frame": {**FRAMES[0], "x": [1.0]}}}
    script = (SCRIPT[0], {**narrow, "refused": True}, *SCRIPT[1:])
    assert verdict(Writing(), written(root, script=script)) == "PASS"
    good = {**SCRIPT[1], "refused": True}
    result = judged(Writing(), written(root, script=(SCRIPT[0], good, *SCRIPT[1:])))
    assert result.verdict == "FAIL"
    assert result.message == "call 2 (append) was accepted, though a writer refuses it"
    assert result.call == 1
    assert result.expected == {"refused": True}


def test_a_create_that_has_to_be_refused_leaves_nothing_to_judge(root: Path) -> None:
    script = ({"create": {"declaration": {**DECLARATION, "masses": [1.0]}}, "refused": True},)
    assert verdict(Writing(), written(root, script=script, expect={})) == "PASS"


def test_a_writer_script_that_reopens_needs_the_feature(root: Path) -> None:
    class Plain(Writing):
        def hello(self) -> dict[str, Any]:
            return {**super().hello(), "features": []}

    result = judged(Plain(), written(root, script=(*SCRIPT, {"reopen": {}})))
    assert (result.verdict, result.message) == ("SKIP", "the driver does not have the feature reopen")


# -- inputs stay untouched


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda p: None, []),
        (lambda p: (p / "a").write_text("b"), [("a", "was modified")]),
        (lambda p: (p / "a").unlink(), [("a", "was removed")]),
        (lambda p: (p / "d" / "new").touch(), [("d/new", "was added")]),
        (lambda p: (p / "e").mkdir(), [("e", "was added")]),
        (lambda p: ((p / "a").unlink(), (p / "a").symlink_to("d/c")), [("a", "was modified")]),
        (lambda p: (p / "a").write_bytes((p / "a").read_bytes()), []),
    ],
)
def test_every_change_of_a_folder_is_seen(tmp_path: Path, change: Any, expected: list[tuple[str, str]]) -> None:
    folder = tmp_path / "store"
    (folder / "d").mkdir(parents=True)
    (folder / "a").write_text("a")
    (folder / "d" / "c").write_text("a")
    before = snapshot(folder)
    assert before == snapshot_of({"a": b"a", "d/c": b"a"})
    change(folder)
    assert list(describe_changes(before, snapshot(folder))) == expected
