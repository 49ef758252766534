"""Encoders of pictures and texts on the samples of `pittads/arr-multi` and `pittads/arr-single` (Table 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from askance.chains import DESCRIPTION, Chain, verbalize
from askance.evals.fusion import WEIGHT, FusionContext, FusionSolver, Texts, parts_of
from askance.evals.pittads.ads import Source
from askance.evals.pittads.arr_baselines import count_of, samples_from, scoring
from askance.evals.pittads.contexts import TOOLS
from askance.evals.suite.roles import Roles
from askance.evals.tasks import Task, task

if TYPE_CHECKING:
    from askance.agents import Mode
    from askance.evals.pittads.arr import TrueShown
    from askance.evals.pittads.dataset import Negatives
    from askance.evals.pittads.selection import Which
    from askance.models import EmbedderLike, Engine, ModelLike, ScorerLike

DESCRIBED: Mapping[FusionContext, str] = {
    "I": "I",
    "I+T": "I+V+T",
    "I+T+V": "I+V+T",
    "I+T+V+IN+UH": "I+V+T+IN+UH",
    "I+T_V": "I+T_V",
}
"""The context of the other tasks that has the same texts, or the nearest one."""

FUSION_NOTE = (
    "How picture and texts are fused is not in the paper: here by the mean of the fit to the picture and of the mean "
    "similarity to the texts, where `weight` is 0.5"
)


def fusion_solver(  # noqa: PLR0913  # each is part of what decides the answers
    *,
    scorer: ScorerLike,
    embedder: EmbedderLike | None = None,
    context: FusionContext = "I",
    mode: Mode = "multi",
    texts: Texts = "apart",
    weight: float = WEIGHT,
    given: Sequence[str] = (),
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    engine: Engine | None = None,
) -> FusionSolver:
    """What ranks the options, made without data.

    Args:
        scorer: how well an option fits the picture.
        embedder: how similar an option is to a text; not needed for `I`.
        context: what options are held against.
        mode: `multi` gives three options, `single` one.
        texts: whether they are compared one by one or as one.
        weight: of the texts, from 0 to 1.
        given: links that every sample brings.
        vlm: says what is not given of the picture.
        llm: makes T_V of it; by default the VLM does.
        combiner: makes T_V in place of the LLM.
        engine: whose records and mode are used; by default that of the models.

    Raises:
        UsageError: no such context, or no embedder for one with texts.
    """
    roles = Roles(vlm=vlm, llm=llm, combiner=combiner)
    missing = [part for part in parts_of(context) if part not in given]
    chain = _chain(context, missing, roles, given=given) if missing and (vlm or llm) else None
    return FusionSolver(
        scorer,
        embedder,
        context=context,
        chain=chain,
        texts=texts,
        weight=weight,
        count=count_of(mode),
        engine=engine or (roles.see.engine if vlm or llm else None),
    )


def _chain(context: FusionContext, missing: Sequence[str], roles: Roles, *, given: Sequence[str]) -> Chain:
    """Makes the texts that are missing, as far as there is a model to make them."""
    whole = verbalize(roles.see, roles.combine, context="T_V" if context == "I+T_V" else "V+T+IN+UH")
    wanted = {*missing, *(TOOLS if "description" in missing else ())} - {*given}
    there = wanted if roles.vlm is not None else wanted - {*TOOLS}
    steps = [step for step in whole.steps if step.link.name in there]
    return Chain(f"texts of {context}", target=DESCRIPTION, steps=steps, mode=whole.mode)


@task("pittads/arr-clip", scoring=scoring, solver=fusion_solver)
def arr_clip(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    scorer: ScorerLike,
    embedder: EmbedderLike | None = None,
    context: FusionContext = "I",
    mode: Mode = "multi",
    texts: Texts = "apart",
    weight: float = WEIGHT,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    true: TrueShown = "all",
    ids: Path | None = None,
    small: bool = False,
    limit: int | None = None,
    seed: int = 0,
    orders: int = 1,
    which: Which = "usable",
    qa: Path | None = None,
    negatives: Negatives = "easy",
    descriptions: Path | None = None,
    engine: Engine | None = None,
) -> Task:
    """Which of the options an ad argues for, by encoders of pictures and texts.

    Args:
        data: folder of the data set.
        scorer: how well an option fits the picture.
        embedder: how similar an option is to a text; not needed for `I`.
        context: what options are held against: `I`, `I+T`, `I+T+V`, `I+T+V+IN+UH` or `I+T_V` (Table 11).
        mode: `multi` gives three options, `single` one.
        texts: whether texts are compared one by one (`apart`) or as one (`joined`).
        weight: of the texts, from 0 to 1.
        vlm: says what is not given of the picture.
        llm: makes T_V of it; by default the VLM does.
        combiner: makes T_V in place of the LLM.
        true: whether `one` of the true statements stands among the options, or `all`.
        ids: file that lists the images.
        small: 250 images, drawn by the seed.
        limit: images at most.
        seed: of the order of options, of the true one, and of the drawn set.
        orders: 2 asks each sample again with its options the other way round.
        which: of the annotated images the `usable`, the `labelled` or the `typical` ones.
        qa: file of statements and options; by default the data set's own.
        negatives: wrong options, `easy` ones of the data set or `hard` ones of `askance negatives generate`.
        descriptions: published verbalizations, a file or a folder.
        engine: whose records and mode are used; by default that of the models.

    Raises:
        BadData: the data lack what the task needs.
        UsageError: an option that cannot be.
    """
    parts_of(context)
    source = Source(
        data=data,
        ids=ids,
        small=small,
        seed=seed,
        which=which,
        qa=qa,
        negatives=negatives,
        descriptions=descriptions or (),
    )
    asked = {"mode": mode, "orders": orders, "true": true}
    found, samples = samples_from(source, DESCRIBED[context], looks=vlm is not None, limit=limit, asked=asked)
    answers = fusion_solver(
        scorer=scorer,
        embedder=embedder,
        context=context,
        mode=mode,
        texts=texts,
        weight=weight,
        given=found.given,
        vlm=vlm,
        llm=llm,
        combiner=combiner,
        engine=engine,
    )
    made = {"context": context, "texts": texts, "weight": weight, "given": list(found.given)}
    encoders = {
        "scorer": answers.scorer.form(),
        "embedder": None if answers.embedder is None else answers.embedder.form(),
    }
    return Task(
        samples=samples,
        solver=answers,
        label=f"{answers.scorer.id} ({context})",
        options={**source.form(), **asked, **made, **encoders},
        notes=(*found.notes, FUSION_NOTE),
    )
