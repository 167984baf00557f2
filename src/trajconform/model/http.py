"""Files of a web server: ranges, and the pages on which it lists its folders."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from html.parser import HTMLParser
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

import aiohttp
import fsspec
import yarl
from fsspec.asyn import sync

from trajconform.model.location import redacted
from trajconform.model.remote import ATTEMPTS, HEAD_BYTES, IN_FLIGHT, Entry, Passing, Piece, RemoteError, Want, pause

_PAGE_BYTES = 16 << 20
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=60)
"""A server may be slow for as long as something comes."""
_GONE = (404, 410)
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_NO_RANGES = (
    "the server does not serve ranges of a file (it answered 200, the whole file, to a request for bytes {0} to {1}); "
    "download the file and look at the copy, or put it on a server that does"
)

Out = TypeVar("Out")


class HttpTransport:
    """A `Transport` over HTTP. The session, with proxies, netrc and what is configured for fsspec, is fsspec's."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._base, self._parts = url, parts
        self._shown = redacted(url)
        configured = dict(fsspec.config.conf.get(parts.scheme, {}).get("client_kwargs", {}))
        self._fs: Any = fsspec.filesystem(parts.scheme, client_kwargs={"trust_env": True, **configured})
        self._lists: bool | None = None

    def _url(self, name: str, slash: bool = False) -> str:
        """The URL of a file below the root; a query stays behind it."""
        if not name and not slash:
            return self._base
        path = self._parts.path.rstrip("/") + (f"/{quote(name)}" if name else "") + ("/" if slash else "")
        return urlunsplit(self._parts._replace(path=path, fragment=""))

    def _where(self, name: str) -> str:
        return redacted(self._url(name))

    def _run(self, jobs: Sequence[Callable[[], Awaitable[Out]]]) -> list[Out]:
        """Do some things at the same time, in fsspec's own thread; each again when its fault is a passing one."""

        async def one(gate: asyncio.Semaphore, job: Callable[[], Awaitable[Out]]) -> Out:
            async with gate:
                for attempt in range(1, ATTEMPTS):
                    try:
                        return await job()
                    except Passing as fault:
                        await asyncio.sleep(pause(attempt, fault))
                return await job()

        async def everything() -> list[Out]:
            gate = asyncio.Semaphore(IN_FLIGHT)
            tasks = [asyncio.ensure_future(one(gate, job)) for job in jobs]
            try:
                return list(await asyncio.gather(*tasks))
            except BaseException:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                raise

        found: list[Out] = sync(self._fs.loop, everything)
        return found

    async def _request(
        self, method: str, url: str, headers: dict[str, str], use: Callable[[aiohttp.ClientResponse], Awaitable[Out]]
    ) -> Out:
        """What a function makes of the reply. Faults of the connection are passing ones."""
        where = redacted(url)
        options = dict(self._fs.kwargs)
        options["headers"] = {**options.get("headers", {}), **headers, "Accept-Encoding": "identity"}
        try:
            session = await self._fs.set_session()
            request = session.request(
                method, yarl.URL(url, encoded=True), allow_redirects=True, timeout=_TIMEOUT, **options
            )
            async with request as response:
                self._refused(response, where)
                return await use(response)
        except RemoteError:
            raise
        except aiohttp.TooManyRedirects:
            raise RemoteError(f"{where}: the server redirects round in a circle") from None
        except (aiohttp.InvalidURL, ValueError):
            raise RemoteError(f"{where}: not a URL that can be asked for") from None
        except (TimeoutError, aiohttp.ServerTimeoutError):
            raise Passing(f"{where}: the server stopped answering") from None
        except aiohttp.ClientConnectorCertificateError:
            raise RemoteError(f"{where}: the certificate of the server is not one that is trusted here") from None
        except aiohttp.ClientConnectorError as error:
            reason = error.os_error.strerror or "no such server"
            raise Passing(f"{where}: the server cannot be reached: {reason}") from None
        except (aiohttp.ClientError, ConnectionError) as error:
            message = f"the connection broke off ({type(error).__name__}) at each of {ATTEMPTS} attempts"
            raise Passing(f"{where}: {message}") from None

    def _refused(self, response: aiohttp.ClientResponse, where: str) -> None:
        status = response.status
        if status in (401, 403, 407):
            message = "credentials come from the URL or from ~/.netrc; a signed URL may have expired"
            raise RemoteError(f"{where}: the server refuses access ({status}); {message}")
        if status == 429 or status >= 500:
            asked = response.headers.get("Retry-After", "")
            wait = float(asked) if asked.isdigit() else None
            raise Passing(f"{where}: the server answers {status} at each of {ATTEMPTS} attempts", wait)
        if status not in (200, 206, 416, *_GONE):
            raise RemoteError(f"{where}: the server answers {status}, which is neither the file nor a word about it")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            message = "the server compresses what it sends although it was asked not to"
            raise RemoteError(f"{where}: {message}; ranges of such a file mean nothing")

    # -- ranges --------------------------------------------------------------------------------------------------

    def fetch(self, wants: Sequence[Want]) -> list[Piece | None]:
        return self._run([lambda want=want: self._range(want) for want in wants])  # type: ignore[misc]

    async def _range(self, want: Want) -> Piece | None:
        where = self._where(want.name)

        async def use(response: aiohttp.ClientResponse) -> Piece | None:
            if response.status in _GONE:
                return None
            tag = response.headers.get("ETag")
            tag = None if tag is None or tag.startswith("W/") else tag
            if response.status == 416:
                told = re.fullmatch(r"bytes \*/(\d+)", response.headers.get("Content-Range", ""))
                if want.start == 0 and not told:
                    return Piece(b"", 0, tag)  # only an empty file has no first byte
                return Piece(b"", int(told[1]) if told else None, tag)
            if response.status == 200:
                return await self._whole(response, want, where, tag)
            told = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if not told:
                raise RemoteError(f"{where}: the server sends a range and does not say which")
            first, last = int(told[1]), int(told[2])
            if first != want.start or not first <= last < want.stop:
                asked = f"bytes {want.start} to {want.stop - 1}"
                raise RemoteError(f"{where}: {asked} were asked for, the server sends {first} to {last}")
            data = await _up_to(response, last - first + 1)
            if len(data) < last - first + 1:
                raise Passing(f"{where}: the reply ended early at each of {ATTEMPTS} attempts")
            if len(data) > last - first + 1:
                raise RemoteError(f"{where}: the server sends more bytes than it says it does")
            total = None if told[3] == "*" else int(told[3])
            if total is not None and last >= total:
                raise RemoteError(f"{where}: the server sends bytes up to {last} of a file of {total}")
            return Piece(data, total, tag)

        headers = {"Range": f"bytes={want.start}-{want.stop - 1}"}
        return await self._request("GET", self._url(want.name), headers, use)

    async def _whole(self, response: aiohttp.ClientResponse, want: Want, where: str, tag: str | None) -> Piece:
        """A whole file where a range was asked for: taken if that is no more than was asked for."""
        length = response.content_length
        refusal = RemoteError(f"{where}: {_NO_RANGES.format(want.start, want.stop - 1)}")
        if want.start or (length is not None and length > want.stop):
            response.close()
            raise refusal
        data = await _up_to(response, want.stop)
        if len(data) > want.stop:
            raise refusal
        return Piece(data, len(data), tag)

    # -- names ---------------------------------------------------------------------------------------------------

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        return self._run([lambda name=name: self._size(name) for name in names])  # type: ignore[misc]

    async def _size(self, name: str) -> int | None:
        async def use(response: aiohttp.ClientResponse) -> int | None:
            if response.status in _GONE:
                return None
            length = response.headers.get("Content-Length", "")
            if response.status != 200 or not (length.isascii() and length.isdigit()):
                raise RemoteError("no size")
            return int(length)

        try:
            return await self._request("HEAD", self._url(name), {}, use)
        except Passing:
            raise
        except RemoteError:  # not every server answers HEAD, and a URL may be signed for GET alone
            piece = await self._range(Want(name, 0, 1))
            if piece is None:
                return None
            if piece.total is None:
                raise RemoteError(f"{self._where(name)}: the server does not say how long the file is") from None
            return piece.total

    def entries(self, folder: str) -> list[Entry]:
        if self._lists is None:
            self._lists = self._page("") is not None
        found = self._page(folder) if self._lists else None
        if not self._lists:
            message = "the server does not list what is in the folder"
            raise RemoteError(
                f"{self._shown}: {message}; pack the record into one file (.mrec.zip), which needs no list"
            )
        return found or []

    def _page(self, folder: str) -> list[Entry] | None:
        return self._run([lambda: self._listed(folder)])[0]

    async def _listed(self, folder: str) -> list[Entry] | None:
        """The entries that the page of a folder links to, None where the server has no such page."""
        url = self._url(folder, slash=True)

        async def use(response: aiohttp.ClientResponse) -> list[Entry] | None:
            if response.status != 200 or response.content_type != "text/html":
                return None
            data = await _up_to(response, _PAGE_BYTES)
            if len(data) > _PAGE_BYTES:
                raise RemoteError(f"{redacted(url)}: the list of the folder has more than {_PAGE_BYTES} bytes")
            links = _Links()
            links.feed(data.decode("utf-8", "replace"))
            return _below(links.found, str(response.url))

        return await self._request("GET", url, {}, use)

    def is_folder(self) -> bool:
        return self._run([self._leads_to_a_folder])[0]

    async def _leads_to_a_folder(self) -> bool:
        """Where there is a node, or where the server leads to an address that ends with a slash."""
        if await self._range(Want("zarr.json", 0, HEAD_BYTES)) is not None:
            return True

        async def use(response: aiohttp.ClientResponse) -> bool:
            return response.status == 200 and response.url.path.endswith("/")

        try:
            return await self._request("HEAD", self._base, {}, use)
        except Passing:
            raise
        except RemoteError:
            return False


async def _up_to(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body, one byte more than ``most`` where it has more; the connection is then given up."""
    pieces: list[bytes] = []
    left = most + 1
    while left > 0:
        piece = await response.content.read(min(left, 1 << 20))
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    if left <= 0:
        response.close()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class _Links(HTMLParser):
    """The targets of the links on a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for key, value in attrs if key == "href" and value]


def _below(links: list[str], page: str) -> list[Entry]:
    """The links that lead to something directly below the page."""
    own = urlsplit(page)
    base = unquote(own.path if own.path.endswith("/") else own.path.rpartition("/")[0] + "/")
    out: dict[str, Entry] = {}
    for link in links:
        try:
            there = urlsplit(urljoin(page, link))
        except ValueError:
            continue
        path = unquote(there.path)
        if there.netloc != own.netloc or not path.startswith(base) or (there.query and there.query != own.query):
            continue
        name, slash, rest = path[len(base) :].partition("/")
        if name not in ("", ".", "..") and not rest:
            out[name] = Entry(name, bool(slash))
    return list(out.values())
