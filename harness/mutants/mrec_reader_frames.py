"""Readers of mrec with one mistake each: layout, frames, steps, times, metadata."""

from __future__ import annotations

from functools import partial
from typing import Any

from trajconform.harness import mutants
from trajconform.harness.mutants import edit, mutant, swap, without

changed = partial(mutants.changed, role="reader")
_NSTEP, _STEPS, _TIMES = "mrec.view:View.nstep", "mrec.view:View.step_progression", "mrec.view:View.time_progression"
_META = "mrec.view:View.meta"

# -- layout --------------------------------------------------------------------------------------------------------

changed("only-ragged-runs", "MREC-LAYOUT-05", "reads blocks with index arrays alone",
        "mrec.view:View._view_block", "elif size:", "elif False:")  # fmt: skip
changed("empty-without-trajectory", "MREC-LAYOUT-08", "takes a record without a trajectory for an empty one",
        "mrec.view:View.attributes", "if found is None:", "if found is None:\n        return {}\n    if False:")  # fmt: skip


@mutant("MREC-LAYOUT-09", role="reader", mistake="leaves a lock file in the store", spoils=True)
def leaves_a_lock() -> None:
    @swap("mrec.reader:open_mrec")
    def open_mrec(original: Any, path: Any) -> Any:
        if path.is_dir():
            (path / ".lock").write_bytes(b"")
        return original(path)


# -- the number of frames ------------------------------------------------------------------------------------------

changed("nstep-ignored", "MREC-COMMIT-03", "counts frames by the array step, whatever nstep says",
        _NSTEP, 'if "nstep" in self.attributes:', 'if "nstep" in self.attributes and not self.has("trajectory/step"):',
        also=("MREC-COMMIT-06",))  # fmt: skip
changed("nstep-as-float", "MREC-COMMIT-04", "takes 4.0 for a number of frames",
        _NSTEP, "not is_int(value)", "not (is_int(value) or isinstance(value, float))")  # fmt: skip
changed("nstep-as-bool", "MREC-COMMIT-04", "takes true for a number of frames",
        _NSTEP, "not is_int(value)", "not isinstance(value, int)")  # fmt: skip
changed("nstep-negative", "MREC-COMMIT-04", "takes a negative number of frames for none",
        _NSTEP, "or value < 0:", 'or value < 0 and not is_int(value):\n            pass\n        if not is_int(value):',)  # fmt: skip
changed("nstep-as-text", "MREC-COMMIT-04", "takes a number in a string",
        _NSTEP, "if not is_int(value)", "value = int(value) if isinstance(value, str) else value\n        if not is_int(value)")  # fmt: skip
changed("longer-arrays-refused", "MREC-COMMIT-05", "refuses arrays that are longer than nstep",
        "mrec.view:View._long_enough", "array.shape[0] < rows", "array.shape[0] != rows")  # fmt: skip
changed("tail-frames-handed-back", "MREC-COMMIT-06", "hands back the frames that the array step has beyond nstep",
        _NSTEP, "return int(value)", "return max(value, self.series('step', 'i64', '').shape[0] if self.has('trajectory/step') else 0)",
        also=("MREC-COMMIT-03",))  # fmt: skip
changed("short-arrays-padded", "MREC-COMMIT-08", "pads an array that is too short with zeros",
        "mrec.view:View._long_enough", "raise refuse(clause, array.path,", "array.shape = (rows, *array.shape[1:])\n        return array\n        raise refuse(clause, array.path,")  # fmt: skip
changed("no-nstep-no-frames", "MREC-COMMIT-09", "finds no frames where nstep is absent",
        _NSTEP, 'return int(self.series("step", "i64", "MREC-STEP-11").shape[0])', "return 0")  # fmt: skip
changed("nothing-refused", "MREC-COMMIT-10", "refuses a store that has neither nstep nor steps",
        _NSTEP, 'if not self.has("trajectory/step"):\n        return 0', 'if False:\n        return 0')  # fmt: skip
changed("progression-without-nstep", "MREC-COMMIT-12", "takes a progression without nstep for one of no frames",
        _NSTEP, "if name in self.attributes:", "if False:")  # fmt: skip

# -- steps and times -----------------------------------------------------------------------------------------------

changed("step-one-late", "MREC-STEP-04", "counts the frames of a progression from one",
        "mrec.view:View.steps", "progression[0] + i * progression[1]", "progression[0] + (i + 1) * progression[1]",
        also=("MREC-STEP-38", "MREC-STEP-19"))  # fmt: skip
changed("step-by-way-of-float", "MREC-STEP-04", "computes steps in binary64",
        "mrec.view:View.steps", "progression[0] + i * progression[1]", "int(float(progression[0]) + i * float(progression[1]))")  # fmt: skip
changed("step-restarts-in-a-range", "MREC-STEP-04", "starts a progression anew where a range starts",
        "mrec.view:View.steps", "for i in range(first, stop)", "for i in range(stop - first)",
        also=("MREC-RESOLVE-09",))  # fmt: skip
changed("start-as-float", "MREC-STEP-05", "takes 4.0 for a start",
        _STEPS, 'not is_int(value.get("start"))', 'not isinstance(value.get("start"), (int, float))')  # fmt: skip
changed("stride-as-float", "MREC-STEP-05", "takes 4.0 for a stride of steps",
        _STEPS, 'not is_int(value["stride"])', 'not isinstance(value["stride"], (int, float))')  # fmt: skip
changed("stride-of-one-by-default", "MREC-STEP-06", "takes a missing stride of steps for one",
        _STEPS, 'if "stride" not in value and self.nstep >= 2:', "if False:")  # fmt: skip
changed("steps-beyond-64-bits", "MREC-STEP-07", "hands back steps outside the 64-bit integers",
        _STEPS, "if not -(2**63) <= end < 2**63:", "if False:")  # fmt: skip
changed("steps-wrap", "MREC-STEP-07", "lets steps wrap around",
        _STEPS, "for end in ends:", "for end in ends[:1]:")  # fmt: skip
changed("steps-are-ordinals", "MREC-STEP-08", "hands back ordinals for stored steps",
        "mrec.view:View.steps", "[int(s) for s in array.rows(first, stop).tolist()]", "[*range(first, stop)]",
        also=("MREC-RESOLVE-09",))  # fmt: skip
changed("step-array-before-attribute", "MREC-STEP-09", "prefers the array step to the attribute",
        "mrec.view:View.steps", "progression = self.step_progression", "progression = None if self.has('trajectory/step') else self.step_progression")  # fmt: skip
changed("unnumbered-frames", "MREC-STEP-10", "hands back frames that nothing numbers",
        "mrec.view:View.step_array", "if self.nstep:", "if False:")  # fmt: skip
changed("stride-of-one-frame-counts", "MREC-STEP-19", "refuses a lone frame for the stride it does not need",
        _STEPS, "start + (self.nstep - 1) * stride", "start + max(self.nstep - 1, 1) * stride")  # fmt: skip
changed("progression-of-no-frames", "MREC-STEP-19", "refuses a progression of no frames",
        _STEPS, "if self.nstep else []", "if self.nstep else [2**63]")  # fmt: skip


@mutant("MREC-STEP-22", role="reader", mistake="computes times with a fused multiply-add")
def times_fused() -> None:
    edit("mrec.view:View.times", "product = index * stride", "product = index.astype('g') * stride")


@mutant("MREC-STEP-22", role="reader", mistake="accumulates the stride from frame to frame")
def times_accumulated() -> None:
    edit("mrec.view:View.times", "return np.asarray(start + product)",
         "return np.cumsum(np.concatenate([[start], np.full(stop - 1, stride)]))[first:stop]")  # fmt: skip


changed("ordinals-in-single-precision", "MREC-STEP-22", "converts the ordinal to single precision",
        "mrec.view:View.times", 'dtype="<f8")', 'dtype="<f4").astype("<f8")')  # fmt: skip
changed("time-start-as-text", "MREC-STEP-23", "takes a start of times in a string",
        _TIMES, 'start = as_float(value.get("start"))', 'start = float(value.get("start") or 0)')  # fmt: skip
changed("time-start-null", "MREC-STEP-23", "takes a missing start for zero",
        _TIMES, "if not isinstance(value, dict) or start is None:", "start = 0.0 if start is None else start\n    if not isinstance(value, dict):")  # fmt: skip
changed("time-stride-null", "MREC-STEP-23", "takes a malformed stride for zero",
        _TIMES, "if stride is None:", "stride = stride or 0.0\n    if stride is None:")  # fmt: skip
changed("time-without-stride", "MREC-STEP-24", "takes a missing stride of times for zero",
        _TIMES, 'if "stride" not in value and self.nstep >= 2:', "if False:")  # fmt: skip
changed("times-lose-bits", "MREC-STEP-25", "normalises stored times by adding zero",
        "mrec.view:View.times", "array.rows(first, stop)", "array.rows(first, stop) + 0.0")  # fmt: skip
changed("time-array-before-attribute", "MREC-STEP-26", "prefers the array time to the attribute",
        _TIMES, 'if "time_progression" not in self.attributes:', 'if "time_progression" not in self.attributes or self.has("trajectory/time"):')  # fmt: skip
changed("times-invented", "MREC-STEP-27", "hands back the step for a time where there are no times",
        "mrec.view:View.times", "None if array is None", "np.array(self.steps(first, stop), '<f8') if array is None")  # fmt: skip
changed("one-frame-computed", "MREC-STEP-38", "computes the time of a lone frame like all others",
        "mrec.view:View.times", "if self.nstep == 1:", "if False:")  # fmt: skip

# -- metadata ------------------------------------------------------------------------------------------------------

changed("tag-guessed", "MREC-META-03", "takes a missing tag for the declared one",
        _META, 'if "meta_dtype" not in array.attributes:', "array.attributes.setdefault('meta_dtype', declared.dtype)\n    if False:")  # fmt: skip
changed("tag-trusted", "MREC-META-04", "trusts the tag without looking at the array",
        _META, "if not array.shape or array.dtype != form.stored or array.trailing != form.trailing:", "if False:")  # fmt: skip
changed("any-tag", "MREC-META-06", "takes a tag that it does not know for the declared one",
        _META, "if not isinstance(tag, str) or tag not in TAGS:", "if not isinstance(tag, str) or tag not in TAGS:\n        tag = declared.dtype\n    if False:")  # fmt: skip
changed("tag-not-compared", "MREC-META-07", "does not compare the stored tag with the declared one",
        _META, "if tag != declared.dtype:", "if False:", also=("MREC-META-04",))  # fmt: skip
changed("meta-one-row-late", "MREC-META-08", "hands back the row before",
        "mrec.reader:MrecFile._meta_values", "rows = array.rows(first, stop)", "rows = array.rows(max(first - 1, 0), max(stop - 1, 1))")  # fmt: skip
changed("meta-loses-bits", "MREC-META-08", "normalises metadata by way of Python numbers",
        "mrec.reader:MrecFile._meta_values", "rows = array.rows(first, stop)", "rows = array.rows(first, stop)\n    rows = rows + 0.0 if rows.dtype == 'f8' else rows")  # fmt: skip
changed("missing-key-left-out", "MREC-META-09", "leaves a declared key out where its array is missing",
        _META, "if self.nstep:", "if False:")  # fmt: skip


@mutant("MREC-META-10", role="reader", mistake="hands back every array under meta")
def undeclared_keys() -> None:
    @swap("mrec.view:View._declared")
    def declared(original: Any, self: Any) -> Any:
        from dataclasses import replace

        found, faults = original(self)
        return replace(found, meta={**self._derived()[0].meta, **found.meta}), faults


changed("json-as-text", "MREC-META-12", "hands a json value back as text",
        "mrec.reader:MrecFile._meta_values", 'dtype == "json":', 'dtype == "json":\n        return rows.tolist()\n    if False:')  # fmt: skip
changed("json-flattened", "MREC-META-12", "hands back the text of a json value only one level deep",
        "mrec.reader:MrecFile._meta_values", "parse_document(array.path, first + i, text)", "{k: str(v) for k, v in d.items()} if isinstance(d := parse_document(array.path, first + i, text), dict) else d")  # fmt: skip
without("MREC-META-15", role="reader", mistake="does not look at fills")
changed("null-fill-refused", "MREC-META-16", "takes the fill null for a malformed one",
        "mrec.declaration:_parse_meta", 'typed_value(tag, entry["fill"])', 'typed_value("f64" if entry["fill"] is None else tag, entry["fill"])')  # fmt: skip


@mutant("MREC-META-17", role="reader", mistake="puts the fill where the stored value is zero", also=("MREC-META-08",))
def fill_over_zero() -> None:
    @swap("mrec.reader:MrecFile._meta_values")
    def values(original: Any, self: Any, key: str, *args: Any) -> Any:
        from trajconform.mrec.declaration import NO_FILL, fill_value

        entry = self._view.declaration.meta[key]
        found = original(self, key, *args)
        if entry.fill is NO_FILL or entry.dtype == "json":
            return found
        return [v if v.any() else fill_value(entry) for v in found]


changed("named-numbers-refused", "MREC-META-34", "refuses a fill that is not finite",
        "mrec.declaration:_typed_scalar", "if isinstance(value, str) and value in named:", "if False:")  # fmt: skip
changed("decimal-strings-refused", "MREC-META-34", "refuses integers in strings",
        "mrec.declaration:_typed_scalar", "len(digits) > 20", "len(digits) > 0")  # fmt: skip
changed("large-integers-refused", "MREC-META-35", "refuses integers beyond 2^53 that are no strings",
        "mrec.declaration:_in_range", "if not _is_int(value):", "if not _is_int(value) or value > 2**53:",
        also=("MREC-META-34",))  # fmt: skip

# -- records and codecs --------------------------------------------------------------------------------------------

without("MREC-RECORD-03", role="reader", mistake="does not look at the version of the record")
changed("newer-versions", "MREC-RECORD-03", "reads a newer version of the record",
        "mrec.rules.record:version_is_known", "1 <= value <= NEWEST_RECORD", "1 <= value")  # fmt: skip
changed("true-is-version-one", "MREC-RECORD-03", "takes true for version 1",
        "mrec.rules.record:version_is_known", "not is_int(value)", "not isinstance(value, int)")  # fmt: skip
changed("version-required", "MREC-RECORD-04", "refuses a record without a version",
        "mrec.rules.record:version_is_known", 'if meta is None or "molrec_version" not in meta:\n        return', 'meta = meta or {}\n    meta.setdefault("molrec_version")')  # fmt: skip
changed("unknown-sections-refused", "MREC-RECORD-06", "refuses sections that it does not know",
        "mrec.rules.record:nodes_are_nodes", "yield from seen(", "yield from [Violation('MREC-RECORD-06', n, 'unknown') for n in view.store.children('') if n not in ('trajectory', 'meta', 'system', 'frame')]\n    yield from seen(")  # fmt: skip
changed("packed-without-folders", "MREC-RECORD-09", "reads folders alone",
        "mrec.store:PackedFiles.size", "return entry.file_size if entry else None", "return None", also=("MREC-RECORD-13",))  # fmt: skip
changed("metadata-not-checked", "MREC-RECORD-11", "takes any JSON for the metadata of a node",
        "mrec.store:Store._parse", "version != 3 or not isinstance(version, int) or kind not in", "kind not in")  # fmt: skip
changed("zip64-refused", "MREC-RECORD-13", "refuses entries with a ZIP64 field",
        "mrec.store:PackedFiles._start", "if entry.flag_bits & 1:", "if entry.flag_bits & 1 or entry.extra[:2] == b'\\x01\\x00':")  # fmt: skip
changed("big-endian-as-little", "MREC-CODEC-01", "reads big-endian bytes as little-endian",
        "mrec.node:ArrayNode._endian", 'return bool(endian == "big")', "return False")  # fmt: skip
changed("gzip-unknown", "MREC-CODEC-02", "does not know gzip",
        "mrec.node:ArrayNode._gunzip", "pieces: list[bytes] = []", "self._bad('gzip')\n    pieces = []")  # fmt: skip
changed("zstd-unknown", "MREC-CODEC-03", "does not know zstd",
        "mrec.node:ArrayNode._unzstd", "stream = zstandard", "self._bad('zstd')\n    stream = zstandard")  # fmt: skip


@mutant("MREC-CODEC-04", role="reader", mistake="does not undo the shuffle")
def shuffle_not_undone() -> None:
    @swap("mrec.node:_unshuffle")
    def unshuffle(original: Any, data: bytes, size: int) -> bytes:
        return data


changed("crc-not-cut-off", "MREC-CODEC-05", "takes the checksum for data",
        "mrec.node:ArrayNode._crc", "return body", "return data")  # fmt: skip
changed("strings-as-latin-1", "MREC-CODEC-06", "decodes strings as Latin-1",
        "mrec.node:ArrayNode._strings", "_VLEN.decode(data)", "[s.encode().decode('latin-1') for s in _VLEN.decode(data)]")  # fmt: skip
changed("index-at-the-end-alone", "MREC-CODEC-07", "looks for the index of a shard at its end alone",
        "mrec.node:ArrayNode._sharding", 'location == "start"', "False")  # fmt: skip
changed("transpose-not-undone", "MREC-CODEC-08", "does not undo the transposition",
        "mrec.node:ArrayNode._chain", "orders.append(tuple(order))", "orders.append(tuple(range(len(order))))")  # fmt: skip
changed("fill-is-zero", "MREC-CODEC-10", "reads a chunk that is not stored as zeros",
        "mrec.node:ArrayNode._one", "one[()] = self.fill", "one[()] = type(self.fill)()")  # fmt: skip
changed("fill-loses-its-sign", "MREC-CODEC-10", "normalises the fill value by adding zero",
        "mrec.node:_float_fill", "return dtype.type(value)", "return dtype.type(value + 0.0)")  # fmt: skip
changed("checksum-not-compared", "MREC-CODEC-12", "does not compare checksums of chunks",
        "mrec.node:ArrayNode._crc", "if stored != found:", "if False:")  # fmt: skip
changed("half-floats-widened", "MREC-CODEC-13", "widens float32",
        "mrec.node:ArrayNode._dtype", "name = DTYPES.get(value)", "name = 'f64' if value == 'float32' else DTYPES.get(value)")  # fmt: skip


@mutant("MREC-CODEC-14", role="reader", mistake="believes consolidated metadata")
def consolidated_believed() -> None:
    @swap("mrec.store:Store._parse")
    def parse(original: Any, self: Any, node: str) -> Any:
        root = original(self, "") or {}
        known = ((root.get("consolidated_metadata") or {}).get("metadata") or {}).get(node)
        return known if known else original(self, node)


changed("unknown-codecs-skipped", "MREC-CODEC-16", "passes over codecs that it does not know",
        "mrec.node:ArrayNode._chain", 'self._bad(f"the codec {_short(name)} is none of a record\'s codecs", "MREC-CODEC-16")', "pass")  # fmt: skip
changed("one-chunk-grid", "MREC-CODEC-09", "takes chunks to hold whole frames",
        "mrec.node:ArrayNode._chain", "if depth > 3:", "if extents[0] == 1 and self.shape[0] > 2:\n        self._bad('small chunks', 'MREC-CODEC-16')\n    if depth > 3:")  # fmt: skip
