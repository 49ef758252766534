"""What receipts say of the speed of workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.evals.listed_picture import ListedPicture
from askance.scale import CorpusStatus, Receipt, cut_corpus, status_of


def status(home: Path, *shards: tuple[str, float, float]) -> CorpusStatus:
    """Of shards with ten pictures each, by their worker, their begin and their end."""
    pictures = (ListedPicture(str(number), f"https://example.com/{number}") for number in range(1000))
    corpus = cut_corpus(home / "corpus", pictures, configuration={}, listing={}, shards=max(1, len(shards)))
    for number, (worker, begun, ended) in enumerate(shards):
        outcomes, seconds = {"answered": 10}, ended - begun
        corpus.keep(Receipt(shard=number, worker=worker, pictures=10, outcomes=outcomes, seconds=seconds, ended=ended))
    return status_of(corpus)


def test_a_worker_that_comes_later_was_not_idle_before(tmp_path: Path) -> None:
    assert status(tmp_path, ("a", 0, 50), ("a", 50, 100), ("b", 90, 95), ("b", 95, 100)).idle == 0
    assert status(tmp_path / "b", ("a", 0, 25), ("a", 75, 100)).idle == 0.5


def test_a_long_shard_counts_by_its_part_of_the_time(tmp_path: Path) -> None:
    """Ten pictures a second by one worker, and ten in a hundred seconds by another, which ended first."""
    quick = [("a", float(second), second + 1.0) for second in range(90, 98)]
    found = status(tmp_path, ("b", -3.5, 96.5), *quick).per_second
    assert found == pytest.approx((20 + 10 * 0.5 / 100) / 2)


def test_one_slow_shard_of_a_hundred_is_not_the_99th_percentile(tmp_path: Path) -> None:
    found = status(tmp_path, *(("a", 0, 1) for _ in range(99)), ("a", 0, 1000)).straggler_ratio
    assert found is not None
    assert found < 20
