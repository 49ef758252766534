"""Recorded replies: files in the published shapes, what is left over, outcomes, and runs made from them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from askance.cli.columns import text_of
from askance.cli.eval import figures_of
from askance.errors import BadData, UsageError
from askance.evals import Run, Sample, evaluate
from askance.evals.analysis.compare import common_samples
from askance.evals.analysis.pack import open_pack, write_pack
from askance.evals.analysis.pack_check import check_pack
from askance.evals.analysis.rescore import rescore
from askance.evals.newyorker.reply_conventions import CONVENTIONS, Convention
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.sample import RECORDED
from askance.evals.suite import RecordedReply, ReplyFile
from askance.models import Engine
from askance.nodes import Unreadable
from askance.replay import MemoryStore
from tests.evals.newyorker.recorded import (
    IDS,
    Captions,
    as_json,
    as_lines,
    completion,
    extractor_row,
    item,
    right,
    row,
)
from tests.evals.odd import chooser

TALK = "Hm. Answer: A or Answer: C."
TEXTS = {"one": "Answer: A", "two": "Answer: B"}


def engine() -> Engine:
    return Engine(records=MemoryStore())


def marked(path: Path) -> Path:
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(TEXTS).encode())
    return path


SHAPES: Mapping[str, Callable[[Path], Path]] = {
    "lines": lambda path: as_lines(path, [row(*each) for each in TEXTS.items()]),
    "one line": lambda path: as_lines(path, [{"response": TEXTS["one"], "instance_id": "one"}]),
    "list of rows": lambda path: as_json(path, [row(*each) for each in TEXTS.items()]),
    "leaderboard script": lambda path: as_json(
        path,
        [
            {"instance_id": name, "full_response": text, "extracted_answer": "A", "timestamp": 1.5}
            for name, text in TEXTS.items()
        ],
    ),
    "object": lambda path: as_json(path, TEXTS),
    "object in one line": lambda path: as_lines(path, [TEXTS]),
    "one row over lines": lambda path: as_json(path, row("one", TEXTS["one"])),
    "completions": lambda path: as_lines(path, [row(name, completion(text)) for name, text in TEXTS.items()]),
    "marked": marked,
}


@pytest.mark.parametrize("write", SHAPES.values(), ids=SHAPES)
def test_every_published_shape_is_read(write: Callable[[Path], Path], tmp_path: Path) -> None:
    path = write(tmp_path / "replies.json")
    found = ReplyFile.open(path)
    assert found.replies == {name: RecordedReply(text=TEXTS[name]) for name in found.replies}
    assert "one" in found.replies
    assert found.notes == ()
    assert found.form() == {"sha256": sha256(path.read_bytes()).hexdigest(), "rows": len(found.replies)}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "holds no reply"),
        ("[]", "holds no reply"),
        ("{}", "holds no reply"),
        ("nothing", "is no JSON"),
        ('{"instance_id": "a", "response": "x"}\n{"instance_id": ', "Line 2 of"),
        ('{"instance_id": "a", "response": "x"}\n[1]', "Line 2 of .* has no `instance_id`"),
        ('[{"response": "x"}]', "Row 1 of .* has no `instance_id`"),
        ('[{"instance_id": 7, "response": "x"}]', "has no `instance_id` that is a text"),
        ('[{"instance_id": "a", "query": "x"}]', "has no `response`"),
        ('[{"instance_id": "a", "response": 7}]', "neither a text nor a chat completion"),
        ('[{"instance_id": "a", "response": {"choices": []}}]', "neither a text nor a chat completion"),
        ('{"a": "x", "a": "y"}', "gives a name twice"),
        ('{"a": ["x"]}', "The reply to 'a' in"),
        ("[" * 200 + "]" * 200, "nested deeper"),
    ],
)
def test_what_is_no_file_of_replies_is_refused(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "replies.json").write_text(content, encoding="utf-8")
    with pytest.raises(BadData, match=said) as caught:
        ReplyFile.open(tmp_path / "replies.json")
    assert "replies.json" in caught.value.message
    assert caught.value.hint


def test_a_file_that_is_no_text_or_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "replies.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadData, match="no text in UTF-8"):
        ReplyFile.open(path)
    as_json(path, {"a": "x" * 1_000_001})
    with pytest.raises(BadData, match="a reply of 1,000,001 characters"):
        ReplyFile.open(path)
    monkeypatch.setattr("askance.evals.suite.recorded_replies.MAX_MARKS", 10)
    as_json(path, {str(number): "x" for number in range(20)})
    with pytest.raises(BadData, match="more than 10 values"):
        ReplyFile.open(path)
    with pytest.raises(BadData, match="There is no file"):
        ReplyFile.open(tmp_path / "none.json")


def test_an_extractors_rows_are_kept_apart(tmp_path: Path) -> None:
    path = as_lines(tmp_path / "r.jsonl", [row("one", TALK), extractor_row(TALK, "Final Answer: C"), row("two", "B")])
    found = ReplyFile.open(path)
    assert found.replies == {
        "one": RecordedReply(text=TALK, extracted="Final Answer: C"),
        "two": RecordedReply(text="B"),
    }
    assert found.notes == ("r.jsonl: 1 row is an extractor's, about other replies",)


def test_of_several_replies_to_one_id_the_last_counts_and_a_note_says_so(tmp_path: Path) -> None:
    same = [row("one", "A"), row("one", "A"), row("two", "B")]
    found = ReplyFile.open(as_lines(tmp_path / "same.jsonl", same))
    assert found.notes == ("same.jsonl: 1 id has several replies, which are equal, such as those of 'one'",)
    other = [*same, row("two", "C"), row("two", "D")]
    found = ReplyFile.open(as_lines(tmp_path / "other.jsonl", other))
    assert found.replies["two"].text == "D"
    assert found.notes == (
        "other.jsonl: 2 ids have several replies; those of 1 differ, and the last one counts, such as those of 'two'",
    )


def test_what_is_left_over_is_counted(tmp_path: Path) -> None:
    known = [item(number) for number in range(3)]
    rows = [row(known[0].id, "A"), row(IDS[4], "B"), row(IDS[3], "B"), row("f" * 32, "C")]
    found = ReplyFile.open(as_lines(tmp_path / "r.jsonl", rows))
    samples, notes = found.with_replies(known, left_out=IDS)
    assert [RECORDED in sample.inputs for sample in samples] == [True, False, False]
    assert notes == (
        f"2 samples have no reply in r.jsonl, such as {IDS[1]!r}",
        f"r.jsonl: 2 replies are to items that this run leaves out, such as {IDS[4]!r}",
        f"r.jsonl: 1 reply has an id of no sample, such as {'f' * 32!r}",
    )


def test_a_file_of_another_task_is_refused(tmp_path: Path) -> None:
    path = as_json(tmp_path / "other.json", {"x": "A"})
    with pytest.raises(BadData, match="has no reply to any of 5 samples") as caught:
        Captions(answers=path).evaluation()
    assert "'x'" in str(caught.value.hint)
    assert repr(IDS[0]) in str(caught.value.hint)


def test_the_outcome_of_each_reply(tmp_path: Path) -> None:
    rows = [
        row(IDS[0], right(0)),
        row(IDS[1], " \n"),
        row(IDS[2], completion(None, refusal="I would rather not.")),
        {"instance_id": IDS[3], "error": "Batch error: timed out", "model": "m"},
    ]
    task = Captions(answers=as_lines(tmp_path / "r.jsonl", rows))
    run = evaluate(task, out=tmp_path / "run", engine=engine())
    found = {answer.sample.id: answer.prediction for answer in run.answers}
    assert [(found[name].outcome, found[name].reason) for name in IDS] == [
        ("answered", None),
        ("invalid", "the reply is empty"),
        ("refused", "I would rather not."),
        ("failed", "Batch error: timed out"),
        ("skipped", "there is no recorded reply to it"),
    ]
    assert found[IDS[0]].value == [3]
    assert found[IDS[0]].links["reply"]["value"] == right(0)
    assert found[IDS[1]].links["reply"]["raw"] == " \n"
    figure = run.figure("accuracy")
    assert (figure.value, figure.if_wrong, figure.if_right, figure.answered) == (0.2, 0.2, 1.0, 1)


@pytest.mark.parametrize(("finish", "outcome"), [("content_filter", "filtered"), ("length", "truncated")])
def test_a_completion_that_ended_otherwise_is_no_answer(finish: str, outcome: str, tmp_path: Path) -> None:
    path = as_lines(tmp_path / "r.jsonl", [row(IDS[0], completion(right(0), finish))])
    run = evaluate(Captions(answers=path, count=1), out=tmp_path / "run", engine=engine())
    assert [answer.prediction.outcome for answer in run.answers] == [outcome]


def test_a_row_with_a_finish_reason_of_its_own_keeps_it(tmp_path: Path) -> None:
    path = as_lines(
        tmp_path / "r.jsonl",
        [
            {**row(IDS[0], "Answer: A"), "finish_reason": "length"},
            {**row(IDS[1], "Answer: A"), "finish_reason": "stop"},
        ],
    )

    replies = ReplyFile.open(path).replies

    assert [replies[name].outcome for name in IDS[:2]] == ["truncated", "answered"]


def test_a_run_says_which_rung_read_its_answers(tmp_path: Path) -> None:
    said = ("Answer: A", "**Final answer:** (A)", "A", "It could be A or B.", "I like them all.")
    path = as_lines(tmp_path / "r.jsonl", [row(name, text) for name, text in zip(IDS, said, strict=False)])

    run = evaluate(Captions(answers=path), out=tmp_path / "run", engine=engine())

    assert run.totals["read"] == {"declared": 2, "whole": 1, "unread": 2}
    assert [answer.prediction.rung for answer in run.answers] == ["declared", "declared", "whole", None, None]
    again = asyncio.run(rescore(Run.open(run.path), Captions, reread=True))
    assert (again.changed, again.run.totals["read"]) == ((), run.totals["read"])
    assert "Answers read: 2 declared, 1 whole, 2 unread." in text_of(figures_of(again.run))


def test_an_unreadable_reply_keeps_its_text(tmp_path: Path) -> None:
    path = as_lines(tmp_path / "r.jsonl", [row(IDS[0], "I cannot say.")])
    run = evaluate(Captions(answers=path, count=1, reading="official"), out=tmp_path / "run", engine=engine())
    (answer,) = run.answers
    assert answer.prediction.outcome == "invalid"
    assert answer.prediction.links["reply"]["raw"] == "I cannot say."


def test_a_plan_counts_no_call_and_a_run_makes_none(tmp_path: Path) -> None:
    task = Captions(answers=as_json(tmp_path / "r.json", {name: right(n) for n, name in enumerate(IDS)}))
    found = task.evaluation()
    plan = asyncio.run(run_job(found, [SampleEpoch(sample=each, epoch=0) for each in found.samples], engine()).plan())
    assert (plan.calls, plan.hits) == (0, 0)
    run = evaluate(task, out=tmp_path / "run", engine=engine())
    assert run.figure("accuracy").value == 1.0
    assert len(run.records) == 0
    assert run.name == "recorded (r.json)"


def test_the_file_decides_which_run_it_is(tmp_path: Path) -> None:
    answers = {name: right(n) for n, name in enumerate(IDS)}
    one, same = (as_json(tmp_path / name, answers) for name in ("one.json", "same.json"))
    other = as_json(tmp_path / "other.json", {**answers, "f" * 32: "A"})
    kept = [Captions(answers=path).kept() for path in (one, same, other)]
    assert kept[0] == kept[1] != kept[2]
    assert kept[0]["replies"] == {"sha256": sha256(one.read_bytes()).hexdigest(), "rows": 5}
    assert "answers" not in kept[0]
    assert "replies" not in Captions(vlm=chooser(1)).kept()
    assert "reading" not in Captions(vlm=chooser(1)).kept()


@pytest.mark.parametrize("reading", CONVENTIONS)
def test_a_run_is_scored_again_and_packed_without_the_file(reading: Convention, tmp_path: Path) -> None:
    path = as_json(tmp_path / "r.json", {name: right(n) if n else "Not one." for n, name in enumerate(IDS)})
    run = evaluate(Captions(answers=path, reading=reading), out=tmp_path / "run", engine=engine())
    path.unlink()
    again = asyncio.run(rescore(Run.open(run.path), Captions, reread=True))
    assert (again.reread, again.changed, again.kept) == (5, (), ())
    assert again.run.figures == run.figures
    write_pack([Run.open(run.path)], tmp_path / "runs.pack")
    with open_pack(tmp_path / "runs.pack") as pack:
        found = asyncio.run(check_pack(pack, tasks={Captions.name: Captions}, again=True))
    assert found.sound
    assert dict(found.runs[0].again) == {"same": 5}


def test_an_answer_that_does_not_follow_from_its_reply_is_seen(tmp_path: Path) -> None:
    path = as_json(tmp_path / "r.json", {name: right(n) for n, name in enumerate(IDS)})
    run = evaluate(Captions(answers=path), out=tmp_path / "run", engine=engine())
    lines = (run.path / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    forged = [json.loads(line) for line in lines]
    forged[0]["value"] = [1]
    as_lines(run.path / "samples.jsonl", forged)
    again = asyncio.run(rescore(Run.open(run.path), Captions, reread=True))
    assert again.changed == (forged[0]["id"],)


def test_a_sample_that_carries_no_reply_of_this_kind_is_refused() -> None:
    for form in (7, {"text": 7}, {"text": "A", "outcome": "won"}):
        with pytest.raises(UsageError, match="no recorded reply"):
            RecordedReply.of(Sample(id="a", inputs={RECORDED: form}))
    assert RecordedReply.of(Sample(id="a")) is None


def test_runs_of_different_replies_ask_the_same(tmp_path: Path) -> None:
    texts = {"right": {name: right(n) for n, name in enumerate(IDS)}, "same": dict.fromkeys(IDS, "Final Answer: A")}
    runs = [
        evaluate(Captions(answers=as_json(tmp_path / f"{name}.json", found)), out=tmp_path / name, engine=engine())
        for name, found in texts.items()
    ]
    assert common_samples(runs).unlike == 0


def test_models_and_recorded_replies_exclude_each_other(tmp_path: Path) -> None:
    path = as_json(tmp_path / "r.json", {IDS[0]: "A"})
    with pytest.raises(UsageError, match="take the place of models"):
        Captions(answers=path, vlm=chooser(1)).evaluation()


def test_any_task_can_read_replies_by_a_function_of_its_own(tmp_path: Path) -> None:
    def shout(sample: Sample, reply: RecordedReply) -> str:
        if "?" in reply.text:
            raise Unreadable("it asks back")
        return f"{sample.id}: {reply.text.upper()}"

    file = ReplyFile.open(as_json(tmp_path / "r.json", {"a": "yes", "b": "why?"}))
    samples, _ = file.with_replies([Sample(id="a"), Sample(id="b")])
    found = [asyncio.run(file.solver(shout).answer(sample)) for sample in samples]
    assert [(each.outcome, each.value) for each in found] == [("answered", "a: YES"), ("invalid", None)]
