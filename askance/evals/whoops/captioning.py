"""The task of captioning weird images (section 4.2 of the WHOOPS! paper): BLEU-4 and CIDEr over five references.

**Tokens.** Both use the words of sacrebleu's tokenizer `13a` in lower case, without punctuation. Published figures
use the PTB tokenizer, a Java program, which splits contractions and possessives: *isn't* is one word here and two there
(*is n't*). Captions rarely have them, so figures differ, but little.

**BLEU-4** is that of the whole corpus, without smoothing, by the reference that is nearest in length
(`askance.evals.suite.text_overlap`).

**CIDEr** is CIDEr-D as its authors' code has it (pycocoevalcap): n-grams are weighted by how few images of the *scored*
samples have them in their references, so that a part of the data gives other figures than the whole, and one image 0.
It is shown times 100, as in the papers; it can be up to 1,000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents.explain import CaptionWriter
from askance.chains import picture
from askance.evals.metric import Metric
from askance.evals.part import Question
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer
from askance.evals.suite.context import CAPTION, GOLD
from askance.evals.suite.text_overlap import COUNTS, NGRAMS, PLAIN_WORDS, captions_library, load_sacrebleu, plain_words
from askance.evals.whoops.task import CONTEXTS, WeirdModel, WhoopsTask
from askance.tools import caption

if TYPE_CHECKING:
    from askance.evals.metric import Matrix
    from askance.evals.whoops.images import WeirdImage
    from askance.models import Model
    from askance.nodes import Node

NOTES = (
    "Words by sacrebleu's tokenizer 13a, in lower case and without punctuation",
    "Published figures go by the PTB tokenizer, which takes contractions and possessives apart",
    "BLEU-4 is that of the corpus, without smoothing; CIDEr is CIDEr-D with the weights of the samples here",
    "By category there is BLEU-4 alone, since CIDEr's weights would be those of the category",
    "A wrong answer, which a non-answer counts as, is an empty caption; a right one is the first reference",
)


class Captioning(WhoopsTask):
    """Captions of weird images."""

    name = "whoops/captioning"
    needs = ("captions",)

    model: WeirdModel = WeirdModel(
        contexts=tuple(each for each in CONTEXTS if each not in {CAPTION, GOLD}),  # a caption of a caption says nothing
    )
    """The model that answers."""

    @override
    def samples(self) -> Sequence[Sample]:
        load_sacrebleu()
        _pycocoevalcap()
        return super().samples()

    @override
    def samples_of(self, entry: WeirdImage) -> Iterator[Sample]:
        yield self.sample_of(entry, target=list(entry.captions))

    @override
    def answer_of(self, sample: Sample) -> str:
        return str(sample.target[0])

    @override
    def question(self) -> Question:
        context = self.model.parsed_context
        asks_tool = context.picture and not self.examples.shots  # a tool takes no examples
        agent, asks = (captioner, picture) if asks_tool else (CaptionWriter, context.visual_question)
        return Question(name="captioning", agent=agent, asks=asks, given=self.given)

    @override
    def scorer(self) -> Scorer:
        load_sacrebleu()
        _pycocoevalcap()

        def score(sample: Sample, value: Any) -> Score:
            return caption_score(str(value), sample.target)

        plain = Scorer(
            score=score,
            metrics=(CIDER_METRIC, PLAIN_WORDS.metric),
            if_wrong=lambda sample: caption_score("", sample.target),
            if_right=lambda sample: caption_score(sample.target[0], sample.target),
            notes=NOTES,
        )
        return self.by_category(plain, PLAIN_WORDS.metric.name)


def captioner(model: Model, *, sees: bool) -> Node[Any, Any]:  # noqa: ARG001  # as agents are made
    """The tool that captions a picture."""
    return caption(model)


CIDER = "CIDEr"
_SAID, _REFERENCES = "tokens", "reference tokens"


def caption_score(candidate: str, references: Sequence[str]) -> Score:
    """The score of a caption: counts for BLEU, and the tokens for CIDEr.

    Raises:
        MissingExtra: sacrebleu is not installed.
    """
    words, others = plain_words(candidate), [plain_words(text) for text in references]
    return Score(values=PLAIN_WORDS.counts(candidate, references), notes={_SAID: words, _REFERENCES: others})


@dataclass(frozen=True, kw_only=True)
class Cider(Metric):
    """CIDEr-D: its weights come from the references of all scores together."""

    @override
    def matrix(self, scores: Sequence[Score]) -> Matrix:
        """One column: the CIDEr of each score, with weights from all of them."""
        covered = [score for score in scores if self.covers(score)]
        each = cider([(str(score.notes[_SAID]), score.notes[_REFERENCES]) for score in covered])
        return super().matrix([Score(values={self.columns[0]: value}) for value in each])


CIDER_METRIC = Cider(name=CIDER, columns=(COUNTS[0],), summary="CIDEr-D, by the references of the scored samples")


def cider(captions: Sequence[tuple[str, Sequence[str]]]) -> list[float]:
    """The CIDEr-D, from 0 to 10, of each caption; captions and references are tokens with blanks between them.

    Raises:
        MissingExtra: pycocoevalcap is not installed.
    """
    if not captions:
        return []
    scorer: Any = _pycocoevalcap().CiderScorer(n=len(NGRAMS), sigma=6.0)
    for candidate, references in captions:
        scorer += (candidate, list(references))
    if not any(words for _, references in captions for words in references):
        return [0.0] * len(captions)
    _, each = scorer.compute_score()
    return [float(value) for value in each]


def _pycocoevalcap() -> Any:
    return captions_library("pycocoevalcap.cider.cider_scorer", "pycocoevalcap", "CIDEr")
