"""One role block as a template: checked when the file is read, compiled once, rendered within limits.

Only listed nodes of Jinja's syntax tree are allowed: inputs printed through a few filters, `if`, and loops over list
inputs. Everything else is refused before anything runs. So a template cannot reach an attribute, call a function, read
another file, or make a text that grows by itself.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Final, cast, overload

from askance.errors import PromptError, PromptTooLong
from askance.prompts.fence import LABEL, fence, lettered, numbered, oneline
from askance.prompts.prompt_file import PromptProblem

if TYPE_CHECKING:
    import jinja2
    from jinja2 import nodes
    from jinja2.sandbox import SandboxedEnvironment

    from askance.prompts.frontmatter import Input
    from askance.prompts.prompt_file import RoleBlock, TurnRole

FILTERS: Final = (
    "capitalize",
    "fenced",
    "first",
    "join",
    "last",
    "length",
    "lettered",
    "lower",
    "numbered",
    "oneline",
    "tojson",
    "trim",
    "upper",
)
LOOP: Final = ("first", "index", "index0", "last", "length", "revindex")
TESTS: Final = ("defined", "undefined")
MAX_DEPTH: Final = 3
"""Most levels of nested loops."""

QUOTED: Final = ("fenced", "length")
"""Filters through which untrusted text may be printed: the first quotes it, the second gives a number."""
QUOTED_IN_EXAMPLE: Final = (*QUOTED, "oneline", "tojson")
"""Those of the block `example:`, which shows an answer as the model is to write it."""

_ALLOWED_NODES = ("Template", "TemplateData", "Const", "If", "And", "Or", "Not", "CondExpr", "Compare", "Operand")
_NODE_NAMES: Final = {
    "Add": "adding",
    "Assign": "`set`",
    "AssignBlock": "`set`",
    "Block": "`block`",
    "Call": "calling",
    "CallBlock": "`call`",
    "Concat": "joining by `~`",
    "Dict": "a mapping",
    "Div": "dividing",
    "Extends": "`extends`",
    "FilterBlock": "`filter`",
    "FloorDiv": "dividing",
    "FromImport": "`import`",
    "Getitem": "an item (`x[…]`)",
    "Import": "`import`",
    "Include": "`include`",
    "List": "a list",
    "Macro": "`macro`",
    "Mod": "`%`",
    "Mul": "multiplying",
    "Pow": "a power",
    "Sub": "subtracting",
    "Tuple": "a tuple",
    "With": "`with`",
}


@dataclass
class TemplateCheck:
    """What a check of one template found."""

    uses: dict[str, int] = field(default_factory=dict[str, int])
    """Input → line of its first use."""
    problems: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Line and message."""


def check_template(
    tree: nodes.Template, *, inputs: Mapping[str, Input], role: TurnRole, example: bool = False
) -> TemplateCheck:
    """The inputs that `tree` uses, and everything in it that is not allowed.

    Args:
        tree: of one block.
        inputs: that the file declares.
        role: of the block's turn.
        example: whether it is the block `example:`.
    """
    reader = _TemplateChecker(inputs, role, QUOTED_IN_EXAMPLE if example else QUOTED)
    reader.visit(tree, {})
    return reader.check


class _TemplateChecker:
    """A visitor of one syntax tree; `scope` maps the loop variables in sight to whether they are untrusted."""

    def __init__(self, inputs: Mapping[str, Input], role: TurnRole, quoted: Collection[str]) -> None:
        self.inputs = inputs
        self.role = role
        self.quoted = quoted
        self.check = TemplateCheck()

    def visit(self, node: nodes.Node, scope: Mapping[str, bool], depth: int = 0) -> None:
        from jinja2 import nodes

        match node:
            case nodes.For():
                self.loop(node, scope, depth)
                return
            case nodes.Name():
                self.name(node, scope)
            case nodes.Getattr():
                self.attribute(node, scope)
                return
            case nodes.Output():
                self.output(node, scope)
            case nodes.Filter():
                self.filter(node, scope)
                return
            case nodes.Test():
                if node.name not in TESTS:
                    self.refuse(node, f"there is no test `{node.name}`; there are {_listed(TESTS)}.")
            case _ if type(node).__name__ not in _ALLOWED_NODES:
                self.refuse(
                    node, f"{_NODE_NAMES.get(type(node).__name__, type(node).__name__)} is not allowed in a prompt."
                )
                return
            case _:
                pass
        for child in node.iter_child_nodes():
            self.visit(child, scope, depth)

    def refuse(self, node: nodes.Node, message: str) -> None:
        self.check.problems.append((node.lineno, message))

    def untrusted(self, name: str, scope: Mapping[str, bool]) -> bool:
        return scope[name] if name in scope else name in self.inputs and bool(self.inputs[name].untrusted)

    def name(self, node: nodes.Name, scope: Mapping[str, bool]) -> None:
        if node.name == "loop" and "loop" in scope:
            self.refuse(node, "`loop` alone is not allowed in a prompt; write `loop.index`.")
        elif node.name not in scope and node.name not in self.inputs:
            self.refuse(node, f"`{node.name}` is not declared under `inputs`.")
        if node.name in self.inputs and node.name not in scope:
            self.check.uses.setdefault(node.name, node.lineno)
        if self.role == "system" and self.untrusted(node.name, scope):
            self.refuse(node, f"`{node.name}` is untrusted: it never stands in a `system:` block.")

    def attribute(self, node: nodes.Getattr, scope: Mapping[str, bool]) -> None:
        from jinja2 import nodes

        if isinstance(node.node, nodes.Name) and node.node.name == "loop" and "loop" in scope and node.attr in LOOP:
            return
        allowed = _listed(f"loop.{name}" for name in LOOP)
        self.refuse(node, f"the attribute `{node.attr}` is not allowed; there are {allowed}, inside a loop.")

    def loop(self, node: nodes.For, scope: Mapping[str, bool], depth: int) -> None:
        from jinja2 import nodes

        tainted = False
        if isinstance(node.iter, nodes.Name) and node.iter.name not in scope:
            tainted = self.untrusted(node.iter.name, scope)
            self.name(node.iter, scope)
            declared = self.inputs.get(node.iter.name)
            if declared is not None and declared.kind != "list":
                self.refuse(node, f"a loop runs over a list, and `{node.iter.name}` is declared as {declared.kind}.")
        else:
            self.refuse(node, "a loop runs over an input that is declared as a list, and over nothing else.")
        if node.recursive:
            self.refuse(node, "a recursive loop is not allowed in a prompt.")
        if depth + 1 > MAX_DEPTH:
            self.refuse(node, f"loops are nested more than {MAX_DEPTH} deep.")
            return
        inner = {**scope, **self.target(node, scope, tainted=tainted), "loop": False}
        for child in (*node.body, *([node.test] if node.test else ())):
            self.visit(child, inner, depth + 1)
        for child in node.else_:
            self.visit(child, scope, depth)

    def target(self, node: nodes.For, scope: Mapping[str, bool], *, tainted: bool) -> dict[str, bool]:
        from jinja2 import nodes

        if not isinstance(node.target, nodes.Name):
            self.refuse(node, "a loop has one variable: `{% for item in items %}`.")
            return {name.name: tainted for name in node.target.find_all(nodes.Name)}
        name = node.target.name
        if name in self.inputs or name in scope or name == "loop":
            self.refuse(node, f"the loop's variable `{name}` has the name of something else.")
        return {name: tainted}

    def output(self, node: nodes.Output, scope: Mapping[str, bool]) -> None:
        if self.role == "system":
            return
        for expression in node.nodes:
            for name in self.leaks(expression, scope):
                self.refuse(name, f"`{name.name}` is untrusted: print it as {self.way_to_print(name.name)}.")

    def way_to_print(self, name: str) -> str:
        """How an untrusted input is printed in this block."""
        if "tojson" in self.quoted:
            return f"`{{{{ {name} | tojson }}}}` or `{{{{ {name} | oneline }}}}`"
        return f'`{{{{ {name} | fenced("what it is") }}}}`'

    def leaks(self, node: nodes.Expr, scope: Mapping[str, bool]) -> Iterator[nodes.Name]:
        """The untrusted names that `node` prints without a fence."""
        from jinja2 import nodes

        match node:
            case nodes.Compare() | nodes.Not() | nodes.Test():
                return
            case nodes.Filter(name=name) if name in self.quoted:
                return
            case nodes.CondExpr():
                for branch in (node.expr1, node.expr2):
                    if branch is not None:
                        yield from self.leaks(branch, scope)
            case nodes.And() | nodes.Or():
                yield from self.leaks(node.left, scope)
                yield from self.leaks(node.right, scope)
            case _:
                names = (node,) if isinstance(node, nodes.Name) else node.find_all(nodes.Name)
                yield from (name for name in names if self.untrusted(name.name, scope))

    def filter(self, node: nodes.Filter, scope: Mapping[str, bool]) -> None:
        from jinja2 import nodes

        if node.name not in FILTERS:
            self.refuse(node, f"there is no filter `{node.name}`; there are {_listed(FILTERS)}.")
        elif node.kwargs or node.dyn_args or node.dyn_kwargs or not _arguments_allowed(node):
            self.refuse(node, f"`{node.name}` is written as {_filter_usage(node.name)}.")
        elif node.name == "join" and not isinstance(node.node, nodes.Name):
            self.refuse(node, "`join` is the first filter after the name of a list.")
        elif node.name == "fenced" and self.role == "system":
            self.refuse(node, "`fenced` never stands in a `system:` block: what is quoted is no instruction.")
        if node.node is not None:
            self.visit(node.node, scope)


def _arguments_allowed(node: nodes.Filter) -> bool:
    from jinja2 import nodes

    texts = [arg.value for arg in node.args if isinstance(arg, nodes.Const) and isinstance(arg.value, str)]
    if len(texts) != len(node.args):
        return False
    if node.name == "fenced":
        return len(texts) == 1 and LABEL.fullmatch(texts[0]) is not None
    return len(texts) <= 1 and len("".join(texts)) <= 40 if node.name == "join" else not texts


def _filter_usage(name: str) -> str:
    return {"fenced": '`fenced("what it is")`', "join": '`join(", ")`'}.get(name, f"`{name}`, without arguments")


def _listed(names: Iterator[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


MAX_RENDERED: Final = 1_000_000
"""Most characters of a rendered prompt."""
MAX_ITERATIONS: Final = 100_000
"""Most iterations of all loops while one prompt is rendered."""


class RenderLimits:
    """How much of the limits is left while one prompt is rendered."""

    def __init__(self, where: str, *, spent: int = 0) -> None:
        self.where = where
        self.characters = MAX_RENDERED - spent
        self.iterations = MAX_ITERATIONS

    def join(self, chunks: Iterable[str]) -> str:
        """The text of `chunks`, of which no more are read than the limit allows."""
        taken: list[str] = []
        left = self.characters
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                message = f"{self.where} gives more than {MAX_RENDERED} characters."
                raise PromptTooLong(message, hint="Give it shorter values.")
            taken.append(chunk)
        self.characters = left
        return "".join(taken)

    def count_iteration(self) -> None:
        """Counts one iteration of a loop."""
        self.iterations -= 1
        if self.iterations < 0:
            raise PromptTooLong(f"{self.where} loops more than {MAX_ITERATIONS} times.", hint="Give it shorter lists.")


class CountedList(Sequence[str]):
    """A list input that counts the iterations over it."""

    __slots__ = ("_budget", "_items")

    def __init__(self, items: Sequence[str], budget: RenderLimits) -> None:
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
            self._budget.count_iteration()
            yield item


class Template:
    """The text of one role block, ready to be rendered."""

    def __init__(self, block: RoleBlock, *, path: Path, inputs: Mapping[str, Input]) -> None:
        self.role: TurnRole = block.role
        self.example = block.example
        self.text = block.text
        self.path = path
        self.uses: Mapping[str, int] = {}
        """Input → line of its first use."""
        self.problems: tuple[PromptProblem, ...] = ()
        self._tree: nodes.Template | None = None
        if any(mark in block.text for mark in ("{{", "{%", "{#")):
            self._read(block, inputs)

    def _read(self, block: RoleBlock, inputs: Mapping[str, Input]) -> None:
        from jinja2 import TemplateSyntaxError

        try:
            self._tree = _parse(block)
            check = check_template(self._tree, inputs=inputs, role=block.role, example=block.example)
        except TemplateSyntaxError as error:
            line = error.lineno + block.line - 1
            check = TemplateCheck(problems=[(line, f"the template cannot be read: {error.message}")])
        except (ValueError, RecursionError) as error:
            check = TemplateCheck(problems=[(block.line, f"the template cannot be read: {error}.")])
        self.uses = check.uses
        self.problems = tuple(PromptProblem(self.path, line, message) for line, message in check.problems)

    @property
    def constant(self) -> bool:
        """Whether there is nothing to render: the text holds no template syntax."""
        return self._tree is None

    @cached_property
    def _compiled(self) -> jinja2.Template | None:
        if self._tree is None:
            return None
        environment = _environment()
        code = environment.compile(self._tree, filename=str(self.path))
        return environment.template_class.from_code(environment, code, {})

    def compile(self) -> list[PromptProblem]:
        """Compiles now rather than at the first rendering; returns the problems that Python finds."""
        try:
            _ = self._compiled
        except (SyntaxError, RecursionError, ValueError, MemoryError) as error:
            return [PromptProblem(self.path, 1, f"the template cannot be compiled: {error}.")]
        return []

    def render(self, values: dict[str, object], budget: RenderLimits) -> str:
        """The text with `values` filled in, without white space around it.

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
    """Jinja with the allowed filters and tests alone; its sandbox is a second line of defence."""
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
    filters |= {
        "fenced": _fenced,
        "lettered": _lettered,
        "numbered": _numbered,
        "oneline": _oneline,
        "tojson": _tojson,
    }
    for known, allowed in ((filters, FILTERS), (environment.tests, TESTS), (environment.globals, ())):
        for name in [name for name in known if name not in allowed]:
            del known[name]
    return environment


def _fenced(text: object, label: str) -> str:
    return fence(str(text), label)


def _numbered(texts: Sequence[str]) -> str:
    return numbered(texts[:])  # the slice is the plain list, whose length bounds the loop


def _lettered(texts: Sequence[str]) -> str:
    return lettered(texts[:])


def _oneline(text: object) -> str:
    return oneline(str(text))


def _tojson(value: object) -> str:
    if isinstance(value, CountedList):
        return json.dumps(value[:], ensure_ascii=False)
    # An optional input that was not given raises where it is made a text.
    return json.dumps(value if isinstance(value, (bool, int)) else str(value), ensure_ascii=False)
