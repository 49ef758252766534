"""`st:`: sentence encoders, run by sentence-transformers, with vectors brought to the length 1.

    st:FOLDER?pooling=mean&prompt=query&device=auto&dtype=float32&batch=32

The identity of an encoder and its pooling are read from its files without sentence-transformers; a replay needs neither
that nor the weights. Weights are read from safetensors files alone, and no code that comes with them is run. The vector
of a text depends on the rest of its batch by rounding only; the first one is recorded and stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import file_digest, sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.chat import ModelId
from askance.documents import parse_json
from askance.errors import ConfigError, MissingExtra
from askance.models.encoders.records import BATCH, settings_in
from askance.models.local.folder import PICKLED, REVISION, SAFE, hub_folder, is_hub_name, no_weights
from askance.models.local.hub import MODEL_FILES, download
from askance.models.local.runtime import EXTRA, BatchRunner, TorchRuntime, tokenizable
from askance.models.settings import Local

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.chat import JsonObject

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
"""Ways of pooling; where there are several, their vectors are joined in this order."""

OWN = "own"
"""The pooling of an encoder that has other layers than a transformer, a pooling and dense layers."""

DIGEST = "sha256:"
"""Begins the identity of an encoder in a folder."""

LONGEST = 512
"""Tokens of a text that are read where neither the tokenizer nor the model has a limit."""

_DECIDING = frozenset({".json", ".model", ".safetensors", ".txt"})
"""Endings of the files that decide vectors: weights, configuration, vocabulary."""

_USUAL = frozenset({"Dense", "Normalize", "Pooling", "Transformer"})
_THEIRS = "sentence_transformers."
_WEIGHTS = {f"pytorch_model{PICKLED}": f"model{SAFE}", f"adapter_model{PICKLED}": f"adapter_model{SAFE}"}
"""By file of weights in a pickle: the safetensors file that is read instead where both are there."""
_OTHERS = ("onnx/*", "openvino/*")
"""Folders with the same weights for other programs."""
_AS_SAVED = "Give the folder of a sentence encoder as it was saved."


class SentenceEncoder:
    """A sentence encoder; its weights are loaded when the first text is encoded.

    Args:
        source: a folder, or a name on the hub (`sentence-transformers/all-mpnet-base-v2`, with `@revision` behind it
            where another one than `main` is meant), which was downloaded before or is downloaded now. `sha256:…` names
            a folder by the digest of its files, for its records. Settings stand behind a `?`.
        batch: texts that are encoded at a time, unless the settings say.

    Raises:
        ConfigError: there is no such folder, and it is no name on the hub; the folder holds no safetensors file; or
            the settings ask for another pooling or prompt than it has.
    """

    normalized = True

    def __init__(self, source: str, *, batch: int = BATCH) -> None:
        own = {"pooling": _pooling, "prompt": str}
        defaults = Local(batch=batch, dtype="float32")
        self.source, self.local, settings = settings_in(source, provider="st", local=defaults, own=own)
        self.spec = f"st:{self.source}"
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="askance-embed")
        path = Path(self.source).expanduser()
        self.folder = path if path.is_dir() else None
        if self.folder is None and not self.source.startswith(DIGEST):
            _check_name(self.source)
        recipe = None if self.folder is None else _recipe_in(self.folder, self.spec)
        self._prompt: str | None = settings.get("prompt")
        # How a name on the hub pools is seen when its files are there; until then it counts as averaging.
        self._pooling: str = settings.get("pooling") or (recipe.pooling if recipe else "mean")
        if recipe is not None:
            self._check(recipe)

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
            MissingExtra: torch, transformers or sentence-transformers is not installed.
            ConfigError: the weights cannot be loaded, or pool in another way than the settings say.
            UsageError: only the digest of the files is known.
            ModelError: one text alone does not fit into memory.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._encoded, list(texts))

    async def aclose(self) -> None:
        """Releases the weights."""
        self.__dict__.pop("_model", None)

    @property
    def _named(self) -> tuple[str, str]:
        name, _, revision = self.source.partition("@")
        return name, revision or self.local.revision or REVISION

    def _encoded(self, texts: Sequence[str]) -> list[list[float]]:
        return self._model.vectors([tokenizable(text) for text in texts])

    @cached_property
    def _model(self) -> _LoadedEncoder:
        if self.folder is None and self.source.startswith(DIGEST):
            raise no_weights(f"st:{self.source[:19]}…")
        dtype = "float32" if self.local.dtype == "auto" else self.local.dtype
        runtime = TorchRuntime(self.spec, self.local, dtype=dtype)
        with runtime.loading():
            folder = self.folder or self._from_hub()
            recipe = _recipe_in(folder, self.spec)
            self._check(recipe)
            if not self.local.pickled:
                _refuse_pickles(folder, self.spec)
            if not self.local.remote_code:
                _refuse_code(folder, recipe, self.spec)
            return _LoadedEncoder(runtime, folder, recipe=recipe, pooling=self._pooling, prompt=self._prompt)

    def _from_hub(self) -> Path:
        """The folder of a name on the hub, downloaded unless it was before."""
        name, revision = self._named
        folder = hub_folder(name, revision)
        if folder is not None and _has_weights(folder):
            return folder
        code = ("*.py",) if self.local.remote_code else ()
        pickled = tuple(f"*{file}" for file in _WEIGHTS) if self.local.pickled else ()
        return download(name, revision=revision, files=(*MODEL_FILES, *code, *pickled), but=_OTHERS)

    def _check(self, recipe: SentenceRecipe) -> None:
        """Checks the settings against what the encoder's files say.

        Raises:
            ConfigError: the encoder pools in another way, or has no such prompt.
        """
        if (recipe.modes is not None or OWN in {self._pooling, recipe.pooling}) and self._pooling != recipe.pooling:
            reason = f"has a layer {recipe.unusual!r}" if recipe.unusual else f"pools by {recipe.pooling}"
            raise ConfigError(
                f"The sentence encoder {self.spec!r} {reason}, and {self._pooling} is asked for.",
                hint=f"Write `{self.spec}?pooling={recipe.pooling}`.",
            )
        if self._prompt is not None and self._prompt not in recipe.prompts:
            names = ", ".join(sorted(recipe.prompts))
            raise ConfigError(
                f"The sentence encoder {self.spec!r} has no prompt {self._prompt!r}.",
                hint=f"It has: {names}." if names else "It has none: leave `prompt` out.",
            )


class _LoadedEncoder:
    """An encoder's weights, used by one thread.

    Args:
        runtime: what it is run with.
        folder: with all of it.
        recipe: what its files say.
        pooling: how it pools where they do not say.
        prompt: name of what is put in front of each text; None is the encoder's own, where it has one.

    Raises:
        MissingExtra: sentence-transformers is not installed.
        Exception: whatever the library raises over files that it cannot use.
    """

    def __init__(
        self, runtime: TorchRuntime, folder: Path, *, recipe: SentenceRecipe, pooling: str, prompt: str | None
    ) -> None:
        local = runtime.local
        self._torch = runtime.torch
        self._prompt = prompt
        self._batches: BatchRunner[str] = BatchRunner(runtime.torch, spec=runtime.spec, most=local.batch)
        self._model = _library(runtime.spec).SentenceTransformer(
            str(folder),
            device=runtime.device,
            trust_remote_code=local.remote_code,
            local_files_only=True,
            model_kwargs={"dtype": runtime.dtype, "use_safetensors": None if local.pickled else True},
        )
        if not recipe.layers:
            self._pool_by(pooling)
        if recipe.unusual is None:
            most = int(getattr(self._model.config, "max_position_embeddings", LONGEST))
            self._model.max_seq_length = min(self._model.max_seq_length, most)
        # Such an encoder would open what a text names, were it the path or the address of a picture.
        self._sees = bool({"audio", "image", "video"} & set(self._model.modalities))

    def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector of the length 1 for each text, in their order.

        Raises:
            ModelError: one text alone does not fit into memory.
        """
        return self._batches.run(texts, self._batch, length=len)

    def _pool_by(self, pooling: str) -> None:
        """Has a plain transformer pooled in the ways that `pooling` names.

        Raises:
            ValueError: its vectors of tokens are not to be had.
        """
        if len(self._model) < 2:
            msg = "it gives a vector a text itself, and nothing is left to pool"
            raise ValueError(msg)
        size = self._model[0].get_embedding_dimension()
        self._model[1] = type(self._model[1])(size, pooling_mode=pooling.split("+"))

    def _batch(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = self._model.encode(
            [{"text": text} for text in texts] if self._sees else list(texts),
            prompt_name=self._prompt,
            batch_size=len(texts),
            show_progress_bar=False,
            convert_to_tensor=True,
        )
        return self._torch.nn.functional.normalize(vectors.float(), dim=1).cpu().tolist()


def _library(spec: str) -> Any:
    try:
        return import_module("sentence_transformers")
    except ImportError as error:
        raise MissingExtra(
            f"The sentence encoder {spec!r} needs sentence-transformers, and {error.name} is not installed.", hint=EXTRA
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceRecipe:
    """How one encoder makes vectors, as its files say."""

    layers: tuple[tuple[str, str], ...]
    """Class and folder of each; none where the encoder is a plain transformer, whose tokens are averaged."""
    modes: tuple[str, ...] | None
    """Ways of pooling; None where nothing says."""
    prompts: Mapping[str, str]
    """By name: what may be put in front of a text."""

    @property
    def pooling(self) -> str:
        """The ways of pooling in one word; `own` where there are unusual layers."""
        return OWN if self.unusual is not None else "+".join(self.modes or ("mean",))

    @property
    def unusual(self) -> str | None:
        """The first layer that is neither transformer, pooling, dense layer nor normalization, or is out of order."""
        kinds = [kind.rpartition(".")[2] for kind, _ in self.layers]
        unknown = next((kind for kind in kinds if kind not in _USUAL), None)
        if unknown is not None or not kinds:
            return unknown
        order = [kind for kind in kinds if kind != "Normalize"]
        usual = (
            order[:2] == ["Transformer", "Pooling"] and set(order[2:]) <= {"Dense"} and "Normalize" not in kinds[:-1]
        )
        return None if usual else next((kind for kind in order[2:] if kind != "Dense"), order[-1])


def _recipe_in(folder: Path, spec: str) -> SentenceRecipe:
    """The recipe in the files of a folder.

    Raises:
        ConfigError: it holds no weights in safetensors files, or a file says what cannot be.
    """
    if not _has_weights(folder):
        raise ConfigError(f"The folder {str(folder)!r} holds no weights in safetensors files.", hint=_AS_SAVED)
    try:
        modules = cast("list[JsonObject]", _json(folder / "modules.json") or [])
        layers = tuple((str(module["type"]), str(module.get("path", ""))) for module in modules)
        pooling = next((path for kind, path in layers if kind.rpartition(".")[2] == "Pooling"), None)
        whole = cast("JsonObject", _json(folder / "config_sentence_transformers.json") or {})
        prompts = cast("JsonObject", whole.get("prompts") or {})
        return SentenceRecipe(
            layers=layers,
            modes=None if pooling is None else _modes(_json(folder / pooling / "config.json") or {}),
            prompts={name: str(text) for name, text in prompts.items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"The files of {spec!r} that say how it pools cannot be used: {error}.", hint=_AS_SAVED
        ) from error


def _modes(settings: JsonObject) -> tuple[str, ...]:
    """The ways of pooling that the settings of a pooling layer name, in either of their forms.

    Raises:
        ValueError: one of them is not known.
    """
    named: Any = settings.get("pooling_mode")
    if named is not None:
        modes = (named,) if isinstance(named, str) else tuple(str(mode) for mode in named)
    else:
        on = {name.removeprefix("pooling_mode_") for name, value in settings.items() if value is True}
        modes = tuple(mode for mode in MODES if on & {mode, f"{mode}_token", f"{mode}_tokens"}) or ("mean",)
    if unknown := [mode for mode in modes if mode not in MODES]:
        msg = f"it pools by {unknown[0]}, and known are {', '.join(MODES)}"
        raise ValueError(msg)
    return modes


def _refuse_pickles(folder: Path, spec: str) -> None:
    """Refuses weights that sentence-transformers would unpickle: where a layer has no others, it does so unasked.

    Raises:
        ConfigError: there are such weights.
    """
    for pickled, safe in _WEIGHTS.items():
        for file in folder.rglob(pickled):
            if not any(file.with_name(name).is_file() for name in (safe, f"{safe}.index.json")):
                raise ConfigError(
                    f"The sentence encoder {spec!r} has weights in the pickle file "
                    f"{file.relative_to(folder).as_posix()!r}, which can run any code.",
                    hint="Take one with safetensors files, or allow it: `?pickled=true`.",
                )


def _refuse_code(folder: Path, recipe: SentenceRecipe, spec: str) -> None:
    """Refuses layers of other packages, and activations, in whose place sentence-transformers would put another.

    Raises:
        ConfigError: there is such a layer.
    """
    for kind, path in recipe.layers:
        named = kind
        if kind.startswith(_THEIRS) and kind.endswith(".Dense"):
            settings = cast("JsonObject", _json(folder / path / "config.json") or {})
            named = str(settings.get("activation_function") or _THEIRS)
        if not named.startswith((_THEIRS, "torch.")):
            raise ConfigError(
                f"The sentence encoder {spec!r} needs {named!r}, which is code of its own.",
                hint="Take one without, or allow its code to run: `?remote_code=true`.",
            )


def _pooling(text: str) -> str:
    if text != OWN and not set(text.split("+")) <= {*MODES}:
        msg = f"{', '.join(MODES)}, several joined by `+`, or {OWN}"
        raise ValueError(msg)
    return text


def _json(path: Path) -> Any:
    """The content of a JSON file; None where there is no such file."""
    return parse_json(path.read_bytes()) if path.is_file() else None


def _check_name(source: str) -> None:
    if not is_hub_name(source.partition("@")[0]):
        raise ConfigError(f"There is no folder {source!r}, and it is no name on the hub.", hint="Check the path.")


def _has_weights(folder: Path) -> bool:
    return any(folder.rglob(f"*{SAFE}"))


def _digest(folder: Path) -> str:
    """Of names and contents of the files that decide vectors; where the folder lies changes nothing."""
    digest = sha256()
    for name, path in sorted(_deciding(folder)):
        with path.open("rb") as file:
            digest.update(f"{name}\n{file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def _deciding(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in name.parts)
        if path.suffix in _DECIDING and not hidden and path.is_file():
            yield name.as_posix(), path
