"""Chats as tensors: the loss on answers, given requests with their pictures.

A request is turned into tokens and pixels by what does so when `hf:` is asked, and its answer as a text that is weighed
is: so a model is trained on the very prompts that it will answer, in the words of its own chat template or of its
family. Behind an answer stands the token that ends it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.chat import ChatRequest, ImagePart, JsonObject, Message, ModelId, TextPart
from askance.errors import BadData, UsageError
from askance.images import CLEAN_POLICY, Shown
from askance.models.local.adapter import LoraShape, add_adapter, save_adapter
from askance.models.local.batch_row import BatchRow, to_row
from askance.models.local.transformers_model import load_model
from askance.training.objective import IGNORED, Control, DrawnExample, Objective, Tensors, freeze_all_but
from askance.training.training_set import ChatExample
from askance.training.weights import BLANK, save_weights

if TYPE_CHECKING:
    from askance.models.local.folder import ModelFolder
    from askance.models.local.prompt_writer import PromptWriter
    from askance.models.local.transformers_model import TransformersModel
    from askance.models.settings import Local
    from askance.training.recipe import RecipeFields


def chat_objective(
    folder: ModelFolder, local: Local, fields: RecipeFields, *, name: str, control: Control | None
) -> Objective:
    """What teaches a model chats.

    Args:
        folder: of the base.
        local: how the base is held.
        fields: of the recipe.
        name: of the base, for messages and for the adapter.
        control: `text-only` makes all pictures blank; in what is saved, too, but for an adapter.

    Raises:
        MissingExtra: a package is not installed.
        ConfigError: the base cannot be loaded.
        UsageError: the base has nothing of what the recipe trains.
    """
    loaded = load_model(folder, local, name=name, dtype=folder.dtype_in(local.dtype))
    writer = loaded.prompt_writer()
    own_model = loaded.model
    adapter, blind = "adapter" in fields.trained, control == "text-only"
    if adapter:
        shape = LoraShape(rank=fields.rank, alpha=fields.alpha, dropout=fields.dropout, targets=fields.targets)
        model = add_adapter(own_model, shape, spec=loaded.runtime.spec)
    else:
        model = own_model
        freeze_all_but(model, fields.trained)
    collator = _Chats(loaded, writer, longest=fields.longest, blind=blind)

    def save(place: Path) -> None:
        if adapter:
            save_adapter(model, place)
        else:
            save_weights(own_model, folder.path, place, blind=blind)

    return Objective(
        runtime=loaded.runtime,
        model=model,
        collate=collator,
        save=save,
        tokenizer=loaded.tokenizer,
        # TRL's trainer is for models that write on from a prompt; one with an encoder has its own loss.
        chat=adapter and not own_model.config.is_encoder_decoder and loaded.text_model is own_model,
    )


class _Chats:
    """Makes batches of chats.

    Args:
        model: that learns them.
        writer: of its prompts.
        longest: tokens of a prompt and its answer; None is as many as the model reads.
        blind: whether pictures are blank.
    """

    def __init__(self, model: TransformersModel, writer: PromptWriter, *, longest: int | None, blind: bool) -> None:
        self._model = model
        self._writer = writer
        self._longest = min(longest or model.context, model.context)
        self._blind = blind
        self._end = end_of(model, writer)
        self._id = ModelId("hf", model.runtime.spec.removeprefix("hf:"))
        self._known = dict[int, tuple[ChatExample, BatchRow]]()

    def __call__(self, rows: Sequence[DrawnExample]) -> Tensors:
        """The batch, padded on the right."""
        model, torch = self._model, self._model.torch
        made = [self._row(cast("ChatExample", row.example)) for row in rows]
        answers = [[*row.ids[-(row.given or 0) :], *self._end] for row in made]
        prompts = [row.ids[: -(row.given or 0)] for row in made]
        two = bool(model.model.config.is_encoder_decoder)
        ids = prompts if two else [prompt + answer for prompt, answer in zip(prompts, answers, strict=True)]
        labels = (
            answers
            if two
            else [[IGNORED] * len(prompt) + answer for prompt, answer in zip(prompts, answers, strict=True)]
        )
        for line in ids:
            self._check_length(len(line))
        batch: Tensors = {
            "input_ids": _padded(torch, ids, model.pad),
            "attention_mask": _padded(torch, [[1] * len(line) for line in ids], 0),
            "labels": _padded(torch, labels, IGNORED),
        }
        for kind in made[0].types:
            lines = [[*row.types[kind], *[0] * len(self._end)] for row in made]
            batch[kind] = _padded(torch, [each[: len(line)] for each, line in zip(lines, ids, strict=True)], 0)
        return batch | self._pictures(made)

    def _row(self, example: ChatExample) -> BatchRow:
        if (known := self._known.get(id(example))) is not None:
            return known[1]
        request = request_of(example, self._id)
        if not example.images and self._model.text_model is not self._model.model:
            raise UsageError(
                f"A chat without a picture cannot teach a model of the kind {self._model.kind!r}.",
                hint="Leave such chats out of the set.",
            )
        row = to_row(request, self._model, self._writer)
        if not example.images:  # tokens alone take little room, and are the same in each epoch
            self._known[id(example)] = (example, row)
        return row

    def _pictures(self, rows: Sequence[BatchRow]) -> Tensors:
        """What goes with the pictures of all rows; where rows have unequal parts of it, they are padded with zeros."""
        torch = self._model.torch
        names = dict.fromkeys(name for row in rows for name in row.inputs)
        found = {name: [row.inputs[name] for row in rows if name in row.inputs] for name in names}
        if self._blind and "pixel_values" in found:
            found["pixel_values"] = [torch.full_like(value, BLANK) for value in found["pixel_values"]]
        joined = {name: _joined(torch, values) for name, values in found.items()}
        return {
            name: value.to(self._model.runtime.dtype) if value.is_floating_point() else value
            for name, value in joined.items()
        }

    def _check_length(self, tokens: int) -> None:
        if tokens > self._longest:
            raise UsageError(
                f"A chat has {tokens:,} tokens with its pictures, and {self._longest:,} are read.",
                hint="Nothing is cut, lest it be a part of a picture: leave long chats out of the set, or give a base "
                "with a longer context.",
            )


def request_of(example: ChatExample, model: ModelId) -> ChatRequest:
    """The request of a chat, with its answer as the text that is weighed.

    Raises:
        BadData: its pictures are not as many as its turns speak of, or its answer is no single text.
    """
    pictures = iter(example.images)
    messages = tuple(
        Message(turn["role"], tuple(_part(part, pictures) for part in turn["content"])) for turn in example.prompt
    )
    answer = "".join(str(part.get("text", "")) for turn in example.completion for part in turn["content"])
    if next(pictures, None) is not None or len(example.completion) != 1 or not answer.strip():
        raise BadData("A chat of the training set has no answer, or a picture too many.", hint="Make the set again.")
    return ChatRequest(model=model, messages=messages, given=answer)


def _part(part: JsonObject, pictures: Any) -> TextPart | ImagePart:
    if part["type"] != "image":
        return TextPart(part["text"])
    image = next(pictures, None)
    if image is None:
        raise BadData("A chat of the training set lacks a picture.", hint="Make the set again.")
    return ImagePart(Shown(image, CLEAN_POLICY))


def end_of(model: TransformersModel, writer: PromptWriter) -> list[int]:
    """The token that ends an answer: the first of the model's ends that its template writes behind one, or its own."""
    last: int | None = model.tokenizer.eos_token_id
    if writer.template is not None:
        said = "QQQ"
        content: Any = [{"type": "text", "text": said}] if writer.sees else said
        turns = [{"role": "user", "content": content}, {"role": "assistant", "content": content}]
        behind = writer.template.apply_chat_template(turns, tokenize=False).rpartition(said)[2]
        tokens = model.tokenizer(behind, add_special_tokens=False)["input_ids"]
        last = next((token for token in tokens if token in model.ends), last)
    return [] if last is None else [last]


def _padded(torch: Any, lines: Sequence[Sequence[int]], filler: int) -> Any:
    width = max(map(len, lines))
    return torch.tensor([[*line, *[filler] * (width - len(line))] for line in lines])


def _joined(torch: Any, values: Sequence[Any]) -> Any:
    """One tensor, along the first axis."""
    sides = [max(lengths) for lengths in zip(*(value.shape[1:] for value in values), strict=True)]

    def padded(value: Any) -> Any:
        missing = [side - length for side, length in zip(sides, value.shape[1:], strict=True)]
        return torch.nn.functional.pad(value, [each for side in reversed(missing) for each in (0, side)])

    return torch.cat([padded(value) for value in values])
