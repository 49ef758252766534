from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from askance.chat import key_of
from askance.errors import BadImage, BadRecord, ConfigError, ModelError, ReplayMiss, UsageError
from askance.images import CLEAN_POLICY, ORIGINAL_POLICY, Image, RegionView
from askance.models import Engine, ScriptedScorer, collect_keys, get_scorer
from askance.replay import MemoryStore, Mode, Record
from tests.scripted import PICTURE, PICTURES

CUP, HORSE = Image.load(PICTURE), Image.load(PICTURES / "coin-horse.jpg")


def scripted(identity: str | None = "eye") -> ScriptedScorer:
    """Likes texts that share words with the picture's name: `brick-cup.jpg`."""
    return ScriptedScorer(lambda image, text: sum(word in image.name for word in text.split()) / 4, identity=identity)


def over(records: MemoryStore, mode: Mode = "auto") -> Engine:
    return Engine(records=records, mode=mode)


def request(image: Image, text: str) -> dict[str, Any]:
    return {
        "model": {"name": "eye"},
        "image": {"sha256": image.sha256, "policy": CLEAN_POLICY.canonical()},
        "text": text,
    }


async def test_each_picture_and_text_has_a_record() -> None:
    records = MemoryStore()
    scorer = get_scorer(scripted(), engine=over(records))

    assert await scorer.score(CUP, ["brick cup", "coin"]) == [0.5, 0.0]
    assert await scorer.score(HORSE, ["coin"]) == [0.25]
    kept = {record.key: record.response for record in records}
    assert kept == {
        key_of("score", request(CUP, "brick cup")): {"score": 0.5},
        key_of("score", request(CUP, "coin")): {"score": 0},
        key_of("score", request(HORSE, "coin")): {"score": 0.25},
    }
    assert {record.kind for record in records} == {"score"}


async def test_equal_texts_are_scored_once_and_what_is_on_record_never() -> None:
    script = scripted()
    scorer = get_scorer(script, engine=over(MemoryStore()))

    assert await scorer.score(CUP, ["cup", "coin", "cup"]) == [0.25, 0.0, 0.25]
    assert await scorer.score(CUP, ["coin", "brick"]) == [0.0, 0.25]
    assert script.asked == [("brick-cup.jpg", ("cup", "coin")), ("brick-cup.jpg", ("brick",))]


async def test_a_replay_needs_the_digest_of_the_picture_and_no_more() -> None:
    records = MemoryStore()
    scorer = get_scorer(scripted(), engine=over(records))
    await scorer.score(CUP, ["cup"])
    known = Image.from_digest(CUP.sha256, name="elsewhere.png")

    replayed = get_scorer(scorer.form(), engine=over(records, "replay"))

    assert await replayed.score(known, ["cup"]) == [0.25]
    with pytest.raises(ReplayMiss, match=r"^No score answer is on record"):
        await replayed.score(known, ["coin"])
    with pytest.raises(UsageError, match=r"known by its records alone, and they lack the picture 'brick-cup.jpg' with"):
        await get_scorer(scorer.form(), engine=over(records)).score(CUP, ["coin"])


async def test_the_keys_are_those_of_the_records_and_are_noted() -> None:
    records = MemoryStore()
    scorer = get_scorer(scripted(), engine=over(records))

    with collect_keys() as noted:
        await scorer.score(CUP, ["cup", "coin", "cup"])

    assert scorer.keys(CUP, ["cup", "coin", "cup"]) == tuple(noted)
    assert sorted(noted) == sorted(records.keys())


async def test_how_pictures_are_prepared_enters_the_key() -> None:
    script, as_it_is = scripted(), scripted()
    as_it_is.policy = ORIGINAL_POLICY  # pyright: ignore[reportAttributeAccessIssue]  # as a scorer may have
    records = MemoryStore()

    await get_scorer(script, engine=over(records)).score(CUP, ["cup"])
    other = get_scorer(as_it_is, engine=over(records))
    scores = await other.score(CUP, ["cup"])

    assert len(records) == 2
    described = get_scorer(other.form(), engine=over(records, "replay"))
    assert (await described.score(CUP, ["cup"]), described.keys(CUP, ["cup"])) == (scores, other.keys(CUP, ["cup"]))


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([0.5], "'wrong' was asked for 2 scores and gave 1."),
        ([0.5, math.nan], "'wrong' gave nan as a score, which is no number."),
        ([0.5, math.inf], "'wrong' gave inf as a score, which is no number."),
    ],
    ids=["too few", "no number", "without end"],
)
async def test_what_is_no_score_is_no_answer(scores: list[float], message: str) -> None:
    class Wrong:
        id = "wrong"

        async def score(self, image: Image, texts: object) -> list[float]:
            return scores

    records = MemoryStore()
    with pytest.raises(ModelError) as caught:
        await get_scorer(Wrong(), engine=over(records)).score(CUP, ["cup", "coin"])
    assert (str(caught.value), len(records)) == (message, 0)


async def test_a_damaged_record_is_said_to_be() -> None:
    records = MemoryStore([Record.make("score", request(CUP, "cup"), {"score": True})])

    with pytest.raises(BadRecord, match=r"holds no score\."):
        await get_scorer(scripted(), engine=over(records)).score(CUP, ["cup"])


async def test_a_picture_that_is_not_there_is_said_to_be_none() -> None:
    with pytest.raises(BadImage, match=r"missing\.png"):
        await get_scorer(scripted(), engine=over(MemoryStore())).score(Image.load("missing.png"), ["cup"])


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ("nothing:here", ConfigError, "'nothing:here' names no scorer. "),
        (
            3,
            UsageError,
            "A int is no scorer. Give `clip:FOLDER` for CLIP, SigLIP and their like, `bem:FOLDER` for answers, or an",
        ),
    ],
    ids=["spec", "object"],
)
def test_what_is_no_scorer_is_said_to_be_none(given: Any, kind: type[UsageError], message: str) -> None:
    with pytest.raises(kind) as caught:
        get_scorer(given, engine=over(MemoryStore()))
    assert str(caught.value).startswith(message)


# --- texts against other texts ---


CORNER = RegionView("crop", ((0, 0, 8, 8),))
ABOUT = {"question": "What is odd?", "reference": "the cup"}


class Sharing:
    """Likes texts that share words with the reference."""

    id = "sharing"

    async def score_texts(self, about: Mapping[str, str], texts: Sequence[str]) -> list[float]:
        return [len({*about["reference"].split()} & {*text.split()}) / 2 for text in texts]


async def test_texts_are_scored_against_texts_and_kept() -> None:
    records = MemoryStore()
    scorer = get_scorer(Sharing(), engine=over(records))

    assert await scorer.score_texts(ABOUT, ["a cup", "the cup"]) == [0.5, 1.0]
    replayed = get_scorer(scorer.form(), engine=over(records, "replay"))
    assert await replayed.score_texts(ABOUT, ["the cup"]) == [1.0]
    assert {record.key for record in records} == set(scorer.keys(ABOUT, ["the cup", "a cup"]))
    assert scorer.lacking(ABOUT, ["a cup", "bricks"]) == set(scorer.keys(ABOUT, ["bricks"]))
    other = {**ABOUT, "question": "?"}
    assert scorer.lacking(other, ["a cup"]) == set(scorer.keys(other, ["a cup"]))


async def test_who_takes_no_pictures_or_no_views_says_so() -> None:
    with pytest.raises(UsageError, match=r"^The scorer 'sharing' takes no pictures\. Give one that does: "):
        await get_scorer(Sharing(), engine=over(MemoryStore())).score(CUP, ["a cup"])
    with pytest.raises(UsageError, match=r"^The scorer 'eye' takes no texts without a picture\."):
        await get_scorer(scripted(), engine=over(MemoryStore())).score_texts(ABOUT, ["a cup"])
    with pytest.raises(UsageError, match=r"^The scorer 'eye' takes no part of a picture\."):
        await get_scorer(scripted(), engine=over(MemoryStore())).score(CUP, ["a cup"], view=CORNER)
