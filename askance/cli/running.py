"""The pictures under way: lines out in order, to the screen and to the run folder, and what ends a run early."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.chains.line import line_of
from askance.cli.exits import OK, SOME, CannotStart
from askance.errors import FATAL, CallError, OverBudget
from askance.models.capabilities import endpoint_key
from askance.models.counting import Counting

if TYPE_CHECKING:
    from askance.chains import Chain, Given, Reading
    from askance.cli.display import Show
    from askance.cli.inputs import Options
    from askance.evals import RunFolder
    from askance.models import Model
    from askance.models.spending.budgeted import Purse


class Running:
    """One run: every picture through the chain, each line shown and kept as it comes."""

    def __init__(
        self,
        chain: Chain,
        models: Sequence[Model],
        *,
        folder: RunFolder | None,
        show: Show,
        batches: Path | None = None,
    ) -> None:
        self._batches = batches
        """Folder for what is under way in batches; None asks online."""
        self._chain = chain
        self._models = models
        self._folder = folder
        self._finished = folder.finished if folder is not None else {}
        self._show = show
        self._purse = models[0].engine.purse if models else None
        self._left: list[tuple[Path, Options | None]] = []
        """Pictures that the budget had nothing left for."""

    async def run(self, pictures: Sequence[Path], options: Sequence[Options | None]) -> int:
        """Reads every picture; returns the exit code.

        Raises:
            CannotStart: a model cannot be asked at all.
        """
        counting = await Counting.begun(self._models)
        try:
            try:
                await self._read(pictures, options)
            finally:
                self._show.counts = await counting.so_far()
                if self._folder is not None:
                    self._folder.counted(self._show.counts)
            return await self._end()
        finally:
            for model in self._models:
                await model.aclose()

    async def _read(self, pictures: Sequence[Path], options: Sequence[Options | None]) -> None:
        """Shows and keeps a line for each picture."""
        if any(picture.as_posix() not in self._finished for picture in pictures):
            await self._first_contact()
        async with aclosing(self._lines(pictures, options)) as lines:
            async for place, line in lines:
                self._stop_if_hopeless(line)
                if self._folder is not None:
                    self._folder.add(line)
                self._show.reading(line, options[place])

    def interrupted(self) -> None:
        """Says what is done and how to go on."""
        self._show.summary()
        print(
            "Interrupted. The same command goes on where this one stopped; what is on record is not asked again.",
            file=sys.stderr,
        )

    async def _first_contact(self) -> None:
        """Learns the form of asking of every model, before pictures are read."""
        try:
            for model in self._models:
                await model.rung()
        except CallError as error:
            raise CannotStart(error.message, hint=error.hint) from error

    async def _lines(
        self, pictures: Sequence[Path], options: Sequence[Options | None]
    ) -> AsyncGenerator[tuple[int, Mapping[str, Any]], None]:
        """Place and line of every picture in order: those that the folder has, and those read now.

        When the budget is used up no more pictures are begun; those that could not be ended are left.
        """
        unread = [
            sample for sample in zip(pictures, options, strict=True) if sample[0].as_posix() not in self._finished
        ]
        begun = takewhile(lambda _: self._purse is None or not self._purse.used_up, inputs_of(unread))
        if self._batches is None:
            stream = self._chain.read_all(begun)
        else:
            from askance.chains.batches import read_in_batches
            from askance.cli.batching import Status

            stream = read_in_batches(self._chain, [*inputs_of(unread)], folder=self._batches, told=Status())
        async with aclosing(stream) as readings:
            for place, picture in enumerate(pictures):
                done = self._finished.get(picture.as_posix())
                if done is not None:
                    yield place, done
                    continue
                reading = await anext(readings, None)
                if reading is None or self._beyond_budget(reading):
                    self._left.append((picture, options[place]))
                else:
                    yield place, line_of(reading)

    def _beyond_budget(self, reading: Reading) -> bool:
        """Whether the budget had nothing left for a call of it."""
        results = () if self._purse is None else reading.links.values()
        return any(result.error == OverBudget.__name__ for result in results)

    def _stop_if_hopeless(self, line: Mapping[str, Any]) -> None:
        """Ends the run where the first picture failed in a way that all others would.

        Raises:
            CannotStart: it did, and nothing has been answered.
        """
        if self._show.outcomes["answered"] or not self._show.nothing_asked:
            return
        for link in line["links"].values():
            if link.get("error") in FATAL:
                raise CannotStart(link["reason"], hint="Stopped at the first image, since the others would fail alike.")

    async def _end(self) -> int:
        if self._folder is not None:
            endpoints = [endpoint_key(model.id) for model in self._models]
            self._folder.finish(self._models[0].engine.shelf.records if self._models else None, also=endpoints)
        self._show.summary()
        if self._folder is not None:
            print(f"The run is in {self._folder.path}.", file=sys.stderr)
        if self._purse is not None:
            await self._say_budget(self._purse)
        return SOME if self._show.unanswered or self._left else OK

    async def _say_budget(self, purse: Purse) -> None:
        """Says what was spent and, where that stopped the run, what is left to do and what it would cost."""
        await asyncio.to_thread(purse.close)
        balance, budget = await asyncio.to_thread(purse.ledger.balance), purse.ledger.budget
        lost = f", {budget.words(balance.lost)} of it by processes that were killed" if balance.lost.calls else ""
        print(f"Of the budget of {budget}, {budget.words(balance.spent)} spent{lost}.", file=sys.stderr)
        if self._left:
            from askance.chains import plan
            from askance.cli.planning import left_text

            left = await plan(self._chain, inputs_of(self._left))
            print(
                f"The next call might have passed the budget. {left_text(left)}\n"
                "The same command with a larger --budget goes on; what is on record is not asked again.",
                file=sys.stderr,
            )


def inputs_of(samples: Iterable[tuple[Path, Options | None]]) -> Iterator[Given]:
    """Pictures and their options as a chain takes them."""
    return ({"image": picture, "name": picture.as_posix(), "options": chosen} for picture, chosen in samples)
