"""Names of the GenAI semantic conventions of OpenTelemetry, and askance's own beside them.

They are those of release 0.1.0, the first of their own (`open-telemetry/semantic-conventions-genai`, pages
`client-inference`, `gen-ai-agent-spans` and `execute-tool`). All of them have the status Development, so the next
release may rename them; no other module spells one of them out.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.models.call_scope import WorkKind

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai/0.1.0"

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
AGENT: Final = "gen_ai.agent.name"
TOOL: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL: Final = "gen_ai.tool.call.id"
ERROR: Final = "error.type"
EXCEPTION: Final = "exception.type"
EXCEPTION_WORDS: Final = "exception.message"
SERVER: Final = "server.address"
PORT: Final = "server.port"

REQUEST_MODEL: Final = "gen_ai.request.model"
TEMPERATURE: Final = "gen_ai.request.temperature"
TOP_P: Final = "gen_ai.request.top_p"
SEED: Final = "gen_ai.request.seed"
MAX_TOKENS: Final = "gen_ai.request.max_tokens"
STOP: Final = "gen_ai.request.stop_sequences"
REASONING_LEVEL: Final = "gen_ai.request.reasoning.level"
OUTPUT_TYPE: Final = "gen_ai.output.type"
PROMPT: Final = "gen_ai.prompt.name"

RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
IMAGE_TOKENS: Final = "gen_ai.usage.image.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"

INSTRUCTIONS: Final = "gen_ai.system_instructions"
INPUT: Final = "gen_ai.input.messages"
OUTPUT: Final = "gen_ai.output.messages"
TOOLS: Final = "gen_ai.tool.definitions"

OPERATIONS: Mapping[WorkKind, str] = MappingProxyType(
    {"chain": "invoke_workflow", "link": "invoke_agent", "tool": "execute_tool"}
)
"""By kind of work, its operation; a run and a sample are none."""
CHAT: Final = "chat"

PROVIDER_NAMES: Mapping[str, str] = MappingProxyType({"azure": "azure.ai.openai"})
"""By provider of a spec, what the conventions call it, where that differs."""

FINISHES: Mapping[str, str] = MappingProxyType({"tool_calls": "tool_call"})
"""By reason why a response ended, what the conventions call it, where that differs."""

OWN: Final = "askance."
"""Before askance's own names, which the conventions have none for: `askance.outcome`, `askance.image`, …"""
KEY: Final = "askance.call.key"
REPLAYED: Final = "askance.call.replayed"
SHARED: Final = "askance.call.shared"
DRAW: Final = "askance.call.draw"
COST: Final = "askance.call.cost"
"""US dollars; not there for an answer on record, or without a price."""
TRIES: Final = "askance.call.tries"
TRY: Final = "askance.try"
"""Name of an event: one try of a call failed."""
OUTCOME: Final = "askance.outcome"
