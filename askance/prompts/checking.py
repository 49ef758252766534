"""Checks over all prompt files at once: what no single file can tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from askance.errors import PromptError
from askance.prompts.files import SUFFIX, FileName
from askance.prompts.frontmatter import line_of
from askance.prompts.problems import Problem
from askance.prompts.reading import LIBRARY, packaged_files, packaged_prompt, read_prompt, untrusted_inputs

if TYPE_CHECKING:
    from askance.prompts.prompt import Prompt


_NAMES = "NAME.prompt, NAME.FORM.prompt or NAME.FORM.FAMILY.prompt"


def check_folders(overlays: Sequence[Path]) -> list[Problem]:
    """Everything that is wrong with any file of the package and of `overlays`, sorted by file and line."""
    folders = [(folder, True) for folder in overlays] + [(LIBRARY, False)]
    found: list[Problem] = []
    for folder, overlay in folders:
        for path in sorted(folder.iterdir()):
            found.extend(_check(path, overlay=overlay))
    return sorted(found)


def _check(path: Path, *, overlay: bool) -> Iterator[Problem]:
    if not path.name.endswith(SUFFIX):
        if f"{SUFFIX}." in path.name:
            yield Problem(path, 1, f"this is not read: the name does not end in `{SUFFIX}`.", "note")
        return
    name = FileName.parse(path.name)
    if name is None or (name.form is None and not overlay):
        yield Problem(path, 1, f"the name of a prompt file is {_NAMES}, FORM json or text.")
        return
    prompt, problems = read_prompt(path, overlay=overlay, untrusted=untrusted_inputs(name.name) if overlay else ())
    yield from problems
    if overlay:
        yield from _stranger(path, name)
    if prompt is not None and not problems:
        yield from _other_inputs(prompt)
        yield from _example(prompt)


def _stranger(path: Path, name: FileName) -> Iterator[Problem]:
    """A user's file that no prompt of the package goes by: misspelt, or new."""
    known = {file.split(".")[0] for file in packaged_files()}
    if name.name in known:
        return
    near = get_close_matches(name.name, known, n=1, cutoff=0.7)
    if near:
        yield Problem(
            path, 1, f"the package has no prompt {name.name!r}, so this overrides nothing; nearest is {near[0]!r}."
        )
    else:
        yield Problem(path, 1, f"the package has no prompt {name.name!r}: this is a prompt of your own.", "note")


def _other_inputs(prompt: Prompt) -> Iterator[Problem]:
    """Inputs that differ from those of the package's prompt of that name: whoever renders it gives it the package's."""
    base = _base(prompt)
    if base is None:
        return
    line = line_of(prompt.front_matter, ["inputs"])
    for name, entry in base.declared.items():
        own = prompt.declared.get(name)
        if own is None:
            message = f"`{name}` is not declared, and {base.path.name} has it; where it is not used, make it optional."
            yield Problem(prompt.path, line, message)
        elif own.kind != entry.kind:
            where = line_of(prompt.front_matter, ["inputs", name])
            yield Problem(
                prompt.path, where, f"`{name}` is declared as {own.kind}, and {base.path.name} has it as {entry.kind}."
            )
        elif entry.optional and not own.optional:
            where = line_of(prompt.front_matter, ["inputs", name])
            yield Problem(prompt.path, where, f"`{name}` must be given, and {base.path.name} has it as optional.")
    for name in prompt.inputs:
        if name not in base.declared:
            where = line_of(prompt.front_matter, ["inputs", name])
            yield Problem(prompt.path, where, f"`{name}` must be given, and {base.path.name} has no such input.")


def _base(prompt: Prompt) -> Prompt | None:
    """The package's prompt that the inputs of `prompt` are measured by."""
    for form in ("json", "text"):
        file = f"{prompt.name}.{form}{SUFFIX}"
        if file in packaged_files() and LIBRARY / file != prompt.path:
            return packaged_prompt(LIBRARY / file)
    return None


def _example(prompt: Prompt) -> Iterator[Problem]:
    """Whether the prompt renders with its own examples, and with the least that it must be given."""
    examples = prompt.examples
    if any(name not in examples for name in prompt.inputs):
        return
    for values in (examples, {name: examples[name] for name in prompt.inputs}):
        try:
            prompt.render(**values)
        except PromptError as error:
            yield Problem(prompt.path, line_of(prompt.front_matter, ["inputs"]), f"with its examples: {error.message}")
            return
