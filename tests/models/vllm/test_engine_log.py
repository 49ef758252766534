"""The words of the engine in process: in a file that is kept as long as the process, read from a moment on."""

from __future__ import annotations

import json
import logging.config
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from askance.models.vllm.engine_log import LOGGING_VARIABLE, EngineLog


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (LOGGING_VARIABLE, "DO_NOT_TRACK", "VLLM_NO_USAGE_STATS", "VLLM_WORKER_MULTIPROC_METHOD"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    yield
    logger = logging.getLogger("vllm")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


def test_what_is_said_goes_to_a_file_and_is_read_from_the_start_of_an_engine(no_variables: None) -> None:
    first = EngineLog.opened()
    logging.config.dictConfig(json.loads(Path(os.environ[LOGGING_VARIABLE]).read_text(encoding="utf-8")))
    logging.getLogger("vllm.engine").info("one")
    second = EngineLog.opened()
    logging.getLogger("vllm.engine").error("two")

    assert first.file == second.file
    assert first.read() == "one\ntwo\n"
    assert second.read() == "two\n"
    assert (os.environ["VLLM_NO_USAGE_STATS"], os.environ["VLLM_WORKER_MULTIPROC_METHOD"]) == ("1", "spawn")


def test_what_the_user_has_set_stays(no_variables: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOGGING_VARIABLE, str(tmp_path / "own.json"))
    assert EngineLog.opened().read() == ""
    assert os.environ[LOGGING_VARIABLE] == str(tmp_path / "own.json")
