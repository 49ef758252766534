"""Tasks with no Python: a YAML file says what is asked and how it is scored, a JSONL file or a folder what of.

```yaml
name: posters
summary: Which slogan a poster argues for.
data: posters.jsonl
chain: action-reason
count: 3
score: choice
```
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.agents.vqa import ask_about_picture
from askance.chains import REPLY, Chain, Context, Step, action_reason, end_to_end, picture, verbalize
from askance.chains.catalog import installed_chain
from askance.errors import UsageError
from askance.evals.declaration import Declaration, check_score, declaration_of, takes
from askance.evals.declared_data import Rows
from askance.evals.solving import ChainSolver
from askance.evals.tasks import Definition, Task
from askance.evals.yaml_files import read_yaml

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.models import ModelLike
    from askance.prompts import PromptLibrary


def read_task(path: Path) -> Definition:
    """The task that a YAML file declares.

    Raises:
        UsageError: the file cannot be read, or says what no task can; the message names the key.
    """
    declaration = declaration_of(read_yaml(path, what="a task"), str(path))
    return _definition(declaration, path)


def from_form(form: Any, *, name: str) -> Definition:
    """The task that a run tells of, for scoring and reading it again with the file gone.

    Raises:
        UsageError: it tells of none.
    """
    if not isinstance(form, dict):
        raise UsageError(
            f"What the run tells of the task {name!r} is no declaration.", hint="Name the task's file: `--task FILE`."
        )
    return _definition(declaration_of(cast("dict[str, Any]", form), f"the task {name!r} of the run"), None)


def _definition(declaration: Declaration, path: Path | None) -> Definition:
    def make(
        data: Path | None = None,
        *,
        vlm: ModelLike,
        llm: ModelLike | None = None,
        context: Context | None = None,
        prompts: PromptLibrary | None = None,
    ) -> Task:
        answering = solver(vlm, llm, context=context, prompts=prompts)
        return Task(
            samples=Rows(declaration, answering.chain).read(_place(declaration, path, data)),
            solver=answering,
            options={} if context is None else {"context": context},
        )

    def solver(
        vlm: ModelLike,
        llm: ModelLike | None = None,
        *,
        context: Context | None = None,
        prompts: PromptLibrary | None = None,
    ) -> ChainSolver:
        if context is not None and "context" not in takes(declaration.chain):
            raise UsageError(
                f"The chain {declaration.chain!r} of the task {declaration.name!r} takes no context.",
                hint="Leave `--context` out.",
            )
        chain = _chain(declaration, (vlm, llm), context=context or declaration.context, prompts=prompts)
        check_score(declaration, chooses=chain.target.chooses, where=f"The task {declaration.name!r}")
        return ChainSolver(chain)

    origin: JsonObject = {"declaration": declaration.form()}
    if path is not None:
        origin["task"] = path.as_posix()
    return Definition(
        name=declaration.name,
        make=make,
        scoring=declaration.scoring,
        solver=solver,
        summary=declaration.summary,
        origin=origin,
    )


def _place(declaration: Declaration, path: Path | None, data: Path | None) -> Path:
    if data is not None:
        return Path(data)
    if declaration.data is None or path is None:
        raise UsageError(
            f"The task {declaration.name!r} names no data.",
            hint="Give `--data`: a JSONL file, or a folder of pictures; or write `data: FILE` into its file.",
        )
    home = path.resolve().parent
    place = (home / declaration.data).resolve()
    if not place.is_relative_to(home):
        raise UsageError(
            f"{str(path)!r}: `data` leads out of the folder of its file: {declaration.data!r}.",
            hint="Put the data beside it, or name them with `--data`.",
        )
    return path.parent / declaration.data


def _chain(
    told: Declaration, roles: tuple[Any, Any], *, context: Context | None, prompts: PromptLibrary | None
) -> Chain:
    """The chain that a declaration tells of, with the models for `vlm` and `llm`."""
    vlm, llm = roles
    match told.chain:
        case "verbalize":
            return verbalize(vlm, llm, context=context or "T_V", prompts=prompts)
        case "action-reason":
            return action_reason(
                vlm,
                llm,
                context=context or "T_V",
                statement=told.statement is not False,
                mode=told.choose,
                count=told.count,
                prompts=prompts,
            )
        case "end-to-end":
            return end_to_end(
                vlm,
                llm,
                context=context,
                statement=bool(told.statement),
                mode=told.choose,
                count=told.count,
                step_by_step=told.step_by_step,
                prompts=prompts,
            )
        case "ask":
            return _asking(told, vlm, prompts)
        case _:
            make = installed_chain(told.chain)
            if make is None:
                raise UsageError(f"There is no chain {told.chain!r}.", hint="Install the package that brings it.")
            return make(vlm, llm, prompts=prompts)


def _asking(told: Declaration, vlm: Any, prompts: PromptLibrary | None) -> Chain:
    node = ask_about_picture(
        vlm,
        question=told.question,
        labels=told.labels,
        several=told.several or told.score == "labels",
        prompt=told.prompt,
        prompts=prompts,
    )
    step = Step(link=REPLY, node=node, subject=picture)
    return Chain("ask", target=REPLY, steps=[step], mode=node.model.mode)
