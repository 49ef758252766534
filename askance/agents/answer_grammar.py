"""Which options a reply chooses: one grammar for every reply that chooses among options.

First Markdown is removed from the reply. Then each word becomes one letter for its role: `N` for a number that can be
an option's, `T` for an option's name or text, `A` for a word such as "answer", `!` for a word that denies, and so on
(see `_PARTS`). The grammar is a few patterns over these letters. They find *statements*: each names options and
chooses, denies or only mentions them. These rules decide:

- The last final answer counts. An answer that is taken back before another is given does not.
- A reply cannot be read if it has different final answers, an index beside the text of another option, or an answer
  that is revised afterwards: a wrong reading is worse than none.
- A denied option ("3 is wrong", "TR1: No") is not an answer. "3 or 5" are two answers, so none where one is asked for.
- Numbers that count from 1 beside the texts of other options are ranks.

Digits are not answers inside an option ("buy 7up"), inside reasoning, and before what they count ("3 cups").

Where the options were shown with letters, a capital letter stands for an option and a number does not. A letter that is
a word ("A man", "I think"), or a part of one ("T.V.", "A-list", "B&B"), is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast

from askance.nodes import Unreadable
from askance.nodes.reply import final_text, json_list, plain_text
from askance.prompts.fence import LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NUMBER_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_NUMBERS = _NUMBER_WORDS.split()
_ORDINAL_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
)
_ORDINALS = _ORDINAL_WORDS.split()

_PARTS: Mapping[str, str] = {
    # What an answer is called, and what an option is called.
    "A": "answer answers response result output verdict index indices indexes choice choices selection "
    "selections classification conclusion solution picks judgement judgment 答案 答案是 答案为 答え 回答 "
    "antwort réponse respuesta risposta "
    "resposta ответ",
    "O": "option options statement statements number numbers caption captions explanation explanations "
    "category categories label labels class classes interpretation interpretations",
    "F": "final finally",
    # What joins an option to what is said of it.
    "B": "do does did look looks appear appears is are be was were it's that's they're i'd would seem seems",
    "C": "see detect identify observe find assign classify choose chose choosing chosen select selected "
    "selecting pick picked say think believe guess go going prefer recommend return shows show contains exhibits "
    "displays has have depicts demonstrates features presents involves belongs falls classified",
    "D": "fit fits match matches describe describes interpret interprets capture captures represent "
    "represents explain explains work works apply applies convey conveys stand stands",
    "f": "respectively the a an with only just for as to on my these those this both following i me you we "
    "it image picture maybe perhaps possibly definitely clearly certainly surely indeed undoubtedly obviously",
    "R": "out from among because since due given reason reasons that which why where while",
    "S": "so therefore thus hence",
    # What is said of it.
    "+": "best correct right true most good better likely likeliest strongest suitable appropriate "
    "accurate present top valid applicable",
    "Y": "yes ✅ ✔ ✓ ☑ 👍",
    "X": "❌ ✗ ✘ ✖ × 🚫 👎 ☒",
    "!": "no not never neither nor none wrong incorrect incorrectly false invalid without "
    "except excluding exclude excluded reject rejected eliminate eliminated ruled discard discarded "
    "worst least unlikely unrelated irrelevant inapplicable absent other others remaining rest over "
    "bad poor weak fail fails lack lacks ignore cannot",
    "V": "actually wait correction sorry oops hmm instead reconsider reconsidering reconsidered scratch "
    "rather mean meant change changed changing revise revised thought thoughts mistake",
    "~": "if unless whether suppose assuming example eg format initial initially tentative tentatively "
    "preliminary draft candidate candidates previous previously between compare comparing consider "
    "considering",
    # What joins options.
    ",": ", ; & + / > | → and then plus also followed by well but however",
    "|": "or alternatively otherwise either",
    "-": "- • · ◦ ‣ ▪ ● through thru",
    ":": ": =",
    ".": ". !",
    "?": "?",
    "(": "(",
    ")": ")",
    "": "\" ' [ ] { } < $ # ^ ~ \\ _",  # signs without a part of their own
}
_PART_OF = {word: part for part, words in _PARTS.items() for word in words.split()}
_LETTERED_PARTS = {
    **dict.fromkeys(("funnier", "funniest", "stronger", "wins"), "+"),
    **dict.fromkeys(("doubt", "doubtful"), "!"),
    **dict.fromkeys(("winner", "ans"), "A"),
    **dict.fromkeys(("lean", "vote"), "C"),
    **dict.fromkeys(("overall", "towards"), "f"),
    **dict.fromkeys(("considering", "comparing"), "w"),
    **dict.fromkeys(
        (
            "capture",
            "captures",
            "convey",
            "conveys",
            "describe",
            "describes",
            "explain",
            "explains",
            "interpret",
            "interprets",
            "represent",
            "represents",
            "stand",
            "stands",
        ),
        "w",
    ),
    "form": "~",
    "letter": "O",
}
"""Words that are read only where options have letters."""

_TOKEN = re.compile(r"\n|\d+(?:\.\d+)?|[^\W\d_]+(?:'[^\W\d_]+)*|[^\w\s]|_")
_MATHS = re.compile(
    r"(?P<answer>\\f?boxed\b|<\|begin_of_box\|>|<(?:final_)?answer>)|<\|end_of_box\|>|\\[a-z]+\b|\\[^a-z\n]",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"\d{1,6} ?/ ?\d{1,6}(?! ?/ ?\d)")
_OUT_OF = re.compile(r"\d+ out of (?:the |all |every )?\w+ ([^\W\d_]+)")
_CHECKED = re.compile(r"\[([xX✓✔ ])\](?!\()")
_ROW = re.compile(r"^[ \t]*\|.*$", re.MULTILINE)
_SAME: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), same)
    for pattern, same in (
        (r"(?:^|(?<=[.!?)] ))[^\w\n]{0,9}(?:edit(?:ed)?|update|p\.? ?s\.?|addendum|erratum)\s?\d?\s?:", "Correction:"),
        (r"\bi\. ?e\.|\b(?:namely|meaning)\b(?=[,:]? ?\")", "that is"),
        (r"^nothing\b", "never"),
        (r"[,(]? ?\bbest (?:one )?first\b\)?", ""),
        (
            (
                r"^(\W{0,3})primary((?: \w+)?:[^\n]{1,100}?[\n,;]\s{0,3}\W{0,3})"
                r"secondary(?=(?: \w+)?:(?! ?(?:none|n/?a)\b))"
            ),
            r"\1first\2second",
        ),
        (
            r"(?<=second)((?: \w+)?:[^\n]{1,100}?[\n,;]\s{0,3}\W{0,3})tertiary(?=(?: \w+)?:(?! ?(?:none|n/?a)\b))",
            r"\1third",
        ),
        (r"(?<= )is an? (?:\w+ )?(?:example|instance|case) of\b(?! (?:the|a) for)", "is"),
        (r"\bdescribe (?=(?:this|the|it)\b[^.,\n]{0,20} as\b)", "classify "),
        (r"(?<=, )as (?=[a-z])", "because "),
        (r"(?<=\bbe )([^.,\n]{1,80}), ?(?:or |and |but )?(?:it )?(?:could|may|might) (?:also )?be\b", r"\1 or"),
    )
)
"""Phrases, and the phrase with the same meaning that the grammar knows."""
_LETTERED = re.compile(r"\s*\(?([A-Z])[).:]\s+(?=\S)")


def _in_one_way(text: str) -> str:
    """`text` with its phrases replaced by those that the grammar knows."""
    for pattern, same in _SAME:
        text = pattern.sub(same, text)
    return text


@dataclass(frozen=True, slots=True)
class Alternatives:
    """What a reply may choose from. Each alternative has one or more names; places count from 1.

    Args:
        names: the names of each alternative; case and punctuation do not matter.
        numbered: whether a number chooses the alternative at that place; otherwise numbers are ranks.
        lettered: whether they were shown with letters, A for the first; a letter then chooses, and a number does not.
    """

    names: tuple[tuple[str, ...], ...]
    numbered: bool = True
    lettered: bool = False
    _words: dict[str, Any] = field(init=False, repr=False, compare=False)
    """The words of all names as a tree; the empty word leads to the place of the name that ends there."""
    _letters: dict[str, int] = field(init=False, repr=False, compare=False)
    _colons: frozenset[int] = field(init=False, repr=False, compare=False)
    """The alternatives that end with a colon of their own."""

    def __post_init__(self) -> None:
        words: dict[Any, Any] = {}
        letters: dict[str, int] = {}
        if self.lettered:
            letters = {letter: place for place, letter in enumerate(LETTERS[: len(self.names)], start=1)}
        for place, names in enumerate(self.names, start=1):
            for name in names:
                if self.lettered and name.strip() in letters:
                    continue  # a letter is an index
                if self.numbered and (lettered := _LETTERED.match(name)) and ord(lettered[1]) - 64 == place:
                    letters[lettered[1]] = place
                    _plant(words, _words_of(name[lettered.end() :]), place)
                named = _words_of(name)
                is_index = self.numbered and len(named) == 1 and (named[0].isdecimal() or named[0] in _NUMBERS)
                if not is_index:
                    _plant(words, named, place)
                if not is_index or self.lettered:
                    _plant(words, _words_of(_NEGATED.sub(" not", _in_one_way(plain_text(name)))), place)
        colons = frozenset(
            place for place, names in enumerate(self.names, start=1) if any(n.endswith(":") for n in names)
        )
        object.__setattr__(self, "_colons", colons)
        object.__setattr__(self, "_words", words)
        object.__setattr__(self, "_letters", letters if len(letters) == len(self.names) else {})

    def named(self, tokens: Sequence[str], begin: int) -> tuple[int, int] | None:
        """The alternative that `tokens` name from `begin` on, and the token after its name; the longest name wins."""
        node: dict[Any, Any] = self._words
        found: tuple[int, int] | None = None
        place = begin
        while place < len(tokens):
            token = tokens[place]
            if token[0].isalnum() or place == begin:
                after = node.get(token)
                if after is None:
                    break
                node = after
                if "" in node:
                    colon = node[""] in self._colons and tokens[place + 1 : place + 2] == [":"]
                    found = node[""], place + 1 + colon
            elif token == "\n":
                break
            place += 1
        return found

    def place_of(self, letter: str) -> int | None:
        """The alternative of a letter, where the alternatives have letters."""
        return self._letters.get(letter)

    def sign(self, place: int) -> str:
        """What the alternative at a place is called by: its letter or its number."""
        return LETTERS[place - 1] if self.lettered and place <= len(LETTERS) else str(place)


def _plant(tree: dict[Any, Any], words: Sequence[str], place: int) -> None:
    if not words:
        return
    for word in words:
        tree = tree.setdefault(word, {})
    tree.setdefault("", place)


def _words_of(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(plain_text(text).casefold()) if token[0].isalnum()]


@lru_cache(maxsize=64)
def _options(options: tuple[str, ...], lettered: bool = False) -> Alternatives:  # noqa: FBT001, FBT002  # a key
    """Made once: many pictures have the same options."""
    return Alternatives(tuple((option,) for option in options), lettered=lettered)


StatementRole = Literal["final", "marked", "stated", "listed", "denied", "mentioned"]
"""How firmly a statement chooses: "Final answer: 3", "Answer: 3", "I choose 3", "3". The last two choose nothing."""


@dataclass(slots=True)
class _Item:
    """One option that a reply names: by its number, by its name, or by both."""

    number: int | None
    other: int | None
    """The alternative whose name it is, or the number that stands behind the first, as in `1. 5`."""
    score: float | None = None
    """What the reply says of it: 0 for no, 1 for yes, or a number between; None where it says nothing."""
    described: bool = False
    """Whether a remark follows it."""
    doubled: bool = False
    """Whether another name of it stands beside it."""
    others: int = 0
    """For the first item of a list: how many items stand behind an "or", or 2 where something else does."""

    @property
    def form(self) -> tuple[bool, bool, bool]:
        return self.number is None, self.other is None, self.score is None


@dataclass(slots=True, eq=False)
class _Statement:
    """Options that a reply names together, and whether it chooses them."""

    role: StatementRole
    items: list[_Item]
    revises: bool = False
    """Whether it begins like a change of mind."""
    retracted: bool = False
    """Whether it is taken back afterwards."""

    @property
    def contradicts(self) -> bool:
        """Whether it counts as another answer where it follows an answer."""
        if self.revises:
            return self.role != "denied" and not _denied(self)
        return self.role not in {"denied", "mentioned"} and all(item.score is None for item in self.items)


def read_answer(text: str, options: Sequence[str], *, single: bool = False, lettered: bool = False) -> tuple[int, ...]:
    """The numbers of the options that `text` chooses, from 1, best first, each once.

    A reply may name options by number, by text, or by letter where each option begins with its letter (`A. …`). Ranges
    (`3-5`) and number words (`three`) are read.

    Args:
        text: the model's reply.
        options: the options as they were shown, so that their own text is not read as an answer.
        single: whether exactly one number was asked for.
        lettered: whether the prompt put letters before the options. Then they are named by letter or text alone.

    Raises:
        Unreadable: no answer, different answers, a number beyond the options, or several where one was asked for.
    """
    numbers = choices(text, _options(tuple(options), lettered), single=single)
    if not numbers:
        form = "`Answer: X`, with X a letter," if lettered else "`Answer: 3, 7`"
        raise Unreadable(f"no answer of the form {form} is given")
    return check_numbers(numbers, len(options), single=single)


def read_numbers(
    data: Mapping[str, Any], field: str, count: int, *, single: bool = False, options: Sequence[str] = ()
) -> tuple[int, ...]:
    """The chosen numbers in field `field` of a JSON reply, from 1 to `count`; a number may stand in a text (`"3"`).

    Args:
        data: the reply.
        field: which field of it holds the answer.
        count: how many options there are.
        single: whether exactly one number was asked for.
        options: the options as they were shown, where the field may repeat them.

    Raises:
        Unreadable: as `read_answer`.
    """
    found: Any = data.get(field)
    numbers: list[Any] = found if isinstance(found, list) else [found]  # pyright: ignore[reportUnknownVariableType]
    if not numbers:
        raise Unreadable(f"`{field}` is empty; choose at least one option")
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        alternatives = _options(tuple(options)) if options else Alternatives(((),) * count)
        items = [as_lines(number) for number in numbers]
        said = all(names_one(item, alternatives) for item in items)
        numbers = [*choices("\n".join(items), alternatives, single=single)] if said else []
        if not numbers:
            raise Unreadable(f"`{field}` must hold numbers of options, from 1 to {count}")
    return check_numbers(numbers, count, single=single)


def read_letters(
    data: Mapping[str, Any], field: str, options: Sequence[str], *, single: bool = False
) -> tuple[int, ...]:
    """The numbers of the options that field `field` of a JSON reply names by letter or text, from 1.

    Args:
        data: the reply.
        field: which field of it holds the answer: a text, or a list of texts.
        options: the options, which the prompt put letters before.
        single: whether exactly one was asked for.

    Raises:
        Unreadable: as `read_answer`.
    """
    found: Any = data.get(field)
    items: list[Any] = found if isinstance(found, list) else [found]  # pyright: ignore[reportUnknownVariableType]
    alternatives = _options(tuple(options), lettered=True)
    numbers: Sequence[int] = ()
    if items and all(isinstance(item, str) and names_one(item, alternatives) for item in items):
        numbers = choices("\n".join(item.strip().removesuffix(":") for item in items), alternatives, single=single)
    if not numbers:
        raise Unreadable(f"`{field}` must be the letter of an option, from A to {alternatives.sign(len(options))}")
    return check_numbers(numbers, len(options), single=single)


def check_numbers(numbers: Sequence[int], count: int, *, single: bool) -> tuple[int, ...]:
    """`numbers` in order, each once.

    Raises:
        Unreadable: one is beyond 1 … `count`, or there are several where `single` is asked for.
    """
    beyond = [number for number in numbers if not 1 <= number <= count]
    if beyond:
        raise Unreadable(f"{', '.join(map(str, beyond))} is not among the options 1 to {count}")
    chosen = tuple(dict.fromkeys(numbers))
    if single and len(chosen) > 1:
        raise Unreadable(f"{len(chosen)} options are chosen; choose exactly one")
    return chosen


def as_lines(value: Any) -> str:
    """A value of JSON as a text reply would give it: items of a list on lines, `name: value` for fields."""
    if isinstance(value, dict):
        return "\n".join(f"{name}: {_word(each)}" for name, each in cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        return "\n".join(map(as_lines, cast("list[Any]", value)))
    return _word(value)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (dict, list)):
        return ", ".join(as_lines(cast("list[Any]", value)).splitlines())
    return "" if value is None else str(value)


def choices(
    text: str, alternatives: Alternatives, *, single: bool = False, apart: bool = True, otherwise: int | None = None
) -> tuple[int, ...]:
    """The places of the alternatives that `text` chooses, in its order; none where it chooses none.

    Args:
        text: the model's reply.
        alternatives: what it may choose from.
        single: whether one is asked for; answers that follow each other then contradict, and are not a list.
        apart: whether each of several answers may have its own "Answer:".
        otherwise: the place that is chosen where the reply denies every other one.

    Raises:
        Unreadable: it contradicts itself.
    """
    listed = json_list(text)
    shape = _Shape.of(plain_text(final_text(text)) if listed is None else as_lines(listed), alternatives)
    answers = _answers([*_statements(shape)], alternatives, single=single, apart=apart, otherwise=otherwise)
    answers = answers or [*filter(None, [_enumerated(shape)])]
    if len({frozenset(answer) for answer in answers}) > 1:
        told = ", then ".join(" and ".join(map(alternatives.sign, answer)) for answer in answers[:3])
        raise Unreadable(f"different answers are given ({told}); give one answer")
    return answers[-1] if answers else ()


def names_one(text: str, alternatives: Alternatives) -> bool:
    """Whether `text` names an alternative, whatever it says of it."""
    named = {"T", "N"} if alternatives.numbered else {"T"}
    return not named.isdisjoint(_Shape.of(plain_text(text), alternatives).letters)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A reply as letters, one for each of its words."""

    letters: str
    values: tuple[float, ...]
    """The number or the place of each letter, 0 where it has none."""

    @classmethod
    def of(cls, text: str, alternatives: Alternatives) -> _Shape:
        """The shape of a plain text."""
        text = _CHECKED.sub(lambda box: "❌ " if box[1] == " " else "✅ ", text)
        text = _MATHS.sub(lambda sign: "\nAnswer: " if sign["answer"] else " ", text)
        text = _in_one_way(text)
        text = _NEGATED.sub(" not", text)  # what is denied stands before the verb, as in "B does not fit"
        text = _ROW.sub(lambda row: row[0].strip("| \t").replace("|", ":"), text)  # a row of a table
        return _Lexer(text, alternatives).shape()


class _Lexer:
    """Gives each word of a text the letter for its role."""

    def __init__(self, text: str, alternatives: Alternatives) -> None:
        self.text = text
        self.alternatives = alternatives
        self.found = [*_TOKEN.finditer(text)]
        self.words = [token[0].casefold() for token in self.found]
        self.letters: list[str] = []
        self.shouts = text.isupper() and not all(map(self._known, range(len(self.words))))
        """Whether the text is in capitals throughout, so that capitals do not show which words are names."""

    def shape(self) -> _Shape:
        values: list[float] = []
        place = 0
        while place < len(self.found):
            part, value, place = self._part(place)
            if part:
                self.letters.append(part)
                values.append(value)
        letters = _counted("".join(self.letters), numbered=self.alternatives.numbered)
        return _Shape(_unlisted(letters, values) if self.alternatives.lettered else letters, tuple(values))

    @property
    def _last(self) -> str:
        return self.letters[-1] if self.letters else "\n"

    def _part(self, place: int) -> tuple[str, float, int]:
        """The letter of a token, its value, and the token after it."""
        named = self.alternatives.named(self.words, place)
        if named is not None and self._is_name(place, named[1]):
            return "T", named[0], self._after_name(named[1])
        word = self.words[place]
        if word[0].isdecimal():
            if not self.alternatives.lettered:
                return self._number(place)
            if self._last in "\n:,N" and self.words[place + 1 : place + 2] in (["."], [")"]):
                return "", 0, place + 2  # it counts letters
            part, value, after = self._number(place)
            return "w" if part == "N" else part, value, after
        if (lettered := self._letter(place)) is not None:
            return "N", lettered, place + 1
        if self.alternatives.lettered and word == "a" and self.found[place][0] == "A" and self._last not in "\n.?":
            return "w", 0, place + 1  # within a sentence it may be the letter or the article
        if word in _NUMBERS and not self.alternatives.lettered:
            listed = self._last in ",|" and "N" in self.letters[-2:]
            counts = self._last in ":O" or listed or (word != "one" and self._last in "\n,|BCA(-")
            return ("N", _NUMBERS.index(word) + 1, place + 1) if counts else ("w", 0, place + 1)
        if word in _ORDINALS:
            return "o", _ORDINALS.index(word) + 1, place + 1
        return self._sign(word), 0, place + 1

    def _after_name(self, after: int) -> int:
        """The token after a name; the period of a lettered option's text ends no sentence that goes on behind it."""
        if self.alternatives.lettered and _GOES_ON.match(self.text, self.found[after - 1].end()):
            while not self.words[after][0].isalnum():
                after += 1
        return after

    def _letter(self, place: int) -> int | None:
        """The alternative of a letter; None for a letter that is a word or a part of one."""
        token, known = self.found[place], self.alternatives
        letter = token[0]
        if not known.lettered:
            return known.place_of(letter)
        if len(letter) > 1 or known.place_of(letter.upper()) is None:
            return None
        text, end = self.text, token.end()
        if _JOINED_BEFORE.search(text[max(0, token.start() - 7) : token.start()]) or _JOINED_BEHIND.match(text, end):
            return None
        of_text = known.named(self.words, place + 2)  # behind a period or a bracket
        if letter.islower():
            stands = self._last in "\n:(" and letter != "i" and (of_text or _ENDS.match(text, end))
            return known.place_of(letter.upper()) if stands else None
        if _UNTIL_IF.match(text, end) or _ASKED.match(text, end) or (_INITIAL.match(text, end) and not of_text):
            return None
        following = _NEXT_WORD.match(text, end)
        if letter in "AI" and following and known.named(self.words, place + 1) is None:
            is_word = letter == "I" or following[1].casefold() not in _AFTER_A
            return None if is_word else known.place_of(letter)
        return known.place_of(letter)

    def _known(self, place: int) -> bool:
        return not self.words[place].isalpha() or self.alternatives.named(self.words, place) is not None

    def _sign(self, word: str) -> str:
        if word == "to" and self._last == "N":
            return "-"
        if word == "\n" or (word == "-" and self._last == "\n"):
            return word.strip("-")  # a line, or a bullet
        other = "!" if word.endswith("n't") else "w" if word[0].isalnum() else ""
        if self.alternatives.lettered and word in _LETTERED_PARTS:
            return _LETTERED_PARTS[word]
        return _PART_OF.get(word, other)

    def _number(self, place: int) -> tuple[str, float, int]:
        token, text = self.found[place], self.text
        before, behind = text[max(0, token.start() - 1) : token.start()], text[token.end() : token.end() + 1]
        if behind.isalpha() or before.isalpha():
            ordinal = self.words[place + 1 : place + 2] in (["st"], ["nd"], ["rd"], ["th"])
            return ("o", float(token[0]), place + 2) if ordinal else ("w", 0, place + 1)
        if (counted := _OUT_OF.match(text, token.start())) and counted[1].casefold() not in _PART_OF:
            return "w", 0, place + 1
        if behind == "%":
            return "n", float(token[0]) / 100, place + 2
        if before != "/" and _FRACTION.match(text, token.start()):
            return "w", 0, place + 3
        negative = before == "-" and not text[max(0, token.start() - 2) : token.start() - 1].isalnum()
        if negative or behind == "°" or len(token[0]) > 6:
            return "w", 0, place + 1
        return ("n" if "." in token[0] else "N"), float(token[0]), place + 1

    def _is_name(self, place: int, after: int) -> bool:
        """Whether a name is meant as a name; one that is also an English word (`OR`, `none`) must stand by itself."""
        word = self.found[place][0]
        if self.alternatives.lettered and after <= place + SHORT_NAME:
            apart = after == len(self.words) or not self.words[after][0].isalnum()
            return apart and self._last in "\n,:(.-)NOABCDYXV"
        if after > place + 1 or self.words[place] not in _PART_OF:
            return True
        if word.isupper() and len(word) > 1 and not self.shouts:
            if self._last == "T" and any(self.alternatives.named(self.words, at) for at in (after, after + 1)):
                raise Unreadable(f"`{word}` between two others may be a word or an answer; separate them by commas")
            return True
        if after == len(self.words) or not self.words[after][0].isalnum():
            return self._last in "\n,:(.-ABCDYXV"
        return False


SHORT_NAME = 3
"""Tokens of a lettered option's text up to which it counts only where it stands by itself: prose may say it, too."""

_JOINED_BEFORE = re.compile(r"(?:[\d&+#@°]|\b[^\W\d_]\. ?|\b(?:[DM]r|M[sr]s|Ms|Prof)\. |\w\w-)\Z")
"""What makes the letter behind it a part of a word: "4B", "R&B", "U.S.A", "E. B. White", "Mr. B", "vitamin-C"."""
_JOINED_BEHIND = re.compile(r"[\d&+#@]|=\w|\. ?[A-Z](?:\.|\b(?! ))|\.[a-z]\b|-(?![A-Z]\b)[^\W\d_]")
"""What makes the letter before it a part of a word: "B12", "A&W", "A+", "T.V", "E. B. White", "A-list", "E=mc2"."""
_INITIAL = re.compile(r"\.[ \t]+[a-z]")
"""What makes the letter before it an initial: "the agents A. and B. meet"."""
_ASKED = re.compile(r"[\"')*]{0,3}\?")
_UNTIL_IF = re.compile(r"\s{0,3}[,(-]?\s{0,3}(?:if|unless)\s+(?!i\b|we\b|you\b|forced\b|pressed\b)", re.IGNORECASE)
"""What makes a choice depend on something else: "B if the lizard is a guest"; but not "B if I had to choose"."""
_NEGATED = re.compile(r"n't\b")
_ENDS = re.compile(r"[^\w\n]{0,6}(?:\n|$)")
_GOES_ON = re.compile(r"[.!?]{1,3}(?=[ \t\"')\]]{0,4}[ \t][a-z])")
_NEXT_WORD = re.compile(r"[ \t]+([^\W\d_]+)")
_AFTER_A_WORDS = (
    "is was does would looks appears seems fits matches describes captures represents explains works applies conveys "
    "wins because since and or but"
)
_AFTER_A = frozenset(_AFTER_A_WORDS.split())
"""Words before which an A is a letter; before others it may be the article."""

_COUNT = re.compile(r"(?<!N,)(?<!N,,)N(?=[wOAF]|\+[OAw:])|(?<=\+)N(?=:)")
_SCORE = re.compile(r"(?:(?<=T[:(-])|(?<=T))N")
_FREE = re.compile(r"(?:^|(?<=\n))\(*N(?=[).:-]+[wfRSBCDA~F|+])")


def _counted(letters: str, *, numbered: bool) -> str:
    """`letters` with `n` for numbers that count something, and `E` for those before lines of free text."""
    if numbered:
        letters = _ENUMERATED.sub(":", letters)
        return _COUNT.sub("n", _FREE.sub(lambda found: found[0].replace("N", "E"), letters))
    return _SCORE.sub("n", letters)


_HEAD = re.compile(r"(?:^|(?<=\n))[fO(-]*(?P<letter>[NE])[).:-]+(?:(?P<text>T)|(?=[wfRSBCDA~F|+]))")
"""A letter at the beginning of a line, before a text or a remark."""


_SPOKEN_OF = re.compile(r"(?<=fO)N(?=[).:-]+[wfRSBCDA~F|+])")


def _unlisted(letters: str, values: Sequence[float]) -> str:
    """`letters` without options that are only gone through: several at beginnings of lines, or "the caption A: …"."""
    letters = _SPOKEN_OF.sub("n", letters)
    heads = [*_HEAD.finditer(letters)]
    if len({values[head.start("letter")] for head in heads}) < 2:
        return letters
    marked = [*letters]
    for head in heads:
        marked[head.start("letter")] = "E"
        if head["text"]:
            marked[head.start("text")] = "w"
    return "".join(marked)


_ITEM = re.compile(
    r"(?:(?P<before>[YX])[:-]?)?[(-]{0,3}(?:o[OA]?[:.,)B-]{1,3})?[OAf]{0,2}\({0,2}"
    r"(?:(?P<a>N)(?:\)*(?:[-.:(]*|[,(]*RB[,:]*)(?P<b>T)(?:[:(]+(?P<i>T))?|\)?[.:]*(?<=[).:])[OA]?(?P<c>N)(?:[:(]+(?P<j>T))?|\([OA]?(?P<h>N)\)|)"
    r"|(?P<d>T)(?:\)*[-:(]+[OA]*\(*(?P<e>N)|[:(]+(?P<g>T)|)|(?P<f>o)[OA])\)*"
)
_ENUMERATED = re.compile(r"(?:(?<=^N)|(?<=\nN))\.(?=[OA]?\(?N)")
"""The period of `1. Option 5` on a line of its own."""
_LINE = re.compile(r"\(*(?P<number>E)")
_UNKNOWN = re.compile(r",+f?w{1,2}(?=[,\n]|$)")
_RANGE = re.compile(r"(?P<a>N)-(?P<b>N)(?![-N.:(])")
_SAID = re.compile(
    r"[-:(]*(?P<mark>[YX]|n)[^,.?\n|()]*\)*|\.(?P<tick>[YX])(?=\n|$)"
    r"|[-:(]+(?P<word>[!+])[^,.?\n|()NT]{0,4}(?:\)+|(?=[,.?\n|]|$))|(?P<bare>[!+])(?=[,.?\n)]|$)"
)
_REMARK = re.compile(
    r"\((?!N\)|!|[^()]*[|V])[^()\n]*\)|[:-](?=[wfRSBCDA~+O])(?:[^,.?\n|(]|,(?![,f]*O?[NT]))*|[fD](?=[fwDCO+]*,+[,f]*O?[NT])[fwDCO+]*"
    r"|,R[^.?\n|(NTV]{0,80}(?=,[,|][fO]*[NT],R)"
)
_PREDICATE = re.compile(r"[wBDf]+(?P<word>[!+])(?P<more>[wBDfO]*!)?")
_OVER = re.compile(r"\(?!|V[wf]")
"""Begins what is left out: "3 over 5", "3 rather than 5"."""
_BETWEEN = re.compile(r"[,|()-]*")
_CLAUSE = re.compile(r"[^.?\n]*(?:(?<=N)\.+(?=[TNYX])[^.?\n]*)*[.?\n]*")
_MARKED = re.compile(r"A[^!~]*[:B][fO(+|]*$|A[f(]*$")
_STATED = re.compile(
    r"^(?:[fwOYSBC,]|(?<=[wC])R){0,8}B[fO(]*$|[O+F][^!~]*[:B][fO(|]*$|C[f:O(]*$|^[fOFS|,(]*[SF|][fOFS|,(:]*$"
)
_NO = re.compile(r"^,*!(?:,|(?=V))")
"""A no that begins a change of mind: "5, no, 3"."""
_REVISED = re.compile(r"V(?!w)|^,*!(?:,|V)")
_RETRACTION = re.compile(r"[^NT]*V[^NT]*![^NT]*|[^NT!]{0,4}![^NT]{0,4}")


def _statements(shape: _Shape) -> Iterator[_Statement]:
    """The statements of a reply about the alternatives, in order."""
    heading = ""
    last: _Statement | None = None
    adjoins = False
    for clause in _CLAUSE.finditer(shape.letters):
        said = clause[0].rstrip(".?\n")
        if not said:
            continue
        begin, end = clause.start(), clause.start() + len(said)
        prefix_from, place = begin, begin
        named = False
        while item := _ITEM.search(shape.letters, place, end):
            items, stop = _items(shape, item.start(), end)
            prefix = shape.letters[prefix_from : item.start()]
            first = not named
            stop += _remark(items, shape.letters[stop : min(end, stop + LONGEST)])
            role = _role(heading + prefix if first else prefix, items, shape.letters[stop : min(end, stop + 1)])
            if role not in {"denied", "mentioned"} and _UNKNOWN.match(shape.letters, stop, end):
                raise Unreadable("something that is no answer stands among the answers; give the answers alone")
            statement = _Statement(role, items, revises=bool(_REVISED.search(prefix)))
            whole = first and not prefix.strip("f(,|") and not statement.revises
            if last is not None and adjoins and whole and not heading and _goes_on(last, statement):
                last.items += items
            else:
                yield statement
                last = statement
            named = True
            heading = ""
            place = prefix_from = stop
            adjoins = place >= end or not shape.letters[place:end].strip(",()-|")
        if not named:
            if last is not None and len(said) <= LONGEST and _RETRACTION.fullmatch(said):
                last.retracted = True
            heading = said[-LONGEST:] if said.endswith(":") or not said.strip("fFA") else ""
            adjoins = False


def _enumerated(shape: _Shape) -> tuple[int, ...]:
    """The numbers of a reply in which every line is a number and free text, such as an option in other words.

    Empty where the numbers count from 1: they may be ranks, or count reasons.
    """
    numbers: list[int] = []
    place = 0
    for line in shape.letters.split("\n"):
        if found := _LINE.match(line):
            numbers.append(int(shape.values[place + found.start("number")]))
        elif line.strip(".") and not line.endswith(":"):
            return ()
        place += len(line) + 1
    return () if numbers == [*range(1, len(numbers) + 1)] else tuple(numbers)


def _goes_on(last: _Statement, statement: _Statement) -> bool:
    """Whether a list goes on with a statement that adjoins it."""
    chosen = last.role not in {"denied", "mentioned"} and statement.role in {"listed", "stated"}
    return chosen and last.items[-1].form == statement.items[0].form


def _items(shape: _Shape, begin: int, end: int) -> tuple[list[_Item], int]:
    """The options of a list that begins at `begin`, and where it ends."""
    letters, values = shape.letters, shape.values
    items: list[_Item] = []
    place = stop = begin
    either = 0

    def value(found: re.Match[str], name: str) -> int | None:
        at = found.start(name)
        return None if at < 0 else int(values[at])

    while place < end and (found := _ITEM.match(letters, place, end)):
        ranged = _RANGE.match(letters, found.start("a"), end) if found["a"] and not found["b"] else None
        if ranged and not (items and letters[place - 1] == "-"):
            first, past = int(values[ranged.start("a")]), int(values[ranged.start("b")])
            numbers = range(first, past + 1) if first <= past <= first + 1000 else (first, past)
            items += [_Item(number, None) for number in numbers]
            stop = ranged.end()
        else:
            number = next((value(found, name) for name in "aef" if found[name]), None)
            other = next((value(found, name) for name in "bchd" if found[name]), None)
            item = _Item(number, other, doubled=found["g"] is not None or found["i"] is not None)
            if any(found[name] and value(found, name) != other for name in "gij"):
                raise Unreadable("the name of an answer stands beside another one's; give names alone")
            if found["before"]:
                item.score = float(found["before"] == "Y")
            items.append(item)
            stop = found.end()
            if said := _SAID.match(letters, stop, end):
                mark = said["mark"] or said["tick"] or said["word"] or said["bare"]
                item.score = values[said.start("mark")] if mark == "n" else float(mark in "Y+")
                stop = said.end()
            elif remark := _REMARK.match(letters, stop, end):
                item.described = True
                stop = remark.end()
        place = _BETWEEN.match(letters, stop, end).end()  # pyright: ignore[reportOptionalMemberAccess]  # matches anything
        if "|" in letters[stop:place]:
            either = len(items)
    if items:
        items[0].others = 2 if either == len(items) else len(items) - either if either else 0
    return items, stop


LONGEST = 60
"""Letters before and after a list that are looked at to tell what it is."""


def _remark(items: list[_Item], behind: str) -> int:
    """Reads a remark about a whole list ("3 and 7 are wrong") into the items without a score; its length in letters."""
    if predicate := _PREDICATE.match(behind):
        score = 0.5 if predicate["more"] and predicate["word"] == "!" else float(predicate["word"] == "+")
        for item in items:
            item.score = score if item.score is None else item.score
        return predicate.end()
    return len(behind) if _OVER.match(behind) else 0


def _role(prefix: str, items: list[_Item], rest: str) -> StatementRole:
    """The role of a list, judged by the letters before it and the first letter after it."""
    if len(prefix) > LONGEST:
        prefix = "w" + prefix[-LONGEST:]
    prefix = _NO.sub("V", prefix)
    if "~" in prefix:
        return "mentioned"
    if found := _MARKED.search(prefix) or _STATED.search(prefix):
        if "!" in prefix[prefix.rfind(",", 0, found.start() + 1) + 1 :]:
            return "denied"
        marked = "A" in found[0] and "C" not in found[0]
        return "final" if "F" in prefix and marked else "marked" if marked else "stated"
    if "!" in prefix:
        return "denied"
    if prefix.strip("f(O,|:-"):
        return "mentioned"
    if any(item.score is not None for item in items) or rest in {"R", "D"}:
        return "stated"
    return "mentioned" if rest and rest not in "),S-(|" else "listed"


def _answers(
    statements: Sequence[_Statement], alternatives: Alternatives, *, single: bool, apart: bool, otherwise: int | None
) -> list[tuple[int, ...]]:
    """The final answers in the statements; a reply can be read where there is one, or where all are equal."""
    chosen = [each for each in statements if each.role not in {"denied", "mentioned"}]
    pool: list[_Statement] = []
    for roles in ({"final"}, {"final", "marked"}, {"stated", "listed"}):
        pool = [each for each in chosen if each.role in roles]
        if pool:
            break
    pool = [each for each in pool if not each.retracted or each is pool[-1]]
    if any(item.others > apart for each in pool for item in each.items):  # "3, 5 or 7" may be a list
        raise Unreadable("one answer or another is given; give the chosen ones alone")
    answers = [answer for each in pool if (answer := _resolved(each.items, alternatives, otherwise))]
    alone = all(len(answer) == 1 for answer in answers) and not any(each.revises for each in pool)
    alone = alone and (apart or all(each.role in {"stated", "listed"} for each in pool))
    if not single and alone and len(answers) > 1:
        answers = [tuple(place for answer in answers for place in answer)]
    if not answers:
        if pool and alternatives.numbered and all(_denied(each) for each in pool):
            raise Unreadable("every option is denied; choose at least one")
        return []
    answered = {*answers[-1]}
    for each in statements[statements.index(pool[-1]) + 1 :]:
        if each.contradicts:
            places = _resolved(each.items, alternatives, otherwise)
            if not answered.issuperset(places):
                answers.append(places)
    return answers


def _denied(statement: _Statement) -> bool:
    return all(item.score is not None and item.score < 0.5 for item in statement.items)


def _resolved(items: Sequence[_Item], alternatives: Alternatives, otherwise: int | None) -> tuple[int, ...]:
    """The places that the items of one statement stand for; none where it only repeats the question.

    Raises:
        Unreadable: it is unclear which are chosen, or an index stands beside the text of another option.
    """
    said = [item.score for item in items if item.score is not None]
    if any(0.4 < score < 0.6 or score > 1 for score in said):
        raise Unreadable("what is said of the options is neither yes nor no")
    if any(score < 0.5 for score in said) and any(item.score is None and not item.described for item in items):
        raise Unreadable("some options are denied, and nothing is said of others; give the chosen ones alone")
    kept = [item for item in items if item.score is None or item.score > 0.5]
    if not {(item.number, item.other) for item in items if item not in kept}.isdisjoint(
        (item.number, item.other) for item in kept
    ):
        raise Unreadable("an answer is given and denied; give the chosen ones alone")
    if not alternatives.numbered:
        places = [item.other for item in kept if item.other is not None]
        if not kept and otherwise is not None and len({item.other for item in items}) == len(alternatives.names) - 1:
            return (otherwise,)
        described = all((item.described or item.doubled) and item.score is None for item in items)
        return () if described and len(set(places)) >= max(2, len(alternatives.names) - 1) else tuple(places)
    both = [item for item in kept if item.number is not None and item.other is not None]
    if any(item.number != item.other for item in both):
        if len(both) < max(2, len(kept)) or [item.number for item in both] != [*range(1, len(both) + 1)]:
            raise _beside(alternatives)
        return tuple(item.other for item in both if item.other is not None)
    repeated = len(both) == len(items) == len(alternatives.names)
    if repeated and not said and (len(items) > 2 or alternatives.lettered):
        return ()  # the options repeated
    numbers = {item.number for item in kept if item.number is not None}
    named = {item.other for item in kept if item.number is None}
    if numbers and named - numbers:
        raise _beside(alternatives)
    return tuple(
        place for item in kept if (place := item.number if item.number is not None else item.other) is not None
    )


def _beside(alternatives: Alternatives) -> Unreadable:
    if alternatives.lettered:
        return Unreadable("a letter stands beside another option's text; give the letter alone")
    return Unreadable("an index stands beside another option's text; give indexes alone")
