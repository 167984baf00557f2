"""Magic, version, and whether the header is there."""

from __future__ import annotations

from collections.abc import Iterator

from trajconform.otj.book import Finding, rule
from trajconform.otj.format import FIXED, MAGIC, VERSION
from trajconform.otj.view import FileView


@rule(("OTJ-HEADER-01", "store", "MUST"), ("OTJ-HEADER-02", "reader", "MUST"))
def magic(view: FileView) -> Iterator[Finding]:
    """A foreign file."""
    if view.foreign:
        yield Finding(f"the file starts with {view.fixed[:8]!r}, an otj file with {MAGIC!r}", 0)


@rule(("OTJ-HEADER-03", "store", "MUST"), ("OTJ-HEADER-04", "reader", "MUST"))
def version(view: FileView) -> Iterator[Finding]:
    """A version that nobody has specified."""
    if view.version not in (None, VERSION):
        yield Finding(f"format version {view.version}; the version specified is {VERSION}", 8)


@rule(("OTJ-HEADER-10", "store", "MUST"), ("OTJ-HEADER-12", "reader", "MUST"))
def complete(view: FileView) -> Iterator[Finding]:
    """A file that ends inside its header."""
    if not view.known:
        return
    if view.length < FIXED:
        yield Finding(f"the file ends after {view.length} bytes, inside the header, whose fixed part is {FIXED}", 0)
    elif view.layout is not None and view.length < view.layout.header < 2**64:
        yield Finding(
            f"{view.layout.particles} particles in {view.layout.precision} precision make a header of "
            f"{view.layout.header} bytes, the file has {view.length}",
            16,
        )


@rule(("OTJ-HEADER-10", "store", "MUST"), ("OTJ-HEADER-13", "reader", "MUST"))
def representable(view: FileView) -> Iterator[Finding]:
    """A count so large that 64-bit arithmetic would wrap around."""
    if view.layout is not None and view.layout.header >= 2**64:
        yield Finding(
            f"{view.layout.particles} particles make a header of {view.layout.header} bytes, more than 64 bits can "
            f"count; the file has {view.length}",
            16,
        )
