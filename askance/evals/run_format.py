"""The format of a run's folder: names of its files, the types of their content, and their reading and checking.

All that changes when a run is repeated stands under `meta` in a line. Two runs are equal if their samples, sorted by id
and without `meta`, are equal byte for byte. A line holds its sample, too: inputs, what is true, the picture's digest.
So a folder is enough to score a run, to make its tables, and to run its chain again over its own records.

Somebody may have edited a folder, or made it up. So sizes have limits here, and an error names the file, the line and
the place that is wrong. The types are typed dictionaries, which pydantic checks in a hundredth of the time of a JSON
Schema; a run has a line for each sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from askance.chat import JsonObject, Outcome  # pydantic reads the annotations
from askance.documents import UnreadableDocument, parse_json, validation_message
from askance.errors import UsageError
from askance.nodes import Rung  # noqa: TC001

FORMAT = 1
"""Version of the format."""

DESCRIPTION, SAMPLES, SCORES, CALLS = "run.json", "samples.jsonl", "scores.jsonl", "calls.jsonl"
TRIALS, BLAMES = "blame.jsonl", "blame.json"
"""The trials of a blame, one a line, and its result."""
PROMPTS = "prompts"
"""Folder with the prompt files of the run."""
LARGEST_PROMPT = 1 << 20
"""Most bytes of a prompt file that is shown."""
RANKINGS, MATRICES = "rankings", "matrices"
"""Folders with the attachments of the lines, by kind; see `askance.evals.attachment`."""
SEAL = ".seal"
"""The seal of `calls.jsonl`; see `askance.evals.seal`."""
PLACES = ".pictures"
"""Where on this machine the picture of each sample lay, by its id; no part of the run, and in no pack."""
LOCK = ".lock"
"""The lock of the process that writes the run."""
BATCHES, LEDGER = "batches", "budget.db"
"""Batches that are under way, and what was spent of the budget."""
COUNTERS = "counters"
"""Entry of `run.json`: what models computed and what they found on record, by name."""
READ_BY = "readers"
"""Entry of `run.json`: version of the reply readers, `askance.nodes.reply.READERS`."""

LARGEST_DESCRIPTION = 64 << 20
"""Most bytes of a `run.json`."""
LONGEST_LINE = 64 << 20
"""Most bytes of a line of a run's files."""
MOST_RANKED = 100_000
"""Most ids of a ranking."""
LONGEST_RANKED_ID = 200
"""Most characters of an id in a ranking."""
LARGEST_RANKING = 64 << 20
"""Most bytes of a ranking's file."""
MOST_NUMBERS = 32 << 20
"""Most numbers of a matrix."""

_MEND = "Take the file from a copy, or run the evaluation again with another `--out`."

# --- content of the files ---

Count = Annotated[int, Field(ge=0)]


class _ModelForm(TypedDict):
    id: JsonObject
    sampling: NotRequired[JsonObject | None]


class _SolverForm(TypedDict):
    models: NotRequired[dict[str, _ModelForm]]
    prompts: NotRequired[dict[str, str]]


class _SamplesForm(TypedDict):
    count: Count
    digest: str


class ConfigurationForm(TypedDict):
    """What decides the answers of an evaluation; further entries are allowed."""

    task: str
    options: JsonObject
    models: dict[str, _ModelForm]
    solver: _SolverForm
    epochs: Count
    samples: _SamplesForm


class _IntervalForm(TypedDict):
    low: float
    high: float
    level: float
    method: str
    undefined: NotRequired[Count]


class _FigureForm(TypedDict):
    metric: str
    value: float | None
    interval: _IntervalForm | None
    convention: Literal["wrong", "answered"]
    samples: Count
    clusters: Count
    answered: Count
    among_answered: float | None
    if_wrong: float | None
    if_right: float | None
    percent: NotRequired[bool]


class _TotalsForm(TypedDict):
    samples: NotRequired[Count]
    outcomes: NotRequired[dict[str, Count]]
    read: NotRequired[dict[str, Count]]
    records: NotRequired[Count]


class _OriginForm(TypedDict):
    task: NotRequired[str]


class _DescriptionForm(TypedDict):
    askance: NotRequired[str]
    prices: NotRequired[str]
    readers: Count
    hash: NotRequired[str]
    started: NotRequired[str]
    finished: NotRequired[str]
    totals: NotRequired[_TotalsForm]
    left: NotRequired[Count]
    counters: NotRequired[dict[str, JsonObject]]


class RunForm(_DescriptionForm):
    """`run.json` of an evaluation."""

    configuration: ConfigurationForm
    figures: NotRequired[list[_FigureForm]]
    notes: NotRequired[list[str]]
    data_notes: NotRequired[list[str]]
    seed: NotRequired[int]
    label: NotRequired[str]
    origin: NotRequired[_OriginForm]


def _several(models: Any) -> Any:
    return [*cast("dict[str, Any]", models).values()] if isinstance(models, dict) else models


class PictureConfigurationForm(TypedDict):
    """What decides what a chain says of single pictures; there may be more."""

    chain: NotRequired[str]
    models: NotRequired[Annotated[list[_ModelForm], BeforeValidator(_several)]]
    """In a list, or a map by role."""
    prompts: NotRequired[dict[str, str]]
    samples: NotRequired[dict[str, list[str] | None]]
    """The pictures by name, each with the options to choose from."""
    questions: NotRequired[dict[str, str]]
    """By name, what is asked about a picture alone."""


class PictureRunForm(_DescriptionForm):
    """`run.json` of a run over single pictures."""

    configuration: PictureConfigurationForm


class _LinkForm(TypedDict):
    outcome: str
    calls: list[str]
    reason: NotRequired[str | None]
    error: NotRequired[str | None]
    trace: NotRequired[JsonObject]


class _TryForm(TypedDict):
    at: float
    seconds: float
    error: NotRequired[str | None]


class _MetaForm(TypedDict):
    calls: NotRequired[Count]
    replayed: NotRequired[Count]
    shared: NotRequired[Count]
    failed: NotRequired[dict[str, str]]
    seconds: NotRequired[float]
    tokens: NotRequired[dict[str, Count]]
    cost: NotRequired[float | None]
    tries: NotRequired[dict[str, list[_TryForm]]]


class _PictureForm(TypedDict):
    name: str
    sha256: str | None


class _SampleForm(TypedDict):
    id: str
    group: str
    image: _PictureForm | None
    inputs: JsonObject
    target: Any
    tags: JsonObject


class _TraceForm(TypedDict):
    verbalization: NotRequired[JsonObject | None]
    statement: NotRequired[JsonObject | None]


_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class RankingForm(TypedDict):
    """A ranking in a line."""

    sha256: _Digest
    count: Annotated[int, Field(ge=0, le=MOST_RANKED)]


def _bounded(shape: list[int]) -> list[int]:
    if prod(shape) > MOST_NUMBERS:
        raise ValueError(f"more than {MOST_NUMBERS:,} numbers")
    return shape


class MatrixForm(TypedDict):
    """A matrix in a line."""

    sha256: _Digest
    shape: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=2, max_length=2), AfterValidator(_bounded)]
    dtype: Literal["float32", "float64"]


class SampleLine(TypedDict):
    """A line of `samples.jsonl`."""

    id: str
    epoch: Count
    sample: _SampleForm
    outcome: Outcome
    links: dict[str, _LinkForm]
    reason: str | None
    value: Any
    rung: NotRequired[Rung]
    abstained: NotRequired[bool]
    confidence: NotRequired[Annotated[float, Field(ge=0, le=1)]]
    trace: _TraceForm
    ranking: NotRequired[RankingForm]
    matrix: NotRequired[MatrixForm]
    meta: NotRequired[_MetaForm]


class PictureLine(TypedDict):
    """A line of `samples.jsonl` in a run over single pictures."""

    image: str
    outcome: Outcome
    links: dict[str, _LinkForm]
    sha256: NotRequired[str | None]
    reason: NotRequired[str | None]
    verbalization: NotRequired[JsonObject | None]
    statement: NotRequired[JsonObject | None]
    statement_reason: NotRequired[str | None]
    answers: NotRequired[list[int] | None]
    reply: NotRequired[str | None]
    meta: NotRequired[_MetaForm]


class ScoreLine(TypedDict):
    """A line of `scores.jsonl`."""

    id: str
    epoch: Count
    values: dict[str, float]
    notes: JsonObject
    calls: list[str]
    withheld: NotRequired[dict[str, float]]


# --- reading ---


def fault(form: Any, shape: type) -> str | None:
    """The first thing that is wrong with a value, as `totals.samples is -1: …`; None if nothing is.

    Args:
        form: a JSON value.
        shape: one of the typed dictionaries of this module; further entries are allowed.
    """
    try:
        _adapter(shape).validate_python(form, strict=True)
    except ValidationError as error:
        return validation_message(error)
    return None


@cache
def _adapter(shape: type) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


def lines_of(file: Path, shape: type) -> Iterator[JsonObject]:
    """The lines of a file, checked; a last line that was cut off is left out.

    Raises:
        UsageError: a line is not of that shape.
    """
    if not file.exists():
        return
    with file.open("rb") as lines:
        number = 0
        while (line := lines.readline(LONGEST_LINE)).endswith(b"\n"):
            number += 1
            yield read_line(line[:-1], shape, where=f"Line {number} of {str(file)!r}")
    if len(line) == LONGEST_LINE:  # a shorter one was cut off when its process was killed
        raise too_long(file, number + 1)


def too_long(file: Path, number: int) -> UsageError:
    """The error for a line that nobody would write."""
    return UsageError(f"Line {number} of {str(file)!r} is longer than {LONGEST_LINE >> 20} MB.", hint=_MEND)


def read_line(line: bytes, shape: type, *, where: str) -> JsonObject:
    """The content of a line, checked.

    Raises:
        UsageError: it is not of that shape.
    """
    try:
        form: Any = parse_json(line, finite=False)
    except UnreadableDocument as error:
        raise UsageError(f"{where} {error}.", hint=_MEND) from error
    if (wrong := fault(form, shape)) is not None:
        raise UsageError(f"{where} is no line of a run: {wrong}.", hint=_MEND)
    return form


def read_description(folder: Path) -> JsonObject:
    """What the `run.json` of a run says, of an evaluation or of single pictures.

    Raises:
        UsageError: there is none, it does not have its form, or it is of another version.
    """
    file = folder / DESCRIPTION
    if not file.is_file():
        raise UsageError(
            f"The folder {str(folder)!r} holds no run.",
            hint="Name a folder that `askance eval run` or `askance run --out` has made.",
        )
    check_files(folder)
    try:
        if file.stat().st_size > LARGEST_DESCRIPTION:
            raise UnreadableDocument(f"is larger than {LARGEST_DESCRIPTION >> 20} MB")
        form: Any = parse_json(file.read_bytes(), finite=False)
    except UnreadableDocument as error:
        raise UsageError(f"{str(file)!r} describes no run: it {error}.", hint=_MEND) from error
    if not isinstance(form, dict):
        raise UsageError(f"{str(file)!r} describes no run: it is not a JSON object.", hint=_MEND)
    description = cast("JsonObject", form)
    _check_version(folder, description)
    configuration = description.get("configuration")
    of_pictures = isinstance(configuration, dict) and "task" not in configuration
    shape = PictureRunForm if of_pictures else RunForm
    if (wrong := fault(description, shape)) is not None:
        raise UsageError(f"{str(file)!r} describes no run: {wrong}.", hint=_MEND)
    return description


def _check_version(folder: Path, form: JsonObject) -> None:
    stated = form.get("format")
    if type(stated) is not int:
        raise UsageError(f"{str(folder / DESCRIPTION)!r} describes no run: it has no format.", hint=_MEND)
    if stated != FORMAT:
        made_by = form.get("askance")
        version = f"askance {made_by}" if isinstance(made_by, str) else "the version of askance that made it"
        age = "an older" if stated < FORMAT else "a newer"
        raise UsageError(
            f"The run {str(folder)!r} has the format {stated}, of {age} version, and this is askance for format "
            f"{FORMAT}.",
            hint=f"Open it with {version}, or run the evaluation again.",
        )


def check_files(path: Path) -> None:
    """Refuses a folder with anything but files and folders: to open a pipe, say, might never end.

    Raises:
        UsageError: the folder holds something else.
    """
    folders = (path, path / PROMPTS, path / RANKINGS, path / MATRICES)
    for file in chain(*(each.iterdir() for each in folders if each.is_dir() and not each.is_symlink())):
        if file.exists() and not (file.is_file() or file.is_dir()):
            raise UsageError(f"{str(file)!r} is no regular file.", hint="Remove it, or give another folder.")
