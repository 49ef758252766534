"""Validation by people: a sheet of options that raters call right or wrong, and the figures of their answers.

After section 7.2 of *Benchmarking VLMs' Reasoning About Persuasive Atypical Images*: raters see the image and every
option, true statements and negatives alike, in a random order. What is true is kept in a file of its own.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from askance import statistics
from askance.amounts import many
from askance.documents import schema_violation
from askance.errors import BadData, UsageError
from askance.evals import label_studio
from askance.evals.report.html import jpeg_uri, self_contained_page
from askance.evals.report.thumbnails import thumbnail
from askance.evals.run_folder import write_whole
from askance.evals.suite.files import read_json, read_table
from askance.evals.suite.selection import draw_ids
from askance.evals.tables import spreadsheet_cell
from askance.prompts import oneline

if TYPE_CHECKING:
    from askance.agents.negative_writer import NegativeKind
    from askance.chat import JsonObject
    from askance.evals.negatives.option_sets import OptionSet
    from askance.images import Image
    from askance.statistics import Agreement, Estimate

IMAGES = 100
"""Images of a sheet, as in the paper."""
SIDE = 480
"""Pixels of a thumbnail's longer side."""
QUESTION = "Is the statement right for the image?"

PAGE, TABLE, KEY = "sheet.html", "sheet.csv", "key.json"
_SCHEMA = Path(__file__).with_name("key.schema.json")

SheetForm: TypeAlias = Literal["page", "label-studio"]
"""For raters: a page and a table that are files by themselves, or tasks of a project in Label Studio."""
RaterAnswer: TypeAlias = Literal["right", "wrong", "unsure"]

_WORDS: Mapping[str, RaterAnswer] = {
    **dict.fromkeys(("right", "true", "yes", "correct", "positive", "1", "r"), "right"),
    **dict.fromkeys(("wrong", "false", "no", "incorrect", "negative", "0", "w"), "wrong"),
    **dict.fromkeys(("unsure", "cannot tell", "?", "unclear", "u"), "unsure"),
}

_BUTTONS: Sequence[tuple[RaterAnswer, str]] = (("right", "Right"), ("wrong", "Wrong"), ("unsure", "Cannot tell"))
"""What can be answered on the page, and how it is labelled."""
_PAGE, _ANSWER = "page", "answer_"
"""In Label Studio: the field that says which image a task is of, and the beginning of the names of its answers."""
_NO_STATEMENT = "(There is no statement here: leave it empty.)"


# --- the sheet ---


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetItem:
    """One statement of a sheet, and what is true of it."""

    id: str
    """What raters see: the place of image and statement in the sheet."""
    key: str
    """The image."""
    text: str
    true: bool
    kind: NegativeKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The statements that raters see, image by image."""

    id: str
    """Digest of the statements in their order; filled sheets name it."""
    items: tuple[SheetItem, ...]
    seed: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """The images, in their order."""
        return tuple(dict.fromkeys(item.key for item in self.items))

    def form(self) -> JsonObject:
        """The content of the key file: what is true."""
        items = [
            {"item": each.id, "image": each.key, "text": each.text, "true": each.true, "kind": each.kind}
            for each in self.items
        ]
        return {"sheet": self.id, "seed": self.seed, "items": items}


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetImage:
    """One image on the page for raters, and its statements."""

    name: str
    """The beginning of the ids of its statements."""
    uri: str | None
    """An address that holds the whole picture; None where it could not be read."""
    statements: tuple[tuple[str, str], ...]
    """Id and text of each."""


def draw_sheet(sets: Sequence[OptionSet], *, count: int = IMAGES, seed: int = 0) -> Sheet:
    """The options of `count` images, images and options in an order drawn with the seed.

    Raises:
        UsageError: no image has a negative.
    """
    by_key = {each.key: each for each in sets if each.negatives}
    if not by_key or count < 1:
        raise UsageError("There is nothing to sample: no image has a negative.", hint="Check the file.")
    keys = [*draw_ids(by_key, size=count, seed=seed)]
    Random(f"{seed}\nimages").shuffle(keys)
    items: list[SheetItem] = []
    for number, key in enumerate(keys, start=1):
        each = by_key[key]
        kinds: dict[str, NegativeKind | None] = {negative.text: negative.kind for negative in each.negatives}
        options = sorted(dict.fromkeys(each.options))
        Random(f"{seed}\n{key}\noptions").shuffle(options)
        for place, text in enumerate(options, start=1):
            true = text in each.true
            items.append(
                SheetItem(id=f"{_page(number)}{_place(place)}", key=key, text=text, true=true, kind=kinds.get(text))
            )
    return Sheet(id=_digest(items), items=tuple(items), seed=seed)


def _page(number: int) -> str:
    return f"p{number:03}"


def _place(number: int) -> str:
    return f"s{number:02}"


def _digest(items: Sequence[SheetItem]) -> str:
    shown = json.dumps([[item.id, item.text] for item in items])
    return sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def write_sheet(
    sheet: Sheet,
    out: Path,
    *,
    images: Callable[[str], Image | None],
    question: str = QUESTION,
    side: int = SIDE,
    to: SheetForm = "page",
) -> tuple[str, ...]:
    """Writes what raters fill in, and `key.json`, which they must not see.

    Raters get `sheet.html` or `sheet.csv`; or a project in Label Studio with the tasks of `label-studio.json` and the
    labelling interface of `label-studio.xml`.

    Args:
        sheet: what is asked.
        out: folder for the files.
        images: finds an image by its key.
        question: asked of every statement.
        side: pixels of the longer side of an image in the page.
        to: for whom it is written.

    Returns:
        Images that could not be shown.

    Raises:
        BadData: none of them could.
    """
    shown = {key: None if (image := images(key)) is None else thumbnail(image, side) for key in sheet.keys}
    missing = tuple(key for key, data in shown.items() if data is None)
    if len(missing) == len(shown):
        raise BadData(
            f"None of the {len(shown):,} images of the sheet could be read, such as {missing[0]!r}.",
            hint="Name the folder that they are in with --images.",
        )
    pictures = [
        SheetImage(
            name=_page(number),
            uri=None if (data := shown[key]) is None else jpeg_uri(data),
            statements=tuple((item.id, oneline(item.text)) for item in sheet.items if item.key == key),
        )
        for number, key in enumerate(sheet.keys, start=1)
    ]
    if to == "page":
        _write_page(sheet, pictures, out, question=question)
    else:
        _write_tasks(sheet, pictures, out, question=question)
    write_whole(out / KEY, json.dumps(sheet.form(), ensure_ascii=False, indent=1) + "\n")
    return missing


def _write_page(sheet: Sheet, pictures: Sequence[SheetImage], out: Path, *, question: str) -> None:
    page = self_contained_page(
        "sheet.html",
        style="sheet.css",
        scripts=("file.js", "sheet.js"),
        sheet=sheet.id,
        question=question,
        images=pictures,
        answers=_BUTTONS,
    )
    write_whole(out / PAGE, page)
    write_whole(out / TABLE, _table(sheet))


def _write_tasks(sheet: Sheet, pictures: Sequence[SheetImage], out: Path, *, question: str) -> None:
    """A task for each image. All have the places of the longest one, and those beyond its statements say so."""
    places = [_place(number) for number in range(1, max(len(each.statements) for each in pictures) + 1)]
    tasks = [
        {
            "sheet": sheet.id,
            _PAGE: picture.name,
            label_studio.QUESTION: question if picture.uri else f"{question} (This image could not be read.)",
            label_studio.IMAGE: picture.uri or "",
            **dict.fromkeys(places, _NO_STATEMENT),
            **{item.removeprefix(picture.name): text for item, text in picture.statements},
        }
        for picture in pictures
    ]
    words = [label for _, label in _BUTTONS]
    fields = [label_studio.ChoiceField(name=_ANSWER + place, texts={place: ""}, choices=words) for place in places]
    label_studio.write_tasks(out, tasks, fields, image=True)


def _table(sheet: Sheet) -> str:
    """The CSV file that can be filled in a spreadsheet."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["sheet", "item", "image", "statement", "answer"])
    numbers = {key: number for number, key in enumerate(sheet.keys, start=1)}
    for item in sheet.items:
        writer.writerow([sheet.id, item.id, numbers[item.key], spreadsheet_cell(oneline(item.text)), ""])
    return file.getvalue()


def read_key(path: Path) -> Sheet:
    """The sheet that a key file belongs to.

    Raises:
        BadData: there is no such file, `write_sheet` did not make it, or it was changed.
    """
    content: Any = read_json(path)
    hint = f"It is what `askance negatives sample` wrote as {KEY!r}."
    if (wrong := schema_violation(content, _SCHEMA, whole="the file")) is not None:
        raise BadData(f"The file {str(path)!r} is no key of a sheet: {wrong}.", hint=hint)
    items = tuple(
        SheetItem(id=each["item"], key=each["image"], text=each["text"], true=each["true"], kind=each["kind"])
        for each in content["items"]
    )
    if content["sheet"] != _digest(items):
        raise BadData(f"The key {str(path)!r} was changed: it does not fit its own sheet.", hint=hint)
    return Sheet(id=content["sheet"], items=items, seed=content["seed"])


# --- the raters' answers ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Rater:
    """One filled sheet."""

    name: str
    answers: Mapping[str, RaterAnswer]
    """By item; those without an answer are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterFigures:
    """The figures of one rater."""

    name: str
    answered: int
    """Items, true statements too."""
    true_negatives: Estimate
    """Of the negatives with an answer, the share called wrong."""
    true_right: Estimate
    """Of the true statements with an answer, the share called right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The figures of all raters, by the majority of those who called an item right or wrong."""

    items: int
    negatives: int
    unanswered: int
    """Negatives that nobody answered; in none of the figures."""
    undecided: int
    """Negatives without a majority; they do not count as true negatives."""
    true_negatives: Estimate
    """Of the answered negatives, the share that the majority calls wrong."""
    if_decided: float | None
    """What that would be if the undecided were all called wrong."""
    true_right: Estimate
    """Of the answered true statements, the share that the majority calls right."""
    by_kind: Mapping[str, Estimate]
    raters: tuple[RaterFigures, ...]
    agreement: tuple[Agreement, ...]
    """Over all items; empty with one rater."""
    called_right: tuple[SheetItem, ...]
    """Negatives that the majority calls right."""

    def form(self) -> JsonObject:
        """The figures as JSON."""
        return asdict(self)


def read_ratings(paths: Sequence[Path], sheet: Sheet) -> tuple[Rater, ...]:
    """The answers in filled CSV files, one rater each, and in exports of Label Studio, one rater an annotator.

    Args:
        paths: `.json` is an export. A rater is called by the name of the file, an annotator by that and the account.
        sheet: what they are answers to.

    Raises:
        BadData: an item or an answer that the sheet does not have, an item twice, another sheet's answers, or none.
    """
    raters: list[Rater] = []
    for path in paths:
        name = _name(path, paths)
        if path.suffix.lower() == ".json":
            rows = {f"{name}:{annotator}": rows for annotator, rows in sorted(_annotator_rows(path, sheet).items())}
        else:
            rows = {name: _table_rows(path)}
        read = [Rater(name=rater, answers=_answers(placed, sheet)) for rater, placed in rows.items()]
        answered = [rater for rater in read if rater.answers]
        if not answered:
            raise BadData(f"The file {str(path)!r} has no answers.", hint="Each answer is right, wrong or unsure.")
        raters += answered
    return tuple(raters)


def _name(path: Path, paths: Sequence[Path]) -> str:
    same = [each for each in paths if each.stem == path.stem]
    return path.stem if len(same) == 1 else str(path)


_PlacedRow: TypeAlias = tuple[str, Mapping[str, str]]
"""Where a row stands, in words, and its sheet, item and answer."""


def _table_rows(path: Path) -> Iterator[_PlacedRow]:
    """The rows of a filled CSV file."""
    for line, row in read_table(path, {"sheet": ("sheet",), "item": ("item",), "answer": ("answer",)}):
        yield f"The file {str(path)!r}, line {line}", row


def _annotator_rows(path: Path, sheet: Sheet) -> Mapping[str, Sequence[_PlacedRow]]:
    """The rows of each annotator in an export of Label Studio. A place without a statement is no item."""
    export: Any = read_json(path)
    if not label_studio.is_export(export):
        raise BadData(
            f"The file {str(path)!r} is no export of Label Studio with annotations.",
            hint="Export the project as JSON or JSON-MIN; a sheet that was filled by hand is a CSV file.",
        )
    names = {_ANSWER + item.id[item.id.index("s") :] for item in sheet.items}
    rows: dict[str, list[_PlacedRow]] = {}
    for page, answered in label_studio.read_annotations(export, str(path), key=_PAGE, names=names).items():
        for each in answered:
            rows.setdefault(each.annotator, []).extend(
                (
                    f"Annotator {each.annotator!r}, {each.where}",
                    {"sheet": str(each.task.get("sheet")), "item": page + place, "answer": word},
                )
                for field, word in each.choices.items()
                if each.task.get(place := field.removeprefix(_ANSWER)) != _NO_STATEMENT
            )
    return rows


def _answers(rows: Iterable[_PlacedRow], sheet: Sheet) -> Mapping[str, RaterAnswer]:
    """The answers of one rater by item."""
    known = {item.id for item in sheet.items}
    answers: dict[str, RaterAnswer] = {}
    seen: set[str] = set()
    for where, row in rows:
        item, answer = row["item"].strip(), row["answer"].strip().lower()
        if row["sheet"].strip() != sheet.id:
            raise BadData(
                f"{where}: this is of the sheet {row['sheet']!r}, not of {sheet.id!r}.", hint="Give its own key."
            )
        if item not in known or item in seen:
            what = "stands there twice" if item in seen else "is not on the sheet"
            raise BadData(f"{where}: the item {item!r} {what}.", hint="Each item of the sheet stands there once.")
        if answer and answer not in _WORDS:
            raise BadData(
                f"{where}: {row['answer']!r} is no answer.", hint="Answers: right, wrong, unsure, or nothing."
            )
        seen.add(item)
        if answer:
            answers[item] = _WORDS[answer]
    return answers


def validate(sheet: Sheet, raters: Sequence[Rater], *, seed: int = 0) -> Validation:
    """The figures of the answers; intervals by a bootstrap over whole images.

    Args:
        sheet: what was asked.
        raters: at least one.
        seed: of the bootstraps.
    """
    verdicts: dict[str, RaterAnswer | None] = {
        item.id: _majority([rater.answers.get(item.id) for rater in raters]) for item in sheet.items
    }
    answered = [item for item in sheet.items if any(item.id in rater.answers for rater in raters)]
    negatives = [item for item in answered if not item.true]
    undecided = sum(verdicts[item.id] is None for item in negatives)
    called_wrong = sum(verdicts[item.id] == "wrong" for item in negatives)
    total = sum(not item.true for item in sheet.items)
    kinds = dict.fromkeys(item.kind for item in negatives if item.kind is not None)
    return Validation(
        items=len(sheet.items),
        negatives=total,
        unanswered=total - len(negatives),
        undecided=undecided,
        true_negatives=_share(negatives, verdicts, "wrong", seed=seed),
        if_decided=(called_wrong + undecided) / len(negatives) if negatives else None,
        true_right=_share([item for item in answered if item.true], verdicts, "right", seed=seed),
        by_kind={
            kind: _share([item for item in negatives if item.kind == kind], verdicts, "wrong", seed=seed)
            for kind in kinds
        },
        raters=tuple(_figures(sheet, rater, seed=seed) for rater in raters),
        agreement=_agreement(sheet, raters, seed=seed) if len(raters) > 1 else (),
        called_right=tuple(item for item in negatives if verdicts[item.id] == "right"),
    )


def _majority(answers: Sequence[RaterAnswer | None]) -> RaterAnswer | None:
    """The answer of the majority of those who decided; None for a tie, and if nobody decided."""
    counts = Counter(answer for answer in answers if answer in {"right", "wrong"})
    if counts["right"] == counts["wrong"]:
        return None
    return "right" if counts["right"] > counts["wrong"] else "wrong"


def _share(
    items: Sequence[SheetItem], verdicts: Mapping[str, RaterAnswer | None], wanted: RaterAnswer, *, seed: int
) -> Estimate:
    values = [float(verdicts[item.id] == wanted) for item in items]
    return statistics.mean_estimate(values, [item.key for item in items], seed=seed, binary=True)


def _figures(sheet: Sheet, rater: Rater, *, seed: int) -> RaterFigures:
    answered = [item for item in sheet.items if item.id in rater.answers]
    return RaterFigures(
        name=rater.name,
        answered=len(answered),
        true_negatives=_share([item for item in answered if not item.true], rater.answers, "wrong", seed=seed),
        true_right=_share([item for item in answered if item.true], rater.answers, "right", seed=seed),
    )


def _agreement(sheet: Sheet, raters: Sequence[Rater], *, seed: int) -> tuple[Agreement, ...]:
    votes = [[rater.answers.get(item.id) for rater in raters] for item in sheet.items]
    how = statistics.Resampling(seed=seed, clusters=[item.key for item in sheet.items])
    figures = [
        statistics.pairwise_agreement(votes, resampling=how),
        statistics.krippendorff_alpha(votes, resampling=how),
    ]
    if len(raters) == 2:
        figures.append(statistics.cohen_kappa([row[0] for row in votes], [row[1] for row in votes], resampling=how))
    return tuple(figures)


def validation_text(validation: Validation) -> str:
    """The figures for people."""
    called = f"{len(validation.called_right):,} called right, {validation.undecided:,} undecided"
    unanswered = f"{validation.unanswered:,} of {validation.negatives:,} unanswered"
    lines = [
        f"True negatives: {_share_text(validation.true_negatives)} by majority; {called}, {unanswered}.",
        f"True statements called right: {_share_text(validation.true_right)}.",
    ]
    lines += [f"  {kind}: {_share_text(share)}" for kind, share in validation.by_kind.items()]
    lines += [
        f"Rater {rater.name}: {rater.answered:,} of {validation.items:,} items; negatives called wrong "
        f"{_share_text(rater.true_negatives)}, true statements called right {_share_text(rater.true_right)}."
        for rater in validation.raters
    ]
    lines += [
        f"Agreement, {each.measure}: {_agreement_text(each)} over {many(each.items, 'item')}."
        for each in validation.agreement
    ]
    lines += [f"Called right: {item.key} [{item.kind or 'unknown'}] {item.text!r}" for item in validation.called_right]
    return "\n".join(lines)


def _share_text(share: Estimate) -> str:
    if share.value is None:
        return "none"
    interval = "" if share.interval is None else f" [{100 * share.interval.low:.2f}, {100 * share.interval.high:.2f}]"
    return f"{100 * share.value:.2f}%{interval} of {share.n:,}"


def _agreement_text(agreement: Agreement) -> str:
    if agreement.value is None:
        return "not defined"
    interval = agreement.interval
    return f"{agreement.value:.3f}" + (f" [{interval.low:.3f}, {interval.high:.3f}]" if interval else "")
