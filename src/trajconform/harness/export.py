"""The vectors as plain files: every input, script and expected reply, for tests that know nothing of this kit.

::

    index.json              what each case is and what it expects
    index.tsv               the same for programs without a JSON parser
    SHA256SUMS              for sha256sum -c
    README.md               what the files mean
    cases/<case>/input.*    the file or store to read or check
                 expected.json, expected.tsv
                 script.json

Two exports by the same kit are the same, byte for byte.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trajconform import __version__
from trajconform.harness import formats
from trajconform.harness.protocol import find_fault
from trajconform.model.errors import TrajconformError
from trajconform.spec.lock import LOCK
from trajconform.vectors.build import MANIFEST
from trajconform.vectors.cases import Case, expected_reply, golden_bytes, input_files, script_calls, write_input

VERSION = 1
INDEX, TABLE, SUMS, ABOUT = "index.json", "index.tsv", "SHA256SUMS", "README.md"
COLUMNS = ("case", "role", "expect", "input", "expected", "may_follow", "frames", "needs")
Progress = Callable[[int, int], None]

_IN_REPLY = ("declaration", "tail", "error")
_TOLD = ("frames", "nstep", "first_frames", "may_follow", "bytes", "free", *_IN_REPLY)
"""Members of an expectation that an entry tells in its own way."""
_INTEGERS = ("step", "nstep", "particles")
_README = """# Vectors of trajconform {version}

{cases} cases, each in a folder of its own below `cases/`. `sha256sum --quiet -c SHA256SUMS` shows that they are whole.

- `reader`: read `input.*`. `expect` is `accepted` (then `expected.json` is what comes back), `refused`, or `informative`,
  where implementations may differ.
- `store`: check `input.*`. `expect` is `clean`, or `violations` with the clauses that are broken.
- `writer`: make the calls of `script.json` in order; each is accepted or, where it says so, refused. Where there is an
  `input.*`, a copy of it is reopened. At `uncommit` put `trajectory/zarr.json` back to what it was before the last flush
  or close that changed it. What is written then reads back as `expected.json`, or is `expected.otj` but for the bytes in
  `free`, and breaks no clause beside those in `violations`.

`index.json` describes every case: clauses, `needs` (features without which a case is skipped), `lacking` (what is
expected instead of an implementation without a feature), paths, sizes and digests. `compare`
names optional parts of a reply that count, `free` parts that do not; `layout` and `expectation` hold what else a case
asks for. schema/kit/export.schema.json and case.schema.json of the kit describe them. `index.tsv` has the columns
{columns};
a minus stands for nothing.

`expected.json` is a reply as harness/PROTOCOL.md describes it. `expected.tsv` says the same line by line: the path of a
value, its kind (an array's dtype, `int`, `flag`, `text`, `json`, or `count` for the length of a list), an array's shape
or a minus, and the value: an array as the hexadecimal digits of its little-endian bytes in C order (a minus where there
are none), strings as JSON. `may-follow.*` has frames that a reader may hand back, in this order, after the expected
ones, any number of them left out. Where `frames` says `2-5`, frames 2, 3 and 4 are asked for and expected.
"""


@dataclass
class _Folder:
    """A folder that is being filled, and what went into it."""

    path: Path
    sums: dict[str, tuple[int, str]]

    def put(self, name: str, data: bytes) -> dict[str, Any]:
        """Write a file and describe it."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        return self.note(name, data)

    def note(self, name: str, data: bytes) -> dict[str, Any]:
        """Describe a file that has been written."""
        digest = hashlib.sha256(data).hexdigest()
        self.sums[name] = (len(data), digest)
        return {"path": name, "bytes": len(data), "sha256": digest}


# -- exporting -----------------------------------------------------------------------------------------------------


def export(
    root: Path, cases: Sequence[Case], target: Path, *, force: bool = False, progress: Progress | None = None
) -> int:
    """Write the cases into the folder ``target``, whole or not at all; the number of files.

    Everything is made in a folder beside it, which then takes its name. `TrajconformError` where ``target`` is there
    and not empty; with ``force`` an earlier export is replaced, and nothing else ever is.
    """
    _check_target(target, force=force)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        new = beside / "new"
        new.mkdir()
        folder = _Folder(new, {})
        _fill(root, cases, folder, progress)
        if target.exists():
            target.rename(beside / "old")
        new.rename(target)
    except OSError as error:
        raise TrajconformError(f"cannot export to {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return len(folder.sums)


def _check_target(target: Path, *, force: bool) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise TrajconformError(f"{target} is no folder; name one that is not there yet")
    if not target.is_dir() or not any(target.iterdir()):
        return
    earlier = (target / INDEX).is_file() and (target / SUMS).is_file() and (target / "cases").is_dir()
    if not force:
        advice = "--force replaces the export in it" if earlier else "name one that is not there yet"
        raise TrajconformError(f"{target} is not empty; {advice}")
    if not earlier:
        raise TrajconformError(f"{target} holds something else than an export, which --force does not remove")


def _fill(root: Path, cases: Sequence[Case], folder: _Folder, progress: Progress | None) -> None:
    entries: list[dict[str, Any]] = []
    for number, case in enumerate(cases, 1):
        entries.append(_case(case, folder))
        if progress is not None:
            progress(number, len(cases))
    index = {
        "export": VERSION,
        "kit": {
            "version": __version__,
            "lock": hashlib.sha256((root / LOCK).read_bytes()).hexdigest(),
            "manifest": hashlib.sha256((root / MANIFEST).read_bytes()).hexdigest(),
        },
        "cases": entries,
    }
    folder.put(INDEX, _json(index))
    lines = ["#" + "\t".join(COLUMNS), *("\t".join(_row(entry)) for entry in entries)]
    folder.put(TABLE, ("\n".join(lines) + "\n").encode())
    about = _README.format(version=__version__, cases=f"{len(cases):,}", columns=", ".join(COLUMNS))
    folder.put(ABOUT, about.encode())
    sums = "".join(_sum_line(name, digest) for name, (_, digest) in sorted(folder.sums.items()))
    (folder.path / SUMS).write_bytes(sums.encode())


def _case(case: Case, folder: _Folder) -> dict[str, Any]:
    base = f"cases/{case.id}"
    entry: dict[str, Any] = {
        "case": case.id,
        "title": case.title,
        "format": case.format,
        "topic": case.topic,
        "role": case.role,
        "clauses": list(case.clauses),
        "needs": needs(case),
        "expect": _kind(case),
    }
    for name in ("compare", "free"):
        if getattr(case, name):
            entry[name] = list(getattr(case, name))
    if case.read_frames is not None:
        entry["frames"] = list(case.read_frames)
    if case.lacking:
        entry["lacking"] = dict(case.lacking)
    if case.input:
        entry["input"] = _input(case, folder, base)
    if case.script:
        calls = [{"op": call.op, "params": dict(call.params), "refused": call.refused} for call in script_calls(case)]
        entry["script"] = folder.put(f"{base}/script.json", _json(calls))
    expect: Mapping[str, Any] = case.expect if isinstance(case.expect, Mapping) else {}
    reply = expected_reply(case) if case.role == "reader" or "frames" in expect else None
    if reply is not None:
        entry["expected"] = _reply(reply, folder, f"{base}/expected")
    if "may_follow" in expect:
        whole = expected_reply(case, "accepted")
        assert whole is not None
        frames = [whole["frames"][number] for number in expect["may_follow"]]
        entry["may_follow"] = _reply({"frames": frames}, folder, f"{base}/may-follow")
    if "bytes" in expect:
        data = golden_bytes(case.root, case.format, expect["bytes"])
        if "first_frames" in expect:
            data = formats.get(case.format).first_frames(data, expect["first_frames"])
        entry["bytes"] = folder.put(f"{base}/expected.{case.format}", data)
        if "free" in expect:
            entry["bytes"]["free"] = expect["free"]
    rest = {name: _plain(expect[name]) for name in expect if name not in _TOLD}
    if reply is None:
        rest |= {name: _plain(expect[name]) for name in _IN_REPLY if name in expect}
    for name in ("violations", "layout"):
        if name in rest:
            entry[name] = rest.pop(name)
    if rest:
        entry["expectation"] = rest
    return entry


def needs(case: Case) -> list[str]:
    """The features without which a case is skipped."""
    wanted = set(case.needs)
    if case.role == "store":
        wanted.add(f"check:{case.format}")
    if case.read_frames is not None:
        wanted.add("range")
    if any("reopen" in call for call in case.script):
        wanted.add("reopen")
    if any("system" in (call.get("create") or {}) for call in case.script):
        wanted.add("system")
    return sorted(wanted)


def _kind(case: Case) -> str:
    if case.role == "reader":
        return case.expect if case.expect in ("refused", "informative") else "accepted"
    if case.role == "store":
        return "clean" if case.expect == "clean" else "violations"
    return "written" if case.expect else "calls"


def _input(case: Case, folder: _Folder, base: str) -> dict[str, Any]:
    files = input_files(case)
    place = folder.path / base
    place.mkdir(parents=True)
    name = f"{base}/{write_input(case, files, place).name}"
    if list(files) == [""]:
        return folder.note(name, files[""])
    for path, data in files.items():
        folder.note(f"{name}/{path}", data)
    return {"path": name, "bytes": sum(map(len, files.values())), "files": len(files)}


def _reply(reply: Mapping[str, Any], folder: _Folder, stem: str) -> dict[str, Any]:
    told = folder.put(f"{stem}.json", _json(reply))
    told["lines"] = folder.put(f"{stem}.tsv", "".join(f"{line}\n" for line in flat(reply)).encode())
    return told


def flat(node: Any, path: str = "") -> Iterator[str]:
    """A reply line by line: path, kind, shape, value; see the README of an export."""
    name = path.rpartition("/")[2]
    if isinstance(node, Mapping) and set(node) == {"dtype", "shape", "data"}:
        shape = ",".join(map(str, node["shape"])) or "-"
        data = node["data"]
        value = base64.b64decode(data).hex() if isinstance(data, str) else _compact(data)
        yield f"{path}\t{node['dtype']}\t{shape}\t{value or '-'}"
    elif isinstance(node, Mapping) and set(node) == {"dtype", "value"} and node["dtype"] == "json":
        yield f"{path}\tjson\t-\t{_compact(node['value'])}"
    elif path == "/declaration" or (isinstance(node, list) and name != "frames"):
        yield f"{path}\tjson\t-\t{_compact(node)}"
    elif isinstance(node, Mapping):
        for key, value in node.items():
            escaped = _compact(str(key))[1:-1].replace("~", "~0").replace("/", "~1")
            yield from flat(value, f"{path}/{escaped}")
    elif isinstance(node, list):
        yield f"{path}\tcount\t-\t{len(node)}"
        for number, value in enumerate(node):
            yield from flat(value, f"{path}/{number}")
    elif isinstance(node, bool):
        yield f"{path}\tflag\t-\t{int(node)}"
    elif isinstance(node, int) or (isinstance(node, str) and name in _INTEGERS):
        yield f"{path}\tint\t-\t{node}"
    else:
        yield f"{path}\t{'text' if isinstance(node, str) else 'json'}\t-\t{_compact(node)}"


def _row(entry: Mapping[str, Any]) -> list[str]:
    frames = entry.get("frames")
    lines = {name: entry[name]["lines"]["path"] if name in entry else "-" for name in ("expected", "may_follow")}
    return [
        entry["case"],
        entry["role"],
        entry["expect"],
        entry["input"]["path"] if "input" in entry else "-",
        lines["expected"],
        lines["may_follow"],
        f"{frames[0]}-{frames[1]}" if frames else "-",
        ",".join(entry["needs"]) or "-",
    ]


def _plain(node: Any) -> Any:
    """Numbers that are none in JSON as strings, with the names that JavaScript gives them."""
    if isinstance(node, Mapping):
        return {key: _plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_plain(value) for value in node]
    if isinstance(node, float) and not math.isfinite(node):
        return "NaN" if math.isnan(node) else "Infinity" if node > 0 else "-Infinity"
    return node


def _json(document: Any) -> bytes:
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _compact(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _sum_line(name: str, digest: str) -> str:
    """A line as sha256sum writes it: a name with a backslash or a line end is escaped, and the line says so."""
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{chr(92) if escaped != name else ''}{digest}  {escaped}\n"


# -- verifying -----------------------------------------------------------------------------------------------------


def verify_export(folder: Path) -> tuple[int, list[str]]:
    """The number of files of an export, and everything that is wrong with it: a file that is missing, changed, no plain
    file, or there in addition; an index that does not fit."""
    sums = _read_sums(folder)
    problems = [f"{name}: {wrong}" for name, digest in sums.items() if (wrong := _wrong(folder / name, digest))]
    found = {path.relative_to(folder).as_posix() for path in _all_files(folder)}
    problems += [f"{name}: not in {SUMS}" for name in sorted(found - set(sums) - {SUMS})]
    missing = [name for name in (INDEX, TABLE, ABOUT) if name not in sums]
    problems += [f"{name}: not in {SUMS}, so this is no whole export" for name in missing]
    if not problems:
        problems += _index_problems(folder, sums)
    return len(sums), problems


def _read_sums(folder: Path) -> dict[str, str]:
    path = folder / SUMS
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TrajconformError(f"{folder} is no export: {path.name} cannot be read: {error}") from None
    sums: dict[str, str] = {}
    for number, line in enumerate(text.split("\n")[:-1] if text.endswith("\n") else text.split("\n"), 1):
        escaped = line.startswith("\\")
        digest, separator, name = line.removeprefix("\\").partition("  ")
        if escaped:
            name = name.replace("\\\\", "\0").replace("\\n", "\n").replace("\\r", "\r").replace("\0", "\\")
        unsound = name.startswith("/") or not name or {"..", ".", ""} & set(name.split("/")) or name in sums
        if not separator or len(digest) != 64 or set(digest) - set("0123456789abcdef") or unsound:
            raise TrajconformError(f"{path}:{number}: no line of an export's checksums")
        sums[name] = digest
    return sums


def _all_files(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        yield from (
            Path(where) / name for name in (*files, *folders) if name in files or (Path(where) / name).is_symlink()
        )


def _wrong(path: Path, digest: str) -> str:
    if not path.exists():
        return "missing"
    if path.is_symlink() or not path.is_file():
        return "no plain file"
    with path.open("rb") as file:
        return "" if hashlib.file_digest(file, "sha256").hexdigest() == digest else "other bytes than were exported"


def _index_problems(folder: Path, sums: Mapping[str, str]) -> Iterator[str]:
    """Whether the index names just the files that are there, each as it is."""
    try:
        index = json.loads((folder / INDEX).read_text("utf-8"))
    except ValueError as error:
        yield f"{INDEX}: {error}"
        return
    fault = find_fault("export", index)
    if fault:
        yield f"{INDEX}{fault}"
        return
    rows = (folder / TABLE).read_text("utf-8").splitlines()[1:]
    if rows != ["\t".join(_row(entry)) for entry in index["cases"]]:
        yield f"{TABLE}: not the cases of {INDEX}"
    named = {INDEX, TABLE, ABOUT}
    inside: dict[str, list[str]] = {}
    for name in sums:
        case, separator, _ = name.partition("/input.mrec/")
        if separator:
            inside.setdefault(f"{case}/input.mrec", []).append(name)
    for entry in index["cases"]:
        for part in ("input", "script", "expected", "may_follow", "bytes"):
            for told in (entry[part], entry[part].get("lines")) if part in entry else ():
                if told is None:
                    continue
                if "files" in told:
                    files = inside.get(told["path"], [])
                    named.update(files)
                    size = sum((folder / name).stat().st_size for name in files)
                    if (len(files), size) != (told["files"], told["bytes"]):
                        yield f"{told['path']}: {len(files)} files of {size} bytes, the index says otherwise"
                    continue
                named.add(told["path"])
                if sums.get(told["path"]) != told["sha256"]:
                    yield f"{told['path']}: {INDEX} and {SUMS} differ"
                elif (folder / told["path"]).stat().st_size != told["bytes"]:
                    yield f"{told['path']}: {INDEX} names another size"
    for name in sorted(set(sums) - named):
        yield f"{name}: of no case in {INDEX}"
