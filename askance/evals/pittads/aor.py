"""The task of atypical object recognition: which two objects the atypicality of an ad is between (sections 3.1 and 4).

The relation is given and the model names the objects. The statement made of them, ŝ, is compared with the true ones by
the cosine similarity of their sentence embeddings.

How the paper is read where it leaves a choice:

- One relation is asked about for each image: the one that most annotators see, if any of them names usable objects for
  it, else that of the first statement. The printed shares fit 1,163, 1,163, 1,168, 1,108 and 245 samples in Table 2,
  and 246, 246, 246, 235 and 245 in Table 8: so a sample is an image. `per="relation"` asks about each relation that has
  statements.
- Those numbers differ from model to model, so the paper leaves out what it could not read. The convention `answered`
  does so too; else a non-answer counts as a similarity of 0.
- Several annotators may see the relation between other objects. ŝ counts by the true statement that it is most similar
  to; the mean over all of them stands beside.

To be scored a run needs its folder and nothing else: the vectors are among its records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from typing_extensions import override

from askance.agents import FillQuestion, fill_statement
from askance.agents.statement import EXAMPLES, PLACES
from askance.atypicality import RELATIONS, TEMPLATES, Relation, Statement
from askance.chains import STATEMENT
from askance.errors import UsageError
from askance.evals.metric import Metric, mean
from askance.evals.part import Question
from askance.evals.pittads.task import AdModel, AdsTask, statement_form
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer
from askance.evals.suite.any_solver import AnySolver
from askance.evals.suite.shots import SHOTS_NOTE, Examples
from askance.models import EmbedderLike, cosine

if TYPE_CHECKING:
    from askance.chains import Reading
    from askance.evals.pittads.dataset import Ad
    from askance.models import RecordedEmbedder

Per = Literal["image", "relation"]
"""What a sample is: an image, asked about one relation; or each relation of an image with true statements."""


EMBEDDER = "st:sentence-transformers/all-mpnet-base-v2"
"""The sentence encoder of the paper."""

ABOVE = (0.7, 0.6, 0.5)
"""A statement counts as right above each of these similarities (Table 2)."""

BEST, MEAN = "", "mean "
"""Prefixes of names of figures: by the most similar true statement, or by the mean over all of them."""

NOTES = (
    "The relation is given; a sample is an image unless `per` is `relation`",
    "Figures go by the most similar true statement of the relation, those that begin with 'mean' by the mean over all",
    "A non-answer counts as a similarity of 0; the paper leaves non-answers out, as the convention 'answered' does",
)


class ComparedExamples(Examples):
    """Examples before questions whose answers an embedder compares."""

    embedder: EmbedderLike = EMBEDDER  # pyright: ignore[reportIncompatibleVariableOverride]  # never None here
    """The embedder that computes similarities, of answers and of examples."""
    embeds: bool = True
    note: str = SHOTS_NOTE


class Aor(AdsTask):
    """Which two objects the atypicality of an ad is between."""

    name = "pittads/aor"
    needs = ("statements",)
    asked_with = ("relation",)

    model: AdModel = AdModel()
    """The model that answers."""
    other: AnySolver = AnySolver()
    """A solver in its place."""
    examples: ComparedExamples = ComparedExamples()
    """The answered examples before each question."""
    per: Per = "image"
    """Whether each image is a sample, or each relation of it."""

    @override
    def usable(self) -> Mapping[str, Callable[[Ad], bool]]:
        return {"with no true statement": lambda ad: bool(ad.statements)}

    @override
    def samples_of(self, ad: Ad) -> list[Sample]:
        """The samples of one ad: one, or one for each relation that has true statements."""
        stated = {statement.relation for statement in ad.statements}
        relations = {asked_relation(ad)} if self.per == "image" else stated
        return [
            Sample(
                id=ad.id if self.per == "image" else f"{ad.id}#{relation}",
                image=self.image_of(ad),
                inputs={**self.links[ad.id], "relation": relation},
                target=[statement_form(statement) for statement in ad.statements if statement.relation == relation],
                group=ad.id,
                tags={"relation": relation},
            )
            for relation in sorted(relations, key=RELATIONS.index)
        ]

    @override
    def answer_of(self, sample: Sample) -> Mapping[str, Any]:
        true = _statement(_true_of(sample)[0])
        return {"values": {"primary": true.primary, "secondary": true.secondary}}

    @override
    def label_of(self, sample: Sample) -> str:
        return str(sample.inputs["relation"])

    @override
    def question(self) -> Question:
        return Question(
            name=f"aor {self.parsed_context.name}",
            agent=fill_statement,
            asks=self._asked_in,
            target=STATEMENT,
            given=self.given,
            inputs=_given,
            value=_filled,
        )

    def _asked_in(self, reading: Reading) -> FillQuestion:
        shown = self.parsed_context.visual_question(reading)
        return FillQuestion(
            relation=_relation_in(reading),
            image=shown.image,
            description=shown.description,
            examples=reading.examples,
        )

    @override
    def scorer(self) -> Scorer:
        return similarity_scorer(self.examples.vectors.embedder)


def asked_relation(ad: Ad) -> Relation:
    """The relation that is asked about: what most annotators see, else that of the first true statement."""
    stated: list[Relation] = [statement.relation for statement in ad.statements]
    most = ad.plurality
    return stated[0] if most is None or most not in stated else most


def _given(sample: Sample) -> Mapping[str, Any]:
    """The chain's input; its options are the template of the relation with places to fill in, and an example."""
    inputs = dict(sample.inputs)
    template = TEMPLATES[inputs.pop("relation")]
    options = [template.format(primary=primary, secondary=secondary) for primary, secondary in (PLACES, EXAMPLES)]
    return {"name": sample.id, "image": sample.image, **inputs, "options": options}


def _relation_in(reading: Reading) -> Relation:
    return Statement.parse((reading.options or ("",))[0]).relation


def _filled(reading: Reading, sample: Sample) -> dict[str, str] | None:  # noqa: ARG001  # the signature of such functions
    statement = reading.statement
    return None if statement is None or statement.value is None else statement.value.canonical()


def similarity_scorer(embedder: RecordedEmbedder) -> Scorer:
    """The scorer of filled-in statements: their similarity to the true ones (section 4, Tables 2 and 8)."""
    return Scorer(
        closing=(embedder,),
        score=partial(_score, embedder),
        metrics=tuple(metric for kind in (BEST, MEAN) for metric in _metrics(kind)),
        if_wrong=lambda _: Score(values=_values([0.0])),
        if_right=lambda _: Score(values=_values([1.0])),
        notes=(*NOTES, f"Embeddings by {embedder.id}"),
    )


def _metrics(kind: str) -> list[Metric]:
    which = "the most similar true statement" if kind == BEST else "all true statements, on average"
    shares = [mean(f"{kind}> {bound}", summary=f"share above {bound}, by {which}") for bound in ABOVE]
    return [mean(f"{kind}similarity", percent=False, summary=f"cosine similarity to {which}"), *shares]


async def _score(embedder: RecordedEmbedder, sample: Sample, value: Any) -> Score:
    """The score of a statement: its similarity to the true ones."""
    filled, true = _statement(value).text, [_statement(form).text for form in _true_of(sample)]
    texts = [filled, *true]
    answer_vector, *meant = await embedder.embed(texts)
    similarities = [cosine(answer_vector, vector) for vector in meant]
    nearest = true[similarities.index(max(similarities))]
    return Score(values=_values(similarities), notes={"nearest": nearest}, calls=embedder.keys(texts))


def _values(similarities: Sequence[float]) -> dict[str, float]:
    by = {BEST: max(similarities), MEAN: math.fsum(similarities) / len(similarities)}
    return {
        name: value
        for kind, similarity in by.items()
        for name, value in (
            (f"{kind}similarity", similarity),
            *((f"{kind}> {bound}", float(similarity > bound)) for bound in ABOVE),
        )
    }


def _true_of(sample: Sample) -> list[Mapping[str, str]]:
    target: object = sample.target
    if not isinstance(target, list) or not target:
        raise UsageError(f"The sample {sample.id!r} has no true statement.", hint="Its target is a list of them.")
    return cast("list[Mapping[str, str]]", target)


def _statement(form: Mapping[str, Any]) -> Statement:
    try:
        return Statement(form["relation"], form["primary"], form["secondary"])
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{str(form)[:80]!r} is no statement.", hint="Give its `relation`, `primary` and `secondary`."
        ) from error
