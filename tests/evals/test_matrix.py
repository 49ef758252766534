"""Matrices: what a run keeps of them beside its lines, what is read back, and what a forged file is taken for."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import shutil
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from askance.errors import UsageError
from askance.evals import Matrix, Prediction, Ranking, Run, Sample, Score, Scorer, Task, evaluate, export, mean, rescore
from askance.evals.analysis.pack import open_pack, write_pack
from askance.evals.analysis.pack_check import PackCheck, check_pack
from askance.evals.run_format import MOST_NUMBERS
from askance.models import Engine
from askance.models.call_scope import current_scope
from tests.evals.numbers import RunCounters
from tests.evals.odd import scored_by

Array = npt.NDArray[Any]

SIDE = 30


def scores(sample: Sample) -> Array:
    """Scores of all pairs, which the sample and the epoch decide."""
    seed = [*sample.id.encode(), current_scope().draw]
    return np.random.default_rng(seed).standard_normal((SIDE, SIDE))


def weighed(sample: Sample) -> Prediction:
    return Prediction(outcome="answered", value=SIDE, matrix=Matrix(scores(sample)))


def diagonal(_: Sample, prediction: Prediction) -> Score:
    assert prediction.matrix is not None
    found = prediction.matrix.array
    return Score(values={"right": float((found.argmax(axis=1) == np.arange(len(found))).mean())})


SCORER = Scorer(
    score=diagonal,
    metrics=(mean("right"),),
    if_wrong=lambda _: Score(values={"right": 0.0}),
    if_right=lambda _: Score(values={"right": 1.0}),
    takes="prediction",
)


class Pairs(Task):
    """How well each text fits each picture."""

    name = "tests/pairs"
    count: int = 4

    def samples(self) -> list[Sample]:
        return [Sample(id=f"chunk {number}") for number in range(self.count)]

    def solver(self) -> Callable[[Sample], Prediction]:
        return weighed

    def scorer(self) -> Scorer:
        return SCORER


@pytest.fixture
def run(own_place: Path) -> Run:
    return evaluate(Pairs(), out=own_place / "run")


def lines(run: Run) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (run.path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]


def matrix_of(run: Run, number: int = 0) -> Matrix:
    found = run.answers[number].prediction.matrix
    assert found is not None
    return found


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def put(folder: Path, content: bytes, *, shape: tuple[int, int] = (2, 2), dtype: str = "float64") -> Matrix:
    """The matrix of a line that names a file with this content by its true digest."""
    digest = sha256(content).hexdigest()
    (folder / "matrices").mkdir(exist_ok=True)
    (folder / "matrices" / f"{digest}.npy").write_bytes(content)
    return Matrix.kept(folder, {"sha256": digest, "shape": [*shape], "dtype": dtype}, sample="chunk 7")


# --- the value ---


@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 40),
    dtype=st.sampled_from(["<f4", ">f4", "<f8", ">f8"]),
    order=st.sampled_from("CF"),
    seed=st.integers(0, 99),
)
def test_a_matrix_is_read_as_it_was_written_also_by_numpy(
    rows: int, columns: int, dtype: str, order: Any, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    array = np.random.default_rng(seed).standard_normal((rows, columns)).astype(dtype, order=order)
    matrix = Matrix(array)

    read = put(tmp_path_factory.mktemp("run"), matrix.content, shape=(rows, columns), dtype=matrix.dtype)

    assert read == matrix
    assert read.whole
    assert (read.shape, read.dtype) == ((rows, columns), array.dtype.name)
    assert np.array_equal(read.array, array)
    assert matrix.content == npy(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")))


def test_a_matrix_does_not_change_with_the_array_that_it_was_made_of() -> None:
    array = np.zeros((2, 2))
    matrix = Matrix(array)
    array[0, 0] = 7

    assert not matrix.array.any()
    with pytest.raises(ValueError, match="read-only"):
        matrix.array[0, 0] = 7
    assert matrix == Matrix(np.zeros((2, 2)))
    assert len({matrix, Matrix(np.zeros((2, 2))), Matrix(np.zeros((2, 2), np.float32)), Matrix(np.ones((2, 2)))}) == 3


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), "shape"),
        (np.zeros((1, 2, 3)), "shape"),
        (np.zeros((0, 3)), "shape"),
        (np.float64(1), "shape"),
        (np.zeros((2, 2), np.int64), "type int64"),
        (np.zeros((2, 2), np.float16), "type float16"),
        (np.zeros((2, 2), np.complex128), "type complex128"),
        (np.full((2, 2), None), "type object"),
        (np.full((2, 2), "1"), "type str"),
        (np.array([[1, np.nan]]), "not finite"),
        (np.array([[1, np.inf]]), "not finite"),
        (np.array([[-np.inf, 1]], np.float32), "not finite"),
        (np.broadcast_to(np.float32(0), (MOST_NUMBERS + 1, 1)), "33,554,433 numbers"),
    ],
)
def test_what_is_no_matrix_is_refused(array: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as told:
        Matrix(array)

    assert told.value.hint


def test_the_format_is_what_users_have_on_their_disks() -> None:
    matrix = Matrix(np.eye(2, dtype=np.float32))

    digest = "c74f298838ad3bca9dc3bef3f538fb9824ef14b4fcfd2fb95077fee0124eceee"
    assert matrix.form() == {"sha256": digest, "shape": [2, 2], "dtype": "float32"}
    assert (matrix.place, len(matrix.content)) == (f"matrices/{digest}.npy", 144)


def test_what_else_stands_in_the_entry_of_a_line_is_no_part_of_it(tmp_path: Path) -> None:
    matrix = Matrix(np.ones((2, 2)))

    assert Matrix.kept(tmp_path, {**matrix.form(), "folder": "/etc"}) == matrix


# --- in the folder of a run ---


def test_a_line_holds_the_digest_and_the_shape_and_a_scorer_reads_the_array(run: Run) -> None:
    found = lines(run)

    assert [(line["matrix"]["shape"], line["matrix"]["dtype"]) for line in found] == [([SIDE, SIDE], "float64")] * 4
    assert {f"{line['matrix']['sha256']}.npy" for line in found} == {
        file.name for file in (run.path / "matrices").iterdir()
    }
    assert not (run.path / "rankings").exists()
    assert all(
        np.array_equal(matrix_of(run, number).array, scores(Sample(id=f"chunk {number}"))) for number in range(4)
    )
    expected = [diagonal(each, weighed(each)).values["right"] for each in Pairs().samples()]
    assert run.figure("right").value == pytest.approx(sum(expected) / 4)


def test_every_epoch_has_its_own_matrix(own_place: Path) -> None:
    run = evaluate(Pairs(count=1), out=own_place / "run", epochs=3)

    assert len({answer.prediction.matrix for answer in run.answers}) == 3


def test_a_prediction_may_have_a_ranking_and_a_matrix(own_place: Path) -> None:
    def both(sample: Sample) -> Prediction:
        return replace(weighed(sample), ranking=Ranking(["a"], [1]))

    run = evaluate(replace(Pairs().evaluation(), solver=both), out=own_place / "run")

    assert [each.kind for each in run.answers[0].prediction.attachments] == ["ranking", "matrix"]
    assert len([*(run.path / "rankings").iterdir()]) == 1


def test_samples_that_share_a_matrix_share_a_file_that_is_written_once(own_place: Path) -> None:
    shared, written = Matrix(np.ones((5, 5))), set[int]()

    def always(_: Sample) -> Prediction:
        return Prediction(outcome="answered", matrix=shared)

    def score(sample: Sample, prediction: Prediction) -> Score:
        written.add((own_place / "run" / shared.place).stat().st_ino)
        return diagonal(sample, prediction)

    evaluate(replace(Pairs().evaluation(), solver=always, scorer=replace(SCORER, score=score)), out=own_place / "run")

    assert len(written) == 1
    assert [file.stem for file in (own_place / "run" / "matrices").iterdir()] == [shared.digest]


def test_memory_does_not_grow_with_the_number_of_matrices(own_place: Path) -> None:
    side, size = 300, 300 * 300 * 8

    def large(sample: Sample) -> Prediction:
        return Prediction(outcome="answered", matrix=Matrix(np.full((side, side), float(sample.id[6:]))))

    tracemalloc.start()
    try:
        task = replace(Pairs(count=100).evaluation(), solver=large)
        evaluate(task, out=own_place / "run", engine=Engine(concurrency=2))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 30 * size  # of 100; at most 8 samples are under way or wait for one before them


class Counting(RunCounters):
    @override
    async def answer(self, sample: Sample) -> Prediction:
        await super().answer(sample)
        return weighed(sample)


def test_a_sample_whose_matrix_is_lost_or_changed_is_answered_again(own_place: Path) -> None:
    solver = Counting()
    task = replace(Pairs().evaluation(), solver=solver)
    run = evaluate(task, out=own_place / "run")
    lost, changed = matrix_of(run, 0), matrix_of(run, 2)
    (run.path / lost.place).unlink()
    content = bytearray((run.path / changed.place).read_bytes())
    content[-1] ^= 1
    (run.path / changed.place).write_bytes(content)
    solver.asked.clear()

    again = evaluate(task, out=own_place / "run")

    assert sorted(solver.asked) == ["chunk 0", "chunk 2"]
    assert all(
        np.array_equal(matrix_of(again, number).array, scores(Sample(id=f"chunk {number}"))) for number in range(4)
    )
    assert again.figures == run.figures


async def test_a_changed_file_is_named_with_its_sample_and_the_way_out(run: Run) -> None:
    matrix = matrix_of(run, 2)
    (run.path / matrix.place).write_bytes(Matrix(np.ones((SIDE, SIDE))).content)

    with pytest.raises(UsageError, match="was changed") as told:
        _ = matrix_of(Run.open(run.path), 2).array
    assert f"{str(run.path / matrix.place)!r} of the sample 'chunk 2'" in told.value.message
    assert "same command" in (told.value.hint or "")
    with pytest.raises(UsageError, match="the matrices of 1 sample are missing or were changed") as told:
        await rescore(Run.open(run.path), Pairs)
    assert f"'chunk 2' ({matrix.place})" in told.value.message
    assert "run the same `askance eval run` again" in (told.value.hint or "")


# --- what strangers put there ---


DIGEST = "a" * 64


@pytest.mark.parametrize(
    "form",
    [
        {"sha256": DIGEST, "shape": [10**9, 10**9], "dtype": "float64"},
        {"sha256": DIGEST, "shape": [MOST_NUMBERS + 1, 1], "dtype": "float32"},
        {"sha256": DIGEST, "shape": [-1, -8], "dtype": "float64"},
        {"sha256": DIGEST, "shape": [0, 8], "dtype": "float64"},
        {"sha256": DIGEST, "shape": [8], "dtype": "float64"},
        {"sha256": DIGEST, "shape": [2, 2, 2], "dtype": "float64"},
        {"sha256": DIGEST, "shape": [True, 2], "dtype": "float64"},
        {"sha256": DIGEST, "shape": [2.0, 2], "dtype": "float64"},
        {"sha256": DIGEST, "shape": "22", "dtype": "float64"},
        {"sha256": DIGEST, "shape": [2, 2], "dtype": "object"},
        {"sha256": DIGEST, "shape": [2, 2], "dtype": "O"},
        {"sha256": DIGEST, "shape": [2, 2]},
        {"sha256": "../../etc/passwd", "shape": [2, 2], "dtype": "float64"},
        {"sha256": f"{DIGEST}\n", "shape": [2, 2], "dtype": "float64"},
        {"shape": [2, 2], "dtype": "float64"},
        [DIGEST],
        "matrices",
    ],
)
def test_an_entry_that_names_no_matrix_is_refused_and_its_sample_is_answered_again(form: Any, run: Run) -> None:
    first, *others = lines(run)
    texts = [json.dumps(line) for line in ({**first, "matrix": form}, *others)]
    (run.path / "samples.jsonl").write_text("\n".join([*texts, ""]), encoding="utf-8")

    with pytest.raises(UsageError, match="no matrix of a line"):
        Matrix.kept(run.path, form)
    with pytest.raises(UsageError, match=r"Line 1 of .*matrix"):
        _ = Run.open(run.path).answers
    again = evaluate(Pairs(), out=run.path)
    assert [answer.prediction.matrix for answer in again.answers] == [
        answer.prediction.matrix for answer in run.answers
    ]


class Trap:
    """What makes a file where a pickle of it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("trapped"),)


GOOD = npy(np.ones((2, 2)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no file of float64"),
        (GOOD[:-8], "no file of float64"),
        (GOOD + b"\0", "larger than 160 bytes"),
        (npy(np.ones((2, 2), np.float32)), "no file of float64"),
        (npy(np.ones((4, 1))), "no file of float64"),
        (npy(np.asfortranarray(np.array([[1.0, 2], [3, 4]]))), "no file of float64"),
        (npy(np.ones((2, 2), ">f8")), "no file of float64"),
        (GOOD.replace(b"(2, 2)", b"(2,-2)"), "no file of float64"),
        (GOOD.replace(b"'<f8'", b"'|O' "), "no file of float64"),
        (b"\x93NUMPY\3\0" + GOOD[8:], "no file of float64"),
        (pickle.dumps(Trap()).ljust(160, b"\0"), "no file of float64"),
        (npy(np.array([[1, np.nan], [1, 1]])), "not finite"),
        (npy(np.array([[1, np.inf], [1, 1]])), "not finite"),
    ],
)
def test_a_file_that_somebody_made_is_held_to_its_line(content: bytes, message: str, own_place: Path) -> None:
    matrix = put(own_place, content)

    with pytest.raises(UsageError, match=message) as told:
        _ = matrix.array
    assert told.value.hint
    assert "matrices" in told.value.message
    assert "'chunk 7'" in told.value.message
    assert not matrix.whole
    assert not Path("trapped").exists()


def test_a_link_a_pipe_and_a_file_without_end_are_refused_before_memory_is_taken(tmp_path: Path) -> None:
    matrix = put(tmp_path, GOOD)
    file = tmp_path / matrix.place
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(file, tmp_path / "elsewhere")

    file.unlink()
    file.symlink_to(tmp_path / "elsewhere" / file.name)
    with pytest.raises(UsageError, match="is missing"):
        _ = matrix.array
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(UsageError, match="is missing"):
        _ = matrix.array
    file.unlink()
    with file.open("wb") as large:
        large.truncate(1 << 40)
    tracemalloc.start()
    with pytest.raises(UsageError, match="larger than 160 bytes"):
        _ = matrix.array
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    shutil.rmtree(tmp_path / "matrices")
    (tmp_path / "matrices").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is missing"):
        _ = matrix.array


def test_matrices_are_written_through_no_link_and_no_pipe_is_opened(run: Run, tmp_path: Path) -> None:
    os.mkfifo(run.path / "matrices" / "pipe")
    with pytest.raises(UsageError, match="no regular file"):
        Run.open(run.path)
    shutil.rmtree(run.path / "matrices")
    (run.path / "matrices").symlink_to(tmp_path)

    with pytest.raises(UsageError, match="symbolic link"):
        evaluate(Pairs(), out=run.path)
    assert not [*tmp_path.glob("*.npy")]


# --- what is done with a run ---


async def checked(path: Path) -> PackCheck:
    with open_pack(path) as each:
        return await check_pack(each, tasks={Pairs.name: Pairs}, again=True)


def repacked(pack: Path, to: Path, change: Callable[[dict[str, bytes]], dict[str, bytes]]) -> Path:
    """The pack with other files, of which its manifest has the digests."""
    with zipfile.ZipFile(pack) as file:
        content = change({name: file.read(name) for name in file.namelist()})
    form = json.loads(content.pop("manifest.json"))
    form["files"] = {name: sha256(each).hexdigest() for name, each in content.items()}
    with zipfile.ZipFile(to, "w") as file:
        for name, each in {**content, "manifest.json": json.dumps(form).encode()}.items():
            file.writestr(name, each)
    return to


async def test_a_pack_carries_matrices_and_is_scored_by_them(run: Run, tmp_path: Path) -> None:
    put(run.path, GOOD)  # of no line
    packed = write_pack([run], tmp_path / "one.pack").path
    shutil.rmtree(run.path)

    report = await checked(packed)

    assert report.sound
    assert report.runs[0].again == {"same": 4}
    with zipfile.ZipFile(packed) as file:
        assert sum("/matrices/" in name for name in file.namelist()) == 4


def test_a_pack_of_equal_numbers_can_be_opened(own_place: Path) -> None:
    def zeros(_: Sample) -> Prediction:
        return Prediction(outcome="answered", matrix=Matrix(np.zeros((3000, 3000))))

    run = evaluate(replace(Pairs(count=1).evaluation(), solver=zeros), out=own_place / "run")
    packed = write_pack([run], own_place / "one.pack").path

    with open_pack(packed) as pack:
        assert not matrix_of(pack.runs[0]).array.any()


async def test_a_pack_whose_matrix_is_not_that_of_its_line_does_not_follow(run: Run, tmp_path: Path) -> None:
    def change(content: dict[str, bytes]) -> dict[str, bytes]:
        spoilt = next(name for name in content if "/matrices/" in name)
        return {**content, spoilt: Matrix(np.ones((SIDE, SIDE))).content, f"{spoilt[:-68]}{DIGEST}.npy": GOOD}

    packed = repacked(write_pack([run], tmp_path / "one.pack").path, tmp_path / "two.pack", change)

    report = await checked(packed)

    assert not report.follows
    said = report.runs[0].differences
    assert any(each.startswith("the matrices of 1 sample are missing or were changed") for each in said)
    assert f"1 of its matrices is of no sample: '{DIGEST}.npy'" in said


@pytest.mark.parametrize("name", ["matrices/../x.npy", f"matrices/{DIGEST}.json", f"matrices/{DIGEST}.npy/x"])
def test_a_pack_that_names_another_place_is_refused(name: str, run: Run, tmp_path: Path) -> None:
    packed = repacked(
        write_pack([run], tmp_path / "one.pack").path,
        tmp_path / "two.pack",
        lambda content: {**content, f"runs/run/{name}": GOOD},
    )

    with pytest.raises(UsageError, match="names files that no pack has"), open_pack(packed):
        pass


def test_a_run_with_a_spoilt_matrix_is_not_packed(run: Run, tmp_path: Path) -> None:
    (run.path / matrix_of(run).place).write_bytes(GOOD)

    with pytest.raises(UsageError, match=r"such as that of 'chunk 0' \(matrices/"):
        write_pack([Run.open(run.path)], tmp_path / "one.pack")
    assert not [*tmp_path.glob("one.pack*")]


async def test_a_run_is_scored_again_by_its_matrices_without_its_solver(run: Run) -> None:
    def first(_: Sample, prediction: Prediction) -> Score:
        assert prediction.matrix is not None
        return Score(values={"right": float(prediction.matrix.array[0, 0] > 0)})

    again = await rescore(Run.open(run.path), scored_by(Pairs, replace(SCORER, score=first)))

    assert again.run.figure("right").value == sum(scores(each)[0, 0] > 0 for each in Pairs().samples()) / 4


async def test_a_solver_that_weighs_otherwise_gives_other_answers(run: Run) -> None:
    class Otherwise(Pairs):
        def solver(self) -> Callable[[Sample], Prediction]:
            return lambda sample: replace(weighed(sample), matrix=Matrix(scores(sample) + (sample.id == "chunk 1")))

    again = await rescore(Run.open(run.path), Otherwise, reread=True)

    assert again.changed == ("chunk 1",)
    assert np.array_equal(matrix_of(again.run, 1).array, scores(Sample(id="chunk 1")) + 1)
    assert (await rescore(again.run, Otherwise, reread=True)).changed == ()


def test_exports_name_matrices(run: Run, tmp_path: Path) -> None:
    for kind, name in (("jsonl", "run.jsonl"), ("csv", "run.csv"), ("inspect", "run.json")):
        export(run, cast("Any", kind), tmp_path / name)

    digests = [matrix_of(run, number).digest for number in range(4)]
    rows = [json.loads(text) for text in (tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["matrix"]["sha256"] for row in rows] == digests
    with (tmp_path / "run.csv").open(encoding="utf-8", newline="") as file:
        assert [(row["matrix.sha256"], row["matrix.shape"]) for row in csv.DictReader(file)] == [
            (digest, f"[{SIDE}, {SIDE}]") for digest in digests
        ]
    log = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert [sample["metadata"]["matrix"]["sha256"] for sample in log["samples"]] == digests
