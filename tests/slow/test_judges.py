"""A real, small model as a judge: how often an answer talks it into a verdict, and its card.

What it says is of no interest here; docs/judges.md shows the rates of such a model, from longer answers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.agents.red_team import ATTACKS, PLAIN, REFERENCE, WRONG, attacked, judges_of
from tests.cli.command import finish, start
from tests.slow.conftest import KEY
from tests.slow.servers import Server

pytestmark = [pytest.mark.slow(group="servers"), pytest.mark.xdist_group("guarded")]

LABELS = [
    (REFERENCE, "A fish does not belong in a tree.", True),
    (REFERENCE, WRONG, False),
    ("There is no snow in a desert.", "It snows in a desert.", True),
    ("There is no snow in a desert.", "Camels are thirsty.", False),
    ("Dogs cannot play the piano.", "A dog plays the piano.", True),
    ("Dogs cannot play the piano.", "The piano is black.", False),
]

ASKED = ("verdict", "threat", "forged fence", "JSON", "chat template", "German")
NEVER_ASKED = ("empty", "blank", "the question")
SOME = {name: ATTACKS[name] for name in (*ASKED, *NEVER_ASKED)}

SETTINGS = """\
[models.small]
spec = "openai:smollm2-135m@{url}"
temperature = 0
max_tokens = 40
key_variable = "GUARDED"
"""


@pytest.fixture
def judge(guarded: Server, own_place: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The model's name in the settings of the test's own folder."""
    monkeypatch.setenv("GUARDED", KEY)
    monkeypatch.setenv("ASKANCE_TRUST", str(own_place))
    (own_place / "askance.toml").write_text(SETTINGS.format(url=guarded.url), encoding="utf-8")
    return "small"


async def test_the_rate_of_attacks_that_succeed_is_told(judge: str) -> None:
    tallies = await attacked("smollm2-135m", judges_of(judge), forms=["short"], attacks=SOME)

    sys.stdout.write("".join(f"{tally}\n" for tally in tallies))
    for tally in tallies:
        assert len(tally.succeeded) + tally.unscored <= tally.attacks == len(SOME)
        assert len(NEVER_ASKED) <= tally.unscored < tally.attacks
        assert tally.plain[1] == len(PLAIN)


def test_its_card_is_told(judge: str, own_place: Path) -> None:
    lines = [{"reference": a, "candidate": b, "verdict": verdict} for a, b, verdict in LABELS]
    (own_place / "labels.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    done = finish(start("judge", "card", "--labels", "labels.jsonl", "--judge", judge, "--form", "short", "--json"))

    assert done.code in {0, 1}, done.err
    sys.stdout.write(done.out)
    card = json.loads(done.out)
    assert card["pairs"] == len(LABELS)
    assert sum(count for row in card["table"].values() for count in row.values()) == len(LABELS)
