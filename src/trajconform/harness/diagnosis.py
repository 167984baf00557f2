"""What is wrong with a driver's reply, in words for whoever wrote the driver.

A `Remark` says what is wrong, which sentence of ``harness/PROTOCOL.md`` says otherwise, and what to do. The functions
here look at one reply, or at what came instead of one; `trajconform.harness.examine` holds the conversation.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trajconform.harness.protocol import OUTCOMES, DriverFault, decode_message, find_faults
from trajconform.model.arrays import NUMPY_DTYPES, Array, decode_array, dtype_name, raw_bytes
from trajconform.model.reply import Difference

FEATURES = ("range", "reopen", "system", "json:text", "check:mrec", "check:otj", "single", "double")
"""The features that a case may need; the page lists the same."""

_MOST = 5
_NUMPY_NAMES = {
    "float64": "f64", "double": "f64", "float": "f64", "float32": "f32", "int8": "i8", "int16": "i16",
    "int32": "i32", "int": "i64", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "boolean": "bool", "str": "string", "utf8": "string", "complex64": "c64", "complex128": "c128",
    "<f8": "f64", "<f4": "f32", "<i4": "i32", "<i8": "i64", "<u8": "u64", "|b1": "bool",
}  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """A sentence of the page and the heading that it stands under."""

    section: str
    quote: str


LINES = Rule("The driver protocol", "one JSON object per line, UTF-8, a line feed at the end of each")
NAN = Rule("The driver protocol", "`NaN` and `Infinity` are no JSON")
OUTPUT = Rule("The driver protocol", "Standard output carries replies and nothing else; flush it after each")
TRANSLATES = Rule("The driver protocol", "A driver *translates* and does not *repair*")
ONE_AT_A_TIME = Rule("A conversation", "The kit sends one request at a time and waits for its reply")
IDS = Rule("A conversation", "a reply repeats the id of its request")
UNKNOWN_MEMBER = Rule("A conversation", "A member of a request that the driver does not know is ignored")
UNKNOWN_OP = Rule("A conversation", "A request whose `op` it does not know is `unsupported`")
KINDS = Rule("Four kinds of reply", "A reply has, beside `id`, exactly one of these members")
REFUSED = Rule("Four kinds of reply", "Only this passes a case that asks for a refusal")
UNSUPPORTED = Rule("Four kinds of reply", "It is no answer to a malformed input")
ERROR = Rule("Four kinds of reply", "It counts as a crash does, but the process lives on")
NO_VERDICT = Rule("Four kinds of reply", "Anything else gives no verdict for the case at hand")
EXACT = Rule("Exact values", "the base64 of the bytes, little-endian, in C order")
DTYPES = Rule("Exact values", "The dtypes are `f64 i8 i16 i32 i64 u8 u16 u32 u64 bool string c64 c128`")
STRINGS = Rule("Exact values", "their data are a list of JSON strings, flat, in C order")
INTEGERS = Rule("Exact values", "plain JSON integers up to 2^53 in magnitude, and decimal strings beyond it")
HELLO = Rule("`hello`", "The first request to every process")
CLAIMS = Rule("`hello`", "what is not claimed is skipped and never failed")
VERSIONS = Rule("`hello`", "A driver that does not know the protocol's version answers with `error`")
UNTOUCHED = Rule("`read`", "reading must leave it untouched, or the case fails")
RANGE = Rule("`read`", "send only the frames from the first number up to, and without, the second")
CALLS = Rule("Writing: `create`, `append`, `flush`, `close`, `reopen`", "A call is answered when it has taken effect")
BYE = Rule("`bye`", "Answer with `{}` and leave")
END_OF_INPUT = Rule("`bye`", "The end of the input without `bye` means the same")
COMMAND = Rule("`driver.toml`", "Commands are lists of a program and its arguments; no shell is involved")
LIMITS = Rule("`driver.toml`", "optional; these are the defaults")
MORE_CLAIMS = Rule("`driver.toml`", "hello may claim less, never more")
_REPLIES = {
    ("read", "otj"): Rule("The reply for `otj`", "`frames` holds every complete frame before the first bad one"),
    ("read", "mrec"): Rule("The reply for `mrec`", "`frames` are complete: every block as it stands at that frame"),
    ("check", ""): Rule("`check`", "`clause`, `path`, `index` and `offset` are optional"),
    ("hello", ""): Rule("`hello`", "`formats` claims, per format, to `read`, to `write`, or both"),
}


@dataclass(frozen=True)
class Remark:
    """Something about a message: wrong where ``grave``, else worth knowing."""

    wrong: str
    rule: Rule
    do: str
    grave: bool = True


def rule_of_reply(request: Mapping[str, Any]) -> Rule:
    """The part of the page that describes the reply to a request."""
    op = request["op"]
    return _REPLIES.get((op, request.get("format", "") if op == "read" else ""), CALLS if op != "bye" else BYE)


# -- what is no reply ----------------------------------------------------------------------------------------------


def about_line(line: bytes, following: bytes, request: Mapping[str, Any]) -> Remark:
    """A line that is no JSON object. ``following`` is what came after it."""
    op = request["op"]
    try:
        decode_message(line)
    except ValueError as error:
        wrong = f"the reply to {op!r} is not one JSON object: {error}"
    else:
        raise ValueError("the line is a JSON object")
    text = line.decode("utf-8", "replace").strip()
    if not text:
        return Remark(
            f"an empty line came where the reply to {op!r} was due", LINES, "End each reply with one line feed."
        )
    if line.startswith(b"\xef\xbb\xbf"):
        return Remark(f"the reply to {op!r} begins with a byte order mark", LINES, "Write UTF-8 without one.")
    if line[:2] in (b"\xff\xfe", b"\xfe\xff") or line[:2] == b"{\0":
        return Remark(f"the reply to {op!r} is UTF-16", LINES, "Write UTF-8, whatever the platform's default is.")
    if "\ufffd" in text and "not UTF-8" in wrong:
        return Remark(wrong, LINES, "Encode the line as UTF-8; numbers of a file travel as base64, never as raw bytes.")
    if re.search(r"(?<![\w\"])-?(NaN|Infinity|nan|inf)(?![\w\"])", text) and text.startswith("{"):
        return Remark(wrong, NAN, "Send numbers that must be exact as arrays: a NaN then travels as its bits.")
    if text in ("{", "[") or (text.startswith("{") and _completes(line, following)):
        do = "Write the object without line breaks: no indentation, no pretty-printing."
        return Remark(f"the reply to {op!r} is spread over several lines", LINES, do)
    if re.match(r"\{\s*'", text):
        return Remark(
            wrong, LINES, 'That is how a language prints its own object: names and strings of JSON are in "…".'
        )
    if re.search(r"[:\[,]\s*(True|False|None)\b", text):
        return Remark(wrong, LINES, "JSON writes true, false and null: send the object through a JSON library.")
    if text.startswith("{") and "Extra data" in wrong:
        return Remark(
            f"two things stand on the line of the reply to {op!r}", LINES, "Put a line feed after each object."
        )
    if not text.startswith(("{", "[", '"')):
        do = "Send text for people to standard error; a library that prints can be redirected there once at the start."
        return Remark(f"text that is no JSON came where the reply to {op!r} was due", OUTPUT, do)
    if "stands twice" in wrong:
        return Remark(wrong, LINES, "Write each member once.")
    if "an object" in wrong:
        return Remark(wrong, LINES, 'A reply is an object with "id" and one of ok, refused, unsupported, error.')
    return Remark(wrong, LINES, "Build the line with a JSON library; a text put together by hand is easily not JSON.")


def _completes(line: bytes, following: bytes) -> bool:
    """Whether a line is the beginning of an object that ends on a later one."""
    whole = line + b"\n" + following[:200_000]
    return not _begins_with_json(line) and _begins_with_json(whole)


def _begins_with_json(text: bytes) -> bool:
    try:
        json.JSONDecoder().raw_decode(text.decode("utf-8", "replace").strip())
    except ValueError:
        return False
    return True


def about_fault(
    fault: DriverFault, request: Mapping[str, Any], *, partial: bytes, unread: int, late: bytes, seconds: float
) -> Remark:
    """Something that ended the process or made the kit end it.

    ``partial`` is what lay on the output without being a line, ``unread`` how much of the request was never taken,
    ``late`` what came once the input had been closed, ``seconds`` the limit.
    """
    op, wrong = request["op"], f"the driver {fault}"
    if fault.kind == "hang":
        return _about_hang(op, partial, unread, late, seconds)
    if fault.kind == "flood" and "log" in str(fault):
        do = "Write less to standard error, or raise log_mib under [limits] in driver.toml."
        return Remark(wrong, LIMITS, do)
    if fault.kind == "flood":
        do = "Send one line and stop; if a reply of this size is right, raise reply_mib under [limits] in driver.toml."
        return Remark(wrong, LIMITS, do)
    if fault.kind == "memory":
        do = "Allocate by what the file holds, not by what a header says; or raise memory_mib under [limits]."
        return Remark(wrong, LIMITS, do)
    if "closed its output" in str(fault):
        return Remark(wrong, OUTPUT, "Keep standard output open until 'bye'.")
    if partial.strip():
        ended = _as_json(partial) is not None
        what = "a whole JSON object without the line feed that ends a line" if ended else "a part of a line"
        return Remark(f"{wrong}: {what}", LINES, "End each reply with a line feed and flush it before leaving.")
    if "exited with status 0" in str(fault):
        do = "Go on reading requests until 'bye' or the end of the input: answer, then read the next line."
        return Remark(wrong, ONE_AT_A_TIME, do)
    do = (
        "Its standard error, where it wrote any, says why; run the command of driver.toml by hand and type the request."
    )
    if "exited" in str(fault) and op == "hello":
        do = "It ended before it had answered anything: look at its standard error, and at [setup] in driver.toml."
    return Remark(wrong, NO_VERDICT, do)


def _about_hang(op: str, partial: bytes, unread: int, late: bytes, seconds: float) -> Remark:
    within = f"within {seconds:g} s"
    if unread:
        do = "Read standard input line by line in a loop and answer each line before reading the next."
        return Remark(
            f"no reply to {op!r} came {within}: the request still lies in the input, nobody reads it", ONE_AT_A_TIME, do
        )
    if partial.strip():
        ended = _as_json(partial) is not None
        what = "a JSON object came, but no line feed after it" if ended else "the line that was begun has no end"
        return Remark(
            f"no reply to {op!r} came {within}: {what}", LINES, "End each reply with a line feed, then flush."
        )
    if late.strip():
        wrong = f"no reply to {op!r} came {within}; once the input was closed, it did"
        do = (
            "Flush standard output after each reply (print(..., flush=True), fflush(stdout)), and read the input line by "
            "line, not up to its end."
        )
        return Remark(wrong, OUTPUT, do)
    limit = "start_seconds" if op == "hello" else "request_seconds"
    do = f"Find out what it waits for; where it does need so long, raise {limit} under [limits] in driver.toml."
    return Remark(f"no reply to {op!r} came {within}, though the request was read", LIMITS, do)


def about_surplus(text: bytes, request: Mapping[str, Any]) -> Remark:
    """Bytes that follow a reply without having been asked for."""
    op = request["op"]
    if not text.strip():
        return Remark(f"an empty line follows the reply to {op!r}", OUTPUT, "End each reply with one line feed.")
    if _as_json(text.splitlines()[0]) is not None:
        return Remark(f"a second reply follows the one to {op!r}", ONE_AT_A_TIME, "Answer each request once.")
    return Remark(f"text follows the reply to {op!r}", OUTPUT, "Send text for people to standard error.")


def _as_json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


# -- replies that are none -----------------------------------------------------------------------------------------


def about_id(got: Any, request: Mapping[str, Any], earlier: int) -> Remark:
    """A reply with another id than its request's."""
    asked, op = request["id"], request["op"]
    if got is None:
        return Remark(f"the reply to {op!r} has no id", IDS, f'Copy it from the request: "id": {asked}.')
    wrong = f"the reply to {op!r} has the id {json.dumps(got)[:60]}, and the request has {asked}"
    if isinstance(got, str) and got.strip() == str(asked):
        return Remark(wrong, IDS, f'An id is a number: "id": {asked}, without quotes.')
    if isinstance(got, (int, float)) and got == asked:
        return Remark(wrong, IDS, f'An id is an integer: "id": {asked}, as it came.')
    if type(got) is int and 1 <= got <= earlier:
        do = "It answers an earlier request: one reply too many went out before, or requests are answered in another order."
        return Remark(wrong, IDS, do)
    return Remark(wrong, IDS, f'Do not count yourself: copy the id of the request, here "id": {asked}.')


def about_kind(message: Mapping[str, Any], request: Mapping[str, Any]) -> Remark:
    """A reply (without its id) that has not exactly one of the four members."""
    names = list(message)
    op = request["op"]
    has = ", ".join(json.dumps(str(name))[:60] for name in names) or "nothing"
    wrong = f"the reply to {op!r} has {has} beside its id"
    kinds = [name for name in names if name in OUTCOMES]
    if len(kinds) > 1:
        return Remark(wrong, KINDS, "Decide for one.")
    if kinds:
        more = ", ".join(f'"{name}"' for name in names if name not in OUTCOMES)
        return Remark(wrong, KINDS, f"Leave {more} out, or put what belongs to the answer inside {kinds[0]!r}.")
    words = {
        "reject": "refused", "rejected": "refused", "refuse": "refused", "fail": "refused", "invalid": "refused",
        "not_supported": "unsupported", "notsupported": "unsupported", "skip": "unsupported", "skipped": "unsupported",
        "exception": "error", "err": "error", "crash": "error", "result": "ok", "success": "ok", "status": "ok",
    }  # fmt: skip
    for name in names:
        near = words.get(str(name).lower()) or next(
            iter(difflib.get_close_matches(str(name).lower(), OUTCOMES, n=1)), None
        )
        if near:
            return Remark(wrong, KINDS, f'"{name}" is no kind of reply; the word is "{near}".')
    if not names:
        return Remark(wrong, KINDS, 'Where there is nothing to say, send "ok": {}.')
    return Remark(wrong, KINDS, f'Put the answer inside "ok": {{"id": {request["id"]}, "ok": {{…}}}}.')


def about_body(kind: str, schema: str, body: Any, request: Mapping[str, Any]) -> list[Remark]:
    """What a schema says against the inside of a reply, one remark a fault."""
    rule = rule_of_reply(request) if kind == "ok" else KINDS
    remarks = []
    for place, words, (keyword, wanted), part in find_faults(schema, body, _MOST):
        where = f"{kind}{place}"
        remarks.append(_about_fault_of_schema(where, words, keyword, wanted, part, rule, kind))
    return remarks


def _about_fault_of_schema(
    where: str, words: str, keyword: str, wanted: Any, part: Any, rule: Rule, kind: str
) -> Remark:
    wrong = f"{where}: {words}"
    name = re.split(r"[.\[]", where)[-1]
    if keyword == "required" and isinstance(part, dict):
        missing = [key for key in wanted if key not in part]
        wrong = f"{where} lacks {', '.join(repr(key) for key in missing)}"
        if set(wanted) == {"dtype", "shape", "data"}:
            return Remark(wrong, EXACT, "An array has dtype, shape and data; a scalar has the shape [].")
        if kind != "ok":
            return Remark(wrong, rule, f'Say it in words: {{"{missing[0]}": "…"}}.')
        return Remark(wrong, rule, f"Add {', '.join(missing)}.")
    if keyword == "additionalProperties" and isinstance(part, dict):
        extra = [key for key in part if f"'{key}'" in words] or ["what is unknown"]
        known = _members_of(words, wanted)
        near = difflib.get_close_matches(extra[0], known, n=1)
        meant = f" ({near[0]!r} is what it is called)" if near else ""
        return Remark(wrong, rule, f"Leave {', '.join(map(repr, extra))} out{meant}.")
    if part is None:
        return Remark(wrong, rule, "What is not there is left out; null stands nowhere in a reply.")
    if name == "dtype" and isinstance(part, str):
        ours = _NUMPY_NAMES.get(part.lower())
        return Remark(wrong, DTYPES, f"Write {ours!r}." if ours else "Write one of these names.")
    if name == "shape":
        return Remark(wrong, EXACT, "A shape is a list of lengths: [] for a scalar, [3] for three values.")
    if name == "data" and isinstance(part, list):
        return Remark(wrong, EXACT, "Only strings travel as a list; of numbers send the base64 of their bytes.")
    if name == "data" and isinstance(part, str):
        if re.search(r"[\r\n ]", part):
            return Remark(f"{where}: the base64 has line breaks or blanks", EXACT, "Send it in one piece.")
        if re.search(r"[-_]", part):
            return Remark(
                f"{where}: base64 of the URL alphabet (- and _)", EXACT, "Use the standard alphabet: + and /."
            )
        return Remark(wrong, STRINGS if "array" in words else EXACT, "Numbers: base64. Strings: a list.")
    if wanted == "object" and isinstance(part, (int, float, str, list)) and kind == "ok" and rule.section != "`hello`":
        do = 'Numbers that must be exact travel as {"dtype", "shape", "data"}; a scalar has the shape [].'
        return Remark(wrong, EXACT, do)
    if keyword == "type" and wanted in ("string", "object", "array", "boolean"):
        a = "an" if wanted[0] in "ao" else "a"
        return Remark(
            wrong,
            rule,
            f"Send {a} {'true or false' if wanted == 'boolean' else wanted} there.".replace("a true", "true"),
        )
    if isinstance(part, bool) or (keyword in ("type", "anyOf") and isinstance(part, float)):
        return Remark(
            wrong, INTEGERS if name in ("step", "nstep", "particles", "rows") else rule, "Send what is asked for."
        )
    return Remark(wrong, rule, "Send what is asked for; the page shows an example.")


def _members_of(words: str, wanted: Any) -> list[str]:
    del wanted
    every = ["format", "particles", "precision", "velocities", "timestep", "masses", "frames", "tail", "error", "step",
             "time", "meta", "blocks", "cell", "rows", "columns", "validity", "shape", "nstep", "declaration", "dtype",
             "data", "value", "name", "version", "language", "formats", "features", "reason", "what", "message",
             "violations", "clause", "path", "index", "offset", "vectors", "origin", "boundary", "defined"]  # fmt: skip
    return [name for name in every if f"'{name}'" not in words]


def about_arrays(body: Any, place: str = "ok") -> Iterator[Remark]:
    """Arrays of a reply that its schema accepts and that are none all the same: sizes, base64, bools."""
    if isinstance(body, Mapping) and body.keys() == {"dtype", "shape", "data"}:
        try:
            decode_array(body)
        except ValueError as error:
            yield Remark(f"{place}: {error}", EXACT, _advice_on_size(body))
        return
    below = body.items() if isinstance(body, Mapping) else enumerate(body) if isinstance(body, list) else ()
    for key, value in below:
        yield from about_arrays(value, f"{place}[{key}]" if isinstance(body, list) else f"{place}.{key}")


def _advice_on_size(array: Mapping[str, Any]) -> str:
    import base64
    import binascii

    if not isinstance(array["data"], str):
        return "As many strings as the shape asks for."
    try:
        size = len(base64.b64decode(array["data"], validate=True))
    except (binascii.Error, ValueError):
        return "Base64 comes in groups of four characters, the last one filled up with '='."
    count = math.prod(array["shape"])
    if array["dtype"] == "bool" and count and size == count:
        return "A bool is the byte 0 or the byte 1."
    if count and size % count == 0:
        fits = [name for name, dtype in NUMPY_DTYPES.items() if dtype.itemsize == size // count and name != "string"]
        if fits:
            several = "s" * (count != 1)
            return f"That many bytes are {count} value{several} of {' or '.join(fits)}: dtype or values are not right."
    return "The bytes are those of all values, one after the other: the product of the shape times the size of one."


# -- replies that say something else -------------------------------------------------------------------------------


def about_difference(difference: Difference, expected: Any, actual: Any) -> Remark:
    """Why a well-formed reply may differ where it does: the ways in which numbers get lost on their way."""
    wrong = f"{difference.path}: expected {difference.expected}, got {difference.actual}"
    left, right = _array_at(difference.path, expected), _array_at(difference.path, actual)
    if left is not None and right is not None:
        rule_and_words = _lost(left, right)
        if rule_and_words is not None:
            return Remark(wrong, *rule_and_words)
    if difference.path.endswith((".step", "nstep")) and _rounded(difference.expected, difference.actual):
        do = (
            "The number went through a double: read 64-bit integers as integers, and send those beyond 2^53 as strings."
        )
        return Remark(wrong, INTEGERS, do)
    do = "'trajconform inspect' shows what the file holds. Where the implementation errs, leave it to 'run' to say so."
    return Remark(wrong, TRANSLATES, do)


def _lost(left: Array, right: Array) -> tuple[Rule, str] | None:
    if dtype_name(left) != dtype_name(right):
        return DTYPES, f"The file holds {dtype_name(left)}: send that dtype and its bytes, without a conversion."
    if left.shape != right.shape:
        return (
            EXACT,
            f"The shape is {list(left.shape)}; a scalar has the shape [], one value a particle the shape [particles].",
        )
    if left.dtype == object:
        return None
    if raw_bytes(left.byteswap()) == raw_bytes(right):
        return EXACT, "These are the right values with their bytes in big-endian order: swap them."
    if left.ndim > 1 and raw_bytes(np.ascontiguousarray(left.T)) == raw_bytes(right):
        return EXACT, "The axes run the other way round: in C order the last axis runs fastest."
    if left.dtype.kind == "f":
        with np.errstate(all="ignore"):
            if left.itemsize == 8 and raw_bytes(left.astype("<f4").astype("<f8")) == raw_bytes(right):
                return EXACT, "The values went through single precision on their way: keep all 64 bits."
            if np.array_equal(left, right, equal_nan=True):
                return (
                    EXACT,
                    "Equal numbers, other bits (a NaN's payload, the sign of a zero): copy the bytes, do not compute with them.",
                )
            if np.allclose(left, right, rtol=1e-6, atol=0, equal_nan=True):
                return (
                    EXACT,
                    "The values are nearly equal: they went through decimal text or were rounded. Copy the bytes.",
                )
    return None


def _array_at(path: str, document: Any) -> Array | None:
    """The array that a difference's path leads to or into, or nothing."""
    for part in re.findall(r"\[(\d+)\]|([^.\[\]]+)", path):
        if isinstance(document, Mapping) and document.keys() == {"dtype", "shape", "data"}:
            break
        try:
            document = document[int(part[0])] if part[0] else document[part[1]]
        except (KeyError, IndexError, TypeError):
            return None
    try:
        return decode_array(document)
    except ValueError:
        return None


def _rounded(expected: str, actual: str) -> bool:
    try:
        left, right = int(expected.strip("'\"")), int(actual.strip("'\""))
    except ValueError:
        return False
    return left != right and abs(left) > 2**53 and int(float(left)) == right


# -- what a driver says of itself ----------------------------------------------------------------------------------


def about_claims(
    said: Mapping[str, Any], claims: Mapping[str, Sequence[str]], features: Sequence[str], formats: Sequence[str]
) -> Iterator[Remark]:
    """What `hello` claims, held to ``driver.toml`` and to what there is."""
    for what, more in (
        (
            "formats",
            [f"to {r} {n}" for n, roles in said["formats"].items() for r in roles if r not in claims.get(n, ())],
        ),
        ("features", [f"the feature {f}" for f in said.get("features", ()) if f not in features]),
    ):
        if more:
            table = "[claims]" if what == "formats" else "features"
            do = f"Add it to {table} in driver.toml, or leave it out of hello."
            yield Remark(f"hello claims {', '.join(more)}, and driver.toml does not", MORE_CLAIMS, do)
    less = [f"to {r} {n}" for n, roles in claims.items() for r in roles if r not in said["formats"].get(n, ())]
    less += [f"the feature {f}" for f in features if f not in said.get("features", ())]
    if less:
        do = "Its cases are skipped; make the two say the same where that is not meant."
        yield Remark(f"driver.toml claims {', '.join(less)}, and hello does not", MORE_CLAIMS, do, grave=False)
    for name in said["formats"]:
        if name not in formats:
            do = f"The formats are {' and '.join(formats)}."
            yield Remark(f"hello claims the format {name!r}, which no case is about", CLAIMS, do, grave=False)
    for name in said.get("features", ()):
        if name not in FEATURES:
            near = difflib.get_close_matches(name, FEATURES, n=1)
            do = f"It is called {near[0]!r}." if near else f"The features are {', '.join(FEATURES)}."
            yield Remark(f"hello names the feature {name!r}, which no case needs", CLAIMS, do, grave=False)
    if not any(said["formats"].values()):
        yield Remark(
            "hello claims to read nothing and to write nothing", CLAIMS, "Name under formats what there is to judge."
        )
