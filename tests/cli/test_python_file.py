"""A backend by its file: it is asked; what cannot be loaded says why; and only the user's own word runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from askance.errors import ConfigError, UsageError
from askance.python_file import is_python, load_file, load_object
from askance.workspace import Workspace
from tests.cli.command import Command, draw

BACKEND = """\
from askance.chat import ChatResponse


class Parrot:
    id = "parrot"

    async def generate(self, request):
        return ChatResponse(text='{"description": "Polly sees a picture."}')


class Picky:
    def __init__(self, key):
        self.key = key

ready = Parrot()
"""


@pytest.fixture
def file(own_place: Path) -> Path:
    path = own_place / "mine.py"
    path.write_text(BACKEND, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["Parrot", "ready"])
def test_a_backend_is_asked_by_its_file_and_its_answers_are_recorded(name: str, file: Path, askance: Command) -> None:
    draw(file.parent, "a.png")
    run = ("run", "verbalize", "a.png", "--context", "IN", "--vlm", f"mine.py:{name}")

    done = askance(*run, "--json")
    again = askance(*run, "--json", "--replay")

    assert done.code == again.code == 0, done.err
    assert done.lines[0]["verbalization"]["narration"] == "Polly sees a picture."
    assert again.lines[0]["verbalization"] == done.lines[0]["verbalization"]
    assert again.lines[0]["meta"]["replayed"] == 1


WRONG = {
    "mine.py:Other": "The file 'mine.py' has no 'Other'.",
    "mine.py:Picky": "'mine.py:Picky' cannot be made: TypeError: ",
    "mine.py": "'mine.py' names nothing in a Python file.",
    "none.py:Parrot": "There is no file 'none.py'.",
    "broken.py:Parrot": "The file 'broken.py' cannot be loaded: ZeroDivisionError: division by zero.",
}


@pytest.mark.parametrize("place", WRONG)
def test_what_cannot_be_loaded_says_why(place: str, file: Path) -> None:
    file.with_name("broken.py").write_text("1 / 0\n", encoding="utf-8")

    with pytest.raises(UsageError) as caught:
        load_object(place)

    assert str(caught.value).startswith(WRONG[place])


@pytest.mark.parametrize("fault", ["1 / 0", "from askance.errors import UsageError; raise UsageError('No.')"])
def test_a_file_that_cannot_be_loaded_leaves_no_half_module(fault: str, file: Path) -> None:
    broken, before = file.with_name("broken.py"), {*sys.modules}
    broken.write_text(f"{fault}\n", encoding="utf-8")

    with pytest.raises(UsageError, match=r"^(No\.|The file .*broken\.py' cannot be loaded: ZeroDivisionError)"):
        load_file(broken)

    assert not [name for name in {*sys.modules} - before if name.startswith("askance_file_")]


def test_an_object_that_is_no_backend_is_refused(file: Path) -> None:
    file.write_text("thing = 3\n", encoding="utf-8")

    with Workspace() as work, pytest.raises(UsageError, match="A int is no model"):
        work.model("mine.py:thing")


@pytest.mark.parametrize("place", ["openai:gpt-4o", "hf:folder.py", "mine.py", "mine.py:", "x.py:a b", "demo"])
def test_other_names_are_no_python(place: str) -> None:
    assert not is_python(place)


@pytest.mark.parametrize("role", ["vlm", "llm"])
def test_a_settings_file_runs_no_python(role: str, file: Path) -> None:
    file.write_text("raise SystemExit('it was run')\n", encoding="utf-8")
    file.with_name("askance.toml").write_text(f'{role} = "mine.py:Parrot"\n', encoding="utf-8")

    with Workspace() as work, pytest.raises(ConfigError, match="names Python"):
        work.default_model("vlm")


def test_a_run_folder_runs_no_python(file: Path) -> None:
    file.write_text("raise SystemExit('it was run')\n", encoding="utf-8")

    with Workspace() as work:
        assert work.described_model({"id": {"provider": "mine.py", "model": "Parrot", "name": None}}) is None
