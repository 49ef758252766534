"""Intervals, paired tests, agreement, and figures of classification, as functions of numbers.

NumPy and SciPy are loaded by the first call that needs them.
"""

from __future__ import annotations

from askance.statistics.agreement import (
    Agreement,
    Resampling,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
    pairwise_agreement,
)
from askance.statistics.classification import (
    Areas,
    Classification,
    LabelFigures,
    areas,
    classify,
    macro_areas,
)
from askance.statistics.comparing import compare_paired, compare_statistics, compare_totals
from askance.statistics.comparison import Comparison, Verdict, holm_adjusted
from askance.statistics.correction import (
    Judged,
    clustered_rogan_gladen,
    prediction_powered_mean,
    rogan_gladen,
    rogan_gladen_estimate,
)
from askance.statistics.label_figures import area_intervals, classification_intervals, compare_classifications
from askance.statistics.means import clustered_standard_error, mean_estimate
from askance.statistics.paired import (
    holm,
    mcnemar_exact,
    paired_cluster_bootstrap,
    sign_flip,
    smallest_detectable_difference,
    swap_test,
)
from askance.statistics.proportions import Confusion, confusion, share_estimate, wilson
from askance.statistics.ranking import average_precision, roc_auc
from askance.statistics.resampling import bootstrap_mean, cluster_bootstrap
from askance.statistics.totals import bootstrap_totals
from askance.statistics.values import Estimate, Interval

__all__ = [
    "Agreement",
    "Areas",
    "Classification",
    "Comparison",
    "Confusion",
    "Estimate",
    "Interval",
    "Judged",
    "LabelFigures",
    "Resampling",
    "Verdict",
    "area_intervals",
    "areas",
    "average_precision",
    "bootstrap_mean",
    "bootstrap_totals",
    "classification_intervals",
    "classify",
    "cluster_bootstrap",
    "clustered_rogan_gladen",
    "clustered_standard_error",
    "cohen_kappa",
    "compare_classifications",
    "compare_paired",
    "compare_statistics",
    "compare_totals",
    "confusion",
    "gwet_ac1",
    "holm",
    "holm_adjusted",
    "krippendorff_alpha",
    "macro_areas",
    "mcnemar_exact",
    "mean_estimate",
    "paired_cluster_bootstrap",
    "pairwise_agreement",
    "prediction_powered_mean",
    "roc_auc",
    "rogan_gladen",
    "rogan_gladen_estimate",
    "share_estimate",
    "sign_flip",
    "smallest_detectable_difference",
    "swap_test",
    "wilson",
]
