"""Agents that look at a region of a picture: what is in it, what it is part of, what is odd about it, what follows.

*The Abduction of Sherlock Holmes* (Hessel and others, 2022) asks what can be inferred from a region: what probably
holds although it cannot be seen. An agent is shown the region by a `RegionView`, and its prompt says how the region is
marked. Models sometimes speak of the mark as if it were in the picture, which `speaks_of_mark` finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import InstanceOf
from typing_extensions import override

from askance.agents.explain import Reply
from askance.agents.picture_agent import PictureAgent, Subject, preset
from askance.errors import BadRequest, ImagesRejected
from askance.images import WHOLE_IMAGE, RegionView
from askance.nodes import Result, TextNode
from askance.nodes.reply import strip_quotes

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from askance.chat import ImagePart
    from askance.images import Image
    from askance.models import Model

_MARKS: Mapping[str, tuple[str, str]] = {
    "askance": ("tinted and outlined in magenta", "magenta"),
    "sherlock": ("filled with see-through pink and outlined in green", "pink"),
}
"""By style: how a region is highlighted, and the colour of its place where nothing else is shown."""

_DRAWN = "The colours were drawn onto the image: speak of what it shows, and never of the marks."
"""Said where marks cover the picture."""


def region_words(view: RegionView) -> str:
    """How a prompt tells a model where the region is; empty where all of the picture is shown."""
    highlight, place = _MARKS[view.style]
    words = {
        "whole": "",
        "highlight": f"The region in question is {highlight}. {_DRAWN}",
        "both": f"In the first image the region in question is {highlight}; the second image is the region alone. "
        f"{_DRAWN}",
        "crop": "The image is the region in question, cut out of a larger one.",
        "hide": "The region in question is covered with grey.",
        "blackout": "All of the image but the region in question is covered with grey.",
        "position": f"Nothing of the image is shown but where the region in question is: in {place}, on grey.",
    }
    return words[view.show]


_TINT = "(?:magenta|pink|purple|violet|fuchsia)"
_BORDER = r"borders?(?!\W+(?:collies?|terriers?)\b)"
_SHAPE = (
    rf"(?:box(?:es)?(?!\s+of\b)|rectang\w+|squares?|outlines?|frames?|overlays?|{_BORDER}|highlight(?:s|ing)?"
    r"|tints?|filters?)"
)
_PLACE = "(?:regions?|areas?|sections?|zones?)"
_BETWEEN = (
    r"[\s,-]+(?:(?:and|or|with|green|bright|light|thin|thick|see-through|(?:semi-?)?transparent|translucent|dashed|solid"
    r"|rectangular|bounding|tinted|shaded|colou?red|filled|outlined|highlighted|marked|bordered)[\s,-]+){0,3}"
)
"""What may stand between a colour and what has it, and between a mark and its kind."""
_MARK = (
    rf"\b{_TINT}(?:ish)?{_BETWEEN}(?:{_SHAPE}|{_PLACE})\b"
    rf"|\bgreen{_BETWEEN}(?:rectang\w+|outlines?|frame|{_BORDER}|bounding box(?:es)?)\b"
    rf"|\b(?:{_TINT}|green)-(?:outlined|tinted|bordered|highlighted)\b"
    rf"|\b(?:outlined|tinted|marked|highlighted|shaded|bordered|framed) in (?:bright |light |see-through )?"
    rf"(?:{_TINT}|green)\b"
    rf"|\b(?:bounding|highlighted|outlined|marked|tinted){_BETWEEN}(?:{_SHAPE}|{_PLACE}|parts?)\b"
)


def speaks_of_mark(text: str) -> bool:
    """Whether a text describes how a region is marked, such as "a pink rectangle", as if that were in the picture."""
    return re.search(_MARK, text, re.IGNORECASE) is not None


class RegionSubject(Subject):
    """A region of a picture, which is seen, or described in words."""

    view: InstanceOf[RegionView] = WHOLE_IMAGE
    """What is shown of the picture."""


About = TypeVar("About", bound=RegionSubject)
Out = TypeVar("Out")


class Inference(Reply):
    """What probably holds of a picture although it cannot be seen, in a model's words."""


def region_parts(model: Model, pictures: Iterable[Image], view: RegionView) -> tuple[ImagePart, ...]:
    """What a model is shown of pictures by a view; the view `both` is two pictures each."""
    views = [replace(view, show="highlight"), replace(view, show="crop")] if view.show == "both" else [view]
    return tuple(model.image(picture, each) for picture in pictures for each in views)


def region_input(view: RegionView, *, sees: bool) -> Mapping[str, str]:
    """The input `region` of a prompt for a model that sees the view; none where all of the picture is shown."""
    words = region_words(view) if sees else ""
    return {"region": words} if words else {}


def with_way_out(result: Result[Out], view: RegionView) -> Result[Out]:
    """`result`, which says how to ask instead where an endpoint rejected the two pictures of the view `both`."""
    if view.show != "both" or result.error not in {BadRequest.__name__, ImagesRejected.__name__}:
        return result
    hint = "If it takes one picture alone, show the region by `highlight` or by `crop`."
    return replace(result, reason=f"{result.reason} {hint}")


class RegionAgent(PictureAgent[About, Out]):
    """An agent that is shown a region, and told how it is marked."""

    @override
    def picture_parts(self, subject: About) -> tuple[ImagePart, ...]:
        return region_parts(self.model, self.pictures(subject), subject.view)

    @override
    def variables(self, subject: About) -> Mapping[str, Any]:
        return {**super().variables(subject), **region_input(subject.view, sees=self.sees)}


class InferenceWriter(TextNode[RegionSubject, Inference], RegionAgent[RegionSubject, Inference]):
    """Writes what can be inferred from a region of a picture, in one sentence."""

    prompt = picture_prompt = "infer_from_picture"
    takes = RegionSubject
    gives = Inference
    field = "inference"

    @override
    async def ask(self, inputs: Any, config: RunnableConfig | None = None) -> Result[Inference]:
        subject = self.accept(inputs)
        return with_way_out(await super().ask(subject, config), subject.view)

    @override
    def read_text(self, text: str, subject: RegionSubject) -> Inference:
        return Inference(text=strip_quotes(" ".join(text.split())))


class RegionDescriber(TextNode[RegionSubject, Reply], RegionAgent[RegionSubject, Reply]):
    """Describes a region that it is shown alone."""

    prompt = picture_prompt = "region_from_picture"
    takes = RegionSubject
    gives = Reply
    field = "description"


class RegionSceneDescriber(RegionDescriber):
    """Describes the scene that a region is a part of."""

    prompt = picture_prompt = "scene_from_picture"


class RegionHighlighter(RegionDescriber):
    """Says what is unusual about a region, given the rest of the picture."""

    prompt = picture_prompt = "unusual_from_picture"
    field = "unusual"


infer_from_picture = preset(InferenceWriter, sees=True)
describe_region = preset(RegionDescriber, sees=True)
describe_region_scene = preset(RegionSceneDescriber, sees=True)
highlight_region = preset(RegionHighlighter, sees=True)
