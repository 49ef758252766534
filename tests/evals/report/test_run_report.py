"""The page of a report: what stands in it, that it is the same every time, and that no text in it is more than text."""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from askance.evals import Run
from askance.evals.negatives import generate, read_statements
from askance.evals.pittads import statements_in
from askance.evals.report import build_report, report_page
from askance.evals.report.samples import CallRoom
from tests.evals.pictures import OPTIONS, picture_run
from tests.evals.pittads.worlds import world, writer
from tests.evals.report.runs import HOSTILE, Parsed, chain_run, hostile_run, plain_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return plain_run(tmp_path / "plain")


def page_of(*runs: Run) -> Parsed:
    return Parsed(report_page(build_report(runs)))


def test_the_head_says_what_was_run(run: Run) -> None:
    text = page_of(run).text

    for words in (
        "tests/plain",
        "50.00 %",
        "accuracy · 10 of 12 samples answered",
        "Right 6 Wrong 4 No answer 2 refused 2",
        "12 made, 0 replayed",
        "120 tokens in, 24 out",
        "$0.1200",
        "6.0 s in calls",
        "Convention: samples without an answer count as wrong.",
        run.configuration["samples"]["digest"][:12],
    ):
        assert words in text


def test_long_plots_are_folded_and_tags_that_are_not_drawn_are_told(tmp_path: Path) -> None:
    runs = [
        plain_run(tmp_path / name, 100, tags=lambda number: {"fold": str(number % 50), "url": f"u{number}"})
        for name in ("a", "b")
    ]
    alone, both = (report_page(build_report(some)) for some in (runs[:1], runs))

    assert "<figcaption>accuracy by fold</figcaption>" in alone
    for page in (alone, both):
        assert page.count("<summary>40 more</summary>") == 1
        assert page.count("The 100 values of the tag &#39;url&#39; are too many to be drawn or to be filters.") == 1


def test_prompts_stand_with_hash_and_text(tmp_path: Path) -> None:
    run = chain_run(tmp_path / "run", world(tmp_path / "data"))
    text = page_of(run).text

    for name, digest in run.configuration["solver"]["prompts"].items():
        assert f"{name} {digest[:12]}" in text
    assert "summary: Which action-reason" in text or "name: choose_action_reasons" in text


def test_a_name_of_a_prompt_leads_nowhere_else(run: Run, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("nobody is to see this", encoding="utf-8")
    run.configuration["solver"]["prompts"] = {"../../secret.txt": "0" * 64, str(tmp_path / "secret.txt"): "1" * 64}

    assert "nobody is to see this" not in page_of(run).text


def test_figures_have_their_interval_counts_and_bounds(run: Run) -> None:
    text = page_of(run).text

    assert "figure value 95 % interval samples answered if wrong if right" in text
    assert re.search(r"accuracy 50\.00 16\.67 – 83\.33 12 10 50\.00 66\.67", text)


def test_published_figures_stand_in_columns_of_their_own(tmp_path: Path) -> None:
    data = world(tmp_path / "data")
    generate(read_statements(statements_in(data)), writer(), out=data / "hard")
    text = page_of(chain_run(tmp_path / "run", data, negatives="hard")).text

    assert "figure ours Vicuna, T_V + ŝ_IN † GPT-4, T_V + ŝ_IN †" in text
    assert "Published figures, not ours: Table 3" in text


def test_two_runs_stand_side_by_side_with_their_cost(tmp_path: Path) -> None:
    runs = [plain_run(tmp_path / name, shift=shift, label=name) for name, shift in (("a", 0), ("b", 2))]
    text = page_of(*runs).text

    assert "figure a b samples 12 12 answered 10 10 accuracy 50.00 [16.67, 83.33]" in text
    assert "Cost against score (tests/plain)" in text
    assert text.index(
        "run accuracy 95 % interval answered calls made paid, $ as asked, $ seconds a 50.00 16.67 – 83.33 10 of 12"
    ) < (text.index("figure a b samples"))
    assert text.index("What differs in the configuration") > text.index("figure a b samples")
    assert text.index("Run by run") > text.index("Cost against score")


def test_every_call_is_there_once_and_in_full(tmp_path: Path) -> None:
    run = chain_run(tmp_path / "run", world(tmp_path / "data"))
    parsed = page_of(run)
    _, calls = parsed.samples()

    keys = {key for answer in run.answers for key in answer.keys}
    assert calls.keys() == keys
    record = next(record for record in run.records if "NARRATED" in str(record.response))
    call = calls[record.key]
    parts = [part for message in call["messages"] for part in message["parts"]]
    said = [part for part in parts if not isinstance(part, dict)]
    assert said == [
        part["text"] for message in record.request["messages"] for part in message["parts"] if "text" in part
    ]
    assert (call["reply"], call["model"]) == (record.response, record.model)


def test_a_sample_has_its_links_options_and_marks(tmp_path: Path) -> None:
    run = chain_run(tmp_path / "run", world(tmp_path / "data"))
    detail = page_of(run).samples()[0][0][0]

    assert detail["verbalization"]["narration"] == "NARRATED."
    assert detail["statement"]["relation"] == "TR1"
    assert len(detail["options"]) == 15
    assert sorted(detail["chosen"]) == detail["true"]
    assert [link["name"] for link in detail["links"]][-1] == "answers"


def test_equal_runs_make_equal_pages(run: Run, tmp_path: Path) -> None:
    first = report_page(build_report([run]))
    shutil.copytree(run.path, tmp_path / "elsewhere" / "plain")

    assert report_page(build_report([Run.open(tmp_path / "elsewhere" / "plain")])) == first


def test_calls_beyond_the_room_are_left_out_and_said_to_be() -> None:
    room = CallRoom(left=40)

    assert [room.takes({"a": "x" * 20}), room.takes({"b": "x" * 20}), room.takes({})] == [True, False, True]
    assert room.refused == 1
    assert room.notes == ("the calls of 1 sample had no room in this page; they are in the run's folder",)


def test_the_page_runs_its_own_script_alone_and_asks_nobody(run: Run) -> None:
    parsed = page_of(run)
    policy = next(each["content"] for _, each in parsed.elements if each.get("http-equiv"))

    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    for content in (parsed.code, parsed.style):
        assert f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'" in policy
    assert not re.search(r"https?:|unsafe|\*", policy)


def test_no_string_is_ever_read_as_markup_by_the_script(run: Run) -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|fetch\(", page_of(run).code
    )


def test_judges_stand_with_what_is_known_of_them(tmp_path: Path) -> None:
    card = {"judge": "grader", "card": {"pairs": 120, "accuracy": 0.9, "base rate": 0.5, "cohen kappa": 0.81}}
    run = plain_run(tmp_path / "plain")
    for answer in run.answers:
        notes: Any = answer.score.notes if answer.score is not None else {}
        notes["judge"] = card

    assert "judge labelled pairs accuracy base rate Cohen's κ grader 120 0.9 0.5 0.81" in page_of(run).text


def test_what_means_harm_is_text(tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run", tmp_path / "pictures")
    there = page_of(plain_run(tmp_path / "plain"))
    parsed = Parsed(report_page(build_report([run])).encode("utf-8").decode())

    tags = {tag for tag, _ in parsed.elements}
    names = {name for _, attributes in parsed.elements for name in attributes}
    assert tags - {tag for tag, _ in there.elements} <= {"details", "summary", "pre", "div", "h3", "code"}
    assert not [name for name in names if name.startswith("on") or name in {"style", "src", "srcset"}]
    assert {each["href"] for _, each in parsed.elements if "href" in each} == {"#", "#samples"}
    assert [each.get("type") for tag, each in parsed.elements if tag == "script"].count(None) == 1
    assert (parsed.code, parsed.style) == (there.code, there.style)
    assert HOSTILE[0] in parsed.text


def test_what_means_harm_comes_to_the_script_as_it_was(tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run", tmp_path / "pictures")
    parsed = page_of(run)

    assert {row["id"] for row in parsed.data("index")["runs"][0]["rows"]} == {text[:300] for text in HOSTILE}
    assert {detail["options"][0] for [detail] in parsed.samples()[0]} == {f"{text} right" for text in HOSTILE}


# --- runs over pictures ---


def test_a_run_over_pictures_shows_what_was_said_and_no_figure(tmp_path: Path) -> None:
    run = picture_run(tmp_path / "run", tmp_path / "pictures")
    parsed = page_of(run)
    index, text = parsed.data("index"), parsed.text

    for words in ("action_reason · 3 pictures", "3 of 3 pictures answered", "Answered 3", "scripted", "not known"):
        assert words in text
    assert "Figures" not in text
    assert "95 % interval" not in text
    assert (index["many"], index["opens"], "best" in index["sorts"]) == ("pictures", True, False)
    assert [(row["result"], row["worth"]) for row in index["runs"][0]["rows"]] == [("answered", None)] * 3
    [[detail], *_], calls = parsed.samples()
    assert (detail["chosen"], detail.get("true"), detail["options"]) == ([2, 1, 3], None, list(OPTIONS))
    assert {key for link in detail["links"] for key in link["calls"]} <= calls.keys()
    assert "name: combine" in text


def test_a_run_over_pictures_that_was_left_shows_what_is_there(tmp_path: Path) -> None:
    run = picture_run(tmp_path / "run", tmp_path / "pictures")
    form = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    del form["finished"]
    (run.path / "run.json").write_text(json.dumps(form), encoding="utf-8")

    text = page_of(Run.open(run.path)).text

    assert "run is not finished." in text
    assert "3 of 3 pictures answered" in text


def test_runs_over_pictures_and_evaluations_share_a_page(run: Run, tmp_path: Path) -> None:
    seen = picture_run(tmp_path / "seen", tmp_path / "pictures", count=2)

    parsed = page_of(run, seen)
    index = parsed.data("index")

    assert (index["many"], index["opens"]) == ("samples", False)
    assert [len(each["rows"]) for each in index["runs"]] == [12, 2]
    assert {row["result"] for row in index["runs"][1]["rows"]} == {"answered"}
    links = [each["href"] for _, each in parsed.elements if "&run=1" in str(each.get("href"))]
    assert len(links) == 2


def test_what_a_folder_of_pictures_says_is_text(tmp_path: Path) -> None:
    run = picture_run(tmp_path / "run", tmp_path / "pictures", count=1)
    form = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    line = json.loads((run.path / "samples.jsonl").read_text(encoding="utf-8"))
    form["configuration"] |= {"chain": HOSTILE[0], "prompts": {HOSTILE[1]: HOSTILE[2]}, "samples": {HOSTILE[0]: ["a"]}}
    line |= {"image": HOSTILE[0], "reason": HOSTILE[1], "statement": {"text": HOSTILE[2]}}
    line["verbalization"]["narration"] = HOSTILE[3]
    line["links"][HOSTILE[4]] = {"outcome": HOSTILE[5], "calls": [], "value": HOSTILE[6]}
    (run.path / "run.json").write_text(json.dumps(form), encoding="utf-8")
    (run.path / "samples.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")

    parsed = page_of(Run.open(run.path))

    names = {name for _, attributes in parsed.elements for name in attributes}
    assert not [tag for tag, _ in parsed.elements if tag in {"img", "svg/onload"}]
    assert not [name for name in names if name.startswith("on") or name in {"style", "src", "srcset"}]
    assert parsed.code == page_of(picture_run(tmp_path / "other", tmp_path / "pictures", count=1)).code
    assert HOSTILE[0] in parsed.text
