"""The structure of the package as tables, and how code is checked against them.

The tables say which package stands on which floor and where each vendor may be imported. `read_package` and `arrows_of`
turn a folder of sources into arrows, one for each import; each check goes from arrows to what is wrong with them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Literal

PACKAGE = "askance"

FLOORS: tuple[tuple[str, ...], ...] = (
    (
        "amounts",
        "concurrency",
        "data_table",
        "documents",
        "errors",
        "process_lock",
        "python_file",
        "registry",
        "spec_grammar",
        "statistics",
        "terminal",
        "trust",
    ),
    ("images", "atypicality"),
    ("chat",),
    ("replay", "prompts"),
    ("models",),
    ("nodes", "otel", "workspace"),
    ("tools",),
    ("agents",),
    ("chains", "investigator", "retrieval"),
    ("demo", "evals"),
    ("mcp", "scale", "training"),
    ("cli",),
    ("__main__",),
)
"""From the lowest up. A package imports from its own floor and those below it."""

BESIDE = {"testing": "models"}
"""Packages that no other imports, and the floor they stand beside: they import what may be imported there, and it."""

SUITES = tuple(f"{PACKAGE}.evals.{suite}" for suite in ("injection", "pittads", "whoops", "newyorker", "sherlock"))
"""Suites of tasks. What two of them need stands in `evals.suite`."""

RUNNABLE_PACKAGES = tuple(f"{PACKAGE}.{name}*" for name in ("nodes", "tools", "agents", "chains"))

VENDORS: dict[str, tuple[str, ...]] = {
    "Stemmer": ("askance.retrieval.bm25",),
    "PIL": ("askance.images*",),
    "aiohttp": ("askance.models.openai.transport",),
    "bm25s": ("askance.retrieval.bm25",),
    "chromadb": (),
    "datasets": ("askance.data_table.hub_table", "askance.evals.exports.frames", "askance.training.trainer"),
    "diskcache": ("askance.replay*",),
    "filelock": (
        "askance.evals.run_folder",
        "askance.models.batch.batch_job",
        "askance.models.encoders.vectors",
        "askance.retrieval.index",
        "askance.scale.storage",
    ),
    "fsspec": ("askance.scale.storage",),
    "huggingface_hub": ("askance.models.local.hub",),
    "httpx2": ("askance.models.*openai*",),
    "jinja2": ("askance.evals.report.html", "askance.prompts*"),
    "lancedb": ("askance.retrieval.lance",),
    "langchain": ("askance.investigator.graph", "askance.models.*langchain*"),
    "langchain_core": (
        "askance.investigator.*",
        "askance.models.*langchain*",
        *(f"askance.{name}*" for name in ("nodes", "tools", "agents", "chains")),
    ),
    "langchain_openai": ("askance.models.*langchain*",),
    "langgraph": ("askance.investigator.graph",),
    "langsmith": ("askance.models.*langchain*", "askance.nodes*"),
    "llama_index": ("askance.retrieval.llama",),
    "llguidance": ("askance.models.local.sampler",),
    "matplotlib": ("askance.evals.report.plot_file",),
    "mcp": ("askance.mcp.mcp_server",),
    "mlflow": ("askance.evals.exports.mlflow_store",),
    "numpy": (
        "askance.evals.matrix",
        "askance.evals.metric",
        "askance.evals.sherlock*",
        "askance.evals.suite.shots",
        "askance.models.encoders.search",
        "askance.models.encoders.vectors",
        "askance.retrieval.*",
        "askance.statistics*",
        "askance.training.example_splits",
    ),
    "onnxruntime": (),
    "openai": ("askance.models.*openai*",),
    "opentelemetry": ("askance.otel.span_collector", "askance.otel.span_tracer"),
    "pandas": ("askance.evals.exports.frames",),
    "peft": ("askance.models.local.adapter",),
    "polars": ("askance.evals.exports.frames",),
    "pyarrow": (
        "askance.data_table.*",
        "askance.evals.exports.frames",
        "askance.retrieval.lance",
        "askance.training.training_set",
    ),
    "psycopg": ("askance.replay.postgres*",),
    "pycocoevalcap": ("askance.evals.whoops.captioning",),
    "pydantic": (
        "askance.evals*",
        "askance.investigator*",
        "askance.mcp.mcp_server",
        "askance.models.*langchain*",
        "askance.scale.shards",
        "askance.training.recipe",
        *RUNNABLE_PACKAGES,
    ),
    "rapidfuzz": ("askance.evals.suite.answer_match",),
    "rapidocr": ("askance.tools.*ocr*",),
    "ray": ("askance.scale.ray_workers",),
    "regex": ("askance.evals.suite.answer_match",),
    "rich": ("askance.cli*",),
    "rouge_score": ("askance.evals.suite.text_overlap",),
    "sacrebleu": ("askance.evals.suite.text_overlap",),
    "safetensors": (),
    "scipy": ("askance.statistics*", "askance.scale.corpus_plan"),
    "sentence_transformers": ("askance.models.encoders.sentence",),
    "sklearn": ("askance.evals.negatives*", "askance.evals.sherlock.error_analysis"),
    "statsmodels": (),
    "tenacity": ("askance.models*", "askance.replay.sqlite_ledger"),
    "torch": ("askance.models.local.*",),
    "transformers": ("askance.models.local.*",),
    "trl": ("askance.training.trainer",),
    "typer": ("askance.cli*",),
    "uvicorn": ("askance.mcp.mcp_server",),
    "vllm": ("askance.models.vllm.*",),
    "xlsxwriter": ("askance.evals.exports.frames",),
    "yarl": ("askance.models.openai.transport",),
    "yaml": ("askance.documents", "askance.prompts*"),
}
"""Where each vendor's package may be imported, as patterns of module names; typing-only imports are free."""

OVER_INPUT = frozenset(
    {"BadData", "BadImage", "BadOptions", "ConfigError", "MissingExtra", "PromptError", "UsageError"}
)
"""Errors over something that a person gave."""

SPOKEN = frozenset({"rich", "typer"})
"""Of the vendors, those that `askance.cli` may load at once; nothing else loads any."""

When = Literal["load", "typing", "call", "lazy"]
"""An import runs as its module loads, never (typing only), as a function is called, or when a name of
a package is first used (lazy)."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """One import."""

    source: str
    target: str
    line: int
    when: When

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target}"

    @property
    def inside(self) -> bool:
        """Whether the target is first-party."""
        return _within(self.target, PACKAGE)


@dataclass(frozen=True, slots=True)
class Module:
    """One source file of a package."""

    name: str
    path: Path
    tree: ast.Module
    stub: ast.Module | None = None
    """The `__init__.pyi`: the public names of a package, and the module of each."""

    @property
    def is_init(self) -> bool:
        return self.path.name == "__init__.py"


def read_package(folder: Path) -> dict[str, Module]:
    """The modules of the package in `folder`, by name."""
    modules = (_read(path, folder) for path in sorted(folder.rglob("*.py")))
    return {module.name: module for module in modules}


def _read(path: Path, folder: Path) -> Module:
    parts = path.relative_to(folder.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    stub = path.with_suffix(".pyi")
    return Module(name=name, path=path, tree=_parsed(path), stub=_parsed(stub) if stub.is_file() else None)


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def arrows_of(modules: dict[str, Module]) -> list[Arrow]:
    """Every import in `modules`."""
    return [arrow for module in modules.values() for arrow in _Imports(module, known=modules.keys()).arrows]


class _Imports(ast.NodeVisitor):
    """Collects the arrows of one module."""

    def __init__(self, module: Module, *, known: Iterable[str]) -> None:
        self.arrows: list[Arrow] = []
        self._module = module
        self._known = frozenset(known)
        self._when: When = "load"
        self.visit(module.tree)
        if module.stub is not None:
            self._walk(module.stub.body, "lazy")

    def visit_If(self, node: ast.If) -> None:
        is_typing = ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        self._walk(node.body, "typing" if is_typing else self._when)
        self._walk(node.orelse, self._when)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._walk(node.body, "call" if self._when == "load" else self._when)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self._absolute(node)
        for alias in node.names:
            if (base, alias.name) == (PACKAGE, "__version__"):
                continue
            inner = f"{base}.{alias.name}"
            self._add(inner if inner in self._known else base, node.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        """`import_module("name")` is an import too."""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        is_import = called in ("import_module", "__import__")
        name = node.args[0] if node.args else None
        if is_import and isinstance(name, ast.Constant) and isinstance(name.value, str):
            self._add(name.value, node.lineno)
        self.generic_visit(node)

    def _walk(self, nodes: Iterable[ast.AST], when: When) -> None:
        before, self._when = self._when, when
        for node in nodes:
            self.visit(node)
        self._when = before

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self._module.name.split(".")
        above = parts[: len(parts) - node.level + self._module.is_init]
        return ".".join([*above, *([node.module] if node.module else [])])

    def _add(self, target: str, line: int) -> None:
        self.arrows.append(Arrow(self._module.name, target, line, self._when))


def running_back(arrows: Iterable[Arrow]) -> list[str]:
    """Imports of a package on a higher floor, of one that nobody imports, or of `askance` itself."""
    return [f"{arrow}, {why}" for arrow in arrows if arrow.inside and (why := _why_back(arrow))]


def _why_back(arrow: Arrow) -> str | None:
    source, target = _package(arrow.source), _package(arrow.target)
    for name in (source, target):
        if name and name not in _LEVELS:
            return f"and `{name}` has no floor: give it one in tests/house.py"
    if source in ("", target):
        return None
    if not target:
        return "the `__init__` of all: import the package that has the name"
    if target in BESIDE:
        return "which is for those who write backends: no package builds on it"
    return "which stands on a higher floor" if _LEVELS[source] < _LEVELS[target] else None


def _levels() -> dict[str, float]:
    floors: dict[str, float] = {name: level for level, names in enumerate(FLOORS) for name in names}
    return floors | {name: floors[neighbour] + 0.5 for name, neighbour in BESIDE.items()}


_LEVELS = _levels()


def _package(module: str) -> str:
    """The package below `askance` that a module belongs to; empty for `askance` itself."""
    return module.split(".")[1] if "." in module else ""


def circle(arrows: Iterable[Arrow]) -> str | None:
    """One circle of modules that import each other, be it for types alone, if there is any."""
    graph: dict[str, set[str]] = {}
    for arrow in arrows:
        if arrow.inside and arrow.when != "lazy":
            graph.setdefault(arrow.source, set()).update(_loaded_by(arrow))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " ← ".join(error.args[1])
    return None


def _loaded_by(arrow: Arrow) -> Iterator[str]:
    """The target and, from outside its sub-package, the `__init__` that loads before it."""
    yield arrow.target
    parent = arrow.target.rpartition(".")[0]
    if arrow.when == "load" and parent not in ("", PACKAGE) and not _within(arrow.source, parent):
        yield parent


def hidden(arrows: Iterable[Arrow]) -> list[str]:
    """First-party imports inside functions, outside of commands and of lazy `__init__`s."""
    return [
        f"{arrow} inside a function"
        for arrow in arrows
        if arrow.inside and arrow.when == "call" and not _within(arrow.source, f"{PACKAGE}.cli")
    ]


def astray(arrows: Iterable[Arrow]) -> list[str]:
    """Imports of vendors' packages outside the modules that adapt them."""
    return [
        f"{arrow}, which belongs to {' or '.join(VENDORS[vendor]) or 'nobody yet'}"
        for arrow in arrows
        if arrow.when != "typing"
        and (vendor := arrow.target.partition(".")[0]) in VENDORS
        and not any(fnmatchcase(arrow.source, pattern) for pattern in VENDORS[vendor])
    ]


def crossing(arrows: Iterable[Arrow]) -> list[str]:
    """Imports of a suite by another, or by what stands beside them in `evals`."""
    return [
        f"{arrow}, which only its own suite and commands import"
        for arrow in arrows
        if _within(arrow.source, f"{PACKAGE}.evals")
        for suite in SUITES
        if _within(arrow.target, suite) and not _within(arrow.source, suite)
    ]


def bypassing(arrows: Iterable[Arrow]) -> list[str]:
    """Imports of the store on disk past `open_records`, which alone knows the store of an address."""
    return [
        f"{arrow}, which `open_records` opens"
        for arrow in arrows
        if _within(arrow.target, f"{PACKAGE}.replay.store") and not _within(arrow.source, f"{PACKAGE}.replay")
    ]


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def without_way_out(modules: Iterable[Module]) -> list[str]:
    """Errors over something that a person gave, which do not say what to do about it."""
    return [
        f"{module.name}:{call.lineno} makes a {call.func.id} without a hint"
        for module in modules
        for call in ast.walk(module.tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in OVER_INPUT
        if not any(keyword.arg in {"hint", None} for keyword in call.keywords)
    ]


PRINTERS = {"askance.terminal": "print", "askance.cli.console": "rich.console"}
"""The one module that prints, and the one that makes a terminal with colours."""


def printing(modules: Iterable[Module]) -> list[str]:
    """What prints past `askance.terminal.echo`, or on a terminal of rich's own."""
    return [
        f"{module.name} uses {used}"
        for module in modules
        for node in ast.walk(module.tree)
        if (used := _printer(node)) is not None and PRINTERS.get(module.name) != used
    ]


def _printer(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Name(id="print")):
            return "print"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="typer" | "click"), attr="echo" | "secho" as name)):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr=stream), attr="write")):
            return f"sys.{stream}"
        case ast.ImportFrom(module="rich.console" as name, level=0) | ast.alias(name="rich.console" as name):
            return name
        case ast.ImportFrom(module="rich", names=names) if any(each.name in {"console", "print"} for each in names):
            return "rich.console"
        case _:
            return None


# --- names ---

VARIANTS = re.compile(r"(?:ations?|ings?|ed|ers?|ors?|e?s|e)$")
"""Endings by which two words of one stem differ."""


def twins(modules: Mapping[str, Module]) -> list[str]:
    """Siblings whose names differ in number or ending alone: nobody can guess which of them holds a thing."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in modules:
        folder, _, stem = name.rpartition(".")
        found.setdefault((folder, VARIANTS.sub("", stem)), []).append(stem)
    return [f"{folder}: {', '.join(stems)}" for (folder, _), stems in found.items() if len(stems) > 1]


def namesakes(modules: Mapping[str, Module]) -> list[str]:
    """Names of public classes that stand in two places, and where."""
    found: dict[str, list[str]] = {}
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(module.name)
    return [f"{name}: {', '.join(places)}" for name, places in found.items() if len(places) > 1]


def basenames(modules: Mapping[str, Module]) -> list[str]:
    """Names of modules that stand twice in the package, and where.

    Suites are alike, and a command's module is called as what it shows: each of them is looked at alone.
    """
    apart = (*SUITES, f"{PACKAGE}.cli")
    found: dict[tuple[str, str], list[str]] = {}
    for name in modules:
        package = next((each for each in apart if _within(name, each)), PACKAGE)
        found.setdefault((package, name.rpartition(".")[2]), []).append(name)
    return [", ".join(places) for places in found.values() if len(places) > 1]


def verbal(modules: Mapping[str, Module]) -> list[str]:
    """Modules in -ing or -ed, whose names are mostly not those of things; but for `NOUNS`."""
    return [name for name in modules if name.endswith(("ing", "ed")) and name.rpartition(".")[2] not in NOUNS]


NOUNS = {
    "captioning": "a task of WHOOPS! (section 4.2)",
    "matching": "a task of WHOOPS! (section 4.2) and of the New Yorker paper (section 2.1)",
    "ranking": "a task of the New Yorker paper (section 2.1, quality ranking)",
    "reading": "what a chain gives: `Reading` is the noun of its class",
    "resampling": "what statistics calls bootstrap and permutations together",
    "testing": "helpers for tests, as numpy and torch name theirs",
    "training": "what machine learning calls it",
    "tracing": "what LangChain and OpenTelemetry call it",
}
"""Names in -ing that the field uses for things, and where they come from."""
