"""The fake endpoint keeps its own promises."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from tests.instances import instance

NESTED: dict[str, Any] = {
    "type": "object",
    "$defs": {
        "Thing": {"type": "object", "properties": {"name": {"type": "string", "minLength": 9}}, "required": ["name"]}
    },
    "properties": {
        "things": {"type": "array", "items": {"$ref": "#/$defs/Thing"}, "minItems": 3},
        "kind": {"enum": ["a", "b"]},
        "note": {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]},
    },
    "required": ["things", "kind", "note"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 5}, id="names"),
        pytest.param({"type": "array", "items": {"type": "integer", "minimum": 1}, "uniqueItems": True}, id="numbers"),
        pytest.param({"type": "integer", "minimum": 1, "maximum": 1}, id="one number"),
        pytest.param({"type": ["boolean", "null"]}, id="several types"),
        pytest.param({"const": "yes"}, id="constant"),
        pytest.param(NESTED, id="nested"),
    ],
)
def test_the_default_answer_satisfies_the_schema(schema: dict[str, Any]) -> None:
    jsonschema.validate(instance(schema), schema)
