"""Base classes of the tasks over ads: which ads they are run on, and which links an ad gives to the chain."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from typing_extensions import override

from askance.agents import Verbalizations
from askance.atypicality import RELATIONS, Statement
from askance.chains.context_steps import concatenate
from askance.chains.link import LINKS_BY_NAME
from askance.errors import BadData, UsageError
from askance.evals.pittads.dataset import Ad, Need, PittAds, Which
from askance.evals.suite.context import NOTHING, PICTURE, TEXT_ONLY, VERBALIZED, InContext, ParsedContext, tools_of
from askance.evals.suite.option_orders import question_id
from askance.evals.suite.selection import FOLDS, Subset, fold_of
from askance.evals.suite.shots import Examples, ShotFacts
from askance.evals.suite.shuffle import stable_hash
from askance.evals.task import Task
from askance.images import Image
from askance.nodes import Example

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.sample import Sample

READ = frozenset({"ids", "small", "seed", "which", "qa", "negatives", "descriptions"})
"""Options that say what is read of the data."""


class AdModel(InContext):
    """A model that answers about ads: from the picture, or from verbalizations, which may be published ones."""

    descriptions: Path | None = None
    """Published verbalizations, a file or a folder."""

    @property
    @override
    def looks(self) -> bool:
        return self.vlm is not None

    @override
    def check_examples(self) -> None:
        if self.parsed_context.statement in {"s_IN", "s_TV"}:
            raise UsageError(
                f"The statements of examples are not detected, so the context {self.context!r} takes no `shots`.",
                hint="Choose a context without a detected statement, such as the same with s_true.",
            )
        if self.parsed_context.description is not None and self.descriptions is None:
            raise UsageError(
                f"The ads of examples are not verbalized, so the context {self.context!r} takes no `shots`.",
                hint="Give published verbalizations, `descriptions`, or choose the context I.",
            )


class AdsTask(Task):
    """A task over ads; see `PittAds.open` for which these are."""

    needs: ClassVar[tuple[Need, ...]] = ()
    """What the data need: at least one ad has to have each."""
    asked_with: ClassVar[tuple[str, ...]] = ("options",)
    """Inputs of a sample that are part of its question, beside what is known of the picture."""

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
    small: bool = False
    """250 images, drawn by the seed."""
    which: Which = "usable"
    """Of the annotated images those with usable objects, with a label, or the typical ones (Table 13)."""

    @cached_property
    def parsed_context(self) -> ParsedContext:
        """The context in which the answerer sees an ad: what is no model in one sees the picture, or nothing."""
        answerer = self.answerer
        if isinstance(answerer, InContext):
            return answerer.parsed_context
        return ParsedContext(name=PICTURE, picture=True) if answerer.looks else ParsedContext(name=TEXT_ONLY)

    @cached_property
    def dataset(self) -> PittAds:
        """The data, as the options of the task and of its parts say."""
        options = {name: value for name, value in self._options().items() if name in READ and value is not None}
        return PittAds.open(self.data, **options)

    def usable(self) -> Mapping[str, Callable[[Ad], bool]]:
        """Conditions on each ad, by the words for ads that do not meet them."""
        return {}

    @cached_property
    def subset(self) -> Subset[Ad]:
        """The ads that the task is run on.

        Raises:
            BadData: none is left, or as `PittAds`.
            UsageError: the fold has no image.
        """
        in_fold = self.askable.in_fold(self.fold, lambda ad: self.folds[ad.id], seed=self.seed)
        return in_fold.first(self.limit)

    @cached_property
    def folds(self) -> Mapping[str, int]:
        """By id, the fold in whose test set an ad is."""
        return fold_of((ad.id for ad in self.dataset.ads), seed=self.seed)

    @cached_property
    def askable(self) -> Subset[Ad]:
        """The ads that the task can be run on in its context.

        Raises:
            BadData: none is left, or as `PittAds`.
        """
        data = self.dataset
        data.require(*self.needs)
        conditions: dict[str, Callable[[Ad], bool]] = {
            **self.usable(),
            "with no image": lambda ad: (
                ad.image is not None or not (self.parsed_context.picture or self._asked_about(ad))
            ),
            "that nobody described": lambda ad: self.answerer.looks or not self._lacks(ad),
            "with no atypicality statement to give": lambda ad: (
                self.parsed_context.statement not in {"s_true", "s_wrong"} or "statement" in self.links[ad.id]
            ),
        }
        subset = Subset(items=data.ads, notes=(data.origin,), noun="ads")
        for what, holds in conditions.items():
            subset = subset.where(holds, left_out=f"those {what}")
        if not subset.items:
            asks = not self.answerer.looks and any(map(self._lacks, data.ads))
            raise BadData(
                f"No ad of {str(self.data)!r} can be used: {'; '.join(subset.notes)}.",
                hint="Name a model that describes them, `--vlm`, or published `descriptions`."
                if asks
                else "Give data that has them, or ask for fewer conditions.",
            )
        return subset

    @abstractmethod
    def samples_of(self, ad: Ad) -> Iterable[Sample]:
        """The samples of one ad."""

    def answer_of(self, sample: Sample) -> Mapping[str, Any] | None:  # noqa: ARG002  # a subclass may need it
        """The fields of an example that hold the answer to a sample: `answer`, or further `values`.

        None if the sample can be no example, as too little is true of it.
        """
        return None

    def label_of(self, sample: Sample) -> str:  # noqa: ARG002  # a subclass may need it
        """The answer to a sample, or a class of answers."""
        return ""

    @cached_property
    def asked(self) -> Sequence[Sample]:
        """The samples without examples; they are made once."""
        return [sample for ad in self.subset.items for sample in self.samples_of(ad)]

    @override
    def samples(self) -> Sequence[Sample]:
        examples = next((part for part in self.parts if isinstance(part, Examples) and part.shots), None)
        if examples is None:
            return self.asked
        ads = [ad for ad in self.askable.items if self.parsed_context.picture or self._description_of(ad)]
        every = [sample for ad in ads for sample in self.samples_of(ad) if question_id(sample) == sample.id]
        return examples.of_other_folds(
            self.asked,
            [sample for sample in every if self.answer_of(sample) is not None],
            folds=self.folds,
            example=self._example,
            facts=self._facts,
            seed=self.seed,
        )

    @override
    def notes(self) -> tuple[str, ...]:
        return self.subset.notes

    def _lacks(self, ad: Ad) -> bool:
        """Whether a tool has to be asked about an ad."""
        links = self.links[ad.id]
        return any(link not in links for link in tools_of(self.parsed_context, described="description" in links))

    def _asked_about(self, ad: Ad) -> bool:
        return self.answerer.looks and self._lacks(ad)

    @cached_property
    def links(self) -> Mapping[str, Mapping[str, Any]]:
        """By ad, the links that it gives to the chain, as JSON values."""
        return {ad.id: self._links_of(ad) for ad in self.dataset.ads}

    @cached_property
    def given(self) -> tuple[str, ...]:
        """The links that every ad gives to the chain."""
        return tuple(self.kept_or("given", self._common))

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), "given": list(self.given)}

    def _common(self) -> list[str]:
        return sorted(set[str].intersection(*(set(self.links[ad.id]) for ad in self.subset.items)))

    def _links_of(self, ad: Ad) -> dict[str, Any]:
        """The links of an ad in the context: the published verbalizations that it uses, and s⁺ or s̄, as JSON."""
        context = self.parsed_context
        if context.blind:
            return {"description": NOTHING}
        used = {*tools_of(context), *(("description",) if context.combined else ())}
        texts = {link: text for link, text in ad.given.items() if link in used}
        links = {link: list(text) if isinstance(text, tuple) else text for link, text in texts.items()}
        statement = self._statement_of(ad)
        return links if statement is None else {**links, "statement": statement_form(statement)}

    def _statement_of(self, ad: Ad) -> Statement | None:
        """s⁺ or s̄, if the context gives one: the first true statement, or the same with a relation that nobody sees."""
        if self.parsed_context.statement not in {"s_true", "s_wrong"} or not ad.statements:
            return None
        true = ad.statements[0]
        if self.parsed_context.statement == "s_true":
            return true
        wrong = wrong_relations(ad, true, seed=self.seed)
        return wrong[0] if wrong else None

    def image_of(self, ad: Ad) -> Image | None:
        """The picture of an ad's samples; None in the context `text-only`."""
        return None if ad.image is None or self.parsed_context.blind else Image.load(ad.image)

    def _example(self, sample: Sample) -> Example:
        description, statement = self._description_of(self._ads[sample.group]), sample.inputs.get("statement")
        values = {
            **{name: value for name, value in sample.inputs.items() if name in self.asked_with},
            **({"description": description} if description else {}),
            **({"statement": str(Statement(**statement))} if statement else {}),
        }
        answer = self.answer_of(sample) or {}
        image = sample.image if self.parsed_context.picture else None
        return Example(values={**values, **answer.get("values", {})}, answer=answer.get("answer"), image=image)

    def _facts(self, sample: Sample) -> ShotFacts:
        ad = self._ads[sample.group]
        return ShotFacts(
            id=question_id(sample),
            group=ad.id,
            text="" if self.parsed_context.blind else self._description_of(ad),
            picture=lambda: self._pictures[ad.id],
            label=self.label_of(sample),
        )

    @cached_property
    def _ads(self) -> Mapping[str, Ad]:
        return {ad.id: ad for ad in self.askable.items}

    @cached_property
    def _pictures(self) -> Mapping[str, Image | None]:
        """By ad its picture; each is made once, since it keeps its digest."""
        return {ad.id: None if ad.image is None else Image.load(ad.image) for ad in self.askable.items}

    def _description_of(self, ad: Ad) -> str:
        """What was published of an ad in the context, as the answering model gets it; empty if that is not whole."""
        links = self.links[ad.id]
        description, tools = self.parsed_context.description, tools_of(self.parsed_context)
        if "description" in links or description is None:
            return links.get("description", "")
        parts = {link: LINKS_BY_NAME[link].value(links[link]) for link in tools if link in links}
        whole = description in VERBALIZED and not description.startswith("T_V")
        return concatenate(Verbalizations(**parts)) if whole and len(parts) == len(tools) else ""


def wrong_relations(ad: Ad, true: Statement, *, seed: int) -> tuple[Statement, ...]:
    """`true` with each relation that no annotator of the ad sees, in a random order."""
    seen = {*ad.labels, true.relation}
    wrong = [Statement(relation, true.primary, true.secondary) for relation in RELATIONS if relation not in seen]
    return tuple(sorted(wrong, key=lambda statement: stable_hash(seed, ad.id, "relation", statement.relation)))


def statement_form(statement: Statement) -> dict[str, str]:
    """A statement as a chain takes it."""
    return {"relation": statement.relation, "primary": statement.primary, "secondary": statement.secondary}
