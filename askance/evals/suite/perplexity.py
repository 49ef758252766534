"""Perplexity: how likely the answering model finds the reference of a sample.

A chain gets one link more, the likelihood of the reference: the prompt of the node that answers, in its text form, with
the reference in the place of the answer. Two figures are made of it:

- `perplexity`: exp of the sum of negative log-probabilities over all samples, divided by the number of tokens that *the
  data* counts in the references. So models with different tokenizers compare.
- `perplexity by own tokens`: divided by the number of tokens of the model's own tokenizer.

A model behind an interface that weighs no given text has no perplexity: the figures are empty then, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import override

from askance.chains import Chain, Link, Step
from askance.errors import Skipped, UsageError
from askance.evals.metric import Metric
from askance.evals.part import Part
from askance.evals.scorer import Scorer, map_score
from askance.models.likelihood import TextLikelihood
from askance.nodes import Node, TextAnswer
from askance.nodes.answer_likelihood import AnswerLikelihood, LikelihoodQuestion

if TYPE_CHECKING:
    from askance.chains import Reading
    from askance.chat import JsonObject
    from askance.evals.sample import Prediction, Sample, Score


class Reference(TextAnswer):
    """What people have said in the place of the answer."""


REFERENCE = Link("reference", Reference)
LIKELIHOOD = Link("likelihood", TextLikelihood, label="likelihood of the reference")

NLL, DATA_TOKENS, OWN_TOKENS = "reference NLL", "reference tokens by the data", "reference tokens by the model"
"""Columns of a score: the sum of negative log-probabilities in nats, and two numbers of tokens."""


def _perplexity(sums: Sequence[float]) -> float:
    nll, tokens = sums
    # What no float can hold is no figure either.
    return math.exp(nll / tokens) if tokens and nll / tokens < _LARGEST else math.nan


_LARGEST = math.log(2.0**1023)

PERPLEXITY = Metric(
    name="perplexity",
    columns=(NLL, DATA_TOKENS),
    of_sums=_perplexity,
    percent=False,
    better="lower",
    summary="of the references, a token as the data counts tokens",
)
OWN_PERPLEXITY = Metric(
    name="perplexity by own tokens",
    columns=(NLL, OWN_TOKENS),
    of_sums=_perplexity,
    percent=False,
    better="lower",
    summary="of the references, a token of the model's tokenizer; models with other tokenizers do not compare",
)

NOTES = (
    "Perplexity is that of the reference behind the prompt in its text form; without an end of the turn",
    "It is over the samples that have an answer and a likelihood; a model that weighs no given text has none",
)


def with_likelihood(chain: Chain) -> Chain:
    """`chain` with one link more: how likely the model that answers finds the reference, which is given to the chain.

    Raises:
        UsageError: what answers is no node of a model, or it reasons before it answers.
    """
    answer = next(step for step in chain.steps if step.link.name == chain.target.name)
    answering: Any = answer.node
    reasons: bool = getattr(answering, "step_by_step", False)
    if reasons or not isinstance(answering, Node):
        why = "reasons before it answers" if reasons else "asks no model"
        raise UsageError(f"{answer.name!r} {why}, so that no reference is weighed.", hint="Leave out `perplexity`.")
    node = AnswerLikelihood(cast("Node[Any, Any]", answering))
    needs = (*answer.needs, REFERENCE)
    weighed = Step(link=LIKELIHOOD, node=node, needs=needs, subject=partial(_question, answer.subject))
    return Chain(chain.get_name(), target=chain.target, steps=[*chain.steps, weighed], mode=chain.mode)


def _question(subject: Callable[[Reading], Any], reading: Reading) -> LikelihoodQuestion:
    if reading.value(REFERENCE) is None:
        raise Skipped("there is no reference")
    return LikelihoodQuestion(subject=subject(reading), text=reading.require(REFERENCE).text)


def with_perplexity(scorer: Scorer, *, tokens: Callable[[Sample], int | None]) -> Scorer:
    """`scorer` with the two perplexities beside its own metrics; the predictions are those of `with_likelihood`.

    Args:
        scorer: of the answers.
        tokens: number of tokens of a sample's reference, as the data counts them; None where it does not.
    """

    def score(sample: Sample, prediction: Prediction) -> Score | Awaitable[Score]:
        link: Mapping[str, Any] = prediction.links.get(LIKELIHOOD.name) or {}
        values = likelihood_values(link, tokens(sample))
        missing = {} if values else {LIKELIHOOD.name: str(link.get("reason") or "not asked")}
        return map_score(
            scorer.score(sample, prediction.value),
            lambda found: replace(found, values={**found.values, **values}, notes={**found.notes, **missing}),
        )

    return replace(
        scorer,
        score=score,
        takes="prediction",
        metrics=(*scorer.metrics, PERPLEXITY, OWN_PERPLEXITY),
        notes=(*scorer.notes, *NOTES),
    )


def likelihood_values(link: Mapping[str, Any], tokens: int | None) -> dict[str, float]:
    """The values of a score from the link `likelihood` of a prediction; empty where it has no answer."""
    value: Any = link.get("value")
    if not isinstance(value, Mapping):
        return {}
    known = cast("JsonObject", value)
    counted = {} if tokens is None else {DATA_TOKENS: float(tokens)}
    return {NLL: float(known["nll"]), OWN_TOKENS: float(known["tokens"]), **counted}


class Perplexity(Part):
    """How likely the model that answers finds the references."""

    perplexity: bool = False
    """Whether the answering model is also asked how likely it finds each reference; a further call for each sample."""

    @override
    def check(self, options: Mapping[str, Any]) -> None:
        """Checks that a model answers.

        Raises:
            UsageError: recorded replies are to be weighed.
        """
        if self.perplexity and options.get("answers") is not None:
            raise UsageError("Recorded replies have no perplexity.", hint="Leave out `answers` or `perplexity`.")

    def measured(self, chain: Chain) -> Chain:
        """`chain`, with the likelihood of the reference where it is wanted."""
        return with_likelihood(chain) if self.perplexity else chain

    def inputs(self, reference: str) -> dict[str, str]:
        """What a sample's inputs get for its reference; empty where nothing is weighed."""
        return {REFERENCE.name: reference} if self.perplexity and reference.strip() else {}

    def scorer(self, scorer: Scorer, *, tokens: Callable[[Sample], int | None]) -> Scorer:
        """`scorer`, with the two perplexities where they are wanted; `tokens` as of `with_perplexity`."""
        return with_perplexity(scorer, tokens=tokens) if self.perplexity else scorer
