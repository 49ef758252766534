"""What every model on this machine needs before it is loaded: packages, a device, errors in words."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from askance.errors import AskanceError, ConfigError, MissingExtra
from askance.models.local.memory import is_no_room, shortage

if TYPE_CHECKING:
    from collections.abc import Generator

    from askance.models.settings import Local

EXTRA = "pip install 'askance[local]'"


def packages(spec: str) -> tuple[Any, Any]:
    """Torch and transformers, for the model `spec`.

    Raises:
        MissingExtra: one of them is not installed.
    """
    try:
        return import_module("torch"), import_module("transformers")
    except ImportError as error:
        raise MissingExtra(
            f"The model {spec!r} needs torch and transformers, and {error.name} is not installed.", hint=EXTRA
        ) from error


def device_of(torch: Any, local: Local, *, dtype: str, spec: str) -> str:
    """The device by name.

    Raises:
        ConfigError: there is no such device, or it does not compute in this type.
    """
    wanted = local.device
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.zeros(1, device=wanted)
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # torch built without CUDA asserts it
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise ConfigError(
            f"The device {wanted!r} cannot be used for {spec!r}: {reason}.", hint='Try `device = "cpu"`.'
        ) from error
    if wanted.startswith("cuda") and dtype == "bfloat16" and not torch.cuda.is_bf16_supported():
        raise ConfigError(f"The device {wanted!r} does not compute in bfloat16.", hint='Set `dtype = "float16"`.')
    if local.bits is not None and not wanted.startswith(("cpu", "cuda")):
        raise ConfigError(
            f"Weights are pressed into {local.bits} bits on CUDA devices and processors alone, and this is {wanted!r}.",
            hint="Leave `bits` out.",
        )
    return wanted


def check_report(report: Mapping[str, Any]) -> None:
    """Holds what was loaded against what the model needs.

    Raises:
        ValueError: weights are missing or of another shape.
    """
    missing = sorted(report.get("missing_keys") or ())
    if missing:
        msg = f"its files lack {len(missing)} of its weights, such as {missing[0]}"
        raise ValueError(msg)
    if report.get("mismatched_keys"):
        msg = "weights in its files have other shapes than its configuration says"
        raise ValueError(msg)


@contextmanager
def told(spec: str) -> Generator[None]:
    """Errors of transformers, and of what is built on it, in one sentence each."""
    try:
        yield
    except AskanceError:
        raise
    except ImportError as error:
        said = " ".join(str(error).split())[:200].rstrip(".")
        raise MissingExtra(
            f"The model {spec!r} needs a package that is not installed: {said}.", hint="Install it beside askance."
        ) from error
    except Exception as error:  # their code may raise anything over files that it cannot use
        if is_no_room(error):
            raise ConfigError(
                f"The model {spec!r} does not fit into memory: {shortage(error)}.",
                hint="Press the weights (`bits`), take a smaller one, or see which other process holds memory.",
            ) from error
        said = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise ConfigError(
            f"The model {spec!r} cannot be loaded: {said[:300]}.",
            hint=f"Give a folder that holds it whole, as it was saved: `{spec.partition(':')[0]}:FOLDER`.",
        ) from error


@contextmanager
def quietly(transformers: Any) -> Generator[None]:
    """Keeps transformers from drawing progress bars: whoever runs a chain draws one of their own."""
    logging = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
