"""What transformers loads for a folder: model, tokenizer, processor."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from askance.errors import ConfigError, MissingExtra
from askance.models.local.loaded import Loaded
from askance.models.local.opening import check_report, device_of, packages, quietly, told
from askance.models.local.pictures import BARE_KINDS, bare_processor

if TYPE_CHECKING:
    from askance.models.local.folders import Folder
    from askance.models.settings import Local


def load_model(folder: Folder, local: Local, *, name: str, dtype: str, family: str | None = None) -> Loaded:
    """The model in `folder`, on its device.

    Raises:
        MissingExtra: a package is not installed.
        ConfigError: the weights cannot be loaded, lack parts, or do not fit the device.
    """
    torch, transformers = packages(f"hf:{name}")
    device = device_of(torch, local, dtype=dtype, spec=f"hf:{name}")
    how: dict[str, Any] = {"trust_remote_code": local.remote_code, "local_files_only": True}
    sees = _sees(folder, transformers, name, remote_code=local.remote_code)
    kind = transformers.AutoModelForImageTextToText if sees else _speaker(folder, transformers)
    more: dict[str, Any] = {} if local.attention is None else {"attn_implementation": local.attention}
    if local.bits is not None:
        more |= {
            "quantization_config": _pressed(torch, transformers, bits=local.bits, dtype=dtype),
            "device_map": {"": device},
        }
    with told(f"hf:{name}"), quietly(transformers):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder.path, **how)
        processor = _processor(transformers, folder, tokenizer, how=how) if sees else None
        model, report = kind.from_pretrained(
            folder.path,
            dtype=getattr(torch, dtype),
            use_safetensors=None if local.pickled else True,
            output_loading_info=True,
            **how,
            **more,
        )
        check_report(report)
        if local.bits is None:
            model = model.to(device)
    return Loaded(
        torch=torch,
        model=model,
        tokenizer=getattr(processor, "tokenizer", tokenizer),
        processor=processor,
        family=family,
    )


def _sees(folder: Folder, transformers: Any, name: str, *, remote_code: bool) -> bool:
    """Whether the architecture takes pictures.

    Raises:
        ConfigError: it neither does nor writes text, or is code of its own that nobody allowed.
    """
    auto: Any = import_module("transformers.models.auto.modeling_auto")
    own: Mapping[str, Any] = folder.config.get("auto_map") or {}
    known = (
        folder.kind in auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        folder.kind in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        folder.kind in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    )
    if remote_code and own:
        return any("ImageTextToText" in entry for entry in own) or known[0]
    if not any(known):
        if own:
            raise ConfigError(
                f"The model 'hf:{name}' ({folder.kind}) comes with Python code of its own, which is not run unasked.",
                hint="If you trust it: `local = { remote_code = true }`.",
            )
        raise ConfigError(
            f"The model 'hf:{name}' is of the kind {folder.kind!r}, which writes no text in transformers "
            f"{transformers.__version__}.",
            hint="Give a language model or a vision-language model; a newer transformers may know the kind.",
        )
    return known[0]


def _speaker(folder: Folder, transformers: Any) -> Any:
    both = folder.config.get("is_encoder_decoder") is True
    return transformers.AutoModelForSeq2SeqLM if both else transformers.AutoModelForCausalLM


def _pressed(torch: Any, transformers: Any, *, bits: int, dtype: str) -> Any:
    try:
        import_module("bitsandbytes")
        import_module("accelerate")
    except ImportError as error:
        raise MissingExtra(
            f"Weights in {bits} bits need bitsandbytes and accelerate, and {error.name} is not installed.",
            hint="pip install 'askance[local,bits]'",
        ) from error
    if bits == 8:
        return transformers.BitsAndBytesConfig(load_in_8bit=True)
    return transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=getattr(torch, dtype))


def _processor(transformers: Any, folder: Folder, tokenizer: Any, *, how: dict[str, Any]) -> Any:
    try:
        return transformers.AutoProcessor.from_pretrained(folder.path, **how)
    except (ImportError, ValueError) as error:
        # Without torchvision the video half of these processors cannot be made; pictures need none of it.
        if folder.kind not in BARE_KINDS or "torchvision" not in str(error).lower():
            raise
        pixels = transformers.AutoImageProcessor.from_pretrained(folder.path, backend="pil", **how)
        return bare_processor(folder, pixels, tokenizer)
