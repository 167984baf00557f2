"""How a rule of otj is registered. One function looks for one kind of breach and serves both policies: the strict
reader refuses by the reader's clause, the checker reports the clause on the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trajconform.model.errors import Violation
from trajconform.model.rules import RuleBook

BOOK = RuleBook()
"""Stages: ``structure`` (the fixed fields, the length), ``index`` (the whole header), ``data`` (a batch of frames)."""


@dataclass(frozen=True)
class Finding:
    """A breach before it has the name of a clause. ``index`` is the number of the frame it is in."""

    message: str
    offset: int
    index: int | None = None


Look = Callable[[Any], Iterator[Finding]]


def rule(*clauses: tuple[str, str, str], stage: str = "structure") -> Callable[[Look], Look]:
    """Register a function for each (clause, role, level)."""

    def register(look: Look) -> Look:
        for clause, role, level in clauses:
            BOOK.rule(clause, role=role, level=level, stage=stage)(_named(look, clause, level))
        return look

    return register


def _named(look: Look, clause: str, level: str) -> Callable[[Any], Iterator[Violation]]:
    def find(view: Any) -> Iterator[Violation]:
        for found in look(view):
            part = "header" if found.index is None else "frame"
            yield Violation(clause, part, found.message, found.index, found.offset, level)

    return find
