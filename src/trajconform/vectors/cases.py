"""Cases: one YAML file, one claim; or a family of claims that differ in one thing.

A case's id is its path under ``vectors/`` without the suffix; a member of a family is ``<path>@<name>``. Only files
that a selection can reach are parsed. Every fault of a case file names the file and the line.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trajconform.model.errors import TrajconformError

FORMATS = ("mrec", "otj")
ROLES = ("reader", "store", "writer", "crash")
GOLDEN_FOLDERS = {"mrec": "stores", "otj": "files"}
_KEYS = {
    "title", "description", "clauses", "role", "input", "read", "script", "expect", "lacking", "compare", "free",
    "needs", "crash", "each",
}  # fmt: skip
_MEMBER_KEYS = _KEYS - {"each", "role"} | {"name", "defects"}
_INPUT_KEYS = {"golden", "nodes", "defects", "packed"}
_CALLS = ("create", "append", "flush", "close", "reopen", "uncommit")
_CASE_FORMS = {"reader": ("accepted", "refused", "informative"), "store": ("clean",), "writer": (), "crash": ()}
"""What a case of a role may expect in one word."""
_EXPECT_KEYS = {
    "reader": ("frames", "nstep", "first_frames", "may_follow", "declaration", "tail", "error"),
    "store": ("violations",),
    "writer": ("frames", "nstep", "declaration", "layout", "violations", "bytes", "first_frames", "free"),
    "crash": (),
}
"""What it may say instead, in a mapping."""
_OPTIONAL_PARTS = ("tail", "error", "declaration", "shape")
_LAYOUT_KEYS = ("node", "absent", "attribute", "equals", "values", "rows", "dtype", "files_at_most")
FEATURES = ("range", "single", "double", "reopen", "system", "json:text", "check:mrec", "check:otj")
"""What a driver may say of itself that some cases need; `harness/PROTOCOL.md` describes each."""
CRASHES = ("kill", "freeze", "trace")
"""What befalls the writer of a crash case: it is killed, held still and looked at, or its system calls are recorded."""


@dataclass(frozen=True)
class Call:
    """One call of a writer, in wire form without path and format, and whether it has to be refused.

    ``uncommit`` is none of the writer's: the kit puts the commit marker back to what it was one commit earlier, which is
    what a process leaves that is killed just before the last write of its commit.
    """

    op: str
    params: Mapping[str, Any]
    refused: bool


@dataclass(frozen=True)
class Case:
    """One claim. ``input``, ``expect`` and ``script`` are as in the file, families merged."""

    id: str
    path: str
    title: str
    clauses: tuple[str, ...]
    role: str
    format: str
    topic: str
    root: Path = field(repr=False)
    expect: Any = None
    input: Mapping[str, Any] = field(default_factory=dict)
    compare: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    lacking: Mapping[str, Any] = field(default_factory=dict)
    read_frames: tuple[int, int] | None = None
    script: tuple[Mapping[str, Any], ...] = ()
    crash: str = ""


# -- loading -------------------------------------------------------------------------------------------------------


class _Loader(yaml.CSafeLoader):
    """libyaml's safe loader, strict about keys that stand twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = key_node.value
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} stands twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def load_yaml(path: Path, shown: str) -> Any:
    """Parse a YAML file; `TrajconformError` with file and line where it is not well formed."""
    try:
        return yaml.load(path.read_bytes(), Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 1
        raise TrajconformError(f"{shown}:{line}: {error.problem or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TrajconformError(f"{shown}:1: {error}") from None


def case_files(root: Path, formats: Iterable[str] = (), topics: Iterable[str] = ()) -> Iterator[Path]:
    """The case files, in the order of their ids."""
    formats, topics = tuple(formats), frozenset(topics)
    for name in FORMATS:
        if formats and name not in formats:
            continue
        base = root / "vectors" / name
        if not base.is_dir():
            continue
        for folder in sorted(base.iterdir()):
            if folder.is_dir() and folder.name != GOLDEN_FOLDERS[name] and (not topics or folder.name in topics):
                yield from sorted(folder.glob("*.yaml"))


def load_cases(
    root: Path,
    *,
    formats: Iterable[str] = (),
    roles: Iterable[str] = (),
    clauses: Iterable[str] = (),
    topics: Iterable[str] = (),
    globs: Iterable[str] = (),
    known: Iterable[str] | None = None,
) -> list[Case]:
    """Cases that fit every filter that is not empty, in the order of their ids.

    ``globs`` are patterns over ids. ``known``, where given, is the set of clauses that exist: a case that names another
    one is an error with file and line.
    """
    roles, clauses, globs = frozenset(roles), frozenset(clauses), tuple(globs)
    known = None if known is None else frozenset(known)
    found: list[Case] = []
    for path in case_files(root, formats, topics):
        case_id = path.relative_to(root / "vectors").with_suffix("").as_posix()
        if globs and not any(
            fnmatch.fnmatchcase(case_id, g.partition("@")[0]) or fnmatch.fnmatchcase(case_id, g) for g in globs
        ):
            continue
        if clauses:
            text = path.read_text("utf-8")
            if not any(clause in text for clause in clauses):
                continue
        for case in _read_file(root, path, case_id, known):
            if roles and case.role not in roles:
                continue
            if clauses and not clauses & set(case.clauses):
                continue
            if globs and not any(fnmatch.fnmatchcase(case.id, g) or fnmatch.fnmatchcase(case_id, g) for g in globs):
                continue
            found.append(case)
    return found


def cases_by_clause(root: Path) -> dict[str, list[tuple[str, str]]]:
    """Clause -> the cases that bind it, each id and title."""
    out: dict[str, list[tuple[str, str]]] = {}
    for case in load_cases(root):
        for clause in case.clauses:
            out.setdefault(clause, []).append((case.id, case.title))
    return out


class _Fault(Exception):
    """A fault of a case file, with the keys that lead to the place."""

    def __init__(self, message: str, *keys: str | int) -> None:
        super().__init__(message)
        self.keys = keys


def _read_file(root: Path, path: Path, case_id: str, known: frozenset[str] | None) -> list[Case]:
    shown = path.relative_to(root).as_posix()
    document = load_yaml(path, shown)
    try:
        return list(_cases_of(root, shown, case_id, document, known))
    except _Fault as fault:
        raise TrajconformError(f"{shown}:{_line_of(path, fault.keys)}: {fault}") from None


def _line_of(path: Path, keys: Sequence[str | int], line: int = 1) -> int:
    """Line of the value that a chain of keys leads to, as far as the file goes along."""
    node = yaml.compose(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
    for number, key in enumerate(keys):
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == str(key)), None)
            if pair is None:
                # What a member does not say itself is said by its family.
                return _line_of(path, keys[number:], line) if number and keys[0] == "each" else line
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
        else:
            break
    return line


def _cases_of(root: Path, shown: str, case_id: str, document: Any, known: frozenset[str] | None) -> Iterator[Case]:
    if not isinstance(document, dict):
        raise _Fault("a case is a mapping with title, clauses, role and expect")
    unknown = set(document) - _KEYS
    if unknown:
        key = sorted(map(str, unknown))[0]
        raise _Fault(f"unknown key {key!r}{_near(key, _KEYS)}; a case has {', '.join(sorted(_KEYS))}", key)
    base = {key: value for key, value in document.items() if key != "each"}
    if "each" not in document:
        yield _case(root, shown, case_id, base, known, ())
        return
    seen: set[str] = set()
    for keys, member in _members(document["each"], base):
        name = member.get("name")
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._+-]+", name):
            raise _Fault(f"a member of a family has a name of letters, digits and . _ + -, not {name!r}", *keys)
        if name in seen:
            raise _Fault(f"the member {name!r} stands twice", *keys)
        seen.add(name)
        beside = set(member) - _MEMBER_KEYS
        if beside:
            key = sorted(beside)[0]
            raise _Fault(f"unknown key {key!r} in the member {name!r}{_near(key, _MEMBER_KEYS)}", *keys, key)
        yield _case(root, shown, f"{case_id}@{name}", _merge(base, member), known, keys)


def _merge(base: Mapping[str, Any], member: Mapping[str, Any]) -> dict[str, Any]:
    """A member over its family: keys replace, defects are appended."""
    out = {**base, **{k: v for k, v in member.items() if k not in ("name", "input", "defects")}}
    if "title" not in member:
        out["title"] = f"{base.get('title')}: {member['name']}"
    given = member.get("input") or {}
    source = {"golden", "nodes"} if given.keys() & {"golden", "nodes"} else set()
    merged = {k: v for k, v in (base.get("input") or {}).items() if k not in source} | given
    defects = [
        *((base.get("input") or {}).get("defects") or ()),
        *((member.get("input") or {}).get("defects") or ()),
        *(member.get("defects") or ()),
    ]
    if defects:
        merged["defects"] = defects
    if merged:
        out["input"] = merged
    return out


def _members(each: Any, base: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """The members of a family, each with the keys that lead to where it is written."""
    if isinstance(each, list):
        for number, member in enumerate(each):
            if not isinstance(member, dict):
                raise _Fault("a member of a family is a mapping", "each", number)
            yield ("each", number), member
        return
    if not isinstance(each, dict):
        raise _Fault("each is a list of members, or a generator with a table", "each")
    generators = [name for name in ("cut", "flip") if name in each]
    if len(generators) != 1 or set(each) - {"cut", "flip", "table", "then"}:
        raise _Fault("a generated family has cut or flip, a table, and perhaps then", "each")
    kind = generators[0]
    spec, table = each[kind], each.get("table")
    if not isinstance(spec, dict) or not isinstance(table, list):
        raise _Fault("a generator has from and to, and a table of rows", "each", kind)
    first, stop = spec.get("from"), spec.get("to")
    bits = range(8) if spec.get("bits") == "all" else spec.get("bits", [0])
    rows = _table(table, first, stop)
    then = list(each.get("then") or ())
    for place, number in sorted(rows.items()):
        row = table[number]
        for bit in bits if kind == "flip" else (None,):
            if kind == "cut":
                name, words = f"cut-{place:04}", f"cut to {place} bytes"
                defect: dict[str, Any] = {"cut": {"size": place}}
            else:
                name, words = f"flip-{place:04}-{bit}", f"bit {bit} of byte {place} flipped"
                defect = {"flip_bit": {"offset": place, "bit": bit}}
            member = {key: value for key, value in row.items() if key not in ("from", "to", "defects")}
            title = row.get("title", base.get("title"))
            yield (
                ("each", "table", number),
                {
                    **member,
                    "name": name,
                    "title": f"{title}, {words}",
                    "defects": [defect, *then, *(row.get("defects") or ())],
                },
            )


def _table(table: Sequence[Any], first: Any, stop: Any) -> dict[int, int]:
    """Byte or size -> the number of the row that is about it."""
    if not isinstance(first, int) or not isinstance(stop, int) or not 0 <= first < stop:
        raise _Fault("a generator goes from a number to a larger one", "each")
    out: dict[int, int] = {}
    for number, row in enumerate(table):
        keys = ("each", "table", number)
        if not isinstance(row, dict) or set(row) - {"from", "to", "expect", "clauses", "title", "defects"}:
            raise _Fault("a row has from, to, expect and perhaps clauses, title, defects", *keys)
        for place in range(row["from"], row["to"]):
            if place in out:
                raise _Fault(f"{place} stands in two rows", *keys)
            if not first <= place < stop:
                raise _Fault(f"{place} is outside {first} to {stop}", *keys)
            out[place] = number
    missing = [place for place in range(first, stop) if place not in out]
    if missing:
        raise _Fault(f"no row covers {missing[0]}", "each", "table")
    return out


def _case(
    root: Path,
    shown: str,
    case_id: str,
    body: Mapping[str, Any],
    known: frozenset[str] | None,
    keys: tuple[str | int, ...],
) -> Case:
    title, clauses, role = body.get("title"), body.get("clauses"), body.get("role")
    if not isinstance(title, str) or not title.strip():
        raise _Fault("a case has a title: its claim in one sentence", *keys, "title")
    if not isinstance(clauses, list) or not clauses or not all(isinstance(c, str) for c in clauses):
        raise _Fault("a case names the clauses it tests", *keys, "clauses")
    if role not in ROLES:
        raise _Fault(f"role is one of {', '.join(ROLES)}, not {role!r}{_near(role, ROLES)}", *keys, "role")
    for clause in clauses:
        if known is not None and clause not in known:
            raise _Fault(f"there is no clause {clause}{_near(clause, known)}", *keys, "clauses")
    given = body.get("input") or {}
    if set(given) - _INPUT_KEYS:
        raise _Fault(f"input has {', '.join(sorted(_INPUT_KEYS))}", *keys, "input")
    format_name, topic = case_id.split("/")[:2]
    script = tuple(body.get("script") or ())
    if role in ("writer", "crash"):
        if not script:
            raise _Fault(f"a case of role {role} has a script", *keys, "script")
        for call in script:
            if len(set(call) & set(_CALLS)) != 1 or set(call) - {*_CALLS, "refused"}:
                strange = next((name for name in call if name not in (*_CALLS, "refused")), "")
                near = _near(strange, _CALLS)
                text = f"a call is one of {', '.join(_CALLS)}, perhaps with refused: {call}{near}"
                raise _Fault(text, *keys, "script")
        if role == "crash":
            _check_crash(body, script, keys)
    elif not given.get("golden") and not given.get("nodes"):
        raise _Fault("a case of a reader or store has an input: golden or nodes", *keys, "input")
    if given.get("golden") and not _golden_file(root, format_name, given["golden"]).exists():
        raise _Fault(_no_golden(root, format_name, given["golden"]), *keys, "input")
    if "crash" in body and role != "crash":
        raise _Fault("crash goes with the role crash", *keys, "crash")
    if "expect" not in body and role not in ("writer", "crash"):
        raise _Fault("a case says what it expects", *keys, "expect")
    place = (root, format_name, given, known)
    if "expect" in body:
        _check_expectation(place, role, body["expect"], (*keys, "expect"))
    for feature, instead in (body.get("lacking") or {}).items():
        _check_word("a feature", feature, FEATURES, (*keys, "lacking"))
        _check_expectation(place, role, instead, (*keys, "lacking", feature))
    for feature in body.get("needs") or ():
        _check_word("a feature", feature, FEATURES, (*keys, "needs"))
    for part in body.get("compare") or ():
        _check_word("a part of a reply that readers may leave out", part, _OPTIONAL_PARTS, (*keys, "compare"))
    read = body.get("read") or {}
    if not isinstance(read, dict) or set(read) - {"frames"} or (read and not _is_range(read["frames"])):
        raise _Fault("read has frames: the first and the one after the last", *keys, "read")
    return Case(
        id=case_id,
        path=shown,
        title=" ".join(title.split()),
        clauses=tuple(clauses),
        role=role,
        format=format_name,
        topic=topic,
        root=root,
        expect=body.get("expect", {}),
        input=given,
        compare=tuple(body.get("compare") or ()),
        free=tuple(body.get("free") or ()),
        needs=tuple(body.get("needs") or ()),
        lacking=body.get("lacking") or {},
        read_frames=tuple(read["frames"]) if "frames" in read else None,
        script=script,
        crash=body.get("crash", ""),
    )


def _near(word: Any, words: Iterable[str]) -> str:
    """Which of the words somebody may have meant, as the end of a message."""
    import difflib

    found = difflib.get_close_matches(str(word), list(words), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _check_word(what: str, word: Any, words: Sequence[str], keys: tuple[str | int, ...]) -> None:
    if word not in words:
        raise _Fault(f"{what} is one of {', '.join(words)}, not {word!r}{_near(word, words)}", *keys)


def _is_range(frames: Any) -> bool:
    return isinstance(frames, list) and len(frames) == 2 and all(type(n) is int and n >= 0 for n in frames)


def _no_golden(root: Path, format_name: str, name: Any) -> str:
    names = [path.stem for path in _golden_file(root, format_name, "x").parent.glob("*.yaml")]
    return f"there is no golden {name!r} of {format_name}{_near(name, names)}"


def _check_expectation(
    place: tuple[Path, str, Mapping[str, Any], frozenset[str] | None],
    role: str,
    expect: Any,
    keys: tuple[str | int, ...],
) -> None:
    """Whether an expectation is one of a role: a word that is none would otherwise show in a run, case by case."""
    root, format_name, given, known = place
    forms, names = _CASE_FORMS[role], _EXPECT_KEYS[role]
    if not isinstance(expect, dict):
        if expect not in forms:
            article = f"{', '.join(forms)}, or a" if forms else "a"
            words = f"a case of role {role} expects {article} mapping with {', '.join(names)}"
            raise _Fault(f"{words}; not {expect!r}{_near(expect, (*forms, *names))}", *keys)
    else:
        for name in expect:
            _check_word(f"what a case of role {role} expects", name, names, (*keys, name))
    parts: Mapping[str, Any] = expect if isinstance(expect, dict) else {}
    if role == "reader" and (expect == "accepted" or "first_frames" in parts) and not given.get("golden"):
        raise _Fault("without a golden there is no reply to expect; write the frames", *keys)
    if "may_follow" in parts and "first_frames" not in parts:
        raise _Fault("may_follow goes with first_frames", *keys, "may_follow")
    for clause in parts.get("violations") or ():
        if known is not None and clause not in known:
            raise _Fault(f"there is no clause {clause}{_near(clause, known)}", *keys, "violations")
    if "bytes" in parts and not _golden_file(root, format_name, str(parts["bytes"])).exists():
        raise _Fault(_no_golden(root, format_name, parts["bytes"]), *keys, "bytes")
    for number, assertion in enumerate(parts.get("layout") or ()):
        at = (*keys, "layout", number)
        if not isinstance(assertion, dict) or "node" not in assertion or len(assertion) < 2:
            raise _Fault(f"an assertion names a node and one thing about it, not {assertion!r}", *at)
        for name in assertion:
            _check_word("what an assertion says", name, _LAYOUT_KEYS, (*at, name))


def _check_crash(body: Mapping[str, Any], script: Sequence[Mapping[str, Any]], keys: tuple[str | int, ...]) -> None:
    """What a crash case is made of: one create, frames, flushes and a close, all of them accepted."""
    if body.get("crash") not in CRASHES:
        raise _Fault(f"crash is one of {', '.join(CRASHES)}, not {body.get('crash')!r}", *keys, "crash")
    if "expect" in body:
        raise _Fault("a crash case expects what its appends present, and says nothing more", *keys, "expect")
    ops = [next(name for name in _CALLS if name in call) for call in script]
    if ops[0] != "create" or ops[-1] != "close" or set(ops[1:-1]) - {"append", "flush"} or "append" not in ops:
        raise _Fault("the script of a crash case is create, appends and flushes, and close", *keys, "script")
    if any(call.get("refused") for call in script):
        raise _Fault("no call of a crash case is refused", *keys, "script")


# -- goldens -------------------------------------------------------------------------------------------------------


def _golden_file(root: Path, format_name: str, name: str) -> Path:
    return root / "vectors" / format_name / GOLDEN_FOLDERS[format_name] / f"{name}.yaml"


@functools.lru_cache(maxsize=512)
def golden_declaration(root: Path, format_name: str, name: str) -> Mapping[str, Any]:
    """The declaration of a golden."""
    path = _golden_file(root, format_name, name)
    document = load_yaml(path, path.relative_to(root).as_posix())
    if not isinstance(document, dict):
        raise TrajconformError(f"{path.relative_to(root).as_posix()}:1: a golden is a mapping")
    return document


@functools.lru_cache(maxsize=512)
def _golden_reply(root: Path, format_name: str, name: str) -> str:
    path = _golden_file(root, format_name, name).with_suffix(".reply.json")
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise TrajconformError(_not_built(path.relative_to(root).as_posix())) from None


def _not_built(path: str) -> str:
    return f"{path} is not there: the golden has not been built; run: trajconform vectors build"


def golden_reply(root: Path, format_name: str, name: str) -> dict[str, Any]:
    """The expected reply beside a golden (a fresh copy)."""
    reply: dict[str, Any] = json.loads(_golden_reply(root, format_name, name))
    return reply


def golden_path(format_name: str, name: str, root: Path | None = None) -> Path:
    """The golden file or store itself."""
    from trajconform import kit

    return _golden_file(root or kit.root(), format_name, name).with_suffix(f".{format_name}")


def golden_bytes(root: Path, format_name: str, name: str) -> bytes:
    """Content of a golden that is one file. `TrajconformError` where it has not been built."""
    path = golden_path(format_name, name, root)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise TrajconformError(_not_built(path.relative_to(root).as_posix())) from None


@functools.lru_cache(maxsize=256)
def golden_tree(root: Path, name: str) -> dict[str, bytes]:
    folder = _golden_file(root, "mrec", name).with_suffix(".mrec")
    if not folder.is_dir():
        raise TrajconformError(_not_built(folder.relative_to(root).as_posix()))
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# -- inputs --------------------------------------------------------------------------------------------------------


def input_files(case: Case) -> dict[str, bytes]:
    """The input as files by relative path; a format of one file has the one path ``""``."""
    try:
        if case.format == "otj":
            from trajconform.vectors.otj_golden import apply_otj_defects

            data = golden_bytes(case.root, "otj", case.input["golden"])
            return {"": apply_otj_defects(data, case.input.get("defects") or ())}
        from trajconform.vectors.defects import apply_mrec_defects
        from trajconform.vectors.mrec_golden import emit_store

        nodes = _nodes(case)
        files = golden_tree(case.root, case.input["golden"]) if case.input.get("golden") else emit_store(nodes)
        files = apply_mrec_defects(files, nodes, case.input.get("defects") or ())
        if case.input.get("packed"):
            return {"": pack(files, case.input["packed"])}
        return files
    except TrajconformError as error:
        raise TrajconformError(f"{case.path}: {case.id}: {error}") from None


def _nodes(case: Case) -> Mapping[str, Any]:
    if case.input.get("golden"):
        nodes: Mapping[str, Any] = golden_declaration(case.root, "mrec", case.input["golden"])["nodes"]
        return nodes
    return case.input.get("nodes") or {}


def materialise(case: Case, folder: Path) -> Path:
    """Write the input of a case into ``folder`` and return its path."""
    return write_input(case, input_files(case), folder)


def write_input(case: Case, files: Mapping[str, bytes], folder: Path) -> Path:
    """Write the files of an input into ``folder`` and return its path; each folder is made once."""
    if list(files) == [""]:
        target = folder / ("input.otj" if case.format == "otj" else "input.mrec.zip")
        target.write_bytes(files[""])
        return target
    target = folder / "input.mrec"
    base = f"{target}/"
    made: set[str] = set()
    for name, data in files.items():
        parent = name.rpartition("/")[0]
        if parent not in made:
            os.makedirs(base + parent, exist_ok=True)  # noqa: PTH103 - hot path
            made.add(parent)
        with open(base + name, "wb", buffering=0) as file:  # noqa: PTH123
            file.write(data)
    return target


def pack(files: Mapping[str, bytes], how: Any = True) -> bytes:
    """A packed record: one stored entry a file, in order, without time stamps.

    ``how`` is true, or a mapping of deviations: ``deflate`` (paths to compress, or true for all), ``folders`` (true:
    entries for folders too), ``prefix`` (before every name), ``rename`` (path -> entry name), ``extra`` (entry name ->
    text), ``separator``, ``zip64`` (true: sizes and offsets in ZIP64 fields, though none needs them).
    """
    import io
    from unittest import mock

    options = how if isinstance(how, Mapping) else {}
    unknown = set(options) - {"deflate", "folders", "prefix", "rename", "extra", "separator", "zip64"}
    if unknown:
        raise TrajconformError(f"packed has no option {sorted(unknown)[0]!r}")
    out = io.BytesIO()
    deflate = options.get("deflate") or ()
    # zipfile writes ZIP64 fields for what is larger than its limit, and has no switch for small archives.
    limit = 0 if options.get("zip64") else zipfile.ZIP64_LIMIT
    with mock.patch.object(zipfile, "ZIP64_LIMIT", limit), zipfile.ZipFile(out, "w") as packed:
        names: list[tuple[str, bytes, bool]] = []
        if options.get("folders"):
            folders = sorted({f"{name.rsplit('/', 1)[0]}/" for name in files if "/" in name})
            names += [(name, b"", False) for name in folders]
        for name, data in files.items():
            entry = (options.get("rename") or {}).get(name, name)
            entry = options.get("prefix", "") + entry.replace("/", options.get("separator", "/"))
            names.append((entry, data, deflate is True or name in deflate))
        names += [(name, text.encode(), False) for name, text in (options.get("extra") or {}).items()]
        for name, data, squeezed in names:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED if squeezed else zipfile.ZIP_STORED
            packed.writestr(info, data)
    return out.getvalue()


# -- expectations --------------------------------------------------------------------------------------------------


def expected_reply(case: Case, expect: Any = None) -> dict[str, Any] | None:
    """The reply that a case asks of a reader, its range already cut; None where it asks for none.

    ``expect`` stands in for the case's own expectation (for ``lacking``).
    """
    wanted = case.expect if expect is None else expect
    try:
        reply = _whole_reply(case, wanted)
    except TrajconformError as error:
        raise TrajconformError(f"{case.path}: {case.id}: {error}") from None
    if reply is not None and case.read_frames is not None:
        first, stop = case.read_frames
        reply["frames"] = reply["frames"][first:stop]
    return reply


def _whole_reply(case: Case, wanted: Any) -> dict[str, Any] | None:
    if wanted == "accepted":
        return golden_reply(case.root, case.format, case.input["golden"])
    if not isinstance(wanted, Mapping):
        return None
    if "first_frames" in wanted:
        reply = golden_reply(case.root, case.format, case.input["golden"])
        reply["frames"] = reply["frames"][: wanted["first_frames"]]
        if case.format == "mrec":
            reply["nstep"] = wanted["first_frames"]
    elif "frames" in wanted and case.format == "mrec":
        from trajconform.vectors.mrec_golden import reply_of

        reply = reply_of(wanted["frames"], _reply_nodes(case), wanted.get("nstep"))
    else:
        return None
    for part in ("declaration", "tail", "error"):
        if part in wanted:
            reply[part] = wanted[part]
    return reply


def _reply_nodes(case: Case) -> Mapping[str, Any]:
    """Nodes that plain row ranges of an expectation refer to; a store written from nothing has only a declaration."""
    if case.role in ("writer", "crash") and not case.input:
        return {"trajectory": {"attributes": {"sequence_schema": _script_declaration(case)}}}
    return _nodes(case)


# -- writer scripts ------------------------------------------------------------------------------------------------


def script_calls(case: Case) -> list[Call]:
    """The calls of a writer case in wire form, without path and format."""
    calls: list[Call] = []
    declaration = _script_declaration(case)
    for raw in case.script:
        op = next(name for name in _CALLS if name in raw)
        body = raw[op] or {}
        try:
            in_wire_form = _otj_params if case.format == "otj" else _mrec_params
            params = in_wire_form(op, body, declaration)
        except (TrajconformError, ValueError, KeyError, TypeError) as error:
            raise TrajconformError(f"{case.path}: {case.id}: call {op}: {error}") from None
        calls.append(Call(op, params, bool(raw.get("refused"))))
    return calls


def _script_declaration(case: Case) -> Mapping[str, Any]:
    """The declaration of the first create that is not refused; where frames derive it, what their columns say.

    A script that begins with a store goes by the declaration of that store.
    """
    for raw in case.script:
        body = raw.get("create")
        if body is None or raw.get("refused"):
            continue
        if "declaration" in body:
            declared: Mapping[str, Any] = body["declaration"]
            return declared
        derived: dict[str, Any] = {"blocks": {}, "meta": {}}
        for frame in body.get("derive_from") or ():
            for name, block in (frame.get("blocks") or {}).items():
                columns = block.get("columns", block)
                entry = derived["blocks"].setdefault(name, {"columns": {}})
                for column, value in columns.items():
                    if isinstance(value, Mapping) and "dtype" in value:
                        shape = value.get("shape") or _shape(value["data"])
                        entry["columns"].setdefault(column, {"dtype": value["dtype"], "trailing": list(shape[1:])})
            for key, value in (frame.get("meta") or {}).items():
                if isinstance(value, Mapping) and "tag" in value:
                    derived["meta"].setdefault(key, {"dtype": value["tag"]})
        return derived
    if case.input and case.format == "mrec":
        from trajconform.vectors.mrec_golden import schema_of

        return schema_of(_nodes(case))
    return {}


def presented_frames(case: Case) -> list[dict[str, Any]]:
    """The frames of a script as a reader hands them back, in the reply form: what each append presents, with the blocks
    and the cell that it does not present carried forward.

    `TrajconformError` where a reader would hand back something else than what was presented: a key left to its fill, a
    value that another tag or a precision changes, a time for some frames only.
    """
    blocks: dict[str, Any] = {}
    cell: Any = None
    out: list[dict[str, Any]] = []
    declared = _script_declaration(case)
    tags = {key: entry["dtype"] for key, entry in (declared.get("meta") or {}).items()}
    columns = [c for b in (declared.get("blocks") or {}).values() for c in b["columns"].values()]
    if any("precision" in column for column in columns):
        raise TrajconformError(f"{case.path}: {case.id}: a declared precision may change what is presented")
    for call in script_calls(case):
        if call.op != "append":
            continue
        frame = call.params["frame"]
        if {key: value["dtype"] for key, value in frame["meta"].items()} != tags:
            raise TrajconformError(f"{case.path}: {case.id}: a frame presents every key with its declared tag")
        blocks = blocks | frame["blocks"]
        cell = frame.get("cell", cell)
        made = {name: call.params[name] for name in ("step", "time") if name in call.params}
        out.append({**made, "meta": frame["meta"], "blocks": blocks, **({"cell": cell} if cell else {})})
    if len({"time" in frame for frame in out}) > 1:
        raise TrajconformError(f"{case.path}: {case.id}: times are all or nothing")
    return out


def _shape(data: Any) -> list[int]:
    out: list[int] = []
    while isinstance(data, list):
        out.append(len(data))
        data = data[0] if data else None
    return out


def _mrec_params(op: str, body: Mapping[str, Any], declaration: Mapping[str, Any]) -> dict[str, Any]:
    from trajconform.model.arrays import array_from_plain, encode_array, encode_int
    from trajconform.vectors.mrec_golden import block_reply, frame_reply

    if op == "append":
        out: dict[str, Any] = {"frame": frame_reply(body.get("frame") or {}, declaration, {})}
        for block in out["frame"]["blocks"].values():
            block.pop("shape", None)
        if "step" in body:
            out["step"] = encode_int(int(body["step"]))
        if body.get("time") is not None:
            out["time"] = encode_array(array_from_plain("f64", body["time"]))
        return out
    out = dict(body)
    if "derive_from" in out:
        out["derive_from"] = [frame_reply(frame, declaration, {}) for frame in out["derive_from"]]
        for frame in out["derive_from"]:
            for block in frame["blocks"].values():
                block.pop("shape", None)
    if "system" in out:
        out["system"] = {name: block_reply(name, block, {}, {}) for name, block in out["system"].items()}
    return out


def _otj_params(op: str, body: Mapping[str, Any], declaration: Mapping[str, Any]) -> dict[str, Any]:
    from trajconform.model.arrays import array_from_plain, encode_array, encode_int

    def array(value: Any, single: bool) -> dict[str, Any]:
        if isinstance(value, Mapping):
            return encode_array(array_from_plain(value["dtype"], value["data"], value.get("shape")))
        return encode_array(array_from_plain("f32" if single else "f64", value))

    out = dict(body)
    if op == "create" and "declaration" in body:
        declared = dict(body["declaration"])
        single = declared.get("precision") == "single"
        for name in ("timestep", "masses"):
            if name in declared:
                declared[name] = array(declared[name], single)
        if isinstance(declared.get("particles"), int):
            declared["particles"] = encode_int(declared["particles"])
        out["declaration"] = declared
    elif op == "append":
        single = declaration.get("precision") == "single"
        out["frame"] = {name: array(value, single) for name, value in (body.get("frame") or {}).items()}
        if isinstance(body.get("step"), int):
            out["step"] = encode_int(body["step"])
    return out
