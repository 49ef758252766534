"""The persuasive ads of PittAds: action-reason statements, atypicality annotations, images, in any of their layouts."""

from __future__ import annotations

from askance.evals.pittads.annotations import Annotations, read_annotations
from askance.evals.pittads.check import check
from askance.evals.pittads.contents import Ad
from askance.evals.pittads.dataset import PittAds
from askance.evals.pittads.descriptions import Descriptions, read_descriptions
from askance.evals.pittads.layout import statements_in
from askance.evals.pittads.lists import SymbolBox, read_id_list, read_symbols, read_votes
from askance.evals.pittads.pictures import Pictures
from askance.evals.pittads.report import DataReport, Dropped
from askance.evals.suite.ids import FULL_SET, SMALL_SET, draw_ids, read_ids
from askance.evals.suite.statements import AdOptions, QaFile, read_qa

__all__ = [
    "FULL_SET",
    "SMALL_SET",
    "Ad",
    "AdOptions",
    "Annotations",
    "DataReport",
    "Descriptions",
    "Dropped",
    "Pictures",
    "PittAds",
    "QaFile",
    "SymbolBox",
    "check",
    "draw_ids",
    "read_annotations",
    "read_descriptions",
    "read_id_list",
    "read_ids",
    "read_qa",
    "read_symbols",
    "read_votes",
    "statements_in",
]
