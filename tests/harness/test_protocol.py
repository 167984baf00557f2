"""The protocol page, the schemas and the validation agree with each other, and parsing is strict."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from trajconform.harness.protocol import (
    DriverFault,
    check_reply,
    decode_message,
    decode_reply,
    encode_message,
    find_fault,
)
from trajconform.model.arrays import decode_array

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "harness" / "PROTOCOL.md").read_text("utf-8")
EXAMPLES = re.findall(r"<!-- schema: (\S+) -->\n```json\n(.*?)\n```", PAGE, re.DOTALL)
SCHEMAS = {
    path.name.removesuffix(".schema.json"): json.loads(path.read_text("utf-8"))
    for path in sorted((ROOT / "schema" / "kit").glob("*.schema.json"))
}


def by_identifier(name: str) -> jsonschema.Draft202012Validator:
    """A validator that knows the schemas by their ``$id`` alone, as somebody else's would."""
    registry: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()
    )
    return jsonschema.Draft202012Validator({"$ref": f"urn:trajconform:kit:{name}"}, registry=registry)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_a_schema_and_says_who_it_is(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMAS[name]["$id"] == f"urn:trajconform:kit:{name}"
    assert SCHEMAS[name]["description"]


def test_every_json_block_of_the_page_names_its_schema() -> None:
    assert len(EXAMPLES) == PAGE.count("```json") >= 25


@pytest.mark.parametrize(("schema", "text"), EXAMPLES)
def test_the_examples_of_the_page_fit_their_schemas(schema: str, text: str) -> None:
    document = decode_message(text.encode()) if text.startswith("{") else json.loads(text)
    by_identifier(schema).validate(document)
    assert find_fault(schema, document) == ""
    for array in arrays_in(document):
        decode_array(array)


def test_the_page_shows_every_request_and_every_kind_of_reply() -> None:
    shown = [(schema, json.loads(text)) for schema, text in EXAMPLES]
    asked = {document["op"] for schema, document in shown if schema.startswith("request")}
    assert asked == set(SCHEMAS["request"]["$defs"]) - {"id", "format", "path", "declaration"}
    kinds = {key for schema, document in shown if schema.startswith("response") for key in document if key != "id"}
    assert kinds == {"ok", "refused", "unsupported", "error"}


def test_the_conversation_at_the_top_is_made_of_messages() -> None:
    said = re.findall(r"^([<>]) (\{.*\})$", PAGE, re.MULTILINE)
    asked: dict[str, Any] = {}
    for direction, text in said:
        message = decode_message(text.encode())
        if direction == ">":
            by_identifier("request").validate(message)
            asked = message
        else:
            decode_reply(text.encode(), asked)
    assert len(said) == 6


@pytest.mark.parametrize(("schema", "text"), EXAMPLES)
def test_both_validators_give_every_damaged_example_the_same_verdict(schema: str, text: str) -> None:
    judge = by_identifier(schema)
    refused = 0
    for damaged in damages(json.loads(text)):
        fault = find_fault(schema, damaged)
        assert (fault == "") == judge.is_valid(damaged), (fault, damaged)
        refused += fault != ""
    assert refused, "no damage was noticed at all"


def damages(document: Any) -> Iterator[Any]:
    """The document with each member dropped, replaced by values of other types, or joined by a stranger."""
    for path in paths(document):
        for change in ("drop", "null", "number", "string", "list", "object", "stranger"):
            damaged = copy.deepcopy(document)
            parent = damaged
            for part in path[:-1]:
                parent = parent[part]
            if change == "drop":
                del parent[path[-1]]
            elif change == "stranger":
                if not isinstance(parent[path[-1]], dict):
                    continue
                parent[path[-1]]["?"] = 1
            else:
                values = {"null": None, "number": -1.5, "string": "?", "list": [True], "object": {"a": 1}}
                parent[path[-1]] = values[change]
            yield damaged


def paths(document: Any, above: tuple[Any, ...] = (), limit: int = 5) -> Iterator[tuple[Any, ...]]:
    if limit == 0:
        return
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield (*above, key)
        yield from paths(value, (*above, key), limit - 1)


def arrays_in(document: Any) -> Iterator[Any]:
    if isinstance(document, dict):
        if document.keys() == {"dtype", "shape", "data"}:
            yield document
        else:
            for value in document.values():
                yield from arrays_in(value)
    elif isinstance(document, list):
        for value in document:
            yield from arrays_in(value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", "Expecting value"),
        (b"[]", "a message is an object, not a list"),
        (b"null", "a message is an object, not null"),
        (b"{} {}", "Extra data"),
        (b'{"a":Infinity}', "Infinity is no JSON value"),
        (b'{"a":1e999}', "beyond binary64"),
        (b'{"a":{"b":1,"b":1}}', "the member b stands twice"),
        (b'{"a":"\xc3"}', "byte 6 of the line is not UTF-8"),
        (b'{"a":"\\uDC00"}', "half of a surrogate pair"),
        (b'{"a":' + b'{"a":' * 100 + b"1" + b"}" * 101, "nested more than 100 levels"),
    ],
)
def test_parsing_is_strict(line: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decode_message(line)


def test_what_is_unusual_but_json_is_taken() -> None:
    line = '{"a":"\\ud83d\\ude00 é","b":-0.0,"c":12345678901234567890,"d":{},"e":[]}'.encode()
    message = decode_message(line)
    assert message == {"a": "😀 é", "b": 0.0, "c": 12345678901234567890, "d": {}, "e": []}
    assert decode_message(encode_message(message)[:-1]) == message


def test_a_message_that_json_cannot_say_is_not_built() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_message({"a": float("nan")})


@pytest.mark.parametrize("format_name", ["mrec", "otj"])
def test_a_reply_has_the_form_of_the_format_that_was_asked_for(format_name: str) -> None:
    other = {"mrec": "otj", "otj": "mrec"}[format_name]
    replies = [
        json.loads(text)["ok"] for schema, text in EXAMPLES if schema == "response#/$defs/read" and '"ok"' in text
    ]
    ours = [reply for reply in replies if reply["format"] == format_name]
    assert ours
    for reply in ours:
        assert check_reply({"ok": reply}, {"op": "read", "format": format_name}).kind == "ok"
        with pytest.raises(DriverFault, match=r"ok\.?.*: "):
            check_reply({"ok": reply}, {"op": "read", "format": other})


def test_a_malformed_reply_is_named_by_place() -> None:
    reply = {
        "format": "mrec",
        "nstep": 1,
        "frames": [{"step": 0, "meta": {}, "blocks": {"a": {"rows": -1, "columns": {}}}}],
    }
    with pytest.raises(DriverFault, match=r"ok\.frames\[0\]\.blocks\.a\.rows: ") as caught:
        check_reply({"ok": reply}, {"op": "read", "format": "mrec"})
    assert caught.value.reply == {"ok": reply}
