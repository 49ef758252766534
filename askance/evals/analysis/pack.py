"""Packs: finished runs as one file that anybody can check and score again, with no key of an API and no network.

A pack is a zip file: a manifest with the digest of every other file, the folders of the runs (samples, scores, records,
prompts), the schema of records, and the tables. Equal runs make equal packs. What comes out of a pack is data from a
stranger: names, sizes and digests are checked before anything is used.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from askance import __version__
from askance.amounts import shortened
from askance.documents import Archive, UnreadableDocument, parse_json, schema_violation
from askance.errors import StoreError, UsageError
from askance.evals.completeness import check_whole, unused_records
from askance.evals.run import Run
from askance.evals.run_folder import replacing
from askance.evals.run_format import CALLS, DESCRIPTION, MATRICES, PROMPTS, SAMPLES, SCORES
from askance.evals.run_tables import task_tables
from askance.evals.sample import ATTACHMENTS

if TYPE_CHECKING:
    from askance.images import Image


FORMAT = 1
"""Version of the pack's layout."""

MANIFEST = "manifest.json"
SIGNATURE = f"{MANIFEST}.sig"
"""The signature of the manifest, where there is one."""
SCHEMA = Path(__file__).with_name("pack.schema.json")
"""Of the manifest."""
MOST_BYTES = 4_000_000_000
"""Most that a pack may hold once it is unpacked."""
MOST_BYTES_OF: Mapping[str, int] = {"runs": 1_000_000_000, "images": 512_000_000}
"""Most that one file may hold, by the folder that it stands in."""
MOST_BYTES_OF_TEXT = 16_000_000
"""Most that any other file may hold: the manifest, its signature, a table, a schema."""

_NAME = r"(?!\.{1,2}(?:/|\Z))[\w.-]+"
"""The name of a file or folder; `.` and `..` are none."""
_ATTACHMENT = "|".join(rf"{kind.folder}/[0-9a-f]{{64}}{re.escape(kind.suffix)}" for kind in ATTACHMENTS)
"""Places of attachments within the folder of a run."""
_SHAPE = re.compile(
    rf"runs/{_NAME}/({DESCRIPTION}|{SAMPLES}|{SCORES}|{CALLS}|{PROMPTS}/{_NAME}|{_ATTACHMENT})"
    rf"|tables/{_NAME}|schemas/{_NAME}|images/[0-9a-f]{{64}}",
    re.ASCII,
)
_DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest date of the zip format: no file in a pack has one of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackFile:
    """A pack that was written."""

    path: Path
    digest: str
    """sha256 of the manifest, which has the digests of all else: what to print beside a table."""
    runs: int
    files: int
    unused_records: int = 0
    """Records of the runs that no sample and no score rests on."""


def write_pack(
    runs: Sequence[Run],
    path: str | Path,
    *,
    images: Iterable[Image] = (),
    sign: Callable[[bytes], bytes] | None = None,
) -> PackFile:
    """Writes `runs` and their tables as one file, whole or not at all.

    Args:
        runs: finished ones.
        path: of the file; one that is there is replaced.
        images: of these, the pictures that the runs speak of go along; their rights are the caller's to check.
        sign: makes the signature of the manifest, which has the digests of all else; None leaves the pack unsigned.

    Raises:
        UsageError: a run is not finished, its lines are not those of its samples, or two have one name.
        StoreError: the file cannot be written.
    """
    sources = dict(_sources(runs))
    for name, text in task_tables(runs).items():
        sources[f"tables/{name}"] = lambda text=text: text.encode("utf-8", "backslashreplace")
    shown = {answer.sample.image.sha256 for run in runs for answer in run.answers if answer.sample.image}
    for image in images:
        if image.sha256 in shown:
            sources[f"images/{image.sha256}"] = lambda image=image: image.data
    schema = files("askance.replay") / "cassette.schema.json"
    sources["schemas/cassette.schema.json"] = schema.read_bytes
    path = Path(path)
    try:
        with replacing(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as file:
            digests = {name: _add(file, name, sources[name]()) for name in sorted(sources)}
            form = {
                "format": FORMAT,
                "askance": __version__,
                "runs": [run.path.name for run in runs],
                "files": digests,
            }
            manifest = (json.dumps(form, indent=2, sort_keys=True) + "\n").encode()
            digest = _add(file, MANIFEST, manifest)
            if sign is not None:
                _add(file, SIGNATURE, sign(manifest))
    except OSError as error:
        raise StoreError(
            f"The pack {str(path)!r} cannot be written: {error.strerror}.",
            hint="Make room on the disk, or name another place: `-o FILE`.",
        ) from error
    unused = sum(len(unused_records(run)) for run in runs)
    return PackFile(path=path, digest=digest, runs=len(runs), files=len(digests), unused_records=unused)


def _sources(runs: Sequence[Run]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    names = [run.path.name for run in runs]
    for run in runs:
        name = run.path.name
        if run.of_pictures:
            raise UsageError(
                f"The run {str(run.path)!r} is of pictures that nobody scores, and a pack is of scored runs.",
                hint="Give its folder as it is: it holds its records.",
            )
        if run.finished is None or run.left:
            raise UsageError(f"The run {str(run.path)!r} is not finished.", hint="The same command finishes it.")
        check_whole(run)
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
        for each in (each for answer in run.answers for each in answer.prediction.attachments):
            yield f"runs/{name}/{each.place}", lambda each=each: each.content


def _add(file: zipfile.ZipFile, name: str, content: bytes) -> str:
    info = zipfile.ZipInfo(name, _DATE)
    # Compressed, a matrix of equal numbers would exceed the ratio that `Archive` allows.
    info.compress_type = zipfile.ZIP_STORED if f"/{MATRICES}/" in name else zipfile.ZIP_DEFLATED
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
    """Version that made it, as it says."""
    runs: tuple[Run, ...]
    tables: Mapping[str, str]
    manifest: bytes = b""
    """What a signature is of."""
    signature: bytes | None = None
    """None where it is unsigned. Nobody has checked it yet."""


@contextmanager
def open_pack(path: str | Path) -> Generator[Pack]:
    """The pack in the file `path`, unpacked into a folder that lasts as long as the context.

    Raises:
        UsageError: it is no pack, one of another version, one that was changed, or too large.
        StoreError: the file cannot be read.
    """
    path = Path(path)
    with TemporaryDirectory(prefix="askance-pack-") as place:
        folder = Path(place)
        try:
            with Archive(path, max_bytes=MOST_BYTES) as file:
                content, signature, form = _unpacked(file, folder, path)
        except OSError as error:
            raise StoreError(
                f"The pack {str(path)!r} cannot be read: {error.strerror or error}.",
                hint="Check the path and the disk.",
            ) from error
        except UnreadableDocument as error:
            raise UsageError(
                f"The file {str(path)!r} is no pack: it {error}.",
                hint="Get it anew from whoever made it; packs are made by `askance pack`.",
            ) from error
        yield Pack(
            path=path,
            folder=folder,
            digest=sha256(content).hexdigest(),
            askance=form["askance"],
            runs=tuple(Run.open(folder / "runs" / name) for name in form["runs"]),
            tables=dict(_tables(folder, path)),
            manifest=content,
            signature=signature,
        )


def _unpacked(file: Archive, folder: Path, path: Path) -> tuple[bytes, bytes | None, Mapping[str, Any]]:
    """The manifest as it stands in the file, its signature, and what it says; all else is written to `folder`."""
    sizes = file.sizes
    for name, size in sizes.items():
        most = MOST_BYTES_OF.get(name.partition("/")[0], MOST_BYTES_OF_TEXT)
        if size > most:
            raise UsageError(
                f"The pack {str(path)!r} holds {shortened(name, 80)!r} with {size / 1e6:,.0f} MB, more than the "
                f"{most / 1e6:,.0f} MB that it may have.",
                hint="No pack of askance's has such a file: get it anew from whoever made it.",
            )
    if MANIFEST not in sizes:
        raise UsageError(
            f"The file {str(path)!r} is no pack: it has no manifest.", hint="Packs are made by `askance pack`."
        )
    content = file.read(MANIFEST)
    form = _manifest(content, path)
    _unpack(file, form["files"], folder=folder, path=path)
    return content, file.read(SIGNATURE) if SIGNATURE in sizes else None, form


def _manifest(content: bytes, path: Path) -> Mapping[str, Any]:
    where = f"The manifest of the pack {str(path)!r}"
    try:
        form: Any = parse_json(content)
        if (wrong := schema_violation(form, SCHEMA)) is not None:
            raise UnreadableDocument(f"does not have the form of one ({wrong})")
    except UnreadableDocument as error:
        raise _changed(f"{where} {error}.") from error
    if form["format"] != FORMAT:
        raise UsageError(
            f"The pack {str(path)!r} has the format {form['format']}, and this is askance for format {FORMAT}.",
            hint=f"Open it with askance {form['askance']}, which made it.",
        )
    odd = next((name for name in form["files"] if not _SHAPE.fullmatch(name)), None)
    if odd is not None:
        raise _changed(f"{where} names files that no pack has, such as {shortened(odd, 80)!r}.")
    for name, digest in form["files"].items():
        if name.startswith("images/") and name != f"images/{digest}":
            words = f"{shortened(name, 80)!r} is another picture than its name says."
            raise _changed(f"The pack {str(path)!r} was changed: {words}")
    for run in form["runs"]:
        if f"runs/{run}/{DESCRIPTION}" not in form["files"]:
            raise _changed(f"{where} names the run {shortened(run, 80)!r}, which is not in it.")
    of_runs = [name for name in form["files"] if name.startswith("runs/")]
    stray = next((name for name in of_runs if name.split("/")[1] not in form["runs"]), None)
    if stray is not None:
        raise _changed(f"{where} holds {shortened(stray, 80)!r} of a run that it does not name.")
    return form


def _changed(message: str) -> UsageError:
    return UsageError(message, hint="Get it anew from whoever made it.")


def _unpack(file: Archive, digests: Mapping[str, str], *, folder: Path, path: Path) -> None:
    members, where = file.sizes.keys() - {MANIFEST, SIGNATURE}, f"The pack {str(path)!r} was changed:"
    if members != set(digests):
        odd = min(members.symmetric_difference(digests))
        raise _changed(f"{where} its manifest and its files differ in {shortened(odd, 80)!r}.")
    for name, expected in digests.items():
        target, digest = folder / name, sha256()
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as copy:
            for chunk in file.chunks(name):
                digest.update(chunk)
                copy.write(chunk)
        if digest.hexdigest() != expected:
            raise _changed(f"{where} {name!r} is not what its manifest says.")


def _tables(folder: Path, path: Path) -> Iterator[tuple[str, str]]:
    for table in sorted((folder / "tables").glob("*")):
        try:
            yield table.name, table.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(
                f"The table {table.name!r} of the pack {str(path)!r} is no text in UTF-8.",
                hint="Get the pack anew from whoever made it.",
            ) from error


# --- signatures: made and checked with SSH keys, by `ssh-keygen` of OpenSSH ---
#
# Who signs says that the pack is theirs; what is in it can be held against its own records by anybody. The signature is
# of the manifest, which has the digest of every file.

NAMESPACE = "askance-pack"
"""What the signatures are for: none that was made for anything else is taken for one of a pack."""
LARGEST_SIGNATURE = 64_000
"""Most bytes of a signature."""
CHECK_SECONDS = 60.0
"""How long a check may take."""

SignatureState = Literal["unsigned", "broken", "unknown", "known", "unchecked"]
"""There is none; it does not fit the manifest; nobody says whose key it is; the signer is known; it was not checked."""

_KEY = re.compile(r"\b([\w-]+) key (SHA256:[\w+/=]{1,64})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What became of a pack's signature."""

    state: SignatureState
    signer: str = ""
    """As the file of allowed signers names them."""
    key: str = ""
    """Kind and fingerprint of the key: `ED25519 SHA256:…`."""

    @property
    def words(self) -> str:
        """The same in a sentence without its end."""
        return {
            "unsigned": "It is not signed",
            "broken": "Its signature does not fit: it was changed after it was signed, or the signature is another's",
            "unknown": f"It is signed with the key {self.key}, which no file of signers names",
            "known": f"It is signed by {self.signer} with the key {self.key}",
            "unchecked": "Its signature is not checked: `ssh-keygen` is not installed",
        }[self.state]


def sign(manifest: bytes, key: Path) -> bytes:
    """The signature of a manifest.

    Args:
        manifest: as it stands in the pack.
        key: file of an SSH key, or of its public half where an agent has the other. A passphrase is asked for on the
            terminal.

    Raises:
        UsageError: `ssh-keygen` is not installed, or cannot sign with the key.
    """
    program = _program()
    if program is None:
        raise UsageError("`ssh-keygen` is not installed, and it signs packs.", hint=_INSTALL)
    if not key.is_file():
        raise UsageError(f"There is no key {str(key)!r}.", hint="`ssh-keygen -t ed25519 -f FILE` makes one.")
    done = subprocess.run(
        [program, "-Y", "sign", "-n", NAMESPACE, "-f", str(key)], input=manifest, capture_output=True, check=False
    )
    if done.returncode or not done.stdout:
        message = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise UsageError(
            f"`ssh-keygen` cannot sign with the key {str(key)!r}: {message[:300] or 'it does not say why'}.",
            hint="Name the private key, or the public one where an SSH agent has the private one.",
        )
    return done.stdout


_INSTALL = "Install OpenSSH (the package openssh-client), or go without."


def check_signature(manifest: bytes, signature: bytes | None, *, signers: Path | None = None) -> Signature:
    """Holds a signature against a manifest, and against a file of allowed signers.

    Args:
        manifest: as it stands in the pack.
        signature: as it stands in the pack; None where there is none.
        signers: file of allowed signers, a line each: a name, and their public key (`man ssh-keygen`, ALLOWED SIGNERS).

    Raises:
        UsageError: the file of signers cannot be read, or it is given and `ssh-keygen` is not installed.
    """
    if signers is not None and not signers.is_file():
        raise UsageError(
            f"There is no file of signers {str(signers)!r}.",
            hint="Each line of it has a name and a public key: `ada@example.org ssh-ed25519 AAAA…`.",
        )
    if signature is None:
        return Signature(state="unsigned")
    program = _program()
    if program is None and signers is None:
        return Signature(state="unchecked")
    if program is None:
        raise UsageError("`ssh-keygen` is not installed, and it checks signatures.", hint=_INSTALL)
    if len(signature) > LARGEST_SIGNATURE:
        return Signature(state="broken")
    with TemporaryDirectory(prefix="askance-signature-") as place:
        file = Path(place) / "signature"
        file.write_bytes(signature)
        code, output = _output_of([program, "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(file)], manifest)
        key = " ".join(match.groups()) if (match := _KEY.search(output)) else ""
        if code or not key:
            return Signature(state="broken")
        if signers is None:
            return Signature(state="unknown", key=key)
        allowed = ["-f", str(signers), "-s", str(file)]
        code, output = _output_of([program, "-Y", "find-principals", *allowed])
        for name in output.splitlines() if code == 0 else ():
            code, _ = _output_of([program, "-Y", "verify", "-n", NAMESPACE, "-I", name, *allowed], manifest)
            if code == 0:
                return Signature(state="known", signer=name, key=key)
    return Signature(state="unknown", key=key)


def _program() -> str | None:
    return shutil.which("ssh-keygen")


def _output_of(command: list[str], content: bytes = b"") -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    try:
        done = subprocess.run(command, input=content, capture_output=True, check=False, timeout=CHECK_SECONDS)
    except subprocess.TimeoutExpired:
        return 1, ""
    return done.returncode, done.stdout.decode("utf-8", "replace")
