from __future__ import annotations

import logging
import math
import multiprocessing
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from askance.chat import key_of
from askance.errors import ModelError, StoreError
from askance.models.encoders.vectors import (
    MemoryVectors,
    VectorFile,
    VectorRows,
    cosine_of,
    files_in,
    half,
    mean_of,
    verify_files,
)

ABOUT = {"model": {"provider": "clip", "model": "clip:abc:float32"}}
STEP = 32 + 4 + 2 * 3
"""Bytes of a row with three numbers."""


def key(name: object) -> str:
    return key_of("embed", {"text": str(name)})


def vector(number: float) -> np.ndarray[tuple[int], np.dtype[np.float16]]:
    return half([1.0, number, -number])


def kept(folder: Path, *numbers: float) -> VectorFile:
    file = VectorFile(folder, ABOUT)
    file.keep({key(number): vector(number) for number in numbers})
    return file


def read(file: VectorFile, *numbers: float) -> dict[str, list[float]]:
    return {name: found.tolist() for name, found in file.find([key(number) for number in numbers]).items()}


def expected(*numbers: float) -> dict[str, list[float]]:
    return {key(number): vector(number).tolist() for number in numbers}


def test_what_was_kept_is_found_by_others_too(tmp_path: Path) -> None:
    file = kept(tmp_path, 0.5, 2.0)
    other = VectorFile(tmp_path, ABOUT)

    assert read(file, 0.5, 2.0, 7.0) == read(other, 0.5, 2.0, 7.0) == expected(0.5, 2.0)
    file.keep({key(7.0): vector(7.0)})
    assert read(other, 7.0) == expected(7.0)
    assert list(other.verify()) == []


def test_each_is_kept_once_and_the_first_stays(tmp_path: Path) -> None:
    file = kept(tmp_path, 0.5)
    size = file.path.stat().st_size

    VectorFile(tmp_path, ABOUT).keep({key(0.5): vector(9.0), key(1.0): vector(1.0)})

    assert read(file, 0.5, 1.0) == expected(0.5, 1.0)
    assert file.path.stat().st_size == size + STEP


def test_another_encoder_has_another_file(tmp_path: Path) -> None:
    file = kept(tmp_path, 0.5)
    other = VectorFile(tmp_path, {"model": {"provider": "clip", "model": "clip:def:float32"}})

    assert read(other, 0.5) == {}
    other.keep({key(0.5): half([1.0, 0.0])})
    assert files_in(tmp_path) == sorted([file.path, other.path])


def test_a_copy_holds_what_was_there(tmp_path: Path) -> None:
    kept(tmp_path / "here", 0.5, 2.0)

    shutil.copytree(tmp_path / "here", tmp_path / "there")

    assert read(VectorFile(tmp_path / "there", ABOUT), 0.5, 2.0) == expected(0.5, 2.0)


@pytest.mark.parametrize("lost", [1, 5, 10, STEP - 1], ids=["a byte", "numbers", "the sum", "nearly all"])
def test_what_a_crash_left_of_a_row_is_not_there_and_is_cut_off(tmp_path: Path, lost: int) -> None:
    file = kept(tmp_path, 0.5, 2.0)
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[:-lost])
    torn = VectorFile(tmp_path, ABOUT)

    assert read(torn, 0.5, 2.0) == expected(0.5)
    torn.keep({key(3.0): vector(3.0)})
    assert read(VectorFile(tmp_path, ABOUT), 0.5, 2.0, 3.0) == expected(0.5, 3.0)
    assert len(torn.path.read_bytes()) == len(whole)


SPOILT: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a number": (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "the checksum of row 1 does not fit"),
    "a sum": (lambda data: data[: -STEP + 32] + b"\0\0\0\0" + data[-6:], "the checksum of row 1 does not fit"),
    "the beginning": (lambda data: b"x" + data[1:], "it does not begin as one"),
    "emptied": (lambda data: b"", "it does not begin as one"),
    "another's": (lambda data: data.replace(b"clip:abc", b"clip:xyz"), "it is another encoder's"),
}


@pytest.mark.parametrize(("change", "why"), SPOILT.values(), ids=SPOILT)
def test_a_damaged_file_is_said_to_be_and_gives_no_vector(
    tmp_path: Path, change: Callable[[bytes], bytes], why: str
) -> None:
    path = kept(tmp_path, 0.5, 2.0).path
    path.write_bytes(change(path.read_bytes()))

    with pytest.raises(StoreError) as caught:
        VectorFile(tmp_path, ABOUT).find([key(2.0)])
    assert str(caught.value) == (
        f"The file of vectors {str(path)!r} cannot be used: {why}. "
        "Delete it: its vectors are made anew from the weights, and no record depends on it."
    )
    assert list(VectorFile(tmp_path, ABOUT).verify()) == [str(caught.value)]
    assert list(verify_files(tmp_path)) != []


def test_a_file_under_the_name_of_another_encoder_is_found(tmp_path: Path) -> None:
    path = kept(tmp_path, 0.5).path
    assert list(verify_files(tmp_path)) == []
    path.rename(path.with_stem("0" * 32))

    (problem,) = verify_files(tmp_path)
    assert "it has the name of another encoder's" in problem


def test_vectors_of_another_size_are_not_added(tmp_path: Path) -> None:
    file = kept(tmp_path, 0.5)

    with pytest.raises(StoreError, match=r"its rows have 3 numbers, and now they are 2\."):
        file.keep({key("x"): half([1.0, 0.0])})


def test_a_file_that_was_taken_away_is_begun_anew(tmp_path: Path) -> None:
    file = kept(tmp_path, 0.5)
    file.path.unlink()

    assert read(file, 0.5) == {}
    file.keep({key(2.0): vector(2.0)})
    assert read(file, 0.5, 2.0) == expected(2.0)


def test_another_process_that_writes_for_ever_is_waited_for_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = kept(tmp_path, 1)
    monkeypatch.setattr("askance.models.encoders.vectors.LONGEST_TURN", 0.5)
    with FileLock(file.path.parent / "lock"):
        began = time.monotonic()
        for number in range(2, 12):
            file.keep({key(number): vector(number)})
        assert time.monotonic() - began < 2
    file.keep({key(20): vector(20)})

    assert read(file, 1, 2, 20) == expected(1, 20)
    (said,) = [record.getMessage() for record in caplog.records]
    assert f"another process has held {str(file.path.parent / 'lock')!r} for 0.5 s" in said


def test_where_nothing_can_be_written_it_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "vectors").write_text("a file where the folder should be")

    with caplog.at_level(logging.WARNING, "askance"):
        file = kept(tmp_path, 0.5)
        file.keep({key(1.0): vector(1.0)})

    assert [record.message.startswith("Vectors cannot be kept in ") for record in caplog.records] == [True]


def _write(folder: str, first: int) -> None:
    file = VectorFile(Path(folder), ABOUT)
    for number in range(first, first + 40):
        file.keep({key(number): vector(number), key(f"both {number % 40}"): vector(number % 40)})


def test_several_processes_write_one_file(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_write, args=(str(tmp_path), first)) for first in (0, 40)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)

    file = VectorFile(tmp_path, ABOUT)
    assert read(file, *range(80)) == expected(*range(80))
    assert list(file.verify()) == []
    data = file.path.read_bytes()
    assert len(data) == data.index(b"\n") + 1 + 120 * STEP


def test_memory_forgets_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryVectors, "MOST", 2)
    vectors = MemoryVectors()

    vectors.keep({key(number): vector(number) for number in (1, 2, 3)})

    assert set(vectors.find([key(1), key(2), key(3)])) == {key(2), key(3)}


def test_all_rows_come_as_one_matrix_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askance.models.encoders.vectors.BLOCK", 2)
    file = kept(tmp_path, 3, 1, 2, 5, 4)

    keys, matrix = file.matrix()

    assert keys == file.keys() == [key(number) for number in (3, 1, 2, 5, 4)]
    assert matrix.dtype == "float32"
    assert matrix.tolist() == [read(file, number)[key(number)] for number in (3, 1, 2, 5, 4)]
    assert len(VectorFile(tmp_path / "none", ABOUT).matrix()[1]) == 0


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_is_no_number_has_no_vector(number: float) -> None:
    with pytest.raises(ModelError, match=r"^An encoder gave a vector that holds something that is no number"):
        half([0.5, number])


def test_a_damaged_row_is_in_no_matrix(tmp_path: Path) -> None:
    file = kept(tmp_path, 1, 2, 3)
    data = bytearray(file.path.read_bytes())
    data[-1] ^= 1
    file.path.write_bytes(data)

    with pytest.raises(StoreError, match=r"the checksum of row 2 does not fit"):
        VectorFile(tmp_path, ABOUT).matrix()


def test_what_is_in_16_bits_already_stays_as_it_is() -> None:
    draw = np.random.default_rng(7)
    for size in (3, 384, 768):
        once = half(draw.normal(size=size))
        assert half(once).tolist() == half(once.tolist()).tolist() == once.tolist()
    assert half([0.5, 0.5]).tolist() == [float(np.float16(0.5**0.5))] * 2


def test_cosine_and_mean_are_worked_out_from_16_bits() -> None:
    one, other = half([3.0, 4.0]), half([4.0, 3.0])

    assert one.dtype == np.float16
    assert cosine_of(one, other) == pytest.approx(0.96, abs=2e-4)
    assert cosine_of(one, half([0.0, 0.0])) == 0
    assert mean_of([one]) is one
    assert mean_of([one, other]).tolist() == pytest.approx([0.5**0.5, 0.5**0.5], abs=1e-3)


def test_the_cosines_of_rows_are_those_of_their_vectors_to_the_last_bit() -> None:
    draw = np.random.default_rng(0)
    vectors = [half(row) for row in draw.normal(size=(60, 33))]
    one, nothing = half(draw.normal(size=33)), half([0.0] * 33)

    rows = VectorRows.of([[each] for each in (*vectors, nothing)])
    assert rows.cosines(one) == [*(cosine_of(one, each) for each in vectors), 0.0]
    assert rows.cosines(nothing) == [0.0] * 61
    # Of those that belong together the highest counts.
    groups = [vectors[:1], vectors[1:4], vectors[4:]]
    assert VectorRows.of(groups).cosines(one) == [max(cosine_of(one, each) for each in some) for some in groups]
    assert VectorRows.of([]).cosines(one) == []
