from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from askance.agents.negative_writer import normal
from askance.evals.newyorker import CaptionFolder, RawContests
from askance.evals.newyorker.caption_choice import (
    CaptionChoice,
    GoodCaption,
    choose_captions,
    fault_of,
    official_finalists,
)
from askance.models.encoders.search import TextVectors
from tests.evals.newyorker.raw_files import Votes, captions, rated, write_annotations, write_ratings

if TYPE_CHECKING:
    from askance.models.encoders.vectors import Half

ODD_FINALISTS: dict[str, tuple[object, list[str]]] = {
    "three": (["“One.”", '"Two."', "Three. "], ["One.", "Two.", "Three."]),
    "unknown": ("UNKNOWN", []),
    "empty": ([], []),
    "NaN": (["One.", float("nan")], ["One."]),
    "twice": (["One.", "“one”", ""], ["One."]),
    "nothing": (None, []),
}


@pytest.mark.parametrize(("listed", "texts"), ODD_FINALISTS.values(), ids=ODD_FINALISTS)
def test_finalists_are_read_however_the_file_has_them(listed: object, texts: list[str], tmp_path: Path) -> None:
    write_annotations(tmp_path / "a.json", {592: listed})
    (tmp_path / "592.txt").write_text("x\n", "utf-8")
    raw = RawContests.open(annotations=tmp_path / "a.json", captions=tmp_path)

    assert official_finalists(raw.cartoons[592]) == tuple(
        GoodCaption(contest=592, text=text, source="official_winner") for text in texts
    )


FORMS = {
    "I suppose now you plan to grill me.": None,
    "Botox.": None,
    "Wait... what?": None,
    "THEY COULDN'T WAIT TO MARRY": "capitals or no letters",
    "Needs reptile. Ann, Ohio, ann@example.com": "an address or a number of a telephone",
    "See www.example.com": "an address or a number of a telephone",
    "Call 555-1234 now": "an address or a number of a telephone",
    "You're hurting me, will we ever break up?\" (technology)": "marks without sense",
    "Sit <b>down</b>": "marks without sense",
    "Well , hello": "marks without sense",
    " ".join(["word"] * 41): "more than 40 words",
    "123": "capitals or no letters",
}


@pytest.mark.parametrize(("text", "fault"), FORMS.items(), ids=FORMS)
def test_captions_that_give_themselves_away_by_their_form(text: str, fault: str | None) -> None:
    assert fault_of(text) == fault


class Directions(TextVectors):
    """Vectors of two numbers: the direction of each text is given by the first of its words that is a number."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def of(self, texts: Sequence[str]) -> list[Half]:
        self.asked += texts
        degrees = [
            math.radians(next((int(word) for word in text.strip(".").split() if word.isdigit()), 0)) for text in texts
        ]
        return [np.array([math.cos(one), math.sin(one)], dtype=np.float16) for one in degrees]


OFFICIAL = GoodCaption(contest=510, text="Official words stand here at 0.", source="official_winner")


async def chosen(
    folder: Path,
    rows: Sequence[tuple[str, Votes]],
    *,
    name: str = "510_x.csv",
    official: Sequence[GoodCaption] = (OFFICIAL,),
    vectors: Directions | None = None,
    seed: int = 0,
    unrated: bool = False,
) -> CaptionChoice:
    write_ratings(folder / name, 510, rows)
    submitted = CaptionFolder.find(folder).read(510)
    return await choose_captions(510, official, submitted, vectors=vectors, seed=seed, unrated=unrated)


def ranked(texts: Sequence[str]) -> list[tuple[str, Votes]]:
    """The texts with votes, the best first."""
    return [(text, (len(texts) - place, 1, place)) for place, text in enumerate(texts)]


async def test_without_vectors_the_three_best_are_good_and_okay_ones_are_of_the_middle_third(tmp_path: Path) -> None:
    rows = rated(510, 60)
    found = await chosen(tmp_path, rows)

    assert [each.text for each in found.good] == [OFFICIAL.text, *(text for text, _ in rows[:3])]
    assert [each.source for each in found.good] == ["official_winner", *["crowd_winner"] * 3]
    middle = {text for text, _ in rows[20:40]}
    assert set(found.okay) == {each.text for each in found.good}
    assert set(found.okay.values()) <= middle
    assert len({*found.okay.values()}) == 4
    assert found.counts == {"sent in": 60, "in the middle third by rating": 20}
    assert found.why_no_okay is None


async def test_of_the_five_best_one_of_each_cluster_is_good(tmp_path: Path) -> None:
    best = ["Same at 10.", "Same again at 11.", "Same still at 12.", "Other at 90.", "Third at 170."]
    drawn = set[str]()
    for seed in range(20):
        found = await chosen(tmp_path, ranked([*best, *captions(510, 30)]), vectors=Directions(), seed=seed)
        crowd = [each.text for each in found.good if each.source == "crowd_winner"]
        assert crowd[1:] == ["Other at 90.", "Third at 170."]
        drawn.add(crowd[0])
    assert drawn == {*best[:3]}


async def test_the_crowds_best_are_no_copies_of_the_finalists_and_no_okay_captions(tmp_path: Path) -> None:
    rows = [("official WORDS, stand here at 0", (50, 0, 1)), *rated(510, 60)]
    found = await chosen(tmp_path, rows)
    texts = [normal(each.text) for each in found.good]

    assert len({*texts}) == len(texts) == 4
    assert not {*texts} & {*map(normal, found.okay.values())}


async def test_captions_of_like_meaning_are_one_and_the_okay_one_points_elsewhere(tmp_path: Path) -> None:
    middle = [*(f"Alike words here at {degree}." for degree in range(20)), "Far words stand there at 180."]
    rows = ranked(
        [
            *(f"Best caption number at {degree}." for degree in range(300, 321)),
            *middle,
            *(f"Bad {n}." for n in range(21)),
        ]
    )
    vectors = Directions()
    found = await chosen(tmp_path, rows, vectors=vectors)

    assert found.counts["in the middle third by rating"] == 21
    assert found.counts["left out as like another in meaning"] == 21 - round(0.7 * 21)
    degrees = {text: int(okay.strip(".").split()[-1]) for text, okay in found.okay.items()}
    assert degrees[OFFICIAL.text] >= 8  # the half of 0 to 19 and 180 that is further from 0


async def test_the_okay_caption_is_like_the_good_one_in_form(tmp_path: Path) -> None:
    texts = [
        "Short one.",
        "Yes?",
        "This is a somewhat longer caption, with a comma, and it goes on and on.",
        "Now, listen!",
    ]
    best = [f"Best of all captions number {number}." for number in range(4)]
    good = GoodCaption(contest=510, text="Well, hello!", source="official_winner")
    found = await chosen(tmp_path, ranked([*best, *texts, *(f"Bad {number}." for number in range(4))]), official=[good])

    assert found.okay[good.text] == "Now, listen!"


async def test_broken_ratings_of_a_contest_are_not_used(tmp_path: Path) -> None:
    """As in contest 591: nearly all captions have votes of one kind."""
    rows = [("Ahead.", (1, 5, 0)), *((text, (0, 0, 17)) for text, _ in rated(510, 40))]
    found = await chosen(tmp_path, rows)

    assert found.good == (OFFICIAL,)
    assert found.why_no_okay == "ratings that do not tell its captions apart"
    assert not found.okay


async def test_a_second_round_alone_has_good_captions_and_no_okay_ones(tmp_path: Path) -> None:
    found = await chosen(tmp_path, rated(510, 30), name="510-round2_x.csv")

    assert len(found.good) == 4
    assert (found.okay, found.why_no_okay) == ({}, "ratings of the best captions alone")


async def test_captions_that_nobody_rated_are_taken_only_where_that_is_wanted(tmp_path: Path) -> None:
    texts = ["A caption that nobody rated.", "Another caption, unrated too.", "ALL CAPITALS", "Mail a@b.com"]
    (tmp_path / "510.txt").write_text("\n".join(texts), "utf-8")
    submitted = CaptionFolder.find(tmp_path).read(510)
    left = await choose_captions(510, [OFFICIAL], submitted, vectors=None, seed=0)
    taken = await choose_captions(510, [OFFICIAL], submitted, vectors=None, seed=0, unrated=True)

    assert (left.okay, left.why_no_okay) == ({}, "no ratings")
    assert {*taken.okay.values()} < {*texts[:2]}
    assert taken.counts["left out for capitals or no letters"] == 1
    assert taken.counts["left out for an address or a number of a telephone"] == 1


async def test_good_captions_without_enough_okay_ones_are_told(tmp_path: Path) -> None:
    found = await chosen(tmp_path, rated(510, 6))

    assert len(found.good) == 4
    assert len(found.okay) < 4
    assert found.why_no_okay == "too few okay captions"
