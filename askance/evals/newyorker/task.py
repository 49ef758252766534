"""Base classes of the tasks over cartoons of the New Yorker contest: folds, contexts, examples, choices of captions.

Five official splits hold whole contests apart, and each contest is tested in one of them (section 3 of the paper). The
paper's figures are means over the five, so `fold=all` is the default, and figures of one fold are labelled so.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

from pydantic import Field
from typing_extensions import override

from askance.chains import ANSWERS
from askance.chains.cartoon import CARTOON_LINKS, cartoon_steps, lay_out
from askance.chains.chain import NodeLike
from askance.errors import BadData, UsageError
from askance.evals.baselines import options_of
from askance.evals.metric import Metric, mean
from askance.evals.newyorker.dataset import NewYorker
from askance.evals.newyorker.layout import LEADERBOARD, LETTERS, TaskName
from askance.evals.newyorker.reply_conventions import RecordedChoices, by_convention
from askance.evals.part import Question
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer
from askance.evals.suite.any_solver import AnySolver
from askance.evals.suite.breakdown import over_folds
from askance.evals.suite.choice import texts_of
from askance.evals.suite.context import NOTHING, PICTURE, VERBALIZED, InContext, SuiteContext
from askance.evals.suite.option_orders import (
    ANY,
    ORDER,
    PAIR,
    Orders,
    PairMetric,
    both_right,
    order_metrics,
    order_values,
    question_id,
    sample_ids,
)
from askance.evals.suite.ranker import Encoder, OptionRanker
from askance.evals.suite.recorded_replies import RecordedAnswers
from askance.evals.suite.selection import Subset, read_names
from askance.evals.suite.shots import Examples, Group, ShotFacts, ShotPool
from askance.evals.task import Task
from askance.nodes import Example

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.newyorker.dataset import CartoonAnnotation, Item
    from askance.images import Image

FoldChoice: TypeAlias = Literal["all", "leaderboard", 0, 1, 2, 3, 4]

SOCRATIC, CAPTION_ONLY = "socratic", "caption-only"
FIELDS: Mapping[str, int] = {"description": len(CARTOON_LINKS)} | {f"description-{count}": count for count in (1, 2, 3)}
"""By context, how many fields of people's description it lays out."""
GIVEN = frozenset({*FIELDS, CAPTION_ONLY})
"""Contexts whose description every sample brings."""

OWN_CONTEXTS: Mapping[str, SuiteContext] = {
    **{
        name: SuiteContext(steps=lambda _, fields=fields: cartoon_steps(None, fields=fields))
        for name, fields in FIELDS.items()
    },
    SOCRATIC: SuiteContext(steps=lambda model: cartoon_steps(model.see), looks=True),
    CAPTION_ONLY: SuiteContext(),
}
"""Contexts that only cartoons have."""


class CartoonTask(Task):
    """A task over cartoons: in one of the official folds, in all five, or on the leaderboard."""

    about: ClassVar[TaskName]
    """Which items of the data it asks."""

    data: Path
    """Folder of the data set."""
    ids: Path | Sequence[str] | None = None
    """File that lists items, or contests by their number."""
    limit: int | None = Field(default=None, ge=1, exclude=True)
    """How many items at most; they are taken from the folds in turn."""
    seed: int = 0
    """Seed of all random choices: images, options, their order, folds."""
    fold: FoldChoice = "all"
    """One of the official folds; `all` for the mean over them; or `leaderboard`, whose answers are hidden."""
    step_by_step: bool = False
    """Whether the answering model is asked to reason first (section B.7)."""

    examples: Examples = Examples(keeps=("shots", "shots_draw"))
    """The answered examples before each question."""
    model: InContext = InContext(
        contexts=(PICTURE, *OWN_CONTEXTS, *VERBALIZED),
        own_contexts=OWN_CONTEXTS,
        undescribed="The cartoons of examples are not verbalized",
    )
    """The model that answers."""
    replies: RecordedAnswers = RecordedAnswers()
    """Recorded replies in its place."""
    other: AnySolver = AnySolver()
    """A solver in its place."""

    @cached_property
    def dataset(self) -> NewYorker:
        """The data."""
        return NewYorker.open(self.data)

    @cached_property
    def folds(self) -> tuple[int, ...]:
        """The folds whose test items are asked; a run keeps them with its options."""
        return tuple(self.kept_or("folds", self._folds))

    def over_folds(self, scorer: Scorer, *names: str) -> Scorer:
        """`scorer` with means over the folds that are asked, for the metrics `names` with each fold's own beside."""
        return over_folds(scorer, () if LEADERBOARD in self.folds else self.folds, *names)

    def _folds(self) -> Sequence[int]:
        if self.fold == "leaderboard":
            return (LEADERBOARD,)
        if self.fold != "all":
            return (self.fold,)
        return [fold for fold in self._known_folds() if self.dataset.items(self.about, fold=fold)]

    def _known_folds(self) -> Sequence[int]:
        """The folds of the data; some may test nothing, where tasks were built from few contests."""
        return sorted(fold for task, fold in self.dataset.files.tasks if task == self.about and fold != LEADERBOARD)

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), "folds": list(self.folds)}

    @override
    def words(self) -> tuple[str, ...]:
        return ("step by step",) if self.step_by_step else ()

    @override
    def notes(self) -> tuple[str, ...]:
        shown = self.answerer.looks
        return (*self.subset.notes, *self.dataset.notes_on(self.about, self.folds, shown=shown))

    @override
    def ids_left_out(self) -> Collection[str]:
        known = {item.id for fold in self._known_folds() for item in self.dataset.items(self.about, fold=fold)}
        return known - {item.id for item in self.subset.items}

    # --- the items ---

    @cached_property
    def subset(self) -> Subset[Item]:
        """The items that the task asks, of all folds in turn.

        Raises:
            BadData: none is left, or as `NewYorker`.
        """
        of_fold = [self.dataset.items(self.about, fold=fold) for fold in self.folds]
        in_turn = tuple(item for row in zip_longest(*of_fold) for item in row if item is not None)
        chosen = Subset(items=in_turn, noun="items", notes=(f"{len(in_turn):,} items of {_named(self.folds)}",))
        if self.ids is not None:
            chosen = self._listed(chosen, {*read_names(self.ids)} if isinstance(self.ids, Path) else {*self.ids})
        if self.answerer.looks:
            chosen = chosen.where(lambda item: self.picture(item.contest) is not None, left_out="no picture")
        if self.model.context in FIELDS:
            chosen = chosen.where(lambda item: item.annotation is not None, left_out="no description")
        if not chosen.items:
            raise BadData(
                f"No item of {self.about} in {str(self.data)!r} can be asked in the context {self.model.context!r}.",
                hint="`askance data check newyorker DIR` says which pictures and descriptions are there.",
            )
        return chosen.first(self.limit)

    def _listed(self, subset: Subset[Item], names: Collection[str]) -> Subset[Item]:
        """The items that are named, by their id or their contest; names may be those of items of other folds.

        Raises:
            BadData: a name is that of no item, or none is that of an item of `subset`.
        """
        others = (item for fold in self._known_folds() for item in self.dataset.items(self.about, fold=fold))
        every = (*subset.items, *others)
        unknown = {*names} - {name for item in every for name in (item.id, str(item.contest))}
        if unknown:
            raise BadData(
                f"{len(unknown):,} of {len(names):,} names in the list are those of no item, such as {min(unknown)!r}.",
                hint="Items go by their `instance_id`, or by the number of their contest.",
            )
        chosen = subset.where(lambda item: item.id in names or str(item.contest) in names, left_out="not in the list")
        if not chosen.items:
            raise BadData(f"The list names no item of {_named(self.folds)}.", hint="Name some, or ask for all folds.")
        return chosen

    def picture(self, contest: int) -> Image | None:
        """The cartoon of a contest; None if the data have none."""
        if contest not in self._pictures:
            self._pictures[contest] = self.dataset.cartoon(contest).load()
        return self._pictures[contest]

    @cached_property
    def _pictures(self) -> dict[int, Image | None]:
        return {}

    # --- the samples ---

    @override
    def samples(self) -> Sequence[Sample]:
        by_id: dict[str, list[Sample]] = {}
        for fold in self.folds:
            of_fold = [sample for item in self.subset.items if item.fold == fold for sample in self.samples_of(item)]
            if self.examples.shots:
                items = {item.id: item for item in self.subset.items if item.fold == fold}
                of_fold = self.examples.shown_before(
                    of_fold,
                    self._pool(fold),
                    example=self._example,
                    facts=self._facts,
                    known=lambda sample, items=items: self._facts(items[question_id(sample)]),
                    seed=self.seed,
                )
            for sample in of_fold:
                by_id.setdefault(question_id(sample), []).append(sample)
        return [sample for item in self.subset.items for sample in by_id[item.id]]

    @abstractmethod
    def samples_of(self, item: Item) -> Iterator[Sample]:
        """The samples of an item: one, or one for each order of its captions."""

    def sample_of(self, item: Item, *, inputs: Mapping[str, Any], target: Mapping[str, Any]) -> Sample:
        """The sample of an item, with what the context gives of its cartoon.

        Args:
            item: the item.
            inputs: what is asked.
            target: the right answer.
        """
        return Sample(
            id=item.id,
            image=self.picture(item.contest) if self.answerer.looks else None,
            inputs={**self._given(item.annotation), **inputs},
            target=target,
            group=f"contest {item.contest}",
            tags={
                "contest": item.contest,
                **({} if item.fold == LEADERBOARD else {"fold": item.fold}),
                **({} if item.official_id else {"official_id": False}),
            },
        )

    def _given(self, annotation: CartoonAnnotation | None) -> Mapping[str, str]:
        """The links that a sample gives to the chain."""
        context = self.model.context
        if self.replies.is_chosen or context not in GIVEN:
            return {}
        if annotation is None or context == CAPTION_ONLY:
            return {"description": NOTHING}
        return links_of_annotation(annotation, FIELDS[context])

    def _pool(self, fold: int) -> ShotPool[Item]:
        """The rows that examples of a fold are drawn from: its training part."""
        rows: dict[Group, list[Item]] = {}
        for item in self.dataset.items(self.about, fold=fold, split="train"):
            described = item.annotation is not None or self.model.context not in {*FIELDS, SOCRATIC}
            if described and (not self.model.parsed_context.picture or self.picture(item.contest) is not None):
                rows.setdefault(item.contest, []).append(item)
        tested = {item.contest for item in self.dataset.items(self.about, fold=fold)}
        return ShotPool(rows, fold=fold, tested=tested, noun="contest")

    def _example(self, item: Item) -> Example:
        """An item of the training part as an example."""
        if self.model.parsed_context.picture:
            return Example(values=self.asked(item), answer=item.label, image=self.picture(item.contest))
        return Example(
            values={**self.asked(item), "description": self._description_of(item) or NOTHING}, answer=item.label
        )

    def _description_of(self, item: Item) -> str:
        """What people said of a cartoon, as the context lays it out; empty if it says nothing."""
        if item.annotation is None or self.model.context == CAPTION_ONLY:
            return ""
        return lay_out(links_of_annotation(item.annotation, FIELDS.get(self.model.context, len(CARTOON_LINKS))))

    def _facts(self, item: Item) -> ShotFacts:
        """What examples are compared by."""
        return ShotFacts(
            id=item.id,
            group=item.contest,
            text=self._description_of(item) if self.model.context in FIELDS else "",
            picture=lambda: self.picture(item.contest),
            label=item.label if self.about != "explanation" else "",
        )

    @abstractmethod
    def asked(self, item: Item) -> Mapping[str, Any]:
        """What is asked about the cartoon, by the names of the prompt's inputs."""

    @property
    def given(self) -> Collection[str]:
        """The links that every sample gives to the chain."""
        return [link.name for link in CARTOON_LINKS] if self.model.context in GIVEN else ()


def links_of_annotation(annotation: CartoonAnnotation, count: int = len(CARTOON_LINKS)) -> dict[str, str]:
    """The first fields of people's description, by the links of `CARTOON_LINKS`."""
    entities = ", ".join(annotation.entities)
    texts = (annotation.location, annotation.description, annotation.uncanny, entities)
    return {link.name: text for link, text in zip(CARTOON_LINKS[:count], texts, strict=False)}


def _named(folds: Sequence[int]) -> str:
    if folds == (LEADERBOARD,):
        return "the leaderboard, whose answers are hidden"
    return f"the test part of fold {folds[0]}" if len(folds) == 1 else f"the test parts of {len(folds)} folds"


ACCURACY = "accuracy"
"""The share of items whose right caption is chosen."""


class CaptionEncoder(Encoder):
    """An encoder that says how well a caption fits the cartoon."""

    prefix: str = ""
    """Text before each caption that a scorer gets, such as the one that an encoder was trained with."""

    @override
    def solver(self, question: Question) -> OptionRanker:
        return OptionRanker(super().solver(question).scorer, prefix=self.prefix)


class CaptionTask(CartoonTask):
    """A task in which captions are chosen, by a model or by an encoder."""

    agent: ClassVar[Callable[..., NodeLike]]
    """Makes the node that chooses, from a model."""
    headlines: ClassVar[tuple[str, ...]] = (ACCURACY,)
    """Figures of which those of each fold stand beside the mean."""

    orders: Orders = 1
    """2 asks again with the captions in reverse order."""

    encoder: CaptionEncoder = CaptionEncoder()
    """An encoder in the place of a model."""
    replies: RecordedChoices = RecordedChoices()  # pyright: ignore[reportIncompatibleVariableOverride]  # never set
    """Recorded replies in its place."""

    @override
    def asked(self, item: Item) -> Mapping[str, Any]:
        return {"options": item.choices}

    @override
    def samples_of(self, item: Item) -> Iterator[Sample]:
        letters = LETTERS[: len(item.choices)]
        source = {} if item.winner_source is None else {"winner": item.winner_source}
        for order, name in sample_ids(item.id, orders=self.orders).items():
            step = 1 if order == 1 else -1
            shown = letters[::step]
            true = [shown.index(item.label) + 1] if item.label else []
            target = {"true": true, **source, **({"letters": [*shown]} if order > 1 else {})}
            sample = self.sample_of(item, inputs={"options": [*item.choices[::step]]}, target=target)
            yield replace(sample, id=name, tags={**sample.tags, **({"order": order} if self.orders > 1 else {})})

    @override
    def question(self) -> Question:
        return Question(
            name=self.about,
            agent=partial(self.agent, step_by_step=self.step_by_step),
            asks=self.model.parsed_context.options_question,
            target=ANSWERS,
            given=self.given,
            count=1,
            seed=self.seed,
        )

    # --- the figures ---

    @override
    def scorer(self) -> Scorer:
        both = PairMetric(
            name="right in both orders",
            columns=(PAIR, ORDER, ACCURACY),
            of_pair=both_right,
            summary="share of items whose answers are right in both orders",
        )
        plain = Scorer(
            score=self._score,
            metrics=(
                mean(ACCURACY, summary="share of items whose right caption is chosen"),
                *self.metrics(),
                *((both, *order_metrics(ACCURACY)) if self.orders > 1 else ()),
            ),
            if_wrong=lambda sample: self._bound(sample, right=0.0),
            if_right=lambda sample: self._bound(sample, right=1.0),
        )
        read = by_convention(plain, ACCURACY) if self.replies.is_chosen else plain
        return self.over_folds(read, *self.headlines)

    @abstractmethod
    def metrics(self) -> Sequence[Metric]:
        """What is counted beside the accuracy."""

    @abstractmethod
    def values_of(self, sample: Sample, *, right: float) -> Mapping[str, float]:
        """The values of an answer that is right, 1, or wrong, 0."""

    @abstractmethod
    def values_said(self, sample: Sample, letter: str) -> Mapping[str, float]:
        """The values of an answer that says a letter, by the order in which the captions are shown."""

    def _score(self, sample: Sample, value: Any) -> Score:
        """The score of a choice: a list with one number, or an empty one for a tie of a scorer."""
        options: Sequence[str] = options_of(sample)
        numbers = cast("list[Any]", value) if isinstance(value, list) else [value]
        if len(numbers) > 1 or any(number not in range(1, len(options) + 1) for number in numbers):
            raise UsageError(
                f"The answer {value!r} chooses none of {len(options)} captions.",
                hint=f"It is a list with one number from 1 to {len(options)}, or an empty one for a tie.",
            )
        letter_values: Mapping[str, float] = self.values_said(sample, LETTERS[numbers[0] - 1]) if numbers else {}
        if not sample.target["true"]:
            return Score(values=letter_values)
        right = float(numbers == sample.target["true"])
        chosen = order_values(sample, texts_of(sample, numbers), pair=question_id(sample))
        return Score(values={**self._right(sample, right=right), **letter_values, **chosen})

    def _bound(self, sample: Sample, *, right: float) -> Score:
        if not sample.target["true"]:
            return Score(values={})
        chosen = order_values(sample, ANY if right else math.nan, pair=question_id(sample))
        return Score(values={**self._right(sample, right=right), **chosen})

    def _right(self, sample: Sample, *, right: float) -> dict[str, float]:
        return {ACCURACY: right, **self.values_of(sample, right=right)}
