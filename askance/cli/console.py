"""A terminal with colours and bars, on which text from outside is as harmless as where `echo` prints it."""

from __future__ import annotations

from collections.abc import Iterable

from rich import console
from rich.segment import Segment
from typing_extensions import override

from askance.terminal import printable


class Console(console.Console):
    """rich's console; of what is shown, only rich itself steers the terminal."""

    @override
    def render(
        self, renderable: console.RenderableType, options: console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments of what is shown, with text as `printable` writes it."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))
