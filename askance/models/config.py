"""Settings of models: in `askance.toml`, in the table `[tool.askance]` of `pyproject.toml`, or as keyword arguments.

```toml
vlm = "llava"                 # what `--vlm` and `--llm` are when they are not given
llm = "openai:gpt-4o-mini"
local = "models/smolvlm"      # what `--local` stands for: a folder, or a name on the hub
prompts = "prompts"           # folder of prompts that win over the package's
store = ".askance"            # folder of the records

[models.llava]
spec = "openai:llava-hf/llava-1.5-13b-hf@http://localhost:8000/v1"
identity = "llava-1.5-13b"    # answers are filed under this name wherever the server is
temperature = 0
price = { input = 0.2, output = 0.2 }
```

A file holds the names of environment variables, never a key. `askance.trust` decides which settings need the user's
consent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast, get_args

from askance.chat import Detail, ModelId
from askance.documents import UnreadableDocument, parse_toml
from askance.errors import ConfigError
from askance.images import ImagePolicy, image_policy
from askance.models.settings import DTYPES, OUTPUT_MODES, TOKEN_FIELDS, Azure, Local, ModelSettings, Price, Vllm
from askance.models.spec import BACKENDS, BUILT_IN, IDENTITIES, Spec, checked_endpoint
from askance.python_file import is_python
from askance.registry import import_object, nearest
from askance.replay.address import kind_of
from askance.spec_grammar import SettingReaders, read_settings
from askance.trust import Consent, check_owner, effects_of

TOP_KEYS = ("llm", "local", "models", "prompts", "store", "vlm")
FILE_NAME = "askance.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the settings file says; empty where there is none."""

    path: Path | None = None
    vlm: str | None = None
    llm: str | None = None
    local: str | None = None
    """Folder of a model, or its name on the hub: what `--local` stands for."""
    prompts: Path | None = None
    store: Path | None = None
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """By name: the settings of a model, checked."""
    found: bool = field(default=False, compare=False, repr=False)
    """Whether the file was found by walking up, so that it may be a stranger's."""
    asks: bool = field(default=False, compare=False, repr=False)
    """Whether something may be sent, so that a terminal is asked for the consent that the settings need."""

    @classmethod
    def find(cls, start: Path | None = None, *, asks: bool = False) -> Config:
        """The settings of the project that `start` (here, by default) belongs to.

        Looks upwards from `start` and stops at the project's root, a folder with `.git` or `pyproject.toml`. In one
        folder `askance.toml` goes before `pyproject.toml`.

        Args:
            start: a folder.
            asks: see `Config.asks`.

        Raises:
            ConfigError: the file cannot be read, says something that is not known, or is another user's, as may be a
                folder that it names.
        """
        here = (start or Path.cwd()).absolute()
        for folder in (here, *here.parents):
            own, project = folder / FILE_NAME, folder / "pyproject.toml"
            for file in (own, project):
                if file.is_file():
                    return cls.load(file)._as_found(asks=asks)
            if (folder / ".git").exists():
                break
        return cls()

    @classmethod
    def load(cls, path: Path) -> Config:
        """The settings in the file `path`.

        Raises:
            ConfigError: the file cannot be read or says something that is not known.
        """
        table = _read(path)
        if path.name == "pyproject.toml":
            tool = table.get("tool", {})
            if "askance" not in tool:
                return cls()
            table = tool["askance"]
        return _checked(table, path)

    def _as_found(self, *, asks: bool) -> Config:
        """These settings, whose file nobody has named.

        Raises:
            ConfigError: the file, or a folder that it names, is another user's.
        """
        if self.path is None:
            return self
        check_owner(self.path, "The settings file")
        for name, folder in (("prompts", self.prompts), ("store", self.store)):
            if folder is not None:
                check_owner(folder, f"The folder {name!r} of {self.path.name!r},")
        return replace(self, found=True, asks=asks)

    def consent(self, name: str, changes: Mapping[str, Any]) -> Consent | None:
        """What the user has to agree to before the model called `name` is asked; None where that is nothing.

        Args:
            name: of a model.
            changes: the user's own settings of it, which go before those of the file.
        """
        place = f"models.{name}" if name in self.models else "vlm" if name == self.vlm else "llm"
        chosen = name in {self.vlm, self.llm} and name not in BUILT_IN
        table = self.models.get(name) or ({"spec": name} if chosen else None)
        if not self.found or self.path is None or table is None:
            return None
        whole = {**table, **changes}
        spec = Spec.parse(whole["spec"])
        effects = effects_of(
            place,
            whole,
            provider=spec.provider,
            model=spec.model,
            endpoint=whole.get("base_url", spec.endpoint),
            built_in=spec.provider in BACKENDS.built_in,
        )
        own_host = "base_url" in changes or ("spec" in changes and "base_url" not in table)
        own = {setting for setting in changes if own_host or setting in {"local", "vllm"}}
        effects = tuple(each for each in effects if each.setting.removeprefix(f"{place}.").split(".")[0] not in own)
        return Consent(self.path, effects) if effects else None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else None
        raise ConfigError(
            f"The settings file {str(path)!r} cannot be read: {words or error}.",
            hint="Make it a file of UTF-8 text that you may read, or take it away.",
        ) from error
    except UnreadableDocument as error:
        raise ConfigError(
            f"The settings file {str(path)!r} {error}.",
            hint='Mend that line; texts stand in quotes: vlm = "m".',
        ) from None


def _checked(table: Mapping[str, Any], path: Path) -> Config:
    where = f"{path.name!r}"
    for name in table:
        if name not in TOP_KEYS:
            place = "A model's settings belong into a table `[models.NAME]`. " if name in KEYS else ""
            raise ConfigError(f"{name!r} in {where} is no setting.", hint=place + nearest(name, TOP_KEYS).strip())
    return Config(
        path=path,
        vlm=_role(table, "vlm", where),
        llm=_role(table, "llm", where),
        local=_model_folder(table, path),
        prompts=_folder(table, "prompts", path),
        store=_store(table, path),
        models=_models(table.get("models", {}), where),
    )


def _models(tables: object, where: str) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(tables, Mapping):
        raise ConfigError(f"'models' in {where} is no table.", hint="Write a table `[models.NAME]` for each model.")
    models: dict[str, Mapping[str, Any]] = {}
    for name, table in cast("Mapping[str, object]", tables).items():
        if not isinstance(table, Mapping):
            raise ConfigError(f"'models.{name}' in {where} is no table.", hint=f"Write a table `[models.{name}]`.")
        model = cast("Mapping[str, Any]", table)
        check_table(model, where=f"the model {name!r} in {where}")
        if "spec" not in model:
            raise ConfigError(f"The model {name!r} in {where} has no spec.", hint='Add `spec = "openai:…"`.')
        models[name] = model
    return models


def _optional_text(table: Mapping[str, Any], name: str, where: str) -> str | None:
    value = table.get(name)
    if value is None or (isinstance(value, str) and value):
        return value
    raise ConfigError(f"{name!r} in {where} is {value!r}.", hint="Write a text.")


def _role(table: Mapping[str, Any], name: str, where: str) -> str | None:
    """The model of a role; a file of settings may be somebody else's, and what it names is not run as Python."""
    text = _optional_text(table, name, where)
    if text is not None and is_python(text):
        raise ConfigError(f"{name!r} in {where} names Python: {text!r}.", hint=f"Say it yourself: `--{name} {text}`.")
    return text


def _model_folder(table: Mapping[str, Any], path: Path) -> str | None:
    """What `local` names: a folder, relative to the file's own if there is one, else as it is written."""
    text = _optional_text(table, "local", f"{path.name!r}")
    if text is None:
        return None
    name = text.removeprefix("hf:")
    folder = path.parent / Path(name).expanduser()
    return str(folder) if folder.is_dir() else name


def _folder(table: Mapping[str, Any], name: str, path: Path) -> Path | None:
    """A folder, relative to the file's own."""
    text = _optional_text(table, name, f"{path.name!r}")
    return None if text is None else path.parent / Path(text).expanduser()


def _store(table: Mapping[str, Any], path: Path) -> Path | None:
    """The address of the records, a folder relative to the file's own."""
    text = _optional_text(table, "store", f"{path.name!r}")
    if text is not None and (kind := kind_of(text)) is not None:
        # The file may be a stranger's, who would choose which package is given the records.
        raise ConfigError(
            f"'store' in {path.name!r} names an address of the kind {kind!r}, and a settings file names folders alone.",
            hint="Name it yourself: `--store`, or ASKANCE_STORE. A folder with a colon in its name begins with './'.",
        )
    return None if text is None else path.parent / Path(text).expanduser()


Check = Callable[[Any], bool]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY_LIKE = re.compile(
    r"\b(sk|pk|rk|gsk|xai|hf|ghp|gho|github_pat|glpat|nvapi|pplx|r8|tgp|fw|AIza|AKIA|ya29)[-_.]?[A-Za-z0-9_\-]{16,}"
    r"|\b(Bearer|Basic) +[A-Za-z0-9+/=_\-.]{8,}|\beyJ[A-Za-z0-9_\-]{10,}\.",
)
_SECRET_HEADERS = re.compile(r"authorization|cookie|token|secret|password|(^|[-_])key$", re.IGNORECASE)


def _number(low: float, high: float) -> Check:
    return lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def _integer(low: int) -> Check:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= low


def _one_of(*values: str) -> Check:
    return lambda value: isinstance(value, str) and value in values


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(_is_text(item) for item in cast("list[object]", value))


def _is_headers(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(item, str) for item in cast("Mapping[str, object]", value).values()
    )


def _table(fields: Mapping[str, Check], *, needs: Collection[str] = (), made: type | None = None) -> Check:
    """Fits a table of these fields, those it needs among them; or what has been `made` of one."""

    def fits(value: object) -> bool:
        if made is not None and isinstance(value, made):
            return True
        if not isinstance(value, Mapping):
            return False
        table = cast("Mapping[str, object]", value)
        known = {*needs} <= table.keys() <= fields.keys()
        return known and all(fields[name](item) for name, item in table.items())

    return fits


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


_PRICE: dict[str, Check] = dict.fromkeys(("input", "output", "cached", "batch"), _number(0, 1e9))
_AZURE: dict[str, Check] = dict.fromkeys(("api_version", "deployment"), _is_text)
_LOCAL: dict[str, Check] = {
    "adapter": _is_text,
    "attention": _is_text,
    "batch": _integer(1),
    "bits": lambda value: isinstance(value, int) and value in (4, 8),
    "device": _is_text,
    "dtype": _one_of(*DTYPES),
    "pickled": _is_flag,
    "remote_code": _is_flag,
    "revision": _is_text,
    "share": _is_flag,
}

_VLLM: dict[str, Check] = {
    "batch": _integer(1),
    "cache": _number(0.001, 1e6),
    "context": _integer(1),
    "devices": _integer(1),
    "dtype": _one_of(*DTYPES),
    "engine": _is_table,
    "in_process": _is_flag,
    "memory": _number(0.01, 1),
    "pickled": _is_flag,
    "port": lambda value: _integer(1)(value) and value < 65_536,
    "python": _is_text,
    "quantization": _is_text,
    "remote_code": _is_flag,
    "revision": _is_text,
    "share": _is_flag,
    "start_within": _number(1, 86_400),
}

KEYS: dict[str, tuple[Check, str]] = {
    "api": (_one_of("chat", "responses"), "'chat' or 'responses'"),
    "azure": (_table(_AZURE, needs=("api_version",)), "a table with `api_version` and, if you like, `deployment`"),
    "base_url": (_is_text, "an address such as http://localhost:8000/v1"),
    "detail": (_one_of(*get_args(Detail)), "one of " + ", ".join(map(repr, get_args(Detail)))),
    "effort": (_is_text, "a text such as 'low'"),
    "extra": (_is_table, "a table of fields for the body"),
    "family": (_is_text, "a text such as 'vicuna'"),
    "headers": (_is_headers, "a table of texts; `env:NAME` reads a variable"),
    "idempotency": (_is_flag, "true or false"),
    "identity": (_is_text, "a text"),
    "image_policy": (lambda value: isinstance(value, (str, ImagePolicy)), "'clean' or 'original'"),
    "key_variable": (
        lambda value: isinstance(value, str) and _VARIABLE.fullmatch(value) is not None,
        "the name of an environment variable, never a key",
    ),
    "local": (
        _table(_LOCAL, made=Local),
        (
            "a table with any of `device`, `dtype` (" + ", ".join(map(repr, DTYPES)) + "), `bits` (4 or 8), "
            "`attention`, `revision`, `adapter` (a folder), `batch` (from 1), `share`, `remote_code` and `pickled` "
            "(true or false)"
        ),
    ),
    "logprobs": (_integer(0), "a whole number from 0"),
    "max_tokens": (_integer(1), "a whole number from 1"),
    "price": (
        _table(_PRICE, needs=("input", "output"), made=Price),
        (
            "a table with `input`, `output` and, if you like, `cached`: US dollars for a million tokens; and `batch`, "
            "the part of that which the batch interface costs"
        ),
    ),
    "protocol": (_one_of(*OUTPUT_MODES), "one of " + ", ".join(map(repr, OUTPUT_MODES))),
    "seed": (_integer(-(2**63)), "a whole number"),
    "spec": (_is_text, "a text such as 'openai:gpt-4o'"),
    "stop": (_is_texts, "a list of texts"),
    "temperature": (_number(0, 10), "a number from 0"),
    "timeout": (_number(0.001, 86_400), "a number of seconds"),
    "token_field": (_one_of(*TOKEN_FIELDS), "one of " + ", ".join(map(repr, TOKEN_FIELDS))),
    "top_p": (_number(0, 1), "a number from 0 to 1"),
    "vllm": (
        _table(_VLLM, made=Vllm),
        (
            "a table with any of `in_process`, `share`, `remote_code`, `pickled` (true or false), `python`, `port`, "
            "`dtype` (" + ", ".join(map(repr, DTYPES)) + "), `quantization`, `revision`, `context` (tokens), `memory` "
            "(0.01 to 1), `cache` (GiB), `devices`, `batch`, `start_within` (seconds) and `engine` (a table)"
        ),
    ),
}
"""By name: what a value must satisfy, and how a message words it."""


def _read_as(name: str, kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Makes a reader of a setting in a spec, of the type of its value."""
    fits, wanted = KEYS[name]

    def read(text: str) -> Any:
        with suppress(ValueError):
            if fits(value := kind(text)):
                return value
        raise ValueError(wanted)

    return read


IN_SPEC: SettingReaders = {
    **{name: _read_as(name, float) for name in ("temperature", "timeout", "top_p")},
    **{name: _read_as(name, int) for name in ("logprobs", "max_tokens", "seed")},
    **{name: _read_as(name, str) for name in ("api", "detail", "effort", "family", "image_policy", "protocol")},
}
"""Settings that a spec may have: they send nothing anywhere, run nothing, and file no answer under another name."""


def _adapter(text: str) -> str:
    if not text:
        msg = "a folder that `askance train lora` wrote"
        raise ValueError(msg)
    return text


LOCAL_IN_SPEC: Mapping[str, SettingReaders] = {"hf": {"adapter": _adapter}}
"""By provider, settings of the table `local` that a spec may have as well."""

_SAMPLING = ("temperature", "top_p", "seed", "max_tokens", "logprobs")
_AS_THEY_ARE = ("detail", "family", "protocol", "timeout", "key_variable", "headers", "idempotency", "token_field")


def check_table(table: Mapping[str, Any], *, where: str) -> None:
    """Refuses what is no setting of a model.

    Raises:
        ConfigError: a name is not known, a value does not fit, or something looks like a key; no message repeats a key.
    """
    for text in _texts(table):
        if _KEY_LIKE.search(text):
            raise ConfigError(
                f"A value for {where} looks like a key.",
                hint='Keep it in an environment variable and name that: `key_variable = "MY_KEY"`, or `env:MY_KEY` in '
                "`headers`.",
            )
    for name, value in table.items():
        if name not in KEYS:
            hint = (
                'Keys stay in the environment: `key_variable = "MY_KEY"`.'
                if "key" in name
                else nearest(name, KEYS).strip()
            )
            raise ConfigError(f"{name!r} is no setting of a model ({where}).", hint=hint)
        fits, wanted = KEYS[name]
        if not fits(value):
            shown = "" if name in {"key_variable", "headers"} else f" {value!r}"
            raise ConfigError(f"The value{shown} does not fit {name!r} ({where}).", hint=f"Wanted: {wanted}.")
    for header, value in table.get("headers", {}).items():
        if _SECRET_HEADERS.search(header) and not value.startswith("env:"):
            raise ConfigError(
                f"The header {header!r} holds a secret in the open ({where}).",
                hint="Write `env:NAME` and set that variable.",
            )


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, object]", value).values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in cast("list[object]", value):
            yield from _texts(item)


def settings_from(table: Mapping[str, Any], *, where: str) -> ModelSettings:
    """The settings that `table`, which has a spec, describes.

    Raises:
        ConfigError: see `check_table`; or the spec cannot be used.
    """
    check_table(table, where=where)
    spec = Spec.parse(table["spec"])
    own = LOCAL_IN_SPEC.get(spec.provider, {})
    written = read_settings(spec.settings, {**IN_SPEC, **own}, of=str(replace(spec, settings=())))
    local = {name: written.pop(name) for name in own if name in written}
    _check_local(table.get("local"), spec, own)
    table = {**written, **table, **({"local": _with(table.get("local"), local)} if local else {})}
    endpoint = checked_endpoint(table["base_url"]) if "base_url" in table else spec.endpoint
    name = table.get("identity") or _deployment(spec, endpoint, table)
    model = ModelId(spec.provider, spec.model, endpoint, name, table.get("api", "chat"))
    settings = changed(ModelSettings(id=model), table)
    identify = IDENTITIES.get(spec.provider)
    return settings if identify is None else import_object(identify)(settings)


def _check_local(local: Local | Mapping[str, Any] | None, spec: Spec, own: Collection[str]) -> None:
    """Refuses what a spec of another provider may have, such as an adapter, and what this one's model does not heed.

    Raises:
        ConfigError: the table `local` has such a setting.
    """
    given = asdict(local) if isinstance(local, Local) else local or {}
    for provider, readers in LOCAL_IN_SPEC.items():
        for name in readers:
            if spec.provider in BACKENDS.built_in and name not in own and given.get(name) is not None:
                raise ConfigError(
                    f"The model {str(spec)!r} takes no {name}.", hint=f"Leave {name} out, or name an {provider}: model."
                )


def _with(local: Local | Mapping[str, Any] | None, changes: Mapping[str, Any]) -> Local | Mapping[str, Any]:
    """The table `local` with what a spec says; what the table says itself goes before that."""
    if isinstance(local, Local):
        return replace(local, **{name: value for name, value in changes.items() if getattr(local, name) is None})
    return {**changes, **(local or {})}


def _deployment(spec: Spec, endpoint: str | None, table: Mapping[str, Any]) -> str | None:
    """The name of an Azure deployment, which alone says what model answers."""
    deployment = table.get("azure", {}).get("deployment")
    return None if deployment is None else f"{spec.provider}:{deployment}@{endpoint}"


def changed(settings: ModelSettings, table: Mapping[str, Any]) -> ModelSettings:
    """`settings` with what a checked `table` says besides the model's identity."""
    sampling = {name: table[name] for name in _SAMPLING if name in table}
    if "stop" in table:
        sampling["stop"] = tuple(table["stop"])
    changes = {name: table[name] for name in _AS_THEY_ARE if name in table}
    for name, kind in {"azure": Azure, "local": Local, "vllm": Vllm, "price": Price}.items():
        if name in table:
            changes[name] = table[name] if isinstance(table[name], kind) else kind(**table[name])
    if "image_policy" in table:
        wanted = table["image_policy"]
        changes["image_policy"] = wanted if isinstance(wanted, ImagePolicy) else image_policy(wanted)
    extra = {**settings.extra, **table.get("extra", {})}
    if "effort" in table:
        extra["reasoning_effort"] = table["effort"]
    return replace(settings, sampling=replace(settings.sampling, **sampling), extra=extra, **changes)
