"""One training at one rate: the trainer of transformers, or TRL's, with checkpoints, a log, and the ways it may end.

A checkpoint is whole once its `trainer_state.json` can be read: the trainers write that file last, and remove an older
checkpoint only after it. So a process that is killed at any moment leaves a checkpoint to go on from, and what is read
of it is weights and numbers alone, never a pickle that could run code.
"""

from __future__ import annotations

import errno
import json
import math
import shutil
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.errors import AskanceError, optional_library
from askance.evals.run_folder import write_whole
from askance.models.local.runtime import no_progress_bars
from askance.training.objective import DrawnExamples
from askance.training.recipe import HIGHER

if TYPE_CHECKING:
    from askance.training.objective import Objective
    from askance.training.recipe import FitRecipe, RecipeFields
    from askance.training.training_set import TrainingExample

STATE = "trainer_state.json"
PICKLES = ("training_args.bin",)
"""Files of a checkpoint that only a pickle could read, and that nothing here reads."""
KEPT = 2
"""Checkpoints that are kept, beside the best."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FULL_WORDS = ("no space left", "file too large", "quota exceeded", "pytorchstreamwriter failed", "unexpected pos")


@dataclass(frozen=True, slots=True, kw_only=True)
class FitProgress:
    """How far a training is."""

    rate: float
    step: int
    steps: int
    loss: float | None
    left: float
    """Seconds until this rate is done."""


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What is to be learnt, and where it is kept."""

    recipe: FitRecipe
    rate: float
    train: Sequence[TrainingExample]
    validation: Sequence[TrainingExample]
    seed: int
    folder: Path
    """Of the checkpoints of this rate."""
    log: Path
    """File of all rates, a JSON object a line."""
    steps: int | None = None
    """Ends after so many, without validation or checkpoints: to be timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateOutcome:
    """What came of one rate."""

    rate: float
    steps: int
    """That were made."""
    step: int
    """That validation chose; without validation the last."""
    value: float | None
    """Of the recipe's metric there."""
    validation: tuple[Mapping[str, Any], ...]
    """Each with `step`, `epoch`, `loss` and the metric."""
    seconds: float
    step_seconds: tuple[float, ...] = ()
    """Of each step that this process made."""

    @property
    def form(self) -> dict[str, Any]:
        return {
            "rate": self.rate,
            "steps": self.steps,
            "step": self.step,
            "value": self.value,
            "validation": [dict(each) for each in self.validation],
            "seconds": round(self.seconds, 3),
        }


def learn(
    objective: Objective, lesson: Lesson, *, on_progress: Callable[[FitProgress], None] = lambda _: None
) -> RateOutcome:
    """Trains at one rate, from its last whole checkpoint if there is one; the model then has the best weights.

    Args:
        objective: a model with its untrained weights, and how it learns.
        lesson: what is learnt.
        on_progress: called after each step.

    Raises:
        MissingExtra: a package is not installed.
        AskanceError: the loss is no number any more, or there is no space for a checkpoint; the last good one stays.
        BadData, BadImage, UsageError: an example cannot be used.
    """
    checkpoint = None if lesson.steps else _last_checkpoint(lesson.folder)
    begun = _trim_log(lesson, -1 if checkpoint is None else _step_of(checkpoint))
    watch = _Watch(lesson=lesson, before=begun, on_progress=on_progress)
    transformers = objective.runtime.transformers
    with _quiet(transformers), no_space("a checkpoint", lesson.folder, partial(last_words, lesson)):
        trainer = _trainer(objective, lesson, watch)
        # It would print what the log holds.
        trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
        if checkpoint is None and lesson.validation and not lesson.steps:
            trainer.evaluate()  # what the base knows, at step 0 of the log
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    state = trainer.state
    validation = tuple(_validations(state.log_history, lesson.recipe.fields))
    values = lesson.recipe.fields
    metric = values.metric
    best = _best(validation, metric)
    return RateOutcome(
        rate=lesson.rate,
        steps=int(state.global_step),
        step=int(best["step"]) if best else int(state.global_step),
        value=best[metric] if best else None,
        validation=validation,
        seconds=watch.seconds,
        step_seconds=tuple(watch.steps),
    )


def _best(validation: Sequence[Mapping[str, Any]], metric: str) -> Mapping[str, Any] | None:
    """The validation that the trainer took: the first of the best."""
    if not validation:
        return None
    pick = max if metric in HIGHER else min
    return pick(validation, key=lambda each: each[metric])


def steps_of(fields: RecipeFields, rows: int) -> int:
    """Steps of one rate over so many rows, if it is not stopped early."""
    return math.ceil(rows / fields.batch) * fields.epochs


# --- the trainer ---

_OPTIMIZERS = {"adam": "adamw_torch", "adamw": "adamw_torch", "adafactor": "adafactor"}
"""Adam is AdamW without a decay of weights."""
_SCHEDULES = {
    "constant": "constant_with_warmup",
    "linear": "linear",
    "cosine": "cosine",
    "plateau": "reduce_lr_on_plateau",  # the only one without a warm-up, which `_Watch` gives it
}


def _arguments(objective: Objective, lesson: Lesson) -> dict[str, Any]:
    """The arguments of either trainer."""
    fields, part = lesson.recipe.fields, lesson.recipe.fields.batch // lesson.recipe.fields.accumulate
    validated = bool(lesson.validation) and lesson.steps is None
    often = {"steps": fields.every} if fields.every else {}
    strategy = "no" if lesson.steps else "steps" if often else "epoch"
    better = fields.metric in HIGHER
    # What is timed is not validated, so that its rate has no plateau.
    schedule = fields.schedule if validated or fields.schedule != "plateau" else "constant"
    cut = {"mode": "max" if better else "min", "factor": 0.1, "patience": 0} if schedule == "plateau" else None
    return {
        "output_dir": str(lesson.folder),
        "per_device_train_batch_size": part,
        "per_device_eval_batch_size": part,
        "gradient_accumulation_steps": fields.accumulate,
        "learning_rate": lesson.rate,
        "lr_scheduler_type": _SCHEDULES[schedule],
        "lr_scheduler_kwargs": cut,
        "warmup_steps": fields.warmup,
        "optim": _OPTIMIZERS[fields.optimizer],
        "weight_decay": 0.0 if fields.optimizer == "adam" else fields.weight_decay,
        "max_grad_norm": fields.clip or 0.0,
        "label_smoothing_factor": fields.smoothing,
        "num_train_epochs": fields.epochs,
        "max_steps": lesson.steps or -1,
        "eval_strategy": strategy if validated else "no",
        "save_strategy": strategy,
        **({"eval_steps": fields.every, "save_steps": fields.every} if often else {}),
        "save_total_limit": KEPT,
        "load_best_model_at_end": validated,
        "metric_for_best_model": f"eval_{fields.metric}",
        "greater_is_better": better,
        "prediction_loss_only": objective.measure is None,
        "restore_callback_states_from_checkpoint": True,
        "seed": lesson.seed,
        "data_seed": lesson.seed,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "remove_unused_columns": False,
        "label_names": ["labels"],
        "use_cpu": objective.runtime.device == "cpu",
        "bf16": False,
        "report_to": [],
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }


def _trainer(objective: Objective, lesson: Lesson, watch: _Watch) -> Any:
    transformers = objective.runtime.transformers
    fields, arguments = lesson.recipe.fields, _arguments(objective, lesson)
    callbacks: list[Any] = [_callback(transformers, watch)]
    if fields.patience and arguments["eval_strategy"] != "no":
        callbacks.append(transformers.EarlyStoppingCallback(early_stopping_patience=fields.patience))
    common: dict[str, Any] = {
        "model": objective.model,
        "train_dataset": watch.rows(lesson.train, seed=lesson.seed),
        "eval_dataset": watch.rows(lesson.validation, seed=None) if arguments["eval_strategy"] != "no" else None,
        "data_collator": objective.collate,
        "callbacks": callbacks,
    }
    if objective.chat:
        return _chat_trainer(objective, common, arguments)
    if objective.measure is not None:
        common["compute_metrics"] = partial(_measured, objective)
        common["preprocess_logits_for_metrics"] = objective.outputs
    trainer = _with_loss(transformers, objective)(
        args=transformers.TrainingArguments(**arguments), **{name: each for name, each in common.items() if each}
    )
    if objective.loss is not None:
        # The mean over the parts of a step; the trainer would take it for a sum over tokens.
        trainer.model_accepts_loss_kwargs = False
    return trainer


def _chat_trainer(objective: Objective, common: Mapping[str, Any], arguments: Mapping[str, Any]) -> Any:
    """TRL's trainer for supervised fine-tuning; its data are the numbers of the rows, which the collator looks up."""
    trl = optional_library("trl", "train", lacking="LoRA is trained by {}, which is not installed.")
    datasets = optional_library("datasets", "train", lacking="LoRA is trained with {}, which is not installed.")
    split = {name: common[name] for name in ("train_dataset", "eval_dataset") if common[name] is not None}
    numbered = {name: datasets.Dataset.from_dict({"row": list(range(len(rows)))}) for name, rows in split.items()}
    offset = len(split["train_dataset"])
    both = [split["train_dataset"], split.get("eval_dataset", [])]
    if "eval_dataset" in numbered:
        numbered["eval_dataset"] = datasets.Dataset.from_dict(
            {"row": list(range(offset, offset + len(split["eval_dataset"])))}
        )

    def collate(rows: Sequence[Mapping[str, int]]) -> Any:
        places = [each["row"] for each in rows]
        return objective.collate([both[0][place] if place < offset else both[1][place - offset] for place in places])

    # TRL would cut chats at 1,024 tokens, pictures too; and on a processor compute activations twice to no gain.
    own = {"max_length": None, "dataset_kwargs": {"skip_prepare_dataset": True}}
    twice = objective.runtime.device != "cpu"
    config = trl.SFTConfig(**arguments, **own, packing=False, gradient_checkpointing=twice)
    base: Any = trl.SFTTrainer

    class Silent(base):
        """The trainer without word of it to its makers."""

        def _send_telemetry(self) -> None:
            pass

    return Silent(
        model=objective.model,
        args=config,
        data_collator=collate,
        callbacks=common["callbacks"],
        processing_class=objective.tokenizer,
        **numbered,
    )


def _with_loss(transformers: Any, objective: Objective) -> Any:
    """The class of the trainer, with the objective's own loss."""
    base: Any = transformers.Trainer
    loss_of = objective.loss
    if loss_of is None:
        return base

    class OwnLoss(base):
        """The trainer with a loss of ours."""

        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:  # noqa: FBT001, FBT002  # its signature
            loss, outputs = loss_of(model, inputs)
            return (loss, {"loss": loss, "outputs": outputs}) if return_outputs else loss

    return OwnLoss


def _measured(objective: Objective, each: Any) -> dict[str, float]:
    """The metrics of validation, by their names in the trainer."""
    if objective.measure is None:
        return {}
    return {f"eval_{name}": value for name, value in objective.measure(each.predictions, each.label_ids).items()}


# --- watching ---


@dataclass(kw_only=True)
class _Watch:
    """Writes the log, tells progress, and stops a training that learns nothing any more."""

    lesson: Lesson
    before: float
    """Seconds of earlier processes."""
    on_progress: Callable[[FitProgress], None]
    steps: list[float] = field(default_factory=list[float])
    loss: float | None = None
    started: float = field(default_factory=time.monotonic)
    last: float = field(default_factory=time.monotonic)
    drawn: list[Any] = field(default_factory=list[Any])

    @property
    def seconds(self) -> float:
        return self.before + time.monotonic() - self.started

    def rows(self, examples: Sequence[TrainingExample], *, seed: int | None) -> Any:
        """The rows of a split, which are told of each epoch."""
        self.drawn.append(made := DrawnExamples(examples, seed=seed))
        return made

    def on_epoch(self, epoch: int) -> None:
        for rows in self.drawn:
            rows.set_epoch(epoch)

    def warm_up(self, optimizer: Any, step: int) -> None:
        """Has the rate rise in a schedule that knows no warm-up; behind it the rate is the schedule's."""
        fields = self.lesson.recipe.fields
        if fields.schedule == "plateau" and step <= fields.warmup:
            for group in optimizer.param_groups:
                group["lr"] = self.lesson.rate * (step / fields.warmup if fields.warmup else 1.0)

    def on_step(self, step: int, steps: int) -> None:
        now = time.monotonic()
        self.steps.append(now - self.last)
        self.last = now
        each = sum(self.steps[-50:]) / len(self.steps[-50:])
        self.on_progress(
            FitProgress(rate=self.lesson.rate, step=step, steps=steps, loss=self.loss, left=each * (steps - step))
        )

    def on_log(self, entry: Mapping[str, Any], step: int, epoch: float) -> None:
        line: dict[str, Any] = {"rate": self.lesson.rate, "step": step, "epoch": round(epoch, 4)}
        if "loss" in entry:
            self.loss = float(entry["loss"])
            norm = float(entry.get("grad_norm", 0.0))
            line |= {"loss": self.loss, "norm": norm if math.isfinite(norm) else None}
            if not math.isfinite(self.loss):
                raise self._no_numbers("The loss is no number", step)
        elif "eval_loss" in entry:
            if not math.isfinite(float(entry["eval_loss"])):
                raise self._no_numbers("The loss of validation is no number", step)
            own = {name.removeprefix("eval_"): value for name, value in entry.items() if name.startswith("eval_")}
            line["validation"] = {name: value for name, value in own.items() if name in {"loss", *HIGHER}}
            self.last = time.monotonic()
        else:
            return
        if self.lesson.steps is None:
            with self.lesson.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line | {"seconds": round(self.seconds, 3)}) + "\n")

    def check_finite(self, model: Any, step: int) -> None:
        """Refuses to keep weights that are no numbers any more.

        Raises:
            AskanceError: some are not.
        """
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and not bool(parameter.detach().isfinite().all()):
                raise self._no_numbers(f"The weights {name!r} are no numbers", step)

    def _no_numbers(self, what: str, step: int) -> AskanceError:
        return AskanceError(
            f"{what} any more at step {step:,} of the rate {self.lesson.rate:g}.",
            hint=f"{last_words(self.lesson)} Take a lower rate, or `--dtype float32`.",
        )


def _callback(transformers: Any, watch: _Watch) -> Any:
    base: Any = transformers.TrainerCallback

    class Callback(base):
        """Hands on what the trainer says."""

        def on_train_begin(self, *_: Any, **__: Any) -> None:
            watch.last = time.monotonic()

        def on_epoch_begin(self, _arguments: Any, state: Any, _control: Any, **_: Any) -> None:
            watch.on_epoch(int(state.epoch or 0))

        def on_step_begin(self, _arguments: Any, state: Any, _control: Any, **more: Any) -> None:
            watch.warm_up(more["optimizer"], state.global_step)

        def on_step_end(self, _arguments: Any, state: Any, control: Any, **more: Any) -> None:
            if control.should_save:
                watch.check_finite(more["model"], state.global_step)

        on_epoch_end = on_step_end

        def on_log(self, _arguments: Any, state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
            watch.on_log(logs or {}, state.global_step, state.epoch or 0.0)
            if "loss" in (logs or {}):
                watch.on_step(state.global_step, state.max_steps)

        def on_save(self, _arguments: Any, state: Any, _control: Any, **_: Any) -> None:
            for name in PICKLES:
                (watch.lesson.folder / f"checkpoint-{state.global_step}" / name).unlink(missing_ok=True)

    return Callback()


def _validations(history: Sequence[Mapping[str, Any]], fields: RecipeFields) -> Iterator[dict[str, Any]]:
    for entry in history:
        if "eval_loss" in entry:
            own = {name: entry[f"eval_{name}"] for name in ("loss", fields.metric) if f"eval_{name}" in entry}
            yield {"step": int(entry["step"]), "epoch": round(float(entry["epoch"]), 4), **own}


@contextmanager
def _quiet(transformers: Any) -> Generator[None]:
    """Keeps transformers and its like from drawing bars, and from saying what is no error."""
    logging = transformers.utils.logging
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with no_progress_bars(transformers), warnings.catch_warnings(action="ignore", category=FutureWarning):
            yield
    finally:
        logging.set_verbosity(before)


@contextmanager
def no_space(what: str, folder: Path, kept: Callable[[], str]) -> Generator[None]:
    """Says that there is no space, where that is so.

    Args:
        what: that is written, in words.
        folder: where.
        kept: says what there is to go on from; called only then.

    Raises:
        AskanceError: there is no space.
    """
    try:
        yield
    except AskanceError:
        raise
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in _FULL
        if not full and not any(words in str(error).lower() for words in _FULL_WORDS):
            raise
        raise AskanceError(
            f"There is no space for {what} in {str(folder)!r}.",
            hint=f"{kept()} Make room; the same command goes on from there.",
        ) from error


# --- checkpoints ---


def _last_checkpoint(folder: Path) -> Path | None:
    """The last whole checkpoint in a folder; broken ones are removed."""
    found = sorted((each for each in folder.glob("checkpoint-*") if each.is_dir()), key=_step_of)
    for each in found:
        if not _is_whole(each):
            shutil.rmtree(each, ignore_errors=True)
    whole = [each for each in found if each.is_dir()]
    return whole[-1] if whole else None


def last_words(lesson: Lesson) -> str:
    """What there is to go on from, in words; a checkpoint that was only begun is removed."""
    last = _last_checkpoint(lesson.folder)
    return f"The last good checkpoint is {str(last)!r}." if last else "There is no checkpoint before it."


def _step_of(checkpoint: Path) -> int:
    number = checkpoint.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _is_whole(checkpoint: Path) -> bool:
    with suppress(OSError, ValueError):
        return json.loads((checkpoint / STATE).read_text(encoding="utf-8"))["global_step"] == _step_of(checkpoint)
    return False


def _trim_log(lesson: Lesson, step: int) -> float:
    """Removes what the log says of this rate behind a step; returns the seconds that were spent until then."""
    if lesson.steps is not None or not lesson.log.is_file():
        return 0.0
    kept, seconds = list[str](), 0.0
    for text in lesson.log.read_text(encoding="utf-8").splitlines():
        with suppress(ValueError):
            line = json.loads(text)
            own = line["rate"] == lesson.rate
            if not own or line["step"] <= step:
                kept.append(text)
                seconds = line["seconds"] if own else seconds
    write_whole(lesson.log, "".join(f"{line}\n" for line in kept))
    return seconds
