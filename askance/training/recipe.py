"""Recipes: how a model is trained, as files in which every field says where its value is from.

A file of `askance/training/recipes/` is YAML. Each field is a value, its source and, of the first two, the place:

- `paper`: the paper says so;
- `code`: the paper does not say, its authors' code does;
- `ours`: neither says, or we differ; `why` has the reason;
- `yours`: whoever trains has set it.

`based_on` names a recipe whose fields stand where a file has none of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from askance.documents import read_yaml
from askance.errors import UsageError
from askance.images.augment import Augmentation
from askance.images.region_styles import StyleName
from askance.images.square_frames import Frame
from askance.registry import near
from askance.training.training_set import Kind

FOLDER = Path(__file__).with_name("recipes")

By = Literal["paper", "code", "ours", "yours"]
Loss = Literal["completion", "choice-infonce", "batch-infonce"]
"""Cross-entropy of the answer's tokens alone; of a picture's own choices, by scaled cosine; of a batch's pairs, both
from picture to text and from text to picture."""
Metric = Literal["loss", "accuracy", "exact", "p@1"]
"""What validation goes by: the mean loss; the share of items whose right choice comes first; of answers with all tokens
right; of pictures whose own text comes first among all texts of validation."""

HIGHER: frozenset[Metric] = frozenset({"accuracy", "exact", "p@1"})
"""Metrics of which the higher is the better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSource:
    """Where a value is from."""

    by: By
    at: str = ""
    """Section of the paper, or file of the code."""
    why: str = ""


class RecipeFields(BaseModel):
    """What a recipe says. A field that does not belong to a recipe stays at its default."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    data: Kind
    """Kind of the training set."""
    loss: Loss
    trained: tuple[str, ...]
    """What is trained: `all`, `adapter` (LoRA matrices), or what names of parameters begin with."""
    optimizer: Literal["adam", "adamw", "adafactor"] = "adamw"
    rates: tuple[float, ...] = Field(min_length=1)
    """Rates of learning, each tried on its own; validation chooses."""
    schedule: Literal["constant", "linear", "cosine", "plateau"] = "constant"
    """How the rate goes on behind its warm-up; `plateau` takes a tenth of it wherever validation has not gained."""
    warmup: int = Field(default=0, ge=0)
    """Steps in which the rate rises to its full height."""
    weight_decay: float = Field(default=0.0, ge=0)
    clip: float | None = Field(default=1.0, gt=0)
    """Largest norm of the gradient; null lets it be."""
    batch: int = Field(ge=1)
    """Rows of a step."""
    accumulate: int = Field(default=1, ge=1)
    """Parts that a step is computed in, to save memory."""
    epochs: int = Field(ge=1)
    every: int | None = Field(default=None, ge=1)
    """Steps between two validations; null is an epoch."""
    patience: int | None = Field(default=None, ge=1)
    """Validations without a gain after which training stops; null is never."""
    metric: Metric = "loss"
    smoothing: float = Field(default=0.0, ge=0, lt=1)
    """Of labels."""
    longest: int | None = Field(default=None, ge=1)
    """Tokens of an input, or of an answer; what is longer is cut for texts, and refused for chats. Null is as the
    model has it."""
    frame: Frame = "whole"
    """How pictures are made into squares."""
    draw: StyleName | None = None
    """Style in which boxes are drawn; null is that of each view."""
    augment: tuple[Augmentation, ...] = ()
    """What is done to pictures of training at random."""
    prefixes: Mapping[str, str] = {}
    """By kind of text, what stands in front of it."""
    mask_equal: bool = False
    """Whether equal texts of a batch are no negatives of each other."""
    rank: int = Field(default=16, ge=1)
    """Of LoRA's matrices."""
    alpha: int = Field(default=32, ge=1)
    """LoRA's scale, divided by the rank."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """In front of LoRA's matrices."""
    targets: tuple[str, ...] = ("all-linear",)
    """Layers with LoRA beside them: `all-linear`, those of the language model but its head; or ends of their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRecipe:
    """How a model is trained, and where each part of it is from."""

    name: str
    title: str
    fields: RecipeFields
    sources: Mapping[str, FieldSource]
    """By name of a field; those that a recipe does not speak of have none."""
    warnings: tuple[str, ...] = ()
    """What its author would have everybody know who trains by it."""

    @classmethod
    def named(cls, name: str, **changes: Any) -> FitRecipe:
        """The recipe called `name`, or in the file `name`, with `changes` of its fields.

        Raises:
            UsageError: there is none, or a field does not take such a value.
        """
        file = Path(name)
        if file.suffix in {".yaml", ".yml"}:
            return _read(file).changed(**changes)
        if name not in recipe_names():
            raise UsageError(
                f"There is no recipe {name!r}.",
                hint=f"{near(name, recipe_names())}There are: {', '.join(recipe_names())}; or name a file, FILE.yaml.",
            )
        return _read(FOLDER / f"{name}.yaml").changed(**changes)

    def changed(self, **changes: Any) -> Self:
        """The recipe with other values of fields, whose source is then `yours`.

        Raises:
            UsageError: there is no such field, or it does not take such a value.
        """
        if not changes:
            return self
        known = RecipeFields.model_fields
        for name in changes:
            if name not in known:
                raise UsageError(
                    f"The recipe {self.name!r} has no field {name!r}.",
                    hint=f"{near(name, known)}There are: {', '.join(known)}.",
                )
        split = {name: _listed(value) if _is_list(name) else value for name, value in changes.items()}
        fields = _checked({**self.fields.model_dump(), **split}, self.name)
        sources = {**self.sources, **dict.fromkeys(changes, FieldSource(by="yours"))}
        return replace(self, fields=fields, sources=sources)

    @property
    def form(self) -> dict[str, Any]:
        """The recipe as JSON values: each field with its source."""
        values = self.fields.model_dump(mode="json")
        return {
            "name": self.name,
            "title": self.title,
            "fields": {name: {"value": values[name], **_form(source)} for name, source in self.sources.items()},
        }

    @property
    def values(self) -> Mapping[str, Any]:
        """Every field's value, as JSON has it."""
        return self.fields.model_dump(mode="json")

    @property
    def notes(self) -> Iterator[str]:
        """What there is to know before a model is trained so."""
        yield from self.warnings
        values = self.fields
        if values.loss == "batch-infonce":
            part = values.batch // values.accumulate
            yield (
                f"each picture has {part - 1:,} texts against it, those of its batch of {part:,}; to compute a step in "
                "parts does not add any"
            )
        if "flip" in values.augment:
            yield "pictures are flipped at random, which turns words in them and `left` and `right` around"


def recipe_names() -> tuple[str, ...]:
    """The recipes that come with the package."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))


def _read(file: Path) -> FitRecipe:
    content = read_yaml(file, what="a recipe")
    about = {"title", "based_on", "warnings"}
    base = _read(FOLDER / f"{_base_of(content, file)}.yaml") if "based_on" in content else None
    sources, values = dict(base.sources) if base else {}, dict(base.fields.model_dump()) if base else {}
    for name, entry in content.items():
        if name in about:
            continue
        table = cast("Mapping[str, Any]", entry if isinstance(entry, Mapping) else {})
        if "value" not in table or table.get("by") not in {"paper", "code", "ours"}:
            raise UsageError(
                f"The field {name!r} of the recipe {str(file)!r} does not say where it is from.",
                hint=f"Write `{name}: {{value: …, by: ours, why: …}}`; `by` is paper, code or ours.",
            )
        values[name] = table["value"]
        sources[name] = FieldSource(by=table["by"], at=str(table.get("at", "")), why=str(table.get("why", "")))
    said: Any = content.get("warnings") or []
    own = cast("list[object]", said if isinstance(said, list) else [said])
    return FitRecipe(
        name=file.stem,
        title=str(content.get("title", "")),
        fields=_checked(values, file.stem if file.parent == FOLDER else str(file)),
        sources=sources,
        warnings=(*(base.warnings if base else ()), *map(str, own)),
    )


def _base_of(content: Mapping[str, Any], file: Path) -> str:
    """The name of the recipe that a file is based on.

    Raises:
        UsageError: there is no such recipe.
    """
    name = str(content["based_on"])
    if name not in recipe_names():
        raise UsageError(
            f"The recipe {str(file)!r} is based on {name!r}, which is no recipe.",
            hint=f"{near(name, recipe_names())}There are: {', '.join(recipe_names())}.",
        )
    return name


def _checked(values: Mapping[str, Any], name: str) -> RecipeFields:
    try:
        fields = RecipeFields.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "missing" and len(first["loc"]) == 1:
            raise UsageError(
                f"The recipe {name!r} lacks the field {place!r}.",
                hint=f"Write `{place}: {{value: …, by: ours, why: …}}`; or `based_on: lora`, to have it from there.",
            ) from error
        shown = f" {name}` shows what it is by default" if name in recipe_names() else "` shows the recipes' fields"
        raise UsageError(
            f"The field {place!r} of the recipe {name!r} cannot be {first.get('input')!r}: {first['msg']}.",
            hint=f"`askance train recipes{shown}.",
        ) from error
    if fields.batch % fields.accumulate:
        raise UsageError(
            f"A batch of {fields.batch} rows cannot be computed in {fields.accumulate} equal parts.",
            hint="Give `accumulate` a divisor of `batch`.",
        )
    return fields


def _is_list(name: str) -> bool:
    return name in {"rates", "trained", "augment", "targets"}


def _listed(value: Any) -> Any:
    """A list that is written as a text with commas."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _form(source: FieldSource) -> dict[str, str]:
    named = {"by": source.by, "at": source.at, "why": source.why}
    return {name: text for name, text in named.items() if text}
