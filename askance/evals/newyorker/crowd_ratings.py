"""Captions that people sent in for a cartoon, with the votes of the crowd, as nextml/caption-contest-data keeps them.

| file | what is in it |
|---|---|
| `510_LilUCB.csv` | `rank,caption,mean,precision,votes,not_funny,somewhat_funny,funny` |
| `510_summary_LilUCB.csv` | `rank,funny,somewhat_funny,unfunny,count,score,precision,contest,caption` |
| `508-round2_summary_RoundRobin.csv` | the same behind a `target_id` |
| any other `.csv` | a column `caption`: captions without votes |
| `12.txt` | a caption a line, without votes |

A name begins with the number of its contest. Columns may stand in any order. A contest may have several files: one for
each algorithm that chose what was shown to voters, and for contests 508 and 509 one for each round. Their votes are
added up. A second round lists only the best of the first.

Captions are compared and given out as `clean_caption` makes them, and each text comes once.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from askance.agents.negative_writer import normal
from askance.amounts import first_few
from askance.data_table import DataRow, open_data_table
from askance.errors import BadData
from askance.evals.suite.files import files_below, read_bytes, read_text

LONGEST = 1_000
"""Characters of a caption at most; the contest takes 250."""
EXACT = 1e-6
"""By how much the mean in a file may differ from that of its votes."""

_NAME = re.compile(r"0*(\d{1,6})(?!\d)(?:-round(\d))?")
_SUFFIXES = frozenset({".csv", ".tsv", ".txt"})
_COLUMNS = (
    {"funny": "funny", "somewhat": "somewhat_funny", "unfunny": "unfunny", "count": "count", "mean": "score"},
    {"funny": "funny", "somewhat": "somewhat_funny", "unfunny": "not_funny", "count": "votes", "mean": "mean"},
)
"""By what they are, the columns of votes of each schema."""
_QUOTED = re.compile(r'"([^"]*)"([.,!?]*)')
_APOSTROPHE = re.compile(r'(?<=[A-Za-z])"(?=(?:t|s|re|ll|ve|d|m)\b)')
"""A quote within a word, as some files of ratings have it: `He won"t`."""
_MARKS = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "`": "'", "–": "—", "―": "—"}
)


def clean_caption(text: str) -> str:
    """A caption without the quotes around it, in plain typography.

    Official finalists stand in quotes, curly or straight, and captions of the crowd as a rule do not; left in place,
    the quotes would tell which caption won. So do curly apostrophes and kinds of dashes, which are made alike.
    """
    text = unicodedata.normalize("NFC", text).translate(_MARKS).replace("…", "...").replace("--", "—")
    text = " ".join(_APOSTROPHE.sub("'", text).split()).replace(". . .", "...").replace(" ...", "...")
    while (bare := _without_outer_quotes(text)) != text:
        text = bare
    return text


def _without_outer_quotes(text: str) -> str:
    if whole := _QUOTED.fullmatch(text):  # also where the full stop stands behind the quote
        return f"{whole[1].strip()}{whole[2]}"
    if len(text) > 1 and {text[0], text[-1]} <= {'"', "'"} and ('"' in {text[0], text[-1]} or text.count("'") == 2):
        return text[1:-1].strip()
    if text.count('"') % 2 == 0:
        return text
    return text[1:].strip() if text[0] == '"' else text[:-1].strip() if text[-1] == '"' else text


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdVotes:
    """How many people found a caption funny."""

    funny: int
    somewhat_funny: int
    unfunny: int

    @property
    def count(self) -> int:
        """All votes."""
        return self.funny + self.somewhat_funny + self.unfunny

    @property
    def mean(self) -> float:
        """Mean rating, from 1 (unfunny) to 3 (funny)."""
        return (3 * self.funny + 2 * self.somewhat_funny + self.unfunny) / self.count

    def __add__(self, other: CrowdVotes) -> CrowdVotes:
        return CrowdVotes(
            funny=self.funny + other.funny,
            somewhat_funny=self.somewhat_funny + other.somewhat_funny,
            unfunny=self.unfunny + other.unfunny,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedCaption:
    """One caption that people sent in for a contest."""

    text: str
    """Cleaned."""
    votes: CrowdVotes | None
    """None where nobody was asked."""
    best_alone: bool
    """Whether only files of a second round list it, which hold the best of the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestCaptions:
    """What people sent in for one contest."""

    contest: int
    captions: tuple[SubmittedCaption, ...]
    """Each text once, whatever its case and punctuation; ordered by text."""
    digests: Mapping[str, str]
    """By name of a file the sha256 of its bytes."""
    left_out: Mapping[str, int]
    """By reason the rows that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionFolder:
    """The files of captions in a folder; a contest is read when it is asked for."""

    folder: Path
    files: Mapping[int, tuple[Path, ...]]
    """By contest its files, ordered by name."""
    nameless: tuple[str, ...]
    """Names of tables that begin with no number of a contest; they are not read."""

    @classmethod
    def find(cls, folder: Path) -> CaptionFolder:
        """The files in `folder` and up to two levels below.

        Raises:
            BadData: there is no such folder, no file of captions in it, or one file twice.
        """
        if not folder.is_dir():
            raise BadData(
                f"There is no folder {str(folder)!r}.",
                hint="Name the folder with files of captions, such as 510_summary_LilUCB.csv.",
            )
        by_contest: dict[int, list[Path]] = {}
        nameless: list[str] = []
        for path in files_below(folder, deepest=2, most=20_000, takes=lambda name: Path(name).suffix in _SUFFIXES):
            if matched := _NAME.match(path.name):
                by_contest.setdefault(int(matched[1]), []).append(path)
            else:
                nameless.append(path.name)
        if not by_contest:
            raise BadData(
                f"The folder {str(folder)!r} has no file of captions.",
                hint="Their names begin with the number of a contest: 510_summary_LilUCB.csv, 12.txt.",
            )
        files = {
            contest: tuple(sorted(by_contest[contest], key=lambda path: path.name)) for contest in sorted(by_contest)
        }
        for one, other in (pair for paths in files.values() for pair in pairwise(paths)):
            if one.name == other.name:
                raise BadData(
                    f"The file {one.name!r} stands in {str(one.parent)!r} and in {str(other.parent)!r}, and its votes "
                    "would count twice.",
                    hint="Take one of the two out of the folder.",
                )
        return cls(folder=folder, files=files, nameless=tuple(sorted(nameless)))

    def read(self, contest: int) -> ContestCaptions:
        """The captions of a contest, from all of its files.

        Raises:
            BadData: a file cannot be read, has no column of captions, or is about another contest.
        """
        left_out = Counter[str]()
        rows: dict[str, dict[str, CrowdVotes | None]] = {}
        listed = set[str]()
        for path in self.files[contest]:
            second = (matched := _NAME.match(path.name)) is not None and matched[2] == "2"
            for text, votes in _rows(path, contest, left_out):
                key = normal(text)
                texts = rows.setdefault(key, {})
                texts[text] = _sum(texts.get(text), votes)
                if not second:
                    listed.add(key)
        captions = [_merged(texts, best_alone=key not in listed) for key, texts in rows.items()]
        return ContestCaptions(
            contest=contest,
            captions=tuple(sorted(captions, key=lambda caption: caption.text)),
            digests={path.name: sha256(read_bytes(path)).hexdigest() for path in self.files[contest]},
            left_out=dict(sorted(left_out.items())),
        )


def _merged(texts: Mapping[str, CrowdVotes | None], *, best_alone: bool) -> SubmittedCaption:
    """One caption of several spellings: that with most votes, and the votes of all."""
    votes: CrowdVotes | None = None
    for each in texts.values():
        votes = _sum(votes, each)
    text = min(texts, key=lambda text: (-(rated.count if (rated := texts[text]) else 0), text))
    return SubmittedCaption(text=text, votes=votes, best_alone=best_alone)


def _sum(one: CrowdVotes | None, other: CrowdVotes | None) -> CrowdVotes | None:
    return one + other if one and other else one or other


def _rows(path: Path, contest: int, left_out: Counter[str]) -> Iterator[tuple[str, CrowdVotes | None]]:
    """The captions in a file, cleaned, with their votes; rows that cannot be used are counted."""
    rows = _lines(path) if path.suffix == ".txt" else _table(path, contest)
    for caption, votes in rows:
        text = clean_caption(caption)
        if not text:
            left_out["no caption"] += 1
        elif len(text) > LONGEST:
            left_out[f"a caption of more than {LONGEST:,} characters"] += 1
        elif isinstance(votes, str):
            left_out[votes] += 1
        else:
            yield text, votes


def _lines(path: Path) -> Iterator[tuple[str, None]]:
    for line in read_text(path).splitlines():
        if line.strip():
            yield line, None


def _table(path: Path, contest: int) -> Iterator[tuple[str, CrowdVotes | None | str]]:
    """The captions in a table, each with its votes, or with the reason why these cannot be used."""
    table = open_data_table(path)
    if "caption" not in table.columns:
        raise BadData(
            f"The file {str(path)!r} has no column 'caption'.",
            hint=f"It has {first_few([*map(repr, table.columns)], 20)}. A list without a header is saved as "
            f"{path.with_suffix('.txt').name!r}.",
        )
    schema = next((schema for schema in _COLUMNS if {*schema.values()} <= {*table.columns}), None)
    columns = {name: name for name in ("caption", "contest") if name in table.columns} | (schema or {})
    for row in table.rows(columns):
        if (named := row.get("contest", str(contest))) != str(contest):
            raise BadData(
                f"{row.where}: the row is about contest {named!r}, and the name of the file says {contest}.",
                hint="Give each contest files of its own, and let their names begin with its number.",
            )
        yield row.get("caption", ""), None if schema is None else _votes(row)


def _votes(row: DataRow) -> CrowdVotes | str:
    """The votes in a row, or why they cannot be used."""
    try:
        votes = CrowdVotes(funny=int(row["funny"]), somewhat_funny=int(row["somewhat"]), unfunny=int(row["unfunny"]))
        count, mean = int(row["count"]), float(row["mean"])
    except (KeyError, ValueError):
        return "votes that are no numbers"
    if min(votes.funny, votes.somewhat_funny, votes.unfunny) < 0 or votes.count != count:
        return "votes that do not add up"
    if not count:
        return "no votes"
    return votes if abs(votes.mean - mean) <= EXACT else "votes that do not give the mean beside them"
