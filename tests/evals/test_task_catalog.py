"""Finding tasks: by name, in a Python file, in a YAML file, and those of runs."""

from __future__ import annotations

import os
import py_compile
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from askance.errors import ConfigError, UsageError
from askance.evals import Run, Task, evaluate, find_task, task_of
from askance.evals.task_catalog import packaged
from tests.house import SUITES

ONE = '''\
from askance.evals import Sample, Task, right_or_wrong

def solve(sample):
    return True

class {kind}(Task):
    """Whether it is so."""

    name = "own/{name}"
    count: int = 2

    def samples(self):
        return [Sample(id=str(each), target=True) for each in range(self.count)]

    def solver(self):
        return solve

    def scorer(self):
        return right_or_wrong()
'''


def one(name: str) -> str:
    return ONE.format(name=name, kind=name.title())


def write(name: str, text: str) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_the_packaged_tasks_say_what_they_are() -> None:
    tasks = packaged()

    assert {"pittads/aor", "pittads/arr-multi", "pittads/arr-single", "pittads/asr", "pittads/mac"} <= tasks.keys()
    assert [
        name for name, definition in tasks.items() if not definition.summary() or "data" not in definition.takes()
    ] == []
    assert find_task("pittads/mac") is tasks["pittads/mac"]


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_shows_every_task_that_one_of_its_modules_defines(suite: str) -> None:
    package = import_module(suite)
    modules = [import_module(f"{suite}.{each.name}") for each in iter_modules(package.__path__)]

    names = {
        name
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Task) and value.name and value.__module__ == module.__name__
    }
    assert names
    assert names <= {*package.__all__}, f"add them to {suite.replace('.', '/')}/__init__.pyi"


def test_a_task_is_found_in_its_python_file() -> None:
    write("one.py", one("alone"))

    definition = find_task("one.py")

    assert (definition.name, definition.summary()) == ("own/alone", "Whether it is so.")
    assert definition.origin() == {"task": "one.py@own/alone"}
    assert [find_task("one.py@own/alone").name, len(definition(count=3).samples())] == ["own/alone", 3]


def test_of_several_tasks_one_is_named() -> None:
    text = one("first") + one("second").partition("\n")[2]
    write("two.py", text)

    assert find_task("two.py@own/second").name == "own/second"
    with pytest.raises(UsageError, match=r"has 2 tasks\. Name one: 'two\.py@own/first', 'two\.py@own/second'"):
        find_task("two.py")


def test_what_a_file_takes_from_another_is_not_its_own() -> None:
    write("lib.py", one("lent"))
    write("borrower.py", "from askance.evals import find_task\nlent = find_task('lib.py')\n")

    with pytest.raises(UsageError, match=r"The file 'borrower\.py' has no task\."):
        find_task("borrower.py")


WRONG = {
    "near": ("pittads/mcc", r"There is no task 'pittads/mcc'\. Near it: pittads/mac"),
    "far": ("zebra", r"There is no task 'zebra'\. .*A task of your own is named by its file"),
    "no file": ("gone.py", r"There is no file 'gone\.py'"),
    "no such task": ("one.py@other", r"has no task 'other'\. It has 'one\.py@own/one'"),
    "no python": ("broken.py", r"The file 'broken\.py' cannot be loaded: SyntaxError"),
    "raises": ("raises.py", r"The file 'raises\.py' cannot be loaded: ZeroDivisionError: division by zero"),
    "no yaml": ("gone.yaml", r"'gone\.yaml' cannot be read: No such file"),
}


@pytest.mark.parametrize(("name", "message"), WRONG.values(), ids=WRONG)
def test_what_is_not_found_is_told(name: str, message: str) -> None:
    write("one.py", one("one"))
    write("broken.py", "def")
    write("raises.py", "1 / 0")

    with pytest.raises(UsageError, match=message):
        find_task(name)


def test_files_may_use_one_name_but_not_that_of_a_packaged_task() -> None:
    here, there = (find_task(write(name, one("twin"))) for name in ("here.py", "there.py"))

    assert [here.origin()["task"], there.origin()["task"]] == ["here.py@own/twin", "there.py@own/twin"]
    with pytest.raises(UsageError, match="has a name of a suite's"):
        find_task(write("bold.py", one("mac").replace("own/", "pittads/")))


# --- the tasks of runs ---


@pytest.fixture
def run() -> Run:
    return evaluate(find_task(write("mine.py", one("mine")))(), out="run")


def test_a_run_says_where_its_task_is(run: Run) -> None:
    assert run.origin == {"task": "mine.py@own/mine"}
    assert task_of(run).name == "own/mine"


def elsewhere(run: Run, place: str) -> Run:
    """`run` of a task that this process knows nothing of."""
    return Run(path=run.path, configuration={**run.configuration, "task": "own/else"}, origin={"task": place})


def test_a_task_that_has_moved_is_named_anew(run: Run) -> None:
    with pytest.raises(UsageError, match=r"of the run 'run' is not found: There is no file 'gone\.py'.*--task"):
        task_of(elsewhere(run, "gone.py@own/else"))

    assert task_of(elsewhere(run, "gone.py@own/else"), "mine.py").name == "own/mine"


@pytest.mark.parametrize("place", ["evil.py", "run/evil.py", "code/evil.py", "../evil.py"])
def test_python_that_only_a_run_names_is_not_run(place: str, run: Run) -> None:
    marker = Path("was-run").resolve()
    evil = write(place, f"open({str(marker)!r}, 'w')\n")

    with pytest.raises(ConfigError) as caught:
        task_of(elsewhere(run, f"{evil}@own/else"))

    digest = sha256(Path(evil).read_bytes()).hexdigest()
    assert str(caught.value) == (
        f"The run 'run' would run the Python file {str(Path(evil).resolve())!r}, and nobody has agreed to that. "
        f"Read it. `askance trust {evil}` agrees, as does ASKANCE_TRUST={digest}; or name it yourself: `--task {evil}`."
    )
    assert not marker.exists()


def test_python_of_a_run_is_run_by_its_digest(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write("two.py", one("two"))
    digest = sha256(Path(place).read_bytes()).hexdigest()
    monkeypatch.setenv("ASKANCE_TRUST", digest)

    assert task_of(elsewhere(run, f"{place}@own/two")).name == "own/two"
    write("two.py", one("two") + "# another\n")
    with pytest.raises(ConfigError, match="nobody has agreed"):
        task_of(elsewhere(run, f"{place}@own/two"))


def test_what_lies_compiled_beside_a_file_is_not_run() -> None:
    marker = Path("was-run").resolve()
    file = Path(write("mine.py", one("mine")))
    source, time = file.read_bytes(), file.stat()
    file.write_text(f"open({str(marker)!r}, 'w')".ljust(len(source)), encoding="utf-8")
    os.utime(file, ns=(time.st_atime_ns, time.st_mtime_ns))
    py_compile.compile(str(file))
    file.write_bytes(source)
    os.utime(file, ns=(time.st_atime_ns, time.st_mtime_ns))

    assert find_task(str(file)).name == "own/mine"
    assert not marker.exists()


def test_a_packaged_task_needs_no_place() -> None:
    run = Run(path=Path("run"), configuration={"task": "pittads/mac"})

    assert task_of(run) is packaged()["pittads/mac"]
