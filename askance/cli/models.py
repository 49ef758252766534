"""`askance models`: what is configured, and what an endpoint can do."""

from __future__ import annotations

import json
from typing import Annotated

import typer

app = typer.Typer(
    help="Models: what is configured, and what an endpoint can do.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("list")
def list_models() -> None:
    """List the models that askance.toml (or pyproject.toml) names."""
    from askance.models import Config
    from askance.replay import visible

    config = Config.find()
    if not config.models:
        print("No models are named. Write a table [models.NAME] with a `spec` into askance.toml, or use specs.")
        return
    roles = {config.vlm: "vlm", config.llm: "llm"}
    for name, table in config.models.items():
        print(visible(f"{name:<20} {table['spec']:<50} {roles.get(name, '')}").rstrip())


@app.command()
def check(
    spec: Annotated[str, typer.Argument(help="A spec such as openai:gpt-4o, or a name from askance.toml.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask an endpoint what it can do, with one tiny picture and one schema, and keep the answer for later runs."""
    from askance.errors import CallError
    from askance.models import Engine, get_model, run_sync
    from askance.replay import visible

    model = get_model(spec, engine=Engine())

    async def ask() -> dict[str, object]:
        try:
            return (await model.check()).canonical()
        finally:
            await model.aclose()

    from askance.cli.job import CannotStart

    try:
        found = run_sync(ask())
    except CallError as error:
        raise CannotStart(error) from error
    if as_json:
        print(json.dumps({"model": str(model.id), **found}, ensure_ascii=False))
        return
    print(visible(str(model.id)))
    for name, words in _SAID.items():
        print(f"  {words:<28}{visible(_said(found.get(name)))}")


_SAID = {
    "schema": "JSON schema",
    "json_object": "JSON object",
    "images": "images",
    "seed": "seed",
    "logprobs": "log-probabilities",
    "token_field": "token limit is called",
    "served_model": "model as served",
}


def _said(value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
