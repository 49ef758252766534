"""The task of caption matching: which of two captions tells what is weird (section 4.2 of the WHOOPS! paper).

Each pair of captions of an image is ranked: by a scorer, which gives each a number, or by a model that chooses one and,
with `orders=2`, is asked again with the captions swapped. The figure is the share of right rankings. The paper does not
say which pairs are ranked, so there are figures for all three readings:

- all detailed captions with all underspecified ones, 25 pairs an image;
- the selected caption with all underspecified ones, 5 pairs an image;
- captions at the same place of both lists, 5 pairs an image: one annotator wrote both (appendix A.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from typing_extensions import override

from askance.agents import choose_caption
from askance.errors import BadData, UsageError
from askance.evals.metric import Metric, mean
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer
from askance.evals.suite.context import GOLD
from askance.evals.suite.option_orders import Orders, PairMetric, both_right, sample_ids
from askance.evals.suite.ranker import Encoder
from askance.evals.suite.shuffle import option_order, stable_number
from askance.evals.whoops.task import CONTEXTS, WeirdModel, WhoopsTask

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.whoops.images import WeirdImage

Pairs: TypeAlias = Literal["all", "selected", "same-place"]
"""Which captions are compared: all, the selected one with all, or those at the same place of both lists."""

RIGHT = "right rankings"
_PAIR, _ORDER = "pair", "order"
_SHARE, _WEIGHT = "right of image", "pairs of image"

NOTES = (
    "A tie is no right ranking; 'per image' gives every image the same weight",
    "Without the picture a trained model reaches 94 in the paper: it learns to prefer detail (Table 2)",
)


class CaptionMatching(WhoopsTask):
    """Which of two captions tells what is weird about an image."""

    name = "whoops/matching"
    agent = choose_caption
    chooses = True
    needs = ("captions", "underspecified")

    model: WeirdModel = WeirdModel(contexts=tuple(each for each in CONTEXTS if each != GOLD))
    """The model that answers."""
    encoder: Encoder = Encoder()
    """An encoder in its place."""
    pairs: Pairs = "all"
    """All captions with all, the selected caption with all, or those at the same place of both lists."""
    orders: Orders | None = None
    """2 asks again with the captions in each other's place, which is the default for models."""

    @property
    def times(self) -> Orders:
        """In how many orders each pair is asked."""
        return self.orders or (1 if self.encoder.is_chosen else 2)

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), "orders": self.times}

    @override
    def samples(self) -> Sequence[Sample]:
        samples = super().samples()
        if not samples:
            raise BadData(f"No image of {str(self.data)!r} has two captions that differ.", hint="Choose other `pairs`.")
        return samples

    @override
    def samples_of(self, entry: WeirdImage) -> Iterator[Sample]:
        """The samples of one image: one for each pair of captions and each order."""
        pairs = list(pairs_of(entry, self.pairs))
        first = self.sample_of(entry, target=None)
        for pair, detailed, less, readings in pairs:
            key = f"{entry.id}#{pair}"
            for order, name in sample_ids(key, orders=self.times).items():
                shown = option_order((detailed, less), seed=self.seed, key=key, order=order)
                yield replace(
                    first,
                    id=name,
                    inputs={**first.inputs, "options": list(shown)},
                    target={
                        "true": [shown.index(detailed) + 1],
                        "pair": key,
                        "pairs": len(pairs) * self.times,
                        "readings": list(readings),
                    },
                    tags={**first.tags, **({"order": order} if self.times > 1 else {})},
                )

    @override
    def scorer(self) -> Scorer:
        both = PairMetric(
            name="right in both orders",
            columns=(_PAIR, _ORDER, RIGHT),
            of_pair=both_right,
            summary="share of pairs that are ranked rightly in both orders",
        )
        plain = Scorer(
            score=_score,
            metrics=(
                mean(RIGHT, summary="share of pairs whose detailed caption comes first"),
                Metric(
                    name=f"{RIGHT} per image",
                    columns=(_SHARE, _WEIGHT),
                    of_sums=lambda sums: sums[0] / sums[1] if sums[1] else float("nan"),
                    summary="mean over images of the share of right rankings",
                ),
                *(mean(f"{RIGHT}, {which}", summary=f"of the pairs: {words}") for which, words in _READINGS.items()),
                *((both,) if self.times > 1 else ()),
                Metric(name="ties", columns=("ties",), better="lower", summary="share of pairs with equal scores"),
            ),
            if_wrong=lambda sample: Score(values=_values(sample, right=0.0)),
            if_right=lambda sample: Score(values=_values(sample, right=1.0)),
            notes=NOTES,
        )
        return self.by_category(plain, RIGHT)


_READINGS: Mapping[str, str] = {
    "selected caption": "the selected caption with each underspecified one",
    "same place": "captions at the same place of both lists",
}


def _score(sample: Sample, value: Any) -> Score:
    """The score of a ranking: a list with the number of the better caption, or an empty list for a tie."""
    numbers: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    if len(numbers) > 1 or any(number not in {1, 2} for number in numbers):
        raise UsageError(f"The answer {value!r} is no ranking of two captions.", hint="It is [1], [2] or [] for a tie.")
    right = float(numbers == sample.target["true"])
    return Score(values={**_values(sample, right=right), "ties": float(not numbers)})


def _values(sample: Sample, *, right: float) -> dict[str, float]:
    truth: Mapping[str, Any] = sample.target
    order = sample.tags.get("order")
    pair = {} if order is None else {_PAIR: stable_number("pair", truth["pair"]), _ORDER: float(order)}
    return {
        RIGHT: right,
        _SHARE: right / truth["pairs"],
        _WEIGHT: 1 / truth["pairs"],
        **{f"{RIGHT}, {which}": right for which in _READINGS if which in truth["readings"]},
        **pair,
    }


def pairs_of(entry: WeirdImage, pairs: Pairs) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """The pairs of captions of an image: name, detailed and underspecified caption, and the readings with that pair.

    Pairs of equal captions are left out.
    """
    detailed = list(entry.captions)
    if pairs == "selected":
        detailed = [entry.selected_caption] if entry.selected_caption else []
    for place, caption in enumerate(detailed):
        for other, less in enumerate(entry.underspecified):
            same = place == other if pairs != "selected" else entry.captions[other : other + 1] == (caption,)
            readings = {"selected caption": caption == entry.selected_caption, "same place": same}
            if caption != less and caption.strip() and (same or pairs != "same-place"):
                yield f"{place}-{other}", caption, less, tuple(name for name, holds in readings.items() if holds)
