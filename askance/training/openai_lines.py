"""Training sets as JSON lines for fine-tuning at OpenAI: a conversation a line, pictures as data URLs.

What their page "Vision fine-tuning" allows is kept to: pictures in turns of the user alone, at most 10 in a line, each
JPEG, PNG or WebP of 10 MB at most. Fine-tuning there is open only to those who have used it before.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from askance.chat import JsonObject
from askance.errors import UsageError
from askance.evals.run_folder import replacing, writing_to
from askance.images import Image, ImagePolicy, Shown
from askance.training.training_set import (
    ChatExample,
    ChoiceExample,
    PairExample,
    Split,
    TextExample,
    TrainingExample,
    check_splits,
)

MOST_PICTURES = 10
"""Of a line."""
LARGEST_PICTURE = 10_000_000
"""Bytes of a picture."""
_POLICY = ImagePolicy("clean", formats=("jpeg", "png", "webp"))
LEAST_LINES = 10
"""Lines of the training file."""


def write_openai_lines(
    folder: Path, splits: Mapping[Split, Sequence[TrainingExample]]
) -> tuple[dict[Split, int], Counter[str]]:
    """Writes a file for each split, `train.jsonl` and the like.

    Args:
        folder: where; it is made if it is missing.
        splits: conversations, or texts with the text that is to follow.

    Returns:
        How many lines each split has, and how many examples were left out, by reason.

    Raises:
        UsageError: the examples are pictures with texts to choose from, too few are left, or two splits share a group
            or a picture.
        BadImage: a picture cannot be read.
        StoreError: the folder cannot be written.
    """
    check_splits(splits)
    left_out = Counter[str]()
    texts: dict[Split, list[str]] = {}
    for split, examples in splits.items():
        texts[split] = []
        for example in examples:
            line = _line(example)
            if isinstance(line, str):
                left_out[line] += 1
            else:
                texts[split].append(json.dumps(line, ensure_ascii=True))
    if len(texts.get("train", ())) < LEAST_LINES:
        raise UsageError(
            f"OpenAI takes no training file of fewer than {LEAST_LINES} lines, and this one has "
            f"{len(texts.get('train', ()))}.",
            hint="Take more data, or fewer filters.",
        )
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for split, lines in texts.items():
            if lines:
                with replacing(folder / f"{split}.jsonl") as part:
                    part.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {split: len(lines) for split, lines in texts.items() if lines}, left_out


def _line(example: TrainingExample) -> JsonObject | str:
    """The line of an example, or why it has none."""
    match example:
        case TextExample():
            return {"messages": [_turn("user", example.input), _turn("assistant", example.target)]}
        case ChatExample():
            if len(example.images) > MOST_PICTURES:
                return f"more than {MOST_PICTURES} pictures"
            spoken = (*example.prompt, *example.completion)
            if any(turn["role"] != "user" and _has_picture(turn["content"]) for turn in spoken):
                return "a picture in a turn that is not the user's"
            urls = [_data_url(image) for image in example.images]
            if any(url is None for url in urls):
                return f"a picture of more than {LARGEST_PICTURE // 1_000_000} MB"
            pictures = iter(urls)
            return {"messages": [_turn(turn["role"], _content(turn["content"], pictures)) for turn in spoken]}
        case ChoiceExample() | PairExample():
            raise UsageError(
                "OpenAI tunes models that write, and these examples are pictures with texts to choose from.",
                hint="Leave `--to openai` out, or make a set of texts or conversations.",
            )


def _turn(role: str, content: Any) -> JsonObject:
    return {"role": role, "content": content}


def _content(parts: Sequence[Mapping[str, Any]], pictures: Any) -> str | list[JsonObject]:
    if not _has_picture(parts):
        return "".join(part["text"] for part in parts)
    return [
        {"type": "text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "image_url", "image_url": {"url": next(pictures)}}
        for part in parts
    ]


def _has_picture(parts: Sequence[Mapping[str, Any]]) -> bool:
    return any(part["type"] != "text" for part in parts)


def _data_url(image: Image) -> str | None:
    """The picture as it is sent to models, as a data URL; None where it is too large."""
    prepared = Shown(image, _POLICY).prepare()
    if len(prepared.data) > LARGEST_PICTURE:
        return None
    return f"data:{prepared.media_type};base64,{b64encode(prepared.data).decode()}"
