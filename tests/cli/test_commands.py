"""The commands beside `run`: demo, models, prompts, cache, help."""

from __future__ import annotations

import json
import shlex
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from askance import __version__
from askance.models.encoders.vectors import VectorFile, half
from askance.replay import find_address, open_records
from tests.cli.command import Command, draw, link_of
from tests.cli.test_run import problems
from tests.replies import NO_SCHEMA
from tests.servers import Answer, FakeEndpoint, Seen


def test_the_demo_shows_one_picture_whole_and_the_others_in_a_line(askance: Command, own_place: Path) -> None:
    done = askance("demo")

    assert (done.code, done.err, list(own_place.iterdir())) == (0, "", [])
    assert done.out.startswith("The answers below were written by hand and are replayed through the real chain.\n")
    assert done.out.count("\n  argues for  ✓ ") == 1
    assert "\ncoin-horse         ✓ TR2   argues for ✓ 1, ✓ 6, ✗ 4\n" in done.out
    assert "\nstarry-cup         ✗ OIO   argues for ✓ 4, ✓ 8, ✓ 12\n" in done.out
    assert "\n0 calls made · 56 replayed · the answers of the demo are hand-written\n" in done.out
    assert "  askance run action-reason ads --options ads/options.json --vlm demo\n" in done.out


def test_the_demo_shows_every_picture_whole(askance: Command) -> None:
    done = askance("demo", "--all")

    assert done.code == 0
    assert done.out.count("\n  argues for  ✓ ") == 8
    assert {code for code in ("TR1", "TR2", "OIO", "OR") if f" {code}  " in done.out} == {"TR1", "TR2", "OIO", "OR"}
    assert "✗ " in done.out.partition("\n\n")[2]


def test_the_demo_as_json_fits_the_schema(askance: Command) -> None:
    done = askance("demo", "--json")

    assert (done.code, done.err, len(done.lines), problems(done.lines)) == (0, "", 8, [])


def test_the_demo_can_be_copied_and_run(askance: Command) -> None:
    copied = askance("demo", "--copy", "mine")
    again = askance("demo", "--copy", "mine")
    [typed] = [line for line in copied.out.splitlines() if line.startswith("  askance ")]
    first = askance(*shlex.split(typed)[1:], "--json")
    Path("mine/options.json").write_text("{}", encoding="utf-8")
    differs = askance("demo", "--copy", "mine")
    askance("demo", "--copy", "other")
    done = askance("run", "end-to-end", "other", "--options", "other/options.json", "--vlm", "demo", "--json")
    stats = askance("cache", "stats")

    assert (copied.code, again.code, copied.out) == (0, 0, again.out)
    assert (differs.code, differs.err) == (
        2,
        "askance: 'mine/options.json' is there already and differs.\n  → Name another folder.\n",
    )
    for run in (first, done):
        assert (run.code, [line["outcome"] for line in run.lines]) == (0, ["answered"] * 8)
        assert run.err.rstrip().endswith(" · 0 tokens · $0.0000 · the answers of the demo are hand-written")
    assert stats.out.rstrip().endswith("Each replay of all of it saves $0.0000.")


def test_models_check_says_what_an_endpoint_can_do(askance: Command, endpoint: FakeEndpoint, vlm: str) -> None:
    done = askance("models", "check", vlm)
    as_json = askance("models", "check", vlm, "--json")
    with open_records() as store:
        [record] = store

    assert done.out.splitlines()[:-1] == [
        vlm,
        "  JSON schema             enforced",
        "  images                  yes",
        "  seed                    yes",
        "  log-probabilities       no",
        "  tool calls              no",
        "  boxes in pictures       none that can be used",
        "  model as served         fake-model",
        "  answers are asked by    JSON schema",
    ]
    assert done.out.splitlines()[-1].endswith(f"Z, kept in {store.name}")
    about = {"model": vlm, "asks_by": "json_schema", "at": record.at, "asked_now": False}
    assert as_json.lines == [{**about, **record.response}]
    # A red square; and of the rectangles two, after which no unit can be right any more.
    assert sum(b"image_url" in seen.body for seen in endpoint.requests) == 3


def test_models_convert_says_what_it_needs(askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)

    done = askance("models", "convert", "clip.pt", "clip", "--tokenizer", "words")

    assert done.code == 2
    assert "The model 'clip.pt' needs torch and transformers, and torch is not installed." in done.err
    assert "→ pip install 'askance[local]'." in done.err


def test_models_check_shows_what_is_on_record_and_asks_anew_when_told(
    askance: Command, endpoint: FakeEndpoint, vlm: str
) -> None:
    first = askance("models", "check", vlm)
    asked = len(endpoint.requests)
    with open_records() as store:
        [old] = store
        store.put(replace(old, at="2026-01-02T03:04:05Z"))
    shown = askance("models", "check", vlm)
    still = len(endpoint.requests)
    anew = askance("models", "check", vlm, "--refresh")

    assert shown.out.splitlines()[-2:] == [
        f"  asked                   2026-01-02T03:04:05Z, kept in {store.name}",
        f"This is what is on record; `askance models check {vlm} --refresh` asks again.",
    ]
    assert (asked, still, len(endpoint.requests)) == (asked, asked, 2 * asked)
    assert anew.out.splitlines()[:-1] == first.out.splitlines()[:-1]
    assert "2026-01-02" not in anew.out


def test_models_check_asks_anew_where_the_record_is_damaged(askance: Command, vlm: str) -> None:
    askance("models", "check", vlm)
    with open_records() as store, closing(sqlite3.connect(store.beside("cache.db"), isolation_level=None)) as file:
        file.execute("UPDATE Cache SET value = '{}'")
    damaged = askance("models", "check", vlm)
    anew = askance("models", "check", vlm, "--refresh", "--json")

    assert (damaged.code, "damaged" in damaged.err) == (3, True)
    assert (anew.code, anew.lines[0]["asked_now"], askance("cache", "verify").code) == (0, True, 0)


def test_models_check_of_an_endpoint_that_can_do_little(askance: Command) -> None:
    def little(seen: Seen) -> Answer:
        if "response_format" in seen.json or b"image_url" in seen.body or "logprobs" in seen.json:
            return NO_SCHEMA
        return "It is red."

    with FakeEndpoint(little) as endpoint:
        done = askance("models", "check", f"openai:m@{endpoint.url}")

    assert (done.code, done.out.splitlines()[1:-1]) == (
        0,
        [
            "  JSON schema             refused",
            "  JSON object             no",
            "  images                  no",
            "  seed                    yes",
            "  log-probabilities       no",
            "  tool calls              no",
            "  boxes in pictures       none that can be used",
            "  model as served         fake-model",
            "  answers are asked by    JSON, described in the prompt alone",
        ],
    )


def test_models_list(askance: Command) -> None:
    none = askance("models", "list").out
    Path("askance.toml").write_text('vlm = "a"\n[models.a]\nspec = "openai:gpt-4o"\n', encoding="utf-8")

    assert none == "No models are named. Write a table [models.NAME] with a `spec` into askance.toml, or use specs.\n"
    assert askance("models", "list").out.split() == ["a", "openai:gpt-4o", "vlm"]


def test_prompts_are_listed_shown_rendered_checked_and_copied_out(askance: Command) -> None:
    name = "choose_action_reasons"
    rendered = askance("prompts", "render", name, "--set", "description=A cup.", "--set", 'options=["a", "b"]')

    assert f"\n{name}" in askance("prompts", "list").out
    assert f"name: {name}\n" in askance("prompts", "show", name).out
    assert "\n1. a\n2. b\n" in rendered.out
    assert askance("prompts", "check").out.endswith(" prompts, 0 problems.\n")
    copied = askance("prompts", "eject", name)
    assert copied.out.startswith(
        f"prompts/{name}.json.prompt: edit it, then look with `askance prompts render {name}`."
    )
    assert f"[prompts/{name}.json.prompt] " in askance("prompts", "list").out
    assert askance("prompts", "eject", name).code == 2


def test_example_turns_are_rendered(askance: Command) -> None:
    name, form = "match_caption", ["--form", "text", "--set", "step_by_step=false"]
    shown = askance("prompts", "render", name, *form, "--examples", "2", "--set", "answer=E")
    none = askance("prompts", "render", "combine", "--examples", "1")

    assert [line for line in shown.out.splitlines() if line in {"user:", "assistant:"}] == [
        *["user:", "assistant:"] * 2,
        "user:",
    ]
    assert shown.out.count("\nassistant:\nAnswer: E\n") == 2
    assert (none.code, "shows no examples: it has no block `example:`" in none.err) == (2, True)


def test_a_value_that_sets_nothing(askance: Command) -> None:
    done = askance("prompts", "render", "combine", "--set", "objects")

    assert (done.code, done.err) == (2, "askance: 'objects' sets nothing.\n  → Write --set name=value.\n")


@pytest.fixture
def filled(askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str]) -> str:
    """Key of an answer on record, of two that differ in the picture alone."""
    done = askance("run", "verbalize", *ads[:2], "--context", "IN", "--vlm", vlm, "--json")
    return done.lines[1]["links"]["narration"]["calls"][0]


def test_cache_counts(filled: str, vlm: str, askance: Command) -> None:
    lines = askance("cache", "stats").out.splitlines()

    assert ": 3 records, 0.0 MB" in lines[0]
    assert [line.split() for line in lines[1:5]] == [
        ["kinds", "chat", "2"],
        ["kinds", "endpoint", "1"],
        ["models", vlm, "3"],
        ["outcomes", "answered", "2"],
    ]


def test_cache_says_why(filled: str, askance: Command) -> None:
    whole, part, last = (askance("cache", "why", *words) for words in ([filled], [filled[:9].upper()], ["--last"]))

    lines = whole.out.splitlines()
    assert (whole.code, whole.out) == (part.code, part.out)
    assert lines[0].startswith(f"{filled[:12]} (openai:fake-model@")
    assert lines[1].endswith(" differs in the image of message 2 (user).")
    assert lines[2].startswith("--- recorded ")
    assert lines[3] == f"+++ asked {filled[:12]}"
    assert "differs in the image of message" in last.out


def test_cache_travels_as_a_cassette(filled: str, askance: Command, ads: list[str]) -> None:
    written = askance("cache", "export", "a.jsonl", "--images", "ads")
    streamed = askance("cache", "export", "-", "--kind", "chat")
    new = askance("cache", "import", "a.jsonl", "--store", "other")
    known = askance("cache", "import", "a.jsonl", "--store", "other")

    assert (written.out, written.err) == ("", "3 records written to a.jsonl\n")
    assert sum("image" in json.loads(line) for line in Path("a.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert [line["kind"] for line in streamed.lines] == ["chat", "chat"]
    assert (new.out, known.out) == ("3 new, 0 known.\n", "0 new, 3 known.\n")


def test_cache_verifies(filled: str, askance: Command) -> None:
    sound = askance("cache", "verify")
    with open_records() as store:
        place = store.beside("cache.db")
    with closing(sqlite3.connect(place, isolation_level=None)) as file:
        file.execute("UPDATE Cache SET value = '{}' WHERE key = ?", (filled,))
    broken = askance("cache", "verify")

    assert (sound.code, sound.out) == (0, "3 records, 0 problems.\n")
    assert (broken.code, broken.out.splitlines()[-1]) == (1, "3 records, 1 problem.")
    assert broken.out.startswith(f"{filled[:12]}: ")


@pytest.mark.usefixtures("filled")
def test_cache_verifies_the_vectors_beside_the_records(askance: Command) -> None:
    vectors = VectorFile(Path(find_address()), {"model": "encoder"})
    vectors.keep({"ab" * 32: half([1.0, 2.0])})
    sound = askance("cache", "verify")
    vectors.path.write_bytes(vectors.path.read_bytes()[:-1] + b"!")
    broken = askance("cache", "verify")

    assert (sound.code, sound.out) == (0, "3 records, 0 problems.\n")
    assert (broken.code, broken.out.splitlines()[-1]) == (1, "3 records, 1 problem.")
    assert "the checksum of row 0 does not fit" in broken.out


@pytest.mark.parametrize("command", [[], ["run"], ["demo"], ["models"], ["prompts"], ["cache"], ["cache", "why"]])
def test_every_command_has_help(command: list[str], askance: Command) -> None:
    long, short = askance(*command, "--help"), askance(*command, "-h")

    assert (long.code, long.err) == (0, "")
    assert long.out == short.out
    assert long.out.startswith(f"Usage: askance {' '.join(command)}".rstrip())


def test_exit_codes_are_documented(askance: Command) -> None:
    for command in ([], ["run"]):
        words = " ".join(askance(*command, "--help").out.split())
        assert words.endswith(
            "Exit codes: 0 all answered · 1 some have no answer · 2 the command, a file or a setting is wrong · "
            "3 cannot start · 130 interrupted · 143 terminated."
        )


def test_the_version(askance: Command) -> None:
    assert askance("--version").out == f"askance {__version__}\n"


def test_a_typo_in_an_option_is_a_usage_error(askance: Command) -> None:
    done = askance("run", "verbalize", "ads", "--vml", "x")

    assert (done.code, done.out) == (2, "")
    assert "No such option: --vml" in done.err


def test_options_by_picture(askance: Command, endpoint: FakeEndpoint, vlm: str, own_place: Path) -> None:
    draw(own_place / "ads", "a.png", "b.png")
    each = {"a.png": ["I fly.", "I walk."], "ads/b.png": ["I swim.", "I run.", "I rest."]}
    Path("o.json").write_text(json.dumps(each), encoding="utf-8")

    askance("run", "end-to-end", "ads", "--options", "o.json", "--vlm", vlm)

    asked = [json.dumps(seen.json) for seen in endpoint.requests if link_of(seen) == "end_to_end"]
    assert sorted("3. I rest." in text for text in asked) == [False, True]
