from __future__ import annotations

from random import Random

import pytest

from askance.errors import MissingExtra
from askance.evals.negatives import OptionSet
from askance.evals.negatives.annotation_artifacts import (
    AnnotationArtifacts,
    TextOnlyAccuracy,
    features_of,
    find_artifacts,
    statements_of,
)
from tests.evals.negatives.sets import GOOD, THINGS, longer, option_set, symmetrical


def tells(found: AnnotationArtifacts) -> dict[str, TextOnlyAccuracy]:
    return {tell.features: tell for tell in found.accuracies if tell.kind is None}


def test_longer_negatives_are_found_by_every_look() -> None:
    found = find_artifacts(longer())

    assert {look: tell.accuracy for look, tell in tells(found).items()} == {"words": 1.0, "form": 1.0, "all": 1.0}
    assert found.found
    assert {"like", "very", "much"} & {*found.wrong_words}
    assert found.lengths.difference.value == found.lengths.wrong - found.lengths.true == 8.0
    assert (found.lengths.longest_true.value, found.lengths.chance) == (0.0, 0.5)


def test_a_symmetrical_set_gives_nothing_away() -> None:
    found = find_artifacts(symmetrical())

    assert not found.found
    assert [tell.above_chance for tell in found.accuracies] == [False] * 3
    assert found.lengths.difference.value == 0.0


def test_marks_alone_give_away_too() -> None:
    sets = [
        option_set(each.key, [text.replace("because", "Because") for text in each.true], [(one.text, "action")])
        for each in symmetrical()
        for one in each.negatives
    ]
    found = tells(find_artifacts(sets))

    assert not found["words"].above_chance
    assert found["form"].accuracy == 1.0


def test_no_twin_of_a_statement_is_among_its_examples() -> None:
    """Words of one image alone say nothing of another: what is learnt by heart counts for nothing."""
    names = [f"word{place}" for place in range(30)]
    sets = [option_set(name, [f"I buy {name} here"], [(f"I sell {name} here", "verb")]) for name in names]
    own = [option_set(name, [f"I buy {name} yes{name}"], [(f"I buy {name} no{name}", "verb")]) for name in names]

    assert tells(find_artifacts(sets))["words"].accuracy == 1.0
    assert not find_artifacts(own).found


def drawn(*, planted: float, images: int = 60) -> list[OptionSet]:
    """Four negatives an image that are true of others; a part of them says "whereas" in the place of "because"."""
    chance = Random(3)
    true = {
        f"{place}": f"I should buy {chance.choice(THINGS)} because it is {chance.choice(GOOD)} and like {place}"
        for place in range(images)
    }

    def wrong(key: str) -> list[tuple[str, None]]:
        others = chance.sample([text for other, text in true.items() if other != key], 4)
        return [(text.replace("because", "whereas") if chance.random() < planted else text, None) for text in others]

    return [option_set(key, [text], wrong(key)) for key, text in true.items()]


def test_statements_of_other_images_give_nothing_away() -> None:
    found = find_artifacts(drawn(planted=0))

    assert not found.found
    assert tells(found)["words"].accuracy == pytest.approx(0.5, abs=0.1)


def test_a_giveaway_in_half_of_other_images_statements_is_found() -> None:
    found = find_artifacts(drawn(planted=0.5))

    assert tells(found)["words"].accuracy > 0.65
    assert tells(found)["words"].above_chance
    assert found.wrong_words[0] in {"whereas", "whereas it"}


def test_where_all_images_share_their_statements_nothing_is_trained() -> None:
    true = [f"I should buy {thing}" for thing in THINGS]
    sets = [
        option_set(text, [text], [(other, None) for other in true if other != text]) for text in true
    ]  # fmt: skip

    assert find_artifacts(sets).reason == "the images share too many of their statements"


def test_each_kind_is_looked_at_alone() -> None:
    sets = [
        option_set(each.key, each.true, [(each.negatives[0].text, "object"), (f"{one.text} because", "reason")])
        for each in symmetrical()
        for one in each.negatives
    ]
    by_kind = {tell.kind: tell for tell in find_artifacts(sets).accuracies if tell.kind}

    assert by_kind["reason"].accuracy == 1.0
    assert not by_kind["object"].above_chance
    assert (by_kind["object"].statements, by_kind["object"].images) == (72, 36)


def test_every_statement_has_its_probability_from_other_images() -> None:
    sets = longer()
    found = find_artifacts(sets)

    assert len(found.probability) == len(statements_of(sets)) == 72
    assert all(found.probability[each.key, each.negatives[0].text] > 0.5 for each in sets)


def test_the_seed_decides() -> None:
    assert find_artifacts(symmetrical(), seed=3) == find_artifacts(symmetrical(), seed=3)


def test_few_images_train_nothing() -> None:
    found = find_artifacts(longer(9))

    assert (found.accuracies, found.reason, found.found) == ((), "it takes at least 10 images", False)
    assert found.lengths.difference.value == 8.0


def test_without_scikit_learn_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn", None)

    with pytest.raises(MissingExtra, match=r"askance\[audit\]"):
        find_artifacts(longer())
    assert find_artifacts(longer(), train=False).reason == "it was not asked for"


def test_what_is_seen_of_a_statement() -> None:
    assert features_of("Buy  Tea!", "words") == {"word buy": 1.0, "word tea": 1.0, "word buy tea": 1.0}
    assert features_of("Buy  Tea!", "form") == {
        "mark !": 1.0,
        "words": 0.2,
        "letters": 0.18,
        "capitals": 1.0,
        "blanks": 1.0,
        "end !": 1.0,
    }
