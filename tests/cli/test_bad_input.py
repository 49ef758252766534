"""Bad input: one clear message, the way out, the exit code, and never a traceback."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from askance.replay import Record, database, open_records
from tests import replies
from tests.cli.command import Command, Done, link_of
from tests.servers import Answer, FakeEndpoint, Seen

LOCAL = "openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1"

SPECS = f"`openai:gpt-4o`, or `{LOCAL}` for a server of your own"


@pytest.fixture
def picture(ads: list[str]) -> str:
    return ads[0]


# --- what is named on the command line ---


def said(sentence: str, hint: str) -> str:
    return f"askance: {sentence}\n  → {hint}\n"


USAGE = {
    "no model": (
        ["run", "verbalize", "ads"],
        said(
            "No model is named for --vlm.",
            f"On this machine: --local. A local server: --vlm {LOCAL}. "
            "An API: --vlm openai:gpt-4o (with OPENAI_API_KEY set). Or set `vlm` in askance.toml.",
        ),
    ),
    "unknown model": (
        ["run", "verbalize", "ads", "--vlm", "gpt-4o"],
        said(
            "No model is called 'gpt-4o'.",
            f"Known: 'demo'. Or write a spec: `openai:gpt-4o`, or `{LOCAL}` for a server of your own.",
        ),
    ),
    "missing file": (
        ["run", "verbalize", "ads/a.png", "ads/z.png", "--vlm", "openai:gpt-4o"],
        said("There is no image 'ads/z.png'.", "Check the name; folders and patterns work as well."),
    ),
    "pattern without images": (
        ["run", "verbalize", "*.gif", "--vlm", "openai:gpt-4o"],
        said("There is no image '*.gif'.", "Check the name; folders and patterns work as well."),
    ),
    "address": (
        ["run", "verbalize", "ftp://example.org/a.png", "--vlm", "openai:gpt-4o"],
        said("There is no image 'ftp://example.org/a.png'.", "Download it first."),
    ),
    "folder without images": (
        ["run", "verbalize", "empty", "--vlm", "openai:gpt-4o"],
        said(
            "There are no images in the folder 'empty'.",
            "Looked for .bmp, .gif, .jpeg, .jpg, .png, .tif, .tiff, .webp, in no folder below it: that takes a "
            "pattern, 'empty/**/*.jpg'.",
        ),
    ),
    "no options": (
        ["run", "action-reason", "ads", "--vlm", "openai:gpt-4o"],
        said(
            "`askance run action-reason` chooses among options, and none are given.",
            "Give --options FILE: one option a line, a JSON list, or a JSON map by image name.",
        ),
    ),
    "missing options": (
        ["run", "end-to-end", "ads", "--options", "o.txt", "--vlm", "openai:gpt-4o"],
        said("The options file 'o.txt' cannot be read: No such file or directory.", "Check the path of `--options`."),
    ),
    "useless option": (
        ["run", "verbalize", "ads", "--vlm", "openai:gpt-4o", "--count", "2"],
        said(
            "`askance run verbalize` takes no --count.",
            "Leave it out, or run `action-reason` or `end-to-end` or `investigate`; `verbalize` takes --context.",
        ),
    ),
    "option of other chains, of none of its own": (
        ["run", "atypicality", "ads", "--vlm", "openai:gpt-4o", "--no-statement"],
        said(
            "`askance run atypicality` takes no --no-statement.",
            "Leave it out, or run `action-reason` or `end-to-end`; `atypicality` has no options of its own.",
        ),
    ),
    "options for a chain that does not choose": (
        ["run", "explain", "ads", "--vlm", "openai:gpt-4o", "--options", "options.txt"],
        said("`askance run explain` takes no --options.", "Leave it out, or run `action-reason` or `end-to-end`."),
    ),
    "unknown chain": (
        ["run", "verbalise", "ads", "--context", "IN"],
        said(
            "There is no chain 'verbalise'.",
            "Choose one of verbalize, atypicality, action-reason, end-to-end, explain, identify, ask, brainstorm, "
            "infer, investigate, or install the package that brings the chain.",
        ),
    ),
    "a region without a box": (
        ["run", "infer", "ads", "--vlm", "openai:gpt-4o"],
        said(
            "`infer` needs a region of the image, and no box is given.",
            "Give its edges in pixels: --box LEFT,TOP,RIGHT,BOTTOM, such as --box 329,119,418,287.",
        ),
    ),
    "no box": (
        ["run", "infer", "ads", "--vlm", "openai:gpt-4o", "--box", "1,2,3"],
        said("This is no box: '1,2,3'.", "Give four numbers, LEFT,TOP,RIGHT,BOTTOM: --box 329,119,418,287"),
    ),
    "a box of no area": (
        ["run", "infer", "ads", "--vlm", "openai:gpt-4o", "--box", "30,20,10,40"],
        said(
            "The box (30, 20, 10, 40) has no area: -20×20 pixels.",
            "Give (left, top, right, bottom), not a corner and a size.",
        ),
    ),
    "option of a chain without a chain": (
        ["run", "--draws"],
        said("No chain is named.", "--draws goes with `brainstorm`."),
    ),
    "neither multi nor single": (
        ["run", "end-to-end", "ads", "--options", "options.txt", "--choose", "all"],
        said("There is no mode 'all'.", "Choose one of single, multi."),
    ),
    "single and count": (
        ["run", "end-to-end", "ads", "--options", "options.txt", "--choose", "single", "--count", "2"],
        said("`--choose single` chooses one option, so it takes no --count.", "Leave one out."),
    ),
    "replay and another mode": (
        ["run", "verbalize", "ads", "--vlm", "openai:gpt-4o", "--replay", "--mode", "live"],
        said("--replay and --mode live contradict each other.", "Leave one out."),
    ),
    "unknown context": (
        ["run", "verbalize", "ads", "--vlm", "openai:gpt-4o", "--context", "V"],
        said("There is no context 'V'.", "Choose one of T_V, T_V-UH, V+T, IN, UH, V+T+IN, V+T+IN+UH."),
    ),
    "retry of what is no answer": (
        ["run", "verbalize", "ads", "--vlm", "openai:gpt-4o", "--retry", "failed"],
        said(
            "No recorded answer is 'failed', so none can be asked again (`retry`).",
            "Outcomes to ask again: 'invalid', 'refused', 'filtered', 'truncated'.",
        ),
    ),
    "folder of prompts": (
        ["run", "verbalize", "ads", "--vlm", "openai:gpt-4o", "--prompts", "nowhere"],
        said("There is no prompts folder 'nowhere'.", "`askance prompts eject NAME --to nowhere` begins one."),
    ),
    "unknown prompt": (
        ["prompts", "show", "unusuall"],
        said("There is no prompt 'unusuall'.", "Nearest: unusual."),
    ),
    "missing cassette": (
        ["cache", "import", "calls.jsonl"],
        said("There is no cassette 'calls.jsonl'.", "`askance cache export FILE` makes one."),
    ),
    "unknown kind of record": (
        ["cache", "export", "-", "--kind", "chats"],
        said("There is no kind of record 'chats'.", "Kinds: chat, embed, endpoint, ocr, score, search."),
    ),
    "no record named": (
        ["cache", "why"],
        said("Name one record.", "Give a key (`askance run … --json` prints them), or --last."),
    ),
}


@pytest.mark.parametrize(("command", "message"), USAGE.values(), ids=USAGE)
def test_a_command_that_cannot_be_meant_ends_at_once(
    command: list[str], message: str, askance: Command, ads: list[str], options: str, own_place: Path
) -> None:
    (own_place / "empty").mkdir()

    assert askance(*command) == Done(2, "", message)


# --- options ---

OPTIONS = {
    "empty": ("o.txt", "\n\n", "'o.txt': There are no options to choose from.", None),
    "empty list": ("o.json", "[]", "'o.json': There are no options to choose from.", None),
    "one": ("o.txt", "I should fly.\n", "'o.txt': There is one option to choose from.", None),
    "one for a picture": (
        "o.json",
        '{"a.png": ["I should fly."]}',
        "'o.json', 'a.png': There is one option to choose from.",
        None,
    ),
    "repeated": (
        "o.txt",
        "I fly.\nI walk.\nI fly.\n",
        "'o.txt': Options 1 and 3 are the same: 'I fly.'.",
        "Remove all but one of them.",
    ),
    "no text": ("o.json", '["I fly.", 3]', "'o.json': Option 2 is blank or no text: 3.", None),
    "one text": (
        "o.json",
        '{"a": "I fly."}',
        "'o.json', 'a.png': The options are one text, not a list.",
        None,
    ),
    "no list": ("o.json", '{"a": 3}', "'o.json', 'a.png': this is no list of options.", "Give a JSON list of texts."),
    "none for the picture": (
        "o.json",
        '{"z.png": ["I fly.", "I walk."]}',
        "The options file 'o.json' has none for 'a.png'.",
        "It names 'z.png'.",
    ),
    "no JSON": (
        "o.json",
        "I fly.",
        "The options file 'o.json' is not JSON: Expecting value: line 1 column 1 (char 0).",
        "Or give one option a line in a .txt file.",
    ),
    "number": (
        "o.json",
        "3",
        "The options file 'o.json' holds neither a list nor a map.",
        "Give a JSON list for all images, or a map from image name to list.",
    ),
}


@pytest.mark.parametrize(("name", "text", "sentence", "hint"), OPTIONS.values(), ids=OPTIONS)
def test_options_that_cannot_be_chosen_from(
    name: str, text: str, sentence: str, hint: str | None, askance: Command, picture: str
) -> None:
    Path(name).write_text(text, encoding="utf-8")
    way_out = hint or "Give at least two different options, one a line or as a JSON list."

    done = askance("run", "end-to-end", picture, "--options", name, "--vlm", "openai:gpt-4o")

    assert done == Done(2, "", said(sentence, way_out))


def test_five_hundred_options(askance: Command, endpoint: FakeEndpoint, vlm: str, picture: str) -> None:
    Path("o.txt").write_text("".join(f"I should do thing {place}.\n" for place in range(1, 501)), encoding="utf-8")

    done = askance("run", "action-reason", picture, "--options", "o.txt", "--vlm", vlm, "--json")

    assert (done.code, done.lines[0]["answers"]) == (0, [1, 2])
    assert "500. I should do thing 500." in json.dumps(endpoint.bodies[-1])


# --- pictures ---


def bomb() -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


PICTURES = {
    "text file": (b"hello", "The picture 'bad.jpg' holds no picture that is known here. Known are PNG, "),
    "zero bytes": (b"", "The picture 'bad.jpg' is empty."),
    "bomb": (bomb(), "The picture 'bad.jpg' has 60000×60000 pixels, more than 50 million."),
}


@pytest.mark.parametrize(("data", "sentence"), PICTURES.values(), ids=PICTURES)
def test_a_file_that_is_no_picture(
    data: bytes, sentence: str, askance: Command, endpoint: FakeEndpoint, vlm: str, picture: str
) -> None:
    Path("bad.jpg").write_bytes(data)

    done = askance("run", "verbalize", "bad.jpg", picture, "--context", "IN", "--vlm", vlm, "--json")

    assert (done.code, [line["outcome"] for line in done.lines]) == (1, ["skipped", "answered"])
    assert done.err.startswith(f"\nWithout an answer:\n  bad.jpg  {sentence}")
    assert "\nWhat to do:\n  → Mend the files that cannot be used, or leave them out.\n" in done.err
    assert [link_of(seen) for seen in endpoint.requests] == ["probe", "narration"]


# --- endpoints ---

ENDPOINTS = {
    "wrong key": (replies.WRONG_KEY, "{url} asks for a key.", "Name the environment variable that holds it as "),
    "unknown model": (replies.VLLM_UNKNOWN_MODEL, "{url} does not know the model 'gpt-9'.", "It serves 'fake-model'."),
}


@pytest.mark.parametrize(("reply", "sentence", "hint"), ENDPOINTS.values(), ids=ENDPOINTS)
def test_an_endpoint_that_will_never_answer_ends_the_run(
    reply: Answer, sentence: str, hint: str, askance: Command, ads: list[str]
) -> None:
    with FakeEndpoint(lambda seen: reply) as endpoint:
        done = askance("run", "verbalize", "ads", "--vlm", f"openai:gpt-9@{endpoint.url}", "--json")

    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"askance: {sentence.format(url=endpoint.url)}\n  → {hint}")
    assert len(endpoint.requests) <= 2


def test_a_wrong_key_names_its_variable(askance: Command, ads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-wrong-1234")
    monkeypatch.setenv("ASKANCE_TRUST", str(Path.cwd()))
    with FakeEndpoint(lambda seen: replies.WRONG_KEY) as endpoint:
        settings = f'[models.mine]\nspec = "openai:gpt-4o@{endpoint.url}"\nkey_variable = "MY_KEY"\n'
        Path("askance.toml").write_text(settings, encoding="utf-8")
        done = askance("run", "verbalize", "ads", "--vlm", "mine")

    assert done == Done(3, "", said(f"{endpoint.url} does not accept the key.", "Check the key in MY_KEY."))


def test_no_key(askance: Command, ads: list[str]) -> None:
    done = askance("run", "verbalize", "ads", "--vlm", "openai:gpt-4o")

    hint = f"Or use a server of your own, such as {LOCAL}."
    assert done == Done(3, "", said("There is no key for 'openai:gpt-4o': set OPENAI_API_KEY.", hint))


def test_a_server_that_is_down(askance: Command, ads: list[str]) -> None:
    with FakeEndpoint() as endpoint:
        url = endpoint.url
    done = askance("run", "verbalize", "ads", "--vlm", f"openai:m@{url}")

    sentence = f"{url} cannot be reached: Connection refused."
    assert done == Done(3, "", said(sentence, "Start the server, or check the address."))


def test_a_server_that_went_down_stops_at_the_first_image(askance: Command, ads: list[str]) -> None:
    with FakeEndpoint() as endpoint:
        url = endpoint.url
        askance("run", "verbalize", ads[0], "--vlm", f"openai:m@{url}", "--context", "IN")
    done = askance("run", "verbalize", *ads[1:], "--vlm", f"openai:m@{url}", "--context", "IN", "--json")

    sentence = f"{url} cannot be reached: Connection refused. Start the server, or check the address."
    stopped = "Stopped at the first image, since the others would fail alike."
    assert done == Done(3, "", said(sentence, stopped))


def test_a_model_that_takes_no_images(askance: Command, ads: list[str]) -> None:
    def blind(seen: Seen) -> Answer:
        return replies.VLLM_TEXT_MODEL if b"image_url" in seen.body else None

    with FakeEndpoint(blind) as endpoint:
        done = askance("run", "verbalize", "ads", "--vlm", f"openai:m@{endpoint.url}", "--json")

    sentence = "The model 'm' takes no images. Choose a vision-language model for --vlm."
    stopped = "Stopped at the first image, since the others would fail alike."
    assert done == Done(3, "", said(sentence, stopped))


LADDER = {
    "ignores the schema": ('{"word": "red"}', "json_object"),
    "ignores JSON altogether": ("It is red.", "prompted"),
    "refuses the schema": (replies.NO_SCHEMA, "prompted"),
}


@pytest.mark.parametrize(("reply", "rung"), LADDER.values(), ids=LADDER)
def test_a_server_that_ignores_the_schema_is_asked_in_another_form(
    reply: Answer, rung: str, askance: Command, picture: str
) -> None:
    def careless(seen: Seen) -> Answer:
        form = seen.json.get("response_format")
        if "`word`" in json.dumps(seen.json["messages"]):
            return reply if isinstance(reply, str) or form else "It is red."
        return '{"text": "A cup.", "objects": ["cup", "wall"], "description": "A cup."}'

    with FakeEndpoint(careless) as endpoint:
        command = ["run", "verbalize", picture, "--vlm", f"openai:m@{endpoint.url}", "--context", "IN", "--json"]
        done = askance(*command)
    replayed = askance(*command, "--replay")

    assert {link["rung"] for link in done.lines[0]["links"].values() if "rung" in link} == {rung}
    assert replayed.stable == done.stable


def test_a_prompt_beyond_the_context(askance: Command, ads: list[str]) -> None:
    def small(seen: Seen) -> Answer:
        return replies.VLLM_TOO_LONG if link_of(seen) == "combine" else None

    with FakeEndpoint(small) as endpoint:
        done = askance("run", "verbalize", ads[0], "--vlm", f"openai:m@{endpoint.url}", "--json")

    assert (done.code, done.lines[0]["links"]["description"]["error"]) == (1, "ContextExceeded")
    assert done.lines[0]["reason"] == (
        "The request is longer than the model 'm' can read: The decoder prompt (length 5000) is longer than the "
        "maximum model length of 512. Shorten the prompt or the options, lower the token limit, or serve the model "
        "with a longer context."
    )
    assert "\n  ads/a.png  description failed: The request is longer than the model 'm' can read: " in done.err


# --- prompts ---

PROMPTS = {
    "broken": ("name: narration", "line 1: "),
    "attributes": ("{{ scene_text.__class__ }}", "line "),
    "loop": ("{% for x in range(9) %}a{% endfor %}", "line "),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_a_broken_overlay_file_names_file_and_line(name: str, askance: Command, picture: str) -> None:
    askance("prompts", "eject", "combine")
    file = Path("prompts/combine.json.prompt")
    text = file.read_text(encoding="utf-8")
    file.write_text(PROMPTS[name][0] if name == "broken" else f"{text}\n{PROMPTS[name][0]}\n", encoding="utf-8")

    done = askance("run", "verbalize", picture, "--vlm", "openai:gpt-4o")
    checked = askance("prompts", "check")

    assert (done.code, checked.code) == (2, 1)
    assert done.err.startswith(f"askance: Prompt file '{file}' cannot be used: {PROMPTS[name][1]}")
    assert "\n  → Mend it (`askance prompts check` names all that is wrong in all files), or remove it" in done.err
    assert str(file) in checked.out


# --- records ---


def test_a_store_is_carried_over_to_another_version(
    askance: Command, vlm: str, picture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way out that the refusal names."""
    command = ["run", "verbalize", picture, "--vlm", vlm, "--json", "--store"]
    before = askance(*command, "old")
    exported = askance("cache", "export", "all.jsonl", "--store", "old")
    monkeypatch.setattr(database, "FORMAT", database.FORMAT + 1)
    refused = askance(*command, "old")
    imported = askance("cache", "import", "all.jsonl", "--store", "new")
    after = askance(*command, "new", "--replay")

    assert (before.code, exported.code, refused.code, imported.code, after.code) == (0, 0, 3, 0, 0)
    assert f"\n  → {database.MIGRATION_HINT}\n" in refused.err
    assert after.stable == before.stable


@pytest.fixture
def sealed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Makes a folder read-only, for the superuser too, who may write everywhere."""
    folders: list[Path] = []

    def never(path: Path) -> bool:
        return False

    def seal(folder: Path) -> None:
        for path in (*folder.iterdir(), folder):
            path.chmod(0o444 if path.is_file() else 0o555)
        folders.append(folder)
        monkeypatch.setattr("askance.replay.store.may_write", never)
        monkeypatch.setattr("askance.replay.reader.may_write", never)

    yield seal
    for folder in folders:
        folder.chmod(0o755)


def test_a_store_on_a_read_only_disk_is_replayed_and_new_answers_are_not_lost(
    sealed: Callable[[Path], None], askance: Command, vlm: str, ads: list[str]
) -> None:
    command = ["run", "verbalize", ads[0], "--vlm", vlm, "--context", "IN", "--json", "--store", "kept"]
    first = askance(*command)
    sealed(Path("kept"))

    assert askance(*command, "--replay").stable == first.stable
    fresh = askance("run", "verbalize", ads[1], "--vlm", vlm, "--context", "IN", "--json", "--store", "kept")
    assert (fresh.code, fresh.lines[0]["outcome"]) == (0, "answered")
    name = str(Path("kept").absolute())
    assert fresh.err.startswith(f"askance: Answers are not recorded: the store {name} is read-only. The run goes on.\n")


def test_a_broken_cassette_line_is_named(askance: Command, vlm: str, picture: str) -> None:
    askance("run", "verbalize", picture, "--vlm", vlm, "--context", "IN")
    askance("cache", "export", "calls.jsonl")
    with Path("calls.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"kind": \n')

    done = askance("cache", "import", "calls.jsonl", "--store", "other")

    sentence = "'calls.jsonl', line 3: it is no JSON (Expecting value, column 9)."
    assert done == Done(2, "", said(sentence, "Mend the line, or take it out."))
    assert not Path("other").exists()


def test_a_replay_of_what_is_not_on_record_says_what_differs(
    askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str]
) -> None:
    command = ["run", "verbalize", ads[0], "--vlm", vlm, "--context", "IN"]
    askance(*command)
    askance("prompts", "eject", "narration")
    file = Path("prompts/narration.json.prompt")
    file.write_text(file.read_text(encoding="utf-8") + "\nMind the colours.\n", encoding="utf-8")

    done = askance(*command, "--replay")

    assert done.code == 1
    assert "  ads/a.png  narration failed: No chat answer is on record for " in done.err
    assert "+++ asked" not in done.out
    assert "\nWhat differs, for ads/a.png:\n  --- recorded " in done.err
    assert "\n  +Mind the colours.\n" in done.err
    assert "\n  → Without `--replay` the same command asks for what is not on record.\n" in done.err


def test_a_replay_with_nothing_on_record(askance: Command, picture: str) -> None:
    done = askance("run", "verbalize", picture, "--vlm", "openai:gpt-4o", "--replay")

    assert done == Done(
        3,
        "",
        said(
            "What 'openai:gpt-4o' can do is not on record, and replay does not ask.",
            "Run `askance models check openai:gpt-4o` with the endpoint up, import the cassette that it belongs to, or "
            "name the form of asking (`protocol`).",
        ),
    )


def test_a_key_that_is_not_on_record(askance: Command) -> None:
    with open_records() as store:
        store.put(Record.make("chat", {"model": {"provider": "x", "model": "y"}}, {"text": "z"}))
        name = store.name
    done = askance("cache", "why", "ffff")

    assert (done.code, done.err.splitlines()[0]) == (
        2,
        f"askance: No record in {name!r} begins with 'ffff'.",
    )
    assert done.err.splitlines()[1].startswith("  → A request that a replay missed is not on record: ")


# --- words of every kind ---


def test_unicode_and_right_to_left(askance: Command, picture: str) -> None:
    names = ["גביע.png", "咖啡 ☕.png", "e\u0301te\u0301.png"]
    for name in names:
        Path(name).write_bytes(Path(picture).read_bytes())
    Path("o.json").write_text(json.dumps(["اشرب القهوة", "喝茶", "Flieg!"]), encoding="utf-8")
    said_of_it = "كوب قهوة ☕ \u202eevil\u202c"
    with FakeEndpoint(
        lambda seen: (
            json.dumps({"description": said_of_it, "text": said_of_it}) if link_of(seen) == "narration" else None
        )
    ) as endpoint:
        spec = f"openai:m@{endpoint.url}"
        lines = askance("run", "verbalize", *names, "--vlm", spec, "--context", "IN", "--json")
        plain = askance("run", "verbalize", *names, "--vlm", spec, "--context", "IN")
        chosen = askance("run", "end-to-end", names[0], "--options", "o.json", "--vlm", spec)

    assert [line["image"] for line in lines.lines] == names
    assert lines.lines[0]["verbalization"]["narration"] == said_of_it
    assert "\u202e" not in lines.out + plain.out
    assert "כגביע.png"[1:] in plain.out
    assert "كوب قهوة ☕ \\u202eevil\\u202c" in plain.out
    assert "1. اشرب القهوة" in chosen.out


def test_a_name_that_is_no_unicode(askance: Command, vlm: str, picture: str) -> None:
    name = b"caf\xe9.png".decode("utf-8", "surrogateescape")
    Path(name).write_bytes(Path(picture).read_bytes())

    command = ["run", "verbalize", name, "--vlm", vlm, "--context", "IN", "--out", "run"]
    first, again = askance(*command, "--json"), askance(*command, "--json")

    assert (first.code, first.lines[0]["image"]) == (0, name)
    assert again.lines == first.lines
    assert "caf\\udce9.png" in askance(*command).out
