"""Training by a recipe: each rate on its own, the best of validation kept, and a record of all that decides the result.

    OUT/                    the weights as `hf:` or `clip:` reads them, or the adapter
    OUT/train.json          recipe, data, base, seed, versions, device, what was selected, what validation said
    OUT/log.jsonl           a line a step, and a line a validation
    OUT/rates/RATE/         checkpoints, while a training is under way

The same call goes on where it was interrupted. What validation is measured on is the split `validation` of the training
set, for every rate of every fold anew; test items are not in reach.
"""

from __future__ import annotations

import json
import platform
import resource
import shutil
import statistics
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from askance import __version__
from askance.documents import parse_json
from askance.errors import UsageError, optional_library
from askance.evals.run_folder import write_whole, writing_to
from askance.models.local.adapter_folder import TRAINING_FILE
from askance.models.local.folder import digest_of, find_folder, identity_of, json_beside
from askance.models.local.runtime import no_progress_bars, packages
from askance.models.local.transformers_model import load_model
from askance.models.settings import Local
from askance.process_lock import ProcessLock
from askance.training.chat_objective import chat_objective
from askance.training.encoder_objective import encoder_objective
from askance.training.objective import Control, Objective, check_control, shuffled, without_pictures
from askance.training.recipe import HIGHER, FitRecipe
from askance.training.text_objective import text_objective
from askance.training.trainer import FitProgress, Lesson, last_words, learn, no_space, steps_of
from askance.training.weights import save_weights

if TYPE_CHECKING:
    from askance.models.local.folder import ModelFolder
    from askance.models.settings import Dtype
    from askance.training.training_set import TrainingExample, TrainingSet

FORMAT = "askance-training/1"
LOG, RATES, WEIGHTS, RESULT = "log.jsonl", "rates", "weights", "result.json"
OnProgress: TypeAlias = Callable[[FitProgress, int, int], None]
"""Takes how far a training at one rate is, the number of the rate from 1, and how many there are."""

TIMED = 10
"""Steps that a plan makes; fewer where a training has fewer."""
PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate")


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A training that is to be done, or is done.

    Args:
        recipe: how.
        data: on what.
        base: from which model: `hf:FOLDER`, or `clip:FOLDER` for a dual encoder.
        control: what is taken from it, to see what its result owes to pictures.
        seed: of the order of examples, of new weights, and of everything else that is random.
        device: `cpu`, or `auto` for the first accelerator there is.
        dtype: numbers that weights are held in; `float32` is safe, `bfloat16` takes half the memory under an adapter.

    Raises:
        UsageError: the set is of another kind than the recipe is for, has no validation to choose between rates by, or
            has no pictures for a control.
        ConfigError: the base is not on this machine, or is of another kind.
    """

    recipe: FitRecipe
    data: TrainingSet
    base: str
    control: Control | None = None
    seed: int = 0
    device: str = "auto"
    dtype: Dtype = "float32"

    def __post_init__(self) -> None:
        fields, name = self.recipe.fields, self.recipe.name
        if self.data.kind != fields.data:
            raise UsageError(
                f"The recipe {name!r} is for a training set of the kind {fields.data!r}, and {str(self.data.folder)!r} "
                f"is of the kind {self.data.kind!r}.",
                hint="`askance train recipes` says which recipe takes which kind.",
            )
        chosen = len(fields.rates) > 1 or fields.patience or fields.schedule == "plateau"
        if not self.data.count("validation") and chosen:
            raise UsageError(
                f"The training set {str(self.data.folder)!r} has no split `validation`, by which the recipe {name!r} "
                "chooses rate and step.",
                hint="Make a set with one; or give one rate and no early stop: `-R rates=1e-5 -R patience=null -R "
                "schedule=constant`.",
            )
        if self.control is not None and not self.data.has_pictures:
            raise without_pictures()
        provider = self.base.partition(":")[0]
        wanted = "hf" if fields.loss == "completion" else "clip"
        if provider != wanted:
            raise UsageError(
                f"The recipe {name!r} trains a model of `{wanted}:`, and the base is {self.base!r}.",
                hint=f"Write `--base {wanted}:FOLDER`.",
            )

    @property
    def local(self) -> Local:
        """How the base is held."""
        return Local(device=self.device, dtype=self.dtype)

    @property
    def folder(self) -> ModelFolder:
        """Of the base.

        Raises:
            ConfigError: it is not on this machine, or not whole.
        """
        provider, _, source = self.base.partition(":")
        return find_folder(source, self.local, provider=provider)

    @property
    def decides(self) -> dict[str, Any]:
        """All that decides the result, as JSON values, but for versions and the device."""
        folder, provider = self.folder, self.base.partition(":")[0]
        identity = identity_of(folder, self.local)
        return {
            "recipe": self.recipe.form,
            "values": dict(self.recipe.values),
            "control": self.control,
            "seed": self.seed,
            "dtype": self.dtype,
            "base": {
                "spec": self.base,
                "identity": f"{provider}:{identity.partition(':')[2]}",
                "digest": digest_of(folder, self.local),
            },
            "data": {
                "folder": self.data.folder.name,
                "kind": self.data.kind,
                "digest": self.data.digest,
                "rows": {split: self.data.count(split) for split in self.data.splits},
                **({"prompts": dict(self.data.prompts)} if self.data.prompts else {}),
            },
        }

    def check_packages(self) -> None:
        """Looks whether all is there that trains.

        Raises:
            MissingExtra: a package is not installed.
        """
        adapter = "adapter" in self.recipe.fields.trained
        for library in ("torch", "transformers", "accelerate", *(("trl", "peft", "datasets") if adapter else ())):
            optional_library(library, "train", lacking="Training needs {}, which is not installed.")

    def examples(self) -> tuple[list[TrainingExample], list[TrainingExample]]:
        """Those of training, whose pictures a control may exchange; and those of validation, as they are.

        Raises:
            BadData: the set cannot be read.
        """
        train = list(self.data.examples("train"))
        validation = list(self.data.examples("validation")) if self.data.count("validation") else []
        check_control(self.control, train)
        return (shuffled(train, seed=self.seed) if self.control == "shuffled" else train), validation

    def objective(self) -> Objective:
        """The base with fresh new weights, and how it learns.

        Raises:
            MissingExtra: a package is not installed.
            ConfigError: the base cannot be loaded.
            UsageError: the base has nothing of what the recipe trains.
        """
        fields, name = self.recipe.fields, self.base.partition(":")[2]
        folder = self.folder
        self.check_packages()
        packages(self.base)[1].set_seed(self.seed)
        if fields.loss != "completion":
            return encoder_objective(folder, self.local, fields, name=name, control=self.control)
        if fields.data == "text":
            return text_objective(folder, self.local, fields, name=name)
        return chat_objective(folder, self.local, fields, name=name, control=self.control)


# --- training ---


def fit(training: Fit, out: Path, *, on_progress: OnProgress | None = None) -> dict[str, Any]:
    """Trains, or goes on with what was interrupted, and repeats nothing; returns what `train.json` says.

    Args:
        training: what is to be done.
        out: the folder of its result.
        on_progress: called after each step.

    Raises:
        UsageError: another training is in `out`, or another process trains there.
        AskanceError: the loss is no number any more, or there is no space; the last good checkpoint stays.
        MissingExtra, ConfigError, BadData, BadImage: see `Fit`.
    """
    decides = training.decides
    done = _begun(out, decides)
    if done.get("state") == "finished":
        return done
    training.check_packages()
    with writing_to(out), _alone(out):
        # Another process may have begun or finished in the meantime.
        done = _begun(out, decides)
        if done.get("state") == "finished":
            return done
        begun = {"format": FORMAT, "state": "training", **decides}
        write_whole(out / TRAINING_FILE, _json(begun))
        outcomes, facts = _outcomes(training, out, on_progress)
        best = _chosen(training.recipe, outcomes)
        for file in sorted(_place(out, best["rate"], WEIGHTS).iterdir()):
            file.replace(out / file.name)
        finished = {
            **begun,
            "state": "finished",
            "selected": {name: best[name] for name in ("rate", "step", "value")},
            "rates": outcomes,
            **facts,
            "hours": round(sum(each["seconds"] for each in outcomes) / 3600, 4),
            "result": _identity(training, out),
        }
        write_whole(out / TRAINING_FILE, _json(finished))
        shutil.rmtree(out / RATES, ignore_errors=True)
    return finished


@contextmanager
def _alone(out: Path) -> Generator[None]:
    """Keeps other processes from training in a folder.

    Raises:
        UsageError: one does.
    """
    out.mkdir(parents=True, exist_ok=True)
    try:
        lock = ProcessLock(out)
    except BlockingIOError:
        raise UsageError(
            f"Another process trains in {str(out)!r}.", hint="Wait for it, or name a new folder."
        ) from None
    try:
        yield
    finally:
        lock.close()


def _outcomes(training: Fit, out: Path, on_progress: OnProgress | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What came of each rate, and facts of this process."""
    train, validation = training.examples()
    rates, outcomes = training.recipe.fields.rates, list[dict[str, Any]]()
    facts: dict[str, Any] = {}
    for number, rate in enumerate(rates, start=1):
        known: dict[str, Any] = {**json_beside(out / RATES / f"{rate:g}", RESULT)}
        if known and _place(out, rate, WEIGHTS).is_dir():
            outcomes.append(known["outcome"])
            facts = known["facts"]
            continue
        objective = training.objective()
        lesson = Lesson(
            recipe=training.recipe,
            rate=rate,
            train=train,
            validation=validation,
            seed=training.seed,
            folder=_place(out, rate, "checkpoints"),
            log=out / LOG,
        )

        def tell(progress: FitProgress, number: int = number) -> None:
            if on_progress is not None:
                on_progress(progress, number, len(rates))

        outcome = learn(objective, lesson, on_progress=tell)
        trained, whole = objective.parameters
        facts = {
            "parameters": {"trained": trained, "all": whole},
            "device": _device(objective),
            "versions": _versions(),
        }
        part = _place(out, rate, f"{WEIGHTS}.part")
        for begun in (part, _place(out, rate, WEIGHTS)):
            shutil.rmtree(begun, ignore_errors=True)
        with (
            no_progress_bars(objective.runtime.transformers),
            no_space("the weights", part, partial(last_words, lesson)),
        ):
            objective.save(part)
        part.replace(_place(out, rate, WEIGHTS))
        write_whole(_place(out, rate, RESULT), _json({"outcome": outcome.form, "facts": facts}))
        shutil.rmtree(lesson.folder, ignore_errors=True)
        outcomes.append(outcome.form)
    return outcomes, facts


def _chosen(recipe: FitRecipe, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """The rate whose best step is the best; of equal ones the first."""
    if len(outcomes) == 1:
        return outcomes[0]
    pick = max if recipe.fields.metric in HIGHER else min
    return pick(outcomes, key=lambda each: each["value"])


def _begun(out: Path, decides: Mapping[str, Any]) -> dict[str, Any]:
    """What `train.json` of an earlier call says; empty for a new folder.

    Raises:
        UsageError: it is another training's, or something else is there.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return {}
    there = json_beside(out, TRAINING_FILE) if out.is_dir() else {}
    if not there:
        raise UsageError(f"{str(out)!r} is there already, and holds no training.", hint="Name a new folder.")
    for name, value in json.loads(_json(decides)).items():
        old = there.get(name)
        if _comparable(name, old) != _comparable(name, value):
            raise UsageError(
                f"{str(out)!r} holds another training: {_difference(name, old, value)}.",
                hint="Name a new folder; or give the same options, and it goes on.",
            )
    return {**there}


def _comparable(name: str, value: Any) -> Any:
    """What must be equal for a training to go on: of base and data their digests, not where they lie."""
    if name in {"base", "data"} and isinstance(value, dict):
        return cast("dict[str, Any]", value).get("digest")
    return None if name == "recipe" else value


def _difference(name: str, old: Any, new: Any) -> str:
    """Where two trainings differ, in words."""
    if name == "values" and isinstance(old, dict):
        before = cast("dict[str, Any]", old)
        field = next((each for each in new if before.get(each) != new[each]), name)
        return f"{field} was {before.get(field)!r} there, and is {new[field]!r} here"
    if name in {"base", "data"}:
        return f"its {'base' if name == 'base' else 'training set'} has other contents"
    return f"{name} was {old!r} there, and is {new!r} here"


def _identity(training: Fit, out: Path) -> str:
    """By the digest of what was trained, as its answers are filed under."""
    local = replace(training.local, dtype="auto")
    if "adapter" in training.recipe.fields.trained:
        return identity_of(training.folder, replace(local, adapter=str(out)))
    provider = training.base.partition(":")[0]
    identity = identity_of(find_folder(str(out), local, provider=provider), local)
    return f"{provider}:{identity.partition(':')[2]}"


def check_merge(training: Fit, adapter: Path, folder: Path) -> None:
    """Looks whether a base can be written with its adapter, once that is trained.

    Raises:
        UsageError: `folder` is there already, or what is trained is no adapter.
    """
    if "adapter" not in training.recipe.fields.trained:
        raise UsageError(
            f"The training in {str(adapter)!r} makes a whole model, so there is nothing to merge.",
            hint="Leave `--merge` out.",
        )
    if folder.exists():
        raise UsageError(f"{str(folder)!r} is there already.", hint="Name a new folder.")


def merge_adapter(training: Fit, adapter: Path, folder: Path) -> None:
    """Writes a base with its adapter as one model into a new folder, for servers that read whole models.

    Raises:
        UsageError: `folder` is there already, or what was trained is no adapter.
        ConfigError: the adapter belongs to another base.
        AskanceError: there is no space.
    """
    check_merge(training, adapter, folder)
    base = training.folder
    local = replace(training.local, dtype="auto", adapter=str(adapter))
    model = load_model(base, local, name=training.base.partition(":")[2], dtype=base.dtype)
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".part-", dir=folder.absolute().parent) as place:
        part = Path(place, "folder")
        done = f"What was trained is in {str(adapter)!r}."
        with no_progress_bars(model.runtime.transformers), no_space("the model", folder, lambda: done):
            save_weights(model.model, base.path, part, blind=training.control == "text-only")
            shutil.copyfile(adapter / TRAINING_FILE, part / TRAINING_FILE)
        part.rename(folder)


# --- plans ---


@dataclass(frozen=True, slots=True, kw_only=True)
class FitPlan:
    """What a training would take."""

    rows: int
    rates: int
    steps: int
    """Of all rates, if none is stopped early."""
    seconds_a_step: float
    """The median of `timed` steps without the first two, which warm up."""
    timed: int
    trained: int
    parameters: int
    state: int
    """Bytes of weights, gradients and the optimizer's state."""
    peak: int
    """Bytes that this process, or its accelerator, had at most while it was timed."""
    device: str
    notes: tuple[str, ...]

    @property
    def hours(self) -> float:
        return self.steps * self.seconds_a_step / 3600

    @property
    def form(self) -> dict[str, Any]:
        return {**asdict(self), "hours": self.hours, "notes": [*self.notes]}


def plan_fit(training: Fit, *, on_progress: Callable[[FitProgress], None] = lambda _: None) -> FitPlan:
    """Makes ten steps on the data, times them, and throws them away; all steps where they are fewer.

    Args:
        training: what is to be done.
        on_progress: called after each of these steps.

    Raises:
        MissingExtra, ConfigError, UsageError, BadData, BadImage: see `fit`.
    """
    train, _ = training.examples()
    objective, fields = training.objective(), training.recipe.fields
    with TemporaryDirectory(prefix="askance-plan-") as place:
        lesson = Lesson(
            recipe=training.recipe,
            rate=fields.rates[0],
            train=train,
            validation=(),
            seed=training.seed,
            folder=Path(place),
            log=Path(place, LOG),
            steps=min(TIMED, steps_of(fields, len(train))),
        )
        outcome = learn(objective, lesson, on_progress=on_progress)
    timed = outcome.step_seconds
    trained, whole = objective.parameters
    return FitPlan(
        rows=len(train),
        rates=len(fields.rates),
        steps=steps_of(fields, len(train)) * len(fields.rates),
        seconds_a_step=statistics.median(timed[2:] or timed),
        timed=len(timed),
        trained=trained,
        parameters=whole,
        state=_state_bytes(objective, fields.optimizer),
        peak=_peak_bytes(objective),
        device=_device(objective),
        notes=(*training.recipe.notes, "validation and checkpoints are not timed"),
    )


def _state_bytes(objective: Objective, optimizer: str) -> int:
    sizes = [(each.numel(), each.element_size(), each.requires_grad) for each in objective.model.parameters()]
    weights = sum(count * size for count, size, _ in sizes)
    trained = sum(count * size for count, size, grad in sizes if grad)
    # Adam keeps two means a weight; Adafactor next to nothing.
    return weights + trained * (1 if optimizer == "adafactor" else 3)


def _peak_bytes(objective: Objective) -> int:
    if objective.runtime.device.startswith("cuda"):
        return int(objective.runtime.torch.cuda.max_memory_allocated())
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _device(objective: Objective) -> str:
    device = objective.runtime.device
    if device.startswith("cuda"):
        return f"{device}: {objective.runtime.torch.cuda.get_device_name()}"
    return f"{device}: {platform.machine()}"


def _versions() -> dict[str, str]:
    found = {"askance": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


# --- files ---


def read_training(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What `train.json` says, and the lines of the log.

    Raises:
        UsageError: no training is in the folder.
    """
    record = {**json_beside(folder, TRAINING_FILE)}
    if record.get("format") != FORMAT:
        raise UsageError(f"There is no training in {str(folder)!r}.", hint="Name a folder of `askance train …`.")
    lines = list[dict[str, Any]]()
    with suppress(OSError):
        for text in (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError):
                line: object = parse_json(text)
                if isinstance(line, dict):
                    lines.append(cast("dict[str, Any]", line))
    return record, lines


def _place(out: Path, rate: float, name: str) -> Path:
    return out / RATES / f"{rate:g}" / name


def _json(form: Mapping[str, Any]) -> str:
    return json.dumps(form, ensure_ascii=False, indent=2) + "\n"
