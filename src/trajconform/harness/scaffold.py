"""A first driver from the templates of the kit: small, working, with one format's read answered."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from trajconform import kit
from trajconform.harness.drivertoml import DriverSpec, load_driver
from trajconform.model.errors import TrajconformError

LANGUAGES = ("python", "c", "node", "rust")
FORMATS = ("otj", "mrec")

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_SOURCE_FOLDERS = {"rust": "src"}
"""Where the file that reads a format goes, where that is not the folder itself."""
_BORROWED = {"c": ("json.c", "json.h", "buffer.c", "buffer.h")}
"""Files of the driver ``c-otj`` that serve every C driver."""


def new_driver(folder: Path, language: str, format_name: str) -> DriverSpec:
    """Write a driver into a folder that is not there yet, or is empty; the folder's name is the driver's.

    `TrajconformError` for a name that no driver can have, and where there is something already.
    """
    name = folder.resolve().name
    if not _NAME.fullmatch(name):
        raise TrajconformError(
            f"{name!r} cannot be the name of a driver: lower-case letters, digits, '.', '_' and '-', "
            "starting with a letter or a digit"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise TrajconformError(f"{folder} is there already and is left as it is; choose another name or remove it")
    home = kit.root() / "harness"
    templates = home / "templates" / language
    files = {path.relative_to(templates): path for path in _files(templates) if _belongs(path, templates)}
    into = Path(_SOURCE_FOLDERS.get(language, "."))
    files |= {into / path.name: path for path in _files(templates / format_name)}
    files |= {Path(file): home / "drivers" / "c-otj" / file for file in _BORROWED.get(language, ())}
    for target, source in sorted(files.items()):
        text = source.read_text("utf-8").replace("@NAME@", name).replace("@FORMAT@", format_name)
        path = folder / target
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        except OSError as error:
            raise TrajconformError(f"cannot write the driver: {path}: {error.strerror or error}") from error
    return load_driver(folder)


def missing_tools(spec: DriverSpec) -> list[str]:
    """The tools that a driver needs and that are not on PATH."""
    return [tool for tool in spec.needs if shutil.which(tool) is None]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]


def _belongs(path: Path, templates: Path) -> bool:
    return path.relative_to(templates).parts[0] not in FORMATS
