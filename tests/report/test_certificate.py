"""A certificate says no more than a complete run showed, and no field of it can be changed unnoticed."""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from trajconform import kit
from trajconform.cli import main
from trajconform.harness.inprocess import InProcess
from trajconform.harness.reference import ReferenceDriver
from trajconform.harness.runner import run_cases
from trajconform.harness.verdicts import Deviation, RunResult, Verdict
from trajconform.model.errors import TrajconformError
from trajconform.report import certificate, signature
from trajconform.report.certificate import Claim, cases_of, claims_of
from trajconform.spec.catalogue import Catalogue, load_catalogue
from trajconform.spec.lock import LOCK, lock_text
from trajconform.vectors.cases import Case

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = [Claim("otj", "reader"), Claim("otj", "writer"), Claim("otj", "store")]
SUBJECT = {"driver.toml": "11" * 32, "main.c": "22" * 32}


@pytest.fixture(scope="module", autouse=True)
def _the_code_stays_as_it_is() -> Iterator[None]:
    """Whoever edits the kit while its tests run gets no other kit between two of them."""
    real, package = certificate.dir_hash, ROOT / "src" / "trajconform"
    code = real(package, skip=("_kit",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            certificate, "dir_hash", lambda folder, **rest: code if folder == package else real(folder, **rest)
        )
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit with the whole specification and the cases of two topics."""
    root = tmp_path_factory.mktemp("home")
    for room in ("spec", "schema"):
        shutil.copytree(ROOT / room, root / room)
    (root / "harness" / "drivers").mkdir(parents=True)
    for topic in ("files", "counting", "frame"):
        shutil.copytree(ROOT / "vectors" / "otj" / topic, root / "vectors" / "otj" / topic)
    (root / "vectors" / "manifest.json").write_text("{}\n")
    (root / LOCK).write_text(lock_text(load_catalogue(root)), "utf-8")
    return root


@pytest.fixture(scope="module")
def catalogue(home: Path) -> Catalogue:
    return load_catalogue(home)


@pytest.fixture(scope="module")
def cases(home: Path, catalogue: Catalogue) -> list[Case]:
    return certificate.cases_of(home, CLAIMS, catalogue)


@pytest.fixture(scope="module")
def run(cases: list[Case], catalogue: Catalogue) -> RunResult:
    """A complete run of the bundled implementation."""
    return run_cases(InProcess("reference", ReferenceDriver), cases, catalogue=catalogue)


@pytest.fixture(scope="module")
def said(run: RunResult, home: Path, catalogue: Catalogue, cases: list[Case]) -> dict[str, Any]:
    """The statement about that run."""
    return certificate.statement(run, CLAIMS, catalogue, SUBJECT, certificate.configuration(home), cases)


@dataclasses.dataclass(frozen=True)
class Keys:
    """A key pair in files."""

    private: Path
    public: Path


def keys_in(folder: Path, key: Any, name: str = "key", password: bytes | None = None) -> Keys:
    hidden = BestAvailableEncryption(password) if password else NoEncryption()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return Keys(private, public)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return keys_in(tmp_path_factory.mktemp("keys"), ed25519.Ed25519PrivateKey.generate())


@pytest.fixture(scope="module")
def signed(said: dict[str, Any], keys: Keys) -> dict[str, Any]:
    return signature.sign(certificate.dump(said).encode(), keys.private)


@pytest.fixture
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The command line works with that small kit."""
    monkeypatch.setenv("TRAJCONFORM_HOME", str(home))
    kit.root.cache_clear()
    yield home
    monkeypatch.undo()
    kit.root.cache_clear()


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return int(ended.value.code or 0), out, " ".join(err.split())


def written(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else certificate.dump(document), "utf-8")
    return path


# -- what a certificate says ---------------------------------------------------------------------------------------


def test_a_complete_run_gives_a_statement_of_the_agreed_form(said: dict[str, Any], run: RunResult) -> None:
    assert set(said) == {"_type", "subject", "predicateType", "predicate"}
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert said["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert said["subject"] == [{"name": name, "digest": {"sha256": SUBJECT[name]}} for name in sorted(SUBJECT)]
    predicate = said["predicate"]
    assert predicate["result"] == "PASSED"
    assert predicate["warnedTests"] == predicate["failedTests"] == []
    assert {"OTJ-COUNT-01", "OTJ-FRAME-01"} <= set(predicate["passedTests"])
    assert all({"uri", "digest", "content"} & set(entry) for entry in predicate["configuration"])
    told = predicate["trajconform_run"]
    assert told["claims"] == [{"format": c.format, "role": c.role, "profiles": ["core"]} for c in CLAIMS]
    assert told["cases"]["planned"] == len(run.results) > 100
    assert told["informativeCases"] == ["otj/frame/wrong-time@nan", "otj/frame/wrong-time@zero"]


def test_a_clause_without_a_case_is_never_among_the_passed(said: dict[str, Any], catalogue: Catalogue) -> None:
    predicate = said["predicate"]
    without = predicate["trajconform_run"]["untestedClauses"]["without case"]
    assert "OTJ-TAIL-01" in without
    assert not set(without) & set(predicate["passedTests"])
    everything = set(without) | set(predicate["passedTests"])
    assert everything == {clause.id for clause in catalogue.select(formats=["otj"])}


class Wrong(ReferenceDriver):
    """Says one more than the number of particles."""

    def read(self, format: str, path: str, frames: Any = None) -> dict[str, Any]:  # noqa: A002
        reply = super().read(format, path, frames)
        return {**reply, "particles": reply["particles"] + 1}


class NoRange(ReferenceDriver):
    """Reads whole files only, and cannot check."""

    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "features": ["reopen"]}


class Crash(ReferenceDriver):
    """Raises what is no refusal at the third read."""

    seen = 0

    def read(self, format: str, path: str, frames: Any = None) -> dict[str, Any]:  # noqa: A002
        type(self).seen += 1
        if type(self).seen == 3:
            raise ZeroDivisionError("gone")
        return super().read(format, path, frames)


class Nothing(ReferenceDriver):
    """Claims to read and supports nothing."""

    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "formats": {"otj": ["read"]}, "features": []}

    def read(self, format: str, path: str, frames: Any = None) -> dict[str, Any]:  # noqa: A002
        raise NotImplementedError("reading")


@pytest.fixture
def made(home: Path, catalogue: Catalogue) -> Callable[[type], dict[str, Any]]:
    """The statement about a run of another driver."""

    def make(kind: type) -> dict[str, Any]:
        hello = kind().hello()
        claims = claims_of(hello["formats"], hello["features"], ["otj"])
        wanted = certificate.cases_of(home, claims, catalogue)
        run = run_cases(InProcess("other", kind), wanted, catalogue=catalogue)
        return certificate.statement(run, claims, catalogue, SUBJECT, certificate.configuration(home), wanted)

    return make


def test_failures_are_certified_as_failures(
    made: Callable[[type], dict[str, Any]], home: Path, catalogue: Catalogue
) -> None:
    said = made(Wrong)
    assert said["predicate"]["result"] == "FAILED"
    assert said["predicate"]["failedTests"]
    assert not set(said["predicate"]["failedTests"]) & set(said["predicate"]["passedTests"])
    assert said["predicate"]["trajconform_run"]["failedCases"]
    assert certificate.faults(said, home, catalogue) == []
    assert any(line.startswith("FAILED") for line in certificate.summary(said))


def test_what_was_skipped_is_said_and_passes_nothing(
    made: Callable[[type], dict[str, Any]], home: Path, catalogue: Catalogue
) -> None:
    said = made(NoRange)
    told = said["predicate"]["trajconform_run"]
    assert said["predicate"]["result"] == "WARNED"
    assert [claim["role"] for claim in told["claims"]] == ["reader", "writer"]
    assert list(told["skippedCases"]) == ["the driver does not have the feature range"]
    skipped = told["skippedCases"]["the driver does not have the feature range"]
    assert "otj/counting/range-many-frames@0-to-1" in skipped and told["cases"]["skipped"] == len(skipped)
    assert said["predicate"]["warnedTests"] or told["untestedClauses"]["skipped"]
    assert certificate.faults(said, home, catalogue) == []
    assert any("does not have the feature range" in line for line in certificate.summary(said))


def test_a_case_without_verdict_gives_no_certificate(made: Callable[[type], dict[str, Any]]) -> None:
    Crash.seen = 0
    with pytest.raises(TrajconformError, match=r"no certificate: 1 case could not be judged, first otj/.*ZeroDivision"):
        made(Crash)


def test_a_run_that_judged_nothing_gives_no_certificate(made: Callable[[type], dict[str, Any]]) -> None:
    with pytest.raises(TrajconformError, match="every case was skipped"):
        made(Nothing)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"interrupted": True}, "interrupted after"),
        ({"results": 1}, "1 of [0-9]+ cases of the claims were not run"),
        ({"planned": 7}, "cases of the claims were not run"),
        ({"deviations": (Deviation("otj/x", "unexpected pass", "FAIL", "PASS", "remove the entry"),)}, "1 deviations"),
    ],
)
def test_an_incomplete_run_gives_no_certificate(
    run: RunResult, home: Path, catalogue: Catalogue, cases: list[Case], change: dict[str, Any], words: str
) -> None:
    if change.get("results"):
        change = {"results": run.results[1:]}
    with pytest.raises(TrajconformError, match=words):
        certificate.statement(dataclasses.replace(run, **change), CLAIMS, catalogue, SUBJECT, [], cases)


def test_only_what_is_claimed_can_be_certified() -> None:
    assert claims_of({"otj": ["read"]}, ["check:mrec"]) == [Claim("mrec", "store"), Claim("otj", "reader")]
    with pytest.raises(TrajconformError, match="nothing of role writer"):
        claims_of({"otj": ["read"]}, [], roles=["writer"])
    with pytest.raises(TrajconformError, match="nothing of format mrec"):
        claims_of({"otj": ["read"]}, [], formats=["mrec"])
    with pytest.raises(TrajconformError, match="nothing that could be certified"):
        claims_of({}, [])


# -- tampering -----------------------------------------------------------------------------------------------------


def leaves(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Paths of everything in a document that holds no further value; an empty list or object counts."""
    inside = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    if not inside:
        yield path
    for key, value in inside:
        yield from leaves(value, (*path, key))


def changed(document: Any, path: tuple[str | int, ...]) -> Any:
    """A copy with one leaf replaced by another value of its kind."""
    out = copy.deepcopy(document)
    node = out
    for key in path[:-1]:
        node = node[key]
    value = node[path[-1]]
    if isinstance(value, str):
        last = value[-1:] or "a"
        node[path[-1]] = value[:-1] + ("1" if last != "1" else "2")
    elif isinstance(value, list):
        node[path[-1]] = ["OTJ-COUNT-01"]
    elif isinstance(value, dict):
        node[path[-1]] = {"why": ["otj/counting/range-many-frames@0-to-1"]}
    else:
        node[path[-1]] = value + 1
    return out


def outcome(path: Path, home: Path, catalogue: Catalogue, key: Path | None, files: Mapping[str, str]) -> str:
    """What is wrong with a certificate in a file, all checks made; nothing when it holds."""
    try:
        read = certificate.read_certificate(path)
        if key is not None:
            signature.verified_by(read.envelope, key)
    except TrajconformError as error:
        return str(error)
    return "\n".join(
        [*certificate.faults(read.statement, home, catalogue), *certificate.artefact_faults(read.statement, files)]
    )


def test_an_untouched_certificate_holds(
    said: dict[str, Any], signed: dict[str, Any], keys: Keys, home: Path, catalogue: Catalogue, tmp_path: Path
) -> None:
    assert outcome(written(tmp_path / "u.json", said), home, catalogue, None, SUBJECT) == ""
    assert outcome(written(tmp_path / "s.json", signed), home, catalogue, keys.public, SUBJECT) == ""


def test_any_leaf_changed_under_a_signature_is_noticed(
    said: dict[str, Any], signed: dict[str, Any], keys: Keys, home: Path, catalogue: Catalogue, tmp_path: Path
) -> None:
    paths = list(leaves(said))
    assert len(paths) > 60
    for path in paths:
        other = changed(said, path)
        assert other != said, path
        payload = base64.b64encode(certificate.dump(other).encode()).decode()
        found = outcome(
            written(tmp_path / "c.json", {**signed, "payload": payload}), home, catalogue, keys.public, SUBJECT
        )
        assert "signature" in found or "no certificate" in found, path


def test_any_leaf_of_the_envelope_changed_is_noticed(
    signed: dict[str, Any], keys: Keys, home: Path, catalogue: Catalogue, tmp_path: Path
) -> None:
    found = {
        path: outcome(written(tmp_path / "c.json", changed(signed, path)), home, catalogue, keys.public, SUBJECT)
        for path in leaves(signed)
    }
    assert set(found) == {("payload",), ("payloadType",), ("signatures", 0, "keyid"), ("signatures", 0, "sig")}
    assert all(found.values()), found


def test_every_byte_of_signature_and_payload_counts(
    signed: dict[str, Any], keys: Keys, home: Path, catalogue: Catalogue, tmp_path: Path
) -> None:
    for name, holder in (("payload", lambda d: d), ("sig", lambda d: d["signatures"][0])):
        data = base64.b64decode(holder(signed)[name])
        for at in range(0, len(data), max(1, len(data) // 64)):
            other = copy.deepcopy(signed)
            flipped = bytearray(data)
            flipped[at] ^= 1
            holder(other)[name] = base64.b64encode(flipped).decode()
            assert outcome(written(tmp_path / "c.json", other), home, catalogue, keys.public, SUBJECT), (name, at)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(more=1),
        lambda d: d.pop("signatures"),
        lambda d: d.update(signatures=[]),
        lambda d: d.update(signatures=d["signatures"] * 2),
        lambda d: d.update(signatures={}),
        lambda d: d["signatures"][0].update(more=1),
        lambda d: d["signatures"][0].pop("keyid"),
        lambda d: d["signatures"][0].update(keyid=7),
        lambda d: d["signatures"][0].update(sig=""),
        lambda d: d["signatures"][0].update(sig=[1]),
        lambda d: d.update(payload=d["payload"] + "\n"),
        lambda d: d.update(payload=d["payload"].rstrip("=") + "===="),
        lambda d: d.update(payload=d["payload"].replace("+", "-").replace("/", "_") + "-"),
        lambda d: d.update(payload="é"),
        lambda d: d.update(payload=None),
    ],
)
def test_an_envelope_of_another_form_is_refused(
    signed: dict[str, Any], tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    other = copy.deepcopy(signed)
    change(other)
    with pytest.raises(TrajconformError):
        certificate.read_certificate(written(tmp_path / "c.json", other))


def test_who_signed_cannot_be_exchanged(said: dict[str, Any], keys: Keys, tmp_path: Path) -> None:
    forger = keys_in(tmp_path, ed25519.Ed25519PrivateKey.generate(), "forger")
    forged = signature.sign(certificate.dump(said).encode(), forger.private)
    with pytest.raises(TrajconformError, match="names another key"):
        signature.verified_by(forged, keys.public)
    forged["signatures"][0]["keyid"] = signature.sign(b"{}", keys.private)["signatures"][0]["keyid"]
    with pytest.raises(TrajconformError, match="was changed, or signed by another"):
        signature.verified_by(forged, keys.public)


FREE = {("driver", "name"), ("driver", "version"), ("driver", "language"), ("started",)}
"""What an unsigned certificate says of the driver and the day: nothing else depends on it."""
UNUSED = ("check:mrec", "json:text", "reopen", "system")
"""Features that no case of the claims needs."""


def test_any_leaf_changed_without_a_signature_is_noticed_where_it_can_be(
    said: dict[str, Any], home: Path, catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = said["predicate"]["trajconform_run"]["driver"]["features"]
    free = FREE | {("driver", "features", features.index(name)) for name in UNUSED}
    here, wanted = certificate.configuration(home), certificate.cases_of(home, CLAIMS, catalogue)
    monkeypatch.setattr(certificate, "configuration", lambda _: here)
    monkeypatch.setattr(
        certificate, "cases_of", lambda _, claims, __: wanted if claims == CLAIMS else cases_of(home, claims, catalogue)
    )
    unnoticed = []
    for path in leaves(said):
        other = changed(said, path)
        if not outcome(written(tmp_path / "c.json", other), home, catalogue, None, SUBJECT):
            unnoticed.append(path)
    assert {path[:2] for path in unnoticed} == {("predicate", "trajconform_run")}, unnoticed
    assert {path[2:] for path in unnoticed} <= free


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p.update(result="FAILED"), "the result is FAILED, and the cases make it PASSED"),
        (lambda p: p["passedTests"].append("OTJ-TAIL-01"), "OTJ-TAIL-01 does not belong there"),
        (lambda p: p["passedTests"].pop(), "is missing"),
        (lambda p: p["passedTests"].reverse(), "passedTests is not in order"),
        (lambda p: p["passedTests"].append(p["passedTests"][-1]), "names something twice"),
        (
            lambda p: p["trajconform_run"]["failedCases"].append("otj/counting/range-many-frames@0-to-1"),
            "failedTests is not what",
        ),
        (lambda p: p["trajconform_run"]["failedCases"].append("otj/tail/none"), "otj/tail/none is no case"),
        (lambda p: p["trajconform_run"]["informativeCases"].pop(), "only informs, and does not pass"),
        (
            lambda p: p["trajconform_run"]["informativeCases"].insert(0, "otj/counting/range-many-frames@0-to-1"),
            "only informs",
        ),
        (
            lambda p: p["trajconform_run"]["skippedCases"].update(
                {"no time": ["otj/counting/range-many-frames@0-to-1"]}
            ),
            "is not skipped for this reason",
        ),
        (lambda p: p["trajconform_run"]["skippedCases"].update({"no time": []}), "a reason to skip has no case"),
        (lambda p: p["trajconform_run"]["driver"]["features"].remove("range"), "is skipped because"),
        (lambda p: p["trajconform_run"]["claims"].pop(), "is no case of the claims|not what the cases make"),
        (lambda p: p["trajconform_run"]["claims"].reverse(), "the claims are not"),
        (lambda p: p["trajconform_run"]["claims"][0].update(profiles=["companion"]), "does not name the profiles"),
        (lambda p: p["trajconform_run"]["driver"]["formats"].update(otj=["read"]), "the claims are not"),
        (lambda p: p["trajconform_run"]["cases"].update(failed=1), "the numbers of cases"),
        (lambda p: p["configuration"].pop(), "does not name what this kit judges by"),
        (lambda p: p["configuration"][0].update(uri="pkg:pypi/trajconform@9"), "judged by pkg:pypi/trajconform@9"),
        (lambda p: p["configuration"][1]["digest"].update(sha256="0" * 64), "another kit: spec/clauses.lock.json"),
    ],
)
def test_what_does_not_follow_from_the_cases_is_named(
    said: dict[str, Any], home: Path, catalogue: Catalogue, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    import re

    other = copy.deepcopy(said)
    change(other["predicate"])
    found = "\n".join(certificate.faults(other, home, catalogue))
    assert re.search(words, found), found


def test_a_failure_cannot_be_turned_into_a_skip_or_a_pass(
    made: Callable[[type], dict[str, Any]], home: Path, catalogue: Catalogue
) -> None:
    said = made(Wrong)
    for why in ("the driver does not have the feature range", ""):
        other = copy.deepcopy(said)
        told = other["predicate"]["trajconform_run"]
        name = told["failedCases"].pop()
        if why:
            told["skippedCases"][why] = [name]
        assert certificate.faults(other, home, catalogue)


def test_other_files_than_the_certified_ones_are_named(said: dict[str, Any]) -> None:
    assert certificate.artefact_faults(said, SUBJECT) == []
    assert certificate.artefact_faults(said, {"driver.toml": "11" * 32, "main.c": "33" * 32, "new.c": "4" * 64}) == [
        "new.c: among the driver's files, and not certified",
        "main.c: not the file that was certified",
    ]
    assert certificate.artefact_faults(said, {"main.c": "22" * 32}) == [
        "driver.toml: certified, and not among the driver's files"
    ]


def test_a_kit_with_one_other_expectation_is_another_kit(
    said: dict[str, Any], home: Path, catalogue: Catalogue, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(home, other)
    case = other / "vectors" / "otj" / "counting" / "range-wide.yaml"
    case.write_text(case.read_text("utf-8") + "# looked at\n", "utf-8")
    found = certificate.faults(said, other, catalogue)
    assert len(found) == 1 and "vectors at hand differs" in found[0]


def test_a_specification_that_is_not_as_locked_gives_none(home: Path, catalogue: Catalogue, tmp_path: Path) -> None:
    certificate.check_lock(catalogue, home)
    lock = tmp_path / LOCK
    lock.parent.mkdir()
    lock.write_text((home / LOCK).read_text("utf-8").replace('"OTJ-TAIL-01": "', '"OTJ-TAIL-01": "0'), "utf-8")
    with pytest.raises(TrajconformError, match=r"1 clauses are not as locked .* first OTJ-TAIL-01"):
        certificate.check_lock(catalogue, tmp_path)


# -- reading -------------------------------------------------------------------------------------------------------


def test_only_one_strict_document_is_read(said: dict[str, Any], tmp_path: Path) -> None:
    text = certificate.dump(said)
    path = tmp_path / "c.json"
    for other, words in (
        (text + "x", "Extra data"),
        (text + text, "Extra data"),
        (text.replace('"result"', '"result": "FAILED", "result"', 1), "'result' stands twice"),
        (text.replace('"planned": ', '"planned": 1e999, "failed": ', 1), "no certificate"),
        (text.replace('"PASSED"', '"\\ud800"', 1), "no certificate"),
        (text.replace('"PASSED"', "NaN", 1), "no certificate"),
        ("[" * 100_000, "no certificate"),
        ("", "no certificate"),
        ("[]", "no certificate"),
        ("7", "no certificate"),
        (text.replace('"result"', '"extra": 1, "result"', 1), "extra"),
        (text.replace("Statement/v1", "Statement/v0.1", 1), "_type"),
    ):
        with pytest.raises(TrajconformError, match=words):
            certificate.read_certificate(written(path, other))
    path.write_bytes(b"\xff\xfe" + text.encode("utf-16-le"))
    with pytest.raises(TrajconformError, match="no certificate"):
        certificate.read_certificate(path)


def test_what_is_no_file_of_sensible_size_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(TrajconformError, match="is no file"):
        certificate.read_certificate(pipe)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TrajconformError, match="larger than 32 MiB"):
        certificate.read_certificate(large)
    with pytest.raises(TrajconformError, match="cannot read"):
        certificate.read_certificate(tmp_path / "none")
    with pytest.raises(TrajconformError, match=r"is no file|cannot read"):
        certificate.read_certificate(tmp_path)


# -- keys ----------------------------------------------------------------------------------------------------------


def test_the_signature_is_that_of_the_standard(signed: dict[str, Any], keys: Keys) -> None:
    """Held against the primitive itself: Ed25519 over the pre-authentication encoding of DSSE."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    payload = base64.b64decode(signed["payload"])
    kind = b"application/vnd.in-toto+json"
    encoding = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    public = load_pem_public_key(keys.public.read_bytes())
    assert isinstance(public, ed25519.Ed25519PublicKey)
    public.verify(base64.b64decode(signed["signatures"][0]["sig"]), encoding)
    assert signed["payloadType"] == kind.decode()


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1()])
def test_ecdsa_keys_do_as_well(tmp_path: Path, curve: ec.EllipticCurve) -> None:
    pair = keys_in(tmp_path, ec.generate_private_key(curve))
    envelope = signature.sign(b'{"a": 1}', pair.private)
    assert signature.verified_by(envelope, pair.public) == envelope["signatures"][0]["keyid"]


def test_keys_of_no_use_are_named(tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    other = keys_in(tmp_path, rsa.generate_private_key(65537, 2048), "rsa")
    hidden = keys_in(tmp_path, ed25519.Ed25519PrivateKey.generate(), "hidden", b"secret")
    odd = keys_in(tmp_path, ec.generate_private_key(ec.SECP256K1()), "odd")
    rubbish = written(tmp_path / "rubbish.pem", "no key")
    envelope = signature.sign(b"{}", keys.private)
    monkeypatch.delenv(signature.PASSWORD, raising=False)
    for path, words in (
        (other.private, "Ed25519 or ECDSA"),
        (hidden.private, "put its password into TRAJCONFORM_KEY_PASSWORD"),
        (odd.private, "Ed25519 key"),
        (rubbish, "no private key in PEM"),
        (keys.public, "no private key in PEM"),
        (tmp_path / "none", "cannot read the key"),
    ):
        with pytest.raises(TrajconformError, match=words):
            signature.sign(b"{}", path)
    for path, words in (
        (keys.private, "is a private key"),
        (other.public, "no Ed25519 or ECDSA key"),
        (odd.public, "Ed25519 key"),
        (rubbish, "no public key in PEM"),
    ):
        with pytest.raises(TrajconformError, match=words):
            signature.verified_by(envelope, path)
    monkeypatch.setenv(signature.PASSWORD, "wrong")
    with pytest.raises(TrajconformError, match="or the password is wrong"):
        signature.sign(b"{}", hidden.private)
    monkeypatch.setenv(signature.PASSWORD, "secret")
    assert signature.verified_by(signature.sign(b"{}", hidden.private), hidden.public)
    assert signature.sign(b"{}", keys.private)


def test_without_the_library_the_command_that_installs_it_is_named(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "securesystemslib.dsse", None)
    with pytest.raises(TrajconformError, match=r"pip install 'trajconform\[sign\]'"):
        signature.sign(b"{}", keys.private)


# -- the commands --------------------------------------------------------------------------------------------------


def test_certify_and_verify_go_together(
    at_home: Path, keys: Keys, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "deep" / "cert.json"
    status, out, err = command(capsys, "certify", "--format", "otj", "-o", target, "--key", keys.private)
    assert status == 0
    assert "result      PASSED" in out and f"written     {target}, signed" in out
    assert "reference: otj reader, otj writer, otj store" in err
    assert [path.name for path in target.parent.iterdir()] == ["cert.json"]
    status, out, err = command(capsys, "verify", target, "--key", keys.public)
    assert status == 0 and "signature   good, by the key" in out and err == ""
    status, out, err = command(capsys, "verify", target)
    assert status == 0 and "signature   NOT CHECKED" in out and "anybody could have written" in out
    status, out, err = command(capsys, "verify", target, "-q")
    assert status == 0 and out == "" and "anybody could have written" in err


def test_an_unsigned_certificate_says_so_and_no_key_believes_it(
    at_home: Path, said: dict[str, Any], keys: Keys, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = written(tmp_path / "cert.json", said)
    status, out, _ = command(capsys, "verify", target)
    assert status == 0 and "signature   NONE: anybody could have written this certificate" in " ".join(out.splitlines())
    status, out, err = command(capsys, "verify", target, "--key", keys.public)
    assert status == 2 and out == "" and "is not signed" in err


def test_a_failed_run_is_written_with_status_1_and_verified_with_status_1(
    at_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "cert.json"
    driver = f"{__name__}:Wrong"
    status, out, _ = command(capsys, "certify", "--driver", driver, "--format", "otj", "--role", "reader", "-o", target)
    assert status == 1 and "result      FAILED" in out
    assert "not in it   mrec reader, mrec writer, mrec store, otj writer, otj store" in out
    status, out, _ = command(capsys, "verify", target, "--driver", driver)
    assert status == 1 and "result      FAILED" in out and f"those of {driver} at hand" in out
    status, out, err = command(capsys, "verify", target, "--driver", "trajconform.harness.reference:ReferenceDriver")
    assert status == 2 and out == "" and "not certified" in err


def test_a_crash_writes_nothing(at_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Crash.seen = 0
    target = tmp_path / "cert.json"
    status, _, err = command(capsys, "certify", "--driver", f"{__name__}:Crash", "--format", "otj", "-o", target)
    assert status == 2 and "no certificate: 1 case could not be judged" in err and not target.exists()


def test_a_failure_beside_the_known_ones_writes_nothing(
    at_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, known = tmp_path / "cert.json", written(tmp_path / "known.yaml", "[]\n")
    arguments = ["certify", "--driver", f"{__name__}:Wrong", "--format", "otj", "--role", "reader", "-o", target]
    status, _, err = command(capsys, *arguments, "--expect", known)
    assert status == 2 and "deviations from the known failures, first otj/" in err and not target.exists()


def test_tampering_is_status_2_on_the_command_line(
    at_home: Path, signed: dict[str, Any], keys: Keys, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in leaves(signed):
        target = written(tmp_path / "cert.json", changed(signed, path))
        status, out, err = command(capsys, "verify", target, "--key", keys.public)
        assert status == 2 and out == "" and err, path


def test_text_of_a_certificate_cannot_steer_the_terminal(said: dict[str, Any]) -> None:
    other = copy.deepcopy(said)
    other["predicate"]["trajconform_run"]["driver"]["name"] = "\x1b]0;gone\x07\x1b[2J\nresult      PASSED"
    lines = list(certificate.summary(other))
    assert not any(ord(letter) < 32 for line in lines for letter in line)
    assert sum(line.startswith("result") for line in lines) == 1


def test_a_certificate_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "cert.json"
    target.write_text("old")
    certificate.write_certificate("new\n", target)
    assert target.read_text() == "new\n" and stat.S_ISREG(target.stat().st_mode)
    with pytest.raises(TrajconformError, match="cannot write"):
        certificate.write_certificate("x", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["cert.json"]


def test_every_verdict_of_the_run_was_used(run: RunResult) -> None:
    assert run.counts[Verdict.PASS] > 100 and run.counts[Verdict.INFO] == 2
    assert json.loads(certificate.dump({"a": "é"})) == {"a": "é"}
