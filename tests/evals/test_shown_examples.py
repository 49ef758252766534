"""Samples with examples: their form, a run over them, and what is made of its folder without data."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from askance.errors import UsageError
from askance.evals import Run, Sample, evaluate, rescore
from askance.evals.analysis.pack import open_pack, write_pack
from askance.evals.analysis.pack_check import check_pack
from askance.evals.analysis.rescore import rerun_job
from askance.evals.controls import swapped_images
from askance.evals.exports import export
from askance.evals.report import build_report, report_page
from askance.evals.runner import SampleEpoch, run_job
from askance.images import Image
from askance.nodes import Example
from askance.prompts import overlay_prompts
from tests.evals.odd import OPTIONS, Odd, chooser, engine, write_pictures
from tests.evals.report.runs import Parsed
from tests.example_prompts import with_example


class Few(Odd):
    """Which of three texts is about the picture, after two examples."""

    name = "tests/few"
    shots: int = 2
    """How many examples."""

    @override
    def samples(self) -> list[Sample]:
        return [
            Sample(
                id=each.id,
                image=each.image,
                inputs={**each.inputs, "examples": [self._example(n) for n in range(self.shots)]},
                target=each.target,
            )
            for each in super().samples()
        ]

    def _example(self, place: int) -> Example:
        picture = Image.from_path(self.data / f"shot {place}.png")
        return Example(values={"options": ("a cup", f"a dog {place}")}, answer=1 + place % 2, image=picture)


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    folder = tmp_path / "prompts"
    with_example(folder, "end_to_end_multi")
    return folder


@pytest.fixture
def run(tmp_path: Path, prompts: Path) -> Run:
    with overlay_prompts(prompts):
        return evaluate(few(tmp_path), out=tmp_path / "run")


def few(folder: Path, **options: Any) -> Few:
    pictures = write_pictures(folder / "pictures", 8)
    for place in range(2):
        (pictures / f"0{6 + place}.png").rename(pictures / f"shot {place}.png")
    return Few(data=pictures, vlm=chooser(2), **options)


def lines_of(run: Run) -> list[Any]:
    return [json.loads(line) for line in (run.path / "samples.jsonl").read_text("utf-8").splitlines()]


def test_a_line_holds_what_was_shown(run: Run, tmp_path: Path) -> None:
    digest = Image.from_path(tmp_path / "pictures" / "shot 1.png").sha256

    shown = lines_of(run)[0]["sample"]["inputs"]["examples"][1]

    picture = {"name": "shot 1.png", "sha256": digest}
    assert shown == {"values": {"options": ["a cup", "a dog 1"]}, "answer": 2, "image": picture}
    assert {answer.prediction.outcome for answer in run.answers} == {"answered"}


def test_a_sample_survives_its_form(tmp_path: Path) -> None:
    sample = replace(few(tmp_path).samples()[0], group="a")

    found = Sample.from_form(json.loads(json.dumps(sample.form())))

    assert found == sample
    assert [each.image.path for each in found.inputs["examples"]] == [None, None]


MALFORMED: dict[str, Any] = {
    "its picture has no `name` and `sha256`": {"values": {}, "image": "/etc/passwd"},
    "cannot be shown as an example": {"values": {"a": 0.5}},
}


@pytest.mark.parametrize(("message", "example"), MALFORMED.items())
def test_a_strangers_line_reads_no_file(message: str, example: Any) -> None:
    form = Sample(id="a").form()

    with pytest.raises(UsageError, match=message):
        Sample.from_form({**form, "inputs": {"examples": [example]}})


@pytest.mark.parametrize("other", ["x", ["x", "y"], [{"a": 1}], [], {"values": {}}])
def test_another_input_of_that_name_stays_as_it_is(other: Any) -> None:
    sample = Sample(id="a", inputs={"examples": other}, group="a")

    assert Sample.from_form(json.loads(json.dumps(sample.form()))) == sample


# --- without data ---


async def test_a_run_replays_from_its_folder_alone(run: Run, tmp_path: Path, prompts: Path) -> None:
    shutil.rmtree(tmp_path / "pictures")
    shutil.rmtree(prompts)

    again = [each.outcome for each in await rerun_job(Run.open(run.path), Few, own_prompts=True).run()]
    found = await rescore(Run.open(run.path), Few, reread=True)

    assert again == ["same"] * 6
    assert (found.reread, found.changed, found.kept) == (6, (), ())


async def test_a_pack_of_it_is_sound(run: Run, tmp_path: Path) -> None:
    packed = write_pack([run], tmp_path / "one.pack")
    shutil.rmtree(tmp_path / "pictures")

    with open_pack(packed.path) as pack:
        report = await check_pack(pack, tasks={Few.name: Few})

    assert (report.sound, report.runs[0].samples) == (True, 6)


def test_the_same_command_finds_the_run_and_asks_nothing(run: Run, tmp_path: Path, prompts: Path) -> None:
    before = lines_of(run)

    with overlay_prompts(prompts):
        evaluate(Few(data=tmp_path / "pictures", vlm=chooser(2)), out=run.path)
        with pytest.raises(UsageError, match="holds a run of another configuration"):
            evaluate(Few(data=tmp_path / "pictures", vlm=chooser(2), shots=1), out=run.path)

    assert lines_of(run) == before


def test_another_wording_of_examples_is_another_configuration(run: Run, tmp_path: Path, prompts: Path) -> None:
    for file in prompts.glob("*.prompt"):
        head, marker, answer = file.read_text("utf-8").rpartition("\nexample:\n")
        file.write_text(f"{head}{marker}{answer.replace(': ', ':')}", "utf-8")

    with overlay_prompts(prompts), pytest.raises(UsageError, match="holds a run of another configuration"):
        evaluate(Few(data=tmp_path / "pictures", vlm=chooser(2)), out=run.path)


# --- what is shown and planned ---


def test_a_report_and_the_exports_show_it(run: Run, tmp_path: Path) -> None:
    page = Parsed(report_page(build_report([run])))
    log = json.loads(export(run, "inspect", tmp_path / "run.json").read_text("utf-8"))

    assert page.text
    assert "a dog 1" in log["samples"][0]["input"]
    for form in ("csv", "jsonl"):
        assert export(run, form).stat().st_size
    assert [message["role"] for message in log["samples"][0]["messages"]][:5] == ["system", *["user", "assistant"] * 2]


async def test_a_plan_is_what_is_then_asked(tmp_path: Path, prompts: Path) -> None:
    own = engine()
    with overlay_prompts(prompts):
        task = few(tmp_path).model_copy(update={"vlm": chooser(2, own)}).evaluation()
    epochs = [SampleEpoch(sample=sample, epoch=0) for sample in task.samples]
    twice = [*epochs, *(SampleEpoch(sample=each.sample, epoch=0) for each in epochs)]

    planned = await run_job(task, twice, own).plan()

    assert (planned.calls, planned.links[0].known) == (6, 6)


def test_swapped_pictures_leave_the_examples_as_they_are(tmp_path: Path, prompts: Path) -> None:
    with overlay_prompts(prompts):
        task = few(tmp_path).evaluation()
        swapped = swapped_images(task)

    assert [each.inputs for each in swapped.samples] == [each.inputs for each in task.samples]
    assert [each.image for each in swapped.samples] != [each.image for each in task.samples]
    assert tuple(swapped.samples[0].inputs["options"]) == OPTIONS
