"""Builds the golden files from their declarations, and shows that what is committed is what the declarations make.

A compressor's output may differ by version. Where a store uses one, the committed bytes stand, and what they decode to
is held against the declaration instead (through zarr-python, which the emitter shares no code with).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trajconform.model.arrays import same_bits, strings
from trajconform.model.errors import TrajconformError
from trajconform.vectors.cases import GOLDEN_FOLDERS, golden_declaration, input_files, load_cases, pack
from trajconform.vectors.mrec_emit import array_values
from trajconform.vectors.mrec_golden import emit_store, is_array, reply_of
from trajconform.vectors.otj_golden import build_otj, reply_otj

MANIFEST = "vectors/manifest.json"
_COMPRESSORS = ('"gzip"', '"zstd"')


def golden_names(root: Path, format_name: str) -> list[str]:
    """Names of the goldens of a format."""
    return sorted(p.stem for p in (root / "vectors" / format_name / GOLDEN_FOLDERS[format_name]).glob("*.yaml"))


def tree_digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over the paths, sizes and contents of a tree of files."""
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def _made(root: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """For each golden the files it makes, by path relative to its folder's root; a store is one entry a file."""
    for name in golden_names(root, "otj"):
        declaration = golden_declaration(root, "otj", name)
        base = f"vectors/otj/files/{name}"
        try:
            yield (
                base,
                {f"{base}.otj": build_otj(declaration), f"{base}.reply.json": _reply_bytes(reply_otj(declaration))},
            )
        except TrajconformError as error:
            raise TrajconformError(f"{base}.yaml: {error}") from None
    for name in golden_names(root, "mrec"):
        declaration = golden_declaration(root, "mrec", name)
        base = f"vectors/mrec/stores/{name}"
        try:
            unknown = set(declaration) - {"title", "description", "nodes", "frames", "nstep", "packed"}
            if unknown:
                raise TrajconformError(f"a golden has no {sorted(unknown)[0]!r}")
            store = emit_store(declaration["nodes"])
            files = {f"{base}.mrec/{path}": data for path, data in store.items()}
            if declaration.get("packed"):
                files[f"{base}.mrec.zip"] = pack(store)
            reply = reply_of(declaration["frames"], declaration["nodes"], declaration.get("nstep"))
            files[f"{base}.reply.json"] = _reply_bytes(reply)
            yield base, files
        except (TrajconformError, KeyError) as error:
            raise TrajconformError(f"{base}.yaml: {error}") from None


def _reply_bytes(reply: Any) -> bytes:
    return (json.dumps(reply, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def build(root: Path) -> list[str]:
    """Write every golden and the manifest, remove what no declaration makes; return the paths that changed."""
    changed: list[str] = []
    wanted: set[str] = set()
    for base, files in _made(root):
        wanted |= set(files)
        for path, data in files.items():
            target = root / path
            if target.exists() and (target.read_bytes() == data or _stands(root, base, path)):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            changed.append(path)
    for path in _committed(root):
        if path not in wanted:
            (root / path).unlink()
            changed.append(f"{path} (removed)")
    _remove_empty(root / "vectors" / "mrec" / "stores")
    text = manifest_text(root)
    target = root / MANIFEST
    if not target.exists() or target.read_text("utf-8") != text:
        target.write_text(text, "utf-8")
        changed.append(MANIFEST)
    return changed


def verify(root: Path) -> list[str]:
    """What differs between the committed vectors and their declarations; empty when nothing does."""
    problems: list[str] = []
    wanted: set[str] = set()
    for base, files in _made(root):
        wanted |= set(files)
        for path, data in files.items():
            target = root / path
            if not target.exists():
                problems.append(f"{path}: missing; run: trajconform vectors build")
            elif target.read_bytes() != data and not _stands(root, base, path):
                problems.append(f"{path}: other bytes than the declaration makes")
    problems += [f"{path}: no declaration makes it" for path in _committed(root) if path not in wanted]
    target = root / MANIFEST
    if not target.exists() or target.read_text("utf-8") != manifest_text(root):
        problems.append(f"{MANIFEST}: not that of these vectors; run: trajconform vectors build")
    return problems


def manifest_text(root: Path) -> str:
    """The manifest: digest of each golden's files and of each case's input."""
    goldens: dict[str, str] = {}
    for format_name in GOLDEN_FOLDERS:
        folder = root / "vectors" / format_name / GOLDEN_FOLDERS[format_name]
        for name in golden_names(root, format_name):
            files = {
                path.relative_to(folder).as_posix(): path.read_bytes()
                for path in sorted(folder.rglob("*"))
                if path.is_file()
                and path.relative_to(folder).parts[0].startswith(f"{name}.")
                and path.suffix != ".yaml"
            }
            goldens[f"{format_name}/{name}"] = tree_digest(files)
    inputs = {case.id: tree_digest(input_files(case)) for case in load_cases(root) if case.input}
    return json.dumps({"goldens": goldens, "inputs": inputs}, indent=1) + "\n"


def _committed(root: Path) -> list[str]:
    found: list[str] = []
    for format_name, folder in GOLDEN_FOLDERS.items():
        base = root / "vectors" / format_name / folder
        found += [
            p.relative_to(root).as_posix() for p in sorted(base.rglob("*")) if p.is_file() and p.suffix != ".yaml"
        ]
    return found


def _remove_empty(folder: Path) -> None:
    for path in sorted((p for p in folder.rglob("*") if p.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()


def _stands(root: Path, base: str, path: str) -> bool:
    """Whether a committed file that differs is of a compressed store that decodes to what is declared."""
    store = root / f"{base}.mrec"
    if not path.startswith((f"{base}.mrec/", f"{base}.mrec.zip")) or path.endswith("zarr.json"):
        return False
    name = base.rsplit("/", 1)[1]
    nodes = golden_declaration(root, "mrec", name)["nodes"]
    if not any(c in p.read_text("utf-8") for p in store.rglob("zarr.json") for c in _COMPRESSORS):
        return False
    return all(_decodes(store, node, spec) for node, spec in nodes.items() if is_array(spec))


def _decodes(store: Path, node: str, spec: Mapping[str, Any]) -> bool:
    import zarr

    wanted = array_values(node, spec)
    found: Any = zarr.open_array(store=str(store / node), mode="r")[...]
    if wanted.dtype == object:
        found = strings(str(s) for s in found.ravel().tolist()).reshape(found.shape)
    return same_bits(wanted, found)
