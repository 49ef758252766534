"""The front matter of a prompt file: name, summary, kind of answer, and the declared inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from askance.documents import parse_yaml, validator, yaml_loader
from askance.prompts.prompt_file import PromptProblem

if TYPE_CHECKING:
    import yaml

InputKind = Literal["text", "list", "number", "flag"]
InputValue: TypeAlias = str | int | bool | Sequence[str]

SCHEMA: Final = Path(__file__).with_name("front_matter.schema.json")
"""The JSON Schema of the front matter."""

MAX_DEPTH: Final = 8
"""Most levels of the front matter."""
FIRST_LINE: Final = 2
"""Line of the file on which the front matter begins, after its `---`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One variable of a prompt."""

    name: str
    description: str
    kind: InputKind = "text"
    optional: bool = False
    """Whether it may be left out; the template then reads it as false."""
    untrusted: bool | None = None
    """Whether it may hold text that comes from an image; None where the file does not say."""
    default: InputValue | None = None
    """The value where none is given."""
    example: InputValue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """The front matter of a prompt file."""

    name: str
    summary: str
    output: str
    source: str
    images: int
    inputs: Mapping[str, Input]


def read_front_matter(text: str, *, path: Path, validate: bool) -> tuple[FrontMatter | None, list[PromptProblem]]:
    """The front matter in `text`, or what is wrong with it.

    Args:
        text: The YAML between the two `---` lines.
        path: The file, for the problems.
        validate: Check it against the schema first; the package's own files are checked by its tests.
    """
    import yaml

    if not validate:
        return _front_matter(yaml.load(text, Loader=yaml_loader())), []  # noqa: S506  # it is a safe one
    data, faults = parse_yaml(text, max_depth=MAX_DEPTH)
    problems = [PromptProblem(path, line + FIRST_LINE - 1, f"{message}.") for line, message in faults]
    problems = problems or [PromptProblem(path, line, message) for line, message in _violations(text, data)]
    return (None, problems) if problems else (_front_matter(data), [])


def line_of(text: str, keys: Sequence[str | int]) -> int:
    """Line of the file on which the entry at `keys` begins, or else the innermost entry around it."""
    import yaml

    node = yaml.compose(text, Loader=yaml_loader())
    line = FIRST_LINE
    for key in keys:
        entry = _entry(node, key)
        if entry is None:
            break
        line, node = entry
    return line


def _front_matter(data: Mapping[str, Any]) -> FrontMatter:
    declared: Mapping[str, Mapping[str, Any]] = data.get("inputs") or {}
    inputs = {name: _input(name, entry) for name, entry in declared.items()}
    return FrontMatter(
        name=data["name"],
        summary=data["summary"],
        output=data["output"],
        source=data.get("source", ""),
        images=data.get("images", 0),
        inputs=MappingProxyType(inputs),
    )


def _input(name: str, entry: Mapping[str, Any]) -> Input:
    default = _frozen(entry.get("default"))
    return Input(
        name=name,
        description=entry["description"],
        kind=entry.get("type", "text"),
        optional=entry.get("optional", False) or default is not None,
        untrusted=entry.get("untrusted"),
        default=default,
        example=_frozen(entry.get("example")),
    )


def _frozen(value: Any) -> InputValue | None:
    return tuple(cast("list[str]", value)) if isinstance(value, list) else value


def _violations(text: str, data: Any) -> Iterator[tuple[int, str]]:
    """Line and message for each thing that the schema forbids."""
    for error in validator(SCHEMA).iter_errors(data):
        where = ".".join(str(key) for key in error.absolute_path) or "front matter"
        yield line_of(text, list(error.absolute_path)), f"`{where}`: {error.message}."


def _entry(node: yaml.Node | None, key: str | int) -> tuple[int, yaml.Node] | None:
    import yaml

    if isinstance(node, yaml.MappingNode):
        return next(((_line_number(name), value) for name, value in _pairs(node) if name.value == key), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
        item = cast("list[yaml.Node]", node.value)[key]
        return _line_number(item), item
    return None


def _pairs(node: yaml.MappingNode) -> Iterable[tuple[yaml.ScalarNode, yaml.Node]]:
    return cast("Iterable[tuple[yaml.ScalarNode, yaml.Node]]", node.value)


def _line_number(node: yaml.Node) -> int:
    """Line of the file on which `node` begins."""
    return node.start_mark.line + FIRST_LINE
