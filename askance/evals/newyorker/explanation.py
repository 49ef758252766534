"""The task of explaining a joke: why a caption is funny under its cartoon (section 2.1 of the New Yorker paper).

The paper compares explanations in pairs (`askance judge prefer`), since overlap with one reference says little: 5-shot
GPT-3 has more of it than 5-shot GPT-4, and loses against it in 93 % of pairs (section 3.2, Q6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents import explain_joke
from askance.chains.cartoon import CAPTION, joke_question
from askance.evals.newyorker.reply_conventions import read_explanation
from askance.evals.newyorker.task import CartoonTask
from askance.evals.part import Question
from askance.evals.sample import Sample, SampleQuestion
from askance.evals.suite.context import NOTHING
from askance.evals.suite.perplexity import REFERENCE, Perplexity
from askance.evals.suite.text_overlap import overlap_scorer

if TYPE_CHECKING:
    from askance.evals.newyorker.dataset import Item
    from askance.evals.scorer import Scorer

HEADLINES = ("BLEU-4", "ROUGE-L", "perplexity")
"""Figures of which those of each fold stand beside the mean."""


class JokeExplanation(CartoonTask):
    """Why a caption is funny under its cartoon, in a few sentences."""

    name = "newyorker/explanation"
    about = "explanation"

    perplexity: Perplexity = Perplexity()
    """How likely the model finds the authors' words."""

    @override
    def asked(self, item: Item) -> Mapping[str, Any]:
        return {"caption": item.choices[0]}

    @override
    def samples_of(self, item: Item) -> Iterator[Sample]:
        tokens = {} if item.n_tokens is None else {"tokens": item.n_tokens}
        inputs = {**self.asked(item), **self.perplexity.inputs(item.label)}
        yield self.sample_of(item, inputs=inputs, target={"references": [item.label] if item.label else [], **tokens})

    @override
    def question_of(self, sample: Sample) -> SampleQuestion:
        """Judges are told the caption and the description, and never the reference that is weighed."""
        texts = {name: text for name, text in sample.inputs.items() if isinstance(text, str) and text != NOTHING}
        facts = [f"{name.replace('_', ' ')}: {text}" for name, text in texts.items() if name != REFERENCE.name]
        return SampleQuestion("Why is the caption funny under its cartoon?", "\n".join(facts))

    @override
    def question(self) -> Question:
        return Question(
            name=self.about,
            agent=partial(explain_joke, step_by_step=self.step_by_step),
            asks=partial(joke_question, sees=self.model.parsed_context.picture),
            needs=(CAPTION,),
            given=self.given,
            measured=self.perplexity.measured,
            read=read_explanation,
        )

    @override
    def scorer(self) -> Scorer:
        plain = overlap_scorer(lambda sample: sample.target["references"][0])
        scorer = self.perplexity.scorer(plain, tokens=lambda sample: sample.target.get("tokens"))
        return self.over_folds(scorer, *HEADLINES)
