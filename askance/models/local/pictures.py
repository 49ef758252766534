"""Pictures of architectures whose whole processor needs torchvision, for videos; pictures alone do not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from askance.models.local.folders import Folder

BARE_KINDS = frozenset({"internvl", "qwen2_5_vl", "qwen2_vl"})

QWEN_MARK, INTERN_MARK = "<|image_pad|>", "<IMG_CONTEXT>"
INTERN_SPAN = ("<img>", "</img>")
"""What InternVL has around the tokens of a picture."""
INTERN_TOKENS = 256
"""Tokens of a tile where the configuration does not say."""


def bare_processor(folder: Folder, pixels: Any, tokenizer: Any) -> Any:
    """The part of a processor that pictures need, around its image processor and its tokenizer."""
    template = tokenizer.chat_template or _template(folder)
    tokenizer.chat_template = template
    if folder.kind == "internvl":
        count = int(folder.config.get("image_seq_length", INTERN_TOKENS))
        return InternPictures(pixels, tokenizer, count)
    return QwenPictures(pixels, tokenizer)


def _template(folder: Folder) -> str | None:
    """The chat template of older processors, which the tokenizer does not read."""
    with suppress(OSError, ValueError):
        found: object = json.loads((folder.path / "chat_template.json").read_text(encoding="utf-8"))
        if isinstance(found, Mapping):
            said = cast("Mapping[str, object]", found).get("chat_template")
            return said if isinstance(said, str) else None
    return None


class QwenPictures:
    """Qwen-VL's: as many placeholders as a picture has merged patches."""

    image_token = QWEN_MARK

    def __init__(self, pixels: Any, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.chat_template = None
        self._pixels = pixels

    def __call__(self, *, text: str, images: Any = None, **how: Any) -> Any:
        more: Any = self._pixels(images=images, return_tensors="pt") if images else {}
        for grid in more.get("image_grid_thw", ()):
            count = int(grid.prod()) // self._pixels.merge_size**2
            text = text.replace(self.image_token, "\0" * count, 1)
        tokens = self.tokenizer(text.replace("\0", self.image_token), **how)
        mark = self.tokenizer.convert_tokens_to_ids(self.image_token)
        return {**tokens, **more, "mm_token_type_ids": (tokens["input_ids"] == mark).long()}


class InternPictures:
    """InternVL's: a picture is cut into tiles, each of as many placeholders."""

    image_token = INTERN_MARK

    def __init__(self, pixels: Any, tokenizer: Any, tokens: int) -> None:
        self.tokenizer = tokenizer
        self.chat_template = None
        self._pixels = pixels
        self._tokens = tokens

    def __call__(self, *, text: str, images: Any = None, **how: Any) -> Any:
        more: Any = self._pixels(images=images, crop_to_patches=True, return_tensors="pt") if images else {}
        begin, end = INTERN_SPAN
        for tiles in more.pop("num_patches", ()):
            text = text.replace(self.image_token, f"{begin}{chr(0) * (self._tokens * int(tiles))}{end}", 1)
        return {**self.tokenizer(text.replace("\0", self.image_token), **how), **more}
