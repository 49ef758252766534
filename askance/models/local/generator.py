"""Generates the answers of a batch of rows; each row has its own end, its own random numbers and its own outcome.

A prefix that rows share is computed once, where the architecture allows it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.errors import OutOfMemory
from askance.models.local.batch_row import Completion, is_text
from askance.models.local.prefix_cache import (
    Prefix,
    PrefixCache,
    attention_window,
    compute_prefix,
    joined_cache,
    positions,
    prefix_groups,
)
from askance.models.local.runtime import BatchRunner, shortage
from askance.models.local.sampler import Draft, RowsDone, Sampler, SchemaGrammars

if TYPE_CHECKING:
    from askance.errors import AskanceError
    from askance.models.counters import Counters
    from askance.models.local.batch_row import BatchRow
    from askance.models.local.transformers_model import TransformersModel

RowOutcome: TypeAlias = "Completion | AskanceError"

_log = logging.getLogger("askance")


class TextGenerator:
    """Answers rows with one model, or weighs the text that they end with; used by one thread.

    Args:
        model: what answers.
        name: what to call it in messages.
        most: rows in a batch.
        share: whether common prefixes are computed once.
        counters: are counted up.
    """

    def __init__(self, model: TransformersModel, *, name: str, most: int, share: bool, counters: Counters) -> None:
        self._model = model
        self._name = name
        self._share = share and model.reuses_prefixes
        self._counters = counters
        self.drafts: Sequence[Draft] = []
        """The answers that are being generated."""
        self._batches: BatchRunner[BatchRow] = BatchRunner(
            model.torch, spec=name, most=most, out_of_memory=self._too_large, on_shortage=self._on_shortage
        )
        self._prefixes = PrefixCache()
        self._grammars: SchemaGrammars | None = None
        self._window = attention_window(model) if self._share else None
        self._warns = share and not model.reuses_prefixes

    @property
    def most(self) -> int:
        """Rows in a batch, at most; goes down where memory does not suffice."""
        return self._batches.most

    def run(self, rows: Sequence[BatchRow]) -> list[RowOutcome]:
        """The outcome of each of `rows`, in their order."""
        fitting: dict[object, list[BatchRow]] = {}
        for row in rows:
            fitting.setdefault((row.given is None, bool(row.pictures), row.shape), []).append(row)
        outcomes: dict[int, RowOutcome] = {}
        for alike in fitting.values():
            # Rows about the same pictures stand together.
            first = {row.pictures: place for place, row in reversed(list(enumerate(alike)))}
            ordered = sorted(alike, key=lambda row, first=first: first[row.pictures])
            make = self._answered if alike[0].given is None else self._weighed
            outcomes.update(zip(map(id, ordered), self._batches.outcomes(ordered, make), strict=True))
        return [outcomes[id(row)] for row in rows]

    def _answered(self, batch: Sequence[BatchRow]) -> list[Completion]:
        with self._model.torch.inference_mode():
            drafts = self.drafts = [self._draft(row) for row in batch]
            try:
                inputs, reused = self._inputs(batch)
                self._generate(batch, drafts, inputs)
            finally:
                self.drafts = []
        completions = [draft.completion(reused=count) for draft, count in zip(drafts, reused, strict=True)]
        self._counters.batches += 1
        self._counters.answers += len(batch)
        self._counters.pictures += sum(len(row.pictures) for row in batch)
        self._counters.prompt += sum(len(row.ids) for row in batch)
        self._counters.written += sum(each.tokens for each in completions)
        return completions

    def _weighed(self, batch: Sequence[BatchRow]) -> list[Completion]:
        """The log-probabilities of the text that each row ends with.

        Row by row: no place is padded, and so no architecture has to be told positions.
        """
        with self._model.torch.inference_mode():
            completions = [self._weighed_row(row) for row in batch]
        self._counters.batches += 1
        self._counters.encodes += sum(len(row.pictures) for row in batch)
        self._counters.pictures += sum(len(row.pictures) for row in batch)
        self._counters.prompt += sum(len(row.ids) for row in batch)
        return completions

    def _weighed_row(self, row: BatchRow) -> Completion:
        model, torch, count = self._model, self._model.torch, row.given or 0
        tokens = row.ids[len(row.ids) - count :]
        answering = model.model if row.pictures else model.text_model
        if model.model.config.is_encoder_decoder:
            prompt = replace(
                row, ids=row.ids[:-count], types={name: kinds[:-count] for name, kinds in row.types.items()}
            )
            labels = torch.tensor([tokens], device=model.device)
            logits = answering(**whole_prompts([prompt], model), labels=labels).logits[0]
        else:
            # Most architectures make the logits of the last places alone, which saves a vocabulary a token.
            named = "logits_to_keep" in signature(answering.forward).parameters
            few = {"logits_to_keep": count + 1} if named else {}
            logits = answering(**whole_prompts([row], model), **few).logits[0, -count - 1 : -1]
        logprobs = torch.log_softmax(logits.float(), dim=-1)
        values = logprobs[range(count), tokens].tolist()
        return Completion(
            text="",
            tokens=0,
            finish="stop",
            logprobs=tuple(
                {"token": self._decode([token], whole=True), "logprob": logprob}
                for token, logprob in zip(tokens, values, strict=True)
            ),
        )

    def _draft(self, row: BatchRow) -> Draft:
        model = self._model
        matcher = None
        if row.schema is not None:
            if self._grammars is None:
                vocabulary: int = model.text_model.get_output_embeddings().weight.shape[0]
                self._grammars = SchemaGrammars(model.tokenizer, vocabulary, model.ends)
            matcher = self._grammars.matcher(row.schema)
        generator = model.torch.Generator().manual_seed(row.params.seed)
        return Draft(row, matcher=matcher, generator=generator, ends=model.ends, decode=self._decode)

    def _decode(self, tokens: Sequence[int], *, whole: bool = False) -> str:
        return self._model.tokenizer.decode(
            list(tokens), skip_special_tokens=not whole, clean_up_tokenization_spaces=False
        )

    def _generate(self, batch: Sequence[BatchRow], drafts: Sequence[Draft], inputs: dict[str, Any]) -> None:
        """Runs the loop of transformers until every row is done."""
        model, torch, transformers = self._model, self._model.torch, self._model.runtime.transformers
        answering = model.model if batch[0].pictures else model.text_model
        answering.generate(
            **inputs,
            generation_config=model.generation_config(max_new_tokens=max(row.limit for row in batch)),
            logits_processor=transformers.LogitsProcessorList([Sampler(torch, drafts)]),
            stopping_criteria=transformers.StoppingCriteriaList([RowsDone(torch, drafts)]),
        )

    # --- prefixes ---

    def _inputs(self, batch: Sequence[BatchRow]) -> tuple[dict[str, Any], list[int]]:
        """The batch as tensors, and how many tokens of each row were found computed."""
        prefixes = self._prefixes_of(batch) if self._share else None
        if prefixes is None or not self._in_window(batch, [prefix for prefix, _ in prefixes]):
            self._warn_of_encodes(batch)
            self._counters.encodes += sum(len(row.pictures) for row in batch)
            return whole_prompts(batch, self._model), [0] * len(batch)
        reused = [0 if new else len(prefix.ids) for prefix, new in prefixes]
        self._counters.prefix_reused += sum(reused)
        return behind_prefixes(batch, [prefix for prefix, _ in prefixes], self._model), reused

    def _prefixes_of(self, batch: Sequence[BatchRow]) -> list[tuple[Prefix, bool]] | None:
        """The prefix of each row, and whether it was computed for this row; None where rows share nothing."""
        prefixes: dict[int, tuple[Prefix, bool]] = {}
        for group in prefix_groups(batch):
            prefix, new = self._prefixes.find(group.rows), False
            if prefix is None:
                if not group.length:
                    return None
                prefix, new = self._computed(group.rows[0], group.length), True
            for row in group.rows:
                prefixes[id(row)] = (prefix, new and row is group.rows[0])
        return [prefixes[id(row)] for row in batch]

    def _computed(self, row: BatchRow, length: int) -> Prefix:
        prefix = compute_prefix(row, length, self._model)
        self._prefixes.keep(row.pictures, prefix)
        self._counters.encodes += len(row.pictures)
        self._counters.prefix_computed += length
        return prefix

    def _in_window(self, batch: Sequence[BatchRow], prefixes: Sequence[Prefix]) -> bool:
        """Whether every layer sees all of each row: gaps between tokens count as tokens there."""
        if self._window is None:
            return True
        rest = max(len(row.ids) - len(prefix.ids) + row.limit for row, prefix in zip(batch, prefixes, strict=True))
        return max(len(prefix.ids) for prefix in prefixes) + rest < self._window

    def _warn_of_encodes(self, batch: Sequence[BatchRow]) -> None:
        if self._warns and batch[0].pictures:
            self._warns = False
            _log.warning(
                "%s: models of the kind %r have each picture computed anew for every question about it.",
                self._name,
                self._model.kind,
            )

    # --- memory ---

    def _on_shortage(self, size: int) -> None:
        self._prefixes.clear()
        self._counters.halved += size > 1

    def _too_large(self, row: BatchRow, error: Exception) -> OutOfMemory:
        failure = OutOfMemory(
            f"{self._name} has not the memory for one prompt of {len(row.ids)} tokens and an answer of up to "
            f"{row.limit}: {shortage(error, self._model.device)}.",
            hint="Allow a shorter answer (`max_tokens`), quantize the weights (`bits`), or see what else is held.",
        )
        failure.__cause__ = error
        return failure


# --- the tensors of one batch ---

Layout: TypeAlias = "Callable[[Sequence[int], int, int], list[int]]"
"""From the tokens of a row, a filler and the place of the row to a line of the batch."""


def whole_prompts(rows: Sequence[BatchRow], model: TransformersModel) -> dict[str, Any]:
    """Whole prompts, pictures included, padded on the left."""
    width = max(len(row.ids) for row in rows)

    def left(tokens: Sequence[int], filler: int, _: int) -> list[int]:
        return [filler] * (width - len(tokens)) + list(tokens)

    torch = model.torch
    inputs = {name: _joined(torch, [row.inputs[name] for row in rows], text=is_text(name)) for name in rows[0].inputs}
    return {**_texts(rows, left, model), **model.runtime.on_device(inputs)}


def behind_prefixes(rows: Sequence[BatchRow], prefixes: Sequence[Prefix], model: TransformersModel) -> dict[str, Any]:
    """What is left of each prompt behind its prefix; pictures are in the prefixes.

    All prefixes end at one column and all prompts at another; the gaps are masked.
    """
    cut = max(len(prefix.ids) for prefix in prefixes)
    width = cut + max(len(row.ids) - len(prefix.ids) for row, prefix in zip(rows, prefixes, strict=True))

    def around(tokens: Sequence[int], filler: int, place: int) -> list[int]:
        length = len(prefixes[place].ids)
        rest = tokens[length:]
        return [*[filler] * (cut - length), *tokens[:length], *[filler] * (width - cut - len(rest)), *rest]

    inputs = _texts(rows, around, model)
    places = [positions(row, model) for row in rows]
    if places[0] is not None:
        lines = [[line[0].tolist() for line in place] for place in places]
        inputs["position_ids"] = model.torch.tensor(
            [[around(lines[row][axis], 0, row) for row in range(len(rows))] for axis in range(len(lines[0]))],
            device=model.device,
        )
    return {**inputs, model.cache_argument: joined_cache(prefixes, model)}


def _texts(rows: Sequence[BatchRow], layout: Layout, model: TransformersModel) -> dict[str, Any]:
    """Tokens, their types and the mask."""

    def tensor(lines: Sequence[Sequence[int]], filler: int) -> Any:
        laid = [layout(line, filler, place) for place, line in enumerate(lines)]
        return model.torch.tensor(laid, device=model.device)

    types = {name: tensor([row.types[name] for row in rows], 0) for name in rows[0].types}
    mask = tensor([[1] * len(row.ids) for row in rows], 0)
    return {"input_ids": tensor([row.ids for row in rows], model.pad), "attention_mask": mask, **types}


def _joined(torch: Any, values: Sequence[Any], *, text: bool) -> Any:
    """One tensor; texts beside the prompt are padded on the right, as their encoders count places from the left."""
    if text:
        width = max(value.shape[-1] for value in values)
        values = [torch.nn.functional.pad(value, (0, width - value.shape[-1])) for value in values]
    return torch.cat(list(values))
