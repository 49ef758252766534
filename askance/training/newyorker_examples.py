"""Examples of the New Yorker caption contest, in the official folds, which hold whole contests apart.

| form | examples | for |
|---|---|---|
| `choices` | a cartoon with captions, of which one is right | an encoder such as CLIP (appendix B.2) |
| `text` | the suite's prompt *from description*, and its answer | a model that maps texts to texts, such as T5 (B.4) |
| `chat` | the same as turns | a chat model, such as the fine-tuned GPT-3 of the paper (B.6) |

In training a cartoon is described in all six ways that people's descriptions allow, elsewhere in one (appendix C). The
prompts are those by which the suite asks, so that what was trained is asked what it has learnt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from askance.chains.cartoon import lay_out
from askance.errors import UsageError
from askance.evals.newyorker import NewYorker
from askance.evals.newyorker.layout import LETTERS, TaskName
from askance.evals.newyorker.task import links_of_annotation
from askance.training.training_set import (
    ChatExample,
    ChoiceExample,
    MadeSet,
    Source,
    Split,
    TextExample,
    TrainingExample,
)

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.newyorker import Item
    from askance.prompts import PromptLibrary
    from askance.prompts.prompt import Prompt, PromptTurn

Form: TypeAlias = Literal["choices", "text", "chat"]
PromptForm: TypeAlias = Literal["text", "json"]

LICENCE = (
    "The descriptions and explanations of the caption contest are CC BY 4.0, of their authors; the rights to the "
    "cartoons stay with the artists and The New Yorker."
)
_PROMPTS: dict[TaskName, str] = {
    "matching": "match_caption",
    "ranking": "rank_captions",
    "explanation": "explain_joke",
}


def newyorker_set(
    folder: str | Path,
    *,
    task: TaskName,
    fold: int,
    form: Form,
    prompts: PromptLibrary,
    prompt_form: PromptForm = "text",
) -> MadeSet:
    """The examples of one task and fold.

    Args:
        folder: of the data set.
        task: matching, ranking or explanation.
        fold: one of the official ones, 0 to 4.
        form: see above.
        prompts: where the prompts are found.
        prompt_form: `text` is the form of `--protocol paper`, `json` the one by which models are asked otherwise.

    Raises:
        BadData: the folder has no such task and fold, or cannot be read.
        UsageError: an explanation is no choice.
    """
    data, left_out = NewYorker.open(folder), Counter[str]()
    origin: JsonObject = {"command": "newyorker", "task": task, "fold": fold, "form": form}
    splits: dict[Split, list[TrainingExample]] = {}
    if form == "choices":
        if task == "explanation":
            raise UsageError("An explanation is written, not chosen.", hint="Take the form `text` or `chat`.")
        for split, items in data.splits(task, fold).items():
            splits[split] = [*_choices(data, items, left_out)]
    else:
        prompt = prompts.find(_PROMPTS[task], form=prompt_form)
        origin |= {"prompt_form": prompt_form, "prompts": {prompt.path.name: [prompt.digest]}}
        make = _text if form == "text" else _chat
        for split, items in data.splits(task, fold).items():
            described = [item for item in items if item.annotation is not None]
            left_out["nothing describes its cartoon"] += len(items) - len(described)
            splits[split] = [make(item, *_asked(item, prompt)) for item in described]
    return MadeSet(splits, Source(origin=origin, licences=(LICENCE,), left_out=left_out))


def _choices(data: NewYorker, items: Sequence[Item], left_out: Counter[str]) -> Iterator[ChoiceExample]:
    """Each item once: to an encoder that sees the cartoon its descriptions are the same."""
    images = {contest: data.cartoon(contest).load() for contest in dict.fromkeys(item.contest for item in items)}
    for item in {(item.contest, item.choices): item for item in items}.values():
        image = images[item.contest]
        if image is None:
            left_out["the folder has no picture of it"] += 1
        else:
            label = LETTERS.index(item.label)
            yield ChoiceExample(image=image, choices=item.choices, label=label, group=_group(item))


def _asked(item: Item, prompt: Prompt) -> tuple[Sequence[PromptTurn], PromptTurn]:
    """The question and the answer as the suite asks and shows them."""
    description = "" if item.annotation is None else lay_out(links_of_annotation(item.annotation))
    asked = {"caption": item.choices[0]} if item.task == "explanation" else {"options": item.choices}
    values: dict[str, Any] = {"description": description, **asked}
    *_, answer, _ = prompt.render(examples=[{**values, "answer": item.label}], **values)
    return prompt.render(**values), answer


def _text(item: Item, question: Sequence[PromptTurn], answer: PromptTurn) -> TextExample:
    return TextExample(input="\n".join(turn.text for turn in question), target=answer.text, group=_group(item))


def _chat(item: Item, question: Sequence[PromptTurn], answer: PromptTurn) -> ChatExample:
    return ChatExample(
        prompt=tuple(map(_turn, question)),
        completion=(_turn(answer),),
        group=_group(item),
        meta={"task": f"newyorker/{item.task}", "sample": item.id, "fold": item.fold},
    )


def _turn(turn: PromptTurn) -> JsonObject:
    return {"role": turn.role, "content": [{"type": "text", "text": turn.text}]}


def _group(item: Item) -> str:
    return f"contest {item.contest}"
