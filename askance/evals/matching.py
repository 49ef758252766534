"""Which samples several runs of a task have in common, and where their configurations differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

from askance.errors import UsageError

if TYPE_CHECKING:
    from askance.evals.run import Answer, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The samples that several runs have in common; samples that are answered several times count as often."""

    rows: tuple[tuple[Answer, ...], ...]
    """A sample each, with the answer of every run, in the order of the runs."""
    alone: tuple[int, ...]
    """Of each run, the answers to samples that not all have."""
    unlike: int
    """Samples that not all were asked the same: another picture, other options, another target."""

    @property
    def answered(self) -> tuple[int, ...]:
        """Of each run, the samples in common that it answered."""
        return tuple(sum(row[place].prediction.answered for row in self.rows) for place in range(len(self.alone)))

    @property
    def by_all(self) -> int:
        """The samples that all answered."""
        return sum(all(answer.prediction.answered for answer in row) for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """One place of the configuration at which runs differ."""

    place: str
    values: tuple[Any, ...]
    """What stands there in each run; None where nothing does."""


def matched(runs: Sequence[Run]) -> Matching:
    """The answers of `runs` to the samples that all of them have, in the order of the samples.

    Raises:
        UsageError: there are fewer than two, one is there twice, they are of different tasks, or have no sample in
            common.
    """
    _check(runs)
    several = [{(answer.sample.id, answer.epoch): answer for answer in run.answers} for run in runs]
    common = [key for key in several[0] if all(key in each for each in several)]
    if not common:
        raise _nothing_common(runs, [set(each) for each in several])
    rows = tuple(tuple(each[key] for each in several) for key in common)
    return Matching(
        rows=rows, alone=tuple(len(each) - len(rows) for each in several), unlike=sum(map(asked_otherwise, rows))
    )


def asked_otherwise(row: Sequence[Answer]) -> bool:
    """Whether not all answers of a row are to the very same sample."""
    first = row[0].sample.form()
    return any(answer.sample.form() != first for answer in row[1:])


def _check(runs: Sequence[Run]) -> None:
    if len(runs) < 2:
        raise UsageError("A comparison is of at least two runs.", hint="Name another run of the same task.")
    places = [run.path.resolve() for run in runs]
    twice = next((run for number, run in enumerate(runs) if places[number] in places[:number]), None)
    if twice is not None:
        raise UsageError(f"The run {str(twice.path)!r} is named twice.", hint="Name each run once.")
    other = next((run for run in runs if run.task != runs[0].task), None)
    if other is not None:
        raise UsageError(
            f"The runs {str(runs[0].path)!r} and {str(other.path)!r} are of different tasks, {runs[0].task!r} and "
            f"{other.task!r}.",
            hint="Compare runs of one task; `askance report` and `askance eval table` take runs of several.",
        )


def _nothing_common(runs: Sequence[Run], keys: Sequence[set[tuple[str, int]]]) -> UsageError:
    empty = next((run for run, there in zip(runs, keys, strict=True) if not there), None)
    if empty is not None:
        return UsageError(
            f"The run {str(empty.path)!r} has no samples yet.", hint="Go on with it: the command that began it."
        )
    apart = next(
        (pair for pair in combinations(range(len(runs)), 2) if not keys[pair[0]] & keys[pair[1]]), range(len(runs))
    )
    names = " and ".join(repr(str(runs[place].path)) for place in apart)
    return UsageError(
        f"The runs {names} have no sample in common.", hint="Run all over the same data, or the same `--ids`."
    )


def differences(runs: Sequence[Run]) -> Iterator[Differing]:
    """Where the configurations of `runs` differ, and last the versions of askance that made them, if they do."""
    yield from _differing([run.configuration for run in runs], "")
    versions = tuple(run.made_by or None for run in runs)
    if len(set(versions)) > 1:
        yield Differing(place="askance", values=versions)


def _differing(values: Sequence[Any], place: str) -> Iterator[Differing]:
    if all(isinstance(value, Mapping) for value in values):
        forms = [cast("Mapping[str, Any]", value) for value in values]
        for name in dict.fromkeys(name for form in forms for name in form):
            yield from _differing([form.get(name) for form in forms], f"{place}.{name}" if place else name)
    elif any(value != values[0] for value in values[1:]):
        yield Differing(place=place, values=tuple(values))
