"""pytest: one test item a case of the kit, for a driver that ``--trajconform-driver`` names.

Without that option nothing of the kit is imported. An item's id is the id of its case, so that

    pytest trajconform --trajconform-driver my-driver
    pytest trajconform::otj/tail/clean --trajconform-driver my-driver

run all cases or one, alone; without such a name they run beside the tests of the project. A skipped case is a skipped
item with the reason, a known failure is expected to fail, and what is not as the known failures say fails. With xdist
each worker has one driver process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from trajconform.harness.baseline import Expectation
    from trajconform.harness.drivertoml import DriverSpec
    from trajconform.harness.inprocess import InProcess
    from trajconform.harness.runner import OneByOne
    from trajconform.harness.verdicts import CaseResult, Deviation
    from trajconform.spec.catalogue import Catalogue
    from trajconform.vectors.cases import Case

NAME = "trajconform"
T = TypeVar("T")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, named like those of ``trajconform run``."""
    group = parser.getgroup(NAME, "trajconform: judge a reader or writer of mrec or otj, one item a case")
    group.addoption(
        "--trajconform-driver",
        metavar="DRIVER",
        help="A folder with a driver.toml, the name of a driver of the kit, or module:attribute of a Python object.",
    )
    for name, what in (
        ("format", "Only cases of this format, mrec or otj (repeatable)."),
        ("role", "Only cases of this role: reader, writer, store or crash (repeatable)."),
        ("topic", "Only cases of this topic (repeatable)."),
        ("clause", "Only cases that bind this clause (repeatable)."),
        ("case", "Only cases whose id fits the pattern (repeatable)."),
    ):
        group.addoption(f"--trajconform-{name}", action="append", default=[], metavar=name.upper(), help=what)
    group.addoption(
        "--trajconform-expect",
        metavar="FILE",
        help="Known failures (YAML); without it known-failures.yaml beside the driver's driver.toml.",
    )
    group.addoption("--trajconform-no-expect", action="store_true", help="Go by no known failures.")
    group.addoption("--trajconform-keep", metavar="DIR", help="Keep the evidence of each failing case in DIR.")
    group.addoption("--trajconform-timeout", type=float, metavar="SECONDS", help="Limit for one request.")


def pytest_configure(config: pytest.Config) -> None:
    """Look at the driver before anything is collected; without one this is all that happens."""
    if config.getoption("--trajconform-driver") is None:
        return
    config.pluginmanager.register(_Plugin(config), "trajconform-cases")


class CaseFailed(Exception):
    """What a case that fails raises; the text is the report of the case."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(text)
        self.message, self.text = message, text


class _Plugin:
    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.argument: str = config.getoption("--trajconform-driver")
        self.named: list[str] = []
        """Cases named among the arguments."""
        self.every = True
        self._bench: OneByOne | None = None
        self._usage(self._load)

    def _load(self) -> None:
        from trajconform.harness.baseline import load_expectations
        from trajconform.harness.drivertoml import DriverSpec, resolve_driver
        from trajconform.harness.runner import check_startable
        from trajconform.model.errors import TrajconformError
        from trajconform.spec.catalogue import FORMATS, load_catalogue
        from trajconform.vectors.cases import ROLES
        from trajconform.vectors.selection import check_names

        self.catalogue: Catalogue = load_catalogue()
        self.driver: DriverSpec | InProcess = resolve_driver(self.argument)
        check_startable(self.driver)
        names = {"formats": "format", "roles": "role", "topics": "topic", "clauses": "clause", "globs": "case"}
        self.selection = {key: tuple(self._option(option)) for key, option in names.items()}
        for key, known in (("formats", FORMATS), ("roles", ROLES)):
            for name in self.selection[key]:
                if name not in known:
                    option = f"--trajconform-{names[key]}"
                    raise TrajconformError(f"{option} is one of {', '.join(known)}, not {name!r}")
        check_names(self.catalogue, self.selection["clauses"], self.selection["topics"])
        path = self._option("expect")
        if path is None and not self._option("no-expect") and isinstance(self.driver, DriverSpec):
            path = self.driver.known_failures
        self.expected_in = path
        self.expectations: Sequence[Expectation] = () if path is None else load_expectations(Path(path))

    def _option(self, name: str) -> Any:
        return self.config.getoption(f"--trajconform-{name}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Take ``trajconform`` and ``trajconform::CASE`` for what they mean, unless there is a file of that name."""
        args = session.config.args
        mine = [arg for arg in args if arg.partition("::")[0] == NAME and not Path(NAME).exists()]
        self.named = [arg.partition("::")[2] for arg in mine]
        self.every = "" in self.named or not self.named
        if session.config.pluginmanager.hasplugin("dsession"):
            self._usage(self._select)  # the workers collect, but nobody would hear what they complain about
        else:
            args[:] = [arg for arg in args if arg not in mine]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Put the cases behind the items of the project; ``-k`` and ``-m`` choose among them like among any."""
        cases, stale = self._usage(self._select)
        parent = Cases.from_parent(session, name=NAME, nodeid=NAME, plugin=self, cases=cases, stale=stale)
        items += session.genitems(parent)

    def _usage(self, act: Callable[[], T]) -> T:
        from trajconform.model.errors import TrajconformError

        try:
            return act()
        except TrajconformError as error:
            raise pytest.UsageError(f"trajconform: {error}") from None

    def _select(self) -> tuple[Sequence[Case], Sequence[Deviation]]:
        """The cases that were asked for, and the known failures that no case fits any more."""
        from trajconform import kit
        from trajconform.harness.baseline import stale_entries
        from trajconform.vectors.cases import load_cases
        from trajconform.vectors.selection import no_case

        root, known = kit.root(), set(self.catalogue.clauses)
        cases = load_cases(root, known=known, **self.selection)
        if self.every:
            if not cases:
                raise no_case(root, self.selection["globs"], ("the options that were given",))
            ids = [case.id for case in cases]
            return cases, stale_entries(
                self.expectations, ids, self.selection, lambda: [case.id for case in load_cases(root)]
            )
        wanted = set(self.named)
        for name in self.named:
            if not any(name in (case.id, case.id.partition("@")[0]) for case in cases):
                raise no_case(root, (name,), ("the options that were given",))
        return [case for case in cases if wanted & {case.id, case.id.partition("@")[0]}], ()

    def judge(self, case: Case) -> CaseResult:
        """What becomes of a case; the first one starts the driver, which stays."""
        from trajconform.harness.runner import OneByOne

        if self._bench is None:
            keep = self._option("keep")
            self._bench = OneByOne(
                self.driver,
                catalogue=self.catalogue,
                keep=None if keep is None else Path(keep),
                request_seconds=self._option("timeout"),
            )
        return self._bench.judge(case)

    def text(self, result: CaseResult, changes: Iterable[Deviation]) -> str:
        """The report of a case, with what of it is not as the known failures say."""
        from trajconform.harness.crash import CrashPlan
        from trajconform.report.console import case_text, shown

        plan = self._bench.plan if self._bench else CrashPlan()
        lines = [case_text(result, self.catalogue, self.argument, (plan.kills, plan.seed))]
        lines += [f"{change.kind}: {shown(change.message)} ({self.expected_in})" for change in changes]
        return "\n".join(lines)

    def pytest_report_header(self) -> str:
        """One line about who is judged."""
        known = f", known failures of {self.expected_in}" if self.expected_in else ""
        return f"trajconform: driver {self.argument}{known}"

    def pytest_unconfigure(self) -> None:
        """End the driver, however the session ends."""
        if self._bench is not None:
            self._bench.close()
            self._bench = None


class Cases(pytest.Collector):
    """All that was selected: an item a case, and one for each known failure that no case fits."""

    def __init__(self, *, plugin: _Plugin, cases: Sequence[Case], stale: Sequence[Deviation], **more: Any) -> None:
        super().__init__(**more)
        self.plugin, self.cases, self.stale = plugin, cases, stale

    def collect(self) -> Iterator[pytest.Item]:
        """The items, in the order of the cases."""
        for case in self.cases:
            yield CaseItem.from_parent(self, name=case.id, case=case, plugin=self.plugin)
        for stale in self.stale:
            yield StaleItem.from_parent(self, name=f"{stale.case} (known failure)", stale=stale, plugin=self.plugin)


class CaseItem(pytest.Item):
    """One case as a test."""

    def __init__(self, *, case: Case, plugin: _Plugin, **more: Any) -> None:
        super().__init__(**more)
        self.case, self.plugin = case, plugin
        for mark in (case.format, case.role):
            self.keywords[mark] = True

    def runtest(self) -> None:
        """Judge the case; what comes of it is what pytest calls it."""
        from trajconform.harness.baseline import changes
        from trajconform.harness.verdicts import Verdict
        from trajconform.model.errors import TrajconformError
        from trajconform.report.console import shown

        try:
            result = self.plugin.judge(self.case)
        except TrajconformError as error:
            self.session.shouldfail = f"trajconform: {error}"
            raise CaseFailed("there is no driver to judge", str(error)) from None
        self.user_properties += [("trajconform_verdict", result.verdict.value), ("clauses", ", ".join(result.blamed))]
        message = " ".join(shown(result.message, 300).split())
        expectations = self.plugin.expectations
        changed = [*changes([result], expectations)] if expectations else []
        if result.verdict in (Verdict.FAIL, Verdict.ERROR):
            entry = next((entry for entry in expectations if entry.covers(result.case)), None)
            if entry is not None and not changed and not self.config.option.runxfail:
                raise pytest.xfail.Exception(f"{', '.join(result.blamed)}: {entry.reason}")
            raise CaseFailed(f"{result.verdict}: {message}", self.plugin.text(result, changed))
        if changed:
            raise CaseFailed(f"{changed[0].kind}: {changed[0].message}", self.plugin.text(result, changed))
        if result.verdict is Verdict.SKIP:
            raise pytest.skip.Exception(message, _use_item_location=True)
        if result.verdict is Verdict.INFO:
            self.add_report_section("call", "trajconform", f"either outcome conforms: {message}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report of the case where that failed, and pytest's own for anything else."""
        if isinstance(excinfo.value, CaseFailed):
            return _Shown(excinfo.value, self.case.path)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The case file."""
        return self.case.root / self.case.path, 0, self.name


class StaleItem(pytest.Item):
    """A known failure of which there is no case any more."""

    def __init__(self, *, stale: Deviation, plugin: _Plugin, **more: Any) -> None:
        super().__init__(**more)
        self.stale, self.plugin = stale, plugin

    def runtest(self) -> None:
        """Say so."""
        raise CaseFailed(self.stale.message, f"stale entry: {self.stale.message} ({self.plugin.expected_in})")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The line that says it."""
        if isinstance(excinfo.value, CaseFailed):
            return _Shown(excinfo.value, str(self.plugin.expected_in))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The list of known failures."""
        return Path(str(self.plugin.expected_in)), 0, self.name


class _Shown:
    """A failure in the form that pytest prints: the whole report, and one line of it for summaries."""

    def __init__(self, failure: CaseFailed, path: str) -> None:
        self.text = failure.text
        self.reprcrash = SimpleNamespace(path=path, lineno=1, message=failure.message)

    def __str__(self) -> str:
        return self.text

    def toterminal(self, writer: Any) -> None:
        """Print the report."""
        for line in self.text.splitlines():
            writer.line(line, red=line.startswith(("FAIL ", "ERROR ")))
