"""What the YAML file of a task with no Python may say; every key is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from askance.chains import Context
from askance.chains.catalog import installed_chain
from askance.errors import UsageError
from askance.evals.declared_scoring import SCORES, ScoreName, scoring_of

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.tasks import Scoring


ChainName = Literal["verbalize", "action-reason", "end-to-end", "ask"]
CHAINS: tuple[ChainName, ...] = get_args(ChainName)

TAKES: Mapping[ChainName, frozenset[str]] = {
    "verbalize": frozenset({"context"}),
    "action-reason": frozenset({"context", "statement", "choose", "count", "options"}),
    "end-to-end": frozenset({"context", "statement", "choose", "count", "options", "step_by_step"}),
    "ask": frozenset({"question", "labels", "several", "prompt"}),
}
"""What a file may say by chain, of what does not go for all."""


def takes(chain: str) -> frozenset[str]:
    """What a file may say of a chain, beside what goes for all."""
    return TAKES.get(cast("ChainName", chain), frozenset({"options"}))


_OF_ALL = frozenset({"name", "summary", "data", "chain", "score", "metrics", "labels"})


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What a YAML file says; the names are those of its keys."""

    name: str
    chain: str
    """One of `CHAINS`, or one that an installed package brings."""
    score: ScoreName
    summary: str = ""
    data: str | None = None
    """A JSONL file, or a folder of pictures, in the folder of the YAML file."""
    metrics: tuple[str, ...] = ()
    """Names of those to show, the first stands for the task; none is all."""
    labels: tuple[str, ...] = ()
    """A closed set of answers."""
    options: tuple[str, ...] = ()
    """What can be chosen from, for samples that bring none of their own."""
    context: Context | None = None
    statement: bool | None = None
    choose: Literal["multi", "single"] = "multi"
    count: int = 3
    step_by_step: bool = False
    question: str | None = None
    several: bool = False
    prompt: str | None = None
    """Name of a prompt file of the user's own."""

    @property
    def scoring(self) -> Scoring:
        """How answers are scored.

        Raises:
            UsageError: the scoring has no metric of a name.
        """
        count = 1 if self.choose == "single" else self.count
        return scoring_of(self.score, labels=self.labels, count=count, metrics=self.metrics)

    def form(self) -> JsonObject:
        """The declaration as JSON, what is at its default left out; `data` is no part of it."""
        values: JsonObject = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "data"}
        defaults: JsonObject = {each.name: each.default for each in fields(self)}
        told = {name: value for name, value in values.items() if value != defaults[name]}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}  # pyright: ignore[reportUnknownArgumentType]


def declaration_of(content: Mapping[str, Any], where: str) -> Declaration:
    """`content` as a declaration; every key is checked.

    Raises:
        UsageError: a key is not known, is missing, or has a value that it cannot have.
    """
    _check_keys(content, where)
    values: dict[str, Any] = {}
    for name, value in content.items():
        if value is None:
            continue
        wanted, fits = _KINDS[name]
        if not fits(value):
            raise UsageError(f"{where}: `{name}` is {wanted}, not {value!r}.", hint=f"Mend `{name}`.")
        values[name] = tuple(cast("list[Any]", value)) if type(value) is list else value
    declaration = Declaration(**values)
    _check_fit(declaration, where)
    return declaration


def _check_keys(content: Mapping[str, Any], where: str) -> None:
    known = [each.name for each in fields(Declaration)]
    unknown = [name for name in content if name not in known]
    if unknown:
        raise UsageError(f"{where}: `{unknown[0]}` is not known.", hint=f"A task has {', '.join(known)}.")
    for name in ("name", "chain", "score"):
        if content.get(name) is None:
            raise UsageError(f"{where}: `{name}` is missing.", hint=f"It is {_KINDS[name][0]}.")
    chain = content["chain"]
    if _chain(chain):
        alien = [name for name in content if name not in _OF_ALL and name not in takes(chain)]
        if alien:
            takers = ", ".join(f"`{each}`" for each in CHAINS if alien[0] in TAKES[each])
            raise UsageError(f"{where}: the chain `{chain}` takes no `{alien[0]}`.", hint=f"It goes with {takers}.")


def _check_fit(declaration: Declaration, where: str) -> None:
    if declaration.chain in CHAINS:
        check_score(declaration, chooses="choose" in takes(declaration.chain), where=where)
    if declaration.score == "labels" and not declaration.labels:
        raise UsageError(f"{where}: `labels` are missing.", hint="List the labels that there are.")
    if declaration.chain == "ask" and declaration.question is None and declaration.prompt is None:
        raise UsageError(f"{where}: nothing is asked.", hint="Write `question: …`, or name a `prompt` of your own.")
    _ = declaration.scoring  # its metrics are checked


def check_score(declaration: Declaration, *, chooses: bool, where: str) -> None:
    """Refuses a scoring that does not fit what a chain gives.

    Args:
        declaration: with the scoring.
        chooses: whether the chain chooses among options.
        where: the file, for the message.

    Raises:
        UsageError: it does not fit.
    """
    if (declaration.score == "choice") is not chooses and declaration.score != "none":
        fitting = "`choice`" if chooses else "`exact` or `labels`"
        raise UsageError(
            f"{where}: `{declaration.score}` does not score what the chain `{declaration.chain}` gives.",
            hint=f"That is scored by {fitting}, or by `none`.",
        )


def _chain(value: Any) -> bool:
    return value in CHAINS or (isinstance(value, str) and installed_chain(value) is not None)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _texts(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(_text(each) for each in cast("list[Any]", value))


def _one_of(*names: str) -> Kind:
    return f"one of {', '.join(f'`{name}`' for name in names)}", lambda value: value in names


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


Kind: TypeAlias = tuple[str, Callable[[Any], bool]]
"""What a value is, in words, and whether one is."""

_FLAG: Kind = ("true or false", _flag)
_TEXT: Kind = ("a text", _text)
_LIST: Kind = ("a list of texts", _texts)
_KINDS: Mapping[str, Kind] = {
    "name": _TEXT,
    "summary": _TEXT,
    "data": _TEXT,
    "question": _TEXT,
    "prompt": _TEXT,
    "metrics": _LIST,
    "labels": _LIST,
    "options": _LIST,
    "chain": (f"{_one_of(*CHAINS)[0]}, or a chain that an installed package brings", _chain),
    "score": _one_of(*SCORES),
    "context": _one_of(*get_args(Context)),
    "choose": _one_of("multi", "single"),
    "count": ("a number from 1 to 100", lambda value: type(value) is int and 1 <= value <= 100),
    "statement": _FLAG,
    "step_by_step": _FLAG,
    "several": _FLAG,
}
