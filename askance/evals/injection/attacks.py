"""Pictures whose text gives orders: the table `attacks.yaml`, and the pictures that are drawn from it.

Each picture shows a shape above a sign. The shape decides which of four captions is right; the text on the sign wants
another one, the *planted* caption. Some texts also order a call of a tool, or to look until the budget is used up.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

from askance.documents import read_yaml
from askance.errors import BadData
from askance.evals.suite.shuffle import shuffled

FOLDER = Path(__file__).parent
ATTACKS = FOLDER / "attacks.yaml"
PICTURES = FOLDER / "pictures"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A picture whose text gives orders."""

    id: str
    kind: str
    """What the text does: `answer`, `stop`, `tool`, `exhaust`, `forged result`, `forged fence`, `forged turn`,
    `authority`."""
    shape: str
    colour: str
    planted: str
    """The caption that the text wants, or would if it named one; it is wrong in shape and colour."""
    text: str
    tool: str = ""
    """The tool that the text orders to be called; empty if it orders none."""
    marker: str = ""
    """A word that the arguments of the ordered call hold, and that no honest call would."""

    @property
    def caption(self) -> str:
        """The right caption."""
        return caption_of(self.colour, self.shape)

    @property
    def options(self) -> tuple[str, ...]:
        """The right caption, the planted one, and the two that are half right, in an order drawn by the id."""
        colour, shape = self.planted.split()[1:3]
        captions = (self.caption, self.planted, caption_of(self.colour, shape), caption_of(colour, self.shape))
        return shuffled(captions, seed=0, key=self.id)

    @property
    def plants_a_caption(self) -> bool:
        """Whether the planted caption is one, and wrong in colour and shape."""
        _, colour, shape, *_ = (*self.planted.split(), "", "", "")
        return self.planted == caption_of(colour, shape) and colour != self.colour and shape != self.shape

    @property
    def orders_answer(self) -> bool:
        """Whether the text names the planted caption."""
        return self.planted.rstrip(".") in self.text

    @property
    def file(self) -> str:
        """Name of the picture."""
        return f"{self.id}.png"

    @property
    def clean_file(self) -> str:
        """Name of the picture of the same scene without a text."""
        return f"clean-{self.colour}-{self.shape}.png"


def caption_of(colour: str, shape: str) -> str:
    """What is true of a picture with this shape."""
    return f"A {colour} {shape} above a sign."


def read_attacks(path: Path = ATTACKS) -> tuple[Attack, ...]:
    """The attacks in a table, in its order.

    Raises:
        BadData: a row lacks something, has something unknown, plants a caption that is half right, names a tool without
            a marker, or an id stands twice.
        UsageError: the file cannot be read.
    """
    rows: Any = read_yaml(path, what="attacks").get("attacks") or []
    if not isinstance(rows, list):
        raise BadData(f"`attacks` in {str(path)!r} is no list.", hint="Give a list of attacks.")
    known = {each.name for each in fields(Attack)}
    attacks: dict[str, Attack] = {}
    for number, row in enumerate(cast("list[Any]", rows), start=1):
        try:
            attack = Attack(**{name: str(value) for name, value in row.items()})
        except (AttributeError, TypeError) as error:
            raise BadData(
                f"Attack {number} in {str(path)!r} cannot be read: {error}.", hint=f"It has {', '.join(sorted(known))}."
            ) from error
        if not attack.plants_a_caption:
            raise BadData(
                f"Attack {number} in {str(path)!r} plants {attack.planted!r}.",
                hint="Plant `A COLOUR SHAPE above a sign.`, in another colour and shape than the picture has.",
            )
        if bool(attack.tool) != bool(attack.marker):
            raise BadData(
                f"Attack {number} in {str(path)!r} has a tool or a marker alone.",
                hint="Name the tool that the text orders, and the words by which a call as ordered is known.",
            )
        if attack.id in attacks:
            raise BadData(f"Two attacks in {str(path)!r} are called {attack.id!r}.", hint="Give one another id.")
        attacks[attack.id] = attack
    return (*attacks.values(),)
