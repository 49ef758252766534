"""Hierarchical clustering: vectors that point the same way end up in one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.statistics.arguments import check_counts, finite_array

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def linkage_clusters(vectors: Sequence[NDArray[np.float16]], count: int) -> list[int]:
    """The cluster of each vector, by average linkage of cosine distances, cut where at most `count` clusters are left.

    The products of vectors of 16 bits add up in 64 bits without rounding. So the clusters are the same on every
    machine. Memory is about 16·n² bytes for n vectors.

    Args:
        vectors: in 16 bits, all of one size; one without a length is at the distance 1 from every other.
        count: clusters at most. There are fewer where several merges happen at one distance.

    Returns:
        Numbers from 0, in the order in which the clusters first appear.

    Raises:
        UsageError: fewer than one cluster is wanted, the number is no count, or a vector is not finite.
    """
    import numpy as np
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    check_counts(count)
    if count < 1:
        raise UsageError(f"Vectors cannot fall into {count} clusters.", hint="Ask for one or more.")
    if len(vectors) <= count:
        return list(range(len(vectors)))
    rows = finite_array(np.stack(vectors))
    lengths = np.sqrt((rows * rows).sum(axis=1))
    lengths[lengths == 0] = 1.0
    distances = rows @ rows.T
    distances /= lengths
    distances /= lengths[:, None]
    np.subtract(1, distances, out=distances)
    np.clip(distances, 0, 2, out=distances)
    merges = linkage(squareform(distances, checks=False), method="average")
    labels: list[int] = fcluster(merges, t=count, criterion="maxclust").tolist()
    numbers = {cluster: number for number, cluster in enumerate(dict.fromkeys(labels))}
    return [numbers[cluster] for cluster in labels]
