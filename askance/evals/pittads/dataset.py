"""`PittAds`: a folder of the data set as ads to evaluate on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from askance.amounts import many
from askance.errors import BadData, UsageError
from askance.evals.pittads.contents import Ad, Contents
from askance.evals.pittads.descriptions import find_descriptions
from askance.evals.pittads.layout import STATEMENTS, Layout
from askance.evals.pittads.selection import WHICH, ImageDrop, Selection, Which, select
from askance.evals.suite.ids import SMALL_SET, checked_ids, draw_ids, read_ids
from askance.evals.suite.statements import hard_kind

Negatives: TypeAlias = Literal["easy", "hard"]
"""Which wrong options: those of the data set, statements of other images; or written ones (`12 Neg.` and
`18 Hard Neg.` in Table 6)."""

Need: TypeAlias = Literal["options", "true", "labels", "statements", "images"]
"""What a task cannot do without."""

SHOWN = 3
"""Images that a message names at most."""


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
        beside = tuple(path for path in (statements, *named) if path is not None and path.exists())
        stamp = (*layout.stamp, *((str(path), path.stat().st_mtime_ns) for path in beside))
        contents = _contents((layout.folder, statements, named), stamp)
        return cls(contents, which=which, listed=listed_ids(ids), seed=seed if small else None)

    @cached_property
    def selection(self) -> Selection:
        """Which images can be taken, and why the others cannot.

        Raises:
            BadData: a listed image that nothing in the folder knows of, no image left, or a file that cannot be used.
        """
        found = select(self.contents, self._which, self._listed)
        if found.unknown:
            shown = ", ".join(map(repr, found.unknown[:SHOWN])) + (" …" if len(found.unknown) > SHOWN else "")
            raise BadData(
                f"{len(found.unknown):,} of the {len(self._listed or ()):,} listed images match nothing in "
                f"{str(self.folder)!r}: {shown}.",
                hint="Mend the list or take them out; `askance data check pittads DIR --ids FILE` names them all.",
            )
        if not found.keys:
            counts = Counter(found.dropped.values()).most_common()
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts) or "there are none"
            raise BadData(f"No image of {str(self.folder)!r} can be evaluated on: {reasons}.", hint=_CHECK)
        return found

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
                said = has if need in {"options", "true"} else ""
                raise BadData(f"The ads of {str(self.folder)!r} have no {_NEEDED[need]}{said}.", hint=_WAYS[need])


@lru_cache(maxsize=4)
def _contents(key: tuple[Path, Path | None, tuple[Path, ...]], stamp: tuple[object, ...]) -> Contents:  # noqa: ARG001
    """The files of a folder, read once for all tasks of a process, and again where the stamp is another."""
    folder, qa, descriptions = key
    return Contents(Layout.find(folder), qa=qa, descriptions=descriptions)


def _hard(layout: Layout) -> Path:
    """The file of a folder with hard negatives of all kinds.

    Raises:
        BadData: it has none.
    """
    found = next((path for path in layout.of("hard negatives") if hard_kind(path) == "all"), None)
    if found is None:
        folder = layout.folder.as_posix()
        raise BadData(
            f"The folder {str(layout.folder)!r} has no hard negatives.",
            hint=f"Write them: `askance negatives generate {folder} --llm openai:gpt-4o --out {folder}/hard`, with "
            "--ids FILE for some of the images alone.",
        )
    return found


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
