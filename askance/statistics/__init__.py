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
    LabelCounts,
    LabelFigure,
    average_precision,
    f1,
    macro,
    micro,
    precision,
    recall,
    roc_area,
)
from askance.statistics.comparison import (
    Comparison,
    Verdict,
    compare_paired,
    compare_statistics,
    compare_totals,
    holm_adjusted,
)
from askance.statistics.correction import (
    ClusteredScores,
    clustered_rogan_gladen,
    prediction_powered_mean,
    rogan_gladen,
    rogan_gladen_estimate,
)
from askance.statistics.estimate import Estimate, Interval
from askance.statistics.intervals import (
    Confusion,
    clustered_standard_error,
    confusion,
    mean_estimate,
    share_estimate,
    wilson,
)
from askance.statistics.paired import (
    holm,
    mcnemar_exact,
    paired_cluster_bootstrap,
    sign_flip,
    smallest_detectable_difference,
    swap_test,
)
from askance.statistics.resampling import bootstrap_mean, bootstrap_totals, cluster_bootstrap

__all__ = [
    "Agreement",
    "ClusteredScores",
    "Comparison",
    "Confusion",
    "Estimate",
    "Interval",
    "LabelCounts",
    "LabelFigure",
    "Resampling",
    "Verdict",
    "average_precision",
    "bootstrap_mean",
    "bootstrap_totals",
    "cluster_bootstrap",
    "clustered_rogan_gladen",
    "clustered_standard_error",
    "cohen_kappa",
    "compare_paired",
    "compare_statistics",
    "compare_totals",
    "confusion",
    "f1",
    "gwet_ac1",
    "holm",
    "holm_adjusted",
    "krippendorff_alpha",
    "macro",
    "mcnemar_exact",
    "mean_estimate",
    "micro",
    "paired_cluster_bootstrap",
    "pairwise_agreement",
    "precision",
    "prediction_powered_mean",
    "recall",
    "roc_area",
    "rogan_gladen",
    "rogan_gladen_estimate",
    "share_estimate",
    "sign_flip",
    "smallest_detectable_difference",
    "swap_test",
    "wilson",
]
