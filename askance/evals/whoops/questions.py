"""Making questions about images from their captions: `askance data questions` (section 4.2 of the WHOOPS! paper).

Each pair of a question and its answer has to pass gates; pairs that do not are dropped:

1. A phrase of the caption is taken for an answer; it has to stand in the caption.
2. A question is written for it, without the answer in it.
3. The question is answered from the caption alone; a judge says whether both answers mean the same (as in Q²).
4. The question is answered without anything; a pair whose answer is guessed so is dropped: it needs no image.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from askance.agents import VisualQuestion, answer_from_description, judge_equivalence
from askance.agents.negative_writer import normal
from askance.agents.vqa import AnswerInCaption, find_candidates, write_question
from askance.chat import JsonObject, key_of
from askance.errors import UsageError
from askance.evals.job import CountItem, Job
from askance.evals.negatives import HardNegative, OptionSet, Sheet, draw_sheet, write_sheet
from askance.evals.run_folder import RunFolder, write_lines, write_whole
from askance.evals.suite.context import NOTHING
from askance.evals.suite.shuffle import stable_hash
from askance.models import run_sync
from askance.models.call_scope import Pending
from askance.models.capabilities import endpoint_key

if TYPE_CHECKING:
    from askance.agents import JudgeForm, Verdict
    from askance.images import Image
    from askance.models import Model, ModelLike
    from askance.nodes import Node, Result
    from askance.prompts import PromptLibrary

Gate: TypeAlias = Literal["in the caption", "question", "answered from the caption", "not answered blindly", "new"]
"""The gates, in their order; a pair is `new` if no other pair of the image asks the same."""
GATES: tuple[Gate, ...] = get_args(Gate)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPair:
    """An answer with its question, and the gate that stopped it."""

    answer: str
    question: str = ""
    from_caption: str = ""
    """The answer to the question from the caption."""
    blindly: str = ""
    """The answer to the question without anything."""
    stopped: Gate | None = None
    """The gate that it did not pass; None if it passed all."""
    reason: str = ""
    calls: tuple[str, ...] = ()
    """Keys of the records that it was made from."""
    failed: bool = False
    """Whether a call failed, so that another try may get further."""

    def form(self) -> JsonObject:
        """The pair as JSON."""
        form = asdict(self)
        return {**form, "calls": list(self.calls)}

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> QuestionPair:
        """The pair in `form`."""
        fields: dict[str, Any] = {**form, "calls": tuple(form["calls"])}
        return cls(**fields)


class QuestionMaker:
    """Makes questions from a caption.

    Args:
        llm: finds answers and writes questions.
        reader: answers questions from the caption; by default the LLM does.
        blind: answers them without anything; by default the LLM does.
        judge: says whether two answers mean the same; by default the LLM does.
        judge_form: of its question.
        count: answers of a caption at most.
        prompts: where prompts are looked up.
    """

    def __init__(
        self,
        llm: ModelLike,
        *,
        reader: ModelLike | None = None,
        blind: ModelLike | None = None,
        judge: ModelLike | None = None,
        judge_form: JudgeForm = "rubric",
        count: int = 5,
        prompts: PromptLibrary | None = None,
    ) -> None:
        self.finder = find_candidates(llm, count=count, prompts=prompts)
        self.writer = write_question(llm, prompts=prompts)
        self.reader = answer_from_description(llm if reader is None else reader, prompts=prompts)
        self.guesser = answer_from_description(llm if blind is None else blind, prompts=prompts, name="blind")
        self.judge = judge_equivalence(llm if judge is None else judge, form=judge_form, prompts=prompts)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that it asks, each once."""
        return tuple(dict.fromkeys(node.model for node in self.nodes.values()))

    @property
    def nodes(self) -> Mapping[str, Node[Any, Any]]:
        """Its nodes, by role."""
        return {
            "finder": self.finder,
            "writer": self.writer,
            "reader": self.reader,
            "blind": self.guesser,
            "judge": self.judge,
        }

    def form(self) -> JsonObject:
        """Everything that decides what is made."""
        prompts = [prompt for node in self.nodes.values() for prompt in node.prompts_in_use]
        return {
            "models": {name: node.model.form() for name, node in self.nodes.items() if name != "judge"},
            "judge": self.judge.canonical(),
            "prompts": {prompt.path.name: prompt.digest for prompt in prompts},
            "count": self.finder.count,
        }

    async def find(self, caption: str) -> Result[Any]:
        """Finds the answers in a caption."""
        return await self.finder.ask(caption)

    async def pair(self, caption: str, answer: str) -> QuestionPair:
        """Makes the pair of one answer; it goes from gate to gate until one stops it."""
        pair = QuestionPair(answer=answer)
        if normal(answer) not in normal(caption):
            return replace(pair, stopped="in the caption", reason="the caption does not have these words")
        for gate in (self._question, self._from_caption, self._blindly):
            pair = await gate(pair, caption)
            if pair.stopped is not None:
                break
        return pair

    async def _question(self, pair: QuestionPair, caption: str) -> QuestionPair:
        result = await self.writer.ask(AnswerInCaption(caption=caption, answer=pair.answer))
        question = "" if result.value is None else str(result.value)
        pair = _with(pair, result, gate="question", question=question)
        if pair.stopped is None and f" {normal(pair.answer)} " in f" {normal(question)} ":
            return replace(pair, stopped="question", reason="the question has the answer in it")
        return pair

    async def _from_caption(self, pair: QuestionPair, caption: str) -> QuestionPair:
        gate: Gate = "answered from the caption"
        result = await self.reader.ask(VisualQuestion(description=caption, question=pair.question))
        pair, verdict = await self._same(pair, result, gate=gate, name="from_caption")
        if verdict is None or verdict.value == "true":
            return pair
        return replace(pair, stopped=gate, reason=f"the caption answers {pair.from_caption!r} ({verdict})")

    async def _blindly(self, pair: QuestionPair, caption: str) -> QuestionPair:  # noqa: ARG002  # as every gate
        gate: Gate = "not answered blindly"
        result = await self.guesser.ask(VisualQuestion(description=NOTHING, question=pair.question))
        pair, verdict = await self._same(pair, result, gate=gate, name="blindly")
        if verdict is None or verdict.value != "true":
            return pair
        return replace(pair, stopped=gate, reason=f"a model that sees nothing answers {pair.blindly!r}")

    async def _same(
        self, pair: QuestionPair, result: Result[Any], *, gate: Gate, name: Literal["from_caption", "blindly"]
    ) -> tuple[QuestionPair, Verdict | None]:
        """Whether an answer means the same as the pair's; where there is no verdict, the pair is stopped."""
        pair = _with(pair, result, gate=gate, **{name: "" if result.value is None else str(result.value)})
        if pair.stopped is not None:
            return pair, None
        verdict = await self.judge.judge(pair.answer, getattr(pair, name), question=pair.question)
        pair = replace(pair, calls=(*pair.calls, *verdict.calls))
        if verdict.value is not None:
            return pair, verdict
        reason = f"no verdict: {verdict.outcome}: {verdict.reason}"
        return replace(pair, stopped=gate, reason=reason, failed=verdict.outcome == "failed"), None


def _with(pair: QuestionPair, result: Result[Any], *, gate: Gate, **answers: str) -> QuestionPair:
    """The pair with the answer of a node; stopped at the gate if there is none."""
    pair = replace(pair, calls=(*pair.calls, *(call.key for call in result.calls)), **answers)
    if result.value is not None:
        return pair
    return replace(
        pair, stopped=gate, reason=f"{result.outcome}: {result.reason}", failed=result.outcome in {"failed", "skipped"}
    )


KEPT, DROPPED = "questions.json", "dropped.jsonl"
QUESTION = "Is this the right answer to the question about the image?"
IMAGES = 100
"""How many images a sheet has; in the paper, people checked 300 questions."""


def write_questions(out: Path, pairs: Mapping[str, Sequence[QuestionPair]]) -> None:
    """Writes `questions.json`, the questions and answers by image, and `dropped.jsonl`, why the others were dropped."""
    by_caption = {
        key: [[pair.question, pair.answer] for pair in several if pair.stopped is None]
        for key, several in pairs.items()
    }
    write_whole(out / KEPT, json.dumps(by_caption, ensure_ascii=False, indent=1) + "\n")
    dropped = (
        {"image": key, "gate": pair.stopped, "reason": pair.reason, "question": pair.question, "answer": pair.answer}
        for key, several in pairs.items()
        for pair in several
        if pair.stopped is not None
    )
    write_lines(out / DROPPED, dropped)


def write_validation(
    out: Path,
    usable: Mapping[str, Sequence[QuestionPair]],
    *,
    images: Callable[[str], Image | None],
    count: int = IMAGES,
    seed: int = 0,
) -> Sheet:
    """Writes a sheet for people: `sheet.html`, `sheet.csv`, and `key.json`, which they must not see.

    A quarter of its lines are questions with the answer of another image, as in section 4.2. What people answer is read
    by `askance.evals.negatives.read_ratings`.

    Args:
        out: folder for the files.
        usable: by image the pairs that passed every gate.
        images: finds an image by its id.
        count: images at most.
        seed: of images, order and wrong answers.

    Raises:
        UsageError: there are too few questions.
        BadData: none of the images could be shown.
    """
    sets = [_options(key, usable, seed=seed) for key, pairs in usable.items() if pairs]
    if not any(each.negatives for each in sets):
        raise UsageError(
            f"The questions of {len(sets):,} images are too few for a sheet.",
            hint="Wrong answers are those of other images: it takes questions of two that are answered otherwise.",
        )
    sheet = draw_sheet([each for each in sets if each.negatives], count=count, seed=seed)
    write_sheet(sheet, out, images=images, question=QUESTION)
    return sheet


def _options(key: str, usable: Mapping[str, Sequence[QuestionPair]], *, seed: int) -> OptionSet:
    """The pairs of an image as statements, and to three of them one with a wrong answer."""
    true = tuple(dict.fromkeys(_shown(pair.question, pair.answer) for pair in usable[key]))
    own = {pair.answer.casefold() for pair in usable[key]}
    others = [pair.answer for other, pairs in usable.items() if other != key for pair in pairs]
    wrong = sorted(
        {each for each in others if each.casefold() not in own}, key=lambda each: stable_hash(seed, key, each)
    )
    shown = [_shown(pair.question, answer) for pair, answer in zip(usable[key], wrong, strict=False)]
    negatives = tuple(
        HardNegative(key=key, text=text, source=true[0]) for text in shown[: -(-len(true) // 3)] if text not in true
    )
    return OptionSet(
        key=key, true=true, options=(*true, *(negative.text for negative in negatives)), negatives=negatives
    )


def _shown(question: str, answer: str) -> str:
    return f"{question} {answer}"


_QUOTE = re.compile(r"(:| ['\"]).*", re.DOTALL)
"""Where a reason begins to quote."""

if TYPE_CHECKING:
    from askance.chains import Planner
    from askance.evals.whoops.images import WeirdImage


@dataclass(kw_only=True)
class QuestionSet:
    """The questions that were made, and how many pairs each gate left."""

    folder: Path
    captions: int
    done: int = 0
    """How many captions are done."""
    left: int = 0
    """How many captions are left because the budget was used up."""
    candidates: int = 0
    """How many answers were found in all captions."""
    passed: Mapping[Gate, int] = field(default_factory=dict[Gate, int])
    """How many pairs are left after each gate, in their order."""
    reasons: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many captions have no answers, by outcome."""
    pairs: Mapping[str, Sequence[QuestionPair]] = field(default_factory=dict[str, Sequence[QuestionPair]])
    """All pairs by image, with the dropped ones."""

    @property
    def complete(self) -> bool:
        """Whether every caption is done."""
        return self.done == self.captions

    @property
    def dropped(self) -> Mapping[tuple[Gate, str], int]:
        """How many pairs were dropped, by gate and reason; quotations in reasons are cut off."""
        stopped = [pair for pairs in self.pairs.values() for pair in pairs if pair.stopped is not None]
        counts = Counter((pair.stopped, _QUOTE.sub(" …", pair.reason)) for pair in stopped)
        return {(gate, reason): counts[gate, reason] for gate in GATES for each, reason in counts if each == gate}

    @property
    def kept(self) -> Mapping[str, Sequence[QuestionPair]]:
        """The pairs that passed every gate, by image."""
        return {key: [pair for pair in pairs if pair.stopped is None] for key, pairs in self.pairs.items()}


OnProgress: TypeAlias = Callable[[int, int], None]
"""Called after each caption with the number of captions that are done, and of all."""


def captions_of(entries: Sequence[WeirdImage]) -> Mapping[str, str]:
    """The captions of `entries`, by image id and place.

    Raises:
        UsageError: no entry has a caption.
    """
    captions = {f"{entry.id}\n{place}": text for entry in entries for place, text in enumerate(entry.captions)}
    if not captions:
        raise UsageError("There are no captions to make questions from.", hint="They are in `crowd_captions`.")
    return captions


async def amake(
    entries: Sequence[WeirdImage], maker: QuestionMaker, *, out: Path, on_progress: OnProgress | None = None
) -> QuestionSet:
    """Makes questions from the captions of `entries` into the folder `out`. The same call finishes an interrupted one.

    A caption with a failed call is tried again by the next call; requests on record are not made again.

    Args:
        entries: images with captions.
        maker: makes the questions.
        out: folder of the run and of the files.
        on_progress: called after every caption.

    Raises:
        UsageError: no entry has a caption, or the folder holds something else.
        CallError: a model cannot be reached at all.
        StoreError: the records or the folder cannot be read or written.
    """
    captions = captions_of(entries)
    configuration: JsonObject = {
        "task": "questions",
        **maker.form(),
        "captions": {"count": len(captions), "digest": key_of("captions", {"captions": captions})},
    }
    folder = RunFolder(out, configuration, name=lambda line: str(line["id"]))
    engine = maker.models[0].engine
    try:
        job = question_job(entries, maker).kept_in(
            folder.finished, lambda name, caption_pairs: folder.add(_line(name, captions[name], caption_pairs))
        )
        job.on_progress = on_progress
        await job.run()
        question_set = _question_set(out, captions, [*folder.lines()])
        write_questions(out, question_set.pairs)
        question_set.left = len(job.left)
        more = {"passed": dict(question_set.passed), "candidates": question_set.candidates, "left": question_set.left}
        folder.finish(engine.recorder.records, also=[endpoint_key(model.id) for model in maker.models], more=more)
    finally:
        folder.close()
    return question_set


def make(
    entries: Sequence[WeirdImage], maker: QuestionMaker, *, out: Path, on_progress: OnProgress | None = None
) -> QuestionSet:
    """As `amake`, from anywhere: scripts, threads, notebooks."""
    return run_sync(amake(entries, maker, out=out, on_progress=on_progress))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionPairs:
    """What was made of one caption."""

    found: Result[Any]
    """The answers in it."""
    pairs: Sequence[QuestionPair]

    @property
    def outcome(self) -> str:
        """That of its line."""
        return "failed" if any(pair.failed for pair in self.pairs) else self.found.outcome


async def _answer(caption: str, maker: QuestionMaker) -> CaptionPairs:
    result = await maker.find(caption)
    texts: Sequence[str] = () if result.value is None else result.value.texts
    return CaptionPairs(found=result, pairs=[await maker.pair(caption, text) for text in texts])


def _line(name: str, caption: str, caption_pairs: CaptionPairs) -> JsonObject:
    result, pairs, outcome = caption_pairs.found, caption_pairs.pairs, caption_pairs.outcome
    calls = [call.key for call in result.calls] + [key for pair in pairs for key in pair.calls]
    return {
        "id": name,
        "caption": caption,
        "outcome": outcome,
        "reason": result.reason,
        "value": [pair.form() for pair in pairs],
        "links": {"questions": {"outcome": outcome, "calls": calls}},
        "meta": {},
    }


def _question_set(out: Path, captions: Mapping[str, str], lines: Sequence[Mapping[str, Any]]) -> QuestionSet:
    """The result from the lines; of pairs of an image with the same question, the first is kept."""
    by_name = {str(line["id"]): line for line in lines}
    pairs: dict[str, list[QuestionPair]] = {}
    questions: dict[str, set[str]] = {}
    for name in captions:
        key = name.partition("\n")[0]
        for pair in _pairs(by_name.get(name)):
            pairs.setdefault(key, []).append(_once(pair, questions.setdefault(key, set())))
    every = [pair for several in pairs.values() for pair in several]
    return QuestionSet(
        folder=out,
        captions=len(captions),
        done=sum(line["outcome"] == "answered" for line in lines),
        candidates=len(every),
        passed={gate: sum(_passed(pair, gate) for pair in every) for gate in GATES},
        reasons=dict(Counter(str(line["outcome"]) for line in lines if not line["value"])),
        pairs=pairs,
    )


def _pairs(line: Mapping[str, Any] | None) -> Iterator[QuestionPair]:
    for form in () if line is None else line["value"]:
        yield QuestionPair.from_form(form)


def _once(pair: QuestionPair, questions: set[str]) -> QuestionPair:
    question = normal(pair.question)
    if pair.stopped is not None:
        return pair
    if question in questions:
        return replace(pair, stopped="new", reason="another pair of the image asks the same")
    questions.add(question)
    return pair


def _passed(pair: QuestionPair, gate: Gate) -> bool:
    return pair.stopped is None or GATES.index(pair.stopped) > GATES.index(gate)


def question_job(entries: Sequence[WeirdImage], maker: QuestionMaker) -> Job[str, CaptionPairs, Any]:
    """What is made of each caption of `entries`, as a job.

    If the answers of a caption are not known yet, its plan counts the most that it can have, and each passes all gates.
    So the plan is an upper bound.

    Raises:
        UsageError: no entry has a caption.
    """
    captions, engine = captions_of(entries), maker.models[0].engine

    async def answer(name: str) -> CaptionPairs | None:
        caption_pairs = await _answer(captions[name], maker)
        over = engine.budget is not None and engine.budget.used_up
        return None if caption_pairs.outcome == "failed" and over else caption_pairs

    return Job(
        items=[*captions],
        answer=answer,
        counts=partial(_counting, captions, maker),
        models=maker.models,
        engine=engine,
        unit="caption",
    )


@contextmanager
def _counting(captions: Mapping[str, str], maker: QuestionMaker, planner: Planner) -> Generator[CountItem[str]]:
    """A context in which a planner counts what captions ask."""

    def add_dependent(first: str, *, count: int) -> None:
        """Counts the calls of `count` pairs from that of `first` on."""
        for role in _ASKED[_ASKED.index(first) :] if first else ():
            name = role.split()[0]
            planner.counter(name, maker.nodes[name]).add_dependent(count)

    async def count_caption(name: str) -> None:
        caption_pairs = await _answer(captions[name], maker)
        if caption_pairs.found.error == Pending.__name__:
            add_dependent("writer", count=maker.finder.count)
        for pair in caption_pairs.pairs:
            add_dependent(_waiting(pair) if pair.failed else "", count=1)

    with planner.counting(maker.nodes.items()):
        yield count_caption


_ASKED: tuple[str, ...] = ("writer", "reader", "judge", "blind", "judge again")
"""The roles that are asked about a pair, in their order."""


def _waiting(pair: QuestionPair) -> str:
    """The role that is asked after the call that a pair waits for; empty if none is."""
    match pair.stopped:
        case "question":
            return "reader"
        case "answered from the caption":
            return "blind" if pair.from_caption else "judge"
        case _:
            return "" if pair.blindly else "judge again"
