from __future__ import annotations

from typing import Any

import pytest

from askance.chat import ChatResponse, Sampling, Usage
from askance.errors import BadRequest
from askance.models.local.batch_row import BatchRow, Completion, SamplingParams, to_response
from askance.models.local.prefix_cache import common_length, prefix_groups
from tests.models.local.questions import asked

WARM = {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "top_k": 50}
CHOICES: dict[str, tuple[dict[str, Any], dict[str, Any], SamplingParams]] = {
    "greedy": ({"temperature": 0}, WARM, SamplingParams(top_p=0.9, top_k=50)),
    "as its authors do": ({}, WARM, SamplingParams(temperature=0.6, top_p=0.9, top_k=50)),
    "authors who say nothing": ({}, {"temperature": 0.6}, SamplingParams()),
    "as asked": ({"temperature": 2, "top_p": 0.5}, WARM, SamplingParams(temperature=2, top_p=0.5, top_k=50)),
}


def row(*ids: int, pictures: tuple[str, ...] = (), end: int = 0) -> BatchRow:
    return BatchRow(
        request=asked("What?"), ids=list(ids), pictures=pictures, picture_end=end, limit=4, params=SamplingParams()
    )


@pytest.mark.parametrize(("sampling", "own", "choice"), CHOICES.values(), ids=CHOICES)
def test_how_tokens_are_chosen(sampling: dict[str, Any], own: dict[str, Any], choice: SamplingParams) -> None:
    made = SamplingParams.of(asked("What?", sampling=Sampling(seed=1, **sampling)), own)

    assert made == SamplingParams(**{name: getattr(choice, name) for name in choice.__slots__} | {"seed": made.seed})


def test_a_seed_is_the_same_for_a_draw_and_another_for_another() -> None:
    def seed(draw: int, seed: int | None = 3) -> int:
        return SamplingParams.of(asked("What?", sampling=Sampling(seed=seed), draw=draw), {}).seed

    assert seed(0) == seed(0)
    assert len({seed(0), seed(1), seed(0, 4), seed(0, None), seed(0, None)}) == 5


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"num_beams": 5}, "has no setting 'num_beams'. Known in `extra`: 'chat_template_kwargs', 'min_p',"),
    "no number": ({"top_k": "few"}, "The value 'few' of 'top_k' is no number."),
}


@pytest.mark.parametrize(("extra", "said"), BAD.values(), ids=BAD)
def test_extras_that_do_not_fit(extra: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        SamplingParams.of(asked("What?", extra=extra), {})

    assert said in str(caught.value)


def test_an_answer_in_our_values() -> None:
    written = Completion(text="<think>Warm.</think>red", tokens=6, finish="stop", reused=5)
    about = row(*range(9))
    about.picture_tokens = 4

    assert to_response(about, written, model="m") == ChatResponse(
        text="red", thinking="Warm.", model="m", usage=Usage(input=9, output=6, cached=5, image=4)
    )


TEXTS: dict[str, tuple[list[list[int]], int]] = {
    "alone": ([[1, 2, 3]], 2),
    "equal": ([[1, 2, 3], [1, 2, 3]], 2),
    "one ends in the other": ([[1, 2], [1, 2, 3]], 1),
    "apart from the third": ([[1, 2, 3, 4], [1, 2, 4, 4]], 2),
    "nothing": ([[1, 2], [3, 4]], 0),
}


@pytest.mark.parametrize(("texts", "count"), TEXTS.values(), ids=TEXTS)
def test_what_texts_begin_with(texts: list[list[int]], count: int) -> None:
    assert common_length(texts) == count


def test_rows_about_one_picture_stand_together() -> None:
    one, two = row(1, 9, 9, 5, 6, 7, pictures=("a",), end=3), row(1, 9, 9, 5, 8, 7, pictures=("a",), end=3)
    other = row(1, 9, 9, 5, 6, 7, pictures=("b",), end=3)
    late = row(1, 2, 3, 9, 9, 5, pictures=("c",), end=5)
    early = row(1, 9, 9, 2, 3, 5, pictures=("c",), end=3)

    found = [(group.rows, group.length) for group in prefix_groups([one, other, late, two, early])]

    assert found == [((one, two), 4), ((other,), 3), ((late,), 5), ((early,), 3)]


def test_words_alone_are_shared_where_they_are_many() -> None:
    long = [row(*range(20), 30), row(*range(20), 31)]

    assert [group.length for group in prefix_groups([row(1, 2, 3), row(1, 2, 4)])] == [0]
    assert [group.length for group in prefix_groups(long)] == [20]
    assert [group.length for group in prefix_groups(long[:1])] == [0]
