"""What transformers loads for a folder: model, tokenizer, processor."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from askance.errors import ConfigError, MissingExtra
from askance.models.local.loaded import Loaded
from askance.models.local.pictures import QWEN_KINDS, QwenPictures

if TYPE_CHECKING:
    from collections.abc import Generator

    from askance.models.local.folders import Folder
    from askance.models.settings import Local

_EXTRA = "pip install 'askance[local]'"


def load_model(folder: Folder, local: Local, *, name: str, dtype: str, family: str | None = None) -> Loaded:
    """The model in `folder`, on its device.

    Raises:
        MissingExtra: a package is not installed.
        ConfigError: the weights cannot be loaded, lack parts, or do not fit the device.
    """
    torch, transformers = _packages(name)
    device = _device(torch, local, dtype=dtype, name=name)
    how: dict[str, Any] = {"trust_remote_code": local.remote_code, "local_files_only": True}
    sees = _sees(folder, transformers, name, remote_code=local.remote_code)
    kind = transformers.AutoModelForImageTextToText if sees else _speaker(folder, transformers)
    more: dict[str, Any] = {} if local.attention is None else {"attn_implementation": local.attention}
    if local.bits is not None:
        more |= {
            "quantization_config": _pressed(torch, transformers, bits=local.bits, dtype=dtype),
            "device_map": {"": device},
        }
    with _told(name), _quietly(transformers):
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
        _check_report(report)
        if local.bits is None:
            model = model.to(device)
    return Loaded(
        torch=torch,
        model=model,
        tokenizer=getattr(processor, "tokenizer", tokenizer),
        processor=processor,
        family=family,
    )


def _packages(name: str) -> tuple[Any, Any]:
    try:
        return import_module("torch"), import_module("transformers")
    except ImportError as error:
        raise MissingExtra(
            f"The model 'hf:{name}' needs torch and transformers, and {error.name} is not installed.", hint=_EXTRA
        ) from error


def _device(torch: Any, local: Local, *, dtype: str, name: str) -> str:
    """The device by name.

    Raises:
        ConfigError: there is no such device, or it does not compute in this type.
    """
    wanted = local.device
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.zeros(1, device=wanted)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(
            f"There is no device {wanted!r} here for 'hf:{name}'.", hint='Try `device = "cpu"`.'
        ) from error
    if wanted.startswith("cuda") and dtype == "bfloat16" and not torch.cuda.is_bf16_supported():
        raise ConfigError(f"The device {wanted!r} does not compute in bfloat16.", hint='Set `dtype = "float16"`.')
    if local.bits is not None and not wanted.startswith("cuda"):
        raise ConfigError(
            f"Weights are pressed into {local.bits} bits on CUDA devices alone, and this is {wanted!r}.",
            hint="Leave `bits` out.",
        )
    return wanted


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
    except ImportError:
        # Without torchvision the video half of these processors cannot be made; pictures need none of it.
        if folder.kind not in QWEN_KINDS:
            raise
        pixels = transformers.AutoImageProcessor.from_pretrained(folder.path, backend="pil", **how)
        return QwenPictures(pixels, tokenizer)


def _check_report(report: Mapping[str, Any]) -> None:
    missing = sorted(report.get("missing_keys") or ())
    if missing:
        msg = f"its files lack {len(missing)} of its weights, such as {missing[0]}"
        raise ValueError(msg)
    if report.get("mismatched_keys"):
        msg = "weights in its files have other shapes than its configuration says"
        raise ValueError(msg)


@contextmanager
def _told(name: str) -> Generator[None]:
    """Errors of transformers in one sentence each."""
    try:
        yield
    except ImportError as error:
        said = " ".join(str(error).split())[:200]
        raise MissingExtra(f"The model 'hf:{name}' needs a package that is not installed: {said}") from error
    except (OSError, ValueError, KeyError, RuntimeError, AttributeError, MemoryError) as error:
        said = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise ConfigError(
            f"The model 'hf:{name}' cannot be loaded: {said[:300]}.",
            hint="Give a folder that holds it whole, as it was saved: `hf:FOLDER`.",
        ) from error


@contextmanager
def _quietly(transformers: Any) -> Generator[None]:
    """Keeps transformers from drawing progress bars: whoever runs a chain draws one of their own."""
    logging = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
