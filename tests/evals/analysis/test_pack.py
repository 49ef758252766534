"""Packs: what goes in comes out, on another machine, after the code has moved on; and nothing that was changed."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from askance.errors import UsageError
from askance.evals import Run, Sample, Score, Task, evaluate
from askance.evals.analysis.pack import MANIFEST, open_pack, write_pack
from askance.evals.analysis.pack_check import PackCheck, check_pack
from askance.evals.run_tables import task_tables
from tests.evals.odd import SCORING, Odd, chooser, scored_by, write_pictures


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return evaluate(Odd(data=write_pictures(tmp_path / "pictures"), vlm=chooser(2)), out=tmp_path / "run-b")


async def checked(path: Path, *, definition: type[Task] = Odd, again: bool = False) -> PackCheck:
    with open_pack(path) as each:
        return await check_pack(each, tasks={definition.name: definition}, again=again)


async def test_a_pack_is_scored_and_its_tables_made_again_without_pictures(run: Run, tmp_path: Path) -> None:
    packed = write_pack([run], tmp_path / "one.pack")
    shutil.rmtree(tmp_path / "pictures")
    shutil.rmtree(run.path)

    report = await checked(packed.path, again=True)

    assert report.sound
    assert report.tables == task_tables([run])
    assert (report.digest, report.runs[0].samples, report.runs[0].again) == (packed.digest, 6, {"same": 6})


def test_equal_runs_make_equal_packs(run: Run, tmp_path: Path) -> None:
    one = write_pack([run], tmp_path / "one.pack")
    two = write_pack([Run.open(run.path)], tmp_path / "two.pack")

    assert one.path.read_bytes() == two.path.read_bytes()


async def test_another_scorer_is_told_at_once(run: Run, tmp_path: Path) -> None:
    packed = write_pack([run], tmp_path / "one.pack")

    def always_right(_sample: Sample, _value: object) -> Score:
        return Score(values={"accuracy": 1.0})

    all_right = replace(SCORING, score=always_right)

    report = await checked(packed.path, definition=scored_by(Odd, all_right))

    assert report.runs[0].differences == (
        "4 samples are scored differently now, such as '00.png', '02.png', '03.png'",
        "accuracy was 0.333333 and is 1",
    )
    assert report.differing == ("tests-odd.csv", "tests-odd.md")


async def test_another_prompt_would_be_asked_anew(run: Run, tmp_path: Path, own_place: Path) -> None:
    packed = write_pack([run], tmp_path / "one.pack")
    prompt = (run.path / "prompts" / "end_to_end_multi.json.prompt").read_text(encoding="utf-8")
    (own_place / "prompts").mkdir()
    brief = prompt.replace("\nexample:\n", "Be brief.\n\nexample:\n")
    (own_place / "prompts" / "end_to_end_multi.json.prompt").write_text(brief, encoding="utf-8")

    report = await checked(packed.path, again=True)

    assert report.sound
    assert report.runs[0].again == {"asked anew": 6}
    assert report.runs[0].changed[0].startswith("'00.png': asked anew (")


def edited(path: Path, change: Callable[[str, bytes], bytes]) -> None:
    """Changes files within a pack."""
    with zipfile.ZipFile(path) as file:
        contents = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, content in contents.items():
            file.writestr(name, change(name, content))


@pytest.mark.parametrize("name", ["samples.jsonl", "scores.jsonl", "calls.jsonl", "run.json"])
def test_a_pack_that_was_changed_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    path = write_pack([run], tmp_path / "one.pack").path
    edited(path, lambda each, content: content.replace(b"00.png", b"0O.png") + b" " if each.endswith(name) else content)

    with (
        pytest.raises(UsageError, match=rf"was changed: 'runs/run-b/{name}' is not what its manifest says\."),
        open_pack(path),
    ):
        pass


@pytest.mark.parametrize(
    "name",
    [
        "../out.txt",
        "runs/../../out.txt",
        "/etc/out.txt",
        "runs/a/b/c.txt",
        "runs/run-b/other.json",
        ".hidden",
        "runs/../run.json",
        "runs/./run.json",
        "runs/run-b/prompts/..",
        "tables/..",
        "tables/.",
        "schemas/..",
    ],
)
def test_a_pack_cannot_write_elsewhere(run: Run, tmp_path: Path, name: str) -> None:
    path = write_pack([run], tmp_path / "one.pack").path
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(name, "x")

    with pytest.raises(UsageError, match=r"was changed: its manifest and its files differ"), open_pack(path):
        pass

    def into_manifest(each: str, content: bytes) -> bytes:
        if each != MANIFEST:
            return content
        manifest = json.loads(content)
        manifest["files"][name] = "0" * 64
        return json.dumps(manifest).encode()

    edited(path, into_manifest)
    with pytest.raises(UsageError, match=r"names files that no pack has"), open_pack(path):
        pass


@pytest.mark.parametrize(
    "content", [b"", b"no zip at all", b"PK\x03\x04 and not much more"], ids=["empty", "text", "torn"]
)
def test_what_is_no_pack_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with (
        pytest.raises(UsageError, match=r"^The file '.*file' is no pack: it is no zip file\."),
        open_pack(tmp_path / "file"),
    ):
        pass


def test_a_run_that_is_not_finished_is_not_packed(run: Run, tmp_path: Path) -> None:
    form = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    del form["finished"]
    (run.path / "run.json").write_text(json.dumps(form), encoding="utf-8")

    with pytest.raises(UsageError, match=r"is not finished\."):
        write_pack([Run.open(run.path)], tmp_path / "one.pack")
    assert not (tmp_path / "one.pack").exists()
