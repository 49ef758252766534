"""The task of localization: which region of a picture does an inference rest on (section 4.2)?

With `boxes=gt` the regions are those of people. Each inference of a picture is held against each region, and each of
them gets one inference so that the scores are highest together; the figure is the mean over pictures of the share of
regions that get their own. With `boxes=auto` the regions are boxes that a detector proposes; each inference gets
the one with the highest score, which is right if its intersection over union with a true box is above a half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from typing_extensions import override

from askance.errors import UsageError
from askance.evals.metric import mean
from askance.evals.sherlock.layout import source_of
from askance.evals.sherlock.measures import assignment_accuracy, proposal_accuracy, right_proposals
from askance.evals.sherlock.region_reranker import RerankingModel
from askance.evals.sherlock.task import RegionText, SherlockTask, check_text, text_of, text_words
from askance.evals.suite.selection import Subset

if TYPE_CHECKING:
    from askance.evals.metric import Metric
    from askance.evals.sample import Sample
    from askance.evals.sherlock.leaderboard import PairGroup
    from askance.evals.sherlock.task import Scores

ACCURACY, CHANCE, TIED, ORACLE = "accuracy", "chance", "tied pairs", "oracle"


class Localization(SherlockTask):
    """Which region of a picture an inference rests on."""

    name = "sherlock/localization"
    headlines = (ACCURACY,)

    boxes: Literal["gt", "auto"] = "gt"
    """The regions: those of people, or boxes that a detector proposes; the test set has both together."""
    split: Literal["val", "test"] = "val"
    """The validation corpus; or the leaderboard's test set, which hides what belongs together."""
    text: RegionText = "inference"
    """What is held against the regions: inferences, or the clues, which say what is seen there (Table 3)."""

    model: RerankingModel = RerankingModel()  # pyright: ignore[reportIncompatibleVariableOverride]  # never set
    """The model that is asked."""

    @override
    def check(self) -> None:
        """As of every task; and that an encoder ranks proposals alone.

        Raises:
            UsageError: it is to rank the regions of people.
        """
        super().check()
        if self.model.first is not None and self.boxes == "gt":
            raise UsageError(
                "The regions of people are assigned to inferences by all their scores, so none is left to an encoder.",
                hint="Leave out `first` and `keep`, or take proposals: -T boxes=auto.",
            )

    @override
    def words(self) -> tuple[str, ...]:
        return (
            self.boxes if self.split == "val" else "test",
            *text_words(self.text),
            *super().words(),
        )

    @cached_property
    def _hidden(self) -> Mapping[str, PairGroup]:
        """Of the test set, by image, the pairs that are to be scored.

        Raises:
            UsageError: clues or proposals alone are asked for.
        """
        check_text(self.text)
        if self.boxes == "auto":
            raise UsageError(
                "The leaderboard's files have the regions of people and proposals together.",
                hint="Leave `boxes` out: all are scored.",
            )
        groups = self.dataset.leaderboard("localization", "test").groups
        return {group.regions[0].url: group for group in groups}

    @cached_property
    @override
    def subset(self) -> Subset[str]:
        data = self.dataset
        if self.split == "test":
            note = f"{len(self._hidden):,} pictures of test; which inference belongs to which region is hidden"
            return self.chosen(
                Subset(items=tuple(self._hidden), noun="images", notes=(note,)),
                names=lambda url: (url,),
                url=lambda url: url,
            )
        notes = (f"{len(data.instances):,} regions of {len(data.urls):,} pictures",)
        return self.chosen(
            Subset(items=tuple(data.urls), noun="images", notes=notes),
            names=lambda url: {url, *(instance.id for instance in data.of_image(url))},
            url=lambda url: url,
        )

    @override
    def regions(self) -> Iterator[Sample]:
        for url in self.subset.items:
            if self.split == "test":
                group = self._hidden[url]
                regions, inferences, target = [each.boxes for each in group.regions], group.inferences, None
            else:
                instances = self.dataset.of_image(url)
                regions = [instance.boxes for instance in instances]
                inferences = [text_of(instance, self.text) for instance in instances]
                if self.boxes == "gt":
                    target = {"ids": [instance.id for instance in instances]}
                else:
                    proposed = self.dataset.proposals(url)
                    target = {"right": right_proposals(proposed, regions)}
                    regions = [(box,) for box in proposed]
            tags = {"source": source_of(url)}
            yield self.sample_of(url, url, regions, inferences=inferences, target=target, tags=tags)

    @override
    def metrics(self) -> Sequence[Metric]:
        if self.boxes == "auto":
            return (
                mean(ACCURACY, summary="share of inferences whose best box overlaps theirs, mean over pictures"),
                mean(CHANCE, better="neither", summary="that of random boxes"),
                mean(ORACLE, better="neither", summary="that of the best boxes among those proposed"),
            )
        return (
            mean(ACCURACY, summary="share of regions that get their own inference, mean over pictures"),
            mean(CHANCE, better="neither", summary="that of a random assignment"),
            mean(
                TIED,
                better="neither",
                summary="share of the pairs whose score equals another one, so that their order is drawn",
            ),
        )

    @override
    def values_of(self, sample: Sample, scores: Scores) -> Mapping[str, float]:
        if self.boxes == "auto":
            return {ACCURACY: proposal_accuracy(scores, sample.target["right"])}
        accuracy, tied = assignment_accuracy(scores, sample.target["ids"], seed=self.seed)
        return {ACCURACY: accuracy, TIED: tied}

    @override
    def bounds_of(self, sample: Sample, *, right: bool) -> Mapping[str, float]:
        best = (self.given_values(sample) or {}).get(ORACLE, 1.0)
        return {ACCURACY: best if right else 0.0, TIED: 0.0}

    @override
    def given_values(self, sample: Sample) -> Mapping[str, float] | None:
        if sample.target is None:
            return None
        rows, columns = self.shape_of(sample)
        if self.boxes == "gt":
            return {CHANCE: 1 / rows}
        right: Sequence[Sequence[int]] = sample.target["right"]
        return {
            CHANCE: sum(len(places) / rows for places in right) / columns,
            ORACLE: sum(1 for places in right if places) / columns,
        }
