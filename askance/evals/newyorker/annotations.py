"""Descriptions of cartoons: where it is, what is seen, what is odd, and the Wikipedia articles that it takes to know.

Three people described each cartoon and said what is odd in it; two others named the place and the articles. What one
person wrote stays together, so that a cartoon has six valid descriptions and not 36 (appendix C of the paper).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

from askance.errors import BadData
from askance.evals.suite.files import DataFile, Problems, noting

MEND = "Fetch the file again; `askance data check newyorker DIR` lists every such place."

NO_FINALISTS = "UNKNOWN"
"""What the file says where the finalists of a contest are not known."""
_LINKS = ("link_1", "link_2", "link_3")
_QUESTIONS = ("question_1", "question_2")


@dataclass(frozen=True, slots=True, kw_only=True)
class CartoonAnnotation:
    """One valid description of a cartoon."""

    location: str
    description: str
    uncanny: str
    """What is unusual in the scene."""
    entities: tuple[str, ...] = ()
    """Names of Wikipedia articles, two or three."""
    questions: tuple[str, ...] = ()
    """What the annotator would ask about the scene, one or two; the paper does not use them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedCartoon:
    """A cartoon in a file of descriptions."""

    annotations: tuple[CartoonAnnotation, ...]
    """All that are valid: each description with each place, in the order of the file."""
    finalists: tuple[str, ...]
    """Those that are known, as they stand in the file."""
    finalist_is_nan: bool = False
    """Whether the file has NaN in the place of a finalist, who is left out."""


def read_annotations(file: DataFile, problems: Problems | None = None) -> dict[int, DescribedCartoon]:
    """The cartoons of a file of descriptions, by contest.

    Args:
        file: `all_newyorker_contest_annotations.json`, or that of a fold; it may hold NaN, which is no JSON.
        problems: takes the errors of single cartoons, which are then left out; without it the first error is raised.

    Raises:
        BadData: the file cannot be read, or a cartoon is not as it should be.
    """
    where = f"The file {str(file)!r}"
    cartoons: dict[int, DescribedCartoon] = {}
    for key, form in mapping_in(file.json(problems, nan_is_null=True), where).items():
        here = f"{where}, contest {key[:20]!r}"
        with noting(problems):
            entry = mapping_in(form, here)
            contest = count_in(entry.get("contest_number"), f"{here}, 'contest_number'")
            if str(contest) != key:
                raise BadData(f"{here}: its 'contest_number' is {contest}.", hint=MEND)
            names = _finalists(entry.get("official_newyorker_finalists"), here)
            cartoons[contest] = DescribedCartoon(
                annotations=tuple(_valid(mapping_in(entry.get("mturk_annotations"), here), here)),
                finalists=tuple(name for name in names if name is not None),
                finalist_is_nan=None in names,
            )
    return cartoons


def _valid(annotations: Mapping[str, Any], where: str) -> Iterator[CartoonAnnotation]:
    links = annotations.get("link_hit", annotations.get("links_hit"))  # the file, and what its documentation says
    places = [mapping_in(each, f"{where}, 'link_hit'") for each in list_in(links, f"{where}, 'link_hit'")]
    texts = list_in(annotations.get("description_hit"), f"{where}, 'description_hit'")
    if not texts or not places:
        raise BadData(f"{where} has no description or no place.", hint=MEND)
    for text in texts:
        row = mapping_in(text, f"{where}, 'description_hit'")
        for place in places:
            yield annotation_of(
                {
                    **{name: row.get(name) for name in ("image_description", "image_uncanny_description")},
                    "image_location": place.get("image_location"),
                    "entities": [place[name] for name in _LINKS if place.get(name) is not None],
                    "questions": [row[name] for name in _QUESTIONS if row.get(name) is not None],
                },
                where,
            )


def _finalists(value: object, where: str) -> list[str | None]:
    if value is None or value == NO_FINALISTS:
        return []
    names = list_in(value, f"{where}, 'official_newyorker_finalists'")
    return [None if name is None else text_in(name, f"{where}, 'official_newyorker_finalists'") for name in names]


def annotation_of(row: Mapping[str, Any], where: str) -> CartoonAnnotation:
    """The description in a row of a task, as the hub has it.

    Raises:
        BadData: a field is missing or no text.
    """
    texts = {
        field: text_in(row.get(column), f"{where}, {column!r}").strip()
        for field, column in (
            ("location", "image_location"),
            ("description", "image_description"),
            ("uncanny", "image_uncanny_description"),
        )
    }
    lists = {
        column: [
            text_in(each, f"{where}, {column!r}") for each in list_in(row.get(column) or [], f"{where}, {column!r}")
        ]
        for column in ("entities", "questions")
    }
    return CartoonAnnotation(
        **texts, entities=tuple(filter(None, map(entity_name, lists["entities"]))), questions=tuple(lists["questions"])
    )


@lru_cache(10_000)
def entity_name(link: str) -> str:
    """The name of the article that a link leads to: `Fireman's carry`.

    Links come with a section (`#Players`), as a query (`?title=Office_worker&redirect=no`), with bytes in percent, to
    another wiki, or to a page that tells names apart, which says so in its own. A text that is no link is the name.
    """
    try:
        parts = urlsplit(link.strip())
        titles = parse_qs(parts.query).get("title")
    except ValueError:  # no address: a bracket that is not closed, or endless fields
        return link.strip()
    name = titles[0] if titles else unquote(parts.path.removeprefix("/wiki/").strip("/")) if parts.netloc else link
    return " ".join(name.replace("(disambiguation)", "").replace("_", " ").split())


# --- values of JSON and Arrow ----------------------------------------------------------------------------------------


def text_in(value: object, where: str) -> str:
    """A text that is not blank.

    Raises:
        BadData: it is none.
    """
    if not isinstance(value, str) or not value.strip():
        raise BadData(f"{where} is {_shown(value)}, not a text.", hint=MEND)
    return value


def count_in(value: object, where: str) -> int:
    """A whole number, not below zero.

    Raises:
        BadData: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadData(f"{where} is {_shown(value)}, not a number of a contest or a count.", hint=MEND)
    return value


def mapping_in(value: object, where: str) -> Mapping[str, Any]:
    """A JSON object.

    Raises:
        BadData: it is none.
    """
    if not isinstance(value, dict):
        raise BadData(f"{where} is {_shown(value)}, not a JSON object.", hint=MEND)
    return cast("dict[str, Any]", value)


def list_in(value: object, where: str) -> Sequence[Any]:
    """A list.

    Raises:
        BadData: it is none.
    """
    if not isinstance(value, list):
        raise BadData(f"{where} is {_shown(value)}, not a list.", hint=MEND)
    return cast("list[Any]", value)


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)[:60]
