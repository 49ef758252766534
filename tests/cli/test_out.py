"""`askance run --out`: a folder that holds the whole run."""

from __future__ import annotations

import json
from pathlib import Path

from askance.replay import read_cassette
from tests.cli.command import Command, telling
from tests.servers import FakeEndpoint


def samples(folder: str) -> list[str]:
    """The samples without what is volatile, sorted, as text."""
    texts = Path(folder, "samples.jsonl").read_text(encoding="utf-8").splitlines()
    kept = ({name: value for name, value in json.loads(text).items() if name != "meta"} for text in texts)
    return [json.dumps(line) for line in sorted(kept, key=lambda line: line["image"])]


def test_the_same_command_does_nothing_more(
    askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str], options: str
) -> None:
    command = ["run", "action-reason", "ads", "--options", options, "--vlm", vlm, "--out", "kept", "--json"]
    first = askance(*command)
    before = len(endpoint.requests)
    again = askance(*command)

    assert (first.code, again.code, len(endpoint.requests)) == (0, 0, before)
    assert again.out == first.out
    assert again.err == "3 of 3 images: 3 answered\n0 calls made · 0 replayed\nThe run is in kept.\n"


def test_the_folder_is_a_cassette_for_another_machine(askance: Command, ads: list[str]) -> None:
    with FakeEndpoint(telling) as endpoint:
        command = ["run", "verbalize", "ads", "--vlm", f"openai:m@{endpoint.url}", "--json"]
        askance("run", "verbalize", ads[0], "--vlm", "openai:other@" + endpoint.url)
        first = askance(*command, "--out", "kept")
    askance("cache", "import", "kept/calls.jsonl", "--store", "elsewhere")
    replayed = askance(*command, "--replay", "--store", "elsewhere")

    assert len(list(read_cassette("kept/calls.jsonl"))) == 1 + 3 * 5
    assert (replayed.code, replayed.stable) == (0, first.stable)


def test_two_equal_runs_are_equal(askance: Command, vlm: str, ads: list[str]) -> None:
    askance("run", "verbalize", "ads", "--vlm", vlm, "--out", "one")
    askance("run", "verbalize", "ads", "--vlm", vlm, "--out", "two", "--mode", "refresh")

    assert samples("one") == samples("two")
    assert Path("one/calls.jsonl").read_text(encoding="utf-8").count("\n") == 1 + 3 * 5


def test_another_configuration_is_refused(askance: Command, vlm: str, ads: list[str]) -> None:
    askance("run", "verbalize", "ads", "--vlm", vlm, "--out", "kept")

    done = askance("run", "verbalize", "ads", "--vlm", vlm, "--out", "kept", "--context", "IN")

    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "askance: The folder 'kept' holds a run of another configuration, different in 'context' (none, now 'IN'), "
        "'prompts.combine.json.prompt', 'prompts.objects.json.prompt' and 2 more.\n"
        "  → Give another `--out`, or the options that the run began with (they stand in its run.json).\n"
    )


def test_a_run_that_could_not_start_leaves_the_folder_free(askance: Command, vlm: str, ads: list[str]) -> None:
    assert askance("run", "verbalize", "ads", "--vlm", "openai:gpt-4o", "--out", "kept").code == 3

    assert askance("run", "verbalize", "ads", "--vlm", vlm, "--out", "kept").code == 0


def test_a_picture_that_changed_is_read_again(
    askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str]
) -> None:
    command = ["run", "verbalize", *ads[:2], "--context", "IN", "--vlm", vlm, "--out", "kept", "--json"]
    first = askance(*command)
    Path(ads[1]).write_bytes(Path(ads[2]).read_bytes())
    endpoint.requests.clear()
    again = askance(*command)

    assert (again.code, len(endpoint.requests)) == (0, 1)
    assert [line["sha256"] for line in again.lines] != [line["sha256"] for line in first.lines]


def test_a_finished_run_needs_no_server_and_no_store(askance: Command, ads: list[str]) -> None:
    with FakeEndpoint(telling) as endpoint:
        command = ["run", "verbalize", "ads", "--vlm", f"openai:m@{endpoint.url}", "--out", "kept", "--json"]
        first = askance(*command)
    again = askance(*command, "--store", "empty")

    assert (again.code, again.out) == (0, first.out)
    assert len(list(read_cassette("kept/calls.jsonl"))) == 1 + 3 * 5


def test_live_answers_cannot_be_kept(askance: Command, vlm: str, ads: list[str]) -> None:
    done = askance("run", "verbalize", "ads", "--vlm", vlm, "--out", "kept", "--mode", "live")

    assert done.code == 2
    assert done.err == (
        "askance: `--mode live` leaves answers on record as they are, so `--out` could not keep what was answered.\n"
        "  → Use `--mode refresh`, which records the new answers.\n"
    )
