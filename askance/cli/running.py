"""The pictures under way: lines out in order, to the screen and to the run folder, and what ends a run early."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.chains.line import line_of
from askance.cli.exits import OK, SOME, CannotStart
from askance.errors import CallError
from askance.models.capabilities import endpoint_key

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.cli.inputs import Options
    from askance.cli.showing import Show
    from askance.evals import RunFolder
    from askance.models import Model

HOPELESS = frozenset({"AuthError", "ImagesRejected", "ModelNotFound", "Unreachable"})
"""Failures that the next picture would meet as well."""


class Running:
    """One run: every picture through the chain, each line shown and kept as it comes."""

    def __init__(self, chain: Chain, models: Sequence[Model], *, folder: RunFolder | None, show: Show) -> None:
        self._chain = chain
        self._models = models
        self._folder = folder
        self._finished = folder.finished if folder is not None else {}
        self._show = show

    async def run(self, pictures: Sequence[Path], options: Sequence[Options | None], *, concurrency: int) -> int:
        """Reads every picture; returns the exit code.

        Raises:
            CannotStart: a model cannot be asked at all.
        """
        try:
            if any(picture.as_posix() not in self._finished for picture in pictures):
                await self._first_contact()
            async with aclosing(self._lines(pictures, options, concurrency=concurrency)) as lines:
                place = 0
                async for line in lines:
                    self._stop_if_hopeless(line)
                    if self._folder is not None:
                        self._folder.add(line)
                    self._show.reading(line, options[place])
                    place += 1
            return self._end()
        finally:
            for model in self._models:
                await model.aclose()

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
        self, pictures: Sequence[Path], options: Sequence[Options | None], *, concurrency: int
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """The line of every picture in order: those that the folder has, and those read now."""
        left = (
            {"image": picture, "name": picture.as_posix(), "options": chosen}
            for picture, chosen in zip(pictures, options, strict=True)
            if picture.as_posix() not in self._finished
        )
        async with aclosing(self._chain.read_all(left, concurrency=concurrency)) as readings:
            for picture in pictures:
                done = self._finished.get(picture.as_posix())
                yield done if done is not None else line_of(await anext(readings))

    def _stop_if_hopeless(self, line: Mapping[str, Any]) -> None:
        """Ends the run where the first picture failed in a way that all others would.

        Raises:
            CannotStart: it did, and nothing has been answered.
        """
        if self._show.outcomes["answered"] or not self._show.nothing_asked:
            return
        for link in line["links"].values():
            if link.get("error") in HOPELESS:
                raise CannotStart(link["reason"], hint="Stopped at the first image, since the others would fail alike.")

    def _end(self) -> int:
        if self._folder is not None:
            endpoints = [endpoint_key(model.id) for model in self._models]
            self._folder.finish(self._models[0].engine.shelf.records if self._models else None, also=endpoints)
        self._show.summary()
        if self._folder is not None:
            print(f"The run is in {self._folder.path}.", file=sys.stderr)
        return SOME if self._show.unanswered else OK
