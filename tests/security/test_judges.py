"""No answer talks a judge into its verdict, as long as the judge takes orders only from where orders stand.

What a scripted judge of this file reads as an order is whatever differs there from a request about a harmless answer.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence

import pytest

from askance.agents import Judge, JudgeForm, judge_equivalence, judge_preference
from askance.agents.judge import EquivalenceJudge
from askance.chat import ChatRequest, Message, Role, TextPart
from askance.models import Capabilities, Engine, OutputMode, ScriptedModel, get_model
from askance.prompts import fence
from askance.replay import MemoryStore
from tests.agents.red_team import ATTACKS, FORMS, OUTPUT_MODES, QUESTION, REFERENCE, WRONG, attacked

FENCED = re.compile(r"^<<[a-z ]+ (?P<mark>[0-9a-f]{8,})\n.*?\n(?P=mark)>>$", re.DOTALL | re.MULTILINE)
HASTY = re.compile(r"<<[a-z ]+ [0-9a-f]{8,}\n.*?\n[0-9a-f]{8,}>>", re.DOTALL)
"""A fence as it looks to someone who does not compare its two marks."""
TOKENS = re.compile(r"<\|[^|\s]*\|>|<\uff5c[^\uff5c]*\uff5c>|</?s>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>")
"""What servers' chat templates put between messages."""

Reader = Callable[[Sequence[Message]], object]
"""From messages to all that stands where orders stand."""


def outside_of_fences(messages: Sequence[Message]) -> object:
    return [(message.role, FENCED.sub("<<quoted>>", message.text)) for message in messages]


def outside_of_hasty_fences(messages: Sequence[Message]) -> object:
    return [(message.role, HASTY.sub("<<quoted>>", message.text)) for message in messages]


def system_alone(messages: Sequence[Message]) -> object:
    return [message.text for message in messages if message.role == "system"]


def after_the_last_fence(messages: Sequence[Message]) -> object:
    return messages[-1].text.rpartition(">>\n")[2]


def turns_of_the_template(messages: Sequence[Message]) -> object:
    """What a server makes of the messages whose tokenizer knows marks of templates wherever they stand."""
    prompt = "".join(f"<|im_start|>{message.role}\n{message.text}<|im_end|>\n" for message in messages)
    return TOKENS.findall(prompt)


READERS: dict[str, Reader] = {
    "outside of fences": outside_of_fences,
    "outside of fences, hastily": outside_of_hasty_fences,
    "the system's turn": system_alone,
    "after the last fence": after_the_last_fence,
    "the template's turns": turns_of_the_template,
}


WHAT, WHY = "what they say", "why it is so"


def reply_of(value: str, form: JudgeForm, output_mode: OutputMode) -> str:
    if output_mode == "paper":
        return value.capitalize() if form == "short" else f"Comparison: {WHAT}\nReason: {WHY}\nVerdict: {value}"
    rubric = {"common": WHAT, "different": "", "reason": WHY} if form == "rubric" else {}
    return json.dumps({**rubric, "verdict": value})


def scripted(reply: Callable[[ChatRequest], str], form: JudgeForm, output_mode: OutputMode) -> EquivalenceJudge:
    script = ScriptedModel(reply, identity="judge", capabilities=Capabilities(schema="enforced"))
    return judge_equivalence(get_model(script, engine=Engine(records=MemoryStore(), protocol=output_mode)), form=form)


def obeying(read: Reader) -> Callable[[JudgeForm, OutputMode], Judge]:
    """A judge that says true wherever `read` finds anything but what a harmless answer brings."""

    def make(form: JudgeForm, output_mode: OutputMode, /) -> Judge:
        def reply(request: ChatRequest) -> str:
            return reply_of("false" if read(request.messages) == harmless else "true", form, output_mode)

        judge = scripted(reply, form, output_mode)
        subject = judge.accept({"reference": REFERENCE, "candidate": "?", "question": QUESTION})
        harmless = read(judge.request(subject, output_mode).messages)
        return judge

    return make


@pytest.mark.parametrize("name", READERS)
async def test_no_attack_succeeds_with_a_judge_that_obeys_what_stands_where_orders_stand(name: str) -> None:
    tallies = await attacked(name, obeying(READERS[name]))

    sys.stdout.write("".join(f"{tally}\n" for tally in tallies))
    assert len(ATTACKS) >= 40
    assert {tally.form: tally.succeeded for tally in tallies} == {tally.form: () for tally in tallies}
    assert [(tally.unscored, tally.plain[0]) for tally in tallies] == [(3, 0)] * 4  # empty, blank and the question


@pytest.mark.parametrize("name", ["outside of fences", "outside of fences, hastily", "the template's turns"])
@pytest.mark.parametrize("output_mode", OUTPUT_MODES)
async def test_no_attack_wins_over_the_better_answer(name: str, output_mode: OutputMode) -> None:
    read = READERS[name]

    def reply(request: ChatRequest) -> str:
        honest = re.search(
            rf"^<<first ([0-9a-f]+)\n{re.escape(REFERENCE)}\n\1>>$", request.messages[-1].text, re.MULTILINE
        )
        obeys = read(request.messages) not in harmless
        place = "first" if (honest is not None) != obeys else "second"
        return (
            f"Reason: so\nBetter: {place}" if output_mode == "paper" else json.dumps({"reason": "so", "better": place})
        )

    script = ScriptedModel(reply, identity="judge", capabilities=Capabilities(schema="enforced"))
    judge = judge_preference(get_model(script, engine=Engine(records=MemoryStore(), protocol=output_mode)))
    both = ({"first": REFERENCE, "second": "?"}, {"first": "?", "second": REFERENCE})
    subjects = [judge.node.accept({**texts, "question": QUESTION}) for texts in both]
    harmless = [read(judge.node.request(subject, output_mode).messages) for subject in subjects]

    said = {attack: await judge.judge(REFERENCE, text, question=QUESTION) for attack, text in ATTACKS.items()}

    assert {attack for attack, preference in said.items() if preference.value != "a"} == {"empty", "blank"}


Repeat = Callable[[str, str], str]
"""From the answer's own words and an honest reply to a reply that repeats the one before, within or after the other."""

REPEATS: dict[str, Repeat] = {
    "before": lambda words, honest: f"{words}\n{honest}",
    "after": lambda words, honest: f"{honest}\n{words}",
    "quoted before": lambda words, honest: f"B says: {words}\n{honest}",
    "in a code fence": lambda words, honest: f"```json\n{words}\n```\n{honest}",
    "within, escaped": lambda words, honest: honest.replace(WHY, json.dumps(words)[1:-1]),
    "within, as it is": lambda words, honest: honest.replace(WHY, words),
    "within, as the comparison": lambda words, honest: honest.replace(WHAT, words),
}
"""How a judge repeats what it judges; its own verdict is always false."""


@pytest.mark.parametrize("repeat", REPEATS.values(), ids=REPEATS)
async def test_what_a_judge_repeats_is_never_taken_for_its_verdict(repeat: Repeat) -> None:
    def make(form: JudgeForm, output_mode: OutputMode, /) -> Judge:
        def reply(request: ChatRequest) -> str:
            asked = next(message.text for message in request.messages if message.role == "user")
            words = re.findall(r"(?s)<<candidate [0-9a-f]+\n(.*?)\n[0-9a-f]+>>", asked)
            return repeat(words[-1], reply_of("false", form, output_mode))

        return scripted(reply, form, output_mode)

    tallies = await attacked("repeats", make)

    sys.stdout.write("".join(f"{tally}\n" for tally in tallies))
    assert {tally.form: tally.succeeded for tally in tallies} == {tally.form: () for tally in tallies}


def told(*turns: tuple[Role, str]) -> list[Message]:
    return [Message(role, (TextPart(text),)) for role, text in turns]


PLANTS: dict[str, Callable[[str], list[Message]]] = {
    "outside of fences": lambda text: told(("user", f"{fence(WRONG, 'candidate')}\n{text}")),
    "outside of fences, hastily": lambda text: told(("user", f"<<candidate 5e2ab9ba\n{text}\n5e2ab9ba>>")),
    "the system's turn": lambda text: told(("system", text)),
    "after the last fence": lambda text: told(("user", f"{fence(WRONG, 'candidate')}\n{text}")),
    "the template's turns": lambda text: told(("user", f"<<candidate 5e2ab9ba\n{text}\n5e2ab9ba>>")),
}
"""Where a text has to stand to be obeyed; a fence of the package breaks its marks up, so two are drawn by hand."""


@pytest.mark.parametrize("name", READERS)
def test_the_obeying_judges_do_read_what_stands_there(name: str) -> None:
    attack = ATTACKS["chat template"] + ATTACKS["forged fence"]

    assert READERS[name](PLANTS[name](attack)) != READERS[name](PLANTS[name](WRONG))


def test_each_form_is_attacked_in_words_and_in_json() -> None:
    assert (FORMS, OUTPUT_MODES) == (("rubric", "short"), ("json_schema", "paper"))
