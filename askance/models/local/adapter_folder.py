"""Folders of LoRA adapters, as PEFT writes them: whether one is whole, its identity, and the base that it belongs to.

Nothing is loaded here. An adapter's weights are read from safetensors alone, never from a pickle, and of its
configuration only what describes its matrices: other fields of PEFT's name modules of Python to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, cast

from askance.chat import canonical_json
from askance.documents import parse_json
from askance.errors import ConfigError

ADAPTER_CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
TRAINING_FILE = "train.json"
"""File beside trained weights that says how they came about; it changes no answer."""
MOST = 10_000_000
"""Bytes of a file of JSON that is read."""
_AGAIN = "Name a folder that `askance train lora` or PEFT wrote, whole."

FIELDS = (
    *("r", "lora_alpha", "lora_dropout", "target_modules", "modules_to_save", "exclude_modules", "bias"),
    *("use_rslora", "use_dora", "fan_in_fan_out", "rank_pattern", "alpha_pattern", "layers_to_transform"),
    *("layers_pattern", "task_type"),
)
"""What of PEFT's configuration describes the matrices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterFolder:
    """A LoRA adapter on disk."""

    path: Path
    shape: Mapping[str, Any]
    """`FIELDS` of its configuration."""
    base: str | None
    """sha256 of the base that it was trained on, 64 hex digits; None where nothing says so."""

    @property
    def digest(self) -> str:
        """sha256 over its shape and its weights, 64 hex digits; what its base was called has no part in it."""
        with (self.path / WEIGHTS).open("rb") as file:
            weights = file_digest(file, "sha256").hexdigest()
        return sha256(f"{canonical_json(dict(self.shape))}\n{weights}\n".encode()).hexdigest()

    def check_base(self, digest: str) -> None:
        """Refuses another base than the one that it was trained on, as far as is known.

        Raises:
            ConfigError: it is another.
        """
        if self.base is not None and self.base != digest:
            raise ConfigError(
                f"The adapter {str(self.path)!r} was trained on another base: on one with the digest {self.base[:12]}, "
                f"and this one's is {digest[:12]}.",
                hint=f"Its {TRAINING_FILE} says which base that was.",
            )


def find_adapter(folder: str) -> AdapterFolder:
    """The adapter in a folder.

    Raises:
        ConfigError: there is none, it is not whole, no LoRA, or pickled.
    """
    path = Path(folder).expanduser()
    config = _json(path / ADAPTER_CONFIG)
    if config is None and (path / ADAPTER_CONFIG).exists():
        raise ConfigError(f"The adapter {folder!r} cannot be used: its {ADAPTER_CONFIG} cannot be read.", hint=_AGAIN)
    if config is None:
        raise ConfigError(f"There is no adapter in {folder!r}: no {ADAPTER_CONFIG}.", hint=_AGAIN)
    if config.get("peft_type") != "LORA":
        raise ConfigError(f"The adapter {folder!r} is {config.get('peft_type')!r}, and no LoRA.", hint=_AGAIN)
    if not (path / WEIGHTS).is_file():
        pickled = any(path.glob("adapter_model.bin"))
        raise ConfigError(
            f"The adapter {folder!r} {'is pickled, which can run any code' if pickled else 'has no weights'}: there is "
            f"no {WEIGHTS}.",
            hint=_AGAIN,
        )
    base: Any = (_json(path / TRAINING_FILE) or {}).get("base")
    known = cast("Mapping[str, Any]", base).get("digest") if isinstance(base, Mapping) else None
    shape = {name: config[name] for name in FIELDS if config.get(name) is not None}
    return AdapterFolder(path=path, shape=shape, base=known if isinstance(known, str) else None)


def learnt_prompts(folder: Path) -> frozenset[str]:
    """Digests of the prompts that weights or an adapter were trained in; empty where nothing in the folder says so."""
    data: Any = (_json(folder / TRAINING_FILE) or {}).get("data")
    prompts: Any = cast("Mapping[str, Any]", data).get("prompts") if isinstance(data, Mapping) else None
    digests = cast("Mapping[str, Any]", prompts).values() if isinstance(prompts, Mapping) else ()
    return frozenset(str(each) for some in digests if isinstance(some, list) for each in cast("list[object]", some))


def _json(path: Path) -> Mapping[str, Any] | None:
    """The JSON object in a file; None where there is none, or it cannot be read."""
    try:
        if path.stat().st_size > MOST:
            return None
        content: object = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return cast("Mapping[str, Any]", content) if isinstance(content, dict) else None
