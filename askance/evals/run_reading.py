"""Reading the files of a run's folder: what is not as it has to be is told by file, line and place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.documents import UnreadableDocument, parse_json
from askance.errors import UsageError
from askance.evals.run_folder import DESCRIPTION, FORMAT, check_files
from askance.evals.run_shapes import DESCRIPTION as RUN
from askance.evals.run_shapes import OF_PICTURES
from askance.evals.shapes import fault

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.shapes import Check


LARGEST_DESCRIPTION = 64 << 20
"""Most bytes of a `run.json`."""
LONGEST_LINE = 64 << 20
"""Most bytes of a line of a run's files."""


def lines_of(file: Path, check: Check) -> Iterator[JsonObject]:
    """The whole lines of a file, each of which is as it has to be.

    Raises:
        UsageError: one is not.
    """
    if not file.exists():
        return
    with file.open("rb") as lines:
        number = 0
        while (line := lines.readline(LONGEST_LINE)).endswith(b"\n"):
            number += 1
            yield read_line(line[:-1], check, where=f"Line {number} of {str(file)!r}")
    if len(line) == LONGEST_LINE:  # a shorter one was torn by a kill
        raise UsageError(f"Line {number + 1} of {str(file)!r} is longer than {LONGEST_LINE >> 20} MB.", hint=_MEND)


def read_line(line: bytes, check: Check, *, where: str) -> JsonObject:
    """What a line of a run's files says.

    Raises:
        UsageError: it is no such line.
    """
    try:
        form: Any = parse_json(line, finite=False)
    except UnreadableDocument as error:
        raise UsageError(f"{where} {error}.", hint=_MEND) from error
    if (wrong := fault(form, check)) is not None:
        raise UsageError(f"{where} is no line of a run: {wrong}.", hint=_MEND)
    return form


_MEND = "Take the file from a copy, or run the evaluation again with another `--out`."


def described(folder: Path) -> JsonObject:
    """What the `run.json` of an evaluation says, which is as it has to be.

    Raises:
        UsageError: there is none, it is none of an evaluation, or of another version.
    """
    form = _described(folder, "holds no evaluation", "Name a folder that `askance eval run` has made.")
    if isinstance(form.get("configuration"), dict) and "task" not in form["configuration"]:
        raise UsageError(
            f"The folder {str(folder)!r} holds no evaluation.", hint="Name a folder that `askance eval run` has made."
        )
    return _checked(folder, form, RUN)


def described_anyhow(folder: Path) -> JsonObject:
    """What the `run.json` of any run says, be it an evaluation or one of single pictures.

    Raises:
        UsageError: there is none, or it is none of this version.
    """
    form = _described(folder, "holds no run", "Name the folder that `--out` named.")
    configuration = form.get("configuration")
    return _checked(folder, form, RUN if isinstance(configuration, dict) and "task" in configuration else OF_PICTURES)


def _described(folder: Path, without: str, hint: str) -> JsonObject:
    file = folder / DESCRIPTION
    if not file.is_file():
        raise UsageError(f"The folder {str(folder)!r} {without}.", hint=hint)
    check_files(folder)
    try:
        if file.stat().st_size > LARGEST_DESCRIPTION:
            raise UnreadableDocument(f"is larger than {LARGEST_DESCRIPTION >> 20} MB")
        form: Any = parse_json(file.read_bytes(), finite=False)
    except UnreadableDocument as error:
        raise UsageError(f"{str(file)!r} describes no run: it {error}.", hint=_MEND) from error
    if not isinstance(form, dict):
        raise UsageError(f"{str(file)!r} describes no run: it is no map.", hint=_MEND)
    there = cast("JsonObject", form)
    _check_version(folder, there)
    return there


def _checked(folder: Path, form: JsonObject, check: Check) -> JsonObject:
    if (wrong := fault(form, check)) is not None:
        raise UsageError(f"{str(folder / DESCRIPTION)!r} describes no run: {wrong}.", hint=_MEND)
    return form


def _check_version(folder: Path, form: JsonObject) -> None:
    found = form.get("format")
    if type(found) is not int:
        raise UsageError(f"{str(folder / DESCRIPTION)!r} describes no run: it has no format.", hint=_MEND)
    if found != FORMAT:
        made_by = form.get("askance")
        version = f"askance {made_by}" if isinstance(made_by, str) else "the version of askance that made it"
        age = "an older" if found < FORMAT else "a newer"
        raise UsageError(
            f"The run {str(folder)!r} has the format {found}, of {age} version, and this is askance for format "
            f"{FORMAT}.",
            hint=f"Open it with {version}, or run the evaluation again.",
        )
