"""What a person sees: cards and a progress bar on a terminal, and nothing of it in a pipe."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import Command, link_of, start, telling
from tests.servers import FakeEndpoint, Seen

COLUMNS = 90
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@pytest.fixture(autouse=True)
def a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def watch(
    *arguments: str, typed: str = "", piped: bool = False, seen: Callable[[str], None] = lambda _: None
) -> tuple[int, str, str]:
    """Exit code, what a terminal showed, and, where stdout is `piped`, what came through the pipe.

    At the terminal somebody has `typed` beforehand. Each time that it shows something, `seen` takes all that it has
    shown so far.
    """
    master, slave = pty.openpty()
    os.write(master, typed.encode())
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    process = start(
        *arguments,
        stdin=slave if typed else subprocess.DEVNULL,
        stdout=subprocess.PIPE if piped else slave,
        stderr=slave,
    )
    os.close(slave)
    shown = b""
    for more in iter(lambda: _read(master), b""):
        shown += more
        seen(shown.decode(errors="replace"))
    os.close(master)
    through = process.communicate(timeout=180)[0] or ""
    return process.returncode, shown.decode(), through


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # what Linux says where the other end is closed
        return b""


def text(shown: str) -> str:
    return _CONTROL.sub("", shown)


def test_a_card_for_each_picture_and_a_bar_that_goes_away(vlm: str, ads: list[str], options: str) -> None:
    code, shown, _ = watch("run", "action-reason", "ads", "--options", options, "--vlm", vlm)

    seen = text(shown)
    assert code == 0
    assert [seen.count(f"─ {name} ─") for name in ads] == [1, 1, 1]
    assert "│ argues for   1. I should drink tea." in seen
    assert re.search(r"━+ 0/3 · \d+ made · 0 replayed .*--:--", seen)
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1
    assert seen.rstrip().splitlines()[-2].startswith("3 of 3 images: 3 answered")


def test_what_is_for_a_pipe_goes_through_the_pipe_while_the_bar_is_on_the_terminal(vlm: str, ads: list[str]) -> None:
    code, shown, through = watch("run", "verbalize", "ads", "--vlm", vlm, "--json", piped=True)

    assert (code, [json.loads(line)["image"] for line in through.splitlines()]) == (0, ads)
    assert '"image"' not in shown
    assert "0/3" in text(shown)


def test_json_on_a_terminal_is_not_wrapped(vlm: str, ads: list[str]) -> None:
    _, shown, _ = watch("run", "verbalize", ads[0], "--vlm", vlm, "--json")

    lines = [line[line.index("{") :] for line in text(shown).splitlines() if '"image"' in line]
    assert [json.loads(line)["image"] for line in lines] == ads[:1]


def test_what_a_model_says_cannot_steer_the_terminal(askance: Command, ads: list[str]) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[bold]a\u202eb\x9b31m"

    def says(seen: Seen) -> str:
        told = telling(seen)
        return json.dumps(dict.fromkeys(json.loads(told), evil)) if link_of(seen) == "narration" else told

    with FakeEndpoint(says) as endpoint:
        command = ["run", "verbalize", ads[0], "--vlm", f"openai:m@{endpoint.url}", "--context", "IN"]
        plain = askance(*command).out
        _, card, _ = watch(*command)
        _, line, _ = watch(*command, "--json")

    for shown in (plain, card, line):
        assert not {"\x07", "\x9b", "\u202e"} & set(shown)
        assert "\x1b]" not in shown
        assert "\x1b[2J" not in shown
    assert "\\x1b]0;owned\\x07\\x1b[2J[bold]a\\u202eb\\x9b31m" in text(card)


def test_the_end_of_a_run_fits_the_terminal(vlm: str, ads: list[str]) -> None:
    Path(ads[0]).write_text("no picture", encoding="utf-8")

    code, shown, _ = watch("run", "verbalize", "ads", "--vlm", vlm, "--context", "IN")

    seen = text(shown)
    table = seen[seen.index("Without an answer:") :].splitlines()
    assert code == 1
    assert max(map(len, table[:-3])) <= COLUMNS
    assert table[1].startswith("  ads/a.png  The picture 'ads/a.png' holds no picture that is known here")


def test_an_error_is_wrapped_between_words(ads: list[str]) -> None:
    code, shown, _ = watch("run", "verbalize", "ads")

    lines = text(shown).splitlines()
    assert (code, lines[0]) == (2, "askance: No model is named for --vlm.")
    assert max(map(len, lines)) <= COLUMNS
    assert lines[-1].startswith("    ")
    assert lines[-1].endswith("Or set `vlm` in askance.toml.")
