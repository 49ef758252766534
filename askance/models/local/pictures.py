"""Pictures of architectures whose whole processor needs torchvision, which pictures alone do not."""

from __future__ import annotations

from typing import Any

QWEN_KINDS = frozenset({"qwen2_5_vl", "qwen2_vl"})


class QwenPictures:
    """The part of Qwen-VL's processor that pictures need: as many placeholders as a picture has merged patches."""

    image_token = "<|image_pad|>"

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
