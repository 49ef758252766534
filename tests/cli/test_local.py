"""`--local`: the model of this machine for roles that are given no other, in the commands that ask language models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from askance.models.local.folder import find_folder, identity_of
from askance.models.settings import Local
from tests.cli.command import Command
from tests.evals.whoops import files
from tests.models.local.conftest import safetensors
from tests.servers import FakeEndpoint

TRUE = "I should fly because it is fast"
LABELS = "reference,candidate,verdict\nIt snows.,There is snow.,true\nIt snows.,It rains.,false\n"

COMMANDS = {
    "negatives": (["negatives", "generate", "true.json", "--kinds", "action", "--out", "made"], ["--llm"]),
    "audit": (["negatives", "audit", "options.json", "--no-wording"], ["--judge", "--blind"]),
    "judge": (["judge", "card", "--labels", "labels.csv", "--draws", "1"], ["--judge"]),
    "questions": (["data", "make-questions", "whoops", "weird", "--out", "made"], ["--llm"]),
}
"""Each command, and the options that name its models."""


@pytest.fixture
def here(own_place: Path) -> str:
    """A folder with a model, which `--local` stands for, and files for every command; who the model is."""
    files.write_table(own_place / "weird" / "whoops_dataset.csv", [{"image_id": "w", "crowd_captions": '["A dog."]'}])
    files.pictures(own_place / "weird" / "whoops_images")
    (own_place / "true.json").write_text(json.dumps({"1.jpg": [TRUE]}), encoding="utf-8")
    (own_place / "options.json").write_text(json.dumps({"1.jpg": [[TRUE], ["I should walk", TRUE]]}), encoding="utf-8")
    (own_place / "labels.csv").write_text(LABELS, encoding="utf-8")
    (own_place / "askance.toml").write_text('local = "weights"\n', encoding="utf-8")
    folder = own_place / "weights"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "dtype": "bfloat16"}), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(safetensors(b"1234"))
    return identity_of(find_folder(str(folder), Local()), Local())


@pytest.fixture
def served(endpoint: FakeEndpoint, here: str) -> str:
    """The name of an endpoint's model that is known as the one in the folder, so that both have the same records."""
    with Path("askance.toml").open("a", encoding="utf-8") as file:
        file.write(f'[models.served]\nspec = "openai:fake-model@{endpoint.url}"\nidentity = "{here}"\n')
    return "served"


@pytest.mark.parametrize(("command", "roles"), COMMANDS.values(), ids=COMMANDS)
def test_roles_that_are_given_no_model_have_the_one_of_this_machine(
    askance: Command, served: str, command: list[str], roles: list[str]
) -> None:
    named = askance(*command, *(word for role in roles for word in (role, served)))
    shutil.rmtree("made", ignore_errors=True)

    done = askance(*command, "--local", "--replay")

    assert "1 more to see what the endpoint can do" in named.err
    assert "\n0 calls made" in f"\n{done.err}"
    assert (done.code, done.out) == (named.code, named.out)


NAMED = {
    **{name: [word for role in roles for word in (role, "served")] for name, (_, roles) in COMMANDS.items()},
    "questions": [word for role in ("--llm", "--reader", "--blind", "--judge") for word in (role, "served")],
}
"""What names a model for every role."""


@pytest.mark.parametrize("name", ["negatives", "audit", "questions"])
def test_a_model_that_nobody_needs_is_not_looked_for(askance: Command, served: str, name: str) -> None:
    shutil.rmtree("weights")
    command = COMMANDS[name][0]

    needed, spared = askance(*command, "--local"), askance(*command, *NAMED[name], "--local")

    assert served in NAMED[name]
    assert (needed.code, needed.err.startswith("askance: There is no model 'hf:")) == (2, True)
    assert "1 more to see what the endpoint can do" in spared.err


def test_what_is_drawn_needs_no_model(askance: Command, here: str) -> None:
    shutil.rmtree("weights")
    command = ["negatives", "generate", "true.json", "--out", "made"]

    done = askance(*command, "--domain", "explanations", "--kinds", "random", "--local")

    assert here.startswith("hf:llama:")
    assert done.err.startswith("1 of 1 calls: ")


def test_a_model_that_is_named_writes_and_the_one_of_this_machine_does_the_rest(askance: Command, here: str) -> None:
    done = askance(*COMMANDS["questions"][0], "--llm", "openai:gpt-4o", "--local", "--plan", "--json")

    (plan,) = done.lines
    assert {link: told["model"] for link, told in plan["links"].items()} == {
        "finder": "openai:gpt-4o",
        "writer": "openai:gpt-4o",
        "reader": here,
        "blind": here,
        "judge": here,
    }


@pytest.mark.parametrize("name", ["negatives", "judge", "questions"])
def test_who_names_no_model_is_told_of_this_machine(askance: Command, here: str, name: str) -> None:
    done = askance(*COMMANDS[name][0])

    assert here.startswith("hf:llama:")
    assert (done.code, "→ On this machine: --local." in done.err) == (2, True)


JUDGES: dict[str, tuple[list[str], str]] = {
    "nobody": ([], "askance: No judge is named."),
    "both": (
        ["--judge", "openai:gpt-4o", "--local"],
        "askance: `--local` stands for the judge where none is named, and --judge names one.",
    ),
}


@pytest.mark.parametrize(("named", "message"), JUDGES.values(), ids=JUDGES)
def test_a_card_is_of_somebody(askance: Command, here: str, named: list[str], message: str) -> None:
    done = askance("judge", "card", "--labels", "labels.csv", *named)

    assert (here[:3], done.code, done.err.splitlines()[0]) == ("hf:", 2, message)
