"""`askance eval`: tasks of one's own and of the package, runs of them, their scores and tables."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from askance.evals import Run
from askance.images import Image
from tests.batch_server import BatchServer
from tests.cli.command import Command, Done, draw, finish, link_of, start, telling
from tests.cli.test_terminal import text, watch
from tests.evals.pittads.worlds import world
from tests.replies import SILENT, WRONG_KEY
from tests.servers import Answer, FakeEndpoint, Seen

TASK = """\
name: posters
summary: Which claim a poster argues for.
data: ads/samples.jsonl
chain: end-to-end
choose: single
score: choice
options: [I should drink tea., I should buy bricks., I should fly.]
"""


@pytest.fixture(autouse=True)
def posters(own_place: Path) -> None:
    """A task over three pictures; the endpoint chooses the first option, which is right for two."""
    draw(own_place / "ads", "a.png", "b.png", "c.png")
    rows = [{"image": f"{name}.png", "target": target} for name, target in (("a", 1), ("b", 2), ("c", 1))]
    Path("ads/samples.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    Path("posters.yaml").write_text(TASK, encoding="utf-8")


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(first_option) as running:
        yield running


def first_option(seen: Seen) -> Answer:
    return json.dumps({"answers": [1]}) if link_of(seen) == "end_to_end" else telling(seen)


def figures(done: Done) -> dict[str, Any]:
    (form,) = done.lines
    return {figure["metric"]: figure["value"] for figure in form["figures"]}


def test_a_run_prints_its_figures_with_all_that_belongs_to_them(askance: Command, vlm: str) -> None:
    done = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--out", "run")

    assert done.code == 0
    assert done.out == (
        "metric    value  95 % interval  n  answered  if wrong  if right\n"
        "accuracy  66.67  20.77 – 93.85  3         3     66.67     66.67\n"
        "\n"
        "3 samples: 3 answered.\n"
        "Convention: samples without an answer count as wrong.\n"
    )
    assert done.err == (
        "3 calls made · 0 replayed · 1 more to see what the endpoint can do · 72 tokens · cost not known (no price is"
        " set)\nThe run is in run.\n"
    )


def test_the_second_run_asks_nothing_and_says_the_same(askance: Command, endpoint: FakeEndpoint, vlm: str) -> None:
    first = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--json")
    before = len(endpoint.requests)
    second = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--json")

    assert (second.out, len(endpoint.requests)) == (first.out, before)
    assert first.lines[0]["run"].startswith("runs/posters-")


def test_a_replay_needs_no_endpoint(askance: Command) -> None:
    with FakeEndpoint(first_option) as running:
        command = ["eval", "run", "posters.yaml", "--vlm", f"openai:m@{running.url}", "--json"]
        first = askance(*command, "--out", "one")
    second = askance(*command, "--out", "two", "--replay")

    assert (second.code, figures(second)) == (0, figures(first))
    assert second.err == "0 calls made · 3 replayed\nThe run is in two.\n"


def test_samples_without_an_answer_are_listed_with_the_ways_out(askance: Command, ads: list[str], vlm: str) -> None:
    Path(ads[0]).write_text("no picture", encoding="utf-8")

    done = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--out", "run")

    assert done.code == 1
    assert "accuracy  33.33   6.15 – 79.23  3         2     33.33     66.67\n" in done.out
    assert "3 samples: 2 answered, 1 failed.\n" in done.out
    assert "Without an answer:\n  a.png  The picture 'ads/a.png' holds no picture" in done.err


GRID = """
models: {Fake: null}
tables:
  one: {title: One, task: posters.yaml, columns: {accuracy: accuracy}, rows: [{label: fake, vlm: Fake}]}
"""


def test_a_grid_has_the_pace_of_a_run_and_asks_again_as_one(askance: Command, endpoint: FakeEndpoint, vlm: str) -> None:
    Path("grid.yaml").write_text(GRID, encoding="utf-8")
    command = ["eval", "grid", "grid.yaml", "--model", f"Fake={vlm}"]
    planned = askance(*command, "--plan", "--rpm", "600", "--tpm", "5000")
    refused = askance(*command, "--retry", "answered")
    done, before = askance(*command, "--retry", "invalid"), len(endpoint.requests)
    again = askance(*command, "--retry", "invalid")

    assert "(16 calls at once, 600 calls a minute, 5000 tokens a minute)" in planned.out
    assert (refused.code, refused.err.splitlines()[0]) == (
        2,
        "askance: No recorded answer is 'answered', so none can be asked again (`retry`).",
    )
    assert (done.code, again.code, len(endpoint.requests)) == (0, 0, before)


@pytest.mark.parametrize("more", [(), ("--show",)], ids=["run", "show"])
def test_a_grid_that_there_is_not_names_those_that_ship(askance: Command, more: tuple[str, ...]) -> None:
    done = askance("eval", "grid", "nowhere", *more)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("askance: There is no grid 'nowhere'.\n  → Name a file, or one that ships: ")
    assert "newyorker, pittads, sherlock, whoops" in done.err


def test_the_grid_that_ships_says_how_hard_negatives_are_made(askance: Command, vlm: str) -> None:
    data = world(Path("ads-data"), true=(3,))
    asked = [each for name in ("LLaVA", "GPT-4V", "GPT-4") for each in ("--model", f"{name}={vlm}")]
    command = ["eval", "grid", "pittads", "--data", str(data), "--table", "table-4", *asked]
    planned, done = askance(*command, "--plan"), askance(*command)

    why = "LLaVA, I; GPT-4V, I; GPT-4, T_V: The folder 'ads-data' has no hard negatives. Write them: `askance negatives"
    assert f"Not in it: {why} generate ads-data --llm openai:gpt-4o --out ads-data/hard`" in planned.out
    assert done.code == 1
    assert "askance negatives generate ads-data --llm openai:gpt-4o --out ads-data/hard" in done.out, done.out


CONVENTIONS = {"wrong": ("33.33", "count as wrong"), "answered": ("50.00", "are left out")}


@pytest.mark.parametrize(("value", "words"), CONVENTIONS.values(), ids=CONVENTIONS)
def test_the_convention_is_named(
    value: str, words: str, item: pytest.Function, askance: Command, ads: list[str], vlm: str
) -> None:
    Path(ads[0]).write_text("no picture", encoding="utf-8")
    name = item.callspec.id

    done = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--convention", name)

    assert f"accuracy  {value}" in done.out
    assert f"Convention: samples without an answer {words}.\n" in done.out


# --- which samples ---


def test_the_first_samples_alone(askance: Command, vlm: str) -> None:
    done = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--limit", "2", "--json")

    assert (figures(done), done.lines[0]["samples"]) == ({"accuracy": 0.5}, 2)
    assert done.lines[0]["notes"] == ["The first 2 of 3 samples."]


def test_a_limit_counts_the_samples_of_a_list_of_ids(askance: Command, vlm: str) -> None:
    Path("ids").write_text("c.png\na.png\n", encoding="utf-8")

    done = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--ids", "ids", "--limit", "1", "--json", "--out", "r")

    (line,) = Path("r/samples.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["sample"]["id"] == "a.png"
    assert done.lines[0]["notes"] == ["2 of 3 samples, by a list of ids.", "The first 1 of 2 samples."]


@pytest.mark.parametrize("content", ["c.png\n\na.png\n", '["a.png", "c.png"]'], ids=["lines", "JSON"])
def test_the_samples_of_a_list_of_ids(content: str, askance: Command, vlm: str) -> None:
    Path("ids").write_text(content, encoding="utf-8")

    done = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--ids", "ids", "--json")

    assert (figures(done), done.lines[0]["notes"]) == ({"accuracy": 1.0}, ["2 of 3 samples, by a list of ids."])


def pictures_of(run: Run) -> dict[str, Image | None]:
    return {answer.sample.id: answer.sample.image for answer in run.answers}


def test_epochs_and_a_control_are_part_of_a_run(askance: Command, endpoint: FakeEndpoint, vlm: str) -> None:
    twice = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--epochs", "2", "--out", "twice", "--json")
    askance("eval", "run", "posters.yaml", "--vlm", vlm, "--control", "swapped-image", "--out", "swapped")

    assert (twice.lines[0]["samples"], len(endpoint.requests)) == (6, 1 + 6)  # no picture is asked about anew
    swapped, plain = (
        {answer.sample.id: answer.sample for answer in Run.open(name).answers} for name in ("swapped", "twice")
    )
    assert [swapped[name].image == plain[name].image for name in plain] == [False] * 3
    assert (Run.open("swapped").name, Run.open("twice").name) == ("fake-model (swapped-image)", "fake-model")


def test_data_elsewhere_and_a_label(askance: Command, vlm: str) -> None:
    Path("posters.yaml").write_text(TASK.replace("data: ads/samples.jsonl\n", ""), encoding="utf-8")

    done = askance(
        "eval", "run", "posters.yaml", "--data", "ads/samples.jsonl", "--vlm", vlm, "--label", "Mine", "--out", "run"
    )

    assert (done.code, Run.open("run").name) == (0, "Mine")


# --- tasks in Python ---

OWN = """\
from langchain_core.runnables import RunnableLambda
from askance.evals import Sample, Task, right_or_wrong

class Parity(Task):
    name = "own/parity"
    count: int = 4
    odd: bool = False
    word: str = ""

    def samples(self):
        return [Sample(id=f"{self.word}{each}", target=each % 2 == 1) for each in range(self.count)]

    def solver(self):
        return RunnableLambda(lambda sample: self.odd)

    def scorer(self):
        return right_or_wrong()
"""


def test_an_own_task_takes_options_of_its_own(askance: Command) -> None:
    Path("own.py").write_text(OWN, encoding="utf-8")

    done = askance("eval", "run", "own.py", "-T", "count=5", "-T", "odd=true", "-T", "word=7", "--out", "run", "--json")

    assert (done.code, figures(done)) == (0, {"accuracy": 0.4})
    assert Run.open("run").answers[0].sample.id == "70"


# --- what it costs ---


def test_a_plan_asks_nothing_and_leaves_nothing(
    askance: Command, endpoint: FakeEndpoint, vlm: str, own_place: Path
) -> None:
    before = sorted(own_place.rglob("*"))

    done = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--plan", "--epochs", "2")

    assert (done.code, done.err, endpoint.requests) == (0, "", [])
    assert done.out.startswith("6 samples, 6 calls: 0 on record, 6 to be made.\n")
    assert sorted(own_place.rglob("*")) == before


def test_a_plan_names_pictures_that_are_not_there(askance: Command, vlm: str, endpoint: FakeEndpoint) -> None:
    Path("ads/b.png").unlink()
    command = ["eval", "run", "posters.yaml", "--vlm", vlm, "--plan"]

    done, as_json = askance(*command), askance(*command, "--json")

    assert (done.code, as_json.code, endpoint.requests) == (1, 1, [])
    assert "· 1 sample cannot be used: The picture 'ads/b.png' does not exist. Mend the path." in done.out
    assert as_json.lines[0]["troubles"] == ["The picture 'ads/b.png' does not exist. Mend the path."]


def test_a_plan_counts_what_is_on_record(askance: Command, vlm: str) -> None:
    askance("eval", "run", "posters.yaml", "--vlm", vlm, "--limit", "1")

    done = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--plan", "--json")

    assert [done.lines[0][name] for name in ("images", "hits", "calls")] == [3, 1, 2]


def test_a_budget_leaves_samples_and_a_larger_one_goes_on(askance: Command, endpoint: FakeEndpoint, vlm: str) -> None:
    askance("models", "check", vlm)
    checks = len(endpoint.requests)
    command = ["eval", "run", "posters.yaml", "--vlm", vlm, "--out", "run", "--json"]

    first = askance(*command, "--budget", "2calls")
    made = len(endpoint.requests) - checks
    more = askance(*command, "--budget", "9calls")

    assert (first.code, made, first.lines[0]["left"], first.lines[0]["samples"]) == (1, 2, 1, 2)
    assert "Of the budget of 2 calls, 2 calls spent.\n" in first.err
    assert "The next call might have passed the budget. Left: 1 sample, 1 call" in first.err
    assert (more.code, more.lines[0]["left"], figures(more)) == (0, 0, {"accuracy": 2 / 3})
    assert "Of the budget of 9 calls, 3 calls spent.\n" in more.err
    assert [path.name for path in Path("run").glob("budget*")] == ["budget.db"]


def test_a_run_in_batches_is_that_of_an_online_run(askance: Command, server: BatchServer, tmp_path: Path) -> None:
    command = ["eval", "run", "posters.yaml", "--vlm", f"openai:gpt-4o@{server.url}", "--epochs", "2", "--json"]
    done = askance(*command, "--batch", "--out", "batch")
    online = askance(*command, "--out", "online", "--store", str(tmp_path / "online"))

    assert (done.code, figures(done), len(server.batches)) == (0, figures(online), 2)
    assert stable("batch") == stable("online")
    assert not Path("batch/batches").exists()


def stable(folder: str) -> list[dict[str, Any]]:
    texts = Path(folder, "samples.jsonl").read_text(encoding="utf-8").splitlines()
    return sorted(({**json.loads(text), "meta": None} for text in texts), key=lambda line: (line["id"], line["epoch"]))


# --- while it goes on ---


def test_on_a_terminal_the_score_goes_along(vlm: str) -> None:
    code, shown, _ = watch("eval", "run", "posters.yaml", "--vlm", vlm)

    seen = text(shown)
    assert code == 0
    assert re.search(r"━+ [123]/3 · accuracy \d+\.\d\d \[\d+\.\d\d, \d+\.\d\d\] · [123] made", seen)
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1


def test_ctrl_c_says_how_to_go_on(askance: Command) -> None:
    def hangs_at_the_third(seen: Seen) -> Answer:
        chosen = [each for each in running.requests if link_of(each) == "end_to_end"]
        return SILENT if hanging and len(chosen) > 2 else first_option(seen)

    hanging = [True]
    with FakeEndpoint(hangs_at_the_third) as running:
        command = ["eval", "run", "posters.yaml", "--vlm", f"openai:m@{running.url}", "--out", "run"]
        process = start(*command, "--concurrency", "1")
        wait_for(Path("run/samples.jsonl"), lines=2)
        process.send_signal(signal.SIGINT)
        done = finish(process)
        hanging.clear()
        again = askance(*command)

    assert (done.code, done.out, again.code) == (130, "", 0)
    assert done.err.startswith("2 of 3 samples: 2 answered\n2 calls made")
    assert done.err.endswith(
        "Interrupted. The same command goes on where this one stopped; what is on record is not asked again. "
        "The run is in run.\n"
    )
    assert "1 call made · 0 replayed" in again.err


def wait_for(file: Path, *, lines: int) -> None:
    end = time.monotonic() + 60
    while not file.exists() or file.read_text(encoding="utf-8").count("\n") < lines:
        assert time.monotonic() < end
        time.sleep(0.02)


# --- what is refused ---

REFUSED = {
    "unknown task": (["pittads/mcc"], 2, "askance: There is no task 'pittads/mcc'.\n  → Near it: pittads/mac"),
    "no model": (["posters.yaml"], 2, "askance: The task 'posters' needs 'vlm'.\n  → Give --vlm MODEL on the command"),
    "alien option": (
        ["posters.yaml", "--vlm", "openai:m@http://127.0.0.1:1/v1", "-T", "colour=red"],
        2,
        "askance: The task 'posters' takes no 'colour'.\n  → It takes data, vlm, llm, context, judge,",
    ),
    "no folds": (
        ["posters.yaml", "--vlm", "openai:m@http://127.0.0.1:1/v1", "--fold", "all"],
        2,
        "askance: The task 'posters' takes no 'fold'.\n  → It takes data, vlm, llm, context, judge, judge_form, card,",
    ),
    "two folds": (
        ["posters.yaml", "--fold", "all", "-T", "fold=0"],
        2,
        "askance: `--fold all` and `-T fold=0` are different.\n  → Give one of them.",
    ),
    "no option": (["posters.yaml", "-T", "colour"], 2, "askance: 'colour' is no option of a task."),
    "unknown ids": (
        ["posters.yaml", "--vlm", "openai:m@http://127.0.0.1:1/v1", "--ids", "posters.yaml"],
        2,
        "askance: 7 of 7 ids are those of no sample, such as 'name: posters'.",
    ),
    "no context": (
        ["posters.yaml", "--vlm", "openai:m@http://127.0.0.1:1/v1", "--context", "T_W"],
        2,
        "askance: The option 'context' of the task 'posters' cannot be 'T_W'.\n  → It takes one of `T_V`, ",
    ),
    "batch and replay": (["posters.yaml", "--batch", "--replay"], 2, "askance: `--batch` reads its answers from the"),
    "live": (["posters.yaml", "--mode", "live"], 2, "askance: `--mode live` leaves answers on record as they are"),
    "data missing": (
        ["posters.yaml", "--vlm", "openai:m@http://127.0.0.1:1/v1", "--data", "gone"],
        2,
        "askance: There is no file 'gone'.",
    ),
    "no replay": (
        ["posters.yaml", "--vlm", "openai:m@http://127.0.0.1:1/v1", "--replay"],
        3,
        "askance: What 'openai:m@http://127.0.0.1:1/v1' can do is not on record",
    ),
}


@pytest.mark.parametrize(("arguments", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_run_is_told(arguments: list[str], code: int, message: str, askance: Command) -> None:
    done = askance("eval", "run", *arguments)

    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(message)


def test_a_key_that_is_not_taken_ends_it_at_the_first_sample(askance: Command) -> None:
    def reply(seen: Seen) -> Answer:
        return first_option(seen) if not locked else WRONG_KEY

    locked: list[bool] = []
    with FakeEndpoint(reply) as running:
        command = ["eval", "run", "posters.yaml", "--vlm", f"openai:m@{running.url}", "--concurrency", "1"]
        askance(*command, "--limit", "1")
        locked.append(True)
        before = len(running.requests)
        again = askance(*command)

    assert (again.code, len(running.requests) - before) == (3, 1)
    assert "→ Stopped at the first sample, since the others would fail alike." in again.err


# --- runs that are there ---


def test_tasks_are_listed(askance: Command) -> None:
    done, forms = askance("eval", "list"), askance("eval", "list", "--json")

    assert "pittads/mac " in done.out
    assert {"name", "summary", "takes"} == json.loads(forms.out)[0].keys()


def test_the_options_of_a_task_are_listed_with_type_default_and_meaning(askance: Command) -> None:
    done, unknown = askance("eval", "list", "pittads/aor"), askance("eval", "list", "pittads/aar")

    assert "\n  data  (a path, needed)\n      Folder of the data set.\n" in done.out
    assert "\n  per  (one of `image`, `relation`, default image)\n      Whether each image is a sample, or " in done.out
    assert (unknown.code, unknown.err.splitlines()[0]) == (2, "askance: There is no task 'pittads/aar'.")


def test_a_run_is_scored_again(askance: Command, vlm: str) -> None:
    first = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--out", "run", "--json")
    before = Path("run/run.json").read_bytes()
    again = askance("eval", "score", "run", "--reread", "--json")

    assert (again.code, figures(again), Path("run/run.json").read_bytes()) == (0, figures(first), before)
    assert [again.lines[0][name] for name in ("reread", "changed", "kept")] == [3, [], []]


def test_another_scoring_in_the_file_takes_effect(askance: Command, vlm: str) -> None:
    askance("eval", "run", "posters.yaml", "--vlm", vlm, "--out", "run")
    Path("posters.yaml").write_text(TASK.replace("score: choice", "score: none"), encoding="utf-8")

    done = askance("eval", "score", "run")

    assert done.out.splitlines()[1].startswith("share answered  100.00")
    assert "· The data name nothing that is right" in done.out


FORMATS = {
    "markdown": "**posters**\n\n| run | samples | answered | accuracy |\n",
    "csv": "run,samples,answered,accuracy,accuracy low,",
    "latex": "% posters\n% Convention: ",
    "json": '{"title": "posters", "columns": ["run", "samples", "answered", "accuracy"], ',
}


@pytest.mark.parametrize("start_", FORMATS.values(), ids=FORMATS)
def test_runs_as_a_table(start_: str, item: pytest.Function, askance: Command, vlm: str) -> None:
    for name in ("one", "two"):
        askance("eval", "run", "posters.yaml", "--vlm", vlm, "--out", name)

    done = askance("eval", "table", "one", "two", "--format", item.callspec.id)

    assert (done.code, done.out[: len(start_)]) == (0, start_)
    assert [f"fake-model ({name})" in done.out for name in ("one", "two")] == [True, True]


@pytest.mark.parametrize("command", ["score", "table"])
def test_what_is_no_run_is_told(command: str, askance: Command) -> None:
    done = askance("eval", command, "ads")

    assert (done.code, done.err) == (
        2,
        (
            "askance: The folder 'ads' holds no run.\n"
            "  → Name a folder that `askance eval run` or `askance run --out` has made.\n"
        ),
    )
