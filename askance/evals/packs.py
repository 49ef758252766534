"""Packs: finished runs as one file that anybody can check and score again, with no key and no network.

A pack is a zip file: a manifest with the digest of every other file, the folders of the runs (samples, scores, records,
prompts), the schema of records, and the tables. Equal runs make equal packs. What comes out of a pack is data from a
stranger: names, sizes and digests are checked before anything is used.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

from askance import __version__
from askance.errors import StoreError, UsageError
from askance.evals.run import Run
from askance.evals.run_folder import CALLS, DESCRIPTION, PROMPTS, SAMPLES, SCORES

if TYPE_CHECKING:
    from askance.images import Image

FORMAT = 1
"""Version of the pack's layout."""

MANIFEST = "manifest.json"
MOST_BYTES = 4_000_000_000
"""Most that a pack may hold once it is unpacked."""

_SHAPE = re.compile(
    rf"runs/[\w.-]+/({DESCRIPTION}|{SAMPLES}|{SCORES}|{CALLS}|{PROMPTS}/[\w.-]+)"
    r"|tables/[\w.-]+|schemas/[\w.-]+|images/[0-9a-f]{64}",
    re.ASCII,
)
_DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest date of the zip format: no file in a pack has one of its own."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """What a pack was made of."""

    path: Path
    digest: str
    """sha256 of the manifest, which has the digests of all else: what to print beside a table."""
    runs: int
    files: int


def pack(
    runs: Sequence[Run],
    path: str | Path,
    *,
    tables: Mapping[str, str],
    images: Sequence[Image] = (),
) -> Packed:
    """Writes `runs` as one file, whole or not at all.

    Args:
        runs: finished ones.
        path: of the file; one that is there is replaced.
        tables: text by file name.
        images: pictures that are to go along; their rights are the caller's to check.

    Raises:
        UsageError: a run is not finished, or two have one name.
        StoreError: the file cannot be written.
    """
    sources = dict(_sources(runs))
    for name, text in tables.items():
        sources[f"tables/{name}"] = lambda text=text: text.encode("utf-8", "backslashreplace")
    for image in images:
        sources[f"images/{image.sha256}"] = lambda image=image: image.data
    schema = files("askance.replay") / "cassette.schema.json"
    sources["schemas/cassette.schema.json"] = schema.read_bytes
    path = Path(path)
    part = path.with_name(f"{path.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as file:
            digests = {name: _add(file, name, sources[name]()) for name in sorted(sources)}
            manifest = {
                "format": FORMAT,
                "askance": __version__,
                "runs": [run.path.name for run in runs],
                "files": digests,
            }
            digest = _add(file, MANIFEST, (json.dumps(manifest, indent=2, sort_keys=True) + "\n").encode())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreError(
            f"The pack {str(path)!r} cannot be written: {error.strerror}.",
            hint="Make room on the disk, or name another place: `-o FILE`.",
        ) from error
    return Packed(path=path, digest=digest, runs=len(runs), files=len(digests))


def _sources(runs: Sequence[Run]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    names = [run.path.name for run in runs]
    for run in runs:
        name = run.path.name
        if run.finished is None or run.left:
            raise UsageError(f"The run {str(run.path)!r} is not finished.", hint="The same command finishes it.")
        if names.count(name) > 1:
            raise UsageError(f"Two runs have the name {name!r}.", hint="Give one of the folders another name.")
        if not _SHAPE.fullmatch(f"runs/{name}/{SAMPLES}"):
            raise UsageError(
                f"The run {str(run.path)!r} cannot be packed under its name.", hint="Use letters, digits, - and _."
            )
        for file in (DESCRIPTION, SAMPLES, SCORES, CALLS):
            yield f"runs/{name}/{file}", (run.path / file).read_bytes
        for prompt in sorted((run.path / PROMPTS).glob("*")):
            yield f"runs/{name}/{PROMPTS}/{prompt.name}", prompt.read_bytes


def _add(file: zipfile.ZipFile, name: str, content: bytes) -> str:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    file.writestr(info, content)
    return sha256(content).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Pack:
    """A pack that has been opened: every file has the digest that the manifest says."""

    path: Path
    folder: Path
    """Where it lies unpacked."""
    digest: str
    askance: str
    """Version that made it."""
    runs: tuple[Run, ...]
    tables: Mapping[str, str]


@contextmanager
def opened(path: str | Path) -> Generator[Pack]:
    """The pack in the file `path`, unpacked into a folder that lasts as long as the context.

    Raises:
        UsageError: it is no pack, one of another version, one that was changed, or too large.
        StoreError: the file cannot be read.
    """
    path = Path(path)
    with TemporaryDirectory(prefix="askance-pack-") as place:
        folder = Path(place)
        try:
            with zipfile.ZipFile(path) as file:
                content = _manifest_bytes(file, path)
                manifest = _manifest(content, path)
                _unpack(file, manifest["files"], folder=folder, path=path)
        except OSError as error:
            raise StoreError(
                f"The pack {str(path)!r} cannot be read: {error.strerror}.", hint="Check the path."
            ) from error
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise UsageError(f"The file {str(path)!r} is no pack.", hint="Packs are made by `askance pack`.") from error
        tables = sorted((folder / "tables").glob("*"))
        yield Pack(
            path=path,
            folder=folder,
            digest=sha256(content).hexdigest(),
            askance=str(manifest["askance"]),
            runs=tuple(Run.open(folder / "runs" / name) for name in manifest["runs"]),
            tables={table.name: table.read_text(encoding="utf-8") for table in tables},
        )


def _manifest_bytes(file: zipfile.ZipFile, path: Path) -> bytes:
    try:
        with file.open(MANIFEST) as source:
            return source.read(_CHUNK)
    except KeyError as error:
        raise UsageError(
            f"The file {str(path)!r} is no pack: it has no manifest.", hint="Packs are made by `askance pack`."
        ) from error


def _manifest(content: bytes, path: Path) -> dict[str, Any]:
    try:
        manifest: Any = json.loads(content)
        names, runs = manifest["files"], manifest["runs"]
        sound = (
            manifest["format"] == FORMAT
            and all(_SHAPE.fullmatch(name) for name in names)
            and all(f"runs/{run}/{DESCRIPTION}" in names for run in runs)
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"The manifest of the pack {str(path)!r} cannot be read.", hint="Get it anew from whoever made it."
        ) from error
    if not sound:
        raise UsageError(
            f"The manifest of the pack {str(path)!r} is of another version, or names files that no pack has.",
            hint="Open it with the version of askance that made it.",
        )
    return manifest


def _unpack(file: zipfile.ZipFile, digests: Mapping[str, str], *, folder: Path, path: Path) -> None:
    left = MOST_BYTES
    there = set(file.namelist()) - {MANIFEST}
    if there != set(digests):
        odd = min(there.symmetric_difference(digests))
        raise UsageError(
            f"The pack {str(path)!r} was changed: its manifest and its files differ in {odd!r}.",
            hint="Get it anew from whoever made it.",
        )
    for name, digest in digests.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with file.open(name) as source, target.open("wb") as copy:
            found, size = _copied(source, copy, left)
        left -= size
        if found is None:
            raise UsageError(
                f"The pack {str(path)!r} holds more than {MOST_BYTES / 1e9:.0f} GB.", hint="Pack fewer runs at a time."
            )
        if found != digest:
            raise UsageError(
                f"The pack {str(path)!r} was changed: {name!r} is not what its manifest says.",
                hint="Get it anew from whoever made it.",
            )


def _copied(source: Any, target: BinaryIO, most: int) -> tuple[str | None, int]:
    """The digest and the size of what was copied; no digest where it is more than `most` bytes."""
    digest, size = sha256(), 0
    while chunk := source.read(_CHUNK):
        size += len(chunk)
        if size > most:
            return None, size
        digest.update(chunk)
        target.write(chunk)
    return digest.hexdigest(), size
