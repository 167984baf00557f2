"""The formats by name: what the harness needs of a format package to judge what a writer left on disk.

Nothing of a format package is imported before it is asked for, and the harness knows no format otherwise; a third
format is one more entry here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trajconform.model.errors import TrajconformError, Violation
from trajconform.model.reply import Difference


@dataclass(frozen=True)
class Format:
    """What the harness asks of a format.

    ``read`` gives the reply form of a file (all frames, or first and stop) and raises `Refused`; ``check`` every
    violation; ``layout`` the assertions that do not hold; ``first_frames`` the bytes of a file cut after some frames.
    """

    name: str
    read: Callable[[Path, tuple[int, int] | None], dict[str, Any]]
    check: Callable[[Path], list[Violation]]
    layout: Callable[[Path, Sequence[Mapping[str, Any]]], Iterator[Difference]]
    first_frames: Callable[[bytes, int], bytes]


def get(name: str) -> Format:
    """A format by its name."""
    if name not in _FORMATS:
        raise TrajconformError(f"there is no format {name!r}; formats are {', '.join(_FORMATS)}")
    return _FORMATS[name]


def _read_otj(path: Path, frames: tuple[int, int] | None) -> dict[str, Any]:
    with importlib.import_module("trajconform.otj.reader").open_otj(path) as file:
        reply: dict[str, Any] = file.reply(*(frames or ()))
        return reply


def _check_otj(path: Path) -> list[Violation]:
    found: list[Violation] = importlib.import_module("trajconform.otj.checker").check_otj(path)
    return found


def _first_frames_otj(data: bytes, frames: int) -> bytes:
    module = importlib.import_module("trajconform.otj.format")
    flags, particles = int.from_bytes(data[12:16], "little"), int.from_bytes(data[16:24], "little")
    layout = module.Layout(particles, bool(flags & 1), bool(flags & 2))
    return data[: layout.offset(frames)]


def _read_mrec(path: Path, frames: tuple[int, int] | None) -> dict[str, Any]:
    from trajconform.model.reply import mrec_reply

    with importlib.import_module("trajconform.mrec.reader").open_mrec(path) as file:
        first, stop = frames or (0, len(file))
        return mrec_reply(len(file), file.frames(first, min(stop, len(file))), file.declaration)


def _check_mrec(path: Path) -> list[Violation]:
    found: list[Violation] = importlib.import_module("trajconform.mrec.checker").check_mrec(path)
    return found


def _layout_mrec(path: Path, assertions: Sequence[Mapping[str, Any]]) -> Iterator[Difference]:
    from trajconform.harness.layout import layout_differences

    yield from layout_differences(path, assertions)


def _no_layout(path: Path, assertions: Sequence[Mapping[str, Any]]) -> Iterator[Difference]:
    raise TrajconformError("otj has no layout beyond its bytes; a case compares those")


def _no_first_frames(data: bytes, frames: int) -> bytes:
    raise TrajconformError("an mrec store is not compared byte for byte")


_FORMATS = {
    "mrec": Format("mrec", _read_mrec, _check_mrec, _layout_mrec, _no_first_frames),
    "otj": Format("otj", _read_otj, _check_otj, _no_layout, _first_frames_otj),
}
