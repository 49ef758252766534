"""WHOOPS!'s tasks and chains against vLLM: a model that sees nothing identifies and explains, and judges itself.

What it says is of no interest, but that each answer ends as what it is, that other pictures change nothing, and that no
score stands without what is known of its judge.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from askance.demo import PICTURES
from tests.evals.whoops import files
from tests.slow.commands import Place, Ran
from tests.slow.conftest import Switch

pytestmark = [pytest.mark.slow(group="servers"), pytest.mark.xdist_group("blind")]

SETTINGS = """\
[models.blind]
spec = "openai:blind-vlm@{url}"
temperature = 0
max_tokens = 120
extra = {{ repetition_penalty = 1.3 }}
"""
PAIRS = 3
"""As many pictures of the demo are none of the data's."""
FIGURES = ("accuracy", "both of a pair", "accuracy of weird", "accuracy of normal", "said weird")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, photos: Path, vllm_switch: Switch) -> Place:
    """A folder with data of the first release's shape over the demo's pictures, their pairs, and people's labels."""
    server = vllm_switch.on()
    made = Place.make(tmp_path_factory.mktemp("weird") / "place", photos, SETTINGS.format(url=server.url))
    weird = files.first_release(made.folder / "weird")
    normal = weird / "pairs" / "normal"
    normal.mkdir(parents=True)
    for name, picture in zip(files.IDS[:PAIRS], plain_pictures(), strict=True):
        shutil.copyfile(picture, normal / f"{name}.png")
    labels = [
        {"reference": row["crowd_explanations"][0], "candidate": text, "verdict": verdict}
        for row in files.rows()
        for text, verdict in ((f"It is odd: {row['crowd_explanations'][1]}.", True), ("The light is warm.", False))
    ]
    (made.folder / "labels.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in labels), encoding="utf-8")
    return made


def plain_pictures() -> list[Path]:
    """Pictures of the demo that are none of the weird ones."""
    return [path for path in sorted(PICTURES.glob("*.jpg")) if path.stem not in files.NAMES]


def evaluated(place: Place, task: str, out: str, *more: str) -> dict[str, Any]:
    """The run of a task as `--json` tells it."""
    done = place.run("eval", "run", task, "--data", "weird", "--vlm", "blind", "--out", out, "--json", *more)
    assert done.code in {0, 1}, done.err
    assert done.out, done.err
    return done.lines[0]


def read(place: Place, *words: str) -> Ran:
    done = place.run(*words, OPENAI_API_KEY="nobody-asks")
    assert done.code in {0, 1}, done.err
    return done


@pytest.fixture(scope="module")
def identified(place: Place) -> dict[str, dict[str, Any]]:
    """The runs of `whoops/identify`: looking, and shown other pictures."""
    return {
        "looking": evaluated(place, "whoops/identify", "looking"),
        "swapped": evaluated(place, "whoops/identify", "swapped", "--control", "swapped-image"),
    }


def test_every_picture_of_a_pair_ends_in_a_named_outcome(identified: dict[str, dict[str, Any]]) -> None:
    for run in identified.values():
        assert sum(run["outcomes"].values()) == 2 * PAIRS
        assert [figure["metric"] for figure in run["figures"]][: len(FIGURES)] == [*FIGURES]


def test_a_blind_model_is_tied_with_itself_on_other_pictures(
    place: Place, identified: dict[str, dict[str, Any]]
) -> None:
    compared = read(place, "compare", "looking", "swapped", "--json", "--convention", "answered").lines[0]
    told = read(place, "compare", "looking", "swapped", "--convention", "answered")

    sys.stdout.write(told.out)
    verdicts = {row["metric"]: row["verdict"] for row in compared["metrics"] if row["n"]}
    assert identified["looking"]["outcomes"]["answered"] > 0
    assert verdicts["accuracy"] == verdicts["both of a pair"] == "tied"


@pytest.fixture(scope="module")
def card(place: Place) -> dict[str, Any]:
    """The card of the model as a judge, kept as the file that tasks take."""
    done = read(place, "judge", "card", "--labels", "labels.jsonl", "--judge", "blind", "--form", "short", "--json")
    (place.folder / "card.json").write_text(done.out, encoding="utf-8")
    return done.lines[0]


def test_explanations_are_judged_by_the_same_model_and_its_card_stands_with_the_score(
    place: Place, card: dict[str, Any]
) -> None:
    sys.stdout.write(read(place, "judge", "card", "--labels", "labels.jsonl", "--judge", "blind", "--form", "short",
                          "--replay").out)  # fmt: skip
    run = evaluated(place, "whoops/explain", "explain", "-T", "judge=blind", "-T", "card=card.json")
    table = read(place, "eval", "table", "explain").out

    sys.stdout.write(table)
    assert card["pairs"] == 2 * len(files.NAMES)
    assert sum(run["outcomes"].values()) == len(files.NAMES)
    sentence = run["notes"][0]
    assert sentence.startswith("Judged by openai:blind-vlm")
    assert "on 10 labelled pairs (labels.jsonl) its accuracy is" in sentence
    assert sentence in table.replace("\\", "")  # what Markdown would read as a link is escaped


CHAINS = {
    "explain": ("explain",),
    "identify": ("identify",),
    "explain by a caption": ("explain", "--context", "caption"),
    "identify by a caption": ("identify", "--context", "caption"),
}


@pytest.mark.parametrize("words", CHAINS.values(), ids=CHAINS)
def test_the_chains_answer_for_any_picture(place: Place, words: tuple[str, ...]) -> None:
    done = read(place, "run", *words, "photos", "--vlm", "blind", "--json")

    assert len(done.lines) == 4
    for line in done.lines:
        assert (line["outcome"] == "answered") == (line["reply"] is not None)
        if words[0] == "identify" and line["reply"] is not None:
            assert line["reply"] in {"weird", "normal"}


def test_the_suite_is_had_again_with_the_server_stopped(
    place: Place, card: dict[str, Any], vllm_switch: Switch
) -> None:
    told = ("-T", "judge=blind", "-T", "card=card.json")
    live = evaluated(place, "whoops/explain", "live", *told)
    server = vllm_switch.on()
    vllm_switch.off()
    again = evaluated(place, "whoops/explain", "again", *told, "--replay")

    assert not server.running
    assert card["figures"]
    assert (again["figures"], again["notes"]) == (live["figures"], live["notes"])
