"""A model of transformers, loaded from a folder with its tokenizer and processor, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

from askance.errors import ConfigError, MissingExtra
from askance.models.local.adapter import with_adapter
from askance.models.local.adapter_folder import find_adapter
from askance.models.local.architectures import Architecture, architecture_of
from askance.models.local.folder import digest_of, json_beside
from askance.models.local.prompt_writer import PromptWriter
from askance.models.local.runtime import TorchRuntime

if TYPE_CHECKING:
    from askance.models.local.folder import ModelFolder
    from askance.models.settings import Local

_TEXT_MODEL_INSIDE = frozenset({"blip-2", "instructblip"})
"""Architectures that write with a language model of their own, and do not write without a picture."""

_UNLIMITED = 1_000_000
"""Tokens from which on a tokenizer's limit means none."""


@dataclass(kw_only=True, eq=False)
class TransformersModel:
    """A model that is ready to write.

    `model` and `tokenizer` are those of transformers; `processor` makes prompts with pictures, and is None for a model
    of text alone.
    """

    runtime: TorchRuntime
    model: Any
    tokenizer: Any
    processor: Any = None
    family: str | None = None
    """By which prompts are worded."""
    defaults: Mapping[str, Any] = field(init=False)
    """How its authors have it sampled."""
    ends: frozenset[int] = field(init=False)
    """Tokens that end an answer."""

    def __post_init__(self) -> None:
        model = self.model
        end_tokens: Any = getattr(model.generation_config, "eos_token_id", None)
        ends = cast("list[Any]", end_tokens if isinstance(end_tokens, list) else [end_tokens])
        self.ends = frozenset(end for end in (*ends, self.tokenizer.eos_token_id) if isinstance(end, int))
        self.defaults = model.generation_config.to_diff_dict()
        # What the loop would do on its own, it leaves to askance: penalties, ends, limits.
        for part in {id(each): each for each in (model, self.text_model)}.values():
            part.generation_config = self.generation_config()

    @property
    def torch(self) -> Any:
        return self.runtime.torch

    @property
    def kind(self) -> str:
        """The architecture's name."""
        return self.model.config.model_type

    @property
    def architecture(self) -> Architecture:
        """What is known of its family."""
        return architecture_of(self.kind, family=self.family, sees=self.processor is not None)

    @property
    def text_model(self) -> Any:
        """What answers without a picture; BLIP-2 and its like leave that to the language model inside."""
        return getattr(self.model, "language_model", self.model) if self.kind in _TEXT_MODEL_INSIDE else self.model

    def generation_config(self, **more: Any) -> Any:
        """Settings of the loop that say nothing of how tokens are chosen."""
        names = ("bos_token_id", "decoder_start_token_id")
        start = {name: self.defaults[name] for name in names if name in self.defaults}
        return self.runtime.transformers.GenerationConfig(**start, pad_token_id=self.pad, do_sample=False, **more)

    @property
    def device(self) -> Any:
        return self.model.device

    @property
    def context(self) -> int:
        """Tokens that prompt and answer have together, at most."""
        text = self.model.config.get_text_config()
        most = getattr(text, "max_position_embeddings", None)
        limit = self.tokenizer.model_max_length
        return most if isinstance(most, int) and most > 0 else min(_UNLIMITED, limit)

    @property
    def picture_token(self) -> int | None:
        """The placeholder of a picture."""
        config = self.model.config
        return getattr(config, "image_token_id", getattr(config, "image_token_index", None))

    @property
    def cache_argument(self) -> str:
        """Name of the argument that takes keys and values; transformers 5.24 renamed it in its own models."""
        return "cache" if "cache" in signature(self.model.forward).parameters else "past_key_values"

    @property
    def pad(self) -> int:
        """A token for places that are masked."""
        pad = self.tokenizer.pad_token_id
        return pad if pad is not None else next(iter(sorted(self.ends)), 0)

    @property
    def reuses_prefixes(self) -> bool:
        """Whether a question can find the beginning of its prompt computed for another."""
        if self.model.config.is_encoder_decoder or not getattr(self.model, "_supports_cache_class", True):
            return False
        if self.processor is not None:
            return self.architecture.pictures == "once"
        # Recurrent layers keep, besides keys and values, a state that cannot be cut at a token.
        layers = set(getattr(self.model.config.get_text_config(), "layer_types", None) or ())
        recurrent = getattr(self.model, "_is_stateful", False) or layers - {"full_attention", "sliding_attention"}
        return not recurrent

    def prompt_writer(self) -> PromptWriter:
        """What writes prompts for it."""
        holder = self.processor if getattr(self.processor, "chat_template", None) else self.tokenizer
        special = {str(token) for token in self.tokenizer.added_tokens_decoder.values() if token.special}
        known = self.architecture
        mark = ""
        if self.processor is not None and not known.single:
            mark = str(getattr(self.processor, known.attribute, "") or known.mark)
        return PromptWriter(
            template=holder if getattr(holder, "chat_template", None) else None,
            form=known.format,
            sees=self.processor is not None,
            picture=f"{known.before}{mark}{known.behind}" if mark else "",
            end=self.tokenizer.eos_token or "",
            special_tokens=special | {*self.tokenizer.all_special_tokens, *([mark] if mark else [])},
        )


def load_model(
    folder: ModelFolder, local: Local, *, name: str, dtype: str, family: str | None = None
) -> TransformersModel:
    """The model in `folder`, on its device.

    Raises:
        MissingExtra: a package is not installed.
        ConfigError: the weights cannot be loaded, lack parts, or do not fit the device.
    """
    runtime = TorchRuntime(f"hf:{name}", local, dtype=dtype)
    sees = _sees(folder, runtime)
    more: dict[str, Any] = {} if local.attention is None else {"attn_implementation": local.attention}
    if local.bits is not None:
        more |= {"quantization_config": _quantization(runtime, local.bits), "device_map": {"": runtime.device}}
    kind = "AutoModelForSeq2SeqLM" if folder.config.get("is_encoder_decoder") is True else "AutoModelForCausalLM"
    with runtime.loading():
        tokenizer = runtime.pretrained("AutoTokenizer", folder.path)
        processor = _processor(folder, runtime, tokenizer) if sees else None
        model = runtime.weights("AutoModelForImageTextToText" if sees else kind, folder.path, **more)
        if local.adapter is not None:
            adapter = find_adapter(local.adapter)
            adapter.check_base(digest_of(folder, replace(local, adapter=None)))
            model = with_adapter(model, adapter, spec=runtime.spec, merged=local.bits is None).eval()
    return TransformersModel(
        runtime=runtime,
        model=model,
        tokenizer=getattr(processor, "tokenizer", tokenizer),
        processor=processor,
        family=family,
    )


def _sees(folder: ModelFolder, runtime: TorchRuntime) -> bool:
    """Whether the architecture takes pictures.

    Raises:
        ConfigError: it neither takes pictures nor writes text, or needs code of its own that was not allowed.
    """
    auto: Any = import_module("transformers.models.auto.modeling_auto")
    own: Mapping[str, Any] = folder.config.get("auto_map") or {}
    sees = folder.kind in auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    writes = (
        folder.kind in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        or folder.kind in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    )
    if runtime.local.remote_code and own:
        return any("ImageTextToText" in entry for entry in own) or sees
    if sees or writes:
        return sees
    if own:
        raise ConfigError(
            f"The model {runtime.spec!r} ({folder.kind}) comes with Python code of its own, which is not run unasked.",
            hint="If you trust it: `local = { remote_code = true }`.",
        )
    raise ConfigError(
        f"The model {runtime.spec!r} is of the kind {folder.kind!r}, which writes no text in transformers "
        f"{runtime.transformers.__version__}.",
        hint="Give a language model or a vision-language model; a newer transformers may know the kind.",
    )


def _quantization(runtime: TorchRuntime, bits: int) -> Any:
    try:
        import_module("bitsandbytes")
        import_module("accelerate")
    except ImportError as error:
        raise MissingExtra(
            f"Weights in {bits} bits need bitsandbytes and accelerate, and {error.name} is not installed.",
            hint="pip install 'askance[local,bits]'",
        ) from error
    config = runtime.transformers.BitsAndBytesConfig
    if bits == 8:
        return config(load_in_8bit=True)
    return config(load_in_4bit=True, bnb_4bit_compute_dtype=runtime.dtype)


# --- processors ---


def _processor(folder: ModelFolder, runtime: TorchRuntime, tokenizer: Any) -> Any:
    """The processor in `folder`; without torchvision, the part of it that pictures need.

    Without torchvision, transformers cannot make the half for videos of the processors in `_WITHOUT_VIDEO`.
    """
    try:
        return runtime.pretrained("AutoProcessor", folder.path)
    except (ImportError, ValueError) as error:
        if folder.kind not in _WITHOUT_VIDEO or "torchvision" not in str(error).lower():
            raise
    pixels = runtime.pretrained("AutoImageProcessor", folder.path, backend="pil")
    # The tokenizer does not read the chat template of older processors.
    tokenizer.chat_template = tokenizer.chat_template or json_beside(folder.path, "chat_template.json").get(
        "chat_template"
    )
    if folder.kind == "internvl":
        return InternProcessor(pixels, tokenizer, tile_tokens=int(folder.config.get("image_seq_length", 256)))
    return QwenProcessor(pixels, tokenizer)


class QwenProcessor:
    """Qwen-VL's processor without videos: as many placeholders as a picture has merged patches."""

    image_token = "<|image_pad|>"
    chat_template = None

    def __init__(self, pixels: Any, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._pixels = pixels

    def __call__(self, *, text: str, images: Any = None, **how: Any) -> Any:
        more: Any = self._pixels(images=images, return_tensors="pt") if images else {}
        for grid in more.get("image_grid_thw", ()):
            count = int(grid.prod()) // self._pixels.merge_size**2
            text = text.replace(self.image_token, "\0" * count, 1)
        tokens = self.tokenizer(text.replace("\0", self.image_token), **how)
        mark = self.tokenizer.convert_tokens_to_ids(self.image_token)
        return {**tokens, **more, "mm_token_type_ids": (tokens["input_ids"] == mark).long()}


class InternProcessor:
    """InternVL's processor without videos: a picture is cut into tiles, each of `tile_tokens` placeholders."""

    image_token = "<IMG_CONTEXT>"
    chat_template = None

    def __init__(self, pixels: Any, tokenizer: Any, *, tile_tokens: int) -> None:
        self.tokenizer = tokenizer
        self._pixels = pixels
        self._tile_tokens = tile_tokens

    def __call__(self, *, text: str, images: Any = None, **how: Any) -> Any:
        more: Any = self._pixels(images=images, crop_to_patches=True, return_tensors="pt") if images else {}
        for tiles in more.pop("num_patches", ()):
            placeholders = "\0" * (self._tile_tokens * int(tiles))
            text = text.replace(self.image_token, f"<img>{placeholders}</img>", 1)
        return {**self.tokenizer(text.replace("\0", self.image_token), **how), **more}


_WITHOUT_VIDEO = frozenset({"internvl", "qwen2_5_vl", "qwen2_vl"})
