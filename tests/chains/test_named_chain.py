"""Chains by name, and the options that the function of each declares."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import Field

from askance.chains.named_chain import CHAINS, NamedChain, find_chain
from askance.errors import UsageError
from tests.scripted import model_of, scripted

if TYPE_CHECKING:
    from askance.models import Engine

OPTIONS = {
    "verbalize": ["context"],
    "atypicality": [],
    "action-reason": ["context", "statement", "choose", "count"],
    "end-to-end": ["context", "statement", "choose", "count", "step_by_step"],
    "explain": ["context"],
    "identify": ["context"],
    "ask": [],
    "brainstorm": ["draws"],
    "infer": ["box", "unit", "show"],
    "investigate": ["goal", "question", "choose", "count", "tools", "index", "calls", "budget_each", "eyes"],
}


def named(name: str) -> NamedChain:
    chain = find_chain(name)
    assert chain is not None
    return chain


@pytest.mark.parametrize("name", CHAINS.built_in)
def test_each_chain_that_ships_describes_its_options(name: str) -> None:
    chain = named(name)
    keywords = [
        each.name for each in inspect.signature(chain.make).parameters.values() if each.kind is each.KEYWORD_ONLY
    ]

    assert chain.option_names == OPTIONS[name]
    assert name == "ask" or [*chain.options.model_fields] == [each for each in keywords if each != "prompts"]
    assert all(each.description for each in chain.options.model_fields.values())


def test_what_is_given_is_kept_and_reaches_the_chain() -> None:
    chosen = named("end-to-end").with_options({"choose": "single", "statement": False})

    assert chosen.kept == {"choose": "single", "statement": False}
    assert chosen.make(model_of(scripted())).nodes[-1].prompt_name == "end_to_end_single"
    assert named("end-to-end").with_options({}).kept == {}


def own(
    vlm: Any,
    llm: Any = None,
    *,
    tone: Annotated[Literal["dry", "warm"], Field(description="How it is told.")],
    length: Annotated[int, Field(le=9, alias="words")] = 3,
    engine: Engine | None = None,
    plain: bool = False,
    prompts: Any = None,
) -> Any:
    return tone, length, plain


def lost(vlm: Any, llm: Any = None, *, where: Annotated[Engine | None, Field()] = None, prompts: Any = None) -> Any: ...


def test_only_what_is_declared_is_an_option() -> None:
    chain = NamedChain(name="own", make=own)

    assert chain.option_names == ["tone", "words"]
    assert chain.with_options({"tone": "dry", "words": 5}).make("demo") == ("dry", 5, False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"words": 5}, r"The chain 'own' needs the option 'tone'\. It takes tone, words\."),
        ({"tone": "dry", "plain": True}, r"The chain 'own' takes no 'plain'\. It takes tone, words\."),
        ({"tone": "loud"}, r"There is no tone 'loud'\. Choose one of dry, warm\."),
        ({"tone": "dry", "words": 10}, r"The option 'words' of the chain 'own' cannot be 10\. .* equal to 9\."),
    ],
    ids=["missing", "no option", "no choice", "bounds"],
)
def test_options_that_cannot_be_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        NamedChain(name="own", make=own).with_options(given)


def test_a_type_that_is_not_there_when_the_program_runs_is_named() -> None:
    with pytest.raises(
        UsageError, match=r"The type of the option 'where' of the chain 'lost' cannot be read: .*Engine"
    ):
        _ = NamedChain(name="lost", make=lost).options


def test_there_may_be_no_such_chain() -> None:
    assert find_chain("riddle") is None
