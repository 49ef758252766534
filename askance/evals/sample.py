"""`Sample`, `Prediction` and `Score`, the plain values of an evaluation, each with a JSON form; and `SampleResult`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from askance.chat import canonical_json
from askance.errors import UsageError
from askance.evals.matrix import Matrix
from askance.evals.ranking import Ranking
from askance.images import Image
from askance.images.image import image_digest
from askance.nodes import Example, Rung

if TYPE_CHECKING:
    from askance.chat import Json, JsonObject, Outcome
    from askance.evals.attachment import Attachment


EXAMPLES: Final = "examples"
"""The input that holds questions with their answers, shown to the model before it is asked."""
SHOTS: Final = "shots"
"""Entry of a sample's trace: which examples were chosen, and how (`askance.evals.suite.shots`)."""
RECORDED: Final = "recorded"
"""The input of a sample that carries a reply which others recorded; see `askance.evals.suite.recorded_replies`."""
REGIONS: Final = "regions"
"""The input that holds regions of the picture: of each its boxes, as left, top, right and bottom."""
INFERENCES: Final = "inferences"
"""The input that holds texts which are held against the regions; a matrix of both has a column for each."""
HUMAN_RATINGS: Final = "ratings"
"""Entry of a target: by rater, what people say of the inferences, as numbers."""
ATTACHMENTS: Final[tuple[type[Attachment], ...]] = (Ranking, Matrix)
"""Every kind of file that a line may have beside it; a prediction has a field for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One thing to answer, with the right answer."""

    id: str
    image: Image | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the solver gets beside the picture, as JSON values: `options`, links of the chain that are given, and
    `examples`, a list of `Example`."""
    target: Any = None
    """The right answer, as JSON; only the scorer sees it."""
    group: str = ""
    """Samples of one group are not independent of each other. By default each sample is a group of its own, and samples
    of a task that share a picture are one group."""
    tags: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Facts to break figures down by, as JSON values."""
    trace: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How the sample came to be asked so, as JSON: which examples were chosen, and how. It decides nothing."""

    @property
    def cluster(self) -> str:
        """The group that the sample belongs to."""
        return self.group or self.id

    def form(self) -> JsonObject:
        """The sample as JSON, with its picture's name and digest; the digest is null if the file cannot be read."""
        return {
            "id": self.id,
            "group": self.cluster,
            "image": None if self.image is None else self.image.form(),
            "inputs": self.inputs_form(),
            "target": self.target,
            "tags": dict(self.tags),
            **({"trace": dict(self.trace)} if self.trace else {}),
        }

    def inputs_form(self) -> JsonObject:
        """The inputs as JSON: of examples the values and answers, and the names and digests of their pictures."""
        inputs = dict(self.inputs)
        if isinstance(shown := inputs.get(EXAMPLES), (list, tuple)):
            listed = cast("Sequence[Any]", shown)
            inputs[EXAMPLES] = [each.form() if isinstance(each, Example) else each for each in listed]
        return inputs

    def question(self) -> JsonObject:
        """The sample as JSON without trace, examples and recorded reply: equal for samples that ask the same."""
        form = self.form()
        form.pop("trace", None)
        inputs = {name: value for name, value in form["inputs"].items() if name not in {RECORDED, EXAMPLES}}
        return {**form, "inputs": inputs}

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> Sample:
        """The sample in `form`; its picture and those of its examples are known by their digests only.

        Raises:
            UsageError: the form is malformed.
        """
        try:
            return cls(
                id=str(form["id"]),
                image=None if form["image"] is None else Image.from_form(form["image"]),
                inputs=_inputs(form["inputs"]),
                target=form["target"],
                group=str(form["group"]),
                tags=dict(form["tags"]),
                trace=dict(form.get("trace", {})),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"This is no sample of a run: {str(form)[:80]!r}.",
                hint="Give the `sample` of a line of a run's `samples.jsonl`.",
            ) from error


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """What the answers to a sample answer, for a judge who compares two of them without seeing a picture."""

    text: str = "What is the best answer here?"
    """The question, in the words of a task or of a user; the default says nothing of the task."""
    about: str = ""
    """What the question is about, in words, such as a caption and a description; strangers may have written it."""


def sample_text(form: Mapping[str, Any]) -> str:
    """The canonical JSON text of a sample without its trace, which decides nothing."""
    return canonical_json({name: value for name, value in form.items() if name != "trace"})


def samples_digest(texts: Iterable[str]) -> str:
    """`key_of("samples", {"samples": [...]})`, from the texts of samples, ordered by id; one is in memory at a time."""
    digest = sha256(b'samples\n{"samples":[')
    for number, text in enumerate(texts):
        digest.update(f"{',' if number else ''}{text}".encode("utf-8", "surrogatepass"))
    digest.update(b"]}")
    return digest.hexdigest()


def grouped_by_picture(samples: Sequence[Sample]) -> Sequence[Sample]:
    """`samples`, with those that share a picture and name no group put into one group, named by its digest."""
    pictures = [image_digest(each.image) if each.image is not None and not each.group else None for each in samples]
    shared = {picture for picture, count in Counter(pictures).items() if picture is not None and count > 1}
    if not shared:
        return samples
    return [
        replace(sample, group=picture) if picture is not None and picture in shared else sample
        for sample, picture in zip(samples, pictures, strict=True)
    ]


def _inputs(form: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs in `form`, with `examples` as such; an input of that name that holds something else stays as it is."""
    inputs, shown = dict(form), form.get(EXAMPLES)
    listed = cast("list[Any]", shown) if isinstance(shown, list) else []
    if listed and all(isinstance(each, Mapping) and "values" in each for each in listed):
        inputs[EXAMPLES] = [Example.from_form(each) for each in listed]
    return inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A solver's result for a sample: an answer, or another outcome with its reason."""

    outcome: Outcome
    value: Json = None
    """The answer, as JSON; None if there is none."""
    reason: str | None = None
    """Why there is no answer, in words for a person."""
    links: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By link of the chain, as JSON: its outcome, and the `calls` (keys of records) that it rests on."""
    rung: Rung | None = None
    """Which rung of the ladder read the answer, where no schema was sent: `declared`, `whole` or `extracted`."""
    abstained: bool = False
    """Whether the answer is withheld: it counts as wrong. `value` is what it would be, or None."""
    confidence: float | None = None
    """How sure the solver is of the value, from 0 to 1; None where it does not say."""
    trace: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How it came about, as JSON, such as the verbalization."""
    ranking: Ranking | None = None
    """All that was ranked, where that is more than a value should hold; a run keeps it in a file of its own."""
    matrix: Matrix | None = None
    """An array of numbers that is more than a value should hold; a run keeps it in a file of its own."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    """What differs when a run is repeated: calls, seconds, tokens, cost."""

    def __post_init__(self) -> None:
        if self.confidence is not None and not 0 <= self.confidence <= 1:  # NaN is not, either
            raise UsageError(
                f"A confidence of {self.confidence!r} is not between 0 and 1.", hint="Give a share, such as 0.8."
            )

    @property
    def answered(self) -> bool:
        """Whether there is an answer, be it withheld or not."""
        return self.outcome == "answered"

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """What a run keeps beside its line."""
        return tuple(each for each in (self.ranking, self.matrix) if each is not None)

    def form(self) -> JsonObject:
        """The prediction as JSON; of an attachment its digest and its size."""
        return {
            "outcome": self.outcome,
            "reason": self.reason,
            "value": self.value,
            "links": dict(self.links),
            **({} if self.rung is None else {"rung": self.rung}),
            **({"abstained": True} if self.abstained else {}),
            **({} if self.confidence is None else {"confidence": self.confidence}),
            "trace": dict(self.trace),
            **{each.kind: each.form() for each in self.attachments},
            "meta": dict(self.meta),
        }

    @classmethod
    def from_form(cls, form: Mapping[str, Any], folder: Path) -> Prediction:
        """The prediction in `form`; its attachments lie in `folder`, that of the run, and are read when asked for.

        Raises:
            UsageError: the form of an attachment is none.
        """
        attachments: Mapping[str, Any] = {each.kind: each for each in attachments_of(form, folder)}
        return cls(
            outcome=form["outcome"],
            value=form["value"],
            reason=form["reason"],
            links=form["links"],
            rung=form.get("rung"),
            abstained=form.get("abstained", False),
            confidence=form.get("confidence"),
            trace=form["trace"],
            meta=form.get("meta", {}),
            **attachments,
        )


def attachments_of(line: Mapping[str, Any], folder: Path) -> Iterator[Attachment]:
    """The attachments that the line of a sample names; their files are read when their content is asked for.

    Args:
        line: its content; strangers may have written it.
        folder: of the run.

    Raises:
        UsageError: the entry of an attachment is none.
    """
    for kind in ATTACHMENTS:
        if (form := line.get(kind.kind)) is not None:
            yield kind.kept(folder, form, sample=str(line.get("id", "")))


def reads_of(ended: Iterable[tuple[str, str | None]]) -> dict[str, int]:
    """How many answers each rung of the ladder read, and how many replies none did; empty where all had a schema.

    Args:
        ended: the outcome of each sample, and the rung that read its answer.
    """
    counts = Counter(rung or ("schema" if outcome == "answered" else outcome) for outcome, rung in ended)
    if not any(counts[rung] for rung in _RUNGS[1:]):
        return {}
    reads = {**{rung: counts[rung] for rung in _RUNGS}, "unread": counts["invalid"]}
    return {name: count for name, count in reads.items() if count}


def told_reads(reads: Mapping[str, int]) -> str:
    """What `reads_of` gives, in words."""
    return "answers read: " + ", ".join(f"{reads[name]:,} {name}" for name in (*_RUNGS, "unread") if name in reads)


_RUNGS: tuple[Rung, ...] = get_args(Rung)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The score of an answer: numbers by name, from which metrics are computed."""

    values: Mapping[str, float]
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Details for the reader, as JSON: the kind of mistake, a judge's reason."""
    calls: tuple[str, ...] = ()
    """Keys of the records that it was made from: similarities, verdicts."""
    withheld: Mapping[str, float] | None = None
    """Of an abstention, what `values` would be if the answer had been given; `values` are those of a wrong answer."""

    def form(self) -> JsonObject:
        """The score as JSON."""
        form: JsonObject = {"values": dict(self.values), "notes": dict(self.notes), "calls": list(self.calls)}
        return form if self.withheld is None else {**form, "withheld": dict(self.withheld)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleResult:
    """One sample of a run with its answer and its score."""

    sample: Sample
    epoch: int
    """Counts from 0; a run with several epochs answers each sample several times."""
    prediction: Prediction
    score: Score | None = None
    """None if there is no answer, or if it could not be scored."""
    unscored: str | None = None
    """Why an answer has no score, such as a judge's call that failed."""
    tried: tuple[str, ...] = field(default=(), compare=False)
    """Keys of the records of those calls; used while the run is under way."""

    @property
    def bare(self) -> SampleResult:
        """The result without the texts of its answer: enough for the figures, in a tenth of the memory."""
        prediction = _bare(self.prediction.outcome, abstained=self.prediction.abstained)
        confidence = self.prediction.confidence
        return replace(
            self, prediction=prediction if confidence is None else replace(prediction, confidence=confidence)
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the records that the answer and its score are made from."""
        links = self.prediction.links.values()
        call_keys = tuple(str(key) for link in links for key in link["calls"])
        return call_keys if self.score is None else (*call_keys, *self.score.calls)


@cache
def _bare(outcome: Outcome, *, abstained: bool) -> Prediction:
    return Prediction(outcome=outcome, abstained=abstained)
