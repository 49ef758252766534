"""Trust: who owns a file, and the user's consent to settings and to Python that could do harm.

A settings file is searched from the current folder upwards, so it may be somebody else's. Two rules hold for it:

- A settings file, a store or a folder of prompts that another user owns (neither the caller nor root) is refused.
- A setting that runs a program, loads code, or sends a key to a host other than its provider's needs the user's consent
  once. Consent is kept by a digest of exactly these settings, so a changed setting asks again.

The folder of a run may be a stranger's as well: a Python file that only a run names needs the user's consent, too, and
that is kept by the digest of the file.

Consent is required where a backend is made. A replay makes none, so it asks for no consent.

What the user gives on the command line, in an environment variable or in Python needs no consent. An address on this
machine is a host like any other, since on a shared machine anybody may listen there.

`ASKANCE_TRUST` names digests, and files or folders that are trusted whoever owns them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from askance.errors import AskanceError, ConfigError
from askance.terminal import confirm, echo, has_terminal, printable

VARIABLE = "ASKANCE_TRUST"

PROVIDER_KEYS: Mapping[str, tuple[str, str]] = {
    "ANTHROPIC_API_KEY": ("api.anthropic.com", "anthropic"),
    "AZURE_OPENAI_AD_TOKEN": ("openai.azure.com", "azure_openai"),
    "AZURE_OPENAI_API_KEY": ("openai.azure.com", "azure_openai"),
    "CEREBRAS_API_KEY": ("api.cerebras.ai", "cerebras"),
    "DEEPSEEK_API_KEY": ("api.deepseek.com", "deepseek"),
    "FIREWORKS_API_KEY": ("api.fireworks.ai", "fireworks"),
    "GEMINI_API_KEY": ("generativelanguage.googleapis.com", "google_genai"),
    "GOOGLE_API_KEY": ("generativelanguage.googleapis.com", "google_genai"),
    "GROQ_API_KEY": ("api.groq.com", "groq"),
    "HF_TOKEN": ("router.huggingface.co", "huggingface"),
    "MISTRAL_API_KEY": ("api.mistral.ai", "mistralai"),
    "NVIDIA_API_KEY": ("integrate.api.nvidia.com", "nvidia"),
    "OPENAI_API_KEY": ("api.openai.com", "openai"),
    "OPENROUTER_API_KEY": ("openrouter.ai", "openrouter"),
    "TOGETHER_API_KEY": ("api.together.xyz", "together"),
    "XAI_API_KEY": ("api.x.ai", "xai"),
}
"""By the usual variable of an API key: the provider's host, and LangChain's name of the provider."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_log = logging.getLogger("askance")


# ---- consent -----------------------------------------------------------------------------------------------------


class Effect(NamedTuple):
    """What a setting would do that needs the user's consent."""

    setting: str
    """Its name in the settings file, such as `models.eye.vllm.python`; empty for a Python file."""
    value: tuple[str, ...]
    """Everything that the effect depends on; part of the digest."""
    words: str
    """The effect in words that follow "would": `run the program …`."""

    def __str__(self) -> str:
        return f"{self.words} ({self.setting})" if self.setting else self.words


class Consent(NamedTuple):
    """The consent that the settings of one model in a settings file need, or a Python file that a file names."""

    file: Path
    """The settings file, or the Python file."""
    effects: tuple[Effect, ...]
    source: bytes | None = None
    """Of a Python file its content."""
    named_by: str = ""
    """What names the Python file, such as `the run 'runs/a'`; empty where the user does."""

    @classmethod
    def to_python(cls, file: Path, source: bytes, *, named_by: str = "") -> Consent:
        """The consent to run a Python file.

        Raises:
            ConfigError: it is another user's.
        """
        check_owner(file, "The Python file")
        whole = file.resolve()
        return cls(whole, (Effect("", (), f"run the Python file {str(whole)!r}"),), source, named_by)

    @property
    def digest(self) -> str:
        """sha256 of the settings and their values, not of the file; or of the Python file: 64 hex digits."""
        if self.source is not None:
            return hashlib.sha256(self.source).hexdigest()
        form = [[effect.setting, *effect.value] for effect in self.effects]
        return hashlib.sha256(json.dumps(form).encode()).hexdigest()

    @property
    def given(self) -> bool:
        """Whether the user has agreed, by `ASKANCE_TRUST` or earlier.

        Raises:
            ConfigError: the variable or the file of consents cannot be read.
        """
        return self.digest in _trusted()[0] or _is_trusted(self.file) or self.digest in agreed()

    def require(self) -> None:
        """Raises an error unless the user has agreed.

        Raises:
            ConfigError: it was not given.
        """
        if not self.given:
            raise self._refusal()

    def ask(self) -> None:
        """Asks the user on a terminal, once. Without a terminal nothing is asked, and `require` will refuse.

        Raises:
            ConfigError: the user does not agree.
        """
        if not has_terminal() or self.given:
            return
        echo(f"askance: {self}", err=True)
        if not confirm("Agree, now and from now on?"):
            raise self._refusal()
        agree(self)

    def __str__(self) -> str:
        """The text that the user is asked about, safe to print on a terminal."""
        lines = [f"{self._who} would", *(f"  {effect}" for effect in self.effects)]
        return "\n".join(printable(line).replace("\n", "\\n") for line in lines)

    @property
    def _who(self) -> str:
        """The beginning of a sentence on what would have these effects."""
        if self.source is None:
            return f"The settings file {str(self.file)!r}"
        return f"{self.named_by[:1].upper()}{self.named_by[1:]}" or "A run that names its task"

    def _refusal(self) -> ConfigError:
        if self.source is not None:
            place = shlex.quote(os.path.relpath(self.file))
            return ConfigError(
                f"{self._who} would {self.effects[0]}, and nobody has agreed to that.",
                hint=f"Read it. `askance trust {place}` agrees, as does {VARIABLE}={self.digest}; or name it yourself: "
                f"`--task {place}`.",
            )
        effects = "; ".join(f"{effect.setting!r} would {effect.words}" for effect in self.effects)
        return ConfigError(
            f"Nobody has agreed to what the settings file {str(self.file)!r} says: {effects}.",
            hint=f"`askance trust` shows it and agrees, as does {VARIABLE}={self.digest}. Or mend the file.",
        )


def effects_of(
    place: str, table: Mapping[str, Any], *, provider: str, model: str, endpoint: str | None, built_in: bool = True
) -> tuple[Effect, ...]:
    """The effects of the validated settings `table` of a model that need consent.

    Args:
        place: of the table in its file, such as `models.eye`.
        table: the settings.
        provider: that its spec names.
        model: that its spec names.
        endpoint: address that it is reached at; None is the provider's own.
        built_in: whether askance itself brings the backend of the provider.
    """
    effects = [*_code_effects(table, model=model)]
    if not built_in:
        effects.append(
            Effect("spec", (provider, model), f"ask {model!r} by the backend {provider!r} of another package")
        )
    if provider in {"langchain", "openai"} or endpoint is not None or not built_in:
        effects += _secret_effects(table, provider=provider, model=model, endpoint=endpoint)
    return tuple(Effect(f"{place}.{effect.setting}", effect.value, effect.words) for effect in effects)


def _code_effects(table: Mapping[str, Any], *, model: str) -> Iterator[Effect]:
    """Effects of settings that run a program or load code."""
    for place in ("local", "vllm"):
        # A caller may give settings that are made already; only a settings file's are a table.
        own: Mapping[str, Any] = table[place] if isinstance(table.get(place), Mapping) else {}
        folder = Path(model).expanduser()
        where = str(folder.absolute()) if folder.is_dir() else model
        if python := own.get("python"):
            program = str(Path(python).expanduser().absolute())
            yield Effect(f"{place}.python", (program,), f"run the program {program!r}")
        if own.get("remote_code"):
            yield Effect(f"{place}.remote_code", (where,), f"run Python code that comes with the weights {where!r}")
        if own.get("pickled"):
            yield Effect(f"{place}.pickled", (where,), f"read pickle files of {where!r}, which can run any code")
        if engine := own.get("engine"):
            arguments = json.dumps(engine, sort_keys=True, default=str)
            yield Effect(
                f"{place}.engine", (where, arguments), f"give vLLM's engine arguments that may load code: {arguments}"
            )


def _secret_effects(table: Mapping[str, Any], *, provider: str, model: str, endpoint: str | None) -> Iterator[Effect]:
    """Effects of settings that send the value of an environment variable somewhere."""
    named = {"langchain": f"LangChain's {model.partition(':')[0]!r}", "openai": "OpenAI"}
    to = endpoint or named.get(provider, f"the backend {provider!r}")
    variable = table.get("key_variable") or ("AZURE_OPENAI_API_KEY" if "azure" in table else None)
    setting = "key_variable" if "key_variable" in table else "azure"
    if variable is not None and not _is_providers_own(variable, provider=provider, model=model, endpoint=endpoint):
        yield Effect(setting, (variable, to), f"send what {variable} holds to {to}")
    elif endpoint is not None and variable is None and provider == "openai" and _exposes_openai_key(endpoint):
        yield Effect("spec", ("OPENAI_API_KEY", to), f"send what OPENAI_API_KEY holds to {to}")
    for header, value in table.get("headers", {}).items():
        if value.startswith("env:"):
            held = value.removeprefix("env:")
            yield Effect(f"headers.{header}", (held, to), f"send what {held} holds to {to}")


def _is_providers_own(variable: str, *, provider: str, model: str, endpoint: str | None) -> bool:
    """Whether `variable` is the usual one for an API key of the provider to which it would be sent."""
    host, langchain = PROVIDER_KEYS.get(variable, ("", ""))
    if endpoint is None:
        return langchain != "" and langchain == (model.partition(":")[0] if provider == "langchain" else provider)
    return host != "" and _is_at(endpoint, host)


def _is_at(endpoint: str, host: str) -> bool:
    parts = urlsplit(endpoint)
    hostname = parts.hostname or ""
    return parts.scheme == "https" and parts.port in {None, 443} and (hostname == host or hostname.endswith(f".{host}"))


def _exposes_openai_key(endpoint: str) -> bool:
    """Whether `endpoint` has OpenAI's host, and so gets its key by default, but not its scheme and port."""
    hostname = urlsplit(endpoint).hostname or ""
    return f".{hostname}".endswith(".api.openai.com") and not _is_at(endpoint, "api.openai.com")


# ---- what was agreed to ------------------------------------------------------------------------------------------


def consent_file() -> Path:
    """The file of consents in the user's configuration folder; it need not exist."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    # A relative path would depend on the current folder.
    folder = Path(configured) if Path(configured).is_absolute() else Path.home() / ".config"
    return folder / "askance" / "trusted.json"


def agreed() -> dict[str, Mapping[str, Any]]:
    """All consents by digest: the settings file, its effects, and the time.

    Raises:
        ConfigError: the file cannot be read, or is another user's.
    """
    file = consent_file()
    if not file.exists():
        return {}
    check_owner(file, "The list of what you agreed to,")
    try:
        form: Any = json.loads(file.read_text(encoding="utf-8"))
        return {str(digest): dict(entry) for digest, entry in form["trusted"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"The list of what you agreed to, {str(file)!r}, cannot be read.",
            hint="Remove it; `askance trust` writes it anew.",
        ) from error


def agree(consent: Consent) -> None:
    """Saves the user's consent; of a Python file it stands in the place of that to an earlier content.

    Raises:
        ConfigError: it cannot be written.
    """
    from datetime import UTC, datetime

    entry = {
        "file": str(consent.file),
        "would": [str(effect) for effect in consent.effects],
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    known = agreed()
    if consent.source is not None:
        about = (entry["file"], entry["would"])
        known = {digest: old for digest, old in known.items() if (old.get("file"), old.get("would")) != about}
    _save_consents({**known, consent.digest: entry})


_LEAST_DIGITS = 8
"""By fewer digits at its beginning no consent is taken back: an empty word would take back all."""


def forget(what: str) -> int:
    """Removes consents by digest, by eight digits or more that it begins with, or by file; returns how many there were.

    Raises:
        ConfigError: the list cannot be read or written.
    """
    known = agreed()
    files = {str(Path(what).absolute()), str(Path(what).resolve())} if what else set[str]()
    left = {
        digest: entry
        for digest, entry in known.items()
        if not ((len(what) >= _LEAST_DIGITS and digest.startswith(what)) or files & _places_of(entry))
    }
    if len(left) < len(known):
        _save_consents(left)
    return len(known) - len(left)


def _places_of(entry: Mapping[str, Any]) -> set[str]:
    """The file of a consent, and its folder."""
    file = str(entry.get("file"))
    return {file, str(Path(file).parent)}


def _save_consents(known: Mapping[str, Mapping[str, Any]]) -> None:
    from tempfile import NamedTemporaryFile  # what only reads does not pay for it

    file = consent_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A temporary file is readable by its owner alone, and renaming it is atomic.
        with NamedTemporaryFile("w", dir=file.parent, prefix=".trusted", encoding="utf-8", delete=False) as part:
            json.dump({"trusted": known}, part, indent=2)
        Path(part.name).replace(file)
    except OSError as error:
        raise ConfigError(
            f"What you agreed to cannot be kept in {str(file)!r}: {error.strerror or error}.",
            hint=f"Check the rights to the folder, or set {VARIABLE}.",
        ) from error


def _trusted() -> tuple[frozenset[str], tuple[Path, ...]]:
    """The digests and the paths in `ASKANCE_TRUST`.

    Raises:
        ConfigError: something is neither.
    """
    entries = [entry for entry in os.environ.get(VARIABLE, "").split(os.pathsep) if entry]
    digests = frozenset(entry for entry in entries if _DIGEST.fullmatch(entry))
    paths = tuple(Path(entry).expanduser() for entry in entries if entry not in digests)
    for path in paths:
        if not path.is_absolute():
            raise ConfigError(
                f"{VARIABLE} names {str(path)!r}, which is neither a digest nor an absolute path.",
                hint=f"Give digests of `askance trust`, or absolute paths, with {os.pathsep!r} between them.",
            )
    return digests, paths


def _is_trusted(path: Path) -> bool:
    """Whether `ASKANCE_TRUST` names `path`, or a folder that it is in."""
    return any(path.resolve().is_relative_to(trusted.resolve()) for trusted in _trusted()[1])


# ---- owners ------------------------------------------------------------------------------------------------------


def check_owner(path: Path, what: str, *, kind: type[AskanceError] = ConfigError) -> None:
    """Refuses a file or a folder of another user; a missing one passes, as does any on a system without POSIX owners.

    Args:
        path: the file; of a symbolic link, both the link and its target are checked.
        what: what it is, for the message: `The settings file`.
        kind: the error.

    Raises:
        AskanceError: of the given kind; the file belongs to another user.
    """
    owner = _other_owner(path)
    if owner is None or _is_trusted(path):
        return
    raise kind(
        f"{what} {str(path)!r} belongs to another user ({owner}) and is not used.",
        hint=f"Take it away or make it your own (chown); or, where you trust it, set {VARIABLE}={path}.",
    )


def warn_world_writable(path: Path) -> None:
    """Warns, once, of a folder or file that everybody may write."""
    if hasattr(os, "geteuid") and path not in _warned and _mode(path) & stat.S_IWOTH:
        _warned.add(path)
        _log.warning("Everybody on this machine may change %s. `chmod o-w %s` ends that.", path, path)


_warned: set[Path] = set()


def _other_owner(path: Path) -> str | None:
    """The owner of `path`, where that is neither the caller nor root."""
    if not hasattr(os, "geteuid"):
        return None
    own = {0, os.geteuid()}
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        own.add(int(os.environ["SUDO_UID"]))
    for follow in (False, True):
        try:
            owner = path.stat(follow_symlinks=follow).st_uid
        except OSError:
            continue
        if owner not in own:
            return _name_of(owner)
    return None


def _name_of(owner: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        return 0
