"""The trials of a blame: a wrong answer each, with one link replaced and given all that does not follow from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from askance.chat import key_of
from askance.errors import UsageError
from askance.evals.blamed import Blame, Place, Trial
from askance.evals.replacing import dropping, form_of_link, were
from askance.evals.run_folder import PROMPTS
from askance.evals.scoring import bounds_of, scored
from askance.evals.solving import ChainSolver
from askance.evals.values import Prediction
from askance.models.factory import model_from_form
from askance.prompts import overlay_prompts

if TYPE_CHECKING:
    from askance.chains import Chain, Link
    from askance.chat import JsonObject
    from askance.evals.figures import Metric
    from askance.evals.replacing import Replacement
    from askance.evals.run import Answer, Run
    from askance.evals.tasks import Definition, Scoring
    from askance.evals.values import Score
    from askance.models import Engine, Model
    from askance.nodes import Result

_NEAR = 1e-9
"""Two values of a metric that differ by no more are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A trial to be made: one answer, and what stands in the place of one of its links."""

    answer: Answer
    link: Link[Any]
    put: Result[Any]
    given: Mapping[str, Any]
    """What the chain is given: the sample, and every link that does not lie downstream."""
    key: str
    """Tells it from any other, also of an earlier run of the same folder."""


class Cases:
    """The trials that a run gives rise to, and what becomes of them.

    Args:
        run: finished, with its scores.
        definition: of its task.
        engine: by which models are asked, and where answers are on record.
        models: by role, those that are asked; for a role that is not named it is the model that the run describes,
            whose recorded answers can be had and whom nobody can ask.
        replacement: what is put in the links' places; by default they are dropped.
        links: those that are tried, by name or short name; None is all.
        metric: what tells right from wrong; by default the one that stands for the task.

    Raises:
        UsageError: the run cannot be run without its data, its solver is no chain, it is not scored, it has no metric
            or link of that name.
    """

    def __init__(
        self,
        run: Run,
        definition: Definition,
        *,
        engine: Engine,
        models: Mapping[str, Model] | None = None,
        replacement: Replacement | None = None,
        links: Collection[str] | None = None,
        metric: str | None = None,
    ) -> None:
        self.run = run
        self.solver = solver_of(run, definition, engine=engine, models=models or {})
        self.chain = self.solver.chain
        self.scoring = definition.scored(engine, run.configuration["options"])
        self._metric = _metric(self.scoring, metric)
        self.replacement = replacement or dropping(self.chain)
        self._above = self.chain.above
        self._links = _links(self.chain, links)
        self._solver_form = self.solver.form()
        self._answers = {(answer.sample.id, answer.epoch): answer for answer in run.answers}
        _check_scored(run)
        self.worth = dict(self._worths())
        """By sample and epoch of every wrong answer: what it is worth, and what a right one is."""
        self.wrong = tuple(each for each in run.answers if (each.sample.id, each.epoch) in self.worth)

    def _worths(self) -> Iterator[tuple[tuple[str, int], tuple[float, float]]]:
        for answer in self.run.answers:
            was, right = self._worth(answer.score), self._worth(bounds_of(answer.sample, self.scoring)[1])
            if was is not None and right is not None and self._short(was, right):
                yield (answer.sample.id, answer.epoch), (was, right)

    def _worth(self, score: Score | None) -> float | None:
        return None if score is None or not self._metric.covers(score) else self._metric.of([score])

    def _short(self, value: float, right: float) -> bool:
        return (right - value if self._metric.better == "higher" else value - right) > _NEAR

    def __iter__(self) -> Iterator[Case]:
        """The trials that there are, of the links that are wanted."""
        found = (self._case(answer, link) for answer in self.wrong for link in self._links)
        return (case for case in found if case is not None)

    @property
    def unmoved(self) -> Iterator[Place]:
        """Wrong answers that there is no trial of, since what would be put in the place of links is there already."""
        for answer in self.wrong:
            put = [link for link in self._links if self.replacement.put(answer, link) is not None]
            if put and all(self._case(answer, link) is None for link in put):
                yield answer.sample.id, answer.epoch

    def _case(self, answer: Answer, link: Link[Any]) -> Case | None:
        """The trial of one link; None where there is nothing to put in its place, or what is there already."""
        put, there = self.replacement.put(answer, link), were(answer, self.chain.links.values())
        was = there.get(link.name)
        if put is None or (was is not None and (put.outcome, put.value) == (was.outcome, was.value)):
            return None
        kept = {each: result for each, result in there.items() if link.name not in self._above.get(each, ())}
        kept.pop(self.chain.target.name, None)
        return Case(
            answer=answer,
            link=link,
            put=put,
            given={**self.solver.given(answer.sample), **kept, link.name: put},
            key=self._key(answer, link, put),
        )

    def _key(self, answer: Answer, link: Link[Any], put: Result[Any]) -> str:
        was = answer.prediction.form()
        del was["meta"]
        form = {"sample": answer.sample.form(), "epoch": answer.epoch, "was": was, "link": link.name}
        return key_of("blame", {**form, "put": form_of_link(link, put), "solver": self._solver_form})

    def still_true(self, lines: Iterable[JsonObject]) -> Iterator[JsonObject]:
        """Of the lines of an earlier call those that are answered, and about the run as it is."""
        for line in lines:
            answer = self._answers.get((line["id"], line["epoch"]))
            if line["how"] == self.replacement.name and line["outcome"] == "answered" and answer is not None:
                link = self.chain.links.get(line["link"])
                case = None if link is None else self._case(answer, link)
                if case is not None and case.key == line["key"]:
                    yield line

    def line(self, case: Case, now: Prediction) -> JsonObject:
        return {
            "how": self.replacement.name,
            "id": case.answer.sample.id,
            "epoch": case.answer.epoch,
            "link": case.link.name,
            "put": form_of_link(case.link, case.put),
            "key": case.key,
            **now.form(),
        }

    async def trial(self, line: Mapping[str, Any]) -> Trial:
        was = self._answers[line["id"], line["epoch"]]
        now = await scored(replace(was, prediction=Prediction.from_form(line), score=None), self.scoring)
        worth, right = self._worth(now.score), self._worth(bounds_of(was.sample, self.scoring)[1])
        return Trial(
            answer=was,
            link=line["link"],
            put=line["put"],
            now=now.prediction,
            worth=worth,
            flips=worth is not None and right is not None and not self._short(worth, right),
        )

    def summed(self, trials: Sequence[Trial], *, left: int, seed: int) -> Blame:
        places = {link: place for place, link in enumerate(self.chain.links)}
        ordered = sorted(trials, key=lambda each: (each.answer.sample.id, each.answer.epoch, places[each.link]))
        return Blame(
            how=self.replacement.name,
            words=self.replacement.words,
            metric=self._metric.name,
            samples=len(self.run.answers),
            unanswered=sum(answer.score is None for answer in self.run.answers),
            wrong=self.wrong,
            trials=tuple(each for each in ordered if (each.answer.sample.id, each.answer.epoch) in self.worth),
            above=self._above,
            known=self.chain.links,
            worth=self.worth,
            unmoved=frozenset(self.unmoved),
            percent=self._metric.percent,
            left=left,
            seed=seed,
        )


def solver_of(run: Run, definition: Definition, *, engine: Engine, models: Mapping[str, Model]) -> ChainSolver:
    """The run's solver, with the prompts that it was asked with.

    Raises:
        UsageError: it is made only with its data, or is no chain.
    """
    roles: Mapping[str, Any] = run.configuration["models"]
    unknown = [role for role in models if role not in roles]
    if unknown:
        raise UsageError(f"The run {str(run.path)!r} has no {unknown[0]!r}.", hint=f"It has {', '.join(roles)}.")
    made = {role: models.get(role) or model_from_form(form, engine) for role, form in roles.items()}
    kept = run.path / PROMPTS
    with overlay_prompts(kept) if kept.is_dir() else nullcontext():
        solver = definition.solved_by(made, {**run.configuration["options"], "engine": engine})
    if not isinstance(solver, ChainSolver):
        raise UsageError(
            f"The task {run.task!r} is answered by no chain, so that there are no links to blame.",
            hint="Only runs of a chain can be blamed.",
        )
    return solver


def _metric(scoring: Scoring, name: str | None) -> Metric:
    known = {metric.name: metric for metric in scoring.metrics if metric.better != "neither"}
    found = known.get(name or scoring.metrics[0].name)
    if found is None:
        raise UsageError(
            f"No metric {name or scoring.metrics[0].name!r} tells right from wrong.", hint=f"Use {', '.join(known)}."
        )
    return found


def _links(chain: Chain, wanted: Collection[str] | None) -> tuple[Link[Any], ...]:
    upstream, name = chain.above.get(chain.target.name, ()), chain.get_name()
    there = [link for link in chain.links.values() if link.name in upstream]
    unknown = {*(wanted or ())} - {name for link in there for name in (link.name, link.short)}
    if unknown:
        known = f"It has {', '.join(link.name for link in there)}." if there else "It has none."
        raise UsageError(f"The chain {name!r} has no link {min(unknown)!r} before its answer.", hint=known)
    if not there:
        raise UsageError(
            f"The chain {name!r} answers in one step, so that there are no links to blame.",
            hint="Blame a run whose chain verbalizes first.",
        )
    return tuple(link for link in there if wanted is None or {link.name, link.short} & {*wanted})


def _check_scored(run: Run) -> None:
    if any(answer.prediction.answered for answer in run.answers) and not any(answer.score for answer in run.answers):
        raise UsageError(
            f"The run {str(run.path)!r} has no scores yet.",
            hint="The same command finishes it; or `askance eval score`.",
        )
