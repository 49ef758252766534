"""`st:`: sentence encoders, run by transformers: the mean over the tokens of a text, brought to the length 1.

Weights are read from safetensors files alone, and no code that comes with them is run. Encoders that pool otherwise, or
that have layers behind the pooling, are refused rather than run wrongly. What a text is made into depends on its batch
only by rounding; the first vector is recorded and stays.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from askance.chat import ModelId
from askance.errors import ConfigError, MissingExtra, UsageError

BATCH = 32
"""Texts that are encoded at a time."""

REVISION = "main"
"""Of a name on the hub, where none is given."""

DIGEST = "sha256:"
"""Begins the name of an encoder that is known by the digest of its files alone."""

_DECIDING = frozenset({".json", ".model", ".safetensors", ".txt"})
"""Endings of the files that decide vectors: weights, configuration, vocabulary."""

_PARTS = {"Transformer", "Pooling", "Normalize"}


class SentenceEncoder:
    """A sentence encoder; its weights are loaded when the first text is encoded.

    Args:
        source: a folder, or a name on the hub (`sentence-transformers/all-mpnet-base-v2`, with `@revision` behind it
            where another one than `main` is meant), which transformers has or downloads. `sha256:…` names a folder by
            the digest of its files, for its records.
        batch: texts that are encoded at a time.

    Raises:
        ConfigError: there is no such folder, and it is no name on the hub; or the folder holds no safetensors file.
    """

    normalized = True
    parameters = {"pooling": "mean", "normalized": True}  # noqa: RUF012  # read by `get_embedder`, never changed

    def __init__(self, source: str, *, batch: int = BATCH) -> None:
        self.source = source
        self.batch = batch
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="askance-embed")
        path = Path(source).expanduser()
        self.folder = path if path.is_dir() else None
        if self.folder is None and not source.startswith(DIGEST):
            _check_name(source)
        if self.folder is not None and not any(self.folder.glob("*.safetensors")):
            raise ConfigError(
                f"The folder {str(self.folder)!r} holds no weights in safetensors files.",
                hint="Give the folder of a sentence encoder as it was saved.",
            )

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
            ConfigError: the weights cannot be loaded, or are of an encoder that pools otherwise.
            UsageError: only the digest of the files is known.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._encoded, list(texts))

    @property
    def _named(self) -> tuple[str, str]:
        name, _, revision = self.source.partition("@")
        return name, revision or REVISION

    def _encoded(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: dict[int, list[float]] = {}
        # Texts of about one length stand together, so that little is padded.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(order), self.batch):
            places = order[start : start + self.batch]
            vectors.update(zip(places, self._batch([texts[place] for place in places]), strict=True))
        return [vectors[place] for place in range(len(texts))]

    def _batch(self, texts: Sequence[str]) -> list[list[float]]:
        torch, tokenizer, model, longest = self._loaded
        # Half a surrogate pair has no form that a tokenizer takes.
        plain = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        tokens = tokenizer(plain, padding=True, truncation=True, max_length=longest, return_tensors="pt")
        with torch.inference_mode():
            hidden = model(**tokens).last_hidden_state
        mask = tokens["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
        return torch.nn.functional.normalize(mean, dim=1).tolist()

    @cached_property
    def _loaded(self) -> tuple[Any, Any, Any, int]:
        """torch, the tokenizer, the model, and how many tokens it reads."""
        if self.folder is None and self.source.startswith(DIGEST):
            raise UsageError(
                f"The sentence encoder 'st:{self.source[:19]}…' is known by the digest of its files alone.",
                hint="Name its folder: `st:FOLDER`.",
            )
        try:
            torch, transformers = import_module("torch"), import_module("transformers")
        except ImportError as error:
            raise MissingExtra(
                f"The embedder 'st:{self.source}' needs torch and transformers, and {error.name} is not installed.",
                hint="pip install 'askance[local]'",
            ) from error
        where, revision = (str(self.folder), REVISION) if self.folder is not None else self._named
        how: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
        try:
            with _without_bars(transformers.utils.logging):
                longest = _longest(_Files(transformers, where, revision))
                tokenizer = transformers.AutoTokenizer.from_pretrained(where, **how)
                model = transformers.AutoModel.from_pretrained(where, use_safetensors=True, **how).float().eval()
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ConfigError(
                f"The sentence encoder 'st:{self.source}' cannot be loaded: {str(error).splitlines()[0].rstrip('.')}.",
                hint="Give a folder that holds it whole: `st:FOLDER`.",
            ) from error
        most = min(int(tokenizer.model_max_length), int(getattr(model.config, "max_position_embeddings", 512)))
        return torch, tokenizer, model, min(longest or most, most)

    async def aclose(self) -> None:
        """Lets go of the weights."""
        self.__dict__.pop("_loaded", None)


@contextmanager
def _without_bars(logging: Any) -> Generator[None]:
    """Keeps transformers from drawing progress bars: whoever runs an evaluation draws one of their own."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


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
            found.update(f"{name}\n{_digest_of(file)}\n".encode())
    return found.hexdigest()


def _digest_of(file: Any) -> str:
    found = sha256()
    while chunk := file.read(1 << 20):
        found.update(chunk)
    return found.hexdigest()


def _deciding(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in name.parts)
        if path.suffix in _DECIDING and not hidden and path.is_file():
            yield name.as_posix(), path


class _Files:
    """The small files of an encoder, in its folder or on the hub."""

    def __init__(self, transformers: Any, where: str, revision: str) -> None:
        self._transformers = transformers
        self._where = where
        self._revision = revision

    def __call__(self, name: str) -> Any:
        """The content of a JSON file; None where there is no such file."""
        found = self._transformers.utils.cached_file(
            self._where, name, revision=self._revision, _raise_exceptions_for_missing_entries=False
        )
        return None if found is None else json.loads(Path(found).read_text(encoding="utf-8"))


def _longest(files: _Files) -> int | None:
    """How many tokens the encoder reads, as it was saved; None where it does not say.

    Raises:
        ValueError: it does more than to average tokens and to normalize.
    """
    for module in files("modules.json") or ():
        kind = str(module["type"]).rpartition(".")[2]
        if kind not in _PARTS:
            raise ValueError(f"it has a layer {kind!r} behind its tokens, and only their mean is known here")
        if kind == "Pooling":
            _check_pooling(files(f"{module['path']}/config.json") or {})
    settings = cast("dict[str, Any]", files("sentence_bert_config.json") or {})
    longest: Any = settings.get("max_seq_length")
    return longest if isinstance(longest, int) else None


def _check_pooling(settings: dict[str, Any]) -> None:
    modes = {name.removeprefix("pooling_mode_") for name, on in settings.items() if on is True and "pooling" in name}
    named = settings.get("pooling_mode")
    modes |= {f"{named}_tokens"} if isinstance(named, str) else set()
    if modes - {"mean_tokens"}:
        raise ValueError(f"it pools by {', '.join(sorted(modes))}, and only the mean over the tokens is known here")
