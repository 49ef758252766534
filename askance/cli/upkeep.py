"""`askance cache diff | merge | prune`: looking after what is on record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askance.amounts import many
from askance.cli.cache import app, opened
from askance.cli.options import Records

if TYPE_CHECKING:
    from askance.models import Config
    from askance.replay import Record


@app.command("diff")
def diff(
    first: Annotated[Path, typer.Argument(help="Folder of a store, or a cassette.")],
    second: Annotated[Path, typer.Argument(help="Another one.")],
) -> None:
    """Show what only one of two stores or cassettes has on record, or what they answer differently."""
    from collections import Counter

    from askance.cli.damaged import say_left_out
    from askance.replay import Sound, visible
    from askance.replay import diff as compare

    marks = {"first": "-", "second": "+", "both": "≠"}
    counts = Counter[str]()
    with _records(first) as one, _records(second) as other:
        sound = Sound(one), Sound(other)
        for change in compare(*sound):
            counts[change.where] += 1
            record: Any = change.first or change.second
            print(visible(f"{marks[change.where]} {change.key[:12]}  {record.kind:<9}{record.model}"))
    print(f"{counts['first']:,} only in the first, {counts['second']:,} only in the second, {counts['both']:,} differ.")
    raise typer.Exit(say_left_out(*sound))


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
    from askance.cli.cache import taken_in
    from askance.cli.exits import OK, SOME
    from askance.replay import merge as take_in

    with _records(other) as theirs, opened(store, read_only=False) as records:
        counts = take_in(theirs, records, overwrite=overwrite, skip_damaged=skip_damaged)
    print(taken_in(counts))
    raise typer.Exit(SOME if counts.damaged else OK)


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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them, and take nothing out.")] = False,
    store: Records = None,
) -> None:
    """Take records out for good: those that answer every description given."""
    from askance.evals import keys_used
    from askance.replay import prune as take_out

    used = None if not unused_by else frozenset[str]().union(*map(keys_used, unused_by))
    with opened(store, read_only=dry_run) as records:
        gone = take_out(records, older_than=older_than, model=model, used=used, damaged=damaged, try_only=dry_run)
    print(f"{many(gone.records, 'record')}, {gone.size / 1e6:.1f} MB, {'would be' if dry_run else 'are'} taken out.")


def _records(path: Path) -> Any:
    from contextlib import nullcontext

    from askance.errors import UsageError
    from askance.replay import MemoryStore, Store

    if path.is_file():
        return nullcontext(MemoryStore.from_cassette(path))
    if not path.is_dir():
        raise UsageError(f"There is no store {str(path)!r}.", hint="Name the folder of a store, such as .askance.")
    return Store.open(path, read_only=True)


def paid(config: Config) -> Any:
    """A function that gives the US dollars that a record cost, at configured or list prices; None where unknown."""
    from contextlib import suppress

    from askance.chat import ModelId, Usage, canonical_json
    from askance.errors import ConfigError
    from askance.models.resolve import named
    from askance.models.spec import BUILT_IN
    from askance.models.spending.prices import list_price

    prices: dict[str, Any] = {}
    for name in (*BUILT_IN, *config.models):
        with suppress(ConfigError):  # a model on this machine whose weights are elsewhere has cost nothing
            settings = named(name, config=config)
            prices[canonical_json(settings.id.canonical())] = settings.price

    def cost(record: Record) -> float | None:
        form: Any = record.request.get("model")
        try:
            price = prices.get(canonical_json(form)) or list_price(ModelId(**form))
            return None if price is None else price.cost(Usage(**record.response.get("usage", {})))
        except (TypeError, ValueError):
            return None

    return cost
