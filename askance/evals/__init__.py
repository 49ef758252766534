"""Evaluations: tasks, their runs on disk, scores and figures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.evals.analysis.blame import Blame, ablame, blame
    from askance.evals.analysis.compare import MetricComparison, RunsComparison, compare
    from askance.evals.analysis.rescore import RescoreResult, rescore
    from askance.evals.catalog import find_task, task_of
    from askance.evals.evaluation import RunProgress, aevaluate, evaluate
    from askance.evals.exports import export
    from askance.evals.metric import Figure, Metric, MissingAnswerPolicy, mean
    from askance.evals.predictions import BatchOptions
    from askance.evals.run import Run, SampleResult
    from askance.evals.sample import Prediction, Sample, Score
    from askance.evals.scorer import Scorer, right_or_wrong
    from askance.evals.solver import ChainSolver
    from askance.evals.storage import RunFolder, keys_used
    from askance.evals.tables import Table, rendered, table_of_runs
    from askance.evals.task import Evaluation, Task

_HOMES = {
    "analysis.blame": ("Blame", "ablame", "blame"),
    "analysis.compare": ("MetricComparison", "RunsComparison", "compare"),
    "analysis.rescore": ("RescoreResult", "rescore"),
    "catalog": ("find_task", "task_of"),
    "evaluation": ("RunProgress", "aevaluate", "evaluate"),
    "exports": ("export",),
    "metric": ("MissingAnswerPolicy", "Figure", "Metric", "mean"),
    "predictions": ("BatchOptions",),
    "run": ("SampleResult", "Run"),
    "scorer": ("Scorer", "right_or_wrong"),
    "solver": ("ChainSolver",),
    "storage": ("RunFolder", "RunProgress", "keys_used"),
    "tables": ("Table", "rendered", "table_of_runs"),
    "task": ("Evaluation", "Task"),
    "sample": ("Prediction", "Sample", "Score"),
}
"""Names by the modules that have them, which load when one of their names is asked for."""

__all__ = [
    "BatchOptions",
    "Blame",
    "ChainSolver",
    "Evaluation",
    "Figure",
    "Metric",
    "MetricComparison",
    "MissingAnswerPolicy",
    "Prediction",
    "RescoreResult",
    "Run",
    "RunFolder",
    "RunProgress",
    "RunsComparison",
    "Sample",
    "SampleResult",
    "Score",
    "Scorer",
    "Table",
    "Task",
    "ablame",
    "aevaluate",
    "blame",
    "compare",
    "evaluate",
    "export",
    "find_task",
    "keys_used",
    "mean",
    "rendered",
    "rescore",
    "right_or_wrong",
    "table_of_runs",
    "task_of",
]


def __getattr__(name: str) -> object:
    for home, shown in _HOMES.items():
        if name in shown:
            return getattr(import_module(f"askance.evals.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
