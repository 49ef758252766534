"""A settings file may name a model whose weights lie on another machine."""

from __future__ import annotations

from pathlib import Path

from askance.chat import ChatResponse, Usage
from askance.cli.cache import paid
from askance.models.config import Config
from askance.replay import Record
from tests.models.local.questions import asked

SETTINGS = """\
[models.gone]
spec = "hf:models/gone"

[models.priced]
spec = "openai:mine@http://127.0.0.1:1/v1"
identity = "tiny"
price = { input = 1.0, output = 2.0 }
"""


def test_what_the_others_cost_is_told_all_the_same(own_place: Path) -> None:
    (own_place / "askance.toml").write_text(SETTINGS, encoding="utf-8")
    answer = ChatResponse(text="red", usage=Usage(input=1_000_000, output=1_000_000))

    cost = paid(Config.find())

    assert cost(Record.make("chat", asked("What?").canonical(), answer.canonical())) == 3.0
