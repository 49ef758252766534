"""Prefixes of prompts that are computed once: keys and values of every layer, kept for later requests.

Rows about the same pictures that begin with the same tokens are a group: their common prefix, every picture in it, is
computed for all of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from askance.models.local.batch_row import BatchRow
    from askance.models.local.transformers_model import TransformersModel

KEPT_BYTES = 2 << 30
"""Memory that prefixes may take between batches."""
KEPT = 64
"""Prefixes that are kept, at most."""
SHORTEST = 16
"""Fewest tokens that rows without a picture must share for their prefix to be computed apart."""

Layers: TypeAlias = "list[tuple[Any, Any]]"
"""Keys and values by layer, each of the shape [1, heads, tokens, size]."""


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """A prefix that was computed."""

    ids: tuple[int, ...]
    layers: Layers

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(each.numel() * each.element_size() for layer in self.layers for each in layer)

    def begins(self, row: BatchRow) -> bool:
        """Whether `row` begins with it, has all its pictures in it, and is longer."""
        count = len(self.ids)
        return row.picture_end <= count < len(row.ids) and tuple(row.ids[:count]) == self.ids


class PrefixCache:
    """The prefixes that were used last, by their pictures."""

    def __init__(self, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._prefixes: OrderedDict[tuple[tuple[str, ...], tuple[int, ...]], Prefix] = OrderedDict()

    def find(self, rows: Sequence[BatchRow]) -> Prefix | None:
        """The longest prefix here that all `rows`, which are about the same pictures, begin with."""
        pictures = rows[0].pictures
        fitting = [
            key
            for key, prefix in self._prefixes.items()
            if key[0] == pictures and all(prefix.begins(row) for row in rows)
        ]
        if not fitting:
            return None
        key = max(fitting, key=lambda key: len(key[1]))
        self._prefixes.move_to_end(key)
        return self._prefixes[key]

    def keep(self, pictures: tuple[str, ...], prefix: Prefix) -> None:
        self._prefixes[pictures, prefix.ids] = prefix
        while len(self._prefixes) > 1 and (len(self._prefixes) > KEPT or self._size() > self._kept_bytes):
            self._prefixes.popitem(last=False)

    def _size(self) -> int:
        return sum(each.size for each in self._prefixes.values())

    def clear(self) -> None:
        self._prefixes.clear()


# --- which rows begin alike: lists of tokens alone, no tensors ---


@dataclass(frozen=True, slots=True, eq=False)
class PrefixGroup:
    """Rows about the same pictures that begin with the same tokens."""

    rows: tuple[BatchRow, ...]
    length: int
    """Tokens of the common prefix: every picture is in it, and at least one token of each row is not."""


def prefix_groups(rows: Sequence[BatchRow]) -> list[PrefixGroup]:
    """`rows` by what they have in common, in the order of their first members; rows that share nothing stand alone."""
    by_pictures: dict[tuple[str, ...], list[BatchRow]] = {}
    for row in rows:
        by_pictures.setdefault(row.pictures, []).append(row)
    groups: list[PrefixGroup] = []
    for alike in by_pictures.values():
        length = common_length(row.ids for row in alike)
        if len(alike) > 1 and length >= max(row.picture_end for row in alike):
            shared = length if alike[0].pictures or length >= SHORTEST else 0
            groups.append(PrefixGroup(tuple(alike), shared))
        else:  # of a row alone only the pictures are computed apart, for the questions that may follow
            groups += [PrefixGroup((row,), row.picture_end) for row in alike]
    return groups


def common_length(texts: Iterable[Sequence[int]]) -> int:
    """Tokens that all `texts` begin with, such that each has one more at least."""
    every = list(texts)
    most = min(map(len, every)) - 1
    first = every[0]
    return next((place for place in range(most) if any(text[place] != first[place] for text in every)), most)


# --- keys and values as tensors ---


def positions(row: BatchRow, model: TransformersModel) -> Any:
    """The position of each token, of the shape [4, 1, tokens], for architectures that place a picture's tokens in 2-D.

    None where a position is the number of the token.
    """
    inner = getattr(model.model, "model", None)
    index = getattr(inner, "get_rope_index", None)
    if index is None:
        return None
    torch = model.torch
    ids = torch.tensor([row.ids], device=model.device)
    text = torch.arange(len(row.ids), device=model.device)[None, None]
    if "image_grid_thw" not in row.inputs:
        return text.expand(4, 1, -1)
    types = {name: torch.tensor([kinds], device=model.device) for name, kinds in row.types.items()}
    grid = row.inputs["image_grid_thw"].to(model.device)
    places, _ = index(ids, image_grid_thw=grid, attention_mask=torch.ones_like(ids), **types)
    return torch.cat([text, places])


def compute_prefix(row: BatchRow, length: int, model: TransformersModel) -> Prefix:
    """The first `length` tokens of `row`, with its pictures, through the model."""
    torch, place = model.torch, positions(row, model)
    cache = _new_cache(model)
    model.model(
        input_ids=torch.tensor([row.ids[:length]], device=model.device),
        attention_mask=torch.ones((1, length), dtype=torch.long, device=model.device),
        use_cache=True,
        logits_to_keep=1,
        **{model.cache_argument: cache},
        **({} if place is None else {"position_ids": place[..., :length]}),
        **{name: torch.tensor([kinds[:length]], device=model.device) for name, kinds in row.types.items()},
        **model.runtime.on_device(row.inputs),
    )
    return Prefix(tuple(row.ids[:length]), [(layer.keys, layer.values) for layer in cache.layers])


def joined_cache(prefixes: Sequence[Prefix], model: TransformersModel) -> Any:
    """A cache of transformers with one row for each of `prefixes`, all ending at one column."""
    torch, cache = model.torch, _new_cache(model)
    longest = max(len(prefix.ids) for prefix in prefixes)

    def widened(states: Any) -> Any:
        return torch.nn.functional.pad(states, (0, 0, longest - states.shape[-2], 0))

    for place in range(len(prefixes[0].layers)):
        keys, values = (torch.cat([widened(prefix.layers[place][which]) for prefix in prefixes]) for which in (0, 1))
        cache.update(keys, values, place)
    return cache


def attention_window(model: TransformersModel) -> int | None:
    """Tokens that the layer with the shortest window looks back; None where every layer sees all of them.

    What such a layer no longer sees is gone from its keys and values.
    """
    windows = [layer.sliding_window for layer in _new_cache(model).layers if getattr(layer, "is_sliding", False)]
    return min(windows, default=None)


def _new_cache(model: TransformersModel) -> Any:
    return model.runtime.transformers.DynamicCache(config=model.model.config.get_text_config(decoder=True))
