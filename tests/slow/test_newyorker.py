"""The New Yorker suite with real weights at vLLM: tasks are built of real annotations, asked, killed, and replayed.

`ASKANCE_TEST_NEWYORKER` names a folder with the real annotations and files of ratings. Explanations and the ratings of
most contests are made up, since those are not among them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from askance.chat import OUTCOMES
from askance.evals import Run, compare
from askance.evals.newyorker import NewYorker
from tests.evals.newyorker import cartoons
from tests.evals.newyorker.raw_files import rated, write_ratings
from tests.slow.commands import Place, Ran
from tests.slow.conftest import Switch
from tests.slow.environments import HERE, checked

REAL = Path(os.environ.get("ASKANCE_TEST_NEWYORKER", ""))
"""A folder with the real annotations and real files of ratings."""
ANNOTATIONS = "all_newyorker_contest_annotations.json"

pytestmark = [
    pytest.mark.slow(group="servers"),
    pytest.mark.xdist_group("blind"),
    pytest.mark.skipif(
        not (REAL / ANNOTATIONS).is_file(), reason="ASKANCE_TEST_NEWYORKER names no folder with real files"
    ),
]

SETTINGS = """\
[models.blind]
spec = "openai:blind-vlm@{url}"
temperature = 0
max_tokens = 100
extra = {{ repetition_penalty = 1.3 }}  # or it says one thing for ever
"""
RATED = range(530, 570)
"""Contests whose ratings are made up."""
ITEMS = 20
HOW: dict[str, tuple[Any, ...]] = {
    "zero-shot": (ITEMS,),
    "step by step": (ITEMS, "-T", "step_by_step=true"),
    "5 shots": (ITEMS // 2, "-T", "shots=5"),  # six times as long to read
}
ASKED: dict[str, tuple[str, ...]] = {
    **{
        f"{task}, {how}": (f"newyorker/{task}", "--data", "mine", "--limit", *map(str, limited))
        for task in ("matching", "ranking")
        for how, limited in HOW.items()
    },
    "ranking of real ratings": ("newyorker/ranking", "--data", "real"),
    "explanation": ("newyorker/explanation", "--data", "mine", "-T", "shots=2"),
}
"""What is run, each once."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A run against the server, what was planned before, and what the server had to do with it."""

    ran: Ran
    plan: dict[str, Any]
    run: Run
    served: int
    """Requests that the server counted meanwhile."""
    recorded: int
    """Calls that came on record meanwhile."""
    seconds: float


class Lab:
    """A user's folder with tasks, beside a server; each run is made once."""

    def __init__(self, switch: Switch, place: Place) -> None:
        self.switch, self.place = switch, place
        self.asked = cache(self._asked)

    def words(self, name: str, *more: str) -> list[str]:
        return ["eval", "run", *ASKED[name], "--llm", "blind", "--context", "description", "--json", *more]

    def _asked(self, name: str) -> Asked:
        server = self.switch.on()
        plan = self.place.run(*self.words(name, "--plan"))
        assert plan.code == 0, plan.err
        served, known, started = server.requests_served, self.place.keys(), time.monotonic()
        ran = self.place.run(*self.words(name, "--out", folder_of(name)))
        seconds = time.monotonic() - started
        assert ran.code in {0, 1}, ran.err
        run = Run.open(self.place.folder / folder_of(name))
        accuracy = [each for each in run.figures if each.metric == "accuracy"]
        sys.stdout.write(
            f"\n{name}: {run.totals['outcomes']}, accuracy {[(each.value, each.interval) for each in accuracy]}, "
            f"planned {plan.lines[0]['calls']}, served {server.requests_served - served}, {seconds:.0f} s\n"
        )
        return Asked(
            ran=ran,
            plan=plan.lines[0],
            run=run,
            served=server.requests_served - served,
            recorded=len(self.place.keys() - known),
            seconds=seconds,
        )


def folder_of(name: str) -> str:
    return f"runs/{name.replace(', ', '-').replace(' ', '-')}"


@pytest.fixture(scope="module")
def lab(vllm_switch: Switch, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A folder in which tasks were built."""
    place = Place.make(tmp_path_factory.mktemp("newyorker") / "work", photos, SETTINGS.format(url=vllm_switch.on().url))
    ratings = place.folder / "ratings"
    for contest in RATED:
        write_ratings(ratings / f"{contest}_summary.csv", contest, rated(contest))
    for path in REAL.glob("*.csv"):
        (ratings / path.name).write_bytes(path.read_bytes())
    annotations = str(REAL / ANNOTATIONS)
    build = ("newyorker", "build", "--annotations", annotations)
    real = place.run(*build, "--captions", str(REAL), "-o", "real", "--json")
    assert real.code == 0, real.err
    explanations = [
        {
            "contest_number": item.contest,
            "caption": item.choices["ABCDE".index(item.label)],
            "explanation": "The caption takes the picture at its word, and nobody in it is surprised.",
        }
        for fold in range(5)
        for item in NewYorker.open(place.folder / "real").items("matching", fold=fold)[:3]
    ]
    (place.folder / "explanations.json").write_text(json.dumps(explanations), "utf-8")
    mine = place.run(*build, "--captions", "ratings", "--explanations", "explanations.json", "-o", "mine", "--json")
    assert mine.code == 0, mine.err
    assert place.run("models", "check", "blind").code == 0  # so that no run has to find out what the endpoint can do
    return Lab(vllm_switch, place)


def lasting(folder: Path) -> list[dict[str, Any]]:
    """The samples of a run by id, without what is volatile."""
    lines = map(json.loads, (folder / "samples.jsonl").read_text("utf-8").splitlines())
    found = [{name: value for name, value in line.items() if name != "meta"} for line in lines]
    return sorted(found, key=lambda line: line["id"])


def test_what_is_built_of_real_files_is_asked_as_far_as_it_goes(lab: Lab) -> None:
    """Of two contests with ratings one gives items of ranking; it is of one fold, and the others test none."""
    run = lab.asked("ranking of real ratings").run

    assert len(run.answers) == 6
    assert {answer.sample.tags["contest"] for answer in run.answers} == {510}
    assert {answer.sample.target["winner"] for answer in run.answers} == {"crowd_winner", "official_winner"}
    assert run.options["folds"] == sorted({answer.sample.tags["fold"] for answer in run.answers})


@pytest.mark.parametrize("name", ASKED)
def test_every_sample_ends_in_a_named_outcome_and_what_was_planned_is_asked(lab: Lab, name: str) -> None:
    asked = lab.asked(name)
    outcomes = Counter(answer.prediction.outcome for answer in asked.run.answers)

    assert {*outcomes} <= {*OUTCOMES}
    assert dict(outcomes) == asked.run.totals["outcomes"]
    assert sum(outcomes.values()) == len(asked.run.answers)
    assert asked.ran.code == int({*outcomes} != {"answered"})
    again = sum(len(answer.keys) - 1 for answer in asked.run.answers)  # a reply that cannot be read is asked for again
    assert asked.plan["calls"] + asked.plan["hits"] == len(asked.run.answers)
    assert asked.served == asked.recorded == asked.plan["calls"] + again


@pytest.mark.parametrize("name", [name for name in ASKED if name.partition(", ")[2]])
def test_figures_stand_by_fold(lab: Lab, name: str) -> None:
    run = lab.asked(name).run
    samples = Counter(answer.sample.tags["fold"] for answer in run.answers)
    each = HOW[name.partition(", ")[2]][0] // 5
    found = {figure.metric: figure for figure in run.figures}

    assert samples == dict.fromkeys(range(5), each)
    assert [found[f"accuracy: fold {fold}"].samples for fold in range(5)] == [each] * 5
    of_folds = [found[f"accuracy: fold {fold}"].value for fold in range(5)]
    assert found["accuracy"].value == pytest.approx(sum(value or 0.0 for value in of_folds) / 5)
    contests = {answer.sample.tags["contest"] for answer in run.answers}
    assert found["accuracy"].clusters == len(contests)
    assert (found["accuracy"].interval is None) == (len(contests) == 5)  # one a fold: nothing to draw


@pytest.mark.parametrize("task", ["matching", "ranking"])
def test_examples_are_real_captions_of_other_contests(lab: Lab, task: str) -> None:
    run = lab.asked(f"{task}, 5 shots").run

    for answer in run.answers:
        shown = answer.sample.inputs["examples"]
        assert len(shown) == 5
        assert not {str(answer.sample.inputs["options"])} & {str(each.values["options"]) for each in shown}


def test_a_run_that_is_killed_goes_on_and_asks_only_the_rest(lab: Lab) -> None:
    whole = 30
    words = [
        *("eval", "run", "newyorker/matching", "--data", "mine", "--llm", "blind", "--context", "description-2"),
        *("--limit", str(whole), "--concurrency", "1", "--json", "--out", "runs/killed"),
    ]
    lab.switch.on()
    known = lab.place.keys()
    process = lab.place.begin_by(Path(sys.executable), words, {}, terminal=subprocess.DEVNULL)
    samples = lab.place.folder / "runs" / "killed" / "samples.jsonl"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if samples.is_file() and samples.read_bytes().count(b"\n") >= 5:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = lab.place.keys() - known
    assert 5 <= len(before) < whole

    plan = lab.place.run(*words, "--plan").lines[0]
    ran = lab.place.run(*words)
    run = Run.open(lab.place.folder / "runs" / "killed")
    after = lab.place.keys() - known - before
    sys.stdout.write(f"\nkilled after {len(before)} calls, {len(after)} after that, {run.totals['outcomes']}\n")

    assert ran.code in {0, 1}, ran.err
    assert len(run.answers) == whole
    asked = [key for answer in run.answers for key in answer.keys]
    assert {*asked} == before | after
    assert len(after) == len({*asked} - before)
    assert plan["calls"] == whole - len({answer.sample.id for answer in run.answers if {*answer.keys} & before})


def test_a_blind_model_is_tied_with_itself_on_other_cartoons(lab: Lab) -> None:
    lab.switch.on()
    cartoons.lines(lab.place.folder / "drawn")
    words = ("eval", "run", "newyorker/matching", "--data", "drawn", "--vlm", "blind", "--limit", str(ITEMS), "--json")
    for out, more in {"looking": (), "swapped": ("--control", "swapped-image")}.items():
        ran = lab.place.run(*words, "--out", f"runs/{out}", *more)
        assert ran.code in {0, 1}, ran.err
    looking, swapped = (Run.open(lab.place.folder / "runs" / out) for out in ("looking", "swapped"))

    compared = compare(looking, swapped, convention="answered")

    assert looking.totals["outcomes"]["answered"] > 0
    assert {each.comparison.verdict for each in compared if each.comparison.n} == {"tied"}


def test_an_encoder_ranks_captions_of_drawn_cartoons(lab: Lab, local_python: Path, tmp_path: Path) -> None:
    checked([str(local_python), str(HERE / "make_duals.py"), str(tmp_path), "clip"])
    data = cartoons.lines(tmp_path / "drawn")
    words = ("eval", "run", "newyorker/matching", "--data", str(data), "-T", f"scorer=clip:{tmp_path / 'clip'}")
    ran = lab.place.run_by(local_python, [*words, "--json", "--out", "runs/clip"], {"OMP_NUM_THREADS": "1"})
    assert ran.code == 0, ran.err
    run = Run.open(lab.place.folder / "runs" / "clip")

    assert run.totals["outcomes"] == {"answered": 3 * len(cartoons.CONTESTS)}
    assert run.figure("accuracy").interval is not None


@pytest.mark.parametrize("name", ASKED)
def test_a_replay_with_the_server_stopped_gives_equal_samples(lab: Lab, name: str) -> None:
    asked = lab.asked(name)
    lab.switch.off()
    ran = lab.place.run(*lab.words(name, "--replay", "--out", f"{folder_of(name)}-again"))
    folder = lab.place.folder / folder_of(name)

    assert ran.code == asked.ran.code, ran.err
    assert lasting(folder.with_name(f"{folder.name}-again")) == lasting(folder)
    assert Run.open(folder.with_name(f"{folder.name}-again")).figures == asked.run.figures
