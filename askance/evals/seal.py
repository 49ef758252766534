"""Seals of files that this user's own runs wrote, so that they need not be checked again.

A file from a stranger is checked line by line whenever it is read, which takes longer than all other work on a run. A
file with this user's seal was written here and has not changed since. The seal is an HMAC (RFC 2104) of the file's
SHA-256. Its key lies in the user's configuration and never leaves it: whoever changes a file, or makes a folder or a
pack elsewhere, cannot make a seal for it.
"""

from __future__ import annotations

import hmac
import secrets
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path
from tempfile import NamedTemporaryFile

from askance.errors import ConfigError
from askance.trust import check_owner, consent_file

_LENGTH = 32
"""Bytes of the key, and of a seal."""


def seal_of(file: Path) -> str | None:
    """The seal of a file that was just written, as 64 hex digits; None if the user's key cannot be kept.

    Raises:
        OSError: the file cannot be read.
    """
    key = _key() or _new_key()
    return None if key is None else _seal(file, key)


def has_seal(file: Path, seal: Path) -> bool:
    """Whether a file is exactly as a run of this user wrote it.

    Args:
        file: the file.
        seal: the file with its seal; it may be missing.
    """
    try:
        with seal.open("rb") as text:
            content = text.read(2 * _LENGTH)
        key = _key()
        return key is not None and hmac.compare_digest(content, _seal(file, key).encode())
    except OSError:
        return False


def _seal(file: Path, key: bytes) -> str:
    with file.open("rb") as content:
        return hmac.digest(key, file_digest(content, "sha256").digest(), "sha256").hex()


def _place() -> Path:
    return consent_file().with_name("seal.key")


def _key() -> bytes | None:
    """This user's key; None if there is none, or if its file belongs to somebody else."""
    try:
        check_owner(_place(), "The key of your seals,")
        key = _place().read_bytes()
    except (OSError, RuntimeError, ConfigError):  # RuntimeError: the user has no home folder
        return None
    return key if len(key) == _LENGTH else None


def _new_key() -> bytes | None:
    """Makes the key of this user; None if it cannot be kept."""
    key = secrets.token_bytes(_LENGTH)
    with suppress(OSError, RuntimeError):
        _place().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Only its owner can read it, from the start; it is written whole or not at all.
        with NamedTemporaryFile(dir=_place().parent, prefix=".seal", delete=False) as part:
            try:
                part.write(key)
                part.flush()
                Path(part.name).replace(_place())
            except OSError:
                Path(part.name).unlink()
                raise
    return _key()
