"""`askance models`: what is configured, what an endpoint can do, and checkpoints that become folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from askance.cli.columns import Report
from askance.cli.group import command_group
from askance.cli.options import AsJson, Records
from askance.terminal import echo

app = command_group("Models: settings, what an endpoint can do, checkpoints.")


@app.command("list")
def list_models() -> None:
    """List the models that askance.toml (or pyproject.toml) names."""
    from askance.models import Config

    config = Config.find()
    if not config.models:
        echo("No models are named. Write a table [models.NAME] with a `spec` into askance.toml, or use specs.")
        return
    roles = {config.vlm: "vlm", config.llm: "llm"}
    for name, table in config.models.items():
        echo(f"{name:<20} {table['spec']:<50} {roles.get(name, '')}".rstrip())


@app.command()
def check(
    spec: Annotated[str, typer.Argument(help="A spec such as openai:gpt-4o, or a name from askance.toml.")],
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Ask the endpoint, whatever is on record; the answer takes its place.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    store: Records = None,
) -> None:
    """Say what an endpoint can do: what is on record, else ask it, with small pictures, a schema and a tool."""
    from askance.cli.options import Calls
    from askance.cli.workspace import open_workspace
    from askance.models import run_sync
    from askance.models.capabilities import endpoint_key

    with open_workspace(Calls(store=store)) as work:
        model, records = work.model(spec), work.records
        recorded = None if refresh or records.get(endpoint_key(model.id)) is None else model.known
        capabilities = recorded or run_sync(model.check())
        record = records.get(endpoint_key(model.id))
        at = record.at if record is not None else None

    about = {"model": str(model.id), "asks_by": capabilities.output_mode, "at": at, "asked_now": recorded is None}
    where = f"{at}, kept in {records.name}" if at else "now, and not kept"
    parts = [
        str(model.id),
        *_capability_lines(capabilities.canonical(), output_mode=capabilities.output_mode, asked_at=where),
    ]
    if recorded is not None:
        parts.append(f"This is what is on record; `askance models check {spec} --refresh` asks again.")
    Report(lambda: {**about, **capabilities.canonical()}, lambda: parts, breaks=False).print(as_json=as_json)


@app.command()
def convert(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="FILE", help="The checkpoint: a state dict in OpenAI's form, as torch saves it.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write, which is not there yet.")],
    tokenizer: Annotated[
        str,
        typer.Option(
            help="Where CLIP's tokenizer is: a folder, or the name of a model on the hub that was downloaded before, "
            "such as openai/clip-vit-base-patch16."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Convert a CLIP checkpoint in OpenAI's form into a folder for `clip:`; nothing in the checkpoint is run."""
    from askance.models.local.checkpoint import convert_clip

    made = convert_clip(checkpoint, out, tokenizer=tokenizer)
    side, patch, (text, vision) = made.image_size, made.patch_size, made.layers
    printed = (
        f"{out}: a CLIP of {made.weights / 1e6:,.1f} million weights\n"
        f"  texts     {text} layers, up to {made.tokens} tokens\n"
        f"  pictures  {vision} layers, {side} × {side} pixels in patches of {patch} × {patch}\n"
        f"It is used as clip:{out}."
    )
    Report(lambda: {**asdict(made), "folder": str(out)}, lambda: [printed], breaks=False).print(as_json=as_json)


def _capability_lines(values: Mapping[str, Any], *, output_mode: str, asked_at: str) -> Iterator[str]:
    for name, words in _SAID.items():
        value = _BOX_UNITS.get(values.get(name, ""), "not known") if name == "boxes" else values.get(name)
        if value is not None or name in _ALWAYS:
            yield f"  {words:<24}{_value_text(value)}"
    yield f"  {'answers are asked by':<24}{_OUTPUT_MODES[output_mode]}"
    yield f"  {'asked':<24}{asked_at}"


_SAID = {
    "schema": "JSON schema",
    "json_object": "JSON object",
    "images": "images",
    "seed": "seed",
    "logprobs": "log-probabilities",
    "tools": "tool calls",
    "boxes": "boxes in pictures",
    "token_field": "token limit is called",
    "without": "does without",
    "served_model": "model as served",
}
_ALWAYS = {"schema", "images", "seed", "logprobs", "tools", "boxes", "served_model"}
_OUTPUT_MODES = {
    "json_schema": "JSON schema",
    "json_object": "JSON object, described in the prompt",
    "prompted": "JSON, described in the prompt alone",
    "paper": "the text protocol of the paper",
}


_BOX_UNITS = {
    "thousandths": "in thousandths of the sides",
    "fractions": "in fractions of the sides",
    "pixels": "in pixels of the picture as it is sent",
    "none": "none that can be used",
}


def _value_text(value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)
