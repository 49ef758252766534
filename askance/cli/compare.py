"""`askance compare`: two runs on the same samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from askance.cli.eval import AsJson, ConventionOption, TaskPlace
from askance.cli.report import BesideOption, ImagesOption, MegabytesOption, pictures_of, tell

if TYPE_CHECKING:
    from askance.evals.comparing import MetricComparison, Pairing
    from askance.evals.run import Run

SHOWN = 20
"""Differences of configuration that are listed at most."""


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="Folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Folder of another run of the same task.")],
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="What is compared; may be repeated. By default every metric.")
    ] = None,
    convention: ConventionOption = None,
    seed: Annotated[int, typer.Option(help="Of the resampling.")] = 0,
    task: TaskPlace = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write a page: both runs side by side, sample by sample.")
    ] = None,
    images: ImagesOption = None,
    images_mb: MegabytesOption = 24.0,
    beside: BesideOption = False,
    as_json: AsJson = False,
) -> None:
    """Say whether A is better or worse than B, or tied at this size, sample by sample."""
    from askance.errors import UsageError
    from askance.evals.comparing import compare as held_against
    from askance.evals.comparing import differences, paired
    from askance.evals.run import Run

    if images and html is None:
        raise UsageError("`--images` is for a page, and none is asked for.", hint="Add `--html page.html`.")
    a, b = Run.open(first), Run.open(second)
    found = held_against(a, b, metric, task=task, convention=convention.value if convention else None, seed=seed)
    pairing, differing = paired(a, b), [*differences(a, b)]
    if html is not None:
        _write_page(html, a, b, found, images, megabytes=images_mb, beside=beside, quiet=as_json)
    if as_json:
        print(json.dumps(_form(found, pairing, differing)))
    else:
        _print(found, pairing, names_of(a, b))
        _print_differences(differing)


def _write_page(
    out: Path,
    a: Run,
    b: Run,
    found: tuple[MetricComparison, ...],
    images: list[Path] | None,
    *,
    megabytes: float,
    beside: bool,
    quiet: bool,
) -> None:
    """The page of two runs that were compared."""
    from askance.evals.report import build_difference, difference_page
    from askance.evals.report.writing import write_page

    difference = build_difference(a, b, found)
    pictures = pictures_of((difference.a, difference.b), images, megabytes=megabytes)
    size = write_page(
        out, lambda files: difference_page(difference, pictures=pictures, files=files), pictures=pictures, beside=beside
    )
    if not quiet:
        tell(out, size, pictures)


def names_of(a: Run, b: Run) -> tuple[str, str]:
    """What the two runs are called; their folders where their names are one."""
    return (a.name, b.name) if a.name != b.name else (a.path.name, b.path.name)


def _print(found: tuple[MetricComparison, ...], pairing: Pairing, names: tuple[str, str]) -> None:
    from askance.replay import visible

    for each in found:
        print(visible(each.sentence(*names)))
    both, first_alone, second_alone = pairing.answered
    print(
        f"\n{len(pairing.pairs):,} samples in both, {pairing.only_a:,} in the first alone, {pairing.only_b:,} in the "
        f"second alone; {both:,} answered by both, {first_alone:,} by the first alone, {second_alone:,} by the second "
        "alone."
    )
    if pairing.unlike:
        print(f"{pairing.unlike:,} of them were not asked the same: another image, options or target.")


def _print_differences(differing: list[tuple[str, Any, Any]]) -> None:
    from askance.replay import visible

    if not differing:
        print("The two are of one configuration.")
        return
    print("What differs:")
    for place, one, other in differing[:SHOWN]:
        print(visible(f"  {place}: {'–' if one is None else _short(one)} → {'–' if other is None else _short(other)}"))
    if len(differing) > SHOWN:
        print(f"  … and {len(differing) - SHOWN:,} more; `--json` has them all")


def _short(value: Any) -> str:
    if isinstance(value, dict) and "id" in value:  # of a model, who it is
        value = cast("dict[str, Any]", value)["id"]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        return text[:12]
    return text if len(text) <= 60 else f"{text[:59]}…"


def _form(found: tuple[MetricComparison, ...], pairing: Pairing, differing: list[tuple[str, Any, Any]]) -> Any:
    both, first_alone, second_alone = pairing.answered
    return {
        "metrics": [each.form() for each in found],
        "samples": {"both": len(pairing.pairs), "only_a": pairing.only_a, "only_b": pairing.only_b},
        "answered": {"both": both, "only_a": first_alone, "only_b": second_alone},
        "unlike": pairing.unlike,
        "differences": [{"place": place, "a": one, "b": other} for place, one, other in differing],
    }
