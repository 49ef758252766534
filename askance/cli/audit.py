"""The work of `askance negatives audit` and `sample`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from askance.agents import judge_equivalence
from askance.amounts import many
from askance.cli.display import json_text
from askance.cli.exits import OK, SOME
from askance.evals.negatives import (
    AuditOptions,
    Rules,
    aaudit,
    apply,
    audit_text,
    draw_sheet,
    read_key,
    read_negatives,
    read_ratings,
    read_rules,
    validate,
    validation_text,
    write_sheet,
)
from askance.evals.negatives.audit import QUESTION
from askance.evals.negatives.validation import KEY, PAGE, TABLE
from askance.evals.negatives.validation import QUESTION as SHEET_QUESTION
from askance.evals.pittads import Pictures
from askance.evals.unwritable import write_whole
from askance.images import Image
from askance.models import get_embedder
from askance.terminal import printable

if TYPE_CHECKING:
    from askance.agents import JudgeForm
    from askance.cli.options import Calls
    from askance.evals.negatives import Audit, OptionSet
    from askance.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Auditing:
    """The options of one `askance negatives audit`; None is not given."""

    file: Path
    judge: str | None
    judge_form: JudgeForm
    question: str | None
    blind: str | None
    orders: int
    embedder: str | None
    wording: bool
    rules: Path | None
    seed: int
    sidecar: Path | None
    apply: Path | None
    report: Path | None
    as_json: bool


def audit_by(asked: Auditing, calls: Calls) -> int:
    """Audits a file; returns the exit code."""
    sets = read_negatives(asked.file, sidecar=asked.sidecar)
    rules = Rules() if asked.rules is None else read_rules(asked.rules)
    with calls.open(name="negatives") as work:
        named = replace(asked, judge=asked.judge or work.local_model, blind=asked.blind or work.local_model)
        audit = asyncio.run(_audited(named, work, sets=sets, rules=rules))
    form = audit.form()
    if asked.report is not None:
        write_whole(asked.report, json.dumps(form, ensure_ascii=False, indent=1) + "\n")
    print(json_text(form) if asked.as_json else printable(audit_text(audit)))
    print(str(work.tally), file=sys.stderr)
    if asked.apply is None:
        return SOME if audit.decisions["drop"] else OK
    counts = apply(sets, audit, asked.apply)
    by_rule = ", ".join(
        f"{count:,} {rule}" for rule, count in sorted(audit.broken.items()) if rules.actions[rule] == "drop"
    )
    print(
        f"{asked.apply}: {many(counts['kept'], 'negative')} of {many(counts['images'], 'image')}; "
        f"{counts['dropped']:,} dropped "
        f"({by_rule or 'by no rule'}), {many(counts['gone'], 'image')} left out.",
        file=sys.stderr,
    )
    return OK


async def _audited(asked: Auditing, work: Workspace, *, sets: Sequence[OptionSet], rules: Rules) -> Audit:
    judging, blind = (None if name is None else work.model(name) for name in (asked.judge, asked.blind))
    embedder = None if asked.embedder is None else get_embedder(asked.embedder, engine=work.engine)
    if judging is not None:
        await judging.output_mode()
    judge = None
    if judging is not None:
        judge = judge_equivalence(judging, form=asked.judge_form, prompts=work.library)
    try:
        return await aaudit(
            sets,
            AuditOptions(
                judge=judge,
                question=asked.question or QUESTION,
                embedder=embedder,
                blind=blind,
                orders=asked.orders,
                engine=work.engine,
                wording=asked.wording,
            ),
            rules=rules,
            seed=asked.seed,
        )
    finally:
        for each in dict.fromkeys((judging, blind, embedder)):
            if each is not None:
                await each.aclose()


def write_by(
    file: Path,
    images: Path,
    out: Path,
    *,
    count: int,
    seed: int,
    question: str | None,
    sidecar: Path | None,
    as_json: bool,
) -> None:
    """Writes a validation sheet."""
    sheet = draw_sheet(read_negatives(file, sidecar=sidecar), count=count, seed=seed)
    missing = write_sheet(sheet, out, images=finder(images), question=question or SHEET_QUESTION)
    if as_json:
        shown = {"sheet": sheet.id, "images": len(sheet.keys), "items": len(sheet.items), "missing": list(missing)}
        print(json_text(shown))
    else:
        print(printable(f"{out / PAGE}\n{out / TABLE}"))
    print(
        f"{many(len(sheet.items), 'statement')} about {many(len(sheet.keys), 'image')}, "
        f"{len(missing):,} of which cannot be read.\n"
        f"Raters get one of the two files, and never {out / KEY}, which says what is true.",
        file=sys.stderr,
    )


def finder(folder: Path) -> Callable[[str], Image | None]:
    """Finds images by key in a folder, in the layouts of the data set; a key without an ending by its name alone."""
    pictures = Pictures.scan(folder)
    by_stem = {Path(name).stem: keys[0] for name, keys in pictures.by_name.items() if len(keys) == 1}

    def find(key: str) -> Image | None:
        path = pictures.find(key) or pictures.find(by_stem.get(key, key))
        return None if path is None else Image.from_path(path)

    return find


def read_back(key: Path, answers: Sequence[Path], *, seed: int, as_json: bool) -> None:
    """Prints what raters made of a sheet."""
    sheet = read_key(key)
    validation = validate(sheet, read_ratings(answers, sheet), seed=seed)
    print(json_text(validation.form()) if as_json else printable(validation_text(validation)))
