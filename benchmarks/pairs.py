"""Two ways to do the same work, timed in the same run by turns: what is quoted is a ratio, for absolute times drift."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Pair:
    """How fast the kit does something, as a multiple of how fast a peer does the same."""

    name: str
    peer: str
    ratio: float
    """Median over the rounds of the peer's seconds by the kit's: above 1 the kit is faster."""
    needed: float | None
    ours: float
    """Median of the kit's seconds."""
    theirs: float
    rounds: int
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the ratio is at least what is needed, None where nothing is."""
        return None if self.needed is None else self.ratio >= self.needed

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "holds": self.holds}


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock time of one call, garbage collected before it."""
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(
    name: str,
    ours: Callable[[], object],
    peer: str,
    theirs: Callable[[], object],
    needed: float | None = None,
    rounds: int = 5,
    note: str = "",
) -> Pair:
    """Time two calls by turns, the order changing from round to round, after one of each that does not count."""
    ours(), theirs()
    times: list[tuple[float, float]] = []
    for number in range(rounds):
        if number % 2:
            other = seconds(theirs)
            times.append((seconds(ours), other))
        else:
            own = seconds(ours)
            times.append((own, seconds(theirs)))
    ratio = statistics.median(theirs / ours for ours, theirs in times)
    own, other = (statistics.median(side) for side in zip(*times, strict=True))
    return Pair(name, peer, ratio, needed, own, other, rounds, note)
