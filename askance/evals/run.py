"""`Run`: a run read from its folder: configuration, every sample's answer and score, and the figures.

A chain's run over single pictures is a run, too. Its samples are the pictures; it has no scores and no figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance import __version__
from askance.amounts import many
from askance.chains.output_line import link_values
from askance.documents import UnreadableDocument, parse_json
from askance.errors import UsageError
from askance.evals.exports.frames import pandas_frame, polars_frame
from askance.evals.exports.rows import Columns, answer_row, columns_of, picture_row
from askance.evals.metric import Figure, MissingAnswerPolicy
from askance.evals.report.elements import Drawing, drawing_of, interval_text, leading_figures
from askance.evals.report.html import render
from askance.evals.run_folder import records_of
from askance.evals.run_format import (
    COUNTERS,
    DESCRIPTION,
    LARGEST_DESCRIPTION,
    LARGEST_PROMPT,
    PLACES,
    PROMPTS,
    READ_BY,
    SAMPLES,
    SCORES,
    PictureLine,
    SampleLine,
    ScoreLine,
    lines_of,
    read_description,
)
from askance.evals.sample import Prediction, Sample, SampleResult, Score
from askance.evals.tables import shown_value
from askance.images import Image
from askance.nodes.reply import READERS
from askance.replay import MemoryStore

if TYPE_CHECKING:
    from askance.chains import Reading
    from askance.chat import Json, JsonObject
    from askance.replay import Records


@dataclass(frozen=True, kw_only=True)
class Run:
    """An evaluation or a chain's run over single pictures, finished or not, as its folder has it."""

    path: Path
    configuration: Mapping[str, Any]
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    totals: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How many samples, outcomes of each kind, and records there are."""
    finished: str | None = None
    """Time of the end in ISO form; None if the run is not finished."""
    left: int = 0
    """Samples without an answer because the budget was used up."""
    seed: int = 0
    """Seed of the bootstraps."""
    counters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By name of a model that counts its work: what it computed and what it found on record, as `Counters` has it."""
    label: str = ""
    """Its name in tables, if it was given one; not part of the configuration."""
    data_notes: tuple[str, ...] = ()
    """Those of `notes` that are about the data, not the scoring."""
    origin: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Where the task is defined, if its name does not say so."""
    made_by: str = ""
    """Version of askance that wrote it."""
    readers: int = READERS
    """Version of the reply readers, `askance.nodes.reply.READERS` at the time."""
    kept: bool = True
    """Whether it lies in the folder `path`."""

    @cached_property
    def picture_places(self) -> Mapping[str, str]:
        """Where on this machine the picture of a sample lay, by its id; empty where that is not known."""
        file = self.path / PLACES
        try:  # somebody else may have written it
            if not file.is_file() or file.stat().st_size > LARGEST_DESCRIPTION:
                return {}
            places = parse_json(file.read_bytes())
        except (OSError, UnreadableDocument):
            return {}
        form = cast("Mapping[str, Any]", places if isinstance(places, dict) else {})
        return {name: place for name, place in form.items() if isinstance(place, str) and "\0" not in place}

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """The run in the folder `path`.

        Raises:
            UsageError: the folder is missing, holds no run, one of another version, or one that was spoilt.
        """
        folder = Path(path)
        form = read_description(folder)
        as_they_are = ("configuration", "totals", "finished", "left", "seed", COUNTERS, "label", "origin", READ_BY)
        return cls(
            path=folder,
            figures=tuple(Figure.from_form(each) for each in form.get("figures", ())),
            notes=tuple(form.get("notes", ())),
            data_notes=tuple(form.get("data_notes", ())),
            made_by=form.get("askance", ""),
            **{name: form[name] for name in as_they_are if name in form},
        )

    @classmethod
    def open_all(cls, paths: Iterable[str | Path]) -> list[Run]:
        """The runs in folders; a folder that is no run itself stands for all runs in it, by name.

        Raises:
            UsageError: a folder holds no run, or as `open`.
        """
        runs: list[Run] = []
        for folder in map(Path, paths):
            whole = (folder / DESCRIPTION).is_file() or not folder.is_dir()
            inner = [] if whole else sorted(each.parent for each in folder.glob(f"*/{DESCRIPTION}"))
            runs += map(cls.open, inner or [folder])
        return runs

    @property
    def convention(self) -> MissingAnswerPolicy:
        """Whether samples without an answer count as wrong or are left out of the figures."""
        return self.figures[0].convention if self.figures else "wrong"

    @property
    def task(self) -> str:
        """Name of the task; of a run over pictures, that of its chain."""
        return str(self.configuration.get("task") or self.configuration.get("chain") or "run")

    @property
    def of_pictures(self) -> bool:
        """Whether a chain read single pictures: there is no task, so nothing is true of them and nothing is scored."""
        return "task" not in self.configuration

    @property
    def noun(self) -> str:
        """What its samples are called: sample, or picture."""
        return "picture" if self.of_pictures else "sample"

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of its task; of a run over pictures, those of its chain."""
        if not self.of_pictures:
            return self.configuration["options"]
        return {name: value for name, value in self.configuration.items() if name not in {"models", "samples"}}

    @property
    def solver(self) -> Mapping[str, Any]:
        """What decides its answers, as far as the solver says: for a chain its links, models and prompts."""
        return self.configuration if self.of_pictures else self.configuration["solver"]

    @property
    def name(self) -> str:
        """A name in one line: its label, else its models and control, else its folder."""
        if self.label:
            return self.label
        control = self.configuration.get("options", {}).get("control")
        models = " + ".join(self.models) or self.path.name
        return f"{models} ({control})" if control else models

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that the run asked, each once."""
        forms = [form for each in (self.configuration, self.solver) for _, form in _roles(each)]
        return tuple(dict.fromkeys(str(form["id"].get("name") or form["id"].get("model")) for form in forms))

    @property
    def roles(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """The models that it asked, each by its role; the role is empty where the run does not say it."""
        return _roles(self.configuration) or _roles(self.solver)

    @cached_property
    def facts(self) -> Mapping[str, str]:
        """`hash`, `askance` (the version), `started` and `finished` of `run.json`, as far as it has them."""
        form = read_description(self.path)
        return {name: str(form[name]) for name in ("hash", "askance", "started", "finished") if form.get(name)}

    @cached_property
    def prompts(self) -> Mapping[str, str]:
        """Texts of the prompt files that it was made with, by name, as far as its folder has them."""
        names = [str(name) for name in self.solver.get("prompts", {})]
        files = {
            name: self.path / PROMPTS / name
            for name in names
            if "/" not in name and "\\" not in name and not (self.path / PROMPTS).is_symlink()
        }
        # Anybody may have written the names, and the folder.
        inside = {name: file for name, file in files.items() if file.is_file() and not file.is_symlink()}
        short = {name: file for name, file in inside.items() if file.stat().st_size <= LARGEST_PROMPT}
        return {name: file.read_text(encoding="utf-8", errors="replace") for name, file in short.items()}

    def figure(self, metric: str) -> Figure:
        """The figure of `metric`.

        Raises:
            UsageError: the run has none of that name.
        """
        for each in self.figures:
            if each.metric == metric:
                return each
        known = ", ".join(each.metric for each in self.figures) or "none: it is not finished"
        raise UsageError(f"The run {str(self.path)!r} has no figure {metric!r}.", hint=f"It has {known}.")

    @cached_property
    def answers(self) -> Sequence[SampleResult]:
        """Every sample's result, ordered by sample and epoch.

        Raises:
            UsageError: a line of the run is malformed.
        """
        if self.of_pictures:
            return sorted(self._unscored(), key=_place)
        scores = {(form["id"], form["epoch"]): form for form in lines_of(self.path / SCORES, ScoreLine)}
        results: list[SampleResult] = []
        for answer in self._unscored():
            form = scores.get((answer.sample.id, answer.epoch))
            results.append(answer if form is None else _with_score(answer, form))
        return sorted(results, key=_place)

    def _unscored(self) -> Iterator[SampleResult]:
        """The answers without their scores, in the order of the lines."""
        if not self.of_pictures:
            yield from (answer_of(line, self.path) for line in lines_of(self.path / SAMPLES, SampleLine))
            return
        options: Mapping[str, Any] = self.configuration.get("samples", {})
        questions: Mapping[str, str] = self.configuration.get("questions", {})
        for line in lines_of(self.path / SAMPLES, PictureLine):
            yield picture_answer(line, options.get(line["image"]), questions.get(line["image"]))

    def unanswered(self) -> Sequence[SampleResult]:
        """The samples without an answer, ordered by sample and epoch; only these are held in memory.

        Raises:
            UsageError: a line of the run is malformed.
        """
        return sorted((answer for answer in self._unscored() if not answer.prediction.answered), key=_place)

    @cached_property
    def records(self) -> Records:
        """The records of the run; their file is read and checked when one of them is first looked up."""
        return records_of(self.path)

    def scored(self, answers: Sequence[SampleResult], figures: Sequence[Figure]) -> Run:
        """This run with other results and figures; the folder does not change."""
        run = replace(self, figures=tuple(figures))
        run.__dict__["answers"] = answers
        return run

    def with_images(self, images: Iterable[Image]) -> Run:
        """This run with pictures in place of their digests; the folder does not change."""
        by_digest = {image.sha256: image for image in images}
        digests = [None if answer.sample.image is None else answer.sample.image.sha256 for answer in self.answers]
        answers = [
            replace(answer, sample=replace(answer.sample, image=by_digest[digest])) if digest in by_digest else answer
            for answer, digest in zip(self.answers, digests, strict=True)
        ]
        return self.scored(answers, self.figures)

    @classmethod
    def unkept(
        cls,
        configuration: Mapping[str, Any],
        *,
        answers: Sequence[SampleResult],
        records: Records | None = None,
        prompts: Mapping[str, str] | None = None,
    ) -> Run:
        """A run that lies in no folder, of answers that nobody scores.

        Args:
            configuration: as `run.json` would have it.
            answers: in their order.
            records: that the answers rest on.
            prompts: texts of the prompt files, by name.
        """
        outcomes = Counter(answer.prediction.outcome for answer in answers)
        totals = {"samples": len(answers), "outcomes": dict(sorted(outcomes.items()))}
        run = cls(path=Path("readings"), configuration=configuration, totals=totals, made_by=__version__, kept=False)
        run.__dict__.update(
            answers=answers, records=records or MemoryStore(), prompts=prompts or {}, facts={"askance": __version__}
        )
        return run

    @classmethod
    def of_readings(cls, readings: Iterable[Reading]) -> Run:
        """What a chain has read, as a run that lies in no folder: it can be looked at and exported like any other."""
        answers = [picture_answer(reading.to_dict(), reading.options) for reading in readings]
        return cls.unkept({"chain": "readings"}, answers=answers)

    def rows(self) -> Iterator[JsonObject]:
        """Every result as one flat object; lists and maps stay what they are, and all have the same names."""
        row = picture_row if self.of_pictures else answer_row
        return (row(answer) for answer in self.answers)

    def columns(self) -> Columns:
        """The same by column, each of one type: lists and maps are JSON texts; what a row lacks is None."""
        return columns_of(self.rows())

    def to_pandas(self) -> Any:
        """The results as a pandas `DataFrame`, one row each; lists and maps are JSON texts.

        Raises:
            MissingExtra: pandas is not installed.
        """
        return pandas_frame(self.columns())

    def plot(self, metrics: Sequence[str] | None = None) -> Drawing:
        """A plot of the figures with their intervals. A notebook shows it, and `save` writes it as SVG.

        Args:
            metrics: names of the metrics; by default the first ones that say how right the answers are.

        Raises:
            UsageError: there is nothing to plot, or percentages and other numbers are mixed.
        """
        figures = leading_figures(self.figures) if metrics is None else [self.figure(name) for name in metrics]
        if not figures:
            raise UsageError(f"The run {str(self.path)!r} has no figures to draw.", hint="Finish it first.")
        return drawing_of(figures, title=f"{self.task} · {self.name}")

    def to_polars(self) -> Any:
        """As `to_pandas`, but a polars `DataFrame`.

        Raises:
            MissingExtra: polars is not installed.
        """
        return polars_frame(self.columns())

    def _repr_html_(self) -> str:
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in self.totals.get("outcomes", {}).items())
        samples = many(self.totals.get("samples", 0), self.noun)
        state = f"{samples}: {outcomes or 'none'}" if self.finished or not self.kept else "not finished"
        head = ("metric", "value", "95 % interval", "n", "answered")
        rows = [_shown(figure) for figure in self.figures]
        return render(
            "notebook.html", task=self.task, parts=[("", self.name), ("", state)], head=head, rows=rows, notes=()
        )

    def __repr__(self) -> str:
        state = f"{self.totals.get('samples', 0)} {self.noun}s" if self.finished or not self.kept else "not finished"
        return f"Run({self.task!r}, {str(self.path)!r}, {state})"


def _shown(figure: Figure) -> tuple[str, ...]:
    value = shown_value(figure.value, percent=figure.percent)
    interval = interval_text(figure.interval, percent=figure.percent)
    return figure.metric, value, interval, f"{figure.samples:,}", f"{figure.answered:,}"


def _place(answer: SampleResult) -> tuple[str, int]:
    return answer.sample.id, answer.epoch


def line_of_answer(answer: SampleResult) -> JsonObject:
    """The line of a result in `samples.jsonl`; only `meta` changes when a run is repeated."""
    prediction = answer.prediction.form()
    meta = prediction.pop("meta")
    return {
        "id": answer.sample.id,
        "epoch": answer.epoch,
        "sample": answer.sample.form(),
        **prediction,
        "meta": meta,
    }


def answer_of(line: Mapping[str, Any], folder: Path) -> SampleResult:
    """The result in a line of `samples.jsonl`.

    Args:
        line: its content.
        folder: of the run, with the attachments.

    Raises:
        UsageError: the line is malformed.
    """
    try:
        sample = Sample.from_form(line["sample"])
        return SampleResult(sample=sample, epoch=int(line["epoch"]), prediction=Prediction.from_form(line, folder))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"This is no line of a run: {str(line)[:80]!r}.", hint="Give a line of a run's `samples.jsonl`."
        ) from error


_PICTURE_TRACE = ("verbalization", "statement", "statement_reason", "answers")


def picture_answer(
    line: Mapping[str, Any], options: Sequence[str] | None = None, question: str | None = None
) -> SampleResult:
    """The answer that the line of a picture tells of; nothing is true of it.

    Args:
        line: as `Reading.to_dict` gives it.
        options: what could be chosen from.
        question: what was asked about this picture alone.
    """
    name, digest = str(line["image"]), line.get("sha256")
    trace = {each: line.get(each) for each in _PICTURE_TRACE}
    return SampleResult(
        sample=Sample(
            id=name,
            image=None if digest is None else Image.from_digest(str(digest), name=name),
            inputs={
                **({"options": list(options)} if options else {}),
                **({"question": question} if question else {}),
            },
        ),
        epoch=0,
        prediction=Prediction(
            outcome=line["outcome"],
            value=_last_value(line) if line["outcome"] == "answered" else None,
            reason=line.get("reason"),
            links=line["links"],
            trace={**trace, "reply": line["reply"]} if line.get("reply") is not None else trace,
            meta=line.get("meta", {}),
        ),
    )


def _last_value(line: Mapping[str, Any]) -> Json:
    """What the chain was after: the value of its last link that has one."""
    values = link_values(line)
    last = next(reversed(values), "")
    return line["statement"].get("text") if last == "statement" else values.get(last)


def _roles(form: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Roles and models of a configuration or of a solver's form; a list of models says no roles."""
    models: Any = form.get("models", {})
    if isinstance(models, list):
        return [("", each) for each in cast("list[Mapping[str, Any]]", models)]
    return [*cast("dict[str, Mapping[str, Any]]", models).items()]


def name_of_line(line: Mapping[str, Any]) -> str:
    """Name of the sample and epoch that a line is about."""
    return f"{line['id']}\n{line['epoch']}"


def _with_score(answer: SampleResult, form: Mapping[str, Any]) -> SampleResult:
    score = Score(values=form["values"], notes=form["notes"], calls=tuple(form["calls"]), withheld=form.get("withheld"))
    return SampleResult(sample=answer.sample, epoch=answer.epoch, prediction=answer.prediction, score=score)
