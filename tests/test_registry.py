"""Registries: what is built in goes first and looks at no package; what is wrong with a package is told by its name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from askance.errors import StoreError, UsageError
from askance.registry import Registry, near_file
from tests.distributions import install

GROUP = "askance.tests"
FINE = "made = 'made by a package'\n"


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages: two bring `twice`, one of them `path`, too; two cannot be loaded."""
    there = tmp_path / "site"
    install(
        there, "fine-package", {GROUP: {"fine": "fine_module:made", "twice": "fine_module:made"}}, {"fine_module": FINE}
    )
    install(there, "other-package", {GROUP: {"twice": "other_module:made", "path": "other_module:made"}})
    install(there, "broken-package", {GROUP: {"broken": "broken_module:made"}}, {"broken_module": "1 / 0\n"})
    install(there, "lacking-package", {GROUP: {"lacking": "fine_module:nothing"}})
    monkeypatch.setattr(sys, "path", [*sys.path, str(there)])
    yield there
    sys.modules.pop("fine_module", None)


@pytest.fixture
def registry() -> Registry:
    return Registry(group=GROUP, what="thing", built_in={"path": "pathlib:Path"}, error=StoreError)


def test_names_are_listed_and_nothing_is_loaded(registry: Registry) -> None:
    assert registry.names() == ["path", "broken", "fine", "lacking", "twice"]
    assert ("path" in registry, "fine" in registry, "none" in registry) == (True, True, False)
    assert registry.modules("fine") == ["fine_module"]
    assert (sorted(registry.modules("twice")), registry.modules("none")) == (["fine_module", "other_module"], [])
    assert not {"fine_module", "broken_module"} & {*sys.modules}


def test_what_goes_by_a_name_is_loaded(registry: Registry) -> None:
    assert (registry.load("path"), registry.load("fine")) == (Path, "made by a package")
    assert "broken_module" not in sys.modules


def test_what_is_built_in_looks_at_no_package(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked_at(**_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("importlib.metadata.entry_points", looked_at)
    monkeypatch.setattr(sys, "path", [*sys.path])

    assert ("path" in registry, registry.load("path"), registry.modules("path")) == (True, Path, ["pathlib"])


WRONG = {
    "broken": r"^The thing 'broken' of the package 'broken-package' cannot be loaded from 'broken_module:made': "
    r"ZeroDivisionError: division by zero\. Mend the package, or uninstall it\.$",
    "lacking": r"^The thing 'lacking' of the package 'lacking-package' cannot be loaded from 'fine_module:nothing': "
    r"AttributeError: .*'nothing'\. Mend",
    "twice": r"^Several packages bring a thing 'twice': '\w+-package' \(\w+_module:made\) and '\w+-package' "
    r"\(\w+_module:made\)\. Uninstall all but one\.$",
}


@pytest.mark.parametrize(("name", "message"), WRONG.items(), ids=WRONG)
def test_what_is_wrong_with_a_package_is_told(name: str, message: str, registry: Registry) -> None:
    with pytest.raises(StoreError, match=message):
        registry.load(name)

    assert registry.load("fine") == "made by a package"


def test_one_place_named_twice_is_one(site: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site.parent / "again", "fine-again", {GROUP: {"fine": "fine_module:made"}})
    monkeypatch.setattr(sys, "path", [*sys.path, str(site.parent / "again")])

    assert registry.load("fine") == "made by a package"


def test_a_name_that_is_built_in_cannot_be_taken(caplog: pytest.LogCaptureFixture) -> None:
    taken = Registry(group=GROUP, what="item", built_in={"path": "pathlib:Path"})

    assert taken.load("path") is Path
    assert [taken.names().count("path") for _ in range(2)] == [1, 1]
    assert caplog.messages == [
        "The item 'path' of the package 'other-package' is never used: one that is built in has this name."
    ]


def test_errors_are_those_of_usage_unless_it_is_said() -> None:
    with pytest.raises(UsageError):
        Registry(group=GROUP, what="thing").load("broken")


def test_a_missing_file_is_answered_with_what_is_called_alike(tmp_path: Path) -> None:
    for name in ("claims.yaml", "grid.yaml"):
        (tmp_path / name).touch()

    assert near_file(tmp_path / "clams.yaml") == f"Nearest: {str(tmp_path / 'claims.yaml')!r}. "
    assert near_file(tmp_path / "nothing" / "clams.yaml") == ""
