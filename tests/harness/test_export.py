"""An export holds what the cases hold, is the same each time, and its verifier notices whatever is changed in it."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trajconform import kit
from trajconform.cli import main
from trajconform.harness import export as module
from trajconform.harness.export import SUMS, export, flat, needs, verify_export
from trajconform.harness.judge import skip_reason
from trajconform.harness.protocol import find_fault
from trajconform.model.errors import TrajconformError
from trajconform.vectors.cases import Case, expected_reply, input_files, load_cases, script_calls

ROOT = kit.root()
EXAMPLE = ROOT / "harness" / "examples" / "c-unit-test" / "test_export.c"
READER = ROOT / "harness" / "drivers" / "c-otj"


@pytest.fixture(scope="module")
def every() -> list[Case]:
    return load_cases(ROOT)


@pytest.fixture(scope="module")
def sample(every: list[Case]) -> list[Case]:
    """The last member of every case file, so that each way to write a case is among them."""
    return list({case.path: case for case in every}.values())


@pytest.fixture(scope="module")
def exported(sample: list[Case], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "vectors"
    export(ROOT, sample, folder)
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An export of a few cases that a test may damage."""
    cases = load_cases(ROOT, globs=["otj/counting/*", "mrec/growth/*", "mrec/layout/uniform-run"])
    export(ROOT, cases, tmp_path / "small")
    return tmp_path / "small"


def files_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def index_of(folder: Path) -> dict[str, dict[str, Any]]:
    document = json.loads((folder / "index.json").read_text("utf-8"))
    return {entry["case"]: entry for entry in document["cases"]}


def test_an_export_is_whole_and_fits_its_schema(exported: Path, sample: list[Case]) -> None:
    files, problems = verify_export(exported)
    assert problems == []
    assert files == len(files_of(exported)) - 1
    assert find_fault("export", json.loads((exported / "index.json").read_text("utf-8"))) == ""
    assert list(index_of(exported)) == [case.id for case in sample]
    kinds = {(entry["role"], entry["expect"]) for entry in index_of(exported).values()}
    assert {("reader", "accepted"), ("reader", "refused"), ("reader", "informative")} < kinds
    assert {("store", "clean"), ("store", "violations"), ("writer", "written"), ("writer", "calls")} < kinds


def test_sha256sum_checks_it(exported: Path) -> None:
    if shutil.which("sha256sum") is None:
        pytest.skip("sha256sum is not on PATH")
    done = subprocess.run(["sha256sum", "--strict", "-c", SUMS], cwd=exported, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": OK") == len(files_of(exported)) - 1


def test_two_exports_are_the_same_bytes(tmp_path: Path) -> None:
    cases = load_cases(ROOT, topics=["counting", "layout"])
    for name in ("one", "two"):
        export(ROOT, cases, tmp_path / name)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_inputs_scripts_and_replies_are_those_of_the_cases(exported: Path, sample: list[Case]) -> None:
    replies = 0
    for case in sample:
        entry = index_of_case(exported, case)
        if case.input:
            files = input_files(case)
            path = exported / entry["input"]["path"]
            assert (files_of(path) if path.is_dir() else {"": path.read_bytes()}) == files
        if case.script:
            calls = json.loads((exported / entry["script"]["path"]).read_text("utf-8"))
            assert [(c["op"], c["params"], c["refused"]) for c in calls] == [
                (c.op, c.params, c.refused) for c in script_calls(case)
            ]
        if "expected" in entry:
            reply = json.loads((exported / entry["expected"]["path"]).read_text("utf-8"))
            assert reply == expected_reply(case)
            replies += 1
        assert ("expected" in entry) == (entry["expect"] == "accepted" or "frames" in (case.expect or ()))
    assert replies > 100


_INDEX: dict[Path, dict[str, dict[str, Any]]] = {}


def index_of_case(folder: Path, case: Case) -> dict[str, Any]:
    return _INDEX.setdefault(folder, index_of(folder))[case.id]


def test_the_lines_say_all_that_the_reply_says(exported: Path) -> None:
    """Parsed back without the code that wrote them, every array and number is there with the same bits."""
    checked = 0
    for entry in index_of(exported).values():
        for part in ("expected", "may_follow"):
            if part not in entry:
                continue
            reply = json.loads((exported / entry[part]["path"]).read_text("utf-8"))
            text = (exported / entry[part]["lines"]["path"]).read_text("utf-8")
            rows = [line.split("\t") for line in text.split("\n")[:-1]]
            assert all(len(row) == 4 for row in rows)
            assert len({row[0] for row in rows}) == len(rows)
            for path, kind, shape, value in rows:
                assert value_of(kind, shape, value) == part_of(reply, path), (entry["case"], path)
            wanted = sorted(path for path, _ in values(reply))
            assert sorted(row[0] for row in rows if row[1] != "count") == wanted, entry["case"]
            checked += len(rows)
    assert checked > 2000


def part_of(reply: Any, path: str) -> Any:
    node = reply
    for key in path.split("/")[1:]:
        key = json.loads(f'"{key}"').replace("~1", "/").replace("~0", "~")
        node = node[int(key)] if isinstance(node, list) else node[key]
    if isinstance(node, dict) and set(node) == {"dtype", "shape", "data"}:
        data = node["data"]
        return node["dtype"], node["shape"], base64.b64decode(data) if isinstance(data, str) else data
    if isinstance(node, dict) and node.get("dtype") == "json":
        return node["value"]
    return node


def value_of(kind: str, shape: str, value: str) -> Any:
    if kind in ("text", "json"):
        return json.loads(value)
    if kind == "flag":
        return bool(int(value))
    if kind == "int":
        return int(value) if abs(int(value)) <= 2**53 else value
    if kind == "count":
        return Length(int(value))
    axes = [] if shape == "-" else [int(axis) for axis in shape.split(",")]
    return kind, axes, json.loads(value) if kind == "string" else bytes.fromhex("" if value == "-" else value)


class Length(int):
    """Equal to a list of that length."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and len(other) == int(self)

    __hash__ = int.__hash__


def values(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """What a reply holds: arrays, JSON documents, and everything that is neither a list nor an object."""
    whole = isinstance(node, dict) and (set(node) == {"dtype", "shape", "data"} or node.get("dtype") == "json")
    if whole or path == "/declaration" or (isinstance(node, list) and not path.endswith("/frames")):
        yield path, node
    elif isinstance(node, dict):
        for key, value in node.items():
            name = json.dumps(key, ensure_ascii=False)[1:-1].replace("~", "~0").replace("/", "~1")
            yield from values(value, f"{path}/{name}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from values(value, f"{path}/{number}")
    else:
        yield path, node


def test_names_with_tabs_and_slashes_stay_one_field() -> None:
    array = {"dtype": "u8", "shape": [1], "data": "/w=="}
    assert list(flat({"a\tb/c~\n": array, "é": True})) == ["/a\\tb~1c~0\\n\tu8\t1\tff", "/é\tflag\t-\t1"]
    strings = {"dtype": "string", "shape": [2], "data": ["a\tb", ""]}
    assert list(flat({"s": strings})) == ['/s\tstring\t2\t["a\\tb",""]']
    assert list(flat({"frames": [{"step": "9007199254740993"}]})) == [
        "/frames\tcount\t-\t1",
        "/frames/0/step\tint\t-\t9007199254740993",
    ]


def test_needs_are_just_what_a_driver_is_skipped_without(every: list[Case]) -> None:
    claims = {"mrec": ("read", "write"), "otj": ("read", "write")}
    used = set()
    for case in every:
        wanted = needs(case)
        used.update(wanted)
        assert skip_reason(case, claims, frozenset(wanted)) == "", case.id
        for name in wanted:
            # Naming the other precision is how a driver lacks one.
            rest = frozenset(wanted) - {name} | (
                {"single", "double"} - {name} if name in ("single", "double") else set()
            )
            assert name in skip_reason(case, claims, rest), (case.id, name)
    assert {"range", "reopen", "check:mrec", "check:otj", "single", "double"} <= used


def test_what_the_index_has_no_place_for_is_handed_on(tmp_path: Path) -> None:
    case = next(case for case in load_cases(ROOT, topics=["header"], roles=["writer"]) if "bytes" in case.expect)
    other = dataclasses.replace(
        case, expect={"tail": {"bytes": float("inf")}, "kills": 3, "violations": ["OTJ-SUM-01"]}
    )
    export(ROOT, [other], tmp_path / "out")
    entry = index_of(tmp_path / "out")[case.id]
    assert entry["expectation"] == {"tail": {"bytes": "Infinity"}, "kills": 3}
    assert entry["violations"] == ["OTJ-SUM-01"] and "expected" not in entry
    assert verify_export(tmp_path / "out")[1] == []


# -- where an export goes ------------------------------------------------------------------------------------------


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, small: Path) -> None:
    cases = load_cases(ROOT, topics=["counting"])
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with pytest.raises(TrajconformError, match="is not empty; name one that is not there yet"):
        export(ROOT, cases, other)
    with pytest.raises(TrajconformError, match="which --force does not remove"):
        export(ROOT, cases, other, force=True)
    with pytest.raises(TrajconformError, match="--force replaces the export in it"):
        export(ROOT, cases, small)
    with pytest.raises(TrajconformError, match="is no folder"):
        export(ROOT, cases, other / "mine.txt", force=True)
    (tmp_path / "link").symlink_to(small)
    with pytest.raises(TrajconformError, match="is no folder"):
        export(ROOT, cases, tmp_path / "link", force=True)
    assert files_of(other) == {"mine.txt": b"mine"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "other", "small"]


def test_force_replaces_an_earlier_export_as_a_whole(tmp_path: Path, small: Path) -> None:
    (small / "cases" / "left-over").write_text("x")
    export(ROOT, load_cases(ROOT, topics=["counting"]), small, force=True)
    assert verify_export(small)[1] == []
    assert not (small / "cases" / "left-over").exists() and not (small / "cases" / "mrec").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_an_empty_folder_is_filled_and_a_missing_parent_made(tmp_path: Path) -> None:
    cases = load_cases(ROOT, globs=["otj/counting/many-frames*"]) or load_cases(ROOT, topics=["counting"])[:2]
    (tmp_path / "empty").mkdir()
    for target in (tmp_path / "empty", tmp_path / "a" / "b"):
        assert export(ROOT, cases, target) == len(files_of(target)) - 1
        assert verify_export(target)[1] == []


def test_an_export_that_breaks_off_leaves_nothing(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files_of(small)
    cases = load_cases(ROOT, topics=["counting"])

    def breaks(case: Case) -> dict[str, bytes]:
        if case.id == cases[5].id:
            raise KeyboardInterrupt
        return input_files(case)

    monkeypatch.setattr(module, "input_files", breaks)
    for target, force in ((small, True), (tmp_path / "new", False)):
        with pytest.raises(KeyboardInterrupt):
            export(ROOT, cases, target, force=force)
    assert files_of(small) == before
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


# -- damage --------------------------------------------------------------------------------------------------------


def first(folder: Path, pattern: str) -> Path:
    return min(folder.glob(pattern))


def rewrite(path: Path, change: Callable[[str], str]) -> None:
    text = path.read_text("utf-8")
    path.write_text(change(text), "utf-8")
    assert path.read_text("utf-8") != text


def resum(folder: Path, name: str) -> None:
    """Bring the checksum of a file up to date, as a careful forger would."""
    import hashlib

    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    rewrite(folder / SUMS, lambda text: re.sub(rf"(?m)^[0-9a-f]{{64}}  {re.escape(name)}$", f"{digest}  {name}", text))


def damage_changed(folder: Path) -> str:
    path = first(folder, "cases/otj/**/input.otj")
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)
    return "other bytes than were exported"


def damage_missing(folder: Path) -> str:
    first(folder, "cases/otj/**/expected.json").unlink()
    return "missing"


def damage_added(folder: Path) -> str:
    (folder / "cases" / "more.txt").write_text("x")
    return "cases/more.txt: not in SHA256SUMS"


def damage_link(folder: Path) -> str:
    path = first(folder, "cases/otj/**/input.otj")
    path.rename(folder.parent / "moved")
    path.symlink_to(folder.parent / "moved")
    return "no plain file"


def damage_linked_folder(folder: Path) -> str:
    (folder / "cases" / "more").symlink_to(folder.parent)
    return "cases/more: not in SHA256SUMS"


def damage_unlisted(folder: Path) -> str:
    rewrite(folder / SUMS, lambda text: re.sub(r"(?m)^.*  index\.tsv\n", "", text))
    return "index.tsv: not in SHA256SUMS, so this is no whole export"


def damage_index(folder: Path) -> str:
    rewrite(folder / "index.json", lambda text: text.replace('"expect": "accepted"', '"expect": "refused"', 1))
    resum(folder, "index.json")
    return "index.tsv: not the cases of index.json"


def damage_size(folder: Path) -> str:
    rewrite(folder / "index.json", lambda text: re.sub(r'"bytes": \d+', '"bytes": 1', text, count=1))
    resum(folder, "index.json")
    return "index names another size|the index says otherwise|index.json names another size"


def damage_digest(folder: Path) -> str:
    rewrite(folder / "index.json", lambda text: re.sub(r'"sha256": "[0-9a-f]{64}"', f'"sha256": "{"0" * 64}"', text))
    resum(folder, "index.json")
    return "index.json and SHA256SUMS differ"


def damage_schema(folder: Path) -> str:
    rewrite(folder / "index.json", lambda text: text.replace('"export": 1', '"export": 2', 1))
    resum(folder, "index.json")
    return r"index.json\.export"


def damage_no_json(folder: Path) -> str:
    rewrite(folder / "index.json", lambda text: text[:-3])
    resum(folder, "index.json")
    return "index.json: Expecting"


def damage_case_dropped(folder: Path) -> str:
    document = json.loads((folder / "index.json").read_text("utf-8"))
    name = document["cases"].pop()["case"]
    (folder / "index.json").write_text(json.dumps(document), "utf-8")
    rewrite(folder / "index.tsv", lambda text: re.sub(rf"(?m)^{re.escape(name)}\t.*\n", "", text))
    resum(folder, "index.json")
    resum(folder, "index.tsv")
    return "of no case in index.json"


@pytest.mark.parametrize(
    "damage",
    [
        damage_changed,
        damage_missing,
        damage_added,
        damage_link,
        damage_linked_folder,
        damage_unlisted,
        damage_index,
        damage_size,
        damage_digest,
        damage_schema,
        damage_no_json,
        damage_case_dropped,
    ],
)
def test_damage_is_found(small: Path, damage: Callable[[Path], str]) -> None:
    words = damage(small)
    problems = verify_export(small)[1]
    assert problems and re.search(words, "\n".join(problems)), problems


@pytest.mark.parametrize(
    "line", ["short  x", f"{'0' * 64}  ../x", f"{'0' * 64}  /etc/passwd", f"{'0' * 64} x", "", f"{'g' * 64}  x"]
)
def test_checksums_of_another_form_are_refused(small: Path, line: str) -> None:
    rewrite(small / SUMS, lambda text: f"{line}\n{text}")
    with pytest.raises(TrajconformError, match=r"SHA256SUMS:1: no line of an export"):
        verify_export(small)


def test_a_folder_that_is_no_export_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrajconformError, match="is no export"):
        verify_export(tmp_path)


def test_names_that_sha256sum_escapes_are_read_back(tmp_path: Path) -> None:
    (tmp_path / "a\\b\nc").write_text("x")
    text = module._sum_line("a\\b\nc", "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881")
    (tmp_path / SUMS).write_text(text)
    assert module._read_sums(tmp_path) == {
        "a\\b\nc": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    }
    if shutil.which("sha256sum"):
        done = subprocess.run(["sha256sum", "--strict", "-c", SUMS], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


# -- the command line ----------------------------------------------------------------------------------------------


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return int(ended.value.code or 0), out, " ".join(err.split())


def test_export_and_verify_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out"
    wanted = load_cases(ROOT, formats=["otj"], topics=["flags"], roles=["store"])
    status, out, err = command(
        capsys, "vectors", "export", target, "--format", "otj", "--topic", "flags", "--role", "store"
    )
    assert status == 0 and out == "" and err.startswith(f"{len(wanted)} cases, ")
    assert list(index_of(target)) == [case.id for case in wanted]
    status, out, err = command(capsys, "vectors", "verify", target)
    assert status == 0 and out == "" and err.endswith("files are as exported")
    damage_added(target)
    status, out, err = command(capsys, "vectors", "verify", target)
    assert status == 1 and out == "cases/more.txt: not in SHA256SUMS\n" and err == "1 problems"
    status, _, err = command(capsys, "vectors", "export", target, "--topic", "flags")
    assert status == 2 and "--force" in err
    status, _, err = command(capsys, "vectors", "export", tmp_path / "none", "--topic", "no-such-topic")
    assert status == 2 and "no case fits" in err and not (tmp_path / "none").exists()


# -- the example in C ----------------------------------------------------------------------------------------------


def compiled(folder: Path, reader: Path = READER) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not on PATH")
    program = folder / "test_export"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-fsanitize=address,undefined"]
    subprocess.run(
        [compiler, *flags, "-I", str(READER), "-o", str(program), str(EXAMPLE), str(reader / "otj.c")], check=True
    )
    return program


def outcome(program: Path, folder: Path) -> tuple[int, str]:
    done = subprocess.run([str(program), str(folder)], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def otj_readers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("otj") / "out"
    export(ROOT, load_cases(ROOT, formats=["otj"], topics=["checksum", "counting", "flags", "frame"]), folder)
    return folder


def test_the_c_example_passes_with_a_right_reader(otj_readers: Path, tmp_path: Path) -> None:
    entries = [entry for entry in index_of(otj_readers).values() if entry["role"] == "reader"]
    informative = sum(entry["expect"] == "informative" for entry in entries)
    status, said = outcome(compiled(tmp_path), otj_readers)
    assert (status, said) == (0, f"{len(entries) - informative} passed, 0 failed, {informative} skipped\n")


@pytest.mark.parametrize(
    ("old", "new", "case"),
    [
        ("flags & ~(uint64_t)(FLAG_SINGLE | FLAG_VELOCITIES)", "flags & 0", "otj/flags/"),
        ("!= get(reader->frame + size - 8, 8)", "!= get(reader->frame + size - 8, 8) && 0", "otj/checksum/"),
        ("reader->shape.header + n * length", "reader->shape.header + (n + n / 3) * length", "otj/"),
    ],
)
def test_the_c_example_fails_with_a_wrong_reader(
    otj_readers: Path, tmp_path: Path, old: str, new: str, case: str
) -> None:
    source = (READER / "otj.c").read_text("utf-8")
    assert source.count(old) == 1
    (tmp_path / "otj.c").write_text(source.replace(old, new), "utf-8")
    status, said = outcome(compiled(tmp_path, tmp_path), otj_readers)
    assert status in (1, 2) and (f"FAIL {case}" in said or "test_export: " in said), said


def test_the_c_example_fails_where_an_expected_bit_is_another(otj_readers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    shutil.copytree(otj_readers, folder)
    entry = next(e for e in index_of(folder).values() if e["role"] == "reader" and e["expect"] == "accepted")
    lines = folder / entry["expected"]["lines"]["path"]
    rewrite(
        lines,
        lambda text: re.sub(r"(/timestep\tf\d\d\t-\t)(.)", lambda m: f"{m[1]}{'1' if m[2] != '1' else '2'}", text),
    )
    status, said = outcome(compiled(tmp_path), folder)
    assert status == 1 and f"FAIL {entry['case']}\n  expected /timestep" in said
    assert outcome(tmp_path / "test_export", tmp_path)[0] == 2
