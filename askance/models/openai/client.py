"""The official client, made from settings.

The SDK does not retry, and has no time limit but for connecting: retry and time limits stand around the backend. Keys
go from the environment straight into the SDK. `OPENAI_API_KEY` and the SDK's other variables for OpenAI (organization,
project, headers) are for OpenAI alone: any other endpoint gets the key in the variable that `key_variable` names, or
none. `OPENAI_BASE_URL` is not read: a model's address is part of what its answers are filed under, so it stands in the
spec. Proxies are those of `HTTPS_PROXY` and its like.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from askance.errors import AuthError, ConfigError
from askance.models.openai.transport import PACKINGS, bounding, client_class, transport
from askance.models.secrets import HiddenValues, Secrets, named_variables

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Timeout
    from openai import AsyncOpenAI

    from askance.models.settings import ModelSettings

OPENAI = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
AZURE_KEY = "AZURE_OPENAI_API_KEY"
AZURE_VARIABLES = (AZURE_KEY, "AZURE_OPENAI_AD_TOKEN")

NO_KEY = "none"
"""Sent as the key where there is none, since the SDK wants one."""

CONNECT_TIMEOUT = 10.0
"""Seconds for a connection; without this limit an address that drops all packets looks like a slow model."""

LOCAL_EXAMPLE = "openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1"


def http_client(settings: ModelSettings, *, secrets: Secrets | None = None, direct: bool = False) -> AsyncClient:
    """The HTTP client for the endpoint that `settings` names; opens no connection.

    Args:
        settings: of the model.
        secrets: what is blanked out of error messages; None is what `settings` say is sent.
        direct: use no proxy.
    """
    return client_class()(
        timeout=_timeout(),
        headers={"Accept-Encoding": PACKINGS},
        follow_redirects=False,
        event_hooks={"response": [bounding(secrets_of(settings) if secrets is None else secrets)]},
        transport=transport() if direct else None,
    )


def build_client(settings: ModelSettings, http: AsyncClient | None = None, *, key: str | None = None) -> AsyncOpenAI:
    """The client for the endpoint that `settings` names; opens no connection.

    Args:
        settings: of the model.
        http: its HTTP client; None makes one.
        key: for an endpoint of one's own, where no variable holds it.

    Raises:
        AuthError: the key's variable is not set.
        ConfigError: a header's variable is not set, or an Azure model has no address.
    """
    from openai import AsyncOpenAI

    headers = resolved(settings.headers)
    common: dict[str, Any] = {
        "max_retries": 0,
        "timeout": _timeout(),
        "http_client": http_client(settings) if http is None else http,
    }
    if settings.azure is not None:
        return _azure(settings, headers, common)
    if is_own(settings.id.endpoint):
        variable = settings.key_variable or OPENAI_KEY
        _require_key(settings, headers, (variable,))
        return AsyncOpenAI(
            base_url=settings.id.endpoint or OPENAI,
            # Read where it is used, here and below: a key in a variable would stand in a traceback that shows them.
            api_key=os.environ.get(variable) or NO_KEY,
            default_headers=headers,
            **common,
        )
    if settings.key_variable is not None:
        _require_key(settings, headers, (settings.key_variable,))
    return AsyncOpenAI(
        base_url=settings.id.endpoint,
        api_key=key or os.environ.get(settings.key_variable or "") or NO_KEY,
        # Set here, because the SDK lets `OPENAI_CUSTOM_HEADERS` overrule the key otherwise.
        default_headers=HiddenValues(
            _withheld()
            | {"Authorization": f"Bearer {key or os.environ.get(settings.key_variable or '') or NO_KEY}"}
            | headers
        ),
        **common,
    )


def _timeout() -> Timeout:
    from httpx2 import Timeout

    return Timeout(None, connect=CONNECT_TIMEOUT)


def is_own(endpoint: str | None) -> bool:
    """Whether the endpoint is OpenAI's."""
    host = urlsplit(endpoint).hostname if endpoint else "api.openai.com"
    return host is not None and (host == "api.openai.com" or host.endswith(".api.openai.com"))


def key_variable(settings: ModelSettings) -> str | None:
    """Name of the variable that the key is read from; None where no key is sent."""
    if settings.key_variable is not None:
        return settings.key_variable
    if settings.azure is not None:
        return AZURE_KEY
    return OPENAI_KEY if is_own(settings.id.endpoint) else None


def secrets_of(settings: ModelSettings) -> Secrets:
    """The keys and secret headers that the client sends, to be blanked out of replies."""
    variables = (AZURE_VARIABLES if settings.azure is not None else ()) + (key_variable(settings) or "",)
    return Secrets({os.environ.get(name, "") for name in (*variables, *named_variables(settings))})


def resolved(headers: Mapping[str, str]) -> HiddenValues:
    """The headers, with each `env:NAME` replaced by what the variable holds; no traceback with variables shows them.

    Raises:
        ConfigError: a variable is not set, or a value holds what no header can.
    """
    values = HiddenValues()
    for name, value in headers.items():
        variable = value.removeprefix("env:")
        if value.startswith("env:") and not os.environ.get(variable):
            raise ConfigError(f"The header {name!r} is read from {variable}, which is not set.", hint="Set it.")
        values[name] = os.environ[variable] if value.startswith("env:") else value
        if not (values[name].isascii() and values[name].isprintable()):
            raise ConfigError(
                f"The value of the header {name!r} holds a line end or another character that no header can.",
                hint="Write it in printable ASCII.",
            )
    return values


def _azure(settings: ModelSettings, headers: Mapping[str, str], common: Mapping[str, Any]) -> AsyncOpenAI:
    from openai import AsyncAzureOpenAI

    azure = settings.azure
    if azure is None or settings.id.endpoint is None:
        raise ConfigError(
            f"The Azure model {str(settings.id)!r} has no address.",
            hint="Write openai:MODEL@https://RESOURCE.openai.azure.com.",
        )
    _require_key(settings, headers, (settings.key_variable,) if settings.key_variable else AZURE_VARIABLES)
    return AsyncAzureOpenAI(
        azure_endpoint=settings.id.endpoint,
        azure_deployment=azure.deployment or settings.id.model,
        api_version=azure.api_version,
        # None lets the SDK read its own variables, a token of Entra ID among them.
        api_key=os.environ.get(settings.key_variable) if settings.key_variable else None,
        default_headers=HiddenValues({**_withheld(), **headers}),
        **common,
    )


def _require_key(settings: ModelSettings, headers: Mapping[str, str], variables: tuple[str, ...]) -> None:
    """Makes sure that there is a key, before anything is sent.

    Raises:
        AuthError: none of `variables` is set and no header authorizes.
    """
    if any(os.environ.get(variable) for variable in variables) or "authorization" in map(str.lower, headers):
        return
    raise AuthError(
        f"There is no key for {str(settings.id)!r}: set {' or '.join(variables)}.",
        hint=f"Or use a server of your own, such as {LOCAL_EXAMPLE}.",
    )


def _withheld() -> dict[str, Any]:
    """Headers that tell the SDK to leave out those from the environment, which are for OpenAI alone."""
    from openai import omit

    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    names = {"OpenAI-Organization", "OpenAI-Project", *(line.partition(":")[0].strip() for line in lines)}
    return {name: omit for name in names if name and name.lower() != "authorization"}
