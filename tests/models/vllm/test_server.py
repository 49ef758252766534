"""Servers that are started for a model: their key, their port, their end, and what is said where they do not start."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.errors import AskanceError, AuthError, ConfigError, MissingExtra, ModelError, Unreachable
from askance.models.openai.openai_model import at_loopback
from askance.models.settings import Vllm
from askance.models.vllm import VLLMModel, server_process
from askance.models.vllm.server import PYTHON_VARIABLE, ServerProcess
from tests.models.local.questions import asked
from tests.models.vllm.conftest import MakeFolder, Player

Json = dict[str, Any]


def seen_by(player: Path) -> Json:
    return json.loads(player.with_suffix(".json").read_text(encoding="utf-8"))


def alive(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    if not state.exists():
        return False
    return state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


def wait_until_gone(pid: int, *, seconds: float = 12.0) -> bool:
    until = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(pid)


async def test_a_server_comes_with_the_first_question_and_goes_with_the_model(
    make_folder: MakeFolder, player: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "Database_Password"):
        monkeypatch.setenv(name, "somebody-s-own")
    python = player()
    model = VLLMModel(make_folder(), vllm=Vllm(python=str(python), context=512))

    answer = await model.generate(asked("Which colour?"))
    seen = seen_by(python)
    running = alive(seen["pid"])
    await model.aclose()

    assert (answer.text, answer.model, running) == ("red", str(model.id), True)
    assert wait_until_gone(seen["pid"])
    assert not {"OPENAI_API_KEY", "Database_Password"} & set(seen["variables"])
    assert {"HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS"} <= set(seen["variables"])
    assert seen["key"]
    assert seen["key"] not in " ".join(seen["words"])
    assert not os.path.exists(seen["folder"])  # noqa: ASYNC240, PTH110  # a moment


async def test_two_models_of_the_same_weights_share_a_server(make_folder: MakeFolder, player: Player) -> None:
    folder, python = make_folder(), player()
    one, other = (VLLMModel(folder, vllm=Vllm(python=str(python))) for _ in range(2))

    await asyncio.gather(one.generate(asked("One?")), other.generate(asked("Two?")))
    pid = seen_by(python)["pid"]
    await one.aclose()
    still = alive(pid)
    await other.generate(asked("Three?"))
    await other.aclose()

    assert still
    assert wait_until_gone(pid)


async def test_who_does_not_know_the_key_is_not_answered(player: Player) -> None:
    server = ServerProcess("vllm:m", [], Vllm(python=str(player())))
    await server.start()
    stranger = at_loopback("m", server.url, key="a-guess-at-the-key")
    try:
        with pytest.raises(AuthError):
            await stranger.generate(asked("Which colour?"))
    finally:
        await stranger.aclose()
        server.stop()


NOT_STARTED: dict[str, tuple[Json, type[AskanceError], str]] = {
    "vllm is missing": (
        {"code": server_process.NOT_INSTALLED},
        MissingExtra,
        "which {python} has not installed. pip install 'askance[vllm]'",
    ),
    "it says why": (
        {"code": 1, "says": "ValueError: Model architectures ['OddForCausalLM'] are not supported for now."},
        ConfigError,
        "it does not run models of the kind ['OddForCausalLM']. `hf:` may run them",
    ),
    "it says something": ({"code": 1, "says": "KeyError: 'odd'"}, ConfigError, "(exit code 1). The end of its log: "),
}


@pytest.mark.parametrize(("play", "kind", "said"), NOT_STARTED.values(), ids=NOT_STARTED)
async def test_a_server_that_does_not_start_says_why(
    make_folder: MakeFolder, player: Player, play: Json, kind: type[AskanceError], said: str
) -> None:
    python = player(**play)
    model = VLLMModel(make_folder(), vllm=Vllm(python=str(python)))

    with pytest.raises(kind) as error:
        await model.generate(asked("Which colour?"))
    with pytest.raises(kind):  # without another start
        await model.generate(asked("Which colour?"))
    await model.aclose()

    assert said.format(python=python) in str(error.value)


@pytest.mark.parametrize("in_process", [False, True], ids=["server", "in process"])
async def test_a_system_without_process_groups_starts_none(
    make_folder: MakeFolder, player: Player, monkeypatch: pytest.MonkeyPatch, *, in_process: bool
) -> None:
    vllm = Vllm(in_process=True) if in_process else Vllm(python=str(player()))
    model = VLLMModel(make_folder(), vllm=vllm)
    monkeypatch.delattr(os, "killpg")

    with pytest.raises(ConfigError, match=r"would start vLLM, which runs on POSIX systems alone\. On Windows, run"):
        await model.generate(asked("Which colour?"))


async def test_a_port_that_is_taken_is_named(make_folder: MakeFolder, player: Player) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        model = VLLMModel(make_folder(), vllm=Vllm(python=str(player()), port=port))
        with pytest.raises(ConfigError, match=rf"^The port {port} for 'vllm:.*' is taken\. Leave `port` out"):
            await model.generate(asked("Which colour?"))
        await model.aclose()


async def test_an_interpreter_that_is_not_there_is_named(
    make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON_VARIABLE, "/nowhere/python")
    model = VLLMModel(make_folder())
    with pytest.raises(ConfigError, match=r"^There is no interpreter '/nowhere/python', which is to run vLLM\."):
        await model.generate(asked("Which colour?"))
    await model.aclose()


async def test_a_server_that_ends_is_started_once_more_and_then_named(make_folder: MakeFolder, player: Player) -> None:
    model = VLLMModel(make_folder(), vllm=Vllm(python=str(player(dies=True))))
    request: ChatRequest = asked("Which colour?")

    with pytest.raises(Unreachable, match=r"ended and was started again\.$"):
        await model.generate(request)
    with pytest.raises(ModelError, match=r"ended\. exit code 3: .*illegal memory access") as error:
        await model.generate(request)
    await model.aclose()

    assert not error.value.retryable


ORPHAN = """\
import asyncio, sys
from askance.models.settings import Vllm
from askance.models.vllm import VLLMModel
from tests.models.local.questions import asked

async def main():
    await VLLMModel(sys.argv[1], vllm=Vllm(python=sys.argv[2])).generate(asked("Which colour?"))
    print("answered", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_server_does_not_outlive_who_started_it(
    make_folder: MakeFolder, player: Player, number: signal.Signals
) -> None:
    folder, python = make_folder(), player()
    starter = subprocess.Popen(
        [sys.executable, "-c", ORPHAN, str(folder), str(python)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        # It heeds Ctrl-C even where the tests run in the background, with interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # one call, before any thread
    )
    with starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"answered\n"
        pid = seen_by(python)["pid"]
        assert alive(pid)
        starter.send_signal(number)
        starter.wait(20)
    assert wait_until_gone(pid)
