"""The conventions by which a recorded reply is read, and what each of them would make of a run's figures.

Three ways to read which caption a reply chooses are in use, and a figure moves by points from one to the other:

- `ours` is the ladder of `askance.agents.reply_ladder`, which reads all replies in this package.
- `official` is that of `gpt4/gpt4_from_description.py`. If exactly one of "Answer: A" to "Answer: E" stands in the
  reply, it is the answer. Else an extractor model was asked, and the answer is the one of "Final Answer: A" to "Final
  Answer: E" in its reply, which lies in the same file. Else the authors drew an option at random; here there is no
  answer then. So "Answer: All of them" is an A, and a reply that weighs "Answer: A" against "Answer: B" is unread.
- `leaderboard` is that of `lite_llm_leaderboard/run_leaderboard_inference.py`. The first "Final Answer: " with a letter
  of the task counts. Else the last paragraph may end with "Answer: C", or with a sentence such as "Therefore, the
  answer is C". Else the last option is taken: every reply that has any text has an answer.

Both are of the repository `jmhessel/caption_contest_corpus` at `d5f68b6`. An explanation is read as `gpt4/` reads it,
by `read_explanation`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from typing_extensions import override

from askance.agents.alternatives import alternatives_of
from askance.agents.reply_ladder import read_choice as read_option
from askance.errors import UsageError
from askance.evals.baselines import options_of
from askance.evals.newyorker.layout import LETTERS
from askance.evals.sample import Sample, Score
from askance.evals.suite.recorded_replies import RecordedAnswers, RecordedReplies, RecordedReply
from askance.nodes import Read, Unreadable
from askance.nodes.closed_set import ClosedSet

if TYPE_CHECKING:
    from askance.evals.metric import Metric
    from askance.evals.part import Question
    from askance.evals.scorer import Scorer

Convention: TypeAlias = Literal["ours", "official", "leaderboard"]
"""How a choice is read from a reply."""
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)


def letters_of(sample: Sample) -> Sequence[str]:
    """The letter of each option of a sample, in the order in which they are shown.

    It is the letter of the option's place in the data, which the sample's target says as `letters` where the options
    are shown in another order.

    Raises:
        UsageError: the sample has no options, or more than there are letters.
    """
    options = options_of(sample)
    target: object = sample.target
    named = cast("dict[str, Any]", target).get("letters") if isinstance(target, dict) else None
    letters = list(named or LETTERS[: len(options)])
    if len(letters) != len(options) or sorted(letters) != list(LETTERS[: len(options)]):
        raise UsageError(
            f"The {len(options)} options of the sample {sample.id!r} have the letters {', '.join(map(str, letters))}.",
            hint=f"Each option has one of {', '.join(LETTERS)}, from A on, in its `letters`.",
        )
    return letters


def read_choice(sample: Sample, reply: RecordedReply, convention: Convention = "ours") -> list[int]:
    """The number of the option that a reply chooses, from 1 in the order in which the sample shows them.

    Args:
        sample: with options.
        reply: the reply to it, which names options by the letters that they have in the data.
        convention: how it is read.

    Raises:
        Unreadable: it chooses none, or none of the sample's options.
    """
    return _read(sample, reply, convention).value


def _read(sample: Sample, reply: RecordedReply, convention: Convention) -> Read[list[int]]:
    """As `read_choice`, and which rung of our ladder read it."""
    letters = letters_of(sample)
    options = options_of(sample)
    of_letter = dict(zip(letters, options, strict=True))
    letter, rung = _READERS[convention](reply, tuple(of_letter[each] for each in sorted(letters)))
    if letter not in letters:
        raise Unreadable(f"the answer is {letter}, and the options are {', '.join(sorted(letters))}")
    return Read([letters.index(letter) + 1], rung)


@lru_cache(maxsize=4096)
def _read_ours(reply: RecordedReply, options: tuple[str, ...]) -> Read[str]:
    (place,), rung = read_option(reply.text, alternatives_of(options, lettered=True), single=True)
    return Read(LETTERS[place - 1], rung)


def _read_official(reply: RecordedReply, options: tuple[str, ...]) -> Read[str]:  # noqa: ARG001  # letters without an option count, too
    answers = _after("Answer: ", reply.text)
    if len(answers) != 1 and reply.extracted is not None:
        answers = _after("Final Answer: ", reply.extracted)
    if len(answers) != 1:
        subject = "the extractor's reply has" if reply.extracted is not None else "it has"
        raise Unreadable(f"{subject} {'several' if answers else 'none'} of `Answer: A` to `Answer: E`")
    return Read(answers[0])


def _after(words: str, text: str) -> list[str]:
    """The letters that stand behind `words` in a text, each once."""
    return [letter for letter in LETTERS if f"{words}{letter}" in text]


def _read_leaderboard(reply: RecordedReply, options: tuple[str, ...]) -> Read[str]:
    letters = LETTERS[: len(options)]
    last = reply.text.split("\n\n")[-1]
    marked, ending = _leaderboard(letters)
    match = marked.search(reply.text) or next((hit for each in ending if (hit := each.search(last))), None)
    return Read(match[1] if match else letters[-1])


@lru_cache(maxsize=4)
def _leaderboard(letters: str) -> tuple[re.Pattern[str], Sequence[re.Pattern[str]]]:
    """What marks an answer anywhere, and at the end of a reply in the order in which it is looked for."""
    ends = (
        r"Answer:\s*",
        r"(?:My final answer is|I finally choose|In conclusion, [^.!?]*answer is)\s+",
        r"(?:Therefore|Thus|So|Hence|Ultimately),\s+(?:the answer is|I choose|I select)\s+",
    )
    ending = [re.compile(rf"(?:^|[.!?]\s+){words}([{letters}])(?:\s*[.!?]?)?$") for words in ends]
    return re.compile(f"Final Answer: ([{letters}])"), ending


_READERS: Mapping[Convention, Callable[[RecordedReply, tuple[str, ...]], Read[str]]] = {
    "ours": _read_ours,
    "official": _read_official,
    "leaderboard": _read_leaderboard,
}


def read_explanation(sample: Sample, reply: RecordedReply) -> str:  # noqa: ARG001  # the signature of every such function
    """The explanation in a reply, by the authors' rule: what follows the first "Explanation:", on one line.

    "Here's my best explanation:", "Summary:" and "Step 3: Explanation -" count as "Explanation:", and so does one in
    small letters. A reply without any is the explanation itself.

    Raises:
        Unreadable: nothing follows it.
    """
    text = reply.text
    for heading in ("Here's my best explanation:", "Step 3: Explanation -", "Summary:", "explanation:"):
        text = text.replace(heading, "Explanation:")
    parts = text.split("Explanation:")
    explanation = text if len(parts) == 1 else " ".join(parts[1].split())
    if not explanation.strip():
        raise Unreadable("nothing follows `Explanation:`")
    return explanation


class RecordedChoices(RecordedAnswers):
    """Recorded replies that choose a caption, each of which is read by one of three conventions."""

    reading: Convention = "ours"
    """How a recorded reply is read: by our ladder, by the authors' rule, or by that of their leaderboard script."""

    @override
    def check(self, options: Mapping[str, Any]) -> None:
        """Checks that there are replies to read.

        Raises:
            UsageError: a model is asked, whose replies our ladder reads.
        """
        if self.reading != "ours" and not self.is_chosen:
            raise UsageError(
                f"The reading {self.reading!r} is one of recorded replies, and a model is asked.",
                hint="Give the file of replies, `-T answers=FILE`, or leave `reading` out.",
            )

    @override
    def suffix(self) -> str:
        return "" if self.reading == "ours" else f", {self.reading} reading"

    @override
    def solver(self, question: Question) -> RecordedReplies:
        choices = captions_of if self.reading == "ours" else None  # from which an extractor may choose
        return self.file.solver(partial(_read, convention=self.reading), choices=choices)


def captions_of(sample: Sample) -> ClosedSet:
    """The captions of a sample by their letters, in the order in which it shows them."""
    return ClosedSet(dict(zip(letters_of(sample), options_of(sample), strict=True)))


def by_convention(scorer: Scorer, *names: str) -> Scorer:
    """`scorer` with further metrics that say what each convention would give, such as `accuracy, official reading`.

    They are about samples that carry a reply, however the run itself reads it. A reply that a convention cannot read
    counts as wrong by it.

    Args:
        scorer: of answers as `read_choice` gives them; it asks nobody.
        names: names of its metrics that are given by convention.
    """
    apart = [metric for metric in scorer.metrics if metric.name in names]
    columns = tuple(dict.fromkeys(column for metric in apart for column in metric.columns))

    def read(sample: Sample, convention: Convention) -> Score | None:
        reply = RecordedReply.of(sample)
        if reply is None or not reply.is_said:
            return None
        try:
            return _at_once(scorer.score(sample, read_choice(sample, reply, convention)))
        except Unreadable:
            return None

    def with_conventions(score: Score, sample: Sample, *, unread: Score) -> Score:
        values = dict(score.values)
        for convention in CONVENTIONS:
            read_values = (read(sample, convention) or unread).values
            values |= {_named(column, convention): read_values[column] for column in columns if column in read_values}
        return replace(score, values=values)

    def score(sample: Sample, value: Any) -> Score:
        return with_conventions(_at_once(scorer.score(sample, value)), sample, unread=scorer.if_wrong(sample))

    def bound(of: Callable[[Sample], Score]) -> Callable[[Sample], Score]:
        return lambda sample: with_conventions(of(sample), sample, unread=of(sample))

    further = [_of_convention(metric, convention) for convention in CONVENTIONS for metric in apart]
    return replace(
        scorer,
        score=score,
        metrics=(*scorer.metrics, *further),
        if_wrong=bound(scorer.if_wrong),
        if_right=bound(scorer.if_right),
    )


_SUMMARIES: Mapping[Convention, str] = {
    "ours": "replies read by our ladder",
    "official": "replies read by the authors' rule; where they drew at random, it is wrong",
    "leaderboard": "replies read by the authors' leaderboard script, which takes the last option where it reads none",
}


def _named(name: str, convention: Convention) -> str:
    return f"{name}, {'our' if convention == 'ours' else convention} reading"


def _of_convention(metric: Metric, convention: Convention) -> Metric:
    return replace(
        metric,
        name=_named(metric.name, convention),
        columns=tuple(_named(column, convention) for column in metric.columns),
        summary=f"{metric.summary or metric.name}; {_SUMMARIES[convention]}",
        beside=True,
    )


def _at_once(score: Score | Awaitable[Score]) -> Score:
    """The score of a scorer that asks nobody."""
    if isinstance(score, Score):
        return score
    raise UsageError("Answers that a judge scores are not read by convention.", hint="Score them without a judge.")
