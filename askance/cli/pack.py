"""`askance pack` and `askance replay`: runs in one file, and checking that file on another machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askance.amounts import many
from askance.cli.columns import Report
from askance.cli.process import OK, SOME
from askance.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from askance.evals.analysis.pack import Signature
    from askance.evals.analysis.pack_check import PackCheck, RunCheck


def pack(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished evaluations.", metavar="RUN…")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("runs.pack"),
    images: Annotated[
        list[str] | None,
        typer.Option("--images", help="Put the images in this file or folder in as well; mind their rights."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--sign", help="Sign the pack with this SSH key, through `ssh-keygen`.", metavar="KEY"),
    ] = None,
) -> None:
    """Put finished runs into one file: manifest, samples, scores, records, prompts, tables."""
    from functools import partial

    from askance.cli.inputs import find_pictures
    from askance.evals import Run
    from askance.evals.analysis.pack import sign, write_pack
    from askance.images import Image

    opened = [Run.open(run) for run in runs]
    pictures = map(Image.from_path, find_pictures(images)) if images else ()
    packed = write_pack(opened, out, images=pictures, sign=None if key is None else partial(sign, key=key))
    size = packed.path.stat().st_size / 1e6
    echo(f"{packed.path}: {many(packed.runs, 'run')}, {packed.files} files, {size:.1f} MB")
    echo(f"sha256 of its manifest: {packed.digest}")
    if packed.unused_records:
        echo(f"Nothing in it rests on {many(packed.unused_records, 'record')} of its runs.")


def replay(
    file: Annotated[Path, typer.Argument(help="A file that `askance pack` wrote.", metavar="PACK")],
    again: Annotated[
        bool,
        typer.Option("--rerun", help="Also run the chains again with the prompts of today, and say what differs."),
    ] = False,
    task: Annotated[
        list[str] | None, typer.Option("--task", help="A task of your own that the pack has runs of: my_task.py@name.")
    ] = None,
    signers: Annotated[
        Path | None,
        typer.Option(help="File of the signers that you know, as SSH has it; a pack of nobody among them ends with 1."),
    ] = None,
    tables: Annotated[Path | None, typer.Option(help="Folder to write the tables to.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as one JSON object.")] = False,
) -> None:
    """Hold a pack against its records: read the replies, score them, make the tables; no key, no network, no images.

    Exit codes: 0 all that is derived follows from the records · 1 something does not, is read differently by now or
    cannot be checked, or the signature does not fit · 2 it is no pack.
    """
    from askance.cli.progress import Progress
    from askance.evals.analysis.pack import check_signature, open_pack
    from askance.evals.analysis.pack_check import check_pack
    from askance.evals.task_catalog import find_task
    from askance.models import run_sync

    own = {each.name: each for each in map(find_task, task or [])}
    with open_pack(file) as opened:
        signature = check_signature(opened.manifest, opened.signature, signers=signers)
        with Progress("samples read again") as progress:
            report = run_sync(check_pack(opened, tasks=own, again=again, on_progress=progress.count))
    if tables is not None:
        tables.mkdir(parents=True, exist_ok=True)
        for name, text in report.tables.items():
            (tables / name).write_text(text, encoding="utf-8")
    Report(lambda: _form(report, signature), lambda: _report_lines(report, signature), breaks=False).print(
        as_json=as_json
    )
    if not as_json:
        echo("\n".join(_origins()), err=True)
    trusted = signature.state == "known" if signers is not None else signature.state != "broken"
    raise typer.Exit(OK if report.sound and trusted else SOME)


def _origins() -> Iterator[str]:
    """What of each file follows from the records, and what is only claimed."""
    from askance.evals.analysis.pack_check import FILES

    yield "What follows from the records, and what is only claimed, in each file of a pack:"
    for name, origin in FILES.items():
        parts = (("follows", origin.derived), ("claimed", origin.claimed))
        yield " · ".join((f"  {name}", *(f"{word}: {', '.join(names)}" for word, names in parts if names)))


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _form(report: PackCheck, signature: Signature) -> dict[str, Any]:
    from askance.evals.analysis.pack_check import FILES

    return {
        "sound": report.sound,
        "follows": report.follows,
        "read_otherwise": report.read_otherwise,
        "unchecked": report.unchecked,
        "manifest": report.digest,
        "signature": asdict(signature),
        "differing_tables": list(report.differing),
        "runs": [
            {name: value for name, value in vars(run).items() if name not in {"readers", "why_unchecked"}}
            for run in report.runs
        ],
        "files": {name: asdict(origin) for name, origin in FILES.items()},
        "tables": dict(report.tables),
    }


def _report_lines(report: PackCheck, signature: Signature) -> Iterator[str]:
    for name, text in report.tables.items():
        if name.endswith(".md"):
            yield text
    for run in report.runs:
        yield from _about(run)
    for name in report.differing:
        yield f"✗ The table {name} is not as the pack has it."
    mark = "✗ " if signature.state == "broken" else ""
    yield f"{mark}{signature.words}."
    yield f"Pack with the manifest {report.digest[:12]}: {_verdict(report)}."
    yield f"No pack can show {BEYOND}."


BEYOND = "that a model wrote the replies, that no sample was left out, or that what counts as true is what the data say"
"""What a pack alone cannot show."""


def _verdict(report: PackCheck) -> str:
    from askance.nodes.reply import READERS

    if not report.follows:
        return "it does not follow from its records"
    if report.read_otherwise:
        return f"it is read differently by readers {READERS}"
    if report.unchecked:
        return f"what can be checked follows from its records; {many(report.unchecked, 'sample')} not checked"
    lacking = any(run.lacks for run in report.runs)
    follows = f"{'what can be checked' if lacking else 'all that is derived in it'} follows from its records"
    unused = sum(run.unused_records for run in report.runs)
    return f"{follows}; nothing rests on {unused:,} of them" if unused else follows


def _about(run: RunCheck) -> Iterator[str]:
    mark = "✗" if run.differences else "≠" if run.read_otherwise else "?" if run.unchecked else "✓"
    read = run.samples - run.unchecked
    checked = f"{many(read, 'sample')} read and scored again, {run.records:,} records verified"
    yield f"{mark} {run.name} ({run.task}): {checked}"
    if run.read_otherwise:
        yield f"    its replies were read by readers {run.readers}, as it says"
    if run.unchecked:
        yield f"    {many(run.unchecked, 'sample')} not checked: {run.why_unchecked}"
    if run.unrecorded:
        yield f"    {many(run.unrecorded, 'sample')} without an answer: the calls failed and left no record"
    yield from (f"    {lack}" for lack in run.lacks)
    if run.unused_records and not run.lacks:
        yield f"    nothing rests on {run.unused_records:,} of its records"
    if run.unused_prompts:
        yield f"    run.json names no prompt {_listed(run.unused_prompts)}"
    yield from (f"    {difference}" for difference in (*run.differences, *run.read_otherwise))
    if run.again:
        yield f"  run again: {', '.join(f'{count:,} {change}' for change, count in sorted(run.again.items()))}"
    yield from (f"    {change}" for change in run.changed)
