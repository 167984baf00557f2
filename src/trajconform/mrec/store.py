"""The files of a record, a folder or a packed one: bounded reads that never leave the record.

Nothing here trusts what it reads. A path is followed only while it stays below the record's root, JSON is parsed
strictly, and every read has a limit.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
import struct
import threading
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from trajconform.model.arrays import Array
from trajconform.model.errors import Refused, Violation, refuse
from trajconform.model.location import is_url, localized
from trajconform.model.remote import RemoteError, RemoteFile

MAX_METADATA_BYTES = 16 * 1024 * 1024
MAX_INFLATED_BYTES = 64 * 1024 * 1024
"""What a compressed entry of a packed record is unpacked to at most. A conforming record has none."""
MAX_JSON_DEPTH = 256
CACHE_BYTES = 128 * 1024 * 1024
_OPEN_FILES = 32
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


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


def read_into(files: Files, name: str, start: int, places: Sequence[Array]) -> int:
    """Fill byte arrays one after the other from ``start`` on; the number of bytes that there were.

    What can scatter does it in one call of the system; for what cannot, the bytes are read and copied.
    """
    if isinstance(files, (FolderFiles, PackedFiles)):
        found = files.scatter(name, start, places)
        if found is not None:
            return found
    data, at = files.read(name, start, sum(p.nbytes for p in places)), 0
    for place in places:
        piece = np.frombuffer(data, dtype="u1")[at : at + place.nbytes]
        place[: len(piece)] = piece
        at += place.nbytes
    return len(data)


def _scatter(handle: int, start: int, places: Sequence[Any]) -> int | None:
    """`read_into` by one call of the system; None where it has none, or gave less than was asked for."""
    if not hasattr(os, "preadv"):
        return None
    got = os.preadv(handle, places, start)
    return got if got == sum(p.nbytes for p in places) else None


@dataclass
class _Handle:
    """An open file; it is not closed while somebody uses it."""

    number: int
    size: int
    users: int = 0


class FolderFiles:
    """A record as a folder. Links are followed only inside it, and only regular files are read."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._folders: dict[str, str | None] = {"": self._root}
        self._open: OrderedDict[str, _Handle] = OrderedDict()
        self._lock = threading.RLock()

    def _folder(self, folder: str) -> str | None:
        """The real path of a folder of the record, None where there is none."""
        if folder not in self._folders:
            above, _, name = folder.rpartition("/")
            parent = self._folder(above)
            self._folders[folder] = None if parent is None else self._step(parent, name, folder)
        return self._folders[folder]

    def _step(self, parent: str, name: str, folder: str) -> str | None:
        if name in ("", ".", ".."):
            return None
        path = f"{parent}/{name}"
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return None
            raise refuse("MREC-RECORD-11", folder, f"cannot be opened: {error.strerror}") from None
        if stat.S_ISLNK(mode):
            path = self._inside(path, folder)
        return path if os.path.isdir(path) else None  # noqa: PTH112 - measured: pathlib is slow here

    def _inside(self, path: str, name: str) -> str:
        real = os.path.realpath(path)
        if real != self._root and not real.startswith(self._root + os.sep):
            message = "a link leads out of the record; it is not followed. Put the file itself in its place"
            raise refuse("MREC-RECORD-10", name, message)
        return real

    def _handle(self, name: str) -> _Handle | None:
        """An open file, None where there is none. Called with the lock held."""
        if name in self._open:
            self._open.move_to_end(name)
            return self._open[name]
        folder, _, base = name.rpartition("/")
        parent = self._folder(folder)
        if parent is None or base in ("", ".", ".."):
            return None
        path = f"{parent}/{base}"
        try:
            try:
                handle = os.open(path, _FLAGS)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                handle = os.open(self._inside(path, name), _FLAGS)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return None
            raise refuse("MREC-RECORD-11", name, f"cannot be opened: {error.strerror}") from None
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            os.close(handle)
            raise refuse("MREC-RECORD-11", name, "is not a file; a record is made of folders and files")
        self._open[name] = opened = _Handle(handle, found.st_size)
        for old in [n for n, h in self._open.items() if not h.users][: max(0, len(self._open) - _OPEN_FILES)]:
            if old != name:
                os.close(self._open.pop(old).number)
        return opened

    def _use(self, name: str) -> _Handle | None:
        """An open file that no other thread closes until `_leave`, None where there is none."""
        with self._lock:
            found = self._handle(name)
            if found:
                found.users += 1
            return found

    def _leave(self, found: _Handle) -> None:
        with self._lock:
            found.users -= 1

    def size(self, name: str) -> int | None:
        with self._lock:
            found = self._handle(name)
        return found.size if found else None

    def read(self, name: str, start: int, length: int) -> bytes:
        pieces: list[bytes] = []
        found = self._use(name)
        if not found:
            return b""
        try:
            while length > 0:
                piece = os.pread(found.number, min(length, 1 << 30), start)
                if not piece:
                    break
                pieces.append(piece)
                start += len(piece)
                length -= len(piece)
        except OSError as error:
            raise refuse("MREC-RECORD-11", name, f"cannot be read: {error.strerror}") from None
        finally:
            self._leave(found)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def scatter(self, name: str, start: int, places: Sequence[Array]) -> int | None:
        """`read_into`, None where it takes more than one call of the system."""
        found = self._use(name)
        if not found:
            return None
        try:
            return _scatter(found.number, start, places)
        except OSError:
            return None  # `read` says what is wrong
        finally:
            self._leave(found)

    def names(self, folder: str) -> list[str]:
        path = self._folder(folder)
        if path is None:
            return []
        try:
            return sorted(name for name in os.listdir(path) if is_text(name))  # noqa: PTH208
        except OSError as error:
            raise refuse("MREC-RECORD-11", folder, f"cannot be listed: {error.strerror}") from None

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1].number)


class PackedFiles:
    """A record in one zip file. Entries with an absolute name or ``..`` are not part of it.

    Entries are read in place. A compressed one breaks a clause on stores but can be decoded: a reader takes it, up to
    a limit. ``source`` may be a file behind a URL; ``inside`` names a folder of the zip file that is the record.
    """

    def __init__(self, source: Path | RemoteFile, inside: str = "") -> None:
        self.inside = inside
        self._stream: Any = source.open("rb") if isinstance(source, Path) else source
        try:
            self._zip = zipfile.ZipFile(self._stream)
            self.entries = self._zip.infolist()
        except RemoteError:
            self._stream.close()
            raise
        except Exception as error:  # hostile input makes that module raise errors that have no common base
            self._stream.close()
            raise refuse("MREC-RECORD-11", "", f"neither a folder nor a zip file that can be read: {error}") from None
        self._local = isinstance(source, Path)
        self._size = os.fstat(self._stream.fileno()).st_size if isinstance(source, Path) else source.size
        root = f"{inside}/" if inside else ""
        self._entries = {
            e.filename[len(root) :]: e
            for e in self.entries
            if e.filename.startswith(root) and not e.filename.endswith("/") and not leaves_record(e.filename)
        }
        self._folders: dict[str, set[str]] = {}
        for name in self._entries:
            parts = name.split("/")
            for depth in range(len(parts)):
                self._folders.setdefault("/".join(parts[:depth]), set()).add(parts[depth])
        self._starts: dict[str, int] = {}
        self._last: tuple[str, bytes] | None = None

    def size(self, name: str) -> int | None:
        entry = self._entries.get(name)
        return entry.file_size if entry else None

    def read(self, name: str, start: int, length: int) -> bytes:
        entry = self._entries[name]
        if entry.compress_type != zipfile.ZIP_STORED:
            last = self._last
            if last is None or last[0] != name:
                self._last = last = (name, self._unpacked(entry))
            return last[1][start : start + length]
        return self._at(self._start(entry) + start, max(0, min(length, entry.file_size - start)))

    def scatter(self, name: str, start: int, places: Sequence[Array]) -> int | None:
        """`read_into`, None where it takes more than one call of the system."""
        entry = self._entries[name]
        if not self._local:
            return None
        if entry.compress_type != zipfile.ZIP_STORED or start + sum(p.nbytes for p in places) > entry.file_size:
            return None
        return _scatter(self._stream.fileno(), self._start(entry) + start, places)

    def _at(self, start: int, length: int) -> bytes:
        length = max(0, min(length, self._size - start))
        if not self._local:
            return bytes(self._stream.pread(start, length))
        return os.pread(self._stream.fileno(), length, start)

    def _start(self, entry: zipfile.ZipInfo) -> int:
        """Where the bytes of an entry begin, behind the header of its own."""
        name = entry.filename
        if name not in self._starts:
            if entry.flag_bits & 1:
                raise refuse("MREC-RECORD-11", name, "the entry is encrypted")
            head = self._at(entry.header_offset, 30) if 0 <= entry.header_offset < self._size else b""
            if len(head) != 30 or head[:4] != b"PK\x03\x04":
                raise refuse("MREC-RECORD-11", name, "the directory of the zip file points to no entry")
            start = entry.header_offset + 30 + sum(struct.unpack("<HH", head[26:30]))
            stored = entry.compress_type == zipfile.ZIP_STORED
            if start + entry.compress_size > self._size or (stored and entry.compress_size != entry.file_size):
                raise refuse("MREC-RECORD-11", name, "the entry is not as long as the directory of the zip file says")
            self._starts[name] = start
        return self._starts[name]

    def _unpacked(self, entry: zipfile.ZipInfo) -> bytes:
        name, size = entry.filename, entry.file_size
        start = self._start(entry)
        if entry.compress_type != zipfile.ZIP_DEFLATED:
            raise refuse("MREC-RECORD-11", name, f"the entry is packed by method {entry.compress_type}; store it")
        if size > MAX_INFLATED_BYTES:
            message = f"the compressed entry claims {size} bytes, more than is unpacked; store it"
            raise refuse("MREC-RECORD-11", name, message)
        try:
            data = zlib.decompressobj(-15).decompress(self._at(start, entry.compress_size), size + 1)
        except zlib.error as error:
            raise refuse("MREC-RECORD-11", name, f"the compressed entry does not unpack: {error}") from None
        if len(data) != size or zlib.crc32(data) != entry.CRC:
            raise refuse("MREC-RECORD-11", name, f"the entry does not unpack to the {size} bytes that were packed")
        return data

    def names(self, folder: str) -> list[str]:
        return sorted(name for name in self._folders.get(folder, ()) if is_text(name))

    def close(self) -> None:
        self._zip.close()
        self._stream.close()


def leaves_record(name: str) -> bool:
    """Whether an entry, unpacked by its name, would not stay inside the record."""
    return name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or name[1:2] == ":"


def is_text(name: str) -> bool:
    """Whether a name is text, and no half of a surrogate pair."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class Cache:
    """Arrays by key, the least recently used thrown out first: what a store keeps decoded, of all its arrays."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: OrderedDict[Any, tuple[Array, int]] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def get(self, key: Any) -> Array | None:
        """An array, None where it is not, or no longer, here."""
        with self._lock:
            found = self._items.get(key)
            if found is None:
                return None
            self._items.move_to_end(key)
            return found[0]

    def put(self, key: Any, array: Array, weight: int) -> None:
        """Keep an array that weighs some bytes."""
        with self._lock:
            if weight > self._limit or key in self._items:
                return
            self._items[key] = (array, weight)
            self._weight += weight
            while self._weight > self._limit:
                self._weight -= self._items.popitem(last=False)[1][1]


class Store:
    """The nodes of a record: each node's own ``zarr.json``, parsed once; consolidated metadata is not looked at."""

    def __init__(self, path: Path | str) -> None:
        place = localized(path)
        self.path = Path(place)
        if isinstance(place, str) and is_url(place):
            from trajconform.mrec.remote import open_files

            self.files: Files = open_files(place)
        elif self.path.is_dir():
            self.files = FolderFiles(self.path)
        elif self.path.is_file():
            self.files = PackedFiles(self.path)
        else:
            raise FileNotFoundError(errno.ENOENT, "there is no record", str(self.path))
        self.cache = Cache(CACHE_BYTES)
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
        if version != 3 or not isinstance(version, int) or kind not in ("group", "array"):
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

    def is_link(self, node: str) -> bool:
        """Whether the folder of a node is a symbolic link."""
        return isinstance(self.files, FolderFiles) and (self.path / node).is_symlink()

    def is_array(self, node: str) -> bool:
        """Whether there is an array of that name."""
        document = self.document(node)
        return document is not None and document["node_type"] == "array"

    def children(self, node: str) -> list[str]:
        """Names of the nodes directly below a node; what is wrong with one shows when it is needed."""
        prefix = f"{node}/" if node else ""
        names = self.files.names(node)
        ahead = getattr(self.files, "ahead", None)
        if ahead is not None:
            ahead([f"{prefix}{n}/zarr.json" for n in names if n != "zarr.json"])
        return [n for n in names if self._may_be_node(f"{prefix}{n}/zarr.json")]

    def _may_be_node(self, name: str) -> bool:
        try:
            return self.files.size(name) is not None
        except Refused:
            return True


def child(node: str, name: str) -> str:
    """The path of a node below another. A name that no node can have leads to where there is none."""
    if name in ("", ".", "..") or "/" in name or "\0" in name or name == "zarr.json":
        return f"{node}/\0{name}"
    return f"{node}/{name}"


class _Strict(ValueError):
    """JSON that the standard library takes and the standard does not, or that is no use as metadata."""


class NegativeZero(int):
    """The JSON number ``-0``: an integer that is -0.0 in binary64."""

    def __float__(self) -> float:
        return -0.0


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(items)
    if len(out) != len(items):
        known: set[str] = set()
        twice = next(key for key, _ in items if key in known or known.add(key))  # type: ignore[func-returns-value]
        raise _Strict(f"the key {twice!r} stands twice")
    return out


def _constant(token: str) -> Any:
    raise _Strict(f"{token} is no JSON")


def _integer(text: str) -> int:
    if len(text) > 400:
        raise _Strict(f"an integer of {len(text)} digits")
    return NegativeZero(0) if text == "-0" else int(text)


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_integer)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
"""A string, also one that does not end, or a bracket: each character is looked at once, whatever the text."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(data: bytes, name: str, clause: str = "MREC-RECORD-11", index: int | None = None) -> Any:
    """Strict JSON: UTF-8, no duplicate keys, no NaN tokens, no half of a surrogate pair, not nested too deep.

    Integers stay exact and 4.0 stays a float. A byte offset in the refusal is one into ``data``.
    """

    def no(message: str, offset: int | None = None) -> Refused:
        return refuse(clause, name, message, index=index, offset=offset)

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise no(f"not UTF-8: {error.reason}", error.start) from None
    if text.count("[") + text.count("{") > MAX_JSON_DEPTH and _depth(text) > MAX_JSON_DEPTH:
        raise no(f"the JSON is nested more than {MAX_JSON_DEPTH} deep")
    try:
        document = _DECODER.decode(text)
        if _SURROGATE.search(text):
            json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise no(f"not JSON: {error.msg}", len(text[: error.pos].encode())) from None
    except UnicodeEncodeError:
        raise no("half of a surrogate pair is escaped in it, which is no text") from None
    except RecursionError:
        raise no("the JSON is nested too deeply") from None
    except ValueError as error:
        raise no(f"not strict JSON: {error}") from None
    return document


def _depth(text: str) -> int:
    """The deepest nesting; what stands in strings does not count."""
    depth = deepest = 0
    for token in _TOKEN.finditer(text):
        character = token[0][0]
        if character != '"':
            depth += 1 if character in "[{" else -1
            deepest = max(deepest, depth)
    return deepest


def is_finite(document: Any) -> bool:
    """Whether every number of a parsed document is finite: ``1e999`` is JSON, and no number of binary64."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, (dict, list)):
            waiting.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, float) and not math.isfinite(value):
            return False
    return True
