"""Atypicality between two objects: four relations, their statement templates, and all statements over some objects.

The relations are those of the taxonomy of Ye et al. that relate two objects. A statement says in one sentence which
relation holds between which objects; there is one template for each relation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import permutations
from types import MappingProxyType
from typing import Literal, get_args

from askance.amounts import shortened
from askance.errors import UsageError

Relation = Literal["TR1", "TR2", "OIO", "OR"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
"""Short codes of the four relations, in their fixed order."""

NAMES: Mapping[Relation, str] = MappingProxyType(
    {
        "TR1": "Texture Replacement 1",
        "TR2": "Texture Replacement 2",
        "OIO": "Object Inside Object",
        "OR": "Object Replacement",
    }
)
"""Long names of the relations."""

DEFINITIONS: Mapping[Relation, str] = MappingProxyType(
    {
        "TR1": "An object keeps its shape but wears the skin or texture of another, and takes over a quality of it.",
        "TR2": "An object is built up from many small ones that do not belong to it, and takes over a quality of them.",
        "OIO": "An object sits, wholly or in part, inside another one where nobody would expect it.",
        "OR": "An object stands where another one usually stands, and acts in its role.",
    }
)
"""What each relation means, in one sentence."""

TEMPLATES: Mapping[Relation, str] = MappingProxyType(
    {
        "TR1": "The surface of {primary} mimics the texture of {secondary}, while retaining its original structure.",
        "TR2": "{primary} appears to be composed of numerous, smaller instances of {secondary}, altering its texture.",
        "OIO": "{primary} is visibly located within {secondary}, in an unconventional manner.",
        "OR": "{primary} completely replaces {secondary} in its usual context, assuming its function or position.",
    }
)
"""The statement of each relation.

`{primary}` is the object with the new texture (TR1, TR2), the one inside (OIO) or the one that stands in (OR);
`{secondary}` is the source of the texture, the one outside, or the one expected.
"""


@dataclass(frozen=True, slots=True)
class Statement:
    """One relation between two objects.

    Names are kept as written, without surrounding blanks. So `parse` restores the statement from its text, with one
    exception: a name that holds the words between the two names in the template makes the text ambiguous, and `parse`
    says so instead of guessing.

    Raises:
        UsageError: an unknown relation, or a name without a visible character.
    """

    relation: Relation
    primary: str
    secondary: str

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS:
            raise UsageError(f"{self.relation!r} is no relation.", hint=f"The four are: {', '.join(RELATIONS)}.")
        for role in ("primary", "secondary"):
            name: str = getattr(self, role).strip()
            if not name:
                raise UsageError(f"The {role} object of a statement has no name.", hint="Name both objects.")
            object.__setattr__(self, role, name)

    @property
    def text(self) -> str:
        """The statement as a sentence."""
        return TEMPLATES[self.relation].format(primary=self.primary, secondary=self.secondary)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from html import escape  # for notebooks alone: replays do without its tables

        return f'<p title="{NAMES[self.relation]}"><code>{self.relation}</code> <bdi>{escape(self.text)}</bdi></p>'

    def canonical(self) -> dict[str, str]:
        """Relation, names and text as JSON values."""
        return {"relation": self.relation, "primary": self.primary, "secondary": self.secondary, "text": self.text}

    @classmethod
    def parse(cls, text: str, *, objects: Iterable[str] = ()) -> Statement:
        """Read a statement back from its text.

        A statement whose text is exactly `text` is preferred. Where there is none, the words of the template may differ
        in case, blanks, commas and the final period. Of several readings, those whose two names are both among
        `objects` are preferred; names are compared as in `all_statements`.

        Args:
            text: One sentence, and nothing else.
            objects: Names that are expected, such as those of the detected objects.

        Raises:
            UsageError: `text` follows none of the templates, or can be read in more than one way.
        """
        text = text.strip()
        readings = list(dict.fromkeys(each for pattern in _patterns() for each in pattern.readings(text)))
        if len(readings) > 1:
            readings = [reading for reading in readings if reading.text == text] or readings
        if len(readings) > 1:
            known = {_normalized(name) for name in objects}
            readings = [s for s in readings if {_normalized(s.primary), _normalized(s.secondary)} <= known] or readings
        if len(readings) == 1:
            return readings[0]
        if readings:
            ways = " or ".join(f"{s.primary!r} and {s.secondary!r}" for s in readings[:3])
            raise UsageError(
                f"{shortened(text)!r} can be read in {len(readings)} ways: as {ways}.",
                hint="Say which objects there are, or rename one whose name holds words of the template.",
            )
        raise UsageError(
            f"{shortened(text)!r} is no statement of atypicality.",
            hint=f"A statement reads like: {Statement('OIO', 'cat', 'cup').text}",
        )


def all_statements(objects: Sequence[str]) -> tuple[Statement, ...]:
    """Every relation over every ordered pair of distinct objects.

    Names that differ only in case, blanks, Unicode form or a leading article are one object, spelled as first seen;
    names without a visible character are left out. `n` objects give `4 n (n - 1)` statements: pairs in the order of
    the objects, the relations of each pair in the order of `RELATIONS`. Fewer than two objects give none.

    Raises:
        UsageError: `objects` is one text and not a list of names.
    """
    if isinstance(objects, str):
        raise UsageError(
            f"{shortened(objects)!r} is one text, not a list of objects.", hint="Put the names into a list."
        )
    pairs = permutations(distinct(objects), 2)
    return tuple(Statement(relation, primary, secondary) for primary, secondary in pairs for relation in RELATIONS)


@lru_cache(maxsize=256)
def statement_texts(objects: tuple[str, ...]) -> tuple[str, ...]:
    """The texts of `all_statements(objects)`, without making the statements.

    They are cached, because those of one picture are used several times: counted, listed and parsed.
    """
    pairs = permutations([name.strip() for name in distinct(objects)], 2)
    return tuple(
        [
            f"{head}{primary}{middle}{secondary}{tail}"
            for primary, secondary in pairs
            for head, middle, tail in _TEMPLATE_WORDS
        ]
    )


def statement_at(objects: Sequence[str], place: int) -> Statement:
    """`all_statements(objects)[place]`, without making the others."""
    pair, relation = divmod(place, len(RELATIONS))
    return Statement(RELATIONS[relation], *[*permutations(distinct(objects), 2)][pair])


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """`names` in their order, each object once and spelled as first seen; blank names are left out."""
    seen: dict[str, str] = {}
    for name in names:
        if folded := _normalized(name):
            seen.setdefault(folded, name)
    return tuple(seen.values())


@lru_cache(maxsize=1024)
def _normalized(name: str) -> str:
    """`name` in the form in which names are compared."""
    words = unicodedata.normalize("NFC", name).casefold().split()
    return " ".join(words[1:] if len(words) > 1 and words[0] in {"a", "an", "the"} else words)


def _lenient_pattern(words: str) -> str:
    """A pattern for `words` in which blanks and commas may differ.

    A match may begin only at the start of a run of blanks, so that a search takes linear time.
    """
    parts = (re.escape(part) for part in re.split(r"[\s,]+", words.strip(" ,.")))
    inner = r"(?:(?<!\s)\s*+,)?\s++".join(parts)
    before = (
        r"(?<!\s)(?:\s*+,\s*+|\s++)" if words.startswith(",") else r"(?<!\s)\s++" if words.startswith(" ") else r"\A"
    )
    after = r"(?:(?<!\s)\s*+\.)?\Z" if words.endswith(".") else r"\s++"
    return before + inner + after


def _template_words(relation: Relation) -> tuple[str, str, str]:
    """The words of the template before, between and after the two names."""
    head, rest = TEMPLATES[relation].split("{primary}")
    middle, tail = rest.split("{secondary}")
    return head, middle, tail


_TEMPLATE_WORDS: tuple[tuple[str, str, str], ...] = tuple(_template_words(relation) for relation in RELATIONS)


@dataclass(frozen=True, slots=True)
class _TemplatePattern:
    """Patterns for the words of one template around its two names."""

    relation: Relation
    head: re.Pattern[str]
    middle: re.Pattern[str]
    tail: re.Pattern[str]

    @classmethod
    def of(cls, relation: Relation) -> _TemplatePattern:
        head, middle, tail = _template_words(relation)
        # The middle is matched in a lookahead, because two matches may share a blank.
        patterns = (
            _lenient_pattern(head) if head else r"\A",
            f"(?=({_lenient_pattern(middle)}))",
            _lenient_pattern(tail),
        )
        return cls(relation, *(re.compile(pattern, re.IGNORECASE) for pattern in patterns))

    def readings(self, text: str) -> Iterator[Statement]:
        """Every statement of this relation that `text` can stand for."""
        head, tail = self.head.match(text), self.tail.search(text)
        if head is None or tail is None:
            return
        for middle in self.middle.finditer(text, head.end(), tail.start()):
            primary, secondary = text[head.end() : middle.start(1)], text[middle.end(1) : tail.start()]
            if primary.strip() and secondary.strip():
                yield Statement(self.relation, primary, secondary)


@cache
def _patterns() -> tuple[_TemplatePattern, ...]:
    """The patterns of all relations, compiled at the first use, since that takes long and is seldom needed."""
    return tuple(_TemplatePattern.of(relation) for relation in RELATIONS)
