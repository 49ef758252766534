"""The command against vLLM: real weights, real photographs; and replayed with the server stopped.

The model sees nothing and is small: what it says is of no interest, but that each of its answers, cut off, empty or
beside the point, ends as what it is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from askance.chat import OUTCOMES
from tests.slow.commands import OPTIONS, Place, Ran
from tests.slow.conftest import Switch
from tests.slow.environments import ROOT

pytestmark = [pytest.mark.slow(group="servers"), pytest.mark.xdist_group("chains")]

SETTINGS = """\
[models.blind]                          # free to speak its mind
spec = "openai:blind-vlm@{url}"
temperature = 0
max_tokens = 120
extra = {{ repetition_penalty = 1.3 }}  # or it says one thing for ever

[models.curt]                           # cut off in the middle of its JSON
spec = "openai:blind-vlm@{url}"
temperature = 0
max_tokens = 3

[models.loose]                          # any JSON object will do
spec = "openai:blind-vlm@{url}"
temperature = 0
max_tokens = 60
protocol = "json_object"

[models.prose]                          # JSON only if it feels like it
spec = "openai:blind-vlm@{url}"
temperature = 0
max_tokens = 60
protocol = "prompted"

[models.empty]                          # held to an empty list, whatever it is asked
spec = "openai:blind-vlm@{url}"
temperature = 0
protocol = "prompted"
extra = {{ structured_outputs = {{ choice = ['{{"objects": []}}'] }} }}

[models.chained]                        # the same through LangChain
spec = "langchain:openai:blind-vlm"
base_url = "{url}"
temperature = 0
max_tokens = 120
extra = {{ repetition_penalty = 1.3 }}
"""
RUNS = {
    "action-reason": ("action-reason", "photos", "--vlm", "blind"),
    "two models": ("action-reason", "photos/chelsea.png", "--vlm", "curt", "--llm", "blind"),
    "cut off": ("action-reason", "photos", "--vlm", "curt"),
    "prose": ("action-reason", "photos/coffee.png", "photos/rocket.jpg", "--vlm", "prose"),
    "loose": ("action-reason", "photos/coffee.png", "--vlm", "loose"),
    "empty": ("action-reason", "photos/coffee.png", "--vlm", "empty"),
    "end to end": ("end-to-end", "photos", "--vlm", "blind"),
    "langchain": ("action-reason", "photos/chelsea.png", "photos/rocket.jpg", "--vlm", "chained"),
    "paper": ("end-to-end", "photos", "--vlm", "blind", "--protocol", "paper", "--choose", "single"),
}
"""What is run, live at first and later replayed."""


@dataclass(frozen=True, kw_only=True)
class Live:
    """A run against the server, and what the server and the store had to do with it."""

    ran: Ran
    served: int
    """Requests that the server counted meanwhile."""
    known: set[str]
    """Calls that were on record before."""
    recorded: set[str]
    """Calls that came on record meanwhile."""


class Lab:
    """A place beside a server; each run is made once."""

    def __init__(self, switch: Switch, place: Place) -> None:
        self.switch = switch
        self.place = place
        self.live = cache(self._live)

    def _live(self, name: str) -> Live:
        server = self.switch.on()
        served, known = server.requests_served, self.place.keys()
        ran = self.place.run("run", *RUNS[name], "--options", "options.json", "--json")
        recorded = self.place.keys() - known
        return Live(ran=ran, served=server.requests_served - served, known=known, recorded=recorded)

    def replay(self, name: str) -> Ran:
        return self.place.run("run", *RUNS[name], "--options", "options.json", "--json", "--replay")


@pytest.fixture(scope="module")
def lab(vllm_switch: Switch, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A user's folder whose models have been checked."""
    settings = SETTINGS.format(url=vllm_switch.on().url)
    place = Place.make(tmp_path_factory.mktemp("vllm") / "work", photos, settings)
    for model in ("blind", "chained"):  # so that no run has to find out what the endpoint can do
        assert place.run("models", "check", model).code == 0
    return Lab(vllm_switch, place)


def test_check_says_what_the_endpoint_can_do(lab: Lab) -> None:
    server = lab.switch.on()
    said = " ".join(lab.place.run("models", "check", "blind").out.split())
    assert said.startswith(
        f"openai:blind-vlm@{server.url} JSON schema enforced images yes seed yes log-probabilities yes "
        "tool calls no boxes in pictures none that can be used model as served blind-vlm "
        "answers are asked by JSON schema asked "
    )


@pytest.mark.parametrize("name", RUNS)
def test_a_line_for_each_photograph_in_order(lab: Lab, name: str) -> None:
    ran = lab.live(name).ran
    named = [Path(word).name for word in RUNS[name] if word.startswith("photos/")]
    schema: Any = json.loads((ROOT / "askance" / "chains" / "output_line.schema.json").read_text(encoding="utf-8"))
    assert [Path(line["image"]).name for line in ran.lines] == (named or sorted(OPTIONS))
    for line in ran.lines:
        jsonschema.validate(line, schema)


@pytest.mark.parametrize("name", RUNS)
def test_every_call_is_counted(lab: Lab, name: str) -> None:
    live = lab.live(name)
    assert live.ran.meta("calls") + live.ran.meta("replayed") == len(live.ran.calls)
    assert set(live.ran.calls) - live.known == live.recorded
    assert live.ran.meta("calls") == len(live.recorded) == live.served


@pytest.mark.parametrize("name", RUNS)
def test_every_outcome_is_named(lab: Lab, name: str) -> None:
    ran = lab.live(name).ran
    for line in ran.lines:
        has_answer = line["outcome"] == "answered"
        count = len(OPTIONS[Path(line["image"]).name])
        assert line["outcome"] in OUTCOMES
        assert (line["answers"] is not None) == has_answer
        assert set(line["answers"] or ()) <= set(range(1, count + 1))
        assert has_answer or line["reason"]
    assert ran.code == any(line["outcome"] != "answered" for line in ran.lines)


@pytest.mark.parametrize("name", RUNS)
def test_who_has_no_answer_is_named_on_stderr(lab: Lab, name: str) -> None:
    ran = lab.live(name).ran
    for line in ran.lines:
        assert (f"\n  {line['image']}  " in ran.err) == (line["outcome"] != "answered")


def test_each_link_asks_once_and_once_more_where_it_was_not_read(lab: Lab) -> None:
    for line in lab.live("action-reason").ran.lines:
        for link in line["links"].values():
            assert len(link["calls"]) <= 2
            assert len(link["calls"]) <= 1 or link["outcome"] in {"answered", "invalid", "truncated"}
        if all(len(link["calls"]) == 1 for link in line["links"].values()):
            assert line["meta"]["calls"] + line["meta"]["replayed"] + line["meta"]["shared"] == 7


def test_json_that_is_cut_off_is_no_answer(lab: Lab) -> None:
    for line in lab.live("cut off").ran.lines:
        seen = [line["links"][link] for link in ("objects", "scene_text", "narration", "unusual")]
        assert [link["outcome"] for link in seen] == ["truncated"] * 4
        assert all(link["raw"] and not is_json(link["raw"]) for link in seen)
        assert set(line["verbalization"].values()) == {None}


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_an_empty_list_says_that_there_are_none(lab: Lab) -> None:
    (line,) = lab.live("empty").ran.lines
    assert line["links"]["objects"]["outcome"] == "answered"
    assert line["verbalization"]["objects"] == []


def test_prose_in_the_place_of_json_is_no_answer(lab: Lab) -> None:
    unread = [link for link in lab.live("prose").ran.links if link["outcome"] == "invalid"]
    assert unread
    assert all(link["raw"] and len(link["calls"]) == 2 for link in unread)


def test_a_prompt_beyond_the_context_fails_as_that(lab: Lab) -> None:
    lab.switch.on()
    reasons = [f"I should buy tea number {number} because it is good for me." for number in range(500)]
    (lab.place.folder / "many.txt").write_text("\n".join(reasons), encoding="utf-8")
    ran = lab.place.run(
        *("run", "end-to-end", "photos/coffee.png", "--vlm", "blind", "--options", "many.txt", "--json")
    )
    (line,) = ran.lines
    assert (line["outcome"], line["links"]["answers"]["error"], ran.code) == ("failed", "ContextExceeded", 1)


def test_a_second_run_asks_nothing(lab: Lab) -> None:
    first = lab.live("end to end").ran
    second = lab.place.run("run", *RUNS["end to end"], "--options", "options.json", "--json")
    assert (second.meta("calls"), second.meta("replayed")) == (0, len(first.calls))


@pytest.mark.parametrize("name", RUNS)
def test_a_replay_with_the_server_stopped_prints_the_same(lab: Lab, name: str) -> None:
    live = lab.live(name).ran
    lab.switch.off()
    replayed = lab.replay(name)
    assert replayed.lasting == live.lasting
    assert replayed.code == live.code
    assert (replayed.meta("calls"), replayed.meta("replayed")) == (0, len(live.calls))
