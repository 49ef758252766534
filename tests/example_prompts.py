"""The package's prompts with another block `example:`, or with none, as a user's own files."""

from __future__ import annotations

from pathlib import Path

from askance.prompts import Form, PromptLibrary
from askance.prompts.prompt_file import without_example

ANSWERS: dict[Form, str] = {"json": '{"answers": [{{ answer }}]}', "text": "Answer: {{ answer }}"}
"""The answer of a chooser, as it is to be written in each form."""


def with_example(
    folder: Path,
    *names: str,
    answers: dict[Form, str] = ANSWERS,
    declared: str = "{description: x., type: number, example: 1}",
) -> PromptLibrary:
    """A library over `folder`, where the prompts `names` show examples by an input `answer`."""
    for name in names:
        for form, answer in answers.items():
            head, body = without_examples(folder, name, form).read_text("utf-8").split("\n---\n", 1)
            path = folder / f"{name}.{form}.prompt"
            inputs = (
                f"{head}\n  answer: {declared}" if "\ninputs:" in head else f"{head}\ninputs:\n  answer: {declared}"
            )
            path.write_text(f"{inputs}\n---\n{body}\n\nexample:\n{answer}\n", "utf-8")
    return PromptLibrary([folder])


def without_examples(folder: Path, name: str, form: Form) -> Path:
    """The file of a packaged prompt in `folder`, as it is without its block `example:`."""
    prompt = PromptLibrary([]).find(name, form=form)
    path = PromptLibrary([]).eject(name, form=form, to=folder)
    if prompt.example is not None:
        path.write_text(without_example(path.read_text("utf-8"), prompt.example_inputs), "utf-8")
    return path
