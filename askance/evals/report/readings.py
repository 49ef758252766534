"""A page of pictures that a chain has read, one by one, in the style of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance import __version__
from askance.amounts import many
from askance.chains.output_line import link_values
from askance.evals.report.elements import Field, PageLink, Sortable
from askance.evals.report.html import document, write_page
from askance.evals.report.run_part import RunPart, SampleRow, row_of
from askance.evals.report.samples import SampleBrowser, index_of
from askance.evals.report.summary import PromptText, digests_of_prompts, facts_of_pictures, outcomes_of
from askance.evals.report.thumbnails import Thumbnails
from askance.evals.run import Run, SampleResult
from askance.evals.sample import Prediction, Sample
from askance.evals.solver import ChainSolver
from askance.images import Image
from askance.replay import MemoryStore, select

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.replay import Record, Records

_UNKEPT = "There is no record of this call: it had no answer, or the record was taken out."
_TRACE = ("verbalization", "statement", "statement_reason", "answers")


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureReading:
    """One picture that a chain has read."""

    line: Mapping[str, Any]
    """As `askance.chains.output_line.line_of` gives it."""
    options: tuple[str, ...] = ()
    """The options to choose from."""
    file: Path | None = None
    """Where the picture lies, if not at the path that the line calls it by."""


def part_of_readings(
    read: Sequence[PictureReading], configuration: Mapping[str, Any], *, records: MemoryStore
) -> RunPart:
    """Pictures as a run that nobody scores.

    Args:
        read: in their order.
        configuration: `task` and `chain` (names), and of the `solver` what `ChainSolver.form` gives.
        records: those that the pictures rest on; one that is missing is said to be.
    """
    seen = Counter[str]()
    answers: list[SampleResult] = []
    for each in read:
        name = str(each.line["image"])
        answers.append(_answer(each, epoch=seen[name]))
        seen[name] += 1
    run = Run.unkept(configuration, answers=answers, records=records)
    return RunPart(
        run=run,
        name=run.task,
        facts={"askance": __version__},
        column=None,
        share=False,
        answers=answers,
        rows=tuple(_row(answer) for answer in answers),
    )


def _row(answer: SampleResult) -> SampleRow:
    row = row_of(answer)
    return replace(row, result="answered") if answer.prediction.answered else row


def _answer(read: PictureReading, *, epoch: int) -> SampleResult:
    line = read.line
    name, digest = str(line["image"]), line.get("sha256")
    answered = line["outcome"] == "answered"
    return SampleResult(
        sample=Sample(
            id=name,
            image=None if digest is None else Image.from_digest(str(digest), name=name),
            inputs={"options": list(read.options)} if read.options else {},
        ),
        epoch=epoch,
        prediction=Prediction(
            outcome=line["outcome"],
            value=_value(line) if answered else None,
            reason=line.get("reason"),
            links=line["links"],
            trace={each: line.get(each) for each in _TRACE},
            meta=line.get("meta", {}),
        ),
    )


def _value(line: Mapping[str, Any]) -> Any:
    """The result of the chain: the value of its last link that has one."""
    said = link_values(line)
    last = next(reversed(said), None)
    return line["statement"].get("text") if last == "statement" else said.get(last or "")


def readings_page(
    part: RunPart,
    *,
    title: str,
    prompts: Mapping[str, str],
    pictures: Thumbnails | None = None,
    notes: Sequence[str] = (),
) -> str:
    """The page of single pictures.

    Args:
        part: from `part_of_readings`.
        title: of the page.
        prompts: texts of the prompt files, by name.
        pictures: thumbnails; None is none.
        notes: what else a reader should know.
    """
    browser = SampleBrowser(pictures=pictures or Thumbnails())
    browser.add([part], [(answer,) for answer in part.answers])
    rows = index_of([part], browser)
    return document(
        "readings.html",
        title=title,
        blocks=browser.blocks({**rows, "kind": "pictures", "opens": True, "many": "pictures", "without": _UNKEPT}),
        count=len(part.rows),
        answered=part.outcomes.get("answered", 0),
        outcomes=outcomes_of(part),
        facts=[*facts_of_pictures(part)],
        prompts=[
            PromptText(name=name, digest=digest, text=prompts.get(name)) for name, digest in digests_of_prompts(part)
        ],
        notes=(*notes, *browser.notes),
        pictures=_table(part),
    )


def _table(part: RunPart) -> Sortable:
    rows: list[list[Field]] = [
        [
            PageLink(text=row.id, to={"sample": row.id, "epoch": row.epoch}),
            row.outcome,
            row.said,
            (row.spent.input + row.spent.output, f"{row.spent.input + row.spent.output:,}"),
            (row.spent.seconds, f"{row.spent.seconds:,.1f}"),
        ]
        for row in part.rows
    ]
    heads = ("picture", "outcome", "says", "tokens", "seconds")
    return Sortable(heads=heads, rows=rows, caption="Every picture, and what was said of it in the end")


def write_readings(
    out: Path,
    read: Sequence[PictureReading],
    chain: Chain,
    *,
    name: str,
    records: Sequence[Records],
    notes: Sequence[str] = (),
) -> int:
    """Writes the page of pictures that a chain has read; an existing one is replaced.

    Args:
        out: the file.
        read: the readings, at least one; their pictures are shown where they lie.
        chain: that read them.
        name: of the chain.
        records: where the answers are; the first that has one is believed.
        notes: what else a reader should know.

    Returns:
        The size of the page in bytes.

    Raises:
        UsageError: `out` is a folder.
        StoreError: it cannot be written; a page that was there stays.
    """
    solver = ChainSolver(chain)
    configuration = {"task": f"askance run {name}", "chain": name, "solver": solver.form()}
    part = part_of_readings(read, configuration, records=MemoryStore(_selected(read, records)))
    pictures = Thumbnails.of([part], [each.file or Path(each.line["image"]) for each in read])
    title = f"{name} · {many(len(read), 'picture')}"
    return write_page(
        out, lambda _: readings_page(part, title=title, prompts=solver.prompts, pictures=pictures, notes=notes)
    )


def _selected(read: Sequence[PictureReading], records: Sequence[Records]) -> Iterator[Record]:
    """The records that the readings rest on."""
    keys = {str(key) for each in read for link in each.line["links"].values() for key in link["calls"]}
    for several in records:
        found = [*select(several, keys=keys)]
        keys.difference_update(record.key for record in found)
        yield from found
