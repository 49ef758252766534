"""`askance run`: which pictures are read, from where, and with which settings; questions of one's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from askance.errors import BadImage
from askance.evals import Run
from askance.images import Image
from tests.cli.command import Command, draw, link_of
from tests.servers import FakeEndpoint

IN = ("--context", "IN", "--json")
"""One call an image."""


@pytest.fixture
def web(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Pictures at addresses; a list of what was fetched."""
    draw(own_place / "web", "a.png", "b.png")
    asked: list[str] = []

    def from_url(url: str) -> Image:
        asked.append(url)
        file = own_place / "web" / url.rpartition("/")[2]
        if not file.exists():
            raise BadImage(f"The picture {url!r} cannot be fetched: the server answered 404.", hint="Mend the address.")
        return Image.from_bytes(file.read_bytes())

    monkeypatch.setattr(Image, "from_url", from_url)
    return asked


def images(lines: Sequence[dict[str, Any]]) -> list[str]:
    return [line["image"] for line in lines]


# --- which pictures --------------------------------------------------------------------------------------------------


def test_the_first_ones(askance: Command, vlm: str, ads: list[str]) -> None:
    done = askance("run", "verbalize", "ads", "--vlm", vlm, *IN, "--limit", "2")

    assert (done.code, images(done.lines)) == (0, ads[:2])
    assert "2 of 2 images: 2 answered" in done.err


def test_a_sample_is_drawn_by_its_seed_which_is_said_and_kept(
    askance: Command, vlm: str, own_place: Path, endpoint: FakeEndpoint
) -> None:
    names = draw(own_place / "many", *(f"{number}.png" for number in range(6)))
    named = [f"many/{Path(name).name}" for name in names]
    command = ["run", "verbalize", "many", "--vlm", vlm, *IN, "--sample", "2"]

    first, again = askance(*command, "-o", "drawn"), askance(*command)
    others = [images(askance(*command, "--sample-seed", str(seed)).lines) for seed in range(4)]
    backwards = askance("run", "verbalize", *reversed(named), "--vlm", vlm, *IN, "--sample", "2")

    assert len(images(first.lines)) == 2
    assert "2 of 6 images are drawn, with the seed 0." in first.err
    assert images(again.lines) == images(first.lines) == others[0]
    assert any(other != others[0] for other in others[1:])
    assert sorted(images(backwards.lines)) == sorted(images(first.lines)), "not by the order in which they are named"
    configuration = json.loads(Path("drawn/run.json").read_text(encoding="utf-8"))["configuration"]
    assert configuration["drawn"] == {"size": 2, "of": 6, "seed": 0}


def test_a_sample_of_more_than_there_are_is_all_of_them(askance: Command, vlm: str, ads: list[str]) -> None:
    done = askance("run", "verbalize", "ads", "--vlm", vlm, *IN, "--sample", "9")

    assert (images(done.lines), "3 of 3 images are drawn" in done.err) == (ads, True)


# --- settings --------------------------------------------------------------------------------------------------------


def test_settings_of_the_models_are_sent_and_are_part_of_the_key(
    askance: Command, endpoint: FakeEndpoint, ads: list[str], own_place: Path
) -> None:
    settings = f'[models.seer]\nspec = "openai:fake-model@{endpoint.url}"\ntemperature = 0.5\ntop_p = 0.9\n'
    Path("askance.toml").write_text(settings, encoding="utf-8")
    command = ["run", "verbalize", ads[0], "--vlm", "seer", *IN]
    askance(*command)
    endpoint.requests.clear()

    done = askance(*command, "--temperature", "0", "--seed", "7", "--max-tokens", "99")
    bodies = [seen.json for seen in endpoint.requests if link_of(seen) == "narration"]
    again = askance(*command, "--temperature", "0", "--seed", "7", "--max-tokens", "99", "--replay")

    assert (done.code, again.code, len(bodies)) == (0, 0, 1)
    wanted = {"temperature": 0, "seed": 7, "top_p": 0.9}
    assert {name: bodies[0][name] for name in wanted} == wanted
    assert 99 in {bodies[0].get("max_tokens"), bodies[0].get("max_completion_tokens")}


def test_another_temperature_is_another_run(askance: Command, vlm: str, ads: list[str]) -> None:
    command = ["run", "verbalize", ads[0], "--vlm", vlm, *IN, "--out", "kept"]
    assert askance(*command).code == 0

    done = askance(*command, "--temperature", "1")

    assert done.code == 2
    assert "kept" in done.err


# --- what is printed -------------------------------------------------------------------------------------------------


def test_quiet_prints_nothing_while_all_goes_well(askance: Command, vlm: str, ads: list[str]) -> None:
    done = askance("run", "verbalize", "ads", "--vlm", vlm, "--context", "IN", "--quiet", "-o", "kept")

    assert (done.code, done.out, done.err) == (0, "", "")
    assert len(Path("kept/samples.jsonl").read_text(encoding="utf-8").splitlines()) == 3


def test_quiet_prints_what_went_wrong_and_the_lines_that_are_asked_for(
    askance: Command, vlm: str, ads: list[str]
) -> None:
    Path(ads[1]).write_text("this is no picture", encoding="utf-8")

    done = askance("run", "verbalize", "ads", "--vlm", vlm, "--quiet", *IN)

    assert (done.code, len(done.lines)) == (1, 3)
    assert done.err.startswith("\nWithout an answer:\n  ads/b.png")
    assert "images:" not in done.err


# --- a question of one's own -----------------------------------------------------------------------------------------


def test_a_question_of_ones_own(askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str]) -> None:
    command = ["run", "ask", "What is odd here?", ads[0], "--vlm", vlm, "-o", "asked", "--json"]
    done, again = askance(*command), askance(*command, "--replay")
    other = askance("run", "ask", "What colour?", ads[0], "--vlm", vlm, "--replay", "--json")

    assert (done.code, done.lines[0]["outcome"]) == (0, "answered")
    assert done.lines[0]["reply"]
    assert again.stable == done.stable
    assert other.lines[0]["outcome"] != "answered", "another question is another call"
    assert sum("What is odd here?" in json.dumps(body) for body in endpoint.bodies) == 1
    assert json.loads(Path("asked/run.json").read_text(encoding="utf-8"))["configuration"]["question"] == (
        "What is odd here?"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ads/a.png", "ads/b.png"], "'ads/a.png' stands in the place of the question."),
        (["ads"], "'ads' stands in the place of the question."),
        ([" ", "ads"], "' ' stands in the place of the question."),
        (["What is odd here?"], "No image is named to ask about: 'What is odd here?' is the question."),
    ],
)
def test_a_question_that_is_none(words: list[str], message: str, askance: Command, ads: list[str]) -> None:
    done = askance("run", "ask", *words, "--vlm", "openai:gpt-4o")

    assert done.code == 2
    assert message in done.err
    assert 'askance run ask "What is odd here?" photo.jpg' in done.err


# --- from the web ----------------------------------------------------------------------------------------------------

A, B, GONE = "https://example.org/x/a.png", "https://example.org/b.png", "https://example.org/gone.png"


def test_pictures_of_addresses_are_fetched_once_and_replayed_without_a_network(
    askance: Command, vlm: str, web: list[str], own_place: Path
) -> None:
    command = ["run", "verbalize", A, B, "--vlm", vlm, *IN]
    done = askance(*command, "--out", "kept")
    again = askance(*command, "--out", "kept")
    replayed = askance(*command, "--replay", "--html", "page.html")

    assert (done.code, images(done.lines)) == (0, [A, B])
    assert again.stable == done.stable
    assert replayed.stable == done.stable
    assert sorted(web) == sorted([A, B])
    assert len([*(own_place.parent / "store" / "pictures").glob("[0-9a-f]*")]) == 2
    assert "pictures not found" not in Path("page.html").read_text(encoding="utf-8")


def test_refresh_fetches_anew(askance: Command, vlm: str, web: list[str]) -> None:
    askance("run", "verbalize", A, "--vlm", vlm, *IN)
    draw(Path("web"), "b.png", "a.png")

    done = askance("run", "verbalize", A, "--vlm", vlm, *IN, "--mode", "refresh")

    assert (done.code, web) == (0, [A, A])
    assert done.lines[0]["sha256"] == Image.from_path("web/a.png").sha256


def test_one_that_cannot_be_fetched_does_not_stop_the_others(askance: Command, vlm: str, web: list[str]) -> None:
    command = ["run", "verbalize", A, GONE, "--vlm", vlm, *IN, "--out", "kept"]
    done = askance(*command)
    draw(Path("web"), "gone.png")
    again = askance(*command)

    assert (done.code, [line["outcome"] for line in done.lines]) == (1, ["answered", "skipped"])
    assert "cannot be fetched: the server answered 404." in " ".join(done.err.split())
    assert (again.code, [line["outcome"] for line in again.lines]) == (0, ["answered", "answered"])


def test_a_replay_says_which_pictures_are_not_kept(askance: Command, vlm: str, web: list[str]) -> None:
    done = askance("run", "verbalize", A, "--vlm", vlm, *IN, "--replay")

    assert (done.code, web) == (2, [])
    assert f"The picture '{A}' is not kept in" in done.err
    assert "Run it once without `--replay`" in done.err


def test_addresses_inside_the_network_are_refused(
    askance: Command, vlm: str, endpoint: FakeEndpoint, ads: list[str]
) -> None:
    done = askance("run", "verbalize", endpoint.url.replace("/v1", "/a.png"), "--vlm", vlm, *IN)

    assert done.code == 2
    assert "is not a public address" in done.err
    assert endpoint.requests == []


# --- from tables -----------------------------------------------------------------------------------------------------


def test_pictures_of_a_csv_file_with_their_options(askance: Command, vlm: str, ads: list[str]) -> None:
    lines = ["picture,choices", 'a.png,"[""tea"", ""bricks""]"', 'b.png,"[""fly"", ""swim"", ""run""]"', ""]
    Path("ads/table.csv").write_text("\n".join(lines), encoding="utf-8")

    columns = ["--column", "image=picture", "--column", "options=choices"]
    done = askance("run", "end-to-end", "ads/table.csv", *columns, "--vlm", vlm, "--json", "-o", "kept")

    assert (done.code, images(done.lines)) == (0, ads[:2])
    samples = json.loads(Path("kept/run.json").read_text(encoding="utf-8"))["configuration"]["samples"]
    assert samples == {"ads/a.png": ["tea", "bricks"], "ads/b.png": ["fly", "swim", "run"]}


def test_addresses_in_a_table_are_fetched(askance: Command, vlm: str, web: list[str]) -> None:
    Path("t.jsonl").write_text(f'{{"image": "{A}"}}\n{{"image": "{B}"}}\n', encoding="utf-8")

    done = askance("run", "verbalize", "t.jsonl", "--vlm", vlm, *IN, "--limit", "1")

    assert (images(done.lines), web) == ([A], [A])


def test_a_picture_outside_of_the_folder_may_be_typed(askance: Command, vlm: str, own_place: Path) -> None:
    (named,) = draw(own_place.parent / "elsewhere", "a.png")

    assert askance("run", "verbalize", named, "--vlm", vlm, *IN).code == 0


def _parquet(path: Path, pictures: Sequence[str]) -> None:
    import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]
    import pyarrow.parquet  # pyright: ignore[reportMissingTypeStubs, reportUnusedImport]

    arrow: Any = pa
    rows = [{"image": {"bytes": Path(name).read_bytes(), "path": Path(name).name}} for name in pictures]
    arrow.parquet.write_table(arrow.Table.from_pylist(rows), path)


def test_pictures_within_a_table_are_named_by_their_row(
    askance: Command, vlm: str, ads: list[str], own_place: Path
) -> None:
    _parquet(Path("ads.parquet"), ads)
    command = ["run", "verbalize", "ads.parquet", "--vlm", vlm, *IN, "--sample", "2"]

    done, replayed = askance(*command, "--out", "kept"), askance(*command, "--replay")
    again = askance(*command, "--out", "kept")

    assert (done.code, len(done.lines)) == (0, 2)
    known = {f"ads.parquet#{number}": Image.from_path(name).sha256 for number, name in enumerate(ads, start=1)}
    assert all(known[line["image"]] == line["sha256"] for line in done.lines)
    assert replayed.stable == again.stable == done.stable
    assert len([*(own_place.parent / "store" / "pictures").glob("[0-9a-f]*")]) == 2, "only what is read is kept"


TABLES: dict[str, tuple[str, list[str], str]] = {
    "no column image": ("path\na.png\n", [], "has no column 'image'.\n  → Say which column has the pictures: --column"),
    "no such column": (
        "path\na.png\n",
        ["--column", "image=file"],
        "'t.csv' has no column 'file'.\n  → It has 'path'.",
    ),
    "an empty cell": ("image,id\na.png,1\n,2\n", [], "'t.csv', line 3: there is no picture in 'image'."),
    "no pair": ("image\na.png\n", ["--column", "image"], "`--column image` names no column."),
    "an unknown name": ("image\na.png\n", ["--column", "target=x"], "`--column target=x` names no column."),
    "twice": ("image\na.png\n", ["--column", "image=a", "--column", "image=b"], "`--column image=…` stands twice."),
    "options that nobody takes": (
        "image\na.png\n",
        ["--column", "options=x"],
        "`askance run verbalize` takes no options.",
    ),
}


@pytest.mark.parametrize(("text", "more", "message"), TABLES.values(), ids=TABLES)
def test_a_table_that_cannot_be_read(
    text: str, more: list[str], message: str, askance: Command, own_place: Path
) -> None:
    Path("t.csv").write_text(text, encoding="utf-8")

    done = askance("run", "verbalize", "t.csv", "--vlm", "openai:gpt-4o", *more)

    assert (done.code, message in done.err) == (2, True), done.err


ROWS: dict[str, tuple[str, str]] = {
    "no list": ("image,options\na.png,tea\n", "'t.csv', line 2: this is no list of options: 'tea'."),
    "none": ("image,options\na.png,\n", "'t.csv', line 2: there are no options in 'options'."),
    "one": ('image,options\na.png,"[""tea""]"\n', "'t.csv', line 2: "),
    "different ones": (
        'image,options\na.png,"[""a"", ""b""]"\na.png,"[""a"", ""c""]"\n',
        "The picture 'a.png' is listed twice, with different options.",
    ),
}


@pytest.mark.parametrize(("text", "message"), ROWS.values(), ids=ROWS)
def test_options_of_a_table_that_cannot_be_chosen_from(
    text: str, message: str, askance: Command, own_place: Path
) -> None:
    Path("t.csv").write_text(text, encoding="utf-8")

    done = askance("run", "end-to-end", "t.csv", "--vlm", "openai:gpt-4o", "--column", "options=options")

    assert (done.code, message in done.err) == (2, True), done.err


def test_options_that_contradict_each_other(askance: Command, ads: list[str], options: str) -> None:
    base = ["run", "end-to-end", "ads", "--vlm", "openai:gpt-4o", "--options", options]
    for more, message in {
        ("--limit", "2", "--sample", "2"): "`--sample` and `--limit` both say how many images are read.",
        ("--sample-seed", "2"): "`--sample-seed` goes with `--sample`.",
        ("--column", "options=x"): "`--options` and `--column options=…` both bring the options.",
        ("--column", "image=x"): "`--column` goes with a table, and none is named.",
    }.items():
        done = askance(*base, *more)
        assert (done.code, message in done.err) == (2, True), done.err


# --- files of options ------------------------------------------------------------------------------------------------

LISTS: dict[str, tuple[str, str]] = {
    "a YAML list": ("o.yaml", "- tea\n- bricks\n"),
    "a YAML map": ("o.yml", "a.png: [tea, bricks]\nb: [fly, swim]\n"),
    "a JSON map": ("o.json", '{"a.png": ["tea", "bricks"]}'),
    "JSON lines": ("o.jsonl", '{"image": "a.png", "options": ["tea", "bricks"], "target": 1}\n'),
    "CSV": ("o.csv", 'image,options\na.png,"[""tea"", ""bricks""]"\n'),
}


@pytest.mark.parametrize(("name", "text"), LISTS.values(), ids=LISTS)
def test_files_of_options(
    name: str, text: str, askance: Command, vlm: str, endpoint: FakeEndpoint, ads: list[str]
) -> None:
    Path(name).write_text(text, encoding="utf-8")

    done = askance("run", "end-to-end", "ads/a.png", "--options", name, "--vlm", vlm, "--json", "-o", "kept")

    assert done.code == 0, done.err
    samples = json.loads(Path("kept/run.json").read_text(encoding="utf-8"))["configuration"]["samples"]
    assert samples == {"ads/a.png": ["tea", "bricks"]}


WRONG: dict[str, tuple[str, str, str]] = {
    "JSON lines by another name": (
        "o.txt",
        '{"image": "a.png", "options": ["tea", "bricks"]}\n{"image": "b.png", "options": ["a", "b"]}\n',
        "The options file 'o.txt' holds JSON lines, not an option a line.",
    ),
    "samples without options": (
        "o.jsonl",
        '{"image": "a.png", "target": "tea"}\n',
        "The options file 'o.jsonl' has no column 'options'.",
    ),
    "a row without": (
        "o.jsonl",
        '{"image": "a.png", "options": ["tea", "milk"]}\n{"image": "b.png"}\n',
        "'o.jsonl', line 2: it has not both `image` and `options`.",
    ),
    "other pictures": (
        "o.jsonl",
        '{"image": "z.png", "options": ["tea", "milk"]}\n',
        "The options file 'o.jsonl' has none for 'a.png'.",
    ),
    "yes and no": ("o.yaml", "- yes\n- no\n", 'YAML reads yes, no, on and off so; write them in quotes: - "yes"'),
    "yes and no in a map": ("o.yaml", "a.png: [yes, no]\n", "holds true or false where options should stand."),
    "a YAML text": ("o.yaml", "tea\n", "The options file 'o.yaml' holds neither a list nor a map."),
    "no YAML": ("o.yaml", "a: [\n", "The options file 'o.yaml', line 2: this is not YAML"),
}


@pytest.mark.parametrize(("name", "text", "message"), WRONG.values(), ids=WRONG)
def test_files_of_options_that_are_none(name: str, text: str, message: str, askance: Command, ads: list[str]) -> None:
    Path(name).write_text(text, encoding="utf-8")

    done = askance("run", "end-to-end", "ads/a.png", "--options", name, "--vlm", "openai:gpt-4o")

    assert (done.code, message in done.err) == (2, True), done.err


def test_a_plan_names_the_pictures_that_cannot_be_used(askance: Command, vlm: str, ads: list[str]) -> None:
    for name in ads:
        Path(name).write_text("this is no picture", encoding="utf-8")

    done = askance("run", "verbalize", "ads", "--vlm", vlm, "--plan")

    assert done.code == 1
    assert "· 3 images cannot be used: The picture 'ads/a.png' holds no picture" in done.out


# --- where the pictures of a table may lie ---------------------------------------------------------------------------


def outside(own_place: Path) -> Path:
    """A folder with a table, and beside that folder a picture and a file that is none."""
    draw(own_place / "table", "a.png")
    draw(own_place / "private", "b.png")
    Path("private/key.txt").write_text("SECRET-KEY of somebody", encoding="utf-8")
    Path("table/link.png").symlink_to(Path("../private/b.png"))
    return Path("table/t.jsonl")


LEADING_OUT: dict[str, Any] = {
    "beside": "../private/b.png",
    "a link": "link.png",
    "no picture": "../private/key.txt",
    "a map's bytes": {"bytes": "../private/b.png"},
    "a map": {"path": "../private/b.png", "bytes": None},
    "there and back": "../table/../private/b.png",
}


@pytest.mark.parametrize("name", [*LEADING_OUT, "absolute"])
def test_a_table_names_no_picture_outside_its_folder(
    name: str, askance: Command, endpoint: FakeEndpoint, vlm: str, own_place: Path
) -> None:
    table = outside(own_place)
    named = LEADING_OUT.get(name, str(own_place / "private" / "b.png"))
    table.write_text(json.dumps({"image": "a.png"}) + "\n" + json.dumps({"image": named}) + "\n", encoding="utf-8")

    done = askance("run", "verbalize", str(table), "--vlm", vlm, *IN)

    assert done.code == 2
    assert "'table/t.jsonl', line 2: `image` leads out of the folder of its file: " in done.err
    assert "--allow-folder" in done.err
    assert "SECRET" not in done.err + done.out
    assert not endpoint.requests


def test_another_folder_may_be_allowed(askance: Command, vlm: str, own_place: Path) -> None:
    table = outside(own_place)
    table.write_text(json.dumps({"image": "../private/b.png"}), encoding="utf-8")

    done = askance("run", "verbalize", str(table), "--allow-folder", "private", "--vlm", vlm, *IN)
    other = askance("run", "verbalize", str(table), "--allow-folder", "table", "--vlm", vlm, *IN)

    assert (done.code, images(done.lines)) == (0, ["table/../private/b.png"])
    assert other.code == 2


def test_a_folder_is_allowed_for_a_table_alone(askance: Command, vlm: str, ads: list[str]) -> None:
    done = askance("run", "verbalize", "ads", "--allow-folder", "ads", "--vlm", vlm)
    gone = askance("run", "verbalize", "ads", "--allow-folder", "nowhere", "--vlm", vlm)

    assert "`--allow-folder` goes with a table, and none is named." in done.err
    assert "dir 'nowhere' does not exist" in gone.err


def test_what_is_no_picture_is_not_quoted(askance: Command, vlm: str, own_place: Path) -> None:
    outside(own_place)
    Path("table/key.png").write_text("SECRET-KEY of somebody", encoding="utf-8")

    done = askance("run", "verbalize", "table/key.png", "--vlm", vlm, *IN)

    assert "holds no picture that is known here" in done.err
    assert "SECRET" not in done.err + done.out


QUESTIONS = "image,asked\na.png,What is it?\na.png,Which colour?\nb.png,What is it?\n"


def test_a_table_may_bring_a_question_for_each_picture(
    askance: Command, vlm: str, endpoint: FakeEndpoint, own_place: Path
) -> None:
    draw(own_place, "a.png", "b.png")
    Path("q.csv").write_text(QUESTIONS, encoding="utf-8")
    command = ["run", "ask", "q.csv", "--column", "question=asked", "--vlm", vlm, "--json", "-o", "asked"]

    done = askance(*command)

    assert (done.code, images(done.lines)) == (0, ["a.png", "a.png#2", "b.png"])
    texts = [json.dumps(body) for body in endpoint.bodies]
    assert [sum(question in text for text in texts) for question in ("What is it?", "Which colour?")] == [2, 1]
    run = Run.open("asked")
    assert [each.sample.inputs["question"] for each in run.answers] == ["What is it?", "Which colour?", "What is it?"]
    assert askance(*command, "--replay").lines == done.lines


def test_a_question_of_a_table_goes_with_a_chain_that_asks_it(askance: Command, vlm: str, own_place: Path) -> None:
    draw(own_place, "a.png", "b.png")
    Path("q.csv").write_text(QUESTIONS.replace("Which colour?", " "), encoding="utf-8")

    blank = askance("run", "ask", "q.csv", "--column", "question=asked", "--vlm", vlm)
    other = askance("run", "verbalize", "q.csv", "--column", "question=asked", "--vlm", vlm)

    assert (blank.code, "line 3: there is no question in 'asked'" in blank.err) == (2, True)
    assert (other.code, "`askance run verbalize` asks no question of yours" in other.err) == (2, True)
