"""The packed form of a record: one zip file with an entry for each file of the folder, stored as it is."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

_CHUNK = 8 * 1024 * 1024


def pack_mrec(path: Path | str, zip_path: Path | str) -> None:
    """Pack the record in the folder ``path`` into ``zip_path`` (MREC-RECORD-07, MREC-RECORD-08).

    Entries are named relative to the root of the record and carry no time stamp: the same record gives the same bytes.
    The file appears whole or not at all. ValueError for a link, which would lead out of the record or be no file.
    """
    folder, target = Path(path), Path(zip_path)
    if not (folder / "zarr.json").is_file():
        raise FileNotFoundError(f"{folder} is no record: it has no zarr.json")
    names = sorted(found.relative_to(folder).as_posix() for found in folder.rglob("*") if not _is_folder(found))
    beside = target.with_name(f".{target.name}.partial")
    try:
        with zipfile.ZipFile(beside, "w") as packed:
            for name in names:
                if name.endswith(".partial") and name.rpartition("/")[2].startswith("."):
                    continue  # what an interrupted write of this kit left
                info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                info.file_size = (folder / name).stat().st_size
                with (folder / name).open("rb") as source, packed.open(info, "w") as entry:
                    shutil.copyfileobj(source, entry, _CHUNK)
        with beside.open("rb+") as done:
            os.fsync(done.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _is_folder(path: Path) -> bool:
    if path.is_symlink():
        raise ValueError(f"{path} is a link; put the file itself in its place before packing")
    return path.is_dir()
