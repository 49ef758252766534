"""Open-set retrieval of action-reasons over made-up ads, with scripted models and encoders and a real index."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest, ChatResponse, ImagePart
from askance.errors import AskanceError, StoreError, UsageError
from askance.evals import Run, aevaluate
from askance.evals.analysis.rescore import rerun_job, rescored
from askance.evals.controls import swapped_images
from askance.evals.pittads import index_entries
from askance.evals.pittads.arr import ArrClip
from askance.evals.pittads.open_arr import OpenArr
from askance.evals.report.published_part import published_beside
from askance.evals.runner import SampleEpoch, run_job
from askance.images import Image
from askance.models import Engine, Model, ScriptedEmbedder, ScriptedModel, ScriptedScorer, get_model
from askance.replay import MemoryStore
from askance.retrieval import Index, IndexEntry, RetrievalHit, RetrievalQuery, retriever
from askance.retrieval.entries import entry_id
from tests.evals.pittads.files import key_of, release_b, row, write, write_csv
from tests.evals.pittads.worlds import model, picture_of
from tests.images import samples as pictures

COFFEE, SHOES, FUEL = map(key_of, (11, 12, 13))
TRUE = {
    COFFEE: [
        "I should drink this coffee because it is strong as bricks",
        "I should buy the coffee because it wakes me up",
        "n/a",
    ],
    SHOES: ["I should wear these shoes because they run like a cheetah", "I should run because shoes are light"],
    FUEL: ["I should never burn oil because this fuel grows on hedges"],
}
SEEN = {
    COFFEE: "A cup of coffee is built of bricks.",
    SHOES: "A cheetah wears running shoes.",
    FUEL: "A rocket of hedges burns fuel.",
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three ads; each has the true statements of the others as its wrong options."""
    folder = tmp_path / "pittads"
    every = [text for texts in TRUE.values() for text in texts]
    release_b(folder, {key: [true, every] for key, true in TRUE.items()})
    write_csv(folder / "final_csv.csv", [row(key, "1", "cup", "brick") for key in TRUE])
    topics = {COFFEE: [["1"], ["1"], ["2"]], SHOES: [["2"]]}
    write(folder / "Topics.json", json.dumps(topics))
    for number, key in enumerate(TRUE):
        write(folder / "train_images" / key, pictures.encoded(pictures.photo(seed=number), "PNG"))
    return folder


@pytest.fixture
async def index(data: Path) -> Path:
    """All statements of the ads, found by their words."""
    place = data.parent / "ads.index"
    await Index.build(place, index_entries(data).rows)
    return place


def seeing(data: Path, **answers: Any) -> Model:
    """A model that narrates what an ad shows."""
    said = {picture_of_file(data, key): text for key, text in SEEN.items()}

    def narrated(request: ChatRequest) -> dict[str, str]:
        return {"description": said[picture_of(request)]}

    return model(**{"narration": narrated, **answers})


def picture_of_file(data: Path, key: str) -> str:
    return Image.load(data / "train_images" / key).sha256


def shows(request: ChatRequest, digest: str) -> bool:
    """Whether any turn shows the picture; a question that is asked again shows it in an earlier one."""
    parts = [part for message in request.messages for part in message.parts]
    return any(isinstance(part, ImagePart) and part.shown.image.sha256 == digest for part in parts)


def ids(*texts: str) -> list[str]:
    return [entry_id(text) for text in texts]


async def run_of(task: Any, data: Path) -> Run:
    return await aevaluate(task, out=data.parent / "run")


def predictions(run: Run) -> dict[str, Any]:
    return {answer.sample.id: answer.prediction for answer in run.answers}


def first_texts(run: Run) -> dict[str, str]:
    return {name: each.value[0]["text"] if each.value else "" for name, each in predictions(run).items()}


def queries(run: Run) -> dict[str, Any]:
    return {name: each.trace["query"]["texts"] for name, each in predictions(run).items()}


# --- from a picture to a ranking ---


async def test_statements_are_found_by_what_is_said_of_the_picture(data: Path, index: Path) -> None:
    run = await run_of(OpenArr(data=data, index=index, context="IN", vlm=seeing(data)), data)

    found: dict[str, Any] = {answer.sample.id: answer for answer in run.answers}
    assert {name: each.prediction.outcome for name, each in found.items()} == dict.fromkeys(TRUE, "answered")
    assert first_texts(run)[COFFEE] == TRUE[COFFEE][0]
    shown, ranking = found[COFFEE].prediction.value, found[COFFEE].prediction.ranking
    assert [(hit["id"], hit["score"]) for hit in shown] == [*zip(ranking.ids, ranking.scores, strict=True)]
    assert queries(run) == {key: [text] for key, text in SEEN.items()}
    assert found[COFFEE].sample.target == {"true": ids(*TRUE[COFFEE][:2]), "texts": TRUE[COFFEE][:2]}
    assert run.figure("recall@1").value == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    assert {record.kind for record in run.records} == {"chat", "search"}
    assert len(found[COFFEE].prediction.links["search"]["calls"]) == 1
    assert found[COFFEE].prediction.trace["verbalization"]["narration"] == SEEN[COFFEE]


QUERIES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "one of two": ({"context": "V+T"}, ["cup, brick\nBUY"]),
    "combined": ({"context": "T_V"}, ["COMBINED."]),
    "with the statement detected": ({"context": "T_V+s_IN"}, ["COMBINED.\n{detected}"]),
    "with the statement given": ({"context": "UH+s_true"}, ["ODD.\n{true}"]),
    "the statement alone": ({"context": "I+s_true", "how": "bm25"}, ["{true}"]),
    "part by part": (
        {"context": "T_V+s_IN", "query": "parts"},
        ["cup, brick", "BUY", SEEN[COFFEE], "ODD.", "{detected}"],
    ),
    "two parts": ({"context": "V+T", "query": "parts"}, ["cup, brick", "BUY"]),
    "guessed": ({"context": "T_V", "query": "guess"}, ["I should sip because it is hot", "I should build"]),
    "guessed from nothing": (
        {"context": "text-only", "query": "guess"},
        ["I should sip because it is hot", "I should build"],
    ),
    "nothing": ({"context": "text-only"}, ["No description of the image is available."]),
}
DETECTED = "The surface of cup mimics the texture of brick, while retaining its original structure."


@pytest.mark.parametrize(("options", "texts"), QUERIES.values(), ids=QUERIES)
async def test_what_is_searched_with_follows_from_context_and_query(
    data: Path, index: Path, options: dict[str, Any], texts: list[str]
) -> None:
    guesses = {"statements": ["I should sip because it is hot", "I should build"]}
    vlm = seeing(data, guess_action_reasons=guesses)

    run = await run_of(OpenArr(data=data, index=index, vlm=vlm, ids=[COFFEE], **options), data)

    assert queries(run)[COFFEE] == [text.format(detected=DETECTED, true=DETECTED) for text in texts]
    again = await rerun_job(Run.open(run.path), OpenArr).run()
    assert [each.outcome for each in again] == ["same"]


async def test_a_guess_is_a_link_of_the_chain(data: Path, index: Path) -> None:
    asked: list[ChatRequest] = []

    def guess(request: ChatRequest) -> dict[str, Any]:
        asked.append(request)
        return {"statements": [TRUE[SHOES][0], "I should sip"]}

    run = await run_of(
        OpenArr(data=data, index=index, context="IN", query="guess", vlm=seeing(data, guess_action_reasons=guess)), data
    )

    assert {link["value"][0] for link in (each.prediction.links["guesses"] for each in run.answers)} == {TRUE[SHOES][0]}
    assert set(first_texts(run).values()) <= {*TRUE[SHOES]}
    assert SEEN[FUEL] in asked[-1].messages[-1].text
    assert not any(text in request.messages[-1].text for request in asked for texts in TRUE.values() for text in texts)


async def test_a_call_without_an_answer_is_the_outcome_of_its_sample(data: Path, index: Path) -> None:
    def narrated(request: ChatRequest) -> Any:
        spoilt = shows(request, picture_of_file(data, SHOES))
        return "no JSON" if spoilt else {"description": "A cup of coffee."}

    run = await run_of(OpenArr(data=data, index=index, context="IN", vlm=model(narration=narrated)), data)

    found = predictions(run)
    assert {name: each.outcome for name, each in found.items()} == {
        COFFEE: "answered",
        SHOES: "skipped",
        FUEL: "answered",
    }
    assert found[SHOES].reason == "narration has no answer (invalid)"
    assert found[SHOES].links["narration"]["outcome"] == "invalid"


async def test_what_says_nothing_finds_nothing(data: Path, index: Path) -> None:
    vlm = seeing(data, scene_text={"lines": []}, objects={"objects": ["zebra"]})

    found = await run_of(OpenArr(data=data, index=index, context="V+T", vlm=vlm), data)
    without = await aevaluate(
        OpenArr(data=data, index=index, context="V+T", query="parts", vlm=vlm), out=data.parent / "parts"
    )

    assert {answer.prediction.outcome for answer in found.answers} == {"answered"}
    assert {answer.prediction.ranking and answer.prediction.ranking.count for answer in found.answers} == {0}
    assert found.figure("recall@100").value == 0
    assert queries(without)[COFFEE] == ["zebra"]


async def test_an_encoder_that_is_missing_stops_the_run(data: Path) -> None:
    place, vlm = data.parent / "ads.index", seeing(data)
    await Index.build(place, index_entries(data).rows, embedder=encoder())
    task = OpenArr(data=data, index=place, context="IN", how="dense", vlm=vlm)

    with pytest.raises(StoreError, match="cannot be searched: The embedder 'eye' is known by its records alone") as it:
        await run_of(task, data)

    assert "`--embedder`" in str(it.value.hint)


async def test_an_encoder_that_is_named_and_one_that_the_index_names_are_one_configuration(data: Path) -> None:
    place = data.parent / "ads.index"
    await Index.build(place, index_entries(data).rows, embedder=encoder())
    given: dict[str, Any] = {"data": data, "index": place, "context": "IN", "how": "dense", "vlm": seeing(data)}

    assert OpenArr(**given).kept() == OpenArr(**given, embedder=encoder()).kept()


async def test_a_search_that_is_not_on_record_leaves_what_the_chain_said(data: Path, index: Path) -> None:
    vlm = seeing(data)
    await run_of(OpenArr(data=data, index=index, context="IN", vlm=vlm), data)
    again = again_in(vlm, "replay")

    run = await aevaluate(
        OpenArr(data=data, index=index, context="IN", query="parts", how="bm25", vlm=again, junk=True),
        out=data.parent / "again",
    )
    missed = await aevaluate(
        OpenArr(data=data, index=index, context="IN+s_true", vlm=again), out=data.parent / "missed"
    )

    assert {each.outcome for each in predictions(run).values()} == {"answered"}
    found = predictions(missed)[COFFEE]
    assert (found.outcome, found.links["search"]["error"]) == ("failed", "ReplayMiss")
    assert found.links["narration"]["outcome"] == "answered"


# --- within the options: the paper's task ---


def vector(text: str) -> list[float]:
    return [byte - 127.5 for byte in sha256(text.encode()).digest()[:8]]


def encoder() -> ScriptedEmbedder:
    """A dual encoder by hashes."""
    return ScriptedEmbedder(vector, identity="eye", image=lambda image: vector(image.sha256))


def fitting(image: Image, text: str) -> float:
    one, other = vector(image.sha256), vector(text)
    length = (sum(each * each for each in one) * sum(each * each for each in other)) ** 0.5
    return sum(a * b for a, b in zip(one, other, strict=True)) / length


async def test_within_the_options_it_is_the_task_of_the_paper(data: Path) -> None:
    place = data.parent / "ads.index"
    await Index.build(place, index_entries(data).rows, embedder=encoder())
    ours = OpenArr(
        data=data, index=place, within="options", how="image", context="I", encoder=encoder(), engine=engine()
    )
    theirs = ArrClip(data=data, scorer=ScriptedScorer(fitting, identity="eye"), engine=engine())

    run, other = await run_of(ours, data), await aevaluate(theirs, out=data.parent / "clip")

    assert [each.sample.inputs["options"] for each in run.answers] == [
        each.sample.inputs["options"] for each in other.answers
    ]
    assert [each.prediction.value for each in run.answers] == [each.prediction.value for each in other.answers]
    for one, two in zip(run.answers, other.answers, strict=True):
        assert one.prediction.trace["scores"] == pytest.approx(two.prediction.trace["scores"], abs=1e-3)
    assert [(each.metric, each.value) for each in run.figures] == [(each.metric, each.value) for each in other.figures]
    assert [each.outcome for each in await rerun_job(Run.open(run.path), OpenArr).run()] == ["same"] * 3
    assert not any("askance's own" in note for note in run.notes)


async def test_an_option_that_the_index_lacks_is_named(data: Path) -> None:
    place = data.parent / "ads.index"
    await Index.build(place, [row for row in index_entries(data).rows if row.text != TRUE[FUEL][0]])

    with pytest.raises(UsageError, match="lacks the option 'I should never burn oil") as caught:
        OpenArr(data=data, index=place, within="options", how="bm25", context="text-only").samples()

    assert "--negatives FILE" in str(caught.value.hint)


async def test_options_of_which_none_is_found_are_no_answer(data: Path, index: Path) -> None:
    vlm = model(narration={"description": "Zebras."})

    run = await run_of(OpenArr(data=data, index=index, within="options", context="IN", vlm=vlm), data)

    assert {(each.prediction.outcome, each.prediction.reason) for each in run.answers} == {
        ("invalid", "the search finds none of the options")
    }


# --- a retriever of one's own ---


class Backwards:
    """A retriever of one's own: it has few texts, and gives them in one order."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.asked = 0

    async def search(self, query: str | RetrievalQuery, *, image: Any = None, among: Any = None) -> list[RetrievalHit]:
        self.asked += 1
        return [RetrievalHit(entry_id(text), 1 / place, text) for place, text in enumerate(self.texts, start=1)]


async def test_a_retriever_of_ones_own_takes_the_place_of_the_index(data: Path, index: Path) -> None:
    own, vlm = Backwards(TRUE[FUEL][0], TRUE[SHOES][0]), seeing(data)
    recorded = retriever(own, identity="backwards", k=10)
    task = OpenArr(data=data, index=index, context="IN", vlm=vlm, retriever=recorded)

    run = await run_of(task, data)

    assert set(first_texts(run).values()) == {TRUE[FUEL][0]}
    assert run.figure("recall@1").value == pytest.approx(1 / 3)
    assert own.asked == 3
    assert task.label() == "backwards (IN)"
    assert [each.outcome for each in await rerun_job(Run.open(run.path), OpenArr).run()] == ["same"] * 3
    await aevaluate(task, out=data.parent / "again")
    assert own.asked == 3


async def test_a_retriever_over_other_texts_is_named(data: Path, index: Path) -> None:
    task = OpenArr(data=data, index=index, context="IN", vlm=seeing(data), retriever=Backwards("I should sleep"))

    run = await run_of(task, data)

    found = predictions(run)[COFFEE]
    assert found.outcome == "failed"
    assert str(found.reason).startswith("The retriever gave 'I should sleep', which is no text of the index.")


# --- targets, and what must not be told ---


async def test_junk_is_no_target_unless_asked(data: Path, index: Path) -> None:
    task = OpenArr(data=data, index=index, context="text-only")
    more = OpenArr(data=data, index=index, context="text-only", junk=True)

    assert [len(each.target["true"]) for each in task.samples()] == [2, 2, 1]
    assert [len(each.target["true"]) for each in more.samples()] == [3, 2, 1]
    assert "1 true statement is no target: junk, or not in the index" in task.notes()


async def test_topics_and_relations_are_tags(data: Path, index: Path) -> None:
    run = await run_of(OpenArr(data=data, index=index, context="IN", vlm=seeing(data)), data)

    assert [each.sample.tags for each in run.answers] == [
        {"topic": "1", "atypicality": "TR1"},
        {"topic": "2", "atypicality": "TR1"},
        {"atypicality": "TR1"},
    ]
    assert {"recall@10: topic 1", "recall@10: topic 2", "recall@10: atypicality TR1"} <= {
        each.metric for each in run.figures
    }


async def test_an_image_without_a_statement_in_the_index_is_left_out_and_noted(data: Path) -> None:
    place = data.parent / "ads.index"
    await Index.build(place, [row for row in index_entries(data).rows if FUEL not in row.images])
    task = OpenArr(data=data, index=place, context="text-only")

    assert [each.id for each in task.samples()] == [COFFEE, SHOES]
    assert "1 of 3 ads are left out: those without a true statement in the index" in task.notes()


async def test_an_index_of_other_data_is_refused(data: Path) -> None:
    place = data.parent / "ads.index"
    await Index.build(place, [IndexEntry.of("I should buy tea because it is warm", ["9/9.jpg"], "train")])

    with pytest.raises(UsageError, match=r"has no true statement of any ad in .*: it is of other data"):
        OpenArr(data=data, index=place, context="text-only").samples()


async def test_an_index_of_both_splits_is_refused_unless_asked_for(data: Path) -> None:
    place = data.parent / "ads.index"
    other = IndexEntry.of("I should buy tea because it is warm", ["9/9.jpg"], "test")
    await Index.build(place, [*index_entries(data).rows, other])

    with pytest.raises(UsageError, match="holds statements of the splits test and train"):
        OpenArr(data=data, index=place, context="text-only").samples()
    task = OpenArr(data=data, index=place, context="text-only", splits="any")
    assert len(task.samples()) == 3
    assert "Targets are of the split train" in task.notes()


@pytest.mark.parametrize(
    ("place", "said"),
    [("lance", "There is no store of vectors 'lance'"), ("mine.py:STORE", "is no store of vectors: it is of the type")],
)
def test_a_store_that_is_none_is_refused(data: Path, index: Path, own_place: Path, place: str, said: str) -> None:
    Path("mine.py").write_text("STORE = 1\n", encoding="utf-8")

    with pytest.raises(UsageError, match=said):
        OpenArr(data=data, index=index, context="text-only", store=place).samples()


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("IN", f"It says: {TRUE[COFFEE][0].upper()}!", "true statement 'I should drink this coffee"),
        ("IN", TRUE[COFFEE][0].replace("coffee", "cof\u200bfee"), "true statement 'I should drink this coffee"),
        ("IN", TRUE[COFFEE][0].replace("drink", "dri\xadnk").replace("I ", "Ｉ "), "true statement 'I should drink"),  # noqa: RUF001
        ("combine", TRUE[SHOES][1], "option 'I should run because"),
        ("UH", "As they say, bricks make the morning.", "slogan 'Bricks make the morning'"),
    ],
)
async def test_descriptions_that_tell_what_is_looked_for_are_refused(
    data: Path, index: Path, file: str, text: str, told: str
) -> None:
    write(data / "Slogans.json", json.dumps({COFFEE: ["Bricks make the morning"]}))
    said = data.parent / "said"
    write(said / f"{file}_LLAVA_description_ARR.csv", f'ID,description\n{COFFEE},"{text}"\n')
    options: dict[str, Any] = {
        "data": data,
        "index": index,
        "descriptions": said,
        "vlm": seeing(data),
        "context": "T_V",
    }

    with pytest.raises(UsageError, match=f"given for '{COFFEE}' holds its {told}") as caught:
        OpenArr(**options).samples()
    assert "leaks=noted" in str(caught.value.hint)
    noted = OpenArr(**options, leaks="noted")
    assert len(noted.samples()) == 3
    assert any("1 ad with a leak, such as: The " in note for note in noted.notes())


async def test_a_slogan_that_is_printed_on_the_ad_is_no_leak(data: Path, index: Path) -> None:
    write(data / "Slogans.json", json.dumps({COFFEE: ["Bricks make the morning"]}))
    said = data.parent / "said"
    write(said / "T_LLAVA_description_ARR.csv", f'ID,description\n{COFFEE},"Bricks make the morning"\n')

    task = OpenArr(data=data, index=index, descriptions=said, vlm=seeing(data), context="T_V")

    assert len(task.samples()) == 3


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a way that there is not": ({"how": "sparse"}, "cannot be searched by 'sparse'"),
    "no picture for image": ({"how": "image"}, "which the context 'T_V' does not show"),
    "no words for dense": ({"context": "I", "how": "dense"}, "needs words, and the context 'I' has none"),
    "no words for parts": ({"context": "I", "query": "parts"}, "query='parts' needs words"),
    "no description to guess from": ({"context": "I+s_true", "query": "guess"}, "the context 'I\\+s_true' has none"),
    "no description to rerank by": ({"context": "I", "rerank": 10}, "A language model reads a description"),
    "more than can be reranked": ({"rerank": 101}, "'rerank' of the task 'pittads/open-arr' cannot be 101"),
    "a baseline that asks": ({"baseline": "frequent", "rerank": 10}, "ranks all statements and asks nobody"),
    "a way for a retriever that has its own": ({"retriever": "x.py:X", "how": "bm25"}, "searches in its own way"),
    "a picture for an index of words": ({"context": "I"}, "cannot be searched by a picture"),
    "no vectors": ({"how": "dense"}, "cannot be searched by 'dense'"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
async def test_what_does_not_go_together_is_refused(
    data: Path, index: Path, options: dict[str, Any], message: str
) -> None:
    more: dict[str, Any] = {"data": data, "index": index, "context": "T_V", "vlm": seeing(data), **options}

    with pytest.raises(AskanceError, match=message) as caught:
        OpenArr(**more).evaluation()

    assert caught.value.hint


# --- controls ---


async def test_a_swapped_picture_finds_the_statements_of_another_ad(data: Path, index: Path) -> None:
    task = OpenArr(data=data, index=index, context="IN", vlm=seeing(data))

    run = await run_of(swapped_images(task), data)

    first = first_texts(run)
    assert all(first[key] not in texts for key, texts in TRUE.items())
    assert run.figure("recall@1").value == 0


async def test_given_descriptions_cannot_be_swapped(data: Path, index: Path) -> None:
    said = data.parent / "said"
    rows = "".join(f'{key},"{text}"\n' for key, text in SEEN.items())
    write(said / "IN_LLAVA_description_ARR.csv", f"ID,description\n{rows}")
    task = OpenArr(data=data, index=index, context="IN", descriptions=said)

    assert [each.prediction.outcome for each in (await run_of(task, data)).answers] == ["answered"] * 3
    with pytest.raises(UsageError, match="cannot be swapped: 'narration' is given with every sample"):
        swapped_images(task)


async def test_the_most_frequent_statements_come_first_for_every_image(data: Path) -> None:
    place = data.parent / "ads.index"
    again = IndexEntry.of(TRUE[SHOES][1], ["9/9.jpg", "8/8.jpg"], "train")
    await Index.build(place, [*index_entries(data).rows, again])

    run = await run_of(OpenArr(data=data, index=place, baseline="frequent"), data)

    assert set(first_texts(run).values()) == {TRUE[SHOES][1]}
    assert predictions(run)[COFFEE].value[0]["score"] == 3
    assert [each.outcome for each in await rerun_job(Run.open(run.path), OpenArr).run()] == ["same"] * 3


# --- again, without the index ---


def engine(records: MemoryStore | None = None, **more: Any) -> Engine:
    return Engine(records=records if records is not None else MemoryStore(), **more)


async def test_a_run_is_scored_and_made_again_without_the_index(data: Path, index: Path) -> None:
    run = await run_of(OpenArr(data=data, index=index, context="IN", vlm=seeing(data)), data)
    shutil.rmtree(index)

    answers, figures = await rescored(Run.open(run.path), OpenArr)

    assert figures == run.figures
    assert [answer.score for answer in answers] == [answer.score for answer in run.answers]
    assert [each.outcome for each in await rerun_job(Run.open(run.path), OpenArr).run()] == ["same"] * 3


def leave_bare(index: Path) -> None:
    """Takes all away from an index but its description."""
    for each in index.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        elif each.name != "index.json":
            each.unlink()


def again_in(model: Model, mode: Any) -> Model:
    """The same model in another mode, over the same records."""
    return model.changed(lambda settings: settings, Engine(mode=mode, records=model.engine.recorder.records))


async def test_a_replay_needs_no_more_of_the_index_than_its_description(data: Path, index: Path) -> None:
    vlm = seeing(data)
    run = await run_of(OpenArr(data=data, index=index, context="IN", vlm=vlm), data)
    leave_bare(index)
    options: dict[str, Any] = {"data": data, "index": index, "context": "IN"}

    again = await aevaluate(OpenArr(**options, vlm=again_in(vlm, "replay")), out=data.parent / "again")

    assert [(each.prediction, each.sample.form()) for each in again.answers] == [
        (each.prediction, each.sample.form()) for each in run.answers
    ]
    assert again.figures == run.figures
    assert any("The statements of the index are not there" in note for note in again.notes)
    with pytest.raises(AskanceError, match=r"lacks its file 'statements\.jsonl'"):
        OpenArr(**options, vlm=vlm).samples()


@pytest.mark.parametrize("option", ["retriever", "store", "embedder", "index", "judge"])
async def test_what_only_a_run_names_is_not_loaded(data: Path, index: Path, option: str) -> None:
    run = await run_of(OpenArr(data=data, index=index, context="IN", vlm=seeing(data)), data)
    marker = data.parent / "was-run"
    write(run.path / "evil.py", f"from pathlib import Path\nPath({str(marker)!r}).touch()\nX = 1\n")
    others = {"embedder": "st:evil/it?remote_code=true", "index": str(index), "judge": ["x"]}
    named = others.get(option, f"{run.path}/evil.py:X")
    form = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    form["configuration"]["options"][option] = named
    write(run.path / "run.json", json.dumps(form))

    with pytest.raises(UsageError, match=f"as its '{option}', and what only a run names is not loaded"):
        await rescored(Run.open(run.path), OpenArr)
    with pytest.raises(UsageError, match=f"as its '{option}', and what only a run names is not loaded"):
        await rerun_job(Run.open(run.path), OpenArr).run()
    assert not marker.exists()


# --- what it would ask ---


async def planned(task: OpenArr) -> dict[str, tuple[int, int, int]]:
    """By role, what a plan counts: hits, known calls, calls that depend on others."""
    evaluation = task.evaluation()
    epochs = [SampleEpoch(sample=sample, epoch=0) for sample in evaluation.samples]
    plan = await run_job(evaluation, epochs, task.see.engine).plan()
    return {line.link: (line.hits, line.known, line.dependent) for line in plan.links}


async def test_a_plan_counts_calls_searches_and_windows(data: Path, index: Path) -> None:
    guesses = {"statements": ["I should run", "I should sip"]}
    vlm = seeing(data, choose_action_reasons={"answers": [2, 1]}, guess_action_reasons=guesses)
    options: dict[str, Any] = {"data": data, "index": index, "context": "IN", "rerank": 50}
    joined = OpenArr(**options, vlm=vlm)
    guessed = OpenArr(**options, query="guess", vlm=vlm)

    before, with_guesses = await planned(joined), await planned(guessed)
    asked = len(vlm.engine.recorder.records)
    await run_of(joined, data)
    after = await planned(joined)

    assert before == {"narration": (0, 3, 0), "rerank": (0, 0, 12), "searches": (0, 0, 3)}
    assert with_guesses == {"narration": (0, 3, 0), "guesses": (0, 0, 3), "rerank": (0, 0, 12), "searches": (0, 0, 9)}
    assert asked == 0
    assert after == {"narration": (3, 0, 0), "rerank": (2, 0, 0), "searches": (3, 0, 0)}


async def test_a_plan_counts_no_search_where_a_description_ended_without_an_answer(data: Path, index: Path) -> None:
    task = OpenArr(data=data, index=index, context="IN", how="bm25", rerank=5, vlm=seeing(data, narration={"odd": 1}))

    run = await run_of(task, data)

    assert {each.outcome for each in predictions(run).values()} == {"skipped"}
    assert {name: line[1:] for name, line in (await planned(task)).items()} == {"narration": (0, 0)}


# --- the first ones, read again ---


ALL_THREE = {"description": "Coffee, shoes and fuel."}


def preferring(text: str) -> Any:
    """A reranker that puts one text first and leaves the others as they are shown."""

    def reply(request: ChatRequest) -> dict[str, Any]:
        shown = re.findall(r"^(\d+)\. (.*)$", request.messages[-1].text.partition("Options:")[2], re.MULTILINE)
        numbers = {said: int(number) for number, said in shown}
        first = numbers.get(text, 1)
        return {"answers": [first, *(number for number in numbers.values() if number != first)][:10]}

    return reply


async def test_a_model_puts_the_first_statements_in_order(data: Path, index: Path) -> None:
    vlm = seeing(data, narration=ALL_THREE, choose_action_reasons=preferring(TRUE[SHOES][1]))

    run = await run_of(OpenArr(data=data, index=index, context="IN", rerank=5, vlm=vlm), data)

    found = predictions(run)[COFFEE]
    assert set(first_texts(run).values()) == {TRUE[SHOES][1]}
    assert found.links["rerank"]["value"][0] == entry_id(TRUE[SHOES][1])
    assert len(found.links["rerank"]["calls"]) == 1
    assert sorted(found.ranking.scores, reverse=True) != list(found.ranking.scores)
    assert sum(found.meta[each] for each in ("calls", "replayed", "shared")) == 2
    assert [each.outcome for each in await rerun_job(Run.open(run.path), OpenArr).run()] == ["same"] * 3


async def test_a_window_without_an_answer_is_the_outcome_of_its_sample(data: Path, index: Path) -> None:
    vlm = seeing(data, narration=ALL_THREE, choose_action_reasons=ChatResponse(refusal="No."))

    run = await run_of(OpenArr(data=data, index=index, context="IN", rerank=5, vlm=vlm), data)

    found = predictions(run)[COFFEE]
    assert (found.outcome, found.value, found.ranking) == ("refused", None, None)
    assert "Window 1 of 1" in str(found.reason)
    assert (found.links["narration"]["outcome"], found.links["rerank"]["outcome"]) == ("answered", "refused")
    assert run.figure("recall@10").value == 0


# --- published figures ---


@pytest.mark.parametrize(
    ("options", "tables"),
    [
        ({"within": "options", "context": "I+T_V", "negatives": "hard"}, ["Table 3", "Table 11"]),
        ({"within": "options", "context": "I", "small": True}, ["Table 6"]),
        ({"context": "I+T_V", "negatives": "hard"}, []),
        ({"context": "I", "small": True}, []),
    ],
)
async def test_published_figures_stand_beside_runs_within_the_options_alone(
    data: Path, index: Path, options: dict[str, Any], tables: list[str]
) -> None:
    run = await run_of(OpenArr(data=data, index=index, context="IN", within="options", vlm=seeing(data)), data)
    configuration = {**run.configuration, "options": {"which": "usable", "within": "all", **options}}

    found = [*published_beside(replace(run, configuration=configuration))]

    assert [each.title.partition(":")[0] for each in found] == tables


async def test_a_plan_asks_no_endpoint_what_it_can_do(data: Path, index: Path) -> None:
    vlm = seeing(data, narration=ALL_THREE)
    asked: list[ChatRequest] = []
    reader = ScriptedModel(lambda request: asked.append(request) or '{"answers": [1]}', identity="reader")
    llm = get_model(reader, engine=vlm.engine)
    options: dict[str, Any] = {"data": data, "index": index, "context": "IN", "vlm": vlm}
    await run_of(OpenArr(**options), data)

    counted = await planned(OpenArr(**options, llm=llm, rerank=5))

    assert counted == {"narration": (3, 0, 0), "rerank": (0, 1, 0), "searches": (1, 0, 0)}
    assert asked == []


async def test_a_judge_says_which_hits_mean_the_same(data: Path, index: Path) -> None:
    vlm = seeing(data, narration={"description": "Running."}, judge_equivalence=VERDICT)
    options: dict[str, Any] = {"data": data, "index": index, "context": "IN", "vlm": vlm}
    before = await planned(OpenArr(**options, judge=vlm))

    run = await run_of(OpenArr(**options, judge=vlm), data)

    assert run.figure("hit@10").value == pytest.approx(1 / 3)
    assert (run.figure("judged hit@10").value, run.figure("rescued by the judge").value) == (1, pytest.approx(2 / 3))
    assert before["judge"] == (0, 0, 10 * (2 + 2 + 1))
    after = await planned(OpenArr(**options, judge=vlm))
    assert {name: counts[1:] for name, counts in after.items()} == dict.fromkeys(after, (0, 0))
    assert (await rescored(Run.open(run.path), OpenArr))[1] == run.figures


VERDICT = {"common": "", "different": "", "reason": "", "verdict": "true"}
