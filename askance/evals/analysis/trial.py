"""The trials of a blame. A trial asks for one wrong answer again, with one link replaced.

The replaced link is dropped, or taken from another run, or from what is true of the sample. Links that do not depend on
it are given as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from askance.agents import Verbalizations
from askance.chains import DESCRIPTION, NARRATION, OBJECTS, SCENE_TEXT, STATEMENT, UNUSUAL, Link, concatenate
from askance.chains.output_line import link_values
from askance.chat import Json, JsonObject, key_of
from askance.data_table import open_json_lines
from askance.errors import BadData, UsageError
from askance.evals.evaluation import EXTRACTOR
from askance.evals.run_format import PROMPTS
from askance.evals.sample import Prediction, Sample, SampleResult, Score
from askance.evals.scorer import Scorer, bounds_of, scored
from askance.evals.solver import ChainSolver, as_solver
from askance.models.factory import model_from_form
from askance.nodes import Result, skipped
from askance.prompts import overlay_prompts

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.evals.metric import Metric
    from askance.evals.run import Run
    from askance.evals.task import Task
    from askance.models import Engine, Model

# --- replacements of a link ---

LinkResults: TypeAlias = "dict[str, Result[Any]]"
"""Links by name, as a chain takes them."""
Truth: TypeAlias = "Callable[[Sample], Mapping[str, Any]]"
"""Gives, for a sample, the true values of links, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A way to replace links."""

    name: str
    """`dropped`, `truth`, or `run` with the beginning of the other run's hash; results are kept under this name."""
    words: str
    """What is done to a link, as a participle for sentences: `dropped`."""
    put: Callable[[SampleResult, Link[Any]], Result[Any] | None]
    """Gives the replacement of a link for an answer; None if there is none."""


def links_of(answer: SampleResult, links: Iterable[Link[Any]]) -> LinkResults:
    """The links of an answer as input of a chain: those with a value are `given`, the others keep their outcome.

    Raises:
        UsageError: the value of a link cannot be read.
    """
    with _reading(answer.sample):
        prediction = answer.prediction
        values = {**answer.sample.inputs, **link_values({**prediction.trace, "links": prediction.links})}
        results = ((link, _result(link, prediction.links.get(link.name), values.get(link.name))) for link in links)
        return {link.name: result for link, result in results if result is not None}


@contextmanager
def _reading(sample: Sample) -> Generator[None]:
    """Turns an error of reading a link's value into one that names the sample."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, UsageError) as error:
        why = error.message if isinstance(error, UsageError) else f"{type(error).__name__}: {error}."
        raise UsageError(
            f"The links of the sample {sample.id!r} cannot be read: {why}",
            hint="Take the run from a copy, or mend what is said to be true of the sample.",
        ) from error


def _result(link: Link[Any], form: Mapping[str, Any] | None, value: Json) -> Result[Any] | None:
    if form is None:
        return None
    if form["outcome"] != "answered":
        # The chain has an answer, so it did not need what was skipped.
        absent = form["outcome"] == "skipped"
        return Result(outcome=form["outcome"], reason=form.get("reason"), error=form.get("error"), absent=absent)
    return None if value is None else link.result(value)


def link_form(link: Link[Any], result: Result[Any]) -> Json:
    """The value of a link as JSON, without fields that follow from others; None if it has no value."""
    form = None if result.value is None else link.write(result.value)
    if link.name != STATEMENT.name or not isinstance(form, dict):
        return form
    return {name: each for name, each in form.items() if name != "text"}


def dropping(chain: Chain) -> Replacement:
    """Drops a link.

    Most chains cannot do without T_V, so it is replaced by the verbalizations that it was made of, one after the other.
    """
    tools = (OBJECTS, SCENE_TEXT, NARRATION, UNUSUAL)
    needs = next((step.needs for step in chain.steps if step.link.name == DESCRIPTION.name), tools)

    def put(answer: SampleResult, link: Link[Any]) -> Result[Any] | None:
        results = links_of(answer, [link, *needs])
        if link.name not in results or not results[link.name].answered:
            return None
        if link.name != DESCRIPTION.name:
            return skipped("it was dropped", absent=True)
        values: dict[str, Any] = {each.name: results[each.name].value for each in needs if each.name in results}
        if all(value is None for value in values.values()):
            return None
        texts = {name: None if values.get(name) is None else str(values[name]) for name in ("narration", "unusual")}
        parts = Verbalizations(objects=values.get("objects"), scene_text=values.get("scene_text"), **texts)
        return link.result(concatenate(parts))

    return Replacement(name="dropped", words="dropped", put=put)


def from_run(other: Run) -> Replacement:
    """Takes a link from another run: from the same sample, and as far as is known, the same picture."""
    answers = {place_of(answer): answer for answer in other.answers}

    def put(answer: SampleResult, link: Link[Any]) -> Result[Any] | None:
        sample = answer.sample
        counterpart = answers.get((sample.id, answer.epoch)) or answers.get((sample.id, 0))
        if counterpart is None:
            return None
        digest, result = _digest(counterpart.sample), links_of(counterpart, [link]).get(link.name)
        same = digest is None or _digest(sample) in {None, digest}
        return result if same and result is not None and result.answered else None

    name = f"run {key_of('run', dict(other.configuration))[:12]}"
    return Replacement(name=name, words=f"taken from {other.path.name}", put=put)


def from_truth(truth: Truth | Path | None = None) -> Replacement:
    """Replaces a link by what is true of the sample.

    Args:
        truth: a function that gives the true values; or a JSONL file with an `id` of a sample or a group and links by
            name. By default they are in the sample's `target` or `tags`, under the name of the link.

    Raises:
        UsageError: the file cannot be read.
    """
    true_of = _read_truth(truth) if isinstance(truth, Path) else truth or _own_truth

    def put(answer: SampleResult, link: Link[Any]) -> Result[Any] | None:
        value = true_of(answer.sample).get(link.name)
        with _reading(answer.sample):
            return None if value is None else link.result(value)

    return Replacement(name="truth", words="replaced by the truth", put=put)


def _own_truth(sample: Sample) -> Mapping[str, Any]:
    whole: Any = sample.target
    return {**sample.tags, **(cast("dict[str, Any]", whole) if isinstance(whole, dict) else {})}


def _read_truth(file: Path) -> Truth:
    truths: dict[str, Mapping[str, Any]] = {}
    for row in open_json_lines(file).rows():
        if "id" not in row:
            raise BadData(
                f"{row.where} is not about a sample.",
                hint='Write one object a line: {"id": "…", "statement": "…"}.',
            )
        truths[str(row["id"])] = {link: value for link, value in row.items() if link != "id"}
    return lambda sample: truths.get(sample.id) or truths.get(sample.cluster) or {}


def _digest(sample: Sample) -> str | None:
    return None if sample.image is None else sample.image.sha256


# --- the trials ---

Place: TypeAlias = tuple[str, int]
"""Id and epoch of a sample."""

_NEAR = 1e-9
"""Values of a metric that differ by no more count as equal."""


def place_of(answer: SampleResult) -> Place:
    """Sample id and epoch of an answer."""
    return answer.sample.id, answer.epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """A trial that can be made: one wrong answer, and the replacement of one of its links."""

    answer: SampleResult
    link: Link[Any]
    put: Result[Any]
    given: Mapping[str, Any]
    """The chain's input: the sample, and every link that does not depend on the replaced one."""
    key: str
    """Key of the trial, by which one that was made before is found again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One wrong answer, asked for again with one link replaced."""

    answer: SampleResult
    """The answer of the run."""
    link: str
    put: Json
    """The replacement as JSON; None if the link was dropped."""
    now: Prediction
    worth: float | None
    """The metric of the new answer; None if there is no answer."""
    flips: bool
    """Whether the new answer is right."""

    @property
    def gone(self) -> tuple[str, ...]:
        """Other links that had a value and have none in the trial."""
        before, after = self.answer.prediction.links, self.now.links
        return tuple(
            link
            for link in before
            if link != self.link and _answered(before[link]) and link in after and not _answered(after[link])
        )


def _answered(form: Mapping[str, Any]) -> bool:
    return form["outcome"] == "answered"


class Trials:
    """The trials of a run: iterating gives those that can be made.

    Args:
        run: a finished run with its scores.
        task: the class of its task.
        engine: asks the models and has the records.
        models: by role, the models to ask: those of the run, and `judge` if its scorer has one. A role that is not
            named gets the model that the run describes: its recorded answers are found, but it cannot be asked.
        replacement: how links are replaced; by default they are dropped.
        links: names or short names of the links to try; None tries all.
        metric: the metric that tells right from wrong; by default the task's first.

    Raises:
        UsageError: the task needs its data, the solver is not a chain, the run is not scored, or it has no such metric
            or link.
    """

    def __init__(
        self,
        run: Run,
        task: type[Task],
        *,
        engine: Engine,
        models: Mapping[str, Model] | None = None,
        replacement: Replacement | None = None,
        links: Collection[str] | None = None,
        metric: str | None = None,
    ) -> None:
        models = models or {}
        options: Mapping[str, Any] = run.configuration["options"]
        self.run = run
        self.engine = engine
        self.solver = _solver(run, task, engine=engine, models=models)
        self.chain = self.solver.chain
        judge = {JUDGE: models[JUDGE]} if JUDGE in models else {}
        self.scoring = task.of_run(options, models=judge, engine=engine).scorer()
        self.metric = _metric(self.scoring, metric)
        self.replacement = replacement or dropping(self.chain)
        self.above = self.chain.upstream
        """By link, the links that it depends on."""
        self._links = _links(self.chain, links)
        self._solver_form = self.solver.form()
        self._answers = {place_of(answer): answer for answer in run.answers}
        _check_scored(run)
        self.worth = dict(self._worths())
        """By sample and epoch of every wrong answer: the metric of the answer, and that of a right one."""
        self.wrong = tuple(each for each in run.answers if place_of(each) in self.worth)

    def _worths(self) -> Iterator[tuple[Place, tuple[float, float]]]:
        for answer in self.run.answers:
            was, right = self._worth(answer.score), self._worth(bounds_of(answer.sample, self.scoring)[1])
            if was is not None and right is not None and self._short(was, right):
                yield place_of(answer), (was, right)

    def _worth(self, score: Score | None) -> float | None:
        return None if score is None or not self.metric.covers(score) else self.metric.of([score])

    def _short(self, value: float, right: float) -> bool:
        return (right - value if self.metric.better == "higher" else value - right) > _NEAR

    def __iter__(self) -> Iterator[PlannedTrial]:
        """The trials that can be made."""
        trials = (self._planned(answer, link) for answer in self.wrong for link in self._links)
        return (trial for trial in trials if trial is not None)

    @property
    def unmoved(self) -> Iterator[Place]:
        """Wrong answers without a trial, because every replacement equals the link that it would replace."""
        for answer in self.wrong:
            put = [link for link in self._links if self.replacement.put(answer, link) is not None]
            if put and all(self._planned(answer, link) is None for link in put):
                yield place_of(answer)

    def _planned(self, answer: SampleResult, link: Link[Any]) -> PlannedTrial | None:
        """The trial of one link; None if there is no replacement, or if it equals the link."""
        put, results = self.replacement.put(answer, link), links_of(answer, self.chain.links.values())
        was = results.get(link.name)
        if put is None or (was is not None and (put.outcome, put.value) == (was.outcome, was.value)):
            return None
        independent = {each: result for each, result in results.items() if link.name not in self.above.get(each, ())}
        independent.pop(self.chain.target.name, None)
        return PlannedTrial(
            answer=answer,
            link=link,
            put=put,
            given={**self.solver.given(answer.sample), **independent, link.name: put},
            key=self._key(answer, link, put),
        )

    def _key(self, answer: SampleResult, link: Link[Any], put: Result[Any]) -> str:
        was = answer.prediction.form()
        del was["meta"]
        form = {"sample": answer.sample.form(), "epoch": answer.epoch, "was": was, "link": link.name}
        return key_of("blame", {**form, "put": link_form(link, put), "solver": self._solver_form})

    def still_true(self, lines: Iterable[JsonObject]) -> Iterator[JsonObject]:
        """The lines of an earlier blame that are answered and still fit the run."""
        for line in lines:
            answer = self._answers.get((line["id"], line["epoch"]))
            if line["how"] == self.replacement.name and line["outcome"] == "answered" and answer is not None:
                link = self.chain.links.get(line["link"])
                planned = None if link is None else self._planned(answer, link)
                if planned is not None and planned.key == line["key"]:
                    yield line

    def line(self, trial: PlannedTrial, now: Prediction) -> JsonObject:
        """The line of a trial and its new answer in `blame.jsonl`."""
        return {
            "how": self.replacement.name,
            "id": trial.answer.sample.id,
            "epoch": trial.answer.epoch,
            "link": trial.link.name,
            "put": link_form(trial.link, trial.put),
            "key": trial.key,
            **now.form(),
        }

    async def made(self, line: Mapping[str, Any]) -> Trial:
        """The trial in a line of `blame.jsonl`, with its answer scored."""
        was = self._answers[line["id"], line["epoch"]]
        now = await scored(replace(was, prediction=Prediction.from_form(line, self.run.path), score=None), self.scoring)
        worth, right = self._worth(now.score), self._worth(bounds_of(was.sample, self.scoring)[1])
        return Trial(
            answer=was,
            link=line["link"],
            put=line["put"],
            now=now.prediction,
            worth=worth,
            flips=worth is not None and right is not None and not self._short(worth, right),
        )


JUDGE = "judge"
"""The option of a task that is the model which judges its answers."""


def model_forms(run: Run) -> Mapping[str, Mapping[str, Any]]:
    """The models of a run as it describes them, by role; its judge among them, if it has one."""
    judge: Any = run.configuration["options"].get(JUDGE)
    return {**run.configuration["models"], **({JUDGE: judge} if isinstance(judge, Mapping) else {})}


def _solver(run: Run, task: type[Task], *, engine: Engine, models: Mapping[str, Model]) -> ChainSolver:
    """The run's solver, with the prompts that it was asked with.

    Raises:
        UsageError: it is made only with its data, or is no chain; or the run has no model in a role.
    """
    roles: Mapping[str, Any] = run.configuration["models"]
    known = model_forms(run)
    unknown = [role for role in models if role not in known]
    if unknown:
        raise UsageError(f"The run {str(run.path)!r} has no {unknown[0]!r}.", hint=f"It has {', '.join(known)}.")
    own_models = {role: models.get(role) or model_from_form(form, engine) for role, form in roles.items()}
    prompts = run.path / PROMPTS
    with overlay_prompts(prompts) if prompts.is_dir() else nullcontext():
        solver = as_solver(task.of_run(run.configuration["options"], models=own_models, engine=engine).solver())
        solver = solver.with_extractor(own_models[EXTRACTOR]) if EXTRACTOR in own_models else solver
    if solver.by_chain is None:
        raise UsageError(
            f"The task {run.task!r} is answered by no chain, so that there are no links to blame.",
            hint="Only runs of a chain can be blamed.",
        )
    return solver.by_chain


def _metric(scoring: Scorer, name: str | None) -> Metric:
    known = {metric.name: metric for metric in scoring.metrics if metric.better != "neither"}
    chosen = known.get(name or scoring.metrics[0].name)
    if chosen is None:
        raise UsageError(
            f"No metric {name or scoring.metrics[0].name!r} tells right from wrong.", hint=f"Use {', '.join(known)}."
        )
    return chosen


def _links(chain: Chain, wanted: Collection[str] | None) -> tuple[Link[Any], ...]:
    """The links before the answer that are tried."""
    upstream, name = chain.upstream.get(chain.target.name, ()), chain.get_name()
    links = [link for link in chain.links.values() if link.name in upstream]
    unknown = {*(wanted or ())} - {name for link in links for name in (link.name, link.short)}
    if unknown:
        known = f"It has {', '.join(link.name for link in links)}." if links else "It has none."
        raise UsageError(f"The chain {name!r} has no link {min(unknown)!r} before its answer.", hint=known)
    if not links:
        raise UsageError(
            f"The chain {name!r} answers in one step, so that there are no links to blame.",
            hint="Blame a run whose chain verbalizes first.",
        )
    return tuple(link for link in links if wanted is None or {link.name, link.short} & {*wanted})


def _check_scored(run: Run) -> None:
    if any(answer.prediction.answered for answer in run.answers) and not any(answer.score for answer in run.answers):
        raise UsageError(
            f"The run {str(run.path)!r} has no scores yet.",
            hint="The same command finishes it; or `askance eval score`.",
        )
