"""Reads the step numbers and times of an mrec trajectory, as far as attributes give them, with nothing but the standard
library. What it does not read yet it calls unsupported. Put the implementation that you want to test in its place."""

import base64
import json
import math
import struct
from pathlib import Path


class Refused(Exception):
    """The input is not what the format allows."""


class Unsupported(Exception):
    """There is no way to do this, whatever the input."""


def integer(value):
    return value if abs(value) <= 2**53 else str(value)


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_real(value):
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def scalar(value):
    return {"dtype": "f64", "shape": [], "data": base64.b64encode(struct.pack("<d", value)).decode()}


def attributes_of(folder):
    """The attributes of a Zarr group; None where there is no node."""
    path = folder / "zarr.json"
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_bytes())
    except ValueError as error:
        raise Refused(f"{path.parent.name}/zarr.json is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("zarr_format") != 3 or document.get("node_type") != "group":
        raise Refused(f"{path.parent.name} is not a Zarr V3 group")
    attributes = document.get("attributes", {})
    if not isinstance(attributes, dict):
        raise Refused(f"the attributes of {path.parent.name} are not an object")
    return attributes


def progression(attributes, name, nstep, fits):
    """start and stride of a progression; None where there is none."""
    if name not in attributes:
        return None
    value = attributes[name]
    if not isinstance(value, dict) or not fits(value.get("start")) or not fits(value.get("stride", 0)):
        raise Refused(f"{name} is malformed: {value!r}")
    if nstep >= 2 and "stride" not in value:
        raise Refused(f"{name} has no stride")
    return value["start"], value.get("stride", 0)


def read(path):
    """The reply to a read request for mrec."""
    root = Path(path)
    if not root.is_dir():
        raise Unsupported("packed records")
    version = (attributes_of(root / "meta") or {}).get("molrec_version", 1)
    if not is_integer(version) or version != 1:
        raise Refused(f"molrec_version {version!r} is not known")
    attributes = attributes_of(root / "trajectory")
    if attributes is None:
        raise Refused("there is no group trajectory")

    nstep = attributes.get("nstep")
    if "nstep" in attributes:
        if not is_integer(nstep) or nstep < 0:
            raise Refused(f"nstep is {nstep!r}")
    elif "step_progression" in attributes or "time_progression" in attributes:
        raise Refused("a progression without nstep")
    elif (root / "trajectory" / "step").exists():
        raise Unsupported("arrays")
    else:
        nstep = 0

    steps = progression(attributes, "step_progression", nstep, is_integer)
    times = progression(attributes, "time_progression", nstep, is_real)
    for name, found in (("step", steps), ("time", times)):
        if found is None and nstep > 0 and (root / "trajectory" / name).exists():
            raise Unsupported("arrays")
    if nstep > 0 and steps is None:
        raise Refused("nothing numbers the frames")
    if nstep > 0 and not all(-(2**63) <= steps[0] + i * steps[1] < 2**63 for i in (0, nstep - 1)):
        raise Refused("a step number is outside the 64-bit integers")

    declared = attributes.get("sequence_schema")
    if declared is None:
        raise Unsupported("a trajectory without a declaration")
    if not isinstance(declared, dict):
        raise Refused("sequence_schema is not an object")
    for part, what in (("blocks", "blocks"), ("meta", "metadata per step")):
        if declared.get(part, {}) != {}:
            raise Unsupported(what)
    if (root / "trajectory" / "box").exists():
        raise Unsupported("cells")

    frames = []
    for i in range(nstep):
        frame = {"step": integer(steps[0] + i * steps[1]), "meta": {}, "blocks": {}}
        if times is not None:
            start, stride = float(times[0]), float(times[1])
            frame["time"] = scalar(start if nstep == 1 else start + i * stride)
        frames.append(frame)
    return {"format": "mrec", "nstep": nstep, "frames": frames}
