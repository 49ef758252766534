"""Evaluations: tasks, their runs on disk, scores and figures."""

from __future__ import annotations

from askance.evals.evaluate import Progress, aevaluate, evaluate
from askance.evals.figures import Convention, Figure, Metric, mean
from askance.evals.run import Answer, Run
from askance.evals.run_folder import RunFolder
from askance.evals.solving import ChainSolver
from askance.evals.task import Definition, Scoring, Task, task
from askance.evals.used import keys_used
from askance.evals.values import Prediction, Sample, Score

__all__ = [
    "Answer",
    "ChainSolver",
    "Convention",
    "Definition",
    "Figure",
    "Metric",
    "Prediction",
    "Progress",
    "Run",
    "RunFolder",
    "Sample",
    "Score",
    "Scoring",
    "Task",
    "aevaluate",
    "evaluate",
    "keys_used",
    "mean",
    "task",
]
