"""The command `askance run`: beside the options that go for all chains it has those that its chain declares."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from askance.chains.named_chain import CHAINS, ChosenChain, NamedChain, choices_of, find_chain, is_repeated, types_of
from askance.cli.process import Process
from askance.errors import UsageError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

_KEPT = frozenset({"chain", "models", "prompts", "samples", "drawn"})
"""What a run folder keeps beside the options of its chain."""


@dataclass(slots=True)
class _ChainLine:
    """What a command line says of its chain."""

    chain: NamedChain | None = None
    flags: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By name of an option, the parameter of the command that it is."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The options that are given, by name."""


def _chain_line(context: Any) -> _ChainLine:
    return context.meta.setdefault("askance.chain", _ChainLine())


def chosen_chain(context: typer.Context, name: str) -> ChosenChain:
    """The chain that the running command names, with the options that it is given.

    Raises:
        UsageError: there is no chain of the name, or an option cannot be what it is.
    """
    line = _chain_line(context)
    if line.chain is None:
        raise _no_chain(name)
    return line.chain.with_options(line.options)


class ChainCommand(TyperCommand):
    """A command with the arguments `chain` and `images`; it takes the options of that chain, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the command line, once it is known which chain it names.

        Raises:
            UsageError: the chain cannot be loaded, or an option is given that only others take.
        """
        words, line = self._words(ctx, args), _chain_line(ctx)
        try:
            line.chain = _first_chain(words, Process.of(ctx))
            line.flags = {} if line.chain is None else self._flags(ctx, line.chain)
        except UsageError:
            if not ctx.resilient_parsing:  # as where a shell completes the line
                raise
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            refusal = self._refusal(ctx, line.chain, words, getattr(error, "option_name", ""))
            if refusal is None:
                raise
            raise refusal from error

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of the chain, then the arguments and options of the command."""
        return [*_chain_line(ctx).flags.values(), *super().get_params(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the options; where no chain is named, the names of the chains, too, of which none is loaded."""
        super().format_options(ctx, formatter)
        if _chain_line(ctx).chain is None:
            with formatter.section(f"Options of the chains; {ctx.command_path} CHAIN --help describes them"):
                formatter.write_text(", ".join(CHAINS.names()))

    def invoke(self, ctx: Any) -> Any:
        """Runs the command, which finds its chain and the options of that by `chosen_chain`."""
        line = _chain_line(ctx)
        values = {name: ctx.params.pop(flag.name) for name, flag in line.flags.items()}
        line.options = {name: value for name, value in values.items() if value is not None}
        return super().invoke(ctx)

    def _words(self, ctx: Any, args: list[str]) -> list[str]:
        """The words that are no option of all chains, nor the value of one."""
        parser = self.make_parser(ctx)
        parser.ignore_unknown_options = True
        values = parser.parse_args(args=[*args])[0]
        return [word for word in (values.get("chain"), *(values.get("images") or ())) if word is not None]

    def _flags(self, ctx: Any, chain: NamedChain) -> Mapping[str, Any]:
        """The options of a chain as parameters of the command.

        Raises:
            UsageError: one can be no flag, or is called as an option of all chains.
        """
        own = {*ctx.help_option_names, *(flag for each in self.params for flag in _spelled(each))}

        def command() -> None: ...

        parameters = [_parameter(chain, name, each) for name, each in chain.options.model_fields.items()]
        vars(command)["__signature__"] = inspect.Signature(parameters)
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command()(command)
        flags = dict(zip(chain.options.model_fields, typer.main.get_command(app).params, strict=True))
        for name, each in flags.items():
            if own & {*_spelled(each)} or (chain.options.model_fields[name].alias or name) in _KEPT:
                raise UsageError(
                    f"The option {name!r} of the chain {chain.name!r} has a name that `askance run` needs itself.",
                    hint="Give it another name, or an `alias`.",
                )
        return flags

    def _flags_by_chain(self, ctx: Any) -> Iterator[tuple[str, list[str]]]:
        """The chains that can be loaded, each with the flags of its options."""
        names = CHAINS.names()
        if {*names} == {*CHAINS.built_in}:
            Process.of(ctx).without_langchain()
        for name in names:
            with suppress(UsageError):
                chain = find_chain(name)
                if chain is not None:
                    yield name, [flag for each in self._flags(ctx, chain).values() for flag in _spelled(each)]

    def _refusal(self, ctx: Any, chain: NamedChain | None, words: list[str], flag: str) -> UsageError | None:
        """The error for a flag that the chain does not have; None if no chain has it."""
        flags = dict(self._flags_by_chain(ctx)) if flag else {}
        takers = [f"`{name}`" for name, taken in flags.items() if flag in taken]
        own = [] if chain is None else flags.get(chain.name, [])
        if not takers or flag in own:
            return None
        if chain is None:
            named = [word for word in words if not word.startswith("-")]
            unnamed = UsageError("No chain is named.", hint=f"{flag} goes with {' or '.join(takers)}.")
            return _no_chain(named[0]) if named else unnamed
        takes = f"takes {', '.join(own)}" if own else "has no options of its own"
        return UsageError(
            f"`{ctx.command_path} {chain.name}` takes no {flag}.",
            hint=f"Leave it out, or run {' or '.join(takers)}; `{chain.name}` {takes}.",
        )


def _first_chain(words: list[str], process: Process) -> NamedChain | None:
    """The chain that is named first."""
    name = next((word for word in words if word in CHAINS), None)
    if name in CHAINS.built_in:  # a chain of somebody's own may be made of LangChain's runnables
        process.without_langchain()
    return None if name is None else find_chain(name)


def _no_chain(name: str) -> UsageError:
    return UsageError(
        f"There is no chain {name!r}.",
        hint=f"Choose one of {', '.join(CHAINS.names())}, or install the package that brings the chain.",
    )


def _spelled(flag: Any) -> list[str]:
    """How a parameter is written on the command line."""
    return [each for each in (*flag.opts, *flag.secondary_opts) if each.startswith("-")]


def _parameter(chain: NamedChain, name: str, option: FieldInfo) -> inspect.Parameter:
    """An option of a chain as a parameter of a command; None is not given.

    Raises:
        UsageError: a command line cannot say values of its type.
    """
    flag = f"--{(option.alias or name).replace('_', '-')}"
    types, choices, repeated = types_of(option), choices_of(option), is_repeated(option)
    kind = str if choices or repeated else types[0]
    if not (choices or repeated) and (len(types) > 1 or kind not in {bool, int, float, str, Path}):
        raise UsageError(
            f"The option {name!r} of the chain {chain.name!r} can be no flag: its type is {option.annotation}.",
            hint="Give it one of bool, int, float, str, Path, a Literal of texts, or a Sequence of str.",
        )
    declared: Any = typer.Option(
        f"{flag}/--no-{flag[2:]}" if kind is bool else flag,
        help=_help(option, flag),
        min=next((each.ge for each in option.metadata if hasattr(each, "ge")), None),
        max=next((each.le for each in option.metadata if hasattr(each, "le")), None),
        metavar=f"<{'|'.join(choices)}>" if choices else None,
        autocompletion=(lambda: choices) if choices else None,
    )
    hint: Any = Annotated[(list[str] if repeated else kind) | None, declared]
    return inspect.Parameter(f"chain_{name}", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)


def _help(option: FieldInfo, flag: str) -> str:
    """What an option means, and its default."""
    default = option.default
    if option.is_required():
        told = "Needed."
    elif isinstance(default, bool):
        told = f"By default {flag if default else f'--no-{flag[2:]}'}."
    else:
        told = "" if default is None or default == () else f"By default {default}."
    return f"{option.description or ''} {told}".strip()
