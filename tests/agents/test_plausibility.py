"""Chat models that say how plausible inferences are: scores, calls, plans, replays and what cannot be asked."""

from __future__ import annotations

import json
import math
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from askance.agents import PlausibilityScorer
from askance.agents.plausibility import chain_spec, vlm_spec
from askance.agents.region import region_words, speaks_of_mark
from askance.chains import Plan, Planner
from askance.chat import ChatRequest, ChatResponse
from askance.errors import BadRequest, ConfigError, ImagesRejected, NoLogprobs, OverLimit, Refused, UsageError
from askance.evals.suite.ranker import OptionRanker
from askance.images import WHOLE_IMAGE, Image, RegionView
from askance.models import Capabilities, Engine, ScriptedModel, get_model, get_scorer, limit_budget, use_draw
from askance.replay import MemoryStore, Records
from tests.distributions import install
from tests.scripted import PICTURE, ClosableModel, name_of, one_token

ROOT = Path(__file__).resolve().parents[2]
IMAGE = Image.from_path(PICTURE)
REGION = RegionView("highlight", ((10, 10, 60, 60),), style="sherlock")
TEXTS = ("a cup is new", "it rains", "bricks are old")
LIKELY: Mapping[str, float] = {"a cup is new": 0.9, "it rains": 0.2, "bricks are old": 0.5}
"""By inference, the probability of yes."""


def likely(request: ChatRequest) -> float:
    return next(value for text, value in LIKELY.items() if text in request.messages[-1].text)


def knowing(request: ChatRequest) -> ChatResponse:
    """Finds yes as likely as `LIKELY` says, ratings likewise, and puts inferences in the order in which they stand."""
    if request.sampling.logprobs:
        p = likely(request)
        if "1, 2 or 3" in request.messages[-1].text:
            return one_token({"3": p, "2": (1 - p) / 2, "1": (1 - p) / 2})
        return one_token({"Yes": p / 2, " yes": p / 2, "No": (1 - p) / 2, "no": (1 - p) / 4, "NO": (1 - p) / 4})
    told = {
        "rank_inferences_from_picture": {"answers": [1, 2, 3]},
        "rate_inference_from_picture": {"rating": 2},
        "rate_inference": {"rating": 3},
        "region_from_picture": {"description": "A pink rectangle."},
        "scene_from_picture": {"description": "A cup on a table."},
        "unusual_from_picture": {"unusual": "It is made of bricks."},
    }
    return ChatResponse(text=json.dumps(told[name_of(request)]))


def scripted(reply: Callable[[ChatRequest], Any] = knowing, **capabilities: Any) -> ScriptedModel:
    return ScriptedModel(reply, identity="knowing", capabilities=Capabilities(schema="enforced", **capabilities))


def model_of(script: ScriptedModel, records: Records | None = None, **engine: Any) -> Any:
    return get_model(script, engine=Engine(records=MemoryStore() if records is None else records, **engine))


async def scores(scorer: PlausibilityScorer, view: RegionView = REGION) -> list[float]:
    return [*await scorer.score_view(IMAGE, TEXTS, view)]


async def plan_of(scorer: PlausibilityScorer, *, draw: int = 0) -> Plan:
    planner = Planner()
    await scorer.plan_view(planner, IMAGE, TEXTS, REGION, draw=draw)
    await scorer.plan_view(planner, IMAGE, TEXTS, REGION, draw=draw)  # what is counted before counts once
    return planner.plan(1)


# --- scores ---


async def test_yes_and_no_give_log_odds_over_all_their_spellings() -> None:
    found = await scores(PlausibilityScorer(model_of(scripted())))

    assert found == pytest.approx([math.log(p / (1 - p)) for p in LIKELY.values()])


async def test_a_label_that_is_not_among_the_likeliest_tokens_has_the_floor_and_is_counted() -> None:
    script = scripted(lambda _: one_token({"Yes": 0.9, "Perhaps": 0.02, "Sure": 0.01}))

    found = await PlausibilityScorer(model_of(script)).plausibility(IMAGE, TEXTS[:1], REGION)

    assert found.scores == pytest.approx([math.log(0.9 / 0.01)])
    assert found.floored == 1


async def test_where_neither_label_is_likely_the_inferences_are_tied() -> None:
    script = scripted(lambda _: one_token({"The": 0.9, "A": 0.1}))

    found = await PlausibilityScorer(model_of(script)).plausibility(IMAGE, TEXTS, REGION)

    assert (found.scores, found.floored) == ((0.0,) * 3, 6)


async def test_a_rating_is_the_one_that_is_expected() -> None:
    found = await scores(PlausibilityScorer(model_of(scripted()), by="rating"))

    assert found == pytest.approx([3 * p + 1.5 * (1 - p) for p in LIKELY.values()])


async def test_without_log_probabilities_a_rating_is_the_number() -> None:
    script = scripted(logprobs=False)

    assert await scores(PlausibilityScorer(model_of(script), by="rating", top=0)) == [2.0, 2.0, 2.0]
    assert all(request.sampling.logprobs is None for request in script.requests)


async def test_draws_are_asked_apart_and_averaged() -> None:
    script = scripted(lambda request: ChatResponse(text=f'{{"rating": {1 + request.draw % 3}}}'))
    scorer = PlausibilityScorer(model_of(script), by="rating", top=0, draws=2)

    first = await scores(scorer)
    with use_draw(1):
        second = await scores(scorer)

    assert (first, second) == ([1.5] * 3, [2.0] * 3)
    assert {request.draw for request in script.requests} == {0, 1, 2, 3}


async def test_an_order_scores_by_how_many_stand_below() -> None:
    def by_likelihood(request: ChatRequest) -> ChatResponse:
        text = request.messages[-1].text
        shown = sorted(TEXTS, key=text.index)
        best = sorted(shown, key=lambda each: -LIKELY[each])
        return ChatResponse(text=json.dumps({"answers": [shown.index(each) + 1 for each in best]}))

    script = scripted(by_likelihood)

    assert await scores(PlausibilityScorer(model_of(script), by="choice", orders=2)) == [2.0, 0.0, 1.0]
    assert len(script.requests) == 2


async def test_a_model_that_ranks_by_place_alone_ties_all_in_two_orders() -> None:
    assert await scores(PlausibilityScorer(model_of(scripted()), by="choice", orders=2)) == [1.0, 1.0, 1.0]
    assert sorted(await scores(PlausibilityScorer(model_of(scripted()), by="choice"))) == [0.0, 1.0, 2.0]


async def test_what_an_order_leaves_out_shares_the_last_places() -> None:
    script = scripted(lambda _: '{"answers": [2]}')

    assert sorted(await scores(PlausibilityScorer(model_of(script), by="choice"))) == [0.5, 0.5, 2.0]


async def test_equal_texts_are_asked_once_and_score_alike() -> None:
    script = scripted()

    found = await PlausibilityScorer(model_of(script)).score(IMAGE, ["it rains", "a cup is new", "it rains"])

    assert (found[0], len(script.requests)) == (found[2], 2)
    assert found[0] < found[1]


async def test_a_region_is_described_once_and_each_inference_rated_by_that() -> None:
    script = scripted()
    scorer = PlausibilityScorer(model_of(script), top=0, describes=True)

    found = await scorer.plausibility(IMAGE, TEXTS, REGION)

    assert found.scores == (3.0, 3.0, 3.0)
    assert found.marks_described == 1  # the pink rectangle
    asked = [name_of(request) for request in script.requests]
    assert asked == ["region_from_picture", "scene_from_picture", "unusual_from_picture", *["rate_inference"] * 3]
    assert [request.images[0].shown.view.show for request in script.requests[:3]] == ["crop", "highlight", "highlight"]
    assert not script.requests[3].images
    assert "Region: A pink rectangle.\nScene: A cup on a table." in script.requests[3].messages[-1].text


@pytest.mark.parametrize(("show", "shown"), [("hide", ["hide", "hide"]), ("crop", ["crop"]), ("whole", ["whole"] * 2)])
async def test_a_description_is_made_of_no_more_than_the_view_shows(show: Any, shown: list[str]) -> None:
    script = scripted()
    view = WHOLE_IMAGE if show == "whole" else RegionView(show, REGION.boxes)

    await scores(PlausibilityScorer(model_of(script), top=0, describes=True), view)

    assert [request.images[0].shown.view.show for request in script.requests if request.images] == shown


# --- how the region is told ---


@pytest.mark.parametrize(
    ("view", "told"),
    [
        (RegionView("highlight", REGION.boxes), "is tinted and outlined in magenta."),
        (REGION, "is filled with see-through pink and outlined in green."),
        (RegionView("crop", REGION.boxes), "cut out of a larger one."),
        (RegionView("position", REGION.boxes, style="sherlock"), "in pink, on grey."),
    ],
)
async def test_the_prompt_names_the_colours_of_the_style(view: RegionView, told: str) -> None:
    script = scripted()

    await scores(PlausibilityScorer(model_of(script)), view)

    (part,) = script.requests[0].images
    assert (part.shown.view, told in script.requests[0].messages[-1].text) == (view, True)


async def test_of_the_whole_picture_no_region_is_spoken_of() -> None:
    script = scripted()

    await scores(PlausibilityScorer(model_of(script)), WHOLE_IMAGE)

    assert region_words(WHOLE_IMAGE) == ""
    assert "From the image somebody infers" in script.requests[0].messages[-1].text
    assert "region in question" not in script.requests[0].messages[-1].text


async def test_both_views_are_two_pictures_and_an_endpoint_that_refuses_them_is_told_apart() -> None:
    script = scripted()
    both = RegionView("both", REGION.boxes)

    await scores(PlausibilityScorer(model_of(script)), both)
    with pytest.raises(BadRequest, match=r"one image only.*show the region by `highlight` or by `crop`"):
        await scores(PlausibilityScorer(model_of(scripted(lambda _: BadRequest("one image only")))), both)

    assert [part.shown.view.show for part in script.requests[0].images] == ["highlight", "crop"]


SPEAKS = (
    "a pink rectangle",
    "The highlighted area shows a dog",
    "a box outlined in green",
    "within the green outline",
    "the magenta area",
    "The purple region is a shop window.",
    "A man stands in the pink-tinted part of the picture.",
    "the area shaded in purple",
    "the part that is marked in magenta",
    "a dog inside the purple box",
    "a cup, covered by a see-through pink overlay",
    "the section highlighted with a green border",
    "a cat in the bounding box",
    "the outlined region holds a clock",
    "There is a bright green border around the plate.",
    "the magenta highlight",
    "a fuchsia square drawn over the door",
    "the green-outlined area",
)
SILENT = (
    "a pink dress",
    "a green box of tea",
    "a frame with a photograph",
    "a dog in a green field",
    "the region of Paris",
    "a purple dress next to a border collie",
    "a border collie with a green collar",
    "the bottle is marked in 1990",
    "a road that is marked in English",
    "the price is marked in dollars",
    "she has pink hair and wears glasses in black frames",
    "a purple flower in the area of the garden",
    "a marked trail through a rural area",
    "the parking area is green",
    "a pink blanket, a sofa and a box",
    "the green filter of the aquarium",
)
"""A pink box and glasses with green frames are told from marks by nobody who reads the words alone."""


@pytest.mark.parametrize(("text", "speaks"), [*((each, True) for each in SPEAKS), *((each, False) for each in SILENT)])
def test_what_speaks_of_the_mark_is_told_from_what_is_in_the_picture(text: str, speaks: bool) -> None:
    assert speaks_of_mark(text) is speaks


# --- calls ---

WAYS: Mapping[str, tuple[Callable[[Any], PlausibilityScorer], int]] = {
    "yes-no": (PlausibilityScorer, 3),
    "rating": (lambda model: PlausibilityScorer(model, by="rating", draws=2), 6),
    "number": (lambda model: PlausibilityScorer(model, by="rating", top=0), 3),
    "choice": (lambda model: PlausibilityScorer(model, by="choice", orders=2, draws=2), 4),
    "region": (lambda model: PlausibilityScorer(model, describes=True), 6),
    "region, choice": (lambda model: PlausibilityScorer(model, by="rating", top=0, draws=2, describes=True), 9),
}


@pytest.mark.parametrize(("make", "calls"), WAYS.values(), ids=WAYS)
async def test_the_plan_is_what_is_asked_and_the_replay_asks_nobody(
    make: Callable[[Any], PlausibilityScorer], calls: int
) -> None:
    script, records = scripted(), MemoryStore()
    scorer = make(model_of(script, records))

    planned = await plan_of(scorer, draw=1)
    with use_draw(1):
        found = await get_scorer(scorer, engine=Engine(records=records)).score(IMAGE, TEXTS, view=REGION)
    again = await plan_of(scorer, draw=1)
    made = len(script.requests)
    gone = scripted(lambda _: AssertionError("the server is gone"))
    replayed = get_scorer(make(model_of(gone, records)), engine=Engine(records=records, mode="replay"))
    with use_draw(1):
        same = await replayed.score(IMAGE, TEXTS, view=REGION)

    assert (planned.calls, planned.hits, made) == (calls, 0, calls)
    assert (again.calls, again.hits) == (0, calls)
    assert same == found
    assert replayed.keys(IMAGE, TEXTS, view=REGION) == ()


async def test_all_calls_of_a_region_are_under_way_before_an_error_of_one_is_raised() -> None:
    def reply(request: ChatRequest) -> ChatResponse:
        refused = "it rains" in request.messages[-1].text
        return ChatResponse(refusal="I cannot say.") if refused else knowing(request)

    script = scripted(reply)

    with pytest.raises(Refused, match="I cannot say"):
        await scores(PlausibilityScorer(model_of(script)))
    assert len(script.requests) == 3


async def test_a_call_beyond_a_limit_is_told_apart_from_one_that_failed() -> None:
    with limit_budget("2 calls"), pytest.raises(OverLimit):
        await scores(PlausibilityScorer(model_of(scripted())))


# --- what cannot be asked ---


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (scripted(lambda _: "Yes"), "its answer came without"),
        (scripted(logprobs=False), "as its record says"),
        (scripted(lambda _: BadRequest("Unsupported parameter: 'logprobs'")), "it says: Unsupported parameter"),
    ],
)
async def test_an_endpoint_without_log_probabilities_is_named_with_the_way_out(script: ScriptedModel, why: str) -> None:
    with pytest.raises(NoLogprobs, match=rf"gives no log-probabilities: {why}.*by=choice, or by=rating with top=0"):
        await scores(PlausibilityScorer(model_of(script)))


async def test_an_error_keeps_its_class_so_that_a_run_can_stop_at_it() -> None:
    with pytest.raises(ImagesRejected):
        await scores(PlausibilityScorer(model_of(scripted(lambda _: ImagesRejected("no images"))), by="rating", top=0))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"by": "guess"}, "No model is asked by=guess."),
        ({"draws": 0}, "A scorer cannot have draws=0, orders=1 and top=20."),
        ({"by": "rating", "orders": 2}, "by=rating shows texts one by one, so it takes no orders."),
        ({"by": "yes-no", "top": 0}, "by=yes-no compares log-probabilities, so it cannot do with top=0."),
    ],
)
def test_settings_that_do_not_go_together_are_refused(options: Mapping[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        PlausibilityScorer("openai:m", **options)

    assert caught.value.message == sentence


async def test_more_texts_than_can_be_numbered_are_not_ranked() -> None:
    with pytest.raises(UsageError, match="101 inferences cannot be put in order by one reply; 100 can be"):
        await PlausibilityScorer(model_of(scripted()), by="choice").score(IMAGE, [f"text {n}" for n in range(101)])


# --- specs ---


def test_a_spec_has_the_settings_of_the_scorer_and_those_of_the_model() -> None:
    scorer = vlm_spec("vllm:some/model?by=rating&draws=3&max_model_len=2048&top=5")

    assert (scorer.vlm, scorer.by, scorer.draws, scorer.top) == (
        "vllm:some/model?max_model_len=2048",
        "rating",
        3,
        5,
    )


def test_a_spec_of_a_chain_names_its_models() -> None:
    scorer = chain_spec("region?vlm=openai:v@http://127.0.0.1:9/v1&llm=openai:l&by=yes-no")

    assert (scorer.vlm, scorer.llm, scorer.by) == ("openai:v@http://127.0.0.1:9/v1", "openai:l", "yes-no")
    assert str(scorer.id) == "chain:region?vlm=openai:v@http://127.0.0.1:9/v1&llm=openai:l&by=yes-no"


@pytest.mark.parametrize(
    ("make", "rest", "sentence"),
    [
        (vlm_spec, "openai:m?by=guess", "The setting 'by' of 'vlm:openai:m' cannot be 'guess'."),
        (chain_spec, "scene?vlm=openai:m", "No chain 'scene' scores pictures."),
        (chain_spec, "region?llm=openai:m", "`chain:region` needs a model that sees the picture."),
        (chain_spec, "region?vlm=openai:m&pool=3", "'chain:region' has no setting 'pool'."),
    ],
)
def test_a_spec_that_cannot_be_read_is_named(make: Callable[[str], object], rest: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(rest)

    assert caught.value.message == sentence


def test_a_scorer_that_asks_models_is_no_encoder() -> None:
    scorer = get_scorer(PlausibilityScorer(model_of(scripted())))

    with pytest.raises(UsageError) as caught:
        scorer.as_encoder()

    assert caught.value.message == "The scorer 'vlm:knowing?by=yes-no' asks chat models, so it is no encoder."
    with pytest.raises(UsageError, match="asks chat models"):
        OptionRanker(scorer)


async def test_the_package_brings_its_scorers_by_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    install(tmp_path, "as-it-is-installed", {"askance.scorers": project["entry-points"]["askance.scorers"]})
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    engine = Engine(records=MemoryStore())

    seeing = get_scorer("vlm:openai:m?by=rating&top=5", engine=engine)
    described = get_scorer("chain:region?vlm=openai:m&llm=openai:n", engine=engine)

    assert (str(seeing.id), seeing.asks, seeing.engine) == ("vlm:openai:m?by=rating&top=5", True, engine)
    assert str(described.id) == "chain:region?vlm=openai:m&llm=openai:n&by=rating"
    assert {each.engine for each in cast("Any", described)._recorded.models} == {engine}


async def test_whoever_closes_a_scorer_closes_its_models_once() -> None:
    eye, mind = (ClosableModel(knowing, identity=name, capabilities=Capabilities(schema="enforced")) for name in "ab")
    engine = Engine(records=MemoryStore())
    models = (get_model(each, engine=engine) for each in (eye, mind))
    scorer = get_scorer(PlausibilityScorer(*models, describes=True), engine=engine)

    await scorer.score(IMAGE, TEXTS[:1], view=REGION)
    await scorer.aclose()

    assert (eye.closed, mind.closed) == (1, 1)
