"""Tasks made of raw annotations, captions and ratings, as Hessel et al. (2023, section 2.1 and appendix C) made theirs.

What is made is a folder in the layout of the published repository, with `manifest.json`, which says what it was made
from and what was left out. Equal inputs and an equal seed give equal bytes, whatever the order of files or rows.

```python
raw = RawContests.open(annotations=Path("all_newyorker_contest_annotations.json"), captions=Path("summaries"))
construct_tasks(raw, embedder="st:paraphrase-MiniLM-L6-v2", seed=0).write(Path("mine"))
```
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from askance.errors import BadData, BadImage
from askance.evals.job import Job
from askance.evals.negatives import HardNegative, OptionSet
from askance.evals.negatives.annotation_artifacts import UNDECIDED, find_artifacts
from askance.evals.newyorker.caption_choice import CaptionChoice, GoodCaption, choose_captions, official_finalists
from askance.evals.newyorker.contest_parts import (
    PARTS,
    RepositorySplit,
    balanced_distractors,
    contest_groups,
    even_parts,
    parts_of_fold,
)
from askance.evals.newyorker.layout import CHOICES, PICTURE_FOLDER, TaskName
from askance.evals.run_folder import check_new, write_whole
from askance.evals.suite.pictures import PictureFiles
from askance.evals.suite.shuffle import stable_hash
from askance.models import get_embedder, run_sync
from askance.models.encoders.search import TextVectors

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.negatives import AnnotationArtifacts
    from askance.evals.newyorker.crowd_ratings import ContestCaptions
    from askance.evals.newyorker.raw_contests import CartoonRecord, RawContests, WrittenExplanation
    from askance.models import Engine
    from askance.models.encoders.embedder import EmbedderLike

OFFICIAL = 3
"""Official finalists of a contest."""
MANIFEST = "manifest.json"

AuditedTask: TypeAlias = Literal["matching", "ranking"]
AUDITED: tuple[AuditedTask, ...] = get_args(AuditedTask)

_FILES: Mapping[TaskName, str] = {
    "matching": "contest_matching_split={}_cleaned.json",
    "ranking": "quality_ranking_split={}_cleaned.json",
    "explanation": "explanation_generation_split={}_cleaned.json",
}


# --- items ---


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingItem:
    """Which of five captions is of the cartoon?"""

    right: GoodCaption
    choices: tuple[GoodCaption, ...]
    """In the order in which they are shown; one of them is `right`."""

    def form(self) -> JsonObject:
        """The item in the repository's shape."""
        return {
            "choices": [{"clean_caption": each.text, "source": each.source} for each in self.choices],
            "contest_number": self.right.contest,
            "correct_idx": self.choices.index(self.right),
        }

    def option_set(self) -> OptionSet:
        """The item as the audit of wording takes it."""
        return _option_set(self.right, [each.text for each in self.choices])


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingItem:
    """Which of two captions was found better?"""

    winner: GoodCaption
    okay: str
    first: bool
    """Whether the winner is shown first."""

    def form(self) -> JsonObject:
        """The item in the repository's shape."""
        one, other = (self.winner.text, self.okay) if self.first else (self.okay, self.winner.text)
        return {
            "A": one,
            "B": other,
            "contest_number": self.winner.contest,
            "label": "A" if self.first else "B",
            "winner_source": self.winner.source,
        }

    def option_set(self) -> OptionSet:
        """The item as the audit of wording takes it."""
        return _option_set(self.winner, [self.winner.text, self.okay])


def _option_set(right: GoodCaption, texts: Sequence[str]) -> OptionSet:
    key = str(right.contest)
    wrong = (text for text in texts if text != right.text)
    return OptionSet(
        key=key,
        true=(right.text,),
        options=tuple(texts),
        negatives=tuple(HardNegative(key=key, source=right.text, text=text) for text in wrong),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestPart:
    """A fifth of the contests, and the items of their cartoons."""

    number: int
    contests: tuple[int, ...]
    matching: tuple[MatchingItem, ...]
    ranking: tuple[RankingItem, ...]
    explanation: tuple[WrittenExplanation, ...]

    def forms(self, task: TaskName) -> list[JsonObject]:
        """Its items of a task in the repository's shape."""
        part = {"split_idx_for_neg_match": self.number} if task == "matching" else {}
        return [{**each.form(), **part} for each in getattr(self, task)]


# --- items of a part ---


def matching_items(
    captions: Sequence[GoodCaption], groups: Sequence[int], *, seed: int, key: str
) -> list[MatchingItem]:
    """An item of matching for each good caption of a part; each letter is right equally often, but for one.

    Args:
        captions: of the part.
        groups: of each caption the group of its contest.
        seed: of distractors and their order.
        key: of the part.

    Raises:
        UsageError: the part is too small.
    """
    items: list[MatchingItem] = []
    wrong = balanced_distractors(groups, seed=seed, key=key)
    turns = _turns(captions, CHOICES["matching"], seed=seed, key=key)
    for right, places, turn in zip(captions, wrong, turns, strict=True):
        hashes = {stable_hash(seed, right.contest, right.text, captions[place].text): place for place in places}
        others = [captions[hashes[each]] for each in sorted(hashes)]
        items.append(MatchingItem(right=right, choices=(*others[:turn], right, *others[turn:])))
    return items


def ranking_items(captions: Sequence[GoodCaption], okay: Sequence[str], *, seed: int, key: str) -> list[RankingItem]:
    """An item of ranking for each good caption of a part; A and B are right equally often, but for one.

    Args:
        captions: of the part, those that have an okay caption.
        okay: the okay caption of each.
        seed: of the order of the two.
        key: of the part.
    """
    turns = _turns(captions, CHOICES["ranking"], seed=seed, key=key)
    triples = zip(captions, okay, turns, strict=True)
    return [RankingItem(winner=winner, okay=text, first=turn == 0) for winner, text, turn in triples]


def _turns(captions: Sequence[GoodCaption], count: int, *, seed: int, key: str) -> list[int]:
    """For each caption the place, from 0, of the right answer; places are drawn, and come equally often."""
    hashes = [stable_hash(seed, key, "place", each.contest, each.text) for each in captions]
    turns = {one: turn % count for turn, one in enumerate(sorted(hashes))}
    return [turns[one] for one in hashes]


# --- all together ---


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstructedTasks:
    """The tasks, and what is to be said of how they were made."""

    parts: tuple[ContestPart, ...] = field(repr=False)
    cartoons: Mapping[int, CartoonRecord] = field(repr=False)
    seed: int
    manifest: JsonObject
    """What they were made from, what was made, and what was left out."""

    def counts(self, task: TaskName, fold: int) -> dict[RepositorySplit, int]:
        """How many items each split of a fold has."""
        return {
            split: sum(len(getattr(self.parts[number], task)) for number in numbers)
            for split, numbers in parts_of_fold(fold).items()
        }

    def option_sets(self, task: AuditedTask) -> list[OptionSet]:
        """All items of a task as the audit of wording takes them."""
        return [each.option_set() for part in self.parts for each in getattr(part, task)]

    def write(self, folder: Path, *, pictures: Path | None = None) -> tuple[int, ...]:
        """Writes the files; the manifest comes last.

        Args:
            folder: a new or empty one.
            pictures: folder with pictures that are named by their contest; those of the tasks are copied.

        Returns:
            Contests without a picture that can be read; all where no folder is named.

        Raises:
            UsageError: the folder holds something.
            BadData: there is no such folder of pictures.
            StoreError: a file cannot be written.
        """
        check_new(folder)
        files = PictureFiles({}) if pictures is None else _pictures(pictures)
        used = [contest for part in self.parts for contest in part.contests]
        for fold in range(PARTS):
            splits = parts_of_fold(fold)
            for task, name in _FILES.items():
                rows = {
                    split: [row for number in splits[split] for row in self.parts[number].forms(task)]
                    for split in splits
                }
                if any(rows.values()):
                    _write(folder / "tasks" / name.format(fold), rows)
            _write(
                folder / "annotations_per_split" / f"split={fold}_newyorker_contest_annotations.json",
                self._records(splits),
            )
        missing = tuple(sorted(contest for contest in used if not _copied(contest, files, folder / PICTURE_FOLDER)))
        pictures_said = {"copied": len(used) - len(missing), "missing": ranges(missing)}
        _write(folder / MANIFEST, {**self.manifest, "pictures": pictures_said})
        return missing

    def _records(self, splits: Mapping[RepositorySplit, Sequence[int]]) -> JsonObject:
        """What is known of the cartoons of a fold: all that people wrote for training, one of each for the others."""
        forms = {
            contest: self.cartoons[contest].form if split == "train" else self.cartoons[contest].fixed(self.seed)
            for split, numbers in splits.items()
            for number in numbers
            for contest in self.parts[number].contests
        }
        return {str(contest): forms[contest] for contest in sorted(forms)}


def _write(path: Path, form: object) -> None:
    write_whole(path, json.dumps(form, ensure_ascii=False, indent=1) + "\n")


def _pictures(folder: Path) -> PictureFiles:
    if not folder.is_dir():
        raise BadData(f"There is no folder {str(folder)!r}.", hint="Name the folder with 1.jpeg, 2.jpeg and so on.")
    return PictureFiles.scan(folder)


def _copied(contest: int, pictures: PictureFiles, folder: Path) -> bool:
    """Copies the picture of a contest; False where there is none, or a file that is no picture."""
    try:
        image = pictures.load(str(contest))
        if image is None or not image.info:
            return False
    except BadImage:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{contest}{pictures.by_stem[str(contest)].path.suffix.lower()}").write_bytes(image.data)
    return True


def construct_tasks(
    raw: RawContests,
    *,
    embedder: EmbedderLike | None = None,
    seed: int = 0,
    unrated: bool = False,
    engine: Engine | None = None,
) -> ConstructedTasks:
    """Makes the tasks; see `aconstruct_tasks`."""
    return run_sync(aconstruct_tasks(raw, embedder=embedder, seed=seed, unrated=unrated, engine=engine))


async def aconstruct_tasks(
    raw: RawContests,
    *,
    embedder: EmbedderLike | None = None,
    seed: int = 0,
    unrated: bool = False,
    engine: Engine | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> ConstructedTasks:
    """Makes the tasks.

    Args:
        raw: what they are made of. Contests without annotations are left out.
        embedder: tells captions of like meaning; None compares their words alone. The authors' is
            `st:sentence-transformers/paraphrase-MiniLM-L6-v2`.
        seed: of everything that is drawn.
        unrated: whether captions that nobody rated can be okay captions.
        engine: whose records and mode are used.
        on_progress: called after each contest whose captions are chosen, with the number of these, and of all.

    Raises:
        BadData: a file of captions cannot be read.
        UsageError: there are too few contests.
        CallError: the embedder failed.
    """
    recorded = None if embedder is None else get_embedder(embedder, engine=engine)
    vectors = None if recorded is None else TextVectors(recorded)
    log = _ConstructionLog()

    async def choose(contest: int) -> CaptionChoice:
        official = official_finalists(raw.cartoons[contest])
        submitted = raw.captions.read(contest) if contest in raw.captions.files else None
        choice = await choose_captions(contest, official, submitted, vectors=vectors, seed=seed, unrated=unrated)
        log.take(raw.cartoons[contest], submitted, choice)
        return choice

    job = Job(items=[*raw.cartoons], answer=choose, room=lambda: 1, on_progress=on_progress)
    chosen = {choice.contest: choice for choice in await job.run() if choice.good}
    groups = contest_groups(each for choice in chosen.values() for each in choice.good)
    explained = Counter(each.contest for each in raw.explanations)
    items = {contest: (len(choice.good), len(choice.okay), explained[contest]) for contest, choice in chosen.items()}
    parts = tuple(
        _part(number, [chosen[contest] for contest in contests], groups, seed=seed, explanations=raw.explanations)
        for number, contests in enumerate(even_parts(groups, items, seed=seed))
    )
    tasks = ConstructedTasks(parts=parts, cartoons=raw.cartoons, seed=seed, manifest={})
    how: JsonObject = {
        "made_by": "askance newyorker build",
        "seed": seed,
        "embedder": None if recorded is None else recorded.form(),
        "unrated": unrated,
    }
    return replace(tasks, manifest={**how, **log.form(raw, groups), **_results(tasks)})


def _part(
    number: int,
    chosen: Sequence[CaptionChoice],
    groups: Mapping[int, int],
    *,
    seed: int,
    explanations: Sequence[WrittenExplanation],
) -> ContestPart:
    contests = tuple(each.contest for each in chosen)
    good = [each for choice in chosen for each in choice.good]
    pairs = [(each, choice.okay[each.text]) for choice in chosen for each in choice.good if each.text in choice.okay]
    winners, okay = [winner for winner, _ in pairs], [text for _, text in pairs]
    members = [groups[each.contest] for each in good]
    return ContestPart(
        number=number,
        contests=contests,
        matching=tuple(matching_items(good, members, seed=seed, key=f"matching {number}")),
        ranking=tuple(ranking_items(winners, okay, seed=seed, key=f"ranking {number}")),
        explanation=tuple(each for each in explanations if each.contest in contests),
    )


# --- what is said of it ---


@dataclass(kw_only=True)
class _ConstructionLog:
    """What happened to contests and captions."""

    finalists: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    no_good: list[int] = field(default_factory=list[int])
    no_ranking: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    captions: Counter[str] = field(default_factory=Counter[str])
    digests: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, cartoon: CartoonRecord, submitted: ContestCaptions | None, choice: CaptionChoice) -> None:
        """Notes one contest."""
        contest = cartoon.contest
        official = sum(each.source == "official_winner" for each in choice.good)
        if official != OFFICIAL:
            self.finalists.setdefault(str(official), []).append(contest)
        if submitted is not None:
            self.captions.update({f"rows with {reason}": count for reason, count in submitted.left_out.items()})
            self.digests |= submitted.digests
        self.captions.update(choice.counts)
        if not choice.good:
            self.no_good.append(contest)
        elif choice.why_no_okay is not None:
            self.no_ranking.setdefault(choice.why_no_okay, []).append(contest)

    def form(self, raw: RawContests, groups: Mapping[int, int]) -> JsonObject:
        """As JSON: inputs, what is odd about them, and what was left out."""
        shared: dict[int, list[int]] = {}
        for contest, group in sorted(groups.items()):
            shared.setdefault(group, []).append(contest)
        return {
            "inputs": {**raw.digests, **dict(sorted(self.digests.items()))},
            "submitted_captions": dict(sorted(self.captions.items())),
            "contests_that_share_a_caption": [ranges(each) for each in shared.values() if len(each) > 1],
            "contests_with_other_than_three_official_finalists": _by_reason(self.finalists),
            "contests_left_out": _by_reason(
                {
                    "no good caption": self.no_good,
                    "captions without annotations": [each for each in raw.captions.files if each not in raw.cartoons],
                    "an explanation, and no good caption": [
                        each.contest for each in raw.explanations if each.contest not in groups
                    ],
                }
            ),
            "contests_without_ranking": _by_reason(self.no_ranking),
            "files_without_a_contest": list(raw.captions.nameless),
        }


def _by_reason(contests: Mapping[str, Sequence[int]]) -> JsonObject:
    """By reason how many contests there are, and which."""
    return {
        reason: {"count": len({*contests[reason]}), "contests": ranges(contests[reason])}
        for reason in sorted(contests)
        if contests[reason]
    }


def ranges(numbers: Iterable[int]) -> str:
    """Whole numbers in order, those that follow each other as ranges: `1-3, 7`."""
    spans: list[tuple[int, int]] = []
    for number in sorted({*numbers}):
        first = spans.pop()[0] if spans and spans[-1][1] == number - 1 else number
        spans.append((first, number))
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def _results(tasks: ConstructedTasks) -> JsonObject:
    """What was made, as JSON."""
    good = Counter(each.right.source for part in tasks.parts for each in part.matching)
    alone = {task: artifacts.lengths for task, artifacts in text_alone(tasks).items()}
    return {
        "contests": {"annotated": len(tasks.cartoons), "used": sum(len(part.contests) for part in tasks.parts)},
        "good_captions": dict(sorted(good.items())),
        "items": {task: [tasks.counts(task, fold) for fold in range(PARTS)] for task in _FILES},
        "text_alone": {task: asdict(lengths) for task, lengths in alone.items()},
    }


def text_alone(tasks: ConstructedTasks, *, train: bool = False) -> dict[AuditedTask, AnnotationArtifacts]:
    """What lengths and, if classifiers are trained, the wording of captions say of which is right.

    In matching they say nothing by design; in ranking, what they say is the baseline that a model has to beat.

    Raises:
        MissingExtra: scikit-learn, which trains, is not installed.
    """
    sets = {task: tasks.option_sets(task) for task in AUDITED}
    return {task: find_artifacts(sets[task], train=train) for task in AUDITED if sets[task]}


def wording_accuracy(sets: Sequence[OptionSet], artifacts: AnnotationArtifacts) -> float | None:
    """How often the option that a classifier takes for true is right, without the cartoon; None if none was trained.

    Of equal ones each counts for its share. A guess is right in one of five items of matching, one of two of ranking.
    """
    if not artifacts.probability:
        return None
    right = 0.0
    for each in sets:
        wrong = {text: artifacts.probability[each.key, text] for text in each.options}
        least = min(wrong.values())
        best = [text for text, chance in wrong.items() if chance - least < UNDECIDED]
        right += sum(text in each.true for text in best) / len(best)
    return right / len(sets)
