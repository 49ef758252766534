"""How far a text has the words of its references: BLEU-4 in two conventions, and ROUGE-L.

**BLEU-4** is that of the whole corpus, by the reference that is nearest in length: of counts of n-grams, summed over
the samples. Which words and which smoothing it goes by is a convention (`BleuConvention`):

- `PLAIN_WORDS`: the words of sacrebleu's tokenizer `13a` in lower case, without punctuation, and no smoothing;
- `SACREBLEU`: what `sacrebleu.corpus_bleu` does where nothing is set: `13a` with case and punctuation, smoothing `exp`.

**ROUGE-L** is the mean of the F1 of longest common subsequences, as the package rouge-score has it without stemming.
The `rouge` of Hugging Face's `evaluate` uses the same package, but gives the median of 1,000 resampled means; the two
differ by the noise of that resampling.

An empty text has a BLEU-4 and a ROUGE-L of 0, and counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Literal

from askance.errors import optional_library
from askance.evals.metric import Metric, mean
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer

NGRAMS = (1, 2, 3, 4)
"""Lengths of n-grams."""

COUNTS = (
    "words",
    "reference words",
    *(f"{kind} {n}-grams" for kind in ("right", "all") for n in NGRAMS),
)
"""Columns of a score for BLEU: lengths, right n-grams, and all n-grams."""

_WORD = re.compile(r"\w")


@dataclass(frozen=True, kw_only=True)
class BleuConvention:
    """How BLEU-4 is counted and worked out."""

    tokens: Callable[[str], str]
    """From a text to its tokens, blanks between them."""
    smoothing: Literal["none", "exp"]
    """What n-grams of a length count as, of which none is right: 0, or 1/2, 1/4, … of one (sacrebleu's `exp`)."""
    summary: str
    """What a reader of the figure is told of it."""

    def counts(self, candidate: str, references: Sequence[str]) -> dict[str, float]:
        """What one text adds to the sums: a number for each of `COUNTS`.

        Raises:
            MissingExtra: sacrebleu is not installed.
        """
        whole = load_sacrebleu().BLEU(tokenize="none", smooth_method=self.smoothing, force=True)
        score = whole.corpus_score([self.tokens(candidate)], [[self.tokens(text)] for text in references])
        numbers = (score.sys_len, score.ref_len, *score.counts, *score.totals)
        return dict(zip(COUNTS, map(float, numbers), strict=True))

    def of_sums(self, sums: Sequence[float]) -> float:
        """BLEU-4, from 0 to 1, from sums of `COUNTS`."""
        candidate, reference, *grams = (round(number) for number in sums)
        score = import_module("sacrebleu.metrics.bleu").BLEU.compute_bleu(
            correct=grams[:4], total=grams[4:], sys_len=candidate, ref_len=reference, smooth_method=self.smoothing
        )
        return float(score.score) / 100

    @cached_property
    def metric(self) -> Metric:
        """BLEU-4 over scores that hold `COUNTS`."""
        return Metric(name="BLEU-4", columns=COUNTS, of_sums=self.of_sums, summary=self.summary)


def tokens_13a(text: str) -> str:
    """The tokens of sacrebleu's tokenizer `13a`, punctuation among them, blanks between them.

    Raises:
        MissingExtra: sacrebleu is not installed.
    """
    return _tokenizer()(text.rstrip())


def plain_words(text: str) -> str:
    """The words of a text in lower case without punctuation, blanks between them.

    Raises:
        MissingExtra: sacrebleu is not installed.
    """
    return " ".join(word for word in _tokenizer()(text.lower()).split() if _WORD.search(word))


PLAIN_WORDS = BleuConvention(tokens=plain_words, smoothing="none", summary="of the corpus, without smoothing")
SACREBLEU = BleuConvention(
    tokens=tokens_13a, smoothing="exp", summary="of the corpus, by the defaults of sacrebleu: 13a, smoothing exp"
)

ROUGE_L = mean("ROUGE-L", summary="F1 of the longest common subsequence, mean over the samples")
WORDS = Metric(name="words", columns=("length",), percent=False, better="neither", summary="in an answer, on average")


def rouge_l(candidate: str, reference: str) -> float:
    """ROUGE-L of one text: the F1, from 0 to 1, of the longest common subsequence of words.

    Words are runs of letters a-z and digits in lower case; they are not stemmed.

    Raises:
        MissingExtra: rouge-score is not installed.
    """
    return float(_rouge().score(reference, candidate)["rougeL"].fmeasure)


OVERLAP_NOTES = (
    "BLEU-4 is that of the corpus, by sacrebleu's defaults: tokenizer 13a with case, smoothing exp",
    "ROUGE-L is a mean with an interval; the `rouge` of `evaluate` gives the median of resampled means, from 0 to 1",
    "An empty text, which a non-answer counts as, has 0 and counts; official scripts may leave out its whole fold",
    "'words' is over the samples with an answer",
)


def overlap_scorer(reference: Callable[[Sample], str] = lambda sample: str(sample.target)) -> Scorer:
    """The scorer of texts by their overlap with one reference: BLEU-4 (`SACREBLEU`), ROUGE-L, and their mean length.

    Args:
        reference: the right text of a sample.

    Raises:
        MissingExtra: a package is not installed.
    """
    load_sacrebleu()
    _rouge()
    return Scorer(
        score=lambda sample, value: Score(values=overlap_values(str(value), reference(sample))),
        metrics=(SACREBLEU.metric, ROUGE_L, WORDS),
        if_wrong=lambda sample: Score(values=_without_length(overlap_values("", reference(sample)))),
        if_right=lambda sample: Score(values=_without_length(overlap_values(reference(sample), reference(sample)))),
        notes=OVERLAP_NOTES,
    )


def overlap_values(candidate: str, reference: str) -> dict[str, float]:
    """The values of one text for the metrics of `overlap_scorer`.

    Raises:
        MissingExtra: a package is not installed.
    """
    return {
        **SACREBLEU.counts(candidate, [reference]),
        ROUGE_L.name: rouge_l(candidate, reference),
        WORDS.columns[0]: float(len(candidate.split())),
    }


def _without_length(values: Mapping[str, float]) -> dict[str, float]:
    """`values` of a sample without an answer, which has no length."""
    return {name: value for name, value in values.items() if name not in WORDS.columns}


# --- the packages ---


def captions_library(name: str, package: str, figure: str) -> Any:
    """A module of a package of the extra `captions`, which a figure is worked out by.

    Raises:
        MissingExtra: it is not installed.
    """
    lacking = f"{package} is not installed, which {figure} is worked out by."
    return optional_library(name, "captions", lacking=lacking)


def load_sacrebleu() -> Any:
    """The package for BLEU.

    Raises:
        MissingExtra: it is not installed.
    """
    return captions_library("sacrebleu", "sacrebleu", "BLEU")


@cache
def _tokenizer() -> Callable[[str], str]:
    load_sacrebleu()
    return import_module("sacrebleu.tokenizers.tokenizer_13a").Tokenizer13a()


def _rouge() -> Any:
    module = captions_library("rouge_score.rouge_scorer", "rouge-score", "ROUGE-L")
    return module.RougeScorer(["rougeL"], use_stemmer=False)
