"""`askance compare`: runs of a task on the same samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from askance.amounts import many, shortened
from askance.cli.columns import Columns, Part, Report
from askance.cli.completion import figure_names
from askance.cli.options import AsJson, CaptionOption, ConventionOption, DigitsOption, LabelOption, TaskPlace, layout_of
from askance.cli.report import (
    BesideOption,
    ImagesOption,
    MegabytesOption,
    NoImagesOption,
    pictures_of,
    print_page,
    warn_of_many,
)
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.chat import Json
    from askance.evals.analysis.compare import MetricComparison, RunsComparison
    from askance.evals.analysis.configuration import DifferenceRow

SHOWN = 20
"""Differences of configuration, or pictures, that are listed at most."""
SHORT = 24
"""Characters of what a link says that are shown with its name."""


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="Folder of a run, that the others are held against.")],
    others: Annotated[list[Path], typer.Argument(metavar="B...", help="Folders of other runs of the same task.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="What is compared; may be repeated. By default the task's own figure, and the others as exploratory.",
            autocompletion=figure_names,
        ),
    ] = None,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Compare every two of the runs, not only A with each other one.")
    ] = False,
    convention: ConventionOption = None,
    seed: Annotated[int, typer.Option(help="Of the resampling.")] = 0,
    task: TaskPlace = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write a page: the runs side by side, sample by sample.")
    ] = None,
    images: ImagesOption = None,
    no_images: NoImagesOption = False,
    images_mb: MegabytesOption = 24.0,
    beside: BesideOption = False,
    form: Annotated[
        Literal["markdown", "latex", "html"] | None,
        typer.Option("--format", help="Print a table of all figures, and no sentences."),
    ] = None,
    digits: DigitsOption = None,
    caption: CaptionOption = "",
    label: LabelOption = "",
    as_json: AsJson = False,
) -> None:
    """Say whether A is better or worse than B, or tied at this size, sample by sample; and so of several runs.

    Runs of `askance run --out` have no scores: of these it says picture by picture which links answer otherwise.

    Only samples that all runs have are compared. Where several figures that were named or several runs are compared, p
    is adjusted for all of them by Holm's method; figures that nobody named are exploratory, but for the task's own.
    """
    from askance.evals.analysis.compare import compare as held_against
    from askance.evals.analysis.marked_table import table_of_comparison
    from askance.evals.run import Run
    from askance.evals.tables import rendered

    if images and html is None:
        raise UsageError("`--images` is for a page, and none is asked for.", hint="Add `--html page.html`.")
    if form is not None and as_json:
        raise UsageError("`--json` and `--format` are different forms.", hint="Give one of them.")
    layout = layout_of(form or "", digits=digits, caption=caption, label=label)
    comparison = held_against(
        *(Run.open(folder) for folder in (first, *others)),
        metric=metric,
        pairs="all" if all_pairs else "first",
        task=task,
        convention=convention,
        seed=seed,
    )
    if html is not None:
        places = None if no_images else images or []
        _write_page(html, comparison, places, megabytes=images_mb, beside=beside, quiet=as_json)
    if form is None:
        Report(comparison.form, lambda: comparison_parts(comparison)).print(as_json=as_json)
    else:
        echo(rendered(table_of_comparison(comparison, digits=digits), form, layout), end="")


def _write_page(
    out: Path, comparison: RunsComparison, images: list[Path] | None, *, megabytes: float, beside: bool, quiet: bool
) -> None:
    """The page of runs that were compared."""
    from askance.evals.report import build_comparison, comparison_page
    from askance.evals.report.html import write_page

    difference = build_comparison(comparison)
    warn_of_many(difference.parts)
    pictures = pictures_of(difference.parts, images, megabytes=megabytes)
    size = write_page(
        out,
        lambda files: comparison_page(difference, pictures=pictures, files=files),
        beside=pictures.jpegs if beside and pictures is not None else None,
    )
    if not quiet:
        print_page(out, size, pictures)


def comparison_parts(comparison: RunsComparison) -> Iterator[Part]:
    """A comparison in words: two runs in sentences, more of them in a table."""
    if comparison.of_pictures:
        yield from _of_pictures(comparison)
    else:
        yield from _of_two(comparison) if len(comparison.runs) == 2 else _of_several(comparison)
        yield from _of_looking(comparison)
    yield from _differing(comparison)


def _of_two(comparison: RunsComparison) -> Iterator[str]:
    one, other = comparison.names
    common = comparison.common
    yield from (each.sentence for each in comparison.metrics)
    yield from comparison.ways_out
    yield ""
    decided = (each for each in comparison.metrics if each.verdict != "undecided")
    first = next((each for each in decided if each.by_sample is not None), None)
    if first is not None and first.by_sample is not None:
        better, worse, tied = first.by_sample
        yield f"By {first.metric}: {one} better on {many(better, 'sample')}, {other} on {worse:,}, as good on {tied:,}."
    if comparison.categories is not None:
        yield comparison.categories.sentence
    yield (
        f"{many(len(common.rows), 'sample')} in both, {common.alone[0]:,} in the first alone, "
        f"{common.alone[1]:,} in "
        f"the second alone; {common.by_all:,} answered by both, {common.answered[0] - common.by_all:,} by the "
        f"first alone, {common.answered[1] - common.by_all:,} by the second alone."
    )
    if common.unlike:
        yield f"{common.unlike:,} of them were not asked the same: another image, options or target."


def _of_several(comparison: RunsComparison) -> Iterator[Part]:
    from askance.evals.analysis.compare import counts_of, letter, notes_of_tests

    for place, name in enumerate(comparison.names):
        yield f"{letter(place)}  {name}"
    yield ""
    yield _table(comparison.metrics)
    yield ""
    yield from (f"· {note}." for note in (*counts_of(comparison), *notes_of_tests(comparison)))
    yield from (f"· {each.sentence}" for each in comparison.metrics if each.verdict == "undecided")
    yield from (f"· {way}" for way in comparison.ways_out)


def _of_looking(comparison: RunsComparison) -> Iterator[str]:
    """What looking with tools changes, and how it compares at equal dollars; nothing where no run looks."""
    for each in comparison.gains:
        yield from each.sentences()
    curve = comparison.cost_curve if any(comparison.looking) else None
    if curve is not None:
        yield from (each.sentence(curve.metric) for each in curve.verdicts)


def _of_pictures(comparison: RunsComparison) -> Iterator[Part]:
    """Runs over pictures: how often their links say the same, and which pictures differ at which links."""
    from askance.evals.analysis.compare import counts_of, letter, link_head, link_line

    for place, name in enumerate(comparison.names):
        yield f"{letter(place)}  {name}"
    yield ""
    rows = _plain([link_head(comparison), *(link_line(comparison, each) for each in comparison.links)])
    yield Columns(rows, keys=1 if len(comparison.runs) == 2 else 2)
    yield ""
    yield from (f"· {note}." for note in counts_of(comparison))
    yield from _differing_pictures(comparison)


def _differing_pictures(comparison: RunsComparison) -> Iterator[str]:
    """The pictures of which not all runs say the same, each with the links that differ."""
    if not comparison.differing:
        yield "Every link says the same of every picture."
        return
    yield f"{many(len(comparison.differing), 'picture is', 'pictures are')} not answered alike by every link:"
    for row, answers in comparison.differing[:SHOWN]:
        links = ", ".join(_otherwise(name, values) for name, values in answers.items())
        yield f"  {row[0].sample.id}: {links}"
    if len(comparison.differing) > SHOWN:
        yield f"  … and {len(comparison.differing) - SHOWN:,} more; `--json` has them all, with what was said"


def _otherwise(name: str, values: Sequence[Json]) -> str:
    """A link at which runs differ, with what it says where that is short."""
    from askance.chains.link import link_named

    link = link_named(name)
    shown = ["–" if value is None else link.show(value) for value in values]
    return link.heading if max(map(len, shown)) > SHORT else f"{link.heading} {' → '.join(shown)}"


def _table(metrics: Sequence[MetricComparison]) -> Columns:
    from askance.evals.analysis.compare import HEAD, line_of

    return Columns(_plain([HEAD, *map(line_of, metrics)]), keys=2)


def _plain(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[cell.replace("\u00a0", " ") for cell in line] for line in lines]


def _differing(comparison: RunsComparison) -> Iterator[str]:
    rows = comparison.difference_rows
    if not rows:
        yield f"The {'two' if len(comparison.runs) == 2 else 'runs'} are of one configuration."
        return
    yield "What differs:" if len(comparison.runs) == 2 else "What differs, from A on:"
    for each in rows[:SHOWN]:
        if each.changes:
            yield from _changed(each)
        else:
            yield f"  {each.place}: {' → '.join(shortened(value, 60) for value in each.values)}"
    if len(rows) > SHOWN:
        yield f"  … and {len(rows) - SHOWN:,} more; `--json` has them all"


def _changed(each: DifferenceRow) -> Iterator[str]:
    """The words of a prompt that changed."""
    from askance.evals.analysis.compare import letter
    from askance.prompts.word_diff import marked

    yield f"  {each.place}:"
    several = len(each.changes) > 2
    for place, stretches in enumerate(each.changes):
        if stretches:
            yield f"    {f'{letter(place)}  ' if several else ''}{marked(stretches)}"
