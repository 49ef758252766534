"""What strangers write cannot steer a terminal: a model, a server, a prompt file, a cassette."""

from __future__ import annotations

import json
from pathlib import Path

from tests.security.commands import Project
from tests.servers import FakeEndpoint, Reply, Seen, chat_body, default_text, error

STEER = "\x1b]0;PWNED\x07\x1b[2J\x9b31m\u202eevil\u2066\u200b"
STEERING = ("\x1b]0;", "\x1b[2J", "\x07", "\x9b", "\u202e", "\u2066", "\u200b")


def steering(seen: Seen) -> Reply:
    text = default_text(seen.json)
    if '"quokka-17"' not in text:
        text = text.replace('"cup"', json.dumps(f"cup {STEER}")).replace("wall", "wall \\ud800 \\u2028 \\u0085")
    return Reply(body=chat_body(text, model=f"fake {STEER}"))


def test_no_stranger_steers_the_terminal(own_place: Path) -> None:
    with FakeEndpoint(steering) as endpoint:
        project = Project.make(own_place, endpoint.url)
        run, as_json, *more = project.on_terminal(
            "run action-reason ad.jpg --options options.json --out out",
            "run verbalize ad.jpg --json",
            "models check eye",
            "cache why --last",
            "cache stats",
        )
    for shown in (run, as_json, *more):
        assert [mark for mark in STEERING if mark in shown] == []
        assert "Traceback" not in shown
    assert r"\x1b]0;PWNED" in run
    assert r"\u001b]0;PWNED" in as_json
    samples = (own_place / "out" / "samples.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line)["outcome"] for line in samples.split("\n") if line] == ["answered"]


def test_no_complaint_steers_the_terminal(own_place: Path) -> None:
    with FakeEndpoint(lambda seen: error(400, f"Bad {STEER}")) as endpoint:
        (shown,) = Project.make(own_place, endpoint.url).on_terminal("run verbalize ad.jpg")

    assert [mark for mark in STEERING if mark in shown] == []
    assert "PWNED" in shown


def test_no_prompt_file_steers_the_terminal(own_place: Path) -> None:
    (own_place / "prompts").mkdir()
    project = Project.make(own_place, "http://127.0.0.1:9/v1")
    sound = f"---\nname: unusual\nsummary: {STEER!r}\n---\nuser:\nWhat {STEER}?"
    broken = f"---\n{STEER}: [\n---\nuser:\nx"
    for text, commands in ((sound, ("show unusual", "list", "render unusual")), (broken, ("check",))):
        (own_place / "prompts" / "unusual.json.prompt").write_text(text, encoding="utf-8")
        for shown in project.on_terminal(*(f"prompts {command}" for command in commands)):
            assert [mark for mark in STEERING if mark in shown] == []
            assert "Traceback" not in shown
