"""Open-set action-reason retrieval: which of all statements of the data set an ad argues for.

In the paper a model chooses among 15 or 18 options of an image (section 3.2), whose easy wrong ones are told by what
the image shows. Here there are no options: a search in an index of all statements (`askance index build`) ranks them,
and a language model may read the first ones again. The task and its figures are askance's own; no published figure
belongs beside them. `within="options"` is the paper's task: the same search among the options of an image.

Targets are found when the samples are made. Only then is the index needed: a run keeps the form of the index, and is
scored and made again without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from typing_extensions import override

from askance.amounts import many
from askance.chains import SCENE_TEXT, STATEMENT
from askance.chains.link import as_words
from askance.errors import UsageError
from askance.evals.part import Question
from askance.evals.pittads.arr import NEGATIVE_KINDS, WITH_OPTIONS, KindsOf, Statements, kinds_of, options_notes
from askance.evals.pittads.statement_search import Search, splits_in
from askance.evals.pittads.task import AdsTask
from askance.evals.sample import Sample
from askance.evals.suite.answer_judge import AnswerJudge
from askance.evals.suite.any_solver import AnySolver
from askance.evals.suite.choice import COUNT, choice_samples, multi_scorer
from askance.evals.suite.retrieval_metrics import chance_note, retrieval_scorer
from askance.evals.suite.shots import plain_words
from askance.models import ModelLike
from askance.retrieval.entries import JUNK, entry_id, marks_of

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.pittads.dataset import Ad
    from askance.evals.scorer import Scorer
    from askance.retrieval import IndexEntry

Leaks: TypeAlias = Literal["refused", "noted"]
"""What becomes of descriptions that hold a statement, an option or a slogan of their own image."""

LEAST_WORDS = 4
"""Words of a statement, option or slogan that descriptions are searched for; shorter ones stand there by chance."""

OPEN_NOTE = (
    "Open-set figures are askance's own: the paper chooses among 15 or 18 options of an image, and no published figure "
    "belongs beside these"
)

TAGS = ("topic", "atypicality")
"""Tags of a sample: what most annotators say that the ad is about, and which relation most of them see in it."""


class HitJudge(AnswerJudge):
    """A judge of hits."""

    judge: ModelLike | None = None
    """Says which of the first ten mean the same as a true statement (judged hit@10)."""


class OpenArr(AdsTask):
    """Which of all statements of an index an ad argues for, or which of its own options."""

    name = "pittads/open-arr"
    needs = ("true",)

    statements: Statements = Statements()
    """The statements of the data set."""
    model: Search
    """What searches."""
    other: AnySolver = AnySolver()
    """A solver in its place."""
    judge: HitJudge = HitJudge()
    """A judge beside the targets."""
    junk: bool = False
    """Whether statements marked as junk, such as n/a, are targets."""
    leaks: Leaks = "refused"
    """Whether descriptions that hold a statement, an option or a slogan of their own image are refused or noted."""

    # --- the samples ---

    @cached_property
    def targets(self) -> Mapping[str, tuple[str, ...]]:
        """By ad, the ids of its true statements in the index; junk is left out unless it is asked for.

        Raises:
            UsageError: the index has no statement of any ad, or as `Search.entries`.
            StoreError: its statements cannot be read.
        """
        known = self.model.entries
        by_ad = {ad.id: tuple(self._targets_of(ad, known)) for ad in self.dataset.ads}
        if not any(by_ad.values()):
            raise UsageError(
                f"The index {self.model.opened_index} has no true statement of any ad in {str(self.data)!r}: it is of "
                "other data, or of another split.",
                hint="Build one: `askance index build FOLDER --data DIR`, with `--split` for the test split.",
            )
        return by_ad

    def _targets_of(self, ad: Ad, known: Mapping[str, IndexEntry] | None) -> Iterator[str]:
        for text in ad.true:
            name = entry_id(text)
            marks = marks_of(text) if known is None else known[name].marks if name in known else None
            if marks is not None and (self.junk or JUNK not in marks):
                yield name

    @cached_property
    def kinds(self) -> KindsOf:
        """Gives the kinds of the options of an ad."""
        return kinds_of(self.dataset)

    @override
    def usable(self) -> Mapping[str, Callable[[Ad], bool]]:
        if self.model.within == "options":
            self.dataset.require("options")
            return WITH_OPTIONS
        return {"without a true statement in the index": lambda ad: bool(self.targets[ad.id])}

    @cached_property
    @override
    def asked(self) -> Sequence[Sample]:
        leaks = self.found_leaks
        if leaks and self.leaks == "refused":
            raise UsageError(
                f"{leaks[0]}: who searches with it was told what to find.",
                hint="Take descriptions that were written without statements in view, or say `-T leaks=noted`.",
            )
        return super().asked

    @override
    def samples_of(self, ad: Ad) -> Iterator[Sample]:
        """The sample of an ad: its target is the ids of its true statements, or it has options.

        Raises:
            UsageError: the index lacks one of its options.
        """
        topic = Counter(ad.topics).most_common(1)
        tags = {**({"topic": topic[0][0]} if topic else {}), **({"atypicality": ad.plurality} if ad.plurality else {})}
        sample = Sample(id=ad.id, image=self.image_of(ad), inputs={**self.links[ad.id]}, group=ad.id, tags=tags)
        if self.model.within == "options":
            yield from map(self._checked_options, choice_samples(sample, self.kinds(ad), seed=self.seed))
        else:
            texts = {entry_id(text): text for text in ad.true}
            true = self.targets[ad.id]
            yield replace(sample, target={"true": [*true], "texts": [texts[name] for name in true]})

    def _checked_options(self, sample: Sample) -> Sample:
        known, options = self.model.entries, sample.inputs["options"]
        lacking = [] if known is None else [text for text in options if entry_id(text) not in known]
        if lacking:
            raise UsageError(
                f"The index {self.model.opened_index} lacks the option {lacking[0][:80]!r} of {sample.id!r}.",
                hint="Build it with the file of these options: `askance index build … --negatives FILE`.",
            )
        return sample

    @cached_property
    def found_leaks(self) -> Sequence[str]:
        """What given descriptions tell that nobody should know who searches, in words."""
        return [leak for ad in self.subset.items if (leak := leak_in(ad, self.links[ad.id])) is not None]

    # --- its solver and its figures ---

    @override
    def question(self) -> Question:
        count = COUNT if self.model.within == "options" else 0
        return Question(name=self.parsed_context.name, given=self.given, count=count, seed=self.seed)

    @override
    def scorer(self) -> Scorer:
        if self.model.within == "options":
            return multi_scorer(NEGATIVE_KINDS)
        tags = {tag: self.kept_or(tag, partial(self._values_of, tag)) for tag in TAGS}
        return retrieval_scorer(judge=self.judge.noted, tags=tags, notes=(OPEN_NOTE,))

    def _values_of(self, tag: str) -> list[str]:
        return sorted({sample.tags[tag] for sample in self.asked if tag in sample.tags})

    @override
    def notes(self) -> tuple[str, ...]:
        index = self.model.opened_index
        leaks = [f"{many(len(self.found_leaks), 'ad')} with a leak, such as: {leak}" for leak in self.found_leaks[:1]]
        own = (f"Index of {many(index.count, 'statement')}, {index.digest[:12]}", *leaks)
        if self.model.within == "options":
            return (*super().notes(), *options_notes(self.dataset, self.asked), *own)
        return (*super().notes(), *self._target_notes(), *own, chance_note(self.asked, index.count))

    def _target_notes(self) -> Iterator[str]:
        """Which split the targets are of, and what is left out of them."""
        known = self.model.entries
        if known is None:
            yield "The statements of the index are not there: all true statements of the data are targets"
            return
        splits = splits_in(known[name] for sample in self.asked for name in sample.target["true"])
        yield (
            f"Targets are of the split {' and '.join(splits)}" if splits else "Nothing says of which split targets are"
        )
        true_counts = {sample.id: len(sample.target["true"]) for sample in self.asked}
        lost = sum(len(ad.true) - true_counts[ad.id] for ad in self.subset.items)
        if lost:
            yield f"{many(lost, 'true statement is', 'true statements are')} no target: junk, or not in the index"

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), **{tag: self._values_of(tag) for tag in TAGS}}


def leak_in(ad: Ad, given: Mapping[str, Any]) -> str | None:
    """What the given descriptions of an ad tell of what is looked for, in words; None if nothing.

    A statement, an option or a slogan of the ad that stands there word for word (`plain_words`) tells it. Slogans may
    stand in its scene text, and the atypicality statement is named by the context.

    Args:
        ad: with its statements, options and slogans.
        given: by link, its descriptions.
    """
    texts = {"true statement": ad.true, "option": ad.options, "slogan": ad.slogans}
    statements = [(what, text) for what, some in texts.items() for text in some if len(text.split()) >= LEAST_WORDS]
    for link, value in given.items():
        if link == STATEMENT.name:
            continue
        description = f" {plain_words(as_words(value))} "
        for what, text in statements:
            if f" {plain_words(text)} " in description and (what, link) != ("slogan", SCENE_TEXT.name):
                return f"The {link} given for {ad.id!r} holds its {what} {text[:80]!r}"
    return None
