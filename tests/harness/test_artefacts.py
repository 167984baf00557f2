"""What a driver consists of: the same names on every machine, every file with its digest."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trajconform.harness.artefacts import MOST_FILES, artefacts, dir_hash
from trajconform.harness.drivertoml import REFERENCE, load_driver, resolve_driver
from trajconform.model.errors import TrajconformError

DRIVER = """
name = "tiny"
language = "C"
[run]
command = {command}
{artefacts}
[claims]
otj = ["read"]
"""


def driver(folder: Path, command: str = '["{build}/tiny"]', declared: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.c").write_text("int main;\n")
    (folder / "README.md").write_text("about it\n")
    (folder / "known-failures.yaml").write_text("[]\n")
    lines = f"artefacts = {declared}" if declared else ""
    (folder / "driver.toml").write_text(DRIVER.replace("{command}", command).replace("{artefacts}", lines))
    (folder / ".build").mkdir(exist_ok=True)
    (folder / ".build" / "tiny").write_bytes(b"program")
    (folder / ".build" / "setup.log").write_bytes(b"log")
    return folder


def test_by_default_the_program_and_the_files_of_the_folder(tmp_path: Path) -> None:
    found = artefacts(load_driver(driver(tmp_path / "tiny")))
    assert list(found) == ["driver.toml", "main.c", "{build}/tiny"]
    assert found["{build}/tiny"] == hashlib.sha256(b"program").hexdigest()
    assert found["main.c"] == hashlib.sha256(b"int main;\n").hexdigest()


def test_the_names_do_not_depend_on_where_the_driver_lies(tmp_path: Path) -> None:
    one, other = (load_driver(driver(tmp_path / where / "tiny")) for where in ("a", "b/c"))
    assert artefacts(one) == artefacts(other)


def test_an_interpreter_is_no_part_of_the_driver_and_another_program_is(tmp_path: Path) -> None:
    found = artefacts(load_driver(driver(tmp_path / "tiny", '["{python}", "main.c"]')))
    assert list(found) == ["driver.toml", "main.c"]
    found = artefacts(load_driver(driver(tmp_path / "tiny", '["sh", "main.c"]')))
    assert list(found) == ["driver.toml", "main.c", "program:sh"]
    assert found["program:sh"] == hashlib.sha256(Path(str(shutil.which("sh"))).read_bytes()).hexdigest()
    found = artefacts(load_driver(driver(tmp_path / "tiny", '["./main.c"]')))
    assert list(found) == ["driver.toml", "main.c"]
    with pytest.raises(TrajconformError, match="no-such-program of the driver tiny is not on PATH"):
        artefacts(load_driver(driver(tmp_path / "tiny", '["no-such-program"]')))


def test_files_folders_patterns_and_modules_can_be_declared(tmp_path: Path) -> None:
    folder = driver(tmp_path / "tiny", declared='["main.c", "{build}/lib", "{driver}/sub/**/*.h", "module:click"]')
    for name in (".build/lib/a.so", ".build/lib/deep/b.so", ".build/lib/__pycache__/b.pyc", "sub/x/y.h", "sub/z.h"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    found = list(artefacts(load_driver(folder)))
    modules = [name for name in found if name.startswith("module:click/")]
    assert "module:click/__init__.py" in modules
    assert [name for name in found if name not in modules] == [
        "main.c",
        "sub/x/y.h",
        "sub/z.h",
        "{build}/lib/a.so",
        "{build}/lib/deep/b.so",
    ]


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ('["none.c"]', r"driver\.toml: the artefact 'none\.c' is not there$"),
        ('["{build}/none"]', "is not there; set the driver up first"),
        ('["*.h"]', "is not there"),
        ('["module:no_such_module"]', "no module .no_such_module"),
        ('["module:"]', "no module"),
        ('["pipe"]', "is no plain file"),
        ('["{nowhere}/x"]', "unknown placeholder"),
        ("[]", "driver.toml"),
        ('["main.c", "main.c"]', "driver.toml"),
    ],
)
def test_faults_of_a_declaration_are_named(tmp_path: Path, declared: str, words: str) -> None:
    folder = driver(tmp_path / "tiny", declared=declared)
    os.mkfifo(folder / "pipe")
    with pytest.raises(TrajconformError, match=words):
        artefacts(load_driver(folder))


def test_too_many_files_ask_for_a_declaration(tmp_path: Path) -> None:
    folder = driver(tmp_path / "tiny")
    for number in range(MOST_FILES):
        (folder / f"{number}.txt").touch()
    with pytest.raises(TrajconformError, match=r"more than 5000 files; .* artefacts = "):
        artefacts(load_driver(folder))


def test_an_object_is_the_code_of_its_package_or_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "alone.py").write_text("class D: ...\n")
    package = tmp_path / "pack" / "deep"
    package.mkdir(parents=True)
    for path in (package.parent / "__init__.py", package / "__init__.py", package / "d.py"):
        path.write_text("class D: ...\n")
    (package / "data.bin").write_bytes(b"")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert list(artefacts(resolve_driver("alone:D"))) == ["module:alone.py"]
    assert list(artefacts(resolve_driver("pack.deep.d:D"))) == [
        "module:pack/__init__.py",
        "module:pack/deep/__init__.py",
        "module:pack/deep/d.py",
    ]
    own = artefacts(REFERENCE)
    assert "module:trajconform/otj/reader.py" in own and not any("_kit" in name for name in own)
    sys.modules.pop("alone")


def test_the_digest_of_a_folder_is_that_of_the_shell(tmp_path: Path) -> None:
    if shutil.which("sha256sum") is None:
        pytest.skip("sha256sum is not on PATH")
    for name in ("b", "a/z", "a-b", "é", "a/.hidden"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    (tmp_path / "a" / ".hidden").unlink()
    shell = "find . -type f | cut -c3- | LC_ALL=C sort | xargs -r sha256sum | sha256sum | cut -f1 -d' '"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert dir_hash(tmp_path) == done.stdout.strip()
    (tmp_path / "a" / ".hidden").write_text("not seen")
    assert dir_hash(tmp_path) == done.stdout.strip()
    (tmp_path / "b").write_text("seen")
    assert dir_hash(tmp_path) != done.stdout.strip()
