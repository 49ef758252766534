"""`askance index`: an index of texts, searches in it, and what is in it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askance.amounts import many
from askance.cli.columns import Columns, Line, Part, Report, shortened
from askance.cli.group import command_group
from askance.cli.options import AsJson, Llm, PromptCalls, Records, Vlm, spelled_out
from askance.cli.options import Plan as PlanOption
from askance.cli.process import HELP, OK, SOME
from askance.errors import StoreError, UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.chains import Chain, Plan, Reading
    from askance.chat import JsonObject
    from askance.cli.workspace import CommandWorkspace
    from askance.images import Image
    from askance.models.encoders.embedder import RecordedEmbedder
    from askance.retrieval import (
        Index,
        IndexEntry,
        NearTwins,
        RetrievalHit,
        RetrievalQuery,
        Space,
        StoreLike,
    )

app = command_group("An index of texts: build it, search it, see what is in it.")


Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the index.")]
OwnStore = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.py:NAME", help="A store of your own that the index was built with: its vectors lie there."
    ),
]


# --- build ---


@dataclass(frozen=True, kw_only=True)
class IndexBuildOptions:
    """The options of one `askance index build`; None is not given."""

    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the index; it is made.")]
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the persuasive ads, or a file of their statements: every action-reason."),
    ] = None
    texts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="A table of texts: CSV, JSON lines, Parquet, hf:OWNER/NAME. May be repeated."
        ),
    ] = None
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="Of --texts: text=COLUMN, image=COLUMN, split=COLUMN, where they are called otherwise.",
        ),
    ] = None
    split: Annotated[
        str | None,
        typer.Option(
            help="Of --data: train (the default), or train,test, which takes the true statements of the test part too."
        ),
    ] = None
    negatives: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A file of statements and options, such as hard negatives: its wrong options are added as texts that "
            "are true of no image. May be repeated.",
        ),
    ] = None
    embedder: Annotated[
        str | None,
        typer.Option(
            help="Makes the vectors: st:FOLDER, or clip:FOLDER, whose pictures find texts. Without it: words alone."
        ),
    ] = None
    vector_store: Annotated[
        str | None,
        typer.Option(
            metavar="file|lance|FILE.py:NAME",
            help="Where the vectors are kept: file (the default), a file that is searched whole; lance, for more than "
            "fits into memory; or a store of your own.",
        ),
    ] = None
    plan: PlanOption = False
    store: Records = None
    as_json: AsJson = False


@app.command(epilog=HELP)
@spelled_out
def build(options: IndexBuildOptions) -> None:
    """Build an index of texts; the same command goes on with one that was interrupted.

    Each distinct text is one entry, with all images that it is true of. Another --embedder adds its vectors to an
    index that is there; --data and --texts may then be left out.
    """
    from askance.cli.execute import GOES_ON, execute
    from askance.cli.progress import Progress
    from askance.retrieval import Index
    from askance.workspace import Workspace

    _check_build(options)
    store = _store(options.vector_store)
    with Workspace(plan=options.plan, store=options.store) as work:
        embedder = None if options.embedder is None else work.embedder(options.embedder)
        if embedder is not None:
            embedder.form()  # an error in the spec, or in the weights, is said before the texts are read
        rows, notes = _entries_and_notes(options)
        state = "embedded" if embedder is not None else "words counted"
        code = execute(
            work,
            lambda progress: Index.build(
                options.folder, rows, embedder=embedder, store=store, progress=progress.update
            ),
            lambda index: _built_report(index, notes),
            plan=lambda: _missing(options.folder, rows, embedder, store),
            planned=lambda missing: _plan_report(options.folder, rows, missing, embeds=embedder is not None),
            as_json=options.as_json,
            progress=lambda: Progress("texts", len({row.id for row in rows}), state=lambda: state),
            interrupted=lambda progress: f"{progress}.\n{GOES_ON}.",
        )
    raise typer.Exit(code)


def _check_build(options: IndexBuildOptions) -> None:
    """Refuses options that would change nothing."""
    if options.data is None and (options.split is not None or options.negatives):
        flag = "--split" if options.split is not None else "--negatives"
        raise UsageError(f"`{flag}` goes with --data, and no data are named.", hint="Add --data DIR, or leave it out.")
    if options.column and not options.texts:
        raise UsageError(
            "`--column` goes with --texts, and no table is named.", hint="Add --texts FILE, or leave it out."
        )
    if options.vector_store is not None and options.embedder is None:
        raise UsageError(
            "`--vector-store` keeps vectors, and none are made.", hint="Add --embedder SPEC, or leave it out."
        )


def _entries_and_notes(options: IndexBuildOptions) -> tuple[list[IndexEntry], list[str]]:
    """The rows of the index, and what is to be said of them."""
    from askance.cli.inputs import columns_named
    from askance.retrieval import Index, table_entries
    from askance.retrieval.entries import COLUMNS

    rows: list[IndexEntry] = []
    notes: list[str] = []
    if options.data is not None:
        from askance.evals.pittads import index_entries

        splits = [
            name.strip() for name in ("train" if options.split is None else options.split).split(",") if name.strip()
        ]
        entries = index_entries(options.data, splits=splits, negatives=options.negatives or ())
        rows += entries.rows
        parts = (
            f"{many(count, 'image')} {f'of the part {name}' if name else 'of no part'}"
            for name, count in entries.images.items()
        )
        notes.append(f"Statements of {', '.join(parts)}.")
        if "test" in splits and "test" not in entries.images:
            notes.append("No statement of the part test is there: `test_right.json` would have them.")
        for reason, count in entries.left_out.items():
            notes.append(f"{many(count, 'image')} left out: {reason}. `--split train,test` takes both parts.")
    columns = columns_named(options.column or (), COLUMNS)
    for source in options.texts or ():
        rows += table_entries(source, columns)
    if options.data is None and not options.texts:
        if not options.folder.is_dir():
            raise UsageError("No texts are named for the index.", hint="Give --data DIR or --texts FILE.")
        rows += Index.open(options.folder).entries
    return rows, notes


def _store(name: str | None) -> StoreLike:
    """The store of vectors of a name.

    Raises:
        UsageError: there is none, or the object that a file names is none.
    """
    from askance.retrieval.vector_store import load_store

    if name is None or name == "file":
        return "file"
    return "lance" if name == "lance" else load_store(name)


async def _missing(
    folder: Path, rows: Sequence[IndexEntry], embedder: RecordedEmbedder | None, store: StoreLike
) -> int:
    """How many vectors would be made."""
    from askance.retrieval import Index

    if embedder is None:
        return 0
    return await Index.plan(folder, rows, embedder=embedder, store=store, engine=embedder.engine)


def _plan_report(folder: Path, rows: Sequence[IndexEntry], missing: int, *, embeds: bool) -> Report:
    """How many texts would be in the index, and how many vectors would be made."""
    from askance.retrieval import merge_entries

    entries = len(merge_entries(rows))
    form = {"index": str(folder), "entries": entries, "vectors": missing}
    made = f"{many(missing, 'vector')} to be made" if embeds else "no vectors"
    return Report(lambda: form, lambda: [f"{folder}: {many(entries, 'text')}, {made}."], breaks=False)


def _built_report(index: Index, notes: Sequence[str]) -> Report:
    """What is in an index that was built."""
    stats = index.stats()
    vectors = ", ".join(map(_space_name, index.spaces)) or "no vectors"
    summary = f"{index.folder}: {many(stats.entries, 'text')} of {many(_images(index), 'image')}; {vectors}."
    notes = [*notes, *_stats_notes(stats.merged, stats.junk)]
    return Report(lambda: _description(index), lambda: [summary], notes)


def _stats_notes(merged: int, junk: int) -> Iterator[str]:
    if merged:
        yield f"{many(merged, 'statement is', 'statements are')} one entry with an equal one of another image."
    if junk:
        yield f"{many(junk, 'text says', 'texts say')} nothing (`n/a` and the like): marked as junk."


# --- search ---


@dataclass(frozen=True, kw_only=True)
class IndexSearchOptions:
    """The options of one `askance index search` beside those of its calls; None is not given."""

    folder: Folder
    query: Annotated[
        str, typer.Argument(metavar="TEXT|PICTURE", help="What is searched by: words, or the file of a picture.")
    ]
    how: Annotated[
        str,
        typer.Option(
            metavar="hybrid|dense|bm25|image",
            help="dense: by vectors; bm25: by words; image: the picture itself; hybrid: all that index and query have. "
            "Some of them: dense+image.",
        ),
    ] = "hybrid"
    k: Annotated[int, typer.Option("-k", min=1, help="How many texts are shown.")] = 10
    vlm: Vlm = None
    llm: Llm = None
    context: Annotated[
        str | None,
        typer.Option(
            help="What models say of the picture, to search by: T_V (the default), T_V-UH, V+T, IN, UH, V+T+IN, "
            "V+T+IN+UH."
        ),
    ] = None
    embedder: Annotated[
        str | None, typer.Option(help="Makes the vector of the words: a spec that the index was built with.")
    ] = None
    encoder: Annotated[str | None, typer.Option(help="Makes that of the picture, likewise: clip:FOLDER.")] = None
    vector_store: OwnStore = None
    as_json: AsJson = False


@app.command(epilog=HELP)
@spelled_out
def search(options: IndexSearchOptions, calls: PromptCalls) -> None:
    """Find the texts of an index that fit a text or a picture best. Every search is on record.

    A picture is searched by itself, in an index with vectors of clip:, or by what --vlm and --llm say of it.
    """
    from askance.cli.workspace import open_workspace

    with open_workspace(calls, name="index") as work:
        code = _Search(options, work).run()
    raise typer.Exit(code)


DEPTH = 100
"""Texts that are searched for at least, so that another -k shows more or fewer of the same search."""


class _Search:
    """One search, and what is printed about it."""

    def __init__(self, options: IndexSearchOptions, work: CommandWorkspace) -> None:
        from askance.retrieval import Index, IndexRetriever
        from askance.retrieval.vector_store import load_store

        self._options = options
        self._work = work
        own = None if options.vector_store is None else load_store(options.vector_store)
        self._index = Index.open(options.folder, store=own)
        self._picture = _picture(options.query)
        self._retriever = IndexRetriever(
            self._index,
            how=options.how,
            k=max(options.k, DEPTH),
            embedder=options.embedder,
            encoder=options.encoder,
            engine=work.engine,
        )
        self._chain = self._describing_chain()

    def run(self) -> int:
        """Searches, or plans that; returns the exit code."""
        from askance.cli.execute import GOES_ON, ON_RECORD, execute

        return execute(
            self._work,
            lambda _: self._searched(),
            lambda hits: hits,
            plan=self._plan,
            as_json=self._options.as_json,
            progress=nullcontext,
            interrupted=lambda _: f"{GOES_ON}; {ON_RECORD}",
        )

    def _describing_chain(self) -> Chain | None:
        """What puts a picture into words; None where only the picture itself, or a text, is searched by.

        Raises:
            UsageError: models are named for a text; or a picture can be searched by neither itself nor words.
        """
        options = self._options
        named = [flag for flag in ("vlm", "llm", "context") if getattr(options, flag) is not None]
        ways = self._retriever.ways
        if self._picture is None or ways == ("image",):
            if named:
                why = (
                    f"{options.query[:60]!r} is no file of one"
                    if self._picture is None
                    else "this one is searched by itself"
                )
                raise UsageError(
                    f"`--{named[0]}` puts a picture into words, and {why}.",
                    hint="Leave it out, or name a picture and a `--how` with words.",
                )
            return None
        if options.how == "hybrid" and "image" in ways and not named:
            return None
        vlm = options.vlm or self._work.default_model("vlm")
        if vlm is None:
            raise UsageError(
                f"{options.query!r} is a picture, and no model puts it into words.",
                hint="Name one: --vlm openai:gpt-4o. Or add vectors that pictures find: `askance index build "
                f"{options.folder} --embedder clip:FOLDER`.",
            )
        from askance.chains import verbalize

        llm = options.llm or self._work.default_model("llm")
        context: Any = options.context or "T_V"
        return verbalize(
            self._work.model(vlm),
            None if llm is None else self._work.model(llm),
            context=context,
            prompts=self._work.library,
        )

    async def _plan(self) -> Plan:
        """What the search would ask."""
        from askance.chains import Planner
        from askance.chains.link import DESCRIPTION

        planner = Planner()
        texts, waiting = self._texts, 0
        if self._chain is not None:
            walk = planner.walk(self._chain)
            with planner.counting():
                description = (await walk.read({"image": self._picture})).value(DESCRIPTION)
            texts, waiting = ((str(description),), 0) if description is not None else ((), 1)
        self._retriever.plan(planner, self._query(texts), waiting=waiting)
        return planner.plan(1, unit="query")

    async def _searched(self) -> Report:
        """Searches; says what was found."""
        from askance.chains.link import DESCRIPTION

        texts = self._texts
        if self._chain is not None:
            reading = await self._chain.read({"image": self._picture, "name": self._options.query})
            if reading.outcome != "answered":
                return Report(None, lambda: (), ends=lambda: _unanswered(reading))
            texts = (str(reading.require(DESCRIPTION)),)
        query = self._query(texts)
        hits = await self._retriever.search(query)
        return self._report(query, hits[: self._options.k])

    @property
    def _texts(self) -> tuple[str, ...]:
        """The texts that the command line names."""
        return () if self._picture is not None else (self._options.query,)

    def _query(self, texts: tuple[str, ...]) -> RetrievalQuery:
        from askance.retrieval import RetrievalQuery

        return RetrievalQuery(texts, image=self._picture)

    def _report(self, query: RetrievalQuery, hits: Sequence[RetrievalHit]) -> Report:
        """The hits."""
        options = self._options
        known: Mapping[str, IndexEntry] = self._index.by_id if self._index.has_entries else {}
        # Behind the first hundred hits have no text.
        hits = [hit if hit.text or hit.id not in known else replace(hit, text=known[hit.id].text) for hit in hits]
        form = {
            "index": str(options.folder),
            "digest": self._index.digest,
            "how": options.how,
            "texts": list(query.texts),
            "image": None if query.image is None else query.image.sha256,
            "hits": [_hit_form(hit, known) for hit in hits],
        }
        return Report(lambda: form, lambda: _hit_lines(hits, known), ends=lambda: self._end(any_hits=bool(hits)))

    def _end(self, *, any_hits: bool) -> int:
        """Says where nothing was found, and what models were asked; returns the exit code."""
        if not any_hits:
            why = " No text shares a word with the query." if self._retriever.ways == ("bm25",) else ""
            echo(f"Nothing was found.{why}", err=True)
        if self._chain is not None:
            echo(str(self._work.tally), err=True)
        return OK


def _unanswered(reading: Reading) -> int:
    """Says which links of a picture have no answer; returns the exit code."""
    from askance.cli.output import table_of

    echo(table_of([reading.to_dict()]), err=True)
    return SOME


SHOWN = 3
"""Images of a text that are named at most; `--json` has them all."""


def _hit_lines(hits: Sequence[RetrievalHit], known: Mapping[str, IndexEntry]) -> Iterator[Line]:
    """Rank, score and text of each hit, and below it the images that the text is true of."""
    scores = [f"{hit.score:.4f}" for hit in hits]
    room = max(map(len, scores), default=0)
    indent = 4 + room + 2
    for rank, (hit, score) in enumerate(zip(hits, scores, strict=True), start=1):
        text = " ".join(hit.text.split())
        yield Line(f"{rank:>3} {score:>{room}}  {text}", indent)
        entry = known.get(hit.id)
        if entry is None:
            continue
        images = [
            *entry.images[:SHOWN],
            *([f"{len(entry.images) - SHOWN:,} more"] if len(entry.images) > SHOWN else []),
        ]
        facts = ", ".join([*(images or ["true of no image"]), *entry.marks])
        yield Line(f"{'':{indent}}{facts}", indent)


def _hit_form(hit: RetrievalHit, known: Mapping[str, IndexEntry]) -> JsonObject:
    form: JsonObject = {"id": hit.id, "score": hit.score, "text": hit.text}
    entry = known.get(hit.id)
    if entry is None:
        return form
    return {**form, "images": list(entry.images), "split": entry.split, "marks": list(entry.marks)}


def _picture(query: str) -> Image | None:
    """The picture that a query names; None where it is a text.

    Raises:
        BadImage: the file is no picture.
        UsageError: no such file is there, and it has the ending of a picture, or nearly the name of one beside it.
    """
    from askance.images import Image

    path = Path(query)
    if not path.suffix or any(blank in path.suffix for blank in " \n"):
        return None
    if os.path.isfile(query):  # noqa: PTH113  # a query may be too long for a path
        image = Image.from_path(path)
        _ = image.info  # it may be no picture
        return image
    near = _pictures_near(path)
    if near or _names_picture(query):
        way_out = f"Nearest: {near}." if near else "Check the name of the file."
        raise UsageError(
            f"There is no picture {query[:80]!r}.", hint=f"{way_out} A blank behind the name searches for the words."
        )
    return None


def _names_picture(query: str) -> bool:
    """Whether a query has the ending of a picture; or nearly has it, or that of one in another format, in one word."""
    from difflib import get_close_matches
    from mimetypes import guess_type

    from askance.images import SUFFIXES

    suffix = Path(query).suffix.lower()
    if suffix in SUFFIXES:
        return True
    in_words = any(map(str.isspace, query))
    of_picture = (guess_type(f"a{suffix}")[0] or "").startswith("image/")
    return not in_words and (of_picture or bool(get_close_matches(suffix, SUFFIXES, cutoff=0.75)))


def _pictures_near(path: Path) -> str:
    """Pictures beside a file that is not there, with nearly its name."""
    from difflib import get_close_matches

    from askance.images import SUFFIXES

    try:
        names = {each.name.lower(): each for each in path.parent.iterdir() if each.suffix.lower() in SUFFIXES}
    except (OSError, ValueError):  # no such folder, or no text for the name of one
        return ""
    return ", ".join(repr(str(names[name])) for name in get_close_matches(path.name.lower(), names, cutoff=0.8))


# --- stats ---


@app.command()
def stats(
    folder: Folder,
    near_twins: Annotated[
        bool,
        typer.Option(
            "--near-twins",
            help="Also count pairs of texts with a cosine above 0.95 that are true of different images: minutes for "
            "200,000.",
        ),
    ] = False,
    vector_store: OwnStore = None,
    as_json: AsJson = False,
) -> None:
    """Say what is in an index, and check its files; exit code 1 where one is damaged or was changed."""
    from askance.models import run_sync
    from askance.retrieval import Index
    from askance.retrieval.vector_store import load_store

    index = Index.open(folder, store=None if vector_store is None else load_store(vector_store))
    problems = list(dict.fromkeys(index.verify()))
    twins: Mapping[str, NearTwins] = run_sync(_near_twins(index)) if near_twins and not problems else {}
    try:
        counts = _description(index)
    except StoreError:  # the problems say why
        counts = None
    counted = {name: {"pairs": each.pairs, "entries": each.entries} for name, each in twins.items()}
    form = {**(counts or {"index": str(folder)}), "near_twins": counted or None, "problems": problems}
    notes = [] if as_json else problems
    if near_twins and not index.spaces:
        notes = ["Near-twins are told by vectors, and the index has none.", *notes]
    elif near_twins and any(space.store != "file" for space in index.spaces):
        notes = ["Near-twins are counted in files of vectors alone.", *notes]
    parts = () if counts is None else _stats_parts(index, twins)
    end = SOME if problems else OK
    raise typer.Exit(Report(lambda: form, lambda: parts, notes, breaks=False, ends=lambda: end).print(as_json=as_json))


async def _near_twins(index: Index) -> Mapping[str, NearTwins]:
    """Pairs of texts that say nearly the same, by the name of their space; files of vectors alone are compared."""
    return {_space_name(space): await index.near_twins(space) for space in index.spaces if space.store == "file"}


def _stats_parts(index: Index, twins: Mapping[str, NearTwins]) -> Iterator[Part]:

    stats = index.stats()
    yield f"{index.folder}: {many(stats.entries, 'text')} of {many(_images(index), 'image')}"
    rows = [
        ("", "texts"),
        ("  true of an image", f"{stats.entries - stats.without_image:,}"),
        ("  true of no image", f"{stats.without_image:,}"),
        *((f"  of the part {name}" if name else "  of no part", f"{count:,}") for name, count in stats.splits.items()),
        ("  junk", f"{stats.junk:,}"),
        ("  no because", f"{stats.no_because:,}"),
        ("  duplicates merged", f"{stats.merged:,}"),
    ]
    yield Columns(rows)
    yield ""
    if not index.spaces:
        yield "Vectors: none; texts are found by their words."
    else:
        rows = [("Vectors", "numbers", "kept in")]
        rows += [(f"  {_space_name(space)}", f"{space.size:,}", space.store) for space in index.spaces]
        yield Columns(rows, left=(0, 2))
    if twins:
        yield ""
    for name, counted in twins.items():
        of = f" of {many(counted.entries, 'text')}" if counted.pairs else ""
        yield f"Near-twins by {name}: {many(counted.pairs, 'pair')}{of}"
    yield ""
    yield Columns([("Size", ""), *((f"  {name}", _size(size)) for name, size in _sizes(index).items())])


def _sizes(index: Index) -> Mapping[str, int]:
    """Bytes of each part of the index's folder."""
    if index.folder is None:
        return {}
    sizes: dict[str, int] = {}
    for path in sorted(index.folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            part = path.relative_to(index.folder).parts[0]
            sizes[part] = sizes.get(part, 0) + path.stat().st_size
    return {part: size for part, size in sizes.items() if size}


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def _images(index: Index) -> int:
    return len({image for entry in index.entries for image in entry.images})


def _description(index: Index) -> JsonObject:
    """What is known of an index, as JSON."""
    stats = index.stats()
    return {
        "index": str(index.folder),
        "digest": index.digest,
        "entries": stats.entries,
        "images": _images(index),
        "without_image": stats.without_image,
        "merged": stats.merged,
        "junk": stats.junk,
        "no_because": stats.no_because,
        "splits": dict(stats.splits),
        "spaces": [{**space.form(), "name": _space_name(space)} for space in index.spaces],
        "bytes": _sizes(index),
    }


LONGEST_NAME = 32
"""Characters of the name of an encoder, which may hold the digest of its weights."""


def _space_name(space: Space) -> str:
    return shortened(space.name, LONGEST_NAME)
