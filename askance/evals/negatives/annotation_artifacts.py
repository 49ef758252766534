"""Annotation artifacts: what tells negatives from true statements without the image.

Three things are looked at: the lengths of statements, their wording, and the answers of a model that sees no image. For
wording, a classifier is trained on the statements of some images and asked about those of others. So it finds what
negatives have in common. No twin of a statement is among its examples: neither one that is made from it, nor the same
text, which may be true of one image and a negative of another. Where its accuracy is above chance, a model can learn to
choose by the wording alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from askance import statistics
from askance.agents.choose import BlindChooser
from askance.agents.negative_writer import NegativeKind, normal, words
from askance.errors import optional_library
from askance.evals.job import Job, OnProgress
from askance.models import get_model

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from askance.chat import JsonObject
    from askance.evals.negatives.option_sets import OptionSet
    from askance.models import Engine, Model, ModelLike
    from askance.prompts import PromptLibrary
    from askance.statistics import Estimate, Interval

FeatureSet: TypeAlias = Literal["words", "form", "all"]
"""`words`: single words and pairs, in small letters; `form`: length, capitals, marks, blanks; `all`: both."""

FEATURE_SETS: tuple[FeatureSet, ...] = ("words", "form", "all")
FOLDS, FOLDS_SHARED = 5, 20
"""Folds of the cross-validation; more where images share texts, since a fold then leaves fewer to learn from."""
LEAST = 10
"""Fewest images that a classifier is trained on."""
CHANCE = 0.5
"""Balanced accuracy of a guess: the mean of the shares of true and of wrong statements that are classified rightly."""
UNDECIDED = 1e-9
"""Probabilities this near to chance differ from it by rounding; such a statement is right as often as a guess."""
SHOWN = 8
"""How many words are named for each class."""
ORDERS = 4
"""Orders in which each image's options are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledStatement:
    """One option of one image, as the classifier knows it."""

    key: str
    text: str
    wrong: bool
    kind: NegativeKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOnlyAccuracy:
    """How well a classifier that sees the text alone tells negatives from true statements."""

    features: FeatureSet
    kind: NegativeKind | None
    """Of the negatives that are looked at; None is all of them."""
    statements: int
    images: int
    accuracy: float
    """Balanced, cross-validated."""
    interval: Interval | None
    """By a bootstrap over whole images."""

    @property
    def above_chance(self) -> bool:
        """Whether the whole interval is above chance."""
        return self.interval is not None and self.interval.low > CHANCE

    def form(self) -> JsonObject:
        """The accuracy as JSON."""
        form = {"look": self.features, **asdict(self), "above_chance": self.above_chance}
        del form["features"]
        return form


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationArtifacts:
    """What tells the negatives of a file from its true statements."""

    lengths: Lengths
    accuracies: tuple[TextOnlyAccuracy, ...] = ()
    """Of all negatives by each set of features, then of each kind by all features; empty where nothing was trained."""
    wrong_words: tuple[str, ...] = ()
    """Words with the largest weight for a negative, the largest first."""
    true_words: tuple[str, ...] = ()
    probability: Mapping[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    """Probability that a statement is a negative, by image and text."""
    reason: str | None = None
    """Why nothing was trained."""

    @property
    def found(self) -> bool:
        """Whether wording tells negatives: over all of them, some set of features is above chance."""
        return any(each.above_chance for each in self.accuracies if each.kind is None)

    def form(self) -> JsonObject:
        """What was found as JSON, without the probabilities of single statements."""
        return {
            "found": self.found,
            "reason": self.reason,
            "lengths": asdict(self.lengths),
            "chance": CHANCE,
            "tells": [each.form() for each in self.accuracies],
            "wrong_words": list(self.wrong_words),
            "true_words": list(self.true_words),
        }


def find_artifacts(sets: Sequence[OptionSet], *, seed: int = 0, train: bool = True) -> AnnotationArtifacts:
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
        return AnnotationArtifacts(lengths=lengths, reason="it was not asked for")
    if len(sets) < LEAST:
        return AnnotationArtifacts(lengths=lengths, reason=f"it takes at least {LEAST} images")
    statements = [*statements_of(sets)]
    if not all(_both(statements[place].wrong for place in known) for known, _ in _folds(statements, seed=seed)):
        return AnnotationArtifacts(lengths=lengths, reason="the images share too many of their statements")
    kinds: list[NegativeKind] = sorted({each.kind for each in statements if each.kind is not None})
    accuracies: list[TextOnlyAccuracy] = []
    probability: list[float] = []
    for features in FEATURE_SETS:
        probability = _probabilities(statements, features, seed=seed)
        accuracies.append(_accuracy(statements, probability, features=features, seed=seed))
    for kind in kinds if len(kinds) > 1 else ():
        some = [each for each in statements if not each.wrong or each.kind == kind]
        accuracies.append(_accuracy(some, _probabilities(some, "all", seed=seed), features="all", kind=kind, seed=seed))
    wrong, true = _strongest_words(statements, seed=seed)
    return AnnotationArtifacts(
        lengths=lengths,
        accuracies=tuple(accuracies),
        wrong_words=wrong,
        true_words=true,
        probability={(each.key, each.text): chance for each, chance in zip(statements, probability, strict=True)},
    )


def statements_of(sets: Sequence[OptionSet]) -> list[LabelledStatement]:
    """Every true statement and every negative."""
    statements: list[LabelledStatement] = []
    for each in sets:
        statements += [LabelledStatement(key=each.key, text=text, wrong=False) for text in each.true]
        statements += [
            LabelledStatement(key=each.key, text=one.text, wrong=True, kind=one.kind) for one in each.negatives
        ]
    return statements


def features_of(text: str, features: FeatureSet) -> dict[str, float]:
    """The features of a statement that belong to a set, by name."""
    seen: dict[str, float] = {}
    if features in {"words", "all"}:
        tokens = words(text)
        pairs = [f"{one} {other}" for one, other in pairwise(tokens)]
        seen.update({f"word {word}": float(count) for word, count in Counter([*tokens, *pairs]).items()})
    if features in {"form", "all"}:
        marks = Counter(letter for letter in text if not letter.isalnum() and not letter.isspace())
        seen.update({f"mark {mark}": float(count) for mark, count in marks.items()})
        seen["words"] = len(text.split()) / 10
        seen["letters"] = len(text) / 50
        seen["capitals"] = float(sum(word[:1].isupper() for word in text.split()[1:]))
        seen["blanks"] = float(text != " ".join(text.split()))
        seen[f"end {text.strip()[-1:] if not text.strip()[-1:].isalnum() else ''}"] = 1.0
    return seen


def _probabilities(statements: Sequence[LabelledStatement], features: FeatureSet, *, seed: int) -> list[float]:
    """Probability that each statement is a negative, by a model that has seen neither its image nor the same text."""
    seen = [features_of(each.text, features) for each in statements]
    wrong = [each.wrong for each in statements]
    probabilities = [CHANCE] * len(statements)
    for known, tested in _folds(statements, seed=seed):
        if _both(wrong[place] for place in known):
            model = _Classifier([seen[place] for place in known], [wrong[place] for place in known], seed=seed)
            for place, chance in zip(tested, model.chances([seen[place] for place in tested]), strict=True):
                probabilities[place] = chance
    return probabilities


def _folds(statements: Sequence[LabelledStatement], *, seed: int) -> Iterator[tuple[list[int], list[int]]]:
    """For each fold, places of statements to learn from and of others to classify; they share no image and no text."""
    texts, images = [normal(each.text) for each in statements], [each.key for each in statements]
    shared = len({*zip(texts, images, strict=True)}) > len({*texts})
    parts = min(FOLDS_SHARED if shared else FOLDS, len({*images}))
    split: Any = _sklearn("model_selection").GroupKFold(n_splits=parts, shuffle=True, random_state=seed)
    folds: Iterable[tuple[Sequence[int], Sequence[int]]] = split.split(texts, groups=images)
    for known, tested in folds:
        twins = {texts[place] for place in tested}
        yield [place for place in known if texts[place] not in twins], [*tested]


def _both(wrong: Iterable[bool]) -> bool:
    """Whether there are both true statements and negatives."""
    return len({*wrong}) == 2


class _Classifier:
    """A logistic regression over features of statements; it runs on one thread, so that the seed decides everything."""

    def __init__(self, seen: Sequence[Mapping[str, float]], wrong: Sequence[bool], *, seed: int) -> None:
        self.vectorizer: Any = _sklearn("feature_extraction").DictVectorizer()
        self.regression: Any = _sklearn("linear_model").LogisticRegression(
            solver="liblinear", class_weight="balanced", max_iter=1000, random_state=seed
        )
        self.regression.fit(_short(self.vectorizer.fit_transform(seen)), wrong)

    def chances(self, seen: Sequence[Mapping[str, float]]) -> list[float]:
        """Probability that each statement is a negative."""
        probabilities: Any = self.regression.predict_proba(_short(self.vectorizer.transform(seen)))
        return [float(chance) for chance in probabilities[:, 1]]

    def weights(self) -> list[tuple[float, str]]:
        """Weight and name of each feature, from the strongest for a true statement to the strongest for a negative."""
        names: Any = self.vectorizer.get_feature_names_out()
        return sorted(zip(map(float, self.regression.coef_[0]), map(str, names), strict=True))


def _short(matrix: Any) -> Any:
    """The sparse matrix with indices of 32 bits, which the solver needs."""
    matrix.indices, matrix.indptr = matrix.indices.astype("int32"), matrix.indptr.astype("int32")
    return matrix


def _sklearn(module: str) -> Any:
    return optional_library(
        f"sklearn.{module}",
        lacking="What wording gives away is found with scikit-learn, which is not installed.",
        hint="pip install 'askance[audit]', or leave it out with --no-wording.",
    )


def _accuracy(
    statements: Sequence[LabelledStatement],
    probability: Sequence[float],
    *,
    features: FeatureSet,
    kind: NegativeKind | None = None,
    seed: int,
) -> TextOnlyAccuracy:
    right = [
        0.5 if abs(chance - CHANCE) < UNDECIDED else float((chance > CHANCE) == one.wrong)
        for one, chance in zip(statements, probability, strict=True)
    ]
    rows, none, every = (
        [
            [share * (not one.wrong), float(not one.wrong), share * one.wrong, float(one.wrong)]
            for one, share in zip(statements, shares, strict=True)
        ]
        for shares in (right, [0.0] * len(right), [1.0] * len(right))
    )
    clusters = [one.key for one in statements]
    true, all_true, wrong, all_wrong = (sum(column) for column in zip(*rows, strict=True))
    return TextOnlyAccuracy(
        features=features,
        kind=kind,
        statements=len(statements),
        images=len({*clusters}),
        accuracy=(true / all_true + wrong / all_wrong) / 2,
        interval=statistics.bootstrap_totals(_balanced, rows, clusters, bounds=lambda: (none, every), seed=seed),
    )


def _balanced(sums: NDArray[float64]) -> NDArray[float64]:
    return (sums[..., 0] / sums[..., 1] + sums[..., 2] / sums[..., 3]) / 2


def _strongest_words(statements: Sequence[LabelledStatement], *, seed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words with the largest weight for a negative, and those with the largest weight for a true statement."""
    seen = [features_of(each.text, "words") for each in statements]
    weights = _Classifier(seen, [each.wrong for each in statements], seed=seed).weights()
    names = [name.removeprefix("word ") for _, name in weights]
    return tuple(names[::-1][:SHOWN]), tuple(names[:SHOWN])


# --- lengths ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Lengths of true statements and negatives, in words."""

    true: float
    wrong: float
    difference: Estimate
    """By how many words the negatives of an image are longer than its true statements, in the mean over images."""
    longest_true: Estimate
    """How often the longest option of an image is true; of several longest, the share that is true counts."""
    chance: float
    """How often an option drawn at random is true."""


def compare_lengths(sets: Sequence[OptionSet], *, seed: int = 0) -> Lengths:
    """The lengths of true statements and negatives; `seed` is that of the bootstraps."""
    true = [[len(text.split()) for text in each.true] for each in sets]
    wrong = [[len(one.text.split()) for one in each.negatives] for each in sets]
    both = [*zip(true, wrong, strict=True)]
    return Lengths(
        true=_mean([count for counts in true for count in counts]),
        wrong=_mean([count for counts in wrong for count in counts]),
        difference=statistics.mean_estimate([_mean(one) - _mean(other) for other, one in both], seed=seed),
        longest_true=statistics.mean_estimate([_longest_share(*pair) for pair in both], seed=seed),
        chance=_mean([len(one) / (len(one) + len(other)) for one, other in both]),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _longest_share(true: Sequence[int], wrong: Sequence[int]) -> float:
    """Of the longest options, the share that is true."""
    most = max([*true, *wrong])
    longest = true.count(most)
    return longest / (longest + wrong.count(most))


# --- a model that sees no image ---


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindImage:
    """What a model that sees no image chose among the options of one image."""

    key: str
    orders: int
    answered: int
    """Orders with an answer."""
    precision: float | None
    """Of the options that it chose, the share that is true, in the mean over orders; None without an answer."""
    chance: float
    """The precision of a guess."""
    chosen: Mapping[str, float]
    """How often each option was chosen, as a share of the orders with an answer."""

    @property
    def solved(self) -> bool:
        """Whether it answered in every order and chose true options alone."""
        return self.answered == self.orders and self.precision == 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindAnswers:
    """What a model that sees no image chose among the options of a file."""

    model: str
    orders: int
    images: Mapping[str, BlindImage]
    precision: Estimate
    """In the mean over images with an answer."""
    chance: float
    """The precision of a guess, over the same images."""
    calls: int
    unanswered: int

    @property
    def above_chance(self) -> bool:
        """Whether the whole interval is above chance."""
        interval = self.precision.interval
        return interval is not None and interval.low > self.chance

    def form(self) -> JsonObject:
        """The answers as JSON, image by image."""
        return {
            "model": self.model,
            "orders": self.orders,
            "precision": asdict(self.precision),
            "chance": self.chance,
            "above_chance": self.above_chance,
            "calls": self.calls,
            "unanswered": self.unanswered,
            "images": [{**asdict(image), "solved": image.solved} for image in self.images.values()],
        }


async def ask_blind(
    sets: Sequence[OptionSet],
    llm: ModelLike,
    *,
    orders: int = ORDERS,
    seed: int = 0,
    engine: Engine | None = None,
    prompts: PromptLibrary | None = None,
    on_progress: OnProgress | None = None,
) -> BlindAnswers:
    """Asks which options are true, of each image `orders` times, each time in another order.

    Args:
        sets: the options.
        llm: a model; it gets only the options, nothing about the images.
        orders: how often each image is asked about.
        seed: of the orders and of the bootstrap.
        engine: where `llm` is no model yet.
        prompts: where prompts are looked up.
        on_progress: called after every answer.

    Raises:
        CallError: the model cannot be asked at all.
    """
    model = get_model(llm, engine=engine)
    await model.output_mode()
    choosers = blind_choosers(sets, model, prompts=prompts)

    job = blind_job(sets, choosers, orders=orders, seed=seed)
    job.room = lambda: model.engine.places
    job.tell(on_progress, "blind answers")
    answers: dict[str, list[tuple[str, ...]]] = {each.key: [] for each in sets}
    for each, chosen in await job.run():
        if chosen is not None:
            answers[each.key].append(chosen)
    images = {each.key: _image(each, answers[each.key], orders=orders) for each in sets}
    judged = [image for image in images.values() if image.precision is not None]
    precisions = [image.precision or 0.0 for image in judged]
    return BlindAnswers(
        model=str(model.id),
        orders=orders,
        images=images,
        precision=statistics.mean_estimate(precisions, seed=seed, binary={0.0, 1.0}.issuperset(precisions)),
        chance=sum(image.chance for image in judged) / len(judged) if judged else 0.0,
        calls=len(sets) * orders,
        unanswered=len(sets) * orders - sum(map(len, answers.values())),
    )


_Chosen: TypeAlias = "tuple[OptionSet, tuple[str, ...] | None]"
"""The options of an image, and those that were chosen as true."""


def blind_job(
    sets: Sequence[OptionSet], choosers: Mapping[int, BlindChooser], *, orders: int, seed: int
) -> Job[tuple[OptionSet, int], _Chosen, _Chosen]:
    """Asks about each of `sets` in each of its orders."""

    async def ask(turn: tuple[OptionSet, int]) -> _Chosen:
        each, order = turn
        options = shuffled(each, order, seed=seed)
        result = await choosers[len(each.true)].ask(options)
        return each, None if result.value is None else tuple(options[number - 1] for number in result.value.numbers)

    turns = [(each, order) for each in sets for order in range(orders)]
    return Job(items=turns, answer=ask, roles=[("blind", chooser) for chooser in choosers.values()])


def blind_choosers(
    sets: Sequence[OptionSet], model: Model, *, prompts: PromptLibrary | None = None
) -> dict[int, BlindChooser]:
    """The node that asks about the options of an image, by the number of true ones among them."""
    return {count: BlindChooser(model, count=count, prompts=prompts) for count in {len(each.true) for each in sets}}


def shuffled(each: OptionSet, order: int, *, seed: int) -> list[str]:
    """The options of an image, each once, in one of their orders."""
    options = [*dict.fromkeys(each.options)]
    Random(f"{seed}\n{each.key}\n{order}").shuffle(options)
    return options


def _image(each: OptionSet, answers: Sequence[tuple[str, ...]], *, orders: int) -> BlindImage:
    options = [*dict.fromkeys(each.options)]
    true = {*each.true}
    precisions = [sum(text in true for text in chosen) / len(chosen) for chosen in answers]
    counted = len(answers)
    return BlindImage(
        key=each.key,
        orders=orders,
        answered=counted,
        precision=sum(precisions) / counted if counted else None,
        chance=sum(text in true for text in options) / len(options),
        chosen={text: sum(text in chosen for chosen in answers) / counted for text in options} if counted else {},
    )
