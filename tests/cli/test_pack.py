"""`askance pack` and `askance replay`: a pack is held against its own records, and against whoever signed it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from askance.chat import ChatRequest, key_of
from askance.errors import BadRequest
from askance.evals import evaluate
from askance.evals.sample import sample_text, samples_digest
from askance.models import ScriptedModel, get_model
from askance.nodes.reply import READERS
from tests.cli.command import ROOT, Command
from tests.evals.odd import Corner, Odd, chooser, engine, write_pictures
from tests.scripted import ENFORCED

TASK = f"{ROOT / 'tests' / 'evals' / 'odd.py'}@tests/odd"
RUN = "run-b"
TRUE = {f"{number:02}.png": 1 + number % 3 for number in range(6)}
"""The right option of each sample of the task; the run always says 2."""

Form = dict[str, Any]
Change = Callable[[Form], Form]
Refused = Callable[[str], None]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a task of the tests, with one right answer in three."""
    folder = tmp_path_factory.mktemp("runs")
    return evaluate(Odd(data=write_pictures(folder / "pictures"), vlm=chooser(2)), out=folder / RUN).path


@pytest.fixture
def replay(askance: Command) -> Command:
    """`askance replay`, which is told where the task is."""
    return lambda *arguments: askance("replay", *arguments, "--task", TASK)


@pytest.fixture
def run(source: Path) -> Path:
    """A copy of it, for a test to change."""
    return Path(shutil.copytree(source, Path.cwd() / RUN))


def described(run: Path, **changes: Any) -> None:
    """Changes entries of a run's description; None takes one out."""
    form = {**json.loads((run / "run.json").read_text(encoding="utf-8")), **changes}
    form = {name: value for name, value in form.items() if value is not None}
    (run / "run.json").write_text(json.dumps(form), encoding="utf-8")


def samples(run: Path, change: Change) -> None:
    """Changes every line of a run's samples."""
    file = run / "samples.jsonl"
    lines = [change(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def with_their_digest(run: Path) -> None:
    """Claims that the run began with the samples that stand in its lines."""
    lines = [json.loads(line) for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = [sample_text(line["sample"]) for line in sorted(lines, key=lambda line: line["id"])]
    form = json.loads((run / "run.json").read_text(encoding="utf-8"))["configuration"]
    form["samples"] = {"count": len(texts), "digest": samples_digest(texts)}
    described(run, configuration=form, hash=key_of("run", form))


def true(line: Form) -> Form:
    """A sample whose answer is what is true of it."""
    return {**line, "outcome": "answered", "reason": None, "value": [TRUE[line["id"]]]}


def forge(run: Path, askance: Command) -> None:
    """Replaces every answer by the truth, and makes scores, figures and totals that fit."""
    samples(run, true)
    assert askance("eval", "score", str(run), "--task", TASK).code == 0


def contents_of(pack: Path | BytesIO) -> dict[str, bytes]:
    """The files within a pack."""
    with zipfile.ZipFile(pack) as file:
        return {name: file.read(name) for name in file.namelist()}


def rewritten(path: Path, change: Callable[[dict[str, bytes]], Mapping[str, bytes]]) -> None:
    """Changes files within a pack, and the digests in its manifest with them."""
    contents = dict(change(contents_of(path)))
    manifest = json.loads(contents["manifest.json"])
    manifest["files"] = {
        name: sha256(content).hexdigest() for name, content in contents.items() if not name.startswith("manifest.json")
    }
    contents["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in contents.items():
            file.writestr(name, content)


# --- what follows from the records ---


def test_a_pack_that_follows_from_its_records(run: Path, askance: Command, replay: Command) -> None:
    assert askance("pack", RUN).code == 0

    done = replay("runs.pack")

    assert done.code == 0
    assert "✓ run-b (tests/odd): 6 samples read and scored again, 6 records verified\n" in done.out
    assert "It is not signed.\n" in done.out
    assert "all that is derived in it follows from its records.\n" in done.out
    assert "No pack can show that a model wrote the replies" in done.out


def test_a_pack_of_answers_about_views_is_replayed_without_the_pictures(
    tmp_path: Path, own_place: Path, askance: Command
) -> None:
    data = write_pictures(tmp_path / "pictures")
    evaluate(Corner(data=data, vlm=chooser(2)), out=own_place / RUN)
    askance("pack", RUN)
    shutil.rmtree(data)
    calls = contents_of(own_place / "runs.pack")[f"runs/{RUN}/calls.jsonl"].decode().splitlines()

    done = askance("replay", "runs.pack", "--rerun", "--task", f"{ROOT / 'tests' / 'evals' / 'odd.py'}@tests/corner")

    assert (done.code, len(calls)) == (0, 6)
    assert "6 samples" in done.out
    views = [part["view"] for part in json.loads(calls[0])["request"]["messages"][0]["parts"][:2]]
    assert views == [
        {"show": "crop", "boxes": [[0, 0, 9, 9]], "version": 1, "unit": "native pixels"},
        {"show": "highlight", "boxes": [[0, 0, 9, 9]], "version": 1, "style": "sherlock"},
    ]


@pytest.mark.parametrize("more", [(), ("--rerun",)], ids=["replay", "rerun"])
def test_a_forged_pack_does_not_follow_from_its_records(
    run: Path, askance: Command, replay: Command, more: tuple[str, ...]
) -> None:
    forge(run, askance)
    askance("pack", RUN)

    done = replay("runs.pack", *more)

    assert done.code == 1
    assert "✗ run-b" in done.out
    assert "4 of 6 answers are not what their records are read as, such as '00.png', " in done.out
    assert "    accuracy was 1 and is 0.333333" in done.out
    assert "it does not follow from its records.\n" in done.out
    assert "readers" not in done.out


def test_what_another_version_has_read_is_read_differently(run: Path, askance: Command, replay: Command) -> None:
    forge(run, askance)
    described(run, readers=READERS + 1)
    askance("pack", RUN)

    done = replay("runs.pack", "--json")
    (form,) = done.lines

    assert (done.code, form["follows"], form["read_otherwise"], form["differing_tables"]) == (1, True, True, [])
    assert f"it is read differently by readers {READERS}.\n" in replay("runs.pack").out


def test_an_interval_that_was_left_out_does_not_follow(askance: Command) -> None:
    """Also where all samples agree, and resampling gives none."""

    def without_intervals(pack: dict[str, bytes]) -> dict[str, bytes]:
        form = json.loads(pack[name])
        agreeing = [
            each for each in form["figures"] if each["interval"] and each["interval"]["method"] == "unseen clusters"
        ]
        assert agreeing
        for each in agreeing:
            each["interval"] = None
        return {**pack, name: json.dumps(form).encode()}

    name = "runs/mac-image/run.json"
    shutil.copy(ROOT / "examples" / "demo.pack", "demo.pack")
    rewritten(Path("demo.pack"), without_intervals)

    done = askance("replay", "demo.pack")

    assert done.code == 1
    assert "    AUC-ROC, interval was none and is {" in done.out


def test_a_forged_table_is_seen(run: Path, askance: Command, replay: Command) -> None:
    askance("pack", RUN)
    rewritten(Path("runs.pack"), lambda each: {**each, "tables/tests-odd.md": b"| F1 |\n| 100 |\n"})

    done = replay("runs.pack")

    assert done.code == 1
    assert "✗ The table tests-odd.md is not as the pack has it.\n" in done.out


SWAPS: dict[str, Change] = {
    "other options": lambda line: {**line, "sample": {**line["sample"], "image": {"name": "x", "sha256": "0" * 64}}},
    "other records": lambda line: {**line, "links": {"answers": {"outcome": "answered", "calls": []}}},
    "an answer made a failure": lambda line: {
        **line,
        "outcome": "failed",
        "reason": "the endpoint failed",
        "value": None,
        "links": {name: {"outcome": "failed", "calls": []} for name in line["links"]},
        "trace": dict.fromkeys(line["trace"]),
    },
}


@pytest.mark.parametrize("change", SWAPS.values(), ids=SWAPS)
def test_samples_that_their_records_do_not_tell_of(
    run: Path, askance: Command, replay: Command, change: Change
) -> None:
    samples(run, change)
    with_their_digest(run)
    assert askance("eval", "score", RUN, "--task", TASK).code == 0
    askance("pack", RUN)

    done = replay("runs.pack")

    assert done.code == 1
    assert "6 of 6 answers are not what their records are read as" in done.out


def test_a_call_that_failed_has_no_record_and_is_said(tmp_path: Path, askance: Command, replay: Command) -> None:
    asked: list[ChatRequest] = []

    def fails_once(request: ChatRequest) -> str:
        asked.append(request)
        if len(asked) == 3:
            raise BadRequest("It is too long.")
        return json.dumps({"answers": [2]})

    vlm = get_model(ScriptedModel(fails_once, identity="fails-once", capabilities=ENFORCED), engine=engine())
    evaluate(Odd(data=write_pictures(tmp_path / "pictures"), vlm=vlm), out=RUN)
    askance("pack", RUN)

    done = replay("runs.pack")

    assert done.code == 0
    assert "    1 sample without an answer: the calls failed and left no record\n" in done.out


def test_what_cannot_be_read_again_is_never_called_fine(run: Path, askance: Command) -> None:
    askance("pack", RUN)

    done = askance("replay", "runs.pack")

    assert done.code == 1
    assert "? run-b (tests/odd): 0 samples read and scored again" in done.out
    assert "    6 samples not checked: the task 'tests/odd' is not part of askance (Name its file: `--task" in done.out
    assert "6 samples not checked.\n" in done.out


def test_another_askance_may_have_asked_otherwise(run: Path, askance: Command, replay: Command) -> None:
    samples(run, SWAPS["other options"])
    with_their_digest(run)
    described(run, askance="0.0.1")
    askance("eval", "score", RUN, "--task", TASK)
    askance("pack", RUN)

    done = replay("runs.pack")

    assert done.code == 1
    assert "6 samples not checked: askance " in done.out


# --- what a pack claims ---


def without(name: str, pack: dict[str, bytes]) -> dict[str, bytes]:
    """The files of a pack without one of its samples, and with figures, totals and tables that fit."""
    kept = {
        each: b"".join(line for line in content.splitlines(keepends=True) if name.encode() not in line)
        for each, content in pack.items()
        if each.endswith(("samples.jsonl", "scores.jsonl"))
    }
    return {**pack, **kept}


def test_a_sample_that_was_left_out_is_missed(run: Path, askance: Command, replay: Command) -> None:
    askance("pack", RUN)
    rewritten(Path("runs.pack"), lambda pack: without("03.png", pack))

    done = replay("runs.pack")
    (form,) = replay("runs.pack", "--json").lines

    assert done.code == 1
    assert "    samples.jsonl: 1 of 6 lines is missing\n" in done.out
    assert "    nothing rests on 1 of its records\n" in done.out
    assert "it does not follow from its records.\n" in done.out
    assert (form["follows"], form["runs"][0]["unused_records"]) == (False, 1)


def test_the_way_over_a_new_scoring_is_closed(run: Path, askance: Command) -> None:
    for file in ("samples.jsonl", "scores.jsonl"):
        lines = (run / file).read_text(encoding="utf-8").splitlines(keepends=True)
        (run / file).write_text("".join(lines[1:]), encoding="utf-8")

    for command in (["eval", "score", RUN, "--task", TASK], ["pack", RUN]):
        done = askance(*command)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(
            "askance: The run 'run-b' is not whole: samples.jsonl: 1 of 6 lines is missing.\n  → "
        )
    assert not Path("runs.pack").exists()


def _interval(form: Form) -> Form:
    figures = [
        {**each, "interval": each["interval"] and {**each["interval"], "low": 0.999}} for each in form["figures"]
    ]
    return {"figures": figures}


def _bound(form: Form) -> Form:
    return {"figures": [{**each, "if_wrong": 0.5} for each in form["figures"]]}


FORGED: dict[str, tuple[Change, str]] = {
    "interval": (_interval, "accuracy, interval, low was 0.999 and is "),
    "bound": (_bound, "accuracy, if wrong was 0.5 and is "),
    "samples": (
        lambda form: {"figures": [{**each, "samples": 7} for each in form["figures"]]},
        "accuracy, samples was 7 and is 6\n",
    ),
    "configuration": (
        lambda form: {"configuration": {**form["configuration"], "options": {"limit": 6}}},
        "its hash is not that of its configuration\n",
    ),
    "not finished": (lambda _: {"finished": None}, "it is not finished\n"),
    "samples left": (lambda _: {"left": 2}, "it is not finished\n"),
    "outcomes": (
        lambda form: {"totals": {**form["totals"], "outcomes": {"answered": 70}}},
        "its totals are not those of its samples\n",
    ),
    "totals": (lambda form: {"totals": {**form["totals"], "samples": 7}}, "its totals are not those of its samples\n"),
    "records": (lambda form: {"totals": {**form["totals"], "records": 7}}, "its totals are not those of its records\n"),
}


@pytest.mark.parametrize(("change", "message"), FORGED.values(), ids=FORGED)
def test_a_forged_description_does_not_follow(
    run: Path, askance: Command, replay: Command, change: Change, message: str
) -> None:
    askance("pack", RUN)
    described(run, **change(json.loads((run / "run.json").read_text(encoding="utf-8"))))
    rewritten(Path("runs.pack"), lambda pack: {**pack, f"runs/{RUN}/run.json": (run / "run.json").read_bytes()})

    done = replay("runs.pack")

    assert done.code == 1
    assert f"    {message}" in done.out


def test_a_score_without_a_sample_is_seen(run: Path, askance: Command, replay: Command) -> None:
    name = f"runs/{RUN}/scores.jsonl"
    askance("pack", RUN)
    rewritten(Path("runs.pack"), lambda pack: {**pack, name: pack[name] + pack[name].replace(b"0", b"7")})

    done = replay("runs.pack")

    assert done.code == 1
    assert "    scores.jsonl: 6 lines are of no answered sample, such as that of '71.png'\n" in done.out


def test_records_beyond_those_of_its_samples_are_counted(run: Path, askance: Command, replay: Command) -> None:
    """As those of another run, or of samples of which nothing else is left."""
    lines = (run / "calls.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    spare = json.loads(lines[-1].replace("a cup", "a pot"))
    spare["key"] = key_of("chat", spare["request"])
    (run / "calls.jsonl").write_text("".join(lines) + json.dumps(spare) + "\n", encoding="utf-8")
    totals = json.loads((run / "run.json").read_text("utf-8"))["totals"]
    described(run, totals={**totals, "records": totals["records"] + 1})

    assert "Nothing in it rests on 1 record of its runs.\n" in askance("pack", RUN).out
    done = replay("runs.pack")
    assert done.code == 0, done.out
    assert "    nothing rests on 1 of its records\n" in done.out
    assert "all that is derived in it follows from its records; nothing rests on 1 of them.\n" in done.out


def test_what_is_only_claimed_is_said_of_each_file(run: Path, askance: Command, replay: Command) -> None:
    described(run, started="1999-01-01T00:00:00+00:00")
    (run / "prompts" / "wise.json.prompt").write_text("Be wise.", encoding="utf-8")
    askance("pack", RUN)

    done = replay("runs.pack")
    (form,) = replay("runs.pack", "--json").lines

    assert done.code == 0
    assert "  run.json · follows: figures, totals, hash of the configuration · claimed: dates, " in done.err
    assert "dates" in form["files"]["run.json"]["claimed"]
    assert "figures" in form["files"]["run.json"]["derived"]
    assert "    run.json names no prompt wise.json.prompt\n" in done.out
    assert form["runs"][0]["unused_prompts"] == ["wise.json.prompt"]


def test_a_picture_has_the_digest_of_its_name(run: Path, askance: Command, replay: Command) -> None:
    askance("pack", RUN)
    name = f"images/{'0' * 64}"
    rewritten(Path("runs.pack"), lambda pack: {**pack, name: b"another picture"})

    done = replay("runs.pack")

    assert (done.code, done.out) == (2, "")
    assert "was changed: 'images/0000" in done.err


def test_a_ranking_that_no_sample_has_is_seen(run: Path, askance: Command, replay: Command) -> None:
    askance("pack", RUN)
    name = f"runs/{RUN}/rankings/{'0' * 64}.json"
    rewritten(Path("runs.pack"), lambda pack: {**pack, name: b'{"ids": [], "scores": []}'})

    done = replay("runs.pack")

    assert done.code == 1
    assert f"    1 of its rankings is of no sample: '{'0' * 64}.json'\n" in done.out


# --- what strangers put into a pack ---


def form_of(pack: Path) -> Form:
    with zipfile.ZipFile(pack) as file:
        return json.loads(file.read("manifest.json"))


def manifested(pack: Path, manifest: bytes) -> None:
    """Puts a manifest into a pack, in the place of its own."""
    contents = contents_of(pack)
    with zipfile.ZipFile(pack, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in {**contents, "manifest.json": manifest}.items():
            file.writestr(name, content)


MANIFESTS: dict[str, tuple[Callable[[Form], object], str]] = {
    "no version": (lambda form: {n: each for n, each in form.items() if n != "askance"}, "'askance' is a required"),
    "no runs": (lambda form: {n: each for n, each in form.items() if n != "runs"}, "'runs' is a required property"),
    "no files": (lambda form: {n: each for n, each in form.items() if n != "files"}, "'files' is a required property"),
    "no format": (lambda form: {n: each for n, each in form.items() if n != "format"}, "'format' is a required"),
    "version of another type": (lambda form: {**form, "askance": 3}, "askance: 3 is not of type 'string'"),
    "runs of another type": (lambda form: {**form, "runs": {}}, "runs: {} is not of type 'array'"),
    "a run of another type": (lambda form: {**form, "runs": [1]}, "runs[0]: 1 is not of type 'string'"),
    "a run twice": (lambda form: {**form, "runs": [RUN, RUN]}, "has non-unique elements"),
    "another run": (lambda form: {**form, "runs": ["../x"]}, "names the run '../x', which is not in it"),
    "files of a run that it does not name": (
        lambda form: {**form, "files": {**form["files"], "runs/other/samples.jsonl": "0" * 64}},
        "holds 'runs/other/samples.jsonl' of a run that it does not name",
    ),
    "files of another type": (lambda form: {**form, "files": [1]}, "files: [1] is not of type 'object'"),
    "no digest": (lambda form: {**form, "files": {"tables/x": 3}}, "files.tables/x: 3 is not of type 'string'"),
    "another format": (lambda form: {**form, "format": 2}, "has the format 2, and this is askance for format 1"),
    "a list": (lambda _: [1], "it: [1] is not of type 'object'"),
    "NaN": (lambda form: {**form, "format": float("nan")}, "holds NaN, which is no JSON"),
}
MANIFEST_TEXTS: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "is no JSON (Expecting value, column 1)"),
    "no UTF-8": (b"\xff", "is no text in UTF-8"),
    "bottomless": (b"[" * 900_000, "is nested deeper than 100 levels"),
    "digits": (b'{"format": ' + b"1" * 401 + b"}", "holds 111111111111111111…, a number of 401 digits"),
    "huge": (b" " * 17_000_000, "holds 'manifest.json' with 17 MB, more than the 16 MB that it may have"),
}


@pytest.fixture
def refused(replay: Command) -> Refused:
    """Holds a replay of `x.pack` to one message with a way out."""

    def check(message: str) -> None:
        done = replay("x.pack")
        assert (done.code, done.out) == (2, "")
        assert message in done.err
        assert done.err.count("\n") == 2
        assert "\n  → " in done.err

    return check


@pytest.fixture
def packed(run: Path, askance: Command) -> Path:
    """A sound pack, to be spoilt."""
    assert askance("pack", RUN, "-o", "x.pack").code == 0
    return Path("x.pack")


@pytest.mark.parametrize(("change", "message"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_of_another_form_is_refused(
    packed: Path, refused: Refused, change: Callable[[Form], object], message: str
) -> None:
    manifested(packed, json.dumps(change(form_of(packed))).encode())

    refused(message)


@pytest.mark.parametrize(("text", "message"), MANIFEST_TEXTS.values(), ids=MANIFEST_TEXTS)
def test_a_manifest_that_is_none_is_refused(packed: Path, refused: Refused, text: bytes, message: str) -> None:
    manifested(packed, text)

    refused(message)


def test_a_table_that_is_no_text_is_refused(packed: Path, refused: Refused) -> None:
    rewritten(packed, lambda each: {**each, "tables/odd.md": b"\xff\xfe\x00"})

    refused("The table 'odd.md' of the pack 'x.pack' is no text in UTF-8.")


METHODS = {
    "deflate": (zipfile.ZIP_DEFLATED, "it holds 'manifest.json', which is broken."),
    "LZMA": (zipfile.ZIP_LZMA, ", which is not packed by deflate."),
    "bzip2": (zipfile.ZIP_BZIP2, ", which is not packed by deflate."),
}


@pytest.mark.parametrize(("method", "message"), METHODS.values(), ids=METHODS)
def test_what_is_broken_within_a_pack_is_named(packed: Path, refused: Refused, method: int, message: str) -> None:
    contents = contents_of(packed)
    with zipfile.ZipFile(packed, "w", method) as file:
        for name, content in contents.items():
            file.writestr(name, content)
        place = file.getinfo("manifest.json").header_offset + 30 + len("manifest.json")
    broken = bytearray(packed.read_bytes())
    for each in range(place + 9, place + 60):
        broken[each] ^= 0xFF
    packed.write_bytes(bytes(broken))

    refused(message)


BOMBS = {
    "table": ("tables/odd.md", 17, "holds 'tables/odd.md' with 17 MB, more than the 16 MB that it may have."),
    "samples": (f"runs/{RUN}/samples.jsonl", 65, "MB once it is unpacked, which is too much."),
}


@pytest.mark.parametrize(("name", "size", "message"), BOMBS.values(), ids=BOMBS)
def test_a_small_pack_that_unpacks_to_much_is_refused(
    packed: Path, refused: Refused, name: str, size: int, message: str
) -> None:
    rewritten(packed, lambda each: {**each, name: bytes(size * 1_000_000)})
    assert packed.stat().st_size < 200_000

    refused(message)


def test_two_files_of_one_name_are_refused(packed: Path, refused: Refused) -> None:
    with zipfile.ZipFile(packed, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr("manifest.json", "{}")

    refused("it holds two files of one name.")


def _commented(pack: bytes) -> bytes:
    return pack[:-2] + (5).to_bytes(2, "little") + b"<svg>"


def _spaced(pack: bytes) -> bytes:
    """The pack with bytes between its first file and its second, to which the central directory knows the way."""
    second, directory = pack.index(b"PK\3\4", 4), pack.index(b"PK\1\2")
    spaced = bytearray(pack[:second] + b"#" * 40 + pack[second:])
    for _ in range(pack.count(b"PK\1\2")):
        place = directory + 40 + 42
        offset = int.from_bytes(spaced[place : place + 4], "little")
        spaced[place : place + 4] = (offset + 40 * (offset >= second)).to_bytes(4, "little")
        lengths = [int.from_bytes(spaced[place - at : place - at + 2], "little") for at in (14, 12, 10)]
        directory += 46 + sum(lengths)
    end = len(spaced) - 6
    spaced[end : end + 4] = (int.from_bytes(spaced[end : end + 4], "little") + 40).to_bytes(4, "little")
    return bytes(spaced)


def _with_fields(pack: bytes, **fields: bytes) -> bytes:
    """The pack with such fields in the header of each of its files."""
    contents, made = contents_of(BytesIO(pack)), BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in contents.items():
            info = zipfile.ZipInfo(name)
            for field, value in fields.items():
                setattr(info, field, value)
            file.writestr(info, content)
    return made.getvalue()


def _padded(pack: bytes) -> bytes:
    """The pack with bytes behind the end of what is packed in its first file, which count as a part of it."""
    contents, made = contents_of(BytesIO(pack)), BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in contents.items():
            file.writestr(name, content)
            if name == min(contents):
                made.write(b"<script>")
                entry = file.getinfo(name)
                entry.compress_size += 8
                file.start_dir += 8
                place = made.tell()
                made.seek(entry.header_offset + 18)
                made.write(entry.compress_size.to_bytes(4, "little"))
                made.seek(place)
    return made.getvalue()


def _longer(pack: bytes) -> bytes:
    """The pack with more packed in its first file than its size says."""
    contents, made = contents_of(BytesIO(pack)), BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in contents.items():
            more = b"<script>" if name == min(contents) else b""
            file.writestr(name, content + more)
            entry = file.getinfo(name)
            entry.file_size, entry.CRC = len(content), crc32(content)
            place = made.tell()
            made.seek(entry.header_offset + 14)
            made.write(entry.CRC.to_bytes(4, "little"))
            made.seek(entry.header_offset + 22)
            made.write(entry.file_size.to_bytes(4, "little"))
            made.seek(place)
    return made.getvalue()


TWOFOLD: dict[str, Callable[[bytes], bytes]] = {
    "a script before": lambda pack: b"#!/bin/sh\necho hello\nexit\n" + pack,
    "a page behind": lambda pack: pack + b"<html><body>hello</body></html>",
    "a comment": _commented,
    "a gap": _spaced,
    "two packs": lambda pack: pack + pack,
    "comments of files": lambda pack: _with_fields(pack, comment=b"%PDF-1.7"),
    "fields of files": lambda pack: _with_fields(pack, extra=b"\xfe\xca\4\0<ht>"),
    "behind what is packed": _padded,
    "more than its size says": _longer,
}


@pytest.mark.parametrize("change", TWOFOLD.values(), ids=TWOFOLD)
def test_a_file_that_is_a_pack_and_something_else_is_refused(
    packed: Path, refused: Refused, change: Callable[[bytes], bytes]
) -> None:
    packed.write_bytes(change(packed.read_bytes()))
    with zipfile.ZipFile(packed) as file:
        assert file.testzip() is None

    refused("bytes that belong to none of its files.\n  → Get it anew from whoever made it")


# --- signatures ---


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the keys `ada` and `bob`, and `signers`, which names Ada's."""
    if shutil.which("ssh-keygen") is None:
        if "CI" in os.environ:
            pytest.fail("ssh-keygen is not installed: install openssh-client")
        pytest.skip("ssh-keygen is not installed")
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ada", "bob"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)], check=True, timeout=60
        )
    public = (folder / "ada.pub").read_text(encoding="utf-8")
    (folder / "signers").write_text(f"ada@example.org {public}", encoding="utf-8")
    return folder


@pytest.fixture
def signed(run: Path, keys: Path, askance: Command) -> Path:
    """A pack that Ada has signed."""
    assert askance("pack", RUN, "--sign", str(keys / "ada")).code == 0
    return Path("runs.pack")


def test_a_signer_is_named(signed: Path, keys: Path, replay: Command) -> None:
    done = replay(str(signed), "--signers", str(keys / "signers"))

    assert done.code == 0
    assert "It is signed by ada@example.org with the key ED25519 SHA256:" in done.out
    (form,) = replay(str(signed), "--json").lines
    assert (form["signature"]["state"], form["signature"]["signer"]) == ("unknown", "")


def test_a_signature_changes_nothing_else(signed: Path, run: Path, askance: Command, replay: Command) -> None:
    digest = replay(str(signed), "--json").lines[0]["manifest"]
    askance("pack", RUN, "-o", "plain.pack")

    assert replay("plain.pack", "--json").lines[0]["manifest"] == digest


def test_an_unknown_signer_is_told_from_none(run: Path, keys: Path, askance: Command, replay: Command) -> None:
    askance("pack", RUN, "--sign", str(keys / "bob"))
    stranger = replay("runs.pack", "--signers", str(keys / "signers"))
    nobody_asked = replay("runs.pack")
    askance("pack", RUN)
    unsigned = replay("runs.pack", "--signers", str(keys / "signers"))

    assert [done.code for done in (stranger, nobody_asked, unsigned)] == [1, 0, 1]
    assert "which no file of signers names.\n" in stranger.out
    assert "which no file of signers names.\n" in nobody_asked.out
    assert "It is not signed.\n" in unsigned.out


def test_a_signature_that_does_not_fit(signed: Path, keys: Path, run: Path, replay: Command) -> None:
    rewritten(signed, lambda each: {**each, "schemas/cassette.schema.json": b"{}"})
    done = replay(str(signed))

    assert done.code == 1
    assert "✗ Its signature does not fit" in done.out


@pytest.mark.parametrize("signature", [b"", b"no signature", b"\xff" * 70_000], ids=["empty", "text", "long"])
def test_what_is_no_signature_does_not_fit(
    run: Path, keys: Path, askance: Command, replay: Command, signature: bytes
) -> None:
    askance("pack", RUN)
    rewritten(Path("runs.pack"), lambda each: {**each, "manifest.json.sig": signature})

    assert "✗ Its signature does not fit" in replay("runs.pack").out


def test_a_signature_for_anything_else_does_not_fit(run: Path, keys: Path, askance: Command, replay: Command) -> None:
    askance("pack", RUN)
    with zipfile.ZipFile("runs.pack") as file:
        manifest = file.read("manifest.json")
    other = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-n", "git", "-f", str(keys / "ada")],
        input=manifest,
        capture_output=True,
        check=True,
    )
    with zipfile.ZipFile("runs.pack", "a") as file:
        file.writestr("manifest.json.sig", other.stdout)

    assert "✗ Its signature does not fit" in replay("runs.pack", "--signers", str(keys / "signers")).out


@pytest.fixture
def no_ssh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without OpenSSH."""
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(Path.cwd()))
        yield


def test_without_openssh(signed: Path, keys: Path, no_ssh: None, askance: Command, replay: Command) -> None:
    signing = askance("pack", RUN, "--sign", str(keys / "ada"), "-o", "other.pack")
    asked = replay(str(signed), "--signers", str(keys / "signers"))
    unasked = replay(str(signed))

    assert [done.code for done in (signing, asked, unasked)] == [2, 2, 0]
    assert signing.err.startswith("askance: `ssh-keygen` is not installed, and it signs packs.\n  → Install OpenSSH")
    assert asked.err.startswith("askance: `ssh-keygen` is not installed, and it checks signatures.\n  → Install")
    assert "Its signature is not checked: `ssh-keygen` is not installed.\n" in unasked.out
    assert not Path("other.pack").exists()


def test_keys_that_cannot_sign(run: Path, keys: Path, askance: Command) -> None:
    Path("no-key").write_text("nothing", encoding="utf-8")
    missing, none = (askance("pack", RUN, "--sign", name) for name in ("missing", "no-key"))
    signers = askance("replay", str(ROOT / "examples" / "demo.pack"), "--signers", "missing")

    assert [done.code for done in (missing, none, signers)] == [2, 2, 2]
    assert missing.err.startswith("askance: There is no key 'missing'.\n  → ")
    assert none.err.startswith("askance: `ssh-keygen` cannot sign with the key 'no-key': ")
    assert signers.err.startswith("askance: There is no file of signers 'missing'.\n  → ")
    assert list(Path.cwd().glob("*.pack*")) == []
