"""Texts to texts by an encoder–decoder, such as T5: the loss on the tokens of the target alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from askance.errors import ConfigError
from askance.models.local.runtime import TorchRuntime, tokenizable
from askance.training.objective import IGNORED, DrawnExample, Objective, Tensors, freeze_all_but
from askance.training.weights import save_weights

if TYPE_CHECKING:
    from askance.models.local.folder import ModelFolder
    from askance.models.settings import Local
    from askance.training.recipe import RecipeFields
    from askance.training.training_set import TextExample


def text_objective(folder: ModelFolder, local: Local, fields: RecipeFields, *, name: str) -> Objective:
    """What teaches an encoder–decoder to write targets.

    Args:
        folder: of the base.
        local: how the base is held.
        fields: of the recipe.
        name: of the base, for messages.

    Raises:
        MissingExtra: a package is not installed.
        ConfigError: the base cannot be loaded, or has no encoder.
        UsageError: the base has nothing of what the recipe trains.
    """
    runtime = TorchRuntime(f"hf:{name}", local, dtype=folder.dtype_in(local.dtype))
    if folder.config.get("is_encoder_decoder") is not True:
        raise ConfigError(
            f"The model {runtime.spec!r} is of the kind {folder.kind!r}, which has no encoder for the input.",
            hint="Give a T5 or its like; any other language model is taught by `askance train lora`.",
        )
    with runtime.loading():
        model = runtime.weights("AutoModelForSeq2SeqLM", folder.path)
        tokenizer = runtime.pretrained("AutoTokenizer", folder.path)
    freeze_all_but(model, fields.trained)
    longest = min(fields.longest or 512, int(tokenizer.model_max_length))

    def tokens(texts: Sequence[str]) -> Any:
        read = [tokenizable(text) for text in texts]
        return tokenizer(read, padding=True, truncation=True, max_length=longest, verbose=False, return_tensors="pt")

    def collate(rows: Sequence[DrawnExample]) -> Tensors:
        examples = [cast("TextExample", row.example) for row in rows]
        inputs, targets = tokens([each.input for each in examples]), tokens([each.target for each in examples])
        labels = targets["input_ids"].masked_fill(targets["attention_mask"] == 0, IGNORED)
        return {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"], "labels": labels}

    return Objective(
        runtime=runtime,
        model=model,
        collate=collate,
        save=lambda place: save_weights(model, folder.path, place),
        outputs=_likeliest,
        measure=_exact,
    )


def _likeliest(logits: Any, labels: Any) -> Any:  # noqa: ARG001  # as the trainer calls it
    """The likeliest token at each place, of logits that may stand first among other outputs."""
    return (cast("tuple[Any, ...]", logits)[0] if isinstance(logits, tuple) else logits).argmax(-1)


def _exact(written: Any, labels: Any) -> dict[str, float]:
    """The share of targets that the model would write token by token, the likeliest each time.

    Given a target, its next token is the likeliest at every place exactly if the model writes that target itself.
    """
    return {"exact": float(((written == labels) | (labels == IGNORED)).all(axis=1).mean())}
