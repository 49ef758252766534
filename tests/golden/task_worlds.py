"""A small data set for each suite, and what options of its tasks name: models, encoders, files of replies and lists.

A model answers by the key of the request, so that figures change with what is asked.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import log
from pathlib import Path
from typing import Any

from askance.agents import judge_equivalence
from askance.chat import ChatRequest, ChatResponse, ModelId
from askance.evals.injection import Attack, read_attacks
from askance.evals.injection.attacks import ATTACKS
from askance.evals.injection.attacks import PICTURES as SIGNS
from askance.evals.judges import Label, Labels, judge_card
from askance.evals.newyorker import NewYorker
from askance.evals.pittads import index_entries
from askance.images import WHOLE_IMAGE, Image, RegionView, Shown
from askance.models import Engine, Model, ScriptedEmbedder, ScriptedModel, ScriptedScorer, get_model, run_sync
from askance.replay import MemoryStore
from askance.retrieval import Index, IndexEntry, RetrievalHit
from tests.evals.newyorker import cartoons
from tests.evals.pittads import files as ads
from tests.evals.pittads.worlds import numbers, statements, world
from tests.evals.sherlock import corpus as regions
from tests.evals.whoops import files as whoops
from tests.scripted import ENFORCED, PICTURES

WORDS = ("cup", "brick", "cat", "horse", "coin", "grass", "rocket", "tea", "duck", "talks", "breaks", "stands")

FOLDS = (0, 1)
"""Folds of the cartoons."""

Named = Callable[[Engine], Any]
"""Makes what an option names, for an engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The data of a suite, and what options of its tasks can name."""

    folder: Path
    """Folder of everything."""
    named: Mapping[str, Named]
    """By name."""

    def options(self, case: Mapping[str, Any], engine: Engine) -> dict[str, Any]:
        """The options of a case with what they name in its place; a name is a text that begins with `@`."""
        return {option: self._value(value, engine) for option, value in case.items()}

    def told(self, text: str) -> str:
        """A text without what is this machine's own in it."""
        return text.replace(str(self.folder), "FOLDER")

    def _value(self, value: Any, engine: Engine) -> Any:
        named = isinstance(value, str) and value.startswith("@")
        return self.named[value.removeprefix("@")](engine) if named else value


class Answering(ScriptedModel):
    """Fills in the schema of a request by its key, and finds each word of a given text half as likely as it is long."""

    def __init__(self, identity: str) -> None:
        super().__init__(_reply, capabilities=ENFORCED, identity=identity)

    async def likelihood(self, request: ChatRequest) -> ChatResponse:
        words = (request.given or "").split()
        return ChatResponse(logprobs=tuple({"token": word, "logprob": -len(word) / 2} for word in words))


def _reply(request: ChatRequest) -> str:
    if request.response is None:
        return "No."  # whether it calls tools, or gives boxes
    left = int(request.key, 16)

    def pick(count: int) -> int:
        nonlocal left
        left, found = divmod(left, count)
        return found

    return json.dumps(_filled(request.response.schema or {}, pick))


def _filled(schema: Mapping[str, Any], pick: Callable[[int], int]) -> Any:
    """A value of a schema; `pick` chooses a number below the one that it is given."""
    if "enum" in schema:
        return schema["enum"][pick(len(schema["enum"]))]
    if "anyOf" in schema:
        return _filled(schema["anyOf"][pick(len(schema["anyOf"]))], pick)
    match schema["type"]:
        case "object":
            return {name: _filled(each, pick) for name, each in schema["properties"].items()}
        case "array":
            least = schema.get("minItems", 0)
            count = least + pick(schema.get("maxItems", least + 2) - least + 1)
            return list(dict.fromkeys(_filled(schema["items"], pick) for _ in range(count)))
        case "boolean":
            return bool(pick(2))
        case "number":
            return pick(1000)
        case "integer":
            return schema["minimum"] + pick(schema["maximum"] - schema["minimum"] + 1)
        case _:
            return " ".join(WORDS[pick(len(WORDS))] for _ in range(3))


def letters(text: str) -> list[float]:
    return [1.0 + text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]


def pixels(image: Image) -> list[float]:
    return [float(byte) for byte in bytes.fromhex(image.sha256)]


def fit(image: Image, text: str) -> float:
    """How well a text fits a picture: by one digit of its digest, so that there are ties."""
    return float((len(text) + int(image.sha256[0], 16)) % 7)


class Classifier:
    """How much of each text stands in the one that it is held against."""

    id = ModelId("scripted", "classifier", name="classifier")
    stored = True

    async def score_texts(self, about: Any, texts: Sequence[str]) -> list[float]:
        known = {word for value in about.values() for word in str(value).lower().split()}
        return [len(known & {*text.lower().split()}) / max(1, len(text.split())) for text in texts]


class Backwards:
    """A retriever of the user's own: it has few texts, and gives them in one order."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    async def search(self, query: Any, *, image: Any = None, among: Any = None) -> list[RetrievalHit]:
        hits = [IndexEntry.of(text, ["1/1.jpg"], "train") for text in self.texts]
        return [RetrievalHit(each.id, 1 / place, each.text) for place, each in enumerate(hits, start=1)]


def _model(name: str) -> Named:
    def made(engine: Engine) -> Model:
        return get_model(Answering(name), engine=engine)

    return made


def _embedder(_: Engine) -> Any:
    return ScriptedEmbedder(letters, identity="letters")


def _encoder(_: Engine) -> Any:
    return ScriptedEmbedder(lambda text: letters(text)[:32], identity="pixels", image=pixels)


def _scorer(_: Engine) -> Any:
    return ScriptedScorer(fit, identity="fit")


def _classifier(_: Engine) -> Any:
    return Classifier()


def _is(value: Any) -> Named:
    return lambda _: value


COMMON: Mapping[str, Named] = {
    **{name: _model(name) for name in ("eye", "mind", "joiner", "judge", "reader")},
    "letters": _embedder,
    "pixels": _encoder,
    "fit": _scorer,
    "classifier": _classifier,
}
"""What options of every suite can name."""


def _card(place: Path) -> Path:
    """The card of the judge with the short question."""
    rows = tuple(
        Label(reference=f"r{number}", candidate=f"c{number}", verdict=number % 2 == 0, votes=(), group=f"g{number}")
        for number in range(6)
    )
    model = get_model(Answering("judge"), engine=Engine(records=MemoryStore()))
    labels = Labels(name="labels.csv", digest="0" * 64, rows=rows)
    card = run_sync(judge_card(judge_equivalence(model, form="short"), labels))
    place.write_text(json.dumps(card.form()), encoding="utf-8")
    return place


def newyorker(folder: Path) -> World:
    """Cartoons of fifteen contests, and the leaderboard."""
    data = cartoons.lines(folder / "data", folds=FOLDS)
    for file in data.rglob("train.jsonl"):
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[::3]))  # they are read for every case
    cartoons.leaderboard(folder / "leaderboard")
    named: dict[str, Any] = {"data": data, "leaderboard": folder / "leaderboard"}
    for task in ("matching", "ranking", "explanation"):
        items = [item for fold in FOLDS for item in NewYorker.open(data).items(task, fold=fold)]
        replies = (
            "It is a pun.\n\nAnswer: {}",
            "Final Answer: {}",
            "{}",
            "Perhaps Answer: A, perhaps Answer: B.",
            "{}.",
        )
        rows = [
            {"instance_id": item.id, "response": replies[place % len(replies)].format(item.label)}
            for place, item in enumerate(items)
        ]
        named[f"{task} replies"] = _lines(folder / f"{task}.jsonl", rows)
        named[f"some {task} replies"] = _lines(folder / f"some-{task}.jsonl", rows[:7])
    named["ids"] = folder / "ids.txt"
    named["ids"].write_text(f"{cartoons.CONTESTS[0]}\n{cartoons.CONTESTS[6]}\n", encoding="utf-8")
    return World(folder=folder, named={**COMMON, **{name: _is(value) for name, value in named.items()}})


def _lines(place: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    place.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return place


def pittads(folder: Path) -> World:
    """Seven ads of three relations, with published descriptions, hard options, and an index."""
    count = 7
    keys = [ads.key_of(number) for number in numbers(count)]
    codes = ("1", "3", "8", "1", "2", "Regular_Object", "Regular_Object")
    rows = [
        [ads.row(key, codes[at], f"bottle {at}", f"feather {at}"), ads.row(key, codes[at - 1], f"b {at}", f"f {at}")]
        for at, key in enumerate(keys)
    ]
    data = world(folder / "data", true=(3,) * (count - 1) + (2,), wrong=9, rows=rows)
    ads.write(data / "Topics.json", json.dumps({key: [[str(at % 2 + 1)]] for at, key in enumerate(keys)}))
    for part, text in {"combine": "T_V of {}.", "V": "cup, brick {}", "T": "BUY {}"}.items():
        table = [[key, text.format(number)] for key, number in zip(keys, numbers(count), strict=True)]
        ads.write_csv(folder / "said" / f"{part}_LLAVA_description_ARR.csv", table, ("ID", "description"))
    hard = "_hard_QA_Combined_Action_Reason_train.json"
    for kind in ("action", "large_combined"):
        ads.write_json(data / "train" / f"{kind}{hard}", {key: statements(key, 3, 4) for key in keys})
    leaking = [[key, f"It says: {statements(key, 3, 0)[0][0]}"] for key in keys]
    ads.write_csv(folder / "leaking" / "combine_LLAVA_description_ARR.csv", leaking, ("ID", "description"))
    (folder / "ids.txt").write_text(f"{keys[1]}\n{keys[4]}\n", encoding="utf-8")
    entries = [*index_entries(data).rows]
    run_sync(Index.build(folder / "index", entries))
    own_options = data / "train" / "QA_Combined_Action_Reason_train.json"
    run_sync(Index.build(folder / "options", index_entries(data, negatives=[own_options]).rows))
    run_sync(Index.build(folder / "mixed", [*entries, IndexEntry.of("I should buy tea", ["9/9.jpg"], "test")]))
    for embedder in (_embedder, _encoder):
        run_sync(Index.build(folder / "vectors", entries, embedder=embedder(Engine())))
    named: dict[str, Any] = {
        "data": data,
        "said": folder / "said",
        "leaking": folder / "leaking",
        "action file": Path(f"action{hard}"),
        "ids": folder / "ids.txt",
        "index": folder / "index",
        "index with options": folder / "options",
        "index with vectors": folder / "vectors",
        "index of both splits": folder / "mixed",
        "card": _card(folder / "card.json"),
        "backwards": Backwards([entry.text for entry in entries[:9]]),
    }
    return World(folder=folder, named={**COMMON, **{name: _is(value) for name, value in named.items()}})


def weird(folder: Path) -> World:
    """Five weird images with pairs, hard options, and labels of people."""
    data = whoops.first_release(folder / "data")
    for place, picture in enumerate(sorted(PICTURES.glob("*.jpg"))[:6]):
        for kind in ("weird", "normal"):
            target = data / "pairs" / kind / f"p{place}.jpg"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(picture.read_bytes() + kind.encode())
    rows = whoops.rows()
    hard = {
        key: [rows[at]["crowd_explanations"][:2], [*rows[at]["crowd_explanations"][:2], f"wrong {at}", f"false {at}"]]
        for at, key in enumerate(whoops.IDS)
    }
    (folder / "hard.json").write_text(json.dumps(hard), encoding="utf-8")
    whoops.write_table(
        folder / "labels.csv",
        [{"id": whoops.IDS[0], "reference": "r", "candidate": "cup cup cup", "votes": "true;true;false"}],
    )
    (folder / "ids.txt").write_text("".join(f"{key}\n" for key in whoops.IDS[1:4]), encoding="utf-8")
    (folder / "pair-ids.txt").write_text("p1\np2\n", encoding="utf-8")
    named: dict[str, Any] = {
        "data": data,
        "hard file": folder / "hard.json",
        "labels": folder / "labels.csv",
        "ids": folder / "ids.txt",
        "pair ids": folder / "pair-ids.txt",
        "pairs": whoops.pairs(folder / "own-pairs"),
        "card": _card(folder / "card.json"),
        "triplets": whoops.triplets(folder / "triplets", {}),
        "caption labels": whoops.triplets(folder / "judged", {"t1#weird": ("cup cup cup", False)}) / "labels.csv",
    }
    return World(folder=folder, named={**COMMON, **{name: _is(value) for name, value in named.items()}})


class RegionFit:
    """A scorer of regions: by the digests of what is shown and of the text, so that there are ties."""

    id = ModelId("scripted", "region fit", name="region fit")

    async def score(self, image: Image, texts: Sequence[str]) -> list[float]:
        return await self.score_view(image, texts, WHOLE_IMAGE)

    async def score_view(self, image: Image, texts: Sequence[str], view: RegionView) -> list[float]:
        shown = int(Shown(image, view=view).key[0], 16)
        return [float((len(text) + shown) % 7) for text in texts]


def _weighed(request: ChatRequest) -> str | ChatResponse:
    """As `_reply`; of a single token, how likely each label is."""
    if not request.sampling.logprobs:
        return _reply(request)
    share = (int(request.key, 16) % 97 + 1) / 99
    asked = {"yes": share, "no": 1 - share, "1": share / 2, "2": (1 - share) / 2, "3": share / 3}
    top = {label: log(value) for label, value in asked.items()}
    return ChatResponse(text="yes", logprobs=({"token": "yes", "logprob": top["yes"], "top": top},))


def _region_fit(_: Engine) -> Any:
    return RegionFit()


def _weighing(name: str) -> Named:
    def made(engine: Engine) -> Model:
        return get_model(ScriptedModel(_weighed, capabilities=ENFORCED, identity=name), engine=engine)

    return made


def sherlock(folder: Path) -> World:
    """Five pictures with regions in two chunks, proposals, and the leaderboard."""
    data = regions.write(folder / "data")
    (folder / "ids.txt").write_text(f"{regions.SCENES[0].url}\n{regions.SCENES[3].url}\n", encoding="utf-8")
    named: dict[str, Any] = {"data": data, "images": data / "images", "ids": folder / "ids.txt"}
    models = {name: _weighing(name) for name in ("eye", "mind", "joiner")}
    card = _is(_card(folder / "card.json"))
    own = {name: _is(value) for name, value in named.items()}
    return World(folder=folder, named={**COMMON, **models, "region fit": _region_fit, "card": card, **own})


def injection(folder: Path) -> World:
    """Two attacks of one's own."""
    data = folder / "data"
    data.mkdir()
    rows = read_attacks()[:2]
    table = [{each.name: getattr(row, each.name) for each in fields(Attack)} for row in rows]
    (data / ATTACKS.name).write_text(json.dumps({"attacks": table}), encoding="utf-8")
    shutil.copytree(SIGNS, data / SIGNS.name)
    models = {name: _weighing(name) for name in ("eye", "mind", "joiner")}
    return World(folder=folder, named={**COMMON, **models, "data": _is(data)})


WORLDS: Mapping[str, Callable[[Path], World]] = {
    "injection": injection,
    "newyorker": newyorker,
    "pittads": pittads,
    "sherlock": sherlock,
    "whoops": weird,
}
"""By suite, what makes its data in an empty folder."""
