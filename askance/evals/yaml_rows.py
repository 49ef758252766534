"""The samples of a YAML task: rows of a JSONL file with pictures beside it, or a folder of pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from askance.agents import check_options
from askance.errors import BadData, BadOptions, UsageError
from askance.evals.sample import Sample
from askance.evals.yaml_scorer import folded
from askance.images import SUFFIXES, Image

if TYPE_CHECKING:
    from askance.chains import Chain, Link
    from askance.evals.yaml_scorer import ScoreName

MOST_LINE = 1_000_000
"""Most characters of a line."""
MOST_ROWS = 1_000_000

KEYS = ("id", "image", "options", "target", "group", "tags")
"""Keys of a row, beside the links of the chain."""


class Wanted(Protocol):
    """The part of a declaration that decides how rows are read."""

    @property
    def score(self) -> ScoreName:
        """How answers are scored; it decides the form of a target."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """The closed set of answers."""
        ...

    @property
    def options(self) -> tuple[str, ...]:
        """Options for rows that have none of their own."""
        ...


class Rows:
    """Reads the samples of a declaration.

    Args:
        wanted: the declaration.
        chain: the chain of the task. Links that a row gives are not asked.
    """

    def __init__(self, wanted: Wanted, chain: Chain) -> None:
        self._wanted = wanted
        self._chain = chain
        self._links = [link for link in chain.links.values() if not link.chooses]

    def read(self, place: Path) -> list[Sample]:
        """The samples of a JSONL file, or of a folder of pictures.

        Raises:
            BadData: there is no such place, it has no samples, or a row is malformed; the message names file and line.
        """
        if place.is_dir():
            return self._of_folder(place)
        keys = (*KEYS, *(link.name for link in self._links))
        return [self._sample(row, where, place.parent) for where, row in _rows(place, keys)]

    def _of_folder(self, place: Path) -> list[Sample]:
        images = sorted(each for each in place.iterdir() if each.suffix.lower() in SUFFIXES and each.is_file())
        if not images:
            looked = ", ".join(sorted(SUFFIXES))
            raise BadData(f"There are no images in the folder {str(place)!r}.", hint=f"Looked for {looked}.")
        if self._wanted.score != "none":
            raise BadData(
                f"A folder of images says nothing of what is right, and `score: {self._wanted.score}` needs it.",
                hint='Write a JSONL file with lines such as {"image": "a.jpg", "target": …}, or set `score: none`.',
            )
        return [self._sample({"image": each.name}, repr(str(each)), place) for each in images]

    def _sample(self, row: Mapping[str, Any], where: str, home: Path) -> Sample:
        for name, kind in _TYPES.items():
            if name in row and not isinstance(row[name], kind):
                raise BadData(f"{where}: `{name}` is {row[name]!r}.", hint=f"It is {_WORDS[kind]}.")
        options = self._options(row, where)
        given = {link.name: _given(link, row[link.name], where) for link in self._links if link.name in row}
        if "image" not in row and not given:
            raise BadData(f"{where} names no `image`, and nothing that stands for it.", hint="Give `image`, or a link.")
        if not row.keys() & {"id", "image"}:
            raise BadData(f"{where} has no `id`.", hint="A row without an `image` needs one.")
        return Sample(
            id=row.get("id") or row["image"],
            image=_image(row["image"], home, where) if "image" in row else None,
            inputs={**({} if options is None else {"options": list(options)}), **given},
            target=self._target(row.get("target"), options or (), where),
            group=row.get("group", row.get("image", "")),
            tags=row.get("tags", {}),
        )

    def _options(self, row: Mapping[str, Any], where: str) -> tuple[str, ...] | None:
        if not self._chain.target.chooses:
            if "options" in row:
                raise BadData(f"{where}: the chain `{self._chain.name}` takes no `options`.", hint="Leave them out.")
            return None
        options = row.get("options", self._wanted.options or None)
        if not isinstance(options, (list, tuple)):
            raise BadData(
                f"{where} has no `options` to choose from.", hint="Give a list of texts, here or for all rows."
            )
        try:
            return check_options(cast("list[Any]", options))
        except BadOptions as error:
            raise BadData(f"{where}: {error.message}", hint=error.hint) from error

    def _target(self, target: Any, options: Sequence[str], where: str) -> Any:
        """The target in the form that the scorer compares."""
        match self._wanted.score:
            case "choice":
                return _numbers(_several(target, where), options, where)
            case "labels":
                return self._labels(_several(target, where, empty=True), where)
            case "exact":
                texts = [str(each) for each in _several(target, where)]
                return self._labels(texts, where) if self._wanted.labels else texts
            case "none":
                return target

    def _labels(self, target: Sequence[Any], where: str) -> list[str]:
        known = {folded(label): label for label in self._wanted.labels}
        for each in target:
            if folded(str(each)) not in known:
                raise BadData(
                    f"{where}: `target` {each!r} is no label.", hint=f"Labels: {', '.join(self._wanted.labels)}."
                )
        return sorted({known[folded(str(each))] for each in target})


_TYPES: Mapping[str, type] = {"id": str, "image": str, "group": str, "tags": dict}
_WORDS: Mapping[type, str] = {str: "a text", dict: "a map"}


def _rows(path: Path, keys: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each row with its file and line."""
    count = 0
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as lines:
            number = 0
            while text := lines.readline(MOST_LINE + 1):
                number += 1
                where = f"{str(path)!r}, line {number}"
                if len(text) > MOST_LINE:
                    raise BadData(f"{where} is longer than {MOST_LINE:,} characters.", hint="Give a row a line.")
                if text.strip():
                    count += 1
                    yield where, _row(text, where, keys)
                if count > MOST_ROWS:
                    raise BadData(
                        f"{str(path)!r} has more than {MOST_ROWS:,} rows.", hint="Give the data in several files."
                    )
    except OSError as error:
        raise BadData(f"The data {str(path)!r} cannot be read: {error.strerror}.", hint="Check `data`.") from error
    except UnicodeDecodeError as error:
        raise BadData(f"The data {str(path)!r} are not UTF-8 text.", hint="Save them as UTF-8.") from error
    if not count:
        raise BadData(f"The data {str(path)!r} hold no row.", hint="Write a JSON object a line.")


_LIKE = 'A row reads like {"image": "a.jpg", "target": 1}.'


def _row(text: str, where: str, keys: Sequence[str]) -> Mapping[str, Any]:
    try:
        row: Any = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadData(
            f"{where} is not JSON: {error}.", hint='A row reads like {"image": "a.jpg", "target": 1}.'
        ) from error
    if not isinstance(row, dict):
        raise BadData(f"{where} is no JSON object.", hint=_LIKE)
    found = cast("dict[str, Any]", row)
    unknown = [name for name in found if name not in keys]
    if unknown:
        raise BadData(f"{where}: `{unknown[0]}` is not known.", hint=f"A row has {', '.join(keys)}.")
    return {name: value for name, value in found.items() if value is not None}


def _no_number(name: str) -> float:
    raise ValueError(name)


def _image(name: str, home: Path, where: str) -> Image:
    """The picture beside the file; a name that leads out of the folder is refused."""
    place = home / name
    if Path(name).is_absolute() or not place.resolve().is_relative_to(home.resolve()):
        raise BadData(
            f"{where}: `image` leads out of the folder of its file: {name!r}.", hint="Put the images beside it."
        )
    return Image.from_path(place, name=name)


def _given(link: Link[Any], value: Any, where: str) -> Any:
    try:
        link.value(value)
    except UsageError as error:
        raise BadData(f"{where}: {error.message}", hint=error.hint) from error
    return value


def _numbers(target: Sequence[Any], options: Sequence[str], where: str) -> list[int]:
    """Numbers of the right options, from 1; a row may give their texts instead."""
    known: Mapping[Any, Any] = {option: number for number, option in enumerate(options, start=1)}
    found = [known.get(each, each) for each in target if not isinstance(each, (list, dict))]
    wrong = [each for each in found if type(each) is not int or not 1 <= each <= len(options)]
    if wrong or len(found) < len(target):
        raise BadData(
            f"{where}: `target` {(wrong or target)[0]!r} is none of the {len(options)} options.",
            hint="Give numbers, counted from 1, or the texts of options.",
        )
    return sorted(set(found))


def _several(target: Any, where: str, *, empty: bool = False) -> list[Any]:
    """The right answers, one or several, as a list."""
    found: list[Any] = list(cast("list[Any]", target)) if isinstance(target, list) else [target]
    if target is None or (not found and not empty):
        raise BadData(f"{where} names no `target`, what is right.", hint="Give one, or set `score: none`.")
    return found
