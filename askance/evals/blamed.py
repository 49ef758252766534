"""What came of replacing links: which of them turned wrong answers right, for each sample and in sum.

A link *flips* an answer where another value in its place, with all that follows from it asked anew, makes the answer
right. It is *guilty* where it flips the answer of its own accord:

- not where a link before it flips the answer as well, for then the mistake came from there;
- not where dropping it took another link away whose own absence flips the answer: what cannot be told from that link
  by dropping is laid at its door.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from askance.evals.figures import Figure, figure, mean
from askance.evals.figures import Scored as Counted
from askance.evals.values import Score

if TYPE_CHECKING:
    from askance.chains import Link
    from askance.chat import Json, JsonObject
    from askance.evals.run import Answer
    from askance.evals.values import Prediction

Place = tuple[str, int]
"""Id and epoch of a sample."""

NONE = "none"
"""Stands for the wrong answers that no single link flips: several did it together, or what answers did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One wrong answer, given again with one link replaced."""

    answer: Answer
    """As it was."""
    link: str
    put: Json
    """What stood in the link's place, as JSON; None where the link was dropped."""
    now: Prediction
    worth: float | None
    """The metric of the new answer; None where there is none."""
    flips: bool
    """Whether the new answer is right."""

    @property
    def gone(self) -> tuple[str, ...]:
        """Other links that had a value and lost it with this one."""
        before, after = self.answer.prediction.links, self.now.links
        return tuple(
            link
            for link in before
            if link != self.link and _answered(before[link]) and link in after and not _answered(after[link])
        )


def _answered(form: Mapping[str, Any]) -> bool:
    return form["outcome"] == "answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blamed:
    """One link, in sum."""

    link: str
    """Name of the link, or `none`."""
    flips: Figure
    """Share of the wrong answers that it was tried on that became right."""
    guilty: Figure
    """Share of those for which it alone is to blame."""
    change: Figure
    """Mean change of the metric."""

    def form(self) -> JsonObject:
        """The sums as JSON."""
        return {
            "link": self.link,
            "flips": self.flips.form(),
            "guilty": self.guilty.form(),
            "change": self.change.form(),
        }

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> Blamed:
        """The sums that `form` stands for."""
        figures = {name: Figure.from_form(form[name]) for name in ("flips", "guilty", "change")}
        return cls(link=str(form["link"]), **figures)


@dataclass(frozen=True, kw_only=True)
class Blame:
    """Which links of a run's chain are to blame for its wrong answers."""

    how: str
    """What was put in the links' places: `dropped`, `truth`, or `run …`."""
    words: str
    metric: str
    samples: int
    """Answers of the run."""
    unanswered: int
    """Those that have no answer or no score: their outcome says why, and no link is tried."""
    wrong: tuple[Answer, ...]
    """Those that are worth less than a right answer."""
    trials: tuple[Trial, ...]
    above: Mapping[str, tuple[str, ...]]
    """By link, those that it depends on."""
    known: Mapping[str, Link[Any]]
    """By name, the links of the chain in the order in which a picture travels."""
    worth: Mapping[tuple[str, int], tuple[float, float]] = field(default_factory=dict[Any, Any])
    """By sample and epoch, what a wrong answer was worth, and what a right one is."""
    unmoved: frozenset[Place] = frozenset()
    """Wrong answers whose links all had already what would have been put in their places, so that none of them is to
    blame."""
    percent: bool = True
    left: int = 0
    """Trials that the budget had nothing left for."""
    seed: int = 0
    counters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What models computed for the trials, all starts added up: by model, as a run has it in `run.json`."""

    @cached_property
    def by_answer(self) -> Mapping[tuple[str, int], Mapping[str, Trial]]:
        """The trials of each wrong answer, by sample and epoch."""
        found: dict[tuple[str, int], dict[str, Trial]] = {(answer.sample.id, answer.epoch): {} for answer in self.wrong}
        for trial in self.trials:
            found[trial.answer.sample.id, trial.answer.epoch][trial.link] = trial
        return found

    def flips(self, answer: Answer) -> tuple[str, ...]:
        """The links that flip an answer."""
        trials = self.by_answer.get((answer.sample.id, answer.epoch), {})
        return tuple(link for link in self.known if link in trials and trials[link].flips)

    def guilty(self, answer: Answer) -> tuple[str, ...]:
        """The links that are to blame for an answer; several where each of them alone would have made it right."""
        trials = self.by_answer.get((answer.sample.id, answer.epoch), {})
        flips = self.flips(answer)
        own = [link for link in flips if not any(each in flips for each in trials[link].gone)]
        return tuple(link for link in own if not any(before in own for before in self.above.get(link, ())))

    def short(self, link: str) -> str:
        """The short name of a link, such as T_V; any other name as it is."""
        return self.known[link].short if link in self.known else link

    @property
    def links(self) -> tuple[str, ...]:
        """The links that were tried on at least one answer."""
        tried = {trial.link for trial in self.trials}
        return tuple(link for link in self.known if link in tried)

    @cached_property
    def sums(self) -> tuple[Blamed, ...]:
        """What came of each link, and last what no link flips."""
        tried = [answer for answer in self.wrong if self._tried(answer)]
        return (*(self._sum(link) for link in self.links), *([self._unexplained(tried)] if tried else []))

    def _tried(self, answer: Answer) -> bool:
        place = (answer.sample.id, answer.epoch)
        return place in self.unmoved or bool(self.by_answer[place])

    def _sum(self, link: str) -> Blamed:
        rows: list[Counted] = []
        for trial in self.trials:
            if trial.link == link:
                was, right = self.worth[trial.answer.sample.id, trial.answer.epoch]
                now = None
                if trial.worth is not None:
                    now = _score(trial.flips, link in self.guilty(trial.answer), trial.worth - was)
                rows.append(_row(trial.answer, now, right - was))
        return self._figured(link, rows)

    def _unexplained(self, answers: Sequence[Answer]) -> Blamed:
        rows = [_row(answer, _score(not self.flips(answer), not self.guilty(answer), 0.0), 0.0) for answer in answers]
        return self._figured(NONE, rows)

    def _figured(self, link: str, rows: Sequence[Counted]) -> Blamed:
        shares = [figure(mean(name), rows, seed=self.seed) for name in ("flips", "guilty")]
        change = figure(mean("change", percent=self.percent), rows, seed=self.seed)
        return Blamed(link=link, flips=shares[0], guilty=shares[1], change=change)

    def form(self) -> JsonObject:
        """The blame as JSON, each wrong answer with the links that flip it and those that are guilty."""
        return {
            "how": self.how,
            "words": self.words,
            "metric": self.metric,
            "samples": self.samples,
            "unanswered": self.unanswered,
            "wrong": len(self.wrong),
            "trials": len(self.trials),
            "left": self.left,
            "links": [each.form() for each in self.sums],
            "answers": [self._answer_form(answer) for answer in self.wrong],
        }

    def _answer_form(self, answer: Answer) -> JsonObject:
        trials = self.by_answer[answer.sample.id, answer.epoch]
        return {
            "id": answer.sample.id,
            "epoch": answer.epoch,
            "worth": self.worth[answer.sample.id, answer.epoch][0],
            "tried": {link: trials[link].worth for link in self.known if link in trials},
            "flips": list(self.flips(answer)),
            "guilty": list(self.guilty(answer)),
            **({"unmoved": True} if (answer.sample.id, answer.epoch) in self.unmoved else {}),
        }


def _score(flips: bool, guilty: bool, change: float) -> Score:  # noqa: FBT001  # named where they are read
    return Score(values={"flips": float(flips), "guilty": float(guilty), "change": change})


def _row(answer: Answer, now: Score | None, most: float) -> Counted:
    wrong, right = _score(False, False, 0.0), _score(True, True, most)  # noqa: FBT003
    return Counted(cluster=answer.sample.cluster, score=now, if_wrong=wrong, if_right=right)
