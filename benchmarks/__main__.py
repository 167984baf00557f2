"""``python -m benchmarks``: all pairs and growths, as a table of ratios and as JSON.

Examples::

    python -m benchmarks                      # everything; some minutes, on a machine that does nothing else
    python -m benchmarks --only otj --quick   # small files: shows that it runs, not how fast anything is
    python -m benchmarks --json ratios.json --plot growth.png
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

from benchmarks import growth, mrec, otj
from benchmarks.growth import Growth
from benchmarks.pairs import Pair


def main(argv: list[str] | None = None) -> int:
    """Exit status 0, or 1 where a ratio is below what is needed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=["mrec", "otj", "growth"], help="these alone (repeatable)")
    parser.add_argument("--quick", action="store_true", help="small files; the ratios mean little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the growth (needs matplotlib)")
    parser.add_argument("--folder", type=Path, help="where the files lie while they are timed (default: memory)")
    options = parser.parse_args(argv)
    chosen = options.only or ["mrec", "otj", "growth"]
    memory = Path("/dev/shm")
    home = options.folder or (memory if memory.is_dir() and os.access(memory, os.W_OK) else None)
    pairs: list[Pair] = []
    growths: list[Growth] = []
    with tempfile.TemporaryDirectory(prefix="trajconform-benchmarks-", dir=home) as name:
        folder = Path(name)
        print(f"{'ratio':>7} {'needed':>7}  {'ours, s':>9}  what, beside what", flush=True)
        for kind, source in (("otj", otj.pairs), ("mrec", mrec.pairs)):
            for pair in source(folder, options.quick) if kind in chosen else ():
                pairs.append(pair)
                mark = {True: " ", False: "!", None: " "}[pair.holds]
                needed = "-" if pair.needed is None else f"{pair.needed:g}"
                print(f"{pair.ratio:7.2f} {needed:>7}{mark} {pair.ours:9.4f}  {pair.name}: {pair.peer}", flush=True)
        for grown in growth.growths(folder, options.quick) if "growth" in chosen else ():
            growths.append(grown)
            print(
                f"{grown.slope:7.2f} {'1±0.1':>7}  {grown.times[-1]:9.4f}  {grown.name}: slope against {grown.against}",
                flush=True,
            )
    if options.json:
        document = {
            "python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count(),
            "load": os.getloadavg()[0], "quick": options.quick, "pairs": [p.document() for p in pairs],
            "growth": [g.document() for g in growths],
        }  # fmt: skip
        options.json.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    if options.plot:
        plot(growths, options.plot)
    below = [pair for pair in pairs if pair.holds is False]
    if below:
        print(f"{len(below)} of {len(pairs)} ratios are below what is needed", file=sys.stderr)
    return 1 if below else 0


def plot(growths: list[Growth], path: Path) -> None:
    """Seconds against size, both axes logarithmic."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        sys.exit("the plot needs matplotlib: pip install matplotlib")
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for grown in growths:
        axes.loglog(grown.sizes, grown.times, marker="o", label=f"{grown.name}, {grown.slope:.2f} in {grown.against}")
    axes.set(xlabel="frames or atoms", ylabel="seconds")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path)


if __name__ == "__main__":
    sys.exit(main())
