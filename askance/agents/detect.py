"""ŝ: which atypicality statement holds, of all that the objects allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents.answers import read_answer, read_numbers
from askance.agents.questions import StatementQuestion, question_of
from askance.atypicality import Statement, statement_at, statement_texts
from askance.nodes import Node, Result, skipped

if TYPE_CHECKING:
    from collections.abc import Mapping


class StatementDetector(Node[StatementQuestion, Statement]):
    """Chooses the atypicality statement that holds, of every relation over every ordered pair of objects.

    Section 3.2, step ii, of the paper. Takes a `StatementQuestion`. With fewer than two different objects no statement
    is possible: the outcome is `skipped`, no call is made, and what depends on the statement goes on without it.
    """

    prompt = "detect_statement"
    gives = Statement

    @override
    def accept(self, given: Any) -> StatementQuestion:
        return question_of(StatementQuestion, given)

    @override
    def unasked(self, subject: StatementQuestion) -> Result[Statement] | None:
        if statement_texts(subject.objects):
            return None
        seen = ", ".join(subject.objects) or "none"
        return skipped(f"no statement is possible with fewer than two objects (seen: {seen})", absent=True)

    @override
    def variables(self, subject: StatementQuestion) -> Mapping[str, Any]:
        return {"description": subject.description, "options": statement_texts(subject.objects)}

    @override
    def schema(self, subject: StatementQuestion) -> Mapping[str, Any]:
        number = {"type": "integer", "minimum": 1, "maximum": len(statement_texts(subject.objects))}
        return {
            "type": "object",
            "properties": {"statement": number},
            "required": ["statement"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: StatementQuestion) -> Statement:
        options = statement_texts(subject.objects)
        (number,) = read_numbers(data, "statement", len(options), single=True, options=options)
        return statement_at(subject.objects, number - 1)

    @override
    def read_text(self, text: str, subject: StatementQuestion) -> Statement:
        (number,) = read_answer(text, statement_texts(subject.objects), single=True)
        return statement_at(subject.objects, number - 1)


detect_statement = StatementDetector
