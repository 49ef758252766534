"""Runs that were blamed, for the tests of reports, and one whose blame means harm in every field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from askance.evals import Run, blame, evaluate
from tests.evals.guilty import Guilty, liar
from tests.evals.report.runs import HOSTILE

LIED = ("01", "03")
"""Pictures that what is unusual is a lie about."""


def lied(pictures: Path, folder: Path, *, into: Path | None = None, **options: Any) -> Run:
    """A run that was led wrong by what is unusual in two of four pictures, blamed by dropping.

    Args:
        pictures: four of them.
        folder: for the run.
        into: for the blame; None is the run's folder.
        options: of the blame.
    """
    model = liar(pictures, "unusual", of=LIED)
    run = evaluate(Guilty(data=pictures, vlm=model), out=folder)
    blame(run, Guilty, engine=model.engine, models={"vlm": model}, out=into, **options)
    return Run.open(folder)


def changed(change: Callable[[Any], object]) -> Callable[[Path], None]:
    """Writes the sums of the blame in a folder anew, changed."""

    def write(folder: Path) -> None:
        form = json.loads((folder / "blame.json").read_text(encoding="utf-8"))
        change(form)
        (folder / "blame.json").write_text(json.dumps(form), encoding="utf-8")

    return write


def hostile(run: Run) -> Run:
    """The run, where everything that its blame says means harm."""

    def harm(form: Any) -> None:
        told = form["blames"]["dropped"]
        told.update(words=HOSTILE[0], metric=HOSTILE[1], how="dropped")
        told["links"][0]["link"] = HOSTILE[3]
        told["answers"][0]["tried"][HOSTILE[4]] = 1.0
        told["answers"][0].update(flips=[HOSTILE[4]], guilty=[HOSTILE[4]])

    changed(harm)(run.path)
    file = run.path / "blame.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines):
        text = HOSTILE[number % len(HOSTILE)]
        line.update(put=text, value=text, reason=text)
        line["trace"]["verbalization"]["description"] = text
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return Run.open(run.path)
