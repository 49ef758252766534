"""`--local`: nobody has a key; a model is named, downloaded from a hub on the loopback, and used offline for ever."""

from __future__ import annotations

import os
import pty
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.slow.commands import Place, Ran
from tests.slow.hub import hub_of

pytestmark = pytest.mark.slow(group="local")

RUN = ("run", "verbalize", "photos/coffee.png", "--local", "--json")
WEIGHTS = "model.safetensors"
Run = Callable[..., Ran]


@pytest.fixture
def place(photos: Path, tmp_path: Path) -> Place:
    """A user's folder without a word about models."""
    return Place.make(tmp_path / "place", photos, "")


@pytest.fixture
def run(local_python: Path, place: Place, tmp_path: Path) -> Run:
    """Runs the command with a hub's cache of its own, beside a hub or none."""

    def run(*words: str, hub: str = "http://127.0.0.1:9", **variables: str) -> Ran:
        own = {"HF_HOME": str(tmp_path / "hub"), "HF_ENDPOINT": hub, "OMP_NUM_THREADS": "1"}
        return place.run_by(local_python, words, {**own, "HF_HUB_OFFLINE": "0", **variables})

    return run


def words(ran: Ran) -> str:
    return " ".join(ran.err.split())


def test_nobody_is_surprised_by_a_download(run: Run, tiny: Path) -> None:
    with hub_of(tiny / "idefics3") as hub:
        ran = run(*RUN, hub=hub.url)

    assert (ran.code, ran.out, hub.asked) == (2, "", [])
    assert "Apache-2.0" in words(ran)
    assert "GB will be downloaded into" in words(ran)
    assert "→ Add `--yes`." in words(ran)


def test_downloaded_once_and_offline_for_ever(run: Run, tiny: Path) -> None:
    with hub_of(tiny / "idefics3") as hub:
        first = run(*RUN, "--yes", hub=hub.url)
        again = run("run", "verbalize", "photos/chelsea.png", "--local", "--json", hub=hub.url)
    offline = run("run", "verbalize", "photos/rocket.jpg", "--local", "--json")
    replayed = run(*RUN, "--replay")

    assert sorted({name for name, _ in hub.asked}) == sorted(name for name, _ in hub.asked)
    assert "preprocessor_config.json" in {name for name, _ in hub.asked} or "processor_config.json" in str(hub.asked)
    assert "100%" in first.err
    assert [len(each.lines) for each in (first, again, offline)] == [1, 1, 1]
    assert [each.meta("calls") > 0 for each in (first, again, offline, replayed)] == [True, True, True, False]
    assert replayed.lasting == first.lasting
    assert "answers in" in words(offline)
    assert "downloaded into" not in words(again)


def test_a_connection_that_breaks_is_taken_up_where_it_broke(run: Run, tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny / "idefics3", tmp_path / "large")
    (folder / "large.txt").write_bytes(b"\n" * 24_000_000)
    with hub_of(folder) as hub:
        hub.breaks = 1
        ran = run(*RUN, "--yes", hub=hub.url)

    # The client writes whole chunks of 10 MiB.
    assert [wanted for name, wanted in hub.asked if name == "large.txt"] == ["", f"bytes={10 << 20}-"]
    assert len(ran.lines) == 1


def test_a_download_that_stays_broken_is_told_and_gone_on_with(run: Run, tiny: Path) -> None:
    with hub_of(tiny / "idefics3") as hub:
        hub.breaks = 100
        broken = run(*RUN, "--yes", hub=hub.url)
        hub.breaks, before = 0, len(hub.asked)
        whole = run(*RUN, "--yes", hub=hub.url)

    assert (broken.code, broken.out) == (2, "")
    assert "broke off: " in words(broken)
    assert "The same command goes on; files that are whole are not asked for again." in words(broken)
    assert {name for name, _ in hub.asked[before:]} == {WEIGHTS}
    assert len(whole.lines) == 1


def test_where_there_is_no_hub_a_folder_can_be_brought(run: Run, place: Place, tiny: Path) -> None:
    nothing = run(*RUN, "--yes")
    forbidden = run(*RUN, "--yes", HF_HUB_OFFLINE="1")
    planned = run(*RUN, "--plan")
    (place.folder / "models").symlink_to(tiny)
    (place.folder / "askance.toml").write_text('local = "models/idefics3"\n', encoding="utf-8")
    brought = run(*RUN)

    assert [each.code for each in (nothing, forbidden, planned)] == [2, 2, 2]
    assert "No hub gives out" in words(nothing)
    assert '`hf:FOLDER` as a model, or `local = "FOLDER"` in askance.toml' in words(nothing)
    assert "`HF_HUB_OFFLINE` forbids its download" in words(forbidden)
    assert "A run without `--replay` and `--plan` downloads it." in words(planned)
    assert len(brought.lines) == 1


def test_evaluations_and_blame_take_it_too(run: Run, place: Place) -> None:
    ran = [run("eval", "run", "pittads/aor", "--data", ".", "--local"), run("blame", ".", "--local", "--truth")]

    assert [each.code for each in ran] == [2, 2]
    assert "→ Add `--yes`." in words(ran[0])


TEXTS: dict[str, str] = {
    "true.json": '{"1.jpg": ["I should fly because it is fast"]}',
    "options.json": '{"1.jpg": [["I should fly as it is fast"], ["I should walk", "I should fly as it is fast"]]}',
    "labels.csv": "reference,candidate,verdict\nIt snows.,There is snow.,true\nIt snows.,It rains.,false\n",
    "weird/whoops_dataset.csv": 'image_id,crowd_captions\nw,"[""A robot walks in the snow.""]"\n',
}
WRITERS: dict[str, tuple[str, ...]] = {
    "negatives": ("negatives", "generate", "true.json", "--kinds", "action", "--out", "hard"),
    "audit": ("negatives", "audit", "options.json", "--no-wording", "--orders", "1"),
    "judge": ("judge", "card", "--labels", "labels.csv", "--draws", "1", "--form", "short"),
    "questions": ("data", "make-questions", "whoops", "weird", "--out", "made", "--count", "1"),
}


@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_what_asks_about_words_takes_it_too(run: Run, place: Place, tiny: Path, command: tuple[str, ...]) -> None:
    (place.folder / "weird").mkdir()
    for name, text in TEXTS.items():
        (place.folder / name).write_text(text, encoding="utf-8")
    unasked = run(*command, "--local")
    (place.folder / "models").symlink_to(tiny)
    (place.folder / "askance.toml").write_text('local = "models/idefics3"\n', encoding="utf-8")
    asked, again = run(*command, "--local"), run(*command, "--local", "--replay")

    assert (unasked.code, "→ Add `--yes`." in words(unasked)) == (2, True)
    assert " made · 0 replayed · " in asked.err
    assert (again.code, again.out) == (asked.code, asked.out)


@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_ctrl_c_at_the_question_ends_it_at_once(
    place: Place, local_python: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (place.folder / "weird").mkdir()
    for name, text in TEXTS.items():
        (place.folder / name).write_text(text, encoding="utf-8")
    hub = {"HF_HOME": str(tmp_path / "hub"), "HF_ENDPOINT": "http://127.0.0.1:9", "TERM": "xterm-256color"}
    master, slave = pty.openpty()
    process = place.begin_by(local_python, (*command, "--local"), hub, terminal=slave)
    os.close(slave)
    shown = b""
    while b"[y/N] " not in shown:
        shown += os.read(master, 65536)
    process.send_signal(signal.SIGINT)

    try:
        assert (process.wait(timeout=20), b"\x1b" in shown) == (130, False)  # no bar is drawn over the question
    finally:
        process.kill()
        os.close(master)


def test_without_torch_nothing_is_downloaded(place: Place, tiny: Path) -> None:
    with hub_of(tiny / "idefics3") as hub:
        ran = place.run(*RUN, "--yes", HF_ENDPOINT=hub.url)

    assert (ran.code, hub.asked) == (2, [])
    assert "pip install 'askance[local]'" in ran.err
