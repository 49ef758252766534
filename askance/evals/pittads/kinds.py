"""Kinds of wrong options: what was changed in a hard negative, by what is known of its text (Fig. 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.agents.negatives import KINDS
from askance.evals.negatives.option_sets import read_sidecar, sidecar_of
from askance.evals.suite.choice import OTHER, TRUE, UNKNOWN
from askance.evals.suite.statements import hard_kind, read_qa

if TYPE_CHECKING:
    from pathlib import Path

    from askance.evals.pittads.contents import Ad, Contents
    from askance.evals.pittads.dataset import PittAds
    from askance.evals.values import Sample

NEGATIVE_KINDS = (*KINDS["ads"], OTHER, UNKNOWN)

KindsOf: TypeAlias = Callable[["Ad"], Mapping[str, str]]


def kinds_of(data: PittAds) -> KindsOf:
    """From an ad to the kind of each of its options, `true` for the true ones.

    Options of the data set's own file are statements of other images. In another file, a negative is of the kind that
    is known of its text: from `negatives.jsonl` beside the file, from the name of the file, from a file of one kind
    beside it or in the folder, or from the data set's own options. What nothing tells is of an unknown kind.
    """
    contents = data.contents
    named = contents.qa.path if contents.qa is not None and contents.qa_is_named else None
    known: dict[tuple[str, str], str] = {} if named is None else dict(_known(contents, named))
    otherwise = OTHER if named is None else UNKNOWN

    def kinds(ad: Ad) -> Mapping[str, str]:
        return {text: TRUE if text in ad.true else known.get((ad.id, text), otherwise) for text in ad.options}

    return kinds


def _known(contents: Contents, path: Path) -> Iterator[tuple[tuple[str, str], str]]:
    """Image and text, and the kind; what is surer comes later."""
    records = read_qa(path).records
    true = {text for record in records.values() for text in record.true}
    yield from (((key, text), OTHER) for key, each in records.items() for text in each.negatives if text in true)
    yield from _in_file(contents.layout.first("statements"), OTHER)
    for file in (*contents.layout.of("hard negatives"), *sorted(path.parent.glob("*_hard_QA_*.json")), path):
        yield from _in_file(file, hard_kind(file))
    sidecar = sidecar_of(path)
    for place, negative in () if sidecar is None else read_sidecar(sidecar).items():
        yield place, negative.kind if negative.kind in NEGATIVE_KINDS else UNKNOWN


def _in_file(path: Path | None, kind: str | None) -> Iterator[tuple[tuple[str, str], str]]:
    if path is not None and kind not in {None, "all"}:
        for key, record in read_qa(path).records.items():
            yield from (((key, text), str(kind)) for text in record.negatives)


def options_notes(data: PittAds, samples: Iterable[Sample]) -> tuple[str, ...]:
    """Which options are asked, in words, to stand beside the figures."""
    targets: list[Any] = [sample.target for sample in samples]
    counts = sorted({len(target["kinds"]) for target in targets})
    kinds = Counter(kind for target in targets for kind in target["kinds"] if kind != TRUE)
    true = sorted({len(target["true"]) for target in targets})
    hard = sum(kinds[kind] for kind in NEGATIVE_KINDS if kind not in {OTHER, UNKNOWN})
    found = {"hard negatives": hard, "statements of other images": kinds[OTHER], "of an unknown kind": kinds[UNKNOWN]}
    several = sum(map(bool, found.values())) > 1
    wrong = ", ".join(f"{count:,} {what}" if several else what for what, count in found.items() if count)
    file = "" if data.contents.qa is None else f"; {data.contents.qa.path.name}"
    notes = [f"Options of an image: {_range(counts)}, {_range(true)} of them true; wrong ones: {wrong}{file}"]
    if kinds[UNKNOWN]:
        notes.append(
            "Kinds of wrong options are known where the negatives.jsonl that was written with their file lies beside it"
        )
    return tuple(notes)


def _range(counts: list[int]) -> str:
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
