"""Settings files: `askance.toml`, or the table `[tool.askance]` in `pyproject.toml`.

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

A file holds the names of environment variables, never a key. Whose word it is, `askance.trust` says.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from askance.errors import ConfigError
from askance.models.spec import Spec, nearest
from askance.models.table import KEYS, check_table
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
        table = self.models.get(name) or ({"spec": name} if name in {self.vlm, self.llm} else None)
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
        )
        own_host = "base_url" in changes or ("spec" in changes and "base_url" not in table)
        own = {setting for setting in changes if own_host or setting in {"local", "vllm"}}
        effects = tuple(each for each in effects if each.setting.removeprefix(f"{place}.").split(".")[0] not in own)
        return Consent(self.path, effects) if effects else None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else None
        raise ConfigError(
            f"The settings file {str(path)!r} cannot be read: {words or error}.",
            hint="Make it a file of UTF-8 text that you may read, or take it away.",
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"The settings file {str(path)!r} is not TOML: {error}.",
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
        vlm=_text(table, "vlm", where),
        llm=_text(table, "llm", where),
        local=_model_folder(table, path),
        prompts=_folder(table, "prompts", path),
        store=_folder(table, "store", path),
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


def _text(table: Mapping[str, Any], name: str, where: str) -> str | None:
    value = table.get(name)
    if value is None or (isinstance(value, str) and value):
        return value
    raise ConfigError(f"{name!r} in {where} is {value!r}.", hint="Write a text.")


def _model_folder(table: Mapping[str, Any], path: Path) -> str | None:
    """What `local` names: a folder, relative to the file's own if there is one, else as it is written."""
    text = _text(table, "local", f"{path.name!r}")
    if text is None:
        return None
    name = text.removeprefix("hf:")
    folder = path.parent / Path(name).expanduser()
    return str(folder) if folder.is_dir() else name


def _folder(table: Mapping[str, Any], name: str, path: Path) -> Path | None:
    """A folder, relative to the file's own."""
    text = _text(table, name, f"{path.name!r}")
    return None if text is None else path.parent / Path(text).expanduser()
