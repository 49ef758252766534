"""Runs as logs of Inspect, version 2 of their format; Inspect's reader and viewer open them."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance import __version__
from askance.chat import Json, JsonObject, key_of
from askance.evals.exports.rows import finite, text_of
from askance.evals.run_folder import replacing

if TYPE_CHECKING:
    from askance.evals.metric import Figure
    from askance.evals.run import Run
    from askance.evals.sample import SampleResult

VERSION = 2
"""Version of the form of logs."""
SCORER = "askance"

_DATE = (1980, 1, 1, 0, 0, 0)
"""Of every file within a log: equal runs make equal logs."""
_SUMMED = ("id", "epoch", "input", "choices", "target", "scores", "model_usage", "total_time")


def write_inspect(run: Run, path: Path) -> None:
    """Writes a log that `inspect_ai.log.read_eval_log` reads; its messages are those of the recorded calls.

    A path that ends in `.json` gets plain JSON; any other gets the zip format of `.eval` files.
    """
    log = finite(log_of(run))
    with replacing(path) as part:
        if path.suffix == ".json":
            part.write_bytes(_json(log))
        else:
            with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as file:
                for name, form in _members(log).items():
                    file.writestr(zipfile.ZipInfo(name, _DATE), _json(form), zipfile.ZIP_DEFLATED)


def _json(form: Any) -> bytes:
    return json.dumps(form, ensure_ascii=False, allow_nan=False).encode()


def _members(log: JsonObject) -> dict[str, Any]:
    """The files within an `.eval` file, by name."""
    samples = cast("list[JsonObject]", log["samples"])
    return {
        "_journal/start.json": {name: log[name] for name in ("version", "eval", "plan")},
        **{f"samples/{sample['id']}_epoch_{sample['epoch']}.json": sample for sample in samples},
        "summaries.json": [_summary(sample) for sample in samples],
        "header.json": {name: part for name, part in log.items() if name != "samples"},
    }


def _summary(sample: JsonObject) -> JsonObject:
    error: Any = sample.get("error")
    metadata: Any = sample["metadata"]
    return {
        **{name: sample[name] for name in _SUMMED},
        "metadata": {"outcome": metadata["outcome"]},
        "error": None if error is None else error["message"],
        "message_count": len(cast("list[Any]", sample["messages"])),
        "completed": True,
    }


def log_of(run: Run) -> JsonObject:
    """The log as JSON."""
    started: str = run.facts.get("started") or run.finished or "1970-01-01T00:00:00+00:00"
    whole = run.finished is not None and not run.left
    return {
        "version": VERSION,
        "status": "success" if whole else "cancelled",
        "eval": _spec(run, started),
        "plan": {"name": "askance", "steps": [{"solver": str(run.solver.get("chain", "solver"))}]},
        "results": _results(run),
        "stats": {"started_at": started, "completed_at": run.finished or started, "model_usage": _usage_of(run)},
        "samples": [_sample(run, answer) for answer in run.answers],
    }


def _spec(run: Run, started: str) -> JsonObject:
    hashed = key_of("run", dict(run.configuration))
    ids = list(dict.fromkeys(answer.sample.id for answer in run.answers))
    return {
        "eval_id": hashed[:22],
        "run_id": hashed[:22],
        "task_id": key_of("task", run.task)[:22],
        "created": started,
        "task": run.task,
        "task_args": finite(run.options),
        "dataset": {"name": run.task, "samples": len(ids), "sample_ids": ids, "shuffled": False},
        "model": _model(run),
        "config": {"epochs": int(run.configuration.get("epochs", 1))},
        "packages": {"askance": __version__},
        "metadata": {
            "name": run.name,
            "models": finite(run.configuration.get("models", {})),
            "notes": list(run.notes),
            "convention": run.convention,
        },
    }


def _model(run: Run) -> str:
    return " + ".join(run.models) or "none"


def _results(run: Run) -> JsonObject:
    return {
        "total_samples": int(run.totals.get("samples", len(run.answers))) + run.left,
        "completed_samples": len(run.answers),
        "scores": [_figure(figure) for figure in run.figures if figure.value is not None],
    }


def _figure(figure: Figure) -> JsonObject:
    numbers = {"value": figure.value, "if_wrong": figure.if_wrong, "if_right": figure.if_right}
    if figure.interval is not None:
        numbers |= {"low": figure.interval.low, "high": figure.interval.high}
    return {
        "name": figure.metric,
        "scorer": SCORER,
        "scored_samples": figure.answered,
        "unscored_samples": figure.samples - figure.answered,
        "metrics": {name: {"name": name, "value": value} for name, value in numbers.items() if value is not None},
    }


def _sample(run: Run, answer: SampleResult) -> JsonObject:
    sample, prediction = answer.sample, answer.prediction
    options: Any = sample.inputs.get("options")
    form: JsonObject = {
        "id": sample.id,
        "epoch": answer.epoch + 1,  # theirs are counted from 1
        "input": _input(answer),
        "choices": [str(option) for option in cast("list[Any]", options)] if isinstance(options, list) else None,
        "target": _target(sample.target),
        "messages": [*_messages(run, answer)],
        "output": _output(run, answer),
        "scores": {} if answer.score is None else {SCORER: _score(answer)},
        "metadata": {
            "group": sample.cluster,
            "tags": finite(sample.tags),
            "outcome": prediction.outcome,
            "reason": prediction.reason,
            "trace": finite({**sample.trace, **prediction.trace}),
            **{each.kind: each.form() for each in prediction.attachments},
            "links": {name: link["outcome"] for name, link in prediction.links.items()},
        },
        "model_usage": {_model(run): _usage(prediction.meta)},
        "total_time": prediction.meta.get("seconds"),
    }
    if prediction.outcome == "failed":
        form["error"] = {"message": prediction.reason or "failed", "traceback": "", "traceback_ansi": ""}
    return form


def _input(answer: SampleResult) -> str:
    sample = answer.sample
    lines = [] if sample.image is None else [f"[image {sample.image.name}, sha256 {sample.image.sha256}]"]
    texts = [f"{name}: {_text_of_json(value)}" for name, value in sample.inputs_form().items() if name != "options"]
    return "\n".join([*lines, *texts]) or sample.id


def _target(target: Json) -> str | list[str]:
    if isinstance(target, list):
        return [_text_of_json(each) for each in target]
    return "" if target is None else _text_of_json(target)


def _text_of_json(value: Json) -> str:
    return value if isinstance(value, str) else text_of(finite(value))


def _messages(run: Run, answer: SampleResult) -> Iterator[JsonObject]:
    """The messages and the reply of each link's calls that are on record."""
    keys = dict.fromkeys(str(key) for link in answer.prediction.links.values() for key in link["calls"])
    for key in keys:
        record = run.records.get(key)
        if record is None or record.kind != "chat":
            continue
        request: Any = record.request
        for message in request["messages"]:
            yield {"role": _role(message["role"]), "content": _content(message["parts"])}
        response: Any = record.response
        yield {"role": "assistant", "content": str(response.get("text") or response.get("refusal") or "")}


def _role(role: str) -> str:
    return role if role in {"system", "user", "assistant"} else "user"


def _content(parts: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(str(part["text"]) if "text" in part else _picture(part) for part in parts)


def _picture(part: Mapping[str, Any]) -> str:
    view = f", view {text_of(part['view'])}" if "view" in part else ""
    return f"[image sha256 {part.get('sha256')}{view}]"


def _output(run: Run, answer: SampleResult) -> JsonObject:
    prediction = answer.prediction
    choice = {
        "message": {"role": "assistant", "content": _text_of_json(prediction.value) if prediction.answered else ""},
        "stop_reason": _STOPS.get(prediction.outcome, "unknown"),
    }
    return {"model": _model(run), "choices": [choice], "usage": _usage(prediction.meta)}


_STOPS = {"answered": "stop", "truncated": "max_tokens", "refused": "content_filter", "filtered": "content_filter"}


def _score(answer: SampleResult) -> JsonObject:
    score = answer.score
    values: Mapping[str, float] = {} if score is None else score.values
    notes: Mapping[str, Any] = {} if score is None else score.notes
    return {
        "value": {name: None if math.isnan(value) else value for name, value in values.items()},
        "answer": _text_of_json(answer.prediction.value),
        "explanation": text_of(finite(dict(notes))) if notes else None,
        "metadata": finite(dict(notes)),
    }


def _usage(meta: Mapping[str, Any]) -> JsonObject:
    tokens: Mapping[str, int] = meta.get("tokens", {})
    into, out = tokens.get("input", 0), tokens.get("output", 0)
    return {"input_tokens": into, "output_tokens": out, "total_tokens": into + out}


def _usage_of(run: Run) -> JsonObject:
    sums = [_usage(answer.prediction.meta) for answer in run.answers]
    return {_model(run): {name: sum(each[name] for each in sums) for name in _usage({})}}
