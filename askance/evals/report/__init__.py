"""Reports: runs and comparisons of runs as pages that open from a disk, with no network and nothing else."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.evals.report.comparison import ComparisonReport, build_comparison, comparison_page
    from askance.evals.report.run_report import RunReport, build_report, report_page
    from askance.evals.report.thumbnails import MEGABYTES, Thumbnails

_HOMES = {
    "comparison": ("ComparisonReport", "build_comparison", "comparison_page"),
    "run_report": ("RunReport", "build_report", "report_page"),
    "thumbnails": ("MEGABYTES", "Thumbnails"),
}
"""Names by the modules that have them, which load when one of their names is asked for."""

__all__ = [
    "MEGABYTES",
    "ComparisonReport",
    "RunReport",
    "Thumbnails",
    "build_comparison",
    "build_report",
    "comparison_page",
    "report_page",
]


def __getattr__(name: str) -> object:
    for home, shown in _HOMES.items():
        if name in shown:
            return getattr(import_module(f"askance.evals.report.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
