"""`vllm:`, a model that vLLM runs, behind the seam."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

from askance.chat import ModelId, canonical_json
from askance.errors import ConfigError, UsageError
from askance.models.capabilities import Capabilities
from askance.models.settings import ModelSettings, Vllm
from askance.models.vllm.identity import folder_of, identity_of, is_identity
from askance.models.vllm.inside import Inside
from askance.models.vllm.options import engine_arguments, marks_of, sees, template_for, words
from askance.models.vllm.served import AtAddress, OwnServer
from askance.models.vllm.server import Server
from askance.models.vllm.speaker import SPEAKERS
from askance.models.vllm.tally import Tally
from askance.models.vllm.wording import harmless

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse
    from askance.models.counters import Counters
    from askance.models.local.folders import Folder
    from askance.models.vllm.speaker import Speaker

_log = logging.getLogger("askance")


class VLLMModel:
    """A model that vLLM runs: in a server that is started for it, in process, or in a server at an address.

    Models of one process that want the same share one server or engine. It is started at the first question and stopped
    by the last `aclose`, at the end of the process at the latest, however that comes.

    Args:
        source: a folder, or a name on the hub that was downloaded before; at an address, the server's name for it too.
        vllm: how it is run.
        family: by which prompts are worded; None goes by the name.
        reached: settings with an endpoint, for a server that runs already; None starts one, or the engine in process.

    Raises:
        ConfigError: it is not on this machine, or not whole; or it is in process and at an address at once.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        vllm: Vllm | None = None,
        family: str | None = None,
        reached: ModelSettings | None = None,
    ) -> None:
        self.source = str(source)
        self.vllm = vllm or Vllm()
        self._family = family
        self._reached = reached
        self._folder: Folder | None = None
        if reached is not None and self.vllm.in_process:
            raise ConfigError(
                f"The model 'vllm:{self.source}' is to run in process and at {reached.id.endpoint}.",
                hint="Leave out the address or `in_process`.",
            )
        if not is_identity(self.source) and (reached is None or Path(self.source).expanduser().is_dir()):
            self._folder = folder_of(self.source, self.vllm)
        self._marks = frozenset[str]() if self._folder is None else marks_of(self._folder)
        self._taken: Speaker | None = None
        self._taking: asyncio.Task[Speaker] | None = None
        self._holds = False
        self._tally = Tally(str(self.id), own=reached is None, share=self.vllm.share)

    @property
    def id(self) -> ModelId:
        """By the digest of the weights and how they are held, never by folder or port."""
        if self._folder is not None:
            return ModelId("vllm", self.source, name=identity_of(self._folder, self.vllm))
        if is_identity(self.source):
            return ModelId("vllm", self.source, name=f"vllm:{self.source}")
        endpoint = None if self._reached is None else self._reached.id.endpoint
        return ModelId("vllm", self.source, endpoint)

    @property
    def capabilities(self) -> Capabilities:
        """Answers are held to any schema; whether it sees is what its configuration says."""
        images = None if self._folder is None else sees(self._folder) or None
        return Capabilities(schema="enforced", json_object=True, images=images, seed=True, logprobs=True)

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer to `request`.

        Raises:
            CallError: the call ended without an answer.
            BadImage: a picture cannot be used.
            ConfigError: vLLM does not start, or the server at the address serves another model.
            MissingExtra: vLLM is not installed.
            UsageError: only the digest of the weights is known.
        """
        speaker = self._taken or await self._speaker()
        response = await speaker.generate(harmless(request, self._marks))
        self._tally.answered(request, response)
        return response

    @property
    def doing(self) -> str:
        """Starting vLLM; a server that runs says no more."""
        return f"vLLM starts with {self.source}" if self._taking is not None and self._taken is None else ""

    async def counted(self) -> Counters:
        """What was asked and found so far; warns once where caches never hit although they could have."""
        await self._measure()
        return self._tally.counters

    async def aclose(self) -> None:
        """Lets go of server or engine; the next question starts it again."""
        if self._taken is not None:
            await self._measure()
            _log.info("%s: %s.", self.source, self._tally.counters)
        taking, self._taking, self._taken = self._taking, None, None
        if taking is not None:
            taking.cancel()
        if self._holds:
            self._holds = False
            await SPEAKERS.give(self._key)

    def __repr__(self) -> str:
        return f"VLLMModel({self.source!r})"

    async def _speaker(self) -> Speaker:
        if self._taking is None:
            self._taking = asyncio.ensure_future(self._take())
            self._taking.add_done_callback(lambda done: done.cancelled() or done.exception())
        speaker = await asyncio.shield(self._taking)
        self._taken = speaker
        return speaker

    async def _take(self) -> Speaker:
        self._holds = True
        return await SPEAKERS.take(self._key, self._open)

    async def _measure(self) -> None:
        fresh = None if self._taken is None else await SPEAKERS.fresh(self._key)
        if fresh is not None:
            self._tally.measured(fresh)
        self._tally.warn()

    @property
    def _key(self) -> object:
        place = None if self._folder is None else str(self._folder.path.resolve())
        how = canonical_json({"vllm": astuple(self.vllm), "family": self._family})
        reached = None if self._reached is None else repr(self._reached)
        return place or self.source, how, reached

    async def _open(self) -> Speaker:
        if self._reached is not None:
            return await AtAddress.reached(self._reached, self.vllm)
        if self._folder is None:
            raise UsageError(
                f"The model 'vllm:{self.source}' is known by the digest of its weights alone.",
                hint="Name its folder, `vllm:FOLDER`, or a server that has it, `vllm:…@http://…`.",
            )
        spec, model = f"vllm:{self.source}", str(self.id)
        arguments = engine_arguments(self._folder, self.vllm)
        template = template_for(self._folder, self._family)
        if self.vllm.in_process:
            return await Inside.started(spec, model, arguments, vllm=self.vllm, template=template)
        more = {} if template is None else {"chat_template": template, "chat_template_content_format": "string"}
        line = words({**arguments, "served_model_name": model, **more})
        return await OwnServer.started(lambda: Server(spec, line, self.vllm), model=model)


def from_settings(settings: ModelSettings) -> VLLMModel:
    """The model that `settings` describes."""
    reached = settings if settings.id.endpoint is not None else None
    return VLLMModel(settings.id.model, vllm=settings.vllm, family=settings.family, reached=reached)
