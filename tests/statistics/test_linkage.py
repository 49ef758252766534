from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from askance.errors import UsageError
from askance.statistics import linkage_clusters

if TYPE_CHECKING:
    from numpy.typing import NDArray


def vectors(count: int, *, seed: int = 0) -> list[NDArray[np.float16]]:
    return [row.astype(np.float16) for row in np.random.default_rng(seed).normal(size=(count, 8))]


def test_vectors_that_point_the_same_way_share_a_cluster() -> None:
    one, other = np.array([1, 0], dtype=np.float16), np.array([0, 2], dtype=np.float16)

    assert linkage_clusters([one, other, 3 * one, other, one], 2) == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("count", [1, 5, 14, 19])
def test_clusters_are_those_of_scikit_learn(count: int) -> None:
    given = vectors(20)
    sklearn: Any = import_module("sklearn.cluster")
    oracle = sklearn.AgglomerativeClustering(n_clusters=count, metric="cosine", linkage="average")

    ours = linkage_clusters(given, count)
    theirs: list[int] = oracle.fit_predict(np.stack(given).astype(np.float64)).tolist()

    assert len({*ours}) == count
    assert len({*zip(ours, theirs, strict=True)}) == count


def test_few_vectors_stay_apart_and_a_vector_without_length_is_like_no_other() -> None:
    given = [*vectors(2), np.zeros(8, dtype=np.float16)]

    assert linkage_clusters(given, 3) == [0, 1, 2]
    assert linkage_clusters([], 4) == []
    assert linkage_clusters([given[0], given[0], given[2]], 2) == [0, 0, 1]


def test_no_clusters_cannot_be_had() -> None:
    with pytest.raises(UsageError, match="0 clusters"):
        linkage_clusters(vectors(3), 0)
