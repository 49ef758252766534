"""What a model is told of the picture in the tasks over WHOOPS!: contexts by name.

| context | what the answering model gets |
|---|---|
| `I` | the picture: end to end |
| `caption` | a caption that the VLM writes: the pipeline of section 5 |
| `gold-caption` | the caption that people chose: the oracle |
| `T_V`, `IN`, `UH`, `V+T` and the like | a verbalization, as in the other suites |
| `text-only` | nothing: a control |
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, get_args

from askance.chains import REPLY, Chain, Link, SeenContext, about_picture
from askance.errors import UsageError
from askance.evals.suite.context import NOTHING, TEXT_ONLY

if TYPE_CHECKING:
    from askance.chains.catalog import Asker
    from askance.evals.suite.roles import Roles
    from askance.evals.whoops.entries import Entry
    from askance.images import Image

GOLD = "gold-caption"
CONTEXTS: tuple[str, ...] = (*get_args(SeenContext), GOLD, TEXT_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A context."""

    name: str

    @property
    def picture(self) -> bool:
        """Whether the answering model sees the picture."""
        return self.name == "I"

    @property
    def given(self) -> tuple[str, ...]:
        """The links that every sample brings."""
        return ("description",) if self.name in {GOLD, TEXT_ONLY} else ()

    @property
    def looks(self) -> bool:
        """Whether a model looks at the picture."""
        return not self.given

    def image_of(self, entry: Entry) -> Image | None:
        """The picture that a sample brings; none where nobody looks at it."""
        return entry.load() if self.looks else None

    def links_of(self, caption: str) -> dict[str, str]:
        """What a sample brings to the chain, given the caption that people chose."""
        return {GOLD: {"description": caption}, TEXT_ONLY: {"description": NOTHING}}.get(self.name, {})


def view_of(name: str, task: str, *, but: Collection[str] = ()) -> View:
    """The context of that name.

    Args:
        name: of the context.
        task: which asks.
        but: contexts that say nothing in this task.

    Raises:
        UsageError: there is none of that name, or not in this task.
    """
    known = [each for each in CONTEXTS if each not in but]
    if name not in known:
        raise UsageError(f"The task {task!r} has no context {name!r}.", hint=f"Choose one of {', '.join(known)}.")
    return View(name=name)


def chain_of(name: str, view: View, roles: Roles, *, target: Link[Any] = REPLY, seen: Asker, described: Asker) -> Chain:
    """The chain of a task in a context.

    Args:
        name: of the chain.
        view: the context.
        roles: the models.
        target: the link that the answer fills in.
        seen: what answers from the picture, and its input.
        described: what answers from words, and its input.

    Raises:
        UsageError: a model is missing.
    """
    return about_picture(
        name,
        target=target,
        context=cast("SeenContext", view.name) if view.looks else "caption",
        vlm=roles.vlm,
        llm=roles.llm,
        combiner=roles.combiner,
        seen=seen,
        described=described,
        given=view.given,
    )
