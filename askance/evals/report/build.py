"""From the folders of runs to a report: what is counted here is counted from the folders alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from askance.errors import UsageError
from askance.evals.report import reading
from askance.evals.report.blames import blames_of, check_blames
from askance.evals.report.breakdowns import breakdowns_of
from askance.evals.report.published import beside_of
from askance.evals.report.values import RESULTS, Report, Row, RunPart
from askance.evals.reports import names_of, table_of_runs
from askance.evals.run_folder import DESCRIPTION

if TYPE_CHECKING:
    from pathlib import Path

    from askance.evals.report.blames import Blames
    from askance.evals.run import Answer, Run

_FACTS = ("hash", "askance", "started", "finished")
_MOST_MARKS = 40
"""Values of a tag beyond which it tells samples apart rather than sorts them."""


def build_report(runs: Sequence[Run], *, title: str | None = None, blames: Sequence[Path] = ()) -> Report:
    """The report of `runs`, finished or not; of their folders alone, with no model, no data and no network.

    Args:
        runs: with what their folders hold of their blame.
        title: by default the tasks.
        blames: folders of further blames, as `askance blame --out` makes them.

    Raises:
        UsageError: there is no run, a folder holds lines that are none, or no blame of any of the runs.
        CassetteError: the records of a run cannot be read.
    """
    if not runs:
        raise UsageError("A report is of at least one run.", hint="Name the folder of a run.")
    names = names_of(runs)
    check_blames(runs, blames)
    parts = tuple(part_of(run, name=name, blames=blames_of(run, blames)) for run, name in zip(runs, names, strict=True))
    tasks = dict.fromkeys(run.task for run in runs)
    return Report(title=title or " · ".join(tasks), runs=parts, table=table_of_runs(runs))


def part_of(run: Run, *, name: str, blames: Blames | None = None) -> RunPart:
    """One run of a report.

    Args:
        run: finished or not.
        name: what it is called there.
        blames: what is known of who is to blame in it.

    Raises:
        UsageError: the folder holds lines that are none.
    """
    answers = run.answers
    column = reading.column_of(run, answers)
    share = _is_share(run, answers, column)
    common = _common_marks(answers)
    rows = tuple(row_of(answer, column, share=share, common=common) for answer in answers)
    kinds = Counter[str]()
    for answer in answers:
        kinds.update(reading.mistakes(answer))
    results = Counter(row.result for row in rows)
    return RunPart(
        run=run,
        name=name,
        facts=_facts(run),
        column=column,
        share=share,
        answers=answers,
        rows=rows,
        spent=reading.total([row.spent for row in rows]),
        outcomes=dict(sorted(Counter(row.outcome for row in rows).items())),
        results={result: results[result] for result in RESULTS if results[result]},
        kinds=dict(sorted(kinds.items(), key=lambda each: (-each[1], each[0]))),
        breakdowns=tuple(breakdowns_of(run, answers, column, common=common, share=share)),
        judges=tuple(_judges(answers)),
        beside=tuple(beside_of(run)),
        blames=blames if blames is not None and (blames.parts or blames.notes) else None,
    )


def row_of(
    answer: Answer, column: str | None = None, *, share: bool = False, common: frozenset[str] = frozenset()
) -> Row:
    """One answer at a glance.

    Args:
        answer: what is shown.
        column: the value of scores that stands for it.
        share: whether that is a share of what is right.
        common: names of tags to filter by.
    """
    worth = reading.worth_of(answer, column)
    marks = [f"{name}: {value}" for name, value in reading.marks_of(answer.sample) if name in common]
    image = answer.sample.image
    return Row(
        id=answer.sample.id,
        epoch=answer.epoch,
        outcome=answer.prediction.outcome,
        result=reading.result_of(answer, worth, share=share),
        worth=worth,
        said=reading.said_by(answer, reading.options_of(answer.sample)),
        kinds=tuple(reading.mistakes(answer)),
        marks=tuple(dict.fromkeys(marks)),
        picture=None if image is None else image.sha256,
        spent=reading.spent_on(answer),
    )


def _is_share(run: Run, answers: Sequence[Answer], column: str | None) -> bool:
    """Whether the value that stands for a sample goes from all wrong to all right."""
    figure = next((each for each in run.figures if each.metric == column), None)
    worths = [reading.worth_of(answer, column) for answer in answers]
    return (figure is None or figure.percent) and all(worth is None or 0 <= worth <= 1 for worth in worths)


def _common_marks(answers: Sequence[Answer]) -> frozenset[str]:
    """Names of tags that sort samples into few kinds."""
    values: dict[str, set[str]] = {}
    for answer in answers:
        for name, value in reading.marks_of(answer.sample):
            values.setdefault(name, set()).add(value)
    return frozenset(name for name, found in values.items() if len(found) <= _MOST_MARKS)


def _facts(run: Run) -> Mapping[str, str]:
    form: Mapping[str, Any] = json.loads((run.path / DESCRIPTION).read_text(encoding="utf-8"))
    return {name: str(form[name]) for name in _FACTS if form.get(name)}


def _judges(answers: Sequence[Answer]) -> Iterator[Mapping[str, Any]]:
    """What scores say of the judges that made them, each once."""
    seen: set[str] = set()
    for answer in answers:
        note: Any = None if answer.score is None else answer.score.notes.get("judge")
        written = json.dumps(note, sort_keys=True)
        if isinstance(note, dict) and written not in seen:
            seen.add(written)
            yield note
