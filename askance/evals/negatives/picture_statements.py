"""What a model says of pictures, in the place of what is true where nobody has said that.

It stands in a file of the run's folder, so that a run that goes on writes negatives for the same statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.chat import key_of
from askance.documents import parse_json
from askance.errors import BadData, OverBudget, UsageError
from askance.evals.negatives.option_sets import TrueStatements
from askance.evals.run_folder import write_lines
from askance.models.call_scope import Pending
from askance.models.capabilities import endpoint_key

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.chains.planner import ChainWalk
    from askance.chat import JsonObject
    from askance.images import Image
    from askance.nodes import Result

STATEMENTS = "statements.jsonl"
"""File in the folder of a run: a line for each picture with the statement, the model that made it, and its calls."""


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
    unread: Counter[str] = field(default_factory=Counter[str], init=False)
    """Pictures that have no statement, by outcome, or `over budget`."""
    calls: list[str] = field(default_factory=list[str], init=False)
    """Keys of the records that the statements rest on."""

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

    async def read(self, folder: Path) -> Sequence[TrueStatements]:
        """The statements, a picture each; those that `folder` has are not asked for again.

        Pictures without an answer are counted in `unread`. What was answered is kept in `folder`, however this ends.
        """
        lines = {line["image"]: line for line in _lines(folder / STATEMENTS) if line["image"] in self.images}
        todo = [key for key in self.images if key not in lines]
        self.unread.clear()
        try:
            await self._ask(todo, lines)
        finally:
            write_lines(folder / STATEMENTS, (lines[key] for key in self.images if key in lines))
        self.calls = [call for line in lines.values() for call in line["calls"]]
        self.calls += [endpoint_key(node.model.id) for node in self.chain.nodes]
        return [TrueStatements.of(key, [lines[key]["statement"]]) for key in self.images if key in lines]

    async def _ask(self, keys: Sequence[str], lines: dict[str, JsonObject]) -> None:
        """Asks the chain about pictures, and adds a line for each that has an answer."""
        target, nodes = self.chain.target.name, self.chain.nodes
        if not keys:
            return
        for model in dict.fromkeys(node.model for node in nodes):
            await model.output_mode()
        asked: Iterable[Any] = ({"image": self.images[key], "name": key} for key in keys)
        async with aclosing(self.chain.read_all(asked)) as readings:
            for key in keys:
                result = (await anext(readings))[target]
                if (text := _text(result)) is None:
                    self.unread["over budget" if result.error == OverBudget.__name__ else result.outcome] += 1
                    continue
                lines[key] = {
                    "image": key,
                    "statement": text,
                    "by": ", ".join(dict.fromkeys(str(node.model.id) for node in nodes)),
                    "calls": [call.key for call in result.calls],
                }

    async def planned(self, walk: ChainWalk) -> tuple[Sequence[TrueStatements], int]:
        """What `read` would ask, counted by a walk through the chain.

        Returns:
            The statements that are on record, and how many more there would be at most.
        """
        known: list[TrueStatements] = []
        later = 0
        for key, image in self.images.items():
            result = (await walk.read({"image": image, "name": key}))[self.chain.target.name]
            if (text := _text(result)) is not None:
                known.append(TrueStatements.of(key, [text]))
            elif result.error == Pending.__name__ or result.outcome == "skipped":
                later += 1
        return known, later

    async def aclose(self) -> None:
        """Closes the models."""
        for model in dict.fromkeys(node.model for node in self.chain.nodes):
            await model.aclose()


def _text(result: Result[Any]) -> str | None:
    """The answer of a chain as a statement; None where there is none."""
    text = str(result.value).strip() if result.answered else ""
    return text or None


def _lines(file: Path) -> Sequence[JsonObject]:
    """The lines of the file of statements, if it is there.

    Raises:
        BadData: it is not what `PictureStatements.read` writes.
    """
    found: list[JsonObject] = []
    try:
        for text in file.read_text(encoding="utf-8").splitlines():
            line = parse_json(text)
            found.append({name: line[name] for name in ("image", "statement", "by", "calls")})
            if not line["statement"].strip() or not all(isinstance(key, str) for key in line["calls"]):
                raise ValueError(text)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadData(
            f"The statements {str(file)!r} cannot be read.", hint="Take the file away; the pictures are read again."
        ) from error
    return found
