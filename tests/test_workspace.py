"""A workspace makes settings, records, engine, models and prompts once, and closes what it opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.errors import ConfigError, StoreError, UsageError
from askance.models import Config
from askance.replay import Cost, SqliteLedger
from askance.workspace import Workspace

SETTINGS = """
vlm = "seeing"

[models.seeing]
spec = "openai:sees@http://127.0.0.1:9/v1"
"""


def local(config: Config) -> str:
    assert config.vlm == "seeing"
    return "openai:here@http://127.0.0.1:9/v1"


def test_what_is_named_twice_is_one_model_of_one_engine(own_place: Path) -> None:
    (own_place / "askance.toml").write_text(SETTINGS)

    with Workspace(mode="replay") as work:
        models = [work.model(name) for name in ("seeing", "seeing", "openai:other@http://127.0.0.1:9/v1")]

        assert models[0] is models[1]
        assert {id(model.engine) for model in models} == {id(work.engine)}
        assert (work.default_model("vlm"), work.default_model("llm")) == ("seeing", None)


def test_the_local_model_stands_for_roles_that_are_given_no_other(own_place: Path) -> None:
    (own_place / "askance.toml").write_text(SETTINGS)
    work = Workspace(local=local)

    assert {work.default_model("vlm"), work.default_model("llm")} == {"openai:here@http://127.0.0.1:9/v1"}


@pytest.mark.parametrize("work", [Workspace(plan=True), Workspace(mode="replay")], ids=["plan", "replay"])
def test_where_nothing_is_asked_nothing_is_written(work: Workspace, own_place: Path) -> None:
    with work, pytest.raises(StoreError):
        work.records.put_all([])

    assert list(own_place.iterdir()) == []


def test_a_budget_is_kept_where_it_is_said_and_a_plan_has_none(own_place: Path) -> None:
    with Workspace(budget="5calls", name="here") as work:
        guard = work.engine.budget
        assert guard is not None
        assert isinstance(guard.ledger, SqliteLedger)
        assert guard.ledger.path == work.records.beside("budgets") / "here.db"
        work.use_ledger(file=own_place / "there.db")
        assert isinstance(guard.ledger, SqliteLedger)
        assert guard.ledger.path == own_place / "there.db"

    with Workspace(budget="5calls@ads") as work, Workspace(budget="5calls@ads") as other:
        work.use_ledger(file=own_place / "mine.db")
        assert work.engine.budget is not None
        assert other.engine.budget is not None
        reserved = work.engine.budget.ledger.reserve(Cost(calls=4))
        assert other.engine.budget.ledger.reserve(Cost(calls=2)) is None
        assert reserved is not None
    with pytest.raises(UsageError, match=r"^'a/b' cannot be the name of a budget\."):
        _ = Workspace(budget="5calls@a/b").engine
    assert Workspace(budget="5calls", plan=True).engine.budget is None
    with pytest.raises(UsageError, match="is not a budget"):
        _ = Workspace(budget="much", plan=True).engine


def test_the_store_of_the_environment_goes_before_that_of_the_settings(
    own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_place / "askance.toml").write_text('store = "settings"\n')
    monkeypatch.delenv("ASKANCE_STORE")
    folders: list[str] = []
    for store in (None, own_place / "given"):
        with Workspace(store=store) as work:
            folders.append(work.records.beside("").name)
    monkeypatch.setenv("ASKANCE_STORE", str(own_place / "environment"))
    with Workspace() as work:
        folders.append(work.records.beside("").name)

    assert folders == ["settings", "given", "environment"]


def test_what_is_not_there_is_said(own_place: Path) -> None:
    with pytest.raises(
        UsageError, match=r"^There is no prompts folder 'mine'\. `askance prompts eject NAME --to mine`"
    ):
        _ = Workspace(prompts=Path("mine")).library
    with Workspace(mode="replay") as work, pytest.raises(ConfigError):
        work.model("nobody")
