"""Rules of the topic ``layout``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from trajconform.model.errors import Refused, Violation
from trajconform.mrec.book import each, rules, seen
from trajconform.mrec.declaration import RESERVED_BLOCKS
from trajconform.mrec.store import child
from trajconform.mrec.view import View, is_int


@rules("MREC-LAYOUT-01", role="store")
@rules("MREC-LAYOUT-08", role="reader")
def there_is_a_trajectory(view: View) -> Iterator[Violation]:
    yield from seen(view.attributes)


@rules("MREC-LAYOUT-07", role="store")
def blocks_are_groups(view: View) -> Iterator[Violation]:
    def look(name: str) -> Iterator[Violation]:
        if name not in RESERVED_BLOCKS and view.has(child("trajectory", name)):
            message = f"the declared block {name} is an array; a block is a group with an array for each column"
            yield Violation("MREC-LAYOUT-07", f"trajectory/{name}", message)

    yield from each(view.declaration.blocks, look)


@rules("MREC-LAYOUT-03", role="store")
def every_array_is_sharded(view: View) -> Iterator[Violation]:
    def look(node: str) -> Iterator[Violation]:
        codecs: Any = (view.store.document(node) or {}).get("codecs")
        names = [c.get("name") if isinstance(c, dict) else c for c in codecs] if isinstance(codecs, list) else []
        if "sharding_indexed" not in names:
            yield Violation(
                "MREC-LAYOUT-03", node, f"its codecs are {names}; under trajectory they are sharding_indexed"
            )

    yield from each(_needed(view), look)


@rules("MREC-LAYOUT-02", "MREC-META-02", role="store", stage="index")
def rows_for_every_frame(view: View) -> Iterator[Violation]:
    """Arrays that no reader needs are to be whole too: one beside a progression, one under an undeclared key."""

    def look(node: str) -> Iterator[Violation]:
        shape = (view.store.document(node) or {}).get("shape")
        if isinstance(shape, list) and (not shape or (is_int(shape[0]) and shape[0] < view.nstep)):
            message = f"it has the shape {shape}; it has one row for each of the {view.nstep} frames"
            yield Violation("MREC-LAYOUT-02", node, message)
        if node.startswith("trajectory/meta/") and "meta_dtype" not in view.array(node).attributes:
            yield Violation("MREC-META-02", node, "the attribute meta_dtype is missing")

    spare = [f"trajectory/{n}" for n in ("step", "time") if f"{n}_progression" in view.attributes]
    spare += [f"trajectory/meta/{k}" for k in view.store.children("trajectory/meta") if k not in view.declaration.meta]
    for node in spare:
        # What cannot be looked at here is unknown content, and nobody needs it.
        with suppress(Refused):
            if view.has(node):
                yield from look(node)


def _needed(view: View) -> Iterator[str]:
    """Arrays that the layout knows; what is not declared is unknown content and nobody's business."""
    nodes = [f"trajectory/{n}" for n in ("step", "time", "box/vectors", "box/step_index", "box/origin", "box/boundary")]
    nodes += [child("trajectory/meta", key) for key in view.declaration.meta]
    for block, entry in view.declaration.blocks.items():
        group = child("trajectory", block)
        nodes += [f"{group}/step_index", f"{group}/offset", *(child(group, column) for column in entry.columns)]
        nodes += [
            child(f"{group}/_validity", column) for column, declared in entry.columns.items() if declared.nullable
        ]
    for node in nodes:
        # What is wrong with a node is for the rule of what needs it.
        with suppress(Refused):
            if view.has(node):
                yield node
