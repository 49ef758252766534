"""What `run` and `demo` print for each picture: a panel on a terminal, plain text, or a line of JSON."""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from askance.chains.link import as_words, link_named
from askance.chains.output_line import link_values
from askance.cli.columns import WIDTH
from askance.cli.output import table_of
from askance.cli.progress import Progress, calls_state
from askance.cli.transcript import confidence_row, step_rows
from askance.models.counters import counts_text
from askance.terminal import echo, json_text, printable

if TYPE_CHECKING:
    from askance.cli.console import Console
    from askance.cli.tally import Tally
    from askance.models import Counters, Engine

_INDENT = 14

_LAST = frozenset({"statement", "answers", "reply"})
"""Links that are printed last, marked as true or false if that is known."""


class ReadingDisplay:
    """Prints each reading when it is done, and shows the progress of the run.

    Args:
        total: how many pictures there are.
        as_json: a line of JSON each, and nothing else on stdout.
        tally: the counts that stand beside the progress.
        quiet: whether cards, progress and counts are left out; lines of JSON are printed all the same.
        engine: of the run, whose models on this machine say what they do.
        keep: whether readings are kept, as a page needs them.
    """

    def __init__(
        self,
        total: int,
        *,
        as_json: bool,
        tally: Tally,
        quiet: bool = False,
        engine: Engine | None = None,
        keep: bool = False,
    ) -> None:
        self.total = total
        self.readings: list[tuple[Mapping[str, Any], Sequence[str]]] | None = [] if keep else None
        """The line of each reading, and what could be chosen from."""
        self.outcomes: Counter[str] = Counter()
        self.unanswered: list[Mapping[str, Any]] = []
        self._json = as_json
        self._tally = tally
        self._terminal = _console() if sys.stdout.isatty() else None
        # On the terminal of the cards, if they have one, so that the two know of each other.
        state = calls_state(tally, engine)
        self._progress = None if quiet else Progress("images", total, state=state, console=self._terminal)

    def reading(
        self,
        line: Mapping[str, Any],
        options: Sequence[str] | None,
        truth: Mapping[str, Any] | None = None,
        *,
        brief: bool = False,
    ) -> None:
        """Prints one reading, and keeps it where that is asked for; a brief one is a single line of text."""
        if self.readings is not None:
            self.readings.append((line, options or ()))
        self.outcomes[line["outcome"]] += 1
        if line["outcome"] != "answered":
            self.unanswered.append(line)
        if self._json:
            self._print(json_text(line))
        elif brief:
            self._print(brief_text(line, truth))
        elif self._progress is None:
            return
        elif self._terminal is not None:
            self._terminal.print(card_panel(line, options, truth))
        else:
            self._print(card_text(line, options, truth) + "\n")
        if self._progress is not None:
            self._progress.update(self.outcomes.total())

    def _print(self, text: str) -> None:
        if self._terminal is not None:  # so that the bar below is drawn anew; nothing is wrapped
            self._terminal.out(text, highlight=False)
        else:
            echo(text)

    @property
    def calls(self) -> str:
        """The counts of calls, in words."""
        return str(self._tally)

    def close(self) -> None:
        """Ends the progress."""
        if self._progress is not None:
            self._progress.close()

    def summary(self, counts: Mapping[str, Counters]) -> Iterator[str]:
        """The pictures without an answer, and the outcomes.

        Args:
            counts: what models on this machine computed, by name.
        """
        if self.unanswered:
            yield f"\n{table_of(self.unanswered)}\n"
        if self._progress is None:
            return
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        yield f"{sum(self.outcomes.values()):,} of {self.total:,} images: {outcomes or 'none'}"
        yield from (str(self._tally), *counts_text(counts))


def _console() -> Console:
    from askance.cli.console import Console

    return Console()


# --- cards ---


def rows_of(
    line: Mapping[str, Any], options: Sequence[str] | None, truth: Mapping[str, Any] | None
) -> Iterator[tuple[str, str]]:
    """Heading and text of each row of a card.

    Args:
        line: the reading, as `Reading.to_dict` gives it.
        options: what could be chosen from.
        truth: `answers` and `statements` that are true, where they are known; what is chosen is then marked.
    """
    traces = [form["trace"] for form in line["links"].values() if "trace" in form]
    for trace in traces:
        yield from step_rows(trace)
    yield from _links(line)
    yield from _statement(line, truth)
    for place, number in enumerate(line["answers"] or ()):
        mark = _mark(None if truth is None else number in truth["answers"])
        yield "argues for" if place == 0 else "", f"{mark}{number}. {options[number - 1] if options else ''}".rstrip()
    if line.get("reply"):
        yield "reply", line["reply"]
    for trace in traces:
        yield from confidence_row(trace)
    if line["outcome"] != "answered":
        yield line["outcome"], _in_short(line["reason"])


def _in_short(reason: str | None) -> str:
    """A reason without what stands below its first line, such as how a request differs from one on record."""
    return (reason or "").partition("\n")[0]


def _links(line: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The links that are not printed last."""
    answers = link_values(line)
    for name, form in line["links"].items():
        link = link_named(name)
        if name in _LAST:
            continue
        value = answers.get(name)
        if isinstance(value, Mapping):
            for place, (field, each) in enumerate(cast("Mapping[str, Any]", value).items()):
                yield "" if place else link.heading, f"{field}: {as_words(each)}"
        elif name in answers:
            yield link.heading, link.show(value)
        elif form["outcome"] not in {"answered", "skipped"}:
            yield link.heading, f"none, {form['outcome']}: {_in_short(form.get('reason'))}"


def _statement(line: Mapping[str, Any], truth: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    statement = line["statement"]
    if statement is not None:
        right = None if truth is None else statement["text"] in truth["statements"]
        yield "statement", f"{_mark(right)}{statement['relation']}  {statement['text']}"
    elif line["statement_reason"] and line["statement_reason"] != "not asked":
        yield "statement", f"none: {_in_short(line['statement_reason'])}"


def _mark(right: bool | None) -> str:
    return "" if right is None else ("✓ " if right else "✗ ")


def card_text(line: Mapping[str, Any], options: Sequence[str] | None, truth: Mapping[str, Any] | None = None) -> str:
    """The card as plain text."""
    parts = [printable(line["image"])]
    for heading, text in rows_of(line, options, truth):
        parts.append(
            textwrap.fill(
                printable(text).replace("\n", " "),
                width=WIDTH,
                initial_indent=f"  {heading:<{_INDENT - 3}} ",
                subsequent_indent=" " * _INDENT,
            )
        )
    return "\n".join(parts)


def brief_text(line: Mapping[str, Any], truth: Mapping[str, Any] | None = None) -> str:
    """Name, relation and chosen numbers in one line, or the outcome where there is no answer."""
    statement = line["statement"]
    if line["outcome"] != "answered":
        text = line["outcome"]
    else:
        right = None if truth is None else bool(statement) and statement["text"] in truth["statements"]
        relation = f"{_mark(right)}{statement['relation']}" if statement else "no statement"
        numbers = (f"{_mark(None if truth is None else n in truth['answers'])}{n}" for n in line["answers"] or ())
        text = f"{relation:<7} argues for {', '.join(numbers) or 'none'}"
    return f"{printable(line['image']):<18} {text}"


def card_panel(line: Mapping[str, Any], options: Sequence[str] | None, truth: Mapping[str, Any] | None = None) -> Any:
    """The card as a panel of rich; its text is never read as markup."""
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column()
    for heading, text in rows_of(line, options, truth):
        shown = Text(printable(text))
        if text.startswith("✓"):
            shown.stylize("green", 0, 1)
        elif text.startswith("✗"):
            shown.stylize("red", 0, 1)
        grid.add_row(heading, shown)
    style = "red" if line["outcome"] != "answered" else "dim"
    return Panel(grid, title=Text(printable(line["image"]), style="bold"), title_align="left", border_style=style)
