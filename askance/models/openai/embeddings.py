"""`openai:MODEL`: an embedder behind an OpenAI-compatible endpoint, on the official client.

```python
get_embedder("openai:text-embedding-3-small")
get_embedder("openai:BAAI/bge-m3@http://localhost:8000/v1?dimensions=256")
```

Vectors are recorded as those of every embedder, so a text is asked for once. They count in no budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from askance.chat import ModelId
from askance.errors import AskanceError
from askance.models.loop import close_at_exit, live
from askance.models.openai.client import build_client, key_variable, secrets_of
from askance.models.settings import ModelSettings
from askance.models.spec import Spec
from askance.models.vendor_errors import ErrorContext, public_address, translated_errors
from askance.spec_grammar import count, read_settings, split_settings

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from askance.chat import JsonObject

BATCH = 256
"""Texts of one request, unless the settings say."""
TRIES = 5
"""Tries of one request, where an error may pass."""


class OpenAIEmbedder:
    """An embedder behind an endpoint; it opens no connection before the first text.

    Args:
        source: the model, with `@ADDRESS` for a server other than OpenAI's; behind a `?` the settings `dimensions`,
            where the model can make shorter vectors, and `batch`, texts of one request.

    Raises:
        ConfigError: the address cannot be used, or there is no such setting.
    """

    def __init__(self, source: str) -> None:
        named, settings = split_settings(source)
        spec = Spec.parse(f"openai:{named}")
        values = read_settings(settings, {"dimensions": count, "batch": count}, of=f"openai:{named}")
        self.id = ModelId("openai", spec.model, spec.endpoint)
        self.parameters: JsonObject = {name: values[name] for name in ("dimensions",) if name in values}
        self._batch: int = values.get("batch", BATCH)
        self._settings = ModelSettings(id=self.id)

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """A vector for each text, in their order.

        Raises:
            CallError: the endpoint did not answer.
        """
        return await live(lambda: self._embedded(texts))

    async def aclose(self) -> None:
        """Closes the connections; the next text opens new ones."""
        client = vars(self).pop("_client", None)
        if client is not None:
            await live(client.close)

    @cached_property
    def _client(self) -> AsyncOpenAI:
        client = build_client(self._settings)
        close_at_exit(self)
        return client

    @cached_property
    def _context(self) -> ErrorContext:
        where = public_address(str(self._client.base_url))
        secrets = secrets_of(self._settings)
        return ErrorContext(
            where=where, model=self.id.model, key_variable=key_variable(self._settings), secrets=secrets
        )

    async def _embedded(self, texts: Sequence[str]) -> list[Sequence[float]]:
        import tenacity

        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(TRIES),
            wait=tenacity.wait_random_exponential(multiplier=0.5, max=30),
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, AskanceError) and error.retryable),
            reraise=True,
        )
        parts = [list(texts[begin : begin + self._batch]) for begin in range(0, len(texts), self._batch)]
        vectors: list[Sequence[float]] = []
        for part in parts:
            made: list[Sequence[float]] = await retrying(self._asked, part)
            vectors += made
        return vectors

    async def _asked(self, texts: list[str]) -> list[Sequence[float]]:
        with translated_errors(self._context):
            reply = await self._client.embeddings.create(
                model=self.id.model, input=texts, encoding_format="float", **self.parameters
            )
        return [each.embedding for each in sorted(reply.data, key=lambda each: each.index)]
