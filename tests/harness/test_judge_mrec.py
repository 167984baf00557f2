"""What an mrec writer leaves on disk is read back, checked, and held to the layout that the case names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trajconform.harness.inprocess import InProcess
from trajconform.harness.reference import ReferenceDriver
from trajconform.harness.runner import run_cases
from trajconform.harness.verdicts import CaseResult
from trajconform.vectors.cases import Case

DECLARATION = {
    "blocks": {
        "atoms": {"columns": {"x": {"dtype": "f64", "trailing": []}}},
        "bonds": {"columns": {"order": {"dtype": "i32", "trailing": []}}},
    },
    "meta": {"pe": {"dtype": "f64"}},
}


def frame(number: int, **bonds: Any) -> dict[str, Any]:
    blocks = {"atoms": {"x": [float(number), -0.0]}, **({"bonds": {"order": bonds["order"]}} if bonds else {})}
    return {"blocks": blocks, "meta": {"pe": -1.5}}


FRAMES = [frame(0), frame(1), frame(2, order=[1])]
SCRIPT: tuple[dict[str, Any], ...] = (
    {"create": {"declaration": DECLARATION}},
    *({"append": {"step": 10 * i, "frame": body}} for i, body in enumerate(FRAMES)),
    {"close": None},
)
EXPECT: dict[str, Any] = {
    "frames": [{"step": 10 * i, **body} for i, body in enumerate(FRAMES)],
    "layout": [
        {"node": "trajectory/step", "absent": True},
        {"node": "trajectory", "attribute": "step_progression", "equals": {"start": 0, "stride": 10}},
        {"node": "trajectory/atoms", "attribute": "uniform_rows", "equals": 2},
        {"node": "trajectory/atoms/offset", "absent": True},
        {"node": "trajectory/bonds/step_index", "values": [2]},
        {"node": "trajectory/bonds/order", "dtype": "i32"},
    ],
}


def judged(subject: object, script: tuple[dict[str, Any], ...] = SCRIPT, expect: Any = EXPECT) -> CaseResult:
    one = Case(
        "mrec/x/a",
        "vectors/mrec/x/a.yaml",
        "t",
        ("MREC-X-01",),
        "writer",
        "mrec",
        "x",
        Path("/"),
        expect,
        script=script,
    )
    (result,) = run_cases(InProcess("subject", lambda: subject), [one]).results
    assert result.verdict != "ERROR", result.message + result.stderr
    return result


def test_what_the_bundled_writer_leaves_passes() -> None:
    result = judged(ReferenceDriver())
    assert (str(result.verdict), result.message) == ("PASS", "")


@pytest.mark.parametrize(
    ("expect", "where"),
    [
        ({"frames": EXPECT["frames"][:2]}, "nstep"),
        ({"frames": [*EXPECT["frames"][:2], {**EXPECT["frames"][2], "step": 21}]}, "frames[2].step"),
        (
            {"frames": [*EXPECT["frames"][:2], {**EXPECT["frames"][2], "blocks": frame(2)["blocks"]}]},
            "frames[2].blocks.bonds",
        ),
        ({"layout": [{"node": "trajectory/bonds/step_index", "absent": True}]}, "trajectory/bonds/step_index"),
        ({"layout": [{"node": "trajectory", "attribute": "nstep", "equals": 2}]}, "trajectory attribute nstep"),
        ({"violations": ["MREC-X-09"]}, "MREC-X-09"),
    ],
)
def test_every_kind_of_expectation_can_fail(expect: Any, where: str) -> None:
    result = judged(ReferenceDriver(), expect=expect)
    assert result.verdict == "FAIL"
    assert where in [difference.path for difference in result.differences]


class Spoiling(ReferenceDriver):
    """The bundled writer, whose store is changed once it is closed."""

    def __init__(self, node: str, **attributes: Any) -> None:
        super().__init__()
        self.node, self.attributes = node, attributes

    def create(self, format: str, path: str, **more: Any) -> None:  # noqa: A002
        self.path = Path(path)
        super().create(format, path, **more)

    def close(self) -> None:
        super().close()
        metadata = self.path / self.node / "zarr.json"
        document = json.loads(metadata.read_text())
        document["attributes"].update(self.attributes)
        metadata.write_text(json.dumps(document))


def test_a_store_that_breaks_a_clause_fails_by_the_checker_and_the_reader() -> None:
    result = judged(Spoiling("trajectory", nstep="3"), expect={"frames": EXPECT["frames"]})
    assert result.verdict == "FAIL"
    assert "the checker: trajectory" in result.message
    assert "reading it back: trajectory" in result.message
    assert any(difference.actual.startswith("MREC-COMMIT-") for difference in result.differences)
    assert any(difference.expected == "a readable store" for difference in result.differences)


def test_a_store_that_misses_a_frame_fails_by_its_frames_alone() -> None:
    result = judged(Spoiling("trajectory", nstep=2))
    assert result.verdict == "FAIL"
    assert [difference.path for difference in result.differences][:2] == ["nstep", "frames.length"]


def test_a_refused_append_changes_nothing_and_the_writer_goes_on() -> None:
    again = {"append": {"step": 10, "frame": frame(9)}, "refused": True}
    assert judged(ReferenceDriver(), script=(*SCRIPT[:3], again, *SCRIPT[3:])).verdict == "PASS"
    result = judged(ReferenceDriver(), script=(*SCRIPT[:2], {**again, "append": SCRIPT[2]["append"]}, *SCRIPT[3:]))
    assert (result.verdict, result.call) == ("FAIL", 2)
    assert result.message == "call 3 (append) was accepted, though a writer refuses it"


def test_going_on_after_close() -> None:
    more = ({"reopen": {}}, {"append": {"step": 30, "frame": frame(3)}}, {"close": None})
    frames = [*EXPECT["frames"], {"step": 30, **frame(3, order=[1])}]
    result = judged(ReferenceDriver(), script=(*SCRIPT, *more), expect={"frames": frames})
    assert (str(result.verdict), result.message) == ("PASS", "")


LOST = ({"flush": None}, {"append": {"step": 30, "frame": frame(8, order=[2])}}, {"close": None}, {"uncommit": None})


def test_a_commit_is_taken_back_up_to_its_last_write() -> None:
    lost = (*SCRIPT[:-1], *LOST)
    layout = [{"node": "trajectory/atoms/x", "rows": 8}, {"node": "trajectory/bonds/step_index", "rows": 2}]
    assert judged(ReferenceDriver(), lost, {**EXPECT, "layout": layout}).verdict == "PASS"
    more = ({"reopen": {}}, {"append": {"step": 40, "frame": frame(4)}}, {"close": None})
    frames = [*EXPECT["frames"], {"step": 40, **frame(4, order=[1])}]
    layout = [{"node": "trajectory/atoms/x", "rows": 8}, {"node": "trajectory/bonds/step_index", "rows": 1}]
    result = judged(ReferenceDriver(), (*lost, *more), {"frames": frames, "layout": layout})
    assert (str(result.verdict), result.message) == ("PASS", "")


def test_a_writer_that_keeps_the_lost_rows_fails() -> None:
    class Keeping(ReferenceDriver):
        """Takes what lies behind the commit for committed."""

        def reopen(self, format: str, path: str, declaration: Mapping[str, Any] | None = None) -> None:  # noqa: A002
            metadata = Path(path) / "trajectory" / "zarr.json"
            document = json.loads(metadata.read_text())
            document["attributes"]["nstep"] += 1
            metadata.write_text(json.dumps(document))
            super().reopen(format, path, declaration)

    more = ({"reopen": {}}, {"append": {"step": 40, "frame": frame(4)}}, {"close": None})
    frames = [*EXPECT["frames"], {"step": 40, **frame(4, order=[1])}]
    result = judged(Keeping(), (*SCRIPT[:-1], *LOST, *more), {"frames": frames})
    assert result.verdict == "FAIL"
    assert result.differences[0].path == "nstep"


def test_without_an_earlier_commit_none_is_taken_back() -> None:
    result = judged(ReferenceDriver(), (SCRIPT[0], {"close": None}, {"uncommit": None}))
    assert (result.verdict, result.call) == ("FAIL", 2)


def test_a_declaration_derived_from_frames() -> None:
    typed = {
        "blocks": {"atoms": {"x": {"dtype": "f64", "data": [], "shape": [0]}}},
        "meta": {"pe": {"tag": "f64", "value": 0.0}},
    }
    script = ({"create": {"derive_from": [typed]}}, {"append": {"step": 0, "frame": frame(0)}}, {"close": None})
    result = judged(ReferenceDriver(), script=script, expect={"frames": [{"step": 0, **frame(0)}]})
    assert (str(result.verdict), result.message) == ("PASS", "")


def test_system_blocks_come_with_create() -> None:
    class Noting(ReferenceDriver):
        def create(self, format: str, path: str, **more: Any) -> None:  # noqa: A002
            self.system: Mapping[str, Any] = more["system"]
            super().create(format, path, **more)

    system = {"atoms": {"id": {"dtype": "u64", "data": [7, 8]}}}
    script = ({"create": {"declaration": DECLARATION, "system": system}}, *SCRIPT[1:])
    subject = Noting()
    expect = {"frames": EXPECT["frames"], "layout": [{"node": "system/atoms/id", "values": [7, 8]}]}
    assert judged(subject, script=script, expect=expect).verdict == "PASS"
    assert subject.system["atoms"]["columns"]["id"]["dtype"] == "u64"
