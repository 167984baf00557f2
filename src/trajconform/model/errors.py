"""Violations of a clause, refusals, and the kit's own errors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Violation:
    """One breach of one clause.

    ``path`` is the node or file in the store (``trajectory/atoms/offset``), ``index`` the element or frame ordinal
    and ``offset`` the byte offset where that helps. ``message`` says what stands there and what the clause asks.
    """

    clause: str
    path: str
    message: str
    index: int | None = None
    offset: int | None = None
    level: str = "MUST"

    @property
    def place(self) -> str:
        """Where it is, for people: path, then index or byte offset."""
        where = self.path or "."
        if self.index is not None:
            where += f"[{self.index}]"
        if self.offset is not None:
            where += f" at byte {self.offset}"
        return where

    def __str__(self) -> str:
        return f"{self.clause} {self.place}: {self.message}"


class TrajconformError(Exception):
    """Something the kit itself cannot work with: a bad case file, a bad item of the specification, a bad driver."""


class Refused(Exception):
    """A reader or writer refuses its input; carries the violation that made it."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


def refuse(clause: str, path: str, message: str, *, index: int | None = None, offset: int | None = None) -> Refused:
    """Build a `Refused` for ``raise refuse(...)``."""
    return Refused(Violation(clause, path, message, index=index, offset=offset))
