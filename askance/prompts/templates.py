"""One role block as a template: parsed and checked once, compiled once, rendered within limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Final, cast, overload

from askance.errors import PromptError
from askance.prompts.fencing import fence, numbered, oneline
from askance.prompts.grammar import FILTERS, LOOP, TESTS, Findings, examine
from askance.prompts.problems import Problem

if TYPE_CHECKING:
    import jinja2
    from jinja2 import nodes
    from jinja2.sandbox import SandboxedEnvironment

    from askance.prompts.files import RoleBlock, TurnRole
    from askance.prompts.frontmatter import Input

MAX_RENDERED: Final = 1_000_000
"""Most characters of a rendered prompt."""
MAX_ROUNDS: Final = 100_000
"""Most rounds of all loops while one prompt is rendered."""


class Budget:
    """What is left of the limits while one prompt is rendered."""

    def __init__(self, where: str, *, spent: int = 0) -> None:
        self.where = where
        self.characters = MAX_RENDERED - spent
        self.rounds = MAX_ROUNDS

    def join(self, chunks: Iterable[str]) -> str:
        """The text that `chunks` make, which are taken no further than the limit."""
        taken: list[str] = []
        left = self.characters
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                message = f"{self.where} gives more than {MAX_RENDERED} characters."
                raise PromptError(message, hint="Give it shorter values.")
            taken.append(chunk)
        self.characters = left
        return "".join(taken)

    def turn(self) -> None:
        """Count one round of a loop."""
        self.rounds -= 1
        if self.rounds < 0:
            raise PromptError(f"{self.where} loops more than {MAX_ROUNDS} times.", hint="Give it shorter lists.")


class Items(Sequence[str]):
    """A list input that counts the rounds made over it."""

    __slots__ = ("_budget", "_items")

    def __init__(self, items: Sequence[str], budget: Budget) -> None:
        self._items = items
        self._budget = budget

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self._items[index]

    def __iter__(self) -> Iterator[str]:
        for item in self._items:
            self._budget.turn()
            yield item


class Template:
    """The text of one role block, ready to be rendered."""

    def __init__(self, block: RoleBlock, *, path: Path, inputs: Mapping[str, Input]) -> None:
        self.role: TurnRole = block.role
        self.text = block.text
        self.path = path
        self.uses: Mapping[str, int] = {}
        """Input → line of its first use."""
        self.problems: tuple[Problem, ...] = ()
        self._tree: nodes.Template | None = None
        if any(mark in block.text for mark in ("{{", "{%", "{#")):
            self._read(block, inputs)

    def _read(self, block: RoleBlock, inputs: Mapping[str, Input]) -> None:
        from jinja2 import TemplateSyntaxError

        try:
            self._tree = _parse(block)
            found = examine(self._tree, inputs=inputs, role=block.role)
        except TemplateSyntaxError as error:
            line = error.lineno + block.line - 1
            found = Findings(problems=[(line, f"the template cannot be read: {error.message}")])
        except (ValueError, RecursionError) as error:
            found = Findings(problems=[(block.line, f"the template cannot be read: {error}.")])
        self.uses = found.uses
        self.problems = tuple(Problem(self.path, line, message) for line, message in found.problems)

    @property
    def constant(self) -> bool:
        """Whether the text is what it is: nothing to render."""
        return self._tree is None

    @cached_property
    def _compiled(self) -> jinja2.Template | None:
        if self._tree is None:
            return None
        environment = _environment()
        code = environment.compile(self._tree, filename=str(self.path))
        return environment.template_class.from_code(environment, code, {})

    def compile(self) -> list[Problem]:
        """Compile now rather than when first rendered; what Python has against it."""
        try:
            _ = self._compiled
        except (SyntaxError, RecursionError, ValueError, MemoryError) as error:
            return [Problem(self.path, 1, f"the template cannot be compiled: {error}.")]
        return []

    def render(self, values: dict[str, object], budget: Budget) -> str:
        """The text with `values` in it, without white space around it.

        Raises:
            PromptError: an optional input that was not given is printed, or a limit is reached.
        """
        template = self._compiled
        if template is None:
            return budget.join([self.text])
        try:
            return budget.join(template.root_render_func(template.new_context(values, shared=True))).strip()
        except _undefined() as error:  # looked up where something was raised
            frames = [frame for frame in extract_tb(error.__traceback__) if frame.filename == str(self.path)]
            line = template.get_corresponding_lineno(frames[-1].lineno or 1) if frames else 1
            raise PromptError(
                f"{budget.where} uses an input that was not given in {str(self.path)!r}, line {line}: {error}.",
                hint="Put what needs an optional input between `{% if name %}` and `{% endif %}`.",
            ) from None


def _undefined() -> type[Exception]:
    from jinja2 import UndefinedError

    return UndefinedError


def _parse(block: RoleBlock) -> nodes.Template:
    """The syntax tree of `block`, its lines counted as in the file."""
    from jinja2 import nodes

    tree = _environment().parse(block.text)
    for node in (tree, *tree.find_all(nodes.Node)):
        if node.lineno:
            node.lineno += block.line - 1
    return tree


@lru_cache(maxsize=1)
def _environment() -> SandboxedEnvironment:
    """Jinja with nothing in it but what the grammar lists; the sandbox is the second wall."""
    from jinja2 import StrictUndefined
    from jinja2.runtime import LoopContext
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Absent(StrictUndefined):
        """An optional input that was not given: false, and an error where it is printed."""

        __slots__ = ()

        def __bool__(self) -> bool:
            return False

    class Sandbox(ImmutableSandboxedEnvironment):
        """The only attributes are those of `loop`."""

        def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:  # noqa: ARG002
            return attr in LOOP and isinstance(obj, LoopContext)

        def is_safe_callable(self, obj: object) -> bool:  # noqa: ARG002
            return False

    environment = Sandbox(undefined=Absent, autoescape=False, trim_blocks=True, lstrip_blocks=True)
    filters = cast("dict[str, object]", environment.filters)
    filters |= {"fenced": _fenced, "numbered": _numbered, "oneline": _oneline}
    for known, allowed in ((filters, FILTERS), (environment.tests, TESTS), (environment.globals, ())):
        for name in [name for name in known if name not in allowed]:
            del known[name]
    return environment


def _fenced(text: object, label: str) -> str:
    return fence(str(text), label)


def _numbered(texts: Sequence[str]) -> str:
    return numbered(texts[:])  # the slice is the list itself: its rounds are bounded by its size


def _oneline(text: object) -> str:
    return oneline(str(text))
