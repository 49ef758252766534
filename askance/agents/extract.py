"""The extraction of an answer that a reply gives in words of its own, where the user asks for it.

A reply that no rule reads may say its answer all the same ("I keep coming back to the brick wall"). An extractor asks
another model which option such a reply chooses. It may say that the reply chooses none, and has to quote the words that
choose; a quote that does not stand in the reply counts as none. Its call is recorded like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.nodes import AnswerField, Node, Unreadable
from askance.nodes.answer import list_schema, note_field, text_list, text_schema
from askance.nodes.closed_set import Extraction, UnreadReply
from askance.nodes.reply import final_text, plain_text
from askance.prompts.fence import oneline

if TYPE_CHECKING:
    from askance.nodes.closed_set import ClosedSet


class AnswerExtractor(Node[UnreadReply, Extraction]):
    """Reads which options a reply chooses that could not be read otherwise."""

    prompt = "extract_answer"
    takes = UnreadReply
    gives = Extraction

    @override
    def variables(self, subject: UnreadReply) -> Mapping[str, Any]:
        return {
            "reply": subject.reply,
            "options": "\n".join(map(oneline, subject.choices.lines)),
            "several": subject.choices.several or None,
        }

    @override
    def fields(self, subject: UnreadReply) -> Sequence[AnswerField]:
        labels = list_schema(text_schema(among=subject.choices.labels), most=len(subject.choices.labels))
        return (
            AnswerField("quote", text_schema(), "quote", partial(_quote, reply=subject.reply)),
            AnswerField("answers", labels, "places", partial(_places, choices=subject.choices)),
        )

    @override
    def answer(self, subject: UnreadReply, **values: Any) -> Extraction:
        places, quote = values["places"], values["quote"]
        if places and not quote:
            raise Unreadable("`quote` must hold words of the reply that choose the answer")
        if len(places) > 1 and not subject.choices.several:
            raise Unreadable("one answer was asked for; where the reply gives several, `answers` must be empty")
        return Extraction(places=places, quote=quote if places else "")

    @override
    def read_text(self, text: str, subject: UnreadReply) -> Extraction:
        lines = dict(_named_line(line) for line in plain_text(text).splitlines() if ":" in line)
        if {"quote", "answers"} - lines.keys():
            raise Unreadable("two lines are asked for, `Quote:` and `Answers:`")
        labels = [] if lines["answers"].casefold().strip(" .") == "none" else lines["answers"].split(",")
        return self.read_json({"quote": lines["quote"], "answers": labels}, subject)


def _named_line(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().casefold(), value.strip()


def _quote(data: Mapping[str, Any], field: str, *, reply: str) -> str:
    """The quote, which has to stand in the reply; case, emphasis and line breaks do not matter."""
    quote = note_field(data, field).strip().strip("\"'“”")
    if _folded(quote) not in _folded(final_text(reply)):
        raise Unreadable(f"`{field}` must be words that stand in the reply, letter by letter")
    return quote


def _places(data: Mapping[str, Any], field: str, *, choices: ClosedSet) -> tuple[int, ...]:
    known = {label.casefold(): place for place, label in enumerate(choices.labels, start=1)}
    labels = [label.strip(" .").casefold() for label in text_list(data, field)]
    if not known.keys() >= {*labels}:
        raise Unreadable(f"`{field}` must hold labels of options, or nothing")
    return tuple(dict.fromkeys(known[label] for label in labels))


def _folded(text: str) -> str:
    return " ".join(plain_text(text).split()).casefold()


extract_answer = AnswerExtractor
