"""The report of runs: a value made from their folders, and one HTML file made from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.errors import UsageError
from askance.evals.analysis.blame import NONE as UNBLAMED
from askance.evals.analysis.blame import LinkBlame
from askance.evals.analysis.compare import letter
from askance.evals.analysis.configuration import difference_rows
from askance.evals.report.blame_part import UNEXPLAINED, blames_of, called, check_blames, short
from askance.evals.report.card_page import judge_views, judges_table
from askance.evals.report.elements import (
    SHARES,
    Dot,
    Doubles,
    Field,
    PageLink,
    Sortable,
    estimate_fields,
    interval_text,
)
from askance.evals.report.html import document
from askance.evals.report.run_part import RunPart, by_task, part_of
from askance.evals.report.run_plots import plots_of_runs
from askance.evals.report.samples import SampleBrowser, index_of
from askance.evals.report.summary import FigureTables, published_table, runs_table, summary_of, tables_of_runs
from askance.evals.report.thumbnails import Thumbnails
from askance.evals.run_tables import names_of, table_of_runs
from askance.evals.tables import NONE, Table, shown_value

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.analysis.trial import Place
    from askance.evals.metric import Figure
    from askance.evals.report.blame_part import BlamePart, Culprits, RunBlames
    from askance.evals.report.published_part import PublishedBeside
    from askance.evals.run import Run

UNFOLDED = 12
"""Longest list of wrong answers that is open; a longer one has to be unfolded."""
MOST_ANSWERS = 1000
"""Most wrong answers, or pictures, that are listed; the browser of samples has the others."""
_UNKEPT = "There is no record of this call: it had no answer, or the record was taken out."


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What a page about runs shows, without pictures and the texts of calls."""

    title: str
    runs: tuple[RunPart, ...]
    table: Table
    notes: tuple[str, ...] = ()
    """What else a reader should know."""

    @property
    def of_pictures(self) -> bool:
        """Whether all runs are of single pictures."""
        return all(part.run.of_pictures for part in self.runs)

    def form(self) -> JsonObject:
        """The report as JSON."""
        return {"title": self.title, "table": self.table.form(), "runs": [run.form() for run in self.runs]}


def build_report(
    runs: Sequence[Run], *, title: str | None = None, blames: Sequence[Path] = (), notes: Sequence[str] = ()
) -> RunReport:
    """The report of `runs`, finished or not, from their folders alone: it takes no model, no data and no network.

    Args:
        runs: with what their folders hold of their blame.
        title: by default the tasks, or of a run over pictures its chain and their number.
        blames: folders of further blames, as `askance blame --out` makes them.
        notes: what else a reader should know.

    Raises:
        UsageError: there is no run, a folder holds lines that are none, or no blame of any of the runs.
        CassetteError: the records of a run cannot be read.
    """
    if not runs:
        raise UsageError("A report is of at least one run.", hint="Name the folder of a run.")
    names = names_of(runs)
    check_blames(runs, blames)
    parts = tuple(
        part_of(run, name=name, blames=blames_of(run, blames) if run.kept else None)
        for run, name in zip(runs, names, strict=True)
    )
    return RunReport(title=title or _title(runs), runs=parts, table=table_of_runs(runs), notes=tuple(notes))


def _title(runs: Sequence[Run]) -> str:
    tasks = " · ".join(dict.fromkeys(run.task for run in runs))
    alone = runs[0] if len(runs) == 1 and runs[0].of_pictures else None
    return tasks if alone is None else f"{tasks} · {many(len(alone.answers), alone.noun)}"


# --- the page ---


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFollowing:
    """What makes a page follow a run that goes on."""

    lines: Sequence[str]
    """Where the run stands."""
    seconds: float | None
    """After how long a browser reads the page again; None is never."""


def report_page(
    report: RunReport,
    *,
    pictures: Thumbnails | None = None,
    files: Sequence[str] | None = None,
    following: PageFollowing | None = None,
) -> str:
    """The page of a report; equal reports give equal pages.

    Args:
        report: of one or several runs.
        pictures: thumbnails; None is none.
        files: addresses of the thumbnails where they lie beside the page, in their order.
        following: of a run that goes on; None is of one that does not.
    """
    browser = SampleBrowser(pictures=pictures or Thumbnails(), files=files)
    for part in report.runs:
        browser.add([part], [(answer,) for answer in part.answers])
    noun = "picture" if report.of_pictures else "sample"
    index = {**index_of(report.runs, browser), "kind": "report", "many": f"{noun}s"}
    index["opens"] = report.of_pictures and len(report.runs) == 1 and following is None
    if not all(part.run.kept for part in report.runs):
        index["without"] = _UNKEPT
    if following is not None and following.seconds is not None:
        index["follows"] = following.seconds
    judges = [note for part in report.runs for note in part.judges]
    return document(
        "report.html",
        title=report.title,
        blocks=browser.blocks(index),
        count=sum(len(part.rows) for part in report.runs),
        beside=files is not None,
        following=following,
        summaries=[summary_of(part) for part in report.runs],
        runs_table=runs_table(report.runs),
        letters=[(letter(place), part.name) for place, part in enumerate(report.runs)],
        differences=difference_rows([part.run for part in report.runs]) if len(report.runs) > 1 else [],
        notes=(*report.notes, *browser.notes, *_left_out_tags(report)),
        noun=noun,
        pictures=[*_pictures(report)],
        tasks=[*_figures(report)],
        published=[*_published(report)],
        plots=[*plots_of_runs(report.runs)],
        blames=blame_views(report.runs),
        blame_tables=[*blame_tables(report.runs)],
        judges=judge_views(judges),
        judges_table=judges_table(judges),
    )


def _left_out_tags(report: RunReport) -> Iterator[str]:
    """Which tags are left out of the plots and of the filters of all runs, and why."""
    drawn = {each.name for part in report.runs for each in part.breakdowns}
    names = dict.fromkeys(name for part in report.runs for name in part.left_out if name not in drawn)
    for name in names:
        values = max(part.left_out.get(name, 0) for part in report.runs)
        what = "labels" if name == "label" else f"values of the tag {name!r}"
        yield f"The {values:,} {what} are too many to be drawn or to be filters. The search finds them."


def _pictures(report: RunReport) -> Iterator[tuple[str, Sortable]]:
    """The pictures of each run over pictures, and what was said of them in the end."""
    for number, part in enumerate(report.runs):
        if part.run.of_pictures:
            yield part.name if len(report.runs) > 1 else "", _picture_table(number, part)


def _picture_table(number: int, part: RunPart) -> Sortable:
    rows: list[list[Field]] = [
        [
            PageLink(text=row.id, to={"sample": row.id, "epoch": row.epoch, "run": number}),
            row.outcome,
            row.said,
            row.spent.input + row.spent.output,
            (row.spent.seconds, f"{row.spent.seconds:,.1f}"),
        ]
        for row in part.rows[:MOST_ANSWERS]
    ]
    more = f"; the first {MOST_ANSWERS:,} of {len(part.rows):,}" if len(part.rows) > MOST_ANSWERS else ""
    return Sortable(
        heads=("picture", "outcome", "says", "tokens", "seconds"),
        rows=rows,
        caption=f"Every picture, and what was said of it in the end{more}",
    )


def _figures(report: RunReport) -> Iterator[tuple[str, FigureTables]]:
    """The figures of the runs of each task, named where there are several."""
    tasks = by_task(report.runs)
    for task, parts in tasks.items():
        if all(part.run.of_pictures for part in parts):
            continue
        tables = tables_of_runs(parts)
        if tables.tables or len(tasks) > 1:
            yield task if len(tasks) > 1 else "", tables


def _published(report: RunReport) -> Iterator[tuple[PublishedBeside, Sortable]]:
    together: dict[PublishedBeside, list[RunPart]] = {}
    for part in report.runs:
        for beside in part.beside:
            together.setdefault(beside, []).append(part)
    for beside, parts in together.items():
        yield beside, published_table(beside, parts)


# --- blame on the page ---


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameView:
    """One blame of a run, as the page shows it."""

    blame: BlamePart
    heading: bool
    """Whether it is one of several of its run."""
    table: Sortable | None
    """A row a link; None where no link was tried."""
    plot: Doubles
    answers: Sortable
    """The wrong answers one by one, each leading to its sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBlameView:
    """The blames of one run, as the page shows them."""

    name: str
    """Of the run; empty where it is the only one."""
    parts: tuple[BlameView, ...]
    notes: tuple[str, ...]


def blame_views(parts: Sequence[RunPart]) -> list[RunBlameView]:
    """The runs that were blamed, each with its blames."""
    return [
        RunBlameView(
            name="" if len(parts) == 1 else part.name,
            parts=tuple(_blame_view(number, part, each, of=part.blames) for each in part.blames.parts),
            notes=part.blames.notes,
        )
        for number, part in enumerate(parts)
        if part.blames is not None
    ]


def blame_tables(parts: Sequence[RunPart]) -> Iterator[Sortable]:
    """Of several runs, the share of wrong answers that each link is to blame for, by what was done to links."""
    by_words: dict[str, list[tuple[str, BlamePart]]] = {}
    for part in parts:
        for blame in part.blames.parts if part.blames else ():
            by_words.setdefault(blame.words, []).append((part.name, blame))
    for words, several in by_words.items():
        if len(several) > 1:
            sums = [{each.link: each for each in blame.sums} for _, blame in several]
            links = dict.fromkeys(link for each in sums for link in each)
            yield Sortable(
                heads=("link", *(name for name, _ in several)),
                rows=[[called(link), *(_cell(each.get(link)) for each in sums)] for link in links],
                caption=f"To blame, in % of the wrong answers that a link was tried on; each link {words}",
            )


def _cell(blamed: LinkBlame | None) -> Field:
    if blamed is None:
        return None, NONE
    interval = interval_text(blamed.guilty.interval, percent=blamed.guilty.percent)
    return blamed.guilty.value, f"{shown_value(blamed.guilty.value, percent=True)} [{interval}]"


def _blame_view(number: int, part: RunPart, blame: BlamePart, *, of: RunBlames) -> BlameView:
    rows = [_link_row(number, blame, each, of=of) for each in blame.sums]
    return BlameView(
        blame=blame,
        heading=len(of.parts) > 1,
        table=Sortable(heads=_HEADS, rows=rows, caption=_CAPTION) if rows else None,
        plot=Doubles(
            title="Share of wrong answers",
            rows=[(_dot(each, each.flips), _dot(each, each.guilty)) for each in blame.sums],
            scale=SHARES,
            heads=("link", "flips, %", "to blame, %"),
        ),
        answers=_wrong_answers(number, part, blame),
    )


_HEADS = ("link", "tried", "flips", "%", "95 % interval", "to blame", "%", "95 % interval", "change")
_CAPTION = "By link: on how many wrong answers it was tried, how many it flips, and for how many it is to blame"


def _link_row(number: int, blame: BlamePart, each: LinkBlame, *, of: RunBlames) -> list[Field]:
    tried = [culprits for culprits in blame.answers.values() if culprits.tried]
    flips = Counter(link for culprits in tried for link in culprits.flips or (UNBLAMED,))
    guilty = Counter(link for culprits in tried for link in culprits.guilty or (UNBLAMED,))
    name = UNEXPLAINED if each.link == UNBLAMED else short(each.link)
    link = PageLink(text=called(each.link), to={"blame": of.filter(blame, name), "run": number})
    return [
        link if guilty[each.link] else link.text,
        each.flips.samples,
        flips[each.link],
        *estimate_fields(each.flips.value, each.flips.interval, percent=True),
        guilty[each.link],
        *estimate_fields(each.guilty.value, each.guilty.interval, percent=True),
        (each.change.value, _change(each.change)),
    ]


def _change(figure: Figure) -> str:
    if figure.value is None:
        return NONE
    return (f"{100 * figure.value:+.2f}" if figure.percent else f"{figure.value:+.3f}").replace("-", "−")


def _dot(each: LinkBlame, figure: Figure) -> Dot:
    return Dot(name=called(each.link), value=figure.value, interval=figure.interval)


def _wrong_answers(number: int, part: RunPart, blame: BlamePart) -> Sortable:
    places = {(row.id, row.epoch) for row in part.rows}
    rows = [
        _wrong_answer(number, place, each) for place, each in blame.answers.items() if place in places and each.tried
    ]
    more = f"; the first {MOST_ANSWERS:,} of them" if len(rows) > MOST_ANSWERS else ""
    return Sortable(
        heads=("wrong answer", "to blame", "flipped by too"),
        rows=rows[:MOST_ANSWERS],
        caption="Wrong answers one by one",
        summary=f"The {len(rows):,} wrong answers one by one{more}" if len(rows) > UNFOLDED else "",
    )


def _wrong_answer(number: int, place: Place, each: Culprits) -> list[Field]:
    name, epoch = place
    also = [short(other) for other in each.flips if other not in each.guilty]
    link = PageLink(
        text=name, to={"sample": name, "epoch": epoch, "run": number}, note=f" · epoch {epoch}" if epoch else ""
    )
    return [link, ", ".join(each.names), ", ".join(also)]
