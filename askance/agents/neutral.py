"""Text of strangers made harmless for what stands between a prompt and a model.

A fence tells the model where quoted words begin and end. It does not stop a server whose tokenizer takes `<|im_end|>`
within a message for the end of the message. So where a text decides a verdict, a blank is put into everything that a
chat template, or a hasty reader of fences, could take for a mark of its own. Words are left as they are.
"""

from __future__ import annotations

import re
from typing import Final

_ANGLES: Final = re.compile(r"<(?=[|\uff5c/<A-Za-z_][^\s<>]{0,60}>)")
"""Begins what looks like a mark: `<|im_end|>`, `</s>`, `<<SYS>>`, `<end_of_turn>`."""
_BRACKETS: Final = re.compile(r"\[(?=/?[A-Z_]{3,30}\])")
"""Likewise `[INST]`, `[/INST]`, `[SYSTEM_PROMPT]`."""
_OPENED: Final = re.compile(r"<<(?=[a-z])")
_CLOSED: Final = re.compile(r"(?<=[0-9a-fA-F])>>")
"""The lines of a fence, be they forged or not."""


def neutral(text: str) -> str:
    """`text` without marks of chat templates and of fences: each has a blank in it."""
    text = _BRACKETS.sub("[ ", _ANGLES.sub("< ", text))
    return _CLOSED.sub("> >", _OPENED.sub("< <", text))
