"""An embedder and a scorer that go by a function: for tests, demonstrations and dry runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from askance.chat import ModelId

if TYPE_CHECKING:
    from askance.images import Image


class ScriptedEmbedder:
    """Gives the vectors that a function of the text gives.

    Args:
        vector: from a text to its vector.
        identity: the name that its vectors are filed under; None neither records nor replays them, for nothing tells
            them from those of another script.
        normalized: whether every vector has the length 1; None does not say.
    """

    def __init__(
        self,
        vector: Callable[[str], Sequence[float]],
        *,
        identity: str | None = None,
        normalized: bool | None = None,
    ) -> None:
        self.id = ModelId("scripted", identity or "scripted", name=identity)
        self.stored = identity is not None
        """Whether its vectors are recorded and replayed."""
        self.normalized = normalized
        self.asked: list[tuple[str, ...]] = []
        """The texts of each call, in order."""
        self._vector = vector

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.asked.append(tuple(texts))
        return [self._vector(text) for text in texts]

    def __repr__(self) -> str:
        return f"ScriptedEmbedder(identity={self.id.name!r}, asked={len(self.asked)})"


class ScriptedScorer:
    """Gives the scores that a function of picture and text gives.

    Args:
        score: from a picture and a text to the score.
        identity: the name that its scores are filed under; None neither records nor replays them.
    """

    def __init__(self, score: Callable[[Image, str], float], *, identity: str | None = None) -> None:
        self.id = ModelId("scripted", identity or "scripted", name=identity)
        self.stored = identity is not None
        """Whether its scores are recorded and replayed."""
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        """Name of the picture and the texts of each call, in order."""
        self._score = score

    async def score(self, image: Image, texts: Sequence[str]) -> Sequence[float]:
        self.asked.append((image.name, tuple(texts)))
        return [self._score(image, text) for text in texts]

    def __repr__(self) -> str:
        return f"ScriptedScorer(identity={self.id.name!r}, asked={len(self.asked)})"
