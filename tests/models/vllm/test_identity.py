"""Who answers: the same weights in a server, in process and at an address, and nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatResponse
from askance.errors import ConfigError, ReplayMiss
from askance.models import Engine, get_model, run_sync
from askance.models.config import Config
from askance.models.factory import named
from askance.models.local.folder import is_identity
from askance.models.settings import Price, Vllm
from askance.models.vllm import VLLMModel
from askance.models.vllm.engine_args import folder_of, identity_of
from askance.replay import MemoryStore
from tests.far_side import played
from tests.models.local.questions import asked
from tests.models.vllm.conftest import MakeFolder
from tests.servers import FakeEndpoint, Reply, Seen

EMPTY = Config()


def identity(path: Path, **vllm: Any) -> str:
    how = Vllm(**vllm)
    return identity_of(folder_of(str(path), how), how)


def test_a_server_the_engine_and_an_address_are_one(make_folder: MakeFolder) -> None:
    path = make_folder("llava")
    names = {
        named(spec, {"vllm": vllm}, config=EMPTY).id.name
        for spec, vllm in (
            (f"vllm:{path}", {}),
            (f"vllm:{path}", {"in_process": True, "port": 8123, "context": 512, "memory": 0.5}),
            (f"vllm:{path}", {"engine": {"enforce_eager": True, "block_size": 16}}),
            (f"vllm:{path}@http://localhost:8000", {}),
            (f"vllm:{path}@http://elsewhere:9000/v1", {}),
        )
    }

    assert names == {identity(path)}
    assert identity(path).startswith("vllm:llama:")
    assert identity(path).endswith(":bfloat16")


def test_how_the_weights_are_held_counts(make_folder: MakeFolder) -> None:
    path = make_folder()
    plain = identity(path)
    others = {
        identity(path, dtype="float32"): plain.replace("bfloat16", "float32"),
        identity(path, quantization="fp8"): f"{plain}:fp8",
    }
    scaled = identity(path, engine={"hf_overrides": {"rope_theta": 1}})

    assert list(others) == list(others.values())
    assert scaled.startswith(f"{plain}:")
    assert all(is_identity(name.removeprefix("vllm:")) for name in (plain, *others, scaled))


def test_a_name_that_only_a_server_knows_stands_with_its_address() -> None:
    model = named("vllm:Qwen/Qwen2.5-VL@http://localhost:8000", config=EMPTY)
    assert (model.id.name, model.id.endpoint) == (None, "http://localhost:8000")
    assert str(model.id) == str(get_model("vllm:Qwen/Qwen2.5-VL@http://localhost:8000", config=EMPTY).id)


def test_what_is_not_said_is_filled_in(make_folder: MakeFolder) -> None:
    settings = named(f"vllm:{make_folder('llava-1.5-7b')}", config=EMPTY)
    assert (settings.price, settings.timeout) == (Price(input=0.0, output=0.0), 3600.0)
    assert (settings.family, settings.vllm) == ("vicuna", Vllm())


def test_a_folder_that_is_not_whole_is_named(make_folder: MakeFolder) -> None:
    path = make_folder()
    (path / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0")
    with pytest.raises(ConfigError, match=r"^The model 'vllm:.*' is not whole: 'model\.safetensors'"):
        named(f"vllm:{path}", config=EMPTY)


def test_an_address_and_the_engine_in_process_contradict(make_folder: MakeFolder) -> None:
    spec = f"vllm:{make_folder()}@http://localhost:8000"
    settings = named(spec, {"vllm": {"in_process": True}}, config=EMPTY)
    with pytest.raises(ConfigError, match=r"is to run in process and at http://localhost:8000\. Leave out"):
        VLLMModel(settings.id.model, vllm=settings.vllm, reached=settings)


def serving(**entry: str) -> FakeEndpoint:
    """A server that lists one model and answers."""

    class Listing(FakeEndpoint):
        def _reply(self, seen: Seen) -> Reply:
            if seen.path.endswith("/models"):
                return Reply(body={"object": "list", "data": [{"id": "served", "object": "model", **entry}]})
            return super()._reply(seen)

    return Listing(lambda seen: played(ChatResponse(text="red"), seen))


async def test_an_address_is_asked_by_the_servers_name_and_replayed_without_it(make_folder: MakeFolder) -> None:
    path, records = make_folder(), MemoryStore()
    with serving(root=str(path)) as server:
        live = get_model(f"vllm:{path}@{server.url}", engine=Engine(records=records), config=EMPTY)
        first = await live.generate(live.request(asked("Which colour?").messages))
        await live.aclose()
        body = server.bodies[0]
    replay = Engine(records=records, mode="replay")
    again = get_model(str(live.id), engine=replay, config=EMPTY)
    elsewhere = get_model(f"vllm:{path}", engine=replay, config=EMPTY, vllm={"in_process": True})

    assert (first.text, body["model"], body["max_tokens"]) == ("red", "served", 1024)
    for model in (again, elsewhere):
        found = await model.generate(model.request(asked("Which colour?").messages))
        assert (found.text, found.meta.replayed) == ("red", True)


async def test_a_server_of_other_weights_is_not_asked(make_folder: MakeFolder) -> None:
    path, other = make_folder("one"), make_folder("other", weights=b"1235")
    with serving(root=str(other)) as server:
        settings = named(f"vllm:{path}@{server.url}", config=EMPTY)
        model = VLLMModel(settings.id.model, vllm=settings.vllm, reached=settings)
        with pytest.raises(ConfigError, match=r"serves other weights than"):
            await model.generate(asked("Which colour?"))
        await model.aclose()
        assert server.requests == []


def test_an_identity_alone_is_replayed_and_not_asked() -> None:
    name = f"vllm:llama:{'0' * 32}:bfloat16"
    silent = get_model(name, engine=Engine(records=MemoryStore(), mode="replay"), config=EMPTY)
    with pytest.raises(ReplayMiss):
        run_sync(silent.generate(silent.request(asked("Which colour?").messages)))
