"""What is put in the place of a link: nothing, what another run has there, or what is true."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from askance.agents import Verbalizations
from askance.chains import DESCRIPTION, NARRATION, OBJECTS, SCENE_TEXT, STATEMENT, UNUSUAL, Link, concatenate
from askance.chains.line import said_in
from askance.chat import key_of
from askance.errors import UsageError
from askance.nodes import Result, skipped

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.chat import Json
    from askance.evals.run import Answer, Run
    from askance.evals.values import Sample

Links: TypeAlias = "dict[str, Result[Any]]"
Truth: TypeAlias = "Callable[[Sample], Mapping[str, Any]]"
"""From a sample to what is true of it, by link."""

DROPPED, TRUTH = "dropped", "truth"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """What is put in the place of links."""

    name: str
    """`dropped`, `truth`, or `run` with the beginning of the other run's hash: how its results are kept."""
    words: str
    """What was done to a link, for a sentence: `dropped`."""
    put: Callable[[Answer, Link[Any]], Result[Any] | None]
    """What stands in the link's place; None where there is nothing to put there."""


def were(answer: Answer, links: Iterable[Link[Any]]) -> Links:
    """Links of an answer as they were, as a chain takes them; what was read is `given`, what was not stays so.

    Raises:
        UsageError: a link of the answer is none that a chain could take.
    """
    with _reading(answer.sample):
        prediction = answer.prediction
        said = {**answer.sample.inputs, **said_in({**prediction.trace, "links": prediction.links})}
        found = ((link, _was(link, prediction.links.get(link.name), said.get(link.name))) for link in links)
        return {link.name: result for link, result in found if result is not None}


@contextmanager
def _reading(sample: Sample) -> Generator[None]:
    """Tells of links that somebody spoilt by the sample that they are of."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"The links of the sample {sample.id!r} cannot be read: {type(error).__name__}: {error}.",
            hint="Take the run from a copy, or mend what is said to be true of the sample.",
        ) from error


def _was(link: Link[Any], form: Mapping[str, Any] | None, said: Json) -> Result[Any] | None:
    if form is None:
        return None
    if form["outcome"] != "answered":
        # Where there is an answer in the end, nothing that was skipped was needed.
        absent = form["outcome"] == "skipped"
        return Result(outcome=form["outcome"], reason=form.get("reason"), error=form.get("error"), absent=absent)
    return None if said is None else link.result(said)


def form_of_link(link: Link[Any], result: Result[Any]) -> Json:
    """The value of a link as JSON, without what follows from it; None where there is none."""
    form = None if result.value is None else link.write(result.value)
    if link.name != STATEMENT.name or not isinstance(form, dict):
        return form
    return {name: each for name, each in form.items() if name != "text"}


def dropping(chain: Chain) -> Replacement:
    """Nothing in a link's place; in that of T_V what it was made of, one after the other, since a chain needs it."""
    tools = (OBJECTS, SCENE_TEXT, NARRATION, UNUSUAL)
    needs = next((step.needs for step in chain.steps if step.link.name == DESCRIPTION.name), tools)

    def put(answer: Answer, link: Link[Any]) -> Result[Any] | None:
        there = were(answer, [link, *needs])
        if link.name not in there or not there[link.name].answered:
            return None
        if link.name != DESCRIPTION.name:
            return skipped("it was dropped", absent=True)
        said: dict[str, Any] = {each.name: there[each.name].value for each in needs if each.name in there}
        if all(value is None for value in said.values()):
            return None
        texts = {name: None if said.get(name) is None else str(said[name]) for name in ("narration", "unusual")}
        parts = Verbalizations(objects=said.get("objects"), scene_text=said.get("scene_text"), **texts)
        return link.result(concatenate(parts))

    return Replacement(name=DROPPED, words="dropped", put=put)


def from_run(other: Run) -> Replacement:
    """What another run has for the same sample, as far as it showed the same picture."""
    answers = {(answer.sample.id, answer.epoch): answer for answer in other.answers}

    def put(answer: Answer, link: Link[Any]) -> Result[Any] | None:
        sample = answer.sample
        there = answers.get((sample.id, answer.epoch)) or answers.get((sample.id, 0))
        if there is None:
            return None
        digest, found = _digest(there.sample), were(there, [link]).get(link.name)
        same = digest is None or _digest(sample) in {None, digest}
        return found if same and found is not None and found.answered else None

    name = f"run {key_of('run', dict(other.configuration))[:12]}"
    return Replacement(name=name, words=f"taken from {other.path.name}", put=put)


def from_truth(truth: Truth | None = None) -> Replacement:
    """What is true of a sample.

    Args:
        truth: says so; by default the sample does, in its `target` or `tags`, under a link's name.
    """
    say = truth or stated

    def put(answer: Answer, link: Link[Any]) -> Result[Any] | None:
        value = say(answer.sample).get(link.name)
        with _reading(answer.sample):
            return None if value is None else link.result(value)

    return Replacement(name=TRUTH, words="replaced by the truth", put=put)


def stated(sample: Sample) -> Mapping[str, Any]:
    """What a sample says is true, in its `target` or `tags`; links are among it."""
    whole: Any = sample.target
    return {**sample.tags, **(cast("dict[str, Any]", whole) if isinstance(whole, dict) else {})}


def _digest(sample: Sample) -> str | None:
    return None if sample.image is None else sample.image.sha256
