"""What a model says of pictures, in the place of what is true where nobody has said that.

It stands in a file of the run's folder, so that a run that goes on writes negatives for the same statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.chat import JsonObject, key_of
from askance.documents import parse_json
from askance.errors import BadData, OverBudget, UsageError
from askance.evals.job import CountItem, Job, OnProgress, affordable
from askance.evals.negatives.option_sets import TrueStatements
from askance.evals.run_folder import write_lines
from askance.models.call_scope import Pending
from askance.models.capabilities import endpoint_key

if TYPE_CHECKING:
    from askance.chains import Chain, Given, Planner
    from askance.images import Image
    from askance.nodes import Result

STATEMENTS = "statements.jsonl"
"""File in the folder of a run: a line for each picture with the statement, the model that made it, and its calls."""

_OVER_BUDGET = "over budget"


@dataclass(kw_only=True)
class PictureStatements:
    """Pictures, and the chain whose answer about each is taken for true, such as that of `askance.chains.explain`.

    Args:
        images: by key, under which the files of negatives have them.
        chain: that is asked about each.

    Raises:
        UsageError: there is no picture.
    """

    images: Mapping[str, Image]
    chain: Chain
    lines: dict[str, JsonObject] = field(default_factory=dict[str, Any], init=False)
    """By key, what was said of a picture, who said it, and by which calls."""
    unread: Counter[str] = field(default_factory=Counter[str], init=False)
    """Pictures that have no statement, by outcome, or `over budget`."""
    waiting: int = field(default=0, init=False)
    """Pictures of which a plan has counted the calls, and does not know the answers."""

    def __post_init__(self) -> None:
        if not self.images:
            raise UsageError("There are no pictures to write negatives for.", hint="Name a folder that has some.")

    def __len__(self) -> int:
        return len(self.images)

    def form(self) -> JsonObject:
        """What decides the statements, for the configuration of a run.

        Raises:
            BadImage: a picture cannot be read.
        """
        nodes = self.chain.nodes
        return {
            "count": len(self),
            "digest": key_of("pictures", {key: image.sha256 for key, image in self.images.items()}),
            "chain": self.chain.get_name(),
            "models": [node.model.form() for node in nodes],
            "prompts": {prompt.path.name: prompt.digest for node in nodes for prompt in node.prompts_in_use},
        }

    @property
    def true(self) -> Sequence[TrueStatements]:
        """The statements so far, a picture each."""
        return [TrueStatements.of(key, [self.lines[key]["statement"]]) for key in self.images if key in self.lines]

    @property
    def calls(self) -> Sequence[str]:
        """Keys of the records that the statements rest on."""
        calls = [call for line in self.lines.values() for call in line["calls"]]
        return [*calls, *(endpoint_key(node.model.id) for node in self.chain.nodes)]

    async def read(self, folder: Path, on_progress: OnProgress | None = None) -> None:
        """Asks about each picture; those of which `folder` has a statement are not asked about again.

        Pictures without an answer are counted in `unread`. What was answered is kept in `folder`, however this ends.

        Args:
            folder: of the run.
            on_progress: called after every picture.
        """
        finished = {line["image"]: line for line in _lines(folder / STATEMENTS) if line["image"] in self.images}
        job = self.job().kept_in(finished, self._keep)
        job.tell(on_progress, "images")
        self.lines |= finished
        try:
            await job.run()
        finally:
            write_lines(folder / STATEMENTS, (self.lines[key] for key in self.images if key in self.lines))
        self.unread += Counter({_OVER_BUDGET: len(job.left)})

    def job(self) -> Job[str, Result[Any], None]:
        """What is asked about each picture, by its key, as a job; the answers stand in `lines` then."""
        self.lines, self.unread, self.waiting = {}, Counter(), 0
        return Job(items=[*self.images], stream=self._ask, keep=self._keep, counts=self._counting)

    async def _ask(self, keys: Sequence[str]) -> AsyncGenerator[Result[Any], None]:
        models = [*dict.fromkeys(node.model for node in self.chain.nodes)]
        for model in models if keys else ():
            await model.output_mode()
        inputs = affordable(map(self._given, keys), models[0].engine if models else None)
        async with aclosing(self.chain.read_all(inputs)) as readings:
            async for reading in readings:
                yield reading[self.chain.target.name]

    @contextmanager
    def _counting(self, planner: Planner) -> Generator[CountItem[str]]:
        """A context in which a planner counts what is asked about pictures."""
        walk = planner.walk(self.chain)

        async def count(key: str) -> None:
            result = (await walk.read(self._given(key)))[self.chain.target.name]
            if _statement_text(result) is not None:
                self._keep(key, result)
            else:
                self.waiting += result.error == Pending.__name__ or result.outcome == "skipped"

        with planner.counting():
            yield count

    def _given(self, key: str) -> Given:
        return {"image": self.images[key], "name": key}

    def _keep(self, key: str, result: Result[Any]) -> None:
        if (text := _statement_text(result)) is None:
            self.unread[_OVER_BUDGET if result.error == OverBudget.__name__ else result.outcome] += 1
            return
        self.lines[key] = {
            "image": key,
            "statement": text,
            "by": ", ".join(dict.fromkeys(str(node.model.id) for node in self.chain.nodes)),
            "calls": [call.key for call in result.calls],
        }

    async def aclose(self) -> None:
        """Closes the models."""
        for model in dict.fromkeys(node.model for node in self.chain.nodes):
            await model.aclose()


def _statement_text(result: Result[Any]) -> str | None:
    """The answer of a chain as a statement; None where there is none."""
    text = str(result.value).strip() if result.answered else ""
    return text or None


def _lines(file: Path) -> Sequence[JsonObject]:
    """The lines of the file of statements, if it is there.

    Raises:
        BadData: it is not what `PictureStatements.read` writes.
    """
    lines: list[JsonObject] = []
    try:
        for text in file.read_text(encoding="utf-8").splitlines():
            line = parse_json(text)
            lines.append({name: line[name] for name in ("image", "statement", "by", "calls")})
            if not line["statement"].strip() or not all(isinstance(key, str) for key in line["calls"]):
                raise ValueError(text)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadData(
            f"The statements {str(file)!r} cannot be read.", hint="Take the file away; the pictures are read again."
        ) from error
    return lines
