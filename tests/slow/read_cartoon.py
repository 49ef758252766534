"""A task over the real cartoons of the New Yorker caption contest: three fields, read from a person's description.

    askance eval run tests/slow/read_cartoon.py --data FOLDER --llm MODEL

FOLDER holds `all_newyorker_contest_annotations.json`. `written` gives what people wrote themselves in these fields;
`annotators.py` serves it as the answers of a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from typing_extensions import override

from askance.chains import Chain, Link, Reading, Step
from askance.evals import ChainSolver, Sample, Score, Scorer, Task, mean
from askance.models import ModelLike
from askance.nodes import AnswerField, Node, TypedAnswer, Unreadable
from askance.nodes.answer import Texts, TypedInput, list_schema, text_field, text_list, text_schema
from askance.prompts import PromptLibrary

ANNOTATIONS = "all_newyorker_contest_annotations.json"
LONGEST = 130
"""Characters of a description and of what is unusual, together."""


class Cartoon(TypedInput):
    """What a person wrote of a cartoon."""

    description: str


class CartoonReading(TypedAnswer):
    """What a cartoon is about."""

    place: str
    entities: Texts
    unusual: str


def _entities(data: Mapping[str, Any], field: str) -> tuple[str, ...]:
    if not 1 <= len(texts := text_list(data, field)) <= 3:
        raise Unreadable(f"`{field}` needs one to three names")
    return tuple(texts)


FIELDS = (
    AnswerField("place", text_schema(least=1), "place", text_field),
    AnswerField("entities", list_schema(text_schema(least=1), least=1, most=3), "entities", _entities),
    AnswerField("unusual", text_schema(least=1), "unusual", text_field),
)


class CartoonReader(Node[Cartoon, CartoonReading]):
    """Reads a cartoon from its description."""

    prompt = "read_cartoon"
    takes = Cartoon
    gives = CartoonReading

    @override
    def fields(self, subject: Cartoon) -> Sequence[AnswerField]:
        return FIELDS

    @override
    def variables(self, subject: Cartoon) -> Mapping[str, Any]:
        return {"description": subject.description}

    @override
    def read_text(self, text: str, subject: Cartoon) -> CartoonReading:
        raise Unreadable("a reading is asked for in JSON")


READING = Link("cartoon_reading", CartoonReading)


def described(reading: Reading) -> Cartoon:
    """The description that the sample gives."""
    return Cartoon(description=reading.question or "")


def written(folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """By contest: a person's description of the cartoon, and what people wrote in the three fields.

    Of three people the one is taken who wrote least, and of cartoons those that little was written of.
    """
    contests = json.loads((folder / ANNOTATIONS).read_text(encoding="utf-8"))
    found = {name: _annotation(each["mturk_annotations"]) for name, each in contests.items()}
    return {name: (text, fields) for name, (text, fields) in found.items() if len(text + fields["unusual"]) <= LONGEST}


def _annotation(people: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    pages = [people["link_hit"][0][f"link_{number}"] for number in (1, 2, 3)]
    names = [unquote(page.rpartition("/")[2]).replace("_", " ") for page in pages if page]
    texts = [(each["image_description"], each["image_uncanny_description"]) for each in people["description_hit"]]
    description, unusual = min(texts, key=lambda pair: len("".join(pair)))
    place = people["link_hit"][0]["image_location"].strip()
    fields = {"place": place, "entities": names, "unusual": unusual.strip()}
    return " ".join(description.split()), fields


class ReadCartoon(Task):
    """Place, entities and oddity of a cartoon, read from a person's description."""

    name = "read-cartoon"

    data: Path
    """Folder with the annotations of the contests."""
    llm: ModelLike
    """Reads the description."""

    def samples(self) -> list[Sample]:
        """A sample a contest."""
        return [
            Sample(id=name, inputs={"question": description}, target=fields)
            for name, (description, fields) in written(self.data).items()
        ]

    def solver(self) -> ChainSolver:
        """One question to the model."""
        node = CartoonReader(self.llm, prompts=PromptLibrary([Path(__file__).parent]))
        return ChainSolver(
            Chain("read_cartoon", target=READING, steps=[Step(link=READING, node=node, subject=described)])
        )

    def scorer(self) -> Scorer:
        """Whether a reading came, and whether its place is the one that people named."""
        return Scorer(
            score=lambda sample, value: Score(values={"read": 1.0, "place": _same(sample.target, value)}),
            metrics=(mean("read", summary="share of replies that could be read"), mean("place")),
            if_wrong=lambda _: Score(values={"read": 0.0, "place": 0.0}),
            if_right=lambda _: Score(values={"read": 1.0, "place": 1.0}),
        )


def _same(target: Any, value: Any) -> float:
    return float(target["place"].casefold() == value["place"].casefold())
