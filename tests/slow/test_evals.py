"""The ads benchmark against vLLM, with a model that sees nothing: what it says of a picture it says of any other."""

from __future__ import annotations

import asyncio
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from askance.evals import Run, compare
from askance.evals.analysis.pack import write_pack
from askance.evals.pittads import ArrBaseline
from tests.slow.environments import ROOT
from tests.slow.servers import Server

pytestmark = [pytest.mark.slow(group="servers"), pytest.mark.xdist_group("blind")]


def script() -> Any:
    """The script that makes the example."""
    spec = spec_from_file_location("make_example_pack", ROOT / "scripts" / "make_example_pack.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, vllm_switch: Any) -> dict[str, Run]:
    """The runs of the example, made now."""
    server: Server = vllm_switch.on()
    folder, example = tmp_path_factory.mktemp("evals"), script()
    example.lay_out(folder / "data")
    spec = f"openai:{server.model}@{server.url}"
    settings = {**example.SETTINGS, "max_tokens": 60}  # what is said is of no interest
    made = asyncio.run(example.run_all(spec, folder / "data", folder / "runs", example.tasks, **settings))
    return {run.path.name: run for run in made}


@pytest.mark.parametrize("task", ["arr-multi", "mac"])
def test_a_blind_model_is_tied_with_itself_on_other_pictures(runs: dict[str, Run], task: str) -> None:
    looking, swapped = runs[f"{task}-image"], runs[f"{task}-swapped"]

    compared = compare(looking, swapped, convention="answered")

    assert looking.totals["outcomes"]["answered"] > 0
    assert {each.comparison.verdict for each in compared if each.comparison.n} == {"tied"}


def test_every_sample_ends_in_a_named_outcome_and_the_pack_is_sound(runs: dict[str, Run], tmp_path: Path) -> None:
    for run in runs.values():
        assert sum(run.totals["outcomes"].values()) == len(run.answers) == 7
    packed = write_pack([*runs.values()], tmp_path / "now.pack")
    assert packed.runs == len(runs)


def test_chance_stands_beside(runs: dict[str, Run]) -> None:
    run = runs["arr-random"]
    samples = [answer.sample for answer in run.answers]
    task = ArrBaseline.of_run(run.configuration["options"], samples=samples)
    exact = {figure.metric: figure for figure in task.chance()}
    drawn = runs["arr-random"].figure("p@1").interval

    assert exact["p@1"].value is not None
    assert drawn is not None
    assert drawn.low <= exact["p@1"].value <= drawn.high
