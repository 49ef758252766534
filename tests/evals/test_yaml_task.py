"""Tasks with no Python: what their files may say, what is refused, and how they are scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.data_table import DataTable, open_data_table
from askance.errors import BadData, UsageError
from askance.evals import Figure, Run, evaluate, find_task
from askance.evals.yaml_task import read_task, task_from_form
from askance.models import Model
from askance.prompts import overlay_prompts
from tests.cli.command import draw
from tests.example_prompts import with_example
from tests.scripted import model_of, scripted
from tests.test_data_table import stand_in

POSTERS = """\
name: posters
summary: Which claim a poster argues for.
data: posters.jsonl
chain: end-to-end
score: choice
"""
OPTIONS = ["I should drink tea", "I should buy bricks", "I should sleep"]


def write(text: str, *rows: Mapping[str, Any] | str, name: str = "posters") -> Path:
    """A task file, and its rows beside it."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    Path(f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    path = Path(f"{name}.yaml")
    path.write_text(text, encoding="utf-8")
    return path


def answering(**answers: Any) -> Model:
    return model_of(scripted(**answers))


def in_turn(*answers: Any) -> Callable[[ChatRequest], Any]:
    """Gives the answers one after the other."""
    left = iter(answers)
    return lambda _: {"answer": next(left)}


def value_of(run: Run, metric: str) -> float | None:
    return run.figure(metric).value


@pytest.fixture(autouse=True)
def pictures(own_place: Path) -> None:
    draw(own_place, "a.png", "b.png", "c.png")


# --- data ---


def test_a_row_becomes_a_sample() -> None:
    path = write(
        POSTERS,
        {
            "id": "one",
            "image": "a.png",
            "options": OPTIONS,
            "target": ["I should sleep", 1],
            "group": "ad",
            "tags": {"kind": "TR1"},
            "narration": "A poster.",
        },
    )

    (sample,) = find_task(str(path))(vlm=answering()).samples()

    assert sample.form() | {"image": None} == {
        "id": "one",
        "group": "ad",
        "image": None,
        "inputs": {"options": OPTIONS, "narration": "A poster."},
        "target": [1, 3],
        "tags": {"kind": "TR1"},
    }
    assert sample.image is not None
    assert (sample.image.name, sample.image.path) == ("a.png", Path("a.png"))


SHOWN = {"values": {"options": ["I should run", "I should eat"]}, "answer": 2, "image": "b.png"}


def test_a_row_may_bring_examples(tmp_path: Path) -> None:
    row = {"image": "a.png", "options": OPTIONS, "target": 1, "examples": [SHOWN]}
    cell = json.dumps([SHOWN]).replace('"', '""')
    Path("posters.csv").write_text(f'image,options,target,examples\na.png,"{CELL}",1,"{cell}"\n', encoding="utf-8")
    of_lines = find_task(str(write(POSTERS, row)))(vlm=answering())
    of_table = find_task(str(write(POSTERS.replace("posters.jsonl", "posters.csv"), name="table")))(vlm=answering())

    for task in (of_lines, of_table):
        (sample,) = task.samples()
        (example,) = sample.inputs["examples"]
        assert (example.values["options"], example.answer) == (("I should run", "I should eat"), 2)
        assert (example.image.name, example.image.path) == ("b.png", Path("b.png"))
    script = scripted(end_to_end={"answers": [1]})
    with overlay_prompts(with_example(tmp_path / "prompts", "end_to_end_multi").overlays[0]):
        run = evaluate(find_task(str(write(POSTERS, row)))(vlm=model_of(script)), out="run")
    assert value_of(run, "accuracy") == 1
    assert [message.role for message in script.requests[-1].messages] == ["system", "user", "assistant", "user"]


CELL = json.dumps(OPTIONS).replace('"', '""')


NO_EXAMPLES: dict[str, Any] = {
    "posters.jsonl.*line 1: 'x' cannot be shown as an example: it is no list": "x",
    "line 1: 3 cannot be shown as an example": [3],
    "line 1: .*cannot be shown as an example: more": [{"values": {}, "more": 1}],
    "line 1: `image` leads out of the folder": [{**SHOWN, "image": "../b.png"}],
    "line 1: `image` is an address": [{**SHOWN, "image": "https://a.example/b.png"}],
    "line 1: the `image` of an example is": [{**SHOWN, "image": {"name": "b.png", "sha256": "0" * 64}}],
}


@pytest.mark.parametrize(("message", "examples"), NO_EXAMPLES.items())
def test_examples_of_a_row_that_are_none_are_told(message: str, examples: Any) -> None:
    path = write(POSTERS, {"image": "a.png", "options": OPTIONS, "target": 1, "examples": examples})

    with pytest.raises(BadData, match=message) as caught:
        find_task(str(path))(vlm=answering()).samples()
    assert caught.value.hint


def test_examples_that_nobody_would_show_are_refused() -> None:
    text = "name: t\ndata: posters.jsonl\nchain: verbalize\nscore: none\n"
    path = write(text, {"image": "a.png", "examples": [SHOWN]})

    with pytest.raises(BadData, match="the chain `verbalize` shows no `examples`"):
        find_task(str(path))(vlm=answering()).samples()


def test_options_may_stand_once_for_all_rows() -> None:
    path = write(
        POSTERS + f"options: {OPTIONS}\n", {"image": "a.png", "target": 2}, "", {"image": "b.png", "target": 1}
    )

    samples = read_task(path)(vlm=answering()).samples()

    assert [(sample.id, sample.inputs["options"], sample.target) for sample in samples] == [
        ("a.png", OPTIONS, [2]),
        ("b.png", OPTIONS, [1]),
    ]


def test_a_folder_of_images_gives_outcomes_alone() -> None:
    path = write("name: said\nchain: verbalize\ncontext: IN\nscore: none\n")
    run = evaluate(read_task(path)(data=Path(), vlm=answering()), out="run")

    assert (run.totals["outcomes"], value_of(run, "share answered")) == ({"answered": 3}, 1.0)
    assert run.notes == ("The data name nothing that is right, so that only outcomes are counted.",)


BAD_ROWS: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", r"'posters.jsonl', line 1 is no JSON \(Expecting property name"),
    "no number": ('{"image": "a.png", "target": NaN}', r"'posters.jsonl', line 1 holds NaN, which is no JSON"),
    "no object": ("[1]", r"'posters.jsonl', line 1 is no JSON object"),
    "unknown key": ({"imgae": "a.png"}, r"line 1: `imgae` is not known\. A row has id, image, options, target"),
    "outside": ({"image": "../secret.png", "options": OPTIONS, "target": 1}, r"`image` leads out of the folder"),
    "absolute": ({"image": "/etc/passwd", "options": OPTIONS, "target": 1}, r"`image` leads out of the folder"),
    "no picture": ({"id": "x", "options": OPTIONS, "target": 1}, r"line 1 names no `image`"),
    "no options": ({"image": "a.png", "target": 1}, r"line 1 has no `options` to choose from"),
    "one option": ({"image": "a.png", "options": ["x"], "target": 1}, r"line 1: There is one option to choose from"),
    "no target": ({"image": "a.png", "options": OPTIONS}, r"line 1 names no `target`"),
    "no true option": ({"image": "a.png", "options": OPTIONS, "target": []}, r"line 1 names no `target`"),
    "beyond": ({"image": "a.png", "options": OPTIONS, "target": 4}, r"`target` 4 is none of the 3 options"),
    "unknown text": (
        {"image": "a.png", "options": OPTIONS, "target": "fly"},
        r"`target` 'fly' is none of the 3 options",
    ),
    "odd target": ({"image": "a.png", "options": OPTIONS, "target": [[1]]}, r"`target` \[1\] is none of the 3 options"),
    "true": ({"image": "a.png", "options": OPTIONS, "target": True}, r"`target` True is none of the 3 options"),
    "tags": ({"image": "a.png", "options": OPTIONS, "target": 1, "tags": 3}, r"line 1: `tags` is 3\. It is a map"),
    "id": ({"id": 7, "image": "a.png", "options": OPTIONS, "target": 1}, r"line 1: `id` is 7\. It is a text"),
    "statement": (
        {"image": "a.png", "options": OPTIONS, "target": 1, "statement": "odd"},
        r"line 1: 'odd' is no statement of atypicality",
    ),
}


@pytest.mark.parametrize(("row", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_row_that_is_none_is_told_with_its_place(row: Any, message: str) -> None:
    definition = read_task(write(POSTERS, row))

    with pytest.raises(BadData, match=message):
        definition(vlm=answering()).evaluation()


TABLES: dict[str, tuple[str, str, str]] = {
    "CSV, under their own names": (
        "ads.csv",
        'id,image,options,target,split\none,a.png,"[""tea"",""sleep""]",2,test\ntwo,b.png,"[""tea"",""sleep""]",tea,test\n',
        "",
    ),
    "CSV, under other names": (
        "ads.csv",
        "number,path,a,b,answer,group\none,a.png,tea,sleep,1,x\ntwo,b.png,tea,sleep,0,x\n",
        "columns: {id: number, image: path, options: [a, b], target: answer}\nfirst_option: 0\n",
    ),
    "tabs": (
        "ads.tsv",
        "id\timage\ta\tb\ttarget\none\ta.png\ttea\tsleep\tsleep\ntwo\tb.png\ttea\tsleep\ttea\n",
        "columns: {options: [a, b]}\n",
    ),
    "JSON lines, under other names": (
        "ads.jsonl",
        '{"image": "a.png", "nr": "one", "answer": 2, "more": 1}\n{"image": "b.png", "nr": "two", "answer": 1}\n',
        "columns: {id: nr, target: answer}\noptions: [tea, sleep]\n",
    ),
    "JSON lines of another ending": (
        "ads.txt",
        '{"image": "a.png", "id": "one", "target": 2}\n{"image": "b.png", "id": "two", "target": 1}\n',
        "options: [tea, sleep]\n",
    ),
}


@pytest.mark.parametrize(("name", "text", "keys"), TABLES.values(), ids=TABLES)
def test_rows_may_lie_in_a_table(name: str, text: str, keys: str) -> None:
    Path(name).write_text(text, encoding="utf-8")
    path = write(POSTERS.replace("posters.jsonl", name) + keys)

    samples = read_task(path)(vlm=answering()).samples()

    assert [
        (sample.id, sample.image and sample.image.path, sample.inputs["options"], sample.target) for sample in samples
    ] == [("one", Path("a.png"), ["tea", "sleep"], [2]), ("two", Path("b.png"), ["tea", "sleep"], [1])]


def test_pictures_may_stand_in_a_table_themselves() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    data = [Path(name).read_bytes() for name in ("a.png", "b.png")]
    rows = {
        "picture": [{"bytes": data[0], "path": "where/a.png"}, {"bytes": data[1], "path": None}],
        "odd": [True, False],
        "kind": ["TR1", "OR"],
        "label": [7, 8],
    }
    parquet.write_table(pyarrow.table(rows), "weird.parquet")
    path = write(
        "name: weird\ndata: weird.parquet\nchain: ask\nquestion: Which?\nscore: exact\n"
        "columns: {image: picture, target: label, tags: [odd, kind]}\n"
    )

    first, second = read_task(path)(vlm=answering()).samples()

    assert [(each.id, each.target, each.tags) for each in (first, second)] == [
        ("1", ["7"], {"odd": True, "kind": "TR1"}),
        ("2", ["8"], {"odd": False, "kind": "OR"}),
    ]
    assert first.image is not None
    assert second.image is not None
    assert (first.image.name, first.image.data, second.image.data) == ("a.png", *data)


BAD_TABLES: dict[str, tuple[str, str, str]] = {
    "no such column": (
        "columns: {image: pth}\n",
        "image,target\na.png,1\n",
        r"'t.csv' has no column 'pth'. It has 'image'",
    ),
    "no such key": (
        "columns: {imgae: image}\n",
        "image\na.png\n",
        "`columns` names `imgae`, which a row does not have",
    ),
    "outside": ("", "image,target\n../secret.png,1\n", "`image` leads out of the folder"),
    "address": ("", "image,target\nhttps://x.org/a.png,1\n", "line 2: `image` is an address: 'https://x.org/a.png'"),
    "from 0": (
        "",
        "image,target\na.png,0\n",
        "`target` '0' is none of the 3 options.*`first_option: 0` in the task's file",
    ),
    "beyond": ("first_option: 0\n", "image,target\na.png,3\n", "`target` '3' is none of the 3 options.*counted from 0"),
}


@pytest.mark.parametrize(("keys", "text", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_table_that_does_not_fit_is_told(keys: str, text: str, message: str) -> None:
    Path("t.csv").write_text(text, encoding="utf-8")
    path = write(POSTERS.replace("posters.jsonl", "t.csv") + keys + f"options: {OPTIONS}\n")

    with pytest.raises(BadData, match=message):
        read_task(path)(vlm=answering()).samples()


def test_a_column_of_no_row_is_told() -> None:
    path = write(POSTERS + f"columns: {{target: right}}\noptions: {OPTIONS}\n", {"image": "a.png", "target": 1})

    with pytest.raises(BadData, match=r"'posters.jsonl' has 'right' in no row\. Its first row has 'image', 'target'"):
        read_task(path)(vlm=answering()).samples()


def test_a_data_set_of_the_hub_is_opened_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, bool, bool]] = []

    def table(source: str, *, offline: bool, stream: bool) -> DataTable:
        opened.append((source, offline, stream))
        Path("hub.csv").write_text("image,target\na.png,1\n", encoding="utf-8")
        return open_data_table("hub.csv")

    monkeypatch.setattr("askance.evals.yaml_rows.open_data_table", table)
    path = write(POSTERS.replace("posters.jsonl", "hf:owner/ads?split=test") + f"options: {OPTIONS}\n")
    given = read_task(write(POSTERS + f"options: {OPTIONS}\n", name="other"))

    for task in (read_task(path)(vlm=answering()), given(data=Path("hf:owner/more"), vlm=answering())):
        assert [sample.target for sample in task.samples()] == [[1]]
    assert opened == [("hf:owner/ads?split=test", False, False), ("hf:owner/more", False, False)]


def test_of_a_data_set_whose_first_samples_are_run_no_more_rows_are_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hub = stand_in(monkeypatch, tmp_path / "cache")
    data = Path("a.png").read_bytes()
    hub.rows = [
        {"id": f"{number:03}", "image": data, "target": 1, "narration": f"The {number}th."} for number in range(200)
    ]
    task = read_task(write(POSTERS.replace("posters.jsonl", "hf:a/large?split=test") + f"options: {OPTIONS}\n"))

    first, whole = task(vlm=answering()).evaluation_of_first(20), task(vlm=answering()).evaluation()

    assert hub.asked[:2] == [64, "prepared"], "64 rows are fetched, and all of them where no limit is set"
    assert [each.form() for each in first.samples] == [each.form() for each in whole.samples[:20]]
    assert first.notes == ("The first 20 samples.",)
    assert task(vlm=answering()).evaluation_of_first(300).notes == whole.notes == ()


def test_a_limit_below_one_is_refused_for_a_data_set_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path / "cache")
    path = write(POSTERS.replace("posters.jsonl", "hf:a/large?split=test") + f"options: {OPTIONS}\n")

    with pytest.raises(UsageError, match="A limit of 0 leaves no sample"):
        read_task(path)(vlm=answering()).evaluation_of_first(0)


def test_too_many_bytes_of_pictures_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    data = Path("a.png").read_bytes()
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"image": [data, data]}), "two.parquet")
    monkeypatch.setattr("askance.evals.yaml_rows.MOST_HELD", 2 * len(data) - 1)
    path = write("name: two\ndata: two.parquet\nchain: verbalize\nscore: none\n")

    with pytest.raises(BadData, match=r"row 2: with this one there are more than [\d,]+ bytes of pictures"):
        read_task(path)(vlm=answering()).samples()


def test_a_folder_may_be_allowed_by_whoever_runs_the_task_and_not_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(Path("a.png").read_bytes())
    row = {"image": str(tmp_path / "secret.png"), "options": OPTIONS, "target": 1}
    task = read_task(write(POSTERS, row))

    (sample,) = task(vlm=answering(), allow_folders=(tmp_path,)).samples()

    assert sample.image is not None
    assert sample.image.path == tmp_path / "secret.png"
    with pytest.raises(BadData, match=r"leads out of the folder .*--allow-folder"):
        task(vlm=answering(), allow_folders=(tmp_path / "other",)).samples()
    with pytest.raises(UsageError, match="`allow_folders` is not known"):
        read_task(write(f"{POSTERS}allow_folders: [/]\n"))
    assert "allow_folders" not in task.takes(), "nor by a grid"
    assert "allow_folders" not in task(vlm=answering(), allow_folders=(tmp_path,)).kept()


@pytest.mark.parametrize("more", ["", "?split=train"])
def test_a_data_set_of_a_task_lies_in_its_folder(more: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = write(POSTERS.replace("posters.jsonl", f"hf:{tmp_path / 'elsewhere'}{more}"))

    with pytest.raises(UsageError, match="`data` leads out of the folder of its file"):
        read_task(path)(vlm=answering()).samples()


def test_a_link_out_of_the_folder_is_no_way_out(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(Path("a.png").read_bytes())
    Path("mine.png").symlink_to(tmp_path / "secret.png")

    with pytest.raises(BadData, match="leads out of the folder"):
        read_task(write(POSTERS, {"image": "mine.png", "options": OPTIONS, "target": 1}))(vlm=answering()).evaluation()


BAD_PLACES: dict[str, tuple[str, str | None, str]] = {
    "none": (POSTERS.replace("data: posters.jsonl\n", ""), None, "The task 'posters' names no data"),
    "outside": (POSTERS.replace("posters.jsonl", "../x.jsonl"), None, "`data` leads out of the folder of its file"),
    "missing": (POSTERS, "gone.jsonl", "There is no file 'gone.jsonl'"),
    "empty": (POSTERS, "posters.jsonl", "'posters.jsonl' has no row"),
    "folder with a scoring": (POSTERS, ".", "A folder of images says nothing of what is right, and `score: choice`"),
    "folder without images": (POSTERS, "none", "There are no images in the folder 'none'"),
}


@pytest.mark.parametrize(("text", "data", "message"), BAD_PLACES.values(), ids=BAD_PLACES)
def test_data_that_cannot_be_had_are_told(text: str, data: str | None, message: str) -> None:
    Path("none").mkdir()
    definition = read_task(write(text))

    with pytest.raises(UsageError, match=message):
        definition(data=None if data is None else Path(data), vlm=answering()).evaluation()


def test_a_line_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askance.data_table.text_table.MOST_LINE", 100)

    with pytest.raises(BadData, match="line 1: it is longer than 100 characters"):
        read_task(write(POSTERS, "x" * 1000))(vlm=answering()).evaluation()


# --- the file ---

BAD_FILES = {
    "unknown key": (
        "chian: ask\n",
        r"`chian` is not known\. A task has name, chain, score, summary, data, columns, metrics",
    ),
    "no chain": ("score: choice\n", "`chain` is missing. It is one of `verbalize`, `action-reason`"),
    "unknown chain": ("chain: guess\nscore: none\n", "`chain` is one of `verbalize`, .*, not 'guess'"),
    "chain of no task": ("chain: explain\nscore: none\n", "`chain` is one of `verbalize`, .*, not 'explain'"),
    "of another chain": ("chain: verbalize\nscore: none\ncount: 2\n", "the chain `verbalize` takes no `count`"),
    "unfit scoring": ("chain: verbalize\nscore: choice\n", "`choice` does not score what the chain `verbalize` gives"),
    "unfit chain": ("chain: end-to-end\nscore: exact\n", "`exact` does not score what the chain `end-to-end` gives"),
    "no labels": ("chain: ask\nquestion: What?\nscore: labels\n", "`labels` are missing"),
    "placeholder": (
        "chain: ask\nquestion: '{{ question }}'\nscore: exact\n",
        r"`question` is sent as it stands, and nothing fills in '\{\{ question \}\}'",
    ),
    "unknown metric": (
        "chain: end-to-end\nscore: choice\nmetrics: [f1]\n",
        "`choice` has no metric `f1`. It has accuracy",
    ),
    "no number": (
        "chain: end-to-end\nscore: choice\ncount: many\n",
        "`count` is a whole number from 1 to 100, not 'many'",
    ),
    "no flag": ("chain: end-to-end\nscore: choice\nstep_by_step: 1\n", "`step_by_step` is true or false, not 1"),
    "no list": ("chain: end-to-end\nscore: choice\nmetrics: accuracy\n", "`metrics` is a list of texts"),
    "yes and no": (
        "chain: ask\nquestion: Odd?\nscore: labels\nlabels: [yes, no]\n",
        "`labels` is a list of texts, not True. YAML reads yes, no, on and off as true and false",
    ),
    "key twice": ("chain: ask\nchain: verbalize\n", "line 3: `chain` stands twice"),
    "alias": ("chain: &c ask\nscore: *c\n", "aliases .* are not taken"),
    "too deep": (f"labels: {'[' * 20}{']' * 20}\n", "more than 12 deep"),
    "no YAML": ("chain: [\n", "this is not YAML"),
    "python": ("chain: !!python/object/apply:os.getcwd []\n", "this is not YAML"),
}


@pytest.mark.parametrize(("text", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_says_what_no_task_can_is_told(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_task(write(f"name: mine\n{text}"))


ODD_FILES: dict[str, tuple[bytes, str]] = {
    "no map": (b"- a\n", "holds no map of names to values"),
    "other encoding": ("name: é".encode("latin-1"), "is not UTF-8 text"),
    "large": (b"#" * 300_000, "is larger than 200,000 bytes"),
}


@pytest.mark.parametrize(("content", "message"), ODD_FILES.values(), ids=ODD_FILES)
def test_a_file_of_another_kind_is_told(content: bytes, message: str) -> None:
    Path("odd.yaml").write_bytes(content)

    with pytest.raises(UsageError, match=message):
        read_task(Path("odd.yaml"))


# --- scoring ---


def figures(run: Run) -> dict[str, tuple[float | None, float | None, float | None]]:
    def of(figure: Figure) -> tuple[float | None, float | None, float | None]:
        return figure.value, figure.if_wrong, figure.if_right

    return {figure.metric: of(figure) for figure in run.figures}


def test_choices_are_scored_by_the_first_and_by_those_among_the_first_k() -> None:
    rows = [{"image": "a.png", "target": [2, 3]}, {"image": "b.png", "target": 1}]
    path = write(POSTERS + f"count: 2\noptions: {OPTIONS}\n", *rows)

    run = evaluate(read_task(path)(vlm=answering(end_to_end={"answers": [1, 2]})), out="run")

    assert figures(run) == {
        "accuracy": (0.5, 0.5, 0.5),
        "precision@1": (1.0, 1.0, 1.0),
        "precision@2": (0.5, 0.5, 0.5),
    }


def test_a_non_answer_is_between_the_worst_and_what_its_sample_allows() -> None:
    rows = [{"image": "a.png", "target": [2, 3]}, {"image": "b.png", "target": 1}]
    path = write(POSTERS + f"count: 3\noptions: {OPTIONS}\nmetrics: [precision@3]\n", *rows)

    run = evaluate(read_task(path)(vlm=answering(end_to_end="no")), out="run")

    assert figures(run) == {"precision@3": (0.0, 0.0, 0.5)}
    assert run.totals["outcomes"] == {"invalid": 2}


ASK = "name: animals\nchain: ask\nquestion: Which animal is it?\ndata: animals.jsonl\n"


def test_free_answers_are_compared_but_for_case_and_blanks() -> None:
    rows = [{"image": "a.png", "target": ["A Cat", "kitten"]}, {"image": "b.png", "target": "dog"}]

    run = evaluate(
        read_task(write(ASK + "score: exact\n", *rows, name="animals"))(
            vlm=answering(ask_about_picture={"answer": " a  cat."})
        ),
        out="run",
    )

    assert figures(run) == {"accuracy": (0.5, 0.5, 0.5)}
    assert run.answers[0].prediction.value == "a  cat."


OWN = "name: own\ndata: own.csv\ncolumns: {question: asked, target: right}\nchain: ask\nscore: contains\n"
TABLE = (
    "image,asked,right\na.png,Which animal is it?,cat\na.png,How many are there?,two\nb.png,Which animal is it?,dog\n"
)


def test_each_row_may_have_a_question_of_its_own() -> None:
    asked: list[str] = []

    def answer(request: ChatRequest) -> Any:
        asked.append(request.messages[-1].text.partition("\n")[0])
        return {"answer": "I see two dogs." if "many" in asked[-1] else "a cat"}

    Path("own.csv").write_text(TABLE, encoding="utf-8")
    run = evaluate(read_task(write(OWN, name="own"))(vlm=answering(ask_about_picture=answer)), out="run")

    assert sorted(asked) == ["How many are there?", "Which animal is it?", "Which animal is it?"]
    assert [each.sample.id for each in run.answers] == ["a.png", "a.png#2", "b.png"]
    assert figures(run) == {"accuracy": (2 / 3, 2 / 3, 2 / 3)}


def test_a_row_without_a_question_is_told_before_a_call() -> None:
    Path("own.csv").write_text(TABLE.replace("How many are there?", ""), encoding="utf-8")
    with pytest.raises(BadData, match=r"line 3: nothing is asked\. Give the row a `question`"):
        read_task(write(OWN, name="own"))(vlm=answering()).evaluation()


def test_a_true_answer_that_cannot_be_compared_with_is_told() -> None:
    Path("own.csv").write_text(TABLE, encoding="utf-8")
    with pytest.raises(BadData, match=r"line 2: `target` does not go with `score: numeric`: 'cat' is no number"):
        read_task(write(OWN.replace("contains", "numeric"), name="own"))(vlm=answering()).evaluation()


def test_a_judge_may_score_a_task() -> None:
    Path("own.csv").write_text(TABLE, encoding="utf-8")
    task = read_task(write(OWN.replace("contains", "judge"), name="own"))
    judge = answering(judge_equivalence={"verdict": "true", "reason": "the same"})

    run = evaluate(task(vlm=answering(ask_about_picture={"answer": "it is"}), judge=judge), out="run")

    assert figures(run)["judged"] == (1, 1, 1)
    with pytest.raises(UsageError, match="is scored by a judge, and none is given"):
        task(vlm=answering())
    with pytest.raises(UsageError, match="is scored by `contains`, so it takes no judge"):
        read_task(write(OWN, name="own"))(vlm=answering(), judge=judge)


def test_an_answer_out_of_a_closed_set_is_invalid() -> None:
    path = write(
        ASK + "score: exact\nlabels: [cat, dog]\n",
        {"image": "a.png", "target": "cat"},
        {"image": "b.png", "target": "cat"},
        name="animals",
    )

    run = evaluate(read_task(path)(vlm=answering(ask_about_picture=in_turn("Cat", "horse", "horse"))), out="run")

    assert run.totals["outcomes"] == {"answered": 1, "invalid": 1}
    assert run.answers[0].prediction.value == "cat"


def test_sets_of_labels_have_the_figures_of_scikit_learn() -> None:
    # By hand: cat tp 1 fp 1 fn 0, dog tp 1 fp 0 fn 1, bird tp 0 fp 0 fn 0.
    rows: list[dict[str, Any]] = [
        {"image": "a.png", "target": ["cat", "dog"]},
        {"image": "b.png", "target": "dog"},
        {"image": "c.png", "target": []},
    ]
    path = write(ASK + "score: labels\nlabels: [cat, dog, bird]\n", *rows, name="animals")
    replies = in_turn(["cat"], ["dog"], ["cat"])

    run = evaluate(
        read_task(path)(vlm=model_of(scripted(ask_about_picture=replies), concurrency=1)),
        out="run",
    )

    found = {metric: value for metric, (value, _, _) in figures(run).items()}
    assert found == pytest.approx(
        {
            "f1": (2 / 3 + 2 / 3 + 0) / 3,
            "precision": (1 / 2 + 1 + 0) / 3,
            "recall": (1 + 1 / 2 + 0) / 3,
            "micro f1": 2 * 2 / (2 * 2 + 1 + 1),
            "accuracy": 1 / 3,
        }
    )


def test_a_run_keeps_what_it_takes_to_be_scored_without_the_file() -> None:
    path = write(POSTERS + f"options: {OPTIONS}\n", {"image": "a.png", "target": 1})
    run = evaluate(read_task(path)(vlm=answering(end_to_end={"answers": [1]})), out="run")
    path.unlink()

    definition = task_from_form(run.origin["declaration"], name=run.task)

    assert definition.origin()["declaration"] == run.origin["declaration"]
    assert (definition.name, run.origin["task"]) == ("posters", "posters.yaml")


def test_a_prompt_of_the_users_own_is_asked() -> None:
    Path("prompts").mkdir()
    Path("prompts/odd.prompt").write_text(
        "---\nname: odd\nsummary: Own.\noutput: answer\nimages: 1\nsource: mine\n---\nuser:\nIs it odd?\n"
        'The form: {"answer": "yes or no"}\n',
        encoding="utf-8",
    )
    model = scripted(ask_about_picture={"answer": "yes"})
    path = write(
        "name: odd\nchain: ask\nprompt: odd\nscore: exact\ndata: odd.jsonl\n",
        {"image": "a.png", "target": "Yes"},
        name="odd",
    )

    run = evaluate(read_task(path)(vlm=model_of(model)), out="run")

    assert value_of(run, "accuracy") == 1.0
    assert "Is it odd?" in model.requests[0].messages[-1].text
    assert run.configuration["solver"]["prompts"].keys() == {"odd.prompt"}


# --- what is wrong with a table ---


def test_equal_rows_are_counted() -> None:
    rows = [{"image": "a.png", "options": OPTIONS, "target": 1}] * 3
    other = {"image": "b.png", "options": OPTIONS, "target": 1}
    answered = {"image": "a.png", "options": OPTIONS, "target": 2}

    notes = find_task(str(write(POSTERS, *rows, other, answered)))(vlm=answering()).evaluation().notes

    (note,) = notes
    assert note.startswith(
        "2 rows of 5 are equal to an earlier one (picture, question and answer), such as 'a.png#2'; "
    )


def test_pictures_that_cannot_be_opened_are_told_before_the_first_call(caplog: pytest.LogCaptureFixture) -> None:
    whole = Path("a.png").read_bytes()
    Path("b.png").write_bytes(whole[:20])
    Path("c.png").write_text("no picture", encoding="utf-8")
    told: list[int] = []
    rows = [{"image": name, "options": OPTIONS, "target": 1} for name in ("a.png", "b.png", "c.png")]

    def answer(_: ChatRequest) -> Any:
        told.append(len(caplog.records))
        return {"answers": [1]}

    task = find_task(str(write(POSTERS, *rows)))(vlm=answering(end_to_end=answer))
    evaluate(task, out="run")
    (record,) = caplog.records
    evaluate(task, out="run")

    assert record.getMessage().startswith("2 of 3 samples have a picture that cannot be used: 'b.png' (")
    assert record.getMessage().endswith("). Mend them, or leave them out of the data.")
    assert told == [1, 1, 1]
    assert caplog.records == [record]  # of a finished run nothing is asked
