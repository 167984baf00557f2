"""How the time of a check grows: slopes of log(seconds) against log(size), 1.0 where time grows in proportion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import mrec, otj
from benchmarks.pairs import seconds
from trajconform.mrec.checker import check_mrec


@dataclass(frozen=True)
class Growth:
    """Median seconds at growing sizes. ``slope``: of the line through their logarithms; its aim is 1.0 +- 0.1."""

    name: str
    against: str
    sizes: tuple[int, ...]
    times: tuple[float, ...]
    slope: float

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def measured(name: str, against: str, sizes: tuple[int, ...], make: Callable[[int], Callable[[], object]]) -> Growth:
    """Make what has each size, time it, three times each after one that does not count."""
    times = []
    for size in sizes:
        work = make(size)
        work()
        times.append(median(seconds(work) for _ in range(3)))
    slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    return Growth(name, against, sizes, tuple(times), slope)


def growths(folder: Path, quick: bool = False) -> Iterator[Growth]:
    """Checks of both formats against frames, and of mrec against atoms."""
    store, file = folder / "growth.mrec", folder / "growth.otj"
    small = 200 if quick else 2000

    def of_mrec(atoms: int, frames: int) -> Callable[[], object]:
        mrec.write_ours(mrec.Shape(atoms, frames, ragged=True), store)
        return partial(check_mrec, store)

    def of_otj(frames: int) -> Callable[[], object]:
        otj.write(file, frames, 100)
        return partial(otj.checked, file, 1)

    frames = tuple(small * 2**k for k in range(5))
    yield measured("mrec check, 100 atoms, ragged", "frames", frames, partial(of_mrec, 100))
    atoms = tuple((100 if quick else 1000) * 2**k for k in range(5))
    yield measured("mrec check, 50 frames, ragged", "atoms", atoms, lambda n: of_mrec(n, 50))
    yield measured("otj check, 100 particles", "frames", tuple(n * 5 for n in frames), of_otj)
