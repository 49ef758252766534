"""Looking at a run that another process is writing: nothing is locked or written, and torn lines are waited for.

A lock of the reader could refuse the writer its start. A run is finished once its description is younger than its
samples.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from heapq import nlargest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.errors import AskanceError, CallError, ConfigError, UsageError
from askance.evals.run import Run, answer_of
from askance.evals.run_format import (
    DESCRIPTION,
    LOCK,
    LONGEST_LINE,
    SAMPLES,
    PictureLine,
    SampleLine,
    read_description,
    read_line,
    too_long,
)
from askance.evals.scorer import Scorer, main_figure, scored
from askance.evals.task_catalog import task_of
from askance.models import Engine, run_sync
from askance.replay import MemoryStore

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.metric import Figure
    from askance.evals.sample import SampleResult

WINDOW = 60.0
"""Seconds over which the rate is taken."""
QUIET = 60.0
"""Seconds without a line after which nothing seems to come."""
AT_ONCE = 256
"""Lines that are held at a time."""
SHOWN = 3
"""Slow calls, and samples without an answer, that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowCall:
    """One try at a call."""

    sample: str
    seconds: float
    error: str | None
    link: str = ""
    """Of the chain, that the call was made for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """One sample without an answer."""

    sample: str
    outcome: str
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """Where a run stands."""

    task: str
    done: int
    total: int | None
    """Samples, in all epochs; None where the run does not say."""
    outcomes: Mapping[str, int]
    finished: str | None
    """When, in ISO form; None while it is not."""
    left: int
    """Samples that the budget had nothing left for."""
    figure: Figure | None
    """The metric that stands for the task, over the samples so far; None where it is not to be had before the end."""
    per_minute: float | None
    """Samples, by the last minute in which calls ended, or else by what came between looks."""
    quiet: float
    """Seconds since something was written."""
    held: bool | None = None
    """Whether a process of this machine has the folder; None where that cannot be told."""
    calls: int = 0
    replayed: int = 0
    failed: int = 0
    """Tries that failed."""
    tokens: int = 0
    cost: float = 0.0
    """Dollars, as far as they are known."""
    unpriced: int = 0
    """Samples whose cost is not known."""
    slow: tuple[SlowCall, ...] = ()
    """The slowest tries."""
    errors: tuple[Unanswered, ...] = ()
    """The last samples without an answer."""
    noun: str = "sample"
    """What its samples are called: sample, or picture."""
    unscored: str | None = None
    """Why there is no score so far, where the user can change that."""

    @property
    def abandoned(self) -> bool:
        """Whether it seems that nobody writes the run any more, though it is not finished."""
        return not self.finished and self.held is False and self.quiet > QUIET

    @property
    def minutes_left(self) -> float | None:
        """About how long it takes yet; None where that cannot be told."""
        if self.total is None or not self.per_minute or self.finished:
            return None
        return max(0, self.total - self.done) / self.per_minute

    def form(self) -> JsonObject:
        """The same as JSON."""
        form: JsonObject = asdict(self)
        return {**form, "outcomes": dict(self.outcomes), "minutes_left": self.minutes_left}


@dataclass
class _Sums:
    """What the lines so far come to."""

    done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    spent: Counter[str] = field(default_factory=Counter[str])
    cost: float = 0.0
    slow: list[SlowCall] = field(default_factory=list[SlowCall])
    errors: deque[Unanswered] = field(default_factory=lambda: deque[Unanswered](maxlen=SHOWN))
    ends: deque[float] = field(default_factory=deque[float])
    """When samples of the last minute ended, as their calls tell."""
    answers: list[SampleResult] = field(default_factory=list["SampleResult"])


class Watcher:
    """Follows a run's folder; each `status` reads what has been written since.

    Args:
        path: of a run, finished or not.
        task: where the task is, if not where the run says.

    Raises:
        UsageError: the folder holds no run.
    """

    def __init__(self, path: str | Path, *, task: str | None = None) -> None:
        self.path = Path(path)
        self._description: JsonObject = {}
        self._described()
        self._unscored: str | None = None
        self._scoring = self._found_scoring(task)
        self._file: tuple[int, int] = (0, 0)
        """Which file the samples are, and how many of its bytes are read."""
        self._sums = _Sums()
        self._figure: tuple[int, Figure | None] = (0, None)
        self._number = 0
        """Of the last line that was read."""
        self._seen: deque[tuple[float, int]] = deque()
        """When somebody looked in the last minute, and how many samples there were."""

    def status(self) -> RunStatus:
        """Where the run stands now.

        Raises:
            UsageError: the folder is gone, or a line of it is none.
        """
        form = self._described()
        lines = self._new_lines()
        while new := [*islice(lines, AT_ONCE)]:
            for line in new:
                self._add(line)
            if self._scoring is not None:
                run_sync(self._score([line for line in new if "sample" in line], self._scoring))
        sums, total = self._sums, self._total(form)
        finished = form.get("finished") if self._settled() else None
        return RunStatus(
            task=str(form["configuration"].get("task", form["configuration"].get("chain", "run"))),
            done=sums.done,
            total=total,
            outcomes=dict(sorted(sums.outcomes.items())),
            finished=finished,
            left=int(form.get("left", 0)) if finished else 0,
            figure=self._headline(),
            per_minute=_rate(sums.ends) or self._observed(),
            quiet=max(0.0, time.time() - self._touched()),
            held=_held(self.path / LOCK),
            calls=sums.spent["calls"],
            replayed=sums.spent["replayed"],
            failed=sums.spent["failed"],
            tokens=sums.spent["tokens"],
            cost=round(sums.cost, 6),
            unpriced=sums.spent["unpriced"],
            slow=tuple(sums.slow),
            errors=tuple(reversed(sums.errors)),
            noun="sample" if "task" in form["configuration"] else "picture",
            unscored=self._unscored,
        )

    def _described(self) -> JsonObject:
        """What `run.json` says."""
        self._description = read_description(self.path)
        return self._description

    def _observed(self) -> float | None:
        """Samples a minute, by what came while somebody looked."""
        now = time.monotonic()
        self._seen.append((now, self._sums.done))
        while self._seen[0][0] < now - WINDOW:
            self._seen.popleft()
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        return round(60 * (after - before) / (last - first), 1) if last > first and after > before else None

    def _found_scoring(self, task: str | None) -> Scorer | None:
        """How answers are scored, where that needs no model."""
        try:
            run = Run.open(self.path)
            engine = Engine(mode="replay", records=MemoryStore())
            scoring = task_of(run, task).of_run(run.configuration["options"], engine=engine).scorer()
        except ConfigError as error:  # nobody has agreed to run its Python
            self._unscored = f"{error.message} {error.hint}"
            return None
        except AskanceError:
            return None
        return replace(scoring, metrics=scoring.metrics[:1])

    def _new_lines(self) -> Iterator[JsonObject]:
        """The lines that are whole by now; a file that was replaced is read from its beginning."""
        try:
            file = (self.path / SAMPLES).open("rb")
        except FileNotFoundError:
            return
        with file:
            which, size = _which(file.fileno())
            number, start = self._file
            if which != number or size < start:
                self._sums, self._number, start = _Sums(), 0, 0
                self._seen.clear()
            file.seek(start)
            while (text := file.readline(LONGEST_LINE)).endswith(b"\n"):
                start, self._number = start + len(text), self._number + 1
                self._file = which, start
                line = self._line(text)
                if line is not None:
                    yield line
        if len(text) == LONGEST_LINE:  # a shorter one is still being written, or was torn by a kill
            raise too_long(self.path / SAMPLES, self._number + 1)

    def _line(self, text: bytes) -> JsonObject | None:
        """The content of a line; None for what a kill tore and a later start went on behind."""
        try:
            line: Any = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(line, dict) or not {"outcome", "links"} <= line.keys():
            return None
        shape = SampleLine if "sample" in line else PictureLine
        return read_line(text[:-1], shape, where=f"Line {self._number} of {str(self.path / SAMPLES)!r}")

    def _add(self, line: JsonObject) -> None:
        sums, meta = self._sums, line.get("meta", {})
        name = str(line.get("id", line.get("image")))
        sums.done += 1
        sums.outcomes[str(line["outcome"])] += 1
        if line["outcome"] != "answered":
            sums.errors.append(Unanswered(sample=name, outcome=line["outcome"], reason=line.get("reason")))
        tokens: Mapping[str, int] = meta.get("tokens", {})
        sums.spent.update(calls=meta.get("calls", 0), replayed=meta.get("replayed", 0), tokens=sum(tokens.values()))
        sums.spent["unpriced"] += bool(meta.get("calls")) and meta.get("cost") is None
        sums.cost += meta.get("cost") or 0.0
        link_of = {key: link for link, one in line["links"].items() for key in one["calls"]}
        link_of |= {key: link for link, key in meta.get("failed", {}).items()}
        self._add_tries(name, link_of, meta.get("tries", {}))

    def _add_tries(self, name: str, link_of: Mapping[str, str], tries: Mapping[str, list[Mapping[str, Any]]]) -> None:
        sums = self._sums
        attempts = [(link_of.get(key, ""), one) for key, several in tries.items() for one in several]
        sums.spent["failed"] += sum(one.get("error") is not None for _, one in attempts)
        slow = [
            SlowCall(sample=name, seconds=one["seconds"], error=one.get("error"), link=link) for link, one in attempts
        ]
        sums.slow = nlargest(SHOWN, [*sums.slow, *slow], key=lambda one: one.seconds)
        if attempts:
            sums.ends.append(max(float(one["at"]) + float(one["seconds"]) for _, one in attempts))
        newest = max(sums.ends, default=0.0)
        while sums.ends and sums.ends[0] < newest - WINDOW:
            sums.ends.popleft()

    async def _score(self, lines: list[JsonObject], scoring: Scorer) -> None:
        """Scores answers; where a model would have to judge them, nothing is scored before the end."""
        try:
            answers = [await scored(answer_of(line, self.path), scoring) for line in lines]
        except (CallError, UsageError):
            self._scoring = None
            return
        self._sums.answers += (answer.bare for answer in answers)
        if any(answer.unscored is not None for answer in answers):
            self._scoring = None

    def _headline(self) -> Figure | None:
        if self._scoring is None or not self._sums.answers:
            return None
        if self._figure[0] != self._sums.done:
            try:
                self._figure = self._sums.done, main_figure(self._sums.answers, self._scoring)
            except UsageError:  # a fault of the scoring is told by who scores, not by who watches
                self._scoring = None
        return self._figure[1]

    def _total(self, form: JsonObject) -> int | None:
        configuration: Mapping[str, Any] = form["configuration"]
        if "task" not in configuration:
            return len(configuration["samples"]) if "samples" in configuration else None
        return configuration["samples"]["count"] * configuration["epochs"]

    def _settled(self) -> bool:
        """Whether nothing was written behind the end: a run that is gone on with says so of its earlier end."""
        return _changed(self.path / DESCRIPTION) >= _changed(self.path / SAMPLES)

    def _touched(self) -> float:
        return max(_changed(self.path / name) for name in (DESCRIPTION, SAMPLES)) / 1e9


def _which(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_ino, status.st_size


def _changed(file: Path) -> int:
    """When a file was written last, in ns since the epoch; 0 where it is not there."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _held(lock: Path) -> bool | None:
    """Whether any process holds a lock on a file, by the system's list: a lock of ours could be in the writer's way."""
    try:
        inode = lock.stat().st_ino
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    return any(" FLOCK " in line and f":{inode} " in line for line in locks)


def _rate(ends: deque[float]) -> float | None:
    """Samples a minute, None where too few ended to tell."""
    if len(ends) < 2:
        return None
    span = max(ends) - min(ends)
    return round(60 * (len(ends) - 1) / span, 1) if span > 0 else None
