"""Who answers on this machine: known by weights and how they are held, never by where they lie.

The digest is of names and contents of every file that can change an answer: weights, configuration, vocabulary, chat
template. Digests of weights are kept in the folder, by size and time of change, so that gigabytes are read once.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

from askance.models.local.folders import Folder, find_folder
from askance.models.settings import Local, ModelSettings, Price, family_of_name

if TYPE_CHECKING:
    from askance.chat import JsonObject

KEPT = ".askance-digests.json"
"""File beside the weights that holds their digests."""

TIMEOUT = 3600.0
"""Seconds that one answer may take: loading the weights and waiting for a batch count too."""

DIGITS = 32
"""Hex digits of the digest that stand in an identity."""

_DECIDING = frozenset({".jinja", ".json", ".model", ".tiktoken", ".txt"})
"""Endings of the small files that decide answers."""
_LARGE = 1 << 30
_IDENTITY = re.compile(rf"[\w.-]+:[0-9a-f]{{{DIGITS}}}:\w+(:\w+)?")

_log = logging.getLogger("askance")


def settled(settings: ModelSettings) -> ModelSettings:
    """`settings` of a model on this machine with its identity, its family and what such a model costs: nothing.

    Raises:
        ConfigError: neither a name was given nor is the model on this machine.
    """
    local = settings.local or Local()
    price = settings.price or Price(input=0.0, output=0.0)
    filled = replace(settings, local=local, price=price, timeout=settings.timeout or TIMEOUT)
    if filled.id.name is not None:
        return filled
    if is_identity(filled.id.model):
        return replace(filled, id=replace(filled.id, name=f"hf:{filled.id.model}"))
    folder = find_folder(filled.id.model, local)
    # The architecture tells a family too, whatever the folder is called.
    family = filled.family or family_of_name(f"{folder.kind} {Path(filled.id.model).name}")
    return replace(filled, id=replace(filled.id, name=identity_of(folder, local)), family=family)


def is_identity(model: str) -> bool:
    """Whether `model` is what `identity_of` gives, without `hf:`; such a model has records and cannot be asked."""
    return _IDENTITY.fullmatch(model) is not None


def identity_of(folder: Folder, local: Local) -> str:
    """`hf:KIND:DIGEST:DTYPE`, and how many bits a weight is pressed into, where it is."""
    dtype = folder.dtype if local.dtype == "auto" else local.dtype
    pressed = "" if local.bits is None else f":{local.bits}bit"
    return f"hf:{folder.kind}:{digest_of(folder, local)[:DIGITS]}:{dtype}{pressed}"


def digest_of(folder: Folder, local: Local) -> str:
    """sha256 over the names and digests of the files that decide answers, 64 hex digits."""
    endings = _DECIDING | {".py"} if local.remote_code else _DECIDING
    small = [file for file in folder.path.iterdir() if file.suffix in endings and not file.name.startswith(".")]
    digests = {file.name: _sha256(file) for file in small if file.is_file()} | _digests(folder)
    return sha256("".join(f"{name}\n{digest}\n" for name, digest in sorted(digests.items())).encode()).hexdigest()


def _digests(folder: Folder) -> dict[str, str]:
    """By name: digests of the weights, from what is kept beside them where that still holds."""
    kept, found = _read(folder.path / KEPT), dict[str, list[object]]()
    for file in folder.weights:
        state = file.stat()
        mark = [state.st_size, state.st_mtime_ns]
        old = kept.get(file.name)
        if isinstance(old, list) and cast("list[object]", old)[:2] == mark:
            found[file.name] = cast("list[object]", old)
            continue
        if state.st_size > _LARGE:
            _log.info("Taking the digest of %s, %.1f GB, once.", file.name, state.st_size / 1e9)
        found[file.name] = [*mark, _sha256(file)]
    if found != kept:
        _write(folder.path / KEPT, found)
    return {name: str(entry[2]) for name, entry in found.items()}


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def _read(path: Path) -> JsonObject:
    with suppress(OSError, ValueError):
        found: object = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, Mapping):
            return {
                name: entry
                for name, entry in cast("JsonObject", found).items()
                if isinstance(entry, list) and len(cast("list[object]", entry)) == 3
            }
    return {}


def _write(path: Path, digests: Mapping[str, list[object]]) -> None:
    """A folder that cannot be written costs the digests of its weights again in the next process, and nothing else."""
    part = path.with_suffix(".part")
    with suppress(OSError):
        part.write_text(json.dumps(digests), encoding="utf-8")
        part.replace(path)
