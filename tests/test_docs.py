"""The guides in ``docs``: every command runs as it stands there, and prints what is shown below it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from trajconform import kit
from trajconform.cli import main_group
from trajconform.harness.drivertoml import list_drivers

ROOT = kit.root()
GUIDES = ("implementer", "file", "keeper")


def blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a guide: language and content."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, list[str]]]:
    """What follows each ``$`` of a console block, and the output that is shown."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert not parts[0]
    return [(command, output.splitlines()) for command, output in zip(parts[1::2], parts[2::2], strict=True)]


def steady(line: str, folder: Path) -> str:
    """A line without what differs from run to run or with a case more: times, folders, digests, every number."""
    line = line.replace(str(folder.resolve()), "/home/me").replace(str(ROOT), "KIT")
    line = re.sub(r"trajconform-\w{8}", "SCRATCH", line)
    line = re.sub(r"\b[0-9a-f]{12,}\b", "DIGEST", line)
    line = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:]+\S*", "TIME", line)
    line = re.sub(r"(?<![\w-])\d[\d,]*(\.\d+)?\b", "N", line)
    return re.sub(r"\s+", " ", line).strip()


def in_order(shown: list[str], printed: list[str]) -> str:
    """The first shown part that does not come in its place; ``...`` stands for any lines.

    Where lines are broken depends on the length of folders and times, so that words are compared, not lines.
    """
    text = " ".join(" ".join(printed).split())
    parts = [" ".join(part.split()) for part in "\n".join(shown).split("\n...\n")] if shown != ["..."] else []
    if shown == ["..."]:
        return ""
    if parts[0] == "..." or parts[0].startswith("... "):
        parts = ["", parts[0].removeprefix("...").strip(), *parts[1:]]
    at = 0
    for number, part in enumerate(parts):
        found = text.find(part, at)
        if found < 0 or (number == 0 and found):
            return f"shown is {part!r}, printed is {text[at : at + 2 * len(part) + 200]!r}"
        at = found + len(part)
    return "" if at == len(text) else f"more is printed: {text[at : at + 200]!r}"


def run(command: str, folder: Path) -> tuple[int, str]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "TMPDIR": "/tmp",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("guide", GUIDES)
def test_the_commands_of_a_guide_do_what_it_shows(tmp_path: Path, guide: str) -> None:
    text = (ROOT / "docs" / f"{guide}.md").read_text("utf-8")
    if "openssl" in text and shutil.which("openssl") is None:
        pytest.skip("openssl is not on PATH")
    if guide != "implementer":
        (tmp_path / "vectors").symlink_to(ROOT / "vectors")
    asked = 0
    for language, block in blocks(text):
        assert language in ("bash", "console"), f"{guide}: a block of {language} is run by nobody"
        todo = commands(block) if language == "console" else [("set -e\n" + block, ["..."])]
        for command, shown in todo:
            status, printed = run(command, tmp_path)
            assert status == 0, f"{command}\n{printed}"
            lines = [steady(line, tmp_path) for line in printed.splitlines()]
            wrong = in_order([steady(line, tmp_path) for line in shown], lines)
            assert not wrong, f"{command}\n{wrong}"
            asked += 1
    assert asked >= 7


def test_what_is_shown_is_held_to_what_is_printed() -> None:
    assert in_order(["a", "b"], ["a", "b"]) == in_order(["a", "...", "c"], ["a", "b", "c"]) == ""
    assert in_order(["...", "c"], ["a", "b", "c"]) == in_order(["..."], []) == in_order([], []) == ""
    assert in_order(["a b", "c"], ["a", "b c"]) == ""
    for shown in (["a"], ["b"], ["a", "c"], ["b", "a"], ["a", "b", "c"], ["...", "a"], []):
        assert in_order(shown, ["a", "b"]), shown


def test_every_guide_is_tested_and_its_links_lead_somewhere() -> None:
    folder = ROOT / "docs"
    assert {path.stem for path in folder.glob("*.md")} >= set(GUIDES)
    for name in GUIDES:
        text = (folder / f"{name}.md").read_text("utf-8")
        links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
        assert [link for link in links if not (folder / link).exists()] == []
        assert f"](docs/{name}.md)" in (ROOT / "README.md").read_text("utf-8")


def test_the_drivers_of_the_readme_are_those_there_are() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (`[^|]*`) \| ([^|]*) \| ([^|]*) \| [^|]* \|$", readme, re.MULTILINE)
    told = {name: (language, claims) for names, language, claims in rows for name in re.findall(r"`([^`]+)`", names)}
    there = {
        spec.name: (spec.language, "; ".join(f"{name}: {', '.join(roles)}" for name, roles in spec.claims.items()))
        for spec in list_drivers()
    }
    assert told == there


def test_the_columns_of_the_list_do_not_run_into_each_other() -> None:
    lines = CliRunner().invoke(main_group, ["driver", "list"]).output.splitlines()
    assert len(lines) == 2 * len(list_drivers())
    for spec, line, below in zip(list_drivers(), lines[::2], lines[1::2], strict=True):
        cells = re.split(r"\s{2,}", line)
        assert cells[:2] == [spec.name, spec.language]
        assert cells[3] in ("ready", f"trajconform driver setup {spec.name}")
        assert below.strip() == spec.description
