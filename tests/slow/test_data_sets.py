"""Data sets are read as the library `datasets` loads and saves them, in an environment of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import draw
from tests.slow.test_exports import printed

pytestmark = pytest.mark.slow(group="wheel")

READ = """\
import json
from pathlib import Path

import datasets
from askance.data_table import as_list, open_data_table, picture_in
from askance.errors import BadData

def pictures(source, **options):
    rows = open_data_table(source, **options).rows({"image": "image", "label": "label"})
    found = [(picture_in(row["image"]), row["label"]) for row in rows]
    return [[Path(each).read_bytes() if isinstance(each, str) else each, label] for each, label in found]

def refused(source, **options):
    try:
        pictures(source, **options)
    except BadData as error:
        return str(error)

wanted = [[Path(f"folder/train/{name}").read_bytes(), label] for name, label in (("a.png", "x"), ("b.png", "y"))]
loaded = datasets.load_dataset("folder", split="train")
loaded.save_to_disk("saved")
datasets.DatasetDict({"test": loaded, "train": loaded.select([1])}).save_to_disk("splits")
loaded.select([1]).save_to_disk("selected")
loaded.to_parquet("all.parquet")
print(json.dumps({
    "folder": pictures("hf:folder") == wanted,
    "offline": pictures("hf:folder", offline=True) == wanted,
    "saved": pictures("saved") == wanted,
    "split": pictures("hf:splits?split=test") == pictures("splits/test") == wanted,
    "parquet": pictures("all.parquet") == wanted,
    "part": pictures("hf:folder?split=train[:1]") == wanted[:1],
    "selected": refused("selected") or pictures("selected") == wanted[1:],
    "splits": refused("splits"),
    "no split": refused("hf:folder?split=nope"),
    "hub": refused("hf:nobody/nothing", offline=True),
}))
"""


def test_every_form_that_the_library_writes_is_read(installed_python: Path, own_place: Path) -> None:
    draw(own_place / "folder" / "train", "a.png", "b.png")
    (own_place / "folder" / "train" / "metadata.csv").write_text("file_name,label\na.png,x\nb.png,y\n", "utf-8")

    found = printed(installed_python, READ)

    splits, nope, hub = (found.pop(name) for name in ("splits", "no split", "hub"))
    assert splits == "The folder 'splits' holds the splits test, train. Name one: 'splits/test'."
    assert nope.startswith("'hf:folder?split=nope' cannot be loaded: Unknown split")
    assert hub.startswith("'hf:nobody/nothing' cannot be loaded: Couldn't reach 'nobody/nothing' on the Hub")
    assert set(found.values()) == {True}, found
