"""Batches: rows side by side through the model, each with its own end, its own draws and its own fate.

What rows begin with alike is computed once, where the architecture allows it. A batch that does not fit into memory is
halved, and so are those after it.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.errors import AskanceError, ModelError, OutOfMemory
from askance.models.local.assembly import behind, plain
from askance.models.local.drawing import Chooser, Draft, Stop
from askance.models.local.grammar import Grammars
from askance.models.local.memory import is_no_room, shortage
from askance.models.local.prefixes import Prefix, Prefixes, compute, window
from askance.models.local.sharing import groups

if TYPE_CHECKING:
    from askance.models.counters import Counters
    from askance.models.local.loaded import Loaded
    from askance.models.local.rows import Row, Written

Came: TypeAlias = "Written | Exception"

_log = logging.getLogger("askance")


class Runner:
    """Answers rows with one model; used by one thread.

    Args:
        loaded: the model.
        name: what to call it in messages.
        most: rows side by side.
        share: whether common beginnings are computed once.
        counters: are counted up.
    """

    def __init__(self, loaded: Loaded, *, name: str, most: int, share: bool, counters: Counters) -> None:
        self.most = most
        self._loaded = loaded
        self._name = name
        self._share = share and loaded.shares
        self._counters = counters
        self.drafts: Sequence[Draft] = []
        """The answers that are being written."""
        self._prefixes = Prefixes()
        self._grammars: Grammars | None = None
        self._window = window(loaded) if self._share else None
        self._tell = share and not loaded.shares

    def run(self, rows: Sequence[Row]) -> list[Came]:
        """What came of each of `rows`: what was written, or the error that stands for it."""
        came: dict[int, Came] = {}
        for batch in self._batches(rows):
            came.update(zip(map(id, batch), self._tried(batch), strict=True))
        return [came[id(row)] for row in rows]

    def _batches(self, rows: Sequence[Row]) -> list[list[Row]]:
        """Rows that can go side by side; those about the same pictures stand together."""
        fitting: dict[object, list[Row]] = {}
        for row in rows:
            fitting.setdefault((bool(row.pictures), row.shape), []).append(row)
        found: list[list[Row]] = []
        for alike in fitting.values():
            first = {row.pictures: place for place, row in reversed(list(enumerate(alike)))}
            ordered = sorted(alike, key=lambda row, first=first: first[row.pictures])
            found += [ordered[start : start + self.most] for start in range(0, len(ordered), self.most)]
        return found

    def _tried(self, batch: Sequence[Row]) -> list[Came]:
        """As `_answered`; where the batch does not go through as a whole, by halves."""
        if 1 <= self.most < len(batch):  # there was no room for so many a moment ago
            return [came for part in _halves(batch) for came in self._tried(part)]
        try:
            return self._answered(batch)
        except Exception as error:  # noqa: BLE001  # the model's code may raise anything; the other rows go on
            failure: Exception = error
        no_room = is_no_room(failure)
        if no_room:
            self._free()
        if len(batch) == 1:
            return [self._too_large(batch[0], failure) if no_room else self._failed(failure)]
        if no_room:
            self._halve(len(batch))
        return [came for part in _halves(batch) for came in self._tried(part)]

    def _answered(self, batch: Sequence[Row]) -> list[Came]:
        with self._loaded.torch.inference_mode():
            drafts = self.drafts = [self._draft(row) for row in batch]
            try:
                inputs, reused = self._inputs(batch)
                self._write(batch, drafts, inputs)
            finally:
                self.drafts = []
        written = [draft.written(reused=count) for draft, count in zip(drafts, reused, strict=True)]
        self._counters.batches += 1
        self._counters.answers += len(batch)
        self._counters.pictures += sum(len(row.pictures) for row in batch)
        self._counters.prompt += sum(len(row.ids) for row in batch)
        self._counters.written += sum(each.tokens for each in written)
        return list(written)

    def _draft(self, row: Row) -> Draft:
        loaded, torch = self._loaded, self._loaded.torch
        matcher = None
        if row.schema is not None:
            if self._grammars is None:
                vocabulary: int = loaded.speaker.get_output_embeddings().weight.shape[0]
                self._grammars = Grammars(loaded.tokenizer, vocabulary, loaded.ends)
            matcher = self._grammars.matcher(row.schema)
        generator = torch.Generator().manual_seed(row.choice.seed)
        return Draft(row, matcher=matcher, generator=generator, ends=loaded.ends, decode=self._decode)

    def _decode(self, tokens: Sequence[int], *, whole: bool = False) -> str:
        return self._loaded.tokenizer.decode(
            list(tokens), skip_special_tokens=not whole, clean_up_tokenization_spaces=False
        )

    def _inputs(self, batch: Sequence[Row]) -> tuple[dict[str, Any], list[int]]:
        """The batch as tensors; and how many tokens of each row were found computed."""
        prefixes = self._found(batch) if self._share else None
        if prefixes is None or not self._in_sight(batch, prefixes):
            self._say_plain(batch)
            self._counters.encodes += sum(len(row.pictures) for row in batch)
            return plain(batch, self._loaded), [0] * len(batch)
        reused = [0 if new else len(prefix.ids) for prefix, new in prefixes]
        self._counters.prefix_reused += sum(reused)
        return behind(batch, [prefix for prefix, _ in prefixes], self._loaded), reused

    def _found(self, batch: Sequence[Row]) -> list[tuple[Prefix, bool]] | None:
        """The beginning of each row, and whether it was computed for this row; None where rows share nothing."""
        found: dict[int, tuple[Prefix, bool]] = {}
        for group in groups(batch):
            prefix, new = self._prefixes.find(group.rows), False
            if prefix is None:
                if not group.length:
                    return None
                prefix, new = self._computed(group.rows[0], group.length), True
            for row in group.rows:
                found[id(row)] = (prefix, new and row is group.rows[0])
        return [found[id(row)] for row in batch]

    def _computed(self, row: Row, length: int) -> Prefix:
        prefix = compute(row, length, self._loaded)
        self._prefixes.keep(row.pictures, prefix)
        self._counters.encodes += len(row.pictures)
        self._counters.prefix_computed += length
        return prefix

    def _in_sight(self, batch: Sequence[Row], prefixes: Sequence[tuple[Prefix, bool]]) -> bool:
        """Whether no layer loses sight of anything: gaps between tokens count as tokens there."""
        if self._window is None:
            return True
        rest = max(len(row.ids) - len(prefix.ids) + row.limit for row, (prefix, _) in zip(batch, prefixes, strict=True))
        return max(len(prefix.ids) for prefix, _ in prefixes) + rest < self._window

    def _say_plain(self, batch: Sequence[Row]) -> None:
        if self._tell and batch[0].pictures:
            self._tell = False
            _log.warning(
                "%s: models of the kind %r have each picture computed anew for every question about it.",
                self._name,
                self._loaded.kind,
            )

    def _write(self, batch: Sequence[Row], drafts: Sequence[Draft], inputs: dict[str, Any]) -> None:
        """Has the loop of transformers run until every row is done."""
        transformers: Any = import_module("transformers")
        loaded, torch = self._loaded, self._loaded.torch
        model = loaded.model if batch[0].pictures else loaded.speaker
        model.generate(
            **inputs,
            generation_config=loaded.structure(max_new_tokens=max(row.limit for row in batch)),
            logits_processor=transformers.LogitsProcessorList([Chooser(torch, drafts)]),
            stopping_criteria=transformers.StoppingCriteriaList([Stop(torch, drafts)]),
        )

    def _free(self) -> None:
        """Lets go of everything but the weights."""
        self._prefixes.clear()
        gc.collect()
        if self._loaded.torch.cuda.is_available():
            self._loaded.torch.cuda.empty_cache()

    def _halve(self, size: int) -> None:
        self._counters.halved += 1
        self.most = max(1, min(self.most, size // 2))
        _log.warning(
            "%s: a batch of %d did not fit into memory; batches have at most %d from now on.",
            self._name,
            size,
            self.most,
        )

    def _too_large(self, row: Row, error: Exception) -> OutOfMemory:
        failure = OutOfMemory(
            f"{self._name} has not the memory for one prompt of {len(row.ids)} tokens and an answer of up to "
            f"{row.limit}: {shortage(error, self._loaded.device)}.",
            hint="Allow a shorter answer (`max_tokens`), press the weights (`bits`), or see what else is held.",
        )
        failure.__cause__ = error
        return failure

    def _failed(self, error: Exception) -> Exception:
        if isinstance(error, AskanceError):
            return error
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        failure = ModelError(f"{self._name} failed while it wrote: {said}")
        failure.__cause__ = error
        return failure


def _halves(batch: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    middle = len(batch) // 2
    return batch[:middle], batch[middle:]
