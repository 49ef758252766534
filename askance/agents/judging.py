"""What a judge is: whether a candidate says the same as a reference, or that nobody can tell.

A judge never raises for the fate of one call: a verdict that could not be had, or not be read, is *unscored*. It is
never taken for a no.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

from askance.errors import UsageError
from askance.tools import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from askance.chat import JsonObject, Outcome
    from askance.nodes import Result

VerdictValue: TypeAlias = Literal["true", "false", "unclear"]

VERDICTS: tuple[VerdictValue, ...] = get_args(VerdictValue)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Value):
    """What a judge says of one candidate.

    Raises:
        UsageError: a value without the outcome `answered`, or the other way round.
    """

    value: VerdictValue | None = None
    """None where the candidate is unscored."""
    reason: str = ""
    """The judge's own words, which may repeat the candidate's; for an unscored one, why it is."""
    outcome: Outcome = "answered"
    calls: tuple[str, ...] = ()
    """Keys of the records that it rests on."""

    def __post_init__(self) -> None:
        known = self.value in VERDICTS if self.outcome == "answered" else self.value is None
        if not known:
            raise UsageError(
                f"{self.value!r} is no verdict for the outcome {self.outcome!r}.",
                hint=f"Verdicts: {', '.join(VERDICTS)}; None where there is no answer.",
            )

    @property
    def scored(self) -> bool:
        """Whether there is a verdict at all, be it `unclear`."""
        return self.value is not None

    def __str__(self) -> str:
        return self.value or "unscored"


class Judge(Protocol):
    """Says whether two texts mean the same as answers to a question: a model, several of them, or a script."""

    async def judge(self, reference: str, candidate: str, *, question: str) -> Verdict:
        """The verdict on `candidate`; unscored, with its outcome and reason, where there is none."""
        ...


def verdict_of(result: Result[Verdict]) -> Verdict:
    """The verdict of a node's result, with the calls that it rests on; unscored for every outcome but `answered`."""
    calls = tuple(call.key for call in result.calls)
    if result.value is None:
        return Verdict(outcome=result.outcome, reason=result.reason or "", calls=calls)
    return Verdict(value=result.value.value, reason=result.value.reason, calls=calls)


def canonical_judge(judge: object) -> JsonObject:
    """Everything that decides a judge's verdicts, as JSON; of one that does not say so, the name of its class."""
    canonical: Callable[[], JsonObject] | None = getattr(judge, "canonical", None)
    return {"judge": type(judge).__qualname__} if canonical is None else canonical()
