"""Tasks without Python: a YAML file declares chain and scorer, a table or a folder of pictures has the samples.

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

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, StringConstraints, ValidationError
from typing_extensions import override

from askance.chains import Chain, Context, ask
from askance.chains.named_chain import CHAINS, CHOOSING, NamedChain, find_chain
from askance.data_table import HUB
from askance.documents import read_yaml
from askance.errors import UsageError
from askance.evals.judges import judged_scoring
from askance.evals.sample import Sample, SampleQuestion
from askance.evals.solver import ChainSolver
from askance.evals.suite.answer_judge import AnswerJudge, NotedJudge
from askance.evals.suite.answer_match import MATCHES
from askance.evals.task import Task
from askance.evals.task_options import type_in_words
from askance.evals.yaml_rows import Rows, told_equal
from askance.evals.yaml_scorer import ScoreName, scorer_of, with_metrics
from askance.evals.yaml_shots import RowExamples, ShownRows
from askance.models import ModelLike

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.evaluation import Evaluation
    from askance.evals.scorer import Scorer
    from askance.prompts import PromptLibrary
else:
    PromptLibrary = Any  # pydantic would look into it

SHOTS_NOTE = "The examples before each question are other rows of the data, of pictures outside the question's own fold"

JUDGE_HINT = "Give one: -T judge=openai:gpt-4o"

_PLACEHOLDER = re.compile(r"\{[{%].*?[%}]\}|\{[a-z_]+\}")

TASK_CHAINS = ("verbalize", "action-reason", "end-to-end", "ask")
"""The chains that ship of which a file can make a task."""


def takes(chain: str) -> frozenset[str]:
    """The keys that a file may have for a chain, beside those that are allowed for all chains.

    Raises:
        UsageError: an installed package brings the chain, and it cannot be loaded.
    """
    if chain == "ask":
        return frozenset({"question", "labels", "several", "prompt"})
    named = _find(chain)
    own = () if named is None else named.option_names
    return frozenset({*own, "options", "first_option"} if named is None or named.may_choose else own)


def _find(chain: str) -> NamedChain | None:
    """The chain of a name, if a file can make a task of it."""
    return find_chain(chain) if chain in TASK_CHAINS or chain not in CHAINS.built_in else None


_OF_ALL = frozenset({"name", "summary", "data", "columns", "chain", "score", "metrics", "labels"})

Text: TypeAlias = Annotated[str, StringConstraints(pattern=r"\S", strict=True)]
Texts: TypeAlias = Annotated[tuple[Text, ...], Field(min_length=1)]
Columns: TypeAlias = Annotated[Mapping[Text, Text | Texts], "a map from what a row has to the names of columns"]
Flag: TypeAlias = Annotated[bool, Field(strict=True)]


def _known(chain: str) -> str:
    if _find(chain) is None:
        msg = "there is no such chain"
        raise ValueError(msg)
    return chain


AnyChain: TypeAlias = Annotated[
    str,
    Field(strict=True),
    AfterValidator(_known),
    f"one of {', '.join(f'`{name}`' for name in TASK_CHAINS)}, or a chain that an installed package brings",
]


class Declaration(BaseModel):
    """The content of a YAML file; the fields are named as its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Text
    chain: AnyChain
    score: ScoreName
    summary: Text = ""
    data: Text | None = None
    """A table or a folder of pictures in the folder of the YAML file, or `hf:OWNER/NAME`; see `askance.data_table`."""
    columns: Columns = Field(default_factory=dict[str, str | tuple[str, ...]])
    """By key of a row, the column of the table that holds it, where that is called otherwise; or a list of columns."""
    metrics: Texts = ()
    """Names of the metrics to show, the one that stands for the task first; empty shows all."""
    labels: Texts = ()
    """A closed set of answers."""
    options: Texts = ()
    """Options for samples that have none of their own."""
    first_option: Literal[0, 1] = 1
    """The number that targets have for the first option."""
    context: Context | None = None
    statement: Flag | None = None
    choose: Literal["multi", "single"] = "multi"
    count: Annotated[int, Field(strict=True, ge=1, le=100)] = 3
    step_by_step: Flag = False
    question: Text | None = None
    """What is asked about every picture whose row has no `question`."""
    several: Flag = False
    prompt: Text | None = None
    """Name of a user's own prompt file."""

    @classmethod
    def of(cls, content: Mapping[str, Any], where: str) -> Declaration:
        """The declaration in `content`, with every key checked.

        Args:
            content: values by key; null counts as not given.
            where: name of the file in messages.

        Raises:
            UsageError: a key is unknown or missing, or its value is not allowed.
        """
        chain = content.get("chain")
        others = {*cls.model_fields} - _OF_ALL - (takes(chain) if isinstance(chain, str) else {*cls.model_fields})
        alien = [name for name in content if name in others]
        if alien and _find(str(chain)) is not None:
            takers = ", ".join(f"`{each}`" for each in TASK_CHAINS if alien[0] in takes(each))
            raise UsageError(f"{where}: the chain `{chain}` takes no `{alien[0]}`.", hint=f"It goes with {takers}.")
        try:
            declaration = cls(**{name: value for name, value in content.items() if value is not None})
        except ValidationError as error:
            raise cls._refused(error, where) from error
        declaration._check(where)
        return declaration

    @classmethod
    def _refused(cls, error: ValidationError, where: str) -> UsageError:
        errors = error.errors(include_url=False)
        first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
        name = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            return UsageError(f"{where}: `{name}` is not known.", hint=f"A task has {', '.join(cls.model_fields)}.")
        takes = type_in_words(cls.model_fields[name])
        if first["type"] == "missing":
            return UsageError(f"{where}: `{name}` is missing.", hint=f"It is {takes}.")
        hint = f"Mend `{name}`."
        if isinstance(first["input"], bool):
            hint = f'YAML reads yes, no, on and off as true and false; write {name} in quotes: "yes", "no".'
        return UsageError(f"{where}: `{name}` is {takes}, not {first['input']!r}.", hint=hint)

    def _check(self, where: str) -> None:
        """Refuses values that do not go together."""
        if self.chain in TASK_CHAINS:
            self.check_score(chooses=self.chain in CHOOSING, where=where)
        if self.score == "labels" and not self.labels:
            raise UsageError(f"{where}: `labels` are missing.", hint="List the labels that there are.")
        if self.question is not None and (placeholder := _PLACEHOLDER.search(self.question)):
            raise UsageError(
                f"{where}: `question` is sent as it stands, and nothing fills in {placeholder[0]!r}.",
                hint="For a question of its own in each row leave `question` out; `columns` says which column has it.",
            )
        if self.score != "judge":
            _ = self.scorer()  # its metrics are checked

    def check_score(self, *, chooses: bool, where: str) -> None:
        """Refuses a scorer that does not fit the answers of the chain.

        Args:
            chooses: whether the chain chooses among options.
            where: name of the file in messages.

        Raises:
            UsageError: the scorer does not fit.
        """
        if (self.score == "choice") is not chooses and self.score != "none":
            fitting = "`choice`" if chooses else f"{', '.join(f'`{name}`' for name in MATCHES)}, `labels`, `judge`"
            raise UsageError(
                f"{where}: `{self.score}` does not score what the chain `{self.chain}` gives.",
                hint=f"That is scored by {fitting}, or by `none`.",
            )

    def scorer(self, judge: NotedJudge | None = None) -> Scorer:
        """How answers are scored.

        Args:
            judge: who judges, where a judge does.

        Raises:
            UsageError: there is no such metric, or no judge where one is needed.
        """
        if self.score == "judge":
            if judge is None:
                raise UsageError(f"The task {self.name!r} is scored by a judge, and none is there.", hint=JUDGE_HINT)
            plain = judged_scoring(judge.judge, card=judge.note, question=self.question_of)
        else:
            plain = scorer_of(self.score, labels=self.labels, count=1 if self.choose == "single" else self.count)
        return with_metrics(plain, self.metrics, name=self.score)

    def question_of(self, sample: Sample) -> str:
        """What is asked about a sample: its own question, else that of the file."""
        return str(sample.inputs.get("question") or self.question or SampleQuestion().text)

    def form(self) -> JsonObject:
        """The declaration as JSON, without defaults and without `data`."""
        return self.model_dump(mode="json", exclude={"data"}, exclude_defaults=True)


class YamlTask(Task):
    """A task that a YAML file declares; each file has a class of its own."""

    declaration: ClassVar[Declaration]
    file: ClassVar[Path | None] = None
    """None if the declaration comes from a run whose file is gone."""

    data: Path | None = None
    """A table (JSON lines, CSV, Parquet, `hf:OWNER/NAME`) or a folder of pictures; by default what the file names."""
    vlm: ModelLike
    """Sees the picture."""
    llm: ModelLike | None = None
    """Reasons over words; by default the VLM does."""
    context: Context | None = None
    """How the description is made; by default as the file says."""
    judge: AnswerJudge = AnswerJudge()
    """The judge, where the file says `score: judge`."""
    examples: RowExamples = RowExamples(note=SHOTS_NOTE)
    """The answered rows before each question."""
    prompts: PromptLibrary | None = Field(default=None, exclude=True, repr=False)
    """The library of prompts."""
    allow_folders: tuple[Path, ...] = Field(default=(), exclude=True, repr=False)
    """Folders that a table may name pictures of, beside its own. Only whoever runs the task says so."""

    _first: int | None = PrivateAttr(default=None)
    """How many samples are read; None reads all."""

    @override
    def check(self) -> None:
        super().check()
        scored, given = self.declaration.score == "judge", self.judge.judge is not None
        if given and not scored:
            raise UsageError(
                f"The task {self.declaration.name!r} is scored by `{self.declaration.score}`, so it takes no judge.",
                hint="Leave the judge out, or write `score: judge` into its file.",
            )
        if scored and not given:
            raise UsageError(
                f"The task {self.declaration.name!r} is scored by a judge, and none is given.", hint=JUDGE_HINT
            )

    @override
    def samples(self) -> Sequence[Sample]:
        chain = self.solver().chain
        samples = Rows(self.declaration, chain, self.allow_folders).read(self._place(), first=self._first)
        return ShownRows(self.declaration, chain).before(samples, self.examples) if self.examples.shots else samples

    @override
    def evaluation(self) -> Evaluation:
        made = super().evaluation()
        return replace(made, notes=(*made.notes, *told_equal(made.samples)))

    @override
    def evaluation_of_first(self, count: int) -> Evaluation:
        if self.examples.shots or not str(self._place()).startswith(HUB):
            return super().evaluation_of_first(count)
        task = self.model_copy()
        task._first = count
        evaluation = task.evaluation()
        more = (f"The first {count:,} samples.",) if len(evaluation.samples) == count else ()
        return replace(evaluation, notes=(*evaluation.notes, *more)).limited(count)

    @override
    def scorer(self) -> Scorer:
        return self.declaration.scorer(self.judge.noted)

    @override
    def solver(self) -> ChainSolver:
        declaration = self.declaration
        if self.context is not None and "context" not in takes(declaration.chain):
            raise UsageError(
                f"The chain {declaration.chain!r} of the task {declaration.name!r} takes no context.",
                hint="Leave `--context` out.",
            )
        chain = self._chain()
        declaration.check_score(chooses=chain.target.chooses, where=f"The task {declaration.name!r}")
        return ChainSolver(chain)

    @override
    def question_of(self, sample: Sample) -> SampleQuestion:
        return SampleQuestion(self.declaration.question_of(sample))

    @classmethod
    @override
    def summary(cls) -> str:
        return cls.declaration.summary

    @classmethod
    @override
    def origin(cls) -> JsonObject:
        place: JsonObject = {} if cls.file is None else {"task": cls.file.as_posix()}
        return {"declaration": cls.declaration.form(), **place}

    def _place(self) -> Path | str:
        declaration, file = self.declaration, self.file
        if self.data is not None:
            return self.data
        if declaration.data is None or file is None:
            raise UsageError(
                f"The task {declaration.name!r} names no data.",
                hint="Give `--data`: a JSONL or CSV file, or a folder of pictures; or write `data: FILE` into it.",
            )
        home, of_hub = file.resolve().parent, declaration.data.startswith(HUB)
        # What `datasets` loads may be a folder, too.
        named = declaration.data.removeprefix(HUB).partition("?")[0]
        place = Path(named).resolve() if of_hub else (home / declaration.data).resolve()
        if of_hub and not place.exists():
            return declaration.data
        if not place.is_relative_to(home):
            raise UsageError(
                f"{str(file)!r}: `data` leads out of the folder of its file: {declaration.data!r}.",
                hint="Put the data beside it, or name them with `--data`.",
            )
        return declaration.data if of_hub else file.parent / declaration.data

    def _chain(self) -> Chain:
        """The chain that the file declares."""
        declaration = self.declaration
        if declaration.chain == "ask":
            return self._asking()
        named = _find(declaration.chain)
        if named is None:
            raise UsageError(f"There is no chain {declaration.chain!r}.", hint="Install the package that brings it.")
        options = {
            name: getattr(declaration, name) for name in named.option_names if name in declaration.model_fields_set
        }
        if self.context is not None:
            options["context"] = self.context
        return named.with_options(options).make(self.vlm, self.llm, prompts=self.prompts)

    def _asking(self) -> Chain:
        declaration = self.declaration
        several = declaration.several or declaration.score == "labels"
        return ask(
            self.vlm,
            declaration.question,
            labels=declaration.labels,
            several=several,
            prompt=declaration.prompt,
            prompts=self.prompts,
        )


def read_task(path: Path) -> type[YamlTask]:
    """The task that a YAML file declares.

    Raises:
        UsageError: the file cannot be read, or declares no task; the message names the key.
    """
    return _task(Declaration.of(read_yaml(path, what="a task"), str(path)), path)


def task_from_form(form: Any, *, name: str) -> type[YamlTask]:
    """The task that a run declares, to score or rerun it if the file is gone.

    Raises:
        UsageError: the run has no declaration.
    """
    if not isinstance(form, dict):
        raise UsageError(
            f"What the run tells of the task {name!r} is no declaration.", hint="Name the task's file: `--task FILE`."
        )
    return _task(Declaration.of(cast("dict[str, Any]", form), f"the task {name!r} of the run"), None)


def _task(declared: Declaration, path: Path | None) -> type[YamlTask]:
    class Declared(YamlTask):
        name = declared.name
        declaration = declared
        file = path

    return Declared
