"""Blame on the page: what the folders hold of it, which link each wrong answer came from, and what each trial led to.

Nothing is asked and nothing scored anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.amounts import many
from askance.atypicality import Statement
from askance.chains.line import said_in
from askance.chains.state import link_named
from askance.errors import UsageError
from askance.evals.blame_files import LINES, SUMMARY, Kept, mark_of, read_lines, read_summary
from askance.evals.blamed import NONE as UNBLAMED
from askance.evals.blamed import Blamed, Place
from askance.evals.report.plots import SHARES, Dot, Doubles
from askance.evals.report.row import options_of, places_in, plain
from askance.evals.report.tables import Field, Link, Sortable, interval_field, interval_text
from askance.evals.tables import NONE, shown_value

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.figures import Figure
    from askance.evals.report.report import RunPart
    from askance.evals.run import Answer, Run

UNEXPLAINED = "no single link"
"""What a wrong answer is laid at that no link alone flips."""

SHOWN = 12
"""Wrong answers that are listed at once; the others unfold."""
MOST = 1000
"""Wrong answers that are listed at all; the browser of samples has the others."""

_LONGEST = 4000
"""Characters of a text that stood in a link's place, or that followed from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprits:
    """What was tried on one wrong answer."""

    worth: float
    """What the answer is worth as it was."""
    tried: Mapping[str, float | None]
    """By link, what the answer became worth with another value in its place; None where it had none then."""
    flips: tuple[str, ...]
    guilty: tuple[str, ...]
    unmoved: bool = False
    """Whether all links had already what would have been put in their places."""

    @property
    def names(self) -> tuple[str, ...]:
        """Short names of the links to blame, or that there is none."""
        return tuple(short(link) for link in self.guilty) or ((UNEXPLAINED,) if self.tried or self.unmoved else ())


@dataclass(frozen=True, kw_only=True)
class BlamePart:
    """One blame of a run: what was put in the links' places, and what that came to."""

    how: str
    words: str
    """What was done to a link, for a sentence: `dropped`."""
    metric: str
    samples: int
    unanswered: int
    wrong: int
    left: int
    """Trials that the budget had nothing left for."""
    sums: tuple[Blamed, ...]
    answers: Mapping[Place, Culprits]
    trials: Mapping[Place, Mapping[str, JsonObject]] = field(default_factory=dict[Any, Any])
    """By wrong answer and link, the line of `blame.jsonl`."""
    notes: tuple[str, ...] = ()

    def form(self) -> JsonObject:
        """The blame as JSON."""
        return {
            "how": self.how,
            "words": self.words,
            "metric": self.metric,
            "samples": self.samples,
            "unanswered": self.unanswered,
            "wrong": self.wrong,
            "left": self.left,
            "links": [each.form() for each in self.sums],
            "answers": [
                {"id": place[0], "epoch": place[1], "flips": list(each.flips), "guilty": list(each.guilty)}
                for place, each in self.answers.items()
            ],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Blames:
    """What is known of who is to blame in one run."""

    parts: tuple[BlamePart, ...] = ()
    notes: tuple[str, ...] = ()
    """Why what lies there is not shown."""


def short(link: str) -> str:
    """What the paper calls a link; `none` and what is no link as it is."""
    return link_named(link).short


def called(link: str) -> str:
    """How a link is called on the page."""
    return UNEXPLAINED if link == UNBLAMED else link_named(link).title


def blames_of(run: Run, folders: Sequence[Path] = ()) -> Blames:
    """The blames in the folder of `run`, and those of it in other folders.

    Args:
        run: whose blames they are.
        folders: where `askance blame --out` has put others; what is there of other runs is passed over.
    """
    parts: dict[str, BlamePart] = {}
    notes: list[str] = []
    for folder in (run.path, *folders):
        found = _in(folder, run, own=folder == run.path)
        parts.update((part.how, part) for part in found.parts)
        notes += found.notes
    return Blames(parts=tuple(parts.values()), notes=tuple(notes))


def check_blames(runs: Sequence[Run], folders: Sequence[Path]) -> None:
    """Refuses folders that hold no blame of any of `runs`.

    Raises:
        UsageError: one does not.
    """
    if not folders:
        return
    marks = {mark_of(run) for run in runs}
    for folder in folders:
        kept = read_summary(folder)
        if not kept.readable or not marks.intersection(kept.runs.values()):
            hint = "Name a folder that `askance blame RUN --out` has made of the run as it is now."
            raise UsageError(f"The folder {str(folder)!r} holds no blame of what the report is of.", hint=hint)


def _in(folder: Path, run: Run, *, own: bool) -> Blames:
    kept = read_summary(folder)
    lines = _lines(folder)
    if not kept.forms and not lines and kept.readable:
        return Blames()
    if not kept.readable:
        return Blames(notes=(f"Blame: {SUMMARY} is of another version or broken; `askance blame` makes it anew.",))
    parts, notes = _parts(kept, lines, run, own=own)
    begun = [how for how in lines if how not in kept.forms] if own else []
    if begun:
        count = sum(len(trials) for how in begun for trials in lines[how].values())
        notes.append(
            f"Blame: {many(count, 'trial was', 'trials were')} made and not summed up; the same "
            "`askance blame` goes on with them."
        )
    return Blames(parts=tuple(parts), notes=tuple(notes))


def _parts(kept: Kept, lines: _Lines, run: Run, *, own: bool) -> tuple[list[BlamePart], list[str]]:
    mark, parts, notes = mark_of(run), list[BlamePart](), list[str]()
    for how, form in kept.forms.items():
        if kept.runs.get(how) != mark:
            if own:
                notes.append(
                    f"Blame ({how}): it is of another run, or of this one before it was answered or scored anew. "
                    "The same `askance blame` makes what has changed anew."
                )
            continue
        try:
            parts.append(_part(form, lines.get(how, {})))
        except (KeyError, TypeError, ValueError, AttributeError):
            notes.append(f"Blame ({how}): what {SUMMARY} says of it cannot be read; `askance blame` makes it anew.")
    return parts, notes


_Lines = dict[str, dict[Place, dict[str, "JsonObject"]]]
"""Lines of trials by what was put in the place, by sample, by link."""


def _lines(folder: Path) -> _Lines:
    found: _Lines = {}
    for line in read_lines(folder / LINES):
        place = (str(line["id"]), line["epoch"] if isinstance(line["epoch"], int) else 0)
        found.setdefault(str(line["how"]), {}).setdefault(place, {})[str(line["link"])] = line
    return found


def _part(form: Mapping[str, Any], lines: Mapping[Place, Mapping[str, JsonObject]]) -> BlamePart:
    answers = {
        (str(each["id"]), int(each["epoch"])): Culprits(
            worth=float(each["worth"]),
            tried={str(link): None if worth is None else float(worth) for link, worth in each["tried"].items()},
            flips=tuple(map(str, each["flips"])),
            guilty=tuple(map(str, each["guilty"])),
            unmoved=each.get("unmoved") is True,
        )
        for each in form["answers"]
    }
    trials = {
        place: {link: lines.get(place, {}).get(link, {}) for link in each.tried} for place, each in answers.items()
    }
    return BlamePart(
        how=str(form["how"]),
        words=str(form["words"]),
        metric=str(form["metric"]),
        samples=int(form["samples"]),
        unanswered=int(form["unanswered"]),
        wrong=int(form["wrong"]),
        left=int(form["left"]),
        sums=tuple(Blamed.from_form(each) for each in form["links"]),
        answers=answers,
        trials=trials,
        notes=tuple(_notes(form, answers, lines)),
    )


def _notes(
    form: Mapping[str, Any], answers: Mapping[Place, Culprits], lines: Mapping[Place, Mapping[str, JsonObject]]
) -> Iterator[str]:
    left, trials = int(form["left"]), int(form["trials"])
    if left:
        yield f"The budget had nothing left for {many(left, 'trial')}; the same command with a larger one goes on."
    lost = Counter(link for each in answers.values() for link, worth in each.tried.items() if worth is None)
    if lost:
        yield f"Trials without an answer: {', '.join(f'{short(link)} {count:,}' for link, count in lost.items())}."
    more = sum(map(len, lines.values())) - trials
    if more > 0:
        yield (
            f"{many(more, 'trial was', 'trials were')} made since and not summed up; the same command "
            "goes on with them."
        )


# --- on the page ---


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameView:
    """One blame of a run, as the page shows it."""

    heading: bool
    """Whether it is one of several of its run."""
    words: str
    samples: int
    right: int
    wrong: int
    unanswered: int
    metric: str
    table: Sortable | None
    """By link; None where no link was tried."""
    plot: Doubles
    answers: Sortable
    """The wrong answers one by one, each leading to its sample."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamesView:
    """The blames of one run, as the page shows them."""

    name: str
    """Of the run; empty where it is the only one."""
    parts: tuple[BlameView, ...]
    notes: tuple[str, ...]


def blame_views(parts: Sequence[RunPart]) -> list[BlamesView]:
    """The runs that were blamed, each with its blames."""
    return [
        BlamesView(
            name="" if len(parts) == 1 else part.name,
            parts=tuple(_view(number, part, each, of=part.blames) for each in part.blames.parts),
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


def _cell(blamed: Blamed | None) -> Field:
    if blamed is None:
        return None, NONE
    interval = interval_text(blamed.guilty.interval, percent=blamed.guilty.percent)
    return blamed.guilty.value, f"{_share(blamed.guilty)} [{interval}]"


def filters_of(part: RunPart) -> dict[Place, list[str]]:
    """By sample, what it can be filtered by: the links to blame, with what was done to them where that differs."""
    found: dict[Place, list[str]] = {}
    blames = () if part.blames is None else part.blames.parts
    for each in blames:
        for place, culprits in each.answers.items():
            found.setdefault(place, []).extend(_filter(each, name, of=len(blames)) for name in culprits.names)
    return found


def _filter(part: BlamePart, name: str, *, of: int) -> str:
    return name if of == 1 else f"{part.words}: {name}"


def _view(number: int, part: RunPart, blame: BlamePart, *, of: Blames) -> BlameView:
    several = len(of.parts)
    rows = [_row(number, blame, each, several=several) for each in blame.sums]
    return BlameView(
        heading=several > 1,
        words=blame.words,
        samples=blame.samples,
        right=blame.samples - blame.unanswered - blame.wrong,
        wrong=blame.wrong,
        unanswered=blame.unanswered,
        metric=blame.metric,
        table=Sortable(heads=_HEADS, rows=rows, caption=_CAPTION) if rows else None,
        plot=Doubles(
            title="Share of wrong answers",
            rows=[(_dot(each, each.flips), _dot(each, each.guilty)) for each in blame.sums],
            scale=SHARES,
            heads=("link", "flips, %", "to blame, %"),
        ),
        answers=_answers(number, part, blame),
        notes=blame.notes,
    )


_HEADS = ("link", "tried", "flips", "%", "95 % interval", "to blame", "%", "95 % interval", "change")
_CAPTION = "By link: on how many wrong answers it was tried, how many it flips, and for how many it is to blame"


def _row(number: int, blame: BlamePart, each: Blamed, *, several: int) -> list[Field]:
    tried = [culprits for culprits in blame.answers.values() if culprits.tried]
    flips = Counter(link for culprits in tried for link in culprits.flips or (UNBLAMED,))
    guilty = Counter(link for culprits in tried for link in culprits.guilty or (UNBLAMED,))
    name = UNEXPLAINED if each.link == UNBLAMED else short(each.link)
    link = Link(text=called(each.link), to={"blame": _filter(blame, name, of=several), "run": number})
    return [
        link if guilty[each.link] else link.text,
        (each.flips.samples, f"{each.flips.samples:,}"),
        *_fields(flips[each.link], each.flips),
        *_fields(guilty[each.link], each.guilty),
        (each.change.value, _change(each.change)),
    ]


def _fields(count: int, figure: Figure) -> Iterator[Field]:
    yield count, f"{count:,}"
    yield figure.value, _share(figure)
    yield interval_field(figure.interval, percent=figure.percent)


def _share(figure: Figure) -> str:
    return shown_value(figure.value, percent=True)


def _change(figure: Figure) -> str:
    if figure.value is None:
        return NONE
    return (f"{100 * figure.value:+.2f}" if figure.percent else f"{figure.value:+.3f}").replace("-", "−")


def _dot(each: Blamed, figure: Figure) -> Dot:
    return Dot(name=called(each.link), value=figure.value, interval=figure.interval)


def _answers(number: int, part: RunPart, blame: BlamePart) -> Sortable:
    there = {(row.id, row.epoch) for row in part.rows}
    rows = [_answer(number, place, each) for place, each in blame.answers.items() if place in there and each.tried]
    more = f"; the first {MOST:,} of them" if len(rows) > MOST else ""
    return Sortable(
        heads=("wrong answer", "to blame", "flipped by too"),
        rows=rows[:MOST],
        caption="Wrong answers one by one",
        summary=f"The {len(rows):,} wrong answers one by one{more}" if len(rows) > SHOWN else "",
    )


def _answer(number: int, place: Place, each: Culprits) -> list[Field]:
    name, epoch = place
    also = [short(other) for other in each.flips if other not in each.guilty]
    link = Link(
        text=name, to={"sample": name, "epoch": epoch, "run": number}, note=f" · epoch {epoch}" if epoch else ""
    )
    return [link, ", ".join(each.names), ", ".join(also)]


# --- on a sample ---


def detail_of_blame(part: BlamePart, answer: Answer) -> JsonObject | None:
    """What was tried on one answer, as JSON for the page; None where nothing was.

    Of every trial it says what stood in the link's place, which links became otherwise for it, and the new answer.
    """
    place = (answer.sample.id, answer.epoch)
    culprits = part.answers.get(place)
    if culprits is None or not culprits.tried:
        return None
    options = options_of(answer.sample)
    trials = [
        {
            "link": link,
            "worth": worth,
            "flips": link in culprits.flips,
            "guilty": link in culprits.guilty,
            **_trial(part.trials.get(place, {}).get(link, {}), answer, link=link, options=options),
        }
        for link, worth in culprits.tried.items()
    ]
    return {"words": part.words, "metric": part.metric, "was": culprits.worth, "trials": trials}


def _trial(line: Mapping[str, Any], answer: Answer, *, link: str, options: Sequence[str]) -> JsonObject:
    if not line:
        return {}
    value = line.get("value")
    chosen = places_in(value, options) if value is not None else None
    was = answer.prediction
    now, before = _said(line.get("trace"), line.get("links")), _said(was.trace, was.links)
    became = {name: said for name, said in now.items() if name != link and said != before.get(name)}
    form: JsonObject = {
        "outcome": str(line.get("outcome")),
        "reason": line.get("reason"),
        "put": _text(link, line.get("put")),
        "chosen": chosen,
        "value": value if chosen is None else None,
        "became": became,
        "calls": sum(len(_map(each).get("calls", ())) for each in _map(line.get("links")).values()),
    }
    return {name: each for name, each in form.items() if each not in (None, {}, [])}


def _said(trace: Any, links: Any) -> dict[str, str]:
    """What each link of a prediction says, as text."""
    there = _map(trace)
    form = {"verbalization": _map(there.get("verbalization")), "statement": there.get("statement")}
    forms = {name: _map(each) for name, each in _map(links).items()}
    texts = {name: _text(name, value) for name, value in said_in({**form, "links": forms}).items()}
    return {name: text for name, text in texts.items() if text is not None}


def _text(link: str, value: Any) -> str | None:
    if value is None:
        return None
    if link == "statement" and isinstance(value, dict):
        value = _statement(cast("dict[str, Any]", value))
    elif isinstance(value, list):
        value = "\n".join(plain(each) for each in cast("list[Any]", value))
    text = plain(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _statement(form: Mapping[str, Any]) -> Any:
    try:
        return Statement(form["relation"], form["primary"], form["secondary"]).text
    except (KeyError, TypeError, ValueError, UsageError):
        return form.get("text", dict(form))


def _map(value: Any) -> dict[str, Any]:
    """`value` where it is a map; an empty one where somebody spoilt it."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
