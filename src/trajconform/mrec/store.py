"""The files of a record, a folder or a packed one: bounded reads that never leave the record.

Nothing here trusts what it reads. A path is followed only while it stays below the record's root, JSON is parsed
strictly, and every read has a limit.
"""

from __future__ import annotations

import json
import os
import threading
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from trajconform.model.errors import Refused, Violation, refuse

MAX_METADATA_BYTES = 64 * 1024 * 1024
MAX_ENTRY_BYTES = 1024 * 1024 * 1024


class Files(Protocol):
    """Files by name relative to the root of the record."""

    def size(self, name: str) -> int | None:
        """Size of a file in bytes, None where there is none."""

    def read(self, name: str, start: int, length: int) -> bytes:
        """``length`` bytes from ``start`` on; fewer where the file ends before."""

    def names(self, folder: str) -> list[str]:
        """Names directly below a folder."""

    def close(self) -> None:
        """Let go of what is open."""


class FolderFiles:
    """A record as a folder. Links are followed only inside it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._real = os.path.realpath(root)

    def _path(self, name: str) -> str:
        path = os.path.join(self._real, *name.split("/")) if name else self._real  # noqa: PTH118 - measured: pathlib is slow here
        real = os.path.realpath(path)
        if real != path and not (real == self._real or real.startswith(self._real + os.sep)):
            raise refuse("MREC-RECORD-10", name, "a link leads out of the record; it is not followed")
        return real

    def size(self, name: str) -> int | None:
        path = self._path(name)
        try:
            found = os.stat(path)  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise refuse("MREC-RECORD-11", name, f"cannot be looked at: {error.strerror}") from None
        return found.st_size if os.path.isfile(path) else None  # noqa: PTH113

    def read(self, name: str, start: int, length: int) -> bytes:
        path = self._path(name)
        try:
            handle = os.open(path, os.O_RDONLY)
            try:
                pieces = []
                while length > 0:
                    piece = os.pread(handle, min(length, 1 << 30), start)
                    if not piece:
                        break
                    pieces.append(piece)
                    start += len(piece)
                    length -= len(piece)
            finally:
                os.close(handle)
        except OSError as error:
            raise refuse("MREC-RECORD-11", name, f"cannot be read: {error.strerror}") from None
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self._path(folder)))  # noqa: PTH208
        except OSError:
            return []

    def close(self) -> None:
        return None


class PackedFiles:
    """A record in one zip file. Entries with an absolute name or ``..`` are not part of it."""

    def __init__(self, path: Path) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise refuse("MREC-RECORD-07", "", f"not a packed record: {error}") from None
        self.entries = self._zip.infolist()
        self._lock = threading.Lock()
        self._entries = {e.filename: e for e in self.entries if _inside(e.filename) and not e.filename.endswith("/")}
        self._folders: dict[str, set[str]] = {}
        for name in self._entries:
            parts = name.split("/")
            for depth in range(len(parts)):
                self._folders.setdefault("/".join(parts[:depth]), set()).add(parts[depth])
        self._last: tuple[str, bytes] | None = None

    def size(self, name: str) -> int | None:
        entry = self._entries.get(name)
        return entry.file_size if entry else None

    def read(self, name: str, start: int, length: int) -> bytes:
        with self._lock:
            if self._last is None or self._last[0] != name:
                self._last = (name, self._whole(name))
            return self._last[1][start : start + length]

    def _whole(self, name: str) -> bytes:
        entry = self._entries[name]
        if entry.file_size > MAX_ENTRY_BYTES:
            raise refuse("MREC-RECORD-07", name, f"the entry claims {entry.file_size} bytes, more than is unpacked")
        try:
            with self._zip.open(entry) as stream:
                data = stream.read(entry.file_size + 1)
        except (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
            raise refuse("MREC-RECORD-07", name, f"the entry cannot be read: {error}") from None
        except Exception as error:  # zlib.error and the like: the decompressors' own exceptions have no common base
            raise refuse("MREC-RECORD-07", name, f"the entry does not decompress: {error}") from None
        if len(data) != entry.file_size:
            raise refuse("MREC-RECORD-07", name, f"the entry claims {entry.file_size} bytes and has others")
        return data

    def names(self, folder: str) -> list[str]:
        return sorted(self._folders.get(folder, ()))

    def close(self) -> None:
        self._zip.close()


def _inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name


class Store:
    """The nodes of a record: each node's own ``zarr.json``, parsed once; consolidated metadata is not looked at."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            self.files: Files = FolderFiles(self.path)
        elif self.path.exists():
            self.files = PackedFiles(self.path)
        else:
            raise FileNotFoundError(f"there is no record at {self.path}")
        self._documents: dict[str, dict[str, Any] | Violation | None] = {}

    def close(self) -> None:
        """Let go of what is open."""
        self.files.close()

    def document(self, node: str) -> dict[str, Any] | None:
        """The parsed ``zarr.json`` of a node, None where there is none. `Refused` where it is no node's metadata."""
        if node not in self._documents:
            try:
                self._documents[node] = self._parse(node)
            except Refused as refusal:
                self._documents[node] = refusal.violation
        found = self._documents[node]
        if isinstance(found, Violation):
            raise Refused(found)
        return found

    def _parse(self, node: str) -> dict[str, Any] | None:
        name = f"{node}/zarr.json" if node else "zarr.json"
        size = self.files.size(name)
        if size is None:
            return None
        if size > MAX_METADATA_BYTES:
            raise refuse("MREC-RECORD-11", name, f"{size} bytes of metadata are more than is read")
        document = parse_json(self.files.read(name, 0, size), name)
        if not isinstance(document, dict):
            raise refuse("MREC-RECORD-11", name, "the metadata of a node is a JSON object")
        version, kind = document.get("zarr_format"), document.get("node_type")
        if version != 3 or isinstance(version, bool) or kind not in ("group", "array"):
            raise refuse("MREC-RECORD-11", name, f"zarr_format {version!r} and node_type {kind!r} are no Zarr V3 node")
        if not isinstance(document.get("attributes", {}), dict):
            raise refuse("MREC-RECORD-11", name, "the attributes of a node are a JSON object")
        return document

    def group(self, node: str) -> dict[str, Any] | None:
        """The attributes of a group, None where there is no group of that name."""
        document = self.document(node)
        if document is None or document["node_type"] != "group":
            return None
        attributes: dict[str, Any] = document.get("attributes", {})
        return attributes

    def is_array(self, node: str) -> bool:
        """Whether there is an array of that name."""
        document = self.document(node)
        return document is not None and document["node_type"] == "array"

    def children(self, node: str) -> list[str]:
        """Names of the nodes directly below a node."""
        prefix = f"{node}/" if node else ""
        return [n for n in self.files.names(node) if self.files.size(f"{prefix}{n}/zarr.json") is not None]


class _Strict(ValueError):
    """JSON that the standard library takes and the standard does not, or that is no use as metadata."""


def parse_json(data: bytes, name: str, clause: str = "MREC-RECORD-11") -> Any:
    """Strict JSON: UTF-8, no duplicate keys, no NaN tokens; integers stay exact and 4.0 stays a float."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(items)
        if len(out) != len(items):
            seen: set[str] = set()
            twice = next(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise _Strict(f"the key {twice!r} stands twice")
        return out

    def constant(token: str) -> Any:
        raise _Strict(f"{token} is no JSON")

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except UnicodeDecodeError as error:
        raise refuse(clause, name, f"not UTF-8: {error.reason}", offset=error.start) from None
    except RecursionError:
        raise refuse(clause, name, "the JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise refuse(clause, name, f"not JSON: {error.msg}", offset=error.pos) from None
    except ValueError as error:
        raise refuse(clause, name, f"not strict JSON: {error}") from None
