"""The files that a driver consists of, by name and digest: what a certificate is about.

A name is written as in ``driver.toml``: relative to the driver's folder, after ``{build}/``, after ``module:NAME/`` for
the code of a Python module, after ``program:`` for a program found on PATH, or absolute. So the same driver has the
same names on another machine.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import Path

from trajconform.harness.drivertoml import DriverSpec
from trajconform.harness.inprocess import InProcess
from trajconform.model.errors import TrajconformError

MOST_FILES = 5000
"""A driver of more files has to say which of them matter."""

_CODE = (*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)
_INTERPRETER = re.compile(r"\{python(\d\.\d+)?\}")


def artefacts(source: DriverSpec | InProcess) -> dict[str, str]:
    """Name -> SHA-256 (hex) of every file of a driver, by name in order.

    For a program: what ``[run] artefacts`` declares; else the program of the command, unless that is ``{python}``, and
    the files of the driver's folder. For a Python object: the code of its top-level package, or its module's file.
    `TrajconformError` where a declared one is not there, is no plain file, or where there are too many.
    """
    found: dict[str, Path] = {}
    for name, path in _files(source):
        found[name] = path
        if len(found) > MOST_FILES:
            raise TrajconformError(
                f"the driver {source.name} has more than {MOST_FILES} files; "
                "say which of them matter: artefacts = [...] under [run] in its driver.toml"
            )
    if not found:
        raise TrajconformError(f"the driver {source.name} has no file that a certificate could be about")
    return {name: file_digest(found[name]) for name in sorted(found)}


def tree_files(folder: Path, *, skip: Iterable[str] = ()) -> Iterator[Path]:
    """All files below a folder but hidden ones, compiled Python and folders named in ``skip``; links to folders are
    not followed."""
    skipped = {"__pycache__", *skip}
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in skipped and not name.startswith("."))
        yield from (Path(where) / name for name in sorted(files) if not name.startswith(".") and name[-4:] != ".pyc")


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a plain file; `TrajconformError` where it is none or cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise TrajconformError(f"{path} is no plain file, so it has no digest")
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TrajconformError(f"cannot digest {path}: {error.strerror or error}") from None


def dir_hash(folder: Path, *, skip: Iterable[str] = ()) -> str:
    """The ``dirHash1`` of in-toto over `tree_files`: SHA-256 of what ``sha256sum`` prints for the sorted files."""
    lines = sorted((path.relative_to(folder).as_posix(), path) for path in tree_files(folder, skip=skip))
    text = "".join(f"{file_digest(path)}  {name}\n" for name, path in lines)
    return hashlib.sha256(text.encode()).hexdigest()


def _files(source: DriverSpec | InProcess) -> Iterator[tuple[str, Path]]:
    if isinstance(source, InProcess):
        yield from _module_files(source.module)
    elif source.artefacts:
        for text in source.artefacts:
            yield from _declared(source, text)
    else:
        yield from _program(source)
        yield from ((path.relative_to(source.folder).as_posix(), path) for path in source.sources())


def _program(spec: DriverSpec) -> Iterator[tuple[str, Path]]:
    written = spec.command[0]
    if _INTERPRETER.fullmatch(written):
        return
    program = spec.expand(written)
    if "/" in program:
        path = spec.folder / program
        for base, prefix in ((spec.build, "{build}/"), (spec.folder, "")):
            if path.is_relative_to(base):
                yield f"{prefix}{path.relative_to(base).as_posix()}", path
                return
        yield str(path), path
        return
    found = shutil.which(program)
    if found is None:
        raise TrajconformError(f"the program {program} of the driver {spec.name} is not on PATH")
    yield f"program:{program}", Path(found)


def _declared(spec: DriverSpec, text: str) -> Iterator[tuple[str, Path]]:
    if text.startswith("module:"):
        yield from _module_files(text.removeprefix("module:"))
        return
    base, prefix, pattern = spec.folder, "", text.removeprefix("{driver}/")
    if text.startswith("{build}/"):
        base, prefix, pattern = spec.build, "{build}/", text.removeprefix("{build}/")
    elif text.startswith("/"):
        base, prefix, pattern = Path("/"), "/", text.lstrip("/")
    pattern = spec.expand(pattern)
    wild = any(sign in pattern for sign in "*?[")
    matches = sorted(base.glob(pattern)) if wild else [path for path in (base / pattern,) if path.exists()]
    if not matches:
        advice = "; set the driver up first" if prefix == "{build}/" else ""
        raise TrajconformError(f"{spec.folder / 'driver.toml'}: the artefact {text!r} is not there{advice}")
    for match in matches:
        for path in tree_files(match) if match.is_dir() else (match,):
            yield prefix + path.relative_to(base).as_posix(), path


def _module_files(name: str) -> Iterator[tuple[str, Path]]:
    """The code of a module's top-level package, or of the module itself."""
    top = name.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top) if top else None
    except (ImportError, ValueError):
        spec = None
    if spec is None or (spec.submodule_search_locations is None and spec.origin is None):
        raise TrajconformError(f"there is no module {top or name!r} whose files could be certified")
    if spec.submodule_search_locations is None:
        path = Path(str(spec.origin))
        yield f"module:{path.name}", path
        return
    for folder in spec.submodule_search_locations:
        base = Path(folder)
        for path in tree_files(base, skip=("_kit",)):
            if path.name.endswith(_CODE):
                yield f"module:{top}/{path.relative_to(base).as_posix()}", path
