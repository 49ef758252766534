from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from askance.evals.judges import RunPreferences, read_labels, read_preferences
from tests import label_studio
from tests.cli.command import ROOT, Command, finish, start
from tests.evals.explained import QUESTION, REFERENCES, TEXTS, explained
from tests.judges import preference_by_taste
from tests.servers import FakeEndpoint

MODELS = ("apt", "long", "place", "prose")
ASKED = "judge_preference"
"""Name of the schema of what is asked; other calls look what the endpoint can do."""


@pytest.fixture(autouse=True, scope="module")
def draws_are_few(few_draws: None) -> None:
    """The commands are tested here, and not what they compute."""


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(preference_by_taste, models=MODELS) as running:
        yield running


@pytest.fixture
def runs(own_place: Path) -> tuple[str, str]:
    explained("plain", own_place / "plain")
    explained("wordy", own_place / "wordy")
    return "plain", "wordy"


def judges(endpoint: FakeEndpoint, *tastes: str) -> list[str]:
    return [word for taste in tastes for word in ("--judge", f"openai:{taste}@{endpoint.url}")]


def asked(endpoint: FakeEndpoint) -> int:
    return sum(ASKED in str(seen.json) for seen in endpoint.requests)


TABLE = """\
| judge | A | B | tie | flips | first | unscored | A's share | 95 % interval | p | bounds |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- | --- | --- |
| 1 | 4 | 1 | 2 | 0 | 0 | 0 | 80.00 | 25.00 to 100.00 | 0.500 | 66.67 to 83.33 |
| 2 | 4 | 2 | 1 | 0 | 0 | 0 | 66.67 | 14.29 to 100.00 | 0.750 | 57.14 to 71.43 |
| majority | 2 | 0 | 5 | – | – | 0 | 100.00 | 34.24 to 100.00 | 0.500 | 66.67 to 100.00 |
"""


def test_two_runs_are_held_against_each_other_and_replayed(askance: Command, runs: tuple[str, str]) -> None:
    with FakeEndpoint(preference_by_taste, models=MODELS) as endpoint:
        command = ("judge", "prefer", runs[0], "--against", runs[1], *judges(endpoint, "apt", "long"))
        planned = askance(*command, "--plan", "--json")
        done = askance(*command)
        count = asked(endpoint)
    again = askance(*command, "--replay")  # the server is gone

    assert (planned.code, planned.lines[0]["calls"], count) == (0, 24, 24)
    assert (done.code, again.code, again.out) == (0, 0, done.out)
    assert done.err.startswith("24 calls made · 0 replayed ·")
    assert again.err == "0 calls made · 24 replayed\n"
    assert done.out.startswith("A  plain\nB  wordy\n\nplain and wordy are tied at this size: A wins 100.00 % of 2 ")
    assert "8 pairs in 4 groups; by the majority of the judges: 2 won by A, 5 tied, 1 no answer of a." in done.out
    assert TABLE in done.out
    assert "All judges prefer A in 2 pairs: c4, c7.\nAll judges prefer B in 0 pairs.\n" in done.out
    assert "· 1 pair with no answer of a: not judged, and in no share; the bounds count them." in done.out


def test_the_page_is_that_of_the_replay(askance: Command, endpoint: FakeEndpoint, runs: tuple[str, str]) -> None:
    command = ("judge", "prefer", runs[0], "--against", runs[1], *judges(endpoint, "apt"), "--html", "page.html")
    done = askance(*command)
    page = Path("page.html").read_bytes()
    askance(*command, "--replay")

    assert (done.code, "The page is in page.html (" in done.err) == (0, True)
    assert Path("page.html").read_bytes() == page
    assert "it is long and it is wrong" in page.decode()


def test_a_run_is_held_against_its_references_and_kept(
    askance: Command, endpoint: FakeEndpoint, runs: tuple[str, str]
) -> None:
    command = ("judge", "prefer", runs[0], "--against", "references", *judges(endpoint, "apt"))
    done = askance(*command, "--out", "kept/preferences.json", "--json")

    assert (done.code, "All pairs are in kept/preferences.json." in done.err) == (0, True)
    assert read_preferences("kept/preferences.json").form() == RunPreferences.from_form(done.lines[0]).form()
    assert (done.lines[0]["a"], done.lines[0]["b"], len(done.lines[0]["pairs"])) == ("plain", "references", 7)
    assert done.lines[0]["agreement"] is None


def test_people_s_votes_stand_beside_the_judges(
    askance: Command, endpoint: FakeEndpoint, runs: tuple[str, str]
) -> None:
    Path("votes.csv").write_text("id,votes\nc0,A;A;B\nc1,A;A;A\nc2,A;B;B\nc4,B;B;B\n", encoding="utf-8")
    command = ("judge", "prefer", *(runs[0], "--against", runs[1]), *judges(endpoint, "apt"), "--human", "votes.csv")

    done = askance(*command)

    assert done.code == 0
    assert "People (votes.csv), 4 pairs by majority: A wins 50.00 % of 4 (p 1.000)." in done.out
    assert "| 1 | 75.00 | 0.00 to 100.00 | 4 | 75.00 | 50.00 | 0.529 | 0.00 |" in done.out
    assert "| people | judge: A | judge: B | judge: tie | unscored |\n" in done.out
    assert "| A | 2 | 0 | 0 | 0 |\n| B | 1 | 1 | 0 | 0 |" in done.out
    assert "All people prefer B in 1 pair: c4." in done.out


def test_a_budget_leaves_pairs_unscored_and_a_larger_one_asks_for_them(
    askance: Command, endpoint: FakeEndpoint, runs: tuple[str, str]
) -> None:
    command = ("judge", "prefer", *(runs[0], "--against", runs[1]), *judges(endpoint, "apt"), "--concurrency", "1")
    stopped = askance(*command, "--budget", "5calls")
    done = askance(*command, "--budget", "30calls")

    assert (stopped.code, done.code) == (1, 0)
    assert "The budget is used up. The same command with a larger --budget asks for the rest." in stopped.err
    assert "gave no preference in" in stopped.out
    assert asked(endpoint) == 12


def test_a_judge_that_answers_in_prose_prefers_nothing(
    askance: Command, endpoint: FakeEndpoint, runs: tuple[str, str]
) -> None:
    done = askance("judge", "prefer", runs[0], "--against", runs[1], *judges(endpoint, "prose"))

    assert done.code == 1
    assert "plain and wordy cannot be told apart: no pair is decided." in done.out
    assert "| 1 | 0 | 0 | 1 | 0 | 0 | 6 | – |  | – | 0.00 to 100.00 |" in done.out


def test_a_killed_command_goes_on_where_it_was(
    askance: Command, runs: tuple[str, str], own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "-")
    task = f"{ROOT / 'tests' / 'evals' / 'explained.py'}@tests/explained"
    with FakeEndpoint(preference_by_taste, models=MODELS, delay=0.2) as endpoint:
        command = (
            *("judge", "prefer", runs[0], "--against", runs[1], *judges(endpoint, "apt")),
            *("--concurrency", "2", "--task", task),
        )
        process = start(*command)
        endpoint.wait(6)
        process.send_signal(signal.SIGKILL)
        finish(process)
        before = asked(endpoint)
        done = askance(*command)

        assert 0 < before < 12
        assert done.code == 0
        assert 12 <= asked(endpoint) <= 12 + 2  # what was under way is asked once more
        assert askance(*command, "--replay").out == done.out


MISTAKES = {
    "no judge": (("plain", "--against", "wordy"), "askance: No judge is named."),
    "a judge and local": (
        ("plain", "--against", "wordy", "--judge", "JUDGE", "--local"),
        "askance: `--local` stands for the judge where none is named, and --judge names one.",
    ),
    "a judge twice": (
        ("plain", "--against", "wordy", "--judge", "JUDGE", "--judge", "JUDGE"),
        "askance: The judge openai:apt@URL (preference) is named twice, and would have two votes.",
    ),
    "no run": (("nowhere", "--against", "wordy", "--judge", "JUDGE"), "askance: The folder 'nowhere' holds no run."),
    "no other run": (
        ("plain", "--against", "nowhere", "--judge", "JUDGE"),
        "askance: The folder 'nowhere' holds no run.",
    ),
    "the same run": (("plain", "--against", "plain", "--judge", "JUDGE"), "askance: The run 'plain' is named twice."),
    "a file of a plan": (
        ("plain", "--against", "wordy", "--judge", "JUDGE", "--plan", "--out", "x.json"),
        "askance: `--plan` asks nothing, so there is nothing for `--out` to show.",
    ),
    "a folder for a file": (
        ("plain", "--against", "wordy", "--judge", "JUDGE", "--out", "plain"),
        "askance: 'plain' is a folder, and the preferences are one file.",
    ),
    "votes on other pairs": (
        ("plain", "--against", "wordy", "--judge", "JUDGE", "--human", "other.csv"),
        "askance: 1 id of the votes in 'other.csv' is of no pair: 'd0'",
    ),
    "no votes": (
        ("plain", "--against", "wordy", "--judge", "JUDGE", "--human", "votes.csv"),
        "askance: There is no file 'votes.csv'.",
    ),
}


@pytest.mark.parametrize(("words", "message"), MISTAKES.values(), ids=MISTAKES)
def test_what_cannot_be_done_is_one_message(
    askance: Command, endpoint: FakeEndpoint, runs: tuple[str, str], words: tuple[str, ...], message: str
) -> None:
    Path("other.csv").write_text("id,vote\nd0,A\n", encoding="utf-8")
    done = askance("judge", "prefer", *(word.replace("JUDGE", f"openai:apt@{endpoint.url}") for word in words))

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(message.replace("URL", endpoint.url))
    assert "\n  → " in done.err
    assert endpoint.requests == []


def test_nothing_on_record_ends_a_replay(askance: Command, endpoint: FakeEndpoint, runs: tuple[str, str]) -> None:
    done = askance("judge", "prefer", runs[0], "--against", runs[1], *judges(endpoint, "apt"), "--replay")

    assert (done.code, done.out, endpoint.requests) == (3, "", [])


def test_a_table_holds_no_escapes_of_strangers(askance: Command, endpoint: FakeEndpoint, own_place: Path) -> None:
    explained("plain", own_place / "plain")
    run = own_place / "plain" / "samples.jsonl"
    lines = [json.loads(line) for line in run.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["sample"]["id"] = line["id"] = f"\x1b[2J{line['id']}"
    run.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    done = askance("judge", "prefer", "plain", "--against", "references", *judges(endpoint, "apt", "long"))

    assert "\x1b" not in done.out
    assert "\\x1b[2Jc" in done.out


def test_people_vote_in_label_studio(askance: Command, endpoint: FakeEndpoint, runs: tuple[str, str]) -> None:
    made = askance("judge", "sample", runs[0], "--against", runs[1], "--out", "sheet")
    tasks = [each["data"] for each in json.loads(Path("sheet/label-studio.json").read_text("utf-8"))]
    label_studio.write(
        Path("votes.json"), label_studio.exported(Path("sheet"), dict.fromkeys((1, 2), lambda _: {"vote": "First"}))
    )
    command = ("judge", "prefer", runs[0], "--against", runs[1], *judges(endpoint, "apt"), "--json", "--human")
    done = askance(*command, "votes.json")

    answers = {task["pair"]: "a" if task["first"] == TEXTS["plain"][int(task["pair"][1:])] else "b" for task in tasks}
    same = "c6"  # both answers are one text, so its side goes by the id alone
    assert (made.code, made.out) == (0, "sheet/label-studio.json\nsheet/label-studio.xml\n")
    assert made.err == (
        "7 pairs; 1 left out for lack of an answer.\n"
        "The project, exported as JSON or JSON-MIN, goes to `askance judge prefer --human FILE.json`.\n"
    )
    pairs = {pair["id"]: pair for pair in done.lines[0]["pairs"] if pair.get("votes")}
    assert {name: pair["votes"] for name, pair in pairs.items() if name != same} == {
        name: [side, side] for name, side in answers.items() if name != same
    }
    assert {*answers.values()} == {"a", "b"}
    other = askance(
        "judge", "prefer", runs[0], "--against", "references", *judges(endpoint, "apt"), "--human", "votes.json"
    )
    assert (other.code, other.err.splitlines()[0]) == (
        2,
        "askance: The votes in 'votes.json' on 'c0' are on another text B than the pair has.",
    )


def test_people_label_for_a_card_in_label_studio(
    askance: Command, endpoint: FakeEndpoint, runs: tuple[str, str]
) -> None:
    refused = askance("judge", "sample", runs[0], "--against", runs[1], "--for", "card", "--out", "sheet")
    made = askance("judge", "sample", runs[0], "--against", "references", "--for", "card", "--out", "sheet")
    export = label_studio.exported(
        Path("sheet"), {1: lambda task: {"verdict": "Yes" if "apt" in task["candidate"] else "No"}}
    )
    labels = read_labels(label_studio.write(Path("labels.json"), export))

    assert (refused.code, "A card needs answers beside their references" in refused.err) == (2, True)
    assert made.err.endswith("goes to `askance judge card --labels FILE.json`.\n")
    assert {(row.id, row.reference, row.candidate, row.question) for row in labels.rows} == {
        (f"c{number}", REFERENCES[number], text, QUESTION)
        for number, text in enumerate(TEXTS["plain"])
        if text and REFERENCES[number]
    }
    assert {row.id: row.verdict for row in labels.rows} == {row.id: "apt" in row.candidate for row in labels.rows}
