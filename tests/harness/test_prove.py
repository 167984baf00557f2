"""What proves the cases is itself held to mutants whose fate is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from trajconform import kit
from trajconform.cli import main
from trajconform.harness.mutants import Mutant, edit, find, load_mutants
from trajconform.harness.prove import Matrix, check_mutants, prove_all
from trajconform.model.errors import TrajconformError
from trajconform.spec.catalogue import Catalogue, load_catalogue
from trajconform.vectors.cases import Case, load_cases

CLAUSE = "OTJ-FLAGS-09"
INIT = "otj.writer:OtjWriter.__init__"
FLAGS = "self._layout.flags.to_bytes"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="module")
def cases(catalogue: Catalogue) -> list[Case]:
    return [case for case in load_cases(kit.root(), formats=("otj",)) if case.role == "writer"]


def made(apply: Callable[[], None], name: str = "made", clause: str = CLAUSE) -> Mutant:
    return Mutant(name, (clause,), "writer", "a mistake", "here", apply)


def flags_lost() -> None:
    edit(INIT, FLAGS, "(self._layout.flags & 2).to_bytes")


def nothing() -> None:
    """No mistake at all."""


def name_unknown() -> None:
    edit(INIT, FLAGS, "undefined_name.to_bytes")


def code_moved() -> None:
    edit(INIT, "this does not stand there", "")


def elsewhere() -> None:
    edit("otj.writer:OtjWriter._component", "if values.shape != (self._layout.particles,):", "if False:")


def fates(matrix: Matrix) -> dict[str, str]:
    return {proof.mutant.name: proof.status for proof in matrix.proofs}


@pytest.fixture(scope="module")
def matrix(catalogue: Catalogue, cases: list[Case]) -> Matrix:
    applied = {"lost": flags_lost, "nothing": nothing, "name-unknown": name_unknown, "moved": code_moved,
               "elsewhere": elsewhere, "lost-again": flags_lost}  # fmt: skip
    mutants = [made(apply, name) for name, apply in applied.items()]
    return prove_all(mutants, cases, catalogue, scope="role", jobs=2, required=(CLAUSE, "OTJ-FLAGS-10"))


def test_what_becomes_of_a_mutant(matrix: Matrix) -> None:
    assert fates(matrix) == {
        "lost": "killed",
        "nothing": "survives",
        "name-unknown": "unusable",
        "moved": "unusable",
        "elsewhere": "elsewhere",
        "lost-again": "killed",
    }


def test_a_clause_without_a_mutant_is_named(matrix: Matrix) -> None:
    assert matrix.lacking == ("OTJ-FLAGS-10",)


def test_the_killing_cases_are_bound_to_the_clause(matrix: Matrix, cases: list[Case]) -> None:
    by_id = {case.id: case for case in cases}
    lost = matrix.proofs[0]
    assert lost.killers(CLAUSE)
    for name in lost.killers(CLAUSE):
        assert CLAUSE in by_id[name].clauses
    assert CLAUSE in lost.failing
    assert lost.precision == 1 - len(lost.others) / len(lost.failing)


def test_a_mutant_leaves_nothing_behind(matrix: Matrix) -> None:
    code = find(INIT)[2].__code__
    assert code.co_filename.endswith("writer.py")
    assert fates(matrix)["nothing"] == "survives"  # it came after one that was killed


def test_a_broken_unmutated_implementation_proves_nothing(
    catalogue: Catalogue, cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    function = find(INIT)[2]
    before = function.__code__
    try:
        flags_lost()
        with pytest.raises(TrajconformError, match="the unmutated implementation fails"):
            prove_all([made(nothing)], cases, catalogue, scope="clause")
    finally:
        function.__code__ = before


@pytest.mark.parametrize(
    ("clause", "what"), [("OTJ-FLAGS-9999", "which no chapter defines"), ("OTJ-FRAME-03", "binds a")]
)
def test_a_clause_of_nobody_or_of_another_role_is_refused(catalogue: Catalogue, clause: str, what: str) -> None:
    if what == "binds a":
        clause = next(c.id for c in catalogue.clauses.values() if c.format == "otj" and c.role == "reader")
    with pytest.raises(TrajconformError, match=what):
        check_mutants([made(nothing, clause=clause)], catalogue)


def test_every_registered_mutant_names_clauses_of_its_role(catalogue: Catalogue) -> None:
    mutants = load_mutants()
    check_mutants(mutants, catalogue)
    assert {(m.format, m.role) for m in mutants} >= {(f, r) for f in ("mrec", "otj") for r in ("reader", "store")}


def test_the_command_says_who_is_caught_and_writes_the_matrix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "proof.json"
    some = ["prove", "--mutant", "otj_writer/precision-bit-*", "--scope", "clause"]
    assert status(*some, "--json", str(out)) == 0
    document = json.loads(out.read_text("utf-8"))
    assert document["counts"] == {"killed": 2, "elsewhere": 0, "survives": 0, "unusable": 0}
    assert all(m["killers"][CLAUSE] for m in document["mutants"])
    assert status(*some, "--require", "must") == 1
    assert "clauses without a mutant" in capsys.readouterr().out
    assert status("prove", "--mutant", "no/such") == 2


def status(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return int(stop.value.code or 0)
