from __future__ import annotations

import importlib
import io
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import MissingExtra, StoreError, UsageError
from askance.retrieval.bm25 import STOP_WORDS, Bm25, Bm25Settings
from askance.retrieval.entries import entry_id

bm25s: Any = importlib.import_module("bm25s")  # it has no types
stemmers: Any = importlib.import_module("Stemmer")

TEXTS = [
    "I should buy this cup because it is made of bricks.",
    "I should not buy this cup because it never breaks.",
    "I should see the dentist because bricks break teeth.",
    "The of and.",
    "Une tasse en briques, שלום.",
]


def indexed(*texts: str, **settings: Any) -> Bm25:
    rows = sorted((entry_id(text), text) for text in texts)
    return Bm25.build([each for each, _ in rows], [text for _, text in rows], Bm25Settings(**settings))


def texts_of(found: list[tuple[str, float]], *texts: str) -> list[str]:
    by_id = {entry_id(text): text for text in texts or TEXTS}
    return [by_id[each] for each, _ in found]


WORDS = st.sampled_from(["cup", "cups", "brick", "bricks", "not", "never", "the", "buy", "buying", "שלום", "a", "Zoo"])
PHRASES = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)


@given(
    texts=st.sets(PHRASES, min_size=1, max_size=12),
    query=PHRASES,
    method=st.sampled_from(["lucene", "robertson", "atire"]),
    k1=st.sampled_from([0.0, 0.9, 1.5]),
)
def test_scores_are_those_of_bm25s_called_directly(texts: set[str], query: str, method: Any, k1: float) -> None:
    stemmer = stemmers.Stemmer("english")

    def words(text: str) -> list[str]:
        (found,) = bm25s.tokenize([text], stopwords=STOP_WORDS, stemmer=stemmer, return_ids=False, show_progress=False)
        return [str(word) for word in found]

    ordered = sorted(texts, key=entry_id)
    found = dict(indexed(*ordered, method=method, k1=k1).search(query, 100))

    asked = list(dict.fromkeys(words(query)))
    direct = bm25s.BM25(method=method, k1=k1)
    rows = [words(text) for text in ordered]
    if not any(rows) or not {word for row in rows for word in row}.intersection(asked):
        assert found == {}
        return
    direct.index(rows, show_progress=False)
    expected = {entry_id(text): score for text, score in zip(ordered, direct.get_scores(asked), strict=True) if score}
    assert found == pytest.approx(expected)


def test_hits_come_by_score_and_then_by_id() -> None:
    texts = [f"bricks, number{number}" for number in range(50)]
    found = indexed(*texts, "bricks bricks bricks").search("bricks", 20)
    assert texts_of(found[:1], "bricks bricks bricks") == ["bricks bricks bricks"]
    assert len({score for _, score in found[1:]}) == 1
    assert [each for each, _ in found[1:]] == sorted(map(entry_id, texts))[:19]


def test_a_text_without_a_word_of_the_query_is_no_hit() -> None:
    index = indexed(*TEXTS)
    assert texts_of(index.search("teeth", 10)) == [TEXTS[2]]
    assert index.search("the zebra", 10) == []
    assert index.search("", 10) == index.search("?!", 10) == index.search("\ud83d", 10) == []


def test_negations_are_searched_for() -> None:
    assert texts_of(indexed(*TEXTS).search("not", 10)) == [TEXTS[1]]
    assert texts_of(indexed(*TEXTS).search("never", 10)) == [TEXTS[1]]


def test_a_repeated_word_counts_once() -> None:
    index = indexed(*TEXTS)
    assert index.search("cup cups CUP bricks", 10) == index.search("cup brick", 10)


def test_only_chosen_texts_are_found_with_their_score_among_all() -> None:
    index = indexed(*TEXTS)
    scores = dict(index.search("cup bricks", 10))
    second = entry_id(TEXTS[1])
    assert index.search("cup bricks", 10, among=[second, second, "unknown"]) == [(second, scores[second])]
    assert index.search("cup bricks", 10, among=[]) == []


def test_texts_without_any_word_are_never_found() -> None:
    assert indexed("a", "the of").search("a cup", 5) == []


def test_what_is_saved_is_opened(tmp_path: Path) -> None:
    made = indexed(*TEXTS, k1=1.2, stop_words=("cup",))
    digest = made.save(tmp_path)
    opened = Bm25.open(tmp_path, sorted(map(entry_id, TEXTS)), digest=digest)
    assert opened.settings == made.settings
    for query in ("bricks that never break", "cup", "שלום"):
        assert opened.search(query, 10) == made.search(query, 10)


def test_files_are_the_same_in_every_process(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from tests.retrieval.test_bm25 import TEXTS, indexed; import sys;"
        "print(indexed(*TEXTS).save(Path(sys.argv[1])))"
    )
    digests: set[bytes] = set()
    for seed in "12":
        command = [sys.executable, "-c", script, str(tmp_path / seed)]
        done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, check=True)
        digests.add(done.stdout)
    assert len(digests) == 1


FILES = ("bm25.json", "data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy", "vocab.index.json")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", ["changed", "gone"])
def test_a_changed_file_is_named(tmp_path: Path, name: str, harm: str) -> None:
    digest = indexed(*TEXTS).save(tmp_path)
    if harm == "gone":
        (tmp_path / name).unlink()
    else:
        data = bytearray((tmp_path / name).read_bytes())
        data[-2] ^= 1
        (tmp_path / name).write_bytes(bytes(data))
    with pytest.raises(StoreError, match=f"{name}.*build the index again"):
        Bm25.open(tmp_path, sorted(map(entry_id, TEXTS)), digest=digest)


def npy(array: Any, *, pickled: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=pickled)
    return buffer.getvalue()


class Harm:
    def __reduce__(self) -> Any:
        return os.abort, ()


FORGED = {
    "pickle": ("data.csc.index.npy", npy(np.array([Harm()], dtype=object), pickled=True), "holds no numbers"),
    "bare pickle": ("data.csc.index.npy", pickle.dumps(Harm()), "holds no numbers"),
    "giant": ("data.csc.index.npy", npy(np.zeros(1, "f4")).replace(b"(1,),", b"(10**15,),"), "holds no numbers"),
    "nan": ("data.csc.index.npy", npy(np.full(3, np.nan, dtype=np.float32)), "holds no scores"),
    "far text": ("indices.csc.index.npy", npy(np.full(17, 99, dtype=np.int32)), "names texts that there are not"),
    "negative": ("indices.csc.index.npy", npy(np.full(17, -1, dtype=np.int32)), "names texts that there are not"),
    "starts": ("indptr.csc.index.npy", npy(np.arange(3)), "does not fit the words"),
    "word twice": ("vocab.index.json", b'{"cup": 0, "brick": 0}', "holds no words"),
    "word list": ("vocab.index.json", b'["cup"]', "holds no words"),
    "no json": ("vocab.index.json", b"\x80", "is no text in UTF-8"),
}


@pytest.mark.parametrize(("name", "content", "message"), FORGED.values(), ids=FORGED)
def test_a_forged_file_with_the_right_digest_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    from hashlib import sha256

    indexed(*TEXTS).save(tmp_path)
    (tmp_path / name).write_bytes(content)
    said = json.loads((tmp_path / "bm25.json").read_bytes())
    said["files"][name] = sha256(content).hexdigest()
    (tmp_path / "bm25.json").write_text(json.dumps(said), encoding="utf-8")
    with pytest.raises(StoreError, match=f"{name}.*{message}"):
        Bm25.open(tmp_path, sorted(map(entry_id, TEXTS)))


DESCRIBED: dict[str, tuple[dict[str, Any], str]] = {
    "newer": ({"format": 2}, "has the format 2"),
    "other texts": ({"count": 4}, "is of 4 texts, and the index has 5"),
    "settings": ({"settings": {"k1": -1, "stop_words": []}}, "describes no BM25"),
    "unknown setting": ({"settings": {"corpus": "/x", "stop_words": []}}, "describes no BM25"),
    "no files": ({"files": {}}, "describes no BM25"),
}


@pytest.mark.parametrize(("fields", "message"), DESCRIBED.values(), ids=DESCRIBED)
def test_a_description_that_does_not_fit_is_refused(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    indexed(*TEXTS).save(tmp_path)
    said = json.loads((tmp_path / "bm25.json").read_bytes())
    (tmp_path / "bm25.json").write_text(json.dumps(said | fields), encoding="utf-8")
    with pytest.raises(StoreError, match=message):
        Bm25.open(tmp_path, sorted(map(entry_id, TEXTS)))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "k1": ({"k1": float("nan")}, "k1=nan"),
    "b": ({"b": 2.0}, "b=2.0"),
    "method": ({"method": "bm25+"}, "lucene, robertson, atire"),
    "stemmer": ({"stemmer": "klingon"}, "no stemmer 'klingon'.*english"),
}


@pytest.mark.parametrize(("settings", "message"), WRONG.values(), ids=WRONG)
def test_settings_that_there_are_not_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        indexed(*TEXTS, **settings)


def test_ids_have_to_be_sorted() -> None:
    with pytest.raises(UsageError, match="sorted by id"):
        Bm25.build(["b", "a"], ["one", "two"])
    with pytest.raises(UsageError, match="needs texts"):
        Bm25.build([], [])


def test_the_form_tells_settings_apart() -> None:
    assert Bm25Settings().form() == {
        "k1": 1.5,
        "b": 0.75,
        "method": "lucene",
        "stemmer": "english",
        "stop_words": "031f9a0136889d8f",
    }
    assert Bm25Settings(stop_words=()).form() != Bm25Settings().form()


def test_without_its_packages_a_search_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    index = indexed(*TEXTS)
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(MissingExtra, match=r"needs Stemmer.*askance\[retrieval\]"):
        index.search("cup", 3)
