"""Verifying an otj file beside a C program that has the serial loop, and beside reading the file alone."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.pairs import Pair, compare
from trajconform.model.trajectory import OtjHeader
from trajconform.model.work import Work
from trajconform.otj.checker import check_otj
from trajconform.otj.writer import OtjWriter

MIB = 1 << 20
PARTICLES = 1000


def write(path: Path, frames: int, particles: int = PARTICLES) -> None:
    """A sound file of f64 positions and velocities."""
    path.unlink(missing_ok=True)
    header = OtjHeader(particles, "double", True, np.array(0.5), np.ones(particles))
    rows = np.random.default_rng(7).normal(size=(6, particles))
    names = ("x", "y", "z", "vx", "vy", "vz")
    with OtjWriter(path, header) as writer:
        for step in range(frames):
            writer.append(step, {name: rows[k] + step for k, name in enumerate(names)})


def checked(path: Path, jobs: int) -> None:
    """The whole check; a finding would make the figure worthless."""
    found = check_otj(path, Work(jobs=jobs))
    if found:
        raise RuntimeError(f"{path} is not sound: {found[0]}")


def pairs(folder: Path, quick: bool = False) -> Iterator[Pair]:
    """All pairs; without a C compiler only one core beside two."""
    path, program = folder / "bench.otj", folder / "otj_serial"
    write(path, (32 if quick else 512) * MIB // (24 + 48 * PARTICLES))
    compiler = shutil.which("cc") or shutil.which("gcc")
    one, two = partial(checked, path, 1), partial(checked, path, 2)
    if compiler:
        source = Path(__file__).with_name("otj_serial.c")
        subprocess.run([compiler, "-O3", "-o", str(program), str(source)], check=True)
        for name, options, needed in (("C, serial loop", (), 3.0), ("C, reading alone", ("read",), None)):
            peer = partial(subprocess.run, [str(program), str(path), *options], check=True, stdout=subprocess.DEVNULL)
            yield compare("otj check, one core", one, name, peer, needed)
    yield compare("otj check, two cores", two, "the kit, one core", one, 1.7)
    path.unlink()
