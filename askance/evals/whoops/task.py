"""Base classes of the tasks over WHOOPS!: which images they are run on, their contexts, and figures by category."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from pydantic import Field
from typing_extensions import override

from askance.chains import REPLY, SeenContext
from askance.errors import BadData, UsageError
from askance.evals.sample import Sample
from askance.evals.suite.breakdown import by_tag
from askance.evals.suite.context import GOLD, NOTHING, TEXT_ONLY, chain_of
from askance.evals.suite.selection import FOLDS, Subset, fold_of
from askance.evals.suite.suite_task import ModelTask, SuiteTask
from askance.evals.whoops.dataset import Need, Whoops

if TYPE_CHECKING:
    from askance.chains import Chain, Link, Reading
    from askance.chains.chain import NodeLike
    from askance.chat import JsonObject
    from askance.evals.scorer import Scorer
    from askance.evals.whoops.images import WeirdImage
    from askance.images import Image

CONTEXTS: tuple[str, ...] = (*get_args(SeenContext), GOLD, TEXT_ONLY)


class WeirdTask(ModelTask, SuiteTask):
    """A task over weird images, of the data set or of a user's own folder."""

    contexts = CONTEXTS

    fold: int | None = Field(default=None, ge=0, le=FOLDS - 1)
    """Only the test images of this fold, from 0."""

    def links_of(self, caption: str) -> dict[str, str]:
        """The links that a sample gives to the chain; `caption` is the one that people chose."""
        return {GOLD: {"description": caption}, TEXT_ONLY: {"description": NOTHING}}.get(self.context, {})

    def chain(
        self,
        name: str,
        *,
        agent: Callable[..., NodeLike],
        subject: Callable[[Reading], Any],
        target: Link[Any] = REPLY,
    ) -> Chain:
        """The chain of the task in its context.

        Raises:
            UsageError: a model is missing.
        """
        if self.view.looks and self.vlm is None:
            raise UsageError(f"The context {self.context!r} looks at the picture.", hint="Give a `vlm`.")
        given = () if self.view.looks else ("description",)
        return chain_of(name, self, agent=agent, subject=subject, target=target, given=given)

    def _categories(self) -> Sequence[str]:
        """The commonsense categories of the images."""
        return ()

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """The commonsense categories of the images; a run keeps them with its options."""
        return tuple(self.found("categories", self._categories))

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
        """The images that the task can be run on in its context.

        Raises:
            BadData: none is left, or as `Whoops`.
            UsageError: the fold has no image.
        """
        data = self.dataset
        wanted: tuple[Need, ...] = (*self.wanted(), *(("image",) if self.view.looks else ()))
        there = {entry.id for entry in data.with_all(*wanted)}
        found = Subset(items=data.entries, notes=(data.origin,))
        found = found.where(lambda entry: entry.id in there, left_out=f"no {'; '.join(wanted)}")
        if self.context == GOLD:
            found = found.where(lambda entry: bool(gold_caption(entry)), left_out="no caption")
            if not found.items:
                raise BadData(
                    f"The images of {str(self.data)!r} have no captions.", hint="They are in `crowd_captions`."
                )
        if self.fold is not None:
            items = tuple(entry for entry in found.items if self.folds.get(entry.id) == self.fold)
            if not items:
                raise UsageError(f"There is no image in fold {self.fold}.", hint=f"Folds are 0 to {FOLDS - 1}.")
            note = f"the {len(items):,} test images of fold {self.fold} of {FOLDS}, seed {self.seed}"
            found = replace(found, items=items, notes=(*found.notes, note))
        return found.first(self.limit)

    @cached_property
    def folds(self) -> Mapping[str, int]:
        """By id, the fold in whose test set an image is; empty if there are too few images for folds."""
        names = [entry.id for entry in self.dataset.entries]
        return fold_of(names, seed=self.seed) if len(names) >= FOLDS and not self.dataset.listed else {}

    @override
    def _categories(self) -> Sequence[str]:
        return sorted({entry.category for entry in self.subset.items} - {""})

    @override
    def notes(self) -> tuple[str, ...]:
        return self.subset.notes

    def image_of(self, entry: WeirdImage) -> Image | None:
        """The picture of an image's samples; None if no model looks at it."""
        return entry.load() if self.view.looks else None

    def sample_of(
        self, entry: WeirdImage, *, name: str = "", inputs: Mapping[str, Any] | None = None, target: Any
    ) -> Sample:
        """A sample of an image.

        Args:
            entry: the image.
            name: id of the sample; by default that of the image.
            inputs: further inputs of the sample.
            target: the right answer.
        """
        category = {"category": entry.category} if entry.category else {}
        fold = {"fold": self.folds[entry.id]} if entry.id in self.folds else {}
        return Sample(
            id=name or entry.id,
            image=self.image_of(entry),
            inputs={**self.links_of(gold_caption(entry)), **(inputs or {})},
            target=target,
            group=entry.id,
            tags={**category, **fold},
        )


def gold_caption(entry: WeirdImage) -> str:
    """The caption that people chose for an image, else its first one; empty if it has none."""
    return entry.selected_caption or next(iter(entry.captions), "")
