"""Files that were damaged at random: every command ends in an answer or in one message, never in a traceback.

The mutations are drawn from a seed, so that a failure names the seed that shows it again.
"""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from askance.cli import main
from askance.evals import Run, evaluate
from askance.evals.analysis.pack import MANIFEST, SIGNATURE, write_pack
from askance.replay import import_cassette, open_records
from tests.evals.odd import Odd, chooser, write_pictures

ROOT = Path(__file__).resolve().parents[2]
TASK = f"{ROOT / 'tests' / 'evals' / 'odd.py'}@tests/odd"

QUICK, MANY = range(50), range(1000, 1500)
"""Seeds for each kind of file."""

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 3, 2**53, 2**70, 10**400, 1e308, float("nan"), float("inf"), "", "x", "x" * 5000),
    *("\x9b\u202e\x1b[2J", "../../x", "\ud800", "nan", "2096-01-01T00:00:00Z", "0" * 64, [], {}, [[]], {"": None}),
    *([1, "a"], {"a": {"b": [None]}}, ["x"] * 1000),
)
TOKENS = (
    b"NaN",
    b"1e999",
    b"9" * 5000,
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"[" * 3000,
    b'{"a":' * 200,
    b"\n",
    b'"',
    b"}",
)
STEERING = ("\x1b", "\x9b", "\u202e")


def bytes_changed(content: bytes, random: Random) -> bytes:
    """Some bytes turned, taken out, doubled, or put in."""
    data = bytearray(content)
    for _ in range(random.randint(1, 4)):
        place, length = random.randrange(len(data) + 1), random.choice((1, 1, 2, 8, 200))
        kind = random.randrange(5)
        if kind == 0:
            data[place : place + length] = random.randbytes(min(length, len(data) - place))
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = random.choice(TOKENS)
        elif kind == 3:
            data[place:place] = data[place : place + length]
        else:
            del data[place:]
    return bytes(data)


def places_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every list and map within a value, with each place in it."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = [*cast("dict[str, Any]", value).items()]
    elif isinstance(value, list):
        inside = [*enumerate(cast("list[Any]", value))]
    for place, each in inside:
        yield value, place
        yield from places_of(each)


def value_changed(value: Any, random: Random) -> Any:
    """A value with one to three of its parts replaced or taken out."""
    for _ in range(random.randint(1, 3)):
        places = [*places_of(value)]
        if not places:
            return deepcopy(random.choice(ODD))
        holder, place = random.choice(places)
        if random.random() < 0.25:
            del holder[place]
        else:
            holder[place] = deepcopy(random.choice(ODD))
    return value


def lines_changed(content: bytes, random: Random) -> bytes:
    """A file of JSON, or of JSON lines, with one value changed."""
    try:
        return json.dumps(value_changed(json.loads(content), random)).encode("utf-8", "surrogatepass")
    except ValueError:
        lines = content.split(b"\n")
        place = random.randrange(len(lines))
        try:
            form = json.loads(lines[place] or b"{}")
        except ValueError:
            return bytes_changed(content, random)
        lines[place] = json.dumps(value_changed(form, random)).encode("utf-8", "surrogatepass")
        return b"\n".join(lines)


def changed(content: bytes, random: Random) -> bytes:
    return (lines_changed if random.random() < 0.7 else bytes_changed)(content, random)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sound run, pack, cassette and store."""
    place = tmp_path_factory.mktemp("sound")
    run = evaluate(Odd(data=write_pictures(place / "pictures", 2), vlm=chooser(2), count=2), out=place / "run")
    write_pack([Run.open(run.path)], place / "run.pack")
    with open_records(place / "store") as store:
        import_cassette(run.path / "calls.jsonl", store)
    return place


@pytest.fixture
def ended(capsys: pytest.CaptureFixture[str]) -> Callable[..., int]:
    """Runs a command in this process; it ends in an exit code, and nothing that it shows steers a terminal."""

    def run(*arguments: str) -> int:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([*arguments])
        out, err = capsys.readouterr()
        assert [mark for mark in STEERING if mark in out + err] == []
        assert "Traceback" not in err
        assert end.value.code in {0, 1, 2, 3}, err
        assert end.value.code == 0 or out or err
        return int(end.value.code)

    return run


def of_cassette(sound: Path, random: Random) -> list[str]:
    Path("calls.jsonl").write_bytes(changed((sound / "run" / "calls.jsonl").read_bytes(), random))
    return random.choice((["cache", "import", "calls.jsonl"], ["cache", "diff", "calls.jsonl", str(sound / "store")]))


def of_store(sound: Path, random: Random) -> list[str]:
    """A record that was changed in the store itself."""
    shutil.copytree(sound / "store", "store", dirs_exist_ok=True)
    with closing(sqlite3.connect("store/cache.db", isolation_level=None)) as connection:
        rows = connection.execute("SELECT key, value FROM Cache ORDER BY key").fetchall()
        key, value = random.choice(rows)
        text = changed(value.encode(), random).decode("utf-8", "replace").replace("\x00", "?")
        connection.execute("UPDATE Cache SET value = ? WHERE key = ?", (text, key))
    commands = [["stats"], ["why", "--last"], ["why", key], ["verify"], ["export", "-"]]
    return ["cache", *random.choice(commands), "--store", "store"]


def of_run(sound: Path, random: Random) -> list[str]:
    """A file of a run's folder."""
    shutil.copytree(sound / "run", "run", dirs_exist_ok=True)
    name = random.choice(("run.json", "samples.jsonl", "scores.jsonl", "calls.jsonl"))
    Path("run", name).write_bytes(changed((sound / "run" / name).read_bytes(), random))
    commands = [
        ["eval", "table", "run"],
        ["eval", "score", "run", "--task", TASK],
        ["export", "run", "--to", "csv"],
        ["export", "run", "--to", "jsonl"],
        ["compare", "run", str(sound / "run")],
        ["watch", "run", "--once"],
        ["report", "run"],
        ["pack", "run"],
    ]
    return random.choice(commands)


def of_pack(sound: Path, random: Random) -> list[str]:
    """A file of a pack, mostly with a manifest that fits; or the archive itself."""
    content = (sound / "run.pack").read_bytes()
    content = bytes_changed(content, random) if random.random() < 0.3 else repacked(content, random)
    Path("x.pack").write_bytes(content)
    return ["replay", "x.pack", "--task", TASK, *random.choice(([], ["--json"], ["--rerun"]))]


def repacked(content: bytes, random: Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        files = {name: file.read(name) for name in file.namelist()}
    name = random.choice(sorted(files))
    files[name] = changed(files[name], random)
    if random.random() < 0.1:
        files[SIGNATURE] = changed(b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n", random)
    if name != MANIFEST and random.random() < 0.9:
        files[MANIFEST] = _manifest(files)
    target = io.BytesIO()
    with zipfile.ZipFile(
        target, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    ) as file:
        for each, data in files.items():
            file.writestr(each, data)
    return target.getvalue()


def _manifest(files: Mapping[str, bytes]) -> bytes:
    form = json.loads(files[MANIFEST])
    form["files"] = {
        name: sha256(data).hexdigest() for name, data in files.items() if name not in {MANIFEST, SIGNATURE}
    }
    return json.dumps(form).encode()


KINDS: dict[str, Callable[[Path, Random], list[str]]] = {
    "cassette": of_cassette,
    "store": of_store,
    "run": of_run,
    "pack": of_pack,
}


def fuzzed(kind: str, seeds: range, sound: Path, ended: Callable[..., int], place: Path) -> list[int]:
    codes: list[int] = []
    for seed in seeds:
        command = KINDS[kind](sound, Random(seed))
        try:
            codes.append(ended(*command))
        except BaseException as error:
            error.add_note(f"{kind}, seed {seed}: askance {' '.join(command)}")
            raise
        for each in place.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    return codes


@pytest.mark.parametrize("kind", KINDS)
def test_no_damaged_file_ends_in_a_traceback(
    kind: str, sound: Path, ended: Callable[..., int], own_place: Path
) -> None:
    codes = fuzzed(kind, QUICK, sound, ended, own_place)

    assert {1, 2} & {*codes}, "no mutation did any harm"


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_no_damaged_file_of_many_ends_in_a_traceback(
    kind: str, sound: Path, ended: Callable[..., int], own_place: Path
) -> None:
    fuzzed(kind, MANY, sound, ended, own_place)
