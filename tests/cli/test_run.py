"""`askance run`: what is asked, what is printed, how it ends."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from askance.chains import output_line
from askance.replay import open_records
from tests.cli.command import Command, draw, link_of, picture_of, telling
from tests.distributions import install
from tests.replies import SLOW_DOWN
from tests.servers import Answer, FakeEndpoint, Seen, chat_body

SCHEMA = json.loads((Path(output_line.__file__).parent / output_line.SCHEMA).read_text(encoding="utf-8"))


def problems(lines: list[dict[str, Any]]) -> list[str]:
    """What the schema that ships with the package has against the lines."""
    valid: Any = Draft202012Validator(SCHEMA)
    return [error.message for line in lines for error in valid.iter_errors(line)]


TOOLS = ("narration", "objects", "scene_text", "unusual")
THINKING = ("choose_action_reasons", "combine", "detect_statement")
CARTOON = ("brainstorm", "entities", "location", "scene_description", "unusual")
CALLS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "verbalize": ((*TOOLS, "combine"), []),
    "verbalize a part": (("narration",), ["--context", "IN"]),
    "verbalize without the unusual": (
        ("combine", "narration", "objects", "scene_text"),
        ["--context", "T_V-UH"],
    ),
    "atypicality": (("detect_statement", "narration", "objects"), []),
    "action-reason": ((*TOOLS, *THINKING), ["--options", "options.txt"]),
    "action-reason without": (
        (*TOOLS, "choose_action_reasons", "combine"),
        ["--options", "options.txt", "--no-statement"],
    ),
    "action-reason single": (
        (*TOOLS, "choose_action_reasons", "combine", "detect_statement"),
        ["--options", "options.txt", "--choose", "single"],
    ),
    "end-to-end": (("end_to_end",), ["--options", "options.txt"]),
    "end-to-end beside": (
        ("detect_statement", "end_to_end", "narration", "objects"),
        ["--options", "options.txt", "--statement", "--context", "IN"],
    ),
    "explain": (("explain_from_picture",), []),
    "explain by a caption": (("caption", "explain_from_description"), ["--context", "caption"]),
    "identify": (("identify_from_picture",), []),
    "identify by T_V": ((*TOOLS, "combine", "identify_from_description"), ["--context", "T_V"]),
    "brainstorm": (CARTOON, []),
    "infer": (("infer_from_picture",), ["--box", "1,1,5,6"]),
    "infer from two boxes": (
        ("infer_from_picture",),
        ["--box", "0,0,500,900", "--box", "10,10,20,20.5", "--unit", "thousandths"],
    ),
    "brainstorm three times": ((*CARTOON, "brainstorm", "brainstorm"), ["--draws", "3"]),
}


@pytest.mark.parametrize(("calls", "more"), CALLS.values(), ids=CALLS)
def test_a_chain_asks_each_of_its_questions_once(
    calls: tuple[str, ...],
    more: list[str],
    item: pytest.Function,
    askance: Command,
    endpoint: FakeEndpoint,
    vlm: str,
    ads: list[str],
    options: str,
) -> None:
    chain = item.callspec.id.partition(" ")[0]

    done = askance("run", chain, ads[0], "--vlm", vlm, *more, "--json")

    assert (done.code, [line["outcome"] for line in done.lines]) == (0, ["answered"])
    assert sorted(map(link_of, endpoint.requests)) == sorted([*calls, "probe"])


def test_candidate_captions_are_drafted_planned_kept_and_replayed(
    askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str]
) -> None:
    command = ["run", "brainstorm", ads[0], "--vlm", vlm, "--draws", "2"]
    planned = askance(*command, "--plan", "--json")
    done = askance(*command, "--json", "--out", "drafts")
    again = askance(*command, "--replay")
    alone = askance("run", "verbalize", ads[0], "--vlm", vlm, "--draws", "2")

    links = planned.lines[0]["links"]
    counted = {name: link["known"] + link["below"] for name, link in links.items()}
    assert counted == dict.fromkeys(("location", "narration", "unusual", "entities", "candidate_1", "candidate_2"), 1)
    (line,) = done.lines
    assert problems(done.lines) == []
    assert [*line["links"]["candidate_2"]["value"]] == ["concepts", "chosen", "caption", "explanation"]
    drafts = [seen.json for seen in endpoint.requests if link_of(seen) == "brainstorm"]
    assert [(each["temperature"], each["top_p"], each["frequency_penalty"]) for each in drafts] == [(0.8, 0.9, 0.2)] * 2
    assert done.err.splitlines()[-2].startswith("The captions are candidates that openai:")
    assert "\n  candidate 2 concepts: " in again.out
    assert "2 calls" not in again.err
    assert again.code == 0
    assert alone.code == 2
    assert "`askance run verbalize` takes no --draws." in alone.err


@pytest.fixture
def installed(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that brings a chain."""
    there = own_place / "installed"
    install(there, "surprise", {"askance.chains": {"surprise": "tests.chains.test_own_links:surprise"}})
    monkeypatch.setattr(sys, "path", [*sys.path, str(there)])


@pytest.mark.usefixtures("installed")
def test_a_chain_of_an_installed_package_is_run(
    askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str]
) -> None:
    command = ["run", "surprise", ads[0], "--vlm", vlm, "--out", "run", "--json"]
    done, again = askance(*command), askance(*command, "--replay")
    refused = askance("run", "surprise", ads[0], "--vlm", vlm, "--context", "IN")

    assert (done.code, [line["outcome"] for line in done.lines]) == (0, ["answered"])
    assert sorted(map(link_of, endpoint.requests)) == ["caption", "combine", "probe", "unusual"]
    assert "value" in done.lines[0]["links"]["inference"]
    assert again.lines[0]["links"] == done.lines[0]["links"]
    assert (refused.code, "`askance run surprise` takes no --context" in refused.err) == (2, True)


@pytest.mark.usefixtures("installed")
def test_a_chain_of_an_installed_package_has_options(
    askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str]
) -> None:
    command = ["run", "--scene", "narration", "surprise", ads[0], "--vlm", vlm, "--json"]
    done = askance(*command, "--out", "run")
    again = askance(*command, "--replay")
    resumed = askance(*command, "--out", "run")
    other = askance("run", "surprise", ads[0], "--vlm", vlm, "--out", "run")
    unknown = askance(*command[:2], "ocr", *command[3:])
    alien = askance("run", "verbalize", ads[0], "--vlm", vlm, "--scene", "caption")
    shown = " ".join(askance("run", "surprise", "--help").out.split())
    listed = askance("run", "--help").out

    assert sorted(map(link_of, endpoint.requests)) == ["combine", "narration", "probe", "unusual"]
    assert (done.code, again.stable, resumed.stable) == (0, done.stable, done.stable)
    assert json.loads(Path("run/run.json").read_text(encoding="utf-8"))["configuration"]["scene"] == "narration"
    assert (other.code, "'scene' ('narration', now none)" in other.err) == (2, True)
    assert unknown.err == "askance: There is no scene 'ocr'.\n  → Choose one of caption, narration.\n"
    assert "run `surprise`; `verbalize` takes --context." in alien.err
    assert "Options: --scene <caption|narration> Which tool sees the scene. By default caption." in shown
    assert ", surprise\n\n" in listed


def test_seven_calls_an_image_and_the_probe_once(
    askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str], options: str
) -> None:
    done = askance("run", "action-reason", "ads", "--options", options, "--vlm", vlm, "--json")

    asked = Counter(link_of(seen) for seen in endpoint.requests)
    assert asked == {"probe": 1, **dict.fromkeys((*TOOLS, *THINKING), 3)}
    assert done.err == (
        "3 of 3 images: 3 answered\n"
        "21 calls made · 0 replayed · 1 more to see what the endpoint can do · 396 tokens"
        " · cost not known (no price is set)\n"
    )


def test_two_models_share_the_work(askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str]) -> None:
    with FakeEndpoint(models=("thinker",)) as other:
        done = askance("run", "verbalize", ads[0], "--vlm", vlm, "--llm", f"openai:thinker@{other.url}")

    assert done.code == 0
    assert sorted(map(link_of, endpoint.requests)) == sorted([*TOOLS, "probe"])
    assert sorted(map(link_of, other.requests)) == ["combine", "probe"]


def test_json_lines_come_in_the_order_of_the_inputs_and_fit_the_schema(
    askance: Command, vlm: str, ads: list[str], options: str
) -> None:
    shuffled = [ads[2], ads[0], ads[1]]

    done = askance("run", "action-reason", *shuffled, "--options", options, "--vlm", vlm, "--json")

    assert [line["image"] for line in done.lines] == shuffled
    assert problems(done.lines) == []
    assert done.lines[0]["statement"]["relation"] in {"TR1", "TR2", "OIO", "OR"}
    assert done.lines[0]["answers"] == [1, 2]


def test_slow_answers_do_not_change_the_order(askance: Command, ads: list[str]) -> None:
    def slow_at_first(seen: Seen) -> Answer:
        endpoint.delay = 0.0 if len(endpoint.requests) > 6 else 0.3
        return None

    with FakeEndpoint(slow_at_first) as endpoint:
        done = askance("run", "verbalize", "ads", "--vlm", f"openai:m@{endpoint.url}", "--context", "IN", "--json")

    assert [line["image"] for line in done.lines] == ads


def test_a_replay_prints_the_same_lines_with_the_server_gone(askance: Command, ads: list[str], options: str) -> None:
    with FakeEndpoint(telling) as endpoint:
        command = ["run", "action-reason", "ads", "--options", options, "--vlm", f"openai:m@{endpoint.url}", "--json"]
        first = askance(*command)
    second = askance(*command, "--replay")

    assert (second.code, second.stable) == (0, first.stable)
    assert second.err == "3 of 3 images: 3 answered\n0 calls made · 21 replayed\n"
    assert [(line["meta"]["calls"], line["meta"]["replayed"]) for line in first.lines] == [(7, 0)] * 3
    assert [(line["meta"]["calls"], line["meta"]["replayed"]) for line in second.lines] == [(0, 7)] * 3


def test_the_second_run_asks_nothing(askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str]) -> None:
    askance("run", "atypicality", "ads", "--vlm", vlm)
    before = len(endpoint.requests)

    assert askance("run", "atypicality", "ads", "--vlm", vlm).code == 0
    assert len(endpoint.requests) == before


def test_refresh_asks_everything_again(askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str]) -> None:
    askance("run", "verbalize", ads[0], "--vlm", vlm)
    endpoint.requests.clear()

    assert askance("run", "verbalize", ads[0], "--vlm", vlm, "--mode", "refresh").code == 0
    assert sorted(map(link_of, endpoint.requests)) == sorted([*TOOLS, "combine"])


def test_one_call_at_a_time(askance: Command, ads: list[str]) -> None:
    most, under_way = 0, set[int]()

    class Counting(FakeEndpoint):
        async def _answer(self, seen: Seen, writer: object) -> bool:
            nonlocal most
            under_way.add(id(seen))
            most = max(most, len(under_way))
            try:
                return await super()._answer(seen, writer)  # pyright: ignore[reportArgumentType]
            finally:
                under_way.discard(id(seen))

    with Counting(delay=0.01) as endpoint:
        askance("run", "verbalize", "ads", "--vlm", f"openai:m@{endpoint.url}", "--concurrency", "1")

    assert most == 1


def test_a_given_rate_is_kept(askance: Command, ads: list[str]) -> None:
    times: list[float] = []

    def reply(_: Seen) -> None:
        times.append(time.monotonic())

    with FakeEndpoint(reply) as endpoint:
        assert askance("run", "verbalize", "ads", "--vlm", f"openai:m@{endpoint.url}", "--rpm", "1200").code == 0
    assert times[-1] - times[0] > 0.04 * (len(times) - 1), "twenty a second, and the timer may be late once"


def test_an_image_that_fails_does_not_stop_the_others(askance: Command, vlm: str, ads: list[str]) -> None:
    Path(ads[1]).write_text("this is no picture", encoding="utf-8")

    done = askance("run", "verbalize", "ads", "--vlm", vlm, "--json")

    assert done.code == 1
    assert [line["outcome"] for line in done.lines] == ["answered", "skipped", "answered"]
    assert problems(done.lines) == []
    assert done.err.startswith("\nWithout an answer:\n  ads/b.png  The picture 'ads/b.png' holds no picture that is ")
    assert (
        "\nWhat to do:\n"
        "  → Mend the files that cannot be used, or leave them out.\n"
        "\n"
        "3 of 3 images: 2 answered, 1 skipped\n"
    ) in done.err


def refusing(seen: Seen) -> Answer:
    return chat_body(None, refusal="I cannot help with that.") if link_of(seen) == "unusual" else None


def truncating(seen: Seen) -> Answer:
    return chat_body('{"text": "A c', finish="length") if link_of(seen) == "unusual" else None


def filtering(seen: Seen) -> Answer:
    return chat_body("", finish="content_filter") if link_of(seen) == "unusual" else None


def babbling(seen: Seen) -> Answer:
    """The form that was asked for, with nothing in it."""
    return json.dumps(dict.fromkeys(json.loads(telling(seen)), " ")) if link_of(seen) == "unusual" else None


TROUBLE = {
    "refused": (refusing, "unusual refused: the model declined: I cannot help with that.", 1),
    "truncated": (truncating, "unusual truncated: the answer was cut off at the token limit; raise `max_tokens`", 1),
    "filtered": (filtering, "unusual filtered: a content filter of the endpoint stopped the answer", 1),
    "invalid": (babbling, "unusual invalid: the JSON object needs `unusual` with a text that is not empty", 2),
}


@pytest.mark.parametrize(("trouble", "row", "calls"), TROUBLE.values(), ids=TROUBLE)
def test_what_is_no_answer_is_named_and_asked_again_by_retry(
    trouble: object, row: str, calls: int, item: pytest.Function, askance: Command, ads: list[str]
) -> None:
    outcome = item.callspec.id
    with FakeEndpoint(trouble) as endpoint:  # pyright: ignore[reportArgumentType]
        command = ["run", "verbalize", ads[0], "--vlm", f"openai:m@{endpoint.url}"]
        first = askance(*command, "--json")
        before = len(endpoint.requests)
        same = askance(*command, "--json")
        assert len(endpoint.requests) == before
        again = askance(*command, "--json", "--retry", outcome)

    assert (first.code, same.stable, again.stable) == (1, first.stable, first.stable)
    assert first.lines[0]["links"]["unusual"]["outcome"] == outcome
    assert f"\n  ads/a.png  {row}\nWhat to do:\n" in first.err
    assert [link_of(seen) for seen in endpoint.requests[before:]] == ["unusual"] * calls


def test_retry_takes_the_new_answer(askance: Command, ads: list[str]) -> None:
    trouble = [True]
    with FakeEndpoint(lambda seen: refusing(seen) if trouble else None) as endpoint:
        command = ["run", "verbalize", ads[0], "--vlm", f"openai:m@{endpoint.url}", "--json"]
        refused = askance(*command)
        trouble.clear()
        again = askance(*command, "--retry", "invalid,refused")
    replayed = askance(*command, "--replay")

    assert (refused.code, again.code, replayed.code) == (1, 0, 0)
    assert replayed.stable == again.stable


def test_failures_are_not_recorded_and_tried_again_by_the_same_command(askance: Command, ads: list[str]) -> None:
    broken = [True]
    reply = {"status": 400}

    def failing(seen: Seen) -> Answer:
        return {"error": {"message": "no", **reply}} if broken and link_of(seen) == "combine" else None

    with FakeEndpoint(failing) as endpoint:
        command = ["run", "verbalize", ads[0], "--vlm", f"openai:m@{endpoint.url}", "--json"]
        failed = askance(*command)
        broken.clear()
        endpoint.requests.clear()
        assert askance(*command).code == 0

    assert (failed.code, failed.lines[0]["outcome"]) == (1, "failed")
    assert "→ The same command asks again for what failed and for nothing else.\n" in failed.err
    assert [link_of(seen) for seen in endpoint.requests] == ["combine"]


def test_a_rate_limit_slows_down_and_loses_nothing(askance: Command, ads: list[str]) -> None:
    waits = [SLOW_DOWN.__class__(status=429, body=SLOW_DOWN.body, headers={"retry-after-ms": "20"})] * 2
    with FakeEndpoint([None, *waits]) as endpoint:
        done = askance("run", "verbalize", "ads", "--vlm", f"openai:m@{endpoint.url}", "--context", "IN", "--json")

    assert (done.code, len(endpoint.requests)) == (0, 1 + 2 + 3)


def test_the_picture_is_sent_as_it_is_by_the_original_policy(
    askance: Command, endpoint: FakeEndpoint, vlm: str, own_place: Path
) -> None:
    from base64 import b64encode

    from PIL import Image

    exif = Image.Exif()
    exif[0x010E] = "secret place"
    Image.new("RGB", (8, 8)).save(own_place / "a.jpg", exif=exif)
    source = b64encode((own_place / "a.jpg").read_bytes()).decode()

    askance("run", "verbalize", "a.jpg", "--context", "IN", "--vlm", vlm, "--image-policy", "original")
    askance("run", "verbalize", "a.jpg", "--context", "IN", "--vlm", vlm)

    sent = [picture_of(seen).partition(",")[2] for seen in endpoint.requests if picture_of(seen)]
    assert (len(sent), sent[0] == source, sent[1] == source) == (2, True, False)


def test_the_protocol_of_the_paper_sends_no_schema(askance: Command, ads: list[str]) -> None:
    with FakeEndpoint(lambda _: "cup, wall") as endpoint:
        model = f"openai:fake-model@{endpoint.url}"
        done = askance("run", "verbalize", ads[0], "--vlm", model, "--protocol", "paper", "--json")

    assert (done.code, len(endpoint.requests)) == (0, 5)
    assert {line["rung"] for line in done.lines[0]["links"].values()} == {"paper"}
    assert not any("response_format" in body for body in endpoint.bodies)


def test_step_by_step_asks_for_reasons_first(
    askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str], options: str
) -> None:
    done = askance("run", "end-to-end", ads[0], "--options", options, "--vlm", vlm, "--step-by-step", "--json")

    schema = endpoint.bodies[-1]["response_format"]["json_schema"]["schema"]
    assert (done.code, schema["required"]) == (0, ["reasoning", "answers"])


def test_single_gives_one_answer(askance: Command, vlm: str, ads: list[str], options: str) -> None:
    done = askance("run", "action-reason", ads[0], "--options", options, "--vlm", vlm, "--choose", "single", "--json")

    assert (done.code, done.lines[0]["answers"]) == (0, [1])


def test_an_edited_prompt_asks_only_what_changed(
    askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str], options: str
) -> None:
    command = ["run", "action-reason", ads[0], "--options", options, "--vlm", vlm, "--json"]
    askance(*command)
    askance("prompts", "eject", "detect_statement", "--to", "mine")
    file = Path("mine/detect_statement.json.prompt")
    endpoint.requests.clear()
    assert askance(*command, "--prompts", "mine").code == 0
    assert endpoint.requests == []

    asked, example = file.read_text(encoding="utf-8").split("\nexample:\n")
    file.write_text(f"{asked}Take your time.\n\nexample:\n{example}", encoding="utf-8")
    planned = askance(*command[:-1], "--prompts", "mine", "--plan").out
    assert "· mine/detect_statement.json.prompt has other words than when statement was recorded:\n    …" in planned
    assert "{+ Take your time.+}" in planned
    assert askance(*command, "--prompts", "mine").code == 0

    assert [link_of(seen) for seen in endpoint.requests] == ["detect_statement"]


def test_the_store_that_is_named_is_used(askance: Command, vlm: str, ads: list[str], own_place: Path) -> None:
    askance("run", "verbalize", ads[0], "--context", "IN", "--vlm", vlm, "--store", "mine")

    assert "2 records" in askance("cache", "stats", "--store", "mine").out
    assert "0 records" in askance("cache", "stats").out


def test_the_settings_file_names_models_store_and_prompts(
    askance: Command, endpoint: FakeEndpoint, ads: list[str], own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASKANCE_STORE")
    askance("prompts", "eject", "narration", "--to", "wording")
    settings = f"""
        vlm = "seer"
        prompts = "wording"
        store = "kept"
        [models.seer]
        spec = "openai:fake-model@{endpoint.url}"
        price = {{ input = 1000, output = 1000 }}
    """
    Path("askance.toml").write_text(settings, encoding="utf-8")
    file = Path("wording/narration.json.prompt")
    file.write_text(file.read_text(encoding="utf-8") + "\nMind the colours.\n", encoding="utf-8")

    done = askance("run", "verbalize", ads[0], "--context", "IN")

    assert (done.code, "Mind the colours." in json.dumps(endpoint.bodies[-1])) == (0, True)
    assert done.err.endswith("36 tokens · $0.0360\n")
    assert askance("cache", "stats").out.startswith(f"{own_place / 'kept'}: 2 records")
    assert f"kept in {own_place / 'kept'}\n" in askance("models", "check", "seer").out
    assert "[wording/narration.json.prompt]" in askance("prompts", "list").out


def test_files_folders_and_patterns_each_picture_once(askance: Command, vlm: str, own_place: Path) -> None:
    draw(own_place / "ads", "b.png", "a.JPG", "c.webp")
    draw(own_place / "ads" / "deep", "d.png")
    (own_place / "ads" / "notes.txt").touch()

    done = askance("run", "verbalize", "ads/c.webp", "ads", "ads/**/*.png", "--context", "IN", "--vlm", vlm, "--json")

    assert [line["image"] for line in done.lines] == ["ads/c.webp", "ads/a.JPG", "ads/b.png", "ads/deep/d.png"]


def test_a_damaged_record_ends_its_picture_and_no_other(
    askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str]
) -> None:
    command = ["run", "verbalize", "ads", "--vlm", vlm, "--context", "IN"]
    key = askance(*command, "--json").lines[1]["links"]["narration"]["calls"][0]
    with open_records() as store, closing(sqlite3.connect(store.beside("cache.db"), isolation_level=None)) as file:
        file.execute("UPDATE Cache SET value = '{' WHERE key = ?", (key,))
    asked = len(endpoint.requests)
    planned = askance(*command, "--plan")
    done = {how: askance(*command, "--json", "--mode", how) for how in ("replay", "auto")}
    out = askance("cache", "prune", "--damaged").out
    mended = askance(*command, "--json")

    assert planned.code == 0
    for how in done.values():
        assert how.code == 1
        assert [line["links"]["narration"]["outcome"] for line in how.lines] == ["answered", "failed", "answered"]
        assert f"The row {key[:12]!r} of the store is damaged: " in how.err
        assert "  → `askance cache verify` finds the damaged records, `askance cache prune --damaged`" in how.err
    assert (out, mended.code) == ("1 record, 0.0 MB, are taken out.\n", 0)
    assert len(endpoint.requests) == asked + 1
