"""The bundled implementation as a driver: an object for in process, and with ``python -m`` a driver program.

It translates between the forms of the protocol and the packages `trajconform.otj` and `trajconform.mrec`, and does
nothing else: what they refuse is refused, what they return is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trajconform import __version__
from trajconform.harness import formats
from trajconform.model.arrays import decode_array, decode_int
from trajconform.model.reply import decode_block, decode_frame
from trajconform.model.trajectory import OtjHeader


class ReferenceDriver:
    """Reads, checks and writes both formats with the bundled implementation."""

    def __init__(self) -> None:
        self._writer: _MrecCalls | _OtjCalls | None = None

    def hello(self) -> dict[str, Any]:
        """What it claims: everything."""
        return {
            "name": "reference",
            "version": __version__,
            "language": "Python",
            "formats": {"mrec": ["read", "write"], "otj": ["read", "write"]},
            "features": ["range", "reopen", "system", "json:text", "check:mrec", "check:otj", "single", "double"],
        }

    def read(self, format: str, path: str, frames: Sequence[int] | None = None) -> dict[str, Any]:  # noqa: A002
        """Read a file. `Refused` where a reader refuses it."""
        return formats.get(format).read(Path(path), (frames[0], frames[1]) if frames else None)

    def check(self, format: str, path: str) -> list[dict[str, Any]]:  # noqa: A002
        """Violations of a file."""
        return [
            {"clause": violation.clause, "path": violation.path, "message": violation.message}
            | {name: getattr(violation, name) for name in ("index", "offset") if getattr(violation, name) is not None}
            for violation in formats.get(format).check(Path(path))
        ]

    def create(
        self,
        format: str,  # noqa: A002
        path: str,
        declaration: Mapping[str, Any] | None = None,
        derive_from: Sequence[Mapping[str, Any]] | None = None,
        system: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin a file. `Refused` where a writer refuses the declaration."""
        self._end()
        if format == "otj":
            self._writer = _OtjCalls(path, declaration or {})
        elif derive_from is not None:
            self._writer = _MrecCalls.derived(path, derive_from, system)
        else:
            self._writer = _MrecCalls.created(path, declaration or {}, system)

    def append(self, step: int | str, frame: Mapping[str, Any], time: Mapping[str, Any] | None = None) -> None:
        """Append a frame. `Refused` where a writer refuses it."""
        self._open().append(decode_int(step), frame, time)

    def flush(self) -> None:
        """Make durable what was appended."""
        self._open().writer.flush()

    def close(self) -> None:
        """Make durable what was appended, and end."""
        self._open().writer.close()
        self._writer = None

    def reopen(self, format: str, path: str, declaration: Mapping[str, Any] | None = None) -> None:  # noqa: A002
        """Go on with a file."""
        if format != "mrec":
            raise NotImplementedError(f"going on with a file of format {format}")
        self._end()
        self._writer = _MrecCalls.reopened(path, declaration)

    def _open(self) -> _MrecCalls | _OtjCalls:
        if self._writer is None:
            raise RuntimeError("no writer is open")
        return self._writer

    def _end(self) -> None:
        if self._writer is not None:
            self._writer.writer.close()
            self._writer = None


class _OtjCalls:
    """Writer calls for otj."""

    def __init__(self, path: str, declaration: Mapping[str, Any]) -> None:
        from trajconform.otj.writer import OtjWriter

        header = OtjHeader(
            decode_int(declaration["particles"]),
            declaration["precision"],
            declaration["velocities"],
            decode_array(declaration["timestep"]),
            decode_array(declaration["masses"]),
        )
        self.writer = OtjWriter(path, header)

    def append(self, step: int, frame: Mapping[str, Any], time: Mapping[str, Any] | None) -> None:
        self.writer.append(step, {name: decode_array(values) for name, values in frame.items()})


class _MrecCalls:
    """Writer calls for mrec."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    @classmethod
    def created(cls, path: str, declaration: Mapping[str, Any], system: Mapping[str, Any] | None) -> _MrecCalls:
        from trajconform.mrec.writer import MrecWriter

        return cls(MrecWriter.create(Path(path), declaration, system=_blocks(system)))

    @classmethod
    def derived(cls, path: str, frames: Sequence[Mapping[str, Any]], system: Mapping[str, Any] | None) -> _MrecCalls:
        from trajconform.mrec.writer import MrecWriter, derive_declaration

        declaration = derive_declaration([decode_frame(frame) for frame in frames])
        return cls(MrecWriter.create(Path(path), declaration, system=_blocks(system)))

    @classmethod
    def reopened(cls, path: str, declaration: Mapping[str, Any] | None) -> _MrecCalls:
        from trajconform.mrec.writer import MrecWriter

        return cls(MrecWriter.reopen(Path(path), declaration))

    def append(self, step: int, frame: Mapping[str, Any], time: Mapping[str, Any] | None) -> None:
        self.writer.append(decode_frame({**frame, "step": step, **({"time": time} if time is not None else {})}))


def _blocks(wire: Mapping[str, Any] | None) -> dict[str, Any]:
    blocks = {}
    for name, block in (wire or {}).items():
        columns = block["columns"]
        rows = block.get("rows", next((values["shape"][0] for values in columns.values()), 0))
        blocks[name] = decode_block({**block, "rows": rows})
    return blocks


if __name__ == "__main__":
    from trajconform.harness.serve import serve

    serve(ReferenceDriver())
