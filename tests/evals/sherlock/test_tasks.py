"""Comparison, localization and retrieval: what is asked, what the figures are, and what is kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.errors import BadData, UsageError
from askance.evals import Matrix, Prediction, Run, Sample, evaluate
from askance.evals.analysis.pack import open_pack, write_pack
from askance.evals.analysis.pack_check import check_pack
from askance.evals.analysis.rescore import rescore
from askance.evals.controls import SWAPPED_REGION_NOTE, controlled
from askance.evals.sherlock import InferenceComparison, InferencePool, Localization, Retrieval, region_solver
from askance.evals.sherlock.task import SherlockTask
from askance.images import Image, RegionView
from askance.models import Engine, ScriptedScorer, run_sync
from askance.replay import MemoryStore
from tests.evals.sherlock import corpus

Score = Callable[[str, RegionView, str], float]
"""From the name of a picture, what is shown of it and a text to the score."""


class Scripted:
    """A scorer of regions; what it was asked is kept."""

    def __init__(self, score: Score, identity: str = "eye") -> None:
        self.id = identity
        self.asked: list[tuple[str, RegionView, tuple[str, ...]]] = []
        self.of = score

    async def score(self, image: Image, texts: Sequence[str]) -> Sequence[float]:
        return await self.score_view(image, texts, RegionView())

    async def score_view(self, image: Image, texts: Sequence[str], view: RegionView) -> Sequence[float]:
        self.asked.append((image.name, view, tuple(texts)))
        return [self.of(image.name, view, text) for text in texts]


def truths() -> Mapping[tuple[str, frozenset[Any]], set[str]]:
    """By picture and region, the inferences and the clues of people."""
    known: dict[tuple[str, frozenset[Any]], set[str]] = {}
    for scene in corpus.SCENES:
        for _, boxes, clue, inference, _ in scene.regions:
            corners = frozenset((x, y, x + w, y + h) for x, y, w, h in boxes)
            known.setdefault((scene.path.rpartition("/")[2], corners), set()).update({clue, inference})
    return known


TRUTHS = truths()


def knows(name: str, view: RegionView, text: str) -> float:
    """The score of an oracle, which knows the region by its boxes."""
    return float(text in TRUTHS.get((name, frozenset(view.boxes)), ()))


def by_length(name: str, view: RegionView, text: str) -> float:
    """The score of what looks at nothing but the text."""
    return float(len(text))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.write(tmp_path_factory.mktemp("sherlock"))


def run(kind: type[SherlockTask], data: Path, out: Path, **options: Any) -> Run:
    options = {"data": data, "scorer": Scripted(knows), "engine": Engine(records=MemoryStore()), **options}
    return evaluate(kind(**options), out=out)


def figures(run: Run) -> dict[str, float | None]:
    return {figure.metric: figure.value for figure in run.figures}


# --- comparison ---


def test_comparison_by_what_both_raters_say(data: Path, tmp_path: Path) -> None:
    ranks = {candidate.text: float(-place) for place, candidate in enumerate(_first(data).candidates)}
    best = Scripted(lambda name, view, text: ranks[text])

    known = figures(run(InferenceComparison, data, tmp_path / "run", scorer=best, ids=[_first(data).instance.id]))

    assert known["human accuracy"] == known["oracle"] == 1
    assert known["people"] == pytest.approx(0.6)  # one pair in five is a tie of the other rater, drawn wrongly
    assert known["tied pairs"] == 0


def _first(data: Path) -> Any:
    return InferenceComparison(data=data, solver="random").dataset.comparison()[0]


def test_comparison_asks_for_a_region_as_the_authors_draw_it(data: Path, tmp_path: Path) -> None:
    eye = Scripted(by_length)

    folder = run(InferenceComparison, data, tmp_path / "run", scorer=eye, region="hide", limit=1)

    ((name, view, texts),) = eye.asked
    instance = _first(data).instance
    assert (name, texts) == (instance.url.rpartition("/")[2], tuple(each.text for each in _first(data).candidates))
    assert view == RegionView("hide", instance.boxes, unit="native pixels", style="sherlock")
    (answer,) = folder.answers
    assert answer.prediction.matrix is not None
    assert answer.prediction.matrix.array.tolist() == [[float(len(text)) for text in texts]]
    assert folder.configuration["options"]["region"] == "hide"


def test_test_ratings_are_hidden(data: Path, tmp_path: Path) -> None:
    done = run(InferenceComparison, data, tmp_path / "run", split="test")

    assert figures(done)["human accuracy"] is None
    assert [each.sample.target for each in done.answers] == [{"ratings": None}] * 3
    assert any("ratings are hidden" in note for note in done.notes)


# --- localization ---


def test_an_oracle_finds_every_region_but_doubled_ones(data: Path, tmp_path: Path) -> None:
    done = run(Localization, data, tmp_path / "run")

    by_id = {answer.sample.id: answer.score.values for answer in done.answers if answer.score}
    doubled = next(url for url in by_id if url.endswith("103.jpg"))
    assert {values["accuracy"] for url, values in by_id.items() if url != doubled} == {1.0}
    assert figures(done)["chance"] == pytest.approx(np.mean([1 / 3, 1 / 2, 1 / 3, 1 / 3, 1 / 2]))
    assert figures(done)["accuracy: VCR"] == 1


def test_a_blind_scorer_is_all_ties(data: Path, tmp_path: Path) -> None:
    done = figures(run(Localization, data, tmp_path / "run", scorer=Scripted(by_length)))

    assert done["tied pairs"] == 1
    assert done["accuracy"] is not None
    assert done["accuracy"] < 0.9


def test_proposals_are_right_where_they_overlap(data: Path, tmp_path: Path) -> None:
    near = {
        (scene.path.rpartition("/")[2], place): inference
        for scene in corpus.SCENES
        for place, (*_, inference, _) in enumerate(scene.regions)
    }
    dataset = Localization(data=data, solver="random").dataset
    boxes = {url.rpartition("/")[2]: dataset.proposals(url) for url in dataset.urls}

    def score(name: str, view: RegionView, text: str) -> float:
        place = boxes[name].index(tuple(map(int, view.boxes[0])))
        return float(near.get((name, place)) == text)

    done = figures(run(Localization, data, tmp_path / "run", boxes="auto", scorer=Scripted(score)))

    assert done["accuracy"] == done["oracle"]
    assert done["chance"] is not None
    assert 0 < done["chance"] < 0.5


# --- retrieval ---


def test_an_oracle_ranks_first_what_has_no_twin(data: Path, tmp_path: Path) -> None:
    done = figures(run(Retrieval, data, tmp_path / "run"))

    assert done["P@1"] == done["P@1 ceiling"] == (5 / 7 + 4 / 6) / 2  # a text stands twice in each chunk
    assert done["rank im→txt: chunk 0"] == pytest.approx((5 * 1 + 2 * 1.5) / 7)
    assert done["rank txt→im: chunk 0"] == pytest.approx((5 * 1 + 2 * 1.5) / 7)
    assert done["P@1: definitely"] == pytest.approx((2 / 3 + 1) / 2)
    assert done["P@1 chance"] == pytest.approx(2 / 13)


def test_the_matrix_of_a_region_is_its_row_and_its_column(data: Path, tmp_path: Path) -> None:
    eye = Scripted(lambda name, view, text: sum(map(ord, f"{name}{view.boxes}{text}")) % 97)

    done = run(Retrieval, data, tmp_path / "run", scorer=eye, chunk=1)

    instances = Retrieval(data=data, solver="random").dataset.of_chunk(1)
    whole = np.array([_asked(eye, instance) for instance in instances])
    assert len(eye.asked) == len(instances)  # each region once, with all inferences
    for answer in done.answers:
        place = answer.sample.target["place"]
        assert answer.prediction.matrix is not None
        assert answer.prediction.matrix.array.tolist() == [whole[place].tolist(), whole[:, place].tolist()]


def _asked(eye: Scripted, instance: Any) -> list[float]:
    name, shown = instance.url.rpartition("/")[2], tuple(instance.boxes)
    _, view, texts = next(each for each in eye.asked if each[0] == name and each[1].boxes == shown)
    return [eye.of(name, view, text) for text in texts]


def test_other_pictures_leave_out_what_else_is_true_of_the_own(data: Path, tmp_path: Path) -> None:
    """A scorer that finds all that is true of a picture plausible, and the shortest of it most."""
    by_name: dict[str, set[str]] = {}
    for (name, _), texts in TRUTHS.items():
        by_name.setdefault(name, set()).update(texts)
    eye = Scripted(lambda name, view, text: (text in by_name[name]) / len(text))

    done = figures(run(Retrieval, data, tmp_path / "run", scorer=eye, chunk=1))

    assert done["P@1"] == pytest.approx(3 / 6)
    assert done["P@1, other pictures"] == 1


def test_smaller_pools_are_said_to_be(data: Path, tmp_path: Path) -> None:
    done = run(Retrieval, data, tmp_path / "run", limit=3)

    assert any(note.startswith("Not comparable with official figures") for note in done.notes)
    assert not any(
        note.startswith("Not comparable with official") for note in run(Retrieval, data, tmp_path / "all").notes
    )


def test_a_chunk_without_an_answer_is_called_a_chunk(data: Path, tmp_path: Path) -> None:
    chunk = {instance.boxes for instance in Retrieval(data=data, solver="random").dataset.of_chunk(0)}
    eye = Scripted(lambda name, view, text: knows(name, view, text) if view.boxes in chunk else float("nan"))
    task = Retrieval(data=data, scorer=eye, engine=Engine(records=MemoryStore()))

    notes = evaluate(task, out=tmp_path / "run", convention="answered").notes

    assert "over 1 of 2 chunks: chunk 1 has no value" in " ".join(notes)
    assert not any("fold" in note for note in notes)


def test_clues_are_held_against_regions(data: Path, tmp_path: Path) -> None:
    eye = Scripted(knows)

    run(Retrieval, data, tmp_path / "run", scorer=eye, text="clue", chunk=0)

    assert "a red bucket" in eye.asked[0][2]


# --- pools ---


def test_a_pool_has_the_own_inference_and_others_about_other_pictures(data: Path, tmp_path: Path) -> None:
    done = run(InferencePool, data, tmp_path / "run", count=4)

    about = {text: name for (name, _), texts in TRUTHS.items() for text in texts if text != corpus.SEA}
    for answer in done.answers:
        texts, place = answer.sample.inputs["inferences"], answer.sample.target["place"]
        assert len({*texts}) == 4
        assert answer.sample.image is not None
        others = {about.get(text) for at, text in enumerate(texts) if at != place}
        assert answer.sample.image.name not in others
    assert figures(done)["P@1"] == 1
    assert figures(done)["rank chance"] == 2.5
    assert {answer.sample.target["place"] for answer in done.answers} != {0}
    assert any(note.startswith("Not comparable with retrieval") for note in done.notes)


def test_a_pool_that_a_chunk_cannot_fill_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(BadData, match="has no pool of 20"):
        run(InferencePool, data, tmp_path / "run")


# --- all of them ---

TASKS = (InferenceComparison, Localization, Retrieval)


@pytest.mark.parametrize("kind", TASKS)
def test_lots_need_no_pictures_and_are_drawn_again_alike(kind: type[SherlockTask], data: Path, tmp_path: Path) -> None:
    one, two = (
        run(kind, data, tmp_path / name, images=data / "leaderboard_eval", scorer=None, solver="random")
        for name in "ab"
    )

    assert figures(one) == figures(two)
    assert one.label.startswith("random")
    assert all(answer.sample.image is None for answer in one.answers)


def test_equal_pairs_have_equal_lots(data: Path, tmp_path: Path) -> None:
    """An inference stands twice at one image and twice in each chunk, and one image has a region twice."""
    images = run(Localization, data, tmp_path / "images", scorer=None, solver="random")
    chunks = run(Retrieval, data, tmp_path / "chunks", scorer=None, solver="random")

    lots = defaultdict[tuple[str, ...], set[float]](set)
    for answer in images.answers:
        assert answer.prediction.matrix is not None
        for boxes, row in zip(answer.sample.inputs["regions"], answer.prediction.matrix.array, strict=True):
            for text, score in zip(answer.sample.inputs["inferences"], row, strict=True):
                lots[answer.sample.cluster, str(boxes), text].add(float(score))
    assert {len(each) for each in lots.values()} == {1}
    assert len({score for each in lots.values() for score in each}) == len(lots)
    for answer in chunks.answers:
        assert answer.prediction.matrix is not None
        assert len({answer.prediction.matrix.array[0][place] for place in answer.sample.target["same text"]}) == 1


@pytest.mark.parametrize("kind", TASKS)
def test_a_run_is_scored_again_without_data_and_without_weights(
    kind: type[SherlockTask], data: Path, tmp_path: Path
) -> None:
    before = figures(run(kind, data, tmp_path / "run"))

    again = run_sync(rescore(Run.open(tmp_path / "run"), kind))

    assert figures(again.run) == before


@pytest.mark.parametrize("kind", TASKS)
def test_numbers_that_are_none_are_no_answers(kind: type[SherlockTask], data: Path, tmp_path: Path) -> None:
    done = run(kind, data, tmp_path / "run", scorer=Scripted(lambda name, view, text: float("nan")))

    assert {answer.prediction.outcome for answer in done.answers} == {"failed"}
    assert all("no number" in str(answer.prediction.reason) for answer in done.answers)


@pytest.mark.parametrize("kind", TASKS)
def test_an_encoder_that_takes_no_views_is_refused(kind: type[SherlockTask], data: Path) -> None:
    scorer = ScriptedScorer(lambda image, text: 0.0, identity="whole")

    with pytest.raises(UsageError, match="takes no part of a picture"):
        kind(data=data, scorer=scorer, engine=Engine(records=MemoryStore())).evaluation()


@pytest.mark.parametrize("kind", TASKS)
def test_a_solver_of_ones_own_gives_a_matrix(kind: type[SherlockTask], data: Path, tmp_path: Path) -> None:
    def constant(sample: Sample) -> Prediction:
        rows, columns = (2, sample.target["pool"]) if kind is Retrieval else _sizes(sample)
        return Prediction(outcome="answered", matrix=Matrix(np.zeros((rows, columns))))

    def wrong(sample: Sample) -> list[float]:
        return [1.0]

    done = figures(run(kind, data, tmp_path / "run", scorer=None, solver=constant))

    assert next(iter(done.values())) is not None
    with pytest.raises(UsageError, match="is no matrix of"):
        run(kind, data, tmp_path / "wrong", scorer=None, solver=wrong)


def _sizes(sample: Sample) -> tuple[int, int]:
    return len(sample.inputs["regions"]), len(sample.inputs["inferences"])


@pytest.mark.parametrize("kind", TASKS)
def test_without_pictures_nothing_is_asked(kind: type[SherlockTask], data: Path, tmp_path: Path) -> None:
    with pytest.raises(BadData, match="has a picture"):
        run(kind, data, tmp_path / "run", images=data / "leaderboard_eval")


def test_a_chunk_that_is_not_there_is_named(data: Path, tmp_path: Path) -> None:
    with pytest.raises(BadData, match="no chunk 9"):
        run(Retrieval, data, tmp_path / "run", chunk=9)


def test_unknown_ids_are_named(data: Path, tmp_path: Path) -> None:
    with pytest.raises(BadData, match="1 of 1 names in the list are unknown, such as 'x'"):
        run(Retrieval, data, tmp_path / "run", ids=["x"])


def test_a_replay_of_comparison_needs_no_encoder(data: Path, tmp_path: Path) -> None:
    records = MemoryStore()
    before = run(InferenceComparison, data, tmp_path / "run", engine=Engine(records=records))
    form = before.configuration["options"]["scorer"]

    again = run(
        InferenceComparison, data, tmp_path / "again", scorer=form, engine=Engine(records=records, mode="replay")
    )

    assert figures(again) == figures(before)


def test_a_replay_of_a_chunk_says_where_its_scores_are(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="they lie in the matrices of the run"):
        run(Retrieval, data, tmp_path / "run", engine=Engine(records=MemoryStore(), mode="replay"))


def test_so_does_one_of_many_proposals(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_solver, "MOST_RECORDED", 8)
    records = MemoryStore()
    before = run(Localization, data, tmp_path / "run", boxes="auto", engine=Engine(records=records))

    assert figures(before)["accuracy"] is not None
    with pytest.raises(UsageError, match="they lie in the matrices of the run"):
        run(Localization, data, tmp_path / "again", boxes="auto", engine=Engine(records=records, mode="replay"))


@pytest.mark.parametrize("kind", TASKS)
def test_a_pack_is_checked_without_weights(kind: type[SherlockTask], data: Path, tmp_path: Path) -> None:
    done = run(kind, data, tmp_path / "run")
    write_pack([done], tmp_path / "runs.pack")

    with open_pack(tmp_path / "runs.pack") as pack:
        check = run_sync(check_pack(pack, tasks={kind.name: kind}))

    assert check.follows
    assert check.unchecked == (len(done.answers) if kind is Retrieval else 0)


# --- the control ---


@pytest.mark.parametrize("kind", [InferenceComparison, Retrieval])
@pytest.mark.parametrize("seed", range(3))
def test_a_swapped_region_lies_in_another_picture(kind: type[SherlockTask], seed: int, data: Path) -> None:
    plain = kind(data=data, scorer=Scripted(knows), engine=Engine(records=MemoryStore())).evaluation()

    swapped = controlled(plain, "swapped-region", seed=seed)

    regions = {(_picture(sample), str(sample.inputs["regions"])): sample for sample in plain.samples}
    for own, other in zip(plain.samples, swapped.samples, strict=True):
        assert _picture(other) != _picture(own)
        assert (_picture(other), str(other.inputs["regions"])) in regions
        assert other.inputs["inferences"] == own.inputs["inferences"]
        assert (other.id, other.target, other.group, other.tags) == (own.id, own.target, own.group, own.tags)
    assert swapped.label.endswith(", swapped region")


def _picture(sample: Sample) -> str:
    assert sample.image is not None
    return sample.image.sha256


def test_pools_hold_swapped_regions(data: Path, tmp_path: Path) -> None:
    """An oracle is at chance where every region of the pool is another's."""
    task = Retrieval(data=data, scorer=Scripted(knows), engine=Engine(records=MemoryStore()), chunk=0)

    swapped = controlled(task, "swapped-region")
    done = evaluate(swapped, out=tmp_path / "run")

    by_id = {sample.id: sample for sample in swapped.samples}
    for answer in done.answers:
        assert answer.prediction.matrix is not None
        own = by_id[answer.sample.id].inputs["inferences"][0]
        expected = [
            knows(str(each.image and each.image.name), _view(each), own)
            for each in sorted(swapped.samples, key=lambda each: each.tags["place"])
        ]
        assert answer.prediction.matrix.array[1].tolist() == expected


def _view(sample: Sample) -> RegionView:
    return RegionView("highlight", tuple(map(tuple, sample.inputs["regions"][0])))


def test_pictures_of_other_counts_of_regions_are_left_out(data: Path) -> None:
    task = Localization(data=data, scorer=Scripted(knows), engine=Engine(records=MemoryStore()))
    one, two, *_ = task.evaluation().samples  # of three regions and of two

    with pytest.raises(UsageError, match="no two pictures have samples with as many"):
        controlled(replace(task.evaluation(), samples=[one, two]), "swapped-region")
    assert controlled(task, "swapped-region").notes[-1] == SWAPPED_REGION_NOTE


def test_regions_are_not_swapped_as_pictures(data: Path) -> None:
    task = Localization(data=data, scorer=Scripted(knows), engine=Engine(records=MemoryStore()))

    with pytest.raises(UsageError, match="--control swapped-region"):
        controlled(task, "swapped-image")


# --- a picture that cannot be used ---


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """The data with a picture, of the last place but one in chunk 0, that is cut off."""
    folder = corpus.write(tmp_path / "damaged")
    picture = folder / "images" / corpus.SCENES[3].path
    picture.write_bytes(picture.read_bytes()[:300])
    return folder


class Opening(Scripted):
    """A scorer that looks at its pictures."""

    async def score_view(self, image: Image, texts: Sequence[str], view: RegionView) -> Sequence[float]:
        view.render(image)
        return await super().score_view(image, texts, view)


def test_a_damaged_picture_fails_its_own_sample_and_is_left_out_of_the_ranks(
    damaged: Path, data: Path, tmp_path: Path
) -> None:
    def score(name: str, view: RegionView, text: str) -> float:
        return 9.0 if name == corpus.SCENES[3].path.rpartition("/")[2] else knows(name, view, text)

    options = {"scorer": Opening(score), "chunk": 0}
    whole, done = (run(Retrieval, each, tmp_path / out, **options) for out, each in {"a": data, "b": damaged}.items())

    (failed,) = [answer for answer in done.answers if not answer.prediction.answered]
    assert corpus.SCENES[3].path.rpartition("/")[2] in str(failed.prediction.reason)
    values, before = (
        {answer.sample.id: answer.score.values for answer in each.answers if answer.score} for each in (done, whole)
    )
    assert len(values) == 6
    for name, own in values.items():
        assert own["rank im→txt"] == before[name]["rank im→txt"]
        assert own["rank txt→im"] == before[name]["rank txt→im"] - 1  # the damaged one stood above all
    (note,) = [note for note in done.notes if "cannot be shown" in note]
    assert note == (
        "rank txt→im of 6 samples leaves out regions that cannot be shown, up to 1 of a pool; a rank among fewer is "
        "better, here by 1 at most"
    )
    again = run_sync(rescore(done, Retrieval)).run
    assert (figures(again), note in again.notes) == (figures(done), True)
    assert not any("cannot be shown" in note for note in whole.notes)


def test_a_damaged_picture_fails_no_other_sample(damaged: Path, tmp_path: Path) -> None:
    done = run(Localization, damaged, tmp_path / "run", scorer=Opening(knows))

    (failed,) = [answer for answer in done.answers if not answer.prediction.answered]
    assert failed.sample.id == corpus.SCENES[3].url
    assert corpus.SCENES[3].path.rpartition("/")[2] in str(failed.prediction.reason)


@pytest.mark.parametrize("missing", [[99], ["x"], "all"])
def test_a_trace_cannot_leave_out_what_is_no_other_region(missing: Any, data: Path, tmp_path: Path) -> None:
    def solver(sample: Sample) -> Prediction:
        return Prediction(
            outcome="answered", matrix=Matrix(np.zeros((2, sample.target["pool"]))), trace={"missing": missing}
        )

    with pytest.raises(UsageError, match="no places of other regions"):
        run(Retrieval, data, tmp_path / "run", scorer=None, solver=solver)
