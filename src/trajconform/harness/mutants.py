"""Mutants: the bundled implementation with one deliberate mistake each, and how they are registered.

The files of ``harness/mutants/`` hold them, a topic a file. Each is a function that changes the bundled code in place
when it is called, in a process of its own that ends with it::

    @mutant("MREC-COMMIT-03", role="reader", mistake="counts frames by the array step, whatever nstep says")
    def nstep_ignored() -> None:
        edit("mrec.view:View.nstep", 'if "nstep" in self.attributes:', "if False:")
"""

from __future__ import annotations
import __future__

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FunctionType
from typing import Any

from trajconform import kit
from trajconform.model.errors import TrajconformError, Violation

ROLES = ("reader", "writer", "store")
"""Who is broken: the reader, the writer, or the checker, which is what judges stores."""


@dataclass(frozen=True)
class Mutant:
    """One deliberate mistake.

    ``clauses`` are those that it breaks and has to be caught on; ``also`` those that fall with them, so that their
    failing is no wrong accusation. ``apply`` makes the mistake, in this process. ``spoils`` says that it may change its
    input, which then is not shared with other mutants.
    """

    name: str
    clauses: tuple[str, ...]
    role: str
    mistake: str
    topic: str
    apply: Callable[[], None]
    also: tuple[str, ...] = ()
    spoils: bool = False

    @property
    def format(self) -> str:
        """``mrec`` or ``otj``."""
        return self.clauses[0].split("-")[0].lower()

    @property
    def id(self) -> str:
        """File and name."""
        return f"{self.topic}/{self.name}"


_REGISTERED: dict[str, Mutant] = {}
_topic = ""


def mutant(
    *clauses: str, role: str, mistake: str, also: tuple[str, ...] = (), spoils: bool = False, name: str = ""
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a function as a mutant that breaks these clauses, by a mistake told in one sentence."""

    def register(apply: Callable[[], None]) -> Callable[[], None]:
        own = name or apply.__name__.replace("_", "-")
        made = Mutant(own, clauses, role, mistake, _topic, apply, also, spoils)
        if not clauses or role not in ROLES or not mistake:
            raise TrajconformError(f"the mutant {made.id} names no clause, role or mistake")
        if made.id in _REGISTERED:
            raise TrajconformError(f"the mutant {made.id} stands twice")
        _REGISTERED[made.id] = made
        return apply

    return register


def without(clause: str, *, role: str, mistake: str, also: tuple[str, ...] = ()) -> None:
    """Register the mutant that has all but one rule: it never reports (``store``) or refuses (``reader``) by ``clause``."""
    name = f"without-{clause.lower()}"

    def apply() -> None:
        forget(clause, role)

    mutant(clause, role=role, mistake=mistake, also=also, name=name)(apply)


def changed(
    name: str, clause: str, mistake: str, target: str, old: str, new: str, *, role: str, also: tuple[str, ...] = ()
) -> None:
    """Register a mutant that is one `edit`."""
    mutant(clause, role=role, mistake=mistake, also=also, name=name)(lambda: edit(target, old, new))


def load_mutants(root: Path | None = None) -> list[Mutant]:
    """All mutants, in the order of files and of definition. `TrajconformError` where a file cannot be read as that."""
    global _topic
    folder = (root or kit.root()) / "harness" / "mutants"
    _REGISTERED.clear()
    for path in sorted(folder.glob("*.py")):
        _topic = path.stem
        spec = spec_from_file_location(f"trajconform_mutants_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise TrajconformError(f"{path} cannot be loaded")
        module = module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    return list(_REGISTERED.values())


# -- ways to make a mistake ----------------------------------------------------------------------------------------


def find(target: str) -> tuple[Any, str, FunctionType]:
    """Where ``module:Class.function`` (below ``trajconform``) hangs, its name there, and the plain function."""
    module, _, path = target.partition(":")
    owner: Any = importlib.import_module(f"trajconform.{module}")
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    found = vars(owner).get(name)
    function = found.fget if isinstance(found, property) else found
    function = function.func if isinstance(function, cached_property) else function
    function = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
    function = inspect.unwrap(function) if callable(function) else function
    if not isinstance(function, FunctionType):
        raise TrajconformError(f"{target} is no function; a mutant has to follow the code that it changes")
    return owner, name, function


def edit(target: str, old: str, new: str, count: int = 1) -> None:
    """Change the text of a function, wherever it has been imported: ``old``, which stands there ``count`` times, to ``new``.

    `TrajconformError` where it does not stand there so often: the code has changed, and the mutant has to follow.
    """
    function = find(target)[2]
    text = textwrap.dedent(inspect.getsource(function))
    if text.count(old) != count:
        raise TrajconformError(
            f"{target} has {old!r} {text.count(old)} times, not {count}; the mutant has to follow it"
        )
    tree = ast.parse(text.replace(old, new))
    definition = tree.body[0]
    assert isinstance(definition, (ast.FunctionDef, ast.ClassDef))
    definition.decorator_list = []
    names: dict[str, Any] = {}
    code = compile(tree, f"<mutant of {target}>", "exec", flags=__future__.annotations.compiler_flag)
    exec(code, function.__globals__, names)
    function.__code__ = names[function.__name__].__code__


def swap(target: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: put a function in the place of another. It gets the original as its first argument, then the others."""

    def put(made: Callable[..., Any]) -> Callable[..., Any]:
        owner, name, function = find(target)
        original = FunctionType(
            function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
        )
        original.__kwdefaults__ = function.__kwdefaults__

        def replacement(*args: Any, **kwargs: Any) -> Any:
            return made(original, *args, **kwargs)

        found = vars(owner)[name]
        if isinstance(found, property):
            setattr(owner, name, property(replacement))
        elif isinstance(found, cached_property):
            lazy = cached_property(replacement)
            lazy.__set_name__(owner, name)
            setattr(owner, name, lazy)
        elif isinstance(found, (staticmethod, classmethod)):
            setattr(owner, name, type(found)(replacement))
        else:
            setattr(owner, name, replacement)
        return made

    return put


def forget(clause: str, role: str) -> None:
    """Never report a violation of a clause (``store``: the checker), or never refuse by it (``reader``)."""
    name = clause.split("-")[0].lower()
    if role == "store":

        @swap(f"{name}.checker:findings")
        def findings(original: Any, *args: Any, **kwargs: Any) -> Iterator[Violation]:
            return (v for v in original(*args, **kwargs) if v.clause != clause)

        return
    if name == "otj":
        from trajconform.otj.rules import BOOK

        BOOK._rules[:] = [r for r in BOOK._rules if (r.clause, r.role) != (clause, role)]
        return
    reader = importlib.import_module("trajconform.mrec.reader")
    run_stage = reader.run_stage

    def some(*args: Any) -> Iterator[Violation]:
        return (v for v in run_stage(*args) if v.clause != clause)

    vars(reader)["run_stage"] = some
