"""Small valid instances of JSON Schemas, for endpoints that play a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

JsonObject = dict[str, Any]


def instance(schema: JsonObject, *, root: JsonObject | None = None, place: int = 0) -> Any:
    """A small valid instance of a JSON Schema; `place` tells the items of one array apart."""
    root = schema if root is None else root
    if "$ref" in schema:
        return instance(_resolved(schema["$ref"], root), root=root, place=place)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][place % len(schema["enum"])]
    for union in ("anyOf", "oneOf", "allOf"):
        if union in schema:
            return instance(schema[union][0], root=root, place=place)
    kind = schema.get("type", "object")
    return _MAKERS[kind[0] if isinstance(kind, list) else kind](schema, root, place)


def _resolved(reference: str, root: JsonObject) -> JsonObject:
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def _object(schema: JsonObject, root: JsonObject, place: int) -> JsonObject:
    properties: JsonObject = schema.get("properties", {})
    return {
        name: instance(properties[name], root=root, place=place)
        for name in schema.get("required", properties)
        if name in properties
    }


def _array(schema: JsonObject, root: JsonObject, place: int) -> list[Any]:
    count = max(schema.get("minItems", 0), min(2, schema.get("maxItems", 2)))
    return [instance(schema.get("items", {"type": "string"}), root=root, place=place + index) for index in range(count)]


def _string(schema: JsonObject, root: JsonObject, place: int) -> str:
    text = ("cup", "wall", "coin", "rocket", "cat")[place] if place < 5 else f"thing {place}"
    return text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]


def _number(schema: JsonObject, root: JsonObject, place: int) -> int:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    return min(low + place, schema.get("maximum", low + place))


_MAKERS: dict[str, Callable[[JsonObject, JsonObject, int], Any]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _number,
    "number": _number,
    "boolean": lambda schema, root, place: True,
    "null": lambda schema, root, place: None,
}
