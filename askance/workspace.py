"""The workspace of a command or script: settings, records, engine, models and prompts, made in one place.

```python
with Workspace(mode="replay") as work:
    chain = verbalize(work.model("openai:gpt-4o"), prompts=work.library)
```
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from askance.errors import ConfigError, UsageError
from askance.images import image_policy
from askance.models import BudgetGuard, Config, Engine, get_embedder, get_model, get_scorer, run_sync
from askance.models.spec import Spec
from askance.otel import spans_asked
from askance.prompts import PromptLibrary
from askance.python_file import is_python, load_object
from askance.replay import STORE_VARIABLE, Address, Budget, Ledger, Mode, Records, SqliteLedger, open_records

if TYPE_CHECKING:
    from types import TracebackType

    from askance.chat import Outcome
    from askance.models import Model, RecordedScorer
    from askance.models.encoders.embedder import RecordedEmbedder
    from askance.models.encoders.records import RecordedModel
    from askance.models.events import Observer
    from askance.models.settings import OutputMode

Role: TypeAlias = Literal["vlm", "llm"]
"""What a model is for: it sees the picture, or it reads words."""

_BUDGET_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(kw_only=True)
class Workspace:
    """The settings, the records, the models and the prompts of one command or script.

    Each is made once, when it is first needed. What is given here goes before the settings file.
    """

    mode: Mode = "auto"
    plan: bool = False
    """Whether this is for a plan, so that no call is made and nothing is written."""
    retry: Collection[Outcome] = frozenset()
    """Recorded outcomes that are asked again: `invalid`, `refused`, `filtered`, `truncated`."""
    budget: str | None = None
    """The most that may be spent: `5.00` (US dollars), `20000tokens`, `100calls`; `5.00@ads` holds all works that share
    the records and name it so."""
    name: str = "work"
    """Name of the work; works of one name share a budget."""
    ledger: Path | None = None
    """File of what was spent of the budget; by default it is kept with the records, by the name."""
    concurrency: int | None = None
    """Most calls to one endpoint at a time; None adapts to the endpoint."""
    rpm: float | None = None
    """Most calls to one endpoint per minute."""
    tpm: float | None = None
    """Most tokens per minute and endpoint, input and output together."""
    protocol: OutputMode | None = None
    """Form in which answers are asked for."""
    image_policy: str | None = None
    """How pictures are prepared: `clean` or `original`."""
    store: Address | None = None
    """Address of the records; by default that of `ASKANCE_STORE`, of the settings file, or of the project."""
    prompts: Path | None = None
    """Folder with prompts of one's own; by default that of the settings file, or `./prompts`."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings of every model, as `temperature`; they go before those of the settings file."""
    local: Callable[[Config], str] | None = None
    """Gives the spec of a local model for roles without another; called when one is needed, as it may download it."""
    observers: list[Observer] = field(default_factory=list["Observer"])
    """Observers of every event of every call."""

    _models: dict[str, Model] = field(init=False, repr=False, default_factory=dict[str, "Model"])
    _encoders: list[RecordedModel] = field(init=False, repr=False, default_factory=list["RecordedModel"])
    _traced: ExitStack = field(init=False, repr=False, default_factory=ExitStack)

    @property
    def asks(self) -> bool:
        """Whether calls may be made and recorded."""
        return not self.plan and self.mode != "replay"

    @cached_property
    def config(self) -> Config:
        """The settings of the settings file.

        Raises:
            ConfigError: the file cannot be read, has an unknown setting, or is another user's.
        """
        return Config.find(asks=self.asks)

    @cached_property
    def records(self) -> Records:
        """The records.

        Raises:
            StoreError: the address is of no known kind, or what is there is not a store, or one of another version.
        """
        configured = None if os.environ.get(STORE_VARIABLE) else self.config.store
        return open_records(self.store or configured, read_only=not self.asks)

    @cached_property
    def library(self) -> PromptLibrary:
        """The prompts: the user's own over the package's.

        Raises:
            UsageError: the folder of prompts does not exist.
        """
        overlay = self.prompts or self.config.prompts
        if overlay is None:
            return PromptLibrary()
        if not overlay.is_dir():
            raise UsageError(
                f"There is no prompts folder {str(overlay)!r}.",
                hint=f"`askance prompts eject NAME --to {overlay}` begins one.",
            )
        return PromptLibrary([overlay])

    @cached_property
    def engine(self) -> Engine:
        """The engine of all models.

        Raises:
            UsageError: settings that contradict each other, or a budget that cannot be read.
        """
        budget = self._named_budget
        return Engine(
            mode=self.mode,
            records=self.records,
            retry=frozenset(self.retry),
            concurrency=self.concurrency,
            rpm=self.rpm,
            tpm=self.tpm,
            image_policy=image_policy(self.image_policy) if self.image_policy else None,
            protocol=self.protocol,
            budget=None if budget is None or self.plan else BudgetGuard(self._ledger(*budget)),
            observers=self.observers,
        )

    def use_ledger(self, *, name: str | None = None, file: Path | None = None) -> None:
        """Keeps the ledger of the budget in `file`, or with the records by `name`, from before the first call on.

        One that has a name of its own stays with the records.
        """
        self.name, self.ledger = name or self.name, file
        if self.engine.budget is not None and self._named_budget is not None:
            self.engine.budget.ledger = self._ledger(*self._named_budget)

    @cached_property
    def _named_budget(self) -> tuple[Budget, str] | None:
        """The budget, and its own name; empty where it has none.

        Raises:
            UsageError: it cannot be read.
        """
        if self.budget is None:
            return None
        amount, at, name = self.budget.partition("@")
        if at and not _BUDGET_NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} cannot be the name of a budget.", hint="Use letters, digits, `-` and `_`: 5.00@ads."
            )
        return Budget.parse(amount), name

    def _ledger(self, budget: Budget, name: str) -> Ledger:
        if name or self.ledger is None:
            return self.records.ledger(name or self.name, budget)
        return SqliteLedger(self.ledger, budget)

    def model(self, name: str) -> Model:
        """The model of a name, which is closed with the workspace; a name that is given twice is one model.

        Args:
            name: a spec (`openai:gpt-4o`), a name of the settings file, or a backend of the user's own by its file
                (`mine.py:Mine`), which is run.

        Raises:
            ConfigError: there is no such name, or the spec cannot be read.
            UsageError: the backend's file cannot be run, or has no such backend.
        """
        if name not in self._models:
            model = load_object(name) if is_python(name) else name
            self._models[name] = get_model(model, engine=self.engine, config=self.config, **self.settings)
        return self._models[name]

    def embedder(self, spec: str) -> RecordedEmbedder:
        """The embedder of a spec, which is closed with the workspace.

        Raises:
            ConfigError: the spec cannot be read.
        """
        embedder = get_embedder(spec, engine=self.engine)
        self._encoders.append(embedder)
        return embedder

    def scorer(self, spec: str) -> RecordedScorer:
        """The scorer of a spec, likewise."""
        scorer = get_scorer(spec, engine=self.engine)
        self._encoders.append(scorer)
        return scorer

    def described_model(self, form: Mapping[str, Any]) -> Model | None:
        """The model that a run describes, with its settings in the settings file, such as its price.

        Args:
            form: of the model, as `Model.form` gives it.

        Returns:
            The model of the settings file that makes the same requests, else the one of the description's own name;
            None where there is neither.
        """
        who: Mapping[str, Any] = form["id"]
        own = str(who.get("name") or f"{who.get('provider')}:{who.get('model')}")
        names = [name for name, table in self.config.models.items() if _may_be(table, who)]
        for name in (*names, f"{own}@{who['endpoint']}" if who.get("endpoint") else own):
            if is_python(name) and name not in self._models:
                continue  # a run may be a stranger's, and its word runs no file
            try:
                model = self.model(name)
            except (ConfigError, UsageError):
                continue
            if model.form() == form:
                return model
        return None

    @cached_property
    def local_model(self) -> str | None:
        """The spec that `local` gives; None without it."""
        return None if self.local is None else self.local(self.config)

    def default_model(self, role: Role) -> str | None:
        """The name of the default model of a role: the local one, or the settings file's."""
        return self.local_model or (self.config.vlm if role == "vlm" else self.config.llm)

    def close(self) -> None:
        """Closes what was opened."""
        made = vars(self)
        try:
            for opened in (*self._models.values(), *self._encoders):
                run_sync(opened.aclose())
        finally:
            if "engine" in made and self.engine.budget is not None:
                self.engine.budget.close()
            if "records" in made:
                self.records.close()

    def __enter__(self) -> Self:
        if not self.plan:
            self._traced.enter_context(spans_asked(self.mode))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._traced:
            self.close()


def _may_be(table: Mapping[str, Any], who: Mapping[str, Any]) -> bool:
    """Whether a model of the settings file may have this identity; any other is not made."""
    if who.get("name") is not None:
        return table.get("identity") == who["name"]
    return Spec.parse(table["spec"]).model == who.get("model")
