"""Certificates: what a complete run found, as an in-toto Statement v1 with the test-result predicate v0.1.

The subject is the files of the driver, the configuration is what it was judged by, the tests are the clauses. A
certificate is about *claims*, each a format and a role, and every case of each was run. Clauses pass only where all of
their cases ran; what was skipped is said.

`statement` makes one and refuses where a run does not carry it; `faults` says what is wrong with one, as far as that
can be seen by the kit at hand. Whoever wrote it is a question for `trajconform.report.signature`.
"""

from __future__ import annotations

import json
import os
import stat
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trajconform import __version__
from trajconform.harness.artefacts import dir_hash, file_digest
from trajconform.harness.judge import has_feature, skip_reason
from trajconform.harness.protocol import find_fault
from trajconform.harness.runner import judged_clauses
from trajconform.harness.verdicts import CaseResult, ClauseStatus, RunResult, Verdict, clause_results
from trajconform.model.errors import TrajconformError
from trajconform.report import signature
from trajconform.report.console import shown
from trajconform.spec.catalogue import FORMATS, Catalogue
from trajconform.spec.lock import LOCK, compare_lock
from trajconform.vectors.build import MANIFEST
from trajconform.vectors.cases import Case, load_cases

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
ROLES = ("reader", "writer", "store")
MOST_BYTES = 32 * 1024 * 1024

_CASE_ROLES = {"reader": ("reader",), "writer": ("writer", "crash"), "store": ("store",)}
_UNSUPPORTED = "the driver does not support it"
_LISTS = ("passedTests", "warnedTests", "failedTests")


@dataclass(frozen=True)
class Claim:
    """A format and a role that a certificate is about."""

    format: str
    role: str


@dataclass(frozen=True)
class Certificate:
    """A certificate as read from a file; ``envelope`` is None where it is not signed."""

    statement: dict[str, Any]
    envelope: dict[str, Any] | None


def claims_of(
    said: Mapping[str, Sequence[str]], features: Iterable[str], formats: Sequence[str] = (), roles: Sequence[str] = ()
) -> list[Claim]:
    """What a driver claims, within what is asked for. `TrajconformError` where that is nothing."""
    found = [
        claim
        for claim in _claimed(said, features)
        if (not formats or claim.format in formats) and (not roles or claim.role in roles)
    ]
    for kind, asked, got in (("format", formats, {c.format for c in found}), ("role", roles, {c.role for c in found})):
        for name in asked:
            if name not in got:
                raise TrajconformError(f"the driver claims nothing of {kind} {name} that could be certified")
    if not found:
        raise TrajconformError("the driver claims nothing that could be certified")
    return found


def _claimed(said: Mapping[str, Sequence[str]], features: Iterable[str]) -> list[Claim]:
    features = frozenset(features)
    return [
        Claim(name, role)
        for name in FORMATS
        for role in ROLES
        if (role == "reader" and "read" in said.get(name, ()))
        or (role == "writer" and "write" in said.get(name, ()))
        or (role == "store" and f"check:{name}" in features)
    ]


def case_roles(claim: Claim) -> tuple[str, ...]:
    """The roles of the cases that a claim is judged by."""
    return _CASE_ROLES[claim.role]


def cases_of(root: Path, claims: Sequence[Claim], catalogue: Catalogue) -> list[Case]:
    """Every case of the claims, in the order of their ids."""
    known = set(catalogue.clauses)
    cases: dict[str, Case] = {}
    for format_name in dict.fromkeys(claim.format for claim in claims):
        roles = [role for claim in claims if claim.format == format_name for role in _CASE_ROLES[claim.role]]
        cases.update((case.id, case) for case in load_cases(root, formats=(format_name,), roles=roles, known=known))
    return [cases[name] for name in sorted(cases)]


def configuration(root: Path) -> list[dict[str, Any]]:
    """What the kit at hand judges by, as resource descriptors: its own code, the lock of the specification, the
    manifest of the vectors, and all files of vectors and schemas."""
    return [
        {
            "name": "trajconform",
            "uri": f"pkg:pypi/trajconform@{__version__}",
            "digest": {"dirHash1": dir_hash(Path(__file__).resolve().parents[1], skip=("_kit",))},
        },
        {"name": LOCK, "digest": {"sha256": file_digest(root / LOCK)}},
        {"name": MANIFEST, "digest": {"sha256": file_digest(root / MANIFEST)}},
        {"name": "vectors", "digest": {"dirHash1": dir_hash(root / "vectors")}},
        {"name": "schema", "digest": {"dirHash1": dir_hash(root / "schema")}},
    ]


def check_lock(catalogue: Catalogue, root: Path) -> None:
    """`TrajconformError` where the clauses are not those of the lock that a certificate would name."""
    changes = compare_lock(catalogue, root / LOCK)
    if changes:
        name, how = next(iter(changes.items()))
        raise TrajconformError(f"{len(changes)} clauses are not as locked in {LOCK}, first {name}: {how}")


def statement(
    run: RunResult,
    claims: Sequence[Claim],
    catalogue: Catalogue,
    subject: Mapping[str, str],
    judged_by: list[dict[str, Any]],
    cases: Sequence[Case],
) -> dict[str, Any]:
    """The statement about a run of ``cases``. `TrajconformError` where the run does not carry one.

    A run carries none that was interrupted, has a case without verdict or a verdict missing, differs from its known
    failures, or in which no clause was judged at all.
    """
    _check_complete(run, cases)
    verdicts = {result.case: result for result in run.results}
    by = {verdict: [name for name in sorted(verdicts) if verdicts[name].verdict is verdict] for verdict in Verdict}
    lists, untested = _clause_lists(run.results, claims, catalogue)
    if not any(lists.values()):
        raise TrajconformError("no certificate: every case was skipped, so nothing was judged")
    skipped: dict[str, list[str]] = {}
    for name in by[Verdict.SKIP]:
        skipped.setdefault(verdicts[name].message, []).append(name)
    driver = run.driver
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(subject.items())],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "result": _result(lists, untested),
            "configuration": judged_by,
            **lists,
            "trajconform_run": {
                "driver": {
                    "name": driver.name,
                    "version": driver.version,
                    "language": driver.language,
                    "formats": {name: list(roles) for name, roles in sorted(driver.formats.items())},
                    "features": sorted(driver.features),
                },
                "claims": [
                    {"format": claim.format, "role": claim.role, "profiles": _profiles(claim, catalogue)}
                    for claim in claims
                ],
                "untestedClauses": untested,
                "cases": {
                    "planned": run.planned,
                    "passed": len(by[Verdict.PASS]),
                    "failed": len(by[Verdict.FAIL]),
                    "skipped": len(by[Verdict.SKIP]),
                    "informative": len(by[Verdict.INFO]),
                },
                "failedCases": by[Verdict.FAIL],
                "informativeCases": by[Verdict.INFO],
                "skippedCases": dict(sorted(skipped.items())),
                "started": run.started,
            },
        },
    }


def dump(document: Any) -> str:
    """JSON text of a statement or an envelope."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_certificate(text: str, path: Path) -> None:
    """Put a certificate where it belongs, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, "utf-8")
        beside.replace(path)
    except OSError as error:
        raise TrajconformError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        beside.unlink(missing_ok=True)


def read_certificate(path: Path) -> Certificate:
    """Read a certificate, signed or not. `TrajconformError` where its form is not exactly that of one."""
    document = _strict(_bytes(path), str(path))
    if isinstance(document, dict) and "payload" in document:
        payload = signature.opened(document)
        return Certificate(_statement(_strict(payload, f"the statement in {path}")), document)
    return Certificate(_statement(document), None)


def faults(said: Mapping[str, Any], root: Path, catalogue: Catalogue) -> list[str]:
    """What is wrong with a statement by the kit at hand; empty where all fits.

    The kit has to be the one that the statement names. Then the cases of its claims, the reasons for which they are
    skipped, and every clause's place follow from what it says of the cases, and have to be what it says of them.
    """
    other = [*_other_kit(said["predicate"]["configuration"], configuration(root))]
    return other or [*_unsorted(said), *_contradictions(said, root, catalogue)]


def artefact_faults(said: Mapping[str, Any], at_hand: Mapping[str, str]) -> list[str]:
    """How the files of a driver at hand differ from the subject of a statement."""
    named = {entry["name"]: entry["digest"]["sha256"] for entry in said["subject"]}
    out = [f"{name}: certified, and not among the driver's files" for name in named if name not in at_hand]
    out += [f"{name}: among the driver's files, and not certified" for name in at_hand if name not in named]
    out += [
        f"{name}: not the file that was certified" for name in named if at_hand.get(name, named[name]) != named[name]
    ]
    return out


def summary(said: Mapping[str, Any]) -> Iterator[str]:
    """What a statement says, line by line, fit for a terminal."""
    predicate = said["predicate"]
    run = predicate["trajconform_run"]
    driver, untested, cases = run["driver"], run["untestedClauses"], run["cases"]
    kit = next((entry["uri"] for entry in predicate["configuration"] if "uri" in entry), "an unnamed kit")
    profiles = sorted({name for claim in run["claims"] for name in claim["profiles"]}, reverse=True)
    yield from _line(
        "subject", f"{driver['name']} {driver['version']} ({driver['language']}), {_n(said['subject'], 'file')}"
    )
    yield from _line("claims", "; ".join(f"{claim['format']} {claim['role']}" for claim in run["claims"]))
    yield from _line("", f"profiles: {', '.join(profiles)}; features: {', '.join(driver['features']) or 'none'}")
    named = {(claim["format"], claim["role"]) for claim in run["claims"]}
    beside = [c for c in _claimed(driver["formats"], driver["features"]) if (c.format, c.role) not in named]
    if beside:
        words = ", ".join(f"{claim.format} {claim.role}" for claim in beside)
        yield from _line("not in it", f"{words}: the driver claims this too")
    yield from _line("judged by", f"{kit.removeprefix('pkg:pypi/').replace('@', ' ')}, {run['started']}")
    yield from _line("result", predicate["result"])
    yield from _line("passed", f"{_n(predicate['passedTests'], 'clause')}: every case ran and holds")
    if predicate["warnedTests"]:
        yield from _line(
            "in part", f"{_n(predicate['warnedTests'], 'clause')}: what ran holds, some cases were skipped"
        )
        yield from _line("", ", ".join(predicate["warnedTests"]))
    if predicate["failedTests"]:
        yield from _line("FAILED", f"{_n(predicate['failedTests'], 'clause')}: a case shows it broken")
        yield from _line("", ", ".join(predicate["failedTests"]))
    for why, words in (
        ("skipped", "every case was skipped"),
        ("informative", "implementations may differ here"),
        ("without case", "the kit has no case that could fail"),
    ):
        if untested[why]:
            yield from _line("not tested", f"{_n(untested[why], 'clause')}: {words}")
            yield from _line("", ", ".join(untested[why]))
    words = ", ".join(
        f"{cases[name]:,} {name}" for name in ("passed", "failed", "skipped", "informative") if cases[name]
    )
    yield from _line("cases", f"{cases['planned']:,}: {words}")
    if run["failedCases"]:
        more = f" and {len(run['failedCases']) - 10:,} more" if len(run["failedCases"]) > 10 else ""
        yield from _line("", f"failed: {', '.join(run['failedCases'][:10])}{more}")
    for why, names in run["skippedCases"].items():
        yield from _line("", f"{len(names):,} skipped: {why}")


# -- making --------------------------------------------------------------------------------------------------------


def _check_complete(run: RunResult, cases: Sequence[Case]) -> None:
    if run.interrupted:
        raise TrajconformError(
            f"no certificate: the run was interrupted after {len(run.results)} of {run.planned} cases"
        )
    judged = [result.case for result in run.results]
    wanted = [case.id for case in cases]
    if sorted(judged) != sorted(wanted) or run.planned != len(wanted):
        missing = len(set(wanted) - set(judged))
        raise TrajconformError(f"no certificate: {missing} of {len(wanted)} cases of the claims were not run")
    errors = [result for result in run.results if result.verdict is Verdict.ERROR]
    if errors:
        raise TrajconformError(
            f"no certificate: {len(errors)} case{'s' if len(errors) > 1 else ''} could not be judged, "
            f"first {errors[0].case}: {errors[0].message}"
        )
    if run.deviations:
        first = run.deviations[0]
        raise TrajconformError(
            f"no certificate: {len(run.deviations)} deviations from the known failures, first {first.case}: {first.message}"
        )


def _scope(claims: Sequence[Claim], catalogue: Catalogue) -> list[str]:
    pairs = {(claim.format, claim.role) for claim in claims}
    return [clause.id for clause in catalogue.clauses.values() if (clause.format, clause.role) in pairs]


def _profiles(claim: Claim, catalogue: Catalogue) -> list[str]:
    found = {catalogue.clauses[name].profile for name in _scope([claim], catalogue)}
    return [name for name in ("core", "companion") if name in found]


def _clause_lists(
    results: Iterable[CaseResult], claims: Sequence[Claim], catalogue: Catalogue
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The three lists of the predicate, and the clauses about which nothing is said with the reason."""
    lists: dict[str, list[str]] = {name: [] for name in _LISTS}
    untested: dict[str, list[str]] = {"skipped": [], "informative": [], "without case": []}
    place = {
        ClauseStatus.PASS: lists["passedTests"],
        ClauseStatus.PARTIAL: lists["warnedTests"],
        ClauseStatus.FAIL: lists["failedTests"],
    }
    for name, result in sorted(clause_results(results, _scope(claims, catalogue)).items()):
        if result.status in place:
            place[result.status].append(name)
        else:
            why = "without case" if not result.cases else "skipped" if result.counts[Verdict.SKIP] else "informative"
            untested[why].append(name)
    return lists, untested


def _result(lists: Mapping[str, Sequence[str]], untested: Mapping[str, Sequence[str]]) -> str:
    if lists["failedTests"]:
        return "FAILED"
    return "WARNED" if lists["warnedTests"] or untested["skipped"] else "PASSED"


# -- reading -------------------------------------------------------------------------------------------------------


def _bytes(path: Path) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 - a pipe must not hang it
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise TrajconformError(f"{path} is no file")
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise TrajconformError(f"cannot read {path}: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise TrajconformError(f"{path} is no certificate: it is larger than {MOST_BYTES // 1024 // 1024} MiB")
    return data


def _strict(data: bytes, what: str) -> Any:
    """JSON in which nothing stands twice, nothing follows, and every number and text is one."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) != len(pairs):
            names = [name for name, _ in pairs]
            raise ValueError(f"the member {next(n for n in names if names.count(n) > 1)!r} stands twice")
        return out

    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=once)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise TrajconformError(f"{what} is no certificate: {str(error)[:300]}") from None
    return document


def _statement(document: Any) -> dict[str, Any]:
    fault = find_fault("certificate", document)
    if fault:
        raise TrajconformError(f"this is no certificate of this kit: statement{fault}")
    out: dict[str, Any] = document
    return out


# -- holding against the kit ---------------------------------------------------------------------------------------


def _other_kit(named: Sequence[Mapping[str, Any]], here: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if [entry["name"] for entry in named] != [entry["name"] for entry in here]:
        yield "the configuration does not name what this kit judges by: " + ", ".join(e["name"] for e in here)
        return
    for entry, own in zip(named, here, strict=True):
        if entry.get("uri") != own.get("uri"):
            yield f"it was judged by {entry.get('uri', 'no named version')}, and the kit at hand is {own.get('uri')}"
        elif entry["digest"] != own["digest"]:
            what = "the code of trajconform" if entry["name"] == "trajconform" else entry["name"]
            yield (
                f"it was judged by another kit: {what} at hand differs, though both are version {__version__}; "
                "verify with the release or the commit that certified"
            )


def _unsorted(said: Mapping[str, Any]) -> Iterator[str]:
    """Lists that `statement` would have written in another order, or with an entry only once."""
    predicate = said["predicate"]
    run = predicate["trajconform_run"]
    lists = {
        "subject": [entry["name"] for entry in said["subject"]],
        "failedCases": run["failedCases"],
        "informativeCases": run["informativeCases"],
        "features": run["driver"]["features"],
        **{name: predicate[name] for name in _LISTS},
        **{f"untestedClauses, {why}": names for why, names in run["untestedClauses"].items()},
        **{f"skippedCases, {why}": names for why, names in run["skippedCases"].items()},
    }
    for name, entries in lists.items():
        if entries != sorted(set(entries)):
            yield f"{name} is not in order, or names something twice"


def _contradictions(said: Mapping[str, Any], root: Path, catalogue: Catalogue) -> Iterator[str]:
    predicate = said["predicate"]
    run = predicate["trajconform_run"]
    driver, claims = run["driver"], [Claim(entry["format"], entry["role"]) for entry in run["claims"]]
    features = frozenset(driver["features"])
    claimed = _claimed(driver["formats"], features)
    if claims != [claim for claim in claimed if claim in claims]:
        yield "the claims are not among what the driver claims, or not in order"
        return
    for entry, claim in zip(run["claims"], claims, strict=True):
        if entry["profiles"] != _profiles(claim, catalogue):
            yield f"the claim {claim.format} {claim.role} does not name the profiles that it has"
    cases = {case.id: case for case in cases_of(root, claims, catalogue)}
    told: dict[str, tuple[Verdict, str]] = {}
    for verdict, why, names in (
        (Verdict.FAIL, "", run["failedCases"]),
        (Verdict.INFO, "", run["informativeCases"]),
        *((Verdict.SKIP, why, names) for why, names in run["skippedCases"].items()),
    ):
        for name in names:
            if name not in cases:
                yield f"{name} is no case of the claims"
            elif name in told:
                yield f"{name} is told of twice"
            else:
                told[name] = (verdict, why)
    if not all(run["skippedCases"].values()):
        yield "a reason to skip has no case"
    for name, case in cases.items():
        wrong = _strange(case, told.get(name, (Verdict.PASS, "")), driver["formats"], features)
        if wrong:
            yield f"{name}: {wrong}"
    results = [_result_of(case, told.get(name, (Verdict.PASS, ""))[0], catalogue) for name, case in cases.items()]
    lists, untested = _clause_lists(results, claims, catalogue)
    for name in _LISTS:
        if predicate[name] != lists[name]:
            yield f"{name} is not what the cases make of it: {_first_difference(predicate[name], lists[name])}"
    for why, names in untested.items():
        if run["untestedClauses"][why] != names:
            yield f"untestedClauses, {why}, is not what the cases make of it"
    if predicate["result"] != _result(lists, untested):
        yield f"the result is {predicate['result']}, and the cases make it {_result(lists, untested)}"
    counts = {
        "planned": len(cases),
        "passed": len(cases) - len(told),
        "failed": len(run["failedCases"]),
        "skipped": sum(map(len, run["skippedCases"].values())),
        "informative": len(run["informativeCases"]),
    }
    if run["cases"] != counts:
        yield "the numbers of cases are not those of the cases"
    if not any(lists.values()):
        yield "nothing was judged"


def _strange(
    case: Case, told: tuple[Verdict, str], formats: Mapping[str, Sequence[str]], features: frozenset[str]
) -> str:
    """Why a case cannot have this verdict, or nothing."""
    verdict, why = told
    reason = skip_reason(case, formats, features)
    if reason:
        return "" if told == (Verdict.SKIP, reason) else f"is skipped because {reason}"
    if verdict is Verdict.SKIP:
        return "" if why.startswith(_UNSUPPORTED) else "is not skipped for this reason"
    expect = case.expect
    for feature, instead in case.lacking.items():
        if not has_feature(feature, features):
            expect = instead
    informative = case.role == "reader" and expect == "informative"
    if informative and verdict is Verdict.PASS:
        return "only informs, and does not pass"
    return "only informs" if verdict is Verdict.INFO and not informative else ""


def _result_of(case: Case, verdict: Verdict, catalogue: Catalogue) -> CaseResult:
    return CaseResult(
        case=case.id,
        title=case.title,
        format=case.format,
        topic=case.topic,
        role=case.role,
        clauses=case.clauses,
        verdict=verdict,
        judges=judged_clauses(case, catalogue, verdict),
    )


def _first_difference(said: Sequence[str], made: Sequence[str]) -> str:
    more, less = sorted(set(said) - set(made)), sorted(set(made) - set(said))
    return f"{more[0]} does not belong there" if more else f"{less[0]} is missing" if less else "the order differs"


# -- showing -------------------------------------------------------------------------------------------------------


def _line(head: str, text: str) -> Iterator[str]:
    """A line with its head, broken where it is too long."""
    parts = textwrap.wrap(shown(text).replace("\n", " "), 98, break_on_hyphens=False) or [""]
    for number, part in enumerate(parts):
        yield f"{'' if number else head:<12}{part}"


def _n(things: Sequence[Any], word: str) -> str:
    return f"{len(things):,} {word}{'' if len(things) == 1 else 's'}"
