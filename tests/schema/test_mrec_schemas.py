"""The schemas of mrec: sound themselves, each instance gets its verdict, and no constraint is there for nothing."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from trajconform import kit
from trajconform.mrec.schema import make_validator, schema_faults, schemas
from trajconform.spec.catalogue import load_catalogue

SCHEMAS = dict(schemas())
FOLDER = kit.root() / "vectors" / "schema"
INDEX = json.loads((FOLDER / "index.json").read_text("utf-8"))
INSTANCES = {entry["path"]: json.loads((FOLDER / entry["path"]).read_text("utf-8")) for entry in INDEX}
ANNOTATIONS = {"$schema", "$id", "title", "description"}
SUBSCHEMA = {"items", "additionalProperties", "propertyNames", "not", "if", "then", "else"}
PLAIN = {"$ref", "type", "const", "pattern", "minimum", "maximum", "minItems", "maxItems"}


def constraints(schema: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a schema where something constrains: keywords, named properties, members of lists."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        here = (*path, keyword)
        if keyword in ("$defs", "properties", "patternProperties"):
            if keyword != "$defs":
                yield here
            for name, sub in value.items():
                if keyword != "$defs":
                    yield (*here, name)
                yield from constraints(sub, (*here, name))
        elif keyword in ANNOTATIONS:
            continue
        else:
            yield here
            if keyword in ("allOf", "anyOf", "oneOf"):
                for i, sub in enumerate(value):
                    yield (*here, i)
                    yield from constraints(sub, (*here, i))
            elif keyword in SUBSCHEMA:
                yield from constraints(value, here)
            elif keyword in ("enum", "required"):
                yield from ((*here, i) for i in range(len(value)))
            elif keyword == "dependentRequired":
                for name, needed in value.items():
                    yield (*here, name)
                    yield from ((*here, name, i) for i in range(len(needed)))
            else:
                assert keyword in PLAIN, f"{keyword}: this walk does not know what is inside"


def without(schema: Any, path: tuple[Any, ...]) -> Any:
    changed = copy.deepcopy(schema)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    return changed


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_sound_and_described(name: str) -> None:
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] and len(schema["description"]) > 40


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["path"])
def test_every_instance_gets_its_verdict(entry: dict[str, Any]) -> None:
    accepted = make_validator(entry["schema"]).is_valid(INSTANCES[entry["path"]])
    assert accepted is (entry["verdict"] == "accept")


def test_the_index_names_every_instance_and_known_clauses() -> None:
    on_disk = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.json")} - {"index.json"}
    assert on_disk == set(INSTANCES)
    known = load_catalogue().clauses
    for entry in INDEX:
        assert entry["clauses"] and all(clause in known for clause in entry["clauses"])
    for name in SCHEMAS:
        verdicts = {entry["verdict"] for entry in INDEX if entry["schema"] == name}
        assert verdicts == {"accept", "refuse"} or name == "urn:trajconform:mrec:definitions"


def touches(entry: dict[str, Any]) -> set[Any]:
    """The steps of the schema that fault an instance; for a sound one, the words that stand in it."""
    pending = list(make_validator(entry["schema"]).iter_errors(INSTANCES[entry["path"]]))
    found: set[Any] = set()
    while pending:
        error = pending.pop()
        found.update(error.absolute_schema_path)
        pending += error.context
    return found or set(re.findall(r"\w+", json.dumps(INSTANCES[entry["path"]])))


def likelihood(name: str, path: tuple[Any, ...], entry: dict[str, Any], touched: set[Any]) -> tuple[bool, int]:
    """Sorts the instances for a constraint: an order only, since each one is asked until a verdict differs."""
    return entry["schema"] == name, sum(key in touched for key in path)


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_constraint_is_there_for_nothing(name: str) -> None:
    """Take each keyword out in turn: some instance must then get another verdict."""
    idle: list[str] = []
    touched = {entry["path"]: touches(entry) for entry in INDEX}
    for path in constraints(SCHEMAS[name]):
        changed = SCHEMAS | {name: without(SCHEMAS[name], path)}
        validator = lru_cache(partial(make_validator, documents=changed))  # made when an instance asks for it
        likely_first = sorted(
            INDEX, key=lambda entry: likelihood(name, path, entry, touched[entry["path"]]), reverse=True
        )
        if not any(
            validator(entry["schema"]).is_valid(INSTANCES[entry["path"]]) is not (entry["verdict"] == "accept")
            for entry in likely_first
        ):
            idle.append("/".join(map(str, path)))
    assert idle == []


def test_faults_name_the_place() -> None:
    document = {"blocks": {"b": {"columns": {"v": {"dtype": "f32", "trailing": []}}}}, "meta": {"k": {}}}
    faults = schema_faults("sequence-schema", document)
    assert [fault.split(": ")[0] for fault in faults] == ["/blocks/b/columns/v/dtype", "/meta/k"]
    assert "'f32' is not one of" in faults[0]
