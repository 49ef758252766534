"""Writes hard negatives for a data set: one call for each true statement and kind, and files in the authors' shape.

The folder is that of a run (`run.json`, `samples.jsonl`, `calls.jsonl`). The same call opens it again and finishes it:
calls without an answer are made again. A negative is in the files once its call has an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from askance.agents.negative_writer import Domain, NegativeKind, NegativeQuestion, NegativeWriter, kinds_of, normal
from askance.chat import JsonObject, key_of
from askance.errors import OverBudget, UsageError
from askance.evals.job import CountItem, Job, OnProgress
from askance.evals.negatives.option_sets import SIDECAR, HardNegative, TrueStatements, write_options
from askance.evals.negatives.picture_statements import PictureStatements
from askance.evals.run_folder import RunFolder, write_lines
from askance.models import get_model, run_sync, use_draw
from askance.models.capabilities import endpoint_key

if TYPE_CHECKING:
    from askance.chains import Planner
    from askance.models import Engine, Model, ModelLike
    from askance.nodes import Result
    from askance.prompts import PromptLibrary

MOST = 3
"""True statements of an image that negatives are made from: the authors cut their lists there."""

_FILES: Mapping[Domain, str] = {
    "ads": "{}_hard_QA_Combined_Action_Reason_train.json",
    "explanations": "{}_hard_QA_Explanation.json",
}
"""Names of the files, those of ads as the authors' code has them."""
_NAMES = {"statement": "semantic"}
ALL = "large_combined"
"""Stands in the name of the file with the negatives of all kinds."""


# --- what is written ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Which negatives are written; every field decides the answers or their order."""

    domain: Domain = "ads"
    kinds: tuple[NegativeKind, ...] = ()
    """Empty stands for all kinds of the domain."""
    most: int = MOST
    """True statements of an image that negatives are made from, the first in order; no other one is a negative."""
    count: int = 1
    """Negatives of each kind for each true statement."""
    seed: int = 0
    """Of the order of the options, and of what is drawn for the kind `random`."""
    draw: int = 0
    """Another number makes all calls anew, for other answers of the same model."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", kinds_of(self.domain, self.kinds or None))
        if self.most < 1 or self.count < 1:
            raise UsageError("At least one negative of at least one statement is written.", hint="Give 1 or more.")

    def file(self, kind: NegativeKind | None) -> str:
        """Name of the file with the negatives of one kind, or of all for None."""
        return _FILES[self.domain].format(ALL if kind is None else _NAMES.get(kind, kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeCall:
    """One call: a kind of negative for one true statement."""

    statements: TrueStatements
    place: int
    """Of the true statement among those of its image, from 0."""
    kind: NegativeKind

    @property
    def name(self) -> str:
        """Unique among the calls of a run."""
        return f"{self.statements.key}\n{self.kind}\n{self.place}"

    @property
    def statement(self) -> str:
        """The true statement."""
        return self.statements.true[self.place]

    @property
    def question(self) -> NegativeQuestion:
        """What the writer is asked."""
        others = tuple(text for text in self.statements.true if text != self.statement)
        return NegativeQuestion(statement=self.statement, others=others)


def calls_of(sources: Iterable[TrueStatements], recipe: Recipe) -> Iterator[NegativeCall]:
    """Every call that a recipe asks for, image by image."""
    for each in sources:
        for kind in recipe.kinds:
            for place in range(min(recipe.most, len(each.true))):
                yield NegativeCall(statements=each, place=place, kind=kind)


def random_negatives(sources: Sequence[TrueStatements], recipe: Recipe) -> Mapping[str, tuple[str, ...]]:
    """For each call of the kind `random`, by its name: explanations of other images, drawn with the recipe's seed.

    No image gets a text twice, or one that is true of it. A call gets none if too few texts are left for it.
    """
    if "random" not in recipe.kinds:
        return {}
    pool = [(each.key, text) for each in sources for text in each.true]
    drawn: dict[str, tuple[str, ...]] = {}
    for each in sources:
        taken = {normal(text) for text in each.true}
        fresh = iter(Random(f"{recipe.seed}\n{each.key}").sample(pool, len(pool)))
        for call in calls_of([each], recipe):
            if call.kind == "random":
                texts = _next_texts(fresh, recipe.count, apart=each.key, taken=taken)
                drawn[call.name] = texts if len(texts) == recipe.count else ()
    return drawn


def _next_texts(fresh: Iterator[tuple[str, str]], count: int, *, apart: str, taken: set[str]) -> tuple[str, ...]:
    texts: list[str] = []
    while len(texts) < count and (candidate := next(fresh, None)) is not None:
        key, text = candidate
        if key != apart and normal(text) not in taken:
            taken.add(normal(text))
            texts.append(text)
    return tuple(texts)


# --- the run ---


@dataclass(kw_only=True)
class NegativesRun:
    """A run that writes negatives: how far it is, and what it has written."""

    folder: Path
    total: int = 0
    """Calls."""
    done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    left: int = 0
    """Calls that the budget had nothing left for."""
    negatives: int = 0
    """Negatives in the files, equal texts of an image once."""
    files: Mapping[str, int] = field(default_factory=dict[str, int])
    """Images by file."""
    unread: Counter[str] = field(default_factory=Counter[str])
    """Pictures that have no statement to write negatives for, by outcome; see `PictureStatements`."""

    @property
    def complete(self) -> bool:
        """Whether every negative was written."""
        return self.outcomes["answered"] == self.total and not self.unread


async def agenerate(
    sources: Sequence[TrueStatements] | PictureStatements,
    llm: ModelLike | None,
    *,
    out: Path,
    recipe: Recipe | None = None,
    prompts: PromptLibrary | None = None,
    engine: Engine | None = None,
    on_progress: OnProgress | None = None,
) -> NegativesRun:
    """Writes negatives for `sources` into the folder `out`, or finishes a folder that was begun.

    Args:
        sources: what is true of each image; or pictures, about each of which a chain is asked first.
        llm: the model that writes; the kind `random` alone needs none.
        out: folder of the run and of the files.
        recipe: what is written; by default one negative of every kind for ads.
        prompts: where prompts are looked up.
        engine: whose records and budget are used, where `llm` is no model yet.
        on_progress: called after every picture that was asked about first, and after every call that is done.

    Raises:
        UsageError: there is nothing to write for, a model is needed and none is given, or the folder holds something
            else.
        CallError: the model cannot be asked at all.
        StoreError: a file cannot be written.
    """
    recipe = recipe or Recipe()
    model, writers = _writers(sources, llm, recipe, prompts=prompts, engine=engine)
    folder = RunFolder(out, _configuration(sources, recipe, writers, model=model), name=lambda line: str(line["id"]))
    pictures = sources if isinstance(sources, PictureStatements) else None
    try:
        if pictures is not None:
            await pictures.read(out, on_progress)
        true = sources if not isinstance(sources, PictureStatements) else sources.true
        job = _call_job(true, recipe, writers, model=model)
        job = job.kept_in(folder.finished, lambda _, line: folder.add(line))
        job.tell(on_progress, "calls")
        job.models = [model] if model is not None and any(call.kind in writers for call in job.todo) else []
        run = NegativesRun(folder=out, total=len(job.items))
        run.outcomes += Counter(answered=job.done)
        async with job.answered() as lines:
            async for _, line in lines:
                run.outcomes[str(line["outcome"])] += 1
        run.done, run.left = job.done, len(job.left)
        run.negatives, run.files = write_files(out, true, recipe, lines=folder.lines())
        run.unread = Counter() if pictures is None else pictures.unread
        records = None if model is None else model.engine.recorder.records
        also = [] if model is None else [endpoint_key(model.id)]
        also += [] if pictures is None else pictures.calls
        folder.finish(records, also=also, more={"files": dict(run.files), "left": run.left})
    finally:
        folder.close()
        if pictures is not None:
            await pictures.aclose()
    return run


def negative_jobs(
    sources: Sequence[TrueStatements] | PictureStatements,
    llm: ModelLike | None,
    *,
    recipe: Recipe | None = None,
    prompts: PromptLibrary | None = None,
    engine: Engine | None = None,
) -> Iterator[Job[Any, Any, Any]]:
    """What `agenerate` asks, as jobs to be planned: about pictures first, and then for negatives, kind by kind.

    Args:
        sources: what is true of each image; or pictures, about each of which a chain is asked first.
        llm: the model that writes.
        recipe: what is written.
        prompts: where prompts are looked up.
        engine: whose records are used, where `llm` is no model yet.

    Raises:
        UsageError: there is nothing to write for, or a model is needed and none is given.
    """
    recipe = recipe or Recipe()
    model, writers = _writers(sources, llm, recipe, prompts=prompts, engine=engine)
    pictures, true = (sources, ()) if isinstance(sources, PictureStatements) else (None, sources)
    if pictures is not None:
        yield pictures.job()
        true = pictures.true
    job = _call_job(true, recipe, writers, model=model)
    job.counts, job.units = partial(_counting, job, 0 if pictures is None else pictures.waiting), len(sources)
    yield job


@contextmanager
def _counting(job: Job[NegativeCall, Any, Any], waiting: int, planner: Planner) -> Generator[CountItem[NegativeCall]]:
    """A context in which a planner counts calls, and those for pictures that wait for their statements."""
    with planner.counting(job.roles):
        for kind, writer in job.roles:
            planner.counter(kind, writer).add_dependent(waiting)
        yield job.answer


def generate(
    sources: Sequence[TrueStatements] | PictureStatements, llm: ModelLike | None, *, out: Path, **options: Any
) -> NegativesRun:
    """As `agenerate`, from anywhere: scripts, threads, notebooks."""
    return run_sync(agenerate(sources, llm, out=out, **options))


def _writers(
    sources: Sequence[TrueStatements] | PictureStatements,
    llm: ModelLike | None,
    recipe: Recipe,
    *,
    prompts: PromptLibrary | None,
    engine: Engine | None,
) -> tuple[Model | None, dict[NegativeKind, NegativeWriter]]:
    """The model that writes and its writers by kind; no model where the recipe asks none.

    Raises:
        UsageError: there is nothing to write for, or a model is needed and none is given.
    """
    if not sources:
        raise UsageError("There are no true statements to write negatives for.", hint="Check the file and its ids.")
    kinds: list[NegativeKind] = [kind for kind in recipe.kinds if kind != "random"]
    if not kinds:
        return None, {}
    if llm is None:
        raise UsageError("No model is named that writes the negatives.", hint="Give `llm`, or the kind `random` alone.")
    model = get_model(llm, engine=engine)
    return model, {
        kind: NegativeWriter(model, kind=kind, domain=recipe.domain, count=recipe.count, prompts=prompts)
        for kind in kinds
    }


def _configuration(
    sources: Sequence[TrueStatements] | PictureStatements,
    recipe: Recipe,
    writers: Mapping[NegativeKind, NegativeWriter],
    *,
    model: Model | None,
) -> JsonObject:
    """Everything that decides the lines of the folder."""
    return {
        "task": "negatives",
        "domain": recipe.domain,
        "kinds": list(recipe.kinds),
        "most": recipe.most,
        "count": recipe.count,
        "seed": recipe.seed,
        "draw": recipe.draw,
        "model": None if model is None else model.form(),
        "prompts": {prompt.path.name: prompt.digest for node in writers.values() for prompt in node.prompts_in_use},
        "sources": sources.form() if isinstance(sources, PictureStatements) else _form_of(sources),
    }


def _form_of(sources: Sequence[TrueStatements]) -> JsonObject:
    content: JsonObject = {each.key: list(each.true) for each in sources}
    return {"count": len(sources), "digest": key_of("sources", content)}


def _call_job(
    sources: Sequence[TrueStatements],
    recipe: Recipe,
    writers: Mapping[NegativeKind, NegativeWriter],
    *,
    model: Model | None,
) -> Job[NegativeCall, JsonObject, JsonObject]:
    """The lines of the calls for `sources`, as a job."""
    random = random_negatives(sources, recipe)

    async def answer(call: NegativeCall) -> JsonObject | None:
        if (writer := writers.get(call.kind)) is None:
            drawn = random[call.name]
            reason = None if drawn else "there are too few explanations of other images to draw from"
            return _line(call, "answered" if drawn else "skipped", [{"text": text} for text in drawn], reason=reason)
        with use_draw(recipe.draw):
            result = await writer.ask(call.question)
        return None if result.error == OverBudget.__name__ else _line_of_result(call, result)

    return Job(
        items=[*calls_of(sources, recipe)],
        name=lambda call: call.name,
        answer=answer,
        engine=None if model is None else model.engine,
        roles=[*writers.items()],
    )


def _line_of_result(call: NegativeCall, result: Result[Any]) -> JsonObject:
    items = () if result.value is None else result.value.items
    value = [{"text": item.text, "replaced": item.replaced, "replacement": item.replacement} for item in items]
    keys = [each.key for each in result.calls]
    return _line(call, result.outcome, value, reason=result.reason, raw=result.raw, keys=keys)


def _line(
    call: NegativeCall,
    outcome: str,
    value: Sequence[Mapping[str, Any]],
    *,
    reason: str | None = None,
    raw: str | None = None,
    keys: Sequence[str] = (),
) -> JsonObject:
    """The line of one call: what was asked, its outcome and negatives, and the keys of its records."""
    return {
        "id": call.name,
        "image": call.statements.key,
        "kind": call.kind,
        "place": call.place,
        "source": call.statement,
        "outcome": outcome,
        "reason": reason,
        "raw": raw,
        "value": [dict(item) for item in value],
        "links": {"negative": {"outcome": outcome, "calls": list(keys)}} if keys else {},
        "meta": {},
    }


# --- the files ---


def write_files(
    out: Path, sources: Sequence[TrueStatements], recipe: Recipe, *, lines: Iterable[Mapping[str, Any]]
) -> tuple[int, Mapping[str, int]]:
    """Writes the files of the negatives so far: one for each kind, one with all, and the sidecar.

    Returns:
        How many negatives there are, and how many images by file.
    """
    by_image = _by_image(sources, recipe, lines)
    files: dict[str, int] = {}
    for kind in (*recipe.kinds, None):
        images = (
            (each.key, each.true[: recipe.most], options)
            for each in sources
            if (options := _options(each, by_image[each.key], recipe, kind=kind)) is not None
        )
        files[recipe.file(kind)] = write_options(out / recipe.file(kind), images)
    every = [negative for negatives in by_image.values() for negative in negatives]
    write_lines(out / SIDECAR, (negative.form() for negative in every))
    return len(every), files


def _by_image(
    sources: Sequence[TrueStatements], recipe: Recipe, lines: Iterable[Mapping[str, Any]]
) -> Mapping[str, list[HardNegative]]:
    """The negatives of each image in the order of the recipe; of equal texts of an image the first."""
    answered = {str(line["id"]): line for line in lines if line["outcome"] == "answered"}
    by_image: dict[str, dict[str, HardNegative]] = {each.key: {} for each in sources}
    for call in calls_of(sources, recipe):
        for negative in _negatives_of(answered.get(call.name)):
            by_image[call.statements.key].setdefault(normal(negative.text), negative)
    return {key: [*negatives.values()] for key, negatives in by_image.items()}


def _negatives_of(line: Mapping[str, Any] | None) -> Iterator[HardNegative]:
    if line is None:
        return
    calls = tuple(key for link in line["links"].values() for key in link["calls"])
    for item in line["value"]:
        yield HardNegative(
            key=line["image"],
            text=item["text"],
            kind=line["kind"],
            source=line["source"],
            place=line["place"],
            replaced=item.get("replaced"),
            replacement=item.get("replacement"),
            calls=calls,
        )


def _options(
    source: TrueStatements, negatives: Iterable[HardNegative], recipe: Recipe, *, kind: NegativeKind | None
) -> list[str] | None:
    """The true statements and the negatives of a kind, or of all, in an order drawn with the seed; None without any."""
    wrong = [negative.text for negative in negatives if kind in {None, negative.kind}]
    if not wrong:
        return None
    options = [*source.true[: recipe.most], *wrong]
    Random(f"{recipe.seed}\n{source.key}\n{kind}").shuffle(options)
    return options
