"""The rules of mrec, registered by the modules of `trajconform.mrec.rules`, and how they are run."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache

from trajconform.model.errors import Refused, Violation
from trajconform.model.rules import RuleBook, RuleFunction
from trajconform.mrec.view import View

BOOK = RuleBook()

ALL_ROLES = ("store", "reader")

REFUSED_ANYWAY = frozenset(
    {
        "MREC-STEP-11", "MREC-STEP-28", "MREC-BLOCK-02", "MREC-BLOCK-03", "MREC-BLOCK-06", "MREC-CELL-01",
        "MREC-CELL-02", "MREC-CELL-10", "MREC-CELL-12", "MREC-DECL-01", "MREC-DECL-04", "MREC-PREC-01",
        "MREC-PREC-02", "MREC-REF-01",
    }
)  # fmt: skip
"""Clauses of stores whose breach this reader refuses although no MUST lays that on readers: a structure that it needs
and that is not of its form would have to be guessed at (the SHOULD clauses of readers beside them)."""


def rules(
    *clauses: str, role: str, stage: str = "structure", level: str = "MUST"
) -> Callable[[RuleFunction], RuleFunction]:
    """Register a function as the rule of each of several clauses, for faults that fall out of one look.

    A clause of another level than the others says so behind its name: ``"MREC-COMMIT-07 MUST NOT"``.
    """

    def register(function: RuleFunction) -> RuleFunction:
        for clause in clauses:
            name, _, own = clause.partition(" ")
            BOOK.rule(name, role=role, level=own or level, stage=stage)(function)
        return function

    return register


@cache
def load_rules() -> RuleBook:
    """The book with every module of rules read."""
    package = importlib.import_module("trajconform.mrec.rules")
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"trajconform.mrec.rules.{module}")
    return BOOK


@cache
def _clauses(role: str) -> frozenset[str]:
    return frozenset(r.clause for r in load_rules().select(roles=(role,)))


@cache
def _levels() -> dict[str, str]:
    return {r.clause: r.level for r in load_rules().select(roles=ALL_ROLES)}


@cache
def _functions(roles: tuple[str, ...], stage: str) -> tuple[RuleFunction, ...]:
    return tuple(dict.fromkeys(r.function for r in load_rules().select(roles=roles, stage=stage)))


def run_stage(view: View, stage: str, roles: tuple[str, ...] = ALL_ROLES) -> Iterator[Violation]:
    """Violations of all rules of a stage that bind the roles, each fault once.

    What a rule cannot look at because of another fault is that fault. A reader is not held to clauses of the store
    alone: those it passes over.
    """
    seen: set[tuple[str, str, str]] = set()
    passed_over: frozenset[str] = frozenset()
    if "store" not in roles:
        passed_over = _clauses("store") - _clauses("reader") - REFUSED_ANYWAY
    for function in _functions(roles, stage):
        for violation in guarded(lambda function=function: function(view)):  # type: ignore[misc]
            key = (violation.clause, violation.path, violation.message)
            if key not in seen and violation.clause not in passed_over:
                seen.add(key)
                yield replace(violation, level=_levels().get(violation.clause, violation.level))


def guarded(look: Callable[[], Iterable[Violation]]) -> Iterator[Violation]:
    """The violations of a look, a refusal on the way among them."""
    try:
        yield from look()
    except Refused as refusal:
        yield refusal.violation


def each(items: Iterable[str], look: Callable[[str], Iterable[Violation]]) -> Iterator[Violation]:
    """Look at several things so that a refusal at one does not hide the others."""
    for item in items:
        yield from guarded(lambda item=item: look(item))  # type: ignore[misc]


def seen(*_: object) -> tuple[Violation, ...]:
    """No violation: looking at a part has shown it sound, for a part that is not raises `Refused`."""
    return ()
