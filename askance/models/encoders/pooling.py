"""From the vectors of tokens to one vector a text: the ways of pooling that sentence encoders use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def pooled(torch: Any, hidden: Any, mask: Any, *, modes: Sequence[str]) -> Any:
    """One vector a text, of several ways behind each other.

    Args:
        torch: the package.
        hidden: vectors of tokens: texts × tokens × numbers.
        mask: 1 where there is a token, 0 where there is padding: texts × tokens.
        modes: out of `askance.models.encoders.recipes.MODES`.
    """
    return torch.cat([_WAYS[mode](torch, hidden, mask) for mode in modes], dim=-1)


def _at(hidden: Any, places: Any) -> Any:
    """The vector at one place of each text."""
    return hidden[range(len(hidden)), places]


def _cls(torch: Any, hidden: Any, mask: Any) -> Any:  # noqa: ARG001  # as all of them
    return _at(hidden, mask.int().argmax(dim=1))


def _last(torch: Any, hidden: Any, mask: Any) -> Any:  # noqa: ARG001  # as all of them
    return _at(hidden, mask.shape[1] - 1 - mask.int().flip(1).argmax(dim=1))


def _max(torch: Any, hidden: Any, mask: Any) -> Any:  # noqa: ARG001  # as all of them
    return hidden.masked_fill(mask.unsqueeze(-1) == 0, float("-inf")).max(dim=1).values


def _sum(hidden: Any, weights: Any) -> tuple[Any, Any]:
    """The weighted sum, and the sum of the weights, which is not 0."""
    each = weights.unsqueeze(-1).to(hidden.dtype)
    return (hidden * each).sum(dim=1), each.sum(dim=1).clamp(min=1e-9)


def _mean(torch: Any, hidden: Any, mask: Any) -> Any:  # noqa: ARG001  # as all of them
    total, count = _sum(hidden, mask)
    return total / count


def _mean_by_root(torch: Any, hidden: Any, mask: Any) -> Any:  # noqa: ARG001  # as all of them
    total, count = _sum(hidden, mask)
    return total / count.sqrt()


def _weighted(torch: Any, hidden: Any, mask: Any) -> Any:
    """The mean in which the first token counts once, the second twice, and so on."""
    places = torch.cumsum(mask.int(), dim=1) * mask.int()
    total, weight = _sum(hidden, places)
    return total / weight


_WAYS: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "cls": _cls,
    "lasttoken": _last,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean": _weighted,
}
