"""Pictures and questions for tiny models."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from askance.chat import ChatRequest, ImagePart, Message, ModelId, Part, Sampling, TextPart
from askance.images import Image, Shown

SHARED = "You look closely at an image. Answer with one JSON object and nothing else. "
QUESTIONS = (
    "Name at most five objects that you see, and describe each of them.",
    "What?",
    "What is unusual about this image?",
    "Describe what you see.",
)


def png(width: int, height: int, shift: int) -> Image:
    """A picture of stripes; another `shift`, another picture."""
    rows = b"".join(
        b"\0" + bytes((x * 37 + y * 11 * shift + channel * 90) % 256 for x in range(width) for channel in range(3))
        for y in range(height)
    )
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return Image.from_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks), name=f"stripes {shift}")


PICTURES = (png(40, 30, 1), png(40, 30, 5), png(30, 40, 9))


def asked(text: str, *pictures: Image, system: str = "", **fields: Any) -> ChatRequest:
    """A request for a short answer; `fields` are those of `ChatRequest`."""
    parts: tuple[Part, ...] = (*[ImagePart(Shown(picture)) for picture in pictures], TextPart(text))
    turns = ((Message("system", (TextPart(system),)),) if system else ()) + (Message("user", parts),)
    sampling = fields.pop("sampling", Sampling(temperature=0, max_tokens=12))
    return ChatRequest(model=ModelId("hf", "tiny", name="tiny"), messages=turns, sampling=sampling, **fields)


def everything(*, pictures: bool) -> list[ChatRequest]:
    """Each question about each picture; or without any."""
    if not pictures:
        return [asked(SHARED + question) for question in QUESTIONS]
    return [asked(SHARED + question, picture) for picture in PICTURES for question in QUESTIONS]
