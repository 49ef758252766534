"""Which samples of a task are run: a number of them, or a list of ids."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.errors import UsageError

if TYPE_CHECKING:
    from askance.evals.tasks import Task


def limited(task: Task, count: int) -> Task:
    """`task` with its first `count` samples.

    Raises:
        UsageError: that is none.
    """
    if count < 1:
        raise UsageError(f"A limit of {count} leaves no sample.", hint="Give at least 1.")
    if count >= len(task.samples):
        return task
    note = f"The first {count:,} of {len(task.samples):,} samples."
    return replace(task, samples=task.samples[:count], notes=(*task.notes, note))


def with_ids(task: Task, ids: Collection[str]) -> Task:
    """`task` with the samples of these ids, in the task's order.

    Raises:
        UsageError: an id is that of no sample.
    """
    wanted = dict.fromkeys(ids)
    there = {sample.id for sample in task.samples}
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise UsageError(
            f"{len(unknown):,} of {len(wanted):,} ids are those of no sample, such as {unknown[0]!r}.",
            hint=f"The samples of {task.name!r} are called like {task.samples[0].id!r}." if task.samples else None,
        )
    note = f"{len(wanted):,} of {len(there):,} samples, by a list of ids."
    samples = [sample for sample in task.samples if sample.id in wanted]
    return replace(task, samples=samples, notes=(*task.notes, note))


def read_ids(path: Path) -> tuple[str, ...]:
    """The ids in a file: one a line, or a JSON list of texts.

    Raises:
        UsageError: it cannot be read, or holds none, or no texts.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"The ids {str(path)!r} cannot be read: {error.strerror}.", hint="Check the path.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The ids {str(path)!r} are not UTF-8 text.", hint="Save them as UTF-8.") from error
    found: Any = [line.strip() for line in text.splitlines() if line.strip()]
    if text.lstrip().startswith("["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"The ids {str(path)!r} are no JSON list: {error}.", hint="Or write one a line."
            ) from error
    if not found or not all(isinstance(each, str) for each in found):
        raise UsageError(
            f"The file {str(path)!r} holds no list of ids.", hint="Write one a line, or a JSON list of texts."
        )
    return tuple(cast("list[str]", found))
