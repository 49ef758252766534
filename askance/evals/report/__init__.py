"""Reports: runs and comparisons of runs as pages that open from a disk, with no network and nothing else."""

from __future__ import annotations

from askance.evals.report.build import build_report
from askance.evals.report.comparison import Difference, build_difference
from askance.evals.report.comparison_page import difference_page
from askance.evals.report.page import report_page
from askance.evals.report.pictures import MEGABYTES, Pictures, thumbnails, wanted_by
from askance.evals.report.values import Report

__all__ = [
    "MEGABYTES",
    "Difference",
    "Pictures",
    "Report",
    "build_difference",
    "build_report",
    "difference_page",
    "report_page",
    "thumbnails",
    "wanted_by",
]
