"""Rules of the topic ``layout``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trajconform.model.errors import Violation
from trajconform.mrec.book import each, rules, seen
from trajconform.mrec.view import View


@rules("MREC-LAYOUT-01", role="store")
@rules("MREC-LAYOUT-08", role="reader")
def there_is_a_trajectory(view: View) -> Iterator[Violation]:
    yield from seen(view.attributes)


@rules("MREC-LAYOUT-03", role="store")
def every_array_is_sharded(view: View) -> Iterator[Violation]:
    def look(node: str) -> Iterator[Violation]:
        if not view.array(node).sharded:
            codecs: Any = view.array(node).codecs
            names = [c.get("name") if isinstance(c, dict) else c for c in codecs]
            yield Violation(
                "MREC-LAYOUT-03", node, f"its codecs are {names}; under trajectory they are sharding_indexed"
            )

    yield from each(_needed(view), look)


def _needed(view: View) -> Iterator[str]:
    """Arrays that the layout knows; what is not declared is unknown content and nobody's business."""
    for name in ("step", "time", "box/vectors", "box/step_index", "box/origin", "box/boundary"):
        if view.has(f"trajectory/{name}"):
            yield f"trajectory/{name}"
    for key in view.declaration.meta:
        if view.has(f"trajectory/meta/{key}"):
            yield f"trajectory/meta/{key}"
    for block, entry in view.declaration.blocks.items():
        names = ["step_index", "offset", *entry.columns]
        names += [f"_validity/{c}" for c, column in entry.columns.items() if column.nullable]
        for name in names:
            if view.has(f"trajectory/{block}/{name}"):
                yield f"trajectory/{block}/{name}"
