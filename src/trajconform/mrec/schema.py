"""The JSON Schemas of mrec, for programs: loaded once, references between them resolved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from trajconform import kit

PREFIX = "urn:trajconform:mrec:"


@cache
def schemas() -> Mapping[str, dict[str, Any]]:
    """Identifier -> schema, from ``schema/mrec``."""
    paths = sorted((kit.root() / "schema" / "mrec").glob("*.schema.json"))
    return {document["$id"]: document for path in paths if (document := json.loads(path.read_text("utf-8")))}


def make_validator(name: str, documents: Mapping[str, Any] | None = None) -> Draft202012Validator:
    """A validator for the schema ``name`` (short, or its identifier), among ``documents`` or the kit's own schemas."""
    documents = schemas() if documents is None else documents
    resources = [(key, Resource.from_contents(value)) for key, value in documents.items()]
    registry: Registry[Any] = Registry().with_resources(resources)
    identifier = name if name.startswith(PREFIX) else PREFIX + name
    return Draft202012Validator(documents[identifier], registry=registry)


def schema_faults(name: str, instance: Any) -> list[str]:
    """What a schema finds wrong with an instance: JSON pointer and message, in order of the pointers."""
    errors = make_validator(name).iter_errors(instance)
    found = [("".join(f"/{part}" for part in error.absolute_path), error.message) for error in errors]
    return [f"{pointer or '/'}: {message}" for pointer, message in sorted(found)]
