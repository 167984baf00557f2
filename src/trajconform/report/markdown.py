"""Pieces of Markdown for pull requests and job summaries, safe with whatever a driver says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trajconform.report.console import shown

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~$&@]|:(?! |$))")


def words(text: str, most: int = 300) -> str:
    """Text that is shown as it is: no markup, no HTML, no mention of a person, one line."""
    flat = " ".join(shown(text, most).split())
    # A reference instead of a backslash where the host reads on behind it: an @ still calls a person, a # an issue.
    return _SPECIAL.sub(lambda found: f"&#{ord(found[1])};" if found[1] in "<>&@#|:" else f"\\{found[1]}", flat)


def code(text: str) -> str:
    """An identifier in a code span that nothing in it can end, also inside a table."""
    flat = " ".join(shown(text, 300).split()).replace("|", "¦")
    fence = "`" * (max((len(run) for run in re.findall("`+", flat)), default=0) + 1)
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{space}{flat}{space}{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Lines of a table whose cells are Markdown already; ``right`` are the columns set to the right."""
    to_right = set(right)
    lines = [
        f"| {' | '.join(head)} |",
        "|" + "|".join("---:" if i in to_right else "---" for i in range(len(head))) + "|",
    ]
    return lines + [f"| {' | '.join(row)} |" for row in rows]
