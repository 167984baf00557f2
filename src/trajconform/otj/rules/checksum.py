"""Checksums of header and frames."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trajconform.otj.book import Finding, rule
from trajconform.otj.view import FileView, FrameBatch


@rule(("OTJ-SUM-02", "store", "MUST"), ("OTJ-SUM-04", "reader", "MUST"), stage="index")
def header(view: FileView) -> Iterator[Finding]:
    """A header that is not what its checksum was formed over."""
    found = view.header
    if found is not None and found.stored_checksum != found.computed_checksum:
        stored, computed = found.stored_checksum, found.computed_checksum
        message = f"the header's checksum is {stored:016x}, that of its bytes is {computed:016x}"
        yield Finding(message, found.layout.header - 8)


@rule(("OTJ-SUM-03", "store", "MUST"), ("OTJ-SUM-05", "reader", "MUST NOT"), stage="data")
def frame(batch: FrameBatch) -> Iterator[Finding]:
    """Frames that are not what their checksums were formed over."""
    for row in np.flatnonzero(~batch.sound).tolist():
        stored, computed = int(batch.stored_checksums[row]), int(batch.computed_checksums[row])
        yield Finding(
            f"the frame's checksum is {stored:016x}, that of its bytes is {computed:016x}",
            batch.offset(row) + batch.header.layout.frame - 8,
            batch.first + row,
        )
