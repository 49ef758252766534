"""The task of choosing the explanation of what is unusual (section 7.3 and Table 14 of the paper on atypical ads).

*Easy* negatives are explanations of other images, drawn by the seed. *Hard* ones are made from the right explanation by
a model (`askance negatives generate`), or come in the authors' files, whose keys are positions of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field
from typing_extensions import override

from askance.agents import KINDS, choose_explanation
from askance.agents.negative_writer import normal
from askance.errors import BadData, UsageError
from askance.evals.negatives import Recipe, TrueStatements, read_negatives
from askance.evals.suite.choice import OTHER, TRUE, UNKNOWN, choice_samples, single_scorer
from askance.evals.suite.option_orders import Orders
from askance.evals.suite.shuffle import random_order
from askance.evals.whoops.task import WhoopsTask

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.sample import Sample
    from askance.evals.scorer import Scorer
    from askance.evals.whoops.dataset import Need, Whoops
    from askance.evals.whoops.images import WeirdImage

Negatives: TypeAlias = Literal["easy", "hard"]

EASY = 15
"""Explanations of other images beside the right one (section 7.3)."""
HARD_FILE = Recipe(domain="explanations").file(None)
"""Name of the file of hard options in the data's folder."""
NEGATIVE_KINDS = (OTHER, *KINDS["explanations"], UNKNOWN)

NOTE = "One right explanation stands among the options, which one by the seed, unless `true` is `all`"


Options: TypeAlias = Mapping[str, str]
"""Kinds of options, by text; right ones are `true`."""


class ExplainChoice(WhoopsTask):
    """Which of the options explains what is unusual about an image."""

    name = "whoops/explain-choice"
    agent = choose_explanation
    chooses = True

    negatives: Negatives = "easy"
    """Easy ones, explanations of other images, or hard ones, from the file `qa`."""
    qa: Path | None = None
    """File of right explanations and options, keyed by image or by the position of its row; by default, for hard ones,
    what `askance negatives generate` wrote into the data's folder or into `hard` of it."""
    true: Literal["one", "all"] = "one"
    """Whether one of the right explanations stands among the options, or all."""
    count: int = Field(default=EASY, ge=1)
    """Easy negatives of an image."""
    orders: Orders = 1
    """2 asks each sample again with its options the other way round."""

    @override
    def check(self) -> None:
        """Checks options that depend on each other.

        Raises:
            UsageError: there is no file of hard negatives, or no such context.
        """
        super().check()
        if self.negatives == "hard" and self.file is None:
            raise UsageError(
                "Hard negatives are not part of the data set.",
                hint="Write them with `askance negatives generate DATA --out DATA/hard`, or name a file: -T qa=FILE.",
            )

    @cached_property
    def file(self) -> Path | None:
        """The file of options: `qa`, or for hard ones what was written into the data's folder; None for easy ones."""
        if self.qa is not None or self.negatives == "easy":
            return self.qa
        folders = (self.data, self.data / "hard")
        return next((folder / HARD_FILE for folder in folders if (folder / HARD_FILE).is_file()), None)

    @override
    def wanted(self) -> tuple[Need, ...]:
        return () if self.file is not None else ("explanations",)

    @cached_property
    def options(self) -> Mapping[str, Options]:
        """By image, its options."""
        return self._easy() if self.file is None else self._from_file(self.file)

    @override
    def notes(self) -> tuple[str, ...]:
        entries = self.subset.items
        lacking = sum(entry.id not in self.options for entry in entries)
        note = f"{lacking:,} of {len(entries):,} images are left out: the file has no options of them"
        return (*super().notes(), *((note,) if lacking else ()))

    @override
    def words(self) -> tuple[str, ...]:
        return (self.negatives,)

    @override
    def kept(self) -> JsonObject:
        if self.file is None:
            return super().kept()
        return {**{name: value for name, value in super().kept().items() if name != "count"}, "qa": self.file.name}

    @override
    def scorer(self) -> Scorer:
        plain = single_scorer(NEGATIVE_KINDS, orders=self.orders, notes=(NOTE,))
        return self.by_category(plain, "accuracy")

    @override
    def samples_of(self, entry: WeirdImage) -> Iterator[Sample]:
        """The samples of one image, one for each order of its options; none where the file has no options of it."""
        sample = self.sample_of(entry, target=None)
        if entry.id in self.options:
            kinds, one_true = self.options[entry.id], self.true == "one"
            yield from choice_samples(sample, kinds, seed=self.seed, orders=self.orders, one_true=one_true)

    def _easy(self) -> Mapping[str, Options]:
        """For each image its explanations, and `count` explanations of other images, all different.

        Raises:
            BadData: there are too few explanations.
        """
        pool = [(entry.id, text) for entry in self.dataset.entries for text in entry.explanations]
        options: dict[str, Options] = {}
        for entry in (self.askable if self.examples.shots else self.subset).items:
            own = dict.fromkeys(entry.explanations, TRUE)
            wanted = len(own) + self.count
            texts = {normal(text) for text in own}
            for name, text in random_order(pool, seed=self.seed, key=entry.id):
                if len(own) == wanted:
                    break
                if name != entry.id and normal(text) not in texts:
                    texts.add(normal(text))
                    own[text] = OTHER
            if len(own) < wanted:
                raise BadData(
                    f"Other images than {entry.id!r} have fewer than {self.count} explanations to draw from.",
                    hint="Give -T count=… a smaller number, or more images.",
                )
            options[entry.id] = own
        return options

    def _from_file(self, qa: Path) -> Mapping[str, Options]:
        """The options in a file, by image.

        Raises:
            BadData: the file cannot be read, or none of its keys is that of an image.
        """
        options: dict[str, Options] = {}
        unknown: list[str] = []
        for record in read_negatives(qa):
            entry = self.dataset.of_key(record.key)
            if entry is None:
                unknown.append(record.key)
                continue
            kinds = {each.text: each.kind or UNKNOWN for each in record.negatives}
            options[entry.id] = {
                text: TRUE if text in record.true else kinds.get(text, UNKNOWN) for text in record.options
            }
        if not {*options} & {entry.id for entry in self.subset.items}:
            raise BadData(
                f"No key of {str(qa)!r} is an image that is asked about, such as {(unknown or [*options])[0]!r}.",
                hint="Keys are an `image_id`, or the position of its row from 0.",
            )
        return options


def statements(data: Whoops) -> tuple[TrueStatements, ...]:
    """The right explanations of every image, for `askance.evals.negatives.generate` to make hard negatives from.

    Raises:
        BadData: there are none.
    """
    return tuple(TrueStatements.of(entry.id, entry.explanations) for entry in data.with_all("explanations"))
