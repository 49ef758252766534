"""The file that the leaderboard and the official scorer take: a run's answers by id, `{instance_id: letter}`.

For explanations it is `{instance_id: text}`. The official scorer (`eval_crossval.py`) and the leaderboard know only ids
of the data's own, and the scorer leaves a fold out if one id of it is missing or one explanation is empty. So a run
whose ids are not the data's, or which lacks answers, is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from askance.amounts import many
from askance.errors import UsageError
from askance.evals.newyorker.layout import LEADERBOARD, TASKS, TaskName
from askance.evals.newyorker.reply_conventions import letters_of
from askance.evals.run_folder import write_whole
from askance.evals.suite.submittable import RETRY, check_submittable

if TYPE_CHECKING:
    from askance.evals.newyorker.dataset import NewYorker
    from askance.evals.run import Run
    from askance.evals.sample import SampleResult

EXPLANATION = "newyorker/explanation"

Missing: TypeAlias = Literal["random", "last"]
"""What stands for a sample without an answer: a random option, as in `gpt4/`, or the last one, as in the authors'
leaderboard script (E in matching, B in ranking)."""


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A run's answers as the leaderboard and the official scorer take them."""

    task: str
    answers: Mapping[str, str]
    """By id, a letter or an explanation, ordered by id."""
    filled: tuple[str, ...] = field(default=())
    """Ids of samples without an answer, for which the rule chose."""

    def write(self, path: str | Path) -> Path:
        """Writes the file, in place of one that is there; at no time is it half written.

        Raises:
            StoreError: it cannot be written.
        """
        place = Path(path)
        write_whole(place, json.dumps(dict(self.answers), indent=1) + "\n")
        return place


def submission_of(
    run: Run, *, missing: Missing | None = None, data: NewYorker | None = None, seed: int = 0
) -> Submission:
    """The submission of a finished run.

    Args:
        run: of one of the three tasks, asked in one order and once, with ids of the data's own.
        missing: what stands for a sample without an answer; None refuses a run that lacks one.
        data: the run must have answers to all its test items of the run's folds, and to no others; None does not check.
        seed: of what is drawn at random; what is drawn for an id depends on nothing else.

    Raises:
        UsageError: the run cannot be submitted; the message says why, and how many samples it is about.
        BadData: the data do not have a fold of the run.
    """
    _check(run)
    answers = run.answers
    lacking = [answer.sample.id for answer in answers if not _has_answer(answer)]
    if lacking and run.task == EXPLANATION:
        raise UsageError(
            f"{many(len(lacking), 'sample has', 'samples have')} no explanation, such as {lacking[0]!r}, and the "
            "official scorer leaves out a fold that lacks one.",
            hint=RETRY,
        )
    if lacking and missing is None:
        raise UsageError(
            f"{many(len(lacking), 'sample has', 'samples have')} no answer, such as {lacking[0]!r}.",
            hint="Ask for them again, or say what stands for them: --missing random, as the authors did, or last.",
        )
    if data is not None:
        _check_ids(run, data)
    answers_by_id = {answer.sample.id: _answer(answer, missing, seed) for answer in answers}
    return Submission(task=run.task, answers=dict(sorted(answers_by_id.items())), filled=tuple(lacking))


def _check(run: Run) -> None:
    """Refuses a run whose answers are no submission."""
    check_submittable(run, [f"newyorker/{task}" for task in TASKS])
    answers = run.answers
    if any(answer.sample.tags.get("order", 1) != 1 for answer in answers):
        raise UsageError(
            f"The run {str(run.path)!r} asks each item in two orders, so it has two answers to one id.",
            hint="Run it in the order of the data: -T orders=1.",
        )
    own = [answer.sample.id for answer in answers if answer.sample.tags.get("official_id") is False]
    if own:
        raise UsageError(
            f"{many(len(own), 'sample has an id', 'samples have ids')} that no official file has, such as {own[0]!r}: "
            "the authors' repository has no ids.",
            hint="Run it over the data of Hugging Face or of the leaderboard.",
        )


def _check_ids(run: Run, data: NewYorker) -> None:
    """Refuses a run that does not have all test items of its folds, or has others."""
    task = cast("TaskName", run.task.rpartition("/")[2])
    folds = sorted({int(answer.sample.tags.get("fold", LEADERBOARD)) for answer in run.answers})
    wanted = [item.id for fold in folds for item in data.items(task, fold=fold)]
    ids = [answer.sample.id for answer in run.answers]
    lacking = sorted({*wanted} - {*ids})
    unknown = sorted({*ids} - {*wanted})
    if lacking or unknown:
        raise UsageError(
            f"The run lacks {len(lacking):,} of the {len(wanted):,} test items of the data and has "
            f"{many(len(unknown), 'other')}, such as {(lacking or unknown)[0]!r}.",
            hint="Run the task over these data, without `--limit` and `--ids`.",
        )


def _has_answer(answer: SampleResult) -> bool:
    """Whether there is an answer that is not empty."""
    value: object = answer.prediction.value
    return answer.prediction.answered and not (isinstance(value, str) and not value.strip())


def _answer(answer: SampleResult, missing: Missing | None, seed: int) -> str:
    """The letter or the explanation of one sample."""
    sample, value = answer.sample, answer.prediction.value
    if isinstance(value, str) and _has_answer(answer):
        return value
    letters = letters_of(sample)
    if _has_answer(answer):
        return letters[_number(sample.id, value, len(letters)) - 1]
    if missing == "last":
        return max(letters)
    return Random(f"{seed}\n{sample.id}").choice(sorted(letters))  # no secret


def _number(name: str, value: Any, count: int) -> int:
    """The number of the one option in an answer."""
    numbers: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]  # pyright: ignore[reportUnknownArgumentType]
    if len(numbers) != 1 or type(numbers[0]) is not int or not 1 <= numbers[0] <= count:
        raise UsageError(
            f"The answer {value!r} to {name!r} is not one option of {count}.", hint="A tie cannot be submitted."
        )
    return numbers[0]
