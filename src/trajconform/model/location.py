"""Where a file is: a path of this machine or a URL, and how it is written without what is secret in it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trajconform.model.errors import TrajconformError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+(://|::)")
_USER = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+://)[^/?#]*@")
_QUERY = re.compile(r"(https?://[^?#'\"]*)\?[^\s'\"]*", re.IGNORECASE)

Place = str | os.PathLike[str]


def is_url(place: Place) -> bool:
    """Whether a place is a URL (``s3://...``, ``zip::https://...``), not a path of this machine."""
    return isinstance(place, str) and _URL.match(place) is not None


def redacted(text: str) -> str:
    """A URL, or a message with URLs in it, without user and password and without query strings, which may be signed."""
    return _QUERY.sub(r"\1?***", _USER.sub(r"\1***@", text))


def shown(place: Place) -> str:
    """A place as messages and reports name it."""
    return redacted(place) if isinstance(place, str) and is_url(place) else os.fspath(place)


def localized(place: Place) -> Place:
    """A ``file://`` URL as the path that it names; whatever else as it is."""
    if not isinstance(place, str) or not place.lower().startswith("file://"):
        return place
    parts = urlsplit(place)
    if parts.netloc not in ("", "localhost"):
        raise TrajconformError(f"{shown(place)}: a file:// URL names a path of this machine; write file:///path")
    return Path(unquote(parts.path))


def file_name(place: Place) -> str:
    """The last part of a place by which its format is guessed: no query, no slash at the end."""
    if not isinstance(place, str) or not is_url(place):
        return os.path.basename(os.path.normpath(place))  # noqa: PTH119 - a name, nothing is looked at
    chain = split_zip(place)
    path = chain.inside or chain.outer
    if not chain.inside and chain.outer.lower().startswith(("http://", "https://")):
        path = unquote(urlsplit(chain.outer).path)
    return path.rstrip("/").rpartition("/")[2]


@dataclass(frozen=True)
class ZipChain:
    """A URL taken apart: ``zip://inside::outer`` names something in a zip file, ``zip::outer`` the zip file itself."""

    outer: str
    inside: str = ""
    zipped: bool = False


def split_zip(url: str) -> ZipChain:
    """The parts of a URL. `TrajconformError` where a zip file is said to be in a zip file."""
    first, _, outer = url.partition("::")
    if not outer or not re.match(r"zip(://|$)", first, re.IGNORECASE):
        return ZipChain(url)
    if re.match(r"zip(://|::)", outer, re.IGNORECASE):
        raise TrajconformError(f"{shown(url)}: a zip file in a zip file is not looked into; unpack the outer one")
    return ZipChain(outer, first[6:].strip("/"), True)
