"""The folder of a run over pictures: each picture's reading is a line in it.

```python
run = read_pictures(chain, {Path("ads/a.jpg"): None}, out=Path("readings"))
```

The same call finishes a run that was interrupted: pictures with an answer in the folder are not asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.errors import BadImage
from askance.evals.picture_run import PictureRun, name_of, questions_form, samples_form
from askance.evals.run_folder import RunFolder, calls_of, records_of
from askance.evals.solver import ChainSolver, prompt_files
from askance.images import Image
from askance.models import run_sync

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.chat import JsonObject
    from askance.evals.picture_run import OnLine, PictureKey, PictureOptions
    from askance.replay import Records


async def aread_pictures(
    chain: Chain, pictures: PictureOptions, *, out: Path | None = None, on_line: OnLine | None = None
) -> PictureRun:
    """Reads every picture by `chain`.

    Args:
        chain: reads the pictures.
        pictures: the pictures with their options.
        out: folder of the run; None keeps only the records.
        on_line: called with every line, also with those that were in the folder before.

    Raises:
        UsageError: the folder holds something else.
        CallError: a model cannot be reached at all, or the first picture failed in a way that all others would.
        StoreError: the records or the folder cannot be read or written.
    """
    folder = (
        None
        if out is None
        else open_folder(out, chain, configuration=configuration_of(chain, pictures), pictures=pictures)
    )
    run = PictureRun(chain, folder=folder, on_line=on_line)
    await run.read(pictures)
    return run


def read_pictures(
    chain: Chain, pictures: PictureOptions, *, out: Path | None = None, on_line: OnLine | None = None
) -> PictureRun:
    """As `aread_pictures`, from anywhere: scripts, threads, notebooks."""
    return run_sync(aread_pictures(chain, pictures, out=out, on_line=on_line))


def open_folder(
    path: Path,
    chain: Chain,
    *,
    configuration: JsonObject,
    pictures: Iterable[PictureKey] = (),
    records: Records | None = None,
) -> RunFolder:
    """The folder of a run over pictures, with its prompts. A line is valid as long as its picture has not changed.

    Args:
        path: of the folder.
        chain: reads the pictures.
        configuration: of the run.
        pictures: those of the run; one that is not among them is looked for at the path that is its name.
        records: hold the records of lines, beside the folder itself; a line that lacks one is read again. None checks
            no line for its records.

    Raises:
        UsageError: it holds another run, or something else.
        StoreError: another process is writing it, or it cannot be written.
    """
    files = {name_of(picture): picture if isinstance(picture, Path) else picture.file for picture in pictures}
    own = records_of(path)

    def keeps(line: Mapping[str, Any]) -> bool:
        lacking = {*calls_of(line)} if records is not None else set[str]()
        for holder in (records, own):
            if lacking and holder is not None:
                lacking -= holder.get_all(lacking).keys()
        return not lacking and _same_picture(line, files=files)

    folder = RunFolder(path, configuration, keeps=keeps)
    folder.keep_prompts(prompt_files(chain.nodes))
    folder.keep_places(files)
    return folder


def configuration_of(chain: Chain, pictures: PictureOptions) -> JsonObject:
    """Everything that decides the lines of a run."""
    return {**ChainSolver(chain).form(), "samples": samples_form(pictures), **questions_form(pictures)}


def _same_picture(line: Mapping[str, Any], *, files: Mapping[str, Path | None]) -> bool:
    """Whether the picture of a line is still the same file content."""
    name = str(line["image"])
    file = files.get(name, Path(name))
    try:
        return file is None or Image.from_path(file).sha256 == line.get("sha256")
    except BadImage:
        return True  # what cannot be read now has not changed: its answer stays
