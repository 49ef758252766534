"""Hard negatives: from a true statement to one that looks true and is not, one kind a call.

The kinds are those of *Benchmarking VLMs' Reasoning About Persuasive Atypical Images*: five for the action-reason
statements of ads (section 4, Listings 17 to 21), four for explanations of unusual images (section 7.3). The fifth of
those, explanations of other images, asks no model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from typing_extensions import Unpack, override

from askance.errors import UsageError
from askance.nodes import AnswerField, Node, NodeOptions, TypedAnswer, Unreadable
from askance.nodes.answer import Texts, TypedInput, list_schema, schema_of, text_schema
from askance.nodes.reply import (
    answer_lines,
    final_text,
    is_refusal,
    json_object,
    plain_text,
    strip_markup,
    strip_quotes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from askance.models import ModelLike

AdKind: TypeAlias = Literal["action", "reason", "adjective", "object", "statement"]
ExplanationKind: TypeAlias = Literal["verb", "object", "adjective", "causal", "random"]
NegativeKind: TypeAlias = Literal["action", "reason", "adjective", "object", "statement", "verb", "causal", "random"]
Domain: TypeAlias = Literal["ads", "explanations"]
"""What the statements are: action-reasons of ads, or explanations of what is unusual in an image."""

AD_KINDS: tuple[AdKind, ...] = get_args(AdKind)
EXPLANATION_KINDS: tuple[ExplanationKind, ...] = get_args(ExplanationKind)
KINDS: Mapping[Domain, tuple[NegativeKind, ...]] = {"ads": AD_KINDS, "explanations": EXPLANATION_KINDS}

LONGEST = 2000
"""Characters of a negative at most."""

_PROMPTS: Mapping[Domain, str] = {"ads": "negative", "explanations": "negative_explanation"}
_KIND_WORDS = (
    "generated hard negative negatives incorrect wrong false new statement statements option interpretation explanation"
)
_NOUNS = frozenset([*_KIND_WORDS.split(), "modified", "changed"])
_TRUE = re.compile(
    r"\W*(?:correct|true|original|right|given) (?:statement|interpretation|explanation|option)s?\W*:", re.IGNORECASE
)
"""Begins a line that repeats what is true."""
_QUOTED = re.compile(r"\"([^\"]+)\"(?:\s+-.*|[.]?)|[^\"]*\bis:? \"([^\"]+)\"[.]?")
_ASIDE = re.compile(r"(.*\S) \([^()]*\)")
_NOTHING = re.compile(r"none|n/a|there (?:is|are) no\b.*|.*\?|\W*", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_ITEM = {"replaced": text_schema(), "replacement": text_schema(), "statement": text_schema(least=1)}
"""The fields of a negative in the JSON form."""


class NegativeQuestion(TypedInput):
    """A true statement from which negatives are made."""

    statement: str
    others: Texts = ()
    """Other true statements about the image: none of them may be a negative."""


class Negative(TypedAnswer):
    """A statement that is meant to be wrong, and what the model says it changed; both are untrusted."""

    text: str
    replaced: str | None = None
    """Words of the true statement in whose place others stand; empty where words were only added, None if not said."""
    replacement: str | None = None
    """Words of the negative in their place; None if not said."""

    def __str__(self) -> str:
        return self.text


class Negatives(TypedAnswer):
    """The negatives of one call, each another text."""

    items: tuple[Negative, ...]

    def __str__(self) -> str:
        return "\n".join(item.text for item in self.items)


class NegativeWriter(Node[NegativeQuestion, Negatives]):
    """Writes hard negatives of one kind for a true statement.

    Takes a `NegativeQuestion`. A reply that repeats a true statement, but for case, punctuation and blanks, cannot be
    read: it is asked again once and then `invalid`. Another negative of the same statement is another draw:
    `with use_draw(n): …`, or `count` of them in one call.

    Args:
        kind: what is changed.
        domain: what the statements are.
        count: how many negatives a call gives.

    Raises:
        UsageError: the domain has no such kind, or it is `random`, which asks no model.
    """

    prompt = "negative"
    takes = NegativeQuestion
    gives = Negatives

    def __init__(
        self,
        model: ModelLike,
        *,
        kind: NegativeKind,
        domain: Domain = "ads",
        count: int = 1,
        **options: Unpack[NodeOptions],
    ) -> None:
        kinds = [each for each in KINDS[domain] if each != "random"]
        if kind not in kinds:
            raise UsageError(
                f"No model is asked for negatives of the kind {kind!r} for {domain}.",
                hint=f"Kinds: {', '.join(kinds)}.",
            )
        if count < 1:
            raise UsageError(f"{count!r} negatives cannot be written.", hint="Give at least 1.")
        self.kind: NegativeKind = kind
        self.domain: Domain = domain
        self.count = count
        options["prompt"] = options.get("prompt") or f"{_PROMPTS[domain]}_{kind}"
        super().__init__(model, **options)

    @override
    def accept(self, inputs: Any) -> NegativeQuestion:
        question = super().accept({"statement": inputs} if isinstance(inputs, str) else inputs)
        if not question.statement.strip():
            raise UsageError("The true statement is blank.", hint="Give the text that negatives are made from.")
        return question

    @override
    def variables(self, subject: NegativeQuestion) -> Mapping[str, Any]:
        return {"statement": subject.statement, "count": self.count}

    @override
    def fields(self, subject: NegativeQuestion) -> Sequence[AnswerField]:
        item = schema_of(AnswerField(name, schema) for name, schema in _ITEM.items())

        def read(data: Mapping[str, Any], field: str) -> tuple[Negative, ...]:
            value: Any = data.get(field)
            items = cast("list[Any]", value) if isinstance(value, list) else []
            if not items or not all(isinstance(item, dict) for item in items):
                raise Unreadable(f"`{field}` must be a list of objects")
            return self._checked([_negative(item) for item in items], subject)

        negatives = list_schema(item, least=self.count, most=self.count)
        return (AnswerField("negatives", negatives, "items", read),)

    @override
    def read_text(self, text: str, subject: NegativeQuestion) -> Negatives:
        if any(map(is_refusal, final_text(text).splitlines())):
            raise Unreadable(f"0 negatives are given; write exactly {self.count}")
        with suppress(Unreadable):
            value: Any = json_object(text, ("negatives",)).get("negatives")
            if isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value)):
                return self._negatives([strip_markup(item) for item in cast("list[str]", value)], subject)
        candidates = "\n".join(line for line in text.splitlines() if not _TRUE.match(plain_text(line)))
        lines = [self._negative_in(line, subject) for line in answer_lines(candidates, _NOUNS, sentences=True)]
        return self._negatives([line for line in lines if not _NOTHING.fullmatch(line)], subject)

    def _negatives(self, texts: list[str], subject: NegativeQuestion) -> Negatives:
        return Negatives(items=self._checked([Negative(text=text) for text in texts], subject))

    @staticmethod
    def _negative_in(line: str, subject: NegativeQuestion) -> str:
        """A line of a reply without what is remarked on the negative in it."""
        if (quoted := _QUOTED.fullmatch(line)) is not None:
            return quoted[1] or quoted[2]
        aside = None if "(" in subject.statement else _ASIDE.fullmatch(line)
        return aside[1] if aside else line

    def _checked(self, items: list[Negative], subject: NegativeQuestion) -> tuple[Negative, ...]:
        """The negatives, as many as were asked for, none of them true or said twice.

        Raises:
            Unreadable: they are not.
        """
        if len(items) != self.count:
            raise Unreadable(f"{len(items)} negatives are given; write exactly {self.count}")
        taken = dict.fromkeys(map(normal, subject.others), "repeats another statement that is true of the image")
        taken[normal(subject.statement)] = "is the true statement unchanged"
        for item in items:
            folded = normal(item.text)
            if not folded:
                raise Unreadable("a negative is empty")
            if len(item.text) > LONGEST:
                raise Unreadable(f"a negative has more than {LONGEST} characters")
            if folded in taken:
                raise Unreadable(f"a negative {taken[folded]}; write one that is wrong, and in other words")
            taken[folded] = "is given twice"
        return tuple(items)


def _negative(item: Mapping[str, Any]) -> Negative:
    texts = {name: item.get(name) for name in _ITEM}
    if not all(isinstance(text, str) for text in texts.values()):
        raise Unreadable("`statement`, `replaced` and `replacement` must be texts")
    words = {name: " ".join(text.split()) for name, text in cast("dict[str, str]", texts).items()}
    return Negative(text=strip_quotes(words["statement"]), replaced=words["replaced"], replacement=words["replacement"])


def normal(text: str) -> str:
    """A text as its words in lower case: texts that differ only in case, punctuation and blanks give the same.

    A text without words loses only the blanks around it.
    """
    return " ".join(words(text)) or text.strip()


def words(text: str) -> list[str]:
    """The words and numbers of a text in order, in lower case, with `'` for every apostrophe."""
    return [word.replace("’", "'") for word in _WORD.findall(text.casefold())]


def kinds_of(domain: Domain, named: Iterable[str] | None = None) -> tuple[NegativeKind, ...]:
    """The kinds in `named`, in the order of the domain; all of its kinds for None.

    Raises:
        UsageError: the domain does not have one of them, or none is named.
    """
    if named is None:
        return KINDS[domain]
    wanted = {*named}
    unknown = sorted(wanted - {*KINDS[domain]})
    if unknown or not wanted:
        told = f"{unknown[0]!r} is no kind of negative for {domain}" if unknown else "No kind of negative is named"
        raise UsageError(f"{told}.", hint=f"Kinds: {', '.join(KINDS[domain])}.")
    return tuple(kind for kind in KINDS[domain] if kind in wanted)


write_negative = NegativeWriter
