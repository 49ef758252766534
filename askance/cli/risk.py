"""`askance eval risk`: how well runs know when to withhold their answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from askance.cli.columns import Columns, Part, Report
from askance.cli.options import AsJson, TaskPlace

if TYPE_CHECKING:
    from askance.evals.analysis.risk import RiskComparison


def risk(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs of one task.")],
    by: Annotated[
        Literal["confidence", "agreement", "logprob"] | None,
        typer.Option(
            help="How sure an answer is: what the solver says, how many draws of `--epochs` agree, or how likely its "
            "reply is. By default the first of these that a run has."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the resampling.")] = 0,
    task: TaskPlace = None,
    as_json: AsJson = False,
) -> None:
    """Say how the risk of a wrong answer falls where a run answers only what it is sure of, and which run does best.

    The first run is compared with each of the others, on the samples that all have, by the area under the curve of risk
    by coverage. `askance compare --html` draws the curves.
    """
    from askance.evals.analysis.risk import compare_risks
    from askance.evals.run import Run

    risks = compare_risks(*(Run.open(folder) for folder in folders), by=by, task=task, seed=seed)
    Report(risks.form, lambda: _parts(risks)).print(as_json=as_json)


def _parts(risks: RiskComparison) -> Iterator[Part]:
    from askance.evals.analysis.risk import HEAD, NOTES, line_of_risk

    yield Columns([HEAD, *(line_of_risk(each) for each in risks.runs)], left=(0, 1))
    yield ""
    yield from risks.sentences
    yield from (f"\u00b7 {note}" for note in NOTES)
