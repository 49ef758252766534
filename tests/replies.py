"""What real servers say when they do not simply answer: replies for `FakeEndpoint`."""

from __future__ import annotations

import math

from tests.servers import Reply, chat_body, error, old_vllm_error

WRONG_KEY = error(401, "Incorrect API key provided: sk-wrong*******1234.", code="invalid_api_key")
OPENAI_UNKNOWN_MODEL = error(
    404, "The model `gpt-9` does not exist or you do not have access to it.", code="model_not_found"
)
VLLM_UNKNOWN_MODEL = error(404, "The model `gpt-9` does not exist.", code=404)
OPENAI_TOO_LONG = error(
    400,
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
    code="context_length_exceeded",
    param="messages",
)
VLLM_TOO_LONG = old_vllm_error(
    400,
    "The decoder prompt (length 5000) is longer than the maximum model length of 512.",
)
OPENAI_NO_IMAGES = error(
    400, "Invalid content type. image_url is only supported by certain models.", param="messages.[0].content"
)
VLLM_NO_IMAGES = old_vllm_error(400, "At most 0 image(s) may be provided in one prompt.")
VLLM_TEXT_MODEL = error(400, "fake-model is not a multimodal model", code=400)
LLAMACPP_NO_IMAGES = error(
    500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", code=500
)
NO_TEMPERATURE = error(
    400,
    "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
    code="unsupported_value",
    param="temperature",
)
NO_MAX_TOKENS = error(
    400,
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    code="unsupported_parameter",
    param="max_tokens",
)
NO_SCHEMA = error(
    400,
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    param="response_format",
)
SLOW_DOWN = error(429, "Rate limit reached for fake-model.", code="rate_limit_exceeded", headers={"retry-after": "2"})
NO_QUOTA = error(
    429, "You exceeded your current quota, please check your plan and billing details.", code="insufficient_quota"
)
OVERLOADED = error(503, "The server is overloaded.")
BROKEN = Reply(
    status=500, body="<html><title>Internal Server Error</title></html>", headers={"content-type": "text/html"}
)
SILENT = Reply(delay=math.inf)
RESET = Reply(reset=True)
CUT_JSON = Reply(body='{"id": "chat-1", "choices": [{"index": 0, "mess')
"""A whole body that holds half a JSON text."""
CUT_BODY = Reply(body=chat_body(), cut=40)
"""A body that ends before its announced length."""
