"""Whether the lines of a run are those of its samples: each one once, none that was changed, with its attachments.

A run says in `run.json` how many samples it has, and gives their digest. A run that was interrupted has some of the
lines; then that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.errors import UsageError
from askance.evals.run_format import SAMPLES, SampleLine, lines_of
from askance.evals.sample import SampleResult, attachments_of, sample_text, samples_digest

if TYPE_CHECKING:
    from pathlib import Path

    from askance.evals.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """How the lines of a run stand to the samples that it began with."""

    faults: tuple[str, ...] = ()
    """What is wrong with the lines, one phrase each."""
    lacks: tuple[str, ...] = ()
    """Why they cannot be held against the samples, one phrase each."""


def completeness(run: Run) -> Completeness:
    """Holds the lines of an evaluation against the number and the digest of its samples.

    Raises:
        UsageError: a line of the run is malformed.
    """
    if run.of_pictures:  # they have no task, and so nothing that could be left out
        return Completeness()
    stated, epochs = run.configuration["samples"], run.configuration["epochs"]
    texts, faults = _read(run.path, epochs)
    wanted = stated["count"] * epochs
    whole = run.finished is not None and not run.left
    faults += _number(len(texts), wanted, whole=whole, left=run.left if run.finished else None)
    lacks: list[str] = []
    if len(texts) < wanted and not whole:
        so_far = f"{SAMPLES} has {len(texts):,} of {wanted:,} lines so far"
        lacks.append(f"{so_far}: they cannot be held against the digest in run.json")
    elif not faults and not _fits(texts, stated["digest"]):
        faults.append(f"{SAMPLES}: the samples are not those that the run began with: their digest is another one")
    return Completeness(faults=tuple(faults), lacks=tuple(lacks))


def _read(folder: Path, epochs: int) -> tuple[dict[tuple[str, int], str], list[str]]:
    """The text of each line's sample, by id and epoch, and what is wrong with single lines."""
    texts: dict[tuple[str, int], str] = {}
    names, repeated, beyond = list[str](), list[str](), list[str]()
    broken: dict[str, list[str]] = {}
    whole = cache(attrgetter("whole"))  # samples may share an attachment
    for line in lines_of(folder / SAMPLES, SampleLine):
        name = str(line["sample"]["id"])
        if line["id"] != name:
            names.append(name)
        if (name, line["epoch"]) in texts:
            repeated.append(name)
        if line["epoch"] >= epochs:
            beyond.append(name)
        texts[name, line["epoch"]] = sample_text(line["sample"])
        for each in attachments_of(line, folder):
            if not whole(each):
                broken.setdefault(each.folder, []).append(f"{name!r} ({each.place})")
    faults = (
        (names, "line has another id than its sample", "lines have other ids than their samples"),
        (repeated, "line stands twice", "lines stand twice"),
        (
            beyond,
            f"line is of an epoch beyond the {epochs} of the run",
            f"lines are of epochs beyond the {epochs} of the run",
        ),
    )
    return texts, [
        *(f"{SAMPLES}: {many(len(of), *words)}, such as that of {min(of)!r}" for of, *words in faults if of),
        *(
            f"the {what} of {many(len(of), 'sample')} are missing or were changed, such as that of {min(of)}"
            for what, of in broken.items()
        ),
    ]


def _number(count: int, wanted: int, *, whole: bool, left: int | None) -> Iterator[str]:
    """What is wrong with the number of lines."""
    lacking = wanted - count
    if lacking < 0:
        yield f"{SAMPLES} has {count:,} lines, and run.json says {wanted:,}"
    elif lacking and (whole or (left is not None and lacking > left)):
        yield f"{SAMPLES}: {lacking:,} of {wanted:,} lines {'is' if lacking == 1 else 'are'} missing"


def _fits(texts: Mapping[tuple[str, int], str], digest: str) -> bool:
    """Whether the samples have the digest, and each is the same in all epochs."""
    samples: dict[str, str] = {}
    same = all(samples.setdefault(name, text) == text for (name, _), text in texts.items())
    return same and samples_digest(samples[name] for name in sorted(samples)) == digest


def check_whole(run: Run) -> Completeness:
    """Refuses an evaluation whose lines are not those of its samples.

    Raises:
        UsageError: a line is missing, repeated, malformed, or of another sample.
    """
    state = completeness(run)
    if state.faults:
        raise UsageError(
            f"The run {str(run.path)!r} is not whole: {'; '.join(state.faults)}.",
            hint="Take the folder from a copy. Where lines, or files beside them, are missing or changed, run the same "
            "`askance eval run` again: it asks nothing that is on record.",
        )
    return state


def unused_records(run: Run, answers: Iterable[SampleResult] | None = None) -> Sequence[str]:
    """Keys of the run's records that no sample and no score rests on, but for those of endpoints.

    Args:
        run: an evaluation.
        answers: those of the run by default; such as the same, scored again.
    """
    used = {key for answer in answers or run.answers for key in (*answer.keys, *answer.tried)}
    spare = ((key, run.records.get(key)) for key in run.records.keys() if key not in used)  # noqa: SIM118  # no mapping
    return [key for key, record in spare if record is not None and record.kind != "endpoint"]
