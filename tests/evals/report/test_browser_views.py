"""Blame, single pictures and judges in a real browser: from a disk, in silence, on a phone, light and dark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from askance.agents import judge_preference
from askance.chains import action_reason, verbalize
from askance.evals import Evaluation, Matrix, Prediction, Ranking, Sample, evaluate, right_or_wrong
from askance.evals.judges import Label, Labels, Votes, judge_card, judge_preferences
from askance.evals.judges.labels import VotedPair
from askance.evals.report import Thumbnails, build_report, report_page
from askance.evals.report.card_page import card_page
from askance.evals.report.preference_page import preference_page as page_of_preferences
from askance.evals.run import Run, picture_answer
from askance.evals.suite.retrieval_metrics import retrieval_scorer
from askance.models import Engine, ScriptedModel, get_model, run_sync
from askance.nodes import Example
from askance.replay import MemoryStore
from tests.evals.guilty import OPTIONS, liar, run_of
from tests.evals.odd import write_pictures
from tests.evals.report.blames import hostile, lied
from tests.evals.report.browser import opened, reported, showing, written
from tests.evals.report.runs import HOSTILE
from tests.evals.report.test_preference_page import hostile_pairs
from tests.judges import Scripted, by_words, tasteful
from tests.scripted import ENFORCED, model_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow(group="pages")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return write_pictures(tmp_path / "pictures", count=4)


def blame_page(folder: Path, pictures: Path) -> Path:
    report = build_report([lied(pictures, folder / "run"), run_of(pictures, None, out=str(folder / "honest"))])
    return written(folder, report_page(report))


def pictures_page(folder: Path, pictures: Path) -> Path:
    """Four pictures and one that is gone, through the whole chain."""
    records = MemoryStore()
    chain = action_reason(liar(pictures, None, records=records), mode="single")
    files = [*sorted(pictures.iterdir()), pictures / "zz.png"]
    inputs: list[Any] = [{"image": file, "name": file.as_posix(), "options": OPTIONS} for file in files]
    answers = [picture_answer(reading.to_dict(), OPTIONS) for reading in chain.batch(inputs)]
    report = build_report([Run.unkept({"chain": "action-reason"}, answers=answers, records=records)], title="Posters")
    shown = Thumbnails.of(report.runs, files)
    return written(folder, report_page(report, pictures=shown))


def judge_page(folder: Path, pictures: Path) -> Path:
    rows = tuple(
        Label(
            reference=f"a fish {place}", candidate=f"{word} {place}", verdict=word == "fish", votes=(), group=f"{place}"
        )
        for place, word in enumerate(["fish", "tree", "fish", "bird"])
    )
    labels = Labels(name="labels.csv", digest="0" * 64, rows=rows)
    card = run_sync(judge_card(Scripted(by_words, name=HOSTILE[0]), labels, draws=2))
    return written(folder, card_page(card, labels=labels))


def preference_page(folder: Path, _: Path) -> Path:
    """Preferences between hostile answers, beside people's votes."""
    pairs = hostile_pairs()
    votes = Votes(
        name=HOSTILE[1],
        digest="0" * 64,
        rows={pair.id: VotedPair(votes=("a", "b", "a"), texts={}) for pair in pairs.pairs[:4]},
    )
    judges = [judge_preference(model_of(tasteful(taste))) for taste in ("long", "place")]
    made = run_sync(judge_preferences(judges, pairs, votes=votes))
    return written(folder, page_of_preferences(made, pairs))


def few(pictures: Path, **options: Any) -> Run:
    """A run in which each question stands behind two hostile examples."""
    samples = [
        Sample(
            id=f"0{place}",
            inputs={"question": "?", "examples": [Example(values={"question": HOSTILE[0]}, answer=HOSTILE[1])] * 2},
            target="a",
            trace={"shots": {"from": "knn", "embedder": HOSTILE[2], "compared": "pictures", **options}},
        )
        for place in (1, 2)
    ]
    return evaluate(Evaluation(samples=samples, solver=answered, scorer=right_or_wrong()), out=pictures.parent / "few")


def answered(_: Sample) -> str:
    return "a"


CHOSEN = [{"id": HOSTILE[0], "group": 7, "similarity": 0.5}, {"id": "near", "group": "near", "similarity": 0.75}]


def examples_page(folder: Path, pictures: Path) -> Path:
    run = few(pictures, chosen=CHOSEN, left_out=[{"id": "twin", "why": "the same picture"}])
    return reported(folder, run)


def odd_examples_page(folder: Path, pictures: Path) -> Path:
    """What a stranger may have written in the place of examples."""
    run = few(pictures, chosen={"no": "list"}, left_out="none")
    file = run.path / "samples.jsonl"
    first, second = file.read_text("utf-8").splitlines()
    line = json.loads(first)
    line["sample"]["inputs"]["examples"] = [None, 3, "x"]
    file.write_text(f"{json.dumps(line)}\n{second}\n", "utf-8")
    return reported(folder, Run.open(run.path))


PAGES: dict[str, Callable[[Path, Path], Path]] = {
    "blame": blame_page,
    "pictures": pictures_page,
    "judge": judge_page,
    "preference": preference_page,
    "examples": examples_page,
    "odd examples": odd_examples_page,
}


@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
def test_a_page_opens_alone_and_in_silence(
    browser: Browser, tmp_path: Path, pictures: Path, make: Callable[[Path, Path], Path]
) -> None:
    file = make(tmp_path, pictures)
    with opened(browser, file) as seen:
        for key in ("j", "o", "Escape", "Escape", "?"):
            seen.page.keyboard.press(key)

        assert [url for url in seen.requests if not url.startswith("data:")] == [file.as_uri()]
        assert seen.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
def test_a_phone_shows_all_of_it_without_moving_aside(
    browser: Browser, tmp_path: Path, pictures: Path, make: Callable[[Path, Path], Path], scheme: str
) -> None:
    options = {"viewport": {"width": 390, "height": 800}, "color_scheme": scheme}
    with opened(browser, make(tmp_path, pictures), "#overview", **options) as seen:
        assert seen.do("document.documentElement.scrollWidth") <= 390
        paper, ink = (seen.do(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))

        assert (sum(channels(paper)) > sum(channels(ink))) == (scheme == "light")


def channels(colour: str) -> list[float]:
    return [float(each) for each in colour.partition("(")[2].rstrip(")").split(",")[:3]]


def test_examples_stand_with_the_sample_and_say_how_they_were_chosen(
    browser: Browser, tmp_path: Path, pictures: Path
) -> None:
    with opened(browser, examples_page(tmp_path, pictures), "#sample=01") as seen:
        assert seen.text("section:has(> h2:text-is('Inputs'))").split() == ["Inputs", "question", "?"]
        section = seen.text("section:has(ol[aria-label=Examples])")
        assert f"chosen by knn: pictures compared by {HOSTILE[2]}, the nearest last" in section
        assert "twin left out: the same picture" in section
        assert seen.texts("ol[aria-label=Examples] .flags") == ["0.500", "0.750"]
        assert [each.split(" · answer ")[0] for each in seen.texts("ol[aria-label=Examples] summary")] == [
            f"{HOSTILE[0]} · group 7",
            "near",
        ]


def test_a_guilty_link_leads_to_its_samples_and_each_says_what_became_of_it(
    browser: Browser, tmp_path: Path, pictures: Path
) -> None:
    with opened(browser, blame_page(tmp_path, pictures), "#blame") as seen:
        seen.page.click("#blame a >> text='UH · what is unusual'")
        seen.until(showing("samples"))
        assert seen.texts(".row .id") == ["01", "03"]
        seen.page.go_back()
        seen.page.click("#blame a >> text='03'")
        seen.until(showing("samples"))
        assert seen.texts(".detail h1") == ["03"]

        assert seen.texts(".blamed > p b") == ["To blame: UH · what is unusual."]
        (body,) = seen.texts(".blamed .link-diff[open]")
        assert "accuracy 0 → 1" in body
        assert seen.texts(".blamed .link-diff[open] del") == [" LIE", "2. I should sleep"]
        assert seen.texts(".blamed .link-diff[open] ins") == ["1. I should drink tea"]
        assert seen.complaints == []


def test_a_filter_by_link_survives_a_reload(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    with opened(browser, blame_page(tmp_path, pictures), "#samples") as seen:
        seen.page.select_option('select[title="Link to blame"]', "UH")
        seen.page.reload()
        seen.page.wait_for_selector("html[data-ready]", state="attached")

        assert (seen.do("location.hash"), seen.texts(".row .id")) == ("#blame=UH", ["01", "03"])


def test_a_blame_that_means_harm_does_nothing(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    run = hostile(lied(pictures, tmp_path / "run"))
    page = reported(tmp_path, run)
    with opened(browser, page, "#sample=01") as seen:
        for _ in range(3):
            seen.page.keyboard.press("o")
            seen.page.keyboard.press("j")

        assert seen.page.title() == run.task
        assert (seen.requests, seen.complaints) == ([page.as_uri()], [])
        assert (
            seen.do("document.querySelectorAll('.detail script, .detail img, .detail style, .detail svg').length") == 0
        )


def test_single_pictures_open_on_the_first_and_show_every_call(
    browser: Browser, tmp_path: Path, pictures: Path
) -> None:
    with opened(browser, pictures_page(tmp_path, pictures)) as seen:
        assert seen.text("#to-samples").split() == ["Pictures", "5"]
        assert seen.texts(".detail h1") == [(pictures / "00.png").as_posix()]
        seen.page.keyboard.press("o")
        text = seen.text(".detail")
        for words in ("V · objects", "BUY 00", "• chosen", "The surface of cup mimics", '"answers": [1]'):
            assert words in text
        seen.until("[...document.images].every((image) => image.naturalWidth > 0)")

        seen.page.click("#to-overview")
        seen.until(showing("overview"))
        assert "of 5" in seen.text(".big")


def test_a_picture_that_cannot_be_read_says_so(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    file = pictures_page(tmp_path, pictures)
    with opened(browser, file, f"#sample={(pictures / 'zz.png').as_posix()}") as seen:
        assert seen.texts(".bar-top .mark") == ["skipped"]
        assert "zz.png" in seen.text(".detail .warning")


def test_what_was_said_of_single_pictures_means_no_harm(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    records = MemoryStore()
    script = ScriptedModel(lambda _: json.dumps({"description": HOSTILE[1]}), capabilities=ENFORCED, identity="harm")
    model = get_model(script, engine=Engine(records=records))
    name = HOSTILE[1]
    reading = verbalize(model, context="IN").invoke({"image": pictures / "00.png", "name": name})
    run = Run.unkept(
        {"chain": HOSTILE[2], "prompts": {HOSTILE[3]: HOSTILE[5]}},
        answers=[picture_answer(reading.to_dict(), HOSTILE[:2])],
        records=records,
        prompts={HOSTILE[3]: HOSTILE[4]},
    )
    report = build_report([run], title=HOSTILE[0], notes=HOSTILE[:2])
    with opened(browser, written(tmp_path, report_page(report))) as seen:
        seen.page.keyboard.press("o")

        assert seen.texts(".detail h1") == [name]
        assert HOSTILE[1] in seen.text(".detail")
        assert (seen.page.title(), seen.complaints) == (HOSTILE[0], [])
        assert seen.do("document.querySelectorAll('img, .detail script').length") == 0


def test_the_card_of_a_judge_has_no_samples_and_a_drawing_with_words(
    browser: Browser, tmp_path: Path, pictures: Path
) -> None:
    with opened(browser, judge_page(tmp_path, pictures)) as seen:
        assert not seen.page.is_visible("#to-samples")
        assert seen.texts("h1") == [HOSTILE[0]]
        assert seen.do("document.querySelector('svg.square desc').textContent").startswith(
            "true by people, %, by draws that say true: of 2 pairs"
        )
        seen.page.click("#figures th:nth-child(2) button")
        assert seen.page.get_attribute("#figures th:nth-child(2)", "aria-sort") == "descending"


def hits_page(folder: Path) -> Path:
    """Two samples with three hits of four, one of which is true, and a true entry that is not found."""
    names = ["e0", "e1", "e2"]
    value = [{"id": name, "text": text, "score": 1.0} for name, text in zip(names, HOSTILE, strict=False)]

    def ranked(_: Sample) -> Prediction:
        return Prediction(outcome="answered", value=value, ranking=Ranking([*names, "e3"], [1.0] * 4))

    target = {"true": ["e1", "e9"], "texts": [HOSTILE[1], HOSTILE[3]]}
    samples = [Sample(id=name, target=target) for name in ("a", "b")]
    task = Evaluation(name="tests/hits", samples=samples, solver=ranked, scorer=retrieval_scorer())
    run = evaluate(task, out=folder / "run")
    return reported(folder, run)


def test_hits_are_listed_with_those_that_are_true(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, hits_page(tmp_path), "#sample=a") as seen:
        assert seen.texts("ol[aria-label=Hits] .words") == [*HOSTILE[:3]]
        assert seen.texts("ol[aria-label=Hits] .flags") == ["", "✓ true", ""]
        assert seen.texts("ol[aria-label^=True] .n") == ["2", "–"]
        assert "The first 3 of 4." in seen.text(".detail")
        assert seen.do("document.title") != "owned"
        assert seen.complaints == []


def scores_page(folder: Path) -> Path:
    """A sample with scores and ratings of three inferences about a region."""

    def scored(_: Sample) -> Prediction:
        return Prediction(outcome="answered", value=[[2]], matrix=Matrix(np.array([[0.5, 2.25, 1.0]])))

    inputs = {"regions": [[[0, 0, 1, 1]]], "inferences": [*HOSTILE[:3]]}
    sample = Sample(id="a", inputs=inputs, target={"ratings": [[1, 3, 2], [1, 2, 2]]})
    scorer = right_or_wrong(lambda sample, value: value == [[2]])
    run = evaluate(Evaluation(name="tests/scores", samples=[sample], solver=scored, scorer=scorer), out=folder / "run")
    return reported(folder, run)


def test_scores_are_a_table_with_what_people_say(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, scores_page(tmp_path), "#sample=a") as seen:
        assert seen.texts(".scores thead th") == ["inference", "score", "rater 1", "rater 2"]
        assert seen.texts(".scores tbody th") == [HOSTILE[1], HOSTILE[2], HOSTILE[0]]
        assert seen.texts(".scores td") == ["2.25", "3", "2", "1", "2", "2", "0.5", "1", "1"]
        assert seen.complaints == []
