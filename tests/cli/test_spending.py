"""`askance run --plan` and `--budget`: what a run would cost, and what it may."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.servers import FakeEndpoint

CONFIG = """\
[models.mine]
spec = "openai:fake-model@{url}"
price = {{ input = 1, output = 2, batch = 0.5 }}
max_tokens = 300
"""


@pytest.fixture
def priced(own_place: Path, endpoint: FakeEndpoint) -> str:
    """The endpoint's model with a price, by its name in the settings file."""
    (own_place / "askance.toml").write_text(CONFIG.format(url=endpoint.url), encoding="utf-8")
    return "mine"


def test_a_plan_asks_nothing_and_leaves_nothing(
    askance: Command, endpoint: FakeEndpoint, priced: str, ads: list[str], own_place: Path
) -> None:
    before = sorted(own_place.rglob("*"))

    done = askance("run", "verbalize", *ads, "--vlm", priced, "--plan")

    assert (done.code, done.err, endpoint.requests) == (0, "", [])
    assert done.out.startswith("3 images, 15 calls: 0 on record, 15 to be made.\n")
    assert "\nonline      $0.0" in done.out
    assert "\nby batch    $0.0" in done.out
    assert "What 1 endpoint can do is asked first, in a few small calls." in done.out
    assert sorted(own_place.rglob("*")) == before


def test_a_plan_counts_what_is_on_record(askance: Command, vlm: str, ads: list[str]) -> None:
    askance("run", "verbalize", ads[0], "--vlm", vlm)

    done = askance("run", "verbalize", *ads, "--vlm", vlm, "--plan", "--json", "--concurrency", "3")

    (planned,) = done.lines
    assert (planned["images"], planned["hits"], planned["calls"], planned["probes"]) == (3, 5, 10, 0)
    assert planned["unpriced"] == {vlm: 10}
    assert (planned["dollars"], planned["batch_dollars"]) == (None, None)
    assert planned["seconds"] == 10.0
    assert all(link["measured"] for link in planned["links"].values())


def test_what_has_no_price_is_not_free(askance: Command, vlm: str, ads: list[str]) -> None:
    done = askance("run", "verbalize", *ads, "--vlm", vlm, "--plan")

    assert "\ncost        not known\n" in done.out
    assert f"No price is known for {vlm}, its 15 calls come on top: set `price` in askance.toml." in done.out


def test_of_two_models_the_sum_is_of_the_one_that_has_a_price(
    askance: Command, endpoint: FakeEndpoint, priced: str, ads: list[str], options: str
) -> None:
    llm = f"openai:another@{endpoint.url}"
    run = ["run", "action-reason", *ads, "--options", options, "--vlm", priced, "--llm", llm, "--plan"]
    told, (planned,) = askance(*run).out, askance(*run, "--json").lines

    links = [link["dollars"]["expected"] for link in planned["links"].values() if link["dollars"]]
    assert planned["dollars"]["expected"] == pytest.approx(sum(links), abs=1e-5)
    assert 0 < len(links) < len(planned["links"])
    assert planned["unpriced"].keys() == {llm}
    assert "\nonline      $0.0" in told
    assert f"No price is known for {llm}, its " in told


def test_a_run_stops_before_its_budget_is_passed_and_a_larger_one_goes_on(
    askance: Command, endpoint: FakeEndpoint, priced: str, ads: list[str]
) -> None:
    run = ["run", "verbalize", *ads, "--vlm", priced, "--json"]
    askance("models", "check", priced)
    checks = len(endpoint.requests)

    first = askance(*run, "--budget", "7calls")
    made = len(endpoint.requests) - checks
    again = askance(*run, "--budget", "7calls")
    more = askance(*run, "--budget", "99calls")

    assert (first.code, made) == (1, 7)
    assert "Of the budget of 7 calls, 7 calls spent.\n" in first.err
    assert "The next call might have passed the budget. Left: " in first.err
    assert "failed" not in first.err
    assert (again.code, len(endpoint.requests) - checks) == (1, 15)
    assert (more.code, len(more.lines)) == (0, 3)
    assert "Of the budget of 99 calls, 15 calls spent.\n" in more.err


def test_a_run_folder_keeps_its_own_ledger(askance: Command, priced: str, ads: list[str], own_place: Path) -> None:
    done = askance("run", "verbalize", *ads, "--vlm", priced, "--out", "run", "--budget", "1.00")

    assert (done.code, "Of the budget of $1.00, $0.00" in done.err) == (0, True)
    assert [path.name for path in (own_place / "run").glob("budget*")] == ["budget.db"]
    assert askance("run", "verbalize", *ads, "--vlm", priced, "--out", "run", "--budget", "1.00").code == 0


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ("plenty", "askance: 'plenty' is not a budget.\n  → Write 5.00 for US dollars, 20000tokens, or 100calls.\n"),
        (
            "5.00",
            (
                "askance: What '{vlm}' costs is not known, so a budget in dollars cannot hold it.\n  → Set its `price` "
                "in askance.toml (US dollars for a million tokens, 0 where it is free), or give a budget in tokens or "
                "calls.\n"
            ),
        ),
    ],
    ids=["no budget", "no price"],
)
def test_a_budget_that_cannot_be_held(
    budget: str, message: str, askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str]
) -> None:
    done = askance("run", "verbalize", *ads, "--vlm", vlm, "--budget", budget)

    assert (done.code, done.err) == (2, message.format(vlm=vlm))
    assert endpoint.requests == []


def test_the_json_of_a_plan_is_one_line(askance: Command, vlm: str, ads: list[str]) -> None:
    done = askance("run", "verbalize", *ads, "--vlm", vlm, "--plan", "--json")

    assert json.loads(done.out)["links"].keys() == {"objects", "scene_text", "narration", "unusual", "description"}
