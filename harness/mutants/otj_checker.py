"""Checkers of otj that lack one rule each, and rules that look at too little.

Of the clauses on files only those have a rule of their own that bytes can break: the place of a field is what the rules
of magic, version, flags, length and checksum show to be wrong.
"""

from __future__ import annotations

from functools import partial

from trajconform.harness import mutants
from trajconform.harness.mutants import without

changed = partial(mutants.changed, role="store")

for _clause in (
    "OTJ-HEADER-01", "OTJ-HEADER-03", "OTJ-HEADER-10", "OTJ-FLAGS-03", "OTJ-FRAME-07", "OTJ-FRAME-08", "OTJ-SUM-02", "OTJ-SUM-03",
):  # fmt: skip
    without(_clause, role="store", mistake=f"never reports {_clause}")

changed("magic-of-seven-bytes", "OTJ-HEADER-01", "looks at the first seven bytes of the magic",
        "otj.view:FileView.foreign", "self.fixed[:8] != MAGIC[: len(self.fixed)]", "self.fixed[:7] != MAGIC[: min(len(self.fixed), 7)]")  # fmt: skip
changed("times-roughly", "OTJ-FRAME-08", "takes a time that is nearly right",
        "otj.rules.frame:rounding", "apart <= _ROUNDING", "1 < apart <= _ROUNDING")  # fmt: skip
changed("first-frames-checked", "OTJ-SUM-03", "looks at the checksum of the first frame alone",
        "otj.rules.checksum:frame", "for row in np.flatnonzero(~batch.sound).tolist():", "for row in np.flatnonzero(~batch.sound[:1]).tolist():")  # fmt: skip
changed("reserved-bits-up-to-16", "OTJ-FLAGS-03", "looks at the lower half of the flags",
        "otj.rules.flags:reserved", "view.flags & RESERVED:", "view.flags & RESERVED & 0xFFFF:")  # fmt: skip
