"""`askance init`: a small project that runs as it is, with the demo's pictures and the model `demo`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from askance.errors import UsageError
from askance.terminal import echo

SETTINGS = """\
# Settings of askance for this folder and those below it.

vlm = "demo"    # a person wrote its answers, about the pictures of this project alone; it needs no key and no network

# A model of yours takes its place: write vlm = "mine", and take the # from these lines.
# [models.mine]
# spec = "openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1"    # a server of your own
# spec = "openai:gpt-4o"                                                  # an API; its key is in OPENAI_API_KEY
# temperature = 0
"""

TASK = """\
# askance eval run claims.yaml --out runs/first
name: claims
summary: Which three of its claims an advertisement argues for.
data: pictures/samples.jsonl    # a line for each picture: its file, its options, the numbers of those that are true
chain: action-reason
count: 3
score: choice
metrics: [precision@3, accuracy]
"""

SCRIPT = """\
import json
from pathlib import Path

from askance.chains import action_reason

pictures = Path(__file__).parent / "pictures"
options = json.loads((pictures / "options.json").read_text(encoding="utf-8"))["brick-cup.jpg"]
chain = action_reason(vlm="demo")  # or a name from askance.toml, or a spec such as "openai:gpt-4o"
reading = chain.invoke({"image": pictures / "brick-cup.jpg", "options": options})
print(reading.statement.value)
for number in reading.answers.unwrap().numbers:
    print(f"{number}. {options[number - 1]}")
"""

_WRITTEN = """\
  askance.toml    settings: here the model `demo`; a person wrote its answers
  claims.yaml     a task: its data, its chain, how answers are scored
  one_picture.py  the chain from Python
  pictures        8 pictures, with options.json and samples.jsonl

It runs with no key and no network:
"""

_NEXT = """\
  askance run action-reason pictures --options pictures/options.json
  askance eval run claims.yaml --out runs/first
  askance report runs/first
  python one_picture.py
Then name a model of yours in askance.toml, and add pictures of yours.
"""


def init(
    folder: Annotated[Path, typer.Argument(help="Where to; it is made.")] = Path(),
) -> None:
    """Begin a project: settings, a task, a script and a few pictures, which run offline; nothing is written over."""
    from askance.cli.output import write_new
    from askance.demo import project_files

    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is no folder.", hint="Name a folder, or one that is not there yet.")
    texts = {"askance.toml": SETTINGS, "claims.yaml": TASK, "one_picture.py": SCRIPT}
    files = {name: text.encode() for name, text in texts.items()}
    write_new(folder, files | {f"pictures/{name}": content for name, content in project_files().items()})
    here = folder.resolve() == Path.cwd()
    echo(f"A project is in {'this folder' if here else str(folder)}:")
    echo(_WRITTEN, end="")
    if not here:
        echo(f"  cd {shlex.quote(str(folder))}")
    echo(_NEXT, end="")
