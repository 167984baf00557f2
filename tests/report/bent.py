"""Implementations that are wrong in ways that a page has to show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trajconform.harness.reference import ReferenceDriver
from trajconform.model.arrays import decode_array, encode_array


class Bent(ReferenceDriver):
    """Loses the last bit of a position and every block that is empty; keeps to the formats otherwise."""

    def hello(self) -> dict[str, Any]:
        return super().hello() | {"name": "bent", "version": "1"}

    def read(self, format: str, path: str, frames: Sequence[int] | None = None) -> dict[str, Any]:  # noqa: A002
        reply = super().read(format, path, frames)
        for frame in reply["frames"]:
            blocks = frame.get("blocks", {})
            for name in [name for name, block in blocks.items() if str(block["rows"]) == "0"]:
                del blocks[name]
            for part in [*(block["columns"] for block in blocks.values()), frame]:
                for name, value in part.items():
                    if isinstance(value, dict) and value.get("dtype") == "f64" and value["shape"]:
                        array = decode_array(value).copy()
                        if array.size:
                            array.reshape(-1).view("u8")[0] ^= 1
                        part[name] = encode_array(array)
        return reply


def bent() -> Bent:
    """For ``--driver tests.report.bent:bent``."""
    return Bent()
