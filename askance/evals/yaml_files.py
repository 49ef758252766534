"""Reading a YAML file that anybody may have written: bounded, without aliases, no key twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from askance.errors import UsageError

MOST_BYTES = 200_000
"""Largest file that is read."""
MOST_DEPTH = 12


def read_yaml(path: Path, *, what: str) -> Mapping[str, Any]:
    """The mapping in a YAML file, as plain values.

    Args:
        path: of the file.
        what: it is, in words: "a task".

    Raises:
        UsageError: it cannot be read, is too large or too deep, is no YAML or no mapping, has aliases, or a key twice.
    """
    import yaml

    text = _text(path, what)
    try:
        for trouble in _troubles(text):
            raise UsageError(f"{str(path)!r}: {trouble}.", hint=f"Write {what} in plain YAML.")
        content: Any = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise UsageError(
            f"{str(path)!r}{line}: this is not YAML: {error.problem or error.context}.",
            hint="Mend it there; texts with a colon want quotes.",
        ) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(
            f"{str(path)!r} is not YAML: {str(error).splitlines()[0]}.", hint="Mend it; texts with a colon want quotes."
        ) from error
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in cast("dict[Any, Any]", content)):
        raise UsageError(
            f"{str(path)!r} holds no map of names to values.", hint=f"Write {what} as `name: value` lines."
        )
    return cast("dict[str, Any]", content)


def _text(path: Path, what: str) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{str(path)!r} is larger than {MOST_BYTES:,} bytes.", hint=f"Is it {what}?")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}.", hint="Check the name.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is not UTF-8 text.", hint="Save it as UTF-8.") from error


def _troubles(text: str) -> Iterator[str]:
    """What makes YAML grow or go deep without end, or silently lose something; found before anything is built."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = f"line {event.start_mark.line + 1}" if event.start_mark else "it"
        if isinstance(event, yaml.AliasEvent):
            yield f"{line}: aliases (`*name`) are not taken"
            return
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            yield f"{line}: it goes more than {MOST_DEPTH} deep"
            return
    yield from _repeated(yaml.compose(text, Loader=yaml.SafeLoader))


def _repeated(node: Any) -> Iterator[str]:
    import yaml

    if isinstance(node, yaml.MappingNode):
        seen = set[str]()
        for key, value in cast("list[tuple[Any, Any]]", node.value):
            if key.value in seen:
                yield f"line {key.start_mark.line + 1}: {key.value!r} stands twice"
            seen.add(str(key.value))
            yield from _repeated(value)
    elif isinstance(node, yaml.SequenceNode):
        for each in cast("list[Any]", node.value):
            yield from _repeated(each)
