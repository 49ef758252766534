"""The labelled replies: what chat models write in each form of answer, and what a careful reader takes it for.

The styles stand in `replies/` and `replies/today/`, a file a protocol, as the README says; what they are filled with
is drawn here from a seeded generator. A label is the answer as text, empty for an answer that says "none", and None for
a reply that gives no answer or more than one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from askance.agents import (
    EquivalenceQuestion,
    FillQuestion,
    NegativeQuestion,
    OptionsQuestion,
    PreferenceQuestion,
    StatementQuestion,
    choose_action_reasons,
    choose_caption,
    choose_explanation,
    classify_atypicality,
    detect_statement,
    fill_statement,
    find_candidates,
    identify_from_description,
    judge_equivalence,
    match_caption,
    write_negative,
)
from askance.agents.judge import PreferenceNode
from askance.agents.vqa import PictureAsker
from askance.atypicality import NAMES, RELATIONS, TEMPLATES, Relation, Statement, all_statements
from askance.images import Image
from askance.models import OutputMode, ScriptedModel
from askance.nodes import Node, Unreadable
from askance.prompts.fence import LETTERS
from askance.tools import objects, scene_text
from tests.scripted import PICTURE

FOLDER = Path(__file__).parent / "replies"
TODAY = FOLDER / "today"
"""What today's models write, half of it without an answer."""
ENOUGH = 1_500
"""Replies of a protocol, at least."""
MOST_ROUNDS = 200

Fields = Mapping[str, str]


# ---- Styles


@dataclass(frozen=True, slots=True)
class Style:
    """One way to write a reply."""

    text: str
    label: str | None
    must: bool = True
    """Whether a reply without an answer is wrong; else the label may be read, and nothing else may."""
    core: bool = False
    """Whether it is put into the wrappers too."""


def styles_in(path: Path) -> tuple[Style, ...]:
    """The styles of a file; `replies/README.md` says how it is written."""
    styles: list[Style] = []
    how: dict[str, Any] | None = None
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("@#"):
            continue
        if line.startswith("@"):
            how = _heading(line)
        else:
            assert how is not None, f"{path.name}: a style stands before the first heading"
            styles.append(Style("" if line == "∅" else line.replace("⏎", "\n"), **how))
    return tuple(styles)


def _heading(line: str) -> dict[str, Any]:
    mark, _, label = line.partition(" ")
    match mark:
        case "@" | "@*" | "@?":
            return {"label": label, "must": mark != "@?", "core": mark == "@*"}
        case "@none":
            return {"label": ""}
        case "@!":
            return {"label": None}
        case _:
            raise AssertionError(f"no such heading: {line}")


_FIELD = re.compile(r"\{([a-z]\w*(?:\.[a-z]+)*)\}")


class Missing(LookupError):
    """These contents have no such field."""


def rendered(template: str, fields: Fields) -> str:
    """`template` with its fields filled in; `{why}` and `{because}` are drawn anew at every place.

    Raises:
        Missing: one of the fields is not there.
    """

    def filled(match: re.Match[str]) -> str:
        try:
            return fields[match[1]]
        except KeyError:
            raise Missing(match[1]) from None

    return _FIELD.sub(filled, template)


class Drawn(dict[str, str]):
    """Fields, of which `why` and `because` are another sentence each time."""

    def __init__(self, rng: random.Random, fields: Fields) -> None:
        super().__init__(fields)
        self._rng = rng

    def __missing__(self, key: str) -> str:
        match key:
            case "why":
                return self._rng.choice(SENTENCES)
            case "because":
                return self._rng.choice(CLAUSES)
            case _:
                raise KeyError(key)


SENTENCES = (
    "The picture shows a bottle that floats above a table.",
    "A feather carries the bottle, which stands for lightness.",
    "The colours are warm, and the mood is calm.",
    "It speaks of freedom and the open sea.",
    "The ad plays with what one expects of a cup.",
    "A man holds a glass, and behind him the sun goes down.",
    "What matters here is the texture of the surface.",
    "The context says little about the brand.",
    "I looked at the details, the background and the mood.",
    "This matches the message of the ad: lightness, ease, joy.",
    "The product stands in the middle; nothing else is in focus.",
    "Overall, the image suggests that the drink is refreshing.",
)
CLAUSES = (
    "the bottle is as light as a feather",
    "it matches the mood of the picture",
    "the context speaks of lightness",
    "the cup is made of bricks",
    "that is what the ad is about",
    "the sea stands for freedom",
    "the texture is that of a fruit",
    "nothing in the description speaks of it",
)


# ---- Contents


@dataclass(frozen=True, slots=True)
class Contents:
    """What a reply is filled with, and the question that it answers."""

    fields: Fields
    subject: Any


ACTION_REASONS = (
    "I should buy 7up because it has 3 times the fizz",
    "I should drink beer because it is light",
    "I should drink beer",
    "I should avoid beer, because 2 glasses are too many",
    "I should fly to Mars; it takes 9 months and 5 days",
    "I should call 1-800-555-0199",
    "I should eat chips and salsa",
    "I should answer: 4, because it is even",
    "I should use 5-hour energy because it will keep me focused",
    "I should use a 5-hour stress drink because it promotes relaxation",
    "I should wear these shoes because they make me fast",
    "I should wear these shoes because they make me feel like number one",
    "I should say yes to this tea because none is better",
    "I should not smoke because it kills",
    "I should not answer the phone while I drive",
    "I should visit Paris because it is romantic",
    "I should buy Absolut because it makes me more adventurous",
    "I should drink absolut vodka because this vodka is like an island paradise",
    "I should eat natural salsa because it is good for me",
    "I should avoid skinny cow because it is unsweetened",
    "I should try option B because plan A failed",
    "I should save 50% because prices are down",
    "I should protect the forests, rivers, and seas",
    "I should buy this perfume because it smells like 1,000 roses",
    "I should choose the wrong answer because it is fun",
    "I should drive this car because it goes from 0 to 60 in 4.5 seconds",
    "I should give blood because one gift saves three lives",
    "I should eat burgers because the final answer is always cheese",
    "I should use this lipstick because it lasts 24/7",
    "I should travel by train because it's cheap",
    "I should try Heinz (57 varieties) because it is spicy",
    "I should join the army because they need me",
    "I should recycle because there is no planet B",
    "I should wash with Tide because it's bright",
    "I should buy this watch because actually, time is money",
    "I should read the news because it is true",
)
EXPLANATIONS = (
    "Wolves howl at night, and here one howls at noon",
    "Wolves live in packs, and here 1 is by itself",
    "A fish sits in a tree, but fish live in water",
    "Einstein died in 1955, and smartphones came out in 2007",
    "A candle does not burn in a closed bottle, as there is no oxygen",
    "Nobody would answer a banana: it is no phone",
    "The chess board has 7 rows, and a real one has 8",
    "A snow plow works in the desert, where it never snows",
    "It is not normal for a cat to read, so the answer is the book",
    "The lightning strikes from a clear blue sky",
    "A knight has no use for a laptop",
    "The ice cubes stand in a fire and do not melt",
    "The option to fly is not given to penguins",
    "Soldiers do not ride on 2 flamingos",
    "The man's shadow shows a woman",
)
CAPTIONS = (
    "A wolf howls in bright sunlight",
    "A wolf stands outdoors",
    "Albert Einstein holds a smartphone in 1905",
    "A man holds something",
    "A fish sits on branch number 3 of a tree",
    "The answer to the drought: a camel with 4 humps",
    "Two walruses swim in the jungle",
    "Animals",
)
JOKES = (
    "A little to the left, please.",
    "I think we should see other planets.",
    "Is this your first mammoth?",
    "B is for bankruptcy.",
    "All right, who ordered the calamari?",
    "I'd like a second opinion and a third wish.",
    "And you thought Plan A was bad.",
    "Not tonight, dear. I have a hedge.",
    "No, the other left.",
    "Yes, but is it art?",
    "Next!",
    "It's a living.",
    "Wait till he finds the stapler.",
    "Actually, it's Doctor Frankenstein.",
    "Correct me if I'm wrong, but you're upside down.",
    "The answer is still no.",
    "One more and we'll have a quorum.",
    "Vitamin C, my foot.",
    "E.T. never called.",
    "It gets an A for effort.",
    "My other car is a 7-ton elephant.",
    "She said it was either the goldfish or me.",
    "When I said option B, I meant the boat.",
    "“MEET”? I heard “EAT”.",
    "You're right, Harold: it does look like rain.",
    "Taxi!",
    "A wolf in sheep's clothing walks into a bar…",
    "Who's a good boy, and who's asking?",
    "We've been asked to downsize the whale.",
    "He was the best of us; he was the worst of us.",
    "I only came for the free cheese.",
    "Does this come in beige?",
)
THINGS = (
    "bottle",
    "feather",
    "cup",
    "brick wall",
    "beer glass",
    "7up can",
    "orange peel",
    "stop sign",
    "no-smoking sign",
    "woman",
    "man's hand",
    "running shoe",
    "answer sheet",
    "t-shirt",
    "apple",
    "umbrella",
    "polar bear",
    "traffic cone",
    "old car",
    "egg",
    "plate of pasta",
    "cell phone",
    "image frame",
    "paint brush",
    "open book",
    "elephant",
)
LINES = (
    "LIGHT AS A FEATHER",
    "Just try it.",
    "NO TEXTING",
    "There is no substitute",
    "I'm sorry I'm late",
    "50% OFF",
    "Call 1-800-555-0199",
    "Answer: yes!",
    "None of the above",
    "Think about tomorrow",
    "No text. No call. Just drive",
    "Open daily, 9 to 5",
    "THE NEW V8",
    "Image is everything",
    "What are you waiting for?",
    "Fresh & natural",
    "Don't drink and drive",
    "E = mc2",
    "(c) 2011 Acme Inc.",
    "I can't help it",
    "Text STOP to 4040",
)
_NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
)
NUMBERS = _NUMBERS.split()
ORDINALS = _ORDINALS.split()
_ROMAN = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX"
ROMAN = _ROMAN.split()


def digits_from(zero: int) -> dict[int, int]:
    """Another script's digits for 0 to 9; `zero` is where they begin."""
    return {ord("0") + digit: zero + digit for digit in range(10)}


WIDE, ARABIC, HINDI = digits_from(0xFF10), digits_from(0x660), digits_from(0x966)
KEYCAP = {ord("0") + digit: f"{digit}\N{VARIATION SELECTOR-16}\N{COMBINING ENCLOSING KEYCAP}" for digit in range(10)}


def option_fields(name: str, number: int, options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The fields of one option: its number in several forms, and its text."""
    yield name, str(number)
    yield f"{name}.text", options[number - 1]
    for script, digits in {"wide": WIDE, "arabic": ARABIC, "hindi": HINDI, "keycap": KEYCAP}.items():
        yield f"{name}.{script}", str(number).translate(digits)
    yield f"{name}.two", f"{number:02}"
    if number <= len(NUMBERS):
        yield f"{name}.word", NUMBERS[number - 1]
        yield f"{name}.cap", NUMBERS[number - 1].capitalize()
        yield f"{name}.roman", ROMAN[number - 1]
        yield f"{name}.circled", chr(ord("①") + number - 1)
    if number <= len(ORDINALS):
        yield f"{name}.ordinal", ORDINALS[number - 1]


def choosing(rng: random.Random, options: Sequence[str], *, chosen: int) -> dict[str, str]:
    """Fields of a choice among `options`: `a`, `b` and `c` are chosen, `w`, `x` and `y` are not."""
    numbers = list(range(1, len(options) + 1))
    right = rng.sample(numbers, chosen)
    first_wrong = 4 if len(options) > 10 else 2
    wrong = [n for n in numbers if n not in right and n >= first_wrong]
    rng.shuffle(wrong)
    names = [*zip("abc", right, strict=False), *zip("wxy", wrong, strict=False)]
    fields = dict(pair for name, number in names for pair in option_fields(name, number, options))
    fields |= {f"o{n}.text": text for n, text in enumerate(options, 1)}
    fields["n"] = str(len(options))
    fields["beyond"] = str(len(options) + rng.randint(1, 20))
    fields["list"] = "\n".join(f"{n}. {text}" for n, text in enumerate(options, 1))
    fields["verdict"] = fields["verdicts"] = "\n".join(f"{n}: {'yes' if n in right else 'no'}" for n in numbers)
    fields["tick"] = fields["ticks"] = "\n".join(f"{n}. {'✅' if n in right else '❌'}" for n in numbers)
    return fields


def three_of_fifteen(rng: random.Random) -> Contents:
    options = tuple(rng.sample(ACTION_REASONS, 15))
    fields = choosing(rng, options, chosen=3)
    low = rng.randint(1, 13)
    fields.update(zip("rst", map(str, range(low, low + 3)), strict=True))
    order = sorted((fields[name] for name in "abc"), key=int)
    fields.update(zip(("lo", "mid", "hi"), order, strict=True))
    fields["lo.two"] = order[0].zfill(2)
    return Contents(fields, OptionsQuestion(description="A bottle.", options=options))


def one_of(rng: random.Random, pool: Sequence[str], counts: Sequence[int]) -> Contents:
    options = tuple(rng.sample(pool, rng.choice(counts)))
    return Contents(choosing(rng, options, chosen=1), OptionsQuestion(description="A bottle.", options=options))


def one_statement(rng: random.Random) -> Contents:
    names = tuple(rng.sample(THINGS, rng.choice((2, 2, 3, 3, 5))))
    options = [statement.text for statement in all_statements(names)]
    return Contents(choosing(rng, options, chosen=1), StatementQuestion(description="A bottle.", objects=names))


def one_lettered(rng: random.Random) -> Contents:
    bare = rng.sample(ACTION_REASONS, rng.choice((4, 5, 8)))
    form = rng.choice(("{}. {}", "{}) {}", "({}) {}"))
    letters = "ABCDEFGH"
    options = tuple(form.format(letter, text) for letter, text in zip(letters, bare, strict=False))
    fields = choosing(rng, options, chosen=1)
    for name in "awx":
        number = int(fields[name])
        fields[f"{name}.letter"], fields[f"{name}.bare"] = letters[number - 1], bare[number - 1]
        fields[f"{name}.lower"] = letters[number - 1].lower()
        fields[f"{name}.full"] = chr(ord("Ａ") + number - 1)  # noqa: RUF001  # the full-width letters
    fields["list"] = "\n".join(options)
    return Contents(fields, OptionsQuestion(description="A bottle.", options=options))


def one_letter(rng: random.Random) -> Contents:
    """Captions that a prompt has put letters before: five of which one was written for the cartoon, or a pair."""
    texts = tuple(rng.sample(JOKES, rng.choice((5, 5, 5, 2))))
    fields = choosing(rng, texts, chosen=1)
    fields["w"], *fields_of_rest = [str(n) for n in range(1, len(texts) + 1) if str(n) != fields["a"]]
    others = dict(zip("wxyz", [fields["w"], *fields_of_rest], strict=False))
    for name, number in {"a": fields["a"], **others}.items():
        letter = LETTERS[int(number) - 1]
        fields |= {f"{name}.letter": letter, f"{name}.lower": letter.lower(), f"{name}.text": texts[int(number) - 1]}
        fields[f"{name}.start"] = " ".join(texts[int(number) - 1].split()[:3])
        fields[f"{name}.full"] = chr(ord("Ａ") + int(number) - 1)  # noqa: RUF001  # the full-width letters
        fields[f"{name}.ordinal"] = ORDINALS[int(number) - 1]
    fields["list"] = "\n".join(f"{letter}: {text}" for letter, text in zip(LETTERS, texts, strict=False))
    fields["letters"] = ", ".join(LETTERS[: len(texts) - 1]) + f", or {LETTERS[len(texts) - 1]}"
    fields["range"] = f"A-{LETTERS[len(texts) - 1]}"
    return Contents(fields, OptionsQuestion(description="A lizard in a bar.", options=texts))


def labels(rng: random.Random) -> Contents:
    fields: dict[str, str] = {}
    order = rng.sample(RELATIONS, 4)
    for name, code in zip("pquv", order, strict=True):
        fields |= {name: code, f"{name}.name": NAMES[code], f"{name}.lower": code.lower()}
        fields |= {f"{name}.place": str(RELATIONS.index(code) + 1), f"{name}.cut": code[:1]}
    fields["defs"] = "\n".join(f"- {code} ({NAMES[code]})" for code in RELATIONS)
    yes = sorted(rng.sample(RELATIONS, rng.choice((1, 1, 2, 3))), key=RELATIONS.index)
    fields["yes"], fields["yes.comma"], fields["yes.first"] = " ".join(yes), ", ".join(yes), yes[0]
    fields["yes.rest"] = "".join(f", '{n}': '{code}'" for n, code in enumerate(yes[1:], 2))

    def said(no: str, positive: str, form: str = "{0}: {1}", between: str = "\n") -> str:
        return between.join(form.format(c, positive if c in yes else no, NAMES[c]) for c in RELATIONS)

    high, low = rng.choice(("0.9", "0.85", "0.95")), rng.choice(("0.1", "0.05", "0.02"))
    why = rng.choice(CLAUSES)
    fields |= {
        "yesno": said("No", "Yes"),
        "yesno.comma": said("no", "yes", between=", "),
        "yesno.brackets": said("no", "yes", "{0} ({1})", ", "),
        "yesno.bold": said("No", "Yes", "**{0}:** {1}"),
        "yesno.ticks": said("✗", "✓", "{0} {1}"),
        "yesno.crosses": said("❌", "✅", "{0}: {1}"),
        "yesno.boxes": said("[ ]", "[x]", "- {1} {0}"),
        "yesno.numbers": said(low, high),
        "yesno.true": said("False", "True"),
        "yesno.present": said("not present", "present", "- {0}: {1}"),
        "yesno.applies": said("does not apply", "applies", "{0} {1}.", " "),
        "yesno.table": "| Category | Applies |\n|---|---|\n" + said("No", "Yes", "| {0} | {1} |"),
        "yesno.names": said("No", "Yes", "{2} ({0}): {1}"),
        "yesno.reasons": said("No", "Yes", "- {0}: {1}, " + why + "."),
        "yesno.zeros": said("0", "1", between=", "),
        "yesno.json": "{" + said("no", "yes", '"{0}": "{1}"', ", ") + "}",
        "yesno.none": "\n".join(f"{code}: No" for code in RELATIONS),
    }
    return Contents(fields, "A bottle.")


def an(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def named(fields: dict[str, str], key: str, name: str) -> None:
    fields |= {
        key: name,
        f"{key}.cap": name[0].upper() + name[1:],
        f"{key}.title": name.title(),
        f"{key}.upper": name.upper(),
    }
    fields |= {f"{key}.an": an(name), f"{key}.an.cap": an(name).capitalize()}


def things(rng: random.Random) -> Contents:
    fields: dict[str, str] = {}
    for key, name in zip("abcdef", rng.sample(THINGS, 6), strict=True):
        named(fields, key, name)
    return Contents(fields, PICTURE_SEEN)


def lines(rng: random.Random) -> Contents:
    return Contents(dict(zip("ab", rng.sample(LINES, 2), strict=True)), PICTURE_SEEN)


def filled(rng: random.Random) -> Contents:
    relation: Relation = rng.choice(RELATIONS)
    p, s, t = rng.sample(THINGS, 3)
    template = TEMPLATES[relation]

    def with_names(primary: str, secondary: str, mark: str = "<{}>") -> str:
        return template.format(primary=mark.format(primary), secondary=mark.format(secondary))

    whole = with_names(p, s)
    other: Relation = rng.choice([other for other in RELATIONS if other != relation])
    end = whole.index(f"<{s}>")
    fields = {
        "bracketed": whole,
        "bracketed.lower": whole[0].lower() + whole[1:],
        "bracketed.loose": whole.replace(",", "").rstrip("."),
        "bracketed.lines": whole.replace(">", ">\n", 1),
        "bracketed.bold": with_names(p, s, "**<{}>**"),
        "bracketed.boldest": with_names(p, s, "<**{}**>"),
        "bracketed.escaped": with_names(p, s, "&lt;{}&gt;"),
        "bracketed.code": with_names(p, s, "`<{}>`"),
        "bracketed.french": with_names(p, s, "«{}»"),
        "bracketed.fullwidth": with_names(p, s, "＜{}＞"),  # noqa: RUF001  # full-width brackets
        "bracketed.square": with_names(p, s, "[{}]"),
        "bracketed.other": with_names(t, s),
        "bracketed.swap": with_names(t, s),
        "bracketed.none": with_names("none", "none"),
        "bracketed.unknown": with_names("unknown", "unknown"),
        "bracketed.blank": with_names(" ", " "),
        "bracketed.cut": whole[: end + 2],
        "bracketed.tail": whole[: end + len(s) + 2],
        "plain": with_names(p, s, "{}"),
        "question": with_names("object1", "object2"),
        "example": with_names("eleven", "meat"),
        "other": TEMPLATES[other].format(primary=p, secondary=s),
    }
    for key, name in zip("pst", (p, s, t), strict=True):
        named(fields, key, name)
    return Contents(fields, FillQuestion(relation=relation, description="A bottle."))


LABELS = ("cat", "dog", "bird", "red car", "no text")
PHRASES: Mapping[str, Sequence[str]] = {
    "Two walruses swim in the jungle on 3 May": ("two walruses", "in the jungle", "swim", "on 3 May", "jungle"),
    "A man answers a banana in front of no-one": ("a man", "a banana", "answers a banana", "in front of no-one"),
    "None of the 12 penguins wears a red hat": ("12 penguins", "a red hat", "none of the 12 penguins", "wears"),
}
TRUE = "I should {} this {} because it {}"
ACTIONS, DRINKS, EFFECTS = ("drink", "buy"), ("tea", "coffee", "7up", "cola"), ("calms me", "wakes me up", "is no. 1")


def some_labels(rng: random.Random) -> Contents:
    fields: dict[str, str] = {}
    p, q, u = rng.sample(LABELS, 3)
    p, q = sorted((p, q), key=LABELS.index)
    for key, name in zip("pqu", (p, q, u), strict=True):
        named(fields, key, name)
        fields[f"{key}.number"] = str(LABELS.index(name) + 1)
    fields["both"] = f"{p}, {q}"
    return Contents(fields, PICTURE_SEEN)


def phrases(rng: random.Random) -> Contents:
    fields: dict[str, str] = {}
    caption = rng.choice(list(PHRASES))
    for key, name in zip("abc", rng.sample(PHRASES[caption], 3), strict=True):
        named(fields, key, name)
    return Contents(fields, caption)


def negatives(rng: random.Random) -> Contents:
    action, effect, drinks = rng.choice(ACTIONS), rng.choice(EFFECTS), rng.sample(DRINKS, 3)
    true, n, m = (TRUE.format(action, drink, effect) for drink in drinks)
    return Contents({"true": true, "n": n, "m": m}, NegativeQuestion(statement=true))


def worded(rng: random.Random, words: Sequence[str], subject: Any, **more: Mapping[str, str]) -> Contents:
    """One of several words, and another as `v.other`; `more` gives what else is said for each of them."""
    word, other = rng.sample(words, 2)
    fields = {"v": word, "v.cap": word.capitalize(), "v.upper": word.upper()}
    fields |= {"v.other": other, "v.other.cap": other.capitalize()}
    fields |= {("meaning" if key == "meaning" else f"v.{key}"): said[word] for key, said in more.items()}
    return Contents(fields, subject)


# ---- Protocols


MODEL = ScriptedModel([], identity="nobody")
PICTURE_SEEN = Image.load(PICTURE)


def value_of(node: Node[Any, Any], mode: OutputMode, text: str, contents: Contents) -> Any:
    """What `node` reads in a reply in that output mode; None where it cannot be read."""
    try:
        return node._read(text, contents.subject, mode).value  # pyright: ignore[reportPrivateUsage]  # as `ask` reads it
    except Unreadable:
        return None


@dataclass(frozen=True, slots=True)
class Protocol:
    """One form of answer: how contents are drawn, who reads it, and how a value is written as a label."""

    draw: Callable[[random.Random], Contents]
    node: Callable[[], Node[Any, Any]]
    said: Callable[[Any, Contents], str]
    styles: str | None = None
    """File of the styles, where it has another name than the protocol."""
    mode: OutputMode = "paper"
    wrappers: tuple[str, ...] = ("any", "prose", "assent")

    def read(self, text: str, contents: Contents) -> str | None:
        """The label of what the reader makes of a reply."""
        value = value_of(_node(self), self.mode, text, contents)
        return None if value is None else folded(self.said(value, contents))


@cache
def _node(protocol: Protocol) -> Node[Any, Any]:
    return protocol.node()


_LEAD = re.compile(r"(?:(?<=\| )|^)(?:an?|the) ")


def folded(label: str) -> str:
    """A label without what decides nothing: case, leading articles, the period at the end of a name."""
    return " | ".join(_LEAD.sub("", part.strip().rstrip(".")) for part in label.casefold().split(" | "))


def numbers(value: Any, _: Contents) -> str:
    return " ".join(map(str, value.numbers))


def place(value: Statement, contents: Contents) -> str:
    return str([s.text for s in all_statements(contents.subject.objects)].index(value.text) + 1)


def text_of(value: Any, _: Contents) -> str:
    return value.text


TRUTH = {"true": "Yes", "false": "No"}
MEANING = {"true": "A and B have the same meaning.", "false": "A and B do not have the same meaning."}
JUDGED = EquivalenceQuestion(reference="Fish live in water.", candidate="A fish cannot be in a tree.")
COMPARED = PreferenceQuestion(first="A fish.", second="A tree.", question="What is unusual in this image?")

PROTOCOLS: Mapping[str, Protocol] = {
    "choose_three": Protocol(three_of_fifteen, partial(choose_action_reasons, MODEL), numbers),
    "choose_one": Protocol(
        partial(one_of, pool=ACTION_REASONS, counts=(4, 15, 15, 20)),
        partial(choose_action_reasons, MODEL, mode="single"),
        numbers,
    ),
    "choose_explanation": Protocol(
        partial(one_of, pool=EXPLANATIONS, counts=(4, 6, 15)),
        partial(choose_explanation, MODEL, mode="single"),
        numbers,
        "choose_one",
    ),
    "choose_caption": Protocol(
        partial(one_of, pool=CAPTIONS, counts=(2, 2, 5)),
        partial(choose_caption, MODEL, mode="single"),
        numbers,
        "choose_one",
    ),
    "detect_statement": Protocol(one_statement, partial(detect_statement, MODEL), place, "choose_one"),
    "lettered": Protocol(one_lettered, partial(choose_action_reasons, MODEL, mode="single"), numbers),
    "letter": Protocol(one_letter, partial(match_caption, MODEL), numbers),
    "json_letter": Protocol(one_letter, partial(match_caption, MODEL), numbers, mode="prompted"),
    "categories": Protocol(labels, partial(classify_atypicality, MODEL), lambda value, _: " ".join(value.labels)),
    "yes_no": Protocol(
        partial(
            worded,
            words=("yes", "no"),
            subject=PICTURE_SEEN,
            does={"yes": "does", "no": "does not"},
            number={"yes": "1", "no": "2"},
            mark={"yes": "✅", "no": "❌"},
        ),
        partial(PictureAsker, MODEL, question="Does the statement hold?", labels=("yes", "no")),
        text_of,
        wrappers=("any", "prose"),
    ),
    "several": Protocol(
        some_labels,
        partial(PictureAsker, MODEL, question="What is in the picture?", labels=LABELS, several=True),
        text_of,
    ),
    "objects": Protocol(things, partial(objects, MODEL), lambda value, _: " | ".join(value.names)),
    "scene_text": Protocol(
        lines, partial(scene_text, MODEL), lambda value, _: " | ".join(value.lines), wrappers=("any",)
    ),
    "fill": Protocol(filled, partial(fill_statement, MODEL), lambda value, _: f"{value.primary} | {value.secondary}"),
    "verdict_short": Protocol(
        partial(worded, words=("true", "false"), subject=JUDGED, yes=TRUTH, meaning=MEANING),
        partial(judge_equivalence, MODEL, form="short"),
        lambda value, _: value.value,
    ),
    "verdict_rubric": Protocol(
        partial(worded, words=("true", "false", "unclear"), subject=JUDGED),
        partial(judge_equivalence, MODEL, form="rubric"),
        lambda value, _: value.value,
        wrappers=("any",),
    ),
    "preference": Protocol(
        partial(worded, words=("first", "second", "same"), subject=COMPARED),
        partial(PreferenceNode, MODEL),
        lambda value, _: value.value,
        wrappers=("any",),
    ),
    "weird": Protocol(
        partial(worded, words=("weird", "normal"), subject="A bottle."),
        partial(identify_from_description, MODEL),
        text_of,
    ),
    "candidates": Protocol(
        phrases, partial(find_candidates, MODEL), lambda value, _: " | ".join(value.texts), wrappers=("any",)
    ),
    "negative": Protocol(
        negatives,
        partial(write_negative, MODEL, kind="object"),
        lambda value, _: " | ".join(item.text for item in value.items),
        wrappers=("any",),
    ),
    "json_choose": Protocol(three_of_fifteen, partial(choose_action_reasons, MODEL), numbers, mode="prompted"),
    "json_categories": Protocol(
        labels, partial(classify_atypicality, MODEL), lambda value, _: " ".join(value.labels), mode="prompted"
    ),
    "json_objects": Protocol(
        things, partial(objects, MODEL), lambda value, _: " | ".join(value.names), mode="prompted"
    ),
    "json_fill": Protocol(
        filled,
        partial(fill_statement, MODEL),
        lambda value, _: f"{value.primary} | {value.secondary}",
        mode="prompted",
    ),
    "json_verdict": Protocol(
        partial(worded, words=("true", "false", "unclear"), subject=JUDGED),
        partial(judge_equivalence, MODEL, form="rubric"),
        lambda value, _: value.value,
        mode="prompted",
        wrappers=("any",),
    ),
}
"""The protocols by name; an answer of which a file of styles is read."""


# ---- The table


@dataclass(frozen=True, slots=True)
class Labelled:
    """One reply and what it says."""

    style: Style
    reply: str
    label: str | None
    contents: Contents


@cache
def replies_of(name: str, enough: int = ENOUGH, folder: Path = FOLDER) -> tuple[Labelled, ...]:
    """At least `enough` labelled replies of a protocol, no two alike, every style once or more; the same every time."""
    protocol = PROTOCOLS[name]
    file = f"{protocol.styles or name}.txt"
    styles = styles_in(folder / file)
    wrappers = [wrapper for wrapper in styles_in(folder / "wrappers.txt") if wrapper.label in protocol.wrappers]
    core = [style for style in styles_in(FOLDER / file) if style.core]
    rng = random.Random(name)
    found: dict[tuple[str, str | None], Labelled] = {}
    unused = dict.fromkeys([*styles, *wrappers])
    for _ in range(MOST_ROUNDS):
        done = len(found) >= enough
        for style in [*unused] if done else [*styles, *wrappers]:
            if style not in unused and not _FIELD.search(style.text):
                continue
            row = _row(style, protocol, rng, core)
            if row is not None:
                unused.pop(style, None)
                found.setdefault((row.reply, row.label), row)
        if done and not unused:
            break
    assert not unused, f"{name}: no contents fill these styles: {[style.text for style in unused]}"
    return tuple(found.values())


def _row(style: Style, protocol: Protocol, rng: random.Random, core: Sequence[Style]) -> Labelled | None:
    """A style filled in, a wrapper with a core style in it; None where the contents drawn lack what it asks for."""
    contents = protocol.draw(rng)
    fields = Drawn(rng, contents.fields)
    label = style.label
    try:
        if "{reply}" in style.text:
            inner = rng.choice(core)
            label, fields["reply"] = inner.label, rendered(inner.text, fields)
            fields["decoy"] = rendered(rng.choice(core).text, Drawn(rng, protocol.draw(rng).fields))
        label = None if label is None else folded(rendered(label, fields))
        return Labelled(style, rendered(style.text, fields), label, contents)
    except Missing:
        return None


@dataclass(frozen=True, slots=True)
class Tally:
    """How the replies of a protocol are read."""

    name: str
    replies: int
    right: int
    misread: tuple[tuple[Labelled, str], ...]
    """Read as something else, with what."""
    unread: tuple[Labelled, ...]
    """Not read, though a reader would know."""
    readable: int

    def __str__(self) -> str:
        share = len(self.unread) / self.readable
        return (
            f"{self.name}: {self.replies} replies, {self.right} right, {len(self.misread)} misread, "
            f"{len(self.unread)} of {self.readable} unread ({share:.1%})"
        )


def tally(name: str, rows: Sequence[Labelled]) -> Tally:
    """Reads every row through the public reader of its protocol."""
    protocol = PROTOCOLS[name]
    misread: list[tuple[Labelled, str]] = []
    unread: list[Labelled] = []
    for row in rows:
        said = protocol.read(row.reply, row.contents)
        if said is None:
            if row.label is not None and row.style.must:
                unread.append(row)
        elif said != row.label:
            misread.append((row, said))
    readable = sum(row.label is not None and row.style.must for row in rows)
    right = len(rows) - len(misread) - len(unread)
    return Tally(name, len(rows), right, tuple(misread), tuple(unread), readable)
