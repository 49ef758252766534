"""The layers of a sentence encoder, loaded: by transformers and our own pooling, or by sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.errors import ConfigError, MissingExtra
from askance.models.encoders.halving import Batches
from askance.models.encoders.pooling import pooled
from askance.models.encoders.recipes import ACTIVATIONS, OWN, Recipe, recipe_of
from askance.models.local.opening import device_of, packages, quietly, told

if TYPE_CHECKING:
    from askance.models.settings import Local

Encodes: TypeAlias = Callable[[Sequence[str]], list[list[float]]]
"""From texts, the shortest first, to a vector of the length 1 for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked of an encoder."""

    spec: str
    local: Local
    pooling: str
    prompt: str | None

    def check(self, recipe: Recipe) -> None:
        """Holds it against how the encoder was made.

        Raises:
            ConfigError: it was made otherwise.
        """
        if (recipe.modes is not None or OWN in {self.pooling, recipe.pooling}) and self.pooling != recipe.pooling:
            said = f"has a layer {recipe.beyond!r}" if recipe.beyond else f"pools by {recipe.pooling}"
            raise ConfigError(
                f"The sentence encoder {self.spec!r} {said}, and {self.pooling} is asked for.",
                hint=f"Write `{self.spec}?pooling={recipe.pooling}`.",
            )
        if self.prompt is not None and self.prompt not in recipe.prompts:
            names = ", ".join(sorted(recipe.prompts))
            raise ConfigError(
                f"The sentence encoder {self.spec!r} has no prompt {self.prompt!r}.",
                hint=f"It has: {names}." if names else "It has none: leave `prompt` out.",
            )

    def prefix(self, recipe: Recipe) -> str:
        """What stands in front of every text."""
        name = self.prompt if self.prompt is not None else recipe.prompt
        return "" if name is None else recipe.prompts.get(name, "")


def load_layers(where: str, revision: str, wanted: Wanted) -> Encodes:
    """What encodes texts.

    Args:
        where: a folder, or a name on the hub.
        revision: of a name.
        wanted: what is asked of it.

    Raises:
        MissingExtra: a package is not installed.
        ConfigError: the weights cannot be loaded, or the encoder is made otherwise.
    """
    torch, transformers = packages(wanted.spec)
    source = _Source(transformers, where, revision)
    with told(wanted.spec), quietly(transformers):
        recipe = recipe_of(source.json)
        wanted.check(recipe)
        device = device_of(torch, wanted.local, dtype=_dtype(wanted), spec=wanted.spec)
        if recipe.beyond is not None or (wanted.prefix(recipe) and not recipe.keeps_prompt):
            return _foreign(source, wanted, recipe, device=device)
        how: dict[str, Any] = {"revision": revision, "trust_remote_code": wanted.local.remote_code}
        inner = {**how, "subfolder": recipe.transformer} if recipe.transformer else how
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, **inner)
        model = transformers.AutoModel.from_pretrained(
            where, use_safetensors=None if wanted.local.pickled else True, **inner
        )
        if getattr(model.config, "is_encoder_decoder", False):
            model = model.get_encoder()
        layers = [model, *(_dense(torch, source, folder) for folder in recipe.dense)]
        kind = getattr(torch, _dtype(wanted))
        moved = [layer.to(device=device, dtype=kind).eval() for layer in layers]
    return _Layers(torch, (tokenizer, *moved), recipe=recipe, wanted=wanted)


class _Source:
    """The small files of an encoder, in its folder or on the hub."""

    def __init__(self, transformers: Any, where: str, revision: str) -> None:
        self.where = where
        self.revision = revision
        self._find = transformers.utils.cached_file

    def path(self, name: str) -> Path | None:
        """Where a file is; None where there is no such file."""
        found = self._find(self.where, name, revision=self.revision, _raise_exceptions_for_missing_entries=False)
        return None if found is None else Path(found)

    def json(self, name: str) -> Any:
        """The content of a JSON file; None where there is no such file."""
        found = self.path(name)
        return None if found is None else json.loads(found.read_text(encoding="utf-8"))


def _dtype(wanted: Wanted) -> str:
    return "float32" if wanted.local.dtype == "auto" else wanted.local.dtype


class _Layers:
    """An encoder of transformers, with our own pooling."""

    def __init__(self, torch: Any, parts: Sequence[Any], *, recipe: Recipe, wanted: Wanted) -> None:
        self._torch = torch
        self._tokenizer, self._model, *self._dense = parts
        self._recipe = recipe
        self._modes = wanted.pooling.split("+")
        self._prefix = wanted.prefix(recipe)
        self._batches = Batches(torch, spec=wanted.spec, most=wanted.local.batch)
        # Encoders without a limit of their own read whatever there is memory for.
        most = min(
            int(self._tokenizer.model_max_length), int(getattr(self._model.config, "max_position_embeddings", 512))
        )
        self._longest = min(recipe.longest or most, most)

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        lower = [text.lower() for text in texts] if self._recipe.lower else texts
        return self._batches.run([self._prefix + text for text in lower], self._batch, what="its texts")

    def _batch(self, texts: Sequence[str]) -> list[list[float]]:
        torch = self._torch
        tokens = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=self._longest, return_tensors="pt"
        ).to(self._model.device)
        with torch.inference_mode():
            hidden = self._model(**tokens).last_hidden_state.float()
            vectors = pooled(torch, hidden, tokens["attention_mask"], modes=self._modes)
            for layer in self._dense:
                vectors = layer(vectors.to(next(layer.parameters()).dtype))
            return torch.nn.functional.normalize(vectors.float(), dim=1).cpu().tolist()


def _dense(torch: Any, source: _Source, folder: str) -> Any:
    """A dense layer, from the folder in which it was saved.

    Raises:
        ValueError: it is made in a way that is not known, or its weights are in a pickle file.
    """
    settings, weights_at = source.json(f"{folder}/config.json"), source.path(f"{folder}/model.safetensors")
    if settings is None or weights_at is None:
        msg = f"its layer {folder!r} has no weights in a safetensors file"
        raise ValueError(msg)
    name = str(settings.get("activation_function", "Tanh")).rpartition(".")[2]
    if name not in ACTIVATIONS or settings.get("module_input_name", "sentence_embedding") != "sentence_embedding":
        msg = f"its layer {folder!r} is made in a way that is not known here"
        raise ValueError(msg)
    linear = torch.nn.Linear(settings["in_features"], settings["out_features"], bias=settings.get("bias", True))
    weights = import_module("safetensors.torch").load_file(weights_at)
    linear.load_state_dict({key.removeprefix("linear."): value for key, value in weights.items()})
    return torch.nn.Sequential(linear, getattr(torch.nn, name)())


def _foreign(source: _Source, wanted: Wanted, recipe: Recipe, *, device: str) -> Encodes:
    """The encoder as sentence-transformers runs it.

    Raises:
        MissingExtra: that is not installed.
        ConfigError: layers of it are in pickle files.
    """
    why = f"has a layer {recipe.beyond!r}" if recipe.beyond else "does not pool its prompt"
    try:
        theirs: Any = import_module("sentence_transformers")
    except ImportError as error:
        raise MissingExtra(
            f"The sentence encoder {wanted.spec!r} {why}, which sentence-transformers alone can do.",
            hint="pip install 'askance[sentences]', or take an encoder without it.",
        ) from error
    if not wanted.local.pickled and any(Path(source.where).rglob("*.bin")):
        raise ConfigError(
            f"The sentence encoder {wanted.spec!r} has layers in pickle files, which can run any code.",
            hint="Take one with safetensors files, or allow it: `?pickled=true`.",
        )
    model = theirs.SentenceTransformer(
        source.where, device=device, revision=source.revision, trust_remote_code=wanted.local.remote_code,
        model_kwargs={"use_safetensors": None if wanted.local.pickled else True},
    )  # fmt: skip

    def encode(texts: Sequence[str]) -> list[list[float]]:
        return model.encode(
            list(texts), batch_size=wanted.local.batch, prompt=wanted.prefix(recipe) or None,
            normalize_embeddings=True, show_progress_bar=False,
        ).tolist()  # fmt: skip

    return encode
