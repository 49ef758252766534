"""The samples of a YAML task: rows of a table with their pictures, or a folder of pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from types import UnionType
from typing import TYPE_CHECKING, Any, Protocol, cast

from askance.agents import check_options
from askance.amounts import many
from askance.chat import key_of
from askance.data_table import as_list, names_data_table, open_data_table, open_json_lines, picture_file, picture_in
from askance.documents import UnreadableDocument, parse_json
from askance.errors import BadData, BadOptions, UsageError
from askance.evals.sample import EXAMPLES, Sample
from askance.evals.suite.answer_match import MatchName, check_true, folded
from askance.images import SUFFIXES, Image
from askance.nodes.example import examples_of
from askance.registry import near

if TYPE_CHECKING:
    from askance.chains import Chain, Link
    from askance.data_table import DataRow, DataTable
    from askance.evals.yaml_scorer import ScoreName
    from askance.nodes import Example

MOST_HELD = 4_000_000_000
"""Most bytes of pictures that stand in a table itself, and so are held in memory."""

QUESTION = "question"
"""Key of a row of the chain `ask`: what is asked about its picture."""

KEYS = ("id", "image", "options", "target", "group", "tags", EXAMPLES)
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

    @property
    def question(self) -> str | None:
        """What is asked about rows that have no `question`."""
        ...

    @property
    def prompt(self) -> str | None:
        """A prompt of the user's own, which may hold its question itself."""
        ...

    @property
    def first_option(self) -> int:
        """The number of the first option in a target."""
        ...

    @property
    def columns(self) -> Mapping[str, str | tuple[str, ...]]:
        """By key of a row, the column of a table that holds it, or several."""
        ...


class Rows:
    """Reads the samples of a declaration.

    Args:
        wanted: the declaration.
        chain: the chain of the task. Links that a row gives are not asked.
        allowed: folders that pictures may lie in, beside that of the table.
    """

    def __init__(self, wanted: Wanted, chain: Chain, allowed: Sequence[Path] = ()) -> None:
        self._allowed = allowed
        self._wanted = wanted
        self._chain = chain
        self._links = [link for link in chain.links.values() if not link.chooses]
        self._asks = chain.name == "ask"
        self._keys = (*KEYS, *((QUESTION,) if self._asks else ()), *(link.name for link in self._links))
        self._held = 0
        self._rows_of: Counter[str] = Counter()
        """How many rows have named a picture so far; a second row without an `id` is called `NAME#2`."""

    def read(self, source: str | Path, *, first: int | None = None) -> list[Sample]:
        """The samples of a table, or of a folder of pictures.

        Args:
            source: what `askance.data_table` opens, a file of JSON lines of any name, or a folder of pictures.
            first: how many rows of a data set of Hugging Face are read; None reads all.

        Raises:
            BadData: there is no such place, it has no samples, or a row is malformed; the message names file and line.
            MissingExtra: the library that reads the table is not installed.
        """
        named, path = str(source), Path(source)
        known = names_data_table(named)
        if not known and path.is_dir():
            return self._of_folder(path)
        offline, stream = self._chain.mode == "replay", first is not None
        table = open_data_table(named, offline=offline, stream=stream) if known else open_json_lines(path)
        self._check_columns()
        self._held = 0
        self._rows_of.clear()
        if not known or path.suffix.lower() in _LINES:
            return [self._sample(row, where, table.home) for where, row in self._lines(table)]
        return [self._sample(row, where, table.home) for where, row in islice(self._cells(table), first)]

    def _check_columns(self) -> None:
        unknown = [key for key in self._wanted.columns if key not in self._keys]
        if unknown:
            raise BadData(
                f"`columns` names `{unknown[0]}`, which a row does not have.",
                hint=f"{near(unknown[0], self._keys)}A row has {', '.join(self._keys)}.",
            )

    def _lines(self, table: DataTable) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The rows of JSON lines: any of them may have a key that the first has not."""
        columns = self._wanted.columns
        if not columns:
            yield from ((row.where, self._checked(row)) for row in table.rows())
            return
        unseen = {column for _, column in _pairs(columns)}
        for row in table.rows():
            unseen -= row.keys()
        if unseen:
            raise BadData(
                f"{table.source!r} has {min(unseen)!r} in no row.",
                hint=f"Its first row has {', '.join(map(repr, table.columns))}.",
            )
        for row in table.rows():
            own = {key: row[key] for key in self._keys if key in row and key not in columns}
            yield row.where, _typed({**own, **_joined(row, columns, {name: name for name in row})}, row.number)

    def _checked(self, row: DataRow) -> Mapping[str, Any]:
        unknown = [name for name in row if name not in self._keys]
        if unknown:
            raise BadData(
                f"{row.where}: `{unknown[0]}` is not known.",
                hint=f"A row has {', '.join(self._keys)}. What is called otherwise is named under `columns`.",
            )
        return row

    def _cells(self, table: DataTable) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The rows of a table whose columns are known: those that are named, and those that have a key's own name."""
        columns = self._wanted.columns
        own = {key: key for key in self._keys if key in table.columns and key not in columns}
        places = {column: f"column {column}" for _, column in _pairs(columns)}
        for row in table.rows({**own, **{place: column for column, place in places.items()}}):
            cells = {**{key: row[key] for key in own if key in row}, **_joined(row, columns, places)}
            yield row.where, _typed(cells, row.number)

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

    def _sample(self, row: Mapping[str, Any], where: str, home: Path | None) -> Sample:
        for name, kind in _TYPES.items():
            if name in row and not isinstance(row[name], kind):
                raise BadData(f"{where}: `{name}` is {row[name]!r}.", hint=f"It is {_WORDS.get(kind, 'a text')}.")
        options = self._options(row, where)
        links = {link.name: _given(link, row[link.name], where) for link in self._links if link.name in row}
        if "image" not in row and not links:
            raise BadData(
                f"{where} names no `image`, and nothing that stands for it.",
                hint="`columns: {image: NAME}` says which column has the pictures; or give a link. "
                f"The row has {', '.join(map(repr, row)) or 'nothing'}.",
            )
        if not row.keys() & {"id", "image"}:
            raise BadData(f"{where} has no `id`.", hint="A row without an `image` needs one.")
        image = self._image(row["image"], home, where) if "image" in row else None
        named = row["image"] if isinstance(row.get("image"), str) else ""
        shown = self._examples(row[EXAMPLES], home, where) if EXAMPLES in row else ()
        self._rows_of[named] += 1
        again = f"#{self._rows_of[named]}" if self._rows_of[named] > 1 else ""
        return Sample(
            id=row.get("id") or f"{named}{again}",
            image=image,
            inputs={
                **({} if options is None else {"options": list(options)}),
                **self._question(row, where),
                **links,
                **({EXAMPLES: list(shown)} if shown else {}),
            },
            target=self._target(row.get("target"), options or (), where),
            group=row.get("group", named),
            tags=row.get("tags", {}),
        )

    def _question(self, row: Mapping[str, Any], where: str) -> Mapping[str, str]:
        question = row.get(QUESTION)
        if question is not None and question.strip():
            return {QUESTION: question}
        if self._asks and self._wanted.question is None and self._wanted.prompt is None:
            raise BadData(
                f"{where}: nothing is asked.",
                hint="Give the row a `question`, write one for all rows into the task's file, or name a `prompt`.",
            )
        return {}

    def _image(self, picture: str | _Picture, home: Path | None, where: str) -> Image:
        """The picture that stands in a row, or lies beside the file; a name that leads out of its folder is refused."""
        if isinstance(picture, str):
            return _image(picture, home, where, allowed=self._allowed)
        self._held += len(picture.data)
        if self._held > MOST_HELD:
            raise BadData(
                f"{where}: with this one there are more than {MOST_HELD:,} bytes of pictures in the table.",
                hint="Save the pictures as files and name those, or give the data in several tables.",
            )
        return Image.from_bytes(picture.data, name=picture.name or None)

    def _examples(self, listed: Any, home: Path | None, where: str) -> tuple[Example, ...]:
        """The examples of a row; their pictures lie beside the file, as its own does."""
        if not self._chain.shows_examples:
            raise BadData(f"{where}: the chain `{self._chain.name}` shows no `examples`.", hint="Leave them out.")
        rows = as_list(listed)
        forms = listed if rows is None else [_beside(each, home, where, allowed=self._allowed) for each in rows]
        try:
            return examples_of(forms)
        except UsageError as error:
            raise BadData(f"{where}: {error.message}", hint=error.hint) from error

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
                return _numbers(_several(target, where), options, where, first=self._wanted.first_option)
            case "labels":
                return self._labels(_several(target, where, empty=True), where)
            case "none":
                return target
            case "judge":
                return [str(each) for each in _several(target, where)]
            case name:
                return self._texts(name, [str(each) for each in _several(target, where)], where)

    def _texts(self, name: MatchName, texts: list[str], where: str) -> list[str]:
        """The true answers of a comparison of texts."""
        if (wrong := check_true(name, texts)) is not None:
            raise BadData(f"{where}: `target` does not go with `score: {name}`: {wrong}.", hint="Mend it.")
        return self._labels(texts, where) if self._wanted.labels else texts

    def _labels(self, target: Sequence[Any], where: str) -> list[str]:
        known = {folded(label): label for label in self._wanted.labels}
        for each in target:
            if folded(str(each)) not in known:
                raise BadData(
                    f"{where}: `target` {each!r} is no label.", hint=f"Labels: {', '.join(self._wanted.labels)}."
                )
        return sorted({known[folded(str(each))] for each in target})


def told_equal(samples: Sequence[Sample]) -> tuple[str, ...]:
    """A note on rows that say the same as an earlier one: of the same picture the same question and answer."""
    seen = set[str]()
    equal: list[str] = []
    for sample in samples:
        picture = None if sample.image is None else str(sample.image.path or sample.image.sha256)
        asked = {name: value for name, value in sample.inputs.items() if name != EXAMPLES}
        key = key_of("row", {"picture": picture, "asked": asked, "target": sample.target})
        if key in seen:
            equal.append(sample.id)
        seen.add(key)
    if not equal:
        return ()
    rows = f"{many(len(equal), 'row')} of {len(samples):,} {'is' if len(equal) == 1 else 'are'} equal to an earlier one"
    return (f"{rows} (picture, question and answer), such as {equal[0]!r}; each counts as often as it stands there",)


_LISTS = frozenset({"options", "target", "tags", EXAMPLES})
"""Keys whose values may be the text of a list or a map."""
_LINES = frozenset({".jsonl", ".ndjson"})
_WORDS: Mapping[type | UnionType, str] = {dict: "a map"}


@dataclass(frozen=True, slots=True)
class _Picture:
    """A picture that stands in a table."""

    data: bytes
    name: str
    """Of the file that it was; empty where that is not known."""


_TYPES: Mapping[str, type | UnionType] = {"id": str, "image": str | _Picture, "group": str, "tags": dict, QUESTION: str}


def _pairs(columns: Mapping[str, str | tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Each key with each of its columns."""
    for key, named in columns.items():
        for column in (named,) if isinstance(named, str) else named:
            yield key, column


def _joined(row: DataRow, columns: Mapping[str, str | tuple[str, ...]], places: Mapping[str, str]) -> Mapping[str, Any]:
    """The keys that stand in columns of other names; several columns are a list, and as `tags` a map by column.

    Args:
        row: of the table.
        columns: by key, which.
        places: by column, its name in the row.
    """
    joined: dict[str, Any] = {}
    for key, named in columns.items():
        several = (named,) if isinstance(named, str) else named
        cells = {column: row[places[column]] for column in several if places.get(column) in row}
        if cells:
            values = [*cells.values()]
            joined[key] = values[0] if isinstance(named, str) else cells if key == "tags" else values
    return joined


def _typed(row: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """A row of somebody's table in the types of a row: numbers as names, lists and maps that are texts, pictures.

    What has neither a name nor the name of a picture goes by its number.
    """
    typed = {key: _of_text(cell) if key in _LISTS else cell for key, cell in row.items()}
    for key in ("id", "group"):
        if isinstance(typed.get(key), int):
            typed[key] = str(typed[key])
    if "image" in typed:
        image, data = typed["image"], picture_in(typed["image"])
        path = cast("Mapping[str, Any]", image).get("path") if isinstance(image, Mapping) else None
        name = PurePosixPath(path).name if isinstance(path, str) else ""
        typed["image"] = _Picture(data, name) if isinstance(data, bytes) else image if data is None else data
    if "id" not in typed and not isinstance(typed.get("image"), str):
        typed["id"] = str(number)
    return typed


def _of_text(cell: Any) -> Any:
    """A cell, or the list or map of JSON that its text is."""
    listed = as_list(cell)
    if listed is not None or not isinstance(cell, str) or not cell.lstrip().startswith("{"):
        return cell if listed is None else listed
    with suppress(UnreadableDocument):
        return parse_json(cell)
    return cell


def _image(name: str, home: Path | None, where: str, *, allowed: Sequence[Path]) -> Image:
    """The picture beside the file; a name that leads out of its folder is refused."""
    if "://" in name:
        raise BadData(
            f"{where}: `image` is an address: {name[:200]!r}.", hint="Save the pictures, and name their files."
        )
    return Image.from_path(picture_file(name, home, where, allowed=allowed), name=name)


def _beside(example: Any, home: Path | None, where: str, *, allowed: Sequence[Path]) -> Any:
    """An example of a row with its picture in the place of its name."""
    if not isinstance(example, Mapping) or "image" not in example:
        return cast("Any", example)
    form = cast("Mapping[str, Any]", example)
    if not isinstance(form["image"], str):
        raise BadData(f"{where}: the `image` of an example is {form['image']!r}.", hint="It is the name of a file.")
    return {**form, "image": _image(form["image"], home, where, allowed=allowed)}


def _given(link: Link[Any], value: Any, where: str) -> Any:
    try:
        link.value(value)
    except UsageError as error:
        raise BadData(f"{where}: {error.message}", hint=error.hint) from error
    return value


def _numbers(target: Sequence[Any], options: Sequence[str], where: str, *, first: int) -> list[int]:
    """Numbers of the right options, from 1; they may be given by their texts, and numbers as texts.

    Args:
        target: what is right.
        options: what there is to choose from.
        where: the place, for messages.
        first: the number that the target has for the first option.
    """
    known: Mapping[Any, Any] = {option: number for number, option in enumerate(options, start=first)}
    named = [known.get(each, each) for each in target if not isinstance(each, (list, dict))]
    numbers = [_number(each) for each in named]
    wrong = [each for each, number in zip(named, numbers, strict=True) if not first <= number < first + len(options)]
    if wrong or len(numbers) < len(target):
        raise BadData(
            f"{where}: `target` {(wrong or target)[0]!r} is none of the {len(options)} options.",
            hint=f"Give numbers, counted from {first}, or the texts of options. "
            f"`first_option: {1 - first}` in the task's file says that they are counted from {1 - first}.",
        )
    return sorted({number + 1 - first for number in numbers})


def _number(target: Any) -> int:
    """A number, also one that is a text; -1 for what is none."""
    if isinstance(target, str) and target.isascii() and target.isdecimal() and len(target) < 9:
        return int(target)
    return target if type(target) is int else -1


def _several(target: Any, where: str, *, empty: bool = False) -> list[Any]:
    """The right answers, one or several, as a list."""
    values: list[Any] = list(cast("list[Any]", target)) if isinstance(target, list) else [target]
    if target is None or (not values and not empty):
        raise BadData(f"{where} names no `target`, what is right.", hint="Give one, or set `score: none`.")
    return values
