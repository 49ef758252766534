"""WHOOPS!: weird images, what people say of them, and tasks over both; in any layout of the data set."""

from __future__ import annotations

from askance.evals.suite.folds import Fold, fold_of, folds
from askance.evals.whoops.check import Counted, WhoopsReport, check
from askance.evals.whoops.dataset import IMAGES, QUESTIONS, Whoops
from askance.evals.whoops.entries import Entry
from askance.evals.whoops.layouts import has_rows
from askance.evals.whoops.pairs import Pair, read_pairs

__all__ = [
    "IMAGES",
    "QUESTIONS",
    "Counted",
    "Entry",
    "Fold",
    "Pair",
    "Whoops",
    "WhoopsReport",
    "check",
    "fold_of",
    "folds",
    "has_rows",
    "read_pairs",
]
