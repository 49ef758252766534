"""An index of texts in a folder: its entries, their vectors by one embedder or several, and the search by words.

```
index.json        what decides the results of a search, and the digests of the other files; written last, and whole
statements.jsonl  one entry a line, by id
vectors/          16-bit rows, one file an embedder; or lance/, with a table an embedder
bm25/             the search by words
lock              held while the index is built
```

A build that was stopped, even by kill -9, goes on where it was: vectors are on the disk after each block. The folder
may come from a stranger: files are read within limits, links are refused, and no file in it names code.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

from askance.documents import MAX_SHOWN, UnreadableDocument, parse_json, schema_violation
from askance.errors import StoreError, UsageError
from askance.models.encoders.embedder import get_embedder
from askance.models.encoders.records import id_of_form
from askance.models.encoders.vectors import FOLDER as VECTORS
from askance.models.encoders.vectors import VectorFile, half
from askance.models.loop import run_sync
from askance.retrieval import bm25
from askance.retrieval.bm25 import Bm25
from askance.retrieval.entries import (
    JUNK,
    NO_BECAUSE,
    STATEMENTS,
    IndexEntry,
    digest_of,
    entry_lines,
    merge_entries,
    read_entries,
)
from askance.retrieval.lance import LanceVectors
from askance.retrieval.vector_store import ExactVectors, VectorStore

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.models.encoders.embedder import EmbedderLike, RecordedEmbedder
    from askance.models.encoders.vectors import Half
    from askance.models.engine import Engine

INDEX = "index.json"
"""File of an index that describes it."""
WORDS = "bm25"
"""Folder of the search by words."""
_BM25 = f"{WORDS}/{bm25.DESCRIPTION}"
LANCE = "lance"
"""Folder of LanceDB."""

FORMAT = 1
"""Of `index.json`, as this version writes it."""
MOST_BYTES = 50_000_000
"""Most bytes of `index.json`."""
BLOCK = 1024
"""Texts that are embedded at a time: what a killed build loses at most."""
_SCHEMA = Path(__file__).with_name("index.schema.json")
_LOCK = "lock"
_NAMES = (INDEX, f"{INDEX}.part", STATEMENTS, f"{STATEMENTS}.part", VECTORS, WORDS, LANCE, _LOCK)
"""All that stands in the folder of an index."""
_WAIT = 0.2
"""Seconds until a build looks again whether the one before it has ended."""
_AGAIN = "Build the index again from its data, in another folder or in this one once it is empty."

StoreKind: TypeAlias = Literal["file", "lance", "own"]
"""Where vectors are: in files of ours, in LanceDB, or in a store that is named again when the index is opened."""

StoreLike: TypeAlias = Literal["file", "lance"] | VectorStore
"""What a build takes for that."""

if TYPE_CHECKING:
    IndexLike: TypeAlias = "str | os.PathLike[str] | Index | Mapping[str, Any]"
else:
    IndexLike = Annotated[Any, "a folder of an index"]  # a field of a task may have this type, and pydantic reads it
"""A folder, an `Index`, or what `Index.form` gave, which answers from records alone."""

Progress: TypeAlias = Callable[[int, int], None]
"""Told at first and after each block how many texts are embedded, and of how many."""


@dataclass(frozen=True, slots=True)
class Space:
    """The vectors of one embedder in an index."""

    embedder: JsonObject
    """Everything but the text that decides a vector: what `get_embedder` takes."""
    size: int
    """Numbers of a vector."""
    store: StoreKind = "file"

    def form(self) -> JsonObject:
        """As `index.json` has it."""
        return {"embedder": self.embedder, "size": self.size, "store": self.store}

    @property
    def name(self) -> str:
        """The name of the embedder, in which the digest of its weights may stand."""
        return str(id_of_form(self.embedder.get("model")))

    def __str__(self) -> str:
        return json.dumps(self.embedder, ensure_ascii=False, sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStats:
    """What is counted of an index's entries."""

    entries: int
    merged: int
    """Statements that became one with an equal one of another image."""
    without_image: int
    """Entries that are true of no image."""
    junk: int
    no_because: int
    splits: Mapping[str, int]
    """Entries by split."""


@dataclass(frozen=True, slots=True)
class NearTwins:
    """Entries that say nearly the same of different images: each is a right answer that counts as wrong."""

    pairs: int
    entries: int
    """Entries that are in one of the pairs."""


class Index:
    """An index of texts. `Index.build` makes one, `Index.open` opens one."""

    def __init__(self, form: Mapping[str, Any], folder: Path | None, store: VectorStore | None) -> None:
        self._form = dict(form)
        self.folder = folder
        """None where only the form is known."""
        self._store = store
        self._stores: dict[str, VectorStore] = {}
        self._whole = set[str]()
        """The spaces whose vectors are known to be those of the texts."""

    # --- building ---

    @classmethod
    async def build(
        cls,
        folder: str | os.PathLike[str],
        entries: Iterable[IndexEntry],
        *,
        embedder: EmbedderLike | None = None,
        store: StoreLike = "file",
        engine: Engine | None = None,
        progress: Progress | None = None,
    ) -> Index:
        """Builds an index, goes on with one that was begun, or adds another embedder's vectors to one that is there.

        What is there is not made again. Builds of one folder take turns.

        Args:
            folder: made where it is missing.
            entries: equal texts are merged; a blank text has no vector.
            embedder: makes the vectors; without one texts are found by their words alone.
            store: where the vectors are kept.
            engine: whose settings are used; vectors of entries are kept in the index, not on record.
            progress: told at first, and after each block of texts.

        Raises:
            UsageError: there are no entries, or an embedder has nothing to embed; the folder holds an index of others,
                or something else; the embedder has no identity; or something is to be embedded in a replay.
            StoreError: the folder cannot be written, or one of its files is damaged.
            CallError: the embedder failed.
            MissingExtra: a package for retrieval is not installed.
        """
        build = _Build(Path(folder), merge_entries(entries))
        recorded = None if embedder is None else _identified(get_embedder(embedder, engine=engine))
        async with _turn(build.folder):
            await asyncio.to_thread(build.begin)
            if recorded is not None:
                await build.embed(recorded, store, progress)
            await asyncio.to_thread(build.finish)
        return cls.open(build.folder, store=None if isinstance(store, str) else store)

    @classmethod
    async def plan(
        cls,
        folder: str | os.PathLike[str],
        entries: Iterable[IndexEntry],
        *,
        embedder: EmbedderLike,
        store: StoreLike = "file",
        engine: Engine | None = None,
    ) -> int:
        """How many texts `build` would embed; nothing is written.

        Raises:
            UsageError, StoreError: as for `build`.
        """
        build = _Build(Path(folder), merge_entries(entries))
        build.check()
        vectors = build.store_of(_identified(get_embedder(embedder, engine=engine)), store)
        return len(await vectors.lacking(list(build.texts)))

    # --- opening ---

    @classmethod
    def open(cls, source: IndexLike, *, store: VectorStore | None = None) -> Index:
        """The index in a folder, or the one of which a form is known.

        Only `index.json` is read now. A folder that has nothing else opens too, as does a form: both answer from
        records, and a search that is not on record fails.

        Args:
            source: see `IndexLike`.
            store: the store that was given to `build`, where that was an object.

        Raises:
            UsageError: there is no index, or it was not finished, or `source` names none.
            StoreError: `index.json` cannot be read, is damaged, or was written by a newer version.
        """
        if isinstance(source, Index):
            return source if store is None else cls(source._form, source.folder, store)
        if isinstance(source, Mapping):
            return cls(_checked(source, "The form of an index"), None, store)
        if not isinstance(source, (str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]  # a run may say so
            raise UsageError(
                f"{str(source)[:MAX_SHOWN]!r} names no index.",
                hint="Give the folder of one: `askance index build FOLDER`.",
            )
        path = Path(source)
        folder = path.parent if path.name == INDEX and path.is_file() else path
        return cls(_read_description(folder), folder, store)

    @property
    def digest(self) -> str:
        """Sha256 over the ids of the entries in order: two indexes with one digest hold the same texts."""
        return self._form["digest"]

    @property
    def count(self) -> int:
        """How many entries there are."""
        return self._form["count"]

    @cached_property
    def spaces(self) -> tuple[Space, ...]:
        """One for each embedder whose vectors are here."""
        return tuple(Space(**form) for form in self._form["spaces"])

    @property
    def files(self) -> Mapping[str, JsonObject]:
        """Size in bytes and sha256 of each file that `index.json` names; a form names none."""
        return self._form.get("files", {})

    def form(self) -> JsonObject:
        """Everything that decides the results of a search, as JSON; `Index.open` takes it."""
        vectors = {"vectors": self._vector_digests} if self._vector_digests else {}
        return {name: value for name, value in self._form.items() if name != "files"} | vectors

    def vectors_digest(self, space: Space) -> str | None:
        """Sha256 of the file with the vectors of a space; None where no file is known."""
        return self._vector_digests.get(_vectors_name(space)) if space.store == "file" else None

    @property
    def _vector_digests(self) -> Mapping[str, str]:
        """By name of a file of vectors its sha256; the form of an older run has none."""
        digests = {name: file["sha256"] for name, file in self.files.items() if name.startswith(f"{VECTORS}/")}
        return digests or self._form.get("vectors", {})

    @property
    def has_entries(self) -> bool:
        """Whether the entries are there; a replay does without them, with `index.json` or the form alone."""
        return self.folder is not None and (self.folder / STATEMENTS).is_file()

    @cached_property
    def entries(self) -> list[IndexEntry]:
        """All entries, by id.

        Raises:
            UsageError: only the form is known.
            StoreError: their file is missing, or was changed.
        """
        entries, digest = read_entries(self._file(STATEMENTS))
        if digest != self.files[STATEMENTS]["sha256"] or digest_of(entry.id for entry in entries) != self.digest:
            raise _changed(self._path / STATEMENTS)
        return entries

    @cached_property
    def by_id(self) -> Mapping[str, IndexEntry]:
        """Entries by their ids.

        Raises:
            UsageError, StoreError: as for `entries`.
        """
        return {entry.id: entry for entry in self.entries}

    def space(self, embedder: EmbedderLike | None = None, *, engine: Engine | None = None) -> Space:
        """The vectors of an embedder; without one, those of the only embedder.

        Raises:
            UsageError: the index has none of it, or, where none is named, several.
        """
        if embedder is None:
            if len(self.spaces) == 1:
                return self.spaces[0]
            has = f"vectors of {len(self.spaces)} embedders" if self.spaces else "no vectors"
            raise UsageError(f"The index {self} has {has}, and none is named.", hint=self._choice())
        wanted = get_embedder(embedder, engine=engine).form()
        space = next((space for space in self.spaces if space.embedder == wanted), None)
        if space is None:
            name = str(id_of_form(wanted.get("model")))
            alike = any(space.name == name for space in self.spaces)
            shown = json.dumps(wanted, ensure_ascii=False, sort_keys=True) if alike else repr(name)
            hint = self._choice(whole=alike)
            raise UsageError(f"The index {self} has no vectors of the embedder {shown}.", hint=hint)
        return space

    def vectors(self, space: Space) -> VectorStore:
        """Where the vectors of a space are.

        Raises:
            UsageError: only the form is known; or they are in a store that was not given to `open`.
            StoreError: their file is missing, or was changed.
        """
        if space.store == "own":
            if self._store is None:
                raise UsageError(
                    f"The vectors of {space} are in a store that the index {self} does not name.",
                    hint="Give it as it was given to the build: `Index.open(folder, store=…)`, or `--vector-store`.",
                )
            return self._store
        if str(space) not in self._stores:
            made = _store_in(self._path, space.embedder, space.store)
            if isinstance(made, ExactVectors):
                self._file(f"{VECTORS}/{made.file.path.name}")
            self._stores[str(space)] = made
        return self._stores[str(space)]

    async def whole_vectors(self, space: Space) -> VectorStore:
        """As `vectors`, where they are those of the texts: else a search would pass texts over in silence.

        Raises:
            UsageError: as for `vectors`.
            StoreError: as for `vectors`; or a text has none, or another text has one. An own store is not asked, since
                that may take long.
        """
        store = await asyncio.to_thread(self.vectors, space)
        if space.store != "own" and str(space) not in self._whole:
            await asyncio.to_thread(lambda: self.entries)
            lacking, others = await self._mismatch(store)
            if lacking or others:
                raise StoreError(
                    f"The vectors of {space} in the index {self} {lacking or others}.",
                    hint="Build the index again, in another folder."
                    if others
                    else "Run the same build again, which makes what is missing.",
                )
            self._whole.add(str(space))
        return store

    async def _mismatch(self, store: VectorStore) -> tuple[str, str]:
        """What the vectors in a store lack, and what they have too much, in words; empty where they fit the texts."""
        wanted = [entry.id for entry in self.entries if entry.text.strip()]
        lacking = len(await store.lacking(wanted))
        others = await store.count() - (len(wanted) - lacking)
        return (
            f"lack {lacking:,} of {len(wanted):,} texts" if lacking else "",
            f"hold {others:,} of other texts" if others else "",
        )

    @cached_property
    def bm25(self) -> Bm25:
        """The search by words.

        Raises:
            UsageError: only the form is known.
            StoreError: one of its files, or that of the entries, is missing or was changed.
            MissingExtra: bm25s or PyStemmer is not installed.
        """
        return self._open_bm25()

    def _open_bm25(self) -> Bm25:
        self._file(_BM25)
        ids = [entry.id for entry in self.entries]
        bm25 = Bm25.open(self._path / WORDS, ids, digest=self.files[_BM25]["sha256"])
        if bm25.settings.form() != self.bm25_settings:  # records go by these
            raise _changed(self._path / INDEX)
        return bm25

    @property
    def bm25_settings(self) -> JsonObject:
        """What decides the results of the search by words beside the texts."""
        return self._form["bm25"]

    # --- what it holds, and whether it is sound ---

    def stats(self) -> IndexStats:
        """What is counted of the entries.

        Raises:
            UsageError, StoreError: as for `entries`.
        """
        entries = self.entries
        return IndexStats(
            entries=len(entries),
            merged=sum(max(0, len(entry.images) - 1) for entry in entries),
            without_image=sum(not entry.images for entry in entries),
            junk=sum(JUNK in entry.marks for entry in entries),
            no_because=sum(NO_BECAUSE in entry.marks for entry in entries),
            splits=dict(sorted(Counter(entry.split for entry in entries).items())),
        )

    async def near_twins(self, space: Space, *, above: float = 0.95) -> NearTwins:
        """Pairs of entries whose vectors have a cosine above a bound, and that are true of no image in common.

        All pairs are compared, a block at a time: 40,000 entries took 35 s on two busy cores, and time grows with the
        square of their number.

        Raises:
            UsageError: the vectors are in no file of ours.
            StoreError: as for `entries` and `whole_vectors`.
        """
        store = await self.whole_vectors(space)
        if not isinstance(store, ExactVectors):
            raise UsageError(
                f"Near-twins are counted in files of vectors, and those of {space} are elsewhere.",
                hint='Build the index with `store="file"`.',
            )
        return await asyncio.to_thread(self._near_twins, store, above)

    def _near_twins(self, store: ExactVectors, above: float) -> NearTwins:
        images = {entry.id: frozenset(entry.images) for entry in self.entries if entry.images}
        pairs, entries = 0, set[str]()
        for one, other in store.pairs_above(above):
            if one in images and other in images and images[one].isdisjoint(images[other]):
                pairs += 1
                entries.update((one, other))
        return NearTwins(pairs, len(entries))

    def verify(self) -> Iterator[str]:
        """What is wrong with the index, in words; nothing is, as a rule. All of its files are read.

        Raises:
            UsageError: only the form is known.
            MissingExtra: a package for retrieval is not installed.
        """
        for name, file in self.files.items():
            try:
                path = self._file(name)
                if _digest(path) != file["sha256"]:
                    raise _changed(path)
            except StoreError as error:
                yield str(error)
        try:
            self._open_bm25()
        except StoreError as error:
            yield str(error)
            return
        for space in self.spaces:
            try:
                store = self.vectors(space)
                mismatch = run_sync(self._mismatch(store))
            except (StoreError, UsageError) as error:
                yield str(error)
                continue
            yield from (f"The vectors of {space} {each}." for each in mismatch if each)
            yield from getattr(store, "verify", tuple[str])()

    @property
    def _path(self) -> Path:
        if self.folder is None:
            raise UsageError(
                f"The index {self} is known by its form alone, and a record is lacking.",
                hint="Give the folder of the index, or replay with the records of the run.",
            )
        return self.folder

    def _file(self, name: str) -> Path:
        """The path of one of the index's files, which has the size that `index.json` says.

        Raises:
            StoreError: it is missing, or has another size.
        """
        path = self._path / name
        file = self.files.get(name)
        if file is None or not path.is_file():
            raise StoreError(
                f"The index {str(self._path)!r} lacks its file {name!r}.",
                hint="Run the same build again, which makes what is missing; a replay needs `index.json` alone.",
            )
        if path.stat().st_size != file["bytes"]:
            raise _changed(path)
        return path

    def _choice(self, *, whole: bool = False) -> str:
        """The way out where no space is meant: all there are, by name or by all that decides their vectors."""
        if not self.spaces:
            return "Build it with an embedder: `askance index build FOLDER --embedder SPEC` adds its vectors."
        names = (str(space) if whole else repr(space.name) for space in self.spaces)
        return f"It has: {'; '.join(names)}. A build with another embedder adds its vectors."

    def __str__(self) -> str:
        return self.digest[:12] if self.folder is None else repr(str(self.folder))

    def __repr__(self) -> str:
        return f"Index({self}, {self.count:,} entries)"


class _Build:
    """One build of a folder.

    Args:
        folder: of the index.
        entries: merged.

    Raises:
        UsageError: there are no entries.
    """

    def __init__(self, folder: Path, entries: Sequence[IndexEntry]) -> None:
        if not entries:
            raise UsageError("There are no entries for an index.", hint="Give one or more texts.")
        self.folder = folder
        self.entries = entries
        self.texts = {entry.id: entry.text for entry in entries if entry.text.strip()}
        """Those that have a vector, by id."""
        self._spaces: dict[str, Space] = {}
        self._files: dict[str, JsonObject] = {}
        self._bm25: JsonObject = {}

    def check(self) -> bool:
        """Whether the entries are in the folder already; takes in what a finished index says of its files.

        Raises:
            UsageError: the folder holds other entries, or something that is no index.
            StoreError: a file of it is damaged.
        """
        _refuse_odd_files(self.folder)
        path = self.folder / STATEMENTS
        if (self.folder / INDEX).exists():
            existing = Index.open(self.folder)
            if existing.digest != digest_of(entry.id for entry in self.entries):
                raise _others(self.folder)
            self._spaces = {str(space): space for space in existing.spaces}
            self._files = dict(existing.files)
        elif not path.exists() and (strange := _stranger_in(self.folder)):
            raise UsageError(
                f"The folder {str(self.folder)!r} holds {strange!r}, and no index.", hint="Name a new folder."
            )
        if not path.exists():
            return False
        digest = sha256()
        for line in entry_lines(self.entries):
            digest.update(line)
        if _digest(path) != digest.hexdigest():
            raise _others(self.folder)
        return True

    def begin(self) -> None:
        """Writes the entries, and makes the search by words."""
        if not self.check():
            _write(self.folder / STATEMENTS, entry_lines(self.entries))
        self._note(STATEMENTS)
        ids = [entry.id for entry in self.entries]
        try:
            words = Bm25.open(self.folder / WORDS, ids, digest=self._files.get(_BM25, {}).get("sha256"))
        except StoreError:  # there is none, it was not finished, or it was changed
            words = Bm25.build(ids, [entry.text for entry in self.entries])
            words.save(self.folder / WORDS)
        self._bm25 = words.settings.form()
        self._note(_BM25)

    def store_of(self, embedder: RecordedEmbedder, store: StoreLike) -> VectorStore:
        """The store for the vectors of `embedder`.

        Raises:
            UsageError: there is nothing to embed; they are in another one already; or two embedders would share an
                object.
        """
        if not self.texts:
            raise UsageError(
                f"The texts of the index {str(self.folder)!r} are all blank, and a blank text has no vector.",
                hint="Build it without an embedder, or of other texts.",
            )
        form = embedder.form()
        kind: StoreKind = store if isinstance(store, str) else "own"
        for space in self._spaces.values():
            if space.embedder == form and space.store != kind:
                raise UsageError(
                    f"The index {str(self.folder)!r} has the vectors of {space} in the store {space.store!r}.",
                    hint="Take that store, or another folder.",
                )
            if space.embedder != form and space.store == kind == "own":
                raise UsageError(
                    f"The index {str(self.folder)!r} has the vectors of {space} in a store of your own, and one index "
                    "takes one such store.",
                    hint='Take `store="file"` for the second embedder, or another folder.',
                )
        return store if not isinstance(store, str) else _store_in(self.folder, form, store)

    async def embed(self, embedder: RecordedEmbedder, store: StoreLike, progress: Progress | None) -> None:
        """Embeds the texts that have no vector yet, a block at a time."""
        vector_store = self.store_of(embedder, store)
        name = (
            f"{VECTORS}/{vector_store.file.path.name}"
            if isinstance(vector_store, ExactVectors) and store == "file"
            else None
        )
        if name in self._files and (self.folder / name).exists():
            before = self._files[name]
            await asyncio.to_thread(self._note, name)
            if before != self._files[name]:
                raise _changed(self.folder / name)
        space = Space(embedder.form(), 0, store if isinstance(store, str) else "own")
        size = self._spaces.get(str(space), space).size
        lacking = await vector_store.lacking(list(self.texts))
        if others := await vector_store.count() - (len(self.texts) - len(lacking)):
            raise UsageError(
                f"The store for the vectors of the index {str(self.folder)!r} has {others:,} of other texts.",
                hint="Give it a store of its own, or empty this one.",
            )
        if lacking and embedder.engine.mode == "replay":
            raise UsageError(
                f"{len(lacking):,} texts of the index {str(self.folder)!r} have no vectors, and a replay makes none.",
                hint="Build the index in another mode; to replay a run, its records and `index.json` are enough.",
            )
        done = len(self.texts) - len(lacking)
        if progress is not None:
            progress(done, len(self.texts))
        for start in range(0, len(lacking), BLOCK):
            ids = lacking[start : start + BLOCK]
            vectors = await self._vectors(embedder, ids)
            await vector_store.add(ids, vectors)
            size, done = len(vectors[0]), done + len(ids)
            if progress is not None:
                progress(done, len(self.texts))
        if not size:  # a build was stopped between its last vector and its end
            size = len((await self._vectors(embedder, list(self.texts)[:1]))[0])
        self._spaces[str(space)] = replace(space, size=size)
        if name is not None:
            await asyncio.to_thread(self._note, name)

    async def _vectors(self, embedder: RecordedEmbedder, ids: Sequence[str]) -> list[Half]:
        made = await embedder.fresh([self.texts[each] for each in ids])
        return [half(vector) for vector in made]

    def _note(self, name: str) -> None:
        """Notes size and digest of a file, for `index.json`."""
        path = self.folder / name
        self._files[name] = {"bytes": path.stat().st_size, "sha256": _digest(path)}

    def finish(self) -> None:
        """Writes `index.json`."""
        form = {
            "format": FORMAT,
            "digest": digest_of(entry.id for entry in self.entries),
            "count": len(self.entries),
            "spaces": [space.form() for _, space in sorted(self._spaces.items())],
            "bm25": self._bm25,
            "files": self._files,
        }
        text = json.dumps(form, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        _write(self.folder / INDEX, [text.encode("utf-8", "backslashreplace")])


@asynccontextmanager
async def _turn(folder: Path) -> AsyncGenerator[None]:
    """Holds the lock of an index while it is built; waits for another build.

    Raises:
        StoreError: the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / _LOCK, blocking=False, thread_local=False)
    try:
        await asyncio.to_thread(_make_folder, folder)
        while True:
            with suppress(Timeout):
                lock.acquire()
                break
            await asyncio.sleep(_WAIT)
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        yield
    finally:
        lock.release()


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_odd_files(folder)


def _vectors_name(space: Space) -> str:
    return f"{VECTORS}/{VectorFile(Path(), space.embedder).path.name}"


def _store_in(folder: Path, about: JsonObject, kind: Literal["file", "lance"]) -> VectorStore:
    if kind == "file":
        return ExactVectors(folder, about)
    return LanceVectors(folder / LANCE, about)


def _identified(embedder: RecordedEmbedder) -> RecordedEmbedder:
    if embedder.stored:
        return embedder
    raise UsageError(
        f"Nothing tells the vectors of {str(embedder.id)!r} from another embedder's, so that no index can keep them.",
        hint='Give it a name of its own: `get_embedder(embedder, identity="…")`.',
    )


# --- files ---


def _read_description(folder: Path) -> JsonObject:
    path = folder / INDEX
    _refuse_odd_files(folder)
    if not path.is_file():
        begun = (folder / STATEMENTS).is_file()
        raise UsageError(
            f"The index {str(folder)!r} was not finished." if begun else f"{str(folder)!r} holds no index.",
            hint="Run the same build again: it goes on where it was."
            if begun
            else "Make one: `askance index build FOLDER`.",
        )
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableDocument(f"is larger than {MOST_BYTES:,} bytes")
        document = parse_json(path.read_bytes(), unique=True)
    except UnreadableDocument as error:
        raise StoreError(f"{str(path)!r} describes no index: it {error}.", hint=_AGAIN) from error
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be read: {error.strerror}.", hint="Check who may read it.") from error
    form = _checked(document, repr(str(path)))
    if STATEMENTS not in form.get("files", {}):
        raise StoreError(f"{str(path)!r} describes no index: it names no {STATEMENTS!r}.", hint=_AGAIN)
    for name in form["files"]:
        if not _is_inside(name):
            raise StoreError(f"{str(path)!r} names a file outside of its folder: {name[:MAX_SHOWN]!r}.", hint=_AGAIN)
    return form


def _checked(form: Any, what: str) -> JsonObject:
    """The form of an index, held against its schema.

    Raises:
        StoreError: it is none, or of a newer version.
    """
    version = cast("Mapping[str, Any]", form).get("format") if isinstance(form, Mapping) else None
    if isinstance(version, int) and version > FORMAT:
        raise StoreError(
            f"{what} has the format {version}, which a newer version of askance wrote; this one knows {FORMAT}.",
            hint="Upgrade askance, or build the index again.",
        )
    plain = dict(cast("Mapping[str, Any]", form)) if isinstance(form, Mapping) else form
    if (wrong := schema_violation(plain, _SCHEMA)) is not None:
        raise StoreError(f"{what} describes no index: {wrong}.", hint=_AGAIN)
    return plain


def _is_inside(name: str) -> bool:
    parts = name.split("/")
    return len(parts) <= 2 and "\\" not in name and "\0" not in name and not {"", ".", ".."} & set(parts)


def _refuse_odd_files(folder: Path) -> None:
    """Refuses links, which may lead out of the folder, and pipes, which may never end, in place of an index's files."""
    ours = [folder / name for name in _NAMES]
    for path in (*ours, *(inside for part in ours for inside in part.rglob("*"))):
        if path.is_symlink() or (path.exists() and not (path.is_file() or path.is_dir())):
            what = "a symbolic link" if path.is_symlink() else "no regular file"
            raise UsageError(f"{str(path)!r} is {what}.", hint="Put the file itself there, or remove it.")


def _stranger_in(folder: Path) -> str | None:
    """The name of something in a folder that no index has; None where there is nothing."""
    return next((path.name for path in sorted(folder.glob("*")) if path.name not in _NAMES), None)


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be read: {error.strerror}.", hint="Check who may read it.") from error


def _write(path: Path, lines: Iterable[bytes]) -> None:
    """Writes a file whole or not at all.

    Raises:
        StoreError: it cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise _unwritable(path.parent, error) from error


def _unwritable(folder: Path, error: OSError) -> StoreError:
    return StoreError(f"The index {str(folder)!r} cannot be written: {error.strerror}.", hint="Name another folder.")


def _changed(path: Path) -> StoreError:
    return StoreError(
        f"{str(path)!r} was changed since the index was built.",
        hint="Put the file back, or delete it and run the same build again.",
    )


def _others(folder: Path) -> UsageError:
    return UsageError(
        f"The folder {str(folder)!r} has an index of other entries.",
        hint="Name another folder, or delete this one.",
    )
