"""What an endpoint may do to a call: faults that pass, where it answers the next time, and those that last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from tests import replies
from tests.faults.run import answer, digest
from tests.servers import Answer, JsonObject, Reply, Seen, chat_body, error

Fault = Callable[[JsonObject], Answer]


@dataclass(frozen=True, slots=True)
class Passing:
    """A fault, and how the end of a run counts it."""

    fault: Fault
    said: str
    slow: bool = False
    """Whether it takes seconds, by the pauses that it asks for or by the pace that it leads to: a few must do."""


def faulty(fault: Fault, *, every: int = 3, text: Callable[[Seen], str] | None = None) -> Callable[[Seen], Answer]:
    """Answers, with what `text` says; the first time that it is asked every third question, it does `fault`."""
    seen: set[str] = set()

    def reply(request: Seen) -> Answer:
        body = request.json
        mark = digest(body)
        if mark not in seen:
            seen.add(mark)
            if len(seen) % every == 0:
                return fault(body)
        return answer(body) if text is None else text(request)

    return reply


def dated(seconds: float, *, clock: float, date: bool = True) -> dict[str, str]:
    """Headers that ask for a wait up to a moment, by a clock that is `clock` seconds ahead of this machine's."""
    there = datetime.now(UTC) + timedelta(seconds=clock)
    wait = {"retry-after": format_datetime(there + timedelta(seconds=seconds), usegmt=True)}
    return {"date": format_datetime(there, usegmt=True), **wait} if date else wait


def slow_down(headers: dict[str, str]) -> Fault:
    return lambda _: error(429, "Slow down.", headers=headers)


def slow_down_until(*, clock: float, date: bool = True) -> Fault:
    """Asks for a second's rest, as a moment by a clock that is `clock` seconds ahead."""
    return lambda _: error(429, "Slow down.", headers=dated(1, clock=clock, date=date))


HTML = {"content-type": "text/html"}

PASSING: dict[str, Passing] = {
    "429 with Retry-After": Passing(slow_down({"retry-after": "1"}), "429", slow=True),
    "429 without": Passing(slow_down({}), "429", slow=True),
    "429 in milliseconds": Passing(slow_down({"retry-after-ms": "20"}), "429", slow=True),
    "429 with a moment": Passing(slow_down_until(clock=0), "429", slow=True),
    "429 with a moment, an hour ahead": Passing(slow_down_until(clock=3600), "429", slow=True),
    "429 with a moment, an hour behind": Passing(slow_down_until(clock=-3600), "429", slow=True),
    "429 with a moment, behind and without its date": Passing(slow_down_until(clock=-3600, date=False), "429"),
    "500": Passing(lambda _: error(500, "It broke."), "500"),
    "503": Passing(lambda _: replies.OVERLOADED, "503"),
    "503 with a moment, an hour ahead": Passing(
        lambda _: error(503, "Overloaded.", headers=dated(1, clock=3600)), "503", slow=True
    ),
    "408": Passing(lambda _: error(408, "Too slow."), "408"),
    "409": Passing(lambda _: error(409, "Conflict."), "409"),
    "425": Passing(lambda _: error(425, "Too early."), "425"),
    "reset before": Passing(lambda _: replies.RESET, "no connection"),
    "reset in mid-body": Passing(lambda body: Reply(body=chat_body(answer(body)), cut=40, reset=True), "unreadable"),
    "cut in mid-body": Passing(lambda body: Reply(body=chat_body(answer(body)), cut=40), "unreadable"),
    "truncated JSON": Passing(lambda _: replies.CUT_JSON, "unreadable"),
    "no JSON": Passing(lambda _: Reply(body="<html>Welcome</html>", headers=HTML), "unreadable"),
    "nothing": Passing(lambda _: Reply(), "unreadable"),
    "wrong shape": Passing(lambda _: Reply(body={"choices": {"message": "a cup"}}), "unreadable"),
    "another wrong shape": Passing(lambda _: Reply(body='["a cup"]'), "unreadable"),
    "no choices": Passing(lambda _: Reply(body={**chat_body(), "choices": []}), "unreadable"),
    "an error in a reply of status 200": Passing(
        lambda _: Reply(body={"error": {"message": "Down.", "code": 502}}), "502"
    ),
}


@dataclass(frozen=True, slots=True)
class Lasting:
    """A reply that no other try can better, and the outcome that it stands for."""

    reply: Answer
    outcome: str
    failed: bool = False
    """Whether there is no answer at all to record."""
    counted: bool = True
    """Whether the endpoint counts tokens for it."""


LASTING: dict[str, Lasting] = {
    "length": Lasting(chat_body("A cu", finish="length"), "truncated"),
    "content filter": Lasting(chat_body("A cu", finish="content_filter"), "filtered"),
    "refusal": Lasting(chat_body(None, refusal="I cannot help with that."), "refused"),
    "filtered before": Lasting(error(400, "No.", code="content_filter"), "filtered", counted=False),
    "rejected": Lasting(error(400, "That parameter is wrong."), "failed", failed=True, counted=False),
    "unprocessable": Lasting(error(422, "That cannot be processed."), "failed", failed=True, counted=False),
}
