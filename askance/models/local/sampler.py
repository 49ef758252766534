"""How the next token is chosen: one logits processor in the loop of transformers decides for every row of a batch.

A row has its own generator and draws one random number a token, so that a seed gives the same draws in any batch.
Log-probabilities are those of the model, before temperature, penalty and schema. An answer that is held to a JSON
Schema is followed by llguidance, and no token is chosen that the schema does not allow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from askance.errors import BadRequest, MissingExtra, ModelError
from askance.models.local.batch_row import BatchRow, Completion, SamplingParams

if TYPE_CHECKING:
    from askance.chat import FinishReason, JsonObject

Decode = Callable[..., str]
"""Tokens to text; `whole=True` writes out the special ones too."""

_CHARACTER_TOKENS = 4
"""Most tokens that one character takes, where a tokenizer falls back to bytes."""


class Draft:
    """The answer of one row while it is written.

    Args:
        row: what is answered.
        matcher: holds it to its schema; None is free.
        generator: draws for this row alone.
        ends: tokens that end an answer.
        decode: tokens to text.
    """

    def __init__(self, row: BatchRow, *, matcher: Any, generator: Any, ends: Collection[int], decode: Decode) -> None:
        self.row = row
        self.matcher = matcher
        self.generator = generator
        self.tokens: list[int] = []
        self.logprobs: list[Mapping[str, Any]] = []
        self.finish: FinishReason | None = None
        self._ended = 0
        self.ends = ends
        self._decode = decode
        self._stops = row.request.sampling.stop
        self._longest = _CHARACTER_TOKENS * (max(map(len, self._stops), default=0) + 1)

    @property
    def done(self) -> bool:
        return self.finish is not None or self.row.abandoned

    def append(self, token: int) -> None:
        """Puts `token` behind the others; may end the answer."""
        if token in self.ends:
            self._ended = 1
            self.finish = "stop"
            return
        self.tokens.append(token)
        if self.matcher is not None:
            self.matcher.consume_token(token)
        if self._stopped() or (self.matcher is not None and self.matcher.is_stopped()):
            self.finish = "stop"
        elif len(self.tokens) >= self.row.limit:
            self.finish = "length"

    def text_of(self, token: int) -> str:
        return self._decode([token], whole=True)

    def _stopped(self) -> bool:
        if not self._stops:
            return False
        tail = self._decode(self.tokens[-self._longest :])
        return any(stop in tail for stop in self._stops)

    def completion(self, *, reused: int) -> Completion:
        """The answer as it stands, cut before what stopped it."""
        text = self._decode(self.tokens)
        for stop in self._stops:
            text = text.partition(stop)[0]
        if self.finish != "stop":
            text = text.rstrip("\ufffd")  # half a character
        return Completion(
            text=text,
            tokens=len(self.tokens) + self._ended,
            finish=self.finish or "length",
            logprobs=tuple(self.logprobs),
            reused=reused,
        )


class Sampler:
    """Chooses the next token of each row; the loop calls it with the scores of all rows."""

    def __init__(self, torch: Any, drafts: Sequence[Draft]) -> None:
        self._torch = torch
        self._drafts = drafts

    def __call__(self, _input_ids: Any, scores: Any) -> Any:
        """Scores of which only those of the chosen tokens are finite.

        Raises:
            ModelError: a row's scores are no numbers.
        """
        torch = self._torch
        free = [place for place, draft in enumerate(self._drafts) if not draft.done]
        self._check(scores, free)
        weighed = scores.clone()
        for place in free:
            self._apply(weighed[place], self._drafts[place])
        chosen = weighed.argmax(dim=-1)
        for place in free:
            params = self._drafts[place].row.params
            if params.temperature > 0:
                chosen[place] = draw(weighed[place], params, torch=torch, generator=self._drafts[place].generator)
        tokens: list[int] = chosen.tolist()
        for place in free:
            draft = self._drafts[place]
            if draft.row.request.sampling.logprobs is not None and tokens[place] not in draft.ends:
                self._note(draft, scores[place], tokens[place])
            draft.append(tokens[place])
        return torch.full_like(scores, -torch.inf).scatter_(1, chosen[:, None], 0.0)

    def _check(self, scores: Any, free: Sequence[int]) -> None:
        broken: list[bool] = scores.isnan().any(dim=-1).tolist()
        place = next((place for place in free if broken[place]), None)
        if place is not None:
            count = len(self._drafts[place].tokens)
            raise ModelError(
                f"The model's scores for token {count + 1} are no numbers (NaN).",
                hint='Hold the weights in another type, such as `local = { dtype = "float32" }`.',
            )

    def _apply(self, scores: Any, draft: Draft) -> None:
        """Applies penalty and schema to the `scores` of one row, in place."""
        torch, penalty = self._torch, draft.row.params.repetition_penalty
        if penalty != 1:
            seen = torch.tensor(sorted({*draft.row.ids, *draft.tokens}), device=scores.device)
            seen = seen[seen < scores.shape[0]]
            old = scores[seen]
            scores[seen] = torch.where(old < 0, old * penalty, old / penalty)
        if draft.matcher is not None:
            packed = torch.frombuffer(bytearray(draft.matcher.compute_bitmask()), dtype=torch.uint8)
            allowed = (packed[:, None] >> torch.arange(8) & 1).bool().flatten()[: scores.shape[0]]
            scores.masked_fill_(~allowed.to(scores.device), -torch.inf)

    def _note(self, draft: Draft, scores: Any, token: int) -> None:
        count = draft.row.request.sampling.logprobs or 0
        logprobs = self._torch.log_softmax(scores.float(), dim=-1)
        entry: dict[str, Any] = {"token": draft.text_of(token), "logprob": float(logprobs[token])}
        if count:
            best = logprobs.topk(min(count, logprobs.shape[0]))
            top: dict[str, float] = {}
            for value, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                top.setdefault(draft.text_of(place), value)
            entry["top"] = top
        draft.logprobs.append(entry)


class RowsDone:
    """Tells the loop of transformers which rows are done."""

    def __init__(self, torch: Any, drafts: Sequence[Draft]) -> None:
        self._torch = torch
        self._drafts = drafts

    def __call__(self, tokens: Any, *_: Any, **__: Any) -> Any:
        return self._torch.tensor([draft.done for draft in self._drafts], device=tokens.device)


def draw(scores: Any, params: SamplingParams, *, torch: Any, generator: Any) -> int:
    """A token drawn from the scores of one row: one number of its generator, held against the sums of the odds."""
    odds = (scores.float() / params.temperature).cpu().double().softmax(dim=-1)
    if params.top_k > 0:
        odds[odds < odds.topk(min(params.top_k, odds.shape[0])).values[-1]] = 0
    if params.min_p > 0:
        odds[odds < params.min_p * odds.max()] = 0
    if params.top_p < 1:
        falling = odds.sort(descending=True).values
        # The token that brings the sum to `top_p` stays.
        within = int((falling.cumsum(dim=-1) < params.top_p * odds.sum()).sum())
        odds[odds < falling[min(within, falling.shape[0] - 1)]] = 0
    # In the order of the vocabulary: rounding, which depends on the batch, moves no token past another.
    sums = odds.cumsum(dim=-1)
    point = torch.rand((), generator=generator, dtype=torch.float64) * sums[-1]
    place = int(torch.searchsorted(sums, point, right=True))
    return min(place, int(odds.nonzero()[-1]))


_PUNCTUATION = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""Blanks stand where most JSON has them and nowhere else, or a small model writes nothing else."""


class SchemaGrammars:
    """Makes the grammars that hold answers to a JSON Schema, for the vocabulary of one tokenizer.

    Args:
        tokenizer: of transformers, a fast one.
        vocabulary: tokens that the model scores; often more than the tokenizer has.
        ends: tokens that end an answer.

    Raises:
        MissingExtra: llguidance is not installed.
        BadRequest: it does not know this kind of tokenizer.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, ends: Collection[int]) -> None:
        try:
            self._library: Any = import_module("llguidance")
            bridge: Any = import_module("llguidance.hf")
        except ImportError as error:
            raise MissingExtra(
                "Holding answers to a JSON schema needs llguidance, which is not installed.",
                hint="pip install 'askance[local]'; or ask otherwise: `protocol = \"prompted\"`.",
            ) from error
        try:
            self._tokens: Any = bridge.from_tokenizer(tokenizer, n_vocab=vocabulary, eos_token=sorted(ends))
        except Exception as error:
            raise BadRequest(
                "With the tokenizer of this model, answers cannot be held to a schema.",
                hint='Ask otherwise: `protocol = "prompted"`.',
            ) from error

    def matcher(self, schema: JsonObject) -> Any:
        """What follows one answer to `schema` token by token.

        Raises:
            BadRequest: llguidance does not know what the schema says.
        """
        kind: Any = self._library.LLMatcher
        try:
            grammar = kind.grammar_from_json_schema(json.dumps(schema), defaults=_PUNCTUATION)
            matcher = kind(self._tokens, grammar, log_level=0)
            wrong = matcher.get_error()
        except Exception as error:  # noqa: BLE001  # whatever it says goes into the message
            wrong, matcher = str(error), None
        if wrong:
            reason = " ".join(str(wrong).split())[:200]
            raise BadRequest(
                f"Answers cannot be held to this schema: {reason}", hint='Ask otherwise: `protocol = "prompted"`.'
            )
        return matcher
