"""Names that somebody asked for and that there are none of: what was meant, and where the names are listed."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable
from pathlib import Path

from trajconform.model.errors import TrajconformError
from trajconform.spec.catalogue import Catalogue
from trajconform.vectors.cases import case_files, load_cases

_WHERE = {
    "clause": "'trajconform clauses' lists them all",
    "topic": "'trajconform clauses' shows them",
    "case": "'trajconform coverage' lists clauses and their cases",
}


def nearest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The names that somebody may have meant, best first; letter case does not count."""
    by_fold = {one.casefold(): one for one in known}
    return [by_fold[fold] for fold in difflib.get_close_matches(name.casefold(), list(by_fold), n=most)]


def unknown(kind: str, name: str, known: Iterable[str]) -> TrajconformError:
    """The error for a name that does not exist: what comes near to it, and where all of them are listed."""
    return _unknown(kind, name, known, _WHERE[kind])


def _unknown(kind: str, name: str, known: Iterable[str], where: str) -> TrajconformError:
    near = nearest(name, known)
    hint = f"; near: {', '.join(near)}" if near else ""
    return TrajconformError(f"there is no {kind} '{name}'{hint}. {where}.")


def check_names(catalogue: Catalogue, clauses: Iterable[str] = (), topics: Iterable[str] = ()) -> None:
    """`TrajconformError` for the first clause or topic that does not exist."""
    for name in clauses:
        if name not in catalogue.clauses:
            raise unknown("clause", name, catalogue.clauses)
    known = list(dict.fromkeys(chapter.topic for chapter in catalogue.chapters))
    for name in topics:
        if name not in known:
            raise _unknown("topic", name, known, f"Topics are: {', '.join(known)}")


def case_ids(root: Path) -> list[str]:
    """The ids of all case files, a family once; no file is read."""
    return [path.relative_to(root / "vectors").with_suffix("").as_posix() for path in case_files(root)]


def no_case(root: Path, globs: Iterable[str], others: Iterable[str] = ()) -> TrajconformError:
    """The error for a selection that nothing fits. ``others`` are further options that were given."""
    known = case_ids(root)
    for glob in globs:
        family, _, member = glob.partition("@")
        if any(fnmatch.fnmatchcase(case, family) for case in known):
            if not member or load_cases(root, globs=(glob,)):
                continue
            members = [case.id for case in load_cases(root, globs=(family,))]
            return unknown("case", glob, members)
        if not any(sign in glob for sign in "*?["):
            return unknown("case", glob, known)
        return TrajconformError(f"no case fits '{glob}'. {_WHERE['case']}.")
    given = ", ".join(others)
    return TrajconformError(f"no case fits{f' all of {given}' if given else ''}. {_WHERE['case']}.")
