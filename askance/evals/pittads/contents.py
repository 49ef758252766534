"""What a folder of the data set holds, read when it is first needed and then once, and put together ad by ad."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from askance.errors import BadData
from askance.evals.pittads.annotations import Annotations, Vote, read_annotations
from askance.evals.pittads.descriptions import (
    Descriptions,
    GivenLink,
    Source,
    given_links,
    one_of_each,
    read_descriptions,
)
from askance.evals.pittads.lists import Listed, Votes, named, read_id_list, read_votes
from askance.evals.pittads.pictures import Pictures
from askance.evals.suite.files import Problems, note
from askance.evals.suite.statements import QaFile, read_qa

if TYPE_CHECKING:
    from askance.atypicality import Relation, Statement
    from askance.evals.pittads.layout import Layout, Part

Content = TypeVar("Content")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ad:
    """One ad, and what is known of it."""

    id: str
    """Its key, `9/142269.jpg`."""
    image: Path | None = None
    """None where the folder has no such image."""
    question: str | None = None
    """What is asked, in data that was re-cast."""
    true: tuple[str, ...] = ()
    """True action-reason statements, exactly as written, each once."""
    options: tuple[str, ...] = ()
    """What can be chosen from, true ones included: exactly as written, each once, in the order of the file."""
    labels: tuple[Relation, ...] = ()
    """The relations that any annotator sees, in the order of `askance.atypicality.RELATIONS`."""
    plurality: Relation | None = None
    """The relation that most of those rows say; None on a tie."""
    votes: tuple[Vote | None, ...] = ()
    """What each annotator says: a relation, `NA` for not atypical, None for anything else."""
    statements: tuple[Statement, ...] = ()
    """True atypicality statements: of each row with usable objects, each once."""
    topics: tuple[str, ...] = ()
    """What the annotators say, in order: ids by the abbreviations of their list where there is one."""
    sentiments: tuple[str, ...] = ()
    """The same of the feelings that the ad evokes."""
    strategies: tuple[str, ...] = ()
    """The same of the means of persuasion."""
    slogans: tuple[str, ...] = ()
    """What the annotators would write on the ad."""
    given: Mapping[GivenLink, str | tuple[str, ...]] = field(default_factory=dict[GivenLink, "str | tuple[str, ...]"])
    """Published verbalizations, as links that a chain takes as given."""

    @property
    def negatives(self) -> tuple[str, ...]:
        """The options that are not true; empty where the true ones are hidden."""
        return tuple(option for option in self.options if option not in self.true) if self.true else ()


class Contents:
    """The files of a folder, as values.

    Args:
        layout: where they lie.
        qa: the file of statements; by default the one of release B, else of release A, else of hidden answers.
        descriptions: files with published verbalizations.
        problems: takes what is wrong with files and with single records of them, which then count as missing; without
            it the first is raised.
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
        """The statements; None where there are none."""
        path = self._qa or self.layout.first("statements", "release A statements", "test statements")
        return None if path is None else self._read(read_qa, path)

    @cached_property
    def annotations(self) -> Annotations | None:
        """The atypicality annotations; None where there are none."""
        path = self.layout.first("atypicality")
        return None if path is None else self._read(read_annotations, path)

    @cached_property
    def pictures(self) -> Pictures:
        """The images."""
        return Pictures.scan(self.layout.folder)

    @cached_property
    def descriptions(self) -> Mapping[Source, Descriptions]:
        """Published verbalizations, exactly as written."""
        return one_of_each(map(read_descriptions, self._descriptions))

    @cached_property
    def _said(self) -> Mapping[Part, tuple[Mapping[str, Votes], Mapping[str, Listed]]]:
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
        """Whether any file knows of the image."""
        annotated = self.annotations is not None and key in self.annotations.images
        stated = self.qa is not None and key in self.qa.records
        return annotated or stated or self.pictures.find(key) is not None

    def ad(self, key: str) -> Ad:
        """All that is known of an image."""
        stated = None if self.qa is None else self.qa.records.get(key)
        seen = None if self.annotations is None else self.annotations.images.get(key)
        said = {part: named(votes.get(key, ()), entries) for part, (votes, entries) in self._said.items()}
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
            topics=said["topics"],
            sentiments=said["sentiments"],
            strategies=said["strategies"],
            slogans=said["slogans"],
            given=given_links(key, self.descriptions),
        )
