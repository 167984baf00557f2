"""The catalogue of clauses, parsed from the chapters that people read.

A clause is one list item of a chapter ``spec/<format>/<topic>.md``::

    - **MREC-COMMIT-03** (reader, MUST NOT) statement, which may go on
      over further indented lines. [S]

Everything else in a chapter explains. An item that looks like a clause and is not well formed, an identifier that
stands twice, a gap in the numbering and a reference to a clause that does not exist are errors with file and line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trajconform import kit
from trajconform.model.errors import TrajconformError

FORMATS = ("mrec", "otj")
ROLES = ("store", "reader", "writer")
LEVELS = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY")
MARKS = ("S", "T", "C", "R")

_ITEM = re.compile(r"- \*\*(?P<id>[A-Z]+-[A-Z]+-\d{2,})\*\* \((?P<role>[^,()]*), (?P<level>[^()]*)\) (?P<text>.+)")
_LOOKS_LIKE_ITEM = re.compile(r"\s*[-*+] +\*\*\s*(MREC|OTJ)\b")
_MARK = re.compile(r"(?P<text>.*\S) \[(?P<mark>[A-Z])\]", re.DOTALL)
_REFERENCE = re.compile(r"\b(?:MREC|OTJ)-[A-Z]+-\d{2,}\b")


@dataclass(frozen=True)
class Clause:
    """One requirement: who it binds, how strongly, what it says, where it stands and where it comes from."""

    id: str
    format: str
    topic: str
    role: str
    level: str
    statement: str
    mark: str
    path: str
    """Path of the chapter relative to the kit's root, with ``/``."""
    line: int

    @property
    def profile(self) -> str:
        """``companion`` for facts of the companion chapters (mark C), else ``core``."""
        return "companion" if self.mark == "C" else "core"

    @property
    def required(self) -> bool:
        """Whether the clause is absolute (MUST or MUST NOT)."""
        return self.level in ("MUST", "MUST NOT")

    @property
    def digest(self) -> str:
        """SHA-256 over all that binds: identifier, role, level, statement (white space normalised) and mark."""
        text = "\n".join((self.id, self.role, self.level, self.statement, self.mark))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Chapter:
    """One topic of one format."""

    format: str
    topic: str
    title: str
    path: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class Catalogue:
    """All chapters; clauses by identifier in the order of the chapters."""

    chapters: tuple[Chapter, ...]

    @property
    def clauses(self) -> dict[str, Clause]:
        """Identifier -> clause."""
        return {clause.id: clause for chapter in self.chapters for clause in chapter.clauses}

    def select(
        self,
        *,
        formats: Iterable[str] = (),
        topics: Iterable[str] = (),
        roles: Iterable[str] = (),
        levels: Iterable[str] = (),
    ) -> list[Clause]:
        """Clauses that fit every filter that is not empty."""
        wanted = [(frozenset(f), attr) for f, attr in ((formats, "format"), (topics, "topic"), (roles, "role"))]
        wanted.append((frozenset(levels), "level"))
        return [
            c for c in self.clauses.values() if all(not names or getattr(c, attr) in names for names, attr in wanted)
        ]


def load_catalogue(root: Path | None = None) -> Catalogue:
    """Parse every chapter under ``root/spec``. `TrajconformError` names every fault found, each with file and line."""
    root = root or kit.root()
    faults: list[str] = []
    chapters = [_read_chapter(root, path, faults) for path in _chapter_files(root, faults)]
    seen: dict[str, Clause] = {}
    prefixes: dict[str, str] = {}
    for chapter in chapters:
        for clause in chapter.clauses:
            first = seen.setdefault(clause.id, clause)
            if first is not clause:
                faults.append(f"{clause.path}:{clause.line}: {clause.id} already stands in {first.path}:{first.line}")
            prefix = clause.id.rsplit("-", 1)[0]
            owner = prefixes.setdefault(prefix, chapter.path)
            if owner != chapter.path:
                faults.append(f"{clause.path}:{clause.line}: the prefix {prefix} belongs to {owner}")
    for chapter in chapters:
        faults.extend(_dangling(root / chapter.path, chapter.path, seen))
    if faults:
        raise TrajconformError("the specification has faults:\n  " + "\n  ".join(faults))
    return Catalogue(tuple(chapters))


def _chapter_files(root: Path, faults: list[str]) -> Iterator[Path]:
    for format_name in FORMATS:
        folder = root / "spec" / format_name
        files = sorted(folder.glob("*.md"))
        order = folder / "order.txt"
        if order.exists():
            named = [line.strip() for line in order.read_text("utf-8").splitlines() if line.strip()]
            rank = {name: i for i, name in enumerate(named)}
            faults.extend(
                f"spec/{format_name}/order.txt: no chapter {n}.md" for n in named if not (folder / f"{n}.md").exists()
            )
            files.sort(key=lambda path: (rank.get(path.stem, len(rank)), path.stem))
        yield from files


def _read_chapter(root: Path, path: Path, faults: list[str]) -> Chapter:
    relative = path.relative_to(root).as_posix()
    format_name, topic = path.parent.name, path.stem
    lines = path.read_text("utf-8").splitlines()
    title = lines[0].removeprefix("# ").strip() if lines and lines[0].startswith("# ") else ""
    if not title:
        faults.append(f"{relative}:1: a chapter starts with '# Title'")
    clauses: list[Clause] = []
    for number, item in _items(lines):
        fault, clause = _parse_item(item, format_name, topic, relative, number)
        if clause is None:
            faults.append(f"{relative}:{number}: {fault}")
            continue
        expected = len(clauses) + 1
        if int(clause.id.rsplit("-", 1)[1]) != expected:
            faults.append(
                f"{relative}:{number}: {clause.id} is item number {expected} of its chapter; numbers follow on"
            )
        clauses.append(clause)
    if not clauses:
        faults.append(f"{relative}:1: the chapter has no clause")
    return Chapter(format_name, topic, title, relative, tuple(clauses))


def _items(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Items with the line they start at; indented lines after an item belong to it. Fenced blocks are skipped."""
    fence = ""
    current: list[str] = []
    start = 0
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if fence:
            if stripped.startswith(fence):
                fence = ""
            continue
        if current and line.startswith("  ") and stripped:
            current.append(stripped)
            continue
        if current:
            yield start, " ".join(current)
            current = []
        if stripped.startswith(("```", "~~~")):
            fence = stripped[:3]
        elif _LOOKS_LIKE_ITEM.match(line):
            current, start = [line.rstrip()], number
    if current:
        yield start, " ".join(current)


def _parse_item(item: str, format_name: str, topic: str, path: str, line: int) -> tuple[str, Clause | None]:
    shown = item if len(item) < 60 else item[:57] + "..."
    found = _ITEM.fullmatch(item)
    if not found:
        return f"malformed item {shown!r}; it reads: - **PREFIX-NN** (role, LEVEL) statement [S]", None
    marked = _MARK.fullmatch(found["text"])
    if not marked or marked["mark"] not in MARKS:
        return f"{found['id']} does not end with one mark out of [S] [T] [C] [R]", None
    if found["role"] not in ROLES:
        return f"{found['id']} binds {found['role']!r}; roles are {', '.join(ROLES)}", None
    if found["level"] not in LEVELS:
        return f"{found['id']} has level {found['level']!r}; levels are {', '.join(LEVELS)}", None
    if not found["id"].startswith(format_name.upper() + "-"):
        return f"{found['id']} stands in a chapter of {format_name}", None
    statement = " ".join(marked["text"].split())
    return "", Clause(
        found["id"], format_name, topic, found["role"], found["level"], statement, marked["mark"], path, line
    )


def _dangling(file: Path, path: str, known: dict[str, Clause]) -> Iterator[str]:
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        for name in _REFERENCE.findall(line):
            if name not in known:
                yield f"{path}:{number}: refers to {name}, which no chapter defines"
