"""What is exported is read by the libraries that it is for, and notebooks show runs, in an environment of their own."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from askance.evals import Run, export
from tests.evals.guilty import run_of
from tests.evals.report.browser import launched

pytestmark = pytest.mark.slow(group="wheel")

READ = """\
import json, sys
from pathlib import Path
from askance.evals import Run
from askance.evals.exports import export

run, found = Run.open("run"), {}

import datasets, mlflow, pandas
from inspect_ai.analysis import samples_df
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample

for suffix in ("eval", "json"):
    place = str(export(run, "inspect", f"logs/run.{suffix}"))
    log, head = read_eval_log(place), read_eval_log(place, header_only=True)
    one = read_eval_log_sample(place, id="01", epoch=1)
    found[suffix] = {
        "status": log.status,
        "samples": [sample.id for sample in log.samples],
        "metric": log.results.scores[0].metrics["value"].value,
        "head": [head.status, head.samples],
        "score": one.scores["askance"].value,
        "said": one.messages[-1].text,
        "choices": one.choices,
    }
found["listed"] = [Path(info.name).name for info in list_eval_logs("logs")]
found["table"] = samples_df("logs/run.eval", quiet=True)["id"].tolist()
found["pandas"] = run.to_pandas()["score.accuracy"].tolist()
found["polars"] = run.to_polars()["score.accuracy"].to_list()
found["parquet"] = pandas.read_parquet(export(run, "parquet"))["score.accuracy"].tolist()
found["csv"] = pandas.read_csv(export(run, "csv"), dtype={"id": str})["id"].tolist()
found["hf"] = datasets.load_from_disk(str(export(run, "hf")))["score.accuracy"][:]
for _ in range(2):
    store = export(run, "mlflow")
mlflow.set_tracking_uri(store.resolve().as_uri())
rows = mlflow.search_runs(experiment_names=["tests/guilty"])
found["mlflow"] = rows[["status", "metrics.accuracy", "params.models.vlm.images.name"]].values.tolist()
number = rows["run_id"].tolist()[0]
found["artifacts"] = [each.path for each in mlflow.MlflowClient().list_artifacts(number, "samples")] == [
    f"samples/{number}.csv"
]
print(json.dumps(found))
"""
NOTEBOOK = """\
import json
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

cells = [
    "from askance.evals import Run, compare, find_task; from askance.nodes import given; run = Run.open('run'); run",
    "from askance.atypicality import Statement; statement = Statement('TR1', 'a <b>cup</b>', 'brick'); statement",
    "given(statement)",
    "run.to_pandas()[['id', 'score.accuracy']]",
    "plot = run.plot(); plot.save('run.svg'); plot",
]
book = new_notebook(cells=[new_code_cell(cell) for cell in cells])
NotebookClient(book, timeout=120).execute()
shown = [cell.outputs[-1].data["text/html"] for cell in book.cells]
print(json.dumps([*shown, book.cells[-1].outputs[-1].data["image/svg+xml"]]))
"""
LOG: dict[str, Any] = {
    "status": "success",
    "samples": ["00", "01", "02", "03"],
    "metric": 0.75,
    "head": ["success", None],
    "score": {"accuracy": 0.0},
    "said": '{"answers": [2]}',
    "choices": ["I should drink tea", "I should sleep"],
}


@pytest.fixture
def run(own_place: Path) -> Path:
    """A run of four samples in the current folder."""
    return run_of(own_place / "pictures", "objects", of=["01"], out="run").path


def printed(python: Path, script: str) -> Any:
    """What a script prints last, as JSON."""
    command = [str(python), "-W", "ignore", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_every_form_is_read_back_by_its_own_library(installed_python: Path, run: Path) -> None:
    scores = [1.0, 0.0, 1.0, 1.0]
    assert printed(installed_python, READ) == {
        "eval": LOG,
        "json": LOG,
        "listed": ["run.eval"],
        "table": ["00", "01", "02", "03"],
        "pandas": scores,
        "polars": scores,
        "parquet": scores,
        "csv": ["00", "01", "02", "03"],
        "hf": scores,
        "mlflow": [["FINISHED", 0.75, "clean"]] * 2,
        "artifacts": True,
    }


def test_a_notebook_shows_runs_statements_results_and_frames(installed_python: Path, run: Path) -> None:
    shown, statement, result, frame, plot, svg = printed(installed_python, NOTEBOOK)

    assert "<td><bdi>accuracy</bdi></td><td><bdi>75.00</bdi></td>" in shown
    assert "<bdi>The surface of a &lt;b&gt;cup&lt;/b&gt; mimics the texture of brick" in statement
    assert "<code>answered</code> <bdi>The surface of a &lt;b&gt;cup" in result
    assert "<th>score.accuracy</th>" in frame
    assert plot == svg
    assert "<desc>accuracy 75.00, 30.06 – 95.44</desc>" in svg
    assert Path("run.svg").read_text(encoding="utf-8").splitlines()[1] == svg


@pytest.fixture
def viewer(installed_python: Path, run: Path) -> Iterator[str]:
    """Address of Inspect's own viewer of the run's log."""
    export(Run.open(run), "inspect", "logs/run.eval")
    port = unused_port()
    words = ("view", "start", "--log-dir", "logs", "--host", "127.0.0.1", "--port", str(port))
    with subprocess.Popen([installed_python.with_name("inspect"), *words]) as server:
        try:
            address = f"http://127.0.0.1:{port}/"
            await_server(address, server)
            yield address
        finally:
            server.terminate()


def test_the_viewer_of_inspect_opens_a_log(viewer: str) -> None:
    with launched() as browser:
        page, faults = browser.new_page(), list[str]()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(viewer)
        page.get_by_text("tests/guilty").first.click()
        page.get_by_text("4 Samples", exact=True).wait_for()
        assert "VALUE\n0.75\n" in page.inner_text("body")
        page.get_by_text("[2]", exact=True).click()
        page.get_by_text("You look closely at an image").first.wait_for()

        assert faults == []


def unused_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_server(address: str, server: subprocess.Popen[bytes]) -> None:
    """Waits until a server answers."""
    for _ in range(600):
        assert server.poll() is None, "the server ended"
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=10):
            return
        time.sleep(0.1)
    pytest.fail(f"nobody answers at {address}")
