"""The part of the page about blame: how often each link flips a wrong answer, and which link each answer came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.evals.blamed import NONE as UNBLAMED
from askance.evals.report import plots, tabled
from askance.evals.report.blames import UNEXPLAINED, short
from askance.evals.report.markup import Markup, address, element
from askance.evals.report.sections import section
from askance.evals.tables import NONE, shown_value

if TYPE_CHECKING:
    from askance.evals.blamed import Blamed
    from askance.evals.figures import Figure
    from askance.evals.report.blames import BlamePart, Culprits, Place
    from askance.evals.report.values import RunPart

LINKS: Mapping[str, str] = {
    "objects": "V · objects",
    "scene_text": "T · scene text",
    "narration": "IN · narration",
    "unusual": "UH · what is unusual",
    "description": "T_V · description",
    "statement": "ŝ · statement",
    UNBLAMED: UNEXPLAINED,
}
"""How links are called on the page."""

SHOWN = 12
"""Wrong answers that are listed at once; the others unfold."""
MOST = 1000
"""Wrong answers that are listed at all; the browser of samples has the others."""


def marks_of(part: RunPart) -> dict[Place, list[str]]:
    """By sample, what it can be filtered by: the links to blame, with what was done to them where that differs."""
    found: dict[Place, list[str]] = {}
    blames = () if part.blames is None else part.blames.parts
    for each in blames:
        for place, culprits in each.answers.items():
            found.setdefault(place, []).extend(_mark(each, name, of=len(blames)) for name in culprits.names)
    return found


def _mark(part: BlamePart, name: str, *, of: int) -> str:
    return name if of == 1 else f"{part.words}: {name}"


def blame_section(parts: Sequence[RunPart]) -> Markup | None:
    """The section, for the runs that were blamed; None where none was."""
    told = [(number, part) for number, part in enumerate(parts) if part.blames is not None]
    if not told:
        return None
    runs = (each for number, part in told for each in _of_run(number, part, alone=len(parts) == 1))
    note = tabled.listed([_NOTE]) if any(part.blames.parts for _, part in told if part.blames) else None
    return section("blame", "Blame", *_beside(told), *runs, note)


_NOTE = (
    "A link flips an answer if the answer is right with the link replaced. It is to blame if no link before it flips "
    "the answer as well. A flip is evidence, not proof."
)


def _beside(told: Sequence[tuple[int, RunPart]]) -> Iterator[Markup]:
    """Of several runs, the share of wrong answers that each link is to blame for, by what was done to links."""
    by_words: dict[str, list[tuple[str, BlamePart]]] = {}
    for _, part in told:
        for blame in part.blames.parts if part.blames else ():
            by_words.setdefault(blame.words, []).append((part.name, blame))
    for words, several in by_words.items():
        if len(several) > 1:
            sums = [{each.link: each for each in blame.sums} for _, blame in several]
            links = dict.fromkeys(link for each in sums for link in each)
            rows = [[LINKS.get(link, link), *(_cell(each.get(link)) for each in sums)] for link in links]
            caption = f"To blame, in % of the wrong answers that a link was tried on; each link {words}"
            yield tabled.sortable(("link", *(name for name, _ in several)), rows, caption=caption)


def _cell(blamed: Blamed | None) -> tuple[float | None, str]:
    if blamed is None:
        return None, NONE
    return blamed.guilty.value, f"{_share(blamed.guilty)} [{tabled.interval_text(blamed.guilty)}]"


def _of_run(number: int, part: RunPart, *, alone: bool) -> Iterator[Markup | None]:
    blames = part.blames
    if blames is None:
        return
    if not alone:
        yield element("h3", part.name)
    for each in blames.parts:
        yield element("div", *_of_blame(number, part, each), class_="blame")
    yield tabled.listed(blames.notes)


def _of_blame(number: int, part: RunPart, blame: BlamePart) -> Iterator[Markup | None]:
    right = blame.samples - blame.unanswered - blame.wrong
    yield element("h3" if part.blames and len(part.blames.parts) > 1 else "p", f"Each link {blame.words}", class_="how")
    yield element(
        "p",
        f"Of {many(blame.samples, 'answer')} {right:,} are right by {blame.metric}, {blame.wrong:,} wrong, and "
        f"{blame.unanswered:,} are missing. One link at a time was {blame.words} in each wrong one, and what follows "
        "from it asked again.",
        class_="soft wordy",
    )
    several = 0 if part.blames is None else len(part.blames.parts)
    if blame.sums:
        yield tabled.sortable(
            _HEADS, [_row(number, blame, each, several=several) for each in blame.sums], caption=_CAPTION
        )
        yield element("div", _drawn(blame), class_="plots")
        yield _listed(number, part, blame)
    yield tabled.listed(blame.notes)


_HEADS = ("link", "tried", "flips", "%", "95 % interval", "to blame", "%", "95 % interval", "change")
_CAPTION = "By link: on how many wrong answers it was tried, how many it flips, and for how many it is to blame"


def _row(number: int, blame: BlamePart, each: Blamed, *, several: int) -> list[str | tuple[float | None, str]]:
    tried = [culprits for culprits in blame.answers.values() if culprits.tried]
    flips = Counter(link for culprits in tried for link in culprits.flips or (UNBLAMED,))
    guilty = Counter(link for culprits in tried for link in culprits.guilty or (UNBLAMED,))
    name = UNEXPLAINED if each.link == UNBLAMED else short(each.link)
    mark = _mark(blame, name, of=several)
    link = element("a", LINKS.get(each.link, each.link), href=address(blame=mark, run=number))
    return [
        link if guilty[each.link] else LINKS.get(each.link, each.link),
        (each.flips.samples, f"{each.flips.samples:,}"),
        *_figured(flips[each.link], each.flips),
        *_figured(guilty[each.link], each.guilty),
        (each.change.value, _change(each.change)),
    ]


def _figured(count: int, figure: Figure) -> Iterator[tuple[float | None, str]]:
    yield count, f"{count:,}"
    yield figure.value, _share(figure)
    yield None if figure.interval is None else figure.interval.low, tabled.interval_text(figure)


def _share(figure: Figure) -> str:
    return shown_value(figure.value, percent=True)


def _change(figure: Figure) -> str:
    if figure.value is None:
        return NONE
    return (f"{100 * figure.value:+.2f}" if figure.percent else f"{figure.value:+.3f}").replace("-", "−")


def _drawn(blame: BlamePart) -> Markup:
    rows = [(_dot(each, each.flips), _dot(each, each.guilty)) for each in blame.sums]
    return plots.doubles("Share of wrong answers", rows, plots.SHARES, heads=("link", "flips, %", "to blame, %"))


def _dot(each: Blamed, figure: Figure) -> plots.Dot:
    name = LINKS.get(each.link, each.link)
    return plots.Dot(name=name, value=figure.value, interval=figure.interval, count=f"{figure.samples:,}")


def _listed(number: int, part: RunPart, blame: BlamePart) -> Markup | None:
    """The wrong answers one by one, each leading to its sample."""
    there = {(row.id, row.epoch) for row in part.rows}
    rows = [_answer(number, place, each) for place, each in blame.answers.items() if place in there and each.tried]
    heads, caption = ("wrong answer", "to blame", "flipped by too"), "Wrong answers one by one"
    if len(rows) <= SHOWN:
        return tabled.sortable(heads, rows, caption=caption)
    more = f"; the first {MOST:,} of them" if len(rows) > MOST else ""
    return element(
        "details",
        element("summary", f"The {len(rows):,} wrong answers one by one{more}"),
        tabled.sortable(heads, rows[:MOST], caption=caption),
    )


def _answer(number: int, place: Place, each: Culprits) -> list[str | tuple[float | None, str]]:
    name, epoch = place
    link = element("a", name, href=address(sample=name, epoch=epoch, run=number))
    also = [short(other) for other in each.flips if other not in each.guilty]
    shown = element("span", link, element("span", f" · epoch {epoch}", class_="soft")) if epoch else link
    return [shown, ", ".join(each.names), ", ".join(also)]
