"""What one client of the server has: a workspace with a budget of its own, and the tools that ask its models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from askance.errors import OverLimit
from askance.investigator.investigate import investigate
from askance.investigator.scene import Scene
from askance.investigator.toolbox import toolbox
from askance.models.call_scope import span

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.images import Image
    from askance.investigator.look import Look, LookTool
    from askance.models import Model
    from askance.nodes import Result
    from askance.workspace import Workspace

AT_ONCE: Final = 16
"""Tools of one client that run at once; the endpoint's own limits go on top."""
MOST_WAITING: Final = 1_000
"""Further calls of a client that wait for their turn; any more are refused."""


@dataclass(kw_only=True, eq=False)
class Account:
    """One client: its workspace, its tools, and how many of its calls are under way."""

    name: str
    work: Workspace
    """Its own, whose budget is the client's; whoever made it closes it."""
    tools: Mapping[str, LookTool]
    """By name."""
    explains: Chain | None = None
    """Investigates what is unusual about a picture; None where nobody investigates."""
    answers: Chain | None = None
    """Investigates a question."""
    _waiting: int = field(init=False, default=0)
    _places: asyncio.Semaphore = field(init=False, default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    @classmethod
    def open(
        cls, name: str, work: Workspace, *, vlm: Model, llm: Model, tools: Collection[str], calls: int | None
    ) -> Account:
        """The account of a client.

        Args:
            name: of the client.
            work: its workspace.
            vlm: sees the pictures.
            llm: investigates.
            tools: names of `askance.investigator.TOOLS`.
            calls: most calls of one investigation; None leaves investigations out.

        Raises:
            UsageError: a tool is unknown, or lacks something.
            MissingExtra: what a tool or an investigation needs is not installed.
        """
        made = {tool.name: tool for tool in toolbox(tools, vlm=vlm, prompts=work.library)}
        if calls is None:
            return cls(name=name, work=work, tools=made)
        explains, answers = (
            investigate(vlm, llm, goal=goal, calls=calls, prompts=work.library) for goal in ("explain", "answer")
        )
        return cls(name=name, work=work, tools=made, explains=explains, answers=answers)

    async def look(self, tool: str, image: Image, arguments: Mapping[str, Any]) -> Look:
        """What a tool finds; boxes are in thousandths of the picture's sides.

        Raises:
            OverBudget, ReplayMiss, StoreError: as of any call.
        """
        with span("tool", tool, client=self.name, image=image.name) as ended:
            look = await self.tools[tool].look(Scene(image), arguments)
            ended(outcome=look.outcome)
            return look

    async def investigate(self, image: Image, question: str | None) -> Result[Any]:
        """What an investigation comes to: the answer to a question, else what is unusual about the picture and why.

        Raises:
            StoreError: the records cannot be read or written.
        """
        chain = self.explains if question is None else self.answers
        assert chain is not None
        with span("tool", "investigate", client=self.name, image=image.name) as ended:
            reading = await chain.read({"image": image, **({} if question is None else {"question": question})})
            result = reading.links[chain.target.name]
            ended(outcome=result.outcome)
            return result

    async def left(self) -> str:
        """What is left of the budget, in words; empty without one."""
        guard = self.work.engine.budget
        if guard is None:
            return ""
        balance, budget = await guard.balance(), guard.ledger.budget
        return budget.words(budget.most - balance.spent - balance.reserved)

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[None]:
        """A place among the calls of the client that run at once; waits for one.

        Raises:
            OverLimit: too many calls of the client wait.
        """
        if self._waiting >= AT_ONCE + MOST_WAITING:
            raise OverLimit(
                f"{MOST_WAITING:,} calls of yours are waiting already, so this one was not made.",
                hint="Make it again when some of them have ended.",
            )
        self._waiting += 1
        try:
            async with self._places:
                yield
        finally:
            self._waiting -= 1
