"""Signatures of packs: made and checked with SSH keys, by `ssh-keygen` of OpenSSH.

Who signs says that the pack is theirs; what is in it can be held against its own records by anybody. The signature is
of the manifest, which has the digest of every file.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from askance.errors import UsageError

NAMESPACE = "askance-pack"
"""What the signatures are for: none that was made for anything else is taken for one of a pack."""
LARGEST = 64_000
"""Most bytes of a signature."""
SECONDS = 60.0
"""How long a check may take."""

State = Literal["unsigned", "broken", "unknown", "known", "unchecked"]
"""There is none; it does not fit the manifest; nobody says whose key it is; the signer is known; it was not checked."""

_KEY = re.compile(r"\b([\w-]+) key (SHA256:[\w+/=]{1,64})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What became of a pack's signature."""

    state: State
    signer: str = ""
    """As the file of allowed signers names them."""
    key: str = ""
    """Kind and fingerprint of the key: `ED25519 SHA256:…`."""

    @property
    def words(self) -> str:
        """The same in a sentence without its end."""
        return {
            "unsigned": "It is not signed",
            "broken": "Its signature does not fit: it was changed after it was signed, or the signature is another's",
            "unknown": f"It is signed with the key {self.key}, which no file of signers names",
            "known": f"It is signed by {self.signer} with the key {self.key}",
            "unchecked": "Its signature is not checked: `ssh-keygen` is not installed",
        }[self.state]


def sign(manifest: bytes, key: Path) -> bytes:
    """The signature of a manifest.

    Args:
        manifest: as it stands in the pack.
        key: file of an SSH key, or of its public half where an agent has the other. A passphrase is asked for on the
            terminal.

    Raises:
        UsageError: `ssh-keygen` is not installed, or cannot sign with the key.
    """
    program = _program()
    if program is None:
        raise UsageError("`ssh-keygen` is not installed, and it signs packs.", hint=_INSTALL)
    if not key.is_file():
        raise UsageError(f"There is no key {str(key)!r}.", hint="`ssh-keygen -t ed25519 -f FILE` makes one.")
    done = subprocess.run(
        [program, "-Y", "sign", "-n", NAMESPACE, "-f", str(key)], input=manifest, capture_output=True, check=False
    )
    if done.returncode or not done.stdout:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise UsageError(
            f"`ssh-keygen` cannot sign with the key {str(key)!r}: {said[:300] or 'it does not say why'}.",
            hint="Name the private key, or the public one where an SSH agent has the private one.",
        )
    return done.stdout


_INSTALL = "Install OpenSSH (the package openssh-client), or go without."


def check_signature(manifest: bytes, signature: bytes | None, *, signers: Path | None = None) -> Signature:
    """Holds a signature against a manifest, and against a file of allowed signers.

    Args:
        manifest: as it stands in the pack.
        signature: as it stands in the pack; None where there is none.
        signers: file of allowed signers, a line each: a name, and their public key (`man ssh-keygen`, ALLOWED SIGNERS).

    Raises:
        UsageError: the file of signers cannot be read, or it is given and `ssh-keygen` is not installed.
    """
    if signers is not None and not signers.is_file():
        raise UsageError(
            f"There is no file of signers {str(signers)!r}.",
            hint="Each line of it has a name and a public key: `ada@example.org ssh-ed25519 AAAA…`.",
        )
    if signature is None:
        return Signature(state="unsigned")
    program = _program()
    if program is None and signers is None:
        return Signature(state="unchecked")
    if program is None:
        raise UsageError("`ssh-keygen` is not installed, and it checks signatures.", hint=_INSTALL)
    if len(signature) > LARGEST:
        return Signature(state="broken")
    with TemporaryDirectory(prefix="askance-signature-") as place:
        file = Path(place) / "signature"
        file.write_bytes(signature)
        code, said = _asked([program, "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(file)], manifest)
        key = " ".join(found.groups()) if (found := _KEY.search(said)) else ""
        if code or not key:
            return Signature(state="broken")
        if signers is None:
            return Signature(state="unknown", key=key)
        allowed = ["-f", str(signers), "-s", str(file)]
        code, said = _asked([program, "-Y", "find-principals", *allowed])
        for name in said.splitlines() if code == 0 else ():
            code, _ = _asked([program, "-Y", "verify", "-n", NAMESPACE, "-I", name, *allowed], manifest)
            if code == 0:
                return Signature(state="known", signer=name, key=key)
    return Signature(state="unknown", key=key)


def _program() -> str | None:
    return shutil.which("ssh-keygen")


def _asked(command: list[str], content: bytes = b"") -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    try:
        done = subprocess.run(command, input=content, capture_output=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return 1, ""
    return done.returncode, done.stdout.decode("utf-8", "replace")
