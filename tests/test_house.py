"""The structure of the package: floors, circles, vendors, public names, and what its files say; each check can fail."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tests.house import (
    BESIDE,
    FLOORS,
    PACKAGE,
    SPOKEN,
    VENDORS,
    Arrow,
    Module,
    arrows_of,
    astray,
    basenames,
    bypassing,
    circle,
    crossing,
    hidden,
    namesakes,
    printing,
    read_package,
    running_back,
    twins,
    verbal,
    without_way_out,
)

ROOT = Path(__file__).resolve().parent.parent
STUBBED = sorted(".".join(stub.relative_to(ROOT).parts[:-1]) for stub in (ROOT / PACKAGE).rglob("__init__.pyi"))


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    return read_package(ROOT / PACKAGE)


@pytest.fixture(scope="module")
def arrows(modules: dict[str, Module]) -> list[Arrow]:
    return arrows_of(modules)


CHECKS: dict[str, Callable[[list[Arrow]], object]] = {
    "no arrow runs back": running_back,
    "no circle, be it for types alone": circle,
    "no first-party import hides in a function": hidden,
    "vendors stay with their adapters": astray,
    "suites keep to themselves": crossing,
    "records are opened by their address": bypassing,
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_structure_is_as_its_tables_say(check: Callable[[list[Arrow]], object], arrows: list[Arrow]) -> None:
    assert not check(arrows)


BROKEN = {
    "higher floor, in an init": (
        running_back,
        {"replay/__init__.py": "import lazy_loader", "replay/__init__.pyi": "from ..cli import main as main"},
    ),
    "higher floor": (running_back, {"chat.py": "from askance.models import Model"}),
    "higher floor, typing only": (running_back, {"chat.py": "if TYPE_CHECKING:\n    from askance import chains"}),
    "higher floor, sideways": (running_back, {"chat.py": "from .cli import main"}),
    "own init": (running_back, {"chat.py": "from askance import Image"}),
    "what is for backends": (running_back, {"models/__init__.py": "import askance.testing"}),
    "unknown package": (running_back, {"helpers.py": "from askance import chat"}),
    "two modules": (circle, {"nodes/a.py": "import askance.nodes.b", "nodes/b.py": "from askance.nodes import a"}),
    "two modules, typing only": (
        circle,
        {"nodes/a.py": "import askance.nodes.b", "nodes/b.py": "if TYPE_CHECKING:\n    import askance.nodes.a"},
    ),
    "two modules, in a function": (
        circle,
        {"cli/a.py": "import askance.cli.b", "cli/b.py": "def f():\n    import askance.cli.a"},
    ),
    "module and init": (
        circle,
        {"replay/__init__.py": "from .a import x", "replay/a.py": "from askance.replay import y"},
    ),
    "two inits": (
        circle,
        {"replay/__init__.py": "import askance.prompts.a", "prompts/__init__.py": "import askance.replay"},
    ),
    "in a function": (hidden, {"chat.py": "def f():\n    from askance.images import Image"}),
    "in a method": (hidden, {"chat.py": "class C:\n    async def f(self):\n        import askance.images"}),
    "by name": (hidden, {"chat.py": "def f():\n    importlib.import_module('askance.images')"}),
    "another suite": (
        crossing,
        {"evals/whoops/a.py": "from askance.evals.pittads.b import c", "evals/pittads/b.py": ""},
    ),
    "a suite, typing only": (
        crossing,
        {"evals/run.py": "if TYPE_CHECKING:\n    from askance.evals.whoops import a", "evals/whoops/a.py": ""},
    ),
    "store": (bypassing, {"workspace.py": "from askance.replay.store import Store", "replay/store.py": ""}),
    "vendor": (astray, {"chat.py": "import openai.types"}),
    "vendor in a function": (
        astray,
        {"models/adapter.py": "def f():\n    from langchain_core.messages import AIMessage"},
    ),
    "vendor without a place": (astray, {"models/openai.py": "import torch"}),
}


@pytest.mark.parametrize(("check", "sources"), BROKEN.values(), ids=BROKEN)
def test_a_broken_structure_is_seen(
    check: Callable[[list[Arrow]], object], sources: dict[str, str], package: Callable[[dict[str, str]], list[Arrow]]
) -> None:
    assert check(package(sources))


SOUND = {
    "own floor": {"replay/store.py": "from askance.prompts import Prompt"},
    "version": {"chat.py": "from askance import __version__"},
    "command": {"cli/run.py": "def run():\n    from askance.chains import action_reason"},
    "lazy init": {
        "models/__init__.py": "import lazy_loader",
        "models/__init__.pyi": "from .openai import OpenAIModel as OpenAIModel",
        "models/openai.py": "from askance.models import Model",
    },
    "members behind an init": {
        "replay/__init__.py": "from askance.replay.a import x",
        "replay/a.py": "from .b import x",
        "replay/b.py": "",
    },
    "adapter": {
        "models/openai.py": "import openai",
        "models/langchain.py": "def f():\n    import langchain_core.messages",
    },
    "vendor's types": {"models/adapter.py": "if TYPE_CHECKING:\n    import openai"},
    "beside": {"testing.py": "from askance.models import ScriptedModel"},
}


@pytest.mark.parametrize("sources", SOUND.values(), ids=SOUND)
def test_a_sound_structure_passes(sources: dict[str, str], package: Callable[[dict[str, str]], list[Arrow]]) -> None:
    arrows = package(sources)

    assert arrows or sources == SOUND["version"]
    assert [check(arrows) or None for check in CHECKS.values()] == [None] * len(CHECKS)


@pytest.fixture
def package(tmp_path: Path) -> Callable[[dict[str, str]], list[Arrow]]:
    """Arrows of a package made up of the given files."""

    return lambda sources: arrows_of(read_package(written(tmp_path, sources)))


def written(folder: Path, sources: dict[str, str]) -> Path:
    """The folder of a package with the given files."""
    package = folder / PACKAGE
    for name, text in sources.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    return package


def test_the_design_page_has_the_same_floors() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    shown = {name: floor for floor, name in re.findall(r"^\| ([\d–]+) \| `(\w+)` \|", page, re.MULTILINE)}
    levels = {name: level for level, names in enumerate(FLOORS, start=1) for name in names if name != "__main__"}
    drawn = {name: str(level) for name, level in levels.items()}
    beside = {name: f"{levels[neighbour]}–{levels[neighbour] + 1}" for name, neighbour in BESIDE.items()}

    assert shown == drawn | beside


# --- names ---

NAMES: dict[str, Callable[[Mapping[str, Module]], list[str]]] = {
    "no siblings of one stem": twins,
    "each class has its own name": namesakes,
    "each module has its own name": basenames,
    "modules are nouns": verbal,
}


@pytest.mark.parametrize("check", NAMES.values(), ids=NAMES)
def test_names_tell_things_apart(
    check: Callable[[Mapping[str, Module]], list[str]], modules: dict[str, Module]
) -> None:
    assert check(modules) == []


ALIKE = {
    "number": (twins, {"replay/record.py": "", "replay/records.py": ""}),
    "ending": (twins, {"replay/capture.py": "", "replay/capturing.py": ""}),
    "class": (namesakes, {"chat.py": "class Task: ...", "replay/a.py": "class Task: ..."}),
    "module": (basenames, {"models/openai/client.py": "", "models/vllm/client.py": ""}),
    "module of another package": (basenames, {"chat.py": "", "models/openai/chat.py": ""}),
    "verb": (verbal, {"replay/drawing.py": ""}),
}


@pytest.mark.parametrize(("check", "sources"), ALIKE.values(), ids=ALIKE)
def test_a_name_that_misleads_is_seen(
    check: Callable[[Mapping[str, Module]], list[str]], sources: dict[str, str], tmp_path: Path
) -> None:
    assert len(check(read_package(written(tmp_path, sources)))) == 1


# --- what loads with what ---


def test_whoever_gave_something_wrong_is_told_the_way_out(modules: dict[str, Module]) -> None:
    assert without_way_out(modules.values()) == []


def test_an_error_without_a_way_out_is_seen(tmp_path: Path) -> None:
    source = "def check(x):\n    if x:\n        raise BadData('No.', hint='Go.')\n    raise UsageError('No.')\n"
    (tmp_path / PACKAGE).mkdir()
    (tmp_path / PACKAGE / "odd.py").write_text(source, encoding="utf-8")

    found = without_way_out(read_package(tmp_path / PACKAGE).values())

    assert found == [f"{PACKAGE}.odd:4 makes a UsageError without a hint"]


def test_one_place_prints(modules: dict[str, Module]) -> None:
    assert printing(modules.values()) == []


PRINTED = {
    "print": "print('x')",
    "echo": "import typer\ntyper.echo('x')",
    "sys.stderr": "sys.stderr.write('x')",
    "rich.console": "def f():\n    from rich.console import Console",
}


@pytest.mark.parametrize(("used", "source"), PRINTED.items(), ids=PRINTED)
def test_what_prints_elsewhere_is_seen(used: str, source: str, tmp_path: Path) -> None:
    sources = {"terminal.py": "print('x')", "cli/eval.py": source}
    (found,) = printing(read_package(written(tmp_path, sources)).values())

    assert found.endswith(f"uses {used}")


LIGHT = (
    "askance",
    "askance.errors",
    "askance.chat",
    "askance.replay",
    "askance.prompts",
    "askance.statistics",
    "askance.models",
    "askance.cli",
)


@pytest.mark.parametrize("name", LIGHT)
def test_loading_brings_no_vendor(name: str) -> None:
    allowed = SPOKEN if name == "askance.cli" else frozenset[str]()

    assert loaded_vendors(f"import {name}") - allowed == set()


def test_a_loaded_vendor_is_seen() -> None:
    assert loaded_vendors("import yaml") == {"yaml"}


def loaded_vendors(statement: str) -> set[str]:
    """Vendors' packages in a fresh interpreter after `statement`."""
    script = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    return set(done.stdout.split()) & VENDORS.keys()


# --- public names ---


@pytest.mark.parametrize("name", STUBBED)
def test_a_package_shows_what_its_stub_says_and_no_module(name: str, modules: dict[str, Module]) -> None:
    for module in modules:
        if module.rpartition(".")[0] == name:
            importlib.import_module(module)
    package = importlib.import_module(name)
    shown: list[str] = package.__all__

    assert [entry for entry in shown if isinstance(getattr(package, entry), ModuleType)] == []
    assert set(shown) <= {*dir(package)}


# --- the metadata ---


def declared() -> dict[str, set[str]]:
    """Distributions that pyproject.toml asks for: `core`, and each extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"core": project["dependencies"], **project["optional-dependencies"]}
    return {group: {plain(line) for line in lines} - {PACKAGE} for group, lines in groups.items()}


def plain(requirement: str) -> str:
    """The name in a requirement, in its normal form."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


@pytest.fixture(scope="module")
def used(arrows: list[Arrow]) -> set[str]:
    """Distributions that the package imports."""
    owners = importlib.metadata.packages_distributions()
    tops = {arrow.target.partition(".")[0] for arrow in arrows if not arrow.inside}
    found = {top: [plain(owner) for owner in owners.get(top, [top])] for top in tops - sys.stdlib_module_names}
    return {plain(top) if plain(top) in names else names[0] for top, names in found.items()}


def test_what_is_imported_is_declared(used: set[str]) -> None:
    groups = declared()

    assert used - groups["core"].union(*(groups[extra] for extra in groups.keys() - {"dev"})) == set()


def test_what_is_declared_is_imported(used: set[str]) -> None:
    assert declared()["core"] - used == set()


def test_the_changelog_begins_with_this_version() -> None:
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert first
    assert first[1] == importlib.import_module(PACKAGE).__version__


# --- what the files say ---

FORBIDDEN = {
    "a folder of one machine": r"(?<![\w.$}])/(?:work|root)/",
    "a registry's host": r"\b(?:pypi|pythonhosted|npmjs|crates|golang|debian|anaconda|pytorch)\.(?:org|com|io)\b",
    "a mark of unfinished work": r"\b(?:TODO|FIXME)\b|raise NotImplementedError",
    "a folder outside the repository": r"\.\./shared\b",
    "a number that only its writers know": r"\b[Ii]ssue #?\d+",
}
"""Patterns that no file holds but this one."""


@pytest.mark.parametrize("pattern", FORBIDDEN.values(), ids=FORBIDDEN)
def test_the_project_speaks_only_of_itself(pattern: str) -> None:
    wanted = re.compile(pattern)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if wanted.search(line)
    ]

    assert found == []


SAYINGS = ["/work/main/x", "see /root/.ssh", "pypi.org", "# TODO: later", "(Issue #12)", "../shared/style.md"]


@pytest.mark.parametrize("line", SAYINGS)
def test_a_line_that_speaks_of_something_else_is_seen(line: str) -> None:
    assert any(re.search(pattern, line) for pattern in FORBIDDEN.values())


@cache
def texts() -> list[tuple[Path, str]]:
    """Every file of the repository that is text."""
    found: list[tuple[Path, str]] = []
    for path in files():
        with suppress(UnicodeDecodeError):
            found.append((path, path.read_text(encoding="utf-8")))
    return found


def files() -> list[Path]:
    """What git tracks or would track; in an unpacked source archive, everything outside hidden folders."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split("\0")
    paths = [ROOT / name for name in listed if name]
    if not paths:
        paths = [path for path in ROOT.rglob("*") if not any(part[0] == "." for part in path.relative_to(ROOT).parts)]
    return [path for path in paths if path.is_file() and not path.is_symlink() and path != Path(__file__)]
