"""Chains and readings travel between processes: for Ray, joblib and multiprocessing."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from askance.chains import (
    LINKS,
    Chain,
    Link,
    Reading,
    Step,
    action_reason,
    end_to_end,
    explain,
    identify,
    picture,
    verbalize,
)
from askance.chat import canonical_json
from askance.errors import OverBudget, PromptError, UsageError
from askance.models import Engine, Model, get_model
from askance.models.budget import BudgetGuard
from askance.prompts import PromptLibrary
from askance.replay import Budget, Cost, MemoryStore, SqliteLedger, open_records
from askance.tools import ocr
from tests.scripted import OPTIONS, PICTURE, model_of, scripted

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuv"
INPUT = {"image": str(PICTURE), "options": OPTIONS}
NUMBER = Link("number", int)


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def one(image: object) -> int:
    return 1


def test_a_chain_that_was_pickled_replays_the_same_in_another_process(own_place: Path) -> None:
    with open_records(own_place / "records") as store:
        action_reason(model_of(scripted(), records=store)).invoke(INPUT)
        chain = action_reason(model_of(scripted(), records=store, mode="replay"))
        reading = chain.invoke(INPUT)
        (own_place / "chain.pickle").write_bytes(pickle.dumps((chain, pickle.dumps(chain))))
    (own_place / "elsewhere").mkdir()

    code = f"""
import pickle
from askance.chat import canonical_json
first, second = pickle.load(open({str(own_place / "chain.pickle")!r}, "rb"))
second = pickle.loads(second)
assert {{node.model.engine for node in first.nodes}} == {{node.model.engine for node in second.nodes}}
assert len({{id(node.model) for node in first.nodes}}) == 1
print(canonical_json({{**second.invoke({INPUT!r}).to_dict(), "meta": None}}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=own_place / "elsewhere", capture_output=True, text=True, check=False
    )

    assert (done.stderr, done.stdout.strip()) == ("", canonical_json({**reading.to_dict(), "meta": None}))


def test_all_processes_that_an_engine_travels_to_spend_of_one_budget(own_place: Path) -> None:
    with closing(SqliteLedger(Path("ledger.db"), Budget(calls=5))) as ledger:
        engine = Engine(records=open_records("records"), budget=BudgetGuard(ledger))
        (own_place / "engine.pickle").write_bytes(pickle.dumps(engine))
        (own_place / "elsewhere").mkdir()
        code = f"""
import pickle
from askance.replay import Cost
engine = pickle.load(open({str(own_place / "engine.pickle")!r}, "rb"))
ledger = engine.budget.ledger
ledger.settle(ledger.reserve(Cost(calls=3)), Cost(calls=3))
engine.budget.close()
print(engine.recorder.records.name)
"""
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=own_place / "elsewhere", capture_output=True, text=True, check=False
        )

        assert (done.stderr, done.stdout.strip()) == ("", str(own_place / "records"))
        assert ledger.balance().spent == Cost(calls=3)
        with pytest.raises(OverBudget, match=r"The budget of 5 calls is used up: 3 calls spent"):
            ledger.reserve(Cost(calls=3))
        assert pickle.loads(pickle.dumps(engine)) is engine


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, again], ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("made", [verbalize, action_reason, end_to_end, explain, identify])
def test_a_copy_of_a_chain_has_the_same_links_prompts_and_engine(made: Any, way: Any) -> None:
    chain: Chain = made("openai:gpt-4o")

    found: Chain = way(chain)

    assert found is not chain
    assert [*found.links.values()] == [*chain.links.values()]
    assert [step.needs for step in found.steps] == [step.needs for step in chain.steps]
    assert [node.prompts_in_use for node in found.nodes] == [node.prompts_in_use for node in chain.nodes]
    assert [node.model.form() for node in found.nodes] == [node.model.form() for node in chain.nodes]
    assert {node.model.engine for node in found.nodes} == {node.model.engine for node in chain.nodes}


def test_a_link_of_the_papers_stays_itself() -> None:
    assert all(again(link) is link for link in LINKS)


def test_no_key_is_in_a_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("TENANT", "tenant-secret")
    model = get_model("openai:gpt-4o@http://127.0.0.1:9/v1", headers={"X-Tenant": "env:TENANT"})

    data = pickle.dumps(verbalize(model))

    assert KEY.encode() not in data
    assert b"tenant-secret" not in data
    assert pickle.loads(data).nodes[0].model.settings == model.settings


def test_a_reading_is_equal_after_its_journey() -> None:
    chain = verbalize(model_of(scripted()))
    reading = chain.invoke(PICTURE)

    for found in (again(reading), copy.copy(reading), copy.deepcopy(reading)):
        assert isinstance(found, Reading)
        assert (found, found.to_dict()) == (reading, reading.to_dict())
        assert [*found.known.values()] == [*reading.known.values()]


def test_a_node_that_reads_by_ocr_travels() -> None:
    tool = ocr(engine=Engine(mode="replay"), least=0.25)
    chain = verbalize("openai:gpt-4o").with_nodes(scene_text=tool)

    found: Any = again(chain)["scene_text"]

    assert (type(found), found.least, found.engine) == (type(tool), 0.25, tool.engine)


def test_own_prompts_are_found_from_another_folder(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = PromptLibrary()
    library.eject("unusual", to=own_place / "mine")
    data = pickle.dumps(verbalize("openai:gpt-4o", prompts=PromptLibrary(["mine"])))
    (own_place / "elsewhere").mkdir()
    monkeypatch.chdir(own_place / "elsewhere")

    found = {prompt.path.parent for node in pickle.loads(data).nodes for prompt in node.prompts_in_use}

    assert own_place / "mine" in found
    (own_place / "mine").rename(own_place / "gone")
    with pytest.raises(PromptError, match="mine"):
        pickle.loads(data)


def local_chain(*, node: Any = one, subject: Any = picture, link: Link[Any] = NUMBER) -> Chain:
    return Chain("own", target=link, steps=[Step(link=link, node=node, subject=subject)])


def test_a_chain_of_functions_travels() -> None:
    assert again(local_chain()).invoke(PICTURE)["number"].value == 1


def inside() -> Callable[[Any], Any]:
    return lambda value: value


LAMBDA = inside()

REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "object": (lambda place: model_of(scripted()), "'scripted' cannot be pickled: it was made of an object"),
    "header": (
        lambda place: get_model("openai:gpt-4o", headers={"X-Tenant": "mine"}),
        r"'openai:gpt-4o' cannot be pickled: its header 'X-Tenant' .* `env:NAME`",
    ),
    "memory": (
        lambda place: model_of_engine(records=MemoryStore()),
        r"memory of this process\. .*open_records",
    ),
    "node": (lambda place: local_chain(node=LAMBDA), r"node of the step 'number' .*`def`"),
    "subject": (lambda place: local_chain(subject=LAMBDA), "subject of the step 'number'"),
    "link": (lambda place: local_chain(link=Link("own", int, write=LAMBDA)), "`write` of the link 'own'"),
}


def model_of_engine(**settings: Any) -> Model:
    return get_model("openai:gpt-4o", engine=Engine(**settings))


@pytest.mark.parametrize(("made", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_travel_is_named_with_a_way_out(
    made: Any, said: str, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.endswith("cloudpickle")]:
        monkeypatch.delitem(sys.modules, name)
    part = made(own_place)

    with pytest.raises(UsageError, match=said) as caught:
        pickle.dumps(verbalize(part) if isinstance(part, Model) else part)

    assert caught.value.hint


def test_lambdas_are_left_to_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joblib.externals.cloudpickle", sys)
    chain = local_chain(subject=LAMBDA)

    with pytest.raises((pickle.PicklingError, AttributeError)):  # the own message of pickle, which is no cloudpickle
        pickle.dumps(chain)
    assert copy.copy(chain).steps == chain.steps
