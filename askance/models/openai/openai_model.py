"""The backend for OpenAI and everything that speaks its protocol, on the official client."""

from __future__ import annotations

import json
from dataclasses import replace
from difflib import get_close_matches
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from askance.chat import CallMeta, ChatResponse, Message, ModelId, Sampling, TextPart
from askance.errors import BadRequest, Filtered, MalformedReply, ModelNotFound, Unreachable
from askance.models.headers import limit_headers
from askance.models.image_data import ImageEncoder
from askance.models.likelihood import end_of_prompt, not_offered
from askance.models.openai.chat_completions import prompt_logprobs
from askance.models.openai.client import build_client, http_client, is_own, key_variable, secrets_of
from askance.models.openai.dialect import PATHS, Dialect, from_body, to_body
from askance.models.openai.transport import LARGEST_REPLY, TOO_LARGE
from askance.models.replies import clean_text, items, mapping, parse_reply, part_of
from askance.models.secrets import Secrets
from askance.models.settings import ModelSettings
from askance.models.vendor_errors import (
    ErrorContext,
    ErrorDetails,
    body_error,
    error_details,
    error_of,
    public_address,
    translated_errors,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openai import AsyncOpenAI, RequestOptions

    from askance.chat import ChatRequest, JsonObject
    from askance.models.image_data import EncodeImage
    from askance.models.openai.dialect import Api
    from askance.models.settings import TokenField

LIST_TIMEOUT = 2.0
"""Seconds for the list of models that a message about an unknown model quotes."""

_SECURITY: RequestOptions = {"security": {"bearer_auth": True}, "follow_redirects": False}
"""Requests carry the model's key, as those of the client's own methods do, never an administrator's key. Redirects are
not followed: pictures and secret headers would go with them."""


_WEIGHED: JsonObject = {"prompt_logprobs": 0, "add_generation_prompt": False, "continue_final_message": True}
"""Fields of vLLM's server beyond the protocol: the prompt ends with the text of its last turn, and is weighed."""


class OpenAIModel:
    """A model behind an OpenAI-compatible endpoint, on a ready client.

    It posts JSON through the client, so that the client's authentication, hooks, proxies and transport apply. It reads
    the reply itself, since checking replies against the SDK's types takes more time than all else. Make the client with
    `max_retries=0`, or it makes several calls of each try.

    Args:
        client: of the `openai` package; `AsyncAzureOpenAI` is one too.
        model: the model's name at the endpoint.
        api: `chat` for chat completions, `responses` for the responses API.
        token_field: name under which the endpoint takes the token limit; None is `max_completion_tokens` at OpenAI and
            `max_tokens` elsewhere, until the endpoint asks for the other.
        key_variable: name of the variable that the client's key came from, for messages.
        secrets: what is blanked out of replies; None is the client's key.
        idempotency: see `ModelSettings`.
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        model: str,
        *,
        api: Api = "chat",
        token_field: TokenField | None = None,
        key_variable: str | None = None,
        secrets: Secrets | None = None,
        idempotency: bool = False,
    ) -> None:
        address = public_address(str(client.base_url))
        own = is_own(address)
        self.id = ModelId("openai", model, None if own else address, api=api)
        self._client = client
        self._secrets = Secrets((client.api_key,)) if secrets is None else secrets
        self._context = ErrorContext(where=address, model=model, key_variable=key_variable, secrets=self._secrets)
        self._dialect = Dialect(token_field or ("max_completion_tokens" if own else "max_tokens"))
        self._idempotency = idempotency
        self._images = ImageEncoder()
        self._served: list[str] | None = None
        self._weighs_nothing: str | None = None
        """Why the endpoint weighs no given text; None while it may."""
        self.shape: Callable[[ChatRequest, JsonObject], JsonObject] | None = None
        """Changes each body before it is sent, for a server that takes more than the protocol has."""

    @property
    def noticed(self) -> JsonObject:
        """What the endpoint's error messages taught: `token_field`, and `without` (rejected sampling fields).

        Later requests are sent in that form; their keys stay as they were.
        """
        return self._dialect.noticed

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer to `request`, which is sent under this model's own name.

        Raises:
            CallError: the call ended without an answer.
            BadImage: a picture cannot be used.
            ConfigError: the API has no such parameter.
        """
        return await self._answer(request, lambda reply: from_body(reply, api=self.id.api))

    async def likelihood(self, request: ChatRequest) -> ChatResponse:
        """How likely the text `request.given` is; see `askance.models.likelihood`.

        It is asked for as vLLM's server has it: the text is a last turn of the assistant that is left open, and
        `prompt_logprobs` gives the log-probability of every token of the prompt. A server that does not know these
        fields is asked once.

        Raises:
            CallError: the call ended without an answer.
            BadImage: a picture cannot be used.
        """
        if self._weighs_nothing is None and (self.id.api != "chat" or self.id.endpoint is None):
            self._weighs_nothing = "this API weighs no given text"
        if self._weighs_nothing is not None:
            return not_offered(self._weighs_nothing)
        given = request.given or ""
        turn = Message("assistant", (TextPart(given),))
        whole = replace(request, messages=(*request.messages, turn), given=None, sampling=Sampling(max_tokens=1))

        def read(reply: Mapping[str, Any]) -> ChatResponse:
            prompt = prompt_logprobs(reply.get("prompt_logprobs"))
            if prompt is None:
                self._weighs_nothing = f"the server at {self._context.where} weighs no given text"
                return not_offered(self._weighs_nothing)
            tokens = end_of_prompt(prompt, given)
            if tokens is None:
                return not_offered("the server's prompt does not end with the given text")
            about = from_body(reply, api=self.id.api)
            return ChatResponse(usage=about.usage, model=about.model, logprobs=tokens)

        try:
            return await self._answer(whole, read, more=_WEIGHED)
        except BadRequest as error:
            if not any(name in str(error) for name in _WEIGHED):
                raise
            self._weighs_nothing = f"the server at {self._context.where} weighs no given text"
            return not_offered(self._weighs_nothing)

    async def _answer(
        self,
        request: ChatRequest,
        read: Callable[[Mapping[str, Any]], ChatResponse],
        *,
        more: Mapping[str, Any] | None = None,
    ) -> ChatResponse:
        """What `read` makes of the reply; `more` are further fields of the body."""
        encode = await self._images.encoder(request.images)
        context = replace(self._context, images=bool(request.images))
        try:
            with translated_errors(context):
                data, headers = await self._exchange(request, encode, more or {})
                return replace(_response(data, read, context=context, headers=headers), meta=CallMeta(headers=headers))
        except Filtered as error:
            # A filter that stops the request is an outcome, and is recorded as one that stops the answer.
            return ChatResponse(finish="content_filter", meta=CallMeta(headers=error.headers))
        except ModelNotFound as error:
            error.hint = await self._nearest() or error.hint
            raise

    async def listed(self) -> list[JsonObject]:
        """The models that the endpoint says it serves, as it describes them; empty where it does not say."""
        import httpx2

        try:
            response = await self._client.get(
                "/models", cast_to=httpx2.Response, options={**_SECURITY, "timeout": LIST_TIMEOUT}
            )
            entries = items(mapping(parse_reply(self._secrets.blanked(response.content)), "body").get("data"), "data")
            return [dict(mapping(entry, "model")) for entry in entries]
        except Exception:  # noqa: BLE001  # the list is for a hint or a check: no error is raised for it
            return []

    async def aclose(self) -> None:
        """Closes the client."""
        await self._client.close()

    def __repr__(self) -> str:
        return f"OpenAIModel({self.id.model!r}, at {self._context.where!r})"

    async def _exchange(
        self, request: ChatRequest, encode: EncodeImage, more: Mapping[str, Any]
    ) -> tuple[bytes, Mapping[str, str]]:
        """The reply, and what its headers say about limits.

        A request that is rejected for its form alone is sent again at once in the form that is taken.
        """
        key = request.key if self._idempotency else None
        while True:
            body = to_body(request, encode, api=self.id.api, model=self.id.model, dialect=self._dialect)
            if self.shape is not None:
                body = self.shape(request, body)
            body |= more
            try:
                return await self._post(PATHS[self.id.api], body, key)
            except Exception as cause:
                details = error_details(cause, clear=self._secrets.cleared)
                if details is None or not self._dialect.learn(details, body):
                    raise
                self._dialect.warn(str(self.id))

    async def _post(self, path: str, body: JsonObject, key: str | None) -> tuple[bytes, Mapping[str, str]]:
        import httpx2
        from openai import AsyncAzureOpenAI, AsyncStream

        # The client for Azure finds the deployment in the body, and so has to see it.
        content: Any = {"body": body} if isinstance(self._client, AsyncAzureOpenAI) else {"content": _json_bytes(body)}
        options: RequestOptions = _SECURITY
        if key is not None:  # a request in another form is another body, and needs another key
            form = sha256(_json_bytes(body)).hexdigest()[:8]
            options = {**_SECURITY, "headers": {"Idempotency-Key": f"{key}.{form}"}}
        response: Any = await self._client.post(
            path, cast_to=httpx2.Response, options=options, stream=True, stream_cls=AsyncStream[Any], **content
        )
        try:
            limits = self._secrets.cleared(limit_headers(response.headers))
            return self._secrets.blanked(await _limited(response, self._context)), limits
        finally:
            await response.aclose()

    async def _nearest(self) -> str | None:
        """A hint with the nearest names of models that the endpoint serves; the list is fetched once."""
        if self._served is None:
            self._served = sorted(clean_text(part_of(model, "id")) for model in await self.listed())
        close = get_close_matches(self.id.model, self._served, n=3, cutoff=0.4) or self._served[:3]
        return f"It serves {', '.join(map(repr, close))}." if close else None


def _response(
    data: bytes,
    read: Callable[[Mapping[str, Any]], ChatResponse],
    *,
    context: ErrorContext,
    headers: Mapping[str, str],
) -> ChatResponse:
    try:
        reply = mapping(parse_reply(data), "body")
        details = body_error(reply)
        if details is None:
            return read(reply)
    except MalformedReply as error:
        raise _malformed(error.message, context, kind=type(error)) from error
    refused = error_of(details, context)
    refused.headers = headers
    raise refused


def from_settings(settings: ModelSettings) -> OpenAIModel:
    """The model that `settings` describes, on a client made for it.

    Raises:
        AuthError: the key's variable is not set.
        ConfigError: a header's variable is not set, or an Azure model has no address.
    """
    azure = settings.azure
    return OpenAIModel(
        build_client(settings),
        (azure.deployment if azure is not None else None) or settings.id.model,
        api=settings.id.api,
        token_field=settings.token_field,
        key_variable=key_variable(settings),
        secrets=secrets_of(settings),
        idempotency=settings.idempotency,
    )


def at_loopback(model: str, address: str, *, key: str) -> OpenAIModel:
    """The model `model` of a server that this process has started with `key`."""
    settings = ModelSettings(id=ModelId("openai", model, address))
    own = Secrets((key,))
    http = http_client(settings, secrets=own, direct=True)
    return OpenAIModel(build_client(settings, http, key=key), model, secrets=own)


def _json_bytes(body: JsonObject) -> bytes:
    """`body` as JSON in UTF-8; in ASCII where it holds half a surrogate pair, which UTF-8 cannot hold."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


async def _limited(response: Any, context: ErrorContext) -> bytes:
    """The body of an open response.

    Raises:
        MalformedReply: it is too large, or ends before it is whole.
    """
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in response.aiter_bytes():
            chunks.append(chunk)
            size += len(chunk)
            if size > LARGEST_REPLY:
                raise MalformedReply(TOO_LARGE)
    except MalformedReply as error:
        raise _malformed(error.message, context) from error
    except Exception as cause:
        details = error_details(cause, clear=context.secrets.cleared)
        if details is not None and details.kind is Unreachable:
            raise _malformed(f"it breaks off ({details.words})", context) from cause
        raise
    return b"".join(chunks)


def _malformed(words: str, context: ErrorContext, *, kind: type[MalformedReply] = MalformedReply) -> Exception:
    return error_of(ErrorDetails(kind=kind, words=words), context)
