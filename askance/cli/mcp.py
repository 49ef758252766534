"""`askance mcp`: the tools that look at pictures, for any client of the Model Context Protocol."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.amounts import many
from askance.cli.options import ModelCalls, Vlm, spelled_out
from askance.cli.process import OK, Process
from askance.errors import ConfigError, UsageError, optional_library
from askance.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from askance.mcp import Account, Tokens
    from askance.workspace import Workspace

TOOLS = ("objects", "scene_text", "narration", "unusual", "caption", "ask", "zoom", "compare")
STDIO = "stdio"
"""Name of the one client of a server over stdio."""


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """What is served to whom."""

    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER…", help="Folders of pictures; clients can name no other file.")
    ]
    vlm: Vlm = None
    llm: Annotated[str | None, typer.Option(help="The model that investigates; by default the VLM.")] = None
    tools: Annotated[
        str, typer.Option(help="Tools that ask about a picture, with commas between; `ocr` takes the extra ocr.")
    ] = ",".join(TOOLS)
    calls: Annotated[int, typer.Option(min=2, help="Most calls of one investigation.")] = 8
    http: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", min=0, max=65535, help="Serve over HTTP on this machine; by default over stdin and stdout."
        ),
    ] = None
    tokens: Annotated[
        Path | None,
        typer.Option(help="Of HTTP: a file with a line `NAME TOKEN` for each client; by default one token is made."),
    ] = None


@spelled_out
def mcp(context_: typer.Context, options: ServerOptions, calls: ModelCalls) -> None:
    """Serve tools that look at pictures to a client of the Model Context Protocol (MCP).

    --budget is each client's own, all starts together: programs that start it over the same records are one client,
    and --budget 5.00@NAME gives one its own. Every call is recorded; with --replay nothing is asked.
    """
    _check(options, calls)
    raise typer.Exit(_serve(options, calls, Process.of(context_)))


def _check(options: ServerOptions, calls: ModelCalls) -> None:
    if calls.plan:
        raise UsageError("Nobody knows beforehand what clients will ask.", hint="Leave `--plan` out.")
    if calls.budget is None and calls.record_mode != "replay":
        raise UsageError(
            "Clients spend money, and no budget is given.",
            hint="Say what each may spend: --budget 100calls, 20000tokens, or 5.00 for US dollars.",
        )
    calls.check_recorded("an equal question would be paid for again")
    if options.tokens is not None and options.http is None:
        raise UsageError("`--tokens` is for a server over HTTP.", hint="Add --http PORT, or leave it out.")
    optional_library("mcp", "mcp")


def _serve(options: ServerOptions, calls: ModelCalls, process: Process) -> int:
    from askance.cli.workspace import open_workspace
    from askance.mcp import SharedFolders, picture_server, serve_http, serve_stdio
    from askance.models import run_sync
    from askance.otel import spans_asked

    folders = SharedFolders(options.folders)
    tokens, made = (None, "") if options.http is None else _tokens(options)
    with ExitStack() as stack:
        stack.enter_context(spans_asked(calls.record_mode))
        works: dict[str, Workspace] = {}
        for name in (STDIO,) if tokens is None else tokens.names:
            works[name] = open_workspace(calls, name=f"mcp-{name}")
            stack.callback(works[name].close)
        accounts = _accounts(options, works)
        server = picture_server(folders, accounts, tokens=tokens)
        serve = partial(serve_stdio, server)
        if options.http is not None:
            listening = stack.enter_context(_listening(options.http))
            serve = partial(serve_http, server, listening)
            _say_address(listening, tokens, made)
        process.settled()
        try:
            run_sync(serve())
        except KeyboardInterrupt:
            echo("Stopped.", err=True)
    return OK


def _tokens(options: ServerOptions) -> tuple[Tokens, str]:
    """The tokens of the clients, and the text of one that was made now."""
    from askance.mcp import Tokens

    return Tokens.made() if options.tokens is None else (Tokens.read(options.tokens), "")


def _accounts(options: ServerOptions, works: Mapping[str, Workspace]) -> Sequence[Account]:
    """An account for each client; without investigations where what they need is not installed.

    Raises:
        ConfigError: no model is named.
    """
    from askance.investigator.looking_node import missing_vendor
    from askance.mcp import Account

    accounts: list[Account] = []
    lacking = missing_vendor()
    if lacking is not None:
        echo(f"askance: The tool `investigate` is left out. {lacking}", err=True)
    names = [name.strip() for name in options.tools.split(",") if name.strip()]
    for name, work in works.items():
        see = options.vlm or work.default_model("vlm")
        if see is None:
            raise ConfigError(
                "No model is named for --vlm.",
                hint="Give one, such as --vlm openai:gpt-4o, or set `vlm` in askance.toml.",
            )
        vlm, think = work.model(see), options.llm or work.default_model("llm")
        llm = vlm if think is None else work.model(think)
        calls = options.calls if lacking is None else None
        accounts.append(Account.open(name, work, vlm=vlm, llm=llm, tools=names, calls=calls))
    return accounts


def _listening(port: int) -> socket.socket:
    """A socket of the loopback interface.

    Raises:
        UsageError: the port is taken, or not for everybody.
    """
    from askance.mcp.mcp_server import HOST

    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise UsageError(f"The port {port} cannot be used: {error.strerror}.", hint="Name another: --http 0") from error


def _say_address(listening: socket.socket, tokens: Tokens | None, made: str) -> None:
    host, port = listening.getsockname()[:2]
    clients = "" if tokens is None else f", for {many(len(tokens.names), 'client')}"
    echo(f"Serving at http://{host}:{port}/mcp{clients}. Ctrl-C stops it.", err=True)
    if made:
        echo(f"Authorization: Bearer {made}", err=True)
