"""A badge says no more than the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.report.runs import a_run
from trajconform.cli import main
from trajconform.harness.verdicts import Deviation
from trajconform.report.badge import _COLOURS, badge, write_badge

CHANGE = Deviation("otj/flags/x", "unexpected pass", "FAIL", "PASS", "remove the entry")


@pytest.mark.parametrize(
    ("verdicts", "more", "says"),
    [
        ({"mrec/states/a": "PASS", "otj/flags/x": "PASS"}, {}, ("conforms: mrec read, otj read", "brightgreen")),
        ({"mrec/states/a": "SKIP", "otj/flags/x": "PASS"}, {}, ("conforms: otj read", "brightgreen")),
        ({"mrec/states/a": "FAIL", "mrec/states/b": "FAIL", "otj/flags/x": "PASS"}, {}, ("breaks 1 clause", "red")),
        ({"mrec/states/a": "FAIL", "otj/flags/x": "ERROR"}, {}, ("breaks 2 clauses", "red")),
        ({"mrec/states/a": "ERROR", "otj/flags/x": "PASS"}, {}, ("no judgement", "lightgrey")),
        ({"mrec/states/a": "SKIP"}, {}, ("no judgement", "lightgrey")),
        ({"mrec/states/a": "FAIL", "otj/flags/x": "PASS"}, {"deviations": ()}, ("1 known failure", "yellow")),
        ({"otj/flags/x": "PASS"}, {"deviations": (CHANGE,)}, ("1 change to known failures", "red")),
        ({"otj/flags/x": "PASS"}, {"selection": {"topics": ["flags"]}}, ("1 selected cases pass", "blue")),
        ({"otj/flags/x": "PASS"}, {"interrupted": True, "planned": 2}, ("no judgement", "lightgrey")),
    ],
)
def test_what_it_says(verdicts: dict[str, str], more: dict[str, Any], says: tuple[str, str], tmp_path: Path) -> None:
    run = a_run(verdicts, **more)
    assert badge(run) == says
    write_badge(tmp_path / "deep" / "badge.json", run)
    assert json.loads((tmp_path / "deep" / "badge.json").read_text()) == {
        "schemaVersion": 1,
        "label": "trajconform",
        "message": says[0],
        "color": says[1],
    }
    write_badge(tmp_path / "badge.svg", run)
    root = etree.parse(str(tmp_path / "badge.svg")).getroot()
    assert root.get("aria-label") == f"trajconform: {says[0]}"
    assert [text.text for text in root.iter("{*}text")] == ["trajconform", says[0]]
    widths = [int(rect.get("width")) for rect in root.iter("{*}rect")]
    assert widths[0] == widths[1] + widths[2] == int(root.get("width"))


def test_a_driver_cannot_write_into_the_svg(tmp_path: Path) -> None:
    run = a_run({"otj/flags/x": "PASS"})
    hostile = {"otj": ("</text><script>alert(1)</script>",)}
    object.__setattr__(run.driver, "formats", hostile)
    write_badge(tmp_path / "badge.svg", run)
    root = etree.parse(str(tmp_path / "badge.svg")).getroot()
    assert not list(root.iter("{*}script"))


def test_white_letters_stand_out() -> None:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for name, colour in _COLOURS.items():
        assert 1.05 / (light(colour) + 0.05) >= 4.5, name


def test_another_suffix_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--badge", "badge.png"])
    assert ended.value.code == 2 and "a badge is written as .svg or .json" in capsys.readouterr().err
