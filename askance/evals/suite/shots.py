"""Few-shot: for each sample, answered questions of other groups, shown to the model before it is asked.

A pool holds the rows of one fold's training part, by group. For each sample so many groups are drawn, and one row of
each. The `own` drawing is decided by the seed, the fold and the sample: samples can come in any order, be left out, or
be answered in a later process, and a larger number of examples begins with the same ones. The `official` one replays
the script of the New Yorker paper (`gpt4/gpt4_from_description.py` of its authors), whose draws depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar

from pydantic import Field
from typing_extensions import override

from askance.amounts import many
from askance.errors import BadData, UsageError
from askance.evals.sample import EXAMPLES, Sample
from askance.evals.suite.option_orders import question_id
from askance.evals.suite.shuffle import random_order, stable_hash
from askance.evals.suite.suite_task import SuiteTask

if TYPE_CHECKING:
    from askance.nodes import Example

Row = TypeVar("Row")
Group: TypeAlias = str | int
"""What the rows of a data set are split by, such as the number of a contest."""

ShotsDraw: TypeAlias = Literal["own", "official"]
"""How examples are drawn: for each sample by itself, or as the authors' script does it for a whole split."""

OFFICIAL_SEED = 2
"""Seed of the authors' script."""


@dataclass(frozen=True)
class ShotPool(Generic[Row]):
    """Rows that examples are drawn from: the training part of one fold.

    Args:
        rows: by group, in the order of the data.
        fold: whose training part it is.
        tested: groups of the fold's test part, none of which may be among the examples.
        noun: what a group is, for messages.

    Raises:
        BadData: a group of the test part is among the rows, or a group has none.
    """

    rows: Mapping[Group, Sequence[Row]]
    _: KW_ONLY
    fold: int = 0
    tested: Collection[Group] = ()
    noun: str = "group"

    def __post_init__(self) -> None:
        leaked = sorted({*self.tested} & self.rows.keys(), key=str)
        if leaked:
            raise BadData(
                f"The examples of fold {self.fold} would be drawn from its own test part, which holds "
                f"{many(len(leaked), self.noun)} of them, such as {leaked[0]!r}.",
                hint="Draw them from the training part of the same fold.",
            )
        empty = next((group for group, rows in self.rows.items() if not rows), None)
        if empty is not None:
            raise BadData(f"The {self.noun} {empty!r} has no rows to show.", hint="Leave it out of the pool.")

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups, sorted."""
        return tuple(sorted(self.rows))

    def draw(self, key: str, group: Group, *, count: int, seed: int) -> tuple[Row, ...]:
        """The examples of one sample: a row each of `count` groups; which ones, seed, fold and `key` decide.

        Args:
            key: of the sample.
            group: of the sample, which may not be in the pool.
            count: of examples.
            seed: of the drawing.

        Raises:
            BadData: the sample's own group is in the pool, or there are fewer groups than `count`.
        """
        self._check(key, group, count)
        name = f"shots of fold {self.fold}\n{key}"
        drawn = islice(random_order(self.groups, seed=seed, key=name), count)
        return tuple(self.rows[each][stable_hash(seed, name, "row", each) % len(self.rows[each])] for each in drawn)

    def draw_official(self, groups: Mapping[str, Group], *, count: int) -> dict[str, tuple[Row, ...]]:
        """The examples of all samples of a split, by key, as the authors' script draws them with NumPy's seed 2.

        The script shuffles the split and draws for one sample after the other. Where a reply could not be read, it
        drew that sample's answer in between; nobody knows where it did, so that is not replayed.

        Args:
            groups: the group of each sample by its key, of the whole split in the order of its file.
            count: of examples for each sample.

        Raises:
            BadData: as `draw`.
        """
        import numpy as np  # loading it takes long

        for key, group in groups.items():
            self._check(key, group, count)
        random = np.random.RandomState(OFFICIAL_SEED)
        keys = [*groups]
        random.shuffle(keys)
        drawn: dict[str, tuple[Row, ...]] = {}
        for key in keys:
            places = random.choice(len(self.groups), size=count, replace=False)
            several = [self.rows[self.groups[place]] for place in places]
            drawn[key] = tuple(rows[random.choice(len(rows))] for rows in several)
        return drawn

    def _check(self, key: str, group: Group, count: int) -> None:
        if group in self.rows:
            raise BadData(
                f"The examples of {key!r} would be drawn from its own {self.noun} {group!r} too.",
                hint="Draw them from the training part of the same fold.",
            )
        if count > len(self.rows):
            raise BadData(
                f"{count} examples cannot be drawn from {many(len(self.rows), self.noun)} of fold {self.fold}.",
                hint=f"Each is of another {self.noun}; give a smaller `shots`.",
            )


class ShotsTask(SuiteTask):
    """A task that may show answered examples before each question."""

    shots: int = Field(default=0, ge=0)
    """How many answered examples stand before each question."""
    shots_draw: ShotsDraw = "own"
    """How they are drawn: for each sample by seed and fold, or as the authors' script does for a whole split."""

    @override
    def check(self) -> None:
        """Checks that the official drawing gets the whole split.

        Raises:
            UsageError: it is asked for with `limit` or `ids`.
        """
        super().check()
        part = next((name for name in ("limit", "ids") if getattr(self, name) is not None), None)
        if self.shots and self.shots_draw == "official" and part is not None:
            raise UsageError(
                f"The official drawing of examples goes through the whole split, and `{part}` takes a part of it.",
                hint=f"Leave `{part}` out, or give `shots_draw=own`.",
            )

    def with_shots(
        self,
        samples: Iterable[Sample],
        pool: ShotPool[Row],
        *,
        example: Callable[[Row], Example],
        group: Callable[[Sample], Group],
    ) -> list[Sample]:
        """The samples of one fold with their examples; as they are where none are asked for.

        Samples of one question in two orders have the same examples.

        Args:
            samples: of the fold's test part, in the order of the data.
            pool: of the same fold.
            example: makes an example of a row.
            group: of a sample, as in the pool.

        Raises:
            BadData: as `ShotPool.draw`.
        """
        asked = list(samples)
        if not self.shots:
            return asked
        groups = {question_id(sample): group(sample) for sample in asked}
        if self.shots_draw == "official":
            drawn = pool.draw_official(groups, count=self.shots)
        else:
            drawn = {key: pool.draw(key, own, count=self.shots, seed=self.seed) for key, own in groups.items()}
        return [
            replace(sample, inputs={**sample.inputs, EXAMPLES: [example(row) for row in drawn[question_id(sample)]]})
            for sample in asked
        ]
