"""One line of a cassette: read as data, checked, never trusted."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from askance.chat import JsonObject
from askance.errors import StoreError
from askance.replay.records import Record, check_key, plain_object

SCHEMA = Path(__file__).with_name("cassette.schema.json")


@dataclass(frozen=True, slots=True)
class Picture:
    """The source bytes of a picture that records speak of by their digest."""

    sha256: str
    media_type: str
    data: bytes = field(repr=False)


def parse_line(text: str) -> JsonObject:
    """The JSON object on a line, of which nothing is believed yet.

    Raises:
        StoreError: no JSON object, a name given twice, a number that JSON has not or that is too large, nesting without end.
    """
    try:
        form: object = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        msg = f"it is no JSON: {error.msg} at column {error.colno}"
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
    return plain_object(cast("JsonObject", form))


def record_of(form: Mapping[str, Any]) -> Record:
    """The record on a line that has passed the schema; its key is computed again.

    Raises:
        StoreError: the key is not that of the request.
    """
    record = Record.from_canonical(form)
    check_key(record)
    return record


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
    from jsonschema.exceptions import best_match

    error = best_match(_validator().iter_errors(form))
    if error is not None:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).lstrip(
            "."
        )
        msg = f"{place or 'the record'}: {_short(error.message)}"
        raise StoreError(msg)


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _short(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"


def _unique(pairs: list[tuple[str, Any]]) -> JsonObject:
    form = dict(pairs)
    if len(form) != len(pairs):
        msg = "it gives a name twice in one object"
        raise StoreError(msg)
    return form


_refuse_constant: Callable[[str], object]


def _refuse_constant(name: str) -> object:
    msg = f"it holds {name}, which is no JSON"
    raise StoreError(msg)
