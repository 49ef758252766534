"""What tells negatives from true statements without any image: their words, their form, their length.

A classifier is trained on the statements of some images and asked about those of others, so that what it finds is
what negatives have in common, and no twin of a statement is among its examples: neither one that is made from it, nor
the same text, which may be true of one image and a negative of another. Where its accuracy is above chance, so is that
of any model that has learnt how such negatives are worded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from askance import statistics
from askance.agents.negatives import normal, words
from askance.errors import MissingExtra
from askance.evals.negatives.lengths import Lengths, compare_lengths

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from askance.agents.negatives import NegativeKind
    from askance.evals.negatives.files import OptionSet
    from askance.statistics import Interval

Look: TypeAlias = Literal["words", "form", "all"]
"""`words`: single words and pairs, in small letters; `form`: length, capitals, marks, blanks; `all`: both."""

LOOKS: tuple[Look, ...] = ("words", "form", "all")
FOLDS, FOLDS_SHARED = 5, 20
"""Parts of the images, each asked about by what the others taught; more where images share texts, for these teach
nothing then."""
LEAST = 10
"""Images below which nothing is trained."""
CHANCE = 0.5
"""Balanced accuracy of a guess: the mean of the shares of true and of wrong statements that are known as such."""
SHOWN = 8
"""Telling words that are named, of either side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One option of one image, as the classifier knows it."""

    key: str
    text: str
    wrong: bool
    kind: NegativeKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """How well negatives are known by one look."""

    look: Look
    kind: NegativeKind | None
    """Of the negatives; None is all of them."""
    statements: int
    images: int
    accuracy: float
    """Balanced, cross-validated."""
    interval: Interval | None
    """By drawing whole images."""

    @property
    def above_chance(self) -> bool:
        """Whether all of the interval is."""
        return self.interval is not None and self.interval.low > CHANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveAways:
    """What gives the negatives of a file away."""

    lengths: Lengths
    tells: tuple[Tell, ...] = ()
    """For all negatives by each look, then for each kind by all that can be seen; empty where nothing was trained."""
    wrong_words: tuple[str, ...] = ()
    """Words that speak most for a negative, the strongest first."""
    true_words: tuple[str, ...] = ()
    probability: Mapping[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    """That a statement is a negative, by image and text."""
    reason: str | None = None
    """Why nothing was trained."""

    @property
    def found(self) -> bool:
        """Whether wording gives negatives away: any look at all of them is above chance."""
        return any(tell.above_chance for tell in self.tells if tell.kind is None)


def give_aways(sets: Sequence[OptionSet], *, seed: int = 0, train: bool = True) -> GiveAways:
    """What tells the negatives of `sets` from their true statements.

    Args:
        sets: the options, each with at least one negative.
        seed: of the folds and of the bootstraps.
        train: whether classifiers are trained, which needs scikit-learn.

    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    lengths = compare_lengths(sets, seed=seed)
    if not train:
        return GiveAways(lengths=lengths, reason="it was not asked for")
    if len(sets) < LEAST:
        return GiveAways(lengths=lengths, reason=f"it takes at least {LEAST} images")
    statements = [*statements_of(sets)]
    if not all(_both(statements[place].wrong for place in known) for known, _ in _folds(statements, seed=seed)):
        return GiveAways(lengths=lengths, reason="the images share too many of their statements")
    kinds: list[NegativeKind] = sorted({each.kind for each in statements if each.kind is not None})
    tells: list[Tell] = []
    probability: list[float] = []
    for look in LOOKS:
        probability = _probabilities(statements, look, seed=seed)
        tells.append(_tell(statements, probability, look=look, seed=seed))
    for kind in kinds if len(kinds) > 1 else ():
        some = [each for each in statements if not each.wrong or each.kind == kind]
        tells.append(_tell(some, _probabilities(some, "all", seed=seed), look="all", kind=kind, seed=seed))
    wrong, true = _telling(statements, seed=seed)
    return GiveAways(
        lengths=lengths,
        tells=tuple(tells),
        wrong_words=wrong,
        true_words=true,
        probability={(each.key, each.text): chance for each, chance in zip(statements, probability, strict=True)},
    )


def statements_of(sets: Sequence[OptionSet]) -> list[Statement]:
    """Every true statement and every negative."""
    found: list[Statement] = []
    for each in sets:
        found += [Statement(key=each.key, text=text, wrong=False) for text in each.true]
        found += [Statement(key=each.key, text=one.text, wrong=True, kind=one.kind) for one in each.negatives]
    return found


def features(text: str, look: Look) -> dict[str, float]:
    """What one look sees in a statement."""
    seen: dict[str, float] = {}
    if look in {"words", "all"}:
        found = words(text)
        pairs = [f"{one} {other}" for one, other in pairwise(found)]
        seen.update({f"word {word}": float(count) for word, count in Counter([*found, *pairs]).items()})
    if look in {"form", "all"}:
        marks = Counter(letter for letter in text if not letter.isalnum() and not letter.isspace())
        seen.update({f"mark {mark}": float(count) for mark, count in marks.items()})
        seen["words"] = len(text.split()) / 10
        seen["letters"] = len(text) / 50
        seen["capitals"] = float(sum(word[:1].isupper() for word in text.split()[1:]))
        seen["blanks"] = float(text != " ".join(text.split()))
        seen[f"end {text.strip()[-1:] if not text.strip()[-1:].isalnum() else ''}"] = 1.0
    return seen


def _probabilities(statements: Sequence[Statement], look: Look, *, seed: int) -> list[float]:
    """That each statement is a negative, from a model that has seen none of its image and nowhere the same text."""
    seen = [features(each.text, look) for each in statements]
    wrong = [each.wrong for each in statements]
    found = [CHANCE] * len(statements)
    for known, asked in _folds(statements, seed=seed):
        if _both(wrong[place] for place in known):
            model = _Classifier([seen[place] for place in known], [wrong[place] for place in known], seed=seed)
            for place, chance in zip(asked, model.chances([seen[place] for place in asked]), strict=True):
                found[place] = chance
    return found


def _folds(statements: Sequence[Statement], *, seed: int) -> Iterator[tuple[list[int], list[int]]]:
    """Places of what is learnt from, and of what is asked about: no image and no text is in both."""
    texts, images = [normal(each.text) for each in statements], [each.key for each in statements]
    shared = len({*zip(texts, images, strict=True)}) > len({*texts})
    parts = min(FOLDS_SHARED if shared else FOLDS, len({*images}))
    split: Any = _sklearn("model_selection").GroupKFold(n_splits=parts, shuffle=True, random_state=seed)
    folds: Iterable[tuple[Sequence[int], Sequence[int]]] = split.split(texts, groups=images)
    for known, asked in folds:
        twins = {texts[place] for place in asked}
        yield [place for place in known if texts[place] not in twins], [*asked]


def _both(wrong: Iterable[bool]) -> bool:
    """Whether there are true statements and negatives."""
    return len({*wrong}) == 2


class _Classifier:
    """A logistic regression over what is seen of statements; one thread, so that the seed decides all."""

    def __init__(self, seen: Sequence[Mapping[str, float]], wrong: Sequence[bool], *, seed: int) -> None:
        self.vectorizer: Any = _sklearn("feature_extraction").DictVectorizer()
        self.regression: Any = _sklearn("linear_model").LogisticRegression(
            solver="liblinear", class_weight="balanced", max_iter=1000, random_state=seed
        )
        self.regression.fit(_short(self.vectorizer.fit_transform(seen)), wrong)

    def chances(self, seen: Sequence[Mapping[str, float]]) -> list[float]:
        """That each statement is a negative."""
        found: Any = self.regression.predict_proba(_short(self.vectorizer.transform(seen)))
        return [float(chance) for chance in found[:, 1]]

    def weights(self) -> list[tuple[float, str]]:
        """What each feature speaks for, the most for a true statement first."""
        names: Any = self.vectorizer.get_feature_names_out()
        return sorted(zip(map(float, self.regression.coef_[0]), map(str, names), strict=True))


def _short(matrix: Any) -> Any:
    """The sparse matrix with places of 32 bits, which the solver needs."""
    matrix.indices, matrix.indptr = matrix.indices.astype("int32"), matrix.indptr.astype("int32")
    return matrix


def _sklearn(module: str) -> Any:
    try:
        import_module("sklearn")
        return import_module(f"sklearn.{module}")
    except ImportError as error:
        raise MissingExtra(
            "What wording gives away is found with scikit-learn, which is not installed.",
            hint="pip install 'askance[audit]', or leave it out with --no-wording.",
        ) from error


def _tell(
    statements: Sequence[Statement],
    probability: Sequence[float],
    *,
    look: Look,
    kind: NegativeKind | None = None,
    seed: int,
) -> Tell:
    rows = [
        [float(not one.wrong and chance < CHANCE), not one.wrong, float(one.wrong and chance > CHANCE), one.wrong]
        for one, chance in zip(statements, probability, strict=True)
    ]
    clusters = [one.key for one in statements]
    true, all_true, wrong, all_wrong = (sum(column) for column in zip(*rows, strict=True))
    return Tell(
        look=look,
        kind=kind,
        statements=len(statements),
        images=len({*clusters}),
        accuracy=(true / all_true + wrong / all_wrong) / 2,
        interval=statistics.bootstrap_totals(_balanced, rows, clusters, seed=seed),
    )


def _balanced(sums: NDArray[float64]) -> NDArray[float64]:
    return (sums[..., 0] / sums[..., 1] + sums[..., 2] / sums[..., 3]) / 2


def _telling(statements: Sequence[Statement], *, seed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words that speak most for a negative, and those that speak most for a true statement."""
    seen = [features(each.text, "words") for each in statements]
    weights = _Classifier(seen, [each.wrong for each in statements], seed=seed).weights()
    names = [name.removeprefix("word ") for _, name in weights]
    return tuple(names[::-1][:SHOWN]), tuple(names[:SHOWN])
