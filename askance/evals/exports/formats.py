"""The formats that a run can be exported to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from askance.errors import UsageError
from askance.evals.exports.frames import write_data_set, write_excel, write_parquet
from askance.evals.exports.inspect_log import write_inspect
from askance.evals.exports.mlflow_store import write_mlflow
from askance.evals.exports.rows import write_csv, write_jsonl
from askance.evals.run import Run
from askance.evals.run_folder import writing_to

if TYPE_CHECKING:
    from askance.chains import Reading

Form = Literal["csv", "xlsx", "jsonl", "parquet", "inspect", "mlflow", "hf"]
FORMS: tuple[Form, ...] = get_args(Form)

_WRITE: Mapping[str, tuple[Callable[[Run, Path], None], str]] = {
    "csv": (lambda run, path: write_csv(run.columns(), path), "{}.csv"),
    "xlsx": (lambda run, path: write_excel(run.columns(), path), "{}.xlsx"),
    "jsonl": (lambda run, path: write_jsonl(run.answers, path), "{}.jsonl"),
    "parquet": (lambda run, path: write_parquet(run.columns(), path), "{}.parquet"),
    "inspect": (write_inspect, "{}.eval"),
    "mlflow": (write_mlflow, "mlruns"),
    "hf": (lambda run, path: write_data_set(run.columns(), path), "{}-hf"),
}
"""By format, the function that writes it and the default name of what it writes."""


def export(run: Run, to: str, path: str | Path | None = None) -> Path:
    """Writes `run` for another tool; returns the file or folder.

    Args:
        run: finished or not.
        to: `csv`, `xlsx`, `jsonl`, `parquet`, `inspect`, `mlflow` or `hf`.
        path: of the file or folder; by default in the current folder, named after the run's. A file that is there is
            replaced; a store of MLflow gets one run more.

    Raises:
        UsageError: there is no such form, the run has no samples, or the path leads into the run itself.
        MissingExtra: a library is not installed.
        StoreError: it cannot be written.
    """
    if to not in _WRITE:
        raise UsageError(f"There is no form {to!r}.", hint=f"Choose one of {', '.join(FORMS)}.")
    write, name = _WRITE[to]
    place = Path(name.format(run.path.resolve().name)) if path is None else Path(path)
    if not run.answers:
        raise UsageError(
            f"The run {str(run.path)!r} has no samples yet.", hint="Go on with it: the command that began it."
        )
    if run.kept and place.resolve().is_relative_to(run.path.resolve()):
        raise UsageError(f"{str(place)!r} lies in the run's own folder.", hint="Name another place: `-o PATH`.")
    with writing_to(place, hint="Make room on the disk, or name another place: `-o PATH`."):
        place.parent.mkdir(parents=True, exist_ok=True)
        write(run, place)
    return place


def to_pandas(source: Run | str | Path | Iterable[Reading]) -> Any:
    """A pandas `DataFrame` of a run, with a row an answer or a picture; lists and maps as JSON texts.

    Args:
        source: a run, its folder, or what a chain has read.

    Raises:
        UsageError: the folder holds no run.
        MissingExtra: pandas is not installed.
    """
    if isinstance(source, (str, Path)):
        source = Run.open(source)
    return (source if isinstance(source, Run) else Run.of_readings(source)).to_pandas()
