"""The settings of a model as a settings file or keyword arguments write them: one closed set, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast, get_args

from askance.chat import Detail, ModelId, Sampling
from askance.errors import ConfigError
from askance.images import ImagePolicy, policy
from askance.models.backend import load
from askance.models.settings import DTYPES, RUNGS, TOKEN_FIELDS, Azure, Local, ModelSettings, Price, Vllm
from askance.models.spec import SETTLED, Spec, checked_endpoint, nearest

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


def _is_price(value: object) -> bool:
    if isinstance(value, Price):
        return True
    if not isinstance(value, Mapping):
        return False
    table, number = cast("Mapping[str, object]", value), _number(0, 1e9)
    return {"input", "output"} <= table.keys() <= {"input", "output", "cached", "batch"} and all(
        map(number, table.values())
    )


def _is_azure(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    table = cast("Mapping[str, object]", value)
    return {"api_version"} <= table.keys() <= {"api_version", "deployment"} and all(map(_is_text, table.values()))


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


_LOCAL: dict[str, Check] = {
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


def _is_local(value: object) -> bool:
    if isinstance(value, Local):
        return True
    if not isinstance(value, Mapping):
        return False
    table = cast("Mapping[str, object]", value)
    return table.keys() <= _LOCAL.keys() and all(_LOCAL[name](item) for name, item in table.items())


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


def _is_vllm(value: object) -> bool:
    if isinstance(value, Vllm):
        return True
    if not isinstance(value, Mapping):
        return False
    table = cast("Mapping[str, object]", value)
    return table.keys() <= _VLLM.keys() and all(_VLLM[name](item) for name, item in table.items())


KEYS: dict[str, tuple[Check, str]] = {
    "api": (_one_of("chat", "responses"), "'chat' or 'responses'"),
    "azure": (_is_azure, "a table with `api_version` and, if you like, `deployment`"),
    "base_url": (_is_text, "an address such as http://localhost:8000/v1"),
    "detail": (_one_of(*get_args(Detail)), "one of " + ", ".join(map(repr, get_args(Detail)))),
    "effort": (_is_text, "a text such as 'low'"),
    "extra": (_is_table, "a table of fields for the body"),
    "family": (_is_text, "a text such as 'vicuna'"),
    "headers": (_is_headers, "a table of texts; `env:NAME` reads a variable"),
    "identity": (_is_text, "a text"),
    "image_policy": (lambda value: isinstance(value, (str, ImagePolicy)), "'clean' or 'original'"),
    "key_variable": (
        lambda value: isinstance(value, str) and _VARIABLE.fullmatch(value) is not None,
        "the name of an environment variable, never a key",
    ),
    "local": (
        _is_local,
        (
            "a table with any of `device`, `dtype` (" + ", ".join(map(repr, DTYPES)) + "), `bits` (4 or 8), "
            "`attention`, `revision`, `batch` (from 1), `share`, `remote_code` and `pickled` (true or false)"
        ),
    ),
    "logprobs": (_integer(0), "a whole number from 0"),
    "max_tokens": (_integer(1), "a whole number from 1"),
    "price": (
        _is_price,
        (
            "a table with `input`, `output` and, if you like, `cached`: US dollars for a million tokens; and `batch`, "
            "the part of that which the batch interface costs"
        ),
    ),
    "protocol": (_one_of(*RUNGS), "one of " + ", ".join(map(repr, RUNGS))),
    "seed": (_integer(-(2**63)), "a whole number"),
    "spec": (_is_text, "a text such as 'openai:gpt-4o'"),
    "stop": (_is_texts, "a list of texts"),
    "temperature": (_number(0, 10), "a number from 0"),
    "timeout": (_number(0.001, 86_400), "a number of seconds"),
    "token_field": (_one_of(*TOKEN_FIELDS), "one of " + ", ".join(map(repr, TOKEN_FIELDS))),
    "top_p": (_number(0, 1), "a number from 0 to 1"),
    "vllm": (
        _is_vllm,
        (
            "a table with any of `in_process`, `share`, `remote_code`, `pickled` (true or false), `python`, `port`, "
            "`dtype` (" + ", ".join(map(repr, DTYPES)) + "), `quantization`, `revision`, `context` (tokens), `memory` "
            "(0.01 to 1), `cache` (GiB), `devices`, `batch`, `start_within` (seconds) and `engine` (a table)"
        ),
    ),
}
"""By name: what a value must satisfy, and the same in words."""

_SAMPLING = ("temperature", "top_p", "seed", "max_tokens", "logprobs")
_AS_THEY_ARE = ("detail", "family", "protocol", "timeout", "key_variable", "headers", "token_field")


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
    endpoint = checked_endpoint(table["base_url"]) if "base_url" in table else spec.endpoint
    name = table.get("identity") or _deployment(spec, endpoint, table)
    model = ModelId(spec.provider, spec.model, endpoint, name, table.get("api", "chat"))
    settings = changed(ModelSettings(id=model), table)
    settle = SETTLED.get(spec.provider)
    return settings if settle is None else load(settle)(settings)


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
    if "azure" in table:
        changes["azure"] = Azure(**table["azure"])
    if "local" in table:
        local = table["local"]
        changes["local"] = local if isinstance(local, Local) else Local(**local)
    if "vllm" in table:
        vllm = table["vllm"]
        changes["vllm"] = vllm if isinstance(vllm, Vllm) else Vllm(**vllm)
    if "price" in table:
        price = table["price"]
        changes["price"] = price if isinstance(price, Price) else Price(**price)
    if "image_policy" in table:
        wanted = table["image_policy"]
        changes["image_policy"] = wanted if isinstance(wanted, ImagePolicy) else policy(wanted)
    extra = {**settings.extra, **table.get("extra", {})}
    if "effort" in table:
        extra["reasoning_effort"] = table["effort"]
    return replace(settings, sampling=_resampled(settings.sampling, sampling), extra=extra, **changes)


def _resampled(sampling: Sampling, changes: Mapping[str, Any]) -> Sampling:
    return replace(sampling, **changes)
