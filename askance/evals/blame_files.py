"""What is kept of a blame in a run's folder: a line a trial, and what they come to."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from askance.chat import key_of
from askance.evals.run_folder import amending
from askance.models.counters import counts_form

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.blamed import Blame
    from askance.evals.run import Answer, Run
    from askance.models import Counters

LINES, SUMMARY, LEDGER = "blame.jsonl", "blame.json", "blame-budget.db"
FORMAT = 1
"""Version of both files."""


@contextmanager
def held(folder: Path, *, own: bool) -> Generator[None]:
    """Holds the run's folder, or makes another one."""
    if own:
        with amending(folder):
            yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    yield


def read_lines(file: Path) -> Iterator[JsonObject]:
    """The lines of earlier calls; one that a kill tore is none."""
    if not file.exists():
        return
    for text in file.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            line: Any = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and {"how", "key", "id", "epoch", "link", "outcome", "links"} <= line.keys():
            yield cast("JsonObject", line)


def write_line(file: IO[str], line: Mapping[str, Any]) -> None:
    """Adds a line, at once."""
    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    file.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a folder holds of earlier blames, by what was put in the links' places."""

    forms: Mapping[str, JsonObject] = field(default_factory=dict[str, Any])
    """As `Blame.form` gives them."""
    runs: Mapping[str, str] = field(default_factory=dict[str, str])
    """What tells the run that each is of from others, by `mark_of`."""
    counters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])
    """What was computed for each: of which `run`, and by its `models`."""
    readable: bool = True
    """Whether this version can read the file, if there is one."""

    def counted(self, how: str, run: Run) -> Mapping[str, Any]:
        """By model, what was computed for the blame of a run, all starts added up; nothing of what was for others."""
        there = self.counters.get(how, {})
        return there["models"] if there.get("run") == _named(run) else {}


def mark_of(run: Run) -> str:
    """What tells a run from others, and from itself once it is answered or scored otherwise."""
    return key_of("blamed", {"run": dict(run.configuration), "answers": [_mark(answer) for answer in run.answers]})


def _mark(answer: Answer) -> list[Any]:
    sample, prediction = answer.sample, answer.prediction.form()
    del prediction["meta"]
    asked = [sample.id, answer.epoch, sample.image and sample.image.sha256, dict(sample.inputs), sample.target]
    values = None if answer.score is None else {name: repr(float(each)) for name, each in answer.score.values.items()}
    return [*asked, prediction, values]


def save(file: Path, blame: Blame, run: Run) -> None:
    """Writes what the trials of a run come to, beside what trials of another kind came to."""
    there = read_summary(file.parent)
    forms, runs = {**there.forms, blame.how: blame.form()}, {**there.runs, blame.how: mark_of(run)}
    _write(file, replace(there, forms=forms, runs=runs, counters=_with(there, blame.how, run, models=blame.counters)))


def add_counts(file: Path, how: str, run: Run, *, counts: Mapping[str, Counters]) -> JsonObject:
    """Adds what models computed in this process to what earlier ones did for the same; returns all of it, by model."""
    there = read_summary(file.parent)
    total = counts_form(counts, there.counted(how, run))
    if counts:
        _write(file, replace(there, counters=_with(there, how, run, models=total)))
    return total


def _with(there: Kept, how: str, run: Run, *, models: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    others = {each: counts for each, counts in there.counters.items() if each != how}
    return {**others, how: {"run": _named(run), "models": dict(models)}} if models else others


def _named(run: Run) -> str:
    """What tells a run from others however it is answered: what it computed counts with all of its starts."""
    return key_of("run", dict(run.configuration))


def _write(file: Path, kept: Kept) -> None:
    content = {
        "format": FORMAT,
        "blames": dict(kept.forms),
        "runs": dict(kept.runs),
        **({"counters": dict(kept.counters)} if kept.counters else {}),
    }
    part = file.with_name(f"{file.name}.part")
    part.write_text(
        json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", errors="backslashreplace"
    )
    part.replace(file)


def read_summary(folder: Path) -> Kept:
    """What `folder` holds of earlier blames."""
    file = folder / SUMMARY
    if not file.exists():
        return Kept()
    try:
        form: Any = json.loads(file.read_text(encoding="utf-8"))
        if form["format"] != FORMAT:
            return Kept(readable=False)
        parts = (form["blames"], form.get("runs", {}), form.get("counters", {}))
        forms, runs, counters = (dict(part) for part in parts)
        return Kept(forms=forms, runs=runs, counters=counters)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Kept(readable=False)


def kept_blames(folder: Path) -> dict[str, JsonObject]:
    """What a folder holds of earlier blames, as `Blame.form` gives it, by what was put in the links' places."""
    return dict(read_summary(folder).forms)
