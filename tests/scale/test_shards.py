"""A corpus that is cut into shards, and its shards as one run; its workers are this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest

from askance.errors import StoreError, UsageError
from askance.evals import Run
from askance.evals.listed_picture import ListedPicture
from askance.python_file import load_object
from askance.scale import ShardedCorpus, cut_corpus, digest_of_list, merge_corpus, status_of
from askance.scale.shard_worker import packed, unpacked
from askance.scale.storage import Storage
from tests.faults.run import CALLS, answer, asked_twice, picture, room
from tests.scale.corpus import Corpus, Here, same_answers
from tests.servers import FakeEndpoint


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(lambda seen: answer(seen.json)) as endpoint:
        yield endpoint


def nowhere(home: Path) -> Corpus:
    return Corpus(url="http://127.0.0.1:9/v1", home=home)


def test_shards_are_the_run_of_one_process(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    corpus = Corpus(url=endpoint.url, home=tmp_path, pictures=6, shards=3)
    assert corpus.read(Here()).failed == ()
    assert len(endpoint.requests) == 6 * CALLS + 1
    assert asked_twice(endpoint) == 0
    shards = ShardedCorpus(corpus.out)
    status = status_of(shards)
    assert (status.read, status.done, status.outcomes, status.calls) == (6, 3, {"answered": 6}, 6 * CALLS)

    merge_corpus(shards, tmp_path / "merged")
    alone = corpus.alone()
    assert same_answers(tmp_path / "merged", alone)
    ours, theirs = Run.open(tmp_path / "merged"), Run.open(alone)
    assert [*ours.records.keys()] == [*theirs.records.keys()]
    assert (ours.configuration, ours.totals) == (theirs.configuration, theirs.totals)

    asked = len(endpoint.requests)
    assert corpus.read(Here()).waiting == 0, "all of it has receipts"
    assert len(endpoint.requests) == asked


def test_a_full_disk_loses_nothing(endpoint: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker says so, and waits before its next shard; the same call goes on where there is room again."""
    waits = list[float]()
    monkeypatch.setattr("askance.scale.shard_worker.time.sleep", waits.append)
    corpus = Corpus(url=endpoint.url, home=tmp_path, pictures=4, shards=2)
    corpus.cut()
    with room(20_000):
        end = corpus.read(Here())
    assert end.failed
    assert all("Make room on the disk" in str(each.error) or "disk" in str(each.error) for each in end.failed)
    assert waits
    assert corpus.read(Here()).failed == ()
    assert asked_twice(endpoint) <= 2 * CALLS
    merge_corpus(ShardedCorpus(corpus.out), tmp_path / "merged")
    assert same_answers(tmp_path / "merged", corpus.alone())


def test_equal_pictures_meet_in_one_shard(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    corpus = Corpus(url=endpoint.url, home=tmp_path, pictures=6, shards=3)
    for file in corpus.files[1:4]:
        file.write_bytes(corpus.files[0].read_bytes())
    corpus.read(Here())
    assert len(endpoint.requests) == 3 * CALLS + 1
    assert status_of(ShardedCorpus(corpus.out)).repeats == 3


def test_two_commands_on_one_folder(tmp_path: Path) -> None:
    corpus = nowhere(tmp_path)
    with corpus.cut().storage.locked(), pytest.raises(StoreError, match="Another process is reading the corpus"):
        corpus.read(Here())


def test_a_shard_that_changed_after_its_receipt(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    corpus = Corpus(url=endpoint.url, home=tmp_path, pictures=2, shards=1)
    corpus.read(Here())
    shards = ShardedCorpus(corpus.out)
    samples = shards.folder(0) / "samples.jsonl"
    samples.write_text(samples.read_text("utf-8").replace("answered", "refused", 1), encoding="utf-8")
    with pytest.raises(UsageError, match=r"Shard 00000 of .* is not what its receipt says"):
        merge_corpus(shards, tmp_path / "merged")


def test_a_corpus_with_shards_missing_is_no_run(tmp_path: Path) -> None:
    corpus = nowhere(tmp_path).cut()
    with pytest.raises(UsageError, match=r"4 shards of .* not done: 0, 1, 2 …\. The command that began the work"):
        merge_corpus(corpus, tmp_path / "merged")


def test_what_was_cut_stays_as_it_was(tmp_path: Path) -> None:
    corpus = nowhere(tmp_path)
    first = corpus.cut()
    assert first.pictures == 12
    again = cut_corpus(corpus.out, iter(()), configuration=first.configuration, listing=first.listing)
    assert again.sizes == first.sizes, "the list is not read again"
    with pytest.raises(UsageError, match=r"was cut into 4 shards\. Leave `--shards` out"):
        replace(corpus, shards=5).cut()
    with pytest.raises(UsageError, match=r"another configuration, different in 'list.pictures' \(12, now 13\)"):
        replace(corpus, pictures=13).cut()


def test_a_cut_that_was_interrupted_begins_again(tmp_path: Path) -> None:
    corpus = nowhere(tmp_path)

    def torn() -> Iterator[ListedPicture]:
        yield ListedPicture("a", corpus.files[0])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_corpus(corpus.out, torn(), configuration={}, listing={})
    with pytest.raises(UsageError, match="holds no corpus that was cut into shards"):
        ShardedCorpus(corpus.out)
    assert corpus.cut().pictures == 12


def test_a_list_without_pictures_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="The corpus has no pictures"):
        cut_corpus(tmp_path / "corpus", iter(()), configuration={}, listing={})
    assert not (tmp_path / "corpus").exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match="holds something that is no corpus"):
        cut_corpus(tmp_path, iter(()), configuration={}, listing={})


def test_rows_say_where_a_picture_is(tmp_path: Path) -> None:
    """A file by its absolute path, an address as it is, bytes as a file beside the lists; a name twice once."""
    data = picture(1).data
    pictures = [
        ListedPicture("a.png", Path("a.png"), ("tea", "bricks")),
        ListedPicture("https://example.com/b.png", "https://example.com/b.png", question="What is odd?"),
        ListedPicture("t#3", data),
        ListedPicture("a.png", Path("a.png"), ("tea", "bricks")),
    ]
    corpus = cut_corpus(tmp_path / "corpus", pictures, configuration={}, listing={}, shards=1)
    file, address, inside = corpus.rows(0)
    assert (file.file, file.options) == (str(Path("a.png").absolute()), ["tea", "bricks"])
    assert (address.file, address.address, address.question) == (None, "https://example.com/b.png", "What is odd?")
    assert Path(str(corpus.file(inside))).read_bytes() == data

    other = replace(pictures[3], options=("tea",))
    corpus = cut_corpus(tmp_path / "other", [*pictures[:3], other], configuration={}, listing={}, shards=1)
    with pytest.raises(UsageError, match=r"'a\.png' is listed twice, with different options"):
        list(corpus.rows(0))


def test_a_damaged_receipt_is_named(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    corpus = Corpus(url=endpoint.url, home=tmp_path, pictures=1, shards=1)
    corpus.read(Here())
    receipt = corpus.out / "receipts" / "00000.jsonl"
    receipt.write_text(json.dumps({"shard": 0}), encoding="utf-8")
    with pytest.raises(UsageError, match=r"The receipt of shard 0 in .* is damaged\. Delete it"):
        list(ShardedCorpus(corpus.out).receipts())


@pytest.mark.parametrize(
    "text", ["3", "[" * 100_000, '{"shard": 1, "worker": "w"}', '{"shard": 0, "worker": []}'], ids=len
)
def test_a_receipt_that_is_none(tmp_path: Path, text: str) -> None:
    corpus = nowhere(tmp_path).cut()
    corpus.storage.write("receipts/00000.jsonl", text)
    for read in (corpus.receipts, lambda: iter([corpus.receipt(0)])):
        with pytest.raises(UsageError, match=r"The receipt of shard 0 in .* is damaged"):
            list(read())


def test_a_receipt_whose_shard_is_gone(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    corpus = Corpus(url=endpoint.url, home=tmp_path, pictures=2, shards=1)
    corpus.read(Here())
    rmtree(corpus.out / "shards")
    with pytest.raises(UsageError, match=r"Shard 00000 of .* is not what its receipt says"):
        merge_corpus(ShardedCorpus(corpus.out), tmp_path / "merged")


@pytest.mark.parametrize(
    "row",
    ['{"number": 0, "name": []}', '{"name": "a"}', "[" * 100_000, '{"number": 0, "name": "a", "file": "../key"}'],
    ids=["types", "number", "depth", "file"],
)
def test_a_damaged_list_is_named(tmp_path: Path, row: str) -> None:
    corpus = nowhere(tmp_path).cut()
    corpus.storage.write("lists/00000.jsonl", row)
    with pytest.raises(UsageError, match=r"'lists/00000\.jsonl' of .* is damaged"):
        list(corpus.rows(0))


@pytest.mark.parametrize("text", ["{", "3", "[]", '["work", 0, "many"]', "[" * 100_000], ids=map(str, range(5)))
def test_a_shard_that_was_begun_by_a_damaged_file(tmp_path: Path, text: str) -> None:
    """It counts as begun for the first time."""
    corpus = nowhere(tmp_path).cut()
    corpus.storage.write("begun/00000.jsonl", text)
    assert [corpus.begin(0, "work") for _ in range(4)] == [True, True, True, False]
    assert corpus.begin(0, "another")


def test_a_reader_travels_with_the_files_that_it_is_made_of(tmp_path: Path) -> None:
    """And with no other that was loaded, which may be gone."""
    needed, gone = tmp_path / "needed.py", tmp_path / "gone.py"
    for file in (needed, gone):
        file.write_text("def told(): return 'a cup'\n", encoding="utf-8")
    load_object(f"{gone}:told")
    content = packed(load_object(f"{needed}:told"))
    gone.unlink()
    for name in [name for name in sys.modules if name.startswith("askance_file_")]:
        del sys.modules[name]
    assert unpacked(content)() == "a cup"
    needed.unlink()
    with pytest.raises(UsageError, match=r"There is no file '.*needed\.py'"):
        unpacked(content)


def test_each_question_about_a_picture_is_asked(tmp_path: Path) -> None:
    """As `askance run` names them."""
    file = Path("a.png")
    pictures = [ListedPicture("a.png", file, question=question) for question in ("Who?", "Where?", "Who?")]
    corpus = cut_corpus(tmp_path / "corpus", pictures, configuration={}, listing={}, shards=2)
    rows = [row for number in corpus.numbers for row in corpus.rows(number)]
    assert [(row.name, row.question) for row in rows] == [
        ("a.png", "Who?"),
        ("a.png#2", "Where?"),
        ("a.png#3", "Who?"),
    ]


def test_a_list_is_told_from_another(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    table = tmp_path / "list.csv"
    table.write_text("image\na.png\n", encoding="ascii")
    named = [str(tmp_path), str(tmp_path / "*.png"), str(table), "https://example.com/a.png"]
    before = digest_of_list(named)
    (tmp_path / "b.png").touch()
    table.write_text("image\nb.png\n", encoding="ascii")
    after = digest_of_list(named)
    assert [before[name] == after[name] for name in named] == [False, False, False, True]


def test_what_another_command_has_cut_meanwhile_stays(tmp_path: Path) -> None:
    place = tmp_path / "corpus"

    def pictures() -> Iterator[ListedPicture]:
        cut_corpus(place, [ListedPicture("a", Path("a.png"))], configuration={}, listing={}, shards=1)
        yield ListedPicture("b", Path("b.png"))

    corpus = cut_corpus(place, pictures(), configuration={}, listing={})
    assert (corpus.sizes, [row.name for row in corpus.rows(0)]) == ([1], ["a"])


def test_two_commands_do_not_cut_one_folder(tmp_path: Path) -> None:
    corpus = nowhere(tmp_path)
    corpus.out.mkdir()
    with Storage(corpus.out).locked(), pytest.raises(StoreError, match="Another process is reading the corpus"):
        corpus.cut()
