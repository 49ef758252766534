"""What is put in the place of a link: nothing, what another run has there, or what is true."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from askance.agents import Verbalizations
from askance.atypicality import Statement
from askance.chains import LINKS
from askance.chains.factories import concatenate
from askance.chains.reading import as_link
from askance.chat import key_of
from askance.errors import UsageError
from askance.nodes import Result, skipped

if TYPE_CHECKING:
    from askance.chains import Chain, Link
    from askance.chat import Json
    from askance.evals.run import Answer, Run
    from askance.evals.values import Sample

Links: TypeAlias = "dict[Link, Result[Any]]"
Truth: TypeAlias = "Callable[[Sample], Mapping[str, Any]]"
"""From a sample to what is true of it, by link."""

DROPPED, TRUTH = "dropped", "truth"

_TOOLS: tuple[Link, ...] = ("objects", "scene_text", "narration", "unusual")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """What is put in the place of links."""

    name: str
    """`dropped`, `truth`, or `run` with the beginning of the other run's hash: how its results are kept."""
    words: str
    """What was done to a link, for a sentence: `dropped`."""
    put: Callable[[Answer, Link], Result[Any] | None]
    """What stands in the link's place; None where there is nothing to put there."""


def were(answer: Answer) -> Links:
    """The links of an answer as they were, as a chain takes them; what was read is `given`, what was not stays so.

    Raises:
        UsageError: a link of the answer is none that a chain could take.
    """
    with _reading(answer.sample):
        return _were(answer)


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


def _were(answer: Answer) -> Links:
    said: dict[str, Any] = {**(answer.prediction.trace.get("verbalization") or {}), "statement": _statement(answer)}
    found: Links = {}
    for link in LINKS:
        form: Mapping[str, Any] | None = answer.prediction.links.get(link)
        if form is None:
            continue
        value = said.get(link, answer.sample.inputs.get(link))
        if form["outcome"] != "answered":
            # Where there is an answer in the end, nothing that was skipped was needed.
            absent = form["outcome"] == "skipped"
            found[link] = Result(
                outcome=form["outcome"], reason=form.get("reason"), error=form.get("error"), absent=absent
            )
        elif value is not None:
            found[link] = as_link(link, value)
    return found


def _statement(answer: Answer) -> Mapping[str, Any] | None:
    form: Mapping[str, Any] | None = answer.prediction.trace.get("statement")
    return None if form is None else {name: form[name] for name in ("relation", "primary", "secondary")}


def form_of_link(result: Result[Any]) -> Json:
    """The value of a link as JSON; None where there is none."""
    value = result.value
    if value is None:
        return None
    if isinstance(value, Statement):
        return {"relation": value.relation, "primary": value.primary, "secondary": value.secondary}
    for name in ("names", "lines", "text"):
        if hasattr(value, name):
            part = getattr(value, name)
            return list(cast("tuple[str, ...]", part)) if isinstance(part, tuple) else str(part)
    return str(value)


def dropping(chain: Chain) -> Replacement:
    """Nothing in a link's place; in that of T_V what it was made of, one after the other, since a chain needs it."""
    needs = next((step.needs for step in chain.steps if step.link == "description"), _TOOLS)

    def put(answer: Answer, link: Link) -> Result[Any] | None:
        there = were(answer)
        if link not in there or not there[link].answered:
            return None
        if link != "description":
            return skipped("it was dropped", absent=True)
        said: dict[str, Any] = {each: there[each].value for each in needs if each in there}
        if all(value is None for value in said.values()):
            return None
        texts = {name: None if said.get(name) is None else str(said[name]) for name in ("narration", "unusual")}
        parts = Verbalizations(objects=said.get("objects"), scene_text=said.get("scene_text"), **texts)
        return as_link(link, concatenate(parts))

    return Replacement(name=DROPPED, words="dropped", put=put)


def from_run(other: Run) -> Replacement:
    """What another run has for the same sample, as far as it showed the same picture."""
    links = {(answer.sample.id, answer.epoch): (_digest(answer.sample), were(answer)) for answer in other.answers}

    def put(answer: Answer, link: Link) -> Result[Any] | None:
        sample = answer.sample
        digest, there = links.get((sample.id, answer.epoch)) or links.get((sample.id, 0)) or (None, {})
        found = there.get(link)
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

    def put(answer: Answer, link: Link) -> Result[Any] | None:
        value = say(answer.sample).get(link)
        with _reading(answer.sample):
            return None if value is None else as_link(link, value)

    return Replacement(name=TRUTH, words="replaced by the truth", put=put)


def stated(sample: Sample) -> Mapping[str, Any]:
    """What a sample says is true of links, in its `target` or `tags`."""
    whole: Any = sample.target
    target = cast("dict[str, Any]", whole) if isinstance(whole, dict) else {}
    return {link: value for link in LINKS if (value := target.get(link, sample.tags.get(link))) is not None}


def _digest(sample: Sample) -> str | None:
    return None if sample.image is None else sample.image.sha256
