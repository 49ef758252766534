"""Replies that others recorded: a file of raw replies takes the place of a model, and each reply is read again.

Who publishes figures often publishes the replies, too. `RecordedReplies` is a solver over such a file for any task: the
reply to a sample is found by the sample's id, and a function of the task reads the answer from it. No model is asked. A
sample carries its reply (`with_replies`), so that a run's folder is enough to read and score the run again.

A file is JSON lines, a JSON list of rows, or one JSON object of id to reply. A row has `instance_id` and `response` (or
`full_response`); other fields are ignored. A reply is a text or a chat completion of OpenAI's shape. A row with an
`error` in place of a reply is a call that failed.

Some authors asked a second model, an *extractor*, which answer a reply gives where their own rule read none. Its rows
stand in the same file, and their id is the md5 of the reply that it was asked about (as in `gpt4/` of
`jmhessel/caption_contest_corpus`). They are kept apart: a reader may take them, and they are no replies to samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import md5, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from typing_extensions import override

from askance.agents import extract_answer
from askance.amounts import many
from askance.chains import REPLY
from askance.chains.output_line import calls_meta
from askance.chains.planner import EXTRACTION
from askance.chat import OUTCOMES, Json, JsonObject, Outcome
from askance.documents import UnreadableDocument, parse_json
from askance.errors import BadData, MalformedReply, UnknownFinish, UsageError
from askance.evals.part import Answerer, Question
from askance.evals.sample import RECORDED, Prediction, Sample
from askance.evals.solver import PlanSample, Solver, nodes_form, prompt_files
from askance.evals.suite.files import MAX_MARKS, read_bytes
from askance.models.openai.chat_completions import from_chat
from askance.models.replies import FINISHES, clean_text
from askance.nodes import Read, Unreadable
from askance.nodes.closed_set import ClosedSet, Extraction, UnreadReply

if TYPE_CHECKING:
    from askance.chains import Planner
    from askance.evals.evaluation import Evaluation
    from askance.models import Model
    from askance.nodes import Node, Result

ID, REPLIES, ERROR = "instance_id", ("response", "full_response"), "error"
"""Fields of a row: its id, the names that its reply may have, and what stands there where the call failed."""
FINISH = "finish_reason"
"""Field of a row: why the reply ended, where the reply is a text."""

LONGEST_REPLY = 1_000_000
"""Most characters of a reply; models stop long before."""

_SHAPE = 'A row is `{"instance_id": "…", "response": "…"}`; an object maps ids to replies.'


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedReply:
    """What a model replied, as far as a file says it."""

    text: str
    outcome: Outcome = "answered"
    """How the call ended before anybody reads the text: `answered`, `refused`, `filtered`, `truncated` or `failed`."""
    reason: str | None = None
    """Why there is no answer, if there is none."""
    extracted: str | None = None
    """What an extractor model replied when it was asked which answer the text gives."""

    @property
    def is_said(self) -> bool:
        """Whether there is a text to read: the call did not end otherwise, and the reply is not empty."""
        return self.outcome == "answered" and bool(self.text.strip())

    def form(self) -> JsonObject:
        """The reply as JSON, as a sample carries it."""
        form = {"text": self.text, "outcome": self.outcome, "reason": self.reason, "extracted": self.extracted}
        return {name: value for name, value in form.items() if value is not None and (name, value) != _ANSWERED}

    @classmethod
    def of(cls, sample: Sample) -> RecordedReply | None:
        """The reply that a sample carries; None if it carries none.

        Raises:
            UsageError: what it carries is no reply.
        """
        if RECORDED not in sample.inputs:
            return None
        form: object = sample.inputs[RECORDED]
        fields = cast("dict[str, Any]", form) if isinstance(form, dict) else {}
        texts = {name: fields[name] for name in _TEXTS if isinstance(fields.get(name), str)}
        if "text" not in texts or texts.get("outcome", "answered") not in OUTCOMES:
            raise UsageError(
                f"The sample {sample.id!r} carries {str(sample.inputs[RECORDED])[:80]!r}, which is no recorded reply.",
                hint="Take the run's `samples.jsonl` from a copy, or run the evaluation again.",
            )
        return cls(**texts)


_TEXTS = ("text", "outcome", "reason", "extracted")
_ANSWERED = ("outcome", "answered")

ReadReply: TypeAlias = "Callable[[Sample, RecordedReply], Json | Read[Any]]"
"""Gives the answer that a sample's reply has, as JSON, as the task's scorer takes it, or that and the rung that read
it; raises `Unreadable` if there is none."""

ChoicesOf: TypeAlias = "Callable[[Sample], ClosedSet]"
"""Gives the answers that a sample's question has. An extracted answer is the list of their places, from 1."""


@dataclass(frozen=True, kw_only=True)
class ReplyFile:
    """A file of recorded replies."""

    sha256: str
    """Digest of the file."""
    rows: int
    name: str = ""
    """Name of the file, without its folder; empty if only its digest is known, as in a run that is scored again."""
    replies: Mapping[str, RecordedReply] = field(default_factory=dict[str, RecordedReply], repr=False)
    """By id, the replies to samples."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures should know of the file."""

    @classmethod
    def open(cls, path: str | Path) -> ReplyFile:
        """The replies in a file.

        Of several replies to one id the last counts, as where new replies are appended to a file; a note says how many
        there are.

        Raises:
            BadData: the file cannot be read, is too large, holds no reply, or a row of it is none.
        """
        file = Path(path)
        content = read_bytes(file)
        rows = [*_rows(content, repr(str(file)))]
        if not rows:
            raise BadData(f"The file {str(file)!r} holds no reply.", hint=_SHAPE)
        by_key = dict(rows)
        of_extractor = by_key.keys() & {_digest(reply) for reply in by_key.values()}
        return cls(
            sha256=sha256(content).hexdigest(),
            rows=len(rows),
            name=file.name,
            replies={
                name: replace(reply, extracted=by_key[_digest(reply)].text) if _digest(reply) in of_extractor else reply
                for name, reply in by_key.items()
                if name not in of_extractor
            },
            notes=(*_repeated(file.name, rows), *_extracted(file.name, len(of_extractor))),
        )

    def form(self) -> JsonObject:
        """What tells the file apart, as JSON; a run keeps it."""
        return {"sha256": self.sha256, "rows": self.rows}

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> ReplyFile:
        """The file that a run has kept; its replies lie with the samples of the run."""
        return cls(sha256=str(form.get("sha256")), rows=int(form.get("rows") or 0))

    def solver(self, read: ReadReply, *, choices: ChoicesOf | None = None) -> RecordedReplies:
        """The solver that reads the answers from the replies that samples carry.

        Args:
            read: gives the answer in a reply; raises `Unreadable` if there is none.
            choices: the answers that there are, so that an extractor can be given; None if they are free.
        """
        return RecordedReplies(read, file=self, choices=choices)

    def with_replies(
        self, samples: Sequence[Sample], *, left_out: Collection[str] = ()
    ) -> tuple[Sequence[Sample], tuple[str, ...]]:
        """`samples`, each with its reply, and notes on what is left over.

        Args:
            samples: of a task; a reply is found by the sample's id.
            left_out: ids of the data set that are no samples of this run, such as those of other folds.

        Raises:
            BadData: no sample has a reply.
        """
        lacking = [sample.id for sample in samples if sample.id not in self.replies]
        if samples and len(lacking) == len(samples):
            raise BadData(
                f"The file {self.name!r} has no reply to any of {many(len(samples), 'sample')}.",
                hint=f"It has ids like {next(iter(self.replies), '')!r}, and the samples like {lacking[0]!r}: "
                "give the file of this task, or another fold.",
            )
        ids = {sample.id for sample in samples}
        others = [name for name in self.replies if name not in ids]
        apart = [name for name in others if name in left_out]
        unknown = [name for name in others if name not in left_out]
        notes: list[str] = []
        if lacking:
            count = many(len(lacking), "sample has", "samples have")
            notes.append(f"{count} no reply in {self.name}, such as {lacking[0]!r}")
        if apart:
            count = many(len(apart), "reply is", "replies are")
            notes.append(f"{self.name}: {count} to items that this run leaves out, such as {apart[0]!r}")
        if unknown:
            count = many(len(unknown), "reply has", "replies have")
            notes.append(f"{self.name}: {count} an id of no sample, such as {unknown[0]!r}")
        return [self._with_reply(sample) for sample in samples], (*self.notes, *notes)

    def _with_reply(self, sample: Sample) -> Sample:
        reply = self.replies.get(sample.id)
        return sample if reply is None else replace(sample, inputs={**sample.inputs, RECORDED: reply.form()})


def _digest(reply: RecordedReply) -> str:
    """The id of an extractor's row about a reply."""
    return md5(reply.text.encode(), usedforsecurity=False).hexdigest()


def _repeated(name: str, rows: Sequence[tuple[str, RecordedReply]]) -> Iterator[str]:
    """A note on ids with several replies, if there are any."""
    last = dict(rows)
    if len(last) < len(rows):
        again = [each for each, count in Counter(each for each, _ in rows).items() if count > 1]
        differing = {each for each, reply in rows if reply != last[each]}
        count = many(len(again), "id has", "ids have")
        unlike = f"; those of {len(differing):,} differ, and the last one counts" if differing else ", which are equal"
        first = next((each for each in again if each in differing), again[0])
        yield f"{name}: {count} several replies{unlike}, such as those of {first!r}"


def _extracted(name: str, count: int) -> Iterator[str]:
    """A note on an extractor's rows, if there are any."""
    if count:
        yield f"{name}: {many(count, 'row is', 'rows are')} an extractor's, about other replies"


# --- reading a file ---


def _rows(content: bytes, file: str) -> Iterator[tuple[str, RecordedReply]]:
    """The ids and replies of a file, in order.

    Raises:
        BadData: it is no JSON, or a row is no reply.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadData(f"The file {file} is no text in UTF-8.", hint="Save it as UTF-8.") from error
    if sum(map(text.count, ",[{")) > MAX_MARKS:
        raise BadData(f"The file {file} holds more than {MAX_MARKS:,} values.", hint="Split it by task or by fold.")
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if len(lines) > 1 and _is_whole(lines[0][1]):
        for number, line in lines:
            where = f"Line {number} of {file}"
            yield _reply_of_row(_parsed(line, where), where)
        return
    whole: Any = _parsed(text, f"The file {file}") if lines else []
    if isinstance(whole, dict) and not _is_row(form := cast("JsonObject", whole)):
        for name, reply in form.items():
            yield name, _reply(reply, f"The reply to {name!r} in {file}")
        return
    for number, row in enumerate(cast("list[Any]", whole) if isinstance(whole, list) else [whole], start=1):
        yield _reply_of_row(row, f"Row {number} of {file}")


def _is_whole(line: str) -> bool:
    """Whether a line is a JSON object by itself, and so the file JSON lines."""
    try:
        return isinstance(parse_json(line, finite=False), dict)
    except UnreadableDocument:
        return False


def _parsed(text: str, where: str) -> Any:
    try:
        return parse_json(text, finite=False, unique=True)
    except UnreadableDocument as error:
        raise BadData(f"{where} {error}.", hint=_SHAPE) from error


def _is_row(form: JsonObject) -> bool:
    return isinstance(form.get(ID), str) and any(name in form for name in (*REPLIES, ERROR))


def _reply_of_row(row: Any, where: str) -> tuple[str, RecordedReply]:
    """The id and the reply of a row."""
    form: JsonObject = cast("JsonObject", row) if isinstance(row, dict) else {}
    name = form.get(ID)
    if not isinstance(name, str) or not name:
        raise BadData(f"{where} has no `{ID}` that is a text.", hint=_SHAPE)
    column = next((each for each in REPLIES if each in form), None)
    if column is not None:
        return clean_text(name), _ended(_reply(form[column], where), form.get(FINISH))
    if ERROR in form:
        return clean_text(name), RecordedReply(text="", outcome="failed", reason=str(form[ERROR])[:LONGEST_REASON])
    raise BadData(f"{where} has no `{REPLIES[0]}`.", hint=_SHAPE)


def _ended(reply: RecordedReply, finish: object) -> RecordedReply:
    """A reply with the finish reason that stands beside it, if one does."""
    outcome = _CUT.get(FINISHES.get(finish.lower(), "stop")) if isinstance(finish, str) else None
    if outcome is None or reply.outcome != "answered":
        return reply
    return replace(reply, outcome=outcome, reason=f"it ended by {finish!r}")


_CUT: Mapping[str, Outcome] = {"length": "truncated", "content_filter": "filtered"}

LONGEST_REASON = 500
"""Characters of an error that are kept."""


def _reply(value: Any, where: str) -> RecordedReply:
    """A reply that is a text or a chat completion; null is an empty one."""
    reply = (
        RecordedReply(text=clean_text(value)) if value is None or isinstance(value, str) else _completion(value, where)
    )
    if len(reply.text) > LONGEST_REPLY:
        raise BadData(f"{where} holds a reply of {len(reply.text):,} characters.", hint="No model replies so much.")
    return reply


def _completion(value: Any, where: str) -> RecordedReply:
    try:
        response = from_chat(value)
    except (MalformedReply, UnknownFinish) as error:
        raise BadData(
            f"{where} holds a reply that is neither a text nor a chat completion: {error.message}",
            hint="A completion has `choices`, with `message` and `content` in the first one.",
        ) from error
    outcome = response.outcome
    reason = None if outcome == "answered" else response.refusal or f"it ended by {response.finish!r}"
    return RecordedReply(text=response.text, outcome=outcome, reason=reason)


# --- the solver, and the answerer that makes it ---


class RecordedReplies(Solver):
    """Reads the answers to samples from the replies that they carry; it asks no model but an extractor, if it has one.

    A sample without a reply is `skipped`, an empty or unreadable reply is `invalid`; a refused, filtered, cut off or
    failed call keeps its outcome. What was replied stands with the link `reply` of the prediction.

    Args:
        read: gives the answer in a reply; raises `Unreadable` if there is none.
        file: where the replies are from.
        choices: the answers that there are, from which an extractor may choose; None if they are free.
        extractor: reads replies that `read` cannot read; None is nobody.
    """

    plannable = True

    def __init__(
        self,
        read: ReadReply,
        *,
        file: ReplyFile,
        choices: ChoicesOf | None = None,
        extractor: Node[UnreadReply, Extraction] | None = None,
    ) -> None:
        self.read = read
        self.file = file
        self.choices = choices
        self.extractor = extractor

    @property
    @override
    def models(self) -> Sequence[Model]:
        return () if self.extractor is None else (self.extractor.model,)

    @override
    def with_extractor(self, model: Model) -> RecordedReplies:
        """This solver with a model that reads replies which `read` cannot read.

        Raises:
            UsageError: the answers are free, or a convention of the papers reads them.
        """
        if self.choices is None:
            raise UsageError(
                "Nothing can be extracted from these replies: their answers are free, or are read by the papers' rule.",
                hint="Leave the extractor out, or read choices by our rules.",
            )
        return RecordedReplies(self.read, file=self.file, choices=self.choices, extractor=extract_answer(model))

    @property
    @override
    def prompts(self) -> Mapping[str, str]:
        return {} if self.extractor is None else prompt_files([self.extractor])

    @override
    def form(self) -> JsonObject:
        """Everything that decides the answers, beside the task's options."""
        extracted = {} if self.extractor is None else nodes_form([self.extractor])
        return {"replies": self.file.form(), **extracted}

    @override
    def plan(self, planner: Planner) -> PlanSample:
        async def count(sample: Sample, _: int) -> None:
            if self.extractor is not None:
                counter = planner.counter(EXTRACTION, self.extractor)
                with planner.counting(), counter.counting(self.extractor):
                    await self.answer(sample)

        return count

    @override
    async def answer(self, sample: Sample) -> Prediction:
        reply = RecordedReply.of(sample)
        if reply is None:
            return Prediction(outcome="skipped", reason="there is no recorded reply to it")
        if reply.outcome != "answered":
            return _unanswered(reply.outcome, reply.reason, reply)
        try:
            if not reply.is_said:
                raise Unreadable("the reply is empty")
            prediction = self.read(sample, reply)
            return _answered(prediction if isinstance(prediction, Read) else Read(prediction), reply)
        except Unreadable as error:
            return await self._extracted(sample, reply, fault=str(error))

    async def _extracted(self, sample: Sample, reply: RecordedReply, *, fault: str) -> Prediction:
        """What the extractor reads in a reply; the `fault` stands where there is no extractor, or it reads nothing."""
        if self.extractor is None or self.choices is None or not reply.is_said:
            return _unanswered("invalid", fault, reply)
        extraction = await self.extractor.ask(UnreadReply(reply=reply.text, choices=self.choices(sample)))
        spent = calls_meta(extraction.calls, {} if extraction.failure is None else {REPLY.name: extraction.failure})
        return replace(_of_extraction(extraction, reply, fault=fault), meta=spent)


def _of_extraction(extraction: Result[Extraction], reply: RecordedReply, *, fault: str) -> Prediction:
    """The prediction that an extraction gives; the `fault` of the reply stands where it reads nothing."""
    keys = [call.key for call in extraction.calls]
    if extraction.outcome == "failed":
        unanswered = _unanswered("failed", extraction.reason, reply, calls=keys)
        return replace(unanswered, links={REPLY.name: {**unanswered.links[REPLY.name], "error": extraction.error}})
    if extraction.value is None or not extraction.value.places:
        return _unanswered("invalid", fault, reply, calls=keys)
    return _answered(Read([*extraction.value.places], "extracted"), reply, calls=keys)


def _answered(read: Read[Any], reply: RecordedReply, *, calls: Sequence[str] = ()) -> Prediction:
    link: JsonObject = {"outcome": "answered", "calls": [*calls], "value": reply.text}
    return Prediction(outcome="answered", value=read.value, rung=read.rung, links={REPLY.name: link})


def _unanswered(outcome: Outcome, reason: str | None, reply: RecordedReply, *, calls: Sequence[str] = ()) -> Prediction:
    link: JsonObject = {"outcome": outcome, "calls": [*calls], "reason": reason, "raw": reply.text}
    return Prediction(outcome=outcome, reason=reason, links={REPLY.name: link})


class RecordedAnswers(Answerer):
    """Replies that others recorded, in place of a model's. Samples get them when the evaluation is made."""

    chosen_by = ("answers",)
    noun = "recorded replies"
    alone = ("Recorded replies take the place of models.", "Leave out `answers`, or the models.")

    answers: Path | None = None
    """File of replies that others recorded, in place of a model."""

    @property
    @override
    def is_chosen(self) -> bool:
        return bool(self.kept_or("replies", lambda: self.answers is not None))

    @property
    @override
    def looks(self) -> bool:
        return False

    @cached_property
    def file(self) -> ReplyFile:
        """The recorded replies.

        Raises:
            BadData: the file cannot be read.
        """
        form = self.kept_or("replies", dict[str, Any])
        return ReplyFile.from_form(form) if form else ReplyFile.open(cast("Path", self.answers))

    @override
    def label(self) -> str:
        return "recorded"

    @override
    def words(self) -> tuple[str, ...]:
        return (self.file.name,)

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), "replies": self.file.form()} if self.is_chosen else {}

    @override
    def solver(self, question: Question) -> RecordedReplies:
        """What reads the answers from the replies.

        Raises:
            UsageError: nothing says how a reply to the question is read.
        """
        if question.read is None:
            raise UsageError("Recorded replies are not read for this question.", hint="Leave out `answers`.")
        return self.file.solver(question.read)

    @override
    def prepared(self, evaluation: Evaluation, *, left_out: Collection[str]) -> Evaluation:
        """The evaluation with the reply of each sample.

        Raises:
            BadData: no sample has a reply.
            UsageError: the task shows its options in two orders.
        """
        if not self.is_chosen:
            return evaluation
        if any(sample.tags.get("order", 1) != 1 for sample in evaluation.samples):
            raise UsageError(
                "Recorded replies are to options in one order, and the task shows them in two.",
                hint="Leave out `orders`, or give -T orders=1.",
            )
        samples, notes = self.file.with_replies(evaluation.samples, left_out=left_out)
        return replace(evaluation, samples=samples, notes=(*evaluation.notes, *notes))
