"""The text of a reply without thinking, marks of turns and Markdown, and the JSON in it.

Every reader of replies begins here. `askance.agents.reply_ladder` reads which options a reply chooses.
"""

from __future__ import annotations

import html
import json
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.documents import read_yaml
from askance.nodes.result import Unreadable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

READERS = 6
"""Version of all readers of replies. Raise it whenever any reply is read differently, or is no longer read."""

MOST_TRIED = 100
"""Most places of a reply where JSON seems to begin and does not parse; a reply with more is not read."""

LONGEST_LOOSE = 5_000
"""Most characters of a reply whose JSON may have quotes, constants and commas of Python."""

LONGEST_SENTENCE = 300
"""Most characters of a refusal, or of a text that says there is nothing; a longer text says something else as well."""

_THINKING = re.compile(
    r"<\|?(/?)(?:\w{1,20}:)?(?:think|thinking|thoughts?|reasoning|analysis|scratchpad|reflection)\|?>|[◁\[](/?)think[▷\]]",
    re.IGNORECASE,
)
_CHANNEL = "<|channel|>"
_FINAL_CHANNEL = f"{_CHANNEL}final<|message|>"
_END_OF_TURN = re.compile(
    r"</s>|<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|end_of_turn|return|eos)\|>|<(?:end_of_turn|eos)>"
    r"|<\uff5cend\u2581of\u2581sentence\uff5c>|\[/INST\]",
    re.IGNORECASE,
)
_START_OF_TURN = re.compile(
    r"\s*(?:(?:<s>|<bos>|<\|begin_of_text\|>|\[INST\](?:[\s\S]*?\[/INST\])?)\s*)*(?:<\|(?:start\|>)?assistant(?:\|>)?)?"
    r"(?:<(?:\|im_start\||start_of_turn)>\s*(?:assistant|model)?\s*\n|<\|start_header_id\|>\w*<\|end_header_id\|>)?"
    r"(?:\s*\**assistant\**\s*:\**(?=\s))?",
    re.IGNORECASE,
)

_NEXT_TURN = re.compile(
    r"(?:^|(?<=\S)\s*\n)[ \t]*(?:[#*]{1,4}[ \t]*)?(?:user|human|instructions?|input)\**[ \t]*:|<\|?(?:user|human)\|?>",
    re.IGNORECASE,
)
"""Begins a turn of the user that the model wrote itself."""

_TYPOGRAPHY = {
    **{0xFF01 + place: 0x21 + place for place in range(94)},  # full-width forms
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\ufe0e\ufe0f\u20e3\u00ad")),  # without a width, and keycaps
    **{ord(mark): "'" for mark in "\u2018\u2019\u201a\u2032"},
    **{ord(mark): '"' for mark in "\u201c\u201d\u201e«»\u2033「」『』"},
    **{ord(mark): "-" for mark in "\u2010\u2011\u2012\u2013\u2014\u2212"},
    **{ord(mark): " " for mark in "\u00a0\u2007\u2009\u202f\u3000"},
    **{ord(mark): "\n" for mark in "\u2028\u2029\r"},
    **{ord(mark): plain for mark, plain in zip("、،؛؟।", ",,;?.", strict=True)},
    ord("。"): ".",
    ord("…"): "...",
}
_STRUCK = re.compile(r"~~[^~\n]{1,300}~~|<(?:s|del|strike)>[^<\n]{1,300}</(?:s|del|strike)>", re.IGNORECASE)
_MARKDOWN = re.compile(
    r"^[ \t]*(?:```|~~~)[\w-]*[ \t]*$|^[ \t]*(?:#{1,6}|>+)[ \t]+|[*`]+|__+|(?<!\w)_|_(?!\w)", re.MULTILINE
)
_BOXED = re.compile(r"\${0,2}\\f?boxed\{(?:\\\w+\{)?([^{}\n]*)\}{1,2}\$*")
ANSWER_TAGS = "(?:(?:final_?)?(?:ans|answers?|result|response|choice|selection|output|option|index)|final)"
"""A pattern for the names of tags that stand around an answer."""
_ANSWER_TAG = re.compile(rf"</?{ANSWER_TAGS}>|<\|(?:begin|end)_of_box\|>", re.IGNORECASE)
_BREAK = re.compile(r"<(?:br|hr)\s?/?>|</(?:li|p|div|answer|final_answer|final)>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:b|i|u|em|strong|code|pre|span|p|div|ul|ol|li|h[1-6])>", re.IGNORECASE)


def final_text(text: str) -> str:
    """The text of a reply after the model's thinking, up to the first mark that ends its turn.

    It is empty where the thinking never ends. Any channel of a reply but the final one is thinking.
    """
    text = text.rpartition(_FINAL_CHANNEL)[2].partition(_CHANNEL)[0]
    end = 0
    opened: int | None = None
    pieces: list[str] = []
    for tag in _THINKING.finditer(text):
        if "/" in tag[0]:
            if opened is None:
                pieces.clear()  # the chat template wrote the opening tag, so that all before was thinking
            end, opened = tag.end(), None
        elif opened is None:
            pieces.append(text[end : tag.start()])
            opened = tag.start()
    if opened is None:
        pieces.append(text[end:])
    answer = _START_OF_TURN.sub("", "".join(pieces), count=1)
    ended = next((part for part in _END_OF_TURN.split(answer) if part.strip()), "")
    return _NEXT_TURN.split(ended, maxsplit=1)[0] if ended.strip() else ended


def strip_turn_end(text: str) -> str:
    """`text` without marks at its end that end a turn."""
    end = len(text)
    for mark in reversed([*_END_OF_TURN.finditer(text)]):
        if text[mark.end() : end].strip():
            break
        end = mark.start()
    return text[:end]


def has_turn_marks(text: str) -> bool:
    """Whether a text holds marks of thinking or of turns: a reply that repeats such a text could be cut wrongly."""
    return _THINKING.search(text) is not None or _END_OF_TURN.search(text) is not None or _CHANNEL in text


def plain_text(text: str) -> str:
    """`text` without Markdown, HTML and struck-out words, and with straight quotes, ASCII digits and dashes."""
    characters = html.unescape(text).replace("\r\n", "\n").translate(_TYPOGRAPHY)
    return _TAG.sub("", _BREAK.sub("\n", _MARKDOWN.sub("", _STRUCK.sub(" ", characters)))).strip()


def strip_boxes(text: str) -> str:
    r"""`text` without `\boxed{…}`, `\text{…}` and the dollars around them, and without tags of an answer."""
    return _ANSWER_TAG.sub("\n", _BOXED.sub(lambda box: box[1], text))


@cache
def _prose() -> Mapping[str, list[str]]:
    return read_yaml(Path(__file__).with_name("prose_words.yaml"), what="words")


@cache
def prose_words(kind: str) -> frozenset[str]:
    """The words of `prose_words.yaml` of one kind, such as those that may stand in a heading."""
    return frozenset(_prose()[kind])


@cache
def _refusal() -> re.Pattern[str]:
    return re.compile("|".join(_prose()["refusal"]), re.IGNORECASE)


def is_refusal(text: str) -> bool:
    """Whether a text is no answer: its writer cannot answer, asks back, or reports an error."""
    return len(text) <= LONGEST_SENTENCE and _refusal().search(plain_text(text)) is not None


def says_none(text: str, nouns: Collection[str]) -> bool:
    """Whether a text says only that there are none of `nouns`, as "There is no text in this image." does.

    A text with any other word does not, such as a sign that says "No text while driving".

    Args:
        text: a short text.
        nouns: words for what there may be none of, in lower case.
    """
    words = _WORD.findall(plain_text(text).casefold()) if len(text) <= LONGEST_SENTENCE else []
    if words in (["none"], ["n", "a"], ["nil"], ["nothing"]):
        return True
    denials = prose_words("denial")
    denied = any(word in denials for word in words)
    named = any(noun in words for noun in nouns) or words[:1] == ["none"]
    if not (denied and named and {*words} <= {*prose_words("about"), *denials, *nouns}):
        return False
    the_noun = rf"(?<!of )\bthe (?:{'|'.join(map(re.escape, nouns))})\b"  # "I can't make out the text"
    return re.search(the_noun, " ".join(words)) is None


def answer_lines(text: str, nouns: Collection[str], *, verbatim: bool = False, sentences: bool = False) -> list[str]:
    """The lines of a reply that hold its answer, without introductions, closing words and remarks.

    Bullets, numbers, quotes and emphasis around a line are removed. So are headings ("Objects:"), and sentences that
    stand beside the lines of a list. A JSON list of texts gives its items, also where it is an object's one field.

    Args:
        text: the reply.
        nouns: words for what is listed, in lower case; a heading consists of them.
        verbatim: whether the lines quote text that must stay as it is, even where it looks like a courtesy.
        sentences: whether the answers are sentences themselves; then a sentence behind a heading may be a remark.

    Raises:
        Unreadable: the reply begins like JSON and is not JSON, or it changes its answer afterwards.
    """
    if not verbatim and _EDITED.search(plain_text(final_text(text))):
        raise Unreadable("the answer is changed afterwards; give the last one alone")
    answer = final_text(text)
    if (texts := json_texts(answer)) is not None:
        return [line for text in texts if (line := strip_markup(text))]
    collected: list[str] = []
    headed = introduced = False
    for block in re.split(r"\n\s*\n", _ROW.sub(_cells, strip_boxes(answer).strip())):
        lines = [line.strip() for line in block.splitlines()]
        if len(lines) == 1 and collected:
            remark = is_sentence(block) and (introduced if sentences else not verbatim)
            if remark or _ASIDE.match(plain_text(block)):
                continue
        for line in lines:
            rest = _headless(line, nouns, verbatim=verbatim)
            if rest != line and not headed:
                collected.clear()
            headed = rest != line and bool(rest)
            introduced = introduced or rest != line or bool(_QUOTED.match(line))
            if rest and any(map(str.isalnum, rest)) and not _FENCE.fullmatch(rest):
                collected.append(rest)
    if not (verbatim or sentences or all(map(is_sentence, collected))):
        collected = [line for line in collected if not is_sentence(line)]
    collected = collected if verbatim else [*map(plain_text, collected)]
    collected = _unnumbered(collected)
    numbered = all(_BULLET.match(line) for line in collected)
    return [each for line in collected if (each := strip_markup(line, bullet=numbered or not verbatim))]


def json_texts(answer: str) -> list[str] | None:
    """The texts of the JSON list that a reply is, begins with, or has as its object's one field; None without one.

    Raises:
        Unreadable: the reply is another object, or begins like JSON and is not JSON.
    """
    answer = _ASSIGNED.sub("", answer)
    value: Any = _whole(answer)
    if value is None and answer.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            value = _DECODER.raw_decode(answer.lstrip())[0]
    texts: Any = [*cast("dict[str, Any]", value).values()] if isinstance(value, dict) else [value]
    texts = texts[0] if len(texts) == 1 else None
    whole = isinstance(texts, list) and all(isinstance(item, str) for item in cast("list[Any]", texts))
    if whole and (texts or texts is value):
        return cast("list[str]", texts)
    if isinstance(value, dict) or broken_json(answer):
        raise Unreadable("the reply is neither one list of texts nor plain text; give it anew")
    return None


def _unnumbered(lines: list[str]) -> list[str]:
    """The lines without `Line 1:` and so on before them, where every line has its number."""
    if all((match := _NUMBERED.match(line)) and int(match[1]) == n for n, line in enumerate(lines, 1)):
        return [_NUMBERED.sub("", line) for line in lines]
    return lines


def is_sentence(line: str) -> bool:
    """Whether a line is a sentence by itself, rather than an item of a list."""
    line = plain_text(line)
    return line[:1].isupper() and line[-1:] in ".!?" and any(len(part.split()) > 4 for part in re.split("[,;:]", line))


def _cells(row: re.Match[str]) -> str:
    """The cells of a table's row, its number aside, with semicolons between them; empty for the head of the table."""
    first, *others = [cell.strip() for cell in row["cells"].strip("| \t").split("|")]
    return "" if row["head"] else "; ".join(others if others and first.isdecimal() else [first, *others])


def _headless(line: str, nouns: Collection[str], *, verbatim: bool) -> str:
    """A line without the heading or the courtesy before it; empty where the line is nothing else."""
    plain = plain_text(line)
    sure = _SURE.match(plain)
    rest = plain[sure.end() :] if sure else plain
    label, colon, after = rest.partition(":")
    words = _WORD.findall(label.casefold())
    heads = bool(words) and '"' not in label and len(words) < 16 and {*words} <= {*prose_words("heading"), *nouns}
    belongs = verbatim and bool(after.strip()) and {*words}.isdisjoint(nouns) and not _QUOTED.match(after)
    if heads and colon and not belongs:
        return after.strip()
    if not verbatim and _HERE.fullmatch(rest.strip()):
        return ""
    if heads and (line.startswith("#") or rest.rstrip(" .").casefold() in ("answer", "final answer")):
        return ""
    return rest if sure and not verbatim else line


def strip_markup(line: str, *, bullet: bool = True) -> str:
    """A line without a bullet before it, and without emphasis or quotes around the whole of it."""
    line = line.strip()
    if line[:1].isalpha() and line[-1:].isalnum():
        return line
    if bullet:
        line = _BULLET.sub("", line)
    for _ in range(3):
        line = strip_quotes(_AROUND.sub(r"\2", line))
        if bullet:
            line = _BULLET.sub("", line)
    return line[1:-1].strip() if _SINGLE.fullmatch(line) else line


def strip_quotes(text: str) -> str:
    """`text` without blanks and quotation marks around the whole of it."""
    text = text.strip()
    while len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def json_object(text: str, fields: Collection[str] = ()) -> Mapping[str, Any]:
    """The JSON object that a reply gives; of several, those that have one of `fields` count.

    Where one field is asked for and the reply is only a list, the list stands for the object. Objects that are given as
    an example ("The form is …") or denied ("Not …") do not count. Trailing commas and quotes of Python are read.

    Raises:
        Unreadable: there is no object, there are different ones, or it is taken back.
    """
    stripped = text.strip()
    value = _whole(stripped) if stripped[:1] == "{" else None  # nothing can surround what is JSON as a whole
    if not isinstance(value, dict):
        answer = final_text(text)
        value = _whole(answer)
        if isinstance(value, list) and len(fields) == 1:
            return dict.fromkeys(fields, cast("list[Any]", value))
        if not isinstance(value, dict):
            value = _object_among(answer, fields) or _object_among(_strict(answer), fields)
    if value is None:
        raise Unreadable("the reply is not one JSON object")
    return cast("Mapping[str, Any]", value)


def whole_json(text: str) -> list[Any] | dict[str, Any] | None:
    """The JSON list or object that a reply is, with or without a code fence around it; None where it is neither.

    Raises:
        Unreadable: a field of an object stands twice with different values.
    """
    value = _whole(final_text(text))
    return cast("list[Any] | dict[str, Any]", value) if isinstance(value, (list, dict)) else None


def broken_json(text: str) -> bool:
    """Whether a reply begins like JSON and is not whole, such as one that was cut off."""
    return re.match(r"\s*(?:```\w*\s*)?(?:\[\s*[\"{]|\{\s*\")", text) is not None and _whole(text) is None


def _whole(text: str) -> Any:
    """The value of a text that is JSON as a whole, with or without a code fence; None for any other text."""
    text = text.strip()
    if text[:1] not in _BEGINS:
        return None
    if fenced := _FENCED.fullmatch(text):
        text = (fenced[1] or fenced[2] or "").strip()
    if text[:1] not in _BRACKETS:
        return None
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        with suppress(ValueError, RecursionError):
            return _DECODER.decode(_strict(text))
    return None


def _object_among(text: str, fields: Collection[str]) -> Mapping[str, Any] | None:
    """The object that a text gives among other words; None where there is none."""
    objects = [*_objects(text)]
    with_field = [each for each in objects if not each[2].keys().isdisjoint(fields)] or objects[-1:]
    candidates = [
        (end, data)
        for begin, end, data in with_field
        if not _NOT_MEANT.search(text[max(0, begin - 60) : begin]) and not _AN_EXAMPLE.match(text[end : end + 60])
    ]
    if not candidates:
        return None
    end, last = candidates[-1]
    if any(data != last for _, data in candidates) or _TAKEN_BACK.match(text[end : end + 60]):
        raise Unreadable("different JSON objects are given, or one is taken back; give one object and nothing else")
    return last


def _objects(text: str) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """The outermost objects in a text, in order: begin, end and value of each."""
    end = tried = 0
    for begin in _OBJECT.finditer(text):
        if begin.start() < end:
            continue
        try:
            value, end = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            tried += 1
            if tried > MOST_TRIED:
                raise Unreadable("the reply is not one JSON object") from None
        else:
            yield begin.start(), end, value


def _strict(text: str) -> str:
    """`text` with quotes, constants and commas of Python as JSON writes them; empty where it is too long for that."""
    if len(text) > LONGEST_LOOSE:
        return ""

    def strict(part: re.Match[str]) -> str:
        if part["text"] is not None:
            return json.dumps(part["text"].replace("\\'", "'"))
        return _CONSTANTS.get(part[0], "" if part[0] == "," else part[0])

    return _PYTHON.sub(strict, text)


_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_BULLET = re.compile(r"^(?:[-*•·▪●◦‣▸►∙→➤>\u2013\u2014]\s+|[\(*]*\d{1,2}[.)]\**\s+)+")
_AROUND = re.compile(r"(\*{1,3}|_{1,2}|`)(?!\s)((?:(?!\1).)+)(?<!\s)\1(?=[.,;]?$)")
_SINGLE = re.compile(r"'(?:[^']|(?<=\w)'(?=\w))+'")
_ASSIGNED = re.compile(r"^\s*[A-Za-z]\w{0,30}\s*=\s*(?=\[)")
"""The name in `objects = ["cup", "bottle"]`."""
_EDITED = re.compile(r"\n[^\w\n]{0,9}(?:edit(?:ed)?|update|correction)\s?\d?\s?:", re.IGNORECASE)
_NUMBERED = re.compile(r"line (\d{1,3}): ?(?=\S)", re.IGNORECASE)
_HERE = re.compile(r"(?:here(?:'s| is| are)|below (?:is|are)|these are)\b[^:]{0,80}:", re.IGNORECASE)
_FENCE = re.compile(r"`{3}\w*|[-*_~=|:\s]+")
_QUOTED = re.compile(r"\s*[\"“'‘«`]")
_ROW = re.compile(r"^[ \t]*\|(?P<cells>.*)$(?P<head>\n[ \t]*\|[-:| \t]+$)?", re.MULTILINE)
_SURE = re.compile(
    r"(?:sure|certainly|of course|okay|absolutely|alright|great)(?: thing)?\s*(?:[!.,:]\s*|$)", re.IGNORECASE
)
_ASIDE = re.compile(
    r"\(?(?:let me|i hope|hope (?:this|that)|feel free|is there|please let|would you|do you|if you|note\b|"
    r"explanation|reason(?:ing)?|"
    r"these|this|those|in this|the (?:rest|remaining|other))\b",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`", "«": "»"}


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs) and any(fields[name] != value for name, value in pairs):
        raise Unreadable("a field of the JSON object stands twice; give each field once")
    return fields


_BRACKETS = ("[", "{")
_BEGINS = (*_BRACKETS, "`")
_FENCED = re.compile(r"`{3}\w*\s*\n(.*?)\n?\s*`{3}|`([^`]+)`", re.DOTALL)
_OBJECT = re.compile(r"\{(?=\s*[\"}])")
_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_once)
_CONSTANTS = {"None": "null", "True": "true", "False": "false"}
_PYTHON = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|(?<=[\[{,:\s])'(?P<text>(?:[^\\\n]|\\.){0,2000}?)'(?=\s*[,:\]}])|,(?=\s*[}\]])|\b(?:None|True|False)\b"
)
_NOT_MEANT = re.compile(
    r"(?:\b(?:not|never|instead of|rather than)|\b(?:form|format|schema|template|example)\b[^.{}]{0,30})[^\w.]{0,8}$",
    re.IGNORECASE,
)
_AN_EXAMPLE = re.compile(r"\W{0,4}(?:is|was) (?:the|an?|only|just|not|wrong)\b", re.IGNORECASE)
_TAKEN_BACK = re.compile(
    r"[`\W]{0,8}(?:no|wait|actually|sorry|correction|scratch|(?-i:or)|rather|instead|i mean)\b", re.IGNORECASE
)
