"""What suites share: options and contexts of tasks, files of a data set, lists of images, orders, folds, scorers.

A suite imports from here and never from another suite.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.evals.suite.context import View, chain_of, view_of
    from askance.evals.suite.judge import JudgeTask
    from askance.evals.suite.ranker import FusionSolver, PairRanker
    from askance.evals.suite.selection import FULL_SET, SMALL_SET, Fold, Subset, draw_ids, fold_of, folds, read_ids
    from askance.evals.suite.statements import AdOptions, QaFile, read_qa
    from askance.evals.suite.task import ModelTask, RoleTask, SuiteTask

_HOMES = {
    "context": ("View", "chain_of", "view_of"),
    "judge": ("JudgeTask",),
    "ranker": ("FusionSolver", "PairRanker"),
    "selection": ("FULL_SET", "SMALL_SET", "Fold", "Subset", "draw_ids", "fold_of", "folds", "read_ids"),
    "statements": ("AdOptions", "QaFile", "read_qa"),
    "task": ("ModelTask", "RoleTask", "SuiteTask"),
}
"""Names by the modules that have them, which load when one of their names is asked for."""

__all__ = [
    "FULL_SET",
    "SMALL_SET",
    "AdOptions",
    "Fold",
    "FusionSolver",
    "JudgeTask",
    "ModelTask",
    "PairRanker",
    "QaFile",
    "RoleTask",
    "Subset",
    "SuiteTask",
    "View",
    "chain_of",
    "draw_ids",
    "fold_of",
    "folds",
    "read_ids",
    "read_qa",
    "view_of",
]


def __getattr__(name: str) -> object:
    for home, shown in _HOMES.items():
        if name in shown:
            return getattr(import_module(f"askance.evals.suite.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
