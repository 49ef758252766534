"""What suites share: their files, the images they list, the models of a chain, options and their orders, folds.

A suite imports from here and never from another suite.
"""

from __future__ import annotations

from askance.evals.suite.folds import Fold, fold_of
from askance.evals.suite.ids import draw_ids, read_ids
from askance.evals.suite.roles import Roles
from askance.evals.suite.statements import AdOptions, QaFile, read_qa

__all__ = ["AdOptions", "Fold", "QaFile", "Roles", "draw_ids", "fold_of", "read_ids", "read_qa"]
