"""Writes `reference.json`: what statsmodels and scikit-learn make of drawn cases.

    .venv/bin/python -m tests.statistics.reference

The tests beside it hold the figures of askance against that table, so that they load neither package; a slow test holds
the table against both packages. Cases are drawn from a fixed seed, after those where a formula turns.
"""

from __future__ import annotations

import json
import warnings
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

TABLE = Path(__file__).with_suffix(".json")
LABELS = ["TR1", "TR2", "OIO", "OR"]


def read() -> dict[str, list[dict[str, Any]]]:
    """The table: cases of each measure, and what the packages make of them under `said`."""
    return json.loads(TABLE.read_text(encoding="utf-8"))


def cases() -> dict[str, list[dict[str, Any]]]:
    """What the packages that are installed make of all cases."""
    source = np.random.default_rng(14)
    return {
        "mcnemar": mcnemar(source),
        "holm": holm(source),
        "wilson": wilson(source),
        "clustered error": clustered_error(source),
        "kappa": kappa(source),
        "classification": classification(source),
        "areas": areas(source),
    }


def mcnemar(source: np.random.Generator) -> list[dict[str, Any]]:
    """Exact two-sided p, with `b` and `c` discordant pairs."""
    tables: Any = import_module("statsmodels.stats.contingency_tables")
    pairs = [[0, 1], [1, 0], [1, 1], [0, 6], [200, 200], [0, 200], *source.integers(0, 201, (34, 2)).tolist()]
    return [
        {"b": b, "c": c, "said": min(1.0, float(tables.mcnemar([[5, b], [c, 5]], exact=True).pvalue))} for b, c in pairs
    ]


def holm(source: np.random.Generator) -> list[dict[str, Any]]:
    """Adjusted p of a family, in its order."""
    multitest: Any = import_module("statsmodels.stats.multitest")
    families = [[0.0], [1.0], [0.5, 0.5, 0.5], [0.04, 0.01, 0.03], [1.0, 0.0, 1.0, 0.0], [0.3, 0.2, 0.1]]
    # Half of them in tenths, so that some are equal; half of them near nothing, so that not all are cut to 1.
    for place in range(34):
        drawn = source.random(source.integers(1, 13)) ** (1 if place % 4 < 2 else 6)
        families.append((drawn.round(1) if place % 2 else drawn).tolist())
    return [{"p": family, "said": multitest.multipletests(family, method="holm")[1].tolist()} for family in families]


def wilson(source: np.random.Generator) -> list[dict[str, Any]]:
    """Both limits of the score interval."""
    proportion: Any = import_module("statsmodels.stats.proportion")
    numbers: list[int] = (source.random(35) ** 3 * 5000 + 1).astype(int).tolist()
    counts = [(0, 1, 0.95), (1, 1, 0.95), (0, 5000, 0.5), (5000, 5000, 0.999), (1, 2, 0.5)]
    counts += [(int(source.integers(0, n + 1)), n, round(float(source.uniform(0.5, 0.999)), 3)) for n in numbers]
    said = [proportion.proportion_confint(yes, n, alpha=1 - level, method="wilson") for yes, n, level in counts]
    return [
        {"successes": yes, "n": n, "level": level, "said": [float(low), float(high)]}
        for (yes, n, level), (low, high) in zip(counts, said, strict=True)
    ]


def clustered_error(source: np.random.Generator) -> list[dict[str, Any]]:
    """Standard errors (CR1) of a mean, by a regression on a constant."""
    linear: Any = import_module("statsmodels.regression.linear_model")
    found: list[dict[str, Any]] = []
    for n, groups in ((60, 17), (12, 2), (25, 25), (9, 4)):
        values, clusters = source.random(n).round(3), source.integers(0, groups, n)
        model = linear.OLS(values, np.ones(n))
        said = float(model.fit(cov_type="cluster", cov_kwds={"groups": clusters}).bse[0])
        found.append({"values": values.tolist(), "clusters": clusters.tolist(), "said": said})
    return found


def kappa(source: np.random.Generator) -> list[dict[str, Any]]:
    """Cohen's kappa of two raters, a letter a label."""
    metrics: Any = import_module("sklearn.metrics")
    pairs = [("ab", "ba"), ("ab", "ab"), ("aab", "aaa"), ("aaa", "bbb"), ("abc", "bca")]
    while len(pairs) < 40:
        n, kinds = source.integers(2, 41), source.integers(2, 4)
        a, b = ("".join("abc"[place] for place in source.integers(0, kinds, n)) for _ in range(2))
        if len({*a, *b}) > 1:
            pairs.append((a, b))
    return [{"a": a, "b": b, "said": float(metrics.cohen_kappa_score(list(a), list(b)))} for a, b in pairs]


def classification(source: np.random.Generator) -> list[dict[str, Any]]:
    """Precision, recall and F₁ of samples with several of `LABELS` each, and the share that is right as a whole."""
    metrics: Any = import_module("sklearn.metrics")
    found: list[dict[str, Any]] = []
    for place in range(40):
        shape = (int(source.integers(1, 26)) if place > 2 else 1, len(LABELS))
        share = (0.0, 1.0)[place] if place < 2 else source.random()
        truth = (source.random(shape) < share).astype(int)
        predicted = np.where(source.random(shape) < source.random(), truth, source.integers(0, 2, shape))
        said = {
            average: [float(figure) for figure in scores(metrics, truth, predicted, average)[:3]]
            for average in ("macro", "micro")
        }
        f1, support = (column.tolist() for column in scores(metrics, truth, predicted, None)[2:])
        right = float(metrics.accuracy_score(truth, predicted))
        found.append(
            {
                "truth": truth.tolist(),
                "predicted": predicted.tolist(),
                "said": {**said, "f1": f1, "support": support, "right": right},
            }
        )
    return found


def scores(metrics: Any, truth: Any, predicted: Any, average: str | None) -> Any:
    return metrics.precision_recall_fscore_support(truth, predicted, average=average, zero_division=0)


def areas(source: np.random.Generator) -> list[dict[str, Any]]:
    """Areas under both curves of yes and no; null where a class is empty and there is no ROC."""
    metrics: Any = import_module("sklearn.metrics")
    found: list[dict[str, Any]] = []
    for place in range(40):
        n = int(source.integers(1, 31))
        truth = (source.random(n) < ((0.0, 1.0)[place] if place < 2 else source.random())).astype(int).tolist()
        given = source.integers(0, 2, n).tolist()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn warns where a class is empty
            roc, precision = metrics.roc_auc_score(truth, given), metrics.average_precision_score(truth, given)
        said = [None if np.isnan(roc) else float(roc), float(precision)]
        found.append({"truth": truth, "given": given, "said": said})
    return found


def text() -> str:
    """The table as it lies on the disk: one case a line."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("statsmodels", "scikit-learn", "numpy"))
    header = f"Written by tests/statistics/reference.py with {packages}."
    lines = [f'{{"header": {json.dumps(header)}']
    for name, found in cases().items():
        rows = ",\n".join(json.dumps(case, separators=(",", ":")) for case in found)
        lines.append(f"{json.dumps(name)}: [\n{rows}\n]")
    return ",\n".join(lines) + "}\n"


if __name__ == "__main__":
    TABLE.write_text(text(), encoding="utf-8")
