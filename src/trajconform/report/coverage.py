"""Which clauses are tested, by what: cases that expect acceptance, cases that expect refusal, and what is untested."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from trajconform.harness.mutants import Mutant
from trajconform.harness.runner import judged_clauses
from trajconform.harness.verdicts import Verdict
from trajconform.spec.catalogue import Catalogue, Clause
from trajconform.vectors.cases import Case


@dataclass(frozen=True)
class ClauseCoverage:
    """Cases that bind one clause, by what they expect."""

    clause: Clause
    accepting: tuple[str, ...]
    refusing: tuple[str, ...]
    informative: tuple[str, ...]
    mutants: tuple[str, ...] = ()
    """Deliberate mistakes that break it, which ``trajconform prove`` shows to be caught."""

    @property
    def tested(self) -> bool:
        """Whether some case can fail an implementation on this clause."""
        return bool(self.accepting or self.refusing)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        c = self.clause
        return {
            "clause": c.id,
            "format": c.format,
            "topic": c.topic,
            "role": c.role,
            "level": c.level,
            "profile": c.profile,
            "tested": self.tested,
            "accepting": list(self.accepting),
            "refusing": list(self.refusing),
            "informative": list(self.informative),
            "mutants": list(self.mutants),
        }


def expectation(case: Case) -> str:
    """``refusing``, ``accepting`` or ``informative``: what a case asks of an implementation, in one word."""
    expect = case.expect
    if expect == "informative":
        return "informative"
    if expect == "refused":
        return "refusing"
    if isinstance(expect, dict) and expect.get("violations"):
        return "refusing"
    if any(call.get("refused") for call in case.script):
        return "refusing"
    return "accepting"


def coverage(catalogue: Catalogue, cases: Iterable[Case], mutants: Iterable[Mutant] = ()) -> list[ClauseCoverage]:
    """One entry a clause, in the order of the specification.

    A case tests only the clauses that its verdict counts for: one of a reader says nothing of stores.
    """
    found: dict[str, dict[str, list[str]]] = {name: {} for name in catalogue.clauses}
    for case in cases:
        word = expectation(case)
        for name in judged_clauses(case, catalogue, Verdict.PASS):
            found[name].setdefault(word, []).append(case.id)
    broken: dict[str, list[str]] = {}
    for mutant in mutants:
        for name in mutant.clauses:
            broken.setdefault(name, []).append(mutant.id)
    return [
        ClauseCoverage(
            clause,
            tuple(found[name].get("accepting", ())),
            tuple(found[name].get("refusing", ())),
            tuple(found[name].get("informative", ())),
            tuple(broken.get(name, ())),
        )
        for name, clause in catalogue.clauses.items()
    ]


def markdown(entries: Iterable[ClauseCoverage]) -> str:
    """A Markdown table a topic."""
    out: list[str] = []
    topic = ""
    for entry in entries:
        clause = entry.clause
        heading = f"{clause.format} / {clause.topic}"
        if heading != topic:
            out += [
                "",
                f"## {heading}",
                "",
                "| clause | role | level | accepting | refusing | informative | mutants | |",
                "|---|---|---|--:|--:|--:|--:|---|",
            ]
            topic = heading
        counts = " | ".join(
            str(len(cases)) for cases in (entry.accepting, entry.refusing, entry.informative, entry.mutants)
        )
        out.append(
            f"| {clause.id} | {clause.role} | {clause.level} | {counts} | {'' if entry.tested else 'untested'} |"
        )
    return "\n".join(out).strip() + "\n"
