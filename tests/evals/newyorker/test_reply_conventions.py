"""The conventions of reading a recorded reply: cases where they differ, and figures by each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.errors import UsageError
from askance.evals import Sample, evaluate
from askance.evals.newyorker.reply_conventions import CONVENTIONS, Convention, letters_of, read_choice, read_explanation
from askance.evals.suite import RecordedReply
from askance.models import Engine
from askance.nodes import Unreadable
from askance.replay import MemoryStore
from tests.evals.newyorker.recorded import IDS, LABELS, Captions, as_lines, extractor_row, item, row
from tests.evals.odd import chooser

MATCHING = item(0)
RANKING = Sample(id="r", inputs={"options": ["It was open.", "It was shut."]}, target={"true": [2]})


def read(text: str, sample: Sample = MATCHING, *, extracted: str | None = None) -> dict[Convention, str]:
    """The letter that each convention reads; `-` for none."""
    reply = RecordedReply(text=text, extracted=extracted)
    found: dict[Convention, str] = {}
    for convention in CONVENTIONS:
        try:
            (number,) = read_choice(sample, reply, convention)
            found[convention] = letters_of(sample)[number - 1]
        except Unreadable:
            found[convention] = "-"
    return found


@pytest.mark.parametrize(
    ("text", "ours", "official", "leaderboard"),
    [
        ("Final Answer: C", "C", "C", "C"),
        ("Answer: B", "B", "B", "B"),
        ("It is a pun on mice.\n\nAnswer: D.", "D", "D", "D"),
        ("**Answer: B**", "B", "B", "E"),
        ("Final Answer: **B**", "B", "-", "E"),
        ("The best one is C.", "C", "-", "E"),
        ("Therefore, the answer is D", "D", "-", "D"),
        ("So, I choose A.", "A", "-", "A"),
        ("D", "D", "-", "E"),
        ("Mice.\n\n\nThus, I choose D", "D", "-", "E"),
        ("Final Answer: A\n\nFinal Answer: B", "-", "-", "A"),
        ("Answer: A, or maybe Answer: C", "-", "-", "E"),
        ("Answer: A? Hardly. Answer: C", "-", "-", "C"),
        ("Answer: All of them bite.", "-", "A", "E"),
        ("None of them fits.", "-", "-", "E"),
    ],
)
def test_where_the_conventions_differ(text: str, ours: str, official: str, leaderboard: str) -> None:
    assert read(text) == {"ours": ours, "official": official, "leaderboard": leaderboard}


def test_the_extractors_reply_counts_by_the_authors_rule_alone() -> None:
    unread = "It could be B or D."
    assert read(unread, extracted="Final Answer: D")["official"] == "D"
    assert read(unread, extracted="Answer: D")["official"] == "-"
    assert read(unread, extracted="Unknown")["official"] == "-"
    assert read("Answer: B", extracted="Final Answer: D")["official"] == "B"
    assert read(unread, extracted="Final Answer: D") == {**read(unread), "official": "D"}


def test_of_two_options_there_are_two_letters() -> None:
    assert read("Final Answer: B", RANKING) == dict.fromkeys(CONVENTIONS, "B")
    assert read("Hard to say.", RANKING) == {"ours": "-", "official": "-", "leaderboard": "B"}
    assert read("Final Answer: C", RANKING) == {"ours": "-", "official": "-", "leaderboard": "B"}
    with pytest.raises(Unreadable, match="the answer is C, and the options are A, B"):
        read_choice(RANKING, RecordedReply(text="Answer: C"), "official")


def test_letters_are_those_of_the_data_in_whatever_order_the_options_are_shown() -> None:
    turned = item(0, order=2)
    assert letters_of(turned) == list("EDCBA")
    assert read("Final Answer: B", turned) == dict.fromkeys(CONVENTIONS, "B")
    assert read_choice(turned, RecordedReply(text="Final Answer: B")) == [4]


def test_an_option_may_be_named_by_its_text() -> None:
    assert read(f"The best caption is “{MATCHING.inputs['options'][3]}”")["ours"] == "D"


def test_options_without_letters_are_refused() -> None:
    for options, letters in ((["a"] * 6, None), (["a", "b"], ["A", "A"]), (["a", "b"], ["A", "C"])):
        sample = Sample(id="x", inputs={"options": options}, target={"letters": letters})
        with pytest.raises(UsageError, match="have the letters"):
            letters_of(sample)


def test_an_explanation_is_read_by_the_authors_rule() -> None:
    def explained(text: str) -> str:
        return read_explanation(MATCHING, RecordedReply(text=text))

    assert explained("Here's my best explanation: It is\n a  pun.") == "It is a pun."
    assert explained("Step 1: mice.\n\nExplanation: They\nbite. Explanation: Twice.") == "They bite."
    assert explained("Mice.\nSummary: They bite.") == "They bite."
    assert explained("Step 3: Explanation - They bite.") == "They bite."
    assert explained("An explanation: they bite.") == "they bite."
    assert explained("They bite.\nHard.") == "They bite.\nHard."
    with pytest.raises(Unreadable, match="nothing follows"):
        explained("Summary: \n")


def test_a_run_says_what_each_convention_would_give(tmp_path: Path) -> None:
    unread = "It could be B or D."
    rows = [
        row(IDS[0], f"Final Answer: {LABELS[0]}"),
        row(IDS[1], f"**Answer: {LABELS[1]}**"),
        row(IDS[2], unread),
        extractor_row(unread, f"Final Answer: {LABELS[2]}"),
        row(IDS[3], f"The best one is {LABELS[3]}."),
        row(IDS[4], ""),
    ]
    path = as_lines(tmp_path / "r.jsonl", rows)
    shares = {"our": 3 / 5, "official": 3 / 5, "leaderboard": 2 / 5}
    headlines: dict[Convention, float] = {"ours": 3 / 5, "official": 3 / 5, "leaderboard": 2 / 5}
    for reading, headline in headlines.items():
        run = evaluate(
            Captions(answers=path, reading=reading), out=tmp_path / reading, engine=Engine(records=MemoryStore())
        )
        assert run.figure("accuracy").value == pytest.approx(headline)
        found = {name: run.figure(f"accuracy, {name} reading") for name in shares}
        assert {name: figure.value for name, figure in found.items()} == pytest.approx(shares)
        assert run.options["reading"] == reading
        assert {figure.samples for figure in found.values()} == {5}
        # nobody can read the empty reply, and a reply that the run does not read may still be read by another rule
        assert found["leaderboard"].if_right == pytest.approx(3 / 5)


def test_a_reading_without_recorded_replies_is_refused() -> None:
    with pytest.raises(UsageError, match="a model is asked"):
        Captions(vlm=chooser(1), reading="official").evaluation()
