"""Evaluations: tasks, their runs on disk, scores and figures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.evals.blamed import Blame
    from askance.evals.blaming import ablame, blame
    from askance.evals.catalog import definition_of, find_task
    from askance.evals.comparing import MetricComparison, RunsComparison, compare
    from askance.evals.evaluation import aevaluate, evaluate
    from askance.evals.exports import export
    from askance.evals.figures import Convention, Figure, Metric, mean
    from askance.evals.predicting import Batching
    from askance.evals.rescoring import Rescored, rescore
    from askance.evals.run import Answer, Run
    from askance.evals.run_folder import RunFolder
    from askance.evals.scorings import right_or_wrong
    from askance.evals.solving import ChainSolver
    from askance.evals.tables import Table, rendered, table_of_runs
    from askance.evals.tasks import Definition, Scoring, Task, task
    from askance.evals.under_way import Progress
    from askance.evals.used import keys_used
    from askance.evals.values import Prediction, Sample, Score

_HOMES = {
    "blamed": ("Blame",),
    "blaming": (
        "ablame",
        "blame",
    ),
    "catalog": (
        "definition_of",
        "find_task",
    ),
    "comparing": (
        "MetricComparison",
        "RunsComparison",
        "compare",
    ),
    "evaluation": (
        "aevaluate",
        "evaluate",
    ),
    "exports": ("export",),
    "figures": (
        "Convention",
        "Figure",
        "Metric",
        "mean",
    ),
    "predicting": ("Batching",),
    "rescoring": (
        "Rescored",
        "rescore",
    ),
    "run": (
        "Answer",
        "Run",
    ),
    "run_folder": ("RunFolder",),
    "scorings": ("right_or_wrong",),
    "solving": ("ChainSolver",),
    "tables": (
        "Table",
        "rendered",
        "table_of_runs",
    ),
    "tasks": (
        "Definition",
        "Scoring",
        "Task",
        "task",
    ),
    "under_way": ("Progress",),
    "used": ("keys_used",),
    "values": (
        "Prediction",
        "Sample",
        "Score",
    ),
}
"""Names by the modules that have them, which load when one of their names is asked for."""

__all__ = [
    "Answer",
    "Batching",
    "Blame",
    "ChainSolver",
    "Convention",
    "Definition",
    "Figure",
    "Metric",
    "MetricComparison",
    "Prediction",
    "Progress",
    "Rescored",
    "Run",
    "RunFolder",
    "RunsComparison",
    "Sample",
    "Score",
    "Scoring",
    "Table",
    "Task",
    "ablame",
    "aevaluate",
    "blame",
    "compare",
    "definition_of",
    "evaluate",
    "export",
    "find_task",
    "keys_used",
    "mean",
    "rendered",
    "rescore",
    "right_or_wrong",
    "table_of_runs",
    "task",
]


def __getattr__(name: str) -> object:
    for home, shown in _HOMES.items():
        if name in shown:
            return getattr(import_module(f"askance.evals.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
