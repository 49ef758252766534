"""Cartoons: what a cartoon is described by, the steps that find it out, and captions that a model thinks of.

Annotators of the New Yorker caption contest described a cartoon in four fields: its location, what it shows, what is
uncanny about it, and the entities in it (*Do Androids Laugh at Electric Sheep?*, section 2). Here these are four links,
asked of a VLM with the questions that the paper asked OFA (section B.3), or given. A node without a model lays them out
as one description. So what people said and what a VLM says reach the answering model in the same form. `CAPTION` is the
caption under the cartoon. `brainstorm` is the chain that writes candidates for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from askance.agents import CandidateCaption, Joke, Subject, brainstorm_caption
from askance.chains.chain import Chain, Step
from askance.chains.link import DESCRIPTION, NARRATION, UNUSUAL, Link, names_link
from askance.chains.reading import Reading, picture
from askance.errors import Skipped, UsageError
from askance.models import get_model
from askance.tools import Caption, Entities, Location, entities, location, scene_description, unusual

if TYPE_CHECKING:
    from askance.models import Model, ModelLike
    from askance.prompts import PromptLibrary


LOCATION = Link("location", Location)
CAPTION = Link("caption", Caption)
ENTITIES = names_link("entities", Entities)

CARTOON_LINKS: tuple[Link[Any], ...] = (LOCATION, NARRATION, UNUSUAL, ENTITIES)
"""The four fields of a cartoon's description, in their order."""

_TOOLS: Mapping[str, Any] = {
    "location": location,
    "narration": scene_description,
    "unusual": unusual,
    "entities": entities,
}
_HEADINGS: Mapping[str, str] = {
    "location": "Place",
    "narration": "Description",
    "unusual": "What is unusual",
    "entities": "Entities",
}


def cartoon_steps(
    vlm: Model | None, *, fields: int = len(CARTOON_LINKS), prompts: PromptLibrary | None = None
) -> list[Step]:
    """The steps that describe a cartoon by its fields.

    Args:
        vlm: is asked for the fields; None asks for none, and whoever uses the chain gives them.
        fields: lays out so many of `CARTOON_LINKS`, the first ones.
        prompts: where prompts are looked up.

    Raises:
        UsageError: there are not so many fields.
    """
    if not 1 <= fields <= len(CARTOON_LINKS):
        raise UsageError(f"A cartoon has no {fields} fields.", hint=f"Take 1 to {len(CARTOON_LINKS)}.")
    links = CARTOON_LINKS[:fields]
    steps = [] if vlm is None else [cartoon_step(link, vlm, prompts=prompts) for link in links]
    subject = partial(_known_fields, links=links)
    return [*steps, Step(link=DESCRIPTION, node=lay_out, needs=links, subject=subject, asks_nobody=True)]


def cartoon_step(link: Link[Any], vlm: Model, *, prompts: PromptLibrary | None = None) -> Step:
    """The step of one of `CARTOON_LINKS`: a question about the picture."""
    return Step(link=link, node=_TOOLS[link.name](vlm, prompts=prompts), subject=picture)


def _known_fields(reading: Reading, links: Sequence[Link[Any]]) -> dict[str, str]:
    """What is known of the fields; those that were neither asked nor given are left out.

    Raises:
        Skipped: nothing is known.
    """
    values = {link.name: str(value) for link in links if (value := reading.value(link)) is not None}
    if not values:
        raise Skipped("nothing is known of the cartoon")
    return values


def lay_out(fields: Mapping[str, str]) -> str:
    """The fields of a cartoon as one description, each under its heading; fields that say nothing are left out."""
    filled = {link: text for link in _HEADINGS if (text := fields.get(link, "").strip())}
    return "\n".join(f"{_HEADINGS[link]}: {text}" for link, text in filled.items())


def candidate_link(number: int) -> Link[CandidateCaption]:
    """The link of a candidate caption, counted from 1."""
    return Link(
        f"candidate_{number}",
        CandidateCaption,
        label=f"candidate caption {number}, written by a model",
        typical_bytes=5000,  # of three examples and a description
    )


Draws = Annotated[int, Field(ge=1, description="How many candidate captions there are to be; a model writes them.")]


def brainstorm(
    vlm: ModelLike, llm: ModelLike | None = None, *, draws: Draws = 1, prompts: PromptLibrary | None = None
) -> Chain:
    """A cartoon to candidate captions that a model writes (*Do Androids Laugh at Electric Sheep?*, appendix G).

    The VLM says where the cartoon takes place, what it shows, what is unusual, and which entities are in it. Then the
    LLM is asked for each candidate by itself: for concepts, for one to three of them, for a caption that combines
    these, and how it goes with the cartoon. The target is the first candidate.

    Args:
        vlm: sees the cartoon.
        llm: writes the captions; by default the VLM does. Where its settings say nothing of sampling, it is asked at
            temperature 0.8 and top-p 0.9, and with the penalties of appendix G where the endpoint takes them.
        draws: how many candidates there are to be.
        prompts: where prompts are looked up.

    Raises:
        UsageError: no candidate is asked for.
    """
    if draws < 1:
        raise UsageError(f"There are to be {draws} candidate captions.", hint="Ask for 1 or more.")
    see = get_model(vlm)
    think = see if llm is None else get_model(llm)
    links = [candidate_link(number) for number in range(1, draws + 1)]
    written = [
        Step(
            link=link,
            node=brainstorm_caption(think, draw=draw, prompts=prompts),
            needs=CARTOON_LINKS,
            subject=_laid_out,
        )
        for draw, link in enumerate(links)
    ]
    steps = [cartoon_step(link, see, prompts=prompts) for link in CARTOON_LINKS]
    return Chain("brainstorm", target=links[0], steps=[*steps, *written], mode=see.mode)


def _laid_out(reading: Reading) -> Subject:
    return Subject(description=lay_out(_known_fields(reading, CARTOON_LINKS)))


def joke_question(reading: Reading, *, sees: bool) -> Joke:
    """The caption and the examples; and the cartoon for a model that sees it, or else its description."""
    return Joke(
        image=picture(reading) if sees else None,
        description=None if sees else reading.require(DESCRIPTION).text,
        caption=reading.require(CAPTION).text,
        examples=reading.examples,
    )
