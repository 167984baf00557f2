"""Findings of ``check``: per file, as JSON, and as SARIF 2.1.0 for code hosts and editors."""

from __future__ import annotations

import contextlib
import importlib
import traceback
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from trajconform import __version__
from trajconform.model.errors import TrajconformError, Violation
from trajconform.model.location import Place, is_url, localized, redacted, shown
from trajconform.model.remote import RemoteError
from trajconform.model.work import Progress, Work


@dataclass(frozen=True)
class FileFindings:
    """What the checker found in one file; ``problem`` says why it could not be looked at."""

    file: str
    format: str
    violations: tuple[Violation, ...] = ()
    problem: str = ""
    interrupted: bool = False

    @property
    def broken(self) -> bool:
        """Whether an absolute clause is broken; a SHOULD alone leaves a file conforming."""
        return any(v.level in ("MUST", "MUST NOT") for v in self.violations)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "file": self.file,
            "format": self.format,
            "conforms": not self.problem and not self.broken and not self.interrupted,
            "problem": self.problem or None,
            **({"interrupted": True} if self.interrupted else {}),
            "violations": [asdict(v) for v in self.violations],
        }


def check_file(
    file: Place, format_name: str | None, work: Work | None = None, progress: Progress | None = None
) -> FileFindings:
    """Run the checker of a file's format. A file that cannot be read at all is a problem, not a violation, and so is
    a fault of the checker itself: other files are looked at all the same.

    Ctrl-C ends the check of this file with what was found so far.
    """
    from trajconform.commands.inspect import guess_format

    name, kind = shown(file), format_name or ""
    found: list[Violation] = []
    try:
        place = localized(file)
        if not is_url(place):
            place = Path(place)
            if not place.exists():
                return FileFindings(name, kind, problem="no such file or folder")
            if not place.is_file() and not place.is_dir():
                return FileFindings(name, kind, problem="neither a file nor a folder")
        kind = format_name or guess_format(place)
        module = importlib.import_module(f"trajconform.{kind}.checker")
        with contextlib.closing(module.findings(place, work or Work(), progress)) as violations:
            for violation in violations:
                found.append(violation)
        return FileFindings(name, kind, tuple(found))
    except KeyboardInterrupt:
        return FileFindings(name, kind, tuple(found), interrupted=True)
    except RemoteError as error:
        return FileFindings(name, kind, problem=str(error).removeprefix(f"{name}: "))
    except OSError as error:
        return FileFindings(name, kind, problem=f"cannot be read: {error.strerror or error}")
    except click.UsageError as error:
        return FileFindings(name, kind, problem=error.message)
    except TrajconformError as error:
        return FileFindings(name, kind, problem=str(error).removeprefix(f"{name}: "))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        message = f"the checker itself failed, at {where}: {type(error).__name__}: {redacted(str(error))}"
        return FileFindings(name, kind, problem=message)


def _uri(one: FileFindings, violation: Violation) -> str:
    """Where a violation is, as a reference that may stand in a URI: the node of a store, or the file."""
    if is_url(one.file):
        return quote(f"{one.file}/{violation.path}" if one.format == "mrec" else one.file, safe="/:?&=*%")
    path = Path(one.file)
    if one.format == "mrec" and path.is_dir() and not violation.path.startswith("/"):
        path = path / violation.path
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def sarif_document(found: Iterable[FileFindings]) -> dict[str, Any]:
    """SARIF 2.1.0: one rule a clause that is broken, one result a violation."""
    from trajconform.spec.catalogue import load_catalogue

    clauses = load_catalogue().clauses
    used: dict[str, None] = {}
    results: list[dict[str, Any]] = []
    notifications: list[dict[str, Any]] = []
    for one in found:
        problem = one.problem or ("the check was interrupted" if one.interrupted else "")
        if problem:
            notifications.append({"level": "error", "message": {"text": f"{one.file}: {problem}"}})
        for violation in one.violations:
            used.setdefault(violation.clause)
            region = {"region": {"byteOffset": violation.offset}} if violation.offset is not None else {}
            results.append(
                {
                    "ruleId": violation.clause,
                    "level": "error" if violation.level in ("MUST", "MUST NOT") else "warning",
                    "message": {"text": f"{violation.place}: {violation.message}"},
                    "locations": [
                        {
                            "physicalLocation": {
                                "artifactLocation": {"uri": _uri(one, violation)},
                                **region,
                            },
                            "logicalLocations": [{"fullyQualifiedName": violation.place}],
                        }
                    ],
                }
            )
    rules = [
        {
            "id": name,
            "shortDescription": {"text": f"{clauses[name].role}, {clauses[name].level}"},
            "fullDescription": {"text": clauses[name].statement},
        }
        for name in used
        if name in clauses
    ]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "trajconform", "version": __version__, "rules": rules}},
                "invocations": [
                    {"executionSuccessful": not notifications, "toolExecutionNotifications": notifications}
                ],
                "results": results,
            }
        ],
    }
