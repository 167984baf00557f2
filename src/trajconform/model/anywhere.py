"""Any place that fsspec knows and that has no transport of its own: ``memory://``, ``gs://``, ``tar://...::...``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import fsspec

from trajconform.model.errors import TrajconformError
from trajconform.model.location import redacted
from trajconform.model.remote import Entry, Passing, Piece, RemoteError, Want, again

Out = TypeVar("Out")


class AnyTransport:
    """A `Transport` by ``info``, ``cat_file`` and ``ls`` of a file system."""

    def __init__(self, url: str) -> None:
        self._shown = redacted(url)
        try:
            self._fs, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except ValueError as error:
            raise TrajconformError(f"{self._shown}: {redacted(str(error))}") from None
        self._root = str(root).rstrip("/")

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _ask(self, what: str, call: Callable[[], Out]) -> Out | None:
        """A reply, None where there is nothing of that name."""

        def once() -> Out | None:
            try:
                return call()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return None
            except (ConnectionError, TimeoutError) as error:
                raise Passing(f"{self._shown}: {what}: {type(error).__name__}") from None
            except RemoteError:
                raise
            except Exception as error:  # every file system has its own
                reason = redacted(str(error))[:200]
                raise RemoteError(f"{self._shown}: {what}: {type(error).__name__}: {reason}") from None

        return again(once)

    def fetch(self, wants: Sequence[Want]) -> list[Piece | None]:
        out: list[Piece | None] = []
        for want in wants:
            path = self._path(want.name)
            info = self._ask(want.name, lambda path=path: self._fs.info(path))  # type: ignore[misc]
            if info is None or info.get("type") != "file":
                out.append(None)
                continue
            total = int(info["size"])
            stop = min(want.stop, total)
            data = b""
            if want.start < stop:
                read = lambda path=path, want=want, stop=stop: self._fs.cat_file(path, want.start, stop)  # noqa: E731
                data = bytes(self._ask(want.name, read) or b"")
            if len(data) > max(0, stop - want.start):
                raise RemoteError(f"{self._shown}: {want.name}: more bytes came than were asked for")
            out.append(Piece(data, total))
        return out

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        found = [self._ask(name, lambda name=name: self._fs.info(self._path(name))) for name in names]  # type: ignore[misc]
        return [int(info["size"]) if info and info.get("type") == "file" else None for info in found]

    def entries(self, folder: str) -> list[Entry]:
        listed = self._ask(folder or "the folder", lambda: self._fs.ls(self._path(folder), detail=True)) or []
        out = []
        for info in listed:
            name = str(info["name"]).rstrip("/").rpartition("/")[2]
            if name:
                out.append(Entry(name, info.get("type") == "directory", info.get("size")))
        return out

    def is_folder(self) -> bool:
        return bool(self._ask("the folder", lambda: self._fs.isdir(self._root)))
