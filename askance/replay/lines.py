"""One line of a cassette: read as data, checked, never trusted."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.errors import StoreError
from askance.replay.records import plain_object
from askance.replay.visible import visible

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

    from askance.chat import JsonObject

MAX_VALUES = 1_000_000
"""Values on a line: a few bytes of text can make a hundred of memory."""

SCHEMA = Path(__file__).with_name("cassette.schema.json")


@dataclass(frozen=True, slots=True)
class Picture:
    """The source bytes of a picture that records speak of by their digest."""

    sha256: str
    media_type: str
    data: bytes = field(repr=False)


def parse_line(text: str, *, check: bool = True) -> JsonObject:
    """The JSON object on a line.

    Raises:
        StoreError: no JSON object; or, with `check`, a name given twice, a number that JSON has not or that is too
            large, nesting without end.
    """
    if check and sum(map(text.count, ",[{")) > MAX_VALUES:
        msg = f"it holds more than {MAX_VALUES} values"
        raise StoreError(msg)
    try:
        form: object = _strict.decode(text) if check else json.loads(text)
    except json.JSONDecodeError as error:
        msg = f"it is no JSON ({error.msg}, column {error.colno})"
        raise StoreError(msg) from error
    except RecursionError as error:
        msg = "it is nested too deeply"
        raise StoreError(msg) from error
    except ValueError as error:
        msg = f"it holds a number that cannot be read: {error}"
        raise StoreError(msg) from error
    if not isinstance(form, dict):
        msg = "it is no JSON object"
        raise StoreError(msg)
    return plain_object(cast("JsonObject", form)) if check else cast("JsonObject", form)


def picture_of(form: Mapping[str, Any]) -> Picture:
    """The picture on a line that has passed the schema.

    Raises:
        StoreError: the bytes are not those of the digest.
    """
    image = form["image"]
    try:
        data = b64decode(image["base64"], validate=True)
    except (Base64Error, ValueError) as error:
        msg = f"the bytes of picture {image['sha256'][:12]!r} are no base64"
        raise StoreError(msg) from error
    if sha256(data).hexdigest() != image["sha256"]:
        msg = f"the bytes of picture {image['sha256'][:12]!r} have another digest"
        raise StoreError(msg)
    return Picture(image["sha256"], image["media_type"], data)


def check_form(form: Mapping[str, Any]) -> None:
    """Hold a line against the schema that ships with the package.

    Raises:
        StoreError: it does not fit; the message names the place.
    """
    error = next(_validator().iter_errors(form), None)
    if error is not None:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
        msg = f"{place.lstrip('.') or 'the record'}: {_short(visible(error.message))}"
        raise StoreError(msg)


@cache
def _validator() -> Validator:
    from jsonschema import Draft202012Validator

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return Draft202012Validator(_inlined(schema, schema["$defs"]))


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """`schema` with each reference replaced by what it refers to: looking them up is half of the time of a check."""
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    form = {name: value for name, value in cast("JsonObject", schema).items() if name != "$defs"}
    referred: JsonObject = definitions[form.pop("$ref").rpartition("/")[2]] if "$ref" in form else {}
    return {name: _inlined(value, definitions) for name, value in {**referred, **form}.items()}


def _short(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"


def _unique(pairs: list[tuple[str, Any]]) -> JsonObject:
    form = dict(pairs)
    if len(form) != len(pairs):
        msg = "it gives a name twice in one object"
        raise StoreError(msg)
    return form


def _refuse_constant(name: str) -> object:
    msg = f"it holds {name}, which is no JSON"
    raise StoreError(msg)


_strict = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
