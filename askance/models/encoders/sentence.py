"""`st:`: sentence encoders, run by transformers, with the pooling that they were made with, brought to the length 1.

    st:FOLDER?pooling=mean&prompt=query&device=auto&dtype=float32&batch=32

Weights are read from safetensors files alone, and no code that comes with them is run. What an encoder has behind its
pooling, dense layers apart, is left to sentence-transformers where that is installed, and refused where it is not. What
a text is made into depends on its batch only by rounding; the first vector is recorded and stays.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.chat import ModelId
from askance.errors import ConfigError, UsageError
from askance.models.encoders.recipes import MODES, OWN, Recipe, recipe_of
from askance.models.encoders.sentence_layers import Encodes, Wanted, load_layers
from askance.models.encoders.settling import settings_in
from askance.models.local.folders import REVISION, hub_folder
from askance.models.settings import Local

if TYPE_CHECKING:
    from askance.chat import JsonObject

BATCH = 32
"""Texts that are encoded at a time."""

DIGEST = "sha256:"
"""Begins the name of an encoder that is known by the digest of its files alone."""

_DECIDING = frozenset({".json", ".model", ".safetensors", ".txt"})
"""Endings of the files that decide vectors: weights, configuration, vocabulary."""


class SentenceEncoder:
    """A sentence encoder; its weights are loaded when the first text is encoded.

    Args:
        source: a folder, or a name on the hub (`sentence-transformers/all-mpnet-base-v2`, with `@revision` behind it
            where another one than `main` is meant), which was downloaded before or transformers downloads. `sha256:…`
            names a folder by the digest of its files, for its records. Settings stand behind a `?`.
        batch: texts that are encoded at a time, unless the settings say.

    Raises:
        ConfigError: there is no such folder, and it is no name on the hub; the folder holds no safetensors file; or
            what is asked for is not how it was made.
    """

    normalized = True

    def __init__(self, source: str, *, batch: int = BATCH) -> None:
        own = {"pooling": _pooling, "prompt": str}
        held = Local(batch=batch, dtype="float32")
        self.source, self.local, said = settings_in(source, provider="st", local=held, own=own)
        self.spec = f"st:{self.source}"
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="askance-embed")
        path = Path(self.source).expanduser()
        self.folder = path if path.is_dir() else None
        if self.folder is None and not self.source.startswith(DIGEST):
            _check_name(self.source)
        if self.folder is not None and not any(self.folder.rglob("*.safetensors")):
            raise ConfigError(
                f"The folder {str(self.folder)!r} holds no weights in safetensors files.",
                hint="Give the folder of a sentence encoder as it was saved.",
            )
        recipe = None if self.folder is None else self._recipe(self.folder)
        self._prompt: str | None = said.get("prompt")
        # What a name stands for is seen where its files are: unless it is said, it counts as one that averages.
        self._pooling: str = said.get("pooling") or (recipe.pooling if recipe else "mean")
        if recipe is not None:
            self._wanted.check(recipe)

    @property
    def parameters(self) -> JsonObject:
        """What else decides its vectors."""
        prompt = {} if self._prompt is None else {"prompt": self._prompt}
        dtype = {} if self.local.dtype == "float32" else {"dtype": self.local.dtype}
        return {"pooling": self._pooling, "normalized": True, **prompt, **dtype}

    @cached_property
    def id(self) -> ModelId:
        """The digest of a folder's files; else name and revision on the hub."""
        if self.folder is not None:
            return ModelId("st", DIGEST + _digest(self.folder))
        if self.source.startswith(DIGEST):
            return ModelId("st", self.source)
        return ModelId("st", "@".join(self._named))

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector of length 1 for each text; what is longer than the encoder reads is cut off.

        Raises:
            MissingExtra: torch or transformers is not installed.
            ConfigError: the weights cannot be loaded, or are of an encoder that is made otherwise.
            UsageError: only the digest of the files is known.
            ModelError: one text alone does not fit into memory.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._encoded, list(texts))

    async def aclose(self) -> None:
        """Lets go of the weights."""
        self.__dict__.pop("_layers", None)

    @property
    def _named(self) -> tuple[str, str]:
        name, _, revision = self.source.partition("@")
        return name, revision or self.local.revision or REVISION

    @property
    def _wanted(self) -> Wanted:
        return Wanted(spec=self.spec, local=self.local, pooling=self._pooling, prompt=self._prompt)

    def _encoded(self, texts: Sequence[str]) -> list[list[float]]:
        # Texts of about one length stand together, so that little is padded.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        # Half a surrogate pair has no form that a tokenizer takes.
        plain = [texts[place].encode("utf-8", "replace").decode("utf-8") for place in order]
        made = dict(zip(order, self._layers(plain), strict=True))
        return [made[place] for place in range(len(texts))]

    @cached_property
    def _layers(self) -> Encodes:
        if self.folder is None and self.source.startswith(DIGEST):
            raise UsageError(
                f"The sentence encoder 'st:{self.source[:19]}…' is known by the digest of its files alone.",
                hint="Name its folder: `st:FOLDER`.",
            )
        if self.folder is not None:
            return load_layers(str(self.folder), REVISION, self._wanted)
        name, revision = self._named
        found = hub_folder(name, revision)
        return load_layers(name if found is None else str(found), revision, self._wanted)

    def _recipe(self, folder: Path) -> Recipe:
        try:
            return recipe_of(lambda name: _json(folder / name))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"The files of {self.spec!r} that say how it pools cannot be used: {error}.",
                hint="Give the folder of a sentence encoder as it was saved.",
            ) from error


def _pooling(text: str) -> str:
    if text != OWN and not set(text.split("+")) <= {*MODES}:
        msg = f"{', '.join(MODES)}, several joined by `+`, or {OWN}"
        raise ValueError(msg)
    return text


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _check_name(source: str) -> None:
    name = source.partition("@")[0]
    parts = name.split("/")
    if len(parts) > 2 or not all(part and not part.startswith((".", "~")) for part in parts):
        raise ConfigError(f"There is no folder {source!r}, and it is no name on the hub.", hint="Check the path.")


def _digest(folder: Path) -> str:
    """Of names and contents of the files that decide vectors; where the folder lies changes nothing."""
    found = sha256()
    for name, path in sorted(_deciding(folder)):
        with path.open("rb") as file:
            found.update(f"{name}\n{file_digest(file, 'sha256').hexdigest()}\n".encode())
    return found.hexdigest()


def _deciding(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in name.parts)
        if path.suffix in _DECIDING and not hidden and path.is_file():
            yield name.as_posix(), path
