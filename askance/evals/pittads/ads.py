"""Which ads a task is about, and what of them is given to the chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.atypicality import RELATIONS, Statement
from askance.errors import BadData, UsageError
from askance.evals.pittads.contexts import View, tools_of
from askance.evals.pittads.dataset import PittAds
from askance.evals.suite.context import NOTHING
from askance.evals.suite.options import lot
from askance.images import Image

if TYPE_CHECKING:
    from askance.evals.pittads.contents import Ad
    from askance.evals.pittads.dataset import Need, Negatives
    from askance.evals.pittads.selection import Which


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where ads come from; see `PittAds.open`."""

    data: Path
    ids: Path | Sequence[str] | None = None
    small: bool = False
    seed: int = 0
    which: Which = "usable"
    qa: Path | None = None
    negatives: Negatives = "easy"
    descriptions: Path | Sequence[Path] = ()

    def open(self) -> PittAds:
        """The data."""
        return PittAds.open(
            self.data,
            ids=self.ids,
            small=self.small,
            seed=self.seed,
            which=self.which,
            qa=self.qa,
            negatives=self.negatives,
            descriptions=self.descriptions,
        )

    def form(self) -> dict[str, Any]:
        """What of it tells one run from another; the files do so by what is in them, which the samples show."""
        qa = {} if self.qa is None else {"qa": Path(self.qa).name}
        hard = {} if self.negatives == "easy" else {"negatives": self.negatives}
        return {"which": self.which, "small": self.small, "seed": self.seed, **qa, **hard}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The ads of a task, each with the links that it brings."""

    data: PittAds
    ads: tuple[Ad, ...]
    links: Mapping[str, Mapping[str, Any]]
    """Given links by ad, as JSON values."""
    notes: tuple[str, ...]

    @property
    def given(self) -> tuple[str, ...]:
        """The links that every ad brings."""
        common = set[str].intersection(*(set(links) for links in self.links.values())) if self.links else set[str]()
        return tuple(sorted(common))


def taken(
    source: Source,
    view: View,
    *,
    looks: bool,
    limit: int | None = None,
    needs: Sequence[Need] = (),
    usable: Mapping[str, Callable[[Ad], bool]] | None = None,
) -> Taken:
    """The ads that a task can be run on in a context; what is left out is told in the notes.

    Args:
        source: where they come from.
        view: what the answering model gets.
        looks: whether there is a model that looks at pictures.
        limit: how many at most.
        needs: what at least some of the ads must have.
        usable: conditions on each ad, by what is said of those that do not meet them.

    Raises:
        BadData: none is left, or what `PittAds` says.
        UsageError: the limit is below 1.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"A limit of {limit} leaves no ad.", hint="Give 1 or more.")
    data = source.open()
    data.require(*needs)
    links = {ad.id: links_of(ad, view, seed=source.seed) for ad in data.ads}
    conditions: dict[str, Callable[[Ad], bool]] = {
        **(usable or {}),
        "with no image": lambda ad: ad.image is not None or not _looked_at(view, links[ad.id], looks=looks),
        "that nobody described": lambda ad: looks or not _lacking(view, links[ad.id]),
        "with no atypicality statement to give": lambda ad: (
            view.statement not in {"s_true", "s_wrong"} or "statement" in links[ad.id]
        ),
    }
    left, notes = data.ads, [data.origin]
    for what, holds in conditions.items():
        kept = tuple(ad for ad in left if holds(ad))
        if len(kept) < len(left):
            notes.append(f"{len(left) - len(kept):,} of {len(left):,} ads are left out: those {what}")
        left = kept
    if not left:
        raise BadData(
            f"No ad of {str(source.data)!r} can be used: {'; '.join(notes)}.",
            hint="Give data that has them, or ask for fewer conditions.",
        )
    if limit is not None and limit < len(left):
        notes.append(f"the first {limit:,} of {len(left):,} ads")
        left = left[:limit]
    return Taken(data=data, ads=left, links={ad.id: links[ad.id] for ad in left}, notes=tuple(notes))


def _lacking(view: View, links: Mapping[str, Any]) -> bool:
    """Whether a tool has to be asked."""
    return any(link not in links for link in tools_of(view, described="description" in links))


def _looked_at(view: View, links: Mapping[str, Any], *, looks: bool) -> bool:
    return view.picture or (looks and _lacking(view, links))


def links_of(ad: Ad, view: View, *, seed: int) -> dict[str, Any]:
    """What an ad brings to a context: published verbalizations that it uses, and its own statements, as JSON."""
    if view.blind:
        return {"description": NOTHING}
    used = {*tools_of(view), *(("description",) if view.combined else ())}
    links = {link: list(said) if isinstance(said, tuple) else said for link, said in ad.given.items() if link in used}
    statement = given_statement(ad, view, seed=seed)
    return links if statement is None else {**links, "statement": statement_form(statement)}


def given_statement(ad: Ad, view: View, *, seed: int) -> Statement | None:
    """s⁺ or s̄ where the context gives one: the first true statement, or the same with a relation nobody sees."""
    if view.statement not in {"s_true", "s_wrong"} or not ad.statements:
        return None
    true = ad.statements[0]
    if view.statement == "s_true":
        return true
    wrong = wrong_relations(ad, true, seed=seed)
    return wrong[0] if wrong else None


def wrong_relations(ad: Ad, true: Statement, *, seed: int) -> tuple[Statement, ...]:
    """`true` with each relation that no annotator of the ad sees, in a random order."""
    seen = {*ad.labels, true.relation}
    wrong = [Statement(relation, true.primary, true.secondary) for relation in RELATIONS if relation not in seen]
    return tuple(sorted(wrong, key=lambda statement: lot(seed, ad.id, "relation", statement.relation)))


def statement_form(statement: Statement) -> dict[str, str]:
    """A statement as a chain takes it."""
    return {"relation": statement.relation, "primary": statement.primary, "secondary": statement.secondary}


def image_of(ad: Ad, view: View) -> Image | None:
    """The picture that a sample brings; none where nothing is to be told of it."""
    return None if ad.image is None or view.blind else Image.load(ad.image)
