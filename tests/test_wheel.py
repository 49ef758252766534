"""What a user installs: a wheel, built from the source archive, in a fresh environment far from the sources."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.dockerfile import copy_into, run_lines

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.slow(group="wheel")


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with what `make dist` needs."""
    python = fresh_environment(tmp_path_factory.mktemp("builder") / "venv")
    run(python, "-m", "pip", "install", "--quiet", "build", "hatchling", "twine")
    return python


@pytest.fixture(scope="module")
def wheel(builder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the unpacked source archive: so both have to be whole."""
    folder = tmp_path_factory.mktemp("dist")
    run(builder, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    run(builder, "-m", "twine", "check", "--strict", *folder.iterdir())
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that the lines of the Dockerfile make, with the wheel for the sources."""
    return run_lines(tmp_path_factory.mktemp("installed"), wheel, extras="postgres") / "python"


def test_the_wheel_holds_everything_in_the_package_and_nothing_else(wheel: Path) -> None:
    listed = run("git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "askance").split()
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    published = {f"askance/evals/published/{path.name}" for path in (ROOT / "docs" / "reference").iterdir()}
    assert held == set(listed) | published


def test_what_an_image_copies_makes_the_same_wheel(builder: Path, wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    copy_into(tmp_path)
    run(builder, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path / "built", tmp_path)

    assert zipfile.ZipFile(tmp_path / "built" / wheel.name).namelist() == zipfile.ZipFile(wheel).namelist()


def test_the_demo_runs(installed: Path, own_place: Path) -> None:
    printed = run(installed.with_name("askance"), "demo", cwd=own_place)

    assert [code for code in ("TR1", "TR2", "OIO", "OR") if code not in printed] == []
    assert "written by hand" in printed


def test_the_core_brings_no_torch_and_no_cuda(installed: Path) -> None:
    frozen = run(sys.executable, "-m", "pip", "--python", installed, "freeze")
    names = {line.split("==")[0].lower() for line in frozen.splitlines()}

    assert [name for name in names if name.startswith(("torch", "nvidia", "triton", "cuda"))] == []
    assert "askance" in {name.split(" ")[0] for name in names}
    assert not installed.with_name("pip").exists()


def fresh_environment(folder: Path) -> Path:
    """The Python of a new virtual environment with pip."""
    run(sys.executable, "-m", "venv", folder)
    return folder / "bin" / "python"


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What `command` prints; the test fails with all of it where the command does."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        pytest.fail(f"{command} ended with exit code {done.returncode}:\n{done.stdout}\n{done.stderr}", pytrace=False)
    return done.stdout
