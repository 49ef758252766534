"""The library: which file a prompt is read from.

Looked for in this order; the first that exists is taken, whatever is wrong with it:

1. in each overlay folder in turn: `NAME.FORM.FAMILY.prompt`, `NAME.FORM.prompt`, `NAME.prompt`;
2. in the package: `NAME.FORM.FAMILY.prompt`, `NAME.FORM.prompt`.

So any file of the user's that can serve wins over every variant of the package's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

from askance.errors import PromptError
from askance.prompts.checking import check_folders
from askance.prompts.files import FORMS, SUFFIX, FileName, Form
from askance.prompts.reading import (
    LIBRARY,
    Edition,
    overlay_prompt,
    packaged_files,
    packaged_prompt,
    prompt_files,
)

if TYPE_CHECKING:
    from askance.prompts.problems import Problem
    from askance.prompts.prompt import Prompt

OVERLAY: Final = Path("prompts")
"""The overlay folder where none is named, if it exists."""


_overlays: ContextVar[tuple[Path, ...] | None] = ContextVar("overlays", default=None)
"""The overlay folders of a stretch of code, where none are named."""


@contextmanager
def overlaid(*folders: Path | str) -> Generator[None]:
    """Within it whatever looks up a prompt and is given no library of its own has these overlay folders.

    ```python
    with overlaid("my-prompts"):
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
        overlays: Folders with the user's files, the first wins; None is what `overlaid` says, and outside of it
            `./prompts` if there is such a folder.

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

    def find(self, name: str, *, form: Form = "json", family: str | None = None) -> Prompt:
        """The prompt `name` in the wording for `family`, asking for an answer in `form`.

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
                    return overlay_prompt(Edition.of(folder / file))
        for file in names:
            if file in packaged_files():
                return packaged_prompt(LIBRARY / file)
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

    def check(self) -> list[Problem]:
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
            raise PromptError(f"{str(folder)!r} is no folder.", hint="Name another.")
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
