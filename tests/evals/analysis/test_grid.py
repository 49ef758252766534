"""Grids: what a file may say, runs that are made once, tables with the published figures beside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typing_extensions import override

from askance.errors import UsageError
from askance.evals import Figure, Sample, Scorer
from askance.evals.analysis.grid import Grid, GridRunner, grid_tables, read_grid
from askance.evals.run_tables import table_of_runs
from askance.models import Engine, ScriptedModel, get_model
from askance.prompts import PromptLibrary
from askance.replay import MemoryStore
from tests.evals.odd import Odd, chooser, write_pictures

GRID = """
models: {Two: two, One: openai:one@http://127.0.0.1:9/v1, Three: null}
options: {count: 3}
tables:
  first:
    title: Which text
    task: tests/odd
    published: papers/1
    columns: {accuracy: accuracy}
    rows:
      - {label: two, vlm: Two, published: [Two, I]}
      - {label: two of six, vlm: Two, count: 6}
      - {label: nobody, vlm: Three}
  second:
    title: The same again
    columns: {right: accuracy}
    rows: [{label: two, task: tests/odd, vlm: Two}]
"""


NOBODY = (
    "Nothing stands for the model 'Three' of the grid. Set it under `models` in the file, or with "
    "`--model Three=openai:…`."
)


def written(folder: Path, text: str = GRID) -> Path:
    path = folder / "grid.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def published(table: str, row: tuple[str, ...], column: str) -> float | None:
    return 41.5 if (table, row, column) == ("papers/1", ("Two", "I"), "accuracy") else None


async def test_rows_that_ask_for_the_same_are_one_run(tmp_path: Path) -> None:
    grid = read_grid(written(tmp_path))
    data, run = write_pictures(tmp_path / "pictures"), Engine(records=MemoryStore())
    runner = GridRunner(grid, out=tmp_path / "out", engine=run, find=lambda _: Odd, options={"data": data, "ids": None})
    runner.models["two"] = chooser(2, run)

    result = await runner.run()
    tables = grid_tables(result, published=published)

    one, six = result.runs
    assert [found.reason for found in result.found.values()] == ["", "", NOBODY]
    assert not result.whole
    first, second = tables["first"], tables["second"]
    assert first.columns == ("", "samples", "answered", "accuracy", "accuracy †")
    assert [row[:3] for row in first.rows] == [("two", 3, 3), ("two of six", 6, 6), ("nobody", None, None)]
    assert [row[4] for row in first.rows] == [41.5, None, None]
    assert second.rows[0][3:] == (one.figure("accuracy"),)
    assert six.figure("accuracy").value == pytest.approx(1 / 3)
    assert f"nobody: {NOBODY}" in first.notes


VARIANTS = """
models: {Two: two}
tables:
  variants:
    title: Which text, by prompt
    task: tests/odd
    columns: {accuracy: accuracy}
    rows: {vlm: [Two], prompts: [null, FOLDER]}
"""


async def test_rows_may_be_all_combinations_of_models_and_prompts(tmp_path: Path) -> None:
    folder = tmp_path / "formal"
    ejected = PromptLibrary([]).eject("end_to_end_multi", form="json", family=None, to=folder)
    ejected.write_text(ejected.read_text(encoding="utf-8").replace("You ", "Thou "), encoding="utf-8")
    grid = read_grid(written(tmp_path, VARIANTS.replace("FOLDER", str(folder))))
    data, engine = write_pictures(tmp_path / "pictures"), Engine(records=MemoryStore())
    runner = GridRunner(grid, out=tmp_path / "out", engine=engine, find=lambda _: Odd, options={"data": data})
    runner.models["two"] = chooser(2, engine)

    result = await runner.run()

    own, formal = result.runs
    assert [row[:3] for row in grid_tables(result)["variants"].rows] == [("Two, own", 6, 6), (f"Two, {folder}", 6, 6)]
    assert "Thou " in formal.prompts[ejected.name]
    assert "Thou " not in own.prompts[ejected.name]
    assert [run.name for run in (own, formal)] == ["Two, own", f"Two, {folder}"]


async def test_a_run_keeps_its_tasks_label_where_that_tells_it_apart(tmp_path: Path) -> None:
    rows = "rows: [{label: A, vlm: Two}, {label: B, vlm: Two, count: 6}]"
    text = VARIANTS.replace("rows: {vlm: [Two], prompts: [null, FOLDER]}", rows)
    text = text.replace("accuracy: accuracy}", "accuracy: accuracy, six: {metric: accuracy, options: {count: 6}}}")
    data, engine = write_pictures(tmp_path / "pictures"), Engine(records=MemoryStore())

    class Labelled(Odd):
        name = "tests/labelled"

        @override
        def label(self) -> str:
            return "two"

    names: dict[str, list[str]] = {}
    for task in (Odd, Labelled):
        runner = GridRunner(
            read_grid(written(tmp_path, text)),
            out=tmp_path / "out",
            engine=engine,
            find=lambda _, task=task: task,
            options={"data": data},
        )
        runner.models["two"] = chooser(2, engine)
        names[task.name] = [run.name for run in (await runner.run()).runs]
    again = [run.name for run in (await runner.run()).runs]

    assert names == {"tests/odd": ["A, accuracy", "A, six"], "tests/labelled": ["two, A, accuracy", "two, A, six"]}
    assert again == names["tests/labelled"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("FOLDER", "nowhere", r"There is no folder of prompts 'nowhere'"),
        (
            "prompts:",
            "counts:",
            r"The row 'Two, 1' of the grid: the task 'tests/odd' takes no 'counts'\. Nearest: 'count'",
        ),
    ],
)
async def test_a_grid_is_checked_whole_before_its_first_call(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = VARIANTS.replace(old, new).replace("[null, FOLDER]", "[1, 2]")
    grid, engine = read_grid(written(tmp_path, text)), Engine(records=MemoryStore())
    runner = GridRunner(grid, out=tmp_path / "out", engine=engine, find=lambda _: Odd)
    runner.models["two"] = ScriptedModel([])

    with pytest.raises(UsageError, match=message):
        await runner.run()
    with pytest.raises(UsageError, match=message):
        await runner.plan()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("vlm: Two, count", "vlm: Tow, count", r"The row 'two of six' of the grid: .* no model 'Tow'\. Nearest: 'Two'"),
        (
            "right: accuracy",
            "right: acuracy",
            r"column 'right' of the grid is of 'acuracy', .* Nearest: 'accuracy'",
        ),
        ("vlm: Two, count", "vlm: Two, context: XX, count", r"The row 'two of six' of the grid: .*context"),
    ],
)
async def test_a_mistake_in_a_later_row_is_said_before_the_first_call(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    data, engine = write_pictures(tmp_path / "pictures"), Engine(records=MemoryStore())
    asked = ScriptedModel([])
    grid = read_grid(written(tmp_path, GRID.replace(old, new)))
    runner = GridRunner(grid, out=tmp_path / "out", engine=engine, find=lambda _: Odd, options={"data": data})
    runner.models["two"] = get_model(asked, engine=engine)

    with pytest.raises(UsageError, match=message):
        await runner.run()

    assert asked.requests == []


UNKNOWN = {
    "rows: []\ntables: {}": "the key 'rows', which is not known. A grid takes 'summary', 'models',",
    "tables: {a: {titel: x}}": "the key 'titel' at tables.a, which is not known. Nearest: 'title'. A table takes",
    "tables: {a: {columns: {x: {metrik: y}}}}": "the key 'metrik' at tables.a.columns.x, which is not known. "
    "Nearest: 'metric'. A column takes",
    "tables: {a: {rows: [{columns: {x: {metrik: y}}}]}}": "'metrik' at tables.a.rows.0.columns.x, which is not known.",
    "same_setting: {x: {tabels: [a]}}": "the key 'tabels' at same_setting.x, which is not known. Nearest: 'tables'.",
}


@pytest.mark.parametrize(("text", "said"), UNKNOWN.items())
def test_an_unknown_key_is_told_with_the_nearest_one(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read_grid(written(tmp_path, text))
    assert said in str(error.value)


async def test_a_grid_is_gone_on_with(tmp_path: Path) -> None:
    grid = read_grid(written(tmp_path)).only(["second"])
    data, run = write_pictures(tmp_path / "pictures"), Engine(records=MemoryStore())
    scripted = chooser(2, run)
    for _ in range(2):
        runner = GridRunner(grid, out=tmp_path / "out", engine=run, find=lambda _: Odd, options={"data": data})
        runner.models["two"] = scripted
        result = await runner.run()
    assert result.whole  # pyright: ignore[reportPossiblyUnboundVariable]
    assert len(list((tmp_path / "out").iterdir())) == 1


class Folded(Odd):
    """Every third picture is in one fold."""

    name = "tests/folded"
    fold: int | None = None

    @override
    def samples(self) -> list[Sample]:
        return [sample for number, sample in enumerate(super().samples()) if self.fold in {None, number % 5}]


FOLDS = """
models: {Tuned: null, One: one}
tables:
  first:
    title: Which text
    task: tests/folded
    columns: {accuracy: accuracy}
    rows: [{label: tuned, vlm: Tuned, fold: each}, {label: one fold, vlm: Tuned, fold: 3}]
"""


async def test_a_model_for_each_fold_is_a_run_for_each_and_a_figure_over_them(tmp_path: Path) -> None:
    data, engine = write_pictures(tmp_path / "pictures"), Engine(records=MemoryStore())
    grid = read_grid(written(tmp_path, FOLDS))

    def runner(spec: str) -> GridRunner:
        given = grid.with_models({"Tuned": spec})
        made = GridRunner(given, out=tmp_path / "out", engine=engine, find=lambda _: Folded, options={"data": data})
        made.models |= {f"two-{fold}": chooser(1 + fold % 3, engine) for fold in range(5)}
        return made

    planned = await runner("two-{fold}").plan()
    result = await runner("two-{fold}").run()
    again = await runner("two-{fold}").run()

    # Six pictures: the fold 0 has the first and the last, whose answers are 1 and 3.
    (row, single) = grid_tables(result)["first"].rows
    assert (planned.runs, sum(link.calls for link in planned.plan.links)) == (5, 6)
    assert row[:3] == ("tuned", 6, 6)
    assert isinstance(row[3], Figure)
    assert row[3].value == pytest.approx((0.5 + 1 + 1 + 1 + 1) / 5)
    assert isinstance(single[3], Figure)
    assert (single[1], single[3].value) == (1, 1.0)
    assert len(result.runs) == 5
    assert len(list((tmp_path / "out").iterdir())) == 5
    assert grid_tables(again) == grid_tables(result)


async def test_rows_of_folds_are_told_apart_by_row_and_column(tmp_path: Path) -> None:
    data, engine = write_pictures(tmp_path / "pictures", count=8), Engine(records=MemoryStore())
    text = FOLDS.replace("{accuracy: accuracy}", "{all: accuracy, seven: {metric: accuracy, options: {count: 7}}}")
    text = text.replace("{label: one fold, vlm: Tuned, fold: 3}", "{label: tuned, vlm: Tuned, fold: each, count: 8}")
    grid = read_grid(written(tmp_path, text)).with_models({"Tuned": "two-{fold}"})
    runner = GridRunner(grid, out=tmp_path / "out", engine=engine, find=lambda _: Folded, options={"data": data})
    runner.models |= {f"two-{fold}": chooser(1 + fold % 3, engine) for fold in range(5)}

    names = [row[0] for row in table_of_runs((await runner.run()).runs_of("first")).rows]

    assert names == ["tuned, all, first, row 1", "tuned, seven", "tuned, all, first, row 2"]


async def test_only_rows_of_folds_are_scored_again_and_every_scorer_is_closed(tmp_path: Path) -> None:
    data, engine = write_pictures(tmp_path / "pictures"), Engine(records=MemoryStore())
    closed: list[int | None] = []

    class Closes:
        def __init__(self, fold: int | None) -> None:
            self.fold = fold

        async def aclose(self) -> None:
            closed.append(self.fold)

    class Closing(Folded):
        name = "tests/closing"

        @override
        def scorer(self) -> Scorer:
            return replace(super().scorer(), closing=(Closes(self.fold),))

    text = FOLDS.replace("{label: one fold, vlm: Tuned, fold: 3}", "{label: one, vlm: One}")
    grid = read_grid(written(tmp_path, text)).with_models({"Tuned": "two-{fold}"})
    runner = GridRunner(grid, out=tmp_path / "out", engine=engine, find=lambda _: Closing, options={"data": data})
    runner.models |= {name: chooser(1, engine) for name in ("one", *(f"two-{fold}" for fold in range(5)))}

    assert (await runner.run()).whole
    assert closed == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, None]


def test_a_row_of_folds_needs_a_model() -> None:
    rows = [{"label": "guess", "fold": "each", "random": True}]
    table = {"title": "x", "task": "tests/folded", "columns": {"accuracy": "accuracy"}, "rows": rows}
    grid = Grid.model_validate({"tables": {"first": table}})

    with pytest.raises(UsageError, match=r"^The row 'guess' needs a model for each fold, and it names no model\."):
        grid.runs_behind(next(grid.cells))


async def test_one_model_for_all_folds_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    data, engine = write_pictures(tmp_path / "pictures"), Engine(records=MemoryStore())
    grid = read_grid(written(tmp_path, FOLDS))

    def runner(spec: str) -> GridRunner:
        given = grid.with_models({"Tuned": spec})
        return GridRunner(given, out=tmp_path / "out", engine=engine, find=lambda _: Folded, options={"data": data})

    with pytest.raises(
        UsageError, match=r"^The row 'tuned' needs a model for each fold, and 'hf:w' is one model for all"
    ):
        await runner("hf:w").run()
    with pytest.raises(UsageError, match=r"The row 'tuned, fold 0' of the grid: There is no model 'hf:w/fold-0' on"):
        await runner("hf:w/fold-{fold}").run()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tables: {}", "tables: Dictionary should have at least 1 item after validation, not 0"),
        (
            "tables: {a: {title: a, columns: {b: {task: c}}, rows: [{label: d}]}}",
            "tables.a.columns.b.metric is missing",
        ),
        ("tables: {a: {title: a, columns: {b: c}, rows: [{vlm: d}]}}", "tables.a.rows[0].label is missing"),
    ],
    ids=["no tables", "no metric", "no label"],
)
def test_what_no_grid_says_is_named_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read_grid(written(tmp_path, text))
    assert error.value.message == f"The grid {str(tmp_path / 'grid.yaml')!r} cannot be used: {said}."


@pytest.mark.parametrize(
    ("text", "said"),
    [("a: [", "not YAML"), ("a: !!python/object:os.system {}", "not YAML"), ("[1, 2]", "holds no map")],
    ids=["torn", "code", "a list"],
)
def test_what_is_no_yaml_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_grid(written(tmp_path, text))


def test_models_and_tables_are_known_by_name(tmp_path: Path) -> None:
    grid = read_grid(written(tmp_path)).with_models({"Three": "openai:three"})
    nobody = [cell for cell in grid.cells if cell.label == "nobody"]

    assert [grid.with_specs(cell.options) for cell in nobody] == [{"count": 3, "vlm": "openai:three"}]
    assert Grid.model_validate(grid.model_dump()).tables.keys() == grid.tables.keys()
    with pytest.raises(UsageError, match=r"^The grid has no model 'Four'\. It has Two, One, Three\.$"):
        grid.with_models({"Four": "x:y"})
    with pytest.raises(UsageError, match=r"^The grid has no table 'third'\. It has first, second\.$"):
        grid.only(["third"])


def test_a_column_may_have_a_task_and_options_of_its_own(tmp_path: Path) -> None:
    text = """
    tables:
      a:
        title: a
        task: tests/odd
        columns:
          one: accuracy
          two: {task: tests/other, metric: m, options: {context: "{view}+s"}}
        rows: [{label: x, vlm: "p:q", context: IN, let: {view: I}}]
    """
    one, two = read_grid(written(tmp_path, text)).cells

    assert (one.task, one.metric, one.options) == ("tests/odd", "accuracy", {"vlm": "p:q", "context": "IN"})
    assert (two.task, two.metric, two.options) == ("tests/other", "m", {"vlm": "p:q", "context": "I+s"})


def test_a_grid_runs_no_python(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('it was run')", encoding="utf-8")
    text = f"tables: {{a: {{title: A, task: {tmp_path / 'evil.py'}, columns: {{x: mean}}, rows: [{{label: r}}]}}}}"
    (tmp_path / "grid.yaml").write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match="names a Python file"):
        read_grid(str(tmp_path / "grid.yaml"))


@pytest.mark.parametrize("spec", ["evil.py:X", "st:evil/it?remote_code=true", "clip:it?batch=1&%70ickled=%74rue"])
@pytest.mark.parametrize("place", ["model", "options", "let"])
def test_a_grid_names_nothing_that_runs_code(spec: str, place: str, tmp_path: Path) -> None:
    models, option, let = {"model": (spec, "one", "-"), "options": ("p:q", spec, "-"), "let": ("p:q", "{it}", spec)}[
        place
    ]
    text = f"""
    models: {{one: "{models}"}}
    tables:
      a:
        title: a
        task: tests/odd
        columns: {{x: {{metric: m, options: {{retriever: "{option}"}}}}}}
        rows: [{{label: r, let: {{it: "{let}"}}}}]
    """

    with pytest.raises(UsageError, match=r"names what would run code: .*--model NAME=SPEC"):
        read_grid(written(tmp_path, text))
