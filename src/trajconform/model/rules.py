"""One rule per clause: a function over part of a store that yields violations.

The strict reader runs the rules of the reader role and stops at the first violation; the checker runs all and
collects. A rule is registered with the clause that it enforces, its role, its level, and the stage at which what it
looks at is known (``structure``: metadata alone; ``index``: the small arrays that locate updates; ``data``: rows).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trajconform.model.errors import Violation

RuleFunction = Callable[[Any], Iterator[Violation]]


@dataclass(frozen=True)
class Rule:
    """A registered rule."""

    clause: str
    role: str
    level: str
    stage: str
    function: RuleFunction

    def __call__(self, view: Any) -> Iterator[Violation]:
        return self.function(view)


class RuleBook:
    """The rules of one format, in order of registration."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def rule(
        self, clause: str, *, role: str, level: str = "MUST", stage: str = "structure"
    ) -> Callable[[RuleFunction], RuleFunction]:
        """Decorator that registers a function as the rule of a clause."""

        def register(function: RuleFunction) -> RuleFunction:
            self._rules.append(Rule(clause, role, level, stage, function))
            return function

        return register

    def select(self, *, roles: tuple[str, ...] = ("store", "reader"), stage: str | None = None) -> list[Rule]:
        """Rules of the given roles (and stage, when named)."""
        return [r for r in self._rules if r.role in roles and (stage is None or r.stage == stage)]
