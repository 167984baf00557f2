"""How a check goes about a large file: what of it is looked at, with how much memory and how many threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

MIB = 1 << 20

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all, from the thread that iterates."""

In = TypeVar("In")
Out = TypeVar("Out")


@dataclass(frozen=True)
class Work:
    """What a check does. The findings do not depend on ``memory`` and ``jobs``.

    ``quick``: structure, metadata and what locates frames, no rows. ``frames``: only these, half-open; None for all.
    ``memory``: bytes that may be held of the file at a time, decoded. ``jobs``: threads.
    """

    quick: bool = False
    frames: tuple[int, int] | None = None
    memory: int = 256 * MIB
    jobs: int = 1

    def within(self, count: int) -> tuple[int, int]:
        """The frames of ``count`` that are looked at, first and stop."""
        if self.frames is None:
            return 0, count
        first, stop = (min(max(0, bound), count) for bound in self.frames)
        return first, max(first, stop)


def in_order(function: Callable[[In], Out], tasks: Iterable[In], jobs: int) -> Iterator[Out]:
    """Results of a function in the order of its tasks, computed by ``jobs`` threads at most two tasks a thread ahead.

    With one job it is `map`. Whoever stops iterating stops the rest: what has not begun never does.
    """
    if jobs <= 1:
        yield from map(function, tasks)
        return
    with ThreadPoolExecutor(jobs, thread_name_prefix="check") as pool:
        waiting: deque[Future[Out]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(function, task))
                if len(waiting) >= 2 * jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
