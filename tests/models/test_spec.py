from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import ConfigError
from askance.models.spec import BACKENDS, Spec

GOOD = {
    "openai:gpt-4o": Spec("openai", "gpt-4o"),
    "openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1": Spec(
        "openai", "Qwen/Qwen2.5-VL-7B-Instruct", "http://localhost:8000/v1"
    ),
    "openai:llava:13b@https://box.example/v1/": Spec("openai", "llava:13b", "https://box.example/v1"),
    "langchain:anthropic:claude-sonnet-5": Spec("langchain", "anthropic:claude-sonnet-5"),
    "openai:ft@2026-01-01": Spec("openai", "ft@2026-01-01"),
    "openai:a@http@http://h/v1": Spec("openai", "a@http", "http://h/v1"),
    "openai:gpt-4o?temperature=0": Spec("openai", "gpt-4o", settings=(("temperature", "0"),)),
    "openai:m@http://h/v1?seed=1&effort=a%20b": Spec("openai", "m", "http://h/v1", (("seed", "1"), ("effort", "a b"))),
    "openai:who?": Spec("openai", "who?"),
    "openai:m@http://[::1]:8000/v1": Spec("openai", "m", "http://[::1]:8000/v1"),
}

HOW = "`openai:gpt-4o`, or `openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1` for a server of your own"
SECRETS = (
    "The address of 'h' carries a name, a password or a query. An address is recorded with each answer; "
    "put secrets into the environment (`key_variable`)."
)
BAD = {
    "gpt-4o": f"'gpt-4o' is no model spec. Write {HOW}.",
    "opnai:gpt-4o": f"'opnai' in 'opnai:gpt-4o' is no known provider. Nearest: 'openai'. A spec reads {HOW}.",
    "zzz:m": "'zzz' in 'zzz:m' is no known provider. Known: 'demo', 'hf', 'langchain', 'openai', 'vllm'. "
    f"A spec reads {HOW}.",
    "anthropic:claude-sonnet-4": "'anthropic' in 'anthropic:claude-sonnet-4' is reached through LangChain. "
    "Write langchain:anthropic:claude-sonnet-4, after pip install 'askance[langchain]' and the package of LangChain "
    "for this provider.",
    "openai:m@localhost:9/v1": "The address 'localhost:9/v1' in 'openai:m@localhost:9/v1' has no `http://` or "
    "`https://`. Write openai:m@http://localhost:9/v1",
    "openai:a/b@10.0.0.7": "The address '10.0.0.7' in 'openai:a/b@10.0.0.7' has no `http://` or `https://`. "
    "Write openai:a/b@http://10.0.0.7",
    "openai:m@gpu-3.example.org/v1": "The address 'gpu-3.example.org/v1' in 'openai:m@gpu-3.example.org/v1' has no "
    "`http://` or `https://`. Write openai:m@http://gpu-3.example.org/v1",
    "openai:": f"The spec 'openai:' names no model. Write {HOW}.",
    "openai:@http://h/v1": f"The spec 'openai:@http://h/v1' names no model. Write {HOW}.",
    "openai:m@http://": "'http://' is no address. Write it like http://localhost:8000/v1.",
    "openai:m@https:///v1": "'https:///v1' is no address. Write it like http://localhost:8000/v1.",
    "openai:m@http://h\x7f/v1": "'http://h\\x7f/v1' is no address. Write it like http://localhost:8000/v1.",
    "openai:m@http://h:port": "'http://h:port' is no address. Write it like http://localhost:8000/v1.",
    "openai:m@http://user:pass@h/v1": SECRETS,
    "openai:m@http://h/v1?marker": SECRETS,
    "openai:m@http://h/v1?api-key=marker": SECRETS,
}


@pytest.mark.parametrize(("text", "spec"), GOOD.items(), ids=GOOD)
def test_specs(text: str, spec: Spec) -> None:
    assert Spec.parse(text) == spec
    assert Spec.parse(str(spec)) == spec


@pytest.mark.parametrize(("text", "message"), BAD.items(), ids=BAD)
def test_what_is_no_spec(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{re.escape(message)}$"):
        Spec.parse(text)


names = st.text(min_size=1).filter(
    lambda name: (
        name == name.strip()
        and "@http" not in name
        and not re.search(r"\?[a-z_]+=", name)
        and not re.search(r"@[\w.:/-]*$", name)
    )
)
endpoints = st.none() | st.from_regex(r"\Ahttps?://[a-z]{1,9}(:[1-9][0-9]{0,3})?(/[a-z0-9]{1,5}){0,2}\Z")


@given(st.sampled_from(sorted(BACKENDS.built_in)), names, endpoints)
def test_any_spec_is_read_back_as_written(provider: str, model: str, endpoint: str | None) -> None:
    spec = Spec(provider, model, endpoint)
    assert Spec.parse(str(spec)) == spec
