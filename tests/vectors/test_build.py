"""What is committed is what the declarations make, and whatever is not is found."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from trajconform.model.errors import TrajconformError
from trajconform.vectors.build import build, golden_names, manifest_text, tree_digest, verify
from trajconform.vectors.cases import golden_declaration, pack

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings("ignore::Warning")
GOLDENS = ("growth", "codecs", "missing-chunks")


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A kit with three of the golden stores, one golden file and one case."""
    for source, names in (("mrec/stores", GOLDENS), ("otj/files", ("worked-example",))):
        folder = tmp_path / "vectors" / source
        folder.mkdir(parents=True)
        for name in names:
            shutil.copy(ROOT / "vectors" / source / f"{name}.yaml", folder)
    case = tmp_path / "vectors" / "mrec" / "blocks" / "one.yaml"
    case.parent.mkdir()
    case.write_text("title: t\nclauses: [MREC-BLOCK-01]\nrole: reader\ninput: {golden: growth}\nexpect: accepted\n")
    build(tmp_path)
    return tmp_path


def declare(path: Path, text: str) -> None:
    """Change a declaration; within one process a declaration is read once."""
    path.write_text(text, "utf-8")
    golden_declaration.cache_clear()


def test_the_committed_vectors_are_what_their_declarations_make() -> None:
    assert verify(ROOT) == []


def test_a_build_makes_the_committed_bytes(kit: Path) -> None:
    assert verify(kit) == []
    for name in GOLDENS:
        stores = kit / "vectors" / "mrec" / "stores"
        for path in sorted(stores.glob(f"{name}.*/**/*")):
            committed = ROOT / path.relative_to(kit)
            if path.is_file() and "/gz/" not in str(path) and "/zs/" not in str(path) and "/sh/" not in str(path):
                assert path.read_bytes() == committed.read_bytes(), path
    assert build(kit) == []


def test_a_golden_may_ask_for_its_packed_form_too(kit: Path) -> None:
    declaration = kit / "vectors/mrec/stores/growth.yaml"
    declare(declaration, declaration.read_text("utf-8") + "packed: true\n")
    assert "vectors/mrec/stores/growth.mrec.zip" in build(kit)
    store = kit / "vectors/mrec/stores/growth.mrec"
    files = {p.relative_to(store).as_posix(): p.read_bytes() for p in store.rglob("*") if p.is_file()}
    assert (kit / "vectors/mrec/stores/growth.mrec.zip").read_bytes() == pack(dict(sorted(files.items())))
    assert verify(kit) == []


@pytest.mark.parametrize(
    ("path", "change", "complaint"),
    [
        ("mrec/stores/growth.mrec/trajectory/atoms/x/c/0", "flip", "other bytes than the declaration makes"),
        ("mrec/stores/growth.mrec/trajectory/zarr.json", "flip", "other bytes than the declaration makes"),
        ("mrec/stores/growth.reply.json", "flip", "other bytes than the declaration makes"),
        ("otj/files/worked-example.otj", "flip", "other bytes than the declaration makes"),
        ("mrec/stores/growth.mrec/trajectory/atoms/x/c/0", "remove", "missing; run: trajconform vectors build"),
        ("mrec/stores/growth.mrec/trajectory/extra", "add", "no declaration makes it"),
        ("mrec/stores/stray.reply.json", "add", "no declaration makes it"),
        ("manifest.json", "flip", "not that of these vectors; run: trajconform vectors build"),
    ],
)
def test_every_difference_is_found_and_built_away(kit: Path, path: str, change: str, complaint: str) -> None:
    target = kit / "vectors" / path
    if change == "flip":
        data = bytearray(target.read_bytes())
        data[len(data) // 2] ^= 1
        target.write_bytes(data)
    elif change == "remove":
        target.unlink()
    else:
        target.write_bytes(b"x")
    assert f"vectors/{path}: {complaint}" in verify(kit)
    build(kit)
    assert verify(kit) == []


def compressed_again(kit: Path, plain: bytes | None = None) -> None:
    """Another compressor's spelling of the one gzip chunk of the golden ``codecs``."""
    import numcodecs
    import zarr

    node = kit / "vectors/mrec/stores/codecs.mrec/trajectory/c/text"
    document = json.loads((node / "zarr.json").read_text())
    values = zarr.open_array(store=str(node), mode="r")[...]
    texts = [str(v) for v in values] if plain is None else ["other"] * len(values)
    chunks = [texts[:5], [*texts[5:], "", "", "", ""]]
    encoded = [gzip.compress(numcodecs.VLenUTF8().encode(_objects(part)), 9, mtime=12345) for part in chunks]
    assert document["codecs"][0]["configuration"]["chunk_shape"] == [5]
    (node / "c" / "0").write_bytes(_shard(encoded))


def _objects(texts: list[str]) -> object:
    import numpy as np

    out = np.empty(len(texts), dtype=object)
    out[:] = texts
    return out


def _shard(chunks: list[bytes]) -> bytes:
    import struct

    import google_crc32c

    def checked(data: bytes) -> bytes:
        return data + struct.pack("<I", google_crc32c.value(data))

    chunks = [checked(chunk) for chunk in chunks]
    offset, entries = 16 * len(chunks) + 4, []
    for chunk in chunks:
        entries += [offset, len(chunk)]
        offset += len(chunk)
    return checked(struct.pack(f"<{len(entries)}Q", *entries)) + b"".join(chunks)


def test_another_compressors_output_stands_where_it_decodes_to_what_is_declared(kit: Path) -> None:
    chunk = kit / "vectors/mrec/stores/codecs.mrec/trajectory/c/text/c/0"
    before = chunk.read_bytes()
    compressed_again(kit)
    assert chunk.read_bytes() != before
    assert [problem.split(":")[0] for problem in verify(kit)] == ["vectors/manifest.json"]
    assert build(kit) == ["vectors/manifest.json"]
    assert chunk.read_bytes() != before
    assert verify(kit) == []


def test_another_compressors_output_does_not_stand_where_it_decodes_to_something_else(kit: Path) -> None:
    chunk = kit / "vectors/mrec/stores/codecs.mrec/trajectory/c/text/c/0"
    before = chunk.read_bytes()
    compressed_again(kit, b"other")
    path = "vectors/mrec/stores/codecs.mrec/trajectory/c/text/c/0"
    assert f"{path}: other bytes than the declaration makes" in verify(kit)
    build(kit)
    assert chunk.read_bytes() == before


def test_the_manifest_tells_inputs_apart(kit: Path) -> None:
    text = manifest_text(kit)
    assert json.loads(text).keys() == {"goldens", "inputs"}
    assert set(json.loads(text)["goldens"]) == {"otj/worked-example", *(f"mrec/{name}" for name in GOLDENS)}
    assert list(json.loads(text)["inputs"]) == ["mrec/blocks/one"]
    case = kit / "vectors/mrec/blocks/one.yaml"
    defect = "{golden: growth, defects: [{set_attribute: {node: trajectory, name: nstep, value: 18}}]}"
    case.write_text(case.read_text().replace("{golden: growth}", defect))
    assert manifest_text(kit) != text
    assert any("manifest.json" in problem for problem in verify(kit))


def test_digests_bind_names_sizes_and_contents() -> None:
    digests = {
        tree_digest(files)
        for files in (
            {"a": b"b"},
            {"b": b"a"},
            {"a": b"b", "c": b""},
            {"a": b"", "b": b""},
            {"ab": b""},
            {"a": b"bc"},
            {"a": b"b\0c\0000\0"},
            {},
        )
    }
    assert len(digests) == 8
    assert tree_digest({"a": b"1", "b": b"2"}) == tree_digest({"b": b"2", "a": b"1"})


def test_a_fault_of_a_declaration_names_its_file(kit: Path) -> None:
    path = kit / "vectors/mrec/stores/growth.yaml"
    text = path.read_text("utf-8")
    for old, new, complaint in (
        ("title:", "titel:", "a golden has no 'titel'"),
        ('atoms: "0:2"', 'atoms: "0:900"', "has 171 rows, the frame names 0:900"),
        ("meta: {pe: -1.5}", "meta: {pf: -1.5}", "the metadata key pf is not declared"),
        ("frames:", "franes:", "a golden has no 'franes'"),
    ):
        declare(path, text.replace(old, new, 1))
        with pytest.raises(TrajconformError) as error:
            verify(kit)
        assert str(error.value).startswith("vectors/mrec/stores/growth.yaml: ")
        assert complaint in str(error.value)
    declare(path, text.replace("nodes:\n", "nodes:\nnodes:\n", 1))
    with pytest.raises(TrajconformError, match=r"vectors/mrec/stores/growth.yaml:\d+: the key 'nodes' stands twice"):
        verify(kit)


def test_names_of_goldens() -> None:
    assert {"growth", "states", "codecs"} <= set(golden_names(ROOT, "mrec"))
    assert "worked-example" in golden_names(ROOT, "otj")
