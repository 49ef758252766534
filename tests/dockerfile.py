"""What the Dockerfile copies and runs, without Docker: its lines, and a folder in the place of the image."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def instructions() -> list[tuple[str, str]]:
    """The instructions, and what stands behind each."""
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    found = [line.partition(" ") for line in lines if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in found]


def copied() -> list[tuple[list[str], str]]:
    """The sources in this folder and the target of each COPY from it."""
    words = [rest.split() for word, rest in instructions() if word == "COPY" and not rest.startswith("--from")]
    return [(sources, target) for *sources, target in words]


def copy_into(folder: Path) -> None:
    """Copy to `folder` what the image copies before it builds."""
    for sources, target in copied():
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, folder / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, folder / target)


def run_lines(opt: Path, project: Path, *, extras: str) -> Path:
    """Run each RUN in an environment without variables, with `opt` for `/opt` and `project` for what is copied.

    Returns:
        The folder of commands in which `askance` then is.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    settings = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    # Bytecode, with which an image starts sooner, takes longer here than all else.
    clean = settings | {"PATH": path, "HOME": str(opt), "EXTRAS": extras, "PIP_COMPILE": "0"}
    for word, line in instructions():
        if word == "RUN":
            words = line.replace("/opt/", f"{opt}/").replace('".[', f'"{project}[')
            subprocess.run(["sh", "-euc", words], env=clean, check=True, stdin=subprocess.DEVNULL)
    return opt / "askance" / "bin"
