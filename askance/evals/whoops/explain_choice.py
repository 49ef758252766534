"""Choosing the explanation of what is unusual (section 7.3 and Table 14 of the paper on atypical ads).

*Easy* negatives are explanations of other images, drawn by the seed. *Hard* ones are made from the right explanation by
a model (`askance negatives generate`), or come in the authors' files, whose keys are positions of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from askance.agents import KINDS, choose_explanation, choose_explanation_from_picture
from askance.agents.negatives import normal
from askance.chains import ANSWERS
from askance.chains.catalog import options_question
from askance.errors import BadData, UsageError
from askance.evals.negatives import TrueStatements, read_negatives
from askance.evals.solving import ChainSolver
from askance.evals.suite.choice import OTHER, TRUE, UNKNOWN, single_scoring
from askance.evals.suite.options import drawn, in_order, lot
from askance.evals.suite.orders import sample_ids
from askance.evals.suite.roles import Roles
from askance.evals.tasks import Scoring, Task, task
from askance.evals.values import Sample
from askance.evals.whoops.categories import by_category
from askance.evals.whoops.choosing import seen_question
from askance.evals.whoops.contexts import chain_of, view_of
from askance.evals.whoops.taking import Source, gold_caption, taken

if TYPE_CHECKING:
    from askance.evals.whoops.dataset import Whoops
    from askance.evals.whoops.entries import Entry
    from askance.evals.whoops.taking import Taken
    from askance.models import Model, ModelLike

NAME = "whoops/explain-choice"

Negatives: TypeAlias = Literal["easy", "hard"]

EASY = 15
"""Explanations of other images beside the right one (section 7.3)."""
NEGATIVE_KINDS = (OTHER, *KINDS["explanations"], UNKNOWN)

NOTE = "One right explanation stands among the options, which one by the seed, unless `true` is `all`"


def solver(
    *,
    context: str = "I",
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
) -> ChainSolver:
    """What chooses, made without data.

    Args:
        context: what the choosing model gets, see `askance.evals.whoops.contexts`.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.

    Raises:
        UsageError: no such context, or a model is missing.
    """

    def reader(model: Model) -> Any:
        return choose_explanation(model, mode="single")

    def viewer(model: Model) -> Any:
        return choose_explanation_from_picture(model, mode="single")

    chain = chain_of(
        "explain-choice",
        view_of(context, NAME),
        Roles(vlm=vlm, llm=llm, combiner=combiner),
        target=ANSWERS,
        seen=(viewer, seen_question),
        described=(reader, options_question),
    )
    return ChainSolver(chain)


def scoring(categories: Sequence[str] = (), orders: int = 1) -> Scoring:
    """How answers are scored."""
    return by_category(single_scoring(NEGATIVE_KINDS, orders=orders, notes=(NOTE,)), categories, "accuracy")


@task(NAME, scoring=scoring, solver=solver)
def explain_choice(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    negatives: Negatives = "easy",
    qa: Path | None = None,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    context: str = "I",
    true: Literal["one", "all"] = "one",
    count: int = EASY,
    ids: Path | None = None,
    limit: int | None = None,
    fold: int | None = None,
    seed: int = 0,
    orders: int = 1,
) -> Task:
    """Which of the options explains what is unusual about an image.

    Args:
        data: folder of the data set.
        negatives: `easy` ones, explanations of other images, or `hard` ones, from the file `qa`.
        qa: file of right explanations and options, keyed by image or by the position of its row; needed for `hard`.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        context: what the choosing model gets, see `askance.evals.whoops.contexts`.
        true: whether `one` of the right explanations stands among the options, or `all`.
        count: easy negatives of an image.
        ids: file that lists the images.
        limit: images at most.
        fold: only the test images of this fold, from 0.
        seed: of the right explanation, of easy negatives, of the order of options, and of the folds.
        orders: 2 asks each sample again with its options the other way round.

    Raises:
        BadData: the data or the file lack what the task needs.
        UsageError: an option that cannot be.
    """
    if negatives not in get_args(Negatives) or true not in {"one", "all"} or count < 1:
        raise UsageError(
            f"There are no options with {true!r} right explanations and {count} {negatives!r} negatives.",
            hint="Negatives are `easy` or `hard`, right explanations `one` or `all`, and easy negatives 1 or more.",
        )
    if negatives == "hard" and qa is None:
        raise UsageError(
            "Hard negatives are not part of the data set.",
            hint="Make them with `askance negatives generate --domain explanations` and name the file: -T qa=FILE.",
        )
    view = view_of(context, NAME)
    source = Source(data=Path(data), ids=ids, limit=limit, fold=fold, seed=seed)
    found = taken(source, view, *(() if qa is not None else ("explanations",)))
    known = _from_file(qa, found) if qa is not None else _easy(found, count=count, seed=seed)
    entries = [entry for entry in found.entries if entry.id in known]
    asked = {"context": context, "negatives": negatives, "true": true, "orders": orders}
    samples = [
        sample
        for entry in entries
        for sample in samples_of(
            entry,
            known[entry.id],
            fields={
                "image": view.image_of(entry),
                "inputs": view.links_of(gold_caption(entry)),
                "tags": found.tags(entry),
            },
            asked={**asked, "seed": seed},
        )
    ]
    lacking = len(found.entries) - len(entries)
    left_out = (f"{lacking:,} of {len(found.entries):,} images are left out: the file has no options of them",)
    roles = Roles(vlm=vlm, llm=llm, combiner=combiner)
    return Task(
        samples=samples,
        solver=solver(context=context, vlm=vlm, llm=llm, combiner=combiner),
        label=f"{roles.answering(picture=view.picture).id} ({view.name}, {negatives})",
        options={
            **source.form(),
            **asked,
            **({"count": count} if qa is None else {"qa": qa.name}),
            "categories": list(found.categories),
        },
        notes=(*found.notes, *(left_out if lacking else ())),
    )


Options: TypeAlias = Mapping[str, str]
"""By text of an option its kind, `true` for right ones."""


def _easy(found: Taken, *, count: int, seed: int) -> Mapping[str, Options]:
    """For each image its explanations, and as many of other images, no two of which say the same.

    Raises:
        BadData: there are not enough.
    """
    pool = [(entry.id, text) for entry in found.data.entries for text in entry.explanations]
    options: dict[str, Options] = {}
    for entry in found.entries:
        own = dict.fromkeys(entry.explanations, TRUE)
        wanted = len(own) + count
        said = {normal(text) for text in own}
        for name, text in drawn(pool, seed=seed, key=entry.id):
            if len(own) == wanted:
                break
            if name != entry.id and normal(text) not in said:
                said.add(normal(text))
                own[text] = OTHER
        if len(own) < wanted:
            raise BadData(
                f"Other images than {entry.id!r} have fewer than {count} explanations to draw from.",
                hint="Give -T count=… a smaller number, or more images.",
            )
        options[entry.id] = own
    return options


def _from_file(qa: Path, found: Taken) -> Mapping[str, Options]:
    """The options in a file, by image.

    Raises:
        BadData: the file cannot be read, or none of its keys is that of an image.
    """
    options: dict[str, Options] = {}
    unknown: list[str] = []
    for record in read_negatives(qa):
        entry = found.data.of_key(record.key)
        if entry is None:
            unknown.append(record.key)
            continue
        kinds = {each.text: each.kind or UNKNOWN for each in record.negatives}
        options[entry.id] = {text: TRUE if text in record.true else kinds.get(text, UNKNOWN) for text in record.options}
    if not {*options} & {entry.id for entry in found.entries}:
        raise BadData(
            f"No key of {str(qa)!r} is an image that is asked about, such as {(unknown or [*options])[0]!r}.",
            hint="Keys are an `image_id`, or the position of its row from 0.",
        )
    return options


def samples_of(
    entry: Entry, known: Options, *, fields: Mapping[str, Any], asked: Mapping[str, Any]
) -> Iterator[Sample]:
    """The samples of one image, one for each order of its options."""
    right = [text for text, kind in known.items() if kind == TRUE]
    if asked["true"] == "one":
        right = [min(right, key=lambda text: lot(asked["seed"], entry.id, "true", text))]
    shown = [text for text, kind in known.items() if text.strip() and (kind != TRUE or text in right)]
    for order, name in sample_ids(entry.id, orders=asked["orders"]).items():
        options = in_order(shown, seed=asked["seed"], key=entry.id, order=order)
        of_each = [known[text] for text in options]
        yield Sample(
            id=name,
            image=fields["image"],
            inputs={**fields["inputs"], "options": list(options)},
            target={"true": [n for n, kind in enumerate(of_each, start=1) if kind == TRUE], "kinds": of_each},
            group=entry.id,
            tags={**fields["tags"], **({"order": order} if asked["orders"] > 1 else {})},
        )


def statements(data: Whoops) -> tuple[TrueStatements, ...]:
    """The right explanations of every image, for `askance.evals.negatives.generate` to make hard negatives from.

    Raises:
        BadData: there are none.
    """
    return tuple(TrueStatements.of(entry.id, entry.explanations) for entry in data.with_all("explanations"))
