"""The HTML report: one file that needs nothing else, made from one or several JSON reports.

The page's head and its matrix of topics are written by a template; cases are data in a script element, and the page's
own script makes what is looked at. Names, messages, logs and file contents come from drivers and stores that nobody has
to trust: the template escapes them, the data cannot end its element, the script sets texts only, and the page's policy
lets nothing run but that one script, known by its digest.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trajconform import __version__, kit
from trajconform.model.errors import TrajconformError
from trajconform.model.reply import OPTIONAL_PARTS
from trajconform.report import exhibits
from trajconform.report.document import specification_digest, vectors_digest
from trajconform.report.exhibits import Pools, aligned, clip, exhibit, lines_of, states_of
from trajconform.spec.catalogue import Catalogue
from trajconform.vectors.cases import Case, load_cases

VERDICTS = ("PASS", "FAIL", "ERROR", "SKIP", "INFO")
_STATUSES = ("pass", "partial", "fail", "error", "untested")
_MOST_DIFFERENCES = 50
_MOST_LOG = 4000
_MOST_CALL = 500
_MOST_DEVIATIONS = 100
_MOST_KILLERS = 20
_MOST_OTHERS = 12
_FATES = ("survives", "unusable", "elsewhere", "killed")


def render_html(
    reports: Sequence[Mapping[str, Any]], catalogue: Catalogue, mutants: Mapping[str, Any] | None = None
) -> str:
    """The page for reports that fit ``schema/kit/report.schema.json``, and for what is known of mutants.

    ``mutants`` is what ``trajconform prove --json`` writes. `TrajconformError` where it is something else or there is no
    report.
    """
    import jinja2
    import markupsafe

    if not reports:
        raise TrajconformError("there is no report to render")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trajconform.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    assert environment.loader is not None
    # Taken as they stand: braces mean something else in them than in a template.
    style, script = (environment.loader.get_source(environment, f"report.{kind}")[0] for kind in ("css", "js"))
    topics, clauses = _topics(reports, catalogue)
    data = page_data(reports, topics, clauses)
    page = environment.get_template("report.html").render(
        policy=_policy(script, style),
        style=markupsafe.Markup(style),
        script=markupsafe.Markup(script),
        data=markupsafe.Markup(script_json(data)),
        version=__version__,
        runs=[_card(report, label) for report, label in zip(reports, labels(reports), strict=True)],
        warnings=[*_warnings(reports, catalogue)],
        groups=_matrix(topics, clauses),
        mutants=None if mutants is None else _mutants(mutants),
        verdicts=VERDICTS,
        recorded=any(report["deviations"] is not None for report in reports),
        cases=len(data["cases"]),
        roles=sorted({case[3] for case in data["cases"]}),
        profiles=sorted({clause["profile"] for clause in clauses.values() if clause["profile"]}),
        features=sorted({need for case in data["cases"] for need in case[5]}),
    )
    # Half a surrogate pair, which JSON can carry, is no text; it is shown as its escape.
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def script_json(document: Any) -> str:
    """JSON that stands safely in a script element: no ``<``, ``>`` or ``&``, nothing but ASCII."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(script: str, style: str) -> str:
    """The page's content security policy: its one script, its one style sheet, nothing from anywhere else."""

    def known(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    return (
        f"default-src 'none'; script-src {known(script)}; style-src {known(style)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


# -- implementations -----------------------------------------------------------------------------------------------


def labels(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """A short name for each report: the driver, its version where two share the name, its time where they share both."""
    drivers = [report["driver"] for report in reports]
    names = [driver["name"] for driver in drivers]
    out = []
    for report, driver in zip(reports, drivers, strict=True):
        label = driver["name"]
        if names.count(label) > 1:
            label = f"{label} {driver['version']}"
        if sum((d["name"], d["version"]) == (driver["name"], driver["version"]) for d in drivers) > 1:
            label = f"{label} {report['started'][:16].replace('T', ' ')}"
        out.append(clip(label, 60))
    return [f"{label} ({out[: i + 1].count(label)})" if out.count(label) > 1 else label for i, label in enumerate(out)]


def verdict_of(report: Mapping[str, Any]) -> tuple[str, str]:
    """What a report says of its implementation: a mark (pass, fail or error) and a sentence."""
    if report["interrupted"]:
        return "error", f"interrupted after {len(report['cases']):,} of {report['planned']:,} cases"
    deviations = report["deviations"]
    if deviations is not None:
        if deviations:
            number = len(deviations)
            return "fail", f"not as recorded: {number} deviation{'s' if number != 1 else ''} from the known failures"
        known = report["counts"]["FAIL"] + report["counts"]["ERROR"]
        return ("partial", f"{known} known failures, as recorded") if known else ("pass", "conforms, as recorded")
    if report["exit_status"] == 0:
        return "pass", "conforms to every clause that was tested"
    if report["exit_status"] == 1:
        return "fail", "does not conform"
    return "error", "could not be judged"


def _card(report: Mapping[str, Any], label: str) -> dict[str, Any]:
    driver, counts = report["driver"], report["counts"]
    total = sum(counts.values())
    bars, at = [], 0.0
    for verdict in VERDICTS:
        width = 100 * counts[verdict] / total if total else 0
        if width:
            bars.append({"verdict": verdict, "x": round(at, 3), "width": round(width, 3)})
            at += width
    states = [entry["status"] for entry in report["clauses"].values()]
    mark, sentence = verdict_of(report)
    return {
        "label": label,
        "name": clip(driver["name"], 80),
        "version": clip(driver["version"], 40),
        "language": clip(driver["language"], 40),
        "description": clip(driver["description"], 300),
        "claims": "; ".join(f"{name}: {', '.join(roles)}" for name, roles in driver["formats"].items()),
        "features": clip(", ".join(driver["features"]), 300),
        "mark": mark,
        "sentence": sentence,
        "counts": [(verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict]],
        "bars": bars,
        "clauses": [(state, states.count(state)) for state in _STATUSES if states.count(state)],
        "deviations": [
            (clip(d["case"], 300), clip(d["kind"], 80)) for d in (report["deviations"] or [])[:_MOST_DEVIATIONS]
        ],
        "deviations_more": max(0, len(report["deviations"] or []) - _MOST_DEVIATIONS),
        "when": report["started"][:16].replace("T", " "),
        "seconds": report["seconds"],
        "kit": report["kit"]["version"],
    }


def _warnings(reports: Sequence[Mapping[str, Any]], catalogue: Catalogue) -> Iterable[str]:
    specification, vectors = specification_digest(catalogue), vectors_digest()
    specifications = {report["kit"]["specification"] for report in reports}
    if len(specifications) > 1:
        yield "These reports were made by different specifications; a clause shows the words of the first that has it."
    elif specifications != {specification}:
        yield "The report was made by another specification than that of the kit which wrote this page."
    if any(report["kit"].get("vectors") != vectors for report in reports):
        yield "Cases are shown as the kit has them which wrote this page; a report was made with other cases."


# -- topics and clauses --------------------------------------------------------------------------------------------


def _topics(
    reports: Sequence[Mapping[str, Any]], catalogue: Catalogue
) -> tuple[dict[tuple[str, str], str], dict[str, dict[str, Any]]]:
    """Topics in the order of the specification with their titles, and the clauses that a report knows."""
    topics = {(chapter.format, chapter.topic): chapter.title for chapter in catalogue.chapters}
    known = {clause.id: number for number, clause in enumerate(catalogue.clauses.values())}
    found: dict[str, dict[str, Any]] = {}
    for number, report in enumerate(reports):
        for name, entry in report["clauses"].items():
            clause = found.setdefault(
                name, {**entry, "statuses": [None] * len(reports), "tally": [None] * len(reports)}
            )
            clause["statuses"][number] = entry["status"]
            clause["tally"][number] = entry["counts"]
    # Clauses that a case names beside those that it judges have words too.
    named = {name for report in reports for case in report["cases"] for name in case["clauses"]} - set(found)
    for words in catalogue.clauses.values():
        if words.id in named:
            entry = {key: getattr(words, key) for key in ("role", "level", "topic", "format", "profile", "statement")}
            found[words.id] = {**entry, "statuses": [None] * len(reports), "tally": [None] * len(reports)}
    ordered = dict(sorted(found.items(), key=lambda item: (known.get(item[0], len(known)), item[0])))
    for clause in ordered.values():
        topics.setdefault((clause["format"], clause["topic"]), clause["topic"])
    for report in reports:
        for case in report["cases"]:
            topics.setdefault((case["format"], case["topic"]), case["topic"])
    return topics, ordered


def _matrix(topics: Mapping[tuple[str, str], str], clauses: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the matrix by format: a topic and, for each implementation, its clauses by status."""
    numbers = {topic: number for number, topic in enumerate(topics)}
    groups: dict[str, list[dict[str, Any]]] = {}
    for (format_name, topic), title in topics.items():
        inside = [c for c in clauses.values() if (c["format"], c["topic"]) == (format_name, topic)]
        if not any(state for clause in inside for state in clause["statuses"]):
            continue
        cells = []
        for number in range(len(inside[0]["statuses"])):
            states = [clause["statuses"][number] for clause in inside if clause["statuses"][number]]
            cells.append(_cell(states))
        groups.setdefault(format_name, []).append(
            {"number": numbers[format_name, topic], "topic": topic, "title": clip(title, 80), "cells": cells}
        )
    return [{"format": name, "rows": rows} for name, rows in groups.items()]


def _cell(states: Sequence[str]) -> dict[str, Any]:
    counts = {state: states.count(state) for state in _STATUSES}
    bars, at = [], 0.0
    for state in _STATUSES:
        width = 100 * counts[state] / len(states) if states else 0
        if width:
            bars.append({"state": state, "x": round(at, 3), "width": round(width, 3)})
            at += width
    # A topic with a clause that nothing tested has not passed, whatever the others say.
    worst = next((s for s in ("fail", "error", "partial", "untested", "pass") if counts[s]), "none")
    if worst == "untested" and counts["pass"]:
        worst = "partial"
    rest = [f"{counts[state]} {state}" for state in ("fail", "error", "partial", "untested") if counts[state]]
    told = f"{counts['pass']} of {len(states)} clauses pass" + (f", {', '.join(rest)}" if rest else "")
    return {
        "worst": worst,
        "passed": counts["pass"],
        "total": len(states),
        "bad": counts["fail"] + counts["error"],
        "bars": bars,
        "told": told if states else "not judged",
    }


# -- cases ---------------------------------------------------------------------------------------------------------


def page_data(
    reports: Sequence[Mapping[str, Any]],
    topics: Mapping[tuple[str, str], str],
    clauses: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Everything the page's script works on.

    ``cases`` are ``[id, title, topic, role, clauses, needs, exhibit]``; ``results`` one list for each report with, for
    each case, None or ``[verdict, message, seconds, judged, known, detail]``; ``known`` is 1 for a failure that was known
    and 2 for a verdict that is not as recorded.
    """
    pools = Pools()
    text = pools.texts.put
    topic_numbers = {topic: number for number, topic in enumerate(topics)}
    clause_numbers = {name: number for number, name in enumerate(clauses)}
    known = {case.id: case for case in load_cases(kit.root())}
    order = {name: number for number, name in enumerate(known)}
    entries: dict[str, Mapping[str, Any]] = {}
    for report in reports:
        for entry in report["cases"]:
            entries.setdefault(entry["case"], entry)
    names = sorted(entries, key=lambda name: (order.get(name, len(order)), name))
    cases = []
    for name in names:
        entry = entries[name]
        case = known.get(name)
        cases.append(
            [
                clip(name, 300),
                clip(entry["title"], 500),
                topic_numbers[entry["format"], entry["topic"]],
                entry["role"],
                [clause_numbers.get(clause, clip(clause, 60)) for clause in entry["clauses"]],
                [] if case is None else _needs(case),
                None if case is None else exhibit(case, pools),
            ]
        )
    results = []
    for report in reports:
        by_name = {entry["case"]: entry for entry in report["cases"]}
        odd = None if report["deviations"] is None else {entry["case"]: entry["kind"] for entry in report["deviations"]}
        argument = _argument(report)
        told = []
        for name in names:
            entry = by_name.get(name)
            told.append(
                None if entry is None else _result(entry, odd, argument, known.get(name), pools, clause_numbers)
            )
        results.append(told)
    return {
        "labels": labels(reports),
        "topics": [[format_name, topic, clip(title, 80)] for (format_name, topic), title in topics.items()],
        "clauses": [
            [
                name,
                topic_numbers[clause["format"], clause["topic"]],
                clause["role"],
                clause["level"],
                clause["profile"],
                clip(clause["statement"]),
                clause["statuses"],
                clause["tally"],
            ]
            for name, clause in clauses.items()
        ],
        "cases": cases,
        "results": results,
        "commands": [text(_repeat("", _argument(report))) for report in reports],
        "pools": pools.document(),
    }


def _needs(case: Case) -> list[str]:
    from trajconform.harness.export import needs

    return needs(case)


def _argument(report: Mapping[str, Any]) -> str | None:
    """What ``--driver`` takes for the implementation of a report; older reports do not say it."""
    driver = report["driver"]
    if "argument" in driver or driver["source"] == "in process":
        argument: str | None = driver.get("argument")
        return argument
    return str(driver["source"])


def _repeat(case: str, argument: str | None) -> str:
    driver = ["--driver", argument] if argument else []
    words = ["trajconform", "run", *driver, "--case", *([case] if case else [])]
    return clip(shlex.join(words), 600)


def _result(
    entry: Mapping[str, Any],
    odd: Mapping[str, str] | None,
    argument: str | None,
    case: Case | None,
    pools: Pools,
    clause_numbers: Mapping[str, int],
) -> list[Any]:
    verdict = entry["verdict"]
    message = entry["message"] or entry.get("note", "")
    bad = verdict in ("FAIL", "ERROR")
    judged = entry.get("judges")
    return [
        VERDICTS.index(verdict),
        pools.texts.put(clip(message)) if message else -1,
        entry["seconds"],
        None if judged in (None, entry["clauses"]) else [clause_numbers.get(name, clip(name, 60)) for name in judged],
        0 if odd is None else 2 if entry["case"] in odd else int(bad),
        _detail(entry, argument, case, pools) if bad else None,
    ]


def _detail(entry: Mapping[str, Any], argument: str | None, case: Case | None, pools: Pools) -> dict[str, Any]:
    """What is shown of a failure, of bounded size whatever the driver sent."""
    out: dict[str, Any] = {"repeat": _repeat(entry["case"], argument)}
    differences = entry.get("differences") or []
    if differences:
        out["differences"] = [
            [
                clip(d["path"], 300),
                clip(d["expected"]),
                clip(d["actual"]),
                clip(d.get("note", ""), 300),
                clip(d.get("expected_bits", ""), 64),
                clip(d.get("actual_bits", ""), 64),
            ]
            for d in differences[:_MOST_DIFFERENCES]
        ]
        if len(differences) > _MOST_DIFFERENCES:
            out["differences_more"] = len(differences) - _MOST_DIFFERENCES
    exchanges = entry.get("exchanges") or []
    call = entry.get("call")
    decisive = exchanges[call if call is not None and call < len(exchanges) else -1] if exchanges else None
    reply = (decisive or {}).get("reply") or {}
    answer = reply.get("ok") if entry["role"] == "reader" else None
    expected = entry.get("expected")
    if isinstance(answer, Mapping) and answer:
        wanted = expected if isinstance(expected, Mapping) and "format" in expected else {}
        rows = list(aligned(lines_of(wanted) if wanted else (), lines_of(answer)))
        if wanted:
            # Parts in which conforming readers may differ are compared only where the case names them.
            told = {_root(difference["path"]) for difference in differences}
            rows = [row for row in rows if _root(row[0]) in told or _root(row[0]) not in OPTIONAL_PARTS]
        shown = _most_telling(rows) if wanted else rows[: exhibits.MOST_LINES]
        out["compared" if wanted else "answer"] = shown
        if len(rows) > len(shown):
            out["lines_more"] = len(rows) - len(shown)
        if entry["format"] == "mrec":
            first = case.read_frames[0] if case is not None and case.read_frames is not None else 0
            states = [pools.states.put(state) for state in states_of(answer, first)]
            if states:
                out["states"] = states
    elif reply:
        out["said"] = clip(json.dumps(reply, ensure_ascii=False))
    if entry["role"] in ("writer", "crash"):
        at = exchanges.index(decisive) if decisive is not None else 0
        first_call = max(0, min(at - exhibits.MOST_CALLS // 2, len(exchanges) - exhibits.MOST_CALLS))
        out["calls"] = [
            [number + 1, _call(exchange["request"]), _answer(exchange["reply"]), int(number == call)]
            for number, exchange in enumerate(exchanges)
            if first_call <= number < first_call + exhibits.MOST_CALLS
        ]
    log = entry.get("stderr") or ""
    if log.strip():
        out["log"] = ("... " if len(log) > _MOST_LOG else "") + log.strip()[-_MOST_LOG:]
    if entry.get("kept"):
        out["kept"] = clip(entry["kept"], 300)
    return out


def _root(path: str) -> str:
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def _most_telling(rows: list[list[Any]]) -> list[list[Any]]:
    """At most `MOST_LINES` lines, those that differ before the others, in their order."""
    if len(rows) <= exhibits.MOST_LINES:
        return rows
    differs = [row[1] != row[3] or len(row[2]) > 1 or len(row[4]) > 1 for row in rows]
    ranked = sorted(range(len(rows)), key=lambda number: (not differs[number], number))
    return [rows[number] for number in sorted(ranked[: exhibits.MOST_LINES])]


def _call(request: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in request.items() if key not in ("op", "format", "path")}
    told = " " + json.dumps(rest, ensure_ascii=False) if rest else ""
    return clip(f"{request.get('op')}{told}", _MOST_CALL)


def _answer(reply: Mapping[str, Any] | None) -> str:
    return "no usable answer" if reply is None else clip(json.dumps(reply, ensure_ascii=False), _MOST_CALL)


# -- mutants -------------------------------------------------------------------------------------------------------


def _mutants(document: Mapping[str, Any]) -> dict[str, Any]:
    """The kill matrix for the page: what is not caught first, then as it came."""
    try:
        rows = [_mutant(entry) for entry in document["mutants"]]
        precision, scope, lacking = float(document["precision"]), str(document["scope"]), list(document["lacking"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TrajconformError(
            f"this is no kill matrix ({error!r}); 'trajconform prove --json FILE' writes one"
        ) from None
    rows.sort(key=lambda row: _FATES.index(row["status"]) if row["status"] in _FATES else -1)
    return {
        "rows": rows,
        "killed": sum(row["status"] == "killed" for row in rows),
        "total": len(rows),
        "precision": f"{100 * precision:.0f} %",
        "scope": clip(scope, 40),
        "lacking": [clip(str(clause), 60) for clause in lacking],
    }


def _mutant(entry: Mapping[str, Any]) -> dict[str, Any]:
    killers = {
        clip(str(clause), 60): (
            len(cases),
            [clip(str(case), 200) for case in cases[:_MOST_KILLERS]],
            max(0, len(cases) - _MOST_KILLERS),
        )
        for clause, cases in entry["killers"].items()
    }
    return {
        "name": clip(str(entry["mutant"]), 120),
        "mistake": clip(str(entry["mistake"]), 400),
        "clauses": [clip(str(clause), 60) for clause in entry["clauses"]],
        "status": clip(str(entry["status"]), 40),
        "fault": clip(str(entry["fault"]), 300),
        "killers": killers,
        "others": [clip(str(clause), 60) for clause in entry["others"][:_MOST_OTHERS]],
        "others_more": max(0, len(entry["others"]) - _MOST_OTHERS),
        "precision": f"{100 * float(entry['precision']):.0f} %" if entry["failing"] else "",
    }
