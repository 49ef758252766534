"""Agents that are asked about inferences: whether one is plausible, how plausible, and which of several most.

They see a region of a picture, or read what is said of it. Two of them ask for one token and give the log-probabilities
of what it can be, since these tell inferences apart that would all be called plausible.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import InstanceOf
from typing_extensions import Unpack, override

from askance.agents.alternatives import Alternatives
from askance.agents.choice_fields import read_numbers
from askance.agents.choose import Chooser, OptionsQuestion
from askance.agents.picture_agent import PictureOptions, preset
from askance.agents.region import RegionAgent, RegionSubject, region_input, region_parts
from askance.agents.reply_ladder import ChoosingNode, read_choice
from askance.errors import BadImage, BadRequest, CallError, NoLogprobs, PromptTooLong, ReplayMiss
from askance.images import WHOLE_IMAGE, RegionView
from askance.nodes import AnswerField, Call, Read, Result, TypedAnswer, no_answer
from askance.nodes.answer import number_schema
from askance.nodes.answer_likelihood import WeighingNode
from askance.nodes.closed_set import ClosedSet

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse, ImagePart
    from askance.models import ModelLike, OutputMode
    from askance.nodes.node import Chat

TOP = 20
"""Likeliest tokens whose log-probabilities are asked for: as many as OpenAI and vLLM give."""

RATINGS = ("1", "2", "3")
"""The scale on which people rated inferences: 3 is the best."""

MOST_RANKED = 100
"""Inferences that are put in order by one reply, at most: as many as a prompt numbers."""


class InferenceQuestion(RegionSubject):
    """A region of a picture, and an inference about it."""

    inference: str


class RankedInferences(OptionsQuestion):
    """A region of a picture, and inferences about it to be put in order."""

    view: InstanceOf[RegionView] = WHOLE_IMAGE
    """What is shown of the picture."""


class LabelLogprobs(TypedAnswer):
    """How likely a model finds each label as the first token of its answer."""

    logprobs: Mapping[str, float]
    """By label, its log-probability: of all spellings together, or the floor."""
    floored: tuple[str, ...] = ()
    """The labels of which no spelling is among the likeliest tokens."""

    def __str__(self) -> str:
        return ", ".join(f"{label} {value:.2f}" for label, value in self.logprobs.items())


class Rating(TypedAnswer):
    """A rating that a model wrote, from 1 to 3."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


class InferenceAgent(RegionAgent[InferenceQuestion, Any]):
    """An agent that is asked about one inference."""

    takes = InferenceQuestion

    @override
    def variables(self, subject: InferenceQuestion) -> Mapping[str, Any]:
        return {**super().variables(subject), "inference": subject.inference}


class LabelWeigher(WeighingNode[InferenceQuestion, Any], InferenceAgent):
    """Asks for an answer of one token, and gives the log-probabilities of the labels that it can be.

    Args:
        model: gives log-probabilities.
        top: how many of the likeliest tokens are asked for.
        sees: whether the model sees the picture; else the region is described to it.
    """

    gives = LabelLogprobs
    labels: ClassVar[tuple[str, ...]]
    """What the answer can be; case does not matter."""

    def __init__(self, model: ModelLike, *, top: int = TOP, **options: Unpack[PictureOptions]) -> None:
        self.top = top
        super().__init__(model, **options)

    @override
    def request(self, subject: InferenceQuestion, mode: OutputMode) -> ChatRequest:
        """The request for one token, in plain text whatever the mode."""
        request = super().request(subject, "paper")
        least = _LEAST_TOKENS.get(request.model.api, 1)
        sampling = replace(request.sampling, max_tokens=least, logprobs=self.top)
        return replace(request, sampling=sampling, default_limit=False)

    @override
    async def _ask(self, inputs: Any, chat: Chat) -> Result[LabelLogprobs]:
        calls: list[Call] = []
        try:
            subject = self.accept(inputs)
            known = self.model.known
            if known is not None and known.logprobs is False:
                raise self._lacking("as its record says")
            request = self.request(subject, "paper")
            response = await chat(request, False)  # noqa: FBT003  # the signature of every such function
            calls.append(self._call(request, response))
            value = self._weighed(response)
        except BadRequest as error:
            refused = "logprob" in str(error).casefold() or "log-prob" in str(error).casefold()
            return no_answer(self._lacking(f"it says: {error.message}") if refused else error, calls=calls)
        except (CallError, ReplayMiss, BadImage, PromptTooLong) as error:
            return no_answer(error, calls=calls)
        if value is None:
            why = response.refusal or "a content filter stopped the answer"
            outcome = "refused" if response.outcome == "refused" else "filtered"
            return Result(outcome=outcome, reason=why, raw=response.text, calls=tuple(calls))
        return Result(outcome="answered", value=value, calls=tuple(calls))

    def _weighed(self, response: ChatResponse) -> LabelLogprobs | None:
        """The log-probabilities of the labels in a response; None where it is refused.

        Raises:
            NoLogprobs: it has none.
        """
        if response.outcome in {"refused", "filtered"}:
            return None
        if not response.logprobs:
            raise self._lacking("its answer came without")
        first = response.logprobs[0]
        likely: dict[str, float] = {str(first["token"]): float(first["logprob"]), **first.get("top", {})}
        floor = min(likely.values())
        spellings = {
            label: [value for token, value in likely.items() if _plain(token) == label] for label in self.labels
        }
        return LabelLogprobs(
            logprobs={label: _log_sum(values) if values else floor for label, values in spellings.items()},
            floored=tuple(label for label, values in spellings.items() if not values),
        )

    def _lacking(self, why: str) -> NoLogprobs:
        return NoLogprobs(
            f"{str(self.model.id)!r} gives no log-probabilities: {why}.",
            hint="Ask by=choice, or by=rating with top=0, which takes the number that is written; "
            "if the endpoint gives fewer of them, top=5.",
        )


_LEAST_TOKENS: Mapping[str, int] = {"responses": 16}
"""By API, the least limit of tokens that it takes."""

_BLANKS = " \t\n\r\"'`*._\u0120\u2581"
"""What may stand around a label in its token, the marks of tokenizers for blanks among it."""


def _plain(token: str) -> str:
    return token.strip(_BLANKS).casefold()


def _log_sum(values: Sequence[float]) -> float:
    """The logarithm of the sum of what `values` are the logarithms of."""
    most = max(values)
    return most + math.log(sum(math.exp(value - most) for value in values))


class AcceptanceWeigher(LabelWeigher):
    """How much likelier a model finds "yes" than "no", asked whether an inference is plausible."""

    prompt = "accept_inference"
    picture_prompt = "accept_inference_from_picture"
    labels = ("no", "yes")


class RatingWeigher(LabelWeigher):
    """How likely a model finds each rating of an inference."""

    prompt = "rate_inference"
    picture_prompt = "rate_inference_from_picture"
    labels = RATINGS


class InferenceRater(ChoosingNode[InferenceQuestion, Rating], InferenceAgent):
    """Rates an inference from 1 to 3."""

    prompt = "rate_inference"
    picture_prompt = "rate_inference_from_picture"
    gives = Rating

    @override
    def fields(self, subject: InferenceQuestion) -> Sequence[AnswerField]:
        return (AnswerField("rating", number_schema(len(RATINGS)), "value", _rating_field),)

    @override
    def read_reply(self, text: str, subject: InferenceQuestion) -> Read[Rating]:
        places, rung = read_choice(text, _PLACES, single=True)
        return Read(Rating(value=places[0]), rung)

    @override
    def closed_set(self, subject: InferenceQuestion) -> ClosedSet:
        return ClosedSet(dict.fromkeys(RATINGS, ""))

    @override
    def chosen(self, subject: InferenceQuestion, places: Sequence[int]) -> Rating:
        return Rating(value=places[0])


_PLACES = Alternatives(((),) * len(RATINGS))


def _rating_field(data: Mapping[str, Any], name: str) -> int:
    return read_numbers(data, name, len(RATINGS), single=True)[0]


class InferenceRanker(Chooser):
    """Puts inferences about a region in order, the most plausible first; `count` is `MOST_RANKED`."""

    prompt = "rank_inferences"
    picture_prompt = "rank_inferences_from_picture"
    takes = RankedInferences

    @override
    def picture_parts(self, subject: OptionsQuestion) -> tuple[ImagePart, ...]:
        return region_parts(self.model, self.pictures(subject), cast("RankedInferences", subject).view)

    @override
    def variables(self, subject: OptionsQuestion) -> Mapping[str, Any]:
        view = cast("RankedInferences", subject).view
        return {**super().variables(subject), **region_input(view, sees=self.sees)}


accept_inference = AcceptanceWeigher
accept_inference_from_picture = preset(AcceptanceWeigher, sees=True)
rate_inference = InferenceRater
rate_inference_from_picture = preset(InferenceRater, sees=True)
rank_inferences = partial(InferenceRanker, count=MOST_RANKED)
rank_inferences_from_picture = partial(InferenceRanker, count=MOST_RANKED, sees=True)
