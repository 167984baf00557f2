"""What a run found: verdicts by case, by clause, and for the whole. Plain data; reports are made from it elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from trajconform.model.reply import Difference


class Verdict(StrEnum):
    """Verdict on one case."""

    PASS = "PASS"
    FAIL = "FAIL"
    """The implementation did something else than the clause asks."""
    ERROR = "ERROR"
    """No judgement: the driver crashed, hung, or answered nonsense; or the kit itself could not go on."""
    SKIP = "SKIP"
    """Not claimed or not supported by the driver."""
    INFO = "INFO"
    """Either outcome conforms; what happened is recorded."""


class ClauseStatus(StrEnum):
    """Where a clause stands after a run."""

    PASS = "pass"
    PARTIAL = "partial"
    """Every case that ran passed, but some were skipped."""
    FAIL = "fail"
    ERROR = "error"
    UNTESTED = "untested"


@dataclass(frozen=True)
class Exchange:
    """One request and its answer as they travelled, without ``id``; ``reply`` is None where no usable answer came."""

    request: Mapping[str, Any]
    reply: Mapping[str, Any] | None


@dataclass(frozen=True)
class CaseResult:
    """What became of one case.

    ``clauses`` are all that the case binds, ``judges`` those among them that its verdict counts for: a reader is not
    blamed for a store's clause that the case names beside the reader's. ``exchanges`` and ``expected`` are kept for
    cases that somebody has to look at (FAIL, ERROR, INFO) and are empty for the others. ``call`` is the index of the
    exchange that decided the verdict.
    """

    case: str
    title: str
    format: str
    topic: str
    role: str
    clauses: tuple[str, ...]
    verdict: Verdict
    message: str = ""
    differences: tuple[Difference, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    expected: Any = None
    call: int | None = None
    seconds: float = 0.0
    stderr: str = ""
    kept: str | None = None
    note: str = ""
    judges: tuple[str, ...] = ()
    """Empty: all of ``clauses``."""

    @property
    def blamed(self) -> tuple[str, ...]:
        """The clauses that the verdict counts for."""
        return self.judges or self.clauses

    @property
    def decisive(self) -> Exchange | None:
        """The exchange that decided the verdict, or the last one."""
        if not self.exchanges:
            return None
        return self.exchanges[-1 if self.call is None else self.call]

    @property
    def request(self) -> Mapping[str, Any] | None:
        """Request of the decisive exchange."""
        exchange = self.decisive
        return exchange.request if exchange else None

    @property
    def reply(self) -> Mapping[str, Any] | None:
        """Reply of the decisive exchange; None where none came."""
        exchange = self.decisive
        return exchange.reply if exchange else None


@dataclass(frozen=True)
class ClauseResult:
    """Where one clause stands: status, number of cases by verdict, and the cases in order."""

    clause: str
    status: ClauseStatus
    counts: Mapping[Verdict, int]
    cases: tuple[str, ...]


@dataclass(frozen=True)
class DriverIdentity:
    """Who was judged: what the driver says of itself, and where it comes from."""

    name: str
    version: str
    language: str
    description: str
    source: str
    """``in process`` or the driver's folder."""
    formats: Mapping[str, tuple[str, ...]]
    """Format -> what is claimed of it (``read``, ``write``)."""
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Deviation:
    """One way in which a run is not what its known failures say."""

    case: str
    kind: str
    """``unexpected failure``, ``unexpected pass``, ``other verdict``, ``not judged`` or ``stale entry``."""
    expected: str
    actual: str
    message: str


@dataclass(frozen=True)
class RunResult:
    """A whole run. ``results`` are in the order of the cases and fewer than ``planned`` after an interruption."""

    driver: DriverIdentity
    results: tuple[CaseResult, ...]
    planned: int
    started: str
    seconds: float
    jobs: int
    kit_version: str
    interrupted: bool = False
    selection: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What is worth knowing about the driver beyond single cases (it ended by itself between cases ...)."""
    kills: int = 0
    """How often each crash case killed its writer; with ``seed`` it says at which moments."""
    seed: int = 0
    deviations: tuple[Deviation, ...] | None = None
    """None: held against no known failures. Empty: exactly as expected."""

    @property
    def counts(self) -> dict[Verdict, int]:
        """Number of cases by verdict, every verdict present."""
        return count_verdicts(result.verdict for result in self.results)

    @property
    def recorded(self) -> frozenset[str]:
        """Cases that fail just as the known failures say; none where the run was held against no such list."""
        if self.deviations is None:
            return frozenset()
        odd = {deviation.case for deviation in self.deviations}
        return frozenset(r.case for r in self.results if r.verdict in (Verdict.FAIL, Verdict.ERROR)) - odd

    @property
    def exit_status(self) -> int:
        """0 conforms (or: exactly the known failures), 1 does not, 2 no judgement was possible.

        A case without judgement (ERROR) is no failure of a clause, so errors alone give 2; any failure gives 1.
        """
        counts = self.counts
        judged = counts[Verdict.PASS] + counts[Verdict.FAIL] + counts[Verdict.INFO]
        if self.deviations is not None:
            if self.deviations:
                return 1
            return 2 if self.interrupted or not self.results else 0
        if counts[Verdict.FAIL]:
            return 1
        return 2 if counts[Verdict.ERROR] or not judged or self.interrupted else 0


def count_verdicts(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    """Number of each verdict, every verdict present."""
    counter = Counter(verdicts)
    return {verdict: counter[verdict] for verdict in Verdict}


def clause_results(results: Iterable[CaseResult], clauses: Iterable[str] = ()) -> dict[str, ClauseResult]:
    """Status of every clause that a case binds, and of each of ``clauses`` (untested where no case binds it).

    A clause fails if one of its cases does, is an error if one could not be judged, passes if all of them ran and
    at least one passed while the others are informative, is partial if some were skipped and all others are so, and
    is untested otherwise. A skipped case adds no clause to those that were asked for.
    """
    bound: dict[str, list[CaseResult]] = {clause: [] for clause in clauses}
    asked = frozenset(bound)
    for result in results:
        for clause in result.blamed:
            if result.verdict is Verdict.SKIP and asked and clause not in asked:
                continue
            bound.setdefault(clause, []).append(result)
    return {clause: _clause_result(clause, found) for clause, found in bound.items()}


def _clause_result(clause: str, results: list[CaseResult]) -> ClauseResult:
    counts = count_verdicts(result.verdict for result in results)
    if counts[Verdict.FAIL]:
        status = ClauseStatus.FAIL
    elif counts[Verdict.ERROR]:
        status = ClauseStatus.ERROR
    elif counts[Verdict.PASS]:
        status = ClauseStatus.PARTIAL if counts[Verdict.SKIP] else ClauseStatus.PASS
    else:
        status = ClauseStatus.UNTESTED
    return ClauseResult(clause, status, counts, tuple(result.case for result in results))
