"""`askance train lora`, `train recipe` and `train recipes`: training by a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from askance.amounts import duration
from askance.cli.columns import Columns, Line, Part, Report
from askance.cli.group import command_group
from askance.cli.options import AsJson, named_values, spelled_out
from askance.cli.process import INTERRUPTED, OK
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.training import Distillation, Fit, FitPlan, FitRecipe
    from askance.training.trainer import FitProgress

commands = command_group("Training by a recipe.")


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What every training takes."""

    base: Annotated[str, typer.Option(metavar="SPEC", help="The model to begin with: hf:FOLDER, or clip:FOLDER.")]
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="Folder of the result, and of its record.")]
    rate: Annotated[
        list[float] | None,
        typer.Option(metavar="RATE", help="Rate of learning; may be repeated, and validation chooses."),
    ] = None
    epochs: Annotated[int | None, typer.Option(help="Times that all of the set is gone through, at most.")] = None
    batch: Annotated[int | None, typer.Option(help="Rows of a step.")] = None
    recipe_option: Annotated[
        list[str] | None,
        typer.Option("-R", metavar="NAME=VALUE", help="Another field of the recipe: -R patience=3; may be repeated."),
    ] = None
    control: Annotated[
        Literal["text-only", "shuffled"] | None,
        typer.Option(
            help="Train a twin that learns nothing from pictures: text-only makes them all blank, shuffled gives each "
            "text another's."
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Of everything that is random.")] = 0
    device: Annotated[str, typer.Option(help="cpu, or auto: the first accelerator there is.")] = "auto"
    dtype: Annotated[
        Literal["float32", "bfloat16"],
        typer.Option(help="Numbers of the weights; bfloat16 takes half the memory, for LoRA."),
    ] = "float32"
    plan: Annotated[bool, typer.Option("--plan", help="Make ten steps, say what all would take, and keep nothing.")] = (
        False
    )
    as_json: AsJson = False

    def changes(self, **own: object) -> dict[str, Any]:
        """What is given of the recipe's fields."""
        given: dict[str, Any] = {
            "rates": None if self.rate is None else tuple(self.rate),
            "epochs": self.epochs,
            "batch": self.batch,
            **own,
        }
        written = named_values(self.recipe_option or (), of="a recipe", flag="-R")
        texts = {name: None if value == "null" else value for name, value in written.items()}
        return {**{name: value for name, value in given.items() if value is not None}, **texts}


SetFolder = Annotated[
    Path,
    typer.Argument(
        metavar="SET",
        help="Folder of a training set, which `askance train data` makes; or one of sets called fold-0, fold-1 and so "
        "on, each of which is trained on into a folder of the same name.",
    ),
]


@commands.command("lora")
@spelled_out
def lora(
    data: SetFolder,
    options: FitOptions,
    rank: Annotated[int | None, typer.Option(help="Of the matrices: 16.")] = None,
    merge: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Also write base and adapter as one model, for servers that read whole models.",
        ),
    ] = None,
) -> None:
    """Teach any hf: model by chats: LoRA matrices beside its language model. The same command goes on where it stopped.

    The result is asked as `hf:BASE?adapter=OUT`.
    """
    _train("lora", data, options, options.changes(rank=rank), merge)


@commands.command("recipe")
@spelled_out
def recipe(
    name: Annotated[str, typer.Argument(metavar="RECIPE", help="Its name, or a file FILE.yaml of your own.")],
    data: SetFolder,
    options: FitOptions,
    train_projection: Annotated[
        bool,
        typer.Option(
            "--train-projection",
            help="Of BLIP-2, train the projection to the language model beside the Q-Former, as LAVIS does.",
        ),
    ] = False,
) -> None:
    """Train a model by a recipe, such as a paper's. The same command goes on where it stopped.

    The result is a folder, asked as `hf:OUT` or `clip:OUT`. `askance train recipes` lists the recipes.
    """
    from askance.training import FitRecipe

    more: dict[str, object] = {}
    if train_projection:
        more["trained"] = (*FitRecipe.named(name).fields.trained, "language_projection.")
    _train(name, data, options, options.changes(**more), None)


@commands.command("recipes")
def recipes(
    name: Annotated[str | None, typer.Argument(metavar="[RECIPE]", help="One, with all of its fields.")] = None,
    as_json: AsJson = False,
) -> int:
    """List the recipes, and where each of their fields is from: the paper, its code, or neither (ours)."""
    from askance.training import FitRecipe, recipe_names

    listed = [FitRecipe.named(each) for each in ([name] if name else recipe_names())]
    return Report(lambda: [each.form for each in listed], lambda: _recipes(listed)).print(as_json=as_json)


@commands.command("report")
def report(
    teacher: Annotated[Path, typer.Argument(metavar="TEACHER", help="Folder of the large model's run.")],
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="Of the same task by the small one's base.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="Of the same task by what was trained.")],
    data: Annotated[
        Path, typer.Option("--set", metavar="SET", help="The training set, none of whose pictures may be in the runs.")
    ],
    metric: Annotated[
        str | None, typer.Option(help="The figure that is compared; by default the task's first.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the resampling.")] = 0,
    as_json: AsJson = False,
) -> int:
    """Say what a small model has learnt of a large one: paired tests on held-out pictures, and dollars a thousand."""
    from askance.evals.run import Run
    from askance.training import TrainingSet, distillation

    runs = [Run.open(folder) for folder in (teacher, before, after)]
    made = distillation(*runs, data=TrainingSet.open(data), metric=metric, seed=seed)
    return Report(lambda: made.form, lambda: _distillation(made), made.notes).print(as_json=as_json)


@commands.command("page")
def page(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="Folder of a training, finished or under way.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="PAGE", help="The page to write: curves.html.")],
) -> None:
    """Draw the curves of a training's loss and of its validation on a page, with all that decided the result."""
    from askance.evals.report.html import write_page
    from askance.evals.report.training_page import training_page
    from askance.training.fit import read_training

    record, log = read_training(folder)
    size = write_page(out, lambda _: training_page(record, log))
    echo(f"The page is in {out} ({size / 1e6:.1f} MB).", err=True)


def _distillation(made: Distillation) -> Iterator[Part]:
    from askance.amounts import money
    from askance.cli.compare import comparison_parts
    from askance.training.distillation import ROLES_OF_RUNS

    prices = ["not known" if each is None else money(each) for each in made.dollars]
    rows = list(zip(ROLES_OF_RUNS, made.comparison.names, prices, strict=True))
    yield Columns([("", "run", "1,000 pictures"), *rows], left=(0, 1))
    yield ""
    yield from comparison_parts(made.comparison)


def _recipes(listed: Sequence[FitRecipe]) -> Iterator[Part]:
    for place, each in enumerate(listed):
        if place:
            yield ""
        yield f"{each.name}: {each.title}"
        rows = [(name, _value(each.values[name]), source.by, source.at) for name, source in each.sources.items()]
        yield Columns([("", "value", "by", "where"), *rows], left=(0, 1, 2, 3))
        for name, source in each.sources.items():
            if source.why:
                yield Line(f"· {name}: {source.why}", 2)


def _value(value: object) -> str:
    match value:
        case None:
            return "–"
        case list():
            return ", ".join(map(_value, value))  # pyright: ignore[reportUnknownArgumentType]
        case dict():
            return ", ".join(f"{name}: {each}" for name, each in value.items())  # pyright: ignore[reportUnknownVariableType]
        case float():
            return f"{value:g}"
        case _:
            return str(value)


# --- training ---


def _train(name: str, data: Path, options: FitOptions, changes: Mapping[str, Any], merge: Path | None) -> None:
    from askance.training import Fit, FitRecipe

    chosen = FitRecipe.named(name, **changes)
    trainings = [
        (
            out,
            Fit(
                recipe=chosen,
                data=each,
                base=options.base,
                control=options.control,
                seed=options.seed,
                device=options.device,
                dtype=options.dtype,
            ),
        )
        for out, each in _sets(data, options.out)
    ]
    for note in chosen.notes:
        echo(f"· {note}", err=True)
    if code := _plan(trainings, options) if options.plan else _fit(trainings, options, merge):
        raise typer.Exit(code)


def _sets(folder: Path, out: Path) -> Iterator[tuple[Path, Any]]:
    """Each training set, and where its result goes."""
    from askance.training import TrainingSet

    folds = sorted(each for each in folder.glob("fold-*") if each.is_dir())
    if folds and not (folder / "manifest.json").exists():
        yield from ((out / each.name, TrainingSet.open(each)) for each in folds)
    else:
        yield out, TrainingSet.open(folder)


def _plan(trainings: Sequence[tuple[Path, Fit]], options: FitOptions) -> int:
    from askance.cli.progress import Progress
    from askance.training import plan_fit

    (out, training), *_ = trainings
    state = _State()
    with Progress("steps", state=lambda: str(state)) as progress:

        def tell(done: FitProgress) -> None:
            state.tell(out, done, 1, 1)
            progress.update(done.step, done.steps)

        plan = plan_fit(training, on_progress=tell)
    sets = len(trainings)
    form = {**plan.form, "sets": sets, "hours": plan.hours * sets}
    return Report(lambda: form, lambda: _plan_parts(plan, sets), plan.notes).print(as_json=options.as_json)


def _plan_parts(plan: FitPlan, sets: int) -> Iterator[Part]:
    rows = [
        ("", "a set", "in all"),
        ("training sets", "", str(sets)),
        ("rates of learning", str(plan.rates), str(plan.rates * sets)),
        ("steps", f"{plan.steps:,}", f"{plan.steps * sets:,}"),
        ("seconds a step", f"{plan.seconds_a_step:.3g}", ""),
        ("hours of steps", f"{plan.hours:.3g}", f"{plan.hours * sets:.3g}"),
    ]
    yield Columns(rows)
    share = plan.trained / plan.parameters
    yield ""
    yield Line(
        f"{plan.trained:,} of {plan.parameters:,} parameters are trained ({share:.2%}). Weights, gradients and the "
        f"optimizer take {plan.state / 1e9:,.2f} GB; {plan.peak / 1e9:,.2f} GB were held at most, on {plan.device}.",
        0,
    )
    yield Line(f"Timed by the median of {plan.timed} steps, of which nothing is kept.", 0)


def _fit(trainings: Sequence[tuple[Path, Fit]], options: FitOptions, merge: Path | None) -> int:
    from askance.cli.progress import Progress
    from askance.training.fit import check_merge, fit, merge_adapter

    if merge is not None:
        if len(trainings) > 1:
            raise UsageError("Several adapters cannot be merged into one folder.", hint="Merge one fold at a time.")
        check_merge(trainings[0][1], trainings[0][0], merge)
    results = list[dict[str, Any]]()
    state = _State()
    with Progress("steps", state=lambda: str(state)) as progress:
        for out, training in trainings:

            def tell(done: FitProgress, number: int, rates: int, out: Path = out) -> None:
                state.tell(out, done, number, rates)
                progress.update(done.step, done.steps)

            try:
                results.append({"out": str(out), **fit(training, out, on_progress=tell)})
            except KeyboardInterrupt:
                progress.close()
                echo("Interrupted. The same command goes on from the last checkpoint.", err=True)
                return INTERRUPTED
            if merge is not None:
                merge_adapter(training, out, merge)
    notes = [] if merge is None else [f"base and adapter as one model: {merge}"]
    return Report(lambda: results, lambda: _results(results), notes, ends=lambda: OK).print(as_json=options.as_json)


class _State:
    """What is said of the step under way."""

    def __init__(self) -> None:
        self._text = "loading the model"

    def tell(self, out: Path, done: FitProgress, number: int, rates: int) -> None:
        loss = "" if done.loss is None else f", loss {done.loss:.4g}"
        of = f" ({number} of {rates})" if rates > 1 else ""
        self._text = f"{out.name}: rate {done.rate:g}{of}{loss}, {duration(done.left)} left"

    def __str__(self) -> str:
        return self._text


def _results(results: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    metric = results[0]["values"]["metric"]
    rows = [("", "rate", "step", f"validation: {metric}", "hours", "")]
    for each in results:
        chosen = each["selected"]
        value = "–" if chosen["value"] is None else f"{chosen['value']:.4g}"
        rows.append(
            (each["out"], f"{chosen['rate']:g}", f"{chosen['step']:,}", value, f"{each['hours']:.3g}", each["result"])
        )
    yield Columns(rows, left=(0, 5))
