from __future__ import annotations

from typing import Any

import pytest

from askance.errors import PromptError
from askance.prompts import Prompt, PromptLibrary, PromptTurn
from askance.prompts.template import MAX_ITERATIONS, MAX_RENDERED

from .conftest import Write

INPUTS = """\
  word: {description: A text.}
  words: {description: Some texts., type: list, optional: true}
  count: {description: A number., type: number, default: 3}
  loud: {description: A flag., type: flag, optional: true}
"""
BODY = """system:
Be brief.

user:
{{ count }} times {{ word }}
{% if words %}
and {{ words | join(", ") }}
{% endif %}
{% if loud %}
loudly
{% endif %}

assistant:
Yes.

user:
Go on.
"""


@pytest.fixture
def prompt(write: Write) -> Prompt:
    path = write(BODY, inputs=INPUTS)
    return PromptLibrary([path.parent]).find("mine", form="text")


def test_a_prompt_says_what_it_takes(prompt: Prompt) -> None:
    assert (prompt.name, prompt.form, prompt.family, prompt.overlay) == ("mine", "text", None, True)
    assert (prompt.inputs, prompt.optional) == (("word",), ("words", "count", "loud"))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        pytest.param({"word": "tea"}, "3 times tea", id="least"),
        pytest.param({"word": " a\n\n{{ b }} ", "count": 0}, "0 times  a\n\n{{ b }}", id="value as it is"),
        pytest.param(
            {"word": "tea", "words": ("x", "y"), "count": 2, "loud": True}, "2 times tea\nand x, y\nloudly", id="all"
        ),
        pytest.param({"word": "tea", "words": [], "count": None, "loud": False}, "3 times tea", id="nothing given"),
        pytest.param({"word": "تخفيض 50٪ שלום"}, "3 times تخفيض 50٪ שלום", id="right to left"),
    ],
)
def test_a_prompt_is_rendered(prompt: Prompt, values: dict[str, Any], text: str) -> None:
    assert prompt.render(**values) == (
        PromptTurn("system", "Be brief."),
        PromptTurn("user", text),
        PromptTurn("assistant", "Yes."),
        PromptTurn("user", "Go on."),
    )


def test_all_that_is_missing_unused_or_wrong_is_named_at_once(prompt: Prompt) -> None:
    values: dict[str, Any] = {"wrod": "tea", "words": "a, b", "count": True, "loud": 1, "self": "x"}

    with pytest.raises(PromptError) as caught:
        prompt.render(**values)

    assert str(caught.value) == (
        f"Prompt 'mine' ({prompt.path}) cannot be rendered: `word` is missing (used on line 15); "
        "`wrod` is not used (inputs are declared on line 5; nearest is `word`); "
        "`self` is not used (inputs are declared on line 5); "
        "`words` takes a list of texts, not 'a, b'; `count` takes a whole number, not True; "
        "`loud` takes true or false, not 1. Its inputs: `word`, `words`, `count`, `loud`."
    )


def test_a_list_of_other_things_is_refused(prompt: Prompt) -> None:
    values: dict[str, Any] = {"word": "tea", "words": ["a", 3]}

    with pytest.raises(PromptError, match=r"`words` takes a list of texts, not \['a', 3\]\. Its inputs"):
        prompt.render(**values)


def test_a_prompt_without_inputs_takes_none() -> None:
    prompt = PromptLibrary([]).find("unusual", form="text")

    with pytest.raises(PromptError) as caught:
        prompt.render(image="a.jpg")

    assert str(caught.value) == (
        f"Prompt 'unusual' ({prompt.path}) cannot be rendered: `image` is not used (inputs are declared on line 2). "
        "Its inputs: none."
    )


def test_a_prompt_without_inputs_is_rendered_once() -> None:
    prompt = PromptLibrary([]).find("unusual", form="text")

    assert prompt.render() is prompt.render()


def test_an_optional_input_that_is_printed_and_not_given_is_named_with_its_line(write: Write) -> None:
    path = write("user:\nOne\n{% if count %}\n\n{{ word }} {{ words | join }}\n{% endif %}", inputs=INPUTS)
    path.write_text(path.read_text("utf-8").replace("A text.}", "A text., optional: true}"), "utf-8")
    prompt = PromptLibrary([path.parent]).find("mine", form="text")

    with pytest.raises(PromptError) as caught:
        prompt.render()

    assert str(caught.value) == (
        f"Prompt 'mine' uses an input that was not given in {str(path)!r}, line 15: 'word' is undefined. "
        "Put what needs an optional input between `{% if name %}` and `{% endif %}`."
    )


def test_a_prompt_that_grows_too_long_stops(prompt: Prompt) -> None:
    with pytest.raises(PromptError) as caught:
        prompt.render(word="a" * (MAX_RENDERED + 1))

    assert str(caught.value) == "Prompt 'mine' gives more than 1000000 characters. Give it shorter values."


def test_many_values_that_grow_too_long_together_stop(write: Write) -> None:
    path = write("user:\n" + "{{ word }}" * 1001, inputs="  word: {description: A text.}\n")
    prompt = PromptLibrary([path.parent]).find("mine", form="text")

    with pytest.raises(PromptError, match="gives more than 1000000 characters"):
        prompt.render(word="a" * 1000)


def test_loops_within_loops_stop(write: Write) -> None:
    loops = "".join(f"{{% for w{depth} in words %}}" for depth in range(3))
    inputs = "  words: {description: Some texts., type: list}\n"
    path = write(f"user:\nHi {loops}{'{% endfor %}' * 3}", inputs=inputs)
    prompt = PromptLibrary([path.parent]).find("mine", form="text")

    with pytest.raises(PromptError) as caught:
        prompt.render(words=["a"] * 5000)

    assert str(caught.value) == f"Prompt 'mine' loops more than {MAX_ITERATIONS} times. Give it shorter lists."


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("word", "a\nb", "a\nb"),
        ("words", "a\nb, c", ("a", "b, c")),
        ("words", ' ["a", "b"]', ("a", "b")),
        ("count", " 5", 5),
        ("loud", "True", True),
        ("loud", "false", False),
        ("other", "3", "3"),
    ],
)
def test_values_are_read_from_what_was_typed(prompt: Prompt, name: str, text: str, value: object) -> None:
    assert prompt.read_values({name: text}) == {name: value}


def test_typed_values_that_cannot_be_read_are_all_named(prompt: Prompt) -> None:
    with pytest.raises(PromptError) as caught:
        prompt.read_values({"count": "three", "loud": "maybe", "words": '["a'})

    assert str(caught.value) == (
        "Prompt 'mine' cannot be rendered: `count` takes a whole number, not 'three'; "
        "`loud` takes true or false, not 'maybe'; `words` takes a list of texts, not '[\"a'. "
        "Give each variable what its prompt declares."
    )
