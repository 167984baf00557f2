"""Files behind a URL, through fsspec: reads of byte ranges, of which nothing that a server says is believed unchecked.

A read never takes more bytes off the network than were asked for, faults that pass are tried again, and whatever a
server contradicts itself in (a size, a range, a file that changes meanwhile) is a `RemoteError`: never a finding about
the file, and never a shorter file than there is. No message carries a password or a signed query.
"""

from __future__ import annotations

import errno
import io
import random
import struct
import threading
import time
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

from trajconform.model.errors import TrajconformError
from trajconform.model.location import Place, is_url, localized, redacted, split_zip

PART_BYTES = 4 << 20
"""A longer read is made of parts of this length, fetched at the same time."""
IN_FLIGHT = 8
"""Requests that one batch has under way at a time."""
ATTEMPTS = 5
FIRST_WAIT = 0.2
"""Seconds before the second attempt, about; twice that before the next."""
LONGEST_WAIT = 30.0
HEAD_BYTES = 1 << 16
"""What of a small file is fetched together with its size."""
_BLOCK = 1 << 16
_BLOCKS = 64

Out = TypeVar("Out")


class RemoteError(OSError):
    """A file that could not be fetched, or a server that cannot be right. Says nothing about what the file holds."""


class Passing(RemoteError):
    """A fault that may be gone at the next attempt. ``wait`` is what the server asks for, in seconds."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True)
class Piece:
    """Bytes from where they were asked for, the size of the file by the same reply, and what names its version."""

    data: bytes
    total: int | None = None
    tag: str | None = None


@dataclass(frozen=True)
class Entry:
    """What a listing says of a name."""

    name: str
    folder: bool
    size: int | None = None


@dataclass(frozen=True)
class Want:
    """Bytes ``start`` up to ``stop`` of a file."""

    name: str
    start: int
    stop: int


class Transport(Protocol):
    """How bytes come from one kind of place. Names are relative to the root; ``""`` is the root itself."""

    def fetch(self, wants: Sequence[Want]) -> list[Piece | None]:
        """The beginning of each range, at least one byte of it where the file goes so far; None where no file is."""

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        """Sizes of files as the place gives them, None where no file is."""

    def entries(self, folder: str) -> list[Entry]:
        """What lies directly below a folder."""

    def is_folder(self) -> bool:
        """Whether the root is a folder."""


def pause(attempt: int, fault: RemoteError | None = None) -> float:
    """Seconds to wait before attempt number ``attempt`` + 1: more each time, and not the same for all who wait."""
    asked = getattr(fault, "wait", None)
    if asked is not None:
        return min(float(asked), LONGEST_WAIT)
    return min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT) * random.uniform(0.75, 1.25)


def again(call: Callable[[], Out]) -> Out:
    """Call until it does not fail in passing any more, or often enough."""
    for attempt in range(1, ATTEMPTS):
        try:
            return call()
        except Passing as fault:
            time.sleep(pause(attempt, fault))
    return call()


class Remote:
    """The files at a URL, by name relative to it; `shown` is the URL without secrets."""

    def __init__(self, url: str) -> None:
        self.shown = redacted(url)
        self._transport = _transport(url)
        self._known: dict[str, tuple[int, str | None]] = {}

    def where(self, name: str) -> str:
        """A file for a message."""
        return f"{self.shown.rstrip('/')}/{name}" if name else self.shown

    def is_folder(self) -> bool:
        """Whether the URL leads to a folder."""
        return self._transport.is_folder()

    def size(self, name: str = "") -> int | None:
        """Size of a file in bytes, None where there is none."""
        if name not in self._known:
            found = self._transport.sizes([name])[0]
            if found is None:
                return None
            self._known[name] = (found, None)
        return self._known[name][0]

    def entries(self, folder: str) -> list[Entry]:
        """What lies directly below a folder."""
        found = self._transport.entries(folder)
        prefix = f"{folder}/" if folder else ""
        for entry in found:
            if entry.size is not None and not entry.folder:
                self._known.setdefault(prefix + entry.name, (entry.size, None))
        return found

    def heads(self, names: Sequence[str]) -> list[bytes | None]:
        """The first `HEAD_BYTES` of files, or all where they are shorter; None where there is no file."""
        pieces = self._transport.fetch([Want(name, 0, HEAD_BYTES) for name in names])
        out: list[bytes | None] = []
        for name, piece in zip(names, pieces, strict=True):
            if piece is not None:
                self._believe(name, piece)
                size = self.size(name)
                if size is None or len(piece.data) < min(size, HEAD_BYTES):
                    piece = Piece(self.read(name, 0, HEAD_BYTES))
            out.append(None if piece is None else piece.data)
        return out

    def read(self, name: str, start: int, length: int) -> bytes:
        """``length`` bytes from ``start`` on, fewer only where the file ends before."""
        return self.read_many([(name, start, length)])[0]

    def read_many(self, wanted: Sequence[tuple[str, int, int]]) -> list[bytes]:
        """Several ranges (name, start, length) at the same time; ranges that touch are one request."""
        out: list[list[bytes]] = [[] for _ in wanted]
        parts: list[tuple[int, Want]] = []
        for number, (name, start, length) in enumerate(wanted):
            stop = min(start + max(0, length), self.size(name) or 0)
            for at in range(start, stop, PART_BYTES):
                parts.append((number, Want(name, at, min(at + PART_BYTES, stop))))
        groups = _adjacent(parts)
        for at in range(0, len(groups), IN_FLIGHT):
            some = groups[at : at + IN_FLIGHT]
            whole = self._whole([Want(g[0][1].name, g[0][1].start, g[-1][1].stop) for g in some])
            for group, data in zip(some, whole, strict=True):
                base = group[0][1].start
                for number, want in group:
                    out[number].append(data if len(group) == 1 else data[want.start - base : want.stop - base])
        return [pieces[0] if len(pieces) == 1 else b"".join(pieces) for pieces in out]

    def _whole(self, wants: list[Want]) -> list[bytes]:
        """Every byte of the ranges. A reply may be shorter than what was asked for; the rest is asked for again."""
        got = [b""] * len(wants)
        missing = list(range(len(wants)))
        while missing:
            rest = [Want(wants[i].name, wants[i].start + len(got[i]), wants[i].stop) for i in missing]
            for i, want, piece in zip(list(missing), rest, self._transport.fetch(rest), strict=True):
                if piece is None:
                    raise RemoteError(f"{self.where(want.name)}: the file was there, and is there no more")
                self._believe(want.name, piece)
                if not piece.data:
                    size = self._known[want.name][0]
                    message = f"the server says that it has {size} bytes, and gives none at byte {want.start}"
                    raise RemoteError(f"{self.where(want.name)}: {message}; nothing can be said of this file")
                got[i] = got[i] + piece.data if got[i] else piece.data
            missing = [i for i in missing if len(got[i]) < wants[i].stop - wants[i].start]
        return got

    def _believe(self, name: str, piece: Piece) -> None:
        """Hold a reply against what was said before."""
        known = self._known.get(name)
        if known is None:
            if piece.total is not None:
                self._known[name] = (piece.total, piece.tag)
            return
        size, tag = known
        if piece.total is not None and piece.total != size:
            message = f"the server says {size} bytes and then {piece.total}: it contradicts itself, or the file changes"
            raise RemoteError(f"{self.where(name)}: {message}; nothing can be said of it as long as that is so")
        if tag is not None and piece.tag is not None and tag != piece.tag:
            raise RemoteError(f"{self.where(name)}: the file changed while it was read; look at it when it rests")
        if tag is None and piece.tag is not None:
            self._known[name] = (size, piece.tag)


def _adjacent(parts: list[tuple[int, Want]]) -> list[list[tuple[int, Want]]]:
    """Ranges of one file that touch, together up to the length of a part."""
    groups: list[list[tuple[int, Want]]] = []
    for number, want in parts:
        last = groups[-1] if groups else None
        if (
            last is not None
            and last[-1][1].name == want.name
            and last[-1][1].stop == want.start
            and want.stop - last[0][1].start <= PART_BYTES
        ):
            last.append((number, want))
        else:
            groups.append([(number, want)])
    return groups


class RemoteFile(io.RawIOBase):
    """One file behind a URL as a stream that is also read by place, from several threads. Small reads are kept."""

    span = 1 << 20
    """Bytes of each of several places that are worth one request."""

    def __init__(self, url: str) -> None:
        super().__init__()
        chain = split_zip(url)
        self._remote = Remote(chain.outer)
        self._at, self._base = 0, 0
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._lock = threading.Lock()
        size = self._remote.size()
        if size is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", self._remote.shown)
        self.size = size
        if size:
            self.pread(size - 1, 1)  # a file that ends before it is said to shows here
        if chain.inside:
            self._base, self.size = self._entry(chain.inside)
            self._blocks.clear()

    def _entry(self, name: str) -> tuple[int, int]:
        """Where an entry of the zip file that this is begins, and its size."""
        try:
            entry = zipfile.ZipFile(self).getinfo(name)
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, f"no entry {name} in the zip file", self._remote.shown) from None
        except OSError:
            raise
        except Exception as error:  # hostile input makes that module raise errors that have no common base
            raise RemoteError(f"{self._remote.shown}: no zip file that can be read: {error}") from None
        head = self.pread(entry.header_offset, 30)
        if len(head) != 30 or head[:4] != b"PK\x03\x04":
            raise RemoteError(f"{self._remote.shown}: the directory of the zip file points to no entry {name}")
        start = entry.header_offset + 30 + sum(struct.unpack("<HH", head[26:30]))
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 or entry.file_size != entry.compress_size:
            raise RemoteError(f"{self._remote.shown}: the entry {name} is compressed or encrypted; unpack the zip file")
        if start + entry.file_size > self.size:
            raise RemoteError(f"{self._remote.shown}: the entry {name} is longer than the zip file")
        return start, entry.file_size

    def pread(self, start: int, length: int) -> bytes:
        """``length`` bytes from ``start`` on, fewer only where the file ends before."""
        return self.pread_many([(start, length)])[0]

    def pread_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Several ranges (start, length) at the same time."""
        cut = [(start, max(0, min(length, self.size - start))) for start, length in ranges]
        small = sorted(
            {
                block
                for start, length in cut
                if 0 < length < _BLOCK
                for block in range((self._base + start) // _BLOCK, (self._base + start + length - 1) // _BLOCK + 1)
            }
        )
        blocks = self._fetch_blocks(small)
        large = [(self._base + start, length) for start, length in cut if length >= _BLOCK]
        read = iter(self._remote.read_many([("", start, length) for start, length in large]) if large else ())
        return [
            next(read) if length >= _BLOCK else self._cut(blocks, self._base + start, length) for start, length in cut
        ]

    def _fetch_blocks(self, numbers: list[int]) -> dict[int, bytes]:
        with self._lock:
            found = {number: self._blocks[number] for number in numbers if number in self._blocks}
        missing = [number for number in numbers if number not in found]
        if missing:
            found |= dict(
                zip(missing, self._remote.read_many([("", n * _BLOCK, _BLOCK) for n in missing]), strict=True)
            )
            with self._lock:
                self._blocks |= {number: found[number] for number in missing}
                while len(self._blocks) > _BLOCKS:
                    self._blocks.popitem(last=False)
        return found

    @staticmethod
    def _cut(blocks: dict[int, bytes], start: int, length: int) -> bytes:
        if not length:
            return b""
        first, stop = start // _BLOCK, (start + length - 1) // _BLOCK + 1
        data = b"".join(blocks[number] for number in range(first, stop))
        return data[start - first * _BLOCK : start - first * _BLOCK + length]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        if at < 0:
            raise OSError(errno.EINVAL, "a place before the first byte")
        self._at = at
        return at

    def readinto(self, buffer: Any) -> int:
        data = self.pread(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def open_place(place: Place) -> BinaryIO:
    """A file of this machine, raw, or one behind a URL. OSError where it cannot be opened."""
    place = localized(place)
    if isinstance(place, str) and is_url(place):
        return RemoteFile(place)  # type: ignore[return-value]
    return Path(place).open("rb", buffering=0)


def _transport(url: str) -> Transport:
    place = localized(url)
    if not isinstance(place, str):
        url = f"file://{place}"
    protocol = url.partition("::")[0].partition("://")[0].lower()
    try:
        import fsspec  # noqa: F401 - whether it is there

        if protocol in ("http", "https"):
            from trajconform.model.http import HttpTransport

            return HttpTransport(url)
        if protocol in ("s3", "s3a"):
            from trajconform.model.s3 import S3Transport

            return S3Transport(url)
        from trajconform.model.anywhere import AnyTransport

        return AnyTransport(url)
    except ImportError as error:
        missing = (error.name or "fsspec").partition(".")[0]
        if missing in ("fsspec", "s3fs", "aiohttp", "aiobotocore", "botocore"):
            message = f"URLs need the package {missing}; install it with: pip install 'trajconform[remote]'"
        else:
            message = f"{protocol}:// needs a package that is not installed: {redacted(str(error))}"
        raise TrajconformError(f"{redacted(url)}: {message}") from None
