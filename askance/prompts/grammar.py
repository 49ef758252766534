"""What a template may say, checked on its syntax tree when the file is read, before anything runs.

The allowed nodes are listed, everything else is refused: printing inputs through a few filters, `if`, and loops over
list inputs. That leaves no way to an attribute, a call, another file, or a text that grows by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from askance.prompts.fencing import LABEL

if TYPE_CHECKING:
    from jinja2 import nodes

    from askance.prompts.files import TurnRole
    from askance.prompts.frontmatter import Input

FILTERS: Final = (
    "capitalize",
    "fenced",
    "first",
    "join",
    "last",
    "length",
    "lower",
    "numbered",
    "oneline",
    "trim",
    "upper",
)
LOOP: Final = ("first", "index", "index0", "last", "length", "revindex")
TESTS: Final = ("defined", "undefined")
MAX_DEPTH: Final = 3
"""Most loops inside one another."""

_PLAIN = ("Template", "TemplateData", "Const", "If", "And", "Or", "Not", "CondExpr", "Compare", "Operand")
_WORDS: Final = {
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
class Findings:
    """What a look at one template found."""

    uses: dict[str, int] = field(default_factory=dict[str, int])
    """Input → line of its first use."""
    problems: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Line and message."""


def examine(tree: nodes.Template, *, inputs: Mapping[str, Input], role: TurnRole) -> Findings:
    """The inputs that `tree` uses and everything in it that is not allowed, all at once."""
    reader = _Reader(inputs, role)
    reader.visit(tree, {})
    return reader.found


class _Reader:
    """One walk over one tree; `scope` maps the loop variables in sight to whether they are untrusted."""

    def __init__(self, inputs: Mapping[str, Input], role: TurnRole) -> None:
        self.inputs = inputs
        self.role = role
        self.found = Findings()

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
            case _ if type(node).__name__ not in _PLAIN:
                self.refuse(node, f"{_WORDS.get(type(node).__name__, type(node).__name__)} is not allowed in a prompt.")
                return
            case _:
                pass
        for child in node.iter_child_nodes():
            self.visit(child, scope, depth)

    def refuse(self, node: nodes.Node, message: str) -> None:
        self.found.problems.append((node.lineno, message))

    def untrusted(self, name: str, scope: Mapping[str, bool]) -> bool:
        return scope[name] if name in scope else name in self.inputs and bool(self.inputs[name].untrusted)

    def name(self, node: nodes.Name, scope: Mapping[str, bool]) -> None:
        if node.name == "loop" and "loop" in scope:
            self.refuse(node, "`loop` alone is not allowed in a prompt; write `loop.index`.")
        elif node.name not in scope and node.name not in self.inputs:
            self.refuse(node, f"`{node.name}` is not declared under `inputs`.")
        if node.name in self.inputs and node.name not in scope:
            self.found.uses.setdefault(node.name, node.lineno)
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
            self.refuse(node, f"loops stand more than {MAX_DEPTH} deep inside one another.")
            return
        inner = {**scope, **self.target(node, scope, tainted=tainted), "loop": False}
        for child in (*node.body, *([node.test] if node.test else ())):
            self.visit(child, inner, depth + 1)
        for child in node.else_:
            self.visit(child, scope, depth)

    def target(self, node: nodes.For, scope: Mapping[str, bool], *, tainted: bool) -> dict[str, bool]:
        from jinja2 import nodes

        if not isinstance(node.target, nodes.Name):
            self.refuse(node, "a loop has one variable.")
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
                self.refuse(
                    name, f'`{name.name}` is untrusted: print it as `{{{{ {name.name} | fenced("what it is") }}}}`.'
                )

    def leaks(self, node: nodes.Expr, scope: Mapping[str, bool]) -> Iterator[nodes.Name]:
        """Untrusted names that `node` would print without a fence."""
        from jinja2 import nodes

        match node:
            case nodes.Filter(name="fenced" | "length") | nodes.Compare() | nodes.Not() | nodes.Test():
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
        elif node.kwargs or node.dyn_args or node.dyn_kwargs or not _arguments_fit(node):
            self.refuse(node, f"`{node.name}` is written as {_usage(node.name)}.")
        elif node.name == "join" and not isinstance(node.node, nodes.Name):
            self.refuse(node, "`join` is the first filter after the name of a list.")
        elif node.name == "fenced" and self.role == "system":
            self.refuse(node, "`fenced` never stands in a `system:` block: what is quoted is no instruction.")
        if node.node is not None:
            self.visit(node.node, scope)


def _arguments_fit(node: nodes.Filter) -> bool:
    from jinja2 import nodes

    texts = [arg.value for arg in node.args if isinstance(arg, nodes.Const) and isinstance(arg.value, str)]
    if len(texts) != len(node.args):
        return False
    if node.name == "fenced":
        return len(texts) == 1 and LABEL.fullmatch(texts[0]) is not None
    return len(texts) <= 1 and len("".join(texts)) <= 40 if node.name == "join" else not texts


def _usage(name: str) -> str:
    return {"fenced": '`fenced("what it is")`', "join": '`join(", ")`'}.get(name, f"`{name}`, without arguments")


def _listed(names: Iterator[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
