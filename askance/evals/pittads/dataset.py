"""`PittAds`: the ads of a folder, which of them are evaluated on, and why others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, get_args

from askance.amounts import first_few, many
from askance.errors import BadData, UsageError
from askance.evals.negatives.option_sets import read_sidecar, sidecar_of
from askance.evals.pittads.annotations import (
    Annotations,
    Listed,
    Vote,
    Votes,
    named,
    read_annotations,
    read_id_list,
    read_votes,
)
from askance.evals.pittads.descriptions import (
    DescriptionPart,
    Descriptions,
    GivenLink,
    find_descriptions,
    given_links,
    one_of_each,
    read_descriptions,
)
from askance.evals.pittads.layout import STATEMENTS, Layout, Part, Pictures
from askance.evals.suite.choice import OTHER
from askance.evals.suite.files import Problems, note
from askance.evals.suite.image_keys import key_order
from askance.evals.suite.selection import SMALL_SET, checked_ids, draw_ids, read_ids
from askance.evals.suite.statements import QaFile, hard_kind, read_qa

if TYPE_CHECKING:
    from askance.atypicality import Relation, Statement
    from askance.evals.pittads.annotations import AnnotatedImage

Content = TypeVar("Content")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ad:
    """One ad with all data on it."""

    id: str
    """Its key, `9/142269.jpg`."""
    image: Path | None = None
    """None if the folder has no such image."""
    question: str | None = None
    """The question, in WHOOPS! as it was re-cast for this kind of task."""
    true: tuple[str, ...] = ()
    """True action-reason statements, exactly as written, each once."""
    options: tuple[str, ...] = ()
    """All options, with the true ones: exactly as written, each once, in the order of the file."""
    labels: tuple[Relation, ...] = ()
    """The relations that any annotator sees, in the order of `askance.atypicality.RELATIONS`."""
    plurality: Relation | None = None
    """The relation that most of the annotators see; None on a tie."""
    votes: tuple[Vote | None, ...] = ()
    """What each annotator says: a relation, `NA` for not atypical, None for anything else."""
    statements: tuple[Statement, ...] = ()
    """True atypicality statements, from rows with usable objects, each once."""
    topics: tuple[str, ...] = ()
    """What the annotators say, in order: ids by the abbreviations of their list where there is one."""
    sentiments: tuple[str, ...] = ()
    """The same for the feelings that the ad evokes."""
    strategies: tuple[str, ...] = ()
    """The same for the means of persuasion."""
    slogans: tuple[str, ...] = ()
    """What the annotators would write on the ad."""
    given: Mapping[GivenLink, str | tuple[str, ...]] = field(default_factory=dict[GivenLink, "str | tuple[str, ...]"])
    """Published verbalizations, as links of a chain."""

    @property
    def negatives(self) -> tuple[str, ...]:
        """The options that are not true; empty if the true ones are hidden."""
        return tuple(option for option in self.options if option not in self.true) if self.true else ()


class Contents:
    """The content of a folder's files; each is read when it is first needed.

    Args:
        layout: where the files are.
        qa: the file of statements; by default that of release B, else of release A, else the one with hidden answers.
        descriptions: files with published verbalizations.
        problems: takes the errors of files and of single records, which then count as missing; without it the first
            error is raised.
    """

    def __init__(
        self,
        layout: Layout,
        *,
        qa: Path | None = None,
        descriptions: tuple[Path, ...] = (),
        problems: Problems | None = None,
    ) -> None:
        self.layout = layout
        self.qa_is_named = qa is not None
        self._qa = qa
        self._descriptions = descriptions
        self._problems = problems

    @cached_property
    def qa(self) -> QaFile | None:
        """The statements; None if there is no file of them."""
        path = self._qa or self.layout.first("statements", "release A statements", "test statements")
        return None if path is None else self._read(read_qa, path)

    @cached_property
    def annotations(self) -> Annotations | None:
        """The atypicality annotations; None if there is no file of them."""
        path = self.layout.first("atypicality")
        return None if path is None else self._read(read_annotations, path)

    @cached_property
    def pictures(self) -> Pictures:
        """The images."""
        return Pictures.scan(self.layout.folder)

    @cached_property
    def descriptions(self) -> Mapping[DescriptionPart, Descriptions]:
        """Published verbalizations, exactly as written."""
        return one_of_each(map(read_descriptions, self._descriptions))

    @cached_property
    def negative_kinds(self) -> Mapping[tuple[str, str], str | None]:
        """By image and text, the kind of a negative in the named file of statements; None where its sidecar has none.

        That is `negatives.jsonl` beside it; else the name of the file, of one of a single kind beside it or in the
        folder; else the data set's own options. It is empty if no file is named.
        """
        return {} if self._qa is None else dict(self._told_kinds(self._qa))

    def _told_kinds(self, path: Path) -> Iterator[tuple[tuple[str, str], str | None]]:
        """Image and text, and the kind; more certain kinds come later and replace earlier ones."""
        records = read_qa(path).records
        true = {text for record in records.values() for text in record.true}
        yield from (((key, text), OTHER) for key, each in records.items() for text in each.negatives if text in true)
        kinds = [(file, hard_kind(file)) for file in (*self.layout.of("hard negatives"), *_of_one_kind(path), path)]
        for file, kind in [(self.layout.first("statements"), OTHER), *kinds]:
            if file is not None and kind not in {None, "all"}:
                for key, record in read_qa(file).records.items():
                    yield from (((key, text), kind) for text in record.negatives)
        if (sidecar := sidecar_of(path)) is not None:
            yield from ((place, negative.kind) for place, negative in read_sidecar(sidecar).items())

    @cached_property
    def _annotations_by_part(self) -> Mapping[Part, tuple[Mapping[str, Votes], Mapping[str, Listed]]]:
        """Topics and the like by image, and the entries of their id lists."""
        parts: Mapping[Part, Part | None] = {
            "topics": "topics list",
            "sentiments": "sentiments list",
            "strategies": "strategies list",
            "slogans": None,
        }
        return {part: (self._votes(part), self._entries(entries)) for part, entries in parts.items()}

    def _votes(self, part: Part) -> dict[str, Votes]:
        votes: dict[str, Votes] = {}
        for path in reversed(self.layout.of(part)):
            votes.update(self._read(read_votes, path) or {})
        return votes

    def _entries(self, part: Part | None) -> Mapping[str, Listed]:
        path = None if part is None else self.layout.first(part)
        return {} if path is None else self._read(lambda file, _: read_id_list(file), path) or {}

    def _read(self, read: Callable[[Path, Problems | None], Content], path: Path) -> Content | None:
        try:
            return read(path, self._problems)
        except BadData as error:
            note(error, self._problems)
            return None

    def __contains__(self, key: str) -> bool:
        """Whether any file has the image."""
        annotated = self.annotations is not None and key in self.annotations.images
        stated = self.qa is not None and key in self.qa.records
        return annotated or stated or self.pictures.find(key) is not None

    def ad(self, key: str) -> Ad:
        """The ad of an image, with all data on it."""
        stated = None if self.qa is None else self.qa.records.get(key)
        seen = None if self.annotations is None else self.annotations.images.get(key)
        annotated = {
            part: named(votes.get(key, ()), entries) for part, (votes, entries) in self._annotations_by_part.items()
        }
        return Ad(
            id=key,
            image=self.pictures.find(key),
            question=None if stated is None else stated.question,
            true=() if stated is None else tuple(dict.fromkeys(stated.true)),
            options=() if stated is None else tuple(dict.fromkeys(stated.options)),
            labels=() if seen is None else seen.labels,
            plurality=None if seen is None else seen.plurality,
            votes=() if seen is None else seen.votes,
            statements=() if seen is None else seen.statements,
            topics=annotated["topics"],
            sentiments=annotated["sentiments"],
            strategies=annotated["strategies"],
            slogans=annotated["slogans"],
            given=given_links(key, self.descriptions),
        )


Which: TypeAlias = Literal["usable", "labelled", "typical"]
"""Which images: with a row that has one of the four categories and usable names of both objects, as the published code
keeps them; with a row of one of the four categories, as section 4 of the paper says; or those that all annotators find
typical (section 7.2, Table 13)."""

WHICH: Mapping[Which, str] = {
    "usable": "with usable objects",
    "labelled": "with one of the four categories",
    "typical": "that are typical",
}
"""These in a few words."""

ImageDrop: TypeAlias = Literal[
    "not annotated",
    "typical",
    "not typical",
    "none of the four categories",
    "no usable objects",
    "not in the file of statements",
    "in the test set",
]
"""Why an image is not evaluated on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The images to evaluate on, and why others were dropped."""

    keys: tuple[str, ...]
    dropped: Mapping[str, ImageDrop]
    """By image, among those annotated or listed."""
    unknown: tuple[str, ...] = ()
    """Listed images that the folder does not have."""


def select(contents: Contents, which: Which, listed: Sequence[str] | None = None) -> Selection:
    """The images to evaluate on.

    A file of statements with options says which images the set has: in release B it is the training set. Where there is
    none, images that lie in a folder of test images are left out. Without annotations, every image with statements is
    taken.

    Args:
        contents: what the folder holds.
        which: by what the annotators say of them.
        listed: the images that are asked for, in their order; by default all, in the order of shard and number.

    Raises:
        BadData: there are neither annotations nor statements, or typical images are wanted and there are no
            annotations.
    """
    wanted = _all(contents, which) if listed is None else [key for key in listed if key in contents]
    reasons: dict[str, ImageDrop | None] = {key: _drop(key, contents, which) for key in wanted}
    return Selection(
        keys=tuple(key for key, reason in reasons.items() if reason is None),
        dropped={key: reason for key, reason in reasons.items() if reason is not None},
        unknown=tuple(key for key in listed or () if key not in reasons),
    )


def _all(contents: Contents, which: Which) -> Iterable[str]:
    if contents.annotations is not None:
        return sorted(contents.annotations.images, key=key_order)
    if contents.qa is None or which == "typical":
        raise BadData(
            f"The folder {str(contents.layout.folder)!r} has no `final_csv.csv` with atypicality annotations.",
            hint="Put the file there; the paper's authors share it together with their code.",
        )
    return sorted(contents.qa.records, key=key_order)


def _drop(key: str, contents: Contents, which: Which) -> ImageDrop | None:
    if contents.qa is not None and (contents.qa_is_named or contents.qa.shape != "true"):
        if key not in contents.qa.records:
            return "not in the file of statements"
    elif contents.pictures.split(key) == "test":
        return "in the test set"
    if contents.annotations is None:
        return None
    image = contents.annotations.images.get(key)
    return "not annotated" if image is None else judged(image, which)


def judged(image: AnnotatedImage, which: Which) -> ImageDrop | None:
    """Why an image is left out because of its annotations; None if it is not."""
    if which == "typical":
        return None if image.typical else "not typical"
    if image.typical:
        return "typical"
    if not image.labels:
        return "none of the four categories"
    return "no usable objects" if which == "usable" and not image.statements else None


Negatives: TypeAlias = Literal["easy", "hard"]
"""Which wrong options: `easy` ones are statements of other images, from the data set; `hard` ones are generated (`12
Neg.` and `18 Hard Neg.` in Table 6)."""

Need: TypeAlias = Literal["options", "true", "labels", "statements", "images"]
"""Data that a task needs."""

SHOWN = 3
"""How many images a message names at most."""


class PittAds:
    """The ads of a folder; `open` makes one. Files are read when they are first needed, and then once."""

    def __init__(self, contents: Contents, *, which: Which, listed: tuple[str, ...] | None, seed: int | None) -> None:
        self.folder = contents.layout.folder
        self.contents = contents
        self._which: Which = which
        self._listed = listed
        self._seed = seed

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        ids: str | Path | Iterable[str] | None = None,
        small: bool = False,
        seed: int = 0,
        which: Which = "usable",
        qa: str | Path | None = None,
        negatives: Negatives = "easy",
        descriptions: str | Path | Iterable[str | Path] = (),
    ) -> PittAds:
        """The data in a folder.

        Args:
            folder: with `final_csv.csv`, `train/QA_Combined_Action_Reason_train.json` and the images, in any layout.
            ids: a file that lists images (see `read_ids`), or the images themselves; their order is kept.
            small: 250 images, drawn by `seed`: which ones the paper's small set has is not published.
            seed: for `small`.
            which: of the annotated images those with usable objects, those with a label, or the typical ones.
            qa: another file of statements, such as one of hard negatives; a path from here or from the folder.
            negatives: `hard` takes the file of hard negatives of all kinds that the folder has, as `askance negatives
                generate` writes it, in place of the data set's own options.
            descriptions: the authors' description files, or a folder of them, of one model.

        Raises:
            BadData: no such folder or file, no hard negatives in it, or a list of images in which one stands twice.
            UsageError: both `ids` and `small`, both `qa` and hard negatives, or no such negatives.
        """
        if small and ids is not None:
            raise UsageError("Both a list of images and a drawn small set are asked for.", hint="Give one of the two.")
        layout = Layout.find(Path(folder))
        places = [descriptions] if isinstance(descriptions, (str, Path)) else descriptions
        named = tuple(path for place in places for path in find_descriptions(Path(place)))
        if negatives not in get_args(Negatives) or (negatives == "hard" and qa is not None):
            raise UsageError(
                f"The file {str(qa)!r} says itself which options there are."
                if negatives == "hard"
                else f"There are no {negatives!r} negatives.",
                hint="Give `negatives`, `easy` or `hard`, or the file `qa`.",
            )
        statements = None if qa is None else placed(Path(qa), layout.folder)
        if negatives == "hard":
            statements = _hard(layout)
        kinds = [] if statements is None else [*_of_one_kind(statements), sidecar_of(statements)]
        beside = [path for path in (statements, *kinds, *named) if path is not None and path.exists()]
        stamp = (*layout.stamp, *((str(path), path.stat().st_mtime_ns) for path in beside))
        contents = _contents((layout.folder, statements, named), stamp)
        return cls(contents, which=which, listed=listed_ids(ids), seed=seed if small else None)

    @cached_property
    def selection(self) -> Selection:
        """Which images can be taken, and why the others cannot.

        Raises:
            BadData: a listed image that nothing in the folder knows of, no image left, or a file that cannot be used.
        """
        selected = select(self.contents, self._which, self._listed)
        if selected.unknown:
            shown = first_few([*map(repr, selected.unknown)], SHOWN)
            raise BadData(
                f"{len(selected.unknown):,} of the {len(self._listed or ()):,} listed images match nothing in "
                f"{str(self.folder)!r}: {shown}.",
                hint="Mend the list or take them out; `askance data check pittads DIR --ids FILE` names them all.",
            )
        if not selected.keys:
            counts = Counter(selected.dropped.values()).most_common()
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts) or "there are none"
            raise BadData(f"No image of {str(self.folder)!r} can be evaluated on: {reasons}.", hint=_CHECK)
        return selected

    @cached_property
    def ads(self) -> tuple[Ad, ...]:
        """The ads: in the order of the list where one is given, else by shard and number."""
        keys = self.selection.keys
        if self._seed is not None:
            drawn = {*draw_ids(keys, seed=self._seed)}
            keys = tuple(key for key in keys if key in drawn)
        return tuple(map(self.contents.ad, keys))

    @property
    def origin(self) -> str:
        """Which images these are, in words."""
        total = len(self.selection.keys)
        which = "with statements" if self.contents.annotations is None else WHICH[self._which]
        if self._seed is not None:
            return (
                f"{len(self.ads):,} of the {total:,} images {which}, drawn with seed {self._seed}; "
                f"which {SMALL_SET} the paper's small set has is not published"
            )
        return f"{many(total, 'image')} {which}" if self._listed is None else f"{many(total, 'listed image')} {which}"

    @property
    def dropped(self) -> Mapping[str, ImageDrop]:
        """Annotated or listed images that are not taken, and why."""
        return self.selection.dropped

    @property
    def missing_images(self) -> tuple[str, ...]:
        """Ads whose image the folder does not have."""
        return tuple(ad.id for ad in self.ads if ad.image is None)

    def require(self, *needs: Need) -> None:
        """Raises where no ad has what a task needs.

        Raises:
            BadData: the folder lacks a file, or has it of the other release.
        """
        for need in needs:
            name = "image" if need == "images" else need
            if not any(getattr(ad, name) for ad in self.ads):
                has = f": {self.contents.qa.path.name!r} is {self.contents.qa.release}" if self.contents.qa else ""
                which = has if need in {"options", "true"} else ""
                raise BadData(f"The ads of {str(self.folder)!r} have no {_NEEDED[need]}{which}.", hint=_WAYS[need])


@lru_cache(maxsize=4)
def _contents(key: tuple[Path, Path | None, tuple[Path, ...]], stamp: tuple[object, ...]) -> Contents:  # noqa: ARG001
    """The files of a folder, read once for all tasks of a process, and again where the stamp is another."""
    folder, qa, descriptions = key
    return Contents(Layout.find(folder), qa=qa, descriptions=descriptions)


def _of_one_kind(path: Path) -> list[Path]:
    """The files of negatives of one kind that stand beside a file of statements."""
    return sorted(path.parent.glob("*_hard_QA_*.json"))


def _hard(layout: Layout) -> Path:
    """The file of a folder with hard negatives of all kinds.

    Raises:
        BadData: it has none.
    """
    file = next((path for path in layout.of("hard negatives") if hard_kind(path) == "all"), None)
    if file is None:
        folder = layout.folder.as_posix()
        raise BadData(
            f"The folder {str(layout.folder)!r} has no hard negatives.",
            hint=f"Write them: `askance negatives generate {folder} --llm openai:gpt-4o --out {folder}/hard`, with "
            "--ids FILE for some of the images alone.",
        )
    return file


def listed_ids(ids: str | Path | Iterable[str] | None) -> tuple[str, ...] | None:
    """The images that a file lists, or that are given; None for None.

    Raises:
        BadData: what `read_ids` says.
    """
    if ids is None:
        return None
    return read_ids(Path(ids)) if isinstance(ids, (str, Path)) else checked_ids(ids)


def placed(path: Path, folder: Path) -> Path:
    """`path` from here if it is there, else from `folder` or its training part."""
    return next((place for place in (path, folder / path, folder / "train" / path) if place.is_file()), path)


_CHECK = "`askance data check pittads DIR` says what is there and what is missing."
_NEEDED: Mapping[Need, str] = {
    "options": "options to choose from",
    "true": "true statements",
    "labels": "atypicality labels",
    "statements": "atypicality statements",
    "images": "images",
}
_WAYS: Mapping[Need, str] = {
    "options": f"Release B has them: put `{STATEMENTS}` into the folder, or name a file of statements and options.",
    "true": f"Put `{STATEMENTS}` of release B into the folder; the answers of its test set are hidden.",
    "labels": "They are in `final_csv.csv`; typical images have none.",
    "statements": "They are in `final_csv.csv`: a category and the names of two objects.",
    "images": f"Put them into `train_images/` of the folder. {_CHECK}",
}
