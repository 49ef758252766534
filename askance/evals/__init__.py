"""Evaluations: tasks, their runs on disk, scores and figures."""

from __future__ import annotations

from askance.evals.catalog import definition_of, find_task
from askance.evals.comparing import MetricComparison, compare
from askance.evals.evaluate import aevaluate, evaluate
from askance.evals.figures import Convention, Figure, Metric, mean
from askance.evals.predicting import Batching
from askance.evals.reports import table_of_runs
from askance.evals.rescoring import Rescored, rescore
from askance.evals.run import Answer, Run
from askance.evals.run_folder import RunFolder
from askance.evals.scorings import right_or_wrong
from askance.evals.solving import ChainSolver
from askance.evals.tables import Table, rendered
from askance.evals.task import Definition, Scoring, Task, task
from askance.evals.under_way import Progress
from askance.evals.used import keys_used
from askance.evals.values import Prediction, Sample, Score

__all__ = [
    "Answer",
    "Batching",
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
    "Sample",
    "Score",
    "Scoring",
    "Table",
    "Task",
    "aevaluate",
    "compare",
    "definition_of",
    "evaluate",
    "find_task",
    "keys_used",
    "mean",
    "rendered",
    "rescore",
    "right_or_wrong",
    "table_of_runs",
    "task",
]
