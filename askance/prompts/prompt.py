"""A prompt, read from one file and ready to be rendered.

A request holds the rendered text. So an edited prompt makes new requests, and no recorded answer to the old one is
taken for an answer to the new one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from askance.amounts import shortened
from askance.errors import PromptError
from askance.prompts.fence import replace_invisible, sanitize
from askance.prompts.frontmatter import FrontMatter, Input, line_of, read_front_matter
from askance.prompts.prompt_file import (
    FileName,
    PromptFile,
    PromptProblem,
    read_text,
    split_prompt_file,
    without_example,
)
from askance.prompts.template import CountedList, RenderLimits, Template

if TYPE_CHECKING:
    from askance.prompts.frontmatter import InputKind, InputValue
    from askance.prompts.prompt_file import Form, TurnRole

_KINDS: Mapping[InputKind, str] = {
    "text": "a text",
    "list": "a list of texts",
    "number": "a whole number",
    "flag": "true or false",
}


@dataclass(frozen=True, slots=True)
class PromptTurn:
    """One turn of a rendered prompt."""

    role: TurnRole
    text: str


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The prompt of one file."""

    name: str
    form: Form | None
    """Form of the answer that is asked for; None for a user's file that serves every form."""
    family: str | None
    """Model family that it is written for; None for any."""
    summary: str
    output: str
    """Kind of the answer, such as `objects` or `answers`."""
    images: int
    """Number of pictures in front of the first user turn."""
    source: str
    """Where the prompt comes from."""
    path: Path
    overlay: bool
    """Whether it is a user's file, not the package's."""
    digest: str
    """sha256 of the file's text without what only examples use, 64 hex digits: what decides a request without them."""
    example_digest: str | None
    """sha256 of the whole text; None for a prompt that shows no examples."""
    declared: Mapping[str, Input] = field(hash=False)
    """Every input, by name."""
    templates: tuple[Template, ...] = field(repr=False, compare=False)
    example: Template | None = field(repr=False, compare=False)
    """The block `example:`, the answer of an example turn; None for a prompt that shows no examples."""
    front_matter: str = field(repr=False, compare=False)
    """The YAML as written."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Inputs that must be given."""
        return tuple(name for name, declared in self._inputs_used.items() if not declared.optional)

    @property
    def optional(self) -> tuple[str, ...]:
        """Inputs that may be left out."""
        return tuple(name for name, declared in self._inputs_used.items() if declared.optional)

    @cached_property
    def example_inputs(self) -> tuple[str, ...]:
        """Inputs that the block `example:` alone uses, such as the answer; they are given with examples only."""
        if self.example is None:
            return ()
        used = {name for template in self.templates for name in template.uses}
        return tuple(name for name in self.declared if name in self.example.uses and name not in used)

    @property
    def examples(self) -> dict[str, InputValue]:
        """The example values of the inputs, to try the prompt with."""
        return {name: declared.example for name, declared in self._inputs_used.items() if declared.example is not None}

    @property
    def worked_example(self) -> dict[str, InputValue]:
        """The values of one example turn, made of the inputs' example values, to try the prompt with."""
        return {name: declared.example for name, declared in self.declared.items() if declared.example is not None}

    def render(
        self, /, *, examples: Sequence[Mapping[str, InputValue | None]] = (), **values: InputValue | None
    ) -> tuple[PromptTurn, ...]:
        """The turns with `values` filled in; None stands for a value that is not given.

        Args:
            examples: for each example turn the values of its question and its answer. The question is the last block
                `user:`, the answer the block `example:`. They stand in front of the last turn, in this order.
            values: by input.

        Raises:
            PromptError: values that are missing, not used, or of the wrong kind, all at once; examples, and the prompt
                shows none; or a limit is reached.
        """
        if not values and not examples and self._constant is not None:
            return self._constant
        inputs = _without_none(values)
        shown = [_without_none(each) for each in examples]
        if shown and self.example is None:
            raise PromptError(
                f"Prompt {self.name!r} ({self.path}) shows no examples: it has no block `example:`.",
                hint="Write `example:` at the end of the file, and below it the answer as the model is to write it"
                f"{'' if self.overlay else f'; `askance prompts eject {self.name}` copies the file for that'}.",
            )
        if not _fits(inputs, self._inputs_used, self._needed) or not all(
            _fits(each, self.declared, self._example_needs) for each in shown
        ):
            complaints = self._value_problems(inputs, self._inputs_used, self._needed)
            for place, each in enumerate(shown, 1):
                wrong = self._value_problems(each, self.declared, self._example_needs)
                complaints += [f"example {place}: {complaint}" for complaint in wrong]
            names = ", ".join(f"`{name}`" for name in self.declared) or "none"
            message = f"Prompt {self.name!r} ({self.path}) cannot be rendered: {'; '.join(complaints)}."
            raise PromptError(message, hint=f"Its inputs: {names}.")
        if not shown and self._constant is not None:
            return self._constant
        return self._render(self._defaults | inputs, shown)

    def _render(
        self, inputs: Mapping[str, InputValue], shown: Sequence[Mapping[str, InputValue]]
    ) -> tuple[PromptTurn, ...]:
        budget = RenderLimits(f"Prompt {self.name!r}", spent=self._fixed_length)
        values = _counted(inputs, budget)
        parts = zip(self._fixed, self.templates, strict=True)
        turns = [turn or PromptTurn(template.role, template.render(values, budget)) for turn, template in parts]
        if self.example is None:
            return tuple(turns)
        question, answer = self.templates[-1], self.example
        for place, each in enumerate(shown, 1):
            one = {**self._defaults, **each}
            question_text = question.render(_counted(one, budget), budget)
            # A server that reads marks of chat templates within a message would take those of an answer for its own.
            answer_text = answer.render(
                _counted({name: _unmarked(value) for name, value in one.items()}, budget), budget
            )
            if not answer_text:
                raise PromptError(
                    f"Prompt {self.name!r} ({self.path}) gives an empty answer in example {place}.",
                    hint="Give it the values of the block `example:`.",
                )
            turns[-1:-1] = (
                self._fixed[-1] or PromptTurn(question.role, question_text),
                PromptTurn(answer.role, answer_text),
            )
        return tuple(turns)

    @cached_property
    def _fixed(self) -> tuple[PromptTurn | None, ...]:
        """The turns without inputs, the same objects in every rendering; None in the places of the others."""
        budget = RenderLimits(f"Prompt {self.name!r}")
        return tuple(
            PromptTurn(template.role, template.render({}, budget)) if template.constant else None
            for template in self.templates
        )

    @cached_property
    def _fixed_length(self) -> int:
        return sum(len(turn.text) for turn in self._fixed if turn is not None)

    @cached_property
    def _constant(self) -> tuple[PromptTurn, ...] | None:
        turns = tuple(turn for turn in self._fixed if turn is not None)
        return turns if len(turns) == len(self.templates) else None

    @cached_property
    def _defaults(self) -> dict[str, InputValue]:
        return {name: declared.default for name, declared in self.declared.items() if declared.default is not None}

    @cached_property
    def _inputs_used(self) -> dict[str, Input]:
        """The inputs of a request without examples, by name."""
        return {name: declared for name, declared in self.declared.items() if name not in self.example_inputs}

    @property
    def _blocks(self) -> tuple[Template, ...]:
        return self.templates if self.example is None else (*self.templates, self.example)

    @cached_property
    def _first_uses(self) -> dict[str, int]:
        """Input → line of its first use."""
        uses: dict[str, int] = {}
        for template in self._blocks:
            uses |= {name: line for name, line in template.uses.items() if name not in uses}
        return uses

    @cached_property
    def _needed(self) -> frozenset[str]:
        return frozenset(self.inputs)

    @cached_property
    def _example_needs(self) -> frozenset[str]:
        """Inputs that each example must give: those of its question and of its answer."""
        used = {name for template in self._blocks[-2:] for name in template.uses}
        return frozenset(name for name, declared in self.declared.items() if name in used and not declared.optional)

    def _value_problems(
        self, inputs: Mapping[str, InputValue], among: Mapping[str, Input], needs: frozenset[str]
    ) -> list[str]:
        """What is wrong with `inputs`, of which the inputs `among` are allowed, and `needs` required."""
        missing = [
            f"`{name}` is missing (used on line {self._first_uses[name]})"
            for name in among
            if name in needs and name not in inputs
        ]
        unused = [self._unknown_input(name) for name in inputs if name not in self.declared]
        unused += [
            f"`{name}` is for examples alone (used on line {self._first_uses[name]})"
            for name in inputs
            if name in self.declared and name not in among
        ]
        wrong = [
            f"`{name}` takes {_KINDS[declared.kind]}, not {shortened(repr(inputs[name]), 60)}"
            for name, declared in among.items()
            if name in inputs and not _has_kind(declared.kind, inputs[name])
        ]
        return missing + unused + wrong

    def _unknown_input(self, name: str) -> str:
        near = get_close_matches(name, self.declared, n=1)
        line = line_of(self.front_matter, ["inputs"])
        return f"`{name}` is not used (inputs are declared on line {line}{f'; nearest is `{near[0]}`' if near else ''})"

    def read_values(self, texts: Mapping[str, str]) -> dict[str, InputValue]:
        """What a person typed, as values for `render`.

        A number is written in digits, a flag as `true` or `false`, a list as JSON or with one item a line. Values of
        unknown names stay as they are; `render` refuses them.

        Raises:
            PromptError: all texts that cannot be read.
        """
        values: dict[str, InputValue] = {}
        wrong: list[str] = []
        for name, text in texts.items():
            kind = self.declared[name].kind if name in self.declared else "text"
            try:
                values[name] = _parse_value(kind, text)
            except ValueError:
                wrong.append(f"`{name}` takes {_KINDS[kind]}, not {shortened(repr(text), 60)}")
        if wrong:
            raise PromptError(
                f"Prompt {self.name!r} cannot be rendered: {'; '.join(wrong)}.",
                hint="Give each variable what its prompt declares.",
            )
        return values


def _without_none(values: Mapping[str, InputValue | None]) -> dict[str, InputValue]:
    return {name: value for name, value in values.items() if value is not None}


def _counted(inputs: Mapping[str, InputValue], budget: RenderLimits) -> dict[str, object]:
    """The values as templates take them: lists count the iterations over them."""
    return {
        name: CountedList(value, budget) if isinstance(value, (list, tuple)) else value
        for name, value in inputs.items()
    }


def _unmarked(value: InputValue) -> InputValue:
    """`value` without marks of chat templates, lines of a fence and characters that nobody sees."""
    if isinstance(value, str):
        return sanitize(replace_invisible(value))
    return value if isinstance(value, int) else [sanitize(replace_invisible(each)) for each in value]


def _fits(inputs: Mapping[str, InputValue], among: Mapping[str, Input], needs: frozenset[str]) -> bool:
    """Whether `inputs` has all of `needs`, none but those of `among`, and each of its kind."""
    for name, value in inputs.items():
        declared = among.get(name)
        if declared is None or not _has_kind(declared.kind, value):
            return False
    return needs <= inputs.keys()


def _has_kind(kind: InputKind, value: object) -> bool:
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


def _parse_value(kind: InputKind, text: str) -> InputValue:
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


def read_prompt(
    path: Path,
    *,
    overlay: bool,
    validate: bool = True,
    untrusted: Collection[str] = (),
) -> tuple[Prompt | None, list[PromptProblem]]:
    """The prompt in `path`, and everything that is wrong with the file.

    Args:
        path: A file whose name is one of a prompt file.
        overlay: Whether it is a user's file.
        validate: Check the front matter against its schema and compile the templates now.
        untrusted: Inputs that are untrusted wherever the file does not say otherwise.
    """
    text, problems = read_text(path)
    if problems:
        return None, problems
    file, problems = split_prompt_file(text, path=path)
    if file is None:
        return None, problems
    head, head_problems = read_front_matter(file.front_matter, path=path, validate=validate)
    problems += head_problems
    if head is None:
        return None, problems
    head = replace(head, inputs=_with_untrusted(head.inputs, untrusted))
    templates = tuple(Template(block, path=path, inputs=head.inputs) for block in file.blocks)
    example = None if file.example is None else Template(file.example, path=path, inputs=head.inputs)
    blocks = templates if example is None else (*templates, example)
    problems += [problem for template in blocks for problem in template.problems]
    problems += _name_problems(head, file, path=path)
    if not problems:
        problems += _unused_inputs(head, file, path=path, templates=blocks)
    if validate and not problems:
        problems += [problem for template in blocks for problem in template.compile()]
    named = FileName.parse(path.name) or FileName(head.name)
    own = {name for template in blocks[-1:] if example is not None for name in template.uses}
    own -= {name for template in templates for name in template.uses}
    prompt = Prompt(
        name=head.name,
        form=named.form,
        family=named.family,
        summary=head.summary,
        output=head.output,
        images=head.images,
        source=head.source,
        path=path,
        overlay=overlay,
        digest=_digest(text if example is None else without_example(text, own)),
        example_digest=None if example is None else _digest(text),
        declared=head.inputs,
        templates=templates,
        example=example,
        front_matter=file.front_matter,
    )
    return prompt, problems


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8")).hexdigest()


def _with_untrusted(inputs: Mapping[str, Input], untrusted: Collection[str]) -> Mapping[str, Input]:
    return MappingProxyType(
        {
            name: replace(entry, untrusted=True) if entry.untrusted is None and name in untrusted else entry
            for name, entry in inputs.items()
        }
    )


def _name_problems(head: FrontMatter, file: PromptFile, *, path: Path) -> list[PromptProblem]:
    name = path.name.split(".")[0]
    if head.name == name:
        return []
    line = line_of(file.front_matter, ["name"])
    return [PromptProblem(path, line, f"`name` is {head.name!r}, and the file's name says {name!r}.")]


def _unused_inputs(
    head: FrontMatter, file: PromptFile, *, path: Path, templates: tuple[Template, ...]
) -> list[PromptProblem]:
    """Required inputs that no template uses."""
    used = {name for template in templates for name in template.uses}
    return [
        PromptProblem(path, line_of(file.front_matter, ["inputs", name]), f"`{name}` must be given and is not used.")
        for name, entry in head.inputs.items()
        if name not in used and not entry.optional
    ]
