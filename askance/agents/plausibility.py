"""How plausible inferences about a region of a picture are, as chat models say.

*The Abduction of Sherlock Holmes* (Hessel and others, 2022) holds every model to one interface: picture × region ×
inference → plausibility. Here it is a `PictureScorer` that asks chat models:

| spec | what is asked | score |
|---|---|---|
| `vlm:MODEL?by=yes-no` | whether an inference is plausible: one token | log-odds of yes against no |
| `vlm:MODEL?by=rating` | a rating of an inference, from 1 to 3: one token | the expected rating |
| `vlm:MODEL?by=choice` | all inferences of a region in order: one reply | how many of the others stand below |
| `chain:region?vlm=MODEL&llm=MODEL` | the VLM what it sees, the LLM for a rating by that | as above |

Further settings: `top` is the number of likeliest tokens whose log-probabilities are asked for; with `top=0` a rating
is the number that is written, which makes many ties. `draws=N` asks N times and takes the mean; `orders=N` asks
`choice` in N orders. The settings of a spec that are none of these are the model's own.

The calls are on record, and scores are made of them anew; so nothing is recorded under a scorer's own name. A label
that is not among the likeliest tokens has the log-probability of the least of them, its floor: it has that or less. How
often that was so is counted, as is how often a description speaks of the marks that were drawn.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, cast, get_args
from urllib.parse import urlencode

from askance.agents.inference import (
    MOST_RANKED,
    TOP,
    AcceptanceWeigher,
    InferenceQuestion,
    InferenceRanker,
    InferenceRater,
    LabelLogprobs,
    RankedInferences,
    Rating,
    RatingWeigher,
)
from askance.agents.region import (
    RegionSubject,
    describe_region,
    describe_region_scene,
    highlight_region,
    speaks_of_mark,
    with_way_out,
)
from askance.chat import ModelId
from askance.errors import BadImage, CallError, ConfigError, UsageError
from askance.images import WHOLE_IMAGE, Image, RegionView
from askance.models import Engine, Model, get_model, use_draw
from askance.models.call_scope import Pending, current_scope
from askance.spec_grammar import count as count_setting
from askance.spec_grammar import one_of, read_settings, split_settings

if TYPE_CHECKING:
    from askance.agents.choose import Choice
    from askance.agents.picture_agent import PictureAgent
    from askance.chat import JsonObject
    from askance.models import ModelLike
    from askance.nodes import Node, Result
    from askance.prompts import PromptLibrary

T = TypeVar("T")

By = Literal["yes-no", "rating", "choice"]
"""What a model is asked about inferences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plausibility:
    """How plausible texts are, and what is to be known of it."""

    scores: tuple[float, ...]
    floored: int = 0
    """Labels that were not among the likeliest tokens, and so have the floor."""
    marks_described: int = 0
    """Descriptions that speak of the marks of a region as if they were in the picture."""


class CountsCalls(Protocol):
    """A planner, as far as a scorer needs it."""

    dependent_calls: set[int]

    def counting(self, roles: Sequence[tuple[str, Node[Any, Any]]]) -> AbstractContextManager[None]:
        """A context in which the calls of nodes are counted instead of made."""
        ...

    def counter(self, name: str, node: Node[Any, Any]) -> Any:
        """The counter of a role."""
        ...


async def _answers(node: Node[Any, Any], subjects: Sequence[InferenceQuestion | RankedInferences]) -> list[Any]:
    """What a node answers about each subject; all are asked for before an error of one is raised."""
    results = await asyncio.gather(*map(node.ask, subjects))
    return [_answer_in(with_way_out(result, each.view)) for result, each in zip(results, subjects, strict=True)]


class _EachAsked:
    """Asks about each text by itself.

    Args:
        node: what is asked.
        score: the score that an answer is.
    """

    def __init__(self, node: Node[Any, Any], score: Callable[[Any], float]) -> None:
        self.node = node
        self._score = score

    async def scores(self, subject: RegionSubject, texts: Sequence[str]) -> Plausibility:
        """The plausibility of different texts.

        Raises:
            BadImage: the picture cannot be used.
            CallError: a call ended without an answer.
        """
        fields = dict(subject)
        answers = await _answers(self.node, [InferenceQuestion(**fields, inference=text) for text in texts])
        floored = sum(len(each.floored) for each in answers if isinstance(each, LabelLogprobs))
        return Plausibility(scores=tuple(map(self._score, answers)), floored=floored)

    def calls(self, texts: Sequence[str]) -> Sequence[str]:
        """What tells the calls of one draw apart: a text for each, of which the request is made."""
        return texts


def _log_odds(answer: LabelLogprobs) -> float:
    return answer.logprobs["yes"] - answer.logprobs["no"]


def _expected_rating(answer: LabelLogprobs) -> float:
    most = max(answer.logprobs.values())
    weights = {label: math.exp(value - most) for label, value in answer.logprobs.items()}
    return sum(int(label) * weight for label, weight in weights.items()) / sum(weights.values())


def _written_rating(answer: Rating) -> float:
    return float(answer.value)


class _Ranking:
    """Has all texts put in order by one reply; its methods are those of `_EachAsked`.

    Args:
        node: puts them in order.
        orders: in how many orders they are shown. Every second one is the one before it turned round, so that what
            stands first because it was shown first stands last as often.
    """

    def __init__(self, node: InferenceRanker, orders: int) -> None:
        self.node = node
        self._orders = orders

    async def scores(self, subject: RegionSubject, texts: Sequence[str]) -> Plausibility:
        if len(texts) < 2:
            return Plausibility(scores=(0.0,) * len(texts))
        if len(texts) > MOST_RANKED:
            raise UsageError(
                f"{len(texts)} inferences cannot be put in order by one reply; {MOST_RANKED} can be.",
                hint="Ask by=yes-no or by=rating.",
            )
        orders = self._shown(texts)
        fields = dict(subject)
        choices = await _answers(self.node, [RankedInferences(**fields, options=tuple(order)) for order in orders])
        total = dict.fromkeys(texts, 0.0)
        for order, choice in zip(orders, choices, strict=True):
            numbers = cast("Choice", choice).numbers
            named = [order[number - 1] for number in numbers]
            unnamed = [text for text in order if text not in named]
            for place, text in enumerate(named):
                total[text] += len(texts) - 1 - place
            for text in unnamed:
                total[text] += (len(unnamed) - 1) / 2
        return Plausibility(scores=tuple(total[text] / len(orders) for text in texts))

    def calls(self, texts: Sequence[str]) -> Sequence[str]:
        return ["\n".join(order) for order in self._shown(texts)] if len(texts) > 1 else ()

    def _shown(self, texts: Sequence[str]) -> list[list[str]]:
        orders: list[list[str]] = []
        for number in range(self._orders):
            shuffled = sorted(texts, key=lambda text: sha256(f"{number}\n{text}".encode()).hexdigest())
            orders.append(orders[-1][::-1] if number % 2 else shuffled)
        return orders


def _answer_in(result: Result[T]) -> T:
    """The answer of a node.

    Raises:
        BadImage: its picture cannot be used.
        CallError: the call ended without an answer.
    """
    if result.error == BadImage.__name__:
        raise BadImage(result.reason or "The picture cannot be used.", hint=None)  # the reason has its hint
    return result.unwrap()


async def _all_of(asked: Iterable[Awaitable[T]]) -> list[T]:
    """What all of `asked` give; an error of one is raised when all are done, so that a plan has counted all."""
    results = await asyncio.gather(*asked, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return cast("list[T]", results)


@dataclass(frozen=True, eq=False)
class PlausibilityScorer:
    """A `PictureScorer` of inferences that asks chat models.

    The VLM judges by what it sees. With `describes` it describes a region, its scene and what is unusual, and the LLM
    judges by that; the descriptions are asked for once a region, whatever the number of inferences.

    Raises:
        UsageError: settings that do not go together.
    """

    vlm: ModelLike
    """Sees the picture."""
    llm: ModelLike | None = None
    """Says how plausible texts are of what is described to it; by default the VLM does."""
    _: KW_ONLY
    describes: bool = False
    """Whether the VLM describes the region, and the LLM judges by that."""
    by: By | None = None
    """What is asked, see the module: by default `yes-no`, of descriptions `rating`."""
    draws: int = 1
    """How often it is asked; the mean is taken."""
    orders: int = 1
    """In how many orders `choice` shows the inferences."""
    top: int = TOP
    """How many of the likeliest tokens are asked for; 0 takes the rating that is written."""
    engine: Engine | None = None
    """Of the models; None is that of `vlm` if that is a model, or else one with default settings."""
    prompts: PromptLibrary | None = field(default=None, repr=False)
    """Where prompts are looked up."""

    stored: ClassVar[bool] = False
    """Nothing is recorded under the scorer's own name: its calls are on record."""

    def __post_init__(self) -> None:
        by = self.asked_by
        if by not in get_args(By):
            raise UsageError(f"No model is asked by={by}.", hint=f"Choose one of {', '.join(get_args(By))}.")
        if self.draws < 1 or self.orders < 1 or self.top < 0:
            raise UsageError(
                f"A scorer cannot have draws={self.draws}, orders={self.orders} and top={self.top}.",
                hint="Give 1 draw and 1 order or more, and a `top` of 0 or more.",
            )
        if self.orders > 1 and by != "choice":
            raise UsageError(f"by={by} shows texts one by one, so it takes no orders.", hint="Leave them out.")
        if not self.top and by == "yes-no":
            raise UsageError(
                "by=yes-no compares log-probabilities, so it cannot do with top=0.",
                hint="Leave `top` out, or ask by=rating or by=choice.",
            )

    @property
    def asked_by(self) -> By:
        """What is asked."""
        return self.by or ("rating" if self.describes else "yes-no")

    @property
    def across_regions(self) -> bool:
        """Whether scores of different regions can be compared; ranks within one region cannot."""
        return self.asked_by != "choice"

    def in_engine(self, engine: Engine) -> PlausibilityScorer:
        """The scorer with its models in another engine."""
        return self if self.engine is engine else replace(self, engine=engine)

    @cached_property
    def _sees(self) -> Model:
        return get_model(self.vlm, engine=self.engine)

    @cached_property
    def _judges(self) -> Model:
        return self._sees if self.llm is None or not self.describes else get_model(self.llm, engine=self.engine)

    @cached_property
    def _way(self) -> _EachAsked | _Ranking:
        model, sees, prompts = self._judges, not self.describes, self.prompts
        match self.asked_by:
            case "yes-no":
                return _EachAsked(AcceptanceWeigher(model, top=self.top, sees=sees, prompts=prompts), _log_odds)
            case "rating" if self.top:
                return _EachAsked(RatingWeigher(model, top=self.top, sees=sees, prompts=prompts), _expected_rating)
            case "rating":
                return _EachAsked(InferenceRater(model, sees=sees, prompts=prompts), _written_rating)
            case _:
                ranker = InferenceRanker(model, count=MOST_RANKED, sees=sees, prompts=prompts)
                return _Ranking(ranker, self.orders)

    @cached_property
    def _describers(self) -> Mapping[str, PictureAgent[Any, Any]]:
        """By heading, what describes a region; nothing where the VLM judges by what it sees."""
        if not self.describes:
            return {}
        return {
            "Region": describe_region(self._sees, prompts=self.prompts),
            "Scene": describe_region_scene(self._sees, prompts=self.prompts),
            "Unusual": highlight_region(self._sees, prompts=self.prompts),
        }

    @property
    def nodes(self) -> tuple[Node[Any, Any], ...]:
        """The nodes that ask: those that describe, then the one that judges."""
        return (*self._describers.values(), self._way.node)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that are asked, each once."""
        return tuple(dict.fromkeys(node.model for node in self.nodes))

    @property
    def id(self) -> ModelId:
        """Its name for people."""
        settings = urlencode(self._settings)
        if not self.describes:
            return ModelId("vlm", f"{self._sees.id}?{settings}")
        return ModelId("chain", f"region?vlm={self._sees.id}&llm={self._judges.id}&{settings}")

    @property
    def _settings(self) -> JsonObject:
        """The settings that are not at their default, and `by`."""
        others = {"draws": (self.draws, 1), "orders": (self.orders, 1), "top": (self.top, TOP)}
        return {"by": self.asked_by, **{name: value for name, (value, usual) in others.items() if value != usual}}

    @property
    def parameters(self) -> JsonObject:
        """What decides the scores, as JSON: settings, models and prompts."""
        return {
            **self._settings,
            "models": {node.name: node.model.form() for node in self.nodes},
            "prompts": {prompt.path.name: prompt.digest for node in self.nodes for prompt in node.prompts_in_use},
        }

    async def score(self, image: Image, texts: Sequence[str]) -> Sequence[float]:
        """A score for each text, in their order; raises as `score_view`."""
        return await self.score_view(image, texts, WHOLE_IMAGE)

    async def score_view(self, image: Image, texts: Sequence[str], view: RegionView) -> Sequence[float]:
        """A score for each text of what `view` shows; raises as `plausibility`."""
        return (await self.plausibility(image, texts, view)).scores

    async def plausibility(self, image: Image, texts: Sequence[str], view: RegionView = WHOLE_IMAGE) -> Plausibility:
        """How plausible texts are of what `view` shows, and how often that is a bound; equal texts are asked once.

        Raises:
            BadImage: the picture cannot be used.
            CallError: a call ended without an answer.
            UsageError: there are more texts than can be put in order.
        """
        if not texts:
            return Plausibility(scores=())
        subject, marks = await self._subject(image, view)
        distinct = [*dict.fromkeys(texts)]

        async def drawn(draw: int) -> Plausibility:
            with use_draw(draw):
                return await self._way.scores(subject, distinct)

        first = current_scope().draw * self.draws
        each_draw = await _all_of(drawn(draw) for draw in range(first, first + self.draws))
        by_text = {
            text: math.fsum(one.scores[place] for one in each_draw) / self.draws for place, text in enumerate(distinct)
        }
        return Plausibility(
            scores=tuple(by_text[text] for text in texts),
            floored=sum(one.floored for one in each_draw),
            marks_described=marks,
        )

    async def aclose(self) -> None:
        """Closes the connections of its models; the next live call opens new ones."""
        for model in self.models:
            await model.aclose()

    async def _subject(self, image: Image, view: RegionView) -> tuple[RegionSubject, int]:
        """What is judged by, and how many of the descriptions speak of marks.

        Raises:
            BadImage: the picture cannot be used.
            CallError: a description has no answer.
        """
        if not self.describes:
            return RegionSubject(image=image, view=view), 0
        shown = self._shown_to_describe(view)
        results = await asyncio.gather(
            *(self._describers[name].ask(RegionSubject(image=image, view=each)) for name, each in shown.items())
        )
        said = {name: str(_answer_in(result)) for name, result in zip(shown, results, strict=True)}
        description = "\n".join(f"{name}: {text}" for name, text in said.items())
        return RegionSubject(description=description), sum(map(speaks_of_mark, said.values()))

    def _shown_to_describe(self, view: RegionView) -> Mapping[str, RegionView]:
        """What each description is made of: no more than the view shows."""
        if view.show in {"highlight", "both"}:
            highlighted = replace(view, show="highlight")
            return {"Region": replace(view, show="crop"), "Scene": highlighted, "Unusual": highlighted}
        return {"Region": view} if view.show == "crop" else {"Scene": view, "Unusual": view}

    async def plan_view(  # noqa: PLR0917  # the planner, then what `score_view` takes
        self, planner: CountsCalls, image: Image, texts: Sequence[str], view: RegionView, *, draw: int = 0
    ) -> None:
        """Has a planner count the calls that `plausibility` would make in a draw; none is made.

        Raises:
            UsageError: there are more texts than can be put in order.
        """
        roles = [(node.prompt_name, node) for node in self.nodes]
        with planner.counting(roles), use_draw(draw):
            try:
                await self._subject(image, view)
            except Pending:
                self._plan_dependent(planner, texts, (image.sha256, view), draw=draw)
                return
            except (BadImage, CallError):
                return
            with suppress(BadImage, CallError):
                await self.plausibility(image, texts, view)

    def _plan_dependent(
        self, planner: CountsCalls, texts: Sequence[str], shown: tuple[str, RegionView], *, draw: int
    ) -> None:
        """Counts the calls that wait for descriptions which are not on record, each once.

        Args:
            planner: counts.
            texts: that are judged.
            shown: the digest of the picture, and the view of it.
            draw: that is planned.
        """
        node = self._way.node
        counter = planner.counter(node.prompt_name, node)
        for call in self._way.calls([*dict.fromkeys(texts)]):
            for number in range(draw * self.draws, (draw + 1) * self.draws):
                key = hash((node.prompt_name, node.model.id, *shown, call, number))
                if key not in planner.dependent_calls:
                    planner.dependent_calls.add(key)
                    counter.add_dependent(1, text_bytes=len(call.encode()))


# --- specs ---


def _from_zero(text: str) -> int:
    if not text.isdecimal():
        msg = "a number from 0 up"
        raise ValueError(msg)
    return int(text)


_SETTINGS = {"by": one_of(*get_args(By)), "draws": count_setting, "orders": count_setting, "top": _from_zero}


def vlm_spec(rest: str) -> PlausibilityScorer:
    """The scorer of `vlm:REST`: a model, with settings.

    Raises:
        ConfigError: a value that a setting does not take.
        UsageError: settings that do not go together.
    """
    model, settings = split_settings(rest)
    own = [(name, text) for name, text in settings if name in _SETTINGS]
    others = [(name, text) for name, text in settings if name not in _SETTINGS]
    spec = f"{model}?{'&'.join(f'{name}={text}' for name, text in others)}" if others else model
    return PlausibilityScorer(spec, **read_settings(own, _SETTINGS, of=f"vlm:{model}"))


def chain_spec(rest: str) -> PlausibilityScorer:
    """The scorer of `chain:REST`: `region?vlm=MODEL&llm=MODEL`, with settings.

    Raises:
        ConfigError: there is no such chain, no VLM is named, or a value that a setting does not take.
        UsageError: settings that do not go together.
    """
    name, settings = split_settings(rest)
    if name != "region":
        raise ConfigError(f"No chain {name!r} scores pictures.", hint="There is `chain:region?vlm=MODEL&llm=MODEL`.")
    values = read_settings(settings, {**_SETTINGS, "vlm": str, "llm": str}, of="chain:region")
    if not values.get("vlm"):
        raise ConfigError(
            "`chain:region` needs a model that sees the picture.", hint="Write `chain:region?vlm=MODEL&llm=MODEL`."
        )
    return PlausibilityScorer(**values, describes=True)
