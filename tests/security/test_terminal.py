"""What strangers write cannot steer a terminal: a model, a server, a prompt file, a cassette."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any, cast

import pytest

from askance.cli import main
from tests.cli.command import log_kept
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


GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "files"
OF_A_RUN = (
    "watch out --once",
    "watch out --once --json",
    "report out --out page.html",
    "report out --out page.html --json",
    "compare out sound",
    "compare sound out --json",
    "blame out --plan",
    "blame out --plan --json",
    "blame out --replay",
    "eval score out",
    "eval table out sound",
    "eval table out --format csv",
    "export out --out rows.csv",
    "pack out --out runs.pack",
    "judge prefer out --against sound --judge demo --plan",
    "newyorker submit out --out sent.json",
    "newyorker errors out",
    "eval run posters.yaml --out out --plan",
)
"""Every command that reads the folder of a run."""


def places(form: Any, *before: str | int) -> Iterator[tuple[str | int, ...]]:
    """The way to every text in a JSON form."""
    if isinstance(form, str):
        yield before
    elif isinstance(form, dict):
        for name, value in cast("dict[str, Any]", form).items():
            yield from places(value, *before, name)
    elif isinstance(form, list):
        for number, value in enumerate(cast("list[Any]", form)):
            yield from places(value, *before, number)


def names(form: Any, *before: str | int) -> Iterator[tuple[str | int, ...]]:
    """The way to every name of a map in a JSON form."""
    if isinstance(form, dict):
        for name, value in cast("dict[str, Any]", form).items():
            yield (*before, name)
            yield from names(value, *before, name)
    elif isinstance(form, list):
        for number, value in enumerate(cast("list[Any]", form)):
            yield from names(value, *before, number)


def steered(form: Any, place: tuple[str | int, ...]) -> None:
    *way, last = place
    inner = reduce(lambda there, name: there[name], way, form)
    inner[last] += STEER


RUN = (GOLDEN / "run" / "run.json").read_text(encoding="utf-8")
FIELDS = sorted({str(place[0]) for place in places(json.loads(RUN))})


@pytest.mark.parametrize("field", FIELDS)
def test_no_run_folder_steers_the_terminal(field: str, own_place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("out", "sound"):
        shutil.copytree(GOLDEN / "run", own_place / name)
    for place in (place for place in places(json.loads(RUN)) if place[0] == field):
        form = json.loads(RUN)
        steered(form, place)
        (own_place / "out" / "run.json").write_text(json.dumps(form), encoding="utf-8")
        for command in OF_A_RUN:
            with log_kept(), pytest.raises(SystemExit):
                main([*command.split()])
            shown = "".join(capsys.readouterr())
            assert [mark for mark in STEERING if mark in shown] == [], (place, command)


def test_no_name_in_a_run_folder_steers_the_terminal(own_place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("out", "sound"):
        shutil.copytree(GOLDEN / "run", own_place / name)
    for *way, last in names(json.loads(RUN)):
        form = json.loads(RUN)
        holder = reduce(lambda there, name: there[name], way, form)
        holder[f"{last}{STEER}"] = holder.pop(last)
        (own_place / "out" / "run.json").write_text(json.dumps(form), encoding="utf-8")
        for command in ("watch out --once", "compare out sound", "blame out --plan", "eval score out"):
            with log_kept(), pytest.raises(SystemExit):
                main([*command.split()])
            shown = "".join(capsys.readouterr())
            assert [mark for mark in STEERING if mark in shown] == [], (way, last, command)


def test_no_traceback_steers_the_terminal(own_place: Path) -> None:
    code = (
        "import importlib\n"
        "line = importlib.import_module('askance.cli.main')\n"
        f"def fail(*_): raise KeyError({STEER!r}) from ValueError({STEER!r})\n"
        "line._run_command = fail\n"
        "line.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=own_place, check=False)
    shown = done.stderr.decode()

    assert done.returncode == 1
    assert "ValueError" in shown
    assert "PWNED" in shown
    assert [mark for mark in STEERING if mark in shown] == []


@pytest.mark.parametrize("file", ["samples.jsonl", "scores.jsonl", "calls.jsonl"])
def test_no_line_of_a_run_steers_the_terminal(file: str, own_place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("out", "sound"):
        shutil.copytree(GOLDEN / "run", own_place / name)
    first, *rest = (own_place / "sound" / file).read_text(encoding="utf-8").splitlines()
    for place in places(json.loads(first)):
        form = json.loads(first)
        steered(form, place)
        (own_place / "out" / file).write_text("\n".join([json.dumps(form), *rest, ""]), encoding="utf-8")
        for command in OF_A_RUN:
            with log_kept(), pytest.raises(SystemExit):
                main([*command.split()])
            shown = "".join(capsys.readouterr())
            assert [mark for mark in STEERING if mark in shown] == [], (place, command)


def test_no_folder_of_a_new_project_steers_the_terminal(own_place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["init", f"new{STEER}"], ["init", "new", f"--{STEER}"], [f"in{STEER}it"]):
        with log_kept(), pytest.raises(SystemExit):
            main(arguments)
        shown = "".join(capsys.readouterr())
        assert "PWNED" in shown
        assert [mark for mark in STEERING if mark in shown] == []


def test_no_warning_steers_the_terminal(
    own_place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings of a stranger name the store; the log warns of it, in a command that asks no model as well."""
    store = own_place / f"store{STEER}"
    store.mkdir()
    store.chmod(0o777)
    (own_place / "askance.toml").write_text(f"store = {json.dumps(store.name)}", encoding="utf-8")
    monkeypatch.delenv("ASKANCE_STORE")
    with log_kept(), pytest.raises(SystemExit):
        main(["cache", "stats"])
    shown = "".join(capsys.readouterr())

    assert "askance: Everybody on this machine may change" in shown
    assert [mark for mark in STEERING if mark in shown] == []
