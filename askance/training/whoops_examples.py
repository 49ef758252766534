"""Conversations about weird images, in the six formats of the WHOOPS! paper (appendix A.2, Table 4).

One model learns all of them at once. Each image is in the test part of one of five folds, as in the suite; the next
fold's test part is for validation, so that 60, 20 and 20 percent of the images train, validate and test (section 5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from askance.errors import UsageError
from askance.evals.suite.selection import FOLDS, fold_of
from askance.evals.suite.shuffle import option_order
from askance.evals.whoops import Whoops, read_pairs
from askance.evals.whoops.identify import PAIRS
from askance.evals.whoops.matching import Pairs, pairs_of
from askance.training.training_set import ChatExample, MadeSet, Source, Split

if TYPE_CHECKING:
    from askance.evals.whoops import Pair, WeirdImage
    from askance.images import Image

LICENCE = (
    "WHOOPS! was made to test models. Its authors forbid to train commercial models on it, and keep the rights to the "
    "images."
)
IDENTIFY = "identify"
NO_PAIRS = "Identifying is left out: the pairs of a weird and a normal image are not published, and none are here"
MATCHING = "A model that sees nothing reaches 94 % in matching once it is trained (Table 2): publish no figure of that"


def whoops_set(
    folder: str | Path,
    *,
    fold: int,
    seed: int = 0,
    pairs: str | Path | None = None,
    matching: Pairs = "same-place",
) -> MadeSet:
    """The conversations of one fold.

    Args:
        folder: of the data set.
        fold: whose test images are in the split `test`, 0 to 4.
        seed: of the folds, as the suite's, and of the order of captions.
        pairs: folder of pairs of weird and normal images; by default `pairs` of the folder, if it is there.
        matching: which captions are held against each other.

    Raises:
        BadData: the folder or the pairs cannot be read.
        UsageError: there is no such fold, or there are too few images.
    """
    if fold not in range(FOLDS):
        raise UsageError(f"There is no fold {fold}.", hint=f"Folds are 0 to {FOLDS - 1}.")
    data = Whoops.open(folder)
    found = _pairs(Path(folder), pairs, {entry.id: entry for entry in data.entries})
    of_images = fold_of([entry.id for entry in data.entries], seed=seed)
    of_pairs = fold_of([pair.id for pair in found], seed=seed) if found else {}
    splits: dict[Split, list[ChatExample]] = {"train": [], "validation": [], "test": []}
    left_out = Counter[str]()
    for name, image, conversation in _conversations(data, found, seed=seed, matching=matching):
        own = of_pairs if conversation.task == IDENTIFY else of_images
        split = _split(own[name], fold)
        if image is None:
            left_out["the folder has no picture of it"] += 1
        elif any(_split(each[name], fold) != split for each in (of_images, of_pairs) if name in each):
            left_out["another task has its image in another split of the fold"] += 1
        else:
            splits[split].append(_example(name, image, conversation, fold=fold))
    tasks = Counter(example.meta["task"] for examples in splits.values() for example in examples)
    origin = {"command": "whoops", "fold": fold, "seed": seed, "matching": matching, "tasks": dict(tasks)}
    notes = (*(() if found else (NO_PAIRS,)), MATCHING)
    return MadeSet(splits, Source(origin=origin, licences=(LICENCE,), left_out=left_out, notes=notes))


def _split(place: int, fold: int) -> Split:
    return "test" if place == fold else "validation" if place == (fold + 1) % FOLDS else "train"


def _pairs(folder: Path, pairs: str | Path | None, entries: Mapping[str, WeirdImage]) -> tuple[Pair, ...]:
    place = folder / PAIRS if pairs is None else Path(pairs)
    return read_pairs(place, entries) if pairs is not None or place.is_dir() else ()


class _Conversation(NamedTuple):
    task: str
    question: str
    answer: str


def _conversations(
    data: Whoops, pairs: Iterable[Pair], *, seed: int, matching: Pairs
) -> Iterator[tuple[str, Image | None, _Conversation]]:
    """Each conversation with the name and the picture of its image."""
    for entry in data.entries:
        image = entry.load()
        yield from ((entry.id, image, each) for each in _of_entry(entry, seed=seed, matching=matching))
    for pair in pairs:
        for kind, image in (("weird", pair.weird), ("normal", pair.normal)):
            yield pair.id, image, _Conversation(IDENTIFY, "Is this normal or weird?", kind)


def _of_entry(entry: WeirdImage, *, seed: int, matching: Pairs) -> Iterator[_Conversation]:
    """The conversations about one image, in the words of Table 4."""
    for question, answer in entry.questions:
        yield _Conversation("vqa", f"Question: {question}", answer)
    for caption in entry.captions:
        yield _Conversation("captioning", "Describe the image.", caption)
    for name, detailed, less, _ in pairs_of(entry, matching):
        shown = option_order((detailed, less), seed=seed, key=f"{entry.id}#{name}", order=1)
        letter = "AB"[shown.index(detailed)]
        yield _Conversation("matching", f"Which is better? A: {shown[0]} B: {shown[1]}", letter)
    for explanation in entry.explanations:
        yield _Conversation("explain", "Why is it weird?", explanation)
    if entry.designer_explanation:
        yield _Conversation("explain in detail", "Why is it weird, in detail?", entry.designer_explanation)


def _example(name: str, image: Image, conversation: _Conversation, *, fold: int) -> ChatExample:
    question = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": conversation.question}]}
    answer = {"role": "assistant", "content": [{"type": "text", "text": conversation.answer}]}
    meta = {"task": f"whoops/{conversation.task}", "sample": name, "fold": fold}
    return ChatExample(prompt=(question,), completion=(answer,), images=(image,), group=name, meta=meta)
