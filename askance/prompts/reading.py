"""From a file to a prompt, or to everything that is wrong with the file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Final

from askance.errors import PromptError
from askance.prompts.files import SUFFIX, FileName, PromptFile, read_text, take_apart
from askance.prompts.frontmatter import FrontMatter, Input, line_of, read_front_matter
from askance.prompts.problems import Problem, broken
from askance.prompts.prompt import Prompt
from askance.prompts.templates import Template

LIBRARY: Final = Path(__file__).with_name("library")
"""The package's own prompt files."""


def prompt_files(folder: Path) -> list[str]:
    """Names of the prompt files in `folder`, sorted."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(SUFFIX))
    except OSError as error:
        raise PromptError(
            f"The folder {str(folder)!r} cannot be read: {error.strerror}.", hint="Name another."
        ) from None


@cache
def packaged_files() -> frozenset[str]:
    """Names of the package's own prompt files."""
    return frozenset(prompt_files(LIBRARY))


def untrusted_inputs(name: str) -> frozenset[str]:
    """Inputs of the package's prompt `name` that may carry text from an image."""
    files = [file for file in packaged_files() if file.startswith(f"{name}.")]
    prompts = [packaged_prompt(LIBRARY / file) for file in files]
    return frozenset(entry.name for prompt in prompts for entry in prompt.declared.values() if entry.untrusted)


@cache
def packaged_prompt(path: Path) -> Prompt:
    """The prompt in a file of the package, read once."""
    prompt, problems = read_prompt(path, overlay=False, validate=False)
    if prompt is None or problems:
        raise broken(path, problems, overlay=False)
    return prompt


@dataclass(frozen=True, slots=True)
class Edition:
    """A user's file as it stands now."""

    path: Path
    stamp: tuple[int, ...]
    """Times, size and place on the disk: another when the file was changed."""
    untrusted: frozenset[str]
    """Inputs that are untrusted wherever the file does not say otherwise."""

    @classmethod
    def of(cls, path: Path) -> Edition:
        """The edition of `path`.

        Raises:
            PromptError: the file cannot be looked at.
        """
        try:
            stat = path.stat()
        except OSError as error:
            problem = Problem(path, 1, f"the file cannot be read: {error.strerror}.")
            raise broken(path, [problem], overlay=True) from None
        stamp = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
        return cls(path, stamp, untrusted_inputs(path.name.split(".")[0]))


@lru_cache(maxsize=256)
def overlay_prompt(edition: Edition) -> Prompt:
    """The prompt in a user's file, read again when the file has changed."""
    prompt, problems = read_prompt(edition.path, overlay=True, untrusted=edition.untrusted)
    if prompt is None or problems:
        raise broken(edition.path, problems, overlay=True)
    return prompt


def read_prompt(
    path: Path,
    *,
    overlay: bool,
    validate: bool = True,
    untrusted: Collection[str] = (),
) -> tuple[Prompt | None, list[Problem]]:
    """The prompt in `path`, and everything that is wrong with the file.

    Args:
        path: A file whose name is one of a prompt file.
        overlay: Whether it is a user's.
        validate: Check the front matter against its schema and compile the templates now.
        untrusted: Inputs that are untrusted wherever the file does not say otherwise.
    """
    text, problems = read_text(path)
    if problems:
        return None, problems
    file, problems = take_apart(text, path=path)
    if file is None:
        return None, problems
    head, found = read_front_matter(file.front_matter, path=path, validate=validate)
    problems += found
    if head is None:
        return None, problems
    head = replace(head, inputs=_inherit(head.inputs, untrusted))
    templates = tuple(Template(block, path=path, inputs=head.inputs) for block in file.blocks)
    problems += [problem for template in templates for problem in template.problems]
    problems += _misnamed(head, file, path=path)
    if not problems:
        problems += _idle(head, file, path=path, templates=templates)
    if validate and not problems:
        problems += [problem for template in templates for problem in template.compile()]
    named = FileName.parse(path.name) or FileName(head.name)
    prompt = Prompt(
        name=head.name,
        form=named.form,
        family=named.family,
        summary=head.summary,
        output=head.output,
        images=head.images,
        source=head.source,
        path=path,
        overlay=overlay,
        digest=sha256(text.encode("utf-8")).hexdigest(),
        declared=head.inputs,
        templates=templates,
        front_matter=file.front_matter,
    )
    return prompt, problems


def _inherit(inputs: Mapping[str, Input], untrusted: Collection[str]) -> Mapping[str, Input]:
    return MappingProxyType(
        {
            name: replace(entry, untrusted=True) if entry.untrusted is None and name in untrusted else entry
            for name, entry in inputs.items()
        }
    )


def _misnamed(head: FrontMatter, file: PromptFile, *, path: Path) -> list[Problem]:
    name = path.name.split(".")[0]
    if head.name == name:
        return []
    line = line_of(file.front_matter, ["name"])
    return [Problem(path, line, f"`name` is {head.name!r}, and the file's name says {name!r}.")]


def _idle(head: FrontMatter, file: PromptFile, *, path: Path, templates: tuple[Template, ...]) -> list[Problem]:
    """Inputs that must be given and are then not used."""
    used = {name for template in templates for name in template.uses}
    return [
        Problem(path, line_of(file.front_matter, ["inputs", name]), f"`{name}` must be given and is not used.")
        for name, entry in head.inputs.items()
        if name not in used and not entry.optional
    ]
