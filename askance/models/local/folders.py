"""Folders of models: where they are, whether they are whole, and what their configuration says. Nothing is loaded."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.errors import ConfigError
from askance.models.settings import DTYPES, Local

if TYPE_CHECKING:
    from askance.chat import JsonObject

REVISION = "main"
"""Of a name on the hub, where none is given."""

SAFE, PICKLED = ".safetensors", ".bin"
"""Endings of files of weights: data alone, and what is unpickled and can run any code."""

_INDEX = ".index.json"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LONGEST_HEADER = 100_000_000
"""Bytes; the format allows no more."""
_WHOLE = "Copy or download the folder again, whole."


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A model's folder with all its weights."""

    path: Path
    config: JsonObject
    weights: tuple[Path, ...]
    """Files that hold them, in order of their names."""

    @property
    def kind(self) -> str:
        """The architecture's name, such as `llava`."""
        return str(self.config.get("model_type", "unknown"))

    @property
    def dtype(self) -> str:
        """Numbers that the weights were saved in, as far as the configuration says."""
        text: Any = self.config.get("text_config")
        for config in (self.config, cast("JsonObject", text if isinstance(text, Mapping) else {})):
            said = str(config.get("dtype") or config.get("torch_dtype") or "").removeprefix("torch.")
            if said in DTYPES:
                return said
        return "float32"


def find_folder(source: str, local: Local, *, provider: str = "hf") -> Folder:
    """The folder that `source`, a path or a name on the hub, stands for.

    Args:
        source: what stands behind the colon of a spec.
        local: revision, and whether pickle files are read.
        provider: what stands in front of it.

    Raises:
        ConfigError: there is none on this machine, or it is no whole model's.
    """
    spec = f"{provider}:{source}"
    path = _on_this_machine(source, local, spec)
    config = _json(path / "config.json", spec)
    weights = tuple(_weights(path, spec, pickled=local.pickled))
    for file in weights:
        if file.suffix == SAFE:
            _check_whole(file, spec)
    return Folder(path=path, config=config, weights=weights)


def _on_this_machine(source: str, local: Local, spec: str) -> Path:
    path = Path(source).expanduser()
    if path.is_dir():
        return path
    found = hub_folder(source, local.revision or REVISION)
    if found is None:
        raise ConfigError(
            f"There is no model {spec!r} on this machine: no such folder, and nothing of that name was downloaded.",
            hint=f"Nothing is downloaded unasked. Give a folder, `{spec.partition(':')[0]}:FOLDER`, or fetch it first: "
            f"`hf download {source if _is_name(source) else 'NAME'}`.",
        )
    return found


def _is_name(source: str) -> bool:
    parts = source.split("/")
    return len(parts) <= 2 and all(part and not part.startswith((".", "~")) for part in parts)


def hub_folder(name: str, revision: str) -> Path | None:
    """The folder of the model `name` in the hub's own cache; None where that has not this revision."""
    if not _is_name(name):
        return None
    repository = hub_cache() / f"models--{name.replace('/', '--')}"
    commit = revision
    if not _COMMIT.fullmatch(revision):
        try:
            commit = (repository / "refs" / revision).read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            return None
    found = repository / "snapshots" / commit
    return found if found.is_dir() else None


def hub_cache() -> Path:
    """Where models that were downloaded lie, by the variables that the hub's own client reads."""
    given = os.environ.get("HF_HUB_CACHE")
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(given or Path(home) / "hub").expanduser()


def _weights(path: Path, spec: str, *, pickled: bool) -> Iterator[Path]:
    """The files that hold the weights, each there.

    Raises:
        ConfigError: there are none, or one of them is missing.
    """
    names = sorted(file.name for file in path.iterdir())
    index = next((name for name in names if name == f"model{SAFE}{_INDEX}"), None)
    safe = [name for name in names if name.endswith(SAFE) and not name.startswith((".", "adapter_"))]
    if index is None and not safe and pickled:
        index = next((name for name in names if name == f"pytorch_model{PICKLED}{_INDEX}"), None)
        safe = [name for name in names if name.startswith("pytorch_model") and name.endswith(PICKLED)]
    if index is not None:
        shards: Mapping[str, str] = _json(path / index, spec).get("weight_map", {})
        missing = sorted(set(shards.values()) - set(names))
        if missing:
            raise ConfigError(
                f"The model {spec!r} is not whole: {len(missing)} of its {len(set(shards.values()))} files of "
                f"weights are missing, the first is {missing[0]!r}.",
                hint=_WHOLE,
            )
        safe = sorted(set(shards.values()))
    if not safe:
        _refuse(names, spec)
    yield from (path / name for name in safe)


def _refuse(names: list[str], spec: str) -> None:
    if any(name.endswith((PICKLED, ".pt", ".pth")) for name in names):
        raise ConfigError(
            f"The model {spec!r} has its weights in pickle files, which can run any code while they are read.",
            hint="Take one with safetensors files, or allow it for this model: `pickled = true`.",
        )
    raise ConfigError(f"The folder of the model {spec!r} holds no weights in safetensors files.", hint=_WHOLE)


def _check_whole(file: Path, spec: str) -> None:
    """Holds the size of a safetensors file against its header.

    Raises:
        ConfigError: it was cut off, or is none.
    """
    size = file.stat().st_size
    try:
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            header: JsonObject = json.loads(opened.read(length)) if 8 + length <= size else {}
        ends = [int(entry["data_offsets"][1]) for name, entry in header.items() if name != "__metadata__"]
        wanted = 8 + length + max(ends, default=0) if length <= _LONGEST_HEADER else -1
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        wanted = -1
    if wanted != size:
        shown = "is no safetensors file" if wanted < 0 else f"holds {size:,} of {wanted:,} bytes"
        raise ConfigError(f"The model {spec!r} is not whole: {file.name!r} {shown}.", hint=_WHOLE)


def _json(path: Path, spec: str) -> JsonObject:
    try:
        found: object = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"The folder of the model {spec!r} has no {path.name!r}.", hint=_WHOLE) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"The {path.name!r} of the model {spec!r} cannot be read: {error}.", hint=_WHOLE) from error
    if not isinstance(found, dict):
        raise ConfigError(f"The {path.name!r} of the model {spec!r} is no JSON object.", hint=_WHOLE)
    return cast("JsonObject", found)
