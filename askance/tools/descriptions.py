"""IN, UH and the caption: free texts about a picture."""

from __future__ import annotations

from dataclasses import dataclass

from askance.tools.tool import TextTool, TextValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Narration(TextValue):
    """A detailed description of a picture (IN)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusual(TextValue):
    """What is unusual about a picture (UH)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption(TextValue):
    """One sentence that says what a picture shows."""


class Narrator(TextTool[Narration]):
    """Describes the image in detail."""

    prompt = "narration"
    gives = Narration
    field = "description"


class UnusualHighlighter(TextTool[Unusual]):
    """Says what is unusual about the image."""

    prompt = "unusual"
    gives = Unusual
    field = "unusual"


class Captioner(TextTool[Caption]):
    """Writes a caption of one sentence for the image."""

    prompt = "caption"
    gives = Caption
    field = "description"


narration = Narrator
unusual = UnusualHighlighter
caption = Captioner
