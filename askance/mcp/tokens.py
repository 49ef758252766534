"""The tokens by which a server on this machine knows its clients; without one, nobody is served."""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from askance.errors import UsageError

SHORTEST: Final = 16
"""Characters of a token."""
ONLY: Final = "client"
"""Name of the client where the token is made by the start."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Tokens:
    """Clients by their tokens, of which only digests are held.

    Args:
        tokens: the token of each client, by the client's name.
    """

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._digests = {name: _digest(token) for name, token in tokens.items()}

    @classmethod
    def read(cls, file: Path) -> Tokens:
        """The tokens of a file with a line `NAME TOKEN` for each client.

        Raises:
            UsageError: others can read the file, it holds none, or a line is no name and token of its own.
        """
        try:
            text, mode = file.read_text(encoding="utf-8"), file.stat().st_mode
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The tokens {str(file)!r} cannot be read: {error}.", hint="Name a text file.") from error
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(f"Others can read the tokens {str(file)!r}.", hint=f"chmod 600 {file}")
        tokens: dict[str, str] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            name, _, token = line.strip().partition(" ")
            if not name or name.startswith("#"):
                continue
            if not _NAME.fullmatch(name) or len(token.strip()) < SHORTEST or name in tokens:
                raise UsageError(
                    f"Line {number} of {str(file)!r} is no name and token.",
                    hint="Write `NAME TOKEN`: a name of its own, of letters, digits, `-` and `_`, and a token of at "
                    f"least {SHORTEST} characters.",
                )
            tokens[name] = token.strip()
        if not tokens or len({*tokens.values()}) < len(tokens):
            what = "Two clients have one token" if tokens else "There is no token"
            raise UsageError(f"{what} in {str(file)!r}.", hint="Write a line `NAME TOKEN` for each client.")
        return cls(tokens)

    @classmethod
    def made(cls) -> tuple[Tokens, str]:
        """A token of this start for one client, and its text."""
        token = secrets.token_urlsafe(32)
        return cls({ONLY: token}), token

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the clients."""
        return tuple(self._digests)

    def client_of(self, token: str) -> str | None:
        """The name of the client whose token this is; the time that it takes says nothing of tokens."""
        digest = _digest(token)
        found = [name for name, own in self._digests.items() if hmac.compare_digest(own, digest)]
        return found[0] if found else None


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
