from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest, ChatResponse, Message, ModelId, Sampling, TextPart
from askance.errors import CallError, ConfigError, UsageError
from askance.images import ORIGINAL_POLICY, ImagePolicy
from askance.models import Capabilities, Config, Engine, Model, ScriptedModel, get_model
from askance.models.factory import model_from_form, named
from askance.replay import MemoryStore

Engines = Callable[..., Engine]

HOW = "`openai:gpt-4o`, or `openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1` for a server of your own"


def test_a_spec() -> None:
    model = get_model("openai:gpt-4o", temperature=0, effort="low")
    assert model.id == ModelId("openai", "gpt-4o")
    assert (model.settings.sampling, model.settings.extra) == (Sampling(temperature=0), {"reasoning_effort": "low"})
    assert repr(model) == "Model('openai:gpt-4o', mode='auto')"


def test_a_name_from_the_settings_file(own_place: Path) -> None:
    (own_place / "askance.toml").write_text('[models.llava]\nspec = "openai:llava-1.5@http://h/v1"\nseed = 7')
    model = get_model("llava", identity="ours")
    assert model.id == ModelId("openai", "llava-1.5", "http://h/v1", "ours")
    assert (model.family, model.settings.sampling.seed) == ("vicuna", 7)


def test_unknown_names(own_place: Path) -> None:
    message = f"No model is called 'gpt-4o'. Known: 'demo'. Or write a spec: {HOW}."
    with pytest.raises(ConfigError, match=rf"^{re.escape(message)}$"):
        get_model("gpt-4o")
    (own_place / "askance.toml").write_text('[models.llava]\nspec = "openai:llava"')
    message = f"No model is called 'lava'. Nearest: 'llava'. Or write a spec: {HOW}."
    with pytest.raises(ConfigError, match=rf"^{re.escape(message)}$"):
        get_model("lava")
    with pytest.raises(ConfigError, match=rf"^{re.escape(f'No model is named. Write {HOW}.')}$"):
        get_model(" ")


def test_unknown_settings() -> None:
    message = "'temprature' is no setting of a model (`get_model`). Nearest: 'temperature'."
    with pytest.raises(ConfigError, match=rf"^{re.escape(message)}$"):
        get_model("openai:gpt-4o", temprature=0)


def test_a_model_passes_through() -> None:
    model = get_model("openai:gpt-4o", temperature=0)
    assert get_model(model) is model


def test_a_model_moves_to_another_engine(engine: Engines) -> None:
    model = get_model("openai:gpt-4o", engine=engine(timeout=5, image_policy=ORIGINAL_POLICY, protocol="paper"))
    moved = get_model(model, engine=engine("refresh"), temperature=0)
    assert (model.settings.timeout, model.settings.image_policy, model.protocol) == (5, ORIGINAL_POLICY, "paper")
    assert (moved.mode, moved.settings.timeout, moved.protocol) == ("refresh", 120, None)
    assert (model.settings.sampling.temperature, moved.settings.sampling.temperature) == (None, 0)


class Custom:
    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)

    async def generate(self, request: ChatRequest) -> ChatResponse:
        return ChatResponse(text="a cup")


@pytest.mark.parametrize(
    ("model", "identity", "wanted", "stored"),
    [
        (Custom(), None, ModelId("custom", "Custom"), False),
        (Custom(), "mine", ModelId("custom", "Custom", name="mine"), True),
        (Custom(id="own"), None, ModelId("custom", "own", name="own"), True),
        (Custom(id=ModelId("p", "m")), None, ModelId("p", "m"), True),
        (Custom(id=ModelId("p", "m")), "mine", ModelId("p", "m", name="mine"), True),
        (ScriptedModel([]), None, ModelId("scripted", "scripted"), False),
        (ScriptedModel([]), "mine", ModelId("scripted", "scripted", name="mine"), True),
        (ScriptedModel([], identity="own"), None, ModelId("scripted", "own", name="own"), True),
    ],
    ids=["nameless", "named", "own name", "own identity", "renamed", "script", "named script", "own script"],
)
def test_an_object_of_the_callers(model: Custom, identity: str | None, wanted: ModelId, *, stored: bool) -> None:
    found = get_model(model, identity=identity)
    assert (found.id, found.settings.stored) == (wanted, stored)


def test_an_object_has_its_client_already() -> None:
    message = (
        "'base_url' belongs to a model's client, and this model has one already. "
        "Give a spec or a name from the settings file."
    )
    with pytest.raises(UsageError, match=rf"^{re.escape(message)}$"):
        get_model(Custom(), base_url="http://h/v1")


def test_what_is_no_model() -> None:
    message = (
        f"A int is no model. Give {HOW}, a chat model of LangChain, or an object with `async def generate(request)`."
    )
    with pytest.raises(UsageError, match=rf"^{re.escape(message)}$"):
        get_model(3)  # pyright: ignore[reportArgumentType]


def test_models_without_an_engine_share_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one, other = get_model("openai:gpt-4o"), get_model("openai:gpt-4o-mini")
    assert one.engine is other.engine
    monkeypatch.setenv("ASKANCE_STORE", str(tmp_path / "another"))
    assert get_model("openai:gpt-4o").engine is not one.engine


def test_a_replay_loads_no_vendor() -> None:
    script = """
import sys
from askance.chat import Message, TextPart
from askance.errors import ReplayMiss
from askance.models import Engine, get_model, run_sync
model = get_model("openai:gpt-4o", engine=Engine(mode="replay"))
try:
    run_sync(model.generate(model.request((Message("user", (TextPart("What is odd?"),)),))))
except ReplayMiss:
    vendors = {"aiohttp", "openai", "httpx", "httpx2", "langchain_core", "PIL", "pydantic", "tenacity", "torch"}
    print(sorted(vendors & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


SMALL = ImagePolicy("clean", max_side=512, formats=("png",))
ASKED = (Message("user", (TextPart("What is odd?"),)),)


def models() -> list[Model]:
    scripted = ScriptedModel(["a cup"], identity="cups", capabilities=Capabilities(schema="enforced"))
    return [
        get_model("openai:gpt-4o", temperature=0.5, stop=["\n"], max_tokens=9, extra={"top_k": 5}),
        get_model("openai:qwen@http://localhost:8000/v1", protocol="paper", family="vicuna", detail="low"),
        get_model("openai:gpt-5", api="responses", engine=Engine(image_policy=SMALL)),
        get_model("openai:qwen@http://localhost:8000/v1", identity="qwen-7b"),
        get_model(scripted),
    ]


@pytest.mark.parametrize("model", models(), ids=str)
def test_a_description_makes_the_same_requests(model: Model) -> None:
    again = model_from_form(model.form(), Engine(mode="replay", records=MemoryStore()))

    assert again.form() == model.form()
    assert again.request(ASKED).key == model.request(ASKED).key


async def test_a_described_model_gives_recorded_answers_and_asks_nobody() -> None:
    records = MemoryStore()
    model = get_model(ScriptedModel(["a cup"], identity="cups"), engine=Engine(records=records))
    said = await model.generate(model.request(ASKED))
    engine = Engine(mode="replay", records=records)

    again = model_from_form(model.form(), engine)

    assert (await again.generate(again.request(ASKED))).text == said.text
    asking = model_from_form(model.form(), Engine(records=MemoryStore()))
    with pytest.raises((UsageError, CallError), match=r"known from records alone"):
        await asking.generate(asking.request(ASKED))


def test_what_describes_no_model_is_refused() -> None:
    with pytest.raises(
        UsageError,
        match=r"^This describes no model: \"\{'id': 3\}\"\. Give what a run's `run\.json` says of a model\.$",
    ):
        model_from_form({"id": 3}, Engine(records=MemoryStore()))


# --- settings in a spec ---


def test_settings_behind_a_spec_are_those_of_a_table() -> None:
    spec = "openai:m@http://h/v1?temperature=0&max_tokens=9&detail=low&effort=low&image_policy=original"
    table: dict[str, Any] = {
        "temperature": 0,
        "max_tokens": 9,
        "detail": "low",
        "effort": "low",
        "image_policy": "original",
    }

    assert named(spec) == named("openai:m@http://h/v1", table)
    assert str(named(spec).id) == "openai:m@http://h/v1"


def test_what_a_caller_or_a_table_says_goes_before_them() -> None:
    config = Config(models={"mine": {"spec": "openai:m?seed=1&top_p=0.5", "seed": 2}})

    assert named("mine", config=config).sampling == Sampling(seed=2, top_p=0.5)
    assert named("openai:m?seed=1", {"seed": 3}).sampling == Sampling(seed=3)


REFUSED = {
    "openai:m?temprature=marker": "'openai:m' has no setting 'temprature'. Nearest: 'temperature'. There are:",
    "openai:m?identity=marker": "'openai:m' has no setting 'identity'. ",
    "openai:m@http://h/v1?key=marker": "'openai:m@http://h/v1' has no setting 'key'. There are: api, detail, effort,",
    "opnai:m?key=marker": "'opnai' in 'opnai:m' is no known provider. ",
    "openai:m?temperature=hot": "The setting 'temperature' of 'openai:m' cannot be 'hot'. It takes: a number from 0.",
    "openai:m?max_tokens=0": "The setting 'max_tokens' of 'openai:m' cannot be '0'. It takes: a whole number from 1.",
    "openai:m?detail=odd": "The setting 'detail' of 'openai:m' cannot be 'odd'. It takes: one of 'auto', 'low',",
}


@pytest.mark.parametrize(("spec", "message"), REFUSED.items(), ids=REFUSED)
def test_a_setting_behind_a_spec_that_there_is_not_is_named(spec: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        named(spec)

    assert str(caught.value).startswith(message)
    assert "marker" not in str(caught.value)
