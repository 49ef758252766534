"""What is known of a model before any client is built."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from askance.chat import Detail, ModelId, Sampling, Usage
from askance.images import CLEAN_POLICY, ImagePolicy

if TYPE_CHECKING:
    from askance.trust import Consent

OutputMode = Literal["json_schema", "json_object", "prompted", "paper"]
"""How an answer is asked for: held to a JSON schema, held to a JSON object, JSON that the prompt alone asks for, or the
text protocol of the paper."""

OUTPUT_MODES: tuple[OutputMode, ...] = ("json_schema", "json_object", "prompted", "paper")

TokenField = Literal["max_tokens", "max_completion_tokens"]
TOKEN_FIELDS: tuple[TokenField, ...] = ("max_tokens", "max_completion_tokens")

DEFAULT_TIMEOUT = 120.0
"""Seconds that one try may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None
    """For input that is read from the provider's prompt cache; None is the price of other input."""
    written: float | None = None
    """For input that the provider writes to its prompt cache unasked; None is the price of other input."""
    batch: float | None = None
    """Price of the batch interface as a share of the price online; None where there is none, or it is not known."""
    up_to: int | None = None
    """Longest input, in tokens, that the price holds for."""
    as_of: str | None = None
    """The price list that it is from: a date, or a package and its version; None for a configured price."""

    def cost(self, usage: Usage) -> float | None:
        """US dollars for `usage`; None where the endpoint did not count, or the price does not hold for it.

        What is free costs nothing, counted or not.
        """
        return self._cost(usage, self.input)

    def most(self, usage: Usage) -> float | None:
        """As `cost`, at its highest: as if all input that was not read from the prompt cache were written to it."""
        return self._cost(usage, max(self.input, self.written or 0.0))

    def _cost(self, usage: Usage, fresh: float) -> float | None:
        if not (fresh or self.cached or self.output):
            return 0.0
        if usage.input is None or usage.output is None or (self.up_to is not None and usage.input > self.up_to):
            return None
        cached = min(usage.cached or 0, usage.input)
        cached_price = self.input if self.cached is None else self.cached
        return ((usage.input - cached) * fresh + cached * cached_price + usage.output * self.output) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Azure:
    """What an Azure endpoint needs besides its address."""

    api_version: str
    deployment: str | None = None
    """Name of the deployment; None is the model's name."""


Dtype = Literal["auto", "float32", "float16", "bfloat16"]
DTYPES: tuple[Dtype, ...] = ("auto", "float32", "float16", "bfloat16")

DEFAULT_BATCH = 8
"""Answers that a model on this machine writes side by side, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """How a model is run on this machine; `dtype`, `bits`, `revision` and `adapter` can change an answer."""

    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`, `mps`; `auto` is the first accelerator there is, else the processor."""
    dtype: Dtype = "auto"
    """Numbers that weights are held in; `auto` is as they were saved."""
    bits: Literal[4, 8] | None = None
    """Bits that a weight is quantized to while loading, by bitsandbytes; None leaves them as they are."""
    attention: str | None = None
    """How attention is computed (`eager`, `sdpa`, `flash_attention_2`); None is the best that is installed."""
    revision: str | None = None
    """Branch, tag or commit of a name on the hub; None is `main`."""
    adapter: str | None = None
    """Folder of a LoRA adapter of PEFT that is added to the weights of an `hf:` model; None adds none."""
    batch: int = DEFAULT_BATCH
    share: bool = True
    """Whether what several questions begin with, a picture above all, is computed once for all of them."""
    remote_code: bool = False
    """Whether Python code that lies beside the weights is run."""
    pickled: bool = False
    """Whether weights are also read from pickle files, which can run any code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vllm:
    """How vLLM runs a model. `dtype`, `quantization`, `revision` and some of `engine` can change an answer."""

    in_process: bool = False
    """Whether the engine runs beside askance, in its own environment; otherwise a server is started for it."""
    python: str | None = None
    """Interpreter of the environment that vLLM is installed in, for a server; None is `ASKANCE_VLLM_PYTHON`, else the
    running one."""
    port: int | None = None
    """Of the loopback; None takes one that is free."""
    dtype: Dtype = "auto"
    """Numbers that weights are held in; `auto` is as they were saved."""
    quantization: str | None = None
    """How weights are quantized while loading (`fp8`, `bitsandbytes`); None leaves them as they are."""
    revision: str | None = None
    """Branch, tag or commit of a name on the hub; None is `main`."""
    context: int | None = None
    """Tokens of prompt and answer together; None is what the model was made for."""
    memory: float | None = None
    """Part of the device's memory that is taken; None is vLLM's own default."""
    cache: float | None = None
    """GiB for keys and values of what was read; None is what is left of `memory`."""
    devices: int = 1
    """Devices that the weights are spread over."""
    batch: int | None = None
    """Answers that are written side by side, at most; None is vLLM's own default."""
    share: bool = True
    """Whether what several questions begin with is computed once."""
    start_within: float = 1800.0
    """Seconds that the weights may take to load."""
    remote_code: bool = False
    """Whether Python code that lies beside the weights is run."""
    pickled: bool = False
    """Whether weights are also read from pickle files, which can run any code."""
    engine: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Any other argument of vLLM's engine, by its name there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """A model and how it is asked. The fields up to `detail` are part of each request; no other changes an answer."""

    id: ModelId
    """`id.provider`, `id.model`, `id.endpoint` and `id.api` say what to reach, `id.name` what its answers are filed
    under."""
    sampling: Sampling = field(default_factory=Sampling)
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields that enter the body as they are."""
    image_policy: ImagePolicy = CLEAN_POLICY
    detail: Detail = "auto"

    stored: bool = True
    """Whether the identity tells this model's answers from another's; if not, they are not recorded or replayed."""
    family: str | None = None
    """Family whose wording of the prompts is used, such as `vicuna`; None is the general wording."""
    protocol: OutputMode | None = None
    """Form in which answers are asked for; None is the strictest that the endpoint can do."""
    price: Price | None = None
    """None is not known, which does not mean free."""
    timeout: float | None = None
    """Seconds that one try may take; None is `DEFAULT_TIMEOUT`."""
    key_variable: str | None = None
    """Name of the environment variable that holds the key; None is the vendor's own."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Extra headers; a value `env:NAME` is read from the environment when the client is built."""
    idempotency: bool = False
    """Whether equal requests have one header `Idempotency-Key`, for an endpoint that answers a key once.

    Such an endpoint answers the mode `refresh` from its memory, too.
    """
    token_field: TokenField | None = None
    """Name under which the endpoint takes the token limit; None finds it out."""
    azure: Azure | None = None
    local: Local | None = None
    """For a model that is run on this machine; None is the defaults."""
    vllm: Vllm | None = None
    """For a model that vLLM runs; None is the defaults."""
    consent: Consent | None = field(default=None, compare=False, repr=False)
    """What the user has to consent to before the model is asked: what settings in a project's file would do."""


FAMILIES: tuple[tuple[re.Pattern[str], str | None], ...] = (
    # Later LLaVAs stand on other language models, which were not tuned on Vicuna's conversations.
    (re.compile(r"llava.*(mistral|mixtral|llama-?3|qwen|onevision|interleave|34b|phi|gemma)|(bak|tiny)-?llava"), None),
    (re.compile(r"blip-?2|instructblip"), "blip"),
    (re.compile(r"minigpt"), "minigpt-4"),
    (re.compile(r"llava|vicuna"), "vicuna"),
)
"""Family by a pattern of the model's name, in lower case; the first one found decides."""


def family_of(settings: ModelSettings) -> str | None:
    """The family set by hand, else the one that the model's name tells; None is the general wording."""
    return settings.family or family_of_name(settings.id.model)


def family_of_name(model: str) -> str | None:
    """The family of `liuhaotian/llava-v1.5-13b` and its like; None where no wording of its own is known."""
    name = model.lower()
    return next((family for pattern, family in FAMILIES if pattern.search(name)), None)
