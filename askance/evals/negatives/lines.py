"""Lines of a run that writes negatives, and the files that are made from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.agents.negatives import normal
from askance.evals.negatives.files import write_lines, write_options
from askance.evals.negatives.recipe import options_of, wanted
from askance.evals.negatives.sidecar import SIDECAR, HardNegative

if TYPE_CHECKING:
    from askance.agents.negatives import Negative
    from askance.chat import JsonObject
    from askance.evals.negatives.files import Source
    from askance.evals.negatives.recipe import Recipe, Wanted
    from askance.nodes import Result


def line_of_result(one: Wanted, result: Result[Any]) -> JsonObject:
    """The line of what a writer was asked."""
    items: Sequence[Negative] = () if result.value is None else result.value.items
    value = [{"text": item.text, "replaced": item.replaced, "replacement": item.replacement} for item in items]
    calls = [call.key for call in result.calls]
    return line_of(one, result.outcome, value, reason=result.reason, raw=result.raw, calls=calls)


def line_of(
    one: Wanted,
    outcome: str,
    value: Sequence[Mapping[str, Any]],
    *,
    reason: str | None = None,
    raw: str | None = None,
    calls: Sequence[str] = (),
) -> JsonObject:
    """The line of one call: what was wanted, what came of it, and the records that it rests on."""
    return {
        "id": one.name,
        "image": one.source.key,
        "kind": one.kind,
        "place": one.place,
        "source": one.statement,
        "outcome": outcome,
        "reason": reason,
        "raw": raw,
        "value": [dict(item) for item in value],
        "links": {"negative": {"outcome": outcome, "calls": list(calls)}} if calls else {},
        "meta": {},
    }


def write_files(
    out: Path, sources: Sequence[Source], recipe: Recipe, *, lines: Iterable[Mapping[str, Any]]
) -> tuple[int, Mapping[str, int]]:
    """Writes the files of the negatives so far: one for each kind, one with all, and the sidecar.

    Returns:
        How many negatives there are, and how many images by file.
    """
    by_image = _by_image(sources, recipe, lines)
    files: dict[str, int] = {}
    for kind in (*recipe.kinds, None):
        images = (
            (source.key, source.true[: recipe.most], options)
            for source in sources
            if (options := options_of(source, by_image[source.key], recipe, kind=kind)) is not None
        )
        files[recipe.file(kind)] = write_options(out / recipe.file(kind), images)
    every = [negative for negatives in by_image.values() for negative in negatives]
    write_lines(out / SIDECAR, (negative.form() for negative in every))
    return len(every), files


def _by_image(
    sources: Sequence[Source], recipe: Recipe, lines: Iterable[Mapping[str, Any]]
) -> Mapping[str, list[HardNegative]]:
    """The negatives of each image in the order of the recipe; of equal texts of an image the first."""
    answered = {str(line["id"]): line for line in lines if line["outcome"] == "answered"}
    found: dict[str, dict[str, HardNegative]] = {source.key: {} for source in sources}
    for one in wanted(sources, recipe):
        for negative in _negatives_of(answered.get(one.name)):
            found[one.source.key].setdefault(normal(negative.text), negative)
    return {key: [*negatives.values()] for key, negatives in found.items()}


def _negatives_of(line: Mapping[str, Any] | None) -> Iterator[HardNegative]:
    if line is None:
        return
    calls = tuple(key for link in line["links"].values() for key in link["calls"])
    for item in line["value"]:
        yield HardNegative(
            key=line["image"],
            text=item["text"],
            kind=line["kind"],
            source=line["source"],
            place=line["place"],
            replaced=item.get("replaced"),
            replacement=item.get("replacement"),
            calls=calls,
        )
