"""Runs in a file store of MLflow: figures as metrics, the configuration as parameters, samples as a table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.evals.exports.frames import library
from askance.evals.exports.rows import text_of, write_csv

if TYPE_CHECKING:
    from askance.evals.run import Run

_LONGEST = 500
"""Characters of a parameter's value that any version of MLflow takes."""


def write_mlflow(run: Run, path: Path) -> None:
    """Adds the run to the file store in the folder `path`, as a run of the experiment that has the task's name.

    Raises:
        MissingExtra: mlflow is not installed.
    """
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions need this for a file store
    client: Any = library("mlflow.tracking", "mlflow").MlflowClient(tracking_uri=path.resolve().as_uri())
    known = client.get_experiment_by_name(run.task)
    experiment = known.experiment_id if known is not None else client.create_experiment(run.task)
    mlflow_run = client.create_run(experiment, run_name=run.name, tags={"askance.run": run.path.name})
    number: str = mlflow_run.info.run_id
    for name, value in parameters_of(run):
        client.log_param(number, name, value[:_LONGEST])
    for name, value in metrics_of(run):
        client.log_metric(number, name, value)
    table = path / f"{number}.csv"
    write_csv(run.columns(), table)
    client.log_artifact(number, str(table), "samples")
    table.unlink()
    client.set_terminated(number, "FINISHED" if run.finished is not None and not run.left else "KILLED")


def parameters_of(run: Run) -> Iterator[tuple[str, str]]:
    """The configuration, flat; names have only letters, digits and `_-. /`."""
    for place, value in _flat({"options": run.options, "models": run.configuration.get("models", {})}, ""):
        yield _name(place), value if isinstance(value, str) else text_of(value)


def metrics_of(run: Run) -> Iterator[tuple[str, float]]:
    """The figures with the limits of their intervals, and the counts of outcomes."""
    for figure in run.figures:
        if figure.value is not None:
            yield _name(figure.metric), figure.value
        if figure.interval is not None:
            yield _name(f"{figure.metric}.low"), figure.interval.low
            yield _name(f"{figure.metric}.high"), figure.interval.high
    for outcome, count in run.totals.get("outcomes", {}).items():
        yield _name(f"outcomes.{outcome}"), float(count)


def _flat(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name, each in cast("Mapping[str, Any]", value).items():
            yield from _flat(each, f"{place}.{name}" if place else str(name))
    else:
        yield place, value


def _name(text: str) -> str:
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_-. /") else "_" for letter in text)
