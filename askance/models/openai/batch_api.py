"""The batch interface of OpenAI and of what speaks its protocol: files and batches, on the official client.

Each request is made once; the caller decides what is asked again. Replies are not trusted: their size is limited, and
one of another shape is refused.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.errors import BadRequest, MalformedReply, UsageError
from askance.models.openai.client import PACKINGS, build_client, key_variable, secrets_of
from askance.models.openai.transport import bounding, clear_head, client_class
from askance.models.replies import clean_text, count, items, mapping, parse_reply, part_of
from askance.models.vendor_errors import (
    ErrorContext,
    ErrorDetails,
    error_of,
    one_line,
    public_address,
    translated_errors,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from askance.chat import JsonObject
    from askance.models.secrets import Secrets
    from askance.models.settings import ModelSettings

PART_FIELD = "askance_part"
"""Field of a batch's metadata that holds the id of its part, so that it is found again."""

ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
"""States in which a batch stays."""

LARGEST_FILE = 2 * 2**30
"""Most bytes of an output or error file."""

LARGEST_PAGE = 8 * 2**20
"""Most bytes of any other reply."""

PAGES = 1000
"""Pages of a list that are read at most."""

QUICK = 120.0
"""Seconds for a reply that is no file."""

SILENCE = 300.0
"""Seconds without a byte after which an upload or a download is given up."""

_ID = re.compile(r"[\w.-]{1,200}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch as the endpoint describes it."""

    id: str
    status: str
    output: str | None = None
    """Id of the file with answers."""
    errors: str | None = None
    """Id of the file with the errors of calls that have none."""
    done: int | None = None
    """Calls that were answered or have failed."""
    complaints: tuple[tuple[str, str, int | None], ...] = ()
    """Why it was not begun: code, message, and the line of the uploaded file that it is about."""

    @property
    def ended(self) -> bool:
        """Whether it will not change any more."""
        return self.status in ENDED


class BatchApi:
    """The batch interface of one endpoint; it belongs to the loop that it is used on.

    Args:
        client: made with `max_retries=0`.
        context: of the endpoint, for messages.
        secrets: what is blanked out of replies and files, before anything of them is read or written.
    """

    def __init__(self, client: AsyncOpenAI, context: ErrorContext, *, secrets: Secrets) -> None:
        self._client = client
        self.context = context
        self._secrets = secrets

    async def check(self) -> None:
        """Checks that there is a batch interface.

        Raises:
            UsageError: there is none.
            CallError: the endpoint cannot be asked.
        """
        try:
            page = await self._json(self._client.batches.with_streaming_response.list(limit=1))
            items(page["data"], "data")
        except (BadRequest, MalformedReply, KeyError) as error:
            raise UsageError(
                f"{self.context.where} has no batch interface ({_reason(error)}).", hint="Leave out `--batch`."
            ) from error

    async def upload(self, file: Path, name: str) -> str:
        """Uploads `file` while it is read from the disk; returns its id."""
        with file.open("rb") as body:
            form = await self._json(
                self._client.files.with_streaming_response.create(
                    file=(name, body, "application/jsonl"), purpose="batch", timeout=_file_timeout()
                ),
                within=None,
            )
        return _id(form.get("id"), "id")

    async def find_file(self, name: str, size: int) -> str | None:
        """The id of the uploaded file of this name and size; None where there is none, or files are not listed."""
        with suppress(BadRequest):
            async for form in self._pages(self._client.files.with_streaming_response.list):
                if form.get("filename") == name and form.get("bytes") == size:
                    return _id(form.get("id"), "id")
        return None

    async def create(self, file: str, *, url: Any, part: str) -> Batch:
        """Creates a batch of an uploaded file; `part` is stored with it."""
        return _batch(
            await self._json(
                self._client.batches.with_streaming_response.create(
                    input_file_id=file, endpoint=url, completion_window="24h", metadata={PART_FIELD: part}
                )
            )
        )

    async def find_batches(self, part: str) -> list[Batch]:
        """The batches that were created of `part`; there should be one at most."""
        pages = self._pages(self._client.batches.with_streaming_response.list)
        return [_batch(form) async for form in pages if part_of(form.get("metadata"), PART_FIELD) == part]

    async def get(self, batch: str) -> Batch:
        """The batch as it is now."""
        return _batch(await self._json(self._client.batches.with_streaming_response.retrieve(batch)))

    async def cancel(self, batch: str) -> None:
        """Cancels a batch: the endpoint makes no further call of it."""
        await self._json(self._client.batches.with_streaming_response.cancel(batch))

    async def download(self, file: str, to: Path) -> None:
        """Writes an output or error file to `to`, with keys that the endpoint repeats in it blanked out.

        Raises:
            MalformedReply: it is too large, or breaks off.
        """
        size = 0
        with translated_errors(self.context), to.open("wb") as target:
            async with self._client.files.with_streaming_response.content(file, timeout=_file_timeout()) as response:
                async for chunk in self._secrets.stream(response.iter_bytes()):
                    size += len(chunk)
                    if size > LARGEST_FILE:
                        raise MalformedReply(f"The file {file!r} is larger than {LARGEST_FILE >> 30} GB.")
                    target.write(chunk)

    async def delete_file(self, file: str) -> None:
        """Deletes an uploaded file."""
        await self._json(self._client.files.with_streaming_response.delete(file))

    async def aclose(self) -> None:
        """Closes the client."""
        await self._client.close()

    async def _pages(self, ask: Any) -> AsyncIterator[Mapping[str, Any]]:
        """Every entry of a list, page after page."""
        after: JsonObject = {"limit": 100}
        for _ in range(PAGES):
            page = await self._json(ask(**after))
            entries = [mapping(entry, "entry") for entry in items(page.get("data"), "data")]
            for entry in entries:
                yield entry
            if not page.get("has_more") or not entries:
                return
            after = {"limit": 100, "after": _id(entries[-1].get("id"), "id")}

    async def _json(
        self, reply: AbstractAsyncContextManager[Any], *, within: float | None = QUICK
    ) -> Mapping[str, Any]:
        """The object in a reply.

        Raises:
            CallError: there is none.
        """
        data = bytearray()
        with translated_errors(self.context):
            async with asyncio.timeout(within), reply as response:
                async for chunk in response.iter_bytes():
                    data += chunk
                    if len(data) > LARGEST_PAGE:
                        break
        try:
            if len(data) > LARGEST_PAGE:
                raise MalformedReply(f"It is larger than {LARGEST_PAGE >> 20} MB.")
            return mapping(parse_reply(self._secrets.blanked(bytes(data))), "body")
        except MalformedReply as error:
            raise error_of(ErrorDetails(kind=MalformedReply, words=error.message), self.context) from error


def batch_api(settings: ModelSettings) -> BatchApi:
    """The batch interface of the endpoint that `settings` names.

    Raises:
        AuthError: the key's variable is not set.
        ConfigError: a header's variable is not set, or nobody has agreed to where a project's settings send a key.
    """
    if settings.consent is not None:
        settings.consent.require()

    secrets = secrets_of(settings)
    bound = bounding(secrets)

    async def bounded(response: Any) -> None:
        # Files are larger than any other reply, and go to the disk.
        if response.status_code >= 300 or not response.request.url.path.endswith("/content"):
            await bound(response)
        else:
            clear_head(response, secrets)

    http = client_class()(
        headers={"Accept-Encoding": PACKINGS}, follow_redirects=False, event_hooks={"response": [bounded]}
    )
    client = build_client(settings, http)
    address, model = public_address(str(client.base_url)), settings.id.model
    context = ErrorContext(where=address, model=model, key_variable=key_variable(settings), secrets=secrets)
    return BatchApi(client, context, secrets=secrets)


def _file_timeout() -> Any:
    """Time limits of a transfer, which may take as long as bytes come."""
    import httpx2

    return httpx2.Timeout(SILENCE, connect=10.0)


def _batch(form: Mapping[str, Any]) -> Batch:
    counts = form.get("request_counts")
    completed, failed = count(part_of(counts, "completed")), count(part_of(counts, "failed"))
    complaints = items(part_of(form.get("errors"), "data"), "errors")
    return Batch(
        id=_id(form.get("id"), "id"),
        status=one_line(clean_text(form.get("status")), limit=40),
        output=_file(form.get("output_file_id")),
        errors=_file(form.get("error_file_id")),
        done=None if completed is None or failed is None else completed + failed,
        complaints=tuple(_complaint(each) for each in complaints),
    )


def _complaint(form: object) -> tuple[str, str, int | None]:
    code, words = clean_text(part_of(form, "code")), one_line(clean_text(part_of(form, "message")))
    return code, words, count(part_of(form, "line"))


def _file(value: object) -> str | None:
    return _id(value, "file") if value else None


def _id(value: object, name: str) -> str:
    """`value`, an id that may stand in the path of an address.

    Raises:
        MalformedReply: it may not.
    """
    text = clean_text(value)
    if not _ID.fullmatch(text) or set(text) == {"."}:
        raise MalformedReply(f"The reply's {name} is {one_line(text, limit=40)!r}.")
    return text


def _reason(error: Exception) -> str:
    status = getattr(error, "status", None)
    return f"status {status}" if status else "the reply is no list"
