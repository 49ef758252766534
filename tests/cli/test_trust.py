"""Settings are a project's, and the project may be a stranger's: what obeys them asks the user first."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from askance.errors import ConfigError
from askance.models import get_model
from tests.cli.command import Command, Done, finish, start
from tests.cli.test_terminal import watch
from tests.servers import FakeEndpoint

SECRET = "wJalrXUtnFEMI-marker-4711"
RUN = ("run", "verbalize", "ads/a.png")

Owner = Callable[[Path], None]


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Owner:
    """Gives a path to another user; where that is not allowed, the caller becomes another one."""
    own = os.geteuid()

    def give(path: Path) -> None:
        if own == 0:
            os.chown(path, 12345, -1)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: own + 1)

    return give


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


def write(text: str) -> Path:
    file = Path("askance.toml").absolute()
    file.write_text(text, encoding="utf-8")
    return file


def sending(url: str, line: str = 'key_variable = "AWS_SECRET_ACCESS_KEY"') -> Path:
    return write(f'vlm = "eye"\n[models.eye]\nspec = "openai:fake-model@{url}"\n{line}\n')


def got(endpoint: FakeEndpoint) -> bool:
    """Whether the secret has arrived."""
    return any(SECRET in str(seen.headers) for seen in endpoint.requests + endpoint.others)


def digest_in(words: str) -> str:
    return words.partition("ASKANCE_TRUST=")[2][:64]


# ---- consent -----------------------------------------------------------------------------------------------------

KEYS = {
    "key": 'key_variable = "AWS_SECRET_ACCESS_KEY"',
    "header": 'headers = { "X-Team" = "env:AWS_SECRET_ACCESS_KEY" }',
    "azure": 'azure = { api_version = "2026-01-01" }',
}


@pytest.mark.parametrize("line", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("more", [[], ["--batch"]], ids=["calls", "batch"])
def test_a_key_is_sent_to_nobody_before_the_user_agrees(
    askance: Command,
    ads: list[str],
    endpoint: FakeEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    more: list[str],
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", SECRET)
    file = sending(endpoint.url, line)
    done = askance(*RUN, *more)

    assert (done.code, done.out, endpoint.requests, endpoint.others) == (2, "", [], [])
    for word in (str(file), "models.eye.", f"holds to {endpoint.url}", "`askance trust`"):
        assert word in done.err
    assert SECRET not in done.err


def test_a_key_is_sent_once_the_user_has_agreed_and_a_change_asks_again(
    askance: Command, ads: list[str], endpoint: FakeEndpoint
) -> None:
    sending(endpoint.url)
    shown = askance("trust")
    done = askance(*RUN)

    assert (shown.code, done.code, got(endpoint)) == (0, 0, True)
    assert f"send what AWS_SECRET_ACCESS_KEY holds to {endpoint.url} (models.eye.key_variable)" in shown.out
    sending(endpoint.url, 'key_variable = "AWS_SECRET_ACCESS_KEY"\ntemperature = 0.5')
    assert askance(*RUN).code == 0
    sending(endpoint.url.replace("127.0.0.1", "localhost"))
    assert askance(*RUN).code == 2


def test_what_was_agreed_to_is_the_users_alone_and_can_be_taken_back(
    askance: Command, ads: list[str], endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    file = sending(endpoint.url)
    askance("trust")
    kept = tmp_path / "config" / "askance" / "trusted.json"
    listed = askance("trust", "--list")

    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    assert str(file) in listed.out
    assert "AWS_SECRET_ACCESS_KEY" in listed.out
    assert SECRET not in kept.read_text(encoding="utf-8")
    for word in ("", listed.out[:7]):  # it would take back all, or any that begins so
        assert askance("trust", "--forget", word).code != 0
    assert askance("trust", "--forget", listed.out[:12]).out == "Forgotten: 1.\n"
    assert askance("trust", "--list").out == ""
    assert (askance(*RUN).code, endpoint.requests) == (2, [])
    again = askance("trust", "--forget", str(file))
    assert (again.code, "`askance trust --list`" in again.err) == (2, True)


def test_a_list_that_cannot_be_read_is_no_consent(askance: Command, ads: list[str], tmp_path: Path) -> None:
    sending("http://127.0.0.1:9/v1")
    kept = tmp_path / "config" / "askance" / "trusted.json"
    kept.parent.mkdir(parents=True)
    for text in ("[]", '{"trusted": [1]}', "\udcff", "{" * 100_000):
        kept.write_bytes(text.encode("utf-8", "surrogateescape"))
        done = askance(*RUN)
        assert done.code == 2
        assert f"{str(kept)!r}, cannot be read" in done.err


def test_a_relative_configuration_would_be_the_projects_own(
    askance: Command, ads: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", ".")
    sending("http://127.0.0.1:9/v1")
    askance("trust")

    assert not Path("askance").exists()
    assert (tmp_path / "home" / ".config" / "askance" / "trusted.json").exists()


@pytest.mark.parametrize("by", ["digest", "file", "folder", "other"])
def test_machines_agree_by_a_variable(
    askance: Command, ads: list[str], endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    file = sending(endpoint.url)
    named = {"digest": digest_in(askance(*RUN).err), "file": file, "folder": file.parent, "other": file.parent / "ads"}
    monkeypatch.setenv("ASKANCE_TRUST", f"/nowhere:{named[by]}")
    done = askance(*RUN)

    assert (done.code, got(endpoint)) == ((2, False) if by == "other" else (0, True))


def test_a_variable_that_names_neither_is_refused(
    askance: Command, ads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sending("http://127.0.0.1:9/v1")
    monkeypatch.setenv("ASKANCE_TRUST", ".")
    done = askance(*RUN)

    assert done.code == 2
    said = "askance: ASKANCE_TRUST names '.', which is neither a digest nor an absolute path."
    assert done.err.startswith(f"{said}\n  → ")


PROGRAMS = {
    "program": ('vllm = { python = "./evil" }', "run the program '{here}/evil'"),
    "code beside weights": ("vllm = { remote_code = true }", "run Python code that comes with the weights"),
    "pickles": ("vllm = { pickled = true }", "read pickle files"),
    "arguments": ('vllm = { engine = { worker_cls = "evil.Worker" } }', "arguments that may load code"),
}


@pytest.mark.parametrize(("line", "words"), PROGRAMS.values(), ids=PROGRAMS)
def test_no_program_of_a_project_runs_before_the_user_agrees(
    askance: Command, ads: list[str], line: str, words: str
) -> None:
    here = Path.cwd()
    evil = here / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {here}/ran\n", encoding="utf-8")
    evil.chmod(0o755)
    weights = {"config.json": b'{"model_type": "llama"}', "model.safetensors": b"\x02" + bytes(7) + b"{}"}
    for name, content in {**weights, "tokenizer.json": b"{}"}.items():
        (here / "weights").mkdir(exist_ok=True)
        (here / "weights" / name).write_bytes(content)
    write(f'vlm = "eye"\n[models.eye]\nspec = "vllm:{here}/weights"\nidentity = "w"\n{line}\n')
    done = askance(*RUN)

    assert (done.code, Path("ran").exists()) == (2, False)
    assert words.format(here=here) in done.err
    assert "`askance trust`" in done.err


def test_what_code_runs_for_a_model_in_this_process_is_asked_about(askance: Command, ads: list[str]) -> None:
    write('vlm = "eye"\n[models.eye]\nspec = "hf:weights"\nidentity = "w"\nlocal = { remote_code = true }\n')
    done = askance(*RUN)

    assert done.code == 2
    assert "'models.eye.local.remote_code' would run Python code" in done.err


def test_what_sends_nothing_is_not_bothered(askance: Command, ads: list[str], endpoint: FakeEndpoint) -> None:
    sending(endpoint.url)
    askance("trust")
    done = askance(*RUN, "--json")
    askance("trust", "--forget", ".")
    calls = len(endpoint.requests)

    assert (done.code, calls > 0) == (0, True)
    for more in (["--replay"], ["--plan"], []):
        assert askance(*RUN, "--json", *more).code == 0, more
    for command in (["models", "list"], ["cache", "stats"], ["prompts", "list"]):
        assert askance(*command).code == 0, command
    assert len(endpoint.requests) == calls


OWN = {
    "no key": ("openai:m@http://127.0.0.1:1/v1", ""),
    "OpenAI's": ("openai:m", 'key_variable = "OPENAI_API_KEY"'),
    "OpenAI's address": ("openai:m@https://api.openai.com/v1", 'key_variable = "OPENAI_API_KEY"'),
    "another provider's": ("openai:m@https://openrouter.ai/api/v1", 'key_variable = "OPENROUTER_API_KEY"'),
    "LangChain's": ("langchain:anthropic:m", 'key_variable = "ANTHROPIC_API_KEY"'),
    "Azure's": ("openai:m@https://me.openai.azure.com", 'azure = { api_version = "2026-01-01" }'),
    "plain headers": ("openai:m@http://127.0.0.1:1/v1", 'headers = { "X-Team" = "ads" }'),
}
STRANGE = {
    "another name": ("openai:m", 'key_variable = "MY_KEY"'),
    "another's host": ("openai:m@https://openrouter.ai.evil.example/v1", 'key_variable = "OPENROUTER_API_KEY"'),
    "the host's beginning": ("openai:m@https://evil-api.openai.com.example/v1", 'key_variable = "OPENAI_API_KEY"'),
    "another's key": ("openai:m@https://openrouter.ai/api/v1", 'key_variable = "OPENAI_API_KEY"'),
    "base_url": ("openai:m", 'key_variable = "OPENAI_API_KEY"\nbase_url = "https://evil.example/v1"'),
    "in the clear": ("openai:m@http://api.openai.com/v1", ""),
    "another port": ("openai:m@https://api.openai.com:8443/v1", 'key_variable = "OPENAI_API_KEY"'),
    "this machine": ("openai:m@http://localhost:1/v1", 'key_variable = "OPENAI_API_KEY"'),
    "LangChain's, another's key": ("langchain:anthropic:m", 'key_variable = "OPENAI_API_KEY"'),
    "LangChain's, elsewhere": (
        "langchain:openai:m",
        'key_variable = "OPENAI_API_KEY"\nbase_url = "https://evil.example/v1"',
    ),
    "Azure's elsewhere": ("openai:m@https://evil.example", 'azure = { api_version = "2026-01-01" }'),
}


@pytest.mark.parametrize(("spec", "line"), [*OWN.values(), *STRANGE.values()], ids=[*OWN, *STRANGE])
def test_keys_go_unasked_to_their_own_provider_alone(
    askance: Command, spec: str, line: str, request: pytest.FixtureRequest
) -> None:
    write(f'[models.eye]\nspec = "{spec}"\n{line}\n')
    done = askance("trust")

    assert done.code == 0
    assert ("need no consent" in done.out) is ((spec, line) in OWN.values())


def test_what_the_user_names_is_the_users_own_word(endpoint: FakeEndpoint, own_place: Path) -> None:
    """In Python; the settings file says nothing that counts."""
    sending(endpoint.url)
    settings = get_model(f"openai:fake-model@{endpoint.url}", key_variable="AWS_SECRET_ACCESS_KEY").settings
    both = get_model("eye", base_url="http://127.0.0.1:2/v1", key_variable="AWS_SECRET_ACCESS_KEY").settings
    host = get_model("eye", base_url="http://127.0.0.1:2/v1").settings
    key = get_model("eye", key_variable="OTHER").settings

    assert (settings.consent, both.consent) == (None, None)
    assert [each.consent is not None for each in (host, key)] == [True, True]


async def test_python_is_refused_as_a_command_is(endpoint: FakeEndpoint, own_place: Path) -> None:
    sending(endpoint.url)
    model = get_model("eye")
    with pytest.raises(ConfigError, match="`askance trust`"):
        await model.check()

    assert (endpoint.requests, endpoint.others) == ([], [])


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_terminal_is_asked_once(endpoint: FakeEndpoint, ads: list[str], answer: str) -> None:
    sending(endpoint.url)
    code, shown = on_terminal(answer, *RUN)

    assert shown.count("Agree, now and from now on? [y/N]") == 1
    assert f"send what AWS_SECRET_ACCESS_KEY holds to {endpoint.url} (models.eye.key_variable)" in shown
    assert (code, got(endpoint)) == ((0, True) if answer == "y" else (2, False))
    if answer == "y":
        assert "Agree" not in on_terminal("", *RUN, "--mode", "refresh")[1]


def test_a_terminal_is_not_asked_by_what_sends_nothing(ads: list[str]) -> None:
    sending("http://127.0.0.1:9/v1")
    assert "Agree" not in on_terminal("", *RUN, "--plan")[1]


def test_what_a_file_says_moves_no_cursor(askance: Command, ads: list[str]) -> None:
    headers = 'headers = { "X\\u001b[1A" = "env:A\\u202eB" }'
    write(f'[models."e\\u001b[2Jye"]\nspec = "openai:m@http://127.0.0.1:9/v1"\n{headers}\n')
    done = askance("trust")

    assert (done.code, "\x1b" in done.out, "\u202e" in done.out) == (0, False, False)
    assert "\x1b" not in askance("trust", "--list").out


def on_terminal(answer: str, *arguments: str) -> tuple[int, str]:
    """Exit code, and what the terminal showed, at which somebody types `answer` beforehand."""
    code, shown, _ = watch(*arguments, typed=f"{answer}\n", piped=True)
    return code, " ".join(shown.split())


# ---- Python that a run names ---------------------------------------------------------------------------------------

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "files" / "run"

TASK = """\
from pathlib import Path
from askance.evals import Sample, Task, right_or_wrong

class Posters(Task):
    name = "own/posters"

    def samples(self):
        return [Sample(id="a", target=True)]

    def solver(self):
        return lambda sample: True

    def scorer(self):
        return right_or_wrong()

Path("was-run").touch()
"""

READING = (
    "watch out --once",
    "eval score out",
    "blame out --plan",
    "compare out out",
    "judge prefer out --against references --judge demo --plan",
)


@pytest.fixture
def stray(own_place: Path) -> Path:
    """Python beside the folder of a run that names it."""
    shutil.copytree(GOLDEN, own_place / "out")
    run = own_place / "out" / "run.json"
    form = json.loads(run.read_text(encoding="utf-8"))
    form["origin"] = {"task": "posters.py@own/posters"}
    form["configuration"]["task"] = "own/posters"
    run.write_text(json.dumps(form), encoding="utf-8")
    file = own_place / "posters.py"
    file.write_text(TASK, encoding="utf-8")
    return file


def was_run() -> bool:
    return Path("was-run").exists()


@pytest.mark.parametrize("command", READING)
def test_python_that_only_a_run_names_is_not_run(askance: Command, stray: Path, command: str) -> None:
    done = askance(*command.split())

    assert not was_run()
    if "watch" in command:
        assert done.code == 0
        assert f"No score: The run 'out' would run the Python file {str(stray)!r}, and nobody has agreed" in done.out
    elif "compare" not in command:
        assert done.code == 2
        assert f"The run 'out' would run the Python file {str(stray)!r}, and nobody has agreed to that." in done.err
        assert "`askance trust posters.py` agrees" in done.err


def test_python_of_a_run_is_run_once_the_user_has_agreed_and_a_change_asks_again(askance: Command, stray: Path) -> None:
    shown = askance("trust", "posters.py")
    done = askance("watch", "out", "--once")

    assert (shown.code, was_run(), "No score" in done.out) == (0, True, False)
    assert f"digest {hashlib.sha256(stray.read_bytes()).hexdigest()}" in shown.out
    Path("was-run").unlink()
    stray.write_text(f"{TASK}# changed\n", encoding="utf-8")
    assert finish(start("eval", "score", "out")).code == 2
    assert not was_run()
    askance("trust", "posters.py")
    assert len(askance("trust", "--list").out.splitlines()) == 2, "the last content alone is agreed to"
    assert askance("trust", "--forget", str(stray)).out == "Forgotten: 1.\n"


def test_python_that_the_user_names_is_not_asked_about(askance: Command, stray: Path) -> None:
    askance("watch", "out", "--once", "--task", "posters.py")

    assert was_run()
    assert askance("trust", "--list").out == ""


def test_a_task_that_the_user_has_run_may_be_named_by_its_run(askance: Command, stray: Path) -> None:
    ran = askance("eval", "run", "posters.py", "--out", "runs/a")
    assert ran.code == 0, ran.err
    assert finish(start("eval", "score", "runs/a")).code == 0

    stray.write_text(f"{TASK}# changed\n", encoding="utf-8")
    assert "nobody has agreed" in finish(start("eval", "score", "runs/a")).err


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_terminal_is_asked_about_python_once(stray: Path, answer: str) -> None:
    _, shown = on_terminal(answer, "watch", "out", "--once")

    assert f"The run 'out' would run the Python file {str(stray)!r} Agree, now and from now on? [y/N]" in shown
    assert was_run() is (answer == "y")


# ---- owners ------------------------------------------------------------------------------------------------------


def refused(done: Done, path: Path, code: int) -> bool:
    line = done.err.splitlines()[0]
    return (
        done.code == code and str(path) in line and "belongs to another user" in line and "ASKANCE_TRUST=" in done.err
    )


@pytest.mark.parametrize("name", ["askance.toml", "pyproject.toml"])
def test_settings_of_another_user_are_not_used(
    askance: Command, ads: list[str], endpoint: FakeEndpoint, stranger: Owner, name: str
) -> None:
    """Here or in a folder above."""
    table = "tool.askance." if name == "pyproject.toml" else ""
    file = Path(name).absolute()
    file.write_text(f'[{table}models.eye]\nspec = "openai:fake-model@{endpoint.url}"\n', encoding="utf-8")
    stranger(file)
    os.chdir("ads")
    done = askance("run", "verbalize", "a.png", "--vlm", "eye")

    assert refused(done, file, 2)
    assert endpoint.requests == []


def test_settings_of_another_user_that_are_trusted_are_used(
    askance: Command, ads: list[str], endpoint: FakeEndpoint, stranger: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a machine holds what another user has checked out."""
    file = sending(endpoint.url)
    stranger(file)
    monkeypatch.setenv("ASKANCE_TRUST", str(file.parent))

    assert (askance(*RUN).code, got(endpoint)) == (0, True)


def test_a_link_of_another_user_is_not_followed(
    askance: Command, own_place: Path, tmp_path: Path, stranger: Owner
) -> None:
    (tmp_path / "mine.toml").write_text('vlm = "openai:m"\n', encoding="utf-8")
    link = own_place / "askance.toml"
    link.symlink_to(tmp_path / "mine.toml")
    if os.geteuid() == 0:
        os.chown(link, 12345, -1, follow_symlinks=False)
    else:
        stranger(link)

    assert refused(askance("models", "list"), link, 2)


def test_a_project_of_another_user_without_settings_is_nobodys(
    askance: Command, own_place: Path, stranger: Owner
) -> None:
    file = own_place / "pyproject.toml"
    file.write_text('[project]\nname = "x"\n', encoding="utf-8")
    stranger(file)

    assert askance("models", "list").code == 0


def test_a_prompts_folder_of_another_user_is_not_used(askance: Command, own_place: Path, stranger: Owner) -> None:
    if os.geteuid() != 0:
        pytest.skip("the settings file beside it would be another user's, too")
    words = own_place / "words"
    words.mkdir()
    write('prompts = "words"\n')
    assert askance("prompts", "list").code == 0
    stranger(words)

    assert refused(askance("prompts", "list"), words, 2)


def test_a_store_of_another_user_is_not_used(
    askance: Command, own_place: Path, stranger: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = own_place / ".askance"
    store.mkdir()
    stranger(store)
    monkeypatch.delenv("ASKANCE_STORE")
    done = askance("cache", "stats")
    named = askance("cache", "stats", "--store", ".askance")

    assert refused(done, store, 3)
    assert named.code == 0


def test_a_store_that_everybody_may_write_is_warned_of_once(
    askance: Command, ads: list[str], vlm: str, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    store.chmod(0o777)
    done = [askance(*RUN, "--vlm", vlm) for _ in range(2)]

    assert [each.code for each in done] == [0, 0]
    assert [each.err.count(f"Everybody on this machine may change {store}.") for each in done] == [1, 0]
    assert json.loads(askance(*RUN, "--vlm", vlm, "--json").out)["outcome"] == "answered"
