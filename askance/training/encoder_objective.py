"""Dual encoders, such as CLIP, taught which text belongs to a picture.

Two losses, both cross-entropy of cosines times the model's own scale: over the choices of each item, as the New Yorker
paper fine-tunes CLIP (Hessel et al. 2023, appendix B.2); or over all pairs of a batch, from pictures to texts and from
texts to pictures, as Sherlock does (Hessel et al. 2022, section 5). Pictures are drawn, framed and prepared as `clip:`
does it. Of a picture in several squares the mean vector is taken before it is brought to the length 1.

The trainer of sentence-transformers was weighed: its losses have a scale that is not learnt, it has none over an
item's own choices, and what it saves is not the folder that the base was. So the trainer of transformers is given
these losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from askance.errors import ConfigError, UsageError
from askance.images.augment import augmented
from askance.images.pixels import to_rgb
from askance.images.regions import WHOLE_IMAGE
from askance.images.square_frames import framed
from askance.models.encoders.towers import no_towers, scaling_of
from askance.models.local.runtime import TorchRuntime, tokenizable
from askance.training.objective import Control, DrawnExample, Objective, Tensors, freeze_all_but
from askance.training.training_set import ChoiceExample, PairExample
from askance.training.weights import BLANK, save_weights

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from askance.models.local.folder import ModelFolder
    from askance.models.settings import Local
    from askance.training.recipe import RecipeFields

_EQUAL = 1e-5
"""Difference of cosines up to which texts count as equal: of one text, they differ by what else is in its batch."""
_BLOCK = 1024
"""Pictures that are held against all texts at once, to save memory."""


def encoder_objective(
    folder: ModelFolder, local: Local, fields: RecipeFields, *, name: str, control: Control | None
) -> Objective:
    """What teaches a dual encoder pairs, or choices.

    Args:
        folder: of the base.
        local: how the base is held.
        fields: of the recipe.
        name: of the base, for messages.
        control: `text-only` makes all pictures blank, in what is saved, too.

    Raises:
        MissingExtra: a package is not installed.
        ConfigError: the base cannot be loaded, or is no dual encoder.
        UsageError: the base has nothing of what the recipe trains.
    """
    runtime = TorchRuntime(f"clip:{name}", local, dtype=folder.dtype_in(local.dtype))
    if not {"text_config", "vision_config"} <= folder.config.keys():
        raise no_towers(runtime.spec, folder.kind)
    with runtime.loading():
        model = runtime.weights("AutoModel", folder.path)
        tokenizer = runtime.pretrained("AutoTokenizer", folder.path)
        pixels = runtime.pretrained("AutoImageProcessor", folder.path, backend="pil")
    if getattr(model, "logit_scale", None) is None:
        raise ConfigError(f"The model {runtime.spec!r} has no scale of cosines.", hint="Give a CLIP, or its like.")
    freeze_all_but(model, fields.trained)
    choices = fields.loss == "choice-infonce"
    losses = Losses(runtime.torch, mask_equal=fields.mask_equal)
    blind = control == "text-only"
    return Objective(
        runtime=runtime,
        model=model,
        collate=_Examples(runtime, fields, tokenizer=tokenizer, pixels=pixels, blind=blind),
        save=lambda place: save_weights(model, folder.path, place, blind=blind),
        loss=losses.choices if choices else losses.pairs,
        measure=_accuracy if choices else first_places,
    )


class _Examples:
    """Makes batches of choices or pairs.

    Args:
        runtime: of the model.
        fields: of the recipe.
        tokenizer: for its texts.
        pixels: what prepares its pictures.
        blind: whether pictures are blank.
    """

    def __init__(
        self, runtime: TorchRuntime, fields: RecipeFields, *, tokenizer: Any, pixels: Any, blind: bool
    ) -> None:
        self._runtime = runtime
        self._tokenizer = tokenizer
        self._pixels = pixels
        self._scaling = scaling_of(pixels)
        self._fields = fields
        self._blind = blind

    def __call__(self, rows: Sequence[DrawnExample]) -> Tensors:
        """Squares of all pictures with how many each has, texts with how many each item has, and labels."""
        torch = self._runtime.torch
        squares = [self._squares(row) for row in rows]
        texts = [self._texts(row) for row in rows]
        flat = [text for some in texts for text in some]
        tokens = self._tokenizer(
            flat, padding=True, truncation=True, max_length=self._longest, verbose=False, return_tensors="pt"
        )
        pixels = self._pixels(images=[each for some in squares for each in some], return_tensors="pt")["pixel_values"]
        number = {text: place for place, text in enumerate(dict.fromkeys(flat))}
        labels = [row.example.label if isinstance(row.example, ChoiceExample) else 0 for row in rows]
        return {
            "pixel_values": (torch.full_like(pixels, BLANK) if self._blind else pixels).to(self._runtime.dtype),
            "squares": torch.tensor([len(some) for some in squares]),
            "texts": torch.tensor([len(some) for some in texts]),
            "distinct": torch.tensor([number[text] for text in flat]),
            "labels": torch.tensor(labels),
            **{name: value for name, value in tokens.items() if name in {"input_ids", "attention_mask"}},
        }

    @cached_property
    def _longest(self) -> int:
        longest = int(self._tokenizer.model_max_length)
        return min(self._fields.longest or longest, longest)

    def _squares(self, row: DrawnExample) -> list[Picture]:
        example = cast("ChoiceExample | PairExample", row.example)
        view = example.view if isinstance(example, PairExample) else WHOLE_IMAGE
        if self._fields.draw is not None and isinstance(example, PairExample):
            view = replace(view, style=self._fields.draw)
        drawn = view.draw(to_rgb(example.image.open()), example.image)
        squares = [square for picture in drawn for square in framed(picture, self._fields.frame, scaling=self._scaling)]
        if row.seed is None:
            return squares
        return [augmented(each, self._fields.augment, seed=f"{row.seed} {place}") for place, each in enumerate(squares)]

    def _texts(self, row: DrawnExample) -> list[str]:
        match row.example:
            case ChoiceExample(choices=choices):
                return [tokenizable(text) for text in choices]
            case PairExample(text=text, kind=kind):
                prefix = self._fields.prefixes.get(kind, "")
                return [tokenizable(f"{prefix} {text}" if prefix else text)]
            case _:
                raise UsageError("The training set has neither pairs nor choices.", hint="Make another set.")


class Losses:
    """Cross-entropy of scaled cosines.

    Args:
        torch: the package.
        mask_equal: whether equal texts of a batch are no negatives of each other.
    """

    def __init__(self, torch: Any, *, mask_equal: bool = False) -> None:
        self._torch = torch
        self._mask_equal = mask_equal

    def choices(self, model: Any, batch: Tensors) -> tuple[Any, Any]:
        """The loss over each item's own choices; and for each item the place of the choice that comes first."""
        torch = self._torch
        pictures, texts = self._vectors(model, batch)
        counts = batch["texts"]
        cosines = (pictures.repeat_interleave(counts, dim=0) * texts).sum(-1)
        scaled = model.logit_scale.exp() * cosines
        # Items may have unequal numbers of choices; where there is none, nothing is as likely.
        rows = torch.nn.utils.rnn.pad_sequence(
            list(scaled.split(counts.tolist())), batch_first=True, padding_value=float("-inf")
        )
        return torch.nn.functional.cross_entropy(rows, batch["labels"]), rows.argmax(-1)

    def pairs(self, model: Any, batch: Tensors) -> tuple[Any, Any]:
        """The mean of the losses from pictures to texts and back; and the vectors of both."""
        torch = self._torch
        pictures, texts = self._vectors(model, batch)
        scaled = model.logit_scale.exp() * pictures @ texts.T
        own = torch.arange(len(scaled), device=scaled.device)
        if self._mask_equal:
            distinct = batch["distinct"]
            equal = (distinct[:, None] == distinct[None, :]) & (own[:, None] != own[None, :])
            scaled = scaled.masked_fill(equal, float("-inf"))
        cross_entropy = torch.nn.functional.cross_entropy
        loss = (cross_entropy(scaled, own) + cross_entropy(scaled.T, own)) / 2
        return loss, torch.stack([pictures, texts], dim=1)

    def _vectors(self, model: Any, batch: Tensors) -> tuple[Any, Any]:
        """A vector of the length 1 for each picture and each text."""
        torch = self._torch
        read = {name: batch[name] for name in ("input_ids", "attention_mask") if name in batch}
        texts = _features(model.get_text_features(**read))
        squares = _features(model.get_image_features(pixel_values=batch["pixel_values"]))
        parts = squares.split(batch["squares"].tolist())
        pictures = torch.stack([part.mean(0) for part in parts])
        normalize = torch.nn.functional.normalize
        return normalize(pictures, dim=-1), normalize(texts, dim=-1)


def _features(output: Any) -> Any:
    return getattr(output, "pooler_output", output)


def _accuracy(chosen: Any, labels: Any) -> dict[str, float]:
    return {"accuracy": float((chosen == labels).mean())}


def first_places(vectors: Any, labels: Any) -> dict[str, float]:  # noqa: ARG001  # each picture's text is its own
    """The share of pictures whose own text comes first among all.

    Texts of others whose cosine is higher by less than `_EQUAL` take nothing away, as equal texts do not.
    """
    pictures, texts = vectors[:, 0], vectors[:, 1]
    first = 0
    for start in range(0, len(pictures), _BLOCK):
        rows = slice(start, start + _BLOCK)
        own = (pictures[rows] * texts[rows]).sum(axis=1)
        first += int(((pictures[rows] @ texts.T).max(axis=1) < own + _EQUAL).sum())
    return {"p@1": first / len(pictures)}
