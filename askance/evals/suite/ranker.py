"""Solvers that rank options by encoders of pictures and texts, without a language model.

`OptionRanker` uses the picture only. `FusionSolver` is that of Table 11 of the paper on atypical ads: a scorer says how
well an option fits the picture, and an embedder how similar it is to each text (objects, scene text, narration, what is
unusual, or the combined description). The paper does not say how the two are combined. Here

    fused(option) = (1 − weight) · fit(picture, option) + weight · mean over texts of cosine(text, option)

with a weight of 1/2, over texts that are not blank. If all are (a picture without scene text), only the picture counts.
With the two towers of one encoder and vectors of length 1, this ranks options as the mean of the features of picture
and texts does. Fits and cosines are added as they are, so the scorer has to give cosines too. Each text counts by
itself, because dual encoders read few tokens; `texts="joined"` makes one text of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from pydantic import Field
from typing_extensions import override

from askance.chains import DESCRIPTION, Chain
from askance.chains.planner import check_mode
from askance.errors import UsageError
from askance.evals.baselines import COUNT, options_of
from askance.evals.part import Answerer, Question
from askance.evals.sample import Prediction, Sample
from askance.evals.solver import PlanSample, Solver, given_of, nodes_form
from askance.evals.suite.context import PICTURE
from askance.evals.task_options import ROLES
from askance.models import ScorerLike, cosine, get_embedder, get_scorer

if TYPE_CHECKING:
    from askance.chains import Planner, Reading
    from askance.chat import JsonObject
    from askance.models import EmbedderLike, Engine, Model, RecordedScorer

FusionContext = Literal["I", "I+T", "I+T+V", "I+T+V+IN+UH", "I+T_V"]
"""What options are compared with: the picture, and beside it scene text, objects, narration, what is unusual, or the
combined description."""

Texts = Literal["apart", "joined"]
"""Whether options are compared with each text, or with all of them joined to one."""

PARTS: Mapping[str, tuple[str, ...]] = {
    "I": (),
    "I+T": ("scene_text",),
    "I+T+V": ("scene_text", "objects"),
    "I+T+V+IN+UH": ("scene_text", "objects", "narration", "unusual"),
    "I+T_V": ("description",),
}

WEIGHT = 0.5
"""Weight of the texts; the picture has the rest."""


class FusionSolver(Solver):
    """Gives the options that fit best, in order.

    Args:
        scorer: says how well an option fits the picture.
        embedder: says how similar an option is to a text; not needed for `I`.
        context: what options are compared with.
        chain: makes the texts that a sample does not bring; without it, a sample that lacks one is skipped.
        texts: whether texts are compared one by one or joined to one.
        weight: of the texts, from 0 to 1.
        count: how many options an answer has.
        engine: its records and mode are used for scores and vectors.

    Raises:
        UsageError: no such context, or no embedder for one with texts.
    """

    plannable = True

    def __init__(
        self,
        scorer: ScorerLike,
        embedder: EmbedderLike | None = None,
        *,
        context: FusionContext = "I",
        chain: Chain | None = None,
        texts: Texts = "apart",
        weight: float = WEIGHT,
        count: int = COUNT,
        engine: Engine | None = None,
    ) -> None:
        self.parts = parts_of(context)
        if self.parts and embedder is None:
            raise UsageError(f"The context {context!r} compares options with texts.", hint="Give an `embedder`.")
        if not 0 <= weight <= 1 or texts not in get_args(Texts):
            raise UsageError(
                f"Texts cannot be weighed by {weight:g} and taken {texts!r}.",
                hint=f"The weight is from 0 to 1; texts are {' or '.join(get_args(Texts))}.",
            )
        self.scorer = get_scorer(scorer, engine=engine).as_encoder()
        self.embedder = None if embedder is None else get_embedder(embedder, engine=engine or self.scorer.engine)
        self.context = context
        self.chain = chain or Chain("given", target=DESCRIPTION, steps=())
        self.texts: Texts = texts
        self.weight = weight
        self.count = count

    @property
    @override
    def models(self) -> Sequence[Model]:
        return list(dict.fromkeys(node.model for node in self.chain.nodes))

    @property
    @override
    def engine(self) -> Engine:
        return self.scorer.engine

    @override
    def form(self) -> JsonObject:
        return {
            "fusion": self.context,
            "scorer": self.scorer.form(),
            "embedder": None if self.embedder is None else self.embedder.form(),
            "texts": self.texts,
            "weight": self.weight,
            "count": self.count,
            **nodes_form(self.chain.nodes),
        }

    @override
    def plan(self, planner: Planner) -> PlanSample:
        walk = planner.walk(self.chain)

        async def count(sample: Sample, draw: int) -> None:
            self._count(sample, await walk.read(given_of(sample), draw=draw), planner)

        return count

    def _count(self, sample: Sample, reading: Reading, planner: Planner) -> None:
        """Counts the scores and vectors that an answer needs, without computing them.

        Args:
            sample: the sample to answer.
            reading: the chain's reading of it, as far as it is on record.
            planner: counts.

        Raises:
            BadImage: the file of the picture cannot be read.
        """
        if sample.image is None:
            return
        options, scorer = options_of(sample), self.scorer
        keys, lacking = scorer.keys(sample.image, options), scorer.lacking(sample.image, options)
        planner.add_computed("scores", scorer.id, keys=keys, lacking=lacking)
        if self.embedder is None:
            return
        waiting = [part for part in self.parts if is_missing(reading, part)]
        joined = self.texts == "joined"
        known = [] if waiting and joined else self._texts(reading, without=waiting)
        texts = [*known, *options] if known or waiting else []
        keys, lacking = self.embedder.keys(texts), self.embedder.lacking(texts)
        dependent = min(1, len(waiting)) if joined else len(waiting)
        planner.add_computed("vectors", self.embedder.id, keys=keys, lacking=lacking, dependent=dependent)

    @override
    async def answer(self, sample: Sample) -> Prediction:
        """The prediction for one sample.

        Raises:
            AskanceError: the picture cannot be read, or a score or a vector cannot be computed.
        """
        options = options_of(sample)
        if sample.image is None:
            return Prediction(outcome="failed", reason="there is no picture")
        reading = await self.chain.ainvoke({**given_of(sample)})
        line = reading.to_dict()
        missing = why_missing(reading, self.parts)
        if missing is not None:
            return Prediction(outcome="skipped", reason=missing, links=line["links"], meta=line["meta"])
        fits = await self.scorer.score(sample.image, options)
        similar, keys = await self._similar(reading, options)
        fused = fits if similar is None else [self._fused(*pair) for pair in zip(fits, similar, strict=True)]
        calls = [*self.scorer.keys(sample.image, options), *keys]
        return Prediction(
            outcome="answered",
            value=ranked(fused)[: self.count],
            links={**line["links"], "scores": {"outcome": "answered", "calls": calls}},
            trace={"scores": fused, "verbalization": line["verbalization"]},
            meta=line["meta"],
        )

    def _texts(self, reading: Reading, *, without: Sequence[str] = ()) -> list[str]:
        """The texts on the picture, without blank ones."""
        of_parts = [said_in(reading, part).strip() for part in self.parts if part not in without]
        texts = [text for text in of_parts if text]
        return ["\n".join(texts)] if texts and self.texts == "joined" else texts

    async def _similar(self, reading: Reading, options: Sequence[str]) -> tuple[list[float] | None, Sequence[str]]:
        """By option its mean similarity to the texts, None if there are no texts; and the keys of the vectors."""
        texts = self._texts(reading)
        if self.embedder is None or not texts:
            return None, ()
        vectors = await self.embedder.embed([*texts, *options])
        about, chosen = vectors[: len(texts)], vectors[len(texts) :]
        similar = [fsum(cosine(text, option) for text in about) / len(about) for option in chosen]
        return similar, self.embedder.keys([*texts, *options])

    def _fused(self, fit: float, similarity: float) -> float:
        return (1 - self.weight) * fit + self.weight * similarity


def parts_of(context: str) -> tuple[str, ...]:
    """The links whose texts a context has.

    Raises:
        UsageError: there is no such context.
    """
    if context not in PARTS:
        raise UsageError(f"Options cannot be compared with {context!r}.", hint=f"Choose one of {', '.join(PARTS)}.")
    return PARTS[context]


def ranked(scores: Sequence[float]) -> list[int]:
    """Numbers of the options from the highest score down; of equal scores the lower number comes first."""
    return sorted(range(1, len(scores) + 1), key=lambda number: -scores[number - 1])


def why_missing(reading: Reading, parts: Sequence[str]) -> str | None:
    """Why the text of one of the links `parts` is missing; None if none is."""
    for part in parts:
        if not is_missing(reading, part):
            continue
        result = reading.links.get(part)
        if result is None:
            return f"{part} is not given, and there is nobody to ask for it"
        return f"{part} has no answer ({result.outcome})"
    return None


def is_missing(reading: Reading, part: str) -> bool:
    """Whether a link has no answer."""
    result = reading.links.get(part)
    return result is None or not result.answered


def said_in(reading: Reading, part: str) -> str:
    """The text of a link that has an answer; empty where no text was seen."""
    value: Any = reading.links[part].value
    return "\n".join(value.lines) if part == "scene_text" else str(value)


class OptionRanker(Solver):
    """Gives the number of the option that fits the picture best, and an empty list for a tie.

    Args:
        scorer: says how well a text fits a picture.
        prefix: text in front of every option, as an encoder was trained with it.
        engine: its records and mode are used for scores.
    """

    plannable = True

    def __init__(self, scorer: ScorerLike, *, prefix: str = "", engine: Engine | None = None) -> None:
        self.scorer = get_scorer(scorer, engine=engine).as_encoder()
        self.prefix = prefix

    @property
    @override
    def engine(self) -> Engine:
        return self.scorer.engine

    @override
    def form(self) -> JsonObject:
        prefix = {"prefix": self.prefix} if self.prefix else {}
        return {"ranks": "pairs", "scorer": self.scorer.form(), **prefix}

    @override
    def plan(self, planner: Planner) -> PlanSample:
        check_mode(self.scorer.engine.mode)

        async def count(sample: Sample, _: int) -> None:
            if sample.image is not None:
                image, texts, scorer = sample.image, self._texts(sample), self.scorer
                keys, lacking = scorer.keys(image, texts), scorer.lacking(image, texts)
                planner.add_computed("scores", scorer.id, keys=keys, lacking=lacking)

        return count

    @override
    async def answer(self, sample: Sample) -> Prediction:
        """The prediction for one sample.

        Raises:
            AskanceError: the picture cannot be read, or a score cannot be computed.
        """
        texts = self._texts(sample)
        if sample.image is None:
            return Prediction(outcome="failed", reason="there is no picture")
        fits = await self.scorer.score(sample.image, texts)
        best = [number for number, fit in enumerate(fits, start=1) if fit == max(fits)]
        return Prediction(
            outcome="answered",
            value=best if len(best) == 1 else [],
            links={"scores": {"outcome": "answered", "calls": list(self.scorer.keys(sample.image, texts))}},
            trace={"scores": fits},
        )

    def _texts(self, sample: Sample) -> list[str]:
        """What is held against the picture: the options, each with the prefix."""
        return [self.prefix + option for option in options_of(sample)]


class Encoder(Answerer):
    """An encoder that says how well an option fits the picture."""

    chosen_by = ("scorer",)
    noun = "a scorer"
    alone = ("A scorer ranks by the picture alone.", "Leave out the models and the context.")

    encoder: ScorerLike | None = Field(default=None, alias="scorer")
    """Says how well a text fits the picture; in place of the models."""

    @override
    def check(self, options: Mapping[str, Any]) -> None:
        """Checks that the encoder is alone with the picture.

        Raises:
            UsageError: models are given, a context other than the picture is, examples are, or reasoning is asked for.
        """
        if not self.is_chosen:
            return
        sentence, hint = self.alone
        if options.get("context", PICTURE) != PICTURE or any(options.get(role) is not None for role in ROLES):
            raise UsageError(sentence, hint=hint)
        if options.get("shots") or options.get("step_by_step"):
            more = " and `step_by_step`" if "step_by_step" in options else ""
            raise UsageError(sentence, hint=f"Leave out the examples{more}.")

    @cached_property
    def recorded(self) -> RecordedScorer:
        """The encoder, whose scores are recorded."""
        return get_scorer(cast("ScorerLike", self.encoder), engine=self.engine)

    @override
    def label(self) -> str:
        return str(self.recorded.id)

    @override
    def words(self) -> tuple[str, ...]:
        return (PICTURE,)

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), "scorer": self.recorded.form()} if self.is_chosen else super().kept()

    @override
    def solver(self, question: Question) -> OptionRanker:
        """The ranker of options.

        Raises:
            UsageError: the question has no options.
        """
        if not question.count:
            raise UsageError("A scorer ranks options, and there are none.", hint="Give a model.")
        return OptionRanker(self.recorded)
