"""One line of a cassette: read as data, checked, never trusted."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.documents import UnreadableDocument, misfit, parse_json
from askance.errors import StoreError
from askance.replay.records import MAX_DIGITS, plain_object
from askance.terminal import printable

if TYPE_CHECKING:
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
        form: object = parse_json(text, finite=check, unique=check, most_digits=MAX_DIGITS)
    except UnreadableDocument as error:
        raise StoreError(f"it {error}") from error
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
    if (wrong := misfit(form, SCHEMA, whole="the record")) is not None:
        raise StoreError(printable(wrong))
