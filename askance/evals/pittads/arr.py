"""The tasks of action-reason retrieval: which statements say what an ad argues for (sections 3.2 and 5.2, Table 11).

How the paper is read where it leaves a choice:

- *Multi* asks for the three best options, in order, and *Single* for the one best (caption of Table 12).
- The options of *Single* are those of *Multi*: the two differ in how many outputs are asked for (caption of Table 12).
  The caption of Listing 13 speaks of "the single correct option"; `true="one"` leaves one true statement of an image
  among its options, which one by seed.
- Options are shown in an order of their own for each image, which the seed decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import Field
from typing_extensions import override

from askance.agents import ChoiceMode, choose_action_reasons
from askance.agents.negative_writer import KINDS
from askance.chains import ANSWERS, DESCRIPTION, Chain, verbalize
from askance.evals.baselines import expected_figures
from askance.evals.part import Answerer, Part, Question
from askance.evals.pittads.dataset import Ad, Negatives, PittAds
from askance.evals.pittads.task import AdModel, AdsTask
from askance.evals.sample import Sample
from askance.evals.suite.any_solver import BASELINES, AnySolver
from askance.evals.suite.choice import (
    COUNT,
    OTHER,
    TRUE,
    UNKNOWN,
    choice_samples,
    kinds_in,
    multi_scorer,
    single_scorer,
)
from askance.evals.suite.context import TOOLS, ParsedContext, parse_context
from askance.evals.suite.option_orders import Orders
from askance.evals.suite.ranker import WEIGHT, FusionContext, FusionSolver, Texts, parts_of
from askance.evals.suite.shots import SHOTS_NOTE, Examples
from askance.models import EmbedderLike, ScorerLike, get_embedder, get_scorer

if TYPE_CHECKING:
    from askance.chains.chain import NodeLike
    from askance.chat import JsonObject
    from askance.evals.metric import Figure
    from askance.evals.scorer import Scorer
    from askance.evals.solver import Solver
    from askance.models import RecordedScorer

TrueShown: TypeAlias = Literal["one", "all"]
"""How many true statements are among the options of *Single*."""

BaselineName: TypeAlias = Literal["random", "longest", "majority"]
"""Solvers that look at nothing: random options, the longest options, the numbers that are true most often."""

NEGATIVE_KINDS = (*KINDS["ads"], OTHER, UNKNOWN)
"""Kinds of wrong options; of a hard negative, what was changed in its text (Fig. 5)."""

KindsOf: TypeAlias = Callable[["Ad"], Mapping[str, str]]

SINGLE_NOTE = "All true statements of an image stand among its options, unless `true` is `one`"

CHANCES = ("p@1", "p@2", "p@3", "acc@1", "acc@2", "mean of five", "accuracy")
"""Figures whose exact chance is noted."""


class Statements(Part):
    """The file of action-reasons, which may be named."""

    qa: Path | None = None
    """File of statements and options; by default the data set's own."""
    negatives: Negatives = "easy"
    """Wrong options: easy ones of the data set, or hard ones of `askance negatives generate`."""

    @override
    def kept(self) -> JsonObject:
        hard = {} if self.negatives == "easy" else {"negatives": self.negatives}
        return {**hard, **({} if self.qa is None else {"qa": self.qa.name})}


class ChosenOptions(Part):
    """How many options are chosen, and how many true ones are among them."""

    mode: ChoiceMode = "multi"
    """multi gives three options, single one."""
    true: TrueShown = "all"
    """Whether one of the true statements stands among the options, or all."""

    @property
    def count(self) -> int:
        """Options of an answer."""
        return COUNT if self.mode == "multi" else 1

    def scorer(self, *, orders: int) -> Scorer:
        """The scorer of the chosen options."""
        make = multi_scorer if self.mode == "multi" else single_scorer
        return make(NEGATIVE_KINDS, orders=orders)


class ThreeOptions(ChosenOptions):
    """Three options, of all true ones."""

    settings = ChosenOptions.settings | {"mode", "true"}


class OneOption(ChosenOptions):
    """One option."""

    settings = ChosenOptions.settings | {"mode"}

    mode: ChoiceMode = "single"

    @override
    def scorer(self, *, orders: int) -> Scorer:
        return single_scorer(NEGATIVE_KINDS, orders=orders, notes=(SINGLE_NOTE,))


class ArrTask(AdsTask):
    """A task in which action-reason statements are chosen."""

    needs = ("options", "true")

    statements: Statements = Statements()
    """The statements."""
    orders: Orders = 1
    """2 asks each sample again with its options the other way round."""
    choice: ChosenOptions = ChosenOptions()
    """How many are chosen."""

    @cached_property
    def kinds(self) -> KindsOf:
        """Gives the kinds of the options of an ad."""
        return kinds_of(self.dataset)

    @override
    def usable(self) -> Mapping[str, Callable[[Ad], bool]]:
        return WITH_OPTIONS

    @override
    def notes(self) -> tuple[str, ...]:
        return (*super().notes(), *options_notes(self.dataset, self.asked))

    @override
    def samples_of(self, ad: Ad) -> Iterator[Sample]:
        """The samples of one ad, one for each order of its options."""
        sample = Sample(id=ad.id, image=self.image_of(ad), inputs={**self.links[ad.id]}, group=ad.id)
        one_true = self.choice.true == "one"
        return choice_samples(sample, self.kinds(ad), seed=self.seed, orders=self.orders, one_true=one_true)

    @override
    def answer_of(self, sample: Sample) -> Mapping[str, Any] | None:
        best = sample.target["true"][: self.choice.count]
        if len(best) < self.choice.count:
            return None
        return {"answer": ", ".join(map(str, best)) if self.choice.mode == "multi" else best[0]}

    @override
    def label_of(self, sample: Sample) -> str:
        return str(sample.target["true"][0])

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), "mode": self.choice.mode}

    @override
    def question(self) -> Question:
        return Question(
            name=self.parsed_context.name,
            agent=partial(choose_action_reasons, mode=self.choice.mode, count=COUNT),
            asks=self.parsed_context.options_question,
            target=ANSWERS,
            given=self.given,
            count=self.choice.count,
            seed=self.seed,
        )

    @override
    def scorer(self) -> Scorer:
        return self.choice.scorer(orders=self.orders)


class ReasoningModel(AdModel):
    """A model that may reason before it answers, and that may get an atypicality statement."""

    context: str = "T_V+s_IN"
    """What the answering model gets: T_V, V+T, I, I+T_V and the like, with s_IN, s_TV, s_true or s_wrong behind it."""
    beside: bool = True
    step_by_step: bool = False
    """Whether the answering model is asked to reason first (Table 9)."""

    @override
    def words(self) -> tuple[str, ...]:
        return (*super().words(), *(("step by step",) if self.step_by_step else ()))

    @override
    def node(self, question: Question) -> NodeLike:
        agent = None if question.agent is None else partial(question.agent, step_by_step=self.step_by_step)
        return super().node(replace(question, agent=agent))


class ArrMulti(ArrTask):
    """Which three of the options an ad argues for."""

    name = "pittads/arr-multi"

    choice: ChosenOptions = ThreeOptions()
    """Three are chosen."""
    model: ReasoningModel = ReasoningModel()
    """The model that answers."""
    other: AnySolver = AnySolver()
    """A solver in its place."""
    examples: Examples = Examples(note=SHOTS_NOTE)
    """The answered examples before each question."""


class ArrSingle(ArrTask):
    """Which one of the options an ad argues for."""

    name = "pittads/arr-single"

    choice: ChosenOptions = OneOption()
    """One is chosen."""
    model: ReasoningModel = ReasoningModel()
    """The model that answers."""
    other: AnySolver = AnySolver()
    """A solver in its place."""
    examples: Examples = Examples(note=SHOTS_NOTE)
    """The answered examples before each question."""


class Baseline(Answerer):
    """What answers that looks neither at the picture nor at what is said of it."""

    baseline: BaselineName = "random"
    """Random options, the longest ones, or the numbers that are true most often (majority)."""

    @property
    @override
    def looks(self) -> bool:
        return False

    @override
    def label(self) -> str:
        return self.baseline

    @override
    def solver(self, question: Question) -> Solver:
        return BASELINES[self.baseline](question)


class ArrBaseline(ArrTask):
    """What answers get that look neither at the picture nor at what is said of it."""

    name = "pittads/arr-baseline"

    baseline: Baseline = Baseline()
    """The baseline that answers."""

    @override
    def kept(self) -> JsonObject:
        return {name: value for name, value in super().kept().items() if name != "given"}  # nothing is asked

    @override
    def notes(self) -> tuple[str, ...]:
        return (*super().notes(), *((self._chance(),) if self.baseline.baseline == "random" else ()))

    def chance(self) -> tuple[Figure, ...]:
        """The exact expectation of random answers, in the figures of the task."""
        samples = self.kept_or("samples", self.samples)
        return expected_figures(samples, self.scorer(), count=self.choice.count, alike=_alike)

    def _chance(self) -> str:
        """The same as a note, to be read beside the figures of random answers."""
        shown = [each for each in self.chance() if each.metric in CHANCES and each.value is not None]
        return f"Chance, exactly: {', '.join(f'{each.metric} {100 * (each.value or 0):.2f}' for each in shown)}"


def _alike(sample: Sample) -> tuple[str, ...]:
    """The kinds of the options, sorted: samples with equal ones have equal expectations."""
    return tuple(sorted(kinds_in(sample)))


DESCRIBED: Mapping[FusionContext, str] = {
    "I": "I",
    "I+T": "I+V+T",
    "I+T+V": "I+V+T",
    "I+T+V+IN+UH": "I+V+T+IN+UH",
    "I+T_V": "I+T_V",
}
"""The context of the other tasks with the same texts, or the nearest one."""

FUSION_NOTE = (
    "How picture and texts are fused is not in the paper: here by the mean of the fit to the picture and of the mean "
    "similarity to the texts, where `weight` is 0.5"
)


class Fusion(AdModel):
    """Encoders of pictures and texts; models only make the texts."""

    encoder: ScorerLike = Field(alias="scorer")
    """Says how well an option fits the picture."""
    embedder: EmbedderLike | None = None
    """Says how similar an option is to a text; not needed for `I`."""
    context: FusionContext = "I"  # pyright: ignore[reportIncompatibleVariableOverride]  # other names of contexts
    """What options are compared with: the picture, and texts beside it (Table 11)."""
    texts: Texts = "apart"
    """Whether texts are compared one by one (apart) or as one (joined)."""
    weight: float = Field(default=WEIGHT, ge=0, le=1)
    """Of the texts, from 0 to 1."""

    @cached_property
    @override
    def parsed_context(self) -> ParsedContext:
        return parse_context(DESCRIBED[self.context], task=self._task, among=self.contexts, beside=True)

    @override
    def solver(self, question: Question) -> FusionSolver:
        return FusionSolver(
            self.encoder,
            self.embedder,
            context=self.context,
            chain=self._texts(question.given),
            texts=self.texts,
            weight=self.weight,
            count=question.count,
            engine=self.engine,
        )

    def _texts(self, given: Collection[str]) -> Chain | None:
        """A chain that makes the missing texts; None if none is missing, or if there is no model."""
        missing = [part for part in parts_of(self.context) if part not in given]
        if not missing or not (self.vlm or self.llm):
            return None
        whole = verbalize(self.see, self.combine, context="T_V" if self.context == "I+T_V" else "V+T+IN+UH")
        wanted = {*missing, *(TOOLS if "description" in missing else ())} - {*given}
        links = wanted if self.vlm is not None else wanted - {*TOOLS}
        steps = [step for step in whole.steps if step.link.name in links]
        return Chain(f"texts of {self.context}", target=DESCRIPTION, steps=steps, mode=whole.mode)

    @cached_property
    def scorer(self) -> RecordedScorer:
        """The encoder of pictures, whose scores are recorded."""
        return get_scorer(self.encoder, engine=self.engine)

    @override
    def label(self) -> str:
        return str(self.scorer.id)

    @override
    def notes(self) -> tuple[str, ...]:
        return (FUSION_NOTE,)

    @override
    def kept(self) -> JsonObject:
        engine = self.scorer.engine
        embedder = None if self.embedder is None else get_embedder(self.embedder, engine=engine).form()
        return {**super().kept(), "scorer": self.scorer.form(), "embedder": embedder}


class ArrClip(ArrTask):
    """Which of the options an ad argues for, by encoders of pictures and texts."""

    name = "pittads/arr-clip"

    fusion: Fusion
    """The encoders that answer."""


def _has_options(ad: Ad) -> bool:
    return len({text in ad.true for text in ad.options if text.strip()}) == 2


WITH_OPTIONS: Mapping[str, Callable[[Ad], bool]] = {"without a true and a wrong option": _has_options}
"""The condition of tasks that show options, by the words for ads that do not meet it."""


def kinds_of(data: PittAds) -> KindsOf:
    """A function that gives the kind of each option of an ad, `true` for the true ones.

    Wrong options of the data set's own file are statements of other images. In another file, files say what they are
    (`Contents.negative_kinds`). Otherwise the kind is unknown.
    """
    contents = data.contents
    known = contents.negative_kinds
    otherwise = UNKNOWN if contents.qa_is_named else OTHER

    def kinds(ad: Ad) -> Mapping[str, str]:
        named = ((text, known.get((ad.id, text), otherwise)) for text in ad.options)
        return {text: TRUE if text in ad.true else kind if kind in NEGATIVE_KINDS else UNKNOWN for text, kind in named}

    return kinds


def options_notes(data: PittAds, samples: Iterable[Sample]) -> tuple[str, ...]:
    """Notes on the options, to be read beside the figures."""
    targets: list[Any] = [sample.target for sample in samples]
    counts = sorted({len(target["kinds"]) for target in targets})
    kinds = Counter(kind for target in targets for kind in target["kinds"] if kind != TRUE)
    true = sorted({len(target["true"]) for target in targets})
    hard = sum(kinds[kind] for kind in NEGATIVE_KINDS if kind not in {OTHER, UNKNOWN})
    by_description = {
        "hard negatives": hard,
        "statements of other images": kinds[OTHER],
        "of an unknown kind": kinds[UNKNOWN],
    }
    several = sum(map(bool, by_description.values())) > 1
    wrong = ", ".join(f"{count:,} {what}" if several else what for what, count in by_description.items() if count)
    file = "" if data.contents.qa is None else f"; {data.contents.qa.path.name}"
    notes = [f"Options of an image: {_range(counts)}, {_range(true)} of them true; wrong ones: {wrong}{file}"]
    if kinds[UNKNOWN]:
        notes.append(
            "Kinds of wrong options are known where the negatives.jsonl that was written with their file lies beside it"
        )
    return tuple(notes)


def _range(counts: list[int]) -> str:
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
