"""Rows into the tensors of one batch: prompts padded on the left, or put behind beginnings that are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.models.local.prefixes import Prefix, joined, on_device, positions
from askance.models.local.rows import is_text

if TYPE_CHECKING:
    from askance.models.local.loaded import Loaded
    from askance.models.local.rows import Row

Place: TypeAlias = "Callable[[Sequence[int], int, int], list[int]]"


def plain(rows: Sequence[Row], loaded: Loaded) -> dict[str, Any]:
    """Whole prompts, pictures included."""
    width = max(len(row.ids) for row in rows)

    def left(tokens: Sequence[int], filler: int, _: int) -> list[int]:
        return [filler] * (width - len(tokens)) + list(tokens)

    return {**_texts(rows, left, loaded), **on_device(_inputs(rows, loaded), loaded)}


def behind(rows: Sequence[Row], prefixes: Sequence[Prefix], loaded: Loaded) -> dict[str, Any]:
    """What is left of each prompt behind its prefix; pictures are in the prefixes.

    All prefixes end at one column and all prompts at another; the gaps are masked.
    """
    torch = loaded.torch
    cut = max(len(prefix.ids) for prefix in prefixes)
    width = cut + max(len(row.ids) - len(prefix.ids) for row, prefix in zip(rows, prefixes, strict=True))

    def around(tokens: Sequence[int], filler: int, place: int) -> list[int]:
        length = len(prefixes[place].ids)
        rest = tokens[length:]
        return [*[filler] * (cut - length), *tokens[:length], *[filler] * (width - cut - len(rest)), *rest]

    inputs = _texts(rows, around, loaded)
    places = [positions(row, loaded) for row in rows]
    if places[0] is not None:
        lines = [[line[0].tolist() for line in place] for place in places]
        inputs["position_ids"] = torch.tensor(
            [[around(lines[row][axis], 0, row) for row in range(len(rows))] for axis in range(len(lines[0]))],
            device=loaded.device,
        )
    return {**inputs, "past_key_values": joined(prefixes, loaded)}


def _texts(rows: Sequence[Row], place: Place, loaded: Loaded) -> dict[str, Any]:
    """Tokens, their kinds and the mask, laid out by `place`."""

    def tensor(lines: Sequence[Sequence[int]], filler: int) -> Any:
        laid = [place(line, filler, number) for number, line in enumerate(lines)]
        return loaded.torch.tensor(laid, device=loaded.device)

    kinds = {name: tensor([row.types[name] for row in rows], 0) for name in rows[0].types}
    mask = tensor([[1] * len(row.ids) for row in rows], 0)
    return {"input_ids": tensor([row.ids for row in rows], loaded.pad), "attention_mask": mask, **kinds}


def _inputs(rows: Sequence[Row], loaded: Loaded) -> dict[str, Any]:
    torch = loaded.torch
    return {name: _joined(torch, [row.inputs[name] for row in rows], text=is_text(name)) for name in rows[0].inputs}


def _joined(torch: Any, values: Sequence[Any], *, text: bool) -> Any:
    """One tensor; texts beside the prompt are padded on the right, as their encoders count places from the left."""
    if text:
        width = max(value.shape[-1] for value in values)
        values = [torch.nn.functional.pad(value, (0, width - value.shape[-1])) for value in values]
    return torch.cat(list(values))
