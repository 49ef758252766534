"""Beginnings of prompts that are computed once: keys and values of every layer, kept for the questions to come."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from askance.models.local.loaded import Loaded
    from askance.models.local.rows import Row

KEPT_BYTES = 2 << 30
"""Memory that beginnings may take between batches."""
KEPT = 64
"""Beginnings that are kept, at most."""

Layers: TypeAlias = "list[tuple[Any, Any]]"
"""Keys and values by layer, each of the shape [1, heads, tokens, size]."""


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """A beginning that was computed."""

    ids: tuple[int, ...]
    layers: Layers

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(each.numel() * each.element_size() for layer in self.layers for each in layer)

    def begins(self, row: Row) -> bool:
        """Whether `row` begins so, holds its pictures in it, and goes on."""
        count = len(self.ids)
        return row.picture_end <= count < len(row.ids) and tuple(row.ids[:count]) == self.ids


class Prefixes:
    """The latest beginnings, by their pictures."""

    def __init__(self, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._kept: OrderedDict[tuple[tuple[str, ...], tuple[int, ...]], Prefix] = OrderedDict()

    def find(self, rows: Sequence[Row]) -> Prefix | None:
        """The longest kept beginning of all `rows`, which are about the same pictures."""
        pictures = rows[0].pictures
        fitting = [
            key for key, prefix in self._kept.items() if key[0] == pictures and all(prefix.begins(row) for row in rows)
        ]
        if not fitting:
            return None
        key = max(fitting, key=lambda key: len(key[1]))
        self._kept.move_to_end(key)
        return self._kept[key]

    def keep(self, pictures: tuple[str, ...], prefix: Prefix) -> None:
        self._kept[pictures, prefix.ids] = prefix
        while len(self._kept) > 1 and (len(self._kept) > KEPT or self._size() > self._kept_bytes):
            self._kept.popitem(last=False)

    def _size(self) -> int:
        return sum(each.size for each in self._kept.values())

    def clear(self) -> None:
        self._kept.clear()


def positions(row: Row, loaded: Loaded) -> Any:
    """Where each token of a row stands, of the shape [4, 1, tokens], for architectures with places in a picture.

    None where a place is the number of the token.
    """
    inner = getattr(loaded.model, "model", None)
    index = getattr(inner, "get_rope_index", None)
    if index is None:
        return None
    torch = loaded.torch
    ids = torch.tensor([row.ids], device=loaded.device)
    text = torch.arange(len(row.ids), device=loaded.device)[None, None]
    if "image_grid_thw" not in row.inputs:
        return text.expand(4, 1, -1)
    types = {name: torch.tensor([kinds], device=loaded.device) for name, kinds in row.types.items()}
    grid = row.inputs["image_grid_thw"].to(loaded.device)
    places, _ = index(ids, image_grid_thw=grid, attention_mask=torch.ones_like(ids), **types)
    return torch.cat([text, places])


def compute(row: Row, length: int, loaded: Loaded) -> Prefix:
    """The first `length` tokens of `row`, with its pictures, through the model."""
    torch, model = loaded.torch, loaded.model
    place = positions(row, loaded)
    cache = new_cache(loaded)
    model(
        input_ids=torch.tensor([row.ids[:length]], device=loaded.device),
        attention_mask=torch.ones((1, length), dtype=torch.long, device=loaded.device),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
        **({} if place is None else {"position_ids": place[..., :length]}),
        **{name: torch.tensor([kinds[:length]], device=loaded.device) for name, kinds in row.types.items()},
        **on_device(row.inputs, loaded),
    )
    return Prefix(tuple(row.ids[:length]), [(layer.keys, layer.values) for layer in cache.layers])


def joined(prefixes: Sequence[Prefix], loaded: Loaded) -> Any:
    """A cache with one row for each of `prefixes`, all ending at one column."""
    torch, cache = loaded.torch, new_cache(loaded)
    longest = max(len(prefix.ids) for prefix in prefixes)
    for place in range(len(prefixes[0].layers)):
        keys, values = (
            torch.cat([_widened(torch, prefix.layers[place][which], longest) for prefix in prefixes])
            for which in (0, 1)
        )
        cache.update(keys, values, place)
    return cache


def new_cache(loaded: Loaded) -> Any:
    """An empty cache of keys and values."""
    transformers: Any = import_module("transformers")
    return transformers.DynamicCache(config=loaded.model.config.get_text_config(decoder=True))


def _widened(torch: Any, states: Any, longest: int) -> Any:
    return torch.nn.functional.pad(states, (0, 0, longest - states.shape[-2], 0))


def window(loaded: Loaded) -> int | None:
    """Tokens that the nearest-sighted layer looks back; None where all see everything.

    What such a layer no longer sees is gone from its keys and values.
    """
    windows = [layer.sliding_window for layer in new_cache(loaded).layers if getattr(layer, "is_sliding", False)]
    return min(windows, default=None)


def on_device(inputs: Any, loaded: Loaded) -> dict[str, Any]:
    """Inputs where the model is; pixels in its type."""
    dtype = loaded.model.dtype
    return {
        name: value.to(loaded.device, dtype) if value.is_floating_point() else value.to(loaded.device)
        for name, value in inputs.items()
    }
