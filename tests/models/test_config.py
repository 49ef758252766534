from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from askance.chat import ModelId, Sampling
from askance.errors import ConfigError
from askance.images import ORIGINAL_POLICY
from askance.models import Azure, Config, ModelSettings, Price
from askance.models.factory import named

FULL = """
vlm = "llava"
llm = "openai:gpt-4o-mini"
prompts = "words"
store = "/tmp/records"

[models.llava]
spec = "openai:llava-hf/llava-1.5-13b-hf@http://localhost:8000/v1"
identity = "llava-1.5-13b"
temperature = 0
top_p = 0.9
seed = 7
max_tokens = 300
stop = ["END"]
detail = "high"
image_policy = "original"
price = { input = 0.2, output = 0.4, cached = 0.1 }
family = "vicuna"
key_variable = "LLAVA_KEY"
headers = { X-Team = "ads", X-Api-Key = "env:TEAM_KEY" }
extra = { top_k = 20 }
effort = "low"
token_field = "max_tokens"
timeout = 30
protocol = "paper"

[models.deployed]
spec = "openai:gpt-4o"
base_url = "https://mine.example"
api = "responses"
azure = { deployment = "ours", api_version = "2026-01-01" }
"""

LLAVA = ModelSettings(
    id=ModelId("openai", "llava-hf/llava-1.5-13b-hf", "http://localhost:8000/v1", "llava-1.5-13b"),
    sampling=Sampling(temperature=0, top_p=0.9, seed=7, max_tokens=300, stop=("END",)),
    extra={"top_k": 20, "reasoning_effort": "low"},
    image_policy=ORIGINAL_POLICY,
    detail="high",
    family="vicuna",
    protocol="paper",
    price=Price(input=0.2, output=0.4, cached=0.1),
    timeout=30,
    key_variable="LLAVA_KEY",
    headers={"X-Team": "ads", "X-Api-Key": "env:TEAM_KEY"},
    token_field="max_tokens",
)


def write(folder: Path, text: str, name: str = "askance.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_everything_that_a_file_can_say(own_place: Path) -> None:
    config = Config.load(write(own_place, FULL))
    assert (config.vlm, config.llm) == ("llava", "openai:gpt-4o-mini")
    assert (config.prompts, config.store) == (own_place / "words", Path("/tmp/records"))
    assert named("llava", config=config) == LLAVA
    assert named("deployed", config=config) == ModelSettings(
        id=ModelId("openai", "gpt-4o", "https://mine.example", "openai:ours@https://mine.example", "responses"),
        azure=Azure(deployment="ours", api_version="2026-01-01"),
    )


def test_what_is_given_goes_before_what_the_file_says(own_place: Path) -> None:
    config = Config.load(write(own_place, FULL))
    changed = named("llava", {"temperature": 1.0, "extra": {"top_k": 5}}, config=config)
    assert changed.sampling == Sampling(temperature=1.0, top_p=0.9, seed=7, max_tokens=300, stop=("END",))
    assert changed.extra == {"top_k": 5, "reasoning_effort": "low"}


def test_the_file_is_found_upwards_as_far_as_the_project_goes(own_place: Path) -> None:
    deep = own_place / "project" / "a" / "b"
    deep.mkdir(parents=True)
    write(own_place, 'vlm = "outside"')
    file = write(own_place / "project", 'vlm = "inside"')
    assert Config.find(deep) == Config(path=file, vlm="inside")
    file.unlink()
    (own_place / "project" / ".git").mkdir()
    assert Config.find(deep) == Config()


def test_a_model_that_is_built_in_can_be_chosen(own_place: Path) -> None:
    write(own_place, 'vlm = "demo"')
    assert named("demo").id.name == "demo (hand-written)"


def test_pyproject_serves_where_there_is_no_file_of_its_own(own_place: Path) -> None:
    file = write(own_place, '[tool.askance]\nllm = "one"', "pyproject.toml")
    assert Config.find() == Config(path=file, llm="one")
    own = write(own_place, 'llm = "two"')
    assert Config.find() == Config(path=own, llm="two")


def test_pyproject_without_a_table_says_nothing_and_ends_the_search(own_place: Path) -> None:
    write(own_place, 'vlm = "outside"')
    write(own_place / "project", "[project]", "pyproject.toml")
    assert Config.find(own_place / "project") == Config()


MODEL = '[models.m]\nspec = "openai:gpt-4o"\n'
HERE = "(the model 'm' in 'askance.toml')"
KEY = (
    "A value for the model 'm' in 'askance.toml' looks like a key. Keep it in an environment variable and name that: "
    '`key_variable = "MY_KEY"`, or `env:MY_KEY` in `headers`.'
)
BAD = {
    "unknown": ('vml = "m"', "'vml' in 'askance.toml' is no setting. Nearest: 'vlm'."),
    "misplaced": (
        "temperature = 0",
        (
            "'temperature' in 'askance.toml' is no setting. A model's settings belong into a table `[models.NAME]`. "
            "Known: 'llm', 'local', 'models', 'prompts', 'store', 'vlm'."
        ),
    ),
    "no text": ("vlm = 3", "'vlm' in 'askance.toml' is 3. Write a text."),
    "no table": ("models = 3", "'models' in 'askance.toml' is no table. Write a table `[models.NAME]` for each model."),
    "no model": ("models.m = 3", "'models.m' in 'askance.toml' is no table. Write a table `[models.m]`."),
    "no spec": ("[models.m]", "The model 'm' in 'askance.toml' has no spec. Add `spec = \"openai:…\"`."),
    "unknown of a model": (
        MODEL + "temprature = 0",
        f"'temprature' is no setting of a model {HERE}. Nearest: 'temperature'.",
    ),
    "key": (
        MODEL + 'api_key = "x"',
        f"'api_key' is no setting of a model {HERE}. Keys stay in the environment: `key_variable = \"MY_KEY\"`.",
    ),
    "wrong kind": (MODEL + 'seed = "7"', f"The value '7' does not fit 'seed' {HERE}. Wanted: a whole number."),
    "bool": (
        MODEL + "temperature = true",
        f"The value True does not fit 'temperature' {HERE}. Wanted: a number from 0.",
    ),
    "closed set": (MODEL + 'api = "x"', f"The value 'x' does not fit 'api' {HERE}. Wanted: 'chat' or 'responses'."),
    "price": (
        MODEL + "price = { input = 1 }",
        (
            f"The value {{'input': 1}} does not fit 'price' {HERE}. Wanted: a table with `input`, `output` and, if you "
            "like, `cached`: US dollars for a million tokens; and `batch`, the part of that which the batch interface "
            "costs."
        ),
    ),
    "key as variable": (MODEL + 'key_variable = "sk-marker0123456789abcdef"', KEY),
    "odd variable": (
        MODEL + 'key_variable = "mark er"',
        f"The value does not fit 'key_variable' {HERE}. Wanted: the name of an environment variable, never a key.",
    ),
    "key deep inside": (MODEL + 'extra = { a = [{ b = "Bearer marker0123" }] }', KEY),
    "secret header": (
        MODEL + 'headers = { Authorization = "marker" }',
        f"The header 'Authorization' holds a secret in the open {HERE}. Write `env:NAME` and set that variable.",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_what_a_file_may_not_say(own_place: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{re.escape(message)}$") as error:
        Config.load(write(own_place, text))
    assert "marker" not in str(error.value)


def test_a_file_that_is_not_toml(own_place: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"^The settings file '.*askance\.toml' is not TOML: .*line 2.*\. Mend that line; .*\.$"
    ):
        Config.load(write(own_place, 'llm = "m"\nvlm = oops\n'))


UNREADABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (Path.mkdir, "Is a directory"),
    "no text": (lambda path: path.write_bytes(b"\xff"), "'utf-8'"),
}


@pytest.mark.parametrize(("make", "words"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    make(tmp_path / "askance.toml")
    with pytest.raises(ConfigError, match=rf"cannot be read: {words}.*\. Make it a file of UTF-8 text"):
        Config.load(tmp_path / "askance.toml")


def test_settings_show_no_header() -> None:
    assert "ads" not in repr(LLAVA)


LOCALS = {
    "a folder beside the file": ('local = "models/tiny"', "{place}/models/tiny"),
    "with its provider": ('local = "hf:models/tiny"', "{place}/models/tiny"),
    "a name on the hub": ('local = "HuggingFaceTB/SmolVLM-256M-Instruct"', "HuggingFaceTB/SmolVLM-256M-Instruct"),
    "none": ("", None),
}


@pytest.mark.parametrize(("text", "local"), LOCALS.values(), ids=LOCALS)
def test_the_model_of_local(tmp_path: Path, text: str, local: str | None) -> None:
    (tmp_path / "models" / "tiny").mkdir(parents=True)
    (tmp_path / "askance.toml").write_text(text, encoding="utf-8")

    assert Config.load(tmp_path / "askance.toml").local == (local and local.format(place=tmp_path))


@pytest.mark.parametrize("spec", ["openai:gpt-4o", "vllm:models/tiny"])
def test_an_adapter_that_nobody_would_heed_is_refused(own_place: Path, spec: str) -> None:
    write(own_place, f'[models.m]\nspec = "{spec}"\nlocal = {{ adapter = "lora" }}')

    with pytest.raises(ConfigError) as refused:
        named("m")

    assert str(refused.value) == f"The model '{spec}' takes no adapter. Leave adapter out, or name an hf: model."
