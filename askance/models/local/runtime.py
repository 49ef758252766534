"""What every model on this machine needs from torch: packages, a device, weights, memory, batches, and its errors."""

from __future__ import annotations

import gc
import logging
import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from askance.errors import AskanceError, ConfigError, MissingExtra, ModelError, OutOfMemory

if TYPE_CHECKING:
    from pathlib import Path

    from askance.models.settings import Local

Item = TypeVar("Item")
Made = TypeVar("Made")

EXTRA = (
    "pip install 'askance[local]'. On Linux that brings CUDA; without it, for a machine with no such GPU: "
    "uv pip install 'askance[local]' --torch-backend=cpu"
)
"""The way out where torch, or what runs on it, is not installed."""

_log = logging.getLogger("askance")


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
    """The name of the device that `local` asks for.

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
            f"Weights can be quantized to {local.bits} bits on CUDA devices and processors only, and this is "
            f"{wanted!r}.",
            hint="Leave `bits` out.",
        )
    return wanted


def is_slow(torch: Any, device: str, *, dtype: str) -> bool:
    """Whether a processor lacks arithmetic in a type of 16 bits; where torch does not know, it has it."""
    names = {"bfloat16": "_is_mkldnn_bf16_supported", "float16": "_is_mkldnn_fp16_supported"}
    has_it = getattr(torch.ops.mkldnn, names[dtype], None) if device == "cpu" and dtype in names else None
    return has_it is not None and not has_it()


def tokenizable(text: str) -> str:
    """`text` as a tokenizer takes it: half a surrogate pair, which UTF-8 cannot hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


class TorchRuntime:
    """What one model is loaded and run with.

    Args:
        spec: of the model, for messages.
        local: how it is run.
        dtype: type of number that the weights are held in.

    Raises:
        MissingExtra: torch or transformers is not installed.
        ConfigError: there is no such device, or it does not compute in this type.
    """

    def __init__(self, spec: str, local: Local, *, dtype: str) -> None:
        self.torch, self.transformers = packages(spec)
        self.spec = spec
        self.local = local
        self.device = device_of(self.torch, local, dtype=dtype, spec=spec)
        self.dtype: Any = getattr(self.torch, dtype)
        if is_slow(self.torch, self.device, dtype=dtype):
            _log.warning(
                '%s: this processor has no arithmetic in %s, and is much faster with `local = { dtype = "float32" }`.',
                spec,
                dtype,
            )

    @contextmanager
    def loading(self) -> Generator[None]:
        """Loads without progress bars; what transformers raises becomes an error of one sentence.

        Raises:
            MissingExtra, ConfigError: see `load_errors`.
        """
        with load_errors(self.spec), no_progress_bars(self.transformers):
            yield

    def pretrained(self, kind: str, folder: Path, **more: Any) -> Any:
        """What `kind`, one of the `Auto…` classes of transformers, reads from `folder`, without any download."""
        return getattr(self.transformers, kind).from_pretrained(
            folder, trust_remote_code=self.local.remote_code, local_files_only=True, **more
        )

    def weights(self, kind: str, folder: Path, **more: Any) -> Any:
        """The model in `folder`, on its device unless it is quantized.

        Raises:
            ValueError: weights are missing or of another shape; transformers would draw them at random.
        """
        safe = None if self.local.pickled else True
        model, report = self.pretrained(
            kind, folder, dtype=self.dtype, use_safetensors=safe, output_loading_info=True, **more
        )
        missing = sorted(report.get("missing_keys") or ())
        if missing:
            msg = f"its files lack {len(missing)} of its weights, such as {missing[0]}"
            raise ValueError(msg)
        if report.get("mismatched_keys"):
            msg = "weights in its files have other shapes than its configuration says"
            raise ValueError(msg)
        return (model if self.local.bits is not None else model.to(self.device)).eval()

    def on_device(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Tensors on the device; those of floating-point numbers, pixels above all, in the type of the weights."""
        return {
            name: value.to(self.device, self.dtype) if value.is_floating_point() else value.to(self.device)
            for name, value in inputs.items()
        }


@contextmanager
def load_errors(spec: str) -> Generator[None]:
    """Turns what transformers raises while it loads into an error of one sentence.

    Raises:
        MissingExtra: it needs a package that is not installed.
        ConfigError: the model cannot be loaded, or does not fit into memory.
    """
    try:
        yield
    except AskanceError:
        raise
    except ImportError as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise MissingExtra(
            f"The model {spec!r} needs a package that is not installed: {reason}.", hint="Install it beside askance."
        ) from error
    except Exception as error:  # transformers may raise anything for files that it cannot use
        if is_out_of_memory(error):
            raise ConfigError(
                f"The model {spec!r} does not fit into memory: {shortage(error)}.",
                hint="Quantize the weights (`bits`), take a smaller one, or see which other process holds memory.",
            ) from error
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise ConfigError(
            f"The model {spec!r} cannot be loaded: {reason[:300]}.",
            hint=f"Give a folder that holds it whole, as it was saved: `{spec.partition(':')[0]}:FOLDER`.",
        ) from error


@contextmanager
def no_progress_bars(transformers: Any) -> Generator[None]:
    """Keeps transformers from drawing progress bars: the run has one of its own."""
    logging = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


# --- memory ---

_REQUESTED = re.compile(r"tried to allocate ([\d.]+)\s*(bytes|[kmgt]i?b)", re.IGNORECASE)
_UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIGNS = ("defaultcpuallocator", "out of memory", "cannot allocate memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that there was no memory left."""
    return isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in _SIGNS)


def shortage(error: BaseException, device: Any = "cpu") -> str:
    """How much memory was needed and how much is free, in words."""
    request = _REQUESTED.search(str(error))
    free = _free_bytes(device)
    rest = "" if free is None else f", and {_in_units(free)} are free on {str(device)!r}"
    if request is None:
        return f"there is no memory left{rest}"
    return f"{_in_units(int(float(request[1]) * _UNITS[request[2][0].lower()]))} more were needed{rest}"


def free_memory(torch: Any) -> None:
    """Gives back what nothing refers to any more, on an accelerator too."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _free_bytes(device: Any) -> int | None:
    """Bytes that are free on `device`; None where the system does not say."""
    with suppress(ImportError, OSError, ValueError, AttributeError, RuntimeError, AssertionError):
        if str(device).startswith("cuda"):
            torch: Any = import_module("torch")
            return int(torch.cuda.mem_get_info(device)[0])
        if str(device) == "cpu":
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    return None


def _in_units(count: int) -> str:
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,} bytes"


# --- batches ---


class BatchRunner(Generic[Item]):
    """Runs items through a model in batches; used by one thread.

    A batch that fails is run again by halves, so that one item does not fail the others. After one that does not fit
    into memory all batches are smaller.

    Args:
        torch: the package, whose memory it is.
        spec: what to call the model in messages.
        most: items in a batch.
        out_of_memory: the error for a single item that does not fit, made from the item and what torch raised.
        on_shortage: called with the size of each batch that did not fit.
    """

    def __init__(
        self,
        torch: Any,
        *,
        spec: str,
        most: int,
        out_of_memory: Callable[[Item, Exception], OutOfMemory] | None = None,
        on_shortage: Callable[[int], None] | None = None,
    ) -> None:
        self.most = max(1, most)
        self._torch = torch
        self._spec = spec
        self._out_of_memory = out_of_memory or self._too_large
        self._on_shortage = on_shortage

    def run(
        self, items: Sequence[Item], make: Callable[[Sequence[Item]], Sequence[Made]], *, length: Callable[[Item], int]
    ) -> list[Made]:
        """What `make` gives for `items`, in their order. Items of about one length share a batch, so as to pad little.

        Raises:
            OutOfMemory: one item alone does not fit into memory.
            ModelError: the model failed over one item alone.
        """
        order = sorted(range(len(items)), key=lambda place: length(items[place]))
        made: dict[int, Made] = {}
        for place, each in zip(order, self.outcomes([items[place] for place in order], make), strict=True):
            if isinstance(each, AskanceError):
                raise each
            made[place] = each
        return [made[place] for place in range(len(items))]

    def outcomes(
        self, items: Sequence[Item], make: Callable[[Sequence[Item]], Sequence[Made]]
    ) -> list[Made | AskanceError]:
        """For each of `items` what `make` gave, or the error that it ended with, in their order."""
        outcomes: list[Made | AskanceError] = []
        while len(outcomes) < len(items):
            outcomes += self._outcomes(items[len(outcomes) : len(outcomes) + self.most], make)
        return outcomes

    def _outcomes(
        self, batch: Sequence[Item], make: Callable[[Sequence[Item]], Sequence[Made]]
    ) -> list[Made | AskanceError]:
        try:
            return list(make(batch))
        except Exception as error:  # noqa: BLE001  # the model's code may raise anything; the other items go on
            failure = error
        short = is_out_of_memory(failure)
        if short:
            self._shrink(len(batch))
        if len(batch) == 1:
            return [self._out_of_memory(batch[0], failure) if short else self._failed(failure)]
        middle = len(batch) // 2
        if short:
            return self.outcomes(batch, make)
        return [*self._outcomes(batch[:middle], make), *self._outcomes(batch[middle:], make)]

    def _shrink(self, size: int) -> None:
        if self._on_shortage is not None:
            self._on_shortage(size)
        free_memory(self._torch)
        if size > 1:
            self.most = max(1, min(self.most, size // 2))
            _log.warning(
                "%s: a batch of %d did not fit into memory; batches have at most %d from now on.",
                self._spec,
                size,
                self.most,
            )

    def _too_large(self, _item: Item, error: Exception) -> OutOfMemory:
        reason = " ".join(next(iter(str(error).splitlines()), "").split())[:300]
        failure = OutOfMemory(
            f"The model {self._spec!r} has not the memory for one text or picture: {reason}",
            hint="See what else holds memory there, or give another `device` or `dtype`.",
        )
        failure.__cause__ = error
        return failure

    def _failed(self, error: Exception) -> AskanceError:
        if isinstance(error, AskanceError):
            return error
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        failure = ModelError(f"The model {self._spec!r} failed: {reason}")
        failure.__cause__ = error
        return failure
