"""Messages between the kit and a driver: built, parsed and held to the schemas in ``schema/kit``.

Replies come from programs that may be broken or hostile, so parsing is strict: one JSON object, no NaN, no duplicate
members, bounded depth, no half characters. `fastjsonschema` compiles the schemas once and decides; `jsonschema`
words the complaint about the few replies that do not fit. ``harness/PROTOCOL.md`` explains the messages.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from trajconform import kit

PROTOCOL = 1
"""Version of the protocol, sent with `hello`."""

MAX_DEPTH = 100
"""Nesting that a message may have."""

OUTCOMES = ("ok", "refused", "unsupported", "error")

_OK_SCHEMA = {"hello": "response#/$defs/helloOk", "check": "response#/$defs/checkOk"}
_OUTCOME_SCHEMA = {name: f"response#/$defs/{name}" for name in ("refused", "unsupported", "error")}
_PREFIX = "urn:trajconform:kit:"


@dataclass(frozen=True)
class Answer:
    """A driver's answer: ``kind`` is one of `OUTCOMES`, ``body`` what stands under it."""

    kind: str
    body: dict[str, Any]

    @property
    def reason(self) -> str:
        """The words of an answer that is not ok."""
        return str(next((self.body[key] for key in ("reason", "what", "message") if key in self.body), ""))

    @property
    def wire(self) -> dict[str, Any]:
        """The answer as it travelled, without ``id``."""
        return {self.kind: self.body}


class DriverFault(Exception):
    """A driver did something that is no answer. ``kind`` says what, the message says it to a person.

    Kinds: `crash`, `hang`, `flood`, `memory`, `bad json`, `wrong id`, `bad reply`, `surplus`, `start`.
    """

    def __init__(self, kind: str, message: str, *, reply: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.reply = reply
        """What came, where it could at least be parsed."""


class DriverUnavailable(DriverFault):
    """A driver that cannot be started at all: no process, or none that says hello."""

    def __init__(self, message: str) -> None:
        super().__init__("start", message)


def encode_message(message: Mapping[str, Any]) -> bytes:
    """One line of UTF-8 JSON. ValueError for what JSON cannot say (NaN, a lone surrogate)."""
    return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8") + b"\n"


def decode_message(line: bytes) -> dict[str, Any]:
    """Parse one line strictly. ValueError says what is wrong with it."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} of the line is not UTF-8") from None
    try:
        message = json.loads(text, object_pairs_hook=_members, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep") from None
    if not isinstance(message, dict):
        raise ValueError(f"a message is an object, not {_kind(message)}")
    if _deeper_than(message, MAX_DEPTH):
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(message, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("a string holds half of a surrogate pair") from None
    return message


def decode_reply(line: bytes, request: Mapping[str, Any]) -> Answer:
    """The answer in a line that a driver wrote in reply to ``request``. `DriverFault` where it is none."""
    try:
        message = decode_message(line)
    except ValueError as error:
        raise DriverFault(
            "bad json", f"the reply to {request['op']!r} is not JSON: {error}: {_excerpt(line)}"
        ) from None
    got = message.pop("id", None)
    if type(got) is not int or got != request["id"]:
        said = "without an id" if got is None else f"with the id {_short(got)}"
        raise DriverFault(
            "wrong id", f"answered {said} where request {request['id']} ({request['op']}) was open", reply=message
        )
    return check_reply(message, request)


def check_reply(message: Mapping[str, Any], request: Mapping[str, Any]) -> Answer:
    """Hold a parsed reply (without ``id``) to its schema. `DriverFault` where it does not fit."""
    kinds = [kind for kind in OUTCOMES if kind in message]
    if len(kinds) != 1 or len(message) != 1:
        has = ", ".join(sorted(map(str, message))) or "nothing"
        text = f"a reply has exactly one of {', '.join(OUTCOMES)} beside its id; this one has {_short(has, 200)}"
        raise DriverFault("bad reply", f"the reply to {request['op']!r} is malformed: {text}", reply=message)
    kind = kinds[0]
    complaint = find_fault(body_schema(kind, request), message[kind])
    if complaint:
        raise DriverFault("bad reply", f"the reply to {request['op']!r} is malformed: {kind}{complaint}", reply=message)
    return Answer(kind, message[kind])


def body_schema(kind: str, request: Mapping[str, Any]) -> str:
    """The schema of what stands under ``kind`` in the reply to a request."""
    if kind != "ok":
        return _OUTCOME_SCHEMA[kind]
    if request["op"] == "read":
        return f"reply-{request['format']}"
    return _OK_SCHEMA.get(request["op"], "response#/$defs/done")


def find_fault(schema: str, document: Any) -> str:
    """What is wrong with a document by a schema (``frame#/$defs/block``): place and words, or nothing when it fits."""
    import fastjsonschema

    try:
        _compiled(schema)(document)
    except fastjsonschema.JsonSchemaValueException as error:
        return _complaint(schema, document) or f": {_short(error.message, 300)}"
    return ""


def find_faults(schema: str, document: Any, most: int = 5) -> list[tuple[str, str, Any, Any]]:
    """What is wrong with a document by a schema, each fault on its own.

    A fault is its place (``.frames[0].x``), the words of the schema for it, the keyword that it breaks with what that
    asks for (``("required", [...])``), and the part of the document at the place. Of alternatives the nearest counts.
    """
    import jsonschema

    if not find_fault(schema, document):
        return []
    validator = jsonschema.Draft202012Validator({"$ref": _pointer(schema), "$defs": _definitions()})
    found: dict[tuple[str, str], tuple[str, str, Any, Any]] = {}
    for error in validator.iter_errors(document):
        while error.context:
            error = max(error.context, key=_nearness)
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
        key = (place, _short(error.message, 300))
        found.setdefault(key, (*key, (error.validator, error.validator_value), error.instance))
    return list(found.values())[:most]


def _nearness(error: Any) -> Any:
    """Deep errors belong to the alternative that was meant; a wrong kind of thing to one that was not."""
    return (len(error.path), error.validator not in ("type", "enum", "const", "required"))


def _complaint(schema: str, document: Any) -> str:
    import jsonschema

    validator = jsonschema.Draft202012Validator({"$ref": _pointer(schema), "$defs": _definitions()})
    error = jsonschema.exceptions.best_match(validator.iter_errors(document))
    if error is None:
        return ""
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    return f"{_short(place, 200) if place else ''}: {_short(error.message, 300)}"


@cache
def _compiled(schema: str) -> Callable[[Any], Any]:
    import fastjsonschema

    # The schemas use nothing that draft 7, the newest this compiler knows, reads otherwise.
    compiled: Callable[[Any], Any] = fastjsonschema.compile(
        {"$ref": _pointer(schema), "$defs": _definitions()}, use_default=False
    )
    return compiled


@cache
def _definitions() -> dict[str, Any]:
    """All schemas of the kit as definitions of one document, references rewritten to stay inside it."""
    found: dict[str, Any] = {}
    for path in sorted((kit.root() / "schema" / "kit").glob("*.schema.json")):
        name = path.name.removesuffix(".schema.json")
        found[name] = _inline(json.loads(path.read_text("utf-8")), name)
    return found


def _inline(node: Any, name: str) -> Any:
    if isinstance(node, list):
        return [_inline(item, name) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: _inline(value, name) for key, value in node.items() if key not in ("$id", "$schema")}
    target = out.get("$ref")
    if isinstance(target, str):
        out["$ref"] = _pointer(target.removeprefix(_PREFIX) if target.startswith(_PREFIX) else name + target)
    return out


def _pointer(schema: str) -> str:
    name, _, fragment = schema.partition("#")
    return f"#/$defs/{name}{fragment}"


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the member {_short(twice)} stands twice in one object")
    return members


def _no_constant(token: str) -> Any:
    raise ValueError(f"{token} is no JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {_short(text)} is beyond binary64")
    return value


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for item in level
            for child in (item.values() if type(item) is dict else item)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return False
    return True


def _kind(value: Any) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


def _excerpt(line: bytes, limit: int = 120) -> str:
    text = line[: limit * 4].decode("utf-8", "replace")
    return repr(text if len(text) <= limit and len(line) <= limit * 4 else text[:limit] + "...")


def _short(value: object, limit: int = 60) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
