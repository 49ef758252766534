"""The tools of the investigator: each looks at a picture in one way, by one call of a model at most.

| tool | what it tells | calls |
|---|---|---|
| `objects`, `scene_text`, `narration`, `unusual`, `caption` | what the tool of that name says of the picture | 1 |
| `ask` | the answer to a question about the picture | 1 |
| `zoom` | the answer to a question about a region, which is cut out and enlarged | 1 |
| `compare` | the answer to a question about two regions side by side | 1 |
| `ocr` | the lines of text, and names for the regions where they stand | 0 |
| `similar` | texts of an index that are nearest to a text | 0 |

What a tool is called with is a model's, so it is checked; whatever is wrong with it is an outcome, and no call is made.
A question goes to the model in the agent's words, without marks of chat templates.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import override

from askance.agents import ask_about_picture, ask_about_regions
from askance.amounts import many
from askance.errors import BadImage, CallError, OverBudget, OverLimit, ReplayMiss, UsageError
from askance.images import Shown, view_policy
from askance.images.shown import key_of_shown
from askance.investigator.look import Look, LookTool
from askance.investigator.named_regions import GRID, text_regions
from askance.investigator.own_entries import OwnEntries
from askance.investigator.scene import Asked, Scene
from askance.models import get_model, limit_budget
from askance.models.call_scope import Pending
from askance.nodes import Call, Result, no_answer
from askance.prompts import neutralize, oneline
from askance.retrieval import IndexRetriever, retriever
from askance.tools import caption, narration, objects, ocr, scene_text, unusual
from askance.tools.ocr import ENGINE

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.images import Image, RegionView
    from askance.models import Model, ModelLike
    from askance.nodes import Node
    from askance.prompts import Prompt, PromptLibrary
    from askance.retrieval import IndexLike

LONGEST = 300
"""Characters of a question or of a text that is searched for, at most."""
SIMILAR = 5
"""Texts that `similar` tells at most."""
_SEARCHED = 50
"""Texts that are searched for: those that belong to the picture itself are left out of them."""

_QUESTION: JsonObject = {"type": "string", "description": f"The question, in at most {LONGEST} characters."}


class CheckedTool(LookTool):
    """A tool that checks its arguments, by default none, and answers an equal look from what is known."""

    @override
    def schema(self, scene: Scene) -> JsonObject:
        return _object({})

    def asked(self, scene: Scene, arguments: Mapping[str, Any]) -> Asked:  # noqa: ARG002  # others name regions of it
        """What the arguments ask.

        Raises:
            UsageError: they cannot be used.
        """
        _check_names(arguments, ())
        return Asked(self.name)

    @abstractmethod
    async def take(self, scene: Scene, asked: Asked) -> Look:
        """Looks, where no equal look was taken before."""

    @override
    async def look(self, scene: Scene, arguments: Mapping[str, Any]) -> Look:
        try:
            asked = self.asked(scene, arguments)
        except UsageError as error:
            return Look(outcome="invalid", reason=str(error))
        look, before = await scene.once(asked, partial(self.take, scene, asked), stays=_stays)
        return _known(look, scene) if before else look


class VlmTool(CheckedTool):
    """A tool that asks a model about the picture.

    Args:
        name: what the investigating model calls it.
        description: what that model is told of it.
        bench: has the model that is asked.
    """

    def __init__(self, name: str, description: str, bench: Bench) -> None:
        self.name = name
        self.description = description
        self.bench = bench

    @property
    @override
    def models(self) -> tuple[Model, ...]:
        return (self.bench.model,)

    @property
    @override
    def prompts_in_use(self) -> tuple[Prompt, ...]:
        return self.node(Asked(self.name)).prompts_in_use

    @abstractmethod
    def node(self, asked: Asked) -> Node[Any, Any]:
        """The node that asks it."""

    @override
    def calls(self, scene: Scene, arguments: Mapping[str, Any]) -> int:
        try:
            return 0 if scene.knows(self.asked(scene, arguments)) else 1
        except UsageError:
            return 0

    @override
    async def take(self, scene: Scene, asked: Asked) -> Look:
        # Once: a reply that cannot be read is not asked for again.
        with limit_budget("1 call"):
            result = await self.node(asked).ask(scene.image)
        if result.error == OverLimit.__name__ and result.calls:
            result = replace(result, outcome="invalid", error=None)
        look = _look_of(result)
        if not asked.views or not result.calls:
            return look
        return replace(look, views=asked.views, note=self._shown(scene, asked.views, result.calls[0]))

    def _shown(self, scene: Scene, views: Sequence[RegionView], call: Call) -> str:
        """Which regions were looked at, and how large they were shown."""
        node = self.node(Asked(self.name, views=tuple(views)))
        parts = [part.shown for part in node.picture_parts(node.accept(scene.image))]
        looked = [f"{_box_words(part.view)} at {_size_words(part, call, self.bench.model)}" for part in parts]
        return f"Shown, in thousandths of the image's sides: {' and '.join(looked)}."


class PictureTool(VlmTool):
    """A tool of `askance.tools` that takes no arguments."""

    def __init__(self, bench: Bench, *, name: str, description: str, make: Callable[..., Node[Image, Any]]) -> None:
        self._node = make(bench.model, prompts=bench.prompts)
        super().__init__(name, description, bench)

    @override
    def node(self, asked: Asked) -> Node[Any, Any]:
        return self._node


class AskTool(VlmTool):
    """A question about the whole picture."""

    def __init__(self, bench: Bench) -> None:
        description = "Asks a model that sees the image a question about it."
        super().__init__("ask", description, bench)

    @override
    def schema(self, scene: Scene) -> JsonObject:
        return _object({"question": _QUESTION}, "question")

    @override
    def asked(self, scene: Scene, arguments: Mapping[str, Any]) -> Asked:
        _check_names(arguments, ("question",))
        return Asked(self.name, _text(arguments, "question"))

    @override
    def node(self, asked: Asked) -> Node[Any, Any]:
        return ask_about_picture(self.bench.model, question=asked.question, prompts=self.bench.prompts)


class _RegionTool(VlmTool):
    """A question about regions, which are shown alone."""

    takes_boxes = True

    @override
    def node(self, asked: Asked) -> Node[Any, Any]:
        return ask_about_regions(
            self.bench.model,
            views=asked.views,
            policy=view_policy(self.bench.model.settings.image_policy),
            question=asked.question,
            prompts=self.bench.prompts,
        )


class ZoomTool(_RegionTool):
    """A question about one region."""

    def __init__(self, bench: Bench) -> None:
        description = "Cuts a region out of the image, enlarges it, and asks a model a question about it alone."
        super().__init__("zoom", description, bench)

    @override
    def schema(self, scene: Scene) -> JsonObject:
        region = {"type": "string", "description": f"The name of the region: {self.bench.regions}"}
        if scene.unit == "none":
            return _object({"region": region, "question": _QUESTION}, "region", "question")
        box = {**_box_schema(scene), "description": f"The region as {scene.unit_words} Give `box` or `region`."}
        region["description"] += " Give it in place of `box`."
        return _object({"box": box, "region": region, "question": _QUESTION}, "question")

    @override
    def asked(self, scene: Scene, arguments: Mapping[str, Any]) -> Asked:
        _check_names(arguments, ("box", "region", "question"))
        views = [*_views(scene.box, _given(arguments, "box")), *_views(scene.region, _given(arguments, "region"))]
        if len(views) != 1:
            way = "Give the name of a `region`." if scene.unit == "none" else "Give a `box`, or the name of a `region`."
            raise UsageError("One region is looked at.", hint=way)
        return Asked(self.name, _text(arguments, "question"), tuple(views))


class CompareTool(_RegionTool):
    """A question about two regions."""

    def __init__(self, bench: Bench) -> None:
        description = "Cuts two regions out of the image and asks a model a question about both at once."
        super().__init__("compare", description, bench)

    @override
    def schema(self, scene: Scene) -> JsonObject:
        names = {"type": "string", "description": f"The name of a region: {self.bench.regions}"}
        regions = {"type": "array", "items": names, "maxItems": 2, "description": "Names of regions."}
        if scene.unit == "none":
            return _object({"regions": regions, "question": _QUESTION}, "regions", "question")
        boxes = {"type": "array", "items": _box_schema(scene), "maxItems": 2}
        boxes["description"] = f"Regions, each as {scene.unit_words} Give two `boxes`, two `regions`, or one of each."
        return _object({"boxes": boxes, "regions": regions, "question": _QUESTION}, "question")

    @override
    def asked(self, scene: Scene, arguments: Mapping[str, Any]) -> Asked:
        _check_names(arguments, ("boxes", "regions", "question"))
        views = [
            *map(scene.box, _listed(arguments, "boxes")),
            *map(scene.region, _listed(arguments, "regions")),
        ]
        if len(views) != 2:
            raise UsageError(f"Two regions are compared, and {len(views)} are given.", hint="Give two regions in all.")
        return Asked(self.name, _text(arguments, "question"), tuple(views))


class OcrTool(CheckedTool):
    """The text that an OCR engine reads, and names for the places where it stands.

    Raises:
        MissingExtra: the engine is not installed, and this is no replay.
    """

    name = "ocr"
    description = "Reads the text in the image by OCR. Each line gets a name, such as text 1, to look at it by."

    def __init__(self, bench: Bench) -> None:
        self._reader = ocr(engine=bench.model.engine)
        self._reader.check()

    @override
    def form(self) -> JsonObject:
        return {"engine": ENGINE}

    @override
    async def take(self, scene: Scene, asked: Asked) -> Look:
        result = await self._reader.ask(scene.image)
        if result.value is None:
            return _look_of(result)
        lines = result.value.boxes
        named = text_regions(lines, Shown(scene.image).size)
        scene.regions.update(named)
        text = "\n".join(f"{name}: {oneline(line.text)}" for name, line in zip(named, lines, strict=True))
        note = f"{many(len(named), 'line')} of text; each name is that of a region." if named else "No text was found."
        return Look(outcome="answered", text=text, note=note, calls=result.calls)


class SimilarTool(CheckedTool):
    """The texts of an index that are nearest to a text; none that belong to the picture or are its options.

    Raises:
        UsageError: the texts of the index are not here, so that nobody knows which belong to a picture.
    """

    name = "similar"
    description = "Finds statements about other images whose words are most like a text, with a score each."

    def __init__(self, index: IndexRetriever) -> None:
        if not index.index.has_entries:
            raise UsageError(
                f"The texts of the index {index.index} are not here, and `similar` leaves out those of the picture.",
                hint="Give the folder of the index.",
            )
        self._search = index

    @cached_property
    def _own(self) -> OwnEntries:
        return OwnEntries(self._search.index)

    @override
    def form(self) -> JsonObject:
        return self._search.form()

    @override
    def schema(self, scene: Scene) -> JsonObject:
        text = {"type": "string", "description": f"What is searched for, in at most {LONGEST} characters."}
        return _object({"text": text}, "text")

    @override
    def asked(self, scene: Scene, arguments: Mapping[str, Any]) -> Asked:
        _check_names(arguments, ("text",))
        return Asked(self.name, _text(arguments, "text"))

    @override
    async def take(self, scene: Scene, asked: Asked) -> Look:
        try:
            hits = await self._search.search(asked.question)
        except CallError as error:
            return _look_of(no_answer(error))
        names = {scene.image.name, scene.image.sha256}
        own = {entry.id for entry in self._own.of(texts=scene.options, images=names)}
        others = [hit for hit in hits if hit.id not in own][:SIMILAR]
        calls = [
            Call(key=key, model=f"index:{self._search.index.digest[:12]}", kind="search", cost=0.0)
            for key in self._search.keys(asked.question)
        ]
        lines = "\n".join(f"{hit.score:.3g}  {oneline(hit.text)}" for hit in others)
        note = "Scores compare within this list alone." if others else "No text of another image is like it."
        return Look(outcome="answered", text=lines, note=note, calls=tuple(calls))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What tools are made of."""

    model: Model
    prompts: PromptLibrary | None
    index: IndexRetriever | None
    reads_text: bool
    """Whether `ocr` is among them, which gives names to lines of text."""

    @property
    def regions(self) -> str:
        """The names of regions, as a model is told them."""
        grid = ", ".join(GRID)
        return f"{grid}; and text 1, text 2, … once `ocr` has found lines of text." if self.reads_text else f"{grid}."


def _similar(bench: Bench) -> SimilarTool:
    if bench.index is None:
        raise UsageError(
            "The tool `similar` searches an index, and none is given.",
            hint="Name its folder, `index=FOLDER` or --index FOLDER, or leave the tool out.",
        )
    return SimilarTool(bench.index)


TOOLS: Mapping[str, Callable[[Bench], LookTool]] = MappingProxyType(
    {
        **{
            make.prompt: partial(PictureTool, name=make.prompt, description=description, make=make)
            for make, description in (
                (objects, "Lists the main objects in the image."),
                (scene_text, "Reads the text in the image."),
                (narration, "Describes the image in detail."),
                (unusual, "Says what is unusual about the image."),
                (caption, "Gives a caption of one sentence."),
            )
        },
        "ocr": OcrTool,
        "ask": AskTool,
        "zoom": ZoomTool,
        "compare": CompareTool,
        "similar": _similar,
    }
)
"""By name, how each tool is made."""
DEFAULT_TOOLS = ("objects", "scene_text", "unusual", "ask", "zoom")
"""Those that need no extra and no index."""


def toolbox(
    names: Iterable[str | LookTool],
    *,
    vlm: ModelLike,
    index: IndexLike | IndexRetriever | None = None,
    prompts: PromptLibrary | None = None,
) -> tuple[LookTool, ...]:
    """The tools of these names.

    Args:
        names: of `TOOLS`, or tools of your own.
        vlm: sees the picture; its engine has the records.
        index: what `similar` searches.
        prompts: where prompts are looked up.

    Raises:
        UsageError: there is no tool of a name, one stands twice, `similar` has no index or an index has no `similar`.
        StoreError: the description of the index is damaged.
        MissingExtra: `ocr` is wanted, its engine is not installed, and this is no replay.
    """
    model = get_model(vlm)
    search = None if index is None else _retriever(index, model)
    wanted = tuple(names)
    bench = Bench(model=model, prompts=prompts, index=search, reads_text="ocr" in wanted)
    tools = [each if isinstance(each, LookTool) else _tool_named(each)(bench) for each in wanted]
    called = [tool.name for tool in tools]
    if twice := sorted({name for name in called if called.count(name) > 1}):
        raise UsageError(f"The tool {twice[0]!r} stands twice.", hint="Name each tool once.")
    if search is not None and "similar" not in called:
        raise UsageError("An index is given, and no tool searches it.", hint="Add the tool `similar`.")
    return tuple(tools)


def _retriever(index: IndexLike | IndexRetriever, model: Model) -> IndexRetriever:
    if isinstance(index, IndexRetriever):
        return index
    return cast("IndexRetriever", retriever(index, k=_SEARCHED, engine=model.engine))


def _tool_named(name: str) -> Callable[[Bench], LookTool]:
    if name in TOOLS:
        return TOOLS[name]
    near = get_close_matches(name, TOOLS, n=1)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    raise UsageError(f"There is no tool {name!r}.", hint=f"{meant}There are {', '.join(TOOLS)}.")


# --- arguments ---


def _object(properties: JsonObject, *required: str) -> JsonObject:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def _box_schema(scene: Scene) -> JsonObject:
    number = "number" if scene.unit == "fractions" else "integer"
    return {"type": "array", "items": {"type": number}, "minItems": 4, "maxItems": 4}


def _check_names(arguments: Mapping[str, Any], known: Sequence[str]) -> None:
    if unknown := sorted({*map(str, arguments)} - {*known}):
        takes = f"Give {', '.join(f'`{name}`' for name in known)}." if known else "Give none."
        raise UsageError(f"There is no argument {unknown[0][:40]!r}.", hint=takes)


def _given(arguments: Mapping[str, Any], name: str) -> Any:
    """An argument; None where it is left out, or given as null or as an empty text."""
    value = arguments.get(name)
    return None if value == "" else value


def _listed(arguments: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = _given(arguments, name)
    if value is not None and not isinstance(value, list):
        raise UsageError(f"`{name}` is no list.", hint="Give two regions in all.")
    return cast("Sequence[Any]", value or ())


def _views(read: Callable[[Any], RegionView], value: Any) -> Sequence[RegionView]:
    return () if value is None else (read(value),)


def _text(arguments: Mapping[str, Any], name: str) -> str:
    """A text of the agent's, on one line and without marks of chat templates.

    Raises:
        UsageError: there is none, it is blank, or it is too long.
    """
    return plain_question(arguments.get(name), name=name)


def plain_question(value: object, *, name: str = "question") -> str:
    """A text of a stranger's, on one line and without marks of chat templates.

    Args:
        value: the text.
        name: what it is called.

    Raises:
        UsageError: there is none, it is blank, or it is too long.
    """
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"`{name}` is missing.", hint=f"Give a text of at most {LONGEST} characters.")
    if len(value) > LONGEST:
        raise UsageError(f"`{name}` has {len(value):,} characters.", hint=f"Give at most {LONGEST}.")
    return neutralize(oneline(value))


# --- what was looked at ---


def _stays(look: Look) -> bool:
    return look.outcome not in {"failed", "skipped"}


def _known(look: Look, scene: Scene) -> Look:
    """A look that was taken before, with what is not looked at yet."""
    unseen = ", ".join(scene.unseen) or "nothing"
    note = f"This is known already, and cost nothing. Not looked at closely yet: {unseen}."
    return replace(look, note=note, calls=(), repeated=True)


def _look_of(result: Result[Any]) -> Look:
    """What a node found. Its reason is in our own words: a model or an endpoint may have written that of the result.

    Raises:
        ReplayMiss, OverBudget: the call ended so; no other look would fare better.
    """
    if result.error == ReplayMiss.__name__:
        key = "" if result.failure is None else result.failure.key
        raise ReplayMiss(result.reason or "The answer is not on record.", key=key)
    if result.error in {OverBudget.__name__, Pending.__name__}:
        result.unwrap()
    text = "" if result.value is None else str(result.value)
    reason = None if result.answered else plain_reason(result)
    return Look(outcome=result.outcome, text=text, reason=reason, calls=result.calls)


def plain_reason(result: Result[Any]) -> str:
    """Why there is no answer, in our own words and without paths."""
    return _REASONS[result.outcome] + (f" ({result.error})" if result.error else "")


_REASONS: Mapping[str, str] = {
    "invalid": "the reply cannot be read",
    "refused": "the model declined",
    "filtered": "a content filter of the endpoint stopped the answer",
    "truncated": "the answer was cut off at the token limit",
    "failed": "the call failed",
    "skipped": "the call was not made",
}


def _box_words(view: RegionView) -> str:
    return f"[{', '.join(f'{edge:g}' for edge in view.boxes[0])}]"


def _size_words(shown: Shown, call: Call, model: Model) -> str:
    """In how many pixels a view was shown; from the record of the call where the picture itself is not here."""
    try:
        width, height = shown.size
    except BadImage:
        record = model.engine.recorder.look_up(call.key)
        sent = {} if record is None else record.images.get(key_of_shown(shown.canonical()), {})
        width, height = sent.get("width", 0), sent.get("height", 0)
    return f"{width}×{height} pixels"
