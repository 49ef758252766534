"""A package of somebody's own brings one of each that can be named, and commands use them by their names."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from PIL import Image as Pixels

from askance.errors import AskanceError, ConfigError, StoreError, UsageError
from askance.evals.analysis.grid import read_grid
from askance.models import ChatModel, Config, Engine, get_embedder, get_model, get_scorer
from askance.models.backend import from_settings
from askance.models.factory import named
from askance.replay import MemoryStore, find_address, open_records
from tests.cli.command import Command
from tests.distributions import install
from tests.own_package import GROUPS, Lines, Parrot

OWN = "tests.own_package"


@pytest.fixture(autouse=True)
def package(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package; a picture and some texts lie here."""
    install(own_place / "site", "own-package", GROUPS)
    install(own_place / "site", "broken-package", {group: {"broken": "nowhere:made"} for group in GROUPS})
    monkeypatch.setattr(sys, "path", [*sys.path, str(own_place / "site")])
    Pixels.new("RGB", (40, 30), "red").save(own_place / "red.png")
    (own_place / "texts.csv").write_text("text\nan aardvark\nbees\n", encoding="utf-8")
    return own_place


def test_its_backend_is_asked_and_replayed_without_it(
    package: Path, askance: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["run", "ask", "What?", "red.png", "--vlm", "parrot:polly?temperature=0.5&protocol=paper", "--json"]
    asked = askance(*command)
    monkeypatch.setitem(sys.modules, OWN, None)  # as if it could not be imported
    again = askance(*command, "--replay")

    assert (asked.code, again.code) == (0, 0), asked.err
    assert "polly at 0.5" in asked.out
    assert again.stable == asked.stable


def test_its_embedder_makes_an_index(package: Path, askance: Command) -> None:
    built = askance("index", "build", "an.index", "--texts", "texts.csv", "--embedder", "letters:abcd?size=2")
    wrong = askance("index", "build", "no.index", "--texts", "texts.csv", "--embedder", "letters:abcd?sice=2")

    assert built.code == 0, built.err
    assert "letters-abcd-2" in built.out
    assert (wrong.code, "'letters:abcd' has no setting 'sice'." in wrong.err) == (2, True)


def test_its_suite_is_run_with_its_scorer(package: Path, askance: Command) -> None:
    ran = askance("eval", "run", "shapes/widths", "-T", "image=red.png", "--out", "run", "--json")
    tall = askance(
        "eval", "run", "shapes/widths", "-T", "image=red.png", "-T", "by=size:height", "--out", "tall", "--json"
    )

    assert (ran.code, tall.code) == (0, 0), ran.err
    accuracies = [
        json.loads(Path(run, "run.json").read_text(encoding="utf-8"))["figures"][0]["value"] for run in ("run", "tall")
    ]
    assert accuracies == [1.0, 0.0]


def test_its_chain_is_run_over_its_store(package: Path, askance: Command) -> None:
    command = [
        "run",
        "oddity",
        "red.png",
        "--vlm",
        "parrot:polly",
        "--protocol",
        "paper",
        "--loud",
        "--store",
        "lines:mine.jsonl",
    ]
    ran, again = askance(*command, "--json"), askance(*command, "--json", "--replay")

    assert (ran.code, again.code) == (0, 0), ran.err
    assert again.stable == ran.stable
    assert len(open_records("lines:mine.jsonl")) == len(Path("mine.jsonl").read_text(encoding="utf-8").splitlines()) > 0
    assert not Path(".askance").exists()


def test_an_address_of_its_store_is_found_like_any_other(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKANCE_STORE", "lines:here.jsonl")

    assert find_address() == "lines:here.jsonl"
    assert isinstance(Engine().recorder.records, Lines)
    assert (open_records().writable, open_records(read_only=True).writable) == (True, False)


def test_what_goes_wrong_with_its_store_says_no_password(package: Path) -> None:
    with pytest.raises(StoreError) as caught:
        open_records("lines:hunter2")

    assert str(caught.value) == (
        "The records at an address of the kind 'lines' cannot be opened: ValueError. Mend the address, or the package "
        "that brings the store."
    )


def test_a_store_that_is_none_is_refused(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{OWN}.open_lines", dict)

    with pytest.raises(StoreError, match=r"cannot be opened: a dict is no `Records`\. Mend"):
        open_records("lines:")


def engine() -> Engine:
    return Engine(records=MemoryStore())


def backend(name: str) -> ChatModel:
    """The backend of a model, as its first live call makes it."""
    return from_settings(named(name))


BROKEN: dict[str, tuple[Callable[[], object], type[AskanceError]]] = {
    "backend": (partial(backend, "broken:x"), ConfigError),
    "embedder": (lambda: get_embedder("broken:x", engine=engine()), ConfigError),
    "scorer": (lambda: get_scorer("broken:x", engine=engine()), ConfigError),
    "store": (partial(open_records, "broken:x"), StoreError),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_package_that_cannot_be_imported_is_named_and_others_go_on(what: str) -> None:
    make, error = BROKEN[what]
    message = (
        rf"^The {what} 'broken' of the package 'broken-package' cannot be loaded from 'nowhere:made': ModuleNotFound"
    )
    with pytest.raises(error, match=message):
        make()

    assert get_embedder("letters:ab", engine=engine()).id.name == "letters-ab-3"


def test_a_misspelt_name_is_told_by_those_of_the_package() -> None:
    with pytest.raises(ConfigError, match=r"'parot' in 'parot:x' is no known provider\. Nearest: 'parrot'\."):
        get_model("parot:x", engine=engine())
    with pytest.raises(StoreError, match=r"of the kind 'line': no installed package brings .* Nearest: 'lines'\."):
        open_records("line:x")


# --- whose word it is ---


def test_the_form_of_a_run_loads_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, OWN, None)
    form = {"model": {"provider": "letters", "model": "abc"}}

    for get in (get_embedder, get_scorer):
        assert str(get(form, engine=engine()).id) == "letters:abc"


def test_a_grid_names_no_package(package: Path) -> None:
    grid = {**read_grid("whoops").model_dump(exclude_defaults=True), "models": {"LLaVA": "parrot:polly"}}
    Path("grid.yaml").write_text(json.dumps(grid, default=str), encoding="utf-8")

    with pytest.raises(UsageError, match=r"names what would run code: 'parrot:polly'"):
        read_grid("grid.yaml")


def test_a_file_of_settings_needs_consent_for_it(package: Path) -> None:
    Path("askance.toml").write_text('[models.bird]\nspec = "parrot:polly"\nkey_variable = "MINE"\n', encoding="utf-8")

    with pytest.raises(ConfigError) as caught:
        backend("bird")
    assert "ask 'polly' by the backend 'parrot' of another package" in str(caught.value)
    assert "send what MINE holds to the backend 'parrot'" in str(caught.value)
    assert isinstance(backend("parrot:polly"), Parrot)


def test_a_file_of_settings_names_folders_alone(package: Path) -> None:
    Path("askance.toml").write_text('store = "lines:a.jsonl"\n', encoding="utf-8")

    with pytest.raises(ConfigError, match=r"^'store' in 'askance\.toml' names an address of the kind 'lines', and a"):
        Config.find()
