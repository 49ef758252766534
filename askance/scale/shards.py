"""A corpus that many workers read: its pictures cut into shards, and a receipt for each that is done.

`corpus.json` says what is read and how; `lists` has the pictures of each shard, `begun` which shards were begun,
`shards` an ordinary run folder for each, `receipts` what came of it. A picture goes into the shard that the digest of
its bytes names, one from the web into that of its address: equal pictures meet in one shard, whatever machine reads it.
When the work goes on, the list and the receipts are looked at, never each picture.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from glob import glob
from hashlib import file_digest, sha256
from itertools import chain, islice
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from askance import __version__
from askance.chat import JsonObject, key_of
from askance.errors import UsageError
from askance.evals.listed_picture import each_once
from askance.evals.run_configuration import difference_in_words
from askance.evals.run_folder import writing_to
from askance.evals.run_format import BATCHES, CALLS, SAMPLES
from askance.images.picture_folder import PICTURES, PictureFolder
from askance.scale.storage import LOCK, Storage

if TYPE_CHECKING:
    from askance.evals.listed_picture import ListedPicture

FORMAT = 1
DESCRIPTION, LISTS, BEGUN, SHARDS, RECEIPTS = "corpus.json", "lists", "begun", "shards", "receipts"
LEDGER = "budget.db"
DEFAULT_SHARDS = 100
TRIES = 3
"""How often a shard may end its worker, without a line in between, before it is left out."""
_HELD = 50_000
"""Pictures whose rows are held before they are written to the lists."""
_PART = 500
"""Of them, how many one thread finds the shards of at a time."""
_SIDE_BY_SIDE = 8
"""Pictures whose bytes are read at once to find their shard."""

_KEPT_PICTURE = re.compile(rf"{LISTS}/{PICTURES}/[0-9a-f]{{64}}(\.[a-z0-9]+)?")
"""A picture of a table, in the corpus."""

_encode = json.JSONEncoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRow:
    """A picture in the list of its shard."""

    number: int
    """Its place in the corpus."""
    name: str
    file: str | None = None
    """An absolute path, or one within the corpus."""
    address: str | None = None
    """Where it is fetched from, if it is no file."""
    options: Sequence[str] | None = None
    question: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What came of a shard."""

    shard: int
    worker: str
    """Machine and process."""
    error: str | None = None
    """Why the shard is not done, and the way out; None where it is, or the budget was used up."""
    kind: str = ""
    """The class of that error."""
    left: int = 0
    """Pictures that the budget had nothing left for."""
    pictures: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict[str, int])
    repeats: int = 0
    """Pictures that are copies of others in the shard: they were asked about once."""
    calls: int = 0
    replayed: int = 0
    """Answers that were on record."""
    dollars: float | None = 0.0
    """None where the price of a call is not known."""
    seconds: float = 0.0
    ended: float = 0.0
    """In seconds since 1970."""
    size: int = 0
    """Bytes of its records."""
    digest: str = ""
    """sha256 of the lines and the records of the shard."""

    @property
    def begun(self) -> float:
        """In seconds since 1970."""
        return self.ended - self.seconds

    @property
    def done(self) -> bool:
        """Whether it is kept: every picture of the shard has an outcome."""
        return self.error is None and not self.left


_ROW, _RECEIPT = TypeAdapter(ShardRow), TypeAdapter(Receipt)


class ShardedCorpus:
    """A corpus that was cut into shards.

    Args:
        place: its folder, or its address on object storage.
        disk: a folder of this machine, for the shards of an address that are read here.

    Raises:
        UsageError: there is no such corpus.
        StoreError: the storage cannot be read.
    """

    def __init__(self, place: str | Path, *, disk: Path | None = None) -> None:
        self.storage = Storage(place)
        try:
            description: Any = json.loads(self.storage.read(DESCRIPTION) or b"")
            if description["format"] != FORMAT:
                raise UsageError(
                    f"The corpus in {self.storage.shown!r} is of format {description['format']!r}, and this is "
                    f"askance for format {FORMAT}.",
                    hint="Use the askance that wrote it, or begin in another folder.",
                )
            self.configuration: JsonObject = {**description["configuration"]}
            """Everything that decides the lines, but the pictures."""
            self.listing: JsonObject = {**description["list"]}
            """What tells its list of pictures from others."""
            self.sizes: Sequence[int] = [int(size) for size in description["sizes"]]
            """Pictures of each shard."""
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UsageError(
                f"{self.storage.shown!r} holds no corpus that was cut into shards.",
                hint="Name what `askance scale run` was given by `--out`.",
            ) from error
        self._disk = self.storage.path or (disk and disk / f"corpus-{self.key}")

    @property
    def place(self) -> str:
        """Its absolute path, or its address, with the password if that has one: `storage.shown` is for people."""
        return self.storage.place

    @property
    def numbers(self) -> list[int]:
        """The shards that have pictures."""
        return [number for number, size in enumerate(self.sizes) if size]

    @property
    def pictures(self) -> int:
        """How many there are."""
        return sum(self.sizes)

    @cached_property
    def key(self) -> str:
        """Tells the corpus from others: the name of a budget that all who read it share."""
        return key_of("run", {**self.configuration, "list": self.listing})[:16]

    @property
    def ledger(self) -> Path | None:
        """The file that notes what is spent of a budget without a name of its own; None at an address."""
        return self.storage.path and self.storage.path / LEDGER

    def rows(self, number: int) -> Iterator[ShardRow]:
        """The pictures of a shard, in the order of the corpus; see `each_once`.

        Raises:
            UsageError: one is listed with different options, or the list is damaged.
        """
        return each_once(self._listed_rows(number))

    def _listed_rows(self, number: int) -> Iterator[ShardRow]:
        name = f"{LISTS}/{_file_name(number)}"
        for line in (self.storage.read(name) or b"").splitlines():
            try:
                row = _ROW.validate_python(json.loads(line))
                if row.file and not Path(row.file).is_absolute() and not _KEPT_PICTURE.fullmatch(row.file):
                    raise ValueError(row.file)
            except (ValueError, RecursionError) as error:
                raise UsageError(
                    f"{name!r} of {self.storage.shown!r} is damaged.", hint="Cut the corpus anew, into another folder."
                ) from error
            yield row

    def file(self, row: ShardRow) -> Path | None:
        """The file of a picture on this disk; one that lies on object storage is fetched. None where it has none."""
        if row.file is None:
            return None
        file = self.disk / row.file
        if not Path(row.file).is_absolute() and not file.exists():
            self.storage.fetch(row.file, file)
        return file

    @property
    def disk(self) -> Path:
        """Where shards are read on this machine: the folder of the corpus itself, if it is one."""
        assert self._disk is not None, "whoever only looks at an address brings no shard here"
        return self._disk

    def folder(self, number: int) -> Path:
        """The run folder of a shard on this disk."""
        return self.disk / _run_folder(number)

    def bring(self, number: int) -> Path:
        """The run folder of a shard on this disk, fetched if more lines, or a batch, of it lie on object storage."""
        name, folder = _run_folder(number), self.folder(number)
        samples, batches = folder / SAMPLES, folder / BATCHES
        more = self.storage.size(f"{name}/{SAMPLES}") - (samples.stat().st_size if samples.exists() else 0)
        if more > 0 or (more == 0 and not batches.exists() and self.storage.names(f"{name}/{BATCHES}")):
            self.storage.fetch(name, folder)
        return folder

    def send(self, number: int) -> bool:
        """Uploads the run folder of a shard; False if another worker has read the shard meanwhile."""
        if self.storage.path is None:
            if self.receipt(number) is not None:
                return False
            self.storage.send(_run_folder(number), self.folder(number))
            if not (self.folder(number) / BATCHES).exists():  # they have ended
                self.storage.remove(f"{_run_folder(number)}/{BATCHES}")
        return True

    def begin(self, number: int, work: str) -> bool:
        """Notes that a worker begins with a shard that was brought; False if it has ended `TRIES` at the same picture.

        Args:
            number: of the shard.
            work: tells one piece of work from another, which was ended by something else than a shard.
        """
        name, samples = f"{BEGUN}/{_file_name(number)}", self.folder(number) / SAMPLES
        now = [work, samples.stat().st_size if samples.exists() else 0]
        try:
            *before, tries = json.loads(self.storage.read(name) or b"[0]")
            tries = tries + 1 if before == now else 1
        except (ValueError, TypeError, RecursionError):  # the file is damaged
            tries = 1
        self.storage.write(name, json.dumps([*now, tries]))
        return tries <= TRIES

    def end(self, receipt: Receipt) -> None:
        """Keeps the receipt of a shard that is done; at an address, takes the shard off this disk.

        Raises:
            StoreError: it cannot be written.
        """
        if self.send(receipt.shard):
            self.keep(receipt)
        self.storage.remove(f"{BEGUN}/{_file_name(receipt.shard)}")
        if self.storage.path is None:
            rmtree(self.folder(receipt.shard), ignore_errors=True)

    def under_way(self) -> Iterator[tuple[int, int, float]]:
        """The shards that were begun and are not done: their number, their lines, and seconds since the last came."""
        begun = set(self.storage.names(BEGUN))
        for number in self.numbers:
            if _file_name(number) not in begun:
                continue
            samples = f"{_run_folder(number)}/{SAMPLES}"
            if lines := self.storage.read(samples):
                yield number, lines.count(b"\n"), self.storage.age(samples)

    def digest(self, number: int) -> str:
        """sha256 of the lines and the records of a shard that was read; empty where they are missing."""
        digest = sha256()
        with suppress(FileNotFoundError):
            for name in (SAMPLES, CALLS):
                with (self.folder(number) / name).open("rb") as file:
                    digest.update(file_digest(file, "sha256").digest())
            return digest.hexdigest()
        return ""

    def receipt(self, number: int) -> Receipt | None:
        """The receipt of a shard; None where it was not read to the end."""
        content = self.storage.read(f"{RECEIPTS}/{_file_name(number)}")
        return None if content is None else self._receipt(_file_name(number), content)

    def keep(self, receipt: Receipt) -> None:
        """Writes a receipt whole or not at all.

        Raises:
            StoreError: it cannot be written.
        """
        self.storage.write(f"{RECEIPTS}/{_file_name(receipt.shard)}", json.dumps(asdict(receipt)) + "\n")

    def receipts(self) -> Iterator[Receipt]:
        """The receipts so far, in the order of the shards."""
        receipts = self.storage.read_all(RECEIPTS, {*map(_file_name, self.numbers)}, self._receipt)
        return iter(sorted(receipts.values(), key=lambda receipt: receipt.shard))

    def _receipt(self, name: str, content: bytes) -> Receipt:
        try:
            receipt = _RECEIPT.validate_python(json.loads(content))
            if _file_name(receipt.shard) != name:
                raise ValueError(receipt.shard)
            return receipt
        except (ValueError, RecursionError) as error:
            number = int(Path(name).stem)
            raise UsageError(
                f"The receipt of shard {number} in {self.storage.shown!r} is damaged.",
                hint=f"Delete it: the same command then reads what is left of shard {number}.",
            ) from error


def cut_corpus(
    place: str | Path,
    pictures: Iterable[ListedPicture],
    *,
    configuration: JsonObject,
    listing: JsonObject,
    shards: int | None = None,
    on_picture: Callable[[int], None] | None = None,
) -> ShardedCorpus:
    """Cuts a corpus into shards, or finds that this was done.

    Args:
        place: the folder that is made, or an address on object storage.
        pictures: are read once, and not at all if the corpus was cut before.
        configuration: everything that decides the lines, but the pictures.
        listing: tells this list of pictures from others.
        shards: how many; by default `DEFAULT_SHARDS`, or as many as there are already.
        on_picture: called now and then with the number of pictures that were listed.

    Raises:
        UsageError: the place holds something else, or a corpus of another configuration, list or number of shards.
        StoreError: another process cuts it, or it cannot be written.
    """
    storage, described = Storage(place), {**configuration, "list": listing}
    if storage.read(DESCRIPTION) is not None:
        return _same(ShardedCorpus(place), described, shards)
    if not {*storage.names()} <= {LISTS, LOCK}:
        raise UsageError(f"{storage.shown!r} holds something that is no corpus.", hint="Give a new or empty folder.")
    count = shards or DEFAULT_SHARDS
    listed = iter(pictures)
    first = next(listed, None)
    if first is None:
        raise UsageError("The corpus has no pictures.", hint="Check the list.")
    with writing_to(Path(storage.shown)):
        if storage.path is not None:
            storage.path.mkdir(parents=True, exist_ok=True)  # not before there is something to list
        with storage.locked():
            if storage.read(DESCRIPTION) is None:  # else another process has cut it meanwhile
                with storage.new_folder(LISTS) as lists:
                    sizes = _listed(lists, chain([first], listed), count, on_picture=on_picture)
                content = {
                    "format": FORMAT,
                    "askance": __version__,
                    "configuration": configuration,
                    "list": listing,
                    "sizes": sizes,
                }
                storage.write(DESCRIPTION, json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
    return _same(ShardedCorpus(place), described, shards)


def digest_of_list(named: Sequence[str]) -> JsonObject:
    """What tells a list from others: the digest of each file, the names that a folder or a pattern stands for.

    The pictures of these are not read, and an address is not asked.
    """
    return {name: _digest_of(name) for name in named}


def _digest_of(name: str) -> str | None:
    path = Path(name)
    if path.is_file():
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    found = [each.name for each in path.iterdir()] if path.is_dir() else glob(name, recursive=True)  # noqa: PTH207
    names = sha256()
    for each in sorted(found):
        names.update(each.encode("utf-8", "surrogateescape") + b"\0")
    return names.hexdigest() if found else None


def _same(corpus: ShardedCorpus, described: JsonObject, shards: int | None) -> ShardedCorpus:
    there = {**corpus.configuration, "list": corpus.listing}
    if key_of("run", there) != key_of("run", described):
        words = difference_in_words(there, described)
        different = f", different in {words}" if words else ""
        raise UsageError(
            f"{corpus.storage.shown!r} holds a corpus of another configuration{different}.",
            hint="Give another `--out`, or the options that the work began with (they stand in its corpus.json).",
        )
    if shards is not None and shards != len(corpus.sizes):
        raise UsageError(
            f"The corpus in {corpus.storage.shown!r} was cut into {len(corpus.sizes):,} shards.",
            hint="Leave `--shards` out, or give another `--out`.",
        )
    return corpus


def _listed(
    lists: Path, pictures: Iterable[ListedPicture], count: int, *, on_picture: Callable[[int], None] | None
) -> list[int]:
    """Writes the lists; returns how many pictures each shard has."""
    sizes, rest, inside = [0] * count, iter(pictures), PictureFolder(lists / PICTURES)
    with ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="askance-cut") as threads:
        while block := [*islice(rest, _HELD)]:
            parts = [block[start : start + _PART] for start in range(0, len(block), _PART)]
            shards = chain.from_iterable(threads.map(partial(_shards_of, count), parts))
            lines, first = defaultdict[int, list[str]](list), sum(sizes)
            for number, (picture, shard) in enumerate(zip(block, shards, strict=True), start=first):
                lines[shard].append(_encode(_row(number, picture, inside)))
                sizes[shard] += 1
            for shard, texts in lines.items():
                with (lists / _file_name(shard)).open("a", encoding="utf-8") as file:
                    file.writelines(f"{text}\n" for text in texts)
            if on_picture is not None:
                on_picture(sum(sizes))
    return sizes


def _row(number: int, picture: ListedPicture, inside: PictureFolder) -> JsonObject:
    """A `ShardRow` as JSON, without what it leaves out."""
    source = picture.source
    row: JsonObject = {"number": number, "name": picture.name}
    if isinstance(source, str):
        row["address"] = source
    elif isinstance(source, bytes):
        row["file"] = f"{LISTS}/{PICTURES}/{inside.of_bytes(source).name}"
    else:
        row["file"] = str(source.absolute())
    if picture.options is not None:
        row["options"] = picture.options
    if picture.question:
        row["question"] = picture.question
    return row


def _shards_of(count: int, pictures: Sequence[ListedPicture]) -> list[int]:
    return [_shard_of(count, picture) for picture in pictures]


def _shard_of(count: int, picture: ListedPicture) -> int:
    source = picture.source
    if isinstance(source, Path):
        try:
            with source.open("rb") as file:
                digest = file_digest(file, "sha256").digest()
        except OSError:  # what cannot be read becomes an outcome of its own
            digest = sha256(picture.name.encode("utf-8", "surrogateescape")).digest()
    else:
        digest = sha256(source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest) % count


def _file_name(number: int) -> str:
    return f"{number:05}.jsonl"


def _run_folder(number: int) -> str:
    """The folder of a shard within the corpus."""
    return f"{SHARDS}/{number:05}"
