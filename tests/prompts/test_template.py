"""Templates that reach for what they must not have: every one is refused when the file is read."""

from __future__ import annotations

import pytest

from askance.errors import PromptError
from askance.prompts import PromptLibrary

from .conftest import Write

INPUTS = """\
  word: {description: A text., optional: true}
  words: {description: Some texts., type: list, optional: true}
  seen: {description: From an image., untrusted: true, optional: true}
"""
BODY_LINE = 11

HOSTILE = {
    "attribute": ("{{ ''.__class__ }}", "the attribute `__class__` is not allowed; there are {loop}, inside a loop"),
    "attribute of an input": (
        "{{ word.format }}",
        "the attribute `format` is not allowed; there are {loop}, inside a loop",
    ),
    "loop outside": ("{{ loop.index }}", "the attribute `index` is not allowed; there are {loop}, inside a loop"),
    "attribute of loop": (
        "{% for w in words %}{{ loop.cycle }}{% endfor %}",
        "the attribute `cycle` is not allowed; there are {loop}, inside a loop",
    ),
    "loop itself": (
        "{% for w in words %}{{ loop }}{% endfor %}",
        "`loop` alone is not allowed in a prompt; write `loop.index`",
    ),
    "item": ("{{ word['__class__'] }}", "an item (`x[…]`) is not allowed in a prompt"),
    "call": ("{{ word() }}", "calling is not allowed in a prompt"),
    "method": ("{{ word.upper() }}", "calling is not allowed in a prompt"),
    "attr filter": (
        "{{ word | attr('__class__') }}",
        "there is no filter `attr`; there are `capitalize`, `fenced`, `first`, {rest}",
    ),
    "join by attribute": ("{{ words | join(attribute='__class__') }}", '`join` is written as `join(", ")`'),
    "join of a join": (
        "{{ words | join('aa') | join('aa') }}",
        "`join` is the first filter after the name of a list",
    ),
    "long separator": ("{{ words | join('" + "a" * 41 + "') }}", '`join` is written as `join(", ")`'),
    "letters with arguments": ("{{ words | lettered(')') }}", "`lettered` is written as `lettered`, without arguments"),
    "untrusted letters": (
        "{% for w in words %}{{ seen | lettered }}{% endfor %}",
        '`seen` is untrusted: print it as `{{ seen | fenced("what it is") }}`',
    ),
    "range": (
        "{% for i in range(10**9) %}a{% endfor %}",
        "a loop runs over an input that is declared as a list, and over nothing else",
    ),
    "loop over a text": (
        "{% for c in word %}{{ c }}{% endfor %}",
        "a loop runs over a list, and `word` is declared as text",
    ),
    "loop over a filter": (
        "{% for c in words | join(' ') %}{{ c }}{% endfor %}",
        "a loop runs over an input that is declared as a list, and over nothing else",
    ),
    "loop over a loop's variable": (
        "{% for w in words %}{% for c in w %}{{ c }}{% endfor %}{% endfor %}",
        "a loop runs over an input that is declared as a list, and over nothing else",
    ),
    "recursive loop": (
        "{% for w in words recursive %}{{ w }}{% endfor %}",
        "a recursive loop is not allowed in a prompt",
    ),
    "unpacking": ("{% for a, b in words %}{{ a }}{% endfor %}", "a loop has one variable"),
    "shadow": (
        "{% for word in words %}{{ word }}{% endfor %}",
        "the loop's variable `word` has the name of something else",
    ),
    "multiplication": ("{{ 'a' * 10**9 }}", "multiplying is not allowed in a prompt"),
    "power": ("{{ 10**10**10 }}", "a power is not allowed in a prompt"),
    "sum": ("{{ word + word }}", "adding is not allowed in a prompt"),
    "concatenation": ("{{ word ~ word }}", "joining by `~` is not allowed in a prompt"),
    "format": ("{{ '%999999999d' % 1 }}", "`%` is not allowed in a prompt"),
    "set": ("{% set a = word %}", "`set` is not allowed in a prompt"),
    "include": ("{% include '/etc/passwd' %}", "`include` is not allowed in a prompt"),
    "import": ("{% import 'os' as os %}", "`import` is not allowed in a prompt"),
    "extends": ("{% extends 'x' %}", "`extends` is not allowed in a prompt"),
    "block": ("{% block a %}{% endblock %}", "`block` is not allowed in a prompt"),
    "macro": ("{% macro m() %}{{ m() }}{% endmacro %}", "`macro` is not allowed in a prompt"),
    "call block": ("{% call word() %}{% endcall %}", "`call` is not allowed in a prompt"),
    "filter block": ("{% filter upper %}a{% endfilter %}", "`filter` is not allowed in a prompt"),
    "with": ("{% with %}{% endwith %}", "`with` is not allowed in a prompt"),
    "list": ("{{ [1, 2] }}", "a list is not allowed in a prompt"),
    "test": ("{% if word is callable %}{% endif %}", "there is no test `callable`; there are `defined`, `undefined`"),
    "undeclared": ("{{ config }}", "`config` is not declared under `inputs`"),
    "global": ("{{ cycler }}", "`cycler` is not declared under `inputs`"),
    "unfenced": ("{{ seen }}", '`seen` is untrusted: print it as `{{ seen | fenced("what it is") }}`'),
    "fence undone": (
        "{{ seen | fenced('x') | trim }}",
        '`seen` is untrusted: print it as `{{ seen | fenced("what it is") }}`',
    ),
    "unfenced or": (
        "{{ word or seen }}",
        '`seen` is untrusted: print it as `{{ seen | fenced("what it is") }}`',
    ),
    "unfenced if": (
        "{{ seen if word else word }}",
        '`seen` is untrusted: print it as `{{ seen | fenced("what it is") }}`',
    ),
    "label of an input": ("{{ seen | fenced(word) }}", '`fenced` is written as `fenced("what it is")`'),
    "label with a line": ('{{ seen | fenced("a\\nb") }}', '`fenced` is written as `fenced("what it is")`'),
    "no end": ("{% if word %}", "the template cannot be read: Unexpected end of template{rest}"),
    "unknown tag": ("{% exec %}", "the template cannot be read: Encountered unknown tag 'exec'"),
    "brackets": ("{{ " + "(" * 5000 + "}}", "the template cannot be read: {rest}"),
    "closed brackets": ("{{ " + "(" * 5000 + "word" + ")" * 5000 + " }}", "the template cannot be read: {rest}"),
    "negations": ("{{ " + "not " * 50_000 + "word }}", "the template cannot be read: {rest}"),
    "digits": ("{{ " + "9" * 5000 + " }}", "the template cannot be read: {rest}"),
}
LOOP = "`loop.first`, `loop.index`, `loop.index0`, `loop.last`, `loop.length`, `loop.revindex`"


@pytest.mark.parametrize(("body", "fault"), HOSTILE.values(), ids=HOSTILE)
def test_a_template_that_reaches_out_is_refused(body: str, fault: str, write: Write) -> None:
    path = write(f"user:\n{body}\n", inputs=INPUTS)

    with pytest.raises(PromptError) as caught:
        PromptLibrary([path.parent]).find("mine", form="text")

    expected = f"Prompt file {str(path)!r} cannot be used: line {BODY_LINE}: {fault.replace('{loop}', LOOP)}"
    assert str(caught.value).startswith(expected.split("{rest}", maxsplit=1)[0])


def test_all_problems_of_all_blocks_are_named_at_once(write: Write) -> None:
    path = write("system:\n{{ seen }}\nuser:\nHi {{ a }}\n\n{{ word * 3 }} {{ b }}\n", inputs=INPUTS)

    with pytest.raises(PromptError) as caught:
        PromptLibrary([path.parent]).find("mine", form="text")

    assert caught.value.message == (
        f"Prompt file {str(path)!r} cannot be used: "
        "line 11: `seen` is untrusted: it never stands in a `system:` block; "
        "line 13: `a` is not declared under `inputs`; line 15: `b` is not declared under `inputs`; "
        "line 15: multiplying is not allowed in a prompt."
    )
    assert caught.value.hint == (
        "Mend it (`askance prompts check` names all that is wrong in all files), or remove it: "
        "the package's own prompt is then used."
    )


@pytest.mark.parametrize("body", ["{{ seen | fenced('x') }}", "{% if seen %}a{% endif %}", "{{ word | fenced('x') }}"])
def test_nothing_quoted_stands_in_a_system_block(body: str, write: Write) -> None:
    path = write(f"system:\n{body}\nuser:\nHi\n", inputs=INPUTS)

    with pytest.raises(PromptError, match=r"line 11: .*never stands in a `system:` block"):
        PromptLibrary([path.parent]).find("mine", form="text")


def test_an_item_of_an_untrusted_list_is_untrusted(write: Write) -> None:
    inputs = "  lines: {description: Lines., type: list, untrusted: true}\n"
    path = write("user:\n{% for line in lines %}\n{{ line }}\n{% endfor %}\n", inputs=inputs)

    with pytest.raises(PromptError, match="line 10: `line` is untrusted"):
        PromptLibrary([path.parent]).find("mine", form="text")


def test_loops_stand_three_deep_at_most(write: Write) -> None:
    opening = "".join(f"{{% for w{depth} in words %}}" for depth in range(30))
    path = write(f"user:\n{opening}a{'{% endfor %}' * 30}\n", inputs=INPUTS)

    with pytest.raises(PromptError, match="line 11: loops are nested more than 3 deep"):
        PromptLibrary([path.parent]).find("mine", form="text")


def test_conditions_too_deep_for_python_are_refused(write: Write) -> None:
    path = write(f"user:\n{'{% if word %}' * 150}a{'{% endif %}' * 150}\n", inputs=INPUTS)

    with pytest.raises(PromptError, match="cannot be"):
        PromptLibrary([path.parent]).find("mine", form="text")


def test_what_is_allowed_works(write: Write) -> None:
    body = """user:
{# a remark #}
{% for w in words if w != "no" %}
{{ loop.index }}/{{ loop.length }} {{ w | upper }}{% if not loop.last %},{% endif %}

{% else %}
nothing
{% endfor %}
{{ words | join(" + ") }} {{ words | length }} {% if words %}{{ words | first | trim }} {{ words | last }}{% endif %}.
{% if word is defined and word == "a" or not seen %}{{ word or "none" }}{% endif %}.
{{ seen | fenced("seen") if seen else "unseen" }}
"""
    path = write(body, inputs=INPUTS)
    prompt = PromptLibrary([path.parent]).find("mine", form="text")

    assert [turn.text for turn in prompt.render(words=["x ", "no", "y"])] == [
        "1/2 X ,\n2/2 Y\nx  + no + y 3 x y.\nnone.\nunseen"
    ]
    assert prompt.render(word="a", words=[], seen="s")[0].text.startswith("nothing\n 0 .\na.\n<<seen ")
