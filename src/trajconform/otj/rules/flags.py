"""Reserved flags."""

from __future__ import annotations

from collections.abc import Iterator

from trajconform.otj.book import Finding, rule
from trajconform.otj.format import RESERVED
from trajconform.otj.view import FileView


@rule(("OTJ-FLAGS-03", "store", "MUST NOT"), ("OTJ-FLAGS-04", "reader", "MUST"))
def reserved(view: FileView) -> Iterator[Finding]:
    """A bit that has no meaning yet."""
    if view.flags is not None and view.flags & RESERVED:
        bits = ", ".join(str(bit) for bit in range(2, 32) if view.flags >> bit & 1)
        yield Finding(f"flags 0x{view.flags:08x} set the reserved bit {bits}; only bits 0 and 1 have a meaning", 12)
