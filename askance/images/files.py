"""Bytes of a picture from a file or a data URI."""

from __future__ import annotations

import binascii
import stat
from base64 import b64decode
from pathlib import Path
from urllib.parse import unquote, unquote_to_bytes

from askance.images.info import Unusable

MAX_FILE = 512_000_000
"""Most bytes of a file that is read."""


def read_file(path: Path) -> bytes:
    """The bytes of a regular file.

    Raises:
        Unusable: a missing file, a folder, a device, a file that may not be read or is larger than `MAX_FILE`.
    """
    try:
        status = path.stat()
        _check(status.st_mode, status.st_size)
        with path.open("rb", buffering=0) as file:
            return file.readall()
    except Unusable:
        raise
    except FileNotFoundError as error:
        raise Unusable("does not exist", "Mend the path.") from error
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Unusable(f"cannot be read: {reason}", "Mend the path or the permissions.") from error


def _check(mode: int, size: int) -> None:
    if stat.S_ISDIR(mode):
        raise Unusable("is a folder", "Name a file in it.")
    if not stat.S_ISREG(mode):
        raise Unusable("is not a regular file", "Copy it into one first.")
    if size > MAX_FILE:
        raise Unusable(f"has more than {MAX_FILE // 1_000_000} MB", "Scale it down first.")


def read_data_uri(uri: str) -> bytes:
    """The bytes in a `data:` URI; its media type is passed over.

    Raises:
        Unusable: no data URI, or one that is not well formed.
    """
    head, comma, body = uri.partition(",")
    if not head.lower().startswith("data:") or not comma:
        raise Unusable("is no data URI", "It reads like data:image/png;base64,iVBORw0KGgo…")
    if not head.lower().rstrip().endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return b64decode("".join(unquote(body).split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unusable(f"is not well formed base64: {error}", "Encode it again.") from error
