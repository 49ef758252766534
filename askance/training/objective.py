"""What a trainer is given: a model, examples as tensors, a loss, and what validation measures."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from askance.amounts import many
from askance.errors import UsageError
from askance.training.training_set import ChatExample, PairExample, TrainingExample

if TYPE_CHECKING:
    from pathlib import Path

    from askance.models.local.runtime import TorchRuntime

Control = Literal["text-only", "shuffled"]
"""Training that must learn nothing of pictures: all of them blank, as the mean picture is after normalization; or those
of training in another order, so that none is with its text."""

IGNORED = -100
"""Label of a token that adds nothing to the loss."""

Tensors: TypeAlias = dict[str, Any]
Kept = TypeVar("Kept", bound=TrainingExample)


@dataclass(frozen=True, slots=True)
class DrawnExample:
    """An example as a trainer draws it."""

    example: TrainingExample
    seed: str | None = None
    """Of what is random about it; None is nothing, as in validation."""


class DrawnExamples:
    """The examples of a split by index, drawn with another seed in each epoch.

    Args:
        examples: of one kind.
        seed: of the training; None for validation.
    """

    def __init__(self, examples: Sequence[TrainingExample], *, seed: int | None) -> None:
        self._examples = examples
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch is drawn from now on; the data loader calls it."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, index: int) -> DrawnExample:
        seed = None if self._seed is None else f"{self._seed} {self._epoch} {index}"
        return DrawnExample(self._examples[index], seed)


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A model and how it learns."""

    runtime: TorchRuntime
    model: Any
    """Of transformers or PEFT; the parameters that are trained require gradients, and no others."""
    collate: Callable[[Sequence[DrawnExample]], Tensors]
    """Makes a batch; with a field `labels`."""
    save: Callable[[Path], None]
    """Writes what was trained into a folder, as `hf:` or `clip:` reads it."""
    loss: Callable[[Any, Tensors], tuple[Any, Any]] | None = None
    """Of a model and a batch: the loss, and the outputs that `measure` takes; None is the model's own loss."""
    outputs: Callable[[Any, Any], Any] | None = None
    """What of the model's own outputs, given the labels, `measure` takes."""
    measure: Callable[[Any, Any], Mapping[str, float]] | None = None
    """Metrics of the outputs and labels of all batches of validation; None measures the loss alone."""
    tokenizer: Any = None
    chat: bool = False
    """Whether TRL's trainer for supervised fine-tuning trains it."""

    @property
    def parameters(self) -> tuple[int, int]:
        """How many numbers are trained, and how many there are."""
        sizes = [(each.numel(), each.requires_grad) for each in self.model.parameters()]
        return sum(size for size, trained in sizes if trained), sum(size for size, _ in sizes)


def freeze_all_but(model: Any, trained: Sequence[str]) -> None:
    """Has the parameters whose names begin with one of `trained` require gradients, and no others; `all` is all.

    Raises:
        UsageError: one of them fits no parameter.
    """
    fitting = dict.fromkeys(trained, 0)
    for name, parameter in model.named_parameters():
        own = name.removeprefix("model.")
        parts = [part for part in trained if part == "all" or own.startswith(part)]
        parameter.requires_grad_(bool(parts))
        for part in parts:
            fitting[part] += 1
    if missing := [part for part, count in fitting.items() if not count]:
        raise UsageError(
            f"The model has no parameters whose names begin with {missing[0]!r}, which the recipe trains.",
            hint="Is it the architecture that the recipe is for? `-R trained=PREFIX,PREFIX` names others, or `all`.",
        )


def shuffled(examples: Sequence[Kept], *, seed: int) -> list[Kept]:
    """The examples with their pictures in another order; one without a picture stays as it is.

    Raises:
        UsageError: two chats have unequal numbers of pictures.
    """
    places = [place for place, example in enumerate(examples) if example.pictures]
    order = [*places]
    random.Random(f"{seed} shuffled").shuffle(order)
    made = [*examples]
    for place, other in zip(places, order, strict=True):
        made[place] = _with_pictures_of(examples[place], examples[other])
    return made


def _with_pictures_of(example: Any, other: Any) -> Any:
    match example:
        case ChatExample(images=images) if len(images) == len(other.images):
            return replace(example, images=other.images)
        case ChatExample(images=images):
            raise UsageError(
                f"The pictures of chats with {many(len(images), 'picture')} and with {len(other.images)} cannot be "
                "exchanged.",
                hint="Make a set whose chats have as many pictures each, or take `--control text-only`.",
            )
        case PairExample():
            return replace(example, image=other.image, view=other.view)
        case _:
            return replace(example, image=other.image)


def without_pictures() -> UsageError:
    """The error over a control of a set without pictures."""
    return UsageError("The training set has no pictures, and so needs no control.", hint="Leave `--control` out.")


def check_control(control: Control | None, examples: Sequence[TrainingExample]) -> None:
    """Refuses a control where there are no pictures.

    Raises:
        UsageError: there are none.
    """
    if control is not None and not any(example.pictures for example in examples):
        raise without_pictures()
