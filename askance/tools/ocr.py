"""T by an OCR engine: the same question as `scene_text`, answered by RapidOCR on this machine."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

from askance.chat import CallMeta, JsonObject, key_of
from askance.errors import BadImage, BadRecord, MissingExtra, ReplayMiss, optional_library
from askance.images import Image, Shown
from askance.models import Engine, run_sync
from askance.models.engine import default_engine
from askance.nodes import Call, Result, TypedAnswer, no_answer
from askance.nodes.runnable import Runnable
from askance.nodes.tracing import trace_value, traced_config, traced_run
from askance.replay import Record, explain_miss
from askance.tools.vision import SceneText, ToolImages, tool_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool

ENGINE = "rapidocr-3"
"""Name of the engine in records; a later major version with other results gets another name."""


class TextBox(TypedAnswer):
    """One line that an OCR engine found."""

    text: str
    confidence: float
    """From 0 to 1, as the engine says."""
    box: tuple[tuple[float, float], ...]
    """Corners in pixels of the prepared picture, clockwise from the upper left of the text."""


class RecognizedText(SceneText):
    """Scene text with where each line stands."""

    boxes: tuple[TextBox, ...]


class RapidOcr(Runnable[Image, RecognizedText]):
    """Reads the text that is visible in the image, by OCR.

    What it reads is recorded like any answer (kind `ocr`), so that a replay needs no OCR engine. Needs the extra `ocr`.

    Args:
        engine: whose records and mode are used; by default those of models without an engine.
        least: lines that the engine is less sure of are left out.
    """

    def __init__(self, *, engine: Engine | None = None, least: float = 0.5) -> None:
        self.name = "ocr"
        self.engine = engine if engine is not None else default_engine()
        self.least = least

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "engine": self.engine, "least": self.least}

    def check(self) -> None:
        """Finds out whether pictures can be read, before one is.

        Raises:
            MissingExtra: the engine is not installed, and this is no replay.
        """
        if self.engine.mode != "replay" and find_spec("rapidocr") is None:
            raise MissingExtra(_LACKING, hint="pip install 'askance[ocr]'")

    async def ask(self, picture: Any, config: RunnableConfig | None = None) -> Result[RecognizedText]:
        """The lines in one picture, from the records or from the engine.

        Raises:
            MissingExtra: the engine is not installed.
        """

        async def work(_: object) -> Result[RecognizedText]:
            try:
                return await self._looked_up(picture)
            except (ReplayMiss, BadImage, BadRecord) as error:
                return no_answer(error)

        if config is None:
            return await work(None)
        return await traced_run(self.get_name(), config, inputs={"input": trace_value(picture)}, work=work)

    def on_record(self, picture: Any) -> Result[RecognizedText] | None:
        """The lines in one picture where it was read before, without looking at it.

        Raises:
            BadImage: the picture's file cannot be read.
        """
        _, _, key = _request_of(picture)
        try:
            recorded = self.engine.recorder.look_up(key)
        except BadRecord:
            return None
        return None if recorded is None else self._result(key, recorded.response, replayed=True)

    def as_tool(self, images: ToolImages) -> BaseTool:  # pyright: ignore[reportIncompatibleMethodOverride]  # as that of the image tools
        """A tool that an agent of LangChain can call on the pictures given here, and on no others."""
        return tool_of(self, images)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> RecognizedText:  # noqa: A002
        """The lines in one picture."""
        return (await self.ask(input, traced_config(config, self.engine.mode))).unwrap()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> RecognizedText:  # noqa: A002
        """As `ainvoke`, from anywhere."""
        return run_sync(self.ainvoke(input, config))

    async def _looked_up(self, picture: Any) -> Result[RecognizedText]:
        image, form, key = _request_of(picture)
        recorder = self.engine.recorder
        reads = self.engine.mode in {"auto", "replay"}
        recorded = await recorder.off_loop(lambda: recorder.look_up(key)) if reads else None
        if recorded is None and self.engine.mode == "replay":
            raise explain_miss(form, "ocr", recorder.records)
        response = recorded.response if recorded is not None else await self._read(image)
        if recorded is None:
            await recorder.write(lambda: Record.make("ocr", form, response))
        return self._result(key, response, replayed=recorded is not None)

    async def _read(self, image: Image) -> JsonObject:
        reader = self._reader  # built here, so that a missing package is said at once
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: _lines_in(reader, image))

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        # One thread, because the engine is not safe to share between threads.
        return ThreadPoolExecutor(1, thread_name_prefix="askance-ocr")

    @cached_property
    def _reader(self) -> Any:
        rapidocr = optional_library("rapidocr", "ocr", lacking=_LACKING)
        return rapidocr.RapidOCR(params={"Global.log_level": "warning"})

    def _result(self, key: str, response: JsonObject, *, replayed: bool) -> Result[RecognizedText]:
        call = Call(key=key, model=ENGINE, kind="ocr", cost=0.0, meta=CallMeta(replayed=replayed))
        return Result(outcome="answered", value=self._recognized(response), calls=(call,))

    def _recognized(self, response: JsonObject) -> RecognizedText:
        boxes = [_box(line) for line in response["lines"]]
        confident = tuple(box for box in boxes if box.confidence >= self.least)
        return RecognizedText(lines=tuple(box.text for box in confident), boxes=confident)


_LACKING = "RapidOCR is not installed."


def _request_of(picture: Any) -> tuple[Image, JsonObject, str]:
    """The picture, the request of its record, and the key of that."""
    image = Image.load(picture)
    form: JsonObject = {"engine": ENGINE, "image": Shown(image).canonical()}
    return image, form, key_of("ocr", form)


def _box(line: Mapping[str, Any]) -> TextBox:
    corners = tuple((float(x), float(y)) for x, y in line["box"])
    return TextBox(text=line["text"], confidence=float(line["confidence"]), box=corners)


def _lines_in(reader: Any, image: Image) -> JsonObject:
    """What the engine finds, as JSON values, from the top down."""
    from importlib.metadata import version

    pixels = BytesIO()
    Image.from_bytes(Shown(image).prepare().data).open().convert("RGB").save(pixels, "PNG")
    result = reader(pixels.getvalue())
    if result.txts is None:
        return {"lines": [], "version": version("rapidocr")}
    lines = [
        {
            "text": str(text),
            "confidence": round(float(score), 4),
            "box": [[round(float(x), 1), round(float(y), 1)] for x, y in box],
        }
        for text, score, box in zip(result.txts, result.scores, result.boxes, strict=True)
    ]
    return {"lines": lines, "version": version("rapidocr")}


ocr = RapidOcr
