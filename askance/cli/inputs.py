"""The pictures and the options that a command line names."""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from askance.errors import BadOptions, UsageError
from askance.images import SUFFIXES

Options = tuple[str, ...]


def find_pictures(named: Sequence[str]) -> list[Path]:
    """The pictures that files, folders and patterns name: folders and patterns sorted by name, each picture once.

    Raises:
        UsageError: a name leads to no file, a folder or pattern to no picture, or no name is given.
    """
    if not named:
        raise UsageError("No image is named.", hint="Give files, folders or patterns: askance run verbalize ads/*.jpg")
    found: dict[Path, None] = {}
    for name in named:
        found.update(dict.fromkeys(_named(name)))
    return list(found)


def _named(name: str) -> list[Path]:
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
        hint = "Download it first." if "://" in name else "Check the name; folders and patterns work as well."
        raise UsageError(f"There is no image {name!r}.", hint=hint)
    return pictures


def read_options(path: Path, pictures: Sequence[Path]) -> list[Options]:
    """The options of each picture: one list for all (a line each, or JSON), or a JSON map by picture name.

    Raises:
        BadOptions: the file cannot be read, is neither form, has none for a picture, or some that cannot be chosen
            from.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadOptions(
            f"The options file {str(path)!r} cannot be read: {error.strerror}.", hint="Check the path of `--options`."
        ) from error
    except UnicodeDecodeError as error:
        raise BadOptions(f"The options file {str(path)!r} is not UTF-8 text.", hint="Save it as UTF-8.") from error
    content = _content(text, path)
    if isinstance(content, Mapping):
        options = cast("Mapping[str, Any]", content)
        return [_checked(_of_picture(options, picture, path), path, picture) for picture in pictures]
    return [_checked(content, path)] * len(pictures)


def _content(text: str, path: Path) -> Any:
    try:
        content: Any = json.loads(text)
    except ValueError as error:
        if path.suffix.lower() != ".json":
            return [line.strip() for line in text.split("\n") if line.strip()]
        raise BadOptions(
            f"The options file {str(path)!r} is not JSON: {error}.", hint="Or give one option a line in a .txt file."
        ) from error
    if isinstance(content, (list, Mapping)):
        return cast("list[Any] | Mapping[str, Any]", content)
    if path.suffix.lower() != ".json":
        return [text.strip()]
    raise BadOptions(
        f"The options file {str(path)!r} holds neither a list nor a map.",
        hint="Give a JSON list for all images, or a map from image name to list.",
    )


def _of_picture(options: Mapping[str, Any], picture: Path, path: Path) -> Any:
    for name in (picture.as_posix(), picture.name, picture.stem):
        if name in options:
            return options[name]
    names = f"It names {', '.join(map(repr, list(options)[:3]))}{' …' if len(options) > 3 else ''}."
    raise BadOptions(
        f"The options file {str(path)!r} has none for {picture.name!r}.",
        hint=names if options else "Map each image's name to its list.",
    )


def _checked(options: Any, path: Path, picture: Path | None = None) -> Options:
    """The options, checked; an error names the file and the picture."""
    from askance.agents import check_options

    place = f"{str(path)!r}, {picture.name!r}" if picture is not None else repr(str(path))
    if isinstance(options, Mapping) or not isinstance(options, Sequence):
        raise BadOptions(f"{place}: this is no list of options.", hint="Give a JSON list of texts.")
    try:
        return check_options(cast("Sequence[Any]", options))
    except BadOptions as error:
        raise BadOptions(f"{place}: {error.message}", hint=error.hint) from None
