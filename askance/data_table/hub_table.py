"""Data sets of Hugging Face, `hf:owner/name`, by the library `datasets` (extra `hf`).

`hf:owner/name?split=test&config=en&revision=abc` says which split, configuration and revision. What is downloaded, or
streamed where only the first rows are wanted, lies in the cache of Hugging Face. No code of a data set is run.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from itertools import count as counted
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl

from askance.data_table.arrow_table import (
    BATCH,
    MOST_FILES,
    MOST_RATIO,
    MOST_UNPACKED,
    ArrowFiles,
    ArrowTable,
    arrow_library,
    arrow_reader,
    saved_table,
    unpacked_size,
)
from askance.data_table.packed_size import packed_size
from askance.data_table.picture_cell import is_below
from askance.data_table.row import MOST_ROWS, DataTable
from askance.data_table.table_name import ARROW_SUFFIXES, HUB, SPLITS, STATE
from askance.documents import read_yaml
from askance.errors import BadData, UsageError, optional_library

_OF_HUB = re.compile(r"(?!buckets/)[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*", re.ASCII)
"""The name of a data set of the hub."""
_BUILDERS = frozenset({"arrow", "cache", "csv", "imagefolder", "json", "parquet", "text", "webdataset"})
"""Builders of `datasets` that are used: they read data, and unpickle nothing. `cache` reads what one of them made."""


@dataclass(frozen=True)
class _HubName:
    """`hf:owner/name?split=…&config=…&revision=…`, taken apart."""

    name: str
    split: str | None = None
    config: str | None = None
    revision: str | None = None

    @property
    def path(self) -> str:
        """The name as `datasets` takes it: a folder's in full, since a short one may be that of a builder."""
        return str(Path(self.name).resolve()) if Path(self.name).is_dir() else self.name

    @classmethod
    def parse(cls, source: str) -> _HubName:
        name, _, query = source.removeprefix(HUB).partition("?")
        try:
            pairs = parse_qsl(query, strict_parsing=True) if query else []
            settings = dict(pairs)
            readable = settings.keys() <= {"split", "config", "revision"} and len(settings) == len(pairs)
        except ValueError:
            settings, readable = {}, False
        if not readable or (not (Path(name).is_dir() if name else False) and _OF_HUB.fullmatch(name) is None):
            raise BadData(
                f"{source!r} is no name of a data set.",
                hint="Write hf:OWNER/NAME, hf:OWNER/NAME?split=test or hf:FOLDER; `config` and `revision` go likewise.",
            )
        return cls(name, **settings)


@dataclass(frozen=True)
class _HubRows:
    """A data set that `datasets` loaded; its rows are read as Arrow, so that nothing decodes a picture."""

    loaded: Any

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.loaded.column_names)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        return self.loaded.select_columns(list(columns)).with_format("arrow").iter(batch_size=BATCH)


@dataclass(frozen=True)
class _StreamedRows:
    """Rows of a data set of the hub, fetched as they are asked for; what was fetched is kept, and read by a replay.

    They are kept in files of `BATCH` rows. One with fewer is the last.
    """

    source: str
    folder: Path
    rows: Any
    """The data set, streamed by `datasets`; None offline."""

    @staticmethod
    def folder_of(library: Any, dataset: _HubName) -> Path:
        """The folder with one folder of files for each state of a data set, in the cache of `datasets`."""
        return Path(library.config.HF_DATASETS_CACHE) / "askance" / sha256(repr(dataset).encode()).hexdigest()[:32]

    @property
    def columns(self) -> tuple[str, ...]:
        return next((file.columns for file in self._files()), ())

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for file in self._files():
            yield from file.batches(columns)

    def _files(self) -> Iterator[ArrowFiles]:
        """The files in order; one that is not there is fetched.

        Raises:
            BadData: it cannot be fetched.
        """
        fetched: Iterator[Any] | None = None
        for number in counted():
            path = self._path(number)
            if not path.is_file():
                fetched = self._fetched(number) if fetched is None else fetched
                table = _loading(self.source, partial(next, fetched, None))
                if table is None:
                    if not number:
                        return
                    table = arrow_reader(self._path(number - 1)).schema.empty_table()
                _write_arrow(path, table)
            yield ArrowFiles([path])
            if arrow_reader(path).read_all().num_rows < BATCH:
                return

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.arrow"

    def _fetched(self, number: int) -> Iterator[Any]:
        """Tables of `BATCH` rows from that of a number on.

        Raises:
            BadData: nothing may be fetched.
        """
        if self.rows is None:
            raise BadData(
                f"Of {self.source!r} only {number * BATCH:,} rows are kept, and a replay fetches none.",
                hint="Run it once without `--replay`.",
            )
        yield from self.rows.skip(number * BATCH).iter(batch_size=BATCH)


def _write_arrow(path: Path, table: Any) -> None:
    """Writes a file of Arrow whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    with arrow_library().ipc.new_stream(str(part), table.schema) as file:
        file.write_table(table)
    part.replace(path)


def _newest_in(folder: Path) -> Path | None:
    return max(folder.glob("*"), key=lambda each: each.stat().st_mtime, default=None)


STREAMED_FROM = 50_000_000
"""Bytes of a data set's files from which on rows are streamed; what smaller ones unpack to is checked beforehand."""
_SPLIT = re.compile(r"\w+(?:\.\w+)*", re.ASCII)
"""The name of a split; `train[:100]` is none."""


def _can_stream(library: Any, builder: Any, split: str, *, source: str) -> bool:
    """Whether rows are fetched one after the other: as tables, of a whole split, which is large and was not loaded yet.

    Raises:
        BadData: nobody says how large it is.
    """
    loaded = (Path(builder.cache_dir) / "dataset_info.json").is_file()
    if loaded or not isinstance(builder, library.ArrowBasedBuilder) or _SPLIT.fullmatch(split) is None:
        return False
    hub = optional_library("huggingface_hub", "hf").HfFileSystem()
    size = _loading(source, lambda: sum(int(hub.info(file)["size"]) for file in _files_of(builder)))
    return size >= STREAMED_FROM


def hub_table(source: str, *, offline: bool, stream: bool) -> DataTable:
    """A data set by `datasets`: of the hub, or of a folder.

    Raises:
        BadData: it is not there, cannot be loaded, or has several splits and none is named.
        MissingExtra: `datasets` is not installed.
    """
    dataset = _HubName.parse(source)
    folder = Path(dataset.name)
    if any((folder / name).is_file() for name in (STATE, SPLITS)):
        return saved_table(str(folder), folder / dataset.split if dataset.split else folder)
    library = _datasets(offline=offline)
    parts = _StreamedRows.folder_of(library, dataset)
    try:
        builder = _builder(library, dataset, source)
    except BadData:
        if offline and stream and (newest := _newest_in(parts)) is not None:
            return ArrowTable(source, None, _StreamedRows(source, newest, None))
        raise
    split = dataset.split or _only_split(None if offline else library, builder, dataset)
    if stream and not offline and not folder.is_dir() and _can_stream(library, builder, split, source=source):
        builder.config.batch_size = BATCH  # else a row group of Parquet is unpacked whole
        rows = _loading(source, lambda: builder.as_streaming_dataset(split=split).with_format("arrow"))
        return ArrowTable(source, None, _StreamedRows(source, parts / str(builder.hash), rows))
    if not Path(builder.cache_dir).is_dir():  # else it was loaded before
        _loading(source, lambda: _check_unpacked(library, builder, source))
    _loading(source, builder.download_and_prepare)
    loaded = _loading(source, lambda: builder.as_dataset(split=split))
    if len(loaded) > MOST_ROWS:
        raise BadData(
            f"{source!r} has {len(loaded):,} rows, more than {MOST_ROWS:,}.",
            hint=f"Take a part: {HUB}{dataset.name}?split={split}[:1000]",
        )
    return ArrowTable(source, folder if folder.is_dir() else None, _HubRows(loaded))


def _builder(library: Any, dataset: _HubName, source: str) -> Any:
    """What loads a data set, once it is known that it reads files of the data set alone, and runs nothing.

    Raises:
        BadData: it leads elsewhere, is read by another builder than `_BUILDERS`, or cannot be loaded.
    """
    folder, revision = Path(dataset.name).resolve() if Path(dataset.name).is_dir() else None, dataset.revision
    if folder is not None:
        _check_card(folder, source)
    elif not library.config.HF_HUB_OFFLINE:  # the data set may change between two looks at it, its commit cannot
        card = _loading(source, lambda: _card_of_hub(dataset))
        _check_card(card, source)
        revision = card.name
    builder = _loading(source, lambda: library.load_dataset_builder(dataset.path, dataset.config, revision=revision))
    package, name = (type(builder).__module__.split(".") + [""] * 3)[1:3]
    if package != "packaged_modules" or name not in _BUILDERS:
        raise BadData(
            f"{source!r} is read by the builder {name!r}, which is not used.",
            hint=f"Used are {', '.join(sorted(_BUILDERS))}. Save the data as Parquet, CSV or JSON lines.",
        )
    for file in _files_of(builder):
        if not (is_below(Path(file), folder) if folder else file.startswith(f"hf://datasets/{dataset.name}@")):
            raise _leads_out(source, file)
    return builder


def _files_of(builder: Any) -> list[str]:
    """Paths or addresses of the files that a builder reads."""
    files: Mapping[str, Iterable[Any]] = builder.config.data_files or {}
    return [str(file) for file in chain.from_iterable(files.values())]


def _check_unpacked(library: Any, builder: Any, source: str) -> None:
    """Checks what the files of a data set unpack to, since `datasets` unpacks all of them.

    Raises:
        BadData: it is too much.
    """
    named = _files_of(builder)
    fetched: list[str] = library.DownloadManager(record_checksums=False).download(named)
    files = [Path(file) for file in fetched]
    left = most = max(MOST_UNPACKED, MOST_RATIO * sum(file.stat().st_size for file in files))
    for file, name in zip(files, named, strict=True):
        if Path(name).suffix.lower() in ARROW_SUFFIXES:
            table = ArrowFiles([file])
            left -= sum(sum(map(unpacked_size, batch.columns)) for batch in table.batches(table.columns))
        else:
            left -= packed_size(file, most=left)
        if left < 0:
            raise BadData(
                f"{source!r} unpacks to more than {most:,} bytes, with {name!r}.",
                hint="Save its rows in several data sets, or its pictures as files beside it.",
            )


def _card_of_hub(dataset: _HubName) -> Path:
    """A folder with the card of a data set of the hub; it is called by the commit that the card is of."""
    download = optional_library("huggingface_hub", "hf").snapshot_download
    patterns = [_CARD, _SETTINGS]
    return Path(download(dataset.name, repo_type="dataset", revision=dataset.revision, allow_patterns=patterns))


def _check_card(folder: Path, source: str) -> None:
    """Checks that the card in a folder names files of the data set alone, before any file that it names is looked for.

    Raises:
        BadData: it names an address or a place elsewhere, or cannot be read.
    """
    # By aliases of YAML a short card can name files without end.
    files = _loading(source, lambda: [*islice(_named_in_card(folder), MOST_FILES + 1)])
    if len(files) > MOST_FILES:
        raise BadData(f"The card of {source!r} names more than {MOST_FILES:,} files.", hint="Name them by a pattern.")
    for file in files:
        if _ELSEWHERE.search(file.strip()):
            raise _leads_out(source, file)


_ELSEWHERE = re.compile(r"://|::|^[/~\\]|^[A-Za-z]:|(?:^|[/\\])\.\.(?:[/\\]|$)")
"""What leads out of a folder: an address, a chain of them, a full path, a home, a way up."""


_CARD, _SETTINGS = "README.md", ".huggingface.yaml"


def _named_in_card(folder: Path) -> Iterator[str]:
    """The files and folders that the configurations in a card and in a file of settings name."""
    card, settings, forms = folder / _CARD, folder / _SETTINGS, dict[Path, Any]()
    if card.is_file():
        forms[card] = optional_library("huggingface_hub", "hf").DatasetCard.load(card).data.to_dict()
    if settings.is_file():
        forms[settings] = read_yaml(settings, what="settings of a data set")
    for file, form in forms.items():
        configs: Any = form.get("configs") or []
        if not isinstance(configs, list) or not all(isinstance(each, Mapping) for each in cast("list[Any]", configs)):
            raise BadData(f"{str(file)!r}: `configs` is no list of maps.", hint="Mend the file, or take it out.")
        for config in cast("list[Mapping[str, Any]]", configs):
            yield from _texts([config.get("data_files"), config.get("data_dir")])


def _texts(value: Any) -> Iterator[str]:
    """Every text in lists and maps within each other."""
    if isinstance(value, Mapping):
        yield from _texts([*cast("Mapping[Any, Any]", value).values()])
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _texts(each)
    elif value is not None:
        yield str(value)


def _leads_out(source: str, named: str) -> BadData:
    return BadData(
        f"{source!r} leads out of the data set: {named[:200]!r}.",
        hint="Put its files into its folder, or name the file itself.",
    )


def _only_split(library: Any | None, builder: Any, dataset: _HubName) -> str:
    """The split of a data set that has one.

    Args:
        library: `datasets`; None where no server may be asked.
        builder: loads the data set.
        dataset: names it.

    Raises:
        BadData: it has several, or cannot be loaded.
    """

    def names() -> list[str]:
        if library is None:  # only what was loaded whole is known here
            builder.download_and_prepare()
            return [*builder.info.splits]
        return [*library.get_dataset_split_names(dataset.path, dataset.config, revision=dataset.revision)]

    source = f"{HUB}{dataset.name}"
    splits: list[str] = _loading(source, names)
    if len(splits) == 1:
        return splits[0]
    raise BadData(
        f"{source!r} has the splits {', '.join(splits)}.", hint=f"Name one: {HUB}{dataset.name}?split={splits[-1]}"
    )


def _loading(source: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except UsageError:
        raise
    except Exception as error:  # the library and those below it raise whatever they like
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise BadData(
            f"{source!r} cannot be loaded: {reason.rstrip('.')}.",
            hint="Check the name, the split and the network; a data set that was loaded once needs none.",
        ) from error


def _datasets(*, offline: bool) -> Any:
    """The library `datasets`, which asks no server where `offline` is set.

    Raises:
        MissingExtra: it is not installed.
    """
    if offline:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read once, when the libraries are loaded
    library = optional_library("datasets", "hf")
    library.config.HF_HUB_OFFLINE = offline or library.config.HF_HUB_OFFLINE
    if not sys.stderr.isatty():
        for shows_bars in (library, optional_library("huggingface_hub.utils", "hf")):
            shows_bars.disable_progress_bars()
    return library
