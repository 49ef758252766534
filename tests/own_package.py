"""What a package of somebody's own brings: one of each that entry points can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from askance.chains import UNUSUAL, Chain, Step, picture
from askance.chat import ChatRequest, ChatResponse, Usage
from askance.documents import parse_json
from askance.evals import Sample, Task, right_or_wrong
from askance.images import Image
from askance.models import ModelLike, ModelSettings, ScorerLike, get_model, get_scorer
from askance.prompts import PromptLibrary
from askance.replay import MemoryStore, Record
from askance.spec_grammar import count, read_settings, split_settings
from askance.tools import unusual

GROUPS: Mapping[str, Mapping[str, str]] = {
    "askance.backends": {"parrot": "tests.own_package:parrot"},
    "askance.embedders": {"letters": "tests.own_package:letters"},
    "askance.scorers": {"size": "tests.own_package:ImageSize"},
    "askance.stores": {"lines": "tests.own_package:open_lines"},
    "askance.chains": {"oddity": "tests.own_package:oddity"},
    "askance.suites": {"shapes": "tests.own_package"},
}
"""The entry points of the package, by group."""


class Parrot:
    """Says its model's name, and how warm it is asked to be."""

    def __init__(self, settings: ModelSettings) -> None:
        self.name = settings.id.model

    async def generate(self, request: ChatRequest) -> ChatResponse:
        said = f"{self.name} at {request.sampling.temperature}"
        return ChatResponse(text=said, usage=Usage(input=1, output=1))


def parrot(settings: ModelSettings) -> Parrot:
    """The backend of `parrot:NAME`."""
    return Parrot(settings)


class Letters:
    """Counts the letters of an alphabet in a text."""

    def __init__(self, alphabet: str, size: int) -> None:
        self.id = f"letters-{alphabet}-{size}"
        self._letters = alphabet[:size]

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0 + text.lower().count(letter) for letter in self._letters] for text in texts]


def letters(rest: str) -> Letters:
    """The embedder of `letters:ALPHABET?size=3`."""
    alphabet, said = split_settings(rest)
    return Letters(alphabet, **{"size": 3, **read_settings(said, {"size": count}, of=f"letters:{alphabet}")})


class ImageSize:
    """Scores a text by how near the number in it is to a side of the picture."""

    def __init__(self, side: str) -> None:
        self.id, self._side = f"size-{side}", side

    async def score(self, image: Image, texts: Sequence[str]) -> list[float]:
        side = getattr(image.info, self._side)
        return [-abs(side - float(text)) for text in texts]


class Lines(MemoryStore):
    """Records as lines of one file."""

    def __init__(self, file: Path, *, read_only: bool) -> None:
        self._file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        super().__init__(map(Record.from_canonical, map(parse_json, lines)), name=str(file), writable=not read_only)

    def put_all(self, records: Any, /) -> None:
        kept = [*records]
        super().put_all(kept)
        with self._file.open("a", encoding="utf-8") as file:
            file.writelines(f"{record.to_json()}\n" for record in kept)


def open_lines(rest: str, *, read_only: bool) -> Lines:
    """The store at `lines:FILE`."""
    if not rest.endswith(".jsonl"):
        msg = f"no file of lines, and its password is {rest}"
        raise ValueError(msg)
    return Lines(Path(rest), read_only=read_only)


def oddity(
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    loud: Annotated[bool, Field(description="Whether it is said aloud.")] = False,
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A picture to what is odd about it."""
    see = get_model(vlm)
    step = Step(link=UNUSUAL, node=unusual(see, prompts=prompts), subject=picture)
    return Chain("oddity loud" if loud else "oddity", target=UNUSUAL, steps=[step], mode=see.mode)


class Widths(Task):
    """How wide a picture is, of three answers."""

    name = "shapes/widths"
    image: Path
    """The picture."""
    by: ScorerLike = "size:width"
    """Scores the answers."""

    def samples(self) -> list[Sample]:
        width = Image.load(self.image).info.width
        return [Sample(id="1", inputs={"options": [str(width - 5), str(width), "1"]}, target=str(width))]

    def solver(self) -> Any:
        scorer, image = get_scorer(self.by, engine=self.engine), Image.load(self.image)

        async def best(sample: Sample) -> str:
            options: list[str] = sample.inputs["options"]
            scores = await scorer.score(image, options)
            return max(zip(scores, options, strict=True))[1]

        return best

    def scorer(self) -> Any:
        return right_or_wrong()
