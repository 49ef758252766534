"""What a log says, as a sentence and the way out."""

from __future__ import annotations

import pytest

from askance.errors import ConfigError
from askance.models.settings import Vllm
from askance.models.vllm.engine_log import last_words, port_taken, start_error

SAID: dict[str, tuple[str, str, str]] = {
    "something else runs on the device": (
        (
            "ValueError: Free memory on device cuda:0 (9.85/79.1 GiB) on startup is less than desired GPU "
            "memory utilization (0.92, 72.77 GiB). Decrease GPU memory utilization or reduce GPU memory used by other "
            "processes."
        ),
        "72.77 GiB of the device's memory are wanted and 9.85 of its 79.1 GiB are free: something else runs on it.",
        "`vllm = { memory = 0.12 }`. Runs that use one model share a server: start it once, and name its address",
    ),
    "memory of the machine": (
        (
            "ValueError: Available memory on node 0 (3.1/24.0 GiB) on kv cache allocation is less than requested "
            "memory for kv (8.0 GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE, or reduce CPU memory"
        ),
        "8.0 GiB of memory are wanted for what is read and 3.1 of the machine's 24.0 GiB are free",
        "`vllm = { cache = 1 }` (GiB)",
    ),
    "context": (
        (
            "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is "
            "needed, which is larger than the available KV cache memory (5.2 GiB). Based on the available memory, the "
            "estimated maximum model length is 42592. Try increasing `gpu_memory_utilization`"
        ),
        "131072 tokens of context want 16.00 GiB for what is read, and there are 5.2 GiB.",
        "`vllm = { context = 42592 }`",
    ),
    "weights fill it": (
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
        "the weights leave no memory for what is read.",
        "`vllm = { memory = 0.95 }`",
    ),
    "out of memory": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB",
        "the device has too little memory: Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB.",
        "quantize the weights (`quantization`)",
    ),
    "architecture": (
        "ValueError: Model architectures ['OddForCausalLM'] are not supported for now. Supported architectures: …",
        "it does not run models of the kind ['OddForCausalLM'].",
        "`hf:` may run them",
    ),
    "heads": ("RuntimeError: Unsupported CPU attention configuration", "heads of the model's size", "`hf:` runs it."),
    "longer than the model reads": (
        (
            "ValueError: User-specified max_model_len (9000) is greater than the derived max_model_len "
            "(max_position_embeddings=2048 or model_max_length=None in model's config.json)."
        ),
        "the model reads 2048 tokens, and 9000 were asked for.",
        "`vllm = { context = 2048 }`",
    ),
    "code of its own": (
        "ValueError: The repository contains custom code which must be executed. Please pass trust_remote_code=True",
        "the model comes with Python code of its own, which is not run unasked.",
        "`vllm = { remote_code = true }`",
    ),
    "an argument": (
        "api_server.py: error: unrecognized arguments: --odd 1",
        "it has no arguments --odd 1.",
        "Mend `engine`",
    ),
    "an argument in process": (
        "TypeError: AsyncEngineArgs.__init__() got an unexpected keyword argument 'odd'",
        "it has no arguments 'odd'.",
        "Mend `engine`",
    ),
    "port": ("OSError: [Errno 98] Address already in use", "its port is taken.", "Leave `port` out"),
}


@pytest.mark.parametrize(("log", "means", "hint"), SAID.values(), ids=SAID)
def test_a_known_trouble_is_named_with_the_way_out(log: str, means: str, hint: str) -> None:
    lines = f"(EngineCore pid=7) INFO 11-21 10:00:00 [core.py:1] Starting\n(EngineCore pid=7) ERROR {log}\nbye"
    error = start_error(lines, spec="vllm:m", vllm=Vllm(), code=1)

    assert isinstance(error, ConfigError)
    assert error.message.startswith("vLLM did not start with 'vllm:m': ")
    assert means in error.message
    assert hint in (error.hint or "")
    assert port_taken(lines) == ("Address already" in log)


LOG = """\
(APIServer pid=7) INFO 11-21 10:00:00 [launcher.py:3] Starting
Traceback (most recent call last):
  File "/x/api_server.py", line 3, in <module>
    raise KeyError("odd")
KeyError: 'odd'
(APIServer pid=7) INFO 11-21 10:00:01 [launcher.py:9] Shutting down
"""


def test_an_unknown_trouble_is_told_by_the_end_of_the_log() -> None:
    error = start_error(LOG, spec="vllm:m", vllm=Vllm(), code=1)
    assert error.message == (
        "vLLM did not start with 'vllm:m' (exit code 1). The end of its log: KeyError: 'odd' | Starting | Shutting down"
    )


def test_a_log_without_a_word() -> None:
    assert last_words("") == "nothing."
