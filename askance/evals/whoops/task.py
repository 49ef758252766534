"""Base classes of the tasks over WHOOPS!: which images they are run on, their contexts, and figures by category."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, get_args

from pydantic import Field
from typing_extensions import override

from askance.chains import ANSWERS, SeenContext
from askance.chains.chain import NodeLike
from askance.errors import BadData, UsageError
from askance.evals.part import Question
from askance.evals.sample import Sample
from askance.evals.suite.any_solver import AnySolver
from askance.evals.suite.breakdown import by_tag
from askance.evals.suite.context import GOLD, NOTHING, TEXT_ONLY, InContext
from askance.evals.suite.option_orders import question_id
from askance.evals.suite.selection import FOLDS, Subset, fold_of
from askance.evals.suite.shots import SHOTS_NOTE, Examples, ShotFacts
from askance.evals.task import Task
from askance.evals.whoops.dataset import Need, Whoops
from askance.nodes import Example

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.scorer import Scorer
    from askance.evals.solver import Solver
    from askance.evals.whoops.images import WeirdImage
    from askance.images import Image

Load: TypeAlias = "Callable[[], Image | None]"
"""Loads a picture; None where there is none."""

CONTEXTS: tuple[str, ...] = (*get_args(SeenContext), GOLD, TEXT_ONLY)


class WeirdModel(InContext):
    """A model that answers about weird images; nobody has described them, so that it needs a VLM for what it sees."""

    contexts: tuple[str, ...] = CONTEXTS
    undescribed: str = "The images of examples are not described"

    @override
    def solver(self, question: Question) -> Solver:
        if self.parsed_context.looks and self.vlm is None:
            raise UsageError(f"The context {self.context!r} looks at the picture.", hint="Give a `vlm`.")
        return super().solver(question)


class WeirdTask(Task):
    """A task over weird images, of the data set or of a user's own folder."""

    agent: ClassVar[Callable[..., NodeLike] | None] = None
    """What answers; None where a task says so itself."""
    chooses: ClassVar[bool] = False
    """Whether one of several options is chosen: a target then has the places of the `true` ones, from 1."""

    data: Path
    """Folder of the data set."""
    ids: Path | Sequence[str] | None = None
    """File that lists the images."""
    limit: int | None = Field(default=None, ge=1, exclude=True)
    """How many images at most."""
    seed: int = 0
    """Seed of all random choices: images, options, their order, folds."""
    fold: int | None = Field(default=None, ge=0, le=FOLDS - 1)
    """Only the test images of this fold, from 0."""

    examples: Examples = Examples(note=SHOTS_NOTE)
    """The answered examples before each question."""
    model: WeirdModel = WeirdModel()
    """The model that answers."""
    other: AnySolver = AnySolver()
    """A solver in its place."""

    def answer_of(self, sample: Sample) -> str | int:
        """The answer to a sample, as an example shows it."""
        return sample.target["true"][0]

    def label_of(self, sample: Sample) -> str:
        """The answer to a sample, where answers are few; empty where they are free."""
        return str(self.answer_of(sample)) if self.chooses else ""

    @override
    def question(self) -> Question:
        context, agent, name = self.model.parsed_context, type(self).agent, self.name.partition("/")[2]
        if agent is None or not self.chooses:
            return Question(name=name, agent=agent, asks=context.visual_question, given=self.given)
        return Question(
            name=name,
            agent=partial(agent, mode="single"),
            asks=context.options_question,
            target=ANSWERS,
            given=self.given,
            count=1,
            seed=self.seed,
        )

    def text_of(self, sample: Sample) -> str:
        """What examples are compared by where no pictures are: what is said of an image."""
        description: Any = sample.inputs.get("description", "")
        return "" if description == NOTHING else str(description)

    def with_examples(
        self,
        samples: Sequence[Sample],
        pool: Iterable[Sample],
        *,
        folds: Mapping[str, int],
        pictures: Mapping[str, Load],
    ) -> list[Sample]:
        """The samples with their pictures, and with examples of images outside their own folds.

        Args:
            samples: without pictures.
            pool: what may be shown, without pictures.
            folds: the fold of each group of samples.
            pictures: by sample, what loads its picture.
        """

        def example(sample: Sample) -> Example:
            values = {name: value for name, value in sample.inputs.items() if name in {"options", "question"}}
            described = {} if self.model.parsed_context.picture else {"description": sample.inputs["description"]}
            image = pictures[sample.id]() if self.model.parsed_context.picture else None
            return Example(values={**values, **described}, answer=self.answer_of(sample), image=image)

        def facts(sample: Sample) -> ShotFacts:
            return ShotFacts(
                id=question_id(sample),
                group=sample.group,
                text=self.text_of(sample),
                picture=pictures[sample.id],
                label=self.label_of(sample),
            )

        shown = self.examples.of_other_folds(samples, pool, folds=folds, example=example, facts=facts, seed=self.seed)
        return [replace(each, image=pictures[each.id]()) for each in shown] if self.answerer.looks else shown

    def links_of(self, caption: str) -> dict[str, str]:
        """The links that a sample gives to the chain; `caption` is the one that people chose."""
        return {GOLD: {"description": caption}, TEXT_ONLY: {"description": NOTHING}}.get(self.model.context, {})

    @property
    def given(self) -> Collection[str]:
        """The links that every sample gives to the chain."""
        return () if self.model.parsed_context.looks else ("description",)

    def _categories(self) -> Sequence[str]:
        """The commonsense categories of the images."""
        return ()

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """The commonsense categories of the images that are asked about; a run keeps them with its options."""
        return tuple(self.kept_or("categories", self._categories))

    def by_category(self, scorer: Scorer, *names: str) -> Scorer:
        """`scorer` with metrics of these names for each category as well."""
        return by_tag(scorer, "category", self.categories, *names)

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), "categories": list(self.categories)}


class WhoopsTask(WeirdTask):
    """A task over the images of the data set."""

    needs: ClassVar[tuple[Need, ...]] = ()
    """What every image must have."""

    def wanted(self) -> tuple[Need, ...]:
        """What every image must have, beside a picture if one is looked at."""
        return self.needs

    @cached_property
    def dataset(self) -> Whoops:
        """The data."""
        return Whoops.open(self.data, ids=self.ids)

    @cached_property
    def subset(self) -> Subset[WeirdImage]:
        """The images that the task is run on.

        Raises:
            BadData: none is left, the fold has none, or as `Whoops`.
        """
        in_fold = self.askable.in_fold(self.fold, lambda entry: self.folds.get(entry.id), seed=self.seed)
        return in_fold.first(self.limit)

    @cached_property
    def askable(self) -> Subset[WeirdImage]:
        """The images that the task can be run on in its context, of all folds.

        Raises:
            BadData: none is left, or as `Whoops`.
        """
        data = self.dataset
        wanted: tuple[Need, ...] = (*self.wanted(), *(("image",) if self.answerer.looks else ()))
        complete = {entry.id for entry in data.with_all(*wanted)}
        subset = Subset(items=data.entries, notes=(data.origin,))
        subset = subset.where(lambda entry: entry.id in complete, left_out=f"no {' or no '.join(wanted)}")
        if self.model.context == GOLD:
            subset = subset.where(lambda entry: bool(gold_caption(entry)), left_out="no caption")
            if not subset.items:
                raise BadData(
                    f"The images of {str(self.data)!r} have no captions.", hint="They are in `crowd_captions`."
                )
        return subset

    @cached_property
    def folds(self) -> Mapping[str, int]:
        """By id, the fold in whose test set an image is, of all images of the folder.

        Empty if there are too few for folds, or if images are listed and no fold is asked for.
        """
        known, whole = self.dataset.known, self.fold is not None or not self.dataset.listed
        return fold_of(known, seed=self.seed) if whole and len(known) >= FOLDS else {}

    @override
    def _categories(self) -> Sequence[str]:
        return sorted({entry.category for entry in self.subset.items} - {""})

    @override
    def notes(self) -> tuple[str, ...]:
        return self.subset.notes

    @abstractmethod
    def samples_of(self, entry: WeirdImage) -> Iterable[Sample]:
        """The samples of one image, without their picture."""

    @override
    def samples(self) -> Sequence[Sample]:
        of_entries = [sample for entry in self.subset.items for sample in self.samples_of(entry)]
        entries = {entry.id: entry for entry in self.askable.items}
        every = of_entries
        if self.examples.shots:
            every = [sample for entry in entries.values() for sample in self.samples_of(entry)]
        pictures = {sample.id: entries[sample.group].load for sample in every}
        names = [entry.id for entry in self.dataset.entries]
        folds = self.folds or (fold_of(names, seed=self.seed) if self.examples.shots else {})
        pool = (sample for sample in every if question_id(sample) == sample.id)
        return self.with_examples(of_entries, pool, folds=folds, pictures=pictures)

    def sample_of(self, entry: WeirdImage, *, inputs: Mapping[str, Any] | None = None, target: Any) -> Sample:
        """A sample of an image.

        Args:
            entry: the image.
            inputs: further inputs of the sample.
            target: the right answer.
        """
        category = {"category": entry.category} if entry.category else {}
        fold = {"fold": self.folds[entry.id]} if entry.id in self.folds else {}
        return Sample(
            id=entry.id,
            inputs={**self.links_of(gold_caption(entry)), **(inputs or {})},
            target=target,
            group=entry.id,
            tags={**category, **fold},
        )


def gold_caption(entry: WeirdImage) -> str:
    """The caption that people chose for an image, else its first one; empty if it has none."""
    return entry.selected_caption or next(iter(entry.captions), "")
