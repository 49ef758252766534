"""What a tool of the investigator is, what it gives back, and what one step of an investigation was."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.chat import JsonObject, Outcome
    from askance.images import RegionView
    from askance.investigator.scene import Scene
    from askance.models import Model
    from askance.nodes import Call
    from askance.prompts import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a tool gives back."""

    outcome: Outcome
    text: str = ""
    """What it says: untrusted, and not fenced yet."""
    note: str = ""
    """Our own words beside it, such as which region was looked at."""
    reason: str | None = None
    """Why there is no answer, without paths."""
    views: tuple[RegionView, ...] = ()
    """The regions that were looked at, in thousandths; none for the whole picture."""
    calls: tuple[Call, ...] = ()
    repeated: bool = False
    """Whether an equal look was taken before, so that no call was made."""


NOT_REACHED = Look(outcome="skipped", reason="the investigation ended before")


class LookTool(ABC):
    """One way to look at a picture."""

    name: str
    description: str
    """One or two plain sentences, said to the model."""
    takes_boxes = False
    """Whether it may be told where to look by a box."""

    @property
    def models(self) -> tuple[Model, ...]:
        """Whom it asks."""
        return ()

    @property
    def prompts_in_use(self) -> tuple[Prompt, ...]:
        """The prompts that it asks by."""
        return ()

    def form(self) -> JsonObject:
        """What decides what it finds, beside its prompts, as JSON."""
        return {"models": [model.form() for model in self.models]}

    @abstractmethod
    def schema(self, scene: Scene) -> JsonObject:
        """JSON Schema of its arguments; it says the unit of boxes."""

    def calls(self, scene: Scene, arguments: Mapping[str, Any]) -> int:  # noqa: ARG002  # a subclass may make one
        """How many calls of a model it will make: 0 or 1."""
        return 0

    @abstractmethod
    async def look(self, scene: Scene, arguments: Mapping[str, Any]) -> Look:
        """What it finds; an error over the arguments, or of its call, is an outcome.

        Raises:
            StoreError, ReplayMiss, OverBudget: as of any call.
        """


@dataclass(slots=True, eq=False, kw_only=True)
class LookStep:
    """One entry of the transcript, which is filled in while the investigation goes on."""

    number: int
    """From 1."""
    thought: str
    """What the model said before it called the tool: untrusted."""
    tool: str
    """Name of the tool; `answer` for the last step, empty for a turn without a call that can be read."""
    arguments: JsonObject
    """As the model wrote them, untrusted; empty where they cannot be read."""
    look: Look = NOT_REACHED
    left: str = ""
    """What was left of the budget after the step, in words such as `5 calls`."""
    turn: tuple[Call, ...] = ()
    """The call of the turn that asked for this step; with the first step of a turn alone."""

    def form(self) -> JsonObject:
        """The step as JSON, as it stands in a transcript; what is empty is left out."""
        look = self.look
        form: JsonObject = {
            "step": self.number,
            "thought": self.thought,
            "tool": self.tool,
            "arguments": self.arguments,
            "views": [view.canonical() for view in look.views],
            "outcome": look.outcome,
            "reply": look.text,
            "note": look.note,
            "reason": look.reason,
            "repeated": look.repeated,
            "calls": [call.key for call in (*self.turn, *look.calls)],
            "left": self.left,
        }
        return {name: value for name, value in form.items() if value or name == "tool"}
