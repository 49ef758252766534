"""`askance cache`: what is on record, cassettes that carry it, and looking after it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askance.amounts import many
from askance.cli.columns import filled, terminal_width
from askance.cli.group import command_group
from askance.cli.options import Records
from askance.cli.process import OK, SOME
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.images.picture_folder import PictureFolder
    from askance.replay import ValidRecords


def _print_left_out(*holders: ValidRecords) -> int:
    """Prints how many damaged records each holder left out; returns the exit code, `SOME` if there are any."""
    code = OK
    for holder in holders:
        if holder.left_out:
            code = SOME
            echo(_left_out_text(holder.left_out, holder.name), err=True)
    return code


def _left_out_text(count: int, name: str) -> str:
    """The message about damaged records that were left out, and what to do."""
    from askance.replay.database import network_file_system

    records = f"1 damaged record of {name!r} is" if count == 1 else f"{count:,} damaged records of {name!r} are"
    take = (
        f"`askance cache merge --skip-damaged {name}` takes the others into a store on a local disk"
        if network_file_system(Path(name)) is not None
        else f"`askance cache prune --damaged --store {name}` takes them out"
    )
    return f"{records} left out: `askance cache verify --store {name}` names them, {take}."


app = command_group("Answers on record: count, export, import, explain, verify.")


def _open(path: str | None, *, read_only: bool = True) -> Any:
    """The store of `--store`, or the default one."""
    from askance.workspace import Workspace

    return Workspace(store=path, mode="replay" if read_only else "auto").records


@app.command()
def stats(store: Records = None) -> None:
    """Count what is on record, by kind, model, outcome and day, and say what it saves to replay it."""
    from askance.models import Config
    from askance.models.factory import configured
    from askance.models.prices import record_cost
    from askance.replay import ValidRecords, savings
    from askance.replay import stats as count

    with _open(store) as records:
        valid = ValidRecords(records)
        counts, saved = count(valid), savings(valid, record_cost(configured(Config.find())))
    echo(f"{records.name}: {many(counts.records, 'record')}, {counts.size / 1e6:.1f} MB")
    names = min(50, (terminal_width() or 88) - 38)  # what the other columns leave
    for title in ("kinds", "models", "outcomes", "days"):
        for name, number in getattr(counts, title).items():
            dollars = f"{f'${saved.models[name]:,.4f}':>16}" if title == "models" and name in saved.models else ""
            echo(f"  {title:<10}{name or 'no date':<{names}}{number:>10,}{dollars}")
    pictures = [] if records.folder is None else [*_kept_pictures(records).kept()]
    if pictures:
        size = sum(each.size for each in pictures) / 1e6
        echo(f"  {'pictures':<10}{f'from the web and from tables, {size:.1f} MB':<{names}}{len(pictures):>10,}")
    saves = f"  Each replay of all of it saves ${saved.dollars:,.4f}{_besides(saved)}."
    echo(filled(saves, width=terminal_width()))
    raise typer.Exit(_print_left_out(valid))


def _kept_pictures(records: Any) -> PictureFolder:
    """The folder of pictures beside the records."""
    from askance.images.picture_folder import PICTURES, PictureFolder

    return PictureFolder(records.beside(PICTURES))


def _besides(saved: Any) -> str:
    unknown = sum(saved.unpriced.values())
    return f", and what {many(unknown, 'answer')} without a known price cost" if unknown else ""


@app.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="The cassette to write; - for stdout.")],
    model: Annotated[str | None, typer.Option(help="Only models whose name holds this, or a pattern with *.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only records of a kind: chat, ocr, endpoint.")] = None,
    since: Annotated[str | None, typer.Option(help="Only records from this date on, 2026-01-31.")] = None,
    images: Annotated[
        list[str] | None,
        typer.Option("--images", help="Put the bytes of the images in this file or folder in as well."),
    ] = None,
    store: Records = None,
) -> None:
    """Write records to a cassette, a JSONL file that replays on any machine."""
    from askance.replay import ValidRecords, export_cassette

    with _open(store) as records:
        target: Any = sys.stdout if str(file) == "-" else file
        valid = ValidRecords(records, check=True)  # one damaged line, and no import takes any of the cassette
        count = export_cassette(
            valid, target, kind=_kind(kind), model=model, since=since, images=_pictures(images or [])
        )
    echo(f"{many(count, 'record')} written to {file}", err=True)
    raise typer.Exit(_print_left_out(valid))


def _kind(name: str | None) -> Any:
    from askance.replay import KINDS

    if name is not None and name not in KINDS:
        raise UsageError(f"There is no kind of record {name!r}.", hint=f"Kinds: {', '.join(sorted(KINDS))}.")
    return name


def _pictures(named: list[str]) -> dict[str, bytes]:
    from askance.cli.inputs import find_pictures
    from askance.images import Image

    pictures = (Image.from_path(path) for path in find_pictures(named)) if named else ()
    return {picture.sha256: picture.data for picture in pictures}


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="The cassette to read.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Where both answer, take the cassette's answer.")
    ] = False,
    store: Records = None,
) -> None:
    """Take the records of a cassette into the store; each line is checked."""
    from askance.replay import import_cassette

    if not file.is_file():
        raise UsageError(f"There is no cassette {str(file)!r}.", hint="`askance cache export FILE` makes one.")
    with _open(store, read_only=False) as records:
        counts = import_cassette(file, records, overwrite=overwrite)
    echo(_import_counts(counts))


def _import_counts(counts: Any) -> str:
    """The counts of an import or a merge, in words."""
    conflicts = len(counts.conflicting)
    end = (
        f", {conflicts:,} answered otherwise ({'replaced' if counts.replaced else 'kept as they were'})"
        if conflicts
        else ""
    )
    damaged = f", {counts.mended:,} in the place of damaged ones" if counts.mended else ""
    damaged += f", {counts.damaged:,} damaged (left where they are)" if counts.damaged else ""
    return f"{counts.new:,} new, {counts.same:,} known{end}{damaged}."


@app.command()
def why(
    key: Annotated[str | None, typer.Argument(help="Key of a record, or its first digits.")] = None,
    last: Annotated[bool, typer.Option("--last", help="The newest record.")] = False,
    store: Records = None,
) -> None:
    """Say why a request was not answered from the records: the nearest other one, and the first difference."""
    from askance.replay import ValidRecords, explain_difference

    if (key is None) == (not last):
        raise UsageError("Name one record.", hint="Give a key (`askance run … --json` prints them), or --last.")
    with _open(store) as records:
        valid = ValidRecords(records)
        record = _newest(valid) if key is None else _record(records, key)
        echo(explain_difference(record, valid))
    raise typer.Exit(_print_left_out(valid))


def _newest(records: Any) -> Any:
    newest = max(records.of_kind("chat"), key=lambda record: record.at, default=None)
    if newest is None:
        raise UsageError(
            f"No chat records are in {records.name!r}.", hint="Run something first, or name another --store."
        )
    return newest


def _record(records: Any, key: str) -> Any:
    from itertools import islice

    wanted = key.strip().lower()
    keys = list(islice((each for each in records.keys() if each.startswith(wanted)), 2))  # noqa: SIM118  # no mapping
    if len(keys) == 1:
        return records.get(keys[0])
    if keys:
        raise UsageError(f"Several records begin with {key!r}.", hint="Give more digits of the key.")
    raise UsageError(
        f"No record in {records.name!r} begins with {key!r}.",
        hint="A request that a replay missed is not on record: its own message says which one is nearest and what "
        "differs. Ask it with `--mode auto`, then look here again; or name another --store.",
    )


@app.command("verify")
def verify_(store: Records = None) -> None:
    """Check that every record parses, matches its key and its schema; exit code 1 where one does not.

    The vectors that encoders keep beside the records are looked at as well.
    """
    from askance.models.encoders.vectors import verify_files
    from askance.replay import verify

    count = 0
    with _open(store) as records:
        for problem in verify(records):
            echo(f"{problem.key[:12] or 'store'}: {problem.message}")
            count += not problem.usable
        for line in () if records.folder is None else verify_files(records.folder):
            echo(line)
            count += 1
        echo(f"{many(len(records), 'record')}, {many(count, 'problem')}.")
    if count:
        raise typer.Exit(SOME)


@app.command("diff")
def diff(
    first: Annotated[Path, typer.Argument(help="Folder of a store, or a cassette.")],
    second: Annotated[Path, typer.Argument(help="Another one.")],
) -> None:
    """Show what only one of two stores or cassettes has on record, or what they answer differently."""
    from collections import Counter

    from askance.replay import ValidRecords
    from askance.replay import diff as compare

    marks = {"first": "-", "second": "+", "both": "≠"}
    counts = Counter[str]()
    with _records(first) as one, _records(second) as other:
        valid = ValidRecords(one), ValidRecords(other)
        for change in compare(*valid):
            counts[change.where] += 1
            record: Any = change.first or change.second
            echo(f"{marks[change.where]} {change.key[:12]}  {record.kind:<9}{record.model}")
    echo(f"{counts['first']:,} only in the first, {counts['second']:,} only in the second, {counts['both']:,} differ.")
    raise typer.Exit(_print_left_out(*valid))


@app.command("merge")
def merge(
    other: Annotated[Path, typer.Argument(help="Folder of a store; it is only read.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Where both answer, take the other's answer.")] = False,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave damaged records where they are, and take the others.")
    ] = False,
    store: Records = None,
) -> None:
    """Take the records of another store into this one; each is checked."""
    from askance.replay import merge as take_in

    with _records(other) as theirs, _open(store, read_only=False) as records:
        counts = take_in(theirs, records, overwrite=overwrite, skip_damaged=skip_damaged)
        echo(_import_counts(counts))
        pictures = None if theirs.folder is None else _kept_pictures(records).take(_kept_pictures(theirs))
    if pictures is not None and any(pictures):
        left = f", {pictures.left:,} left where it is: no picture is in the file" if pictures.left else ""
        echo(f"{many(pictures.new, 'picture')} new, {pictures.known:,} known{left}.")
    raise typer.Exit(SOME if counts.damaged or (pictures is not None and pictures.left) else OK)


@app.command("prune")
def prune(
    older_than: Annotated[
        str | None, typer.Option(help="Records older than a date, 2026-01-31, or an age: 30d, 2w, 12h.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Records of models whose name holds this, or a pattern.")] = None,
    unused_by: Annotated[
        list[Path] | None, typer.Option(help="Records that these run folders do not refer to; may be repeated.")
    ] = None,
    damaged: Annotated[
        bool, typer.Option("--damaged", help="Records that cannot be read, or are not what they claim to be.")
    ] = False,
    pictures: Annotated[
        bool, typer.Option("--pictures", help="In place of records: pictures from the web and tables, by --older-than.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them, and take nothing out.")] = False,
    store: Records = None,
) -> None:
    """Take records out for good: those that answer every description given."""
    from askance.evals import keys_used
    from askance.replay import prune as take_out

    if pictures:
        age = _age_of_pictures(older_than, others=bool(model or unused_by or damaged))
        with _open(store, read_only=dry_run) as records:
            _prune_pictures(_kept_pictures(records), age, dry_run=dry_run)
        return
    used = None if not unused_by else frozenset[str]().union(*map(keys_used, unused_by))
    with _open(store, read_only=dry_run) as records:
        gone = take_out(records, older_than=older_than, model=model, used=used, damaged=damaged, try_only=dry_run)
    echo(f"{many(gone.records, 'record')}, {gone.size / 1e6:.1f} MB, {'would be' if dry_run else 'are'} taken out.")


def _age_of_pictures(older_than: str | None, *, others: bool) -> str:
    """The age of the pictures to take out.

    Raises:
        UsageError: there is none, or something that only records have is given.
    """
    if others:
        raise UsageError(
            "Pictures have no model, no run and no form to go by.", hint="With `--pictures` give `--older-than` alone."
        )
    if older_than is None:
        raise UsageError("Nothing says which pictures to take out.", hint="Give an age: `--pictures --older-than 30d`.")
    return older_than


def _prune_pictures(folder: PictureFolder, older_than: str, *, dry_run: bool) -> None:
    """Takes out the pictures that were fetched before a date; a replay that needs one says how to fetch it again."""
    from askance.replay.maintenance import end_of_age
    from askance.replay.record import record_time

    end = end_of_age(older_than)
    gone = [each for each in folder.kept() if record_time(each.at) < end]
    if not dry_run:
        folder.remove(gone)
    size = sum(each.size for each in gone) / 1e6
    echo(f"{many(len(gone), 'picture')}, {size:.1f} MB, {'would be' if dry_run else 'are'} taken out.")


def _records(path: Path) -> Any:
    from askance.replay import Cassette, open_records

    if path.is_file():
        return Cassette(path)
    if not path.is_dir():
        raise UsageError(f"There is no store {str(path)!r}.", hint="Name the folder of a store, such as .askance.")
    return open_records(path, read_only=True)
