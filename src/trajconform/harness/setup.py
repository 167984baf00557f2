"""Set a driver up: run the commands of its ``driver.toml``, keep a log, and remember for which state it was done."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from trajconform.harness.drivertoml import STAMP, DriverSpec
from trajconform.model.errors import TrajconformError

LOG = "setup.log"
_SHOWN = 25


def setup_driver(spec: DriverSpec, progress: Callable[[str], None] = print, *, fresh: bool = False) -> Path:
    """Run a driver's set-up commands in its folder and return the path of the log.

    ``progress`` gets a line before each command and one at the end. ``fresh`` throws away what was built before.
    `TrajconformError` names what is missing, or the command that failed with the end of its output.
    """
    missing = [tool for tool in spec.needs if shutil.which(tool) is None]
    if missing:
        which = f"{', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not on PATH"
        raise TrajconformError(f"the driver {spec.name} needs {which}; install and run this again")
    commands = [[spec.expand(part) for part in command] for command in spec.setup_commands]
    if not commands:
        progress(f"{spec.name}: nothing to set up")
    if fresh:
        shutil.rmtree(spec.build, ignore_errors=True)
    spec.build.mkdir(parents=True, exist_ok=True)
    if spec.build.name == ".build":
        (spec.build / ".gitignore").write_text("*\n", "utf-8")
    stamp = spec.build / STAMP
    stamp.unlink(missing_ok=True)
    path = spec.build / LOG
    started = time.monotonic()
    with path.open("wb") as log:
        for number, command in enumerate(commands, 1):
            progress(f"{spec.name}: [{number}/{len(commands)}] {shlex.join(command)}")
            log.write(f"$ {shlex.join(command)}\n".encode())
            log.flush()
            _run(spec, command, log, path)
    stamp.write_text(json.dumps({"digest": spec.digest(), "commands": commands}, indent=1) + "\n", "utf-8")
    progress(f"{spec.name}: ready after {time.monotonic() - started:.1f} s")
    return path


def _run(spec: DriverSpec, command: list[str], log: IO[bytes], path: Path) -> None:
    start = log.tell()
    env = {**os.environ, **{name: spec.expand(value) for name, value in spec.env.items()}}
    try:
        process = subprocess.Popen(
            command, cwd=spec.folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    except OSError as error:
        raise TrajconformError(
            f"setting up {spec.name} failed: cannot run {command[0]}: {error.strerror or error}"
        ) from error
    try:
        status = process.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if status != 0:
        with path.open("rb") as file:
            file.seek(start)
            output = file.read().decode("utf-8", "replace").splitlines()
        shown = "\n".join(f"  | {line}" for line in output[-_SHOWN:]) or "  | (no output)"
        raise TrajconformError(
            f"setting up {spec.name} failed with status {status}: {shlex.join(command)}\n{shown}\nThe whole log: {path}"
        )
