"""The library of prompts: which file a prompt is read from.

The first of these that exists is taken, even if there is something wrong with it:

1. in each overlay folder in turn: `NAME.FORM.FAMILY.prompt`, `NAME.FORM.prompt`, `NAME.prompt`;
2. in the package: `NAME.FORM.FAMILY.prompt`, `NAME.FORM.prompt`.

So a file of the user's goes before every variant of the package's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from askance.errors import PromptError
from askance.prompts.frontmatter import line_of
from askance.prompts.prompt import Prompt, read_prompt
from askance.prompts.prompt_file import FORMS, SUFFIX, FileName, Form, PromptProblem

PACKAGED: Final = Path(__file__).with_name("files")
"""The package's own prompt files."""

OVERLAY: Final = Path("prompts")
"""The overlay folder where none is named, if it exists."""


_overlays: ContextVar[tuple[Path, ...] | None] = ContextVar("overlays", default=None)
"""The overlay folders within `overlay_prompts`."""


@contextmanager
def overlay_prompts(*folders: Path | str) -> Generator[None]:
    """Sets the overlay folders for all code inside this context that is given no library of its own.

    ```python
    with overlay_prompts("my-prompts"):
        chain = action_reason("openai:gpt-4o")
    ```
    """
    token = _overlays.set(tuple(map(Path, folders)))
    try:
        yield
    finally:
        _overlays.reset(token)


class PromptLibrary:
    """The package's prompts under the user's own.

    Args:
        overlays: Folders with the user's files, the first wins. None takes those of `overlay_prompts`, or outside of it
            `./prompts`, if there is such a folder.

    Raises:
        PromptError: a folder that does not exist.
    """

    def __init__(self, overlays: Sequence[Path | str] | None = None) -> None:
        if overlays is None:
            overlays = _overlays.get()
        if overlays is None:
            overlays = [OVERLAY] if OVERLAY.is_dir() else []
        self.overlays = tuple(Path(folder) for folder in overlays)
        for folder in self.overlays:
            if not folder.is_dir():
                raise PromptError(f"There is no folder of prompts {str(folder)!r}.", hint="Make it, or name another.")

    def __reduce__(self) -> tuple[type[PromptLibrary], tuple[tuple[Path, ...]]]:
        # Where a pickle is opened, another folder may be the current one.
        return PromptLibrary, (tuple(folder.absolute() for folder in self.overlays),)

    def find(self, name: str, *, form: Form = "json", family: str | None = None) -> Prompt:
        """The prompt `name` for the model family `family` that asks for an answer in `form`.

        Raises:
            PromptError: no such prompt, or a file that cannot be used.
        """
        if form not in FORMS:
            raise PromptError(f"There is no form {form!r} of a prompt.", hint=f"Forms: {', '.join(FORMS)}.")
        wanted = [FileName(name, form, family), FileName(name, form)] if family else [FileName(name, form)]
        names = [str(file) for file in wanted]
        for folder in self.overlays:
            here = prompt_files(folder)
            for file in (*names, f"{name}{SUFFIX}"):
                if file in here:
                    return _overlay_prompt(_OverlayFile.of(folder / file))
        for file in names:
            if file in packaged_files():
                return packaged_prompt(PACKAGED / file)
        raise self._unknown(name, form)

    def names(self) -> tuple[str, ...]:
        """Every prompt's name, sorted."""
        return tuple(sorted({file.name for file in self._file_names()}))

    def __iter__(self) -> Iterator[Prompt]:
        """The prompts in use: for each name, form and family, the one that `find` gives, each file once.

        Raises:
            PromptError: a file that cannot be used.
        """
        files = self._file_names()
        seen: set[Path] = set()
        for name in self.names():
            families = sorted({file.family for file in files if file.name == name and file.family})
            for form in FORMS:
                for family in (None, *families):
                    if not self._has(name, form, family):
                        continue
                    prompt = self.find(name, form=form, family=family)
                    if prompt.path not in seen:
                        seen.add(prompt.path)
                        yield prompt

    def check(self) -> list[PromptProblem]:
        """Everything that is wrong with any file, the package's and the user's, sorted by file and line."""
        return check_folders(self.overlays)

    def eject(self, name: str, *, form: Form = "json", family: str | None = None, to: Path | str | None = None) -> Path:
        """Copy the package's prompt into an overlay folder for editing; the path of the copy.

        Args:
            name: The prompt's name.
            form: Form of the answer.
            family: Wording for a model family, where the package has one.
            to: The folder, made where it does not exist; None is the first overlay folder, or `./prompts`.

        Raises:
            PromptError: no such prompt, a file that exists already, or a folder that cannot be written.
        """
        source = PromptLibrary([]).find(name, form=form, family=family).path
        folder = Path(to) if to is not None else next(iter(self.overlays), OVERLAY)
        copy = folder / source.name
        if folder.exists() and not folder.is_dir():
            raise PromptError(f"{str(folder)!r} is not a folder.", hint="Name a folder.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with copy.open("xb") as file:
                file.write(source.read_bytes())
        except FileExistsError:
            raise PromptError(f"{str(copy)!r} exists already.", hint="Edit it, or remove it first.") from None
        except OSError as error:
            raise PromptError(
                f"{str(copy)!r} cannot be written: {error.strerror}.", hint="Name another folder."
            ) from None
        return copy

    def _file_names(self) -> list[FileName]:
        files = [file for folder in self.overlays for file in prompt_files(folder)] + sorted(packaged_files())
        return [name for file in files if (name := FileName.parse(file))]

    def _has(self, name: str, form: Form, family: str | None) -> bool:
        return any(
            file.name == name and (file.form in (form, None)) and file.family in (family, None)
            for file in self._file_names()
        )

    def _unknown(self, name: str, form: Form) -> PromptError:
        names = self.names()
        if name in names:
            return PromptError(
                f"There is no prompt {name!r} in the form {form!r}.", hint=f"Write `{name}.{form}{SUFFIX}`."
            )
        near = get_close_matches(name, names, n=3, cutoff=0.6) or names
        return PromptError(f"There is no prompt {name!r}.", hint=f"Nearest: {', '.join(near)}.")


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
    return frozenset(prompt_files(PACKAGED))


def untrusted_inputs(name: str) -> frozenset[str]:
    """Inputs of the package's prompt `name` that may hold text from an image."""
    files = [file for file in packaged_files() if file.startswith(f"{name}.")]
    prompts = [packaged_prompt(PACKAGED / file) for file in files]
    return frozenset(entry.name for prompt in prompts for entry in prompt.declared.values() if entry.untrusted)


@cache
def packaged_prompt(path: Path) -> Prompt:
    """The prompt in a file of the package, read once."""
    prompt, problems = read_prompt(path, overlay=False, validate=False)
    if prompt is None or problems:
        raise _unusable(path, problems, overlay=False)
    return prompt


@dataclass(frozen=True, slots=True)
class _OverlayFile:
    """A user's file in its present state: equal as long as the file does not change."""

    path: Path
    stamp: tuple[int, ...]
    """Times of change, size and inode."""
    untrusted: frozenset[str]
    """Inputs that are untrusted wherever the file does not say otherwise."""

    @classmethod
    def of(cls, path: Path) -> _OverlayFile:
        """The file at `path`.

        Raises:
            PromptError: the file cannot be found or read.
        """
        try:
            stat = path.stat()
        except OSError as error:
            problem = PromptProblem(path, 1, f"the file cannot be read: {error.strerror}.")
            raise _unusable(path, [problem], overlay=True) from None
        stamp = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
        return cls(path, stamp, untrusted_inputs(path.name.split(".")[0]))


@lru_cache(maxsize=256)
def _overlay_prompt(file: _OverlayFile) -> Prompt:
    """The prompt in a user's file, read again when the file has changed."""
    prompt, problems = read_prompt(file.path, overlay=True, untrusted=file.untrusted)
    if prompt is None or problems:
        raise _unusable(file.path, problems, overlay=True)
    return prompt


def _unusable(path: Path, problems: Iterable[PromptProblem], *, overlay: bool) -> PromptError:
    """The error that lists every problem of one file, and the way out."""
    faults = "; ".join(f"line {problem.line}: {problem.message.removesuffix('.')}" for problem in sorted(problems))
    mend = "Mend it (`askance prompts check` names all that is wrong in all files)"
    way_out = f"{mend}, or remove it: the package's own prompt is then used." if overlay else "Install askance again."
    return PromptError(f"Prompt file {str(path)!r} cannot be used: {faults}.", hint=way_out)


_NAMES = "NAME.prompt, NAME.FORM.prompt or NAME.FORM.FAMILY.prompt"


def check_folders(overlays: Sequence[Path]) -> list[PromptProblem]:
    """Everything that is wrong with any file of the package and of `overlays`, sorted by file and line."""
    folders = [(folder, True) for folder in overlays] + [(PACKAGED, False)]
    problems: list[PromptProblem] = []
    for folder, overlay in folders:
        for path in sorted(folder.iterdir()):
            problems.extend(_check_file(path, overlay=overlay))
    return sorted(problems)


def _check_file(path: Path, *, overlay: bool) -> Iterator[PromptProblem]:
    if not path.name.endswith(SUFFIX):
        if f"{SUFFIX}." in path.name:
            yield PromptProblem(path, 1, f"this is not read: the name does not end in `{SUFFIX}`.", "note")
        return
    name = FileName.parse(path.name)
    if name is None or (name.form is None and not overlay):
        yield PromptProblem(path, 1, f"the name of a prompt file is {_NAMES}, FORM json or text.")
        return
    prompt, problems = read_prompt(path, overlay=overlay, untrusted=untrusted_inputs(name.name) if overlay else ())
    yield from problems
    if overlay:
        yield from _unknown_name(path, name)
    if prompt is not None and not problems:
        yield from _input_differences(prompt)
        yield from _example_problems(prompt)


def _unknown_name(path: Path, name: FileName) -> Iterator[PromptProblem]:
    """A user's file whose name is none of the package's prompts: misspelt, or new."""
    known = {file.split(".")[0] for file in packaged_files()}
    if name.name in known:
        return
    near = get_close_matches(name.name, known, n=1, cutoff=0.8)
    if near:
        yield PromptProblem(
            path, 1, f"the package has no prompt {name.name!r}, so this overrides nothing; nearest is {near[0]!r}."
        )
    else:
        yield PromptProblem(path, 1, f"the package has no prompt {name.name!r}: this is a prompt of your own.", "note")


def _input_differences(prompt: Prompt) -> Iterator[PromptProblem]:
    """Inputs that differ from those of the package's prompt of that name, which the callers give."""
    base = _packaged_counterpart(prompt)
    if base is None:
        return
    if base.example is not None and prompt.example is None:
        line = line_of(prompt.front_matter, ["name"])
        message = f"there is no block `example:`, and {base.path.name} has one: this prompt shows no examples."
        yield PromptProblem(prompt.path, line, message, "note")
    left_out = base.example_inputs if prompt.example is None else ()
    for name in base.declared:
        fault = None if name in left_out else _difference(prompt, base, name)
        if fault is not None:
            yield PromptProblem(prompt.path, line_of(prompt.front_matter, ["inputs", name]), fault)
    with_examples = prompt.example_inputs if base.example is not None else ()
    for name in (*prompt.inputs, *(name for name in with_examples if not prompt.declared[name].optional)):
        if name not in base.declared:
            where = line_of(prompt.front_matter, ["inputs", name])
            yield PromptProblem(prompt.path, where, f"`{name}` must be given, and {base.path.name} has no such input.")


def _difference(prompt: Prompt, base: Prompt, name: str) -> str | None:
    """How the input `name` of the package's prompt is declared otherwise in `prompt`."""
    entry, own, file = base.declared[name], prompt.declared.get(name), base.path.name
    if own is None:
        return f"`{name}` is not declared, and {file} has it; where it is not used, make it optional."
    if own.kind != entry.kind:
        return f"`{name}` is declared as {own.kind}, and {file} has it as {entry.kind}."
    if entry.optional and not own.optional:
        return f"`{name}` must be given, and {file} has it as optional."
    if name in base.example_inputs and name in prompt.inputs:
        return f"`{name}` must be given, and {file} has it for examples alone."
    return None


def _packaged_counterpart(prompt: Prompt) -> Prompt | None:
    """The package's prompt of the same name, with which the inputs of `prompt` are compared."""
    for form in ("json", "text"):
        file = f"{prompt.name}.{form}{SUFFIX}"
        if file in packaged_files() and PACKAGED / file != prompt.path:
            return packaged_prompt(PACKAGED / file)
    return None


def _example_problems(prompt: Prompt) -> Iterator[PromptProblem]:
    """The first error of rendering the prompt with all its examples, with those of required inputs, or with a turn."""
    values = prompt.examples
    if any(name not in values for name in prompt.inputs):
        return
    worked = prompt.worked_example
    shows = prompt.example is not None and all(
        name in worked or prompt.declared[name].optional for name in prompt.example_inputs
    )
    turns = [worked] if shows else []
    for inputs, shown in ((values, ()), ({name: values[name] for name in prompt.inputs}, ()), (values, turns)):
        try:
            prompt.render(examples=shown, **inputs)
        except PromptError as error:
            yield PromptProblem(
                prompt.path, line_of(prompt.front_matter, ["inputs"]), f"with its examples: {error.message}"
            )
            return
