"""Drivers by name or folder: what ``driver.toml`` says, where a driver builds, and whether it has been set up."""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trajconform import kit
from trajconform.harness.inprocess import InProcess
from trajconform.harness.process import MIB, Limits
from trajconform.harness.protocol import find_fault
from trajconform.model.errors import TrajconformError

STAMP = "setup.json"
"""File in the build folder that says for which state of the driver the set-up ran."""

_PLACEHOLDER = re.compile(r"\{([a-z]+(?:\d\.\d+)?)\}")
_NOT_SOURCES = {"build", "dist", "target", "node_modules", "__pycache__", "known-failures.yaml", "README.md"}


@dataclass(frozen=True)
class DriverSpec:
    """A driver program as its folder describes it. Commands still have their placeholders; see `expand`."""

    name: str
    version: str
    language: str
    description: str
    folder: Path
    command: tuple[str, ...]
    env: Mapping[str, str]
    claims: Mapping[str, tuple[str, ...]]
    features: tuple[str, ...]
    limits: Limits
    needs: tuple[str, ...] = ()
    requires_python: str = ""
    setup_commands: tuple[tuple[str, ...], ...] = field(default=())
    artefacts: tuple[str, ...] = ()
    """What a certificate is about, as declared; empty: the default of `trajconform.harness.artefacts`."""

    @functools.cached_property
    def build(self) -> Path:
        """Where the driver builds.

        A driver of the kit itself builds in ``.build/drivers`` of the checkout, outside what a wheel is made of; any
        other in ``.build`` of its own folder. Where neither can be written, and for an installed kit, it is a cache.
        """
        home = kit.root()
        if self.folder.parent == home / "harness" / "drivers":
            if (home / "pyproject.toml").is_file() and os.access(home, os.W_OK):
                return home / ".build" / "drivers" / self.name
        else:
            inside = self.folder / ".build"
            if os.access(inside if inside.exists() else self.folder, os.W_OK):
                return inside
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        digest = hashlib.sha256(str(self.folder).encode()).hexdigest()[:12]
        return cache / "trajconform" / "drivers" / f"{self.name}-{digest}"

    @property
    def known_failures(self) -> Path | None:
        """The driver's list of known failures, where it has one."""
        path = self.folder / "known-failures.yaml"
        return path if path.exists() else None

    def expand(self, text: str) -> str:
        """Replace the placeholders of a command or an environment value. `TrajconformError` for an unknown one."""
        return _PLACEHOLDER.sub(lambda found: self._placeholder(found[1]), text)

    def _placeholder(self, name: str) -> str:
        if name == "driver":
            return str(self.folder)
        if name == "build":
            return str(self.build)
        if name == "python":
            return find_python(self.requires_python, self.name) if self.requires_python else sys.executable
        if name.startswith("python"):
            return find_python(f"=={name.removeprefix('python')}.*", self.name)
        known = "{python}, {python3.NN}, {driver} and {build}"
        raise TrajconformError(f"{self.folder / 'driver.toml'}: unknown placeholder {{{name}}}; there are {known}")

    def digest(self) -> str:
        """Digest of all that a set-up depends on: the set-up section and the files of the folder."""
        digest = hashlib.sha256()
        digest.update(json.dumps([self.setup_commands, self.requires_python]).encode())
        for path in sorted(self.sources()):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(self.folder).as_posix()}\0{content}\n".encode())
        return digest.hexdigest()

    def setup_problem(self) -> str | None:
        """Why the driver cannot run before it is set up (again), or None when it can."""
        if not self.setup_commands:
            return None
        advice = f"run: trajconform driver setup {self.reference}"
        try:
            stamp = json.loads((self.build / STAMP).read_text("utf-8"))
        except (OSError, ValueError):
            return f"the driver {self.name} is not set up; {advice}"
        if not isinstance(stamp, dict) or stamp.get("digest") != self.digest():
            return f"the driver {self.name} has changed since it was set up; {advice}"
        return None

    @property
    def reference(self) -> str:
        """What to write on a command line for this driver: its name when it is a bundled one, else its folder."""
        return self.name if self.folder == _drivers() / self.folder.name == _drivers() / self.name else str(self.folder)

    def sources(self) -> Iterator[Path]:
        """The files of the folder that make the driver: neither what it builds nor notes about it."""
        for folder, folders, files in os.walk(self.folder):
            folders[:] = [f for f in folders if f not in _NOT_SOURCES and not f.startswith(".")]
            found = (Path(folder) / f for f in files if f not in _NOT_SOURCES and not f.endswith(".pyc"))
            yield from (path for path in found if path.is_file())  # no pipe, and no link that leads nowhere


def _reference_object() -> object:
    return importlib.import_module("trajconform.harness.reference").ReferenceDriver()


REFERENCE = InProcess("reference", _reference_object, "trajconform", "trajconform.harness.reference:ReferenceDriver")
"""The bundled implementation in this process."""


def resolve_driver(text: str | None) -> DriverSpec | InProcess:
    """A driver from what stands on a command line: nothing for the bundled implementation in process, a folder with a
    ``driver.toml`` (or that file), the name of a bundled driver, or ``module:attribute`` for a Python object."""
    if text is None:
        return REFERENCE
    path = Path(text)
    if path.name == "driver.toml":
        path = path.parent
    if (path / "driver.toml").is_file():
        return load_driver(path)
    if re.fullmatch(r"[\w.-]+", text) and (_drivers() / text / "driver.toml").is_file():
        return load_driver(_drivers() / text)
    module, separator, attribute = text.partition(":")
    if separator and re.fullmatch(r"[\w.]+", module) and attribute.isidentifier():
        return _python_object(module, attribute)
    if path.is_dir():
        raise TrajconformError(f"{path} has no driver.toml; harness/PROTOCOL.md says what belongs into one")
    names = ", ".join(spec.name for spec in list_drivers()) or "none"
    raise TrajconformError(
        f"there is no driver {text!r}: neither a folder with a driver.toml, nor one of the bundled drivers ({names}), "
        "nor module:attribute"
    )


def list_drivers(root: Path | None = None) -> list[DriverSpec]:
    """The drivers of the kit's own folder, by name."""
    folder = root / "harness" / "drivers" if root else _drivers()
    return [load_driver(path.parent) for path in sorted(folder.glob("*/driver.toml"))]


def load_driver(folder: Path) -> DriverSpec:
    """Read ``driver.toml``. `TrajconformError` says what is wrong with it and where."""
    path = folder / "driver.toml"
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TrajconformError(f"{path}: {error}") from None
    fault = find_fault("driver", document)
    if fault:
        raise TrajconformError(f"{path}{fault}")
    setup, run = document.get("setup", {}), document["run"]
    spec = DriverSpec(
        name=document["name"],
        version=document.get("version", ""),
        language=document["language"],
        description=document.get("description", ""),
        folder=folder.resolve(),
        command=tuple(run["command"]),
        env=run.get("env", {}),
        claims={name: tuple(roles) for name, roles in document["claims"].items()},
        features=tuple(document.get("features", ())),
        limits=_limits(document.get("limits", {})),
        needs=tuple(setup.get("needs", ())),
        requires_python=setup.get("requires_python", ""),
        setup_commands=tuple(tuple(command) for command in setup.get("commands", ())),
        artefacts=tuple(run.get("artefacts", ())),
    )
    if spec.requires_python:
        _specifier(spec.requires_python, str(path))
    return spec


def _limits(given: Mapping[str, Any]) -> Limits:
    values = {name: float(given[name]) for name in ("start_seconds", "request_seconds") if name in given}
    sizes = {f"{n}_bytes": int(given[f"{n}_mib"] * MIB) for n in ("reply", "log", "memory") if f"{n}_mib" in given}
    return Limits(**values, **sizes)  # type: ignore[arg-type]


def _python_object(module: str, attribute: str) -> InProcess:
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise TrajconformError(f"cannot load the driver {module}:{attribute}: {error}") from error
    name = f"{module}:{attribute}"
    return InProcess(name, found if callable(found) else lambda: found, module, name)


def _drivers() -> Path:
    return kit.root() / "harness" / "drivers"


@functools.cache
def find_python(specifier: str, driver: str) -> str:
    """Path of a Python interpreter whose version fits; the running one first, then the oldest that fits.

    Looks at every ``python3*`` on PATH and at the versions of pyenv and uv. `TrajconformError` says what was found
    instead.
    """
    wanted = _specifier(specifier, driver)
    found: dict[str, str] = {}
    for candidate in _interpreters():
        version = _version(candidate)
        if version and version not in found:
            found[version] = candidate
            if candidate == sys.executable and wanted.contains(version):
                return candidate
    fitting = [version for version in found if wanted.contains(version)]
    if fitting:
        return found[min(fitting, key=lambda version: tuple(map(int, version.split("."))))]
    there = ", ".join(sorted(found)) or "none"
    raise TrajconformError(
        f"the driver {driver} needs a Python interpreter {specifier} and there is none; found: {there}. "
        "Install one so that it is on PATH."
    )


def _specifier(text: str, where: str) -> Any:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        raise TrajconformError(f"{where}: {text!r} is no version specifier such as >=3.12") from None


def _interpreters() -> Iterator[str]:
    yield sys.executable
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for name in ("python3", *(f"python3.{minor}" for minor in range(8, 30))):
            path = shutil.which(name, path=folder)
            if path:
                yield path
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    uv = Path.home() / ".local/share/uv/python"
    for versions in (pyenv, uv):
        yield from map(str, sorted(versions.glob("*/bin/python3")))


@functools.cache
def _version(interpreter: str) -> str:
    """Version of an interpreter, or nothing where it does not run (the shim of a version that is not active)."""
    command = [interpreter, "-I", "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return ""
    version = done.stdout.strip()
    return version if re.fullmatch(r"\d+\.\d+\.\d+", version) else ""
