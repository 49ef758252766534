"""vLLM's engine in this environment, without a server: pictures are handed over as they are.

The engine has processes of its own; a guard process ends them where this one is killed.
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

from askance.chat import ChatResponse, Usage
from askance.errors import AskanceError, BadRequest, ModelError, ServerFault
from askance.models.likelihood import end_of_prompt, not_offered
from askance.models.local.batch_row import decoded
from askance.models.vendor_errors import ErrorContext, ErrorDetails, error_of, one_line
from askance.models.vllm import server_process
from askance.models.vllm.engine_log import EngineLog, check_system, last_words, not_installed, start_error
from askance.models.vllm.metrics import CacheHits, cache_hits
from askance.models.vllm.payload import from_output, to_messages, to_sampling, to_structured_outputs

if TYPE_CHECKING:
    from askance.chat import ChatRequest, JsonObject
    from askance.models.settings import Vllm

_QUIET: JsonObject = {"use_tqdm_on_load": False}
_BAD = ("VLLMClientError", "GracefulHTTPError", "ValueError", "TypeError")
"""Names of the classes, in an error's ancestry, that say that the request is at fault."""


class InProcessEngine:
    """vLLM's engine, ready to answer.

    Args:
        spec: of the model, for messages.
        model: its name in answers.
        engine: vLLM's `AsyncLLM`.
        template: chat template where the model brings none.
        log: of the engine.
        pids: of its processes.
    """

    def __init__(
        self, spec: str, model: str, engine: Any, *, template: str | None, log: EngineLog, pids: list[int]
    ) -> None:
        self._spec = spec
        self._model = model
        self._engine: Any = engine
        self._template = template
        self._log = log
        self._numbers = count()
        self._defaults: Mapping[str, Any] = engine.model_config.get_diff_sampling_param()
        self._guard = _guard(pids)
        atexit.register(self._stop)

    @classmethod
    async def started(
        cls, spec: str, model: str, arguments: JsonObject, *, vllm: Vllm, template: str | None
    ) -> InProcessEngine:
        """The engine, its weights loaded.

        Raises:
            ConfigError: it does not start.
            MissingExtra: vLLM is not installed.
        """
        check_system(spec)
        log = EngineLog.opened()
        before = {child.pid for child in multiprocessing.active_children()}
        try:
            engine = await asyncio.to_thread(_engine, arguments)
        except ImportError as error:
            if error.name == "vllm":
                raise not_installed(spec, sys.executable) from error
            raise start_error(str(error), spec=spec, vllm=vllm) from error
        except Exception as error:
            output = f"{log.read()}\n{type(error).__name__}: {error}"
            raise start_error(output, spec=spec, vllm=vllm) from error
        pids = [child.pid for child in multiprocessing.active_children() if child.pid and child.pid not in before]
        return cls(spec, model, engine, template=template, log=log, pids=pids)

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer to `request`; where the caller is cancelled, the engine stops writing it.

        Raises:
            CallError: the call ended without an answer.
            BadImage: a picture cannot be used.
        """
        pictures = await asyncio.to_thread(decoded, request) if request.images else []
        messages = to_messages(request, pictures)
        with self._errors(pictures=bool(pictures)):
            if request.given is not None:
                return await self._weighed(request, messages)
            prompt = await self._prompt(request, messages)
            read = len(prompt.get("prompt_token_ids") or ())
            params = self._params(request, room=self._engine.model_config.max_model_len - read)
            output: Any = None
            async for latest in self._engine.generate(prompt, params, f"askance-{next(self._numbers)}"):
                output = latest
        return from_output(
            output, model=self._model, pictures=_picture_tokens(prompt), wanted=request.sampling.logprobs
        )

    async def cache_hits(self) -> CacheHits | None:
        await self._engine.do_log_stats()
        reader: Any = import_module("vllm.v1.metrics.reader")
        snapshot = [(metric.name.removeprefix("vllm:"), metric) for metric in reader.get_metrics_snapshot()]
        return cache_hits(
            [(name, metric.labels, metric.value) for name, metric in snapshot if hasattr(metric, "value")]
        )

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
            self._guard.communicate(b"\n", timeout=server_process.GRACE)

    async def _weighed(self, request: ChatRequest, messages: list[JsonObject]) -> ChatResponse:
        """How likely the given text is, as vLLM's server tells it; see `OpenAIModel.likelihood`."""
        given = request.given or ""
        prompt = await self._prompt(request, [*messages, {"role": "assistant", "content": given}], ends=False)
        sampling: Any = import_module("vllm.sampling_params")
        final = sampling.RequestOutputKind.FINAL_ONLY
        params = sampling.SamplingParams(prompt_logprobs=0, max_tokens=1, output_kind=final)
        output: Any = None
        async for latest in self._engine.generate(prompt, params, f"askance-{next(self._numbers)}"):
            output = latest
        tokens = end_of_prompt([_of_prompt(each) for each in output.prompt_logprobs or ()], given)
        if tokens is None:
            return not_offered("vLLM's prompt does not end with the given text")
        usage = Usage(input=len(output.prompt_token_ids or ()), output=1, image=_picture_tokens(prompt))
        return ChatResponse(usage=usage, model=self._model, logprobs=tokens)

    async def _prompt(self, request: ChatRequest, messages: list[JsonObject], *, ends: bool = True) -> Any:
        """The request as the engine reads it: vLLM makes tokens of the turns as its server does.

        `ends` says whether the last turn has ended and one of the assistant begins; else the last one is left open.
        """
        params: Any = import_module("vllm.renderers.params")
        more = {
            "add_generation_prompt": ends,
            "continue_final_message": not ends,
            **request.extra.get("chat_template_kwargs", {}),
        }
        form = "auto" if self._template is None else "string"
        chat = params.ChatParams(
            chat_template=self._template, chat_template_content_format=form, chat_template_kwargs=more
        )
        _, (prompt,) = await self._engine.renderer.render_chat_async([messages], chat)
        return prompt

    def _params(self, request: ChatRequest, *, room: int) -> Any:
        sampling: Any = import_module("vllm.sampling_params")
        form = to_structured_outputs(request)
        held = {} if form is None else {"structured_outputs": sampling.StructuredOutputsParams(**form)}
        kind = sampling.RequestOutputKind.FINAL_ONLY
        return sampling.SamplingParams(**to_sampling(request, self._defaults, room=room), **held, output_kind=kind)

    @contextmanager
    def _errors(self, *, pictures: bool) -> Generator[None]:
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
    """Does nothing."""


def _engine(arguments: JsonObject) -> Any:
    vllm: Any = import_module("vllm")
    own = server_process.CPU_ARGS if server_process.is_cpu_build() else {}
    asynchronous: Any = import_module("vllm.v1.engine.async_llm")
    return asynchronous.AsyncLLM.from_engine_args(vllm.AsyncEngineArgs(**(_QUIET | own | arguments)))


def _guard(pids: list[int]) -> subprocess.Popen[bytes]:
    """Starts a process that ends `pids` where this one is killed."""
    command = [sys.executable, server_process.__file__, "guard", *map(str, pids)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def _of_prompt(candidates: Mapping[int, Any] | None) -> tuple[str, float] | None:
    """The token of one place of a prompt, with its log-probability; None for the first place."""
    if candidates is None:
        return None
    token = next(iter(candidates.values()))
    return token.decoded_token or "", float(token.logprob)


def _picture_tokens(prompt: Any) -> int | None:
    places: Mapping[str, Any] = prompt.get("mm_placeholders") or {}
    return sum(place.length for place in places.get("image", ())) or None
