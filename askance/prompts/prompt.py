"""A prompt: what one file asks, ready to be rendered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.errors import PromptError
from askance.prompts.frontmatter import line_of
from askance.prompts.templates import Budget, Items

if TYPE_CHECKING:
    from askance.prompts.files import Form, TurnRole
    from askance.prompts.frontmatter import Input, InputKind, Value
    from askance.prompts.templates import Template

_KINDS: Mapping[InputKind, str] = {
    "text": "a text",
    "list": "a list of texts",
    "number": "a whole number",
    "flag": "true or false",
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a rendered prompt."""

    role: TurnRole
    text: str


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What one prompt file asks."""

    name: str
    form: Form | None
    """Form of the answer that is asked for; None: a user's file that serves every form."""
    family: str | None
    """Model family whose wording it is, None for any."""
    summary: str
    output: str
    """Kind of the answer, such as `objects` or `answers`."""
    images: int
    """How many pictures stand in front of the first user turn."""
    source: str
    """Where the prompt comes from."""
    path: Path
    overlay: bool
    """Whether it is a user's file, not the package's."""
    digest: str
    """sha256 of the file's text, 64 hex digits."""
    declared: Mapping[str, Input] = field(hash=False)
    """Every input, by name."""
    templates: tuple[Template, ...] = field(repr=False, compare=False)
    front_matter: str = field(repr=False, compare=False)
    """The YAML as written."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Inputs that must be given."""
        return tuple(name for name, declared in self.declared.items() if not declared.optional)

    @property
    def optional(self) -> tuple[str, ...]:
        """Inputs that may be left out."""
        return tuple(name for name, declared in self.declared.items() if declared.optional)

    @property
    def examples(self) -> dict[str, Value]:
        """A value to try the prompt with for each input that has one."""
        return {name: declared.example for name, declared in self.declared.items() if declared.example is not None}

    def render(self, /, **values: Value | None) -> tuple[Turn, ...]:
        """The turns with `values` in them; None stands for a value that is not given.

        Raises:
            PromptError: values that are missing, not used, or of the wrong kind, all at once; or a limit is reached.
        """
        if not values and self._constant is not None:
            return self._constant
        given = {name: value for name, value in values.items() if value is not None}
        if not self._takes(given):
            complaints = self._complaints(given)
            known = ", ".join(f"`{name}`" for name in self.declared) or "none"
            message = f"Prompt {self.name!r} ({self.path}) cannot be rendered: {'; '.join(complaints)}."
            raise PromptError(message, hint=f"Its inputs: {known}.")
        if self._constant is not None:
            return self._constant
        return self._render(self._defaults | given)

    def _render(self, given: Mapping[str, Value]) -> tuple[Turn, ...]:
        budget = Budget(f"Prompt {self.name!r}", spent=self._fixed_length)
        values: dict[str, object] = {
            name: Items(value, budget) if isinstance(value, (list, tuple)) else value for name, value in given.items()
        }
        turns = zip(self._fixed, self.templates, strict=True)
        return tuple([turn or Turn(template.role, template.render(values, budget)) for turn, template in turns])

    @cached_property
    def _fixed(self) -> tuple[Turn | None, ...]:
        """The turns in which nothing changes, in their places; the same objects in every rendering."""
        budget = Budget(f"Prompt {self.name!r}")
        return tuple(
            Turn(template.role, template.render({}, budget)) if template.constant else None
            for template in self.templates
        )

    @cached_property
    def _fixed_length(self) -> int:
        return sum(len(turn.text) for turn in self._fixed if turn is not None)

    @cached_property
    def _constant(self) -> tuple[Turn, ...] | None:
        turns = tuple(turn for turn in self._fixed if turn is not None)
        return turns if len(turns) == len(self.templates) else None

    @cached_property
    def _defaults(self) -> dict[str, Value]:
        return {name: declared.default for name, declared in self.declared.items() if declared.default is not None}

    @cached_property
    def _uses(self) -> dict[str, int]:
        """Input → line of its first use."""
        uses: dict[str, int] = {}
        for template in self.templates:
            uses |= {name: line for name, line in template.uses.items() if name not in uses}
        return uses

    @cached_property
    def _needed(self) -> frozenset[str]:
        return frozenset(self.inputs)

    def _takes(self, given: Mapping[str, Value]) -> bool:
        """Whether `given` is what the prompt takes, so that there is nothing to complain about."""
        for name, value in given.items():
            declared = self.declared.get(name)
            if declared is None or not _is_a(declared.kind, value):
                return False
        return self._needed <= given.keys()

    def _complaints(self, given: Mapping[str, Value]) -> list[str]:
        missing = [
            f"`{name}` is missing (used on line {self._uses[name]})" for name in self.inputs if name not in given
        ]
        unused = [self._unused(name) for name in given if name not in self.declared]
        wrong = [
            f"`{name}` takes {_KINDS[declared.kind]}, not {_short(given[name])}"
            for name, declared in self.declared.items()
            if name in given and not _is_a(declared.kind, given[name])
        ]
        return missing + unused + wrong

    def _unused(self, name: str) -> str:
        near = get_close_matches(name, self.declared, n=1)
        line = line_of(self.front_matter, ["inputs"])
        return f"`{name}` is not used (inputs are declared on line {line}{f'; nearest is `{near[0]}`' if near else ''})"

    def read_values(self, texts: Mapping[str, str]) -> dict[str, Value]:
        """Values as `render` takes them from what a person typed.

        A number in digits, a flag as `true` or `false`, a list as JSON or one item a line; unknown names stay as they
        are, for `render` to name.

        Raises:
            PromptError: all texts that cannot be read.
        """
        values: dict[str, Value] = {}
        wrong: list[str] = []
        for name, text in texts.items():
            kind = self.declared[name].kind if name in self.declared else "text"
            try:
                values[name] = _read(kind, text)
            except ValueError:
                wrong.append(f"`{name}` takes {_KINDS[kind]}, not {_short(text)}")
        if wrong:
            raise PromptError(
                f"Prompt {self.name!r} cannot be rendered: {'; '.join(wrong)}.",
                hint="Give each variable what its prompt declares.",
            )
        return values


def _is_a(kind: InputKind, value: object) -> bool:
    match kind:
        case "text":
            return isinstance(value, str)
        case "number":
            return isinstance(value, int) and not isinstance(value, bool)
        case "flag":
            return isinstance(value, bool)
        case "list":
            return isinstance(value, (list, tuple)) and all(
                issubclass(kind, str) for kind in set(map(type, cast("list[object]", value)))
            )


def _read(kind: InputKind, text: str) -> Value:
    match kind:
        case "text":
            return text
        case "number":
            return int(text)
        case "flag":
            if text.lower() not in ("true", "false"):
                raise ValueError(text)
            return text.lower() == "true"
        case "list":
            read: Any = json.loads(text) if text.lstrip().startswith("[") else text.splitlines()
            return tuple(str(item) for item in read)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"
