"""A model that is ready to write, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

from askance.models.local.kinds import Kind, kind_of
from askance.models.local.prompting import Prompter

WRAPPED_KINDS = frozenset({"blip-2", "instructblip"})
"""Architectures that write with a language model of their own, and do not write without a picture."""

_FAR = 1_000_000
"""Tokens from which on a tokenizer's limit means none."""


@dataclass(kw_only=True, eq=False)
class Loaded:
    """A model that is ready to write.

    `model` and `tokenizer` are those of transformers; `processor` makes prompts with pictures, and is None for a model
    of text alone.
    """

    torch: Any
    model: Any
    tokenizer: Any
    processor: Any = None
    family: str | None = None
    """By which prompts are worded."""
    own: Mapping[str, Any] = field(init=False)
    """How its authors have it sampled."""
    ends: frozenset[int] = field(init=False)
    """Tokens that end an answer."""

    def __post_init__(self) -> None:
        model = self.model.eval()
        said: Any = getattr(model.generation_config, "eos_token_id", None)
        ends = cast("list[Any]", said if isinstance(said, list) else [said])
        self.ends = frozenset(end for end in (*ends, self.tokenizer.eos_token_id) if isinstance(end, int))
        self.own = model.generation_config.to_diff_dict()
        # What the loop would do on its own, it leaves to askance: penalties, ends, limits.
        for part in {id(each): each for each in (model, self.speaker)}.values():
            part.generation_config = self.structure()

    @property
    def kind(self) -> str:
        """The architecture's name."""
        return self.model.config.model_type

    @property
    def known(self) -> Kind:
        """What is known of its family."""
        return kind_of(self.kind, family=self.family, sees=self.processor is not None)

    @property
    def speaker(self) -> Any:
        """What answers without a picture; BLIP-2 and its like leave that to the language model inside."""
        return getattr(self.model, "language_model", self.model) if self.kind in WRAPPED_KINDS else self.model

    def structure(self, **more: Any) -> Any:
        """Settings of the loop that say nothing of how tokens are chosen."""
        transformers: Any = import_module("transformers")
        start = {name: self.own[name] for name in ("bos_token_id", "decoder_start_token_id") if name in self.own}
        return transformers.GenerationConfig(**start, pad_token_id=self.pad, do_sample=False, **more)

    @property
    def device(self) -> Any:
        return self.model.device

    @property
    def context(self) -> int:
        """Tokens that prompt and answer have together, at most."""
        text = self.model.config.get_text_config()
        most = getattr(text, "max_position_embeddings", None)
        limit = self.tokenizer.model_max_length
        return most if isinstance(most, int) and most > 0 else min(_FAR, limit)

    @property
    def picture_token(self) -> int | None:
        """The placeholder of a picture."""
        config = self.model.config
        return getattr(config, "image_token_id", getattr(config, "image_token_index", None))

    @property
    def pad(self) -> int:
        """A token for places that nobody looks at."""
        pad = self.tokenizer.pad_token_id
        return pad if pad is not None else next(iter(sorted(self.ends)), 0)

    @property
    def shares(self) -> bool:
        """Whether a question can find the beginning of its prompt computed for another."""
        if self.model.config.is_encoder_decoder or not getattr(self.model, "_supports_cache_class", True):
            return False
        if self.processor is not None:
            return self.known.pictures == "once"
        return not self._keeps_state

    @property
    def _keeps_state(self) -> bool:
        """Whether it keeps, besides keys and values, what cannot be cut at a token (recurrent layers)."""
        text = self.model.config.get_text_config()
        layers = set(getattr(text, "layer_types", None) or ())
        return bool(getattr(self.model, "_is_stateful", False) or layers - {"full_attention", "sliding_attention"})

    def prompter(self) -> Prompter:
        """What writes prompts for it."""
        speaker = self.processor if getattr(self.processor, "chat_template", None) else self.tokenizer
        marks = {str(token) for token in self.tokenizer.added_tokens_decoder.values() if token.special}
        known = self.known
        mark = self._mark
        return Prompter(
            template=speaker if getattr(speaker, "chat_template", None) else None,
            form=known.form,
            sees=self.processor is not None,
            picture=f"{known.before}{mark}{known.behind}" if mark else "",
            end=self.tokenizer.eos_token or "",
            marks=marks | {*self.tokenizer.all_special_tokens, *([mark] if mark else [])},
        )

    @property
    def _mark(self) -> str:
        """What stands for a picture in a prompt; empty where the processor puts it in."""
        if self.processor is None or self.known.single:
            return ""
        return str(getattr(self.processor, self.known.holder, "") or self.known.mark)
