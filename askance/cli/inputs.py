"""The pictures and the options that a command line names: files, folders, patterns, addresses and tables."""

from __future__ import annotations

import glob
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance import data_table
from askance.amounts import first_few
from askance.documents import parse_yaml
from askance.errors import BadData, BadImage, BadOptions, UsageError
from askance.evals.listed_picture import ListedPicture, each_once
from askance.images import SUFFIXES
from askance.registry import near_file

if TYPE_CHECKING:
    from askance.data_table import DataTable
    from askance.evals.picture_run import PictureKey
    from askance.images.picture_folder import Fetch, PictureFolder

Options = tuple[str, ...]

_OPTIONS_COLUMNS = ("image", "options")
"""Columns of a file of options."""
COLUMNS = (*_OPTIONS_COLUMNS, "question")
"""What can be taken from the columns of a table of pictures."""

_FETCHED_AT_ONCE = 8


def columns_named(texts: Sequence[str], names: Sequence[str] = COLUMNS) -> Mapping[str, str]:
    """The columns that `--column NAME=COLUMN` names.

    Args:
        texts: as they were given.
        names: what can be taken from a column.

    Raises:
        UsageError: a text is no such pair, or names what no table is read for.
    """
    columns: dict[str, str] = {}
    for text in texts:
        name, _, column = text.partition("=")
        if name not in names or not column:
            written = " or ".join(f"{each}=COLUMN" for each in names)
            raise UsageError(f"`--column {text}` names no column.", hint=f"Write {written}.")
        if name in columns:
            raise UsageError(f"`--column {name}=…` stands twice.", hint="Leave one of the two out.")
        columns[name] = column
    return columns


@dataclass(frozen=True, slots=True)
class Drawn:
    """A sample of the pictures: how many of how many, and the seed."""

    size: int
    of: int
    seed: int


@dataclass(kw_only=True)
class PictureFinder:
    """Finds the pictures that a command line names, each once: folders and patterns sorted by name, tables row by row.

    Pictures from the web and those within a table are kept as files.
    """

    named: Sequence[str]
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    """For tables: the columns of the image, of the options and of the question."""
    allowed: Sequence[Path] = ()
    """Folders that tables may name pictures of, beside their own."""
    limit: int | None = None
    """Only so many, the first ones."""
    sample: int | None = None
    """Only so many, drawn with `seed`."""
    seed: int = 0
    folder: Callable[[], PictureFolder]
    fetch: Fetch = "missing"
    quiet: bool = False
    """Whether nothing is said of how far the fetching is."""
    drawn: Drawn | None = field(init=False, default=None)
    """What was drawn, once `find` has been called."""

    def find(self) -> dict[PictureKey, Options | None]:
        """The pictures with their options, where a table brings some.

        Raises:
            UsageError: a name leads to no file, a folder or pattern to no picture, or no name is given.
            BadData: a table cannot be read.
        """
        if not self.named:
            raise UsageError(
                "No image is named.", hint="Give files, folders or patterns: askance run verbalize ads/*.jpg"
            )
        if self.columns and not self._tables:
            raise UsageError(
                "`--column` goes with a table, and none is named.", hint="Name a CSV file, or leave it out."
            )
        if self.allowed and not self._tables:
            raise UsageError("`--allow-folder` goes with a table, and none is named.", hint="Leave it out.")
        threads = ThreadPoolExecutor(_FETCHED_AT_ONCE)  # it begins no thread before there is an address
        try:
            pictures = [self._key(pictures, threads) for pictures in self._chosen()]
            return dict(self._fetched_all(pictures))
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def listed(self) -> Iterator[ListedPicture]:
        """The pictures as they are named, one by one: none is fetched, and one that is named twice comes twice.

        Raises:
            UsageError: a name leads to no file, or a folder or pattern to no picture.
            BadData: a table cannot be read.
        """
        return islice((picture for name in self.named for picture in self._named(name)), self.limit)

    def _fetched_all(
        self, pictures: Sequence[tuple[PictureKey | Future[PictureKey], Options | None]]
    ) -> Iterator[tuple[PictureKey, Options | None]]:
        """Waits for what is being fetched, and says how far that is."""
        from askance.cli.progress import Progress

        total = sum(isinstance(key, Future) for key, _ in pictures)
        with Progress("images fetched", total) if total and not self.quiet else nullcontext() as progress:
            done = 0
            for key, options in pictures:
                if isinstance(key, Future):
                    yield key.result(), options
                    done += 1
                    if progress is not None:
                        progress.update(done)
                else:
                    yield key, options

    def _chosen(self) -> Iterator[ListedPicture]:
        """The pictures that are asked for; the bytes of one are held at a time."""
        if self.sample is None:
            return islice(self._once(), self.limit)
        from askance.evals.suite.selection import draw_ids

        names = [picture.name for picture in self._once()]
        chosen = {*draw_ids(names, size=self.sample, seed=self.seed)}
        self.drawn = Drawn(len(chosen), len(names), self.seed)
        return (picture for picture in self._once() if picture.name in chosen)

    def _once(self) -> Iterator[ListedPicture]:
        """Every picture that is named, the first time that it is; see `each_once`."""
        return each_once(picture for name in self.named for picture in self._named(name))

    def _named(self, name: str) -> Iterator[ListedPicture]:
        if name in self._tables:
            yield from self._table_pictures(self._tables[name])
        elif _is_address(name):
            yield ListedPicture(name, name)
        else:
            yield from (ListedPicture(path.as_posix(), path) for path in _files(name))

    @cached_property
    def _tables(self) -> Mapping[str, DataTable]:
        """The tables among what is named."""
        named = [name for name in self.named if data_table.names_data_table(name)]
        offline, stream = self.fetch == "never", self.limit is not None
        return {name: data_table.open_data_table(name, offline=offline, stream=stream) for name in named}

    def _table_pictures(self, table: DataTable) -> Iterator[ListedPicture]:
        columns = {"image": "image", **self.columns}
        if "image" not in self.columns and "image" not in table.columns:
            shown = first_few([*map(repr, table.columns)], 20)
            raise BadData(
                f"The table {table.source!r} has no column 'image'.",
                hint=f"Say which column has the pictures: --column image=NAME. It has {shown}.",
            )
        for row in table.rows(columns):
            picture = data_table.picture_in(row.get("image"))
            if picture is None:
                raise BadData(
                    f"{row.where}: there is no picture in {columns['image']!r}.",
                    hint="It should hold a path, an address or a picture; --column image=NAME takes another column.",
                )
            options = _row_options(row["options"], row.where) if "options" in row else None
            if "options" in columns and options is None:
                raise BadOptions(f"{row.where}: there are no options in {columns['options']!r}.", hint=_LIST)
            question = row.get("question", "")
            if "question" in columns and (not isinstance(question, str) or not question.strip()):
                raise BadData(
                    f"{row.where}: there is no question in {columns['question']!r}.", hint="Write one, a text."
                )
            if isinstance(picture, bytes):
                yield ListedPicture(f"{table.source}#{row.number}", picture, options, question)
            elif _is_address(picture):
                yield ListedPicture(picture, picture, options, question)
            else:
                path = data_table.picture_file(picture, table.home, row.where, allowed=self.allowed)
                yield ListedPicture(path.as_posix(), path, options, question)

    def _key(
        self, picture: ListedPicture, threads: ThreadPoolExecutor
    ) -> tuple[PictureKey | Future[PictureKey], Options | None]:
        """What the picture is read by; an address is fetched by another thread."""
        from askance.evals.picture_run import NamedPicture

        if isinstance(picture.source, Path) and not picture.question:
            return picture.source, picture.options
        if isinstance(picture.source, str):
            return threads.submit(self._fetched, picture.name, picture.source, picture.question), picture.options
        file = picture.source if isinstance(picture.source, Path) else self.folder().of_bytes(picture.source)
        return NamedPicture(picture.name, file, question=picture.question), picture.options

    def _fetched(self, name: str, url: str, question: str) -> PictureKey:
        from askance.evals.picture_run import NamedPicture

        try:
            return NamedPicture(name, self.folder().of_address(url, fetch=self.fetch), question=question)
        except BadImage as error:
            return NamedPicture(name, None, trouble=error, question=question)


def find_pictures(named: Sequence[str]) -> list[Path]:
    """The files that files, folders and patterns name: folders and patterns sorted by name, each file once.

    Raises:
        UsageError: a name leads to no file, a folder or pattern to no picture, or no name is given.
    """
    if not named:
        raise UsageError("No image is named.", hint="Give files, folders or patterns: askance run verbalize ads/*.jpg")
    files: dict[Path, None] = {}
    for name in named:
        files.update(dict.fromkeys(_files(name)))
    return list(files)


def _is_address(name: str) -> bool:
    return name.lower().startswith(("http://", "https://"))


def _files(name: str) -> list[Path]:
    path = Path(name)
    if path.is_dir():
        inside = sorted(each for each in path.iterdir() if each.suffix.lower() in SUFFIXES and each.is_file())
        if not inside:
            raise UsageError(
                f"There are no images in the folder {name!r}.",
                hint=f"Looked for {', '.join(sorted(SUFFIXES))}, in no folder below it: that takes a pattern, "
                f"{str(path / '**' / '*.jpg')!r}.",
            )
        return inside
    if path.exists():
        return [path]
    matches = sorted(Path(match) for match in glob.glob(name, recursive=True))  # noqa: PTH207  # a pattern may be absolute
    pictures = [match for match in matches if match.suffix.lower() in SUFFIXES and match.is_file()]
    if not pictures:
        close = near_file(path) if path.name else ""
        hint = "Download it first." if "://" in name else f"{close}Check the name; folders and patterns work as well."
        raise UsageError(f"There is no image {name!r}.", hint=hint)
    return pictures


# --- options ---------------------------------------------------------------------------------------------------------

_LIST = 'Give a JSON list of texts: ["tea", "bricks"].'


def _row_options(value: Any, where: str) -> Options:
    options = data_table.as_list(value)
    if options is None:
        raise BadOptions(f"{where}: this is no list of options: {str(value)[:80]!r}.", hint=_LIST)
    return _checked(options, where)


class OptionsFile:
    """What can be chosen from: one list for all pictures (a line each, JSON, YAML), or a map or table by picture name.

    Args:
        path: of a text file with an option a line; of a JSON or YAML file with a list, or a map from picture to list;
            of a table with the columns `image` and `options`.

    Raises:
        BadOptions: the file cannot be read, or is none of these.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        content = _table_content(path) if data_table.names_data_table(str(path)) else _content(_file_text(path), path)
        self._map = cast("Mapping[str, Any]", content) if isinstance(content, Mapping) else None
        self._list = () if self._map is not None else _checked(content, repr(str(path)))

    def of(self, picture: str) -> Options:
        """The options of a picture, by its name.

        Raises:
            BadOptions: there are none, or some that cannot be chosen from.
        """
        if self._map is None:
            return self._list
        options = _of_picture(self._map, picture, self._path)
        return _checked(options, f"{str(self._path)!r}, {Path(picture).name!r}")


def _file_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadOptions(
            f"The options file {str(path)!r} cannot be read: {error.strerror}.", hint="Check the path of `--options`."
        ) from error
    except UnicodeDecodeError as error:
        raise BadOptions(f"The options file {str(path)!r} is not UTF-8 text.", hint="Save it as UTF-8.") from error


def _table_content(path: Path) -> Mapping[str, Any]:
    """The options of a table, by image name."""
    table = data_table.open_data_table(path)
    missing = [name for name in _OPTIONS_COLUMNS if name not in table.columns]
    if missing:
        raise BadOptions(
            f"The options file {str(path)!r} has no column {missing[0]!r}.",
            hint="Each of its rows should have an image and its options, as "
            '{"image": "a.jpg", "options": ["tea", "bricks"]}.',
        )
    rows: dict[str, Any] = {}
    for row in table.rows({"image": "image", "options": "options"}):
        if row.keys() < {*_OPTIONS_COLUMNS}:
            raise BadOptions(f"{row.where}: it has not both `image` and `options`.", hint="Mend the row.")
        rows[str(row["image"])] = _row_options(row["options"], row.where)
    return rows


def _content(text: str, path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix in {".yaml", ".yml"}:
        return _yaml_content(text, path)
    try:
        content: Any = json.loads(text)
    except RecursionError as error:
        raise BadOptions(f"The options file {str(path)!r} is nested too deep.", hint=_LIST) from error
    except ValueError as error:
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        if suffix != ".json" and lines and _is_object(lines[0]):
            raise BadOptions(
                f"The options file {str(path)!r} holds JSON lines, not an option a line.",
                hint="Name it with the ending .jsonl if each of them has `image` and `options`.",
            ) from error
        if suffix != ".json":
            return lines
        raise BadOptions(
            f"The options file {str(path)!r} is not JSON: {error}.", hint="Or give one option a line in a .txt file."
        ) from error
    if isinstance(content, (list, Mapping)):
        return cast("list[Any] | Mapping[str, Any]", content)
    if suffix != ".json":
        return [text.strip()]
    raise BadOptions(
        f"The options file {str(path)!r} holds neither a list nor a map.",
        hint="Give a JSON list for all images, or a map from image name to list.",
    )


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


_MAX_DEPTH = 3
"""Levels of a YAML file of options: a map of lists, and one that cannot be right but is worth a message."""


def _yaml_content(text: str, path: Path) -> Any:
    content, faults = parse_yaml(text, max_depth=_MAX_DEPTH)
    for line, message in faults:
        raise BadOptions(
            f"The options file {str(path)!r}, line {line}: {message}.", hint="Write a list, one `- text` a line."
        )
    if not isinstance(content, (list, dict)):
        raise BadOptions(
            f"The options file {str(path)!r} holds neither a list nor a map.",
            hint="Write a list for all images, one `- text` a line, or a map from image name to list.",
        )
    lists: list[Any] = [content] if isinstance(content, list) else list(cast("dict[str, Any]", content).values())
    if any(isinstance(each, bool) for some in lists if isinstance(some, list) for each in cast("list[Any]", some)):
        raise BadOptions(
            f"The options file {str(path)!r} holds true or false where options should stand.",
            hint='YAML reads yes, no, on and off so; write them in quotes: - "yes"',
        )
    return cast("Any", content)


def _of_picture(options: Mapping[str, Any], picture: str, path: Path) -> Any:
    for name in (picture, Path(picture).name, Path(picture).stem):
        if name in options:
            return options[name]
    names = f"It names {first_few([*map(repr, options)])}."
    raise BadOptions(
        f"The options file {str(path)!r} has none for {Path(picture).name!r}.",
        hint=names if options else "Map each image's name to its list.",
    )


def _checked(options: Any, place: str) -> Options:
    """The options, checked; an error names the place."""
    from askance.agents import check_options

    if isinstance(options, Mapping) or not isinstance(options, Sequence):
        raise BadOptions(f"{place}: this is no list of options.", hint="Give a JSON list of texts.")
    try:
        return check_options(cast("Sequence[Any]", options))
    except BadOptions as error:
        raise BadOptions(f"{place}: {error.message}", hint=error.hint) from None
