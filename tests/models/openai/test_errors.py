from __future__ import annotations

import inspect
from importlib import import_module

import httpx2
import openai
import pytest

from askance.errors import (
    AuthError,
    BadRequest,
    CallError,
    CallTimeout,
    ContextExceeded,
    Filtered,
    ImagesRejected,
    MalformedReply,
    ModelError,
    ModelNotFound,
    RateLimited,
    ServerFault,
    Truncated,
    Unreachable,
)
from askance.models.vendor_errors import (
    CLASSES,
    MESSAGES,
    ErrorContext,
    ErrorDetails,
    error_details,
    error_of,
    one_line,
    public_address,
    retry_after,
    specific_kind,
    translated_errors,
)

ASKED = ErrorContext(where="https://models.example/v1", model="some-model", key_variable="SOME_KEY")
REQUEST = httpx2.Request("POST", "https://models.example/v1/chat/completions")

EXPECTED: dict[str, type[CallError]] = {
    "APIConnectionError": Unreachable,
    "APIError": ModelError,
    "APIResponseValidationError": MalformedReply,
    "APIStatusError": BadRequest,
    "APITimeoutError": CallTimeout,
    "AuthenticationError": AuthError,
    "BadRequestError": BadRequest,
    "ConflictError": ServerFault,
    "ContentFilterFinishReasonError": Filtered,
    "InternalServerError": ServerFault,
    "LengthFinishReasonError": Truncated,
    "NotFoundError": ModelNotFound,
    "OAuthError": AuthError,
    "OpenAIError": ModelError,
    "PermissionDeniedError": AuthError,
    "RateLimitError": RateLimited,
    "SubjectTokenProviderError": AuthError,
    "UnprocessableEntityError": BadRequest,
    "WebSocketConnectionClosedError": Unreachable,
    "WebSocketQueueFullError": Unreachable,
}


def test_every_class_of_the_sdk_has_its_error() -> None:
    classes = dict(inspect.getmembers(import_module("openai._exceptions"), inspect.isclass))
    names = {name for name, found in classes.items() if issubclass(found, openai.OpenAIError)}
    assert {name: CLASSES.get(name) for name in names} == EXPECTED


def test_every_class_of_the_transport_has_its_error() -> None:
    classes = dict(inspect.getmembers(httpx2, inspect.isclass))
    found = {found for found in classes.values() if issubclass(found, httpx2.HTTPError)}
    assert {each.__name__ for each in found if error_details(each.__new__(each)) is None} == set()


def test_every_error_has_its_words() -> None:
    assert set(CLASSES.values()) <= set(MESSAGES)


def status_error(status: int, message: str = "", **error: object) -> openai.APIStatusError:
    response = httpx2.Response(status, request=REQUEST)
    return openai.APIStatusError(message, response=response, body={"message": message, **error})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (401, AuthError),
        (403, AuthError),
        (405, BadRequest),
        (408, ServerFault),
        (409, ServerFault),
        (413, BadRequest),
        (422, BadRequest),
        (425, ServerFault),
        (429, RateLimited),
        (500, ServerFault),
        (503, ServerFault),
    ],
)
def test_a_status_tells_what_the_class_does_not(status: int, kind: type[CallError]) -> None:
    details = error_details(status_error(status))
    assert details is not None
    assert (details.kind, details.status) == (kind, status)


def test_the_most_specific_class_decides() -> None:
    class Own(openai.APITimeoutError): ...

    details = error_details(Own(REQUEST))
    assert details is not None
    assert details.kind is CallTimeout


def test_a_connection_that_cannot_be_made_in_time_is_unreachable() -> None:
    error = openai.APITimeoutError(REQUEST)
    error.__cause__ = httpx2.ConnectTimeout("")
    details = error_details(error)
    assert details is not None
    assert details.kind is Unreachable


def test_a_bug_of_our_own_passes_through() -> None:
    with pytest.raises(KeyError), translated_errors(ASKED):
        raise KeyError("oh")


def test_the_cause_is_chained() -> None:
    cause = status_error(500, "Out of memory")
    with pytest.raises(ServerFault) as caught, translated_errors(ASKED):
        raise cause
    assert caught.value.__cause__ is cause


def test_the_words_about_a_key_go_no_further() -> None:
    with pytest.raises(AuthError) as caught, translated_errors(ASKED):
        raise status_error(401, "Incorrect API key provided: secret-123")
    error = caught.value
    assert (error.__cause__, error.__suppress_context__) == (None, True)
    assert str(error) == "https://models.example/v1 does not accept the key. Check the key in SOME_KEY."


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("This model's maximum context length is 8192 tokens.", ContextExceeded),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 512.", ContextExceeded),
        ("prompt is too long: 250000 tokens > 200000 maximum", ContextExceeded),
        ("the request exceeds the available context size (4096 tokens)", ContextExceeded),
        ("Input is too long for requested model.", ContextExceeded),
        ("some-model is not a multimodal model", ImagesRejected),
        ("At most 0 image(s) may be provided in one prompt.", ImagesRejected),
        ("Invalid content type. image_url is only supported by certain models.", ImagesRejected),
        ("unknown variant `image_url`, expected `text`", ImagesRejected),
        ("This model does not support image input.", ImagesRejected),
        ("The model does not support image format webp.", BadRequest),
        ("You uploaded an unsupported image. Please make sure your image is valid.", BadRequest),
        ("At most 1 image(s) may be provided in one prompt.", BadRequest),
        ("The model `Qwen2.5-VL` does not exist.", ModelNotFound),
        ("Unsupported value: 'temperature' does not support 0.2 with this model.", BadRequest),
    ],
)
def test_the_words_of_a_bad_request_refine_it(words: str, kind: type[CallError]) -> None:
    assert specific_kind(ErrorDetails(kind=BadRequest, status=400, words=words), images=True) is kind


def test_no_request_without_pictures_has_its_pictures_rejected() -> None:
    details = ErrorDetails(kind=BadRequest, status=400, words="some-model is not a multimodal model")
    assert specific_kind(details, images=False) is BadRequest


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        pytest.param(
            RateLimited,
            {"status": 429, "code": "insufficient_quota", "words": "You exceeded your current quota."},
            "https://models.example/v1 gives no answer (status 429): You exceeded your current quota. "
            "Add credit, or choose another model.",
            id="no quota left",
        ),
        pytest.param(
            ModelNotFound,
            {"status": 404, "words": "Not Found"},
            "https://models.example/v1 rejects the request (status 404): Not Found. "
            "Check the address: that of most servers ends in /v1.",
            id="wrong path",
        ),
        pytest.param(
            Unreachable,
            {"words": "Connection refused"},
            "https://models.example/v1 cannot be reached: Connection refused. "
            "Check the address, the network and any proxy.",
            id="unreachable",
        ),
        pytest.param(
            ServerFault,
            {"status": 502},
            "https://models.example/v1 failed (status 502). Try again later; the server's log may say more.",
            id="without words",
        ),
    ],
)
def test_messages(kind: type[CallError], fields: dict[str, object], message: str) -> None:
    assert str(error_of(ErrorDetails(kind=kind, **fields), ASKED)) == message  # pyright: ignore[reportArgumentType]


def test_an_endpoint_that_gets_no_key_and_wants_one() -> None:
    error = error_of(
        ErrorDetails(kind=AuthError, status=401), ErrorContext(where="http://localhost:8000/v1", model="m")
    )
    assert str(error) == (
        "http://localhost:8000/v1 asks for a key. "
        "Name the environment variable that holds it as `key_variable` in the model's settings."
    )


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({"retry-after": "2"}, 2.0, id="seconds"),
        pytest.param({"retry-after-ms": "1500", "retry-after": "2"}, 1.5, id="milliseconds"),
        pytest.param({"retry-after": "soon"}, None, id="a word"),
        pytest.param({"retry-after": "-3"}, None, id="negative"),
        pytest.param({"retry-after": "nan"}, None, id="not a number"),
        pytest.param({"retry-after": "Fri, 01 Jan 2021 00:00:00 GMT"}, 0.0, id="a moment past"),
        pytest.param({"retry-after": "Fri, 01 Jan 2021 00:00:00 -0000"}, None, id="a moment in no time zone"),
        pytest.param({}, None, id="nothing"),
    ],
)
def test_the_wait_that_an_endpoint_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("a\n  b\tc", "a b c", id="blanks"),
        pytest.param("\x1b[31mred\x00", "\\x1b[31mred\\x00", id="control characters"),
        pytest.param("\u202eabc", "\\u202eabc", id="direction mark"),
        pytest.param("x" * 500, "x" * 299 + "…", id="long"),
    ],
)
def test_words_of_strangers_are_cleaned(text: str, line: str) -> None:
    assert one_line(text) == line


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert public_address("https://me:secret@models.example/v1/?token=1") == "https://models.example/v1"
