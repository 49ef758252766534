"""`Sample`, `Prediction` and `Score`: the plain values of an evaluation, each with a JSON form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from askance.errors import BadImage, UsageError
from askance.images import Image

if TYPE_CHECKING:
    from askance.chat import Json, JsonObject, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One thing to answer, with the right answer."""

    id: str
    image: Image | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the solver gets beside the picture, as JSON values: `options`, and links of the chain that are given."""
    target: Any = None
    """The right answer, as JSON; only the scorer sees it."""
    group: str = ""
    """Samples of one group are not independent of each other. By default each sample is a group of its own, and samples
    of a task that share a picture are one group."""
    tags: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Facts to break figures down by, as JSON values."""

    @property
    def cluster(self) -> str:
        """The group that the sample belongs to."""
        return self.group or self.id

    def form(self) -> JsonObject:
        """The sample as JSON, with its picture's name and digest; the digest is null if the file cannot be read."""
        picture = None if self.image is None else {"name": self.image.name, "sha256": _digest(self.image)}
        return {
            "id": self.id,
            "group": self.cluster,
            "image": picture,
            "inputs": dict(self.inputs),
            "target": self.target,
            "tags": dict(self.tags),
        }

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> Sample:
        """The sample in `form`; its picture is known by its digest only.

        Raises:
            UsageError: the form is malformed.
        """
        try:
            return cls(
                id=str(form["id"]),
                image=_known(form["image"]),
                inputs=dict(form["inputs"]),
                target=form["target"],
                group=str(form["group"]),
                tags=dict(form["tags"]),
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


def grouped_by_picture(samples: Sequence[Sample]) -> Sequence[Sample]:
    """`samples`, with those that share a picture and name no group put into one group, named by its digest."""
    pictures = [_digest(each.image) if each.image is not None and not each.group else None for each in samples]
    shared = {picture for picture, count in Counter(pictures).items() if picture is not None and count > 1}
    if not shared:
        return samples
    return [
        replace(sample, group=picture) if picture is not None and picture in shared else sample
        for sample, picture in zip(samples, pictures, strict=True)
    ]


def _digest(image: Image) -> str | None:
    try:
        return image.sha256
    except BadImage:
        return None


def _known(picture: Mapping[str, Any] | None) -> Image | None:
    if picture is None or picture["sha256"] is None:
        return None
    return Image.from_digest(str(picture["sha256"]), name=str(picture["name"]))


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
    trace: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How it came about, as JSON, such as the verbalization."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    """What differs when a run is repeated: calls, seconds, tokens, cost."""

    @property
    def answered(self) -> bool:
        """Whether there is an answer."""
        return self.outcome == "answered"

    def form(self) -> JsonObject:
        """The prediction as JSON."""
        return {
            "outcome": self.outcome,
            "reason": self.reason,
            "value": self.value,
            "links": dict(self.links),
            "trace": dict(self.trace),
            "meta": dict(self.meta),
        }

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> Prediction:
        """The prediction in `form`."""
        return cls(
            outcome=form["outcome"],
            value=form["value"],
            reason=form["reason"],
            links=form["links"],
            trace=form["trace"],
            meta=form.get("meta", {}),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The score of an answer: numbers by name, from which metrics are computed."""

    values: Mapping[str, float]
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Details for the reader, as JSON: the kind of mistake, a judge's reason."""
    calls: tuple[str, ...] = ()
    """Keys of the records that it was made from: similarities, verdicts."""

    def form(self) -> JsonObject:
        """The score as JSON."""
        return {"values": dict(self.values), "notes": dict(self.notes), "calls": list(self.calls)}
