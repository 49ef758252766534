"""Seals, by which this machine knows the files again that its own run folders wrote.

What a stranger wrote is checked line by line whenever it is read, which takes longer than all else that is done with a
run. A file that has this user's seal was written here and is as it was written. The seal is an HMAC (RFC 2104) of the
file's SHA-256, under a key that lies in the user's own configuration and goes nowhere: whoever changes a file, or makes
a folder or a pack elsewhere, cannot make a seal for it.
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
    """The seal of a file that was just written, 64 hex digits; None where this user can keep no key.

    Raises:
        OSError: the file cannot be read.
    """
    key = _key() or _new_key()
    return None if key is None else _seal(file, key)


def has_seal(file: Path, seal: Path) -> bool:
    """Whether a file is as this user's run folder wrote it.

    Args:
        file: the file.
        seal: file of its seal, which need not exist.
    """
    try:
        with seal.open("rb") as text:
            found = text.read(2 * _LENGTH)
        key = _key()
        return key is not None and hmac.compare_digest(found, _seal(file, key).encode())
    except OSError:
        return False


def _seal(file: Path, key: bytes) -> str:
    with file.open("rb") as content:
        return hmac.digest(key, file_digest(content, "sha256").digest(), "sha256").hex()


def _place() -> Path:
    return consent_file().with_name("seal.key")


def _key() -> bytes | None:
    """This user's key; None where there is none, or where it is not the user's own."""
    try:
        check_owner(_place(), "The key of your seals,")
        key = _place().read_bytes()
    except (OSError, RuntimeError, ConfigError):  # RuntimeError: nobody knows where the user's home is
        return None
    return key if len(key) == _LENGTH else None


def _new_key() -> bytes | None:
    """A key, from now on this user's; None where it cannot be kept."""
    key = secrets.token_bytes(_LENGTH)
    with suppress(OSError, RuntimeError):
        _place().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Readable for its owner alone from the start, and there as a whole or not at all.
        with NamedTemporaryFile(dir=_place().parent, prefix=".seal", delete=False) as part:
            try:
                part.write(key)
                part.flush()
                Path(part.name).replace(_place())
            except OSError:
                Path(part.name).unlink()
                raise
    return _key()
