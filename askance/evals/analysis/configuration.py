"""What differs in the configurations of runs, as it is and as a person reads it: words of prompts, names of models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from askance.amounts import shortened
from askance.evals.run_configuration import ConfigurationDifference, configuration_differences
from askance.evals.tables import NONE
from askance.prompts.word_diff import Stretch, excerpt, word_diff

if TYPE_CHECKING:
    from askance.evals.run import Run

LONGEST = 400
"""Characters of a value in a table of what differs."""

_LINE = 60
"""Characters of a text that is shown as a whole."""
_PROMPT = "solver.prompts."
_MODEL = re.compile(r"(?:solver\.)?models\.[^.]+")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def differences(runs: Sequence[Run]) -> Iterator[ConfigurationDifference]:
    """The entries in which the configurations of `runs` differ; at the end the versions of askance, if they differ."""
    yield from configuration_differences([_configuration(run) for run in runs])
    versions = tuple(run.made_by or None for run in runs)
    if len(set(versions)) > 1:
        yield ConfigurationDifference(place="askance", values=versions)


def _configuration(run: Run) -> Mapping[str, Any]:
    """What decides the answers of a run; of one over pictures in the places of an evaluation, without the pictures."""
    if not run.of_pictures:
        return run.configuration
    form = {name: value for name, value in run.options.items() if name != "prompts"}
    models: Any = run.configuration.get("models", {})
    listed = isinstance(models, list)
    if listed:
        form["models"] = {str(number): model for number, (_, model) in enumerate(run.roles, start=1)}
    return {**form, "solver": {"models": {} if listed else models, "prompts": run.solver.get("prompts", {})}}


Change: TypeAlias = "tuple[Stretch, ...]"
"""What changed of a text, with a few words around."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceRow:
    """One place at which runs differ, as a person reads it."""

    place: str
    values: tuple[str, ...]
    """In each run."""
    changes: tuple[Change, ...] = ()
    """Of a prompt or another long text, what each run changed of that of the first; empty for a run that has the same
    or none."""


def difference_rows(runs: Sequence[Run]) -> list[DifferenceRow]:
    """What differs between `runs`: prompts by their words, models by their names, and each difference once.

    A role's model is named again with every link that asks it; where these differ as the role does, the role alone is
    told. Links that not all runs have are told together, and so are their prompts.
    """
    all_differences = [*differences(runs)]
    missing = [each for each in all_differences if _of_link(each) and None in each.values]
    shown: dict[tuple[str, str], None] = {}
    rows: list[DifferenceRow] = []
    for each in all_differences:
        if each in missing:
            continue
        if (match := _MODEL.match(each.place)) is not None:
            same = (each.place[match.end() :], json.dumps(each.values, sort_keys=True))
            if same in shown:
                continue
            shown[same] = None
        rows.append(_difference_row(each, runs))
    return [*rows, *_alone(missing, "solver.models.", "links"), *_alone(missing, _PROMPT, "prompts")]


def _of_link(each: ConfigurationDifference) -> bool:
    model = each.place.startswith("solver.models.") and each.place.count(".") == 2
    return model or each.place.startswith(_PROMPT)


def _alone(missing: Sequence[ConfigurationDifference], within: str, words: str) -> Iterator[DifferenceRow]:
    """What not all runs have of the links or of the prompts."""
    some = [each for each in missing if each.place.startswith(within)]
    if some:
        names = (
            [each.place.removeprefix(within) for each in some if each.values[place] is not None]
            for place in range(len(some[0].values))
        )
        yield DifferenceRow(place=f"{words} that not all have", values=tuple(", ".join(each) or NONE for each in names))


def _difference_row(each: ConfigurationDifference, runs: Sequence[Run]) -> DifferenceRow:
    values = tuple(_shown(value) for value in each.values)
    if not each.place.startswith(_PROMPT):
        long = all(isinstance(value, (str, list)) for value in each.values) and max(map(len, values)) > _LINE
        return DifferenceRow(place=each.place, values=values, changes=_changes(values) if long else ())
    name = each.place.removeprefix(_PROMPT)
    return DifferenceRow(
        place=f"prompt {name}", values=values, changes=_changes([run.prompts.get(name) for run in runs])
    )


def _changes(texts: Sequence[str | None]) -> tuple[Change, ...]:
    """What each text changed of the first; empty where nothing can be told."""
    first = texts[0]
    changes = tuple(
        () if first is None or text in (None, first) else tuple(excerpt(word_diff(first, text))) for text in texts
    )
    return changes if any(changes) else ()


def _shown(value: Any) -> str:
    if value is None:
        return NONE
    if isinstance(value, dict) and "id" in value:  # of a model, who it is
        value = cast("dict[str, Any]", value)["id"]
    if isinstance(value, dict) and {*cast("dict[str, Any]", value)} == {"name"}:
        value = cast("dict[str, Any]", value)["name"]
    if isinstance(value, list) and all(isinstance(each, str) for each in cast("list[Any]", value)):
        value = ", ".join(cast("list[str]", value))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if _DIGEST.fullmatch(text):
        return text[:12]
    return shortened(text, LONGEST)
