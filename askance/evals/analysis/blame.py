"""Blame: which link of a chain causes wrong answers. Each is replaced alone, and what depends on it is asked again.

All other links are given as they were, so the chain asks only for what lies downstream of the replaced link. Requests
that are on record are not made again.

A link *flips* an answer if replacing it makes the answer right. It is *guilty* if it flips the answer and:

- no link before it flips the answer too, since then the mistake came from there;
- dropping it did not remove another link that flips the answer too, since then that link is held guilty.

The results are kept in the run's folder: `blame.jsonl` has one trial a line, `blame.json` the sums, by the way in which
links were replaced. A trial has the key of what it was made from, and is made anew where that has changed. The sums
have the mark of the run and its answers, so that a report shows no blame of another run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, cast

from askance.chat import JsonObject, key_of
from askance.errors import UsageError
from askance.evals.analysis.trial import Place, PlannedTrial, Trial, Trials, place_of
from askance.evals.job import CountItem, FirstFailure, Job
from askance.evals.metric import Figure, Scored, figure, mean
from askance.evals.run_folder import amending, keep_attachments, write_lines, write_whole
from askance.evals.run_format import BLAMES, TRIALS
from askance.evals.run_plan import counting_judges
from askance.evals.sample import Prediction, Sample, SampleResult, Score
from askance.evals.solver import as_solver, plain, solved
from askance.models import run_sync, use_draw
from askance.models.capabilities import endpoint_key
from askance.models.counters import counts_form
from askance.models.factory import model_from_form

if TYPE_CHECKING:
    from askance.chains import Link
    from askance.chains.planner import Planner
    from askance.evals.run import Run
    from askance.evals.task import Task
    from askance.models import Counters, Model

NONE = "none"
"""Stands for wrong answers that no single link flips: several links misled together, or the final choice did."""

LEDGER = "blame-budget.db"
"""File with what the trials spent of the budget."""

FORMAT = 1
"""Version of `blame.jsonl` and `blame.json`."""

OnTrial: TypeAlias = Callable[[int, int], None]
"""Called after each trial with the number of trials that are done, and of all."""

# --- the results of trials ---


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBlame:
    """The results of replacing one link."""

    link: str
    """`none` stands for the answers that no single link flips."""
    flips: Figure
    """Of the wrong answers on which the link was tried, the share that became right."""
    guilty: Figure
    """The share of them for which it is guilty."""
    change: Figure
    """Mean change of the metric."""

    def form(self) -> JsonObject:
        """The same as JSON."""
        figures = {"flips": self.flips, "guilty": self.guilty, "change": self.change}
        return {"link": self.link, **{name: each.form() for name, each in figures.items()}}

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> LinkBlame:
        """The results in `form`.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: it is malformed.
        """
        figures = {name: Figure.from_form(form[name]) for name in ("flips", "guilty", "change")}
        return cls(link=str(form["link"]), **figures)


@dataclass(frozen=True, kw_only=True)
class Blame:
    """The blame of a run: which links of its chain cause its wrong answers."""

    how: str
    """How links were replaced: `dropped`, `truth`, or `run …`."""
    words: str
    """What was done to a link, as a participle for sentences: `dropped`."""
    metric: str
    samples: int
    """How many answers the run has."""
    unanswered: int
    """How many of them have no answer or no score; no link is tried on them."""
    wrong: tuple[SampleResult, ...]
    """The answers that score less than a right one."""
    trials: tuple[Trial, ...]
    above: Mapping[str, tuple[str, ...]]
    """By link, the links that it depends on."""
    known: Mapping[str, Link[Any]]
    """By name, the links of the chain, in its order."""
    worth: Mapping[Place, tuple[float, float]] = field(default_factory=dict[Any, Any])
    """By sample and epoch of a wrong answer, its metric and that of a right one."""
    unmoved: frozenset[Place] = frozenset()
    """Wrong answers on which no link was tried, because every replacement equals the link that it would replace."""
    percent: bool = True
    left: int = 0
    """Trials that were not made because the budget was used up."""
    seed: int = 0
    """Of the bootstraps."""
    counters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By model, what it computed for the trials in all processes, as `run.json` has it."""

    @classmethod
    def of(cls, trials: Trials, finished: Sequence[Trial], *, left: int, seed: int) -> Blame:
        """The blame of a run from the trials that were made."""
        answers, worth = trials.run.answers, trials.worth
        places = {link: place for place, link in enumerate(trials.chain.links)}
        known = (each for each in finished if place_of(each.answer) in worth)
        return cls(
            how=trials.replacement.name,
            words=trials.replacement.words,
            metric=trials.metric.name,
            samples=len(answers),
            unanswered=sum(answer.score is None for answer in answers),
            wrong=trials.wrong,
            trials=tuple(sorted(known, key=lambda each: (*place_of(each.answer), places[each.link]))),
            above=trials.above,
            known=trials.chain.links,
            worth=worth,
            unmoved=frozenset(trials.unmoved),
            percent=trials.metric.percent,
            left=left,
            seed=seed,
        )

    @cached_property
    def by_answer(self) -> Mapping[Place, Mapping[str, Trial]]:
        """The trials of each wrong answer, by sample and epoch."""
        by_place: dict[Place, dict[str, Trial]] = {place_of(answer): {} for answer in self.wrong}
        for trial in self.trials:
            by_place[place_of(trial.answer)][trial.link] = trial
        return by_place

    def flips(self, answer: SampleResult) -> tuple[str, ...]:
        """The links that flip an answer."""
        trials = self.by_answer.get(place_of(answer), {})
        return tuple(link for link in self.known if link in trials and trials[link].flips)

    def guilty(self, answer: SampleResult) -> tuple[str, ...]:
        """The links that are guilty of an answer; several if each of them alone would have made it right."""
        trials = self.by_answer.get(place_of(answer), {})
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
    def sums(self) -> tuple[LinkBlame, ...]:
        """The results of each link, and at the end those of answers that no link flips."""
        tried = [answer for answer in self.wrong if self._tried(answer)]
        return (*(self._sum(link) for link in self.links), *([self._unexplained(tried)] if tried else []))

    def _tried(self, answer: SampleResult) -> bool:
        place = place_of(answer)
        return place in self.unmoved or bool(self.by_answer[place])

    def _sum(self, link: str) -> LinkBlame:
        rows: list[Scored] = []
        for trial in self.trials:
            if trial.link == link:
                was, right = self.worth[place_of(trial.answer)]
                now = None
                if trial.worth is not None:
                    now = _score(trial.flips, link in self.guilty(trial.answer), trial.worth - was)
                rows.append(_scored_of(trial.answer, now, right - was))
        return self._figured(link, rows)

    def _unexplained(self, answers: Sequence[SampleResult]) -> LinkBlame:
        rows = [
            _scored_of(answer, _score(not self.flips(answer), not self.guilty(answer), 0.0), 0.0) for answer in answers
        ]
        return self._figured(NONE, rows)

    def _figured(self, link: str, rows: Sequence[Scored]) -> LinkBlame:
        shares = [figure(mean(name), rows, seed=self.seed) for name in ("flips", "guilty")]
        change = figure(mean("change", percent=self.percent), rows, seed=self.seed)
        return LinkBlame(link=link, flips=shares[0], guilty=shares[1], change=change)

    def form(self) -> JsonObject:
        """The blame as JSON; each wrong answer has the links that flip it and those that are guilty."""
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

    def _answer_form(self, answer: SampleResult) -> JsonObject:
        place = place_of(answer)
        trials = self.by_answer[place]
        return {
            "id": answer.sample.id,
            "epoch": answer.epoch,
            "worth": self.worth[place][0],
            "tried": {link: trials[link].worth for link in self.known if link in trials},
            "flips": list(self.flips(answer)),
            "guilty": list(self.guilty(answer)),
            **({"unmoved": True} if place in self.unmoved else {}),
        }


def _score(flips: bool, guilty: bool, change: float) -> Score:  # noqa: FBT001  # named where they are read
    return Score(values={"flips": float(flips), "guilty": float(guilty), "change": change})


def _scored_of(answer: SampleResult, now: Score | None, most: float) -> Scored:
    wrong, right = _score(False, False, 0.0), _score(True, True, most)  # noqa: FBT003
    return Scored(cluster=answer.sample.cluster, score=now, if_wrong=wrong, if_right=right)


# --- making the trials ---


async def make_blame(
    trials: Trials, *, out: Path | None = None, on_trial: OnTrial | None = None, seed: int = 0
) -> Blame:
    """Makes the trials that were not made before; returns the blame from all of them.

    Args:
        trials: the trials of a run.
        out: folder for the results; by default the run's.
        on_trial: called after every trial.
        seed: of the bootstraps.

    Raises:
        UsageError: a model cannot be asked, because only the run describes it.
        CallError: a model cannot be reached at all.
        StoreError: another process is writing the run, or a file cannot be written.
    """
    if not trials.wrong:
        return Blame.of(trials, [], left=0, seed=seed)
    folder = out or trials.run.path
    with _held(folder, own=out is None):
        finished = {line["key"]: line for line in trials.still_true(read_trials(folder))}
        others = [line for line in read_trials(folder) if line["how"] != trials.replacement.name]
        write_lines(folder / TRIALS, [*others, *finished.values()])
        judges, counters = dict.fromkeys(judge.model for judge in trials.scoring.judges), dict[str, Any]()
        try:
            with (folder / TRIALS).open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as lines:
                job = _kept_job(trials, finished, lines=lines)
                if on_trial is not None:
                    on_trial(len(finished), len(finished) + len(job.todo))
                    job.on_progress = lambda done, total: on_trial(len(finished), len(finished) + total - done)
                job.counting = [*job.models, *judges]
                job.counted = lambda counts: counters.update(_add_counts(folder, trials, counts=counts))
                async with job.answered() as answered:
                    async for _ in answered:
                        pass
                    done = [await trials.made(line) for line in finished.values()]
        finally:
            for each in (*judges, *trials.scoring.closing):
                await each.aclose()
        blame = replace(Blame.of(trials, done, left=len(job.left), seed=seed), counters=counters)
        _save(folder, blame, trials.run)
    return blame


def blame_job(trials: Trials) -> Job[PlannedTrial, Prediction, Any]:
    """The new answers of all trials, as a job; its plan counts the calls of the scorer's judges, too."""
    solver = trials.solver

    async def make(trial: PlannedTrial) -> Prediction:
        async def solve(sample: Sample) -> Prediction:
            return solver.prediction(await solver.chain.ainvoke(trial.given), sample)

        with use_draw(trial.answer.epoch):
            return plain(await solved(as_solver(solve), trial.answer.sample))

    return Job(
        items=[*trials],
        name=lambda trial: trial.key,
        answer=make,
        counts=partial(_counting, trials),
        models=solver.models,
        engine=trials.engine,
        unit="trial",
    )


@contextmanager
def _counting(trials: Trials, planner: Planner) -> Generator[CountItem[PlannedTrial]]:
    """A context in which a planner counts what trials, and the scores of their answers, ask."""
    walk = planner.walk(trials.chain)
    with counting_judges(planner, trials.scoring) as judged:

        async def count(trial: PlannedTrial) -> None:
            sample, epoch = trial.answer.sample, trial.answer.epoch
            reading = await walk.read(trial.given, draw=epoch)
            await judged(await trials.solver.predicted(reading, sample), sample, epoch=epoch)

        yield count


def _kept_job(
    trials: Trials, finished: dict[str, JsonObject], *, lines: IO[str]
) -> Job[PlannedTrial, Prediction, JsonObject]:
    """The trials that are not in `finished` yet; each is written to `lines`, and put into `finished`."""
    run, first = trials.run, FirstFailure()

    def accepts(now: Prediction) -> bool:
        _stop_if_nobody(now)
        return first.accepts(now.links, answered=now.answered, calls=now.meta.get("calls", 0), reason=now.reason)

    def keep(trial: PlannedTrial, now: Prediction) -> JsonObject:
        finished[trial.key] = trials.line(trial, now)
        keep_attachments(run.path, now.attachments)
        _write_line(lines, finished[trial.key])
        return finished[trial.key]

    job = blame_job(trials).kept_in({**finished}, keep)
    job.accepts = accepts
    for model in job.models if job.todo else ():
        _ask_as_before(model, run)
    return job


def _ask_as_before(model: Model, run: Run) -> None:
    """Has a model asked in the form in which the run asked it, where the records do not say which that is."""
    record = None if model.known is not None else run.records.get(endpoint_key(model.id))
    if record is not None:
        from_run = model_from_form({**model.form(), "declared": record.response}, model.engine).known
        if from_run is not None:
            model.engine.endpoints[endpoint_key(model.id)] = from_run


def _stop_if_nobody(prediction: Prediction) -> None:
    """Ends the trials where a model is known from the run alone.

    Raises:
        UsageError: it is.
    """
    for link in prediction.links.values():
        if link.get("error") == UsageError.__name__:
            raise UsageError(
                str(link.get("reason") or prediction.reason),
                hint="Name the model: `--vlm SPEC`, or `models=` in Python.",
            )


async def ablame(
    run: Run,
    task: type[Task],
    *,
    out: Path | None = None,
    on_trial: OnTrial | None = None,
    seed: int = 0,
    **options: Any,
) -> Blame:
    """Finds which links of the chain of `run` cause its wrong answers.

    Args:
        run: a finished run with its scores.
        task: the class of its task.
        out: folder for the results; by default the run's.
        on_trial: called after every trial.
        seed: of the bootstraps.
        options: those of `Trials`: the `engine`, and perhaps `models`, `replacement`, `links`, `metric`.

    Raises:
        UsageError: as `Trials` and `make_blame`.
        CallError: a model cannot be reached at all.
        StoreError: another process is writing the run, or a file cannot be written.
    """
    return await make_blame(Trials(run, task, **options), out=out, on_trial=on_trial, seed=seed)


def blame(run: Run, task: type[Task], **options: Any) -> Blame:
    """As `ablame`, from anywhere: scripts, threads, notebooks."""
    return run_sync(ablame(run, task, **options))


# --- the files ---


@contextmanager
def _held(folder: Path, *, own: bool) -> Generator[None]:
    """Locks the run's folder, or makes another folder."""
    if own:
        with amending(folder):
            yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    yield


def read_trials(folder: Path) -> Iterator[JsonObject]:
    """The lines of `blame.jsonl`, if there is one; a line that was cut off is left out."""
    if not (folder / TRIALS).exists():
        return
    for text in (folder / TRIALS).read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            line: Any = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and {"how", "key", "id", "epoch", "link", "outcome", "links"} <= line.keys():
            yield cast("JsonObject", line)


def _write_line(file: IO[str], line: Mapping[str, Any]) -> None:
    """Writes a line to the disk."""
    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    file.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlames:
    """The earlier blames in a folder, by the way in which links were replaced."""

    forms: Mapping[str, JsonObject] = field(default_factory=dict[str, Any])
    """As `Blame.form` gives them."""
    runs: Mapping[str, str] = field(default_factory=dict[str, str])
    """The mark of the run of each, see `mark_of`."""
    counters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])
    """What models computed for each, with the run that it was for."""
    readable: bool = True
    """Whether this version can read the file, if there is one."""

    @classmethod
    def read(cls, folder: Path) -> StoredBlames:
        """The blames in the `blame.json` of a folder; none if there is no such file."""
        if not (folder / BLAMES).exists():
            return cls()
        try:
            form: Any = json.loads((folder / BLAMES).read_text(encoding="utf-8"))
            if form["format"] != FORMAT:
                return cls(readable=False)
            parts = (form["blames"], form.get("runs", {}), form.get("counters", {}))
            forms, runs, counters = (dict(part) for part in parts)
            return cls(forms=forms, runs=runs, counters=counters)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return cls(readable=False)

    def write(self, folder: Path) -> None:
        """Writes `blame.json`, whole or not at all."""
        content = {
            "format": FORMAT,
            "blames": dict(self.forms),
            "runs": dict(self.runs),
            **({"counters": dict(self.counters)} if self.counters else {}),
        }
        write_whole(folder / BLAMES, json.dumps(content, ensure_ascii=False, indent=2) + "\n")

    def counted(self, how: str, run: Run) -> Mapping[str, Any]:
        """By model, what was computed for the blame of this run in all processes."""
        totals = self.counters.get(how, {})
        return totals["models"] if totals.get("run") == _configured(run) else {}

    def with_counts(self, how: str, run: Run, *, models: Mapping[str, Any]) -> StoredBlames:
        """These blames, with what was computed for the blame of a run."""
        others = {each: counts for each, counts in self.counters.items() if each != how}
        own = {how: {"run": _configured(run), "models": dict(models)}} if models else {}
        return replace(self, counters={**others, **own})


def mark_of(run: Run) -> str:
    """A key that changes with the run's configuration, answers and scores."""
    return key_of("blamed", {"run": dict(run.configuration), "answers": [_mark(answer) for answer in run.answers]})


def _mark(answer: SampleResult) -> list[Any]:
    sample, prediction = answer.sample, answer.prediction.form()
    del prediction["meta"]
    question = [sample.id, answer.epoch, sample.image and sample.image.sha256, sample.inputs_form(), sample.target]
    values = None if answer.score is None else {name: repr(float(each)) for name, each in answer.score.values.items()}
    return [*question, prediction, values]


def _configured(run: Run) -> str:
    """A key that changes with the run's configuration only: the counts of all its processes belong together."""
    return key_of("run", dict(run.configuration))


def _save(folder: Path, blame: Blame, run: Run) -> None:
    """Writes the blame of a run beside those with other replacements."""
    stored = StoredBlames.read(folder)
    forms, runs = {**stored.forms, blame.how: blame.form()}, {**stored.runs, blame.how: mark_of(run)}
    replace(stored, forms=forms, runs=runs).with_counts(blame.how, run, models=blame.counters).write(folder)


def _add_counts(folder: Path, trials: Trials, *, counts: Mapping[str, Counters]) -> JsonObject:
    """Adds what models computed in this process to earlier counts; returns the sums, by model."""
    how, stored = trials.replacement.name, StoredBlames.read(folder)
    total = counts_form(counts, stored.counted(how, trials.run))
    if counts:
        stored.with_counts(how, trials.run, models=total).write(folder)
    return total
