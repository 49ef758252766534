"""Answers that are held to a JSON Schema while they are written, by llguidance: no other token can be chosen."""

from __future__ import annotations

import json
from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING, Any

from askance.errors import BadRequest, MissingExtra

if TYPE_CHECKING:
    from askance.chat import JsonObject

_OPTIONS = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""Blanks stand where most JSON has them and nowhere else, or a small model writes nothing else."""


class Grammars:
    """Makes what holds an answer to its schema, for the vocabulary of one tokenizer.

    Args:
        tokenizer: of transformers, a fast one.
        vocabulary: tokens that the model scores; often more than the tokenizer has.
        ends: tokens that end an answer.
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
                "The tokenizer of this model is of a kind that answers cannot be held to a schema with.",
                hint='Ask otherwise: `protocol = "prompted"`.',
            ) from error

    def matcher(self, schema: JsonObject) -> Any:
        """What follows one answer to `schema` token by token.

        Raises:
            BadRequest: the schema says what cannot be held.
        """
        kind: Any = self._library.LLMatcher
        try:
            grammar = kind.grammar_from_json_schema(json.dumps(schema), defaults=_OPTIONS)
            matcher = kind(self._tokens, grammar, log_level=0)
            wrong = matcher.get_error()
        except Exception as error:  # noqa: BLE001  # whatever it says goes into the message
            wrong, matcher = str(error), None
        if wrong:
            said = " ".join(str(wrong).split())[:200]
            raise BadRequest(
                f"Answers cannot be held to this schema: {said}", hint='Ask otherwise: `protocol = "prompted"`.'
            )
        return matcher
