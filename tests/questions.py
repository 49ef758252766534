"""A model that makes questions about captions such as `… stands on …` or `… made …`, and answers them by words."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.servers import Seen

_QUOTED = re.compile(r"<<(\w+) (\w+)\n(.*?)\n\2>>", re.DOTALL)
_VERB = re.compile(r" (?:stands on|made) ")
_GUESSED = {"stands on what?": "a table", "what made": "Somebody"}
"""What is answered without a caption, by what the question has in it."""


def question_by_words(seen: Seen) -> str | None:
    """The reply of an endpoint that makes questions by words; None where it is asked something else."""
    form: dict[str, Any] = seen.json.get("response_format") or {}
    text = seen.json["messages"][-1]["content"]
    if not isinstance(text, str):
        return None
    quoted = {found[1]: found[3] for found in _QUOTED.finditer(text)}
    match form.get("json_schema", {}).get("name"):
        case "answer_candidates":
            return json.dumps({"answers": _VERB.split(quoted["caption"])})
        case "write_question":
            return json.dumps({"question": f"{quoted['caption'].replace(quoted['answer'], 'what')}?"})
        case "answer_from_description":
            question = text.rpartition("Question: ")[2].partition("\n")[0]
            return json.dumps({"answer": _answered(question, quoted["description"])})
        case _:
            return None


def _answered(question: str, description: str) -> str:
    before, _, after = question.rstrip("?").partition("what")
    found = re.fullmatch(f"{re.escape(before)}(.*){re.escape(after)}", description)
    guessed = next((said for words, said in _GUESSED.items() if words in question), "no idea")
    return guessed if found is None else found[1]
