"""A record behind a URL: a folder of files that are fetched by range, or a packed one."""

from __future__ import annotations

import errno
from collections import OrderedDict
from pathlib import Path

from trajconform.model.location import file_name, is_url, localized, split_zip
from trajconform.model.remote import HEAD_BYTES, Remote, RemoteFile
from trajconform.mrec.store import Files, PackedFiles, is_text

_HEADS = 512


def open_files(url: str) -> Files:
    """The files of the record at a URL. FileNotFoundError where there is none."""
    chain = split_zip(url)
    outer = localized(chain.outer)
    if chain.zipped or isinstance(outer, Path):
        source = outer if isinstance(outer, Path) else Path(outer) if not is_url(outer) else RemoteFile(str(outer))
        files = PackedFiles(source, chain.inside)
        if chain.inside and not files.names(""):
            files.close()
            raise FileNotFoundError(errno.ENOENT, "no such folder in the zip file", chain.inside)
        return files
    if not file_name(url).endswith(".zip"):
        remote = Remote(url)
        if remote.is_folder():
            return RemoteFiles(remote)
    return PackedFiles(RemoteFile(url))


class RemoteFiles:
    """A record as a folder behind a URL. Metadata is fetched together with its size and kept until it is parsed."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._heads: OrderedDict[str, bytes | None] = OrderedDict()

    def size(self, name: str) -> int | None:
        if not _can_be(name):
            return None
        if not name.endswith("zarr.json"):
            return self._remote.size(name)
        head = self._head(name)
        return None if head is None else len(head) if len(head) < HEAD_BYTES else self._remote.size(name)

    def read(self, name: str, start: int, length: int) -> bytes:
        if not _can_be(name):
            return b""
        head = self._heads.get(name)
        if head is not None and (start + length <= len(head) or len(head) < HEAD_BYTES):
            return head[start : start + length]
        return self._remote.read(name, start, length)

    def _head(self, name: str) -> bytes | None:
        if name not in self._heads:
            self.ahead([name])
        return self._heads[name]

    def ahead(self, names: list[str]) -> None:
        """Fetch metadata that will be asked for next, all of it at the same time."""
        new = [name for name in names if name not in self._heads and _can_be(name)]
        for name, head in zip(new, self._remote.heads(new) if new else (), strict=True):
            self._heads[name] = head
        while len(self._heads) > max(_HEADS, len(names)):
            self._heads.popitem(last=False)

    def names(self, folder: str) -> list[str]:
        if folder and not _can_be(folder):
            return []
        return sorted(entry.name for entry in self._remote.entries(folder) if is_text(entry.name))

    def close(self) -> None:
        self._heads.clear()


def _can_be(name: str) -> bool:
    """Whether a file can have this name; every other leads to where there is none, as in a folder."""
    return is_text(name) and "\0" not in name and not {"", ".", ".."} & set(name.split("/"))
