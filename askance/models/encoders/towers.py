"""The two towers of a dual encoder, run by transformers: pictures and texts to vectors in one space.

Every architecture of transformers can be used whose model has `get_text_features` and `get_image_features`: CLIP,
SigLIP, SigLIP 2, ALIGN, Chinese CLIP, AltCLIP. Where a model has two image processors, the one without torchvision is
used, so that a picture gives the same pixels on every machine.

A text that is longer than an encoder reads is split into parts: between sentences, else between words, else within a
word. A part holds as many neighbouring sentences or words as fit. No word is left out, and none is in two parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, cast

from askance.errors import ConfigError, ModelError
from askance.images.square_frames import Scaling
from askance.models.encoders.vectors import half
from askance.models.local.runtime import BatchRunner, TorchRuntime, tokenizable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image as Picture

    from askance.errors import AskanceError
    from askance.models.encoders.vectors import Half
    from askance.models.local.folder import ModelFolder
    from askance.models.settings import Local

SIGLIP_KINDS = frozenset({"siglip", "siglip2"})
"""Architectures whose texts are padded to the full length, as in training, and that give probabilities of pairs."""


class Towers:
    """A dual encoder's weights and what prepares pictures and texts for it; used by one thread.

    The tokenizer is loaded apart from the weights: to know how long a text is takes no weights.

    Args:
        folder: with all of it.
        local: how it is run.
        spec: what to call it in messages.
    """

    def __init__(self, folder: ModelFolder, local: Local, *, spec: str) -> None:
        self.folder = folder
        self.spec = spec
        self._local = local

    @property
    def longest(self) -> int:
        """Tokens that a text may have, with those that mark its beginning and end."""
        text = cast("Mapping[str, Any]", self.folder.config.get("text_config") or {})
        # Configurations leave out what is at its default.
        default = 64 if self.folder.kind in SIGLIP_KINDS else 77 if self.folder.kind == "clip" else 512
        return min(int(text.get("max_position_embeddings", default)), int(self._tokenizer.model_max_length))

    def fits(self, text: str) -> bool:
        """Whether a text is read whole."""
        return len(self._tokenizer(tokenizable(text), truncation=False, verbose=False)["input_ids"]) <= self.longest

    def texts(self, texts: Sequence[str]) -> list[Half | AskanceError]:
        """For each text, which fits, its vector of the length 1 and in 16 bits, or the error that it ended with.

        Raises:
            MissingExtra: torch or transformers is not installed.
            ConfigError: the weights cannot be loaded.
        """
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        outcomes = self._loaded_batches.outcomes([texts[place] for place in order], self._read)
        by_place = dict(zip(order, outcomes, strict=True))
        return [by_place[place] for place in range(len(texts))]

    def pictures(self, pictures: Sequence[Sequence[Picture]]) -> list[Half | AskanceError]:
        """The same for pictures, of which each is one or several: of these the mean before it has the length 1.

        Raises:
            MissingExtra, ConfigError: as for texts.
        """
        return self._loaded_batches.outcomes(pictures, self._see)

    @cached_property
    def scale(self) -> tuple[float, float | None]:
        """The factor and the bias by which the model makes a logit of a cosine; None is no bias.

        Raises:
            ConfigError: it has no factor.
        """
        model = self._model
        scale: Any = getattr(model, "logit_scale", None)
        warmth: Any = getattr(model, "temperature", None)
        bias: Any = getattr(model, "logit_bias", None)
        if scale is None and warmth is None:
            raise ConfigError(f"The model {self.spec!r} has no scale of its own.", hint="Leave `scale` at `cosine`.")
        factor = float(scale.detach().float().exp()) if scale is not None else 1 / float(warmth.detach().float())
        return factor, None if bias is None else float(bias.detach().float())

    @cached_property
    def scaling(self) -> Scaling | None:
        """How pictures are scaled before the middle is cut out; None where the encoder has no size of its own."""
        return scaling_of(self._pixels)

    def _read(self, texts: Sequence[str]) -> list[Half]:
        fixed = self.folder.kind in SIGLIP_KINDS
        tokens = self._tokenizer(
            [tokenizable(text) for text in texts],
            padding="max_length" if fixed else True,
            max_length=self.longest if fixed else None,
            truncation=False,
            verbose=False,
            return_tensors="pt",
        )
        return [half(vector) for vector in self._vectors("texts", tokens)]

    def _see(self, pictures: Sequence[Sequence[Picture]]) -> list[Half]:
        pixels = self._pixels(images=[part for parts in pictures for part in parts], return_tensors="pt")
        vectors = iter(self._vectors("pictures", pixels))
        return [half(sum(islice(vectors, len(parts))) / len(parts)) for parts in pictures]

    def _vectors(self, what: str, inputs: Mapping[str, Any]) -> NDArray[np.float32]:
        torch, model = self._runtime.torch, self._model
        encode = model.get_text_features if what == "texts" else model.get_image_features
        with torch.inference_mode():
            output = encode(**self._runtime.on_device(inputs))
        output = getattr(output, "pooler_output", output).float().cpu()
        if output.ndim != 2 or not bool(torch.isfinite(output).all()):
            problem = "numbers that are none" if output.ndim == 2 else "no single vector for each"
            raise ModelError(
                f"The model {self.spec!r} gave {problem} for {what}.",
                hint="In float16 numbers may run over: give `dtype=float32`. Or its weights are damaged.",
            )
        return output.numpy()

    @cached_property
    def _runtime(self) -> TorchRuntime:
        return TorchRuntime(self.spec, self._local, dtype=self.folder.dtype_in(self._local.dtype))

    @cached_property
    def _loaded_batches(self) -> BatchRunner[Any]:
        """Runs batches; loads the weights first, so that an error of loading is not taken for one of an item."""
        _ = self._model
        return BatchRunner(self._runtime.torch, spec=self.spec, most=self._local.batch)

    @cached_property
    def _tokenizer(self) -> Any:
        with self._runtime.loading():
            return self._runtime.pretrained("AutoTokenizer", self.folder.path)

    @cached_property
    def _pixels(self) -> Any:
        with self._runtime.loading():
            return self._runtime.pretrained("AutoImageProcessor", self.folder.path, backend="pil")

    @cached_property
    def _model(self) -> Any:
        with self._runtime.loading():
            self._check_kind()
            return self._runtime.weights("AutoModel", self.folder.path)

    def _check_kind(self) -> None:
        """Refuses a model without two towers, before its weights are read.

        Raises:
            ConfigError: it has not two towers.
        """
        config = self._runtime.pretrained("AutoConfig", self.folder.path)
        known = self._runtime.transformers.AutoModel._model_mapping  # the only way to ask
        kind = known.get(type(config), None)
        if kind is not None and not (hasattr(kind, "get_text_features") and hasattr(kind, "get_image_features")):
            raise no_towers(self.spec, self.folder.kind)


def scaling_of(pixels: Any) -> Scaling | None:
    """How an image processor scales pictures; None where it has no size of its own."""
    size = cast("Mapping[str, int]", dict(getattr(pixels, "size", None) or {}))
    side = size.get("shortest_edge") or size.get("height")
    return None if side is None else Scaling(side, int(pixels.resample))


def no_towers(spec: str, kind: str) -> ConfigError:
    """The error over a model that is no dual encoder."""
    return ConfigError(
        f"The model {spec!r} is of the kind {kind!r}, which has not a tower for pictures and one for texts.",
        hint="Give CLIP, SigLIP or their like; a sentence encoder is `st:FOLDER`.",
    )


# --- parts of long texts ---

_SENTENCES = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。\uff01\uff1f])|\s*\n\s*")


def parts_of(text: str, fits: Callable[[str], bool]) -> tuple[str, ...]:
    """`text` in parts that fit, in order; one part where it fits as it is.

    Args:
        text: of any length.
        fits: whether an encoder reads a text whole; a single character counts as if it did.
    """
    if fits(text):
        return (text,)
    return tuple(_together(sentences_of(text), fits, smaller=_by_words))


def sentences_of(text: str) -> list[str]:
    """The sentences and lines of a text, without the space around them; none of a blank text."""
    cuts = [0, *(match.end() for match in _SENTENCES.finditer(text)), len(text)]
    pieces = (text[start:end].strip() for start, end in pairwise(cuts))
    return [piece for piece in pieces if piece]


def _by_words(sentence: str, fits: Callable[[str], bool]) -> Iterator[str]:
    return _together(sentence.split(), fits, smaller=_by_halves)


def _by_halves(word: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """A word that does not fit, such as an address, in pieces that do."""
    if len(word) == 1 or fits(word):
        yield word
        return
    middle = len(word) // 2
    yield from _by_halves(word[:middle], fits)
    yield from _by_halves(word[middle:], fits)


def _together(
    pieces: Sequence[str],
    fits: Callable[[str], bool],
    *,
    smaller: Callable[[str, Callable[[str], bool]], Iterator[str]],
) -> Iterator[str]:
    """Parts of as many neighbouring pieces as fit; a piece that does not fit alone is split by `smaller`."""
    held = ""
    for piece in pieces:
        longer = f"{held} {piece}" if held else piece
        if fits(longer):
            held = longer
            continue
        if held:
            yield held
        held = piece if fits(piece) else ""
        if not held:
            yield from smaller(piece, fits)
    if held:
        yield held
