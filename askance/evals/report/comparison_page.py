"""Runs side by side as one HTML file, with the look of a report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from askance.evals.report import plots, sections, tabled, verdicts
from askance.evals.report.comparison import CHANGES, ChangeRow, Difference
from askance.evals.report.details import Texts, calls_of, detail_of
from askance.evals.report.embedding import BLOCK, WITHOUT, Room, Shown, texts_block
from askance.evals.report.markup import Markup, data_block, element, joined
from askance.evals.report.pictures import Pictures
from askance.evals.report.shell import document
from askance.evals.reports import notes_of, table_of_runs
from askance.evals.tables import NONE
from askance.evals.verdicts import counts_of, letter, pair_of

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.matching import Differing

_LONGEST = 400
"""Characters of a value in the table of what differs."""
_SIDE_BY_SIDE = 4
"""Runs up to which each has a column of figures; more of them have a row each."""


def difference_page(
    difference: Difference, *, pictures: Pictures | None = None, files: Sequence[str] | None = None
) -> str:
    """The page of runs that were compared; equal runs give equal pages.

    Args:
        difference: what they say of each other.
        pictures: thumbnails; None is none.
        files: addresses of the thumbnails where they lie beside the page, in their order.
    """
    shown = Shown(pictures=pictures or Pictures(), files=files)
    texts, room = Texts(difference.parts), Room()
    details = list(_details(difference, texts, room))
    index = {**_index(difference, shown), **({"without": WITHOUT} if room.refused else {})}
    data = joined((data_block("index", index), texts_block(texts), *details, *shown.blocks()))
    first, *others = difference.names
    return document(
        title=f"{first} against {' and '.join(others)}",
        what="comparison",
        count=len(difference.rows),
        content=joined(_content(difference, (*shown.pictures.notes, *room.notes))),
        data=data,
        beside=files is not None,
    )


def _index(difference: Difference, shown: Shown) -> JsonObject:
    return {
        "kind": "pair",
        "names": list(difference.names),
        "letters": [letter(place) for place in range(len(difference.parts))],
        "share": all(part.share for part in difference.parts),
        "rows": [_row(row, shown) for row in difference.rows],
        "runs": [],
        "block": BLOCK,
        "words": {},
        "sorts": ["order", "worst", "best"],
        **shown.settings(),
    }


def _row(row: ChangeRow, shown: Shown) -> JsonObject:
    """What the script makes the rows of any two runs from."""
    first = row.rows[0]
    return {
        "id": first.id,
        "epoch": first.epoch,
        "outcomes": [each.outcome for each in row.rows],
        "worths": [each.worth for each in row.rows],
        "said": [each.said for each in row.rows],
        "answers": list(row.answers),
        "asked": list(row.asked),
        "kinds": [list(each.kinds) for each in row.rows],
        "marks": list(first.marks),
        "picture": shown.numbers.get(first.picture or ""),
    }


def _details(difference: Difference, texts: Texts, room: Room) -> Iterator[Markup]:
    rows = difference.comparison.matching.rows
    for start in range(0, len(rows), BLOCK):
        details: list[JsonObject] = []
        calls: dict[str, Any] = {}
        for row in rows[start : start + BLOCK]:
            details.append({"sides": [detail_of(answer) for answer in row]})
            for part, answer in zip(difference.parts, row, strict=True):
                new = {key: form for key, form in calls_of(part, answer, texts).items() if key not in calls}
                if room.takes(new):
                    calls.update(new)
        yield data_block(f"d-0-{start // BLOCK}", {"details": details, "calls": calls})


def _content(difference: Difference, notes: Sequence[str]) -> Iterator[Markup | None]:
    yield verdicts.legend(difference.comparison)
    yield _lead(difference)
    yield sections.section("verdicts", "What the samples say", *verdicts.content(difference.comparison))
    yield sections.section("configuration", "What differs in the configuration", _configuration(difference))
    runs = [part.run for part in difference.parts]
    side_by_side = len(runs) <= _SIDE_BY_SIDE
    table = tabled.side_by_side(difference.parts) if side_by_side else tabled.runs_table(table_of_runs(runs))
    listed = tabled.listed(notes_of(runs)) if side_by_side else None
    yield sections.section("figures", "Figures", table, listed)
    articles = (sections.summary(part, alone=False) for part in difference.parts)
    yield sections.section("runs", "The two runs" if len(runs) == 2 else f"The {len(runs)} runs", *articles)
    if notes:
        yield tabled.listed(notes)


def _lead(difference: Difference) -> Markup:
    """The verdicts by the first figure, and how many samples changed."""
    headline = verdicts.headline(difference.comparison)
    changed = element(
        "div", _changed(difference), tabled.listed([*counts_of(difference.comparison)]), class_="outcomes"
    )
    return element("div", headline, changed, class_="lead even")


def _changed(difference: Difference) -> Markup:
    changes = difference.changes()
    if len(changes) == 1:
        (((a, b), counts),) = changes.items()
        words = words_of(a, b)
        bars = [(words[change], count) for change, count in counts.items()]
        return plots.bars("Samples by change", bars, heads=("change", "samples"))
    heads = ("runs", "first better", "second better", "other answer", "same answer")
    rows = [
        [pair_of(a, b), *((count, f"{count:,}") for count in counts.values())] for (a, b), counts in changes.items()
    ]
    changed = sum(row.changed for row in difference.rows)
    return element(
        "div",
        element("h2", "Samples by change"),
        tabled.sortable(heads, rows),
        element("p", f"{changed:,} of {len(difference.rows):,} samples are not answered alike by all.", class_="note"),
    )


def words_of(a: int, b: int) -> Mapping[str, str]:
    """What the changes between two runs are called."""
    return dict(
        zip(CHANGES, (f"{letter(a)} better", f"{letter(b)} better", "Other answer", "Same answer"), strict=True)
    )


def _configuration(difference: Difference) -> Markup:
    differing = difference.comparison.differences
    if not differing:
        return element("p", f"The {'two' if len(difference.parts) == 2 else 'runs'} are of one configuration.")
    head = ("place", *(letter(place) for place in range(len(difference.parts))))
    rows = (_differing(each) for each in differing)
    columns = element("thead", element("tr", *(element("th", name, scope="col") for name in head)))
    table = element("table", columns, element("tbody", *rows), class_="differences")
    return element("div", table, class_="wide", tabindex=0, role="group", aria_label="What differs")


def _differing(each: Differing) -> Markup:
    cells = (element("td", _value(value)) for value in each.values)
    return element("tr", element("th", each.place, scope="row"), *cells)


def _value(value: Any) -> str:
    if value is None:
        return NONE
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
