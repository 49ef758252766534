"""A run as rows, one for each sample and epoch, or for each picture; all rows have the same columns."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, cast

from askance.chains.link import ANSWERS, LINKS_BY_NAME, STATEMENT
from askance.chains.output_line import VERBALIZED, link_values
from askance.evals.run_folder import replacing
from askance.evals.tables import spreadsheet_cell

if TYPE_CHECKING:
    from askance.chat import Json, JsonObject
    from askance.evals.sample import Sample, SampleResult


Cell: TypeAlias = "str | int | float | bool | None"
Columns: TypeAlias = Mapping[str, Sequence[Cell]]
"""The rows of a run by column."""


def picture_row(answer: SampleResult) -> JsonObject:
    """A picture, how it ended, what each link of the chain says, and what that took."""
    return dict(_picture_cells(answer))


def answer_row(answer: SampleResult) -> JsonObject:
    """A sample and epoch of an evaluation, with its answer and score."""
    return dict(_answer_cells(answer))


def _parts(value: Any) -> Mapping[str, Any]:
    """The parts of a statement; none of what anybody may have written in its place."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _picture_cells(answer: SampleResult) -> Iterator[tuple[str, Json]]:
    sample, prediction = answer.sample, answer.prediction
    yield "image", sample.id
    yield from _question(sample)
    yield "outcome", prediction.outcome
    yield "reason", prediction.reason
    values = cast("dict[str, Any]", link_values({**prediction.trace, "links": prediction.links}))
    for name in prediction.links:
        value = values.get(name)
        if name == STATEMENT.name:
            parts = _parts(value)
            yield "relation", parts.get("relation")
            yield name, parts.get("text")
        else:
            yield name if name in LINKS_BY_NAME else f"link.{name}", value
        if name == ANSWERS.name:
            yield "chosen", _chosen(value, sample.inputs.get("options"))
    yield "options", sample.inputs.get("options")
    yield "sha256", None if sample.image is None else sample.image.sha256
    yield from _meta(prediction.meta)


def _chosen(numbers: Sequence[int] | None, options: Sequence[str] | None) -> Json:
    """The chosen options as texts, best first; None where nothing was chosen, or the options are not known."""
    if numbers is None or options is None:
        return None
    return [options[number - 1] for number in numbers if 1 <= number <= len(options)]


def _answer_cells(answer: SampleResult) -> Iterator[tuple[str, Json]]:
    sample, prediction = answer.sample, answer.prediction
    yield "id", sample.id
    yield "epoch", answer.epoch
    yield "group", sample.cluster
    yield "image", None if sample.image is None else sample.image.name
    yield from _question(sample)
    yield "sha256", None if sample.image is None else sample.image.sha256
    yield "outcome", prediction.outcome
    yield "reason", prediction.reason
    yield "value", prediction.value
    if prediction.abstained or prediction.confidence is not None:
        yield "confidence", prediction.confidence
        yield "abstained", prediction.abstained
    for each in prediction.attachments:
        yield from ((f"{each.kind}.{name}", value) for name, value in each.form().items())
    yield "target", sample.target
    yield "options", sample.inputs.get("options")
    score = answer.score
    if score is not None:
        yield from ((f"score.{name}", value) for name, value in score.values.items())
        yield from ((f"note.{name}", value) for name, value in score.notes.items())
    yield from ((f"tag.{name}", value) for name, value in sample.tags.items())
    verbalization: Mapping[str, Any] = prediction.trace.get("verbalization") or {}
    yield from ((name, verbalization.get(name)) for name in VERBALIZED if verbalization)
    statement: Mapping[str, Any] | None = prediction.trace.get("statement")
    if "statement" in prediction.trace:
        yield "statement", None if statement is None else statement.get("text")
    yield from ((f"link.{name}", link["value"]) for name, link in prediction.links.items() if "value" in link)
    yield from _meta(prediction.meta)


def _question(sample: Sample) -> Iterator[tuple[str, Json]]:
    """What is asked of a picture, where each has a question of its own."""
    if "question" in sample.inputs:
        yield "question", sample.inputs["question"]


def _meta(meta: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    tokens: Mapping[str, Any] = meta.get("tokens", {})
    yield from ((name, meta.get(name)) for name in ("calls", "replayed", "seconds", "cost"))
    yield from ((f"{name}_tokens", tokens.get(name)) for name in ("input", "output"))


def columns_of(rows: Iterable[JsonObject]) -> Columns:
    """The rows by column. A column has one type: str, int, float or bool; other values are JSON texts.

    A value that a row lacks is None.
    """
    rows = [*rows]
    names = dict.fromkeys(name for row in rows for name in row)
    return {whole(name): _of_one_type([row.get(name) for row in rows]) for name in names}


def _of_one_type(values: Sequence[Json]) -> list[Cell]:
    present = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in present) or all(type(value) is int for value in present):
        return cast("list[Cell]", [*values])
    if all(type(value) in {int, float} for value in present):
        return [None if value is None else float(cast("float", value)) for value in values]
    return [None if value is None else whole(value if isinstance(value, str) else text_of(value)) for value in values]


def whole(text: str) -> str:
    """`text` with lone surrogates, which a file's name may hold, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def text_of(value: Json) -> str:
    """A value as JSON text."""
    return json.dumps(value, ensure_ascii=False)


def finite(value: Any) -> Any:
    """`value` as strict JSON: null for NaN and infinite numbers, and texts without lone surrogates."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {whole(str(name)): finite(each) for name, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in cast("Sequence[Any]", value)]
    return value


def write_csv(columns: Columns, path: Path) -> None:
    """Writes the columns as CSV, UTF-8; a text that a spreadsheet would run gets an apostrophe before it."""
    with replacing(path) as part, _opened(part) as file:
        lines = csv.writer(file)  # lines end in \r\n, the standard, so that a lone \r is quoted too
        lines.writerow([spreadsheet_cell(name) for name in columns])
        lines.writerows([spreadsheet_cell(each) for each in row] for row in zip(*columns.values(), strict=True))


def write_jsonl(answers: Iterable[SampleResult], path: Path) -> None:
    """Writes a line for each answer: the sample, the prediction with its links and whole ranking, and the score."""
    with replacing(path) as part, _opened(part) as file:
        for answer in answers:
            score = None if answer.score is None else answer.score.form()
            form = {"id": answer.sample.id, "epoch": answer.epoch, "sample": answer.sample.form()}
            ranking = answer.prediction.ranking
            ranked = {} if ranking is None else {"ranking": {"ids": [*ranking.ids], "scores": [*ranking.scores]}}
            line = finite({**form, **answer.prediction.form(), **ranked, "score": score})
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")


def _opened(path: Path) -> IO[str]:
    """The file, to be written; a lone surrogate is written as its escape."""
    return path.open("w", encoding="utf-8", errors="backslashreplace", newline="")
