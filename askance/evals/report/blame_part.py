"""Links that wrong answers are blamed on, read from the folders of a run; no call is made, nothing is scored again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from askance.amounts import many
from askance.chains.link import link_named
from askance.errors import UsageError
from askance.evals.analysis.blame import NONE as UNBLAMED
from askance.evals.analysis.blame import LinkBlame, StoredBlames, mark_of, read_trials
from askance.evals.analysis.trial import Place
from askance.evals.run_format import BLAMES

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.run import Run

_TEXTS, _COUNTS = ("how", "words", "metric"), ("samples", "unanswered", "wrong", "left")
"""What a blame says of itself."""
UNEXPLAINED = "no single link"
"""What is to blame for a wrong answer that no link alone flips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprits:
    """What was tried on one wrong answer."""

    worth: float
    """What the answer is worth as it was."""
    tried: Mapping[str, float | None]
    """By link, what the answer was worth with another value in the link's place; None if there was no answer then."""
    flips: tuple[str, ...]
    guilty: tuple[str, ...]
    unmoved: bool = False
    """Whether every link already had the value that would have replaced it."""

    @property
    def names(self) -> tuple[str, ...]:
        """Short names of the links to blame, or that there is none."""
        return tuple(short(link) for link in self.guilty) or ((UNEXPLAINED,) if self.tried or self.unmoved else ())


@dataclass(frozen=True, kw_only=True)
class BlamePart:
    """One blame of a run: what replaced the links, and the figures of the trials."""

    how: str
    words: str
    """What was done to a link, as in `dropped`."""
    metric: str
    samples: int
    unanswered: int
    wrong: int
    left: int
    """Trials that the budget had nothing left for."""
    sums: tuple[LinkBlame, ...]
    answers: Mapping[Place, Culprits]
    trials: Mapping[Place, Mapping[str, JsonObject]] = field(default_factory=dict[Any, Any])
    """By wrong answer and link, the line of `blame.jsonl`."""
    notes: tuple[str, ...] = ()

    @property
    def right(self) -> int:
        """Samples whose answer is right."""
        return self.samples - self.unanswered - self.wrong

    def form(self) -> JsonObject:
        """The blame as JSON."""
        return {
            **{
                name: getattr(self, name)
                for name in ("how", "words", "metric", "samples", "unanswered", "wrong", "left")
            },
            "links": [each.form() for each in self.sums],
            "answers": [
                {"id": place[0], "epoch": place[1], "flips": list(each.flips), "guilty": list(each.guilty)}
                for place, each in self.answers.items()
            ],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBlames:
    """The blames of one run."""

    parts: tuple[BlamePart, ...] = ()
    notes: tuple[str, ...] = ()
    """Why some blames are not shown."""

    def filter(self, part: BlamePart, name: str) -> str:
        """The filter for samples that `part` blames on a link: the link's name, with what was done to links."""
        return name if len(self.parts) == 1 else f"{part.words}: {name}"

    def filters(self) -> dict[Place, list[str]]:
        """The filters of each sample."""
        by_place: dict[Place, list[str]] = {}
        for part in self.parts:
            for place, culprits in part.answers.items():
                by_place.setdefault(place, []).extend(self.filter(part, name) for name in culprits.names)
        return by_place


def short(link: str) -> str:
    """The paper's name of a link; `none` and other words stay as they are."""
    return link_named(link).short


def called(link: str) -> str:
    """The name of a link on the page."""
    return UNEXPLAINED if link == UNBLAMED else link_named(link).title


def blames_of(run: Run, folders: Sequence[Path] = ()) -> RunBlames:
    """The blames in the folder of `run`, and those of it in other folders.

    Args:
        run: whose blames they are.
        folders: where `askance blame --out` has put others; blames of other runs there are skipped.
    """
    parts: dict[str, BlamePart] = {}
    notes: list[str] = []
    for folder in (run.path, *folders):
        blames = _in(folder, run, own=folder == run.path)
        parts.update((part.how, part) for part in blames.parts)
        notes += blames.notes
    return RunBlames(parts=tuple(parts.values()), notes=tuple(notes))


def check_blames(runs: Sequence[Run], folders: Sequence[Path]) -> None:
    """Refuses folders that hold no blame of any of `runs`.

    Raises:
        UsageError: one does not.
    """
    if not folders:
        return
    marks = {mark_of(run) for run in runs}
    for folder in folders:
        stored = StoredBlames.read(folder)
        if not stored.readable or not marks.intersection(stored.runs.values()):
            hint = "Name a folder that `askance blame RUN --out` has made of the run as it is now."
            raise UsageError(f"The folder {str(folder)!r} holds no blame of what the report is of.", hint=hint)


def _in(folder: Path, run: Run, *, own: bool) -> RunBlames:
    stored = StoredBlames.read(folder)
    lines = _lines(folder)
    if not stored.forms and not lines and stored.readable:
        return RunBlames()
    if not stored.readable:
        return RunBlames(notes=(f"Blame: {BLAMES} is of another version or broken; `askance blame` makes it anew.",))
    parts, notes = _parts(stored, lines, run, own=own)
    begun = [how for how in lines if how not in stored.forms] if own else []
    if begun:
        count = sum(len(trials) for how in begun for trials in lines[how].values())
        notes.append(
            f"Blame: {many(count, 'trial was', 'trials were')} made and not summed up; the same "
            "`askance blame` goes on with them."
        )
    return RunBlames(parts=tuple(parts), notes=tuple(notes))


def _parts(stored: StoredBlames, lines: _Lines, run: Run, *, own: bool) -> tuple[list[BlamePart], list[str]]:
    mark, parts, notes = mark_of(run), list[BlamePart](), list[str]()
    for how, form in stored.forms.items():
        if stored.runs.get(how) != mark:
            if own:
                notes.append(
                    f"Blame ({how}): it is of another run, or of this one before it was answered or scored anew. "
                    "The same `askance blame` makes what has changed anew."
                )
            continue
        try:
            parts.append(_part(form, lines.get(how, {})))
        except (KeyError, TypeError, ValueError, AttributeError):
            notes.append(f"Blame ({how}): what {BLAMES} says of it cannot be read; `askance blame` makes it anew.")
    return parts, notes


_Lines = dict[str, dict[Place, dict[str, "JsonObject"]]]
"""Lines of trials by replacement, by sample, by link."""


def _lines(folder: Path) -> _Lines:
    lines: _Lines = {}
    for line in read_trials(folder):
        place = (str(line["id"]), line["epoch"] if isinstance(line["epoch"], int) else 0)
        lines.setdefault(str(line["how"]), {}).setdefault(place, {})[str(line["link"])] = line
    return lines


_CULPRITS = TypeAdapter(Culprits)


def _part(form: Mapping[str, Any], lines: Mapping[Place, Mapping[str, JsonObject]]) -> BlamePart:
    answers = {(str(each["id"]), int(each["epoch"])): _CULPRITS.validate_python(each) for each in form["answers"]}
    trials = {
        place: {link: lines.get(place, {}).get(link, {}) for link in each.tried} for place, each in answers.items()
    }
    facts: dict[str, Any] = {name: str(form[name]) for name in _TEXTS} | {name: int(form[name]) for name in _COUNTS}
    return BlamePart(
        **facts,
        sums=tuple(LinkBlame.from_form(each) for each in form["links"]),
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
