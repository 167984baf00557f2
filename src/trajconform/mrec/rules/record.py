"""Rules of the topic ``record``."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from trajconform.model.errors import Violation
from trajconform.mrec.book import each, guarded, rules, seen
from trajconform.mrec.store import leaves_record
from trajconform.mrec.view import NEWEST_RECORD, View, is_int, short


@rules("MREC-RECORD-01", role="store")
def root_is_a_group(view: View) -> Iterator[Violation]:
    if view.store.group("") is None:
        yield Violation("MREC-RECORD-01", "", "there is no Zarr V3 group at the top of the record")


@rules("MREC-RECORD-14", role="store")
@rules("MREC-RECORD-03", role="reader")
def version_is_known(view: View) -> Iterator[Violation]:
    meta = view.store.group("meta")
    if meta is None or "molrec_version" not in meta:
        return
    value = meta["molrec_version"]
    if not is_int(value) or not 1 <= value <= NEWEST_RECORD:
        message = f"molrec_version is {short(value)}; it must be a JSON integer from 1 to {NEWEST_RECORD}"
        yield Violation("MREC-RECORD-03", "meta", message)


@rules("MREC-RECORD-05", role="store")
def frame_shaped_sections(view: View) -> Iterator[Violation]:
    for section in ("system", "frame"):
        yield from of_section(lambda section=section: _section(view, section))  # type: ignore[misc]


def of_section(look: Callable[[], Iterator[Violation]]) -> Iterator[Violation]:
    """What a look into a section beside the trajectory finds. What cannot be read there breaks a clause on the section:
    a reader of the trajectory does not need it."""
    for violation in guarded(look):
        is_own = violation.clause.startswith(("MREC-RECORD-05", "MREC-SYSTEM"))
        yield violation if is_own else replace(violation, clause="MREC-RECORD-05", level="MUST")


def _section(view: View, section: str) -> Iterator[Violation]:
    if view.store.group(section) is not None:
        yield from each(view.store.children(section), lambda name: _block(view, section, name))


def _block(view: View, section: str, name: str) -> Iterator[Violation]:
    node = f"{section}/{name}"
    attributes = view.store.group(node)
    if attributes is None:
        return
    count: Any = attributes.get("count")
    if not is_int(count) or count < 0:
        yield Violation("MREC-RECORD-05", node, f"count is {short(count)}, not a JSON integer >= 0")
        return
    for folder in (node, f"{node}/_validity"):
        for column in view.store.children(folder):
            path = f"{folder}/{column}"
            if view.has(path) and view.array(path).shape[:1] != (count,):
                shape = list(view.array(path).shape)
                yield Violation("MREC-RECORD-05", path, f"it has the shape {shape}, the block has count {count}")


@rules("MREC-RECORD-07", "MREC-RECORD-08 MUST NOT", role="store")
def packed_entries(view: View) -> Iterator[Violation]:
    packed = view.packed
    if packed is None:
        return
    known: set[str] = set()
    for entry in packed.entries:
        name = entry.filename
        if leaves_record(name):
            message = "the entry's name is absolute or has .. in it; name it relative to the root of the record"
            yield Violation("MREC-RECORD-08", name, message, level="MUST NOT")
        elif "\\" in name:
            yield Violation("MREC-RECORD-07", name, "the entry's name has another separator than /")
        elif name.endswith("/"):
            yield Violation("MREC-RECORD-07", name, "an entry for a folder; a packed record has entries for files only")
        elif entry.compress_type != zipfile.ZIP_STORED:
            yield Violation("MREC-RECORD-07", name, "the entry is compressed; entries are stored")
        elif name in known:
            yield Violation("MREC-RECORD-07", name, "there are two entries of this name; a file has one")
        known.add(name)


@rules("MREC-RECORD-10 SHOULD NOT", "MREC-RECORD-11", "MREC-CODEC-13", "MREC-CODEC-16", role="reader")
def nodes_are_nodes(view: View) -> Iterator[Violation]:
    """Faults of metadata and links come up wherever a node is needed; this rule looks at what every reading needs."""
    yield from seen(view.store.group(""), view.store.group("meta"), view.attributes)


LOSSY = frozenset(
    f"{prefix}{name}"
    for prefix in ("", "numcodecs.")
    for name in (
        "astype",
        "bitround",
        "cast_value",
        "fixedscaleoffset",
        "quantize",
        "scale_offset",
        "zfp",
        "zfpy",
        "sz3",
    )
)
"""Codecs that do not hand back every value that they were given."""


@rules("MREC-CODEC-11", role="store", level="MUST NOT")
def codecs_lose_nothing(view: View) -> Iterator[Violation]:
    for section in view.store.children(""):
        for node in view.all_arrays(section):
            waiting: list[Any] = [(view.store.document(node) or {}).get("codecs")]
            while waiting:
                codec = waiting.pop()
                if isinstance(codec, list):
                    waiting += codec
                elif isinstance(codec, dict):
                    configuration = codec.get("configuration")
                    waiting += [codec.get("name"), *(configuration.values() if isinstance(configuration, dict) else ())]
                elif isinstance(codec, str) and codec in LOSSY:
                    message = f"the codec {codec} loses digits; store the array through one that does not"
                    yield Violation("MREC-CODEC-11", node, message, level="MUST NOT")
