"""Answers by vLLM's engine in this environment: no server, no HTTP, pictures as they are.

The engine has a process of its own, which a guard ends where this one is killed.
"""

from __future__ import annotations

import asyncio
import atexit
import multiprocessing
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

from askance.errors import AskanceError, BadRequest, ModelError, ServerFault
from askance.images import Image
from askance.models.vendor_errors import ErrorContext, ErrorDetails, error_of, one_line
from askance.models.vllm import guard, launch
from askance.models.vllm.log import Log
from askance.models.vllm.metrics import Hits, hits
from askance.models.vllm.troubles import last_words, missing, not_started
from askance.models.vllm.wording import from_output, to_form, to_messages, to_sampling

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse, JsonObject
    from askance.models.settings import Vllm

_QUIET: JsonObject = {"use_tqdm_on_load": False}
_BAD = ("VLLMClientError", "GracefulHTTPError", "ValueError", "TypeError")
"""Names of the classes, in an error's ancestry, that say that the request is at fault."""


class Inside:
    """The engine, once it is there.

    Args:
        spec: of the model, for messages.
        model: its name in answers.
        engine: vLLM's `AsyncLLM`.
        template: chat template where the model brings none.
        log: what the engine says.
        pids: of its processes.
    """

    def __init__(self, spec: str, model: str, engine: Any, *, template: str | None, log: Log, pids: list[int]) -> None:
        self._spec = spec
        self._model = model
        self._engine: Any = engine
        self._template = template
        self._log = log
        self._numbers = count()
        self._own: Mapping[str, Any] = engine.model_config.get_diff_sampling_param()
        self._guard = _guarded(pids)
        atexit.register(self._stop)

    @classmethod
    async def started(cls, spec: str, model: str, arguments: JsonObject, *, vllm: Vllm, template: str | None) -> Inside:
        """The engine, its weights loaded.

        Raises:
            ConfigError: it does not start.
            MissingExtra: vLLM is not installed.
        """
        log = Log.opened()
        before = {child.pid for child in multiprocessing.active_children()}
        try:
            engine = await asyncio.to_thread(_engine, arguments)
        except ImportError as error:
            if error.name == "vllm":
                raise missing(spec, sys.executable) from error
            raise not_started(str(error), spec=spec, vllm=vllm) from error
        except Exception as error:
            said = f"{log.read()}\n{type(error).__name__}: {error}"
            raise not_started(said, spec=spec, vllm=vllm) from error
        pids = [child.pid for child in multiprocessing.active_children() if child.pid and child.pid not in before]
        return cls(spec, model, engine, template=template, log=log, pids=pids)

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer to `request`; whoever no longer waits for it has it broken off.

        Raises:
            CallError: the call ended without an answer.
            BadImage: a picture cannot be used.
        """
        pictures = await asyncio.to_thread(_pictures, request) if request.images else []
        messages = to_messages(request, pictures)
        with self._translated(pictures=bool(pictures)):
            prompt = await self._prompt(request, messages)
            params = self._params(request, room=self._engine.model_config.max_model_len - _length(prompt))
            output: Any = None
            async for latest in self._engine.generate(prompt, params, f"askance-{next(self._numbers)}"):
                output = latest
        return from_output(
            output, model=self._model, pictures=_picture_tokens(prompt), wanted=request.sampling.logprobs
        )

    async def measured(self) -> Hits | None:
        await self._engine.do_log_stats()
        reader: Any = import_module("vllm.v1.metrics.reader")
        snapshot = [(found.name.removeprefix("vllm:"), found) for found in reader.get_metrics_snapshot()]
        return hits([(name, found.labels, found.value) for name, found in snapshot if hasattr(found, "value")])

    async def aclose(self) -> None:
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        atexit.unregister(self._stop)
        engine, self._engine = self._engine, None
        if engine is None:
            return
        engine.shutdown()
        # It shuts itself down once more as it is deleted, which fails where the interpreter ends.
        engine.shutdown = _nothing
        with suppress(OSError):
            self._guard.communicate(b"\n", timeout=guard.GRACE)

    async def _prompt(self, request: ChatRequest, messages: list[JsonObject]) -> Any:
        """The request as the engine reads it, by vLLM's own way from turns to tokens, which its server goes too."""
        params: Any = import_module("vllm.renderers.params")
        more = {"add_generation_prompt": True, **request.extra.get("chat_template_kwargs", {})}
        form = "auto" if self._template is None else "string"
        chat = params.ChatParams(
            chat_template=self._template, chat_template_content_format=form, chat_template_kwargs=more
        )
        _, (prompt,) = await self._engine.renderer.render_chat_async([messages], chat)
        return prompt

    def _params(self, request: ChatRequest, *, room: int) -> Any:
        sampling: Any = import_module("vllm.sampling_params")
        form = to_form(request)
        held = {} if form is None else {"structured_outputs": sampling.StructuredOutputsParams(**form)}
        kind = sampling.RequestOutputKind.FINAL_ONLY
        return sampling.SamplingParams(**to_sampling(request, self._own, room=room), **held, output_kind=kind)

    @contextmanager
    def _translated(self, *, pictures: bool) -> Generator[None]:
        """Turns what vLLM raises inside into a `CallError`, with the cause chained."""
        try:
            yield
        except AskanceError:
            raise
        except Exception as error:
            kinds = {kind.__name__ for kind in type(error).__mro__}
            if "EngineDeadError" in kinds:
                raise ModelError(
                    f"vLLM's engine of {self._spec!r} ended. {last_words(self._log.read())}",
                    hint="Its last words say why; where memory ran out, read less at once (`context`, `batch`).",
                ) from error
            bad = kinds.intersection(_BAD)
            words = one_line(str(error) or str(error.__cause__ or type(error).__name__))
            details = ErrorDetails(kind=BadRequest if bad else ServerFault, words=words)
            raise error_of(details, ErrorContext(where="vLLM", model=self._spec, images=pictures)) from error


def _nothing(*_: object) -> None:
    """What is left to do."""


def _engine(arguments: JsonObject) -> Any:
    vllm: Any = import_module("vllm")
    own = launch.OWN if launch.for_the_processor() else {}
    asynchronous: Any = import_module("vllm.v1.engine.async_llm")
    return asynchronous.AsyncLLM.from_engine_args(vllm.AsyncEngineArgs(**(_QUIET | own | arguments)))


def _guarded(pids: list[int]) -> subprocess.Popen[bytes]:
    """A process that ends `pids` where this one is gone without a word."""
    command = [sys.executable, guard.__file__, *map(str, pids)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def _pictures(request: ChatRequest) -> list[Any]:
    prepared = [part.image.prepare(part.policy) for part in request.images]
    return [Image.from_bytes(each.data).open().convert("RGB") for each in prepared]


def _length(prompt: Any) -> int:
    return len(prompt.get("prompt_token_ids") or ())


def _picture_tokens(prompt: Any) -> int | None:
    places: Mapping[str, Any] = prompt.get("mm_placeholders") or {}
    return sum(place.length for place in places.get("image", ())) or None
