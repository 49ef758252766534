"""Few-shot: for each sample, answered questions of other groups, shown to the model before it is asked.

A pool holds the rows of one fold's training part, by group. Of each group at most one row is shown. Rows come from it
in one of five ways:

- `random`: the seed, the fold and the sample decide. Samples can come in any order, be left out, or be answered in a
  later process, and a larger number of examples begins with the same ones. The `official` drawing replays the script of
  the New Yorker paper (`gpt4/gpt4_from_description.py` of its authors), whose draws depend on each other.
- `bm25`: those whose descriptions share rare words with the question's, by BM25 over the pool.
- `knn`: those most like the question, by the cosine of an embedder's vectors: of pictures where the embedder sees
  pictures, else of what is said of them.
- `mmr`: by maximal marginal relevance (Carbonell and Goldstein, *The use of MMR*, SIGIR 1998). One after the other, the
  row is taken with the largest λ · cosine to the question − (1 − λ) · cosine to the nearest row before; λ is 0.7.
- `balanced`: the nearest of each label in turn.

Ties are broken by id, with cosines rounded to six decimals. The nearest example is shown last. The fold and the
embedder decide, and no model is asked. Vectors are on record, so that a replay needs no weights.

Examples are chosen when the samples are made. So the line of a sample holds what was shown, and a run is read again
without the data, the pool or the embedder. How they were chosen is in the sample's trace, which decides nothing.

An example that would leak the answer is refused by name: one of the question's own group or of the fold's test part,
one with the same picture, and a near-duplicate of it.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast

from pydantic import Field
from typing_extensions import override

from askance.agents.negative_writer import normal
from askance.amounts import many
from askance.errors import BadData, UsageError
from askance.evals.evaluation import Computed, Evaluation
from askance.evals.part import Part
from askance.evals.sample import EXAMPLES, SHOTS, Sample
from askance.evals.suite.option_orders import question_id
from askance.evals.suite.shuffle import random_order, stable_hash
from askance.images.image import image_digest
from askance.models import EmbedderLike, get_embedder, run_sync
from askance.models.call_scope import current_scope
from askance.retrieval.bm25 import Bm25

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from askance.chat import JsonObject
    from askance.images import Image
    from askance.models import RecordedEmbedder
    from askance.nodes import Example

    Numbers = NDArray[np.float64]

Row = TypeVar("Row")
Group: TypeAlias = str | int
"""What the rows of a data set are split by, such as the number of a contest."""

ShotsFrom: TypeAlias = Literal["random", "bm25", "knn", "mmr", "balanced"]
"""How examples are chosen; see above."""
ShotsDraw: TypeAlias = Literal["own", "official"]
"""How random examples are drawn: for each sample by itself, or as the authors' script does it for a whole split."""
Leaks: TypeAlias = Literal["refuse", "leave-out"]
"""Whether an example that would give the answer away ends the run, or is left out."""

OFFICIAL_SEED = 2
"""Seed of the authors' script."""
RELEVANCE = 0.7
"""λ of maximal marginal relevance."""
TWINS = 0.97
"""Pictures whose vectors have a cosine above it are taken for one picture, cut or coloured in another way."""
DECIMALS = 6
"""Of cosines, when they are compared."""

SHOTS_NOTE = "Examples before each question are not of the paper; they are of images outside the question's own fold"
"""A note on the figures of a suite whose paper shows no examples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShotFacts:
    """What is known of a question: by it examples like it are found, and leaks are seen."""

    id: str
    group: Group
    text: str = ""
    """What is said of its picture."""
    asked: str = ""
    """What is asked about it, where that differs from question to question; equal ones leak nothing."""
    picture: Callable[[], Image | None] = lambda: None
    """Loads its picture; None where there is none."""
    label: str = ""
    """Its answer, or a class of answers."""

    @property
    def words(self) -> str:
        """What is said and asked: by these words examples are compared."""
        return "\n".join(filter(None, (self.text.strip(), self.asked.strip())))


@dataclass(slots=True, kw_only=True)
class ShotScreen:
    """Keeps from a question those examples that would give its answer away."""

    question: ShotFacts
    leaks: Leaks
    left_out: list[JsonObject] = field(default_factory=list["JsonObject"])
    """What was left out, and why."""

    def passes(self, row: ShotFacts, likeness: float | None = None) -> bool:
        """Whether `row` may be shown.

        Args:
            row: what is known of it.
            likeness: cosine of the two pictures; None where pictures are not compared, and descriptions are instead.

        Raises:
            BadData: it may not, and is not to be left out.
        """
        why = self._why(row, likeness)
        if why is None:
            return True
        if self.leaks == "refuse":
            raise BadData(
                f"The question {self.question.id!r} would be shown the example {row.id!r}, which has {why}.",
                hint="Take one of the two out of the data, or leave such examples out: -T shots_leaks=leave-out.",
            )
        self.left_out.append({"id": row.id, "why": why})
        return False

    def _why(self, row: ShotFacts, likeness: float | None) -> str | None:
        own, shown = self.question.picture(), row.picture()
        if own is not None and shown is not None and image_digest(own) == image_digest(shown) is not None:
            return "the same picture"
        if likeness is not None:
            return f"a near-twin of its picture (cosine {likeness:.3f}, above {TWINS})" if likeness > TWINS else None
        text = plain_words(self.question.text)
        return "the same description" if text and text == plain_words(row.text) else None


@lru_cache(maxsize=4096)
def plain_words(text: str) -> str:
    """A text as it is looked for in others: its words as a reader sees them.

    Case, blanks, punctuation, apostrophes, forms of letters (full width, ligatures) and characters that are not seen
    (zero-width spaces, soft hyphens) make no difference.
    """
    seen = (letter for letter in unicodedata.normalize("NFKC", text) if unicodedata.category(letter) != "Cf")
    return normal("".join(seen)).replace("'", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shots(Generic[Row]):
    """The examples of one question."""

    rows: Sequence[Row]
    """In the order in which they are shown."""
    trace: JsonObject
    """Their ids and groups, how similar they are to the question where that was asked, and what was left out."""


@dataclass(frozen=True)
class ShotPool(Generic[Row]):
    """Rows that examples are drawn from: the training part of one fold.

    Args:
        rows: by group, in the order of the data.
        fold: whose training part it is.
        tested: groups of the fold's test part, none of which may be among the examples.
        noun: what a group is, for messages.

    Raises:
        BadData: a group of the test part is among the rows, or a group has none.
    """

    rows: Mapping[Group, Sequence[Row]]
    _: KW_ONLY
    fold: int = 0
    tested: Collection[Group] = ()
    noun: str = "group"

    def __post_init__(self) -> None:
        leaked = sorted({*self.tested} & self.rows.keys(), key=str)
        if leaked:
            raise BadData(
                f"The examples of fold {self.fold} would be drawn from its own test part, which holds "
                f"{many(len(leaked), self.noun)} of them, such as {leaked[0]!r}.",
                hint="Draw them from the training part of the same fold.",
            )
        empty = next((group for group, rows in self.rows.items() if not rows), None)
        if empty is not None:
            raise BadData(f"The {self.noun} {empty!r} has no rows to show.", hint="Leave it out of the pool.")

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups, sorted."""
        return tuple(sorted(self.rows))

    def draw(
        self, key: str, group: Group, *, count: int, seed: int, usable: Callable[[Row], bool] = lambda _: True
    ) -> tuple[Row, ...]:
        """The examples of one sample: a row each of `count` groups; which ones, seed, fold and `key` decide.

        Args:
            key: of the sample.
            group: of the sample, which may not be in the pool.
            count: of examples.
            seed: of the drawing.
            usable: whether a row may be shown; another group takes the place of one whose row may not.

        Raises:
            BadData: the sample's own group is in the pool, or there are fewer groups than `count`.
        """
        self.check(key, group, count)
        name = f"shots of fold {self.fold}\n{key}"
        groups = random_order(self.groups, seed=seed, key=name)
        rows = (self.rows[each][stable_hash(seed, name, "row", each) % len(self.rows[each])] for each in groups)
        drawn = tuple(islice(filter(usable, rows), count))
        if len(drawn) < count:
            raise self.too_few(count, len(drawn))
        return drawn

    def draw_official(self, groups: Mapping[str, Group], *, count: int) -> dict[str, tuple[Row, ...]]:
        """The examples of all samples of a split, by key, as the authors' script draws them with NumPy's seed 2.

        The script shuffles the split and draws for one sample after the other. Where a reply could not be read, it
        drew that sample's answer in between; nobody knows where it did, so that is not replayed.

        Args:
            groups: the group of each sample by its key, of the whole split in the order of its file.
            count: of examples for each sample.

        Raises:
            BadData: as `draw`.
        """
        import numpy as np  # loading it takes long

        for key, group in groups.items():
            self.check(key, group, count)
        random = np.random.RandomState(OFFICIAL_SEED)
        keys = [*groups]
        random.shuffle(keys)
        drawn: dict[str, tuple[Row, ...]] = {}
        for key in keys:
            places = random.choice(len(self.groups), size=count, replace=False)
            several = [self.rows[self.groups[place]] for place in places]
            drawn[key] = tuple(rows[random.choice(len(rows))] for rows in several)
        return drawn

    def check(self, key: str, group: Group, count: int) -> None:
        """Checks that examples can come from the pool.

        Args:
            key: of the sample.
            group: of the sample.
            count: of examples.

        Raises:
            BadData: the sample's own group is in the pool, or there are fewer groups than `count`.
        """
        if group in self.rows:
            raise BadData(
                f"The examples of {key!r} would be drawn from its own {self.noun} {group!r} too.",
                hint="Draw them from the training part of the same fold.",
            )
        if count > len(self.rows):
            raise self.too_few(count, len(self.rows))

    def too_few(self, count: int, available: int) -> BadData:
        """The error for `count` examples of which only `available` can be shown."""
        return BadData(
            f"{count} examples cannot be drawn from {many(available, self.noun)} of fold {self.fold}.",
            hint=f"Each is of another {self.noun}; give a smaller `shots`.",
        )


class ShotVectors:
    """Vectors of questions, by which examples like them are found.

    Args:
        embedder: makes them: of pictures if it sees pictures, else of what is said of them.
    """

    def __init__(self, embedder: RecordedEmbedder) -> None:
        self.embedder = embedder

    def form(self) -> JsonObject:
        """What is compared, and by whom."""
        compared = "pictures" if self.embedder.sees_pictures else "descriptions"
        return {"embedder": str(self.embedder.id), "compared": compared}

    def needed(self, questions: Sequence[ShotFacts]) -> Computed:
        """The vectors that the choice among `questions` needs.

        Raises:
            BadData: of one of them nothing is known that could be compared.
            BadImage: a picture's file cannot be read.
        """
        compared = self._compared(questions)
        keys, lacking = self.embedder.keys(compared), self.embedder.lacking(compared)
        return Computed(name="vectors", model=self.embedder.id, keys=keys or lacking, lacking=lacking)

    async def of(self, questions: Sequence[ShotFacts]) -> Numbers:
        """Their vectors of length 1, a row each.

        Raises:
            BadData: of one of them nothing is known that could be compared.
            BadImage: a picture cannot be used.
            ReplayMiss: the mode is `replay` and a vector is not on record.
            CallError: the embedder failed, or a record is damaged.
        """
        import numpy as np  # loading it takes long

        compared = self._compared(questions)
        pictures = [each for each in compared if not isinstance(each, str)]
        vectors: Sequence[Sequence[float]] = await asyncio.gather(*map(self.embedder.embed_image, pictures))
        if not pictures:
            vectors = await self.embedder.embed([each for each in compared if isinstance(each, str)])
        rows: Numbers = np.asarray(vectors, dtype=np.float64)
        lengths: Numbers = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        return rows / np.where(lengths > 0, lengths, 1.0)

    def _compared(self, questions: Sequence[ShotFacts]) -> list[str | Image]:
        """What is compared: all pictures, or all texts."""
        sees = self.embedder.sees_pictures
        compared = [(each, each.picture() if sees else each.words) for each in questions]
        silent = next((each for each, known in compared if not known), None)
        if silent is not None:
            why = "it has no picture" if sees else "nothing is said of its picture before the run"
            raise BadData(
                f"{str(self.embedder.id)!r} cannot compare {silent.id!r} with other questions: {why}.",
                hint="A `clip:` embedder compares pictures, any other one the descriptions that the data has; "
                "-T shots_from=random needs neither.",
            )
        return [known for _, known in compared if known]


class Examples(Part):
    """Answered examples that may stand before each question."""

    settings = frozenset({"engine", "embeds", "keeps", "note"})

    shots: int = Field(default=0, ge=0)
    """How many answered examples stand before each question."""
    shots_from: ShotsFrom = "random"
    """How they are chosen: at random, by the words of descriptions (bm25), the ones most like the question (knn), those
    that are also unlike each other (mmr), or the most similar one of each label in turn (balanced)."""
    embedder: EmbedderLike | None = None
    """Finds examples that are like the question: `clip:…` by their pictures, `st:…` by descriptions of the data."""
    shots_draw: ShotsDraw = "own"
    """How random ones are drawn: for each sample by seed and fold, or as the authors' script does for a whole split."""
    shots_leaks: Leaks = "refuse"
    """Whether an example with the picture of the question, or a near-twin of it, ends the run or is left out."""

    embeds: bool = False
    """Whether the task needs the embedder for other things as well."""
    keeps: tuple[str, ...] = ()
    """Options that a run keeps even where they are as by default."""
    note: str = ""
    """A note on figures with examples."""

    @override
    def check(self, options: Mapping[str, Any]) -> None:
        """Checks options that depend on each other.

        Raises:
            UsageError: the official drawing gets a part of the split, or goes with another choice than `random`; or
                examples are chosen and none are shown, or an embedder is missing.
        """
        official, random = self.shots_draw == "official", self.shots_from == "random"
        part = next((name for name in ("limit", "ids") if options.get(name) is not None), None)
        if self.shots and official and part is not None:
            raise UsageError(
                f"The official drawing of examples goes through the whole split, and `{part}` takes a part of it.",
                hint=f"Leave `{part}` out, or give `shots_draw=own`.",
            )
        if official and not random:
            raise UsageError(
                f"The official drawing is one at random, and `shots_from` is {self.shots_from!r}.",
                hint="Give one of the two.",
            )
        if not self.shots and not random:
            raise UsageError(
                f"`shots_from={self.shots_from}` chooses examples, and none are shown.",
                hint="Say how many, such as -T shots=5, or leave it out.",
            )
        if self.embedder is None and self.shots_from not in {"random", "bm25"}:
            raise UsageError(
                f"Nothing says what examples are like a question, which `shots_from={self.shots_from}` needs.",
                hint="Give -T embedder=st:FOLDER for descriptions, clip:FOLDER for pictures, or -T shots_from=bm25.",
            )

    @override
    def kept(self) -> JsonObject:
        fields = type(self).model_fields
        options = {
            name: value
            for name, value in super().kept().items()
            if name in self.keeps or (self.shots and value != fields[name].default)
        }
        return {**options, "embedder": self.vectors.embedder.form()} if self.by_vectors or self.embeds else options

    @override
    def words(self) -> tuple[str, ...]:
        if not self.shots:
            return ()
        return (f"{self.shots} shots" + (f" by {self.shots_from}" if self.by_similarity else ""),)

    @override
    def notes(self) -> tuple[str, ...]:
        return (self.note,) if self.note and self.shots else ()

    @override
    def prepared(self, evaluation: Evaluation, *, left_out: Collection[str]) -> Evaluation:
        if self.by_vectors and not self.embeds:
            run_sync(self.vectors.embedder.aclose())
        notes = (*evaluation.notes, *_leak_notes(evaluation.samples))
        return replace(evaluation, notes=notes, computed=tuple(self._needed))

    @property
    def by_similarity(self) -> bool:
        """Whether examples are chosen by their similarity to the question."""
        return self.shots > 0 and self.shots_from != "random"

    @property
    def by_vectors(self) -> bool:
        """Whether that similarity is one of vectors, for which there is an embedder."""
        return self.by_similarity and self.shots_from != "bm25"

    @cached_property
    def vectors(self) -> ShotVectors:
        """The vectors that questions are compared by."""
        return ShotVectors(get_embedder(cast("EmbedderLike", self.embedder), engine=self.engine))

    @cached_property
    def _needed(self) -> list[Computed]:
        """Vectors that the choice of examples needed."""
        return []

    def shown_before(
        self,
        samples: Iterable[Sample],
        pool: ShotPool[Row],
        *,
        example: Callable[[Row], Example],
        facts: Callable[[Row], ShotFacts],
        known: Callable[[Sample], ShotFacts],
        seed: int,
    ) -> list[Sample]:
        """The samples of one fold with their examples; as they are where none are asked for.

        Samples of one question in two orders have the same examples. What was chosen stands in the trace of a sample,
        as `shots`. In a plan nothing is embedded: if vectors are not on record, other examples stand for those that
        will be chosen.

        Args:
            samples: of the fold's test part, in the order of the data.
            pool: of the same fold.
            example: makes an example of a row.
            facts: what is known of a row.
            known: what is known of a sample.
            seed: of what is drawn at random.

        Raises:
            BadData: as `ShotPool.draw`; an example would give an answer away; or nothing is known of a question by
                which others could be like it.
        """
        tested = list(samples)
        if not self.shots:
            return tested
        questions = {question_id(sample): known(sample) for sample in tested}
        for key, question in questions.items():
            pool.check(key, question.group, self.shots)
        if self.shots_from == "bm25":
            chosen = self._by_words(pool, questions, facts)
        else:
            choose = self._most_similar if self.by_vectors else self._drawn
            chosen = choose(pool, questions, facts, seed=seed)
        return [self._showing(sample, chosen[question_id(sample)], example) for sample in tested]

    def of_other_folds(
        self,
        samples: Sequence[Sample],
        pool: Iterable[Sample],
        *,
        folds: Mapping[str, int],
        example: Callable[[Sample], Example],
        facts: Callable[[Sample], ShotFacts],
        seed: int,
    ) -> list[Sample]:
        """The samples, each with examples of images outside its own fold; as they are where none are asked for.

        Args:
            samples: with an image as the cluster of each.
            pool: what may be shown.
            folds: the fold of each image.
            example: makes an example of a sample.
            facts: what is known of a sample.
            seed: of what is drawn at random.

        Raises:
            BadData: as `shown_before`.
        """
        if not self.shots:
            return list(samples)
        rows: dict[int, dict[Group, list[Sample]]] = {}
        for sample in pool:
            rows.setdefault(folds[sample.cluster], {}).setdefault(sample.cluster, []).append(sample)
        shown: dict[str, Sample] = {}
        for fold in sorted({folds[sample.cluster] for sample in samples}):
            others = {group: some for each, groups in rows.items() if each != fold for group, some in groups.items()}
            tested = [group for group, each in folds.items() if each == fold]
            of_fold = [sample for sample in samples if folds[sample.cluster] == fold]
            shot_pool = ShotPool(others, fold=fold, tested=tested, noun="image")
            with_examples = self.shown_before(of_fold, shot_pool, example=example, facts=facts, known=facts, seed=seed)
            shown |= {sample.id: sample for sample in with_examples}
        return [shown[sample.id] for sample in samples]

    def _showing(self, sample: Sample, shots: Shots[Row], example: Callable[[Row], Example]) -> Sample:
        how: JsonObject = {"compared": "descriptions"} if self.by_similarity else {"draw": self.shots_draw}
        how = self.vectors.form() if self.by_vectors else how
        inputs = {**sample.inputs, EXAMPLES: [example(row) for row in shots.rows]}
        trace = {**sample.trace, SHOTS: {"from": self.shots_from, **how, **shots.trace}}
        return replace(sample, inputs=inputs, trace=trace)

    def _drawn(
        self, pool: ShotPool[Row], questions: Mapping[str, ShotFacts], facts: Callable[[Row], ShotFacts], *, seed: int
    ) -> dict[str, Shots[Row]]:
        """The examples of each question, drawn at random."""
        official: Mapping[str, Sequence[Row]] = {}
        if self.shots_draw == "official":
            official = pool.draw_official({key: each.group for key, each in questions.items()}, count=self.shots)
        shots: dict[str, Shots[Row]] = {}
        for key, question in questions.items():
            screen = ShotScreen(question=question, leaks=self.shots_leaks)

            def usable(row: Row, screen: ShotScreen = screen) -> bool:
                return screen.passes(facts(row))

            if official:
                drawn = [row for row in official[key] if usable(row)]
            else:
                drawn = pool.draw(key, question.group, count=self.shots, seed=seed, usable=usable)
            shots[key] = Shots(rows=drawn, trace=_trace(((facts(row), None) for row in drawn), screen))
        return shots

    def _by_words(
        self, pool: ShotPool[Row], questions: Mapping[str, ShotFacts], facts: Callable[[Row], ShotFacts]
    ) -> dict[str, Shots[Row]]:
        """The examples of each question, by the words of what is said of their pictures."""
        rows = _by_id(pool, facts)
        for each in (*(each for each, _ in rows), *questions.values()):
            if not each.words:
                raise BadData(
                    f"BM25 cannot compare {each.id!r} with other questions: nothing is said of its picture before the "
                    "run.",
                    hint="-T shots_from=random needs no descriptions.",
                )
        places = [f"{place:09}" for place in range(len(rows))]  # in their order, which decides ties
        index = Bm25.build(places, [each.words for each, _ in rows])
        shots: dict[str, Shots[Row]] = {}
        for key, question in questions.items():
            screen, groups = ShotScreen(question=question, leaks=self.shots_leaks), set[Group]()
            scores = dict(index.search(question.words, len(rows)))
            best: list[tuple[ShotFacts, Row, float]] = []
            for place in dict.fromkeys([*scores, *places]):
                each, row = rows[int(place)]
                if len(best) < self.shots and each.group not in groups and screen.passes(each):
                    groups.add(each.group)
                    best.append((each, row, scores.get(place, 0.0)))
            if len(best) < self.shots:
                raise pool.too_few(self.shots, len(best))
            trace = _trace(((each, score) for each, _, score in best[::-1]), screen)
            shots[key] = Shots(rows=[row for _, row, _ in best[::-1]], trace=trace)
        return shots

    def _most_similar(
        self, pool: ShotPool[Row], questions: Mapping[str, ShotFacts], facts: Callable[[Row], ShotFacts], *, seed: int
    ) -> dict[str, Shots[Row]]:
        """The examples of each question, by similarity to it."""
        rows = _by_id(pool, facts)
        of_rows, of_questions = [each for each, _ in rows], list(questions.values())
        bare = next((each for each in of_rows if not each.label), None)
        if self.shots_from == "balanced" and bare is not None:
            raise UsageError(
                f"Examples cannot be balanced: the answer of {bare.id!r} has no label.",
                hint="Give -T shots_from=knn or mmr.",
            )
        needed = self.vectors.needed([*of_rows, *of_questions])
        if needed.lacking and current_scope().on_miss is not None:
            self._needed.append(needed)
            return self._stand_ins(pool, questions, seed)
        self._needed.append(replace(needed, lacking=()))
        vectors = run_sync(self.vectors.of([*of_rows, *of_questions]))
        pictures = self.vectors.embedder.sees_pictures
        candidates = ShotCandidates.of(of_rows, vectors[: len(rows)], pictures=pictures)
        shots: dict[str, Shots[Row]] = {}
        for (key, question), vector in zip(questions.items(), vectors[len(rows) :], strict=True):
            screen = ShotScreen(question=question, leaks=self.shots_leaks)
            best = candidates.choose(vector, how=self.shots_from, count=self.shots, screen=screen)
            if len(best) < self.shots:
                raise pool.too_few(self.shots, len(best))
            shown = [(*rows[place], similarity) for place, similarity in best[::-1]]
            trace = _trace(((each, similarity) for each, _, similarity in shown), screen)
            shots[key] = Shots(rows=[row for _, row, _ in shown], trace=trace)
        return shots

    def _stand_ins(self, pool: ShotPool[Row], questions: Mapping[str, ShotFacts], seed: int) -> dict[str, Shots[Row]]:
        """Other examples of each question, for a plan of those that cannot be chosen yet."""
        name = f"in place of {self.shots_from}\n"
        return {
            key: Shots(rows=pool.draw(name + key, each.group, count=self.shots, seed=seed), trace={})
            for key, each in questions.items()
        }


def _by_id(pool: ShotPool[Row], facts: Callable[[Row], ShotFacts]) -> list[tuple[ShotFacts, Row]]:
    return sorted(((facts(row), row) for some in pool.rows.values() for row in some), key=lambda each: each[0].id)


def _trace(shown: Iterable[tuple[ShotFacts, float | None]], screen: ShotScreen) -> JsonObject:
    chosen = [
        {"id": each.id, "group": each.group, **({} if similarity is None else {"similarity": round(similarity, 4)})}
        for each, similarity in shown
    ]
    return {"chosen": chosen, **({"left_out": screen.left_out} if screen.left_out else {})}


def _leak_notes(samples: Iterable[Sample]) -> tuple[str, ...]:
    """A note on the examples that were left out because they give an answer away."""
    left_out = {question_id(sample): sample.trace.get(SHOTS, {}).get("left_out", ()) for sample in samples}
    count = sum(map(len, left_out.values()))
    where = f"of {many(sum(map(bool, left_out.values())), 'question')}"
    return (f"{many(count, 'example')} {where} left out, which would give the answer away",) if count else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShotCandidates:
    """The rows of a pool as arrays. They are sorted by id, so that of equal ones the first is taken."""

    rows: Sequence[ShotFacts]
    vectors: Numbers
    """Of length 1, a row each."""
    labels: NDArray[np.str_]
    groups: NDArray[np.str_]
    pictures: bool
    """Whether the vectors are those of pictures."""

    @classmethod
    def of(cls, rows: Sequence[ShotFacts], vectors: Numbers, *, pictures: bool = False) -> ShotCandidates:
        """The rows with their vectors."""
        import numpy as np

        labels, groups = np.array([each.label for each in rows]), np.array([str(each.group) for each in rows])
        return cls(rows=rows, vectors=vectors, labels=labels, groups=groups, pictures=pictures)

    def choose(self, vector: Numbers, *, how: ShotsFrom, count: int, screen: ShotScreen) -> list[tuple[int, float]]:
        """The places of the chosen rows with their cosines to the question, the nearest first; of each group one.

        Args:
            vector: of the question, of length 1.
            how: they are chosen.
            count: how many are wanted; fewer come where there are no more.
            screen: says which may be shown.

        Raises:
            BadData: as `ShotScreen.passes`.
        """
        import numpy as np

        similar: Numbers = np.round(self.vectors @ vector, DECIMALS)
        worth = similar
        left = np.ones(len(similar), dtype=np.bool_)
        turns = cycle(self._labels_by(similar) if how == "balanced" else [None])
        chosen: list[int] = []
        label = next(turns)
        while len(chosen) < count and left.any():
            among = left if label is None else left & (self.labels == label)
            if not among.any():
                label = next(turns)
                continue
            place = int(np.argmax(np.where(among, worth, -np.inf)))
            left[place] = False
            if not screen.passes(self.rows[place], float(similar[place]) if self.pictures else None):
                continue
            chosen.append(place)
            left &= self.groups != self.groups[place]
            label = next(turns)
            if how == "mmr":
                nearest: Numbers = (self.vectors @ self.vectors[chosen].T).max(axis=1)
                worth = np.round(RELEVANCE * similar - (1 - RELEVANCE) * nearest, DECIMALS)
        return sorted(((place, float(similar[place])) for place in chosen), key=lambda each: (-each[1], each[0]))

    def _labels_by(self, similar: Numbers) -> list[str]:
        """The labels, that of the nearest row first."""
        labels = {each.label for each in self.rows}
        best = {label: float(similar[self.labels == label].max()) for label in labels}
        return sorted(best, key=lambda label: (-best[label], label))
