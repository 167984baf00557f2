"""The files of a record: strict JSON, links, what is no file, packed records."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import threading
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajconform.model.errors import Refused
from trajconform.mrec.checker import check_mrec
from trajconform.mrec.reader import open_mrec
from trajconform.mrec.store import MAX_INFLATED_BYTES, MAX_JSON_DEPTH, FolderFiles, Store, child, is_finite, parse_json
from trajconform.vectors.cases import pack

ROOT = Path(__file__).resolve().parents[2]
STORES = ROOT / "vectors" / "mrec" / "stores"


def golden(name: str, folder: Path) -> Path:
    """A copy of a golden store."""
    return Path(shutil.copytree(STORES / f"{name}.mrec", folder / f"{name}.mrec"))


def read_all(path: Path) -> list[Any]:
    with open_mrec(path) as file:
        return list(file)


def refusal(path: Path) -> str:
    """The clause by which reading everything is refused, which the checker runs into as well."""
    with pytest.raises(Refused) as error:
        read_all(path)
    named = error.value.violation.clause
    assert named in {v.clause for v in check_mrec(path)}
    return named


# -- JSON ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[1,]", b"{'a': 1}", b"NaN", b"[Infinity]", b"[-Infinity]", b'{"a": 1, "a": 1}', b'{"a": {"b": 1, "b": 2}}',
        b"\xff", b'"\xed\xa0\x80"', b'"\\ud800"', b'{"\\udfff": 1}', b"\xef\xbb\xbf{}", b"{} {}", b"01", b"+1", b".5",
        b"[" * 300 + b"]" * 300, b"[" * 100_000, b'{"a":' * 400 + b"1" + b"}" * 400, b"1" * 401, b'"\x01"',
    ],
    ids=lambda text: repr(text[:24]),
)  # fmt: skip
def test_what_is_not_strict_json_is_refused(text: bytes) -> None:
    with pytest.raises(Refused) as error:
        parse_json(text, "a/zarr.json")
    assert (error.value.violation.clause, error.value.violation.path) == ("MREC-RECORD-11", "a/zarr.json")


def test_numbers_keep_their_kind() -> None:
    found = parse_json(b'[4, 4.0, 4e0, 9007199254740993, -0, -0.0, 1e999, true, "\\ud83d\\ude00"]', "x")
    assert [type(v) for v in found[:4]] == [int, float, float, int]
    assert found[3] == 2**53 + 1
    assert struct.pack("<d", float(found[4])) == struct.pack("<d", -0.0)
    assert isinstance(found[4], int)
    assert struct.pack("<d", found[5]) == struct.pack("<d", -0.0)
    assert not is_finite(found)
    assert is_finite([found[0], {"a": [found[4], None, "x"]}])
    assert found[8] == "😀"


def test_depth_counts_brackets_and_not_what_stands_in_strings() -> None:
    assert parse_json(b"[" * MAX_JSON_DEPTH + b"]" * MAX_JSON_DEPTH, "x") is not None
    assert parse_json(json.dumps(["[" * 5000 + '"{']).encode(), "x") == ["[" * 5000 + '"{']
    assert len(parse_json(b"[" + b"[]," * 1000 + b"[]]", "x")) == 1001


def test_the_place_of_a_mistake_is_a_byte_of_the_file() -> None:
    with pytest.raises(Refused) as error:
        parse_json('{"é": x}'.encode(), "x")
    assert error.value.violation.offset == 7


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )
)  # fmt: skip
def test_every_document_comes_back(document: Any) -> None:
    assert parse_json(json.dumps(document).encode(), "x") == document
    assert parse_json(json.dumps(document, ensure_ascii=False).encode(), "x") == document


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"null", b'{"zarr_format": 2, "node_type": "group"}', b'{"zarr_format": 3.0, "node_type": "group"}',
     b'{"zarr_format": true, "node_type": "group"}', b'{"zarr_format": 3}', b'{"zarr_format": 3, "node_type": "table"}',
     b'{"zarr_format": 3, "node_type": "group", "attributes": []}', b'{"zarr_format": 3, "zarr_format": 3, "node_type": "group"}',
     b'{"zarr_format": 3, "node_type": "group", "attributes": {"nstep": NaN}}'],
    ids=lambda text: text.decode()[-40:],
)  # fmt: skip
@pytest.mark.parametrize("node", ["trajectory", "trajectory/atoms", "trajectory/atoms/x", "meta"])
def test_metadata_that_is_none_is_refused_where_it_is_needed(tmp_path: Path, node: str, text: bytes) -> None:
    store = golden("regular-run", tmp_path)
    (store / node / "zarr.json").write_bytes(text)
    assert refusal(store) in ("MREC-RECORD-11", "MREC-LAYOUT-08")


def test_metadata_of_what_nobody_needs_may_be_anything(tmp_path: Path) -> None:
    store = golden("regular-run", tmp_path)
    for name in ("unknown", "trajectory/unknown", "trajectory/atoms/unknown", "system", "frame/x"):
        (store / name).mkdir(parents=True)
        (store / name / "zarr.json").write_bytes(b"{" * 1000)
    assert len(read_all(store)) == len(read_all(STORES / "regular-run.mrec"))


def test_metadata_beyond_a_limit_is_not_read(tmp_path: Path) -> None:
    store = golden("regular-run", tmp_path)
    with (store / "trajectory" / "zarr.json").open("r+b") as file:
        file.truncate(2**40)
    assert refusal(store) == "MREC-RECORD-11"


def test_stale_consolidated_metadata_is_not_believed(tmp_path: Path) -> None:
    store = golden("regular-run", tmp_path)
    frames = len(read_all(store))
    root = json.loads((store / "zarr.json").read_text("utf-8"))
    trajectory = json.loads((store / "trajectory/zarr.json").read_text("utf-8"))
    trajectory["attributes"] = {**trajectory["attributes"], "nstep": frames - 1}
    root["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": {"trajectory": trajectory}}
    (store / "zarr.json").write_text(json.dumps(root), "utf-8")
    assert len(read_all(store)) == frames


# -- links and what is no file -------------------------------------------------------------------------------------


def move_out(store: Path, name: str, outside: Path) -> None:
    """Put a file or folder of a store elsewhere and a link in its place."""
    shutil.move(store / name, outside / "moved")
    (store / name).symlink_to(outside / "moved")


@pytest.mark.parametrize("name", ["trajectory/zarr.json", "trajectory/atoms", "trajectory/atoms/x/c/0", "trajectory"])
def test_a_link_out_of_the_record_is_not_followed(tmp_path: Path, name: str) -> None:
    store = golden("regular-run", tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    move_out(store, name, outside)
    assert refusal(store) == "MREC-RECORD-10"


def test_a_link_to_a_device_is_not_read(tmp_path: Path) -> None:
    store = golden("regular-run", tmp_path)
    (store / "trajectory/atoms/x/c/0").unlink()
    (store / "trajectory/atoms/x/c/0").symlink_to("/dev/zero")
    assert refusal(store) == "MREC-RECORD-10"


@pytest.mark.parametrize("name", ["trajectory/atoms", "trajectory/atoms/x/c/0"])
def test_a_link_inside_the_record_is_followed(tmp_path: Path, name: str) -> None:
    store = golden("regular-run", tmp_path)
    shutil.move(store / name, store / "elsewhere")
    (store / name).symlink_to(store / "elsewhere")
    assert len(read_all(store)) == len(read_all(STORES / "regular-run.mrec"))


def test_a_record_that_is_itself_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "link.mrec").symlink_to(golden("regular-run", tmp_path))
    assert len(read_all(tmp_path / "link.mrec")) == len(read_all(STORES / "regular-run.mrec"))


@pytest.mark.parametrize("name", ["a", "b"])
def test_links_in_a_circle_end(tmp_path: Path, name: str) -> None:
    store = golden("regular-run", tmp_path)
    chunk = store / "trajectory/atoms/x/c/0"
    chunk.unlink()
    chunk.symlink_to(name)
    (chunk.parent / "a").symlink_to("b")
    (chunk.parent / "b").symlink_to("a")
    assert refusal(store) in ("MREC-RECORD-10", "MREC-RECORD-11")


@pytest.mark.parametrize("name", ["trajectory/zarr.json", "trajectory/atoms/x/zarr.json", "trajectory/atoms/x/c/0"])
@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path, name: str, kind: str) -> None:
    store = golden("regular-run", tmp_path)
    (store / name).unlink()
    (store / name).mkdir() if kind == "folder" else os.mkfifo(store / name)
    assert refusal(store) == "MREC-RECORD-11"


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error")])
@pytest.mark.parametrize("call", ["open", "pread"])
def test_a_file_that_the_system_does_not_hand_over_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: OSError
) -> None:
    files = FolderFiles(golden("regular-run", tmp_path))
    real: Callable[..., Any] = getattr(os, call)

    def failing(*arguments: Any, **named: Any) -> Any:
        if call == "pread" or str(arguments[0]).endswith("c/0"):
            raise error
        return real(*arguments, **named)

    monkeypatch.setattr(os, call, failing)
    with pytest.raises(Refused, match=error.strerror) as refused:
        files.read("trajectory/atoms/x/c/0", 0, 8)
    assert refused.value.violation.clause == "MREC-RECORD-11"


@pytest.mark.parametrize("name", ["", ".", "..", "../meta", "a/b", "a\x00b", "/etc", "x" * 300, "zarr.json"])
def test_a_name_that_no_node_has_leads_nowhere(tmp_path: Path, name: str) -> None:
    store = golden("regular-run", tmp_path)
    (store / "trajectory" / "a" / "b").mkdir(parents=True)
    shutil.copy(store / "trajectory/atoms/zarr.json", store / "trajectory/a/b/zarr.json")
    opened = Store(store)
    assert opened.group(child("trajectory", name)) is None
    assert opened.group("trajectory/a/b") is not None
    opened.close()


@pytest.mark.parametrize("name", ["..", "../system/atoms", "a/b", "a\x00b", "", "\\"])
def test_a_block_or_column_of_such_a_name_is_not_there(tmp_path: Path, name: str) -> None:
    store = golden("topology-once", tmp_path)
    path = store / "trajectory/zarr.json"
    document = json.loads(path.read_text("utf-8"))
    blocks = document["attributes"]["sequence_schema"]["blocks"]
    blocks[name] = blocks.pop("bonds")
    path.write_text(json.dumps(document), "utf-8")
    assert all(name not in frame.blocks for frame in read_all(store))
    columns = blocks["atoms"]["columns"]
    columns[name] = columns.pop(sorted(columns)[0])
    path.write_text(json.dumps(document), "utf-8")
    assert refusal(store) in ("MREC-REGULAR-24", "MREC-BLOCK-22")


def test_many_files_are_not_open_at_once(tmp_path: Path) -> None:
    files = FolderFiles(tmp_path)
    for i in range(200):
        (tmp_path / str(i)).write_bytes(bytes([i]))
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert [files.read(str(i), 0, 2) for i in range(200)] == [bytes([i]) for i in range(200)]
    assert len(list(Path("/proc/self/fd").iterdir())) - before <= 32
    files.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_threads_share_a_reader(tmp_path: Path) -> None:
    with open_mrec(STORES / "growth.mrec") as file:
        wanted = [f.blocks["atoms"].columns["x"].values.tobytes() for f in file]
        wrong: list[int] = []

        def look(start: int) -> None:
            for n in range(60):
                i = (start + 7 * n) % len(wanted)
                if file.frame(i).blocks["atoms"].columns["x"].values.tobytes() != wanted[i]:
                    wrong.append(i)

        threads = [threading.Thread(target=look, args=(start,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_reading_and_checking_change_nothing(tmp_path: Path) -> None:
    store = golden("growth", tmp_path)
    before = {p: (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in sorted(store.rglob("*"))}
    for path in (store, *before):
        path.chmod(0o555 if path.is_dir() else 0o444)
    read_all(store)
    check_mrec(store)
    after = {p: (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in sorted(store.rglob("*"))}
    for path in (store, *before):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert after == before


# -- packed records ------------------------------------------------------------------------------------------------


def files_of(name: str) -> dict[str, bytes]:
    folder = STORES / f"{name}.mrec"
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def packed(tmp_path: Path, name: str = "growth", how: Any = True) -> Path:
    target = tmp_path / f"{name}.mrec.zip"
    target.write_bytes(pack(files_of(name), how))
    return target


@pytest.mark.parametrize("how", [True, {"deflate": True}, {"folders": True}])
def test_a_packed_record_reads_like_the_folder(tmp_path: Path, how: Any) -> None:
    from trajconform.model.reply import encode_frame

    path = packed(tmp_path, how=how)
    assert [encode_frame(f) for f in read_all(path)] == [encode_frame(f) for f in read_all(STORES / "growth.mrec")]
    assert {v.clause for v in check_mrec(path)} == (set() if how is True else {"MREC-RECORD-07"})


@pytest.mark.parametrize("name", ["../x", "/etc/x", "trajectory/../../x", "C:/x", "..\\x"])
def test_an_entry_that_leads_out_is_named_and_not_followed(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path, how={"extra": {name: "{}"}})
    assert len(read_all(path)) == 19
    assert [(v.clause, v.path) for v in check_mrec(path)] == [("MREC-RECORD-08", name)]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["growth.mrec.zip"]


@pytest.mark.parametrize("name", ["a\\b", "meta/zarr.json"])
def test_other_separators_and_names_that_stand_twice_are_named(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path)
    data = files_of("growth").get(name, b"{}")
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr(name, data)
    assert [(v.clause, v.path) for v in check_mrec(path)] == [("MREC-RECORD-07", name)]


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"PK\x05\x06" + b"\0" * 18, b"not a zip file" * 100, b"PK\x05\x06" + b"\xff" * 18]
)
def test_what_is_no_packed_record_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.mrec.zip"
    path.write_bytes(data)
    with pytest.raises(Refused) as error:
        open_mrec(path)
    assert error.value.violation.clause in ("MREC-RECORD-11", "MREC-LAYOUT-08")
    assert [v.clause for v in check_mrec(path) if v.clause == error.value.violation.clause]


def test_every_cut_of_a_packed_record_is_refused(tmp_path: Path) -> None:
    data = packed(tmp_path, "one-frame").read_bytes()
    path = tmp_path / "cut.mrec.zip"
    for size in range(0, len(data), 37):
        path.write_bytes(data[:size])
        with pytest.raises(Refused):
            read_all(path)


def test_a_compressed_entry_that_claims_much_is_not_unpacked(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files_of("one-frame").items():
            archive.writestr(name, data if not name.endswith("x/c/0") else bytes(MAX_INFLATED_BYTES + 1))
    path = tmp_path / "bomb.mrec.zip"
    path.write_bytes(out.getvalue())
    assert refusal(path) == "MREC-RECORD-11"


def test_a_compressed_entry_that_holds_more_than_it_claims_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path, "one-frame", {"deflate": ["trajectory/zarr.json"]})
    data = bytearray(path.read_bytes())
    size = len(files_of("one-frame")["trajectory/zarr.json"])
    at = data.rindex(b"trajectory/zarr.json") - 46 + 24
    assert struct.unpack_from("<I", data, at) == (size,)
    struct.pack_into("<I", data, at, size - 1)
    path.write_bytes(bytes(data))
    assert refusal(path) == "MREC-RECORD-11"


@pytest.mark.parametrize("offset", [42, 20, 24])
@pytest.mark.parametrize("value", [0, 1, 2**31, 2**32 - 2])
def test_a_directory_of_entries_that_lies_is_refused(tmp_path: Path, offset: int, value: int) -> None:
    """Offset and sizes of an entry in the directory at the end: what they point to is not what was packed."""
    path = packed(tmp_path, "one-frame")
    data = bytearray(path.read_bytes())
    at = data.rindex(b"trajectory/zarr.json") - 46 + offset
    if struct.unpack_from("<I", data, at) == (value,):
        value += 7
    struct.pack_into("<I", data, at, value)
    path.write_bytes(bytes(data))
    with pytest.raises(Refused):
        read_all(path)


def test_an_encrypted_entry_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path, "one-frame")
    data = bytearray(path.read_bytes())
    data[data.rindex(b"trajectory/zarr.json") - 46 + 8] |= 1
    path.write_bytes(bytes(data))
    assert refusal(path) == "MREC-RECORD-11"


def test_nothing_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_mrec(tmp_path / "nothing.mrec")
    with pytest.raises(FileNotFoundError):
        check_mrec(tmp_path / "nothing.mrec")
    (tmp_path / "empty.mrec").mkdir()
    assert refusal(tmp_path / "empty.mrec") == "MREC-LAYOUT-08"
