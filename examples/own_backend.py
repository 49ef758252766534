"""A backend of your own: one method, and every chain, the records and the replay work with it.

    python examples/own_backend.py IMAGE

This one answers from the colours of the picture, so it runs anywhere; yours would call a server or a library here.
"""

from __future__ import annotations

import sys

from PIL import ImageStat

from askance.chains import verbalize
from askance.chat import ChatRequest, ChatResponse, ModelId, Usage
from askance.models import get_model


class ColourBlindCritic:
    """Says how bright a picture is, whatever it is asked."""

    id = ModelId("example", "colour-blind-critic", name="colour-blind-critic")
    """Tells its answers from any other model's; without it they would not be recorded."""

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """One answer to one request; raise an error of `askance.errors` where there is none."""
        (part,) = request.images
        (picture,) = part.shown.view.render(part.shown.image)
        brightness = ImageStat.Stat(picture.convert("L")).mean[0]
        words = "bright" if brightness > 128 else "dark"
        return ChatResponse(text=f"A {words} picture.", usage=Usage(input=0, output=4))


def main(image: str) -> None:
    """Ask what is unusual, in the text protocol, since this model writes no JSON."""
    critic = get_model(ColourBlindCritic(), protocol="paper")
    reading = verbalize(critic, context="UH").invoke(image)
    print(reading.description.unwrap() if reading.description else reading.reason)


if __name__ == "__main__":
    main(sys.argv[1])
