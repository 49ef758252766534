"""Reports: runs and comparisons of runs as pages that open from a disk, with no network and nothing else."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.evals.report.comparison import Difference, build_difference, difference_page
    from askance.evals.report.page import report_page
    from askance.evals.report.pictures import MEGABYTES, Thumbnails, thumbnails, wanted_by
    from askance.evals.report.report import Report, build_report

_HOMES = {
    "comparison": ("Difference", "build_difference", "difference_page"),
    "page": ("report_page",),
    "pictures": ("MEGABYTES", "Thumbnails", "thumbnails", "wanted_by"),
    "report": ("Report", "build_report"),
}
"""Names by the modules that have them, which load when one of their names is asked for."""

__all__ = [
    "MEGABYTES",
    "Difference",
    "Report",
    "Thumbnails",
    "build_difference",
    "build_report",
    "difference_page",
    "report_page",
    "thumbnails",
    "wanted_by",
]


def __getattr__(name: str) -> object:
    for home, shown in _HOMES.items():
        if name in shown:
            return getattr(import_module(f"askance.evals.report.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
