"""BM25 over the texts of an index, by bm25s and the stemmers of Snowball (PyStemmer).

Words are two letters or more, in lower case, without stop words, each by its stem. A word of a query counts once,
however often the query says it, so that a long description does not drown in what it repeats.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from askance.documents import UnreadableDocument, parse_json
from askance.errors import StoreError, UsageError, optional_library
from askance.models.encoders.search import check_count

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from askance.chat import JsonObject

    Numbers: TypeAlias = NDArray[np.float32]

Bm25Method = Literal["lucene", "robertson", "atire"]
"""How often a word stands in a text, and in how many texts, to a score; as bm25s has them (Kamphuis et al., 2020)."""

STOP_WORDS: tuple[str, ...] = (
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "of", "on", "or",
    "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
)  # fmt: skip
"""Lucene's English stop words without `no` and `not`: hard negatives turn on them, and on `never`, `nor`, `without`."""

DESCRIPTION = "bm25.json"
"""File that says what the others are."""

FORMAT = 1
MOST_BYTES = 2_000_000_000
"""Most bytes of a file."""

_WAY_OUT = "Delete the folder, and build the index again."
_ARRAYS = {name: f"{name}.csc.index.npy" for name in ("data", "indices", "indptr")}
_WORDS = "vocab.index.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Settings:
    """What decides a BM25 score beside the texts.

    Raises:
        UsageError: a number out of its range, or a method that there is not.
    """

    k1: float = 1.5
    """How much a word counts that stands more than once in a text, from 0; the default is bm25s's."""
    b: float = 0.75
    """How much the length of a text counts, from 0 to 1; the default is bm25s's."""
    method: Bm25Method = "lucene"
    stemmer: str = "english"
    """Language of the stemmer, as PyStemmer calls it."""
    stop_words: tuple[str, ...] = STOP_WORDS
    """Words that are not searched for, in lower case."""

    def __post_init__(self) -> None:
        if not (0 <= self.k1 < float("inf") and 0 <= self.b <= 1 and self.method in get_args(Bm25Method)):
            raise UsageError(
                f"BM25 has no settings k1={self.k1}, b={self.b}, method={self.method!r}.",
                hint=f"k1 is 0 or more, b from 0 to 1, and the method {', '.join(get_args(Bm25Method))}.",
            )

    def form(self) -> JsonObject:
        """The settings as JSON, with a digest in place of the stop words."""
        words = sha256("\n".join(self.stop_words).encode()).hexdigest()[:16]
        return {**asdict(self), "stop_words": words}


class Bm25:
    """Texts to be searched by their words. `build` and `open` make it.

    Args:
        ids: of the texts, in order.
        engine: bm25s's object with the scores of every word in every text.
        settings: that it was made with.
    """

    def __init__(self, ids: Sequence[str], engine: Any, settings: Bm25Settings) -> None:
        self.settings = settings
        self._ids = ids
        self._engine = engine

    @classmethod
    def build(cls, ids: Sequence[str], texts: Sequence[str], settings: Bm25Settings | None = None) -> Bm25:
        """Makes it of texts; equal texts and settings make equal files.

        Args:
            ids: of the texts, sorted; of equal scores the smaller id comes first.
            texts: in the same order.
            settings: by default those of `Bm25Settings`.

        Raises:
            MissingExtra: bm25s or PyStemmer is not installed.
            UsageError: there are no texts, or the ids are not sorted.
        """
        import numpy as np

        if not ids or list(ids) != sorted(set(ids)) or len(ids) != len(texts):
            raise UsageError("BM25 needs texts, each with an id, sorted by id.", hint="Give the entries of an index.")
        settings = settings or Bm25Settings()
        tokens = _words(texts, settings, as_ids=True)
        # bm25s numbers words in the order of a set, which differs from process to process.
        vocabulary = {word: number for number, word in enumerate(sorted(tokens.vocab))}
        numbers = {old: vocabulary[word] for word, old in tokens.vocab.items()}
        rows = [[numbers[old] for old in row] for row in tokens.ids]
        engine = _engine(settings)
        with np.errstate(invalid="ignore"):  # the mean length of texts that have no word at all
            engine.index((rows, vocabulary), create_empty_token=False, show_progress=False)
        return cls(ids, engine, settings)

    def save(self, folder: Path) -> str:
        """Writes it into a folder; gives the sha256 of the file that has the digests of the others.

        Raises:
            StoreError: it cannot be written.
        """
        try:
            self._engine.save(folder, show_progress=False)
            files = {name: sha256((folder / name).read_bytes()).hexdigest() for name in (*_ARRAYS.values(), _WORDS)}
            description = {"format": FORMAT, "count": len(self._ids), "settings": asdict(self.settings), "files": files}
            text = json.dumps(description, indent=2, sort_keys=True).encode() + b"\n"
            (folder / DESCRIPTION).write_bytes(text)
        except OSError as error:
            raise StoreError(
                f"BM25 cannot be written to {str(folder)!r}: {error.strerror}.",
                hint="Make room, or name another folder.",
            ) from error
        return sha256(text).hexdigest()

    @classmethod
    def open(cls, folder: Path, ids: Sequence[str], *, digest: str | None = None) -> Bm25:
        """What was saved in a folder. Nothing in it is run, whoever wrote it.

        Args:
            folder: of the files.
            ids: of the texts, sorted.
            digest: what `save` gave; None does not check that.

        Raises:
            MissingExtra: bm25s is not installed.
            StoreError: a file is missing, damaged, changed, or of other texts; the message names it.
        """
        text = _read(folder / DESCRIPTION, digest)
        try:
            settings, count, files = _described(parse_json(text, unique=True))
        except UnreadableDocument as error:
            raise _refused(folder / DESCRIPTION, str(error)) from error
        if count != len(ids):
            raise _refused(folder / DESCRIPTION, f"is of {count:,} texts, and the index has {len(ids):,}")
        arrays = {name: _array(folder / file, files[file]) for name, file in _ARRAYS.items()}
        try:
            vocabulary = _vocabulary(parse_json(_read(folder / _WORDS, files[_WORDS]), unique=True))
        except UnreadableDocument as error:
            raise _refused(folder / _WORDS, str(error)) from error
        _check_arrays(folder, arrays, words=len(vocabulary), texts=count)
        engine = _engine(settings)
        engine.scores = {**arrays, "num_docs": count}
        engine.vocab_dict = vocabulary
        engine.nonoccurrence_array = None
        return cls(ids, engine, settings)

    def search(self, text: str, k: int, among: Collection[str] | None = None) -> list[tuple[str, float]]:
        """The ids of the `k` best texts with their scores: by score, then by id. A text without a common word is none.

        Args:
            text: whose words are searched for.
            k: how many are wanted, from 1.
            among: the ids to choose from; those that are not there are passed over. None is all. A score is that among
                all texts.

        Raises:
            MissingExtra: bm25s or PyStemmer is not installed.
            UsageError: fewer than one is wanted.
        """
        import numpy as np

        check_count(k)
        (words,) = _words([text], self.settings, as_ids=False)
        word_ids = self._engine.get_tokens_ids(list(dict.fromkeys(words)))
        if not word_ids:
            return []
        scores: Numbers = self._engine.get_scores_from_ids(word_ids)
        if among is not None:
            chosen = [self._places[each] for each in set(among) if each in self._places]
            allowed = np.zeros_like(scores)
            allowed[chosen] = scores[chosen]
            scores = allowed
        places = np.flatnonzero(scores > 0)
        if k < len(places):
            least = np.partition(scores[places], -k)[-k]
            places = places[scores[places] >= least]
        order = np.lexsort((places, -scores[places]))[:k]
        best: list[int] = places[order].tolist()
        return [(self._ids[place], float(scores[place])) for place in best]

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {each: place for place, each in enumerate(self._ids)}


def _engine(settings: Bm25Settings) -> Any:
    bm25s, _ = _libraries()
    return bm25s.BM25(k1=settings.k1, b=settings.b, method=settings.method, backend="numpy", csc_backend="numpy")


def _words(texts: Sequence[str], settings: Bm25Settings, *, as_ids: bool) -> Any:
    """The words of texts: as numbers with their vocabulary, or as they are."""
    bm25s, stemmers = _libraries()
    try:
        stemmer = stemmers.Stemmer(settings.stemmer)  # one each time: it is not made for several threads
    except KeyError as error:
        known = ", ".join(stemmers.algorithms())
        raise UsageError(f"There is no stemmer {settings.stemmer!r}.", hint=f"There are: {known}.") from error
    return bm25s.tokenize(
        list(texts), stopwords=settings.stop_words, stemmer=stemmer, return_ids=as_ids, show_progress=False
    )


def _libraries() -> tuple[Any, Any]:
    lacking = "A search by words needs {}, which is not installed."
    bm25s, stemmers = (optional_library(each, "retrieval", lacking=lacking) for each in ("bm25s", "Stemmer"))
    return bm25s, stemmers


# --- files, which may be a stranger's ---


def _read(path: Path, digest: str | None) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _refused(path, f"is larger than {MOST_BYTES:,} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise _refused(path, f"cannot be read ({error.strerror})") from error
    if digest is not None and sha256(data).hexdigest() != digest:
        raise _refused(path, "was changed or damaged after it was written")
    return data


def _described(form: Any) -> tuple[Bm25Settings, int, Mapping[str, str]]:
    """Settings, number of texts and digests of the files, as `bm25.json` has them.

    Raises:
        UnreadableDocument: it has them not.
    """
    try:
        if form["format"] != FORMAT:
            raise UnreadableDocument(f"has the format {form['format']!r}, and this askance reads {FORMAT}")
        values: dict[str, Any] = dict(form["settings"])
        values["stop_words"] = tuple(map(str, values["stop_words"]))
        settings = Bm25Settings(**values)
        count, files = int(form["count"]), {name: str(form["files"][name]) for name in (*_ARRAYS.values(), _WORDS)}
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise error if isinstance(error, UnreadableDocument) else UnreadableDocument("describes no BM25") from error
    return settings, count, files


def _array(path: Path, digest: str) -> NDArray[Any]:
    import numpy as np

    try:
        return np.load(io.BytesIO(_read(path, digest)), allow_pickle=False)
    except (EOFError, MemoryError, OSError, ValueError) as error:
        raise _refused(path, "holds no numbers") from error


def _vocabulary(form: Any) -> dict[str, int]:
    """The words with their numbers.

    Raises:
        UnreadableDocument: they are none, or not numbered from 0 on.
    """
    words = cast("dict[str, int]", form if isinstance(form, dict) else {})
    if not isinstance(form, dict) or sorted(map(repr, words.values())) != sorted(map(str, range(len(words)))):
        raise UnreadableDocument("holds no words, each with a number of its own")
    return words


def _check_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]], *, words: int, texts: int) -> None:
    """Refuses numbers that are no scores of words in texts: for each word a stretch of texts and of scores."""
    import numpy as np

    data, texts_of, starts = arrays["data"], arrays["indices"], arrays["indptr"]
    if data.ndim != 1 or data.dtype != np.float32 or not np.isfinite(data).all():
        raise _refused(folder / _ARRAYS["data"], "holds no scores")
    sound = texts_of.shape == data.shape and texts_of.dtype.kind == "i"
    if not sound or (len(data) and not (texts_of.min() >= 0 and texts_of.max() < texts)):
        raise _refused(folder / _ARRAYS["indices"], "names texts that there are not")
    sound = starts.shape == (words + 1,) and starts.dtype.kind == "i" and starts[0] == 0 and starts[-1] == len(data)
    if not sound or (np.diff(starts) < 0).any():
        raise _refused(folder / _ARRAYS["indptr"], "does not fit the words")


def _refused(path: Path, why: str) -> StoreError:
    return StoreError(f"The file {str(path)!r} {why}.", hint=_WAY_OUT)
