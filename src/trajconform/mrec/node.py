"""Arrays of a record: Zarr V3 metadata and chunks, decoded for input that nobody vouches for.

zarr-python is not used here. It spends about 2 ms to open one array and 1.7 ms on one slice, which is most of what a
frame costs, and it gives no hold on what hostile metadata makes it allocate. Here metadata is checked before anything
follows from it, a decompressor never yields more than the chunk has room for, and memory follows what is asked for
and what is stored, never what a header claims.
"""

from __future__ import annotations

import itertools
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import google_crc32c
import numpy as np
import zstandard
from numcodecs.shuffle import Shuffle
from numcodecs.vlen import VLenUTF8

from trajconform.model.arrays import NUMPY_DTYPES, Array
from trajconform.model.errors import refuse
from trajconform.mrec.bulk import WholeRows, read_through, read_within, whole_rows
from trajconform.mrec.store import Store

DTYPES = {
    "float64": "f64", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "bool": "bool", "string": "string", "complex64": "c64", "complex128": "c128",
}  # fmt: skip
"""Zarr data type -> dtype of the record. There is no other float: a narrower one is refused, never widened."""

FREE_BYTES = 64 * 1024 * 1024
MAX_CHUNK_BYTES = 128 * 1024 * 1024
"""No chunk is decoded to more than this: a sparse file of any length costs nothing to make."""
MAX_INDEX_BYTES = 16 * 1024 * 1024
"""No index of a shard takes more than this, which is a million inner chunks."""
"""What a chunk may decode to, and one read may hand back, however little of it is stored."""
EXPANSION = 1100
"""How many times what is stored they may be beyond that; DEFLATE reaches 1032."""
_FEW_CHUNKS = 64
"""Up to so many chunks are looked for one by one; of more it is listed which there are."""
_MAX_MEMBERS = 1000
"""gzip members in one chunk; a writer makes one."""
_WINDOW_BYTES = 4 * 1024 * 1024
_STRING_BYTES = 64
"""What a string is taken to weigh in the cache."""
_MISSING = np.uint64(2**64 - 1)
_KNOWN_KEYS = {
    "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs",
    "attributes", "dimension_names", "storage_transformers", "consolidated_metadata",
}  # fmt: skip
_MAX_RANK = 32
_VLEN = VLenUTF8()


@dataclass(frozen=True)
class Chain:
    """A checked codec chain: axis orders, the serialisation, then bytes-to-bytes codecs in order of encoding."""

    orders: tuple[tuple[int, ...], ...]
    serial: str
    big: bool
    shard: Shard | None
    after: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Shard:
    """A checked sharding codec."""

    chunk: tuple[int, ...]
    inner: Chain
    index_big: bool
    index_crc: bool
    at_start: bool


@dataclass(frozen=True)
class Source:
    """A stretch of bytes: of a file, or in memory."""

    name: str
    start: int
    length: int
    data: bytes | None = None


class ArrayNode:
    """One array. ``rows`` and ``read`` decode just the chunks that a window touches.

    ``dtype`` is the record's name of the data type (``f64`` ...), ``shape`` the stored shape. Errors are `Refused`.
    """

    def __init__(self, store: Store, path: str) -> None:
        document = store.document(path)
        if document is None or document["node_type"] != "array":
            raise refuse("MREC-RECORD-11", path, "there is no array")
        self.store, self.path = store, path
        self.attributes: dict[str, Any] = document.get("attributes", {})
        unknown = [
            key for key, value in document.items()
            if key not in _KNOWN_KEYS and not (isinstance(value, dict) and value.get("must_understand") is False)
        ]  # fmt: skip
        if unknown:
            self._bad(f"the metadata key {unknown[0]!r} is not one of Zarr V3")
        self.shape = self._extents(document.get("shape"), "shape", 0)
        self.dtype = self._dtype(document.get("data_type"))
        self.fill = self._fill(document.get("fill_value"))
        grid = document.get("chunk_grid")
        if (
            not isinstance(grid, dict)
            or grid.get("name") != "regular"
            or not isinstance(grid.get("configuration"), dict)
        ):
            self._bad(f"chunk_grid {_short(grid)} is not a regular grid")
        self.chunk = self._extents(grid["configuration"].get("chunk_shape"), "chunk_shape", 1)
        if len(self.chunk) != len(self.shape):
            self._bad(f"chunk_shape {list(self.chunk)} does not fit the shape {list(self.shape)}")
        self._key = self._key_encoding(document.get("chunk_key_encoding"))
        if document.get("storage_transformers"):
            self._bad("storage transformers are not supported")
        self.codecs = document.get("codecs")
        self.chain = self._chain(self.codecs, self.chunk)
        self._at_shard: tuple[int, tuple[str, Array]] | None = None
        """The shard whose index was last asked for."""

    # -- metadata ------------------------------------------------------------------------------------------------

    def _bad(self, message: str, clause: str = "MREC-RECORD-11") -> NoReturn:
        raise refuse(clause, self.path, message)

    def _extents(self, value: Any, name: str, least: int) -> tuple[int, ...]:
        if not isinstance(value, list) or not all(_is_int(n) and least <= n < 2**63 for n in value):
            self._bad(f"{name} {_short(value)} is not a list of integers >= {least}")
        if len(value) > _MAX_RANK:
            self._bad(f"{len(value)} axes are not supported")
        return tuple(value)

    def _dtype(self, value: Any) -> str:
        name = DTYPES.get(value) if isinstance(value, str) else None
        if name is None:
            self._bad(f"the data type {_short(value)} is none of the thirteen of a record", "MREC-CODEC-13")
        return name

    def _fill(self, value: Any) -> Any:
        name = self.dtype
        try:
            if name == "string":
                if not isinstance(value, str):
                    raise ValueError
                return value
            if name == "bool":
                if not isinstance(value, bool):
                    raise ValueError
                return np.bool_(value)
            if name == "f64":
                return _float_fill(value, "f64")
            if name in ("c64", "c128"):
                if not isinstance(value, list) or len(value) != 2:
                    raise ValueError
                part = "f32" if name == "c64" else "f64"
                pair = np.array([_float_fill(value[0], part), _float_fill(value[1], part)])
                return pair.view(NUMPY_DTYPES[name])[0]
            info = np.iinfo(NUMPY_DTYPES[name])
            if not _is_int(value) or not int(info.min) <= value <= int(info.max):
                raise ValueError
            return NUMPY_DTYPES[name].type(value)
        except ValueError:
            self._bad(f"the fill value {_short(value)} is no {name}")

    def _key_encoding(self, value: Any) -> tuple[str, str]:
        name = value if isinstance(value, str) else value.get("name") if isinstance(value, dict) else None
        if name not in ("default", "v2"):
            self._bad(f"chunk_key_encoding {_short(value)} is not supported")
        configuration = value.get("configuration", {}) if isinstance(value, dict) else {}
        separator = (
            configuration.get("separator", "/" if name == "default" else ".")
            if isinstance(configuration, dict)
            else None
        )
        if separator not in ("/", "."):
            self._bad(f"the separator of chunk keys is / or ., not {_short(separator)}")
        return name, separator

    def _chain(self, codecs: Any, extents: tuple[int, ...], depth: int = 0) -> Chain:
        if not isinstance(codecs, list) or not codecs:
            self._bad(f"codecs {_short(codecs)} is not a list of codecs")
        if depth > 3:
            self._bad("shards are nested too deeply", "MREC-CODEC-12")
        orders: list[tuple[int, ...]] = []
        after: list[tuple[str, int]] = []
        serial, big, shard = "", False, None
        shape = extents
        for codec in codecs:
            name = codec if isinstance(codec, str) else codec.get("name") if isinstance(codec, dict) else None
            configuration = codec.get("configuration", {}) if isinstance(codec, dict) else {}
            if not isinstance(configuration, dict):
                self._bad(f"the configuration of the codec {_short(name)} is not an object")
            if name == "transpose":
                order = configuration.get("order")
                if (
                    serial
                    or not isinstance(order, list)
                    or sorted(map(str, order)) != sorted(map(str, range(len(shape))))
                ):
                    self._bad(f"transpose with order {_short(order)} does not fit {len(shape)} axes")
                if not all(_is_int(n) for n in order):
                    self._bad(f"transpose with order {_short(order)} does not fit {len(shape)} axes")
                orders.append(tuple(order))
                shape = tuple(shape[n] for n in order)
            elif name in ("bytes", "vlen-utf8", "sharding_indexed"):
                if serial:
                    self._bad(f"the codec {name} comes after {serial}")
                if name != "sharding_indexed" and (name == "vlen-utf8") != (self.dtype == "string"):
                    self._bad(f"the codec {name} does not store {self.dtype}")
                serial = name
                if name == "bytes":
                    big = self._endian(configuration)
                elif name == "sharding_indexed":
                    shard = self._sharding(configuration, shape, depth)
            elif name in ("gzip", "zstd", "crc32c", "numcodecs.shuffle"):
                if not serial:
                    self._bad(f"the codec {name} comes before any that makes bytes")
                size = configuration.get("elementsize", 4) if name == "numcodecs.shuffle" else 0
                if not _is_int(size) or not 0 <= size <= 256 or (name == "numcodecs.shuffle" and size < 1):
                    self._bad(f"shuffle with elementsize {_short(size)}")
                after.append((name, size))
            else:
                self._bad(f"the codec {_short(name)} is none of a record's codecs", "MREC-CODEC-16")
        if not serial:
            self._bad("no codec makes bytes of the array")
        return Chain(tuple(orders), serial, big, shard, tuple(after))

    def _endian(self, configuration: dict[str, Any]) -> bool:
        wide = self.dtype != "bool" and NUMPY_DTYPES[self.dtype].itemsize > 1
        endian = configuration.get("endian", None if wide else "little")
        if endian not in ("little", "big"):
            self._bad(f"the codec bytes with endian {_short(endian)}")
        return bool(endian == "big")

    def _sharding(self, configuration: dict[str, Any], shape: tuple[int, ...], depth: int) -> Shard:
        chunk = self._extents(configuration.get("chunk_shape"), "the chunk_shape of a shard", 1)
        if len(chunk) != len(shape) or any(n % c for n, c in zip(shape, chunk, strict=True)):
            self._bad(f"inner chunks {list(chunk)} do not divide the shard {list(shape)}")
        index = configuration.get("index_codecs")
        names = [c.get("name") if isinstance(c, dict) else c for c in index] if isinstance(index, list) else None
        if names not in (["bytes"], ["bytes", "crc32c"]):
            self._bad(f"index_codecs {_short(index)} are not bytes and perhaps crc32c", "MREC-CODEC-16")
        assert isinstance(index, list)
        first = index[0].get("configuration", {}) if isinstance(index[0], dict) else {}
        endian = first.get("endian") if isinstance(first, dict) else None
        if endian not in ("little", "big"):
            self._bad(f"index_codecs: bytes with endian {_short(endian)}")
        location = configuration.get("index_location", "end")
        if location not in ("start", "end"):
            self._bad(f"index_location {_short(location)} is neither start nor end")
        inner = self._chain(configuration.get("codecs"), chunk, depth + 1)
        return Shard(chunk, inner, endian == "big", len(names or ()) == 2, location == "start")

    @property
    def sharded(self) -> bool:
        """Whether ``sharding_indexed`` makes bytes of the array."""
        return self.chain.shard is not None

    @property
    def trailing(self) -> tuple[int, ...]:
        """The shape of one row."""
        return self.shape[1:]

    # -- reading -------------------------------------------------------------------------------------------------

    def rows(self, first: int, stop: int) -> Array:
        """Rows ``first`` up to ``stop`` as an exact array ``[stop - first, *trailing]``; all must exist."""
        if not self.shape or not 0 <= first <= stop <= self.shape[0]:
            self._bad(f"rows {first} to {stop} are asked for, there are {list(self.shape)}", "MREC-COMMIT-08")
        layout, found = self._whole_rows, None
        if layout is not None and first < stop:
            if first // layout.rows == (stop - 1) // layout.rows:
                found = read_within(self, layout, first, stop)
            elif layout.row_bytes:
                self.demand((stop - first) * math.prod(self.trailing))
                found = read_through(self, layout, first, stop)
            if found is not None:
                return found
        return self.decoded(first, stop)

    def decoded(self, first: int, stop: int) -> Array:
        """`rows`, decoded chunk by chunk whatever the codecs are."""
        zeros = (0,) * (len(self.shape) - 1)
        return self.read((first, *zeros), (stop, *self.shape[1:]))

    @cached_property
    def _whole_rows(self) -> WholeRows | None:
        return whole_rows(self)

    def shard_entries(self, number: int) -> tuple[str, Array] | None:
        """Of the shard with some number along the rows, the file and the index u64[n, 2]; None where it is missing."""
        last = self._at_shard
        if last is None or last[0] != number:
            key, shard = self._shard_key(number), self.chain.shard
            name = self._file(key)
            length = self.store.files.size(name)
            if length is None or shard is None:
                return None
            counts = tuple(n // c for n, c in zip(self.chunk, shard.chunk, strict=True))
            entries = self._index(shard, Source(name, 0, length), counts, (key,)).reshape(-1, 2)
            self._at_shard = last = number, (name, entries)
        return last[1]

    def inner_chunk(self, number: int, slot: int, keep: bool = True) -> Array | None:
        """One inner chunk of whole rows, decoded, and kept so for the next who asks; None where it is missing."""
        found, shard = self.shard_entries(number), self.chain.shard
        if found is None or shard is None:
            return None
        offset, length = found[1][slot].tolist()
        if offset == length == _MISSING:
            return None
        key = (self._shard_key(number), self._shard_key(slot))
        return self._whole(shard.inner, Source(found[0], offset, length), shard.chunk, key, keep)

    def _shard_key(self, number: int) -> tuple[int, ...]:
        return (number, *(0,) * len(self.trailing))

    @property
    def fill_row(self) -> Array:
        """One row of nothing but the fill value."""
        return self._filled(self.trailing)

    def read(self, start: tuple[int, ...], stop: tuple[int, ...]) -> Array:
        """The values of a box of indices, not to be written to."""
        shape = tuple(b - a for a, b in zip(start, stop, strict=True))
        cells = math.prod(shape)
        if not cells:
            return self._empty(shape)
        self.demand(cells)
        low = tuple(a // c for a, c in zip(start, self.chunk, strict=True))
        high = tuple(-(-b // c) for b, c in zip(stop, self.chunk, strict=True))
        if math.prod(b - a for a, b in zip(low, high, strict=True)) > _FEW_CHUNKS:
            files = sorted(k for k in self._keys if all(a <= n < b for a, n, b in zip(low, k, high, strict=True)))
        else:
            files = list(itertools.product(*map(range, low, high)))
        out: Array | None = None
        for index in files:
            name = self._file(index)
            length = self.store.files.size(name)
            if length is None:
                continue
            inside, outside = _common(start, stop, index, self.chunk)
            part = self._region(self.chain, Source(name, 0, length), self.chunk, *inside, (index,))
            if part.shape == shape:
                return part
            if out is None:
                out = self._filled(shape).copy()
            out[_slices(*outside)] = part
        return self._filled(shape) if out is None else out

    def _empty(self, shape: tuple[int, ...]) -> Array:
        try:
            return np.empty(shape, dtype=NUMPY_DTYPES[self.dtype])
        except ValueError:
            self._bad(f"rows of the shape {list(self.trailing)} are larger than memory can be", "MREC-CODEC-12")

    def _filled(self, shape: tuple[int, ...]) -> Array:
        """Nothing but the fill value, in no memory."""
        return np.broadcast_to(self._one, shape)

    @cached_property
    def _one(self) -> Array:
        one = np.empty((), dtype=NUMPY_DTYPES[self.dtype])
        one[()] = self.fill
        return one

    def demand(self, cells: int) -> None:
        """`Refused` where so many values are more than is read at once: memory follows what is stored."""
        size = cells * self._item_bytes
        if size > FREE_BYTES and size > EXPANSION * self._stored_bytes:
            message = f"{size} bytes of values are asked for at once, {self._stored_bytes} bytes are stored"
            self._bad(message, "MREC-CODEC-12")

    @cached_property
    def _stored_bytes(self) -> int:
        return sum(self.store.files.size(self._file(key)) or 0 for key in self._keys)

    @cached_property
    def _keys(self) -> frozenset[tuple[int, ...]]:
        """Indices of the chunks that have a file."""
        default, separator = self._key[0] == "default", self._key[1]
        names = self.store.files.names
        keys: list[tuple[int | None, ...]]
        if separator == ".":
            parts = [n.split(".") for n in names(self.path)]
            spelled = [p[1:] for p in parts if p[0] == "c"] if default else parts
            keys = [tuple(map(_number, p)) for p in spelled if len(p) == len(self.shape)]
        else:
            paths: list[tuple[str, tuple[int | None, ...]]] = [(f"{self.path}/c" if default else self.path, ())]
            for _ in self.shape:
                paths = [
                    (f"{p}/{n}", (*key, _number(n))) for p, key in paths for n in names(p) if _number(n) is not None
                ]
            keys = [key for _, key in paths]
        return frozenset(tuple(n for n in key if n is not None) for key in keys if None not in key)

    @property
    def _item_bytes(self) -> int:
        return 8 if self.dtype == "string" else NUMPY_DTYPES[self.dtype].itemsize

    def _file(self, index: Sequence[int]) -> str:
        name, separator = self._key
        parts = ["c", *map(str, index)] if name == "default" else [*map(str, index)] or ["0"]
        key = separator.join(parts)
        return f"{self.path}/{key}"

    def _undecodable(self, source: Source, message: str) -> NoReturn:
        raise refuse("MREC-CODEC-12", source.name, message, offset=source.start)

    def _fetch(self, source: Source, start: int, length: int) -> bytes:
        if source.data is not None:
            data = source.data[source.start + start : source.start + start + length]
        else:
            data = self.store.files.read(source.name, source.start + start, length)
        if len(data) != length:
            self._undecodable(source, f"{length} bytes are asked for, the file has {len(data)} of them")
        return data

    def _region(
        self,
        chain: Chain,
        source: Source,
        extents: tuple[int, ...],
        start: tuple[int, ...],
        stop: tuple[int, ...],
        key: tuple[Any, ...],
    ) -> Array:
        """Part of one chunk: of a shard only the inner chunks that the part touches."""
        if chain.shard is None or chain.orders:
            return self._whole(chain, source, extents, key)[_slices(start, stop)]
        if chain.after:
            data = self._unpack(chain, source, None)
            source = Source(source.name, 0, len(data), data)
        shard = chain.shard
        counts = tuple(n // c for n, c in zip(extents, shard.chunk, strict=True))
        entries = self._index(shard, source, counts, key)
        low = tuple(a // c for a, c in zip(start, shard.chunk, strict=True))
        high = tuple(-(-b // c) for b, c in zip(stop, shard.chunk, strict=True))
        shape = tuple(b - a for a, b in zip(start, stop, strict=True))
        there = entries[_slices(low, high)][..., 0] != _MISSING
        out: Array | None = None
        for place in np.argwhere(there).tolist():
            index = tuple(a + n for a, n in zip(low, place, strict=True))
            offset, length = entries[index].tolist()
            inside, outside = _common(start, stop, index, shard.chunk)
            inner = Source(source.name, source.start + offset, length, source.data)
            part = self._region(shard.inner, inner, shard.chunk, *inside, (*key, index))
            if part.shape == shape:
                return part
            if out is None:
                out = self._filled(shape).copy()
            out[_slices(*outside)] = part
        return self._filled(shape) if out is None else out

    def _index(self, shard: Shard, source: Source, counts: tuple[int, ...], key: tuple[Any, ...]) -> Array:
        """The index of a shard, u64[*counts, 2]: offset and length of each inner chunk."""
        cached = self.store.cache.get((self.path, "index", key))
        if cached is not None:
            return cached
        size = 16 * math.prod(counts) + (4 if shard.index_crc else 0)
        if size > source.length:
            self._undecodable(source, f"the shard has {source.length} bytes, its index takes {size}")
        if size > MAX_INDEX_BYTES:
            self._undecodable(source, f"an index of {size} bytes is more than is read ({MAX_INDEX_BYTES})")
        raw = self._fetch(source, 0 if shard.at_start else source.length - size, size)
        if shard.index_crc:
            raw = self._crc(raw, source)
        entries = np.frombuffer(raw, dtype=">u8" if shard.index_big else "<u8").astype("<u8", copy=False).reshape(-1, 2)
        self._check_index(entries, source, (0, size) if shard.at_start else (source.length - size, source.length))
        entries = entries.reshape(*counts, 2)
        self.store.cache.put((self.path, "index", key), entries, entries.nbytes)
        return entries

    def _check_index(self, entries: Array, source: Source, own: tuple[int, int]) -> None:
        """Every entry lies inside the shard, beside the index, and overlaps no other."""
        there = entries[(entries[:, 0] != _MISSING) | (entries[:, 1] != _MISSING)]
        if not len(there):
            return
        limit = np.uint64(source.length)
        if bool((there > limit).any()) or bool((there[:, 0] > limit - there[:, 1]).any()):
            self._undecodable(source, f"the shard index points past the end of its {source.length} bytes")
        begin, end = there[:, 0].astype("i8"), (there[:, 0] + there[:, 1]).astype("i8")
        if bool(((begin < own[1]) & (end > own[0]) & (end > begin)).any()):
            self._undecodable(source, "the shard index points into itself")
        order = np.argsort(begin, kind="stable")
        if bool((end[order][:-1] > begin[order][1:]).any()):
            self._undecodable(source, "entries of the shard index overlap")

    def _whole(
        self, chain: Chain, source: Source, extents: tuple[int, ...], key: tuple[Any, ...], keep: bool = True
    ) -> Array:
        """One whole decoded chunk, from the cache where it was decoded before."""
        cached = self.store.cache.get((self.path, "chunk", key))
        if cached is not None:
            return cached
        size = math.prod(extents) * self._item_bytes
        if size > MAX_CHUNK_BYTES:
            self._undecodable(source, f"a chunk of {size} bytes is more than is decoded ({MAX_CHUNK_BYTES})")
        if size > max(FREE_BYTES, EXPANSION * source.length):
            self._undecodable(source, f"a chunk of {size} bytes is not what {source.length} stored ones decode to")
        shape = extents
        for order in chain.orders:
            shape = tuple(shape[n] for n in order)
        if chain.shard is not None:
            plain = Chain((), chain.serial, chain.big, chain.shard, chain.after)
            values = self._region(plain, source, shape, (0,) * len(shape), shape, (*key, "transposed"))
        else:
            values = self._decode(chain, source, shape)
        for order in reversed(chain.orders):
            values = values.transpose(np.argsort(order))
        weight = values.size * (_STRING_BYTES if self.dtype == "string" else values.itemsize)
        if keep:
            self.store.cache.put((self.path, "chunk", key), values, weight)
        return values

    def _decode(self, chain: Chain, source: Source, shape: tuple[int, ...]) -> Array:
        count = math.prod(shape)
        if chain.serial == "vlen-utf8":
            return self._strings(self._unpack(chain, source, None), count, source).reshape(shape)
        dtype = NUMPY_DTYPES[self.dtype]
        data = self._unpack(chain, source, count * dtype.itemsize)
        if len(data) != count * dtype.itemsize:
            self._undecodable(
                source,
                f"a chunk {list(shape)} of {self.dtype} takes {count * dtype.itemsize} bytes, it has {len(data)}",
            )
        if self.dtype == "bool":
            if data.translate(None, b"\x00\x01"):
                self._undecodable(source, "a bool is stored as a byte other than 0 and 1")
            return np.frombuffer(data, dtype="?").reshape(shape)
        values = np.frombuffer(data, dtype=dtype.newbyteorder(">") if chain.big else dtype).reshape(shape)
        return values.astype(dtype) if chain.big else values

    def _strings(self, data: bytes, count: int, source: Source) -> Array:
        if len(data) < 4 or struct.unpack_from("<I", data)[0] != count:
            self._undecodable(source, f"vlen-utf8: the chunk does not hold {count} strings")
        if len(data) < 4 + 4 * count:
            self._undecodable(source, "vlen-utf8: a string is cut off")
        if not count:
            return np.empty(0, dtype=object)
        try:
            out: Array = np.asarray(_VLEN.decode(data), dtype=object)
        except UnicodeDecodeError:
            self._undecodable(source, "vlen-utf8: a string is not UTF-8")
        except Exception as error:  # what else the decoder raises, it raises for bytes that it cannot decode
            self._undecodable(source, f"vlen-utf8: {error}")
        if 4 + 4 * count + len("".join(out.tolist()).encode()) != len(data):
            self._undecodable(source, "vlen-utf8: bytes follow the last string")
        return out

    def _unpack(self, chain: Chain, source: Source, plain: int | None) -> bytes:
        """Undo the bytes-to-bytes codecs. ``plain`` is the size that the innermost bytes have, when it is known."""
        sizes: list[int | None] = [plain]
        for name, _ in chain.after:
            known = sizes[-1]
            sizes.append(None if known is None or name in ("gzip", "zstd") else known + (4 if name == "crc32c" else 0))
        expected = sizes[-1]
        if expected is not None and expected != source.length:
            self._undecodable(source, f"the chunk is stored in {source.length} bytes, it takes {expected}")
        data = self._fetch(source, 0, source.length)
        most = min(MAX_CHUNK_BYTES, max(FREE_BYTES, EXPANSION * source.length))
        for (name, size), room in zip(reversed(chain.after), reversed(sizes[:-1]), strict=True):
            if name == "crc32c":
                data = self._crc(data, source)
            elif name == "gzip":
                data = self._gunzip(data, source, most if room is None else room)
            elif name == "zstd":
                data = self._unzstd(data, source, most if room is None else room)
            else:
                data = _unshuffle(data, size)
        return data

    def _crc(self, data: bytes, source: Source) -> bytes:
        if len(data) < 4:
            self._undecodable(source, "crc32c: fewer than four bytes")
        body = data[:-4]
        stored = struct.unpack("<I", data[-4:])[0]
        found = google_crc32c.value(body)
        if stored != found:
            self._undecodable(source, f"crc32c: stored {stored:08x}, the bytes have {found:08x}")
        return body

    def _gunzip(self, data: bytes, source: Source, room: int) -> bytes:
        pieces: list[bytes] = []
        left = room + 1
        try:
            for _ in range(_MAX_MEMBERS):
                stream = zlib.decompressobj(31)
                pieces.append(stream.decompress(data, left))
                left -= len(pieces[-1])
                if left <= 0:
                    self._undecodable(source, f"gzip: unpacks to more than the {room} bytes of a chunk")
                if not stream.eof:
                    self._undecodable(source, "gzip: the stream is cut off")
                data = stream.unused_data
                if not data:
                    break
            else:
                self._undecodable(source, f"gzip: more than {_MAX_MEMBERS} members")
        except zlib.error as error:
            self._undecodable(source, f"gzip: {error}")
        return b"".join(pieces)

    def _unzstd(self, data: bytes, source: Source, room: int) -> bytes:
        stream = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        try:
            if zstandard.get_frame_parameters(data).content_size == room:
                with suppress(zstandard.ZstdError):  # more than one frame, or damaged: below
                    return stream.decompress(data, allow_extra_data=False)
            reader = stream.stream_reader(data, read_across_frames=True)
            out = bytes(reader.read(room + 1)) if room < 1 << 20 else _read_some(reader, room + 1)
        except (zstandard.ZstdError, MemoryError, ValueError) as error:
            self._undecodable(source, f"zstd: {error}")
        if len(out) > room:
            self._undecodable(source, f"zstd: unpacks to more than the {room} bytes of a chunk")
        return out

    def windows(self, stop: int, start: int = 0) -> Iterator[tuple[int, int]]:
        """Ranges of rows from ``start`` on, before ``stop``, of which something is stored, each small enough to be read at once."""
        weight = math.prod(self.trailing) * (_STRING_BYTES if self.dtype == "string" else self._item_bytes)
        step = max(1, _WINDOW_BYTES // max(1, weight))
        for first, end in self.stored_spans(stop):
            for at in range(max(first, start), min(end, stop), step):
                yield at, min(at + step, end, stop)

    def stored_spans(self, rows: int) -> list[tuple[int, int]]:
        """Ranges of the first so many rows that chunks on disk cover, merged and in order: all others hold the fill
        value. What lies behind them is not looked at."""
        if not math.prod(self.shape) or not self.shape:
            return []
        rows = min(rows, self.shape[0])
        spans: list[tuple[int, int]] = []
        for first, stop in sorted(self._stored(rows)):
            stop = min(stop, rows)
            if spans and first <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
            elif first < stop:
                spans.append((first, stop))
        return spans

    def _stored(self, rows: int) -> Iterator[tuple[int, int]]:
        """Row ranges of chunks on disk; of a shard, those of the inner chunks it has."""
        for key in self._keys:
            name, begin = self._file(key), key[0] * self.chunk[0]
            length = self.store.files.size(name) if begin < rows else None
            if length is not None:
                for first, stop in self._present(self.chain, Source(name, 0, length), self.chunk, (key,)):
                    yield begin + first, begin + stop

    def _present(
        self, chain: Chain, source: Source, extents: tuple[int, ...], key: tuple[Any, ...]
    ) -> Iterator[tuple[int, int]]:
        shard = chain.shard
        if shard is None or chain.orders or chain.after:
            yield 0, extents[0]
            return
        counts = tuple(n // c for n, c in zip(extents, shard.chunk, strict=True))
        entries, size = self._index(shard, source, counts, key), shard.chunk[0]
        there = entries[..., 0] != _MISSING
        if shard.inner.shard is None:
            edges = np.flatnonzero(np.diff(np.concatenate([[0], there.reshape(counts[0], -1).any(axis=1), [0]])))
            for low, high in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
                yield low * size, high * size
            return
        for place in map(tuple, np.argwhere(there).tolist()):
            offset, length = entries[place].tolist()
            inner = Source(source.name, source.start + offset, length)
            for first, stop in self._present(shard.inner, inner, shard.chunk, (*key, place)):
                yield place[0] * size + first, place[0] * size + stop


def _number(name: str) -> int | None:
    """A chunk index as a file name spells it, None where it is none."""
    spelled = name.isascii() and name.isdigit() and len(name) < 20 and (name[0] != "0" or name == "0")
    return int(name) if spelled else None


def _read_some(reader: Any, limit: int) -> bytes:
    """Read a stream up to a limit in steps, so that memory follows what comes out."""
    pieces: list[bytes] = []
    left = limit
    while left:
        piece = reader.read(min(left, 1 << 20))
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _unshuffle(data: bytes, size: int) -> bytes:
    whole = len(data) // size * size
    if whole == len(data):
        return bytes(Shuffle(size).decode(data))
    return bytes(Shuffle(size).decode(data[:whole])) + data[whole:]


def _common(
    start: tuple[int, ...], stop: tuple[int, ...], index: tuple[int, ...], chunk: tuple[int, ...]
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]:
    """What a box and a chunk have in common: its corners inside the chunk, and inside the box."""
    low = tuple(max(a, i * c) for a, i, c in zip(start, index, chunk, strict=True))
    high = tuple(min(b, (i + 1) * c) for b, i, c in zip(stop, index, chunk, strict=True))
    corner = tuple(i * c for i, c in zip(index, chunk, strict=True))
    return (_minus(low, corner), _minus(high, corner)), (_minus(low, start), _minus(high, start))


def _minus(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def _slices(start: tuple[int, ...], stop: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(a, b) for a, b in zip(start, stop, strict=True))


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _float_fill(value: Any, name: str) -> Any:
    dtype = NUMPY_DTYPES[name]
    if isinstance(value, str):
        named = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
        if value in named:
            return dtype.type(named[value])
        if value.startswith("0x") and len(value) == 2 + 2 * dtype.itemsize:
            return np.frombuffer(bytes.fromhex(value[2:])[::-1], dtype=dtype)[0]
        raise ValueError(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(value)
    try:
        return dtype.type(value)
    except OverflowError:
        raise ValueError(value) from None


def _short(value: object, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
