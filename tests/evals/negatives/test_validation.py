from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from askance.errors import BadData, UsageError
from askance.evals.negatives import Sheet, draw_sheet, read_key, read_ratings, validate, validation_text, write_sheet
from askance.images import Image
from tests import label_studio
from tests.evals.negatives.sets import hostile_set, option_set, symmetrical
from tests.scripted import PICTURE

HOSTILE = '<script>alert("x")</script> & </legend>\u202e'


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "sheet"


def pictured(key: str) -> Image:
    return Image.from_path(PICTURE)


class Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.links: list[str] = []
        self.values: set[str] = set()
        self.legends: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag
        if tag == "legend":
            self.legends.append("")
        found = dict(attrs)
        self.links += [value or "" for name, value in attrs if name in {"src", "href", "action"}]
        if tag == "input" and found.get("type") == "radio":
            self.values.add(found["value"] or "")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "legend":
            self.legends[-1] += data


def test_a_sheet_shows_every_option_and_says_nothing_of_it(out: Path) -> None:
    sheet = draw_sheet(symmetrical(), count=5, seed=1)
    assert write_sheet(sheet, out, images=pictured) == ()
    text = (out / "sheet.html").read_text("utf-8")
    seen = Seen(text)

    assert sorted(seen.legends) == sorted(item.text for item in sheet.items)
    assert seen.values == {"right", "wrong", "unsure"}
    assert seen.tags.count("img") == 5
    assert [link[:23] for link in seen.links] == ["data:image/jpeg;base64,"] * 5
    assert not re.search(
        r"https?:|adjective|negative|\btrue\b", re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.DOTALL)
    )
    assert "negative" not in (out / "sheet.csv").read_text("utf-8")


def test_what_stands_first_is_drawn() -> None:
    sheet = draw_sheet(symmetrical(), count=36)
    first = [item.true for item in sheet.items if item.id.endswith("s01")]

    assert 9 < sum(first) < 27
    assert [item.id for item in sheet.items][:4] == ["p001s01", "p001s02", "p002s01", "p002s02"]


def test_the_seed_decides_and_the_order_of_the_file_does_not() -> None:
    sets = symmetrical()

    assert draw_sheet(sets, count=9, seed=4) == draw_sheet(sets[::-1], count=9, seed=4)
    assert draw_sheet(sets, count=9, seed=4) != draw_sheet(sets, count=9, seed=5)
    assert len(draw_sheet(sets, count=100).keys) == 36


def test_hostile_words_are_words(out: Path) -> None:
    sheet = draw_sheet(hostile_set(HOSTILE))
    write_sheet(sheet, out, images=pictured, question=HOSTILE)
    text = (out / "sheet.html").read_text("utf-8")

    assert Seen(text).tags.count("script") == 1
    assert HOSTILE.replace("\u202e", "\ufffd") in Seen(text).legends
    assert "alert(" not in re.sub(r"&lt;script&gt;alert\(", "", text)
    assert "Content-Security-Policy" in text


def test_a_spreadsheet_computes_nothing(out: Path) -> None:
    write_sheet(draw_sheet(hostile_set('=HYPERLINK("x")')), out, images=pictured)
    with (out / "sheet.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]

    assert {row["statement"] for row in rows} == {'\'=HYPERLINK("x")', "I should drink tea"}
    assert {row["answer"] for row in rows} == {""}


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_script_of_the_page_is_sound(out: Path) -> None:
    write_sheet(draw_sheet(symmetrical(), count=1), out, images=pictured)
    script = re.search(r"<script>(.*)</script>", (out / "sheet.html").read_text("utf-8"), re.DOTALL)
    assert script is not None
    file = out / "page.js"
    file.write_text(script[1], "utf-8")

    assert subprocess.run(["node", "--check", file], check=False, capture_output=True).returncode == 0


def test_images_that_cannot_be_shown_are_counted(out: Path, tmp_path: Path) -> None:
    sheet = draw_sheet(symmetrical(), count=3)
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    found: dict[str, Any] = {sheet.keys[0]: None, sheet.keys[1]: Image.from_path(broken)}

    assert write_sheet(sheet, out, images=lambda key: found.get(key, pictured(key))) == sheet.keys[:2]
    assert (out / "sheet.html").read_text("utf-8").count("This image could not be read") == 2
    with pytest.raises(BadData, match="None of the 3 images of the sheet could be read"):
        write_sheet(sheet, out, images=lambda _: None)


def test_the_key_holds_the_truth(out: Path) -> None:
    sheet = draw_sheet(symmetrical(), count=5, seed=2)
    write_sheet(sheet, out, images=pictured)

    assert read_key(out / "key.json") == sheet


def changed(form: Any) -> Any:
    return {**form, "items": [{**form["items"][0], "text": "other"}, *form["items"][1:]]}


KEYS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "changed": (changed, "was changed"),
    "cut": (lambda form: {**form, "items": form["items"][:-1]}, "was changed"),
    "other": (lambda form: {"items": form["items"]}, "is no key of a sheet"),
    "no truth": (
        lambda form: {**form, "items": [{**each, "true": "yes"} for each in form["items"]]},
        "is no key of a sheet",
    ),
}


@pytest.mark.parametrize(("change", "message"), KEYS.values(), ids=KEYS)
def test_a_key_that_was_changed_is_refused(out: Path, change: Callable[[Any], Any], message: str) -> None:
    write_sheet(draw_sheet(symmetrical(), count=5), out, images=pictured)
    file = out / "key.json"
    file.write_text(json.dumps(change(json.loads(file.read_text("utf-8")))), "utf-8")

    with pytest.raises(BadData, match=message):
        read_key(file)


def test_nothing_to_sample_is_said() -> None:
    with pytest.raises(UsageError, match="nothing to sample"):
        draw_sheet([])


# --- answers read back ---


def fill(path: Path, sheet: Sheet, answer: Callable[[Any, int], str]) -> Path:
    """A filled sheet; `answer` gives that of an item and its place."""
    rows = [["sheet", "item", "answer"]]
    rows += [[sheet.id, item.id, answer(item, place)] for place, item in enumerate(sheet.items)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(",".join(row) + "\n" for row in rows), "utf-8")
    return path


def honest(item: Any, place: int) -> str:
    return "right" if item.true else "wrong"


def test_honest_raters_find_true_negatives_and_agree(out: Path) -> None:
    sheet = draw_sheet(symmetrical(), count=20)
    raters = read_ratings([fill(out / f"{name}.csv", sheet, honest) for name in "ab"], sheet)
    found = validate(sheet, raters)

    assert (found.items, found.negatives, found.unanswered, found.undecided) == (40, 20, 0, 0)
    assert (found.true_negatives.value, found.true_negatives.n, found.true_right.value) == (1.0, 20, 1.0)
    assert {each.measure: each.value for each in found.agreement} == {
        "pairwise agreement": 1.0,
        "krippendorff alpha": 1.0,
        "cohen kappa": 1.0,
    }
    assert [rater.name for rater in found.raters] == ["a", "b"]
    assert found.called_right == ()


def test_the_majority_decides_and_a_tie_is_no_true_negative(out: Path) -> None:
    sheet = draw_sheet(symmetrical(), count=10)
    wrong = [item.id for item in sheet.items if not item.true]

    def yes_to(*places: int) -> Callable[[Any, int], str]:
        return lambda item, _: "Yes" if item.id in {wrong[place] for place in places} else honest(item, 0)

    files = [
        fill(out / "a.csv", sheet, yes_to(0, 1)),
        fill(out / "b.csv", sheet, yes_to(0)),
        fill(
            out / "c.csv",
            sheet,
            lambda item, _: "" if item.id == wrong[2] else "?" if item.id == wrong[1] else honest(item, 0),
        ),
    ]
    found = validate(sheet, read_ratings(files, sheet))

    assert found.true_negatives.value == pytest.approx(8 / 10)
    assert (found.undecided, found.if_decided) == (1, pytest.approx(9 / 10))
    assert [item.id for item in found.called_right] == [wrong[0]]
    assert found.by_kind["adjective"] == found.true_negatives
    assert len(found.agreement) == 2
    assert "True negatives: 80.00%" in validation_text(found)
    assert json.loads(json.dumps(found.form()))["undecided"] == 1


def test_what_nobody_answered_is_in_no_figure(out: Path) -> None:
    sheet = draw_sheet(symmetrical(), count=10)
    wrong = [item.id for item in sheet.items if not item.true]
    file = fill(out / "a.csv", sheet, lambda item, _: "" if item.id in wrong[:4] else honest(item, 0))
    found = validate(sheet, read_ratings([file], sheet))

    assert (found.unanswered, found.true_negatives.n, found.true_negatives.value) == (4, 6, 1.0)
    assert found.agreement == ()


BAD: dict[str, tuple[str, str]] = {
    "another sheet": ("sheet,item,answer\nabc,p001s01,right\n", "this is of the sheet 'abc', not of"),
    "unknown item": ("sheet,item,answer\n{id},p999s01,right\n", "the item 'p999s01' is not on the sheet"),
    "item twice": ("sheet,item,answer\n{id},p001s01,right\n{id},p001s01,wrong\n", "stands there twice"),
    "no such answer": ("sheet,item,answer\n{id},p001s01,maybe\n", "'maybe' is no answer"),
    "no answers": ("sheet,item,answer\n{id},p001s01,\n", "has no answers"),
    "no column": ("sheet,item\n{id},p001s01\n", "has no column 'answer'"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_sheet_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    sheet = draw_sheet(symmetrical(), count=2)
    file = tmp_path / "a.csv"
    file.write_text(text.format(id=sheet.id), "utf-8")

    with pytest.raises(BadData, match=re.escape(message)):
        read_ratings([file], sheet)


# --- Label Studio ---


def annotator(sheet: Sheet, answer: Callable[[Any, int], str]) -> label_studio.Answer:
    """Answers each task as `fill` fills a table; a task without any answer is skipped."""
    words = {item.id: answer(item, place) for place, item in enumerate(sheet.items)}

    def answers(task: Mapping[str, str]) -> Mapping[str, str] | None:
        places = (
            item.removeprefix(task["page"]) for item, word in words.items() if item.startswith(task["page"]) and word
        )
        return {f"answer_{place}": words[task["page"] + place] for place in places} or None

    return answers


def uneven() -> list[Any]:
    """Options of which one image has more than the other, with whatever XML and Label Studio could take for theirs."""
    return [
        option_set(
            "1.jpg", ["I should drink $tea"], [("<Choice value='Right'/> & $image", "adjective"), ("{{idx}} ]]>", None)]
        ),
        option_set("2.jpg", ['I should drink "it"'], [(HOSTILE, "adjective")]),
    ]


@pytest.mark.parametrize("shorten", [False, True], ids=["JSON", "JSON-MIN"])
def test_an_export_of_label_studio_is_read_as_tables_filled_by_hand(out: Path, *, shorten: bool) -> None:
    sheet = draw_sheet([*symmetrical(8), *uneven()])
    write_sheet(sheet, out, images=pictured, to="label-studio")

    def partly(item: Any, place: int) -> str:
        return "" if item.key == sheet.keys[1] or place == 7 else "Cannot tell" if place % 5 == 0 else honest(item, 0)

    ways: dict[str, Callable[[Any, int], str]] = {
        "3": honest,
        "12": lambda item, place: "Right",
        "5": partly,
        "8": lambda item, place: "",
    }
    tables = [fill(out / f"{name}.csv", sheet, way) for name, way in ways.items() if name != "8"]
    export = label_studio.exported(out, {int(name): annotator(sheet, way) for name, way in ways.items()})
    file = label_studio.write(out / "export.json", label_studio.shortened(export) if shorten else export)

    found = {each.name.removeprefix("export:"): each.answers for each in read_ratings([file], sheet)}
    assert found == {each.name: each.answers for each in read_ratings(tables, sheet)}
    assert 0 < len(found["5"]) < len(sheet.items)
    assert read_key(out / "key.json") == sheet


def test_a_task_holds_the_statements_of_its_image_as_they_are(out: Path) -> None:
    sheet = draw_sheet(uneven())
    write_sheet(sheet, out, images=lambda key: None if key == "2.jpg" else pictured(key), to="label-studio")
    tasks = {each["data"]["page"]: each["data"] for each in json.loads((out / "label-studio.json").read_text("utf-8"))}

    shown = {f"{page}{place}": text for page, task in tasks.items() for place, text in task.items() if place[0] == "s"}
    empty = [
        text for item, text in shown.items() if item[4:] != "sheet" and item not in {each.id for each in sheet.items}
    ]
    assert {item: text for item, text in shown.items() if text not in empty and item[4:] != "sheet"} == {
        item.id: item.text.replace("\u202e", "\ufffd") for item in sheet.items
    }
    assert empty == ["(There is no statement here: leave it empty.)"]
    assert sorted(task["image"][:23] for task in tasks.values()) == ["", "data:image/jpeg;base64,"]
    assert {task["question"] for task in tasks.values()} == {
        "Is the statement right for the image?",
        "Is the statement right for the image? (This image could not be read.)",
    }
    assert not (out / "sheet.html").exists()
    assert "true" not in (out / "label-studio.json").read_text("utf-8")


def test_an_answer_to_a_place_without_a_statement_is_none(out: Path) -> None:
    sheet = draw_sheet(uneven())
    write_sheet(sheet, out, images=pictured, to="label-studio")
    every = {f"answer_s{place:02}": "Wrong" for place in (1, 2, 3)}
    file = label_studio.write(out / "export.json", label_studio.exported(out, {1: lambda task: every}))

    assert read_ratings([file], sheet)[0].answers == {item.id: "wrong" for item in sheet.items}


def other_sheet(export: Any) -> None:
    export[0]["data"]["sheet"] = "abc"


def other_page(export: Any) -> None:
    export[0]["data"]["page"] = "p077"


def other_choice(export: Any) -> None:
    export[0]["annotations"][0]["result"][0]["value"]["choices"] = ["Funny"]


def skipped(export: Any) -> None:
    for each in export:
        each["annotations"][0].update(was_cancelled=True, result=[])


EXPORTS: dict[str, tuple[Callable[[Any], None], str]] = {
    "another sheet": (other_sheet, "Annotator '3', entry 1 of 'x.json': this is of the sheet 'abc', not of"),
    "unknown image": (other_page, "Annotator '3', entry 1 of 'x.json': the item 'p077s01' is not on the sheet."),
    "unknown choice": (other_choice, "Annotator '3', entry 1 of 'x.json': 'Funny' is no answer. Answers: right"),
    "all skipped": (skipped, "The file 'x.json' has no answers."),
    "no export": (lambda export: export.clear(), "The file 'x.json' is no export of Label Studio with annotations."),
}


@pytest.mark.parametrize(("spoil", "message"), EXPORTS.values(), ids=EXPORTS)
def test_an_export_that_cannot_be_read_is_named_with_its_entry(
    spoil: Callable[[Any], None], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sheet = draw_sheet(symmetrical(), count=2)
    write_sheet(sheet, tmp_path, images=pictured, to="label-studio")
    export = label_studio.exported(tmp_path, {3: annotator(sheet, honest)})
    spoil(export)

    with pytest.raises(BadData, match=re.escape(message)):
        read_ratings([label_studio.write(Path("x.json"), export)], sheet)
