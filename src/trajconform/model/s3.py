"""Files of an S3 store, through s3fs: credentials, region and endpoint by the chain that every tool of AWS follows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import fsspec
import s3fs  # noqa: F401 - whether it is there
from botocore.exceptions import NoCredentialsError
from fsspec.asyn import sync

from trajconform.model.location import redacted
from trajconform.model.remote import ATTEMPTS, IN_FLIGHT, Entry, Passing, Piece, RemoteError, Want, pause

_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_BROKEN = (
    "IncompleteReadError",
    "ResponseStreamingError",
    "ReadTimeoutError",
    "ClientPayloadError",
    "ServerTimeoutError",
)

Out = TypeVar("Out")


class S3Transport:
    """A `Transport` over the protocol of S3. Requests are repeated by s3fs, replies that break off by this class."""

    def __init__(self, url: str) -> None:
        self._shown = redacted(url)
        self._fs: Any = fsspec.filesystem("s3", use_listings_cache=False)
        self._root = str(self._fs._strip_protocol(url)).rstrip("/")

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _place(self, name: str) -> dict[str, str]:
        bucket, _, key = self._path(name).partition("/")
        return {"Bucket": bucket, "Key": key}

    def _where(self, name: str) -> str:
        return f"{self._shown.rstrip('/')}/{name}" if name else self._shown

    def _run(self, names: Sequence[str], job: Callable[[int], Awaitable[Out]]) -> list[Out | None]:
        """A reply for each name, at the same time; None where there is nothing of that name."""

        async def one(gate: asyncio.Semaphore, number: int) -> Out | None:
            async with gate:
                for attempt in range(1, ATTEMPTS):
                    try:
                        return await self._guarded(names[number], job(number))
                    except Passing as fault:
                        await asyncio.sleep(pause(attempt, fault))
                return await self._guarded(names[number], job(number))

        async def everything() -> list[Out | None]:
            gate = asyncio.Semaphore(IN_FLIGHT)
            tasks = [asyncio.ensure_future(one(gate, number)) for number in range(len(names))]
            try:
                return list(await asyncio.gather(*tasks))
            except BaseException:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                raise

        found: list[Out | None] = sync(self._fs.loop, everything)
        return found

    async def _guarded(self, name: str, reply: Awaitable[Out]) -> Out | None:
        where = self._where(name)
        try:
            return await reply
        except RemoteError:
            raise
        except FileNotFoundError:
            return None
        except PermissionError:
            message = (
                "access is refused (403), which an S3 store also answers for what is missing where it may not list"
            )
            raise RemoteError(
                f"{where}: {message}; see that AWS_PROFILE or the other usual settings are right"
            ) from None
        except NoCredentialsError:
            message = "no credentials are found; set AWS_PROFILE or the other usual settings"
            raise RemoteError(f"{where}: {message}, or FSSPEC_S3_ANON=true for what everybody may read") from None
        except (ConnectionError, TimeoutError) as error:
            raise Passing(f"{where}: the connection broke off ({type(error).__name__})") from None
        except Exception as error:  # botocore makes its classes at run time
            kind = type(error).__name__
            if kind in _BROKEN:
                raise Passing(f"{where}: the reply broke off ({kind}) at each of {ATTEMPTS} attempts") from None
            raise RemoteError(f"{where}: {kind}: {redacted(str(error))[:200]}") from None

    def fetch(self, wants: Sequence[Want]) -> list[Piece | None]:
        return self._run([want.name for want in wants], lambda number: self._range(wants[number]))

    async def _range(self, want: Want) -> Piece:
        where, asked = self._where(want.name), want.stop - want.start
        try:
            reply = await self._fs._call_s3(
                "get_object", **self._place(want.name), Range=f"bytes={want.start}-{want.stop - 1}"
            )
        except OSError as error:
            told = getattr(error.__cause__, "response", None) or {}
            if told.get("Error", {}).get("Code") in ("InvalidRange", "416"):
                actual = told["Error"].get("ActualObjectSize")
                return Piece(b"", int(actual) if actual is not None else 0 if want.start == 0 else None)
            raise
        body = reply["Body"]
        try:
            told = _RANGE.fullmatch(reply.get("ContentRange", ""))
            whole = None if told else reply.get("ContentLength")
            if told and (int(told[1]) != want.start or int(told[2]) >= want.stop):
                message = (
                    f"bytes {want.start} to {want.stop - 1} were asked for, the server sends {told[1]} to {told[2]}"
                )
                raise RemoteError(f"{where}: {message}")
            if not told and (want.start or whole is None or whole > want.stop):
                message = "the server does not serve ranges of a file; download the file and look at the copy"
                raise RemoteError(f"{where}: {message}")
            data = await _up_to(body, asked)
        finally:
            body.close()
        length = int(told[2]) - int(told[1]) + 1 if told else int(whole or 0)
        if len(data) > length:
            raise RemoteError(f"{where}: the server sends more bytes than it says it does")
        if len(data) < length:
            raise Passing(f"{where}: the reply ended early at each of {ATTEMPTS} attempts")
        return Piece(data, int(told[3]) if told else length, reply.get("ETag"))

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        async def size(number: int) -> int:
            reply = await self._fs._call_s3("head_object", **self._place(names[number]))
            return int(reply["ContentLength"])

        return self._run(names, size)

    def entries(self, folder: str) -> list[Entry]:
        async def listed(_: int) -> list[Entry]:
            found = await self._fs._ls(self._path(folder), detail=True, refresh=True)
            own = self._path(folder)
            return [
                Entry(info["name"].rpartition("/")[2], info["type"] == "directory", info.get("size"))
                for info in found
                if info["name"].rstrip("/") != own
            ]

        return self._run([folder], listed)[0] or []

    def is_folder(self) -> bool:
        return self.sizes(["zarr.json"])[0] is not None or bool(self.entries(""))


async def _up_to(body: Any, most: int) -> bytes:
    """The body, one byte more than ``most`` where it has more."""
    pieces: list[bytes] = []
    left = most + 1
    while left > 0:
        piece = await body.read(min(left, 1 << 20))
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
