"""The floor: what a careful person writes in an afternoon with `AsyncOpenAI` and diskcache, and no library around it.

    python floor.py FOLDER            answers from FOLDER/floor; a line of JSON a picture
    python floor.py FOLDER --as-sent  answers from FOLDER/floor-as-sent
    python floor.py FOLDER --fill     puts made-up answers there first
    python floor.py FOLDER --at-once 32   asks what is not there, so many calls at once, and says how long it took

It asks seven times a picture, as the chain does: four questions side by side, then a description, a statement out of
all that the objects allow, and three of the options. It keeps replies as JSON text under a digest of the request's
body: with `--as-sent` of the body as it goes out, picture and all, which is what comes to mind first; without it, the
picture stands there as the digest of its file, so that a replay neither encodes a picture nor hashes one twice. It has
no retries, no checks of what came back, no outcomes, and no way to find out why something was not on record.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import sys
import time
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from typing import Any, cast

# Whoever writes this has no aiohttp: openai would load it, which takes 0.2 s, and not use it.
sys.modules["aiohttp"] = cast("Any", None)

from diskcache import Cache  # noqa: E402  # pyright: ignore[reportMissingTypeStubs]
from openai import AsyncOpenAI  # noqa: E402
from openai.types.chat import ChatCompletion  # noqa: E402

MODEL = "bench"
AT_ONCE = 32
QUESTIONS = {
    "objects": "List the main objects that are visible in this image, the most important first, five at most.",
    "scene_text": "Write down the text that can be read in this image, line by line, and nothing where there is none.",
    "narration": "Describe this image in full: who and what is there, what happens, where, and in which style.",
    "unusual": "Say what is unusual about this image, in one or two sentences: what would not be seen in real life.",
}
RELATIONS = (
    "The surface of the {0} mimics the texture of the {1}.",
    "The {0} is completely or partially made of many small {1}.",
    "The {0} is located inside of the {1}, or the other way round.",
    "The {0} is located in place of the {1}, or the other way round.",
)
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture and the digest of its file."""

    data: bytes
    digest: str

    @classmethod
    def of(cls, path: Path) -> Picture:
        data = path.read_bytes()
        return cls(data, hashlib.sha256(data).hexdigest())


class Asker:
    """Asks a model, or looks up what it said before."""

    def __init__(self, folder: Path, *, as_sent: bool, fill: bool, at_once: int) -> None:
        self.kept: Any = Cache(str(folder / ("floor-as-sent" if as_sent else "floor")), eviction_policy="none")
        self.as_sent = as_sent
        self.fill = fill
        self.places = asyncio.Semaphore(at_once)
        self.calls = asyncio.Semaphore(at_once)
        self._client: AsyncOpenAI | None = None

    async def ask(self, form: str, text: str, picture: Picture | None = None) -> JsonObject:
        """The JSON object that the model answers `text` with, beside `picture` if there is one."""
        if self.as_sent:
            body = body_of(form, text, sent(picture))
        else:
            seen: list[JsonObject] = [{"type": "image", "sha256": picture.digest}] if picture else []
            body = body_of(form, text, seen)
        key = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        kept = cast("str | None", self.kept.get(key))
        if kept is None:
            kept = made_up(form, key) if self.fill else await self._reply(form, text, picture)
            self.kept.set(key, kept)
        completion = ChatCompletion.model_validate_json(kept)
        return json.loads(completion.choices[0].message.content or "")

    async def _reply(self, form: str, text: str, picture: Picture | None) -> str:
        self._client = self._client or AsyncOpenAI()
        create: Any = self._client.chat.completions.create
        async with self.calls:
            completion: ChatCompletion = await create(**body_of(form, text, sent(picture)))
        return completion.model_dump_json()

    async def read(self, path: Path, options: list[str]) -> JsonObject:
        """What is in the picture, what is unusual, and which options it argues for."""
        async with self.places:
            picture = Picture.of(path)
            asked = [self.ask(form, text, picture) for form, text in QUESTIONS.items()]
            v, t, narration, unusual = await asyncio.gather(*asked)
            said = {**v, **t, **narration, **unusual}
            described, stated = await asyncio.gather(self._combine(said), self._detect(said))
            chosen = await self._choose(described["description"], stated[1], options)
            return {"image": path.name, **said, **described, "statement": stated[1], **chosen}

    async def _combine(self, said: JsonObject) -> JsonObject:
        parts = "\n".join(f"{name}: {json.dumps(value)}" for name, value in said.items())
        return await self.ask("description", f"Write one description of the image.\n{parts}")

    async def _detect(self, said: JsonObject) -> tuple[JsonObject, str]:
        names = cast("list[str]", said["objects"])
        pairs = permutations(names, 2)
        statements: list[str] = [relation.format(*pair) for pair, relation in product(pairs, RELATIONS)]
        text = f"{said['narration']}\nWhich statement holds?\n{numbered(statements)}"
        found: JsonObject = await self.ask("statement", text)
        return found, str(statements[int(found["statement"]) - 1])

    async def _choose(self, description: str, statement: str, options: list[str]) -> JsonObject:
        text = f"{description}\n{statement}\nWhich three interpret the image best?\n{numbered(options)}"
        return await self.ask("answers", text)


def sent(picture: Picture | None) -> list[JsonObject]:
    """`picture` as it is sent, if there is one."""
    if picture is None:
        return []
    url = f"data:image/jpeg;base64,{base64.b64encode(picture.data).decode()}"
    return [{"type": "image_url", "image_url": {"url": url}}]


def body_of(form: str, text: str, seen: list[JsonObject]) -> JsonObject:
    """The body of a request for an answer with the field `form`."""
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": [*seen, {"type": "text", "text": text}]}],
        "response_format": {"type": "json_schema", "json_schema": {"name": form, "schema": schema_of(form)}},
        "temperature": 0,
    }


def numbered(lines: list[str]) -> str:
    """`lines`, numbered from 1."""
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def schema_of(form: str) -> JsonObject:
    """The JSON Schema of an answer with one field."""
    kinds: JsonObject = {"objects": "array", "scene_text": "array", "answers": "array", "statement": "integer"}
    return {"type": "object", "properties": {form: {"type": kinds.get(form, "string")}}, "required": [form]}


def made_up(form: str, key: str) -> str:
    """A reply as the API gives it; what it says follows from `key`."""
    seed = int(key[:8], 16)
    says: JsonObject = {
        "objects": [
            f"{word} {key[place : place + 4]}" for place, word in enumerate(("cup", "cat", "wall", "sky", "car"))
        ],
        "scene_text": [f"SLOGAN {key[:12].upper()}"],
        "statement": seed % 80 + 1,
        "answers": [seed % 18 + 1, (seed + 5) % 18 + 1, (seed + 11) % 18 + 1],
    }
    words = f"A cup stands on a wall before a city at dusk, and its side is laid in bricks ({key[:12]}). "
    message = {"role": "assistant", "content": json.dumps({form: says.get(form, words * 4)})}
    reply = {
        "id": f"chatcmpl-{key[:24]}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": MODEL,
        "choices": [{"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}],
        "usage": {"prompt_tokens": 800, "completion_tokens": 90, "total_tokens": 890},
    }
    return json.dumps(reply)


async def main(folder: Path, *, as_sent: bool, fill: bool, at_once: int) -> None:
    """Print a line for each picture in FOLDER/images, in the order of their names."""
    asker = Asker(folder, as_sent=as_sent, fill=fill, at_once=at_once)
    options = (folder / "options.txt").read_text(encoding="utf-8").splitlines()
    paths = sorted((folder / "images").iterdir())
    for line in await asyncio.gather(*(asker.read(path, options) for path in paths)):
        print(json.dumps(line))


if __name__ == "__main__":
    words = sys.argv
    place = words.index("--at-once") + 1 if "--at-once" in words else 0
    at_once = int(words[place]) if place else AT_ONCE
    start, cpu = time.monotonic(), time.process_time()
    asyncio.run(main(Path(words[1]), as_sent="--as-sent" in words, fill="--fill" in words, at_once=at_once))
    if place:
        used = {"seconds": time.monotonic() - start, "cpu": time.process_time() - cpu}
        print(json.dumps(used), file=sys.stderr)
