"""Folders of models: where they are, whether they are complete, and the identity of their weights. Nothing is loaded.

An identity is made of the weights and of how they are held, not of the folder's path. Its digest covers the names and
contents of all files that can change an answer: weights, configuration, vocabulary, chat template. Digests of weights
are kept in the folder, by size and time of change, so that gigabytes are read once.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.documents import parse_json
from askance.errors import ConfigError, UsageError
from askance.models.local.adapter_folder import ADAPTER_CONFIG, TRAINING_FILE, find_adapter
from askance.models.settings import DTYPES, Local, ModelSettings, Price, family_of_name

if TYPE_CHECKING:
    from askance.chat import JsonObject

REVISION = "main"
"""Of a name on the hub, where none is given."""

SAFE, PICKLED = ".safetensors", ".bin"
"""Endings of files of weights: those that hold data alone, and pickles, which can run any code."""

DIGEST_FILE = ".askance-digests.json"
"""File beside the weights that keeps their digests."""

DIGITS = 32
"""Hex digits of the digest that stand in an identity."""

TIMEOUT = 3600.0
"""Seconds that one answer may take, with the time to load the weights and to wait for a batch."""

_INDEX = ".index.json"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LONGEST_HEADER = 100_000_000
"""Bytes; the format allows no more."""
_COPY_AGAIN = "Copy or download the folder again, whole."
_SMALL_FILES = frozenset({".jinja", ".json", ".model", ".tiktoken", ".txt"})
"""Endings of the files beside the weights that can change an answer."""
_LARGE = 1 << 30
_IDENTITY = re.compile(rf"[\w.-]+:[0-9a-f]{{{DIGITS}}}:\w+(:[\w.-]+)*")

_log = logging.getLogger("askance")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
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
        """Type of number that the weights were saved in, as far as the configuration says."""
        text: Any = self.config.get("text_config")
        for config in (self.config, cast("JsonObject", text if isinstance(text, Mapping) else {})):
            dtype = str(config.get("dtype") or config.get("torch_dtype") or "").removeprefix("torch.")
            if dtype in DTYPES:
                return dtype
        return "float32"

    def dtype_in(self, wanted: str) -> str:
        """Type of number that the weights are held in; `auto` is the one that they were saved in."""
        return self.dtype if wanted == "auto" else wanted


def find_folder(source: str, local: Local, *, provider: str = "hf") -> ModelFolder:
    """The folder that `source`, a path or a name on the hub, stands for.

    Args:
        source: the part of a spec behind the colon.
        local: revision, and whether pickle files are read.
        provider: the part in front of the colon.

    Raises:
        ConfigError: there is none on this machine, or it is no whole model's.
    """
    spec = f"{provider}:{source}"
    path = _path_of(source, local, spec)
    if (path / ADAPTER_CONFIG).is_file() and not (path / "config.json").is_file():
        raise ConfigError(
            f"The folder of {spec!r} holds an adapter, which is a part of a model.",
            hint=f"Name its base: `hf:BASE?adapter={source}`; or write both as one: `askance train lora … --merge`.",
        )
    config = _json(path / "config.json", spec)
    weights = tuple(_weights(path, spec, pickled=local.pickled))
    for file in weights:
        if file.suffix == SAFE:
            _check_whole(file, spec)
    return ModelFolder(path=path, config=config, weights=weights)


def _path_of(source: str, local: Local, spec: str) -> Path:
    path = Path(source).expanduser()
    if path.is_dir():
        return path
    folder = hub_folder(source, local.revision or REVISION)
    if folder is None:
        raise ConfigError(
            f"There is no model {spec!r} on this machine: no such folder, and nothing of that name was downloaded.",
            hint=f"Nothing is downloaded unasked. Give a folder, `{spec.partition(':')[0]}:FOLDER`, or fetch it first: "
            f"`hf download {source if is_hub_name(source) else 'NAME'}`.",
        )
    return folder


# --- the hub's cache, which its own client fills: read here without that client ---


def is_hub_name(source: str) -> bool:
    """Whether `source` has the form of a name on the hub, `model` or `owner/model`."""
    parts = source.split("/")
    return len(parts) <= 2 and all(part and not part.startswith((".", "~")) for part in parts)


def hub_folder(name: str, revision: str) -> Path | None:
    """The folder of the model `name` in the hub's cache; None where that has not this revision."""
    if not is_hub_name(name):
        return None
    repository = hub_repository(name)
    commit = revision
    if not _COMMIT.fullmatch(revision):
        try:
            commit = (repository / "refs" / revision).read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            return None
    snapshot = repository / "snapshots" / commit
    return snapshot if snapshot.is_dir() else None


def hub_repository(name: str) -> Path:
    """The folder of all revisions of the model `name` in the hub's cache."""
    return hub_cache() / f"models--{name.replace('/', '--')}"


def hub_cache() -> Path:
    """Where downloaded models lie, by the variables that the hub's own client reads."""
    cache = os.environ.get("HF_HUB_CACHE")
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(cache or Path(home) / "hub").expanduser()


# --- whether a folder is whole ---


def _weights(path: Path, spec: str, *, pickled: bool) -> Iterator[Path]:
    """The files that hold the weights, each there.

    Raises:
        ConfigError: there are none, or one of them is missing.
    """
    names = sorted(file.name for file in path.iterdir())
    index = next((name for name in names if name == f"model{SAFE}{_INDEX}"), None)
    files = [name for name in names if name.endswith(SAFE) and not name.startswith((".", "adapter_"))]
    if index is None and not files and pickled:
        index = next((name for name in names if name == f"pytorch_model{PICKLED}{_INDEX}"), None)
        files = [name for name in names if name.startswith("pytorch_model") and name.endswith(PICKLED)]
    if index is not None:
        shards: Mapping[str, str] = _json(path / index, spec).get("weight_map", {})
        files = sorted(set(shards.values()))
        missing = [name for name in files if name not in names]
        if missing:
            raise ConfigError(
                f"The model {spec!r} is not whole: {len(missing)} of its {len(files)} files of weights are missing, "
                f"the first is {missing[0]!r}.",
                hint=_COPY_AGAIN,
            )
    if not files and any(name.endswith((PICKLED, ".pt", ".pth")) for name in names):
        raise ConfigError(
            f"The model {spec!r} has its weights in pickle files, which can run any code while they are read.",
            hint="Take one with safetensors files, or allow it for this model: `pickled = true`.",
        )
    if not files:
        raise ConfigError(f"The folder of the model {spec!r} holds no weights in safetensors files.", hint=_COPY_AGAIN)
    yield from (path / name for name in files)


def _check_whole(file: Path, spec: str) -> None:
    """Holds the size of a safetensors file against its header.

    Raises:
        ConfigError: it was cut off, or is no such file.
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
        raise ConfigError(f"The model {spec!r} is not whole: {file.name!r} {shown}.", hint=_COPY_AGAIN)


def _json(path: Path, spec: str) -> JsonObject:
    try:
        content: object = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"The folder of the model {spec!r} has no {path.name!r}.", hint=_COPY_AGAIN) from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The {path.name!r} of the model {spec!r} cannot be read: {error}.", hint=_COPY_AGAIN
        ) from error
    if not isinstance(content, dict):
        raise ConfigError(f"The {path.name!r} of the model {spec!r} is no JSON object.", hint=_COPY_AGAIN)
    return cast("JsonObject", content)


def json_beside(folder: Path, name: str) -> JsonObject:
    """The JSON object in one of a model's optional files; empty where there is no such file, or it holds none."""
    with suppress(OSError, ValueError):
        content = parse_json((folder / name).read_bytes(), finite=False, max_digits=100)
        if isinstance(content, dict):
            return cast("JsonObject", content)
    return {}


# --- identity ---


def identity_of(folder: ModelFolder, local: Local) -> str:
    """`hf:KIND:DIGEST:DTYPE`, and to how many bits the weights are quantized, where they are."""
    quantized = "" if local.bits is None else f":{local.bits}bit"
    return f"hf:{folder.kind}:{digest_of(folder, local)[:DIGITS]}:{folder.dtype_in(local.dtype)}{quantized}"


def is_identity(model: str) -> bool:
    """Whether `model` is an identity without its provider; such a model has records and cannot be asked."""
    return _IDENTITY.fullmatch(model) is not None


def no_weights(spec: str) -> UsageError:
    """The error where a model is asked of which only the identity is known."""
    return UsageError(
        f"The model {spec!r} is known by the digest of its weights alone.",
        hint=f"Name its folder: `{spec.partition(':')[0]}:FOLDER`.",
    )


def with_identity(settings: ModelSettings) -> ModelSettings:
    """`settings` of an `hf:` model with its identity, its family, and its price: none.

    Raises:
        ConfigError: neither a name was given nor is the model on this machine.
    """
    local = settings.local or Local()
    filled = without_cost(replace(settings, local=local))
    if filled.id.name is not None:
        return filled
    if is_identity(filled.id.model):
        return identified(filled, f"hf:{filled.id.model}")
    folder = find_folder(filled.id.model, local)
    return identified(filled, identity_of(folder, local), kind=folder.kind)


def without_cost(settings: ModelSettings) -> ModelSettings:
    """`settings` of a model on the user's own hardware: it costs nothing, and has `TIMEOUT` seconds for an answer."""
    price = settings.price or Price(input=0.0, output=0.0)
    return replace(settings, price=price, timeout=settings.timeout or TIMEOUT)


def identified(settings: ModelSettings, identity: str, *, kind: str | None = None) -> ModelSettings:
    """`settings` with an identity; an architecture tells the family of prompts too, whatever the folder is called."""
    family = settings.family
    if kind is not None:
        family = family or family_of_name(f"{kind} {Path(settings.id.model).name}")
    return replace(settings, id=replace(settings.id, name=identity), family=family)


def digest_of(folder: ModelFolder, local: Local) -> str:
    """sha256 over the names and digests of the files that can change an answer, 64 hex digits.

    That of an adapter is joined.

    Raises:
        ConfigError: the adapter cannot be used, or belongs to another base.
    """
    endings = _SMALL_FILES | {".py"} if local.remote_code else _SMALL_FILES
    small = [file for file in folder.path.iterdir() if file.suffix in endings and not file.name.startswith(".")]
    files = {file.name: file for file in small if file.is_file() and file.name != TRAINING_FILE}
    digests = {name: _sha256(file) for name, file in files.items()} | _digests(folder)
    digest = sha256("".join(f"{name}\n{digest}\n" for name, digest in sorted(digests.items())).encode()).hexdigest()
    if local.adapter is None:
        return digest
    adapter = find_adapter(local.adapter)
    adapter.check_base(digest)
    return sha256(f"{digest}\n{adapter.digest}\n".encode()).hexdigest()


def _digests(folder: ModelFolder) -> dict[str, str]:
    """By name: digests of the weights, from the file beside them where it is up to date."""
    stored, digests = json_beside(folder.path, DIGEST_FILE), dict[str, list[object]]()
    for file in folder.weights:
        state = file.stat()
        mark = [state.st_size, state.st_mtime_ns]
        old = stored.get(file.name)
        if isinstance(old, list) and len(entry := cast("list[object]", old)) == 3 and entry[:2] == mark:
            digests[file.name] = entry
            continue
        if state.st_size > _LARGE:
            _log.info("Taking the digest of %s, %.1f GB, once.", file.name, state.st_size / 1e9)
        digests[file.name] = [*mark, _sha256(file)]
    if digests != stored:
        _keep(folder.path / DIGEST_FILE, digests)
    return {name: str(entry[2]) for name, entry in digests.items()}


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def _keep(path: Path, digests: Mapping[str, list[object]]) -> None:
    """Writes the digests; where the folder cannot be written, the next process works them out again."""
    part = path.with_suffix(".part")
    with suppress(OSError):
        part.write_text(json.dumps(digests), encoding="utf-8")
        part.replace(path)
