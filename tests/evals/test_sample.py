"""Samples, predictions and scores: what they are as JSON, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import UsageError
from askance.evals import Prediction, Ranking, Sample, Score
from askance.images import Image
from askance.nodes import Example
from tests.scripted import PICTURE

texts = st.text(max_size=20)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
maps = st.dictionaries(texts, values, max_size=3)


def again(form: Any) -> Any:
    return json.loads(json.dumps(form))


@given(texts, maps, values, texts, maps)
def test_a_sample_survives_its_form(name: str, inputs: dict[str, Any], target: Any, group: str, tags: Any) -> None:
    sample = Sample(id=name, inputs=inputs, target=target, group=group or name, tags=tags)

    assert Sample.from_form(again(sample.form())) == sample


def test_a_picture_is_known_by_its_digest_afterwards() -> None:
    sample = Sample(id="cup", image=Image.from_path(PICTURE))

    found = Sample.from_form(again(sample.form()))

    assert found.image is not None
    assert found.image == sample.image
    assert (found.image.name, found.image.path) == ("brick-cup.jpg", None)


def test_a_picture_that_cannot_be_read_has_no_digest() -> None:
    form = Sample(id="gone", image=Image.from_path(Path("gone.jpg"))).form()

    assert form["image"] == {"name": "gone.jpg", "sha256": None}
    assert Sample.from_form(form).image is None


rankings = st.none() | st.builds(Ranking, st.just(["a", "b"]), st.tuples(*[st.floats(-1, 1)] * 2))


@given(st.sampled_from(["answered", "refused"]), values, maps, rankings)
def test_a_prediction_survives_its_form(outcome: Any, value: Any, trace: dict[str, Any], ranking: Any) -> None:
    links: dict[str, Any] = {"a": {"calls": []}}
    prediction = Prediction(outcome=outcome, value=value, reason="so", trace=trace, links=links, ranking=ranking)

    assert Prediction.from_form(again(prediction.form()), Path("run")) == prediction


def test_what_changes_from_run_to_run_makes_no_prediction_another() -> None:
    assert Prediction(outcome="answered", meta={"seconds": 1}) == Prediction(outcome="answered", meta={"seconds": 2})


def test_a_sample_is_of_its_own_group_where_none_is_named() -> None:
    assert [Sample(id="a").cluster, Sample(id="a", group="ad").cluster] == ["a", "ad"]


def test_a_score_as_json() -> None:
    assert Score(values={"accuracy": 1.0}, notes={"kind": "near"}, calls=("k",)).form() == {
        "values": {"accuracy": 1.0},
        "notes": {"kind": "near"},
        "calls": ["k"],
    }


@pytest.mark.parametrize("form", [{}, {"id": "a"}, {"id": "a", "image": 3}], ids=["empty", "parts", "picture"])
def test_what_is_no_sample_is_told(form: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="This is no sample of a run"):
        Sample.from_form(form)


def test_how_a_sample_came_about_is_kept_and_is_no_part_of_what_it_asks() -> None:
    plain = Sample(id="a", inputs={"question": "?"}, group="a")
    shown = replace(
        plain,
        inputs={"question": "?", "examples": [Example(values={"question": "!"}, answer="yes")]},
        trace={"shots": {"from": "knn"}},
    )

    assert "trace" not in plain.form()
    assert Sample.from_form(json.loads(json.dumps(shown.form()))) == shown
    assert shown.question() == plain.question()
    with pytest.raises(UsageError, match="no sample of a run"):
        Sample.from_form({**plain.form(), "trace": [1]})
