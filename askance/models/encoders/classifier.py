"""`bem:`: classifiers that say whether two answers to a question are equivalent, run by transformers.

    bem:FOLDER?label=1&device=auto&dtype=auto&batch=32

The form is that of BEM (Bulian and others, *Tomayto, Tomahto*, 2022): a BERT reads the candidate, the reference and the
question in this order, each closed by `[SEP]`, in segments 0, 1 and 2. A BERT that knows two segments alone, as the
usual ones do, has reference and question in the second one. The score is the probability of the class `label`.

Texts that are too long together are cut at the end, always the longest of the three. Weights are read from safetensors
files alone unless `pickled=true`. A folder without the classifier's own layer is refused, since transformers would fill
it with random numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from askance.chat import ModelId
from askance.errors import ConfigError, UsageError
from askance.models.encoders.records import BATCH, settings_in
from askance.models.local.folder import ModelFolder, find_folder, identity_of, is_identity, no_weights
from askance.models.local.runtime import BatchRunner, TorchRuntime, tokenizable
from askance.models.settings import Local
from askance.spec_grammar import one_of

if TYPE_CHECKING:
    from askance.chat import JsonObject

NEEDED = ("question", "reference")
"""What an answer is held against."""


class AnswerClassifier:
    """The probability that answers are equivalent to a reference answer; weights are loaded when first needed.

    Args:
        source: a folder, a name on the hub that was downloaded before, or the identity that records have.
        local: how it is run; by default 32 at a time.
        label: number of the class of equivalent answers.

    Raises:
        ConfigError: it is not on this machine, not whole, or no classifier.
    """

    def __init__(self, source: str, *, local: Local | None = None, label: int = 1) -> None:
        self.spec = f"bem:{source}"
        self.parameters: JsonObject = {"reads": ["candidate", "reference", "question"], "label": label}
        self._local = local or Local(batch=BATCH)
        self._label = label
        self._folder: ModelFolder | None = None
        name = source
        if not is_identity(source):
            self._folder = _classifier_in(source, self._local, self.spec)
            name = identity_of(self._folder, self._local).removeprefix("hf:")
        self.id = ModelId("bem", name)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="askance-bem")

    async def score_texts(self, about: Mapping[str, str], texts: Sequence[str]) -> list[float]:
        """The probability for each answer that it is equivalent to `reference`, as an answer to `question`.

        Raises:
            UsageError: `about` lacks one of the two, or only the identity of the weights is known.
            MissingExtra: torch or transformers is not installed.
            ConfigError: the weights cannot be loaded, or it tells other classes apart than two.
            ModelError: it does not fit into memory.
        """
        lacking = [name for name in NEEDED if name not in about]
        if lacking:
            raise UsageError(
                f"An answer is held against {' and '.join(NEEDED)}, and there is no {lacking[0]}.",
                hint="Give both in `about`.",
            )
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._scored, dict(about), list(texts))

    async def aclose(self) -> None:
        """Releases the weights."""
        self.__dict__.pop("_loaded", None)

    def _scored(self, about: Mapping[str, str], texts: Sequence[str]) -> list[float]:
        return self._loaded.run([(text, about["reference"], about["question"]) for text in texts])

    @cached_property
    def _loaded(self) -> _LoadedClassifier:
        if self._folder is None:
            raise no_weights(self.spec)
        return _LoadedClassifier(self._folder, self._local, spec=self.spec, label=self._label)


class _LoadedClassifier:
    """A classifier's weights, used by one thread."""

    def __init__(self, folder: ModelFolder, local: Local, *, spec: str, label: int) -> None:
        runtime = TorchRuntime(spec, local, dtype=folder.dtype_in(local.dtype))
        with runtime.loading():
            self._tokenizer = runtime.pretrained("AutoTokenizer", folder.path)
            self._model = runtime.weights("AutoModelForSequenceClassification", folder.path)
        self._torch, self._label = runtime.torch, label
        self._batches: BatchRunner[tuple[str, str, str]] = BatchRunner(runtime.torch, spec=spec, most=local.batch)
        self._longest = min(
            int(folder.config.get("max_position_embeddings", 512)), int(self._tokenizer.model_max_length)
        )
        self._segments = int(folder.config.get("type_vocab_size", 2))

    def run(self, triples: Sequence[tuple[str, str, str]]) -> list[float]:
        """The scores of candidate, reference and question, in their order.

        Raises:
            ModelError: one of them does not fit into memory.
        """
        return self._batches.run(triples, self._batch, length=lambda triple: sum(map(len, triple)))

    def _tokens(self, triple: Sequence[str]) -> tuple[list[int], list[int]]:
        """Numbers of the tokens, and of the segments that they stand in."""
        parts = [
            cast("list[int]", self._tokenizer(tokenizable(text), add_special_tokens=False)["input_ids"])
            for text in triple
        ]
        while sum(map(len, parts)) > max(self._longest - 1 - len(parts), 0):
            max(parts, key=len).pop()
        ids, segments = [int(self._tokenizer.cls_token_id)], [0]
        for place, part in enumerate(parts):
            ids += [*part, int(self._tokenizer.sep_token_id)]
            segments += [min(place, self._segments - 1)] * (len(part) + 1)
        return ids, segments

    def _batch(self, triples: Sequence[tuple[str, str, str]]) -> list[float]:
        some = [self._tokens(triple) for triple in triples]
        torch, width = self._torch, max(len(ids) for ids, _ in some)
        padding = int(self._tokenizer.pad_token_id or 0)

        def filled(rows: Sequence[Sequence[int]], value: int) -> Any:
            return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], device=self._model.device)

        tokens = {
            "input_ids": filled([ids for ids, _ in some], padding),
            "attention_mask": filled([[1] * len(ids) for ids, _ in some], 0),
        }
        if "token_type_ids" in self._tokenizer.model_input_names:
            tokens["token_type_ids"] = filled([segments for _, segments in some], 0)
        with torch.inference_mode():
            logits = self._model(**tokens).logits.float()
        return logits.softmax(dim=-1)[:, self._label].tolist()


def _classifier_in(source: str, local: Local, spec: str) -> ModelFolder:
    """The folder of a classifier of two classes.

    Raises:
        ConfigError: it is none, as far as its configuration says.
    """
    folder = find_folder(source, local, provider="bem")
    named = cast("Sequence[str]", folder.config.get("architectures") or ())
    if named and not any("SequenceClassification" in name for name in named):
        raise ConfigError(
            f"The model {spec!r} is a {named[0]}, and no classifier of texts.",
            hint="Give the folder of one that was trained to tell equivalent answers, as it was saved.",
        )
    classes = len(cast("Mapping[str, Any]", folder.config.get("id2label") or {})) or 2  # two are left out when saved
    if classes != 2:
        raise ConfigError(
            f"The classifier {spec!r} tells {classes} classes apart, and here it takes two.",
            hint="Give one that was trained to tell equivalent answers from others.",
        )
    return folder


def answer_classifier(rest: str) -> AnswerClassifier:
    """The scorer that the rest of a spec behind `bem:` describes.

    Raises:
        ConfigError: an unknown setting, or as for `AnswerClassifier`.
    """
    own = {"label": one_of("0", "1")}
    source, local, settings = settings_in(rest, provider="bem", local=Local(batch=BATCH), own=own)
    return AnswerClassifier(source, local=local, label=int(settings.get("label", 1)))
